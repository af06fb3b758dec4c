/*
 * node_table_func.c -- PLAN_TABLE_FUNC: the rows of a table-valued function.
 *
 * The function starts at the first next() after a rewind, with its arguments as they are then;
 * where one is an IN list, it starts again for each value.
 */
#include "exec/exec__write.h"
#include "exec/node.h"
#include "exec/scan_args.h"

typedef struct TableFuncNode {
    ExecNode node;
    ScanArgs args;
    const Cell **given; /* NULL entries: not given. */
    TableCall call;
    bool started, used, ended;
} TableFuncNode;

static Err
func_start(TableFuncNode *func)
{
    for (u32 i = 0; i < func->args.count; i++)
        func->given[i] = exec__arg_given(&func->args.arg[i]) ? &func->args.value[i] : NULL;
    func->used = true;
    return func->call.func->start(&func->call, func->given);
}

static Err
func_begin(Exec *exec, TableFuncNode *func)
{
    bool empty;
    Err err = exec__args_begin(exec, &func->args, &empty);
    func->started = true;
    if (err != OK) return err;
    func->ended = empty;
    return empty ? OK : func_start(func);
}

static Err
func_row(TableFuncNode *func, u32 at)
{
    const PlanNode *plan = func->node.plan;
    for (u32 i = 0; i < plan->columns; i++) {
        u16 column = plan->u.table_func.column[i];
        Cell *out = &func->node.buffer[i][at];
        *out = cell_null();
        if (column == COLUMN_ROWID) {
            *out = cell_int(func->call.func->rowid(&func->call));
            continue;
        }
        Err err = func->call.func->value(&func->call, column, out);
        if (err != OK) return err;
    }
    return OK;
}

static void
func_next(Exec *exec, ExecNode *node, u32 want)
{
    TableFuncNode *func = (TableFuncNode *)node;
    Err err = OK;
    u32 done = 0;
    /* Streaming: nothing is read ahead, so that a trip finds nothing stale. */
    if (node->streaming) want = 1;
    if (!func->started) err = func_begin(exec, func);
    if (err == OK && !func->ended) err = exec__out_reserve(exec, node, want);
    while (err == OK && !func->ended && done < want) {
        bool row = false;
        err = func->call.func->next(&func->call, &row);
        if (err == OK && row) err = func_row(func, done);
        if (err == OK && row) done++;
        if (row) continue;
        if (err == OK && func->args.walks && exec__args_next(&func->args)) {
            err = func_start(func);
        } else {
            func->ended = true;
        }
    }
    if (done == 0) {
        exec__out_end(node, err);
    } else {
        exec__out_rows(node, done, err);
    }
}

static void
func_rewind(Exec *exec, ExecNode *node)
{
    (void)exec;
    TableFuncNode *func = (TableFuncNode *)node;
    func->started = false;
    func->ended = false;
}

static void
func_end(Exec *exec, ExecNode *node)
{
    (void)exec;
    TableFuncNode *func = (TableFuncNode *)node;
    if (func->used && func->call.func->end != NULL) func->call.func->end(&func->call);
    if (func->used) memset(func->call.state, 0, MAX_OF(func->call.func->state_bytes, 1u));
    exec__args_reset(&func->args);
    func->used = false;
    func->started = false;
}

static void
func_free(Exec *exec, ExecNode *node)
{
    func_end(exec, node);
    exec__args_close(&((TableFuncNode *)node)->args);
}

static const NodeOps func_ops = {
    .next = func_next, .rewind = func_rewind, .reset = func_end, .close = func_free};

Err
exec__table_func_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &func_ops, sizeof(TableFuncNode), node_out);
    if (err != OK) return err;
    TableFuncNode *func = (TableFuncNode *)*node_out;
    u32 argc = plan->u.table_func.arg_count, room = MAX_OF(argc, 1u);
    const TableFunc *def = plan->u.table_func.func;
    func->call = (TableCall){
        .func = def, .env = exec->env->func, .arena = &func->node.bytes, .msg = &exec->msg};
    func->given = ARENA_NEW_ARRAY(&exec->arena, const Cell *, room);
    func->call.state = arena_alloc(&exec->arena, MAX_OF(def->state_bytes, 1u));
    if (func->given == NULL || func->call.state == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    return exec__args_open(exec, plan->u.table_func.arg, argc, &func->args);
}
