/*
 * json_test.c -- SQL's JSON functions.
 *
 * Method: results recorded from SQLite 3.54.1; with a library that new, random documents (JSON,
 * JSON5 and damaged ones, as text and as JSONB) and random paths give the same results, subtypes
 * and errors there and here; random JSONB bytes are never read past their end.
 */
#include "unit/func/json_random.h"

enum { TRIALS = 3000 };

/* A bare word or number, as -> takes it. */
static Cell
random_arrow(Rng *rng, Buf *out)
{
    static const char *const words[] = {"a",  "b", "c d", "[0]", "[1]",  "0",
                                        "-1", "",  "[x]", "a.b", "e\"f", "[#-1]"};
    if (rng_below(rng, 2)) return random_path(rng, out);
    if (rng_below(rng, 3) == 0) return cell_int((i64)rng_below(rng, 6) - 3);
    buf_clear(out);
    put(out, words[rng_below(rng, COUNT_OF(words))]);
    return cell_text(out->p == NULL ? (const u8 *)"" : out->p, out->bytes);
}

static void
check_subtype(FuncOracle *o, sqlite3_stmt *stmt, const char *name, u32 argc, const Cell *argv)
{
    Cell got;
    for (u32 i = 0; i < argc; i++) {
        oracle_bind(stmt, (int)i + 1, &argv[i]);
    }
    Err err = func_oracle_call(o, name, argc, argv, &got);
    if (sqlite3_step(stmt) == SQLITE_ROW && err == OK && got.type != CELL_NULL) {
        assert_int_equal(got.subtype, sqlite3_column_int(stmt, 0));
    }
    sqlite3_reset(stmt);
}

/* What an argument is drawn from. */
typedef enum Draw { DRAW_DOCUMENT, DRAW_PATH, DRAW_ARROW, DRAW_VALUE, DRAW_LABEL, DRAW_FLAGS } Draw;

static const struct {
    const char *name;
    u32 argc;
    Draw draws[5];
} FUNCTIONS[] = {
    {"json", 1, {DRAW_DOCUMENT}},
    {"jsonb", 1, {DRAW_DOCUMENT}},
    {"json_array", 3, {DRAW_VALUE, DRAW_VALUE, DRAW_DOCUMENT}},
    {"jsonb_array", 3, {DRAW_VALUE, DRAW_VALUE, DRAW_DOCUMENT}},
    {"json_object", 4, {DRAW_LABEL, DRAW_VALUE, DRAW_LABEL, DRAW_DOCUMENT}},
    {"jsonb_object", 4, {DRAW_LABEL, DRAW_VALUE, DRAW_LABEL, DRAW_DOCUMENT}},
    {"json_object", 3, {DRAW_LABEL, DRAW_VALUE, DRAW_LABEL}},
    {"json_extract", 2, {DRAW_DOCUMENT, DRAW_PATH}},
    {"json_extract", 3, {DRAW_DOCUMENT, DRAW_PATH, DRAW_PATH}},
    {"jsonb_extract", 2, {DRAW_DOCUMENT, DRAW_PATH}},
    {"jsonb_extract", 3, {DRAW_DOCUMENT, DRAW_PATH, DRAW_PATH}},
    {"->", 2, {DRAW_DOCUMENT, DRAW_ARROW}},
    {"->>", 2, {DRAW_DOCUMENT, DRAW_ARROW}},
    {"json_array_length", 1, {DRAW_DOCUMENT}},
    {"json_array_length", 2, {DRAW_DOCUMENT, DRAW_PATH}},
    {"json_type", 1, {DRAW_DOCUMENT}},
    {"json_type", 2, {DRAW_DOCUMENT, DRAW_PATH}},
    {"json_valid", 1, {DRAW_DOCUMENT}},
    {"json_valid", 2, {DRAW_DOCUMENT, DRAW_FLAGS}},
    {"json_error_position", 1, {DRAW_DOCUMENT}},
    {"json_pretty", 1, {DRAW_DOCUMENT}},
    {"json_pretty", 2, {DRAW_DOCUMENT, DRAW_VALUE}},
    {"json_quote", 1, {DRAW_VALUE}},
    {"json_quote", 1, {DRAW_DOCUMENT}},
    {"json_insert", 3, {DRAW_DOCUMENT, DRAW_PATH, DRAW_VALUE}},
    {"json_insert", 2, {DRAW_DOCUMENT, DRAW_PATH}},
    {"jsonb_insert", 3, {DRAW_DOCUMENT, DRAW_PATH, DRAW_DOCUMENT}},
    {"json_replace", 5, {DRAW_DOCUMENT, DRAW_PATH, DRAW_VALUE, DRAW_PATH, DRAW_VALUE}},
    {"jsonb_replace", 3, {DRAW_DOCUMENT, DRAW_PATH, DRAW_VALUE}},
    {"json_set", 5, {DRAW_DOCUMENT, DRAW_PATH, DRAW_VALUE, DRAW_PATH, DRAW_DOCUMENT}},
    {"jsonb_set", 3, {DRAW_DOCUMENT, DRAW_PATH, DRAW_VALUE}},
    {"json_array_insert", 3, {DRAW_DOCUMENT, DRAW_PATH, DRAW_VALUE}},
    {"jsonb_array_insert", 3, {DRAW_DOCUMENT, DRAW_PATH, DRAW_VALUE}},
    {"json_remove", 3, {DRAW_DOCUMENT, DRAW_PATH, DRAW_PATH}},
    {"jsonb_remove", 2, {DRAW_DOCUMENT, DRAW_PATH}},
    {"json_patch", 2, {DRAW_DOCUMENT, DRAW_DOCUMENT}},
    {"jsonb_patch", 2, {DRAW_DOCUMENT, DRAW_DOCUMENT}},
};

