/*
 * world.c -- one run: options drawn from the seed, the trace, faults, failures, the clock.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rt/sim/sim_impl.h"
#include "rt/time.h"

#ifdef WEFT_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

World *rt__world;

#define SWITCHES_MAX_DEFAULT ((u64)20 * 1000 * 1000)
#define WALL_START_NS        ((i64)1700000000 * 1000000000)

void *
rt__world_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (memory == NULL) abort();
    return memory;
}

/* The scheduler has a sequence of its own; all other draws count by task, so that they do not
   depend on the order in which tasks run. */
u64
rt__world_draw(SimPurpose purpose, u64 below)
{
    World *world = rt__world;
    SimTask *task = world->running;
    if (purpose == SIM_SCHED) return rng_below(&world->sched, below);
    u64 *counts = task != NULL ? task->draws : world->draws;
    u64 key = hash_u64((u64)purpose, task != NULL ? task->key : 0);
    return hash_u64(counts[purpose]++, key ^ world->options.seed) % below;
}

bool
rt_sim_is_running(void)
{
    return rt__world != NULL;
}

u64
rt_sim_draw(u64 below)
{
    return rt__world_draw(SIM_WORK, below);
}

void
rt__world_note(const char *what, u64 a, u64 b)
{
    World *world = rt__world;
    u64 mixed = hash_bytes(what, strlen(what), world->hash);
    world->hash = hash_u64(mixed ^ a, hash_u64(b, mixed));
    if (LIKELY(!world->options.is_verbose)) return;
    SimTask *task = world->running;
    fprintf(stderr, "%12llu %-10s %-12s %s %llu %llu\n", (unsigned long long)world->clock_ns,
            task != NULL ? task->process->name : "-",
            task != NULL && task->base->name != NULL ? task->base->name : "-", what,
            (unsigned long long)a, (unsigned long long)b);
}

void
rt_sim_trace(const char *what, u64 value)
{
    rt__world_note(what, value, 0);
}

static void
mark_failed(const char *format, va_list args)
{
    World *world = rt__world;
    RtSimReport *report = world->report;
    world->is_over = true;
    if (report->is_failed) return;
    report->is_failed = true;
    int used = snprintf(report->failure, sizeof(report->failure),
                        "seed %llu: ", (unsigned long long)world->options.seed);
    vsnprintf(report->failure + used, sizeof(report->failure) - (size_t)used, format, args);
}

void
rt__world_mark_failed(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mark_failed(format, args);
    va_end(args);
}

NORETURN void
rt_sim_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mark_failed(format, args);
    va_end(args);
    rt__sim_switch_out();
    UNREACHABLE();
}

bool
rt__world_fault(RtSimHost *host, u32 kind)
{
    World *world = rt__world;
    if (!(world->faults_on & kind) || world->is_healed) return false;
    if (world->running == NULL || world->running->process == world->operator_process) return false;
    SimTask *task = world->running;
    u64 number = ++task->sites;
    if (world->options.events != NULL) {
        if (rt__events_find(RT_SIM_EVENT_FAULT, task->key, number) == NULL) return false;
    } else {
        u64 draw = hash_u64(number, world->options.seed ^ task->key ^ ((u64)kind << 32));
        if (draw % 10000 >= world->fault_rate) return false;
        rt__events_record(RT_SIM_EVENT_FAULT, task->key, number, kind);
    }
    world->report->faults++;
    if (host != NULL) host->fault_counts[__builtin_ctz(kind)]++;
    rt__world_note("fault", kind, number);
    return true;
}

#ifdef WEFT_CHECK
static bool
world_rare(const char *name)
{
    World *world = rt__world;
    SimTask *task = world->running;
    if (world->is_healed || task == NULL || task->process == world->operator_process) return false;
    u64 key = hash_bytes(name, strlen(name), world->options.seed);
    u64 number = ++task->sites;
    if (world->options.events != NULL) {
        if (rt__events_find(RT_SIM_EVENT_FAULT, task->key, number) == NULL) return false;
    } else {
        bool is_on = key % 4 == 0;
        if (!is_on || hash_u64(number, key ^ task->key) % 8 != 0) return false;
        rt__events_record(RT_SIM_EVENT_FAULT, task->key, number, RT_SIM_RARE);
    }
    rt__world_note(name, number, 0);
    return true;
}
#endif

