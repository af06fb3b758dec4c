/*
 * explain_test.c -- EXPLAIN lists what would run and changes nothing; EXPLAIN ANALYZE runs it.
 *
 * Method: statements of known effect over known rows; the columns, the counts of each operator and
 * the sentences are compared, times are not.  Both are stepped twice, reset in the middle, and run
 * after a schema change.
 */
#include "session_kit.h"

static Session *
filled(void)
{
    Session *s = kit_open("", true);
    kit_exec(s, "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c); CREATE INDEX tb ON t(b);"
                "CREATE TABLE u(x, y);"
                "INSERT INTO t SELECT value, value % 10, value || 'x' FROM generate_series(1, 200);"
                "INSERT INTO u SELECT value, value % 7 FROM generate_series(1, 50)");
    return s;
}

/* The row whose column `at` begins with `text`; NULL: none.  The statement stands on it. */
static const Cell *
find_row(Stmt *stmt, u32 at, const char *text)
{
    bool row = true;
    while (stmt_step(stmt, &row) == OK && row) {
        const Cell *cell = &stmt_row(stmt)[at];
        if (cell->type == CELL_TEXT && cell->bytes >= strlen(text) &&
            memcmp(cell->u.p, text, strlen(text)) == 0)
            return stmt_row(stmt);
    }
    return NULL;
}

enum { DETAIL = 2, ROWS = 3, RUNS = 4, WHY = 9 };

static void
analyze_counts_rows_and_runs(void **state)
{
    (void)state;
    Session *s = filled();
    Stmt *stmt = kit_prepare(s,
                             "EXPLAIN ANALYZE SELECT t.c FROM u JOIN t ON t.a = u.x WHERE u.y = 3");
    assert_int_equal(stmt_column_count(stmt), 10);
    assert_string_equal(stmt_column(stmt, WHY)->name, "why");
    for (u32 round = 0; round < 2; round++) { /* Counters begin anew. */
        const Cell *row = find_row(stmt, DETAIL, "SCAN u");
        assert_non_null(row);
        assert_int_equal(row[ROWS].u.i, 7);
        assert_int_equal(row[RUNS].u.i, 1);
        assert_int_equal(stmt_reset(stmt), OK);
    }
    const Cell *row = find_row(stmt, DETAIL, "SEARCH t USING INTEGER PRIMARY KEY");
    assert_non_null(row);
    assert_int_equal(row[ROWS].u.i, 7);
    assert_int_equal(row[RUNS].u.i, 7);
    assert_non_null(strstr((const char *)row[WHY].u.p, "at most one row"));
    stmt_finalize(stmt);
    assert_int_equal(session_close(s), OK);
}

static void
analyze_runs_writes(void **state)
{
    (void)state;
    Session *s = filled();
    Stmt *stmt = kit_prepare(s, "EXPLAIN ANALYZE UPDATE t SET c = 'k' WHERE b = 3");
    assert_false(stmt_is_read_only(stmt));
    const Cell *row = find_row(stmt, DETAIL, "UPDATE t");
    assert_non_null(row);
    assert_int_equal(row[ROWS].u.i, 20);
    stmt_finalize(stmt);
    kit_query(s, "SELECT count(*) FROM t WHERE c = 'k'", "20;");
    assert_int_equal(session_close(s), OK);
}

static void
program_lists_and_changes_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"addr", "opcode", "p1", "p2", "p3", "p4", "p5", "comment"};
    Session *s = filled();
    Stmt *stmt = kit_prepare(s, "EXPLAIN DELETE FROM t WHERE b + 1 > 3");
    assert_false(stmt_is_read_only(stmt)); /* As SQLite: by what it explains. */
    assert_int_equal(stmt_column_count(stmt), COUNT_OF(names));
    for (u32 i = 0; i < COUNT_OF(names); i++)
        assert_string_equal(stmt_column(stmt, i)->name, names[i]);
    assert_non_null(find_row(stmt, 1, "Add"));
    assert_non_null(find_row(stmt, 1, "Delete"));
    kit_exec(s, "CREATE INDEX tc ON t(c)");
    assert_int_equal(stmt_reset(stmt), OK);
    assert_non_null(find_row(stmt, 1, "Halt"));
    stmt_finalize(stmt);
    kit_query(s, "SELECT count(*) FROM t", "200;");
    stmt = kit_prepare(s, "EXPLAIN CREATE TABLE z(a)");
    assert_non_null(find_row(stmt, 5, "CREATE TABLE"));
    stmt_finalize(stmt);
    kit_query(s, "SELECT count(*) FROM sqlite_schema WHERE name = 'z'", "0;");
    assert_int_equal(session_close(s), OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(analyze_counts_rows_and_runs),
        cmocka_unit_test(analyze_runs_writes),
        cmocka_unit_test(program_lists_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
