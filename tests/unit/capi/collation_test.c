/*
 * collation_test.c -- collations of the program in tables and indexes.
 *
 * Method: one connection registers a collation and declares columns and indexes with it; others
 * have another one of that name, or none.  Answers are what SQLite's documentation promises.
 */
#include "capi_kit.h"

#include "base/base.h"

#define SHARED "file:collation_test?mode=memory&cache=shared"

static int
compare_reverse(void *arg, int a_bytes, const void *a, int b_bytes, const void *b)
{
    int common = a_bytes < b_bytes ? a_bytes : b_bytes;
    int order = memcmp(b, a, (size_t)common);
    (*(int *)arg)++;
    return order != 0 ? order : b_bytes - a_bytes;
}

static int
compare_length(void *arg, int a_bytes, const void *a, int b_bytes, const void *b)
{
    (void)a;
    (void)b;
    (*(int *)arg)++;
    return a_bytes - b_bytes;
}

static int calls;

static sqlite3 *
open_with(int (*compare)(void *, int, const void *, int, const void *))
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    if (compare != NULL)
        assert_int_equal(sqlite3_create_collation_v2(db, "own", SQLITE_UTF8, &calls, compare, NULL),
                         SQLITE_OK);
    return db;
}

static int
collect(void *arg, int columns, char **value, char **name)
{
    (void)columns;
    (void)name;
    char *text = arg;
    if (text[0] != 0) strncat(text, " ", 2);
    strncat(text, value[0] == NULL ? "NULL" : value[0], 40);
    return 0;
}

/* All rows' first columns. */
static const char *
rows(sqlite3 *db, const char *sql, char *text)
{
    char *error = NULL;
    text[0] = 0;
    if (sqlite3_exec(db, sql, collect, text, &error) != SQLITE_OK) fail_msg("%s: %s", sql, error);
    return text;
}

static void
fails(sqlite3 *db, const char *sql, const char *message)
{
    char *error = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &error) == SQLITE_OK) fail_msg("should fail: %s", sql);
    assert_string_equal(error, message);
    sqlite3_free(error);
}

static void
a_column_is_compared_by_it(void **state)
{
    (void)state;
    char text[4000];
    sqlite3 *db = open_with(compare_reverse);
    run(db, "CREATE TABLE t(a TEXT COLLATE own, b); CREATE INDEX ti ON t(a);"
            "CREATE INDEX tb ON t(b COLLATE own);"
            "INSERT INTO t VALUES ('a', 'x'), ('c', 'y'), ('b', 'z'), (NULL, 'z'), ('c', 'x')");
    assert_string_equal(rows(db, "SELECT a FROM t ORDER BY a", text), "NULL c c b a");
    assert_string_equal(rows(db, "SELECT a FROM t ORDER BY a COLLATE BINARY", text),
                        "NULL a b c c");
    assert_string_equal(rows(db, "SELECT a FROM t WHERE a > 'b'", text), "a");
    assert_string_equal(rows(db, "SELECT DISTINCT a FROM t WHERE a IS NOT NULL ORDER BY 1", text),
                        "c b a");
    assert_string_equal(rows(db, "SELECT max(a) FROM t", text), "a");
    assert_string_equal(rows(db, "SELECT count(*) FROM t GROUP BY a ORDER BY a", text), "1 2 1 1");
    assert_string_equal(rows(db, "SELECT b FROM t ORDER BY b COLLATE own, a", text), "z z y x x");
    assert_string_equal(rows(db, "SELECT coll FROM pragma_index_xinfo('tb') WHERE key", text),
                        "own");
    assert_string_equal(rows(db, "PRAGMA integrity_check; REINDEX own; REINDEX", text), "ok");
    sqlite3_close(db);
}

static void
equal_by_it_is_equal(void **state)
{
    (void)state;
    char text[4000];
    sqlite3 *db = open_with(compare_length);
    run(db, "CREATE TABLE t(a TEXT COLLATE own); CREATE INDEX ti ON t(a);"
            "CREATE TABLE u(b TEXT); INSERT INTO t VALUES ('xx'), ('y'), ('zzz');"
            "INSERT INTO u VALUES ('1'), ('22'), ('4444')");
    calls = 0;
    assert_string_equal(rows(db, "SELECT a FROM t WHERE a = '12'", text), "xx");
    assert_true(calls > 0);
    assert_string_equal(rows(db, "SELECT a FROM t, u WHERE a = b ORDER BY a", text), "y xx");
    assert_string_equal(rows(db, "SELECT a FROM t WHERE a IN ('1', '333')", text), "y zzz");
    assert_string_equal(rows(db, "SELECT a FROM t WHERE a = '12' COLLATE BINARY", text), "");
    sqlite3_close(db);
}

