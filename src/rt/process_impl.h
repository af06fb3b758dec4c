/*
 * process_impl.h -- private: the process object and what the parts of rt share.
 */
#pragma once

#include "rt/io.h"
#include "rt/lock.h"
#include "rt/loop.h"
#include "rt/net_impl.h"
#include "rt/process.h"

/* The wait queues.  The lock is a three-state futex mutex of latch class. */
#define RT_BUCKETS 1024
typedef struct RtWaiter RtWaiter;
typedef struct RtBucket {
    alignas(64) _Atomic u32 lock;
    _Atomic u32 waiters;
    RtWaiter *head, *tail; /* In order of arrival, whatever the key. */
} RtBucket;

typedef struct RtRoot {
    RtOnce once;
    RtPtr object;
    RtRootDestroy destroy;
} RtRoot;

/*
 * How tasks of one kind wait: fibers and simulated tasks bring one, threads have none (NULL), so a
 * program that starts no loops does not even link them.  `base` is the kind's own task.
 */
struct RtSched {
    /* Until task->word has a wanted bit; returns it, or 0 at the deadline. */
    u32 (*sleep)(RtTask *task, u64 deadline_ns, u32 wanted);
    /* A bit of the task now current on `base` changed.  Any thread. */
    void (*look)(RtTask *base);
    void (*yield)(RtTask *task);
    /* Give way if the slice is over. */
    void (*slice)(RtTask *task, u64 now_ns);
    u64 (*turn_began)(const RtTask *task);      /* When its turn did. */
    void (*stack_at)(RtTask *task, char *here); /* So deep is its stack; may be NULL. */
    void (*share)(RtTask *task, u64 share);     /* rt_share_set(); may be NULL. */
    /* Carry out a request, parked if it takes long. */
    void (*io)(RtProcess *process, RtIo *io);
    /* Have the point looked after (reg, keeper), without a wait. */
    Err (*point_keep)(RtPoint *point);
    /* `io`: as with rt__point_wait_with(). */
    Err (*point_wait)(RtPoint *point, u32 what, u64 deadline_ns, RtIo *io, u32 *ready_out);
};

/* Nobody keeps a loop longer without a turn for others: who does is counted and named in the log;
   in the simulator, by its own clock, the run fails. */
#define RT_STRETCH_MAX_NS ((u64)50 * 1000 * 1000)

/* group.c: `child` is the own task of a fiber or simulated task. */
void rt__group_enter(RtTask *child, RtGroup *group);
void rt__group_leave(RtTask *child, RtGroup *group);

/* What a process does differently when it has loops, or is simulated. */
typedef struct RtHooks {
    Err (*thread_start)(RtTask *task, RtTaskFn fn, void *arg, RtEvent *ended); /* NULL: pthread */
    Err (*spawn)(RtProcess *process, u32 where, RtTaskFn fn, void *arg, const char *name);
    Err (*group_spawn)(RtProcess *process, RtGroup *group, RtTaskFn fn, void *arg);
    Err (*when_readable)(RtPoint *point, u64 deadline_ns, RtTaskFn fn, void *arg);
    void (*stop)(RtProcess *process, u64 drain_ns); /* rt_loops_stop() */
    u32 (*loop_count)(RtProcess *process);
    i64 (*pid)(RtProcess *process);
    bool (*is_alive)(i64 pid); /* With `pid`. */
} RtHooks;

struct RtProcess {
    const RtSys *sys;
    void *world; /* The simulator's part, else NULL. */
    u32 fork_generation;
    u64 hash_seed;
    RtU64 task_ids;
    MemAccount account, parts[RT_PART_COUNT_];
    RtLatch evictors_latch;
    RtEvictor *evictors;
    RtRoot roots[RT_SLOT_COUNT_];
    RtPtr hooks; /* const RtHooks, once loops run or in the simulator; else NULL. */
    void *loops; /* RtLoops, while hooks point to theirs. */

    /* Counters, relaxed. */
    _Atomic u64 threads, fiber_count, files, sockets;
    RtU64 threads_max, files_max, sockets_max;
    _Atomic u64 reclaims, reclaimed_bytes;
    _Atomic u64 parks, wakes, timeouts, cancels, fiber_peak, batched;
    _Atomic u64 longest_stretch_ns, long_stretches;

    RtBucket buckets[RT_BUCKETS];
};

void rt__process_init(RtProcess *process, const RtSys *sys, void *world, u64 hash_seed);

/* The current task without the function call. */
typedef struct RtTls {
    RtTask *current;
    char *stack_low; /* Of this thread, found once. */
    RtTask own;
} RtTls;
/* A few words in the library's static TLS block: one load instead of a call a time it is read.
   The library is never unloaded (-z nodelete), so the block is never given back. */
#define RT_TLS _Thread_local __attribute__((tls_model("initial-exec")))
extern RT_TLS RtTls rt__tls;
RtTask *rt__self_make(void);
static inline RtTask *
rt__self(void)
{
    RtTask *task = rt__tls.current;
    return LIKELY(task != NULL) ? task : rt__self_make();
}

/* Futex on a process-private word.  deadline absolute monotonic, RT_FOREVER.  Never fails. */
void rt__futex_wait(const _Atomic u32 *word, u32 value, u64 deadline_ns);
void rt__futex_wake(const _Atomic u32 *word, u32 count);

/*
 * The sleep of a parked task: returns the bits of task->word that ended it (TOKEN, CANCEL), or 0
 * for the deadline.  By kind: futex, switch to the loop, or switch to the simulator.
 */
u32 rt__task_sleep(RtTask *task, u64 deadline_ns, bool cancellable);
/* A waker's last act: set TOKEN and make the task run. */
void rt__task_wake(RtTask *task);

/* Check builds in the simulator: no yield between these two. */
#ifdef WEFT_CHECK
extern u32 rt__sim_held;
extern void (*rt__sim_hook)(void); /* What a yield point does there. */
#endif
static inline void
rt__sim_hold(void)
{
#ifdef WEFT_CHECK
    if (UNLIKELY(rt__sim_running)) rt__sim_held++;
#endif
}
static inline void
rt__sim_release(void)
{
#ifdef WEFT_CHECK
    if (UNLIKELY(rt__sim_running)) rt__sim_held--;
#endif
}

static inline void
rt__count(_Atomic u64 *counter, u64 change)
{
    atomic_fetch_add_explicit(counter, change, memory_order_relaxed);
}

/* Count one more, or ERR_LIMIT. */
MUST_CHECK Err rt__count_in(_Atomic u64 *counter, const RtU64 *max);

static inline void
rt__pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static inline const RtHooks *
rt__hooks(RtProcess *process)
{
    return rt_load_acquire(&process->hooks);
}
