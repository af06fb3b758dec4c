/*
 * join.c -- FROM and WHERE: the terms and the nodes.
 *
 * Terms sink to the first place where all they read is at hand, but outer joins hold them up: a
 * WHERE term never goes into the side that may be filled with NULLs, nor below a RIGHT or FULL
 * join.
 */
#include "sql/plan/build.h"

/* ---- terms and units ---- */

static bool
push_terms(Core *core, Join *join, const ExprList *list, bool on, u32 unit)
{
    for (u32 i = 0; i < list->count; i++) {
        join->term[join->term_count++] = (Term){.expr = list->items[i],
                                                .mask = plan__mask(core, list->items[i]),
                                                .on = on,
                                                .unit = unit};
    }
    return true;
}

static bool
outer_written(const FromItem *item, u32 number)
{
    return number > 0 && (item->join & (AST_JOIN_LEFT | AST_JOIN_RIGHT)) != 0;
}

/* The ON of an outer join, and any ON beside a RIGHT JOIN, reads nothing that comes later. */
static bool
on_fits(Binder *b, const Join *join, u32 unit, u64 from_here)
{
    u64 later = from_here & ~join->unit[unit].mask;
    for (u32 i = 0; i < join->term_count; i++) {
        const Term *term = &join->term[i];
        if (!term->on || term->unit != unit || (term->mask & later) == 0) continue;
        return bind__fail(b, ERR_SQL, "ON clause references tables to its right") != NULL;
    }
    return true;
}

static f64
unit_rows(Binder *b, const Source *source)
{
    switch (source->kind) {
    case SOURCE_TABLE: return source->table->host ? 25 : plan__table_rows(b, source->table);
    case SOURCE_QUERY:
    case SOURCE_CTE: {
        const Query *query = source->query;
        if (query->arm_count == 1 && query->arm[0]->is_values) return query->arm[0]->value_rows;
        if (query->arm_count == 1 && query->arm[0]->is_aggregate && !query->arm[0]->has_group_by)
            return 1;
        if (query->arm_count == 1 && query->arm[0]->source_count == 0) return 1;
        return 1000;
    }
    case SOURCE_RECURSION: return 1;
    default: return 25;
    }
}

static bool
join_setup(Binder *b, Join *join, Core *core, FromList *list, const ExprList *where)
{
    u32 terms = where == NULL ? 0 : where->count;
    for (u32 i = 0; i < list->count; i++)
        terms += list->item[i].on.count;
    join->core = core;
    join->unit = BIND_ARRAY(b, Unit, list->count);
    join->term = BIND_ARRAY(b, Term, terms);
    if (join->unit == NULL || join->term == NULL) return false;
    join->unit_count = list->count;
    if (where != NULL) push_terms(core, join, where, false, 0);
    u64 before = 0, all = 0;
    for (u32 i = 0; i < list->count; i++)
        all |= list->item[i].mask;
    for (u32 i = 0; i < list->count; i++) {
        Unit *unit = &join->unit[i];
        FromItem *item = &list->item[i];
        unit->item = item;
        unit->source = item->source;
        unit->mask = item->mask;
        unit->join = i == 0 ? 0 : item->join;
        if (!b->ctx->plain && plan__left_is_inner(core, item, where)) unit->join = AST_JOIN_INNER;
        if ((unit->join & AST_JOIN_RIGHT) != 0) {
            join->fixed_order = true;
            join->where_from = i;
        }
        if ((unit->join & (AST_JOIN_LEFT | AST_JOIN_RIGHT | AST_JOIN_CROSS)) != 0)
            unit->needs = before;
        if (unit->source != NULL && unit->source->kind == SOURCE_FUNCTION)
            unit->needs |= plan__func_needs(core, unit->source);
        unit->rows = unit->source != NULL ? unit_rows(b, unit->source) : 1000;
        bool outer = (unit->join & (AST_JOIN_LEFT | AST_JOIN_RIGHT)) != 0;
        push_terms(core, join, &item->on, outer || core->has_right_join, i);
        if ((outer_written(item, i) || core->has_right_join) && !on_fits(b, join, i, all & ~before))
            return false;
        before |= item->mask;
    }
    before = 0;
    for (u32 i = 0; i < list->count; i++) {
        if (join->fixed_order || b->ctx->plain) join->unit[i].needs = before;
        before |= join->unit[i].mask;
    }
    for (u32 i = 0; i < list->count; i++) {
        if (!plan__func_bind(b, join, i)) return false;
        if (!plan__unit_terms(b, join, i) || !plan__find_probes(b, join, i)) return false;
    }
    return true;
}

