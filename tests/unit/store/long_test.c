/*
 * long_test.c -- what the store must bear: one huge transaction, a hot row, an old reader, a queue.
 *
 * Method: each story runs in a process of its own, whose memory is measured by the kernel (VmHWM),
 * and says what it saw; the figures are asserted in full size only (STORE_LONG=1, as by `make
 * store-long`), the results always.  STORE_LONG_ROWS is the size of the bulk stories, of which the
 * others are parts.  A crash is an exit without a close; the next process opens and looks.
 *
 * Under the address sanitizer and in small size the same code runs with a pool of 8 MiB and a bound
 * on undo of 64 KiB.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rt/process.h"
#include "rt/task.h"
#include "rt/time.h"
#include "store/store_private.h"
#include "store_kit.h"

#define VALUE_BYTES 100u

typedef struct Sizes {
    bool full;
    u64 rows; /* Of the bulk stories. */
    u64 pool_bytes;
    u64 spill_bytes; /* 0: as usual. */
    u64 memory_mib;  /* A process may use; 0: not looked at. */
} Sizes;

static Sizes sizes;

static void
sizes_read(void)
{
    const char *full = getenv("STORE_LONG"), *rows = getenv("STORE_LONG_ROWS");
    sizes.full = full != NULL && strcmp(full, "0") != 0;
    sizes.rows = rows != NULL ? strtoull(rows, NULL, 10) : sizes.full ? 10000000 : 30000;
    sizes.pool_bytes = sizes.full ? (u64)256 << 20 : (u64)8 << 20;
    sizes.spill_bytes = sizes.full ? 0 : 65536;
    sizes.memory_mib = sizes.full ? 512 : 0;
}

/* ---- processes ---- */

/* By the system's clock: the runtime must not have been used before a fork. */
static double
seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static u64
memory_peak_mib(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long long kib = 0;
    while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1) break;
    }
    if (status != NULL) fclose(status);
    return kib / 1024;
}

typedef struct Story {
    Kit kit;
    const char *name;
    u64 argument;
} Story;

/* Run a part of a story in a process of its own; `ends` false: it crashes at its end. */
static void
play(Story *story, const char *part, void (*main_fn)(Story *story), bool ends)
{
    fflush(stdout);
    double started = seconds_now();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        main_fn(story);
        u64 mib = memory_peak_mib();
        printf("  %-12s %-22s %8.1f s  %5llu MiB\n", story->name, part, seconds_now() - started,
               (unsigned long long)mib);
        fflush(stdout);
        if (sizes.memory_mib > 0 && mib > sizes.memory_mib) _exit(2);
        _exit(ends ? 0 : 7);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != (ends ? 0 : 7)) {
        fail_msg("%s, %s: ended with %d (2: more than %llu MiB)", story->name, part, status,
                 (unsigned long long)sizes.memory_mib);
    }
}

static Store *
open_store(const Story *story)
{
    Store *store;
    ErrMsg msg = {0};
    StoreOptions options = {.create = true, .pool_bytes = sizes.pool_bytes};
    Err err = store_open(rt_process_default(), story->kit.path, &options, &store, &msg);
    if (err != OK) print_error("open: %s\n", err_message(&msg));
    assert_int_equal(err, OK);
    if (sizes.spill_bytes > 0) store->spill_bytes = sizes.spill_bytes;
    return store;
}

/* ---- bulk ---- */

static Slice
row_key(u64 number, u8 key[8])
{
    store_be64(key, number ^ (u64)1 << 63);
    return (Slice){key, 8};
}

static Slice
row_value(u64 number, u64 round, u8 value[VALUE_BYTES])
{
    memset(value, (int)(number & 0xff), VALUE_BYTES);
    store_u64(value, number);
    store_u64(value + 8, round);
    return (Slice){value, VALUE_BYTES};
}

