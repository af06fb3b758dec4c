/*
 * push.c -- WHERE terms go down into subqueries of FROM, and LEFT joins that WHERE makes inner.
 *
 * Only total terms without subqueries move.  Their stamps go with them: a comparison means below
 * what it meant above.
 */
#include "sql/plan/build.h"

/* ---- into subqueries ---- */

static PlanExpr *
substitute(Binder *b, PlanExpr *e, const Source *source, const Core *core)
{
    e = (PlanExpr *)plan__see_through(e);
    if (e->op == PX_BOUND_COLUMN)
        return e->u.bound.of == source ? core->results.items[e->u.bound.column] : e;
    if (e->arg_count == 0) return e;
    PlanExpr *copy = BIND_NEW(b, PlanExpr);
    PlanExpr **arg = copy == NULL ? NULL : BIND_ARRAY(b, PlanExpr *, e->arg_count);
    if (arg == NULL) return NULL;
    *copy = *e;
    copy->arg = arg;
    for (u32 i = 0; i < e->arg_count; i++) {
        arg[i] = substitute(b, e->arg[i], source, core);
        if (arg[i] == NULL) return NULL;
    }
    return copy;
}

/* Are the columns of the source that the term reads among these keys, under BINARY if asked? */
static bool
reads_only(const PlanExpr *e, const Source *source, const Core *core, const ExprList *keys,
           bool binary)
{
    e = plan__see_through(e);
    if (e->op == PX_BOUND_COLUMN) {
        if (e->u.bound.of != source) return true;
        const PlanExpr *result = core->results.items[e->u.bound.column];
        for (u32 i = 0; i < keys->count; i++) {
            const Collation *collation = bind__carried_collation(keys->items[i]);
            if (binary && bind__collation_or_binary(collation)->kind != COLLATION_BINARY) continue;
            if (bind__equal(keys->items[i], result)) return true;
        }
        return false;
    }
    for (u32 i = 0; i < e->arg_count; i++) {
        if (!reads_only(e->arg[i], source, core, keys, binary)) return false;
    }
    return true;
}

static bool
results_are_total(const Core *core)
{
    for (u32 i = 0; i < core->results.count; i++) {
        const PlanExpr *e = core->results.items[i];
        if (e->klass != PLAN_TOTAL || (e->flags & PX_FLAG_HAS_SUB) != 0) return false;
    }
    return true;
}

/* Whole partitions may be left out: the term reads nothing but keys of PARTITION BY, in which all
   windows agree. */
static bool
windows_take(const Query *query, const Core *core, const Source *source, const PlanExpr *term)
{
    if (query->arm_count > 1 || core->is_aggregate || core->klass == PLAN_VOLATILE) return false;
    const ExprList *keys = &core->pass[0]->partition;
    for (u32 i = 0; i < core->pass_count; i++) {
        const ExprList *other = &core->pass[i]->partition;
        if (other->count != keys->count || keys->count == 0) return false;
        for (u32 k = 0; k < keys->count; k++) {
            if (!bind__equal(keys->items[k], other->items[k])) return false;
        }
    }
    return reads_only(term, source, core, keys, true);
}

static bool
arm_takes(const Query *query, const Core *core, const Source *source, const PlanExpr *term)
{
    if (core->win_count > 0) return windows_take(query, core, source, term);
    if (core->is_values || core->klass != PLAN_TOTAL || !results_are_total(core)) return false;
    if (!core->is_aggregate) return true;
    for (u32 i = 0; i < core->agg_count; i++) {
        /* Where min() or max() choose the row, a key shows that row's value. */
        if ((core->agg[i]->def->flags & FUNC_MINMAX) != 0) return false;
    }
    return core->has_group_by && reads_only(term, source, core, &core->group_by, false);
}

/* UNION, INTERSECT and EXCEPT under other collations than BINARY keep one of several texts that are
   equal to them but not to the term: it is judged on the one that is kept. */
static bool
keeps_one_of_equals(const Query *query)
{
    bool only_all = true;
    for (u32 i = 1; i < query->arm_count; i++) {
        only_all = only_all && query->op[i] == AST_SET_UNION_ALL;
    }
    for (u32 i = 0; i < query->arm_count && !only_all; i++) {
        const ExprList *results = &query->arm[i]->results;
        for (u32 column = 0; column < results->count; column++) {
            const Collation *collation = bind__carried_collation(results->items[column]);
            if (collation != NULL && collation->kind != COLLATION_BINARY) return true;
        }
    }
    return false;
}

