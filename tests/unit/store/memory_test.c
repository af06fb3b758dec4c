/*
 * memory_test.c -- the face of the store on a store in memory, one task.
 *
 * Method: small scripts of puts, deletes, marks and cursors, each checked against what must be
 * seen; and store_check() after each.
 */
#include <stdio.h>

#include "rt/process.h"
#include "store/store.h"
#include "unit/cmocka_all.h"

static Store *
open_memory(void)
{
    Store *store;
    ErrMsg msg = {0};
    StoreOptions options = {.in_memory = true};
    assert_int_equal(store_open(rt_process_default(), NULL, &options, &store, &msg), OK);
    return store;
}

static StoreTxn *
begin(Store *store, StoreLevel level)
{
    StoreTxn *txn;
    StoreTxnOptions options = {.level = level, .sync = STORE_SYNC_FULL};
    assert_int_equal(store_txn_begin(store, &options, &txn), OK);
    return txn;
}

static Slice
text(const char *p)
{
    return (Slice){(const u8 *)p, strlen(p)};
}

static StoreVerdict
put(StoreTxn *txn, TreeId tree, const char *key, const char *value, StorePut mode)
{
    StoreVerdict verdict;
    assert_int_equal(store_put(txn, tree, text(key), text(value), mode, &verdict), OK);
    return verdict;
}

static StoreVerdict
erase(StoreTxn *txn, TreeId tree, const char *key)
{
    StoreVerdict verdict;
    assert_int_equal(store_delete(txn, tree, text(key), &verdict), OK);
    return verdict;
}

/* NULL: must be absent. */
static void
expect(StoreTxn *txn, TreeId tree, const char *key, const char *value)
{
    bool found;
    Slice got;
    assert_int_equal(store_get(txn, tree, text(key), &found, &got), OK);
    assert_int_equal(found, value != NULL);
    if (value != NULL) assert_true(slice_equal(got, text(value)));
}

static void
commit(StoreTxn *txn)
{
    ErrMsg msg = {0};
    assert_int_equal(store_txn_commit(txn, &msg), OK);
}

static void
finding(void *arg, const char *what)
{
    (void)arg;
    print_error("%s\n", what);
}

static void
check(Store *store)
{
    u64 findings;
    assert_int_equal(store_check(store, finding, NULL, &findings), OK);
    assert_int_equal(findings, 0);
}

static void
verdicts_and_own_writes(void **state)
{
    (void)state;
    Store *store = open_memory();
    StoreTxn *txn = begin(store, STORE_SNAPSHOT);
    TreeId tree;
    assert_int_equal(store_tree_create(txn, STORE_TREE_BYTES, &tree), OK);
    assert_int_equal(put(txn, tree, "a", "1", STORE_PUT_UPDATE), STORE_ABSENT);
    assert_int_equal(put(txn, tree, "a", "1", STORE_PUT_INSERT), STORE_DONE);
    assert_int_equal(put(txn, tree, "a", "2", STORE_PUT_INSERT), STORE_EXISTS);
    expect(txn, tree, "a", "1");
    assert_int_equal(put(txn, tree, "a", "2", STORE_PUT_UPDATE), STORE_DONE);
    assert_int_equal(put(txn, tree, "b", "3", STORE_PUT_ANY), STORE_DONE);
    assert_int_equal(erase(txn, tree, "x"), STORE_ABSENT);
    assert_int_equal(erase(txn, tree, "b"), STORE_DONE);
    assert_int_equal(erase(txn, tree, "b"), STORE_ABSENT);
    expect(txn, tree, "a", "2");
    expect(txn, tree, "b", NULL);
    check(store);
    commit(txn);
    txn = begin(store, STORE_SNAPSHOT);
    expect(txn, tree, "a", "2");
    expect(txn, tree, "b", NULL);
    u64 rows;
    assert_int_equal(store_count(txn, tree, &rows), OK);
    assert_int_equal(rows, 1);
    assert_int_equal(store_estimate_rows(store, tree), 1); /* The tombstone is gone. */
    store_txn_rollback(txn);
    check(store);
    store_close(store);
}

