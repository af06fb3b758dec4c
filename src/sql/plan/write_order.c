/*
 * write_order.c -- ORDER BY and LIMIT of UPDATE and DELETE: which of the targets are changed.
 *
 * The terms choose rows, they say nothing of the order of the changes: what is chosen is collected
 * and changed in the order of its keys, but for views.  With FROM the limit counts targets, not
 * joined rows: the first row of each target stands for it.
 */
#include "sql/plan/build.h"

bool
plan__order_bind(Binder *b, Query *query, const Target *target, const ExprList *keys,
                 const AstSelect *ast)
{
    if (ast == NULL) return true;
    bool view = target->table->is_view;
    if (ast->order_by.count > 0 && ast->limit == NULL && !view) {
        bind__fail(b, ERR_SQL, "ORDER BY without LIMIT on %s",
                   target->write->kind == WRITE_UPDATE ? "UPDATE" : "DELETE");
        return false;
    }
    /* Numbers in ORDER BY mean the keys: SQLite selects those. */
    Core *core = query->arm[0];
    core->results = *keys;
    bool good = ast->order_by.count == 0 || bind__order(b, query, ast);
    core->results = (ExprList){0};
    return good && bind__limit(b, query, ast->limit, ast->offset);
}

void
plan__order_wanted(const Binder *b, const Query *query, Join *join)
{
    if (b->ctx->plain || query->arm[0]->source_count != 1) return;
    const PlanExpr *limit = query->limit;
    bool told = limit != NULL && limit->op == PX_CONST && limit->u.constant.type == CELL_INT &&
                limit->u.constant.u.i > 0;
    f64 rows = told ? (f64)limit->u.constant.u.i : 0;
    if (query->order_count > 0) {
        join->order_of = query;
        join->limit_rows = rows;
    } else if (limit != NULL) {
        join->first_rows = told ? rows : 100;
    }
}

static PlanSortKey *
sort_keys(Binder *b, const Query *query)
{
    PlanSortKey *key = KEEP_ARRAY(b, PlanSortKey, query->order_count);
    for (u32 i = 0; key != NULL && i < query->order_count; i++) {
        const OrderTerm *term = &query->order[i];
        key[i] = (PlanSortKey){
            .collation = term->collation, .desc = term->desc, .nulls_last = term->nulls_last};
    }
    return key;
}

/* Sort by keys that have their expressions, and cut. */
static PlanNode *
sort_and_cut(Binder *b, const Query *query, PlanNode *input, PlanSortKey *key)
{
    if (key == NULL) return plan__limit(b, input, query);
    PlanNode *node = plan__node(b, PLAN_SORT, input->columns);
    if (node == NULL) return NULL;
    node->input = input;
    node->klass = input->klass;
    node->rows = input->rows;
    node->u.sort.key = key;
    node->u.sort.key_count = query->order_count;
    if (query->limit != NULL) node->u.sort.limit = plan__lower(b, query->limit, NULL);
    if (query->offset != NULL) node->u.sort.offset = plan__lower(b, query->offset, NULL);
    return b->err == OK ? plan__limit(b, node, query) : NULL;
}

PlanNode *
plan__order_rows(Binder *b, const Query *query, PlanNode *input, const Join *join, Env *env)
{
    if (query->order_count == 0 || join->sorted) return plan__limit(b, input, query);
    PlanSortKey *key = sort_keys(b, query);
    for (u32 i = 0; key != NULL && i < query->order_count; i++) {
        key[i].expr = plan__lower(b, query->order[i].expr, env);
        if (key[i].expr == NULL) return NULL;
    }
    return key == NULL ? NULL : sort_and_cut(b, query, input, key);
}

/* The first row of each key. */
static PlanNode *
first_of_keys(Binder *b, const ExprList *keys, PlanNode *input)
{
    PlanNode *node = plan__node(b, PLAN_DISTINCT, input->columns);
    const Collation **collation = KEEP_ARRAY(b, const Collation *, keys->count);
    if (node == NULL || collation == NULL) return NULL;
    node->input = input;
    node->klass = input->klass;
    node->rows = input->rows;
    node->u.distinct.key_columns = keys->count;
    node->u.distinct.collation = collation;
    for (u32 i = 0; i < keys->count; i++)
        collation[i] = bind__collation_or_binary(bind__carried_collation(keys->items[i]));
    return node;
}

PlanNode *
plan__order_targets(Binder *b, const Query *query, const ExprList *keys, PlanNode *input, Env *env)
{
    PlanExpr **exprs = input->u.project.expr;
    u32 count = input->columns, total = count + query->order_count;
    PlanExpr **all = KEEP_ARRAY(b, PlanExpr *, total);
    PlanExpr **kept = KEEP_ARRAY(b, PlanExpr *, count);
    PlanSortKey *key = sort_keys(b, query);
    if (all == NULL || kept == NULL || key == NULL) return NULL;
    memcpy(all, exprs, count * sizeof(*all));
    for (u32 i = 0; i < query->order_count; i++) {
        all[count + i] = plan__lower(b, query->order[i].expr, env);
        if (all[count + i] == NULL) return NULL;
        plan__class(input, all[count + i]);
        key[i].expr = plan__column(b, count + i, all[count + i]);
        if (key[i].expr == NULL) return NULL;
    }
    input->u.project.expr = all;
    input->columns = total;
    PlanNode *node = first_of_keys(b, keys, input);
    if (node != NULL) node = sort_and_cut(b, query, node, query->order_count > 0 ? key : NULL);
    PlanNode *project = node == NULL ? NULL : plan__node(b, PLAN_PROJECT, count);
    if (project == NULL) return NULL;
    project->input = node;
    project->klass = node->klass;
    project->rows = node->rows;
    project->u.project.expr = kept;
    for (u32 i = 0; i < count; i++) {
        kept[i] = plan__column(b, i, all[i]);
        if (kept[i] == NULL) return NULL;
    }
    return project;
}
