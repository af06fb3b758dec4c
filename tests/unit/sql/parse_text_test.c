/*
 * parse_text_test.c -- complete statements, keywords, quoting, the hash of names.
 *
 * Method: tables with SQLite's answers; every keyword in several spellings; quoting undone gives
 * the text back for random bytes.
 */
#include "sql/parse/parse.h"
#include "unit/cmocka_all.h"

static void
complete_as_sqlite_judges(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool complete;
    } cases[] = {
        {"", false},
        {"  -- x", false},
        {";", true},
        {"SELECT 1", false},
        {"SELECT 1;", true},
        {"SELECT 1; ", true},
        {"SELECT 1; -- x", false},
        {"SELECT 1; -- x\n", true},
        {"SELECT $a(';", false},
        {"SELECT 'it''s;';", true},
        {"SELECT );", true},
        {"SELECT 1;/**/", true},
        {"SELECT 1;/*/", false},
        {"SELECT 1; /* x */", true},
        {"SELECT 1; /* x", false},
        {"SELECT 1; SELECT 2", false},
        {"SELECT ';", false},
        {"SELECT ';';", true},
        {"SELECT \";", false},
        {"SELECT [;", false},
        {"SELECT `;`;", true},
        {"CREATE TRIGGER a BEGIN SELECT 1;", false},
        {"CREATE TRIGGER a BEGIN SELECT 1; END;", true},
        {"CREATE TRIGGER a BEGIN SELECT 1; END", false},
        {"CREATE TEMP TRIGGER a BEGIN SELECT 1; END; x", false},
        {"CREATE TEMPORARY TRIGGER a BEGIN SELECT CASE END; END;", true},
        {"EXPLAIN CREATE TRIGGER a BEGIN b;", false},
        {"EXPLAIN QUERY PLAN CREATE TRIGGER a BEGIN b; end;", true},
        {"CREATE TABLE trigger;", true},
        {"x CREATE TRIGGER a BEGIN b;", true},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Slice text = SLICE(cases[i].text, strlen(cases[i].text));
        if (sql_complete(text) != cases[i].complete) fail_msg("%s", cases[i].text);
    }
}

static void
keywords_in_any_case_and_nothing_else(void **state)
{
    (void)state;
    assert_int_equal(sql_keyword_count(), 147);
    for (u32 i = 0; i < sql_keyword_count(); i++) {
        Slice word = sql_keyword_name(i);
        u8 other[20];
        assert_true(word.bytes >= 2 && word.bytes < sizeof(other));
        assert_true(sql_keyword_check(word));
        for (size_t k = 0; k < word.bytes; k++)
            other[k] = word.p[k] == '_' || k % 2 == 0 ? word.p[k] : (u8)(word.p[k] | 0x20);
        assert_true(sql_keyword_check(SLICE(other, word.bytes)));
        other[word.bytes] = 'z';
        assert_false(sql_keyword_check(SLICE(other, word.bytes + 1)));
        other[word.bytes - 1] ^= 0x80;
        assert_false(sql_keyword_check(SLICE(other, word.bytes)));
    }
    assert_null(sql_keyword_name(sql_keyword_count()).p);
    static const char *const none[] = {
        "", "a", "concurrent", "isolation", "level", "selec", "CURRENT\177DATE", "rowid", "true"};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_false(sql_keyword_check(SLICE(none[i], strlen(none[i]))));
}

static void
names_are_quoted_when_they_must(void **state)
{
    (void)state;
    static const struct {
        const char *name, *written;
    } cases[] = {
        {"abc", "abc"},           {"_a1$", "_a1$"},       {"", "\"\""},
        {"1a", "\"1a\""},         {"a b", "\"a b\""},     {"a\"b", "\"a\"\"b\""},
        {"select", "\"select\""}, {"Abort", "\"Abort\""}, {"level", "\"level\""},
        {"\303\251", "\303\251"}, {"$a", "\"$a\""},
    };
    Buf buf = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        buf_clear(&buf);
        Slice name = SLICE(cases[i].name, strlen(cases[i].name));
        assert_int_equal(sql_name_append(&buf, name, false), OK);
        assert_int_equal(buf_append_byte(&buf, 0), OK);
        assert_string_equal((const char *)buf.p, cases[i].written);
    }
    buf_clear(&buf);
    assert_int_equal(sql_name_append(&buf, SLICE_LITERAL("a"), true), OK);
    assert_int_equal(buf.bytes, 3);
    buf_free(&buf);
}

static void
quoting_undone_gives_the_text(void **state)
{
    (void)state;
    Rng rng;
    rng_seed(&rng, 7);
    Arena arena;
    arena_init(&arena, NULL);
    for (u32 round = 0; round < 2000; round++) {
        u8 text[12];
        size_t bytes = rng_below(&rng, sizeof(text));
        for (size_t i = 0; i < bytes; i++)
            text[i] = (u8) "'\"a`["[rng_below(&rng, 5)];
        Buf buf = {0};
        assert_int_equal(round % 2 == 0 ? sql_string_append(&buf, SLICE(text, bytes))
                                        : sql_name_append(&buf, SLICE(text, bytes), true),
                         OK);
        assert_true(slice_equal(sql_dequote(&arena, buf_slice(&buf)), SLICE(text, bytes)));
        buf_free(&buf);
    }
    assert_true(slice_equal(sql_dequote(&arena, SLICE_LITERAL("[a]")), SLICE_LITERAL("a")));
    assert_true(slice_equal(sql_dequote(&arena, SLICE_LITERAL("abc")), SLICE_LITERAL("abc")));
    arena_free(&arena);
}

static void
equal_names_hash_alike(void **state)
{
    (void)state;
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    static const char upper[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (size_t bytes = 0; bytes < sizeof(lower); bytes++) {
        u32 hash = ast_name_hash(SLICE(lower, bytes));
        assert_int_equal(hash, ast_name_hash(SLICE(upper, bytes)));
        if (bytes > 0) assert_int_not_equal(hash, ast_name_hash(SLICE(lower, bytes - 1)));
        if (bytes > 0) assert_int_not_equal(hash, ast_name_hash(SLICE(lower + 1, bytes)));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complete_as_sqlite_judges),
        cmocka_unit_test(keywords_in_any_case_and_nothing_else),
        cmocka_unit_test(names_are_quoted_when_they_must),
        cmocka_unit_test(quoting_undone_gives_the_text),
        cmocka_unit_test(equal_names_hash_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