static void
marks_and_rollback(void **state)
{
    (void)state;
    Store *store = open_memory();
    StoreTxn *txn = begin(store, STORE_SNAPSHOT);
    put(txn, TREE_ROOT, "k", "0", STORE_PUT_ANY);
    commit(txn);
    txn = begin(store, STORE_SNAPSHOT);
    put(txn, TREE_ROOT, "k", "1", STORE_PUT_ANY);
    StoreMark mark = store_txn_mark(txn);
    put(txn, TREE_ROOT, "k", "2", STORE_PUT_ANY);
    put(txn, TREE_ROOT, "n", "new", STORE_PUT_ANY);
    store_txn_undo_to(txn, mark);
    expect(txn, TREE_ROOT, "k", "1");
    expect(txn, TREE_ROOT, "n", NULL);
    assert_true(store_txn_has_written(txn));
    /* The row of the undone insert stays locked. */
    StoreTxn *other = begin(store, STORE_SNAPSHOT);
    StoreVerdict verdict;
    assert_int_equal(store_put(other, TREE_ROOT, text("n"), text("x"), STORE_PUT_ANY, &verdict),
                     ERR_BUSY);
    expect(other, TREE_ROOT, "n", NULL);
    expect(other, TREE_ROOT, "k", "0");
    check(store);
    store_txn_undo_to(txn, 0);
    assert_false(store_txn_has_written(txn));
    put(txn, TREE_ROOT, "n", "again", STORE_PUT_INSERT);
    commit(txn);
    assert_int_equal(store_put(other, TREE_ROOT, text("n"), text("x"), STORE_PUT_ANY, &verdict),
                     ERR_BUSY_SNAPSHOT);
    assert_int_equal(store_put(other, TREE_ROOT, text("n"), text("x"), STORE_PUT_INSERT, &verdict),
                     OK);
    assert_int_equal(verdict, STORE_EXISTS_NEWER);
    store_txn_rollback(other);
    check(store);
    store_close(store);
}

static void
snapshots_hold(void **state)
{
    (void)state;
    Store *store = open_memory();
    StoreTxn *txn = begin(store, STORE_SNAPSHOT);
    put(txn, TREE_ROOT, "k", "0", STORE_PUT_ANY);
    commit(txn);
    StoreTxn *old = begin(store, STORE_SNAPSHOT);
    for (u32 i = 0; i < 5000; i++) {
        txn = begin(store, STORE_SNAPSHOT);
        put(txn, TREE_ROOT, "k", i % 2 == 0 ? "even" : "odd", STORE_PUT_ANY);
        commit(txn);
    }
    expect(old, TREE_ROOT, "k", "0");
    StoreStats stats;
    store_stats(store, &stats);
    assert_true(stats.versions_live <= 4); /* Those between snapshots went. */
    check(store);
    store_txn_rollback(old);
    store_stats(store, &stats);
    assert_int_equal(stats.versions_live, 1);
    store_close(store);
}

static void
cursors_move_and_survive(void **state)
{
    (void)state;
    Store *store = open_memory();
    StoreTxn *txn = begin(store, STORE_SNAPSHOT);
    char key[16];
    for (u32 i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "%04u", i * 7 % 1000);
        put(txn, TREE_ROOT, key, key, STORE_PUT_INSERT);
    }
    StoreCursor *cursor;
    bool found;
    assert_int_equal(store_cursor_open(txn, TREE_ROOT, &cursor), OK);
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_GE, text("0500"), &found), OK);
    assert_true(found);
    erase(txn, TREE_ROOT, "0500");
    erase(txn, TREE_ROOT, "0501");
    put(txn, TREE_ROOT, "0500x", "", STORE_PUT_INSERT);
    assert_int_equal(store_cursor_next(cursor, &found), OK);
    assert_true(slice_equal(store_cursor_key(cursor), text("0500x")));
    assert_int_equal(store_cursor_next(cursor, &found), OK);
    assert_true(slice_equal(store_cursor_key(cursor), text("0502")));
    assert_int_equal(store_cursor_prev(cursor, &found), OK);
    assert_int_equal(store_cursor_prev(cursor, &found), OK);
    assert_true(slice_equal(store_cursor_key(cursor), text("0499")));
    StoreRun run;
    assert_int_equal(store_cursor_fetch(cursor, 3, 1000, false, &run), OK);
    assert_int_equal(run.rows, 3);
    assert_true(slice_equal(run.key[0], text("0499")));
    assert_true(slice_equal(run.key[2], text("0502")));
    assert_int_equal(store_cursor_fetch(cursor, 2, 1000, true, &run), OK);
    assert_true(slice_equal(run.key[0], text("0502")));
    assert_true(slice_equal(run.key[1], text("0500x")));
    assert_int_equal(store_cursor_set_bound(cursor, text("0503"), true), OK);
    assert_int_equal(store_cursor_fetch(cursor, 9, 1000, false, &run), OK);
    assert_int_equal(run.rows, 3);
    assert_true(run.end);
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_GT, text("9999"), &found), OK);
    assert_false(found);
    assert_int_equal(store_cursor_fetch(cursor, 9, 1000, false, &run), OK);
    assert_true(run.end && run.rows == 0);
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_LAST, SLICE_NONE, &found), OK);
    assert_true(slice_equal(store_cursor_key(cursor), text("0999")));
    store_cursor_close(cursor);
    u64 rows;
    assert_int_equal(store_tree_clear(txn, TREE_ROOT, &rows), OK);
    assert_int_equal(rows, 999);
    assert_int_equal(store_count(txn, TREE_ROOT, &rows), OK);
    assert_int_equal(rows, 0);
    commit(txn);
    check(store);
    assert_int_equal(store_estimate_rows(store, TREE_ROOT), 0);
    store_close(store);
}