/* ---- nodes ---- */

PlanNode *
plan__filter(Binder *b, PlanNode *input, PlanExpr *condition)
{
    if (condition == NULL) return b->err == OK ? input : NULL;
    PlanNode *node = plan__node(b, PLAN_FILTER, input->columns);
    if (node == NULL) return NULL;
    node->input = input;
    node->u.filter.condition = condition;
    node->rows = input->rows * 0.5;
    plan__class(node, condition);
    return node;
}

/* Unplaced terms that read nothing beyond `mask`; those with subqueries come last, as in SQLite.
   They count as placed. */
static bool
take_terms(Binder *b, Join *join, u64 mask, u64 must, i64 on_unit, ExprList *out)
{
    for (u32 pass = 0; pass < 2; pass++) {
        for (u32 i = 0; i < join->term_count; i++) {
            Term *term = &join->term[i];
            if (term->placed || (term->mask & ~mask) != 0) continue;
            if (must != 0 && (term->mask & must) == 0) continue;
            if (term->on != (on_unit >= 0)) continue;
            if (term->on && term->unit != on_unit) continue;
            if (plan__has_sub(term->expr) != (pass == 1)) continue;
            term->placed = true;
            if (!bind__push(b, out, term->expr)) return false;
        }
    }
    return true;
}

static PlanNode *plan_list(Binder *b, Core *core, FromList *list, const ExprList *where, Env *outer,
                           Join *join, Layout **layout_out);

static u64
layout_mask(const Join *join, const Layout *layout)
{
    u64 mask = 0;
    for (u32 i = 0; i < join->core->source_count; i++) {
        if (layout->base[i] >= 0) mask |= (u64)1 << i;
    }
    return mask;
}

/* The rows of one unit alone: its node, with its cells in `layout` from 0 on.  `row` is the
   environment of that layout, `outside` the one around it. */
static PlanNode *
unit_node(Binder *b, Join *join, u32 number, const Access *access, u64 done, Layout *layout,
          Env *outside)
{
    Unit *u = &join->unit[number];
    if (u->source == NULL) {
        Join nested = {0};
        Layout *inner = NULL;
        PlanNode *node = plan_list(b, join->core, u->item->nested, NULL, outside, &nested, &inner);
        if (node == NULL) return NULL;
        memcpy(layout->base, inner->base, join->core->source_count * sizeof(i32));
        layout->columns = inner->columns;
        return node;
    }
    Source *source = u->source;
    PlanNode *node = NULL;
    if (plan__is_host(u)) {
        node = plan__host_node(b, join, number, access, outside);
    } else if (source->kind == SOURCE_TABLE) {
        node = access->or_term != 0 ? plan__or_node(b, join, number, access, done, layout, outside)
                                    : plan__scan_node(b, join, number, access, outside);
    } else if (source->kind == SOURCE_FUNCTION) {
        node = plan__table_func(b, join, number, done, outside);
    } else {
        if (!plan__source_cells(b, source)) return NULL;
        node = plan__cte_source(b, source, outside);
        if (node != NULL && !plan__name_source(b, node, source)) return NULL;
    }
    if (node == NULL) return NULL;
    layout->base[source->index] = 0;
    layout->columns = node->columns;
    return node;
}

/* Put the terms on the unit's own node: into a scan's filter, or a filter above. */
static PlanNode *
unit_filter(Binder *b, PlanNode *node, const ExprList *terms, Env *row)
{
    if (terms->count == 0) return node;
    PlanExpr *condition = plan__lower_and(b, terms->items, terms->count, row);
    if (condition == NULL) return NULL;
    if (node->kind == PLAN_OR_SCAN && node->u.or_scan.filter == NULL) {
        node->u.or_scan.filter = condition;
        plan__class(node, condition);
        return node;
    }
    if (node->kind == PLAN_SCAN && node->u.scan.filter == NULL) {
        node->u.scan.filter = condition;
        plan__class(node, condition);
        return node;
    }
    return plan__filter(b, node, condition);
}

static bool
layout_add(Binder *b, Join *join, const Layout *left, const Layout *right, Layout **out)
{
    Layout *layout = plan__layout(b, join->core);
    if (layout == NULL) return false;
    for (u32 i = 0; i < join->core->source_count; i++) {
        if (left->base[i] >= 0) layout->base[i] = left->base[i];
        if (right->base[i] >= 0) layout->base[i] = right->base[i] + (i32)left->columns;
    }
    layout->columns = left->columns + right->columns;
    *out = layout;
    return true;
}

