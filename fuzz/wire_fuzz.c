/*
 * wire_fuzz.c -- well-formed requests of any structure, in every protocol, against a whole server.
 *
 * The input's bytes are choices: the protocol, the requests and their members, SQL, values,
 * nesting. What comes out is grammatical and so reaches what bytes at random do not: streams and
 * batons, stored SQL, conditions, cursors, handles, transactions.  Now and then the structure is
 * spoiled by a member of a wrong type.
 *
 * Checked: no crash, and every answer is well-formed to its last byte and belongs to its
 * requests: Quack ends each with one line that has its id, a pipeline has as many results, a
 * WebSocket answers no request twice and says nothing after its close.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "served.h"
#include "wire_gen.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

#define EXCHANGES_MAX 4u

/* ---- answers ---- */

static const JsonNode *
json_check(Slice text, Arena *arena)
{
    JsonNode *root = NULL;
    JsonError where = {0};
    Err err = json_parse(text, NULL, true, arena, &root, &where);
    ASSERT(err == OK);
    return root;
}

static u64
varint_check(Slice *rest)
{
    u64 value = 0;
    for (u32 shift = 0;; shift += 7) {
        ASSERT(rest->bytes > 0 && shift < 70);
        u8 byte = rest->p[0];
        *rest = SLICE(rest->p + 1, rest->bytes - 1);
        value |= (u64)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
}

/* The next field of a message; false at its end.  Numbers leave *bytes_out empty. */
static bool
pb_next(Slice *rest, u32 *field_out, Slice *bytes_out, u64 *value_out)
{
    if (rest->bytes == 0) return false;
    u64 tag = varint_check(rest), bytes = 0;
    *field_out = (u32)(tag >> 3);
    *bytes_out = SLICE_NONE;
    *value_out = 0;
    switch (tag & 7) {
    case 0: *value_out = varint_check(rest); break;
    case 1: bytes = 8; break;
    case 2:
        bytes = varint_check(rest);
        ASSERT(bytes <= rest->bytes);
        *bytes_out = SLICE(rest->p, bytes);
        break;
    default: abort(); /* No other wire type is used. */
    }
    ASSERT(bytes <= rest->bytes);
    *rest = SLICE(rest->p + bytes, rest->bytes - bytes);
    return true;
}

/* The end of the head; everything behind it is the rest. */
static u32
head_take(Slice *rest, bool *chunked_out)
{
    const u8 *end = memmem(rest->p, rest->bytes, "\r\n\r\n", 4);
    ASSERT(end != NULL && rest->bytes > 12 && memcmp(rest->p, "HTTP/1.1 ", 9) == 0);
    Slice head = SLICE(rest->p, (size_t)(end - rest->p) + 2);
    static const char chunked[] = "\r\nTransfer-Encoding: chunked\r\n";
    *chunked_out = memmem(head.p, head.bytes, chunked, sizeof(chunked) - 1) != NULL;
    u32 status = (u32)(head.p[9] - '0') * 100 + (u32)(head.p[10] - '0') * 10 +
                 (u32)(head.p[11] - '0');
    *rest = SLICE(rest->p + head.bytes + 2, rest->bytes - head.bytes - 2);
    return status;
}

static void
chunks_join(Slice rest, Buf *body)
{
    for (;;) {
        u64 bytes = 0;
        while (rest.bytes > 0 && rest.p[0] != '\r') {
            u8 digit = rest.p[0];
            bytes = bytes * 16 + (u64)(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
            rest = SLICE(rest.p + 1, rest.bytes - 1);
        }
        ASSERT(rest.bytes >= 4 && bytes <= rest.bytes - 4);
        if (bytes > 0) ASSERT(buf_append(body, rest.p + 2, bytes) == OK);
        rest = SLICE(rest.p + bytes + 4, rest.bytes - bytes - 4);
        if (bytes == 0) return;
    }
}

typedef struct Answered {
    u32 results;
    Buf baton;
} Answered;

static void
baton_keep(Answered *answered, Slice baton)
{
    buf_clear(&answered->baton);
    if (baton.bytes > 0) ASSERT(buf_append(&answered->baton, baton.p, baton.bytes) == OK);
}

static void
json_answer(Slice body, bool is_cursor, Arena *arena, Answered *answered)
{
    Slice baton;
    bool first = true;
    do {
        const u8 *end = is_cursor ? memchr(body.p, '\n', body.bytes) : body.p + body.bytes;
        ASSERT(end != NULL);
        const JsonNode *root = json_check(SLICE(body.p, (size_t)(end - body.p)), arena);
        if (first) {
            if (!json_get_text(json_member(root, "baton"), &baton)) baton = SLICE_NONE;
            baton_keep(answered, baton);
        }
        const JsonNode *results = json_member(root, "results");
        if (results != NULL) answered->results = results->count;
        first = false;
        size_t used = MIN_OF((size_t)(end - body.p) + 1, body.bytes);
        body = SLICE(body.p + used, body.bytes - used);
    } while (body.bytes > 0);
}

static void
pb_answer(Slice body, bool is_cursor, Answered *answered)
{
    u32 field;
    Slice bytes, message = body;
    u64 value;
    bool first = true;
    baton_keep(answered, SLICE_NONE);
    do {
        if (is_cursor) {
            u64 length = varint_check(&body);
            ASSERT(length <= body.bytes);
            message = SLICE(body.p, length);
            body = SLICE(body.p + length, body.bytes - length);
        }
        while (pb_next(&message, &field, &bytes, &value)) {
            if (first && field == 1) baton_keep(answered, bytes);
            if (!is_cursor && field == 3) answered->results++;
        }
        first = false;
    } while (is_cursor && body.bytes > 0);
}

/* ---- Hrana over HTTP ---- */

static void
http_send(Gen *gen, Slice body, bool is_cursor, u32 asked, Answered *answered)
{
    static const char *const paths[] = {"/v3/pipeline", "/v3/cursor", "/v3-protobuf/pipeline",
                                        "/v3-protobuf/cursor", "/v2/pipeline"};
    Buf text = {0}, answer = {0}, whole = {0};
    Arena arena;
    bool is_pb = gen->to.is_pb, chunked;
    u32 path = is_pb ? 2u + is_cursor : is_cursor ? 1u : gen_pick(gen, 2) * 4;
    arena_init(&arena, NULL);
    Err err = buf_printf(&text,
                         "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         "Content-Length: %zu\r\n\r\n",
                         paths[path], body.bytes);
    if (err == OK && body.bytes > 0) err = buf_append(&text, body.p, body.bytes);
    ASSERT(err == OK);
    answered->results = 0;
    if (served_exchange(buf_slice(&text), &answer) && answer.bytes > 0) {
        Slice rest = buf_slice(&answer);
        u32 status = head_take(&rest, &chunked);
        ASSERT(status == 200 || (status >= 400 && status < 500));
        if (chunked) {
            chunks_join(rest, &whole);
            rest = buf_slice(&whole);
        }
        if (status != 200) baton_keep(answered, SLICE_NONE);
        if (status == 200 && is_pb) pb_answer(rest, is_cursor, answered);
        if (status == 200 && !is_pb) json_answer(rest, is_cursor, &arena, answered);
        if (status == 200 && !is_cursor) ASSERT(answered->results == asked);
    }
    buf_free(&text);
    buf_free(&answer);
    buf_free(&whole);
    arena_free(&arena);
}

static void
hrana_http(Gen *gen, bool is_pb, bool starts_with_cursor)
{
    Buf body = {0};
    Answered answered = {0};
    for (u32 round = 0; round <= EXCHANGES_MAX; round++) {
        bool last = round == EXCHANGES_MAX || gen->choices.bytes == 0;
        bool is_cursor = !last && (round == 0 ? starts_with_cursor : gen_pick(gen, 3) == 1);
        u32 asked = 0;
        buf_clear(&body);
        hrana__writer_init(&gen->to, &body, is_pb, 3, NULL);
        if (!is_pb) json_begin_object(&gen->to.json);
        if (answered.baton.bytes > 0) gen_text(gen, "baton", 1, buf_slice(&answered.baton));
        if (is_cursor) {
            gen_batch(gen, 2);
        } else if (last) { /* Close the stream: nothing stays open. */
            gen_close(gen);
            asked = 1;
        } else {
            asked = gen_pipeline(gen);
        }
        if (!last) gen_spoil(gen);
        if (!is_pb) json_end_object(&gen->to.json);
        ASSERT(hrana__writer_done(&gen->to) == OK);
        if (!last || answered.baton.bytes > 0)
            http_send(gen, buf_slice(&body), is_cursor, asked, &answered);
        if (last) break;
    }
    buf_free(&answered.baton);
    buf_free(&body);
}

/* ---- Hrana over a WebSocket ---- */

static void
frame_put(Buf *out, u8 first, Slice payload)
{
    u8 head[8] = {first, 0xfe, (u8)(payload.bytes >> 8), (u8)payload.bytes};
    bool small = payload.bytes < 126;
    if (small) {
        memset(head, 0, sizeof(head));
        head[0] = first;
        head[1] = (u8)(0x80 | payload.bytes);
    }
    ASSERT(payload.bytes < 65536 && buf_append(out, head, small ? 6 : 8) == OK);
    if (payload.bytes > 0) ASSERT(buf_append(out, payload.p, payload.bytes) == OK);
}

/* Which request a message answers; -1: the hello. */
static i64
answered_id(Slice payload, bool is_pb, Arena *arena)
{
    i64 id = -1;
    u32 field;
    Slice bytes, part;
    u64 value;
    if (!is_pb) {
        const JsonNode *node = json_member(json_check(payload, arena), "request_id");
        ASSERT(node == NULL || json_get_int(node, &id));
        return id;
    }
    ASSERT(pb_next(&payload, &field, &bytes, &value) && payload.bytes == 0);
    if (field < 3) return -1;
    for (id = 0; pb_next(&bytes, &field, &part, &value);)
        if (field == 1) id = (i64)value;
    return id;
}

static void
frames_check(Slice rest, bool is_pb, u32 asked)
{
    bool seen[REQUESTS_MAX] = {false}, closed = false;
    Arena arena;
    arena_init(&arena, NULL);
    while (rest.bytes > 0) {
        ASSERT(!closed && rest.bytes >= 2 && (rest.p[0] & 0xf0) == 0x80 && rest.p[1] < 0x80);
        u8 opcode = rest.p[0] & 15;
        u64 bytes = rest.p[1];
        size_t head = bytes < 126 ? 2 : bytes == 126 ? 4 : 10;
        ASSERT(rest.bytes >= head);
        if (head > 2) bytes = 0;
        for (size_t i = 2; i < head; i++)
            bytes = bytes << 8 | rest.p[i];
        ASSERT(bytes <= rest.bytes - head);
        Slice payload = SLICE(rest.p + head, bytes);
        rest = SLICE(rest.p + head + bytes, rest.bytes - head - bytes);
        closed = opcode == 8;
        if (closed) continue;
        ASSERT(opcode == (is_pb ? 2 : 1));
        i64 id = answered_id(payload, is_pb, &arena);
        if (id < 0) continue;
        ASSERT(id < (i64)asked && !seen[id]);
        seen[id] = true;
    }
    arena_free(&arena);
}

static void
hrana_ws(Gen *gen, bool is_pb)
{
    Buf text = {0}, message = {0}, answer = {0};
    u32 asked = 0;
    bool chunked;
    u8 opcode = is_pb ? 0x82 : 0x81;
    ASSERT(buf_printf(&text,
                      "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                      "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                      "Sec-WebSocket-Protocol: %s\r\n\r\n",
                      is_pb ? "hrana3-protobuf" : "hrana3") == OK);
    frame_put(&text, opcode, is_pb ? SLICE("\x0a\0", 2) : SLICE_LITERAL("{\"type\":\"hello\"}"));
    gen->to.is_pb = is_pb;
    while (gen->choices.bytes > 0 && asked < REQUESTS_MAX) {
        gen_message(gen, asked++, &message);
        frame_put(&text, opcode, buf_slice(&message));
    }
    frame_put(&text, 0x88, SLICE("\x03\xe8", 2));
    if (served_exchange(buf_slice(&text), &answer) && answer.bytes > 0) {
        Slice rest = buf_slice(&answer);
        ASSERT(head_take(&rest, &chunked) == 101);
        frames_check(rest, is_pb, asked);
    }
    buf_free(&text);
    buf_free(&message);
    buf_free(&answer);
}

/* ---- Quack ---- */

static void
quack_check(Slice rest, u32 asked, bool spoiled)
{
    static const char *const lasts[] = {"done", "pong", "handle", "bye", "err"};
    u32 ended = 0;
    Arena arena;
    arena_init(&arena, NULL);
    while (rest.bytes > 0) {
        i64 id;
        const u8 *end = memchr(rest.p, '\n', rest.bytes);
        ASSERT(end != NULL);
        size_t bytes = (size_t)(end - rest.p);
        const JsonNode *root = json_check(SLICE(rest.p, bytes), &arena);
        rest = SLICE(rest.p + bytes + 1, rest.bytes - bytes - 1);
        u32 last = 0;
        for (size_t i = 0; i < COUNT_OF(lasts); i++)
            last += json_member(root, lasts[i]) != NULL;
        bool is_banner = json_member(root, "hello") != NULL;
        ASSERT(last <= 1 && (!is_banner || last == 0));
        if (is_banner) continue;
        if (!spoiled) ASSERT(json_get_int(json_member(root, "id"), &id) && id == ended);
        ended += last;
    }
    ASSERT(spoiled ? ended <= asked : ended == asked);
    arena_free(&arena);
}

static void
quack(Gen *gen)
{
    Buf text = {0}, answer = {0};
    u32 asked = 0;
    bool quit = false;
    while (gen->choices.bytes > 0 && asked < REQUESTS_MAX && !quit) {
        hrana__writer_init(&gen->to, &text, false, 3, NULL);
        quit = gen_quack(gen, asked++);
        ASSERT(hrana__writer_done(&gen->to) == OK && buf_append_byte(&text, '\n') == OK);
    }
    if (served_exchange(buf_slice(&text), &answer))
        quack_check(buf_slice(&answer), asked, gen->spoiled);
    buf_free(&text);
    buf_free(&answer);
}

int
LLVMFuzzerTestOneInput(const u8 *data, size_t bytes)
{
    if (bytes < 2 || bytes > 4000) return 0;
    Gen gen = {.choices = SLICE(data + 1, bytes - 1)};
    switch (data[0] % 7) {
    case 0: quack(&gen); break;
    case 1: hrana_http(&gen, false, false); break;
    case 2: hrana_http(&gen, false, true); break;
    case 3: hrana_http(&gen, true, false); break;
    case 4: hrana_http(&gen, true, true); break;
    case 5: hrana_ws(&gen, false); break;
    default: hrana_ws(&gen, true); break;
    }
    return 0;
}
