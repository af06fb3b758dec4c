/*
 * http.c -- pipelines and cursors over HTTP.
 *
 * A pipeline's results are gathered and sent with their length; a cursor streams.  A protocol error
 * ends the stream at once, since the client gives it up.
 */
#include <stdio.h>
#include <string.h>

#include "server/hrana/hrana_http.h"
#include "server/hrana/stream.h"

#define STORED_MAX      50u
#define STORED_BYTES    ((size_t)20 << 10)
#define CURSOR_FLUSH    ((size_t)32 << 10)
#define ARENA_KEEP_NONE 0

/* One request's work. */
typedef struct Work {
    Conn *conn;
    Server *server;
    Arena arena;
    HranaError error;
    Fault fault;
    Buf out;
    HranaWriter writer;
    Stream *stream;
} Work;

static void
work_begin(Work *work, Conn *conn, bool is_pb, u32 version)
{
    *work = (Work){.conn = conn, .server = conn->server};
    arena_init(&work->arena, NULL);
    hrana__writer_init(&work->writer, &work->out, is_pb, version, conn->server);
}

static void
work_end(Work *work)
{
    server__release(work->server, work->writer.held);
    arena_free(&work->arena);
    buf_free(&work->out);
    fault__free(&work->fault);
}

/* ---- refusals ---- */

static void
reply_bad(Work *work, Err err)
{
    if (err == ERR_NOMEM)
        http__reply_error(work->conn, 500, "SQLITE_NOMEM", "out of memory");
    else
        http__reply_error(work->conn, 400, "HRANA_PROTO_ERROR", work->error.text);
}

static void
reply_fault(Work *work, int status)
{
    char code[48];
    Slice text = fault__text(&work->fault);
    char copy[256];
    snprintf(copy, sizeof(copy), "%.*s", (int)MIN_OF(text.bytes, sizeof(copy) - 1),
             (const char *)text.p);
    hrana__code(&work->fault, code, sizeof(code));
    http__reply_error(work->conn, status, code, copy);
}

/* ---- streams ---- */

static bool
stream_take(Work *work, const HranaBody *body, ServedDb *db, SeatRights rights)
{
    Conn *conn = work->conn;
    if (!body->has_baton) {
        const char *peer = rt_socket_peer_address(conn->socket);
        work->stream = stream__open(db, rights, peer, &work->fault);
        if (work->stream != NULL) return true;
        reply_fault(work, 429);
        return false;
    }
    switch (stream__find(work->server, body->baton, db, rights, &work->stream)) {
    case BATON_OK: return true;
    case BATON_INVALID: http__reply_text(conn, 400, "Received an invalid baton"); break;
    case BATON_USED:
        http__reply_text(conn, 400, "Received a baton that has already been used");
        break;
    case BATON_EXPIRED:
        http__reply_error(conn, 400, "STREAM_EXPIRED", "The stream has expired due to inactivity");
        break;
    }
    return false;
}

static void
stream_drop(Work *work)
{
    if (work->stream != NULL) stream__close(work->server, work->stream);
    work->stream = NULL;
}

/* A request that breaks the protocol: its client gives the stream up, so its transaction goes now.
 */
static void
stream_give_up(Work *work, const HranaBody *body, const ServedDb *db, SeatRights rights)
{
    if (body->has_baton &&
        stream__find(work->server, body->baton, db, rights, &work->stream) == BATON_OK)
        stream_drop(work);
}

/* ---- pipeline ---- */

/* Field of StreamResponse. */
static const u8 pb_field[HRANA_KINDS] = {
    [HRANA_CLOSE] = 1,    [HRANA_EXECUTE] = 2,   [HRANA_BATCH] = 3,     [HRANA_SEQUENCE] = 4,
    [HRANA_DESCRIBE] = 5, [HRANA_STORE_SQL] = 6, [HRANA_CLOSE_SQL] = 7, [HRANA_GET_AUTOCOMMIT] = 8,
};

static bool
store_sql(Work *work, const HranaSql *sql)
{
    HranaStore *store = &work->stream->store;
    hrana__unstore(store, sql->id);
    if (store->count >= STORED_MAX) {
        fault__set(&work->fault, 21, "SQL_STORE_TOO_MANY", "Too many SQL texts are stored");
        return false;
    }
    if (sql->text.bytes > STORED_BYTES) {
        fault__set(&work->fault, 18, "SQL_STORE_TOO_LARGE", "The SQL text is too large to store");
        return false;
    }
    if (hrana__store(store, sql->id, sql->text) == OK) return true;
    fault__set(&work->fault, 7, "SQLITE_NOMEM", "out of memory");
    return false;
}

static bool
request_run(Work *work, const HranaRequest *request)
{
    Seat *seat = work->stream->seat;
    if (request->kind == HRANA_STORE_SQL && !store_sql(work, &request->sql)) return false;
    if (request->kind == HRANA_CLOSE_SQL) hrana__unstore(&work->stream->store, request->sql.id);
    return hrana__run(seat, request, &work->writer, &work->fault);
}

