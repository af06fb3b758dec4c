/*
 * make_plan.h -- plans made by hand, and a database to run them on, for the tests of exec/.
 */
#pragma once

#include "exec/exec.h"
#include "rt/process.h"
#include "unit/exec/make_schema.h"

/* ---- expressions ---- */

static inline PlanExpr *
px_new(Arena *arena, PlanOp op, u32 args)
{
    PlanExpr *expr = ARENA_NEW(arena, PlanExpr);
    expr->op = (u8)op;
    expr->arg_count = args;
    expr->arg = ARENA_NEW_ARRAY(arena, PlanExpr *, args + 1);
    expr->collation = &collation_binary;
    return expr;
}

static inline PlanExpr *
px_cell(Arena *arena, Cell cell)
{
    PlanExpr *expr = px_new(arena, PX_CONST, 0);
    expr->u.constant = cell;
    return expr;
}

static inline PlanExpr *
px_int(Arena *arena, i64 i)
{
    return px_cell(arena, cell_int(i));
}

static inline PlanExpr *
px_text(Arena *arena, const char *text)
{
    return px_cell(arena, cell_text(text, strlen(text)));
}

static inline PlanExpr *
px_param(Arena *arena, u32 number)
{
    PlanExpr *expr = px_new(arena, PX_PARAM, 0);
    expr->flags = PX_FLAG_READS_PARAM;
    expr->u.number = number;
    return expr;
}

static inline PlanExpr *
px_column(Arena *arena, u32 number)
{
    PlanExpr *expr = px_new(arena, PX_COLUMN, 0);
    expr->flags = PX_FLAG_READS_ROW;
    expr->u.number = number;
    return expr;
}

static inline PlanExpr *
px_reg(Arena *arena, u32 number)
{
    PlanExpr *expr = px_new(arena, PX_REG, 0);
    expr->flags = PX_FLAG_READS_REG;
    expr->u.number = number;
    return expr;
}

static inline PlanExpr *
px_two(Arena *arena, PlanOp op, PlanExpr *a, PlanExpr *b)
{
    PlanExpr *expr = px_new(arena, op, 2);
    expr->arg[0] = a;
    expr->arg[1] = b;
    expr->flags = (u16)((a->flags | b->flags) & ~PX_FLAG_NOT);
    return expr;
}

static inline PlanExpr *
px_one(Arena *arena, PlanOp op, PlanExpr *a)
{
    PlanExpr *expr = px_new(arena, op, 1);
    expr->arg[0] = a;
    expr->flags = a->flags;
    return expr;
}

/* RAISE(action, text); IGNORE without a text. */
static inline PlanExpr *
px_raise(Arena *arena, Conflict action, const char *text)
{
    PlanExpr *expr = px_new(arena, PX_RAISE, text != NULL ? 1 : 0);
    if (text != NULL) expr->arg[0] = px_text(arena, text);
    expr->klass = PLAN_VOLATILE;
    expr->u.raise.action = (u8)action;
    return expr;
}

/* ---- nodes and plans ---- */

static inline Plan *
plan_new(void)
{
    Arena arena;
    arena_init(&arena, NULL);
    Plan *plan = ARENA_NEW(&arena, Plan);
    plan->arena = arena;
    plan->references = 1;
    plan->sql = "";
    return plan;
}

static inline void
plan_free(Plan *plan)
{
    Arena arena = plan->arena;
    arena_free(&arena);
}

static inline PlanNode *
node_new(Plan *plan, PlanKind kind, u32 columns)
{
    PlanNode *node = ARENA_NEW(&plan->arena, PlanNode);
    node->kind = (u8)kind;
    node->number = plan->node_count++;
    node->columns = columns;
    return node;
}

static inline PlanNode *
node_values(Plan *plan, u32 rows, u32 columns)
{
    PlanNode *node = node_new(plan, PLAN_VALUES, columns);
    node->u.values.row_count = rows;
    node->u.values.row = ARENA_NEW_ARRAY(&plan->arena, PlanExpr **, rows);
    for (u32 i = 0; i < rows; i++) {
        node->u.values.row[i] = ARENA_NEW_ARRAY(&plan->arena, PlanExpr *, columns + 1);
    }
    return node;
}

/* A whole scan; `column` is copied. */
static inline PlanNode *
node_scan(Plan *plan, const TableDef *table, const u16 *column, u32 columns, PlanExpr *filter)
{
    PlanNode *node = node_new(plan, PLAN_SCAN, columns);
    node->u.scan.table = table;
    node->u.scan.column = ARENA_NEW_ARRAY(&plan->arena, u16, columns + 1);
    memcpy(node->u.scan.column, column, sizeof(u16) * columns);
    node->u.scan.filter = filter;
    return node;
}