u64
rt_sim_fault_count(const RtSimHost *host, u32 kinds)
{
    u64 sum = 0;
    for (u32 i = 0; i < 32; i++) {
        if (kinds & (1u << i)) sum += host->fault_counts[i];
    }
    return sum;
}

void
rt_sim_heal(void)
{
    rt__world->is_healed = true;
    rt__world_note("heal", 0, 0);
}

u32
rt_sim_faults_on(void)
{
    return rt__world->faults_on;
}

void
rt_sim_faults(u32 faults)
{
    rt__world->faults_on = faults;
}

/* The swarm: each seed has its own kinds, rate and scheduler. */
static void
world_configure(World *world)
{
    Rng config;
    rng_seed(&config, world->options.seed ^ 0x5eed5eed5eed5eed);
    rng_seed(&world->sched, hash_u64(1, world->options.seed));
    for (u32 bit = 0; bit < 32; bit++) {
        bool is_on = rng_below(&config, 2) == 0;
        if (is_on) world->faults_on |= world->options.faults & (1u << bit);
    }
    const u32 rates[] = {3, 10, 30, 100, 300};
    world->fault_rate = rates[rng_below(&config, COUNT_OF(rates))];
    if (world->options.fault_per_10000 != 0) world->fault_rate = world->options.fault_per_10000;
    world->scheduler = (RtSimScheduler)(1 + rng_below(&config, 4));
    if (world->options.scheduler != RT_SIM_ANY_SCHEDULER)
        world->scheduler = world->options.scheduler;
    for (u32 i = 0; i < COUNT_OF(world->change_points); i++)
        world->change_points[i] = rng_below(&config, (u64)1 << (8 + rng_below(&config, 10)));
    if (world->options.switches_max == 0) world->options.switches_max = SWITCHES_MAX_DEFAULT;
    /* From a slow processor on a fast network, where requests meet, to the opposite. */
    const u64 costs_ns[] = {5, 50, 500}, latencies_ns[] = {1000, 5000, 50000, 500000};
    const u64 percents[] = {5, 100, 1000};
    world->yield_cost_ns = costs_ns[rng_below(&config, COUNT_OF(costs_ns))];
    world->net_latency_ns = latencies_ns[rng_below(&config, COUNT_OF(latencies_ns))];
    world->disk_percent = percents[rng_below(&config, COUNT_OF(percents))];
    world->stretch_max = RT_STRETCH_MAX_NS / world->yield_cost_ns;
    world->wall_offset_ns = WALL_START_NS + (i64)rng_below(&config, 1000000000);
    world->clock_ns = 1 * RT_NS_PER_S; /* Zero means "no deadline" in places. */
    world->hash = world->options.seed;
    world->next_pid = 100;
}

/* Tell which seed it was when something aborts inside. */
static void
seed_show(void)
{
    World *world = rt__world;
    if (world == NULL) return;
    char text[256];
    const SimTask *task = world->running;
    int bytes = snprintf(
        text, sizeof(text), "simulator: failed in task %s of %s at %llu ns; make sim SEED=%llu\n",
        task != NULL && task->base->name != NULL ? task->base->name : "-",
        task != NULL ? task->process->name : "-", (unsigned long long)world->clock_ns,
        (unsigned long long)world->options.seed);
    ssize_t done = write(STDERR_FILENO, text, (size_t)bytes);
    (void)done;
}

static void
on_abort(int number)
{
    seed_show();
    signal(number, SIG_DFL);
}

static void
world_free(World *world)
{
    while (world->task_count > 0)
        rt__sim_task_drop(world->tasks[world->task_count - 1]);
    rt__net_free(world->net);
    while (world->processes != NULL)
        rt__sim_process_free(world->processes);
    while (world->hosts != NULL) {
        RtSimHost *host = world->hosts;
        world->hosts = host->next;
        rt__disk_free(host->disk);
        free(host);
    }
    free(world->index);
    free(world->tasks);
    free(world->free_stacks);
    mem_set_source(NULL);
    rt__stacks_free(&world->stacks);
    free(world);
}

