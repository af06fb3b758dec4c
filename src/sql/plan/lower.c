/*
 * lower.c -- bound expressions to cells and registers.
 */
#include "sql/plan/build.h"

PlanNode *
plan__node(Binder *b, PlanKind kind, u32 columns)
{
    PlanNode *node = KEEP_NEW(b, PlanNode);
    if (node == NULL) return NULL;
    node->kind = (u8)kind;
    node->columns = columns;
    node->number = b->plan->node_count++;
    return node;
}

void
plan__class(PlanNode *node, const PlanExpr *e)
{
    if (e != NULL && e->klass > node->klass) node->klass = e->klass;
}

Layout *
plan__layout(Binder *b, const Core *core)
{
    Layout *layout = BIND_NEW(b, Layout);
    if (layout == NULL) return NULL;
    layout->core = core;
    u32 count = core == NULL ? 0 : core->source_count;
    layout->base = BIND_ARRAY(b, i32, count);
    if (layout->base == NULL) return NULL;
    for (u32 i = 0; i < count; i++)
        layout->base[i] = -1;
    return layout;
}

/* Virtual columns are computed from others and take no cell. */
static bool
takes_cell(const Source *source, u32 column)
{
    if (source->used[column] == 0) return false;
    return source->kind != SOURCE_TABLE || column == source->column_count ||
           source->table->column[column].generated != 1;
}

bool
plan__source_cells(Binder *b, Source *source)
{
    if (source->cell_of != NULL) return true;
    source->cell_of = BIND_ARRAY(b, u16, source->column_count + 1);
    if (source->cell_of == NULL) return false;
    bool all = source->kind != SOURCE_TABLE && source->kind != SOURCE_FUNCTION;
    u32 count = 0;
    for (u32 i = 0; i <= source->column_count; i++) {
        if (all ? i < source->column_count : takes_cell(source, i))
            source->cell_of[i] = (u16)count++;
    }
    source->cell_count = count;
    return true;
}

const PlanExpr *
plan__see_through(const PlanExpr *e)
{
    while (e->op == PX_BOUND_COLUMN) {
        const Source *source = e->u.bound.of;
        if (!source->flat) break;
        e = source->query->arm[0]->results.items[e->u.bound.column];
    }
    return e;
}

static const Query *
query_of(const PlanExpr *e)
{
    const PlanSub *sub = NULL;
    if (e->op == PX_IN_SUB || e->op == PX_EXISTS || e->op == PX_SCALAR) sub = e->u.sub;
    if (e->op == PX_SUB_COLUMN) sub = e->u.sub_column.sub;
    return sub == NULL ? NULL : ((const BoundSub *)(const void *)sub)->query;
}

bool
plan__has_sub(const PlanExpr *e)
{
    return (e->flags & PX_FLAG_HAS_SUB) != 0;
}

u64
plan__mask(const Core *core, const PlanExpr *e)
{
    e = plan__see_through(e);
    if (e->op == PX_BOUND_COLUMN) {
        const Source *source = e->u.bound.of;
        return source->core == core && core != NULL ? (u64)1 << source->index : 0;
    }
    u64 mask = 0;
    if (e->op == PX_BOUND_AGG) {
        const BoundAgg *agg = e->u.bound.of;
        for (u32 i = 0; i < agg->args.count; i++)
            mask |= plan__mask(core, agg->args.items[i]);
        return mask;
    }
    if (e->op == PX_BOUND_WIN) {
        const BoundWin *win = e->u.bound.of;
        for (u32 i = 0; i < win->args.count; i++)
            mask |= plan__mask(core, win->args.items[i]);
        return mask;
    }
    for (u32 i = 0; i < e->arg_count; i++)
        mask |= plan__mask(core, e->arg[i]);
    const Query *query = query_of(e);
    for (u32 i = 0; query != NULL && i < query->outer_refs.count; i++)
        mask |= plan__mask(core, query->outer_refs.items[i]);
    return mask;
}

