/*
 * quack_run.c -- prepare, bind, step, answer.
 *
 * A run is one statement over one or many rows of parameters.  Three rules shape it:
 *
 *   1. A statement that writes is finished before anything about it is sent, so its rows gather in
 *      the output up to response_bytes_max; one that only reads streams with back-pressure.
 *   2. Many rows of parameters outside a transaction are one transaction: all or nothing.  As
 *      nothing has been shown, a lost write conflict is simply tried again.
 *   3. An error's text is copied before anything else is called on the connection.
 */
#include <stdio.h>
#include <string.h>

#include "rt/task.h"
#include "server/quack/quack_run.h"

#define CACHED_TEXT_MAX ((size_t)4 << 10)
#define CONFLICT_TRIES  20

typedef struct Run {
    Conn *conn;
    const JsonNode *id;
    weft_stmt *stmt;
    i64 limit; /* Rows to send at most; -1: all. */
    bool writes, has_columns;
    bool hold;    /* Rule 1: send nothing before the end. */
    size_t start; /* Where the reply begins in conn->out. */
    bool cols_written;
    i64 rows;    /* Sent or held. */
    bool more;   /* The limit cut some. */
    i64 changes; /* Rows changed. */
    Failure failure;
} Run;

static Failure
failure_plain(int code, const char *name, const char *text)
{
    return (Failure){
        .code = code, .name = name, .text = SLICE(text, strlen(text)), .offset = -1, .row = -1};
}

/* The text for a request that somebody stopped. */
static const char *
end_text(Conn *conn)
{
    rt_mutex_lock(&conn->lock);
    u8 why = conn->ended_by;
    rt_mutex_unlock(&conn->lock);
    switch ((ConnEnd)why) {
    case END_TIMEOUT: return "statement time limit passed";
    case END_DRAIN: return "the server is shutting down";
    case END_CANCEL:
    case END_PEER:
    case END_NONE: break;
    }
    return "interrupted";
}

/* The connection's last error, copied. */
static Failure
failure_of_db(Conn *conn, int code)
{
    if (conn->db == NULL) return failure_plain(WEFT_NOMEM, "SQLITE_NOMEM", "out of memory");
    const char *text = (code & 0xff) == WEFT_INTERRUPT ? end_text(conn) : weft_errmsg(conn->db);
    Buf *scratch = &conn->quack->scratch;
    Failure failure = failure_plain(code, weft_errname(code), "out of memory");
    failure.offset = (i32)weft_error_offset(conn->db);
    buf_clear(scratch);
    if (buf_append_text(scratch, text) == OK) failure.text = buf_slice(scratch);
    return failure;
}

/* ---- statements ---- */

/* Prepare the one statement of `sql`; *stmt_out NULL for blank text.  False: *failure_out. */
static bool
prepare_one(Conn *conn, Slice sql, weft_stmt **stmt_out, Failure *failure_out)
{
    *stmt_out = NULL;
    if (quack__reaches_files(sql)) {
        *failure_out = failure_plain(23, "SQLITE_AUTH", "not authorized");
        return false;
    }
    int code = conn__open(conn);
    if (code != WEFT_OK) {
        *failure_out = failure_plain(code, weft_errname(code), "the database cannot be opened");
        return false;
    }
    const char *text = (const char *)sql.p, *tail = NULL;
    code = weft_prepare(conn->db, text, (ptrdiff_t)sql.bytes, stmt_out, &tail);
    if (code != WEFT_OK) {
        *failure_out = failure_of_db(conn, code);
        return false;
    }
    size_t used = tail != NULL ? (size_t)(tail - text) : sql.bytes;
    if (*stmt_out == NULL || used >= sql.bytes) return true;
    weft_stmt *second = NULL;
    code = weft_prepare(conn->db, tail, (ptrdiff_t)(sql.bytes - used), &second, NULL);
    weft_finalize(second);
    if (code == WEFT_OK && second == NULL) return true; /* Only blanks and comments. */
    weft_finalize(*stmt_out);
    *stmt_out = NULL;
    *failure_out = failure_plain(WEFT_MISUSE, "QUACK_REQUEST",
                                 "one statement a request; {\"script\": ...} runs several");
    return false;
}