static inline PlanNode *
node_project(Plan *plan, PlanNode *input, PlanExpr **expr, u32 columns)
{
    PlanNode *node = node_new(plan, PLAN_PROJECT, columns);
    node->input = input;
    node->u.project.expr = expr;
    return node;
}

/* The frame of a write on `table`: all its indexes, all touched. */
static inline Plan *
plan_write(PlanWriteKind kind, const TableDef *table, Conflict conflict)
{
    Plan *plan = plan_new();
    Arena *arena = &plan->arena;
    PlanWrite *write = ARENA_NEW(arena, PlanWrite);
    plan->write = write;
    write->kind = (u8)kind;
    write->conflict = (u8)conflict;
    write->table = table;
    write->counts_changes = true;
    write->value_cell = ARENA_NEW_ARRAY(arena, i32, table->column_count + 1u);
    for (u32 c = 0; c <= table->column_count; c++) {
        write->value_cell[c] = -1;
    }
    write->default_expr = ARENA_NEW_ARRAY(arena, PlanExpr *, table->column_count);
    write->generated = ARENA_NEW_ARRAY(arena, PlanExpr *, table->column_count);
    write->generated_order = ARENA_NEW_ARRAY(arena, u16, table->column_count);
    write->index_count = table->index_count;
    write->index = ARENA_NEW_ARRAY(arena, PlanIndexWrite, table->index_count + 1u);
    for (u16 i = 0; i < table->index_count; i++) {
        write->index[i].index = table->index[i];
        write->index[i].touched = true;
        write->index[i].expr = ARENA_NEW_ARRAY(arena, PlanExpr *, table->index[i]->key_columns);
    }
    return plan;
}

/* INSERT INTO table VALUES (?1, ?2, ...), columns in order. */
static inline Plan *
plan_insert_params(const TableDef *table, Conflict conflict)
{
    Plan *plan = plan_write(WRITE_INSERT, table, conflict);
    plan->param_count = table->column_count;
    plan->write->source = node_values(plan, 1, table->column_count);
    for (u32 c = 0; c < table->column_count; c++) {
        plan->write->source->u.values.row[0][c] = px_param(&plan->arena, c + 1);
        plan->write->value_cell[c] = (i32)c;
    }
    return plan;
}

/* The key columns that a write's source yields. */
static inline u32
key_columns_of(const TableDef *table, u16 *column_out)
{
    if (!table->without_rowid) {
        column_out[0] = COLUMN_ROWID;
        return 1;
    }
    for (u16 i = 0; i < table->primary_key->key_columns; i++) {
        column_out[i] = table->primary_key->column[i].column;
    }
    return table->primary_key->key_columns;
}

/* UPDATE or DELETE of the rows where column `where` equals parameter 1 (COLUMN_EXPR: all rows). */
static inline Plan *
plan_change_where(PlanWriteKind kind, const TableDef *table, Conflict conflict, u16 where)
{
    Plan *plan = plan_write(kind, table, conflict);
    Arena *arena = &plan->arena;
    u16 column[16];
    u32 keys = key_columns_of(table, column);
    PlanExpr *filter = NULL;
    u32 columns = keys;
    if (where != COLUMN_EXPR) {
        column[columns++] = where;
        filter = px_two(arena, PX_EQ, px_column(arena, keys), px_param(arena, 1));
    }
    plan->param_count = 4;
    plan->write->source = node_scan(plan, table, column, columns, filter);
    if (columns > keys) {
        PlanExpr **expr = ARENA_NEW_ARRAY(arena, PlanExpr *, keys);
        for (u32 i = 0; i < keys; i++) {
            expr[i] = px_column(arena, i);
        }
        plan->write->source = node_project(plan, plan->write->source, expr, keys);
    }
    plan->write->collect = true;
    plan->write->set_column = ARENA_NEW_ARRAY(arena, u16, 8);
    plan->write->set_expr = ARENA_NEW_ARRAY(arena, PlanExpr *, 8);
    return plan;
}

static inline void
plan_set(Plan *plan, u16 column, PlanExpr *expr)
{
    PlanWrite *write = plan->write;
    write->set_column[write->set_count] = column;
    write->set_expr[write->set_count++] = expr;
}

/* SELECT of all rows, these columns. */
static inline Plan *
plan_select(const TableDef *table, const u16 *column, u32 columns)
{
    Plan *plan = plan_new();
    plan->root = node_scan(plan, table, column, columns, NULL);
    plan->column_count = columns;
    plan->read_only = true;
    return plan;
}

