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
#include <string.h>

#include "server/quack/quack_run.h"
#include "value/base64.h"

#define NAME_BYTES_MAX 256

static bool
bind_blob(Conn *conn, Stmt *stmt, u32 index, const JsonNode *node, Fault *fault)
{
    Slice text;
    Buf *scratch = &conn->quack->scratch;
    if (node->count != 1 || !json_get_text(json_member(node, "base64"), &text)) {
        fault__set(fault, 20, "QUACK_PARAMS",
                   "parameter %u: an object must be {\"base64\": \"...\"}", index + 1);
        return false;
    }
    buf_clear(scratch);
    Err err = base64_decode(text, scratch);
    if (err == ERR_SQL) {
        fault__set(fault, 20, "QUACK_PARAMS", "parameter %u: not base64", index + 1);
        return false;
    }
    Cell cell = cell_blob(scratch->p == NULL ? (const u8 *)"" : scratch->p, scratch->bytes);
    if (err == OK) err = stmt_bind(stmt, index, &cell);
    if (err != OK) seat__fault(conn->seat, err, fault);
    return err == OK;
}

static bool
bind_one(Conn *conn, Stmt *stmt, u32 index, const JsonNode *node, Fault *fault)
{
    Cell cell = cell_null();
    switch ((JsonType)node->type) {
    case JSON_NULL: break;
    case JSON_FALSE: cell = cell_int(0); break;
    case JSON_TRUE: cell = cell_int(1); break;
    case JSON_INT: cell = cell_int(node->u.i); break;
    case JSON_REAL: cell = cell_real(node->u.r); break;
    case JSON_TEXT: cell = cell_text(node->u.text.p, node->u.text.bytes); break;
    case JSON_OBJECT: return bind_blob(conn, stmt, index, node, fault);
    case JSON_ARRAY:
        fault__set(fault, 20, "QUACK_PARAMS", "parameter %u: an array is no value", index + 1);
        return false;
    }
    Err err = stmt_bind(stmt, index, &cell);
    if (err != OK) seat__fault(conn->seat, err, fault);
    return err == OK;
}

/* The index of a parameter named with or without its prefix; 0: none. */
static u32
named_index(Stmt *stmt, Slice key)
{
    static const char prefixes[] = ":@$";
    char name[NAME_BYTES_MAX + 2];
    if (key.bytes == 0 || key.bytes > NAME_BYTES_MAX || memchr(key.p, 0, key.bytes) != NULL)
        return 0;
    memcpy(name + 1, key.p, key.bytes);
    name[1 + key.bytes] = 0;
    if (strchr(prefixes, key.p[0]) != NULL) return stmt_param_index(stmt, name + 1);
    for (const char *prefix = prefixes; *prefix != 0; prefix++) {
        name[0] = *prefix;
        u32 index = stmt_param_index(stmt, name);
        if (index != 0) return index;
    }
    return 0;
}

bool
quack__bind(Conn *conn, Stmt *stmt, const JsonNode *params, Fault *fault)
{
    u32 wanted = stmt_param_count(stmt), given = params != NULL ? params->count : 0, index = 0;
    if (params != NULL && params->type != JSON_ARRAY && params->type != JSON_OBJECT) {
        fault__set(fault, 21, "QUACK_PARAMS", "params are an array or an object");
        return false;
    }
    if (given != wanted) {
        fault__set(fault, 25, "QUACK_PARAMS", "the statement has %u parameters, %u were given",
                   wanted, given);
        return false;
    }
    if (wanted == 0) return true;
    stmt_clear_bindings(stmt);
    for (const JsonNode *node = params->u.first; node != NULL; node = node->next) {
        if (params->type == JSON_ARRAY) {
            index++;
        } else {
            index = named_index(stmt, node->key);
            if (index == 0) {
                fault__set(fault, 25, "QUACK_PARAMS", "the statement has no parameter %.*s",
                           (int)MIN_OF(node->key.bytes, (size_t)NAME_BYTES_MAX),
                           (const char *)node->key.p);
                return false;
            }
        }
        if (!bind_one(conn, stmt, index - 1, node, fault)) return false;
    }
    return true;
}

static void
value_write(JsonWriter *writer, const Cell *cell, Arena *arena)
{
    switch ((CellType)cell->type) {
    case CELL_INT: json_write_int(writer, cell->u.i); return;
    case CELL_REAL: json_write_real(writer, cell->u.r); return;
    case CELL_TEXT: json_write_text(writer, SLICE(cell->u.p, cell->bytes)); return;
    case CELL_BLOB: {
        Slice bytes = SLICE(cell->u.p, cell->bytes);
        if ((cell->flags & CELL_ZEROBLOB) != 0) {
            bytes.p = arena_alloc(arena, cell->bytes);
            if (bytes.p == NULL) writer->err = ERR_NOMEM;
        }
        json_begin_object(writer);
        json_key(writer, "base64");
        json_write_base64(writer, writer->err == OK ? bytes : SLICE_NONE);
        json_end_object(writer);
        return;
    }
    case CELL_NULL: break;
    }
    json_write_null(writer);
}

Err
quack__row(Conn *conn, Stmt *stmt, const JsonNode *id)
{
    JsonWriter writer;
    size_t start = conn->out.bytes;
    u32 columns = stmt_column_count(stmt);
    const Cell *row = stmt_row(stmt);
    ArenaMark mark = arena_mark(&conn->quack->arena);
    quack__reply_begin(conn, id, &writer);
    json_key(&writer, "row");
    json_begin_array(&writer);
    for (u32 i = 0; i < columns; i++)
        value_write(&writer, &row[i], &conn->quack->arena);
    json_end_array(&writer);
    arena_rewind(&conn->quack->arena, mark);
    return quack__reply_end(conn, &writer, start);
}
