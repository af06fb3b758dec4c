/*
 * decorrelate.c -- a second way to run a correlated subquery: once, for all outer rows.
 *
 * A subquery that depends on the row outside by equalities alone, `inner = outer`, may run without
 * them; its rows, kept under the values of their inner sides, answer for every outer row.  That is
 * a semi-join, an anti-join or a grouped outer join, but it stays where the subquery stands, so
 * nothing else is moved.  Which way is better only the run knows: exec runs the subquery as written
 * until that has cost about as much as the other way would (PlanKeyed.runs_before).
 *
 * Only terms that cannot fail are evaluated for rows that nobody asked for; sum() and avg() may
 * overflow there, and then exec goes back to the subquery as written.
 */
#include "sql/plan/build.h"

#define DEPTH_MAX 3u /* Both ways are planned, also of the subqueries inside. */

#define NS_START 400.0 /* Running a subquery at all. */
#define NS_COST  5.0   /* A unit of Access.cost. */
#define NS_KEEP  100.0 /* Keeping a row under its key. */

typedef struct Keys {
    const Core *core;
    ExprList inner, outer, rest;
    PlanStamp *stamp;
    bool *null_safe;
} Keys;

static const Query *
query_inside(const PlanExpr *e)
{
    const PlanSub *sub = NULL;
    if (e->op == PX_IN_SUB || e->op == PX_EXISTS || e->op == PX_SCALAR) sub = e->u.sub;
    if (e->op == PX_SUB_COLUMN) sub = e->u.sub_column.sub;
    return sub == NULL ? NULL : ((const BoundSub *)(const void *)sub)->query;
}

/* Does it read nothing but sources of the core, and cannot fail?  Aggregates are judged apart. */
static bool
is_own(const Core *core, const PlanExpr *e)
{
    e = plan__see_through(e);
    if (e->op == PX_BOUND_COLUMN) return ((const Source *)e->u.bound.of)->core == core;
    if (e->op == PX_BOUND_AGG) return ((const BoundAgg *)e->u.bound.of)->core == core;
    if (e->klass != PLAN_TOTAL && (e->flags & PX_FLAG_HAS_AGG) == 0) return false;
    if (e->op == PX_FUNC && (e->u.func.def->flags & (FUNC_FALLIBLE | FUNC_VOLATILE)) != 0)
        return false;
    for (u32 i = 0; i < e->arg_count; i++) {
        if (!is_own(core, e->arg[i])) return false;
    }
    const Query *query = query_inside(e);
    if (query == NULL) return true;
    if (query->klass != PLAN_TOTAL) return false;
    for (u32 i = 0; i < query->outer_refs.count; i++) {
        if (!is_own(core, query->outer_refs.items[i])) return false;
    }
    return true;
}

static bool
are_own(const Core *core, const ExprList *list)
{
    for (u32 i = 0; i < list->count; i++) {
        if (!is_own(core, list->items[i])) return false;
    }
    return true;
}

static bool
from_is_own(const Core *core, const FromList *list)
{
    for (u32 i = 0; i < list->count; i++) {
        const FromItem *item = &list->item[i];
        if (!are_own(core, &item->on)) return false;
        if (item->nested != NULL && !from_is_own(core, item->nested)) return false;
        const Source *source = item->source;
        if (source == NULL) continue;
        if (source->indexed_by != NULL) return false;
        if (source->kind == SOURCE_TABLE && source->table->host == NULL) continue;
        if (source->kind != SOURCE_QUERY && source->kind != SOURCE_CTE) return false;
        if (source->query->klass != PLAN_TOTAL || source->query->outer_refs.count > 0) return false;
    }
    return true;
}

/* `inner = outer`: which side is the inner one; 2: it is no such term. */
static u32
inner_side(const Core *core, const PlanExpr *e)
{
    if ((e->op != PX_EQ && e->op != PX_IS) || e->klass != PLAN_TOTAL || plan__has_sub(e)) return 2;
    for (u32 side = 0; side < 2; side++) {
        const PlanExpr *inner = e->arg[side], *outer = e->arg[1 - side];
        if (plan__mask(core, inner) != 0 && is_own(core, inner) && plan__mask(core, outer) == 0)
            return side;
    }
    return 2;
}

