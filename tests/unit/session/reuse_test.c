/*
 * reuse_test.c -- a session that changes hands shows nothing of the client before.
 *
 * Method: leave something behind in every way a client can, ask for reuse, and look.
 */
#include "session_kit.h"

static const SessionOptions options = {
    .create = true, .in_memory = true, .level = STORE_SNAPSHOT, .sync = STORE_SYNC_FULL};

static Session *
open_one(void)
{
    Session *session;
    ErrMsg msg = {.sql_offset = -1};
    assert_int_equal(session_open(rt_process_default(), "reuse", &options, &session, &msg), OK);
    return session;
}

static void
counters_and_transactions_are_forgotten(void **state)
{
    (void)state;
    Session *s = open_one();
    kit_exec(s, "CREATE TABLE t(a INTEGER PRIMARY KEY); INSERT INTO t VALUES(7),(8)");
    kit_query(s, "SELECT changes(), total_changes(), last_insert_rowid()", "2|2|8;");
    kit_exec(s, "BEGIN; INSERT INTO t VALUES(9)");
    assert_true(session_reuse(s, &options));
    assert_true(session_autocommit(s));
    kit_query(s, "SELECT changes(), total_changes(), last_insert_rowid()", "0|0|0;");
    kit_query(s, "SELECT count(*) FROM t", "2;");
    session_set_changes(s, 3, 4);
    session_set_last_rowid(s, 5);
    kit_query(s, "SELECT changes(), total_changes(), last_insert_rowid()", "3|4|5;");
    session_set_read_only(s, true);
    kit_fails(s, "DELETE FROM t", ERR_READONLY, NULL);
    assert_true(session_reuse(s, &options));
    kit_exec(s, "DELETE FROM t");
    session_destroy(s);
}

static void
what_stays_makes_it_unfit(void **state)
{
    (void)state;
    static const char *const leavings[] = {
        "CREATE TEMP TABLE mine(a)",
        "ATTACH ':memory:' AS other",
        "PRAGMA foreign_keys = ON",
        "PRAGMA recursive_triggers = ON",
        "PRAGMA query_only = ON",
        "PRAGMA case_sensitive_like = ON",
        "PRAGMA ignore_check_constraints = ON",
        "PRAGMA reverse_unordered_selects = ON",
        "PRAGMA synchronous = OFF",
        "PRAGMA cache_size = 77",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    };
    for (size_t i = 0; i < COUNT_OF(leavings); i++) {
        Session *s = open_one();
        assert_true(session_reuse(s, &options));
        kit_exec(s, leavings[i]);
        if (session_reuse(s, &options)) fail_msg("%s", leavings[i]);
        session_destroy(s);
    }
}

static void
a_running_statement_makes_it_unfit(void **state)
{
    (void)state;
    Session *s = open_one();
    Stmt *stmt;
    bool row;
    assert_int_equal(stmt_prepare(s, SLICE_LITERAL("SELECT 1 UNION ALL SELECT 2"), &stmt, NULL),
                     OK);
    assert_int_equal(stmt_step(stmt, &row), OK);
    assert_false(session_reuse(s, &options));
    assert_int_equal(stmt_reset(stmt), OK);
    assert_true(session_reuse(s, &options));
    assert_int_equal(stmt_step(stmt, &row), OK); /* It is still prepared. */
    assert_true(row);
    session_destroy(s);
}

static void
kinds_of_statements(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        StmtKind kind;
    } cases[] = {
        {"SELECT 1", STMT_KIND_SELECT},
        {"VALUES(1)", STMT_KIND_SELECT},
        {"WITH x AS (SELECT 1) INSERT INTO k SELECT * FROM x", STMT_KIND_INSERT},
        {"REPLACE INTO k VALUES(1)", STMT_KIND_INSERT},
        {"UPDATE k SET a = 1", STMT_KIND_UPDATE},
        {"DELETE FROM k", STMT_KIND_DELETE},
        {"CREATE TABLE j(a)", STMT_KIND_SCHEMA},
        {"DROP TABLE k", STMT_KIND_SCHEMA},
        {"BEGIN IMMEDIATE", STMT_KIND_BEGIN},
        {"COMMIT", STMT_KIND_END},
        {"ROLLBACK", STMT_KIND_END},
        {"SAVEPOINT a", STMT_KIND_SAVEPOINT},
        {"ROLLBACK TO a", STMT_KIND_SAVEPOINT},
        {"PRAGMA user_version", STMT_KIND_SETTING},
        {"VACUUM", STMT_KIND_FILE},
        {"ATTACH 'a' AS b", STMT_KIND_FILE},
    };
    Session *s = open_one();
    kit_exec(s, "CREATE TABLE k(a)");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Stmt *stmt;
        Slice sql = SLICE(cases[i].sql, strlen(cases[i].sql));
        assert_int_equal(stmt_prepare(s, sql, &stmt, NULL), OK);
        assert_int_equal(stmt_kind(stmt), cases[i].kind);
        assert_int_equal(stmt_finalize(stmt), OK);
    }
    session_destroy(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counters_and_transactions_are_forgotten),
        cmocka_unit_test(what_stays_makes_it_unfit),
        cmocka_unit_test(a_running_statement_makes_it_unfit),
        cmocka_unit_test(kinds_of_statements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
