/*
 * parts_test.c -- values read and written in parts.
 *
 * Method: a model keeps the bytes of a few rows, as committed, as the running writer has them, as
 * they were at its mark and at the snapshot of an old reader.  Random parts, whole values, deletes,
 * marks and rollbacks; after each step every way of reading is compared with the model; now and
 * then the store is opened from a copy of its files, as after a kill.  Then stories of two who
 * meet, which must go wrong when the rule behind them is switched off.
 */
#include "store_kit.h"

#define ROWS       4u
#define BYTES_MOST 70000u

typedef struct Row {
    u32 bytes; /* 0: no row. */
    u8 p[BYTES_MOST];
} Row;

typedef struct Rows {
    Row row[ROWS];
} Rows;

typedef struct Play {
    Kit kit;
    Store *store;
    TreeId tree;
    StoreTxn *writer, *reader; /* NULL: none. */
    StoreMark mark;
    bool has_mark;
    u64 random;
    Rows committed, running, marked, snapshot;
} Play;

static u32
next_random(Play *play, u32 below)
{
    play->random = play->random * 6364136223846793005u + 1442695040888963407u;
    return (u32)(play->random >> 33) % below;
}

static Slice
key_of(u32 row, u8 key[8])
{
    store_be64(key, row + 1);
    return (Slice){key, 8};
}

static void
letters_fill(Play *play, u8 *p, u32 bytes)
{
    u32 first = next_random(play, 200);
    for (u32 i = 0; i < bytes; i++)
        p[i] = (u8)(first + i * 7 % 53);
}

/* ---- reading ---- */

static void
expect_slice(const Row *row, bool found, Slice value)
{
    assert_int_equal(found, row->bytes > 0);
    if (!found) return;
    assert_int_equal(value.bytes, row->bytes);
    assert_memory_equal(value.p, row->p, row->bytes);
}

static void
expect_part(Play *play, StoreTxn *txn, u32 number, const Row *row)
{
    static u8 part[BYTES_MOST];
    u8 key[8];
    bool found;
    u64 bytes;
    u32 from = next_random(play, BYTES_MOST + 100), count = next_random(play, 6000);
    memset(part, 0xee, sizeof(part));
    assert_int_equal(
        store_get_part(txn, play->tree, key_of(number, key), from, part, count, &found, &bytes),
        OK);
    assert_int_equal(found, row->bytes > 0);
    assert_int_equal(bytes, row->bytes);
    u32 got = from >= row->bytes ? 0 : MIN_OF(count, row->bytes - from);
    if (got > 0) assert_memory_equal(part, row->p + from, got);
    for (u32 i = got; i < count; i++)
        assert_int_equal(part[i], 0xee);
}

/* By single steps of a cursor, or in runs. */
static void
expect_scan(Play *play, StoreTxn *txn, const Rows *rows, bool in_runs)
{
    StoreCursor *cursor;
    bool found;
    u32 at = 0;
    assert_int_equal(store_cursor_open(txn, play->tree, &cursor), OK);
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found), OK);
    while (found) {
        StoreRun run = {.rows = 1};
        if (in_runs) {
            assert_int_equal(store_cursor_fetch(cursor, 2, 1000000, false, &run), OK);
            found = !run.end;
        }
        for (u32 i = 0; i < run.rows; i++, at++) {
            while (at < ROWS && rows->row[at].bytes == 0)
                at++;
            assert_true(at < ROWS);
            expect_slice(&rows->row[at], true, in_runs ? run.value[i] : store_cursor_value(cursor));
        }
        if (!in_runs) assert_int_equal(store_cursor_next(cursor, &found), OK);
    }
    while (at < ROWS && rows->row[at].bytes == 0)
        at++;
    assert_int_equal(at, ROWS);
    store_cursor_close(cursor);
}

