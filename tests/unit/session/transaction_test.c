/*
 * transaction_test.c -- transactions at SQL level, in both writers modes, between connections and
 * between statements of one connection.
 *
 * Method: two or three connections of one thread on a named in-memory database, interleaved by
 * hand; a busy timeout of 0 turns every wait into an error at once, so nothing depends on time.
 */
#include <stdlib.h>
#include <unistd.h>

#include "session_kit.h"

static void
savepoints_nest_and_roll_back(void **state)
{
    (void)state;
    Session *s = kit_open("", false);
    kit_exec(s, "CREATE TABLE t(a INTEGER PRIMARY KEY, b); BEGIN; INSERT INTO t VALUES(1,'x')");
    kit_exec(s, "SAVEPOINT one; INSERT INTO t VALUES(2,'y'); SAVEPOINT two; DELETE FROM t");
    kit_query(s, "SELECT count(*) FROM t", "0;");
    kit_exec(s, "ROLLBACK TO two");
    kit_query(s, "SELECT count(*) FROM t", "2;");
    kit_exec(s, "ROLLBACK TO one; INSERT INTO t VALUES(3,'z'); RELEASE one");
    kit_fails(s, "ROLLBACK TO two", ERR_SQL, "no such savepoint: two");
    kit_exec(s, "COMMIT");
    kit_query(s, "SELECT a FROM t", "1;3;");
    /* Outside BEGIN a savepoint opens the transaction, and its release commits. */
    kit_exec(s, "SAVEPOINT z; INSERT INTO t VALUES(4,'w')");
    assert_false(session_autocommit(s));
    kit_exec(s, "RELEASE z");
    assert_true(session_autocommit(s));
    kit_query(s, "SELECT count(*) FROM t", "3;");
    kit_fails(s, "COMMIT", ERR_SQL, "cannot commit - no transaction is active");
    kit_fails(s, "ROLLBACK", ERR_SQL, "cannot rollback - no transaction is active");
    session_destroy(s);
}

static void
a_failed_statement_takes_back_only_itself(void **state)
{
    (void)state;
    Session *s = kit_open("", false);
    kit_exec(s, "CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE); BEGIN;"
                "INSERT INTO t VALUES(1,1),(2,2)");
    kit_fails(s, "INSERT INTO t VALUES(3,3),(4,2)", ERR_CONSTRAINT_UNIQUE,
              "UNIQUE constraint failed: t.b");
    kit_query(s, "SELECT count(*), changes() FROM t", "2|0;");
    kit_fails(s, "INSERT OR FAIL INTO t VALUES(3,3),(4,2)", ERR_CONSTRAINT_UNIQUE, NULL);
    kit_query(s, "SELECT count(*) FROM t", "3;");
    kit_fails(s, "INSERT OR ROLLBACK INTO t VALUES(5,3)", ERR_CONSTRAINT_UNIQUE, NULL);
    assert_true(session_autocommit(s));
    kit_query(s, "SELECT count(*) FROM t", "0;");
    session_destroy(s);
}

static void
a_snapshot_stays_and_others_commits_show_later(void **state)
{
    (void)state;
    Session *a = kit_open("snapshot", false), *b = kit_open("snapshot", false);
    kit_exec(a, "CREATE TABLE t(x); INSERT INTO t VALUES(1)");
    kit_exec(b, "BEGIN");
    kit_query(b, "SELECT count(*) FROM t", "1;");
    kit_exec(a, "INSERT INTO t VALUES(2)");
    kit_query(b, "SELECT count(*) FROM t", "1;");
    kit_exec(b, "COMMIT");
    kit_query(b, "SELECT count(*) FROM t", "2;");
    kit_exec(b, "BEGIN ISOLATION LEVEL READ COMMITTED");
    kit_query(b, "SELECT count(*) FROM t", "2;");
    kit_exec(a, "DELETE FROM t");
    kit_query(b, "SELECT count(*) FROM t", "0;");
    kit_exec(b, "COMMIT");
    session_destroy(a);
    session_destroy(b);
}