/* ---- a database ---- */

typedef struct TestDb {
    Arena arena;
    Store *store;
    StoreTxn *txn;
    StoreTxn *by_database[4];
    FuncEnv func;
    ExecHooks hooks;
    ExecEnv env;
    i64 last_rowid;
    u64 random;
    ErrMsg msg;
    ExecUndo undo;
    i64 changed;
} TestDb;

static inline i64
test_db_last_rowid(void *arg)
{
    return ((TestDb *)arg)->last_rowid;
}
static inline void
test_db_set_last_rowid(void *arg, i64 rowid)
{
    ((TestDb *)arg)->last_rowid = rowid;
}
static inline void
test_db_random(void *arg, void *bytes_out, size_t bytes)
{
    TestDb *db = arg;
    db->random = hash_u64(db->random, 5);
    memset(bytes_out, 0, bytes);
    memcpy(bytes_out, &db->random, MIN_OF(bytes, sizeof(db->random)));
}

static inline void
test_db_open(TestDb *db)
{
    *db = (TestDb){0};
    arena_init(&db->arena, NULL);
    StoreOptions options = {.in_memory = true};
    assert_int_equal(store_open(rt_process_default(), NULL, &options, &db->store, &db->msg), OK);
    StoreTxnOptions begin = {.level = STORE_SNAPSHOT, .sync = STORE_SYNC_OFF};
    assert_int_equal(store_txn_begin(db->store, &begin, &db->txn), OK);
    for (u32 i = 0; i < COUNT_OF(db->by_database); i++) {
        db->by_database[i] = db->txn;
    }
    db->func = (FuncEnv){
        .arg = db,
        .last_insert_rowid = test_db_last_rowid,
        .random = test_db_random,
        .length_max = 1000000000,
    };
    db->hooks = (ExecHooks){.arg = db, .set_last_rowid = test_db_set_last_rowid};
    db->env = (ExecEnv){
        .func = &db->func,
        .hooks = &db->hooks,
        .length_max = 1000000000,
        .trigger_depth_max = 1000,
    };
}

static inline void
test_db_close(TestDb *db)
{
    store_txn_rollback(db->txn);
    store_close(db->store);
    err_clear(&db->msg);
    arena_free(&db->arena);
}

/* Make the trees of a table and its indexes. */
static inline void
test_db_create(TestDb *db, TableDef *table, IndexDef **index, u16 index_count)
{
    table->store = db->store;
    StoreTreeKind kind = table->without_rowid ? STORE_TREE_BYTES : STORE_TREE_INT;
    assert_int_equal(store_tree_create(db->txn, kind, &table->tree), OK);
    if (table->without_rowid) table->primary_key->tree = table->tree;
    table->index_count = index_count;
    table->index = ARENA_NEW_ARRAY(&db->arena, IndexDef *, index_count + 1u);
    for (u16 i = 0; i < index_count; i++) {
        table->index[i] = index[i];
        assert_int_equal(store_tree_create(db->txn, STORE_TREE_BYTES, &index[i]->tree), OK);
    }
}

/* Start an open statement and run it to its end, undoing what a failure asks for.  Rows are given
   to `each`, if any. */
static inline Err
test_db_run(TestDb *db, Exec *exec, const Cell *param, u32 params,
            void (*each)(void *arg, const Cell *row), void *arg)
{
    StoreMark mark = store_txn_mark(db->txn);
    err_clear(&db->msg);
    Err err = exec_start(exec, db->by_database, param, params);
    bool row = true;
    while (err == OK && row) {
        err = exec_step(exec, &row);
        if (err == OK && row && each != NULL) each(arg, exec_row(exec));
    }
    db->changed = exec_rows_changed(exec);
    if (err != OK) {
        err_set(&db->msg, err, "%s", err_message(exec_error(exec)));
        db->undo = exec_error_undo(exec);
        if (db->undo != EXEC_UNDO_NOTHING) store_txn_undo_to(db->txn, mark);
    }
    exec_reset(exec);
    return err;
}

/* The same with a plan that is run once and freed. */
static inline Err
test_db_run_plan(TestDb *db, Plan *plan, const Cell *param, u32 params)
{
    Exec *exec = NULL;
    err_clear(&db->msg);
    Err err = exec_open(plan, &db->env, &exec, &db->msg);
    if (err == OK) err = test_db_run(db, exec, param, params, NULL, NULL);
    exec_close(exec);
    plan_free(plan);
    return err;
}
