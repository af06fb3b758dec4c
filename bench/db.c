/*
 * db.c -- connections for the drivers.
 */
#include "db.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void
db_must(Db *db, int code, const char *what)
{
    if (code == CODE_OK || code == CODE_ROW || code == CODE_DONE) return;
    fprintf(stderr, "bench: %s: %s: %s (%d)\n", db->engine->name, what,
            db->handle == NULL ? "" : db->engine->errmsg(db->handle), code);
    exit(1);
}

Db
db_open(const Engine *engine, const char *path, DbMode mode)
{
    Db db = {.engine = engine};
    db_must(&db, engine->open_v2(path, &db.handle, OPEN_FLAGS, NULL), path);
    engine->busy_timeout(db.handle, 10000);
    db_exec(&db, "PRAGMA journal_mode=WAL");
    db_exec(&db, mode.is_full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
    /* SQLite as a careful user sets it up: a cache that holds the data, as Weft's pool does. */
    db_exec(&db, "PRAGMA cache_size=-262144");
    if (engine->is_weft && mode.multi) db_exec(&db, "PRAGMA weft_writers=multi");
    return db;
}

void
db_close(Db *db)
{
    db_must(db, db->engine->close_v2(db->handle), "close");
    db->handle = NULL;
}

void
db_remove(const char *path)
{
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s*", path);
    if (glob(pattern, 0, NULL, &found) != 0) return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        unlink(found.gl_pathv[i]);
    globfree(&found);
}

void
db_exec(Db *db, const char *sql)
{
    db_must(db, db->engine->exec(db->handle, sql, NULL, NULL, NULL), sql);
}

sqlite3_stmt *
db_prepare(Db *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    db_must(db, db->engine->prepare_v2(db->handle, sql, -1, &stmt, NULL), sql);
    return stmt;
}

void
db_run(Db *db, sqlite3_stmt *stmt)
{
    int code = db->engine->step(stmt);
    while (code == CODE_ROW)
        code = db->engine->step(stmt);
    db_must(db, code, "step");
    db->engine->reset(stmt);
}

int64_t
db_int(Db *db, const char *sql)
{
    sqlite3_stmt *stmt = db_prepare(db, sql);
    int code = db->engine->step(stmt);
    db_must(db, code, sql);
    int64_t value = code == CODE_ROW ? db->engine->column_int64(stmt, 0) : 0;
    db->engine->finalize(stmt);
    return value;
}
