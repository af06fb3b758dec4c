/*
 * pb.c -- the table, and two walks over it.
 */
#include "pb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt/sim/sim.h"
#include "value/json.h"

typedef enum Kind {
    INT,     /* Varint; a number. */
    BOOLEAN, /* Varint. */
    ZIGZAG,  /* Varint, zigzag; digits in a string. */
    DOUBLE,  /* Eight bytes; left out of the JSON. */
    STRING,
    MESSAGE,
    ROW, /* A message of values; an array. */
    MAP  /* Entries of number and message; an array with holes. */
} Kind;

typedef struct Message Message;
typedef struct Field {
    u32 number;
    const char *name; /* Member; of a tagged one NULL: its members stand beside the tag. */
    Kind kind;
    const Message *of;
    const char *tag;        /* It is one of several that the tag tells apart. */
    bool repeated, is_null; /* Missing: null, else 0, false or "". */
} Field;

struct Message {
    const char *one; /* Member that is tagged; "": the object itself; NULL: none. */
    const Field *field;
    u32 count;
};
#define MESSAGE_OF(one, fields)       \
    {                                 \
        one, fields, COUNT_OF(fields) \
    }

/* ---- the messages ---- */

static const Message nothing = {NULL, NULL, 0};

static const Field value_fields[] = {
    {1, NULL, MESSAGE, &nothing, "null", 0, 0}, {2, "value", ZIGZAG, NULL, "integer", 0, 0},
    {3, "value", DOUBLE, NULL, "float", 0, 0},  {4, "value", STRING, NULL, "text", 0, 0},
    {5, "base64", STRING, NULL, "blob", 0, 0},
};
static const Message value = MESSAGE_OF("", value_fields);

static const Field error_fields[] = {{1, "message", STRING, NULL, NULL, 0, 0},
                                     {2, "code", STRING, NULL, NULL, 0, true}};
static const Message error = MESSAGE_OF(NULL, error_fields);

static const Field col_fields[] = {{1, "name", STRING, NULL, NULL, 0, true},
                                   {2, "decltype", STRING, NULL, NULL, 0, true}};
static const Message col = MESSAGE_OF(NULL, col_fields);

static const Field stmt_fields[] = {
    {1, "sql", STRING, NULL, NULL, 0, true},
    {2, "sql_id", INT, NULL, NULL, 0, true},
    {3, "args", MESSAGE, &value, NULL, true, 0},
    {5, "want_rows", BOOLEAN, NULL, NULL, 0, 0},
};
static const Message stmt = MESSAGE_OF(NULL, stmt_fields);

static const Message cond;
static const Field conds_fields[] = {{1, "conds", MESSAGE, &cond, NULL, true, 0}};
static const Message conds = MESSAGE_OF(NULL, conds_fields);
static const Field cond_fields[] = {
    {1, "step", INT, NULL, "ok", 0, 0},       {2, "step", INT, NULL, "error", 0, 0},
    {3, "cond", MESSAGE, &cond, "not", 0, 0}, {4, NULL, MESSAGE, &conds, "and", 0, 0},
    {5, NULL, MESSAGE, &conds, "or", 0, 0},   {6, NULL, MESSAGE, &nothing, "is_autocommit", 0, 0},
};
static const Message cond = MESSAGE_OF("", cond_fields);

static const Field step_fields[] = {{1, "condition", MESSAGE, &cond, NULL, 0, true},
                                    {2, "stmt", MESSAGE, &stmt, NULL, 0, 0}};
static const Message step = MESSAGE_OF(NULL, step_fields);
static const Field batch_fields[] = {{1, "steps", MESSAGE, &step, NULL, true, 0}};
static const Message batch = MESSAGE_OF(NULL, batch_fields);

static const Field result_fields[] = {
    {1, "cols", MESSAGE, &col, NULL, true, 0},
    {2, "rows", ROW, NULL, NULL, true, 0},
    {3, "affected_row_count", INT, NULL, NULL, 0, 0},
    {4, "last_insert_rowid", ZIGZAG, NULL, NULL, 0, true},
};
static const Message result = MESSAGE_OF(NULL, result_fields);
static const Field results_fields[] = {{1, "step_results", MAP, &result, NULL, 0, 0},
                                       {2, "step_errors", MAP, &error, NULL, 0, 0}};
static const Message results = MESSAGE_OF(NULL, results_fields);

