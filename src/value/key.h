/*
 * key.h -- index keys: bytes whose memcmp order is SQLite's order of the values.
 *
 * A key is the concatenation of its columns; for DESC every byte of the column is inverted.  No
 * encoding of a column is a prefix of another.  docs/FORMAT.md has the table.
 *
 *   NULL 08 (last: FC); numbers 16..2A; TEXT 30; BLOB 38.
 *
 * The same bytes are the normal form for hashing, grouping and sorting.  What they do not say
 * (1 or 1.0, the text behind NOCASE) travels in the entry's value.  Collations of the host program
 * have no keys (asserted).
 */
#pragma once

#include "value/value.h"

/* A key of more bytes is cut: the first KEY_BYTES_WHOLE, then KEY_HASH_BYTES of the SHA-256 of the
   rest, and the entry's value holds the columns in full. */
#define KEY_BYTES_WHOLE 960
#define KEY_HASH_BYTES  16
#define KEY_BYTES_LONG  (KEY_BYTES_WHOLE + KEY_HASH_BYTES)

typedef struct KeyColumn {
    const Collation *collation; /* NULL: BINARY. */
    bool desc;
    bool nulls_last; /* Sort keys only; before DESC is applied NULL is then the last value. */
    bool is_real;    /* A REAL column: all its numbers are reals. */
} KeyColumn;

/* Append one column. */
MUST_CHECK Err key_append_cell(Buf *key, const Cell *cell, const KeyColumn *column);
/* The first eight bytes of a text's key, read as a big-endian number; false: they are not known
   without making the key. */
bool key_text_prefix(const Cell *cell, const KeyColumn *column, u64 *prefix_out);
/* Append all. */
MUST_CHECK Err key_append_cells(Buf *key, const Cell *cells, const KeyColumn *columns, u32 count);
/* Append the row suffix; its last byte tells its length. */
MUST_CHECK Err key_append_rowid(Buf *key, i64 rowid);
/* Read the row suffix at the end of a key; *prefix_bytes_out: what stands before it. */
MUST_CHECK Err key_rowid_suffix(Slice key, i64 *rowid_out, size_t *prefix_bytes_out);

/* Keys of a table tree: 8 bytes, sign flipped, big-endian. */
#define KEY_ROWID_BYTES 8
static inline void
key_put_table_rowid(u8 *p, i64 rowid)
{
    store_be64(p, (u64)rowid ^ ((u64)1 << 63));
}
static inline i64
key_table_rowid(const u8 *p)
{
    return (i64)(load_be64(p) ^ ((u64)1 << 63));
}

/*
 * Read one column of a whole (not cut) key at *p and advance.  Numbers with an integral value come
 * as INT (REAL for is_real), text as the collation folded it.  Bytes come from `arena`.
 * Errors: ERR_CORRUPT, ERR_NOMEM.
 */
MUST_CHECK Err key_decode_cell(const u8 **p, const u8 *end, const KeyColumn *column, Arena *arena,
                               Cell *out);
/* Bytes of the column at p, without decoding; 0 if it is damaged. */
size_t key_column_bytes(const u8 *p, const u8 *end, bool desc);
/* True if key_decode_cell would give the cell back exactly. */
bool key_reproduces(const Cell *cell, const KeyColumn *column);

/*
 * The smallest key larger than every key that starts with `prefix`: increments in place and
 * returns the new length; 0 when there is none (all bytes FF).
 */
size_t key_prefix_end(u8 *prefix, size_t bytes);

/* Cut a whole key (the Buf holds nothing else, appended by the functions above) of more than
   KEY_BYTES_WHOLE bytes to KEY_BYTES_LONG; others stay.  True if cut. */
bool key_shorten(Buf *key);

/*
 * Index entries: key and value together.
 *
 *   non-unique:  key = columns, rowid suffix      value = extra
 *   unique:      key = columns (and the rowid     value = rowid, extra
 *                suffix if a column is NULL)
 *   no rowid:    key = columns (the primary key's value = extra
 *                are among them)
 *
 * `extra` is empty if the key says all; else 2 bits a column (exact; integral real; -0.0; see
 * text) and the texts.  For a key that was cut it is the columns as a record, and the value starts
 * with the rowid for non-unique indexes too.
 */
typedef enum KeyRowid { KEY_NO_ROWID, KEY_ROWID_IN_KEY, KEY_ROWID_IN_VALUE } KeyRowid;

typedef struct KeyLayout {
    const KeyColumn *column;
    u32 columns;
    KeyRowid rowid; /* IN_KEY: non-unique; IN_VALUE: unique. */
} KeyLayout;

/*
 * A column that rises and holds an integer, at *p: the usual case of key_decode_cell(), for loops.
 * False: something else, or damage; *p has not moved.
 */
static inline bool
key_take_int(const u8 **p, const u8 *end, i64 *value_out)
{
    if (*p >= end) return false;
    const u8 *at = *p;
    u32 tag = *at++;
    bool negative = tag < 0x20;
    if (tag == 0x20) {
        *value_out = 0;
        *p = at;
        return true;
    }
    u32 bytes = (negative ? 0x40 - tag : tag) - 0x21;
    if (bytes - 1 > 7 || (size_t)(end - at) < bytes) return false;
    u64 twice = 0;
    for (const u8 *behind = at + bytes; at < behind; at++) {
        twice = twice << 8 | (u8)(negative ? ~*at : *at);
    }
    if ((twice & 1) != 0) return false; /* A fraction follows. */
    i64 value = (i64)(twice >> 1);
    *value_out = negative ? -value : value;
    *p = at;
    return true;
}

/*
 * Make the entry of one row; replaces what `key` and `value` hold.  For cells that are long values
 * by reference pass the loaded value in `cells`, and the reference in `stored` (else NULL or
 * equal): that one goes into the record of a cut key.  Errors: ERR_NOMEM.
 */
MUST_CHECK Err key_entry_encode(const KeyLayout *layout, const Cell *cells, const Cell *stored,
                                i64 rowid, Buf *key, Buf *value);
/* Rowid of an entry (layout->rowid is not KEY_NO_ROWID). */
MUST_CHECK Err key_entry_rowid(const KeyLayout *layout, Slice key, Slice value, i64 *rowid_out);
/*
 * The cells of an entry, exactly as they were; cells_out has layout->columns places.  Text and
 * blobs come from `arena` or point into `value`.  Cells of a cut key may have CELL_BY_REF.
 */
MUST_CHECK Err key_entry_decode(const KeyLayout *layout, Slice key, Slice value, Arena *arena,
                                Cell *cells_out);
static inline bool
key_is_cut(Slice key)
{
    return key.bytes == KEY_BYTES_LONG;
}
