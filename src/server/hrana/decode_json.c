/*
 * decode_json.c -- Hrana messages in JSON.
 *
 * Unknown members are ignored, unknown types are errors, null is the same as absent.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/hrana/hrana.h"
#include "value/base64.h"
#include "value/number.h"

#define NODES_MAX 4000000u

const char *const hrana__kind_names[HRANA_KINDS] = {
    [HRANA_CLOSE] = "close",
    [HRANA_EXECUTE] = "execute",
    [HRANA_BATCH] = "batch",
    [HRANA_SEQUENCE] = "sequence",
    [HRANA_DESCRIBE] = "describe",
    [HRANA_STORE_SQL] = "store_sql",
    [HRANA_CLOSE_SQL] = "close_sql",
    [HRANA_GET_AUTOCOMMIT] = "get_autocommit",
    [HRANA_OPEN_STREAM] = "open_stream",
    [HRANA_CLOSE_STREAM] = "close_stream",
    [HRANA_OPEN_CURSOR] = "open_cursor",
    [HRANA_CLOSE_CURSOR] = "close_cursor",
    [HRANA_FETCH_CURSOR] = "fetch_cursor",
};

Err
hrana__bad(HranaError *error, bool is_syntax, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    error->is_syntax = is_syntax;
    return ERR_SQL;
}

/* ---- small things ---- */

static Err
get_i32(const JsonNode *object, const char *name, i32 *i_out, HranaError *error)
{
    i64 i;
    if (!json_get_int(json_member(object, name), &i) || i < INT32_MIN || i > INT32_MAX)
        return hrana__bad(error, false, "%s must be a 32-bit integer", name);
    *i_out = (i32)i;
    return OK;
}

static Err
get_u32(const JsonNode *object, const char *name, u32 *u_out, HranaError *error)
{
    i64 i;
    if (!json_get_int(json_member(object, name), &i) || i < 0 || i > U32_MAX)
        return hrana__bad(error, false, "%s must be an unsigned 32-bit integer", name);
    *u_out = (u32)i;
    return OK;
}

/* Absent and null give no text. */
static Err
get_optional_text(const JsonNode *object, const char *name, bool *has_out, Slice *text_out,
                  HranaError *error)
{
    const JsonNode *node = json_member(object, name);
    *has_out = false;
    if (json_is_null(node)) return OK;
    if (!json_get_text(node, text_out))
        return hrana__bad(error, false, "%s must be a string", name);
    *has_out = true;
    return OK;
}

static Err
get_sql(const JsonNode *object, HranaSql *sql_out, HranaError *error)
{
    Err err = get_optional_text(object, "sql", &sql_out->has_text, &sql_out->text, error);
    sql_out->has_id = !json_is_null(json_member(object, "sql_id"));
    if (err == OK && sql_out->has_id) err = get_i32(object, "sql_id", &sql_out->id, error);
    return err;
}

/* An array member; absent gives none. */
static Err
get_array(const JsonNode *object, const char *name, const JsonNode **first_out, u32 *count_out,
          HranaError *error)
{
    const JsonNode *node = json_member(object, name);
    *first_out = NULL;
    *count_out = 0;
    if (json_is_null(node)) return OK;
    if (node->type != JSON_ARRAY) return hrana__bad(error, false, "%s must be an array", name);
    *first_out = node->u.first;
    *count_out = node->count;
    return OK;
}

static bool
is_type(Slice type, const char *name)
{
    return slice_equal(type, SLICE(name, strlen(name)));
}

/* ---- values ---- */

/* Decimal digits with an optional sign, in int64. */
static bool
integer_read(Slice text, i64 *i_out)
{
    size_t at = text.bytes > 0 && (text.p[0] == '-' || text.p[0] == '+');
    bool negative = at > 0 && text.p[0] == '-';
    u64 value = 0, most = negative ? (u64)1 << 63 : ((u64)1 << 63) - 1;
    if (at == text.bytes) return false;
    for (; at < text.bytes; at++) {
        u8 c = text.p[at];
        if (c < '0' || c > '9' || value > (most - (u64)(c - '0')) / 10) return false;
        value = value * 10 + (u64)(c - '0');
    }
    *i_out = negative ? (i64)(0 - value) : (i64)value;
    return true;
}

