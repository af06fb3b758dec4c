/*
 * sha3.h -- SHA3 of 224 to 512 bits (FIPS 202), for .sha3sum.
 */
#pragma once

#include "base/base.h"

typedef struct Sha3 {
    u64 lane[25];
    u32 rate_bytes, at; /* `at` bytes of the block are mixed in. */
    u32 hash_bytes;
} Sha3;

void sha3_begin(Sha3 *sha3, u32 bits); /* 224, 256, 384 or 512. */
void sha3_add(Sha3 *sha3, const void *bytes, size_t count);
/* hash_out: bits / 8 bytes. */
void sha3_end(Sha3 *sha3, u8 *hash_out);
