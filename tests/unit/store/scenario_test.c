/*
 * scenario_test.c -- how the store once went wrong on paper, by name.
 *
 * Method: short scripts of interleaved transactions on a store in memory, each the story of one
 * hole in an early design, with the answer that is right.  Where a rule can be switched off (a
 * planted bug), the script must fail then: see planted_rules_matter().  Each runs with tables of
 * writers as they are, and with tables of two, where slots ask the version map.
 */
#include "store_kit.h"

#define RARE_TABLES 140u

static Slice
number_key(u32 number, u8 key[8])
{
    store_be64(key, number);
    return (Slice){key, 8};
}

static Store *
store_with(const char *key, const char *value)
{
    Store *store = kit_open_memory();
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    kit_put(txn, TREE_ROOT, key, value, STORE_PUT_ANY);
    kit_commit(txn);
    return store;
}

/* What a reader sees: true if it is `value`. */
static bool
sees(StoreTxn *txn, const char *key, const char *value)
{
    bool found;
    Slice got;
    assert_int_equal(store_get(txn, TREE_ROOT, kit_text(key), &found, &got), OK);
    return found ? value != NULL && slice_equal(got, kit_text(value)) : value == NULL;
}

/* ---- the stories: each returns whether all went right ---- */

/* An old snapshot, an update that is committed and not settled, then an update that is rolled
   back: the restored value is still the unsettled one, not everybody's (hole 4). */
static bool
rollback_restores_the_writer(void)
{
    Store *store = store_with("k", "old");
    StoreTxn *old = kit_begin(store, STORE_SNAPSHOT);
    StoreTxn *writer = kit_begin(store, STORE_SNAPSHOT);
    kit_put(writer, TREE_ROOT, "k", "new", STORE_PUT_ANY);
    kit_commit(writer);
    writer = kit_begin(store, STORE_SNAPSHOT);
    kit_put(writer, TREE_ROOT, "k", "never", STORE_PUT_ANY);
    store_txn_rollback(writer);
    StoreTxn *fresh = kit_begin(store, STORE_SNAPSHOT);
    bool good = sees(old, "k", "old") && sees(fresh, "k", "new");
    store_txn_rollback(fresh);
    store_txn_rollback(old);
    kit_check(store);
    store_close(store);
    return good;
}

/* The bit is set and the map is empty: an insert needs no before-image, so its absence must not
   mean that the row is everybody's (hole 4). */
static bool
no_image_is_not_visible(void)
{
    Store *store = store_with("a", "1");
    StoreTxn *old = kit_begin(store, STORE_SNAPSHOT);
    StoreTxn *writers[4];
    const char *keys[4] = {"k0", "k1", "k2", "k3"};
    bool good = true;
    for (u32 i = 0; i < 4; i++) {
        writers[i] = kit_begin(store, STORE_SNAPSHOT);
        kit_put(writers[i], TREE_ROOT, keys[i], "x", STORE_PUT_INSERT);
    }
    for (u32 i = 0; i < 4; i++) {
        good = good && sees(old, keys[i], NULL) && sees(writers[i], keys[i], "x");
        for (u32 k = 0; k < 4; k++) {
            if (k > i) good = good && sees(writers[i], keys[k], NULL);
        }
        if (i % 2 == 0) {
            kit_commit(writers[i]);
        } else {
            store_txn_rollback(writers[i]);
        }
        good = good && sees(old, keys[i], NULL);
    }
    StoreTxn *fresh = kit_begin(store, STORE_SNAPSHOT);
    good = good && sees(fresh, "k0", "x") && sees(fresh, "k1", NULL) && sees(fresh, "k2", "x");
    store_txn_rollback(fresh);
    store_txn_rollback(old);
    kit_check(store);
    store_close(store);
    return good;
}

/* A deleted row of the same transaction is its lock: who inserts it meanwhile must wait (35). */
static bool
deleting_an_own_insert_keeps_the_row_locked(void)
{
    Store *store = store_with("a", "1");
    StoreTxn *first = kit_begin(store, STORE_SNAPSHOT);
    StoreTxn *second = kit_begin(store, STORE_SNAPSHOT);
    kit_put(first, TREE_ROOT, "k", "mine", STORE_PUT_INSERT);
    kit_delete(first, TREE_ROOT, "k");
    StoreVerdict verdict;
    Err err = store_put(second, TREE_ROOT, kit_text("k"), kit_text("other"), STORE_PUT_INSERT,
                        &verdict);
    bool good = err == ERR_BUSY && sees(first, "k", NULL) && sees(second, "k", NULL);
    kit_commit(first);
    store_txn_rollback(second);
    kit_check(store);
    store_close(store);
    return good;
}

