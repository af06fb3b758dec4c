/*
 * stmt_cache_test.c -- a statement prepared again is as good as new.
 *
 * Method: the same texts prepared over and over, with everything changed between that a plan rests
 * on: schema (own and foreign), settings, databases, sizes; and with what a statement may leave
 * behind: parameters, half-read results, errors.
 */
#include "session/session__impl.h"
#include "session_kit.h"

static Stmt *
prepare(Session *session, const char *sql)
{
    Stmt *stmt;
    Err err = stmt_prepare(session, SLICE(sql, strlen(sql)), &stmt, NULL);
    if (err != OK) fail_msg("%s: %s", sql, err_message(session_error(session)));
    return stmt;
}

/* Prepare, bind 1.. as integers, run, finalize. */
static void
gives(Session *session, const char *sql, i64 first, const char *expected)
{
    char out[1024] = "";
    Stmt *stmt = prepare(session, sql);
    Cell value = cell_int(first);
    if (stmt_param_count(stmt) > 0) assert_int_equal(stmt_bind(stmt, 0, &value), OK);
    kit_drain(stmt, out, sizeof(out));
    stmt_finalize(stmt);
    if (strcmp(out, expected) != 0) fail_msg("%s\ngives %s\nnot %s", sql, out, expected);
}

static const char by_key[] = "SELECT b FROM t WHERE a=?";

static Session *
filled(const char *name)
{
    Session *s = kit_open(name, false);
    kit_exec(s, "CREATE TABLE t(a INTEGER PRIMARY KEY, b); INSERT INTO t VALUES(1,'x'),(2,'y')");
    return s;
}

static void
nothing_is_left_of_the_last_use(void **state)
{
    (void)state;
    Session *s = filled("");
    gives(s, by_key, 1, "x;");
    gives(s, by_key, 2, "y;");
    /* No value is bound any more. */
    char out[64] = "";
    Stmt *stmt = prepare(s, by_key);
    kit_drain(stmt, out, sizeof(out));
    assert_string_equal(out, "");
    /* Two at a time. */
    Stmt *other = prepare(s, by_key);
    Cell one = cell_int(1);
    assert_ptr_not_equal(stmt, other);
    assert_int_equal(stmt_reset(stmt), OK);
    assert_int_equal(stmt_bind(stmt, 0, &one), OK);
    assert_int_equal(stmt_bind(other, 0, &one), OK);
    bool row;
    assert_int_equal(stmt_step(stmt, &row), OK);
    assert_true(row);
    stmt_finalize(stmt);
    kit_drain(other, out, sizeof(out));
    assert_string_equal(out, "x;");
    stmt_finalize(other);
    gives(s, by_key, 2, "y;");
    gives(s, "SELECT count(*) FROM t", 0, "2;");
    gives(s, "SELECT b FROM t WHERE a=? ", 1, "x;"); /* Another text. */
    session_destroy(s);
}

static void
half_read_and_failed_ones(void **state)
{
    (void)state;
    Session *s = filled("");
    static const char insert[] = "INSERT INTO t VALUES(?,'z') RETURNING a";
    static const char divides[] = "SELECT abs(-9223372036854775807-a) FROM t WHERE a<=?";
    for (i64 i = 10; i < 14; i++) {
        Stmt *stmt = prepare(s, insert);
        Cell value = cell_int(i);
        bool row;
        assert_int_equal(stmt_bind(stmt, 0, &value), OK);
        assert_int_equal(stmt_step(stmt, &row), OK);
        assert_true(row);
        stmt_finalize(stmt); /* Its change stays. */
    }
    gives(s, "SELECT count(*) FROM t", 0, "6;");
    gives(s, insert, 10, "!ERR_CONSTRAINT_PRIMARYKEY");
    gives(s, insert, 20, "20;");
    gives(s, divides, 1, "!ERR_SQL");
    gives(s, divides, 0, "");
    session_destroy(s);
}

