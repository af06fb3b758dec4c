/*
 * parse.c -- requests out of bytes.
 *
 * llhttp reads the head and stops there; what it takes that we do not (old line folding, several
 * Hosts, other codings than chunked) is refused here.  Bodies are framed here too: by length, or
 * in strict chunks.
 */
#include <string.h>

#include "server/http/http.h"

#define CHUNK_LINE_MAX 64u
#define TRAILERS_MAX   ((size_t)8 << 10)

static const struct {
    const char *name;
    HttpHeader header;
} known[] = {
    {"host", HEADER_HOST},
    {"origin", HEADER_ORIGIN},
    {"authorization", HEADER_AUTHORIZATION},
    {"transfer-encoding", HEADER_TRANSFER_ENCODING},
    {"expect", HEADER_EXPECT},
    {"x-namespace", HEADER_NAMESPACE},
    {"connection", HEADER_CONNECTION},
    {"upgrade", HEADER_UPGRADE},
    {"sec-websocket-key", HEADER_WS_KEY},
    {"sec-websocket-version", HEADER_WS_VERSION},
    {"sec-websocket-protocol", HEADER_WS_PROTOCOL},
    {"access-control-request-method", HEADER_REQUEST_METHOD},
    {"access-control-request-headers", HEADER_REQUEST_HEADERS},
};

/* ---- callbacks of llhttp ---- */

static void
span_add(const Http *http, HttpSpan *span, const char *at, size_t bytes)
{
    if (span->bytes == 0) span->at = (u32)((const u8 *)at - http->base);
    span->bytes += (u32)bytes;
}

static int
on_url(llhttp_t *parser, const char *at, size_t bytes)
{
    Http *http = parser->data;
    span_add(http, &http->url, at, bytes);
    return 0;
}

static int
on_field(llhttp_t *parser, const char *at, size_t bytes)
{
    Http *http = parser->data;
    if (http->in_value) {
        http->in_value = false;
        http->name_bytes = 0;
    }
    for (size_t i = 0; i < bytes; i++) {
        u8 c = (u8)at[i];
        if (c >= 'A' && c <= 'Z') c = (u8)(c + 32);
        if (http->name_bytes < sizeof(http->name)) http->name[http->name_bytes] = (char)c;
        if (http->name_bytes < 255) http->name_bytes++;
    }
    return 0;
}

static HttpHeader
header_of(const Http *http)
{
    if (http->name_bytes > sizeof(http->name)) return HEADER_OTHER;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (strlen(known[i].name) == http->name_bytes &&
            memcmp(known[i].name, http->name, http->name_bytes) == 0)
            return known[i].header;
    return HEADER_OTHER;
}

static int
on_value(llhttp_t *parser, const char *at, size_t bytes)
{
    Http *http = parser->data;
    if (!http->in_value) {
        http->in_value = true;
        http->header = (u8)header_of(http);
        if (++http->header_count > HTTP_HEADERS_MAX) return -1;
        if (http->header < HEADERS) {
            http->value[http->header].count++;
            http->value[http->header].bytes = 0;
        }
    }
    if (http->header < HEADERS) span_add(http, &http->value[http->header], at, bytes);
    return 0;
}

static int
on_headers_complete(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_headers_complete,
};

/* ---- the head ---- */

static Slice
span_slice(const Conn *conn, const HttpSpan *span)
{
    const u8 *p = conn->in.p + conn->in_at + span->at;
    size_t bytes = span->bytes;
    while (bytes > 0 && (p[bytes - 1] == ' ' || p[bytes - 1] == '\t'))
        bytes--;
    return SLICE(p, bytes);
}

Slice
http__header(const Conn *conn, HttpHeader header, bool *given_out)
{
    const HttpSpan *span = &conn->http->value[header];
    bool given = span->count > 0;
    if (given_out != NULL) *given_out = given;
    return given && span->bytes > 0 ? span_slice(conn, span) : SLICE_LITERAL("");
}

static Err
refuse(int *status_out, int status)
{
    *status_out = status;
    return ERR_SQL;
}

/* A line that begins with a blank continues the one before: nobody sends that in good faith. */
static bool
has_folds(Slice head)
{
    for (size_t i = 0; i + 1 < head.bytes; i++)
        if (head.p[i] == '\n' && (head.p[i + 1] == ' ' || head.p[i + 1] == '\t')) return true;
    return false;
}

