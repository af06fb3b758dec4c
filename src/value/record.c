/*
 * record.c -- rows as bytes, and columns out of them.
 *
 * Integers stand in 0 to 8 bytes, little-endian.  They are read with the 8 bytes that end where
 * the column ends, shifted down: that load stays inside the record, because a head stands before
 * every column.
 */
#include "value/record.h"

#define FLAG_WIDE        1
#define FLAG_COUNT_IS_16 2

#define SMALL_CODE_SHIFT    12
#define SMALL_END_MAX       0xFFFu
#define PATCHED_MAX         8u
#define RECORD_NARROW_SPARE 32u /* Bytes that writing one column may touch behind the data. */
#define WIDE_CODE_SHIFT     28
#define WIDE_END_MAX        RECORD_DATA_BYTES_MAX

typedef enum Code {
    CODE_NULL = 0,
    CODE_INT = 1,
    CODE_REAL = 2,
    CODE_REAL_AS_INT = 3,
    CODE_TEXT = 4,
    CODE_BLOB = 5,
    CODE_TEXT_REF = 6,
    CODE_BLOB_REF = 7,
    CODE_FROM_KEY = 15
} Code;

STATIC_ASSERT(sizeof(LongRef) == 24);
STATIC_ASSERT(alignof(LongRef) == 1);

void
long_ref_set(LongRef *ref, u64 tree, u64 bytes, const u8 *value)
{
    *ref = (LongRef){0};
    store_u64(ref->tree, tree);
    store_u64(ref->bytes, bytes);
    memcpy(ref->prefix, value, MIN_OF(bytes, sizeof(ref->prefix)));
}

/* ---- writing ---- */

/* Bytes of the shortest two's complement form; 0 needs none. */
static u32
int_bytes(i64 i)
{
    if (i == 0) return 0;
    return (bits_of((u64)(i ^ (i >> 63))) + 8) / 8;
}

/* How a cell stands in a record: its code and the number of bytes. */
static Code
code_of(const Cell *cell, u32 *bytes_out)
{
    i64 whole;
    switch (cell->type) {
    case CELL_INT: *bytes_out = int_bytes(cell->u.i); return CODE_INT;
    case CELL_REAL:
        if (real_is_int(cell->u.r, &whole) && !(whole == 0 && __builtin_signbit(cell->u.r)) &&
            int_bytes(whole) < 8) {
            *bytes_out = int_bytes(whole);
            return CODE_REAL_AS_INT;
        }
        *bytes_out = 8;
        return CODE_REAL;
    case CELL_TEXT:
    case CELL_BLOB: {
        bool ref = (cell->flags & CELL_BY_REF) != 0;
        *bytes_out = ref ? (u32)sizeof(LongRef) : cell->bytes;
        if (cell->type == CELL_TEXT) return ref ? CODE_TEXT_REF : CODE_TEXT;
        return ref ? CODE_BLOB_REF : CODE_BLOB;
    }
    default: *bytes_out = 0; return cell->flags & CELL_FROM_KEY ? CODE_FROM_KEY : CODE_NULL;
    }
}

static void
put_column(u8 *p, const Cell *cell, Code code, u32 bytes)
{
    i64 whole = 0;
    switch (code) {
    case CODE_INT: whole = cell->u.i; break;
    case CODE_REAL_AS_INT: whole = (i64)cell->u.r; break;
    case CODE_REAL: memcpy(p, &cell->u.r, 8); return;
    case CODE_TEXT_REF:
    case CODE_BLOB_REF: memcpy(p, cell->u.ref, sizeof(LongRef)); return;
    case CODE_TEXT:
    case CODE_BLOB:
        if (cell->flags & CELL_ZEROBLOB) {
            memset(p, 0, bytes);
        } else if (bytes > 0) {
            memcpy(p, cell->u.p, bytes);
        }
        return;
    default: return;
    }
    for (u32 i = 0; i < bytes; i++) {
        p[i] = (u8)((u64)whole >> (8 * i));
    }
}