static void
a_lost_conflict_dooms_a_transaction_but_not_a_statement(void **state)
{
    (void)state;
    Session *a = kit_open("conflict", false), *b = kit_open("conflict", false);
    kit_exec(a, "CREATE TABLE t(k INTEGER PRIMARY KEY, n); INSERT INTO t VALUES(1,0),(2,0)");
    kit_exec(b, "BEGIN");
    kit_query(b, "SELECT n FROM t WHERE k=1", "0;");
    kit_exec(a, "UPDATE t SET n=n+1 WHERE k=1");
    kit_fails(b, "UPDATE t SET n=n+1 WHERE k=1", ERR_BUSY_SNAPSHOT,
              "could not serialize access due to concurrent update");
    kit_fails(b, "SELECT 1 FROM t", ERR_BUSY_SNAPSHOT,
              "transaction has failed: only ROLLBACK is possible");
    kit_fails(b, "COMMIT", ERR_BUSY_SNAPSHOT, NULL);
    kit_exec(b, "ROLLBACK");
    /* In autocommit the statement takes a fresh snapshot by itself. */
    kit_exec(b, "UPDATE t SET n=n+1 WHERE k=1");
    kit_query(a, "SELECT n FROM t", "2;0;");
    /* A row that an open transaction holds is waited for, here not at all. */
    kit_exec(a, "BEGIN; UPDATE t SET n=10 WHERE k=2");
    kit_fails(b, "UPDATE t SET n=20 WHERE k=2", ERR_BUSY, NULL);
    kit_exec(b, "UPDATE t SET n=n+1 WHERE k=1");
    kit_exec(a, "COMMIT");
    kit_query(b, "SELECT n FROM t", "3;10;");
    session_destroy(a);
    session_destroy(b);
}

static void
single_mode_has_one_writer_and_stale_upgrades(void **state)
{
    (void)state;
    Session *a = kit_open("single", true), *b = kit_open("single", true);
    kit_exec(a, "CREATE TABLE t(x); CREATE TABLE u(x); INSERT INTO t VALUES(1)");
    kit_exec(a, "BEGIN IMMEDIATE");
    kit_fails(b, "BEGIN IMMEDIATE", ERR_BUSY, "database is locked");
    assert_true(session_autocommit(b));
    kit_fails(b, "INSERT INTO u VALUES(1)", ERR_BUSY, "database is locked");
    kit_query(b, "SELECT count(*) FROM t", "1;");
    kit_exec(a, "INSERT INTO t VALUES(2); COMMIT");
    kit_exec(b, "INSERT INTO u VALUES(1)");
    /* A reader whose base is older than somebody's commit, to whatever table, cannot upgrade. */
    kit_exec(b, "BEGIN");
    kit_query(b, "SELECT count(*) FROM t", "2;");
    kit_exec(a, "INSERT INTO u VALUES(2)");
    kit_fails(b, "INSERT INTO t VALUES(3)", ERR_BUSY_SNAPSHOT, "database is locked");
    kit_query(b, "SELECT count(*) FROM u", "1;");
    kit_exec(b, "ROLLBACK; INSERT INTO t VALUES(3)");
    kit_query(a, "SELECT count(*) FROM t", "3;");
    session_destroy(a);
    session_destroy(b);
}

static void
an_open_reader_sees_its_own_connection_write(void **state)
{
    (void)state;
    Session *s = kit_open("", false);
    kit_exec(s, "CREATE TABLE t(a INTEGER PRIMARY KEY); INSERT INTO t VALUES(1),(2),(3)");
    Stmt *reader = kit_prepare(s, "SELECT a FROM t");
    assert_int_equal(kit_row(reader), 1);
    kit_exec(s, "DELETE FROM t WHERE a=2");
    assert_int_equal(kit_row(reader), 3);
    kit_exec(s, "INSERT INTO t VALUES(6)");
    assert_int_equal(kit_row(reader), 6);
    assert_true(kit_done(reader));
    assert_int_equal(kit_row(reader), 1); /* Step after the end starts over. */
    kit_exec(s, "DELETE FROM t");
    assert_true(kit_done(reader));
    stmt_finalize(reader);
    session_destroy(s);
}

