/*
 * spill_test.c -- undo that has gone to pages: seen, taken back, doomed, settled, recovered.
 *
 * Method: transactions whose undo may fill only a few kilobytes change thousands of rows, with
 * short and long keys and values; then old readers, savepoints, token owners and copies of the
 * directory (what a kill leaves) must find what was there before.  model_test and sim_test do the
 * same at random, with every single entry spilled.
 */
#include "store/store_private.h"
#include "store_kit.h"

#define ROWS 1500u

static Store *
open_small(const Kit *kit)
{
    Store *store = kit_open(kit);
    store->spill_bytes = 8192;
    return store;
}

/* Keys of 10 to 1,024 bytes; row numbers rise with them. */
static Slice
key_of(u32 row, u8 key[STORE_KEY_BYTES_MAX])
{
    size_t bytes = row % 7 == 3 ? STORE_KEY_BYTES_MAX : row % 5 == 2 ? 400 : 10;
    memset(key, 'x', bytes);
    store_be32(key, row);
    return (Slice){key, bytes};
}

/* Values of 8 to 40,000 bytes that tell their row and round. */
static Slice
value_of(u32 row, u32 round, u8 *value)
{
    size_t bytes = (row + round) % 97 == 5 ? 40000 : (row + round) % 11 == 1 ? 3000 : 8 + row % 60;
    memset(value, (int)(round & 0xff), bytes);
    store_u32(value, row);
    store_u32(value + 4, round);
    return (Slice){value, bytes};
}

static u8 value_room[40000];

static void
write_row(StoreTxn *txn, u32 row, u32 round)
{
    u8 key[STORE_KEY_BYTES_MAX];
    StoreVerdict verdict;
    Err err = round == 0 ? store_delete(txn, TREE_ROOT, key_of(row, key), &verdict)
                         : store_put(txn, TREE_ROOT, key_of(row, key),
                                     value_of(row, round, value_room), STORE_PUT_ANY, &verdict);
    if (err != OK) print_error("row %u: %s\n", row, err_message(store_txn_error(txn)));
    assert_int_equal(err, OK);
}

static void
write_rows(StoreTxn *txn, u32 from, u32 to, u32 round)
{
    for (u32 row = from; row < to; row++) {
        write_row(txn, row, round);
    }
}

/* Round 0: absent. */
static void
expect_row(StoreTxn *txn, u32 row, u32 round)
{
    u8 key[STORE_KEY_BYTES_MAX];
    bool found;
    Slice got;
    assert_int_equal(store_get(txn, TREE_ROOT, key_of(row, key), &found, &got), OK);
    if (found != (round != 0)) fail_msg("row %u is %s", row, found ? "there" : "missing");
    if (found) assert_true(slice_equal(got, value_of(row, round, value_room)));
}

/* By single reads, by a cursor in both directions, by fetches, and by number. */
static void
expect_rows(StoreTxn *txn, u32 from, u32 to, u32 round)
{
    for (u32 row = from; row < to; row++) {
        expect_row(txn, row, round);
    }
}

static u64
rows_seen(StoreTxn *txn)
{
    StoreCursor *cursor;
    bool found;
    u64 steps = 0, back = 0, fetched = 0, counted;
    assert_int_equal(store_cursor_open(txn, TREE_ROOT, &cursor), OK);
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found), OK);
    for (; found; steps++) {
        assert_int_equal(store_cursor_next(cursor, &found), OK);
    }
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_LAST, SLICE_NONE, &found), OK);
    for (; found; back++) {
        assert_int_equal(store_cursor_prev(cursor, &found), OK);
    }
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found), OK);
    for (bool end = !found; !end;) {
        StoreRun run;
        assert_int_equal(store_cursor_fetch(cursor, 100, 1 << 20, false, &run), OK);
        fetched += run.rows;
        end = run.end;
    }
    assert_int_equal(store_count(txn, TREE_ROOT, &counted), OK);
    u64 ranged;
    assert_int_equal(store_cursor_count(cursor, SLICE_NONE, &ranged), OK);
    store_cursor_close(cursor);
    assert_int_equal(ranged, counted);
    assert_int_equal(steps, counted);
    assert_int_equal(back, counted);
    assert_int_equal(fetched, counted);
    return counted;
}

static bool
has_spilled(const Store *store)
{
    return rt_load_relaxed(&store->spill_count) > 0;
}

/* Nothing is left of versions and spills, and the pages hang together. */
static void
expect_settled(Store *store)
{
    StoreStats stats;
    bool more = true;
    while (more) {
        assert_int_equal(store_step(store, 1000, &more), OK);
    }
    store_stats(store, &stats);
    assert_int_equal(stats.versions_live, 0);
    assert_false(has_spilled(store));
    kit_check(store);
}

static Store *
store_with_rows(Kit *kit)
{
    kit_start_fast(kit);
    Store *store = open_small(kit);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    write_rows(txn, 0, ROWS, 1);
    assert_true(has_spilled(store));
    kit_commit(txn);
    expect_settled(store);
    return store;
}

