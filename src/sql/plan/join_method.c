/*
 * join_method.c -- look-ups in a loop, or a hash join in their place.
 *
 * The order of the tables is chosen by SQLite's weights, with look-ups where it would have them.
 * Then, for each table reached by look-ups of equalities, what our executor needs for them is
 * weighed against reading the table once: the numbers below are nanoseconds measured with it.  A
 * hash join gives the rows in the same order, if the build side comes in the order in which the
 * look-ups would find equal keys; where that cannot be had cheaply, the look-ups stay.
 */
#include "sql/plan/build.h"

#include <math.h>

#define SCAN_ROW      15.0  /* Reading one row of a scan. */
#define BUILD_ROW     90.0  /* Entering one row. */
#define PROBE_ROW     20.0  /* Asking once. */
#define LOOP_START    60.0  /* Starting the inner side once. */
#define LOOKUP_LEVEL  9.0   /* A look-up, by each doubling of the rows. */
#define LOOKUP_ENTRY  130.0 /* From an index entry to its row. */
#define CACHED_ROWS   65536.0
#define LOOKUP_MISS   125.0    /* Beyond: by each further doubling. */
#define OUT_ROW       25.0     /* Handing on one row. */
#define COST_NS       5.0      /* A unit of SQLite's weights: a third of a row of a scan. */
#define MEMORY_ROWS   400000.0 /* Beyond, a build side goes to a file. */
#define FILE_ROW      500.0
#define HASH_WORTH_NS 20000.0

/* Is there an equality that a hash join of `unit` with `done` can use, and nothing that forbids
   one?  Only total terms may be evaluated in another order than SQLite's. */
bool
plan__hash_possible(const Join *join, u32 unit, u64 done)
{
    const Unit *u = &join->unit[unit];
    if (u->no_hash) return false;
    for (u32 i = 0; i < u->term_count; i++) {
        const Term *term = &join->term[u->term[i]];
        if ((term->mask & ~(done | u->mask)) != 0) continue;
        if (term->on ? term->unit != unit : (u->join & AST_JOIN_LEFT) != 0) continue;
        const PlanExpr *e = term->expr;
        if (e->op != PX_EQ && e->op != PX_IS) continue;
        u64 left = plan__mask(join->core, e->arg[0]), right = plan__mask(join->core, e->arg[1]);
        if ((left == u->mask && right != 0 && (right & ~done) == 0) ||
            (right == u->mask && left != 0 && (left & ~done) == 0))
            return true;
    }
    return false;
}

bool
plan__looks_up(const Unit *u, const Access *access)
{
    u64 mask = 0;
    for (u32 i = 0; i < access->eq_count; i++)
        mask |= u->probe[access->eq[i]].mask;
    return mask != 0;
}

/* By how many doublings the table is larger than what caches hold. */
static f64
misses(f64 rows)
{
    return rows <= CACHED_ROWS ? 0 : log2(rows / CACHED_ROWS);
}

static f64
lookup_ns(f64 rows)
{
    return LOOKUP_LEVEL * log2(MAX_OF(rows, 2.0)) + LOOKUP_MISS * misses(rows);
}

static f64
loop_ns(const Unit *u, const Access *access, f64 outer)
{
    f64 once = LOOP_START + lookup_ns(u->rows);
    f64 matches = MAX_OF(access->rows, 0.1);
    f64 entry = SCAN_ROW;
    if (access->index != NULL && !access->covering) entry += LOOKUP_ENTRY + lookup_ns(u->rows);
    return outer * (once + matches * entry);
}

static f64
hash_ns(const Unit *u, const Access *access, f64 outer)
{
    f64 built = u->alone > 0 ? u->alone : u->rows;
    f64 build = BUILD_ROW * (1 + misses(built) * 0.9);
    f64 matches = MAX_OF(access->rows, 0.1);
    f64 file = u->alone > MEMORY_ROWS ? (built + outer) * FILE_ROW : 0;
    return u->rows * SCAN_ROW + built * build + file +
           outer * (PROBE_ROW * (1 + misses(built)) + matches * PROBE_ROW);
}

