/*
 * table_func.c -- table-valued functions in FROM.
 *
 * Arguments may read the tables further left, so a function is the inner side of a loop join.  A
 * missing argument may come from WHERE or ON, hidden_column = value: the equality is then used up
 * like an argument, and the tables that the value reads come before.  So may an IN, whose values
 * are walked one by one.
 */
#include "sql/plan/build.h"

#define ROWS_ENDLESS 4294967296.0

u64
plan__func_needs(const Core *core, const Source *source)
{
    u64 needs = 0;
    for (u32 i = 0; i < source->args.count; i++)
        needs |= plan__mask(core, source->args.items[i]);
    return needs & ~((u64)1 << source->index);
}

/* Must the sources of `from`, or what must come before them, come after those of `target`? */
static bool
must_follow(const Join *join, u64 from, u64 target)
{
    for (bool grown = true; grown && (from & target) == 0;) {
        grown = false;
        for (u32 i = 0; i < join->unit_count; i++) {
            const Unit *u = &join->unit[i];
            if ((u->mask & from) == 0 || (u->needs & ~from) == 0) continue;
            from |= u->needs;
            grown = true;
        }
    }
    return (from & target) != 0;
}

/* The side of a comparison that stands against `column` of the unit; NULL: none. */
static const PlanExpr *
other_side(const Join *join, const Unit *unit, const PlanExpr *e, u32 column, u32 *side_out)
{
    for (u32 side = 0; side < 2; side++) {
        const PlanExpr *key = plan__see_through(e->arg[side]);
        if (key->op != PX_BOUND_COLUMN || key->u.bound.of != unit->source) continue;
        if (key->u.bound.column != column) continue;
        if ((plan__mask(join->core, e->arg[1 - side]) & unit->mask) != 0) continue;
        *side_out = side;
        return e->arg[1 - side];
    }
    return NULL;
}

/* Does the term give the hidden column? */
static bool
gives_column(Binder *b, const Join *join, const Unit *u, const PlanExpr *e, HostTerm *out)
{
    u32 side;
    if (e->op == PX_OR) {
        e = plan__or_as_in(b, e);
        if (e == NULL) return false;
    }
    if (e->op == PX_EQ) {
        out->value = other_side(join, u, e, (u32)out->column, &side);
        out->kind = HOST_TERM_VALUE;
        if (out->value == NULL) return false;
        out->mask = plan__mask(join->core, out->value);
        return true;
    }
    if (e->op != PX_IN_LIST && e->op != PX_IN_SUB) return false;
    const PlanExpr *key = plan__see_through(e->arg[0]);
    out->value = e;
    return key->op == PX_BOUND_COLUMN && key->u.bound.of == u->source &&
           key->u.bound.column == (u32)out->column && plan__list_term(join, e, out) &&
           (out->mask & u->mask) == 0;
}

/* Find the term that gives a hidden column; an equality before an IN, then one that needs no other
   table, is preferred. */
static bool
bind_hidden(Binder *b, const Join *join, u32 number, u32 column, FuncArg *arg)
{
    const Unit *u = &join->unit[number];
    u32 best = UINT32_MAX;
    for (u32 i = 0; i < join->term_count; i++) {
        const Term *term = &join->term[i];
        HostTerm found = {.term = i, .column = (i32)column};
        if (!plan__term_serves(join, number, term)) continue;
        if (!gives_column(b, join, u, term->expr, &found)) {
            if (b->err != OK) return false;
            continue;
        }
        u32 rank = (found.kind == HOST_TERM_VALUE ? 0u : 2u) + (found.mask == 0 ? 0u : 1u);
        if (must_follow(join, found.mask, u->mask) || rank >= best) continue;
        *arg = (FuncArg){.given = true, .from = found};
        best = rank;
    }
    return true;
}

bool
plan__func_bind(Binder *b, Join *join, u32 number)
{
    Unit *u = &join->unit[number];
    if (u->source == NULL || u->source->kind != SOURCE_FUNCTION) return true;
    u32 hidden_from = u->source->func->hidden_from;
    u32 count = u->source->func->column_count - hidden_from;
    u->func_arg = BIND_ARRAY(b, FuncArg, count);
    if (u->func_arg == NULL) return false;
    if ((u->join & AST_JOIN_RIGHT) != 0) return true;
    for (u32 i = u->source->args.count; i < count; i++) {
        if (!bind_hidden(b, join, number, hidden_from + i, &u->func_arg[i])) return false;
        if (u->func_arg[i].given) u->needs |= u->func_arg[i].from.mask;
    }
    return true;
}

/* What a term says of the least (low) or the greatest value of column 0; NULL: nothing. */
static const PlanExpr *
limit_of(const Join *join, const Unit *u, const PlanExpr *e, bool low, u8 *affinity_out)
{
    if (e->klass != PLAN_TOTAL) return NULL;
    if (e->op == PX_BETWEEN) {
        const PlanExpr *key = plan__see_through(e->arg[0]), *value = e->arg[low ? 1 : 2];
        if ((e->flags & PX_FLAG_NOT) != 0 || key->op != PX_BOUND_COLUMN) return NULL;
        if (key->u.bound.of != u->source || key->u.bound.column != 0) return NULL;
        *affinity_out = low ? e->u.between.low.affinity : e->u.between.high.affinity;
        return (plan__mask(join->core, value) & u->mask) != 0 ? NULL : value;
    }
    bool less = e->op == PX_LT || e->op == PX_LE, more = e->op == PX_GT || e->op == PX_GE;
    if (!less && !more && e->op != PX_EQ) return NULL;
    u32 side = 0;
    const PlanExpr *value = other_side(join, u, e, 0, &side);
    if (value == NULL) return NULL;
    *affinity_out = e->cmp_affinity;
    /* value > x and x < value are lower limits. */
    return e->op == PX_EQ || (side == 0 ? more : less) == low ? value : NULL;
}

