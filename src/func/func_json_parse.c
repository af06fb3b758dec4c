/*
 * func_json_parse.c -- JSON and JSON5 text into JSONB.
 *
 * One token at a time; open arrays and objects are levels on a stack of their own.  A head is
 * written with room for the largest size its container can have, and shrunk when it closes.
 * `error_at` follows SQLite's parser, because json_error_position() shows it.
 */
#include "func/func_json.h"

typedef enum Token {
    TOKEN_VALUE, /* A whole scalar was appended; `at` is behind it. */
    TOKEN_ARRAY,
    TOKEN_OBJECT, /* `at` is the bracket. */
    TOKEN_ARRAY_END,
    TOKEN_OBJECT_END,
    TOKEN_COMMA,
    TOKEN_COLON, /* `at` is the character, and so is error_at. */
    TOKEN_END,
    TOKEN_ERROR /* error_at says where. */
} Token;

typedef struct Level {
    u32 head, payload; /* Where they begin in the output. */
    bool object;
    bool between; /* A member stands complete: comma or bracket is next. */
    bool refused; /* It stands where none may: read for its own mistakes, then one at refuse_at. */
    u32 refuse_at;
} Level;

typedef struct Parser {
    const u8 *z;
    u32 bytes;
    Buf *out;
    Buf stack; /* Level */
    u32 at;    /* Where the next token is looked for. */
    u32 error_at;
    bool json5;
    Err err;
} Parser;

static inline u8
peek(const Parser *p, u32 at)
{
    return at < p->bytes ? p->z[at] : 0;
}

bool
func__json_is_plain_byte(u8 c)
{
    return c >= 0x20 && c != '"' && c != '\'' && c != '\\';
}

static bool
is_blank(u8 c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
static bool
is_digit(u8 c)
{
    return c >= '0' && c <= '9';
}
static bool
is_alnum(u8 c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}
/* Letters of a JSON5 name without quotes. */
static bool
is_name_start(u8 c)
{
    return (is_alnum(c) && !is_digit(c)) || c == '_' || c == '$' || c >= 0x80;
}

static bool
is_hex(const Parser *p, u32 at, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        if (func__hex_digit(peek(p, at + i)) < 0) return false;
    }
    return true;
}

/* U+2028 or U+2029 */
static bool
is_line_end3(const Parser *p, u32 at)
{
    return peek(p, at) == 0xE2 && peek(p, at + 1) == 0x80 &&
           (peek(p, at + 2) == 0xA8 || peek(p, at + 2) == 0xA9);
}

/* ---- blanks ---- */

/* Bytes of the comment at `at`, 0 if there is none. */
static u32
comment_bytes(const Parser *p, u32 at)
{
    u32 i;
    if (peek(p, at + 1) == '*' && peek(p, at + 2) != 0) {
        for (i = at + 3; peek(p, i) != '/' || peek(p, i - 1) != '*'; i++) {
            if (peek(p, i) == 0) return 0;
        }
        return i + 1 - at;
    }
    if (peek(p, at + 1) != '/') return 0;
    for (i = at + 2; peek(p, i) != 0; i++) {
        if (peek(p, i) == '\n' || peek(p, i) == '\r') break;
        if (is_line_end3(p, i)) {
            i += 2;
            break;
        }
    }
    return i + (peek(p, i) != 0) - at;
}

/* Bytes of one JSON5 blank or comment. */
static u32
blank_bytes(const Parser *p, u32 at)
{
    u8 a = peek(p, at), b = peek(p, at + 1), c = peek(p, at + 2);
    if (is_blank(a) || a == '\v' || a == '\f') return 1;
    switch (a) {
    case '/': return comment_bytes(p, at);
    case 0xC2: return b == 0xA0 ? 2 : 0;
    case 0xE1: return b == 0x9A && c == 0x80 ? 3 : 0;
    case 0xE2:
        if (b == 0x81) return c == 0x9F ? 3 : 0;
        if (b != 0x80 || c < 0x80) return 0;
        return c <= 0x8A || c == 0xA8 || c == 0xA9 || c == 0xAF ? 3 : 0;
    case 0xE3: return b == 0x80 && c == 0x80 ? 3 : 0;
    case 0xEF: return b == 0xBB && c == 0xBF ? 3 : 0;
    default: return 0;
    }
}

