/*
 * api_test.c -- the sqlite3 API: values both ways, host functions that call back, hooks, blob
 * handles, misuse.
 *
 * Method: what SQLite's documentation promises, call by call, on an in-memory database.
 */
#include "capi_kit.h"

#include <unistd.h>

#include "base/base.h"

static void
a_mutex_is_had_when_asked_for(void **state)
{
    (void)state;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    struct {
        int config, flags;
        bool has;
    } cases[] = {
        {SQLITE_CONFIG_SERIALIZED, 0, true},
        {SQLITE_CONFIG_SERIALIZED, SQLITE_OPEN_NOMUTEX, false},
        {SQLITE_CONFIG_MULTITHREAD, 0, false},
        {SQLITE_CONFIG_MULTITHREAD, SQLITE_OPEN_FULLMUTEX, true},
        {SQLITE_CONFIG_SINGLETHREAD, SQLITE_OPEN_FULLMUTEX, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        sqlite3 *db;
        assert_int_equal(sqlite3_config(cases[i].config), SQLITE_OK);
        assert_int_equal(sqlite3_open_v2(":memory:", &db, flags | cases[i].flags, NULL), SQLITE_OK);
        assert_true((sqlite3_db_mutex(db) != NULL) == cases[i].has);
        sqlite3_close(db);
    }
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_SERIALIZED), SQLITE_OK);
}

static void
names_are_uris_unless_configured_otherwise(void **state)
{
    (void)state;
    sqlite3 *db;
    assert_int_equal(sqlite3_open("file:name?mode=memory", &db), SQLITE_OK);
    assert_string_equal(sqlite3_db_filename(db, "main"), "");
    sqlite3_close(db);
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_URI, 0), SQLITE_OK);
    assert_int_not_equal(sqlite3_open("file:no/such/folder?mode=memory", &db), SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_URI, 1), SQLITE_OK);
}

/* Each name has a transaction of its own, and only one of them writes at a time. */
static void
attached_names_are_uris_too(void **state)
{
    (void)state;
    char folder[KIT_FOLDER_BYTES], path[100], text[200];
    sqlite3 *db = open_memory(), *other;
    folder_make(folder);
    run(db, "ATTACH 'file:attached?mode=memory' AS a; CREATE TABLE a.t(x)");
    assert_int_equal(access("file:attached?mode=memory", F_OK), -1);
    assert_int_equal(access("attached", F_OK), -1);
    run(db, "ATTACH 'file:attached?mode=memory' AS b"); /* Another one. */
    assert_int_equal(number(db, "SELECT count(*) FROM b.sqlite_schema"), 0);

    snprintf(path, sizeof(path), "%s/with a blank", folder);
    snprintf(text, sizeof(text), "ATTACH 'file:%s/with%%20a%%20blank?mode=rw' AS c", folder);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_CANTOPEN);
    snprintf(text, sizeof(text), "ATTACH 'file:%s/with%%20a%%20blank?mode=rwc' AS c", folder);
    run(db, text);
    run(db, "CREATE TABLE c.t(x); DETACH c");
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(sqlite3_exec(db, "ATTACH 'file:x?mode=odd' AS d", NULL, NULL, NULL),
                     SQLITE_ERROR);
    assert_string_equal(sqlite3_errmsg(db), "no such access mode: odd");

    assert_int_equal(sqlite3_open_v2(path, &other, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, text, NULL, NULL, NULL), SQLITE_ERROR);
    assert_string_equal(sqlite3_errmsg(other), "access mode not allowed: rwc");
    sqlite3_close(other);

    snprintf(text, sizeof(text), "VACUUM INTO 'file:%s/a%%20copy'", folder);
    run(db, text);
    snprintf(path, sizeof(path), "%s/a copy", folder);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(sqlite3_exec(db, "VACUUM INTO 'file:x?cache=odd'", NULL, NULL, NULL),
                     SQLITE_ERROR);
    assert_string_equal(sqlite3_errmsg(db), "no such cache mode: odd");
    sqlite3_close(db);
    folder_drop(folder);
}

static void
a_database_is_attached_by_two_names(void **state)
{
    (void)state;
    char dir[KIT_FOLDER_BYTES], command[200];
    folder_make(dir);
    sqlite3 *db = open_memory();
    snprintf(command, sizeof(command), "ATTACH '%s/db' AS a; ATTACH '%s/db' AS b", dir, dir);
    run(db, command);
    run(db,
        "CREATE TABLE a.t(x); INSERT INTO b.t VALUES (1); INSERT INTO a.t SELECT x + 1 FROM b.t");
    assert_int_equal(number(db, "SELECT count(*) FROM a.t, b.t"), 4);
    run(db, "BEGIN; INSERT INTO a.t VALUES (3)");
    assert_int_equal(number(db, "SELECT count(*) FROM a.t"), 3);
    assert_int_equal(number(db, "SELECT count(*) FROM b.t"), 2);
    assert_int_equal(sqlite3_exec(db, "INSERT INTO b.t VALUES (4)", NULL, NULL, NULL), SQLITE_BUSY);
    assert_string_equal(sqlite3_errmsg(db), "database is locked");
    run(db, "COMMIT; INSERT INTO b.t VALUES (5); DETACH a");
    assert_int_equal(number(db, "SELECT sum(x) FROM b.t"), 11);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    folder_drop(dir);
}

