/*
 * capi_kit.h -- what tests of the sqlite3 API share: databases, statements that must go well, a
 * folder that goes with the test.
 */
#pragma once

#include "capi_rename.h" /* generated: the functions' names inside libweft */
#include "sqlite3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/cmocka_all.h"

#define KIT_FOLDER_BYTES 32

static inline sqlite3 *
open_at(const char *path)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    return db;
}

static inline sqlite3 *
open_memory(void)
{
    return open_at(":memory:");
}

static inline void
run(sqlite3 *db, const char *sql)
{
    char *error = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK) fail_msg("%s: %s", sql, error);
}

/* The first value of the only row. */
static inline sqlite3_int64
number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    sqlite3_int64 value = sqlite3_column_int64(stmt, 0);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    return value;
}

static inline void
folder_make(char folder[KIT_FOLDER_BYTES])
{
    snprintf(folder, KIT_FOLDER_BYTES, "/tmp/weft-capi-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static inline void
folder_drop(const char *folder)
{
    char command[KIT_FOLDER_BYTES + 8];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}