static u32
blanks_bytes(const Parser *p, u32 at)
{
    u32 from = at, bytes;
    while ((bytes = blank_bytes(p, at)) != 0) {
        at += bytes;
    }
    return at - from;
}

/* ---- scalars ---- */

static Token
fail(Parser *p, u32 at)
{
    p->error_at = at;
    return TOKEN_ERROR;
}

static Token
emit(Parser *p, JsonbType type, u32 start, u32 end, u32 next)
{
    p->err = func__jsonb_append(p->out, type, end - start, p->z + start);
    p->at = next;
    return p->err == OK ? TOKEN_VALUE : TOKEN_ERROR;
}

static Token
emit_literal(Parser *p, JsonbType type, const char *text, u32 next)
{
    p->err = func__jsonb_append(p->out, type, (u32)strlen(text), text);
    p->at = next;
    return p->err == OK ? TOKEN_VALUE : TOKEN_ERROR;
}

/* The character behind a backslash at `at`: true if it is an escape; moves *at to its last byte
   that the caller must skip. */
static bool
take_escape(Parser *p, u32 *at, JsonbType *type)
{
    u8 c = peek(p, *at);
    bool json = (c != 0 && strchr("\"\\/bfnrt", c) != NULL) || (c == 'u' && is_hex(p, *at + 1, 4));
    if (json) {
        if (*type == JSONB_TEXT) *type = JSONB_TEXTJ;
        return true;
    }
    bool more = c == '\'' || c == 'v' || c == '\n' || c == '\r' || is_line_end3(p, *at) ||
                (c == '0' && !is_digit(peek(p, *at + 1))) || (c == 'x' && is_hex(p, *at + 1, 2));
    if (!more) return false;
    if (c == '\r' && peek(p, *at + 1) == '\n') ++*at;
    *type = JSONB_TEXT5;
    p->json5 = true;
    return true;
}

static Token
read_string(Parser *p, u32 start)
{
    u8 quote = peek(p, start);
    JsonbType type = JSONB_TEXT;
    if (quote == '\'') p->json5 = true;
    u32 i = start + 1;
    for (;; i++) {
        u8 c = peek(p, i);
        if (func__json_is_plain_byte(c)) continue;
        if (c == quote) break;
        if (c == '\\') {
            i++;
            if (!take_escape(p, &i, &type)) return fail(p, i);
        } else if (c == 0) {
            return fail(p, i);
        } else if (c <= 0x1F) {
            type = JSONB_TEXT5; /* JSON5 lets control characters stand. */
            p->json5 = true;
        } else if (c == '"') {
            type = JSONB_TEXT5;
        }
    }
    return emit(p, type, start + 1, i, i + 1);
}

static bool
word_at(const Parser *p, u32 at, const char *word)
{
    u32 bytes = (u32)strlen(word);
    return p->bytes - MIN_OF(at, p->bytes) >= bytes &&
           slice_equal_nocase(SLICE(p->z + at, bytes), SLICE(word, bytes));
}

/* What a number's text is, found on the way. */
typedef struct NumberShape {
    bool json5, real;
} NumberShape;

static Token
emit_number(Parser *p, u32 start, u32 end, NumberShape shape)
{
    static const JsonbType types[2][2] = {{JSONB_INT, JSONB_INT5}, {JSONB_FLOAT, JSONB_FLOAT5}};
    if (shape.json5) p->json5 = true;
    if (peek(p, start) == '+') start++;
    return emit(p, types[shape.real][shape.json5], start, end, end);
}

