/*
 * version_test.c -- chains of before-images, by themselves.
 *
 * Method: Befores of made-up transactions are linked and taken out by hand, and the steps of a
 * reader are counted.
 */
#include "store/version/map.h"
#include "store_kit.h"

#define WRITES 1000u
#define HASH   ((u64)77)

typedef struct Chain {
    VersionMap map;
    TxnState first, second; /* Who wrote the row. */
    Before *before[WRITES];
} Chain;

static Before *
before_of(Chain *chain, TxnState *creator, u64 id, bool is_own)
{
    Before *before = before_new(5, HASH, kit_text("row"), kit_text("value"));
    assert_non_null(before);
    before->creator = creator;
    before->creator_id = id;
    before->ts = is_own ? U64_MAX : id;
    if (is_own) before_mark_new(before, BEFORE_OWN);
    version_lock(&chain->map, HASH);
    (void)version_link(&chain->map, before);
    version_unlock(&chain->map, HASH);
    return before;
}

/* One image of a first transaction, then all those of a second that writes the row over and over.
 */
static Chain *
chain_new(void)
{
    Chain *chain = (Chain *)calloc(1, sizeof(*chain));
    assert_non_null(chain);
    version_map_init(&chain->map, NULL);
    assert_int_equal(version_prepare(&chain->map), OK);
    chain->before[0] = before_of(chain, &chain->first, 1, false);
    for (u32 i = 1; i < WRITES; i++)
        chain->before[i] = before_of(chain, &chain->second, 2, i > 1);
    return chain;
}

static void
chain_free(Chain *chain)
{
    version_map_free(&chain->map);
    free(chain);
}

/* Steps from the top to the end; every image that is no one's own is come by. */
static u32
steps_of(Chain *chain, u32 others)
{
    u32 steps = 0, met = 0;
    version_lock(&chain->map, HASH);
    const Before *before = version_head(&chain->map, HASH, 5, kit_text("row"));
    for (; before != NULL; before = before_below(before)) {
        steps++;
        met += !before_is(before, BEFORE_OWN);
    }
    version_unlock(&chain->map, HASH);
    assert_int_equal(met, others);
    return steps;
}

static void
take_out(Chain *chain, u32 at)
{
    version_lock(&chain->map, HASH);
    version_unlink(&chain->map, chain->before[at]);
    version_unlock(&chain->map, HASH);
    before_free(chain->before[at]);
    chain->before[at] = NULL;
}

static void
a_row_written_over_is_one_step(void **state)
{
    (void)state;
    Chain *chain = chain_new();
    assert_int_equal(steps_of(chain, 2), 3);
    /* Some of its own go, from the top as undo takes them, and out of the middle. */
    take_out(chain, WRITES - 1);
    take_out(chain, 500);
    assert_int_equal(steps_of(chain, 2), 3);
    chain_free(chain);
}

/* The first goes before those above it, as when it is spilled or settled: nobody is led to it. */
static void
the_first_may_go_first(void **state)
{
    (void)state;
    Chain *chain = chain_new();
    take_out(chain, 1);
    assert_int_equal(steps_of(chain, 1), WRITES - 1);
    for (u32 i = 2; i < WRITES; i++)
        take_out(chain, i);
    assert_int_equal(steps_of(chain, 1), 1);
    chain_free(chain);
}

/* Another transaction's images over it: its own begin anew. */
static void
each_transaction_has_its_own(void **state)
{
    (void)state;
    Chain *chain = chain_new();
    TxnState third = {0};
    (void)before_of(chain, &third, 3, false);
    (void)before_of(chain, &third, 3, true);
    (void)before_of(chain, &third, 3, true);
    /* Its last, its first, the second's last and first, the first's. */
    assert_int_equal(steps_of(chain, 3), 5);
    chain_free(chain);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_written_over_is_one_step),
        cmocka_unit_test(the_first_may_go_first),
        cmocka_unit_test(each_transaction_has_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