static void
a_reader_outlives_rollback_and_commit(void **state)
{
    (void)state;
    Session *s = kit_open("", false);
    kit_exec(s, "CREATE TABLE t(a INTEGER PRIMARY KEY); INSERT INTO t VALUES(1),(2),(3),(4)");
    Stmt *reader = kit_prepare(s, "SELECT a FROM t");
    kit_exec(s, "BEGIN; INSERT INTO t VALUES(7)");
    assert_int_equal(kit_row(reader), 1);
    assert_int_equal(kit_row(reader), 2);
    kit_exec(s, "ROLLBACK");
    assert_int_equal(kit_row(reader), 3);
    kit_exec(s, "BEGIN; INSERT INTO t VALUES(8); COMMIT");
    assert_int_equal(kit_row(reader), 4);
    assert_int_equal(kit_row(reader), 8);
    assert_true(kit_done(reader));
    stmt_finalize(reader);
    session_destroy(s);
}

static void
returning_makes_all_changes_in_its_first_step(void **state)
{
    (void)state;
    Session *s = kit_open("", false);
    kit_exec(s, "CREATE TABLE t(a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES(1,1),(2,2),(3,3)");
    kit_exec(s, "BEGIN");
    Stmt *stmt = kit_prepare(s, "UPDATE t SET b=b*10 RETURNING b");
    assert_int_equal(kit_row(stmt), 10);
    kit_query(s, "SELECT sum(b) FROM t", "60;");
    kit_fails(s, "COMMIT", ERR_BUSY, "cannot commit transaction - SQL statements in progress");
    assert_int_equal(stmt_reset(stmt), OK);
    kit_exec(s, "COMMIT");
    kit_query(s, "SELECT sum(b) FROM t", "60;");
    stmt_finalize(stmt);
    session_destroy(s);
}

static void
schema_changes_roll_back_and_reach_other_connections(void **state)
{
    (void)state;
    Session *a = kit_open("schema", false), *b = kit_open("schema", false);
    kit_exec(a, "CREATE TABLE t(x)");
    Stmt *insert = kit_prepare(b, "INSERT INTO t VALUES(1)");
    assert_true(kit_done(insert));
    kit_exec(a, "BEGIN; CREATE TABLE u(y); CREATE INDEX i ON t(x); INSERT INTO u VALUES(1)");
    kit_query(a, "SELECT y FROM u", "1;");
    kit_fails(b, "SELECT y FROM u", ERR_SQL, "no such table: u");
    kit_exec(a, "ROLLBACK");
    kit_fails(a, "SELECT y FROM u", ERR_SQL, "no such table: u");
    kit_query(a, "SELECT count(*) FROM sqlite_schema", "1;");
    kit_exec(a, "CREATE INDEX i ON t(x)");
    /* The statement was prepared before the index: it is prepared again and keeps it. */
    assert_true(kit_done(insert));
    kit_query(a, "SELECT count(*) FROM t INDEXED BY i WHERE x=1", "2;");
    kit_query(a, "PRAGMA integrity_check", "ok;");
    kit_exec(a, "BEGIN; DROP TABLE t; SAVEPOINT s; CREATE TABLE t(z,w); ROLLBACK TO s");
    kit_fails(a, "SELECT * FROM t", ERR_SQL, "no such table: t");
    kit_exec(a, "ROLLBACK");
    kit_query(b, "SELECT count(*) FROM t", "2;");
    stmt_finalize(insert);
    session_destroy(a);
    session_destroy(b);
}

static void
drop_beside_an_open_statement_is_locked(void **state)
{
    (void)state;
    Session *s = kit_open("", false);
    kit_exec(s, "CREATE TABLE t(a); CREATE TABLE u(a); INSERT INTO t VALUES(1),(2)");
    Stmt *reader = kit_prepare(s, "SELECT a FROM t");
    assert_int_equal(kit_row(reader), 1);
    kit_fails(s, "DROP TABLE u", ERR_LOCKED, "database table is locked");
    kit_exec(s, "CREATE INDEX i ON u(a)");
    assert_int_equal(kit_row(reader), 2);
    stmt_finalize(reader);
    kit_exec(s, "DROP TABLE u");
    session_destroy(s);
}

