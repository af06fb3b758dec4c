/*
 * link_server.c -- a weftd at the other end of a socket: a Quack client.
 *
 * The server takes one statement a request, so a text is cut at its semicolons here.  Rows stream:
 * each line is handed on as it comes.  An interrupt only cancels the wait for the next line; the
 * client then opens a second connection, asks the server to cancel, and reads on to the answer, so
 * the two stay in step.
 */
#include <string.h>

#include "rt/net.h"
#include "rt/task.h"
#include "rt/time.h"
#include "shell/link__impl.h"
#include "shell/scan.h"
#include "value/base64.h"
#include "value/json.h"

#define READ_BYTES     ((size_t)64 << 10)
#define LINE_BYTES_MAX ((size_t)1 << 30)
#define LOAD_ROWS      500
#define LOAD_BYTES     ((size_t)1 << 20)
#define CONNECT_NS     (10 * RT_NS_PER_S)
#define PARAMS_MAX     64
#define PARAM_NAME_MAX 62

typedef struct ServerLink {
    Link link;
    RtSocket *socket;
    RtTask *task; /* Who uses the link; an interrupt cancels it. */
    char *address;
    i64 session;
    char key[64];
    Buf in, out;
    size_t in_at;
    Arena arena; /* The line being read. */
    i64 changes;
    bool in_transaction, lost;
} ServerLink;

typedef struct ServerLoad {
    LinkLoad load;
    char *sql;
    Buf rows; /* The values of "rows", without its brackets. */
    u32 row_count;
    bool own_transaction;
} ServerLoad;

static ServerLink *
server_link(Link *link)
{
    return CONTAINER_OF(link, ServerLink, link);
}

/* ---- lines ---- */

static bool
lost(ServerLink *server, LinkError *error_out, const char *why)
{
    server->lost = true;
    return link__fail(error_out, WEFT_IOERR, -1, true, why);
}

/* The next line; waits.  *interrupted_out: the wait was cancelled, call again. */
static bool
line_read(ServerLink *server, Slice *line_out, bool *interrupted_out, LinkError *error_out)
{
    *interrupted_out = false;
    size_t searched = 0;
    for (;;) {
        u8 *from = server->in.p + server->in_at;
        size_t have = server->in.bytes - server->in_at;
        u8 *end = have > searched ? memchr(from + searched, '\n', have - searched) : NULL;
        if (end != NULL) {
            *line_out = (Slice){from, (size_t)(end - from)};
            server->in_at += (size_t)(end - from) + 1;
            return true;
        }
        searched = have;
        if (server->in_at > 0) {
            memmove(server->in.p, from, have);
            server->in.bytes = have;
            server->in_at = 0;
        }
        size_t got = 0;
        if (have > LINE_BYTES_MAX) return lost(server, error_out, "the server's line is too long");
        if (buf_reserve(&server->in, READ_BYTES) != OK)
            return lost(server, error_out, "out of memory");
        Err err = rt_socket_read(server->socket, server->in.p + have, READ_BYTES, RT_FOREVER, &got,
                                 NULL);
        if (err == ERR_INTERRUPT) {
            *interrupted_out = true;
            return true;
        }
        if (err != OK || got == 0)
            return lost(server, error_out, "the server closed the connection");
        server->in.bytes += got;
    }
}

static bool
out_send(ServerLink *server, LinkError *error_out)
{
    Err err = OK;
    size_t at = 0;
    do {
        size_t written = 0;
        err = rt_socket_write_some(server->socket, server->out.p + at, server->out.bytes - at,
                                   &written, NULL);
        at += written;
        u32 ready = 0;
        if (err == OK && at < server->out.bytes) {
            err = rt_socket_wait(server->socket, RT_SOCKET_WRITABLE, RT_FOREVER, &ready);
            if (err == ERR_INTERRUPT) { /* Half a line must be followed by the other half. */
                rt_task_clear_cancel(server->task);
                err = OK;
            }
        }
    } while (err == OK && at < server->out.bytes);
    buf_clear(&server->out);
    if (err != OK) return lost(server, error_out, "the connection to the server broke");
    return true;
}

/* ---- cancel ---- */

/* Ask for the end of what we are running, over a connection of its own.  Best effort: if it fails,
   the statement simply goes on. */
