/*
 * record.c -- SQLite's variable-length integers, record format and text encodings.
 */
#include "sqlitefile/format.h"

#define RECORD_BYTES_MAX ((u64)2147483647)

u32
sqf_varint_get(const u8 *p, const u8 *end, u64 *v_out)
{
    u64 v = 0;
    for (u32 i = 0; i < SQF_VARINT_BYTES && p + i < end; i++) {
        if (i == SQF_VARINT_BYTES - 1) {
            *v_out = v << 8 | p[i];
            return SQF_VARINT_BYTES;
        }
        v = v << 7 | (p[i] & 0x7f);
        if (p[i] < 0x80) {
            *v_out = v;
            return i + 1;
        }
    }
    return 0;
}

u32
sqf_varint_bytes(u64 v)
{
    u32 bits = bits_of(v);
    if (bits > 56) return SQF_VARINT_BYTES;
    return bits == 0 ? 1 : (bits + 6) / 7;
}

u32
sqf_varint_put(u8 *p, u64 v)
{
    u32 bytes = sqf_varint_bytes(v);
    if (bytes == SQF_VARINT_BYTES) {
        p[8] = (u8)v;
        v >>= 8;
        for (u32 i = 8; i-- > 0; v >>= 7)
            p[i] = (u8)(v | 0x80);
        return bytes;
    }
    for (u32 i = bytes; i-- > 0; v >>= 7)
        p[i] = (u8)((v & 0x7f) | (i + 1 == bytes ? 0 : 0x80));
    return bytes;
}

/* ---- text ---- */

static u32
unit_get(const u8 *p, SqfEncoding encoding)
{
    return encoding == SQF_UTF16BE ? sqf_be16(p) : (u32)p[1] << 8 | p[0];
}

static void
unit_put(u8 *p, SqfEncoding encoding, u32 unit)
{
    p[encoding == SQF_UTF16BE ? 0 : 1] = (u8)(unit >> 8);
    p[encoding == SQF_UTF16BE ? 1 : 0] = (u8)unit;
}

Err
sqf_text_decode(const u8 *p, size_t bytes, SqfEncoding encoding, Arena *arena, Cell *text_out)
{
    if (encoding == SQF_UTF8) {
        *text_out = cell_text(p, bytes);
        return OK;
    }
    bytes &= ~(size_t)1; /* Half a unit at the end is no text. */
    /* A unit becomes at most three bytes, a pair of them four. */
    u8 *text = arena_bytes(arena, bytes / 2 * 3 + 4);
    if (text == NULL) return ERR_NOMEM;
    size_t at = 0;
    for (size_t i = 0; i < bytes; i += 2) {
        u32 code = unit_get(p + i, encoding);
        if (code >= 0xD800 && code < 0xE000) {
            u32 low = i + 4 <= bytes && code < 0xDC00 ? unit_get(p + i + 2, encoding) : 0;
            if (low >= 0xDC00 && low < 0xE000) {
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                i += 2;
            } else {
                code = 0xFFFD;
            }
        }
        if (code < 0x80)
            text[at++] = (u8)code;
        else
            at += utf8_put(text + at, code);
    }
    *text_out = cell_text(text, at);
    return OK;
}

Err
sqf_text_encode(Slice text, SqfEncoding encoding, Buf *out)
{
    if (text.bytes == 0) return OK;
    if (encoding == SQF_UTF8) return buf_append(out, text.p, text.bytes);
    /* A byte becomes at most one unit. */
    Err err = buf_reserve(out, text.bytes * 2 + 4);
    if (err != OK) return err;
    const u8 *p = text.p, *end = text.p + text.bytes;
    u8 *to = out->p + out->bytes;
    while (p < end) {
        u32 code = *p < 0x80 ? *p++ : utf8_next(&p, end);
        if (code >= 0x10000) {
            code -= 0x10000;
            unit_put(to, encoding, 0xD800 + (code >> 10));
            to += 2;
            code = 0xDC00 + (code & 0x3FF);
        }
        unit_put(to, encoding, code);
        to += 2;
    }
    out->bytes = (size_t)(to - out->p);
    return OK;
}

/* ---- reading records ---- */

static const u8 int_bytes[12] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};

static u64
serial_bytes(u64 serial)
{
    return serial >= 12 ? (serial - 12) / 2 : int_bytes[serial];
}

