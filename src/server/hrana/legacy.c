/*
 * legacy.c -- POST / with {"statements": [...]}: the protocol before Hrana.
 *
 * Statements run in one transaction; values are plain JSON, blobs {"base64": ...}.
 */
#include <stdio.h>
#include <string.h>

#include "server/hrana/hrana_http.h"
#include "server/hrana/run.h"
#include "value/base64.h"

static Err
value_read(const JsonNode *node, Arena *arena, Cell *cell_out, HranaError *error)
{
    Slice text;
    Buf bytes = {0};
    *cell_out = cell_null();
    switch ((JsonType)node->type) {
    case JSON_NULL: return OK;
    case JSON_FALSE: *cell_out = cell_int(0); return OK;
    case JSON_TRUE: *cell_out = cell_int(1); return OK;
    case JSON_INT: *cell_out = cell_int(node->u.i); return OK;
    case JSON_REAL: *cell_out = cell_real(node->u.r); return OK;
    case JSON_TEXT: *cell_out = cell_text(node->u.text.p, node->u.text.bytes); return OK;
    case JSON_OBJECT: {
        if (!json_get_text(json_member(node, "base64"), &text)) break;
        Err err = base64_decode(text, &bytes);
        char *copy = err == OK
                         ? arena_strndup(arena, bytes.p == NULL ? (u8 *)"" : bytes.p, bytes.bytes)
                         : NULL;
        *cell_out = cell_blob(copy, bytes.bytes);
        buf_free(&bytes);
        if (copy != NULL) return OK;
        if (err != ERR_SQL) return ERR_NOMEM;
        break;
    }
    case JSON_ARRAY: break;
    }
    return hrana__bad(error, false, "a parameter is no value");
}

static Err
params_read(const JsonNode *params, Arena *arena, HranaStmt *stmt, HranaError *error)
{
    Err err = OK;
    u32 at = 0;
    if (json_is_null(params)) return OK;
    if (params->type != JSON_ARRAY && params->type != JSON_OBJECT)
        return hrana__bad(error, false, "params are an array or an object");
    stmt->arg = ARENA_NEW_ARRAY(arena, Cell, params->count + 1);
    stmt->named = ARENA_NEW_ARRAY(arena, HranaNamed, params->count + 1);
    if (stmt->arg == NULL || stmt->named == NULL) return ERR_NOMEM;
    for (const JsonNode *node = params->u.first; err == OK && node != NULL; node = node->next) {
        stmt->named[at].name = node->key;
        err = value_read(node, arena, &stmt->arg[at], error);
        stmt->named[at].value = stmt->arg[at];
        at++;
    }
    if (params->type == JSON_ARRAY)
        stmt->arg_count = at;
    else
        stmt->named_count = at;
    return err;
}

static Err
statement_read(const JsonNode *node, Arena *arena, HranaStmt *stmt, HranaError *error)
{
    const JsonNode *q = node->type == JSON_TEXT ? node : json_member(node, "q");
    stmt->want_rows = true;
    stmt->sql.has_text = true;
    if (!json_get_text(q, &stmt->sql.text))
        return hrana__bad(error, false, "a statement is a string, or an object with q");
    return node->type == JSON_TEXT ? OK
                                   : params_read(json_member(node, "params"), arena, stmt, error);
}

static void
value_write(JsonWriter *json, const Cell *cell)
{
    switch ((CellType)cell->type) {
    case CELL_NULL: json_write_null(json); return;
    case CELL_INT: json_write_int(json, cell->u.i); return;
    case CELL_REAL: json_write_real(json, cell->u.r); return;
    case CELL_TEXT: json_write_text(json, SLICE(cell->u.p, cell->bytes)); return;
    case CELL_BLOB: {
        bool zeros = (cell->flags & CELL_ZEROBLOB) != 0;
        void *made = zeros ? mem_alloc_zeroed(cell->bytes) : NULL;
        if (zeros && made == NULL) json->err = ERR_NOMEM;
        json_begin_object(json);
        json_key(json, "base64");
        json_write_base64(json, zeros ? SLICE(made, made == NULL ? 0 : cell->bytes)
                                      : SLICE(cell->u.p, cell->bytes));
        json_end_object(json);
        mem_free(made);
        return;
    }
    }
}