static TreeId
tree_of(Store *store)
{
    StoreTxn *txn = kit_begin_wait(store, STORE_SNAPSHOT, STORE_SYNC_NORMAL, 0);
    bool found;
    Slice got;
    TreeId tree = TREE_NONE;
    assert_int_equal(store_get(txn, TREE_ROOT, kit_text("tree"), &found, &got), OK);
    if (found) tree = load_u32(got.p);
    store_txn_rollback(txn);
    return tree;
}

static void
put_rows(Store *store, StoreTxn *txn, TreeId tree, u64 round)
{
    u8 key[8], value[VALUE_BYTES];
    (void)store;
    for (u64 i = 0; i < sizes.rows; i++) {
        StoreVerdict verdict;
        Err err = store_put(txn, tree, row_key(i, key), row_value(i, round, value), STORE_PUT_ANY,
                            &verdict);
        if (err != OK)
            print_error("row %llu: %s\n", (unsigned long long)i, err_message(store_txn_error(txn)));
        assert_int_equal(err, OK);
    }
}

/* All rows are of that round; rows UINT64_MAX: as many as sizes say. */
static void
expect_rows(Store *store, TreeId tree, u64 rows, u64 round)
{
    StoreTxn *txn = kit_begin_wait(store, STORE_SNAPSHOT, STORE_SYNC_NORMAL, 0);
    StoreCursor *cursor;
    bool found;
    u64 seen = 0;
    assert_int_equal(store_cursor_open(txn, tree, &cursor), OK);
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found), OK);
    while (found) {
        StoreRun run;
        assert_int_equal(store_cursor_fetch(cursor, 1024, 1 << 20, false, &run), OK);
        for (u32 i = 0; i < run.rows; i++, seen++) {
            u8 key[8], value[VALUE_BYTES];
            assert_true(slice_equal(run.key[i], row_key(seen, key)));
            assert_true(slice_equal(run.value[i], row_value(seen, round, value)));
        }
        if (run.end) break;
    }
    assert_int_equal(seen, rows);
    u64 counted;
    assert_int_equal(store_count(txn, tree, &counted), OK);
    assert_int_equal(counted, rows);
    store_cursor_close(cursor);
    store_txn_rollback(txn);
}

/* Nothing is left of undo and versions. */
static void
expect_settled(Store *store)
{
    StoreStats stats;
    bool more = true;
    while (more) {
        assert_int_equal(store_step(store, 1 << 20, &more), OK);
    }
    store_stats(store, &stats);
    assert_int_equal(stats.versions_live, 0);
    assert_int_equal(rt_load_relaxed(&store->spill_count), 0);
    if (!sizes.full) kit_check(store);
}

static void
bulk_create(Story *story)
{
    Store *store = open_store(story);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    TreeId tree;
    StoreVerdict verdict;
    assert_int_equal(store_tree_create(txn, STORE_TREE_INT, &tree), OK);
    u8 id[4];
    store_u32(id, tree);
    assert_int_equal(
        store_put(txn, TREE_ROOT, kit_text("tree"), (Slice){id, 4}, STORE_PUT_ANY, &verdict), OK);
    kit_commit(txn);
    store_close(store);
}

/* Write all rows in one transaction, then, by the argument: 0 commit, 1 roll back, 2 stay open
   over a checkpoint, which the crash follows, 3 commit and crash. */
static void
bulk_write(Story *story)
{
    Store *store = open_store(story);
    TreeId tree = tree_of(store);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    u64 round = story->argument >> 8, end = story->argument & 0xff;
    put_rows(store, txn, tree, round);
    if (end == 1) {
        store_txn_rollback(txn);
        expect_settled(store);
    } else if (end == 2) {
        assert_int_equal(store_checkpoint(store, NULL), OK);
        return;
    } else {
        kit_commit(txn);
        if (end == 3) return;
        expect_settled(store);
    }
    store_close(store);
}

/* The argument: how many rows of which round. */
static void
bulk_look(Story *story)
{
    Store *store = open_store(story);
    TreeId tree = tree_of(store);
    u64 round = story->argument >> 8;
    expect_rows(store, tree, round == 0 ? 0 : sizes.rows, round);
    expect_settled(store);
    store_close(store);
}

