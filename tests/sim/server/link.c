/*
 * link.c -- the three protocols, from the client's side.
 */
#include "link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pb.h"
#include "rt/sim/sim.h"
#include "rt/time.h"

#define READ_BYTES 4096u

/* ---- bytes ---- */

static Slice
input(const Link *link)
{
    if (link->in.p == NULL) return SLICE_LITERAL("");
    return SLICE(link->in.p + link->at, link->in.bytes - link->at);
}

/* Read some more.  False: the connection is over. */
static bool
more(Link *link)
{
    size_t got = 0;
    if (buf_reserve(&link->in, READ_BYTES) != OK) return false;
    Err err = rt_socket_read(link->socket, link->in.p + link->in.bytes, READ_BYTES,
                             rt_deadline_after(link->patience_ns), &got, NULL);
    link->timed_out = err == ERR_TIMEOUT;
    link->ended = got == 0 && !link->timed_out;
    link->in.bytes += got;
    return err == OK && got > 0;
}

static bool
have(Link *link, size_t bytes)
{
    while (input(link).bytes < bytes)
        if (!more(link)) return false;
    return true;
}

/* What the last answer used goes. */
static void
answer_begin(Link *link)
{
    arena_free(&link->arena);
    arena_init(&link->arena, NULL);
    if (link->at == 0) return;
    link->in.bytes -= link->at;
    memmove(link->in.p, link->in.p + link->at, link->in.bytes);
    link->at = 0;
}

/* A line without its end; it stays valid until more is read. */
static bool
line_take(Link *link, Slice *line_out)
{
    for (size_t seen = 0;;) {
        Slice bytes = input(link);
        const u8 *end = bytes.bytes > seen ? memchr(bytes.p + seen, '\n', bytes.bytes - seen)
                                           : NULL;
        if (end != NULL) {
            *line_out = SLICE(bytes.p, (size_t)(end - bytes.p));
            link->at += line_out->bytes + 1;
            return true;
        }
        seen = bytes.bytes;
        if (!more(link)) return false;
    }
}

bool
link_send(Link *link, Slice bytes)
{
    Err err = rt_socket_write(link->socket, bytes.p, bytes.bytes,
                              rt_deadline_after(link->patience_ns), NULL);
    link->timed_out = err == ERR_TIMEOUT;
    link->ended = err != OK && !link->timed_out;
    return err == OK;
}

bool
link_parse(Link *link, Slice text, const JsonNode **root_out)
{
    JsonNode *root = NULL;
    JsonError where = {0};
    Err err = json_parse(text, NULL, true, &link->arena, &root, &where);
    if (err != OK && err != ERR_NOMEM)
        rt_sim_fail("an answer is no JSON (%s at %zu): %.*s", where.what, where.offset,
                    (int)MIN_OF(text.bytes, (size_t)200), (const char *)text.p);
    *root_out = root;
    return err == OK;
}

/* ---- Quack ---- */

bool
link_line(Link *link, const JsonNode **root_out)
{
    Slice line;
    answer_begin(link);
    if (!line_take(link, &line)) return false;
    return link_parse(link, line, root_out);
}

/* The code of an error, for those who expect one. */
static void
refusal_take(Link *link, const JsonNode *error, const char *member)
{
    Slice code = SLICE_NONE;
    if (!json_get_text(json_member(error, member), &code)) rt_sim_fail("a refusal has no code");
    snprintf(link->refused, sizeof(link->refused), "%.*s", (int)code.bytes, (const char *)code.p);
}

/* {"key": value} and its answer; false: over, or refused. */
static bool
quack_tell(Link *link, const char *key, const char *value)
{
    Buf line = {0};
    const JsonNode *root;
    Err err = buf_printf(&line, "{\"%s\":\"%s\"}\n", key, value);
    bool good = err == OK && link_send(link, buf_slice(&line)) && link_line(link, &root);
    buf_free(&line);
    if (!good) return false;
    const JsonNode *error = json_member(root, "err");
    if (error != NULL) refusal_take(link, error, "name");
    if (error == NULL && json_member(root, "done") == NULL) rt_sim_fail("no answer to %s", key);
    return error == NULL;
}

