/*
 * wire_gen.c -- the generator of wire_fuzz: members, statements, batches, requests.
 *
 * The same calls write JSON and Protobuf.
 */
#include "wire_gen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 70u /* Beyond HRANA_NESTING_MAX. */

u32
gen_pick(Gen *gen, u32 below)
{
    if (gen->choices.bytes == 0) return 0;
    u32 choice = gen->choices.p[0] % below;
    gen->choices = SLICE(gen->choices.p + 1, gen->choices.bytes - 1);
    return choice;
}

/* An id below `below`, mostly one of those in use. */
static u32
pick_used(Gen *gen, u32 used, u32 below)
{
    u32 id = gen_pick(gen, below);
    if (used == 0 || gen_pick(gen, 24) == 9) return id;
    while ((used >> id & 1) == 0)
        id = (id + 1) % below;
    return id;
}

/* ---- members, in both encodings ---- */

static void
key(Gen *gen, const char *name)
{
    if (!gen->to.is_pb && name != NULL) json_key(&gen->to.json, name);
}

static size_t
message_begin(Gen *gen, const char *name, u32 field)
{
    key(gen, name);
    if (!gen->to.is_pb) json_begin_object(&gen->to.json);
    return hrana__pb_begin(&gen->to, field);
}

static void
message_end(Gen *gen, size_t mark)
{
    if (!gen->to.is_pb) json_end_object(&gen->to.json);
    hrana__pb_end(&gen->to, mark);
}

static void
array_begin(Gen *gen, const char *name)
{
    key(gen, name);
    if (!gen->to.is_pb) json_begin_array(&gen->to.json);
}

static void
array_end(Gen *gen)
{
    if (!gen->to.is_pb) json_end_array(&gen->to.json);
}

static void
put_int(Gen *gen, const char *name, u32 field, i64 value)
{
    key(gen, name);
    if (!gen->to.is_pb) json_write_int(&gen->to.json, value);
    hrana__pb_varint(&gen->to, field, (u64)value);
}

void
gen_text(Gen *gen, const char *name, u32 field, Slice text)
{
    key(gen, name);
    if (!gen->to.is_pb) json_write_text(&gen->to.json, text);
    hrana__pb_bytes(&gen->to, field, text);
}

/* The type of a JSON object; in Protobuf the field's number says it. */
static void
put_type(Gen *gen, const char *type)
{
    if (gen->to.is_pb) return;
    json_key(&gen->to.json, "type");
    json_write_string(&gen->to.json, type);
}

void
gen_spoil(Gen *gen)
{
    static const char *const names[] = {"sql",   "stmt",  "steps",     "args",  "type", "step",
                                        "value", "baton", "condition", "conds", "x",    "params"};
    if (gen_pick(gen, 50) != 7) return;
    gen->spoiled = true;
    if (gen->to.is_pb) {
        hrana__pb_varint(&gen->to, 1 + gen_pick(gen, 16), gen_pick(gen, 256));
        return;
    }
    json_key(&gen->to.json, names[gen_pick(gen, COUNT_OF(names))]);
    switch (gen_pick(gen, 4)) {
    case 0: json_write_null(&gen->to.json); break;
    case 1: json_write_int(&gen->to.json, (i64)gen_pick(gen, 256) - 128); break;
    case 2: json_write_string(&gen->to.json, "ok"); break;
    default:
        json_begin_array(&gen->to.json);
        json_end_array(&gen->to.json);
        break;
    }
}

/* ---- statements ---- */

