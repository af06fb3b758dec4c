/*
 * query.c -- whole queries: compounds, recursion, shared CTEs.
 */
#include "sql/plan/build.h"

#include "rt/task.h"

static const Collation **
column_collations(Binder *b, const Query *query, bool compares)
{
    const Collation **list = KEEP_ARRAY(b, const Collation *, query->column_count);
    if (list == NULL) return NULL;
    for (u32 i = 0; i < query->column_count; i++) {
        list[i] = bind__collation_or_binary(query->column[i].collation);
        if (compares) (void)bind__need_collation(b, list[i]);
    }
    return list;
}

static PlanNode *
compound_node(Binder *b, const Query *query, PlanSetOp op, PlanNode **arms, u32 count)
{
    PlanNode *node = plan__node(b, PLAN_COMPOUND, query->column_count);
    if (node == NULL) return NULL;
    node->u.compound.op = (u8)op;
    node->u.compound.arm_count = count;
    node->u.compound.arm = KEEP_ARRAY(b, PlanNode *, count);
    node->u.compound.collation = column_collations(b, query, op != SET_UNION_ALL);
    if (node->u.compound.arm == NULL || node->u.compound.collation == NULL) return NULL;
    for (u32 i = 0; i < count; i++) {
        node->u.compound.arm[i] = arms[i];
        node->rows += arms[i]->rows;
        node->klass = MAX_OF(node->klass, arms[i]->klass);
    }
    return node;
}

static PlanSetOp
set_op(u8 op)
{
    switch (op) {
    case AST_SET_UNION: return SET_UNION;
    case AST_SET_EXCEPT: return SET_EXCEPT;
    case AST_SET_INTERSECT: return SET_INTERSECT;
    default: return SET_UNION_ALL;
    }
}

/* Arms from..to-1, joined left to right; runs of UNION ALL become one node. */
static PlanNode *
plan_arms(Binder *b, Query *query, u32 from, u32 to, Env *outer)
{
    PlanNode **run = BIND_ARRAY(b, PlanNode *, to - from);
    if (run == NULL) return NULL;
    u32 count = 0;
    for (u32 i = from; i < to; i++) {
        PlanNode *arm = plan__core(b, query, query->arm[i], outer, false, false);
        if (arm == NULL) return NULL;
        PlanSetOp op = set_op(query->op[i]);
        if (i == from || op == SET_UNION_ALL) {
            run[count++] = arm;
            continue;
        }
        PlanNode *left = count == 1 ? run[0] : compound_node(b, query, SET_UNION_ALL, run, count);
        if (left == NULL) return NULL;
        PlanNode *both[2] = {left, arm};
        run[0] = compound_node(b, query, op, both, 2);
        if (run[0] == NULL) return NULL;
        count = 1;
    }
    return count == 1 ? run[0] : compound_node(b, query, SET_UNION_ALL, run, count);
}

static bool
column_keys(Binder *b, const Query *query, u32 *count_out, PlanSortKey **keys_out)
{
    *count_out = query->order_count;
    *keys_out = KEEP_ARRAY(b, PlanSortKey, query->order_count);
    if (*keys_out == NULL) return false;
    for (u32 i = 0; i < query->order_count; i++) {
        const OrderTerm *term = &query->order[i];
        PlanExpr like = {.affinity = query->column[term->result].affinity};
        (*keys_out)[i] = (PlanSortKey){.expr = plan__column(b, (u32)term->result, &like),
                                       .collation = term->collation,
                                       .desc = term->desc,
                                       .nulls_last = term->nulls_last};
        if ((*keys_out)[i].expr == NULL) return false;
    }
    return true;
}

static u32
material_new(Binder *b, PlanNode *root)
{
    Plan *plan = b->plan;
    if (plan->material_count == b->material_capacity) {
        u32 capacity = b->material_capacity == 0 ? 4 : b->material_capacity * 2;
        PlanNode **list = KEEP_ARRAY(b, PlanNode *, capacity);
        if (list == NULL) return U32_MAX;
        if (plan->material_count > 0)
            memcpy(list, plan->material, plan->material_count * sizeof(*list));
        plan->material = list;
        b->material_capacity = capacity;
    }
    plan->material[plan->material_count] = root;
    return plan->material_count++;
}

