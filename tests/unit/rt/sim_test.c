/*
 * sim_test.c -- the simulator: a toy store with locks, timers, files and sockets survives crashes
 * and faults under many seeds; each seed replays to the same trace hash under other addresses,
 * heap fill and hash seeds; planted bugs are found.
 *
 * Method: the driver runs a server process and one client task a key.  A client raises its counter
 * by one a request; it knows the last acknowledged value and the last one tried, so after any
 * crash the counter must lie between.  The server is crashed by kill or power cut at drawn moments
 * and restarted; then faults end and everything must finish.
 *
 *   rt_sim_test                 the unit tests: some seeds, some plants
 *   rt_sim_test --seed N [-v]   one seed, twice, with its trace hash (and trace)
 *   rt_sim_test --seeds A B     all seeds from A to B - 1
 *   rt_sim_test --shrink N FILE the fewest decisions with which seed N fails, written to FILE
 *   rt_sim_test --events N FILE seed N with exactly those decisions
 *   rt_sim_test --plant P       seeds until plant P is found, at most 2,000
 *   rt_sim_test --plants        the same for all of them
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drill.h"
#include "rt/net.h"
#include "rt/sim/sim.h"
#include "rt/time.h"
#include "toy_store.h"
#include "unit/cmocka_all.h"

#define ROUNDS_MAX        5
#define REQUESTS          40
#define REQUESTS_CRASHING 400
#define HANGS_AFTER_NS    (900 * RT_NS_PER_S) /* Slow I/O takes 30 s, now and then. */

#define FAULTS                                                                                  \
    (RT_SIM_GENTLE | RT_SIM_EIO_READ | RT_SIM_EIO_WRITE | RT_SIM_SYNC_FAILS | RT_SIM_NO_SPACE | \
     RT_SIM_NET_RESET | RT_SIM_EMFILE | RT_SIM_NO_MEMORY)

typedef struct Model {
    u64 acked[TOY_KEYS], tried[TOY_KEYS];
    u32 faults;    /* Kinds of this seed. */
    RtU32 is_over; /* Clients shall end. */
    RtU32 done;    /* Clients that have. */
    RtU32 requests_left;
    RtU32 only_reads; /* In this life nobody writes. */
    RtU32 calm_life;  /* Number of the life without faults and crashes, 0: another one runs. */
} Model;

typedef struct Client {
    Model *model;
    u64 key;
} Client;

static Err
exchange(RtSocket *socket, const ToyRequest *request, ToyReply *reply)
{
    size_t total = 0, got;
    u64 deadline = rt_deadline_after(5 * RT_NS_PER_S);
    Err err = rt_socket_write(socket, request, sizeof(*request), deadline, NULL);
    while (err == OK && total < sizeof(*reply)) {
        err = rt_socket_read(socket, (u8 *)reply + total, sizeof(*reply) - total, deadline, &got,
                             NULL);
        if (err == OK && got == 0) err = ERR_CLOSED;
        total += got;
    }
    return err;
}

/* In a life without faults every request gets its answer. */
static bool
ask(Model *model, RtSocket *socket, const ToyRequest *request, ToyReply *reply)
{
    u32 calm = rt_load(&model->calm_life);
    Err err = exchange(socket, request, reply);
    if (err == ERR_TIMEOUT && calm != 0 && rt_load(&model->calm_life) == calm)
        rt_sim_fail("no answer in a calm life");
    return err == OK && reply->is_ok;
}

static void
value_check(Model *model, u64 key, u64 value, const char *when)
{
    if (value >= model->acked[key] && value <= model->tried[key]) return;
    rt_sim_fail("%s: key %llu is %llu, acknowledged %llu, tried %llu", when,
                (unsigned long long)key, (unsigned long long)value,
                (unsigned long long)model->acked[key], (unsigned long long)model->tried[key]);
}

