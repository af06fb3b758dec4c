/*
 * window_diff_test.c -- window functions give what SQLite gives.
 *
 * Method: random calls over random windows (all units, bounds, EXCLUDE, FILTER, named windows) run
 * here and on the real SQLite, over small tables of integers, texts and NULLs with many ties and
 * over a table of some thousand rows; rows and their order must agree.  Reals stay out of it, as
 * older versions of SQLite add and print them in other ways.  Each statement runs with other batch
 * sizes, and every third one with a trip after each row.  At the end every allocation of one
 * statement fails in turn.
 */
#include "unit/exec/sql_kit.h"

static u32 statements_wanted = 2000;

typedef struct Make {
    Buf out;
    Rng rng;
    bool many; /* Over many rows: nothing that takes quadratic time. */
} Make;

static u32
pick(Make *make, u32 count)
{
    return (u32)rng_below(&make->rng, count);
}

static void
put(Make *make, const char *text)
{
    assert_int_equal(buf_append_text(&make->out, text), OK);
}

#define PUT_ONE(make, ...)                               \
    do {                                                 \
        static const char *const list[] = {__VA_ARGS__}; \
        put((make), list[pick((make), COUNT_OF(list))]); \
    } while (0)

static void
make_column(Make *make)
{
    PUT_ONE(make, "a", "b", "c", "d", "id", "a", "b");
}

static void
make_order(Make *make, u32 terms)
{
    for (u32 i = 0; i < terms; i++) {
        put(make, i == 0 ? " ORDER BY " : ", ");
        make_column(make);
        PUT_ONE(make, "", "", " DESC", " COLLATE NOCASE", " DESC NULLS FIRST", " NULLS LAST");
    }
}

static void
make_offset(Make *make)
{
    PUT_ONE(make, "0", "1", "1", "2", "3", "10", "1+1");
}

static void
make_bound(Make *make, const char *which)
{
    if (which[0] != '<') {
        put(make, which);
        return;
    }
    make_offset(make);
    put(make, which + 1);
}

