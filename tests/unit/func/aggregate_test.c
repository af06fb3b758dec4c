/*
 * aggregate_test.c -- aggregates against SQLite: over all rows, over moving frames, and combined.
 *
 * Method: random columns go into a table there and through step here; moving frames through
 * inverse; the same rows in two states that are combined must give what one state gives (integers
 * exactly, also whether the sum overflows).
 */
#include "func/func_builtin.h"
#include "unit/value/oracle.h"

enum { ROWS_MAX = 12, STATE_MAX = 256 };

typedef struct Runner {
    FuncCall call;
    _Alignas(16) u8 state[STATE_MAX];
} Runner;

static FuncTable table;
static Arena arena;
static ErrMsg msg;

static void
runner_start(Runner *r, const char *name, u32 argc)
{
    const FuncDef *def = func_find(&table, SLICE(name, strlen(name)), argc, NULL);
    assert_non_null(def);
    assert_int_equal(def->kind, FUNC_AGGREGATE);
    assert_true(def->state_bytes <= STATE_MAX);
    memset(r, 0, sizeof(*r));
    r->call = (FuncCall){.def = def,
                         .arena = &arena,
                         .collation = &collation_binary,
                         .msg = &msg,
                         .state = r->state};
}

static void
runner_end(Runner *r)
{
    if (r->call.def->state_free != NULL) r->call.def->state_free(&r->call);
}

static Err
runner_value(Runner *r, Cell *out)
{
    *out = cell_null();
    return r->call.def->value(&r->call, out);
}

typedef struct Column {
    u32 rows;
    Cell cell[ROWS_MAX];
    u8 room[ROWS_MAX][64];
} Column;

/* Numbers mostly, so that sums are sums. */
static void
random_column(Rng *rng, Column *column, bool numbers)
{
    column->rows = (u32)rng_below(rng, ROWS_MAX + 1);
    u64 mode = rng_below(rng, 4);
    for (u32 i = 0; i < column->rows; i++) {
        column->cell[i] = random_cell(rng, column->room[i]);
        if (!numbers || rng_below(rng, 12) == 0) continue;
        column->cell[i] = cell_int(random_int(rng));
        if (mode == 1) column->cell[i] = cell_int((i64)rng_below(rng, 1000) - 500);
        if (mode == 2) column->cell[i] = cell_real(random_real(rng));
        if (mode == 3 && rng_below(rng, 4) == 0) column->cell[i] = cell_real(random_real(rng));
    }
}

static void
fill_table(sqlite3 *db, sqlite3_stmt *insert, const Column *column)
{
    sqlite3_exec(db, "DELETE FROM t", 0, 0, 0);
    for (u32 i = 0; i < column->rows; i++) {
        sqlite3_bind_int(insert, 1, (int)i + 1);
        oracle_bind(insert, 2, &column->cell[i]);
        assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
        sqlite3_reset(insert);
    }
}

static void
same(const char *name, const Column *column, Err err, const Cell *got, int rc, sqlite3_stmt *stmt)
{
    Cell want = rc == SQLITE_ROW ? oracle_column(stmt, 0) : cell_null();
    if (rc == SQLITE_ROW ? err == OK && cell_identical(got, &want) : err == ERR_SQL) return;
    /* A sum of negative zeros keeps its sign in some versions. */
    if (err == OK && got->type == CELL_REAL && want.type == CELL_REAL && got->u.r == want.u.r) {
        return;
    }
    fprintf(stderr, "%s, err %d, rc %d\n", name, err, rc);
    for (u32 i = 0; i < column->rows; i++) {
        oracle_print("row", &column->cell[i]);
    }
    oracle_print("got", got);
    oracle_print("want", &want);
    fail();
}

static const struct {
    const char *name, *sql;
    bool numbers;
    bool new_only; /* Sums of reals are compensated only in newer versions. */
} AGGREGATES[] = {
    {"count", "SELECT count(v) %s", false, false},
    {"sum", "SELECT sum(v) %s", true, true},
    {"total", "SELECT total(v) %s", true, true},
    {"avg", "SELECT avg(v) %s", true, true},
    {"min", "SELECT min(v) %s", false, false},
    {"max", "SELECT max(v) %s", false, false},
    {"group_concat", "SELECT group_concat(v) %s", false, false},
};