static QuackCached *
cache_find(QuackState *quack, Slice sql)
{
    for (u32 i = 0; i < QUACK_CACHE_SIZE; i++) {
        QuackCached *cached = &quack->cache[i];
        if (cached->stmt != NULL && cached->text_bytes == sql.bytes &&
            memcmp(cached->text, sql.p, sql.bytes) == 0)
            return cached;
    }
    return NULL;
}

static void
cached_drop(QuackCached *cached)
{
    weft_finalize(cached->stmt);
    mem_free(cached->text);
    *cached = (QuackCached){0};
}

/* Keep a statement for the next request with the same text; finalize it where that cannot be. */
static void
cache_keep(QuackState *quack, Slice sql, weft_stmt *stmt)
{
    QuackCached *slot = &quack->cache[0];
    char *text = sql.bytes <= CACHED_TEXT_MAX ? mem_strndup(sql.p, sql.bytes) : NULL;
    if (text == NULL) {
        weft_finalize(stmt);
        return;
    }
    for (u32 i = 1; i < QUACK_CACHE_SIZE; i++)
        if (quack->cache[i].last_use < slot->last_use) slot = &quack->cache[i];
    if (slot->stmt != NULL) cached_drop(slot);
    *slot = (QuackCached){stmt, text, sql.bytes, ++quack->uses};
}

/* ---- replies of a run ---- */

static Err
columns_write(Conn *conn, weft_stmt *stmt, JsonWriter *writer)
{
    int columns = weft_column_count(stmt);
    json_key(writer, "cols");
    json_begin_array(writer);
    for (int i = 0; i < columns; i++) {
        const char *name = weft_column_name(stmt, i);
        json_write_string(writer, name != NULL ? name : "");
    }
    json_end_array(writer);
    (void)conn;
    return writer->err;
}

static Err
cols_reply(Run *run)
{
    JsonWriter writer;
    size_t start = run->conn->out.bytes;
    if (run->cols_written || !run->has_columns) return OK;
    run->cols_written = true;
    quack__reply_begin(run->conn, run->id, &writer);
    Err err = columns_write(run->conn, run->stmt, &writer);
    (void)err; /* The writer keeps it. */
    return quack__reply_end(run->conn, &writer, start);
}

static Err
done_reply(Run *run)
{
    Conn *conn = run->conn;
    JsonWriter writer;
    Err err = cols_reply(run);
    if (err != OK) return err;
    size_t start = conn->out.bytes;
    quack__reply_begin(conn, run->id, &writer);
    json_key(&writer, "done");
    json_write_int(&writer, run->has_columns ? run->rows : run->changes);
    if (run->writes) {
        json_key(&writer, "changes");
        json_write_int(&writer, run->changes);
        json_key(&writer, "rowid");
        json_write_int(&writer, weft_last_insert_rowid(conn->db));
    }
    if (run->more) {
        json_key(&writer, "more");
        json_write_bool(&writer, true);
    }
    if (!weft_autocommit(conn->db)) {
        json_key(&writer, "tx");
        json_write_bool(&writer, true);
    }
    return quack__reply_end(conn, &writer, start);
}

/* ---- stepping ---- */

static bool
run_fail(Run *run, Failure failure)
{
    run->failure = failure;
    return false;
}