PlanExpr *
plan__column(Binder *b, u32 cell, const PlanExpr *like)
{
    PlanExpr *e = KEEP_NEW(b, PlanExpr);
    if (e == NULL) return NULL;
    e->op = PX_COLUMN;
    e->u.number = cell;
    e->flags = PX_FLAG_READS_ROW;
    if (like != NULL) {
        e->affinity = like->affinity;
        e->collation = like->collation;
        e->sql_offset = like->sql_offset;
        e->sql_bytes = like->sql_bytes;
    }
    return e;
}

static PlanExpr *
make_reg(Binder *b, u32 reg, const PlanExpr *like)
{
    PlanExpr *e = plan__column(b, reg, like);
    if (e == NULL) return NULL;
    e->op = PX_REG;
    e->flags = PX_FLAG_READS_REG;
    return e;
}

PlanExpr *
plan__affinity(Binder *b, PlanExpr *e, u8 affinity)
{
    if (e == NULL || affinity <= AFFINITY_BLOB) return e;
    if (e->affinity == affinity && e->op != PX_CONST) return e;
    if (e->op == PX_CONST) {
        u8 type = e->u.constant.type;
        if (type == CELL_NULL || type == CELL_BLOB) return e;
        if (affinity == AFFINITY_REAL && type == CELL_REAL) return e;
        if (affinity >= AFFINITY_NUMERIC && affinity != AFFINITY_REAL && type != CELL_TEXT)
            return e;
        if (affinity == AFFINITY_TEXT && type == CELL_TEXT) return e;
    }
    PlanExpr *wrap = KEEP_NEW(b, PlanExpr);
    PlanExpr **arg = wrap == NULL ? NULL : KEEP_ARRAY(b, PlanExpr *, 1);
    if (arg == NULL) return NULL;
    arg[0] = e;
    wrap->op = PX_AFFINITY;
    wrap->affinity = affinity;
    wrap->klass = e->klass;
    wrap->flags = (u16)(e->flags & (PX_FLAG_READS_ROW | PX_FLAG_READS_REG | PX_FLAG_READS_PARAM |
                                    PX_FLAG_HAS_SUB));
    wrap->arg_count = 1;
    wrap->arg = arg;
    return wrap;
}

/* ---- where a column is ---- */

static bool
find_cell(const Layout *layout, const Source *source, u32 column, u32 *cell_out)
{
    u32 place = column == COLUMN_ROWID ? source->column_count : column;
    for (u32 i = 0; i < layout->whole_count; i++) {
        if (layout->whole[i].source != source) continue;
        *cell_out = layout->whole[i].base + place;
        return true;
    }
    if (layout->core == NULL || source->core != layout->core) return false;
    if (layout->base[source->index] < 0) return false;
    *cell_out = (u32)layout->base[source->index] + source->cell_of[place];
    return true;
}

static EnvEntry *
entry_find(Env *env, const void *of, u32 column)
{
    for (u32 i = 0; i < env->count; i++) {
        if (env->entry[i].of == of && env->entry[i].column == column) return &env->entry[i];
    }
    return NULL;
}

static EnvEntry *
entry_push(Binder *b, Env *env)
{
    if (env->count == env->capacity) {
        u32 capacity = env->capacity == 0 ? 4 : env->capacity * 2;
        EnvEntry *list = BIND_ARRAY(b, EnvEntry, capacity);
        if (list == NULL) return NULL;
        if (env->count > 0) memcpy(list, env->entry, env->count * sizeof(*list));
        env->entry = list;
        env->capacity = capacity;
    }
    return &env->entry[env->count++];
}

static PlanExpr *lower_leaf(Binder *b, const PlanExpr *e, Env *env);

/* The value crosses a boundary: into a register, unless it stands in one further out already. */
static PlanExpr *
lower_across(Binder *b, const PlanExpr *e, Env *env)
{
    EnvEntry *entry = entry_find(env, e->u.bound.of, e->u.bound.column);
    if (entry != NULL) return make_reg(b, entry->reg, e);
    if (env->outer == NULL)
        return bind__fail(b, ERR_INTERNAL, "column out of reach while planning");
    PlanExpr *from = lower_leaf(b, e, env->outer);
    if (from == NULL) return NULL;
    if (from->op != PX_COLUMN) {
        env->passed = true;
        return from;
    }
    entry = entry_push(b, env);
    if (entry == NULL) return NULL;
    *entry = (EnvEntry){e->u.bound.of, e->u.bound.column, (*b->reg_next)++, from};
    return make_reg(b, entry->reg, e);
}

