/*
 * mt_test.c -- many tasks on one store, real threads; the test to run under TSan.
 *
 * Method: money moves between accounts while readers add all of it up in one snapshot, a
 * checkpointer checkpoints and a settler settles; a hot row is incremented by all; two transactions
 * lock in opposite order; the write token goes round; rows come and go while they are counted. Sums
 * and counts must be exact, also after a kill.
 */
#include "rt/lock.h"
#include "rt/task.h"
#include "rt/time.h"
#include "store_kit.h"

#define ACCOUNTS 16u
#define START    1000

typedef struct Shared {
    Store *store;
    u32 rounds;
    StoreSync sync;
    bool with_token;
    RtU32 writers_left;
    RtU64 retries, deadlocks;
    u64 seed;
    RtU32 seats;
    TreeId tree;
} Shared;

static Slice
account_key(u32 number, u8 key[8])
{
    store_be64(key, ((u64)number) ^ ((u64)1 << 63));
    return (Slice){key, 8};
}

static Err
read_number(StoreTxn *txn, u32 account, i64 *number_out)
{
    u8 key[8];
    bool found;
    Slice value;
    Err err = store_get(txn, TREE_ROOT, account_key(account, key), &found, &value);
    if (err != OK) return err;
    ASSERT(found && value.bytes == 8);
    *number_out = (i64)load_u64(value.p);
    return OK;
}

static Err
write_number(StoreTxn *txn, u32 account, i64 number)
{
    u8 key[8], value[8];
    StoreVerdict verdict;
    store_u64(value, (u64)number);
    return store_put(txn, TREE_ROOT, account_key(account, key), (Slice){value, 8}, STORE_PUT_ANY,
                     &verdict);
}

static void
fill(Store *store)
{
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    for (u32 i = 0; i < ACCOUNTS; i++) {
        assert_int_equal(write_number(txn, i, START), OK);
    }
    kit_commit(txn);
}

static i64
sum_of(StoreTxn *txn)
{
    i64 sum = 0;
    StoreCursor *cursor;
    bool found;
    Err err = store_cursor_open(txn, TREE_ROOT, &cursor);
    ASSERT(err == OK);
    err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    ASSERT(err == OK);
    StoreRun run = {.end = !found};
    u32 rows = 0;
    while (!run.end) {
        err = store_cursor_fetch(cursor, 5, 4096, false, &run);
        ASSERT(err == OK);
        for (u32 i = 0; i < run.rows; i++) {
            sum += (i64)load_u64(run.value[i].p);
            rows++;
        }
    }
    ASSERT(rows == ACCOUNTS);
    store_cursor_close(cursor);
    return sum;
}

static Err
transfer(StoreTxn *txn, Rng *rng, bool with_token)
{
    u32 from = (u32)rng_below(rng, ACCOUNTS), to = (u32)rng_below(rng, ACCOUNTS);
    i64 amount = (i64)rng_below(rng, 10), a, b;
    if (from == to) return OK;
    Err err = with_token ? store_txn_take_token(txn) : OK;
    if (err == OK) err = read_number(txn, from, &a);
    if (err == OK) err = write_number(txn, from, a - amount);
    StoreMark mark = store_txn_mark(txn);
    if (err == OK && rng_below(rng, 4) == 0) {
        err = write_number(txn, to, -1);
        store_txn_undo_to(txn, mark);
    }
    if (err == OK) err = read_number(txn, to, &b);
    if (err == OK) err = write_number(txn, to, b + amount);
    return err;
}

static void
mover(void *arg)
{
    Shared *shared = (Shared *)arg;
    Rng rng;
    rng_seed(&rng, shared->seed + rt_fetch_add(&shared->seats, 1));
    for (u32 i = 0; i < shared->rounds;) {
        StoreTxn *txn;
        StoreTxnOptions options = {
            .level = STORE_SNAPSHOT, .sync = shared->sync, .wait_ns = 20 * RT_NS_PER_S};
        Err err = store_txn_begin(shared->store, &options, &txn);
        ASSERT(err == OK);
        err = transfer(txn, &rng, shared->with_token);
        if (err == OK && rng_below(&rng, 8) != 0) {
            err = store_txn_commit(txn, NULL);
            ASSERT(err == OK);
            i++;
            continue;
        }
        if (err == ERR_BUSY_DEADLOCK) rt_fetch_add(&shared->deadlocks, 1);
        ASSERT(err == OK || err == ERR_BUSY_DEADLOCK || err == ERR_BUSY_SNAPSHOT);
        ASSERT(!shared->with_token || err == OK);
        rt_fetch_add(&shared->retries, 1);
        store_txn_rollback(txn);
    }
    rt_fetch_sub(&shared->writers_left, 1);
}

