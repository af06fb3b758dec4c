/*
 * model_test.c -- random transactions, interleaved, against a plain model.
 *
 * Method: one task plays up to eight open transactions, step by step, in random order; nobody
 * waits (a wait is ERR_BUSY), so the model can say exactly what every call must answer: the value
 * a snapshot sees, the verdict or error of a write, who holds which row, what a cursor meets in
 * either direction, what savepoints bring back.  In file mode the store is now and then closed, or
 * left behind and its copy opened, or checkpointed, and must hold what was committed.  A seed is a
 * whole run.
 */
#include "store_kit.h"

#define KEYS    48u
#define TXNS    8u
#define HISTORY 4096u
#define MARKS   8u
#define ABSENT  0u
#define NOBODY  U32_MAX

typedef struct Committed {
    u64 ts;
    u32 value; /* ABSENT or a number. */
} Committed;

typedef struct ModelKey {
    Committed *history; /* Rising ts. */
    u32 count, capacity;
    u32 holder; /* Transaction with a write or a kept lock, or NOBODY. */
} ModelKey;

typedef struct ModelWrite {
    u32 key, value;
} ModelWrite;

typedef struct ModelTxn {
    StoreTxn *txn;
    StoreLevel level;
    u64 snapshot;
    ModelWrite writes[256];
    u32 write_count;
    StoreMark marks[MARKS];
    u32 mark_writes[MARKS];
    u32 mark_count;
} ModelTxn;

typedef struct World {
    Rng rng;
    Store *store;
    Kit kit;
    bool in_file;
    TreeId tree;
    u64 ts;
    u32 next_value;
    ModelKey keys[KEYS];
    ModelTxn txns[TXNS];
} World;

static void
key_of(u32 key, char text[16])
{
    /* Various lengths, shared heads, one a prefix of another. */
    static const char *const prefixes[] = {"", "k", "same-head-", "same-head-same-head-"};
    snprintf(text, 16, "%.10s%u", prefixes[key % 4], key);
}

static u32
committed_at(const ModelKey *key, u64 snapshot)
{
    for (u32 i = key->count; i > 0; i--) {
        if (key->history[i - 1].ts <= snapshot) return key->history[i - 1].value;
    }
    return ABSENT;
}

static u64
newest_ts(const ModelKey *key)
{
    return key->count == 0 ? 0 : key->history[key->count - 1].ts;
}

/* What the transaction must see; *own_out: by its own write. */
static u32
seen(const World *world, const ModelTxn *t, u32 key, bool *own_out)
{
    for (u32 i = t->write_count; i > 0; i--) {
        if (t->writes[i - 1].key == key) {
            *own_out = true;
            return t->writes[i - 1].value;
        }
    }
    *own_out = false;
    return committed_at(&world->keys[key], t->snapshot);
}

static void
value_text(u32 value, char text[64])
{
    snprintf(text, 64, "%u-%.*s", value, (int)(value % 40),
             "....................................."
             "...");
}

static void
expect_get(World *world, ModelTxn *t, u32 key)
{
    char key_text[16], text[64];
    bool own;
    u32 value = seen(world, t, key, &own);
    key_of(key, key_text);
    value_text(value, text);
    kit_expect(t->txn, world->tree, key_text, value == ABSENT ? NULL : text);
}

static void
step_begin(World *world, ModelTxn *t)
{
    t->level = rng_below(&world->rng, 3) == 0 ? STORE_READ_COMMITTED : STORE_SNAPSHOT;
    t->txn = kit_begin_wait(world->store, t->level,
                            rng_below(&world->rng, 4) == 0 ? STORE_SYNC_NORMAL : STORE_SYNC_OFF, 0);
    t->snapshot = world->ts;
    t->write_count = t->mark_count = 0;
}

static void
release_keys(World *world, const ModelTxn *t)
{
    u32 self = (u32)(t - world->txns);
    for (u32 i = 0; i < KEYS; i++) {
        if (world->keys[i].holder == self) world->keys[i].holder = NOBODY;
    }
}