/* Requests of both carriers; over HTTP there is no id in front. */
static const Field stream_id[] = {{1, "stream_id", INT, NULL, NULL, 0, 0}};
static const Message only_stream = MESSAGE_OF(NULL, stream_id);
static const Field cursor_id[] = {{1, "cursor_id", INT, NULL, NULL, 0, 0}};
static const Message only_cursor = MESSAGE_OF(NULL, cursor_id);
static const Field sql_id[] = {{1, "sql_id", INT, NULL, NULL, 0, 0}};
static const Message only_sql_id = MESSAGE_OF(NULL, sql_id);
static const Field store_fields[] = {{1, "sql_id", INT, NULL, NULL, 0, 0},
                                     {2, "sql", STRING, NULL, NULL, 0, 0}};
static const Message store = MESSAGE_OF(NULL, store_fields);
static const Field ws_execute_fields[] = {{1, "stream_id", INT, NULL, NULL, 0, 0},
                                          {2, "stmt", MESSAGE, &stmt, NULL, 0, 0}};
static const Message ws_execute = MESSAGE_OF(NULL, ws_execute_fields);
static const Field ws_batch_fields[] = {{1, "stream_id", INT, NULL, NULL, 0, 0},
                                        {2, "batch", MESSAGE, &batch, NULL, 0, 0}};
static const Message ws_batch = MESSAGE_OF(NULL, ws_batch_fields);
static const Field open_cursor_fields[] = {{1, "stream_id", INT, NULL, NULL, 0, 0},
                                           {2, "cursor_id", INT, NULL, NULL, 0, 0},
                                           {3, "batch", MESSAGE, &batch, NULL, 0, 0}};
static const Message open_cursor = MESSAGE_OF(NULL, open_cursor_fields);
static const Field fetch_fields[] = {{1, "cursor_id", INT, NULL, NULL, 0, 0},
                                     {2, "max_count", INT, NULL, NULL, 0, 0}};
static const Message fetch = MESSAGE_OF(NULL, fetch_fields);

static const Field hello_fields[] = {{1, "jwt", STRING, NULL, NULL, 0, true}};
static const Message hello = MESSAGE_OF(NULL, hello_fields);
static const Field request_fields[] = {
    {1, "request_id", INT, NULL, NULL, 0, 0},
    {2, NULL, MESSAGE, &only_stream, "open_stream", 0, 0},
    {3, NULL, MESSAGE, &only_stream, "close_stream", 0, 0},
    {4, NULL, MESSAGE, &ws_execute, "execute", 0, 0},
    {5, NULL, MESSAGE, &ws_batch, "batch", 0, 0},
    {6, NULL, MESSAGE, &open_cursor, "open_cursor", 0, 0},
    {7, NULL, MESSAGE, &only_cursor, "close_cursor", 0, 0},
    {8, NULL, MESSAGE, &fetch, "fetch_cursor", 0, 0},
    {11, NULL, MESSAGE, &store, "store_sql", 0, 0},
    {12, NULL, MESSAGE, &only_sql_id, "close_sql", 0, 0},
};
static const Message request = MESSAGE_OF("request", request_fields);
static const Field client_fields[] = {{1, NULL, MESSAGE, &hello, "hello", 0, 0},
                                      {2, NULL, MESSAGE, &request, "request", 0, 0}};
static const Message client_msg = MESSAGE_OF("", client_fields);

static const Field execute_fields[] = {{1, "stmt", MESSAGE, &stmt, NULL, 0, 0}};
static const Message execute = MESSAGE_OF(NULL, execute_fields);
static const Field do_batch_fields[] = {{1, "batch", MESSAGE, &batch, NULL, 0, 0}};
static const Message do_batch = MESSAGE_OF(NULL, do_batch_fields);
static const Field stream_request_fields[] = {
    {1, NULL, MESSAGE, &nothing, "close", 0, 0},
    {2, NULL, MESSAGE, &execute, "execute", 0, 0},
    {3, NULL, MESSAGE, &do_batch, "batch", 0, 0},
    {6, NULL, MESSAGE, &store, "store_sql", 0, 0},
    {7, NULL, MESSAGE, &only_sql_id, "close_sql", 0, 0},
};
static const Message stream_request = MESSAGE_OF("", stream_request_fields);
static const Field pipeline_fields[] = {{1, "baton", STRING, NULL, NULL, 0, true},
                                        {2, "requests", MESSAGE, &stream_request, NULL, true, 0}};