static void
reader(void *arg)
{
    Shared *shared = (Shared *)arg;
    while (rt_load_acquire(&shared->writers_left) > 0) {
        StoreTxn *txn;
        StoreTxnOptions options = {.level = STORE_READ_COMMITTED, .sync = STORE_SYNC_FULL};
        Err err = store_txn_begin(shared->store, &options, &txn);
        ASSERT(err == OK);
        for (u32 i = 0; i < 3; i++) {
            ASSERT(sum_of(txn) == ACCOUNTS * START);
            err = store_txn_wait_shown(txn);
            ASSERT(err == OK);
            err = store_txn_refresh(txn);
            ASSERT(err == OK);
        }
        err = store_txn_commit(txn, NULL);
        ASSERT(err == OK);
    }
}

static void
housekeeper(void *arg)
{
    Shared *shared = (Shared *)arg;
    while (rt_load_acquire(&shared->writers_left) > 0) {
        bool more;
        Err err = store_checkpoint(shared->store, NULL);
        ASSERT(err == OK);
        err = store_step(shared->store, 16, &more);
        ASSERT(err == OK);
        StoreStats stats;
        store_stats(shared->store, &stats);
        u64 findings;
        err = store_check(shared->store, NULL, NULL, &findings);
        ASSERT(err == OK && findings == 0);
        err = rt_sleep_ns(RT_NS_PER_MS);
        ASSERT(err == OK);
    }
}

static void
run_threads(Shared *shared, u32 movers, bool others)
{
    RtThread *threads[16];
    u32 count = 0;
    rt_word_init(&shared->writers_left, movers);
    for (u32 i = 0; i < movers; i++) {
        assert_int_equal(
            rt_thread_start(rt_process_default(), mover, shared, "mover", &threads[count++]), OK);
    }
    if (others) {
        assert_int_equal(
            rt_thread_start(rt_process_default(), reader, shared, "reader", &threads[count++]), OK);
        assert_int_equal(
            rt_thread_start(rt_process_default(), housekeeper, shared, "keeper", &threads[count++]),
            OK);
    }
    for (u32 i = 0; i < count; i++) {
        rt_thread_join(threads[i]);
    }
}

static void
expect_sum(Store *store)
{
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    assert_int_equal(sum_of(txn), ACCOUNTS * START);
    store_txn_rollback(txn);
    kit_check(store);
}

static void
money_is_kept(void **state)
{
    (void)state;
    const char *wanted = getenv("STORE_ROUNDS");
    u32 rounds = wanted == NULL ? 400 : (u32)strtoul(wanted, NULL, 10);
    for (u32 round = 0; round < 4; round++) {
        Kit kit;
        kit_start(&kit);
        Shared shared = {.rounds = rounds, .seed = round * 100, .with_token = round == 3};
        shared.sync = round == 1 ? STORE_SYNC_FULL : STORE_SYNC_NORMAL;
        shared.store = round == 0 ? kit_open_memory() : kit_open(&kit);
        fill(shared.store);
        run_threads(&shared, 5, true);
        expect_sum(shared.store);
        if (round > 0) {
            Kit copy;
            kit_copy(&kit, &copy);
            Store *store = kit_open(&copy);
            expect_sum(store);
            store_close(store);
            kit_end(&copy);
        }
        StoreStats stats;
        store_stats(shared.store, &stats);
        assert_int_equal(stats.transactions_open, 0);
        store_close(shared.store);
        kit_end(&kit);
    }
}

/* ---- a hot row ---- */

