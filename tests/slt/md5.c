/*
 * md5.c -- written from RFC 1321; md5_sines holds its table of 2^32 * |sin(i)|.
 */
#include "md5.h"

#include <string.h>

static const u32 md5_sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

static const u8 md5_turns[4][4] = {
    {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static void
block_add(u32 state[4], const u8 *block)
{
    u32 word[16];
    memcpy(word, block, sizeof(word)); /* Little-endian, as both supported machines are. */
    u32 a = state[0], b = state[1], c = state[2], d = state[3];
    for (u32 step = 0; step < 64; step++) {
        u32 mixed, which;
        switch (step / 16) {
        case 0:
            mixed = (b & c) | (~b & d);
            which = step;
            break;
        case 1:
            mixed = (d & b) | (~d & c);
            which = (5 * step + 1) % 16;
            break;
        case 2:
            mixed = b ^ c ^ d;
            which = (3 * step + 5) % 16;
            break;
        default:
            mixed = c ^ (b | ~d);
            which = (7 * step) % 16;
            break;
        }
        u32 sum = a + mixed + md5_sines[step] + word[which];
        u32 turn = md5_turns[step / 16][step % 4];
        a = d;
        d = c;
        c = b;
        b += (sum << turn) | (sum >> (32 - turn));
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void
md5_start(Md5 *md5)
{
    *md5 = (Md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

void
md5_add(Md5 *md5, const void *bytes, size_t count)
{
    const u8 *from = bytes;
    while (count > 0) {
        size_t at = (size_t)(md5->bytes % 64);
        size_t take = MIN_OF(count, 64 - at);
        memcpy(md5->block + at, from, take);
        md5->bytes += take;
        from += take;
        count -= take;
        if (at + take == 64) block_add(md5->state, md5->block);
    }
}

void
md5_finish(Md5 *md5, char hex_out[33])
{
    static const char digits[] = "0123456789abcdef";
    static const u8 padding[64] = {0x80};
    u64 bits = md5->bytes * 8;
    size_t at = (size_t)(md5->bytes % 64);
    md5_add(md5, padding, at < 56 ? 56 - at : 120 - at);
    md5_add(md5, &bits, sizeof(bits));
    for (u32 i = 0; i < 16; i++) {
        u32 byte = (md5->state[i / 4] >> (8 * (i % 4))) & 0xff;
        hex_out[2 * i] = digits[byte >> 4];
        hex_out[2 * i + 1] = digits[byte & 15];
    }
    hex_out[32] = 0;
}
