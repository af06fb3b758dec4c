/*
 * bytes.h -- unaligned loads and stores, bit tricks, hashing, checksums, UTF-8, seeded random.
 */
#pragma once

#include <string.h>

#include "base/types.h"

/* Unaligned native (little-endian on both supported machines) and big-endian access. */
static inline u16
load_u16(const void *p)
{
    u16 v;
    memcpy(&v, p, sizeof(v));
    return v;
}
static inline u32
load_u32(const void *p)
{
    u32 v;
    memcpy(&v, p, sizeof(v));
    return v;
}
static inline u64
load_u64(const void *p)
{
    u64 v;
    memcpy(&v, p, sizeof(v));
    return v;
}
static inline void
store_u16(void *p, u16 v)
{
    memcpy(p, &v, sizeof(v));
}
static inline void
store_u32(void *p, u32 v)
{
    memcpy(p, &v, sizeof(v));
}
static inline void
store_u64(void *p, u64 v)
{
    memcpy(p, &v, sizeof(v));
}
static inline u32
load_be32(const void *p)
{
    return __builtin_bswap32(load_u32(p));
}
static inline u64
load_be64(const void *p)
{
    return __builtin_bswap64(load_u64(p));
}
static inline void
store_be32(void *p, u32 v)
{
    store_u32(p, __builtin_bswap32(v));
}
static inline void
store_be64(void *p, u64 v)
{
    store_u64(p, __builtin_bswap64(v));
}

/* Number of bits needed for v; 0 for 0. */
static inline u32
bits_of(u64 v)
{
    return v == 0 ? 0 : 64u - (u32)__builtin_clzll(v);
}

/* LEB128-style varints, 1 to 10 bytes. */
size_t varint_put(u8 *p, u64 v);
/* Bytes read, or 0 when [p, end) holds no whole varint. */
size_t varint_get(const u8 *p, const u8 *end, u64 *v_out);

/* memcmp of two slices, a prefix sorts first. */
int slice_compare(Slice a, Slice b);
static inline bool
slice_equal(Slice a, Slice b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.p, b.p, a.bytes) == 0);
}
/* ASCII case-insensitive. */
bool slice_equal_nocase(Slice a, Slice b);
int text_compare_nocase(const char *a, const char *b);

/* XXH3; `seed` makes tables differ between processes and simulator runs. */
u64 hash_bytes(const void *p, size_t bytes, u64 seed);
u64 hash_u64(u64 v, u64 seed);
/* Checksum of stored bytes (XXH3-64 with a seed that names their place). */
u64 checksum64(const void *p, size_t bytes, u64 seed);

/* UTF-8 as SQLite reads it: an invalid byte yields U+FFFD.  Advances *p, never past end. */
u32 utf8_next(const u8 **p, const u8 *end);
size_t utf8_put(u8 *p, u32 code_point); /* 1 to 4 bytes. */
bool utf8_valid(const u8 *p, size_t bytes);
size_t utf8_count(const u8 *p, size_t bytes); /* Characters, by lead bytes, as SQLite counts. */

/* Seeded generator (xoshiro256**).  Deterministic; never from the system. */
typedef struct Rng {
    u64 s[4];
} Rng;
void rng_seed(Rng *rng, u64 seed);
u64 rng_next(Rng *rng);
u64 rng_below(Rng *rng, u64 n); /* 0 <= result < n, n > 0. */
