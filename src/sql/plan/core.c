/*
 * core.c -- one SELECT without its compound: grouping, HAVING, results, DISTINCT, ORDER BY, LIMIT.
 *
 * All expressions above the join are lowered before the nodes are made, because lowering finds out
 * which bare columns a group must carry.
 */
#include "sql/plan/build.h"

typedef struct Top {
    Binder *b;
    Query *query;
    Core *core;
    Env *env; /* The row that results are computed from. */
    PlanNode *node;
    Windows *windows; /* NULL: none. */
    bool with_order;  /* ORDER BY and LIMIT belong to this core. */
    bool sorted;      /* The rows come in ORDER BY's order. */
    /* What is wanted of the rows below the windows, or of all: */
    const Query *wanted; /* NULL: no order. */
    bool wanted_met;
    PlanExpr **result;
    u32 key_count;
    PlanSortKey *key; /* Over `env`'s row. */
} Top;

/* ---- aggregates ---- */

static bool
lower_agg(Binder *b, const BoundAgg *bound, Env *env, PlanAgg *agg)
{
    agg->def = bound->def;
    agg->site = b->plan->site_count++;
    agg->arg_count = bound->args.count;
    agg->arg = plan__lower_list(b, &bound->args, env);
    agg->collation = bound->collation;
    agg->distinct = bound->distinct;
    if (bound->filter != NULL) agg->filter = plan__lower(b, bound->filter, env);
    agg->order_count = bound->order_count;
    agg->order = KEEP_ARRAY(b, PlanSortKey, bound->order_count);
    if (agg->order == NULL || agg->arg == NULL || b->err != OK) return false;
    for (u32 i = 0; i < bound->order_count; i++) {
        agg->order[i] = bound->order[i];
        agg->order[i].expr = plan__lower(b, bound->order[i].expr, env);
        if (agg->order[i].expr == NULL) return false;
    }
    return true;
}

/* ORDER BY that names the first group keys in turn is met by the order of the groups. */
static bool
group_gives_order(const Top *top)
{
    const Query *query = top->wanted;
    const Core *core = top->core;
    if (query->order_count > core->group_by.count) return false;
    for (u32 i = 0; i < query->order_count; i++) {
        const OrderTerm *term = &query->order[i];
        const PlanExpr *key = core->group_by.items[i];
        if (!bind__equal(term->expr, key) || term->nulls_last != term->desc) return false;
        if (term->collation != bind__collation_or_binary(bind__carried_collation(key)))
            return false;
    }
    return true;
}

static bool
group_keys(Top *top, PlanNode *group, Env *row, bool input_sorted)
{
    Binder *b = top->b;
    const Core *core = top->core;
    u32 keys = core->group_by.count;
    group->u.group.key_count = keys;
    group->u.group.key = plan__lower_list(b, &core->group_by, row);
    group->u.group.key_collation = KEEP_ARRAY(b, const Collation *, keys);
    if (group->u.group.key == NULL || group->u.group.key_collation == NULL) return false;
    for (u32 i = 0; i < keys; i++) {
        group->u.group.key_collation[i] = bind__need_collation(
            b, bind__collation_or_binary(bind__carried_collation(core->group_by.items[i])));
    }
    group->u.group.ordered = input_sorted;
    const Query *wanted = top->wanted;
    if (wanted == NULL || wanted->order_count == 0 || !group_gives_order(top)) return true;
    bool any_desc = false;
    for (u32 i = 0; i < wanted->order_count; i++)
        any_desc |= wanted->order[i].desc;
    top->wanted_met = true;
    if (!any_desc) return true;
    group->u.group.ordered = false;
    group->u.group.key_desc = KEEP_ARRAY(b, bool, keys);
    if (group->u.group.key_desc == NULL) return false;
    for (u32 i = 0; i < wanted->order_count; i++)
        group->u.group.key_desc[i] = wanted->order[i].desc;
    return true;
}

