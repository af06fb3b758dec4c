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

void host__free(sqlite3 *db);
