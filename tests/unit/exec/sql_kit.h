/*
 * sql_kit.h -- a statement of SQL text run on an in-memory store without the session layer, and the
 * same statement on the real SQLite beside it.
 */
#pragma once

#include <sqlite3.h>

#include "exec/exec.h"
#include "exec/index_build.h"
#include "func/func_builtin.h"
#include "rt/process.h"
#include "sql/catalog/catalog.h"
#include "sql/parse/parse.h"
#include "sql/plan/planner.h"
#include "unit/cmocka_all.h"
#include "value/number.h"

typedef struct SqlKit {
    Store *store;
    StoreTxn *txn;
    CatalogEnv catalog_env;
    Catalog *catalog;
    FuncTable functions;
    FuncEnv func;
    ExecEnv env;
    PlanContext ctx;
    sqlite3 *peer;
    Buf ours, theirs;
} SqlKit;

static inline void
sql_kit_open(SqlKit *kit)
{
    ErrMsg msg = {0};
    *kit = (SqlKit){.env = {.func = &kit->func, .length_max = 1000000000}};
    kit->func.length_max = 1000000000;
    kit->func.like_pattern_max = 50000;
    StoreOptions options = {.in_memory = true, .create = true};
    assert_int_equal(store_open(rt_process_default(), NULL, &options, &kit->store, &msg), OK);
    StoreTxnOptions how = {.level = STORE_SNAPSHOT};
    assert_int_equal(store_txn_begin(kit->store, &how, &kit->txn), OK);
    kit->catalog_env = (CatalogEnv){.schema = "main", .store = kit->store};
    TreeId schema;
    assert_int_equal(store_tree_create(kit->txn, STORE_TREE_INT, &schema), OK);
    assert_int_equal(catalog_set_number(kit->txn, "schema_tree", schema), OK);
    assert_int_equal(catalog_load(kit->txn, &kit->catalog_env, &kit->catalog, &msg), OK);
    assert_int_equal(func_builtin_init(&kit->functions), OK);
    assert_int_equal(sqlite3_open(":memory:", &kit->peer), SQLITE_OK);
}

static inline void
sql_kit_close(SqlKit *kit)
{
    sqlite3_close(kit->peer);
    func_builtin_free(&kit->functions);
    catalog_release(kit->catalog);
    store_txn_rollback(kit->txn);
    store_close(kit->store);
    buf_free(&kit->ours);
    buf_free(&kit->theirs);
}

static inline void
sql_kit_cell(Buf *out, const Cell *cell)
{
    static const char kinds[] = "nirtb";
    char number[NUMBER_TEXT_BYTES];
    Err err = buf_append_byte(out, (u8)kinds[cell->type]);
    switch (cell->type) {
    case CELL_NULL: break;
    case CELL_INT: err = buf_append(out, number, number_put_int(number, cell->u.i)); break;
    case CELL_REAL: err = buf_append(out, number, number_put_real(number, cell->u.r)); break;
    default:
        if (cell->bytes > 0) err = buf_append(out, cell->u.p, cell->bytes);
        break;
    }
    assert_int_equal(err, OK);
}

static inline void
sql_kit_text(Buf *out, const char *text)
{
    assert_int_equal(buf_append_text(out, text), OK);
}

/* Ours: run one SELECT or write; rows and the error as text. */
static inline void
sql_kit_run_plan(SqlKit *kit, const Plan *plan)
{
    ErrMsg msg = {0};
    Exec *exec;
    StoreTxn *txn[3] = {kit->txn, kit->txn, kit->txn};
    Err err = exec_open(plan, &kit->env, &exec, &msg);
    if (err != OK) {
        sql_kit_text(&kit->ours, "!");
        sql_kit_text(&kit->ours, err_message(&msg));
        err_clear(&msg);
        return;
    }
    StoreMark mark = store_txn_mark(kit->txn);
    assert_int_equal(exec_start(exec, txn, NULL, 0), OK);
    for (bool row = true; row;) {
        err = exec_step(exec, &row);
        if (err != OK) {
            sql_kit_text(&kit->ours, "!");
            sql_kit_text(&kit->ours, err_message(exec_error(exec)));
            if (plan->write != NULL) store_txn_undo_to(kit->txn, mark);
            break;
        }
        for (u32 i = 0; row && i < plan->column_count; i++) {
            if (i > 0) sql_kit_text(&kit->ours, "|");
            sql_kit_cell(&kit->ours, &exec_row(exec)[i]);
        }
        if (row) sql_kit_text(&kit->ours, "\n");
    }
    exec_reset(exec);
    exec_close(exec);
}

