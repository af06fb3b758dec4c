/*
 * decode_pb.c -- Hrana messages in Protobuf (proto3 wire format).
 *
 * A message is read field by field; unknown fields are skipped, a field that stands twice is read
 * again into the same place.  Nesting is bounded by HRANA_NESTING_MAX.
 */
#include <string.h>

#include "server/hrana/hrana.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

typedef struct Field {
    u32 number;
    u8 wire;
    u64 value;   /* VARINT, FIXED64 */
    Slice bytes; /* BYTES */
} Field;

typedef struct Reader {
    Slice rest;
    Arena *arena;
    HranaError *error;
    Err err; /* The first error. */
} Reader;

static bool
fail(Reader *reader)
{
    if (reader->err == OK) reader->err = hrana__bad(reader->error, true, "not a Protobuf message");
    return false;
}

static bool
pb_varint(Slice *rest, u64 *value_out)
{
    u64 value = 0;
    for (size_t i = 0; i < 10 && i < rest->bytes; i++) {
        u8 byte = rest->p[i];
        if (i == 9 && byte > 1) return false;
        value |= (u64)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) != 0) continue;
        *value_out = value;
        *rest = SLICE(rest->p + i + 1, rest->bytes - i - 1);
        return true;
    }
    return false;
}

/* The next field; false at the end and on an error. */
static bool
field_read(Reader *reader, Field *field)
{
    u64 tag, length;
    Slice *rest = &reader->rest;
    if (reader->err != OK || rest->bytes == 0) return false;
    if (!pb_varint(rest, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return fail(reader);
    *field = (Field){.number = (u32)(tag >> 3), .wire = (u8)(tag & 7)};
    switch (field->wire) {
    case WIRE_VARINT: return pb_varint(rest, &field->value) || fail(reader);
    case WIRE_FIXED64:
    case WIRE_FIXED32:
        length = field->wire == WIRE_FIXED64 ? 8 : 4;
        if (rest->bytes < length) return fail(reader);
        for (u64 i = 0; i < length; i++)
            field->value |= (u64)rest->p[i] << (8 * i);
        break;
    case WIRE_BYTES:
        if (!pb_varint(rest, &length) || length > rest->bytes) return fail(reader);
        field->bytes = SLICE(rest->p, length);
        break;
    default: return fail(reader);
    }
    *rest = SLICE(rest->p + length, rest->bytes - length);
    return true;
}

/* Is it that field, of that wire type?  Another wire type is an error. */
static bool
is_field(Reader *reader, const Field *field, u32 number, u8 wire)
{
    if (field->number != number) return false;
    return field->wire == wire || fail(reader);
}

static Reader
inner(const Reader *outer, Slice bytes)
{
    return (Reader){.rest = bytes, .arena = outer->arena, .error = outer->error};
}

/* Done with an inner message: its error is the outer's. */
static void
leave(Reader *outer, const Reader *done)
{
    if (outer->err == OK) outer->err = done->err;
}

/* How often a field stands in a message. */
static u32
field_count(const Reader *reader, u32 number)
{
    Reader copy = *reader;
    HranaError ignored;
    Field field;
    u32 count = 0;
    copy.error = &ignored;
    while (field_read(&copy, &field))
        count += field.number == number;
    return count;
}

static void *
array_new(Reader *reader, size_t bytes, u32 count)
{
    void *array = arena_alloc(reader->arena, bytes * ((size_t)count + 1));
    if (array == NULL && reader->err == OK) reader->err = ERR_NOMEM;
    return array;
}

static bool
text_check(Reader *reader, Slice text)
{
    return text.bytes == 0 || utf8_valid(text.p, text.bytes) || fail(reader);
}

/* ---- values and statements ---- */

static void
value_read(Reader *outer, Slice bytes, Cell *cell)
{
    Reader reader = inner(outer, bytes);
    Field field;
    f64 r;
    bool found = false;
    *cell = cell_null();
    while (field_read(&reader, &field)) {
        found |= field.number >= 1 && field.number <= 5;
        if (is_field(&reader, &field, 1, WIRE_BYTES)) {
            *cell = cell_null();
        } else if (is_field(&reader, &field, 2, WIRE_VARINT)) {
            *cell = cell_int((i64)(field.value >> 1) ^ -(i64)(field.value & 1));
        } else if (is_field(&reader, &field, 3, WIRE_FIXED64)) {
            memcpy(&r, &field.value, sizeof(r));
            *cell = cell_real(r);
        } else if (is_field(&reader, &field, 4, WIRE_BYTES)) {
            if (text_check(&reader, field.bytes))
                *cell = cell_text(field.bytes.p, field.bytes.bytes);
        } else if (is_field(&reader, &field, 5, WIRE_BYTES)) {
            *cell = cell_blob(field.bytes.p, field.bytes.bytes);
        }
    }
    if (!found && reader.err == OK)
        reader.err = hrana__bad(reader.error, false, "a value needs a type");
    leave(outer, &reader);
}

static void
named_read(Reader *outer, Slice bytes, HranaNamed *named)
{
    Reader reader = inner(outer, bytes);
    Field field;
    named->name = SLICE_LITERAL("");
    while (field_read(&reader, &field)) {
        if (is_field(&reader, &field, 1, WIRE_BYTES))
            named->name = field.bytes;
        else if (is_field(&reader, &field, 2, WIRE_BYTES))
            value_read(&reader, field.bytes, &named->value);
    }
    leave(outer, &reader);
}

static void
sql_text(Reader *reader, const Field *field, HranaSql *sql)
{
    if (!text_check(reader, field->bytes)) return;
    sql->has_text = true;
    sql->text = field->bytes;
}

static void
sql_id(const Field *field, HranaSql *sql)
{
    sql->has_id = true;
    sql->id = (i32)(u32)field->value;
}

static void
stmt_read(Reader *outer, Slice bytes, HranaStmt *stmt)
{
    Reader reader = inner(outer, bytes);
    Field field;
    u32 args = 0, named = 0;
    *stmt = (HranaStmt){.want_rows = true};
    stmt->arg_count = field_count(&reader, 3);
    stmt->named_count = field_count(&reader, 4);
    stmt->arg = array_new(&reader, sizeof(Cell), stmt->arg_count);
    stmt->named = array_new(&reader, sizeof(HranaNamed), stmt->named_count);
    while (field_read(&reader, &field)) {
        if (is_field(&reader, &field, 1, WIRE_BYTES))
            sql_text(&reader, &field, &stmt->sql);
        else if (is_field(&reader, &field, 2, WIRE_VARINT))
            sql_id(&field, &stmt->sql);
        else if (is_field(&reader, &field, 3, WIRE_BYTES))
            value_read(&reader, field.bytes, &stmt->arg[args++]);
        else if (is_field(&reader, &field, 4, WIRE_BYTES))
            named_read(&reader, field.bytes, &stmt->named[named++]);
        else if (is_field(&reader, &field, 5, WIRE_VARINT))
            stmt->want_rows = field.value != 0;
    }
    leave(outer, &reader);
}

/* ---- batches ---- */

static void cond_read(Reader *outer, Slice bytes, u32 depth, HranaCond **cond_out);

static void
conds_read(Reader *outer, Slice bytes, u32 depth, HranaCond *cond)
{
    Reader reader = inner(outer, bytes);
    Field field;
    HranaCond **link = &cond->first;
    while (field_read(&reader, &field)) {
        if (!is_field(&reader, &field, 1, WIRE_BYTES)) continue;
        cond_read(&reader, field.bytes, depth + 1, link);
        if (*link != NULL) link = &(*link)->next;
    }
    leave(outer, &reader);
}

static void
cond_field(Reader *reader, const Field *field, u32 depth, HranaCond *cond)
{
    if (is_field(reader, field, 1, WIRE_VARINT) || is_field(reader, field, 2, WIRE_VARINT)) {
        cond->kind = field->number == 1 ? COND_OK : COND_ERROR;
        cond->step = (u32)field->value;
    } else if (is_field(reader, field, 3, WIRE_BYTES)) {
        cond->kind = COND_NOT;
        cond_read(reader, field->bytes, depth + 1, &cond->first);
    } else if (is_field(reader, field, 4, WIRE_BYTES) || is_field(reader, field, 5, WIRE_BYTES)) {
        cond->kind = field->number == 4 ? COND_AND : COND_OR;
        conds_read(reader, field->bytes, depth, cond);
    } else if (is_field(reader, field, 6, WIRE_BYTES)) {
        cond->kind = COND_IS_AUTOCOMMIT;
    }
}

/* Depth is bounded by HRANA_NESTING_MAX. */
static void
cond_read(Reader *outer, Slice bytes, u32 depth, HranaCond **cond_out)
{
    Reader reader = inner(outer, bytes);
    Field field;
    bool found = false;
    *cond_out = NULL;
    if (depth > HRANA_NESTING_MAX) {
        outer->err = hrana__bad(outer->error, false, "conditions nest too deep");
        return;
    }
    HranaCond *cond = ARENA_NEW(reader.arena, HranaCond);
    if (cond == NULL) {
        outer->err = ERR_NOMEM;
        return;
    }
    while (field_read(&reader, &field)) {
        if (field.number < 1 || field.number > 6) continue;
        cond->first = NULL; /* The last member of the oneof counts. */
        cond_field(&reader, &field, depth, cond);
        found = true;
    }
    bool bare = cond->kind == COND_NOT && cond->first == NULL;
    if ((!found || bare) && reader.err == OK)
        reader.err = hrana__bad(reader.error, false, "a condition needs a type");
    *cond_out = cond;
    leave(outer, &reader);
}

static void
batch_read(Reader *outer, Slice bytes, HranaBatch *batch)
{
    Reader reader = inner(outer, bytes);
    Field field, part;
    u32 at = 0;
    batch->count = field_count(&reader, 1);
    batch->step = array_new(&reader, sizeof(HranaStep), batch->count);
    while (field_read(&reader, &field)) {
        if (!is_field(&reader, &field, 1, WIRE_BYTES)) continue;
        HranaStep *step = &batch->step[at++];
        Reader inside = inner(&reader, field.bytes);
        step->stmt.want_rows = true;
        while (field_read(&inside, &part)) {
            if (is_field(&inside, &part, 1, WIRE_BYTES))
                cond_read(&inside, part.bytes, 0, &step->cond);
            else if (is_field(&inside, &part, 2, WIRE_BYTES))
                stmt_read(&inside, part.bytes, &step->stmt);
        }
        leave(&reader, &inside);
    }
    leave(outer, &reader);
}

/* ---- requests ---- */

/* Where the parts of a request stand; 0: it has none. */
typedef struct Shape {
    u8 kind;
    u8 field; /* Of the oneof. */
    u8 stream_id, cursor_id, max_count, stmt, batch, sql, sql_id;
} Shape;

static const Shape http_shapes[] = {
    {.kind = HRANA_CLOSE, .field = 1},
    {.kind = HRANA_EXECUTE, .field = 2, .stmt = 1},
    {.kind = HRANA_BATCH, .field = 3, .batch = 1},
    {.kind = HRANA_SEQUENCE, .field = 4, .sql = 1, .sql_id = 2},
    {.kind = HRANA_DESCRIBE, .field = 5, .sql = 1, .sql_id = 2},
    {.kind = HRANA_STORE_SQL, .field = 6, .sql_id = 1, .sql = 2},
    {.kind = HRANA_CLOSE_SQL, .field = 7, .sql_id = 1},
    {.kind = HRANA_GET_AUTOCOMMIT, .field = 8},
};

static const Shape ws_shapes[] = {
    {.kind = HRANA_OPEN_STREAM, .field = 2, .stream_id = 1},
    {.kind = HRANA_CLOSE_STREAM, .field = 3, .stream_id = 1},
    {.kind = HRANA_EXECUTE, .field = 4, .stream_id = 1, .stmt = 2},
    {.kind = HRANA_BATCH, .field = 5, .stream_id = 1, .batch = 2},
    {.kind = HRANA_OPEN_CURSOR, .field = 6, .stream_id = 1, .cursor_id = 2, .batch = 3},
    {.kind = HRANA_CLOSE_CURSOR, .field = 7, .cursor_id = 1},
    {.kind = HRANA_FETCH_CURSOR, .field = 8, .cursor_id = 1, .max_count = 2},
    {.kind = HRANA_SEQUENCE, .field = 9, .stream_id = 1, .sql = 2, .sql_id = 3},
    {.kind = HRANA_DESCRIBE, .field = 10, .stream_id = 1, .sql = 2, .sql_id = 3},
    {.kind = HRANA_STORE_SQL, .field = 11, .sql_id = 1, .sql = 2},
    {.kind = HRANA_CLOSE_SQL, .field = 12, .sql_id = 1},
    {.kind = HRANA_GET_AUTOCOMMIT, .field = 13, .stream_id = 1},
};

static bool
is_part(Reader *reader, const Field *field, u8 number, u8 wire)
{
    return number != 0 && is_field(reader, field, number, wire);
}

static void
parts_read(Reader *outer, Slice bytes, const Shape *shape, HranaRequest *request)
{
    Reader reader = inner(outer, bytes);
    Field field;
    *request = (HranaRequest){.kind = shape->kind};
    request->stmt.want_rows = true;
    /* An id of 0 is not sent by proto3, where the field is not optional. */
    if (shape->kind == HRANA_STORE_SQL || shape->kind == HRANA_CLOSE_SQL)
        request->sql.has_id = true;
    if (shape->kind == HRANA_STORE_SQL) request->sql.has_text = true;
    while (field_read(&reader, &field)) {
        if (is_part(&reader, &field, shape->stream_id, WIRE_VARINT))
            request->stream_id = (i32)(u32)field.value;
        else if (is_part(&reader, &field, shape->cursor_id, WIRE_VARINT))
            request->cursor_id = (i32)(u32)field.value;
        else if (is_part(&reader, &field, shape->max_count, WIRE_VARINT))
            request->max_count = (u32)field.value;
        else if (is_part(&reader, &field, shape->stmt, WIRE_BYTES))
            stmt_read(&reader, field.bytes, &request->stmt);
        else if (is_part(&reader, &field, shape->batch, WIRE_BYTES))
            batch_read(&reader, field.bytes, &request->batch);
        else if (is_part(&reader, &field, shape->sql, WIRE_BYTES))
            sql_text(&reader, &field, &request->sql);
        else if (is_part(&reader, &field, shape->sql_id, WIRE_VARINT))
            sql_id(&field, &request->sql);
    }
    leave(outer, &reader);
}

static const Shape *
shape_find(const Shape *shapes, size_t count, u32 field)
{
    for (size_t i = 0; i < count; i++)
        if (shapes[i].field == field) return &shapes[i];
    return NULL;
}

Err
hrana__pb_msg(Slice bytes, Arena *arena, HranaMsg *msg_out, HranaError *error)
{
    Reader reader = {.rest = bytes, .arena = arena, .error = error};
    Field field, part;
    bool found = false, asked = false;
    *msg_out = (HranaMsg){0};
    while (field_read(&reader, &field)) {
        bool is_hello = is_field(&reader, &field, 1, WIRE_BYTES);
        if (!is_hello && !is_field(&reader, &field, 2, WIRE_BYTES)) continue;
        Reader inside = inner(&reader, field.bytes);
        found = true;
        msg_out->is_hello = is_hello;
        while (field_read(&inside, &part)) {
            const Shape *shape = shape_find(ws_shapes, COUNT_OF(ws_shapes), part.number);
            if (is_hello && is_field(&inside, &part, 1, WIRE_BYTES)) {
                msg_out->has_jwt = true;
                msg_out->jwt = part.bytes;
            } else if (!is_hello && is_field(&inside, &part, 1, WIRE_VARINT)) {
                msg_out->request_id = (i32)(u32)part.value;
            } else if (!is_hello && shape != NULL && part.wire == WIRE_BYTES) {
                parts_read(&inside, part.bytes, shape, &msg_out->request);
                asked = true;
            }
        }
        leave(&reader, &inside);
    }
    if (reader.err == OK && (!found || (!msg_out->is_hello && !asked)))
        return hrana__bad(error, false, "unknown type of a message");
    return reader.err;
}

static void
request_read(Reader *outer, Slice bytes, HranaRequest *request)
{
    Reader reader = inner(outer, bytes);
    Field field;
    bool found = false;
    while (field_read(&reader, &field)) {
        const Shape *shape = shape_find(http_shapes, COUNT_OF(http_shapes), field.number);
        if (shape == NULL || field.wire != WIRE_BYTES) continue;
        parts_read(&reader, field.bytes, shape, request);
        found = true;
    }
    if (!found && reader.err == OK)
        reader.err = hrana__bad(reader.error, false, "unknown type of a request");
    leave(outer, &reader);
}

static void
baton_take(const Field *field, HranaBody *body)
{
    body->has_baton = true;
    body->baton = field->bytes;
}

Err
hrana__pb_pipeline(Slice bytes, Arena *arena, HranaBody *body_out, HranaError *error)
{
    Reader reader = {.rest = bytes, .arena = arena, .error = error};
    Field field;
    u32 at = 0;
    *body_out = (HranaBody){.request_count = field_count(&reader, 2)};
    body_out->request = array_new(&reader, sizeof(HranaRequest), body_out->request_count);
    while (field_read(&reader, &field)) {
        if (is_field(&reader, &field, 1, WIRE_BYTES))
            baton_take(&field, body_out);
        else if (is_field(&reader, &field, 2, WIRE_BYTES))
            request_read(&reader, field.bytes, &body_out->request[at++]);
    }
    return reader.err;
}

Err
hrana__pb_cursor(Slice bytes, Arena *arena, HranaBody *body_out, HranaError *error)
{
    Reader reader = {.rest = bytes, .arena = arena, .error = error};
    Field field;
    *body_out = (HranaBody){0};
    while (field_read(&reader, &field)) {
        if (is_field(&reader, &field, 1, WIRE_BYTES))
            baton_take(&field, body_out);
        else if (is_field(&reader, &field, 2, WIRE_BYTES))
            batch_read(&reader, field.bytes, &body_out->batch);
    }
    return reader.err;
}