static void
client_talk(Client *client, RtSocket *socket)
{
    Model *model = client->model;
    u64 key = client->key;
    ToyReply reply;
    ToyRequest get = {.op = TOY_GET, .key = key};
    if (!ask(model, socket, &get, &reply)) return;
    value_check(model, key, reply.value, "after connecting");
    model->acked[key] = reply.value; /* Shown, so it must not vanish. */
    while (!rt_load(&model->is_over)) {
        if (rt_load(&model->requests_left) == 0) return;
        if (rt_load(&model->only_reads)) {
            (void)!rt_sleep_ns(RT_NS_PER_MS);
            if (!ask(model, socket, &get, &reply)) return;
            value_check(model, key, reply.value, "again");
            continue;
        }
        ToyRequest put = {.op = TOY_PUT, .key = key, .value = model->tried[key] + 1};
        model->tried[key]++;
        if (!ask(model, socket, &put, &reply)) return;
        model->acked[key] = put.value;
        rt_sim_trace("acked", put.value);
        u32 left = rt_load(&model->requests_left);
        while (left > 0 && !rt_cas(&model->requests_left, &left, left - 1)) {
        }
        u64 other = rt_sim_draw(TOY_KEYS);
        ToyRequest look = {.op = TOY_GET, .key = other};
        if (!ask(model, socket, &look, &reply)) return;
    }
}

static void
client_main(void *arg)
{
    Client *client = arg;
    u64 pause_ns = RT_NS_PER_MS;
    while (!rt_load(&client->model->is_over)) {
        RtSocket *socket;
        Err err = rt_connect(TOY_ADDRESS, rt_deadline_after(RT_NS_PER_S), &socket, NULL);
        pause_ns = err == OK ? RT_NS_PER_MS : MIN_OF(pause_ns * 2, RT_NS_PER_S);
        if (err == OK) {
            client_talk(client, socket);
            rt_socket_close(socket);
        }
        (void)!rt_sleep_ns(1 + rt_sim_draw(pause_ns));
    }
    rt_fetch_add(&client->model->done, 1);
}

static void
crash_plan(RtSimProcess *server)
{
    RtSimCrash how = rt_sim_draw(2) == 0 ? RT_SIM_KILL : RT_SIM_POWER_CUT;
    if (rt_sim_draw(2) == 0)
        rt_sim_crash_at_io(server, 1 + rt_sim_draw((u64)1 << rt_sim_draw(11)), how);
    else
        rt_sim_crash_after(server, 1 + rt_sim_draw(300 * RT_NS_PER_MS), how);
}

/* One life of the server: until it crashes, gives up, or all requests are done. */
static void
server_life(RtSimHost *host, Model *model, u32 number, bool is_last)
{
    bool is_calm = !is_last && rt_sim_draw(3) == 0;
    rt_sim_faults(is_calm ? 0 : model->faults);
    RtSimProcess *server = rt_sim_start(host, "server", toy_server, NULL);
    if (!is_last && !is_calm) crash_plan(server);
    rt_store(&model->calm_life, is_calm ? number : 0);
    rt_store(&model->only_reads, !is_last && !is_calm && rt_sim_draw(4) == 0);
    rt_store(&model->requests_left, is_last ? REQUESTS : REQUESTS_CRASHING);
    u64 patience_ns = rt_deadline_after(HANGS_AFTER_NS);
    while (!rt_sim_has_ended(server) && rt_load(&model->requests_left) > 0) {
        if (rt_sleep_ns(50 * RT_NS_PER_MS) == OK && rt_now_ns() > patience_ns)
            rt_sim_fail("the server hangs");
    }
    if (is_last) {
        rt_store(&model->is_over, 1);
        while (rt_load(&model->done) < TOY_KEYS && !rt_sim_has_ended(server))
            (void)!rt_sleep_ns(50 * RT_NS_PER_MS);
        RtSocket *socket;
        ToyReply reply;
        ToyRequest stop = {.op = TOY_STOP};
        if (rt_connect(TOY_ADDRESS, rt_deadline_after(RT_NS_PER_S), &socket, NULL) == OK) {
            (void)!exchange(socket, &stop, &reply);
            rt_socket_close(socket);
        }
    }
    rt_store(&model->calm_life, 0);
    /* After a kill the disk keeps what no sync has covered: the next life may build on sand. */
    if (!is_last && !rt_sim_has_ended(server)) rt_sim_crash(server, RT_SIM_POWER_CUT);
    bool by_itself = rt_sim_wait(server);
    rt_sim_trace("life over", by_itself);
}