static void
world_switch(bool is_on)
{
#ifdef WEFT_CHECK
    rt__sim_hook = rt__sim_hook_yield;
    rt__sim_rare = world_rare;
    rt__sim_held = 0;
    rt__sim_running = is_on;
#endif
#ifdef WEFT_ASAN
    __sanitizer_set_death_callback(is_on ? seed_show : NULL);
#endif
    signal(SIGABRT, is_on ? on_abort : SIG_DFL);
}

void
rt_sim_run(const RtSimOptions *options, RtTaskFn driver, void *arg, RtSimReport *report_out)
{
    ASSERT(rt__world == NULL);
    World *world = rt__world_alloc(sizeof(*world));
    RtTask *outer = rt__self();
    *report_out = (RtSimReport){0};
    world->options = *options;
    world->report = report_out;
    world_configure(world);
    rt__world = world;
    if (options->events != NULL) rt__events_index(world);
    world->net = rt__net_new();
    rt__context_of_thread(&world->context);
    world->operator_process = rt__sim_process_new(rt_sim_host("operator"), "operator");
    rt__sim_task_new(world->operator_process, NULL, driver, arg, "driver");
    mem_set_source(&rt__sim_heap);
    world_switch(true);
    rt__sim_turns();
    world_switch(false);
    report_out->trace_hash = world->hash;
    report_out->clock_ns = world->clock_ns;
    if (report_out->is_failed)
        report_out->events = world->recorded;
    else
        free(world->recorded.list);
    world->running = NULL;
    rt__tls.current = outer;
    world_free(world);
    rt__world = NULL;
}

void
rt_sim_prove(const RtSimOptions *options, RtTaskFn driver, void *arg, RtSimReport *report_out)
{
    RtSimOptions perturbed = *options;
    RtSimReport second;
    rt_sim_run(options, driver, arg, report_out);
    if (report_out->is_failed) return;
    perturbed.is_perturbed = true;
    rt_sim_run(&perturbed, driver, arg, &second);
    rt_sim_events_free(&second.events);
    if (second.trace_hash == report_out->trace_hash) return;
    report_out->is_failed = true;
    snprintf(report_out->failure, sizeof(report_out->failure),
             "seed %llu: replay differs: trace hash %016llx, perturbed %016llx (%.500s)",
             (unsigned long long)options->seed, (unsigned long long)report_out->trace_hash,
             (unsigned long long)second.trace_hash, second.failure);
}

static void
sim_io(RtProcess *process, RtIo *io)
{
    RtSimProcess *sim = process->world;
    SimTask *task = rt__world->running;
    if (io->injected != 0) {
        io->result = -io->injected;
        return;
    }
    rt__world->report->io_calls++;
    sim->io_count++;
    if (sim->crash_io != 0 && sim->io_count >= sim->crash_io)
        rt__sim_process_crash_self(sim, sim->crash_how);
    task->io = io;
    if (io->op < RT_IO_RESOLVE)
        rt__disk_io(sim, io);
    else
        rt__net_io(sim, io);
    task->io = NULL;
    rt__world_note("io", (u64)io->op, (u64)io->result);
}

static u64
sim_now_ns(RtProcess *process)
{
    (void)process;
    return rt__world->clock_ns;
}

static i64
sim_wall_ns(RtProcess *process)
{
    (void)process;
    return rt__world->wall_offset_ns + (i64)rt__world->clock_ns;
}

static void
sim_random(RtProcess *process, void *bytes, size_t count)
{
    u8 *at = bytes;
    (void)process;
    for (size_t i = 0; i < count; i++)
        at[i] = (u8)rt__world_draw(SIM_WORK, 256);
}

const RtSys rt__sim_sys = {
    .name = "simulator",
    .io = sim_io,
    .now_ns = sim_now_ns,
    .wall_ns = sim_wall_ns,
    .random = sim_random,
};