static void
incrementer(void *arg)
{
    Shared *shared = (Shared *)arg;
    for (u32 i = 0; i < shared->rounds; i++) {
        StoreTxn *txn;
        StoreTxnOptions options = {
            .level = STORE_SNAPSHOT, .sync = shared->sync, .wait_ns = 20 * RT_NS_PER_S};
        Err err = store_txn_begin(shared->store, &options, &txn);
        ASSERT(err == OK);
        for (;;) { /* As the layer above runs a statement again. */
            i64 number;
            err = read_number(txn, 0, &number);
            ASSERT(err == OK);
            err = write_number(txn, 0, number + 1);
            if (err == OK) break;
            ASSERT(err == ERR_BUSY_SNAPSHOT);
            store_txn_undo_to(txn, 0);
            err = store_txn_refresh(txn);
            ASSERT(err == OK);
            rt_fetch_add(&shared->retries, 1);
        }
        err = store_txn_commit(txn, NULL);
        ASSERT(err == OK);
    }
}

static void
hot_row(void **state)
{
    (void)state;
    Kit kit;
    kit_start(&kit);
    Shared shared = {.rounds = 60, .sync = STORE_SYNC_FULL};
    shared.store = kit_open(&kit);
    fill(shared.store);
    RtThread *threads[8];
    for (u32 i = 0; i < 8; i++) {
        assert_int_equal(
            rt_thread_start(rt_process_default(), incrementer, &shared, "hot", &threads[i]), OK);
    }
    for (u32 i = 0; i < 8; i++) {
        rt_thread_join(threads[i]);
    }
    StoreTxn *txn = kit_begin(shared.store, STORE_SNAPSHOT);
    i64 number;
    assert_int_equal(read_number(txn, 0, &number), OK);
    assert_int_equal(number, START + 8 * 60);
    store_txn_rollback(txn);
    StoreStats stats;
    store_stats(shared.store, &stats);
    assert_true(stats.log_syncs < stats.group_commits); /* Some commits shared a sync. */
    store_close(shared.store);
    kit_end(&kit);
}

/* ---- rows come, go and are counted ---- */

#define ROOM 64u /* Different keys. */

/* Insert and delete some keys, take some of it back, and commit three times of four. */
static void
comer_and_goer(void *arg)
{
    Shared *shared = (Shared *)arg;
    Rng rng;
    rng_seed(&rng, shared->seed + rt_fetch_add(&shared->seats, 1));
    for (u32 i = 0; i < shared->rounds; i++) {
        StoreTxn *txn;
        StoreTxnOptions options = {
            .level = STORE_SNAPSHOT, .sync = STORE_SYNC_NORMAL, .wait_ns = 20 * RT_NS_PER_S};
        Err err = store_txn_begin(shared->store, &options, &txn);
        ASSERT(err == OK);
        for (u32 k = 0; err == OK && k < 4; k++) {
            u8 key[8];
            Slice name = account_key((u32)rng_below(&rng, ROOM), key);
            StoreVerdict verdict;
            StoreMark mark = store_txn_mark(txn);
            err = rng_below(&rng, 2) == 0
                      ? store_put(txn, shared->tree, name, name, STORE_PUT_ANY, &verdict)
                      : store_delete(txn, shared->tree, name, &verdict);
            if (err == OK && rng_below(&rng, 4) == 0) store_txn_undo_to(txn, mark);
        }
        ASSERT(err == OK || err == ERR_BUSY_DEADLOCK || err == ERR_BUSY_SNAPSHOT);
        if (err == OK && rng_below(&rng, 4) != 0) {
            err = store_txn_commit(txn, NULL);
            ASSERT(err == OK);
        } else {
            store_txn_rollback(txn);
        }
    }
    rt_fetch_sub(&shared->writers_left, 1);
}

static u64
rows_by_cursor(StoreTxn *txn, TreeId tree)
{
    StoreCursor *cursor;
    bool found;
    u64 rows = 0;
    Err err = store_cursor_open(txn, tree, &cursor);
    ASSERT(err == OK);
    err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    while (found) {
        ASSERT(err == OK);
        rows++;
        err = store_cursor_next(cursor, &found);
    }
    store_cursor_close(cursor);
    return rows;
}