static u64
data_size(const Cell *cells, u32 count)
{
    u64 total = 0;
    for (u32 i = 0; i < count; i++) {
        u32 bytes;
        (void)code_of(&cells[i], &bytes);
        total += bytes;
    }
    return total;
}

static size_t
head_size(u32 count, bool wide)
{
    return 1 + (count > 0xFF ? 2u : 1u) + (size_t)count * (wide ? 4u : 2u);
}

size_t
record_size(const Cell *cells, u32 count)
{
    u64 data = data_size(cells, count);
    if (count > 0xFFFF || data > RECORD_DATA_BYTES_MAX) return 0;
    return head_size(count, data > SMALL_END_MAX) + (size_t)data;
}

/* Reals below this in size that are whole stand as integers of fewer than 8 bytes. */
#define REAL_AS_INT_END 36028797018963968.0 /* 2 to the 55 */
STATIC_ASSERT(sizeof(LongRef) <= RECORD_NARROW_SPARE);

static ALWAYS_INLINE Code
narrow_real(u8 *to, f64 r, u32 *bytes_out)
{
    if (r > -REAL_AS_INT_END && r < REAL_AS_INT_END) {
        i64 whole = (i64)r;
        if ((f64)whole == r && (whole != 0 || !__builtin_signbit(r))) {
            *bytes_out = int_bytes(whole);
            store_u64(to, (u64)whole);
            return CODE_REAL_AS_INT;
        }
    }
    *bytes_out = 8;
    memcpy(to, &r, 8);
    return CODE_REAL;
}

/* A column of the usual record, unless it is longer than `room`; integers are written as 8 bytes of
   which the next column covers what is too much. */
static ALWAYS_INLINE Code
narrow_put(u8 *to, u32 room, const Cell *cell, u32 *bytes_out)
{
    if (cell->type == CELL_INT) {
        *bytes_out = int_bytes(cell->u.i);
        store_u64(to, (u64)cell->u.i);
        return CODE_INT;
    }
    if (cell->type == CELL_REAL) return narrow_real(to, cell->u.r, bytes_out);
    if (cell->type == CELL_TEXT && (cell->flags & (CELL_BY_REF | CELL_ZEROBLOB)) == 0) {
        *bytes_out = cell->bytes;
        if (cell->bytes > 0 && cell->bytes <= room) memcpy(to, cell->u.p, cell->bytes);
        return CODE_TEXT;
    }
    if (cell->type == CELL_NULL) {
        *bytes_out = 0;
        return (cell->flags & CELL_FROM_KEY) != 0 ? CODE_FROM_KEY : CODE_NULL;
    }
    Code code = code_of(cell, bytes_out);
    if (*bytes_out <= room) put_column(to, cell, code, *bytes_out);
    return code;
}

/* The usual record, in one pass: up to 255 columns, data that surely fit the narrow directory. */
static Err
encode_narrow(const Cell *cells, u32 count, size_t data_max, Buf *out)
{
    size_t head = 2 + 2 * (size_t)count;
    Err err = buf_reserve(out, head + data_max + 8);
    if (err != OK) return err;
    u8 *p = out->p + out->bytes;
    u8 *data = p + head;
    u8 *to = data;
    *p++ = 0;
    *p++ = (u8)count;
    for (u32 i = 0; i < count; i++, p += 2) {
        u32 bytes;
        Code code = narrow_put(to, U32_MAX, &cells[i], &bytes);
        to += bytes;
        store_u16(p, (u16)((u32)code << SMALL_CODE_SHIFT | (u32)(to - data)));
    }
    out->bytes = (size_t)(to - out->p);
    return OK;
}

