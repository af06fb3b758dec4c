/*
 * quack_value.c -- values between JSON and SQL.
 *
 *     SQL       JSON
 *     NULL      null
 *     INTEGER   number without point or exponent; all 64 bits
 *     REAL      number with point or exponent; infinities are 9e999 and -9e999
 *     TEXT      string
 *     BLOB      {"base64": "..."}
 *
 * Inwards true and false are 1 and 0, and digits beyond 64 bits are a REAL, as in SQL text.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/quack/quack_run.h"
#include "value/base64.h"

#define NAME_BYTES_MAX 256

static bool PRINTF_LIKE(5, 6)
    fail(Conn *conn, Failure *failure_out, int code, const char *name, const char *format, ...)
{
    char text[NAME_BYTES_MAX + 128];
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (bytes >= (int)sizeof(text)) bytes = (int)sizeof(text) - 1;
    Buf *scratch = &conn->quack->scratch;
    buf_clear(scratch);
    *failure_out = (Failure){.code = code, .name = name, .offset = -1, .row = -1};
    failure_out->text = buf_append(scratch, text, (size_t)bytes) == OK ? buf_slice(scratch)
                                                                       : SLICE_LITERAL("bad value");
    return false;
}

static bool
bind_blob(Conn *conn, weft_stmt *stmt, int index, const JsonNode *node, Failure *failure_out)
{
    Slice text;
    Buf *scratch = &conn->quack->scratch;
    if (node->count != 1 || !json_get_text(json_member(node, "base64"), &text))
        return fail(conn, failure_out, WEFT_MISMATCH, "QUACK_PARAMS",
                    "parameter %d: an object must be {\"base64\": \"...\"}", index);
    buf_clear(scratch);
    Err err = base64_decode(text, scratch);
    if (err == ERR_SQL)
        return fail(conn, failure_out, WEFT_MISMATCH, "QUACK_PARAMS", "parameter %d: not base64",
                    index);
    int code = err == OK ? weft_bind_blob(stmt, index, scratch->p, scratch->bytes) : WEFT_NOMEM;
    if (code != WEFT_OK)
        return fail(conn, failure_out, code, weft_errname(code), "parameter %d: too big", index);
    return true;
}

static bool
bind_one(Conn *conn, weft_stmt *stmt, int index, const JsonNode *node, Failure *failure_out)
{
    int code = WEFT_OK;
    switch ((JsonType)node->type) {
    case JSON_NULL: code = weft_bind_null(stmt, index); break;
    case JSON_FALSE: code = weft_bind_int64(stmt, index, 0); break;
    case JSON_TRUE: code = weft_bind_int64(stmt, index, 1); break;
    case JSON_INT: code = weft_bind_int64(stmt, index, node->u.i); break;
    case JSON_REAL: code = weft_bind_double(stmt, index, node->u.r); break;
    case JSON_TEXT:
        code = weft_bind_text(stmt, index, (const char *)node->u.text.p,
                              (ptrdiff_t)node->u.text.bytes);
        break;
    case JSON_OBJECT: return bind_blob(conn, stmt, index, node, failure_out);
    case JSON_ARRAY:
        return fail(conn, failure_out, WEFT_MISMATCH, "QUACK_PARAMS",
                    "parameter %d: an array is no value", index);
    }
    if (code != WEFT_OK)
        return fail(conn, failure_out, code, weft_errname(code), "parameter %d: cannot be bound",
                    index);
    return true;
}

/* The index of a parameter named with or without its prefix; 0: none. */
static int
named_index(weft_stmt *stmt, Slice key)
{
    static const char prefixes[] = ":@$";
    char name[NAME_BYTES_MAX + 2];
    if (key.bytes == 0 || key.bytes > NAME_BYTES_MAX || memchr(key.p, 0, key.bytes) != NULL)
        return 0;
    memcpy(name + 1, key.p, key.bytes);
    name[1 + key.bytes] = 0;
    if (strchr(prefixes, key.p[0]) != NULL) return weft_bind_index(stmt, name + 1);
    for (const char *prefix = prefixes; *prefix != 0; prefix++) {
        name[0] = *prefix;
        int index = weft_bind_index(stmt, name);
        if (index != 0) return index;
    }
    return 0;
}

bool
quack__bind(Conn *conn, weft_stmt *stmt, const JsonNode *params, Failure *failure_out)
{
    u32 wanted = (u32)weft_bind_count(stmt);
    u32 given = params != NULL ? params->count : 0;
    if (params != NULL && params->type != JSON_ARRAY && params->type != JSON_OBJECT)
        return fail(conn, failure_out, WEFT_MISUSE, "QUACK_PARAMS",
                    "params are an array or an object");
    if (given != wanted)
        return fail(conn, failure_out, WEFT_RANGE, "QUACK_PARAMS",
                    "the statement has %u parameters, %u were given", wanted, given);
    if (wanted == 0) return true;
    weft_clear_bindings(stmt);
    int index = 0;
    for (const JsonNode *node = params->u.first; node != NULL; node = node->next) {
        if (params->type == JSON_ARRAY) {
            index++;
        } else {
            index = named_index(stmt, node->key);
            if (index == 0)
                return fail(conn, failure_out, WEFT_RANGE, "QUACK_PARAMS",
                            "the statement has no parameter %.*s",
                            (int)MIN_OF(node->key.bytes, (size_t)NAME_BYTES_MAX),
                            (const char *)node->key.p);
        }
        if (!bind_one(conn, stmt, index, node, failure_out)) return false;
    }
    return true;
}

static void
value_write(JsonWriter *writer, weft_stmt *stmt, int column)
{
    switch (weft_column_type(stmt, column)) {
    case WEFT_INTEGER: json_write_int(writer, weft_column_int64(stmt, column)); return;
    case WEFT_FLOAT: json_write_real(writer, weft_column_double(stmt, column)); return;
    case WEFT_TEXT: {
        const char *text = weft_column_text(stmt, column);
        size_t bytes = weft_column_bytes(stmt, column);
        if (text == NULL)
            writer->err = ERR_NOMEM;
        else
            json_write_text(writer, SLICE(text, bytes));
        return;
    }
    case WEFT_BLOB: {
        const void *blob = weft_column_blob(stmt, column);
        size_t bytes = weft_column_bytes(stmt, column);
        json_begin_object(writer);
        json_key(writer, "base64");
        json_write_base64(writer, blob == NULL ? SLICE_NONE : SLICE(blob, bytes));
        json_end_object(writer);
        return;
    }
    default: json_write_null(writer); return;
    }
}

Err
quack__row(Conn *conn, weft_stmt *stmt, const JsonNode *id)
{
    JsonWriter writer;
    size_t start = conn->out.bytes;
    int columns = weft_column_count(stmt);
    quack__reply_begin(conn, id, &writer);
    json_key(&writer, "row");
    json_begin_array(&writer);
    for (int i = 0; i < columns; i++)
        value_write(&writer, stmt, i);
    json_end_array(&writer);
    return quack__reply_end(conn, &writer, start);
}
