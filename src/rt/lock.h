/*
 * lock.h -- locks of both classes, all built on parking.  Zero-initialised is unlocked and free.
 *
 * Task class (RtMutex, RtRwLock, RtCond, RtSem, RtOnce): the holder may park, waiters park.
 * Barging wins, but a waiter older than 1 ms gets the lock handed over.  Nothing needs an end
 * function; a lock may be freed as soon as its last holder returned from unlock.
 *
 * Latch class (RtLatch, and the latch words of the store): the holder never parks, does no I/O and
 * calls no host code.  Latches have ranks; check builds assert that they are taken in rising
 * order.  Waiting while holding no other latch spins and then parks; while holding one, spins.
 *
 * Deadlines are absolute (rt_now_ns), RT_FOREVER or 0 (try).  The timed functions return
 * ERR_BUSY when the deadline passed, ERR_INTERRUPT when the task was cancelled.  The plain ones
 * can neither be cancelled nor fail.
 */
#pragma once

#include "rt/park.h"

typedef struct RtMutex {
    RtU32 word; /* bit 0 LOCKED, bit 1 PARKED */
} RtMutex;
void rt_mutex_lock(RtMutex *mutex);                                  /* [parks] */
MUST_CHECK Err rt_mutex_lock_until(RtMutex *mutex, u64 deadline_ns); /* [parks] */
MUST_CHECK bool rt_mutex_try_lock(RtMutex *mutex);
void rt_mutex_unlock(RtMutex *mutex);
bool rt_mutex_is_locked(const RtMutex *mutex); /* For assertions. */
/* The same as lock and unlock, without a call where nobody else is about. */
static ALWAYS_INLINE void
rt_mutex_lock_fast(RtMutex *mutex)
{
    u32 seen = 0;
    if (UNLIKELY(!rt_cas_weak(&mutex->word, &seen, 1u))) rt_mutex_lock(mutex);
}
static ALWAYS_INLINE void
rt_mutex_unlock_fast(RtMutex *mutex)
{
    u32 seen = 1;
    if (UNLIKELY(!atomic_compare_exchange_strong_explicit(
            &mutex->word.atom, &seen, 0, memory_order_release, memory_order_relaxed))) {
        rt_mutex_unlock(mutex);
    }
}

/* Not recursive.  A waiting writer holds back new readers. */
typedef struct RtRwLock {
    RtU32 word; /* bit 0 WRITER, 1 PARKED, 2 WRITER_WAITS, 3-31 readers */
} RtRwLock;
void rt_rwlock_lock_shared(RtRwLock *lock);                                  /* [parks] */
void rt_rwlock_lock(RtRwLock *lock);                                         /* [parks] */
MUST_CHECK Err rt_rwlock_lock_shared_until(RtRwLock *lock, u64 deadline_ns); /* [parks] */
MUST_CHECK Err rt_rwlock_lock_until(RtRwLock *lock, u64 deadline_ns);        /* [parks] */
MUST_CHECK bool rt_rwlock_try_lock_shared(RtRwLock *lock);
MUST_CHECK bool rt_rwlock_try_lock(RtRwLock *lock);
/* The only reader becomes the writer, or false and still a reader. */
MUST_CHECK bool rt_rwlock_try_upgrade(RtRwLock *lock);
void rt_rwlock_downgrade(RtRwLock *lock); /* Writer to reader, without a gap. */
void rt_rwlock_unlock_shared(RtRwLock *lock);
void rt_rwlock_unlock(RtRwLock *lock);

/* Condition: wait for a signal with the mutex released; it is held again on return, whatever the
   result.  Spurious returns happen: wait in a loop. */
typedef struct RtCond {
    RtU32 sequence;
} RtCond;
void rt_cond_wait(RtCond *cond, RtMutex *mutex);                                  /* [parks] */
MUST_CHECK Err rt_cond_wait_until(RtCond *cond, RtMutex *mutex, u64 deadline_ns); /* [parks] */
void rt_cond_signal(RtCond *cond);
/* `mutex` is the one the waiters use: they are moved to its queue, not all woken at once. */
void rt_cond_broadcast(RtCond *cond, RtMutex *mutex);

/* Counting semaphore. */
typedef struct RtSem {
    RtU32 word; /* bit 0 PARKED, 1-31 permits */
} RtSem;
void rt_sem_init(RtSem *sem, u32 permits);
void rt_sem_acquire(RtSem *sem);                                  /* [parks] */
MUST_CHECK Err rt_sem_acquire_until(RtSem *sem, u64 deadline_ns); /* [parks] */
MUST_CHECK bool rt_sem_try_acquire(RtSem *sem);
void rt_sem_release(RtSem *sem, u32 permits);

/* Run fn once with success; while it runs, others wait.  A failed run is tried again by the next
   caller.  [parks]  Errors: those of fn. */
typedef struct RtOnce {
    RtU32 word; /* 0 new, 1 running, 2 running and waited for, 3 done */
} RtOnce;
typedef Err (*RtOnceFn)(void *arg);
MUST_CHECK Err rt_once(RtOnce *once, RtOnceFn fn, void *arg);

/* An event that is set once and stays set. */
typedef struct RtEvent {
    RtU32 word; /* 0 unset, 1 unset and waited for, 2 set */
} RtEvent;
void rt_event_set(RtEvent *event);
bool rt_event_is_set(const RtEvent *event);
void rt_event_wait(RtEvent *event);                                  /* [parks] */
MUST_CHECK Err rt_event_wait_until(RtEvent *event, u64 deadline_ns); /* [parks] */

/* Ranks, lowest taken first; two latches of one rank together only where marked RT_RANK_MANY. */
#define RT_RANK_MANY 0x8000u
typedef struct RtLatch {
    RtU32 word; /* bit 0 LOCKED, bit 1 PARKED */
    u16 rank;
} RtLatch;
void rt_latch_init(RtLatch *latch, u16 rank);
void rt_latch_acquire(RtLatch *latch);
MUST_CHECK bool rt_latch_try_acquire(RtLatch *latch);
void rt_latch_release(RtLatch *latch);
bool rt_latch_is_held(const RtLatch *latch); /* By anybody; for assertions. */

/* For latches kept in words of other modules (page words): call right after taking / before
   releasing one.  Checks the rank, and makes parking while holding it an assertion failure. */
void rt_latch_enter(u16 rank);
void rt_latch_leave(u16 rank);
/* True when the current task holds any latch (then a wait for another must spin). */
bool rt_latch_any_held(void);