static PlanNode *
join_node(Binder *b, PlanKind kind, PlanNode *left, PlanNode *right)
{
    PlanNode *node = plan__node(b, kind, left->columns + right->columns);
    if (node == NULL) return NULL;
    node->input = left;
    node->right = right;
    node->klass = MAX_OF(left->klass, right->klass);
    node->rows = left->rows * right->rows;
    return node;
}

static u8
join_kind(u8 join)
{
    bool left = (join & AST_JOIN_LEFT) != 0, right = (join & AST_JOIN_RIGHT) != 0;
    if (left && right) return JOIN_FULL;
    if (right) return JOIN_RIGHT;
    return left ? JOIN_LEFT : JOIN_INNER;
}

/* Inner rows that do not depend on the outer row are kept, unless reading them again is as cheap.
 */
static PlanNode *
keep_rows(Binder *b, PlanNode *node)
{
    if (node->kind == PLAN_SCAN || node->kind == PLAN_VALUES || node->kind == PLAN_CTE_SCAN ||
        node->kind == PLAN_ONE_ROW || node->kind == PLAN_MATERIAL)
        return node;
    PlanNode *material = plan__node(b, PLAN_MATERIAL, node->columns);
    if (material == NULL) return NULL;
    material->input = node;
    material->klass = node->klass;
    material->rows = node->rows;
    material->u.material.material_no = U32_MAX;
    if (node->eqp != NULL && strncmp(node->eqp, "CO-ROUTINE ", 11) == 0) {
        material->eqp = arena_printf(b->arena, "MATERIALIZE %s", node->eqp + 11);
        node->eqp = NULL;
        if (material->eqp == NULL) return bind__fail(b, ERR_NOMEM, "out of memory");
    }
    return material;
}

static PlanNode *
loop_join(Binder *b, Join *join, const Step *step, PlanNode *left, Layout *left_layout, Env *outer,
          Layout **layout_out)
{
    Unit *u = &join->unit[step->unit];
    Env *left_env = BIND_NEW(b, Env), *boundary = BIND_NEW(b, Env), *row = BIND_NEW(b, Env);
    Layout *own = plan__layout(b, join->core);
    if (left_env == NULL || boundary == NULL || row == NULL || own == NULL) return NULL;
    *left_env = (Env){.outer = outer, .layout = left_layout};
    boundary->outer = left_env;
    *row = (Env){.outer = boundary, .layout = own};
    PlanNode *right = unit_node(b, join, step->unit, &step->access, layout_mask(join, left_layout),
                                own, boundary);
    if (right == NULL) return NULL;
    if (boundary->count == 0) right = keep_rows(b, right);
    if (right == NULL) return NULL;
    u64 done = u->mask | layout_mask(join, left_layout);
    ExprList terms = {0};
    if (!take_terms(b, join, done, 0, step->unit, &terms)) return NULL;
    u8 kind = join_kind(u->join);
    if (kind == JOIN_INNER && (!join->fixed_order || step->unit >= join->where_from) &&
        !take_terms(b, join, done, u->mask, -1, &terms))
        return NULL;
    right = unit_filter(b, right, &terms, row);
    PlanNode *node = right == NULL ? NULL : join_node(b, PLAN_LOOP_JOIN, left, right);
    if (node == NULL || !layout_add(b, join, left_layout, own, layout_out)) return NULL;
    node->u.loop.join = kind;
    node->u.loop.bind_count = boundary->count;
    node->u.loop.bind_reg = KEEP_ARRAY(b, u32, boundary->count);
    node->u.loop.bind_column = KEEP_ARRAY(b, u32, boundary->count);
    if (node->u.loop.bind_reg == NULL || node->u.loop.bind_column == NULL) return NULL;
    for (u32 i = 0; i < boundary->count; i++) {
        node->u.loop.bind_reg[i] = boundary->entry[i].reg;
        node->u.loop.bind_column[i] = boundary->entry[i].from->u.number;
    }
    return node;
}

typedef struct HashKeys {
    ExprList probe, build;
    PlanStamp *stamp;
    bool *null_safe;
} HashKeys;