static Err
head_judge(Conn *conn, int *status_out)
{
    Http *http = conn->http;
    const HttpSpan *host = &http->value[HEADER_HOST];
    const HttpSpan *coding = &http->value[HEADER_TRANSFER_ENCODING];
    http->method = http->parser.method;
    http->is_http_10 = http->parser.http_major == 1 && http->parser.http_minor == 0;
    if (http->parser.http_major != 1) return refuse(status_out, 505);
    if (has_folds(SLICE(conn->in.p + conn->in_at, http->head_bytes)))
        return refuse(status_out, 400);
    if (host->count > 1 || (host->count == 0 && !http->is_http_10)) return refuse(status_out, 400);
    if (http->value[HEADER_AUTHORIZATION].count > 1 || http->value[HEADER_ORIGIN].count > 1)
        return refuse(status_out, 400);
    http->keep_alive = llhttp_should_keep_alive(&http->parser) != 0;
    bool has_length = (http->parser.flags & F_CONTENT_LENGTH) != 0;
    if (coding->count > 0) {
        Slice value = span_slice(conn, coding);
        if (coding->count > 1 || has_length || http->is_http_10) return refuse(status_out, 400);
        if (!slice_equal_nocase(value, SLICE_LITERAL("chunked"))) return refuse(status_out, 501);
        http->state = HTTP_IN_CHUNKS;
        http->chunk_at = http->head_bytes;
        return OK;
    }
    http->body_bytes = has_length ? http->parser.content_length : 0;
    if (http->body_bytes > conn->server->options.body_bytes_max) return refuse(status_out, 413);
    http->state = HTTP_IN_BODY;
    return OK;
}

static Err
head_parse(Conn *conn, int *status_out)
{
    Http *http = conn->http;
    Slice input = conn__input(conn);
    size_t limit = MIN_OF(input.bytes, HTTP_HEAD_BYTES_MAX);
    http->base = input.p;
    if (limit > conn->in_seen) {
        const char *from = (const char *)input.p + conn->in_seen;
        llhttp_errno_t result = llhttp_execute(&http->parser, from, limit - conn->in_seen);
        if (result == HPE_PAUSED) {
            const char *stop = llhttp_get_error_pos(&http->parser);
            http->head_bytes = (u32)((const u8 *)stop - input.p);
            return head_judge(conn, status_out);
        }
        if (result != HPE_OK) return refuse(status_out, 400);
        conn->in_seen = limit;
    }
    if (input.bytes >= HTTP_HEAD_BYTES_MAX) return refuse(status_out, 431);
    return OK;
}

/* ---- chunked bodies ---- */

enum { CHUNK_SIZE, CHUNK_DATA, CHUNK_DATA_END, CHUNK_TRAILERS };

/* The line from `at` on, without CRLF; false: not whole yet.  A bare LF is an error. */
static bool
line_take(Slice input, size_t at, size_t max, Slice *line_out, bool *bad_out)
{
    const u8 *end = memchr(input.p + at, '\n', input.bytes - at);
    if (end == NULL) {
        *bad_out = input.bytes - at > max;
        return false;
    }
    size_t bytes = (size_t)(end - (input.p + at));
    *bad_out = bytes > max || bytes == 0 || input.p[at + bytes - 1] != '\r';
    *line_out = SLICE(input.p + at, bytes - (bytes > 0));
    return !*bad_out;
}

/* Hexadecimal digits, then nothing or an extension. */
static bool
chunk_size(Slice line, u64 *size_out)
{
    size_t i = 0;
    u64 size = 0;
    for (; i < line.bytes; i++) {
        u8 c = line.p[i];
        u32 digit = c >= '0' && c <= '9'   ? (u32)(c - '0')
                    : c >= 'a' && c <= 'f' ? (u32)(c - 'a' + 10)
                    : c >= 'A' && c <= 'F' ? (u32)(c - 'A' + 10)
                                           : 16;
        if (digit == 16) break;
        if (i >= 15) return false;
        size = size << 4 | digit;
    }
    *size_out = size;
    return i > 0 && (i == line.bytes || line.p[i] == ';');
}

static Err
chunk_data(Conn *conn, Slice input, int *status_out)
{
    Http *http = conn->http;
    size_t bytes = MIN_OF(input.bytes - http->chunk_at, http->chunk_left);
    (void)status_out;
    Err err = bytes == 0 ? OK : buf_append(&http->body, input.p + http->chunk_at, bytes);
    if (err != OK) return err;
    http->chunk_at += bytes;
    http->chunk_left -= bytes;
    if (http->chunk_left == 0) http->chunk_state = CHUNK_DATA_END;
    return OK;
}