static void
expect_counted(Store *store, TreeId tree, u32 looks)
{
    StoreTxn *txn = kit_begin(store, STORE_SNAPSHOT);
    for (u32 i = 0; i < looks; i++) {
        u64 rows;
        Err err = store_count(txn, tree, &rows);
        ASSERT(err == OK && rows == rows_by_cursor(txn, tree));
    }
    store_txn_rollback(txn);
}

/* ---- turns ---- */

#define TURN_LOCK  (((u64)1 << 63) + 7)
#define TURN_TASKS 5u

static void
turn_taker(void *arg)
{
    Shared *shared = (Shared *)arg;
    StoreTxnOptions options = {.level = STORE_SNAPSHOT, .wait_ns = 600 * RT_NS_PER_S};
    StoreTxn *txn;
    bool waited;
    Err err = store_txn_begin(shared->store, &options, &txn);
    ASSERT(err == OK);
    err = store_txn_take_turn(txn, TURN_LOCK, &waited);
    ASSERT(err == OK && waited);
    bool found;
    Slice value;
    err = store_get(txn, TREE_ROOT, kit_text("turns"), &found, &value);
    ASSERT(err == OK && found && value.bytes == 1);
    u8 next = (u8)(value.p[0] + 1); /* No conflict: the snapshot came after the turn. */
    StoreVerdict verdict;
    err = store_put(txn, TREE_ROOT, kit_text("turns"), SLICE(&next, 1), STORE_PUT_ANY, &verdict);
    ASSERT(err == OK);
    err = store_txn_commit(txn, NULL);
    ASSERT(err == OK);
}

/* Who waits for its turn holds no snapshot, is woken once, and meets what the others have left. */
static void
turns_wake_one(void **state)
{
    (void)state;
    Shared shared = {.store = kit_open_memory()};
    StoreTxn *first = kit_begin(shared.store, STORE_SNAPSHOT);
    kit_put(first, TREE_ROOT, "turns", "0", STORE_PUT_ANY);
    kit_commit(first);
    first = kit_begin(shared.store, STORE_SNAPSHOT);
    bool waited;
    assert_int_equal(store_txn_take_turn(first, TURN_LOCK, &waited), OK);
    assert_false(waited);
    RtThread *threads[TURN_TASKS];
    for (u32 i = 0; i < TURN_TASKS; i++) {
        assert_int_equal(
            rt_thread_start(rt_process_default(), turn_taker, &shared, "turn", &threads[i]), OK);
    }
    StoreStats stats = {0};
    while (stats.row_waits < TURN_TASKS) {
        assert_int_equal(rt_sleep_ns(RT_NS_PER_MS), OK);
        store_stats(shared.store, &stats);
    }
    assert_int_equal(stats.snapshots_open, 1);
    store_txn_rollback(first);
    for (u32 i = 0; i < TURN_TASKS; i++)
        rt_thread_join(threads[i]);
    store_stats(shared.store, &stats);
    assert_int_equal(stats.row_waits, TURN_TASKS);
    assert_int_equal(stats.conflicts, 0);
    first = kit_begin(shared.store, STORE_SNAPSHOT);
    kit_expect(first, TREE_ROOT, "turns", "5");
    store_txn_rollback(first);
    store_close(shared.store);
}

static void
counts_are_exact(void **state)
{
    (void)state;
    Kit kit;
    kit_start(&kit);
    Shared shared = {.rounds = 300, .seed = 77};
    shared.store = kit_open(&kit);
    StoreTxn *txn = kit_begin(shared.store, STORE_SNAPSHOT);
    assert_int_equal(store_tree_create(txn, STORE_TREE_INT, &shared.tree), OK);
    kit_commit(txn);
    RtThread *threads[3];
    rt_word_init(&shared.writers_left, 3);
    for (u32 i = 0; i < 3; i++) {
        assert_int_equal(
            rt_thread_start(rt_process_default(), comer_and_goer, &shared, "rows", &threads[i]),
            OK);
    }
    while (rt_load_acquire(&shared.writers_left) > 0) {
        expect_counted(shared.store, shared.tree, 3);
    }
    for (u32 i = 0; i < 3; i++) {
        rt_thread_join(threads[i]);
    }
    expect_counted(shared.store, shared.tree, 1);
    Kit copy;
    kit_copy(&kit, &copy);
    Store *store = kit_open(&copy);
    expect_counted(store, shared.tree, 2); /* By the leaves, then by what was learned. */
    store_close(store);
    kit_end(&copy);
    store_close(shared.store);
    kit_end(&kit);
}

