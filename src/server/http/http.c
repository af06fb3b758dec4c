/*
 * http.c -- HTTP on a connection: requests one after the other, answers, limits of time.
 */
#include "server/http/http.h"

#include <stdio.h>
#include <string.h>

#include "rt/time.h"
#include "value/json.h"

#define BODY_BYTES_PER_S 4096 /* What a slow client has to manage. */
#define INLINE_BODY_MAX  ((size_t)16 << 10)

static const char *
status_text(int status)
{
    switch (status) {
    case 101: return "Switching Protocols";
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 426: return "Upgrade Required";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Internal Server Error";
    }
}

/* ---- answers ---- */

static Err
head_write(Conn *conn, int status, const char *type, const char *extra)
{
    Http *http = conn->http;
    Err err = buf_printf(&conn->out, "HTTP/1.1 %d %s\r\n", status, status_text(status));
    if (err == OK && type != NULL) err = buf_printf(&conn->out, "Content-Type: %s\r\n", type);
    if (err == OK && http != NULL && http->cors) {
        Slice origin = http__header(conn, HEADER_ORIGIN, NULL);
        err = buf_printf(&conn->out,
                         "Access-Control-Allow-Origin: %.*s\r\nVary: Origin, "
                         "Access-Control-Request-Method, Access-Control-Request-Headers\r\n",
                         (int)origin.bytes, (const char *)origin.p);
    }
    if (err == OK && extra != NULL) err = buf_append_text(&conn->out, extra);
    if (err == OK && conn->closing) err = buf_append_text(&conn->out, "Connection: close\r\n");
    if (err == OK && !conn->closing && http != NULL && http->is_http_10)
        err = buf_append_text(&conn->out, "Connection: keep-alive\r\n");
    return err;
}

static void
keep_alive_decide(Conn *conn)
{
    Http *http = conn->http;
    if (http == NULL || http->state != HTTP_COMPLETE || !http->keep_alive) conn->closing = true;
    if (rt_load_relaxed(&conn->server->draining) != 0) conn->closing = true;
}

void
http__reply(Conn *conn, int status, const char *type, Slice body, const char *extra)
{
    keep_alive_decide(conn);
    Err err = head_write(conn, status, type, extra);
    if (err == OK) err = buf_printf(&conn->out, "Content-Length: %zu\r\n\r\n", body.bytes);
    bool has_body = body.bytes > 0 && (conn->http == NULL || conn->http->method != HTTP_HEAD);
    if (err == OK && has_body && body.bytes <= INLINE_BODY_MAX)
        err = buf_append(&conn->out, body.p, body.bytes);
    else if (err == OK && has_body && !conn__write(conn, body.p, body.bytes))
        conn->broken = true;
    if (err != OK) conn->broken = true;
    if (status >= 400) server__count(conn->server, COUNT_ERRORS, 1);
}

void
http__reply_text(Conn *conn, int status, const char *text)
{
    http__reply(conn, status, "text/plain", SLICE(text, strlen(text)), NULL);
}

void
http__reply_error(Conn *conn, int status, const char *code, const char *text)
{
    Buf body = {0};
    JsonWriter json;
    json_writer_init(&json, &body);
    json_begin_object(&json);
    json_key(&json, "message");
    json_write_string(&json, text);
    json_key(&json, "code");
    json_write_string(&json, code);
    json_end_object(&json);
    if (json_writer_done(&json) == OK)
        http__reply(conn, status, "application/json", buf_slice(&body), NULL);
    else
        conn->broken = true;
    buf_free(&body);
}

void
http__stream_begin(Conn *conn, const char *type)
{
    Http *http = conn->http;
    http->chunked_reply = !http->is_http_10;
    if (!http->chunked_reply) http->keep_alive = false; /* The end of the connection ends it. */
    keep_alive_decide(conn);
    Err err = head_write(conn, 200, type,
                         http->chunked_reply ? "Transfer-Encoding: chunked\r\n" : NULL);
    if (err == OK) err = buf_append_text(&conn->out, "\r\n");
    if (err != OK) conn->broken = true;
}

