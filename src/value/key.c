/*
 * key.c -- columns of index keys: encoding, decoding, row suffixes.
 *
 * Invariants: memcmp of two encoded columns is SQLite's order of the values; no encoding is a
 * prefix of another; where a column ends can be told without knowing its collation.
 */
#include "value/key.h"

#include "value/collate.h"
#include "value/sha256.h"

#define TAG_NULL      0x08
#define TAG_NULL_LAST 0xFC
#define TAG_ZERO      0x20
#define TAG_SMALL     0x21 /* 0 < v < 1: 8 bytes of the real. */
#define TAG_HUGE      0x2A /* v >= 2^63: 8 bytes of the real. */
#define TAG_TEXT      0x30
#define TAG_BLOB      0x38
/* TAG_SMALL + n: n bytes of twice the integer part, then 7 of the fraction if the last bit says
   so.  Negative numbers have tag 2 * TAG_ZERO - tag and inverted bytes behind it. */
#define NUMBER_BYTES_MAX 16
#define FRACTION_BYTES   7
#define FRACTION_SCALE   72057594037927936.0 /* 2^56 */

#define TWO_TO_63 9223372036854775808.0

/* Row suffix: this plus or minus the number of bytes. */
#define ROWID_POSITIVE 0x80
#define ROWID_NEGATIVE 0x7F

/* ---- encoding ---- */

static void
invert(u8 *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        p[i] = (u8)~p[i];
    }
}

/* Write v in `bytes` bytes, the most significant first. */
static void
put_be(u8 *p, u64 v, u32 bytes)
{
    for (u32 i = 0; i < bytes; i++) {
        p[i] = (u8)(v >> (8 * (bytes - 1 - i)));
    }
}

static u64
get_be(const u8 *p, u32 bytes)
{
    u64 v = 0;
    for (u32 i = 0; i < bytes; i++) {
        v = v << 8 | p[i];
    }
    return v;
}

static u32
bytes_needed(u64 v)
{
    return (bits_of(v) + 7) / 8;
}

static size_t
put_whole(u8 *p, u64 magnitude, bool fraction)
{
    u64 doubled = magnitude << 1 | fraction;
    u32 bytes = bytes_needed(doubled);
    p[0] = (u8)(TAG_SMALL + bytes);
    put_be(p + 1, doubled, bytes);
    return 1 + bytes;
}

static size_t
put_ieee(u8 *p, u8 tag, f64 r)
{
    u64 bits;
    memcpy(&bits, &r, sizeof(bits));
    p[0] = tag;
    store_be64(p + 1, bits);
    return 9;
}

/* A positive real. */
static size_t
put_magnitude(u8 *p, f64 r)
{
    if (r < 1.0) return put_ieee(p, TAG_SMALL, r);
    if (r >= TWO_TO_63) return put_ieee(p, TAG_HUGE, r);
    u64 whole = (u64)r;
    f64 fraction = r - (f64)whole;
    size_t bytes = put_whole(p, whole, fraction != 0.0);
    if (fraction == 0.0) return bytes;
    put_be(p + bytes, (u64)(fraction * FRACTION_SCALE), FRACTION_BYTES);
    return bytes + FRACTION_BYTES;
}

static size_t
put_number(u8 *p, const Cell *cell)
{
    bool negative;
    size_t bytes;
    if (cell->type == CELL_INT) {
        i64 i = cell->u.i;
        if (i == 0) {
            p[0] = TAG_ZERO;
            return 1;
        }
        negative = i < 0;
        bytes = i == I64_MIN ? put_ieee(p, TAG_HUGE, TWO_TO_63)
                             : put_whole(p, (u64)(negative ? -i : i), false);
    } else {
        f64 r = cell->u.r;
        if (r == 0.0) {
            p[0] = TAG_ZERO;
            return 1;
        }
        negative = r < 0.0;
        bytes = put_magnitude(p, negative ? -r : r);
    }
    if (negative) {
        p[0] = (u8)(2 * TAG_ZERO - p[0]);
        invert(p + 1, bytes - 1);
    }
    return bytes;
}

/* Append bytes with 00 -> 01 01 and 01 -> 01 02. */
static Err
append_escaped(Buf *key, const u8 *p, size_t bytes, bool fold)
{
    /* Room for the plain bytes and some escapes; more is asked for when those run out. */
    Err err = buf_reserve(key, bytes + 16);
    if (err != OK) return err;
    for (size_t i = 0; i < bytes; i++) {
        u8 c = p[i];
        if (UNLIKELY(key->capacity - key->bytes < 2)) {
            err = buf_reserve(key, bytes - i + 16);
            if (err != OK) return err;
        }
        if (UNLIKELY(c <= 1)) {
            key->p[key->bytes++] = 1;
            c++;
        } else if (fold && c >= 'A' && c <= 'Z') {
            c |= 0x20;
        }
        key->p[key->bytes++] = c;
    }
    return OK;
}

