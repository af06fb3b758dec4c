/*
 * host_func.h -- functions and collations of the host program, kept with the connection.
 *
 * A HostFunc lives until its connection closes, because plans point at its FuncDef; its user data
 * is destroyed as soon as it is replaced.
 */
#pragma once

#include "capi/capi.h"

typedef struct HostFunc {
    FuncDef def;
    struct HostFunc *next;
    sqlite3 *db;
    bool is_replaced;
    void *app;
    void (*destroy)(void *);
    void (*function)(sqlite3_context *, int, sqlite3_value **);
    void (*step)(sqlite3_context *, int, sqlite3_value **);
    void (*inverse)(sqlite3_context *, int, sqlite3_value **);
    void (*final)(sqlite3_context *);
    void (*value)(sqlite3_context *);
    char name[]; /* Lower case. */
} HostFunc;

/* A call of the program at work: of a function, or of a virtual table's xColumn. */
struct sqlite3_context {
    FuncCall *call;
    HostFunc *func; /* NULL: xColumn */
    sqlite3 *db;
    Cell *result; /* NULL where a result has no place (step). */
    Err err;
    bool has_result;
    bool unchanged; /* xColumn: the value will only be written back. */
};

typedef struct HostCollation {
    Collation collation;
    struct HostCollation *next;
    bool is_replaced;
    void *app;
    void (*destroy)(void *);
    int (*compare)(void *, int, const void *, int, const void *);
    char name[];
} HostCollation;

/* Registered functions of one connection: a table over the built-in ones. */
typedef struct HostRegistry {
    HostFunc *func;
    HostCollation *collation;
    FuncTable table;
    const FuncDef **defs;
} HostRegistry;

/* A scalar function that belongs to its caller (mem_free); NULL: out of memory. */
HostFunc *host__scalar_new(sqlite3 *db, const char *name, int argc,
                           void (*function)(sqlite3_context *, int, sqlite3_value **), void *app);
void host__free(sqlite3 *db);
/* Another session, which ends before the call that made it, gets the functions and
   collations of the connection. */
void host__lend(sqlite3 *db, Session *to);
