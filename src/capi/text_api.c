/*
 * text_api.c -- patterns, compile-time options, completeness of SQL: calls about text that need no
 * connection.
 */
#include "capi/capi.h"
#include "capi/host_func.h"

#include "func/func_builtin.h"
#include "sql/parse/parse.h"

/* ---- patterns ---- */

/* like() or glob() of the engine; 0: they match, as strcmp. */
static int
pattern_call(const char *function, u32 argc, const Cell *argv)
{
    const FuncDef *def = func_find(session_builtin_functions(), SLICE(function, strlen(function)),
                                   argc, NULL);
    const FuncEnv env = {.length_max = 1000000000, .like_pattern_max = U32_MAX};
    Arena arena;
    arena_init(&arena, NULL);
    ErrMsg msg = {.sql_offset = -1};
    Cell result = cell_null();
    FuncCall call = {
        .def = def, .env = &env, .arena = &arena, .msg = &msg, .collation = &collation_binary};
    Err err = def == NULL ? ERR_INTERNAL : def->scalar(&call, argc, argv, &result);
    bool matches = err == OK && result.type == CELL_INT && result.u.i != 0;
    err_clear(&msg);
    arena_free(&arena);
    return matches ? 0 : 1;
}

int
sqlite3_strglob(const char *pattern, const char *text)
{
    if (text == NULL) return pattern != NULL;
    if (pattern == NULL) return 1;
    const Cell argv[2] = {cell_text(pattern, strlen(pattern)), cell_text(text, strlen(text))};
    return pattern_call("glob", 2, argv);
}

int
sqlite3_strlike(const char *pattern, const char *text, unsigned int escape)
{
    if (text == NULL) return pattern != NULL;
    if (pattern == NULL) return 1;
    u8 bytes[4];
    Cell argv[3] = {cell_text(pattern, strlen(pattern)), cell_text(text, strlen(text))};
    if (escape == 0) return pattern_call("like", 2, argv);
    argv[2] = cell_text(bytes, utf8_put(bytes, escape));
    return pattern_call("like", 3, argv);
}

/* ---- options ---- */

const char *
sqlite3_compileoption_get(int at)
{
    return at < 0 ? NULL : func_compile_option((u32)at);
}

int
sqlite3_compileoption_used(const char *name)
{
    return name != NULL && func_compile_option_used(SLICE(name, strlen(name)));
}

/* ---- is the SQL whole? ---- */

static bool
is_blank(const char *sql)
{
    sqlite3_uint64 at = 0;
    while (sql[at] != 0) {
        if (sql[at] == ' ' || (sql[at] >= '\t' && sql[at] <= '\r')) {
            at++;
        } else if (sql[at] == '-' && sql[at + 1] == '-') {
            at += strcspn(sql + at, "\n");
        } else if (sql[at] == '/' && sql[at + 1] == '*') {
            const char *end = strstr(sql + at + 2, "*/");
            if (end == NULL) return false;
            at = (sqlite3_uint64)(end - sql) + 2;
        } else {
            return false;
        }
    }
    return true;
}

sqlite3_int64
sqlite3_incomplete(const char *sql)
{
    if (sql == NULL) return SQLITE_MISUSE;
    if (is_blank(sql)) return SQLITE_EMPTY;
    return sqlite3_complete(sql) ? SQLITE_OK : SQLITE_ERROR;
}

/* ---- results and errors that are texts ---- */

void
sqlite3_result_str(sqlite3_context *context, sqlite3_str *str, int what)
{
    if (context == NULL) {
        if (what == SQLITE_FINISH) sqlite3_str_free(str);
        return;
    }
    int code = sqlite3_str_errcode(str);
    if (code == SQLITE_NOMEM) {
        sqlite3_result_error_nomem(context);
    } else if (code == SQLITE_TOOBIG) {
        sqlite3_result_error_toobig(context);
    } else {
        const char *text = sqlite3_str_value(str);
        sqlite3_result_text(context, text == NULL ? "" : text, sqlite3_str_length(str),
                            SQLITE_TRANSIENT);
    }
    if (what == SQLITE_XFER) sqlite3_str_reset(str);
    if (what == SQLITE_FINISH) sqlite3_str_free(str);
}

int
sqlite3_set_errmsg(sqlite3 *db, int code, const char *text)
{
    if (!capi__db_ok(db)) return SQLITE_MISUSE;
    if (code == SQLITE_OK) {
        err_clear(&db->error);
        db->error.err = OK;
    } else {
        err_set(&db->error, ERR_HOST, "%s", text != NULL ? text : sqlite3_errstr(code));
        db->error.host_code = code;
    }
    rt_store_relaxed(&db->own_error, 1);
    return SQLITE_OK;
}
