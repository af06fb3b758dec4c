/*
 * json.c -- a strict JSON reader into an arena tree.
 *
 * The reader keeps its place in the tree by a chain of open arrays and objects (Open), so depth
 * costs memory, never stack.  Invariant: `open` is the innermost one, and its `last` is the member
 * read last.
 */
#include "value/json.h"

#include "value/number.h"

#define DEPTH_DEFAULT 1000

/* An array or object that is being read. */
typedef struct Open Open;
struct Open {
    Open *outer;
    JsonNode *node, *last;
};

typedef struct Reader {
    const u8 *start, *p, *end;
    Arena *arena;
    Open *open, *spare; /* `spare`: closed ones, used again. */
    JsonError *error;
    bool copy_text, mend;
    u32 depth, depth_max;
    u32 nodes, nodes_max;
} Reader;

static Err
fail(Reader *reader, Err err, const u8 *at, const char *what)
{
    reader->error->offset = (size_t)(at - reader->start);
    reader->error->what = what;
    return err;
}

/* A mistake at `at`; at the end of the text it is called that. */
static Err
bad(Reader *reader, const u8 *at, const char *what)
{
    return fail(reader, ERR_SQL, at, at >= reader->end ? "unexpected end" : what);
}

static void
skip_blanks(Reader *reader)
{
    while (reader->p < reader->end &&
           (*reader->p == ' ' || *reader->p == '\n' || *reader->p == '\r' || *reader->p == '\t')) {
        reader->p++;
    }
}

static bool
next_is(const Reader *reader, u8 c)
{
    return reader->p < reader->end && *reader->p == c;
}

/* ---- strings ---- */

static i32
hex4(const u8 *p, const u8 *end)
{
    if (end - p < 4) return -1;
    i32 v = 0;
    for (u32 i = 0; i < 4; i++) {
        u8 c = p[i];
        i32 digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return -1;
        v = v << 4 | digit;
    }
    return v;
}