static void
aggregates_agree_with_sqlite(void **state)
{
    (void)state;
    sqlite3 *db = oracle_open();
    sqlite3_exec(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, v)", 0, 0, 0);
    sqlite3_stmt *insert = oracle_prepare(db, "INSERT INTO t VALUES(?1, ?2)");
    Rng rng;
    rng_seed(&rng, 61);
    for (size_t a = 0; a < COUNT_OF(AGGREGATES); a++) {
        if (AGGREGATES[a].new_only && !oracle_is_new()) continue;
        char sql[128];
        snprintf(sql, sizeof(sql), AGGREGATES[a].sql, "FROM (SELECT v FROM t ORDER BY id)");
        sqlite3_stmt *stmt = oracle_prepare(db, sql);
        for (u32 trial = 0; trial < 1500; trial++) {
            Column column;
            random_column(&rng, &column, AGGREGATES[a].numbers);
            fill_table(db, insert, &column);
            Runner r;
            runner_start(&r, AGGREGATES[a].name, 1);
            for (u32 i = 0; i < column.rows; i++) {
                assert_int_equal(r.call.def->step(&r.call, 1, &column.cell[i]), OK);
            }
            Cell got;
            Err err = runner_value(&r, &got);
            same(AGGREGATES[a].name, &column, err, &got, sqlite3_step(stmt), stmt);
            sqlite3_reset(stmt);
            runner_end(&r);
            arena_reset(&arena);
        }
        sqlite3_finalize(stmt);
    }
    sqlite3_finalize(insert);
    sqlite3_close(db);
}

static void
moving_frames_agree_with_sqlite(void **state)
{
    (void)state;
    enum { BEFORE = 2 };
    sqlite3 *db = oracle_open();
    sqlite3_exec(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, v)", 0, 0, 0);
    sqlite3_stmt *insert = oracle_prepare(db, "INSERT INTO t VALUES(?1, ?2)");
    Rng rng;
    rng_seed(&rng, 62);
    for (size_t a = 0; a < COUNT_OF(AGGREGATES); a++) {
        if (AGGREGATES[a].new_only && !oracle_is_new()) continue;
        char sql[160];
        snprintf(sql, sizeof(sql), AGGREGATES[a].sql,
                 "OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t");
        sqlite3_stmt *stmt = oracle_prepare(db, sql);
        for (u32 trial = 0; trial < 600; trial++) {
            Column column;
            random_column(&rng, &column, AGGREGATES[a].numbers);
            for (u32 i = 0; i < column.rows; i++) { /* See inverse_concat. */
                bool empty = column.cell[i].type >= CELL_TEXT && column.cell[i].bytes == 0;
                if (empty) column.cell[i] = cell_int(0);
            }
            fill_table(db, insert, &column);
            Runner r;
            runner_start(&r, AGGREGATES[a].name, 1);
            bool ended = r.call.def->inverse == NULL;
            for (u32 i = 0; i < column.rows && !ended; i++) {
                Cell got;
                if (i > BEFORE) { /* SQLite takes the old row out before it adds the new one. */
                    const Cell *gone = &column.cell[i - BEFORE - 1];
                    assert_int_equal(r.call.def->inverse(&r.call, 1, gone), OK);
                }
                assert_int_equal(r.call.def->step(&r.call, 1, &column.cell[i]), OK);
                Err err = runner_value(&r, &got);
                same(AGGREGATES[a].name, &column, err, &got, sqlite3_step(stmt), stmt);
                ended = err != OK;
            }
            sqlite3_reset(stmt);
            runner_end(&r);
            arena_reset(&arena);
        }
        sqlite3_finalize(stmt);
    }
    sqlite3_finalize(insert);
    sqlite3_close(db);
}

static void
combined_states_say_what_one_says(void **state)
{
    (void)state;
    static const char *const names[] = {"count", "sum", "total", "avg", "min", "max"};
    Rng rng;
    rng_seed(&rng, 63);
    for (u32 trial = 0; trial < 20000; trial++) {
        const char *name = names[trial % COUNT_OF(names)];
        Column column;
        column.rows = (u32)rng_below(&rng, ROWS_MAX + 1);
        for (u32 i = 0; i < column.rows; i++) {
            column.cell[i] = cell_int(random_int(&rng));
        }
        u32 cut = (u32)rng_below(&rng, column.rows + 1);
        Runner one, first, second;
        runner_start(&one, name, 1);
        runner_start(&first, name, 1);
        runner_start(&second, name, 1);
        for (u32 i = 0; i < column.rows; i++) {
            Runner *part = i < cut ? &first : &second;
            assert_int_equal(one.call.def->step(&one.call, 1, &column.cell[i]), OK);
            assert_int_equal(part->call.def->step(&part->call, 1, &column.cell[i]), OK);
        }
        assert_int_equal(first.call.def->combine(&first.call, second.state), OK);
        Cell want, got;
        Err want_err = runner_value(&one, &want), got_err = runner_value(&first, &got);
        assert_int_equal(want_err, got_err);
        if (want.type == CELL_REAL) {
            f64 off = want.u.r - got.u.r;
            f64 size = want.u.r < 0 ? -want.u.r : want.u.r;
            assert_true((off < 0 ? -off : off) <= size * 1e-15);
        } else {
            assert_true(cell_identical(&want, &got));
        }
        runner_end(&one);
        runner_end(&first);
        runner_end(&second);
        arena_reset(&arena);
    }
}

