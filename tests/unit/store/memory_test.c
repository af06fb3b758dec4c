/*
 * memory_test.c -- the face of the store on a store in memory, one task.
 *
 * Method: small scripts of puts, deletes, marks and cursors, each checked against what must be
 * seen; and store_check() after each.
 */
#include "store_kit.h"

static void
verdicts_and_own_writes(void **state)
{
    (void)state;
    Store *store = kit_open_memory();
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    TreeId tree;
    assert_int_equal(store_tree_create(txn, STORE_TREE_BYTES, &tree), OK);
    assert_int_equal(kit_put(txn, tree, "a", "1", STORE_PUT_UPDATE), STORE_ABSENT);
    assert_int_equal(kit_put(txn, tree, "a", "1", STORE_PUT_INSERT), STORE_DONE);
    assert_int_equal(kit_put(txn, tree, "a", "2", STORE_PUT_INSERT), STORE_EXISTS);
    kit_expect(txn, tree, "a", "1");
    assert_int_equal(kit_put(txn, tree, "a", "2", STORE_PUT_UPDATE), STORE_DONE);
    assert_int_equal(kit_put(txn, tree, "b", "3", STORE_PUT_ANY), STORE_DONE);
    assert_int_equal(kit_delete(txn, tree, "x"), STORE_ABSENT);
    assert_int_equal(kit_delete(txn, tree, "b"), STORE_DONE);
    assert_int_equal(kit_delete(txn, tree, "b"), STORE_ABSENT);
    kit_expect(txn, tree, "a", "2");
    kit_expect(txn, tree, "b", NULL);
    kit_check(store);
    kit_commit(txn);
    txn = kit_begin(store, STORE_SNAPSHOT);
    kit_expect(txn, tree, "a", "2");
    kit_expect(txn, tree, "b", NULL);
    u64 rows;
    assert_int_equal(store_count(txn, tree, &rows), OK);
    assert_int_equal(rows, 1);
    assert_int_equal(store_estimate_rows(store, tree), 1); /* The tombstone is gone. */
    store_txn_rollback(txn);
    kit_check(store);
    store_close(store);
}

/* What a transaction must remember to undo its inserts is in the account until it ends. */
static void
undo_is_charged(void **state)
{
    (void)state;
    Store *store = kit_open_memory();
    MemAccount *account = store_account(store);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    char key[48];
    for (u32 i = 0; i < 20000; i++) {
        snprintf(key, sizeof(key), "%08u key of some length, for the undo", i);
        kit_put(txn, TREE_ROOT, key, "v", STORE_PUT_ANY);
    }
    u64 before = account->used_bytes;
    kit_commit(txn);
    assert_true(account->used_bytes + 20000 * strlen(key) <= before);

    /* At a cap a write is refused, and rolling back is not. */
    txn = kit_begin(store, STORE_SNAPSHOT);
    mem_account_cap(account, account->used_bytes + account->used_bytes / 4);
    Err err = OK;
    for (u32 i = 0; i < 200000 && err == OK; i++) {
        StoreVerdict verdict;
        snprintf(key, sizeof(key), "%08u", 10000000 + i);
        err = store_put(txn, TREE_ROOT, kit_text(key), kit_text("v"), STORE_PUT_ANY, &verdict);
    }
    assert_int_equal(err, ERR_NOMEM);
    store_txn_rollback(txn);
    mem_account_cap(account, 0);
    kit_check(store);
    store_close(store);
}

static void
put_number(StoreTxn *txn, TreeId tree, i64 number)
{
    u8 key[8];
    StoreVerdict verdict;
    store_be64(key, (u64)number ^ (u64)1 << 63);
    assert_int_equal(store_put(txn, tree, SLICE(key, 8), SLICE("v", 1), STORE_PUT_INSERT, &verdict),
                     OK);
    assert_int_equal(verdict, STORE_DONE);
}

static void
next_is(StoreTxn *txn, TreeId tree, i64 expected)
{
    i64 number;
    assert_int_equal(store_tree_next_key(txn, tree, &number), OK);
    assert_int_equal(number, expected);
}

