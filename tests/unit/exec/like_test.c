/*
 * like_test.c -- LIKE over vectors answers as the function like() does.
 *
 * Method: random patterns and texts over a few bytes (both cases, '%', '_', a digit, halves of
 * UTF-8 characters, NUL), short and long enough for all ways of searching; func_like() judges.
 */
#include <stdlib.h>

#include "exec/like.h"
#include "func/func_builtin.h"
#include "unit/cmocka_all.h"

static u64 seed = 4711;

static u32
below(u32 limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (u32)((seed >> 33) % limit);
}

static void
text_make(u8 *out, u32 bytes, const char *alphabet, u32 letters)
{
    for (u32 i = 0; i < bytes; i++) {
        out[i] = (u8)alphabet[below(letters)];
    }
}

static void
random_texts_agree(void **state)
{
    (void)state;
    static const char texts[] = {'a', 'a', 'b', 'A', 'B', '9', '9', (char)0xC3, (char)0xA4, 0};
    static const char patterns[] = {'a', 'b', 'A', '9', '%', '%', '%', '_', '@', (char)0xC3};
    u32 taken = 0, matched = 0;
    for (u32 i = 0; i < 60000; i++) {
        u8 pattern[40];
        u32 pattern_bytes = below(i % 3 == 0 ? 12 : 6);
        Like like;
        bool exact = below(3) == 0;
        text_make(pattern, pattern_bytes, patterns, i % 2 == 0 ? 7 : 10);
        if (!like_open(&like, SLICE(pattern, pattern_bytes), exact)) continue;
        taken++;
        for (u32 k = 0; k < 20; k++) {
            /* An exact block, so that reading beyond it is seen. */
            u32 bytes = below(k < 10 ? 20 : 70);
            u8 *text = malloc(bytes + 1);
            u8 *place = text + 1; /* The end is the end of the block. */
            text_make(place, bytes, texts, k % 2 == 0 ? 7 : 10);
            const u8 *nul = memchr(place, 0, bytes);
            Slice seen = SLICE(place, nul == NULL ? bytes : (size_t)(nul - place));
            bool want = func_like(SLICE(pattern, pattern_bytes), seen, 0, exact);
            bool have = like_matches(&like, SLICE(place, bytes));
            if (want != have) {
                print_error("'%.*s' LIKE '%.*s': %d\n", (int)bytes, (const char *)place,
                            (int)pattern_bytes, (const char *)pattern, have);
            }
            assert_int_equal(have, want);
            matched += want;
            free(text);
        }
    }
    assert_true(taken > 20000 && matched > 20000);
}

static void
other_patterns_are_refused(void **state)
{
    (void)state;
    Like like;
    assert_false(like_open(&like, SLICE("a_b", 3), false));
    assert_false(like_open(&like, SLICE("a\xC3\xA4", 3), false));
    u8 many[LIKE_PATTERN_MAX + 1];
    memset(many, 'a', sizeof(many));
    assert_false(like_open(&like, SLICE(many, sizeof(many)), false));
    for (u32 i = 0; i < 60; i++) {
        many[i] = i % 2 == 0 ? '%' : 'a';
    }
    assert_false(like_open(&like, SLICE(many, 60), false)); /* Too many pieces. */
    assert_true(like_open(&like, SLICE(many, 32), false));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_texts_agree),
        cmocka_unit_test(other_patterns_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
