/*
 * process.c -- the process object, its roots, and what happens across fork().
 *
 * The default process is the only engine state that is static; everything else hangs on it.  It is
 * made on first use: until then no handle, thread or handler exists.
 */
#include "rt/process.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "rt/process_impl.h"
#include "rt/random.h"

/* Nothing is acquired under it but by trying. */
#define EVICTORS_RANK  ((u16)0xfff0)
#define RECLAIM_ROUNDS 1000u

static RtProcess default_process;
static _Atomic u32 default_state; /* 0 new, 1 being made, 2 ready */

/* Counts forks on the way to this process; only the atfork handler writes it. */
static _Atomic u32 fork_generation;

static void
after_fork_in_child(void)
{
    atomic_fetch_add_explicit(&fork_generation, 1, memory_order_relaxed);
}

void
rt__process_init(RtProcess *process, const RtSys *sys, void *world, u64 hash_seed)
{
    process->sys = sys;
    process->world = world;
    process->hash_seed = hash_seed;
    process->fork_generation = atomic_load_explicit(&fork_generation, memory_order_relaxed);
    process->account.name = "process";
    process->account.reclaim = rt_process_reclaim;
    static const char *const parts[RT_PART_COUNT_] = {"stacks", "sockets", "libraries"};
    for (u32 i = 0; i < RT_PART_COUNT_; i++)
        process->parts[i] = (MemAccount){.parent = &process->account, .name = parts[i]};
    rt_latch_init(&process->evictors_latch, EVICTORS_RANK);
}

static NOINLINE void
default_process_make(void)
{
    u32 seen = 0;
    if (atomic_compare_exchange_strong(&default_state, &seen, 1)) {
        u64 seed;
        rt__linux_sys.random(&default_process, &seed, sizeof(seed));
        rt__process_init(&default_process, &rt__linux_sys, NULL, seed);
        pthread_atfork(NULL, NULL, after_fork_in_child);
        atomic_store_explicit(&default_state, 2, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&default_state, memory_order_acquire) != 2)
        sched_yield();
}

RtProcess *
rt_process_default(void)
{
    if (UNLIKELY(atomic_load_explicit(&default_state, memory_order_acquire) != 2))
        default_process_make();
    return &default_process;
}

RtProcess *
rt_process(void)
{
    return rt__self()->process;
}

bool
rt_process_is_foreign(const RtProcess *process)
{
    return process->fork_generation != atomic_load_explicit(&fork_generation, memory_order_relaxed);
}

typedef struct RootMaking {
    RtProcess *process;
    RtRoot *root;
    RtRootCreate create;
    RtRootDestroy destroy;
} RootMaking;

static Err
root_make(void *arg)
{
    RootMaking *making = arg;
    void *object = NULL;
    Err err = making->create(making->process, &object);
    if (err != OK) return err;
    making->root->destroy = making->destroy;
    rt_store_release(&making->root->object, object);
    return OK;
}

Err
rt_process_root(RtSlot slot, RtRootCreate create, RtRootDestroy destroy, void **root_out)
{
    RtProcess *process = rt__self()->process;
    RtRoot *root = &process->roots[slot];
    *root_out = NULL;
    if (rt_process_is_foreign(process)) return ERR_FOREIGN;
    RootMaking making = {process, root, create, destroy};
    Err err = rt_once(&root->once, root_make, &making);
    if (err == OK) *root_out = rt_load_acquire(&root->object);
    return err;
}

void *
rt_process_root_peek(RtSlot slot)
{
    return rt_load_acquire(&rt__self()->process->roots[slot].object);
}

void
rt_process_close(RtProcess *process)
{
    if (rt_process_is_foreign(process)) return; /* Leak rather than touch. */
    for (u32 slot = RT_SLOT_COUNT_; slot-- > 0;) {
        RtRoot *root = &process->roots[slot];
        void *object = rt_load_acquire(&root->object);
        if (object != NULL && root->destroy != NULL) root->destroy(object);
        rt_store(&root->object, NULL);
        rt_store(&root->once.word, 0);
    }
    rt_loops_stop(0);
}

MemAccount *
rt_process_account(RtProcess *process)
{
    return &process->account;
}

MemAccount *
rt_process_part(RtProcess *process, RtPart part)
{
    return &process->parts[part];
}

void
rt_process_evictor_add(RtProcess *process, RtEvictor *evictor)
{
    rt_latch_acquire(&process->evictors_latch);
    evictor->next = process->evictors;
    process->evictors = evictor;
    rt_latch_release(&process->evictors_latch);
}

void
rt_process_evictor_remove(RtProcess *process, RtEvictor *evictor)
{
    rt_latch_acquire(&process->evictors_latch);
    RtEvictor **at = &process->evictors;
    while (*at != NULL && *at != evictor)
        at = &(*at)->next;
    if (*at != NULL) *at = evictor->next;
    rt_latch_release(&process->evictors_latch);
}

static bool
stands_below(const MemAccount *account, const MemAccount *above)
{
    while (account != NULL && account != above)
        account = account->parent;
    return account != NULL;
}

u64
rt_process_reclaim(MemAccount *refuser, u64 bytes)
{
    RtProcess *process = rt__self()->process;
    u64 given = 0;
    if (rt_process_is_foreign(process)) return 0;
    /* Whoever has it is giving back for somebody already, unless a list changes: so wait a little,
       but not for long, since the caller may hold latches of any rank. */
    u32 rounds = 0;
    while (!rt_latch_try_acquire(&process->evictors_latch)) {
        if (rounds == RECLAIM_ROUNDS) return 0;
        rt_spin(&rounds);
    }
    for (RtEvictor *e = process->evictors; e != NULL && given < bytes; e = e->next) {
        if (stands_below(e->account, refuser)) given += e->give(e->arg, bytes - given);
    }
    rt_latch_release(&process->evictors_latch);
    rt__count(&process->reclaims, 1);
    rt__count(&process->reclaimed_bytes, given);
    return given;
}

u64
rt_process_hash_seed(const RtProcess *process)
{
    return process->hash_seed;
}

u32
rt_shard(void)
{
    RtTask *task = rt__self();
    if (task->kind == RT_TASK_SIM) return (u32)task->id % RT_SHARDS;
    int cpu = sched_getcpu();
    return cpu < 0 ? 0 : (u32)cpu % RT_SHARDS;
}

void
rt_process_set_limits(RtProcess *process, const RtLimits *limits)
{
    rt_store(&process->threads_max, limits->threads);
    rt_store(&process->files_max, limits->files);
    rt_store(&process->sockets_max, limits->sockets);
}

Err
rt__count_in(_Atomic u64 *counter, const RtU64 *max)
{
    u64 now = atomic_fetch_add_explicit(counter, 1, memory_order_relaxed) + 1;
    u64 limit = rt_load_relaxed(max);
    if (LIKELY(limit == 0 || now <= limit)) return OK;
    rt__count(counter, (u64)-1);
    REACHED("process: a cap was met");
    return ERR_LIMIT;
}

void
rt_process_counters(RtProcess *process, RtCounters *counters_out)
{
    *counters_out = (RtCounters){
        .threads = process->threads,
        .fibers = process->fiber_count,
        .files = process->files,
        .sockets = process->sockets,
        .parks = process->parks,
        .wakes = process->wakes,
        .timeouts = process->timeouts,
        .cancels = process->cancels,
        .fiber_peak = process->fiber_peak,
        .longest_stretch_ns = process->longest_stretch_ns,
        .long_stretches = process->long_stretches,
        .batched = process->batched,
        .reclaims = process->reclaims,
        .reclaimed_bytes = process->reclaimed_bytes,
    };
}