/* What a kill would leave now must have every row at `round`. */
static void
expect_after_kill(const Kit *kit, u32 from, u32 to, u32 round)
{
    Kit copy;
    kit_copy(kit, &copy);
    Store *store = kit_open(&copy);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    expect_rows(txn, from, to, round);
    store_txn_rollback(txn);
    expect_settled(store);
    store_close(store);
    kit_end(&copy);
}

/* ---- stories ---- */

static void
old_readers_see_what_was(void **state)
{
    (void)state;
    Kit kit;
    Store *store = store_with_rows(&kit);
    StoreTxn *old = kit_begin(store, STORE_SNAPSHOT);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    write_rows(txn, 0, ROWS / 2, 2);
    write_rows(txn, ROWS / 2, ROWS, 0);
    write_rows(txn, ROWS, ROWS + 300, 2);
    assert_true(has_spilled(store));
    expect_rows(old, 0, ROWS, 1);
    expect_rows(old, ROWS, ROWS + 300, 0);
    assert_int_equal(rows_seen(old), ROWS);
    assert_int_equal(rows_seen(txn), ROWS / 2 + 300);
    kit_commit(txn);
    expect_rows(old, 0, ROWS, 1);
    assert_int_equal(rows_seen(old), ROWS);
    /* Over it, another one, so that three versions stand. */
    txn = kit_begin(store, STORE_SNAPSHOT);
    StoreTxn *middle = kit_begin(store, STORE_SNAPSHOT);
    write_rows(txn, 0, ROWS, 3);
    kit_commit(txn);
    expect_rows(old, 0, ROWS, 1);
    expect_rows(middle, 0, ROWS / 2, 2);
    expect_rows(middle, ROWS / 2, ROWS, 0);
    assert_int_equal(rows_seen(middle), ROWS / 2 + 300);
    assert_int_equal(rows_seen(old), ROWS);
    store_txn_rollback(old);
    expect_rows(middle, 0, ROWS / 2, 2);
    store_txn_rollback(middle);
    expect_settled(store);
    store_close(store);
    kit_end(&kit);
}

static void
what_is_undone_comes_back(void **state)
{
    (void)state;
    Kit kit;
    Store *store = store_with_rows(&kit);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    write_rows(txn, 0, ROWS, 2);
    StoreMark first = store_txn_mark(txn);
    write_rows(txn, 0, ROWS, 0);
    StoreMark second = store_txn_mark(txn);
    write_rows(txn, 0, ROWS + 200, 3);
    assert_int_equal(store_checkpoint(store, NULL), OK);
    expect_after_kill(&kit, 0, ROWS, 1);
    store_txn_undo_to(txn, second);
    assert_int_equal(rows_seen(txn), 0);
    expect_after_kill(&kit, 0, ROWS, 1);
    store_txn_undo_to(txn, first);
    expect_rows(txn, 0, ROWS, 2);
    assert_int_equal(store_checkpoint(store, NULL), OK);
    expect_after_kill(&kit, 0, ROWS, 1);
    expect_after_kill(&kit, ROWS, ROWS + 200, 0);
    store_txn_rollback(txn);
    assert_int_equal(store_checkpoint(store, NULL), OK);
    expect_after_kill(&kit, 0, ROWS, 1);
    txn = kit_begin(store, STORE_SNAPSHOT);
    expect_rows(txn, 0, ROWS, 1);
    store_txn_rollback(txn);
    expect_settled(store);
    store_close(store);
    kit_end(&kit);
}

/* A commit before and behind the checkpoint that found it open; one that is held up by a reader
   leaves pages and long values to the next life. */
static void
commits_survive(void **state)
{
    (void)state;
    Kit kit;
    Store *store = store_with_rows(&kit);
    StoreTxn *old = kit_begin(store, STORE_SNAPSHOT);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    write_rows(txn, 0, ROWS, 2);
    assert_int_equal(store_checkpoint(store, NULL), OK);
    write_rows(txn, 0, ROWS, 3);
    kit_commit(txn);
    expect_after_kill(&kit, 0, ROWS, 3);
    assert_true(has_spilled(store));
    assert_int_equal(store_checkpoint(store, NULL), OK);
    expect_after_kill(&kit, 0, ROWS, 3);
    expect_rows(old, 0, ROWS, 1);
    store_txn_rollback(old);
    expect_settled(store);
    store_close(store);
    store = open_small(&kit);
    txn = kit_begin(store, STORE_SNAPSHOT);
    expect_rows(txn, 0, ROWS, 3);
    store_txn_rollback(txn);
    expect_settled(store);
    store_close(store);
    kit_end(&kit);
}

