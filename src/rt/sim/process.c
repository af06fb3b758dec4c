/*
 * process.c -- simulated processes: start, end, crash; hosts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rt/sim/sim_impl.h"
#include "rt/time.h"

#define STOP_LOOK_NS (50 * RT_NS_PER_MS)

static void
name_set(char *to, size_t bytes, const char *name)
{
    snprintf(to, bytes, "%s", name);
}

static RtSimHost *
host_new(const char *name, SimDisk *disk)
{
    RtSimHost *host = rt__world_alloc(sizeof(*host));
    name_set(host->name, sizeof(host->name), name);
    host->disk = disk;
    host->next = rt__world->hosts;
    rt__world->hosts = host;
    return host;
}

RtSimHost *
rt_sim_host(const char *name)
{
    return host_new(name, rt__disk_new());
}

RtSimHost *
rt_sim_host_copy(const RtSimHost *host, const char *name)
{
    return host_new(name, rt__disk_copy(host->disk));
}

RtSimProcess *
rt__sim_process_new(RtSimHost *host, const char *name)
{
    World *world = rt__world;
    RtSimProcess *process = rt__world_alloc(sizeof(*process));
    process->rt = aligned_alloc(64, ALIGN_UP(sizeof(RtProcess), 64));
    if (process->rt == NULL) abort();
    memset(process->rt, 0, sizeof(RtProcess));
    name_set(process->name, sizeof(process->name), name);
    process->host = host;
    process->pid = world->next_pid++;
    u64 hash_seed = hash_u64((u64)process->pid, world->options.is_perturbed ? 77 : 7);
    rt__process_init(process->rt, &rt__sim_sys, process, hash_seed);
    rt_word_init(&process->rt->hooks, (void *)(uintptr_t)&rt__sim_hooks);
    process->next = world->processes;
    world->processes = process;
    return process;
}

RtSimProcess *
rt_sim_start(RtSimHost *host, const char *name, RtTaskFn fn, void *arg)
{
    RtSimProcess *process = rt__sim_process_new(host, name);
    rt__world_note("start", (u64)process->pid, 0);
    rt__sim_task_new(process, NULL, fn, arg, "main");
    return process;
}

void
rt__sim_process_ended(RtSimProcess *process)
{
    process->is_ended = true;
    process->crash_ns = process->crash_io = 0;
    rt__world_note("end", (u64)process->pid, 0);
    if (process->block_count != 0 || process->open_files != 0 || process->open_sockets != 0) {
        rt__world_mark_failed("process %s ended and left %llu blocks, %u files, %u sockets",
                              process->name, (unsigned long long)process->block_count,
                              process->open_files, process->open_sockets);
    }
    rt__world_wake(process);
}

/* Everything of one process goes, but its handle. */
static void
process_drop(RtSimProcess *process)
{
    World *world = rt__world;
    for (u32 i = 0; i < world->task_count;) {
        SimTask *task = world->tasks[i];
        if (task->process != process) {
            i++;
            continue;
        }
        if (task->io != NULL) rt__disk_io_torn(process, task->io);
        rt__sim_task_drop(task);
    }
    rt__net_process_gone(world->net, process);
    rt__disk_process_gone(process->host->disk, process);
    rt__sim_heap_drop(process);
    process->is_crashed = process->is_ended = true;
    process->crash_ns = process->crash_io = 0;
    rt__world_wake(process);
}

void
rt__sim_process_die(RtSimProcess *process, RtSimCrash how)
{
    World *world = rt__world;
    rt__world_note("crash", (u64)process->pid, (u64)how);
    world->report->crashes++;
    if (how == RT_SIM_KILL) {
        if (!process->is_ended) process_drop(process);
        return;
    }
    RtSimHost *host = process->host;
    for (RtSimProcess *at = world->processes; at != NULL; at = at->next) {
        if (at->host == host && !at->is_ended) process_drop(at);
    }
    rt__disk_power_cut(host->disk);
}

void
rt__sim_process_crash_self(RtSimProcess *process, RtSimCrash how)
{
    process->crash_how = how;
    rt__world->dying = process;
    rt__sim_switch_out();
    UNREACHABLE();
}

void
rt_sim_crash(RtSimProcess *process, RtSimCrash how)
{
    ASSERT(rt__world->running->process != process);
    if (!process->is_ended || how == RT_SIM_POWER_CUT) rt__sim_process_die(process, how);
}

void
rt_sim_crash_at_io(RtSimProcess *process, u64 nth, RtSimCrash how)
{
    process->crash_io = nth == 0 ? 0 : process->io_count + nth;
    process->crash_how = how;
}

void
rt_sim_crash_after(RtSimProcess *process, u64 delay_ns, RtSimCrash how)
{
    if (process->is_ended) return;
    process->crash_ns = rt__world->clock_ns + delay_ns;
    process->crash_how = how;
}