static void
bulk_part(Story *story, const char *part, u64 round, u64 end, u64 round_after)
{
    char look[40];
    story->argument = round << 8 | end;
    play(story, part, bulk_write, end < 2);
    story->argument = round_after << 8;
    snprintf(look, sizeof(look), "%s: look", part);
    play(story, look, bulk_look, true);
}

static void
bulk(void **state)
{
    (void)state;
    Story story = {.name = "bulk"};
    kit_start(&story.kit);
    play(&story, "create", bulk_create, true);
    bulk_part(&story, "insert, rolled back", 1, 1, 0);
    bulk_part(&story, "insert, crashed", 1, 2, 0);
    bulk_part(&story, "insert, committed", 1, 0, 1);
    bulk_part(&story, "update, rolled back", 2, 1, 1);
    bulk_part(&story, "update, crashed", 2, 2, 1);
    bulk_part(&story, "update, done, crashed", 3, 3, 3);
    bulk_part(&story, "update, committed", 4, 0, 4);
    kit_end(&story.kit);
}

/* ---- hot row ---- */

#define HOT_WRITERS 32u

typedef struct Hot {
    Store *store;
    u64 each;
    RtU64 done;
} Hot;

static void
hot_writer(void *arg)
{
    Hot *hot = (Hot *)arg;
    for (u64 i = 0; i < hot->each;) {
        StoreTxn *txn = kit_begin_wait(hot->store, STORE_READ_COMMITTED, STORE_SYNC_FULL,
                                       10 * RT_NS_PER_S);
        bool found, newer;
        Slice got;
        u8 value[8];
        StoreVerdict verdict;
        Err err = store_get_newest(txn, TREE_ROOT, kit_text("hot"), &found, &newer, &got);
        /* That waited for who holds the row.  What is raised must come from the snapshot that the
           write is judged by. */
        if (err == OK) err = store_txn_refresh(txn);
        if (err == OK) err = store_get(txn, TREE_ROOT, kit_text("hot"), &found, &got);
        if (err == OK) {
            store_u64(value, (found ? load_u64(got.p) : 0) + 1);
            err = store_put(txn, TREE_ROOT, kit_text("hot"), (Slice){value, 8}, STORE_PUT_ANY,
                            &verdict);
        }
        bool stale = err == ERR_BUSY_SNAPSHOT;
        if (err == OK) {
            err = store_txn_commit(txn, NULL);
        } else {
            store_txn_rollback(txn);
        }
        if (stale) continue; /* Another came first: again, as a statement would. */
        assert_int_equal(err, OK);
        i++;
        rt_fetch_add(&hot->done, 1);
    }
}

/* Commits a second of so many writers of one row. */
static double
hot_rate(Store *store, u32 writers, u64 commits)
{
    Hot hot = {.store = store, .each = commits / writers};
    RtThread *threads[HOT_WRITERS];
    double started = seconds_now();
    for (u32 i = 0; i < writers; i++) {
        assert_int_equal(
            rt_thread_start(rt_process_default(), hot_writer, &hot, "hot", &threads[i]), OK);
    }
    for (u32 i = 0; i < writers; i++) {
        rt_thread_join(threads[i]);
    }
    return (double)rt_load_relaxed(&hot.done) / (seconds_now() - started);
}

static void
hot_main(Story *story)
{
    Store *store = open_store(story);
    u64 commits = sizes.full ? 3200 : 320;
    u64 alone = commits / 8;
    double one = hot_rate(store, 1, alone);
    double many = hot_rate(store, HOT_WRITERS, commits);
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    bool found;
    Slice got;
    assert_int_equal(store_get(txn, TREE_ROOT, kit_text("hot"), &found, &got), OK);
    assert_true(found);
    assert_int_equal(load_u64(got.p), alone + commits);
    store_txn_rollback(txn);
    printf("  hot row: 1 writer %.0f/s, %u writers %.0f/s, %.1f times\n", one, HOT_WRITERS, many,
           many / one);
    if (sizes.full) assert_true(many >= 5 * one);
    store_close(store);
}

