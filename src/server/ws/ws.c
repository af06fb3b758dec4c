/*
 * ws.c -- a WebSocket as a protocol of conn.c: the handshake, frames into messages, hello.
 */
#include "server/ws/ws.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "rt/time.h"
#include "value/base64.h"

/* ---- the handshake ---- */

static const struct {
    const char *name;
    u8 version;
    bool is_pb;
} subprotocols[] = {
    {"hrana3-protobuf", 3, true}, /* The best first. */
    {"hrana3", 3, false},
    {"hrana2", 2, false},
    {"hrana1", 1, false},
};

/* Is `name` in a comma-separated list? */
static bool
list_has(Slice list, const char *name)
{
    Slice wanted = SLICE(name, strlen(name));
    size_t at = 0;
    while (at <= list.bytes) {
        size_t end = at;
        while (end < list.bytes && list.p[end] != ',')
            end++;
        size_t from = at, to = end;
        while (from < to && (list.p[from] == ' ' || list.p[from] == '\t'))
            from++;
        while (to > from && (list.p[to - 1] == ' ' || list.p[to - 1] == '\t'))
            to--;
        if (slice_equal_nocase(SLICE(list.p + from, to - from), wanted)) return true;
        at = end + 1;
    }
    return false;
}

static bool
accept_key(Slice key, Buf *out)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    u8 digest[EVP_MAX_MD_SIZE];
    unsigned int bytes = 0;
    Buf text = {0};
    Err err = buf_append(&text, key.p, key.bytes);
    if (err == OK) err = buf_append_text(&text, guid);
    bool good = err == OK && EVP_Digest(text.p, text.bytes, digest, &bytes, EVP_sha1(), NULL) == 1;
    good = good && base64_encode(SLICE(digest, bytes), true, out) == OK;
    buf_free(&text);
    return good;
}

/* 16 bytes in base64. */
static bool
key_ok(Slice key)
{
    Buf bytes = {0};
    bool good = key.bytes == 24 && base64_decode(key, &bytes) == OK && bytes.bytes == 16;
    buf_free(&bytes);
    return good;
}

/* The best of ours that the client offers; none offered is version 1. */
static bool
subprotocol_choose(Conn *conn, Ws *ws, const char **name_out)
{
    bool given;
    Slice list = http__header(conn, HEADER_WS_PROTOCOL, &given);
    *name_out = NULL;
    ws->version = 1;
    if (!given) return true;
    for (size_t i = 0; i < COUNT_OF(subprotocols); i++) {
        if (!list_has(list, subprotocols[i].name)) continue;
        *name_out = subprotocols[i].name;
        ws->version = subprotocols[i].version;
        ws->is_pb = subprotocols[i].is_pb;
        return true;
    }
    return false;
}

static bool
handshake_judge(Conn *conn)
{
    const Http *http = conn->http;
    Slice upgrade = http__header(conn, HEADER_UPGRADE, NULL);
    Slice connection = http__header(conn, HEADER_CONNECTION, NULL);
    Slice version = http__header(conn, HEADER_WS_VERSION, NULL);
    if (http->is_http_10 || !list_has(upgrade, "websocket") || !list_has(connection, "upgrade") ||
        !key_ok(http__header(conn, HEADER_WS_KEY, NULL))) {
        http__reply_text(conn, 400, "This is no WebSocket handshake");
        return false;
    }
    if (slice_equal(version, SLICE_LITERAL("13"))) return true;
    http__reply(conn, 426, NULL, SLICE_NONE, "Sec-WebSocket-Version: 13\r\n");
    return false;
}

static Err
switch_write(Conn *conn, const Buf *key, const char *subprotocol)
{
    Err err = buf_printf(&conn->out,
                         "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                         "Connection: Upgrade\r\nSec-WebSocket-Accept: %.*s\r\n",
                         (int)key->bytes, (const char *)key->p);
    if (err == OK && subprotocol != NULL)
        err = buf_printf(&conn->out, "Sec-WebSocket-Protocol: %s\r\n", subprotocol);
    return err == OK ? buf_append_text(&conn->out, "\r\n") : err;
}