static const Message pipeline = MESSAGE_OF(NULL, pipeline_fields);
static const Field cursor_fields[] = {{1, "baton", STRING, NULL, NULL, 0, true},
                                      {2, "batch", MESSAGE, &batch, NULL, 0, 0}};
static const Message cursor = MESSAGE_OF(NULL, cursor_fields);

/* Answers. */
static const Field has_result_fields[] = {{1, "result", MESSAGE, &result, NULL, 0, 0}};
static const Message has_result = MESSAGE_OF(NULL, has_result_fields);
static const Field has_results_fields[] = {{1, "result", MESSAGE, &results, NULL, 0, 0}};
static const Message has_results = MESSAGE_OF(NULL, has_results_fields);
static const Field has_error_fields[] = {{1, "error", MESSAGE, &error, NULL, 0, 0}};
static const Message has_error = MESSAGE_OF(NULL, has_error_fields);
static const Field stream_response_fields[] = {
    {1, NULL, MESSAGE, &nothing, "close", 0, 0},
    {2, NULL, MESSAGE, &has_result, "execute", 0, 0},
    {3, NULL, MESSAGE, &has_results, "batch", 0, 0},
    {6, NULL, MESSAGE, &nothing, "store_sql", 0, 0},
    {7, NULL, MESSAGE, &nothing, "close_sql", 0, 0},
};
static const Message stream_response = MESSAGE_OF("", stream_response_fields);
static const Field stream_result_fields[] = {
    {1, "response", MESSAGE, &stream_response, "ok", 0, 0},
    {2, "error", MESSAGE, &error, "error", 0, 0},
};
static const Message stream_result = MESSAGE_OF("", stream_result_fields);
static const Field pipeline_resp_fields[] = {
    {1, "baton", STRING, NULL, NULL, 0, true},
    {2, "base_url", STRING, NULL, NULL, 0, true},
    {3, "results", MESSAGE, &stream_result, NULL, true, 0}};
static const Message pipeline_resp = MESSAGE_OF(NULL, pipeline_resp_fields);
static const Field cursor_resp_fields[] = {{1, "baton", STRING, NULL, NULL, 0, true},
                                           {2, "base_url", STRING, NULL, NULL, 0, true}};
static const Message cursor_resp = MESSAGE_OF(NULL, cursor_resp_fields);

static const Field begin_fields[] = {{1, "step", INT, NULL, NULL, 0, 0},
                                     {2, "cols", MESSAGE, &col, NULL, true, 0}};
static const Message step_begin = MESSAGE_OF(NULL, begin_fields);
static const Field end_fields[] = {{1, "affected_row_count", INT, NULL, NULL, 0, 0},
                                   {2, "last_insert_rowid", ZIGZAG, NULL, NULL, 0, true}};
static const Message step_end = MESSAGE_OF(NULL, end_fields);
static const Field step_error_fields[] = {{1, "step", INT, NULL, NULL, 0, 0},
                                          {2, "error", MESSAGE, &error, NULL, 0, 0}};
static const Message step_error = MESSAGE_OF(NULL, step_error_fields);
static const Field entry_fields[] = {
    {1, NULL, MESSAGE, &step_begin, "step_begin", 0, 0},
    {2, NULL, MESSAGE, &step_end, "step_end", 0, 0},
    {3, NULL, MESSAGE, &step_error, "step_error", 0, 0},
    {4, "row", ROW, NULL, "row", 0, 0},
    {5, "error", MESSAGE, &error, "error", 0, 0},
};
static const Message entry = MESSAGE_OF("", entry_fields);
static const Field fetched_fields[] = {{1, "entries", MESSAGE, &entry, NULL, true, 0},
                                       {2, "done", BOOLEAN, NULL, NULL, 0, 0}};
static const Message fetched = MESSAGE_OF(NULL, fetched_fields);

static const Field response_fields[] = {
    {1, "request_id", INT, NULL, NULL, 0, 0},
    {2, NULL, MESSAGE, &nothing, "open_stream", 0, 0},
    {3, NULL, MESSAGE, &nothing, "close_stream", 0, 0},
    {4, NULL, MESSAGE, &has_result, "execute", 0, 0},
    {5, NULL, MESSAGE, &has_results, "batch", 0, 0},
    {6, NULL, MESSAGE, &nothing, "open_cursor", 0, 0},
    {7, NULL, MESSAGE, &nothing, "close_cursor", 0, 0},
    {8, NULL, MESSAGE, &fetched, "fetch_cursor", 0, 0},
    {11, NULL, MESSAGE, &nothing, "store_sql", 0, 0},
    {12, NULL, MESSAGE, &nothing, "close_sql", 0, 0},
};
static const Message response = MESSAGE_OF("response", response_fields);
static const Field response_error_fields[] = {{1, "request_id", INT, NULL, NULL, 0, 0},
                                              {2, "error", MESSAGE, &error, NULL, 0, 0}};
