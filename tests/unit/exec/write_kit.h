/*
 * write_kit.h -- SQL text run here and in SQLite side by side, without a session: one in-memory
 * store, one transaction, DDL by the catalog, the rest by planner and executor.
 *
 * What must agree after each statement: rows, extended code, message, changes(),
 * last_insert_rowid().
 */
#pragma once

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "exec/exec.h"
#include "exec/index_build.h"
#include "func/func_builtin.h"
#include "rt/process.h"
#include "sql/catalog/catalog.h"
#include "sql/parse/parse.h"
#include "sql/plan/planner.h"
#include "unit/cmocka_all.h"

typedef struct SqlKit {
    Store *store;
    StoreTxn *txn;
    StoreTxn *by_database[CATALOG_DATABASES_MAX];
    CatalogEnv catalog_env;
    CatalogView view;
    FuncTable functions;
    FuncEnv func;
    ExecHooks hooks;
    ExecEnv env;
    PlanContext plan;
    i64 last_rowid, changes;
    i64 deferred_open;
    u64 random;
    ErrMsg msg;
    Buf rows; /* Of the last statement. */
    sqlite3 *oracle;
    Buf oracle_rows;
    bool skip_message; /* Compare codes only. */
    u64 statements, failures;
} SqlKit;

static inline i64
kit_last_rowid(void *arg)
{
    return ((SqlKit *)arg)->last_rowid;
}
static inline i64
kit_changes(void *arg)
{
    return ((SqlKit *)arg)->changes;
}
static inline void
kit_set_last_rowid(void *arg, i64 rowid)
{
    ((SqlKit *)arg)->last_rowid = rowid;
}
static inline void
kit_set_changes(void *arg, i64 changes)
{
    ((SqlKit *)arg)->changes = changes;
}
static inline void
kit_random(void *arg, void *bytes_out, size_t bytes)
{
    SqlKit *kit = arg;
    kit->random = hash_u64(kit->random, 9);
    memset(bytes_out, 0, bytes);
    memcpy(bytes_out, &kit->random, MIN_OF(bytes, sizeof(kit->random)));
}

static inline void
kit_open(SqlKit *kit)
{
    *kit = (SqlKit){0};
    StoreOptions options = {.in_memory = true};
    assert_int_equal(store_open(rt_process_default(), NULL, &options, &kit->store, &kit->msg), OK);
    StoreTxnOptions begin = {.level = STORE_SNAPSHOT, .sync = STORE_SYNC_OFF};
    assert_int_equal(store_txn_begin(kit->store, &begin, &kit->txn), OK);
    kit->by_database[0] = kit->txn;
    i64 schema_tree;
    assert_int_equal(catalog_get_number(kit->txn, "schema_tree", &schema_tree), OK);
    if (schema_tree == 0) {
        TreeId tree;
        assert_int_equal(store_tree_create(kit->txn, STORE_TREE_INT, &tree), OK);
        assert_int_equal(catalog_set_number(kit->txn, "schema_tree", tree), OK);
    }
    kit->catalog_env = (CatalogEnv){.schema = "main", .store = kit->store};
    kit->view.count = 2;
    kit->view.db[0].name = "main";
    kit->view.db[1].name = "temp";
    assert_int_equal(catalog_load(kit->txn, &kit->catalog_env, &kit->view.db[0].catalog, &kit->msg),
                     OK);
    assert_int_equal(func_builtin_init(&kit->functions), OK);
    kit->func = (FuncEnv){
        .arg = kit,
        .changes = kit_changes,
        .last_insert_rowid = kit_last_rowid,
        .random = kit_random,
        .length_max = 1000000000,
        .like_pattern_max = 50000,
    };
    kit->hooks = (ExecHooks){
        .arg = kit, .set_last_rowid = kit_set_last_rowid, .set_changes = kit_set_changes};
    kit->env = (ExecEnv){
        .func = &kit->func,
        .hooks = &kit->hooks,
        .length_max = 1000000000,
        .trigger_depth_max = 1000,
    };
    kit->plan = (PlanContext){.catalog = &kit->view, .functions = &kit->functions};
    assert_int_equal(sqlite3_open(":memory:", &kit->oracle), SQLITE_OK);
}

static inline void
kit_close(SqlKit *kit)
{
    catalog_release(kit->view.db[0].catalog);
    store_txn_rollback(kit->txn);
    store_close(kit->store);
    func_builtin_free(&kit->functions);
    buf_free(&kit->rows);
    buf_free(&kit->oracle_rows);
    err_clear(&kit->msg);
    sqlite3_close(kit->oracle);
}

static inline void
kit_put_text(Buf *out, const void *p, size_t bytes)
{
    if (bytes > 40) {
        assert_int_equal(
            buf_printf(out, "[%zu bytes %llx]", bytes, (unsigned long long)hash_bytes(p, bytes, 0)),
            OK);
    } else {
        assert_int_equal(buf_append(out, p != NULL ? p : "", bytes), OK);
    }
}

