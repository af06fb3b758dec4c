/*
 * hooks_api.c -- what the host program is told and asked: authorizer, progress, commit, rollback
 * and update hooks, tracing, and the text of a statement with its values.
 */
#include "capi/capi.h"
#include "func/func_builtin.h"
#include "rt/time.h"

static bool
can_hook(const sqlite3 *db)
{
    return capi__db_ok(db) && db->session != NULL;
}

/* ---- authorizer and progress ---- */

static int
authorize(void *arg, int action, const char *first, const char *second, const char *database,
          const char *inner)
{
    sqlite3 *db = arg;
    return db->authorize(db->authorize_arg, action, first, second, database, inner);
}

int
sqlite3_set_authorizer(sqlite3 *db,
                       int (*function)(void *, int, const char *, const char *, const char *,
                                       const char *),
                       void *arg)
{
    if (!can_hook(db)) return SQLITE_MISUSE;
    session_lock(db->session);
    SessionHooks hooks = *session_hooks(db->session);
    db->authorize = function;
    db->authorize_arg = arg;
    hooks.authorize = function == NULL ? NULL : authorize;
    hooks.authorize_arg = db;
    session_set_hooks(db->session, &hooks);
    session_unlock(db->session);
    return SQLITE_OK;
}

static bool
progress(void *arg)
{
    sqlite3 *db = arg;
    return db->progress(db->progress_arg) != 0;
}

void
sqlite3_progress_handler(sqlite3 *db, int every, int (*function)(void *), void *arg)
{
    if (!can_hook(db)) return;
    session_lock(db->session);
    SessionHooks hooks = *session_hooks(db->session);
    bool is_on = function != NULL && every > 0;
    db->progress = function;
    db->progress_arg = arg;
    hooks.progress = is_on ? progress : NULL;
    hooks.progress_arg = db;
    hooks.progress_every = is_on ? (u32)every : 0;
    session_set_hooks(db->session, &hooks);
    session_unlock(db->session);
}

/* ---- commit, rollback, update ---- */

static bool
commit(void *arg)
{
    sqlite3 *db = arg;
    return db->commit(db->commit_arg) != 0;
}

void *
sqlite3_commit_hook(sqlite3 *db, int (*function)(void *), void *arg)
{
    if (!can_hook(db)) return NULL;
    session_lock(db->session);
    SessionHooks hooks = *session_hooks(db->session);
    void *former = db->commit_arg;
    db->commit = function;
    db->commit_arg = arg;
    hooks.commit = function == NULL ? NULL : commit;
    hooks.commit_arg = db;
    session_set_hooks(db->session, &hooks);
    session_unlock(db->session);
    return former;
}

void *
sqlite3_rollback_hook(sqlite3 *db, void (*function)(void *), void *arg)
{
    if (!can_hook(db)) return NULL;
    session_lock(db->session);
    SessionHooks hooks = *session_hooks(db->session);
    void *former = db->rollback_arg;
    db->rollback = function;
    db->rollback_arg = arg;
    hooks.rollback = function;
    hooks.rollback_arg = arg;
    session_set_hooks(db->session, &hooks);
    session_unlock(db->session);
    return former;
}

static void
update(void *arg, int action, const char *database, const char *table, i64 rowid)
{
    sqlite3 *db = arg;
    db->update(db->update_arg, action, database, table, rowid);
}

void *
sqlite3_update_hook(sqlite3 *db,
                    void (*function)(void *, int, const char *, const char *, sqlite3_int64),
                    void *arg)
{
    if (!can_hook(db)) return NULL;
    session_lock(db->session);
    SessionHooks hooks = *session_hooks(db->session);
    void *former = db->update_arg;
    db->update = function;
    db->update_arg = arg;
    hooks.update = function == NULL ? NULL : update;
    hooks.update_arg = db;
    session_set_hooks(db->session, &hooks);
    session_unlock(db->session);
    return former;
}

/* ---- tracing ---- */

int
sqlite3_trace_v2(sqlite3 *db, unsigned mask, int (*function)(unsigned, void *, void *, void *),
                 void *arg)
{
    if (!can_hook(db)) return SQLITE_MISUSE;
    session_lock(db->session);
    if (function == NULL) mask = 0;
    db->trace_mask = mask;
    db->trace = mask == 0 ? NULL : function;
    db->trace_v1 = NULL;
    db->profile_v1 = NULL;
    db->trace_arg = arg;
    session_unlock(db->session);
    return SQLITE_OK;
}

void *
sqlite3_trace(sqlite3 *db, void (*function)(void *, const char *), void *arg)
{
    if (!can_hook(db)) return NULL;
    session_lock(db->session);
    void *former = db->trace_arg;
    db->trace = NULL;
    db->trace_v1 = function;
    db->trace_arg = arg;
    db->trace_mask = (function == NULL ? 0u : SQLITE_TRACE_STMT) |
                     (db->profile_v1 == NULL ? 0u : SQLITE_TRACE_PROFILE);
    session_unlock(db->session);
    return former;
}

void *
sqlite3_profile(sqlite3 *db, void (*function)(void *, const char *, sqlite3_uint64), void *arg)
{
    if (!can_hook(db)) return NULL;
    session_lock(db->session);
    void *former = db->profile_arg;
    db->trace = NULL;
    db->profile_v1 = function;
    db->profile_arg = arg;
    db->trace_mask = (db->trace_v1 == NULL ? 0u : SQLITE_TRACE_STMT) |
                     (function == NULL ? 0u : SQLITE_TRACE_PROFILE);
    session_unlock(db->session);
    return former;
}

