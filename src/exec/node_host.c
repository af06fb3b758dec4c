/*
 * node_host.c -- PLAN_HOST_SCAN: the rows of a virtual table.
 *
 * The scan begins at the first next() after a rewind, with its arguments as they are then.  An IN
 * list that the table does not take whole makes one scan for each of its values, in value order.
 * As long as nothing above collects rows, one is read at a time: the table is asked for no row that
 * nobody wants, and functions of its own see the row that they are called on.
 */
#include "base/sort.h"
#include "exec/exec__write.h"
#include "exec/node.h"
#include "exec/rowbuf.h"
#include "value/host_table.h"

typedef struct HostArgState {
    const PlanHostArg *plan;
    ExecProgram *value;
    ExecProgram **item; /* in_list */
    ExecSub *sub;       /* in_sub, and what it reads of outside */
    ExecProgram **bind;
    bool is_list;
    RowBuf list; /* The values of a list, in order, each once. */
    u32 at;      /* Walked value by value: the one in force. */
    HostList whole;
} HostArgState;

typedef struct HostScan {
    ExecNode node;
    HostTable *host;
    HostCursor *cursor; /* Open from the first row of a run to its end. */
    HostArgState *arg;
    Cell *value; /* [arg_count], as the table gets them. */
    Arena bytes; /* Of the arguments. */
    bool started, ended, scanning;
    bool walks; /* Some list is walked. */
} HostScan;

static Err
host_fail(Exec *exec, Err err)
{
    return exec->msg.err == OK ? exec__fail(exec, err, NULL) : err;
}

/* ---- arguments ---- */

static Err
list_push(void *arg, const Cell *value)
{
    HostArgState *state = arg;
    if (value->type == CELL_NULL) return OK;
    Cell cell = *value;
    Affinity affinity = (Affinity)state->plan->affinity;
    Err err = OK;
    if (affinity != AFFINITY_NONE) err = cell_apply_affinity(&cell, affinity, &state->list.bytes);
    return err == OK ? exec__rowbuf_add(&state->list, &cell) : err;
}

static int
compare_values(const void *a, const void *b)
{
    return cell_compare(a, b, NULL);
}

static Err
fill_list(Exec *exec, HostScan *scan, HostArgState *state)
{
    Err err = OK;
    exec__rowbuf_clear(&state->list);
    state->at = 0;
    const PlanSub *sub = state->plan->part.in_sub;
    for (u32 i = 0; err == OK && sub != NULL && i < sub->bind_count; i++) {
        err = exec__eval_in(exec, state->bind[i], NULL, &scan->bytes, &exec->reg[sub->bind_reg[i]]);
    }
    if (err == OK && sub != NULL) err = exec__sub_each(exec, state->sub, list_push, state);
    for (u32 i = 0; err == OK && state->item != NULL && i < state->plan->part.in_count; i++) {
        Cell value = cell_null();
        err = exec__eval_in(exec, state->item[i], NULL, &scan->bytes, &value);
        if (err == OK) err = list_push(state, &value);
    }
    if (err != OK) return host_fail(exec, err);
    sort_items(state->list.cell, state->list.rows, sizeof(Cell), compare_values);
    u32 kept = 0;
    for (u32 i = 0; i < state->list.rows; i++) {
        bool again = kept > 0 &&
                     cell_compare(&state->list.cell[kept - 1], &state->list.cell[i], NULL) == 0;
        if (!again) state->list.cell[kept++] = state->list.cell[i];
    }
    state->list.rows = kept;
    return OK;
}

/* The values of this scan; *empty_out: a list without values, so there is nothing to find. */
static Err
begin_args(Exec *exec, HostScan *scan, bool *empty_out)
{
    u32 count = scan->node.plan->u.host_scan.arg_count;
    arena_reset(&scan->bytes);
    *empty_out = false;
    for (u32 i = 0; i < count; i++) {
        HostArgState *state = &scan->arg[i];
        scan->value[i] = cell_null();
        Err err = OK;
        if (state->is_list) {
            err = fill_list(exec, scan, state);
        } else if (state->value != NULL) {
            err = exec__eval_argument(exec, state->value, &scan->bytes, &scan->value[i]);
        }
        if (err != OK) return err;
        if (!state->is_list) continue;
        if (state->list.rows == 0) *empty_out = true;
        if (!state->plan->whole_list) continue;
        state->whole = (HostList){
            .magic = HOST_LIST_MAGIC, .count = state->list.rows, .value = state->list.cell};
        scan->value[i] = (Cell){.flags = CELL_POINTER, .u.pointer = &state->whole};
    }
    return OK;
}

