/*
 * func_test.c -- lookup of functions by name and argument count.
 *
 * Method: a table under another; exact counts before ranges before "any number"; the inner table
 * hides the outer one.
 */
#include "unit/cmocka_all.h"
#include "value/func.h"

static const FuncDef ONE = {.name = "f", .argc_min = 1, .argc_max = 1};
static const FuncDef TWO = {.name = "f", .argc_min = 2, .argc_max = 2};
static const FuncDef ANY = {.name = "f", .argc_min = 0, .argc_max = -1};
static const FuncDef RANGE = {.name = "g", .argc_min = 1, .argc_max = 3};
static const FuncDef INNER_ANY = {.name = "g", .argc_min = 0, .argc_max = -1};

static void
the_best_match_is_found(void **state)
{
    (void)state;
    const FuncDef *outer_defs[] = {&ANY, &ONE, &RANGE, &TWO}, *inner_defs[] = {&INNER_ANY};
    FuncTable outer, inner;
    bool exists;
    assert_int_equal(func_table_init(&outer, NULL, outer_defs, 4), OK);
    assert_int_equal(func_table_init(&inner, &outer, inner_defs, 1), OK);
    assert_ptr_equal(func_find(&outer, SLICE_LITERAL("F"), 1, &exists), &ONE);
    assert_ptr_equal(func_find(&outer, SLICE_LITERAL("f"), 2, NULL), &TWO);
    assert_ptr_equal(func_find(&outer, SLICE_LITERAL("f"), 3, NULL), &ANY);
    assert_ptr_equal(func_find(&outer, SLICE_LITERAL("g"), 2, NULL), &RANGE);
    assert_null(func_find(&outer, SLICE_LITERAL("g"), 4, &exists));
    assert_true(exists);
    assert_null(func_find(&outer, SLICE_LITERAL("h"), 4, &exists));
    assert_false(exists);
    assert_ptr_equal(func_find(&inner, SLICE_LITERAL("g"), 2, NULL), &INNER_ANY);
    assert_ptr_equal(func_find(&inner, SLICE_LITERAL("f"), 1, NULL), &ONE);
    func_table_free(&inner);
    func_table_free(&outer);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_best_match_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