static void
step_end(World *world, ModelTxn *t, bool commits)
{
    if (!commits) {
        store_txn_rollback(t->txn);
    } else {
        kit_commit(t->txn);
        if (t->write_count > 0) world->ts++;
        for (u32 i = 0; i < t->write_count; i++) {
            ModelKey *key = &world->keys[t->writes[i].key];
            if (key->count > 0 && key->history[key->count - 1].ts == world->ts) key->count--;
            if (key->count == key->capacity) {
                key->capacity = key->capacity * 2 + 16;
                key->history = (Committed *)mem_realloc(key->history,
                                                        key->capacity * sizeof(Committed));
                assert_non_null(key->history);
            }
            key->history[key->count++] = (Committed){world->ts, t->writes[i].value};
        }
    }
    release_keys(world, t);
    t->txn = NULL;
}

static void
step_write(World *world, ModelTxn *t)
{
    u32 number = (u32)rng_below(&world->rng, KEYS);
    u32 self = (u32)(t - world->txns);
    ModelKey *key = &world->keys[number];
    bool is_delete = rng_below(&world->rng, 3) == 0;
    StorePut mode = is_delete ? STORE_PUT_UPDATE : (StorePut)rng_below(&world->rng, 3);
    u32 value = is_delete ? ABSENT : world->next_value++;
    char key_text[16], text[64];
    key_of(number, key_text);
    value_text(value, text);
    if (t->write_count == COUNT_OF(t->writes)) return;

    StoreVerdict verdict;
    Err err = is_delete ? store_delete(t->txn, world->tree, kit_text(key_text), &verdict)
                        : store_put(t->txn, world->tree, kit_text(key_text), kit_text(text), mode,
                                    &verdict);
    if (key->holder != NOBODY && key->holder != self) {
        assert_int_equal(err, ERR_BUSY);
        return;
    }
    bool own;
    seen(world, t, number, &own);
    u32 newest = own ? seen(world, t, number, &own) : committed_at(key, U64_MAX);
    bool newer = !own && newest_ts(key) > t->snapshot;
    if (mode == STORE_PUT_INSERT && newest != ABSENT) {
        assert_int_equal(err, OK);
        assert_int_equal(verdict, newer ? STORE_EXISTS_NEWER : STORE_EXISTS);
        return;
    }
    if (newer) {
        assert_int_equal(err, ERR_BUSY_SNAPSHOT);
        return;
    }
    assert_int_equal(err, OK);
    if (mode == STORE_PUT_UPDATE && newest == ABSENT) {
        assert_int_equal(verdict, STORE_ABSENT);
        return;
    }
    assert_int_equal(verdict, STORE_DONE);
    t->writes[t->write_count++] = (ModelWrite){number, value};
    key->holder = self;
}

static void
step_mark(World *world, ModelTxn *t)
{
    if (t->mark_count < MARKS && rng_below(&world->rng, 2) == 0) {
        t->marks[t->mark_count] = store_txn_mark(t->txn);
        t->mark_writes[t->mark_count++] = t->write_count;
    } else if (t->mark_count > 0 && rng_below(&world->rng, 3) == 0) {
        /* The newest ones are given up, and what was written since stays. */
        t->mark_count = (u32)rng_below(&world->rng, t->mark_count);
        store_txn_drop_marks(t->txn, t->mark_count == 0 ? 0 : t->marks[t->mark_count - 1]);
    } else if (t->mark_count > 0) {
        t->mark_count = (u32)rng_below(&world->rng, t->mark_count);
        store_txn_undo_to(t->txn, t->marks[t->mark_count]);
        t->write_count = t->mark_writes[t->mark_count];
    }
    assert_int_equal(store_txn_has_written(t->txn), t->write_count > 0);
}