/* Reads within a transaction see its own newest writes, also through a cursor that is open (9). */
static bool
own_writes_are_seen_at_once(void)
{
    Store *store = store_with("a", "1");
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    StoreCursor *cursor;
    bool found, good = true;
    assert_int_equal(store_cursor_open(txn, TREE_ROOT, &cursor), OK);
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found), OK);
    for (u32 i = 0; i < 50; i++) {
        char key[8];
        snprintf(key, sizeof(key), "b%02u", i);
        kit_put(txn, TREE_ROOT, key, "x", STORE_PUT_INSERT);
        assert_int_equal(store_cursor_next(cursor, &found), OK);
        good = good && found && slice_equal(store_cursor_key(cursor), kit_text(key));
    }
    store_cursor_close(cursor);
    store_txn_rollback(txn);
    txn = kit_begin(store, STORE_SNAPSHOT);
    good = good && sees(txn, "a", "1") && sees(txn, "b07", NULL);
    store_txn_rollback(txn);
    kit_check(store);
    store_close(store);
    return good;
}

/* One row written again and again in one statement keeps one before-image (9). */
static bool
one_row_keeps_one_image(void)
{
    Store *store = store_with("k", "old");
    StoreTxn *old = kit_begin(store, STORE_SNAPSHOT);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    StoreMark mark = store_txn_mark(txn);
    for (u32 i = 0; i < 10000; i++) {
        kit_put(txn, TREE_ROOT, "k", i % 3 == 0 ? "a longer value" : "short", STORE_PUT_ANY);
    }
    StoreStats stats;
    store_stats(store, &stats);
    bool good = stats.versions_live == 1 && store_txn_mark(txn) == mark + 1;
    good = good && sees(old, "k", "old") && sees(txn, "k", "a longer value");
    store_txn_undo_to(txn, mark);
    good = good && sees(txn, "k", "old");
    store_txn_rollback(txn);
    store_txn_rollback(old);
    kit_check(store);
    store_close(store);
    return good;
}

/* The same over many statements, each with a mark that is dropped; a row that came with the
   transaction keeps none, and what is still marked comes back. */
static bool
dropped_marks_keep_one_image(void)
{
    Store *store = store_with("k", "old");
    StoreTxn *old = kit_begin(store, STORE_SNAPSHOT);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    kit_put(txn, TREE_ROOT, "new", "0", STORE_PUT_INSERT);
    StoreStats stats;
    for (u32 i = 0; i < 100; i++) {
        (void)store_txn_mark(txn);
        store_txn_drop_marks(txn, 0);
        kit_put(txn, TREE_ROOT, "k", i % 3 == 0 ? "a longer value" : "short", STORE_PUT_ANY);
        kit_put(txn, TREE_ROOT, "new", i % 7 == 0 ? "long, for a value" : "s", STORE_PUT_UPDATE);
    }
    store_stats(store, &stats);
    bool good = stats.versions_live == 1 && store_txn_place(txn) == 2;
    StoreMark mark = store_txn_mark(txn);
    kit_put(txn, TREE_ROOT, "k", "1", STORE_PUT_UPDATE);
    (void)store_txn_mark(txn);
    store_txn_drop_marks(txn, mark);
    kit_put(txn, TREE_ROOT, "k", "2", STORE_PUT_UPDATE);
    kit_put(txn, TREE_ROOT, "new", "2", STORE_PUT_UPDATE);
    store_stats(store, &stats);
    good = good && stats.versions_live == 3 && sees(old, "k", "old") && sees(old, "new", NULL);
    store_txn_undo_to(txn, mark);
    good = good && sees(txn, "k", "a longer value") && sees(txn, "new", "s");
    kit_delete(txn, TREE_ROOT, "new");
    kit_put(txn, TREE_ROOT, "new", "3", STORE_PUT_INSERT);
    good = good && sees(txn, "new", "3");
    store_txn_rollback(txn);
    good = good && sees(old, "k", "old") && sees(old, "new", NULL);
    store_txn_rollback(old);
    kit_check(store);
    store_close(store);
    return good;
}

