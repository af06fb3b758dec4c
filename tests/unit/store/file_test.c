/*
 * file_test.c -- a store in a file: closed and opened, killed and opened, refused.
 *
 * Method: write through one store, then open the file again after a proper close, or open a copy of
 * the directory taken while the store was open (what a kill leaves), and look for every row.
 */
#include "rt/time.h"
#include "store_kit.h"

static void
write_rows(Store *store, TreeId tree, u32 from, u32 to, const char *value)
{
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    char key[16];
    for (u32 i = from; i < to; i++) {
        snprintf(key, sizeof(key), "%06u", i);
        kit_put(txn, tree, key, value, STORE_PUT_ANY);
    }
    kit_commit(txn);
}

static void
expect_rows(Store *store, TreeId tree, u32 from, u32 to, const char *value)
{
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    char key[16];
    for (u32 i = from; i < to; i++) {
        snprintf(key, sizeof(key), "%06u", i);
        kit_expect(txn, tree, key, value);
    }
    u64 rows;
    assert_int_equal(store_count(txn, tree, &rows), OK);
    assert_int_equal(rows, to - from);
    store_txn_rollback(txn);
    kit_check(store);
}

static TreeId
make_tree(Store *store)
{
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    TreeId tree;
    assert_int_equal(store_tree_create(txn, STORE_TREE_BYTES, &tree), OK);
    kit_commit(txn);
    return tree;
}

static bool
exists(const Kit *kit, const char *suffix)
{
    char path[128];
    RtStat stat;
    snprintf(path, sizeof(path), "%s%s", kit->path, suffix);
    return rt_file_stat(NULL, path, &stat, NULL) == OK;
}

static void
closed_and_opened(void **state)
{
    (void)state;
    Kit kit;
    kit_start(&kit);
    Store *store = kit_open(&kit);
    store_close(store); /* Nothing written: an empty file. */
    store = kit_open(&kit);
    TreeId tree = make_tree(store);
    write_rows(store, tree, 0, 500, "one");
    assert_true(exists(&kit, "-log.00000001"));
    store_close(store);
    assert_false(exists(&kit, "-log.00000001"));
    store = kit_open(&kit);
    expect_rows(store, tree, 0, 500, "one");
    write_rows(store, tree, 0, 700, "two");
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    TreeId other;
    assert_int_equal(store_tree_create(txn, STORE_TREE_INT, &other), OK);
    assert_true(other > tree);
    store_txn_rollback(txn);
    store_close(store);
    for (u32 i = 0; i < 3; i++) {
        store = kit_open(&kit);
        expect_rows(store, tree, 0, 700, "two");
        store_close(store);
    }
    kit_end(&kit);
}

static void
killed_and_opened(void **state)
{
    (void)state;
    Kit kit, copy, copy2;
    kit_start(&kit);
    Store *store = kit_open(&kit);
    TreeId tree = make_tree(store);
    write_rows(store, tree, 0, 100, "one");
    kit_copy(&kit, &copy);
    Store *other = kit_open(&copy);
    expect_rows(other, tree, 0, 100, "one");
    write_rows(other, tree, 0, 200, "two");
    kit_copy(&copy, &copy2); /* A second generation of the log. */
    store_close(other);
    other = kit_open(&copy2);
    expect_rows(other, tree, 0, 200, "two");
    store_close(other);
    kit_end(&copy);
    kit_end(&copy2);

    ErrMsg msg = {0};
    assert_int_equal(store_checkpoint(store, &msg), OK);
    kit_copy(&kit, &copy);
    other = kit_open(&copy);
    expect_rows(other, tree, 0, 100, "one");
    store_close(other);
    kit_end(&copy);
    write_rows(store, tree, 100, 300, "one");
    kit_copy(&kit, &copy);
    other = kit_open(&copy);
    expect_rows(other, tree, 0, 300, "one");
    store_close(other);
    other = kit_open(&copy);
    expect_rows(other, tree, 0, 300, "one");
    store_close(other);
    kit_end(&copy);
    store_close(store);
    kit_end(&kit);
}

/* Records longer than a piece, than a buffer, than a segment; several segments.  In all less than
   would start a checkpoint beside the copying. */
static void
long_values_and_rotation(void **state)
{
    (void)state;
    Kit kit, copy;
    kit_start(&kit);
    Store *store = kit_open(&kit);
    size_t bytes = (size_t)7 << 19;
    u8 *value = (u8 *)mem_alloc(bytes);
    assert_non_null(value);
    Rng rng;
    rng_seed(&rng, 1);
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        store_u64(value + i, rng_next(&rng));
    }
    for (u32 i = 0; i < 4; i++) {
        StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
        StoreVerdict verdict;
        char key[8] = {(char)('a' + i)};
        Slice part = {value + i, bytes - 100 * i};
        assert_int_equal(store_put(txn, TREE_ROOT, kit_text(key), part, STORE_PUT_INSERT, &verdict),
                         OK);
        kit_commit(txn);
    }
    kit_copy(&kit, &copy);
    store_close(store);
    for (u32 round = 0; round < 2; round++) {
        store = kit_open(round == 0 ? &copy : &kit);
        StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
        for (u32 i = 0; i < 4; i++) {
            char key[8] = {(char)('a' + i)};
            bool found;
            Slice got;
            assert_int_equal(store_get(txn, TREE_ROOT, kit_text(key), &found, &got), OK);
            assert_true(found);
            assert_true(slice_equal(got, (Slice){value + i, bytes - 100 * i}));
        }
        store_txn_rollback(txn);
        store_close(store);
    }
    mem_free(value);
    kit_end(&copy);
    kit_end(&kit);
}

