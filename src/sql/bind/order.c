/*
 * order.c -- ORDER BY and GROUP BY: ordinals, aliases, expressions of the result list.
 */
#include "sql/bind/bind.h"

static const char *
ordinal_suffix(u32 n)
{
    if (n % 100 >= 11 && n % 100 <= 13) return "th";
    static const char *const suffixes[] = {"th", "st", "nd", "rd"};
    return n % 10 < 4 ? suffixes[n % 10] : "th";
}

/* The number of a term that is a plain integer; false: it is none. */
static bool
term_ordinal(const AstExpr *ast, i64 *ordinal_out)
{
    bool negative = false;
    if (ast->kind == AST_EXPR_UNARY && (ast->op == AST_UNARY_NEGATE || ast->op == AST_UNARY_PLUS)) {
        negative = ast->op == AST_UNARY_NEGATE;
        ast = ast->u.unary.operand;
    }
    if (ast->kind != AST_EXPR_INTEGER || ast->u.literal.bytes > 9) return false;
    i64 value = 0;
    for (size_t i = 0; i < ast->u.literal.bytes; i++)
        value = value * 10 + (ast->u.literal.p[i] - '0');
    *ordinal_out = negative ? -value : value;
    return true;
}

static bool
ordinal_check(Binder *b, const char *clause, u32 term, i64 ordinal, u32 columns)
{
    if (ordinal >= 1 && ordinal <= (i64)columns) return true;
    bind__fail(b, ERR_SQL, "%u%s %s term out of range - should be between 1 and %u", term,
               ordinal_suffix(term), clause, columns);
    return false;
}

/* Result column whose alias the term is; -1: none.  Stars shift results, so names are compared with
   the bound columns, but only written aliases count. */
static i32
alias_column(const Core *core, const AstResults *results, const AstExpr *ast)
{
    if (ast->kind != AST_EXPR_COLUMN || ast->u.column.qualifier != NULL) return -1;
    Slice name = ast->u.column.name.text;
    bool written = false;
    for (u32 i = 0; i < results->count && !written; i++) {
        written = ast_name_present(&results->items[i].alias) &&
                  slice_equal_nocase(results->items[i].alias.text, name);
    }
    for (u32 i = 0; written && i < core->results.count; i++) {
        if (slice_equal_nocase(bind__text(core->column[i].name), name)) return (i32)i;
    }
    return -1;
}

static i32
equal_column(const Core *core, const PlanExpr *e)
{
    for (u32 i = 0; i < core->results.count; i++) {
        if (bind__equal(core->results.items[i], e)) return (i32)i;
    }
    return -1;
}

static void
order_direction(const AstOrderTerm *ast, OrderTerm *term)
{
    term->desc = ast->sort == AST_SORT_DESC;
    term->nulls_last = ast->nulls == AST_NULLS_DEFAULT ? term->desc : ast->nulls == AST_NULLS_LAST;
}

/* A result with window functions is computed for ORDER BY by itself, and shown so; under DISTINCT
   only the sort for it remains. */
static bool
order_by_window(Binder *b, Core *core, OrderTerm *term)
{
    PlanExpr **result = &core->results.items[term->result];
    u32 wins = core->win_count;
    PlanExpr *copy = bind__window_copy(b, core, *result);
    if (copy == NULL) return false;
    if (core->distinct) {
        core->win_count = wins;
    } else {
        term->expr = NULL; /* The result's. */
        *result = copy;
    }
    return true;
}

static bool
order_simple(Binder *b, Query *query, const AstSelect *ast)
{
    Core *core = query->arm[0];
    const AstResults *results = &ast->arms[0].results;
    Scope *outer = b->scope;
    b->scope = core->scope;
    b->scope->flags = (u32)(SCOPE_ALIAS | SCOPE_WIN | SCOPE_ORDER |
                            (core->is_aggregate ? SCOPE_AGG : 0));
    bool good = true;
    for (u32 i = 0; i < ast->order_by.count && good; i++) {
        const AstOrderTerm *from = &ast->order_by.items[i];
        OrderTerm *term = &query->order[i];
        order_direction(from, term);
        i64 ordinal;
        term->result = -1;
        if (term_ordinal(from->expr, &ordinal)) {
            good = ordinal_check(b, "ORDER BY", i + 1, ordinal, core->results.count);
            term->result = (i32)ordinal - 1;
        } else {
            term->result = alias_column(core, results, from->expr);
            if (term->result < 0) {
                term->expr = bind__expr(b, from->expr);
                good = term->expr != NULL;
                if (good) {
                    term->collation = bind__collation_or_binary(
                        bind__carried_collation(term->expr));
                    term->result = equal_column(core, term->expr);
                }
            }
        }
        if (good && term->result >= 0) good = order_by_window(b, core, term);
        if (good && term->expr == NULL) {
            term->expr = core->results.items[term->result];
            term->collation = bind__collation_or_binary(bind__carried_collation(term->expr));
        }
        (void)bind__need_collation(b, term->collation);
    }
    b->scope = outer;
    return good;
}

