/*
 * json_write.c -- the JSON writer.
 *
 * Invariant: `comma` is true exactly when a value stands right before the cursor in the innermost
 * array or object, so whoever begins the next key or value writes the comma first.
 */
#include "value/base64.h"
#include "value/json.h"
#include "value/number.h"

void
json_writer_init(JsonWriter *writer, Buf *out)
{
    *writer = (JsonWriter){.out = out};
}

static void
put(JsonWriter *writer, const void *p, size_t bytes)
{
    if (writer->err == OK) writer->err = buf_append(writer->out, p, bytes);
}

static void
put_byte(JsonWriter *writer, u8 byte)
{
    if (writer->err == OK) writer->err = buf_append_byte(writer->out, byte);
}

/* Before a value or a key: the comma, unless a key stands right before. */
static void
begin_value(JsonWriter *writer)
{
    if (writer->comma && !writer->after_key) put_byte(writer, ',');
    writer->after_key = false;
    writer->comma = true;
}

static void
begin(JsonWriter *writer, u8 bracket)
{
    begin_value(writer);
    put_byte(writer, bracket);
    writer->comma = false;
    writer->depth++;
}

static void
end(JsonWriter *writer, u8 bracket)
{
    ASSERT(writer->depth > 0);
    ASSERT(!writer->after_key);
    put_byte(writer, bracket);
    writer->comma = true;
    writer->depth--;
}

void
json_begin_object(JsonWriter *writer)
{
    begin(writer, '{');
}
void
json_end_object(JsonWriter *writer)
{
    end(writer, '}');
}
void
json_begin_array(JsonWriter *writer)
{
    begin(writer, '[');
}
void
json_end_array(JsonWriter *writer)
{
    end(writer, ']');
}

/* Append one escaped byte below 0x20, or a quote or backslash. */
static Err
append_escape(Buf *out, u8 c)
{
    static const char hex[] = "0123456789abcdef", letters[] = "btn\0fr";
    u8 escape[6] = {'\\', 'u', '0', '0', (u8)hex[c >> 4], (u8)hex[c & 15]};
    if (c == '"' || c == '\\') {
        escape[1] = c;
    } else if (c >= '\b' && c <= '\r' && c != '\v') {
        escape[1] = (u8)letters[c - '\b'];
    } else {
        return buf_append(out, escape, 6);
    }
    return buf_append(out, escape, 2);
}

/* Bytes of the valid UTF-8 character at p, 0 if it is none. */
static size_t
character_bytes(const u8 *p, const u8 *end)
{
    size_t bytes = *p < 0x80 ? 1 : *p >= 0xF0 ? 4 : *p >= 0xE0 ? 3 : 2;
    if ((size_t)(end - p) < bytes || !utf8_valid(p, bytes)) return 0;
    return bytes;
}

Err
json_append_escaped(Buf *out, Slice text)
{
    const u8 *p = text.p, *end = text.p + text.bytes, *plain = p;
    while (p < end) {
        if (*p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\') {
            p++;
            continue;
        }
        size_t bytes = *p < 0x80 ? 0 : character_bytes(p, end);
        if (bytes != 0) {
            p += bytes;
            continue;
        }
        Err err = buf_append(out, plain, (size_t)(p - plain));
        if (err == OK) {
            err = *p < 0x80 ? append_escape(out, *p) : buf_append(out, "\xEF\xBF\xBD", 3);
        }
        if (err != OK) return err;
        plain = ++p;
    }
    return buf_append(out, plain, (size_t)(end - plain));
}

static void
put_quoted(JsonWriter *writer, Slice text)
{
    put_byte(writer, '"');
    if (writer->err == OK) writer->err = json_append_escaped(writer->out, text);
    put_byte(writer, '"');
}

void
json_key_slice(JsonWriter *writer, Slice name)
{
    ASSERT(!writer->after_key);
    begin_value(writer);
    put_quoted(writer, name);
    put_byte(writer, ':');
    writer->after_key = true;
}

void
json_key(JsonWriter *writer, const char *name)
{
    json_key_slice(writer, SLICE(name, strlen(name)));
}

void
json_write_raw(JsonWriter *writer, Slice json)
{
    begin_value(writer);
    put(writer, json.p, json.bytes);
}

