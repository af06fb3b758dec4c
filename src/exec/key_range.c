/*
 * key_range.c -- from the comparisons of a scan to the key range that it visits.
 *
 * No encoding of a column is a prefix of another, so "equal in the first columns" is "starts with
 * these bytes", and every range is low <= key < high for two byte strings.  Bounds longer than what
 * a key keeps are cut outwards; then entries are rechecked by their full keys.
 */
#include "exec/table_codec.h"

#include <math.h>

#define NULL_KEY_END  ((u8)0x09) /* Above NULL, below every other value. */
#define NULL_KEY_DESC ((u8)0xF7) /* NULL in a DESC column: above every other value. */
#define TWO_POW_63    9223372036854775808.0

void
range_free(KeyRange *range)
{
    buf_free(&range->low);
    buf_free(&range->high);
    buf_free(&range->full_low);
    buf_free(&range->full_high);
}

static void
range_clear(KeyRange *range)
{
    buf_clear(&range->low);
    buf_clear(&range->high);
    buf_clear(&range->full_low);
    buf_clear(&range->full_high);
    range->empty = range->point = range->recheck = false;
}

/* Make `key` the end of everything that starts with it; an empty result means no bound. */
static void
to_prefix_end(Buf *key)
{
    key->bytes = key_prefix_end(key->p, key->bytes);
}

/* One end: prefix, then the bound's value if there is one.  `after`: everything that starts with
   the bytes lies below the end. */
static Err
end_build(const IndexCodec *codec, u32 at, const Cell *value, bool after, Buf *end)
{
    Err err = key_append_cell(end, value, &codec->key_column[at]);
    if (err == OK && after) to_prefix_end(end);
    return err;
}

/* The two ends of the range column behind the equality prefix, which both bounds hold already. */
static Err
ends_build(const IndexCodec *codec, u32 at, const Cell *low, bool low_inclusive, const Cell *high,
           bool high_inclusive, KeyRange *range)
{
    bool desc = codec->key_column[at].desc;
    const Cell *first = desc ? high : low;
    const Cell *last = desc ? low : high;
    bool first_inclusive = desc ? high_inclusive : low_inclusive;
    bool last_inclusive = desc ? low_inclusive : high_inclusive;
    Err err = OK;

    if (first != NULL) {
        err = end_build(codec, at, first, !first_inclusive, &range->full_low);
        /* Above everything there is: nothing can follow. */
        if (err == OK && range->full_low.bytes == 0) range->empty = true;
    } else if (!desc) {
        err = buf_append_byte(&range->full_low, NULL_KEY_END);
    }
    if (err != OK) return err;
    if (last != NULL) return end_build(codec, at, last, last_inclusive, &range->full_high);
    if (desc) return buf_append_byte(&range->full_high, NULL_KEY_DESC);
    to_prefix_end(&range->full_high);
    return OK;
}

/* From the full bounds to those that fit keys: cut outwards. */
static Err
bounds_cut(KeyRange *range)
{
    if (LIKELY(range->full_low.bytes <= KEY_BYTES_WHOLE &&
               range->full_high.bytes <= KEY_BYTES_WHOLE)) {
        /* They fit as they are, and nobody asks for the full ones without `recheck`. */
        Buf swap = range->low;
        range->low = range->full_low;
        range->full_low = swap;
        swap = range->high;
        range->high = range->full_high;
        range->full_high = swap;
        return OK;
    }
    Err err = buf_append(&range->low, range->full_low.p,
                         MIN_OF(range->full_low.bytes, (size_t)KEY_BYTES_WHOLE));
    if (err != OK) return err;
    err = buf_append(&range->high, range->full_high.p,
                     MIN_OF(range->full_high.bytes, (size_t)KEY_BYTES_WHOLE));
    if (err != OK) return err;
    if (range->full_low.bytes > KEY_BYTES_WHOLE) range->recheck = true;
    if (range->full_high.bytes > KEY_BYTES_WHOLE) {
        range->recheck = true;
        to_prefix_end(&range->high);
    }
    return OK;
}

/* All key columns of a unique index given, none NULL: one key at most. */
static Err
point_build(KeyRange *range)
{
    range->point = true;
    Err err = buf_append(&range->low, range->full_low.p, range->full_low.bytes);
    if (err == OK) err = buf_reserve(&range->low, KEY_BYTES_LONG); /* For the cut. */
    if (err != OK) return err;
    if (key_shorten(&range->low)) range->recheck = true;
    err = buf_append(&range->high, range->low.p, range->low.bytes);
    if (err == OK) to_prefix_end(&range->high);
    return err;
}