static void
expect_rows(Play *play, StoreTxn *txn, const Rows *rows)
{
    for (u32 i = 0; i < ROWS; i++) {
        u8 key[8];
        bool found;
        Slice value;
        assert_int_equal(store_get(txn, play->tree, key_of(i, key), &found, &value), OK);
        expect_slice(&rows->row[i], found, value);
        expect_part(play, txn, i, &rows->row[i]);
    }
    expect_scan(play, txn, rows, next_random(play, 2) == 0);
}

static void
expect_newest(Play *play, StoreTxn *txn, const Rows *rows)
{
    u8 key[8];
    bool found, newer;
    Slice value;
    u32 row = next_random(play, ROWS);
    assert_int_equal(store_get_newest(txn, play->tree, key_of(row, key), &found, &newer, &value),
                     OK);
    assert_false(newer);
    expect_slice(&rows->row[row], found, value);
}

/* ---- writing ---- */

static void
write_part(Play *play, u32 number)
{
    static u8 part[BYTES_MOST];
    Row *row = &play->running.row[number];
    u8 key[8];
    StoreVerdict verdict;
    u32 from = row->bytes == 0 ? 0 : next_random(play, row->bytes + 1);
    u32 count = next_random(play, 5) == 0 ? 20000 : next_random(play, 3000);
    count = MIN_OF(count, row->bytes - from);
    letters_fill(play, part, count);
    assert_int_equal(store_put_part(play->writer, play->tree, key_of(number, key), from,
                                    (Slice){part, count}, &verdict),
                     OK);
    assert_int_equal(verdict, row->bytes == 0 ? STORE_ABSENT : STORE_DONE);
    if (count > 0) memcpy(row->p + from, part, count);
    if (row->bytes == 0) return;
    Err err = store_put_part(play->writer, play->tree, key_of(number, key), row->bytes,
                             (Slice){part, 1}, &verdict);
    assert_int_equal(err, ERR_MISUSE);
}

static void
write_whole(Play *play, u32 number)
{
    Row *row = &play->running.row[number];
    u8 key[8];
    StoreVerdict verdict;
    row->bytes = next_random(play, 4) == 0 ? 1 + next_random(play, 300)
                                           : 1 + next_random(play, BYTES_MOST - 1);
    letters_fill(play, row->p, row->bytes);
    assert_int_equal(store_put(play->writer, play->tree, key_of(number, key),
                               (Slice){row->p, row->bytes}, STORE_PUT_ANY, &verdict),
                     OK);
}

static void
write_something(Play *play)
{
    u32 number = next_random(play, ROWS), what = next_random(play, 10);
    u8 key[8];
    StoreVerdict verdict;
    store_txn_mark(play->writer);
    if (what < 7) {
        write_part(play, number);
    } else if (what < 9) {
        write_whole(play, number);
    } else {
        assert_int_equal(store_delete(play->writer, play->tree, key_of(number, key), &verdict), OK);
        play->running.row[number].bytes = 0;
    }
}

static void
writer_step(Play *play)
{
    u32 what = next_random(play, 12);
    if (play->writer == NULL) {
        play->writer = kit_begin(play->store, STORE_SNAPSHOT);
        play->running = play->committed;
        play->has_mark = false;
    } else if (what == 0) {
        kit_commit(play->writer);
        play->committed = play->running;
        play->writer = NULL;
    } else if (what == 1) {
        store_txn_rollback(play->writer);
        play->writer = NULL;
    } else if (what == 2) {
        play->mark = store_txn_mark(play->writer);
        play->marked = play->running;
        play->has_mark = true;
    } else if (what == 3 && play->has_mark) {
        store_txn_undo_to(play->writer, play->mark);
        play->running = play->marked;
    } else {
        write_something(play);
    }
    if (play->writer != NULL) {
        expect_rows(play, play->writer, &play->running);
        expect_newest(play, play->writer, &play->running);
    }
}

