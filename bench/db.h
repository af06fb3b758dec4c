/*
 * db.h -- one connection of one engine, with its errors made fatal where nothing may go wrong.
 */
#pragma once

#include "engine.h"

typedef struct Db {
    const Engine *engine;
    sqlite3 *handle;
} Db;

/* How durable commits are, and whether Weft's connections write at the same time. */
typedef struct DbMode {
    bool is_full; /* synchronous=FULL, else NORMAL. */
    bool multi;   /* Weft: PRAGMA weft_writers=multi. */
} DbMode;

/* `path` may be ":memory:".  Ends the program with a message if it cannot be opened. */
Db db_open(const Engine *engine, const char *path, DbMode mode);
void db_close(Db *db);
/* Delete `path` and every file whose name begins with it, as those of logs do. */
void db_remove(const char *path);

void db_exec(Db *db, const char *sql);
sqlite3_stmt *db_prepare(Db *db, const char *sql);
/* Ends the program unless `code` is OK, ROW or DONE. */
void db_must(Db *db, int code, const char *what);
/* Step to the end, which must come without rows or with rows that are of no interest; reset. */
void db_run(Db *db, sqlite3_stmt *stmt);
/* The integer in the first column of the only row. */
int64_t db_int(Db *db, const char *sql);