static Cell
draw(Draw kind, Rng *rng, FuncOracle *o, Buf *out)
{
    u8 room[64];
    Cell cell;
    switch (kind) {
    case DRAW_DOCUMENT: return random_document(rng, o, out);
    case DRAW_PATH: return random_path(rng, out);
    case DRAW_ARROW: return random_arrow(rng, out);
    case DRAW_FLAGS: return cell_int((i64)rng_below(rng, 18));
    case DRAW_LABEL:
        if (rng_below(rng, 20) == 0) return cell_int(1);
        buf_clear(out);
        assert_int_equal(buf_append(out, room, random_text(rng, room)), OK);
        return cell_text(out->p == NULL ? (const u8 *)"" : out->p, out->bytes);
    default: break;
    }
    cell = random_cell(rng, room);
    if (cell.type < CELL_TEXT || (cell.flags & CELL_ZEROBLOB)) return cell;
    buf_clear(out);
    assert_int_equal(buf_append(out, room, cell.bytes), OK);
    /* No blob that looks like JSONB but is damaged: SQLite does not notice. */
    if (cell.type == CELL_BLOB && out->bytes > 0) out->p[0] = 0xFF;
    cell.u.p = out->p == NULL ? (const u8 *)"" : out->p;
    return cell;
}

static void
functions_agree_with_sqlite(void **state)
{
    (void)state;
    if (!oracle_is_new()) skip(); /* Too much is new; see the recorded ones. */
    FuncOracle o;
    func_oracle_open(&o);
    Rng rng;
    rng_seed(&rng, 81);
    Buf bufs[5] = {{0}};
    for (size_t f = 0; f < COUNT_OF(FUNCTIONS); f++) {
        char sql[160], plain[64];
        const char *name = FUNCTIONS[f].name;
        snprintf(plain, sizeof(plain), name[0] == '-' ? "\"%s\"" : "%s", name);
        sqlite3_stmt *stmt = func_oracle_stmt(&o, plain, FUNCTIONS[f].argc);
        assert_non_null(stmt);
        snprintf(sql, sizeof(sql), "SELECT subtype(%s(?1,?2,?3,?4,?5", plain);
        sql[strlen(sql) - 3 * (5 - FUNCTIONS[f].argc)] = 0;
        strcat(sql, "))");
        sqlite3_stmt *subtype = oracle_prepare(o.db, sql);
        for (u32 trial = 0; trial < TRIALS; trial++) {
            Cell argv[5];
            for (u32 a = 0; a < FUNCTIONS[f].argc; a++) {
                argv[a] = draw(FUNCTIONS[f].draws[a], &rng, &o, &bufs[a]);
            }
            func_oracle_check(&o, stmt, name, FUNCTIONS[f].argc, argv);
            check_subtype(&o, subtype, name, FUNCTIONS[f].argc, argv);
        }
        sqlite3_finalize(stmt);
        sqlite3_finalize(subtype);
    }
    for (u32 i = 0; i < 5; i++) {
        buf_free(&bufs[i]);
    }
    func_oracle_close(&o);
}

