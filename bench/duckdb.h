/*
 * duckdb.h -- the few functions of DuckDB's C API that the analytic rows need, loaded at run time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* As in DuckDB's header; only the functions know what is inside. */
typedef struct DuckResult {
    uint64_t deprecated_column_count, deprecated_row_count, deprecated_rows_changed;
    void *deprecated_columns;
    char *deprecated_error_message;
    void *internal_data;
} DuckResult;

#define DUCK_FUNCTIONS(X)                                                  \
    X(open, int, (const char *, void **))                                  \
    X(close, void, (void **))                                              \
    X(connect, int, (void *, void **))                                     \
    X(disconnect, void, (void **))                                         \
    X(query, int, (void *, const char *, DuckResult *))                    \
    X(result_error, const char *, (DuckResult *))                          \
    X(row_count, uint64_t, (DuckResult *))                                 \
    X(value_int64, int64_t, (DuckResult *, uint64_t, uint64_t))            \
    X(destroy_result, void, (DuckResult *))                                \
    X(appender_create, int, (void *, const char *, const char *, void **)) \
    X(append_int64, int, (void *, int64_t))                                \
    X(append_double, int, (void *, double))                                \
    X(append_varchar_length, int, (void *, const char *, uint64_t))        \
    X(append_null, int, (void *))                                          \
    X(appender_end_row, int, (void *))                                     \
    X(appender_destroy, int, (void **))                                    \
    X(library_version, const char *, (void))

typedef struct Duck {
#define X(function, result, arguments) result(*function) arguments;
    DUCK_FUNCTIONS(X)
#undef X
    void *database, *connection;
} Duck;

/* Load the library and open a database in memory; false, with a message, if that fails. */
bool duck_open(Duck *duck, const char *library);
void duck_close(Duck *duck);

/* Ends the program with DuckDB's message if the statement fails. */
void duck_exec(Duck *duck, const char *sql);
