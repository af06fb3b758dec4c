/*
 * key_entry.c -- whole index entries: the key, and in the value what the key does not say.
 *
 * Invariant: key_entry_decode gives back the cells that key_entry_encode was given, bit for bit.
 */
#include "value/collate.h"
#include "value/key.h"
#include "value/record.h"

/* Two bits a column. */
typedef enum Extra {
    EXTRA_EXACT = 0,      /* As the key says. */
    EXTRA_REAL = 1,       /* A real with an integral value. */
    EXTRA_MINUS_ZERO = 2, /* -0.0 */
    EXTRA_TEXT = 3        /* Its text stands behind the bits. */
} Extra;

static size_t
extra_bytes(u32 columns)
{
    return ((size_t)columns + 3) / 4;
}

static Extra
extra_of(const Cell *cell, const KeyColumn *column)
{
    if (key_reproduces(cell, column)) return EXTRA_EXACT;
    if (cell->type == CELL_TEXT) return EXTRA_TEXT;
    ASSERT(cell->type == CELL_REAL); /* An integer in a REAL column would be the caller's fault. */
    return cell->u.r == 0.0 && __builtin_signbit(cell->u.r) ? EXTRA_MINUS_ZERO : EXTRA_REAL;
}

static Err
append_varint(Buf *buf, u64 v)
{
    u8 bytes[10];
    return buf_append(buf, bytes, varint_put(bytes, v));
}

static Err
append_extra(const KeyLayout *layout, const Cell *cells, Buf *value)
{
    u32 first = 0;
    while (first < layout->columns &&
           extra_of(&cells[first], &layout->column[first]) == EXTRA_EXACT) {
        first++;
    }
    if (first == layout->columns) return OK;

    size_t bits = value->bytes, bytes = extra_bytes(layout->columns);
    Err err = buf_reserve(value, bytes);
    if (err != OK) return err;
    memset(value->p + bits, 0, bytes);
    value->bytes += bytes;
    for (u32 i = first; i < layout->columns && err == OK; i++) {
        Extra extra = extra_of(&cells[i], &layout->column[i]);
        value->p[bits + i / 4] |= (u8)(extra << (i % 4 * 2));
        if (extra != EXTRA_TEXT) continue;
        err = append_varint(value, cells[i].bytes);
        if (err == OK) err = buf_append(value, cells[i].u.p, cells[i].bytes);
    }
    return err;
}

static bool
any_null(const Cell *cells, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        if (cells[i].type == CELL_NULL) return true;
    }
    return false;
}

/* The record of a cut key: references where the caller has them. */
static Err
append_record(const KeyLayout *layout, const Cell *cells, const Cell *stored, Buf *value)
{
    return record_encode(stored != NULL ? stored : cells, layout->columns, value);
}

Err
key_entry_encode(const KeyLayout *layout, const Cell *cells, const Cell *stored, i64 rowid,
                 Buf *key, Buf *value)
{
    buf_clear(key);
    buf_clear(value);
    Err err = key_append_cells(key, cells, layout->column, layout->columns);
    bool suffix = layout->rowid == KEY_ROWID_IN_KEY ||
                  (layout->rowid == KEY_ROWID_IN_VALUE && any_null(cells, layout->columns));
    if (err == OK && suffix) err = key_append_rowid(key, rowid);
    if (err != OK) return err;
    bool cut = key_shorten(key);
    if (layout->rowid == KEY_ROWID_IN_VALUE || (cut && layout->rowid != KEY_NO_ROWID)) {
        /* Zigzag, so that small negative rowids stay small. */
        err = append_varint(value, (u64)rowid << 1 ^ (u64)(rowid >> 63));
        if (err != OK) return err;
    }
    return cut ? append_record(layout, cells, stored, value) : append_extra(layout, cells, value);
}

/* Read the rowid at the start of a value and take it off, if this kind of entry has one. */
static Err
take_rowid(const KeyLayout *layout, Slice key, Slice *value, i64 *rowid_out)
{
    if (layout->rowid == KEY_NO_ROWID) return OK;
    if (layout->rowid == KEY_ROWID_IN_KEY && !key_is_cut(key)) return OK;
    u64 zigzag;
    size_t bytes = varint_get(value->p, value->p + value->bytes, &zigzag);
    if (bytes == 0) return ERR_CORRUPT;
    *rowid_out = (i64)(zigzag >> 1 ^ (0 - (zigzag & 1)));
    *value = SLICE(value->p + bytes, value->bytes - bytes);
    return OK;
}

Err
key_entry_rowid(const KeyLayout *layout, Slice key, Slice value, i64 *rowid_out)
{
    ASSERT(layout->rowid != KEY_NO_ROWID);
    size_t prefix_bytes;
    if (layout->rowid == KEY_ROWID_IN_KEY && !key_is_cut(key)) {
        return key_rowid_suffix(key, rowid_out, &prefix_bytes);
    }
    return take_rowid(layout, key, &value, rowid_out);
}

/* Correct a decoded cell by its two bits. */
static Err
apply_extra(Extra extra, Slice *texts, Cell *cell)
{
    switch (extra) {
    case EXTRA_EXACT: return OK;
    case EXTRA_REAL:
        if (cell->type != CELL_INT) return ERR_CORRUPT;
        *cell = cell_real((f64)cell->u.i);
        return OK;
    case EXTRA_MINUS_ZERO:
        if (!cell_is_number(cell)) return ERR_CORRUPT;
        *cell = cell_real(-0.0);
        return OK;
    case EXTRA_TEXT: break;
    }
    u64 bytes;
    size_t head = varint_get(texts->p, texts->p + texts->bytes, &bytes);
    if (head == 0 || bytes > texts->bytes - head || cell->type != CELL_TEXT) return ERR_CORRUPT;
    *cell = cell_text(texts->p + head, (size_t)bytes);
    *texts = SLICE(texts->p + head + bytes, texts->bytes - head - (size_t)bytes);
    return OK;
}

Err
key_entry_decode(const KeyLayout *layout, Slice key, Slice value, Arena *arena, Cell *cells_out)
{
    i64 rowid;
    Err err = take_rowid(layout, key, &value, &rowid);
    if (err != OK) return err;
    if (key_is_cut(key)) {
        Record record;
        u32 count;
        err = record_open(value, &record);
        if (err == OK) err = record_columns(&record, layout->columns, cells_out, &count);
        return err == OK && count != layout->columns ? ERR_CORRUPT : err;
    }
    size_t bits = value.bytes == 0 ? 0 : extra_bytes(layout->columns);
    if (value.bytes < bits) return ERR_CORRUPT;
    Slice texts = SLICE(value.p + bits, value.bytes - bits);
    const u8 *p = key.p, *end = key.p + key.bytes;
    for (u32 i = 0; i < layout->columns; i++) {
        err = key_decode_cell(&p, end, &layout->column[i], arena, &cells_out[i]);
        if (err == OK && bits != 0) {
            err = apply_extra((Extra)(value.p[i / 4] >> (i % 4 * 2) & 3), &texts, &cells_out[i]);
        }
        if (err != OK) return err;
    }
    return OK;
}