/* A rollback finds the room that it needs, though others have filled the leaf meanwhile (3c). */
static bool
undo_has_room(void)
{
    Store *store = kit_open_memory();
    static u8 big[3000];
    u8 key[8];
    StoreVerdict verdict;
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    for (u32 i = 0; i < 4; i++) {
        memset(big, (int)i, sizeof(big));
        assert_int_equal(store_put(txn, TREE_ROOT, number_key(i * 1000, key), SLICE(big, 3000),
                                   STORE_PUT_ANY, &verdict),
                         OK);
    }
    kit_commit(txn);
    StoreTxn *shrinks = kit_begin(store, STORE_SNAPSHOT);
    for (u32 i = 0; i < 4; i++) {
        Slice at = number_key(i * 1000, key);
        Err err = i % 2 == 0 ? store_delete(shrinks, TREE_ROOT, at, &verdict)
                             : store_put(shrinks, TREE_ROOT, at, SLICE(big, 1 + i), STORE_PUT_ANY,
                                         &verdict);
        assert_int_equal(err, OK);
    }
    txn = kit_begin(store, STORE_SNAPSHOT);
    for (u32 i = 0; i < 4000; i++) {
        if (i % 1000 == 0) continue;
        assert_int_equal(
            store_put(txn, TREE_ROOT, number_key(i, key), SLICE(big, 100), STORE_PUT_ANY, &verdict),
            OK);
    }
    kit_commit(txn);
    store_txn_rollback(shrinks);
    txn = kit_begin(store, STORE_SNAPSHOT);
    bool good = true;
    for (u32 i = 0; i < 4; i++) {
        bool found;
        Slice got;
        memset(big, (int)i, sizeof(big));
        assert_int_equal(store_get(txn, TREE_ROOT, number_key(i * 1000, key), &found, &got), OK);
        good = good && found && slice_equal(got, SLICE(big, 3000));
    }
    store_txn_rollback(txn);
    kit_check(store);
    store_close(store);
    return good;
}

/* A constraint is judged on the newest version, and says whether the snapshot sees it (8). */
static bool
constraints_see_the_newest(void)
{
    Store *store = store_with("p", "parent");
    StoreTxn *child = kit_begin_wait(store, STORE_SNAPSHOT, STORE_SYNC_FULL, 0);
    StoreTxn *other = kit_begin(store, STORE_SNAPSHOT);
    bool found, newer, good;
    Slice value;
    StoreVerdict verdict;
    good = sees(child, "p", "parent");
    kit_put(other, TREE_ROOT, "u", "1", STORE_PUT_INSERT);
    /* Its writer runs: to be waited for. */
    good = good &&
           store_get_newest(child, TREE_ROOT, kit_text("u"), &found, &newer, &value) == ERR_BUSY;
    /* The parent is held: it cannot go before the child has ended. */
    assert_int_equal(store_txn_lock_key(child, TREE_ROOT, kit_text("p")), OK);
    good = good && store_delete(other, TREE_ROOT, kit_text("p"), &verdict) == ERR_BUSY;
    kit_commit(other);
    good = good && store_get_newest(child, TREE_ROOT, kit_text("u"), &found, &newer, &value) == OK;
    good = good && found && newer && sees(child, "u", NULL);
    good = good && kit_put(child, TREE_ROOT, "u", "2", STORE_PUT_INSERT) == STORE_EXISTS_NEWER;
    store_txn_rollback(child);
    other = kit_begin(store, STORE_SNAPSHOT);
    good = good && kit_delete(other, TREE_ROOT, "p") == STORE_DONE;
    /* And a deleter that has not ended keeps the child waiting. */
    child = kit_begin(store, STORE_SNAPSHOT);
    good = good && store_txn_lock_key(child, TREE_ROOT, kit_text("p")) == ERR_BUSY;
    kit_commit(other);
    good = good && store_txn_lock_key(child, TREE_ROOT, kit_text("p")) == OK;
    good = good && store_get_newest(child, TREE_ROOT, kit_text("p"), &found, &newer, &value) == OK;
    good = good && !found;
    store_txn_rollback(child);
    kit_check(store);
    store_close(store);
    return good;
}

/* The token owner undoes rows of others that it meets; they know, and their own rollback does not
   undo the owner's rows (23). */