u64
rt_sim_io_count(const RtSimProcess *process)
{
    return process->io_count;
}

bool
rt_sim_has_ended(const RtSimProcess *process)
{
    return process->is_ended;
}

void
rt__sim_process_free(RtSimProcess *process)
{
    RtSimProcess **at = &rt__world->processes;
    while (*at != process)
        at = &(*at)->next;
    *at = process->next;
    rt__sim_heap_drop(process);
    free(process->rt);
    free(process);
}

bool
rt_sim_wait(RtSimProcess *process)
{
    while (!process->is_ended)
        rt__world_wait(process, RT_FOREVER, 0);
    bool by_itself = !process->is_crashed;
    rt__sim_process_free(process);
    return by_itself;
}

void
rt_sim_interrupt(RtSimProcess *process)
{
    World *world = rt__world;
    /* Cancelling switches tasks, so the list may change: by id, upwards. */
    u64 after = 0;
    for (;;) {
        SimTask *next = NULL;
        for (u32 i = 0; i < world->task_count && next == NULL; i++) {
            SimTask *task = world->tasks[i];
            if (task->process == process && task->id > after) next = task;
        }
        if (next == NULL) return;
        after = next->id;
        rt__sim_hold();
        if (next->current != next->base) rt_task_cancel(next->current);
        rt_task_cancel(next->base);
        rt__sim_release();
    }
}

static Err
sim_thread_start(RtTask *task, RtTaskFn fn, void *arg, RtEvent *ended)
{
    SimTask *made = rt__sim_task_new(task->process->world, task, fn, arg, task->name);
    made->ended = ended;
    return OK;
}

void
rt__sim_make_fiber(SimTask *task)
{
    task->is_fiber = true;
    task->base->loop_number = 1;
}

static Err
sim_spawn(RtProcess *process, u32 where, RtTaskFn fn, void *arg, const char *name)
{
    RtSimProcess *sim = process->world;
    (void)where;
    if (sim->is_closing) return ERR_CLOSED;
    SimTask *task = rt__sim_task_new(sim, NULL, fn, arg, name);
    rt__sim_make_fiber(task);
    rt__count(&process->fiber_count, 1);
    return OK;
}

static Err
sim_group_spawn(RtProcess *process, RtGroup *group, RtTaskFn fn, void *arg)
{
    RtSimProcess *sim = process->world;
    if (sim->is_closing) return ERR_CLOSED;
    rt_fetch_add(&group->running, 1);
    SimTask *task = rt__sim_task_new(sim, NULL, fn, arg, "group");
    rt__sim_make_fiber(task);
    task->group = group;
    task->base->deadline_ns = rt__self()->deadline_ns;
    rt__group_enter(task->base, group);
    rt__count(&process->fiber_count, 1);
    return OK;
}

static u32
sim_loop_count(RtProcess *process)
{
    (void)process;
    return 2;
}

static bool
sim_is_alive(i64 pid)
{
    for (const RtSimProcess *at = rt__world->processes; at != NULL; at = at->next) {
        if (at->pid == pid) return !at->is_crashed && !at->is_ended;
    }
    return false;
}

static i64
sim_pid(RtProcess *process)
{
    return ((RtSimProcess *)process->world)->pid;
}

static u32
fibers_left(const RtSimProcess *process)
{
    World *world = rt__world;
    u32 left = 0;
    for (u32 i = 0; i < world->task_count; i++)
        left += world->tasks[i]->process == process && world->tasks[i]->is_fiber;
    return left;
}

static void
sim_stop(RtProcess *process, u64 drain_ns)
{
    RtSimProcess *sim = process->world;
    u64 give_up_ns = rt_deadline_after(drain_ns);
    sim->is_closing = true;
    rt__net_wake_idle(rt__world->net, sim);
    while (fibers_left(sim) > 0) {
        if (rt__world->clock_ns >= give_up_ns) {
            for (u32 i = 0; i < rt__world->task_count; i++) {
                SimTask *task = rt__world->tasks[i];
                if (task->process != sim || !task->is_fiber) continue;
                rt__sim_hold();
                if (task->current != task->base) rt_task_cancel(task->current);
                rt_task_cancel(task->base);
                rt__sim_release();
            }
        }
        rt__world_pass(MIN_OF(STOP_LOOK_NS, MAX_OF(drain_ns, RT_NS_PER_MS)));
    }
    sim->is_closing = false;
}

const RtHooks rt__sim_hooks = {
    .thread_start = sim_thread_start,
    .spawn = sim_spawn,
    .group_spawn = sim_group_spawn,
    .when_readable = rt__net_when_readable,
    .loop_count = sim_loop_count,
    .stop = sim_stop,
    .pid = sim_pid,
    .is_alive = sim_is_alive,
};
