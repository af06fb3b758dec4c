/*
 * join_order.c -- in which order the tables of a join are read, and how each is reached.
 *
 * A beam search of left-deep orders: at each length the cheapest WIDTH partial orders are kept, one
 * for each set of tables.  Ties keep FROM order.  Outer and cross joins fix what must come before
 * them; RIGHT and FULL fix the whole order.
 */
#include "sql/plan/build.h"

#include <math.h>

#define WIDTH          12u
#define COST_ROW       3.0
#define COST_HASH_ROW  4.0     /* Building: one row. */
#define COST_HASH_FIND 1.5     /* Probing: one row. */
#define COST_LOOP      0.5     /* Starting the inner side once. */
#define COST_LARGE     50000.0 /* From here on our own costs decide, */
#define ROWS_LARGE     10000.0 /* if one of the tables has so many rows. */
#define SORT_NS        5.0

/* Small, because many are made and few are kept. */
typedef struct Path {
    u64 done;
    f64 cost, rows;
    f64 outer_rows;
    const Access *access; /* Of the last unit. */
    u32 parent;           /* In the former level. */
    u8 unit;
    bool hash, sorted;
} Path;

bool
plan__unit_terms(Binder *b, Join *join, u32 unit)
{
    Unit *u = &join->unit[unit];
    u->term = BIND_ARRAY(b, u32, join->term_count);
    if (u->term == NULL) return false;
    for (u32 i = 0; i < join->term_count; i++) {
        const Term *term = &join->term[i];
        if ((term->mask & u->mask) == 0) continue;
        u->term[u->term_count++] = i;
        u->relevant |= term->mask;
        bool own = term->on ? term->unit == unit : (u->join & AST_JOIN_LEFT) == 0;
        if (own && (term->expr->klass != PLAN_TOTAL || plan__has_sub(term->expr)))
            u->no_hash = true;
    }
    u->relevant &= ~u->mask;
    if (u->source != NULL && u->source->kind == SOURCE_FUNCTION) u->no_hash = true;
    if (plan__is_host(u)) u->no_hash = true;
    return true;
}

/* The best access when `done` is at hand; remembered by what it depends on. */
static const struct UnitChoice *
unit_choice(Binder *b, Join *join, u32 unit, u64 done)
{
    Unit *u = &join->unit[unit];
    done &= u->relevant;
    for (u32 i = 0; i < COUNT_OF(u->choice); i++) {
        if (u->choice[i] != NULL && u->choice[i]->done == done) return u->choice[i];
    }
    /* Paths point to it: one that is forgotten stays. */
    struct UnitChoice *choice = BIND_NEW(b, struct UnitChoice);
    if (choice == NULL) return NULL;
    u->choice[u->choice_next++ % COUNT_OF(u->choice)] = choice;
    choice->done = done;
    plan__choose_access(b, join, unit, done, &choice->access, false, NULL);
    choice->hash = !b->ctx->no_hash_join && !b->ctx->plain && !plan__looks_up(u, &choice->access) &&
                   plan__hash_possible(join, unit, done);
    return choice;
}

/* The same in nanoseconds of our executor. */
static void
step_ns(Binder *b, const Join *join, const Path *from, u32 unit, const Access *access,
        bool can_hash, bool sorted, Path *to)
{
    const Unit *u = &join->unit[unit];
    f64 outer = MAX_OF(from->rows, 1.0), matches = access->rows;
    if (from->done == 0) {
        to->cost = plan__first_ns(u, access);
        to->rows = access->rows;
        to->sorted = sorted;
        return;
    }
    to->outer_rows = outer;
    to->cost = from->cost +
               plan__step_ns(b, join, unit, from->done, access, can_hash, outer, &to->hash);
    if ((u->join & AST_JOIN_LEFT) != 0) matches = MAX_OF(matches, 1.0);
    to->rows = outer * matches;
}