/* Equalities between the unit and what stands left of it become keys. */
static bool
take_hash_keys(Binder *b, Join *join, u32 unit, u64 left_mask, bool inner, HashKeys *keys)
{
    const Unit *u = &join->unit[unit];
    keys->stamp = KEEP_ARRAY(b, PlanStamp, join->term_count);
    keys->null_safe = KEEP_ARRAY(b, bool, join->term_count);
    if (keys->stamp == NULL || keys->null_safe == NULL) return false;
    for (u32 i = 0; i < join->term_count; i++) {
        Term *term = &join->term[i];
        const PlanExpr *e = term->expr;
        if (term->placed || (e->op != PX_EQ && e->op != PX_IS)) continue;
        if (e->klass != PLAN_TOTAL || plan__has_sub(e)) continue;
        if (term->on ? term->unit != unit : !inner) continue;
        u64 l = plan__mask(join->core, e->arg[0]), r = plan__mask(join->core, e->arg[1]);
        u32 build;
        if (l != 0 && (l & ~u->mask) == 0 && r != 0 && (r & ~left_mask) == 0) {
            build = 0;
        } else if (r != 0 && (r & ~u->mask) == 0 && l != 0 && (l & ~left_mask) == 0) {
            build = 1;
        } else {
            continue;
        }
        keys->stamp[keys->build.count] = (PlanStamp){e->cmp_affinity, e->collation};
        keys->null_safe[keys->build.count] = e->op == PX_IS;
        if (!bind__push(b, &keys->build, e->arg[build])) return false;
        if (!bind__push(b, &keys->probe, e->arg[1 - build])) return false;
        term->placed = true;
    }
    return true;
}

/* EXPLAIN QUERY PLAN speaks of what SQLite would do here. */
static bool
name_build_side(Binder *b, const Unit *u, const Step *step, PlanNode *right, const ExprList *keys)
{
    if (u->source == NULL) return true;
    if (step->instead)
        return plan__name_access(b, right, u->source->name, &step->looked_up, u->join);
    return plan__name_hash(b, right, u->source, keys, u->join);
}

static PlanNode *
hash_join(Binder *b, Join *join, const Step *step, PlanNode *left, Layout *left_layout, Env *outer,
          Layout **layout_out)
{
    Unit *u = &join->unit[step->unit];
    u8 kind = join_kind(u->join);
    bool inner = kind == JOIN_INNER;
    Env *left_env = BIND_NEW(b, Env), *row = BIND_NEW(b, Env), *both = BIND_NEW(b, Env);
    Layout *own = plan__layout(b, join->core);
    if (left_env == NULL || row == NULL || both == NULL || own == NULL) return NULL;
    *left_env = (Env){.outer = outer, .layout = left_layout};
    *row = (Env){.outer = outer, .layout = own};
    PlanNode *right = unit_node(b, join, step->unit, &step->access, 0, own, outer);
    if (right == NULL) return NULL;
    u64 left_mask = layout_mask(join, left_layout);
    bool where_too = inner && (!join->fixed_order || step->unit >= join->where_from);
    /* What concerns the build side alone is tested before building, but not where its unmatched
       rows are wanted. */
    ExprList own_terms = {0};
    if (kind == JOIN_INNER || kind == JOIN_LEFT) {
        if (!take_terms(b, join, u->mask, u->mask, step->unit, &own_terms)) return NULL;
        if (where_too && !take_terms(b, join, u->mask, u->mask, -1, &own_terms)) return NULL;
    }
    right = unit_filter(b, right, &own_terms, row);
    HashKeys keys = {0};
    if (right == NULL || !take_hash_keys(b, join, step->unit, left_mask, where_too, &keys))
        return NULL;
    ExprList rest = {0};
    if (!take_terms(b, join, left_mask | u->mask, 0, step->unit, &rest)) return NULL;
    if (where_too && !take_terms(b, join, left_mask | u->mask, u->mask, -1, &rest)) return NULL;
    PlanNode *node = join_node(b, PLAN_HASH_JOIN, left, right);
    if (node == NULL || !layout_add(b, join, left_layout, own, layout_out)) return NULL;
    *both = (Env){.outer = outer, .layout = *layout_out};
    if (!name_build_side(b, u, step, right, &keys.build)) return NULL;
    node->u.hash.join = kind;
    node->u.hash.key_count = keys.build.count;
    node->u.hash.probe_key = plan__lower_list(b, &keys.probe, left_env);
    node->u.hash.build_key = plan__lower_list(b, &keys.build, row);
    if (node->u.hash.probe_key == NULL || node->u.hash.build_key == NULL) return NULL;
    node->u.hash.stamp = keys.stamp;
    node->u.hash.null_safe = keys.null_safe;
    node->u.hash.condition = plan__lower_and(b, rest.items, rest.count, both);
    plan__class(node, node->u.hash.condition);
    return b->err == OK ? node : NULL;
}

