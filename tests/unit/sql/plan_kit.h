/*
 * plan_kit.h -- a schema in an in-memory store, and statements planned against it (not run).
 */
#pragma once

#include "rt/process.h"
#include "sql/catalog/catalog.h"
#include "sql/parse/parse.h"
#include "sql/plan/planner.h"
#include "unit/cmocka_all.h"

typedef struct PlanKit {
    Store *store;
    Catalog *catalog;
    FuncTable functions;
    PlanContext ctx;
    CatalogView view;
} PlanKit;

static Err
kit_scalar(FuncCall *call, u32 argc, const Cell *argv, Cell *out)
{
    (void)call, (void)argc, (void)argv, (void)out;
    return OK;
}

static Err
kit_inverse(FuncCall *call, u32 argc, const Cell *argv)
{
    (void)call;
    (void)argc;
    (void)argv;
    return OK;
}

static const FuncDef kit_functions[] = {
    {.name = "abs", .argc_min = 1, .argc_max = 1, .flags = FUNC_FALLIBLE, .scalar = kit_scalar},
    {.name = "length", .argc_min = 1, .argc_max = 1, .scalar = kit_scalar},
    {.name = "random", .flags = FUNC_VOLATILE, .scalar = kit_scalar},
    {.name = "coalesce", .argc_min = 2, .argc_max = -1, .flags = FUNC_INLINE, .scalar = kit_scalar},
    {.name = "like", .argc_min = 2, .argc_max = 3, .flags = FUNC_LIKE, .scalar = kit_scalar},
    {.name = "glob", .argc_min = 2, .argc_max = 2, .flags = FUNC_LIKE, .scalar = kit_scalar},
    {.name = "count",
     .argc_max = 1,
     .kind = FUNC_AGGREGATE,
     .flags = FUNC_COUNT,
     .inverse = kit_inverse},
    {.name = "sum",
     .argc_min = 1,
     .argc_max = 1,
     .kind = FUNC_AGGREGATE,
     .flags = FUNC_FALLIBLE,
     .inverse = kit_inverse},
    {.name = "row_number", .kind = FUNC_WINDOW, .kernel = FUNC_WINDOW_ROW_NUMBER},
    {.name = "rank", .kind = FUNC_WINDOW, .kernel = FUNC_WINDOW_RANK},
    {.name = "min", .argc_min = 1, .argc_max = 1, .kind = FUNC_AGGREGATE, .flags = FUNC_MINMAX},
    {.name = "max",
     .argc_min = 1,
     .argc_max = 1,
     .kind = FUNC_AGGREGATE,
     .flags = FUNC_MINMAX | FUNC_MAX},
};

/* Run one CREATE statement. */
static inline void
kit_ddl(PlanKit *kit, const char *sql)
{
    Arena arena;
    ErrMsg msg = {0};
    AstStatement *ast = NULL;
    size_t consumed = 0;
    StoreTxn *txn = NULL;
    arena_init(&arena, NULL);
    Slice text = SLICE(sql, strlen(sql));
    assert_int_equal(sql_parse(&arena, text, NULL, &ast, &consumed, &msg), OK);
    assert_int_equal(store_txn_begin(kit->store, &(StoreTxnOptions){.level = STORE_SNAPSHOT}, &txn),
                     OK);
    CatalogEnv env = {.schema = "main", .store = kit->store};
    DdlContext ddl = {.txn = txn, .env = &env, .old = kit->catalog, .sql = text, .msg = &msg};
    Catalog *next = NULL;
    const IndexDef *index = NULL;
    Err err = ERR_INTERNAL;
    switch (ast->kind) {
    case AST_STMT_CREATE_TABLE: err = ddl_create_table(&ddl, ast->u.create_table, &next); break;
    case AST_STMT_CREATE_INDEX:
        err = ddl_create_index(&ddl, ast->u.create_index, &next, &index);
        break;
    case AST_STMT_CREATE_VIEW: err = ddl_create_view(&ddl, ast->u.create_view, &next); break;
    case AST_STMT_CREATE_TRIGGER:
        err = ddl_create_trigger(
            &ddl, ast->u.create_trigger,
            catalog_find_table(kit->catalog, ast->u.create_trigger->table.text), &next);
        break;
    default: break;
    }
    if (err != OK) fail_msg("%s: %s", sql, err_message(&msg));
    assert_int_equal(store_txn_commit(txn, &msg), OK);
    catalog_release(kit->catalog);
    kit->catalog = next;
    kit->view.db[0].catalog = next;
    arena_free(&arena);
}

