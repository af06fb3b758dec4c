/*
 * access.c -- the ways into one table: whole scan, rowid, index; what each costs; the scan node.
 *
 * Costs are in units of reading one row of a table's tree divided by three, as SQLite weighs them,
 * so that the same choice comes out where the same facts are known.
 */
#include "sql/plan/build.h"

#include <math.h>

#define ROWS_MIN     1000.0
#define ROWS_UNKNOWN 1048576.0
#define COST_ROW     3.0
#define COST_LOOKUP  3.0
#define IN_SUB_ROWS  25.0
#define SELECT_EQ    0.1
#define SELECT_RANGE 0.33
#define SELECT_OTHER 0.75

f64
plan__table_rows(Binder *b, const TableDef *table)
{
    f64 rows = -1;
    if (table->has_stat) return MAX_OF(table->stat_rows, 1.0);
    if (b->ctx->table_rows != NULL) rows = b->ctx->table_rows(b->ctx->rows_arg, table);
    if (rows < 0) return ROWS_UNKNOWN;
    /* Small tables grow: plans for them should not change with every row. */
    return rows < ROWS_MIN ? ROWS_MIN : rows;
}

/* ---- probes ---- */

bool
plan__probe_push(Binder *b, Unit *unit, const Probe *probe)
{
    if (unit->probe_count == unit->probe_capacity) {
        u32 capacity = unit->probe_capacity == 0 ? 4 : unit->probe_capacity * 2;
        Probe *list = BIND_ARRAY(b, Probe, capacity);
        if (list == NULL) return false;
        if (unit->probe_count > 0) memcpy(list, unit->probe, unit->probe_count * sizeof(*list));
        unit->probe = list;
        unit->probe_capacity = capacity;
    }
    unit->probe[unit->probe_count++] = *probe;
    return true;
}

/* Is this side something an index of the unit may hold: a column, or an expression of columns? */
static bool
is_key_side(const Join *join, const Unit *unit, const PlanExpr *side, u16 *column_out)
{
    side = plan__see_through(side);
    *column_out = COLUMN_EXPR;
    if (side->op == PX_BOUND_COLUMN) {
        if (side->u.bound.of != unit->source) return false;
        *column_out = (u16)side->u.bound.column;
        return true;
    }
    if (side->op == PX_CONST || side->op == PX_PARAM) return false;
    return plan__mask(join->core, side) == unit->mask;
}

static bool
probe_side(Binder *b, Join *join, Unit *unit, Probe probe, const PlanExpr *key,
           const PlanExpr *value)
{
    if (!is_key_side(join, unit, key, &probe.column)) return true;
    probe.mask = plan__mask(join->core, value);
    if ((probe.mask & unit->mask) != 0) return true;
    probe.key = plan__see_through(key);
    probe.value = value;
    return plan__probe_push(b, unit, &probe);
}

static u8
turned(u8 op)
{
    switch (op) {
    case PX_LT: return PX_GT;
    case PX_LE: return PX_GE;
    case PX_GT: return PX_LT;
    case PX_GE: return PX_LE;
    default: return op;
    }
}

static Probe
probe_of(u8 op, u32 term)
{
    Probe probe = {.term = term, .exact = true};
    switch (op) {
    case PX_EQ: probe.kind = PROBE_EQ; break;
    case PX_IS: probe.kind = PROBE_IS; break;
    case PX_GT: probe.kind = PROBE_LOW; break;
    case PX_GE:
        probe.kind = PROBE_LOW;
        probe.inclusive = true;
        break;
    case PX_LT: probe.kind = PROBE_HIGH; break;
    default:
        probe.kind = PROBE_HIGH;
        probe.inclusive = true;
        break;
    }
    return probe;
}

static bool
probe_compare(Binder *b, Join *join, Unit *unit, u32 number, const PlanExpr *e)
{
    for (u32 side = 0; side < 2; side++) {
        Probe probe = probe_of(side == 0 ? e->op : turned(e->op), number);
        probe.affinity = e->cmp_affinity;
        probe.collation = e->collation;
        if (!probe_side(b, join, unit, probe, e->arg[side], e->arg[1 - side])) return false;
    }
    return true;
}

static bool
probe_between(Binder *b, Join *join, Unit *unit, u32 number, const PlanExpr *e)
{
    Probe probe = {.kind = PROBE_LOW, .inclusive = true, .term = number};
    probe.affinity = e->u.between.low.affinity;
    probe.collation = e->u.between.low.collation;
    if (!probe_side(b, join, unit, probe, e->arg[0], e->arg[1])) return false;
    probe.kind = PROBE_HIGH;
    probe.affinity = e->u.between.high.affinity;
    probe.collation = e->u.between.high.collation;
    return probe_side(b, join, unit, probe, e->arg[0], e->arg[2]);
}

