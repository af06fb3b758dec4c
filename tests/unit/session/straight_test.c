/*
 * straight_test.c -- INSERT of one row on its shortest way stores what the longer ways store.
 *
 * Method: two tables with the same columns, one of them with an index, so that its rows go a longer
 * way.  The same prepared INSERT runs on both with random values of every type in every kind of
 * column; both must agree on success, and afterwards on the types and values of all rows.
 */
#include "session_kit.h"

#define COLUMNS "a INTEGER, b TEXT, c REAL, d NUMERIC, e BLOB, f, g INT NOT NULL"
#define RUNS    3000u

static const u8 text_bytes[6000] = "12.50";

static Cell
random_value(Rng *rng)
{
    switch (rng_below(rng, 12)) {
    case 0: return cell_null();
    case 1: return cell_int((i64)rng_below(rng, 3));
    case 2: return cell_int(-(i64)(rng_next(rng) >> rng_below(rng, 64)));
    case 3: return cell_int(I64_MAX);
    case 4: return cell_real((f64)rng_below(rng, 9) / 4);
    case 5: return cell_real(-0.0);
    case 6: return cell_real(1e300);
    case 7: return cell_text("12", 2);
    case 8: return cell_text("abc", 3);
    case 9: return cell_text((const char *)text_bytes, 5);
    case 10:
        return (Cell){.type = CELL_BLOB, .u.p = text_bytes, .bytes = (u32)rng_below(rng, 6000)};
    default:
        return (Cell){
            .type = CELL_BLOB, .flags = CELL_ZEROBLOB, .bytes = (u32)rng_below(rng, 2000)};
    }
}

/* The rowid's: mostly none, an integer, or what becomes one. */
static Cell
random_rowid(Rng *rng)
{
    switch (rng_below(rng, 8)) {
    case 0: return cell_int((i64)rng_below(rng, 100000));
    case 1: return cell_real(5000.0 + (f64)rng_below(rng, 100));
    case 2: return cell_text("77", 2);
    case 3: return cell_text("x", 1);
    default: return cell_null();
    }
}

static Err
run(Stmt *stmt, const Cell *value, u32 count)
{
    bool row;
    for (u32 i = 0; i < count; i++)
        assert_int_equal(stmt_bind(stmt, i, &value[i]), OK);
    Err err = stmt_step(stmt, &row);
    (void)stmt_reset(stmt);
    return err;
}

static void
compare(Session *s, const char *first, const char *second)
{
    char sql[512];
    static const char all[] = "SELECT k, typeof(a), quote(a), typeof(b), quote(b), typeof(c), "
                              "quote(c), typeof(d), quote(d), typeof(e), quote(e), typeof(f), "
                              "quote(f), g FROM";
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM (%s %s EXCEPT %s %s)", all, first, all,
             second);
    kit_query(s, sql, "0;");
    snprintf(sql, sizeof(sql), "SELECT count(*) - (SELECT count(*) FROM %s) FROM %s", second,
             first);
    kit_query(s, sql, "0;");
}

static void
same_rows(bool single, const char *key)
{
    char sql[512];
    Session *s = kit_open("", single);
    snprintf(sql, sizeof(sql), "CREATE TABLE p(k INTEGER %s, " COLUMNS ")", key);
    kit_exec(s, sql);
    snprintf(sql, sizeof(sql), "CREATE TABLE q(k INTEGER %s, " COLUMNS ")", key);
    kit_exec(s, sql);
    kit_exec(s, "CREATE INDEX q_f ON q(f); CREATE TABLE p2(a, g INT NOT NULL DEFAULT 3, b TEXT);"
                "CREATE TABLE q2(a, g INT NOT NULL DEFAULT 3, b TEXT); CREATE INDEX q2_a ON q2(a)");
    static const char *const sets[][2] = {
        {"INSERT INTO p VALUES(?,?,?,?,?,?,?,?)", "INSERT INTO q VALUES(?,?,?,?,?,?,?,?)"},
        {"INSERT INTO p(g, b, k) VALUES(?3,?2,?1)", "INSERT INTO q(g, b, k) VALUES(?3,?2,?1)"},
        {"INSERT INTO p(g, b, c) VALUES(7,?,2.5)", "INSERT INTO q(g, b, c) VALUES(7,?,2.5)"},
    };
    Rng rng;
    rng_seed(&rng, single ? 11 : 12);
    Stmt *stmt[3][2];
    for (u32 i = 0; i < 6; i++)
        stmt[i / 2][i % 2] = kit_prepare(s, sets[i / 2][i % 2]);
    u32 stored = 0;
    for (u32 i = 0; i < RUNS; i++) {
        Cell value[8];
        u32 which = (u32)rng_below(&rng, 3), count = stmt_param_count(stmt[which][0]);
        if (i % 100 == 0) kit_exec(s, "BEGIN");
        for (u32 k = 0; k < 8; k++)
            value[k] = random_value(&rng);
        if (which < 2) value[0] = random_rowid(&rng);
        Err err = run(stmt[which][0], value, count);
        assert_int_equal(run(stmt[which][1], value, count), err);
        stored += err == OK;
        if (i % 100 == 99) kit_exec(s, i % 300 == 299 ? "ROLLBACK" : "COMMIT");
    }
    assert_true(stored > RUNS / 2 && stored < RUNS);
    for (u32 i = 0; i < 6; i++)
        stmt_finalize(stmt[i / 2][i % 2]);
    kit_exec(s, "INSERT INTO p2(a) VALUES(1); INSERT INTO q2(a) VALUES(1);"
                "INSERT INTO p2(rowid, b) VALUES(9, 5); INSERT INTO q2(rowid, b) VALUES(9, 5);"
                "INSERT INTO p2(b) VALUES(x'00'); INSERT INTO q2(b) VALUES(x'00')");
    kit_query(s,
              "SELECT count(*) FROM (SELECT rowid, quote(a), g, quote(b) FROM p2 INTERSECT "
              "SELECT rowid, quote(a), g, quote(b) FROM q2)",
              "3;");
    compare(s, "p", "q");
    compare(s, "q", "p");
    session_destroy(s);
}

static void
rows_with_their_rowid_as_key(void **state)
{
    (void)state;
    same_rows(true, "PRIMARY KEY");
    same_rows(false, "PRIMARY KEY");
}

static void
rows_with_a_rowid_of_its_own(void **state)
{
    (void)state;
    same_rows(true, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_with_their_rowid_as_key),
        cmocka_unit_test(rows_with_a_rowid_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
