/*
 * memory_test.c -- the caps of a statement, a session, a database and the process.
 *
 * Method: statements that must hold much memory, of every kind that holds any, run under a cap of
 * one level at a time: each fails with ERR_NOMEM and a text that names the level, all accounts are
 * then back where they were, a small statement works, and without the cap the large one does.  A
 * cap of one level leaves the neighbours alone: another statement, another session on the same
 * database, a session on another database.
 */
#include "session/session__impl.h"

#include "session_kit.h"

#define CAP   ((u64)1 << 19)
#define BIG   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<20000) "
#define LARGE "randomblob(40)"

static const char *const hungry[] = {
    BIG "SELECT count(*) FROM (SELECT DISTINCT i || 'abcdefgh' FROM n)",
    BIG "SELECT i FROM n GROUP BY i || 'abcdefgh' LIMIT 1",
    BIG "SELECT sum(i) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
        ", " LARGE " FROM n LIMIT 1",
    BIG "SELECT length(group_concat(i || 'abcdefghijklmnopqrstuvwxyz')) FROM n",
    BIG "SELECT length(json_group_array(i || 'abcdefghijklmnopqrstuvwxyz')) FROM n",
    BIG ", m AS MATERIALIZED (SELECT i, " LARGE " AS b FROM n) "
        "SELECT count(*) FROM m AS x JOIN m AS y ON x.b = y.b",
    "WITH RECURSIVE n(i, b) AS (SELECT 1, '' UNION SELECT i+1, hex(randomblob(20)) FROM n "
    "WHERE i<20000) SELECT count(*) FROM n",
    BIG "SELECT count(*) FROM n WHERE i || 'abcdefgh' IN (SELECT i || 'abcdefgh' FROM n)",
    BIG "SELECT i || 'abcdefgh' FROM n UNION SELECT i || 'abcdefghi' FROM n LIMIT 1",
    BIG "SELECT count(*) FROM (SELECT i || 'abcdefgh' FROM n EXCEPT SELECT 'x')",
    "SELECT length(randomblob(3000000))",
    "SELECT length(hex(zeroblob(3000000)))",
    "SELECT length(replace(hex(zeroblob(200000)), '0', 'abcdefgh'))",
    "SELECT length(printf('%3000000d', 1))",
    "SELECT length(a || a || a) FROM (SELECT hex(zeroblob(200000)) AS a)",
    BIG "INSERT INTO t SELECT i, " LARGE " FROM n RETURNING a",
    "UPDATE t SET b = hex(zeroblob(1500000)) WHERE a = -1",
};

static u64
used(Session *session)
{
    return session->account.used_bytes;
}

/* What is used of an account when what is only kept for speed has been given back. */
static u64
used_at_least(MemAccount *account)
{
    while (rt_process_reclaim(account, U64_MAX) > 0) {
    }
    return account->used_bytes;
}

static void
fails_with(Session *session, const char *sql, const char *text)
{
    Err err = kit_try(session, sql);
    const char *message = err_message(session_error(session));
    if (err != ERR_NOMEM || strcmp(message, text) != 0)
        fail_msg("%s\n  gave %s \"%s\", not \"%s\"", sql, err_name(err), message, text);
    assert_int_equal(kit_try(session, "SELECT count(*) FROM t WHERE a > 0"), OK);
}

/* Fails, names the level, leaves nothing; and is not to blame itself. */
static void
meets_cap(Session *session, const char *sql, const char *text)
{
    MemAccount *database = session->account.parent, *process = database->parent;
    u64 before = used(session);
    fails_with(session, sql, text);
    /* What the session keeps is the same for all statements. */
    if (used(session) != before)
        fail_msg("%s: keeps %lld bytes", sql, (long long)(used(session) - before));
    /* A tree keeps the pages that rows had which were undone; again, it needs no more, but for
       where in a page the cap was met. */
    u64 pages[2] = {used_at_least(database), used_at_least(process)};
    fails_with(session, sql, text);
    if (used(session) != before || used_at_least(database) > pages[0] + CAP / 8 ||
        used_at_least(process) > pages[1] + CAP / 8)
        fail_msg("%s: the second time it keeps %lld bytes", sql,
                 (long long)(used_at_least(database) - pages[0]));
}