static void
step_refresh(World *world, ModelTxn *t)
{
    Err err = store_txn_refresh(t->txn);
    if (t->level == STORE_SNAPSHOT && t->write_count > 0) {
        assert_int_equal(err, ERR_MISUSE);
        return;
    }
    assert_int_equal(err, OK);
    t->snapshot = world->ts;
}

static int
compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A walk of all that is seen, by steps or fetches, in either direction. */
static void
step_scan(World *world, ModelTxn *t)
{
    char keys[KEYS][16];
    char *sorted[KEYS];
    u32 count = 0;
    for (u32 i = 0; i < KEYS; i++) {
        bool own;
        if (seen(world, t, i, &own) == ABSENT) continue;
        key_of(i, keys[i]);
        sorted[count++] = keys[i];
    }
    qsort(sorted, count, sizeof(sorted[0]), compare_texts);
    u64 rows;
    assert_int_equal(store_count(t->txn, world->tree, &rows), OK);
    assert_int_equal(rows, count);

    StoreCursor *cursor;
    bool found;
    bool backwards = rng_below(&world->rng, 2) == 0;
    assert_int_equal(store_cursor_open(t->txn, world->tree, &cursor), OK);
    assert_int_equal(store_cursor_seek(cursor, backwards ? STORE_SEEK_LAST : STORE_SEEK_FIRST,
                                       SLICE_NONE, &found),
                     OK);
    if (rng_below(&world->rng, 2) == 0) {
        for (u32 i = 0; i < count; i++) {
            assert_true(found);
            const char *want = sorted[backwards ? count - 1 - i : i];
            assert_true(slice_equal(store_cursor_key(cursor), kit_text(want)));
            Err err = backwards ? store_cursor_prev(cursor, &found)
                                : store_cursor_next(cursor, &found);
            assert_int_equal(err, OK);
        }
        assert_false(found);
    } else {
        u32 at = 0;
        StoreRun run = {0};
        while (found && !run.end) {
            u32 rows_max = 1 + (u32)rng_below(&world->rng, 9);
            assert_int_equal(store_cursor_fetch(cursor, rows_max, 4096, backwards, &run), OK);
            for (u32 i = 0; i < run.rows; i++, at++) {
                assert_true(at < count);
                const char *want = sorted[backwards ? count - 1 - at : at];
                assert_true(slice_equal(run.key[i], kit_text(want)));
            }
        }
        assert_int_equal(at, count);
    }
    store_cursor_close(cursor);
}

/* Seeks of all kinds around a key. */
static void
step_seek(World *world, ModelTxn *t)
{
    char probe[16], best[16] = "", key_text[16];
    StoreSeek how = (StoreSeek)(STORE_SEEK_GE + rng_below(&world->rng, 4));
    bool up = how == STORE_SEEK_GE || how == STORE_SEEK_GT;
    bool any = false;
    key_of((u32)rng_below(&world->rng, KEYS), probe);
    for (u32 i = 0; i < KEYS; i++) {
        bool own;
        if (seen(world, t, i, &own) == ABSENT) continue;
        key_of(i, key_text);
        int order = strcmp(key_text, probe);
        bool fits = (order == 0 && (how == STORE_SEEK_GE || how == STORE_SEEK_LE)) ||
                    (up ? order > 0 : order < 0);
        if (!fits) continue;
        int against = any ? strcmp(key_text, best) : 0;
        if (!any || (up ? against < 0 : against > 0)) memcpy(best, key_text, sizeof(best));
        any = true;
    }
    StoreCursor *cursor;
    bool found;
    assert_int_equal(store_cursor_open(t->txn, world->tree, &cursor), OK);
    assert_int_equal(store_cursor_seek(cursor, how, kit_text(probe), &found), OK);
    assert_int_equal(found, any);
    if (any) assert_true(slice_equal(store_cursor_key(cursor), kit_text(best)));
    store_cursor_close(cursor);
}