static bool
doomed_rows_stay_undone(void)
{
    Store *store = store_with("k", "old");
    StoreTxn *loser = kit_begin(store, STORE_SNAPSHOT);
    kit_put(loser, TREE_ROOT, "k", "loser", STORE_PUT_ANY);
    (void)store_txn_mark(loser);
    kit_put(loser, TREE_ROOT, "k", "loser again", STORE_PUT_ANY);
    kit_put(loser, TREE_ROOT, "n", "loser", STORE_PUT_INSERT);
    kit_put(loser, TREE_ROOT, "m", "loser", STORE_PUT_INSERT);
    StoreTxn *owner = kit_begin(store, STORE_SNAPSHOT);
    assert_int_equal(store_txn_take_token(owner), OK);
    kit_put(owner, TREE_ROOT, "k", "owner", STORE_PUT_UPDATE);
    kit_put(owner, TREE_ROOT, "n", "owner", STORE_PUT_INSERT);
    store_txn_rollback(loser);
    bool good = sees(owner, "k", "owner") && sees(owner, "n", "owner") && sees(owner, "m", NULL);
    kit_commit(owner);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    good = good && sees(txn, "k", "owner") && sees(txn, "n", "owner") && sees(txn, "m", NULL);
    store_txn_rollback(txn);
    kit_check(store);
    store_close(store);
    return good;
}

/* Between two snapshots one version a key is kept, whichever end first (6, 17). */
static bool
snapshots_keep_what_they_need(void)
{
    Store *store = store_with("k", "v0");
    StoreTxn *held[3];
    char text[16];
    bool good = true;
    for (u32 i = 0; i < 3; i++) {
        held[i] = kit_begin(store, STORE_SNAPSHOT);
        for (u32 k = 1; k <= 200; k++) {
            StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
            snprintf(text, sizeof(text), "v%u", i * 200 + k);
            kit_put(txn, TREE_ROOT, "k", text, STORE_PUT_ANY);
            kit_commit(txn);
        }
    }
    StoreStats stats;
    store_stats(store, &stats);
    good = good && stats.versions_live <= 8;
    good = good && sees(held[0], "k", "v0") && sees(held[1], "k", "v200");
    store_txn_rollback(held[1]);
    good = good && sees(held[2], "k", "v400") && sees(held[0], "k", "v0");
    store_txn_rollback(held[0]);
    good = good && sees(held[2], "k", "v400");
    store_txn_rollback(held[2]);
    store_stats(store, &stats);
    good = good && stats.versions_live == 0;
    kit_check(store);
    store_close(store);
    return good;
}

/* Insert right, delete left: the first key costs the same for ever, and pages come back (35). */
static bool
a_queue_grows_no_graveyard(void)
{
    Store *store = kit_open_memory();
    static u8 value[200];
    u8 key[8];
    StoreVerdict verdict;
    StoreStats early, late;
    for (u32 i = 0; i < 20000; i++) {
        StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
        assert_int_equal(store_put(txn, TREE_ROOT, number_key(i, key), SLICE(value, 200),
                                   STORE_PUT_INSERT, &verdict),
                         OK);
        if (i >= 1000) {
            assert_int_equal(store_delete(txn, TREE_ROOT, number_key(i - 1000, key), &verdict), OK);
        }
        kit_commit(txn);
        if (i == 2000) store_stats(store, &early);
    }
    store_stats(store, &late);
    bool good = store_estimate_rows(store, TREE_ROOT) == 1000;
    good = good && late.memory_bytes <= early.memory_bytes * 2;
    kit_check(store);
    store_close(store);
    return good;
}

/* A value longer than a page: other versions of it, rolled back and settled, give their pages
   back. */
static bool
long_values_come_and_go(void)
{
    Store *store = kit_open_memory();
    size_t bytes = 300000;
    u8 *value = (u8 *)mem_alloc_zeroed(bytes);
    assert_non_null(value);
    StoreVerdict verdict;
    StoreStats early, late;
    bool good = true, found;
    Slice got;
    for (u32 i = 0; i < 40; i++) {
        StoreTxn *old = kit_begin(store, STORE_SNAPSHOT);
        StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
        value[0] = (u8)i;
        value[bytes - 1] = (u8)i;
        assert_int_equal(store_put(txn, TREE_ROOT, kit_text("k"), SLICE(value, bytes - i),
                                   STORE_PUT_ANY, &verdict),
                         OK);
        assert_int_equal(store_get(txn, TREE_ROOT, kit_text("k"), &found, &got), OK);
        good = good && found && got.bytes == bytes - i && got.p[0] == i;
        if (i % 4 == 3) {
            store_txn_rollback(txn);
        } else {
            kit_commit(txn);
        }
        assert_int_equal(store_get(old, TREE_ROOT, kit_text("k"), &found, &got), OK);
        good = good && found == (i > 0);
        store_txn_rollback(old);
        if (i == 4) store_stats(store, &early);
    }
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    kit_delete(txn, TREE_ROOT, "k");
    kit_commit(txn);
    store_stats(store, &late);
    good = good && late.memory_bytes < early.memory_bytes;
    kit_check(store);
    mem_free(value);
    store_close(store);
    return good;
}

