/*
 * park.h -- the one way to wait: park on a key until somebody unparks it.
 *
 * A futex-like call on a table of wait queues in the process, for threads, fibers and simulated
 * tasks on the same key.  The key is any address; it is never dereferenced, so the object may be
 * freed by the task that was woken.  Everything else that waits is built on it.
 *
 *  1. `word & mask` is compared with `value` under the bucket lock, so a wake between the caller's
 *     look at the word and its sleep cannot be lost.  The word must stay valid memory until
 *     rt_park() has compared it; words the waiter does not pin must be type-stable and carry an
 *     id or generation.
 *  2. Whoever unlinks the waiter decides its outcome.  A task that was unlinked by a waker returns
 *     RT_WOKEN or RT_HANDED, however late and although its deadline passed.
 *  3. A task that gives up after RT_WOKEN must pass the wake on (rt_unpark again).
 *  4. RT_WOKEN carries no ownership: look again.  RT_HANDED does: the waker's `decide` gave it.
 *  5. Parking with a latch or an epoch guard held is a bug and asserted.
 */
#pragma once

#include "rt/task.h"

typedef enum RtParkResult {
    RT_WOKEN,
    RT_HANDED,
    RT_CHANGED, /* The word did not have the value: did not sleep. */
    RT_TIMEOUT,
    RT_CANCELLED,
} RtParkResult;

#define RT_PARK_NOCANCEL  1u /* Sleep on although cancelled; for cleanup and I/O. */
#define RT_PARK_EXCLUSIVE 2u /* The waiter's class, seen by filters. */

/* A waiter as filters and decide see it. */
typedef struct RtWaiterInfo {
    const RtTask *task;
    u64 arg;      /* What the waiter passed. */
    u64 since_ns; /* When it parked. */
    bool exclusive;
} RtWaiterInfo;

/*
 * Wait until unparked.  deadline_ns: absolute, of rt_now_ns(); RT_FOREVER; 0 returns RT_TIMEOUT at
 * once if the word matches.  [parks]
 */
RtParkResult rt_park_u32(const void *key, const RtU32 *word, u32 mask, u32 value, u64 deadline_ns,
                         u32 flags, u64 arg);
RtParkResult rt_park_u64(const void *key, const RtU64 *word, u64 mask, u64 value, u64 deadline_ns,
                         u32 flags, u64 arg);
/* `word` may be an RtU32 or an RtU64. */
#define rt_park(key, word, mask, value, deadline_ns, flags, arg) \
    _Generic((word),                                                                               \
        RtU32 *: rt_park_u32,                                                                      \
        const RtU32 *: rt_park_u32,                                                                \
        RtU64 *: rt_park_u64,                                                                      \
        const RtU64 *: rt_park_u64)(key, word, mask, value, deadline_ns, flags, arg)

/* Says for one waiter of the key, oldest first, what to do with it.  Runs under the bucket lock:
   must not park, allocate or unpark. */
typedef enum RtPick { RT_PICK_SKIP, RT_PICK_TAKE, RT_PICK_STOP } RtPick;
typedef RtPick (*RtParkFilter)(void *arg, const RtWaiterInfo *waiter);

/* Under the bucket lock, after the choice and before the wakes: may write the lock word.  Returns
   RT_WOKEN or RT_HANDED, the result of all chosen waiters. */
typedef struct RtParkChoice {
    u32 found;     /* Waiters chosen. */
    bool more;     /* Others of this key stay parked. */
    u64 oldest_ns; /* When the oldest chosen one parked; 0 if none. */
} RtParkChoice;
typedef RtParkResult (*RtParkDecide)(void *arg, const RtParkChoice *choice);

#define RT_PARK_ALL U32_MAX
/*
 * Wake up to `count` waiters of `key`.  The caller's store to the word comes before.  filter and
 * decide may be NULL (take in order; RT_WOKEN); with a decide the bucket is always visited.
 * Returns how many were woken.  Never parks.
 */
u32 rt_unpark(const void *key, u32 count, RtParkFilter filter, RtParkDecide decide, void *arg);
static inline u32
rt_unpark_all(const void *key)
{
    return rt_unpark(key, RT_PARK_ALL, NULL, NULL, NULL);
}

/* Move all waiters of `from` to the end of the queue of `to` without waking them, after waking the
   first few.  `wakes` runs under both bucket locks, only if there are waiters, may write the word
   behind `to`, and says how many to wake.  Returns the number woken and moved.  For conditions. */
typedef u32 (*RtRequeueWakes)(void *arg);
u32 rt_unpark_requeue(const void *from, const void *to, RtRequeueWakes wakes, void *arg);

/* Err of a park result: OK, ERR_BUSY (RT_TIMEOUT) or ERR_INTERRUPT. */
Err rt_park_err(RtParkResult result);