/* On a machine of its own, while the clients find no server; faults, but no crash. */
static void
drill(const Model *model)
{
    rt_sim_faults(model->faults);
    RtSimProcess *process = rt_sim_start(rt_sim_host("drill"), "drill", drill_main, NULL);
    if (!rt_sim_wait(process)) rt_sim_fail("the drill crashed");
}

static void
driver(void *arg)
{
    (void)arg;
    RtSimHost *host = rt_sim_host("server");
    Model model = {.faults = rt_sim_faults_on()};
    Client clients[TOY_KEYS];
    RtThread *threads[TOY_KEYS];
    for (u32 i = 0; i < TOY_KEYS; i++) {
        clients[i] = (Client){&model, i};
        if (rt_thread_start(rt_process(), client_main, &clients[i], "client", &threads[i]) != OK)
            rt_sim_fail("no client");
    }
    u64 rounds = 2 + rt_sim_draw(ROUNDS_MAX);
    for (u64 i = 0; i < rounds; i++)
        server_life(host, &model, (u32)i + 1, false);
    drill(&model);
    rt_sim_heal();
    server_life(host, &model, 0, true);
    for (u32 i = 0; i < TOY_KEYS; i++)
        rt_thread_join(threads[i]);
}

static RtSimOptions
options_of(u64 seed)
{
    return (RtSimOptions){.seed = seed, .faults = FAULTS, .switches_max = 200000};
}

static bool
seed_fails(u64 seed, bool is_quiet)
{
    RtSimOptions options = options_of(seed);
    RtSimReport report;
    rt_sim_prove(&options, driver, NULL, &report);
    if (report.is_failed && !is_quiet) fprintf(stderr, "%s\n", report.failure);
    rt_sim_events_free(&report.events);
    return report.is_failed;
}

static void
seeds_pass_and_replay(void **state)
{
    (void)state;
    for (u64 seed = 1; seed <= 40; seed++)
        assert_false(seed_fails(seed, false));
}

/* In a child, because a planted bug may also abort: the seed that found it, or 0. */
static u64
plant_find(u32 plant, u64 seeds)
{
    int pipes[2];
    u64 found = 0;
    if (pipe(pipes) != 0) return 0;
    pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) _exit(1);
        plant_set(plant, true);
        for (u64 seed = 1; seed <= seeds; seed++) {
            (void)!write(pipes[1], &seed, sizeof(seed));
            if (seed_fails(seed, true)) _exit(3);
        }
        _exit(0);
    }
    close(pipes[1]);
    int status;
    while (read(pipes[0], &found, sizeof(found)) == sizeof(found)) {
    }
    close(pipes[0]);
    waitpid(child, &status, 0);
    return status == 0 ? 0 : found;
}

/* The fast half of them; all: rt_sim_test --plants. */
static void
planted_bugs_are_found(void **state)
{
    (void)state;
#ifdef WEFT_CHECK
    const u32 plants[] = {TOY_PLANT_NO_DIR_SYNC,   TOY_PLANT_ACK_EARLY,      TOY_PLANT_LOCK_ORDER,
                          TOY_PLANT_NO_VALIDATE,   TOY_PLANT_SYNC_OVERTAKES, TOY_PLANT_SYNC_RETRY,
                          TOY_PLANT_UNINITIALISED, TOY_PLANT_ADDRESS_ORDER};
    for (u32 i = 0; i < COUNT_OF(plants); i++)
        assert_int_not_equal(plant_find(plants[i], 200), 0);
#endif
}

static int
all_plants(void)
{
    int missed = 0;
    for (u32 plant = 1; plant <= TOY_PLANT_LAST; plant++) {
        if (plant > 3 && plant < TOY_PLANT_FIRST) continue;
        u64 seed = plant_find(plant, 2000);
        printf("plant %u: %s %llu\n", plant, seed != 0 ? "found by seed" : "NOT FOUND",
               (unsigned long long)seed);
        fflush(stdout);
        missed += seed == 0;
    }
    return missed;
}

