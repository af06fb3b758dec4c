/*
 * sort_test.c -- sorting more than memory holds.
 *
 * Method: random keys and payloads through portions of many sizes, from all in memory to a few
 * items each; what comes out must be sorted and the same items.
 */
#include "transfer/sort.h"
#include "unit/cmocka_all.h"

typedef struct Out {
    u64 items, hash;
    u8 last[32];
    size_t last_bytes;
} Out;

/* A payload is: length of the key, the key, filling. */
static Err
take(void *arg, Slice payload)
{
    Out *out = arg;
    Slice key = {payload.p + 1, payload.p[0]};
    assert_true(slice_compare(SLICE(out->last, out->last_bytes), key) <= 0);
    memcpy(out->last, key.p, key.bytes);
    out->last_bytes = key.bytes;
    out->items++;
    out->hash += hash_bytes(payload.p, payload.bytes, 0);
    return OK;
}

static void
everything_comes_out_sorted(void **state)
{
    (void)state;
    static const size_t portions[] = {0, 1, 200, 5000, 100000};
    Rng rng;
    rng_seed(&rng, 5);
    for (u32 round = 0; round < COUNT_OF(portions); round++) {
        Sort *sort;
        ErrMsg msg = {0};
        Out out = {0};
        u64 hash = 0, items = portions[round] == 1 ? 300 : 3000;
        assert_int_equal(sort_open(portions[round], &sort), OK);
        for (u64 i = 0; i < items; i++) {
            static u8 payload[2000];
            size_t bytes = 40 + (size_t)rng_below(&rng, i % 50 == 0 ? 1900 : 60);
            for (size_t k = 0; k < bytes; k++)
                payload[k] = (u8)rng_below(&rng, 4);
            payload[0] = (u8)rng_below(&rng, 12);
            hash += hash_bytes(payload, bytes, 0);
            assert_int_equal(
                sort_add(sort, SLICE(payload + 1, payload[0]), SLICE(payload, bytes), &msg), OK);
        }
        assert_int_equal(sort_drain(sort, take, &out, &msg), OK);
        assert_true(out.items == items && out.hash == hash);
        sort_close(sort);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_comes_out_sorted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