static void
step_cost(Binder *b, const Join *join, const Path *from, u32 unit, const Access *access,
          bool can_hash, bool sorted, Path *to)
{
    const Unit *u = &join->unit[unit];
    *to = (Path){
        .done = from->done | u->mask, .sorted = from->sorted, .unit = (u8)unit, .access = access};
    if (join->measured) {
        step_ns(b, join, from, unit, access, can_hash, sorted, to);
        return;
    }
    f64 outer = from->rows < 1 ? 1 : from->rows;
    if (from->done == 0) {
        to->cost = access->cost;
        to->rows = access->rows;
        to->sorted = sorted;
        return;
    }
    f64 matches = access->rows;
    to->cost = from->cost + outer * (access->cost + COST_LOOP);
    to->outer_rows = outer;
    if (can_hash && (u->join & AST_JOIN_CROSS) == 0) {
        f64 rows = access->eq_count > 0 ? access->rows : u->rows;
        f64 read = access->eq_count > 0 ? access->cost : u->rows * COST_ROW;
        f64 hash = from->cost + read + rows * COST_HASH_ROW + outer * COST_HASH_FIND;
        if (hash < to->cost) {
            to->cost = hash;
            to->hash = true;
            matches = MIN_OF(matches, MAX_OF(1.0, u->rows / 100000.0));
        }
    }
    if ((u->join & AST_JOIN_LEFT) != 0 && matches < 1) matches = 1;
    to->rows = outer * matches;
    to->cost += to->rows * 0.1;
}

static Step
step_of(const Join *join, const Path *path)
{
    Step step = {
        .unit = path->unit, .hash = path->hash, .outer_rows = path->outer_rows, .rows = path->rows};
    step.access = *path->access;
    if (path->hash && step.access.eq_count == 0) {
        f64 rows = join->unit[path->unit].rows;
        step.access = (Access){
            .low = -1, .high = -1, .covering = true, .rows = rows, .cost = rows * COST_ROW};
    }
    return step;
}

/* Keep `path` among the best of its level: one for each set of tables and sortedness. */
static void
level_offer(Path *level, u32 *count, u32 width, const Path *path)
{
    for (u32 i = 0; i < *count; i++) {
        if (level[i].done != path->done || level[i].sorted != path->sorted) continue;
        if (path->cost < level[i].cost) level[i] = *path;
        return;
    }
    if (*count < width) {
        level[(*count)++] = *path;
        return;
    }
    u32 worst = 0;
    for (u32 i = 1; i < *count; i++) {
        if (level[i].cost > level[worst].cost) worst = i;
    }
    if (path->cost < level[worst].cost) level[worst] = *path;
}

static f64
final_cost(const Join *join, const Path *path, bool want_order)
{
    if (!want_order || path->sorted) {
        f64 cost = path->cost;
        if (want_order && join->limit_rows > 0 && path->rows > join->limit_rows)
            cost *= join->limit_rows / path->rows;
        return cost;
    }
    f64 rows = path->rows < 2 ? 2 : path->rows;
    f64 sort = rows * log2(rows) * 0.7 + rows;
    return path->cost + (join->measured ? sort * SORT_NS : sort);
}

static void
expand_first(Binder *b, Join *join, const Path *from, u32 unit, Path *level, u32 *count, u32 width)
{
    Access *access = BIND_ARRAY(b, Access, 2), *best = access, *ordered = access + 1;
    if (access == NULL) return;
    plan__choose_access(b, join, unit, 0, best, true, ordered);
    Path path;
    if (best->cost < INFINITY) {
        step_cost(b, join, from, unit, best, false, false, &path);
        level_offer(level, count, width, &path);
    }
    if (ordered->cost < INFINITY) {
        step_cost(b, join, from, unit, ordered, false, true, &path);
        level_offer(level, count, width, &path);
    }
}

/* Tables that no term connects with those at hand wait, as long as there are connected ones. */
static bool
has_connected(const Join *join, u64 done)
{
    for (u32 u = 0; u < join->unit_count; u++) {
        const Unit *unit = &join->unit[u];
        if ((done & unit->mask) != 0 || (unit->needs & ~done) != 0) continue;
        if ((unit->relevant & done) != 0) return true;
    }
    return false;
}

static void
expand(Binder *b, Join *join, const Path *from, u32 at, bool want_order, Path *level, u32 *count,
       u32 width)
{
    bool connected = from->done != 0 && join->unit_count > 6 && has_connected(join, from->done);
    for (u32 u = 0; u < join->unit_count; u++) {
        const Unit *unit = &join->unit[u];
        if ((from->done & unit->mask) != 0 || (unit->needs & ~from->done) != 0) continue;
        if (connected && (unit->relevant & from->done) == 0) continue;
        if (from->done == 0 && want_order) {
            expand_first(b, join, from, u, level, count, width);
            continue;
        }
        const struct UnitChoice *choice = unit_choice(b, join, u, from->done);
        if (choice == NULL) return;
        if (choice->access.cost == INFINITY) continue;
        Path path;
        step_cost(b, join, from, u, &choice->access, choice->hash, false, &path);
        path.parent = at;
        level_offer(level, count, width, &path);
    }
}

