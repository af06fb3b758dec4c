/*
 * table_test.c -- functions that yield rows: json_each, json_tree, generate_series.
 *
 * Method: rows recorded from SQLite 3.54.1; with a library that new, random documents and roots
 * give the same rows, column by column, there and here.
 */
#include "unit/func/json_random.h"

typedef struct Runner {
    TableCall call;
    Arena arena;
    ErrMsg msg;
    _Alignas(16) u8 state[256];
} Runner;

static void
runner_open(Runner *r, const char *name)
{
    memset(r, 0, sizeof(*r));
    arena_init(&r->arena, NULL);
    const TableFunc *func = func_builtin_table_func(SLICE(name, strlen(name)));
    assert_non_null(func);
    assert_true(func->state_bytes <= sizeof(r->state));
    r->call = (TableCall){.func = func, .arena = &r->arena, .msg = &r->msg, .state = r->state};
}

static void
runner_close(Runner *r)
{
    r->call.func->end(&r->call);
    arena_free(&r->arena);
    err_clear(&r->msg);
}

static void
show(const char *name, const Cell *argv, const Cell *got, const Cell *want)
{
    fprintf(stderr, "%s\n", name);
    oracle_print("json", &argv[0]);
    oracle_print("root", &argv[1]);
    oracle_print("got", got);
    oracle_print("want", want);
    fail();
}

/* All rows of one call, against the statement's. */
static void
compare_rows(Runner *r, const char *name, const Cell *argv, bool rooted, sqlite3_stmt *stmt)
{
    const Cell *arg[2] = {&argv[0], rooted ? &argv[1] : NULL};
    Cell nothing = cell_null();
    Err err = r->call.func->start(&r->call, arg);
    for (i64 row = 0;; row++) {
        bool more = false;
        int rc = sqlite3_step(stmt);
        if (err == OK) err = r->call.func->next(&r->call, &more);
        if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
            /* There a column that cannot be shown fails the row. */
            for (u32 column = 0; more && err == OK && column < 10; column++) {
                Cell got = cell_null();
                err = r->call.func->value(&r->call, column, &got);
            }
            if (err != OK) return;
            show(name, argv, &nothing, &nothing);
        }
        if (err != OK || more != (rc == SQLITE_ROW)) show(name, argv, &nothing, &nothing);
        if (!more) return;
        assert_true(r->call.func->rowid(&r->call) == row);
        for (u32 column = 0; column < r->call.func->column_count; column++) {
            Cell got = cell_null(), want = oracle_column(stmt, (int)column);
            assert_int_equal(r->call.func->value(&r->call, column, &got), OK);
            if (!cell_identical(&got, &want)) show(name, argv, &got, &want);
        }
    }
}

static void
json_rows_agree_with_sqlite(void **state)
{
    (void)state;
    if (!oracle_is_new()) skip();
    static const char *const names[] = {"json_each", "json_tree", "jsonb_each", "jsonb_tree"};
    FuncOracle o;
    func_oracle_open(&o);
    Rng rng;
    rng_seed(&rng, 91);
    Buf document = {0}, root = {0};
    for (u32 n = 0; n < COUNT_OF(names); n++) {
        Runner r;
        runner_open(&r, names[n]);
        for (u32 rooted = 0; rooted < 2; rooted++) {
            char sql[256];
            snprintf(sql, sizeof(sql),
                     "SELECT key,value,type,atom,id,parent,fullkey,path,json,root FROM %s(?1%s)",
                     names[n], rooted ? ",?2" : "");
            sqlite3_stmt *stmt = oracle_prepare(o.db, sql);
            for (u32 trial = 0; trial < 6000; trial++) {
                Cell argv[2] = {random_document(&rng, &o, &document), random_path(&rng, &root)};
                oracle_bind(stmt, 1, &argv[0]);
                if (rooted) oracle_bind(stmt, 2, &argv[1]);
                compare_rows(&r, names[n], argv, rooted, stmt);
                sqlite3_reset(stmt);
                arena_reset(&r.arena);
                err_clear(&r.msg);
            }
            sqlite3_finalize(stmt);
        }
        runner_close(&r);
    }
    buf_free(&document);
    buf_free(&root);
    func_oracle_close(&o);
}

static void
json_tree_walks_in_document_order(void **state)
{
    (void)state;
    static const char *const want[][4] = {/* key, atom, fullkey, path */
                                          {NULL, NULL, "$", "$"},
                                          {"a", NULL, "$.a", "$"},
                                          {"0", "1", "$.a[0]", "$.a"},
                                          {"1", "x", "$.a[1]", "$.a"},
                                          {"c d", "2.5", "$.\"c d\"", "$"}};
    Runner r;
    runner_open(&r, "json_tree");
    Cell json = cell_text("{\"a\":[1,\"x\"],\"c d\":2.5}", 23), cells[4];
    const Cell *arg[2] = {&json, NULL};
    static const u32 columns[] = {0, 3, 6, 7};
    for (u32 again = 0; again < 2; again++) {
        assert_int_equal(r.call.func->start(&r.call, arg), OK);
        bool more;
        for (size_t row = 0; row < COUNT_OF(want); row++) {
            assert_int_equal(r.call.func->next(&r.call, &more), OK);
            assert_true(more);
            for (u32 c = 0; c < 4; c++) {
                cells[c] = cell_null();
                assert_int_equal(r.call.func->value(&r.call, columns[c], &cells[c]), OK);
                if (want[row][c] == NULL) {
                    assert_int_equal(cells[c].type, CELL_NULL);
                    continue;
                }
                assert_int_equal(cell_cast(&cells[c], AFFINITY_TEXT, &r.arena), OK);
                assert_int_equal(cells[c].bytes, strlen(want[row][c]));
                assert_memory_equal(cells[c].u.p, want[row][c], cells[c].bytes);
            }
        }
        assert_int_equal(r.call.func->next(&r.call, &more), OK);
        assert_false(more);
    }
    json = cell_text("{", 1);
    assert_int_equal(r.call.func->start(&r.call, arg), ERR_SQL);
    assert_string_equal(err_message(&r.msg), "malformed JSON");
    runner_close(&r);
}