bool
link_use(Link *link, const char *db, bool *refused_out)
{
    link->refused[0] = 0;
    bool good = quack_tell(link, "use", db);
    *refused_out = link->refused[0] != 0;
    return good || *refused_out;
}

static bool
quack_greet(Link *link)
{
    const JsonNode *root;
    const Way *way = &link->way;
    if (!link_send(link, SLICE_LITERAL("\n")) || !link_line(link, &root)) return false;
    /* An error line is a refusal. */
    if (json_member(root, "err") != NULL) return false;
    if (json_member(root, "hello") == NULL) rt_sim_fail("no banner");
    if (way->token[0] != 0 && !quack_tell(link, "token", way->token)) return false;
    return way->db == NULL || quack_tell(link, "use", way->db);
}

/* ---- HTTP ---- */

static bool
starts_with(Slice text, const char *start)
{
    size_t bytes = strlen(start);
    return text.bytes >= bytes && memcmp(text.p, start, bytes) == 0;
}

static u64
number_at(Slice text, size_t at, int base)
{
    char digits[24] = {0};
    size_t bytes = MIN_OF(text.bytes - MIN_OF(at, text.bytes), sizeof(digits) - 1);
    memcpy(digits, text.p + at, bytes);
    return strtoull(digits, NULL, base);
}

typedef struct Head {
    u32 status;
    u64 length;
    bool chunked, closes;
} Head;

static bool
head_take(Link *link, Head *head)
{
    Slice line;
    *head = (Head){0};
    if (!line_take(link, &line)) return false;
    if (!starts_with(line, "HTTP/1.1 ")) {
        /* Before its acceptor knows the protocol a full server refuses in Quack. */
        if (starts_with(line, "{\"err\"")) return false;
        rt_sim_fail("no HTTP answer: %.*s", (int)MIN_OF(line.bytes, (size_t)100),
                    (const char *)line.p);
    }
    head->status = (u32)number_at(line, 9, 10);
    for (;;) {
        if (!line_take(link, &line)) return false;
        if (line.bytes == 1 && line.p[0] == '\r') return true;
        if (starts_with(line, "Content-Length: ")) head->length = number_at(line, 16, 10);
        if (starts_with(line, "Transfer-Encoding: chunked")) head->chunked = true;
        if (starts_with(line, "Connection: close")) head->closes = true;
    }
}

static bool
chunks_take(Link *link, Buf *body)
{
    for (;;) {
        Slice line;
        if (!line_take(link, &line)) return false;
        u64 bytes = number_at(line, 0, 16);
        if (!have(link, bytes + 2)) return false;
        if (buf_append(body, input(link).p, bytes) != OK) return false;
        if (memcmp(input(link).p + bytes, "\r\n", 2) != 0) rt_sim_fail("a chunk has no end");
        link->at += bytes + 2;
        if (bytes == 0) return true;
    }
}

/* The lines of a head that say who asks, and for which database. */
static Err
way_write(const Link *link, Buf *head)
{
    const Way *way = &link->way;
    bool by_host = way->db != NULL && way->naming == NAMED_BY_HOST;
    Err err = buf_printf(head, "Host: %s%slocalhost\r\n", by_host ? way->db : "",
                         by_host ? "." : "");
    if (err == OK && way->db != NULL && way->naming == NAMED_BY_HEADER)
        err = buf_printf(head, "x-namespace: %s\r\n", way->db);
    return err;
}

/* In front of a path. */
static const char *
way_prefix(const Link *link, char text[80])
{
    const Way *way = &link->way;
    text[0] = 0;
    if (way->db != NULL && way->naming == NAMED_BY_PATH) snprintf(text, 80, "/dev/%s", way->db);
    return text;
}