static bool
in_range(const char *key, StoreSeek how, const char *from, const char *bound, bool inclusive)
{
    int order = strcmp(key, from), far = bound == NULL ? 0 : strcmp(key, bound);
    bool up = how == STORE_SEEK_FIRST || how == STORE_SEEK_GE || how == STORE_SEEK_GT;
    bool at_end = how == STORE_SEEK_FIRST || how == STORE_SEEK_LAST;
    bool with = how == STORE_SEEK_GE || how == STORE_SEEK_LE;
    if (!at_end && (up ? order < 0 : order > 0)) return false;
    if (!at_end && order == 0 && !with) return false;
    if (bound == NULL) return true;
    return far == 0 ? inclusive : up ? far < 0 : far > 0;
}

static bool
is_wanted(const char *key, const bool *wanted)
{
    char text[16];
    for (u32 i = 0; i < KEYS; i++) {
        key_of(i, text);
        if (strcmp(text, key) == 0) return wanted[i];
    }
    return false;
}

/* Fetches from a place on, perhaps up to a bound: all that the transaction sees there. */
static void
step_fetch(World *world, ModelTxn *t)
{
    char probe[16], bound[16], key[16];
    StoreSeek how = (StoreSeek)rng_below(&world->rng, 6);
    bool up = how == STORE_SEEK_FIRST || how == STORE_SEEK_GE || how == STORE_SEEK_GT;
    bool bounded = rng_below(&world->rng, 2) == 0, inclusive = rng_below(&world->rng, 2) == 0;
    bool wanted[KEYS] = {false};
    key_of((u32)rng_below(&world->rng, KEYS), probe);
    key_of((u32)rng_below(&world->rng, KEYS), bound);
    u32 left = 0;
    for (u32 i = 0; i < KEYS; i++) {
        bool own;
        key_of(i, key);
        wanted[i] = seen(world, t, i, &own) != ABSENT &&
                    in_range(key, how, probe, bounded ? bound : NULL, inclusive);
        left += wanted[i];
    }
    StoreCursor *cursor;
    StoreRun run;
    char last[16] = "";
    assert_int_equal(store_cursor_open(t->txn, world->tree, &cursor), OK);
    Slice end = bounded ? kit_text(bound) : SLICE_NONE;
    assert_int_equal(store_cursor_set_bound(cursor, end, inclusive), OK);
    u32 rows_max = 1 + (u32)rng_below(&world->rng, 40);
    assert_int_equal(store_cursor_fetch_at(cursor, how, kit_text(probe), rows_max, 4096, &run), OK);
    for (;;) {
        for (u32 i = 0; i < run.rows; i++) {
            assert_true(run.key[i].bytes < sizeof(key));
            memset(key, 0, sizeof(key));
            memcpy(key, run.key[i].p, run.key[i].bytes);
            assert_true(is_wanted(key, wanted));
            assert_true(last[0] == 0 || (up ? strcmp(last, key) < 0 : strcmp(last, key) > 0));
            memcpy(last, key, sizeof(last));
            left--;
        }
        if (run.end) break;
        assert_int_equal(store_cursor_fetch(cursor, rows_max, 4096, !up, &run), OK);
    }
    assert_int_equal(left, 0);
    u64 counted, expected = 0;
    for (u32 i = 0; i < KEYS; i++) {
        bool own;
        key_of(i, key);
        expected += seen(world, t, i, &own) != ABSENT &&
                    in_range(key, STORE_SEEK_GE, probe, bounded ? bound : NULL, inclusive);
    }
    assert_int_equal(store_cursor_count(cursor, kit_text(probe), &counted), OK);
    assert_int_equal(counted, expected);
    store_cursor_close(cursor);
}

static void
end_all(World *world)
{
    for (u32 i = 0; i < TXNS; i++) {
        if (world->txns[i].txn != NULL) step_end(world, &world->txns[i], false);
    }
}