static void
compile_options_are_one_list(void **state)
{
    (void)state;
    sqlite3 *db = open_memory();
    assert_true(sqlite3_compileoption_used("SQLITE_THREADSAFE"));
    assert_true(number(db, "SELECT count(*) FROM pragma_compile_options") ==
                number(db,
                       "WITH RECURSIVE n(i) AS (VALUES(0) UNION ALL SELECT i + 1 FROM n LIMIT 99)"
                       " SELECT count(sqlite_compileoption_get(i)) FROM n"));
    sqlite3_close(db);
}

static void
values_go_both_ways(void **state)
{
    (void)state;
    sqlite3 *db = open_memory();
    sqlite3_stmt *stmt;
    const char *tail;
    const char *sql = "SELECT ?1, ?2, ?3, ?4, ?5, :name; SELECT 2";
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, &tail), SQLITE_OK);
    assert_string_equal(tail, " SELECT 2");
    assert_int_equal(sqlite3_bind_parameter_count(stmt), 6);
    assert_int_equal(sqlite3_bind_parameter_index(stmt, ":name"), 6);
    sqlite3_bind_int64(stmt, 1, 9007199254740993);
    sqlite3_bind_double(stmt, 2, 0.5);
    sqlite3_bind_text(stmt, 3, "h\xC3\xA4", -1, SQLITE_TRANSIENT);
    sqlite3_bind_blob(stmt, 4, "\0x", 2, SQLITE_TRANSIENT);
    assert_int_equal(sqlite3_bind_int(stmt, 7, 1), SQLITE_RANGE);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_true(sqlite3_column_int64(stmt, 0) == 9007199254740993);
    assert_int_equal(sqlite3_column_type(stmt, 1), SQLITE_FLOAT);
    assert_string_equal(sqlite3_column_text(stmt, 1), "0.5");
    assert_int_equal(sqlite3_column_type(stmt, 1), SQLITE_FLOAT);
    assert_string_equal(sqlite3_column_text(stmt, 2), "h\xC3\xA4");
    assert_int_equal(sqlite3_column_bytes16(stmt, 2), 4);
    assert_int_equal(sqlite3_column_bytes(stmt, 3), 2);
    assert_memory_equal(sqlite3_column_blob(stmt, 3), "\0x", 2);
    assert_int_equal(sqlite3_column_type(stmt, 4), SQLITE_NULL);
    assert_int_equal(sqlite3_bind_int(stmt, 1, 1), SQLITE_MISUSE);
    char *expanded = sqlite3_expanded_sql(stmt);
    assert_string_equal(expanded,
                        "SELECT 9007199254740993, 0.5, 'h\xC3\xA4', x'0078', NULL, NULL;");
    sqlite3_free(expanded);
    sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* `before`, blanks up to `width` bytes, `after`; freed by the caller. */
static char *
padded(const char *before, size_t width, const char *after)
{
    size_t head = strlen(before);
    assert_true(head < width);
    char *text = (char *)malloc(width + strlen(after) + 1);
    assert_non_null(text);
    memset(text, ' ', width);
    memcpy(text, before, head);
    strcpy(text + width, after);
    return text;
}

static void
check_tail(sqlite3 *db, char *text, const char *rest)
{
    sqlite3_stmt *stmt;
    const char *tail;
    for (int bytes = -1; bytes <= (int)strlen(text) + 1; bytes += (int)strlen(text) + 1) {
        assert_int_equal(sqlite3_prepare_v2(db, text, bytes, &stmt, &tail), SQLITE_OK);
        assert_string_equal(tail, rest);
        assert_true(strlen(sqlite3_sql(stmt)) == strlen(text) - strlen(rest));
        sqlite3_finalize(stmt);
    }
    free(text);
}

/* A text is looked at piece by piece, 4,096 bytes first: wherever the piece ends. */
static void
scripts_are_prepared_piece_by_piece(void **state)
{
    (void)state;
    sqlite3 *db = open_memory();
    const size_t near[] = {4096, 32768};
    run(db, "CREATE TABLE t(a)");
    for (size_t i = 0; i < COUNT_OF(near); i++) {
        for (size_t width = near[i] - 60; width < near[i] + 4; width++) {
            check_tail(db, padded("SELECT 1", width, "+1, 'a;b';"), "");
            check_tail(db, padded("SELECT 1", width, "+1 /* ; */;SELECT 2"), "SELECT 2");
            check_tail(db, padded("SELECT 1", width, "-- ;\n;;SELECT 2"), ";SELECT 2");
            check_tail(db, padded("--", width, ";\nSELECT 3 ; SELECT 2"), " SELECT 2");
            check_tail(db,
                       padded("CREATE TRIGGER r AFTER INSERT ON t BEGIN", width,
                              "SELECT 1; SELECT 2; END; SELECT 2"),
                       " SELECT 2");
            sqlite3_stmt *stmt;
            char *text = padded("SELECT 1", width, " FROM nowhere other wrong; SELECT 2");
            assert_int_equal(sqlite3_prepare_v2(db, text, -1, &stmt, NULL), SQLITE_ERROR);
            assert_string_equal(sqlite3_errmsg(db), "near \"wrong\": syntax error");
            assert_int_equal(sqlite3_error_offset(db), width + 20);
            free(text);
        }
    }
    sqlite3_close(db);
}