static bool
rows_write(Seat *seat, Stmt *stmt, JsonWriter *json, Fault *fault)
{
    u32 columns = stmt_column_count(stmt);
    bool row = true, good = true;
    json_key(json, "columns");
    json_begin_array(json);
    for (u32 i = 0; i < columns; i++)
        json_write_string(json, stmt_column(stmt, i)->name);
    json_end_array(json);
    json_key(json, "rows");
    json_begin_array(json);
    while (good && row) {
        good = seat__step(seat, stmt, &row, fault);
        if (!good || !row) continue;
        json_begin_array(json);
        for (u32 i = 0; i < columns; i++)
            value_write(json, &stmt_row(stmt)[i]);
        json_end_array(json);
        if (json->out->bytes <= seat->server->options.response_bytes_max) continue;
        fault__set(fault, 18, "RESPONSE_TOO_LARGE", "Response is too large");
        good = false;
    }
    json_end_array(json);
    return good;
}

/* {"results": {...}} or {"error": text} as the next element. */
static bool
statement_run(Seat *seat, const HranaStmt *given, HranaWriter *writer, Fault *fault)
{
    JsonWriter *json = &writer->json;
    HranaMark mark = hrana__mark(writer);
    Stmt *stmt = NULL;
    bool read_only;
    bool good = hrana__prepare(seat, given, &stmt, &read_only, fault);
    StmtKind kind = good ? stmt_kind(stmt) : STMT_KIND_SELECT;
    if (good && (kind == STMT_KIND_BEGIN || kind == STMT_KIND_END)) {
        fault__set(fault, 21, "SQLITE_MISUSE", "interactive transactions are not allowed here");
        good = false;
    }
    json_begin_object(json);
    json_key(json, "results");
    json_begin_object(json);
    if (good) good = rows_write(seat, stmt, json, fault);
    if (stmt != NULL) seat__release(seat, stmt);
    if (good) {
        json_end_object(json);
    } else {
        hrana__back(writer, mark);
        json_begin_object(json);
        json_key(json, "error");
        json_write_text(json, fault__text(fault));
    }
    json_end_object(json);
    return good;
}

static void
statements_run(Conn *conn, Seat *seat, const HranaStmt *stmts, u32 count, Buf *out)
{
    HranaWriter writer;
    Fault fault = {0};
    hrana__writer_init(&writer, out, false, 1, conn->server);
    seat__begin(seat, conn->socket);
    bool good = seat__ready(seat, &fault) &&
                session_exec(seat__session(seat), SLICE_LITERAL("BEGIN")) == OK;
    json_begin_array(&writer.json);
    for (u32 i = 0; good && i < count; i++)
        good = statement_run(seat, &stmts[i], &writer, &fault);
    if (good && session_exec(seat__session(seat), SLICE_LITERAL("COMMIT")) != OK) {
        json_begin_object(&writer.json);
        json_key(&writer.json, "error");
        json_write_string(&writer.json, err_message(session_error(seat__session(seat))));
        json_end_object(&writer.json);
    }
    json_end_array(&writer.json);
    seat__end(seat);
    fault__free(&fault);
    if (hrana__writer_done(&writer) == OK)
        http__reply(conn, 200, "application/json", buf_slice(out), NULL);
    else
        http__reply_text(conn, 500, "out of memory");
}

void
hrana__http_legacy(Conn *conn, ServedDb *db, SeatRights rights)
{
    Arena arena;
    HranaError error = {0};
    const JsonNode *root = NULL;
    HranaStmt *stmts = NULL;
    Buf out = {0};
    u32 count = 0;
    arena_init(&arena, NULL);
    Err err = hrana__json_parse(conn->http->body_slice, &arena, &root, &error);
    const JsonNode *list = json_member(root, "statements");
    if (err == OK && (list == NULL || list->type != JSON_ARRAY))
        err = hrana__bad(&error, false, "statements must be an array");
    if (err == OK) stmts = ARENA_NEW_ARRAY(&arena, HranaStmt, list->count + 1);
    if (err == OK && stmts == NULL) err = ERR_NOMEM;
    for (const JsonNode *node = err == OK ? list->u.first : NULL; err == OK && node != NULL;
         node = node->next)
        err = statement_read(node, &arena, &stmts[count++], &error);
    Seat *seat = err == OK ? seat__open(db, "http", rt_socket_peer_address(conn->socket)) : NULL;
    if (err == OK && seat == NULL) err = ERR_NOMEM;
    if (err == OK) {
        seat->rights = rights;
        statements_run(conn, seat, stmts, count, &out);
    } else {
        http__reply_error(conn, err == ERR_NOMEM ? 500 : 400, "HRANA_PROTO_ERROR",
                          err == ERR_NOMEM ? "out of memory" : error.text);
    }
    seat__close(seat);
    buf_free(&out);
    arena_free(&arena);
}