static void
hot_row(void **state)
{
    (void)state;
    Story story = {.name = "hot row"};
    kit_start(&story.kit);
    play(&story, "increments", hot_main, true);
    kit_end(&story.kit);
}

/* ---- a cycle of waits ---- */

typedef struct Ring {
    Store *store;
    RtU32 ready, failed;
    RtU64 slowest_ns; /* From the wait that closed the cycle to its error. */
} Ring;

typedef struct RingSeat {
    Ring *ring;
    const char *first, *second;
} RingSeat;

static void
ring_writer(void *arg)
{
    RingSeat *seat = (RingSeat *)arg;
    Ring *ring = seat->ring;
    StoreTxn *txn = kit_begin_wait(ring->store, STORE_SNAPSHOT, STORE_SYNC_OFF, 10 * RT_NS_PER_S);
    StoreVerdict verdict;
    kit_put(txn, TREE_ROOT, seat->first, "x", STORE_PUT_ANY);
    rt_fetch_add(&ring->ready, 1);
    while (rt_load_acquire(&ring->ready) % 2 != 0) {
        rt_yield();
    }
    u64 started_ns = rt_now_ns();
    Err err = store_put(txn, TREE_ROOT, kit_text(seat->second), kit_text("y"), STORE_PUT_ANY,
                        &verdict);
    if (err == ERR_BUSY_DEADLOCK) {
        u64 took_ns = rt_now_ns() - started_ns;
        rt_fetch_add(&ring->failed, 1);
        if (took_ns > rt_load_relaxed(&ring->slowest_ns)) {
            rt_store_relaxed(&ring->slowest_ns, took_ns);
        }
    }
    /* The other goes on when this one has let go; its snapshot may be too old by then. */
    store_txn_rollback(txn);
}

static void
cycle_main(Story *story)
{
    Store *store = open_store(story);
    u64 best_ns = U64_MAX;
    for (u32 round = 0; round < 20; round++) {
        Ring ring = {.store = store};
        RingSeat seats[2] = {{&ring, "a", "b"}, {&ring, "b", "a"}};
        RtThread *threads[2];
        for (u32 i = 0; i < 2; i++) {
            assert_int_equal(
                rt_thread_start(rt_process_default(), ring_writer, &seats[i], "ring", &threads[i]),
                OK);
        }
        for (u32 i = 0; i < 2; i++) {
            rt_thread_join(threads[i]);
        }
        assert_int_equal(rt_load_relaxed(&ring.failed), 1);
        best_ns = MIN_OF(best_ns, rt_load_relaxed(&ring.slowest_ns));
    }
    printf("  a cycle of waits is broken in %.1f us\n", (double)best_ns / 1e3);
    assert_true(best_ns < RT_NS_PER_MS);
    store_close(store);
}

static void
cycle_of_waits(void **state)
{
    (void)state;
    Story story = {.name = "cycle"};
    kit_start(&story.kit);
    play(&story, "two writers", cycle_main, true);
    kit_end(&story.kit);
}

/* ---- an old snapshot ---- */