/* Values that come from json() are taken as JSON, not as text. */
static void
subtypes_count(void **state)
{
    (void)state;
    FuncOracle o;
    func_oracle_open(&o);
    Cell argv[3] = {cell_text("{\"a\":[]}", 8), cell_text("$.a[#]", 6), cell_text("[1,2]", 5)}, got;
    assert_int_equal(func_oracle_call(&o, "json_set", 3, argv, &got), OK);
    assert_string_equal((const char *)got.u.p, "{\"a\":[\"[1,2]\"]}");
    argv[2].subtype = 74;
    assert_int_equal(func_oracle_call(&o, "json_set", 3, argv, &got), OK);
    assert_string_equal((const char *)got.u.p, "{\"a\":[[1,2]]}");
    assert_int_equal(got.subtype, 74);
    assert_int_equal(func_oracle_call(&o, "json_array", 1, &argv[2], &got), OK);
    assert_string_equal((const char *)got.u.p, "[[1,2]]");
    assert_int_equal(func_oracle_call(&o, "json_quote", 1, &argv[2], &got), OK);
    assert_string_equal((const char *)got.u.p, "[1,2]");
    func_oracle_close(&o);
}

static const struct {
    const char *name, *args[5], *want; /* want: quote() of the result, or "!" and the error. */
} RECORDED[] = {
    {"json", {" {\"a\":[1,2.5,\"x\"],\"b\":null} "}, "'{\"a\":[1,2.5,\"x\"],\"b\":null}'"},
    {"json", {"{a:'x',b:.5,c:0x1F,}"}, "'{\"a\":\"x\",\"b\":0.5,\"c\":31}'"},
    {"json", {"bad{"}, "!malformed JSON"},
    {"json", {"[1,]"}, "'[1]'"},
    {"json", {"+Infinity"}, "'9e999'"},
    {"jsonb", {"{\"a\":[1,\"xyz\"]}"}, "X'9C17616B13313778797A'"},
    {"jsonb", {"\"it\\u0027s\""}, "X'9869745C753030323773'"},
    {"json_extract", {"{\"a\":{\"b\":[1,2,3]}}", "$.a.b[1]"}, "2"},
    {"json_extract", {"{\"a\":{\"b\":[1,2,3]}}", "$.a.b[#-1]"}, "3"},
    {"json_extract", {"{\"a\":{\"b\":[1,2,3]}}", "$.a"}, "'{\"b\":[1,2,3]}'"},
    {"json_extract", {"{\"a\":{\"b\":[1,2,3]}}", "$.x"}, "NULL"},
    {"json_extract", {"{\"a\":1}", "$.a", "$.b"}, "'[1,null]'"},
    {"json_extract", {"{\"a\":1}", "a"}, "!bad JSON path: 'a'"},
    {"json_extract", {"{\"a\":1}", "$["}, "NULL"},
    {"json_extract", {"\"\\u00e4\\n\"", "$"}, "'\303\244\012'"},
    {"->", {"{\"a\":\"x\"}", "a"}, "'\"x\"'"},
    {"->>", {"{\"a\":\"x\"}", "a"}, "'x'"},
    {"->", {"[1,2,3]", "$[1]"}, "'2'"},
    {"->>", {"[1,[2]]", "[1]"}, "'[2]'"},
    {"json_array_length", {"[1,2,3]"}, "3"},
    {"json_array_length", {"{\"a\":[1]}", "$.a"}, "1"},
    {"json_array_length", {"{\"a\":1}"}, "0"},
    {"json_type", {"[1]"}, "'array'"},
    {"json_type", {"{\"a\":1.5}", "$.a"}, "'real'"},
    {"json_type", {"{\"a\":1.5}", "$.b"}, "NULL"},
    {"json_valid", {"{\"a\":1}"}, "1"},
    {"json_valid", {"{a:1}"}, "0"},
    {"json_valid", {"{a:1}", "2"}, "1"},
    {"json_valid", {"{a:1}", "99"}, "!FLAGS parameter to json_valid() must be between 1 and 15"},
    {"json_error_position", {"{\"a\":1"}, "7"},
    {"json_error_position", {"[1,2 x]"}, "6"},
    {"json_error_position", {"\303\244 x"}, "1"},
    {"json_pretty",
     {"{\"a\":[1,{}],\"b\":{}}"},
     "'{\012    \"a\": [\012        1,\012        {}\012    ],\012    \"b\": {}\012}'"},
    {"json_pretty", {"[1,[2]]", "\011"}, "'[\012\0111,\012\011[\012\011\0112\012\011]\012]'"},
    {"json_quote", {"it's \"x\"\012"}, "'\"it''s \\\"x\\\"\\n\"'"},
    {"json_array", {"a", "1"}, "'[\"a\",\"1\"]'"},
    {"json_object", {"a", "x"}, "'{\"a\":\"x\"}'"},
    {"json_object", {"a"}, "!json_object() requires an even number of arguments"},
    {"json_insert", {"{\"a\":1}", "$.b", "x"}, "'{\"a\":1,\"b\":\"x\"}'"},
    {"json_insert", {"{\"a\":1}", "$.a", "x"}, "'{\"a\":1}'"},
    {"json_insert", {"[1]", "$[#]", "x"}, "'[1,\"x\"]'"},
    {"json_insert", {"{}", "$.a.b[0]", "x"}, "'{\"a\":{\"b\":[\"x\"]}}'"},
    {"json_insert", {"{}", "$.a"}, "!json_insert() needs an odd number of arguments"},
    {"json_replace", {"{\"a\":1}", "$.a", "x"}, "'{\"a\":\"x\"}'"},
    {"json_replace", {"{\"a\":1}", "$.b", "x"}, "'{\"a\":1}'"},
    {"json_set", {"{\"a\":1}", "$.a", "x", "$.c", "y"}, "'{\"a\":\"x\",\"c\":\"y\"}'"},
    {"json_array_insert", {"[1,2]", "$[1]", "x"}, "'[1,\"x\",2]'"},
    {"json_array_insert", {"{\"a\":1}", "$.a", "x"}, "!not an array element: '$.a'"},
    {"json_remove", {"{\"a\":1,\"b\":2}", "$.a"}, "'{\"b\":2}'"},
    {"json_remove", {"[1,2,3]", "$[1]", "$[0]"}, "'[3]'"},
    {"json_remove", {"[1]", "$"}, "NULL"},
    {"json_patch",
     {"{\"a\":1,\"b\":2}", "{\"a\":null,\"c\":{\"d\":null,\"e\":1}}"},
     "'{\"b\":2,\"c\":{\"e\":1}}'"},
    {"json_patch", {"[1]", "{\"a\":1}"}, "'{\"a\":1}'"},
    {"json_patch", {"{\"a\":1}", "[1]"}, "'[1]'"},
    {"jsonb_set", {"{\"a\":\"0123456789abc\"}", "$.a", "x"}, "X'4C17611A78'"},
    {"json", {"0xFFFFFFFFFFFFFFFF"}, "'18446744073709551615'"},
    {"->>", {"0xFFFFFFFFFFFFFFFF", "$"}, "1.8446744073709552e+19"},
    {"->>", {"9223372036854775808", "$"}, "9.2233720368547758e+18"},
    {"json", {"\"\\x41\\v\""}, "'\"\\u0041\\u000b\"'"},
    {"json", {"'a\"b'"}, "'\"a\\\"b\"'"},
};

