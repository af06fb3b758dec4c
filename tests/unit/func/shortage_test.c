/*
 * shortage_test.c -- functions when memory is short.
 *
 * Method: each call is repeated with its first, second, ... allocation failing until none fails any
 * more; it must answer with ERR_NOMEM, leak nothing, and at last give its result.
 */
#include "unit/func/func_oracle.h"

#define TEXT(t)                                                           \
    {                                                                     \
        .type = CELL_TEXT, .bytes = sizeof(t) - 1, .u.p = (const u8 *)(t) \
    }

static const struct {
    const char *name;
    u32 argc;
    Cell argv[4];
} CALLS[] = {
    {"json", 1, {TEXT("{\"a\":[1,{\"b\":'x'},[[]]],c:0x1f}")}},
    {"jsonb", 1, {TEXT("[1,2,{\"a\":\"long text that needs more than one byte of size\"}]")}},
    {"json_extract", 3, {TEXT("{\"a\":[1,{\"b\":2}]}"), TEXT("$.a[1].b"), TEXT("$.a")}},
    {"->>", 2, {TEXT("{\"a\\u0062\":\"x\\ny\"}"), TEXT("ab")}},
    {"json_set", 3, {TEXT("{\"a\":{}}"), TEXT("$.a.b.c[0]"), TEXT("x")}},
    {"json_remove", 2, {TEXT("[1,[2,3]]"), TEXT("$[1][0]")}},
    {"json_patch", 2, {TEXT("{\"a\":1,\"b\":{}}"), TEXT("{\"a\":null,\"b\":{\"c\":[1]}}")}},
    {"json_pretty", 1, {TEXT("{\"a\":[1,{}]}")}},
    {"json_object", 2, {TEXT("a"), TEXT("b\n")}},
    {"json_type", 2, {TEXT("[1]"), TEXT("$[x]")}}, /* Its error text needs memory too. */
    {"format",
     4,
     {TEXT("%s|%20.3f|%Q"), TEXT("abc"), {.type = CELL_REAL, .u.r = 1.5}, TEXT("i't")}},
    {"concat_ws", 3, {TEXT(","), TEXT("a"), {.type = CELL_INT, .u.i = 7}}},
    {"replace", 3, {TEXT("aXbXc"), TEXT("X"), TEXT("--")}},
    {"strftime", 2, {TEXT("%Y-%m-%d %f"), TEXT("2023-06-15 01:02:03.5")}},
    {"quote", 1, {TEXT("it's")}},
    {"hex", 1, {{.type = CELL_BLOB, .flags = CELL_ZEROBLOB, .bytes = 3}}},
};

static void
functions_survive_every_failing_allocation(void **state)
{
    (void)state;
    FuncOracle o;
    func_oracle_open(&o);
    for (size_t i = 0; i < COUNT_OF(CALLS); i++) {
        bool fired = true;
        for (u64 nth = 1; fired; nth++) {
            arena_free(&o.arena);
            err_clear(&o.msg);
            u64 live = mem_live_blocks();
            Cell got;
            mem_fail_arm(nth, false);
            Err err = func_oracle_call(&o, CALLS[i].name, CALLS[i].argc, CALLS[i].argv, &got);
            fired = mem_fail_fired();
            mem_fail_arm(0, false);
            /* A message that found no memory falls back to the code's own. */
            if (fired) assert_true(err == ERR_NOMEM || err == ERR_SQL);
            if (!fired) assert_true(err == (strcmp(CALLS[i].name, "json_type") ? OK : ERR_SQL));
            arena_free(&o.arena);
            err_clear(&o.msg);
            assert_int_equal(mem_live_blocks(), live);
        }
    }
    func_oracle_close(&o);
}

static const struct {
    const char *name;
    u32 argc;
} AGGREGATES[] = {{"group_concat", 2},      {"max", 1},
                  {"json_group_array", 1},  {"json_group_object", 2},
                  {"jsonb_group_array", 1}, {"sum", 1}};

static void
aggregates_survive_every_failing_allocation(void **state)
{
    (void)state;
    FuncOracle o;
    func_oracle_open(&o);
    const Cell rows[][2] = {{TEXT("a long enough text that it must be allocated"), TEXT("b")},
                            {TEXT("zz"), {.type = CELL_INT, .u.i = 5}}};
    for (size_t i = 0; i < COUNT_OF(AGGREGATES); i++) {
        const char *name = AGGREGATES[i].name;
        u32 argc = AGGREGATES[i].argc;
        const FuncDef *def = func_find(&o.table, SLICE(name, strlen(name)), argc, NULL);
        bool fired = true;
        for (u64 nth = 1; fired; nth++) {
            _Alignas(16) u8 room[256] = {0};
            FuncCall call = {.def = def,
                             .arena = &o.arena,
                             .msg = &o.msg,
                             .state = room,
                             .collation = &collation_binary};
            arena_free(&o.arena);
            u64 live = mem_live_blocks();
            mem_fail_arm(nth, false);
            Err err = def->step(&call, argc, rows[0]);
            if (err == OK) err = def->step(&call, argc, rows[1]);
            Cell got = cell_null();
            if (err == OK) err = def->value(&call, &got);
            fired = mem_fail_fired();
            mem_fail_arm(0, false);
            assert_int_equal(err, fired ? ERR_NOMEM : OK);
            if (def->state_free != NULL) def->state_free(&call);
            arena_free(&o.arena);
            assert_int_equal(mem_live_blocks(), live);
        }
    }
    func_oracle_close(&o);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_survive_every_failing_allocation),
        cmocka_unit_test(aggregates_survive_every_failing_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
