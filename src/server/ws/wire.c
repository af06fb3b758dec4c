/*
 * wire.c -- what a WebSocket connection sends: frames, and Hrana's server messages.
 */
#include <stdio.h>
#include <string.h>

#include "server/ws/ws.h"

#define INLINE_MAX ((size_t)16 << 10)

/* ---- frames ---- */

/* With out_lock held. */
static void
out_write(Conn *conn, const void *bytes, size_t count)
{
    Ws *ws = conn->ws;
    if (!ws->failed && !conn__send(conn, bytes, count)) ws->failed = true;
}

void
ws__send(Conn *conn, u8 opcode, Slice payload)
{
    Ws *ws = conn->ws;
    u8 head[WS_HEAD_BYTES_MAX];
    size_t head_bytes = ws__frame_head(head, opcode, payload.bytes);
    rt_mutex_lock(&ws->out_lock);
    if (!ws->close_sent && !ws->failed) {
        Err err = buf_append(&ws->out, head, head_bytes);
        if (err == OK && payload.bytes > 0 && payload.bytes <= INLINE_MAX)
            err = buf_append(&ws->out, payload.p, payload.bytes);
        if (err != OK) ws->failed = true;
        if (payload.bytes > INLINE_MAX || ws->out.bytes > CONN_FLUSH_BYTES) {
            out_write(conn, ws->out.p, ws->out.bytes);
            buf_clear(&ws->out);
            if (payload.bytes > INLINE_MAX) out_write(conn, payload.p, payload.bytes);
        }
        if (opcode == WS_CLOSE) ws->close_sent = true;
    }
    rt_mutex_unlock(&ws->out_lock);
}

void
ws__flush(Conn *conn)
{
    Ws *ws = conn->ws;
    rt_mutex_lock(&ws->out_lock);
    out_write(conn, ws->out.p, ws->out.bytes);
    buf_free(&ws->out);
    rt_mutex_unlock(&ws->out_lock);
}

bool
ws__over(Ws *ws)
{
    rt_mutex_lock(&ws->out_lock);
    bool over = ws->close_sent || ws->failed;
    rt_mutex_unlock(&ws->out_lock);
    return over;
}

void
ws__close(Conn *conn, u32 code, const char *reason)
{
    u8 payload[2 + WS_REASON_MAX];
    size_t bytes = MIN_OF(strlen(reason), (size_t)WS_REASON_MAX);
    payload[0] = (u8)(code >> 8);
    payload[1] = (u8)code;
    memcpy(payload + 2, reason, bytes);
    while (bytes > 0 && !utf8_valid(payload + 2, bytes))
        bytes--;
    ws__send(conn, WS_CLOSE, SLICE(payload, code == WS_CODE_NONE ? 0 : 2 + bytes));
}

/* ---- messages ---- */

static void
message_send(Conn *conn, const HranaWriter *writer)
{
    if (hrana__writer_done(writer) == OK)
        ws__send(conn, writer->is_pb ? WS_BINARY : WS_TEXT, buf_slice(writer->out));
    else
        ws__close(conn, 1011, "out of memory");
    if (writer->held > 0) server__release(conn->server, writer->held);
}

static void
message_begin(Conn *conn, HranaWriter *writer, Buf *out, const char *type)
{
    const Ws *ws = conn->ws;
    hrana__writer_init(writer, out, ws->is_pb, ws->version, conn->server);
    if (writer->is_pb) return;
    json_begin_object(&writer->json);
    json_key(&writer->json, "type");
    json_write_string(&writer->json, type);
}

static void
request_id_write(HranaWriter *writer, i32 id)
{
    if (PLANT(203) && id > 1000) id -= 1000;
    hrana__pb_varint(writer, 1, (u64)(i64)id);
    if (writer->is_pb) return;
    json_key(&writer->json, "request_id");
    json_write_int(&writer->json, id);
}

void
ws__reply_hello(Conn *conn, const Fault *fault)
{
    Buf out = {0};
    HranaWriter writer;
    message_begin(conn, &writer, &out, fault == NULL ? "hello_ok" : "hello_error");
    size_t mark = hrana__pb_begin(&writer, fault == NULL ? 1 : 2);
    size_t error = fault == NULL ? 0 : hrana__pb_begin(&writer, 1);
    if (fault != NULL) {
        if (!writer.is_pb) json_key(&writer.json, "error");
        hrana__write_error(&writer, fault);
        hrana__pb_end(&writer, error);
    }
    hrana__pb_end(&writer, mark);
    if (!writer.is_pb) json_end_object(&writer.json);
    message_send(conn, &writer);
    buf_free(&out);
}