/* The group node; its bare columns follow in group_finish(). */
static PlanNode *
group_node(Top *top, bool input_sorted, Layout **layout_out)
{
    Binder *b = top->b;
    Core *core = top->core;
    PlanNode *group = plan__node(b, PLAN_GROUP, 0);
    Layout *layout = BIND_NEW(b, Layout);
    if (group == NULL || layout == NULL) return NULL;
    group->input = top->node;
    group->klass = top->node->klass;
    if (!group_keys(top, group, top->env, input_sorted)) return NULL;
    group->u.group.agg_count = core->agg_count;
    group->u.group.agg = KEEP_ARRAY(b, PlanAgg, core->agg_count);
    if (group->u.group.agg == NULL) return NULL;
    group->u.group.bare_agg = -1;
    for (u32 i = 0; i < core->agg_count; i++) {
        if (!lower_agg(b, core->agg[i], top->env, &group->u.group.agg[i])) return NULL;
        if ((core->agg[i]->def->flags & FUNC_MINMAX) != 0) group->u.group.bare_agg = (i32)i;
        for (u32 k = 0; k < group->u.group.agg[i].arg_count; k++)
            plan__class(group, group->u.group.agg[i].arg[k]);
        if ((core->agg[i]->def->flags & FUNC_VOLATILE) != 0) group->klass = PLAN_VOLATILE;
    }
    group->rows = core->has_group_by ? MAX_OF(1.0, top->node->rows / 10) : 1;
    layout->core = core;
    layout->grouped = true;
    layout->keys = &core->group_by;
    layout->keys_from_row = group->u.group.bare_agg >= 0;
    layout->columns = core->group_by.count + core->agg_count;
    *layout_out = layout;
    return group;
}

static bool
group_finish(Top *top, PlanNode *group, const Layout *layout, Env *row)
{
    Binder *b = top->b;
    group->u.group.bare_count = layout->bare.count;
    group->u.group.bare = plan__lower_list(b, &layout->bare, row);
    if (group->u.group.bare == NULL) return false;
    if (layout->bare.count == 0) group->u.group.bare_agg = -1;
    group->columns = layout->columns;
    return true;
}

/* ---- count(*), min and max without reading all rows ---- */

static const BoundAgg *
lone_aggregate(const Core *core)
{
    if (core->has_group_by || core->having != NULL || core->agg_count != 1 || core->win_count > 0)
        return NULL;
    if (core->from.count != 1 || core->source_count != 1 || core->source[0]->flat) return NULL;
    if (core->source[0]->kind != SOURCE_TABLE || core->source[0]->table->host != NULL) return NULL;
    const BoundAgg *agg = core->agg[0];
    return agg->filter != NULL || agg->distinct || agg->order_count > 0 ? NULL : agg;
}

static PlanNode *
count_node(Top *top)
{
    Binder *b = top->b;
    Core *core = top->core;
    const BoundAgg *agg = lone_aggregate(core);
    if (agg == NULL || b->ctx->plain || core->where.count > 0) return NULL;
    if ((agg->def->flags & FUNC_COUNT) == 0 || agg->args.count > 0) return NULL;
    const TableDef *table = core->source[0]->table;
    for (u32 i = 0; i <= core->source[0]->column_count; i++) {
        if (core->source[0]->used[i] != 0) return NULL;
    }
    PlanNode *node = plan__node(b, PLAN_COUNT, 1);
    if (node == NULL) return NULL;
    node->u.count.table = table;
    node->u.count.tree = table->tree;
    const IndexDef *index = core->source[0]->not_indexed ? NULL : plan__smallest_index(table);
    if (index != NULL) {
        node->u.count.index = index;
        node->u.count.tree = index->tree;
    }
    if (b->explain) {
        node->eqp = arena_printf(b->arena, "SCAN %s%s%s", core->source[0]->name,
                                 index == NULL ? "" : " USING COVERING INDEX ",
                                 index == NULL ? "" : index->name);
        if (node->eqp == NULL) return bind__fail(b, ERR_NOMEM, "out of memory");
    }
    node->rows = 1;
    return node;
}