static i32
compound_column(Binder *b, Core *core, const AstArm *arm, const AstExpr *ast)
{
    i32 at = alias_column(core, &arm->results, ast);
    if (at >= 0 || core->is_values) return at;
    Scope *outer = b->scope;
    b->scope = core->scope;
    b->scope->flags = (u32)(SCOPE_WIN | (core->is_aggregate ? SCOPE_AGG : 0));
    /* A name that this arm does not know is no error: another arm may. */
    ErrMsg *msg = b->msg;
    ErrMsg quiet = {0};
    u32 wins = core->win_count, passes = core->pass_count;
    b->msg = &quiet;
    PlanExpr *e = bind__expr(b, ast);
    b->msg = msg;
    err_clear(&quiet);
    if (b->err == ERR_SQL) b->err = OK;
    b->scope = outer;
    /* The term is one of the results or nothing: window calls that are only in it do not count. */
    core->win_count = wins;
    core->pass_count = passes;
    return e == NULL ? -1 : equal_column(core, e);
}

static bool
order_compound(Binder *b, Query *query, const AstSelect *ast)
{
    for (u32 i = 0; i < ast->order_by.count; i++) {
        const AstOrderTerm *from = &ast->order_by.items[i];
        OrderTerm *term = &query->order[i];
        order_direction(from, term);
        const AstExpr *expr = from->expr;
        const Collation *explicit = NULL;
        if (expr->kind == AST_EXPR_COLLATE) {
            explicit = bind__find_collation(b, expr->u.collate.name);
            if (explicit == NULL) return false;
            expr = expr->u.collate.operand;
        }
        i64 ordinal;
        term->result = -1;
        if (term_ordinal(expr, &ordinal)) {
            if (!ordinal_check(b, "ORDER BY", i + 1, ordinal, query->column_count)) return false;
            term->result = (i32)ordinal - 1;
        }
        for (u32 a = 0; a < query->arm_count && term->result < 0; a++)
            term->result = compound_column(b, query->arm[a], &ast->arms[a], expr);
        if (b->err != OK) return false;
        if (term->result < 0) {
            bind__fail(b, ERR_SQL, "%u%s ORDER BY term does not match any column in the result set",
                       i + 1, ordinal_suffix(i + 1));
            return false;
        }
        term->collation = explicit != NULL
                              ? explicit
                              : bind__collation_or_binary(query->column[term->result].collation);
        (void)bind__need_collation(b, term->collation);
    }
    return true;
}

bool
bind__order(Binder *b, Query *query, const AstSelect *ast)
{
    u32 columns_max = b->ctx->columns_max != 0 ? b->ctx->columns_max : 2000;
    if (ast->order_by.count > columns_max) {
        bind__fail(b, ERR_SQL, "too many terms in ORDER BY clause");
        return false;
    }
    query->order = BIND_ARRAY(b, OrderTerm, ast->order_by.count);
    if (query->order == NULL) return false;
    query->order_count = ast->order_by.count;
    if (query->arm_count > 1) return order_compound(b, query, ast);
    return order_simple(b, query, ast);
}

bool
bind__group_by(Binder *b, Core *core, const AstExprs *group, const AstResults *results)
{
    (void)results;
    u32 columns_max = b->ctx->columns_max != 0 ? b->ctx->columns_max : 2000;
    if (group->count > columns_max) {
        bind__fail(b, ERR_SQL, "too many terms in GROUP BY clause");
        return false;
    }
    for (u32 i = 0; i < group->count; i++) {
        i64 ordinal;
        PlanExpr *e;
        if (term_ordinal(group->items[i], &ordinal)) {
            if (!ordinal_check(b, "GROUP BY", i + 1, ordinal, core->results.count)) return false;
            e = core->results.items[ordinal - 1];
        } else {
            e = bind__expr(b, group->items[i]);
        }
        if (e == NULL) return false;
        if ((e->flags & PX_FLAG_HAS_WIN) != 0) {
            bind__window_misuse(b, e);
            return false;
        }
        if ((e->flags & PX_FLAG_HAS_AGG) != 0) {
            bind__fail(b, ERR_SQL, "aggregate functions are not allowed in the GROUP BY clause");
            return false;
        }
        if (!bind__push(b, &core->group_by, e)) return false;
    }
    return true;
}
