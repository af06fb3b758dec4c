/*
 * number_sort_test.c -- rows are put in the order of their numbers, equal ones in their own.
 *
 * Method: one and two keys of many widths (nothing, few bits, many, all of 64), rising, falling
 * and random, for counts around the borders of the ways to sort; the answer is checked row by row:
 * a permutation in which no neighbours are out of order.
 */
#include <stdlib.h>

#include "exec/number_sort.h"
#include "unit/cmocka_all.h"

static u64 seed = 7;

static u64
next_random(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed ^ seed >> 29;
}

static void
fill(u64 *key, u32 count, u32 shape)
{
    u64 base = next_random();
    u32 width = (u32)(next_random() % 65);
    u64 mask = width == 64 ? U64_MAX : ((u64)1 << width) - 1;
    for (u32 i = 0; i < count; i++) {
        u64 random = next_random() & mask;
        key[i] = shape == 0   ? base
                 : shape == 1 ? i * 3 + (base & 0xFFFF)
                 : shape == 2 ? (u64)(count - i)
                 : shape == 3 ? i % 7
                              : (base & ~mask) | random;
    }
}

static void
check(u64 *const *key, u32 keys, const u32 *order, u32 count)
{
    u8 *seen = calloc(count + 1, 1);
    for (u32 i = 0; i < count; i++) {
        assert_true(order[i] < count && seen[order[i]] == 0);
        seen[order[i]] = 1;
        if (i == 0) continue;
        u32 a = order[i - 1], b = order[i];
        bool before = a < b;
        for (u32 k = keys; k-- > 0;) {
            if (key[k][a] != key[k][b]) before = key[k][a] < key[k][b];
        }
        assert_true(before);
    }
    free(seen);
}

static void
rows_come_in_order(void **state)
{
    (void)state;
    static const u32 counts[] = {0, 1, 2, 3, 47, 48, 49, 255, 256, 257, 1000, 5000};
    static u64 first[5000], second[5000];
    static u32 order[5000];
    u64 *key[2] = {first, second};
    NumberRoom room = {0};
    for (u32 i = 0; i < 900; i++) {
        u32 count = counts[i % COUNT_OF(counts)], keys = 1 + i / 12 % 2;
        fill(first, count, (u32)(next_random() % 7));
        fill(second, count, (u32)(next_random() % 7));
        assert_int_equal(exec__number_order(&room, key, keys, count, order), OK);
        check(key, keys, order, count);
    }
    exec__number_room_free(&room);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_come_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
