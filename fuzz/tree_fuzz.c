/*
 * tree_fuzz.c -- Hrana messages by structure: the input's bytes choose a message, not its text.
 *
 * Checked: the message, written as JSON and as Protobuf, is understood by both decoders, and both
 * understand the same; the checks and the resolution of stored SQL agree, too.  So random bytes
 * reach the depths that a mutated text seldom does.
 */
#include <stdio.h>
#include <string.h>

#include "server/hrana/hrana.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t bytes);

#define DEPTH_MAX 20u

typedef struct Tree {
    const u8 *at, *end; /* Choices not yet made. */
    JsonWriter json;
    HranaWriter pb;
} Tree;

/* 0 when there are no more, so that every message ends. */
static u32
choose(Tree *tree, u32 below)
{
    return tree->at < tree->end ? *tree->at++ % below : 0;
}

static i64
choose_number(Tree *tree)
{
    static const i64 edges[] = {0, 1, -1, 127, 128, -128, INT32_MAX, INT32_MIN, I64_MAX, I64_MIN};
    u32 which = choose(tree, 16);
    if (which < COUNT_OF(edges)) return edges[which];
    i64 number = 0;
    for (u32 i = 0; i < 8 && tree->at < tree->end; i++)
        number = (i64)((u64)number << 8 | *tree->at++);
    return number;
}

static Slice
choose_text(Tree *tree)
{
    static const char *const texts[] = {"",
                                        "SELECT 1",
                                        "INSERT INTO t VALUES(?, :a)",
                                        "\xC3\xA9\xE2\x82\xAC\xF0\x9F\xA6\x86",
                                        "quote\" back\\ line\n tab\t nul?",
                                        "BEGIN",
                                        "a text that is longer than most of the others"};
    const char *text = texts[choose(tree, COUNT_OF(texts))];
    return SLICE(text, strlen(text));
}

static u64
zigzag(i64 number)
{
    return (u64)number << 1 ^ (u64)(number >> 63);
}

/* ---- members, in both encodings ---- */

static void
put_int(Tree *tree, const char *key, u32 field, i64 number)
{
    json_key(&tree->json, key);
    json_write_int(&tree->json, number);
    hrana__pb_varint(&tree->pb, field, (u64)number);
}

static void
put_text(Tree *tree, const char *key, u32 field, Slice text)
{
    json_key(&tree->json, key);
    json_write_text(&tree->json, text);
    hrana__pb_bytes(&tree->pb, field, text);
}

/* Members that nobody knows are skipped. */
static void
put_unknown(Tree *tree)
{
    if (choose(tree, 8) != 7) return;
    json_key(&tree->json, "unknown");
    json_write_raw(&tree->json, SLICE_LITERAL("[{\"a\":[null,1.5e3]},true]"));
    hrana__pb_bytes(&tree->pb, 1000 + choose(tree, 100), SLICE_LITERAL("\x08\x01"));
    hrana__pb_varint(&tree->pb, 900, 5);
}

static void
put_value(Tree *tree, u32 field)
{
    JsonWriter *json = &tree->json;
    size_t mark = hrana__pb_begin(&tree->pb, field);
    char digits[24];
    i64 number;
    f64 real;
    Slice text;
    u8 fixed[9] = {3 << 3 | 1};
    json_begin_object(json);
    json_key(json, "type");
    switch (choose(tree, 5)) {
    case 1:
        number = choose_number(tree);
        snprintf(digits, sizeof(digits), "%lld", (long long)number);
        json_write_string(json, "integer");
        json_key(json, "value");
        json_write_string(json, digits);
        hrana__pb_varint(&tree->pb, 2, zigzag(number));
        break;
    case 2:
        real = (f64)choose_number(tree) / 8;
        memcpy(fixed + 1, &real, 8);
        json_write_string(json, "float");
        json_key(json, "value");
        json_write_real(json, real);
        if (buf_append(tree->pb.out, fixed, 9) != OK) tree->pb.err = ERR_NOMEM;
        break;
    case 3:
        text = choose_text(tree);
        json_write_string(json, "text");
        put_text(tree, "value", 4, text);
        break;
    case 4:
        text = choose_text(tree);
        json_write_string(json, "blob");
        json_key(json, "base64");
        json_write_base64(json, text);
        hrana__pb_bytes(&tree->pb, 5, text);
        break;
    default:
        json_write_string(json, "null");
        hrana__pb_end(&tree->pb, hrana__pb_begin(&tree->pb, 1));
        break;
    }
    json_end_object(json);
    hrana__pb_end(&tree->pb, mark);
}