static void
reader_step(Play *play)
{
    if (play->reader == NULL) {
        play->reader = kit_begin(play->store, STORE_SNAPSHOT);
        play->snapshot = play->committed;
    }
    expect_rows(play, play->reader, &play->snapshot);
    if (next_random(play, 8) != 0) return;
    store_txn_rollback(play->reader);
    play->reader = NULL;
}

/* The store as a kill would leave it, with what was committed; or closed and opened again. */
static void
restart_step(Play *play)
{
    bool killed = next_random(play, 2) == 0;
    if (next_random(play, 2) == 0) assert_int_equal(store_checkpoint(play->store, NULL), OK);
    if (!killed) {
        store_txn_rollback(play->writer);
        store_txn_rollback(play->reader);
        play->writer = play->reader = NULL;
        store_close(play->store);
        play->store = kit_open(&play->kit);
    }
    Kit copy;
    kit_copy(&play->kit, &copy);
    Store *own = play->store;
    play->store = kit_open(&copy);
    StoreTxn *txn = kit_begin(play->store, STORE_SNAPSHOT);
    expect_rows(play, txn, &play->committed);
    store_txn_rollback(txn);
    kit_check(play->store);
    store_close(play->store);
    kit_end(&copy);
    play->store = own;
}

static Play *
play_new(u64 seed)
{
    Play *play = (Play *)calloc(1, sizeof(*play));
    assert_non_null(play);
    play->random = seed;
    kit_start_fast(&play->kit);
    play->store = kit_open(&play->kit);
    StoreTxn *txn = kit_begin(play->store, STORE_SNAPSHOT);
    assert_int_equal(store_tree_create(txn, STORE_TREE_INT, &play->tree), OK);
    kit_commit(txn);
    return play;
}

static void
play_free(Play *play)
{
    store_txn_rollback(play->writer);
    store_txn_rollback(play->reader);
    kit_check(play->store);
    store_close(play->store);
    kit_end(&play->kit);
    free(play);
}

/* All parts of TREE_ROOT: their rows. */
static u64
parts_count(Store *store)
{
    u64 rows;
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    assert_int_equal(store_count(txn, TREE_ROOT, &rows), OK);
    store_txn_rollback(txn);
    return rows;
}

static void
random_parts(void **state)
{
    (void)state;
    for (u64 seed = 1; seed <= 3; seed++) {
        Play *play = play_new(seed);
        for (u32 i = 0; i < 250; i++) {
            u32 what = next_random(play, 20);
            if (what < 14) {
                writer_step(play);
            } else if (what < 19) {
                reader_step(play);
            } else {
                restart_step(play);
            }
        }
        /* With the tree go the parts. */
        store_txn_rollback(play->writer);
        play->writer = kit_begin(play->store, STORE_SNAPSHOT);
        assert_int_equal(store_tree_drop(play->writer, play->tree), OK);
        kit_commit(play->writer);
        play->writer = NULL;
        assert_int_equal(parts_count(play->store), 0);
        play_free(play);
    }
}

/* ---- two who meet ---- */

#define LONG_BYTES 50000u

typedef struct Meeting {
    Store *store;
    TreeId tree;
    u8 key[8], value[LONG_BYTES];
} Meeting;

static Slice
all_of(Meeting *m, int letter)
{
    memset(m->value, letter, LONG_BYTES);
    return (Slice){m->value, LONG_BYTES};
}

static Meeting *
meeting_new(void)
{
    Meeting *m = (Meeting *)calloc(1, sizeof(*m));
    assert_non_null(m);
    StoreVerdict verdict;
    m->store = kit_open_memory();
    store_be64(m->key, 1);
    StoreTxn *txn = kit_begin(m->store, STORE_SNAPSHOT);
    assert_int_equal(store_tree_create(txn, STORE_TREE_INT, &m->tree), OK);
    assert_int_equal(
        store_put(txn, m->tree, (Slice){m->key, 8}, all_of(m, 'a'), STORE_PUT_INSERT, &verdict),
        OK);
    kit_commit(txn);
    return m;
}