Err
record_encode_from(const Cell *const *cells, u32 count, Buf *out, bool *done_out)
{
    ASSERT(count <= 0xFF);
    size_t head = 2 + 2 * (size_t)count;
    *done_out = false;
    Err err = buf_reserve(out, head + SMALL_END_MAX + RECORD_NARROW_SPARE);
    if (err != OK) return err;
    u8 *p = out->p + out->bytes;
    u8 *data = p + head;
    u32 end = 0;
    *p++ = 0;
    *p++ = (u8)count;
    for (u32 i = 0; i < count; i++, p += 2) {
        u32 bytes;
        Code code = narrow_put(data + end, SMALL_END_MAX - end, cells[i], &bytes);
        if (UNLIKELY(bytes > SMALL_END_MAX - end)) return OK;
        end += bytes;
        store_u16(p, (u16)((u32)code << SMALL_CODE_SHIFT | end));
    }
    out->bytes += head + end;
    *done_out = true;
    return OK;
}

Err
record_encode(const Cell *cells, u32 count, Buf *out)
{
    if (LIKELY(count <= 0xFF)) {
        u64 most = 0;
        for (u32 i = 0; i < count; i++) {
            most += cells[i].type >= CELL_TEXT ? MAX_OF(cells[i].bytes, (u32)sizeof(LongRef)) : 8;
        }
        if (most <= SMALL_END_MAX) return encode_narrow(cells, count, (size_t)most, out);
    }
    u64 data = data_size(cells, count);
    if (count > 0xFFFF || data > RECORD_DATA_BYTES_MAX) return ERR_TOOBIG;
    bool wide = data > SMALL_END_MAX;
    size_t head = head_size(count, wide);
    Err err = buf_reserve(out, head + (size_t)data);
    if (err != OK) return err;

    u8 *p = out->p + out->bytes;
    u8 *to = p + head;
    *p++ = (u8)((wide ? FLAG_WIDE : 0) | (count > 0xFF ? FLAG_COUNT_IS_16 : 0));
    *p++ = (u8)count;
    if (count > 0xFF) *p++ = (u8)(count >> 8);
    u32 end = 0;
    for (u32 i = 0; i < count; i++) {
        u32 bytes;
        Code code = code_of(&cells[i], &bytes);
        put_column(to + end, &cells[i], code, bytes);
        end += bytes;
        if (wide) {
            store_u32(p, (u32)code << WIDE_CODE_SHIFT | end);
            p += 4;
        } else {
            store_u16(p, (u16)((u32)code << SMALL_CODE_SHIFT | end));
            p += 2;
        }
    }
    out->bytes += head + (size_t)data;
    return OK;
}

/* ---- reading ---- */

Err
record_open(Slice bytes, Record *record_out)
{
    if (bytes.bytes < 2 || (bytes.p[0] & ~(FLAG_WIDE | FLAG_COUNT_IS_16)) != 0) return ERR_CORRUPT;
    bool wide = bytes.p[0] & FLAG_WIDE;
    size_t count_bytes = bytes.p[0] & FLAG_COUNT_IS_16 ? 2 : 1;
    if (bytes.bytes < 1 + count_bytes) return ERR_CORRUPT;
    u32 columns = count_bytes == 2 ? load_u16(bytes.p + 1) : bytes.p[1];
    size_t head = 1 + count_bytes + (size_t)columns * (wide ? 4 : 2);
    if (bytes.bytes < head || bytes.bytes - head > RECORD_DATA_BYTES_MAX) return ERR_CORRUPT;
    *record_out = (Record){.base = bytes.p,
                           .directory = bytes.p + 1 + count_bytes,
                           .data = bytes.p + head,
                           .data_bytes = (u32)(bytes.bytes - head),
                           .columns = columns,
                           .wide = wide};
    return OK;
}

/* Code and end offset of column i. */
static inline Code
directory_at(const Record *record, u32 i, u32 *end_out)
{
    if (UNLIKELY(record->wide)) {
        u32 word = load_u32(record->directory + (size_t)i * 4);
        *end_out = word & WIDE_END_MAX;
        return (Code)(word >> WIDE_CODE_SHIFT);
    }
    u16 word = load_u16(record->directory + (size_t)i * 2);
    *end_out = word & SMALL_END_MAX;
    return (Code)(word >> SMALL_CODE_SHIFT);
}

