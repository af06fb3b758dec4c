/*
 * fault_test.c -- every I/O call and every allocation fails once.
 *
 * Method: one script opens a file, makes a tree, commits, undoes, checkpoints, reads, closes and
 * opens again.  It is run with the nth allocation failing, then with the nth file call failing by
 * each of several errors, for n = 1, 2, 3... until nothing fired.  Whatever happened, what was
 * acknowledged is there when the store is opened without faults, every transaction is whole, and
 * no memory or file is left.
 */
#include <errno.h>

#include "rt/fault.h"
#include "store_kit.h"

#define COMMITS 6u
#define ROWS    40u

typedef struct Script {
    Kit kit;
    u32 acknowledged; /* Commits that returned OK. */
    u32 tried;
    TreeId tree;
} Script;

static Err
put_number(StoreTxn *txn, TreeId tree, u32 key_no, u32 number)
{
    char key[16], value[16];
    snprintf(key, sizeof(key), "key%04u", key_no);
    snprintf(value, sizeof(value), "%u", number);
    StoreVerdict verdict;
    return store_put(txn, tree, kit_text(key), kit_text(value), STORE_PUT_ANY, &verdict);
}

/* All rows in runs, both ways; at the writer's own rows, so entry by entry. */
static Err
fetch_all(StoreTxn *txn, TreeId tree, bool backwards)
{
    StoreCursor *cursor;
    StoreRun run = {0};
    bool found;
    u32 rows = 0;
    Err err = store_cursor_open(txn, tree, &cursor);
    if (err != OK) return err;
    err = store_cursor_seek(cursor, backwards ? STORE_SEEK_LAST : STORE_SEEK_FIRST, SLICE_NONE,
                            &found);
    while (err == OK && !run.end) {
        err = store_cursor_fetch(cursor, 7, 100000, backwards, &run);
        if (err == OK) rows += run.rows;
    }
    store_cursor_close(cursor);
    if (err == OK) assert_int_equal(rows, ROWS);
    return err;
}

/* Commit number `number` sets every row to it. */
static Err
commit_number(Script *script, Store *store, u32 number)
{
    StoreTxn *txn;
    StoreTxnOptions options = {.level = STORE_SNAPSHOT,
                               .sync = number % 3 == 0 ? STORE_SYNC_NORMAL : STORE_SYNC_FULL};
    Err err = store_txn_begin(store, &options, &txn);
    if (err != OK) return err;
    if (number == 1) err = store_tree_create(txn, STORE_TREE_BYTES, &script->tree);
    for (u32 i = 0; err == OK && i < ROWS; i++) {
        err = put_number(txn, script->tree, i, number);
    }
    if (err == OK) {
        StoreMark mark = store_txn_mark(txn);
        err = put_number(txn, script->tree, 5, 99999);
        StoreVerdict verdict;
        if (err == OK) err = store_delete(txn, script->tree, kit_text("key0007"), &verdict);
        store_txn_undo_to(txn, mark); /* Never fails. */
    }
    if (err == OK) err = fetch_all(txn, script->tree, number % 2 == 0);
    if (err != OK) {
        store_txn_rollback(txn);
        return err;
    }
    script->tried = number;
    err = store_txn_commit(txn, NULL);
    if (err == OK) script->acknowledged = number;
    return err;
}

static Err
run_script(Script *script)
{
    Store *store;
    Err err = kit_try_open(&script->kit, &store, NULL);
    if (err != OK) return err;
    for (u32 number = 1; err == OK && number <= COMMITS; number++) {
        err = commit_number(script, store, number);
        if (err == OK && number == 4) err = store_checkpoint(store, NULL);
    }
    store_close(store);
    if (err != OK) return err;
    err = kit_try_open(&script->kit, &store, NULL);
    if (err != OK) return err;
    err = commit_number(script, store, COMMITS + 1);
    store_close(store);
    return err;
}

