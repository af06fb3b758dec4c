/*
 * plan_share_test.c -- plans that connections share: found again by the same text, never where
 * something makes the text mean something else.
 *
 * Method: two connections to one database; hits are counted.  What one changes (schema, settings,
 * sizes, its own uncommitted tables) must show in the other's answers and in the counts.  At the
 * end nothing is left, whoever closes first; and every allocation fails once.
 */
#include "session_kit.h"

#include "base/mem.h"
#include "rt/lock.h"
#include "session/session__impl.h"

static Session *
share_open(const char *name, bool shares)
{
    SessionOptions options = {.create = true,
                              .in_memory = true,
                              .share_plans = shares,
                              .sync = STORE_SYNC_OFF,
                              .level = STORE_SNAPSHOT};
    Session *session;
    ErrMsg msg = {.sql_offset = -1};
    if (session_open(rt_process_default(), name, &options, &session, &msg) != OK)
        fail_msg("open: %s", err_message(&msg));
    return session;
}

static u64
hits(const Session *session)
{
    u64 found, missed;
    session_plan_counts(session, &found, &missed);
    return found;
}

static void
a_text_is_planned_once(void **state)
{
    (void)state;
    Session *a = share_open("once", true), *b = share_open("once", true);
    Session *alone = share_open("once", false);
    kit_exec(a, "CREATE TABLE t(a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES(1, 'x'), (2, 'y')");
    u64 before = hits(a);
    kit_query(a, "SELECT b FROM t WHERE a = 2", "y;");
    assert_int_equal(hits(a), before);
    kit_query(b, "SELECT b FROM t WHERE a = 2", "y;");
    assert_int_equal(hits(a), before + 1);
    kit_query(alone, "SELECT b FROM t WHERE a = 2", "y;");
    kit_query(b, "SELECT b FROM t WHERE a = 1", "x;"); /* Another text. */
    assert_int_equal(hits(a), before + 1);
    /* Both run at once, each with its own values and state. */
    Stmt *one = kit_prepare(a, "SELECT b, ?1 FROM t"),
         *other = kit_prepare(b, "SELECT b, ?1 FROM t");
    Cell seven = cell_int(7), eight = cell_int(8);
    assert_int_equal(stmt_bind(one, 0, &seven), OK);
    assert_int_equal(stmt_bind(other, 0, &eight), OK);
    char x[64] = "", y[64] = "";
    (void)kit_row(one);
    kit_drain(other, y, sizeof(y));
    kit_drain(one, x, sizeof(x));
    assert_string_equal(y, "x|8;y|8;");
    assert_string_equal(x, "y|7;");
    stmt_finalize(one);
    session_destroy(a); /* The plan outlives who made it. */
    stmt_clear_bindings(other);
    assert_int_equal(stmt_reset(other), OK);
    y[0] = 0;
    kit_drain(other, y, sizeof(y));
    assert_string_equal(y, "x|NULL;y|NULL;");
    stmt_finalize(other);
    session_destroy(b);
    session_destroy(alone);
}

/* A plan that nobody runs is in the account of its database, until it gives way. */
static void
what_is_kept_is_charged(void **state)
{
    (void)state;
    Session *keeper = share_open("charged", true), *other = share_open("charged", true);
    kit_exec(keeper, "CREATE TABLE t(a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES(1, 'x')");
    session_destroy(other);
    Database *database = keeper->db[0].database;
    plan_share__give_back(database, U64_MAX);
    u64 before = database->account->used_bytes;
    other = share_open("charged", true);
    char sql[100];
    for (u32 i = 0; i < 30; i++) {
        snprintf(sql, sizeof(sql), "SELECT b, a + %u FROM t WHERE a = 2", i);
        kit_query(other, sql, "");
    }
    session_destroy(other); /* What it kept for itself is gone. */
    u64 kept = database->account->used_bytes - before;
    u64 given = plan_share__give_back(database, U64_MAX);
    assert_true(given >= 30 * 1024);
    assert_int_equal(kept, given);
    assert_int_equal(database->account->used_bytes, before);
    session_destroy(keeper);
}

static void
writes_and_triggers_are_shared(void **state)
{
    (void)state;
    Session *a = share_open("writes", true), *b = share_open("writes", true);
    kit_exec(a, "CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE); CREATE TABLE log(x);"
                "CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO log VALUES(new.b); END");
    for (u32 i = 0; i < 10; i++) {
        char text[100];
        snprintf(text, sizeof(text),
                 "INSERT INTO t(b) VALUES((SELECT count(*) FROM t)) RETURNING b");
        char wanted[16];
        snprintf(wanted, sizeof(wanted), "%u;", i);
        kit_query(i % 2 ? a : b, text, wanted);
    }
    assert_true(hits(a) > 0);
    kit_query(b, "SELECT count(*), sum(x) FROM log", "10|45;");
    session_destroy(b);
    session_destroy(a);
}