bool
link_post(Link *link, const char *path, Slice body, u32 *status_out, Slice *body_out)
{
    Buf text = {0};
    Head head;
    char prefix[80];
    answer_begin(link);
    Err err = buf_printf(&text, "POST %s%s HTTP/1.1\r\n", way_prefix(link, prefix), path);
    if (err == OK) err = way_write(link, &text);
    if (err == OK && link->way.token[0] != 0)
        err = buf_printf(&text, "Authorization: Bearer %s\r\n", link->way.token);
    if (err == OK) err = buf_printf(&text, "Content-Length: %zu\r\n\r\n", body.bytes);
    if (err == OK) err = buf_append(&text, body.p, body.bytes);
    bool good = err == OK && link_send(link, buf_slice(&text)) && head_take(link, &head);
    buf_clear(&text);
    if (good && head.chunked) good = chunks_take(link, &text);
    if (good && !head.chunked) {
        good = have(link, head.length) && buf_append(&text, input(link).p, head.length) == OK;
        if (good) link->at += head.length;
    }
    if (good) {
        char *copy = arena_strndup(&link->arena, text.p == NULL ? (const u8 *)"" : text.p,
                                   text.bytes);
        *body_out = SLICE(copy, text.bytes);
        *status_out = head.status;
        good = copy != NULL;
    }
    buf_free(&text);
    return good;
}

/* ---- WebSocket ---- */

#define OP_TEXT   1u
#define OP_BINARY 2u
#define OP_CLOSE  8u

static bool
frame_send(Link *link, u8 opcode, Slice payload)
{
    Buf frame = {0};
    u8 mask[4], head[4] = {(u8)(0x80 | opcode), 0xfe, (u8)(payload.bytes >> 8), (u8)payload.bytes};
    ASSERT(payload.bytes < 65536);
    store_u32(mask, (u32)rt_sim_draw(U32_MAX));
    if (payload.bytes < 126) head[1] = (u8)(0x80 | payload.bytes);
    Err err = buf_append(&frame, head, payload.bytes < 126 ? 2 : 4);
    if (err == OK) err = buf_append(&frame, mask, 4);
    for (size_t i = 0; err == OK && i < payload.bytes; i++)
        err = buf_append_byte(&frame, payload.p[i] ^ mask[i & 3]);
    bool good = err == OK && link_send(link, buf_slice(&frame));
    buf_free(&frame);
    return good;
}

bool
link_message_send(Link *link, Slice text)
{
    Buf bytes = {0};
    if (!link->is_pb) return frame_send(link, OP_TEXT, text);
    bool good = pb_request(PB_CLIENT_MSG, text, &bytes) == OK &&
                frame_send(link, OP_BINARY, buf_slice(&bytes));
    buf_free(&bytes);
    return good;
}

/* The next frame; its payload stays valid until more is read. */
static bool
frame_take(Link *link, u8 *opcode_out, Slice *payload_out)
{
    if (!have(link, 2)) return false;
    u8 first = input(link).p[0], second = input(link).p[1];
    size_t head = 2;
    u64 bytes = second & 0x7f;
    if ((first & 0xf0) != 0x80 || (second & 0x80) != 0) rt_sim_fail("not a server's frame");
    if (bytes >= 126) {
        size_t wide = bytes == 126 ? 2 : 8;
        if (!have(link, head + wide)) return false;
        bytes = 0;
        for (size_t i = 0; i < wide; i++)
            bytes = bytes << 8 | input(link).p[head + i];
        head += wide;
    }
    if (!have(link, head + bytes)) return false;
    *opcode_out = first & 15;
    *payload_out = SLICE(input(link).p + head, bytes);
    link->at += head + bytes;
    return true;
}