static void
cancel_send(ServerLink *server)
{
    RtSocket *socket = NULL;
    char reply[512];
    size_t got = 0;
    u64 deadline = rt_deadline_after(CONNECT_NS);
    rt_task_clear_cancel(server->task);
    if (rt_connect(server->address, deadline, &socket, NULL) != OK) return;
    Buf request = {0};
    if (buf_printf(&request, "{\"cancel\":{\"session\":%lld,\"key\":\"%s\"}}\n",
                   (long long)server->session, server->key) == OK &&
        rt_socket_write(socket, request.p, request.bytes, deadline, NULL) == OK) {
        rt_socket_shutdown_write(socket);
        while (rt_socket_read(socket, reply, sizeof(reply), deadline, &got, NULL) == OK &&
               got > 0) {
        }
    }
    buf_free(&request);
    rt_socket_close(socket);
}

/* ---- answers ---- */

/* Read and parse one line of an answer, cancelling where asked. */
static bool
reply_read(ServerLink *server, JsonNode **root_out, LinkError *error_out)
{
    Slice line;
    bool interrupted = false;
    for (;;) {
        if (!line_read(server, &line, &interrupted, error_out)) return false;
        if (!interrupted) break;
        cancel_send(server);
    }
    arena_reset(&server->arena);
    if (json_parse(line, NULL, false, &server->arena, root_out, NULL) != OK ||
        (*root_out)->type != JSON_OBJECT)
        return lost(server, error_out, "the server's answer is not JSON");
    return true;
}

static bool
error_take(const JsonNode *node, LinkError *error_out)
{
    i64 code = WEFT_ERROR, offset = -1;
    Slice text = SLICE_LITERAL("unknown error"), name = SLICE_NONE;
    (void)json_get_int(json_member(node, "code"), &code);
    (void)json_get_int(json_member(node, "offset"), &offset);
    (void)json_get_text(json_member(node, "message"), &text);
    (void)json_get_text(json_member(node, "name"), &name);
    link_error_clear(error_out);
    error_out->code = (int)code;
    error_out->offset = offset;
    error_out->while_running = offset < 0 && (code & 0xff) != WEFT_ERROR;
    error_out->text = mem_strndup(text.p, text.bytes);
    return false;
}

static bool
value_take(ServerLink *server, const JsonNode *node, LinkValue *value_out)
{
    *value_out = (LinkValue){.type = WEFT_NULL};
    Slice text;
    Buf bytes = {0};
    switch ((JsonType)node->type) {
    case JSON_INT:
        value_out->type = WEFT_INTEGER;
        value_out->i = node->u.i;
        return true;
    case JSON_REAL:
        value_out->type = WEFT_FLOAT;
        value_out->r = node->u.r;
        return true;
    case JSON_TEXT:
        value_out->type = WEFT_TEXT;
        value_out->text = node->u.text;
        return true;
    case JSON_OBJECT:
        value_out->type = WEFT_BLOB;
        if (!json_get_text(json_member(node, "base64"), &text)) return false;
        if (base64_decode(text, &bytes) == OK) {
            u8 *copy = arena_bytes(&server->arena, bytes.bytes + 1);
            if (copy != NULL) {
                memcpy(copy, bytes.p != NULL ? bytes.p : copy, bytes.bytes);
                value_out->text = (Slice){copy, bytes.bytes};
            }
        }
        buf_free(&bytes);
        return value_out->text.p != NULL;
    default: return true;
    }
}

typedef struct Answer {
    const LinkSink *sink;
    bool begun, stopped; /* columns was called; the sink wants no more. */
} Answer;

static bool
columns_take(ServerLink *server, Answer *answer, const JsonNode *cols)
{
    const char **names = arena_alloc(&server->arena, (cols->count + 1) * sizeof(char *));
    u32 count = 0;
    if (names == NULL) return false;
    for (const JsonNode *node = cols->u.first; node != NULL; node = node->next) {
        Slice text = SLICE_NONE;
        (void)json_get_text(node, &text);
        names[count] = arena_strndup(&server->arena, text.p, text.bytes);
        if (names[count++] == NULL) return false;
    }
    answer->begun = true;
    if (answer->sink->columns != NULL)
        answer->stopped = !answer->sink->columns(answer->sink->arg, count, names);
    return true;
}

