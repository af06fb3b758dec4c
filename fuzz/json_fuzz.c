/*
 * json_fuzz.c -- any bytes as JSON text and as JSONB through all functions that read either.
 *
 * Checked: no crash; what json() makes is valid and stays the same; text to JSONB and back is what
 * json() makes of the text.  The input is a document; what follows a NUL is a path.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capi_rename.h" /* generated: the functions' names inside libweft */
#include "sqlite3.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* ?1 is the document, ?2 the path. */
static const char *const readers[] = {
    "SELECT json_extract(?1, ?2), json_type(?1, ?2), json_array_length(?1, ?2)",
    "SELECT ?1 -> ?2, ?1 ->> ?2",
    "SELECT json_set(?1, ?2, 1), json_insert(?1, ?2, json('[1]')), json_replace(?1, ?2, 'x')",
    "SELECT json_remove(?1, ?2), json_patch(?1, ?1), jsonb_set(?1, ?2, jsonb('{}'))",
    "SELECT json_error_position(?1), json_valid(?1, 15), json_pretty(?1), json_quote(?1)",
    "SELECT count(*), sum(length(fullkey)), max(atom) FROM json_tree(?1)",
    "SELECT count(*), group_concat(path) FROM json_each(?1, ?2)",
    "SELECT json_group_array(value), json_group_object(key, value) FROM json_each(?1)",
    "SELECT 1 WHERE json_valid(?1) AND json(json(?1)) IS NOT json(?1)",
    "SELECT 1 WHERE json_valid(?1, 6) AND json(jsonb(?1)) IS NOT json(?1)",
};
#define CHECKS_FROM 8u /* These may not give a row. */

static sqlite3 *
connection(void)
{
    static sqlite3 *db; /* One for all inputs: nothing is written to it. */
    if (db == NULL && sqlite3_open(":memory:", &db) != SQLITE_OK) abort();
    return db;
}

static void
run(const char *sql, int is_check, const uint8_t *document, size_t bytes, int as_blob,
    const char *path)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(connection(), sql, -1, &stmt, NULL) != SQLITE_OK) abort();
    if (as_blob) {
        sqlite3_bind_blob(stmt, 1, document, (int)bytes, SQLITE_TRANSIENT);
    } else {
        sqlite3_bind_text(stmt, 1, (const char *)document, (int)bytes, SQLITE_TRANSIENT);
    }
    if (sqlite3_bind_parameter_count(stmt) > 1)
        sqlite3_bind_text(stmt, 2, path, -1, SQLITE_TRANSIENT);
    int code = sqlite3_step(stmt);
    if (is_check && code == SQLITE_ROW) abort();
    if (code == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(stmt); i++)
            (void)sqlite3_column_text(stmt, i);
    }
    sqlite3_finalize(stmt);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint8_t *nul = bytes == 0 ? NULL : memchr(data, 0, bytes);
    size_t document = nul == NULL ? bytes : (size_t)(nul - data);
    size_t rest = nul == NULL ? 0 : bytes - document - 1;
    char path[64] = "$";
    if (rest > 0 && rest < sizeof(path)) {
        memcpy(path, nul + 1, rest);
        path[rest] = 0;
    }
    for (unsigned i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
        int is_check = i >= CHECKS_FROM;
        run(readers[i], is_check, data, document, 0, path);
        if (!is_check) run(readers[i], 0, data, bytes, 1, "$.a[0]");
    }
    return 0;
}
