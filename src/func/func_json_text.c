/*
 * func_json_text.c -- JSONB into JSON text, plain and pretty; SQL values into JSON text; escapes.
 */
#include "func/func_json.h"
#include "value/number.h"

/* An array or object that is being written. */
typedef struct Level {
    u32 end, count;
    bool object;
} Level;

typedef struct Render {
    FuncCall *call;
    const JsonDoc *doc;
    Buf *out;
    Buf stack; /* Level */
    Slice indent;
    bool pretty;
    Err err;
} Render;

static void
put(Render *r, const void *p, size_t bytes)
{
    if (r->err == OK) r->err = buf_append(r->out, p, bytes);
}
static void
put_text(Render *r, const char *text)
{
    put(r, text, strlen(text));
}

static Err
malformed(FuncCall *call)
{
    return err_set(call->msg, ERR_SQL, "malformed JSON");
}

static void
fail(Render *r)
{
    if (r->err == OK) r->err = malformed(r->call);
}

/* ---- strings ---- */

/* Control characters as JSON escapes them. */
static Err
append_control(Buf *out, u8 c)
{
    static const char digits[] = "0123456789abcdef", letters[] = "btn?fr";
    u8 code[6] = {'\\', 'u', '0', '0', (u8)digits[c >> 4], (u8)digits[c & 15]};
    if (c >= '\b' && c <= '\r' && c != '\v') {
        code[1] = (u8)letters[c - '\b'];
        return buf_append(out, code, 2);
    }
    return buf_append(out, code, 6);
}

Err
func__json_append_string(Buf *out, Slice text)
{
    Err err = buf_append_byte(out, '"');
    const u8 *p = text.p, *end = p + text.bytes, *plain = p;
    for (; p < end && err == OK; p++) {
        if (func__json_is_plain_byte(*p) || *p == '\'') continue;
        u8 escaped[2] = {'\\', *p};
        err = buf_append(out, plain, (size_t)(p - plain));
        if (err == OK) err = *p <= 0x1F ? append_control(out, *p) : buf_append(out, escaped, 2);
        plain = p + 1;
    }
    if (err == OK) err = buf_append(out, plain, (size_t)(end - plain));
    return err != OK ? err : buf_append_byte(out, '"');
}

/* One escape of JSON5 as JSON; returns its length in the source, 0 if it is none. */
static size_t
put_escape5(Render *r, const u8 *p, size_t left)
{
    if (left < 2) return 0;
    switch (p[1]) {
    case '\'': put_text(r, "'"); return 2;
    case 'v': put_text(r, "\\u000b"); return 2;
    case '0': put_text(r, "\\u0000"); return 2;
    case '\n': return 2;
    case '\r': return left > 2 && p[2] == '\n' ? 3 : 2;
    case 'x':
        if (left < 4) return 0;
        put_text(r, "\\u00");
        put(r, p + 2, 2);
        return 4;
    case 0xE2: return left >= 4 && p[2] == 0x80 && (p[3] == 0xA8 || p[3] == 0xA9) ? 4 : 0;
    default: put(r, p, 2); return 2;
    }
}

static void
put_text5(Render *r, const u8 *p, size_t left)
{
    put_text(r, "\"");
    while (left > 0 && r->err == OK) {
        size_t bytes = 1;
        if (func__json_is_plain_byte(*p) || *p == '\'') {
            put(r, p, 1);
        } else if (*p == '"') {
            put_text(r, "\\\"");
        } else if (*p <= 0x1F) {
            r->err = append_control(r->out, *p);
        } else {
            bytes = put_escape5(r, p, left);
            if (bytes == 0) {
                fail(r);
                return;
            }
        }
        p += bytes;
        left -= bytes;
    }
    put_text(r, "\"");
}

/* ---- numbers ---- */

static void
put_hex(Render *r, Slice text)
{
    size_t i = 2;
    u64 value = 0;
    bool overflow = false;
    if (text.p[0] == '-') put_text(r, "-");
    if (text.p[0] == '-' || text.p[0] == '+') i++;
    for (; i < text.bytes; i++) {
        i32 digit = func__hex_digit(text.p[i]);
        if (digit < 0) {
            fail(r);
            return;
        }
        if (value >> 60 != 0) {
            overflow = true;
        } else {
            value = value << 4 | (u64)digit;
        }
    }
    if (overflow) {
        put_text(r, "9.0e999");
    } else if (r->err == OK) {
        r->err = buf_printf(r->out, "%llu", (unsigned long long)value);
    }
}

/* Zeros where JSON5 leaves out the digit before or behind a point. */
static void
put_float5(Render *r, Slice text)
{
    size_t i = 0;
    if (text.p[0] == '-') {
        put_text(r, "-");
        if (text.bytes == 1) {
            fail(r);
            return;
        }
        i = 1;
    }
    if (text.p[i] == '.') put_text(r, "0");
    for (; i < text.bytes; i++) {
        put(r, text.p + i, 1);
        bool digit = i + 1 < text.bytes && text.p[i + 1] >= '0' && text.p[i + 1] <= '9';
        if (text.p[i] == '.' && !digit) put_text(r, "0");
    }
}

