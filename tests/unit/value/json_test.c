/*
 * json_test.c -- the strict JSON reader, the writer, base64.
 *
 * Method: a table of texts that are JSON (with their rewriting) and of texts that are not (with
 * the offset of the error); every prefix of a document is refused; random trees round-trip; every
 * allocation failure is survived.
 */
#include "unit/cmocka_all.h"
#include "value/base64.h"
#include "value/json.h"

/* Parse and write again; the caller frees `out`. */
static Err
rewrite(const char *text, size_t bytes, const JsonLimits *limits, Buf *out, JsonError *error)
{
    Arena arena;
    arena_init(&arena, NULL);
    JsonNode *root = NULL;
    Err err = json_parse(SLICE(text, bytes), limits, false, &arena, &root, error);
    if (err == OK) {
        JsonWriter writer;
        json_writer_init(&writer, out);
        json_write_node(&writer, root);
        err = json_writer_done(&writer);
    }
    if (err == OK) err = buf_append_byte(out, 0);
    arena_free(&arena);
    return err;
}

static void
json_texts_are_read(void **state)
{
    (void)state;
    static const char *cases[][2] = {
        {"null", "null"},
        {" true ", "true"},
        {"[]", "[]"},
        {"{}", "{}"},
        {"[1,-2, 3 ]", "[1,-2,3]"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"9223372036854775808", "9.2233720368547758e+18"},
        {"1.5e3", "1500.0"},
        {"1e999", "9e999"},
        {"-0", "0"},
        {"{\"a\":{\"b\":[{}]},\"c\":[[],[1]]}", "{\"a\":{\"b\":[{}]},\"c\":[[],[1]]}"},
        {"\"\\u00e4\\ud83d\\ude00\\n\\/\\\"\\\\\\u0001\"",
         "\"\xC3\xA4\xF0\x9F\x98\x80\\n/\\\"\\\\\\u0001\""},
        {"\"\xC3\xA4\"", "\"\xC3\xA4\""},
        {"\"\\b\\t\\f\\r\"", "\"\\b\\t\\f\\r\""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Buf out = {0};
        assert_int_equal(rewrite(cases[i][0], strlen(cases[i][0]), NULL, &out, NULL), OK);
        assert_string_equal((char *)out.p, cases[i][1]);
        buf_free(&out);
    }
}

static void
other_texts_are_refused_with_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t offset;
    } cases[] = {
        {"", 0},          {"nul", 0},         {"nulll", 4},       {"01", 0},        {"1.", 2},
        {"-", 1},         {"1e", 2},          {"+1", 0},          {"[1,]", 3},      {"[1 2]", 3},
        {"{\"a\" 1}", 5}, {"{a:1}", 1},       {"{\"a\":1,}", 7},  {"[1] x", 4},     {"\"a\nb\"", 2},
        {"\"\\x\"", 1},   {"\"\\ud800\"", 1}, {"\"\\udc00\"", 1}, {"\"\\u12\"", 1}, {"\"\xFF\"", 1},
        {"[1}", 2},       {"'a'", 0},         {"\"\\", 2},        {"[", 1},         {"NaN", 0},
        {"{\"a\":", 5},   {"]", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Buf out = {0};
        JsonError error;
        assert_int_equal(rewrite(cases[i].text, strlen(cases[i].text), NULL, &out, &error),
                         ERR_SQL);
        assert_int_equal(error.offset, cases[i].offset);
        assert_non_null(error.what);
        buf_free(&out);
    }
}

static void
every_prefix_is_refused(void **state)
{
    (void)state;
    const char *text = "{\"a\":[1,true,null,\"\\u00e4\\ud83d\\ude00\",{\"b\":{}}],\"c\":-1.5e-3}";
    for (size_t bytes = 0; bytes < strlen(text); bytes++) {
        /* A block of exactly that size, so that a sanitizer sees a read too far. */
        char *exact = mem_alloc(bytes == 0 ? 1 : bytes);
        memcpy(exact, text, bytes);
        Buf out = {0};
        JsonError error;
        assert_int_equal(rewrite(exact, bytes, NULL, &out, &error), ERR_SQL);
        assert_true(error.offset <= bytes);
        mem_free(exact);
        buf_free(&out);
    }
}