static bool
probe_in_list(Binder *b, Join *join, Unit *unit, u32 number, const PlanExpr *e)
{
    Probe probe = {.kind = PROBE_IN, .term = number, .exact = true};
    probe.affinity = e->cmp_affinity;
    probe.collation = e->collation;
    if (!is_key_side(join, unit, e->arg[0], &probe.column)) return true;
    for (u32 i = 1; i < e->arg_count; i++)
        probe.mask |= plan__mask(join->core, e->arg[i]);
    if ((probe.mask & unit->mask) != 0) return true;
    probe.key = plan__see_through(e->arg[0]);
    probe.value = e;
    return plan__probe_push(b, unit, &probe);
}

static bool
probe_in_sub(Binder *b, Join *join, Unit *unit, u32 number, const PlanExpr *e)
{
    Probe probe = {.kind = PROBE_IN_SUB, .term = number, .exact = true};
    probe.affinity = e->u.sub->cmp[0].affinity;
    probe.collation = e->u.sub->cmp[0].collation;
    if (!is_key_side(join, unit, e->arg[0], &probe.column)) return true;
    PlanExpr only_sub = *e;
    only_sub.arg_count = 0;
    probe.mask = plan__mask(join->core, &only_sub);
    if ((probe.mask & unit->mask) != 0) return true;
    probe.key = plan__see_through(e->arg[0]);
    probe.value = e;
    return plan__probe_push(b, unit, &probe);
}

static bool
term_probes(Binder *b, Join *join, Unit *unit, u32 number)
{
    const PlanExpr *e = join->term[number].expr;
    switch (e->op) {
    case PX_EQ:
    case PX_IS:
    case PX_LT:
    case PX_LE:
    case PX_GT:
    case PX_GE: return probe_compare(b, join, unit, number, e);
    case PX_BETWEEN: return probe_between(b, join, unit, number, e);
    case PX_IN_LIST:
        return (e->flags & PX_FLAG_NOT) != 0 || probe_in_list(b, join, unit, number, e);
    case PX_IN_SUB:
        return (e->flags & PX_FLAG_NOT) != 0 || e->arg_count != 1 ||
               probe_in_sub(b, join, unit, number, e);
    case PX_IS_NULL: {
        Probe probe = {.kind = PROBE_IS, .term = number, .exact = true};
        if (!is_key_side(join, unit, e->arg[0], &probe.column)) return true;
        probe.key = plan__see_through(e->arg[0]);
        probe.value = bind__const(b, cell_null(), (Span){0, 0});
        return probe.value != NULL && plan__probe_push(b, unit, &probe);
    }
    case PX_OR: {
        PlanExpr *in = plan__or_as_in(b, e);
        if (in != NULL) return probe_in_list(b, join, unit, number, in);
        return b->err == OK && plan__or_prepare(b, join, (u32)(unit - join->unit), number);
    }
    case PX_FUNC: return plan__probe_like(b, join, unit, number, e);
    default: return true;
    }
}

bool
plan__term_serves(const Join *join, u32 unit, const Term *term)
{
    if (term->on) return term->unit == unit;
    u8 joined = join->unit[unit].join;
    if ((joined & (AST_JOIN_LEFT | AST_JOIN_RIGHT)) != 0) return false;
    return !join->fixed_order || unit >= join->where_from;
}

bool
plan__find_probes(Binder *b, Join *join, u32 unit)
{
    Unit *u = &join->unit[unit];
    if (plan__is_host(u)) return plan__host_terms(b, join, unit);
    if (u->source == NULL || u->source->kind != SOURCE_TABLE || b->ctx->plain) return true;
    for (u32 i = 0; i < join->term_count; i++) {
        if ((join->term[i].mask & u->mask) == 0) continue;
        if (!plan__term_serves(join, unit, &join->term[i])) continue;
        if (!term_probes(b, join, u, i)) return false;
    }
    return true;
}

/* ---- indexes ---- */

static bool
affinity_fits(u8 compare, u8 column)
{
    if (compare <= AFFINITY_BLOB) return true;
    if (compare == AFFINITY_TEXT) return column == AFFINITY_TEXT;
    return column >= AFFINITY_NUMERIC;
}

/* Bind the expressions and the condition of one index over the source, once. */
static bool
index_prepare(Binder *b, Source *source, u32 number)
{
    const TableDef *table = source->table;
    const IndexDef *index = table->index[number];
    if (source->index_expr == NULL) {
        source->index_expr = BIND_ARRAY(b, PlanExpr **, table->index_count);
        source->index_where = BIND_ARRAY(b, ExprList, table->index_count);
        if (source->index_expr == NULL || source->index_where == NULL) return false;
    }
    if (source->index_expr[number] != NULL) return true;
    source->index_expr[number] = BIND_ARRAY(b, PlanExpr *, index->key_columns);
    if (source->index_expr[number] == NULL) return false;
    for (u32 i = 0; i < index->key_columns; i++) {
        if (index->column[i].column != COLUMN_EXPR) continue;
        source->index_expr[number][i] = bind__schema_expr(
            b, source, bind__text(index->column[i].expr_sql), "index expressions", true);
        if (source->index_expr[number][i] == NULL) return false;
    }
    if (index->where_sql == NULL) return true;
    return bind__schema_conjuncts(b, source, bind__text(index->where_sql),
                                  "partial index WHERE clauses", &source->index_where[number]);
}