static Err
blob_read(const JsonNode *node, Arena *arena, Cell *cell_out, HranaError *error)
{
    Slice text;
    Buf bytes = {0};
    if (!json_get_text(json_member(node, "base64"), &text))
        return hrana__bad(error, false, "a blob needs base64");
    for (size_t i = 0; i < text.bytes; i++)
        if (text.p[i] == '-' || text.p[i] == '_')
            return hrana__bad(error, false, "a blob is not in standard base64");
    Err err = base64_decode(text, &bytes);
    if (err == ERR_SQL) {
        hrana__bad(error, false, "a blob is not base64");
    } else if (err == OK) {
        char *copy = arena_strndup(arena, bytes.bytes == 0 ? (const u8 *)"" : bytes.p, bytes.bytes);
        if (copy == NULL) err = ERR_NOMEM;
        *cell_out = cell_blob(copy, bytes.bytes);
    }
    buf_free(&bytes);
    return err;
}

static Err
value_read(const JsonNode *node, Arena *arena, Cell *cell_out, HranaError *error)
{
    Slice type, text;
    i64 i;
    f64 r;
    const JsonNode *value = json_member(node, "value");
    *cell_out = cell_null();
    if (!json_get_text(json_member(node, "type"), &type))
        return hrana__bad(error, false, "a value needs a type");
    if (is_type(type, "null")) return OK;
    if (is_type(type, "integer")) {
        bool good = json_get_text(value, &text) ? integer_read(text, &i) : json_get_int(value, &i);
        if (!good) return hrana__bad(error, false, "an integer must be 64 bits in a string");
        *cell_out = cell_int(i);
        return OK;
    }
    if (is_type(type, "float")) {
        if (!json_get_number(value, &r)) return hrana__bad(error, false, "a float needs a number");
        *cell_out = cell_real(r);
        return OK;
    }
    if (is_type(type, "text")) {
        if (!json_get_text(value, &text)) return hrana__bad(error, false, "a text needs a string");
        *cell_out = cell_text(text.p == NULL ? (const u8 *)"" : text.p, text.bytes);
        return OK;
    }
    if (is_type(type, "blob")) return blob_read(node, arena, cell_out, error);
    return hrana__bad(error, false, "unknown type of a value");
}

/* ---- statements and batches ---- */

Err
hrana__json_stmt(const JsonNode *node, Arena *arena, HranaStmt *stmt_out, HranaError *error)
{
    const JsonNode *args, *named, *want = json_member(node, "want_rows");
    if (node == NULL || node->type != JSON_OBJECT)
        return hrana__bad(error, false, "a statement must be an object");
    Err err = get_sql(node, &stmt_out->sql, error);
    if (err == OK) err = get_array(node, "args", &args, &stmt_out->arg_count, error);
    if (err == OK) err = get_array(node, "named_args", &named, &stmt_out->named_count, error);
    if (err != OK) return err;
    stmt_out->want_rows = true;
    if (!json_is_null(want) && !json_get_bool(want, &stmt_out->want_rows))
        return hrana__bad(error, false, "want_rows must be a boolean");
    stmt_out->arg = ARENA_NEW_ARRAY(arena, Cell, stmt_out->arg_count + 1);
    stmt_out->named = ARENA_NEW_ARRAY(arena, HranaNamed, stmt_out->named_count + 1);
    if (stmt_out->arg == NULL || stmt_out->named == NULL) return ERR_NOMEM;
    for (u32 i = 0; err == OK && i < stmt_out->arg_count; i++, args = args->next)
        err = value_read(args, arena, &stmt_out->arg[i], error);
    for (u32 i = 0; err == OK && i < stmt_out->named_count; i++, named = named->next) {
        if (!json_get_text(json_member(named, "name"), &stmt_out->named[i].name))
            return hrana__bad(error, false, "a named argument needs a name");
        err = value_read(json_member(named, "value"), arena, &stmt_out->named[i].value, error);
    }
    return err;
}