static const Message response_error = MESSAGE_OF(NULL, response_error_fields);
static const Field server_fields[] = {
    {1, NULL, MESSAGE, &nothing, "hello_ok", 0, 0},
    {2, NULL, MESSAGE, &has_error, "hello_error", 0, 0},
    {3, NULL, MESSAGE, &response, "response_ok", 0, 0},
    {4, NULL, MESSAGE, &response_error, "response_error", 0, 0},
};
static const Message server_msg = MESSAGE_OF("", server_fields);

/* ---- bytes ---- */

static Err
number_put(Buf *out, u64 number)
{
    Err err = OK;
    for (; err == OK && number >= 0x80; number >>= 7)
        err = buf_append_byte(out, (u8)(number | 0x80));
    return err == OK ? buf_append_byte(out, (u8)number) : err;
}

bool
pb_varint_take(Slice *rest, u64 *value_out)
{
    *value_out = 0;
    for (u32 i = 0; i < 10 && i < rest->bytes; i++) {
        *value_out |= (u64)(rest->p[i] & 0x7f) << (7 * i);
        if (rest->p[i] >= 0x80) continue;
        *rest = SLICE(rest->p + i + 1, rest->bytes - i - 1);
        return true;
    }
    return false;
}

static u32
wire_of(Kind kind)
{
    return kind == INT || kind == BOOLEAN || kind == ZIGZAG ? 0 : kind == DOUBLE ? 1 : 2;
}

/* ---- JSON to Protobuf ---- */

static Err message_put(const Message *message, const JsonNode *node, Buf *out);

static Err
bytes_put(u32 number, Slice bytes, Buf *out)
{
    Err err = number_put(out, (u64)number << 3 | 2);
    if (err == OK) err = number_put(out, bytes.bytes);
    return err == OK ? buf_append(out, bytes.p, bytes.bytes) : err;
}

static Err
digits_put(const JsonNode *node, Buf *out)
{
    char digits[24] = {0};
    Slice text;
    if (!json_get_text(node, &text)) rt_sim_fail("the test sends no digits");
    memcpy(digits, text.p, MIN_OF(text.bytes, sizeof(digits) - 1));
    i64 number = strtoll(digits, NULL, 10);
    return number_put(out, (u64)number << 1 ^ (u64)(number >> 63));
}

static Err
one_put(const Field *field, const JsonNode *node, Buf *out)
{
    Buf inner = {0};
    Slice text;
    i64 number = 0;
    bool truth = false;
    Err err = OK;
    switch (field->kind) {
    case INT:
    case BOOLEAN:
        if (field->kind == INT ? !json_get_int(node, &number) : !json_get_bool(node, &truth))
            rt_sim_fail("the test sends no number");
        err = number_put(out, (u64)field->number << 3);
        return err == OK ? number_put(out, (u64)number + truth) : err;
    case ZIGZAG:
        err = number_put(out, (u64)field->number << 3);
        return err == OK ? digits_put(node, out) : err;
    case STRING:
        if (!json_get_text(node, &text)) rt_sim_fail("the test sends no text");
        return bytes_put(field->number, text, out);
    case MESSAGE:
        err = message_put(field->of, node, &inner);
        if (err == OK) err = bytes_put(field->number, buf_slice(&inner), out);
        buf_free(&inner);
        return err;
    default: rt_sim_fail("the test sends what it only reads");
    }
}

/* The field that the node's tag names. */
static Err
tagged_put(const Message *message, const JsonNode *node, Buf *out)
{
    Slice tag;
    if (!json_get_text(json_member(node, "type"), &tag)) rt_sim_fail("the test sends no type");
    for (u32 i = 0; i < message->count; i++) {
        const Field *field = &message->field[i];
        if (field->tag == NULL || !slice_equal(tag, SLICE(field->tag, strlen(field->tag))))
            continue;
        return one_put(field, field->name == NULL ? node : json_member(node, field->name), out);
    }
    rt_sim_fail("the test sends a strange %.*s", (int)tag.bytes, (const char *)tag.p);
}

