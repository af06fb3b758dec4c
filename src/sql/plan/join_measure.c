/*
 * join_measure.c -- what part of the rows a term lets pass, by all that keys and indexes tell.
 *
 * Columns that equalities tie together form a class.  If a key of some table is among them, all
 * its columns draw their values from that key (as foreign keys do), so there are at most as many
 * values as that table has rows.  An equality then lets one row in as many pass as the richer of
 * its two sides has values.  No statistics are needed for it, and those of ANALYZE sharpen it.
 */
#include "sql/plan/build.h"

#include <math.h>

#define PART_LIKE   0.1
#define PART_EQUAL  0.1
#define PREFIX_ROWS 10.0 /* That share the first column of an index without statistics. */

#define ROWS_MIN     10.0
#define ROWS_UNKNOWN 1048576.0

typedef struct Column {
    const Source *source;
    u32 column;
} Column;

static bool
column_of(const PlanExpr *e, Column *out)
{
    e = plan__see_through(e);
    if (e->op != PX_BOUND_COLUMN) return false;
    *out = (Column){e->u.bound.of, e->u.bound.column};
    if (out->source->kind != SOURCE_TABLE) return false;
    const TableDef *table = out->source->table;
    if (out->column == COLUMN_ROWID && table->rowid_column != COLUMN_ROWID)
        out->column = table->rowid_column;
    return true;
}

static bool
is_same(Column a, Column b)
{
    return a.source == b.source && a.column == b.column;
}

static f64
rows_of(const Join *join, const Source *source)
{
    for (u32 i = 0; i < join->unit_count; i++) {
        if (join->unit[i].source == source) return join->unit[i].rows;
    }
    return 0; /* Of a nested join. */
}

f64
plan__counted_rows(Binder *b, const TableDef *table)
{
    if (table->has_stat) return MAX_OF(table->stat_rows, 1.0);
    f64 rows = b->ctx->table_rows == NULL ? -1 : b->ctx->table_rows(b->ctx->rows_arg, table);
    return rows < 0 ? ROWS_UNKNOWN : MAX_OF(rows, ROWS_MIN);
}

/* How many values has the column?  0: nobody knows.  *key_out: each value once. */
static f64
values_of(const Join *join, Column column, bool *key_out)
{
    const TableDef *table = column.source->table;
    f64 rows = rows_of(join, column.source), values = 0;
    *key_out = false;
    if (rows == 0 || table->host) return 0;
    if (!table->without_rowid && column.column == table->rowid_column) {
        *key_out = true;
        return rows;
    }
    for (i64 i = -1; i < (i64)table->index_count; i++) {
        const IndexDef *index = i < 0 ? table->primary_key : table->index[i];
        if (index == NULL || index->where_sql != NULL) continue;
        if (index->column[0].column != column.column) continue;
        if (index->unique && index->key_columns == 1) {
            *key_out = true;
            return rows;
        }
        f64 same = index->stat != NULL ? MAX_OF(index->stat[1], 1.0) : PREFIX_ROWS;
        values = MAX_OF(values, MAX_OF(rows / same, 1.0));
    }
    return values;
}

static bool
is_equality(const Term *term, Column side[2])
{
    if (term->expr->op != PX_EQ && term->expr->op != PX_IS) return false;
    return column_of(term->expr->arg[0], &side[0]) && column_of(term->expr->arg[1], &side[1]);
}

/* The fewest rows of a table whose key is in the class of each term's columns, into `domain`; 0:
   there is none.  The least number spreads along the equalities until nothing changes. */
static void
find_domains(const Join *join, f64 *domain)
{
    Column side[2], other[2];
    bool key;
    for (u32 i = 0; i < join->term_count; i++) {
        domain[i] = 0;
        if (!is_equality(&join->term[i], side)) continue;
        for (u32 s = 0; s < 2; s++) {
            f64 values = values_of(join, side[s], &key);
            if (key && (domain[i] == 0 || values < domain[i])) domain[i] = values;
        }
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (u32 i = 0; i < join->term_count; i++) {
            if (!is_equality(&join->term[i], side)) continue;
            for (u32 k = 0; k < join->term_count; k++) {
                if (domain[k] == 0 || (domain[i] != 0 && domain[i] <= domain[k])) continue;
                if (!is_equality(&join->term[k], other)) continue;
                if (!is_same(side[0], other[0]) && !is_same(side[0], other[1]) &&
                    !is_same(side[1], other[0]) && !is_same(side[1], other[1]))
                    continue;
                domain[i] = domain[k];
                changed = true;
            }
        }
    }
}

static f64
equality_part(const Join *join, const Column side[2], f64 domain)
{
    f64 values = 0, rows = INFINITY;
    for (u32 s = 0; s < 2; s++) {
        bool key;
        f64 has = values_of(join, side[s], &key);
        values = MAX_OF(values, has);
        rows = MIN_OF(rows, rows_of(join, side[s].source));
    }
    if (domain > 0 && (values == 0 || values > domain)) values = domain;
    if (values == 0) values = rows; /* As if the smaller side were a key. */
    return 1.0 / MAX_OF(values, 1.0);
}

/* An equality with a value of its own table alone, if the column's values are counted. */
static f64
value_part(const Join *join, const Term *term)
{
    const PlanExpr *e = term->expr;
    Column column;
    bool key;
    for (u32 s = 0; s < 2; s++) {
        if (plan__mask(join->core, e->arg[1 - s]) != 0 || !column_of(e->arg[s], &column)) continue;
        f64 values = values_of(join, column, &key);
        if (values > 0) return MIN_OF(1.0 / values, PART_EQUAL);
    }
    return 0;
}

bool
plan__measure_terms(Binder *b, Join *join)
{
    f64 *domain = BIND_ARRAY(b, f64, join->term_count);
    if (domain == NULL) return false;
    find_domains(join, domain);
    for (u32 i = 0; i < join->term_count; i++) {
        Term *term = &join->term[i];
        const PlanExpr *e = term->expr;
        Column side[2];
        if (is_equality(term, side) && side[0].source != side[1].source) {
            term->part = equality_part(join, side, domain[i]);
        } else if (e->op == PX_EQ || e->op == PX_IS) {
            term->part = value_part(join, term);
        } else if (e->op == PX_FUNC && (e->u.func.def->flags & FUNC_LIKE) != 0) {
            term->part = PART_LIKE;
        }
    }
    return true;
}
