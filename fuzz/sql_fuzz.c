/*
 * sql_fuzz.c -- any bytes as SQL, run statement by statement on a small database.
 *
 * Checked: no crash, no leak, no endless work (a progress handler ends a statement), and an error
 * always has a code and a text.  The first byte chooses whether a transaction is open.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capi_rename.h" /* generated: the functions' names inside libweft */
#include "sqlite3.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define ROWS_MAX  200
#define STEPS_MAX 40 /* Calls of the progress handler, of 1,000 operations each, in one input. */

static const char schema[] =
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT COLLATE NOCASE, c REAL, d);"
    "CREATE INDEX tb ON t(b, c DESC); CREATE UNIQUE INDEX td ON t(d) WHERE d IS NOT NULL;"
    "CREATE TABLE w(k, v DEFAULT 7, g AS (v + 1), PRIMARY KEY(k)) WITHOUT ROWID;"
    "CREATE VIEW v AS SELECT a, b FROM t WHERE c > 0;"
    "CREATE TRIGGER r AFTER INSERT ON w BEGIN UPDATE t SET c = c + 1 WHERE a = new.v; END;"
    "INSERT INTO t VALUES(1, 'one', 1.5, '{\"x\":[1,2]}'), (2, 'Two', -2, x'00ff'),"
    "(3, NULL, 3e10, 5), (9, '', NULL, NULL); INSERT INTO w(k) VALUES('a'), (2), (x'')";

static int
enough(void *arg)
{
    int *steps = arg;
    return ++*steps > STEPS_MAX;
}

static void
run_statement(sqlite3_stmt *stmt)
{
    for (int i = 0; i < sqlite3_bind_parameter_count(stmt) && i < 8; i++)
        sqlite3_bind_int(stmt, i + 1, i);
    for (int rows = 0; rows < ROWS_MAX && sqlite3_step(stmt) == SQLITE_ROW; rows++) {
        for (int i = 0; i < sqlite3_column_count(stmt); i++) {
            (void)sqlite3_column_text(stmt, i);
            (void)sqlite3_column_double(stmt, i);
        }
    }
}

static void
run_text(sqlite3 *db, const char *sql)
{
    for (int count = 0; *sql != 0 && count < 50; count++) {
        sqlite3_stmt *stmt = NULL;
        const char *tail = NULL;
        if (sqlite3_prepare_v2(db, sql, -1, &stmt, &tail) != SQLITE_OK) {
            if (sqlite3_errcode(db) == SQLITE_OK || sqlite3_errmsg(db)[0] == 0) abort();
            return;
        }
        if (stmt != NULL) run_statement(stmt);
        sqlite3_finalize(stmt);
        sql = tail;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    sqlite3 *db = NULL;
    int steps = 0;
    if (bytes < 1) return 0;
    char *sql = malloc(bytes);
    if (sql == NULL) return 0;
    memcpy(sql, data + 1, bytes - 1);
    sql[bytes - 1] = 0;
    if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) ==
        SQLITE_OK) {
        sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1000000);
        if (sqlite3_exec(db, schema, NULL, NULL, NULL) != SQLITE_OK) abort();
        sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0); /* No files. */
        sqlite3_progress_handler(db, 1000, enough, &steps);
        if ((data[0] & 1) != 0) sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
        run_text(db, sql);
    }
    sqlite3_close(db);
    free(sql);
    return 0;
}
