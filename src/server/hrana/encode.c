/*
 * encode.c -- results in JSON and Protobuf.
 *
 * A Protobuf message is written in place; when it ends, its length is put before it.  Messages nest
 * at most six deep here, and only rows are many, so the moves are cheap.
 */
#include <stdio.h>
#include <string.h>

#include "server/hrana/hrana.h"
#include "value/base64.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

void
hrana__writer_init(HranaWriter *writer, Buf *out, bool is_pb, u32 version, Server *server)
{
    *writer = (HranaWriter){.out = out, .is_pb = is_pb, .version = (u8)version, .server = server};
    json_writer_init(&writer->json, out);
}

Err
hrana__writer_done(const HranaWriter *writer)
{
    if (writer->err != OK || writer->is_pb) return writer->err;
    return json_writer_done(&writer->json);
}

HranaMark
hrana__mark(const HranaWriter *writer)
{
    return (HranaMark){writer->out->bytes, writer->json, writer->err};
}

void
hrana__back(HranaWriter *writer, HranaMark mark)
{
    writer->out->bytes = mark.bytes;
    writer->json = mark.json;
    writer->err = mark.err;
}

/* ---- Protobuf ---- */

static void
keep(HranaWriter *writer, Err err)
{
    if (writer->err == OK) writer->err = err;
}

static size_t
pb_put(u8 *to, u64 value)
{
    size_t bytes = 0;
    for (; value >= 0x80; value >>= 7)
        to[bytes++] = (u8)(value | 0x80);
    to[bytes++] = (u8)value;
    return bytes;
}

static void
raw_varint(HranaWriter *writer, u64 value)
{
    u8 bytes[10];
    size_t count = pb_put(bytes, value);
    keep(writer, buf_append(writer->out, bytes, count));
}

static void
tag(HranaWriter *writer, u32 field, u32 wire)
{
    raw_varint(writer, (u64)field << 3 | wire);
}

size_t
hrana__pb_begin(HranaWriter *writer, u32 field)
{
    if (!writer->is_pb) return 0;
    if (field > 0) tag(writer, field, WIRE_BYTES);
    return writer->out->bytes;
}

void
hrana__pb_end(HranaWriter *writer, size_t mark)
{
    u8 length[10];
    if (!writer->is_pb || writer->err != OK) return;
    Buf *out = writer->out;
    size_t bytes = out->bytes - mark, head = pb_put(length, bytes);
    keep(writer, buf_reserve(out, head));
    if (writer->err != OK) return;
    memmove(out->p + mark + head, out->p + mark, bytes);
    memcpy(out->p + mark, length, head);
    out->bytes += head;
}

void
hrana__pb_varint(HranaWriter *writer, u32 field, u64 value)
{
    if (!writer->is_pb) return;
    tag(writer, field, WIRE_VARINT);
    raw_varint(writer, value);
}

void
hrana__pb_bytes(HranaWriter *writer, u32 field, Slice bytes)
{
    if (!writer->is_pb) return;
    tag(writer, field, WIRE_BYTES);
    raw_varint(writer, bytes.bytes);
    if (bytes.bytes > 0) keep(writer, buf_append(writer->out, bytes.p, bytes.bytes));
}

/* A string has to be UTF-8: what is not becomes U+FFFD. */
static void
pb_text(HranaWriter *writer, u32 field, Slice text)
{
    if (text.bytes == 0 || utf8_valid(text.p, text.bytes)) {
        hrana__pb_bytes(writer, field, text);
        return;
    }
    tag(writer, field, WIRE_BYTES);
    size_t mark = hrana__pb_begin(writer, 0);
    const u8 *at = text.p, *end = text.p + text.bytes;
    while (at < end && writer->err == OK) {
        const u8 *from = at;
        u8 put[4];
        u32 code = utf8_next(&at, end);
        if (!utf8_valid(from, (size_t)(at - from))) code = 0xfffd;
        keep(writer, buf_append(writer->out, put, utf8_put(put, code)));
    }
    hrana__pb_end(writer, mark);
}

/* ---- errors ---- */

void
hrana__code(const Fault *fault, char *code_out, size_t code_bytes)
{
    const char *name = fault->name;
    if (strncmp(name, "SQLITE_", 7) == 0) {
        name = err_sqlite_name(fault->code & 0xff);
        if ((fault->code & 0xff) == 1)
            name = fault->is_input && fault->offset >= 0 ? "SQL_INPUT_ERROR" : "SQLITE_UNKNOWN";
    }
    snprintf(code_out, code_bytes, "%s", name);
}

/* The message in the words that clients match. */
static Err
message_of(const Fault *fault, const char *code, Buf *text)
{
    Slice words = fault__text(fault);
    bool ours = strncmp(fault->name, "SQLITE_", 7) != 0;
    Err err = OK;
    if (!ours) {
        bool input = strcmp(code, "SQL_INPUT_ERROR") == 0;
        err = buf_append_text(text, input ? "SQL input error: " : "SQLite error: ");
        if (err == OK) err = buf_append(text, words.p, words.bytes);
        if (err == OK && input) err = buf_printf(text, " (at offset %d)", fault->offset);
        return err;
    }
    return buf_append(text, words.p, words.bytes);
}

void
hrana__write_error(HranaWriter *writer, const Fault *fault)
{
    char code[48];
    Buf text = {0};
    hrana__code(fault, code, sizeof(code));
    keep(writer, message_of(fault, code, &text));
    if (writer->is_pb) {
        pb_text(writer, 1, buf_slice(&text));
        hrana__pb_bytes(writer, 2, SLICE(code, strlen(code)));
    } else {
        JsonWriter *json = &writer->json;
        json_begin_object(json);
        json_key(json, "message");
        json_write_text(json, buf_slice(&text));
        json_key(json, "code");
        json_write_string(json, code);
        if (strncmp(fault->name, "SQLITE_", 7) == 0 && (fault->code & 0xff) != 1) {
            json_key(json, "extended_code");
            json_write_string(json, fault->name);
        }
        json_end_object(json);
    }
    buf_free(&text);
}

