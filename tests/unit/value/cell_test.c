/*
 * cell_test.c -- comparison, affinity, CAST and operators of cells.
 *
 * Method: random cells go through SQLite and through us; types and values must be identical.
 * What SQLite's older versions do differently, and the awkward cases, stand in tables recorded
 * from 3.54.1.
 */
#include "unit/value/oracle.h"
#include "value/collate.h"

enum { TRIALS = 20000 };

static Arena arena;

static void
expect(const char *what, const Cell *a, const Cell *b, const Cell *got, const Cell *want)
{
    if (cell_identical(got, want)) return;
    /* Older versions have a negative zero in more places. */
    if (!oracle_is_new() && got->type == CELL_REAL && want->type == CELL_REAL &&
        got->u.r == want->u.r) {
        return;
    }
    fprintf(stderr, "%s\n", what);
    oracle_print("a", a);
    oracle_print("b", b);
    oracle_print("got", got);
    oracle_print("want", want);
    fail();
}

typedef Cell (*Binary)(const Cell *a, const Cell *b);

static void
operators_agree_with_sqlite(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        Binary run;
    } ops[] = {{"?1+?2", cell_add},    {"?1-?2", cell_sub},  {"?1*?2", cell_mul},
               {"?1/?2", cell_div},    {"?1%?2", cell_rem},  {"?1&?2", cell_bit_and},
               {"?1|?2", cell_bit_or}, {"?1<<?2", cell_shl}, {"?1>>?2", cell_shr}};
    sqlite3 *db = oracle_open();
    sqlite3_stmt *stmt = oracle_prepare(
        db, "SELECT ?1+?2,?1-?2,?1*?2,?1/?2,?1%?2,?1&?2,?1|?2,?1<<?2,?1>>?2,-?1,~?1,?1||?2,"
            "?1 IS TRUE, NOT ?1");
    Rng rng;
    rng_seed(&rng, 21);
    for (u32 trial = 0; trial < TRIALS; trial++) {
        u8 room[2][64];
        Cell a = random_cell(&rng, room[0]), b = random_cell(&rng, room[1]), got, want;
        oracle_bind(stmt, 1, &a);
        oracle_bind(stmt, 2, &b);
        assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
        for (int i = 0; i < (int)COUNT_OF(ops); i++) {
            got = ops[i].run(&a, &b);
            want = oracle_column(stmt, i);
            expect(ops[i].sql, &a, &b, &got, &want);
        }
        got = cell_neg(&a);
        want = oracle_column(stmt, 9);
        expect("-?1", &a, &b, &got, &want);
        got = cell_bit_not(&a);
        want = oracle_column(stmt, 10);
        expect("~?1", &a, &b, &got, &want);
        assert_int_equal(cell_concat(&a, &b, 1000, &arena, &got), OK);
        want = oracle_column(stmt, 11);
        expect("?1||?2", &a, &b, &got, &want);
        CellTruth truth = cell_truth(&a);
        got = cell_int(truth == TRUTH_TRUE);
        want = oracle_column(stmt, 12);
        expect("?1 IS TRUE", &a, &b, &got, &want);
        got = truth == TRUTH_NULL ? cell_null() : cell_int(truth == TRUTH_FALSE);
        want = oracle_column(stmt, 13);
        expect("NOT ?1", &a, &b, &got, &want);
        sqlite3_reset(stmt);
        arena_reset(&arena);
    }
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

