/*
 * short_test.c -- short queries beside writes of their own connection.
 *
 * Method: random queries over key ranges, with and without LIMIT, filters, look-up joins and
 * aggregates, are stepped row by row; between the steps other statements of the connection insert,
 * delete and update.  A model in arrays says what each step must show: what SQLite shows, the next
 * row of the data as they are then.  Ranges are short and long, so that the short path keeps some
 * runs and hands others over.  Then values of other types as bounds and keys.
 */
#include <stdlib.h>

#include "session_kit.h"

#define KEYS 60 /* Keys are 1 .. KEYS - 1. */

typedef struct World {
    Session *session;
    Rng rng;
    i64 v[KEYS]; /* Of table t; -1: no such row. */
    i64 w[KEYS]; /* Of table u. */
} World;

typedef struct Shape {
    const char *sql;
    bool down;     /* Keys fall. */
    bool filtered; /* v%3=1 */
    bool by_value; /* v = first parameter */
    u8 join;       /* 0: none; 1: u.k=t.v must be there; 2: LEFT. */
    bool limited;
} Shape;

static const Shape shapes[] = {
    {"SELECT k, v FROM t WHERE k BETWEEN ?1 AND ?2", .down = false},
    {"SELECT k, v FROM t WHERE k BETWEEN ?1 AND ?2 ORDER BY k DESC", .down = true},
    {"SELECT k, v FROM t WHERE k BETWEEN ?1 AND ?2 LIMIT ?3 OFFSET ?4", .limited = true},
    {"SELECT k, v FROM t WHERE k BETWEEN ?1 AND ?2 ORDER BY k DESC LIMIT ?3 OFFSET ?4",
     .down = true, .limited = true},
    {"SELECT k, v+0 FROM t WHERE k BETWEEN ?1 AND ?2 AND v%3=1", .filtered = true},
    {"SELECT k, v FROM t WHERE k BETWEEN ?1 AND ?2 AND v%3=1 LIMIT ?3", .filtered = true,
     .limited = true},
    {"SELECT t.k, w FROM t JOIN u ON u.k=t.v WHERE t.k BETWEEN ?1 AND ?2", .join = 1},
    {"SELECT t.k, w FROM t JOIN u ON u.k=t.v WHERE t.k BETWEEN ?1 AND ?2 LIMIT ?3 OFFSET ?4",
     .join = 1, .limited = true},
    {"SELECT t.k, w FROM t LEFT JOIN u ON u.k=t.v WHERE t.k BETWEEN ?1 AND ?2 ORDER BY t.k DESC",
     .join = 2, .down = true},
    {"SELECT t.k, w FROM t LEFT JOIN u ON u.k=t.v AND w%2=0 WHERE t.k BETWEEN ?1 AND ?2",
     .join = 3},
    {"SELECT k, v FROM t WHERE v=?1 AND k<=?2", .by_value = true},
};

static void
run_sql(World *world, const char *format, i64 a, i64 b)
{
    char sql[200];
    snprintf(sql, sizeof(sql), format, (long long)a, (long long)b);
    kit_exec(world->session, sql);
}

static void
write_something(World *world)
{
    i64 key = 1 + (i64)rng_below(&world->rng, KEYS - 1), value = (i64)rng_below(&world->rng, 12);
    switch (rng_below(&world->rng, 5)) {
    case 0:
        run_sql(world, "DELETE FROM t WHERE k=%lld", key, 0);
        world->v[key] = -1;
        break;
    case 1:
        run_sql(world, "UPDATE t SET v=%2$lld WHERE k=%1$lld", key, value);
        if (world->v[key] >= 0) world->v[key] = value;
        break;
    case 2:
        key = 1 + value;
        run_sql(world, "DELETE FROM u WHERE k=%lld", key, 0);
        world->w[key] = -1;
        break;
    case 3:
        key = 1 + value;
        run_sql(world, "REPLACE INTO u VALUES(%lld, %lld)", key, value * 3);
        world->w[key] = value * 3;
        break;
    default:
        run_sql(world, "REPLACE INTO t VALUES(%lld, %lld)", key, value);
        world->v[key] = value;
        break;
    }
}