static bool
index_has_exprs(const IndexDef *index)
{
    for (u32 i = 0; i < index->key_columns; i++) {
        if (index->column[i].column == COLUMN_EXPR) return true;
    }
    return index->where_sql != NULL;
}

/* Does `term`, being true, prove that `e` (x IS NOT NULL) is true? */
static bool
proves_not_null(const PlanExpr *term, const PlanExpr *column)
{
    switch (term->op) {
    case PX_EQ:
    case PX_NE:
    case PX_LT:
    case PX_LE:
    case PX_GT:
    case PX_GE:
        return bind__equal(plan__see_through(term->arg[0]), column) ||
               bind__equal(plan__see_through(term->arg[1]), column);
    case PX_BETWEEN: return bind__equal(plan__see_through(term->arg[0]), column);
    case PX_IN_LIST:
        return (term->flags & PX_FLAG_NOT) == 0 &&
               bind__equal(plan__see_through(term->arg[0]), column);
    case PX_FUNC:
        return (term->u.func.def->flags & FUNC_LIKE) != 0 && term->arg_count >= 2 &&
               bind__equal(plan__see_through(term->arg[1]), column);
    default: return false;
    }
}

static bool
term_implies(const PlanExpr *term, const PlanExpr *wanted)
{
    if (bind__equal(term, wanted)) return true;
    if (wanted->op == PX_NOT_NULL && proves_not_null(term, wanted->arg[0])) return true;
    if (wanted->op == PX_OR) {
        for (u32 i = 0; i < wanted->arg_count; i++) {
            if (term_implies(term, wanted->arg[i])) return true;
        }
    }
    return false;
}

static bool
partial_holds(const Join *join, u32 unit, const ExprList *where)
{
    for (u32 w = 0; w < where->count; w++) {
        bool proven = false;
        for (u32 i = 0; i < join->term_count && !proven; i++) {
            if (!plan__term_serves(join, unit, &join->term[i])) continue;
            proven = term_implies(join->term[i].expr, where->items[w]);
        }
        if (!proven) return false;
    }
    return true;
}

static u32
type_width(const ColumnDef *column)
{
    if (column->affinity >= AFFINITY_NUMERIC || column->type_text == NULL) return 1;
    const char *paren = strchr(column->type_text, '(');
    if (paren == NULL) return 5;
    u32 value = 0;
    for (paren++; *paren >= '0' && *paren <= '9' && value < 100000; paren++)
        value = value * 10 + (u32)(*paren - '0');
    return MIN_OF(value / 4 + 1, 255u);
}

static u32
table_width(const TableDef *table)
{
    if (table->stat_row_bytes > 0) return MAX_OF(table->stat_row_bytes / 4, 1u);
    u32 width = table->rowid_column == COLUMN_ROWID ? 1 : 0;
    for (u32 i = 0; i < table->column_count; i++)
        width += type_width(&table->column[i]);
    return width;
}

static u32
index_width(const IndexDef *index)
{
    const TableDef *table = index->table;
    if (index->stat_row_bytes > 0) return MAX_OF(index->stat_row_bytes / 4, 1u);
    u32 width = 0;
    for (u32 i = 0; i < index->key_columns; i++) {
        u16 column = index->column[i].column;
        width += column < table->column_count ? type_width(&table->column[column]) : 1;
    }
    if (!table->without_rowid) return width + 1;
    for (u32 i = 0; i < table->primary_key->key_columns; i++)
        width += type_width(&table->column[table->primary_key->column[i].column]);
    return width;
}

const IndexDef *
plan__smallest_index(const TableDef *table)
{
    const IndexDef *best = NULL;
    u32 width = table_width(table);
    for (u32 i = 0; i < table->index_count; i++) {
        const IndexDef *index = table->index[i];
        if (index->where_sql != NULL || index == table->primary_key) continue;
        if (index_width(index) >= width) continue;
        best = index;
        width = index_width(index);
    }
    return best;
}

static bool
index_holds(const IndexDef *index, u32 column)
{
    for (u32 i = 0; i < index->key_columns; i++) {
        if (index->column[i].column == column) return true;
    }
    const TableDef *table = index->table;
    if (table->without_rowid) {
        const IndexDef *key = table->primary_key;
        for (u32 i = 0; i < key->key_columns; i++) {
            if (key->column[i].column == column) return true;
        }
        return false;
    }
    return column == COLUMN_ROWID || column == table->rowid_column;
}

