/*
 * func_oracle.h -- calls a built-in function here and in SQLite with the same arguments.
 */
#pragma once

#include "func/func_builtin.h"
#include "unit/value/oracle.h"

enum { ORACLE_ARGS_MAX = 8 };

typedef struct FuncOracle {
    sqlite3 *db;
    FuncTable table;
    Arena arena;
    ErrMsg msg;
    FuncEnv env;
} FuncOracle;

static inline i64
func_oracle_now_ms(void *arg)
{
    return *(i64 *)arg;
}

static inline void
func_oracle_open(FuncOracle *o)
{
    *o = (FuncOracle){.db = oracle_open(), .env = {.length_max = 1000000000}};
    arena_init(&o->arena, NULL);
    assert_int_equal(func_builtin_init(&o->table), OK);
}

static inline void
func_oracle_close(FuncOracle *o)
{
    sqlite3_close(o->db);
    arena_free(&o->arena);
    func_builtin_free(&o->table);
    err_clear(&o->msg);
}

/* Ours.  The result lives in the oracle's arena until the next call. */
static inline Err
func_oracle_call(FuncOracle *o, const char *name, u32 argc, const Cell *argv, Cell *result_out)
{
    const FuncDef *def = func_find(&o->table, SLICE(name, strlen(name)), argc, NULL);
    assert_non_null(def);
    assert_non_null(def->scalar);
    arena_reset(&o->arena);
    err_clear(&o->msg);
    void *aux[ORACLE_ARGS_MAX] = {0};
    void (*aux_free[ORACLE_ARGS_MAX])(void *) = {0};
    FuncCall call = {.def = def,
                     .env = &o->env,
                     .arena = &o->arena,
                     .collation = &collation_binary,
                     .msg = &o->msg,
                     .aux = aux,
                     .aux_free = aux_free,
                     .aux_count = ORACLE_ARGS_MAX};
    *result_out = cell_null();
    Err err = def->scalar(&call, argc, argv, result_out);
    for (u32 i = 0; i < ORACLE_ARGS_MAX; i++) {
        if (aux_free[i] != NULL) aux_free[i](aux[i]);
    }
    return err;
}

/* A statement that calls the function; NULL if the library has no such function. */
static inline sqlite3_stmt *
func_oracle_stmt(FuncOracle *o, const char *name, u32 argc)
{
    char sql[256];
    int at = snprintf(sql, sizeof(sql), "SELECT %s(", name);
    for (u32 i = 0; i < argc; i++) {
        at += snprintf(sql + at, sizeof(sql) - (size_t)at, i ? ",?" : "?");
    }
    snprintf(sql + at, sizeof(sql) - (size_t)at, ")");
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(o->db, sql, -1, &stmt, NULL) != SQLITE_OK) return NULL;
    return stmt;
}

/* Same result or same error text, else the test fails and shows the call. */
static inline void
func_oracle_check(FuncOracle *o, sqlite3_stmt *stmt, const char *name, u32 argc, const Cell *argv)
{
    for (u32 i = 0; i < argc; i++) {
        oracle_bind(stmt, (int)i + 1, &argv[i]);
    }
    Cell got, want = cell_null();
    Err err = func_oracle_call(o, name, argc, argv, &got);
    int rc = sqlite3_step(stmt);
    bool same;
    if (rc == SQLITE_ROW) {
        want = oracle_column(stmt, 0);
        same = err == OK && cell_identical(&got, &want);
        if (!oracle_is_new() && err == OK && got.type == CELL_REAL && want.type == CELL_REAL) {
            same = got.u.r == want.u.r;
        }
    } else {
        same = err != OK && strcmp(err_message(&o->msg), sqlite3_errmsg(o->db)) == 0;
    }
    if (!same) {
        fprintf(stderr, "%s\n", name);
        for (u32 i = 0; i < argc; i++) {
            oracle_print("arg", &argv[i]);
        }
        if (err != OK) fprintf(stderr, "  got error: %s\n", err_message(&o->msg));
        if (err == OK) oracle_print("got", &got);
        if (rc != SQLITE_ROW) fprintf(stderr, "  want error: %s\n", sqlite3_errmsg(o->db));
        if (rc == SQLITE_ROW) oracle_print("want", &want);
        fail();
    }
    sqlite3_reset(stmt);
}