/* The next key is above all that were there before anybody asked, that somebody has put and not
   committed, and that were handed out. */
static void
next_keys(void **state)
{
    (void)state;
    Store *store = kit_open_memory();
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    TreeId empty, filled, low;
    assert_int_equal(store_tree_create(txn, STORE_TREE_INT, &empty), OK);
    assert_int_equal(store_tree_create(txn, STORE_TREE_INT, &filled), OK);
    assert_int_equal(store_tree_create(txn, STORE_TREE_INT, &low), OK);
    for (i64 i = 1; i <= 3000; i++) /* Leaves enough. */
        put_number(txn, filled, i * 2);
    put_number(txn, low, -7);
    kit_commit(txn);

    txn = kit_begin(store, STORE_SNAPSHOT);
    StoreTxn *other = kit_begin(store, STORE_SNAPSHOT);
    next_is(txn, empty, 1);
    next_is(other, empty, 2);
    put_number(other, filled, 7001);
    next_is(txn, filled, 7002);
    next_is(other, filled, 7003);
    put_number(other, filled, 9000);
    put_number(other, filled, 5);
    next_is(txn, filled, 9001);
    store_txn_rollback(other);
    next_is(txn, filled, 9002);
    next_is(txn, low, -6);
    put_number(txn, low, I64_MAX);
    i64 number;
    assert_int_equal(store_tree_next_key(txn, low, &number), ERR_FULL);
    assert_int_equal(store_tree_next_key(txn, TREE_ROOT, &number), ERR_MISUSE);
    kit_commit(txn);
    kit_check(store);
    store_close(store);
}

static void
marks_and_rollback(void **state)
{
    (void)state;
    Store *store = kit_open_memory();
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    kit_put(txn, TREE_ROOT, "k", "0", STORE_PUT_ANY);
    kit_commit(txn);
    txn = kit_begin(store, STORE_SNAPSHOT);
    kit_put(txn, TREE_ROOT, "k", "1", STORE_PUT_ANY);
    StoreMark mark = store_txn_mark(txn);
    kit_put(txn, TREE_ROOT, "k", "2", STORE_PUT_ANY);
    kit_put(txn, TREE_ROOT, "n", "new", STORE_PUT_ANY);
    store_txn_undo_to(txn, mark);
    kit_expect(txn, TREE_ROOT, "k", "1");
    kit_expect(txn, TREE_ROOT, "n", NULL);
    assert_true(store_txn_has_written(txn));
    /* The row of the undone insert stays locked. */
    StoreTxn *other = kit_begin(store, STORE_SNAPSHOT);
    StoreVerdict verdict;
    assert_int_equal(
        store_put(other, TREE_ROOT, kit_text("n"), kit_text("x"), STORE_PUT_ANY, &verdict),
        ERR_BUSY);
    kit_expect(other, TREE_ROOT, "n", NULL);
    kit_expect(other, TREE_ROOT, "k", "0");
    kit_check(store);
    store_txn_undo_to(txn, 0);
    assert_false(store_txn_has_written(txn));
    kit_put(txn, TREE_ROOT, "n", "again", STORE_PUT_INSERT);
    kit_commit(txn);
    assert_int_equal(
        store_put(other, TREE_ROOT, kit_text("n"), kit_text("x"), STORE_PUT_ANY, &verdict),
        ERR_BUSY_SNAPSHOT);
    assert_int_equal(
        store_put(other, TREE_ROOT, kit_text("n"), kit_text("x"), STORE_PUT_INSERT, &verdict), OK);
    assert_int_equal(verdict, STORE_EXISTS_NEWER);
    store_txn_rollback(other);
    kit_check(store);
    store_close(store);
}

static void
snapshots_hold(void **state)
{
    (void)state;
    Store *store = kit_open_memory();
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    kit_put(txn, TREE_ROOT, "k", "0", STORE_PUT_ANY);
    kit_commit(txn);
    StoreTxn *old = kit_begin(store, STORE_SNAPSHOT);
    for (u32 i = 0; i < 5000; i++) {
        txn = kit_begin(store, STORE_SNAPSHOT);
        kit_put(txn, TREE_ROOT, "k", i % 2 == 0 ? "even" : "odd", STORE_PUT_ANY);
        kit_commit(txn);
    }
    kit_expect(old, TREE_ROOT, "k", "0");
    StoreStats stats;
    store_stats(store, &stats);
    assert_true(stats.versions_live <= 4); /* Those between snapshots went. */
    kit_check(store);
    store_txn_rollback(old);
    store_stats(store, &stats);
    assert_int_equal(stats.versions_live, 0);
    store_close(store);
}