static bool
row_take(ServerLink *server, Answer *answer, const JsonNode *row)
{
    LinkValue *values = arena_alloc(&server->arena, (row->count + 1) * sizeof(LinkValue));
    u32 count = 0;
    if (values == NULL) return false;
    for (const JsonNode *node = row->u.first; node != NULL; node = node->next)
        if (!value_take(server, node, &values[count++])) return false;
    if (!answer->stopped && answer->sink->row != NULL)
        answer->stopped = !answer->sink->row(answer->sink->arg, count, values);
    return true;
}

/* All lines of one answer. */
static bool
answer_read(ServerLink *server, const LinkSink *sink, LinkError *error_out)
{
    Answer answer = {.sink = sink};
    bool good = true;
    for (;;) {
        JsonNode *root = NULL;
        if (!reply_read(server, &root, error_out)) return false;
        const JsonNode *cols = json_member(root, "cols"), *row = json_member(root, "row");
        const JsonNode *error = json_member(root, "err");
        if (cols != NULL || row != NULL) {
            if (!(cols != NULL ? columns_take(server, &answer, cols)
                               : row_take(server, &answer, row)))
                return lost(server, error_out, "the server's answer makes no sense");
            continue;
        }
        if (error != NULL) {
            good = error_take(error, error_out);
        } else {
            bool open = false;
            (void)json_get_int(json_member(root, "changes"), &server->changes);
            (void)json_get_bool(json_member(root, "tx"), &open);
            server->in_transaction = open;
        }
        break;
    }
    if (answer.begun && sink->done != NULL) sink->done(sink->arg);
    return good;
}

/* ---- requests ---- */

static void
value_put(JsonWriter *writer, const LinkValue *value)
{
    switch (value->type) {
    case WEFT_INTEGER: json_write_int(writer, value->i); return;
    case WEFT_FLOAT: json_write_real(writer, value->r); return;
    case WEFT_TEXT: json_write_text(writer, value->text); return;
    case WEFT_BLOB:
        json_begin_object(writer);
        json_key(writer, "base64");
        json_write_base64(writer, value->text);
        json_end_object(writer);
        return;
    default: json_write_null(writer); return;
    }
}

/* Skip a literal or comment that begins at `at`; returns where it ends, or `at` itself. */
static size_t
literal_skip(Slice sql, size_t at)
{
    u8 c = sql.p[at], next = at + 1 < sql.bytes ? sql.p[at + 1] : 0;
    const char *end = c == '\''                 ? "'"
                      : c == '"'                ? "\""
                      : c == '`'                ? "`"
                      : c == '['                ? "]"
                      : c == '-' && next == '-' ? "\n"
                      : c == '/' && next == '*' ? "*/"
                                                : NULL;
    if (end == NULL) return at;
    size_t from = at + strlen(end);
    const u8 *found = from < sql.bytes ? memmem(sql.p + from, sql.bytes - from, end, strlen(end))
                                       : NULL;
    return found == NULL ? sql.bytes : (size_t)(found - sql.p) + strlen(end);
}

static bool
is_name_byte(u8 c)
{
    return c == '_' || c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z');
}

/* Give values to the named parameters of the statement, each once; those that the shell does not
   know are NULL, as they are in a file. */
static void
params_put(JsonWriter *writer, Slice sql, LinkParam param, void *param_arg)
{
    char(*seen)[PARAM_NAME_MAX + 1] = NULL; /* Made for the first. */
    u32 count = 0;
    size_t at = 0;
    while (param != NULL && at < sql.bytes) {
        size_t end = literal_skip(sql, at);
        u8 c = sql.p[at];
        if (end > at || (c != ':' && c != '@' && c != '$')) {
            at = MAX_OF(end, at + 1);
            continue;
        }
        for (end = at + 1; end < sql.bytes && is_name_byte(sql.p[end]);)
            end++;
        size_t bytes = end - at;
        bool known = bytes == 1 || bytes > PARAM_NAME_MAX || count == PARAMS_MAX;
        for (u32 i = 0; i < count && !known; i++)
            known = strlen(seen[i]) == bytes && memcmp(seen[i], sql.p + at, bytes) == 0;
        if (!known && seen == NULL) seen = mem_alloc_zeroed(PARAMS_MAX * sizeof(*seen));
        if (!known && seen == NULL) {
            writer->err = ERR_NOMEM;
            break;
        }
        if (!known) {
            LinkValue value = {.type = WEFT_NULL};
            memcpy(seen[count], sql.p + at, bytes);
            seen[count][bytes] = 0;
            (void)param(param_arg, seen[count], &value);
            if (count == 0) {
                json_key(writer, "params");
                json_begin_object(writer);
            }
            json_key(writer, seen[count++]);
            value_put(writer, &value);
        }
        at = end;
    }
    if (count > 0) json_end_object(writer);
    mem_free(seen);
}

