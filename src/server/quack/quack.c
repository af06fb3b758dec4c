/*
 * quack.c -- requests of the line protocol: which kind, what they need, how they are answered.
 *
 * Every request ends with exactly one line that carries "done", "pong", "handle", "bye" or "err".
 * Rows come before it.  A statement that writes sends nothing until it is finished, so a client
 * that reads slowly never holds locks; a query streams.
 */
#include "server/server__quack.h"

#include <stdio.h>
#include <string.h>

#include "server/auth.h"
#include "server/quack/quack_run.h"

#define JSON_DEPTH_MAX 64u
#define JSON_NODES_MAX 2000000u

static const char hex_digits[] = "0123456789abcdef";

Err
quack__banner(Conn *conn)
{
    JsonWriter writer;
    char key[2 * CONN_KEY_BYTES];
    for (u32 i = 0; i < CONN_KEY_BYTES; i++) {
        key[2 * i] = hex_digits[conn->key[i] >> 4];
        key[2 * i + 1] = hex_digits[conn->key[i] & 15];
    }
    json_writer_init(&writer, &conn->out);
    json_begin_object(&writer);
    json_key(&writer, "hello");
    json_write_string(&writer, "weft");
    json_key(&writer, "version");
    json_write_string(&writer, WEFT_VERSION);
    json_key(&writer, "quack");
    json_write_int(&writer, 1);
    json_key(&writer, "session");
    json_write_int(&writer, (i64)conn->number);
    json_key(&writer, "key");
    json_write_text(&writer, SLICE(key, sizeof(key)));
    if (!conn->trusted) {
        json_key(&writer, "token");
        json_write_string(&writer, "required");
    }
    return quack__reply_end(conn, &writer, 0);
}

void
quack__reply_begin(Conn *conn, const JsonNode *id, JsonWriter *writer_out)
{
    json_writer_init(writer_out, &conn->out);
    json_begin_object(writer_out);
    if (id != NULL) {
        json_key(writer_out, "id");
        json_write_node(writer_out, id);
    }
}

Err
quack__reply_end(Conn *conn, JsonWriter *writer, size_t start)
{
    json_end_object(writer);
    Err err = json_writer_done(writer);
    if (err == OK) err = buf_append_byte(&conn->out, '\n');
    if (err != OK) conn->out.bytes = start; /* Half a line would break the framing. */
    return err;
}

Err
quack__error(Conn *conn, int code, const char *name, const char *text)
{
    Fault fault = {0};
    fault__set(&fault, code, name, "%s", text);
    Err err = quack__error_reply(conn, NULL, &fault, -1);
    fault__free(&fault);
    return err;
}

Err
quack__error_reply(Conn *conn, const JsonNode *id, const Fault *fault, i64 row)
{
    JsonWriter writer;
    size_t start = conn->out.bytes;
    quack__reply_begin(conn, id, &writer);
    json_key(&writer, "err");
    json_begin_object(&writer);
    json_key(&writer, "code");
    json_write_int(&writer, fault->code);
    json_key(&writer, "name");
    json_write_string(&writer, fault->name);
    json_key(&writer, "message");
    json_write_text(&writer, fault__text(fault));
    if (fault->offset >= 0) {
        json_key(&writer, "offset");
        json_write_int(&writer, fault->offset);
    }
    if (row >= 0) {
        json_key(&writer, "row");
        json_write_int(&writer, row);
    }
    json_end_object(&writer);
    return quack__reply_end(conn, &writer, start);
}

/* An error of the protocol, in answer to a request. */
static Err
refuse(Conn *conn, const JsonNode *id, const char *name, const char *text)
{
    Fault *fault = &conn->quack->fault;
    server__count(conn->server, COUNT_ERRORS, 1);
    fault__set(fault, 21, name, "%s", text);
    return quack__error_reply(conn, id, fault, -1);
}