static void
cursors_move_and_survive(void **state)
{
    (void)state;
    Store *store = kit_open_memory();
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    char key[16];
    for (u32 i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "%04u", i * 7 % 1000);
        kit_put(txn, TREE_ROOT, key, key, STORE_PUT_INSERT);
    }
    StoreCursor *cursor;
    bool found;
    assert_int_equal(store_cursor_open(txn, TREE_ROOT, &cursor), OK);
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_GE, kit_text("0500"), &found), OK);
    assert_true(found);
    kit_delete(txn, TREE_ROOT, "0500");
    kit_delete(txn, TREE_ROOT, "0501");
    kit_put(txn, TREE_ROOT, "0500x", "", STORE_PUT_INSERT);
    assert_int_equal(store_cursor_next(cursor, &found), OK);
    assert_true(slice_equal(store_cursor_key(cursor), kit_text("0500x")));
    assert_int_equal(store_cursor_next(cursor, &found), OK);
    assert_true(slice_equal(store_cursor_key(cursor), kit_text("0502")));
    assert_int_equal(store_cursor_prev(cursor, &found), OK);
    assert_int_equal(store_cursor_prev(cursor, &found), OK);
    assert_true(slice_equal(store_cursor_key(cursor), kit_text("0499")));
    StoreRun run;
    assert_int_equal(store_cursor_fetch(cursor, 3, 1000, false, &run), OK);
    assert_int_equal(run.rows, 3);
    assert_true(slice_equal(run.key[0], kit_text("0499")));
    assert_true(slice_equal(run.key[2], kit_text("0502")));
    assert_int_equal(store_cursor_fetch(cursor, 2, 1000, true, &run), OK);
    assert_true(slice_equal(run.key[0], kit_text("0502")));
    assert_true(slice_equal(run.key[1], kit_text("0500x")));
    assert_int_equal(store_cursor_set_bound(cursor, kit_text("0503"), true), OK);
    assert_int_equal(store_cursor_fetch(cursor, 9, 1000, false, &run), OK);
    assert_int_equal(run.rows, 3);
    assert_true(run.end);
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_GT, kit_text("9999"), &found), OK);
    assert_false(found);
    assert_int_equal(store_cursor_fetch(cursor, 9, 1000, false, &run), OK);
    assert_true(run.end && run.rows == 0);
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_LAST, SLICE_NONE, &found), OK);
    assert_true(slice_equal(store_cursor_key(cursor), kit_text("0999")));
    store_cursor_close(cursor);
    u64 rows;
    assert_int_equal(store_tree_clear(txn, TREE_ROOT, &rows), OK);
    assert_int_equal(rows, 999);
    assert_int_equal(store_count(txn, TREE_ROOT, &rows), OK);
    assert_int_equal(rows, 0);
    kit_commit(txn);
    kit_check(store);
    assert_int_equal(store_estimate_rows(store, TREE_ROOT), 0);
    store_close(store);
}