static void
the_schema_changes(void **state)
{
    (void)state;
    Session *s = filled("cached"), *other = kit_open("cached", false);
    static const char all[] = "SELECT * FROM t WHERE a=1";
    gives(s, all, 0, "1|x;");
    gives(other, all, 0, "1|x;");
    kit_exec(s, "ALTER TABLE t ADD COLUMN c DEFAULT 5");
    gives(s, all, 0, "1|x|5;");
    gives(other, all, 0, "1|x|5;");
    kit_exec(other, "DROP TABLE t");
    assert_int_equal(kit_try(s, all), ERR_SQL);
    kit_exec(other, "CREATE TABLE t(z, a); INSERT INTO t VALUES('new',1)");
    gives(s, all, 0, "new|1;");
    kit_exec(s, "CREATE TEMP TABLE t(a, temporary); INSERT INTO temp.t VALUES(1,'temp')");
    gives(s, all, 0, "1|temp;");
    kit_exec(s, "BEGIN; DROP TABLE temp.t");
    gives(s, all, 0, "new|1;");
    kit_exec(s, "ROLLBACK");
    gives(s, all, 0, "1|temp;");
    session_destroy(other);
    session_destroy(s);
}

static void
settings_and_databases_change(void **state)
{
    (void)state;
    Session *s = filled("");
    static const char like[] = "SELECT count(*) FROM t WHERE b LIKE 'X'";
    gives(s, like, 0, "1;");
    kit_exec(s, "PRAGMA case_sensitive_like=ON");
    gives(s, like, 0, "0;");
    kit_exec(s, "PRAGMA case_sensitive_like=OFF");
    gives(s, like, 0, "1;");
    kit_exec(s, "CREATE TABLE c(p REFERENCES t(a))");
    static const char child[] = "INSERT INTO c VALUES(99)";
    gives(s, child, 0, "");
    kit_exec(s, "DELETE FROM c; PRAGMA foreign_keys=ON");
    gives(s, child, 0, "!ERR_CONSTRAINT_FOREIGNKEY");
    kit_exec(s, "ATTACH ':memory:' AS aux; CREATE TABLE aux.u(v); INSERT INTO aux.u VALUES(7)");
    gives(s, "SELECT v FROM u", 0, "7;");
    gives(s, "SELECT v FROM u", 0, "7;");
    kit_exec(s, "DETACH aux");
    assert_int_equal(kit_try(s, "SELECT v FROM u"), ERR_SQL);
    gives(s, by_key, 1, "x;");
    session_destroy(s);
}

/* More texts than are kept, and one that is used throughout. */
static void
many_texts(void **state)
{
    (void)state;
    Session *s = filled("");
    char sql[80], expected[20];
    for (int i = 0; i < 300; i++) {
        snprintf(sql, sizeof(sql), "SELECT %d FROM t WHERE a=?", i % 90);
        snprintf(expected, sizeof(expected), "%d;", i % 90);
        gives(s, sql, 1, expected);
        gives(s, by_key, 2, "y;");
    }
    /* Statements that outlive the connection's end. */
    Stmt *stmt = prepare(s, by_key);
    session_close_zombie(s);
    stmt_finalize(stmt);
}