static bool
request_end(ServerLink *server, JsonWriter *writer, LinkError *error_out)
{
    json_end_object(writer);
    if (json_writer_done(writer) != OK || buf_append_byte(&server->out, '\n') != OK) {
        buf_clear(&server->out);
        return link__fail(error_out, WEFT_NOMEM, -1, false, "out of memory");
    }
    return out_send(server, error_out);
}

static bool
statement_run(ServerLink *server, Slice sql, const LinkSink *sink, LinkParam param, void *param_arg,
              LinkError *error_out)
{
    JsonWriter writer;
    if (server->lost) return link__fail(error_out, WEFT_IOERR, -1, true, "not connected");
    json_writer_init(&writer, &server->out);
    json_begin_object(&writer);
    json_key(&writer, "q");
    json_write_text(&writer, sql);
    params_put(&writer, sql, param, param_arg);
    if (!request_end(server, &writer, error_out)) return false;
    return answer_read(server, sink, error_out);
}

static bool
server_run(Link *link, Slice sql, const LinkSink *sink, LinkParam param, void *param_arg,
           LinkError *error_out)
{
    ServerLink *server = server_link(link);
    size_t at = 0;
    while (at < sql.bytes) {
        Scan scan = {0};
        size_t used = 0;
        Slice rest = {sql.p + at, sql.bytes - at};
        bool ended = scan_feed(&scan, rest, &used);
        /* A lone semicolon or trailing comment is no statement. */
        Scan check = {0};
        size_t unused = 0;
        (void)scan_feed(&check, (Slice){rest.p, ended ? used - 1 : used}, &unused);
        if (!scan_is_blank(&check) || check.inside != 0) {
            if (!statement_run(server, (Slice){rest.p, used}, sink, param, param_arg, error_out)) {
                if (error_out->offset >= 0) error_out->offset += (i64)at;
                error_out->statement = (i64)at;
                return false;
            }
        }
        at += used;
    }
    return true;
}

static i64
server_changes(Link *link)
{
    return server_link(link)->changes;
}

static void
server_interrupt(Link *link)
{
    rt_task_cancel(server_link(link)->task);
}

static void
server_close(Link *link)
{
    ServerLink *server = server_link(link);
    rt_socket_close(server->socket);
    mem_free(server->address);
    buf_free(&server->in);
    buf_free(&server->out);
    arena_free(&server->arena);
    mem_free(server);
}

/* ---- loading ---- */

static const LinkSink no_sink = {0};

static bool
plain_run(ServerLink *server, const char *sql, LinkError *error_out)
{
    return statement_run(server, SLICE(sql, strlen(sql)), &no_sink, NULL, NULL, error_out);
}

static LinkLoad *
server_load_begin(Link *link, const char *sql, u32 columns, LinkError *error_out)
{
    ServerLink *server = server_link(link);
    ServerLoad *load = MEM_NEW(ServerLoad);
    char *copy = mem_strdup(sql);
    if (load == NULL || copy == NULL) {
        link__fail(error_out, WEFT_NOMEM, -1, false, "out of memory");
    } else {
        *load = (ServerLoad){.load = {link, columns}, .sql = copy};
        load->own_transaction = !server->in_transaction;
        if (!load->own_transaction || plain_run(server, "BEGIN", error_out)) return &load->load;
    }
    mem_free(load);
    mem_free(copy);
    return NULL;
}

static bool
load_send(ServerLoad *load, LinkError *error_out)
{
    ServerLink *server = server_link(load->load.link);
    JsonWriter writer;
    Buf rows = {0};
    if (load->row_count == 0) return true;
    if (server->lost) return link__fail(error_out, WEFT_IOERR, -1, true, "not connected");
    json_writer_init(&writer, &server->out);
    json_begin_object(&writer);
    json_key(&writer, "q");
    json_write_string(&writer, load->sql);
    json_key(&writer, "rows");
    if (buf_append_byte(&rows, '[') != OK ||
        buf_append(&rows, load->rows.p, load->rows.bytes) != OK ||
        buf_append_byte(&rows, ']') != OK)
        writer.err = ERR_NOMEM;
    else
        json_write_raw(&writer, buf_slice(&rows));
    buf_free(&rows);
    buf_clear(&load->rows);
    load->row_count = 0;
    return request_end(server, &writer, error_out) && answer_read(server, &no_sink, error_out);
}

