/*
 * backup_test.c -- sqlite3_backup: copies in steps while others read and write.
 *
 * Method: databases in a directory of their own and in memory; every count, code and visible row
 * between the steps is stated.  Then a whole backup with every file call failing from the nth on,
 * as a power cut would have it: opened again, the target holds its old content or the new one.
 */
#include "capi_kit.h"

#include <unistd.h>

#include "base/base.h"
#include "rt/fault.h"

#define PAGE_ROWS 64

typedef struct Scene {
    char dir[KIT_FOLDER_BYTES];
    char from[64], to[64];
} Scene;

static int
scene_setup(void **state)
{
    Scene *scene = calloc(1, sizeof(*scene));
    folder_make(scene->dir);
    snprintf(scene->from, sizeof(scene->from), "%s/from.db", scene->dir);
    snprintf(scene->to, sizeof(scene->to), "%s/to.db", scene->dir);
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

static void
shut(sqlite3 *db)
{
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void
fill(sqlite3 *db)
{
    run(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b);"
            "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x + 1 FROM c WHERE x < 1000)"
            " INSERT INTO t SELECT x, printf('%0300d', x) FROM c;"
            "CREATE INDEX i ON t(b); CREATE VIEW v AS SELECT a FROM t;"
            "CREATE TABLE w(k PRIMARY KEY, z) WITHOUT ROWID; INSERT INTO w VALUES('one', 1);"
            "CREATE TABLE q(x INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO q VALUES(77);"
            "CREATE TRIGGER g AFTER INSERT ON w BEGIN INSERT INTO q VALUES(NULL); END;"
            "PRAGMA user_version = 12; PRAGMA application_id = 34");
}

static void
expect_filled(sqlite3 *db, const char *schema, sqlite3_int64 rows)
{
    char sql[200];
    const char *all = strcmp(schema, "temp") == 0 ? "sqlite_temp_schema" : "sqlite_schema";
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s.t", schema);
    assert_int_equal(number(db, sql), rows);
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s.%s", schema, all);
    assert_int_equal(number(db, sql), 7);
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s.t WHERE b = printf('%%0300d', a)", schema);
    assert_int_equal(number(db, sql), rows);
    snprintf(sql, sizeof(sql), "PRAGMA %s.user_version", schema);
    assert_int_equal(number(db, sql), 12);
    snprintf(sql, sizeof(sql), "SELECT seq FROM %s.sqlite_sequence", schema);
    assert_int_equal(number(db, sql), 77);
}

static sqlite3_backup *
begin(sqlite3 *to, const char *to_name, sqlite3 *from, const char *from_name)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, to_name, from, from_name);
    if (backup == NULL) fail_msg("%s", sqlite3_errmsg(to));
    assert_int_equal(sqlite3_backup_remaining(backup), 0);
    assert_int_equal(sqlite3_backup_pagecount(backup), 0);
    return backup;
}

/* One step and how many pages are done after it. */
#define steps(backup, pages, code, did)                                                       \
    do {                                                                                      \
        assert_int_equal(sqlite3_backup_step(backup, pages), code);                           \
        assert_int_equal(sqlite3_backup_pagecount(backup) - sqlite3_backup_remaining(backup), \
                         did);                                                                \
    } while (0)

/* The schema; t and its index; w; q and sqlite_sequence. */
#define PAGES (1 + 2 * (1000 / PAGE_ROWS + 1) + 3)

static void
every_kind_of_database_is_copied(void **state)
{
    Scene *scene = *state;
    sqlite3 *file = open_at(scene->from), *memory = open_at(":memory:");
    sqlite3 *to_file = open_at(scene->to), *to_memory = open_at(":memory:");
    fill(file);
    fill(memory);
    run(to_file, "CREATE TABLE t(old); CREATE TABLE other(x); INSERT INTO other VALUES(1)");
    struct {
        sqlite3 *to;
        const char *to_name;
        sqlite3 *from;
    } pairs[] = {{to_file, "main", file},   {to_file, "main", memory},
                 {to_memory, "main", file}, {to_memory, "temp", memory},
                 {to_file, "temp", file},   {to_memory, "main", memory}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        sqlite3_backup *backup = begin(pairs[i].to, pairs[i].to_name, pairs[i].from, "main");
        int code = SQLITE_OK, count = 0, left = PAGES;
        for (; code == SQLITE_OK; count++) {
            code = sqlite3_backup_step(backup, 3);
            left -= MIN_OF(left, 3);
            assert_int_equal(sqlite3_backup_remaining(backup), left);
            assert_int_equal(sqlite3_backup_pagecount(backup), PAGES);
        }
        assert_int_equal(code, SQLITE_DONE);
        assert_int_equal(count, (PAGES + 2) / 3);
        assert_int_equal(sqlite3_backup_step(backup, 1), SQLITE_DONE);
        assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
        expect_filled(pairs[i].to, pairs[i].to_name, 1000);
    }
    /* The copy is a database of its own, to be written to. */
    run(to_file, "INSERT INTO main.w VALUES('two', 2)");
    assert_int_equal(number(to_file, "SELECT max(x) FROM main.q"), 78);
    assert_int_equal(number(file, "SELECT count(*) FROM w"), 1);
    /* A temp database that was never used is empty. */
    sqlite3_backup *backup = begin(to_memory, "main", file, "temp");
    assert_int_equal(sqlite3_backup_step(backup, 5), SQLITE_DONE);
    assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
    assert_int_equal(number(to_memory, "SELECT count(*) FROM main.sqlite_schema"), 0);
    shut(file);
    shut(memory);
    shut(to_file);
    shut(to_memory);
}

