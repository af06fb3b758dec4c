/*
 * bytes_test.c -- varints, UTF-8 and the random generator.
 *
 * Method: round trips over boundary values; malformed input must be read without passing the end.
 */
#include "base/base.h"
#include "unit/cmocka_all.h"

static void
varints_round_trip_and_refuse_short_input(void **state)
{
    (void)state;
    for (u32 shift = 0; shift < 64; shift++) {
        for (i32 delta = -1; delta <= 1; delta++) {
            u64 v = ((u64)1 << shift) + (u64)(i64)delta, back = 0;
            u8 bytes[10];
            size_t n = varint_put(bytes, v);
            assert_int_equal(varint_get(bytes, bytes + n, &back), n);
            assert_true(back == v);
            assert_int_equal(varint_get(bytes, bytes + n - 1, &back), 0);
        }
    }
    const u8 endless[11] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    u64 v;
    assert_int_equal(varint_get(endless, endless + 11, &v), 0);
}

static void
utf8_round_trips_and_replaces_damage(void **state)
{
    (void)state;
    for (u32 c = 1; c < 0x110000; c += 7) {
        if (c >= 0xD800 && c < 0xE000) continue;
        if ((c & 0xFFFFFFFEu) == 0xFFFE) continue;
        u8 bytes[4];
        size_t n = utf8_put(bytes, c);
        const u8 *p = bytes;
        assert_int_equal(utf8_next(&p, bytes + n), c);
        assert_int_equal(p - bytes, n);
        assert_true(utf8_valid(bytes, n));
    }
    const u8 cut[] = {0xE2, 0x82};
    const u8 *p = cut;
    assert_int_equal(utf8_next(&p, cut + 2), 0xFFFD);
    assert_ptr_equal(p, cut + 2);
    assert_false(utf8_valid(cut, 2));
    assert_int_equal(utf8_count((const u8 *)"a\xC3\xA4z", 4), 3);
}

static void
the_generator_is_deterministic_and_bounded(void **state)
{
    (void)state;
    Rng a, b;
    rng_seed(&a, 42);
    rng_seed(&b, 42);
    for (u32 i = 0; i < 1000; i++) {
        assert_true(rng_next(&a) == rng_next(&b));
        assert_true(rng_below(&a, 10) < 10);
        (void)rng_below(&b, 10);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(varints_round_trip_and_refuse_short_input),
        cmocka_unit_test(utf8_round_trips_and_replaces_damage),
        cmocka_unit_test(the_generator_is_deterministic_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
