/*
 * quack_run.c -- prepare, bind, step, answer.
 *
 * A run is one statement over one or many rows of parameters.  Three rules shape it:
 *
 *   1. A statement that writes is finished before anything about it is sent, so its rows gather in
 *      the output up to response_bytes_max; one that only reads streams with back-pressure.
 *   2. Many rows of parameters outside a transaction are one transaction: all or nothing.  As
 *      nothing has been shown, a lost write conflict is simply tried again.
 *   3. An error's text is copied into quack->fault before anything else is called on the session.
 */
#include <stdio.h>
#include <string.h>

#include "rt/task.h"
#include "rt/time.h"
#include "server/quack/quack_run.h"

#define CONFLICT_TRIES 20

typedef struct Run {
    Conn *conn;
    const JsonNode *id;
    Stmt *stmt;
    i64 limit; /* Rows to send at most; -1: all. */
    bool writes, has_columns;
    bool hold;    /* Rule 1: send nothing before the end. */
    size_t start; /* Where the reply begins in conn->out. */
    size_t held;  /* Taken from the server's budget. */
    bool cols_written;
    i64 rows;    /* Sent or held. */
    bool more;   /* The limit cut some. */
    i64 changes; /* Rows changed. */
    Fault *fault;
    i64 fault_row;
} Run;

static Session *
session_of(const Conn *conn)
{
    return seat__session(conn->seat);
}

/* Answer with a fault of the protocol. */
static Err
refuse(Conn *conn, const JsonNode *id, int code, const char *name, const char *text)
{
    Fault *fault = &conn->quack->fault;
    server__count(conn->server, COUNT_ERRORS, 1);
    fault__set(fault, code, name, "%s", text);
    return quack__error_reply(conn, id, fault, -1);
}

/* ---- statements ---- */

/* Have a seat with an engine. */
static bool
seat_ready(Conn *conn, Fault *fault)
{
    if (conn->seat == NULL) {
        const char *name = conn->quack->database[0] != 0 ? conn->quack->database : "default";
        ServedDb *db = db__find(conn->server, SLICE(name, strlen(name)), fault);
        if (db == NULL) return false;
        Seat *seat = seat__open(db, protocol_quack.name, rt_socket_peer_address(conn->socket));
        if (seat == NULL) {
            fault__set(fault, 7, "SQLITE_NOMEM", "out of memory");
            return false;
        }
        seat->rights = conn->rights;
        seat->home = conn->socket;
        seat__begin(seat, conn->socket);
        rt_mutex_lock(&conn->lock);
        conn->seat = seat;
        rt_mutex_unlock(&conn->lock);
    }
    return seat__ready(conn->seat, fault);
}

/* Prepare the one statement of `sql`.  False: *fault. */
static bool
prepare_one(Conn *conn, Slice sql, Stmt **stmt_out, Fault *fault)
{
    size_t rest = 0;
    *stmt_out = NULL;
    if (!seat_ready(conn, fault)) return false;
    if (!seat__prepare(conn->seat, sql, stmt_out, &rest, fault)) return false;
    if (*stmt_out != NULL && rest == 0) return true;
    seat__release(conn->seat, *stmt_out);
    const char *text = *stmt_out == NULL
                           ? "no statement"
                           : "one statement a request; {\"script\": ...} runs several";
    *stmt_out = NULL;
    fault__set(fault, 21, "QUACK_REQUEST", "%s", text);
    return false;
}

/* ---- replies of a run ---- */

static Err
columns_write(Stmt *stmt, JsonWriter *writer)
{
    u32 columns = stmt_column_count(stmt);
    json_key(writer, "cols");
    json_begin_array(writer);
    for (u32 i = 0; i < columns; i++) {
        const char *name = stmt_column(stmt, i)->name;
        json_write_string(writer, name != NULL ? name : "");
    }
    json_end_array(writer);
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
    Err err = columns_write(run->stmt, &writer);
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
        json_write_int(&writer, session_last_rowid(session_of(conn)));
    }
    if (run->more) {
        json_key(&writer, "more");
        json_write_bool(&writer, true);
    }
    if (!session_autocommit(session_of(conn))) {
        json_key(&writer, "tx");
        json_write_bool(&writer, true);
    }
    return quack__reply_end(conn, &writer, start);
}

