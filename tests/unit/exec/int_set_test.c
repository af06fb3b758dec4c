/*
 * int_set_test.c -- the set of integers by group: what is in it is in it once.
 *
 * Method: random numbers of several densities, small, large and negative, in one group and in many,
 * against a sorted list of what was added; then all of them are read back, and the set is used
 * again after clearing.
 */
#include <stdlib.h>

#include "exec/int_set.h"
#include "unit/cmocka_all.h"

typedef struct Pair {
    u32 group;
    i64 value;
} Pair;

static u64 seed = 99;

static u64
next_random(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 20;
}

static i64
number(u32 kind)
{
    u64 r = next_random();
    switch (kind) {
    case 0: return (i64)(r % 300);
    case 1: return (i64)(r % 20000);
    case 2: return (i64)(r % 5) - 2;
    case 3: return (i64)(r * r);
    case 4: return r % 2 == 0 ? I64_MIN + (i64)(r % 3) : I64_MAX - (i64)(r % 3);
    default: return (i64)(r % ((u64)1 << (r % 30)));
    }
}

static int
pair_compare(const void *a, const void *b)
{
    const Pair *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* All that was added, against the model, which is sorted here. */
static void
check_all(const IntSet *set, Pair *model, u32 count)
{
    Pair *have = calloc(count + 1, sizeof(Pair));
    u64 at = 0;
    u32 n = 0;
    Pair one;
    while (exec__ints_next(set, &at, &one.group, &one.value)) {
        assert_true(n < count);
        have[n++] = one;
    }
    assert_int_equal(n, count);
    qsort(have, n, sizeof(Pair), pair_compare);
    qsort(model, count, sizeof(Pair), pair_compare);
    for (u32 i = 0; i < n; i++) {
        assert_int_equal(have[i].value, model[i].value);
        assert_int_equal(have[i].group, model[i].group);
    }
    free(have);
}

static void
sets_agree_with_a_list(void **state)
{
    (void)state;
    IntSet set = {0};
    static Pair model[3000];
    for (u32 round = 0; round < 60; round++) {
        bool grouped = round % 2 == 1;
        u32 groups = grouped ? 1 + round % 7 : 1, count = 0, kind = round / 2 % 7;
        for (u32 i = 0; i < 1500; i++) {
            Pair pair = {(u32)next_random() % groups, number(kind == 6 ? i % 6 : kind)};
            bool known = false, is_new;
            for (u32 k = 0; k < count && !known; k++) {
                known = model[k].group == pair.group && model[k].value == pair.value;
            }
            if (!grouped && exec__ints_in_window(&set, pair.value)) assert_true(known);
            assert_int_equal(exec__ints_add(&set, pair.group, grouped, pair.value, &is_new), OK);
            assert_int_equal(is_new, !known);
            if (!known) model[count++] = pair;
        }
        check_all(&set, model, count);
        exec__ints_clear(&set);
        check_all(&set, model, 0);
    }
    exec__ints_free(&set);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sets_agree_with_a_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
