/*
 * dump_test.c -- pages in words.
 *
 * Method: a store with trees of both kinds, a long value, deleted rows and enough rows for inner
 * nodes is written and dumped page by page: what was put is named, and every link leads to a page
 * that can be dumped.  Then copies of the file are damaged: a flipped byte is told, and no damage
 * makes a dump touch what it must not (built with the address sanitizer) or leave memory behind.
 */
#include "store_kit.h"

#define ROWS 3000u

/* A Buf as a C string. */
static const char *
text_of(Buf *text)
{
    assert_int_equal(buf_append_byte(text, 0), OK);
    text->bytes--;
    return (const char *)text->p;
}

static Err
dump(const char *path, u32 page, bool is_slot, Buf *text)
{
    buf_clear(text);
    return store_dump_page(path, page, is_slot, text, NULL);
}

static void
fill(Kit *kit)
{
    kit_start_fast(kit);
    Store *store = kit_open(kit);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    TreeId numbers;
    assert_int_equal(store_tree_create(txn, STORE_TREE_INT, &numbers), OK);
    StoreVerdict verdict;
    for (u32 i = 0; i < ROWS; i++) {
        u8 key[8];
        store_be64(key, i | (u64)1 << 63);
        assert_int_equal(store_put(txn, numbers, (Slice){key, 8}, kit_text("forty-two"),
                                   STORE_PUT_INSERT, &verdict),
                         OK);
    }
    kit_put(txn, TREE_ROOT, "apple", "red", STORE_PUT_INSERT);
    kit_put(txn, TREE_ROOT, "banana", "yellow", STORE_PUT_INSERT);
    u8 *value = (u8 *)calloc(1, 100000);
    assert_non_null(value);
    memset(value, 'L', 100000);
    assert_int_equal(store_put(txn, TREE_ROOT, kit_text("long"), (Slice){value, 100000},
                               STORE_PUT_INSERT, &verdict),
                     OK);
    free(value);
    kit_commit(txn);
    txn = kit_begin(store, STORE_SNAPSHOT);
    kit_delete(txn, TREE_ROOT, "banana"); /* Not committed: a tombstone at the cut. */
    assert_int_equal(store_checkpoint(store, NULL), OK);
    store_txn_rollback(txn);
    /* As it is now, with the store open: a dump asks nobody. */
    Buf text = {0};
    assert_int_equal(dump(kit->path, 0, false, &text), OK);
    assert_non_null(strstr(text_of(&text), "in use or not closed"));
    bool deleted = false;
    for (u32 page = 1; dump(kit->path, page, false, &text) != ERR_NOTFOUND; page++) {
        deleted = deleted || strstr(text_of(&text), "\"banana\", deleted; by writer ") != NULL;
    }
    assert_true(deleted);
    buf_free(&text);
    store_close(store);
}

/* Every "page N" of the text that is not followed by a page's own head. */
static void
expect_links(const char *path, const char *text)
{
    for (const char *at = strstr(text, ": page "); at != NULL; at = strstr(at + 1, ": page ")) {
        Buf other = {0};
        u32 page = (u32)strtoul(at + 7, NULL, 10);
        if (page != 0) assert_int_equal(dump(path, page, false, &other), OK);
        buf_free(&other);
    }
}

static void
pages_are_told_in_words(void **state)
{
    (void)state;
    Kit kit;
    fill(&kit);
    Buf text = {0};
    assert_int_equal(dump(kit.path, 0, false, &text), OK);
    assert_non_null(strstr(text_of(&text), "a Weft database of format 2, pages of 16384 bytes"));
    assert_non_null(strstr(text_of(&text), "closed in order"));
    static const char *const wanted[] = {
        "a leaf of tree 1, level 0",
        "x'6170706c65' \"apple\", 3 bytes x'726564' \"red\"",
        "x'6c6f6e67' \"long\", a long value of 100000 bytes at page ",
        "an inner node of tree 2, level 1",
        "integer keys",
        " 1000, 9 bytes x'666f7274792d74776f' \"forty-two\"",
        " to the highest",
        "keys from the lowest",
        "right sibling: page ",
        "data of a long value of tree 1",
        "index of a long value of tree 1",
    };
    bool seen[COUNT_OF(wanted)] = {0};
    u32 pages = 0;
    for (u32 page = 1; page < 60; page++) {
        Err err = dump(kit.path, page, false, &text);
        if (err == ERR_NOTFOUND) continue;
        assert_int_equal(err, OK);
        const char *words = text_of(&text);
        assert_null(strstr(words, "DAMAGED"));
        assert_null(strstr(words, "not sound"));
        expect_links(kit.path, words);
        for (u32 i = 0; i < COUNT_OF(wanted); i++) {
            const char *sought = wanted[i];
            /* Keys of integers stand behind the number of their slot. */
            seen[i] = seen[i] || strstr(words, sought) != NULL;
        }
        pages++;
    }
    for (u32 i = 0; i < COUNT_OF(wanted); i++) {
        if (!seen[i]) fail_msg("nothing says: %s", wanted[i]);
    }
    assert_true(pages > 10);
    bool has_map = false, has_chain = false;
    u32 slot = 0;
    for (; dump(kit.path, slot, true, &text) == OK; slot++) {
        has_map = has_map || strstr(text_of(&text), "part 0 of the page map") != NULL;
        has_chain = has_chain || strstr(text_of(&text), "page 0 of a chain") != NULL;
    }
    assert_true(slot >= pages + 2 && has_map && has_chain);
    buf_free(&text);
    kit_end(&kit);
}

