/*
 * func_json.h -- JSON documents inside the SQL functions.
 *
 * Every document is held as JSONB, SQLite's binary form, whichever way it came in.  An element is
 * a head (low half of its first byte: the type; high half: the payload's size, or 12 to 15 for a
 * size in the next 1, 2, 4 or 8 bytes, big-endian) and the payload: the digits of numbers, the
 * inside of strings, the elements of arrays, label and value in turn of objects.
 *
 * Nothing here recurses; nesting is limited to JSON_DEPTH_MAX.
 */
#pragma once

#include "func/func_private.h"

#define JSON_DEPTH_MAX 1000
#define JSON_SUBTYPE   74

typedef enum JsonbType {
    JSONB_NULL,
    JSONB_TRUE,
    JSONB_FALSE,
    JSONB_INT,
    JSONB_INT5, /* Hexadecimal. */
    JSONB_FLOAT,
    JSONB_FLOAT5,  /* With a bare point. */
    JSONB_TEXT,    /* Needs no escapes, neither in JSON nor in SQL. */
    JSONB_TEXTJ,   /* Has JSON's escapes. */
    JSONB_TEXT5,   /* Has JSON5's escapes. */
    JSONB_TEXTRAW, /* Plain text that JSON would have to escape. */
    JSONB_ARRAY,
    JSONB_OBJECT
} JsonbType;

typedef struct JsonDoc {
    const u8 *p; /* The root element; points into `own` or to bytes of an argument. */
    u32 bytes;
    Buf own;
    bool json5;   /* The text used more than RFC 8259 allows. */
    u32 error_at; /* After a failed parse: the byte where it failed. */
} JsonDoc;

void func__json_free(JsonDoc *doc);
/* Make the document writable: its bytes in `own`. */
MUST_CHECK Err func__json_own(JsonDoc *doc);

static inline JsonbType
func__jsonb_type(const JsonDoc *doc, u32 at)
{
    return (JsonbType)(doc->p[at] & 15);
}
static inline bool
func__jsonb_is_text(JsonbType type)
{
    return type >= JSONB_TEXT && type <= JSONB_TEXTRAW;
}
/* No escapes in it: its bytes are the text. */
static inline bool
func__jsonb_is_plain(JsonbType type)
{
    return type == JSONB_TEXT || type == JSONB_TEXTRAW;
}

/* Size of the head at `at`, 0 if the element does not fit in the document. */
u32 func__jsonb_head(const JsonDoc *doc, u32 at, u32 *payload_bytes_out);
/* Append a head and, unless NULL, its payload. */
MUST_CHECK Err func__jsonb_append(Buf *out, JsonbType type, u32 payload_bytes, const void *payload);
/* Change the payload size in the head of own.p[at], keeping the head minimal; returns by how many
   bytes the head grew.  There must be room for 8 bytes more. */
i32 func__jsonb_set_size(Buf *own, u32 at, u32 payload_bytes);
/* 0, or 1 + the offset of the first mistake.  The root must span the document. */
MUST_CHECK Err func__jsonb_check(const JsonDoc *doc, u32 *mistake_out);

/* Parse JSON or JSON5 text up to its first NUL.  *ok_out false: it is none, see error_at. */
MUST_CHECK Err func__json_parse(Slice text, JsonDoc *doc, bool *ok_out);
/* Stands for itself in any string. */
bool func__json_is_plain_byte(u8 c);

/* Escapes. */
#define JSON_BAD_CHARACTER 0x99999
/* The escape at the start of `text` (with its backslash); returns its length. */
size_t func__json_unescape(Slice text, u32 *character_out);
/* Are two labels the same text? */
bool func__json_same_label(Slice a, bool a_plain, Slice b, bool b_plain);

/* Rendering: appends to `out`.  Errors carry their message. */
MUST_CHECK Err func__json_render(FuncCall *call, const JsonDoc *doc, u32 at, Buf *out);
MUST_CHECK Err func__json_render_pretty(FuncCall *call, const JsonDoc *doc, Slice indent, Buf *out);
/* A text as JSON string, with quotes. */
MUST_CHECK Err func__json_append_string(Buf *out, Slice text);
/* An SQL value as JSON text. */
MUST_CHECK Err func__json_append_value(FuncCall *call, Buf *out, const Cell *cell);

typedef enum JsonEdit {
    JSON_LOOK,
    JSON_DELETE,
    JSON_REPLACE,
    JSON_INSERT, /* From here on missing places are made. */
    JSON_SET,
    JSON_ARRAY_INSERT
} JsonEdit;

typedef enum JsonFound {
    JSON_FOUND,
    JSON_NOT_FOUND,
    JSON_NOT_IN_ARRAY,
    JSON_TOO_DEEP,
    JSON_BAD_PATH,
    JSON_DAMAGED
} JsonFound;

/*
 * Follow `path` (without its "$") and edit what it leads to; *at_out is the place when looking.
 * `insert` is what REPLACE and the like put there.  Errors: ERR_NOMEM.
 */
MUST_CHECK Err func__json_path(JsonDoc *doc, Slice path, JsonEdit edit, Slice insert, u32 *at_out,
                               JsonFound *found_out);
/* Only look; also for the label of what is found (0: it has none). */
MUST_CHECK Err func__json_find(JsonDoc *doc, Slice path, u32 *at_out, u32 *label_out,
                               JsonFound *found_out);
/* RFC 7396.  *ok_out: see there; JSON_TOO_DEEP, JSON_DAMAGED. */
MUST_CHECK Err func__json_merge(JsonDoc *target, const JsonDoc *patch, JsonFound *found_out);
/* Replace `gone` bytes at `at` by `insert`; *delta_out grows by the difference. */
MUST_CHECK Err func__json_splice(JsonDoc *doc, u32 at, u32 gone, Slice insert, i64 *delta_out);
/* After a splice inside the element at `at` changed its payload by *delta: correct its size. */
MUST_CHECK Err func__json_resize(JsonDoc *doc, u32 at, i64 *delta);

/* What a JSON function is about: user_data of its definition. */
typedef struct JsonMode {
    bool binary;    /* Result is JSONB. */
    bool json, sql; /* -> and ->> */
    JsonEdit edit;  /* json_insert and its kin. */
    const char *name;
} JsonMode;

/* The element as an SQL value; arrays and objects as the mode says. */
MUST_CHECK Err func__json_value(FuncCall *call, const JsonDoc *doc, u32 at, Cell *result_out);
/* "integer", "text" ... */
const char *func__json_type_name(const JsonDoc *doc, u32 at);
/* The error for a path that leads nowhere; found is not FOUND or NOT_FOUND. */
MUST_CHECK Err func__json_path_error(FuncCall *call, JsonFound found, Slice path);

/* Is the blob a JSONB document, as far as its outside tells? */
MUST_CHECK Err func__json_from_blob(Slice blob, JsonDoc *doc, bool *ok_out);
/* A function's argument as a document.  *none_out: it is NULL, and so is the result. */
MUST_CHECK Err func__json_arg(FuncCall *call, const Cell *cell, JsonDoc *doc, bool *none_out);