/* The escape at *p (behind the backslash), as UTF-8 at `to`; returns where `to` ends, or NULL. */
static u8 *
read_escape(const u8 **p, const u8 *end, bool mend, u8 *to)
{
    static const char from[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
    if (*p >= end) return NULL;
    u8 c = *(*p)++;
    const char *found = c != 0 ? strchr(from, c) : NULL;
    if (found != NULL) {
        *to = (u8)plain[found - from];
        return to + 1;
    }
    if (c != 'u') return NULL;
    i32 unit = hex4(*p, end);
    if (unit < 0) return NULL;
    *p += 4;
    if (unit >= 0xD800 && unit <= 0xDFFF) {
        i32 low = -1;
        if (unit < 0xDC00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u')
            low = hex4(*p + 2, end);
        bool whole = low >= 0xDC00 && low <= 0xDFFF;
        if (!whole && !mend) return NULL;
        if (whole) *p += 6;
        unit = whole ? 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00) : 0xFFFD;
    }
    return to + utf8_put(to, (u32)unit);
}

/* Find the closing quote of the string whose first byte is at p; NULL with the error set. */
static const u8 *
find_quote(Reader *reader, const u8 *p, bool *escapes_out)
{
    for (; p < reader->end && *p != '"'; p++) {
        if (*p < 0x20) {
            (void)bad(reader, p, "control character in string");
            return NULL;
        }
        if (*p == '\\') {
            *escapes_out = true;
            if (++p == reader->end) break;
        }
    }
    if (p >= reader->end) {
        (void)bad(reader, reader->end, "");
        return NULL;
    }
    return p;
}

static Err
read_string(Reader *reader, Slice *text_out)
{
    const u8 *start = reader->p + 1;
    bool escapes = false;
    const u8 *quote = find_quote(reader, start, &escapes);
    if (quote == NULL) return ERR_SQL;
    size_t bytes = (size_t)(quote - start);
    if (!utf8_valid(start, bytes)) return bad(reader, start, "string is not UTF-8");
    reader->p = quote + 1;
    if (!escapes && !reader->copy_text) {
        *text_out = SLICE(start, bytes);
        return OK;
    }
    u8 *copy = arena_bytes(reader->arena, bytes + 1);
    if (copy == NULL) return ERR_NOMEM;
    u8 *to = copy;
    for (const u8 *p = start; p < quote;) {
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        const u8 *escape = p++;
        to = read_escape(&p, quote, reader->mend, to);
        if (to == NULL) return bad(reader, escape, "bad escape in string");
    }
    *to = 0;
    *text_out = SLICE(copy, (size_t)(to - copy));
    return OK;
}

/* ---- numbers and words ---- */

static const u8 *
skip_digits(const u8 *p, const u8 *end)
{
    while (p < end && *p >= '0' && *p <= '9') {
        p++;
    }
    return p;
}

static Err
read_number(Reader *reader, JsonNode *node)
{
    const u8 *start = reader->p, *end = reader->end, *p = start;
    if (*p == '-') p++;
    const u8 *digits = p;
    p = skip_digits(p, end);
    if (p == digits) return bad(reader, p, "number without digits");
    if (*digits == '0' && p > digits + 1) return bad(reader, digits, "number with leading zero");
    if (p < end && *p == '.') {
        const u8 *fraction = ++p;
        p = skip_digits(p, end);
        if (p == fraction) return bad(reader, p, "number without digits after the point");
    }
    if (p < end && (*p | 0x20) == 'e') {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        const u8 *exponent = p;
        p = skip_digits(p, end);
        if (p == exponent) return bad(reader, p, "number without digits in the exponent");
    }
    NumberScan scan = number_scan(SLICE(start, (size_t)(p - start)));
    reader->p = p;
    node->type = scan.kind == NUMBER_INT ? JSON_INT : JSON_REAL;
    if (scan.kind == NUMBER_INT) {
        node->u.i = scan.i;
    } else {
        node->u.r = scan.r;
    }
    return OK;
}

static Err
read_word(Reader *reader, JsonNode *node)
{
    static const struct {
        Slice text;
        u8 type;
    } words[] = {{{(const u8 *)"null", 4}, JSON_NULL},
                 {{(const u8 *)"true", 4}, JSON_TRUE},
                 {{(const u8 *)"false", 5}, JSON_FALSE}};
    for (u32 i = 0; i < COUNT_OF(words); i++) {
        Slice word = words[i].text;
        if ((size_t)(reader->end - reader->p) < word.bytes) continue;
        if (memcmp(reader->p, word.p, word.bytes) != 0) continue;
        node->type = words[i].type;
        reader->p += word.bytes;
        return OK;
    }
    return bad(reader, reader->p, "unexpected character");
}

/* ---- structure ---- */

static Err
open_push(Reader *reader, JsonNode *node)
{
    if (reader->depth >= reader->depth_max) {
        return fail(reader, ERR_LIMIT, reader->p, "nested too deep");
    }
    Open *open = reader->spare;
    if (open != NULL) {
        reader->spare = open->outer;
    } else {
        open = ARENA_NEW(reader->arena, Open);
        if (open == NULL) return ERR_NOMEM;
    }
    *open = (Open){.outer = reader->open, .node = node};
    reader->open = open;
    reader->depth++;
    reader->p++;
    return OK;
}

static void
open_pop(Reader *reader)
{
    Open *open = reader->open;
    reader->open = open->outer;
    open->outer = reader->spare;
    reader->spare = open;
    reader->depth--;
    reader->p++;
}

/* Read one value or the opening of one into a new node. */
static Err
read_value(Reader *reader, JsonNode **node_out)
{
    if (reader->nodes_max != 0 && reader->nodes >= reader->nodes_max) {
        return fail(reader, ERR_LIMIT, reader->p, "too many values");
    }
    reader->nodes++;
    JsonNode *node = ARENA_NEW(reader->arena, JsonNode);
    if (node == NULL) return ERR_NOMEM;
    *node_out = node;
    node->offset = (u32)(reader->p - reader->start);
    if (reader->p >= reader->end) return bad(reader, reader->p, "");
    switch (*reader->p) {
    case '{': node->type = JSON_OBJECT; return open_push(reader, node);
    case '[': node->type = JSON_ARRAY; return open_push(reader, node);
    case '"': node->type = JSON_TEXT; return read_string(reader, &node->u.text);
    case '-': return read_number(reader, node);
    default:
        if (*reader->p >= '0' && *reader->p <= '9') return read_number(reader, node);
        return read_word(reader, node);
    }
}

/* Read the next member of the innermost array or object, with its comma and key. */
static Err
read_member(Reader *reader)
{
    Open *open = reader->open;
    Slice key = SLICE_NONE;
    if (open->last != NULL) {
        if (!next_is(reader, ',')) return bad(reader, reader->p, "comma expected");
        reader->p++;
        skip_blanks(reader);
    }
    if (open->node->type == JSON_OBJECT) {
        if (!next_is(reader, '"')) return bad(reader, reader->p, "member name expected");
        Err err = read_string(reader, &key);
        if (err != OK) return err;
        skip_blanks(reader);
        if (!next_is(reader, ':')) return bad(reader, reader->p, "colon expected");
        reader->p++;
        skip_blanks(reader);
    }
    JsonNode *node = NULL;
    Err err = read_value(reader, &node);
    if (err != OK) return err;
    node->key = key;
    if (open->last == NULL) {
        open->node->u.first = node;
    } else {
        open->last->next = node;
    }
    open->last = node;
    open->node->count++;
    return OK;
}

Err
json_parse(Slice text, const JsonLimits *limits, bool copy_text, Arena *arena, JsonNode **root_out,
           JsonError *error_out)
{
    JsonError ignored;
    Reader reader = {.start = text.p,
                     .p = text.p,
                     .end = text.p + text.bytes,
                     .arena = arena,
                     .error = error_out != NULL ? error_out : &ignored,
                     .copy_text = copy_text,
                     .depth_max = DEPTH_DEFAULT};
    u64 bytes_max = U32_MAX;
    *root_out = NULL;
    *reader.error = (JsonError){0, "out of memory"};
    if (limits != NULL) {
        if (limits->depth_max != 0) reader.depth_max = limits->depth_max;
        if (limits->bytes_max != 0) bytes_max = MIN_OF(limits->bytes_max, bytes_max);
        reader.nodes_max = limits->nodes_max;
        reader.mend = limits->mend;
    }
    if (text.bytes > bytes_max) return fail(&reader, ERR_LIMIT, text.p, "text too long");

    JsonNode *root = NULL;
    skip_blanks(&reader);
    Err err = read_value(&reader, &root);
    while (err == OK && reader.open != NULL) {
        skip_blanks(&reader);
        if (next_is(&reader, reader.open->node->type == JSON_OBJECT ? '}' : ']')) {
            open_pop(&reader);
        } else {
            err = read_member(&reader);
        }
    }
    if (err != OK) return err;
    skip_blanks(&reader);
    if (reader.p < reader.end) return bad(&reader, reader.p, "text after the value");
    *reader.error = (JsonError){0, NULL};
    *root_out = root;
    return OK;
}

/* ---- looking at a tree ---- */

const JsonNode *
json_member(const JsonNode *object, const char *name)
{
    if (object == NULL || object->type != JSON_OBJECT) return NULL;
    Slice wanted = SLICE(name, strlen(name));
    const JsonNode *found = NULL;
    for (const JsonNode *node = object->u.first; node != NULL; node = node->next) {
        if (slice_equal(node->key, wanted)) found = node;
    }
    return found;
}

bool
json_get_text(const JsonNode *node, Slice *text_out)
{
    if (node == NULL || node->type != JSON_TEXT) return false;
    *text_out = node->u.text;
    return true;
}

bool
json_get_int(const JsonNode *node, i64 *i_out)
{
    if (node == NULL || node->type != JSON_INT) return false;
    *i_out = node->u.i;
    return true;
}

bool
json_get_bool(const JsonNode *node, bool *bool_out)
{
    if (node == NULL || (node->type != JSON_TRUE && node->type != JSON_FALSE)) return false;
    *bool_out = node->type == JSON_TRUE;
    return true;
}

bool
json_get_number(const JsonNode *node, f64 *r_out)
{
    if (node == NULL || (node->type != JSON_INT && node->type != JSON_REAL)) return false;
    *r_out = node->type == JSON_INT ? (f64)node->u.i : node->u.r;
    return true;
}