static void
the_source_goes_on(void **state)
{
    Scene *scene = *state;
    sqlite3 *from = open_at(scene->from), *other = open_at(scene->from);
    sqlite3 *to = open_at(scene->to);
    fill(from);
    sqlite3_backup *backup = begin(to, "main", from, "main");
    steps(backup, 0, SQLITE_OK, 0);
    steps(backup, 5, SQLITE_OK, 5);
    /* Another connection's change starts it over; the backup's own connection's does not. */
    run(other, "INSERT INTO t(b) VALUES('other'); DELETE FROM t WHERE b = 'other'");
    steps(backup, 5, SQLITE_OK, 5);
    run(from, "UPDATE t SET b = 'own' WHERE a = 1");
    steps(backup, 5, SQLITE_OK, 10);
    run(from, "UPDATE t SET b = printf('%0300d', a) WHERE a = 1; DELETE FROM t WHERE a = 1000");
    steps(backup, 5, SQLITE_OK, 15);
    run(other, "DELETE FROM t WHERE a = 999");
    run(from, "DELETE FROM t WHERE a = 998");
    steps(backup, 5, SQLITE_OK, 5);
    run(from, "DELETE FROM t WHERE a = 997");
    steps(backup, 5, SQLITE_OK, 10);
    /* What is not committed keeps it waiting. */
    run(from, "BEGIN; DELETE FROM t");
    assert_int_equal(sqlite3_backup_step(backup, -1), SQLITE_BUSY);
    run(from, "ROLLBACK");
    run(other, "BEGIN IMMEDIATE; DELETE FROM t"); /* Nobody else's business. */
    assert_int_equal(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    assert_int_equal(sqlite3_backup_remaining(backup), 0);
    run(other, "COMMIT");
    assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
    expect_filled(to, "main", 996);
    /* A connection that writes before every step. */
    backup = begin(to, "main", from, "main");
    int count = 0;
    for (; sqlite3_backup_step(backup, 1) == SQLITE_OK; count++)
        run(from, "INSERT INTO t(b) VALUES('x')");
    assert_int_equal(count + 1, sqlite3_backup_pagecount(backup) - count / PAGE_ROWS * 2);
    assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
    assert_int_equal(number(to, "SELECT count(*) FROM t"), count);
    shut(from);
    shut(other);
    shut(to);
}

static int
count_call(void *arg, int tries)
{
    assert_int_equal(tries, *(int *)arg);
    return ++*(int *)arg < 3;
}

static void
the_target_keeps_its_content_until_the_end(void **state)
{
    Scene *scene = *state;
    sqlite3 *from = open_at(scene->from), *to = open_at(scene->to), *reader = open_at(scene->to);
    fill(from);
    run(to, "CREATE TABLE old(x); INSERT INTO old VALUES(5)");
    sqlite3_backup *backup = begin(to, "main", from, "main");
    steps(backup, 7, SQLITE_OK, 7);
    assert_int_equal(number(reader, "SELECT x FROM old"), 5);
    assert_int_equal(sqlite3_exec(reader, "INSERT INTO old VALUES(6)", NULL, NULL, NULL),
                     SQLITE_BUSY);
    assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK); /* Given up. */
    run(reader, "INSERT INTO old VALUES(6)");
    /* Another who writes keeps it waiting; the busy handler is asked. */
    int calls = 0;
    run(reader, "BEGIN IMMEDIATE");
    sqlite3_busy_handler(to, count_call, &calls);
    backup = begin(to, "main", from, "main");
    steps(backup, -1, SQLITE_BUSY, 0);
    assert_int_equal(calls, 3);
    assert_int_equal(sqlite3_errcode(to), SQLITE_BUSY);
    assert_int_equal(sqlite3_backup_finish(backup), SQLITE_BUSY);
    sqlite3_busy_handler(to, NULL, NULL);
    backup = begin(to, "main", from, "main");
    steps(backup, 4, SQLITE_BUSY, 0);
    run(reader, "COMMIT");
    steps(backup, 4, SQLITE_OK, 4);
    assert_int_equal(sqlite3_close(to), SQLITE_BUSY);
    /* An open reader reads on in what it began with. */
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(reader, "SELECT x FROM old", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(stmt, 0), 6);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
    expect_filled(reader, "main", 1000);
    expect_filled(to, "main", 1000);
    shut(from);
    shut(to);
    shut(reader);
}