static void
put_sql(Tree *tree, u32 field)
{
    if (choose(tree, 4) == 3)
        put_int(tree, "sql_id", field + 1, (i32)choose_number(tree));
    else
        put_text(tree, "sql", field, choose_text(tree));
}

static void
put_named(Tree *tree)
{
    json_key(&tree->json, "named_args");
    json_begin_array(&tree->json);
    for (u32 left = choose(tree, 4); left > 0; left--) {
        size_t mark = hrana__pb_begin(&tree->pb, 4);
        json_begin_object(&tree->json);
        put_text(tree, "name", 1, choose_text(tree));
        json_key(&tree->json, "value");
        put_value(tree, 2);
        put_unknown(tree);
        json_end_object(&tree->json);
        hrana__pb_end(&tree->pb, mark);
    }
    json_end_array(&tree->json);
}

static void
put_stmt(Tree *tree, u32 field)
{
    size_t mark = hrana__pb_begin(&tree->pb, field);
    json_key(&tree->json, "stmt");
    json_begin_object(&tree->json);
    put_sql(tree, 1);
    if (choose(tree, 2)) {
        json_key(&tree->json, "args");
        json_begin_array(&tree->json);
        for (u32 left = choose(tree, 6); left > 0; left--)
            put_value(tree, 3);
        json_end_array(&tree->json);
    }
    if (choose(tree, 3) == 2) put_named(tree);
    if (choose(tree, 2)) {
        bool want = choose(tree, 2) == 1;
        json_key(&tree->json, "want_rows");
        json_write_bool(&tree->json, want);
        hrana__pb_varint(&tree->pb, 5, want);
    }
    put_unknown(tree);
    json_end_object(&tree->json);
    hrana__pb_end(&tree->pb, mark);
}

/* The members of a condition; the message around it is the caller's. */
static void
put_cond(Tree *tree, u32 depth)
{
    static const char *const types[] = {"ok", "error", "not", "and", "or", "is_autocommit"};
    u32 kind = choose(tree, 6);
    if (depth == DEPTH_MAX && kind >= 2 && kind <= 4) kind = 0;
    json_begin_object(&tree->json);
    json_key(&tree->json, "type");
    json_write_string(&tree->json, types[kind]);
    size_t mark = kind >= 2 ? hrana__pb_begin(&tree->pb, kind + 1) : 0;
    if (kind < 2) put_int(tree, "step", kind + 1, choose(tree, 8));
    if (kind == 2) {
        json_key(&tree->json, "cond");
        put_cond(tree, depth + 1);
    } else if (kind == 3 || kind == 4) {
        json_key(&tree->json, "conds");
        json_begin_array(&tree->json);
        for (u32 left = choose(tree, 4); left > 0; left--) {
            size_t inner = hrana__pb_begin(&tree->pb, 1);
            put_cond(tree, depth + 1);
            hrana__pb_end(&tree->pb, inner);
        }
        json_end_array(&tree->json);
    }
    json_end_object(&tree->json);
    if (kind >= 2) hrana__pb_end(&tree->pb, mark);
}

static void
put_batch(Tree *tree, u32 field)
{
    size_t mark = hrana__pb_begin(&tree->pb, field);
    json_key(&tree->json, "batch");
    json_begin_object(&tree->json);
    json_key(&tree->json, "steps");
    json_begin_array(&tree->json);
    for (u32 left = choose(tree, 6); left > 0; left--) {
        size_t step = hrana__pb_begin(&tree->pb, 1);
        json_begin_object(&tree->json);
        if (choose(tree, 2)) {
            size_t cond = hrana__pb_begin(&tree->pb, 1);
            json_key(&tree->json, "condition");
            put_cond(tree, 0);
            hrana__pb_end(&tree->pb, cond);
        }
        put_stmt(tree, 2);
        json_end_object(&tree->json);
        hrana__pb_end(&tree->pb, step);
    }
    json_end_array(&tree->json);
    json_end_object(&tree->json);
    hrana__pb_end(&tree->pb, mark);
}

/* ---- requests ---- */