/* One search; *cost_out: of the order that was found. */
static bool
search(Binder *b, Join *join, Step *steps, bool want_order, f64 *cost_out)
{
    u32 n = join->unit_count;
    u32 width = n == 1 ? 2 : n == 2 ? 4 : WIDTH; /* No more than there can be. */
    Path *levels = BIND_ARRAY(b, Path, (size_t)(n + 1) * width);
    u32 *counts = BIND_ARRAY(b, u32, n + 1);
    if (levels == NULL || counts == NULL) return false;
    levels[0] = (Path){.rows = 1};
    counts[0] = 1;
    for (u32 l = 0; l < n; l++) {
        Path *next = &levels[(size_t)(l + 1) * width];
        for (u32 i = 0; i < counts[l]; i++)
            expand(b, join, &levels[(size_t)l * width + i], i, want_order, next, &counts[l + 1],
                   width);
        if (b->err != OK) return false;
        if (counts[l + 1] == 0) {
            /* A virtual table that takes none of the constraints it could have. */
            bind__fail(b, ERR_SQL, "no query solution");
            return false;
        }
    }
    u32 best = 0;
    Path *last = &levels[(size_t)n * width];
    for (u32 i = 1; i < counts[n]; i++) {
        if (final_cost(join, &last[i], want_order) < final_cost(join, &last[best], want_order))
            best = i;
    }
    *cost_out = last[best].cost;
    join->sorted = want_order && last[best].sorted;
    for (u32 l = n; l > 0; l--) {
        const Path *path = &levels[(size_t)l * width + best];
        steps[l - 1] = step_of(join, path);
        best = path->parent;
    }
    return true;
}

/* Is there time to be lost? */
static bool
is_large(const Binder *b, const Join *join, f64 cost)
{
    f64 most = 0;
    if (join->unit_count < 2 || cost < COST_LARGE || b->ctx->plain) return false;
    if (join->first_rows > 0 || (join->sorted && join->limit_rows > 0)) return false;
    for (u32 u = 0; u < join->unit_count; u++) {
        if (plan__is_host(&join->unit[u])) return false;
        most = MAX_OF(most, join->unit[u].rows);
    }
    return most >= ROWS_LARGE;
}

/* What the second search goes by. */
static bool
measure(Binder *b, Join *join)
{
    join->measured = true;
    for (u32 u = 0; u < join->unit_count; u++) {
        Unit *unit = &join->unit[u];
        memset(unit->choice, 0, sizeof(unit->choice));
        if (unit->source != NULL && unit->source->kind == SOURCE_TABLE)
            unit->rows = plan__counted_rows(b, unit->source->table);
    }
    if (!plan__measure_terms(b, join)) return false;
    for (u32 u = 0; u < join->unit_count; u++) {
        if (join->unit[u].needs != 0) continue;
        const struct UnitChoice *alone = unit_choice(b, join, u, 0);
        if (alone == NULL) return false;
        join->unit[u].alone = MAX_OF(alone->access.rows, 1.0);
    }
    return true;
}

/* Small joins are ordered by SQLite's weights, so that rows come as they would there.  Where time
   is to be lost, a second search weighs what our executor needs, with better counts of rows. */
bool
plan__find_order(Binder *b, Join *join, Step *steps, bool want_order)
{
    u32 n = join->unit_count;
    f64 cost = 0;
    if (n == 1 && !want_order) {
        steps[0].unit = 0;
        plan__choose_access(b, join, 0, 0, &steps[0].access, false, NULL);
        if (b->err == OK && steps[0].access.cost == INFINITY && plan__is_host(&join->unit[0]))
            bind__fail(b, ERR_SQL, "no query solution");
        return b->err == OK;
    }
    if (!search(b, join, steps, want_order, &cost)) return false;
    if (!is_large(b, join, cost)) return true;
    return measure(b, join) && search(b, join, steps, want_order, &cost);
}
