/*
 * sort_test.c -- sort_items() against qsort(), on inputs that quicksorts dislike.
 *
 * Method: arrays of every small length and of some large ones, filled in ten patterns, with items
 * of several sizes; the result must be the sorted permutation, and comparisons must stay few.
 */
#include "base/sort.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "unit/cmocka_all.h"

#define ITEMS_MAX 20000

typedef struct Item {
    u32 key;
    u8 filler[9]; /* An odd size, copied along. */
} Item;

static u64 comparisons;

static int
compare_items(const void *a, const void *b)
{
    u32 left = ((const Item *)a)->key, right = ((const Item *)b)->key;
    comparisons++;
    return left < right ? -1 : left > right;
}

static int
compare_bytes(const void *a, const void *b)
{
    return *(const u8 *)a - *(const u8 *)b;
}

static u32
pattern_key(u32 pattern, u32 i, u32 count, Rng *rng)
{
    switch (pattern) {
    case 0: return i;
    case 1: return count - i;
    case 2: return 7;
    case 3: return (u32)rng_below(rng, 2);
    case 4: return (u32)rng_below(rng, 1u << 30);
    case 5: return i < count / 2 ? i : count - i; /* Up and down. */
    case 6: return i % 17;
    case 7: return i ^ 0x55;
    case 8: return i == count - 1 ? 0 : i; /* Sorted but for the last. */
    default: return i % 2 == 0 ? i : count + i;
    }
}

static void
check(Item *items, u32 count, u32 pattern, Rng *rng)
{
    static Item wanted[ITEMS_MAX];
    for (u32 i = 0; i < count; i++) {
        items[i] = (Item){.key = pattern_key(pattern, i, count, rng)};
        for (u32 b = 0; b < sizeof(items[i].filler); b++)
            items[i].filler[b] = (u8)(items[i].key + b);
        wanted[i] = items[i];
    }
    qsort(wanted, count, sizeof(Item), compare_items);
    comparisons = 0;
    sort_items(items, count, sizeof(Item), compare_items);
    assert_true(comparisons <= 20 + 4 * (u64)count * bits_of(count));
    for (u32 i = 0; i < count; i++) {
        assert_int_equal(items[i].key, wanted[i].key);
        assert_int_equal(items[i].filler[3], (u8)(items[i].key + 3));
    }
}

static void
patterns_are_sorted(void **state)
{
    (void)state;
    static Item items[ITEMS_MAX];
    Rng rng;
    rng_seed(&rng, 42);
    for (u32 pattern = 0; pattern < 10; pattern++) {
        for (u32 count = 0; count < 100; count++)
            check(items, count, pattern, &rng);
        check(items, 1000, pattern, &rng);
        check(items, ITEMS_MAX, pattern, &rng);
    }
}

/* The classical enemy of median-of-three: keys are decided while it compares. */
static u32 enemy_solid, enemy_candidate, enemy_gas, enemy_value[ITEMS_MAX];

static int
compare_enemy(const void *a, const void *b)
{
    u32 x = *(const u32 *)a, y = *(const u32 *)b;
    comparisons++;
    if (enemy_value[x] == enemy_gas && enemy_value[y] == enemy_gas)
        enemy_value[x == enemy_candidate ? x : y] = enemy_solid++;
    if (enemy_value[x] == enemy_gas)
        enemy_candidate = x;
    else if (enemy_value[y] == enemy_gas)
        enemy_candidate = y;
    return enemy_value[x] < enemy_value[y] ? -1 : enemy_value[x] > enemy_value[y];
}

static void
worst_case_stays_cheap(void **state)
{
    (void)state;
    static u32 items[ITEMS_MAX];
    enemy_gas = U32_MAX;
    for (u32 i = 0; i < ITEMS_MAX; i++) {
        items[i] = i;
        enemy_value[i] = enemy_gas;
    }
    comparisons = 0;
    sort_items(items, ITEMS_MAX, sizeof(u32), compare_enemy);
    assert_true(comparisons < 6 * (u64)ITEMS_MAX * bits_of(ITEMS_MAX));
    for (u32 i = 1; i < ITEMS_MAX; i++)
        assert_true(enemy_value[items[i - 1]] <= enemy_value[items[i]]);
}

static void
single_bytes_are_sorted(void **state)
{
    (void)state;
    u8 bytes[300];
    Rng rng;
    rng_seed(&rng, 7);
    for (u32 i = 0; i < sizeof(bytes); i++)
        bytes[i] = (u8)rng_below(&rng, 256);
    sort_items(bytes, sizeof(bytes), 1, compare_bytes);
    for (u32 i = 1; i < sizeof(bytes); i++)
        assert_true(bytes[i - 1] <= bytes[i]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_are_sorted),
        cmocka_unit_test(worst_case_stays_cheap),
        cmocka_unit_test(single_bytes_are_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