static PlanExpr *
lower_in_group(Binder *b, const PlanExpr *e, Layout *layout)
{
    const Source *source = e->u.bound.of;
    if (source->core != layout->core) return NULL;
    for (u32 i = 0; i < layout->keys->count && !layout->keys_from_row; i++) {
        if (bind__equal(layout->keys->items[i], e)) return plan__column(b, i, e);
    }
    u32 bare_from = layout->keys->count + layout->core->agg_count;
    for (u32 i = 0; i < layout->bare.count; i++) {
        if (bind__equal(layout->bare.items[i], e)) return plan__column(b, bare_from + i, e);
    }
    PlanExpr *copy = BIND_NEW(b, PlanExpr);
    if (copy == NULL) return NULL;
    *copy = *e;
    if (!bind__push(b, &layout->bare, copy)) return NULL;
    layout->columns = bare_from + layout->bare.count;
    return plan__column(b, layout->columns - 1, e);
}

/* A virtual generated column, read anywhere but in a row that holds it. */
static const PlanExpr *
virtual_of(const PlanExpr *e)
{
    const Source *source = e->u.bound.of;
    if (source->generated == NULL || e->u.bound.column == COLUMN_ROWID) return NULL;
    return source->generated[e->u.bound.column];
}

static bool
env_has_whole(const Env *env, const Source *source)
{
    for (; env != NULL; env = env->outer) {
        if (env->layout == NULL) continue;
        for (u32 i = 0; i < env->layout->whole_count; i++) {
            if (env->layout->whole[i].source == source) return true;
        }
    }
    return false;
}

static PlanExpr *
lower_column(Binder *b, const PlanExpr *e, Env *env)
{
    Source *source = e->u.bound.of;
    if (env != NULL && env->layout != NULL && env->layout->grouped && !env->layout->keys_from_row) {
        const ExprList *keys = env->layout->keys;
        for (u32 i = 0; i < keys->count; i++) {
            if (bind__equal(keys->items[i], e)) return plan__column(b, i, e);
        }
    }
    if (source->flat) return plan__lower(b, plan__see_through(e), env);
    u32 column = e->u.bound.column;
    if (source->base_reg >= 0) {
        u32 place = column == COLUMN_ROWID ? source->column_count : column;
        return make_reg(b, (u32)source->base_reg + place, e);
    }
    const PlanExpr *virtual = virtual_of(e);
    if (virtual != NULL && !env_has_whole(env, source)) {
        PlanExpr *computed = plan__lower(b, virtual, env);
        return computed == NULL ? NULL : plan__affinity(b, computed, e->affinity);
    }
    return lower_leaf(b, e, env);
}

static PlanExpr *
lower_leaf(Binder *b, const PlanExpr *e, Env *env)
{
    for (; env != NULL; env = env->outer) {
        if (env->layout == NULL) return lower_across(b, e, env);
        Layout *layout = env->layout;
        if (e->op == PX_BOUND_AGG) {
            const BoundAgg *agg = e->u.bound.of;
            if (layout->grouped && agg->core == layout->core)
                return plan__column(b, layout->keys->count + agg->number, e);
            continue;
        }
        if (e->op == PX_BOUND_WIN) {
            const BoundWin *win = e->u.bound.of;
            if (layout->windows != NULL && win->core == layout->core)
                return plan__window_ref(b, layout->windows, e);
            continue;
        }
        if (layout->grouped) {
            PlanExpr *found = lower_in_group(b, e, layout);
            if (found != NULL || b->err != OK) return found;
            continue;
        }
        u32 cell;
        if (find_cell(layout, e->u.bound.of, e->u.bound.column, &cell))
            return plan__column(b, cell, e);
    }
    if (e->op == PX_BOUND_AGG) {
        const BoundAgg *agg = e->u.bound.of;
        return bind__fail(b, ERR_SQL, "misuse of aggregate: %s()", agg->def->name);
    }
    if (e->op == PX_BOUND_WIN) {
        const BoundWin *win = e->u.bound.of;
        return bind__fail(b, ERR_SQL, "misuse of window function %s()", win->def->name);
    }
    return bind__fail(b, ERR_INTERNAL, "column out of reach while planning");
}