/* Does the row of a key belong to the answer, and what is its second column?  -1: NULL. */
static bool
row_of(const World *world, const Shape *shape, i64 key, const i64 *bound, i64 *second_out)
{
    i64 v = world->v[key];
    if (v < 0) return false;
    if (shape->by_value ? v != bound[0] || key > bound[1] : key < bound[0] || key > bound[1]) {
        return false;
    }
    if (shape->filtered && v % 3 != 1) return false;
    *second_out = v;
    if (shape->join == 0) return true;
    *second_out = world->w[v];
    if (shape->join == 3 && *second_out % 2 != 0) *second_out = -1;
    return shape->join > 1 || *second_out >= 0;
}

/* The next row behind `last`; 0: there is none. */
static i64
next_key(const World *world, const Shape *shape, i64 last, const i64 *bound, i64 *second_out)
{
    i64 step = shape->down ? -1 : 1;
    for (i64 key = last + step; key > 0 && key < KEYS; key += step) {
        if (row_of(world, shape, key, bound, second_out)) return key;
    }
    return 0;
}

static void
check_run(World *world, const Shape *shape, Stmt *stmt)
{
    i64 bound[4] = {1 + (i64)rng_below(&world->rng, KEYS), 0, 0, 0};
    bound[1] = bound[0] + (i64)rng_below(&world->rng, rng_below(&world->rng, 2) == 0 ? 12 : KEYS);
    if (shape->by_value) {
        bound[0] = (i64)rng_below(&world->rng, 12);
        bound[1] = (i64)rng_below(&world->rng, KEYS);
    }
    bound[2] = (i64)rng_below(&world->rng, rng_below(&world->rng, 4) == 0 ? 40 : 6) - 1;
    bound[3] = (i64)rng_below(&world->rng, 4);
    for (u32 i = 0; i < stmt_param_count(stmt); i++) {
        Cell value = cell_int(bound[i]);
        assert_int_equal(stmt_bind(stmt, i, &value), OK);
    }
    i64 left = shape->limited ? bound[2] : -1, last = shape->down ? KEYS : 0, second = 0;
    i64 skip = stmt_param_count(stmt) == 4 ? bound[3] : 0;
    u32 writes_every = 1 + (u32)rng_below(&world->rng, 6);
    for (u32 steps = 0;; steps++) {
        i64 key = left == 0 ? 0 : next_key(world, shape, last, bound, &second);
        for (; key != 0 && skip > 0; skip--) {
            key = next_key(world, shape, key, bound, &second);
        }
        bool row;
        assert_int_equal(stmt_step(stmt, &row), OK);
        assert_int_equal(row, key != 0);
        if (!row) break;
        assert_int_equal(stmt_row(stmt)[0].u.i, key);
        assert_int_equal(stmt_row(stmt)[1].type, second < 0 ? CELL_NULL : CELL_INT);
        if (second >= 0) assert_int_equal(stmt_row(stmt)[1].u.i, second);
        last = key;
        if (left > 0) left--;
        if (rng_below(&world->rng, 20) == 0) break; /* Reset in the middle. */
        if (rng_below(&world->rng, writes_every) == 0) write_something(world);
        /* What is shown stays. */
        assert_int_equal(stmt_row(stmt)[0].u.i, key);
    }
    assert_int_equal(stmt_reset(stmt), OK);
}

static void
check_sums(World *world, Stmt *stmt)
{
    i64 low = (i64)rng_below(&world->rng, KEYS);
    i64 high = low + (i64)rng_below(&world->rng, rng_below(&world->rng, 2) == 0 ? 12 : KEYS);
    i64 count = 0, sum = 0, most = -1;
    for (i64 key = MAX_OF(low, 1); key <= MIN_OF(high, KEYS - 1); key++) {
        if (world->v[key] < 0) continue;
        count++;
        sum += world->v[key];
        most = MAX_OF(most, world->v[key]);
    }
    Cell value = cell_int(low), other = cell_int(high);
    bool row;
    assert_int_equal(stmt_bind(stmt, 0, &value), OK);
    assert_int_equal(stmt_bind(stmt, 1, &other), OK);
    assert_int_equal(stmt_step(stmt, &row), OK);
    assert_true(row);
    assert_int_equal(stmt_row(stmt)[0].u.i, count);
    assert_int_equal(stmt_row(stmt)[1].type, count == 0 ? CELL_NULL : CELL_INT);
    if (count > 0) assert_int_equal(stmt_row(stmt)[1].u.i, sum);
    if (count > 0) assert_int_equal(stmt_row(stmt)[2].u.i, most);
    if (rng_below(&world->rng, 2) == 0) write_something(world);
    assert_true(kit_done(stmt));
    assert_int_equal(stmt_reset(stmt), OK);
    char sql[100], expected[32];
    i64 of_value = (i64)rng_below(&world->rng, 12);
    count = 0;
    for (i64 key = 1; key < KEYS; key++)
        count += world->v[key] == of_value;
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM t WHERE v=%lld", (long long)of_value);
    snprintf(expected, sizeof(expected), "%lld;", (long long)count);
    kit_query(world->session, sql, expected);
}

