/*
 * image_test.c -- sqlite3_serialize and sqlite3_deserialize.
 *
 * Method: databases of one connection become bytes and content of another one; flags, refusals and
 * what stays after them are those of SQLite's documentation; images cut short or with bytes changed
 * give an error, and the content that was there, or a database.
 */
#include "capi_kit.h"

#include "rt/process.h"
#include "session/session.h"

static unsigned char *
image_of(sqlite3 *db, const char *name, sqlite3_int64 *bytes_out)
{
    unsigned char *image = sqlite3_serialize(db, name, bytes_out, 0);
    if (image == NULL) fail_msg("%s", sqlite3_errmsg(db));
    assert_true(*bytes_out >= 512);
    assert_memory_equal(image, "SQLite format 3", 16);
    return image;
}

static int
take(sqlite3 *db, const char *name, const void *image, sqlite3_int64 bytes, unsigned flags)
{
    return sqlite3_deserialize(db, name, (unsigned char *)(uintptr_t)image, bytes, bytes, flags);
}

static const char some[] =
    "CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT COLLATE NOCASE, c DEFAULT 7);"
    "CREATE UNIQUE INDEX ti ON t(b); CREATE INDEX tx ON t(a+1) WHERE c>0;"
    "CREATE TABLE w(k TEXT, n, PRIMARY KEY(k, n)) WITHOUT ROWID; CREATE VIEW v AS SELECT a FROM t;"
    "CREATE TRIGGER tr AFTER DELETE ON t BEGIN INSERT INTO w VALUES('gone', old.a); END;"
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM r WHERE i<300)"
    " INSERT INTO t(b,c) SELECT 'n'||i, CASE i%3 WHEN 0 THEN i*0.5 WHEN 1 THEN zeroblob(i*9) END"
    " FROM r; INSERT INTO w SELECT b,a FROM t; PRAGMA user_version=5;";

static void
content_goes_round(void **state)
{
    (void)state;
    sqlite3 *db = open_memory(), *to = open_memory();
    sqlite3_int64 bytes, again;
    run(db, some);
    run(to, "CREATE TABLE old(x); INSERT INTO old VALUES(1); ATTACH ':memory:' AS other");
    unsigned char *image = image_of(db, NULL, &bytes);
    assert_int_equal(take(to, NULL, image, bytes, 0), SQLITE_OK);
    assert_int_equal(number(to, "SELECT count(*) FROM sqlite_schema WHERE name='old'"), 0);
    assert_int_equal(number(to, "SELECT sum(c)*2 FROM t"), number(db, "SELECT sum(c)*2 FROM t"));
    assert_int_equal(number(to, "SELECT sum(length(b)+length(c)) FROM t"),
                     number(db, "SELECT sum(length(b)+length(c)) FROM t"));
    assert_int_equal(number(to, "SELECT a FROM t WHERE b='N17'"), 17);
    assert_int_equal(number(to, "PRAGMA user_version"), 5);
    run(to, "DELETE FROM t WHERE a=300; INSERT INTO t(b) VALUES('next')");
    assert_int_equal(number(to, "SELECT max(a) FROM t"), 301);
    assert_int_equal(number(to, "SELECT count(*) FROM w WHERE k='gone'"), 1);
    /* The other database of the connection, and from there. */
    assert_int_equal(take(to, "other", image, bytes, SQLITE_DESERIALIZE_FREEONCLOSE), SQLITE_OK);
    assert_int_equal(number(to, "SELECT count(*) FROM other.t"), 300);
    image = image_of(to, "other", &again);
    assert_int_equal(take(db, "main", image, again, SQLITE_DESERIALIZE_FREEONCLOSE), SQLITE_OK);
    assert_int_equal(number(db, "SELECT count(*) FROM t"), 300);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(sqlite3_close(to), SQLITE_OK);
}