static Err
simple_reply(Conn *conn, const JsonNode *id, const char *key, i64 value)
{
    JsonWriter writer;
    size_t start = conn->out.bytes;
    quack__reply_begin(conn, id, &writer);
    json_key(&writer, key);
    json_write_int(&writer, value);
    return quack__reply_end(conn, &writer, start);
}

/* ---- single requests ---- */

static Err
do_ping(Conn *conn, const JsonNode *id, const JsonNode *payload)
{
    JsonWriter writer;
    size_t start = conn->out.bytes;
    quack__reply_begin(conn, id, &writer);
    json_key(&writer, "pong");
    json_write_node(&writer, payload);
    return quack__reply_end(conn, &writer, start);
}

static Err
do_token(Conn *conn, const JsonNode *id, const JsonNode *given)
{
    Slice text;
    if (!json_get_text(given, &text)) return refuse(conn, id, "QUACK_REQUEST", "token is a string");
    Trust trust = auth__token(conn->server->auth, text);
    if (trust.result == AUTH_NOMEM) return refuse(conn, id, trust.code, trust.text);
    if (trust.result != AUTH_OK) {
        conn->closing = true;
        server__count(conn->server, COUNT_AUTH_FAILED, 1);
        return refuse(conn, id, "QUACK_AUTH",
                      trust.result == AUTH_EXPIRED ? trust.text : "wrong token");
    }
    /* What ran before ran with the rights of the former token; what comes has those of this one. */
    const char *why = quack__why_stays(conn);
    if (why != NULL) return refuse(conn, id, "QUACK_REQUEST", why);
    quack__seat_close(conn);
    if (trust.database[0] != 0) memcpy(conn->quack->database, trust.database, DB_NAME_BYTES);
    conn->quack->one_database = trust.database[0] != 0;
    conn->trusted = true;
    conn->rights = auth__rights(&trust);
    return simple_reply(conn, id, "done", 0);
}