static void
another_schema_is_another_plan(void **state)
{
    (void)state;
    Session *a = share_open("schema", true), *b = share_open("schema", true);
    kit_exec(a, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    kit_query(a, "SELECT * FROM t", "1;");
    kit_query(b, "SELECT * FROM t", "1;");
    kit_exec(a, "ALTER TABLE t ADD COLUMN b DEFAULT 5");
    kit_query(b, "SELECT * FROM t", "1|5;");
    kit_query(a, "SELECT * FROM t", "1|5;");
    /* Uncommitted tables are their transaction's; older snapshots keep their schema. */
    kit_exec(b, "BEGIN; SELECT * FROM t");
    kit_exec(a, "BEGIN; CREATE TABLE u(x)");
    kit_query(a, "SELECT count(*) FROM u", "0;");
    kit_fails(b, "SELECT count(*) FROM u", ERR_SQL, "no such table: u");
    kit_exec(a, "COMMIT");
    kit_query(a, "SELECT count(*) FROM u", "0;");
    kit_exec(b, "COMMIT");
    kit_query(b, "SELECT count(*) FROM u", "0;");
    kit_exec(b, "DROP TABLE u; CREATE TABLE u(x, y); INSERT INTO u VALUES(1, 2)");
    kit_query(a, "SELECT count(*) FROM u", "1;");
    kit_query(a, "SELECT * FROM u", "1|2;");
    session_destroy(a);
    session_destroy(b);
}

static void
another_meaning_is_another_plan(void **state)
{
    (void)state;
    Session *a = share_open("meaning", true), *b = share_open("meaning", true);
    kit_exec(a, "CREATE TABLE p(a INTEGER PRIMARY KEY); CREATE TABLE c(x REFERENCES p);"
                "CREATE TABLE w(s); INSERT INTO w VALUES('abc')");
    kit_exec(a, "INSERT INTO c VALUES(1)"); /* Not enforced here... */
    kit_exec(b, "PRAGMA foreign_keys = on");
    kit_fails(b, "INSERT INTO c VALUES(1)", ERR_CONSTRAINT_FOREIGNKEY, NULL); /* ...but there. */
    kit_query(a, "SELECT count(*) FROM w WHERE s LIKE 'ABC'", "1;");
    kit_exec(b, "PRAGMA case_sensitive_like = on");
    kit_query(b, "SELECT count(*) FROM w WHERE s LIKE 'ABC'", "0;");
    kit_query(a, "SELECT count(*) FROM w WHERE s LIKE 'ABC'", "1;");
    /* A temporary table hides one of main. */
    kit_query(a, "SELECT s FROM w", "abc;");
    kit_exec(b, "CREATE TEMP TABLE w(s); INSERT INTO temp.w VALUES('mine')");
    kit_query(b, "SELECT s FROM w", "mine;");
    kit_query(a, "SELECT s FROM w", "abc;");
    kit_exec(a, "EXPLAIN QUERY PLAN SELECT s FROM w");
    kit_query(a, "SELECT s FROM w", "abc;");
    session_destroy(a);
    session_destroy(b);
}

static void
many_texts_push_each_other_out(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    Session *a = share_open("many", true), *b = share_open("many", true);
    kit_exec(a, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
    for (u32 i = 0; i < 1000; i++) {
        char text[64], wanted[32];
        snprintf(text, sizeof(text), "SELECT a + %u FROM t", i % 400);
        snprintf(wanted, sizeof(wanted), "%u;", 1 + i % 400);
        kit_query(i % 3 ? a : b, text, wanted);
    }
    session_destroy(a);
    session_destroy(b);
    assert_int_equal(mem_live_blocks(), blocks);
}

static void
every_allocation_failure_is_survived(void **state)
{
    (void)state;
    Session *a = share_open("short", true), *b = share_open("short", true);
    kit_exec(a, "CREATE TABLE t(a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES(1, 'x')");
    bool fired = true;
    for (u64 nth = 1; fired; nth++) {
        char text[80];
        snprintf(text, sizeof(text), "SELECT b, %llu FROM t WHERE a = 1", (unsigned long long)nth);
        mem_fail_arm(nth, false);
        for (u32 i = 0; i < 2; i++) {
            Stmt *stmt = NULL;
            bool row;
            Err err = stmt_prepare(i ? b : a, SLICE(text, strlen(text)), &stmt, NULL);
            if (err == OK && stmt != NULL) err = stmt_step(stmt, &row);
            assert_true(err == OK || err == ERR_NOMEM);
            if (stmt != NULL) stmt_finalize(stmt);
        }
        fired = mem_fail_fired();
        mem_fail_arm(0, false);
    }
    kit_query(b, "SELECT b FROM t", "x;");
    session_destroy(a);
    session_destroy(b);
}

/* ---- many at once ---- */

typedef struct Worker {
    Session *session;
    u32 number;
} Worker;

static void
work(void *arg)
{
    Worker *worker = arg;
    for (u32 i = 0; i < 300; i++) {
        char text[96];
        if (worker->number == 0 && i % 50 == 25)
            snprintf(text, sizeof(text), "CREATE TABLE x%u(a)", i);
        else
            snprintf(text, sizeof(text), "SELECT count(*) FROM t WHERE a > %u", i % 20);
        Err err = session_exec(worker->session, SLICE(text, strlen(text)));
        if (err != OK) fail_msg("%s: %s", text, err_message(session_error(worker->session)));
    }
}

static void
many_tasks_share(void **state)
{
    (void)state;
    Worker worker[4];
    RtThread *thread[4];
    for (u32 i = 0; i < 4; i++)
        worker[i] = (Worker){share_open("tasks", true), i};
    kit_exec(worker[0].session, "CREATE TABLE t(a); INSERT INTO t VALUES(1), (5), (30)");
    for (u32 i = 0; i < 4; i++)
        assert_int_equal(rt_thread_start(rt_process_default(), work, &worker[i], "w", &thread[i]),
                         OK);
    for (u32 i = 0; i < 4; i++)
        rt_thread_join(thread[i]);
    assert_true(hits(worker[0].session) > 0);
    for (u32 i = 0; i < 4; i++)
        session_destroy(worker[i].session);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_planned_once),
        cmocka_unit_test(what_is_kept_is_charged),
        cmocka_unit_test(writes_and_triggers_are_shared),
        cmocka_unit_test(another_schema_is_another_plan),
        cmocka_unit_test(another_meaning_is_another_plan),
        cmocka_unit_test(many_texts_push_each_other_out),
        cmocka_unit_test(every_allocation_failure_is_survived),
        cmocka_unit_test(many_tasks_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