static void
results_as_recorded(void **state)
{
    (void)state;
    FuncOracle o;
    func_oracle_open(&o);
    Buf quoted = {0};
    for (size_t i = 0; i < COUNT_OF(RECORDED); i++) {
        Cell argv[5], got;
        u32 argc = 0;
        for (; argc < 5 && RECORDED[i].args[argc] != NULL; argc++) {
            argv[argc] = cell_text(RECORDED[i].args[argc], strlen(RECORDED[i].args[argc]));
        }
        buf_clear(&quoted);
        if (func_oracle_call(&o, RECORDED[i].name, argc, argv, &got) != OK) {
            put(&quoted, "!");
            put(&quoted, err_message(&o.msg));
        } else {
            assert_int_equal(func_append_quoted(&quoted, &got), OK);
        }
        assert_int_equal(buf_append_byte(&quoted, 0), OK);
        assert_string_equal((const char *)quoted.p, RECORDED[i].want);
    }
    buf_free(&quoted);
    func_oracle_close(&o);
}

/* Random bytes as JSONB, in blocks of exact size. */
static void
damaged_binaries_are_read_within_bounds(void **state)
{
    (void)state;
    static const char *const names[] = {"json",        "jsonb",
                                        "json_type",   "json_array_length",
                                        "json_pretty", "json_error_position",
                                        "json_valid"};
    FuncOracle o;
    func_oracle_open(&o);
    Rng rng;
    rng_seed(&rng, 82);
    Buf document = {0}, path = {0};
    for (u32 trial = 0; trial < 30000; trial++) {
        Cell argv[3] = {random_document(&rng, &o, &document), random_path(&rng, &path),
                        cell_int(7)},
             got;
        if (argv[0].type != CELL_BLOB || document.bytes < 2) continue;
        u8 *exact = mem_alloc(document.bytes);
        memcpy(exact, document.p, document.bytes);
        exact[1 + rng_below(&rng, document.bytes - 1)] = (u8)rng_next(&rng);
        argv[0].u.p = exact;
        for (u32 n = 0; n < COUNT_OF(names); n++) {
            (void)func_oracle_call(&o, names[n], 1, argv, &got);
        }
        (void)func_oracle_call(&o, "json_extract", 2, argv, &got);
        (void)func_oracle_call(&o, "json_remove", 2, argv, &got);
        (void)func_oracle_call(&o, "json_set", 3, argv, &got);
        (void)func_oracle_call(&o, "json_insert", 3, argv, &got);
        argv[1] = argv[0];
        (void)func_oracle_call(&o, "json_patch", 2, argv, &got);
        mem_free(exact);
    }
    buf_free(&document);
    buf_free(&path);
    func_oracle_close(&o);
}