static PlanNode *
first_node(Binder *b, Join *join, const Step *step, Env *outer, Layout **layout_out)
{
    Unit *u = &join->unit[step->unit];
    Layout *own = plan__layout(b, join->core);
    Env *row = BIND_NEW(b, Env);
    if (own == NULL || row == NULL) return NULL;
    *row = (Env){.outer = outer, .layout = own};
    PlanNode *node = unit_node(b, join, step->unit, &step->access, 0, own, outer);
    if (node == NULL) return NULL;
    *layout_out = own;
    if (join->fixed_order && join->where_from > 0) return node;
    ExprList constants = {0}, terms = {0};
    if (!take_terms(b, join, 0, 0, -1, &constants)) return NULL;
    if (!take_terms(b, join, u->mask, u->mask, -1, &terms)) return NULL;
    node = unit_filter(b, node, &terms, row);
    if (node == NULL || constants.count == 0) return node;
    return plan__filter(b, node, plan__lower_and(b, constants.items, constants.count, outer));
}

/* WHERE terms that could not go into an inner side. */
static PlanNode *
late_terms(Binder *b, Join *join, PlanNode *node, Layout *layout, Env *outer, u32 position,
           const Step *step)
{
    if (join->fixed_order && step->unit < join->where_from) return node;
    (void)position;
    ExprList terms = {0};
    if (!take_terms(b, join, layout_mask(join, layout), 0, -1, &terms)) return NULL;
    if (terms.count == 0) return node;
    Env *env = BIND_NEW(b, Env);
    if (env == NULL) return NULL;
    *env = (Env){.outer = outer, .layout = layout};
    return plan__filter(b, node, plan__lower_and(b, terms.items, terms.count, env));
}

static PlanNode *
plan_list(Binder *b, Core *core, FromList *list, const ExprList *where, Env *outer, Join *join,
          Layout **layout_out)
{
    bool want_order = join->order_of != NULL || join->order_group != NULL;
    if (!join_setup(b, join, core, list, where)) return NULL;
    if (join->fixed_order) want_order = false;
    if (!plan__push_down(b, join)) return NULL;
    Step *steps = BIND_ARRAY(b, Step, list->count);
    if (steps == NULL || !plan__find_order(b, join, steps, want_order)) return NULL;
    if (b->ctx->reverse_unordered && !want_order && !join->for_write) {
        for (u32 i = 0; i < list->count; i++)
            steps[i].access.backwards = true;
    }
    PlanNode *node = first_node(b, join, &steps[0], outer, layout_out);
    for (u32 i = 1; i < list->count && node != NULL; i++) {
        bool right = (join->unit[steps[i].unit].join & AST_JOIN_RIGHT) != 0;
        Layout *layout = NULL;
        plan__choose_method(b, join, layout_mask(join, *layout_out), &steps[i]);
        /* Rows that ON refuses are wanted too: all are read. */
        if (right) {
            steps[i].access = (Access){.low = -1, .high = -1, .covering = true};
            steps[i].access.rows = join->unit[steps[i].unit].rows;
        }
        if (steps[i].hash || right) {
            node = hash_join(b, join, &steps[i], node, *layout_out, outer, &layout);
        } else {
            node = loop_join(b, join, &steps[i], node, *layout_out, outer, &layout);
        }
        if (node == NULL) return NULL;
        node->rows = steps[i].rows;
        *layout_out = layout;
        node = late_terms(b, join, node, layout, outer, i, &steps[i]);
    }
    return b->err == OK ? node : NULL;
}

PlanNode *
plan__join(Binder *b, Core *core, Join *join, Env *outer, Layout **layout_out)
{
    if (core->from.count > 0) {
        join->outer = outer;
        return plan_list(b, core, &core->from, &core->where, outer, join, layout_out);
    }
    PlanNode *node = plan__node(b, PLAN_ONE_ROW, 0);
    *layout_out = plan__layout(b, core);
    if (node == NULL || *layout_out == NULL) return NULL;
    node->rows = 1;
    if (core->where.count == 0) return node;
    return plan__filter(b, node, plan__lower_and(b, core->where.items, core->where.count, outer));
}