static bool
take_keys(Binder *b, const Core *core, Keys *keys)
{
    u32 count = core->where.count;
    keys->core = core;
    keys->stamp = KEEP_ARRAY(b, PlanStamp, count + 1);
    keys->null_safe = KEEP_ARRAY(b, bool, count);
    if (keys->stamp == NULL || keys->null_safe == NULL) return false;
    for (u32 i = 0; i < count; i++) {
        PlanExpr *e = core->where.items[i];
        if (is_own(core, e)) {
            if (!bind__push(b, &keys->rest, e)) return false;
            continue;
        }
        u32 side = inner_side(core, e);
        if (side == 2) return false;
        u32 at = keys->inner.count;
        keys->stamp[at] = (PlanStamp){e->cmp_affinity, e->collation};
        keys->null_safe[at] = e->op == PX_IS;
        if (!bind__push(b, &keys->inner, e->arg[side])) return false;
        if (!bind__push(b, &keys->outer, e->arg[1 - side])) return false;
    }
    return keys->inner.count > 0;
}

/* The inner side as the comparison sees it: groups must be as large as what it sees as equal. */
static PlanExpr *
compared_as(Binder *b, PlanExpr *inner, const PlanStamp *stamp)
{
    u8 affinity = stamp->affinity;
    bool is_number = affinity >= AFFINITY_NUMERIC && inner->affinity >= AFFINITY_NUMERIC;
    bool is_text = affinity == AFFINITY_TEXT && inner->affinity == AFFINITY_TEXT;
    const Collation *collation = bind__collation_or_binary(stamp->collation);
    bool same = bind__collation_or_binary(bind__carried_collation(inner)) == collation;
    if (is_number || (same && (is_text || affinity <= AFFINITY_BLOB))) return inner;
    PlanExpr *e = bind__new(b, affinity > AFFINITY_BLOB ? PX_AFFINITY : PX_PLUS, 1,
                            (Span){inner->sql_offset, inner->sql_bytes});
    if (e == NULL) return NULL;
    e->arg[0] = inner;
    bind__finish(e);
    e->affinity = affinity;
    e->collation = collation;
    e->flags |= PX_FLAG_COLLATE;
    return e;
}

static bool
compare_keys(Binder *b, Keys *keys)
{
    for (u32 i = 0; i < keys->inner.count; i++) {
        keys->inner.items[i] = compared_as(b, keys->inner.items[i], &keys->stamp[i]);
        if (keys->inner.items[i] == NULL) return false;
    }
    return true;
}

static bool
aggregates_fit(const Core *core)
{
    static const char *const names[] = {"count", "sum", "total", "avg", "min", "max"};
    for (u32 i = 0; i < core->agg_count; i++) {
        const BoundAgg *agg = core->agg[i];
        bool known = false;
        for (u32 k = 0; k < COUNT_OF(names); k++)
            known |= strcmp(agg->def->name, names[k]) == 0;
        if (!known || agg->order_count > 0 || !are_own(core, &agg->args)) return false;
        if (agg->filter != NULL && !is_own(core, agg->filter)) return false;
    }
    return true;
}

static bool
may_key(const Binder *b, const Query *query, SubUse use)
{
    if (!b->may_decorrelate || b->explain || b->ctx->no_decorrelation || b->ctx->plain)
        return false;
    if (use == SUB_EACH || b->keyed_depth >= DEPTH_MAX) return false;
    if (query->outer_refs.count == 0 || query->arm_count != 1 || query->is_recursive) return false;
    if (query->limit != NULL || query->offset != NULL) return false;
    const Core *core = query->arm[0];
    if (core->is_values || core->has_group_by || core->having != NULL || core->has_right_join)
        return false;
    if (core->from.count == 0 || core->win_count > 0) return false; /* Windows see rows together. */
    if (use == SUB_IN && query->column_count != 1) return false;
    if (core->win_count > 0) return false;
    if (core->is_aggregate) return use == SUB_ROW && aggregates_fit(core);
    /* The first row is wanted: only one table tells which that is. */
    return use != SUB_ROW || (query->order_count == 0 && core->from.count == 1 && !core->distinct);
}

/* ---- what it costs ---- */