/* All cells that the scan must yield are in the index. */
static bool
index_covers(const Source *source, const IndexDef *index)
{
    if (index == source->table->primary_key) return true;
    for (u32 i = 0; i < source->column_count; i++) {
        if (source->used[i] == 0 || source->table->column[i].generated == 1) continue;
        if (!index_holds(index, i)) return false;
    }
    return true;
}

/* ---- cost ---- */

typedef struct Chooser {
    Binder *b;
    Join *join;
    u32 unit;
    Unit *u;
    Source *source;
    u64 done;
    f64 table_rows;
    u32 width; /* of the table */
    Access *best;
    Access *ordered;
    bool want_order;
} Chooser;

static f64
log_of(f64 rows)
{
    return rows < 2 ? 1 : log2(rows);
}

static f64
in_count(const Probe *probe)
{
    return probe->kind == PROBE_IN ? (f64)(probe->value->arg_count - 1) : IN_SUB_ROWS;
}

static bool
probe_at_hand(const Chooser *c, const Probe *probe)
{
    return (probe->mask & ~c->done) == 0;
}

static bool
probe_fits(const Chooser *c, const Probe *probe, const IndexColumn *column, const PlanExpr *expr)
{
    if (!probe_at_hand(c, probe)) return false;
    u8 affinity = AFFINITY_NONE;
    const Collation *carried = NULL;
    if (expr != NULL) {
        if (probe->column != COLUMN_EXPR || !bind__equal(probe->key, expr)) return false;
        affinity = expr->affinity;
        carried = column->collation;
        /* A computed value without affinity: conversions of both sides cannot be undone. */
        if (probe->affinity > AFFINITY_BLOB && !affinity_fits(probe->affinity, affinity))
            return false;
    } else {
        if (probe->column != column->column) return false;
        affinity = c->source->table->column[column->column].affinity;
        carried = column->collation;
        if (!affinity_fits(probe->affinity, affinity)) return false;
    }
    /* Also of a column of numbers, which may hold text that is none; a rowid never does. */
    if (column->column == COLUMN_ROWID && expr == NULL) return true;
    if (probe->value->op == PX_CONST && probe->value->u.constant.type == CELL_NULL) return true;
    return bind__collation_or_binary(carried) == bind__collation_or_binary(probe->collation);
}

/* Selectivity of the terms that remain to be tested once the unit is in. */
static f64
filter_part(const Chooser *c, const Access *access)
{
    f64 part = 1.0;
    for (u32 t = 0; t < c->u->term_count; t++) {
        u32 i = c->u->term[t];
        const Term *term = &c->join->term[i];
        if ((term->mask & ~(c->done | c->u->mask)) != 0) continue;
        if (term->on && term->unit != c->unit) continue;
        bool used = false;
        for (u32 k = 0; k < access->eq_count; k++)
            used |= c->u->probe[access->eq[k]].term == i;
        if (access->low >= 0) used |= c->u->probe[access->low].term == i;
        if (access->high >= 0) used |= c->u->probe[access->high].term == i;
        if (used) continue;
        u8 op = term->expr->op;
        if (term->part > 0) {
            part *= term->part;
        } else if (op == PX_EQ || op == PX_IS || op == PX_IS_NULL) {
            part *= SELECT_EQ;
        } else if (op == PX_LT || op == PX_LE || op == PX_GT || op == PX_GE || op == PX_BETWEEN) {
            part *= SELECT_RANGE;
        } else {
            part *= SELECT_OTHER;
        }
    }
    return part;
}

static u32 order_prefix(const Chooser *c, const Access *access, bool *backwards_out);

static bool
uses_term(const Chooser *c, const Access *access, u32 term)
{
    for (u32 i = 0; i < access->eq_count; i++) {
        if (c->u->probe[access->eq[i]].term == term) return true;
    }
    return (access->low >= 0 && c->u->probe[access->low].term == term) ||
           (access->high >= 0 && c->u->probe[access->high].term == term);
}

static u32
terms_used(const Access *access)
{
    return access->eq_count + (access->low >= 0 ? 1u : 0u) + (access->high >= 0 ? 1u : 0u);
}

/* Do look-ups by index `less` use some of the terms that `more` uses, and no others? */
static bool
uses_fewer(const Chooser *c, const Access *less, const Access *more)
{
    if (less->index == NULL || more->index == NULL) return false;
    u32 count = terms_used(less);
    if (count == 0 || count >= terms_used(more)) return false;
    if (less->covering && !more->covering) return false;
    for (u32 i = 0; i < less->eq_count; i++) {
        if (!uses_term(c, more, c->u->probe[less->eq[i]].term)) return false;
    }
    return (less->low < 0 || uses_term(c, more, c->u->probe[less->low].term)) &&
           (less->high < 0 || uses_term(c, more, c->u->probe[less->high].term));
}

