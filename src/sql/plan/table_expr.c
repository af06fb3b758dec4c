/*
 * table_expr.c -- expressions of the schema for callers outside: binding over a row, and the plan
 * that fills an index.
 */
#include "sql/plan/build.h"

static const char *
use_words(PlanExprUse use)
{
    static const char *const words[] = {
        [PLAN_USE_CHECK] = "CHECK constraints",
        [PLAN_USE_DEFAULT] = "DEFAULT",
        [PLAN_USE_GENERATED] = "generated columns",
        [PLAN_USE_INDEX] = "index expressions",
        [PLAN_USE_PARTIAL] = "partial index WHERE clauses",
    };
    return words[use];
}

/* A binder without a statement: what it makes lives in `arena`. */
static void
binder_init(Binder *b, const PlanContext *ctx, Plan *plan, Arena *arena, Arena *scratch,
            ErrMsg *msg)
{
    *b = (Binder){.ctx = ctx, .plan = plan, .scratch = scratch, .arena = arena, .msg = msg};
    b->reg_next = &plan->reg_count;
}

Err
plan_bind_table_expr(const PlanContext *ctx, Arena *arena, const TableDef *table, Slice text,
                     PlanExprUse use, PlanExpr **expr_out, ErrMsg *msg)
{
    *expr_out = NULL;
    Arena scratch;
    arena_init(&scratch, ctx->account);
    Plan numbers = {0}; /* Counts call sites; nothing else of it is used. */
    Binder b;
    binder_init(&b, ctx, &numbers, arena, &scratch, msg);
    Source *source = use == PLAN_USE_DEFAULT ? NULL : bind__table_source(&b, table, table->name);
    if (b.err == OK) {
        PlanExpr *e = bind__schema_expr(&b, source, text, use_words(use), true);
        Layout row = {.whole = {{source, 0}}, .whole_count = source == NULL ? 0 : 1};
        row.columns = table == NULL ? 0 : table->column_count + 1u;
        Env env = {.layout = &row};
        if (e != NULL) *expr_out = plan__lower(&b, e, &env);
    }
    arena_free(&scratch);
    if (b.err != OK) *expr_out = NULL;
    return b.err;
}

static bool
build_plan(Binder *b, const TableDef *table, const IndexDef *index)
{
    Source *source = bind__table_source(b, table, table->name);
    Query *query = bind__query_new(b, 1);
    Core *core = query == NULL ? NULL : bind__core_new(b, query);
    if (source == NULL || core == NULL || !bind__use_table(b, table, false)) return false;
    FromItem item = {.source = source, .mask = 1};
    core->from = (FromList){.item = &item, .count = 1, .capacity = 1};
    source->not_indexed = true;
    if (!bind__core_add_source(b, core, source)) return false;
    for (u32 i = 0; i < index->key_columns; i++) {
        const IndexColumn *column = &index->column[i];
        PlanExpr *e = column->column == COLUMN_EXPR
                          ? bind__schema_expr(b, source, bind__text(column->expr_sql),
                                              "index expressions", false)
                          : bind__column(b, source, column->column, (Span){0, 0});
        if (!bind__push(b, &core->results, e)) return false;
    }
    if (!table->without_rowid) {
        PlanExpr *e = bind__column(b, source, COLUMN_ROWID, (Span){0, 0});
        if (!bind__push(b, &core->results, e)) return false;
    }
    for (u32 i = 0; table->without_rowid && i < table->primary_key->key_columns; i++) {
        PlanExpr *e = bind__column(b, source, table->primary_key->column[i].column, (Span){0, 0});
        if (!bind__push(b, &core->results, e)) return false;
    }
    if (index->where_sql != NULL) {
        PlanExpr *e = bind__schema_expr(b, source, bind__text(index->where_sql),
                                        "partial index WHERE clauses", false);
        if (!bind__push(b, &core->where, e)) return false;
    }
    core->column = BIND_ARRAY(b, QueryColumn, core->results.count);
    if (core->column == NULL) return false;
    for (u32 i = 0; i < core->results.count; i++)
        core->column[i].name = "";
    b->plan->root = plan__core(b, query, core, NULL, false, false);
    return b->plan->root != NULL && plan__columns(b, core->column, core->results.count);
}

Err
plan_index_build(const PlanContext *ctx, const TableDef *table, const IndexDef *index,
                 Plan **plan_out, ErrMsg *msg)
{
    *plan_out = NULL;
    Plan *plan = NULL;
    Err err = plan__new(ctx, SLICE_LITERAL(""), &plan, msg);
    if (err != OK) return err;
    Arena scratch;
    arena_init(&scratch, ctx->account);
    Binder b;
    binder_init(&b, ctx, plan, &plan->arena, &scratch, msg);
    bool good = (ctx->entries_only || plan__index_collations(&b, index)) &&
                build_plan(&b, table, index) && plan__finish(&b, plan);
    arena_free(&scratch);
    ASSERT(good || b.err != OK);
    if (b.err != OK) {
        plan_release(plan);
        return b.err;
    }
    *plan_out = plan;
    return OK;
}