static void
limits_hold(void **state)
{
    (void)state;
    Buf out = {0};
    JsonError error;
    assert_int_equal(rewrite("[[[1]]]", 7, &(JsonLimits){.depth_max = 3}, &out, &error), OK);
    assert_int_equal(rewrite("[[[1]]]", 7, &(JsonLimits){.depth_max = 2}, &out, &error), ERR_LIMIT);
    assert_int_equal(error.offset, 2);
    assert_int_equal(rewrite("[1,2]", 5, &(JsonLimits){.nodes_max = 3}, &out, &error), OK);
    assert_int_equal(rewrite("[1,2]", 5, &(JsonLimits){.nodes_max = 2}, &out, &error), ERR_LIMIT);
    assert_int_equal(rewrite("[1,2]", 5, &(JsonLimits){.bytes_max = 4}, &out, &error), ERR_LIMIT);

    enum { DEEP = 100000 };
    char *deep = mem_alloc(DEEP);
    memset(deep, '[', DEEP);
    assert_int_equal(rewrite(deep, DEEP, NULL, &out, &error), ERR_LIMIT);
    assert_int_equal(error.offset, 1000);
    mem_free(deep);
    buf_free(&out);
}

static void
members_are_found(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena, NULL);
    JsonNode *root = NULL;
    Slice text = SLICE_LITERAL("{\"a\":1,\"b\":\"x\\u0000y\",\"a\":2.5,\"t\":true,\"n\":null}");
    assert_int_equal(json_parse(text, NULL, true, &arena, &root, NULL), OK);
    f64 r;
    i64 i;
    bool b;
    Slice s;
    assert_true(json_get_number(json_member(root, "a"), &r) && r == 2.5);
    assert_false(json_get_int(json_member(root, "a"), &i));
    assert_true(json_get_text(json_member(root, "b"), &s));
    assert_true(slice_equal(s, SLICE_LITERAL("x\0y")));
    assert_true(json_get_bool(json_member(root, "t"), &b) && b);
    assert_true(json_is_null(json_member(root, "n")));
    assert_true(json_is_null(json_member(root, "none")));
    assert_false(json_get_text(json_member(NULL, "x"), &s));
    arena_free(&arena);
}

static void
the_writer_sets_commas_and_mends_utf8(void **state)
{
    (void)state;
    Buf out = {0};
    JsonWriter w;
    json_writer_init(&w, &out);
    json_begin_object(&w);
    json_key(&w, "k\"");
    json_begin_array(&w);
    json_write_int(&w, 1);
    json_write_real(&w, 0.5);
    json_write_text(&w, SLICE_LITERAL("a\xFFz\xE2\x82"));
    json_write_base64(&w, SLICE_LITERAL("\0\1\2\3"));
    json_end_array(&w);
    json_key(&w, "e");
    json_begin_object(&w);
    json_end_object(&w);
    json_key(&w, "n");
    json_write_real(&w, (f64)__builtin_nanf(""));
    json_end_object(&w);
    assert_int_equal(json_writer_done(&w), OK);
    assert_int_equal(buf_append_byte(&out, 0), OK);
    assert_string_equal((char *)out.p,
                        "{\"k\\\"\":[1,0.5,\"a\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD\","
                        "\"AAECAw==\"],\"e\":{},\"n\":null}");
    buf_free(&out);
}

/* Write a random value of at most `depth` levels. */
static void
write_random(Rng *rng, JsonWriter *w, u32 depth)
{
    u32 kind = (u32)rng_below(rng, depth == 0 ? 4 : 6);
    u8 bytes[8];
    switch (kind) {
    case 0: json_write_null(w); break;
    case 1: json_write_int(w, (i64)rng_next(rng)); break;
    case 2: json_write_real(w, (f64)(i64)rng_next(rng) / 1024); break;
    case 3:
        for (u32 i = 0; i < sizeof(bytes); i++) {
            bytes[i] = (u8)rng_below(rng, 128);
        }
        json_write_text(w, SLICE(bytes, rng_below(rng, 8)));
        break;
    case 4:
        json_begin_array(w);
        for (u64 n = rng_below(rng, 5); n > 0; n--) {
            write_random(rng, w, depth - 1);
        }
        json_end_array(w);
        break;
    default:
        json_begin_object(w);
        for (u64 n = rng_below(rng, 5); n > 0; n--) {
            json_key(w, n % 2 ? "odd" : "e\tven");
            write_random(rng, w, depth - 1);
        }
        json_end_object(w);
    }
}

static void
random_trees_round_trip(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 3);
    for (u32 i = 0; i < 3000; i++) {
        Buf first = {0}, second = {0};
        JsonWriter w;
        json_writer_init(&w, &first);
        write_random(&rng, &w, 5);
        assert_int_equal(json_writer_done(&w), OK);
        assert_int_equal(rewrite((char *)first.p, first.bytes, NULL, &second, NULL), OK);
        assert_int_equal(second.bytes, first.bytes + 1);
        assert_memory_equal(first.p, second.p, first.bytes);
        buf_free(&first);
        buf_free(&second);
    }
}

