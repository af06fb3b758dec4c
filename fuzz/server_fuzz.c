/*
 * server_fuzz.c -- any bytes from a client, against a whole server.
 *
 * Checked: no crash, and after every input the server still answers (the next input needs it).  The
 * first byte chooses how the rest is wrapped: raw, as a body with its length, as WebSocket
 * frames or messages in fragments.
 */
#include <stdio.h>
#include <string.h>

#include "served.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

static Err
body_wrap(Buf *out, const char *path, Slice body)
{
    Err err = buf_printf(out, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
                         path, body.bytes);
    return err == OK ? buf_append(out, body.p, body.bytes) : err;
}

/* Each line of the input is a frame of its own. */
static Err
frames_wrap(Buf *out, bool is_pb, Slice input)
{
    Err err = buf_printf(out,
                         "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                         "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                         "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                         "Sec-WebSocket-Protocol: %s\r\n\r\n",
                         is_pb ? "hrana3-protobuf" : "hrana3");
    static const u8 hello_pb[] = {0x82, 0x82, 0, 0, 0, 0, 0x0a, 0x00};
    if (err == OK && is_pb) err = buf_append(out, hello_pb, sizeof(hello_pb));
    while (err == OK && input.bytes > 0) {
        const u8 *end = memchr(input.p, '\n', input.bytes);
        size_t bytes = end == NULL ? input.bytes : (size_t)(end - input.p);
        u8 head[8] = {(u8)(is_pb ? 0x82 : 0x81), 0xfe, (u8)(bytes >> 8), (u8)bytes};
        if (bytes < 126) {
            u8 small[6] = {head[0], (u8)(0x80 | bytes)};
            err = buf_append(out, small, sizeof(small));
        } else {
            err = buf_append(out, head, sizeof(head));
        }
        if (err == OK && bytes > 0) err = buf_append(out, input.p, bytes);
        size_t used = bytes + (end != NULL);
        input = SLICE(input.p + used, input.bytes - used);
    }
    return err;
}

static Err
frame_put(Buf *out, u8 first, Slice payload)
{
    u8 head[6] = {first, (u8)(0x80 | payload.bytes)};
    ASSERT(payload.bytes < 126);
    Err err = buf_append(out, head, sizeof(head));
    return err == OK && payload.bytes > 0 ? buf_append(out, payload.p, payload.bytes) : err;
}

/* A hello, then each line as a message in fragments, with pings between them; the first byte of a
   line is the length of its fragments. */
static Err
fragments_wrap(Buf *out, bool is_pb, Slice input)
{
    u8 opcode = is_pb ? 2 : 1;
    Err err = frames_wrap(out, is_pb, SLICE_NONE);
    if (err == OK && !is_pb) err = frame_put(out, 0x81, SLICE_LITERAL("{\"type\":\"hello\"}"));
    while (err == OK && input.bytes > 0) {
        const u8 *end = memchr(input.p, '\n', input.bytes);
        size_t bytes = end == NULL ? input.bytes : (size_t)(end - input.p),
               used = bytes + (end != NULL);
        size_t piece = bytes == 0 ? 1 : 1 + input.p[0] % 125u, at = bytes > 0;
        bool first = true;
        do {
            size_t count = MIN_OF(piece, bytes - at);
            bool fin = at + count == bytes;
            err = frame_put(out, (u8)((fin ? 0x80 : 0) | (first ? opcode : 0)),
                            SLICE(input.p + at, count));
            if (err == OK && !fin && piece % 3 == 0) err = frame_put(out, 0x89, SLICE_LITERAL("p"));
            at += count;
            first = false;
        } while (err == OK && at < bytes);
        input = SLICE(input.p + used, input.bytes - used);
    }
    return err;
}

static Err
wrap(Buf *out, u8 how, Slice input)
{
    switch (how % 10) {
    case 8: return fragments_wrap(out, false, input);
    case 9: return fragments_wrap(out, true, input);
    case 1: return body_wrap(out, "/v2/pipeline", input);
    case 2: return body_wrap(out, "/v3/pipeline", input);
    case 3: return body_wrap(out, "/v3/cursor", input);
    case 4: return body_wrap(out, "/v3-protobuf/pipeline", input);
    case 5: return body_wrap(out, "/v3-protobuf/cursor", input);
    case 6: return frames_wrap(out, false, input);
    case 7: return frames_wrap(out, true, input);
    default: return buf_append(out, input.p, input.bytes);
    }
}

int
LLVMFuzzerTestOneInput(const u8 *data, size_t bytes)
{
    Buf text = {0};
    if (bytes < 2 || bytes > 60000) return 0;
    ASSERT(wrap(&text, data[0], SLICE(data + 1, bytes - 1)) == OK);
    (void)served_exchange(buf_slice(&text), NULL);
    buf_free(&text);
    return 0;
}