/* One StreamResult.  Statement errors are inside it. */
static void
result_write(Work *work, const HranaRequest *request)
{
    HranaWriter *writer = &work->writer;
    JsonWriter *json = &writer->json;
    HranaMark mark = hrana__mark(writer);
    size_t result = hrana__pb_begin(writer, 3), ok = hrana__pb_begin(writer, 1);
    size_t response = hrana__pb_begin(writer, pb_field[request->kind]);
    if (!writer->is_pb) {
        json_begin_object(json);
        json_key(json, "type");
        json_write_string(json, "ok");
        json_key(json, "response");
    }
    bool good = request_run(work, request);
    if (good) {
        hrana__pb_end(writer, response);
    } else {
        hrana__back(writer, mark);
        result = hrana__pb_begin(writer, 3);
        ok = hrana__pb_begin(writer, 2);
        if (!writer->is_pb) {
            json_begin_object(json);
            json_key(json, "type");
            json_write_string(json, "error");
            json_key(json, "error");
        }
        hrana__write_error(writer, &work->fault);
    }
    hrana__pb_end(writer, ok);
    hrana__pb_end(writer, result);
    if (!writer->is_pb) json_end_object(json);
}

static void
baton_write(HranaWriter *writer, const char *baton)
{
    JsonWriter *json = &writer->json;
    if (writer->is_pb) {
        if (baton != NULL) hrana__pb_bytes(writer, 1, SLICE(baton, BATON_BYTES));
        return;
    }
    json_key(json, "baton");
    if (baton != NULL)
        json_write_text(json, SLICE(baton, BATON_BYTES));
    else
        json_write_null(json);
    json_key(json, "base_url");
    json_write_null(json);
}

/* All requests, in order.  ERR_SQL: the protocol is broken. */
static Err
requests_run(Work *work, HranaBody *body, bool *closed_out)
{
    Err err = OK;
    *closed_out = false;
    seat__begin(work->stream->seat, work->conn->socket);
    for (u32 i = 0; err == OK && i < body->request_count; i++) {
        HranaRequest *request = &body->request[i];
        if (request->kind == HRANA_CLOSE)
            *closed_out = true;
        else if (*closed_out)
            err = hrana__bad(&work->error, false, "the stream is closed already");
        if (err == OK)
            err = hrana__resolve(request, &work->stream->store, &work->arena, &work->error);
        if (err == OK) result_write(work, request);
        if (work->writer.err != OK) err = work->writer.err;
    }
    seat__lost_told(work->stream->seat);
    seat__end(work->stream->seat);
    return err;
}

static void
pipeline_run(Work *work, HranaBody *body)
{
    HranaWriter *writer = &work->writer;
    JsonWriter *json = &writer->json;
    char baton[BATON_BYTES];
    bool closed;
    if (!writer->is_pb) {
        json_begin_object(json);
        json_key(json, "results");
        json_begin_array(json);
    }
    Err err = requests_run(work, body, &closed);
    if (err == OK) {
        if (!writer->is_pb) json_end_array(json);
        if (!closed) stream__baton(work->stream, baton);
        baton_write(writer, closed ? NULL : baton);
        if (!writer->is_pb) json_end_object(json);
        err = hrana__writer_done(writer);
    }
    if (err != OK) {
        stream_drop(work);
        reply_bad(work, err);
        return;
    }
    /* Before the answer: the client may come at once. */
    if (closed)
        stream_drop(work);
    else
        stream__rest(work->server, work->stream);
    http__reply(work->conn, 200, writer->is_pb ? "application/x-protobuf" : "application/json",
                buf_slice(&work->out), NULL);
}

void
hrana__http_pipeline(Conn *conn, ServedDb *db, SeatRights rights, u32 version, bool is_pb)
{
    Work work;
    HranaBody body = {0};
    Slice bytes = conn->http->body_slice;
    work_begin(&work, conn, is_pb, version);
    Err err = is_pb ? hrana__pb_pipeline(bytes, &work.arena, &body, &work.error)
                    : hrana__json_pipeline(bytes, &work.arena, &body, &work.error);
    for (u32 i = 0; err == OK && i < body.request_count; i++)
        err = hrana__check_request(&body.request[i], version, &work.error);
    if (err != OK) {
        stream_give_up(&work, &body, db, rights);
        reply_bad(&work, err);
    } else if (stream_take(&work, &body, db, rights)) {
        pipeline_run(&work, &body);
    }
    work_end(&work);
}

/* ---- cursor ---- */

/* One entry, as a line or after its length. */
static Err
entry_send(Work *work, const Buf *entry)
{
    if (!work->writer.is_pb) {
        Err err = buf_append(&work->out, entry->p, entry->bytes);
        return err == OK ? buf_append_byte(&work->out, '\n') : err;
    }
    HranaWriter writer;
    hrana__writer_init(&writer, &work->out, true, 3, NULL);
    size_t mark = hrana__pb_begin(&writer, 0);
    Err err = buf_append(&work->out, entry->p, entry->bytes);
    if (err == OK) hrana__pb_end(&writer, mark);
    return err == OK ? writer.err : err;
}