/* By carrier: the field of the request, 0 for those that it does not have. */
static const u8 http_field[HRANA_KINDS] = {1, 2, 3, 4, 5, 6, 7, 8};
static const u8 ws_field[HRANA_KINDS] = {
    [HRANA_EXECUTE] = 4,         [HRANA_BATCH] = 5,        [HRANA_SEQUENCE] = 9,
    [HRANA_DESCRIBE] = 10,       [HRANA_STORE_SQL] = 11,   [HRANA_CLOSE_SQL] = 12,
    [HRANA_GET_AUTOCOMMIT] = 13, [HRANA_OPEN_STREAM] = 2,  [HRANA_CLOSE_STREAM] = 3,
    [HRANA_OPEN_CURSOR] = 6,     [HRANA_CLOSE_CURSOR] = 7, [HRANA_FETCH_CURSOR] = 8};

static bool
has_stream(u32 kind)
{
    return kind != HRANA_STORE_SQL && kind != HRANA_CLOSE_SQL && kind != HRANA_CLOSE_CURSOR &&
           kind != HRANA_FETCH_CURSOR;
}

static void
put_request(Tree *tree, bool is_ws)
{
    const u8 *fields = is_ws ? ws_field : http_field;
    u32 kind = choose(tree, HRANA_KINDS);
    while (fields[kind] == 0)
        kind = (kind + 1) % HRANA_KINDS;
    size_t mark = hrana__pb_begin(&tree->pb, fields[kind]);
    u32 field = 1;
    json_begin_object(&tree->json);
    json_key(&tree->json, "type");
    json_write_string(&tree->json, hrana__kind_names[kind]);
    if (is_ws && has_stream(kind)) put_int(tree, "stream_id", field++, (i32)choose_number(tree));
    if (kind == HRANA_OPEN_CURSOR || kind == HRANA_CLOSE_CURSOR || kind == HRANA_FETCH_CURSOR)
        put_int(tree, "cursor_id", field++, (i32)choose_number(tree));
    if (kind == HRANA_FETCH_CURSOR) put_int(tree, "max_count", field++, choose(tree, 200));
    if (kind == HRANA_EXECUTE) put_stmt(tree, field);
    if (kind == HRANA_BATCH || kind == HRANA_OPEN_CURSOR) put_batch(tree, field);
    if (kind == HRANA_SEQUENCE || kind == HRANA_DESCRIBE) put_sql(tree, field);
    if (kind == HRANA_STORE_SQL || kind == HRANA_CLOSE_SQL)
        put_int(tree, "sql_id", 1, (i32)choose_number(tree));
    if (kind == HRANA_STORE_SQL) put_text(tree, "sql", 2, choose_text(tree));
    put_unknown(tree);
    json_end_object(&tree->json);
    hrana__pb_end(&tree->pb, mark);
}

static void
put_pipeline(Tree *tree)
{
    json_begin_object(&tree->json);
    if (choose(tree, 2)) put_text(tree, "baton", 1, choose_text(tree));
    json_key(&tree->json, "requests");
    json_begin_array(&tree->json);
    for (u32 left = choose(tree, 5); left > 0; left--) {
        size_t mark = hrana__pb_begin(&tree->pb, 2);
        put_request(tree, false);
        hrana__pb_end(&tree->pb, mark);
    }
    json_end_array(&tree->json);
    json_end_object(&tree->json);
}

static void
put_msg(Tree *tree)
{
    bool is_hello = choose(tree, 8) == 7;
    json_begin_object(&tree->json);
    json_key(&tree->json, "type");
    json_write_string(&tree->json, is_hello ? "hello" : "request");
    size_t mark = hrana__pb_begin(&tree->pb, is_hello ? 1 : 2);
    if (is_hello && choose(tree, 2)) put_text(tree, "jwt", 1, choose_text(tree));
    if (!is_hello) {
        put_int(tree, "request_id", 1, (i32)choose_number(tree));
        json_key(&tree->json, "request");
        put_request(tree, true);
    }
    hrana__pb_end(&tree->pb, mark);
    json_end_object(&tree->json);
}

/* ---- what was understood ---- */

static void
same_text(Slice a, Slice b)
{
    ASSERT(slice_equal(a, b));
}

static void
same_cell(const Cell *a, const Cell *b)
{
    ASSERT(a->type == b->type);
    if (a->type == CELL_INT) ASSERT(a->u.i == b->u.i);
    if (a->type == CELL_REAL) ASSERT(memcmp(&a->u.r, &b->u.r, 8) == 0);
    if (a->type == CELL_TEXT || a->type == CELL_BLOB)
        same_text(SLICE(a->u.p, a->bytes), SLICE(b->u.p, b->bytes));
}