static Session *
open_with(const char *name, const SessionOptions *caps)
{
    SessionOptions options = *caps;
    options.create = options.in_memory = true;
    options.level = STORE_SNAPSHOT;
    Session *session;
    assert_int_equal(session_open(rt_process_default(), name, &options, &session, NULL), OK);
    kit_exec(session, "CREATE TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY, b);"
                      "INSERT OR IGNORE INTO t VALUES (-1, 'x');"
                      "SELECT count(*) FROM t WHERE a > 0");
    return session;
}

static void
all_meet(Session *session, const char *text)
{
    for (u32 i = 0; i < COUNT_OF(hungry); i++)
        meets_cap(session, hungry[i], text);
}

static void
all_work(Session *session)
{
    kit_exec(session, "BEGIN");
    for (u32 i = 0; i < COUNT_OF(hungry); i++)
        kit_exec(session, hungry[i]);
    kit_exec(session, "ROLLBACK");
}

static void
of_a_statement(void **state)
{
    (void)state;
    Session *capped = open_with("m", &(SessionOptions){.statement_bytes_max = CAP});
    Session *other = open_with("m", &(SessionOptions){0});
    all_meet(capped, "out of memory: one statement may use 524288 bytes");
    all_work(other);
    /* Each statement has it for itself: two together hold more than one may. */
    const char *two[] = {"SELECT randomblob(300000), 1", "SELECT randomblob(300000), 2"};
    Stmt *stmt[2];
    bool row;
    for (u32 i = 0; i < 2; i++) {
        assert_int_equal(stmt_prepare(capped, SLICE(two[i], strlen(two[i])), &stmt[i], NULL), OK);
        assert_int_equal(stmt_step(stmt[i], &row), OK);
    }
    assert_true(used(capped) > CAP);
    for (u32 i = 0; i < 2; i++)
        stmt_finalize(stmt[i]);
    session_destroy(capped);
    session_destroy(other);
}

static void
of_a_session(void **state)
{
    (void)state;
    Session *capped = open_with("m", &(SessionOptions){.session_bytes_max = CAP});
    Session *other = open_with("m", &(SessionOptions){0});
    all_meet(capped, "out of memory: one session may use 524288 bytes");
    all_work(other);
    session_destroy(capped);
    session_destroy(other);
}

static void
of_a_database(void **state)
{
    (void)state;
    Session *one = open_with("m", &(SessionOptions){.database_bytes_max = CAP});
    Session *two = open_with("m", &(SessionOptions){0});
    Session *elsewhere = open_with("n", &(SessionOptions){0});
    all_meet(one, "out of memory: one database may use 524288 bytes");
    all_meet(two, "out of memory: one database may use 524288 bytes");
    all_work(elsewhere);
    session_destroy(one);
    session_destroy(two);
    session_destroy(elsewhere);
}

/* What one session of a database holds the other misses. */
static void
of_a_database_is_shared(void **state)
{
    (void)state;
    Session *one = open_with("m", &(SessionOptions){.database_bytes_max = 2 * CAP});
    Session *two = open_with("m", &(SessionOptions){0});
    Stmt *stmt;
    bool row;
    const char *sql = "SELECT randomblob(450000)";
    assert_int_equal(stmt_prepare(one, SLICE(sql, strlen(sql)), &stmt, NULL), OK);
    assert_int_equal(stmt_step(stmt, &row), OK);
    meets_cap(two, sql, "out of memory: one database may use 1048576 bytes");
    stmt_finalize(stmt);
    kit_exec(two, sql);
    session_destroy(one);
    session_destroy(two);
}

