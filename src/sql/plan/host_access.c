/*
 * host_access.c -- virtual tables in joins: which terms are offered to them, what they answer, and
 * the scan that comes of it.
 *
 * A virtual table chooses its own access: it is asked once for each set of terms that may be at
 * hand (HostTableOps.best_index).  A term that it does not promise to test is tested above it.
 */
#include "sql/plan/build.h"

#include <math.h>

#define COST_MAX 1e60

/* ---- which terms are offered ---- */

static bool
push_term(Binder *b, Join *join, Unit *unit, HostTerm term)
{
    if (unit->host_term_count == unit->host_term_capacity) {
        u32 capacity = unit->host_term_capacity == 0 ? 8 : unit->host_term_capacity * 2;
        HostTerm *list = BIND_ARRAY(b, HostTerm, capacity);
        if (list == NULL) return false;
        if (unit->host_term_count > 0)
            memcpy(list, unit->host_term, unit->host_term_count * sizeof(*list));
        unit->host_term = list;
        unit->host_term_capacity = capacity;
    }
    if (term.value != NULL && term.kind == HOST_TERM_VALUE)
        term.mask = plan__mask(join->core, term.value);
    if ((term.mask & unit->mask) != 0) return true; /* Compares the table with itself. */
    unit->host_term[unit->host_term_count++] = term;
    return true;
}

/* Is this side a column of the unit? */
static bool
is_column(const Unit *unit, const PlanExpr *side, i32 *column_out)
{
    side = plan__see_through(side);
    if (side->op != PX_BOUND_COLUMN || side->u.bound.of != unit->source) return false;
    u32 column = side->u.bound.column;
    *column_out = column == COLUMN_ROWID ? HOST_COLUMN_ROWID : (i32)column;
    return true;
}

static u8
op_of(u8 op, bool turned)
{
    switch (op) {
    case PX_EQ: return HOST_EQ;
    case PX_IS: return HOST_IS;
    case PX_NE: return HOST_NE;
    case PX_IS_NOT: return HOST_IS_NOT;
    case PX_LT: return turned ? HOST_GT : HOST_LT;
    case PX_LE: return turned ? HOST_GE : HOST_LE;
    case PX_GT: return turned ? HOST_LT : HOST_GT;
    default: return turned ? HOST_LE : HOST_GE;
    }
}

static bool
offer_compare(Binder *b, Join *join, Unit *unit, u32 number, const PlanExpr *e)
{
    for (u32 side = 0; side < 2; side++) {
        HostTerm term = {.term = number, .exact = true, .op = op_of(e->op, side == 1)};
        term.collation = e->collation;
        if (!is_column(unit, e->arg[side], &term.column)) continue;
        term.value = e->arg[1 - side];
        if (!push_term(b, join, unit, term)) return false;
    }
    return true;
}

static bool
offer_between(Binder *b, Join *join, Unit *unit, u32 number, const PlanExpr *e)
{
    HostTerm term = {.term = number, .op = HOST_GE, .value = e->arg[1]};
    term.collation = e->u.between.low.collation;
    if (!is_column(unit, e->arg[0], &term.column)) return true;
    if (!push_term(b, join, unit, term)) return false;
    term.op = HOST_LE;
    term.mask = 0;
    term.value = e->arg[2];
    term.collation = e->u.between.high.collation;
    return push_term(b, join, unit, term);
}

bool
plan__list_term(const Join *join, const PlanExpr *e, HostTerm *term)
{
    term->mask = 0;
    if (e->op == PX_IN_SUB) {
        term->kind = HOST_TERM_SUB;
        term->affinity = e->u.sub->cmp[0].affinity;
        term->collation = e->u.sub->cmp[0].collation;
        PlanExpr only_sub = *e;
        only_sub.arg_count = 0;
        term->mask = plan__mask(join->core, &only_sub);
        return (e->flags & PX_FLAG_NOT) == 0 && e->arg_count == 1;
    }
    if (e->op != PX_IN_LIST) return false;
    term->kind = HOST_TERM_LIST;
    term->affinity = e->cmp_affinity;
    term->collation = e->collation;
    for (u32 i = 1; i < e->arg_count; i++)
        term->mask |= plan__mask(join->core, e->arg[i]);
    return (e->flags & PX_FLAG_NOT) == 0;
}

