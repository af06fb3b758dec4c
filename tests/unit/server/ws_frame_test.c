/*
 * ws_frame_test.c -- WebSocket frames.
 *
 * Method: frames of every length class are made and read back, cut at every byte of their head;
 * everything that RFC 6455 forbids a client is refused.
 */
#include <string.h>

#include "server/ws/frame.h"
#include "unit/cmocka_all.h"

/* A masked frame as a client makes it; its length. */
static size_t
client_frame(u8 *to, u8 first, const u8 *payload, size_t bytes)
{
    u8 head[WS_HEAD_BYTES_MAX];
    static const u8 mask[4] = {0x12, 0x34, 0x56, 0x78};
    size_t at = ws__frame_head(head, first & 15, bytes);
    memcpy(to, head, at);
    to[0] = first;
    to[1] |= 0x80;
    memcpy(to + at, mask, 4);
    for (size_t i = 0; i < bytes; i++)
        to[at + 4 + i] = payload[i] ^ mask[i & 3];
    return at + 4 + bytes;
}

static void
frames_come_back(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 5, 125, 126, 127, 65535, 65536, 100000};
    static u8 payload[100000], frame[100020], copy[100020];
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (u8)(i * 31);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        WsFrame got;
        size_t bytes = client_frame(frame, 0x82, payload, lengths[i]);
        for (size_t cut = 0; cut < MIN_OF(bytes, (size_t)16); cut++) {
            memcpy(copy, frame, bytes);
            assert_int_equal(ws__frame_read(copy, cut, sizeof(payload), &got), WS_READ_MORE);
        }
        assert_int_equal(ws__frame_read(copy, bytes - 1, sizeof(payload), &got), WS_READ_MORE);
        memcpy(copy, frame, bytes);
        assert_int_equal(ws__frame_read(copy, bytes, sizeof(payload), &got), WS_READ_FRAME);
        assert_int_equal(got.opcode, WS_BINARY);
        assert_true(got.fin);
        assert_int_equal(got.bytes, lengths[i]);
        assert_int_equal(got.total_bytes, bytes);
        assert_memory_equal(got.payload, payload, lengths[i]);
        memcpy(copy, frame, bytes);
        if (lengths[i] > 0)
            assert_int_equal(ws__frame_read(copy, bytes, lengths[i] - 1, &got), WS_READ_TOO_BIG);
    }
}

static void
what_is_forbidden_is_refused(void **state)
{
    (void)state;
    static const struct {
        u8 bytes[16];
        size_t count;
    } cases[] = {
        {{0xc1, 0x80, 0, 0, 0, 0}, 6},         /* RSV1 */
        {{0x81, 0x00}, 2},                     /* Not masked. */
        {{0x83, 0x80, 0, 0, 0, 0}, 6},         /* Opcode 3 */
        {{0x8b, 0x80, 0, 0, 0, 0}, 6},         /* Opcode 11 */
        {{0x09, 0x80, 0, 0, 0, 0}, 6},         /* A ping in fragments. */
        {{0x89, 0xfe, 0, 126, 0, 0, 0, 0}, 8}, /* A ping of 126 bytes. */
        {{0x81, 0xfe, 0, 125, 0, 0, 0, 0}, 8}, /* Not the shortest length. */
        {{0x81, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0}, 14},
        {{0x81, 0xff, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, 14},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        u8 copy[16];
        WsFrame frame;
        memcpy(copy, cases[i].bytes, 16);
        assert_int_equal(ws__frame_read(copy, cases[i].count, 1 << 20, &frame), WS_READ_BAD);
    }
}

static void
close_codes(void **state)
{
    (void)state;
    static const u32 good[] = {1000, 1001, 1011, 3000, 3007, 4999},
                     bad[] = {0, 999, 1004, 1005, 1006, 1015, 2999, 5000};
    assert_int_equal(ws__close_code(SLICE_NONE), WS_CODE_NONE);
    assert_int_equal(ws__close_code(SLICE_LITERAL("\x03")), 0);
    assert_int_equal(ws__close_code(SLICE_LITERAL("\x03\xe8\xff")), 0);
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        u8 text[4] = {(u8)(good[i] >> 8), (u8)good[i], 'o', 'k'};
        assert_int_equal(ws__close_code(SLICE(text, 4)), good[i]);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        u8 text[2] = {(u8)(bad[i] >> 8), (u8)bad[i]};
        assert_int_equal(ws__close_code(SLICE(text, 2)), 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_back),
        cmocka_unit_test(what_is_forbidden_is_refused),
        cmocka_unit_test(close_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