static void
insert_inside(sqlite3_context *context, int count, sqlite3_value **value)
{
    sqlite3 *db = sqlite3_context_db_handle(context);
    char *sql = sqlite3_mprintf("INSERT INTO log VALUES(%Q)", sqlite3_value_text(value[0]));
    assert_int_equal(count, 1);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_free(sql);
    sqlite3_result_int(context, 7);
}

static void
fails(sqlite3_context *context, int count, sqlite3_value **value)
{
    (void)count;
    (void)value;
    sqlite3_result_error(context, "no luck", -1);
}

static void
host_functions_call_back_and_fail(void **state)
{
    (void)state;
    sqlite3 *db = open_memory();
    run(db, "CREATE TABLE log(x); CREATE TABLE t(a); INSERT INTO t VALUES('p'),('q')");
    sqlite3_create_function(db, "inside", 1, SQLITE_UTF8, NULL, insert_inside, NULL, NULL);
    sqlite3_create_function(db, "fails", 0, SQLITE_UTF8, NULL, fails, NULL, NULL);
    assert_int_equal(number(db, "SELECT sum(inside(a)) FROM t"), 14);
    assert_int_equal(number(db, "SELECT count(*) FROM log"), 2);
    assert_int_equal(sqlite3_exec(db, "SELECT fails()", NULL, NULL, NULL), SQLITE_ERROR);
    assert_string_equal(sqlite3_errmsg(db), "no luck");
    sqlite3_create_function(db, "fails", 0, SQLITE_UTF8, NULL, NULL, NULL, NULL);
    assert_int_equal(sqlite3_exec(db, "SELECT fails()", NULL, NULL, NULL), SQLITE_ERROR);
    assert_string_equal(sqlite3_errmsg(db), "no such function: fails");
    sqlite3_close(db);
}

typedef struct Seen {
    int commits, rollbacks, updates, asks, statements, refuse_commit, deny;
} Seen;

static int
on_commit(void *arg)
{
    Seen *seen = arg;
    seen->commits++;
    return seen->refuse_commit;
}

static void
on_rollback(void *arg)
{
    ((Seen *)arg)->rollbacks++;
}

static void
on_update(void *arg, int action, const char *database, const char *table, sqlite3_int64 rowid)
{
    assert_int_equal(action, SQLITE_INSERT);
    assert_string_equal(database, "main");
    assert_string_equal(table, "t");
    assert_int_equal(rowid, 1);
    ((Seen *)arg)->updates++;
}

static int
on_authorize(void *arg, int action, const char *first, const char *second, const char *database,
             const char *inner)
{
    Seen *seen = arg;
    (void)second;
    (void)database;
    (void)inner;
    seen->asks++;
    if (seen->deny && action == SQLITE_READ && strcmp(first, "t") == 0) return SQLITE_DENY;
    return SQLITE_OK;
}

static int
on_trace(unsigned what, void *arg, void *stmt, void *sql)
{
    assert_int_equal(what, SQLITE_TRACE_STMT);
    assert_non_null(stmt);
    assert_non_null(sql);
    ((Seen *)arg)->statements++;
    return 0;
}

static int
stop(void *arg)
{
    (void)arg;
    return 1;
}

static void
hooks_are_called_and_may_refuse(void **state)
{
    (void)state;
    Seen seen = {0};
    sqlite3 *db = open_memory();
    run(db, "CREATE TABLE t(a)");
    sqlite3_commit_hook(db, on_commit, &seen);
    sqlite3_rollback_hook(db, on_rollback, &seen);
    sqlite3_update_hook(db, on_update, &seen);
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT, on_trace, &seen);
    run(db, "INSERT INTO t VALUES(1)");
    assert_int_equal(seen.commits, 1);
    assert_int_equal(seen.updates, 1);
    assert_int_equal(seen.statements, 1);
    sqlite3_update_hook(db, NULL, NULL);
    seen.refuse_commit = 1;
    assert_int_equal(sqlite3_exec(db, "INSERT INTO t VALUES(2)", NULL, NULL, NULL),
                     SQLITE_CONSTRAINT);
    assert_int_equal(sqlite3_extended_errcode(db), SQLITE_CONSTRAINT_COMMITHOOK);
    assert_int_equal(seen.rollbacks, 1);
    assert_int_equal(number(db, "SELECT count(*) FROM t"), 1);
    sqlite3_set_authorizer(db, on_authorize, &seen);
    assert_int_equal(number(db, "SELECT a FROM t"), 1);
    assert_true(seen.asks >= 2);
    seen.deny = 1;
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT a FROM t", -1, &stmt, NULL), SQLITE_AUTH);
    sqlite3_set_authorizer(db, NULL, NULL);
    sqlite3_progress_handler(db, 1, stop, NULL);
    assert_int_equal(sqlite3_exec(db, "SELECT 1", NULL, NULL, NULL), SQLITE_INTERRUPT);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    sqlite3_close(db);
}