static void
depth_is_limited(void **state)
{
    (void)state;
    enum { DEEP = 1001 };
    FuncOracle o;
    func_oracle_open(&o);
    char *text = mem_alloc_zeroed(2 * DEEP + 1);
    memset(text, '[', DEEP);
    memset(text + DEEP, ']', DEEP);
    Cell argv[3] = {cell_text(text, 2 * DEEP)}, got;
    assert_int_equal(func_oracle_call(&o, "json", 1, argv, &got), ERR_SQL);
    argv[0] = cell_text(text + 1, 2 * DEEP - 2);
    assert_int_equal(func_oracle_call(&o, "json", 1, argv, &got), OK);
    Buf path = {0};
    put(&path, "$");
    for (u32 i = 0; i < DEEP; i++) {
        put(&path, ".a");
    }
    argv[0] = cell_text("{}", 2);
    argv[1] = cell_text(path.p, path.bytes);
    argv[2] = cell_int(1);
    assert_int_equal(func_oracle_call(&o, "json_set", 3, argv, &got), ERR_SQL);
    assert_string_equal(err_message(&o.msg), "JSON path too deep");
    buf_free(&path);
    mem_free(text);
    func_oracle_close(&o);
}

static void
groups_drop_their_first_member(void **state)
{
    (void)state;
    FuncOracle o;
    func_oracle_open(&o);
    const FuncDef *def = func_find(&o.table, SLICE_LITERAL("json_group_object"), 2, NULL);
    _Alignas(16) u8 group[128] = {0};
    assert_true(def->state_bytes <= sizeof(group));
    FuncCall call = {.def = def, .arena = &o.arena, .msg = &o.msg, .state = group};
    Cell rows[][2] = {{cell_text("a", 1), cell_int(1)},
                      {cell_null(), cell_int(2)},
                      {cell_text("c,\"", 3), cell_text("{,", 2)}},
         got;
    assert_int_equal(def->value(&call, &got), OK);
    assert_string_equal((const char *)got.u.p, "{}");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(def->step(&call, 2, rows[i]), OK);
    }
    assert_int_equal(def->value(&call, &got), OK);
    assert_string_equal((const char *)got.u.p, "{\"a\":1,\"c,\\\"\":\"{,\"}");
    assert_int_equal(def->inverse(&call, 2, rows[0]), OK);
    assert_int_equal(def->inverse(&call, 2, rows[1]), OK);
    assert_int_equal(def->value(&call, &got), OK);
    assert_string_equal((const char *)got.u.p, "{\"c,\\\"\":\"{,\"}");
    assert_int_equal(got.subtype, 74);
    Cell blob[2] = {cell_text("x", 1), cell_blob("zz", 2)};
    assert_int_equal(def->step(&call, 2, blob), ERR_SQL);
    assert_string_equal(err_message(&o.msg), "JSON cannot hold BLOB values");
    def->state_free(&call);
    func_oracle_close(&o);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_agree_with_sqlite),
        cmocka_unit_test(subtypes_count),
        cmocka_unit_test(results_as_recorded),
        cmocka_unit_test(damaged_binaries_are_read_within_bounds),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(groups_drop_their_first_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
