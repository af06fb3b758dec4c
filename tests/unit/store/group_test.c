/*
 * group_test.c -- writers that commit one after the other share their syncs.
 *
 * Method: in the simulator, so that nothing depends on a clock, several writers commit durable
 * transactions as fast as they can.  A leader that went at once would leave out those whom the sync
 * before has just served, and two groups would take turns, at two syncs a round of all writers.
 */
#include "rt/sim/sim.h"
#include "rt/task.h"
#include "rt/time.h"
#include "store/store.h"
#include "unit/cmocka_all.h"

#define WRITERS_MAX 12u
#define ROUNDS      40u

typedef struct World {
    Store *store;
    u32 writers;
    u64 syncs, commits;
} World;

typedef struct Seat {
    World *world;
    u32 number;
} Seat;

static void
must(Err err)
{
    if (err != OK) rt_sim_fail("%s", err_name(err));
}

static void
commit_one(Store *store, u32 number, u32 round)
{
    static const StoreTxnOptions options = {.sync = STORE_SYNC_FULL};
    StoreTxn *txn;
    StoreVerdict verdict;
    u8 key[8], value[4];
    store_be32(key, number);
    store_be32(key + 4, round);
    store_be32(value, round);
    must(store_txn_begin(store, &options, &txn));
    must(store_put(txn, TREE_ROOT, SLICE(key, 8), SLICE(value, 4), STORE_PUT_ANY, &verdict));
    must(store_txn_commit(txn, NULL));
}

static void
writer_main(void *arg)
{
    const Seat *seat = (const Seat *)arg;
    /* The first goes on alone when the others have ended: nobody comes whom it could wait for. */
    u32 rounds = seat->number == 0 ? 2 * ROUNDS : ROUNDS;
    for (u32 i = 0; i < rounds; i++)
        commit_one(seat->world->store, seat->number, i);
}

static void
life_main(void *arg)
{
    World *world = (World *)arg;
    StoreOptions options = {.create = true};
    must(store_open(rt_process(), "/t.db", &options, &world->store, NULL));
    commit_one(world->store, WRITERS_MAX, 0); /* The start of the log. */
    StoreStats before, after;
    store_stats(world->store, &before);
    Seat seats[WRITERS_MAX];
    RtThread *threads[WRITERS_MAX] = {NULL};
    for (u32 i = 0; i < world->writers; i++) {
        seats[i] = (Seat){world, i};
        must(rt_thread_start(rt_process(), writer_main, &seats[i], "writer", &threads[i]));
    }
    for (u32 i = 0; i < world->writers; i++)
        rt_thread_join(threads[i]);
    store_stats(world->store, &after);
    world->syncs = after.log_syncs - before.log_syncs;
    world->commits = after.commits - before.commits;
    store_close(world->store);
    rt_process_close(rt_process());
}

static void
driver(void *arg)
{
    World *world = (World *)arg;
    RtSimHost *host = rt_sim_host("disk");
    if (!rt_sim_wait(rt_sim_start(host, "life", life_main, world))) rt_sim_fail("crashed");
}

static void
run(World *world, u64 seed)
{
    RtSimOptions options = {.seed = seed, .scheduler = RT_SIM_RANDOM_WALK, .switches_max = 4000000};
    RtSimReport report;
    rt_sim_run(&options, driver, world, &report);
    if (report.is_failed) print_error("seed %llu: %s\n", (unsigned long long)seed, report.failure);
    assert_false(report.is_failed);
    rt_sim_events_free(&report.events);
}

#ifdef WEFT_CHECK
/* Syncs of all seeds together. */
static u64
syncs_of_many(void)
{
    u64 syncs = 0;
    for (u64 seed = 1; seed <= 6; seed++) {
        World world = {.writers = 4 + (u32)seed};
        run(&world, seed);
        assert_int_equal(world.commits, (world.writers + 1) * ROUNDS);
        syncs += world.syncs;
    }
    return syncs;
}

static void
many_writers_share_their_syncs(void **state)
{
    (void)state;
    u64 gathered = syncs_of_many();
    plant_set(142, true); /* The leader goes at once. */
    u64 at_once = syncs_of_many();
    plant_set(142, false);
    assert_true(gathered * 100 <= at_once * 95);
}
#endif

static void
a_single_writer_syncs_once_a_commit(void **state)
{
    (void)state;
    World world = {.writers = 1};
    run(&world, 1);
    assert_int_equal(world.commits, 2 * ROUNDS);
    assert_int_equal(world.syncs, 2 * ROUNDS);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef WEFT_CHECK
        cmocka_unit_test(many_writers_share_their_syncs),
#endif
        cmocka_unit_test(a_single_writer_syncs_once_a_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