static void
blob_handles_read_write_and_expire(void **state)
{
    (void)state;
    sqlite3 *db = open_memory();
    sqlite3_blob *blob;
    char bytes[4];
    run(db, "CREATE TABLE t(a, b); INSERT INTO t VALUES(x'00112233', 5)");
    assert_int_equal(sqlite3_blob_open(db, "main", "t", "b", 1, 0, &blob), SQLITE_ERROR);
    assert_string_equal(sqlite3_errmsg(db), "cannot open value of type integer");
    assert_int_equal(sqlite3_blob_open(db, "main", "t", "a", 9, 0, &blob), SQLITE_ERROR);
    assert_string_equal(sqlite3_errmsg(db), "no such rowid: 9");
    assert_int_equal(sqlite3_blob_open(db, "main", "t", "a", 1, 1, &blob), SQLITE_OK);
    assert_int_equal(sqlite3_blob_bytes(blob), 4);
    assert_int_equal(sqlite3_blob_write(blob, "\xff", 1, 2), SQLITE_OK);
    assert_int_equal(sqlite3_blob_read(blob, bytes, 4, 0), SQLITE_OK);
    assert_memory_equal(bytes, "\x00\x11\xff\x33", 4);
    assert_int_equal(sqlite3_blob_read(blob, bytes, 4, 1), SQLITE_ERROR);
    run(db, "UPDATE t SET a=x'aa'");
    assert_int_equal(sqlite3_blob_read(blob, bytes, 1, 0), SQLITE_ABORT);
    assert_int_equal(sqlite3_blob_close(blob), SQLITE_OK);
    sqlite3_close(db);
}

static void
misuse_is_answered_and_close_waits_for_statements(void **state)
{
    (void)state;
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_step(NULL), SQLITE_MISUSE);
    assert_int_equal(sqlite3_finalize(NULL), SQLITE_OK);
    assert_int_equal(sqlite3_column_count(NULL), 0);
    assert_int_equal(sqlite3_prepare_v2(NULL, "SELECT 1", -1, &stmt, NULL), SQLITE_MISUSE);
    sqlite3 *db = open_memory();
    assert_int_equal(sqlite3_prepare_v2(db, "  -- nothing", -1, &stmt, NULL), SQLITE_OK);
    assert_null(stmt);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT 1", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_BUSY);
    assert_int_equal(sqlite3_close_v2(db), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK); /* And with it the connection. */
}

/* A window function of the program: a sum that counts how often it is called. */
typedef struct Calls {
    int step, inverse, value, final, destroyed;
} Calls;

static void
window_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    ((Calls *)sqlite3_user_data(context))->step++;
    sqlite3_int64 *sum = sqlite3_aggregate_context(context, sizeof(*sum));
    if (sqlite3_value_type(argv[0]) == SQLITE_TEXT) {
        sqlite3_result_error(context, "no texts", -1);
    } else {
        *sum += sqlite3_value_int64(argv[0]);
    }
}

static void
window_inverse(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    ((Calls *)sqlite3_user_data(context))->inverse++;
    sqlite3_int64 *sum = sqlite3_aggregate_context(context, sizeof(*sum));
    *sum -= sqlite3_value_int64(argv[0]);
}

static void
window_value(sqlite3_context *context)
{
    ((Calls *)sqlite3_user_data(context))->value++;
    sqlite3_int64 *sum = sqlite3_aggregate_context(context, sizeof(*sum));
    sqlite3_result_int64(context, *sum);
}

static void
window_final(sqlite3_context *context)
{
    ((Calls *)sqlite3_user_data(context))->final++;
    sqlite3_int64 *sum = sqlite3_aggregate_context(context, 0);
    sqlite3_result_int64(context, sum == NULL ? -1 : *sum);
}

static void
window_destroy(void *app)
{
    ((Calls *)app)->destroyed++;
}

static void
check_calls(const Calls *calls, int step, int inverse, int value, int final)
{
    assert_int_equal(calls->step, step);
    assert_int_equal(calls->inverse, inverse);
    assert_int_equal(calls->value, value);
    assert_int_equal(calls->final, final);
}