static Err
filter(Exec *exec, HostScan *scan, bool *row_out)
{
    const PlanNode *plan = scan->node.plan;
    u32 count = plan->u.host_scan.arg_count;
    for (u32 i = 0; i < count; i++) {
        const HostArgState *state = &scan->arg[i];
        if (state->is_list && !state->plan->whole_list)
            scan->value[i] = state->list.cell[state->at];
    }
    scan->scanning = true;
    Err err = scan->host->ops->filter(scan->cursor, plan->u.host_scan.number,
                                      plan->u.host_scan.text, count, scan->value, row_out,
                                      &exec->msg);
    return err == OK ? OK : host_fail(exec, err);
}

/* The next combination of values of the lists that are walked; false: that was the last. */
static bool
next_values(HostScan *scan)
{
    for (u32 i = scan->node.plan->u.host_scan.arg_count; i-- > 0;) {
        HostArgState *state = &scan->arg[i];
        if (!state->is_list || state->plan->whole_list) continue;
        if (++state->at < state->list.rows) return true;
        state->at = 0;
    }
    return false;
}

/* ---- rows ---- */

static Err
begin_scan(Exec *exec, HostScan *scan, bool *row_out)
{
    bool empty;
    *row_out = false;
    scan->started = true;
    Err err = OK;
    if (scan->cursor == NULL) {
        err = scan->host->ops->open(scan->host, &scan->cursor, &exec->msg);
        if (err != OK) return host_fail(exec, err);
    }
    err = begin_args(exec, scan, &empty);
    if (err != OK) return err;
    if (empty) {
        scan->ended = true;
        return OK;
    }
    return filter(exec, scan, row_out);
}

/* To the first or next row; past the end of one scan, to that of the next values. */
static Err
advance(Exec *exec, HostScan *scan, bool *row_out)
{
    Err err = OK;
    *row_out = false;
    if (!scan->started) {
        err = begin_scan(exec, scan, row_out);
    } else {
        err = scan->host->ops->next(scan->cursor, row_out, &exec->msg);
        if (err != OK) err = host_fail(exec, err);
    }
    while (err == OK && !*row_out && !scan->ended) {
        if (scan->walks && next_values(scan)) {
            err = filter(exec, scan, row_out);
        } else {
            scan->ended = true;
        }
    }
    return err;
}

static Err
read_cell(Exec *exec, HostScan *scan, u16 column, Cell *out)
{
    const bool *unchanged = scan->node.plan->u.host_scan.unchanged;
    *out = cell_null();
    if (column != COLUMN_ROWID) {
        return scan->host->ops->column(scan->cursor, column, unchanged != NULL && unchanged[column],
                                       &scan->node.bytes, out, &exec->msg);
    }
    i64 rowid = 0;
    Err err = scan->host->ops->rowid(scan->cursor, &rowid, &exec->msg);
    *out = cell_int(rowid);
    return err;
}

/* The rowid, which stands last, is asked for first: as in SELECT rowid, *. */
static Err
read_row(Exec *exec, HostScan *scan, u32 at)
{
    const PlanNode *plan = scan->node.plan;
    u32 columns = plan->columns;
    bool first = columns > 0 && plan->u.host_scan.column[columns - 1] == COLUMN_ROWID;
    for (u32 k = 0; k < columns; k++) {
        u32 i = !first ? k : k == 0 ? columns - 1 : k - 1;
        Err err = read_cell(exec, scan, plan->u.host_scan.column[i], &scan->node.buffer[i][at]);
        if (err != OK) return host_fail(exec, err);
    }
    return OK;
}