/* The integer of `bytes` bytes that ends at `end`; 8 bytes before `end` belong to the record or
   are few enough to be copied. */
static inline i64
load_int(const Record *record, const u8 *end, u32 bytes)
{
    if (bytes == 0) return 0;
    u64 word = 0;
    size_t before = (size_t)(end - record->base);
    if (LIKELY(before >= 8)) {
        word = load_u64(end - 8);
    } else {
        memcpy((u8 *)&word + 8 - before, record->base, before);
    }
    return (i64)word >> (64 - 8 * bytes);
}

static inline Err
decode(const Record *record, Code code, u32 start, u32 end, Cell *out)
{
    if (UNLIKELY(start > end || end > record->data_bytes)) return ERR_CORRUPT;
    const u8 *p = record->data + start;
    u32 bytes = end - start;
    switch (code) {
    case CODE_NULL: *out = cell_null(); return OK;
    case CODE_INT:
        if (bytes > 8) return ERR_CORRUPT;
        *out = cell_int(load_int(record, p + bytes, bytes));
        return OK;
    case CODE_REAL: {
        f64 r;
        if (bytes != 8) return ERR_CORRUPT;
        memcpy(&r, p, sizeof(r));
        if (r != r) return ERR_CORRUPT; /* Cells are never NaN. */
        *out = cell_real(r);
        return OK;
    }
    case CODE_REAL_AS_INT:
        if (bytes > 8) return ERR_CORRUPT;
        *out = cell_real((f64)load_int(record, p + bytes, bytes));
        return OK;
    case CODE_TEXT: *out = cell_text(p, bytes); return OK;
    case CODE_BLOB: *out = cell_blob(p, bytes); return OK;
    case CODE_TEXT_REF:
    case CODE_BLOB_REF: {
        const LongRef *ref = (const LongRef *)(const void *)p;
        if (bytes != sizeof(LongRef) || long_ref_bytes(ref) > U32_MAX) return ERR_CORRUPT;
        *out = (Cell){.type = code == CODE_TEXT_REF ? CELL_TEXT : CELL_BLOB,
                      .flags = CELL_BY_REF,
                      .bytes = (u32)long_ref_bytes(ref),
                      .u.ref = ref};
        return OK;
    }
    case CODE_FROM_KEY: *out = cell_from_key(); return OK;
    }
    return ERR_CORRUPT;
}

Err
record_column(const Record *record, u32 i, Cell *out)
{
    ASSERT(i < record->columns);
    u32 start = 0, end;
    if (i > 0) (void)directory_at(record, i - 1, &start);
    Code code = directory_at(record, i, &end);
    return decode(record, code, start, end, out);
}

Err
record_columns(const Record *record, u32 count, Cell *out, u32 *read_out)
{
    count = MIN_OF(count, record->columns);
    u32 start = 0, end;
    for (u32 i = 0; i < count; i++) {
        Code code = directory_at(record, i, &end);
        Err err = decode(record, code, start, end, &out[i]);
        if (err != OK) return err;
        start = end;
    }
    if (read_out != NULL) *read_out = count;
    return OK;
}

Err
record_columns_some(const Record *record, const u16 *wanted, u32 count, Cell *out)
{
    for (u32 i = 0; i < count; i++) {
        if (wanted[i] >= record->columns) continue;
        Err err = record_column(record, wanted[i], &out[i]);
        if (err != OK) return err;
    }
    return OK;
}

