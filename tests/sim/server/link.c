/*
 * link.c -- the three protocols, from the client's side.
 */
#include "link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool
quack_greet(Link *link)
{
    const JsonNode *root;
    if (!link_send(link, SLICE_LITERAL("\n")) || !link_line(link, &root)) return false;
    /* An error line is a refusal. */
    if (json_member(root, "err") != NULL) return false;
    if (json_member(root, "hello") == NULL) rt_sim_fail("no banner");
    return true;
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

bool
link_post(Link *link, const char *path, Slice body, u32 *status_out, Slice *body_out)
{
    Buf text = {0};
    Head head;
    answer_begin(link);
    Err err = buf_printf(&text,
                         "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", path,
                         body.bytes);
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

#define OP_TEXT  1u
#define OP_CLOSE 8u
#define OP_PING  9u
#define OP_PONG  10u

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
    return frame_send(link, OP_TEXT, text);
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

bool
link_message(Link *link, const JsonNode **root_out)
{
    u8 opcode;
    Slice payload;
    answer_begin(link);
    for (;;) {
        if (!frame_take(link, &opcode, &payload)) return false;
        if (opcode == OP_TEXT) return link_parse(link, payload, root_out);
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
ws_greet(Link *link)
{
    Head head;
    const JsonNode *root;
    Slice type;
    Buf text = {0};
    link->version = 1 + (u32)rt_sim_draw(3);
    Err err = buf_printf(&text,
                         "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                         "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                         "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                         "Sec-WebSocket-Protocol: hrana%u\r\n\r\n",
                         link->version);
    bool good = err == OK && link_send(link, buf_slice(&text)) && head_take(link, &head);
    buf_free(&text);
    if (!good) return false;
    if (head.status != 101) return false; /* Out of memory. */
    if (!link_message_send(link, SLICE_LITERAL("{\"type\":\"hello\",\"jwt\":null}"))) return false;
    if (!link_message(link, &root)) return false;
    if (!json_get_text(json_member(root, "type"), &type)) rt_sim_fail("an answer has no type");
    return slice_equal(type, SLICE_LITERAL("hello_ok"));
}

/* ---- life ---- */

bool
link_open(Link *link, LinkKind kind, u64 patience_ns)
{
    *link = (Link){.kind = kind, .patience_ns = patience_ns, .version = 3};
    arena_init(&link->arena, NULL);
    Err err = rt_connect(SERVER_ADDRESS, rt_deadline_after(patience_ns), &link->socket, NULL);
    if (err != OK) {
        link->socket = NULL;
        return false;
    }
    if (kind == LINK_QUACK) return quack_greet(link);
    if (kind == LINK_WS) return ws_greet(link);
    link->version = 2 + (u32)rt_sim_draw(2);
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