static Err
cond_read(const JsonNode *node, Arena *arena, u32 depth, HranaCond **cond_out, HranaError *error);

static Err
conds_read(const JsonNode *node, Arena *arena, u32 depth, HranaCond *cond, HranaError *error)
{
    const JsonNode *first;
    u32 count;
    HranaCond **link = &cond->first;
    Err err = get_array(node, "conds", &first, &count, error);
    for (; err == OK && first != NULL; first = first->next) {
        err = cond_read(first, arena, depth + 1, link, error);
        if (err == OK) link = &(*link)->next;
    }
    return err;
}

/* Depth is bounded by HRANA_NESTING_MAX. */
static Err
cond_read(const JsonNode *node, Arena *arena, u32 depth, HranaCond **cond_out, HranaError *error)
{
    static const char *const names[] = {"ok", "error", "not", "and", "or", "is_autocommit"};
    Slice type;
    if (depth > HRANA_NESTING_MAX) return hrana__bad(error, false, "conditions nest too deep");
    if (!json_get_text(json_member(node, "type"), &type))
        return hrana__bad(error, false, "a condition needs a type");
    HranaCond *cond = ARENA_NEW(arena, HranaCond);
    if (cond == NULL) return ERR_NOMEM;
    *cond_out = cond;
    for (cond->kind = 0; cond->kind < COUNT_OF(names); cond->kind++)
        if (is_type(type, names[cond->kind])) break;
    switch (cond->kind) {
    case COND_OK:
    case COND_ERROR: return get_u32(node, "step", &cond->step, error);
    case COND_NOT:
        return cond_read(json_member(node, "cond"), arena, depth + 1, &cond->first, error);
    case COND_AND:
    case COND_OR: return conds_read(node, arena, depth, cond, error);
    case COND_IS_AUTOCOMMIT: return OK;
    default: return hrana__bad(error, false, "unknown type of a condition");
    }
}

Err
hrana__json_batch(const JsonNode *node, Arena *arena, HranaBatch *batch_out, HranaError *error)
{
    const JsonNode *step;
    if (node == NULL || node->type != JSON_OBJECT)
        return hrana__bad(error, false, "a batch must be an object");
    Err err = get_array(node, "steps", &step, &batch_out->count, error);
    if (err != OK) return err;
    batch_out->step = ARENA_NEW_ARRAY(arena, HranaStep, batch_out->count + 1);
    if (batch_out->step == NULL) return ERR_NOMEM;
    for (u32 i = 0; err == OK && i < batch_out->count; i++, step = step->next) {
        const JsonNode *cond = json_member(step, "condition");
        err = hrana__json_stmt(json_member(step, "stmt"), arena, &batch_out->step[i].stmt, error);
        if (err == OK && !json_is_null(cond))
            err = cond_read(cond, arena, 0, &batch_out->step[i].cond, error);
    }
    return err;
}

/* ---- requests ---- */

static Err
ids_read(const JsonNode *node, HranaRequest *request, HranaError *error)
{
    Err err = OK;
    switch ((HranaKind)request->kind) {
    case HRANA_STORE_SQL:
    case HRANA_CLOSE_SQL:
    case HRANA_CLOSE:
    case HRANA_KINDS: return OK;
    case HRANA_CLOSE_CURSOR: return get_i32(node, "cursor_id", &request->cursor_id, error);
    case HRANA_FETCH_CURSOR:
        err = get_i32(node, "cursor_id", &request->cursor_id, error);
        return err == OK ? get_u32(node, "max_count", &request->max_count, error) : err;
    case HRANA_OPEN_CURSOR:
        err = get_i32(node, "cursor_id", &request->cursor_id, error);
        if (err != OK) return err;
        break;
    default: break;
    }
    return get_i32(node, "stream_id", &request->stream_id, error);
}