/* ---- the walk ---- */

static bool
keep_special(Binder *b, PlanExpr *e)
{
    if (e->op == PX_CASE && e->u.arm_stamps != NULL) {
        u32 arms = (e->arg_count - 1) / 2;
        PlanStamp *stamps = KEEP_ARRAY(b, PlanStamp, arms);
        if (stamps == NULL) return false;
        memcpy(stamps, e->u.arm_stamps, arms * sizeof(PlanStamp));
        e->u.arm_stamps = stamps;
    } else if (e->op == PX_ROW_COMPARE) {
        PlanStamp *stamps = KEEP_ARRAY(b, PlanStamp, e->u.row.columns);
        if (stamps == NULL) return false;
        memcpy(stamps, e->u.row.stamps, e->u.row.columns * sizeof(PlanStamp));
        e->u.row.stamps = stamps;
    } else if (e->op == PX_FUNC) {
        e->u.func.site = b->plan->site_count++;
    }
    return true;
}

static bool
lower_sub_of(Binder *b, PlanExpr *e, Env *env)
{
    if (e->op == PX_IN_SUB || e->op == PX_EXISTS || e->op == PX_SCALAR) {
        SubUse use = e->op == PX_EXISTS ? SUB_EXISTS : e->op == PX_IN_SUB ? SUB_IN : SUB_ROW;
        e->u.sub = plan__sub(b, (BoundSub *)(void *)e->u.sub, env, use);
        return e->u.sub != NULL;
    }
    if (e->op == PX_SUB_COLUMN) {
        BoundSub *sub = (BoundSub *)(void *)e->u.sub_column.sub;
        if (sub->lowered == NULL || sub->lowered_env != env) {
            sub->lowered = plan__sub(b, sub, env, SUB_ROW);
            sub->lowered_env = env;
        }
        e->u.sub_column.sub = sub->lowered;
        return sub->lowered != NULL;
    }
    return true;
}

static const u16 place_flags = PX_FLAG_READS_ROW | PX_FLAG_READS_REG | PX_FLAG_READS_PARAM |
                               PX_FLAG_HAS_SUB | PX_FLAG_HAS_AGG | PX_FLAG_HAS_WIN;

PlanExpr *
plan__lower(Binder *b, const PlanExpr *e, Env *env)
{
    if (b->err != OK) return NULL;
    if (e->op == PX_BOUND_COLUMN) return lower_column(b, e, env);
    if (e->op == PX_BOUND_AGG || e->op == PX_BOUND_WIN) return lower_leaf(b, e, env);
    if (env != NULL && env->layout != NULL && env->layout->grouped && e->op != PX_CONST) {
        const ExprList *keys = env->layout->keys;
        for (u32 i = 0; i < keys->count; i++) {
            if (keys->items[i]->op == e->op && bind__equal(keys->items[i], e))
                return plan__column(b, i, e);
        }
    }
    PlanExpr *copy = KEEP_NEW(b, PlanExpr);
    if (copy == NULL) return NULL;
    *copy = *e;
    u32 count = e->arg_count;
    if (count > 0) {
        copy->flags = (u16)(copy->flags & ~place_flags);
        copy->arg = KEEP_ARRAY(b, PlanExpr *, count);
        if (copy->arg == NULL) return NULL;
        for (u32 i = 0; i < count; i++) {
            copy->arg[i] = plan__lower(b, e->arg[i], env);
            if (copy->arg[i] == NULL) return NULL;
            copy->flags |= (u16)(copy->arg[i]->flags & place_flags);
        }
        copy->flags |= (u16)(e->flags & (PX_FLAG_HAS_SUB | PX_FLAG_READS_PARAM));
    }
    if (!keep_special(b, copy) || !lower_sub_of(b, copy, env)) return NULL;
    const PlanSub *sub = copy->op == PX_SUB_COLUMN ? copy->u.sub_column.sub : NULL;
    if (copy->op == PX_IN_SUB || copy->op == PX_EXISTS || copy->op == PX_SCALAR) sub = copy->u.sub;
    if (sub != NULL) {
        if (count == 0) copy->flags = (u16)(copy->flags & ~(PX_FLAG_READS_ROW | PX_FLAG_READS_REG));
        for (u32 i = 0; i < sub->bind_count; i++)
            copy->flags |= (u16)(sub->bind_expr[i]->flags & place_flags);
        if (sub->correlated && sub->bind_count == 0) copy->flags |= PX_FLAG_READS_REG;
    }
    return copy;
}

