/*
 * json.h -- strict JSON (RFC 8259): a reader into a tree, and a writer.
 *
 * SQL's JSON functions accept more (JSON5, JSONB) and have their own reader in func/.  Neither
 * reader nor writer recurses.
 */
#pragma once

#include "base/base.h"

typedef enum JsonType {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_INT,  /* Digits only, fits int64. */
    JSON_REAL, /* Any other number; may be infinite if its text is out of range. */
    JSON_TEXT,
    JSON_ARRAY,
    JSON_OBJECT
} JsonType;

typedef struct JsonNode JsonNode;
struct JsonNode {
    u8 type;        /* JsonType */
    u32 count;      /* ARRAY, OBJECT: members. */
    u32 offset;     /* Where its text begins. */
    Slice key;      /* Inside an object: the member's name, unescaped. */
    JsonNode *next; /* Next member of the same array or object. */
    union {
        i64 i;
        f64 r;
        Slice text;      /* Unescaped UTF-8; may hold NUL. */
        JsonNode *first; /* ARRAY, OBJECT */
    } u;
};

typedef struct JsonLimits {
    u32 depth_max; /* Nesting of arrays and objects; 0: 1000. */
    u32 nodes_max; /* Values in the whole text; 0: no limit. */
    u64 bytes_max; /* Length of the text; 0: U32_MAX. */
    bool mend;     /* \u escapes of half a character are U+FFFD, not a mistake. */
} JsonLimits;

typedef struct JsonError {
    size_t offset;    /* Byte where the text stops being JSON. */
    const char *what; /* "unexpected end", ... */
} JsonError;

/*
 * Parse exactly one value; only blanks may stand around it.  The tree lives in `arena`; texts
 * without escapes point into `text`, which must outlive it -- unless `copy_text` is true.
 * Errors: ERR_SQL (not JSON; *error_out says where and why), ERR_LIMIT (a limit; *error_out too),
 * ERR_NOMEM.  `limits` and `error_out` may be NULL.
 */
MUST_CHECK Err json_parse(Slice text, const JsonLimits *limits, bool copy_text, Arena *arena,
                          JsonNode **root_out, JsonError *error_out);

/* Member of an object by name; the last one if the name stands twice; NULL if there is none or
   `object` is NULL or no object. */
const JsonNode *json_member(const JsonNode *object, const char *name);

/* Typed looks at a node that may be NULL: false if it is not of that type. */
bool json_get_text(const JsonNode *node, Slice *text_out);
bool json_get_int(const JsonNode *node, i64 *i_out);
bool json_get_bool(const JsonNode *node, bool *bool_out);
/* INT or REAL. */
bool json_get_number(const JsonNode *node, f64 *r_out);
static inline bool
json_is_null(const JsonNode *node)
{
    return node == NULL || node->type == JSON_NULL;
}

/*
 * Writer.  Appends to `out`, sets commas itself, keeps the first error: check json_writer_done()
 * at the end.  After an error nothing more is written, and what `out` holds is not whole.
 */
typedef struct JsonWriter {
    Buf *out;
    Err err;
    u32 depth;
    bool comma; /* The next value in this array or object needs one before it. */
    bool after_key;
} JsonWriter;

void json_writer_init(JsonWriter *writer, Buf *out);
void json_begin_object(JsonWriter *writer);
void json_end_object(JsonWriter *writer);
void json_begin_array(JsonWriter *writer);
void json_end_array(JsonWriter *writer);
void json_key(JsonWriter *writer, const char *name);
void json_key_slice(JsonWriter *writer, Slice name);
void json_write_null(JsonWriter *writer);
void json_write_bool(JsonWriter *writer, bool value);
void json_write_int(JsonWriter *writer, i64 value);
/* SQLite's text; infinities as 9e999 and -9e999, NaN as null. */
void json_write_real(JsonWriter *writer, f64 value);
/* Bytes that are not UTF-8 are written as U+FFFD, so the output always is. */
void json_write_text(JsonWriter *writer, Slice text);
void json_write_string(JsonWriter *writer, const char *text);
void json_write_base64(JsonWriter *writer, Slice bytes); /* As a string, with padding. */
/* `json` must be one whole JSON value; it is not checked. */
void json_write_raw(JsonWriter *writer, Slice json);
/* A whole tree, at most JSON_WRITE_DEPTH_MAX deep (else ERR_LIMIT). */
#define JSON_WRITE_DEPTH_MAX 1000
void json_write_node(JsonWriter *writer, const JsonNode *node);
/* The first error; asserts that every array and object was ended if there was none. */
MUST_CHECK Err json_writer_done(const JsonWriter *writer);

/* Append the text with JSON's escapes, without quotes. */
MUST_CHECK Err json_append_escaped(Buf *out, Slice text);