/* ---- stepping ---- */

static bool
run_fail(Run *run, int code, const char *name, const char *text)
{
    fault__set(run->fault, code, name, "%s", text);
    return false;
}

/* Rows that are held count in the server's budget. */
static bool
rows_hold(Run *run)
{
    Conn *conn = run->conn;
    size_t bytes = conn->out.bytes - run->start;
    if (bytes > conn->server->options.response_bytes_max)
        return run_fail(run, 18, "QUACK_LIMIT", "the rows of a writing statement are too many");
    if (bytes <= run->held + CONN_FLUSH_BYTES) return true;
    if (!server__hold(conn->server, bytes - run->held))
        return run_fail(run, 7, "QUACK_LIMIT", "too many answers are waiting to be sent");
    run->held = bytes;
    return true;
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
        return run_fail(run, 7, "SQLITE_NOMEM", "out of memory");
    run->rows++;
    if (run->hold) return rows_hold(run);
    if (conn->out.bytes >= CONN_FLUSH_BYTES) {
        if (!conn__flush(conn)) return run_fail(run, 9, "SQLITE_INTERRUPT", "interrupted");
        run->start = 0;
    }
    return true;
}

/* Step the bound statement to its end, or to its limit. */
static bool
steps_to_end(Run *run)
{
    bool row = true, good = true;
    while (good && row) {
        good = seat__step(run->conn->seat, run->stmt, &row, run->fault);
        if (good && row) good = row_take(run);
        if (run->more && !run->writes) break;
    }
    Err err = stmt_reset(run->stmt);
    (void)err; /* In run->fault already. */
    return good;
}

/* The same, counted. */
static bool
steps_run(Run *run)
{
    Seat *seat = run->conn->seat;
    Session *session = session_of(run->conn);
    const char *sql = stmt_sql(run->stmt);
    i64 before = session_total_changes(session), rows = run->rows;
    u64 started_ns = rt_now_ns();
    StmtKind kind = stmt_kind(run->stmt);
    seat__statement(seat, SLICE(sql, strlen(sql)));
    bool good = steps_to_end(run);
    seat__count(seat, kind, started_ns, (u64)(run->rows - rows), good ? NULL : run->fault);
    if (good && run->writes && session_total_changes(session) != before)
        run->changes += session_changes(session);
    return good;
}

