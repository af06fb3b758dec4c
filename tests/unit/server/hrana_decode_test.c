/*
 * hrana_decode_test.c -- Hrana requests out of JSON and Protobuf.
 *
 * Method: one message of each kind in both encodings must give the same structure; broken ones give
 * an error and say which kind.  Cut and damaged messages must never be read beyond their end
 * (ASan watches).
 */
#include <stdio.h>
#include <string.h>

#include "server/hrana/hrana.h"
#include "unit/cmocka_all.h"

static Slice
text_slice(const char *text)
{
    return SLICE(text, strlen(text));
}

/* Hexadecimal digits; anything else is skipped. */
static Slice
hex(const char *digits, u8 *to)
{
    size_t bytes = 0;
    i32 high = -1;
    for (; *digits != 0; digits++) {
        i32 value = *digits >= '0' && *digits <= '9'   ? *digits - '0'
                    : *digits >= 'a' && *digits <= 'f' ? *digits - 'a' + 10
                                                       : -1;
        if (value < 0) continue;
        if (high >= 0) to[bytes++] = (u8)(high << 4 | value);
        high = high >= 0 ? -1 : value;
    }
    return SLICE(to, bytes);
}

static void
assert_slice(Slice got, const char *wanted)
{
    assert_int_equal(got.bytes, strlen(wanted));
    assert_memory_equal(got.p, wanted, got.bytes);
}

static void
json_pipeline(void **state)
{
    (void)state;
    Arena arena;
    HranaBody body;
    HranaError error = {0};
    arena_init(&arena, NULL);
    static const char text[] =
        "{\"baton\":null,\"other\":1,\"requests\":[{\"type\":\"execute\",\"stmt\":{\"sql\":\"q\","
        "\"sql_id\":null,\"args\":[{\"type\":\"null\"},{\"type\":\"integer\",\"value\":"
        "\"-9223372036854775808\"},{\"type\":\"integer\",\"value\":7},{\"type\":\"float\","
        "\"value\":5},"
        "{\"type\":\"text\",\"value\":\"a\\u0000b\"},{\"type\":\"blob\",\"base64\":\"AP8\"},"
        "{\"type\":\"blob\",\"base64\":\"\"}],\"want_rows\":false}},{\"type\":\"close\"}]}";
    assert_int_equal(hrana__json_pipeline(text_slice(text), &arena, &body, &error), OK);
    assert_false(body.has_baton);
    assert_int_equal(body.request_count, 2);
    const HranaStmt *stmt = &body.request[0].stmt;
    assert_int_equal(body.request[0].kind, HRANA_EXECUTE);
    assert_int_equal(body.request[1].kind, HRANA_CLOSE);
    assert_true(stmt->sql.has_text && !stmt->sql.has_id && !stmt->want_rows);
    assert_int_equal(stmt->arg_count, 7);
    assert_int_equal(stmt->arg[0].type, CELL_NULL);
    assert_true(stmt->arg[1].u.i == INT64_MIN);
    assert_true(stmt->arg[2].u.i == 7);
    assert_int_equal(stmt->arg[3].type, CELL_REAL);
    assert_int_equal(stmt->arg[4].bytes, 3);
    assert_int_equal(stmt->arg[5].bytes, 2);
    assert_int_equal(stmt->arg[6].type, CELL_BLOB);
    assert_int_equal(hrana__check_request(&body.request[0], 2, &error), OK);
    arena_free(&arena);
}