static void
snapshot_main(Story *story)
{
    Store *store = open_store(story);
    u64 keys = MIN_OF(sizes.rows / 10, (u64)100000), updates = sizes.rows, most = 0;
    u8 key[8], value[VALUE_BYTES];
    StoreVerdict verdict;
    StoreStats stats;
    StoreTxn *old = NULL;
    for (u64 i = 0; i < keys + updates;) {
        StoreTxn *txn = kit_begin_wait(store, STORE_SNAPSHOT, STORE_SYNC_OFF, 0);
        for (u32 k = 0; k < 20 && i < keys + updates; k++, i++) {
            u64 row = i < keys ? i : (i * 2654435761u) % keys;
            assert_int_equal(store_put(txn, TREE_ROOT, row_key(row, key),
                                       row_value(row, i < keys ? 0 : i, value), STORE_PUT_ANY,
                                       &verdict),
                             OK);
        }
        kit_commit(txn);
        if (i >= keys && old == NULL) old = kit_begin(store, STORE_SNAPSHOT);
        if (i % 100000 < 20) {
            store_stats(store, &stats);
            most = MAX_OF(most, stats.versions_live);
        }
    }
    store_stats(store, &stats);
    most = MAX_OF(most, stats.versions_live);
    printf("  snapshot: %llu updates of %llu keys, at most %llu versions, %llu KiB\n",
           (unsigned long long)updates, (unsigned long long)keys, (unsigned long long)most,
           (unsigned long long)stats.version_bytes / 1024);
    /* One a key for the reader, and some that are not looked at yet. */
    assert_true(most <= keys * 2 + 50000);
    for (u64 row = 0; row < keys; row++) {
        bool found;
        Slice got;
        assert_int_equal(store_get(old, TREE_ROOT, row_key(row, key), &found, &got), OK);
        assert_true(found && slice_equal(got, row_value(row, 0, value)));
    }
    store_txn_rollback(old);
    expect_settled(store);
    store_close(store);
}

static void
old_snapshot(void **state)
{
    (void)state;
    Story story = {.name = "snapshot"};
    kit_start(&story.kit);
    play(&story, "updates beside it", snapshot_main, true);
    kit_end(&story.kit);
}

/* ---- a queue ---- */

#define QUEUE_LENGTH 1000u

/* Insert on the right, delete on the left; the first key is found at the same cost all along. */
static void
queue_main(Story *story)
{
    Store *store = open_store(story);
    u8 key[8], value[VALUE_BYTES];
    StoreVerdict verdict;
    u64 rows = sizes.rows / 2, first = 0, most = 0;
    double early = 0, late = 0;
    StoreTxn *txn = kit_begin_wait(store, STORE_SNAPSHOT, STORE_SYNC_OFF, 0);
    StoreCursor *cursor;
    assert_int_equal(store_cursor_open(txn, TREE_ROOT, &cursor), OK);
    store_txn_rollback(txn);
    for (u64 next = 0; next < rows; next++) {
        txn = kit_begin_wait(store, STORE_SNAPSHOT, STORE_SYNC_OFF, 0);
        store_cursor_rebind(cursor, txn, TREE_ROOT);
        assert_int_equal(store_put(txn, TREE_ROOT, row_key(next, key), row_value(next, 0, value),
                                   STORE_PUT_INSERT, &verdict),
                         OK);
        if (next >= QUEUE_LENGTH) {
            bool found;
            double started = seconds_now();
            assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found), OK);
            double took = seconds_now() - started;
            assert_true(found);
            assert_true(slice_equal(store_cursor_key(cursor), row_key(first, key)));
            assert_int_equal(store_delete(txn, TREE_ROOT, row_key(first, key), &verdict), OK);
            first++;
            if (next < rows / 4) early += took;
            if (next >= rows - rows / 4) late += took;
        }
        store_cursor_rebind(cursor, NULL, TREE_NONE);
        kit_commit(txn);
        most = MAX_OF(most, store_estimate_rows(store, TREE_ROOT));
    }
    store_cursor_close(cursor);
    printf("  queue: %llu rows, at most %llu slots; first key %.2f us early, %.2f us late\n",
           (unsigned long long)rows, (unsigned long long)most, early / (double)rows * 4e6,
           late / (double)rows * 4e6);
    assert_true(most <= QUEUE_LENGTH + 1000);
    if (sizes.full) assert_true(late < early * 3);
    store_close(store);
}

static void
queue(void **state)
{
    (void)state;
    Story story = {.name = "queue"};
    kit_start(&story.kit);
    play(&story, "in and out", queue_main, true);
    kit_end(&story.kit);
}

int
main(void)
{
    sizes_read();
    const struct CMUnitTest tests[] = {cmocka_unit_test(hot_row), cmocka_unit_test(cycle_of_waits),
                                       cmocka_unit_test(queue), cmocka_unit_test(old_snapshot),
                                       cmocka_unit_test(bulk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