static void
window_functions_of_the_program(void **state)
{
    (void)state;
    sqlite3 *db = open_memory();
    Calls calls = {0};
    run(db, "CREATE TABLE t(a); INSERT INTO t VALUES(1),(2),(3),(4)");
    assert_int_equal(sqlite3_create_window_function(db, "wsum", 1, SQLITE_UTF8, &calls, window_step,
                                                    window_final, window_value, window_inverse,
                                                    window_destroy),
                     SQLITE_OK);
    run(db, "CREATE TABLE r AS SELECT wsum(a) OVER (ORDER BY a ROWS 1 PRECEDING) AS s FROM t");
    assert_int_equal(number(db, "SELECT sum(s) FROM r"), 1 + 3 + 5 + 7);
    check_calls(&calls, 4, 2, 4, 1);

    /* Without OVER: xFinal gives the result. */
    calls = (Calls){0};
    assert_int_equal(number(db, "SELECT wsum(a) FROM t"), 10);
    assert_int_equal(number(db, "SELECT wsum(a) FROM t WHERE 0"), -1);
    check_calls(&calls, 4, 0, 0, 2);

    /* EXCLUDE computes each row from scratch. */
    calls = (Calls){0};
    assert_int_equal(number(db, "SELECT sum(s) FROM (SELECT wsum(a) OVER (ORDER BY a ROWS 1 "
                                "PRECEDING EXCLUDE CURRENT ROW) AS s FROM t WHERE a<3)"),
                     -1 + 1);
    check_calls(&calls, 1, 0, 0, 2);

    /* A statement that stops in the middle, by itself or by an error, ends its state. */
    calls = (Calls){0};
    assert_int_equal(number(db, "SELECT wsum(a) OVER (ORDER BY a) FROM t"), 1);
    assert_int_equal(calls.final, 1);
    calls = (Calls){0};
    run(db, "INSERT INTO t VALUES('x')");
    char *error = NULL;
    assert_int_equal(sqlite3_exec(db, "SELECT wsum(a) OVER () FROM t", NULL, NULL, &error),
                     SQLITE_ERROR);
    assert_string_equal(error, "no texts");
    sqlite3_free(error);
    assert_int_equal(calls.final, 1);

    /* Without xValue and xInverse it is an aggregate and nothing more; one of them is too little.
     */
    assert_int_equal(sqlite3_create_window_function(db, "half", 1, SQLITE_UTF8, &calls, window_step,
                                                    window_final, window_value, NULL, NULL),
                     SQLITE_MISUSE);
    assert_int_equal(sqlite3_create_window_function(db, "plain", 1, SQLITE_UTF8, &calls,
                                                    window_step, window_final, NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT plain(a) OVER () FROM t", -1, &stmt, NULL),
                     SQLITE_ERROR);
    assert_string_equal(sqlite3_errmsg(db), "plain() may not be used as a window function");
    assert_int_equal(calls.destroyed, 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(calls.destroyed, 1);
}

/* Steps through a query; before row number `at` another statement runs.  Rows as text. */
static void
walk(const char *sql, int at, const char *change, char *out, size_t out_bytes)
{
    sqlite3 *db = open_memory();
    sqlite3_stmt *stmt;
    size_t used = 0;
    run(db, "CREATE TABLE t(a INTEGER PRIMARY KEY, b); "
            "INSERT INTO t VALUES(1,10),(2,20),(3,30),(4,40),(5,50),(6,60)");
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    out[0] = 0;
    for (int row = 1; sqlite3_step(stmt) == SQLITE_ROW; row++) {
        sqlite3_snprintf((int)(out_bytes - used), out + used, "%lld:%lld ",
                         sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1));
        used += strlen(out + used);
        if (row == at) run(db, change);
    }
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A window reads only as far as the row at hand needs; what it has read stays.  The rows are those
   of SQLite. */
static void
windows_over_rows_that_change(void **state)
{
    static const struct {
        const char *sql;
        int at;
        const char *change, *rows;
    } cases[] = {
        {"SELECT a, row_number() OVER () FROM t", 1, "DELETE FROM t WHERE a<4",
         "1:1 2:2 4:3 5:4 6:5 "},
        {"SELECT a, row_number() OVER () FROM t", 2, "DELETE FROM t", "1:1 2:2 3:3 "},
        {"SELECT a, sum(b) OVER (ROWS 1 PRECEDING) FROM t", 3, "DELETE FROM t WHERE a=5",
         "1:10 2:30 3:50 4:70 6:100 "},
        {"SELECT a, count(*) OVER (PARTITION BY a) FROM t", 2, "DELETE FROM t", "1:1 2:1 3:1 "},
        {"SELECT a, sum(b) OVER () FROM t", 1, "DELETE FROM t",
         "1:210 2:210 3:210 4:210 5:210 6:210 "},
        {"SELECT a, max(b) OVER (ROWS 2 PRECEDING) FROM t", 2, "DELETE FROM t WHERE a=4",
         "1:10 2:20 3:30 5:50 6:60 "},
        {"SELECT a, count(*) OVER (ORDER BY b) FROM t", 2, "DELETE FROM t",
         "1:1 2:2 3:3 4:4 5:5 6:6 "},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char rows[200];
        walk(cases[i].sql, cases[i].at, cases[i].change, rows, sizeof(rows));
        assert_string_equal(rows, cases[i].rows);
    }
}

/* The limit and the pragma are one; what it refuses is SQLITE_NOMEM in SQLite's words. */
static void
the_hard_heap_limit(void **state)
{
    static const char sql[] = "SELECT length(hex(zeroblob(1000000)))";
    (void)state;
    sqlite3 *db = open_memory();
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_hard_heap_limit64(-1), 0);
    assert_int_equal(number(db, sql), 2000000);
    sqlite3_int64 before = sqlite3_memory_used();
    assert_int_equal(sqlite3_hard_heap_limit64(1 << 20), 0);
    assert_int_equal(sqlite3_soft_heap_limit64(-1), 1 << 20);
    assert_int_equal(number(db, "PRAGMA hard_heap_limit"), 1 << 20);
    assert_int_equal(number(db, "PRAGMA hard_heap_limit = 900000"), 900000);
    assert_int_equal(number(db, "PRAGMA hard_heap_limit = 1000000"), 900000); /* Only lower. */
    assert_int_equal(sqlite3_hard_heap_limit64(-1), 900000);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_NOMEM);
    assert_string_equal(sqlite3_errmsg(db), "out of memory");
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_NOMEM);
    assert_int_equal(number(db, "SELECT 1"), 1);
    /* Finalized statements are kept a while, but not what they held. */
    assert_true(sqlite3_memory_used() <= before + 100000);
    assert_int_equal(sqlite3_hard_heap_limit64(0), 900000);
    assert_int_equal(number(db, sql), 2000000);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    (void)sqlite3_soft_heap_limit64(0);
}

