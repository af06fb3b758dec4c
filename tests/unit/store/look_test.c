/*
 * look_test.c -- entries that are read where they lie are those that a fetch gives.
 *
 * Method: a tree of integer keys, grown by random writes of several transactions; walks over it in
 * both directions, with and without a bound, take turns between looks and fetches of random sizes
 * and must give the model's entries, each once, in order.  Then single rules: what is open when its
 * leaf changes does not count, a look that is not done moves nothing, old snapshots and
 * SERIALIZABLE transactions do not look.
 */
#include "store_kit.h"

#define KEYS 6000u

typedef struct World {
    Store *store;
    TreeId tree;
    Rng rng;
    u32 value[KEYS]; /* 0: absent. */
    u32 looked;      /* Rows that came from looks. */
} World;

static void
key_put(u32 key, u8 out[8])
{
    store_be64(out, (u64)key * 3 + ((u64)1 << 63));
}

/* Mostly of one length, so that few values are padded. */
static u32
value_extra(u32 number)
{
    return number % 500 == 0 ? number % 60 : 40;
}

static void
write_keys(World *world, StoreTxn *txn, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        u8 key[8], value[64];
        u32 at = (u32)rng_below(&world->rng, KEYS);
        StoreVerdict verdict;
        key_put(at, key);
        if (rng_below(&world->rng, 200) == 0) {
            assert_int_equal(store_delete(txn, world->tree, SLICE(key, 8), &verdict), OK);
            world->value[at] = 0;
            continue;
        }
        u32 number = 1 + (u32)rng_below(&world->rng, 1000000);
        memset(value, (int)number, sizeof(value));
        memcpy(value, &number, sizeof(number));
        Slice bytes = {value, 4 + value_extra(number)};
        assert_int_equal(store_put(txn, world->tree, SLICE(key, 8), bytes, STORE_PUT_ANY, &verdict),
                         OK);
        world->value[at] = number;
    }
}

/* The next key of the model from *at_io on, in a direction; it must be this one. */
static void
expect_next(const World *world, i32 *at_io, i32 step, u64 key, Slice value)
{
    i32 at = *at_io;
    while (at >= 0 && at < (i32)KEYS && world->value[at] == 0)
        at += step;
    assert_in_range(at, 0, KEYS - 1);
    u8 bytes[8];
    key_put((u32)at, bytes);
    assert_int_equal(key, load_be64(bytes));
    assert_int_equal(value.bytes, 4 + value_extra(world->value[at]));
    assert_int_equal(load_u32(value.p), world->value[at]);
    *at_io = at + step;
}

/* One look; its rows, or 0. */
static u32
take_look(World *world, StoreCursor *cursor, bool backwards, u32 rows_max, i32 *at_io, bool *end)
{
    StorePiece piece;
    u32 rows = 0, pieces = 0;
    if (!store_look_start(cursor, backwards)) return 0;
    while (rows < rows_max && store_look_next(cursor, rows_max - rows, &piece)) {
        assert_int_equal(piece.first, rows);
        bool plain = true;
        for (i32 i = 0; i < (i32)piece.rows; i++) {
            plain = plain && piece.entry[i * piece.step].flags == 0;
        }
        for (i32 i = 0; plain && i < (i32)piece.rows; i++) {
            const StoreEntry *entry = &piece.entry[i * piece.step];
            Slice value = {piece.page + entry->at, entry->value_bytes};
            expect_next(world, at_io, piece.step, entry->key, value);
        }
        assert_true(store_look_end(cursor, plain));
        if (!plain) break;
        rows += piece.rows;
        pieces++;
    }
    for (u32 i = 0; i < pieces; i++) {
        assert_true(store_look_again(cursor, i, &piece));
        assert_true(store_look_end(cursor, true));
    }
    if (rows > 0) assert_int_equal(store_look_done(cursor, end), OK);
    world->looked += rows;
    return rows;
}

static void
walk(World *world, StoreTxn *txn)
{
    StoreCursor *cursor;
    bool backwards = rng_below(&world->rng, 2) == 0, end = false;
    u32 bound = (u32)rng_below(&world->rng, KEYS);
    bool bounded = rng_below(&world->rng, 2) == 0;
    u8 bound_key[8];
    StoreRun run;
    i32 step = backwards ? -1 : 1, at = backwards ? (i32)KEYS - 1 : 0;
    key_put(bound, bound_key);
    assert_int_equal(store_cursor_open(txn, world->tree, &cursor), OK);
    Slice limit = bounded ? SLICE(bound_key, 8) : SLICE_NONE;
    assert_int_equal(store_cursor_set_bound(cursor, limit, true), OK);
    StoreSeek how = backwards ? STORE_SEEK_LAST : STORE_SEEK_FIRST;
    assert_int_equal(store_cursor_fetch_at(cursor, how, SLICE_NONE, 3, 100000, &run), OK);
    for (;;) {
        for (u32 i = 0; i < run.rows; i++) {
            expect_next(world, &at, step, load_be64(run.key[i].p), run.value[i]);
        }
        end = run.end;
        u32 rows_max = 1 + (u32)rng_below(&world->rng, 700);
        i32 before = at;
        while (!end && rng_below(&world->rng, 4) != 0) {
            before = at;
            if (take_look(world, cursor, backwards, rows_max, &at, &end) == 0) {
                at = before;
                break;
            }
        }
        if (end) break;
        assert_int_equal(store_cursor_fetch(cursor, rows_max, 100000, backwards, &run), OK);
    }
    while (at >= 0 && at < (i32)KEYS && world->value[at] == 0)
        at += step;
    if (!bounded) {
        assert_true(at == (backwards ? -1 : (i32)KEYS));
    } else {
        assert_true(backwards ? at < (i32)bound : at > (i32)bound);
    }
    store_cursor_close(cursor);
}