static void
bad_json_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        bool is_syntax;
    } cases[] = {
        {"{", true},
        {"{\"requests\":[]", true},
        {"[]", false},
        {"{}", false},
        {"{\"requests\":1}", false},
        {"{\"requests\":[1]}", false},
        {"{\"requests\":[{\"type\":\"dance\"}]}", false},
        {"{\"requests\":[{\"type\":\"open_stream\",\"stream_id\":1}]}", false},
        {"{\"requests\":[{\"type\":\"execute\"}]}", false},
        {"{\"requests\":[{\"type\":\"execute\",\"stmt\":{\"sql\":1}}]}", false},
        {"{\"requests\":[{\"type\":\"execute\",\"stmt\":{\"sql\":\"x\",\"args\":[1]}}]}", false},
        {"{\"requests\":[{\"type\":\"execute\",\"stmt\":{\"sql\":\"x\",\"args\":[{\"type\":"
         "\"integer\",\"value\":\"9223372036854775808\"}]}}]}",
         false},
        {"{\"requests\":[{\"type\":\"execute\",\"stmt\":{\"sql\":\"x\",\"args\":[{\"type\":"
         "\"integer\",\"value\":\"1x\"}]}}]}",
         false},
        {"{\"requests\":[{\"type\":\"execute\",\"stmt\":{\"sql\":\"x\",\"args\":[{\"type\":"
         "\"float\",\"value\":null}]}}]}",
         false},
        {"{\"requests\":[{\"type\":\"execute\",\"stmt\":{\"sql\":\"x\",\"args\":[{\"type\":"
         "\"blob\",\"base64\":\"_-8\"}]}}]}",
         false},
        {"{\"requests\":[{\"type\":\"store_sql\",\"sql\":\"x\",\"sql_id\":4294967296}]}", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Arena arena;
        HranaBody body;
        HranaError error = {0};
        arena_init(&arena, NULL);
        Err err = hrana__json_pipeline(text_slice(cases[i].request), &arena, &body, &error);
        if (err != ERR_SQL) print_message("case %zu: %s\n", i, cases[i].request);
        assert_int_equal(err, ERR_SQL);
        assert_int_equal(error.is_syntax, cases[i].is_syntax);
        arena_free(&arena);
    }
}

static void
conditions_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *cond;
        u32 version;
        bool good;
    } cases[] = {
        {"{\"type\":\"ok\",\"step\":0}", 1, true},
        {"{\"type\":\"ok\",\"step\":1}", 1, false},
        {"{\"type\":\"error\",\"step\":0}", 1, true},
        {"{\"type\":\"not\",\"cond\":{\"type\":\"ok\",\"step\":2}}", 1, false},
        {"{\"type\":\"and\",\"conds\":[]}", 1, true},
        {"{\"type\":\"or\",\"conds\":[{\"type\":\"ok\",\"step\":0},{\"type\":\"ok\",\"step\":9}]}",
         1, false},
        {"{\"type\":\"is_autocommit\"}", 2, false},
        {"{\"type\":\"is_autocommit\"}", 3, true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[512];
        Arena arena;
        HranaBody body;
        HranaError error = {0};
        snprintf(text, sizeof(text),
                 "{\"batch\":{\"steps\":[{\"stmt\":{\"sql\":\"a\"}},{\"stmt\":{\"sql\":\"b\"},"
                 "\"condition\":%s}]}}",
                 cases[i].cond);
        arena_init(&arena, NULL);
        assert_int_equal(hrana__json_cursor(text_slice(text), &arena, &body, &error), OK);
        Err err = hrana__check_batch(&body.batch, cases[i].version, &error);
        assert_int_equal(err == OK, cases[i].good);
        arena_free(&arena);
    }
}

static void
deep_conditions_are_refused(void **state)
{
    (void)state;
    Arena arena;
    HranaBody body;
    HranaError error = {0};
    Buf text = {0};
    arena_init(&arena, NULL);
    assert_int_equal(buf_append_text(&text, "{\"batch\":{\"steps\":[{\"stmt\":{\"sql\":\"a\"},"
                                            "\"condition\":"),
                     OK);
    for (u32 i = 0; i < 100; i++)
        assert_int_equal(buf_append_text(&text, "{\"type\":\"not\",\"cond\":"), OK);
    assert_int_equal(buf_append_text(&text, "{\"type\":\"and\"}"), OK);
    for (u32 i = 0; i < 100; i++)
        assert_int_equal(buf_append_byte(&text, '}'), OK);
    assert_int_equal(buf_append_text(&text, "}]}}"), OK);
    assert_int_equal(hrana__json_cursor(buf_slice(&text), &arena, &body, &error), ERR_SQL);
    buf_free(&text);
    arena_free(&arena);
}