static inline PlanContext
sql_kit_context(SqlKit *kit, CatalogView *view)
{
    *view = (CatalogView){.count = 1};
    view->db[0].name = "main";
    view->db[0].catalog = kit->catalog;
    PlanContext ctx = kit->ctx;
    ctx.catalog = view;
    ctx.functions = &kit->functions;
    return ctx;
}

static inline Err
sql_kit_ddl(SqlKit *kit, const AstStatement *ast, Slice sql, ErrMsg *msg)
{
    DdlContext ddl = {
        .txn = kit->txn, .env = &kit->catalog_env, .old = kit->catalog, .sql = sql, .msg = msg};
    Catalog *catalog = NULL;
    const IndexDef *index = NULL;
    Err err = ERR_UNSUPPORTED;
    switch (ast->kind) {
    case AST_STMT_CREATE_TABLE: err = ddl_create_table(&ddl, ast->u.create_table, &catalog); break;
    case AST_STMT_CREATE_VIEW: err = ddl_create_view(&ddl, ast->u.create_view, &catalog); break;
    case AST_STMT_CREATE_INDEX:
        err = ddl_create_index(&ddl, ast->u.create_index, &catalog, &index);
        break;
    default: break;
    }
    if (err != OK) return err;
    catalog_release(kit->catalog);
    kit->catalog = catalog;
    if (index == NULL) return OK;
    CatalogView view;
    PlanContext ctx = sql_kit_context(kit, &view);
    StoreTxn *txn[3] = {kit->txn, kit->txn, kit->txn};
    Plan *plan = NULL;
    err = plan_index_build(&ctx, index->table, index, &plan, msg);
    if (err == OK) err = exec_index_build(plan, index, &kit->env, txn, msg);
    plan_release(plan);
    return err;
}

static inline void
sql_kit_ours(SqlKit *kit, const char *sql)
{
    ErrMsg msg = {0};
    Arena arena;
    AstStatement *ast;
    size_t consumed;
    Slice text = SLICE(sql, strlen(sql));
    arena_init(&arena, NULL);
    buf_clear(&kit->ours);
    Err err = sql_parse(&arena, text, NULL, &ast, &consumed, &msg);
    if (err == OK && ast->kind <= AST_STMT_DELETE) {
        CatalogView view;
        PlanContext ctx = sql_kit_context(kit, &view);
        Plan *plan = NULL;
        err = plan_prepare(&ctx, ast, text, &plan, &msg);
        if (err == OK) sql_kit_run_plan(kit, plan);
        plan_release(plan);
    } else if (err == OK) {
        err = sql_kit_ddl(kit, ast, text, &msg);
    }
    if (err != OK) {
        sql_kit_text(&kit->ours, "!");
        sql_kit_text(&kit->ours, err_message(&msg));
    }
    assert_int_equal(buf_append_byte(&kit->ours, 0), OK);
    err_clear(&msg);
    arena_free(&arena);
}

static inline void
sql_kit_theirs(SqlKit *kit, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    buf_clear(&kit->theirs);
    int code = sqlite3_prepare_v2(kit->peer, sql, -1, &stmt, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(stmt);
        if (code != SQLITE_ROW) break;
        for (int i = 0; i < sqlite3_column_count(stmt); i++) {
            static const u8 types[] = {0, CELL_INT, CELL_REAL, CELL_TEXT, CELL_BLOB, CELL_NULL};
            Cell cell = {.type = types[sqlite3_column_type(stmt, i)]};
            if (i > 0) sql_kit_text(&kit->theirs, "|");
            if (cell.type == CELL_INT) cell.u.i = sqlite3_column_int64(stmt, i);
            if (cell.type == CELL_REAL) cell.u.r = sqlite3_column_double(stmt, i);
            if (cell.type >= CELL_TEXT) {
                cell.u.p = sqlite3_column_blob(stmt, i);
                cell.bytes = (u32)sqlite3_column_bytes(stmt, i);
            }
            sql_kit_cell(&kit->theirs, &cell);
        }
        sql_kit_text(&kit->theirs, "\n");
    }
    if (code != SQLITE_DONE) {
        sql_kit_text(&kit->theirs, "!");
        sql_kit_text(&kit->theirs, sqlite3_errmsg(kit->peer));
    }
    sqlite3_finalize(stmt);
    assert_int_equal(buf_append_byte(&kit->theirs, 0), OK);
}

/* Both must print the same. */
static inline void
sql_kit_same(SqlKit *kit, const char *sql)
{
    sql_kit_ours(kit, sql);
    sql_kit_theirs(kit, sql);
    if (strcmp((const char *)kit->ours.p, (const char *)kit->theirs.p) != 0) {
        fail_msg("%s\n--- ours:\n%s\n--- SQLite:\n%s", sql, (const char *)kit->ours.p,
                 (const char *)kit->theirs.p);
    }
}