static int
counted(sqlite3_stmt *stmt, int what)
{
    return sqlite3_stmt_status(stmt, what, 1);
}

/* The numbers are those of SQLite 3.54 where both count the same thing. */
static void
statements_count_what_they_do(void **state)
{
    (void)state;
    sqlite3 *db = open_memory();
    sqlite3_stmt *stmt;
    run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE TABLE u(b);"
            "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM c WHERE i < 1000)"
            "INSERT INTO t SELECT i, 1000 - i FROM c; INSERT INTO u SELECT a FROM t");
    const char *sql = "SELECT id FROM t WHERE a % 2 = 0 ORDER BY a";
    for (int turn = 0; turn < 2; turn++) { /* The second time from the kept statement. */
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
        for (int what = SQLITE_STMTSTATUS_FULLSCAN_STEP; what <= SQLITE_STMTSTATUS_FILTER_HIT;
             what++)
            assert_int_equal(counted(stmt, what), 0);
        for (int i = 1; i <= 3; i++) {
            while (sqlite3_step(stmt) == SQLITE_ROW) {
            }
            assert_int_equal(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_SORT, 0), i);
            assert_int_equal(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_RUN, 0), i);
        }
        int rows = counted(stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP);
        assert_in_range(rows, 2997, 3000);
        assert_int_equal(counted(stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP), 0);
        assert_int_equal(counted(stmt, SQLITE_STMTSTATUS_SORT), 3);
        assert_true(counted(stmt, SQLITE_STMTSTATUS_VM_STEP) > 3000);
        assert_int_equal(counted(stmt, SQLITE_STMTSTATUS_VM_STEP), 0);
        assert_true(counted(stmt, SQLITE_STMTSTATUS_MEMUSED) > 0);
        sqlite3_finalize(stmt);
    }
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT a FROM t WHERE id = 5", -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_reset(stmt), SQLITE_OK);
    assert_int_equal(counted(stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP), 0);
    assert_int_equal(counted(stmt, SQLITE_STMTSTATUS_SORT), 0);
    assert_true(counted(stmt, SQLITE_STMTSTATUS_VM_STEP) > 0);
    run(db, "CREATE TABLE v(c)");
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_reset(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_REPREPARE, 0), 1);
    assert_int_equal(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_RUN, 0), 2);
    sqlite3_finalize(stmt);
    /* Without an index one side goes into a table of its own. */
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT count(*) FROM t, u WHERE a = b", -1, &stmt, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(counted(stmt, SQLITE_STMTSTATUS_AUTOINDEX), 1000);
    sqlite3_finalize(stmt);
    assert_int_equal(sqlite3_stmt_status(NULL, SQLITE_STMTSTATUS_SORT, 0), 0);
    sqlite3_close(db);
}