static void
expect_cell(const Cell *cell, i64 value)
{
    assert_int_equal(cell->type, value < 0 ? CELL_NULL : CELL_INT);
    if (value >= 0) assert_int_equal(cell->u.i, value);
}

/* The first row from an end that passes, and subqueries of few rows. */
static void
check_firsts(World *world, Stmt *const stmt[2])
{
    i64 key = (i64)rng_below(&world->rng, KEYS), largest = -1, passing = -1, three = 0;
    for (i64 k = 1; k < KEYS; k++) {
        if (world->v[k] < 0) continue;
        if (k < key) largest = k;
        if (k <= key && world->v[k] % 3 == 1) passing = k;
        if (k >= key && k <= key + 20 && world->v[k] == 3) three = 1;
    }
    Cell value = cell_int(key);
    bool row;
    for (u32 i = 0; i < 2; i++)
        assert_int_equal(stmt_bind(stmt[i], 0, &value), OK);
    assert_int_equal(stmt_step(stmt[0], &row), OK);
    assert_int_equal(row, passing >= 0);
    if (row) expect_cell(stmt_row(stmt[0]), passing);
    assert_int_equal(stmt_step(stmt[1], &row), OK);
    assert_true(row);
    expect_cell(&stmt_row(stmt[1])[0], largest);
    expect_cell(&stmt_row(stmt[1])[1], three);
    expect_cell(&stmt_row(stmt[1])[2], world->w[key]);
    if (rng_below(&world->rng, 2) == 0) write_something(world);
    if (passing >= 0) assert_true(kit_done(stmt[0]));
    assert_true(kit_done(stmt[1]));
    for (u32 i = 0; i < 2; i++)
        assert_int_equal(stmt_reset(stmt[i]), OK);
}

static void
run_seed(u64 seed, bool in_transaction)
{
    World world = {.session = kit_open("", true)};
    Stmt *stmt[COUNT_OF(shapes)], *sums, *firsts[2];
    rng_seed(&world.rng, seed);
    memset(world.v, 0xFF, sizeof(world.v));
    memset(world.w, 0xFF, sizeof(world.w));
    kit_exec(world.session,
             "CREATE TABLE t(k INTEGER PRIMARY KEY, v INT); CREATE INDEX t_v ON t(v);"
             "CREATE TABLE u(k INTEGER PRIMARY KEY, w INT)");
    for (u32 i = 0; i < COUNT_OF(shapes); i++)
        stmt[i] = kit_prepare(world.session, shapes[i].sql);
    sums = kit_prepare(world.session,
                       "SELECT count(*), sum(v), max(v) FROM t WHERE k BETWEEN ? AND ?");
    firsts[0] = kit_prepare(world.session,
                            "SELECT k FROM t WHERE k<=? AND v%3=1 ORDER BY k DESC LIMIT 1");
    firsts[1] = kit_prepare(world.session,
                            "SELECT max(k), EXISTS(SELECT 1 FROM t b WHERE b.k BETWEEN ?1 AND "
                            "?1+20 AND b.v=3), (SELECT w FROM u WHERE u.k=?1) FROM t WHERE k<?1");
    for (u32 i = 0; i < 120; i++)
        write_something(&world);
    if (in_transaction) kit_exec(world.session, "BEGIN");
    for (u32 i = 0; i < 150; i++) {
        u32 at = (u32)rng_below(&world.rng, COUNT_OF(shapes));
        check_run(&world, &shapes[at], stmt[at]);
        check_sums(&world, sums);
        check_firsts(&world, firsts);
    }
    if (in_transaction) kit_exec(world.session, "COMMIT");
    for (u32 i = 0; i < COUNT_OF(shapes); i++)
        assert_int_equal(stmt_finalize(stmt[i]), OK);
    assert_int_equal(stmt_finalize(sums), OK);
    for (u32 i = 0; i < 2; i++)
        assert_int_equal(stmt_finalize(firsts[i]), OK);
    assert_int_equal(session_close(world.session), OK);
}

