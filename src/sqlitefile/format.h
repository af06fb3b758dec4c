/*
 * format.h -- numbers of SQLite's database file format that reader and writer share.
 *
 * Written from SQLite's description of the format.  All numbers in such a file are big-endian.
 */
#pragma once

#include "value/value.h"

#define SQF_MAGIC          "SQLite format 3"
#define SQF_MAGIC_BYTES    16u /* With the NUL. */
#define SQF_HEADER_BYTES   100u
#define SQF_PAGE_BYTES_MIN 512u
#define SQF_PAGE_BYTES_MAX 65536u
#define SQF_USABLE_MIN     480u
#define SQF_PENDING_BYTE   ((u64)1 << 30) /* The page that holds it is never used. */
#define SQF_SCHEMA_ROOT    1u
#define SQF_VARINT_BYTES   9u
#define SQF_COLUMNS_MAX    32767u
#define SQF_PTRMAP_BYTES   5u
#define SQF_CELL_BYTES_MIN 4u

/* Where things stand in the file header. */
enum {
    SQF_AT_PAGE_BYTES = 16,
    SQF_AT_WRITE_VERSION = 18,
    SQF_AT_READ_VERSION = 19,
    SQF_AT_RESERVED = 20,
    SQF_AT_FRACTIONS = 21,
    SQF_AT_CHANGE_COUNTER = 24,
    SQF_AT_PAGES = 28,
    SQF_AT_FREE_FIRST = 32,
    SQF_AT_FREE_COUNT = 36,
    SQF_AT_SCHEMA_COOKIE = 40,
    SQF_AT_SCHEMA_FORMAT = 44,
    SQF_AT_CACHE_SIZE = 48,
    SQF_AT_LARGEST_ROOT = 52,
    SQF_AT_ENCODING = 56,
    SQF_AT_USER_VERSION = 60,
    SQF_AT_INCREMENTAL = 64,
    SQF_AT_APPLICATION_ID = 68,
    SQF_AT_VALID_FOR = 92,
    SQF_AT_LIBRARY_VERSION = 96
};

typedef enum SqfEncoding { SQF_UTF8 = 1, SQF_UTF16LE = 2, SQF_UTF16BE = 3 } SqfEncoding;

/* The first byte of a b-tree page. */
typedef enum SqfPageKind {
    SQF_INDEX_INTERIOR = 2,
    SQF_TABLE_INTERIOR = 5,
    SQF_INDEX_LEAF = 10,
    SQF_TABLE_LEAF = 13
} SqfPageKind;

/* What a page-map entry says of a page. */
typedef enum SqfPageUse {
    SQF_USE_ROOT = 1,
    SQF_USE_FREE = 2,
    SQF_USE_OVERFLOW_FIRST = 3,
    SQF_USE_OVERFLOW_NEXT = 4,
    SQF_USE_BTREE = 5
} SqfPageUse;

typedef enum SqfVacuum {
    SQF_VACUUM_NONE = 0,
    SQF_VACUUM_FULL = 1,
    SQF_VACUUM_INCREMENTAL = 2
} SqfVacuum;

static inline u32
sqf_be16(const u8 *p)
{
    return (u32)p[0] << 8 | p[1];
}
static inline void
sqf_put_be16(u8 *p, u32 v)
{
    p[0] = (u8)(v >> 8);
    p[1] = (u8)v;
}

static inline bool
sqf_is_interior(u32 kind)
{
    return kind == SQF_INDEX_INTERIOR || kind == SQF_TABLE_INTERIOR;
}
static inline bool
sqf_is_index(u32 kind)
{
    return kind == SQF_INDEX_INTERIOR || kind == SQF_INDEX_LEAF;
}
/* Bytes of a b-tree page's own header. */
static inline u32
sqf_page_head_bytes(u32 kind)
{
    return sqf_is_interior(kind) ? 12 : 8;
}

/* How many of `payload` bytes lie on the b-tree page; the rest goes to overflow pages. */
static inline u32
sqf_local_bytes(u32 usable, bool is_index, u64 payload)
{
    u32 most = is_index ? (usable - 12) * 64 / 255 - 23 : usable - 35;
    if (payload <= most) return (u32)payload;
    u32 least = (usable - 12) * 32 / 255 - 23;
    u32 local = least + (u32)((payload - least) % (usable - 4));
    return local <= most ? local : least;
}

static inline u32
sqf_pending_page(u32 page_bytes)
{
    return (u32)(SQF_PENDING_BYTE / page_bytes) + 1;
}

/* The page-map page that speaks of `page` (itself, if it is one), for files that have them. */
static inline u32
sqf_ptrmap_page(u32 page_bytes, u32 usable, u32 page)
{
    if (page < 2) return 0;
    u32 group = usable / SQF_PTRMAP_BYTES + 1;
    u32 map = (page - 2) / group * group + 2;
    return map == sqf_pending_page(page_bytes) ? map + 1 : map;
}

/* Integers of 1 to 9 bytes.  Bytes read, 0 if [p, end) holds no whole one. */
u32 sqf_varint_get(const u8 *p, const u8 *end, u64 *v_out);
u32 sqf_varint_put(u8 *p, u64 v);
u32 sqf_varint_bytes(u64 v);

/*
 * Records.  Text comes out as UTF-8 and goes in as UTF-8, whatever the file's encoding is; what is
 * not valid UTF-16 becomes U+FFFD.
 */
/* Columns of a record, at most `most`; cells point into the payload, or into `arena` when text had
   to be converted.  Errors: ERR_CORRUPT, ERR_NOMEM. */
MUST_CHECK Err sqf_record_decode(Slice payload, SqfEncoding encoding, Arena *arena, u32 most,
                                 Cell *cell_out, u32 *count_out);
/* Append the record of the cells.  `compact`[i] (may be NULL): a real with an integral value is
   written as an integer, as a column of REAL affinity wants it.  ERR_NOMEM, ERR_TOOBIG. */
MUST_CHECK Err sqf_record_encode(const Cell *cell, u32 count, const bool *compact,
                                 SqfEncoding encoding, Buf *out);

/* Text from the file's encoding to UTF-8 and back. */
MUST_CHECK Err sqf_text_decode(const u8 *p, size_t bytes, SqfEncoding encoding, Arena *arena,
                               Cell *text_out);
MUST_CHECK Err sqf_text_encode(Slice text, SqfEncoding encoding, Buf *out);