static void
what_only_reads(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        int read_only;
    } cases[] = {
        {"PRAGMA user_version", 1},
        {"PRAGMA user_version = 1", 0},
        {"PRAGMA application_id(7)", 0},
        {"PRAGMA schema_version = 4", 0},
        {"PRAGMA journal_mode", 0},
        {"PRAGMA wal_checkpoint", 0},
        {"PRAGMA incremental_vacuum", 0},
        {"PRAGMA cache_size = 5", 1},
        {"PRAGMA table_info(t)", 1},
        {"PRAGMA nonsense = 3", 1},
        {"BEGIN", 1},
        {"BEGIN IMMEDIATE", 0},
        {"SAVEPOINT s", 1},
        {"SELECT * FROM t", 1},
        {"DELETE FROM t", 0},
        {"EXPLAIN DELETE FROM t", 0},
        {"EXPLAIN SELECT 1", 1},
        {"EXPLAIN PRAGMA user_version = 3", 0},
        {"CREATE TABLE u(x)", 0},
        {"ATTACH ':memory:' AS a", 1},
        {"VACUUM", 0},
        {"ANALYZE", 0},
    };
    sqlite3 *db = open_memory();
    run(db, "CREATE TABLE t(a)");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        sqlite3_stmt *stmt;
        assert_int_equal(sqlite3_prepare_v2(db, cases[i].sql, -1, &stmt, NULL), SQLITE_OK);
        if (sqlite3_stmt_readonly(stmt) != cases[i].read_only) fail_msg("%s", cases[i].sql);
        assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    }
    assert_int_equal(number(db, "PRAGMA user_version"), 0); /* Prepared only. */
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void
normalized_texts(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"select   1", "SELECT?;"},
        {"SELECT Aa,'x',x'00',1.5e3,-7,\"c d\" From t1 where b in (1,2,3)",
         "SELECT aa,?,?,?,-?,\"c d\"FROM t1 WHERE b IN(?,?,?);"},
        {"select * from T1 where b in(?,?,?) and Aa=:Foo and b=@x or b=?5",
         "SELECT*FROM t1 WHERE b IN(?,?,?)AND aa=?AND b=?OR b=?;"},
        {"select * from t1 where b in (select 1) ;  ", "SELECT*FROM t1 WHERE b IN(SELECT?);"},
        {"select * from t1 /* hey */ where b=1 -- end", "SELECT*FROM t1 WHERE b=?;"},
        {"SELECT count(*),max ( Aa ) FROM T1", "SELECT count(*),max(aa)FROM t1;"},
        {"insert into T1(Aa,b) values(1,'two'),(3,NULL)", "INSERT INTO t1(aa,b)VALUES(?,?),(?,?);"},
        {"select null, true, current_timestamp, cast('1' as TEXT)",
         "SELECT?,true,CURRENT_TIMESTAMP,CAST(?AS text);"},
        {"select b from t1 where b not in (1,2) and Aa in ('a')",
         "SELECT b FROM t1 WHERE b NOT IN(?,?,?)AND aa IN(?,?,?);"},
        {"update T1 set b=b+1 where Aa<>3 and b is not null",
         "UPDATE t1 SET b=b+?WHERE aa<>?AND b IS NOT NULL;"},
        {"select a.b from T1 a, T1 as B where a.b<=B.b||'x'",
         "SELECT a.b FROM t1 a,t1 AS b WHERE a.b<=b.b||?;"},
        {"create table foo(x int default 5, y text check (y in ('a','b')))",
         "CREATE TABLE foo(x int DEFAULT?,y text CHECK(y IN(?,?,?)));"},
        {"pragma user_version=5", "PRAGMA user_version=?;"},
        {"begin;", "BEGIN;"},
        {"explain select 1", "EXPLAIN SELECT?;"},
        {"select 1;select 2", "SELECT?;"},
        {"select b in () from t1", "SELECT b IN(?,?,?)FROM t1;"},
        {"select (1,2) in ((1,2),(3,4))", "SELECT(?,?)IN(?,?,?);"},
        {"select * from t1 where (b,Aa) in (values (1,2),(3,4))",
         "SELECT*FROM t1 WHERE(b,aa)IN(?,?,?);"},
        {"with Cte(Q) as (select 1) select Q from Cte", "WITH cte(q)AS(SELECT?)SELECT q FROM cte;"},
        {"select case when b then 'x' else 0x1F end from T1",
         "SELECT CASE WHEN b THEN?ELSE?END FROM t1;"},
        {"select json('{}')->'$.a', b->>'c' from t1", "SELECT json(?)->?,b->>?FROM t1;"},
        {"select - -1, ~5, +b, a.b from t1 a", "SELECT--?,~?,+b,a.b FROM t1 a;"},
        {"select b isnull, b is NULL, b notnull from t1",
         "SELECT b ISNULL,b IS NULL,b NOTNULL FROM t1;"},
        {"select 1 AS One, 2 'Two', 3 \"Three\" from t1 where b between 1 and 2 and Aa like 'x%' "
         "escape '\\'",
         "SELECT?AS one,??,?three FROM t1 WHERE b BETWEEN?AND?AND aa LIKE?ESCAPE?;"},
        {"values (1,2),(3,4)", "VALUES(?,?),(?,?);"},
        {"savepoint Foo", "SAVEPOINT foo;"},
        {"select b in (1+2, 3) from t1", "SELECT b IN(?,?,?)FROM t1;"},
        {"select b in (1, Aa, 3) from t1", "SELECT b IN(?,aa,?)FROM t1;"},
        {"select b in (\t1,\t2 ) from t1", "SELECT b IN(?,?,?)FROM t1;"},
        {"delete from T1 where rowid=5 and exists(select 1)",
         "DELETE FROM t1 WHERE rowid=?AND EXISTS(SELECT?);"},
    };
    sqlite3 *db = open_memory();
    run(db, "CREATE TABLE T1(Aa, b, \"c d\", [e f], ttext); CREATE TABLE Sel(x)");
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        sqlite3_stmt *stmt;
        assert_int_equal(sqlite3_prepare_v2(db, pairs[i][0], -1, &stmt, NULL), SQLITE_OK);
        assert_string_equal(sqlite3_normalized_sql(stmt), pairs[i][1]);
        assert_ptr_equal(sqlite3_normalized_sql(stmt), sqlite3_normalized_sql(stmt));
        assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    }
    /* Nested beyond what is looked into. */
    Buf deep = {0};
    assert_int_equal(buf_append_text(&deep, "SELECT 1 IN (2, "), OK);
    for (int i = 0; i < 900; i++)
        assert_int_equal(buf_append_byte(&deep, '('), OK);
    assert_int_equal(buf_append_byte(&deep, '3'), OK);
    for (int i = 0; i < 901; i++)
        assert_int_equal(buf_append_byte(&deep, ')'), OK);
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_prepare_v2(db, (const char *)deep.p, (int)deep.bytes, &stmt, NULL),
                     SQLITE_OK);
    assert_string_equal(sqlite3_normalized_sql(stmt), "SELECT?IN(?,?,?);");
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    buf_free(&deep);
    assert_null(sqlite3_normalized_sql(NULL));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static sqlite3_int64