/* The owner of the token goes over rows whose images have been spilled. */
static void
the_token_dooms(void **state)
{
    (void)state;
    Kit kit;
    Store *store = store_with_rows(&kit);
    StoreTxn *loser = kit_begin(store, STORE_SNAPSHOT);
    write_rows(loser, 0, ROWS, 2);
    write_rows(loser, ROWS, ROWS + 300, 2);
    StoreMark mark = store_txn_mark(loser);
    (void)mark;
    write_rows(loser, 0, 40, 5);
    StoreTxn *owner = kit_begin(store, STORE_SNAPSHOT);
    assert_int_equal(store_txn_take_token(owner), OK);
    for (u32 row = 0; row < ROWS + 300; row += 3) {
        write_row(owner, row, 4);
    }
    for (u32 row = 1; row < 100; row += 3) {
        write_row(owner, row, 0);
    }
    kit_commit(owner);
    assert_int_equal(store_checkpoint(store, NULL), OK);
    for (u32 round = 0; round < 2; round++) {
        Kit copy;
        kit_copy(&kit, &copy);
        Store *again = round == 0 ? kit_open(&copy) : store;
        if (round == 1) store_txn_rollback(loser);
        StoreTxn *txn = kit_begin(again, STORE_SNAPSHOT);
        for (u32 row = 0; row < ROWS + 300; row++) {
            bool deleted = row < 100 && row % 3 == 1;
            expect_row(txn, row, row % 3 == 0 ? 4 : row >= ROWS || deleted ? 0 : 1);
        }
        store_txn_rollback(txn);
        expect_settled(again);
        if (round == 0) store_close(again);
        kit_end(&copy);
    }
    store_close(store);
    kit_end(&kit);
}

/* Redo that has gone ahead and is taken back must not come back after a crash. */
static void
redo_is_taken_back(void **state)
{
    (void)state;
    Kit kit;
    Store *store = store_with_rows(&kit);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    write_rows(txn, 0, ROWS, 2);
    StoreMark mark = store_txn_mark(txn);
    for (u32 round = 3; round < 6; round++) {
        write_rows(txn, 0, ROWS, round);
        write_rows(txn, ROWS, ROWS + 500, round);
    }
    assert_true(txn->redo_done > 0);
    store_txn_undo_to(txn, mark);
    write_rows(txn, 0, 100, 6);
    kit_commit(txn);
    expect_after_kill(&kit, 0, 100, 6);
    expect_after_kill(&kit, 100, ROWS, 2);
    expect_after_kill(&kit, ROWS, ROWS + 500, 0);
    store_close(store);
    kit_end(&kit);
}

/* Tombstones that a checkpoint has kept for an old reader are the next life's to remove: the scans
   that meet them do so. */
static void
scans_purge(void **state)
{
    (void)state;
    for (u32 by_fetch = 0; by_fetch < 2; by_fetch++) {
        Kit kit, copy;
        Store *store = store_with_rows(&kit);
        StoreTxn *old = kit_begin(store, STORE_SNAPSHOT);
        StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
        write_rows(txn, 0, ROWS - 1, 0);
        kit_commit(txn);
        assert_int_equal(store_checkpoint(store, NULL), OK);
        kit_copy(&kit, &copy);
        expect_rows(old, 0, ROWS, 1);
        store_txn_rollback(old);
        store_close(store);
        store = kit_open(&copy);
        assert_true(store_estimate_rows(store, TREE_ROOT) > ROWS / 2);
        txn = kit_begin(store, STORE_SNAPSHOT);
        StoreCursor *cursor;
        bool found;
        StoreRun run = {0};
        assert_int_equal(store_cursor_open(txn, TREE_ROOT, &cursor), OK);
        if (by_fetch != 0) {
            assert_int_equal(
                store_cursor_fetch_at(cursor, STORE_SEEK_FIRST, SLICE_NONE, 1, 1000, &run), OK);
            assert_int_equal(run.rows, 1);
        } else {
            assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found), OK);
            assert_true(found);
        }
        store_cursor_close(cursor);
        expect_row(txn, ROWS - 1, 1);
        store_txn_rollback(txn);
        /* In each leaf a few may stay. */
        assert_true(store_estimate_rows(store, TREE_ROOT) < ROWS / 2);
        kit_check(store);
        store_close(store);
        kit_end(&copy);
        kit_end(&kit);
    }
}

/* Slots whose writers the map must name keep their markers. */
static void
full_tables_of_writers(void **state)
{
    (void)state;
#ifdef WEFT_CHECK
    plant_set(140, true);
    old_readers_see_what_was(state);
    what_is_undone_comes_back(state);
    the_token_dooms(state);
    plant_set(140, false);
#endif
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_readers_see_what_was), cmocka_unit_test(what_is_undone_comes_back),
        cmocka_unit_test(commits_survive),          cmocka_unit_test(the_token_dooms),
        cmocka_unit_test(redo_is_taken_back),       cmocka_unit_test(scans_purge),
        cmocka_unit_test(full_tables_of_writers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