static void
make_frame(Make *make, bool range_offsets)
{
    static const char *const pairs[][2] = {
        {"UNBOUNDED PRECEDING", "CURRENT ROW"},
        {"CURRENT ROW", "UNBOUNDED FOLLOWING"},
        {"UNBOUNDED PRECEDING", "UNBOUNDED FOLLOWING"},
        {"CURRENT ROW", "CURRENT ROW"},
        {"UNBOUNDED PRECEDING", "< PRECEDING"},
        {"UNBOUNDED PRECEDING", "< FOLLOWING"},
        {"< PRECEDING", "< PRECEDING"},
        {"< PRECEDING", "CURRENT ROW"},
        {"< PRECEDING", "< FOLLOWING"},
        {"< PRECEDING", "UNBOUNDED FOLLOWING"},
        {"CURRENT ROW", "< FOLLOWING"},
        {"< FOLLOWING", "< FOLLOWING"},
        {"< FOLLOWING", "UNBOUNDED FOLLOWING"},
    };
    u32 unit = pick(make, 4);
    if (unit == 3) return;
    static const char *const units[] = {" ROWS", " GROUPS", " RANGE"};
    const char *const *pair = pairs[pick(make, unit == 2 && !range_offsets ? 4 : COUNT_OF(pairs))];
    put(make, units[unit]);
    put(make, " BETWEEN ");
    make_bound(make, pair[0]);
    put(make, " AND ");
    make_bound(make, pair[1]);
    if (make->many || pick(make, 4) != 0) return;
    PUT_ONE(make, " EXCLUDE NO OTHERS", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES");
}

static void
make_over(Make *make)
{
    u32 terms = pick(make, 3);
    if (pick(make, 5) == 0) {
        PUT_ONE(make, " OVER w", " OVER (w)", " OVER v");
        return;
    }
    put(make, " OVER (");
    if (pick(make, 3) == 0) {
        put(make, "PARTITION BY ");
        make_column(make);
        if (pick(make, 3) == 0) put(make, ", a");
    }
    make_order(make, terms);
    make_frame(make, terms == 1);
    put(make, ")");
}

static void
make_aggregate(Make *make)
{
    u32 which = pick(make, make->many ? 4 : 6);
    switch (which) {
    case 0: put(make, "count(*)"); break;
    case 1: PUT_ONE(make, "sum(a)", "sum(id)", "count(b)", "total(a)", "avg(a)"); break;
    case 2: PUT_ONE(make, "min(a)", "min(b)", "min(d)", "min(c)"); break;
    case 3: PUT_ONE(make, "max(a)", "max(b)", "max(id)", "max(c)"); break;
    default: PUT_ONE(make, "group_concat(id)", "group_concat(id, '-')"); break;
    }
    /* Old versions forget it for min() and max(). */
    if (which == 2 || which == 3 || pick(make, 5) != 0) return;
    PUT_ONE(make, " FILTER (WHERE a>1)", " FILTER (WHERE c IS NOT NULL)");
}

static void
make_call(Make *make)
{
    switch (pick(make, 6)) {
    case 0: PUT_ONE(make, "row_number()", "rank()", "dense_rank()", "ntile(3)", "ntile(1)"); break;
    case 1: PUT_ONE(make, "percent_rank()", "cume_dist()"); break;
    case 2:
        PUT_ONE(make, "lag(id)", "lead(id)", "lag(b,2)", "lead(a,a,'none')", "lag(c,-1,0)",
                "lead(id,0)", "lag(id,a)", "lead(b,-2)");
        break;
    case 3:
        PUT_ONE(make, "first_value(id)", "last_value(id)", "nth_value(id,2)", "first_value(b)",
                "nth_value(b,id)");
        break;
    default: make_aggregate(make); break;
    }
    make_over(make);
}

static void
make_select(Make *make)
{
    put(make, "SELECT id");
    u32 calls = 1 + pick(make, 3);
    for (u32 i = 0; i < calls; i++) {
        put(make, ", ");
        make_call(make);
    }
    put(make, make->many ? " FROM m" : " FROM t");
    if (pick(make, 5) == 0) PUT_ONE(make, " WHERE a>0", " WHERE id%3", " WHERE 0", " WHERE b='a'");
    put(make, " WINDOW w AS (PARTITION BY b ORDER BY a), v AS (ORDER BY a, id)");
    if (pick(make, 5) == 0) PUT_ONE(make, " ORDER BY 2, 1", " ORDER BY 2 DESC, 1 DESC");
    if (pick(make, 8) == 0) put(make, " LIMIT 7");
}

static void
check_random(const char *const *setup, size_t setup_count, bool many, u32 wanted)
{
    SqlKit kit;
    Make make = {.many = many};
    rng_seed(&make.rng, 20261130);
    sql_kit_open(&kit);
    for (size_t i = 0; i < setup_count; i++)
        sql_kit_same(&kit, setup[i]);
    u32 failures = 0;
    for (u32 i = 0; i < wanted && failures < 5; i++) {
        buf_clear(&make.out);
        make_select(&make);
        assert_int_equal(buf_append_byte(&make.out, 0), OK);
        kit.env.batch_rows = (u32[]){0, 1, 2, 3, 2048}[i % 5];
        kit.env.trip_every = !many && i % 3 == 0 ? 1 : 0;
        const char *sql = (const char *)make.out.p;
        sql_kit_ours(&kit, sql);
        sql_kit_theirs(&kit, sql);
        if (strcmp((char *)kit.ours.p, (char *)kit.theirs.p) == 0) continue;
        print_message("%s\n--- ours:\n%.3000s\n--- SQLite:\n%.3000s\n", sql, (char *)kit.ours.p,
                      (char *)kit.theirs.p);
        failures++;
    }
    assert_int_equal(failures, 0);
    buf_free(&make.out);
    sql_kit_close(&kit);
}

static void
few_rows_with_ties(void **state)
{
    static const char *const setup[] = {
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT, c, d TEXT COLLATE NOCASE)",
        "INSERT INTO t VALUES(1,3,'a',1,'x'),(2,NULL,'b','p','X'),(3,1,'a',NULL,'y'),"
        "(4,1,NULL,2,'Y'),(5,3,'b',x'01','z'),(6,2,'a','q',NULL),(7,-1,'A',2,'x'),"
        "(8,3,NULL,NULL,'y'),(9,NULL,'b',1,'Z'),(10,2,'a','p','z'),(11,5,'c',7,'x'),"
        "(12,0,'c',-3,'w'),(13,2,'a',2,'w'),(14,6,'B',NULL,'q'),(15,3,'b','q','Q')",
    };
    (void)state;
    check_random(setup, COUNT_OF(setup), false, statements_wanted);
}