static void
writers_wait_for_a_schema_change_of_their_table(void **state)
{
    (void)state;
    Session *a = kit_open("ddl", false), *b = kit_open("ddl", false);
    kit_exec(a, "CREATE TABLE t(x); CREATE TABLE u(x)");
    kit_exec(b, "BEGIN; INSERT INTO t VALUES(1)");
    kit_fails(a, "CREATE INDEX i ON t(x)", ERR_BUSY, NULL);
    kit_exec(b, "COMMIT");
    kit_exec(a, "BEGIN; CREATE INDEX i ON t(x)");
    kit_fails(b, "INSERT INTO t VALUES(2)", ERR_BUSY, NULL);
    kit_exec(b, "INSERT INTO u VALUES(2)");
    kit_exec(a, "COMMIT");
    kit_exec(b, "INSERT INTO t VALUES(2)");
    kit_query(a, "SELECT x FROM t INDEXED BY i WHERE x>0", "1;2;");
    kit_query(a, "PRAGMA integrity_check", "ok;");
    session_destroy(a);
    session_destroy(b);
}

static void
an_empty_answer_fixes_the_snapshot(void **state)
{
    (void)state;
    Session *a = kit_open("empty", false), *b = kit_open("empty", false);
    kit_exec(a, "CREATE TABLE t(k INTEGER PRIMARY KEY, n); INSERT INTO t VALUES(1,0)");
    kit_exec(b, "BEGIN");
    kit_query(b, "SELECT n FROM t WHERE k=2", "");
    kit_exec(a, "INSERT INTO t VALUES(2,0); UPDATE t SET n=1 WHERE k=1");
    /* "No such row" was an answer: a fresh snapshot would contradict it. */
    kit_fails(b, "UPDATE t SET n=n+1 WHERE k=1", ERR_BUSY_SNAPSHOT, NULL);
    kit_exec(b, "ROLLBACK");
    session_destroy(a);
    session_destroy(b);
}

#ifdef WEFT_CHECK
static u64
syncs(Session *session)
{
    StoreStats stats;
    store_stats(session_store(session), &stats);
    return stats.log_syncs;
}

/* Method: a planted bug acknowledges FULL commits before their sync, so each leaves something that
   is visible and not durable; whoever then shows an answer that rests on it must sync first. */
static void
what_is_shown_is_durable_first(void **state)
{
    (void)state;
    char dir[] = "/tmp/weft-session-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/t.weft", dir);
    SessionOptions options = {.create = true, .sync = STORE_SYNC_FULL, .level = STORE_SNAPSHOT};
    ErrMsg msg = {.sql_offset = -1};
    Session *a, *b;
    assert_int_equal(session_open(rt_process_default(), path, &options, &a, &msg), OK);
    assert_int_equal(session_open(rt_process_default(), path, &options, &b, &msg), OK);
    kit_exec(a, "CREATE TABLE t(k INTEGER PRIMARY KEY, u UNIQUE)");
    static const struct {
        const char *change, *look, *answer;
    } cases[] = {
        {"INSERT INTO t VALUES(1, 1)", "SELECT u FROM t", "1;"},
        {"DELETE FROM t", "SELECT u FROM t", ""},
        {"INSERT INTO t VALUES(2, 2)", "INSERT INTO t VALUES(3, 2)", "!ERR_CONSTRAINT_UNIQUE"},
        {"CREATE TABLE v(x)", "PRAGMA table_info(v)", "0|x||0|NULL|0;"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        plant_set(108, true);
        kit_exec(a, cases[i].change);
        plant_set(108, false);
        u64 before = syncs(a);
        kit_query(b, cases[i].look, cases[i].answer);
        assert_true(syncs(a) > before);
    }
    plant_set(108, true);
    kit_exec(a, "DROP TABLE v");
    plant_set(108, false);
    u64 before = syncs(a);
    kit_fails(b, "SELECT * FROM v", ERR_SQL, "no such table: v");
    assert_true(syncs(a) > before);
    /* A number for a new row is no answer about the last one. */
    plant_set(108, true);
    kit_exec(a, "INSERT INTO t(u) VALUES(10)");
    plant_set(108, false);
    before = syncs(a);
    kit_exec(b, "BEGIN");
    kit_exec(b, "INSERT INTO t(u) VALUES(11)");
    assert_int_equal(syncs(a), before);
    kit_query(b, "SELECT count(*) FROM t WHERE u=10", "1;");
    assert_true(syncs(a) > before);
    kit_exec(b, "COMMIT");
    session_destroy(a);
    session_destroy(b);
    remove(path);
    rmdir(dir);
}
#endif