/* A point at i - 1 must have a digit before it, which is JSON5 then. */
static bool
bare_point(const Parser *p, u32 start, u32 i, NumberShape *shape)
{
    if (peek(p, i - 1) >= '0') return true;
    if (i < start + 2 || !is_digit(peek(p, i - 2))) return false;
    shape->json5 = true;
    return true;
}

/* Digits, point and exponent from start + 1 on. */
static Token
read_digits(Parser *p, u32 start, NumberShape shape)
{
    bool exponent = false;
    u32 i = start + 1;
    for (;; i++) {
        u8 c = peek(p, i);
        if (is_digit(c)) continue;
        if (c == '.') {
            if (shape.real) return fail(p, i);
            shape.real = true;
            continue;
        }
        if ((c | 0x20) != 'e') break;
        if (!bare_point(p, start, i, &shape) || exponent) return fail(p, i);
        shape.real = exponent = true;
        if (peek(p, i + 1) == '+' || peek(p, i + 1) == '-') i++;
        if (!is_digit(peek(p, i + 1))) return fail(p, i);
    }
    if (!bare_point(p, start, i, &shape)) return fail(p, i);
    return emit_number(p, start, i, shape);
}

static Token
read_hex(Parser *p, u32 start, u32 digits)
{
    u32 end = digits;
    while (func__hex_digit(peek(p, end)) >= 0) {
        end++;
    }
    return emit_number(p, start, end, (NumberShape){.json5 = true});
}

static bool
is_hex_prefix(const Parser *p, u32 at)
{
    return peek(p, at) == '0' && (peek(p, at + 1) | 0x20) == 'x' &&
           func__hex_digit(peek(p, at + 2)) >= 0;
}

static Token
read_number(Parser *p, u32 start)
{
    u8 c = peek(p, start), next = peek(p, start + 1);
    NumberShape shape = {0};
    bool sign = c == '+' || c == '-';
    if (c == '+') p->json5 = true;
    if (c == '.') {
        if (!is_digit(next)) return fail(p, start);
        return read_digits(p, start, (NumberShape){.json5 = true, .real = true});
    }
    if (sign && !is_digit(next)) {
        if (word_at(p, start + 1, "inf")) {
            p->json5 = true;
            u32 end = start + (word_at(p, start + 4, "inity") ? 9 : 4);
            return emit_literal(p, JSONB_FLOAT, c == '-' ? "-9e999" : "9e999", end);
        }
        if (next != '.') return fail(p, start);
        shape.json5 = true;
        return read_digits(p, start, shape);
    }
    u32 first = start + sign;
    if (is_hex_prefix(p, first)) return read_hex(p, start, first + 2);
    if (peek(p, first) == '0' && is_digit(peek(p, first + 1))) return fail(p, start + 1);
    return read_digits(p, start, shape);
}

static Token
read_word(Parser *p, u32 at)
{
    static const struct {
        const char *text, *payload;
        JsonbType type;
        bool exact; /* RFC 8259: small letters. */
    } words[] = {
        {"null", "", JSONB_NULL, true},
        {"true", "", JSONB_TRUE, true},
        {"false", "", JSONB_FALSE, true},
        {"inf", "9e999", JSONB_FLOAT, false},
        {"infinity", "9e999", JSONB_FLOAT, false},
        {"nan", "", JSONB_NULL, false},
        {"qnan", "", JSONB_NULL, false},
        {"snan", "", JSONB_NULL, false},
    };
    for (u32 i = 0; i < COUNT_OF(words); i++) {
        u32 bytes = (u32)strlen(words[i].text);
        if (!word_at(p, at, words[i].text) || is_alnum(peek(p, at + bytes))) continue;
        if (words[i].exact && memcmp(p->z + at, words[i].text, bytes) != 0) continue;
        if (!words[i].exact) p->json5 = true;
        return emit_literal(p, words[i].type, words[i].payload, at + bytes);
    }
    return fail(p, at);
}

static Token
mark(Parser *p, Token token, u32 at)
{
    p->at = p->error_at = at;
    return token;
}