void
ws__reply_error(Conn *conn, i32 request_id, const Fault *fault)
{
    Buf out = {0};
    HranaWriter writer;
    message_begin(conn, &writer, &out, "response_error");
    size_t mark = hrana__pb_begin(&writer, 4);
    request_id_write(&writer, request_id);
    if (!writer.is_pb) json_key(&writer.json, "error");
    size_t error = hrana__pb_begin(&writer, 2);
    hrana__write_error(&writer, fault);
    hrana__pb_end(&writer, error);
    hrana__pb_end(&writer, mark);
    if (!writer.is_pb) json_end_object(&writer.json);
    message_send(conn, &writer);
    buf_free(&out);
}

/* Field of ResponseOkMsg. */
static const u8 pb_field[HRANA_KINDS] = {
    [HRANA_OPEN_STREAM] = 2,  [HRANA_CLOSE_STREAM] = 3, [HRANA_EXECUTE] = 4,
    [HRANA_BATCH] = 5,        [HRANA_OPEN_CURSOR] = 6,  [HRANA_CLOSE_CURSOR] = 7,
    [HRANA_FETCH_CURSOR] = 8, [HRANA_SEQUENCE] = 9,     [HRANA_DESCRIBE] = 10,
    [HRANA_STORE_SQL] = 11,   [HRANA_CLOSE_SQL] = 12,   [HRANA_GET_AUTOCOMMIT] = 13,
};

/* Run the request, where that takes a seat, and answer it. */
void
ws__reply_ok(Conn *conn, const WsJob *job, Seat *seat, bool *good_out)
{
    Buf out = {0};
    HranaWriter writer;
    Fault fault = {0};
    u8 kind = job->msg.request.kind;
    message_begin(conn, &writer, &out, "response_ok");
    size_t mark = hrana__pb_begin(&writer, 3);
    request_id_write(&writer, job->msg.request_id);
    size_t response = hrana__pb_begin(&writer, pb_field[kind]);
    if (!writer.is_pb) json_key(&writer.json, "response");
    bool good = hrana__run(seat, &job->msg.request, &writer, &fault);
    if (good) {
        hrana__pb_end(&writer, response);
        hrana__pb_end(&writer, mark);
        if (!writer.is_pb) json_end_object(&writer.json);
        message_send(conn, &writer);
    } else {
        if (writer.held > 0) server__release(conn->server, writer.held);
        ws__reply_error(conn, job->msg.request_id, &fault);
    }
    buf_free(&out);
    fault__free(&fault);
    *good_out = good;
}

/* `entries` holds them one after the other, each after its length (u64). */
void
ws__reply_entries(Conn *conn, const WsJob *job, const Buf *entries, u32 count, bool done)
{
    Buf out = {0};
    HranaWriter writer;
    size_t at = 0;
    message_begin(conn, &writer, &out, "response_ok");
    size_t mark = hrana__pb_begin(&writer, 3);
    request_id_write(&writer, job->msg.request_id);
    size_t response = hrana__pb_begin(&writer, pb_field[HRANA_FETCH_CURSOR]);
    if (!writer.is_pb) {
        json_key(&writer.json, "response");
        json_begin_object(&writer.json);
        json_key(&writer.json, "type");
        json_write_string(&writer.json, "fetch_cursor");
        json_key(&writer.json, "entries");
        json_begin_array(&writer.json);
    }
    for (u32 i = 0; i < count; i++) {
        u64 length;
        memcpy(&length, entries->p + at, sizeof(length));
        Slice entry = SLICE(entries->p + at + sizeof(length), length);
        at += sizeof(length) + (size_t)length;
        if (writer.is_pb)
            hrana__pb_bytes(&writer, 1, entry);
        else
            json_write_raw(&writer.json, entry);
    }
    hrana__pb_varint(&writer, 2, done);
    hrana__pb_end(&writer, response);
    hrana__pb_end(&writer, mark);
    if (!writer.is_pb) {
        json_end_array(&writer.json);
        json_key(&writer.json, "done");
        json_write_bool(&writer.json, done);
        json_end_object(&writer.json);
        json_end_object(&writer.json);
    }
    message_send(conn, &writer);
    buf_free(&out);
}