/* ---- elements ---- */

static void
put_scalar(Render *r, JsonbType type, Slice payload)
{
    bool number = type >= JSONB_INT && type <= JSONB_FLOAT5;
    if (number && payload.bytes == 0) {
        fail(r);
        return;
    }
    switch (type) {
    case JSONB_NULL: put_text(r, "null"); break;
    case JSONB_TRUE: put_text(r, "true"); break;
    case JSONB_FALSE: put_text(r, "false"); break;
    case JSONB_INT:
    case JSONB_FLOAT: put(r, payload.p, payload.bytes); break;
    case JSONB_INT5: put_hex(r, payload); break;
    case JSONB_FLOAT5: put_float5(r, payload); break;
    case JSONB_TEXT:
    case JSONB_TEXTJ:
        put_text(r, "\"");
        put(r, payload.p, payload.bytes);
        put_text(r, "\"");
        break;
    case JSONB_TEXT5: put_text5(r, payload.p, payload.bytes); break;
    case JSONB_TEXTRAW:
        if (r->err == OK) r->err = func__json_append_string(r->out, payload);
        break;
    default: fail(r); break;
    }
}

static void
new_line(Render *r)
{
    if (!r->pretty) return;
    put_text(r, "\n");
    for (size_t i = r->stack.bytes / sizeof(Level); i > 0; i--) {
        put(r, r->indent.p, r->indent.bytes);
    }
}

/* Open an array or object; an empty one is written whole. */
static void
open_level(Render *r, u32 end, bool object, bool empty)
{
    Level level = {.end = end, .object = object};
    size_t depth = r->stack.bytes / sizeof(Level) + 1;
    put_text(r, object ? "{" : "[");
    if (depth > (size_t)JSON_DEPTH_MAX - (r->pretty && !empty)) {
        if (r->err == OK) r->err = err_set(r->call->msg, ERR_SQL, "JSON nested too deep");
        return;
    }
    if (empty) {
        put_text(r, object ? "}" : "]");
        return;
    }
    if (r->err == OK) r->err = buf_append(&r->stack, &level, sizeof(level));
    new_line(r);
}

/* Everything of the element at `at` that is not inside of it; returns where to go on. */
static u32
put_element(Render *r, u32 at)
{
    u32 payload, head = func__jsonb_head(r->doc, at, &payload);
    if (head == 0) {
        fail(r);
        return at;
    }
    JsonbType type = func__jsonb_type(r->doc, at);
    if (type == JSONB_ARRAY || type == JSONB_OBJECT) {
        open_level(r, at + head + payload, type == JSONB_OBJECT, payload == 0);
        return at + head;
    }
    put_scalar(r, type, SLICE(r->doc->p + at + head, payload));
    return at + head + payload;
}

static void
render(Render *r, u32 at)
{
    at = put_element(r, at);
    while (r->err == OK && r->stack.bytes > 0) {
        Level *level = (Level *)(void *)(r->stack.p + r->stack.bytes) - 1;
        if (at >= level->end) {
            bool object = level->object;
            if (at > level->end || (object && level->count % 2 != 0)) {
                fail(r);
                return;
            }
            r->stack.bytes -= sizeof(Level);
            new_line(r);
            put_text(r, object ? "}" : "]");
            continue;
        }
        bool value = level->object && level->count % 2 != 0;
        if (value) {
            put_text(r, r->pretty ? ": " : ":");
        } else if (level->count > 0) {
            put_text(r, ",");
            new_line(r);
        }
        level->count++;
        at = put_element(r, at);
    }
}

static Err
render_all(Render *r, u32 at)
{
    render(r, at);
    buf_free(&r->stack);
    return r->err;
}

Err
func__json_render(FuncCall *call, const JsonDoc *doc, u32 at, Buf *out)
{
    Render r = {.call = call, .doc = doc, .out = out};
    return render_all(&r, at);
}

Err
func__json_render_pretty(FuncCall *call, const JsonDoc *doc, Slice indent, Buf *out)
{
    Render r = {.call = call, .doc = doc, .out = out, .indent = indent, .pretty = true};
    return render_all(&r, 0);
}

Err
func__json_append_value(FuncCall *call, Buf *out, const Cell *cell)
{
    JsonDoc doc;
    bool ok;
    Slice bytes;
    Err err;
    switch (cell->type) {
    case CELL_NULL: return buf_append_text(out, "null");
    case CELL_INT:
    case CELL_REAL: return func_append_quoted(out, cell);
    case CELL_TEXT:
        bytes = SLICE(cell->u.p, cell->bytes);
        if (cell->subtype == JSON_SUBTYPE) return buf_append(out, bytes.p, bytes.bytes);
        return func__json_append_string(out, bytes);
    default: break;
    }
    err = cell_bytes(cell, call->arena, &bytes);
    if (err == OK) err = func__json_from_blob(bytes, &doc, &ok);
    if (err != OK) return err;
    if (!ok) return err_set(call->msg, ERR_SQL, "JSON cannot hold BLOB values");
    return func__json_render(call, &doc, 0, out);
}