static void
what_cannot_be_is_refused(void **state)
{
    Scene *scene = *state;
    sqlite3 *from = open_at(scene->from), *to = open_at(":memory:"), *read_only;
    fill(from);
    assert_null(sqlite3_backup_init(to, "main", from, "nowhere"));
    assert_string_equal(sqlite3_errmsg(to), "unknown database nowhere");
    assert_null(sqlite3_backup_init(to, "nowhere", from, "main"));
    assert_null(sqlite3_backup_init(to, "main", to, "temp"));
    run(to, "BEGIN");
    assert_null(sqlite3_backup_init(to, "main", from, "main"));
    assert_string_equal(sqlite3_errmsg(to), "destination database is in use");
    run(to, "ROLLBACK");
    int flags = SQLITE_OPEN_READONLY;
    assert_int_equal(sqlite3_open_v2(scene->from, &read_only, flags, NULL), SQLITE_OK);
    run(to, "CREATE TABLE mine(x)");
    sqlite3_backup *backup = begin(read_only, "main", to, "main");
    assert_int_equal(sqlite3_backup_step(backup, 1), SQLITE_READONLY);
    assert_int_equal(sqlite3_backup_step(backup, 1), SQLITE_READONLY);
    assert_int_equal(sqlite3_backup_finish(backup), SQLITE_READONLY);
    expect_filled(from, "main", 1000);
    shut(read_only);
    shut(from);
    shut(to);
}

/* ---- power cuts ---- */

/* From nothing to everything: the target is opened, copied into, closed. */
static void
back_up_under_faults(Scene *scene, sqlite3 *from)
{
    sqlite3 *to;
    if (sqlite3_open(scene->to, &to) == SQLITE_OK) {
        sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
        while (backup != NULL && sqlite3_backup_step(backup, 9) == SQLITE_OK)
            continue;
        (void)sqlite3_backup_finish(backup);
    }
    assert_int_equal(sqlite3_close(to), SQLITE_OK);
}

static void
expect_old_or_new(Scene *scene, u64 nth, int *new_io)
{
    sqlite3 *to = open_at(scene->to);
    sqlite3_int64 tables = number(to, "SELECT count(*) FROM sqlite_schema");
    if (tables == 1) {
        assert_int_equal(number(to, "SELECT sum(x) FROM old"), 11);
        if (*new_io > 0) fail_msg("call %d: old content after new one was there", (int)nth);
    } else {
        expect_filled(to, "main", 1000);
        ++*new_io;
    }
    shut(to);
}

static void
a_power_cut_leaves_the_old_or_the_new(void **state)
{
    Scene *scene = *state;
    char command[200];
    int news = 0;
    bool fired = true;
    sqlite3 *from = open_at(":memory:");
    fill(from);
    u64 nth = 1;
    for (; fired; nth++) {
        snprintf(command, sizeof(command), "rm -f %s*", scene->to);
        assert_int_equal(system(command), 0);
        sqlite3 *to = open_at(scene->to);
        run(to, "CREATE TABLE old(x); INSERT INTO old VALUES(5), (6)");
        shut(to);
        rt_fault_arm_onwards(nth, 5 /* EIO */);
        back_up_under_faults(scene, from);
        fired = rt_fault_fired();
        rt_fault_arm(0, 0);
        expect_old_or_new(scene, nth, &news);
    }
    assert_true(nth > 10 && news >= 1);
    shut(from);
}

int
main(void)
{
#define scene_test(name) cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)
    const struct CMUnitTest tests[] = {
        scene_test(every_kind_of_database_is_copied),
        scene_test(the_source_goes_on),
        scene_test(the_target_keeps_its_content_until_the_end),
        scene_test(what_cannot_be_is_refused),
        scene_test(a_power_cut_leaves_the_old_or_the_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
