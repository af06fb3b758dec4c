/*
 * process.h -- the root of everything that exists once per process.
 *
 * A real program has one, rt_process_default().  The simulator makes several, crashes and restarts
 * them, so no writable static and no thread-local may live above rt: hang it on the process, in
 * the slot of your folder.
 */
#pragma once

#include "base/base.h"

typedef struct RtProcess RtProcess;

/* The process of this program, made on first use: takes no thread, no handle, no signal. */
RtProcess *rt_process_default(void);
/* The process of the current task. */
RtProcess *rt_process(void);

/*
 * One root object per folder.  The first rt_process_root() of a slot runs `create`; all later
 * calls, from any task, return the same object.  `destroy` (may be NULL) runs in
 * rt_process_close(), highest slot first.  [parks]  Errors: those of `create` (a later call tries
 * again), ERR_FOREIGN after fork().
 */
typedef enum RtSlot {
    RT_SLOT_STORE,
    RT_SLOT_SQL,
    RT_SLOT_FUNC,
    RT_SLOT_SESSION,
    RT_SLOT_CAPI,
    RT_SLOT_SERVER,
    RT_SLOT_TEST,
    RT_SLOT_COUNT_
} RtSlot;
typedef Err (*RtRootCreate)(RtProcess *process, void **root_out);
typedef void (*RtRootDestroy)(void *root);
MUST_CHECK Err rt_process_root(RtSlot slot, RtRootCreate create, RtRootDestroy destroy,
                               void **root_out);
/* The root if it exists already, else NULL.  Never parks. */
void *rt_process_root_peek(RtSlot slot);

/* Destroy the roots and stop helper threads; for programs that want a clean end (tests, weftd).
   No other task may be inside the engine.  The process may be used again afterwards. */
void rt_process_close(RtProcess *process);

/* True in a child made by fork(): nothing of the parent may be touched, close by leaking.  Test it
   before taking any lock. */
bool rt_process_is_foreign(const RtProcess *process);

/* The memory account at the root of all others; cap 0 until set. */
MemAccount *rt_process_account(RtProcess *process);
/* What is not in blocks of the engine, each in an account of its own below that. */
typedef enum RtPart {
    RT_PART_STACKS,    /* Of fibers. */
    RT_PART_SOCKETS,   /* The kernel's buffers for them. */
    RT_PART_LIBRARIES, /* Blocks of other libraries, where the program hands them on (OpenSSL). */
    RT_PART_COUNT_
} RtPart;
MemAccount *rt_process_part(RtProcess *process, RtPart part);

/*
 * Who keeps memory only for speed (page pools, shared plans) and gives it back when a charge meets
 * a cap of `account` or of one above it.  `give` returns the bytes that it gave back, at least
 * `bytes` if it has them; it neither parks nor waits, may run on any task, with latches held, and
 * charges nothing.  The evictor belongs to the caller; after rt_process_evictor_remove() it is not
 * called. Accounts whose `reclaim` is rt_process_reclaim ask them all; the process' own does.
 */
typedef struct RtEvictor {
    struct RtEvictor *next;
    MemAccount *account; /* Where what it keeps is charged. */
    u64 (*give)(void *arg, u64 bytes);
    void *arg;
} RtEvictor;
void rt_process_evictor_add(RtProcess *process, RtEvictor *evictor);
void rt_process_evictor_remove(RtProcess *process, RtEvictor *evictor);
u64 rt_process_reclaim(MemAccount *refuser, u64 bytes);

/* A number that differs between processes and simulator runs: the seed of hash tables. */
u64 rt_process_hash_seed(const RtProcess *process);

/* A per-core index for sharded counters and free lists: 0 <= result < RT_SHARDS.  A hint: the task
   may move right afterwards. */
#define RT_SHARDS 16
u32 rt_shard(void);

/* Counters for metrics and tests. */
typedef struct RtCounters {
    u64 threads, fibers, files, sockets; /* Alive now. */
    u64 parks, wakes, timeouts, cancels; /* Since start. */
    u64 fiber_peak, longest_stretch_ns;
    u64 long_stretches;            /* Turns of fibers of more than 50 ms, since start. */
    u64 reclaims, reclaimed_bytes; /* Caps met and what gave way for it, since start. */
    u64 batched; /* Socket calls that went to the kernel together with others, since start. */
} RtCounters;
void rt_process_counters(RtProcess *process, RtCounters *counters_out);

/*
 * Caps on what the counters count: who would pass one gets ERR_LIMIT, and nothing was opened.  0:
 * none, as at the start.  Fibers have theirs in RtLoopsConfig; memory in rt_process_account().
 */
typedef struct RtLimits {
    u64 threads, files, sockets;
} RtLimits;
void rt_process_set_limits(RtProcess *process, const RtLimits *limits);
