/*
 * table_codec.h -- rows and index entries as keys and values of the store, and the key ranges of
 * scans.
 *
 * A rowid table is a STORE_TREE_INT tree: key = rowid, value = a record (value/record.h) of the
 * stored columns; the INTEGER PRIMARY KEY column stands in it as "taken from the key".  A WITHOUT
 * ROWID table is a STORE_TREE_BYTES tree: key = the encoded primary key, value = a record in which
 * the columns that the key reproduces exactly are "taken from the key".
 *
 * An index entry holds the cells e0..en-1: the declared columns, and for WITHOUT ROWID tables
 * behind them the primary-key columns not yet present with the same collation.  It is
 * what key_entry_encode() makes of them (value/key.h), except in a unique index of a WITHOUT ROWID
 * table: there, if no declared column is NULL, the key is the declared columns alone, so that equal
 * keys mean a duplicate, and the value is a record of all cells.
 *
 * A codec is built when a statement is opened; it points into the TableDef, has scratch memory, and
 * so belongs to one task.  Cells given out borrow from the key, the value, the TableDef or the
 * arena that was passed. Bytes that are not of this format give ERR_CORRUPT.
 */
#pragma once

#include "sql/schema.h"
#include "value/key.h"
#include "value/value.h"

#define TABLE_KEY_BYTES 8

#define INDEX_POSITION_NONE  ((u16)0xFFFF) /* The entry does not hold the column. */
#define INDEX_POSITION_ROWID ((u16)0xFFFE) /* It is the rowid of the entry. */

/* ---- rowid keys ---- */

static inline void
table_key_put(i64 rowid, u8 key_out[TABLE_KEY_BYTES])
{
    key_put_table_rowid(key_out, rowid);
}
/* `key` has TABLE_KEY_BYTES bytes: the store promises that for a STORE_TREE_INT tree. */
static inline i64
table_key_rowid(Slice key)
{
    return key_table_rowid(key.p);
}

/* ---- entries ---- */

/* One cell of an index entry. */
typedef struct EntryColumn {
    u16 column; /* Table column, COLUMN_ROWID, or COLUMN_EXPR. */
    bool desc;
    u8 affinity; /* Of the table column; AFFINITY_NONE for expressions. */
    const Collation *collation;
} EntryColumn;

typedef struct IndexCodec {
    const IndexDef *index;
    const TableDef *table;
    bool is_primary; /* The tree of a WITHOUT ROWID table itself: values are table records. */
    u16 key_columns; /* Declared. */
    u16 columns;     /* With the appended primary-key columns. */
    EntryColumn *column;
    KeyColumn *key_column; /* [columns] */
    KeyLayout layout;      /* Over all cells. */
    u16 *primary_position; /* WITHOUT ROWID: cell of the entry for primary-key column i ... */
    u16 primary_count;
    KeyColumn *primary_key_column; /* ... and how the table's key holds it. */
    Cell *scratch;                 /* [columns] */
} IndexCodec;

/* Errors: ERR_NOMEM, ERR_UNSUPPORTED (a collation of the host program, which has no keys). */
MUST_CHECK Err index_codec_init(IndexCodec *codec, const IndexDef *index, Arena *arena);

/* Where an entry holds a table column (or COLUMN_ROWID): a cell number, INDEX_POSITION_ROWID or
   INDEX_POSITION_NONE. */
u16 index_position(const IndexCodec *codec, u16 table_column);

/*
 * Encode an entry.  `cell` has codec->columns cells; `rowid` is ignored for WITHOUT ROWID tables.
 * Replaces the contents of both buffers.  claims_out: the key holds the declared columns only, so
 * that an equal key means a duplicate.  Not for is_primary codecs.
 */
MUST_CHECK Err index_encode(const IndexCodec *codec, const Cell *cell, i64 rowid, Buf *key_out,
                            Buf *value_out, bool *claims_out);
/* Rowid of an entry of a rowid table. */
MUST_CHECK Err index_decode_rowid(const IndexCodec *codec, Slice key, Slice value, i64 *rowid_out);
/* Cells at the given positions (INDEX_POSITION_ROWID allowed). */
MUST_CHECK Err index_decode(const IndexCodec *codec, Slice key, Slice value, const u16 *position,
                            u32 count, Arena *arena, Cell *cell_out);
/* The key of the entry's row in the table's tree; replaces the contents of table_key_out. */
MUST_CHECK Err index_table_key(const IndexCodec *codec, Slice key, Slice value, Arena *arena,
                               Buf *table_key_out);
