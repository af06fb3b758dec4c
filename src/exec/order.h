/*
 * order.h -- putting rows in order (private to exec/).
 */
#pragma once

#include "exec/keyset.h"

/* Before: must row number a stand in front of row number b?  A strict weak order. */
typedef bool (*OrderBefore)(const void *arg, u32 a, u32 b);

/* Sort row numbers, stably; `scratch` has room for as many. */
void exec__order_sort(u32 *order, u32 *scratch, u32 count, OrderBefore before, const void *arg);
/* Sort cells in place by a collation; equal cells in any order. */
void exec__cells_sort(Cell *cell, u32 count, const Collation *collation);

/* One row to sort by key bytes.  The first eight bytes stand in `prefix`, so that most comparisons
   touch nothing else. */
typedef struct SortItem {
    u64 prefix; /* Big-endian value of the first bytes, zeroes behind a shorter key. */
    const u8 *key;
    u32 key_bytes;
    u32 row; /* Ties stay in this order. */
} SortItem;

static inline u64
exec__key_prefix(const u8 *p, size_t bytes)
{
    u8 padded[8] = {0};
    if (bytes >= 8) return load_be64(p);
    memcpy(padded, p, bytes);
    return load_be64(padded);
}

static inline bool
exec__item_before(const SortItem *a, const SortItem *b)
{
    if (a->prefix != b->prefix) return a->prefix < b->prefix;
    u32 bytes = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
    if (bytes > 8) {
        int order = memcmp(a->key + 8, b->key + 8, bytes - 8);
        if (order != 0) return order < 0;
    }
    if (a->key_bytes != b->key_bytes) return a->key_bytes < b->key_bytes;
    return a->row < b->row;
}

/* A key that is a number, mapped so that unsigned order is the order wanted. */
typedef struct NumberItem {
    u64 key;
    u32 row;
} NumberItem;

#define ORDER_DIGIT_BITS 11u /* What a pass of a sort by radix looks at. */

/* Sort by key, stably.  By radix, skipping the digits in which all keys agree.  *place_io: NULL, or
   room for 1 << ORDER_DIGIT_BITS counts that an earlier sort made; mem_free() it at the end. */
MUST_CHECK Err exec__numbers_sort(NumberItem *item, NumberItem *scratch, u32 count, u32 **place_io);

/* Sort items; `scratch` has room for as many, *place_io as above. */
void exec__items_sort(SortItem *item, SortItem *scratch, u32 count, u32 **place_io);
/* Sort numbers of keys by the keys, which are all different. */
MUST_CHECK Err exec__keys_sort(const KeySetEntry *entry, u32 *order, u32 count);