/* Nothing in it, nothing given; inside of a transaction its changes are seen. */
static void
empty_and_open(void **state)
{
    (void)state;
    sqlite3 *db = open_memory();
    sqlite3_int64 bytes;
    assert_null(sqlite3_serialize(db, "temp", &bytes, 0)); /* Nothing temporary was made yet. */
    assert_int_equal(bytes, -1);
    unsigned char *empty = image_of(db, "main", &bytes);
    assert_int_equal(bytes % 512, 0);
    run(db, "CREATE TABLE t(a); BEGIN; INSERT INTO t VALUES(3)");
    sqlite3_int64 open_bytes;
    unsigned char *open = image_of(db, "main", &open_bytes);
    assert_int_equal(sqlite3_get_autocommit(db), 0);
    assert_int_equal(take(db, "main", empty, bytes, 0), SQLITE_BUSY);
    run(db, "ROLLBACK");
    assert_int_equal(number(db, "SELECT count(*) FROM t"), 0);
    assert_int_equal(take(db, "main", open, open_bytes, 0), SQLITE_OK);
    assert_int_equal(number(db, "SELECT a FROM t"), 3);
    assert_int_equal(take(db, "main", empty, bytes, 0), SQLITE_OK);
    assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema"), 0);
    assert_int_equal(take(db, "main", open, open_bytes, 0), SQLITE_OK);
    assert_int_equal(take(db, "main", NULL, 0, 0), SQLITE_OK);
    assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema"), 0);
    sqlite3_free(empty);
    sqlite3_free(open);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void
flags_and_refusals(void **state)
{
    (void)state;
    sqlite3 *db = open_memory();
    sqlite3_stmt *stmt;
    sqlite3_int64 bytes;
    run(db, "CREATE TABLE t(a); INSERT INTO t VALUES(3); CREATE TEMP TABLE mine(x)");
    unsigned char *image = image_of(db, "main", &bytes);
    sqlite3_int64 size = bytes;
    assert_null(sqlite3_serialize(db, "main", &bytes, SQLITE_SERIALIZE_NOCOPY));
    assert_int_equal(bytes, size);
    assert_null(sqlite3_serialize(db, "nowhere", &bytes, 0));
    assert_int_equal(bytes, -1);
    assert_int_equal(sqlite3_errcode(db), SQLITE_OK);
    sqlite3_free(image);
    image = image_of(db, "main", &bytes);
    assert_int_equal(take(db, "nowhere", image, bytes, 0), SQLITE_ERROR);
    assert_int_equal(take(db, "temp", image, bytes, 0), SQLITE_ERROR);
    assert_int_equal(sqlite3_deserialize(db, "main", image, -1, bytes, 0), SQLITE_MISUSE);
    assert_int_equal(sqlite3_deserialize(db, "main", image, bytes, -1, 0), SQLITE_MISUSE);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT a FROM t", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(take(db, "main", image, bytes, 0), SQLITE_BUSY);
    assert_int_equal(sqlite3_reset(stmt), SQLITE_OK);
    /* A statement lives on, on the new content; the temp table too. */
    assert_int_equal(take(db, "main", image, bytes, SQLITE_DESERIALIZE_READONLY), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_db_readonly(db, "main"), 1);
    assert_int_equal(sqlite3_db_readonly(db, "temp"), 0);
    run(db, "INSERT INTO mine VALUES(1)");
    assert_int_equal(sqlite3_exec(db, "INSERT INTO t VALUES(4)", NULL, NULL, NULL),
                     SQLITE_READONLY);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE u(x)", NULL, NULL, NULL), SQLITE_READONLY);
    assert_int_equal(take(db, "main", "garbage", 7, 0), SQLITE_NOTADB);
    assert_int_equal(sqlite3_db_readonly(db, "main"), 1);
    assert_int_equal(take(db, "main", image, bytes, SQLITE_DESERIALIZE_RESIZEABLE), SQLITE_OK);
    assert_int_equal(sqlite3_db_readonly(db, "main"), 0);
    run(db, "INSERT INTO t VALUES(4)");
    sqlite3_free(image);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void
twice(sqlite3_context *context, int count, sqlite3_value **value)
{
    (void)count;
    sqlite3_result_int64(context, 2 * sqlite3_value_int64(value[0]));
}

static void
functions_of_the_program(void **state)
{
    (void)state;
    sqlite3 *db = open_memory();
    sqlite3_int64 bytes;
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    assert_int_equal(sqlite3_create_function(db, "twice", 1, flags, NULL, twice, NULL, NULL),
                     SQLITE_OK);
    run(db, "CREATE TABLE u(a); INSERT INTO u VALUES(4),(5); CREATE INDEX ui ON u(twice(a))");
    unsigned char *image = image_of(db, "main", &bytes);
    assert_int_equal(take(db, "main", image, bytes, SQLITE_DESERIALIZE_FREEONCLOSE), SQLITE_OK);
    assert_int_equal(number(db, "SELECT a FROM u INDEXED BY ui WHERE twice(a)=10"), 5);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void
damaged_bytes(void **state)
{
    (void)state;
    sqlite3 *db = open_memory();
    sqlite3_int64 bytes;
    u64 refused = 0;
    Rng rng;
    run(db, "CREATE TABLE t(a PRIMARY KEY, b); WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT"
            " i+1 FROM r WHERE i<200) INSERT INTO t SELECT i, zeroblob(i%40) FROM r");
    unsigned char *image = image_of(db, "main", &bytes);
    run(db, "DROP TABLE t; CREATE TABLE kept(a); INSERT INTO kept VALUES(9)");
    for (sqlite3_int64 cut = 1; cut < bytes; cut += cut < 120 ? 1 : 509) {
        int code = take(db, "main", image, cut, 0);
        assert_true(code == SQLITE_NOTADB || code == SQLITE_CORRUPT);
        assert_int_equal(number(db, "SELECT a FROM kept"), 9);
    }
    rng_seed(&rng, 11);
    for (int round = 0; round < 300; round++) {
        size_t at = (size_t)rng_below(&rng, round < 100 ? 200 : (u64)bytes);
        unsigned char was = image[at];
        image[at] = (unsigned char)rng_below(&rng, 256);
        sqlite3 *other = open_memory();
        run(other, "CREATE TABLE kept(a); INSERT INTO kept VALUES(9)");
        if (take(other, "main", image, bytes, 0) != SQLITE_OK) {
            refused++;
            assert_int_equal(number(other, "SELECT a FROM kept"), 9);
        } else {
            assert_int_equal(number(other, "SELECT count(*) FROM sqlite_schema") >= 0, 1);
        }
        assert_int_equal(sqlite3_close(other), SQLITE_OK);
        image[at] = was;
    }
    assert_true(refused > 20);
    sqlite3_free(image);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_goes_round), cmocka_unit_test(empty_and_open),
        cmocka_unit_test(flags_and_refusals), cmocka_unit_test(functions_of_the_program),
        cmocka_unit_test(damaged_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