static bool
offer_list(Binder *b, Join *join, Unit *unit, u32 number, const PlanExpr *e)
{
    HostTerm term = {.term = number, .exact = true, .op = HOST_EQ, .value = e};
    if (!is_column(unit, e->arg[0], &term.column)) return true;
    return !plan__list_term(join, e, &term) || push_term(b, join, unit, term);
}

/* column LIKE x and its kin are calls like(x, column); a function of the table's own is f(column,
   x). */
static bool
offer_call(Binder *b, Join *join, Unit *unit, u32 number, const PlanExpr *e)
{
    static const struct {
        const char *name;
        u8 op;
    } known[] = {
        {"like", HOST_LIKE}, {"glob", HOST_GLOB}, {"match", HOST_MATCH}, {"regexp", HOST_REGEXP}};
    if (e->arg_count != 2) return true;
    HostTerm term = {.term = number, .exact = true};
    term.collation = e->collation;
    for (u32 i = 0; i < COUNT_OF(known); i++) {
        if (strcmp(e->u.func.def->name, known[i].name) != 0) continue;
        if (!is_column(unit, e->arg[1], &term.column)) break;
        term.op = known[i].op;
        term.value = e->arg[0];
        return push_term(b, join, unit, term);
    }
    HostTable *host = unit->source->table->host;
    if (host->ops->find_function == NULL || !is_column(unit, e->arg[0], &term.column)) return true;
    u8 op = 0;
    const FuncDef *own = host->ops->find_function(host, e->u.func.def->name, 2, &op);
    if (own == NULL || op < HOST_FUNCTION) return true;
    term.op = op;
    term.value = e->arg[1];
    return push_term(b, join, unit, term);
}

static bool
offer_term(Binder *b, Join *join, Unit *unit, u32 number)
{
    const PlanExpr *e = join->term[number].expr;
    HostTerm term = {.term = number, .exact = true};
    switch (e->op) {
    case PX_EQ:
    case PX_IS:
    case PX_NE:
    case PX_IS_NOT:
    case PX_LT:
    case PX_LE:
    case PX_GT:
    case PX_GE: return offer_compare(b, join, unit, number, e);
    case PX_BETWEEN:
        return (e->flags & PX_FLAG_NOT) != 0 || offer_between(b, join, unit, number, e);
    case PX_IN_LIST:
    case PX_IN_SUB: return offer_list(b, join, unit, number, e);
    case PX_IS_NULL:
    case PX_NOT_NULL:
        term.op = e->op == PX_IS_NULL ? HOST_IS_NULL : HOST_IS_NOT_NULL;
        return !is_column(unit, e->arg[0], &term.column) || push_term(b, join, unit, term);
    case PX_OR: {
        PlanExpr *in = plan__or_as_in(b, e);
        return b->err == OK && (in == NULL || offer_list(b, join, unit, number, in));
    }
    case PX_FUNC: return offer_call(b, join, unit, number, e);
    default: return true;
    }
}

bool
plan__host_terms(Binder *b, Join *join, u32 unit)
{
    Unit *u = &join->unit[unit];
    for (u32 i = 0; i < join->term_count; i++) {
        if ((join->term[i].mask & u->mask) == 0) continue;
        if (!plan__term_serves(join, unit, &join->term[i])) continue;
        if (!offer_term(b, join, u, i)) return false;
    }
    return true;
}

/* ---- the question ---- */

/* May the table see LIMIT?  Only if nothing above it drops or reorders rows. */
static const Query *
limit_of(const Join *join, const Unit *unit)
{
    const Core *core = join->core;
    const Query *query = core == NULL ? NULL : core->query;
    if (query == NULL || query->limit == NULL || query->arm_count != 1 || join->for_write)
        return NULL;
    if (core->source_count != 1 || core->distinct || core->is_aggregate) return NULL;
    for (u32 t = 0; t < join->term_count; t++) {
        bool offered = false;
        for (u32 i = 0; i < unit->host_term_count; i++)
            offered |= unit->host_term[i].term == t;
        if (!offered) return NULL;
    }
    for (u32 i = 0; i < query->order_count; i++) {
        const PlanExpr *e = query->order[i].expr;
        i32 column;
        if (query->order[i].result >= 0) e = core->results.items[query->order[i].result];
        if (e == NULL || !is_column(unit, e, &column)) return NULL;
    }
    return query;
}