/* The next token at or behind `at`. */
static Token
next_token(Parser *p, u32 at)
{
    for (;;) {
        u8 c = peek(p, at);
        switch (c) {
        case '{': p->at = at; return TOKEN_OBJECT;
        case '[': p->at = at; return TOKEN_ARRAY;
        case '}': return mark(p, TOKEN_OBJECT_END, at);
        case ']': return mark(p, TOKEN_ARRAY_END, at);
        case ',': return mark(p, TOKEN_COMMA, at);
        case ':': return mark(p, TOKEN_COLON, at);
        case '"':
        case '\'': return read_string(p, at);
        case 0: return TOKEN_END;
        default: break;
        }
        if (c == '+' || c == '-' || c == '.' || is_digit(c)) return read_number(p, at);
        if (is_blank(c)) {
            at++;
            continue;
        }
        u32 bytes = blanks_bytes(p, at);
        if (bytes == 0) return read_word(p, at);
        p->json5 = true;
        at += bytes;
    }
}

/* ---- structure ---- */

static Level *
top_level(Parser *p)
{
    return (Level *)(void *)(p->stack.p + p->stack.bytes) - 1;
}

/* Open the array or object whose bracket is at p->at. */
static bool
open_level(Parser *p, bool object)
{
    u32 at = p->at;
    Level level = {.head = (u32)p->out->bytes, .object = object};
    if (p->stack.bytes / sizeof(Level) >= JSON_DEPTH_MAX) {
        (void)fail(p, at);
        return false;
    }
    p->err = func__jsonb_append(p->out, object ? JSONB_OBJECT : JSONB_ARRAY, p->bytes - at, NULL);
    level.payload = (u32)p->out->bytes;
    if (p->err == OK) p->err = buf_append(&p->stack, &level, sizeof(level));
    p->at = at + 1;
    return p->err == OK;
}

/* Close the innermost one, whose bracket is at p->at. */
static bool
close_level(Parser *p)
{
    Level level = *top_level(p);
    p->stack.bytes -= sizeof(Level);
    (void)func__jsonb_set_size(p->out, level.head, (u32)p->out->bytes - level.payload);
    p->at++;
    if (p->stack.bytes > 0) top_level(p)->between = true;
    if (level.refused) p->error_at = level.refuse_at;
    return !level.refused;
}

/* An array or object where none may stand. */
static bool
open_refused(Parser *p, Token token, u32 refuse_at)
{
    if (!open_level(p, token == TOKEN_OBJECT)) return false;
    top_level(p)->refused = true;
    top_level(p)->refuse_at = refuse_at;
    return true;
}

/* The token must be a value, or the beginning of one. */
static bool
take_value(Parser *p, Token token, u32 at)
{
    Level *level = p->stack.bytes > 0 ? top_level(p) : NULL;
    if (token == TOKEN_ARRAY || token == TOKEN_OBJECT) return open_level(p, token == TOKEN_OBJECT);
    if (token == TOKEN_VALUE) {
        if (level != NULL) level->between = true;
        return true;
    }
    if (token != TOKEN_ERROR && level != NULL) p->error_at = at;
    return false;
}

/* A value where one must stand; false on a mistake. */
static bool
read_value(Parser *p)
{
    u32 at = p->at;
    return take_value(p, next_token(p, at), at);
}

/* A label without quotes at `at`. */
static bool
read_name(Parser *p, u32 at)
{
    JsonbType type = JSONB_TEXT;
    u32 i = at;
    for (;; i++) {
        u8 c = peek(p, i);
        bool escape = c == '\\' && peek(p, i + 1) == 'u' && is_hex(p, i + 2, 4);
        bool letter = is_name_start(c) || (i > at && is_digit(c));
        if (escape) type = JSONB_TEXTJ;
        if (!escape && (!letter || (i > at && blank_bytes(p, i) != 0))) break;
    }
    if (i == at) return false;
    p->json5 = true;
    return emit(p, type, at, i, i) == TOKEN_VALUE;
}