static bool
is_kept(const Session *s, const char *sql)
{
    for (u32 i = 0; i < STMT_CACHE_ENTRIES; i++) {
        const Stmt *stmt = s->stmt_cache[i].stmt;
        if (stmt != NULL && stmt->sql_bytes == strlen(sql) &&
            memcmp(stmt->sql, sql, stmt->sql_bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Statements that hold much memory, and are used no more, do not keep others out for ever. */
static void
large_ones_give_way(void **state)
{
    (void)state;
    Session *s = filled("");
    char sql[256];
    for (int i = 0; i < 40; i++) {
        snprintf(sql, sizeof(sql), "SELECT %d FROM t u JOIN t v ON v.a=u.a WHERE u.a=?", i);
        gives(s, sql, -1, "");
    }
    for (u32 i = 0; i < STMT_CACHE_ENTRIES; i++)
        gives(s, sql, -1, "");
    assert_true(is_kept(s, sql));
    session_destroy(s);
}

static bool
can_prepare(Session *session, const char *sql)
{
    Stmt *stmt;
    Err err = stmt_prepare(session, SLICE(sql, strlen(sql)), &stmt, NULL);
    if (err == OK) stmt_finalize(stmt);
    return err == OK;
}

/* A text that is new is planned against the schema of now, also where no snapshot is taken for it;
   in a transaction against that of its snapshot. */
static void
new_texts_see_the_schema_of_now(void **state)
{
    (void)state;
    Session *a = filled("now"), *b = kit_open("now", false);
    for (int round = 0; round < 3; round++) {
        assert_true(can_prepare(a, "SELECT a FROM t"));
        assert_false(can_prepare(a, "SELECT x FROM u"));
        kit_exec(b, "CREATE TABLE u(x)");
        assert_true(can_prepare(a, "SELECT x FROM u"));
        assert_false(can_prepare(a, "SELECT y FROM u"));
        kit_exec(b, "ALTER TABLE u ADD COLUMN y");
        assert_true(can_prepare(a, "SELECT y FROM u"));

        kit_exec(b, "BEGIN; CREATE TABLE v(x)");
        assert_false(can_prepare(a, "SELECT x FROM v"));
        assert_true(can_prepare(b, "SELECT x FROM v"));
        kit_exec(b, "ROLLBACK");
        assert_false(can_prepare(b, "SELECT x FROM v "));

        kit_exec(a, "BEGIN; SELECT * FROM t");
        kit_exec(b, "CREATE TABLE w(x)");
        assert_false(can_prepare(a, "SELECT x FROM w"));
        kit_exec(a, "COMMIT");
        assert_true(can_prepare(a, "SELECT x FROM w"));
        kit_exec(b, "DROP TABLE u; DROP TABLE w");
        assert_false(can_prepare(a, "SELECT x FROM w "));
    }
    session_destroy(a);
    session_destroy(b);
}

/* A freed statement's buffers serve the next, whatever that one's text and parameters are. */
static void
freed_ones_are_taken_over(void **state)
{
    (void)state;
    Session *s = filled("");
    static const u32 counts[] = {1, 3, 80, 2, 0, 9, 64, 65, 1};
    for (u32 round = 0; round < 2 * COUNT_OF(counts); round++) {
        u32 count = counts[round % COUNT_OF(counts)];
        char sql[2000] = "SELECT 0 /* not kept */", out[64] = "";
        for (u32 i = 0; i < count; i++)
            strcat(sql, i % 2 == 0 ? "+ifnull(?,1)" : "+length(ifnull(?,'ab'))");
        if (round % 4 == 3) memset(sql + strlen(sql), ' ', 300);
        strcat(sql, ";;"); /* Not the whole text, so it is freed at its end. */
        Stmt *stmt = prepare(s, sql);
        u32 sum = (count + 1) / 2 + count / 2 * 2;
        for (u32 i = 1; i < count && round % 2 == 1; i += 2) {
            Cell text = cell_text("abcdef", 6);
            assert_int_equal(stmt_bind(stmt, i, &text), OK);
            sum += 4;
        }
        char expected[32];
        snprintf(expected, sizeof(expected), "%u;", sum);
        kit_drain(stmt, out, sizeof(out));
        assert_string_equal(out, expected);
        assert_false(is_kept(s, stmt_sql(stmt)));
        stmt_finalize(stmt);
        assert_true(s->spare_stmt != NULL || count > 64);
        assert_false(can_prepare(s, "SELECT nothing FROM t WHERE ?=?"));
    }
    session_destroy(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left_of_the_last_use),
        cmocka_unit_test(half_read_and_failed_ones),
        cmocka_unit_test(the_schema_changes),
        cmocka_unit_test(settings_and_databases_change),
        cmocka_unit_test(many_texts),
        cmocka_unit_test(large_ones_give_way),
        cmocka_unit_test(new_texts_see_the_schema_of_now),
        cmocka_unit_test(freed_ones_are_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