static Err
message_put(const Message *message, const JsonNode *node, Buf *out)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < message->count; i++) {
        const Field *field = &message->field[i];
        if (field->tag != NULL) continue;
        const JsonNode *member = json_member(node, field->name);
        if (json_is_null(member)) continue;
        if (!field->repeated) {
            err = one_put(field, member, out);
            continue;
        }
        for (const JsonNode *item = member->u.first; err == OK && item != NULL; item = item->next)
            err = one_put(field, item, out);
    }
    if (err != OK || message->one == NULL) return err;
    return tagged_put(message, message->one[0] == 0 ? node : json_member(node, message->one), out);
}

Err
pb_request(PbWhat what, Slice json, Buf *out)
{
    static const Message *const messages[] = {
        [PB_PIPELINE] = &pipeline, [PB_CURSOR] = &cursor, [PB_CLIENT_MSG] = &client_msg};
    Arena arena;
    JsonNode *root = NULL;
    arena_init(&arena, NULL);
    Err err = json_parse(json, NULL, true, &arena, &root, NULL);
    if (err == ERR_SQL) rt_sim_fail("the test sends no JSON");
    if (err == OK) err = message_put(messages[what], root, out);
    arena_free(&arena);
    return err;
}

/* ---- Protobuf to JSON ---- */

typedef struct Seen {
    const Field *field;
    u64 number; /* Varint. */
    Slice bytes;
} Seen;

typedef struct Out {
    JsonWriter json;
    u32 steps;
} Out;

static void message_take(const Message *message, Slice bytes, Out *out);

/* The next field; what the table does not know fails the run. */
static bool
seen_take(const Message *message, Slice *rest, Seen *seen)
{
    u64 tag = 0, length = 8;
    if (rest->bytes == 0) return false;
    *seen = (Seen){0};
    if (!pb_varint_take(rest, &tag)) rt_sim_fail("an answer ends in a tag");
    for (u32 i = 0; i < message->count; i++)
        if (message->field[i].number == tag >> 3) seen->field = &message->field[i];
    if (seen->field == NULL || wire_of(seen->field->kind) != (tag & 7))
        rt_sim_fail("an answer has field %llu of wire type %llu", (unsigned long long)(tag >> 3),
                    (unsigned long long)(tag & 7));
    if ((tag & 7) == 0) {
        if (!pb_varint_take(rest, &seen->number)) rt_sim_fail("an answer ends in a number");
        return true;
    }
    if ((tag & 7) == 2 && !pb_varint_take(rest, &length)) rt_sim_fail("an answer has no length");
    if (length > rest->bytes) rt_sim_fail("an answer is too short");
    seen->bytes = SLICE(rest->p, length);
    *rest = SLICE(rest->p + length, rest->bytes - length);
    return true;
}

static void
row_write(Slice bytes, Out *out)
{
    static const Field one[] = {{1, "value", MESSAGE, &value, NULL, true, 0}};
    static const Message row = MESSAGE_OF(NULL, one);
    Seen seen;
    json_begin_array(&out->json);
    while (seen_take(&row, &bytes, &seen))
        message_take(&value, seen.bytes, out);
    json_end_array(&out->json);
}

static void
one_write(const Seen *seen, Out *out)
{
    char digits[24];
    JsonWriter *json = &out->json;
    switch (seen->field->kind) {
    case INT: json_write_int(json, (i64)seen->number); break;
    case BOOLEAN: json_write_bool(json, seen->number != 0); break;
    case ZIGZAG:
        snprintf(digits, sizeof(digits), "%lld",
                 (long long)(seen->number >> 1 ^ (0 - (seen->number & 1))));
        json_write_string(json, digits);
        break;
    case STRING: json_write_text(json, seen->bytes); break;
    case MESSAGE: message_take(seen->field->of, seen->bytes, out); break;
    case ROW: row_write(seen->bytes, out); break;
    case DOUBLE:
    case MAP: json_write_null(json); break;
    }
}

