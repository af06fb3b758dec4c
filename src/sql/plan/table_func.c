/*
 * table_func.c -- table-valued functions in FROM.
 *
 * Arguments may read the tables further left, so a function is the inner side of a loop join.  A
 * missing argument may come from WHERE: hidden_column = value.
 */
#include "sql/plan/build.h"

u64
plan__func_needs(const Core *core, const Source *source)
{
    u64 needs = 0;
    for (u32 i = 0; i < source->args.count; i++)
        needs |= plan__mask(core, source->args.items[i]);
    return needs & ~((u64)1 << source->index);
}

/* The value that WHERE gives a hidden column; NULL: none. */
static const PlanExpr *
hidden_value(const Join *join, const Unit *unit, u32 column)
{
    for (u32 i = 0; i < join->term_count; i++) {
        const Term *term = &join->term[i];
        if (term->on || term->expr->op != PX_EQ) continue;
        for (u32 side = 0; side < 2; side++) {
            const PlanExpr *key = plan__see_through(term->expr->arg[side]);
            const PlanExpr *value = term->expr->arg[1 - side];
            if (key->op != PX_BOUND_COLUMN || key->u.bound.of != unit->source) continue;
            if (key->u.bound.column != column) continue;
            /* Only what is at hand whatever the order of the join. */
            if (plan__mask(join->core, value) == 0) return value;
        }
    }
    return NULL;
}

PlanNode *
plan__table_func(Binder *b, Join *join, u32 unit, Env *outside)
{
    const Unit *u = &join->unit[unit];
    Source *source = u->source;
    const TableFunc *func = source->func;
    if (!plan__source_cells(b, source)) return NULL;
    PlanNode *node = plan__node(b, PLAN_TABLE_FUNC, source->cell_count);
    if (node == NULL) return NULL;
    u32 count = (u32)(func->column_count - func->hidden_from);
    node->u.table_func.func = func;
    node->u.table_func.arg_count = count;
    node->u.table_func.arg = KEEP_ARRAY(b, PlanExpr *, count);
    node->u.table_func.column = KEEP_ARRAY(b, u16, source->cell_count);
    if (node->u.table_func.arg == NULL || node->u.table_func.column == NULL) return NULL;
    for (u32 i = 0; i < count; i++) {
        const PlanExpr *e = i < source->args.count ? source->args.items[i]
                                                   : hidden_value(join, u, func->hidden_from + i);
        if (e == NULL) continue;
        node->u.table_func.arg[i] = plan__lower(b, e, outside);
        if (node->u.table_func.arg[i] == NULL) return NULL;
        plan__class(node, node->u.table_func.arg[i]);
    }
    u32 at = 0;
    for (u32 i = 0; i < source->column_count; i++) {
        if (source->used[i] != 0) node->u.table_func.column[at++] = (u16)i;
    }
    node->klass = MAX_OF(node->klass, (u8)PLAN_FALLIBLE);
    node->rows = u->rows;
    if (b->explain) {
        node->eqp = arena_printf(b->arena, "SCAN %s VIRTUAL TABLE INDEX %u:", source->name,
                                 source->args.count);
        if (node->eqp == NULL) return bind__fail(b, ERR_NOMEM, "out of memory");
    }
    return node;
}