/* What has been copied need not stay in the input. */
static void
chunks_trim(Conn *conn)
{
    Http *http = conn->http;
    size_t used = http->chunk_at - http->head_bytes;
    if (used < ((size_t)64 << 10)) return;
    u8 *from = conn->in.p + conn->in_at + http->head_bytes;
    size_t rest = conn->in.bytes - conn->in_at - http->chunk_at;
    memmove(from, from + used, rest);
    conn->in.bytes -= used;
    http->chunk_at = http->head_bytes;
}

static Err
chunks_parse(Conn *conn, int *status_out)
{
    Http *http = conn->http;
    for (;;) {
        Slice input = conn__input(conn), line;
        bool bad = false;
        if (http->chunk_state == CHUNK_DATA) {
            Err err = chunk_data(conn, input, status_out);
            if (err != OK) return err;
            chunks_trim(conn);
            if (http->chunk_state == CHUNK_DATA) return OK;
            continue;
        }
        size_t max = http->chunk_state == CHUNK_TRAILERS ? TRAILERS_MAX : CHUNK_LINE_MAX;
        if (!line_take(input, http->chunk_at, max, &line, &bad))
            return bad ? refuse(status_out, 400) : OK;
        http->chunk_at += line.bytes + 2;
        if (http->chunk_state == CHUNK_SIZE) {
            if (!chunk_size(line, &http->chunk_left)) return refuse(status_out, 400);
            if (http->body.bytes + http->chunk_left > conn->server->options.body_bytes_max)
                return refuse(status_out, 413);
            http->chunk_state = http->chunk_left == 0 ? CHUNK_TRAILERS : CHUNK_DATA;
        } else if (http->chunk_state == CHUNK_DATA_END) {
            if (line.bytes > 0) return refuse(status_out, 400);
            http->chunk_state = CHUNK_SIZE;
        } else if (line.bytes == 0) {
            http->state = HTTP_COMPLETE;
            http->body_slice = buf_slice(&http->body);
            return OK;
        } else if (++http->header_count > HTTP_HEADERS_MAX) {
            return refuse(status_out, 400);
        }
    }
}

/* ---- all of it ---- */

static bool
state_ready(Conn *conn)
{
    if (conn->http != NULL) return true;
    conn->http = MEM_NEW(Http);
    if (conn->http == NULL) return false;
    llhttp_init(&conn->http->parser, HTTP_REQUEST, &settings);
    conn->http->parser.data = conn->http;
    conn->in_seen = 0;
    return true;
}

Err
http__parse(Conn *conn, int *status_out)
{
    Err err = OK;
    *status_out = 500;
    if (!state_ready(conn)) return ERR_NOMEM;
    Http *http = conn->http;
    if (http->state == HTTP_IN_HEAD) err = head_parse(conn, status_out);
    if (err == OK && http->state == HTTP_IN_BODY) {
        Slice input = conn__input(conn);
        if (input.bytes - http->head_bytes >= http->body_bytes) {
            http->body_slice = SLICE(input.p + http->head_bytes, http->body_bytes);
            http->state = HTTP_COMPLETE;
        }
    }
    if (err == OK && http->state == HTTP_IN_CHUNKS) err = chunks_parse(conn, status_out);
    if (err == OK && http->state == HTTP_COMPLETE) {
        Slice url = span_slice(conn, &http->url);
        const u8 *mark = url.bytes == 0 ? NULL : memchr(url.p, '?', url.bytes);
        size_t bytes = mark == NULL ? url.bytes : (size_t)(mark - url.p);
        http->path = SLICE(url.p, bytes);
        http->query = mark == NULL ? SLICE_LITERAL("") : SLICE(mark + 1, url.bytes - bytes - 1);
    }
    return err;
}

void
http__reset(Conn *conn)
{
    Http *http = conn->http;
    if (http == NULL) return;
    if (http->state == HTTP_COMPLETE) {
        bool chunked = http->value[HEADER_TRANSFER_ENCODING].count > 0;
        conn->in_at += chunked ? http->chunk_at : http->head_bytes + http->body_bytes;
    }
    conn->in_seen = 0;
    buf_free(&http->body);
    mem_free(http);
    conn->http = NULL;
}