static Err
cursor_head(Work *work)
{
    char baton[BATON_BYTES];
    Buf entry = {0};
    HranaWriter writer;
    hrana__writer_init(&writer, &entry, work->writer.is_pb, 3, NULL);
    stream__baton(work->stream, baton);
    if (!writer.is_pb) json_begin_object(&writer.json);
    baton_write(&writer, baton);
    if (!writer.is_pb) json_end_object(&writer.json);
    Err err = hrana__writer_done(&writer);
    if (err == OK) err = entry_send(work, &entry);
    buf_free(&entry);
    return err;
}

static Err
cursor_entries(Work *work, HranaCursor *cursor)
{
    Buf entry = {0};
    bool done = false;
    Err err = cursor_head(work);
    while (err == OK) {
        buf_clear(&entry);
        err = hrana__cursor_next(cursor, &entry, &done);
        if (err != OK || done) break;
        err = entry_send(work, &entry);
        if (err != OK || work->out.bytes < CURSOR_FLUSH) continue;
        if (!http__stream(work->conn, buf_slice(&work->out))) err = ERR_CLOSED;
        buf_clear(&work->out);
    }
    buf_free(&entry);
    return err;
}

static void
cursor_run(Work *work, HranaBatch *batch)
{
    HranaCursor cursor;
    Conn *conn = work->conn;
    Seat *seat = work->stream->seat;
    seat__begin(seat, conn->socket);
    Err err = hrana__cursor_open(&cursor, seat, batch, work->writer.is_pb, 3);
    if (err == OK) {
        http__stream_begin(conn, work->writer.is_pb ? "application/octet-stream" : "text/plain");
        err = cursor_entries(work, &cursor);
    }
    hrana__cursor_close(&cursor);
    seat__lost_told(seat);
    seat__end(seat);
    if (err == OK) {
        stream__rest(work->server, work->stream);
        if (!http__stream(conn, buf_slice(&work->out))) err = ERR_CLOSED;
        http__stream_end(conn);
    } else {
        /* Cut short: without the last chunk the client sees it. */
        stream_drop(work);
        conn->closing = true;
        conn->broken = true;
    }
}

void
hrana__http_cursor(Conn *conn, ServedDb *db, SeatRights rights, bool is_pb)
{
    Work work;
    HranaBody body = {0};
    Slice bytes = conn->http->body_slice;
    work_begin(&work, conn, is_pb, 3);
    Err err = is_pb ? hrana__pb_cursor(bytes, &work.arena, &body, &work.error)
                    : hrana__json_cursor(bytes, &work.arena, &body, &work.error);
    if (err == OK) err = hrana__check_batch(&body.batch, 3, &work.error);
    if (err != OK) {
        stream_give_up(&work, &body, db, rights);
        reply_bad(&work, err);
    } else if (stream_take(&work, &body, db, rights)) {
        err = hrana__resolve_batch(&body.batch, &work.stream->store, &work.arena, &work.error);
        if (err == OK) {
            cursor_run(&work, &body.batch);
        } else {
            stream_drop(&work);
            reply_bad(&work, err);
        }
    }
    work_end(&work);
}

/* ---- version 1 ---- */

static void
v1_run(Work *work, const HranaStmt *stmt, const HranaBatch *batch)
{
    HranaWriter *writer = &work->writer;
    Seat *seat = work->stream->seat;
    seat__begin(seat, work->conn->socket);
    json_begin_object(&writer->json);
    json_key(&writer->json, "result");
    bool good = batch != NULL ? hrana__batch(seat, batch, writer, &work->fault)
                              : hrana__execute(seat, stmt, writer, &work->fault);
    if (good) json_end_object(&writer->json);
    seat__end(seat);
    stream_drop(work);
    if (!good)
        reply_fault(work, 400);
    else
        http__reply(work->conn, 200, "application/json", buf_slice(&work->out), NULL);
}

void
hrana__http_v1(Conn *conn, ServedDb *db, SeatRights rights, bool is_batch)
{
    Work work;
    const JsonNode *root = NULL;
    HranaStmt stmt = {0};
    HranaBatch batch = {0};
    HranaBody body = {0};
    work_begin(&work, conn, false, 1);
    Err err = hrana__json_parse(conn->http->body_slice, &work.arena, &root, &work.error);
    if (err == OK && is_batch) {
        err = hrana__json_batch(json_member(root, "batch"), &work.arena, &batch, &work.error);
        if (err == OK) err = hrana__check_batch(&batch, 1, &work.error);
    } else if (err == OK) {
        err = hrana__json_stmt(json_member(root, "stmt"), &work.arena, &stmt, &work.error);
        if (err == OK && !stmt.sql.has_text)
            err = hrana__bad(&work.error, false, "a statement needs sql");
    }
    if (err != OK)
        reply_bad(&work, err);
    else if (stream_take(&work, &body, db, rights))
        v1_run(&work, &stmt, is_batch ? &batch : NULL);
    work_end(&work);
}