static void
token_and_locks(void **state)
{
    (void)state;
    Store *store = kit_open_memory();
    StoreTxn *a = kit_begin(store, STORE_SNAPSHOT);
    StoreTxn *b = kit_begin(store, STORE_SNAPSHOT);
    StoreTxn *reader = kit_begin(store, STORE_SNAPSHOT);
    kit_expect(reader, TREE_ROOT, "k", NULL);
    assert_int_equal(store_txn_take_token(a), OK);
    assert_int_equal(store_txn_take_token(b), ERR_BUSY);
    kit_put(a, TREE_ROOT, "k", "a", STORE_PUT_ANY);
    assert_int_equal(store_txn_lock_schema(a, 7, false), OK);
    assert_int_equal(store_txn_lock_schema(b, 7, false), OK);
    assert_int_equal(store_txn_lock_schema(a, 7, true), ERR_BUSY);
    kit_commit(a);
    assert_int_equal(store_txn_lock_schema(b, 7, true), OK);
    assert_int_equal(store_txn_take_token(reader), ERR_BUSY_SNAPSHOT);
    assert_int_equal(store_txn_take_token(b), OK); /* Has not read: a fresh snapshot. */
    kit_expect(b, TREE_ROOT, "k", "a");
    store_txn_rollback(b);
    store_txn_rollback(reader);
    /* The owner of the token goes over the rows of others. */
    a = kit_begin(store, STORE_SNAPSHOT);
    b = kit_begin(store, STORE_SNAPSHOT);
    kit_put(b, TREE_ROOT, "k", "b", STORE_PUT_ANY);
    kit_put(b, TREE_ROOT, "n", "b", STORE_PUT_ANY);
    assert_int_equal(store_txn_take_token(a), OK);
    kit_put(a, TREE_ROOT, "k", "owner", STORE_PUT_ANY);
    kit_put(a, TREE_ROOT, "n", "owner", STORE_PUT_INSERT);
    bool found;
    Slice value;
    assert_int_equal(store_get(b, TREE_ROOT, kit_text("x"), &found, &value), ERR_BUSY_SNAPSHOT);
    kit_check(store);
    kit_commit(a);
    assert_int_equal(store_txn_commit(b, NULL), ERR_BUSY_SNAPSHOT);
    a = kit_begin(store, STORE_SNAPSHOT);
    kit_expect(a, TREE_ROOT, "k", "owner");
    kit_expect(a, TREE_ROOT, "n", "owner");
    /* A parent key that somebody relies on is not deleted. */
    b = kit_begin(store, STORE_SNAPSHOT);
    assert_int_equal(store_txn_lock_key(b, TREE_ROOT, kit_text("k")), OK);
    StoreVerdict verdict;
    assert_int_equal(store_delete(a, TREE_ROOT, kit_text("k"), &verdict), ERR_BUSY);
    assert_int_equal(kit_put(a, TREE_ROOT, "k", "changed", STORE_PUT_ANY), STORE_DONE);
    store_txn_rollback(b);
    assert_int_equal(kit_delete(a, TREE_ROOT, "k"), STORE_DONE);
    kit_commit(a);
    kit_check(store);
    store_close(store);
}

static void
trees_come_and_go(void **state)
{
    (void)state;
    Store *store = kit_open_memory();
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    TreeId tree, gone;
    assert_int_equal(store_tree_create(txn, STORE_TREE_BYTES, &tree), OK);
    kit_put(txn, tree, "a", "1", STORE_PUT_ANY);
    StoreMark mark = store_txn_mark(txn);
    assert_int_equal(store_tree_create(txn, STORE_TREE_BYTES, &gone), OK);
    kit_put(txn, gone, "a", "1", STORE_PUT_ANY);
    store_txn_undo_to(txn, mark);
    kit_commit(txn);
    StoreTxn *old = kit_begin(store, STORE_SNAPSHOT);
    txn = kit_begin(store, STORE_SNAPSHOT);
    assert_int_equal(store_tree_drop(txn, tree), OK);
    kit_commit(txn);
    kit_expect(old, tree, "a", "1");
    StoreVerdict verdict;
    assert_int_equal(store_put(old, tree, kit_text("b"), kit_text(""), STORE_PUT_ANY, &verdict),
                     ERR_SCHEMA);
    store_txn_rollback(old);
    assert_int_equal(store_estimate_rows(store, tree), 0);
    i64 number;
    txn = kit_begin(store, STORE_SNAPSHOT);
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
        cmocka_unit_test(verdicts_and_own_writes), cmocka_unit_test(undo_is_charged),
        cmocka_unit_test(marks_and_rollback),      cmocka_unit_test(next_keys),
        cmocka_unit_test(snapshots_hold),          cmocka_unit_test(cursors_move_and_survive),
        cmocka_unit_test(token_and_locks),         cmocka_unit_test(trees_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