/* The key as it would be without a cut: what a run of cut entries with equal first bytes is sorted
   by (memcmp); key_is_cut() tells whether it was.  Replaces the contents of full_out. */
MUST_CHECK Err index_full_key(const IndexCodec *codec, Slice key, Slice value, Arena *arena,
                              Buf *full_out);

/* ---- rows ---- */

typedef struct TableCodec {
    const TableDef *table;
    IndexCodec primary; /* WITHOUT ROWID; else zero. */
    u16 *key_position;  /* WITHOUT ROWID: by table column, its place in the key, or 0xFFFF. */
    u16 *stored_column; /* By position in the record: the table column. */
    Cell *scratch;      /* [stored_count] */
    bool gathers;       /* The record's cells are not simply the row's. */
} TableCodec;

MUST_CHECK Err table_codec_init(TableCodec *codec, const TableDef *table, Arena *arena);
/* Key of a row: `row` has column_count cells; `rowid` counts for rowid tables. */
MUST_CHECK Err table_row_key(const TableCodec *codec, const Cell *row, i64 rowid, Buf *key_out);
/* Key from the primary-key cells alone, in the order of the key (WITHOUT ROWID). */
MUST_CHECK Err table_primary_key(const TableCodec *codec, const Cell *primary, Buf *key_out);
/* Record of a row.  `key` is its table_row_key (used for WITHOUT ROWID only). */
MUST_CHECK Err table_encode(const TableCodec *codec, const Cell *row, Slice key, Buf *record_out);
/*
 * Chosen columns (COLUMN_ROWID allowed) of a (key, record) pair.  A column newer than the record
 * reads as its default; a virtual generated column comes out as NULL, to be computed by the caller.
 */
MUST_CHECK Err table_decode(const TableCodec *codec, Slice key, Slice record, const u16 *column,
                            u32 count, Arena *arena, Cell *cell_out);
/* All column_count columns, in order. */
MUST_CHECK Err table_decode_all(const TableCodec *codec, Slice key, Slice record, Arena *arena,
                                Cell *row_out);

/* ---- ranges ---- */

/*
 * The keys a scan visits: low <= key < high by memcmp; an empty `high` means no upper bound.
 *   forwards:  seek STORE_SEEK_GE low, bound (high, exclusive);
 *   backwards: seek STORE_SEEK_LT high (STORE_SEEK_LAST if empty), bound (low, inclusive).
 * Zero-initialise before first use; range_free() at the end.  Rebuilding reuses the memory.
 */
typedef struct KeyRange {
    Buf low, high;
    bool empty;   /* No row can match: a NULL bound, or low above high. */
    bool point;   /* At most one entry, and `low` is its whole key: store_get() will do. */
    bool recheck; /* Bounds were cut: ask index_range_holds() for each entry with a cut key. */
    Buf full_low, full_high; /* Uncut bounds, for the recheck. */
} KeyRange;

void range_free(KeyRange *range);

/*
 * Range of an index (or of a WITHOUT ROWID table: codec of its primary key): equality on the first
 * eq_count columns, then low and high on the next one (NULL pointers: open).  Values are
 * not converted: the plan has put the affinities of the comparison into them.  Values of any type
 * are right as they are: the key order is SQLite's order over all types (`k > 'a'` on a numeric
 * column meets texts and blobs only, `k < 'a'` all numbers), NULL keys are left out of an open
 * lower end, DESC columns are turned.  A NULL equality matches nothing unless null_safe[i]
 * (null_safe may be NULL); a NULL bound nothing.
 */
MUST_CHECK Err index_range_build(const IndexCodec *codec, const Cell *eq, u32 eq_count,
                                 const bool *null_safe, const Cell *low, bool low_inclusive,
                                 const Cell *high, bool high_inclusive, KeyRange *range);
/* Does an entry found in the range lie in it?  Always true unless range->recheck. */
MUST_CHECK Err index_range_holds(const IndexCodec *codec, const KeyRange *range, Slice key,
                                 Slice value, Arena *arena, bool *holds_out);
/*
 * Range of a rowid table.  `eq` non-NULL: that rowid only; else low and high.  Reals are rounded
 * inwards; texts and blobs stand above every rowid; a NULL matches
 * nothing.
 */
MUST_CHECK Err rowid_range_build(const Cell *eq, const Cell *low, bool low_inclusive,
                                 const Cell *high, bool high_inclusive, KeyRange *range);
