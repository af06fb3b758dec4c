/*
 * frame.c -- frames.  Nothing here knows of connections, so that the fuzzer can have it alone.
 */
#include "server/ws/frame.h"

#include <string.h>

static bool
opcode_ok(u8 opcode, bool fin, u64 bytes)
{
    if (opcode <= WS_BINARY) return true;
    if (opcode < WS_CLOSE || opcode > WS_PONG) return false;
    return fin && bytes <= 125; /* Control frames are short and whole. */
}

WsRead
ws__frame_read(u8 *input, size_t bytes, u64 payload_max, WsFrame *frame_out)
{
    if (bytes < 2) return WS_READ_MORE;
    u8 first = input[0], second = input[1];
    size_t head = 2;
    u64 length = second & 0x7f;
    /* No extension was agreed on, and clients must mask. */
    if ((first & 0x70) != 0 || (second & 0x80) == 0) return WS_READ_BAD;
    if (length >= 126) {
        size_t wide = length == 126 ? 2 : 8;
        if (bytes < head + wide) return WS_READ_MORE;
        length = 0;
        for (size_t i = 0; i < wide; i++)
            length = length << 8 | input[head + i];
        head += wide;
        if (length < 126 || (wide == 8 && (length <= 0xffff || length >> 63 != 0)))
            return WS_READ_BAD; /* Not the shortest form. */
    }
    frame_out->opcode = first & 15;
    frame_out->fin = (first & 0x80) != 0;
    if (!opcode_ok(frame_out->opcode, frame_out->fin, length)) return WS_READ_BAD;
    if (length > payload_max) return WS_READ_TOO_BIG;
    if (bytes < head + 4 || bytes - head - 4 < length) return WS_READ_MORE;
    const u8 *mask = input + head;
    frame_out->payload = input + head + 4;
    frame_out->bytes = length;
    frame_out->total_bytes = head + 4 + (size_t)length;
    for (u64 i = 0; i < length; i++)
        frame_out->payload[i] ^= mask[i & 3];
    return WS_READ_FRAME;
}

size_t
ws__frame_head(u8 head_out[WS_HEAD_BYTES_MAX], u8 opcode, u64 bytes)
{
    head_out[0] = (u8)(0x80 | opcode);
    if (bytes < 126) {
        head_out[1] = (u8)bytes;
        return 2;
    }
    size_t wide = bytes <= 0xffff ? 2 : 8;
    head_out[1] = wide == 2 ? 126 : 127;
    for (size_t i = 0; i < wide; i++)
        head_out[2 + i] = (u8)(bytes >> (8 * (wide - 1 - i)));
    return 2 + wide;
}

u32
ws__close_code(Slice payload)
{
    if (payload.bytes == 0) return WS_CODE_NONE;
    if (payload.bytes == 1) return 0;
    u32 code = (u32)payload.p[0] << 8 | payload.p[1];
    bool known = (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
                 (code >= 3000 && code <= 4999);
    if (!known || !utf8_valid(payload.p + 2, payload.bytes - 2)) return 0;
    return code;
}
