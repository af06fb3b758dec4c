/*
 * mem_test.c -- allocation faults fire exactly once or onwards, buffers keep their contents.
 */
#include <string.h>

#include "base/base.h"
#include "unit/cmocka_all.h"

static void
the_nth_allocation_fails(void **state)
{
    (void)state;
    for (u64 nth = 1; nth <= 5; nth++) {
        mem_fail_arm(nth, false);
        u64 failed_at = 0;
        for (u64 i = 1; i <= 8; i++) {
            void *block = mem_alloc(10);
            if (block == NULL) {
                assert_int_equal(failed_at, 0);
                failed_at = i;
            }
            mem_free(block);
        }
        assert_int_equal(failed_at, nth);
        assert_true(mem_fail_fired());
        mem_fail_arm(nth, true);
        for (u64 i = 1; i <= 8; i++) {
            void *block = mem_alloc(10);
            assert_true((block == NULL) == (i >= nth));
            mem_free(block);
        }
        mem_fail_arm(0, false);
    }
}

static void
a_failed_append_leaves_the_buffer_unchanged(void **state)
{
    (void)state;
    Buf buf = {0};
    assert_int_equal(buf_append_text(&buf, "hello"), OK);
    mem_fail_arm(1, false);
    u8 big[500] = {0};
    assert_int_equal(buf_append(&buf, big, sizeof(big)), ERR_NOMEM);
    assert_int_equal(buf.bytes, 5);
    assert_memory_equal(buf.p, "hello", 5);
    mem_fail_arm(0, false);
    assert_int_equal(buf_append(&buf, big, sizeof(big)), OK);
    assert_int_equal(buf_printf(&buf, "%d", 42), OK);
    assert_int_equal(buf.bytes, 507);
    buf_free(&buf);
    void *aligned = mem_alloc_aligned(4096, 100);
    assert_int_equal((uintptr_t)aligned % 4096, 0);
    mem_free(aligned);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails),
        cmocka_unit_test(a_failed_append_leaves_the_buffer_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