u8
record_column_type(const Record *record, u32 i)
{
    static const u8 types[16] = {
        [CODE_NULL] = CELL_NULL,        [CODE_INT] = CELL_INT,       [CODE_REAL] = CELL_REAL,
        [CODE_REAL_AS_INT] = CELL_REAL, [CODE_TEXT] = CELL_TEXT,     [CODE_BLOB] = CELL_BLOB,
        [CODE_TEXT_REF] = CELL_TEXT,    [CODE_BLOB_REF] = CELL_BLOB, [CODE_FROM_KEY] = 0xFF};
    ASSERT(i < record->columns);
    u32 end;
    return types[directory_at(record, i, &end)];
}

/* ---- changing ---- */

/* The cell that replaces column i, or NULL: the last one given. */
static const Cell *
replacement(const u16 *column, const Cell *cells, u32 count, u32 i)
{
    for (u32 k = count; k > 0; k--) {
        if (column[k - 1] == i) return &cells[k - 1];
    }
    return NULL;
}

/* If every new value takes just the bytes of the old one: a copy, and those bytes.  False: nothing
   was done.  `out` has room. */
static bool
patch_in_place(Slice old, const Record *record, const u16 *column, const Cell *cells, u32 count,
               Buf *out)
{
    u32 place[PATCHED_MAX], size[PATCHED_MAX];
    Code code[PATCHED_MAX];
    for (u32 k = 0; k < count; k++) {
        u32 start = 0, end, bytes;
        if (column[k] > 0) (void)directory_at(record, column[k] - 1u, &start);
        code[k] = directory_at(record, column[k], &end);
        if (start > end || end > record->data_bytes) return false;
        if (code_of(&cells[k], &bytes) != code[k] || bytes != end - start) return false;
        place[k] = start;
        size[k] = bytes;
    }
    u8 *to = out->p + out->bytes;
    memcpy(to, old.p, old.bytes);
    out->bytes += old.bytes;
    to += record->data - old.p;
    for (u32 k = 0; k < count; k++)
        put_column(to + place[k], &cells[k], code[k], size[k]);
    return true;
}

Err
record_patch(Slice old, const u16 *column, const Cell *cells, u32 count, Buf *out, bool *done_out)
{
    Record record;
    *done_out = false;
    Err err = record_open(old, &record);
    if (err != OK) return err;
    if (record.wide || record.columns > 0xFF || count > PATCHED_MAX) return OK;
    u64 most = record.data_bytes;
    for (u32 k = 0; k < count; k++) {
        if (column[k] >= record.columns) return OK;
        most += cells[k].type >= CELL_TEXT ? MAX_OF(cells[k].bytes, (u32)sizeof(LongRef)) : 8;
    }
    if (most > SMALL_END_MAX) return OK;
    size_t head = 2 + 2 * (size_t)record.columns;
    err = buf_reserve(out, head + (size_t)most + 8);
    if (err != OK) return err;
    if (patch_in_place(old, &record, column, cells, count, out)) {
        *done_out = true;
        return OK;
    }

    /* Runs of columns that stay are copied at once; their ends move by `shift`. */
    u8 *p = out->p + out->bytes;
    u8 *data = p + head;
    u8 *to = data;
    u32 start = 0, end, run = 0;
    u32 shift = 0;
    *p++ = 0;
    *p++ = (u8)record.columns;
    for (u32 i = 0; i < record.columns; i++, p += 2, start = end) {
        Code code = directory_at(&record, i, &end);
        if (start > end || end > record.data_bytes) return ERR_CORRUPT;
        const Cell *cell = replacement(column, cells, count, i);
        if (cell != NULL) {
            u32 bytes;
            memcpy(to, record.data + run, start - run);
            to += start - run;
            code = code_of(cell, &bytes);
            put_column(to, cell, code, bytes);
            to += bytes;
            run = end;
            shift = (u32)(to - data) - end;
        }
        store_u16(p, (u16)((u32)code << SMALL_CODE_SHIFT | ((end + shift) & SMALL_END_MAX)));
    }
    memcpy(to, record.data + run, start - run);
    to += start - run;
    out->bytes = (size_t)(to - out->p);
    *done_out = true;
    return OK;
}