static void
who_does_not_have_it_is_told_when_it_is_needed(void **state)
{
    (void)state;
    static const char missing[] = "no such collation sequence: own";
    char text[4000];
    sqlite3 *db = open_with(compare_reverse);
    run(db,
        "CREATE TABLE t(a COLLATE own, b); CREATE INDEX ti ON t(a); INSERT INTO t VALUES (1, 2)");
    assert_int_equal(sqlite3_create_collation_v2(db, "own", SQLITE_UTF8, NULL, NULL, NULL),
                     SQLITE_OK);
    assert_string_equal(rows(db, "SELECT a FROM t WHERE b = 2", text), "1");
    assert_string_equal(rows(db, "SELECT a FROM t UNION ALL SELECT a FROM t", text), "1 1");
    static const char *const refused[] = {
        "SELECT a FROM t ORDER BY a",
        "SELECT a FROM t WHERE a = 'x'",
        "SELECT a FROM t WHERE a IN ('x', 'y')",
        "SELECT a FROM t WHERE a BETWEEN 'x' AND 'y'",
        "SELECT DISTINCT a FROM t",
        "SELECT count(*) FROM t GROUP BY a",
        "SELECT max(a) FROM t",
        "SELECT count(DISTINCT a) FROM t",
        "SELECT a FROM t UNION SELECT a FROM t",
        "SELECT row_number() OVER (PARTITION BY a) FROM t",
        "SELECT row_number() OVER (ORDER BY a) FROM t",
        "INSERT INTO t VALUES (3, 4)",
        "UPDATE t SET a = 5",
        "DELETE FROM t WHERE b = 2",
        "CREATE INDEX tj ON t(a)",
        "CREATE TABLE u(x COLLATE own)",
        "REINDEX",
        "PRAGMA integrity_check",
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        fails(db, refused[i], missing);
    run(db, "UPDATE t SET b = 6; ALTER TABLE t RENAME COLUMN b TO c; DELETE FROM t; DROP TABLE t");
    sqlite3_close(db);
}

static void
each_connection_has_its_own(void **state)
{
    (void)state;
    char text[4000];
    sqlite3 *one, *two, *none;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
    assert_int_equal(sqlite3_open_v2(SHARED, &one, flags, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_open_v2(SHARED, &two, flags, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_open_v2(SHARED, &none, flags, NULL), SQLITE_OK);
    sqlite3_create_collation_v2(one, "own", SQLITE_UTF8, &calls, compare_reverse, NULL);
    sqlite3_create_collation_v2(two, "own", SQLITE_UTF8, &calls, compare_length, NULL);
    run(one, "CREATE TABLE t(a TEXT COLLATE own); CREATE INDEX ti ON t(a);"
             "INSERT INTO t VALUES ('ccc'), ('a'), ('bb')");
    run(two, "INSERT INTO t VALUES ('dddd')");
    assert_string_equal(rows(one, "SELECT a FROM t ORDER BY a", text), "dddd ccc bb a");
    assert_string_equal(rows(two, "SELECT a FROM t ORDER BY a", text), "a bb ccc dddd");
    assert_string_equal(rows(none, "SELECT a FROM t ORDER BY rowid", text), "ccc a bb dddd");
    fails(none, "SELECT a FROM t ORDER BY a", "no such collation sequence: own");
    assert_string_equal(rows(two, "PRAGMA integrity_check", text), "ok");
    sqlite3_close(one);
    sqlite3_close(none);
    assert_string_equal(rows(two, "SELECT a FROM t WHERE a = '..'", text), "bb");
    sqlite3_close(two);
}

static void
unique_under_it_is_refused(void **state)
{
    (void)state;
    static const char why[] = "UNIQUE and PRIMARY KEY under the collation own of the program are "
                              "not supported";
    sqlite3 *db = open_with(compare_reverse);
    fails(db, "CREATE TABLE t(a UNIQUE COLLATE own)", why);
    fails(db, "CREATE TABLE t(a COLLATE own, PRIMARY KEY(a)) WITHOUT ROWID", why);
    run(db, "CREATE TABLE t(a, b COLLATE own)");
    fails(db, "CREATE UNIQUE INDEX ti ON t(a COLLATE own)", why);
    run(db, "CREATE UNIQUE INDEX ti ON t(a, b COLLATE NOCASE)");
    sqlite3_close(db);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_column_is_compared_by_it),
        cmocka_unit_test(equal_by_it_is_equal),
        cmocka_unit_test(who_does_not_have_it_is_told_when_it_is_needed),
        cmocka_unit_test(each_connection_has_its_own),
        cmocka_unit_test(unique_under_it_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
