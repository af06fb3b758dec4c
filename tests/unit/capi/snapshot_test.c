/*
 * snapshot_test.c -- sqlite3_snapshot: moments of a database in a file.
 *
 * Method: two connections and a third to another file; a moment is kept, the database goes on
 * (rows, schema, checkpoints), and whoever joins the moment reads what was there then.  Codes are
 * those that SQLite gives.
 */
#include "capi_kit.h"

#include "base/base.h"

typedef struct Scene {
    char dir[KIT_FOLDER_BYTES];
    char path[64], other[64];
} Scene;

static int
scene_setup(void **state)
{
    Scene *scene = calloc(1, sizeof(*scene));
    folder_make(scene->dir);
    snprintf(scene->path, sizeof(scene->path), "%s/a.db", scene->dir);
    snprintf(scene->other, sizeof(scene->other), "%s/b.db", scene->dir);
    *state = scene;
    return 0;
}

static int
scene_teardown(void **state)
{
    Scene *scene = *state;
    folder_drop(scene->dir);
    free(scene);
    return 0;
}

static sqlite3 *
open_extended(const char *path)
{
    sqlite3 *db = open_at(path);
    sqlite3_extended_result_codes(db, 1);
    return db;
}

static sqlite3_snapshot *
moment_of(sqlite3 *db)
{
    sqlite3_snapshot *snapshot;
    run(db, "BEGIN");
    assert_int_equal(sqlite3_snapshot_get(db, "main", &snapshot), SQLITE_OK);
    run(db, "COMMIT");
    return snapshot;
}

static void
moments_are_kept(void **state)
{
    Scene *scene = *state;
    sqlite3 *a = open_extended(scene->path), *b = open_extended(scene->path);
    run(a, "CREATE TABLE t(x); INSERT INTO t VALUES(1)");
    sqlite3_snapshot *first = moment_of(a);
    run(b, "INSERT INTO t VALUES(2)");
    sqlite3_snapshot *second = moment_of(a), *same = moment_of(b);
    assert_true(sqlite3_snapshot_cmp(first, second) < 0);
    assert_true(sqlite3_snapshot_cmp(second, first) > 0);
    assert_int_equal(sqlite3_snapshot_cmp(second, same), 0);
    run(b, "INSERT INTO t VALUES(3); CREATE TABLE u(y); DELETE FROM t WHERE x = 1");
    run(b, "PRAGMA wal_checkpoint");

    run(a, "BEGIN");
    assert_int_equal(sqlite3_snapshot_open(a, "main", first), SQLITE_OK);
    assert_int_equal(number(a, "SELECT sum(x) FROM t"), 1);
    assert_int_equal(sqlite3_exec(a, "SELECT * FROM u", NULL, NULL, NULL), SQLITE_ERROR);
    assert_int_equal(sqlite3_snapshot_open(a, "main", second), SQLITE_OK);
    assert_int_equal(number(a, "SELECT sum(x) FROM t"), 3);
    assert_int_equal(sqlite3_exec(a, "INSERT INTO t VALUES(9)", NULL, NULL, NULL),
                     SQLITE_BUSY_SNAPSHOT);
    run(a, "ROLLBACK");
    assert_int_equal(number(a, "SELECT sum(x) FROM t"), 5);
    assert_int_equal(number(a, "SELECT count(*) FROM u"), 0);

    /* One that has read already; and a snapshot outlives who took it. */
    run(a, "BEGIN");
    assert_int_equal(number(a, "SELECT sum(x) FROM t"), 5);
    assert_int_equal(sqlite3_close(b), SQLITE_OK);
    assert_int_equal(sqlite3_snapshot_open(a, "main", same), SQLITE_OK);
    assert_int_equal(number(a, "SELECT sum(x) FROM t"), 3);
    run(a, "COMMIT; DROP TABLE t");
    run(a, "BEGIN");
    assert_int_equal(sqlite3_snapshot_open(a, NULL, first), SQLITE_OK);
    assert_int_equal(number(a, "SELECT sum(x) FROM t"), 1);
    run(a, "COMMIT");
    sqlite3_snapshot_free(first);
    sqlite3_snapshot_free(second);
    assert_int_equal(sqlite3_close(a), SQLITE_OK);
    sqlite3_snapshot_free(same);
    sqlite3_snapshot_free(NULL);
}

static void
what_cannot_be_is_refused(void **state)
{
    Scene *scene = *state;
    sqlite3 *a = open_extended(scene->path), *other = open_extended(scene->other),
            *memory = open_extended(":memory:");
    sqlite3_snapshot *snapshot, *none;
    sqlite3_stmt *stmt;
    run(a, "CREATE TABLE t(x); INSERT INTO t VALUES(1)");
    assert_int_equal(sqlite3_snapshot_get(a, "main", &none), SQLITE_ERROR); /* Autocommit. */
    snapshot = moment_of(a);
    assert_int_equal(sqlite3_snapshot_open(a, "main", snapshot), SQLITE_ERROR);
    run(a, "BEGIN");
    assert_int_equal(sqlite3_snapshot_get(a, "nosuch", &none), SQLITE_ERROR);
    assert_int_equal(sqlite3_snapshot_get(a, "temp", &none), SQLITE_ERROR);
    assert_int_equal(sqlite3_snapshot_open(a, "nosuch", snapshot), SQLITE_ERROR);
    assert_int_equal(sqlite3_snapshot_open(a, "temp", snapshot), SQLITE_ERROR);
    assert_int_equal(sqlite3_prepare_v2(a, "SELECT x FROM t", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_snapshot_open(a, "main", snapshot), SQLITE_ERROR);
    assert_int_equal(sqlite3_snapshot_get(a, "main", &none), SQLITE_OK);
    sqlite3_snapshot_free(none);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_snapshot_recover(a, "main"), SQLITE_ERROR); /* It is being read. */
    run(a, "COMMIT; BEGIN IMMEDIATE");
    assert_int_equal(sqlite3_snapshot_get(a, "main", &none), SQLITE_ERROR);
    assert_int_equal(sqlite3_snapshot_open(a, "main", snapshot), SQLITE_ERROR);
    run(a, "ROLLBACK");
    assert_int_equal(sqlite3_snapshot_recover(a, "main"), SQLITE_OK);
    assert_int_equal(sqlite3_snapshot_recover(a, "temp"), SQLITE_ERROR);
    assert_int_equal(sqlite3_snapshot_recover(memory, "main"), SQLITE_ERROR);
    run(memory, "BEGIN");
    assert_int_equal(sqlite3_snapshot_get(memory, "main", &none), SQLITE_ERROR);
    assert_null(none);
    run(other, "CREATE TABLE z(a); BEGIN");
    assert_int_equal(sqlite3_snapshot_open(other, "main", snapshot), SQLITE_ERROR_SNAPSHOT);
    assert_int_equal(number(other, "SELECT count(*) FROM z"), 0);
    assert_int_equal(sqlite3_snapshot_get(NULL, "main", &none), SQLITE_MISUSE);
    assert_int_equal(sqlite3_snapshot_open(a, "main", NULL), SQLITE_MISUSE);
    sqlite3_snapshot_free(snapshot);
    assert_int_equal(sqlite3_close(a), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(sqlite3_close(memory), SQLITE_OK);
}

int
main(void)
{
#define scene_test(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        scene_test(moments_are_kept),
        scene_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
