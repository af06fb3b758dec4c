/*
 * turns_test.c -- sorting gives others their turns.
 *
 * Method: on one loop a fiber sorts while another counts how often it comes to run.  Long sorts
 * take many slices on any machine, so the count need not be looked at closely: without turns it is
 * 0.
 */
#include "exec/order.h"
#include "rt/loop.h"
#include "rt/time.h"
#include "unit/cmocka_all.h"

#define COUNT 400000u

typedef struct Scene {
    RtEvent over;
    RtU32 left;
    u64 turns;
    bool is_done;
    u64 while_sorting[4];
} Scene;

static bool
row_before(const void *arg, u32 a, u32 b)
{
    const u64 *key = arg;
    return key[a] < key[b];
}

static void
sort_numbers(Rng *rng)
{
    NumberItem *item = mem_alloc(2 * COUNT * sizeof(*item));
    u32 *place = NULL;
    assert_non_null(item);
    for (u32 i = 0; i < COUNT; i++)
        item[i] = (NumberItem){.key = rng_next(rng), .row = i};
    assert_int_equal(exec__numbers_sort(item, item + COUNT, COUNT, &place), OK);
    for (u32 i = 1; i < COUNT; i++)
        assert_true(item[i - 1].key <= item[i].key);
    mem_free(place);
    mem_free(item);
}

/* `equal`: all prefixes are the same, so the comparison decides. */
static void
sort_keys(Rng *rng, bool equal)
{
    SortItem *item = mem_alloc(2 * COUNT * sizeof(*item));
    u32 *place = NULL;
    u8 *bytes = mem_alloc_zeroed(COUNT * 24);
    assert_true(item != NULL && bytes != NULL);
    for (u32 i = 0; i < COUNT; i++) {
        u8 *key = bytes + 24 * i;
        key[0] = (u8)(i % 2); /* So nothing is common to all. */
        store_be64(key + (equal ? 16 : 1), rng_next(rng));
        item[i] = (SortItem){
            .prefix = exec__key_prefix(key, 24), .key = key, .key_bytes = 24, .row = i};
    }
    exec__items_sort(item, item + COUNT, COUNT, &place);
    for (u32 i = 1; i < COUNT; i++)
        assert_true(memcmp(item[i - 1].key, item[i].key, 24) <= 0);
    mem_free(place);
    mem_free(item);
    mem_free(bytes);
}

static void
sort_rows(Rng *rng)
{
    u64 *key = mem_alloc(COUNT * sizeof(u64));
    u32 *order = mem_alloc(2 * COUNT * sizeof(u32));
    assert_true(key != NULL && order != NULL);
    for (u32 i = 0; i < COUNT; i++) {
        key[i] = rng_next(rng);
        order[i] = i;
    }
    exec__order_sort(order, order + COUNT, COUNT, row_before, key);
    for (u32 i = 1; i < COUNT; i++)
        assert_true(key[order[i - 1]] <= key[order[i]]);
    mem_free(key);
    mem_free(order);
}

static void
leave(Scene *scene)
{
    if (rt_fetch_sub(&scene->left, 1) == 1) rt_event_set(&scene->over);
}

static void
sorts(void *arg)
{
    Scene *scene = arg;
    Rng rng;
    rng_seed(&rng, 7);
    for (u32 what = 0; what < COUNT_OF(scene->while_sorting); what++) {
        u64 before = scene->turns;
        if (what == 0) sort_numbers(&rng);
        if (what == 1) sort_keys(&rng, false);
        if (what == 2) sort_keys(&rng, true);
        if (what == 3) sort_rows(&rng);
        scene->while_sorting[what] = scene->turns - before;
    }
    scene->is_done = true;
    leave(scene);
}

static void
waits(void *arg)
{
    Scene *scene = arg;
    while (!scene->is_done) {
        scene->turns++;
        rt_yield();
    }
    leave(scene);
}

static void
sorting_gives_turns(void **state)
{
    (void)state;
    Scene scene = {.left = {2}};
    assert_int_equal(rt_loops_start(&(RtLoopsConfig){.loops = 1}, NULL), OK);
    assert_int_equal(rt_spawn(0, sorts, &scene, "sorts"), OK);
    assert_int_equal(rt_spawn(0, waits, &scene, "waits"), OK);
    rt_event_wait(&scene.over);
    rt_loops_stop(0);
    for (u32 what = 0; what < COUNT_OF(scene.while_sorting); what++) {
        if (scene.while_sorting[what] == 0) fail_msg("sort %u gave no turn", what);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sorting_gives_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