static Slice
sql_pick(Gen *gen)
{
    static const char *const sql[] = {
        "SELECT 1",
        "SELECT ?1, ?2",
        "SELECT :a, @b, $c",
        "CREATE TABLE IF NOT EXISTS f(a, b)",
        "INSERT INTO f VALUES(?, ?) RETURNING *",
        "SELECT * FROM f LIMIT 5",
        "UPDATE f SET a = a + 1 WHERE b = ?",
        "DELETE FROM f",
        "DROP TABLE f",
        "BEGIN",
        "BEGIN IMMEDIATE",
        "BEGIN TRANSACTION READONLY",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT s",
        "RELEASE s",
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
         "SELECT i, hex(i) FROM n"),
        "SELECT zeroblob(2000000)",
        "SELECT 9e999, -9e999, x'00ff', 'a' || char(0) || 'b', 1 << 62",
        "CREATE TEMP TABLE mine(x)",
        "PRAGMA foreign_keys = on",
        "ATTACH 'other' AS o",
        "VACUUM INTO '../x'",
        "EXPLAIN SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT count(*) FROM weft_sessions",
        "SELEC",
        "",
        ";",
    };
    u32 which = gen_pick(gen, COUNT_OF(sql) + 1);
    if (which < COUNT_OF(sql)) return SLICE(sql[which], strlen(sql[which]));
    size_t wanted = gen_pick(gen, 40), bytes = MIN_OF(wanted, gen->choices.bytes);
    Slice text = SLICE(gen->choices.p, bytes);
    if (bytes > 0 && !utf8_valid(text.p, bytes)) text = SLICE_LITERAL("SELECT x");
    gen->choices = SLICE(gen->choices.p + bytes, gen->choices.bytes - bytes);
    return text;
}

static void
value_real(Gen *gen)
{
    static const f64 reals[] = {0.0, -0.0, 1.5, 1e308, 5e-324, -1e15};
    f64 value = reals[gen_pick(gen, COUNT_OF(reals))];
    if (gen->to.is_pb) {
        u8 bytes[9] = {3 << 3 | 1};
        memcpy(bytes + 1, &value, sizeof(value));
        if (buf_append(gen->to.out, bytes, sizeof(bytes)) != OK) gen->to.err = ERR_NOMEM;
        return;
    }
    put_type(gen, "float");
    json_key(&gen->to.json, "value");
    json_write_real(&gen->to.json, value);
}

static void
value_int(Gen *gen)
{
    static const i64 ints[] = {0, 1, -1, 255, I64_MAX, I64_MIN, (i64)1 << 53};
    char text[24];
    i64 value = ints[gen_pick(gen, COUNT_OF(ints))];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    put_type(gen, "integer");
    key(gen, "value");
    if (!gen->to.is_pb) json_write_string(&gen->to.json, text);
    hrana__pb_varint(&gen->to, 2, (u64)value << 1 ^ (u64)(value >> 63));
}

static void
value_put(Gen *gen, const char *name, u32 field)
{
    static const u8 blob[] = {0, 0xff, 10, 0x80};
    size_t mark = message_begin(gen, name, field);
    switch (gen_pick(gen, 5)) {
    case 0:
        put_type(gen, "null");
        hrana__pb_bytes(&gen->to, 1, SLICE_LITERAL(""));
        break;
    case 1: value_int(gen); break;
    case 2: value_real(gen); break;
    case 3:
        put_type(gen, "text");
        gen_text(gen, "value", 4, SLICE_LITERAL("\xc3\xa4\n\"text"));
        break;
    default:
        put_type(gen, "blob");
        key(gen, "base64");
        if (!gen->to.is_pb) json_write_base64(&gen->to.json, SLICE(blob, sizeof(blob)));
        hrana__pb_bytes(&gen->to, 5, SLICE(blob, sizeof(blob)));
        break;
    }
    gen_spoil(gen);
    message_end(gen, mark);
}

/* sql or sql_id; seldom both or none. */
static void
sql_put(Gen *gen, u32 text_field, u32 id_field)
{
    u32 which = gen_pick(gen, 50);
    bool by_id = which % 3 == 1 && gen->stored != 0, odd = which == 49;
    if (odd ? gen_pick(gen, 2) == 1 : !by_id) gen_text(gen, "sql", text_field, sql_pick(gen));
    if (odd || by_id) put_int(gen, "sql_id", id_field, pick_used(gen, gen->stored, 4));
}