static void
same_sql(const HranaSql *a, const HranaSql *b)
{
    ASSERT(a->has_text == b->has_text && a->has_id == b->has_id && a->id == b->id);
    same_text(a->text, b->text);
}

static void
same_stmt(const HranaStmt *a, const HranaStmt *b)
{
    same_sql(&a->sql, &b->sql);
    ASSERT(a->arg_count == b->arg_count && a->named_count == b->named_count);
    ASSERT(a->want_rows == b->want_rows);
    for (u32 i = 0; i < a->arg_count; i++)
        same_cell(&a->arg[i], &b->arg[i]);
    for (u32 i = 0; i < a->named_count; i++) {
        same_text(a->named[i].name, b->named[i].name);
        same_cell(&a->named[i].value, &b->named[i].value);
    }
}

static void
same_cond(const HranaCond *a, const HranaCond *b)
{
    for (; a != NULL && b != NULL; a = a->next, b = b->next) {
        ASSERT(a->kind == b->kind && a->step == b->step);
        same_cond(a->first, b->first);
    }
    ASSERT(a == NULL && b == NULL);
}

static void
same_request(const HranaRequest *a, const HranaRequest *b)
{
    ASSERT(a->kind == b->kind && a->stream_id == b->stream_id && a->cursor_id == b->cursor_id);
    ASSERT(a->max_count == b->max_count && a->batch.count == b->batch.count);
    if (a->kind == HRANA_EXECUTE) same_stmt(&a->stmt, &b->stmt);
    same_sql(&a->sql, &b->sql);
    for (u32 i = 0; i < a->batch.count; i++) {
        same_cond(a->batch.step[i].cond, b->batch.step[i].cond);
        same_stmt(&a->batch.step[i].stmt, &b->batch.step[i].stmt);
    }
    for (u32 version = 1; version <= 3; version++) {
        HranaError one = {0}, other = {0};
        Err err = hrana__check_request(a, version, &one);
        ASSERT(hrana__check_request(b, version, &other) == err);
        ASSERT(strcmp(one.text, other.text) == 0);
    }
}

static void
bodies_compare(Slice json, Slice pb, Arena *arena)
{
    HranaBody a = {0}, b = {0};
    HranaError error = {0};
    ASSERT(hrana__json_pipeline(json, arena, &a, &error) == OK);
    ASSERT(hrana__pb_pipeline(pb, arena, &b, &error) == OK);
    ASSERT(a.has_baton == b.has_baton && a.request_count == b.request_count);
    same_text(a.baton, b.baton);
    for (u32 i = 0; i < a.request_count; i++)
        same_request(&a.request[i], &b.request[i]);
}

static void
messages_compare(Slice json, Slice pb, Arena *arena)
{
    HranaMsg a = {0}, b = {0};
    HranaError error = {0};
    ASSERT(hrana__json_msg(json, arena, &a, &error) == OK);
    ASSERT(hrana__pb_msg(pb, arena, &b, &error) == OK);
    ASSERT(a.is_hello == b.is_hello && a.has_jwt == b.has_jwt && a.request_id == b.request_id);
    same_text(a.jwt, b.jwt);
    if (!a.is_hello) same_request(&a.request, &b.request);
}

int
LLVMFuzzerTestOneInput(const u8 *data, size_t bytes)
{
    Buf json = {0}, pb = {0};
    Arena arena;
    if (bytes < 2) return 0;
    Tree tree = {.at = data + 1, .end = data + bytes};
    arena_init(&arena, NULL);
    json_writer_init(&tree.json, &json);
    hrana__writer_init(&tree.pb, &pb, true, 3, NULL);
    bool is_msg = data[0] & 1;
    if (is_msg)
        put_msg(&tree);
    else
        put_pipeline(&tree);
    ASSERT(json_writer_done(&tree.json) == OK && tree.pb.err == OK);
    if (is_msg)
        messages_compare(buf_slice(&json), buf_slice(&pb), &arena);
    else
        bodies_compare(buf_slice(&json), buf_slice(&pb), &arena);
    arena_free(&arena);
    buf_free(&json);
    buf_free(&pb);
    return 0;
}
