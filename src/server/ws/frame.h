/*
 * frame.h -- WebSocket frames (RFC 6455) of the server side: out of bytes, into bytes.
 */
#pragma once

#include "base/base.h"

enum { WS_CONTINUATION = 0, WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

enum {
    WS_CODE_NORMAL = 1000,
    WS_CODE_PROTOCOL = 1002,
    WS_CODE_TYPE = 1003,
    WS_CODE_NONE = 1005,
    WS_CODE_DATA = 1007,
    WS_CODE_POLICY = 1008,
    WS_CODE_TOO_BIG = 1009,
    WS_CODE_GOING = 1001
};

#define WS_HEAD_BYTES_MAX 10u /* Of a frame that we send. */
#define WS_REASON_MAX     123u

typedef struct WsFrame {
    u8 opcode;
    bool fin;
    u8 *payload; /* Inside the input, unmasked. */
    u64 bytes;
    size_t total_bytes; /* With its head. */
} WsFrame;

typedef enum WsRead { WS_READ_FRAME, WS_READ_MORE, WS_READ_BAD, WS_READ_TOO_BIG } WsRead;

/* Take the first frame of `input`; its payload is unmasked in place, so take it only once. */
WsRead ws__frame_read(u8 *input, size_t bytes, u64 payload_max, WsFrame *frame_out);
/* The head of an unmasked frame; its length. */
size_t ws__frame_head(u8 head_out[WS_HEAD_BYTES_MAX], u8 opcode, u64 bytes);
/* Code of a close frame's payload; WS_CODE_NONE: empty; 0: not allowed. */
u32 ws__close_code(Slice payload);
