/*
 * guard_test.c -- which SQL of a client would reach a file.
 *
 * Method: statements with the answer they must get, with comments and blanks in awkward places.
 */
#include "server/quack/quack_run.h"

#include "unit/cmocka_all.h"

static void
files_are_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        bool reaches;
    } cases[] = {
        {"ATTACH 'x' AS y", true},
        {"attach database 'x' as y", true},
        {" \n;;/* a */ -- b\n ATTACH 'x' AS y", true},
        {"/*/ATTACH*/ATTACH 'x' AS y", true},
        {"EXPLAIN ATTACH 'x' AS y", true},
        {"explain query plan attach 'x' as y", true},
        {"VACUUM INTO 'x'", true},
        {"VACUUM main INTO 'x'", true},
        {"VACUUM/**/\"main\"/**/INTO 'x'", true},
        {"VACUUM", false},
        {"VACUUM main", false},
        {"DETACH y", false},
        {"SELECT 'ATTACH'", false},
        {"INSERT INTO attach VALUES(1)", false},
        {"-- ATTACH 'x' AS y", false},
        {"/* ATTACH 'x' AS y", false},
        {"attached", false},
        {"", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_true(quack__reaches_files(SLICE(cases[i].sql, strlen(cases[i].sql))) ==
                    cases[i].reaches);
}

static void
secrets_are_compared_whole(void **state)
{
    (void)state;
    assert_true(server__same_secret(SLICE_LITERAL("abc"), SLICE_LITERAL("abc")));
    assert_false(server__same_secret(SLICE_LITERAL("abc"), SLICE_LITERAL("abd")));
    assert_false(server__same_secret(SLICE_LITERAL("abc"), SLICE_LITERAL("ab")));
    assert_false(server__same_secret(SLICE_LITERAL("abcabc"), SLICE_LITERAL("abc")));
    assert_false(server__same_secret(SLICE_LITERAL(""), SLICE_LITERAL("abc")));
    assert_false(server__same_secret(SLICE_LITERAL("abc"), SLICE_LITERAL("")));
    assert_true(server__same_secret(SLICE_LITERAL(""), SLICE_LITERAL("")));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_recognised),
        cmocka_unit_test(secrets_are_compared_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