/* Limits leave out nothing that is within them, and nothing but rows outside. */
static void
series_keep_what_limits_want(void **state)
{
    (void)state;
    static const i64 edges[] = {I64_MIN, I64_MIN + 1, -7, -1, 0, 1, 6, I64_MAX - 1, I64_MAX};
    static const i64 steps[] = {1, 3, -1, -4, I64_MAX, I64_MIN, I64_MAX / 2};
    Runner r;
    runner_open(&r, "generate_series");
    u64 seed = 12345;
    for (u32 round = 0; round < 20000; round++) {
        i64 v[5];
        for (u32 i = 0; i < 5; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            u32 pick = (u32)(seed >> 40);
            v[i] = pick % 3 == 0 ? edges[pick / 3 % COUNT_OF(edges)] : (i64)(pick / 3 % 41) - 20;
            if (i == 2) v[i] = steps[pick % COUNT_OF(steps)];
        }
        Cell cells[5];
        const Cell *all[5] = {&cells[0], &cells[1], &cells[2]}, *some[5];
        for (u32 i = 0; i < 5; i++) {
            cells[i] = cell_int(v[i]);
            some[i] = i == 3 && round % 5 == 0 ? NULL : &cells[i];
        }
        i64 low = some[3] == NULL ? I64_MIN : v[3];
        i64 want[64], row[64];
        u32 wanted = 0, seen = 0;
        bool more = true, cut = false;
        assert_int_equal(r.call.func->start(&r.call, all), OK);
        for (u32 i = 0; !cut; i++) {
            assert_int_equal(r.call.func->next(&r.call, &more), OK);
            if (!more) break;
            Cell got = cell_null();
            assert_int_equal(r.call.func->value(&r.call, 0, &got), OK);
            if (got.u.i >= low && got.u.i <= v[4]) {
                row[wanted] = r.call.func->rowid(&r.call);
                want[wanted++] = got.u.i;
            }
            cut = i == 60;
        }
        assert_int_equal(r.call.func->start(&r.call, some), OK);
        for (more = true; more && seen < wanted;) {
            assert_int_equal(r.call.func->next(&r.call, &more), OK);
            Cell got = cell_null();
            assert_int_equal(r.call.func->value(&r.call, 0, &got), OK);
            assert_true(more && got.u.i == want[seen]);
            assert_true(r.call.func->rowid(&r.call) == row[seen]);
            seen++;
        }
        if (cut) continue;
        assert_int_equal(r.call.func->next(&r.call, &more), OK);
        assert_false(more);
    }
    runner_close(&r);
}

static void
series_end_where_they_must(void **state)
{
    (void)state;
    static const struct {
        i64 start, stop, step;
        u32 rows;
        i64 last;
    } cases[] = {{1, 5, 1, 5, 5},
                 {1, 5, 2, 3, 5},
                 {5, 1, 1, 0, 0},
                 {5, 1, -2, 3, 1},
                 {3, 3, 0, 1, 3},
                 {I64_MAX - 1, I64_MAX, 1, 2, I64_MAX},
                 {I64_MIN, I64_MAX, I64_MAX, 3, I64_MAX - 1},
                 {I64_MAX, I64_MIN, I64_MIN, 2, -1}};
    Runner r;
    runner_open(&r, "generate_series");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Cell cells[3] = {cell_int(cases[i].start), cell_int(cases[i].stop),
                         cell_int(cases[i].step)};
        const Cell *arg[5] = {&cells[0], &cells[1], &cells[2]};
        assert_int_equal(r.call.func->start(&r.call, arg), OK);
        u32 rows = 0;
        Cell last = cell_int(0);
        for (bool more = true; more;) {
            assert_int_equal(r.call.func->next(&r.call, &more), OK);
            if (!more) break;
            rows++;
            assert_int_equal(r.call.func->value(&r.call, 0, &last), OK);
        }
        assert_int_equal(rows, cases[i].rows);
        if (rows > 0) assert_true(last.u.i == cases[i].last);
    }
    const Cell *none[5] = {NULL};
    assert_int_equal(r.call.func->start(&r.call, none), ERR_SQL);
    runner_close(&r);
    assert_null(func_builtin_table_func(SLICE_LITERAL("json")));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_rows_agree_with_sqlite),
        cmocka_unit_test(json_tree_walks_in_document_order),
        cmocka_unit_test(series_keep_what_limits_want),
        cmocka_unit_test(series_end_where_they_must),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
