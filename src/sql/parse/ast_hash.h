/*
 * ast_hash.h -- the hash of names, inline for the lexer (private).  gen_keywords.py computes the
 * same function; change both.
 */
#pragma once

#include "base/base.h"

#define NAME_FOLD (0x2020202020202020u)

/* Up to 8 bytes, little-endian, upper case folded to lower. */
static inline u64
name_chunk(const u8 *p, size_t bytes)
{
    u64 chunk;
    if (bytes >= 8) {
        chunk = load_u64(p);
    } else if (bytes >= 4) {
        chunk = load_u32(p) | (u64)load_u32(p + bytes - 4) << (8 * (bytes - 4));
    } else if (bytes != 0) {
        chunk = (u64)p[0] | (u64)p[bytes / 2] << (8 * (bytes / 2)) |
                (u64)p[bytes - 1] << (8 * (bytes - 1));
    } else {
        chunk = 0;
    }
    return chunk | NAME_FOLD;
}

static inline u64
name_hash_begin(size_t bytes)
{
    return (u64)bytes * 0x9E3779B97F4A7C15u;
}

static inline u64
name_hash_step(u64 hash, u64 chunk)
{
    hash = (hash ^ chunk) * 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 32;
}

static inline u32
name_hash(const u8 *p, size_t bytes)
{
    u64 hash = name_hash_begin(bytes);
    while (bytes != 0) {
        size_t step = MIN_OF(bytes, 8);
        hash = name_hash_step(hash, name_chunk(p, step));
        p += step;
        bytes -= step;
    }
    return (u32)hash;
}