/* All rows of parameters, in order. */
static bool
rows_run(Run *run, const JsonNode *rows)
{
    i64 row = 0;
    for (const JsonNode *params = rows->u.first; params != NULL; params = params->next, row++) {
        if (!quack__bind(run->conn, run->stmt, params, run->fault) || !steps_run(run)) {
            run->fault_row = row;
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
    Session *session = session_of(conn);
    for (u32 attempt = 1;; attempt++) {
        Err err = session_exec(session, SLICE_LITERAL("BEGIN"));
        if (err != OK) {
            seat__fault(conn->seat, err, run->fault);
            return false;
        }
        bool good = rows != NULL
                        ? rows_run(run, rows)
                        : quack__bind(conn, run->stmt, params, run->fault) && steps_run(run);
        if (good) {
            err = session_exec(session, SLICE_LITERAL("COMMIT"));
            if (err == OK) return true;
            seat__fault(conn->seat, err, run->fault);
        }
        session_rollback(session);
        if (run->fault->code != err_sqlite(ERR_BUSY_SNAPSHOT) || attempt == CONFLICT_TRIES)
            return false;
        conn->out.bytes = run->start;
        run->rows = run->changes = 0;
        run->more = run->cols_written = false;
        run->fault_row = -1;
        rt_yield();
    }
}

static bool
stmt_run(Run *run, const JsonNode *request)
{
    Conn *conn = run->conn;
    const JsonNode *rows = json_member(request, "rows"), *params = json_member(request, "params");
    const JsonNode *limit = json_member(request, "limit");
    if (limit != NULL && (!json_get_int(limit, &run->limit) || run->limit < 0))
        return run_fail(run, 21, "QUACK_REQUEST", "limit is a count");
    if (rows != NULL && (rows->type != JSON_ARRAY || params != NULL))
        return run_fail(run, 21, "QUACK_REQUEST", "rows is an array of params, instead of params");
    if (run->writes && session_autocommit(session_of(conn)) && (rows != NULL || run->has_columns) &&
        stmt_kind(run->stmt) <= STMT_KIND_DELETE)
        return transaction_run(run, rows, params);
    if (rows != NULL) return rows_run(run, rows);
    return quack__bind(conn, run->stmt, params, run->fault) && steps_run(run);
}

/* Run a prepared statement for a request and answer it. */
static Err
stmt_answer(Conn *conn, const JsonNode *request, const JsonNode *id, Stmt *stmt)
{
    Run run = {.conn = conn, .id = id, .stmt = stmt, .limit = -1, .start = conn->out.bytes};
    run.has_columns = stmt_column_count(stmt) > 0;
    run.writes = !stmt_is_read_only(stmt);
    run.hold = run.writes;
    run.fault = &conn->quack->fault;
    run.fault_row = -1;
    bool good = !seat__has_lost_transaction(conn->seat, stmt, run.fault) && stmt_run(&run, request);
    stmt_clear_bindings(stmt);
    if (!good && run.hold) conn->out.bytes = run.start;
    server__release(conn->server, run.held);
    return good ? done_reply(&run) : quack__error_reply(conn, id, run.fault, run.fault_row);
}

/* ---- requests ---- */

Err
quack__query(Conn *conn, const JsonNode *request, const JsonNode *id, const JsonNode *value)
{
    Slice sql;
    Stmt *stmt = NULL;
    Fault *fault = &conn->quack->fault;
    if (!json_get_text(value, &sql)) return refuse(conn, id, 21, "QUACK_REQUEST", "q is a string");
    bool read_only;
    sql = seat__begin_text(sql, &read_only);
    if (!prepare_one(conn, sql, &stmt, fault)) {
        server__count(conn->server, COUNT_ERRORS, 1);
        return quack__error_reply(conn, id, fault, -1);
    }
    Err err = stmt_answer(conn, request, id, stmt);
    seat__release(conn->seat, stmt);
    if (read_only) seat__set_read_only_txn(conn->seat);
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
    if (handle == NULL) return refuse(conn, id, 21, "QUACK_HANDLE", "no such handle");
    return stmt_answer(conn, request, id, handle->stmt);
}

bool
quack__handle_close(Conn *conn, i64 number)
{
    QuackState *quack = conn->quack;
    QuackHandle *handle = handle_find(quack, number);
    if (handle == NULL) return false;
    seat__release(conn->seat, handle->stmt);
    *handle = quack->handle[--quack->handle_count];
    return true;
}

/* Room for one more handle. */
static bool
handle_reserve(Conn *conn, Fault *fault)
{
    QuackState *quack = conn->quack;
    if (quack->handle_count >= conn->server->options.handles_max) {
        fault__set(fault, 18, "QUACK_LIMIT", "too many prepared statements; close some");
        return false;
    }
    if (quack->handle_count < quack->handle_capacity) return true;
    u32 capacity = quack->handle_capacity == 0 ? 8 : 2 * quack->handle_capacity;
    QuackHandle *handle = mem_realloc(quack->handle, capacity * sizeof(*handle));
    if (handle == NULL) {
        fault__set(fault, 7, "SQLITE_NOMEM", "out of memory");
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
    Stmt *stmt = NULL;
    QuackState *quack = conn->quack;
    (void)request;
    if (!json_get_text(value, &sql))
        return refuse(conn, id, 21, "QUACK_REQUEST", "prepare is a string");
    if (!handle_reserve(conn, &quack->fault) || !prepare_one(conn, sql, &stmt, &quack->fault)) {
        server__count(conn->server, COUNT_ERRORS, 1);
        return quack__error_reply(conn, id, &quack->fault, -1);
    }
    JsonWriter writer;
    size_t start = conn->out.bytes;
    QuackHandle *handle = &quack->handle[quack->handle_count++];
    *handle = (QuackHandle){++quack->next_handle, stmt};
    quack__reply_begin(conn, id, &writer);
    json_key(&writer, "handle");
    json_write_int(&writer, handle->number);
    json_key(&writer, "params");
    json_write_int(&writer, (i64)stmt_param_count(stmt));
    if (columns_write(stmt, &writer) != OK) {
        quack->handle_count--;
        seat__release(conn->seat, stmt);
    }
    return quack__reply_end(conn, &writer, start);
}

/* Several statements, one after the other; rows are discarded.  Stops at the first error. */
Err
quack__script(Conn *conn, const JsonNode *request, const JsonNode *id, const JsonNode *value)
{
    Slice sql;
    Fault *fault = &conn->quack->fault;
    (void)request;
    if (!json_get_text(value, &sql))
        return refuse(conn, id, 21, "QUACK_REQUEST", "script is a string");
    if (!seat_ready(conn, fault)) return quack__error_reply(conn, id, fault, -1);
    Run run = {.conn = conn, .id = id, .limit = 0, .fault = fault, .writes = true};
    Session *session = session_of(conn);
    i64 before = session_total_changes(session);
    Slice rest = sql;
    while (rest.bytes > 0) {
        size_t used = 0;
        Stmt *stmt = NULL;
        Err err = stmt_prepare(session, rest, &stmt, &used);
        if (err != OK) {
            seat__fault(conn->seat, err, fault);
            if (fault->offset >= 0) fault->offset += (i32)(rest.p - sql.p);
            return quack__error_reply(conn, id, fault, -1);
        }
        rest = (Slice){rest.p + used, rest.bytes - used};
        if (stmt == NULL) continue;
        run.stmt = stmt;
        bool good = !seat__has_lost_transaction(conn->seat, stmt, fault) && steps_run(&run);
        err = stmt_finalize(stmt);
        if (!good) return quack__error_reply(conn, id, fault, -1);
    }
    run.more = false;
    run.changes = session_total_changes(session) - before;
    return done_reply(&run);
}

const char *
quack__why_stays(const Conn *conn)
{
    const Seat *seat = conn->seat;
    if (conn->quack->handle_count > 0) return "close the prepared statements first";
    if (seat != NULL && seat->engine != NULL && !session_autocommit(seat__session(seat)))
        return "a transaction is open";
    return NULL;
}

Err
quack__use(Conn *conn, const JsonNode *request, const JsonNode *id, const JsonNode *value)
{
    Slice name;
    QuackState *quack = conn->quack;
    (void)request;
    if (!json_get_text(value, &name) || !db__name_ok(name))
        return refuse(conn, id, 21, "QUACK_REQUEST", "use is the name of a database");
    if (conn->server->options.dir == NULL)
        return refuse(conn, id, 14, "SQLITE_CANTOPEN", "this server has one database only");
    if (quack->one_database && !slice_equal(name, SLICE(quack->database, strlen(quack->database))))
        return refuse(conn, id, 23, "QUACK_AUTH", "the token is for another database");
    const char *why = quack__why_stays(conn);
    if (why != NULL) return refuse(conn, id, 21, "QUACK_REQUEST", why);
    ServedDb *db = db__find(conn->server, name, &quack->fault);
    if (db == NULL || db__open(db, &quack->fault) != OK)
        return quack__error_reply(conn, id, &quack->fault, -1);
    if (!PLANT(220)) quack__seat_close(conn);
    memset(quack->database, 0, sizeof(quack->database));
    memcpy(quack->database, name.p, name.bytes);

    JsonWriter writer;
    size_t start = conn->out.bytes;
    quack__reply_begin(conn, id, &writer);
    json_key(&writer, "done");
    json_write_int(&writer, 0);
    return quack__reply_end(conn, &writer, start);
}
