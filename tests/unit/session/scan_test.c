/*
 * scan_test.c -- long scans beside writes of their own connection.
 *
 * Method: scans of some thousand rows, both ways, with and without a filter, are stepped row by
 * row, so that they come to read their rows where they lie; now and then another statement changes
 * rows just ahead.  A model in arrays says what each step must show.
 */
#include "session_kit.h"

#define KEYS 5000

typedef struct World {
    Session *session;
    Rng rng;
    i64 v[KEYS]; /* -1: no such row. */
} World;

static void
write_at(World *world, i64 key)
{
    char sql[160];
    i64 value = (i64)rng_below(&world->rng, 1000);
    if (key < 1 || key >= KEYS) return;
    if (rng_below(&world->rng, 3) == 0) {
        snprintf(sql, sizeof(sql), "DELETE FROM t WHERE k=%lld", (long long)key);
        value = -1;
    } else {
        snprintf(sql, sizeof(sql), "REPLACE INTO t VALUES(%lld, %lld, 'text' || %lld, %lld * 0.5)",
                 (long long)key, (long long)value, (long long)value, (long long)value);
    }
    kit_exec(world->session, sql);
    world->v[key] = value;
}

static void
expect_row(const Cell *row, i64 key, i64 value)
{
    char text[32];
    snprintf(text, sizeof(text), "text%lld", (long long)value);
    assert_int_equal(row[0].u.i, key);
    assert_int_equal(row[1].u.i, value);
    assert_int_equal(row[2].type, CELL_TEXT);
    assert_int_equal(row[2].bytes, strlen(text));
    assert_memory_equal(row[2].u.p, text, strlen(text));
    assert_true(row[3].u.r == (f64)value * 0.5);
}

static void
scan(World *world, const char *sql, bool down, bool filtered, u32 writes)
{
    Stmt *stmt;
    size_t tail;
    bool row = true;
    i64 step = down ? -1 : 1, key = down ? KEYS : 0;
    assert_int_equal(stmt_prepare(world->session, SLICE(sql, strlen(sql)), &stmt, &tail), OK);
    while (row) {
        assert_int_equal(stmt_step(stmt, &row), OK);
        for (key += step; key > 0 && key < KEYS; key += step) {
            if (world->v[key] >= 0 && (!filtered || world->v[key] % 2 == 0)) break;
        }
        assert_int_equal(row, key > 0 && key < KEYS);
        if (row) expect_row(stmt_row(stmt), key, world->v[key]);
        if (!row || rng_below(&world->rng, 1000) >= writes) continue;
        for (u32 i = 0; i < 3; i++)
            write_at(world, key + step * (i64)rng_below(&world->rng, 40));
    }
    assert_int_equal(stmt_finalize(stmt), OK);
}

static void
scans_show_rows_as_they_are(void **state)
{
    (void)state;
    static World world;
    static const char *const all = "SELECT k, v, c, d FROM t";
    rng_seed(&world.rng, 4711);
    world.session = kit_open("", false);
    kit_exec(world.session, "CREATE TABLE t(k INTEGER PRIMARY KEY, v INT, c TEXT, d REAL)");
    kit_exec(world.session, "BEGIN");
    world.v[0] = -1;
    for (i64 key = 1; key < KEYS; key++) {
        world.v[key] = -1;
        write_at(&world, key);
    }
    kit_exec(world.session, "COMMIT");
    for (u32 round = 0; round < 6; round++) {
        u32 writes = (u32[]){0, 2, 20}[round % 3];
        if (round >= 3) kit_exec(world.session, "BEGIN");
        scan(&world, all, false, false, writes);
        scan(&world, "SELECT k, v, c, d FROM t ORDER BY k DESC", true, false, writes);
        scan(&world, "SELECT k, v, c, d FROM t WHERE v%2=0", false, true, writes);
        if (round >= 3) kit_exec(world.session, "COMMIT");
    }
    assert_int_equal(session_close(world.session), OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scans_show_rows_as_they_are)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