static void
what_is_no_page_is_refused(void **state)
{
    (void)state;
    Kit kit;
    fill(&kit);
    Buf text = {0};
    assert_int_equal(dump(kit.path, 1000000, false, &text), ERR_NOTFOUND);
    assert_int_equal(dump(kit.path, U32_MAX - 1, false, &text), ERR_NOTFOUND);
    assert_int_equal(dump(kit.path, 1000000, true, &text), ERR_CORRUPT);
    assert_int_equal(dump("/nonexistent/x", 1, false, &text), ERR_CANTOPEN);
    char foreign[112];
    snprintf(foreign, sizeof(foreign), "%s/foreign", kit.dir);
    FILE *file = fopen(foreign, "w");
    assert_non_null(file);
    assert_true(fputs("SQLite format 3", file) >= 0);
    fclose(file);
    assert_int_equal(dump(foreign, 1, false, &text), ERR_NOTADB);
    buf_free(&text);
    kit_end(&kit);
}

/* ---- damage ---- */

static u64
next_random(u64 *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void
damage_is_told(void **state)
{
    (void)state;
    Kit kit;
    fill(&kit);
    FILE *file = fopen(kit.path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    u64 bytes = (u64)ftell(file), seed = 7, told = 0, blocks = 0;
    for (u32 round = 0; round < 300; round++) {
        u64 at = 16384 + next_random(&seed) % (bytes - 16384);
        u8 was[64], is[64];
        size_t count = round % 3 == 0 ? 1 : MIN_OF((u64)sizeof(was), bytes - at);
        assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
        assert_int_equal(fread(was, 1, count, file), count);
        for (size_t i = 0; i < count; i++) {
            is[i] = (u8)(was[i] ^ (1 + next_random(&seed) % 255));
        }
        /* Heads and slots, where places are kept, too. */
        assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
        assert_int_equal(fwrite(is, 1, count, file), count);
        assert_int_equal(fflush(file), 0);
        u32 slot = (u32)((at - 16384) / 16384);
        Buf text = {0};
        assert_int_equal(dump(kit.path, slot, true, &text), OK);
        told += strstr(text_of(&text), "DAMAGED") != NULL;
        for (u32 page = 1; page < 20; page++) {
            Err err = dump(kit.path, page, false, &text);
            assert_true(err == OK || err == ERR_NOTFOUND || err == ERR_CORRUPT);
        }
        buf_free(&text);
        if (round == 0) blocks = mem_live_blocks();
        assert_int_equal(mem_live_blocks(), blocks);
        assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
        assert_int_equal(fwrite(was, 1, count, file), count);
        assert_int_equal(fflush(file), 0);
    }
    assert_int_equal(told, 300);
    fclose(file);
    kit_end(&kit);
}

/* Heads of nodes with any bytes at all. */
static void
any_bytes_are_taken(void **state)
{
    (void)state;
    Kit kit;
    fill(&kit);
    FILE *file = fopen(kit.path, "r+");
    assert_non_null(file);
    u64 seed = 11;
    Buf text = {0};
    for (u32 round = 0; round < 1000; round++) {
        /* Page id, tree and epoch stay; count, fences, level, heap, slots become anything. */
        u8 noise[120];
        for (u32 i = 0; i < sizeof(noise); i++) {
            noise[i] = (u8)(round % 2 == 0 ? next_random(&seed) : next_random(&seed) % 4);
        }
        if (round % 3 != 0) noise[18] = (u8)(round % 3 - 1); /* Level 0 or 1. */
        u32 slot = round % 8;
        assert_int_equal(fseek(file, (long)(16384 + slot * 16384 + 24), SEEK_SET), 0);
        assert_int_equal(fwrite(noise, 1, sizeof(noise), file), sizeof(noise));
        assert_int_equal(fflush(file), 0);
        assert_int_equal(dump(kit.path, slot, true, &text), OK);
        assert_non_null(strstr(text_of(&text), "DAMAGED"));
    }
    buf_free(&text);
    fclose(file);
    kit_end(&kit);
}

static void
every_allocation_fails_once(void **state)
{
    (void)state;
    Kit kit;
    fill(&kit);
    bool fired = true;
    u64 n;
    for (n = 1; fired; n++) {
        u64 blocks = mem_live_blocks();
        Buf text = {0};
        mem_fail_arm(n, false);
        Err err = store_dump_page(kit.path, 1, false, &text, NULL);
        fired = mem_fail_fired();
        mem_fail_arm(0, false);
        assert_int_equal(err, fired ? ERR_NOMEM : OK);
        buf_free(&text);
        assert_int_equal(mem_live_blocks(), blocks);
    }
    assert_true(n > 5);
    kit_end(&kit);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_told_in_words),
        cmocka_unit_test(what_is_no_page_is_refused),
        cmocka_unit_test(damage_is_told),
        cmocka_unit_test(any_bytes_are_taken),
        cmocka_unit_test(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
