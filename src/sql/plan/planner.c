/*
 * planner.c -- the face: one statement in, one plan out.
 */
#include "sql/plan/planner.h"

#include "sql/plan/build.h"

void
plan_release(Plan *plan)
{
    if (plan == NULL) return;
    if (--plan->references != 0) return;
    Arena arena = plan->arena;
    arena_free(&arena);
}

/* The plan lives in its own arena. */
Err
plan__new(const PlanContext *ctx, Slice sql, Plan **plan_out, ErrMsg *msg)
{
    Arena arena;
    arena_init_pooled(&arena, ctx->account, ctx->pool);
    Plan *plan = ARENA_NEW(&arena, Plan);
    char *text = plan == NULL ? NULL : arena_strndup(&arena, sql.p, sql.bytes);
    if (text == NULL) {
        arena_free(&arena);
        return err_set(msg, ERR_NOMEM, "out of memory");
    }
    plan->arena = arena;
    plan->references = 1;
    plan->sql = text;
    plan->catalog = ctx->catalog;
    plan->read_only = true;
    *plan_out = plan;
    return OK;
}

static bool
plan_params(Binder *b, const AstStatement *ast)
{
    Plan *plan = b->plan;
    plan->param_count = ast->param_count;
    plan->param_name = KEEP_ARRAY(b, const char *, ast->param_count);
    if (plan->param_name == NULL) return false;
    for (u32 i = 0; ast->param_names != NULL && i < ast->param_count; i++) {
        if (ast->param_names[i].p == NULL) continue;
        plan->param_name[i] = bind__keep_text(b, ast->param_names[i]);
        if (plan->param_name[i] == NULL) return false;
    }
    return true;
}

bool
plan__columns(Binder *b, const QueryColumn *column, u32 count)
{
    Plan *plan = b->plan;
    plan->column_count = count;
    plan->column = KEEP_ARRAY(b, PlanColumn, count);
    if (plan->column == NULL) return false;
    for (u32 i = 0; i < count; i++) {
        plan->column[i] = (PlanColumn){.name = column[i].shown != NULL ? column[i].shown
                                                                       : column[i].name,
                                       .decl_type = column[i].decl_type,
                                       .origin_database = column[i].origin_database,
                                       .origin_table = column[i].origin_table,
                                       .origin_column = column[i].origin_column};
    }
    return true;
}

static bool
plan_select(Binder *b, AstSelect *ast)
{
    Query *query = bind__select(b, ast);
    if (query == NULL) return false;
    b->plan->klass = query->klass;
    b->may_decorrelate = b->outer == NULL;
    b->plan->root = plan__query(b, query, NULL);
    return b->plan->root != NULL && plan__columns(b, query->column, query->column_count);
}

bool
plan__any(Binder *b, const AstStatement *ast)
{
    switch (ast->kind) {
    case AST_STMT_SELECT: return plan_select(b, ast->u.select);
    case AST_STMT_INSERT: return plan__insert(b, ast->u.insert);
    case AST_STMT_UPDATE: return plan__update(b, ast->u.update);
    case AST_STMT_DELETE: return plan__delete(b, ast->u.delete_);
    default:
        return bind__fail(b, ERR_UNSUPPORTED, "%s is not planned", ast_statement_name(ast->kind)) !=
               NULL;
    }
}

/* PRAGMA count_changes: what returns no rows by itself returns their number. */
static bool
count_changes(Binder *b, const AstStatement *ast)
{
    static const char *const names[] = {[WRITE_INSERT] = "rows inserted",
                                        [WRITE_UPDATE] = "rows updated",
                                        [WRITE_DELETE] = "rows deleted"};
    Plan *plan = b->plan;
    if (!b->ctx->count_changes || plan->write == NULL || plan->column_count > 0) return true;
    if (ast->explain != AST_EXPLAIN_NONE) return true;
    plan->column = KEEP_ARRAY(b, PlanColumn, 1);
    if (plan->column == NULL) return false;
    plan->column[0].name = names[plan->write->kind];
    plan->column_count = 1;
    plan->counts_changes = true;
    return true;
}

static Err
plan_run(const PlanContext *ctx, const AstStatement *ast, Plan *plan, ErrMsg *msg)
{
    Arena own;
    arena_init_pooled(&own, ctx->account, ctx->pool);
    Binder b = {.ctx = ctx,
                .plan = plan,
                .scratch = ctx->scratch != NULL ? ctx->scratch : &own,
                .arena = &plan->arena,
                .msg = msg,
                .sql = ast->text,
                .sql_is_main = true,
                .explain = ast->explain != AST_EXPLAIN_NONE};
    PlanMemo *memo = NULL;
    u32 regs = 0;
    b.memo = &memo;
    b.reg_next = &regs;
    bool good = plan_params(&b, ast) && plan__any(&b, ast) && plan__finish(&b, plan) &&
                count_changes(&b, ast);
    for (; memo != NULL; memo = memo->next) {
        if (memo->variant == PLAN_MEMO_INNER) ((Plan *)memo->made)->reg_count = regs;
    }
    if (good && ast->explain == AST_EXPLAIN_QUERY_PLAN) good = plan__explain(&b);
    arena_free(&own);
    ASSERT(good || b.err != OK);
    return b.err;
}

Err
plan_prepare(const PlanContext *ctx, const AstStatement *ast, Slice sql, Plan **plan_out,
             ErrMsg *msg)
{
    *plan_out = NULL;
    Plan *plan = NULL;
    Err err = plan__new(ctx, sql, &plan, msg);
    if (err != OK) return err;
    err = plan_run(ctx, ast, plan, msg);
    if (err != OK) {
        plan_release(plan);
        return err;
    }
    *plan_out = plan;
    return OK;
}