static void
attached_databases_commit_and_roll_back_with_main(void **state)
{
    (void)state;
    Session *s = kit_open("", true);
    kit_exec(s, "CREATE TABLE t(a); ATTACH ':memory:' AS other; CREATE TABLE other.u(b)");
    kit_exec(s, "BEGIN; INSERT INTO t VALUES(1); INSERT INTO other.u VALUES(2); ROLLBACK");
    kit_query(s, "SELECT count(*) FROM t, u", "0;");
    kit_exec(s, "BEGIN; INSERT INTO t VALUES(1); INSERT INTO u VALUES(2); COMMIT");
    kit_query(s, "SELECT a, b FROM t, other.u", "1|2;");
    kit_fails(s, "ATTACH ':memory:' AS other", ERR_SQL, "database other is already in use");
    kit_fails(s, "DETACH main", ERR_SQL, "cannot detach database main");
    kit_exec(s, "DETACH other");
    kit_fails(s, "SELECT * FROM u", ERR_SQL, "no such table: u");
    session_destroy(s);
}

/* A write that may not begin undoes nothing of what the transaction did before. */
static void
refused_write_undoes_nothing(void **state)
{
    (void)state;
    Session *s = kit_open("", true);
    kit_exec(s, "CREATE TABLE t(a); BEGIN");
    Stmt *stmt = kit_prepare(s, "INSERT INTO t VALUES(1)");
    assert_true(kit_done(stmt));
    assert_int_equal(stmt_reset(stmt), OK);
    kit_exec(s, "INSERT INTO t VALUES(2); PRAGMA query_only=1");
    bool row;
    assert_int_equal(stmt_step(stmt, &row), ERR_READONLY);
    assert_int_equal(stmt_finalize(stmt), ERR_READONLY);
    kit_query(s, "SELECT a FROM t", "1;2;");
    kit_exec(s, "PRAGMA query_only=0; COMMIT");
    kit_query(s, "SELECT a FROM t", "1;2;");
    assert_int_equal(session_close(s), OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_write_undoes_nothing),
        cmocka_unit_test(savepoints_nest_and_roll_back),
        cmocka_unit_test(a_failed_statement_takes_back_only_itself),
        cmocka_unit_test(a_snapshot_stays_and_others_commits_show_later),
        cmocka_unit_test(a_lost_conflict_dooms_a_transaction_but_not_a_statement),
        cmocka_unit_test(single_mode_has_one_writer_and_stale_upgrades),
        cmocka_unit_test(an_open_reader_sees_its_own_connection_write),
        cmocka_unit_test(a_reader_outlives_rollback_and_commit),
        cmocka_unit_test(returning_makes_all_changes_in_its_first_step),
        cmocka_unit_test(schema_changes_roll_back_and_reach_other_connections),
        cmocka_unit_test(drop_beside_an_open_statement_is_locked),
        cmocka_unit_test(writers_wait_for_a_schema_change_of_their_table),
        cmocka_unit_test(an_empty_answer_fixes_the_snapshot),
#ifdef WEFT_CHECK
        cmocka_unit_test(what_is_shown_is_durable_first),
#endif
        cmocka_unit_test(attached_databases_commit_and_roll_back_with_main),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