static Err
request_read(const JsonNode *node, bool with_ids, Arena *arena, HranaRequest *request,
             HranaError *error)
{
    Slice type;
    if (!json_get_text(json_member(node, "type"), &type))
        return hrana__bad(error, false, "a request needs a type");
    for (request->kind = 0; request->kind < HRANA_KINDS; request->kind++)
        if (is_type(type, hrana__kind_names[request->kind])) break;
    if (request->kind == HRANA_KINDS || (with_ids && request->kind == HRANA_CLOSE) ||
        (!with_ids && request->kind >= HRANA_OPEN_STREAM))
        return hrana__bad(error, false, "unknown type of a request");
    Err err = with_ids ? ids_read(node, request, error) : OK;
    if (err != OK) return err;
    switch ((HranaKind)request->kind) {
    case HRANA_EXECUTE:
        return hrana__json_stmt(json_member(node, "stmt"), arena, &request->stmt, error);
    case HRANA_BATCH:
    case HRANA_OPEN_CURSOR:
        return hrana__json_batch(json_member(node, "batch"), arena, &request->batch, error);
    case HRANA_SEQUENCE:
    case HRANA_DESCRIBE:
    case HRANA_STORE_SQL:
    case HRANA_CLOSE_SQL: return get_sql(node, &request->sql, error);
    default: return OK;
    }
}

Err
hrana__json_parse(Slice text, Arena *arena, const JsonNode **root_out, HranaError *error)
{
    JsonLimits limits = {.depth_max = 4 * HRANA_NESTING_MAX, .nodes_max = NODES_MAX, .mend = true};
    JsonError where = {0};
    JsonNode *root = NULL;
    *root_out = NULL;
    Err err = json_parse(text, &limits, false, arena, &root, &where);
    if (err == ERR_NOMEM) return err;
    if (err != OK)
        return hrana__bad(error, true, "not JSON: %s at byte %zu", where.what, where.offset);
    if (root->type != JSON_OBJECT) return hrana__bad(error, false, "the message is no object");
    *root_out = root;
    return OK;
}

Err
hrana__json_msg(Slice text, Arena *arena, HranaMsg *msg_out, HranaError *error)
{
    const JsonNode *root;
    Slice type;
    *msg_out = (HranaMsg){0};
    Err err = hrana__json_parse(text, arena, &root, error);
    if (err != OK) return err;
    if (!json_get_text(json_member(root, "type"), &type))
        return hrana__bad(error, false, "the message has no type");
    if (is_type(type, "hello")) {
        msg_out->is_hello = true;
        return get_optional_text(root, "jwt", &msg_out->has_jwt, &msg_out->jwt, error);
    }
    if (!is_type(type, "request")) return hrana__bad(error, false, "unknown type of a message");
    err = get_i32(root, "request_id", &msg_out->request_id, error);
    if (err != OK) return err;
    return request_read(json_member(root, "request"), true, arena, &msg_out->request, error);
}

Err
hrana__json_pipeline(Slice text, Arena *arena, HranaBody *body_out, HranaError *error)
{
    const JsonNode *root, *node;
    *body_out = (HranaBody){0};
    Err err = hrana__json_parse(text, arena, &root, error);
    if (err == OK)
        err = get_optional_text(root, "baton", &body_out->has_baton, &body_out->baton, error);
    if (err == OK && json_is_null(json_member(root, "requests")))
        return hrana__bad(error, false, "requests must be an array");
    if (err == OK) err = get_array(root, "requests", &node, &body_out->request_count, error);
    if (err != OK) return err;
    body_out->request = ARENA_NEW_ARRAY(arena, HranaRequest, body_out->request_count + 1);
    if (body_out->request == NULL) return ERR_NOMEM;
    for (u32 i = 0; err == OK && i < body_out->request_count; i++, node = node->next)
        err = request_read(node, false, arena, &body_out->request[i], error);
    return err;
}

Err
hrana__json_cursor(Slice text, Arena *arena, HranaBody *body_out, HranaError *error)
{
    const JsonNode *root;
    *body_out = (HranaBody){0};
    Err err = hrana__json_parse(text, arena, &root, error);
    if (err == OK)
        err = get_optional_text(root, "baton", &body_out->has_baton, &body_out->baton, error);
    if (err != OK) return err;
    return hrana__json_batch(json_member(root, "batch"), arena, &body_out->batch, error);
}