static inline void
kit_put_cell(SqlKit *kit, const Cell *cell)
{
    Buf *out = &kit->rows;
    Err err = OK;
    switch (cell->type) {
    case CELL_NULL: err = buf_append_text(out, "NULL"); break;
    case CELL_INT: err = buf_printf(out, "%lld", (long long)cell->u.i); break;
    case CELL_REAL: err = buf_printf(out, "%.15gr", cell->u.r); break;
    case CELL_BLOB: err = buf_append_text(out, "x"); FALLTHROUGH;
    default: assert_int_equal(err, OK); kit_put_text(out, cell->u.p, cell->bytes);
    }
    assert_int_equal(err, OK);
}

static inline Err
kit_run_plan(SqlKit *kit, Plan *plan)
{
    Exec *exec = NULL;
    StoreMark mark = store_txn_mark(kit->txn);
    kit->env.deferred_open = kit->deferred_open;
    Err err = exec_open(plan, &kit->env, &exec, &kit->msg);
    if (err != OK) return err;
    err = exec_start(exec, kit->by_database, NULL, 0);
    bool row = true;
    while (err == OK && row) {
        err = exec_step(exec, &row);
        if (err != OK || !row) break;
        for (u32 c = 0; c < plan->column_count; c++) {
            if (c > 0) assert_int_equal(buf_append_text(&kit->rows, ","), OK);
            kit_put_cell(kit, &exec_row(exec)[c]);
        }
        assert_int_equal(buf_append_text(&kit->rows, ";"), OK);
    }
    bool writes = plan->write != NULL;
    if (err != OK) {
        err_set(&kit->msg, err, "%s", err_message(exec_error(exec)));
        if (writes && exec_error_undo(exec) != EXEC_UNDO_NOTHING) {
            store_txn_undo_to(kit->txn, mark);
        } else {
            kit->deferred_open += exec_deferred_violations(exec);
        }
        if (writes) kit->changes = exec_rows_changed(exec);
    } else if (writes) {
        kit->changes = exec_rows_changed(exec);
        kit->deferred_open += exec_deferred_violations(exec);
    }
    exec_close(exec);
    return err;
}

static inline Err
kit_create_index(SqlKit *kit, DdlContext *ddl, const AstCreateIndex *ast, Catalog **new_out)
{
    const IndexDef *index = NULL;
    Err err = ddl_create_index(ddl, ast, new_out, &index);
    if (err != OK || index == NULL) return err;
    Catalog *before = kit->view.db[0].catalog;
    kit->view.db[0].catalog = *new_out;
    Plan *plan = NULL;
    err = plan_index_build(&kit->plan, index->table, index, &plan, &kit->msg);
    if (err == OK) err = exec_index_build(plan, index, &kit->env, kit->by_database, &kit->msg);
    plan_release(plan);
    kit->view.db[0].catalog = before;
    return err;
}

static inline Err
kit_ddl(SqlKit *kit, Slice sql, const AstStatement *ast)
{
    StoreMark mark = store_txn_mark(kit->txn);
    Catalog *fresh = NULL;
    Catalog *catalog = kit->view.db[0].catalog;
    DdlContext ddl = {
        .txn = kit->txn, .env = &kit->catalog_env, .old = catalog, .sql = sql, .msg = &kit->msg};
    Err err = ERR_UNSUPPORTED;
    switch (ast->kind) {
    case AST_STMT_CREATE_TABLE: err = ddl_create_table(&ddl, ast->u.create_table, &fresh); break;
    case AST_STMT_CREATE_INDEX:
        err = kit_create_index(kit, &ddl, ast->u.create_index, &fresh);
        break;
    case AST_STMT_CREATE_VIEW: err = ddl_create_view(&ddl, ast->u.create_view, &fresh); break;
    case AST_STMT_CREATE_TRIGGER:
        err = ddl_create_trigger(&ddl, ast->u.create_trigger,
                                 catalog_find_table(catalog, ast->u.create_trigger->table.text),
                                 &fresh);
        break;
    default: err_set(&kit->msg, err, "not in the kit");
    }
    if (err != OK) {
        catalog_release(fresh);
        store_txn_undo_to(kit->txn, mark);
        return err;
    }
    if (fresh != NULL) {
        catalog_release(catalog);
        kit->view.db[0].catalog = fresh;
    }
    return OK;
}