static void
stmt_put(Gen *gen, const char *name, u32 field)
{
    static const char *const names[] = {"a", ":a", "@b", "$c", "none", ""};
    size_t mark = message_begin(gen, name, field);
    sql_put(gen, 1, 2);
    array_begin(gen, "args");
    for (u32 left = gen_pick(gen, 4); left > 0; left--)
        value_put(gen, NULL, 3);
    array_end(gen);
    array_begin(gen, "named_args");
    for (u32 left = gen_pick(gen, 8) / 3; left > 0; left--) {
        const char *which = names[gen_pick(gen, COUNT_OF(names))];
        size_t inner = message_begin(gen, NULL, 4);
        gen_text(gen, "name", 1, SLICE(which, strlen(which)));
        value_put(gen, "value", 2);
        message_end(gen, inner);
    }
    array_end(gen);
    bool want = gen_pick(gen, 4) != 1;
    key(gen, "want_rows");
    if (!gen->to.is_pb) json_write_bool(&gen->to.json, want);
    hrana__pb_varint(&gen->to, 5, want);
    gen_spoil(gen);
    message_end(gen, mark);
}

/* Nests as deep as choices and DEPTH_MAX allow. */
static void
cond_put(Gen *gen, const char *name, u32 field, u32 depth)
{
    size_t mark = message_begin(gen, name, field), inner;
    bool looks_back = gen->step > 0 || gen_pick(gen, 30) == 3;
    u32 kind = depth >= DEPTH_MAX ? 0 : gen_pick(gen, 7),
        below = looks_back ? gen->step + (gen->step == 0) : 1;
    if (kind < 2 && !looks_back) kind = 6;
    switch (kind) {
    case 0:
    case 1:
        put_type(gen, kind == 0 ? "ok" : "error");
        put_int(gen, "step", kind + 1, gen_pick(gen, below) * looks_back);
        break;
    case 4:
    case 5:
        put_type(gen, kind == 4 ? "and" : "or");
        inner = hrana__pb_begin(&gen->to, kind);
        array_begin(gen, "conds");
        for (u32 left = gen_pick(gen, 4); left > 0 && gen->choices.bytes > 0; left--)
            cond_put(gen, NULL, 1, depth + 1);
        array_end(gen);
        hrana__pb_end(&gen->to, inner);
        break;
    case 6:
        put_type(gen, "is_autocommit");
        hrana__pb_bytes(&gen->to, 6, SLICE_LITERAL(""));
        break;
    default:
        put_type(gen, "not");
        cond_put(gen, "cond", 3, depth + 1);
        break;
    }
    gen_spoil(gen);
    message_end(gen, mark);
}

void
gen_batch(Gen *gen, u32 field)
{
    size_t mark = message_begin(gen, "batch", field);
    array_begin(gen, "steps");
    gen->step = 0;
    for (u32 left = 1 + gen_pick(gen, 6); left > 0 && gen->choices.bytes > 0; left--) {
        size_t step = message_begin(gen, NULL, 1);
        if (gen_pick(gen, 3) == 1) cond_put(gen, "condition", 1, 0);
        stmt_put(gen, "stmt", 2);
        gen_spoil(gen);
        message_end(gen, step);
        gen->step++;
    }
    array_end(gen);
    gen_spoil(gen);
    message_end(gen, mark);
}

/* ---- requests of Hrana ---- */

static const struct {
    u8 kind, http, ws; /* HranaKind; the fields of the oneof, 0: not there. */
} kinds[] = {
    {HRANA_EXECUTE, 2, 4},         {HRANA_BATCH, 3, 5},        {HRANA_SEQUENCE, 4, 9},
    {HRANA_DESCRIBE, 5, 10},       {HRANA_STORE_SQL, 6, 11},   {HRANA_CLOSE_SQL, 7, 12},
    {HRANA_GET_AUTOCOMMIT, 8, 13}, {HRANA_OPEN_STREAM, 0, 2},  {HRANA_CLOSE_STREAM, 0, 3},
    {HRANA_OPEN_CURSOR, 0, 6},     {HRANA_CLOSE_CURSOR, 0, 7}, {HRANA_FETCH_CURSOR, 0, 8},
    {HRANA_CLOSE, 1, 0},
};

/* Store, open and close: an id that fits, mostly. */
static u32
id_taken(Gen *gen, u32 *used, u32 below, bool closes)
{
    u32 id = closes ? pick_used(gen, *used, below)
                    : pick_used(gen, ~*used & ((1u << below) - 1), below);
    *used = closes ? *used & ~(1u << id) : *used | 1u << id;
    return id;
}