static void
meeting_free(Meeting *m)
{
    kit_check(m->store);
    store_close(m->store);
    free(m);
}

static Err
put_whole(Meeting *m, StoreTxn *txn, int letter)
{
    StoreVerdict verdict;
    return store_put(txn, m->tree, (Slice){m->key, 8}, all_of(m, letter), STORE_PUT_UPDATE,
                     &verdict);
}

static Err
put_part(Meeting *m, StoreTxn *txn, u32 offset, const char *text)
{
    StoreVerdict verdict;
    return store_put_part(txn, m->tree, (Slice){m->key, 8}, offset, kit_text(text), &verdict);
}

/* Is the value `letter` all over, but for `text` at `offset`? */
static bool
is_whole(Meeting *m, int letter, u32 offset, const char *text)
{
    bool found;
    Slice got;
    StoreTxn *txn = kit_begin(m->store, STORE_SNAPSHOT);
    assert_int_equal(store_get(txn, m->tree, (Slice){m->key, 8}, &found, &got), OK);
    Slice wanted = all_of(m, letter);
    memcpy(m->value + offset, text, strlen(text));
    bool same = found && slice_equal(got, wanted);
    store_txn_rollback(txn);
    return same;
}

/* Parts that were committed before the whole value was written are not in it. */
static bool
whole_values_forget_parts(void)
{
    Meeting *m = meeting_new();
    StoreTxn *txn = kit_begin(m->store, STORE_SNAPSHOT);
    assert_int_equal(put_part(m, txn, 30000, "part"), OK);
    kit_commit(txn);
    bool good = is_whole(m, 'a', 30000, "part");
    txn = kit_begin(m->store, STORE_SNAPSHOT);
    assert_int_equal(put_whole(m, txn, 'b'), OK);
    kit_commit(txn);
    good = good && is_whole(m, 'b', 0, "");
    meeting_free(m);
    return good;
}

/* A part of a value that somebody else has replaced since the snapshot. */
static bool
parts_of_what_is_gone(void)
{
    Meeting *m = meeting_new();
    StoreTxn *part = kit_begin(m->store, STORE_SNAPSHOT),
             *whole = kit_begin(m->store, STORE_SNAPSHOT);
    assert_int_equal(put_whole(m, whole, 'b'), OK);
    kit_commit(whole);
    Err err = put_part(m, part, 100, "part");
    if (err == OK) {
        kit_commit(part);
    } else {
        store_txn_rollback(part);
    }
    bool good = err == ERR_BUSY_SNAPSHOT && is_whole(m, 'b', 0, "");
    meeting_free(m);
    return good;
}

static void
whole_and_part_meet(void **state)
{
    (void)state;
    Meeting *m = meeting_new();
    /* The part first: the whole value waits for it, and finds it newer. */
    StoreTxn *part = kit_begin(m->store, STORE_SNAPSHOT),
             *whole = kit_begin(m->store, STORE_SNAPSHOT);
    assert_int_equal(put_part(m, part, 20000, "one"), OK);
    StoreMark mark = store_txn_mark(whole);
    assert_int_equal(put_whole(m, whole, 'b'), ERR_BUSY);
    store_txn_undo_to(whole, mark);
    kit_commit(part);
    assert_int_equal(put_whole(m, whole, 'b'), ERR_BUSY_SNAPSHOT);
    store_txn_rollback(whole);
    assert_true(is_whole(m, 'a', 20000, "one"));
    /* The whole value first. */
    part = kit_begin(m->store, STORE_SNAPSHOT);
    whole = kit_begin(m->store, STORE_SNAPSHOT);
    assert_int_equal(put_whole(m, whole, 'c'), OK);
    assert_int_equal(put_part(m, part, 100, "two"), ERR_BUSY);
    kit_commit(whole);
    assert_int_equal(put_part(m, part, 100, "two"), ERR_BUSY_SNAPSHOT);
    store_txn_rollback(part);
    assert_true(is_whole(m, 'c', 0, ""));
    /* Two parts of one value, and who reads the newest. */
    part = kit_begin(m->store, STORE_SNAPSHOT);
    StoreTxn *other = kit_begin(m->store, STORE_SNAPSHOT);
    bool found, newer;
    Slice got;
    assert_int_equal(put_part(m, part, 100, "three"), OK);
    assert_int_equal(put_part(m, other, 40000, "four"), ERR_BUSY);
    assert_int_equal(store_get_newest(other, m->tree, (Slice){m->key, 8}, &found, &newer, &got),
                     ERR_BUSY);
    kit_commit(part);
    assert_int_equal(put_part(m, other, 40000, "four"), ERR_BUSY_SNAPSHOT);
    assert_int_equal(store_get_newest(other, m->tree, (Slice){m->key, 8}, &found, &newer, &got),
                     OK);
    assert_true(found && newer);
    store_txn_rollback(other);
    assert_true(is_whole(m, 'c', 100, "three"));
    meeting_free(m);
}