static void
steps_between_writes(void **state)
{
    (void)state;
    for (u64 seed = 1; seed <= 12; seed++)
        run_seed(seed, seed % 2 == 0);
}

/* A rollback takes away what a reader has read ahead; the rows behind are those from before. */
static void
rollback_between_steps(void **state)
{
    (void)state;
    Session *s = kit_open("", true);
    kit_exec(s, "CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT);"
                "INSERT INTO t VALUES(1,'a'),(2,'b'),(4,'d'); BEGIN; INSERT INTO t VALUES(3,'c');"
                "UPDATE t SET v='x' WHERE k=4");
    Stmt *stmt = kit_prepare(s, "SELECT k, v FROM t WHERE k BETWEEN 1 AND 9");
    assert_int_equal(kit_row(stmt), 1);
    assert_int_equal(kit_row(stmt), 2);
    kit_exec(s, "ROLLBACK");
    char rest[100] = "";
    assert_memory_equal(stmt_row(stmt)[1].u.p, "b", 1);
    kit_drain(stmt, rest, sizeof(rest));
    assert_string_equal(rest, "4|d;");
    stmt_finalize(stmt);
    assert_int_equal(session_close(s), OK);
}

/* Keys and bounds of other types; errors stand where their row does. */
static void
other_values(void **state)
{
    (void)state;
    Session *s = kit_open("", true);
    kit_exec(s, "CREATE TABLE t(k INTEGER PRIMARY KEY, v TEXT, n INT UNIQUE);"
                "CREATE TABLE r(a, b, c, PRIMARY KEY(a, b)) WITHOUT ROWID;"
                "INSERT INTO t VALUES(1,'a',10),(2,'b',20),(3,NULL,NULL);"
                "INSERT INTO r VALUES('x',1,'one'),('x',2.5,'half'),('y',x'00',NULL)");
    kit_query(s, "SELECT v FROM t WHERE k='2'", "b;");
    kit_query(s, "SELECT v FROM t WHERE k=2.0", "b;");
    kit_query(s, "SELECT v FROM t WHERE k=2.5", "");
    kit_query(s, "SELECT v FROM t WHERE k=NULL", "");
    kit_query(s, "SELECT k FROM t WHERE n='20'", "2;");
    kit_query(s, "SELECT k FROM t WHERE n IS NULL", "3;");
    kit_query(s, "SELECT c FROM r WHERE a='x' AND b=2.5", "half;");
    kit_query(s, "SELECT k FROM t WHERE k BETWEEN 1.5 AND '3'", "2;3;");
    kit_query(s, "SELECT k FROM t WHERE k BETWEEN NULL AND 3", "");
    kit_query(s, "SELECT a.k, b.k FROM t a LEFT JOIN t b ON b.k=a.n/10 WHERE a.k BETWEEN 1 AND 3",
              "1|1;2|2;3|NULL;");
    kit_query(s, "SELECT a.k, b.v FROM t a JOIN t b ON b.k=a.v WHERE a.k=1", "");
    kit_query(s, "SELECT k FROM t WHERE k BETWEEN 1 AND 3 LIMIT 0", "");
    kit_query(s, "SELECT k FROM t WHERE k BETWEEN 1 AND 3 LIMIT 'x'", "!ERR_MISMATCH");
    kit_query(s, "SELECT count(*) FROM (SELECT k FROM t WHERE k BETWEEN 1 AND 3 LIMIT 0)", "0;");
    kit_query(s, "SELECT count(*) FROM t WHERE k=2 HAVING count(*)>1", "");
    kit_query(s, "SELECT abs(-9223372036854775807-k) FROM t WHERE k BETWEEN 1 AND 2", "!ERR_SQL");
    kit_query(s, "SELECT v, json_extract('{bad', '$') FROM t WHERE k=9", "");
    assert_int_equal(session_close(s), OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_between_writes),
        cmocka_unit_test(rollback_between_steps),
        cmocka_unit_test(other_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