/* Does the row have the values that are being walked? */
static Err
check_row(Exec *exec, HostScan *scan, u32 at, bool *fits_out)
{
    *fits_out = true;
    for (u32 i = 0; scan->walks && i < scan->node.plan->u.host_scan.arg_count; i++) {
        const HostArgState *state = &scan->arg[i];
        if (!state->is_list || state->plan->check_cell < 0) continue;
        const PlanStamp *stamp = &state->plan->check;
        ExecTruth truth;
        Err err = exec__compare_cells(exec, PX_EQ, stamp->affinity, stamp->collation,
                                      &scan->node.buffer[state->plan->check_cell][at],
                                      &scan->value[i], &scan->node.bytes, &truth);
        if (err != OK) return err;
        if (truth != EXEC_TRUE) *fits_out = false;
    }
    return OK;
}

static void
host_next(Exec *exec, ExecNode *node, u32 want)
{
    HostScan *scan = (HostScan *)node;
    Err err = OK;
    u32 done = 0;
    if (node->streaming || exec->plan->klass == PLAN_VOLATILE) want = 1;
    if (!scan->ended) err = exec__out_reserve(exec, node, want);
    while (err == OK && !scan->ended && done < want) {
        bool row, fits = false;
        err = advance(exec, scan, &row);
        if (err == OK && row) err = read_row(exec, scan, done);
        if (err == OK && row) err = check_row(exec, scan, done, &fits);
        if (err == OK && fits) done++;
        if (err == OK) err = exec__check(exec);
    }
    if (done == 0) {
        exec__out_end(node, err);
    } else {
        exec__out_rows(node, done, err);
    }
}

static void
host_rewind(Exec *exec, ExecNode *node)
{
    (void)exec;
    HostScan *scan = (HostScan *)node;
    scan->started = false;
    scan->ended = false;
}

static void
host_reset(Exec *exec, ExecNode *node)
{
    (void)exec;
    HostScan *scan = (HostScan *)node;
    if (scan->cursor != NULL) scan->host->ops->close(scan->cursor);
    scan->cursor = NULL;
    scan->started = false;
    scan->ended = false;
    for (u32 i = 0; scan->arg != NULL && i < node->plan->u.host_scan.arg_count; i++) {
        if (scan->arg[i].is_list) exec__rowbuf_clear(&scan->arg[i].list);
    }
}

static void
host_close(Exec *exec, ExecNode *node)
{
    HostScan *scan = (HostScan *)node;
    host_reset(exec, node);
    for (u32 i = 0; scan->arg != NULL && i < node->plan->u.host_scan.arg_count; i++) {
        if (scan->arg[i].is_list) exec__rowbuf_free(&scan->arg[i].list);
    }
    arena_free(&scan->bytes);
}

static const NodeOps host_ops = {
    .next = host_next, .rewind = host_rewind, .reset = host_reset, .close = host_close};

static Err
open_arg(Exec *exec, HostScan *scan, const PlanHostArg *plan, HostArgState *state)
{
    state->plan = plan;
    const PlanKeyPart *part = &plan->part;
    if (part->value != NULL) return exec__compile(exec, part->value, &state->value);
    if (part->in_list == NULL && part->in_sub == NULL) return OK;
    exec__rowbuf_init(exec, &state->list, 1);
    state->is_list = true;
    if (!plan->whole_list) scan->walks = true;
    if (part->in_sub == NULL)
        return exec__compile_list(exec, part->in_list, part->in_count, &state->item);
    Err err = exec__compile_list(exec, part->in_sub->bind_expr, part->in_sub->bind_count,
                                 &state->bind);
    return err == OK ? exec__sub_open(exec, part->in_sub, &state->sub) : err;
}

Err
exec__host_scan_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &host_ops, sizeof(HostScan), node_out);
    if (err != OK) return err;
    HostScan *scan = (HostScan *)*node_out;
    u32 argc = plan->u.host_scan.arg_count;
    arena_init(&scan->bytes, exec->env->account);
    scan->host = plan->u.host_scan.table->host;
    scan->value = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(argc, 1u));
    scan->arg = ARENA_NEW_ARRAY(&exec->arena, HostArgState, MAX_OF(argc, 1u));
    if (scan->arg == NULL || scan->value == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (u32 i = 0; err == OK && i < argc; i++)
        err = open_arg(exec, scan, &plan->u.host_scan.arg[i], &scan->arg[i]);
    return err;
}