/* Whatever the numbers of ANALYZE say, more terms do not find more rows. */
static bool
is_better(const Chooser *c, const Access *access, const Access *than)
{
    bool cheaper = access->cost < than->cost;
    if (cheaper ? uses_fewer(c, access, than) : uses_fewer(c, than, access)) return !cheaper;
    return cheaper;
}

static void
offer(Chooser *c, Access *access)
{
    access->rows *= filter_part(c, access);
    if (!access->one_row && access->rows < 0.01) access->rows = 0.01;
    if (is_better(c, access, c->best)) {
        access->cost = MIN_OF(access->cost, c->best->cost);
        *c->best = *access;
    }
    if (c->want_order && access->cost < c->ordered->cost) {
        bool backwards = false;
        if (order_prefix(c, access, &backwards) != 0) {
            *c->ordered = *access;
            c->ordered->ordered = true;
            c->ordered->backwards = backwards;
        }
    }
}

static f64
range_part(const Access *access)
{
    if (access->low >= 0 && access->high >= 0) return 1.0 / 64;
    return access->low >= 0 || access->high >= 0 ? 0.25 : 1.0;
}

/* The table's own tree by rowid.  True: one row, and nothing can be better. */
static bool
offer_rowid(Chooser *c)
{
    const TableDef *table = c->source->table;
    f64 rows = c->table_rows;
    u32 rowid = table->rowid_column == COLUMN_ROWID ? COLUMN_ROWID : table->rowid_column;
    Access scan = {.low = -1, .high = -1, .covering = true};
    scan.rows = rows;
    scan.cost = rows * COST_ROW;
    if (c->source->indexed_by == NULL) offer(c, &scan);
    if (table->without_rowid || c->source->indexed_by != NULL) return false;
    Access range = {.low = -1, .high = -1, .covering = true};
    for (u32 i = 0; i < c->u->probe_count; i++) {
        const Probe *probe = &c->u->probe[i];
        if (probe->column != rowid || !probe_at_hand(c, probe)) continue;
        if (!affinity_fits(probe->affinity, AFFINITY_INTEGER)) continue;
        Access one = {.low = -1, .high = -1, .covering = true, .eq_count = 1, .eq = {(u16)i}};
        switch (probe->kind) {
        case PROBE_EQ:
        case PROBE_IS:
            one.one_row = true;
            one.rows = 1;
            one.cost = COST_LOOKUP;
            offer(c, &one);
            return true;
        case PROBE_IN:
        case PROBE_IN_SUB:
            one.rows = in_count(probe);
            one.cost = one.rows * (COST_LOOKUP + log_of(rows));
            offer(c, &one);
            break;
        case PROBE_LOW:
            if (range.low < 0) range.low = (i32)i;
            break;
        default:
            if (range.high < 0) range.high = (i32)i;
            break;
        }
    }
    if (range.low < 0 && range.high < 0) return false;
    range.rows = rows * range_part(&range);
    range.cost = log_of(rows) + range.rows * COST_ROW;
    offer(c, &range);
    return false;
}

static i32
find_probe(const Chooser *c, const IndexDef *index, u32 at, const PlanExpr *expr, bool equal,
           u8 kind)
{
    i32 found = -1;
    for (u32 i = 0; i < c->u->probe_count; i++) {
        const Probe *probe = &c->u->probe[i];
        bool is_equal = probe->kind == PROBE_EQ || probe->kind == PROBE_IS ||
                        probe->kind == PROBE_IN || probe->kind == PROBE_IN_SUB;
        if (equal ? !is_equal : probe->kind != kind) continue;
        if (!probe_fits(c, probe, &index->column[at], expr)) continue;
        /* One value is better than a list. */
        if (probe->kind == PROBE_EQ || probe->kind == PROBE_IS) return (i32)i;
        if (found < 0) found = (i32)i;
    }
    return found;
}

/* An index without any bound: to cover, to be forced, or for its order. */
static void
offer_whole_index(Chooser *c, const IndexDef *index, Access *access, f64 width, f64 entry)
{
    bool forced = c->source->indexed_by != NULL;
    bool narrow = access->covering && width < 1.0 && !c->join->for_write;
    bool partial = index->where_sql != NULL;
    if (index == c->source->table->primary_key && !c->want_order) return;
    access->rows = partial ? c->table_rows * 0.5 : c->table_rows;
    if (index->stat != NULL) access->rows = MAX_OF(index->stat[0], 1.0);
    access->cost = access->rows * entry;
    if (!access->covering) access->cost += access->rows * COST_ROW;
    if (forced || narrow || partial) {
        offer(c, access);
    } else if (c->want_order) {
        Access none = {.cost = 0};
        Access *best = c->best;
        c->best = &none; /* Only for its order. */
        offer(c, access);
        c->best = best;
    }
}