static void
stream_id_put(Gen *gen, u8 kind)
{
    bool changes = kind == HRANA_OPEN_STREAM || kind == HRANA_CLOSE_STREAM;
    u32 id = changes ? id_taken(gen, &gen->streams, 3, kind == HRANA_CLOSE_STREAM)
                     : pick_used(gen, gen->streams, 3);
    put_int(gen, "stream_id", 1, id);
}

static void
request_body(Gen *gen, u8 kind, bool is_ws)
{
    bool on_stream = kind == HRANA_EXECUTE || kind == HRANA_BATCH || kind == HRANA_SEQUENCE ||
                     kind == HRANA_DESCRIBE || kind == HRANA_GET_AUTOCOMMIT ||
                     kind == HRANA_OPEN_STREAM || kind == HRANA_CLOSE_STREAM ||
                     kind == HRANA_OPEN_CURSOR;
    u32 after = is_ws ? 1 : 0;
    if (is_ws && on_stream) stream_id_put(gen, kind);
    switch (kind) {
    case HRANA_EXECUTE: stmt_put(gen, "stmt", 1 + after); break;
    case HRANA_BATCH: gen_batch(gen, 1 + after); break;
    case HRANA_SEQUENCE:
    case HRANA_DESCRIBE: sql_put(gen, 1 + after, 2 + after); break;
    case HRANA_STORE_SQL:
    case HRANA_CLOSE_SQL:
        put_int(gen, "sql_id", 1, id_taken(gen, &gen->stored, 4, kind == HRANA_CLOSE_SQL));
        if (kind == HRANA_STORE_SQL) gen_text(gen, "sql", 2, sql_pick(gen));
        break;
    case HRANA_OPEN_CURSOR:
        put_int(gen, "cursor_id", 2, id_taken(gen, &gen->cursors, 3, false));
        gen_batch(gen, 3);
        break;
    case HRANA_CLOSE_CURSOR:
        put_int(gen, "cursor_id", 1, id_taken(gen, &gen->cursors, 3, true));
        break;
    case HRANA_FETCH_CURSOR:
        put_int(gen, "cursor_id", 1, pick_used(gen, gen->cursors, 3));
        put_int(gen, "max_count", 2, 1 + gen_pick(gen, 200));
        break;
    default: break;
    }
    gen_spoil(gen);
}

/* Can it be asked now, and should it?  Seldom what cannot. */
static bool
is_timely(Gen *gen, u8 kind, bool is_ws)
{
    if (gen_pick(gen, 60) == 11) return true;
    switch (kind) {
    case HRANA_CLOSE: return false;
    case HRANA_CLOSE_SQL: return gen->stored != 0;
    case HRANA_STORE_SQL: return gen->stored != 15;
    case HRANA_OPEN_STREAM: return gen->streams != 7;
    case HRANA_OPEN_CURSOR: return gen->streams != 0 && gen->cursors != 7;
    case HRANA_CLOSE_CURSOR:
    case HRANA_FETCH_CURSOR: return gen->cursors != 0;
    default: return !is_ws || gen->streams != 0;
    }
}

static void
request_put(Gen *gen, const char *name, u32 http_field, bool is_ws)
{
    u32 at = gen_pick(gen, COUNT_OF(kinds));
    for (u32 i = 0; i < COUNT_OF(kinds); i++, at = (at + 1) % COUNT_OF(kinds))
        if ((is_ws ? kinds[at].ws : kinds[at].http) != 0 && is_timely(gen, kinds[at].kind, is_ws))
            break;
    size_t outer = is_ws ? 0 : hrana__pb_begin(&gen->to, http_field);
    size_t mark = message_begin(gen, name, is_ws ? kinds[at].ws : kinds[at].http);
    put_type(gen, hrana__kind_names[kinds[at].kind]);
    request_body(gen, kinds[at].kind, is_ws);
    message_end(gen, mark);
    if (!is_ws) hrana__pb_end(&gen->to, outer);
}