/* Does a result read a column outside of the aggregates? */
static bool
reads_bare(const PlanExpr *e)
{
    e = plan__see_through(e);
    if (e->op == PX_BOUND_COLUMN || (e->flags & PX_FLAG_HAS_SUB) != 0) return true;
    for (u32 i = 0; i < e->arg_count && e->op != PX_BOUND_AGG; i++) {
        if (reads_bare(e->arg[i])) return true;
    }
    return false;
}

static bool
has_bare_result(const Core *core)
{
    for (u32 i = 0; i < core->results.count; i++) {
        if (reads_bare(core->results.items[i])) return true;
    }
    return false;
}

/* One min() or max() of a column: its first row in the column's order is enough, where an index
   gives that order.  Not for min() beside bare columns: if there are only NULLs, those come from
   one of the rows that the search for a first value would pass over. */
static const Query *
minmax_order(Top *top)
{
    const BoundAgg *agg = lone_aggregate(top->core);
    if (agg == NULL || top->b->ctx->plain) return NULL;
    if ((agg->def->flags & FUNC_MINMAX) == 0 || agg->args.count != 1) return NULL;
    const PlanExpr *arg = agg->args.items[0];
    if (plan__see_through(arg)->op != PX_BOUND_COLUMN || top->core->klass != PLAN_TOTAL)
        return NULL;
    Query *query = BIND_NEW(top->b, Query);
    OrderTerm *term = query == NULL ? NULL : BIND_NEW(top->b, OrderTerm);
    if (term == NULL) return NULL;
    bool max = (agg->def->flags & FUNC_MAX) != 0;
    if (!max && has_bare_result(top->core)) return NULL;
    *term = (OrderTerm){
        .expr = agg->args.items[0], .collation = agg->collation, .desc = max, .nulls_last = max};
    query->order = term;
    query->order_count = 1;
    return query;
}

static PlanNode *
first_of_order(Top *top, PlanNode *node)
{
    Binder *b = top->b;
    PlanExpr *not_null = bind__new(b, PX_NOT_NULL, 1, (Span){0, 0});
    PlanExpr *one = bind__const(b, cell_int(1), (Span){0, 0});
    if (not_null == NULL || one == NULL) return NULL;
    if (node->eqp != NULL && strncmp(node->eqp, "SCAN ", 5) == 0) {
        node->eqp = arena_printf(b->arena, "SEARCH %s", node->eqp + 5);
        if (node->eqp == NULL) return bind__fail(b, ERR_NOMEM, "out of memory");
    }
    not_null->arg[0] = top->core->agg[0]->args.items[0];
    bind__finish(not_null);
    /* Beside bare columns (of max, whose NULLs come last) a row of NULL is better than none. */
    if (!has_bare_result(top->core)) {
        node = plan__filter(b, node, plan__lower(b, not_null, top->env));
    }
    PlanNode *limit = node == NULL ? NULL : plan__node(b, PLAN_LIMIT, node->columns);
    if (limit == NULL) return NULL;
    limit->input = node;
    limit->rows = 1;
    limit->u.limit.limit = plan__lower(b, one, NULL);
    return limit->u.limit.limit == NULL ? NULL : limit;
}

/* ---- results and order ---- */

static bool
lower_top(Top *top)
{
    Binder *b = top->b;
    top->result = plan__lower_list(b, &top->core->results, top->env);
    if (top->result == NULL) return false;
    if (!top->with_order || top->sorted) return true;
    u32 count = top->query->order_count;
    top->key_count = count;
    top->key = KEEP_ARRAY(b, PlanSortKey, count);
    if (top->key == NULL) return false;
    for (u32 i = 0; i < count; i++) {
        const OrderTerm *term = &top->query->order[i];
        top->key[i] = (PlanSortKey){
            .collation = term->collation, .desc = term->desc, .nulls_last = term->nulls_last};
        if (term->result >= 0) continue;
        top->key[i].expr = plan__lower(b, term->expr, top->env);
        if (top->key[i].expr == NULL) return false;
    }
    return true;
}

