/*
 * func_jsonb.c -- elements of JSONB: heads, sizes, the strict check.
 */
#include "func/func_json.h"

void
func__json_free(JsonDoc *doc)
{
    buf_free(&doc->own);
    *doc = (JsonDoc){0};
}

Err
func__json_own(JsonDoc *doc)
{
    if (doc->own.p != NULL) return OK;
    Err err = buf_append(&doc->own, doc->p, doc->bytes);
    if (err == OK) doc->p = doc->own.p;
    return err;
}

/* Head size and payload size as written, without regard to where the document ends.  `left`: bytes
   that may be read. */
static u32
read_head(const u8 *p, size_t left, u32 *payload_bytes_out)
{
    *payload_bytes_out = 0;
    if (left == 0) return 0;
    u32 size = p[0] >> 4;
    if (size <= 11) {
        *payload_bytes_out = size;
        return 1;
    }
    u32 extra = 1u << (size - 12);
    if (left < 1 + (size_t)extra) return 0;
    u64 payload = 0;
    for (u32 i = 1; i <= extra; i++) {
        payload = payload << 8 | p[i];
    }
    if (payload > U32_MAX) return 0;
    *payload_bytes_out = (u32)payload;
    return 1 + extra;
}

u32
func__jsonb_head(const JsonDoc *doc, u32 at, u32 *payload_bytes_out)
{
    *payload_bytes_out = 0;
    if (at >= doc->bytes) return 0;
    u32 payload, head = read_head(doc->p + at, doc->bytes - at, &payload);
    if (head == 0 || (u64)at + head + payload > doc->bytes) return 0;
    *payload_bytes_out = payload;
    return head;
}

static u32
head_size(u32 payload_bytes)
{
    return payload_bytes <= 11 ? 1 : payload_bytes <= 0xFF ? 2 : payload_bytes <= 0xFFFF ? 3 : 5;
}

static void
put_head(u8 *p, JsonbType type, u32 payload_bytes)
{
    u32 head = head_size(payload_bytes);
    u32 size = head == 1 ? payload_bytes : head == 2 ? 12 : head == 3 ? 13 : 14;
    p[0] = (u8)(size << 4 | type);
    for (u32 i = 1; i < head; i++) {
        p[i] = (u8)(payload_bytes >> (8 * (head - 1 - i)));
    }
}

Err
func__jsonb_append(Buf *out, JsonbType type, u32 payload_bytes, const void *payload)
{
    u32 head = head_size(payload_bytes);
    Err err = buf_reserve(out, head + (payload != NULL ? (size_t)payload_bytes : 0));
    if (err != OK) return err;
    put_head(out->p + out->bytes, type, payload_bytes);
    out->bytes += head;
    return payload == NULL ? OK : buf_append(out, payload, payload_bytes);
}

i32
func__jsonb_set_size(Buf *own, u32 at, u32 payload_bytes)
{
    u8 *p = own->p + at;
    u32 ignored, old = read_head(p, own->bytes - at, &ignored), now = head_size(payload_bytes);
    ASSERT(old != 0);
    if (now != old) {
        ASSERT(own->capacity - own->bytes >= 8 || now < old);
        memmove(p + now, p + old, own->bytes - at - old);
        own->bytes = own->bytes - old + now;
    }
    put_head(p, (JsonbType)(p[0] & 15), payload_bytes);
    return (i32)now - (i32)old;
}

/* ---- the strict check ---- */

static bool
is_digit(u8 c)
{
    return c >= '0' && c <= '9';
}

/* Offset + 1 of the first mistake in a number's text, whose element begins at `at`. */
static u32
check_int(const u8 *z, u32 at, u32 start, u32 end)
{
    u32 i = start;
    if (end - start < 1) return at + 1;
    if (z[i] == '-') {
        i++;
        if (end - start < 2) return at + 1;
    }
    for (; i < end; i++) {
        if (!is_digit(z[i])) return i + 1;
    }
    return 0;
}

static u32
check_hex(const u8 *z, u32 at, u32 start, u32 end)
{
    u32 i = start;
    if (end - start < 3) return at + 1;
    if (z[i] == '-') {
        if (end - start < 4) return at + 1;
        i++;
    }
    if (z[i] != '0') return at + 1;
    if ((z[i + 1] | 0x20) != 'x') return i + 2;
    for (i += 2; i < end; i++) {
        if (func__hex_digit(z[i]) < 0) return i + 1;
    }
    return 0;
}

static u32
check_float(const u8 *z, u32 at, u32 start, u32 end, bool json5)
{
    u32 i = start;
    bool point = false, exponent = false;
    if (end - start < 2) return at + 1;
    if (z[i] == '-') {
        i++;
        if (end - start < 3) return at + 1;
    }
    if (z[i] == '.') {
        if (!json5 || i + 1 >= end || !is_digit(z[i + 1])) return i + 1;
        i += 2;
        point = true;
    } else if (z[i] == '0' && !json5) {
        if (i + 3 > end) return i + 1;
        if (z[i + 1] != '.' && (z[i + 1] | 0x20) != 'e') return i + 1;
        i++;
    }
    for (; i < end; i++) {
        if (is_digit(z[i])) continue;
        if (z[i] == '.') {
            if (point || exponent) return i + 1;
            if (!json5 && (i + 1 == end || !is_digit(z[i + 1]))) return i + 1;
            point = true;
        } else if ((z[i] | 0x20) == 'e') {
            if (exponent || i + 1 == end) return i + 1;
            if (z[i + 1] == '+' || z[i + 1] == '-') {
                i++;
                if (i + 1 == end) return i + 1;
            }
            exponent = true;
        } else {
            return i + 1;
        }
    }
    return point || exponent ? 0 : at + 1;
}