void
ws__accept(Conn *conn)
{
    const char *subprotocol;
    Buf key = {0};
    if (!handshake_judge(conn)) return;
    Ws *ws = MEM_NEW(Ws);
    if (ws == NULL || !accept_key(http__header(conn, HEADER_WS_KEY, NULL), &key)) {
        http__reply_text(conn, 500, "out of memory");
        goto fail;
    }
    if (!subprotocol_choose(conn, ws, &subprotocol)) {
        http__reply_text(conn, 400,
                         "Only these WebSocket subprotocols are supported: "
                         "hrana3-protobuf hrana3 hrana2 hrana1");
        goto fail;
    }
    Slice name = route__database(conn);
    memcpy(ws->database, name.p == NULL ? (const u8 *)"" : name.p,
           MIN_OF(name.bytes, (size_t)DB_NAME_BYTES - 1));
    if (switch_write(conn, &key, subprotocol) != OK) conn->broken = true;
    conn->ws = ws;
    server__count(conn->server, COUNT_WEBSOCKET, 1);
    conn__switch(conn, &protocol_ws);
    buf_free(&key);
    return;

fail:
    mem_free(ws);
    buf_free(&key);
}

/* ---- messages ---- */

static void
hello(Conn *conn, const HranaMsg *msg)
{
    Ws *ws = conn->ws;
    Fault fault = {0};
    if (ws->greeted && ws->version < 2) {
        ws__close(conn, WS_CODE_POLICY, "there was a hello already");
        return;
    }
    Trust trust = auth__token(conn->server->auth, msg->has_jwt ? msg->jwt : SLICE_NONE);
    bool elsewhere = trust.database[0] != 0 && conn->server->options.dir != NULL &&
                     strcmp(trust.database, ws->database) != 0;
    if (trust.result != AUTH_OK) {
        fault__set(&fault, 23, trust.code, "%s", trust.text);
    } else if (elsewhere) {
        fault__set(&fault, 23, "AUTH_JWT_NOT_ALLOWED", "the token is for another database");
    } else if (ws->db == NULL) {
        ws->db = db__find(conn->server, SLICE(ws->database, strlen(ws->database)), &fault);
        if (ws->db != NULL && db__open(ws->db, &fault) != OK) ws->db = NULL;
    }
    ws->greeted = fault.name == NULL;
    ws->refused = !ws->greeted;
    ws->rights = auth__rights(&trust);
    ws__reply_hello(conn, ws->greeted ? NULL : &fault);
    if (ws->refused) {
        server__count(conn->server, COUNT_AUTH_FAILED, 1);
        ws__close(conn, WS_CODE_POLICY, "not authorized");
    }
    fault__free(&fault);
}

/* Copied, because the stream's task needs it when the input is gone. */
static WsJob *
job_make(Conn *conn, Slice message, Err *err_out, HranaError *error)
{
    WsJob *job = MEM_NEW(WsJob);
    *err_out = ERR_NOMEM;
    if (job == NULL) return NULL;
    job->server = conn->server;
    arena_init(&job->arena, NULL);
    u64 held = message.bytes > CONN_KEEP_BYTES ? HTTP_DECODE_FACTOR * (u64)message.bytes : 0;
    if (!server__hold(conn->server, held)) {
        ws__job_free(job);
        return NULL;
    }
    job->held = held;
    char *copy = arena_strndup(&job->arena, message.p == NULL ? (const u8 *)"" : message.p,
                               message.bytes);
    Slice text = SLICE(copy, message.bytes);
    if (copy != NULL)
        *err_out = conn->ws->is_pb ? hrana__pb_msg(text, &job->arena, &job->msg, error)
                                   : hrana__json_msg(text, &job->arena, &job->msg, error);
    if (*err_out == OK) return job;
    ws__job_free(job);
    return NULL;
}

static void
message_run(Conn *conn, Slice message)
{
    Ws *ws = conn->ws;
    HranaError error = {0};
    Err err;
    server__count(conn->server, COUNT_REQUESTS, 1);
    WsJob *job = job_make(conn, message, &err, &error);
    if (job != NULL && job->msg.is_hello) {
        hello(conn, &job->msg);
        ws__job_free(job);
        return;
    }
    if (job != NULL && !ws->greeted) {
        ws__job_free(job);
        ws__close(conn, WS_CODE_POLICY, "hello must come first");
        return;
    }
    if (job != NULL) err = ws__dispatch(conn, job, &error);
    if (err == ERR_NOMEM)
        ws__close(conn, 1011, "out of memory");
    else if (err != OK)
        ws__close(conn, error.is_syntax ? WS_CODE_DATA : WS_CODE_POLICY, error.text);
}