/* NOCASE stops at the first NUL and compares lengths: the key has the NUL, then the length. */
static Err
append_nocase(Buf *key, Slice text)
{
    const u8 *nul = text.bytes > 0 ? memchr(text.p, 0, text.bytes) : NULL;
    if (nul == NULL) return append_escaped(key, text.p, text.bytes, true);
    u8 length[4];
    store_be32(length, (u32)text.bytes);
    Err err = append_escaped(key, text.p, (size_t)(nul - text.p) + 1, true);
    return err != OK ? err : append_escaped(key, length, sizeof(length), false);
}

static Err
append_text(Buf *key, const Cell *cell, const Collation *collation)
{
    CollationKind kind = collation == NULL ? COLLATION_BINARY : collation->kind;
    ASSERT(kind != COLLATION_HOST);
    Slice text = SLICE(cell->u.p, cell->bytes);
    Err err = buf_append_byte(key, TAG_TEXT);
    if (err != OK) return err;
    if (kind == COLLATION_RTRIM) {
        while (text.bytes > 0 && text.p[text.bytes - 1] == ' ') {
            text.bytes--;
        }
    }
    err = kind == COLLATION_NOCASE ? append_nocase(key, text)
                                   : append_escaped(key, text.p, text.bytes, false);
    return err != OK ? err : buf_append_byte(key, 0);
}

static Err
append_blob(Buf *key, const Cell *cell)
{
    Err err = buf_append_byte(key, TAG_BLOB);
    if (err != OK) return err;
    if ((cell->flags & CELL_ZEROBLOB) == 0) {
        err = append_escaped(key, cell->u.p, cell->bytes, false);
    } else {
        err = buf_reserve(key, (size_t)cell->bytes * 2 + 1);
        if (err == OK) memset(key->p + key->bytes, 1, (size_t)cell->bytes * 2);
        if (err == OK) key->bytes += (size_t)cell->bytes * 2;
    }
    return err != OK ? err : buf_append_byte(key, 0);
}

/* An append ends: keep room for the hash, so that key_shorten() cannot fail; or take all back. */
static Err
append_done(Buf *key, size_t before, Err err)
{
    if (err == OK) err = buf_reserve(key, KEY_HASH_BYTES);
    if (err != OK) key->bytes = before;
    return err;
}

Err
key_append_cell(Buf *key, const Cell *cell, const KeyColumn *column)
{
    ASSERT((cell->flags & CELL_BY_REF) == 0);
    size_t before = key->bytes;
    Err err = OK;
    u8 number[NUMBER_BYTES_MAX];
    switch (cell->type) {
    case CELL_NULL:
        err = buf_append_byte(key, column->nulls_last ? TAG_NULL_LAST : TAG_NULL);
        break;
    case CELL_INT:
    case CELL_REAL: err = buf_append(key, number, put_number(number, cell)); break;
    case CELL_TEXT: err = append_text(key, cell, column->collation); break;
    default: err = append_blob(key, cell); break;
    }
    err = append_done(key, before, err);
    if (err == OK && column->desc) invert(key->p + before, key->bytes - before);
    return err;
}

bool
key_text_prefix(const Cell *cell, const KeyColumn *column, u64 *prefix_out)
{
    const Collation *collation = column->collation;
    if (cell->type != CELL_TEXT || (cell->flags & CELL_BY_REF) != 0) return false;
    if (cell->bytes < 7 || (collation != NULL && collation->kind != COLLATION_BINARY)) return false;
    const u64 each = ~(u64)0 / 255; /* 1 in every byte. */
    u64 seven = 0;
    if (cell->bytes >= 8) {
        seven = load_be64(cell->u.p) >> 8;
    } else {
        for (u32 i = 0; i < 7; i++)
            seven = seven << 8 | cell->u.p[i];
    }
    u64 all = seven | (u64)0xFF << 56;
    if (((all - each * 2) & ~all & each * 0x80) != 0) return false; /* A byte below 2 is escaped. */
    u64 prefix = (u64)TAG_TEXT << 56 | seven;
    *prefix_out = column->desc ? ~prefix : prefix;
    return true;
}