PlanExpr **
plan__lower_list(Binder *b, const ExprList *list, Env *env)
{
    PlanExpr **out = KEEP_ARRAY(b, PlanExpr *, list->count);
    if (out == NULL) return NULL;
    for (u32 i = 0; i < list->count; i++) {
        out[i] = plan__lower(b, list->items[i], env);
        if (out[i] == NULL) return NULL;
    }
    return out;
}

PlanExpr *
plan__lower_and(Binder *b, PlanExpr *const *terms, u32 count, Env *env)
{
    if (count == 0) return NULL;
    if (count == 1) return plan__lower(b, terms[0], env);
    PlanExpr *e = KEEP_NEW(b, PlanExpr);
    PlanExpr **arg = e == NULL ? NULL : KEEP_ARRAY(b, PlanExpr *, count);
    if (arg == NULL) return NULL;
    e->op = PX_AND;
    e->arg_count = count;
    e->arg = arg;
    for (u32 i = 0; i < count; i++) {
        arg[i] = plan__lower(b, terms[i], env);
        if (arg[i] == NULL) return NULL;
    }
    bind__finish(e);
    return e;
}

/* ---- subqueries ---- */

/* The other way fits what was planned: it may be chosen at run time. */
static bool
add_keyed(Binder *b, PlanSub *sub, PlanKeyed *keyed, const Keyed *state, Env *boundary, SubUse use)
{
    if (keyed == NULL || !plan__keyed_fits(keyed, sub->root, use)) return b->err == OK;
    keyed->probe = plan__lower_list(b, &state->outer, boundary);
    if (keyed->probe == NULL) return false;
    keyed->runs_before = b->ctx->no_loop_index ? 0 : plan__keyed_runs(keyed, sub->root);
    sub->keyed = keyed;
    return true;
}

PlanSub *
plan__sub(Binder *b, BoundSub *bound, Env *env, SubUse use)
{
    Env *boundary = BIND_NEW(b, Env);
    PlanSub *sub = KEEP_NEW(b, PlanSub);
    if (boundary == NULL || sub == NULL) return NULL;
    boundary->outer = env;
    Query *query = bound->query;
    *sub = bound->sub;
    sub->number = b->plan->sub_count++;
    bool simple = query->arm_count == 1 && !query->is_recursive && query->limit == NULL &&
                  query->offset == NULL;
    Keyed state;
    PlanKeyed *keyed = plan__sub_keyed(b, bound, env, use, &state);
    if (b->err != OK) return NULL;
    b->keyed_depth += keyed != NULL;
    sub->root = use == SUB_EXISTS && simple
                    ? plan__core(b, query, query->arm[0], boundary, false, true)
                    : plan__query(b, query, boundary);
    b->keyed_depth -= keyed != NULL;
    if (sub->root == NULL || !add_keyed(b, sub, keyed, &state, boundary, use)) return NULL;
    sub->bind_count = boundary->count;
    sub->bind_reg = KEEP_ARRAY(b, u32, boundary->count);
    sub->bind_expr = KEEP_ARRAY(b, PlanExpr *, boundary->count);
    if (sub->bind_reg == NULL || sub->bind_expr == NULL) return NULL;
    for (u32 i = 0; i < boundary->count; i++) {
        sub->bind_reg[i] = boundary->entry[i].reg;
        sub->bind_expr[i] = boundary->entry[i].from;
    }
    if (bound->sub.cmp != NULL) {
        sub->cmp = KEEP_ARRAY(b, PlanStamp, sub->columns);
        if (sub->cmp == NULL) return NULL;
        memcpy(sub->cmp, bound->sub.cmp, sub->columns * sizeof(PlanStamp));
    }
    sub->correlated = boundary->count > 0 || boundary->passed;
    sub->is_volatile = query->klass == PLAN_VOLATILE;
    return sub;
}