/* ---- columns, rows, values ---- */

void
hrana__write_cols(HranaWriter *writer, const Stmt *stmt, u32 pb_field)
{
    u32 count = stmt_column_count(stmt);
    JsonWriter *json = &writer->json;
    if (!writer->is_pb) json_begin_array(json);
    for (u32 i = 0; i < count; i++) {
        const PlanColumn *column = stmt_column(stmt, i);
        const char *name = column->name != NULL ? column->name : "";
        if (writer->is_pb) {
            size_t mark = hrana__pb_begin(writer, pb_field);
            pb_text(writer, 1, SLICE(name, strlen(name)));
            if (column->decl_type != NULL)
                pb_text(writer, 2, SLICE(column->decl_type, strlen(column->decl_type)));
            hrana__pb_end(writer, mark);
            continue;
        }
        json_begin_object(json);
        json_key(json, "name");
        json_write_string(json, name);
        json_key(json, "decltype");
        if (column->decl_type != NULL)
            json_write_string(json, column->decl_type);
        else
            json_write_null(json);
        json_end_object(json);
    }
    if (!writer->is_pb) json_end_array(json);
}

/* The bytes of a blob; *zeros_out is to be freed. */
static Slice
blob_bytes(HranaWriter *writer, const Cell *cell, void **zeros_out)
{
    *zeros_out = NULL;
    if ((cell->flags & CELL_ZEROBLOB) == 0 || cell->bytes == 0)
        return SLICE(cell->u.p, cell->bytes);
    *zeros_out = mem_alloc_zeroed(cell->bytes);
    if (*zeros_out == NULL) keep(writer, ERR_NOMEM);
    return SLICE(*zeros_out, *zeros_out == NULL ? 0 : cell->bytes);
}

static void
json_blob(HranaWriter *writer, Slice bytes)
{
    Buf text = {0};
    JsonWriter *json = &writer->json;
    Err err = buf_append_byte(&text, '"');
    if (err == OK) err = base64_encode(bytes, false, &text);
    if (err == OK) err = buf_append_byte(&text, '"');
    keep(writer, err);
    json_key(json, "base64");
    json_write_raw(json, err == OK ? buf_slice(&text) : SLICE_LITERAL("\"\""));
    buf_free(&text);
}

static void
json_value(HranaWriter *writer, const Cell *cell)
{
    JsonWriter *json = &writer->json;
    char digits[24];
    void *zeros;
    json_begin_object(json);
    json_key(json, "type");
    switch ((CellType)cell->type) {
    case CELL_NULL: json_write_string(json, "null"); break;
    case CELL_INT:
        json_write_string(json, "integer");
        json_key(json, "value");
        snprintf(digits, sizeof(digits), "%lld", (long long)cell->u.i);
        json_write_string(json, digits);
        break;
    case CELL_REAL:
        json_write_string(json, "float");
        json_key(json, "value");
        /* Version 3 has a word for numbers that JSON lacks: null. */
        if (writer->version >= 3 && (cell->u.r - cell->u.r) != 0.0)
            json_write_null(json);
        else
            json_write_real(json, cell->u.r);
        break;
    case CELL_TEXT:
        json_write_string(json, "text");
        json_key(json, "value");
        json_write_text(json, SLICE(cell->u.p, cell->bytes));
        break;
    case CELL_BLOB:
        json_write_string(json, "blob");
        json_blob(writer, blob_bytes(writer, cell, &zeros));
        mem_free(zeros);
        break;
    }
    json_end_object(json);
}

static void
pb_value(HranaWriter *writer, const Cell *cell)
{
    size_t mark = hrana__pb_begin(writer, 1);
    void *zeros;
    switch ((CellType)cell->type) {
    case CELL_NULL: hrana__pb_bytes(writer, 1, SLICE_NONE); break;
    case CELL_INT: hrana__pb_varint(writer, 2, (u64)cell->u.i << 1 ^ (u64)(cell->u.i >> 63)); break;
    case CELL_REAL: {
        u8 bytes[8];
        u64 bits;
        memcpy(&bits, &cell->u.r, sizeof(bits));
        for (u32 i = 0; i < 8; i++)
            bytes[i] = (u8)(bits >> (8 * i));
        tag(writer, 3, WIRE_FIXED64);
        keep(writer, buf_append(writer->out, bytes, sizeof(bytes)));
        break;
    }
    case CELL_TEXT: pb_text(writer, 4, SLICE(cell->u.p, cell->bytes)); break;
    case CELL_BLOB:
        hrana__pb_bytes(writer, 5, blob_bytes(writer, cell, &zeros));
        mem_free(zeros);
        break;
    }
    hrana__pb_end(writer, mark);
}

void
hrana__write_row(HranaWriter *writer, const Stmt *stmt, u32 pb_field)
{
    u32 count = stmt_column_count(stmt);
    const Cell *row = stmt_row(stmt);
    if (writer->is_pb) {
        size_t mark = hrana__pb_begin(writer, pb_field);
        for (u32 i = 0; i < count; i++)
            pb_value(writer, &row[i]);
        hrana__pb_end(writer, mark);
        return;
    }
    json_begin_array(&writer->json);
    for (u32 i = 0; i < count; i++)
        json_value(writer, &row[i]);
    json_end_array(&writer->json);
}