static void
write_file(const Kit *kit, const void *bytes, size_t count)
{
    RtFile *file;
    assert_int_equal(rt_file_open(NULL, kit->path,
                                  RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE | RT_FILE_TRUNCATE,
                                  &file, NULL),
                     OK);
    assert_int_equal(rt_file_write(file, 0, bytes, count, NULL), OK);
    rt_file_close(file);
}

/* The power went while the first superblock was written: any part of it may be there, without its
   magic, and nothing else. */
static void
torn_first_superblocks(void **state)
{
    (void)state;
    Kit kit;
    kit_start(&kit);
    u8 bytes[8192 + 4096 + 112] = {0};
    Store *store;
    ErrMsg msg = {0};
    memset(bytes + 8192 + 20, 0xa5, 60);
    write_file(&kit, bytes, 8192 + 80);
    store = kit_open(&kit);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    kit_put(txn, TREE_ROOT, "k", "v", STORE_PUT_INSERT);
    kit_commit(txn);
    store_close(store);
    memset(bytes + 8192 + 4096 + 100, 0xa5, 12);
    write_file(&kit, bytes, sizeof(bytes));
    store = kit_open(&kit);
    store_close(store);
    /* A byte that no first superblock has: somebody else's file. */
    for (u32 at = 0; at < 3; at++) {
        static const u32 places[] = {100, 8191, 8192 + 112};
        bytes[places[at]] = 1;
        write_file(&kit, bytes, sizeof(bytes));
        assert_int_equal(kit_try_open(&kit, &store, &msg), ERR_NOTADB);
        bytes[places[at]] = 0;
    }
    err_clear(&msg);
    kit_end(&kit);
}

static void
foreign_files_are_refused(void **state)
{
    (void)state;
    Kit kit;
    kit_start(&kit);
    u8 bytes[8192] = "SQLite format 3";
    write_file(&kit, bytes, sizeof(bytes));
    Store *store;
    ErrMsg msg = {0};
    assert_int_equal(kit_try_open(&kit, &store, &msg), ERR_NOTADB);
    assert_non_null(strstr(err_message(&msg), "weft import"));
    memcpy(bytes, "hello, this is a text", 21);
    write_file(&kit, bytes, 100);
    assert_int_equal(kit_try_open(&kit, &store, &msg), ERR_NOTADB);
    StoreOptions options = {0};
    assert_int_equal(
        store_open(rt_process_default(), "/tmp/no-such-dir-x/y", &options, &store, &msg),
        ERR_CANTOPEN);
    char missing[128];
    snprintf(missing, sizeof(missing), "%s/missing", kit.dir);
    assert_int_equal(store_open(rt_process_default(), missing, &options, &store, &msg),
                     ERR_CANTOPEN);
    err_clear(&msg);
    kit_end(&kit);
}

static void
read_only_and_shared(void **state)
{
    (void)state;
    Kit kit, copy;
    kit_start(&kit);
    Store *store = kit_open(&kit);
    Store *again = kit_open(&kit);
    assert_ptr_equal(store, again);
    write_rows(store, TREE_ROOT, 0, 10, "v");
    kit_copy(&kit, &copy);
    store_close(again);
    store_close(store);
    StoreOptions options = {.read_only = true};
    ErrMsg msg = {0};
    for (u32 i = 0; i < 2; i++) { /* With a log and without one. */
        assert_int_equal(
            store_open(rt_process_default(), i == 0 ? copy.path : kit.path, &options, &store, &msg),
            OK);
        expect_rows(store, TREE_ROOT, 0, 10, "v");
        StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
        StoreVerdict verdict;
        assert_int_equal(
            store_put(txn, TREE_ROOT, kit_text("x"), kit_text(""), STORE_PUT_ANY, &verdict),
            ERR_READONLY);
        store_txn_rollback(txn);
        store_close(store);
    }
    assert_true(exists(&copy, "-log.00000001"));
    kit_end(&copy);
    kit_end(&kit);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_and_opened),        cmocka_unit_test(killed_and_opened),
        cmocka_unit_test(long_values_and_rotation), cmocka_unit_test(foreign_files_are_refused),
        cmocka_unit_test(torn_first_superblocks),   cmocka_unit_test(read_only_and_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