Err
key_append_cells(Buf *key, const Cell *cells, const KeyColumn *columns, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        Err err = key_append_cell(key, &cells[i], &columns[i]);
        if (err != OK) return err;
    }
    return OK;
}

/* ---- row suffix ---- */

Err
key_append_rowid(Buf *key, i64 rowid)
{
    u64 magnitude = rowid < 0 ? 0 - (u64)rowid : (u64)rowid;
    u32 bytes = bytes_needed(magnitude);
    u8 suffix[10];
    u8 tag = (u8)(rowid < 0 ? ROWID_NEGATIVE - bytes : ROWID_POSITIVE + bytes);
    suffix[0] = suffix[bytes + 1] = tag;
    put_be(suffix + 1, magnitude, bytes);
    if (rowid < 0) invert(suffix + 1, bytes);
    size_t before = key->bytes;
    Err err = buf_append(key, suffix, bytes + 2);
    return append_done(key, before, err);
}

Err
key_rowid_suffix(Slice key, i64 *rowid_out, size_t *prefix_bytes_out)
{
    if (key.bytes < 2) return ERR_CORRUPT;
    u8 tag = key.p[key.bytes - 1];
    bool negative = tag < ROWID_POSITIVE;
    u32 bytes = negative ? (u32)ROWID_NEGATIVE - tag : (u32)tag - ROWID_POSITIVE;
    if (bytes > 8 || key.bytes < bytes + 2) return ERR_CORRUPT;
    const u8 *start = key.p + key.bytes - bytes - 2;
    if (*start != tag) return ERR_CORRUPT;
    u64 v = get_be(start + 1, bytes);
    if (negative) {
        v = bytes == 8 ? ~v : ~v & (((u64)1 << (8 * bytes)) - 1);
        if (v == 0 || v > (u64)1 << 63) return ERR_CORRUPT;
        *rowid_out = (i64)(0 - v);
    } else {
        if (v > (u64)I64_MAX) return ERR_CORRUPT;
        *rowid_out = (i64)v;
    }
    *prefix_bytes_out = (size_t)(start - key.p);
    return OK;
}

/* ---- decoding ---- */

/* Bytes of a number behind its tag (the tag of its magnitude); 0 for a wrong tag. */
static u32
number_payload(u8 tag)
{
    if (tag == TAG_SMALL || tag == TAG_HUGE) return 8;
    return tag > TAG_SMALL && tag < TAG_HUGE ? (u32)tag - TAG_SMALL : 0;
}

size_t
key_column_bytes(const u8 *p, const u8 *end, bool desc)
{
    if (p >= end) return 0;
    u8 flip = desc ? 0xFF : 0;
    u8 tag = *p ^ flip;
    if (tag == TAG_NULL || tag == TAG_NULL_LAST || tag == TAG_ZERO) return 1;
    if (tag == TAG_TEXT || tag == TAG_BLOB) {
        const u8 *found = memchr(p + 1, flip, (size_t)(end - p - 1));
        return found == NULL ? 0 : (size_t)(found - p) + 1;
    }
    bool negative = tag < TAG_ZERO;
    u32 payload = number_payload(negative ? (u8)(2 * TAG_ZERO - tag) : tag);
    if (payload == 0 || (size_t)(end - p) < 1 + payload) return 0;
    if (tag == TAG_SMALL || tag == TAG_HUGE || tag == 2 * TAG_ZERO - TAG_SMALL ||
        tag == 2 * TAG_ZERO - TAG_HUGE) {
        return 1 + payload;
    }
    bool fraction = ((p[payload] ^ flip) & 1) != (negative ? 1 : 0);
    size_t bytes = 1 + payload + (fraction ? FRACTION_BYTES : 0);
    return (size_t)(end - p) < bytes ? 0 : bytes;
}

/* The number whose whole encoding (not inverted for DESC) is p[0..bytes). */
static Err
decode_number(u8 *p, size_t bytes, Cell *out)
{
    u8 tag = p[0];
    bool negative = tag < TAG_ZERO;
    if (negative) {
        tag = (u8)(2 * TAG_ZERO - tag);
        invert(p + 1, bytes - 1);
    }
    f64 r;
    if (tag == TAG_SMALL || tag == TAG_HUGE) {
        u64 bits = load_be64(p + 1);
        memcpy(&r, &bits, sizeof(r));
        bool fits = tag == TAG_SMALL ? r > 0.0 && r < 1.0 : r >= TWO_TO_63;
        if (!fits) return ERR_CORRUPT;
        *out = negative && r == TWO_TO_63 ? cell_int(I64_MIN) : cell_real(negative ? -r : r);
        return OK;
    }
    u32 payload = number_payload(tag);
    u64 doubled = get_be(p + 1, payload), whole = doubled >> 1;
    if (whole == 0 || p[1] == 0) return ERR_CORRUPT;
    if ((doubled & 1) == 0) {
        *out = cell_int(negative ? -(i64)whole : (i64)whole);
        return OK;
    }
    u64 fraction = get_be(p + 1 + payload, FRACTION_BYTES);
    r = (f64)whole + (f64)fraction / FRACTION_SCALE;
    if (fraction == 0 || whole >= (u64)1 << 53) return ERR_CORRUPT;
    *out = cell_real(negative ? -r : r);
    return OK;
}