static u64
count_of(StoreTxn *txn, TreeId tree)
{
    u64 rows;
    assert_int_equal(store_count(txn, tree, &rows), OK);
    return rows;
}

/* The number of rows is kept by the tree for what is committed now; an older snapshot, and who has
   written itself, have other numbers. */
static bool
counts_belong_to_their_snapshot(void)
{
    Store *store = kit_open_memory();
    TreeId tree;
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    assert_int_equal(store_tree_create(txn, STORE_TREE_BYTES, &tree), OK);
    kit_put(txn, tree, "a", "1", STORE_PUT_INSERT);
    kit_put(txn, tree, "b", "1", STORE_PUT_INSERT);
    bool good = count_of(txn, tree) == 2;
    kit_commit(txn);
    StoreTxn *old = kit_begin(store, STORE_SNAPSHOT);
    txn = kit_begin(store, STORE_SNAPSHOT);
    kit_put(txn, tree, "a", "2", STORE_PUT_UPDATE);
    kit_put(txn, tree, "c", "1", STORE_PUT_INSERT);
    StoreMark mark = store_txn_mark(txn);
    kit_put(txn, tree, "d", "1", STORE_PUT_INSERT);
    kit_delete(txn, tree, "d");
    kit_put(txn, tree, "e", "1", STORE_PUT_INSERT);
    kit_delete(txn, tree, "a");
    good = good && count_of(txn, tree) == 3 && count_of(old, tree) == 2;
    store_txn_undo_to(txn, mark);
    good = good && count_of(txn, tree) == 3 && count_of(old, tree) == 2;
    kit_put(txn, tree, "f", "1", STORE_PUT_INSERT);
    good = good && count_of(txn, tree) == 4 && count_of(old, tree) == 2;
    kit_commit(txn);
    StoreTxn *fresh = kit_begin(store, STORE_SNAPSHOT);
    txn = kit_begin(store, STORE_SNAPSHOT);
    kit_delete(txn, tree, "b");
    store_txn_rollback(txn);
    good = good && count_of(old, tree) == 2 && count_of(fresh, tree) == 4;
    store_txn_rollback(fresh);
    store_txn_rollback(old);
    kit_check(store);
    store_close(store);
    return good;
}

/* ---- running them ---- */

typedef bool (*Story)(void);

static const Story stories[] = {
    rollback_restores_the_writer,
    no_image_is_not_visible,
    deleting_an_own_insert_keeps_the_row_locked,
    own_writes_are_seen_at_once,
    one_row_keeps_one_image,
    dropped_marks_keep_one_image,
    undo_has_room,
    constraints_see_the_newest,
    doomed_rows_stay_undone,
    snapshots_keep_what_they_need,
    a_queue_grows_no_graveyard,
    long_values_come_and_go,
    counts_belong_to_their_snapshot,
};

static void
stories_end_well(void **state)
{
    (void)state;
    for (u32 i = 0; i < COUNT_OF(stories); i++) {
        if (!stories[i]()) fail_msg("story %u", i);
    }
}

static void
stories_end_well_with_tables_of_two(void **state)
{
    (void)state;
#ifdef WEFT_CHECK
    plant_set(RARE_TABLES, true);
    stories_end_well(state);
    plant_set(RARE_TABLES, false);
#endif
}

static void
planted_rules_matter(void **state)
{
    (void)state;
#ifdef WEFT_CHECK
    static const struct {
        u32 plant;
        Story story;
    } rules[] = {
        {130, rollback_restores_the_writer},                /* An undone row counts as settled. */
        {132, no_image_is_not_visible},                     /* No image means visible. */
        {133, deleting_an_own_insert_keeps_the_row_locked}, /* Deleting it removes the slot. */
        {134, doomed_rows_stay_undone},         /* Nobody remembers that a row was undone. */
        {135, snapshots_keep_what_they_need},   /* Pruning asks the oldest snapshot only. */
        {136, counts_belong_to_their_snapshot}, /* The number of now is everybody's. */
    };
    for (u32 i = 0; i < COUNT_OF(rules); i++) {
        plant_set(rules[i].plant, true);
        bool good = rules[i].story();
        plant_set(rules[i].plant, false);
        if (good) fail_msg("rule %u does not matter", rules[i].plant);
    }
#endif
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stories_end_well),
        cmocka_unit_test(stories_end_well_with_tables_of_two),
        cmocka_unit_test(planted_rules_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