/* The worked example of the protocol's text, and a request with every kind of value. */
static void
protobuf_pipeline(void **state)
{
    (void)state;
    u8 bytes[256];
    Arena arena;
    HranaBody body;
    HranaError error = {0};
    arena_init(&arena, NULL);
    Slice text = hex("12 0e 12 0c 0a 0a 0a 08 73656c6563742031  12 02 0a 00", bytes);
    assert_int_equal(hrana__pb_pipeline(text, &arena, &body, &error), OK);
    assert_int_equal(body.request_count, 2);
    assert_int_equal(body.request[0].kind, HRANA_EXECUTE);
    assert_slice(body.request[0].stmt.sql.text, "select 1");
    assert_true(body.request[0].stmt.want_rows);
    assert_int_equal(body.request[1].kind, HRANA_CLOSE);

    /* args: null, integer -1, float 1.5, text "a", blob 00; want_rows false; an unknown field 30.
     */
    text = hex("12 2b 12 29 0a 27 0a 01 71 1a 02 0a 00 1a 02 10 01 1a 09 19 000000000000f83f"
               " 1a 03 22 01 61 1a 03 2a 01 00 28 00 f0 01 05",
               bytes);
    bytes[1] = (u8)(text.bytes - 2);
    bytes[3] = (u8)(text.bytes - 4);
    bytes[5] = (u8)(text.bytes - 6);
    assert_int_equal(hrana__pb_pipeline(text, &arena, &body, &error), OK);
    const HranaStmt *stmt = &body.request[0].stmt;
    assert_int_equal(stmt->arg_count, 5);
    assert_int_equal(stmt->arg[0].type, CELL_NULL);
    assert_true(stmt->arg[1].u.i == -1);
    assert_true(stmt->arg[2].u.r > 1.4 && stmt->arg[2].u.r < 1.6);
    assert_int_equal(stmt->arg[3].type, CELL_TEXT);
    assert_int_equal(stmt->arg[4].type, CELL_BLOB);
    assert_false(stmt->want_rows);
    arena_free(&arena);
}

static void
protobuf_messages(void **state)
{
    (void)state;
    u8 bytes[256];
    Arena arena;
    HranaMsg msg;
    HranaError error = {0};
    arena_init(&arena, NULL);
    assert_int_equal(hrana__pb_msg(hex("0a 00", bytes), &arena, &msg, &error), OK);
    assert_true(msg.is_hello && !msg.has_jwt);
    assert_int_equal(hrana__pb_msg(hex("0a 03 0a 01 78", bytes), &arena, &msg, &error), OK);
    assert_slice(msg.jwt, "x");
    /* request 7: fetch_cursor {cursor 3, max 1000} */
    assert_int_equal(
        hrana__pb_msg(hex("12 09 08 07 42 05 08 03 10 e8 07", bytes), &arena, &msg, &error), OK);
    assert_int_equal(msg.request_id, 7);
    assert_int_equal(msg.request.kind, HRANA_FETCH_CURSOR);
    assert_int_equal(msg.request.cursor_id, 3);
    assert_int_equal(msg.request.max_count, 1000);
    /* open_stream 0: proto3 leaves the id out. */
    assert_int_equal(hrana__pb_msg(hex("12 04 08 01 12 00", bytes), &arena, &msg, &error), OK);
    assert_int_equal(msg.request.kind, HRANA_OPEN_STREAM);
    static const char *const bad[] = {"",      "12 00", "12 02 08 01",      "ff", "0a 05 00", "08",
                                      "00 00", "0b 00", "12 04 08 01 12 7f"};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_int_equal(hrana__pb_msg(hex(bad[i], bytes), &arena, &msg, &error), ERR_SQL);
    arena_free(&arena);
}

