/*
 * sha3.c -- the sponge of SHA3: bytes are mixed into a state of 25 words, which is stirred after
 * each block.
 */
#include "shell/sha3.h"

#define ROUNDS 24u

static u64
rotate(u64 word, u32 by)
{
    return by == 0 ? word : word << by | word >> (64 - by);
}

static void
stir_columns(u64 lane[25])
{
    u64 parity[5];
    for (u32 x = 0; x < 5; x++)
        parity[x] = lane[x] ^ lane[x + 5] ^ lane[x + 10] ^ lane[x + 15] ^ lane[x + 20];
    for (u32 x = 0; x < 5; x++) {
        u64 mix = parity[(x + 4) % 5] ^ rotate(parity[(x + 1) % 5], 1);
        for (u32 y = 0; y < 25; y += 5)
            lane[y + x] ^= mix;
    }
}

/* Every word but the first wanders to the next place, turned a little further each time. */
static void
stir_places(u64 lane[25])
{
    u32 x = 1, y = 0;
    u64 carried = lane[1];
    for (u32 t = 0; t < 24; t++) {
        u32 next_y = (2 * x + 3 * y) % 5;
        x = y;
        y = next_y;
        u64 displaced = lane[5 * y + x];
        lane[5 * y + x] = rotate(carried, (t + 1) * (t + 2) / 2 % 64);
        carried = displaced;
    }
}

static void
stir_rows(u64 lane[25])
{
    for (u32 y = 0; y < 25; y += 5) {
        u64 row[5];
        memcpy(row, lane + y, sizeof(row));
        for (u32 x = 0; x < 5; x++)
            lane[y + x] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]);
    }
}

/* The bits of the round constants come from a shift register; lfsr starts at 1. */
static u64
round_constant(u8 *lfsr_io)
{
    u64 constant = 0;
    for (u32 i = 0; i < 7; i++) {
        if ((*lfsr_io & 1) != 0) constant |= (u64)1 << ((1u << i) - 1);
        *lfsr_io = (u8)(*lfsr_io << 1 ^ ((*lfsr_io & 0x80) != 0 ? 0x71 : 0));
    }
    return constant;
}

static void
stir(Sha3 *sha3)
{
    u8 lfsr = 1;
    for (u32 round = 0; round < ROUNDS; round++) {
        stir_columns(sha3->lane);
        stir_places(sha3->lane);
        stir_rows(sha3->lane);
        sha3->lane[0] ^= round_constant(&lfsr);
    }
    sha3->at = 0;
}

void
sha3_begin(Sha3 *sha3, u32 bits)
{
    ASSERT(bits == 224 || bits == 256 || bits == 384 || bits == 512);
    *sha3 = (Sha3){.rate_bytes = (1600 - 2 * bits) / 8, .hash_bytes = bits / 8};
}

static void
mix(Sha3 *sha3, u32 at, u8 byte)
{
    sha3->lane[at / 8] ^= (u64)byte << at % 8 * 8;
}

void
sha3_add(Sha3 *sha3, const void *bytes, size_t count)
{
    const u8 *p = bytes;
    for (size_t i = 0; i < count; i++) {
        mix(sha3, sha3->at++, p[i]);
        if (sha3->at == sha3->rate_bytes) stir(sha3);
    }
}

void
sha3_end(Sha3 *sha3, u8 *hash_out)
{
    mix(sha3, sha3->at, 6);
    mix(sha3, sha3->rate_bytes - 1, 0x80);
    stir(sha3);
    for (u32 i = 0; i < sha3->hash_bytes; i++)
        hash_out[i] = (u8)(sha3->lane[i / 8] >> i % 8 * 8);
}