/* One escape in a string; returns its length, or 0 for a mistake. */
static u32
check_escape(const u8 *z, u32 i, u32 end, JsonbType type)
{
    if (i + 1 >= end) return 0;
    if (z[i + 1] != 0 && strchr("\"\\/bfnrt", z[i + 1]) != NULL) return 2;
    if (z[i + 1] == 'u') {
        if (i + 5 >= end) return 0;
        for (u32 k = 2; k < 6; k++) {
            if (func__hex_digit(z[i + k]) < 0) return 0;
        }
        return 2;
    }
    if (type != JSONB_TEXT5) return 0;
    u32 character;
    size_t bytes = func__json_unescape(SLICE(z + i, end - i), &character);
    return character == JSON_BAD_CHARACTER ? 0 : (u32)bytes;
}

static u32
check_text(const u8 *z, u32 start, u32 end, JsonbType type)
{
    for (u32 i = start; i < end;) {
        u8 c = z[i];
        u32 step = 1;
        if (func__json_is_plain_byte(c) || c == '\'') {
            /* Stands for itself. */
        } else if (type == JSONB_TEXT) {
            return i + 1;
        } else if (c == '"' || c <= 0x1F) {
            if (type == JSONB_TEXTJ) return i + 1;
        } else {
            step = check_escape(z, i, end, type);
            if (step == 0) return i + 1;
        }
        i += step;
    }
    return 0;
}

static u32
check_scalar(const JsonDoc *doc, u32 at, u32 head, u32 payload)
{
    JsonbType type = func__jsonb_type(doc, at);
    u32 start = at + head, end = start + payload;
    switch (type) {
    case JSONB_NULL:
    case JSONB_TRUE:
    case JSONB_FALSE: return head + payload == 1 ? 0 : at + 1;
    case JSONB_INT: return check_int(doc->p, at, start, end);
    case JSONB_INT5: return check_hex(doc->p, at, start, end);
    case JSONB_FLOAT:
    case JSONB_FLOAT5: return check_float(doc->p, at, start, end, type == JSONB_FLOAT5);
    case JSONB_TEXT:
    case JSONB_TEXTJ:
    case JSONB_TEXT5: return check_text(doc->p, start, end, type);
    case JSONB_TEXTRAW: return 0;
    default: return at + 1;
    }
}

typedef struct CheckLevel {
    u32 end, count;
    bool object;
} CheckLevel;

/* The elements of the levels on `stack`, deepest first. */
static Err
check_levels(const JsonDoc *doc, Buf *stack, u32 at, u32 *mistake_out)
{
    while (stack->bytes > 0) {
        CheckLevel *level = (CheckLevel *)(void *)(stack->p + stack->bytes) - 1;
        if (at == level->end) {
            if (level->object && level->count % 2 != 0) break;
            stack->bytes -= sizeof(CheckLevel);
            continue;
        }
        u32 payload, head = func__jsonb_head(doc, at, &payload);
        if (head == 0 || at + head + payload > level->end) break;
        JsonbType type = func__jsonb_type(doc, at);
        if (level->object && level->count % 2 == 0 && !func__jsonb_is_text(type)) break;
        level->count++;
        if (stack->bytes / sizeof(CheckLevel) >= JSON_DEPTH_MAX) break;
        if (type == JSONB_ARRAY || type == JSONB_OBJECT) {
            CheckLevel inner = {.end = at + head + payload, .object = type == JSONB_OBJECT};
            Err err = buf_append(stack, &inner, sizeof(inner));
            if (err != OK) return err;
            at += head;
            continue;
        }
        *mistake_out = check_scalar(doc, at, head, payload);
        if (*mistake_out != 0) return OK;
        at += head + payload;
    }
    *mistake_out = stack->bytes > 0 ? at + 1 : 0;
    return OK;
}

Err
func__jsonb_check(const JsonDoc *doc, u32 *mistake_out)
{
    u32 payload, head = func__jsonb_head(doc, 0, &payload);
    *mistake_out = 1;
    if (head == 0 || head + payload != doc->bytes) return OK;
    JsonbType type = func__jsonb_type(doc, 0);
    if (type != JSONB_ARRAY && type != JSONB_OBJECT) {
        *mistake_out = check_scalar(doc, 0, head, payload);
        return OK;
    }
    Buf stack = {0};
    CheckLevel root = {.end = doc->bytes, .object = type == JSONB_OBJECT};
    Err err = buf_append(&stack, &root, sizeof(root));
    if (err == OK) err = check_levels(doc, &stack, head, mistake_out);
    buf_free(&stack);
    return err;
}

Err
func__json_from_blob(Slice blob, JsonDoc *doc, bool *ok_out)
{
    *doc = (JsonDoc){.p = blob.p, .bytes = (u32)blob.bytes};
    *ok_out = false;
    if (blob.bytes == 0 || (blob.p[0] & 15) > JSONB_OBJECT) return OK;
    u8 c = blob.p[0];
    u32 payload, head = func__jsonb_head(doc, 0, &payload);
    if (head == 0 || head + payload != doc->bytes) return OK;
    if (func__jsonb_type(doc, 0) <= JSONB_FALSE && payload != 0) return OK;
    *ok_out = true;
    /* These could as well be the first byte of a short JSON text: look closer. */
    if (payload > 7 || (c != '{' && c != '[' && !is_digit(c))) return OK;
    u32 mistake;
    Err err = func__jsonb_check(doc, &mistake);
    *ok_out = mistake == 0;
    return err;
}