static f64
scans_cost(const PlanNode *node)
{
    if (node == NULL) return 0;
    f64 cost = node->kind == PLAN_SCAN ? node->cost : 0;
    return cost + scans_cost(node->input) + scans_cost(node->right);
}

static f64
rows_below(const PlanNode *node)
{
    while (node->input != NULL)
        node = node->input;
    return node->rows;
}

u32
plan__keyed_runs(const PlanKeyed *keyed, const PlanNode *as_written)
{
    f64 once = NS_START + scans_cost(as_written) * NS_COST;
    f64 all = scans_cost(keyed->root) * NS_COST + rows_below(keyed->root) * NS_KEEP;
    f64 runs = all / once;
    return runs < 1 ? 1 : runs > 1e9 ? 1000000000 : (u32)runs;
}

/* ---- planning ---- */

static bool
push_all(Binder *b, ExprList *to, const ExprList *from)
{
    for (u32 i = 0; i < from->count; i++) {
        if (!bind__push(b, to, from->items[i])) return false;
    }
    return true;
}

/* The core without its keys, yielding them before its results. */
static PlanNode *
plan_keyed_core(Binder *b, Query *query, Core *core, const Keys *keys, SubUse use, Env *closed)
{
    ExprList where = core->where, results = core->results, group_by = core->group_by;
    bool is_distinct = core->distinct;
    ExprList wanted = {0};
    if (!push_all(b, &wanted, &keys->inner)) return NULL;
    if (use != SUB_EXISTS && !push_all(b, &wanted, &core->results)) return NULL;
    core->where = keys->rest;
    core->results = wanted;
    core->distinct = false;
    if (core->is_aggregate) {
        core->group_by = keys->inner;
        core->has_group_by = true;
    }
    PlanNode *root = plan__core(b, query, core, closed, false, false);
    core->where = where;
    core->results = results;
    core->distinct = is_distinct;
    core->group_by = group_by;
    core->has_group_by = false;
    return root;
}

PlanKeyed *
plan__sub_keyed(Binder *b, BoundSub *bound, Env *env, SubUse use, Keyed *state)
{
    Query *query = bound->query;
    state->outer = (ExprList){0};
    if (!may_key(b, query, use)) return NULL;
    Core *core = query->arm[0];
    if (!plan__flatten(b, core)) return NULL;
    Keys keys = {0};
    if (!take_keys(b, core, &keys) || !from_is_own(core, &core->from)) return NULL;
    if (use != SUB_EXISTS && !are_own(core, &core->results)) return NULL;
    if (core->is_aggregate && !compare_keys(b, &keys)) return NULL;
    Env *closed = BIND_NEW(b, Env);
    PlanKeyed *keyed = KEEP_NEW(b, PlanKeyed);
    if (closed == NULL || keyed == NULL) return NULL;
    closed->outer = env;
    b->keyed_depth++;
    keyed->root = plan_keyed_core(b, query, core, &keys, use, closed);
    b->keyed_depth--;
    if (keyed->root == NULL || closed->count > 0 || closed->passed) return NULL;
    keyed->key_count = keys.inner.count;
    keyed->stamp = keys.stamp;
    keyed->null_safe = keys.null_safe;
    keyed->is_aggregate = core->is_aggregate;
    if (use == SUB_IN) keys.stamp[keyed->key_count] = bound->sub.cmp[0];
    state->outer = keys.outer;
    return keyed;
}

static const PlanScan *
only_scan(const PlanNode *node)
{
    while (node->kind == PLAN_PROJECT || node->kind == PLAN_FILTER)
        node = node->input;
    return node->kind == PLAN_SCAN ? &node->u.scan : NULL;
}

bool
plan__keyed_fits(const PlanKeyed *keyed, const PlanNode *as_written, SubUse use)
{
    if (use != SUB_ROW || keyed->is_aggregate) return true;
    const PlanScan *all = only_scan(keyed->root), *one = only_scan(as_written);
    if (all == NULL || one == NULL) return false;
    return all->index == one->index && all->eq_count == 0 && one->eq_count == 0 &&
           all->backwards == one->backwards && one->low == NULL && one->high == NULL &&
           all->low == NULL && all->high == NULL;
}