/* ORDER BY (or GROUP BY, or DISTINCT) by columns of this table alone. */
static bool
fill_order(Binder *b, const Join *join, const Unit *unit, HostIndex *index)
{
    u32 count = 0;
    bool is_order = join->order_of != NULL;
    if (is_order) {
        count = join->order_of->order_count;
    } else if (join->order_group != NULL) {
        count = join->order_group->count;
    }
    if (count == 0) return true;
    index->order = BIND_ARRAY(b, HostOrder, count);
    if (index->order == NULL) return false;
    for (u32 i = 0; i < count; i++) {
        const PlanExpr *e = is_order ? join->order_of->order[i].expr : join->order_group->items[i];
        const OrderTerm *term = is_order ? &join->order_of->order[i] : NULL;
        if (term != NULL && e == NULL && term->result >= 0)
            e = join->core->results.items[term->result];
        if (e == NULL || !is_column(unit, e, &index->order[i].column)) return true;
        i32 column = index->order[i].column;
        const Collation *own = &collation_binary;
        if (column >= 0) own = unit->source->table->column[column].collation;
        if (column >= 0 && unit->source->table->column[column].host_collation != NULL) return true;
        if (term != NULL) {
            index->order[i].desc = term->desc;
            if (term->nulls_last != term->desc) return true;
            if (bind__collation_or_binary(own) != bind__collation_or_binary(term->collation))
                return true;
        }
    }
    index->order_count = count;
    const Core *core = join->core;
    if (is_order) return true;
    if (!core->has_group_by) {
        index->distinct = HOST_DISTINCT;
    } else if (core->query->order_count == 0) {
        index->distinct = HOST_GROUPED;
    }
    return true;
}

static u64
columns_used(const Source *source)
{
    u64 used = 0;
    for (u32 i = 0; i < source->column_count; i++) {
        if (source->used[i] != 0) used |= (u64)1 << MIN_OF(i, 63u);
    }
    return used;
}

static const Cell *
constant_of(const HostTerm *term)
{
    if (term->kind != HOST_TERM_VALUE || term->value == NULL) return NULL;
    const PlanExpr *e = plan__see_through(term->value);
    while (e->op == PX_PLUS)
        e = e->arg[0];
    return e->op == PX_CONST ? &e->u.constant : NULL;
}

typedef struct Ask {
    Binder *b;
    Join *join;
    u32 unit;
    u64 done;
    bool want_order, no_limit, only_own; /* only_own: nothing of other tables. */
} Ask;

/* The constraints: terms in their order, then LIMIT and OFFSET. */
static bool
fill_constraints(const Ask *ask, const Query *limit, HostAccess *access)
{
    Unit *u = &ask->join->unit[ask->unit];
    HostIndex *index = &access->index;
    index->constraint = BIND_ARRAY(ask->b, HostConstraint, u->host_term_count + 2u);
    if (index->constraint == NULL) return false;
    for (u32 i = 0; i < u->host_term_count; i++) {
        const HostTerm *term = &u->host_term[i];
        index->constraint[i] = (HostConstraint){
            .column = term->column,
            .op = term->op,
            .usable = (term->mask & ~ask->done) == 0,
            .is_list = term->kind != HOST_TERM_VALUE,
            .collation = bind__collation_or_binary(term->collation),
            .value = constant_of(term),
        };
    }
    index->constraint_count = u->host_term_count;
    if (limit == NULL) return true;
    access->limit = limit;
    const u8 ops[2] = {HOST_OFFSET, HOST_LIMIT};
    for (u32 i = limit->offset == NULL ? 1 : 0; i < 2; i++) {
        const PlanExpr *e = i == 0 ? limit->offset : limit->limit;
        index->constraint[index->constraint_count++] = (HostConstraint){
            .op = ops[i],
            .usable = !ask->no_limit,
            .collation = &collation_binary,
            .value = e->op == PX_CONST ? &e->u.constant : NULL,
        };
    }
    return true;
}