/* How many rows share the first `columns` columns of the index, by ANALYZE or by habit. */
static f64
rows_of_prefix(const Chooser *c, const IndexDef *index, u32 columns, u32 nulls)
{
    static const f64 by_habit[] = {10, 9, 8, 7, 6, 5};
    if (columns == 0) return c->table_rows;
    if (index->stat == NULL) {
        bool all = columns == index->key_columns && index->unique && nulls == 0;
        return MIN_OF(c->table_rows, all ? 1.0 : by_habit[MIN_OF(columns - 1, 5u)]);
    }
    f64 rows = MAX_OF(index->stat[columns], 1.0);
    for (; nulls > 0; nulls--)
        rows *= 2;
    return MIN_OF(rows, c->table_rows);
}

static void
offer_index(Chooser *c, const IndexDef *index, i32 number)
{
    const PlanExpr *const *exprs = NULL;
    if (number >= 0 && index_has_exprs(index)) {
        if (!index_prepare(c->b, c->source, (u32)number)) return;
        if (!partial_holds(c->join, c->unit, &c->source->index_where[number])) return;
        exprs = (const PlanExpr *const *)c->source->index_expr[number];
    }
    Access access = {
        .index = index == c->source->table->primary_key ? NULL : index, .low = -1, .high = -1};
    access.covering = index_covers(c->source, index);
    f64 lookups = 1;
    bool lists = false;
    u32 nulls = 0;
    u32 at = 0;
    for (; at < index->key_columns && at < COUNT_OF(access.eq); at++) {
        i32 found = find_probe(c, index, at, exprs == NULL ? NULL : exprs[at], true, 0);
        if (found < 0) break;
        const Probe *probe = &c->u->probe[found];
        access.eq[access.eq_count++] = (u16)found;
        if (probe->kind == PROBE_IN || probe->kind == PROBE_IN_SUB) {
            lookups *= in_count(probe);
            lists = true;
        }
        nulls += probe->kind == PROBE_IS;
    }
    if (at < index->key_columns && !index->stat_unordered) {
        const PlanExpr *expr = exprs == NULL ? NULL : exprs[at];
        access.low = find_probe(c, index, at, expr, false, PROBE_LOW);
        access.high = find_probe(c, index, at, expr, false, PROBE_HIGH);
    }
    f64 width = (f64)index_width(index) / (f64)c->width;
    f64 entry = exp2((1.0 + 15.0 * width) / 10.0);
    if (index == c->source->table->primary_key) entry = COST_ROW;
    bool bounded = access.eq_count > 0 || access.low >= 0 || access.high >= 0;
    if (!bounded) {
        offer_whole_index(c, index, &access, width, entry);
        return;
    }
    bool all = access.eq_count == index->key_columns && index->unique && nulls == 0;
    f64 rows = rows_of_prefix(c, index, access.eq_count, nulls);
    rows *= lookups * range_part(&access);
    access.one_row = all && !lists;
    access.rows = rows;
    access.cost = lookups * log_of(c->table_rows) + rows * entry;
    if (all && !lists) access.cost = COST_LOOKUP + 0.5;
    if (!access.covering) access.cost += rows * COST_ROW;
    offer(c, &access);
}

/* ---- order ---- */

typedef struct OrderWant {
    const PlanExpr *expr;
    const Collation *collation;
    bool desc, nulls_last;
} OrderWant;

static u32
want_count(const Join *join)
{
    if (join->order_of != NULL) return join->order_of->order_count;
    return join->order_group != NULL ? join->order_group->count : 0;
}

static OrderWant
want_at(const Join *join, u32 i)
{
    if (join->order_of != NULL) {
        const OrderTerm *term = &join->order_of->order[i];
        return (OrderWant){plan__see_through(term->expr), term->collation, term->desc,
                           term->nulls_last};
    }
    const PlanExpr *e = join->order_group->items[i];
    return (OrderWant){plan__see_through(e), bind__collation_or_binary(bind__carried_collation(e)),
                       false, false};
}

static bool
is_bound_constant(const Chooser *c, const Access *access, const PlanExpr *expr,
                  const Collation *collation)
{
    if (expr->op == PX_CONST) return true;
    for (u32 i = 0; i < access->eq_count; i++) {
        const Probe *probe = &c->u->probe[access->eq[i]];
        if (probe->kind != PROBE_EQ && probe->kind != PROBE_IS) continue;
        /* Equal under one collation is not yet equal under another. */
        bool same = bind__collation_or_binary(probe->collation) == collation ||
                    probe->column == COLUMN_ROWID;
        if (same && bind__equal(probe->key, expr)) return true;
    }
    return false;
}

