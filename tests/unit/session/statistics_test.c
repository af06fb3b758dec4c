/*
 * statistics_test.c -- ANALYZE's numbers change plans: at once, for other connections, and no
 * longer after a rollback.
 *
 * Method: numbers put into sqlite_stat1 by hand and read with ANALYZE sqlite_schema; the words of
 * EXPLAIN QUERY PLAN are those of SQLite 3.54 with the same numbers.
 */
#include "session_kit.h"

static const char schema[] =
    "CREATE TABLE t(a INTEGER PRIMARY KEY,b,c,d,e); CREATE INDEX tb ON t(b);"
    "CREATE INDEX tc ON t(c); CREATE INDEX tde ON t(d,e); CREATE INDEX tp ON t(e) WHERE e>0;"
    "CREATE TABLE u(x,y,z); CREATE INDEX ux ON u(x);"
    "CREATE TABLE w(p,q,r,PRIMARY KEY(p,q)) WITHOUT ROWID; ANALYZE;";

static const char numbers[] =
    "INSERT INTO sqlite_stat1 VALUES('t','tb','100000 2'),('t','tc','100000 500'),"
    "('t','tde','100000 10000 3'),('t','tp','50000 1'),('u','ux','50 1'),('w','w','5000 1000 1'),"
    "('nowhere','x','1 1'),(NULL,'tb','7'),('t','tb','what'),('u',NULL,NULL);"
    "ANALYZE sqlite_schema";

static const char both[] = "SELECT * FROM t WHERE b=1 AND c=1";
static const char by_habit[] = "SEARCH t USING INDEX tc (c=?)";
static const char by_numbers[] = "SEARCH t USING INDEX tb (b=?)";

/* The plan's lines, joined by " | ". */
static void
plan_is(Session *session, const char *sql, const char *expected)
{
    Stmt *stmt;
    char text[512], out[1024] = "";
    snprintf(text, sizeof(text), "EXPLAIN QUERY PLAN %s", sql);
    assert_int_equal(stmt_prepare(session, SLICE(text, strlen(text)), &stmt, NULL), OK);
    for (bool row = true; row;) {
        assert_int_equal(stmt_step(stmt, &row), OK);
        if (!row) break;
        size_t bytes;
        if (out[0] != 0) strcat(out, " | ");
        strcat(out, stmt_row_text(stmt, 3, &bytes));
    }
    stmt_finalize(stmt);
    if (strcmp(out, expected) != 0) fail_msg("%s\nis %s\nnot %s", sql, out, expected);
}

static void
numbers_choose_the_plan(void **state)
{
    (void)state;
    Session *s = kit_open("", false);
    kit_exec(s, schema);
    plan_is(s, both, by_habit);
    kit_exec(s, numbers);
    plan_is(s, both, by_numbers);
    plan_is(s, "SELECT * FROM t WHERE c=1 AND d=1", "SEARCH t USING INDEX tc (c=?)");
    plan_is(s, "SELECT * FROM t WHERE c=1 AND d=1 AND e=2",
            "SEARCH t USING INDEX tde (d=? AND e=?)");
    plan_is(s, "SELECT * FROM t,u WHERE t.c=u.x", "SCAN u | SEARCH t USING INDEX tc (c=?)");
    plan_is(s, "SELECT * FROM t,u WHERE t.b=u.y", "SCAN u | SEARCH t USING INDEX tb (b=?)");
    /* Changes of the table keep what is known of it. */
    kit_exec(s, "CREATE INDEX tx ON t(e,b); ALTER TABLE t ADD COLUMN f");
    plan_is(s, both, by_numbers);
    session_destroy(s);
}

static void
an_index_without_order(void **state)
{
    (void)state;
    Session *s = kit_open("", false);
    kit_exec(s, schema);
    plan_is(s, "SELECT * FROM t WHERE b>1", "SEARCH t USING INDEX tb (b>?)");
    plan_is(s, "SELECT * FROM t ORDER BY b", "SCAN t USING INDEX tb");
    kit_exec(s, "INSERT INTO sqlite_stat1 VALUES('t','tb','1000 10 unordered sz=40');"
                "ANALYZE sqlite_schema");
    plan_is(s, "SELECT * FROM t WHERE b>1", "SCAN t");
    plan_is(s, "SELECT * FROM t ORDER BY b", "SCAN t | USE TEMP B-TREE FOR ORDER BY");
    plan_is(s, "SELECT * FROM t WHERE b=1", "SEARCH t USING INDEX tb (b=?)");
    session_destroy(s);
}

static void
other_connections_and_rollback(void **state)
{
    (void)state;
    Session *s = kit_open("statistics", false), *other = kit_open("statistics", false);
    kit_exec(s, schema);
    plan_is(other, both, by_habit);
    kit_exec(s, "BEGIN");
    kit_exec(s, numbers);
    plan_is(s, both, by_numbers);
    plan_is(other, both, by_habit);
    kit_exec(s, "ROLLBACK");
    plan_is(s, both, by_habit);
    kit_exec(s, numbers);
    plan_is(other, both, by_numbers);
    /* Real rows: forty-nine of each b, all c different. */
    kit_exec(s, "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r WHERE i<200) "
                "INSERT INTO t SELECT i, i/50, i, i, i FROM r; ANALYZE");
    plan_is(other, both, by_habit);
    session_destroy(other);
    session_destroy(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_choose_the_plan),
        cmocka_unit_test(an_index_without_order),
        cmocka_unit_test(other_connections_and_rollback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