/* The store holds one whole transaction, at least the acknowledged and at most the tried one. */
static void
judge(Script *script)
{
    Store *store = kit_open(&script->kit);
    kit_check(store);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    u32 number = 0;
    bool found = false;
    Slice value;
    TreeId tree = TREE_ROOT + 1;
    if (store_get(txn, tree, kit_text("key0000"), &found, &value) == OK && found) {
        number = (u32)strtoul((char[16]){(char)value.p[0], 0}, NULL, 10);
    }
    assert_true(number >= script->acknowledged && number <= script->tried);
    for (u32 i = 0; number > 0 && i < ROWS; i++) {
        char key[16], text[16];
        snprintf(key, sizeof(key), "key%04u", i);
        snprintf(text, sizeof(text), "%u", number);
        kit_expect(txn, tree, key, text);
    }
    store_txn_rollback(txn);
    store_close(store);
}

static void
every_allocation_fails_once(void **state)
{
    (void)state;
    Store *store = kit_open_memory(); /* The process's roots exist from here on. */
    store_close(store);
    bool fired = true;
    u64 n;
    for (n = 1; fired; n++) {
        Script script = {0};
        kit_start_fast(&script.kit);
        u64 blocks = mem_live_blocks();
        mem_fail_arm(n, false);
        Err err = run_script(&script);
        fired = mem_fail_fired();
        mem_fail_arm(0, false);
        if (!fired) assert_int_equal(err, OK);
        if (n > 2) assert_int_equal(mem_live_blocks(), blocks);
        judge(&script);
        kit_end(&script.kit);
    }
    assert_true(n > 50);
}

static u64
one_fault(u64 n, int error, bool onwards)
{
    Script script = {0};
    kit_start_fast(&script.kit);
    if (onwards) {
        rt_fault_arm_onwards(n, error);
    } else {
        rt_fault_arm(n, error);
    }
    Err err = run_script(&script);
    bool fired = rt_fault_fired();
    rt_fault_arm(0, 0);
    if (!fired) assert_int_equal(err, OK);
    judge(&script);
    kit_end(&script.kit);
    return fired ? n : 0;
}

static void
every_file_call_fails_once(void **state)
{
    (void)state;
    static const int errors[] = {EIO, ENOSPC, EINTR, RT_FAULT_SHORT};
    for (u32 i = 0; i < COUNT_OF(errors); i++) {
        for (u32 onwards = 0; onwards < 2; onwards++) {
            if (onwards != 0 && errors[i] != EIO && errors[i] != ENOSPC) continue;
            u64 n = 1;
            while (one_fault(n, errors[i], onwards != 0) != 0) {
                n++;
            }
            assert_true(n > 30);
        }
    }
}

/* ---- a page that never comes back ---- */

#define FAR_ROWS 6000u /* With values of 4,000 bytes: three times the least pool. */

static Slice
far_key(u32 number, u8 key[8])
{
    store_be64(key, number);
    return (Slice){key, 8};
}

static void
far_put(StoreTxn *txn, u32 number, u8 with)
{
    u8 key[8], value[4000];
    StoreVerdict verdict;
    memset(value, with, sizeof(value));
    assert_int_equal(store_put(txn, TREE_ROOT, far_key(number, key), SLICE(value, sizeof(value)),
                               STORE_PUT_ANY, &verdict),
                     OK);
}

/* What a fresh snapshot sees of a row: its byte, or 0. */
static u8
far_get(StoreTxn *txn, u32 number)
{
    u8 key[8];
    bool found;
    Slice value;
    assert_int_equal(store_get(txn, TREE_ROOT, far_key(number, key), &found, &value), OK);
    return found ? value.p[0] : 0;
}

/* Read so much that the pages of the first rows leave the pool. */
static void
far_read(StoreTxn *txn)
{
    for (u32 round = 0; round < 2; round++) {
        for (u32 i = FAR_ROWS / 2; i < FAR_ROWS; i++) {
            (void)far_get(txn, i);
        }
    }
}