/* Column `at` of what the access walks through: its expression side, collation, direction.  False
   behind the last one. */
static bool
walked_column(const Chooser *c, const Access *access, u32 at, u16 *column_out,
              const Collation **collation_out, bool *desc_out, const PlanExpr **expr_out)
{
    const TableDef *table = c->source->table;
    const IndexDef *index = access->index;
    *expr_out = NULL;
    *desc_out = false;
    *collation_out = &collation_binary;
    if (index == NULL && table->without_rowid) index = table->primary_key;
    u32 keys = index == NULL ? 0 : index->key_columns;
    if (at < keys) {
        *column_out = index->column[at].column;
        *desc_out = index->column[at].desc;
        *collation_out = bind__collation_or_binary(index->column[at].collation);
        if (*column_out == COLUMN_EXPR) {
            for (u32 i = 0; i < table->index_count; i++) {
                if (table->index[i] == index && c->source->index_expr != NULL &&
                    c->source->index_expr[i] != NULL)
                    *expr_out = c->source->index_expr[i][at];
            }
            return *expr_out != NULL;
        }
        return true;
    }
    if (table->without_rowid || at > keys) return false;
    *column_out = table->rowid_column;
    return true;
}

static bool
wants_column(const Chooser *c, const OrderWant *want, u16 column, const PlanExpr *expr)
{
    if (expr != NULL) return bind__equal(want->expr, expr);
    return want->expr->op == PX_BOUND_COLUMN && want->expr->u.bound.of == c->source &&
           want->expr->u.bound.column == column;
}

/* 1: all wanted keys come in order; 0: not. */
static u32
order_prefix(const Chooser *c, const Access *access, bool *backwards_out)
{
    u32 count = want_count(c->join);
    u32 at = 0, done = 0;
    if (access->index != NULL && access->index->stat_unordered && !access->one_row) return 0;
    bool decided = false, backwards = false;
    *backwards_out = false;
    for (u32 i = 0; i < access->eq_count; i++) {
        u8 kind = c->u->probe[access->eq[i]].kind;
        if (kind == PROBE_IN || kind == PROBE_IN_SUB) return 0;
    }
    if (access->one_row) {
        for (u32 i = 0; i < count; i++) {
            OrderWant want = want_at(c->join, i);
            if ((plan__mask(c->join->core, want.expr) & ~c->u->mask) != 0) return 0;
        }
        return 1;
    }
    at = access->index == NULL && !c->source->table->without_rowid ? 0 : access->eq_count;
    while (done < count) {
        OrderWant want = want_at(c->join, done);
        if (is_bound_constant(c, access, want.expr, want.collation)) {
            done++;
            continue;
        }
        u16 column;
        const Collation *collation;
        bool desc;
        const PlanExpr *expr;
        if (!walked_column(c, access, at, &column, &collation, &desc, &expr)) return 0;
        at++;
        if (!wants_column(c, &want, column, expr)) return 0;
        bool turn = want.desc != desc;
        if (decided && turn != backwards) return 0;
        bool is_number = column == COLUMN_ROWID || column == c->source->table->rowid_column;
        if (collation != want.collation && !is_number) return 0;
        bool never_null = column == COLUMN_ROWID || column == c->source->table->rowid_column ||
                          (column != COLUMN_EXPR && c->source->table->column[column].not_null);
        if (want.nulls_last != want.desc && !never_null) return 0;
        decided = true;
        backwards = turn;
        done++;
        /* The rowid is unique: what follows cannot matter within this table. */
        if (column == c->source->table->rowid_column || column == COLUMN_ROWID) {
            if (c->join->unit_count == 1) break;
        }
    }
    *backwards_out = backwards;
    return 1;
}

void
plan__choose_access(Binder *b, Join *join, u32 unit, u64 done, Access *best_out, bool want_order,
                    Access *ordered_out)
{
    Unit *u = &join->unit[unit];
    Chooser c = {.b = b,
                 .join = join,
                 .unit = unit,
                 .u = u,
                 .source = u->source,
                 .done = done,
                 .best = best_out,
                 .ordered = ordered_out,
                 .want_order = want_order};
    *best_out = (Access){.cost = INFINITY, .low = -1, .high = -1};
    if (want_order) *ordered_out = *best_out;
    if (u->source == NULL || u->source->kind != SOURCE_TABLE) {
        Access scan = {.low = -1, .high = -1, .covering = true};
        scan.rows = plan__func_rows(join, unit, done);
        scan.cost = scan.rows * COST_ROW;
        scan.rows *= filter_part(&c, &scan);
        *best_out = scan;
        return;
    }
    if (plan__is_host(u)) {
        plan__host_choose(b, join, unit, done, best_out, want_order, ordered_out);
        return;
    }
    const TableDef *table = u->source->table;
    c.table_rows = u->rows;
    c.width = table_width(table);
    if (offer_rowid(&c) && !want_order) return;
    if (b->ctx->plain || u->source->not_indexed) return;
    if (table->primary_key != NULL) offer_index(&c, table->primary_key, -1);
    /* Older indexes first: ties go to the newest, as SQLite's list begins with it. */
    for (u32 i = 0; i < table->index_count; i++) {
        const IndexDef *index = table->index[i];
        if (u->source->indexed_by != NULL &&
            text_compare_nocase(index->name, u->source->indexed_by))
            continue;
        offer_index(&c, index, (i32)i);
    }
    if (u->or_union != NULL) plan__or_choose(b, join, unit, done, best_out);
    if (u->source->indexed_by != NULL && best_out->cost == INFINITY) {
        best_out->impossible = true;
        bind__fail(b, ERR_SQL, "no query solution");
    }
}