/* ---- escapes ---- */

/* Bytes of escaped line ends at the start of `text`, which count for nothing. */
static size_t
skipped_bytes(Slice text)
{
    size_t i = 0;
    while (i + 1 < text.bytes && text.p[i] == '\\') {
        const u8 *p = text.p + i;
        size_t left = text.bytes - i;
        if (p[1] == '\n') {
            i += 2;
        } else if (p[1] == '\r') {
            i += left > 2 && p[2] == '\n' ? 3 : 2;
        } else if (left > 3 && p[1] == 0xE2 && p[2] == 0x80 && (p[3] == 0xA8 || p[3] == 0xA9)) {
            i += 4;
        } else {
            break;
        }
    }
    return i;
}

/* One character of at most four bytes. */
static size_t
read_character(Slice text, u32 *character_out)
{
    const u8 *p = text.p, *end = text.p + MIN_OF(text.bytes, 4);
    u32 c = *p++;
    if (c >= 0xC0) {
        c = c < 0xE0 ? c & 0x1F : c < 0xF0 ? c & 0x0F : c < 0xF8 ? c & 7 : c < 0xFC ? c & 3 : c & 1;
        if (text.p[0] >= 0xFE) c = 0;
        while (p < end && (*p & 0xC0) == 0x80) {
            c = c << 6 | (*p++ & 0x3Fu);
        }
    }
    *character_out = c;
    return (size_t)(p - text.p);
}

static u32
hex_value(const u8 *p, u32 count)
{
    u32 value = 0;
    for (u32 i = 0; i < count; i++) {
        i32 digit = func__hex_digit(p[i]);
        value = value << 4 | (digit < 0 ? 0 : (u32)digit);
    }
    return value;
}

static size_t
unescape_unicode(Slice text, u32 *character_out)
{
    const u8 *p = text.p;
    if (text.bytes < 6) {
        *character_out = JSON_BAD_CHARACTER;
        return text.bytes;
    }
    u32 high = hex_value(p + 2, 4);
    *character_out = high;
    if ((high & 0xFC00) != 0xD800 || text.bytes < 12 || p[6] != '\\' || p[7] != 'u') return 6;
    u32 low = hex_value(p + 8, 4);
    if ((low & 0xFC00) != 0xDC00) return 6;
    *character_out = ((high & 0x3FF) << 10) + (low & 0x3FF) + 0x10000;
    return 12;
}

/* An escaped line end: what follows it is the character. */
static size_t
unescape_line_end(Slice text, u32 *character_out)
{
    size_t skipped = skipped_bytes(text);
    Slice rest = SLICE(text.p + skipped, text.bytes - skipped);
    *character_out = skipped == 0 ? JSON_BAD_CHARACTER : 0;
    if (skipped == 0 || rest.bytes == 0) return text.bytes;
    /* No line end again: skipped_bytes took them all. */
    return skipped + (*rest.p == '\\' ? func__json_unescape(rest, character_out)
                                      : read_character(rest, character_out));
}

size_t
func__json_unescape(Slice text, u32 *character_out)
{
    static const char from[] = "bfnrtv'\"/\\", to[] = "\b\f\n\r\t\v'\"/\\";
    const u8 *p = text.p;
    *character_out = JSON_BAD_CHARACTER;
    if (text.bytes < 2) return text.bytes;
    const char *found = p[1] != 0 ? strchr(from, p[1]) : NULL;
    if (found != NULL) {
        *character_out = (u8)to[found - from];
        return 2;
    }
    switch (p[1]) {
    case 'u': return unescape_unicode(text, character_out);
    case '0':
        if (text.bytes == 2 || p[2] < '0' || p[2] > '9') *character_out = 0;
        return 2;
    case 'x':
        if (text.bytes < 4) return text.bytes;
        *character_out = hex_value(p + 2, 2);
        return 4;
    case 0xE2:
    case '\r':
    case '\n': return unescape_line_end(text, character_out);
    default: return 2;
    }
}

/* The next character of a label, 0 at its end; moves on. */
static u32
next_character(Slice *text, bool plain)
{
    u32 c;
    if (text->bytes == 0) return 0;
    size_t bytes = plain || *text->p != '\\' ? read_character(*text, &c)
                                             : func__json_unescape(*text, &c);
    *text = SLICE(text->p + bytes, text->bytes - bytes);
    return c;
}

bool
func__json_same_label(Slice a, bool a_plain, Slice b, bool b_plain)
{
    if (a_plain && b_plain) return slice_equal(a, b);
    for (;;) {
        u32 x = next_character(&a, a_plain), y = next_character(&b, b_plain);
        if (x != y) return false;
        if (x == 0) return true;
    }
}