static PlanNode *
project(Top *top, PlanExpr **exprs, u32 count)
{
    PlanNode *node = plan__node(top->b, PLAN_PROJECT, count);
    if (node == NULL) return NULL;
    node->input = top->node;
    node->u.project.expr = exprs;
    node->rows = top->node->rows;
    node->klass = top->node->klass;
    for (u32 i = 0; i < count; i++)
        plan__class(node, exprs[i]);
    return node;
}

static PlanNode *
distinct(Top *top, bool input_sorted)
{
    Binder *b = top->b;
    u32 count = top->core->results.count;
    PlanNode *node = plan__node(b, PLAN_DISTINCT, top->node->columns);
    if (node == NULL) return NULL;
    node->input = top->node;
    node->klass = top->node->klass;
    node->rows = MAX_OF(1.0, top->node->rows / 2);
    node->u.distinct.key_columns = count;
    node->u.distinct.ordered = input_sorted;
    node->u.distinct.collation = KEEP_ARRAY(b, const Collation *, count);
    if (node->u.distinct.collation == NULL) return NULL;
    for (u32 i = 0; i < count; i++) {
        node->u.distinct.collation[i] = bind__need_collation(
            b, bind__collation_or_binary(bind__carried_collation(top->core->results.items[i])));
    }
    return node;
}

static PlanNode *
sort_node(Top *top)
{
    Binder *b = top->b;
    PlanNode *node = plan__node(b, PLAN_SORT, top->node->columns);
    if (node == NULL) return NULL;
    node->input = top->node;
    node->klass = top->node->klass;
    node->rows = top->node->rows;
    node->u.sort.key_count = top->key_count;
    node->u.sort.key = top->key;
    if (top->query->limit != NULL) {
        node->u.sort.limit = plan__lower(b, top->query->limit, NULL);
        if (top->query->offset != NULL && !top->query->offset_done)
            node->u.sort.offset = plan__lower(b, top->query->offset, NULL);
    }
    return b->err == OK ? node : NULL;
}

PlanNode *
plan__limit(Binder *b, PlanNode *input, const Query *query)
{
    if (input == NULL || (query->limit == NULL && query->offset == NULL)) return input;
    PlanNode *node = plan__node(b, PLAN_LIMIT, input->columns);
    if (node == NULL) return NULL;
    node->input = input;
    node->klass = input->klass;
    node->rows = input->rows;
    if (query->limit != NULL) node->u.limit.limit = plan__lower(b, query->limit, NULL);
    if (query->offset != NULL && !query->offset_done)
        node->u.limit.offset = plan__lower(b, query->offset, NULL);
    return b->err == OK ? node : NULL;
}

static bool
results_total(const Core *core)
{
    for (u32 i = 0; i < core->results.count; i++) {
        if (core->results.items[i]->klass != PLAN_TOTAL) return false;
    }
    return true;
}

/* Sort the rows as they come and compute results for those that stay. */
static PlanNode *
sort_then_project(Top *top)
{
    for (u32 i = 0; i < top->key_count; i++) {
        if (top->key[i].expr == NULL) top->key[i].expr = top->result[top->query->order[i].result];
    }
    top->node = sort_node(top);
    if (top->node == NULL) return NULL;
    top->node = plan__limit(top->b, top->node, top->query);
    return top->node == NULL ? NULL : project(top, top->result, top->core->results.count);
}

