/*
 * sha256.c -- SHA-256 after FIPS 180-4.
 */
#include "value/sha256.h"

#define BLOCK_BYTES 64

static const u32 ROUND_CONSTANT[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static inline u32
rotate(u32 v, u32 by)
{
    return v >> by | v << (32 - by);
}

static void
add_block(u32 state[8], const u8 *block)
{
    u32 w[64];
    for (u32 i = 0; i < 16; i++) {
        w[i] = load_be32(block + i * 4);
    }
    for (u32 i = 16; i < 64; i++) {
        u32 s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
        u32 s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    u32 v[8];
    memcpy(v, state, sizeof(v));
    for (u32 i = 0; i < 64; i++) {
        u32 s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        u32 choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        u32 t1 = v[7] + s1 + choice + ROUND_CONSTANT[i] + w[i];
        u32 s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        u32 majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof(u32));
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (u32 i = 0; i < 8; i++) {
        state[i] += v[i];
    }
}

void
sha256(const void *p, size_t bytes, u8 out[SHA256_BYTES])
{
    u32 state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const u8 *from = p;
    size_t rest = bytes;
    for (; rest >= BLOCK_BYTES; rest -= BLOCK_BYTES, from += BLOCK_BYTES) {
        add_block(state, from);
    }
    /* The rest, a one bit, zeros and the length in bits: one or two blocks. */
    u8 tail[2 * BLOCK_BYTES] = {0};
    if (rest > 0) memcpy(tail, from, rest);
    tail[rest] = 0x80;
    size_t tail_bytes = rest + 9 <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
    store_be64(tail + tail_bytes - 8, (u64)bytes * 8);
    for (size_t at = 0; at < tail_bytes; at += BLOCK_BYTES) {
        add_block(state, tail + at);
    }
    for (u32 i = 0; i < 8; i++) {
        store_be32(out + i * 4, state[i]);
    }
}