f64
plan__func_rows(const Join *join, u32 number, u64 done)
{
    const Unit *u = &join->unit[number];
    f64 rows = u->rows;
    if (u->source == NULL || u->source->kind != SOURCE_FUNCTION || !u->source->func->has_limits)
        return rows;
    for (u32 i = 0; i < join->term_count; i++) {
        const Term *term = &join->term[i];
        u8 affinity = 0;
        if (!plan__term_serves(join, number, term)) continue;
        const PlanExpr *value = limit_of(join, u, term->expr, false, &affinity);
        if (value == NULL || affinity == AFFINITY_TEXT) continue;
        /* Without the table that its limit reads, a series may be endless. */
        if ((plan__mask(join->core, value) & ~done) != 0) return ROWS_ENDLESS;
        if (term->expr->op == PX_EQ) rows = 1;
    }
    return rows;
}

/* The limit that terms give column 0, lowered, of what is at hand in `done`; the terms are tested
   all the same.  NULL with b->err == OK: none. */
static PlanExpr *
value_limit(Binder *b, const Join *join, u32 number, bool low, u64 done, Env *outside)
{
    const Unit *u = &join->unit[number];
    for (u32 i = 0; i < join->term_count && !b->ctx->plain; i++) {
        const Term *term = &join->term[i];
        u8 affinity = 0;
        if (!plan__term_serves(join, number, term)) continue;
        const PlanExpr *value = limit_of(join, u, term->expr, low, &affinity);
        /* Comparisons as text are in another order. */
        if (value == NULL || affinity == AFFINITY_TEXT) continue;
        if ((plan__mask(join->core, value) & ~done) != 0) continue;
        PlanExpr *e = plan__lower(b, value, outside);
        return e == NULL ? NULL : plan__affinity(b, e, affinity);
    }
    return NULL;
}

static void
class_arg(PlanNode *node, const PlanScanArg *arg)
{
    plan__class(node, arg->part.value);
    for (u32 i = 0; i < arg->part.in_count; i++)
        plan__class(node, arg->part.in_list[i]);
}

static bool
lower_args(Binder *b, Join *join, u32 number, u64 done, Env *outside, PlanNode *node)
{
    const Unit *u = &join->unit[number];
    const Source *source = u->source;
    PlanScanArg *arg = node->u.table_func.arg;
    u32 hidden = (u32)(source->func->column_count - source->func->hidden_from);
    for (u32 i = 0; i < hidden; i++) {
        const FuncArg *from = &u->func_arg[i];
        if (i < source->args.count) {
            arg[i].part.value = plan__lower(b, source->args.items[i], outside);
        } else if (from->given) {
            join->term[from->from.term].placed = true;
            if (!plan__scan_arg(b, &from->from, outside, &arg[i])) return false;
        }
        if (b->err != OK) return false;
    }
    if (source->func->has_limits) {
        for (u32 i = 0; i < 2; i++) {
            arg[hidden + i].part.value = value_limit(b, join, number, i == 0, done, outside);
            if (b->err != OK) return false;
        }
    }
    for (u32 i = 0; i < node->u.table_func.arg_count; i++)
        class_arg(node, &arg[i]);
    return true;
}

/* SQLite's number says which arguments are there; its pragmas' is always 0. */
static bool
name_func(Binder *b, const Source *source, PlanNode *node)
{
    u32 given = 0, hidden = (u32)(source->func->column_count - source->func->hidden_from);
    for (u32 i = 0; i < hidden && strncmp(source->func->name, "pragma_", 7) != 0; i++) {
        const PlanKeyPart *part = &node->u.table_func.arg[i].part;
        bool there = part->value != NULL || part->in_list != NULL || part->in_sub != NULL;
        given |= there ? 1u << i : 0;
    }
    node->eqp = arena_printf(b->arena, "SCAN %s VIRTUAL TABLE INDEX %u:", source->name, given);
    return node->eqp != NULL || bind__fail(b, ERR_NOMEM, "out of memory") != NULL;
}

PlanNode *
plan__table_func(Binder *b, Join *join, u32 unit, u64 done, Env *outside)
{
    const Unit *u = &join->unit[unit];
    Source *source = u->source;
    const TableFunc *func = source->func;
    if (!plan__source_cells(b, source)) return NULL;
    PlanNode *node = plan__node(b, PLAN_TABLE_FUNC, source->cell_count);
    if (node == NULL) return NULL;
    u32 count = (u32)(func->column_count - func->hidden_from) + (func->has_limits ? 2u : 0u);
    node->u.table_func.func = func;
    node->u.table_func.arg_count = count;
    node->u.table_func.arg = KEEP_ARRAY(b, PlanScanArg, count);
    node->u.table_func.column = KEEP_ARRAY(b, u16, source->cell_count);
    if (node->u.table_func.arg == NULL || node->u.table_func.column == NULL) return NULL;
    if (!lower_args(b, join, unit, done, outside, node)) return NULL;
    u32 at = 0;
    for (u32 i = 0; i < source->column_count; i++) {
        if (source->used[i] != 0) node->u.table_func.column[at++] = (u16)i;
    }
    node->klass = MAX_OF(node->klass, (u8)PLAN_FALLIBLE);
    node->rows = u->rows;
    if (b->explain && !name_func(b, source, node)) return NULL;
    return node;
}
