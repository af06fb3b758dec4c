/*
 * stmt_api.c -- prepared statements: prepare, step, bind, and what may be asked of them.
 */
#include "capi/capi.h"
#include "capi/pointer.h"
#include "sql/parse/parse.h"

#include <limits.h>

/* ---- prepare and finalize ---- */

static Err
prepare_inner(Session *session, const char *sql, size_t bytes, unsigned flags, Stmt **inner_out,
              size_t *consumed_out)
{
    if ((flags & SQLITE_PREPARE_NO_VTAB) == 0) {
        return stmt_prepare_text(session, sql, bytes, inner_out, consumed_out);
    }
    session_lock(session);
    session_set_without_virtual(session, true);
    Err err = stmt_prepare_text(session, sql, bytes, inner_out, consumed_out);
    session_set_without_virtual(session, false);
    session_unlock(session);
    return err;
}

/* `sql` ends at a NUL, or after `bytes`. */
static int
prepare(sqlite3 *db, const char *sql, size_t bytes, unsigned flags, sqlite3_stmt **stmt_out,
        size_t *consumed_out)
{
    Stmt *inner;
    session_lock(db->session); /* Once for all that follows. */
    sqlite3_stmt *stmt = capi__stmt_new(db);
    Err err = stmt == NULL ? ERR_NOMEM
                           : prepare_inner(db->session, sql, bytes, flags, &inner, consumed_out);
    int code;
    if (stmt == NULL) {
        code = capi__fail(db, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    } else if (err != OK || inner == NULL) {
        capi__stmt_free(db, stmt);
        code = capi__result(db, err);
    } else {
        *stmt = (sqlite3_stmt){.magic = STMT_MAGIC, .stmt = inner, .db = db};
        stmt->row = stmt_row_place(inner);
        stmt->next = db->first;
        if (stmt->next != NULL) stmt->next->previous = stmt;
        db->first = stmt;
        *stmt_out = stmt;
        code = capi__result(db, OK);
    }
    session_unlock(db->session);
    return code;
}

int
sqlite3_prepare_v3(sqlite3 *db, const char *sql, int bytes, unsigned flags, sqlite3_stmt **stmt_out,
                   const char **tail_out)
{
    if (stmt_out == NULL) return SQLITE_MISUSE;
    *stmt_out = NULL;
    if (tail_out != NULL) *tail_out = sql;
    if (!capi__db_ok(db) || db->session == NULL || sql == NULL) return SQLITE_MISUSE;
    size_t consumed = 0;
    int code = prepare(db, sql, bytes < 0 ? SIZE_MAX : (size_t)bytes, flags, stmt_out, &consumed);
    if (tail_out != NULL) *tail_out = sql + consumed;
    return code;
}

int
sqlite3_prepare_v2(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **stmt_out,
                   const char **tail_out)
{
    return sqlite3_prepare_v3(db, sql, bytes, 0, stmt_out, tail_out);
}

int
sqlite3_prepare(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **stmt_out,
                const char **tail_out)
{
    return sqlite3_prepare_v3(db, sql, bytes, 0, stmt_out, tail_out);
}

/* The tail of UTF-16 text is found by counting the characters that were consumed. */
static const void *
tail16(const void *sql16, const char *sql, size_t consumed)
{
    size_t units = 0;
    const u8 *p = (const u8 *)sql, *end = p + consumed;
    while (p < end)
        units += utf8_next(&p, end) >= 0x10000 ? 2 : 1;
    return (const u8 *)sql16 + units * 2;
}

int
sqlite3_prepare16_v3(sqlite3 *db, const void *sql16, int bytes16, unsigned flags,
                     sqlite3_stmt **stmt_out, const void **tail_out)
{
    if (stmt_out == NULL) return SQLITE_MISUSE;
    *stmt_out = NULL;
    if (!capi__db_ok(db) || db->session == NULL || sql16 == NULL) return SQLITE_MISUSE;
    size_t bytes, consumed = 0;
    char *sql = capi__from_utf16(sql16, bytes16, &bytes);
    if (sql == NULL) return SQLITE_NOMEM;
    int code = prepare(db, sql, bytes, flags, stmt_out, &consumed);
    if (tail_out != NULL) *tail_out = tail16(sql16, sql, consumed);
    mem_free(sql);
    return code;
}

int
sqlite3_prepare16_v2(sqlite3 *db, const void *sql16, int bytes16, sqlite3_stmt **stmt_out,
                     const void **tail_out)
{
    return sqlite3_prepare16_v3(db, sql16, bytes16, 0, stmt_out, tail_out);
}

int
sqlite3_prepare16(sqlite3 *db, const void *sql16, int bytes16, sqlite3_stmt **stmt_out,
                  const void **tail_out)
{
    return sqlite3_prepare16_v3(db, sql16, bytes16, 0, stmt_out, tail_out);
}

/* The row's values go with the row. */
static ALWAYS_INLINE void
drop_row(sqlite3_stmt *stmt)
{
    if (LIKELY(!stmt->has_values)) return;
    for (u32 i = 0; i < stmt->columns; i++)
        value__forget(&stmt->column[i]);
    stmt->has_values = false;
}

void
capi__drop_values(sqlite3_stmt *stmt)
{
    for (u32 i = 0; i < stmt->columns; i++)
        value__clear(&stmt->column[i]);
    mem_free(stmt->column);
    stmt->column = NULL;
    stmt->columns = 0;
}

static void
unlink_stmt(sqlite3_stmt *stmt)
{
    if (stmt->previous != NULL) {
        stmt->previous->next = stmt->next;
    } else {
        stmt->db->first = stmt->next;
    }
    if (stmt->next != NULL) stmt->next->previous = stmt->previous;
}

int
sqlite3_finalize(sqlite3_stmt *stmt)
{
    if (stmt == NULL) return SQLITE_OK;
    if (!capi__stmt_ok(stmt)) return SQLITE_MISUSE;
    sqlite3 *db = stmt->db;
    session_lock(db->session);
    capi__drop_values(stmt);
    for (u32 i = 0; stmt->name16 != NULL && i < stmt_column_count(stmt->stmt) * 5; i++)
        mem_free(stmt->name16[i]);
    mem_free(stmt->name16);
    buf_free(&stmt->normalized);
    unlink_stmt(stmt);
    int code = capi__result(db, stmt_finalize(stmt->stmt));
    pointer__free(stmt->pointers);
    capi__end_pointers(db);
    capi__stmt_free(db, stmt);
    session_unlock(db->session);
    capi__close_zombie(db);
    return code;
}

int
sqlite3_reset(sqlite3_stmt *stmt)
{
    if (stmt == NULL) return SQLITE_OK;
    if (!capi__stmt_ok(stmt)) return SQLITE_MISUSE;
    drop_row(stmt);
    stmt->is_running = false;
    if (UNLIKELY(stmt->began_ns != 0)) capi__trace_end(stmt);
    int code = capi__result_fast(stmt->db, stmt_reset(stmt->stmt));
    capi__end_pointers(stmt->db);
    return code;
}

/* ---- step ---- */

/* A custom busy handler: try, ask, try again; never a wait inside. */
static NOINLINE int
step_failed(sqlite3_stmt *stmt, Err err)
{
    sqlite3 *db = stmt->db;
    bool row = false;
    for (int tries = 0; err == ERR_BUSY && db->busy != NULL; tries++) {
        if (db->busy(db->busy_arg, tries) == 0) break;
        err = stmt_step(stmt->stmt, &row);
    }
    if (err != OK) return capi__result(db, err);
    rt_store_relaxed(&db->own_error, 0);
    return row ? SQLITE_ROW : SQLITE_DONE;
}

static NOINLINE Err
step_traced(sqlite3_stmt *stmt, bool *row_out)
{
    if (!stmt_is_busy(stmt->stmt)) capi__trace_start(stmt);
    Err err = stmt_step(stmt->stmt, row_out);
    if (stmt->db->trace_mask == 0) return err; /* The program has turned it off meanwhile. */
    if (*row_out) capi__trace_row(stmt);
    if (!*row_out) capi__trace_end(stmt);
    return err;
}

int
sqlite3_step(sqlite3_stmt *stmt)
{
    if (!capi__stmt_ok(stmt)) return SQLITE_MISUSE;
    bool row = false;
    drop_row(stmt);
    stmt->runs += !stmt->is_running;
    Err err = LIKELY(stmt->db->trace_mask == 0) ? stmt_step(stmt->stmt, &row)
                                                : step_traced(stmt, &row);
    stmt->is_running = row;
    if (UNLIKELY(err != OK)) return step_failed(stmt, err);
    rt_store_relaxed(&stmt->db->own_error, 0);
    return row ? SQLITE_ROW : SQLITE_DONE;
}

int
sqlite3_busy_handler(sqlite3 *db, int (*handler)(void *, int), void *arg)
{
    if (!capi__db_ok(db) || db->session == NULL) return SQLITE_MISUSE;
    db->busy = handler;
    db->busy_arg = arg;
    db->busy_timeout_ms = 0;
    session_set_busy_timeout(db->session, 0);
    return SQLITE_OK;
}

/* ---- binding ---- */

static void
destroy_bound(const void *p, void (*destroy)(void *))
{
    if (destroy != SQLITE_STATIC && destroy != SQLITE_TRANSIENT) destroy((void *)(uintptr_t)p);
}

static int
bind(sqlite3_stmt *stmt, int index, Cell cell)
{
    if (!capi__stmt_ok(stmt)) return SQLITE_MISUSE;
    if (index < 1) {
        return capi__fail(stmt->db, ERR_RANGE, "%s", err_text(ERR_RANGE));
    }
    Err err = stmt_bind(stmt->stmt, (u32)index - 1, &cell);
    if (err == OK && UNLIKELY(stmt->pointers != NULL)) capi__drop_pointer(stmt, index);
    return capi__result_fast(stmt->db, err);
}

int
sqlite3_bind_null(sqlite3_stmt *stmt, int index)
{
    return bind(stmt, index, cell_null());
}

int
sqlite3_bind_int64(sqlite3_stmt *stmt, int index, sqlite3_int64 value)
{
    return bind(stmt, index, cell_int(value));
}

int
sqlite3_bind_int(sqlite3_stmt *stmt, int index, int value)
{
    return bind(stmt, index, cell_int(value));
}

int
sqlite3_bind_double(sqlite3_stmt *stmt, int index, double value)
{
    return bind(stmt, index, cell_real(value));
}

int
sqlite3_bind_text64(sqlite3_stmt *stmt, int index, const char *text, sqlite3_uint64 bytes,
                    void (*destroy)(void *), unsigned char encoding)
{
    if (encoding != SQLITE_UTF8 && encoding != SQLITE_UTF8_ZT) {
        if (bytes > INT_MAX) return SQLITE_TOOBIG;
        return sqlite3_bind_text16(stmt, index, text, (int)(bytes & ~(sqlite3_uint64)1), destroy);
    }
    int code = bytes > U32_MAX ? SQLITE_TOOBIG
               : text == NULL  ? bind(stmt, index, cell_null())
                               : bind(stmt, index, cell_text(text, (size_t)bytes));
    destroy_bound(text, destroy);
    return code;
}

int
sqlite3_bind_text(sqlite3_stmt *stmt, int index, const char *text, int bytes,
                  void (*destroy)(void *))
{
    size_t length = text == NULL ? 0 : bytes < 0 ? strlen(text) : (size_t)bytes;
    return sqlite3_bind_text64(stmt, index, text, length, destroy, SQLITE_UTF8);
}

int
sqlite3_bind_text16(sqlite3_stmt *stmt, int index, const void *text16, int bytes16,
                    void (*destroy)(void *))
{
    if (text16 == NULL) return bind(stmt, index, cell_null());
    size_t bytes;
    char *text = capi__from_utf16(text16, bytes16, &bytes);
    int code = text == NULL ? SQLITE_NOMEM : bind(stmt, index, cell_text(text, bytes));
    mem_free(text);
    destroy_bound(text16, destroy);
    return code;
}

int
sqlite3_bind_blob64(sqlite3_stmt *stmt, int index, const void *blob, sqlite3_uint64 bytes,
                    void (*destroy)(void *))
{
    int code = bytes > U32_MAX ? SQLITE_TOOBIG
               : blob == NULL  ? bind(stmt, index, cell_null())
                               : bind(stmt, index, cell_blob(blob, (size_t)bytes));
    destroy_bound(blob, destroy);
    return code;
}

int
sqlite3_bind_blob(sqlite3_stmt *stmt, int index, const void *blob, int bytes,
                  void (*destroy)(void *))
{
    if (bytes < 0) {
        destroy_bound(blob, destroy);
        return SQLITE_MISUSE;
    }
    return sqlite3_bind_blob64(stmt, index, blob, (sqlite3_uint64)bytes, destroy);
}

int
sqlite3_bind_zeroblob64(sqlite3_stmt *stmt, int index, sqlite3_uint64 bytes)
{
    if (!capi__stmt_ok(stmt)) return SQLITE_MISUSE;
    if (bytes > (sqlite3_uint64)sqlite3_limit(stmt->db, SQLITE_LIMIT_LENGTH, -1)) {
        return capi__fail(stmt->db, ERR_TOOBIG, "%s", err_text(ERR_TOOBIG));
    }
    Cell cell = {.type = CELL_BLOB, .bytes = (u32)bytes, .flags = CELL_ZEROBLOB};
    return bind(stmt, index, cell);
}

int
sqlite3_bind_zeroblob(sqlite3_stmt *stmt, int index, int bytes)
{
    return sqlite3_bind_zeroblob64(stmt, index, bytes < 0 ? 0 : (sqlite3_uint64)bytes);
}

int
sqlite3_bind_value(sqlite3_stmt *stmt, int index, const sqlite3_value *value)
{
    return bind(stmt, index, value == NULL ? cell_null() : value->cell);
}

int
sqlite3_bind_parameter_count(sqlite3_stmt *stmt)
{
    return capi__stmt_ok(stmt) ? (int)stmt_param_count(stmt->stmt) : 0;
}

const char *
sqlite3_bind_parameter_name(sqlite3_stmt *stmt, int index)
{
    return capi__stmt_ok(stmt) && index >= 1 ? stmt_param_name(stmt->stmt, (u32)index - 1) : NULL;
}

int
sqlite3_bind_parameter_index(sqlite3_stmt *stmt, const char *name)
{
    return capi__stmt_ok(stmt) && name != NULL ? (int)stmt_param_index(stmt->stmt, name) : 0;
}

int
sqlite3_clear_bindings(sqlite3_stmt *stmt)
{
    if (!capi__stmt_ok(stmt)) return SQLITE_MISUSE;
    stmt_clear_bindings(stmt->stmt);
    pointer__free(stmt->pointers);
    stmt->pointers = NULL;
    return SQLITE_OK;
}

int
sqlite3_transfer_bindings(sqlite3_stmt *from, sqlite3_stmt *to)
{
    if (!capi__stmt_ok(from) || !capi__stmt_ok(to)) return SQLITE_MISUSE;
    if (stmt_param_count(from->stmt) != stmt_param_count(to->stmt)) return SQLITE_ERROR;
    for (u32 i = 0; i < stmt_param_count(from->stmt); i++) {
        Err err = stmt_bind(to->stmt, i, stmt_param_value(from->stmt, i));
        if (err != OK) return capi__result(to->db, err);
    }
    stmt_clear_bindings(from->stmt);
    return SQLITE_OK;
}

/* ---- questions ---- */

sqlite3 *
sqlite3_db_handle(sqlite3_stmt *stmt)
{
    return capi__stmt_ok(stmt) ? stmt->db : NULL;
}

const char *
sqlite3_sql(sqlite3_stmt *stmt)
{
    return capi__stmt_ok(stmt) ? stmt_sql(stmt->stmt) : NULL;
}

const char *
sqlite3_normalized_sql(sqlite3_stmt *stmt)
{
    if (!capi__stmt_ok(stmt)) return NULL;
    session_lock(stmt->db->session);
    Buf *text = &stmt->normalized;
    if (text->bytes == 0) {
        const char *sql = stmt_sql(stmt->stmt);
        if (sql_normalize(SLICE(sql, strlen(sql)), text) != OK) buf_free(text);
    }
    const char *answer = text->bytes == 0 ? NULL : (const char *)text->p;
    session_unlock(stmt->db->session);
    return answer;
}

int
sqlite3_stmt_readonly(sqlite3_stmt *stmt)
{
    return !capi__stmt_ok(stmt) || stmt_is_read_only(stmt->stmt);
}

int
sqlite3_stmt_busy(sqlite3_stmt *stmt)
{
    return capi__stmt_ok(stmt) && stmt_is_busy(stmt->stmt);
}

int
sqlite3_stmt_isexplain(sqlite3_stmt *stmt)
{
    bool query_plan;
    if (!capi__stmt_ok(stmt) || !stmt_is_explain(stmt->stmt, &query_plan)) return 0;
    return query_plan ? 2 : 1;
}

sqlite3_stmt *
sqlite3_next_stmt(sqlite3 *db, sqlite3_stmt *stmt)
{
    if (!capi__db_ok(db)) return NULL;
    return stmt == NULL ? db->first : stmt->next;
}

int
sqlite3_expired(sqlite3_stmt *stmt)
{
    return !capi__stmt_ok(stmt);
}

/* A statement's text says what it is: another mode needs another statement. */
int
sqlite3_stmt_explain(sqlite3_stmt *stmt, int mode)
{
    if (!capi__stmt_ok(stmt) || mode < 0 || mode > 2) return SQLITE_MISUSE;
    if (mode == sqlite3_stmt_isexplain(stmt)) return SQLITE_OK;
    return capi__fail(stmt->db, ERR_UNSUPPORTED, "sqlite3_stmt_explain is not supported");
}

static u64
stmt_status(sqlite3_stmt *stmt, int what, bool reset)
{
    switch (what) {
    case SQLITE_STMTSTATUS_FULLSCAN_STEP:
        return stmt_counter(stmt->stmt, STMT_COUNT_FULL_SCAN_ROWS, reset);
    case SQLITE_STMTSTATUS_SORT: return stmt_counter(stmt->stmt, STMT_COUNT_SORTS, reset);
    case SQLITE_STMTSTATUS_AUTOINDEX: return stmt_counter(stmt->stmt, STMT_COUNT_BUILD_ROWS, reset);
    case SQLITE_STMTSTATUS_VM_STEP: return stmt_counter(stmt->stmt, STMT_COUNT_STEPS, reset);
    case SQLITE_STMTSTATUS_REPREPARE:
        return stmt_counter(stmt->stmt, STMT_COUNT_PREPARED_AGAIN, reset);
    case SQLITE_STMTSTATUS_RUN: {
        u32 runs = stmt->runs;
        if (reset) stmt->runs = 0;
        return runs;
    }
    case SQLITE_STMTSTATUS_MEMUSED: return stmt_memory_bytes(stmt->stmt);
    default: return 0; /* There are no Bloom filters. */
    }
}

int
sqlite3_stmt_status(sqlite3_stmt *stmt, int what, int reset)
{
    if (!capi__stmt_ok(stmt)) return 0;
    u64 value = stmt_status(stmt, what, reset != 0);
    return (int)MIN_OF(value, (u64)INT_MAX);
}