static inline void
kit_open(PlanKit *kit, const char *const *ddl, u32 count)
{
    static const FuncDef *list[COUNT_OF(kit_functions)];
    ErrMsg msg = {0};
    StoreTxn *txn = NULL;
    *kit = (PlanKit){0};
    for (u32 i = 0; i < COUNT_OF(kit_functions); i++)
        list[i] = &kit_functions[i];
    assert_int_equal(func_table_init(&kit->functions, NULL, list, COUNT_OF(list)), OK);
    StoreOptions options = {.in_memory = true, .create = true};
    assert_int_equal(store_open(rt_process_default(), NULL, &options, &kit->store, &msg), OK);
    assert_int_equal(store_txn_begin(kit->store, &(StoreTxnOptions){.level = STORE_SNAPSHOT}, &txn),
                     OK);
    CatalogEnv env = {.schema = "main", .store = kit->store};
    TreeId tree = TREE_NONE;
    assert_int_equal(store_tree_create(txn, STORE_TREE_INT, &tree), OK);
    assert_int_equal(catalog_set_number(txn, "schema_tree", tree), OK);
    assert_int_equal(store_txn_commit(txn, &msg), OK);
    assert_int_equal(store_txn_begin(kit->store, &(StoreTxnOptions){.level = STORE_SNAPSHOT}, &txn),
                     OK);
    assert_int_equal(catalog_load(txn, &env, &kit->catalog, &msg), OK);
    store_txn_rollback(txn);
    kit->view = (CatalogView){.count = 2};
    kit->view.db[0].name = "main";
    kit->view.db[0].catalog = kit->catalog;
    kit->view.db[1].name = "temp";
    kit->ctx = (PlanContext){.catalog = &kit->view, .functions = &kit->functions};
    for (u32 i = 0; i < count; i++)
        kit_ddl(kit, ddl[i]);
}

static inline void
kit_close(PlanKit *kit)
{
    catalog_release(kit->catalog);
    func_table_free(&kit->functions);
    store_close(kit->store);
}

/* Plan `sql`; the caller releases the plan.  On error *plan_out is NULL and `msg` says why. */
static inline Err
kit_plan(PlanKit *kit, const char *sql, Plan **plan_out, ErrMsg *msg)
{
    Arena arena;
    AstStatement *ast = NULL;
    size_t consumed = 0;
    arena_init(&arena, NULL);
    Slice text = SLICE(sql, strlen(sql));
    *plan_out = NULL;
    Err err = sql_parse(&arena, text, NULL, &ast, &consumed, msg);
    if (err == OK) err = plan_prepare(&kit->ctx, ast, text, plan_out, msg);
    arena_free(&arena);
    return err;
}

/* EXPLAIN QUERY PLAN of `sql`, one line a row joined by " | ", in `out`. */
static inline void
kit_explain(PlanKit *kit, const char *sql, char *out, size_t room)
{
    char text[2048];
    ErrMsg msg = {0};
    Plan *plan = NULL;
    snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", sql);
    if (kit_plan(kit, text, &plan, &msg) != OK) fail_msg("%s: %s", sql, err_message(&msg));
    out[0] = 0;
    for (u32 i = 0; i < plan->root->u.values.row_count; i++) {
        const Cell *cell = &plan->root->u.values.row[i][3]->u.constant;
        size_t used = strlen(out);
        snprintf(out + used, room - used, "%s%.*s", i == 0 ? "" : " | ", (int)cell->bytes,
                 (const char *)cell->u.p);
    }
    plan_release(plan);
}
