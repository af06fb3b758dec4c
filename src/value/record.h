/*
 * record.h -- rows as bytes: a directory of one 16-bit word a column, then the bytes.
 *
 *   0     flags: bit 0 wide directory (u32: code 4 bits, end 28 bits), bit 1 column count is u16
 *   1     column count (1 or 2 bytes)
 *   then  directory, little-endian: code in the top 4 bits, end offset of its bytes below
 *   then  the bytes; column i is [end(i-1), end(i))
 *
 * Codes: 0 NULL; 1 INT of 1 to 8 bytes little-endian; 2 REAL; 3 REAL held as INT; 4 TEXT; 5 BLOB;
 * 6, 7 TEXT and BLOB by reference; 15 taken from the key.  0 bytes of INT is the number 0.
 *
 * Everything read from a record is checked: damage is ERR_CORRUPT, never a stray read.
 */
#pragma once

#include "value/value.h"

/* Bytes of variable data that a record can hold: the wide directory's limit. */
#define RECORD_DATA_BYTES_MAX ((1u << 28) - 1)

typedef struct Record {
    const u8 *base; /* The whole record. */
    const u8 *directory;
    const u8 *data;
    u32 data_bytes;
    u32 columns;
    bool wide;
} Record;

/* A cell that says "taken from the key". */
static inline Cell
cell_from_key(void)
{
    return (Cell){.type = CELL_NULL, .flags = CELL_FROM_KEY};
}

static inline u64
long_ref_tree(const LongRef *ref)
{
    return load_u64(ref->tree);
}
static inline u64
long_ref_bytes(const LongRef *ref)
{
    return load_u64(ref->bytes);
}
void long_ref_set(LongRef *ref, u64 tree, u64 bytes, const u8 *value);

/*
 * Append the record of cells[0..count) to `out`.  Text and blobs with CELL_BY_REF go in by
 * reference.  Errors: ERR_NOMEM, ERR_TOOBIG (more than RECORD_DATA_BYTES_MAX or 65535 columns).
 */
MUST_CHECK Err record_encode(const Cell *cells, u32 count, Buf *out);
/* The same of at most 255 cells that lie anywhere.  *done_out false: the record is not of the
   narrow kind, and nothing was appended.  ERR_NOMEM. */
MUST_CHECK Err record_encode_from(const Cell *const *cells, u32 count, Buf *out, bool *done_out);
/*
 * Append the record `old` with some columns replaced: column[i] by cells[i].  *done_out false: the
 * records are not of the narrow kind, or a column is missing; nothing was appended.
 * Errors: ERR_NOMEM, ERR_CORRUPT.
 */
MUST_CHECK Err record_patch(Slice old, const u16 *column, const Cell *cells, u32 count, Buf *out,
                            bool *done_out);
/* Bytes that record_encode would append; 0: too big. */
size_t record_size(const Cell *cells, u32 count);

/* Check the head.  `bytes` must stay while the record and cells read from it are used. */
MUST_CHECK Err record_open(Slice bytes, Record *record_out);
/*
 * Column i, i < record->columns.  Text and blobs point into the record; so does u.ref of a value
 * by reference.  Code 15 gives cell_from_key().
 */
MUST_CHECK Err record_column(const Record *record, u32 i, Cell *out);
/* The first `count` columns; cells beyond record->columns are left alone; *read_out says how many
   were set (may be NULL). */
MUST_CHECK Err record_columns(const Record *record, u32 count, Cell *out, u32 *read_out);
/* Columns wanted[0..count), ascending or not, into out[0..count).  Missing ones are left alone. */
MUST_CHECK Err record_columns_some(const Record *record, const u16 *wanted, u32 count, Cell *out);

/* Type of column i without its value: CellType, or 0xFF for "taken from the key". */
u8 record_column_type(const Record *record, u32 i);