static PlanNode *
project_then_sort(Top *top, bool distinct_sorted)
{
    Binder *b = top->b;
    u32 results = top->core->results.count, count = results;
    for (u32 i = 0; i < top->key_count; i++)
        count += top->key[i].expr != NULL ? 1 : 0;
    PlanExpr **exprs = KEEP_ARRAY(b, PlanExpr *, count);
    if (exprs == NULL) return NULL;
    if (results > 0) memcpy(exprs, top->result, results * sizeof(*exprs));
    u32 at = results;
    for (u32 i = 0; i < top->key_count; i++) {
        i32 result = top->query->order[i].result;
        u32 cell = result >= 0 ? (u32)result : at;
        const PlanExpr *like = result >= 0 ? top->result[result] : top->key[i].expr;
        if (result < 0) exprs[at++] = top->key[i].expr;
        top->key[i].expr = plan__column(b, cell, like);
        if (top->key[i].expr == NULL) return NULL;
    }
    top->node = project(top, exprs, count);
    if (top->node != NULL && top->core->distinct) top->node = distinct(top, distinct_sorted);
    if (top->node != NULL && top->key_count > 0) top->node = sort_node(top);
    if (top->node != NULL && top->with_order) top->node = plan__limit(b, top->node, top->query);
    if (top->node == NULL || count == results) return top->node;
    exprs = KEEP_ARRAY(b, PlanExpr *, results);
    if (exprs == NULL) return NULL;
    for (u32 i = 0; i < results; i++) {
        exprs[i] = plan__column(b, i, top->result[i]);
        if (exprs[i] == NULL) return NULL;
    }
    return project(top, exprs, results);
}

/* ---- the whole ---- */

static PlanNode *
values_node(Binder *b, Core *core, Env *outer)
{
    u32 columns = core->results.count;
    PlanNode *node = plan__node(b, PLAN_VALUES, columns);
    if (node == NULL) return NULL;
    node->rows = core->value_rows;
    node->u.values.row_count = core->value_rows;
    node->u.values.row = KEEP_ARRAY(b, PlanExpr **, core->value_rows);
    if (node->u.values.row == NULL) return NULL;
    for (u32 r = 0; r < core->value_rows; r++) {
        ExprList row = {.items = core->values[r], .count = columns};
        node->u.values.row[r] = plan__lower_list(b, &row, outer);
        if (node->u.values.row[r] == NULL) return NULL;
        for (u32 i = 0; i < columns; i++)
            plan__class(node, node->u.values.row[r][i]);
    }
    return node;
}

static PlanNode *
values_core(Binder *b, Query *query, Core *core, Env *outer, bool with_order)
{
    Top top = {.b = b, .query = query, .core = core, .with_order = with_order};
    top.node = values_node(b, core, outer);
    if (top.node == NULL || !with_order) return top.node;
    top.key_count = query->order_count;
    top.key = KEEP_ARRAY(b, PlanSortKey, query->order_count);
    if (top.key == NULL) return NULL;
    for (u32 i = 0; i < query->order_count; i++) {
        const OrderTerm *term = &query->order[i];
        top.key[i] = (PlanSortKey){
            .collation = term->collation, .desc = term->desc, .nulls_last = term->nulls_last};
        top.key[i].expr = term->result >= 0 ? plan__column(b, (u32)term->result,
                                                           core->results.items[term->result])
                                            : plan__lower(b, term->expr, outer);
        if (top.key[i].expr == NULL) return NULL;
    }
    if (top.key_count > 0) top.node = sort_node(&top);
    return plan__limit(b, top.node, query);
}

static void
want_order(Top *top, Join *join, const Query **minmax_out)
{
    Query *query = top->query;
    Core *core = top->core;
    *minmax_out = NULL;
    if (top->b->ctx->plain) return;
    if (core->is_aggregate) {
        if (core->has_group_by) {
            join->order_group = &core->group_by;
        } else {
            *minmax_out = minmax_order(top);
            join->order_of = *minmax_out;
            join->limit_rows = *minmax_out != NULL ? 1 : 0;
        }
        return;
    }
    if (top->windows != NULL) {
        join->order_of = top->wanted;
    } else if (top->with_order && query->order_count > 0) {
        join->order_of = query;
        if (query->limit != NULL && query->limit->op == PX_CONST &&
            query->limit->u.constant.type == CELL_INT && query->limit->u.constant.u.i > 0)
            join->limit_rows = (f64)query->limit->u.constant.u.i;
    } else if (core->distinct && core->results.count > 0) {
        join->order_group = &core->results;
    }
}