static bool
source_takes(const Source *source, const PlanExpr *term)
{
    if (source == NULL || source->flat) return false;
    if (source->kind == SOURCE_CTE) {
        if (source->cte->uses != 1 || source->cte->ast->materialize == AST_MATERIALIZE_YES)
            return false;
    } else if (source->kind != SOURCE_QUERY) {
        return false;
    }
    const Query *query = source->query;
    if (query->is_recursive || query->limit != NULL || query->offset != NULL) return false;
    if (keeps_one_of_equals(query)) return false;
    for (u32 i = 0; i < query->arm_count; i++) {
        if (!arm_takes(query, query->arm[i], source, term)) return false;
    }
    return true;
}

bool
plan__push_down(Binder *b, Join *join)
{
    if (b->ctx->plain || join->fixed_order) return true;
    for (u32 t = 0; t < join->term_count; t++) {
        Term *term = &join->term[t];
        if (term->on || term->mask == 0 || term->expr->klass != PLAN_TOTAL ||
            plan__has_sub(term->expr))
            continue;
        for (u32 u = 0; u < join->unit_count; u++) {
            Unit *unit = &join->unit[u];
            if (unit->mask != term->mask || (unit->join & AST_JOIN_LEFT) != 0) continue;
            if (!source_takes(unit->source, term->expr)) continue;
            Query *query = unit->source->query;
            for (u32 i = 0; i < query->arm_count; i++) {
                PlanExpr *e = substitute(b, term->expr, unit->source, query->arm[i]);
                if (e == NULL || !bind__push(b, &query->arm[i]->where, e)) return false;
            }
            term->placed = true;
        }
    }
    return true;
}

/* ---- LEFT joins ---- */

/* Is the expression NULL whenever all columns of these sources are? */
static bool
is_strict(const Core *core, const PlanExpr *e, u64 mask)
{
    e = plan__see_through(e);
    switch (e->op) {
    case PX_BOUND_COLUMN: {
        const Source *source = e->u.bound.of;
        return source->core == core && ((u64)1 << source->index & mask) != 0 &&
               (source->generated == NULL || e->u.bound.column == COLUMN_ROWID ||
                source->generated[e->u.bound.column] == NULL);
    }
    case PX_NEG:
    case PX_BIT_NOT:
    case PX_NOT:
    case PX_PLUS:
    case PX_CAST: return is_strict(core, e->arg[0], mask);
    case PX_ADD:
    case PX_SUB:
    case PX_MUL:
    case PX_DIV:
    case PX_REM:
    case PX_BIT_AND:
    case PX_BIT_OR:
    case PX_SHL:
    case PX_SHR:
    case PX_CONCAT:
    case PX_EQ:
    case PX_NE:
    case PX_LT:
    case PX_LE:
    case PX_GT:
    case PX_GE: return is_strict(core, e->arg[0], mask) || is_strict(core, e->arg[1], mask);
    case PX_BETWEEN:
        return is_strict(core, e->arg[1], mask) && is_strict(core, e->arg[2], mask)
                   ? true
                   : is_strict(core, e->arg[0], mask);
    case PX_IN_LIST: return e->arg_count > 1 && is_strict(core, e->arg[0], mask);
    default: return false;
    }
}

/* Is it never true for a row of NULLs? */
static bool
rejects_nulls(const Core *core, const PlanExpr *e, u64 mask)
{
    switch (e->op) {
    case PX_NOT_NULL:
    case PX_IS_TRUE:
    case PX_IS_FALSE: return is_strict(core, e->arg[0], mask);
    case PX_AND:
        for (u32 i = 0; i < e->arg_count; i++) {
            if (rejects_nulls(core, e->arg[i], mask)) return true;
        }
        return false;
    case PX_OR:
        for (u32 i = 0; i < e->arg_count; i++) {
            if (!rejects_nulls(core, e->arg[i], mask)) return false;
        }
        return true;
    case PX_FUNC:
        /* NULL LIKE a blob is 0 (func_like.c): not strict, but not true either. */
        return (e->u.func.def->flags & FUNC_LIKE) != 0 && e->arg_count >= 2 &&
               (is_strict(core, e->arg[0], mask) || is_strict(core, e->arg[1], mask));
    default: return is_strict(core, e, mask);
    }
}

/* A LEFT join whose rows of NULLs WHERE would drop is an inner join. */
bool
plan__left_is_inner(const Core *core, const FromItem *item, const ExprList *where)
{
    if ((item->join & AST_JOIN_LEFT) == 0 || (item->join & AST_JOIN_RIGHT) != 0) return false;
    if (core->has_right_join || item->source == NULL || where == NULL) return false;
    for (u32 i = 0; i < where->count; i++) {
        if (rejects_nulls(core, where->items[i], item->mask)) return true;
    }
    return false;
}