/* Look-ups of equalities alone. */
static bool
is_look_up(const Unit *u, const Access *access)
{
    if (u->source == NULL || u->source->kind != SOURCE_TABLE) return false;
    if (!plan__looks_up(u, access) || access->or_term != 0 || access->impossible) return false;
    for (u32 i = 0; i < access->eq_count; i++) {
        u8 kind = u->probe[access->eq[i]].kind;
        if (kind != PROBE_EQ && kind != PROBE_IS) return false;
    }
    return true;
}

/* A whole scan whose order among equal keys is that of the look-ups; false: there is none. */
static bool
scan_in_order(const Unit *u, const Access *access, Access *scan_out)
{
    const TableDef *table = u->source->table;
    *scan_out = (Access){.low = -1, .high = -1, .covering = true, .rows = u->rows};
    bool narrowed = access->low >= 0 || access->high >= 0;
    if (access->index == NULL) return !narrowed || table->without_rowid;
    bool partial = access->index->where_sql != NULL;
    if (access->eq_count == access->index->key_columns && !narrowed) {
        if (access->covering && !partial) scan_out->index = access->index;
        return true;
    }
    scan_out->index = access->index;
    return access->covering && !partial;
}

void
plan__choose_method(Binder *b, const Join *join, u64 done, Step *step)
{
    const Unit *u = &join->unit[step->unit];
    Access scan;
    if (step->hash || b->ctx->no_hash_join || b->ctx->plain) return;
    if (!is_look_up(u, &step->access) || !scan_in_order(u, &step->access, &scan)) return;
    if (!plan__hash_possible(join, step->unit, done)) return;
    if (u->source->indexed_by != NULL) return;
    f64 outer = step->outer_rows;
    if (join->first_rows > 0) outer = MIN_OF(outer, join->first_rows);
    if (join->sorted && join->limit_rows > 0) outer = MIN_OF(outer, join->limit_rows);
    f64 loop = loop_ns(u, &step->access, outer);
    if (!b->ctx->no_loop_index &&
        (loop < HASH_WORTH_NS || hash_ns(u, &step->access, outer) > loop * 0.8))
        return;
    step->looked_up = step->access;
    step->access = scan;
    step->instead = true;
    step->hash = true;
}

f64
plan__first_ns(const Unit *u, const Access *access)
{
    f64 ns = access->cost * COST_NS;
    if (access->index != NULL && !access->covering)
        ns += access->cost * (LOOKUP_ENTRY + lookup_ns(u->rows)) / COST_NS;
    return ns + access->rows * OUT_ROW;
}

f64
plan__step_ns(Binder *b, const Join *join, u32 unit, u64 done, const Access *access, bool can_hash,
              f64 outer, bool *hash_out)
{
    const Unit *u = &join->unit[unit];
    Access scan;
    *hash_out = false;
    f64 loop = outer * (LOOP_START + access->cost * COST_NS);
    if (u->source != NULL && u->source->kind == SOURCE_TABLE && access->or_term == 0 &&
        plan__looks_up(u, access))
        loop = loop_ns(u, access, outer);
    f64 out = outer * access->rows * OUT_ROW;
    if (can_hash && (u->join & AST_JOIN_CROSS) == 0) {
        f64 hash = hash_ns(u, access, outer);
        *hash_out = hash < loop;
        return MIN_OF(hash, loop) + out;
    }
    /* As plan__choose_method() will choose. */
    if (!b->ctx->no_hash_join && u->source != NULL && u->source->indexed_by == NULL &&
        is_look_up(u, access) && scan_in_order(u, access, &scan) &&
        plan__hash_possible(join, unit, done))
        loop = MIN_OF(loop, hash_ns(u, access, outer));
    return loop + out;
}