static bool
answers_fit(Binder *b, const Unit *unit, const HostIndex *index)
{
    u32 used = 0;
    for (u32 i = 0; i < index->constraint_count; i++)
        used += index->constraint[i].argument != 0;
    u64 seen = 0;
    for (u32 i = 0; i < index->constraint_count; i++) {
        const HostConstraint *c = &index->constraint[i];
        if (c->argument == 0) continue;
        bool fits = c->argument <= used && c->argument <= 64 && c->usable &&
                    (seen >> (c->argument - 1) & 1) == 0;
        if (!fits) {
            bind__fail(b, ERR_SQL, "%s.xBestIndex malfunction", unit->source->table->name);
            return false;
        }
        seen |= (u64)1 << (c->argument - 1);
    }
    return true;
}

/* A list is walked value by value: then the rows come in no order, and LIMIT may not be used. */
static bool
walks_list(const HostIndex *index)
{
    for (u32 i = 0; i < index->constraint_count; i++) {
        const HostConstraint *c = &index->constraint[i];
        if (c->argument != 0 && c->is_list && !c->takes_list) return true;
    }
    return false;
}

static bool
uses_limit(const HostIndex *index)
{
    for (u32 i = 0; i < index->constraint_count; i++) {
        const HostConstraint *c = &index->constraint[i];
        if (c->argument != 0 && (c->op == HOST_LIMIT || c->op == HOST_OFFSET)) return true;
    }
    return false;
}

/* NULL with b->err == OK: the table will not have these constraints. */
static HostAccess *
ask_table(const Ask *ask)
{
    Binder *b = ask->b;
    Unit *u = &ask->join->unit[ask->unit];
    HostTable *host = u->source->table->host;
    HostAccess *access = BIND_NEW(b, HostAccess);
    if (access == NULL) return NULL;
    HostIndex *index = &access->index;
    *index = (HostIndex){.cost = COST_MAX, .rows = 25, .arena = b->arena};
    const Query *limit = limit_of(ask->join, u);
    if (!fill_constraints(ask, limit, access)) return NULL;
    if (ask->want_order && !fill_order(b, ask->join, u, index)) return NULL;
    index->columns_used = columns_used(u->source);
    ErrMsg msg = {.sql_offset = -1};
    Err err = host->ops->best_index(host, index, &msg);
    if (err == ERR_CONSTRAINT) {
        err_clear(&msg);
        return NULL;
    }
    if (err != OK) {
        err_move(b->msg, &msg);
        b->err = err;
        return NULL;
    }
    if (!answers_fit(b, u, index)) return NULL;
    if (index->order_count == 0) index->ordered = false;
    if (walks_list(index)) {
        if (uses_limit(index) && !ask->no_limit) {
            Ask again = *ask;
            again.no_limit = true;
            return ask_table(&again);
        }
        index->ordered = false;
        index->one_row = false;
    }
    return access;
}

void
plan__host_choose(Binder *b, Join *join, u32 unit, u64 done, Access *best_out, bool want_order,
                  Access *ordered_out)
{
    Ask ask = {.b = b, .join = join, .unit = unit, .done = done, .want_order = want_order};
    HostAccess *host = ask_table(&ask);
    if (host == NULL) return;
    Access access = {.low = -1, .high = -1, .covering = true, .host = host};
    access.one_row = host->index.one_row;
    access.rows = (f64)MAX_OF(host->index.rows, 1);
    if (access.one_row) access.rows = 1;
    access.cost = MIN_OF(MAX_OF(host->index.cost, 0.0), COST_MAX);
    if (want_order && host->index.ordered) {
        *ordered_out = access;
        ordered_out->ordered = true;
    }
    *best_out = access;
}

/* ---- the scan ---- */

bool
plan__scan_arg(Binder *b, const HostTerm *term, Env *env, PlanScanArg *out)
{
    const PlanExpr *e = term->value;
    if (term->kind == HOST_TERM_SUB) {
        out->part.in_sub = plan__sub(b, (BoundSub *)(void *)e->u.sub, env, false);
        out->affinity = term->affinity;
        return out->part.in_sub != NULL;
    }
    if (term->kind == HOST_TERM_LIST) {
        out->part.in_count = e->arg_count - 1;
        out->part.in_list = KEEP_ARRAY(b, PlanExpr *, out->part.in_count);
        if (out->part.in_list == NULL) return false;
        for (u32 i = 0; i < out->part.in_count; i++) {
            PlanExpr *item = plan__lower(b, e->arg[i + 1], env);
            out->part.in_list[i] = item == NULL ? NULL : plan__affinity(b, item, term->affinity);
            if (out->part.in_list[i] == NULL) return false;
        }
        return true;
    }
    if (e == NULL) return true; /* IS NULL: the argument is NULL. */
    out->part.value = plan__lower(b, e, env);
    return out->part.value != NULL;
}