/* Entry number `at` of the map's entries. */
static void
entry_write(const Field *field, Slice bytes, u32 at, Out *out)
{
    const Field pair[] = {{1, "key", INT, NULL, NULL, 0, 0},
                          {2, "value", MESSAGE, field->of, NULL, 0, 0}};
    const Message of = MESSAGE_OF(NULL, pair), one = {NULL, field, 1};
    Slice found = SLICE_NONE;
    bool is_found = false;
    Seen seen, part;
    /* The other map of the message is skipped by its number. */
    while (bytes.bytes > 0) {
        Field any = *field;
        any.number = (u32)bytes.p[0] >> 3;
        const Message skip = {NULL, &any, 1};
        if (any.number != field->number) {
            (void)seen_take(&skip, &bytes, &seen);
            continue;
        }
        (void)seen_take(&one, &bytes, &seen);
        u64 key = 0;
        Slice value_bytes = SLICE_NONE;
        while (seen_take(&of, &seen.bytes, &part)) {
            if (part.field->number == 1) key = part.number;
            if (part.field->number == 2) value_bytes = part.bytes;
        }
        if (key >= out->steps)
            rt_sim_fail("a step %llu that was not asked", (unsigned long long)key);
        if (key != at) continue;
        if (is_found) rt_sim_fail("a step has two results");
        is_found = true;
        found = value_bytes;
    }
    if (is_found)
        message_take(field->of, found, out);
    else
        json_write_null(&out->json);
}

static void
missing_write(const Field *field, JsonWriter *json)
{
    if (field->is_null)
        json_write_null(json);
    else if (field->kind == STRING)
        json_write_string(json, "");
    else if (field->kind == BOOLEAN)
        json_write_bool(json, false);
    else if (field->kind == INT)
        json_write_int(json, 0);
    else
        rt_sim_fail("an answer has no %s", field->name);
}

/* A field that has a name of its own. */
static void
plain_write(const Message *message, const Field *field, Slice bytes, Out *out)
{
    Seen seen, last = {0};
    JsonWriter *json = &out->json;
    json_key(json, field->name);
    if (field->kind == MAP || field->repeated) json_begin_array(json);
    if (field->kind == MAP) {
        for (u32 i = 0; i < out->steps; i++)
            entry_write(field, bytes, i, out);
    } else {
        while (seen_take(message, &bytes, &seen)) {
            if (seen.field != field) continue;
            if (field->repeated) one_write(&seen, out);
            last = seen;
        }
        if (!field->repeated && last.field != NULL) one_write(&last, out);
        if (!field->repeated && last.field == NULL) missing_write(field, json);
    }
    if (field->kind == MAP || field->repeated) json_end_array(json);
}

static void members_take(const Message *message, Slice bytes, Out *out);

/* The tag and what goes with it, into the present object. */
static void
tagged_write(const Message *message, Slice bytes, Out *out)
{
    Seen seen, which = {0};
    while (seen_take(message, &bytes, &seen)) {
        if (seen.field->tag == NULL) continue;
        if (which.field != NULL)
            rt_sim_fail("an answer is %s and %s", which.field->tag, seen.field->tag);
        which = seen;
    }
    if (which.field == NULL) rt_sim_fail("an answer is of no kind");
    json_key(&out->json, "type");
    json_write_string(&out->json, which.field->tag);
    if (which.field->name == NULL) {
        members_take(which.field->of, which.bytes, out);
        return;
    }
    json_key(&out->json, which.field->name);
    one_write(&which, out);
}

static void
members_take(const Message *message, Slice bytes, Out *out)
{
    Seen seen;
    Slice all = bytes;
    while (seen_take(message, &all, &seen)) { /* Also of those without fields. */
    }
    for (u32 i = 0; i < message->count; i++)
        if (message->field[i].tag == NULL) plain_write(message, &message->field[i], bytes, out);
    if (message->one == NULL) return;
    if (message->one[0] != 0) {
        json_key(&out->json, message->one);
        json_begin_object(&out->json);
    }
    tagged_write(message, bytes, out);
    if (message->one[0] != 0) json_end_object(&out->json);
}

static void
message_take(const Message *message, Slice bytes, Out *out)
{
    json_begin_object(&out->json);
    members_take(message, bytes, out);
    json_end_object(&out->json);
}

Err
pb_answer(PbAnswer what, Slice bytes, u32 steps, Buf *json_out)
{
    static const Message *const messages[] = {[PB_PIPELINE_RESP] = &pipeline_resp,
                                              [PB_CURSOR_RESP] = &cursor_resp,
                                              [PB_CURSOR_ENTRY] = &entry,
                                              [PB_SERVER_MSG] = &server_msg};
    Out out = {.steps = steps};
    json_writer_init(&out.json, json_out);
    message_take(messages[what], bytes, &out);
    return json_writer_done(&out.json);
}