static void
world_open(World *world)
{
    memset(world, 0, sizeof(*world));
    world->store = kit_open_memory();
    rng_seed(&world->rng, 77);
    StoreTxn *txn = kit_begin(world->store, STORE_SNAPSHOT);
    assert_int_equal(store_tree_create(txn, STORE_TREE_INT, &world->tree), OK);
    write_keys(world, txn, 4000);
    kit_commit(txn);
}

static void
looks_and_fetches_agree(void **state)
{
    (void)state;
    static World world;
    world_open(&world);
    for (u32 round = 0; round < 60; round++) {
        StoreTxn *txn = kit_begin(world.store, STORE_SNAPSHOT);
        if (round % 3 == 0) write_keys(&world, txn, (u32)rng_below(&world.rng, 300));
        for (u32 i = 0; i < 4; i++)
            walk(&world, txn);
        kit_commit(txn);
    }
    assert_true(world.looked > 10000);
    store_close(world.store);
}

/* A cursor behind the first entry. */
static StoreCursor *
cursor_begun(StoreTxn *txn, TreeId tree)
{
    StoreCursor *cursor;
    StoreRun run;
    assert_int_equal(store_cursor_open(txn, tree, &cursor), OK);
    assert_int_equal(store_cursor_fetch_at(cursor, STORE_SEEK_FIRST, SLICE_NONE, 1, 1000, &run),
                     OK);
    assert_int_equal(run.rows, 1);
    return cursor;
}

static void
what_changes_does_not_count(void **state)
{
    (void)state;
    static World world;
    world_open(&world);
    StoreTxn *txn = kit_begin(world.store, STORE_SNAPSHOT);
    StoreCursor *cursor = cursor_begun(txn, world.tree);
    StorePiece piece;
    assert_true(store_look_start(cursor, false));
    assert_true(store_look_next(cursor, 10, &piece));
    u64 first = piece.entry[0].key;
    assert_true(store_look_end(cursor, true));
    assert_true(store_look_again(cursor, 0, &piece));
    assert_true(store_look_end(cursor, true));
    /* Another transaction writes to the leaf: seen neither again nor anew. */
    StoreTxn *writer = kit_begin(world.store, STORE_SNAPSHOT);
    u8 key[8];
    StoreVerdict verdict;
    store_be64(key, first);
    assert_int_equal(
        store_put(writer, world.tree, SLICE(key, 8), SLICE(key, 8), STORE_PUT_ANY, &verdict), OK);
    assert_false(store_look_again(cursor, 0, &piece));
    assert_true(store_look_start(cursor, false));
    assert_false(store_look_next(cursor, 10, &piece));
    kit_commit(writer);
    assert_true(store_look_start(cursor, false));
    assert_false(store_look_next(cursor, 10, &piece)); /* Committed behind the snapshot. */
    StoreRun run;
    assert_int_equal(store_cursor_fetch(cursor, 1, 1000, false, &run), OK);
    assert_int_equal(load_be64(run.key[0].p), first); /* Nothing moved. */
    store_cursor_close(cursor);
    store_txn_rollback(txn);
#ifndef WEFT_TSAN /* There an open piece is shared, and the writer would wait for ourselves. */
    txn = kit_begin(world.store, STORE_SNAPSHOT);
    cursor = cursor_begun(txn, world.tree);
    assert_true(store_look_start(cursor, false));
    assert_true(store_look_next(cursor, 10, &piece));
    writer = kit_begin(world.store, STORE_SNAPSHOT);
    assert_int_equal(
        store_put(writer, world.tree, SLICE(key, 8), SLICE(key, 7), STORE_PUT_ANY, &verdict), OK);
    assert_false(store_look_end(cursor, true));
    kit_commit(writer);
    store_cursor_close(cursor);
    store_txn_rollback(txn);
#endif
    store_close(world.store);
}

static void
serializable_ones_fetch(void **state)
{
    (void)state;
    static World world;
    world_open(&world);
    StoreTxn *txn = kit_begin(world.store, STORE_SERIALIZABLE);
    StoreCursor *cursor = cursor_begun(txn, world.tree);
    assert_false(store_look_start(cursor, false));
    store_cursor_close(cursor);
    kit_commit(txn);
    store_close(world.store);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_and_fetches_agree),
        cmocka_unit_test(what_changes_does_not_count),
        cmocka_unit_test(serializable_ones_fetch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