static void
every_allocation_failure_is_survived(void **state)
{
    (void)state;
    const char *text = "{\"a\":[1,2,{\"b\":\"\\n\"}],\"c\":[[[]]]}";
    bool fired = true;
    for (u64 nth = 1; fired; nth++) {
        Buf out = {0};
        u64 live = mem_live_blocks();
        mem_fail_arm(nth, false);
        Err err = rewrite(text, strlen(text), NULL, &out, NULL);
        fired = mem_fail_fired();
        mem_fail_arm(0, false);
        assert_int_equal(err, fired ? ERR_NOMEM : OK);
        buf_free(&out);
        assert_int_equal(mem_live_blocks(), live);
    }
}

static void
halves_of_characters_are_mended_on_request(void **state)
{
    (void)state;
    static const char *const texts[][2] = {{"\"\\ud800\"", "\xEF\xBF\xBD"},
                                           {"\"\\udc00x\"", "\xEF\xBF\xBDx"},
                                           {"\"\\ud800\\u0041\"", "\xEF\xBF\xBD"
                                                                  "A"},
                                           {"\"\\ud800\\ud800\"", "\xEF\xBF\xBD\xEF\xBF\xBD"},
                                           {"\"\\ud83e\\udd86\"", "\xF0\x9F\xA6\x86"}};
    JsonLimits mend = {.mend = true};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        Arena arena;
        JsonNode *root = NULL;
        Slice text = SLICE(texts[i][0], strlen(texts[i][0]));
        arena_init(&arena, NULL);
        assert_int_equal(json_parse(text, &mend, true, &arena, &root, NULL), OK);
        assert_true(slice_equal(root->u.text, SLICE(texts[i][1], strlen(texts[i][1]))));
        Err strict = json_parse(text, NULL, true, &arena, &root, NULL);
        assert_int_equal(strict, i + 1 < COUNT_OF(texts) ? ERR_SQL : OK);
        arena_free(&arena);
    }
}

/* Whatever fails, what follows a node may be written as if nothing had. */
static void
a_node_that_fails_leaves_the_writer_whole(void **state)
{
    (void)state;
    Arena arena;
    JsonNode *node = NULL;
    arena_init(&arena, NULL);
    Slice text = SLICE_LITERAL(
        "{\"a\":[1,{\"b\":\"a text of more than a few bytes, again and again\"}]}");
    assert_int_equal(json_parse(text, NULL, true, &arena, &node, NULL), OK);
    for (u64 nth = 1;; nth++) {
        Buf out = {0};
        JsonWriter writer;
        mem_fail_arm(nth, false);
        json_writer_init(&writer, &out);
        json_begin_object(&writer);
        for (u32 i = 0; i < 10; i++) {
            json_key(&writer, "n");
            json_write_node(&writer, node);
        }
        json_end_object(&writer);
        bool fired = mem_fail_fired();
        mem_fail_arm(0, false);
        assert_int_equal(json_writer_done(&writer), fired ? ERR_NOMEM : OK);
        buf_free(&out);
        if (!fired) break;
    }
    arena_free(&arena);
}

static void
base64_round_trips_and_refuses(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 4);
    for (u32 i = 0; i < 2000; i++) {
        u8 bytes[40];
        size_t count = i < 40 ? i : (size_t)rng_below(&rng, 40);
        for (size_t k = 0; k < count; k++) {
            bytes[k] = (u8)rng_next(&rng);
        }
        Buf text = {0}, back = {0};
        assert_int_equal(base64_encode(SLICE(bytes, count), i % 2, &text), OK);
        if (i % 2) assert_int_equal(text.bytes % 4, 0);
        assert_int_equal(base64_decode(buf_slice(&text), &back), OK);
        assert_int_equal(back.bytes, count);
        if (count > 0) assert_memory_equal(back.p, bytes, count);
        buf_free(&text);
        buf_free(&back);
    }
    static const char *wrong[] = {
        "A", "AAAAA", "A=", "AA=", "A===", "AA A", "AA==AA==", "A*AA", "===="};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        Buf back = {0};
        assert_int_equal(base64_decode(SLICE(wrong[i], strlen(wrong[i])), &back), ERR_SQL);
        assert_int_equal(back.bytes, 0);
        buf_free(&back);
    }
    Buf url = {0};
    assert_int_equal(base64_decode(SLICE_LITERAL("-_8"), &url), OK);
    assert_memory_equal(url.p, "\xFB\xFF", 2);
    buf_free(&url);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_texts_are_read),
        cmocka_unit_test(other_texts_are_refused_with_the_place),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(members_are_found),
        cmocka_unit_test(the_writer_sets_commas_and_mends_utf8),
        cmocka_unit_test(random_trees_round_trip),
        cmocka_unit_test(every_allocation_failure_is_survived),
        cmocka_unit_test(halves_of_characters_are_mended_on_request),
        cmocka_unit_test(a_node_that_fails_leaves_the_writer_whole),
        cmocka_unit_test(base64_round_trips_and_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