/* ---- the node ---- */

static PlanExpr *
probe_value(Binder *b, const Probe *probe, Env *env)
{
    PlanExpr *e = plan__lower(b, probe->value, env);
    return e == NULL ? NULL : plan__affinity(b, e, probe->affinity);
}

static bool
key_part(Binder *b, const Probe *probe, Env *env, PlanKeyPart *part)
{
    if (probe->kind == PROBE_IN_SUB) {
        part->in_sub = plan__sub(b, (BoundSub *)(void *)probe->value->u.sub, env, SUB_EACH);
        return part->in_sub != NULL;
    }
    if (probe->kind == PROBE_IN) {
        part->in_count = probe->value->arg_count - 1;
        part->in_list = KEEP_ARRAY(b, PlanExpr *, part->in_count);
        if (part->in_list == NULL) return false;
        for (u32 i = 0; i < part->in_count; i++) {
            PlanExpr *e = plan__lower(b, probe->value->arg[i + 1], env);
            part->in_list[i] = e == NULL ? NULL : plan__affinity(b, e, probe->affinity);
            if (part->in_list[i] == NULL) return false;
        }
        return true;
    }
    part->null_safe = probe->kind == PROBE_IS;
    part->value = probe_value(b, probe, env);
    return part->value != NULL;
}

static bool
scan_columns(Binder *b, Source *source, PlanNode *node)
{
    if (!plan__source_cells(b, source)) return false;
    node->columns = source->cell_count;
    node->u.scan.column = KEEP_ARRAY(b, u16, source->cell_count);
    if (node->u.scan.column == NULL) return false;
    u32 at = 0;
    for (u32 i = 0; i <= source->column_count; i++) {
        bool rowid = i == source->column_count;
        if (source->used[i] == 0) continue;
        if (!rowid && source->table->column[i].generated == 1) continue;
        node->u.scan.column[at++] = rowid ? COLUMN_ROWID : (u16)i;
    }
    return true;
}

PlanNode *
plan__scan_node(Binder *b, Join *join, u32 unit, const Access *access, Env *env)
{
    Unit *u = &join->unit[unit];
    PlanNode *node = plan__node(b, PLAN_SCAN, 0);
    if (node == NULL || !scan_columns(b, u->source, node)) return NULL;
    PlanScan *scan = &node->u.scan;
    scan->table = u->source->table;
    scan->index = access->index;
    scan->backwards = access->backwards;
    scan->covering = access->covering;
    scan->eq_count = access->eq_count;
    scan->eq = KEEP_ARRAY(b, PlanKeyPart, access->eq_count);
    if (scan->eq == NULL) return NULL;
    for (u32 i = 0; i < access->eq_count; i++) {
        const Probe *probe = &u->probe[access->eq[i]];
        if (!key_part(b, probe, env, &scan->eq[i])) return NULL;
        if (probe->exact) join->term[probe->term].placed = true;
    }
    i32 bounds[2] = {access->low, access->high};
    for (u32 side = 0; side < 2; side++) {
        if (bounds[side] < 0) continue;
        const Probe *probe = &u->probe[bounds[side]];
        PlanExpr *value = probe_value(b, probe, env);
        if (value == NULL) return NULL;
        *(side == 0 ? &scan->low : &scan->high) = value;
        *(side == 0 ? &scan->low_inclusive : &scan->high_inclusive) = probe->inclusive;
        if (probe->exact) join->term[probe->term].placed = true;
    }
    /* Both halves of a BETWEEN in use: nothing is left to test. */
    if (access->low >= 0 && access->high >= 0 && !u->probe[access->low].text_range &&
        u->probe[access->low].term == u->probe[access->high].term)
        join->term[u->probe[access->low].term].placed = true;
    node->rows = access->rows;
    node->cost = access->cost;
    if (!plan__why_scan(b, u, access, node)) return NULL;
    return plan__name_scan(b, node, u->source->name, u->join, join->for_write) ? node : NULL;
}