static i64
int_get(const u8 *p, u32 bytes)
{
    u64 v = (p[0] & 0x80) != 0 ? U64_MAX : 0;
    for (u32 i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return (i64)v;
}

static Err
value_get(u64 serial, const u8 *p, size_t bytes, SqfEncoding encoding, Arena *arena, Cell *out)
{
    switch (serial) {
    case 0: *out = cell_null(); return OK;
    case 8:
    case 9: *out = cell_int((i64)serial - 8); return OK;
    case 7: {
        u64 bits = load_be64(p);
        f64 real;
        memcpy(&real, &bits, sizeof(real));
        *out = cell_real(real);
        return OK;
    }
    case 10:
    case 11: return ERR_CORRUPT; /* Never in a file at rest. */
    default: break;
    }
    if (serial < 7) {
        *out = cell_int(int_get(p, (u32)bytes));
        return OK;
    }
    if (serial % 2 == 1) return sqf_text_decode(p, bytes, encoding, arena, out);
    *out = cell_blob(p, bytes);
    return OK;
}

Err
sqf_record_decode(Slice payload, SqfEncoding encoding, Arena *arena, u32 most, Cell *cell_out,
                  u32 *count_out)
{
    const u8 *end = payload.p + payload.bytes;
    u64 head_bytes;
    u32 used = sqf_varint_get(payload.p, end, &head_bytes), count = 0;
    *count_out = 0;
    if (used == 0 || head_bytes < used || head_bytes > payload.bytes) return ERR_CORRUPT;
    const u8 *head = payload.p + used, *head_end = payload.p + head_bytes, *body = head_end;
    while (head < head_end && count < most) {
        u64 serial;
        used = sqf_varint_get(head, head_end, &serial);
        if (used == 0) return ERR_CORRUPT;
        head += used;
        u64 bytes = serial_bytes(serial);
        if (bytes > (u64)(end - body)) return ERR_CORRUPT;
        Err err = value_get(serial, body, (size_t)bytes, encoding, arena, &cell_out[count]);
        if (err != OK) return err;
        body += bytes;
        count++;
    }
    *count_out = count;
    return OK;
}

/* ---- writing records ---- */

/* Bytes of the smallest form of an integer; its serial type. */
static u32
int_serial(i64 v, u64 *serial_out)
{
    if (v == 0 || v == 1) {
        *serial_out = v == 0 ? 8 : 9;
        return 0;
    }
    u64 magnitude = v < 0 ? ~(u64)v : (u64)v;
    u32 bits = bits_of(magnitude) + 1;
    u32 serial = bits <= 8    ? 1
                 : bits <= 16 ? 2
                 : bits <= 24 ? 3
                 : bits <= 32 ? 4
                 : bits <= 48 ? 5
                              : 6;
    *serial_out = serial;
    return int_bytes[serial];
}

/* What is written for a cell: integral reals as integers where that is wanted. */
static Cell
written_form(const Cell *cell, bool compact)
{
    i64 integer;
    if (!compact || cell->type != CELL_REAL || !real_is_int(cell->u.r, &integer)) return *cell;
    u64 bits;
    memcpy(&bits, &cell->u.r, sizeof(bits));
    bool minus_zero = integer == 0 && bits != 0;
    bool small = integer > -((i64)1 << 47) && integer < ((i64)1 << 47);
    return small && !minus_zero ? cell_int(integer) : *cell;
}

static Err
body_append(Buf *body, const Cell *cell, SqfEncoding encoding, u64 *serial_out)
{
    u8 bytes[8];
    switch ((CellType)cell->type) {
    case CELL_NULL: *serial_out = 0; return OK;
    case CELL_INT: {
        u32 count = int_serial(cell->u.i, serial_out);
        store_be64(bytes, (u64)cell->u.i);
        return count == 0 ? OK : buf_append(body, bytes + 8 - count, count);
    }
    case CELL_REAL: {
        u64 bits;
        memcpy(&bits, &cell->u.r, sizeof(bits));
        store_be64(bytes, bits);
        *serial_out = 7;
        return buf_append(body, bytes, 8);
    }
    case CELL_TEXT: {
        size_t before = body->bytes;
        Err err = sqf_text_encode(SLICE(cell->u.p, cell->bytes), encoding, body);
        *serial_out = (u64)(body->bytes - before) * 2 + 13;
        return err;
    }
    case CELL_BLOB: break;
    }
    *serial_out = (u64)cell->bytes * 2 + 12;
    if (cell->bytes == 0) return OK;
    if ((cell->flags & CELL_ZEROBLOB) == 0) return buf_append(body, cell->u.p, cell->bytes);
    Err err = buf_reserve(body, cell->bytes);
    if (err == OK) memset(body->p + body->bytes, 0, cell->bytes);
    if (err == OK) body->bytes += cell->bytes;
    return err;
}

/* The length of the head counts itself. */
static u64
head_length(size_t serials_bytes)
{
    u64 length = serials_bytes + 1;
    while (sqf_varint_bytes(length) + serials_bytes != length)
        length = sqf_varint_bytes(length) + serials_bytes;
    return length;
}

Err
sqf_record_encode(const Cell *cell, u32 count, const bool *compact, SqfEncoding encoding, Buf *out)
{
    /* The body goes first and is moved when the length of the head is known. */
    u8 few[64 * SQF_VARINT_BYTES];
    Buf many = {0};
    u8 *serials = few;
    if (count > 64) {
        Err err = buf_reserve(&many, (size_t)count * SQF_VARINT_BYTES);
        if (err != OK) return err;
        serials = many.p;
    }
    size_t start = out->bytes, serials_bytes = 0;
    Err err = OK;
    for (u32 i = 0; i < count && err == OK; i++) {
        u64 serial = 0;
        Cell written = written_form(&cell[i], compact != NULL && compact[i]);
        err = body_append(out, &written, encoding, &serial);
        serials_bytes += sqf_varint_put(serials + serials_bytes, serial);
    }
    size_t body_bytes = out->bytes - start;
    u64 head_bytes = head_length(serials_bytes);
    if (err == OK && head_bytes + body_bytes > RECORD_BYTES_MAX) err = ERR_TOOBIG;
    if (err == OK) err = buf_reserve(out, (size_t)head_bytes);
    if (err == OK) {
        u8 *p = out->p + start;
        memmove(p + head_bytes, p, body_bytes);
        p += sqf_varint_put(p, head_bytes);
        memcpy(p, serials, serials_bytes);
        out->bytes += (size_t)head_bytes;
    } else {
        out->bytes = start;
    }
    buf_free(&many);
    return err;
}
