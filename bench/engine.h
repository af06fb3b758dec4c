/*
 * engine.h -- the sqlite3 C API of one library, loaded at run time, so that the same driver runs on
 * any engine that offers it.
 *
 * ENGINE_FUNCTIONS lists what is used; each becomes a member of Engine with the name after
 * sqlite3_.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weft.h"

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

/* Result codes of the API that the drivers tell apart, and its flags for opening. */
#define CODE_OK         0
#define CODE_ABORT      4
#define CODE_BUSY       5
#define CODE_LOCKED     6
#define CODE_CONSTRAINT 19
#define CODE_ROW        100
#define CODE_DONE       101
#define OPEN_FLAGS      6 /* read, write, create */

#define ENGINE_FUNCTIONS(X)                                                               \
    X(open_v2, int, (const char *, sqlite3 **, int, const char *))                        \
    X(close_v2, int, (sqlite3 *))                                                         \
    X(exec, int,                                                                          \
      (sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **)) \
    X(prepare_v2, int, (sqlite3 *, const char *, int, sqlite3_stmt **, const char **))    \
    X(step, int, (sqlite3_stmt *))                                                        \
    X(reset, int, (sqlite3_stmt *))                                                       \
    X(finalize, int, (sqlite3_stmt *))                                                    \
    X(bind_int64, int, (sqlite3_stmt *, int, int64_t))                                    \
    X(bind_double, int, (sqlite3_stmt *, int, double))                                    \
    X(bind_text, int, (sqlite3_stmt *, int, const char *, int, void (*)(void *)))         \
    X(bind_null, int, (sqlite3_stmt *, int))                                              \
    X(column_count, int, (sqlite3_stmt *))                                                \
    X(column_type, int, (sqlite3_stmt *, int))                                            \
    X(column_bytes, int, (sqlite3_stmt *, int))                                           \
    X(column_int64, int64_t, (sqlite3_stmt *, int))                                       \
    X(column_double, double, (sqlite3_stmt *, int))                                       \
    X(column_text, const unsigned char *, (sqlite3_stmt *, int))                          \
    X(errmsg, const char *, (sqlite3 *))                                                  \
    X(extended_errcode, int, (sqlite3 *))                                                 \
    X(get_autocommit, int, (sqlite3 *))                                                   \
    X(changes, int, (sqlite3 *))                                                          \
    X(busy_timeout, int, (sqlite3 *, int))                                                \
    X(busy_handler, int, (sqlite3 *, int (*)(void *, int), void *))                       \
    X(libversion, const char *, (void))

typedef struct Engine {
    const char *name;
    bool is_weft;
    void *handle;
#define X(function, result, arguments) result(*function) arguments;
    ENGINE_FUNCTIONS(X)
#undef X
    /* NULL where the library was built without it. */
    int (*carray_bind)(sqlite3_stmt *, int, void *, int, int, void (*)(void *));
    /* Weft's own API, for whole columns; NULL elsewhere. */
    int (*native_open)(const char *, const weft_options *, weft_db **);
    int (*native_close)(weft_db *);
    int (*native_prepare)(weft_db *, const char *, ptrdiff_t, weft_stmt **, const char **);
    int (*native_finalize)(weft_stmt *);
    int (*native_fetch)(weft_stmt *, int64_t, struct ArrowArray *);
} Engine;

/* A busy handler that looks again at once, then every 20 us, for some minutes. */
int engine_poll_busy(void *arg, int times);
/* False, with a message on stderr, if the library or one of the functions is missing. */
bool engine_load(Engine *engine, const char *name, const char *path);