bool
http__stream(Conn *conn, Slice bytes)
{
    if (bytes.bytes == 0) return !conn->broken;
    bool chunked = conn->http->chunked_reply;
    Err err = chunked ? buf_printf(&conn->out, "%zx\r\n", bytes.bytes) : OK;
    if (err == OK) err = buf_append(&conn->out, bytes.p, bytes.bytes);
    if (err == OK && chunked) err = buf_append_text(&conn->out, "\r\n");
    if (err != OK) conn->broken = true;
    return conn__flush(conn);
}

void
http__stream_end(Conn *conn)
{
    if (!conn->http->chunked_reply || conn->broken) return;
    if (buf_append_text(&conn->out, "0\r\n\r\n") != OK) conn->broken = true;
}

/* ---- requests ---- */

static bool
continue_send(Conn *conn)
{
    Http *http = conn->http;
    bool given;
    Slice expect = http__header(conn, HEADER_EXPECT, &given);
    if (!given || http->continued || http->is_http_10) return true;
    http->continued = true;
    if (!slice_equal_nocase(expect, SLICE_LITERAL("100-continue"))) return true;
    return buf_append_text(&conn->out, "HTTP/1.1 100 Continue\r\n\r\n") == OK;
}

/* What a long body is decoded into counts in the server's budget. */
static void
request_run(Conn *conn)
{
    size_t bytes = conn->http->body_slice.bytes;
    u64 held = bytes > CONN_KEEP_BYTES ? HTTP_DECODE_FACTOR * (u64)bytes : 0;
    if (held > 0 && !server__hold(conn->server, held)) {
        http__reply_error(conn, 503, "LIMIT", "too much is waiting to be served");
        return;
    }
    http__route(conn);
    server__release(conn->server, held);
}

static void
http_run(Conn *conn)
{
    while (!conn->closing && !conn->broken && conn->protocol == &protocol_http) {
        int status;
        if (conn__input(conn).bytes == 0 && conn->http == NULL) return;
        if (conn->http == NULL) conn->wait_since_ns = rt_now_ns();
        Err err = http__parse(conn, &status);
        if (err != OK) {
            conn->closing = true;
            http__reply_text(conn, status, status_text(status));
            return;
        }
        if (conn->http->state != HTTP_COMPLETE) {
            if (conn->http->state != HTTP_IN_HEAD && !continue_send(conn)) conn->broken = true;
            return;
        }
        conn__busy(conn, 1);
        server__count(conn->server, COUNT_REQUESTS, 1);
        server__count(conn->server, COUNT_HTTP, 1);
        request_run(conn);
        conn__busy(conn, -1);
        http__reset(conn);
        if (conn->out.bytes >= CONN_FLUSH_BYTES && !conn__flush(conn)) return;
    }
}

static u64
http_wait_ns(const Conn *conn)
{
    const Http *http = conn->http;
    if (http == NULL) {
        const ServerOptions *options = &conn->server->options;
        return MIN_OF(options->keep_alive_timeout_ns, options->idle_timeout_ns);
    }
    u64 got = http->body.bytes + conn->in.bytes - conn->in_at;
    u64 may_ns = conn->server->options.request_timeout_ns + got / BODY_BYTES_PER_S * RT_NS_PER_S;
    u64 took_ns = rt_now_ns() - conn->wait_since_ns;
    return took_ns < may_ns ? may_ns - took_ns : 1;
}

static bool
http_late(Conn *conn)
{
    if (conn->http != NULL) {
        conn->closing = true;
        int status = conn->full ? 503 : 408;
        http__reply_text(conn, status, status_text(status));
    }
    return false;
}

static void
http_end(Conn *conn)
{
    http__reset(conn);
}

const Protocol protocol_http = {
    .name = "http",
    .run = http_run,
    .wait_ns = http_wait_ns,
    .late = http_late,
    .end = http_end,
};