Err
index_range_build(const IndexCodec *codec, const Cell *eq, u32 eq_count, const bool *null_safe,
                  const Cell *low, bool low_inclusive, const Cell *high, bool high_inclusive,
                  KeyRange *range)
{
    ASSERT(eq_count <= codec->columns);
    range_clear(range);
    bool has_null = false;
    for (u32 i = 0; i < eq_count; i++) {
        if (eq[i].type == CELL_NULL) {
            has_null = true;
            if (null_safe == NULL || !null_safe[i]) range->empty = true;
        }
    }
    if ((low != NULL && low->type == CELL_NULL) || (high != NULL && high->type == CELL_NULL)) {
        range->empty = true;
    }
    if (range->empty) return OK;

    Err err = OK;
    for (u32 i = 0; i < eq_count && err == OK; i++) {
        err = key_append_cell(&range->full_low, &eq[i], &codec->key_column[i]);
    }
    if (err == OK) err = buf_append(&range->full_high, range->full_low.p, range->full_low.bytes);
    if (err != OK) return err;

    if (low != NULL || high != NULL) {
        ASSERT(eq_count < codec->columns);
        err = ends_build(codec, eq_count, low, low_inclusive, high, high_inclusive, range);
    } else {
        to_prefix_end(&range->full_high);
        bool unique = codec->index->unique || codec->is_primary;
        if (unique && !has_null && eq_count == codec->key_columns) return point_build(range);
    }
    if (err != OK) return err;
    if (range->full_high.bytes > 0 &&
        slice_compare(buf_slice(&range->full_low), buf_slice(&range->full_high)) >= 0) {
        range->empty = true;
    }
    if (range->empty) return OK;
    return bounds_cut(range);
}

Err
index_range_holds(const IndexCodec *codec, const KeyRange *range, Slice key, Slice value,
                  Arena *arena, bool *holds_out)
{
    *holds_out = true;
    if (!range->recheck) return OK;
    Buf full = {0};
    Err err = index_full_key(codec, key, value, arena, &full);
    if (err == OK) {
        *holds_out = slice_compare(buf_slice(&full), buf_slice(&range->full_low)) >= 0 &&
                     (range->full_high.bytes == 0 ||
                      slice_compare(buf_slice(&full), buf_slice(&range->full_high)) < 0);
    }
    buf_free(&full);
    return err;
}

/* ---- rowids ---- */

typedef struct RowidEnds {
    i64 low, high; /* Both inclusive. */
    bool empty;
} RowidEnds;

static void
low_end(RowidEnds *ends, const Cell *cell, bool inclusive)
{
    i64 low;
    if (cell->type == CELL_INT) {
        low = cell->u.i;
    } else if (cell->type == CELL_REAL) {
        f64 floored = floor(cell->u.r);
        if (floored >= TWO_POW_63) {
            ends->empty = true;
            return;
        }
        if (floored < -TWO_POW_63) return;
        low = (i64)floored;
        if (floored != cell->u.r) inclusive = false;
    } else {
        ends->empty = true; /* NULL, or a text or blob: they stand above every number. */
        return;
    }
    if (!inclusive) {
        if (low == I64_MAX) {
            ends->empty = true;
            return;
        }
        low++;
    }
    if (low > ends->low) ends->low = low;
}

static void
high_end(RowidEnds *ends, const Cell *cell, bool inclusive)
{
    i64 high;
    if (cell->type == CELL_INT) {
        high = cell->u.i;
    } else if (cell->type == CELL_REAL) {
        f64 above = ceil(cell->u.r);
        if (above < -TWO_POW_63) {
            ends->empty = true;
            return;
        }
        if (above >= TWO_POW_63) return;
        high = (i64)above;
        if (above != cell->u.r) inclusive = false;
    } else {
        if (cell->type == CELL_NULL) ends->empty = true;
        return; /* Every rowid is below a text or blob. */
    }
    if (!inclusive) {
        if (high == I64_MIN) {
            ends->empty = true;
            return;
        }
        high--;
    }
    if (high < ends->high) ends->high = high;
}

/* An empty bound becomes the key of a rowid. */
static ALWAYS_INLINE Err
rowid_bound(Buf *bound, i64 rowid)
{
    if (UNLIKELY(bound->capacity < TABLE_KEY_BYTES)) {
        Err err = buf_reserve(bound, TABLE_KEY_BYTES);
        if (err != OK) return err;
    }
    table_key_put(rowid, bound->p);
    bound->bytes = TABLE_KEY_BYTES;
    return OK;
}

Err
rowid_range_build(const Cell *eq, const Cell *low, bool low_inclusive, const Cell *high,
                  bool high_inclusive, KeyRange *range)
{
    range_clear(range);
    RowidEnds ends = {I64_MIN, I64_MAX, false};
    if (eq != NULL) {
        low_end(&ends, eq, true);
        if (!ends.empty) high_end(&ends, eq, true);
        range->point = true;
    }
    if (low != NULL) {
        low_end(&ends, low, low_inclusive);
    }
    if (high != NULL) {
        high_end(&ends, high, high_inclusive);
    }
    if (ends.empty || ends.low > ends.high) {
        range->empty = true;
        return OK;
    }
    Err err = OK;
    if (ends.low != I64_MIN || range->point) err = rowid_bound(&range->low, ends.low);
    if (err != OK || ends.high == I64_MAX) return err;
    return rowid_bound(&range->high, ends.high + 1);
}
