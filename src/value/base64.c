/*
 * base64.c -- RFC 4648 base64.
 */
#include "value/base64.h"

static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

Err
base64_encode(Slice bytes, bool pad, Buf *out)
{
    size_t groups = bytes.bytes / 3, rest = bytes.bytes % 3;
    if (buf_reserve(out, (groups + 1) * 4) != OK) return ERR_NOMEM;
    u8 *p = out->p + out->bytes;
    const u8 *from = bytes.p;
    for (size_t i = 0; i < groups; i++, from += 3) {
        u32 v = (u32)from[0] << 16 | (u32)from[1] << 8 | from[2];
        *p++ = (u8)LETTERS[v >> 18];
        *p++ = (u8)LETTERS[v >> 12 & 63];
        *p++ = (u8)LETTERS[v >> 6 & 63];
        *p++ = (u8)LETTERS[v & 63];
    }
    if (rest != 0) {
        u32 v = (u32)from[0] << 16 | (rest == 2 ? (u32)from[1] << 8 : 0);
        *p++ = (u8)LETTERS[v >> 18];
        *p++ = (u8)LETTERS[v >> 12 & 63];
        if (rest == 2) *p++ = (u8)LETTERS[v >> 6 & 63];
        for (size_t i = rest; pad && i < 3; i++) {
            *p++ = '=';
        }
    }
    out->bytes = (size_t)(p - out->p);
    return OK;
}

/* 0..63, or 64 for a byte that is no letter. */
static u32
letter_value(u8 c)
{
    if (c >= 'A' && c <= 'Z') return (u32)(c - 'A');
    if (c >= 'a' && c <= 'z') return (u32)(c - 'a') + 26;
    if (c >= '0' && c <= '9') return (u32)(c - '0') + 52;
    if (c == '+' || c == '-') return 62;
    if (c == '/' || c == '_') return 63;
    return 64;
}

Err
base64_decode(Slice text, Buf *out)
{
    size_t count = text.bytes;
    /* Padding completes a group of four; without it the group just ends. */
    if (count % 4 == 0 && count > 0 && text.p[count - 1] == '=') {
        count -= text.p[count - 2] == '=' ? 2 : 1;
    }
    if (count % 4 == 1) return ERR_SQL;
    if (buf_reserve(out, count / 4 * 3 + 3) != OK) return ERR_NOMEM;
    u8 *p = out->p + out->bytes;
    u32 v = 0;
    for (size_t i = 0; i < count; i++) {
        u32 letter = letter_value(text.p[i]);
        if (letter == 64) return ERR_SQL;
        v = v << 6 | letter;
        if (i % 4 == 3) {
            *p++ = (u8)(v >> 16);
            *p++ = (u8)(v >> 8);
            *p++ = (u8)v;
            v = 0;
        }
    }
    if (count % 4 == 2) *p++ = (u8)(v >> 4);
    if (count % 4 == 3) {
        *p++ = (u8)(v >> 10);
        *p++ = (u8)(v >> 2);
    }
    out->bytes = (size_t)(p - out->p);
    return OK;
}
