/*
 * access_or.c -- OR terms: as an IN list where one column is compared with several values, else as
 * a union of look-ups of which every row is given once.
 */
#include "sql/plan/build.h"

#include <math.h>

/* ---- x = 1 OR x = 2 ---- */

static bool
same_key(const PlanExpr *e, const PlanExpr *key, u32 *side_out)
{
    if (e->op == PX_IN_LIST) {
        *side_out = 0;
        return (e->flags & PX_FLAG_NOT) == 0 && bind__equal(plan__see_through(e->arg[0]), key);
    }
    if (e->op != PX_EQ) return false;
    for (u32 side = 0; side < 2; side++) {
        if (bind__equal(plan__see_through(e->arg[side]), key)) {
            *side_out = side;
            return true;
        }
    }
    return false;
}

static PlanExpr *
as_in(Binder *b, const PlanExpr * or, const PlanExpr *key)
{
    ExprList list = {0};
    const PlanExpr *first = or->arg[0];
    for (u32 i = 0; i < or->arg_count; i++) {
        const PlanExpr *e = or->arg[i];
        u32 side;
        if (!same_key(e, key, &side)) return NULL;
        if (e->cmp_affinity != first->cmp_affinity || e->collation != first->collation) return NULL;
        if (i == 0 && !bind__push(b, &list, e->arg[side])) return NULL;
        u32 from = e->op == PX_IN_LIST ? 1 : 1 - side;
        u32 to = e->op == PX_IN_LIST ? e->arg_count : from + 1;
        for (u32 k = from; k < to; k++) {
            if (!bind__push(b, &list, e->arg[k])) return NULL;
        }
    }
    PlanExpr *in = bind__new(b, PX_IN_LIST, list.count, (Span){0, 0});
    if (in == NULL) return NULL;
    memcpy(in->arg, list.items, list.count * sizeof(PlanExpr *));
    bind__finish(in);
    in->cmp_affinity = first->cmp_affinity;
    in->collation = first->collation;
    return in;
}

PlanExpr *
plan__or_as_in(Binder *b, const PlanExpr * or)
{
    const PlanExpr *first = or->arg[0];
    if (first->op != PX_EQ && first->op != PX_IN_LIST) return NULL;
    for (u32 side = 0; side < 2; side++) {
        const PlanExpr *key = plan__see_through(first->arg[side]);
        if (key->op != PX_BOUND_COLUMN) continue;
        PlanExpr *in = as_in(b, or, key);
        if (in != NULL || b->err != OK) return in;
        if (first->op == PX_IN_LIST) break;
    }
    return NULL;
}

/* ---- unions ---- */

/* One OR term: each branch as a join of its own of the same table. */
struct OrUnion {
    u32 term;
    u32 branch_count;
    Join *branch;
    struct OrUnion *next;
};

/* The cells that tell rows apart must be next to each other in the scan's output. */
static bool
key_cells(const Source *source, u32 *first_out, u32 *count_out)
{
    const TableDef *table = source->table;
    if (!table->without_rowid) {
        *first_out = table->rowid_column != COLUMN_ROWID ? table->rowid_column
                                                         : source->column_count;
        *count_out = 1;
        return true;
    }
    const IndexDef *key = table->primary_key;
    for (u32 i = 1; i < key->key_columns; i++) {
        if (key->column[i].column != key->column[i - 1].column + 1) return false;
    }
    *first_out = key->column[0].column;
    *count_out = key->key_columns;
    return true;
}

static bool
branch_init(Binder *b, const Join *join, const Unit *unit, PlanExpr *e, Join *branch)
{
    u32 count = e->op == PX_AND ? e->arg_count : 1;
    *branch = (Join){.core = join->core, .unit_count = 1, .no_or = true};
    branch->for_write = join->for_write;
    branch->unit = BIND_NEW(b, Unit);
    branch->term = BIND_ARRAY(b, Term, count);
    if (branch->unit == NULL || branch->term == NULL) return false;
    branch->term_count = count;
    for (u32 i = 0; i < count; i++) {
        PlanExpr *term = e->op == PX_AND ? e->arg[i] : e;
        branch->term[i] = (Term){.expr = term, .mask = plan__mask(join->core, term)};
    }
    branch->unit->item = unit->item;
    branch->unit->source = unit->source;
    branch->unit->mask = unit->mask;
    branch->unit->rows = unit->rows;
    return plan__unit_terms(b, branch, 0) && plan__find_probes(b, branch, 0);
}