/* One statement, here only. */
static inline Err
kit_ours(SqlKit *kit, const char *sql)
{
    Arena arena;
    arena_init(&arena, NULL);
    err_clear(&kit->msg);
    buf_clear(&kit->rows);
    Slice text = SLICE(sql, strlen(sql));
    AstStatement *ast = NULL;
    size_t used;
    Err err = sql_parse(&arena, text, NULL, &ast, &used, &kit->msg);
    if (err == OK && ast != NULL) {
        if (ast->kind <= AST_STMT_DELETE) {
            Plan *plan = NULL;
            kit->plan.foreign_keys = kit->env.foreign_keys;
            kit->plan.recursive_triggers = kit->env.recursive_triggers;
            err = plan_prepare(&kit->plan, ast, text, &plan, &kit->msg);
            if (err == OK) err = kit_run_plan(kit, plan);
            plan_release(plan);
        } else {
            err = kit_ddl(kit, text, ast);
        }
    }
    arena_free(&arena);
    return err;
}

/* The same statement in SQLite; its extended code. */
static inline int
kit_theirs(SqlKit *kit, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    buf_clear(&kit->oracle_rows);
    Buf *out = &kit->oracle_rows;
    sqlite3_extended_result_codes(kit->oracle, 1);
    int rc = sqlite3_prepare_v2(kit->oracle, sql, -1, &stmt, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        rc = SQLITE_OK;
        for (int c = 0; c < sqlite3_column_count(stmt); c++) {
            if (c > 0) assert_int_equal(buf_append_text(out, ","), OK);
            Err err = OK;
            switch (sqlite3_column_type(stmt, c)) {
            case SQLITE_NULL: err = buf_append_text(out, "NULL"); break;
            case SQLITE_INTEGER:
                err = buf_printf(out, "%lld", (long long)sqlite3_column_int64(stmt, c));
                break;
            case SQLITE_FLOAT:
                err = buf_printf(out, "%.15gr", sqlite3_column_double(stmt, c));
                break;
            case SQLITE_BLOB: err = buf_append_text(out, "x"); FALLTHROUGH;
            default:
                kit_put_text(out, sqlite3_column_blob(stmt, c),
                             (size_t)sqlite3_column_bytes(stmt, c));
            }
            assert_int_equal(err, OK);
        }
        assert_int_equal(buf_append_text(out, ";"), OK);
    }
    sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static inline const char *
kit_text(Buf *buf)
{
    assert_int_equal(buf_append_byte(buf, 0), OK);
    buf->bytes--;
    return (const char *)buf->p;
}

/* Both; everything that shows must agree. */
static inline void
kit_both(SqlKit *kit, const char *sql)
{
    if (getenv("WEFT_TRACE") != NULL) print_message("%s\n", sql);
    Err err = kit_ours(kit, sql);
    int theirs = kit_theirs(kit, sql);
    int ours = err == OK ? 0 : err_sqlite(err);
    const char *our_text = err == OK ? "" : err_message(&kit->msg);
    const char *their_text = theirs == 0 ? "" : sqlite3_errmsg(kit->oracle);
    kit->statements++;
    if (err != OK) kit->failures++;
    bool same = ours == theirs && (kit->skip_message || strcmp(our_text, their_text) == 0) &&
                strcmp(kit_text(&kit->rows), kit_text(&kit->oracle_rows)) == 0 &&
                kit->last_rowid == sqlite3_last_insert_rowid(kit->oracle) &&
                kit->changes == sqlite3_changes(kit->oracle);
    if (same) return;
    print_error("%s\n  ours:   %d %s\n  %s\n  changes %lld last %lld\n  sqlite: %d %s\n  %s\n"
                "  changes %d last %lld\n",
                sql, ours, our_text, kit_text(&kit->rows), (long long)kit->changes,
                (long long)kit->last_rowid, theirs, their_text, kit_text(&kit->oracle_rows),
                sqlite3_changes(kit->oracle), (long long)sqlite3_last_insert_rowid(kit->oracle));
    fail();
}

static inline void
kit_finding(void *arg, const char *text)
{
    (void)arg;
    print_error("%s\n", text);
    fail();
}

/* Rows and indexes of all tables agree with each other. */
static inline void
kit_check(SqlKit *kit)
{
    const Catalog *catalog = kit->view.db[0].catalog;
    u32 left = 10;
    for (u32 i = 0; i < catalog_table_count(catalog); i++) {
        const TableDef *table = catalog_table_at(catalog, i);
        if (table->is_view) continue;
        assert_int_equal(exec_table_check(table, kit->txn, &left, kit_finding, NULL, &kit->msg),
                         OK);
        for (u16 k = 0; k < table->index_count; k++) {
            Plan *plan = NULL;
            assert_int_equal(plan_index_build(&kit->plan, table, table->index[k], &plan, &kit->msg),
                             OK);
            assert_int_equal(exec_index_check(plan, table->index[k], &kit->env, kit->by_database,
                                              &left, kit_finding, NULL, &kit->msg),
                             OK);
            plan_release(plan);
        }
    }
}
