/*
 * scan_place.h -- where columns stand in records (private to exec/): shared by scan_batch.c and
 * scan_look.c.
 */
#pragma once

#include "exec/scan.h"
#include "value/record.h"

typedef enum FieldCode {
    FIELD_NULL = 0,
    FIELD_INT = 1,
    FIELD_REAL = 2,
    FIELD_REAL_INT = 3,
    FIELD_TEXT = 4,
    FIELD_BLOB = 5,
    FIELD_OTHER = 6
} FieldCode;

/* One field of a record in the usual form. */
typedef struct Field {
    u32 code;
    u32 bytes;
    const u8 *end;
} Field;

/* Where a column stands in records of the usual form: the narrow directory, no column missing. */
typedef struct Place {
    u16 head;         /* What the first two bytes are then: no flags, the number of columns. */
    u32 start_mask;   /* 0 for the first column: it starts at 0. */
    u32 word;         /* Offset of its word in the record. */
    u32 header_bytes; /* Head and directory. */
    u32 bytes_min;    /* Shorter records have another form. */
    bool is_rowid;    /* It is the key, not in the record. */
} Place;

/* A field of a record; FIELD_OTHER: ask the codec. */
static ALWAYS_INLINE Field
field_at(Slice record, const Place *place)
{
    const u8 *p = record.p;
    if (UNLIKELY(record.bytes < place->bytes_min || load_u16(p) != place->head)) {
        return (Field){.code = FIELD_OTHER};
    }
    u32 here = load_u16(p + place->word);
    u32 start = load_u16(p + place->word - 2) & place->start_mask;
    u32 end = here & 0xFFFu, behind = place->header_bytes + end;
    /* Numbers are read as the eight bytes before the end: 8 <= behind <= record.bytes. */
    if (UNLIKELY((size_t)behind - 8 > record.bytes - 8)) return (Field){.code = FIELD_OTHER};
    /* A damaged directory gives more than 4095 bytes here, which no reader takes. */
    return (Field){.code = here >> 12, .bytes = end - start, .end = p + behind};
}

static ALWAYS_INLINE i64
field_int(Field field)
{
    if (field.bytes == 0) return 0;
    return (i64)load_u64(field.end - 8) >> (64 - 8 * field.bytes);
}

static ALWAYS_INLINE f64
field_real(Field field)
{
    f64 r;
    memcpy(&r, field.end - 8, sizeof(r));
    return r;
}
