/*
 * growth_test.c -- nothing is quadratic: four times the work costs about four times as much.
 *
 * Method: each job runs with n and with 4n of what it is about, on a fresh database each time, and
 * its cost is counted in user instructions where the kernel lets a process count them, else in its
 * CPU time (the least of several runs).  A job that grows as its work does costs 4 times as much,
 * one with a logarithm a little more, a quadratic one 16 times.  The bound lies between, at 7.  Two
 * jobs are known to have a quadratic part and have bounds of their own, below 16: a table's column
 * names are compared with each other, and each DDL statement copies the name tables of the catalog.
 */
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "session_kit.h"

#define GROWTH_MAX  7.0
#define SPILLED_MAX 11.0 /* Passes of a merge come one at a time. */
#define RUNS        3

/* ---- counting ---- */

static int counter = -1;

static void
counter_open(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_HW_INSTRUCTIONS,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    counter = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static f64
cost_now(void)
{
    u64 count;
    struct timespec now;
    if (counter >= 0 && read(counter, &count, sizeof(count)) == sizeof(count)) return (f64)count;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (f64)now.tv_sec * 1e9 + (f64)now.tv_nsec;
}

/* ---- jobs ---- */

typedef struct Job {
    Session *s;
    Buf sql;
    f64 cost;
} Job;

static void
put(Job *job, const char *text)
{
    assert_int_equal(buf_append_text(&job->sql, text), OK);
}

static void
run(Job *job)
{
    f64 before = cost_now();
    Err err = session_exec(job->s, buf_slice(&job->sql));
    job->cost += cost_now() - before;
    if (err != OK) fail_msg("%s", err_message(session_error(job->s)));
    buf_clear(&job->sql);
}

static void
many_columns(Job *job, u32 n)
{
    put(job, "CREATE TABLE t(c0");
    for (u32 i = 1; i < n; i++) {
        assert_int_equal(buf_printf(&job->sql, ",c%u", i), OK);
    }
    put(job, ");INSERT INTO t VALUES(0");
    for (u32 i = 1; i < n; i++) {
        assert_int_equal(buf_printf(&job->sql, ",%u", i), OK);
    }
    put(job, ");SELECT * FROM t;SELECT c0");
    for (u32 i = 1; i < n; i++) {
        assert_int_equal(buf_printf(&job->sql, "+c%u", i % 500), OK);
        if (i % 500 == 0) put(job, ",1");
    }
    put(job, " FROM t;UPDATE t SET c1=c0;DELETE FROM t WHERE c2=2");
    run(job);
}

static void
many_values(Job *job, u32 n)
{
    put(job, "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c INT);INSERT INTO t VALUES");
    for (u32 i = 0; i < n; i++) {
        assert_int_equal(
            buf_printf(&job->sql, "%s(%u,'row %u',%u)", i > 0 ? "," : "", i, i, i * 7919 % 1000),
            OK);
    }
    run(job);
    put(job, "SELECT count(*) FROM t WHERE c IN (0");
    for (u32 i = 1; i < n; i++) {
        assert_int_equal(buf_printf(&job->sql, ",%u", i), OK);
    }
    put(job, ")");
    run(job);
}

static void
many_indexes(Job *job, u32 n)
{
    for (u32 i = 0; i < 4 * n; i++) {
        assert_int_equal(buf_printf(&job->sql, "CREATE TABLE t%u(a,b);", i), OK);
    }
    for (u32 i = 0; i < n; i++) {
        assert_int_equal(buf_printf(&job->sql, "CREATE INDEX i%u ON t%u(a);", i, i), OK);
    }
    put(job, "INSERT INTO t1 VALUES(1,2);SELECT * FROM t1 WHERE a=1");
    run(job);
}

static void
many_savepoints(Job *job, u32 n)
{
    put(job, "CREATE TABLE t(a INTEGER PRIMARY KEY, b);BEGIN;");
    for (u32 i = 0; i < n; i++) {
        assert_int_equal(buf_printf(&job->sql, "SAVEPOINT s%u;INSERT INTO t VALUES(%u,1);", i, i),
                         OK);
    }
    assert_int_equal(buf_printf(&job->sql, "ROLLBACK TO s%u;RELEASE s0;COMMIT", n / 2), OK);
    run(job);
}

static void
rows_with_a_trigger(Job *job, u32 n)
{
    put(job, "CREATE TABLE t(a INTEGER PRIMARY KEY, b);CREATE TABLE l(x);"
             "CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO l VALUES(new.b);END;");
    assert_int_equal(buf_printf(&job->sql,
                                "INSERT INTO t WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT "
                                "i+1 FROM c WHERE i<%u) SELECT i,i%%97 FROM c",
                                n),
                     OK);
    run(job);
}

/* ---- beyond the memory budget ---- */

static void
spilled_rows(Job *job, u32 n)
{
    assert_int_equal(buf_printf(&job->sql,
                                "CREATE TABLE t(a INTEGER PRIMARY KEY, b INT, c TEXT);"
                                "INSERT INTO t WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT "
                                "i+1 FROM c WHERE i<%u) SELECT i,i*7919%%%u,'text '||i FROM c",
                                n, n),
                     OK);
    run(job);
    job->cost = 0;
    put(job, "PRAGMA weft_memory_budget=20000;PRAGMA weft_plans=hash;");
}

static void
spilled_sort(Job *job, u32 n)
{
    spilled_rows(job, n);
    put(job, "SELECT a,c FROM t ORDER BY c DESC,b");
    run(job);
}

static void
spilled_group(Job *job, u32 n)
{
    spilled_rows(job, n);
    put(job, "SELECT b,count(*),max(c) FROM t GROUP BY b");
    run(job);
}

static void
spilled_distinct(Job *job, u32 n)
{
    spilled_rows(job, n);
    put(job, "SELECT DISTINCT c FROM t");
    run(job);
}

static void
spilled_join(Job *job, u32 n)
{
    spilled_rows(job, n);
    put(job, "SELECT x.a,y.c FROM t x JOIN t y ON x.b=y.b");
    run(job);
}

static void
spilled_window(Job *job, u32 n)
{
    spilled_rows(job, n);
    put(job, "SELECT a,sum(a) OVER (ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND 10 FOLLOWING),"
             "last_value(c) OVER (ORDER BY b ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)"
             " FROM t");
    run(job);
}

static void
spilled_recursion(Job *job, u32 n)
{
    put(job, "PRAGMA weft_memory_budget=20000;");
    assert_int_equal(buf_printf(&job->sql,
                                "WITH RECURSIVE r(x) AS (VALUES(1) UNION SELECT x*2%%%u FROM r "
                                "UNION SELECT (x*2+1)%%%u FROM r) SELECT count(*) FROM r;"
                                "WITH RECURSIVE r(x) AS (VALUES(1) UNION ALL SELECT x*2 FROM r "
                                "WHERE x<%u UNION ALL SELECT x*2+1 FROM r WHERE x<%u ORDER BY 1) "
                                "SELECT x FROM r",
                                n, n, n / 2, n / 2),
                     OK);
    run(job);
}

/* Each statement leaves an image of the row, and the commit takes all of them away. */
static void
one_row_updated(Job *job, u32 n)
{
    put(job, "CREATE TABLE t(a INTEGER PRIMARY KEY, b INT);INSERT INTO t VALUES(1,1);BEGIN;");
    for (u32 i = 0; i < n; i++) {
        put(job, "UPDATE t SET b=b+1;");
    }
    put(job, "COMMIT");
    run(job);
}

typedef void (*RunJob)(Job *job, u32 n);

static f64
cost_of(RunJob run_job, u32 n)
{
    f64 least = 0;
    for (u32 i = 0; i < RUNS; i++) {
        Job job = {.s = kit_open("", true)};
        run_job(&job, n);
        assert_int_equal(session_close(job.s), OK);
        buf_free(&job.sql);
        if (i == 0 || job.cost < least) least = job.cost;
        if (counter >= 0) break; /* A count does not depend on the machine's load. */
    }
    return least;
}

static void
check(const char *name, RunJob run_job, u32 n, f64 growth_max)
{
    f64 small = cost_of(run_job, n), large = cost_of(run_job, 4 * n);
    f64 growth = large / small;
    print_message("%-22s %6u -> %6u: %.2f times the %s\n", name, n, 4 * n, growth,
                  counter >= 0 ? "instructions" : "time");
    if (growth > growth_max) fail_msg("%s grows %.1f times with 4 times the work", name, growth);
}

#define GROWTH_TEST(name, n, growth_max)   \
    static void name##_grow(void **state)  \
    {                                      \
        (void)state;                       \
        check(#name, name, n, growth_max); \
    }

GROWTH_TEST(many_columns, 500, 10.0)
GROWTH_TEST(many_values, 2500, GROWTH_MAX)
GROWTH_TEST(many_indexes, 125, 14.5)
GROWTH_TEST(many_savepoints, 250, GROWTH_MAX)
GROWTH_TEST(rows_with_a_trigger, 3000, GROWTH_MAX)
GROWTH_TEST(one_row_updated, 4000, GROWTH_MAX)
GROWTH_TEST(spilled_sort, 1500, SPILLED_MAX)
GROWTH_TEST(spilled_group, 1500, SPILLED_MAX)
GROWTH_TEST(spilled_distinct, 1500, SPILLED_MAX)
GROWTH_TEST(spilled_join, 1500, SPILLED_MAX)
GROWTH_TEST(spilled_window, 1500, SPILLED_MAX)
GROWTH_TEST(spilled_recursion, 1500, SPILLED_MAX)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_columns_grow),        cmocka_unit_test(many_values_grow),
        cmocka_unit_test(many_indexes_grow),        cmocka_unit_test(many_savepoints_grow),
        cmocka_unit_test(rows_with_a_trigger_grow), cmocka_unit_test(spilled_sort_grow),
        cmocka_unit_test(spilled_group_grow),       cmocka_unit_test(spilled_distinct_grow),
        cmocka_unit_test(spilled_join_grow),        cmocka_unit_test(spilled_window_grow),
        cmocka_unit_test(spilled_recursion_grow),   cmocka_unit_test(one_row_updated_grow),
    };
    counter_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