status_of(sqlite3 *db, int what, int reset)
{
    int now, peak;
    assert_int_equal(sqlite3_db_status(db, what, &now, &peak, reset), SQLITE_OK);
    assert_int_equal(peak, 0);
    return now;
}

static void
status_counts_from_the_last_reset(void **state)
{
    (void)state;
    char path[] = "/tmp/weft-status-XXXXXX";
    sqlite3 *db;
    assert_int_equal(close(mkstemp(path)), 0);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    run(db, "CREATE TABLE t(a); INSERT INTO t VALUES(1); PRAGMA wal_checkpoint");
    sqlite3_int64 writes = status_of(db, SQLITE_DBSTATUS_CACHE_WRITE, 0);
    assert_true(writes > 0);
    assert_true(status_of(db, SQLITE_DBSTATUS_CACHE_WRITE, 1) == writes);
    assert_true(status_of(db, SQLITE_DBSTATUS_CACHE_WRITE, 0) == 0);
    run(db, "INSERT INTO t VALUES(2); PRAGMA wal_checkpoint");
    sqlite3_int64 later = status_of(db, SQLITE_DBSTATUS_CACHE_WRITE, 1);
    assert_true(later > 0);
    assert_true(status_of(db, SQLITE_DBSTATUS_CACHE_USED, 1) > 0);
    assert_true(status_of(db, SQLITE_DBSTATUS_CACHE_USED, 1) > 0); /* No counter. */
    sqlite3_int64 schema = status_of(db, SQLITE_DBSTATUS_SCHEMA_USED, 1);
    for (int i = 0; i < 60; i++) {
        char sql[80];
        snprintf(sql, sizeof(sql), "CREATE TABLE u%d(a, b, c UNIQUE, d, e, f, g, h)", i);
        run(db, sql);
    }
    assert_true(number(db, "SELECT count(*) FROM u59") == 0);
    assert_true(status_of(db, SQLITE_DBSTATUS_SCHEMA_USED, 0) > schema);
    int now, peak;
    assert_int_equal(sqlite3_db_status(db, SQLITE_DBSTATUS_MAX + 1, &now, &peak, 0), SQLITE_ERROR);
    assert_int_equal(sqlite3_db_status(db, -1, &now, &peak, 0), SQLITE_ERROR);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(unlink(path), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_count_what_they_do),
        cmocka_unit_test(the_hard_heap_limit),
        cmocka_unit_test(values_go_both_ways),
        cmocka_unit_test(scripts_are_prepared_piece_by_piece),
        cmocka_unit_test(a_mutex_is_had_when_asked_for),
        cmocka_unit_test(names_are_uris_unless_configured_otherwise),
        cmocka_unit_test(attached_names_are_uris_too),
        cmocka_unit_test(a_database_is_attached_by_two_names),
        cmocka_unit_test(compile_options_are_one_list),
        cmocka_unit_test(window_functions_of_the_program),
        cmocka_unit_test(windows_over_rows_that_change),
        cmocka_unit_test(host_functions_call_back_and_fail),
        cmocka_unit_test(hooks_are_called_and_may_refuse),
        cmocka_unit_test(blob_handles_read_write_and_expire),
        cmocka_unit_test(what_only_reads),
        cmocka_unit_test(normalized_texts),
        cmocka_unit_test(status_counts_from_the_last_reset),
        cmocka_unit_test(misuse_is_answered_and_close_waits_for_statements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