/* One row is there: append it, send when enough has gathered.  False: the run ends. */
static bool
row_take(Run *run)
{
    Conn *conn = run->conn;
    if (run->limit >= 0 && run->rows >= run->limit) {
        run->more = true;
        return true;
    }
    if (cols_reply(run) != OK || quack__row(conn, run->stmt, run->id) != OK)
        return run_fail(run, failure_plain(WEFT_NOMEM, "SQLITE_NOMEM", "out of memory"));
    run->rows++;
    rt_fetch_add(&conn->server->rows, 1);
    if (run->hold) {
        if (conn->out.bytes - run->start > conn->server->options.response_bytes_max)
            return run_fail(run, failure_plain(WEFT_TOOBIG, "QUACK_LIMIT",
                                               "the rows of a writing statement are too many"));
        return true;
    }
    if (conn->out.bytes >= CONN_FLUSH_BYTES) {
        if (!conn__flush(conn))
            return run_fail(run, failure_plain(WEFT_INTERRUPT, "SQLITE_INTERRUPT", "interrupted"));
        run->start = 0;
    }
    return true;
}

/* Step the bound statement to its end, or to its limit.  False: run->failure is set. */
static bool
steps_run(Run *run)
{
    Conn *conn = run->conn;
    i64 before = weft_total_changes(conn->db);
    for (;;) {
        if (rt_load_relaxed(&conn->stop) != 0) {
            run->failure = failure_plain(WEFT_INTERRUPT, "SQLITE_INTERRUPT", end_text(conn));
            weft_reset(run->stmt);
            return false;
        }
        int code = weft_step(run->stmt);
        if (code == WEFT_DONE) break;
        if (code != WEFT_ROW) {
            run->failure = failure_of_db(conn, code);
            weft_reset(run->stmt);
            return false;
        }
        if (!row_take(run)) {
            weft_reset(run->stmt);
            return false;
        }
        if (run->more && !run->writes) break;
    }
    weft_reset(run->stmt);
    if (run->writes && weft_total_changes(conn->db) != before)
        run->changes += weft_changes(conn->db);
    return true;
}

/* All rows of parameters, in order. */
static bool
rows_run(Run *run, const JsonNode *rows)
{
    i64 row = 0;
    for (const JsonNode *params = rows->u.first; params != NULL; params = params->next, row++) {
        if (!quack__bind(run->conn, run->stmt, params, &run->failure) || !steps_run(run)) {
            run->failure.row = row;
            return false;
        }
        if (run->more && !run->writes) break;
    }
    return true;
}

/* Rule 2: in one transaction of our own.  On a lost conflict everything is done again. */
static bool
transaction_run(Run *run, const JsonNode *rows, const JsonNode *params)
{
    Conn *conn = run->conn;
    for (u32 attempt = 1;; attempt++) {
        int code = weft_exec(conn->db, "BEGIN");
        if (code != WEFT_OK) return run_fail(run, failure_of_db(conn, code));
        bool good = rows != NULL
                        ? rows_run(run, rows)
                        : quack__bind(conn, run->stmt, params, &run->failure) && steps_run(run);
        if (good) {
            code = weft_exec(conn->db, "COMMIT");
            if (code == WEFT_OK) return true;
            run->failure = failure_of_db(conn, code);
        }
        if (!weft_autocommit(conn->db)) {
            Buf kept = conn->quack->scratch; /* Holds the error's text. */
            conn->quack->scratch = (Buf){0};
            code = weft_exec(conn->db, "ROLLBACK");
            buf_free(&conn->quack->scratch);
            conn->quack->scratch = kept;
            if (code != WEFT_OK) conn->closing = true; /* Closing rolls back too. */
        }
        if (run->failure.code != WEFT_BUSY_SNAPSHOT || attempt == CONFLICT_TRIES) return false;
        conn->out.bytes = run->start;
        run->rows = run->changes = 0;
        run->more = run->cols_written = false;
        rt_yield();
    }
}