static Err
sum_of(const Cell *cells, u32 count, Cell *out)
{
    Runner r;
    runner_start(&r, "sum", 1);
    for (u32 i = 0; i < count; i++) {
        assert_int_equal(r.call.def->step(&r.call, 1, &cells[i]), OK);
    }
    return runner_value(&r, out);
}

static void
sums_as_recorded(void **state)
{
    (void)state;
    Cell out;
    Cell over[] = {cell_int(I64_MAX), cell_int(3), cell_int(-5)};
    assert_int_equal(sum_of(over, 3, &out), ERR_SQL);
    assert_string_equal(err_message(&msg), "integer overflow");
    Cell fine[] = {cell_int(I64_MAX), cell_int(-5), cell_int(3)};
    assert_int_equal(sum_of(fine, 3, &out), OK);
    assert_true(out.u.i == I64_MAX - 2);
    Cell reals[] = {cell_real(1e100), cell_real(1.0), cell_real(-1e100)};
    assert_int_equal(sum_of(reals, 3, &out), OK);
    assert_true(out.u.r == 1.0);
    /* A real after the overflow makes it a real sum. */
    Cell mixed[] = {cell_int(I64_MAX), cell_int(3), cell_real(0.5)};
    assert_int_equal(sum_of(mixed, 3, &out), OK);
    assert_true(out.type == CELL_REAL && out.u.r == 9223372036854775808.0);
    assert_int_equal(sum_of(NULL, 0, &out), OK);
    assert_int_equal(out.type, CELL_NULL);
    err_clear(&msg);
}

static void
min_and_max_tell_the_row_they_took(void **state)
{
    (void)state;
    Runner r;
    runner_start(&r, "max", 1);
    static const struct {
        i64 value;
        bool null, took;
    } rows[] = {{0, true, true},   {5, false, true}, {0, true, false},
                {5, false, false}, {7, false, true}, {6, false, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        Cell cell = rows[i].null ? cell_null() : cell_int(rows[i].value);
        assert_int_equal(r.call.def->step(&r.call, 1, &cell), OK);
        assert_int_equal(r.call.took_row, rows[i].took);
    }
    runner_end(&r);
}

static void
separators_may_change_within_a_frame(void **state)
{
    (void)state;
    Runner r;
    runner_start(&r, "group_concat", 2);
    Cell rows[][2] = {{cell_text("a", 1), cell_text("-", 1)},
                      {cell_text("b", 1), cell_text("==", 2)},
                      {cell_null(), cell_text("?", 1)},
                      {cell_text("", 0), cell_text("+", 1)},
                      {cell_text("c", 1), cell_null()}};
    static const char *const want[] = {"a", "a==b", "a==b", "a==b+", "a==b+c"};
    Cell out;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(r.call.def->step(&r.call, 2, rows[i]), OK);
        assert_int_equal(runner_value(&r, &out), OK);
        assert_string_equal((const char *)out.u.p, want[i]);
    }
    assert_int_equal(r.call.def->inverse(&r.call, 2, rows[0]), OK);
    assert_int_equal(runner_value(&r, &out), OK);
    assert_string_equal((const char *)out.u.p, "b+c");
    for (size_t i = 1; i < COUNT_OF(rows); i++) {
        assert_int_equal(r.call.def->inverse(&r.call, 2, rows[i]), OK);
    }
    assert_int_equal(runner_value(&r, &out), OK);
    assert_int_equal(out.type, CELL_NULL);
    runner_end(&r);
    arena_reset(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aggregates_agree_with_sqlite),
        cmocka_unit_test(moving_frames_agree_with_sqlite),
        cmocka_unit_test(combined_states_say_what_one_says),
        cmocka_unit_test(sums_as_recorded),
        cmocka_unit_test(min_and_max_tell_the_row_they_took),
        cmocka_unit_test(separators_may_change_within_a_frame),
    };
    arena_init(&arena, NULL);
    if (func_builtin_init(&table) != OK) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    func_builtin_free(&table);
    arena_free(&arena);
    err_clear(&msg);
    return failed;
}