static bool
server_load_row(LinkLoad *base, const LinkValue *values, LinkError *error_out)
{
    ServerLoad *load = CONTAINER_OF(base, ServerLoad, load);
    JsonWriter writer;
    Err err = load->row_count > 0 ? buf_append_byte(&load->rows, ',') : OK;
    json_writer_init(&writer, &load->rows);
    json_begin_array(&writer);
    for (u32 i = 0; i < base->columns; i++)
        value_put(&writer, &values[i]);
    json_end_array(&writer);
    if (err != OK || json_writer_done(&writer) != OK)
        return link__fail(error_out, WEFT_NOMEM, -1, true, "out of memory");
    load->row_count++;
    if (load->row_count < LOAD_ROWS && load->rows.bytes < LOAD_BYTES) return true;
    return load_send(load, error_out);
}

static bool
server_load_end(LinkLoad *base, bool keep, LinkError *error_out)
{
    ServerLoad *load = CONTAINER_OF(base, ServerLoad, load);
    ServerLink *server = server_link(base->link);
    bool good = !keep || load_send(load, error_out);
    if (load->own_transaction && !server->lost) {
        LinkError ignored = {.offset = -1};
        if (good && keep) good = plain_run(server, "COMMIT", error_out);
        if (!(good && keep) && !plain_run(server, "ROLLBACK", &ignored)) link_error_clear(&ignored);
    }
    mem_free(load->sql);
    buf_free(&load->rows);
    mem_free(load);
    return good;
}

static const LinkKind server_kind = {server_close,   server_interrupt,  server_run,
                                     server_changes, server_load_begin, server_load_row,
                                     server_load_end};

/* ---- connecting ---- */

static bool
banner_take(ServerLink *server, const char *token, LinkError *error_out)
{
    JsonNode *root = NULL;
    Slice key;
    /* Who speaks first gets the banner at once. */
    Err err = rt_socket_write(server->socket, "\n", 1, rt_deadline_after(CONNECT_NS), NULL);
    if (err != OK) return lost(server, error_out, "the connection to the server broke");
    if (!reply_read(server, &root, error_out)) return false;
    if (json_member(root, "err") != NULL) return error_take(json_member(root, "err"), error_out);
    if (json_member(root, "quack") == NULL ||
        !json_get_int(json_member(root, "session"), &server->session) ||
        !json_get_text(json_member(root, "key"), &key) || key.bytes >= sizeof(server->key))
        return link__fail(error_out, WEFT_IOERR, -1, false, "this is not a weftd");
    memcpy(server->key, key.p, key.bytes);
    if (json_member(root, "token") == NULL) return true;
    if (token == NULL)
        return link__fail(error_out, WEFT_ERROR, -1, false,
                          "the server asks for a token (set WEFT_TOKEN)");
    JsonWriter writer;
    json_writer_init(&writer, &server->out);
    json_begin_object(&writer);
    json_key(&writer, "token");
    json_write_string(&writer, token);
    return request_end(server, &writer, error_out) && answer_read(server, &no_sink, error_out);
}

Link *
link_open_server(const char *address, const char *token, LinkError *error_out)
{
    ErrMsg msg = {0};
    ServerLink *server = MEM_NEW(ServerLink);
    char *copy = mem_strdup(address);
    if (server == NULL || copy == NULL) {
        mem_free(server);
        mem_free(copy);
        link__fail(error_out, WEFT_NOMEM, -1, false, "out of memory");
        return NULL;
    }
    server->link.kind = &server_kind;
    server->task = rt_self();
    server->address = copy;
    arena_init(&server->arena, NULL);
    Err err = rt_connect(address, rt_deadline_after(CONNECT_NS), &server->socket, &msg);
    if (err != OK) {
        link__fail(error_out, WEFT_CANTOPEN, -1, false, err_message(&msg));
        err_clear(&msg);
    } else if (banner_take(server, token, error_out)) {
        return &server->link;
    }
    server_close(&server->link);
    return NULL;
}
