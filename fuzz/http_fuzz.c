/*
 * http_fuzz.c -- any bytes as HTTP requests, in pieces, and as WebSocket frames.
 *
 * Checked: no crash, no read beyond the end; a request that was taken lies inside its input, and
 * the same bytes in other pieces give the same answer.  The first byte chooses what, the second the
 * length of the pieces.
 */
#include <string.h>

#include "server/http/http.h"
#include "server/ws/frame.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

/* A value for how the input was read: requests, their bodies, the last status. */
static u64
requests_read(const u8 *data, size_t bytes, size_t piece)
{
    static Server server; /* The fuzzer's, one thread. */
    Conn conn = {.server = &server};
    u64 hash = 0;
    int status = 0;
    server.options.body_bytes_max = 4096;
    for (size_t at = 0; at < bytes && status == 0;) {
        size_t count = MIN_OF(piece, bytes - at);
        ASSERT(buf_append(&conn.in, data + at, count) == OK);
        at += count;
        while (conn__input(&conn).bytes > 0) {
            int refused;
            if (http__parse(&conn, &refused) != OK) {
                status = refused;
                break;
            }
            if (conn.http->state != HTTP_COMPLETE) break;
            Slice body = conn.http->body_slice, path = conn.http->path;
            hash = hash_bytes(body.p == NULL ? (const u8 *)"" : body.p, body.bytes, hash + 1);
            hash = hash_bytes(path.p, path.bytes, hash);
            http__reset(&conn);
            ASSERT(conn.in_at <= conn.in.bytes);
        }
    }
    http__reset(&conn);
    buf_free(&conn.in);
    return hash * 1000 + (u64)status;
}

static void
frames_read(const u8 *data, size_t bytes)
{
    u8 *copy = mem_alloc(bytes + 1);
    size_t at = 0;
    ASSERT(copy != NULL);
    memcpy(copy, data, bytes);
    for (;;) {
        WsFrame frame;
        if (ws__frame_read(copy + at, bytes - at, 1 << 20, &frame) != WS_READ_FRAME) break;
        ASSERT(frame.payload + frame.bytes <= copy + bytes && frame.total_bytes > 0);
        if (frame.opcode == WS_CLOSE) (void)ws__close_code(SLICE(frame.payload, frame.bytes));
        at += frame.total_bytes;
    }
    mem_free(copy);
}

int
LLVMFuzzerTestOneInput(const u8 *data, size_t bytes)
{
    if (bytes < 2) return 0;
    if (data[0] % 4 == 0) {
        frames_read(data + 2, bytes - 2);
        return 0;
    }
    u64 whole = requests_read(data + 2, bytes - 2, bytes);
    u64 pieces = requests_read(data + 2, bytes - 2, 1 + data[1] % 64);
    ASSERT(whole == pieces);
    return 0;
}