/* A frame of data; whole messages are run. */
static void
data_take(Conn *conn, const WsFrame *frame)
{
    Ws *ws = conn->ws;
    Slice payload = SLICE(frame->payload, frame->bytes);
    bool first = frame->opcode != WS_CONTINUATION;
    if (first == ws->in_message) {
        ws__close(conn, WS_CODE_PROTOCOL, "fragments out of order");
        return;
    }
    if (first) ws->opcode = frame->opcode;
    if (ws->opcode != (ws->is_pb ? WS_BINARY : WS_TEXT)) {
        ws__close(conn, WS_CODE_TYPE, "the wrong kind of frame for this subprotocol");
        return;
    }
    if (ws->message.bytes + payload.bytes > conn->server->options.body_bytes_max) {
        ws__close(conn, WS_CODE_TOO_BIG, "the message is too big");
        return;
    }
    ws->in_message = !frame->fin;
    if (!first || !frame->fin) {
        if (payload.bytes > 0 && buf_append(&ws->message, payload.p, payload.bytes) != OK) {
            ws__close(conn, 1011, "out of memory");
            return;
        }
        if (!frame->fin) return;
        payload = buf_slice(&ws->message);
    }
    if (ws->opcode == WS_TEXT && payload.bytes > 0 && !utf8_valid(payload.p, payload.bytes))
        ws__close(conn, WS_CODE_DATA, "the message is not UTF-8");
    else
        message_run(conn, payload);
    buf_free(&ws->message);
}

static void
frame_take(Conn *conn, const WsFrame *frame)
{
    Slice payload = SLICE(frame->payload, frame->bytes);
    u32 code;
    switch (frame->opcode) {
    case WS_CLOSE:
        code = ws__close_code(payload);
        ws__close(conn, code == 0 ? (u32)WS_CODE_PROTOCOL : code, "");
        return;
    case WS_PING: ws__send(conn, WS_PONG, payload); return;
    case WS_PONG: return;
    default: data_take(conn, frame); return;
    }
}

static void
ws_run(Conn *conn)
{
    if (!conn__flush(conn)) return; /* The handshake goes before any frame. */
    while (!ws__over(conn->ws)) {
        WsFrame frame;
        u8 *input = conn->in.p == NULL ? NULL : conn->in.p + conn->in_at;
        size_t bytes = conn->in.bytes - conn->in_at;
        WsRead read = ws__frame_read(input, bytes, conn->server->options.body_bytes_max, &frame);
        if (read == WS_READ_MORE) break;
        if (read == WS_READ_BAD) ws__close(conn, WS_CODE_PROTOCOL, "not a frame of a client");
        if (read == WS_READ_TOO_BIG) ws__close(conn, WS_CODE_TOO_BIG, "the frame is too big");
        if (read != WS_READ_FRAME) break;
        conn->in_at += frame.total_bytes;
        frame_take(conn, &frame);
    }
    ws__flush(conn);
    if (ws__over(conn->ws)) conn->closing = true;
}

static u64
ws_wait_ns(const Conn *conn)
{
    const ServerOptions *options = &conn->server->options;
    if (!conn->ws->greeted || conn->ws->in_message || conn->in.bytes > conn->in_at)
        return options->request_timeout_ns;
    rt_mutex_lock(&conn->ws->lock);
    bool open = ws__in_transaction(conn->ws);
    rt_mutex_unlock(&conn->ws->lock);
    return open ? options->transaction_timeout_ns : options->idle_timeout_ns;
}

static bool
ws_late(Conn *conn)
{
    rt_mutex_lock(&conn->ws->lock);
    bool works = conn->ws->running > 0;
    rt_mutex_unlock(&conn->ws->lock);
    if (works && !conn->full) return true; /* The client waits for us. */
    ws__close(conn, conn->full ? 1013 : WS_CODE_POLICY,
              conn->full ? "too much is waiting to be served" : "no request for too long");
    ws__flush(conn);
    return false;
}

static void
ws_end(Conn *conn)
{
    Ws *ws = conn->ws;
    ws__streams_end(conn);
    ws__close(conn, WS_CODE_GOING, "the server is shutting down"); /* Unless it was sent. */
    ws__flush(conn);
    hrana__store_free(&ws->store);
    buf_free(&ws->message);
    buf_free(&ws->out);
    mem_free(ws);
    conn->ws = NULL;
}

const Protocol protocol_ws = {
    .name = "websocket",
    .run = ws_run,
    .wait_ns = ws_wait_ns,
    .late = ws_late,
    .end = ws_end,
};