static void
many_rows(void **state)
{
    static const char *const setup[] = {
        "CREATE TABLE m(id INTEGER PRIMARY KEY, a INT, b TEXT, c, d TEXT COLLATE NOCASE)",
        "INSERT INTO m WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<6000) "
        "SELECT i, CASE WHEN i%31=0 THEN NULL ELSE i*7919%503-250 END, "
        "CASE WHEN i%17=0 THEN NULL ELSE substr('abcdefgh',i%5+1,1+i%2) END, "
        "CASE i%3 WHEN 0 THEN i%11 WHEN 1 THEN 'x'||(i%7) END, substr('aAbBcC',i%6+1,1) FROM n",
    };
    (void)state;
    check_random(setup, COUNT_OF(setup), true, statements_wanted / 40);
}

/* Plan and run a statement whose allocations may fail. */
static Err
run_short_of_memory(SqlKit *kit, const char *sql)
{
    ErrMsg msg = {0};
    Arena arena;
    AstStatement *ast;
    size_t consumed;
    Plan *plan = NULL;
    Exec *exec = NULL;
    Slice text = SLICE(sql, strlen(sql));
    StoreTxn *txn[3] = {kit->txn, kit->txn, kit->txn};
    arena_init(&arena, NULL);
    Err err = sql_parse(&arena, text, NULL, &ast, &consumed, &msg);
    CatalogView view;
    PlanContext ctx = sql_kit_context(kit, &view);
    if (err == OK) err = plan_prepare(&ctx, ast, text, &plan, &msg);
    if (err == OK) err = exec_open(plan, &kit->env, &exec, &msg);
    if (err == OK) err = exec_start(exec, txn, NULL, 0);
    for (bool row = true; err == OK && row;)
        err = exec_step(exec, &row);
    if (exec != NULL) {
        exec_reset(exec);
        exec_close(exec);
    }
    plan_release(plan);
    err_clear(&msg);
    arena_free(&arena);
    return err;
}

static void
every_failing_allocation_is_survived(void **state)
{
    static const char *const setup[] = {
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT)",
        "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<90) "
        "SELECT i, i%7, 'text '||i%5 FROM n",
    };
    static const char *const sql =
        "SELECT sum(a) OVER w, rank() OVER w, lag(b, 2, 'none') OVER w, max(b) OVER (ORDER BY id "
        "ROWS 5 PRECEDING), group_concat(b) OVER (PARTITION BY a), nth_value(b, 2) OVER (ORDER BY "
        "b ROWS 3 PRECEDING EXCLUDE TIES), min(b||id) OVER (PARTITION BY a ORDER BY id) "
        "FROM t WINDOW w AS (PARTITION BY a ORDER BY b DESC) ORDER BY 1, 2";
    (void)state;
    SqlKit kit;
    sql_kit_open(&kit);
    for (size_t i = 0; i < COUNT_OF(setup); i++)
        sql_kit_same(&kit, setup[i]);
    assert_int_equal(run_short_of_memory(&kit, sql), OK);
    u32 failures = 0;
    bool fired = true;
    u64 blocks = mem_live_blocks();
    for (u64 nth = 1; fired; nth++) {
        mem_fail_arm(nth, false);
        Err err = run_short_of_memory(&kit, sql);
        fired = mem_fail_fired();
        mem_fail_arm(0, false);
        if (fired && err != OK) failures++;
        if (!fired) assert_int_equal(err, OK);
    }
    assert_true(failures > 20);
    /* The store may keep a buffer more than after the first run. */
    assert_true(mem_live_blocks() <= blocks + 2);
    sql_kit_close(&kit);
}

int
main(int argc, char **argv)
{
    /* More statements by hand: window_diff_test COUNT. */
    if (argc > 1) {
        statements_wanted = 0;
        for (const char *p = argv[1]; *p >= '0' && *p <= '9'; p++)
            statements_wanted = statements_wanted * 10 + (u32)(*p - '0');
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_rows_with_ties),
        cmocka_unit_test(many_rows),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