static void
damaged_messages_are_survived(void **state)
{
    (void)state;
    static const char batch[] =
        "0a 3a 0a 10 0a 02 08 00 12 0a 0a 08 73656c6563742031"
        "0a 26 0a 18 22 16 0a 02 08 00 0a 04 1a 02 32 00 0a 0a 2a 08 0a 02 10 00 "
        "0a 02 32 00 12 0a 0a 08 73656c6563742031";
    u8 good[256], bytes[256];
    Slice whole = hex(batch, good);
    Rng rng;
    rng_seed(&rng, 7);
    for (u32 round = 0; round < 20000; round++) {
        Arena arena;
        HranaBody body;
        HranaMsg msg;
        HranaError error = {0};
        size_t count = rng_below(&rng, whole.bytes + 1);
        u8 *copy = mem_alloc(count + 1); /* ASan sees the end. */
        assert_non_null(copy);
        memcpy(bytes, good, whole.bytes);
        for (u32 i = 0; i < round % 4; i++)
            bytes[rng_below(&rng, whole.bytes)] = (u8)rng_next(&rng);
        memcpy(copy, bytes, count);
        arena_init(&arena, NULL);
        Err err = hrana__pb_cursor(SLICE(copy, count), &arena, &body, &error);
        if (err == OK) err = hrana__check_batch(&body.batch, 3, &error);
        err = hrana__pb_pipeline(SLICE(copy, count), &arena, &body, &error);
        err = hrana__pb_msg(SLICE(copy, count), &arena, &msg, &error);
        (void)err;
        arena_free(&arena);
        mem_free(copy);
    }
}

static void
stored_texts(void **state)
{
    (void)state;
    HranaStore store = {0};
    for (i32 id = 0; id < 50; id++)
        assert_int_equal(hrana__store(&store, id, SLICE_LITERAL("select")), OK);
    hrana__unstore(&store, 7);
    hrana__unstore(&store, 700);
    assert_null(hrana__stored(&store, 7));
    assert_int_equal(hrana__stored(&store, 49)->bytes, 6);
    Arena arena;
    HranaError error = {0};
    HranaRequest request = {.kind = HRANA_EXECUTE};
    request.stmt.sql = (HranaSql){.has_id = true, .id = 49};
    arena_init(&arena, NULL);
    assert_int_equal(hrana__resolve(&request, &store, &arena, &error), OK);
    assert_slice(request.stmt.sql.text, "select");
    request.stmt.sql = (HranaSql){.has_id = true, .id = 7};
    assert_int_equal(hrana__resolve(&request, &store, &arena, &error), ERR_SQL);
    arena_free(&arena);
    hrana__store_free(&store);
}

/* Going back forgets what failed since, but not what is missing in front of the mark. */
static void
going_back_keeps_earlier_errors(void **state)
{
    (void)state;
    for (u32 is_pb = 0; is_pb < 2; is_pb++) {
        Buf out = {0};
        HranaWriter writer;
        hrana__writer_init(&writer, &out, is_pb != 0, 3, NULL);
        HranaMark mark = hrana__mark(&writer);
        writer.err = ERR_NOMEM;
        HranaMark later = hrana__mark(&writer);
        hrana__back(&writer, later);
        assert_int_equal(hrana__writer_done(&writer), ERR_NOMEM);
        hrana__back(&writer, mark);
        assert_int_equal(hrana__writer_done(&writer), OK);
        buf_free(&out);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(going_back_keeps_earlier_errors),
        cmocka_unit_test(json_pipeline),
        cmocka_unit_test(bad_json_is_told),
        cmocka_unit_test(conditions_are_checked),
        cmocka_unit_test(deep_conditions_are_refused),
        cmocka_unit_test(protobuf_pipeline),
        cmocka_unit_test(protobuf_messages),
        cmocka_unit_test(damaged_messages_are_survived),
        cmocka_unit_test(stored_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