/* Run a prepared statement for a request and answer it. */
static Err
stmt_answer(Conn *conn, const JsonNode *request, const JsonNode *id, weft_stmt *stmt)
{
    const JsonNode *rows = json_member(request, "rows"), *params = json_member(request, "params");
    const JsonNode *limit = json_member(request, "limit");
    Run run = {.conn = conn, .id = id, .stmt = stmt, .limit = -1, .start = conn->out.bytes};
    run.has_columns = weft_column_count(stmt) > 0;
    run.writes = !weft_stmt_readonly(stmt);
    run.hold = run.writes;
    bool good;
    if (limit != NULL && (!json_get_int(limit, &run.limit) || run.limit < 0)) {
        good = run_fail(&run, failure_plain(WEFT_MISUSE, "QUACK_REQUEST", "limit is a count"));
    } else if (rows != NULL && (rows->type != JSON_ARRAY || params != NULL)) {
        good = run_fail(&run, failure_plain(WEFT_MISUSE, "QUACK_REQUEST",
                                            "rows is an array of params, instead of params"));
    } else if (run.writes && weft_autocommit(conn->db) && (rows != NULL || run.has_columns)) {
        good = transaction_run(&run, rows, params);
    } else if (rows != NULL) {
        good = rows_run(&run, rows);
    } else {
        good = quack__bind(conn, stmt, params, &run.failure) && steps_run(&run);
    }
    weft_clear_bindings(stmt);
    if (good) return done_reply(&run);
    if (run.hold) conn->out.bytes = run.start;
    return quack__error_reply(conn, id, &run.failure);
}

/* ---- requests ---- */

Err
quack__query(Conn *conn, const JsonNode *request, const JsonNode *id, const JsonNode *value)
{
    Slice sql;
    Failure failure;
    if (!json_get_text(value, &sql)) {
        failure = failure_plain(WEFT_MISUSE, "QUACK_REQUEST", "q is a string");
        return quack__error_reply(conn, id, &failure);
    }
    QuackCached *cached = cache_find(conn->quack, sql);
    if (cached != NULL) {
        cached->last_use = ++conn->quack->uses;
        return stmt_answer(conn, request, id, cached->stmt);
    }
    weft_stmt *stmt = NULL;
    if (!prepare_one(conn, sql, &stmt, &failure)) return quack__error_reply(conn, id, &failure);
    if (stmt == NULL) {
        failure = failure_plain(WEFT_MISUSE, "QUACK_REQUEST", "no statement");
        return quack__error_reply(conn, id, &failure);
    }
    Err err = stmt_answer(conn, request, id, stmt);
    cache_keep(conn->quack, sql, stmt);
    return err;
}

static QuackHandle *
handle_find(QuackState *quack, i64 number)
{
    for (u32 i = 0; i < quack->handle_count; i++)
        if (quack->handle[i].number == number) return &quack->handle[i];
    return NULL;
}

Err
quack__exec(Conn *conn, const JsonNode *request, const JsonNode *id, const JsonNode *value)
{
    i64 number = 0;
    QuackHandle *handle = json_get_int(value, &number) ? handle_find(conn->quack, number) : NULL;
    if (handle == NULL) {
        Failure failure = failure_plain(WEFT_MISUSE, "QUACK_HANDLE", "no such handle");
        return quack__error_reply(conn, id, &failure);
    }
    return stmt_answer(conn, request, id, handle->stmt);
}

bool
quack__handle_close(Conn *conn, i64 number)
{
    QuackState *quack = conn->quack;
    QuackHandle *handle = handle_find(quack, number);
    if (handle == NULL) return false;
    weft_finalize(handle->stmt);
    *handle = quack->handle[--quack->handle_count];
    return true;
}

/* Room for one more handle.  False: *failure_out. */
static bool
handle_reserve(Conn *conn, Failure *failure_out)
{
    QuackState *quack = conn->quack;
    if (quack->handle_count >= conn->server->options.handles_max) {
        *failure_out = failure_plain(WEFT_TOOBIG, "QUACK_LIMIT",
                                     "too many prepared statements; close some");
        return false;
    }
    if (quack->handle_count < quack->handle_capacity) return true;
    u32 capacity = quack->handle_capacity == 0 ? 8 : 2 * quack->handle_capacity;
    QuackHandle *handle = mem_realloc(quack->handle, capacity * sizeof(*handle));
    if (handle == NULL) {
        *failure_out = failure_plain(WEFT_NOMEM, "SQLITE_NOMEM", "out of memory");
        return false;
    }
    quack->handle = handle;
    quack->handle_capacity = capacity;
    return true;
}

