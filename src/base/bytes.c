/*
 * bytes.c -- varints, hashing, UTF-8 and the seeded random generator.
 */
#include "base/bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/asserts.h"

size_t
varint_put(u8 *p, u64 v)
{
    size_t n = 0;
    while (v >= 0x80) {
        p[n++] = (u8)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (u8)v;
    return n;
}

size_t
varint_get(const u8 *p, const u8 *end, u64 *v_out)
{
    u64 v = 0;
    for (size_t n = 0; n < 10 && p + n < end; n++) {
        if (n == 9 && p[n] > 1) return 0; /* More than 64 bits. */
        v |= (u64)(p[n] & 0x7f) << (7 * n);
        if (p[n] < 0x80) {
            *v_out = v;
            return n + 1;
        }
    }
    return 0;
}

int
slice_compare(Slice a, Slice b)
{
    size_t common = MIN_OF(a.bytes, b.bytes);
    int order = common == 0 ? 0 : memcmp(a.p, b.p, common);
    if (order != 0) return order;
    return a.bytes < b.bytes ? -1 : a.bytes > b.bytes;
}

static u8
fold(u8 c)
{
    return c >= 'A' && c <= 'Z' ? (u8)(c + 32) : c;
}

bool
slice_equal_nocase(Slice a, Slice b)
{
    if (a.bytes != b.bytes) return false;
    for (size_t i = 0; i < a.bytes; i++) {
        if (fold(a.p[i]) != fold(b.p[i])) return false;
    }
    return true;
}

int
text_compare_nocase(const char *a, const char *b)
{
    const u8 *p = (const u8 *)a, *q = (const u8 *)b;
    while (*p != 0 && fold(*p) == fold(*q)) {
        p++;
        q++;
    }
    return (int)fold(*p) - (int)fold(*q);
}

u64
hash_bytes(const void *p, size_t bytes, u64 seed)
{
    return XXH3_64bits_withSeed(p, bytes, seed);
}

u64
hash_u64(u64 v, u64 seed)
{
    v ^= seed;
    v ^= v >> 32;
    v *= 0xd6e8feb86659fd93u;
    v ^= v >> 32;
    v *= 0xd6e8feb86659fd93u;
    v ^= v >> 32;
    return v;
}

u64
checksum64(const void *p, size_t bytes, u64 seed)
{
    return XXH3_64bits_withSeed(p, bytes, seed);
}

#define REPLACEMENT 0xFFFDu

u32
utf8_next(const u8 **p, const u8 *end)
{
    const u8 *at = *p;
    ASSERT(at < end);
    u32 c = *at++;
    if (c < 0x80) {
        *p = at;
        return c;
    }
    if (c < 0xC0) { /* A stray continuation byte. */
        *p = at;
        return REPLACEMENT;
    }
    u32 value = c < 0xE0 ? c & 0x1f : c < 0xF0 ? c & 0x0f : c & 0x07;
    u32 more = c < 0xE0 ? 1 : c < 0xF0 ? 2 : 3;
    while (more > 0 && at < end && (*at & 0xC0) == 0x80) {
        value = (value << 6) | (*at++ & 0x3f);
        more--;
    }
    *p = at;
    if (more > 0 || value < 0x80 || (value & 0xFFFFF800u) == 0xD800u ||
        (value & 0xFFFFFFFEu) == 0xFFFEu || value > 0x10FFFF) {
        return REPLACEMENT;
    }
    return value;
}

size_t
utf8_put(u8 *p, u32 c)
{
    if (c < 0x80) {
        p[0] = (u8)c;
        return 1;
    }
    if (c < 0x800) {
        p[0] = (u8)(0xC0 | (c >> 6));
        p[1] = (u8)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        p[0] = (u8)(0xE0 | (c >> 12));
        p[1] = (u8)(0x80 | ((c >> 6) & 0x3f));
        p[2] = (u8)(0x80 | (c & 0x3f));
        return 3;
    }
    p[0] = (u8)(0xF0 | ((c >> 18) & 7));
    p[1] = (u8)(0x80 | ((c >> 12) & 0x3f));
    p[2] = (u8)(0x80 | ((c >> 6) & 0x3f));
    p[3] = (u8)(0x80 | (c & 0x3f));
    return 4;
}

bool
utf8_valid(const u8 *p, size_t bytes)
{
    const u8 *end = p + bytes;
    while (p < end) {
        const u8 *start = p;
        u32 c = utf8_next(&p, end);
        if (c == REPLACEMENT &&
            !(p - start == 3 && start[0] == 0xEF && start[1] == 0xBF && start[2] == 0xBD)) {
            return false;
        }
    }
    return true;
}

size_t
utf8_count(const u8 *p, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += (p[i] & 0xC0) != 0x80;
    return count;
}

static u64
rotl(u64 x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void
rng_seed(Rng *rng, u64 seed)
{
    for (u32 i = 0; i < 4; i++) { /* splitmix64 fills the state. */
        seed += 0x9e3779b97f4a7c15u;
        u64 z = seed;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        rng->s[i] = z ^ (z >> 31);
    }
}

u64
rng_next(Rng *rng)
{
    u64 *s = rng->s;
    u64 result = rotl(s[1] * 5, 7) * 9;
    u64 t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

u64
rng_below(Rng *rng, u64 n)
{
    ASSERT(n > 0);
    return (u64)(((unsigned __int128)rng_next(rng) * n) >> 64);
}