static void
skip_blanks(Parser *p)
{
    while (is_blank(peek(p, p->at))) {
        p->at++;
    }
}

/* A label, in any form; false: a mistake. */
static bool
finish_label(Parser *p, Token token, u32 at, u32 element)
{
    if (token != TOKEN_VALUE) {
        if (p->err != OK) return false;
        u32 start = at + blanks_bytes(p, at);
        if (read_name(p, start)) return true;
        if (token != TOKEN_ERROR) p->error_at = start;
        return false;
    }
    if (func__jsonb_is_text((JsonbType)(p->out->p[element] & 15))) return true;
    p->error_at = at;
    return false;
}

/* One member of an object, up to where its value ends or goes inside; or the object's end. */
static bool
read_pair(Parser *p)
{
    u32 at = p->at, element = (u32)p->out->bytes;
    Token token = next_token(p, at);
    if (token == TOKEN_OBJECT_END) {
        if (p->out->bytes != top_level(p)->payload) p->json5 = true; /* A comma before it. */
        return close_level(p);
    }
    if (token == TOKEN_ARRAY || token == TOKEN_OBJECT) return open_refused(p, token, at);
    if (!finish_label(p, token, at, element)) return false;
    skip_blanks(p);
    at = p->at;
    token = peek(p, at) == ':' ? TOKEN_COLON : next_token(p, at);
    if (token == TOKEN_ARRAY || token == TOKEN_OBJECT) return open_refused(p, token, at);
    if (token != TOKEN_COLON) {
        if (token != TOKEN_ERROR) p->error_at = at;
        return false;
    }
    p->at++;
    return read_value(p);
}

/* One element of an array, or its end. */
static bool
read_element(Parser *p)
{
    u32 at = p->at;
    Level *level = top_level(p);
    Token token = next_token(p, at);
    if (token == TOKEN_ARRAY_END) {
        if (p->out->bytes != level->payload) p->json5 = true;
        return close_level(p);
    }
    return take_value(p, token, at);
}

/* Behind a member: a comma or the closing bracket. */
static bool
read_separator(Parser *p, Level *level)
{
    Token end = level->object ? TOKEN_OBJECT_END : TOKEN_ARRAY_END, token;
    skip_blanks(p);
    u32 at = p->at;
    u8 c = peek(p, at);
    /* Found at once they leave error_at alone, as in SQLite. */
    if (c == ',') {
        token = TOKEN_COMMA;
    } else {
        token = c == (level->object ? '}' : ']') ? end : next_token(p, at);
    }
    if (token == end) return close_level(p);
    if (token == TOKEN_COMMA) {
        level->between = false;
        p->at++;
        return true;
    }
    p->error_at = at;
    return false;
}

/* One step inside the innermost array or object. */
static bool
read_member(Parser *p)
{
    Level *level = top_level(p);
    if (level->between) return read_separator(p, level);
    return level->object ? read_pair(p) : read_element(p);
}

Err
func__json_parse(Slice text, JsonDoc *doc, bool *ok_out)
{
    text = func__until_nul(text);
    *doc = (JsonDoc){0};
    Parser p = {.z = text.p, .bytes = (u32)text.bytes, .out = &doc->own};
    /* Room for a head that grows when it is closed. */
    p.err = buf_reserve(p.out, text.bytes + 16);
    bool ok = p.err == OK && read_value(&p);
    while (ok && p.stack.bytes > 0) {
        ok = read_member(&p);
    }
    if (ok) {
        skip_blanks(&p);
        u32 more = blanks_bytes(&p, p.at);
        if (more > 0) p.json5 = true;
        ok = peek(&p, p.at + more) == 0;
    }
    buf_free(&p.stack);
    *ok_out = ok;
    if (!ok) {
        buf_free(&doc->own);
        *doc = (JsonDoc){.error_at = p.error_at};
        return p.err;
    }
    doc->p = doc->own.p;
    doc->bytes = (u32)doc->own.bytes;
    doc->json5 = p.json5;
    return OK;
}