static void
token_and_locks(void **state)
{
    (void)state;
    Store *store = open_memory();
    StoreTxn *a = begin(store, STORE_SNAPSHOT);
    StoreTxn *b = begin(store, STORE_SNAPSHOT);
    StoreTxn *reader = begin(store, STORE_SNAPSHOT);
    expect(reader, TREE_ROOT, "k", NULL);
    assert_int_equal(store_txn_take_token(a), OK);
    assert_int_equal(store_txn_take_token(b), ERR_BUSY);
    put(a, TREE_ROOT, "k", "a", STORE_PUT_ANY);
    assert_int_equal(store_txn_lock_schema(a, 7, false), OK);
    assert_int_equal(store_txn_lock_schema(b, 7, false), OK);
    assert_int_equal(store_txn_lock_schema(a, 7, true), ERR_BUSY);
    commit(a);
    assert_int_equal(store_txn_lock_schema(b, 7, true), OK);
    assert_int_equal(store_txn_take_token(reader), ERR_BUSY_SNAPSHOT);
    assert_int_equal(store_txn_take_token(b), OK); /* Has not read: a fresh snapshot. */
    expect(b, TREE_ROOT, "k", "a");
    store_txn_rollback(b);
    store_txn_rollback(reader);
    /* The owner of the token goes over the rows of others. */
    a = begin(store, STORE_SNAPSHOT);
    b = begin(store, STORE_SNAPSHOT);
    put(b, TREE_ROOT, "k", "b", STORE_PUT_ANY);
    put(b, TREE_ROOT, "n", "b", STORE_PUT_ANY);
    assert_int_equal(store_txn_take_token(a), OK);
    put(a, TREE_ROOT, "k", "owner", STORE_PUT_ANY);
    put(a, TREE_ROOT, "n", "owner", STORE_PUT_INSERT);
    bool found;
    Slice value;
    assert_int_equal(store_get(b, TREE_ROOT, text("x"), &found, &value), ERR_BUSY_SNAPSHOT);
    check(store);
    commit(a);
    assert_int_equal(store_txn_commit(b, NULL), ERR_BUSY_SNAPSHOT);
    a = begin(store, STORE_SNAPSHOT);
    expect(a, TREE_ROOT, "k", "owner");
    expect(a, TREE_ROOT, "n", "owner");
    /* A parent key that somebody relies on is not deleted. */
    b = begin(store, STORE_SNAPSHOT);
    assert_int_equal(store_txn_lock_key(b, TREE_ROOT, text("k")), OK);
    StoreVerdict verdict;
    assert_int_equal(store_delete(a, TREE_ROOT, text("k"), &verdict), ERR_BUSY);
    assert_int_equal(put(a, TREE_ROOT, "k", "changed", STORE_PUT_ANY), STORE_DONE);
    store_txn_rollback(b);
    assert_int_equal(erase(a, TREE_ROOT, "k"), STORE_DONE);
    commit(a);
    check(store);
    store_close(store);
}

static void
trees_come_and_go(void **state)
{
    (void)state;
    Store *store = open_memory();
    StoreTxn *txn = begin(store, STORE_SNAPSHOT);
    TreeId tree, gone;
    assert_int_equal(store_tree_create(txn, STORE_TREE_BYTES, &tree), OK);
    put(txn, tree, "a", "1", STORE_PUT_ANY);
    StoreMark mark = store_txn_mark(txn);
    assert_int_equal(store_tree_create(txn, STORE_TREE_BYTES, &gone), OK);
    put(txn, gone, "a", "1", STORE_PUT_ANY);
    store_txn_undo_to(txn, mark);
    commit(txn);
    StoreTxn *old = begin(store, STORE_SNAPSHOT);
    txn = begin(store, STORE_SNAPSHOT);
    assert_int_equal(store_tree_drop(txn, tree), OK);
    commit(txn);
    expect(old, tree, "a", "1");
    StoreVerdict verdict;
    assert_int_equal(store_put(old, tree, text("b"), text(""), STORE_PUT_ANY, &verdict),
                     ERR_SCHEMA);
    store_txn_rollback(old);
    assert_int_equal(store_estimate_rows(store, tree), 0);
    i64 number;
    txn = begin(store, STORE_SNAPSHOT);
    assert_int_equal(store_tree_next_number(txn, TREE_ROOT, 5, &number), OK);
    assert_int_equal(number, 5);
    assert_int_equal(store_tree_next_number(txn, TREE_ROOT, 2, &number), OK);
    assert_int_equal(number, 6);
    store_txn_rollback(txn);
    store_close(store);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_and_own_writes), cmocka_unit_test(marks_and_rollback),
        cmocka_unit_test(snapshots_hold),          cmocka_unit_test(cursors_move_and_survive),
        cmocka_unit_test(token_and_locks),         cmocka_unit_test(trees_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