/* Rows of a database in memory, and before-images that a reader needs, count too. */
static void
of_rows(void **state)
{
    (void)state;
    Session *one = open_with("m", &(SessionOptions){.database_bytes_max = 8 * CAP});
    Session *two = open_with("m", &(SessionOptions){0});
    const char *full = "out of memory: one database may use 4194304 bytes";
    MemAccount *database = one->account.parent;
    kit_exec(one, "CREATE TABLE h (a INTEGER PRIMARY KEY, b);" BIG
                  "INSERT INTO h SELECT i, zeroblob(300) FROM n WHERE i <= 4000");
    u64 rows = database->used_bytes;
    kit_exec(two, "BEGIN; SELECT count(*) FROM h");
    Err err = OK;
    char sql[128];
    u32 rounds = 0;
    for (; rounds < 16 && err == OK; rounds++) {
        snprintf(sql, sizeof(sql), "UPDATE h SET b = randomblob(300) WHERE a BETWEEN %u AND %u",
                 rounds * 250 + 1, rounds * 250 + 250);
        err = kit_try(one, sql);
    }
    assert_int_equal(err, ERR_NOMEM);
    assert_true(rounds > 2);
    assert_string_equal(err_message(session_error(one)), full);
    kit_exec(two, "SELECT sum(length(b)) FROM h; COMMIT");
    /* Nobody needs them any more: there is room again. */
    bool more = true;
    while (more)
        assert_int_equal(store_step(one->db[0].database->store, 1000, &more), OK);
    kit_exec(one, sql);
    err = OK;
    for (rounds = 0; rounds < 100 && err == OK; rounds++)
        err = kit_try(one, BIG "INSERT INTO h SELECT NULL, zeroblob(300) FROM n LIMIT 500");
    assert_int_equal(err, ERR_NOMEM);
    assert_true(database->used_bytes > rows + CAP && database->used_bytes <= 8 * CAP);
    kit_exec(one, "SELECT count(*) FROM h WHERE length(b) = 300");
    session_destroy(one);
    session_destroy(two);
    assert_int_equal(rt_process_account(rt_process_default())->used_bytes, 0);
}

static void
of_the_process(void **state)
{
    (void)state;
    MemAccount *account = rt_process_account(rt_process_default());
    Session *one = open_with("m", &(SessionOptions){0});
    Session *elsewhere = open_with("n", &(SessionOptions){0});
    assert_int_equal(account->cap_bytes, 0);
    kit_exec(one, "PRAGMA hard_heap_limit = 524288");
    assert_int_equal(account->cap_bytes, CAP);
    kit_exec(one, "PRAGMA hard_heap_limit = 1000000; PRAGMA hard_heap_limit = 0");
    assert_int_equal(account->cap_bytes, CAP); /* It is only ever lowered. */
    all_meet(one, "out of memory");
    all_meet(elsewhere, "out of memory");
    account->cap_bytes = 0;
    all_work(one);
    session_destroy(one);
    session_destroy(elsewhere);
    assert_int_equal(account->used_bytes, 0);
}

static void
by_pragma(void **state)
{
    (void)state;
    Session *session = open_with("m", &(SessionOptions){.session_bytes_max = 3 * CAP});
    meets_cap(session, "SELECT length(randomblob(4000000))",
              "out of memory: one session may use 1572864 bytes");
    kit_exec(session, "PRAGMA weft_statement_memory = 524288");
    meets_cap(session, hungry[10], "out of memory: one statement may use 524288 bytes");
    kit_exec(session, "PRAGMA weft_statement_memory = 0; PRAGMA weft_session_memory = 524288");
    meets_cap(session, hungry[10], "out of memory: one session may use 524288 bytes");
    /* Raised again, but not beyond what the session was opened with. */
    kit_exec(session, "PRAGMA weft_session_memory = 1000000000");
    meets_cap(session, "SELECT length(randomblob(4000000))",
              "out of memory: one session may use 1572864 bytes");
    /* Whoever gets the session next does not get its caps. */
    SessionOptions options = {.create = true, .in_memory = true, .session_bytes_max = 3 * CAP};
    options.level = STORE_SNAPSHOT;
    assert_true(session_reuse(session, &options));
    kit_exec(session, "PRAGMA weft_statement_memory = 400000");
    assert_false(session_reuse(session, &options));
    session_destroy(session);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_statement), cmocka_unit_test(of_a_session),
        cmocka_unit_test(of_a_database),  cmocka_unit_test(of_a_database_is_shared),
        cmocka_unit_test(of_rows),        cmocka_unit_test(of_the_process),
        cmocka_unit_test(by_pragma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