/* How many rows will be asked for, where nothing stands between them and the LIMIT; 0: all. */
static f64
rows_asked(const Top *top, bool exists)
{
    const PlanExpr *limit = top->query->limit;
    if (exists) return 1;
    if (!top->with_order || limit == NULL || top->core->is_aggregate) return 0;
    if (top->query->order_count > 0) return 0;
    if (limit->op != PX_CONST || limit->u.constant.type != CELL_INT) return 100;
    return limit->u.constant.u.i < 0 ? 0 : MAX_OF((f64)limit->u.constant.u.i, 1.0);
}

static PlanNode *
aggregate_core(Top *top, bool input_sorted)
{
    Binder *b = top->b;
    Env *row = top->env;
    Layout *layout = NULL;
    PlanNode *group = group_node(top, input_sorted, &layout);
    Env *env = BIND_NEW(b, Env);
    if (group == NULL || env == NULL) return NULL;
    *env = (Env){.outer = row->outer, .layout = layout};
    top->env = env;
    PlanExpr *having = top->core->having == NULL ? NULL : plan__lower(b, top->core->having, env);
    if (b->err != OK || (top->windows != NULL && !plan__windows_lower(top->windows, env)))
        return NULL;
    if (top->windows == NULL) top->sorted = top->wanted_met;
    if (!lower_top(top) || !group_finish(top, group, layout, row)) return NULL;
    top->node = plan__filter(b, group, having);
    return top->node;
}

PlanNode *
plan__core(Binder *b, Query *query, Core *core, Env *outer, bool with_order, bool exists)
{
    if (core->is_values) return values_core(b, query, core, outer, with_order);
    if (!plan__flatten(b, core)) return NULL;
    Top top = {.b = b, .query = query, .core = core, .with_order = with_order};
    Join join = {0};
    const Query *minmax;
    top.wanted = with_order ? query : NULL;
    if (core->win_count > 0) {
        top.windows = plan__windows_new(b, core);
        if (top.windows == NULL) return NULL;
        top.wanted = plan__windows_order(top.windows);
        top.sorted = with_order && query->order_count > 0 &&
                     plan__windows_give_order(top.windows, query);
    }
    want_order(&top, &join, &minmax);
    PlanNode *count = core->is_aggregate ? count_node(&top) : NULL;
    if (b->err != OK) return NULL;
    Layout *layout = NULL;
    Env *env = BIND_NEW(b, Env);
    if (env == NULL) return NULL;
    if (count != NULL) {
        layout = BIND_NEW(b, Layout);
        if (layout == NULL) return NULL;
        layout->core = core;
        layout->grouped = true;
        layout->keys = &core->group_by;
        layout->columns = 1;
        top.node = count;
        *env = (Env){.outer = outer, .layout = layout};
        top.env = env;
        if (!lower_top(&top)) return NULL;
        return project_then_sort(&top, false);
    }
    join.first_rows = rows_asked(&top, exists);
    top.node = plan__join(b, core, &join, outer, &layout);
    if (top.node == NULL) return NULL;
    *env = (Env){.outer = outer, .layout = layout};
    top.env = env;
    if (core->is_aggregate) {
        if (minmax != NULL && join.sorted) top.node = first_of_order(&top, top.node);
        if (top.node == NULL) return NULL;
        bool sorted = core->has_group_by && join.sorted;
        if (aggregate_core(&top, sorted) == NULL) return NULL;
    } else {
        if (exists && !core->distinct) return top.node;
        if (top.windows != NULL) {
            top.wanted_met = join.sorted && top.wanted != NULL;
            if (!plan__windows_lower(top.windows, env)) return NULL;
        } else {
            top.sorted = with_order && query->order_count > 0 && join.sorted;
        }
        if (!lower_top(&top)) return NULL;
    }
    if (top.windows != NULL) {
        top.node = plan__windows_nodes(top.windows, top.node, top.wanted_met);
        if (top.node == NULL) return NULL;
    }
    bool late = top.key_count > 0 && query->limit != NULL && !core->distinct &&
                results_total(core) && !core->is_aggregate;
    if (late) return sort_then_project(&top);
    bool distinct_sorted = core->distinct && !core->is_aggregate && join.sorted &&
                           join.order_group != NULL;
    return project_then_sort(&top, distinct_sorted);
}