void
capi__trace_start(sqlite3_stmt *stmt)
{
    sqlite3 *db = stmt->db;
    if ((db->trace_mask & SQLITE_TRACE_PROFILE) != 0) stmt->began_ns = rt_now_ns();
    if ((db->trace_mask & SQLITE_TRACE_STMT) == 0) return;
    if (db->trace != NULL) {
        db->trace(SQLITE_TRACE_STMT, db->trace_arg, stmt, (void *)(uintptr_t)stmt_sql(stmt->stmt));
    } else if (db->trace_v1 != NULL) {
        char *sql = sqlite3_expanded_sql(stmt);
        db->trace_v1(db->trace_arg, sql == NULL ? stmt_sql(stmt->stmt) : sql);
        sqlite3_free(sql);
    }
}

void
capi__trace_row(sqlite3_stmt *stmt)
{
    sqlite3 *db = stmt->db;
    if ((db->trace_mask & SQLITE_TRACE_ROW) == 0 || db->trace == NULL) return;
    db->trace(SQLITE_TRACE_ROW, db->trace_arg, stmt, NULL);
}

void
capi__trace_end(sqlite3_stmt *stmt)
{
    sqlite3 *db = stmt->db;
    if (stmt->began_ns == 0) return;
    sqlite3_int64 took_ns = (sqlite3_int64)(rt_now_ns() - stmt->began_ns);
    stmt->began_ns = 0;
    if ((db->trace_mask & SQLITE_TRACE_PROFILE) == 0) return;
    if (db->trace != NULL) {
        db->trace(SQLITE_TRACE_PROFILE, db->trace_arg, stmt, &took_ns);
    } else if (db->profile_v1 != NULL) {
        db->profile_v1(db->profile_arg, stmt_sql(stmt->stmt), (sqlite3_uint64)took_ns);
    }
}

/* ---- the text with its values ---- */

static bool
is_name_byte(u8 c)
{
    return c == '_' || c == '$' || c >= 0x80 || (c >= '0' && c <= '9') ||
           ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Length of the token at `at` that must be copied whole: string, quoted name, comment; else 1. */
static size_t
skip_token(const char *at)
{
    char quote = at[0];
    if (quote == '\'' || quote == '"' || quote == '`' || quote == '[') {
        const char *end = strchr(at + 1, quote == '[' ? ']' : quote);
        return end == NULL ? strlen(at) : (size_t)(end - at) + 1;
    }
    if (at[0] == '-' && at[1] == '-') return strcspn(at, "\n");
    if (at[0] == '/' && at[1] == '*') {
        const char *end = strstr(at + 2, "*/");
        return end == NULL ? strlen(at) : (size_t)(end - at) + 2;
    }
    size_t bytes = 0;
    while (is_name_byte((u8)at[bytes]))
        bytes++;
    return bytes == 0 ? 1 : bytes;
}

/* Length of a parameter token at `at`, 0 if there is none; and its number from 1. */
static size_t
param_token(Stmt *stmt, const char *at, u32 *next_number, u32 *number_out)
{
    if (at[0] != '?' && at[0] != ':' && at[0] != '@' && at[0] != '$') return 0;
    size_t bytes = 1;
    while (is_name_byte((u8)at[bytes]))
        bytes++;
    if (at[0] != '?' && bytes == 1) return 0;
    if (bytes == 1) {
        *number_out = (*next_number)++;
        return bytes;
    }
    char *name = mem_strndup(at, bytes);
    *number_out = name == NULL ? 0 : stmt_param_index(stmt, name);
    mem_free(name);
    if (*number_out >= *next_number) *next_number = *number_out + 1;
    return bytes;
}

/* As quote() writes it, but blobs in small letters, as SQLite's expanded text has them. */
static Err
append_value(Buf *out, const Cell *cell)
{
    if (cell->type != CELL_BLOB || (cell->flags & CELL_ZEROBLOB) != 0) {
        return func_append_quoted(out, cell);
    }
    Err err = buf_append_text(out, "x'");
    for (u32 i = 0; err == OK && i < cell->bytes; i++)
        err = buf_printf(out, "%02x", cell->u.p[i]);
    return err == OK ? buf_append_byte(out, '\'') : err;
}

char *
sqlite3_expanded_sql(sqlite3_stmt *stmt)
{
    if (!capi__stmt_ok(stmt)) return NULL;
    int most = sqlite3_limit(stmt->db, SQLITE_LIMIT_LENGTH, -1);
    const char *at = stmt_sql(stmt->stmt);
    Buf out = {0};
    Err err = OK;
    u32 next_number = 1;
    while (err == OK && *at != 0) {
        u32 number = 0;
        size_t bytes = param_token(stmt->stmt, at, &next_number, &number);
        if (bytes > 0 && number > 0 && number <= stmt_param_count(stmt->stmt)) {
            err = append_value(&out, stmt_param_value(stmt->stmt, number - 1));
        } else {
            if (bytes == 0) bytes = skip_token(at);
            err = buf_append(&out, at, bytes);
        }
        at += bytes;
    }
    if (err == OK) err = buf_append_byte(&out, 0);
    if (err != OK || out.bytes > (size_t)most + 1) buf_free(&out);
    return (char *)out.p;
}
