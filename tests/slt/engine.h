/*
 * engine.h -- a SQL engine behind the sqlite3 C API, loaded from a shared library at run time.
 *
 * Only the few functions that a sqllogictest run needs, by the names every such library exports,
 * so that one runner drives SQLite's own library and ours.
 */
#pragma once

#include "base/types.h"

#define ENGINE_ROW  100 /* SQLITE_ROW */
#define ENGINE_DONE 101 /* SQLITE_DONE */
#define ENGINE_NULL 5   /* SQLITE_NULL */

typedef struct EngineDb EngineDb;     /* sqlite3 */
typedef struct EngineStmt EngineStmt; /* sqlite3_stmt */

typedef struct Engine {
    int (*open)(const char *path, EngineDb **db_out);
    int (*close)(EngineDb *db);
    int (*exec)(EngineDb *db, const char *sql, void *callback, void *arg, char **message_out);
    void (*free)(void *block);
    int (*prepare)(EngineDb *db, const char *sql, int bytes, EngineStmt **stmt_out,
                   const char **tail_out);
    int (*step)(EngineStmt *stmt);
    int (*finalize)(EngineStmt *stmt);
    int (*column_count)(EngineStmt *stmt);
    int (*column_type)(EngineStmt *stmt, int column);
    i64 (*column_int64)(EngineStmt *stmt, int column);
    f64 (*column_double)(EngineStmt *stmt, int column);
    const u8 *(*column_text)(EngineStmt *stmt, int column);
    const char *(*errmsg)(EngineDb *db);
    const char *(*version)(void);
} Engine;

/* Load `path`; false with a message on standard error when it or one of its names is missing. */
bool engine_load(Engine *engine, const char *path);