/* A message of Protobuf. */
static bool
binary_parse(Link *link, Slice payload, const JsonNode **root_out)
{
    Buf text = {0};
    bool good = pb_answer(PB_SERVER_MSG, payload, link->steps, &text) == OK &&
                link_parse(link, buf_slice(&text), root_out);
    buf_free(&text);
    return good;
}

bool
link_message(Link *link, const JsonNode **root_out)
{
    u8 opcode;
    Slice payload;
    answer_begin(link);
    for (;;) {
        if (!frame_take(link, &opcode, &payload)) return false;
        if (opcode == OP_TEXT && !link->is_pb) return link_parse(link, payload, root_out);
        if (opcode == OP_BINARY && link->is_pb) return binary_parse(link, payload, root_out);
        if (opcode != OP_CLOSE) rt_sim_fail("a frame that nobody asked for: %u", opcode);
        u32 code = payload.bytes < 2 ? 0 : (u32)payload.p[0] << 8 | payload.p[1];
        /* Going away, or out of memory; anything else blames us. */
        if (code != 1001 && code != 1011)
            rt_sim_fail("closed with %u: %.*s", code, (int)payload.bytes - 2,
                        (const char *)payload.p + 2);
        return false;
    }
}

static bool
ws_switch(Link *link)
{
    Head head;
    char prefix[80];
    Buf text = {0};
    link->version = 1 + (u32)rt_sim_draw(3);
    link->is_pb = link->version == 3 && rt_sim_draw(2) == 0;
    Err err = buf_printf(&text, "GET %s/ HTTP/1.1\r\n", way_prefix(link, prefix));
    if (err == OK) err = way_write(link, &text);
    if (err == OK)
        err = buf_printf(&text,
                         "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                         "Sec-WebSocket-Version: 13\r\n"
                         "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                         "Sec-WebSocket-Protocol: hrana%u%s\r\n\r\n",
                         link->version, link->is_pb ? "-protobuf" : "");
    bool good = err == OK && link_send(link, buf_slice(&text)) && head_take(link, &head);
    buf_free(&text);
    return good && head.status == 101; /* Else out of memory. */
}

static bool
ws_greet(Link *link)
{
    const JsonNode *root;
    Slice type;
    Buf text = {0};
    if (!ws_switch(link)) return false;
    bool has_token = link->way.token[0] != 0;
    Err err = has_token ? buf_printf(&text, "{\"type\":\"hello\",\"jwt\":\"%s\"}", link->way.token)
                        : buf_append_text(&text, "{\"type\":\"hello\",\"jwt\":null}");
    bool good = err == OK && link_message_send(link, buf_slice(&text)) && link_message(link, &root);
    buf_free(&text);
    if (!good) return false;
    if (!json_get_text(json_member(root, "type"), &type)) rt_sim_fail("an answer has no type");
    if (slice_equal(type, SLICE_LITERAL("hello_ok"))) return true;
    if (!slice_equal(type, SLICE_LITERAL("hello_error"))) rt_sim_fail("no answer to hello");
    refusal_take(link, json_member(root, "error"), "code");
    return false;
}

/* ---- life ---- */

bool
link_open(Link *link, LinkKind kind, const Way *way, u64 patience_ns)
{
    *link = (Link){.kind = kind, .patience_ns = patience_ns, .version = 3, .way = *way};
    arena_init(&link->arena, NULL);
    Err err = rt_connect(SERVER_ADDRESS, rt_deadline_after(patience_ns), &link->socket, NULL);
    if (err != OK) {
        link->socket = NULL;
        return false;
    }
    if (kind == LINK_QUACK) return quack_greet(link);
    if (kind == LINK_WS) return ws_greet(link);
    link->version = 2 + (u32)rt_sim_draw(2);
    link->is_pb = link->version == 3 && rt_sim_draw(2) == 0;
    return true;
}

void
link_close(Link *link)
{
    rt_socket_close(link->socket);
    link->socket = NULL;
    buf_free(&link->in);
    link->at = 0;
    arena_free(&link->arena);
}