bool
plan__or_prepare(Binder *b, Join *join, u32 unit, u32 number)
{
    Unit *u = &join->unit[unit];
    const Term *term = &join->term[number];
    u32 first, keys;
    if (join->no_or || u->source->not_indexed || u->source->indexed_by != NULL) return true;
    if (term->expr->klass != PLAN_TOTAL || !key_cells(u->source, &first, &keys)) return true;
    /* Once cells are given out it is too late to ask for more. */
    for (u32 i = 0; u->source->cell_of != NULL && i < keys; i++) {
        if (u->source->used[first + i] == 0) return true;
    }
    struct OrUnion * or = BIND_NEW(b, struct OrUnion);
    if (or == NULL) return false;
    or->term = number;
    or->branch_count = term->expr->arg_count;
    or->branch = BIND_ARRAY(b, Join, or->branch_count);
    if (or->branch == NULL) return false;
    for (u32 i = 0; i < or->branch_count; i++) {
        if (!branch_init(b, join, u, term->expr->arg[i], & or->branch[i])) return false;
        if (or->branch[i].unit->probe_count == 0) return true;
    }
    for (u32 i = 0; i < keys; i++)
        u->source->used[first + i] = 1;
    or->next = u->or_union;
    u->or_union = or ;
    return true;
}

static bool
is_bounded(const Access *access)
{
    return access->eq_count > 0 || access->low >= 0 || access->high >= 0;
}

void
plan__or_choose(Binder *b, Join *join, u32 unit, u64 done, Access *best)
{
    Unit *u = &join->unit[unit];
    for (struct OrUnion * or = u->or_union; or != NULL; or = or->next) {
        if ((join->term[or->term].mask & ~(done | u->mask)) != 0) continue;
        Access total = {.low = -1, .high = -1, .covering = true, .or_term = or->term + 1};
        bool good = true;
        for (u32 i = 0; i < or->branch_count && good; i++) {
            Access access;
            plan__choose_access(b, & or->branch[i], 0, done, &access, false, NULL);
            good = is_bounded(&access);
            total.cost += access.cost;
            total.rows += access.rows;
        }
        total.cost += total.rows;
        if (good && total.cost < best->cost) *best = total;
    }
}

static PlanNode *
branch_node(Binder *b, Join *branch, u64 done, Env *row, Env *outside)
{
    Access access;
    plan__choose_access(b, branch, 0, done, &access, false, NULL);
    for (u32 i = 0; i < branch->term_count; i++)
        branch->term[i].placed = false;
    PlanNode *node = plan__scan_node(b, branch, 0, &access, outside);
    if (node == NULL) return NULL;
    ExprList rest = {0};
    for (u32 i = 0; i < branch->term_count; i++) {
        if (branch->term[i].placed) continue;
        if (!bind__push(b, &rest, branch->term[i].expr)) return NULL;
    }
    node->u.scan.filter = plan__lower_and(b, rest.items, rest.count, row);
    plan__class(node, node->u.scan.filter);
    return b->err == OK ? node : NULL;
}

PlanNode *
plan__or_node(Binder *b, Join *join, u32 unit, const Access *access, u64 done, Layout *layout,
              Env *outside)
{
    Unit *u = &join->unit[unit];
    Source *source = u->source;
    struct OrUnion * or = u->or_union;
    while (or->term + 1 != access->or_term)
        or = or->next;
    u32 first, keys;
    if (!key_cells(source, &first, &keys) || !plan__source_cells(b, source)) return NULL;
    layout->base[source->index] = 0;
    Env *row = BIND_NEW(b, Env);
    PlanNode *node = plan__node(b, PLAN_OR_SCAN, source->cell_count);
    if (row == NULL || node == NULL) return NULL;
    *row = (Env){.outer = outside, .layout = layout};
    node->u.or_scan.table = source->table;
    node->u.or_scan.key_first = source->cell_of[first];
    node->u.or_scan.key_count = keys;
    node->u.or_scan.term_count = or->branch_count;
    node->u.or_scan.term = KEEP_ARRAY(b, PlanNode *, or->branch_count);
    if (node->u.or_scan.term == NULL) return NULL;
    for (u32 i = 0; i < or->branch_count; i++) {
        PlanNode *branch = branch_node(b, & or->branch[i], done, row, outside);
        if (branch == NULL) return NULL;
        node->u.or_scan.term[i] = branch;
        node->klass = MAX_OF(node->klass, branch->klass);
    }
    join->term[or->term].placed = true;
    node->rows = access->rows;
    node->cost = access->cost;
    return node;
}