Err
quack__prepare(Conn *conn, const JsonNode *request, const JsonNode *id, const JsonNode *value)
{
    Slice sql = SLICE_NONE;
    Failure failure;
    weft_stmt *stmt = NULL;
    QuackState *quack = conn->quack;
    (void)request;
    if (!json_get_text(value, &sql))
        failure = failure_plain(WEFT_MISUSE, "QUACK_REQUEST", "prepare is a string");
    else if (handle_reserve(conn, &failure) && prepare_one(conn, sql, &stmt, &failure) &&
             stmt == NULL)
        failure = failure_plain(WEFT_MISUSE, "QUACK_REQUEST", "no statement");
    if (stmt == NULL) return quack__error_reply(conn, id, &failure);

    JsonWriter writer;
    size_t start = conn->out.bytes;
    QuackHandle *handle = &quack->handle[quack->handle_count++];
    *handle = (QuackHandle){++quack->next_handle, stmt};
    quack__reply_begin(conn, id, &writer);
    json_key(&writer, "handle");
    json_write_int(&writer, handle->number);
    json_key(&writer, "params");
    json_write_int(&writer, weft_bind_count(stmt));
    if (columns_write(conn, stmt, &writer) != OK) {
        quack->handle_count--;
        weft_finalize(stmt);
    }
    return quack__reply_end(conn, &writer, start);
}

/* Several statements, one after the other; rows are discarded.  Stops at the first error. */
Err
quack__script(Conn *conn, const JsonNode *request, const JsonNode *id, const JsonNode *value)
{
    Slice sql;
    Failure failure;
    (void)request;
    if (!json_get_text(value, &sql)) {
        failure = failure_plain(WEFT_MISUSE, "QUACK_REQUEST", "script is a string");
        return quack__error_reply(conn, id, &failure);
    }
    Run run = {.conn = conn, .id = id, .limit = 0};
    int code = conn__open(conn);
    if (code != WEFT_OK) {
        failure = failure_plain(code, weft_errname(code), "the database cannot be opened");
        return quack__error_reply(conn, id, &failure);
    }
    i64 before = weft_total_changes(conn->db);
    Slice rest = sql;
    while (rest.bytes > 0) {
        const char *tail = NULL;
        weft_stmt *stmt = NULL;
        if (quack__reaches_files(rest)) {
            failure = failure_plain(23, "SQLITE_AUTH", "not authorized");
            return quack__error_reply(conn, id, &failure);
        }
        code = weft_prepare(conn->db, (const char *)rest.p, (ptrdiff_t)rest.bytes, &stmt, &tail);
        if (code != WEFT_OK) {
            failure = failure_of_db(conn, code);
            if (failure.offset >= 0) failure.offset += (i32)(rest.p - sql.p);
            return quack__error_reply(conn, id, &failure);
        }
        size_t used = tail != NULL ? (size_t)(tail - (const char *)rest.p) : rest.bytes;
        rest = (Slice){rest.p + used, rest.bytes - used};
        if (stmt == NULL) continue;
        run.stmt = stmt;
        run.writes = true; /* Its rows are discarded, but it runs to the end. */
        bool good = steps_run(&run);
        weft_finalize(stmt);
        if (!good) return quack__error_reply(conn, id, &run.failure);
    }
    run.has_columns = false;
    run.more = false;
    run.changes = weft_total_changes(conn->db) - before;
    return done_reply(&run);
}

void
quack__free(QuackState *quack)
{
    if (quack == NULL) return;
    for (u32 i = 0; i < quack->handle_count; i++)
        weft_finalize(quack->handle[i].stmt);
    for (u32 i = 0; i < QUACK_CACHE_SIZE; i++)
        if (quack->cache[i].stmt != NULL) cached_drop(&quack->cache[i]);
    mem_free(quack->handle);
    arena_free(&quack->arena);
    buf_free(&quack->scratch);
    mem_free(quack);
}
