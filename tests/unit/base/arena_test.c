/*
 * arena_test.c -- arenas hand out zeroed aligned memory, rewind, reset without new chunks, obey
 * caps.
 *
 * Method: many allocations of growing size, each filled, so that overlaps show; then the nth chunk
 * allocation fails.
 */
#include "base/base.h"
#include "unit/cmocka_all.h"

static void
allocations_are_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena, NULL);
    u8 *blocks[500];
    for (u32 i = 0; i < 500; i++) {
        blocks[i] = arena_alloc(&arena, i * 7);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (u32 k = 0; k < i * 7; k++) {
            assert_int_equal(blocks[i][k], 0);
            blocks[i][k] = (u8)i;
        }
    }
    for (u32 i = 0; i < 500; i++) {
        for (u32 k = 0; k < i * 7; k++)
            assert_int_equal(blocks[i][k], (u8)i);
    }
    arena_free(&arena);
    assert_int_equal(arena.total_bytes, 0);
}

static void
reset_keeps_one_chunk_and_rewind_gives_back(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena, NULL);
    for (u32 i = 0; i < 100; i++)
        assert_non_null(arena_bytes(&arena, 1000));
    arena_reset(&arena);
    size_t kept = arena.total_bytes;
    ArenaMark mark = arena_mark(&arena);
    for (u32 i = 0; i < 200; i++)
        assert_non_null(arena_alloc(&arena, 1000));
    assert_true(arena.total_bytes > kept);
    arena_rewind(&arena, mark);
    assert_int_equal(arena.total_bytes, kept);
    arena_free(&arena);
}

static void
caps_and_failures_are_reported(void **state)
{
    (void)state;
    MemAccount root = {.name = "root", .cap_bytes = 10000};
    MemAccount leaf = {.name = "leaf", .parent = &root};
    Arena arena;
    arena_init(&arena, &leaf);
    u32 got = 0;
    while (arena_bytes(&arena, 500) != NULL)
        got++;
    assert_in_range(got, 1, 20);
    assert_true(root.used_bytes <= 10000);
    arena_free(&arena);
    assert_int_equal(root.used_bytes, 0);
    assert_int_equal(leaf.used_bytes, 0);

    mem_fail_arm(1, false);
    assert_null(arena_alloc(&arena, 10));
    assert_true(mem_fail_fired());
    mem_fail_arm(0, false);
    assert_non_null(arena_alloc(&arena, 10));
    arena_free(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_zeroed_aligned_and_apart),
        cmocka_unit_test(reset_keeps_one_chunk_and_rewind_gives_back),
        cmocka_unit_test(caps_and_failures_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