static i32
hex_value(u8 c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

static bool
key_read(Slice text, u8 key_out[CONN_KEY_BYTES])
{
    if (text.bytes != 2 * CONN_KEY_BYTES) return false;
    for (u32 i = 0; i < CONN_KEY_BYTES; i++) {
        i32 high = hex_value(text.p[2 * i]), low = hex_value(text.p[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        key_out[i] = (u8)(high << 4 | low);
    }
    return true;
}

/* {"cancel": {"session": n, "key": "..."}} ends the request that runs on that connection. */
static Err
do_cancel(Conn *conn, const JsonNode *id, const JsonNode *target)
{
    i64 number = 0;
    Slice text;
    u8 key[CONN_KEY_BYTES];
    if (!json_get_int(json_member(target, "session"), &number) ||
        !json_get_text(json_member(target, "key"), &text) || !key_read(text, key))
        return refuse(conn, id, "QUACK_REQUEST",
                      "cancel needs the session and the key that the other banner showed");
    if (!server__cancel(conn->server, (u64)number, key))
        return refuse(conn, id, "QUACK_CANCEL", "no such session, or wrong key");
    return simple_reply(conn, id, "done", 1);
}

static Err
do_close(Conn *conn, const JsonNode *id, const JsonNode *handle)
{
    i64 number = 0;
    if (!json_get_int(handle, &number) || !quack__handle_close(conn, number))
        return refuse(conn, id, "QUACK_HANDLE", "no such handle");
    return simple_reply(conn, id, "done", 0);
}

/* ---- dispatch ---- */

typedef Err (*RequestFn)(Conn *conn, const JsonNode *request, const JsonNode *id,
                         const JsonNode *value);

static Err
on_ping(Conn *conn, const JsonNode *request, const JsonNode *id, const JsonNode *value)
{
    (void)request;
    return do_ping(conn, id, value);
}

static Err
on_token(Conn *conn, const JsonNode *request, const JsonNode *id, const JsonNode *value)
{
    (void)request;
    return do_token(conn, id, value);
}

static Err
on_cancel(Conn *conn, const JsonNode *request, const JsonNode *id, const JsonNode *value)
{
    (void)request;
    return do_cancel(conn, id, value);
}

static Err
on_close(Conn *conn, const JsonNode *request, const JsonNode *id, const JsonNode *value)
{
    (void)request;
    return do_close(conn, id, value);
}

static Err
on_quit(Conn *conn, const JsonNode *request, const JsonNode *id, const JsonNode *value)
{
    (void)request;
    (void)value;
    conn->closing = true;
    return simple_reply(conn, id, "bye", 1);
}

static const struct {
    const char *key;
    RequestFn run;
    bool needs_trust;
} requests[] = {
    {"q", quack__query, true},       {"exec", quack__exec, true}, {"prepare", quack__prepare, true},
    {"script", quack__script, true}, {"use", quack__use, true},   {"close", on_close, true},
    {"cancel", on_cancel, false},    {"ping", on_ping, false},    {"token", on_token, false},
    {"quit", on_quit, false},
};

/* Keys that go with a request without being one. */
static bool
is_option(Slice key)
{
    static const char *const options[] = {"id", "params", "rows", "limit"};
    for (size_t i = 0; i < COUNT_OF(options); i++)
        if (slice_equal(key, SLICE(options[i], strlen(options[i])))) return true;
    return false;
}

/* The one member that says what is asked; -1 when there is none, two, or an unknown key. */
static i32
request_find(const JsonNode *root, const JsonNode **value_out)
{
    i32 found = -1;
    for (const JsonNode *node = root->u.first; node != NULL; node = node->next) {
        if (is_option(node->key)) continue;
        i32 match = -1;
        for (size_t i = 0; i < COUNT_OF(requests); i++)
            if (slice_equal(node->key, SLICE(requests[i].key, strlen(requests[i].key))))
                match = (i32)i;
        if (match < 0 || found >= 0) return -1;
        found = match;
        *value_out = node;
    }
    return found;
}

static Err
request_run(Conn *conn, const JsonNode *root)
{
    const JsonNode *id = json_member(root, "id"), *value = NULL;
    if (id != NULL && (id->type == JSON_ARRAY || id->type == JSON_OBJECT))
        return refuse(conn, NULL, "QUACK_REQUEST", "id is a number or a string");
    i32 which = request_find(root, &value);
    if (which < 0)
        return refuse(conn, id, "QUACK_REQUEST",
                      "a request has exactly one of q, prepare, exec, close, script, use, cancel, "
                      "ping, token and quit, and besides only id, params, rows and limit");
    if (requests[which].needs_trust && !conn->trusted)
        return refuse(conn, id, "QUACK_AUTH", "send {\"token\": ...} first");
    return requests[which].run(conn, root, id, value);
}

Err
quack__line(Conn *conn, Slice line)
{
    QuackState *quack = conn->quack;
    JsonLimits limits = {.depth_max = JSON_DEPTH_MAX,
                         .nodes_max = JSON_NODES_MAX,
                         .bytes_max = conn->server->options.line_bytes_max};
    JsonError where = {0};
    JsonNode *root = NULL;
    Err err = json_parse(line, &limits, false, &quack->arena, &root, &where);
    if (err == OK && root->type == JSON_OBJECT) {
        err = request_run(conn, root);
    } else if (err != ERR_NOMEM) {
        /* Whoever does not speak JSON is not one of ours: a browser that was made to send a form
           here would otherwise get its later lines executed. */
        char text[160];
        snprintf(text, sizeof(text), "not a JSON object: %s at byte %zu; closing",
                 err == OK ? "another kind of value" : where.what, err == OK ? 0 : where.offset);
        conn->closing = true;
        err = refuse(conn, NULL, err == ERR_LIMIT ? "QUACK_LIMIT" : "QUACK_JSON", text);
    }
    if (quack->arena.total_bytes > CONN_KEEP_BYTES)
        arena_free(&quack->arena);
    else
        arena_reset(&quack->arena);
    return err;
}