static PlanNode *
recursive_node(Binder *b, Query *query, Env *outer)
{
    PlanNode *node = plan__node(b, PLAN_RECURSIVE, query->column_count);
    u32 number = material_new(b, NULL);
    if (node == NULL || number == U32_MAX) return NULL;
    query->cte->recursion_no = number;
    node->u.recursive.material_no = number;
    node->u.recursive.initial = plan_arms(b, query, 0, query->initial_count, outer);
    if (node->u.recursive.initial == NULL) return NULL;
    query->cte->recursion_no = number;
    node->u.recursive.step = plan_arms(b, query, query->initial_count, query->arm_count, outer);
    if (node->u.recursive.step == NULL) return NULL;
    for (u32 i = query->initial_count; i < query->arm_count; i++)
        node->u.recursive.distinct |= query->op[i] == AST_SET_UNION;
    node->u.recursive.collation = column_collations(b, query, node->u.recursive.distinct);
    if (node->u.recursive.collation == NULL) return NULL;
    if (!column_keys(b, query, &node->u.recursive.key_count, &node->u.recursive.key)) return NULL;
    if (query->limit != NULL) node->u.recursive.limit = plan__lower(b, query->limit, NULL);
    if (query->offset != NULL) node->u.recursive.offset = plan__lower(b, query->offset, NULL);
    node->klass = MAX_OF(node->u.recursive.initial->klass, node->u.recursive.step->klass);
    node->rows = 100;
    return b->err == OK ? node : NULL;
}

PlanNode *
plan__query(Binder *b, Query *query, Env *outer)
{
    if (b->err != OK) return NULL;
    if (rt_stack_left() < RT_STACK_RESERVE)
        return bind__fail(b, ERR_SQL, "SELECTs nested too deep (maximum %u)", SELECT_DEPTH_MAX);
    if (query->is_recursive) return recursive_node(b, query, outer);
    if (query->arm_count == 1) return plan__core(b, query, query->arm[0], outer, true, false);
    PlanNode *node = plan_arms(b, query, 0, query->arm_count, outer);
    if (node == NULL) return NULL;
    if (query->order_count > 0) {
        PlanNode *sort = plan__node(b, PLAN_SORT, node->columns);
        if (sort == NULL) return NULL;
        sort->input = node;
        sort->klass = node->klass;
        sort->rows = node->rows;
        if (!column_keys(b, query, &sort->u.sort.key_count, &sort->u.sort.key)) return NULL;
        if (query->limit != NULL) {
            sort->u.sort.limit = plan__lower(b, query->limit, NULL);
            if (query->offset != NULL) sort->u.sort.offset = plan__lower(b, query->offset, NULL);
        }
        node = sort;
    }
    return plan__limit(b, node, query);
}

static PlanNode *
cte_scan(Binder *b, u32 number, u32 columns, f64 rows)
{
    PlanNode *node = plan__node(b, PLAN_CTE_SCAN, columns);
    if (node == NULL) return NULL;
    node->u.cte_scan.material_no = number;
    node->rows = rows;
    return node;
}

/* A CTE that is read more than once runs once; one that depends on outer rows runs at each use. */
static PlanNode *
cte_node(Binder *b, Source *source, Env *outer)
{
    Cte *cte = source->cte;
    Query *query = cte->query;
    bool correlated = query->outer_level != U32_MAX;
    bool share = cte->uses > 1 || cte->ast->materialize == AST_MATERIALIZE_YES;
    if (correlated || !share) return plan__query(b, query, outer);
    if (cte->material_no == U32_MAX) {
        PlanNode *input = plan__query(b, query, NULL);
        PlanNode *material = input == NULL ? NULL : plan__node(b, PLAN_MATERIAL, input->columns);
        if (material == NULL) return NULL;
        material->input = input;
        material->rows = input->rows;
        material->klass = input->klass;
        u32 number = material_new(b, material);
        if (number == U32_MAX) return NULL;
        material->u.material.material_no = number;
        cte->material_no = number;
    }
    PlanNode *node = cte_scan(b, cte->material_no, query->column_count,
                              b->plan->material[cte->material_no]->rows);
    if (node != NULL) node->klass = b->plan->material[cte->material_no]->klass;
    return node;
}

PlanNode *
plan__cte_source(Binder *b, Source *source, Env *outer)
{
    switch (source->kind) {
    case SOURCE_CTE: return cte_node(b, source, outer);
    case SOURCE_RECURSION: return cte_scan(b, source->cte->recursion_no, source->column_count, 1);
    default: return plan__query(b, source->query, outer);
    }
}