static Err
decode_bytes(const u8 *p, size_t bytes, u8 flip, Arena *arena, Cell *out)
{
    u8 *copy = arena_bytes(arena, bytes + 1);
    if (copy == NULL) return ERR_NOMEM;
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) {
        u8 c = p[i] ^ flip;
        if (c == 1) {
            if (++i == bytes) return ERR_CORRUPT;
            c = p[i] ^ flip;
            if (c != 1 && c != 2) return ERR_CORRUPT;
            c--;
        }
        copy[count++] = c;
    }
    copy[count] = 0;
    out->u.p = copy;
    out->bytes = (u32)count;
    return OK;
}

Err
key_decode_cell(const u8 **p, const u8 *end, const KeyColumn *column, Arena *arena, Cell *out)
{
    const u8 *start = *p;
    size_t bytes = key_column_bytes(start, end, column->desc);
    if (bytes == 0) return ERR_CORRUPT;
    u8 flip = column->desc ? 0xFF : 0;
    u8 tag = *start ^ flip;
    Err err = OK;
    u8 number[24]; /* 16 at most; the slack keeps wide stores of the compiler inside. */
    switch (tag) {
    case TAG_NULL:
    case TAG_NULL_LAST: *out = cell_null(); break;
    case TAG_ZERO: *out = cell_int(0); break;
    case TAG_TEXT:
        *out = (Cell){.type = CELL_TEXT, .flags = CELL_TERMINATED};
        err = decode_bytes(start + 1, bytes - 2, flip, arena, out);
        break;
    case TAG_BLOB:
        *out = (Cell){.type = CELL_BLOB};
        err = decode_bytes(start + 1, bytes - 2, flip, arena, out);
        break;
    default:
        for (size_t i = 0; i < bytes; i++) {
            number[i] = start[i] ^ flip;
        }
        err = decode_number(number, bytes, out);
        break;
    }
    if (err != OK) return err;
    if (column->is_real && out->type == CELL_INT) *out = cell_real((f64)out->u.i);
    *p = start + bytes;
    return OK;
}

/* ---- what keys say ---- */

static bool
text_reproduces(const Cell *cell, const Collation *collation)
{
    CollationKind kind = collation == NULL ? COLLATION_BINARY : collation->kind;
    if (kind == COLLATION_BINARY || cell->bytes == 0) return true;
    if (kind == COLLATION_RTRIM) return cell->u.p[cell->bytes - 1] != ' ';
    for (u32 i = 0; i < cell->bytes; i++) {
        u8 c = cell->u.p[i];
        if (c == 0 || (c >= 'A' && c <= 'Z')) return false;
    }
    return true;
}

bool
key_reproduces(const Cell *cell, const KeyColumn *column)
{
    i64 whole;
    switch (cell->type) {
    case CELL_INT: return !column->is_real;
    case CELL_REAL:
        if (cell->u.r == 0.0 && __builtin_signbit(cell->u.r)) return false;
        return column->is_real || !real_is_int(cell->u.r, &whole);
    case CELL_TEXT: return text_reproduces(cell, column->collation);
    default: return true;
    }
}

size_t
key_prefix_end(u8 *prefix, size_t bytes)
{
    while (bytes > 0 && prefix[bytes - 1] == 0xFF) {
        bytes--;
    }
    if (bytes > 0) prefix[bytes - 1]++;
    return bytes;
}

bool
key_shorten(Buf *key)
{
    if (key->bytes <= KEY_BYTES_WHOLE) return false;
    ASSERT(key->capacity >= KEY_BYTES_LONG); /* Kept by append_done(). */
    u8 hash[SHA256_BYTES];
    sha256(key->p + KEY_BYTES_WHOLE, key->bytes - KEY_BYTES_WHOLE, hash);
    memcpy(key->p + KEY_BYTES_WHOLE, hash, KEY_HASH_BYTES);
    key->bytes = KEY_BYTES_LONG;
    return true;
}