static void
casts_agree_with_sqlite(void **state)
{
    (void)state;
    static const Affinity targets[] = {AFFINITY_INTEGER, AFFINITY_REAL, AFFINITY_NUMERIC,
                                       AFFINITY_TEXT, AFFINITY_BLOB};
    sqlite3 *db = oracle_open();
    sqlite3_stmt *stmt = oracle_prepare(db,
                                        "SELECT CAST(?1 AS INTEGER), CAST(?1 AS REAL), "
                                        "CAST(?1 AS NUMERIC), CAST(?1 AS TEXT), CAST(?1 AS BLOB)");
    Rng rng;
    rng_seed(&rng, 22);
    for (u32 trial = 0; trial < TRIALS; trial++) {
        u8 room[64];
        Cell a = random_cell(&rng, room);
        oracle_bind(stmt, 1, &a);
        assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
        for (int i = 0; i < (int)COUNT_OF(targets); i++) {
            Cell got = a, want = oracle_column(stmt, i);
            assert_int_equal(cell_cast(&got, targets[i], &arena), OK);
            expect("CAST", &a, &a, &got, &want);
        }
        sqlite3_reset(stmt);
        arena_reset(&arena);
    }
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

static void
comparisons_agree_with_sqlite(void **state)
{
    (void)state;
    static const Collation *const collations[] = {&collation_binary, &collation_nocase,
                                                  &collation_rtrim};
    sqlite3 *db = oracle_open();
    sqlite3_stmt *stmt = oracle_prepare(
        db, "SELECT (?1>?2)-(?1<?2), (?1>?2 COLLATE NOCASE)-(?1<?2 COLLATE NOCASE),"
            "(?1>?2 COLLATE RTRIM)-(?1<?2 COLLATE RTRIM), ?1 IS ?2");
    Rng rng;
    rng_seed(&rng, 23);
    for (u32 trial = 0; trial < TRIALS; trial++) {
        u8 room[2][64];
        Cell a = random_cell(&rng, room[0]), b = random_cell(&rng, room[1]);
        if (rng_below(&rng, 3) == 0 && a.type == CELL_INT) b = cell_real((f64)a.u.i);
        oracle_bind(stmt, 1, &a);
        oracle_bind(stmt, 2, &b);
        assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
        for (int i = 0; i < 3; i++) {
            int order = cell_compare(&a, &b, collations[i]);
            assert_int_equal(cell_compare(&b, &a, collations[i]), -order);
            Cell got = cell_int(order), want = oracle_column(stmt, i);
            if (want.type != CELL_NULL) expect("compare", &a, &b, &got, &want);
        }
        assert_int_equal(cell_compare(&a, &b, NULL) == 0, sqlite3_column_int(stmt, 3));
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

/* Store `a` in columns of each affinity; compare those columns with `b`. */
static void
affinities_agree_with_sqlite(void **state)
{
    (void)state;
    static const Affinity affinities[] = {AFFINITY_BLOB, AFFINITY_TEXT, AFFINITY_NUMERIC,
                                          AFFINITY_INTEGER, AFFINITY_REAL};
    sqlite3 *db = oracle_open();
    sqlite3_exec(db, "CREATE TABLE t(b BLOB, x TEXT, n NUMERIC, i INTEGER, r REAL)", 0, 0, 0);
    sqlite3_stmt *insert = oracle_prepare(db, "INSERT INTO t VALUES(?1,?1,?1,?1,?1)");
    sqlite3_stmt *query = oracle_prepare(
        db, "SELECT b,x,n,i,r, (b>?1)-(b<?1), (x>?1)-(x<?1), (n>?1)-(n<?1), (i>?1)-(i<?1),"
            "(r>?1)-(r<?1) FROM t");
    Rng rng;
    rng_seed(&rng, 24);
    for (u32 trial = 0; trial < TRIALS; trial++) {
        u8 room[2][64];
        Cell a = random_cell(&rng, room[0]), b = random_cell(&rng, room[1]);
        sqlite3_exec(db, "DELETE FROM t", 0, 0, 0);
        oracle_bind(insert, 1, &a);
        assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
        sqlite3_reset(insert);
        oracle_bind(query, 1, &b);
        assert_int_equal(sqlite3_step(query), SQLITE_ROW);
        for (int i = 0; i < 5; i++) {
            Cell got = a, want = oracle_column(query, i);
            assert_int_equal(cell_apply_affinity(&got, affinities[i], &arena), OK);
            if (affinity_keeps(affinities[i], a.type)) assert_true(cell_identical(&got, &a));
            expect("store", &a, &b, &got, &want);

            Cell left = want, right = b;
            want = oracle_column(query, 5 + i);
            if (want.type == CELL_NULL) continue;
            assert_int_equal(cell_pair_apply_affinity(&left, &right, affinities[i], &arena), OK);
            got = cell_int(cell_compare(&left, &right, NULL));
            expect("compare with affinity", &a, &b, &got, &want);
        }
        sqlite3_reset(query);
        arena_reset(&arena);
    }
    sqlite3_finalize(insert);
    sqlite3_finalize(query);
    sqlite3_close(db);
}

static void
declared_types_give_affinities(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        Affinity affinity;
    } cases[] = {{"", AFFINITY_BLOB},
                 {"INT", AFFINITY_INTEGER},
                 {"bigint", AFFINITY_INTEGER},
                 {"POINT", AFFINITY_INTEGER},
                 {"CHARINT", AFFINITY_INTEGER},
                 {"VARCHAR(20)", AFFINITY_TEXT},
                 {"clob", AFFINITY_TEXT},
                 {"Text", AFFINITY_TEXT},
                 {"BLOB", AFFINITY_BLOB},
                 {"TEXTBLOB", AFFINITY_TEXT},
                 {"REALBLOB", AFFINITY_BLOB},
                 {"real", AFFINITY_REAL},
                 {"DOUBLE", AFFINITY_REAL},
                 {"float", AFFINITY_REAL},
                 {"NUMERIC", AFFINITY_NUMERIC},
                 {"DECIMAL(10,5)", AFFINITY_NUMERIC},
                 {"DATE", AFFINITY_NUMERIC},
                 {"BOOLEAN", AFFINITY_NUMERIC},
                 {"STRING", AFFINITY_NUMERIC},
                 {"BLOBREAL", AFFINITY_BLOB},
                 {"FLOATING POINT", AFFINITY_INTEGER}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(affinity_of_type(SLICE(cases[i].type, strlen(cases[i].type))),
                         cases[i].affinity);
    }
}

static void
awkward_values_as_recorded(void **state)
{
    (void)state;
    Cell cell = cell_text("123456789012345678.0", 20);
    assert_int_equal(cell_apply_affinity(&cell, AFFINITY_NUMERIC, &arena), OK);
    assert_true(cell.type == CELL_INT && cell.u.i == 123456789012345680);

    cell = cell_real(1.0);
    assert_int_equal(cell_cast(&cell, AFFINITY_NUMERIC, &arena), OK);
    assert_int_equal(cell.type, CELL_REAL);
    cell = cell_text("1.0", 3);
    assert_int_equal(cell_cast(&cell, AFFINITY_NUMERIC, &arena), OK);
    assert_true(cell.type == CELL_INT && cell.u.i == 1);

    cell = cell_real(9223372036854775807.0);
    assert_int_equal(cell_apply_affinity(&cell, AFFINITY_INTEGER, &arena), OK);
    assert_int_equal(cell.type, CELL_REAL);

    cell = cell_real(-0.0);
    assert_int_equal(cell_apply_affinity(&cell, AFFINITY_REAL, &arena), OK);
    assert_true(cell.type == CELL_REAL && !__builtin_signbit(cell.u.r));

    Cell a = cell_blob("a", 1), b = cell_blob("b", 1), out;
    assert_int_equal(cell_concat(&a, &b, 2, &arena, &out), OK);
    assert_int_equal(out.type, CELL_TEXT);
    assert_int_equal(cell_concat(&a, &b, 1, &arena, &out), ERR_TOOBIG);

    /* 'a\0b' = 'A\0c' under NOCASE: it stops at NUL, then compares lengths. */
    assert_int_equal(
        collation_compare(&collation_nocase, SLICE_LITERAL("a\0b"), SLICE_LITERAL("A\0c")), 0);
    assert_int_equal(
        collation_compare(&collation_nocase, SLICE_LITERAL("a\0b"), SLICE_LITERAL("A\0cc")), -1);
    assert_int_equal(collation_compare(&collation_nocase, SLICE_LITERAL("_"), SLICE_LITERAL("A")),
                     -1);
    assert_int_equal(collation_compare(&collation_rtrim, SLICE_LITERAL("a"), SLICE_LITERAL("a  ")),
                     0);
    assert_ptr_equal(collation_find_builtin(SLICE_LITERAL("noCase")), &collation_nocase);
    assert_null(collation_find_builtin(SLICE_LITERAL("none")));
}

static void
subtypes_pass_and_copies_stand_alone(void **state)
{
    (void)state;
    Cell cell = cell_int(5), copy;
    cell.subtype = 74;
    assert_int_equal(cell_cast(&cell, AFFINITY_TEXT, &arena), OK);
    assert_int_equal(cell.subtype, 74);
    assert_int_equal(cell.type, CELL_TEXT);

    char bytes[] = "xyz";
    cell = cell_text(bytes, 3);
    assert_int_equal(cell_copy(&cell, &arena, &copy), OK);
    bytes[0] = '?';
    assert_memory_equal(copy.u.p, "xyz", 4); /* With a NUL behind. */
    LongRef ref = {.tree = {1}, .bytes = {2}, .prefix = {3}};
    cell = (Cell){.type = CELL_BLOB, .flags = CELL_BY_REF, .bytes = 2, .u.ref = &ref};
    assert_int_equal(cell_copy(&cell, &arena, &copy), OK);
    ref.tree[0] = 9;
    assert_int_equal(copy.u.ref->tree[0], 1);
}

static void
shortage_of_memory_is_reported(void **state)
{
    (void)state;
    Arena poor;
    arena_init(&poor, NULL);
    Cell a = cell_int(1), b = cell_text("x", 1), out;
    mem_fail_arm(1, true);
    assert_int_equal(cell_concat(&a, &b, 100, &poor, &out), ERR_NOMEM);
    assert_int_equal(cell_cast(&a, AFFINITY_TEXT, &poor), ERR_NOMEM);
    assert_int_equal(cell_copy(&b, &poor, &out), ERR_NOMEM);
    a = cell_int(1);
    assert_int_equal(cell_pair_apply_affinity(&a, &b, AFFINITY_TEXT, &poor), ERR_NOMEM);
    mem_fail_arm(0, false);
    arena_free(&poor);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_agree_with_sqlite),
        cmocka_unit_test(casts_agree_with_sqlite),
        cmocka_unit_test(comparisons_agree_with_sqlite),
        cmocka_unit_test(affinities_agree_with_sqlite),
        cmocka_unit_test(declared_types_give_affinities),
        cmocka_unit_test(awkward_values_as_recorded),
        cmocka_unit_test(subtypes_pass_and_copies_stand_alone),
        cmocka_unit_test(shortage_of_memory_is_reported),
    };
    arena_init(&arena, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(&arena);
    return failed;
}