static void
run_seed(u64 seed, bool is_verbose)
{
    RtSimOptions options = options_of(seed);
    RtSimReport report;
    options.is_verbose = is_verbose;
    if (is_verbose)
        rt_sim_run(&options, driver, NULL, &report);
    else
        rt_sim_prove(&options, driver, NULL, &report);
    printf("seed %llu: trace hash %016llx, %llu switches, %llu preemptions, %llu I/O calls, "
           "%llu messages, %llu faults, %llu crashes, %llu ms\n",
           (unsigned long long)seed, (unsigned long long)report.trace_hash,
           (unsigned long long)report.switches, (unsigned long long)report.preemptions,
           (unsigned long long)report.io_calls, (unsigned long long)report.messages,
           (unsigned long long)report.faults, (unsigned long long)report.crashes,
           (unsigned long long)(report.clock_ns / RT_NS_PER_MS));
    if (report.is_failed) {
        printf("FAILED %s\n", report.failure);
        exit(1);
    }
}

/* The smallest failing list of a seed, written to `path`. */
static int
shrink_seed(u64 seed, const char *path)
{
    RtSimOptions options = options_of(seed);
    RtSimReport report;
    bool is_smaller = rt_sim_shrink(&options, driver, NULL, 500, &report);
    if (!report.is_failed) {
        printf("seed %llu passes\n", (unsigned long long)seed);
        return 0;
    }
    printf("%s\n%llu events%s, written to %s\n", report.failure,
           (unsigned long long)report.events.count, is_smaller ? "" : " (not shrunk)", path);
    bool is_written = rt_sim_events_write(&report.events, path);
    rt_sim_events_free(&report.events);
    return is_written ? 1 : 2;
}

static int
replay_events(u64 seed, const char *path)
{
    RtSimEvents events;
    RtSimReport report;
    RtSimOptions options = options_of(seed);
    if (!rt_sim_events_read(path, &events)) return 2;
    options.events = &events;
    rt_sim_run(&options, driver, NULL, &report);
    printf("%s\n", report.is_failed ? report.failure : "passes");
    rt_sim_events_free(&report.events);
    rt_sim_events_free(&events);
    return report.is_failed ? 1 : 0;
}

static void
count_unreached(void *arg, const char *name, bool is_reached)
{
    if (is_reached) return;
    printf("never reached: %s\n", name);
    (*(u32 *)arg)++;
}

/* The rare paths that none of the seeds has taken. */
static void
unreached_show(void)
{
    u32 count = 0;
    reached_report(count_unreached, &count);
    printf("%u marks never reached\n", count);
}

static int
by_hand(int argc, char **argv)
{
    u64 first = strtoull(argv[2], NULL, 10);
    if (strcmp(argv[1], "--seed") == 0) {
        run_seed(first, argc > 3);
        return 0;
    }
    if (strcmp(argv[1], "--seeds") == 0 && argc > 3) {
        u64 end = strtoull(argv[3], NULL, 10), failed = 0;
        for (u64 seed = first; seed < end; seed++)
            failed += seed_fails(seed, false);
        unreached_show();
        printf("%llu seeds, %llu failed\n", (unsigned long long)(end - first),
               (unsigned long long)failed);
        return failed == 0 ? 0 : 1;
    }
    if (strcmp(argv[1], "--shrink") == 0 && argc > 3) return shrink_seed(first, argv[3]);
    if (strcmp(argv[1], "--events") == 0 && argc > 3) return replay_events(first, argv[3]);
    if (strcmp(argv[1], "--plant") == 0) {
        u64 seed = plant_find((u32)first, 2000);
        printf("plant %llu: %s, seed %llu\n", (unsigned long long)first,
               seed != 0 ? "found" : "NOT FOUND", (unsigned long long)seed);
        return seed != 0 ? 0 : 1;
    }
    return 2;
}

int
main(int argc, char **argv)
{
    const char *seed = getenv("WEFT_SEED"); /* make sim SEED=N */
    if (seed != NULL) {
        run_seed(strtoull(seed, NULL, 10), false);
        return 0;
    }
    if (argc >= 3) return by_hand(argc, argv);
    if (argc == 2 && strcmp(argv[1], "--plants") == 0) return all_plants();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_pass_and_replay),
        cmocka_unit_test(planted_bugs_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