static bool
arguments(Binder *b, Join *join, Unit *unit, const HostAccess *access, Env *env, PlanNode *node)
{
    const HostIndex *index = &access->index;
    u32 count = 0;
    for (u32 i = 0; i < index->constraint_count; i++)
        count += index->constraint[i].argument != 0;
    node->u.host_scan.arg_count = count;
    node->u.host_scan.arg = KEEP_ARRAY(b, PlanScanArg, count);
    u32 *halves = BIND_ARRAY(b, u32, join->term_count);
    if (node->u.host_scan.arg == NULL || halves == NULL) return false;
    for (u32 i = 0; i < index->constraint_count; i++) {
        const HostConstraint *c = &index->constraint[i];
        if (c->argument == 0) continue;
        PlanScanArg *out = &node->u.host_scan.arg[c->argument - 1];
        if (i >= unit->host_term_count) {
            bool is_limit = c->op == HOST_LIMIT;
            out->part.value = plan__lower(
                b, is_limit ? access->limit->limit : access->limit->offset, NULL);
            if (out->part.value == NULL) return false;
            if (!is_limit && c->omit) ((Query *)(uintptr_t)access->limit)->offset_done = true;
            continue;
        }
        const HostTerm *term = &unit->host_term[i];
        out->whole_list = c->takes_list;
        out->check_cell = -1;
        if (term->kind != HOST_TERM_VALUE && !c->takes_list && !c->omit) {
            u32 place = term->column < 0 ? unit->source->column_count : (u32)term->column;
            out->check_cell = unit->source->cell_of[place];
            out->check = (PlanStamp){term->affinity, term->collation};
        }
        if (!plan__scan_arg(b, term, env, out)) return false;
        plan__class(node, out->part.value);
        if (!c->omit) continue;
        /* A BETWEEN is two constraints: both must be seen to. */
        if (term->exact || ++halves[term->term] == 2) join->term[term->term].placed = true;
    }
    return true;
}

static bool
scan_words(Binder *b, PlanNode *node, const Source *source, const HostIndex *index)
{
    if (!b->explain) return true;
    const char *text = index->text == NULL ? "" : index->text;
    const char *format = index->shows_hex ? "SCAN %s VIRTUAL TABLE INDEX 0x%x:%s"
                                          : "SCAN %s VIRTUAL TABLE INDEX %d:%s";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    node->eqp = arena_printf(b->arena, format, source->name, index->number, text);
#pragma GCC diagnostic pop
    return node->eqp != NULL || bind__fail(b, ERR_NOMEM, "out of memory") != NULL;
}

PlanNode *
plan__host_node(Binder *b, Join *join, u32 unit, const Access *access, Env *env)
{
    Unit *u = &join->unit[unit];
    Source *source = u->source;
    HostAccess *host = access->host;
    if (host == NULL) { /* A place where nothing may be pushed down. */
        Ask ask = {.b = b, .join = join, .unit = unit, .done = 0};
        host = ask_table(&ask);
        if (host == NULL) return bind__fail(b, ERR_SQL, "no query solution");
    }
    if (!plan__source_cells(b, source)) return NULL;
    PlanNode *node = plan__node(b, PLAN_HOST_SCAN, source->cell_count);
    if (node == NULL) return NULL;
    node->u.host_scan.table = source->table;
    node->u.host_scan.number = host->index.number;
    node->u.host_scan.text = host->index.text;
    node->u.host_scan.column = KEEP_ARRAY(b, u16, source->cell_count);
    if (node->u.host_scan.column == NULL || !arguments(b, join, u, host, env, node)) return NULL;
    node->u.host_scan.unchanged = join->host_unchanged;
    u32 at = 0;
    for (u32 i = 0; i <= source->column_count; i++) {
        if (source->used[i] == 0) continue;
        node->u.host_scan.column[at++] = i == source->column_count ? COLUMN_ROWID : (u16)i;
    }
    node->klass = MAX_OF(node->klass, (u8)PLAN_FALLIBLE);
    node->rows = access->rows;
    node->cost = access->cost;
    return scan_words(b, node, source, &host->index) ? node : NULL;
}