static Store *
far_open(const Kit *kit)
{
    Store *store;
    StoreOptions options = {.create = true, .pool_bytes = (u64)8 << 20};
    assert_int_equal(store_open(rt_process_default(), kit->path, &options, &store, NULL), OK);
    return store;
}

/* Undo what has to come from a disk that reads no more: by a savepoint first, or at once. */
static void
undo_without_disk(bool by_savepoint)
{
    Kit kit;
    kit_start_fast(&kit);
    Store *store = far_open(&kit);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    for (u32 i = 1; i < FAR_ROWS; i++) {
        far_put(txn, i, 'a');
    }
    kit_commit(txn);

    txn = kit_begin(store, STORE_SNAPSHOT);
    far_put(txn, 3, 'x');
    StoreMark mark = store_txn_mark(txn);
    far_put(txn, 0, 'x');
    far_put(txn, 2, 'x');
    far_put(txn, 900, 'x');
    far_read(txn);
    rt_fault_only(RT_FAULT_READ);
    rt_fault_arm_onwards(1, EIO);
    if (by_savepoint) {
        store_txn_undo_to(txn, mark); /* Must end. */
        ErrMsg msg = {0};
        assert_int_equal(store_txn_commit(txn, &msg), ERR_IO);
        assert_non_null(strstr(err_message(&msg), "could not be undone"));
        err_clear(&msg);
    } else {
        store_txn_rollback(txn); /* Must end. */
    }
    assert_true(rt_fault_fired());
    rt_fault_arm(0, 0);

    /* Nothing more is written; what is committed can be read, here and after the next open. */
    for (u32 round = 0; round < 2; round++) {
        txn = kit_begin(store, STORE_SNAPSHOT);
        assert_int_equal(far_get(txn, 0), 0);
        assert_int_equal(far_get(txn, 2), 'a');
        assert_int_equal(far_get(txn, 3), 'a');
        assert_int_equal(far_get(txn, 900), 'a');
        u64 rows;
        assert_int_equal(store_count(txn, TREE_ROOT, &rows), OK);
        assert_int_equal(rows, FAR_ROWS - 1);
        u8 key[8];
        StoreVerdict verdict;
        Err err = store_delete(txn, TREE_ROOT, far_key(2, key), &verdict);
        assert_int_equal(err, round == 0 ? ERR_IO : OK);
        if (round == 0) {
            assert_non_null(strstr(err_message(store_txn_error(txn)), "could not be undone"));
            ErrMsg msg = {0};
            assert_int_equal(store_checkpoint(store, &msg), ERR_IO);
            err_clear(&msg);
        }
        store_txn_rollback(txn);
        store_close(store);
        if (round == 0) store = far_open(&kit);
    }
    kit_end(&kit);
}

static void
undoing_without_a_disk_ends_the_writing(void **state)
{
    (void)state;
    u64 blocks = kit_live_blocks();
    undo_without_disk(false);
    undo_without_disk(true);
    assert_int_equal(kit_live_blocks(), blocks);
}

/* Opened clean, read and closed: no call that writes or syncs is made, so none can fail. */
static void
who_only_reads_writes_nothing(void **state)
{
    (void)state;
    Kit kit;
    kit_start_fast(&kit);
    Store *store = far_open(&kit);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    far_put(txn, 3, 'x');
    kit_commit(txn);
    store_close(store);
    rt_fault_only(RT_FAULT_WRITE | RT_FAULT_SYNC | RT_FAULT_SIZE);
    rt_fault_arm_onwards(1, EIO);
    store = far_open(&kit);
    txn = kit_begin(store, STORE_SNAPSHOT);
    assert_int_equal(far_get(txn, 3), 'x');
    store_txn_rollback(txn);
    store_close(store);
    assert_false(rt_fault_fired());
    rt_fault_arm(0, 0);
    kit_end(&kit);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_only_reads_writes_nothing),
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(every_file_call_fails_once),
        cmocka_unit_test(undoing_without_a_disk_ends_the_writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