u32
gen_pipeline(Gen *gen)
{
    u32 asked = 0;
    array_begin(gen, "requests");
    for (u32 left = 1 + gen_pick(gen, 12); left > 0 && gen->choices.bytes > 0; left--, asked++)
        request_put(gen, NULL, 2, false);
    array_end(gen);
    return asked;
}

void
gen_close(Gen *gen)
{
    array_begin(gen, "requests");
    size_t outer = hrana__pb_begin(&gen->to, 2);
    size_t mark = message_begin(gen, NULL, 1);
    put_type(gen, "close");
    message_end(gen, mark);
    hrana__pb_end(&gen->to, outer);
    array_end(gen);
}

/* ---- messages of a WebSocket ---- */

void
gen_message(Gen *gen, i64 id, Buf *message)
{
    bool is_pb = gen->to.is_pb;
    buf_clear(message);
    hrana__writer_init(&gen->to, message, is_pb, 3, NULL);
    size_t mark = 0;
    if (is_pb) {
        mark = hrana__pb_begin(&gen->to, 2);
    } else {
        json_begin_object(&gen->to.json);
        put_type(gen, "request");
    }
    put_int(gen, "request_id", 1, id);
    request_put(gen, "request", 0, true);
    gen_spoil(gen);
    if (is_pb)
        hrana__pb_end(&gen->to, mark);
    else
        json_end_object(&gen->to.json);
    ASSERT(hrana__writer_done(&gen->to) == OK);
}

/* ---- Quack ---- */

static void
quack_value(Gen *gen, JsonWriter *json)
{
    switch (gen_pick(gen, 6)) {
    case 0: json_write_null(json); break;
    case 1: json_write_int(json, (i64)gen_pick(gen, 256) - 100); break;
    case 2: json_write_real(json, (f64)INFINITY); break;
    case 3: json_write_string(json, "text"); break;
    case 4: json_write_bool(json, true); break;
    default:
        json_begin_object(json);
        json_key(json, "base64");
        json_write_base64(json, SLICE_LITERAL("blob"));
        json_end_object(json);
        break;
    }
}

static void
quack_params(Gen *gen, JsonWriter *json)
{
    bool named = gen_pick(gen, 4) == 1;
    u32 count = gen_pick(gen, 4);
    if (named)
        json_begin_object(json);
    else
        json_begin_array(json);
    for (u32 i = 0; i < count; i++) {
        static const char *const names[] = {"a", "b", ":c", "d"};
        if (named) json_key(json, names[i]);
        quack_value(gen, json);
    }
    if (named)
        json_end_object(json);
    else
        json_end_array(json);
}

static void
quack_members(Gen *gen, JsonWriter *json)
{
    if (gen_pick(gen, 4) == 1) {
        json_key(json, "params");
        quack_params(gen, json);
    } else if (gen_pick(gen, 8) == 1) {
        json_key(json, "rows");
        json_begin_array(json);
        for (u32 left = gen_pick(gen, 5); left > 0; left--)
            quack_params(gen, json);
        json_end_array(json);
    }
    if (gen_pick(gen, 5) == 1) {
        json_key(json, "limit");
        json_write_int(json, (i64)gen_pick(gen, 10) - 1);
    }
}

bool
gen_quack(Gen *gen, u32 id)
{
    static const char *const names[] = {"q",    "q",      "q",   "prepare", "exec",
                                        "exec", "close",  "use", "script",  "token",
                                        "ping", "cancel", "quit"};
    JsonWriter *json = &gen->to.json;
    const char *name = names[gen_pick(gen, COUNT_OF(names))];
    json_begin_object(json);
    json_key(json, "id");
    json_write_int(json, id);
    json_key(json, name);
    if (strchr("qpsut", name[0]) != NULL && strcmp(name, "quit") != 0)
        json_write_text(json, sql_pick(gen));
    else if (strcmp(name, "cancel") == 0)
        json_begin_object(json), json_end_object(json);
    else
        json_write_int(json, 1 + gen_pick(gen, 3));
    if (strchr("qe", name[0]) != NULL) quack_members(gen, json);
    gen_spoil(gen);
    json_end_object(json);
    return strcmp(name, "quit") == 0;
}