/* The committed state, all of it. */
static void
expect_all(World *world)
{
    ModelTxn reader = {.txn = kit_begin(world->store, STORE_SNAPSHOT), .snapshot = world->ts};
    for (u32 i = 0; i < KEYS; i++) {
        expect_get(world, &reader, i);
    }
    step_scan(world, &reader);
    store_txn_rollback(reader.txn);
    kit_check(world->store);
}

static void
step_restart(World *world)
{
    if (!world->in_file) return;
    switch (rng_below(&world->rng, 3)) {
    case 0: assert_int_equal(store_checkpoint(world->store, NULL), OK); return;
    case 1:
        end_all(world);
        store_close(world->store);
        break;
    default: {
        /* Open transactions stay behind: the copy must know nothing of them. */
        Kit copy;
        kit_copy(&world->kit, &copy);
        end_all(world);
        store_close(world->store);
        kit_end(&world->kit);
        world->kit = copy;
    }
    }
    world->store = kit_open(&world->kit);
    expect_all(world);
}

static void
run_seed(u64 seed, bool in_file, u32 steps)
{
    World *world = MEM_NEW(World);
    assert_non_null(world);
    rng_seed(&world->rng, seed);
    world->in_file = in_file;
    world->next_value = 1;
    if (in_file) {
        kit_start_fast(&world->kit);
        world->store = kit_open(&world->kit);
    } else {
        world->store = kit_open_memory();
    }
    for (u32 i = 0; i < KEYS; i++) {
        world->keys[i].holder = NOBODY;
    }
    StoreTxn *txn = kit_begin(world->store, STORE_SNAPSHOT);
    assert_int_equal(store_tree_create(txn, STORE_TREE_BYTES, &world->tree), OK);
    kit_commit(txn);
    for (u32 step = 0; step < steps; step++) {
        ModelTxn *t = &world->txns[rng_below(&world->rng, TXNS)];
        u64 dice = rng_below(&world->rng, 100);
        if (t->txn == NULL) {
            step_begin(world, t);
        } else if (dice < 40) {
            step_write(world, t);
        } else if (dice < 60) {
            expect_get(world, t, (u32)rng_below(&world->rng, KEYS));
        } else if (dice < 68) {
            step_seek(world, t);
            step_fetch(world, t);
        } else if (dice < 74) {
            step_scan(world, t);
        } else if (dice < 84) {
            step_mark(world, t);
        } else if (dice < 86) {
            step_refresh(world, t);
        } else {
            step_end(world, t, dice < 96);
        }
        if (step % 64 == 0) kit_check(world->store);
        if (rng_below(&world->rng, 200) == 0) step_restart(world);
    }
    end_all(world);
    expect_all(world);
    store_close(world->store);
    if (in_file) kit_end(&world->kit);
    for (u32 i = 0; i < KEYS; i++) {
        mem_free(world->keys[i].history);
    }
    mem_free(world);
}

static u64
seeds_wanted(u64 usual)
{
    const char *text = getenv("STORE_SEEDS");
    return text == NULL ? usual : strtoull(text, NULL, 10);
}

static void
in_memory(void **state)
{
    (void)state;
    u64 blocks = kit_live_blocks();
    for (u64 seed = 1; seed <= seeds_wanted(60); seed++) {
        run_seed(seed, false, 3000);
    }
    assert_int_equal(kit_live_blocks(), blocks);
}

static void
in_files(void **state)
{
    (void)state;
    for (u64 seed = 1; seed <= seeds_wanted(20); seed++) {
        run_seed(seed, true, 2000);
    }
}

/* With each entry of undo spilled, and then also with tables of writers that are full at once. */
static void
in_files_spilled(void **state)
{
    (void)state;
#ifdef WEFT_CHECK
    plant_set(141, true);
    for (u64 seed = 1; seed <= seeds_wanted(10); seed++) {
        plant_set(140, seed % 2 == 0);
        run_seed(seed, true, 1000);
    }
    plant_set(140, false);
    plant_set(141, false);
#endif
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_memory), cmocka_unit_test(in_files),
                                       cmocka_unit_test(in_files_spilled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