static void
rules_matter(void **state)
{
    (void)state;
    static const struct {
        u32 plant;
        bool (*story)(void);
    } rules[] = {{143, whole_values_forget_parts}, {144, parts_of_what_is_gone}};
    for (u32 i = 0; i < COUNT_OF(rules); i++) {
        assert_true(rules[i].story());
#ifdef WEFT_CHECK
        plant_set(rules[i].plant, true);
        bool good = rules[i].story();
        plant_set(rules[i].plant, false);
        if (good) fail_msg("rule %u does not matter", rules[i].plant);
#endif
    }
}

/* A part of a large value costs neither the memory nor the log of the whole. */
static void
parts_are_small(void **state)
{
    (void)state;
    Kit kit;
    kit_start_fast(&kit);
    Store *store = kit_open(&kit);
    size_t bytes = (size_t)40 << 20;
    u8 key[8], part[4096], *value = (u8 *)calloc(1, bytes);
    TreeId tree;
    StoreVerdict verdict;
    StoreStats before, after;
    assert_non_null(value);
    store_be64(key, 1);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    assert_int_equal(store_tree_create(txn, STORE_TREE_INT, &tree), OK);
    assert_int_equal(
        store_put(txn, tree, (Slice){key, 8}, (Slice){value, bytes}, STORE_PUT_INSERT, &verdict),
        OK);
    kit_commit(txn);
    free(value);
    memset(part, 7, sizeof(part));
    store_stats(store, &before);
    u64 memory = store_account(store)->used_bytes;
    for (u32 i = 0; i < 16; i++) {
        txn = kit_begin(store, STORE_SNAPSHOT);
        assert_int_equal(store_put_part(txn, tree, (Slice){key, 8}, (u64)i * 2500001,
                                        (Slice){part, sizeof(part)}, &verdict),
                         OK);
        kit_commit(txn);
    }
    store_stats(store, &after);
    assert_true(after.log_bytes - before.log_bytes < 16 * 20000);
    assert_true(store_account(store)->used_bytes < memory + ((u64)1 << 20));
    for (u32 i = 0; i < 16; i++) {
        bool found;
        u64 whole;
        u8 got[4098];
        txn = kit_begin(store, STORE_SNAPSHOT);
        u64 from = (u64)i * 2500001;
        assert_int_equal(
            store_get_part(txn, tree, (Slice){key, 8}, from, got, 4098, &found, &whole), OK);
        assert_true(found && whole == bytes);
        assert_memory_equal(got, part, sizeof(part));
        assert_int_equal(got[4096], 0);
        store_txn_rollback(txn);
    }
    store_close(store);
    kit_end(&kit);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_parts),
        cmocka_unit_test(whole_and_part_meet),
        cmocka_unit_test(rules_matter),
        cmocka_unit_test(parts_are_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