/* ---- a deadlock ---- */

typedef struct Pair {
    Store *store;
    u32 first, second;
    RtEvent *mine, *other;
    Err err;
    u64 took_ns;
} Pair;

static void
locker(void *arg)
{
    Pair *pair = (Pair *)arg;
    StoreTxn *txn;
    StoreTxnOptions options = {.level = STORE_SNAPSHOT, .wait_ns = 20 * RT_NS_PER_S};
    Err err = store_txn_begin(pair->store, &options, &txn);
    ASSERT(err == OK);
    err = write_number(txn, pair->first, 1);
    ASSERT(err == OK);
    rt_event_set(pair->mine);
    rt_event_wait(pair->other);
    u64 started_ns = rt_now_ns();
    pair->err = write_number(txn, pair->second, 1);
    pair->took_ns = rt_now_ns() - started_ns;
    store_txn_rollback(txn);
}

static void
a_cycle_fails_exactly_one(void **state)
{
    (void)state;
    Store *store = kit_open_memory();
    fill(store);
    for (u32 round = 0; round < 50; round++) {
        RtEvent events[2] = {0};
        Pair pairs[2];
        RtThread *threads[2];
        for (u32 i = 0; i < 2; i++) {
            pairs[i] = (Pair){.store = store,
                              .first = i,
                              .second = 1 - i,
                              .mine = &events[i],
                              .other = &events[1 - i]};
            assert_int_equal(
                rt_thread_start(rt_process_default(), locker, &pairs[i], "locker", &threads[i]),
                OK);
        }
        rt_thread_join(threads[0]);
        rt_thread_join(threads[1]);
        bool failed[2] = {pairs[0].err == ERR_BUSY_DEADLOCK, pairs[1].err == ERR_BUSY_DEADLOCK};
        assert_true(failed[0] != failed[1]);
        assert_true(pairs[0].err == OK || pairs[1].err == OK);
        assert_true(pairs[0].took_ns < 5 * RT_NS_PER_S && pairs[1].took_ns < 5 * RT_NS_PER_S);
    }
    store_close(store);
}

/* ---- waits end ---- */

typedef struct Waiter {
    Store *store;
    StoreTxn *txn;
    Err err;
} Waiter;

static void
waiter_main(void *arg)
{
    Waiter *waiter = (Waiter *)arg;
    waiter->err = write_number(waiter->txn, 0, 5);
}

static void
waits_end_by_time_and_interrupt(void **state)
{
    (void)state;
    Store *store = kit_open_memory();
    fill(store);
    StoreTxn *holder = kit_begin(store, STORE_SNAPSHOT);
    assert_int_equal(write_number(holder, 0, 1), OK);
    StoreTxn *timed = kit_begin_wait(store, STORE_SNAPSHOT, STORE_SYNC_OFF, 30 * RT_NS_PER_MS);
    assert_int_equal(write_number(timed, 0, 2), ERR_BUSY);
    store_txn_rollback(timed);
    Waiter waiter = {.store = store};
    waiter.txn = kit_begin_wait(store, STORE_SNAPSHOT, STORE_SYNC_OFF, 20 * RT_NS_PER_S);
    RtThread *thread;
    assert_int_equal(rt_thread_start(rt_process_default(), waiter_main, &waiter, "waiter", &thread),
                     OK);
    store_txn_interrupt(waiter.txn);
    rt_thread_join(thread);
    assert_int_equal(waiter.err, ERR_INTERRUPT);
    store_txn_clear_interrupt(waiter.txn);
    store_txn_rollback(holder);
    assert_int_equal(write_number(waiter.txn, 0, 5), OK);
    kit_commit(waiter.txn);
    store_close(store);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(money_is_kept),
        cmocka_unit_test(hot_row),
        cmocka_unit_test(turns_wake_one),
        cmocka_unit_test(counts_are_exact),
        cmocka_unit_test(a_cycle_fails_exactly_one),
        cmocka_unit_test(waits_end_by_time_and_interrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