void
json_write_null(JsonWriter *writer)
{
    json_write_raw(writer, SLICE_LITERAL("null"));
}

void
json_write_bool(JsonWriter *writer, bool value)
{
    json_write_raw(writer, value ? SLICE_LITERAL("true") : SLICE_LITERAL("false"));
}

void
json_write_int(JsonWriter *writer, i64 value)
{
    char text[NUMBER_TEXT_BYTES];
    json_write_raw(writer, SLICE(text, number_put_int(text, value)));
}

void
json_write_real(JsonWriter *writer, f64 value)
{
    if (value != value) {
        json_write_null(writer);
    } else if (value - value != 0.0) {
        json_write_raw(writer, value > 0 ? SLICE_LITERAL("9e999") : SLICE_LITERAL("-9e999"));
    } else {
        char text[NUMBER_TEXT_BYTES];
        json_write_raw(writer, SLICE(text, number_put_real(text, value)));
    }
}

void
json_write_text(JsonWriter *writer, Slice text)
{
    begin_value(writer);
    put_quoted(writer, text);
}

void
json_write_string(JsonWriter *writer, const char *text)
{
    json_write_text(writer, SLICE(text, strlen(text)));
}

void
json_write_base64(JsonWriter *writer, Slice bytes)
{
    begin_value(writer);
    put_byte(writer, '"');
    if (writer->err == OK) writer->err = base64_encode(bytes, true, writer->out);
    put_byte(writer, '"');
}

/* One value, or the opening bracket of an array or object. */
static void
write_head(JsonWriter *writer, const JsonNode *node)
{
    switch ((JsonType)node->type) {
    case JSON_NULL: json_write_null(writer); break;
    case JSON_FALSE: json_write_bool(writer, false); break;
    case JSON_TRUE: json_write_bool(writer, true); break;
    case JSON_INT: json_write_int(writer, node->u.i); break;
    case JSON_REAL: json_write_real(writer, node->u.r); break;
    case JSON_TEXT: json_write_text(writer, node->u.text); break;
    case JSON_ARRAY: json_begin_array(writer); break;
    case JSON_OBJECT: json_begin_object(writer); break;
    }
}

static bool
is_container(const JsonNode *node)
{
    return node->type == JSON_ARRAY || node->type == JSON_OBJECT;
}

#define FEW_DEPTH 64u /* Deeper ones take memory for their path. */

static void
tree_write(JsonWriter *writer, const JsonNode *node)
{
    const JsonNode *few[FEW_DEPTH], **many = NULL, **stack = few, *at = node;
    u32 depth = 0;
    while (at != NULL && writer->err == OK) {
        if (depth > 0 && stack[depth - 1]->type == JSON_OBJECT) json_key_slice(writer, at->key);
        write_head(writer, at);
        if (is_container(at) && at->u.first != NULL) {
            if (depth == FEW_DEPTH && many == NULL) {
                stack = many = MEM_NEW_ARRAY(const JsonNode *, JSON_WRITE_DEPTH_MAX);
                if (many != NULL) memcpy(many, few, sizeof(few));
            }
            if (stack == NULL || depth == JSON_WRITE_DEPTH_MAX) {
                writer->err = stack == NULL ? ERR_NOMEM : ERR_LIMIT;
                break;
            }
            stack[depth++] = at;
            at = at->u.first;
            continue;
        }
        if (is_container(at)) end(writer, at->type == JSON_OBJECT ? '}' : ']');
        while (depth > 0 && at->next == NULL) {
            at = stack[--depth];
            end(writer, at->type == JSON_OBJECT ? '}' : ']');
        }
        at = depth > 0 ? at->next : NULL;
    }
    mem_free(many);
}

void
json_write_node(JsonWriter *writer, const JsonNode *node)
{
    u32 depth = writer->depth;
    tree_write(writer, node);
    if (writer->err == OK) return;
    /* It may have stopped anywhere; for the caller a value stands here all the same. */
    writer->depth = depth;
    writer->after_key = false;
    writer->comma = true;
}

Err
json_writer_done(const JsonWriter *writer)
{
    ASSERT(writer->err != OK || (writer->depth == 0 && !writer->after_key));
    return writer->err;
}
