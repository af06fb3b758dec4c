/*
 * latch.c -- latches, their ranks, and the busy wait.
 *
 * The holder of a latch never parks, so a waiter's wait is short and somebody always runs.
 */
#include <sched.h>

#include "rt/process_impl.h"

#define LOCKED 1u
#define PARKED 2u

#define LATCH_SPINS      100
#define SPINS_TILL_YIELD 100

void
rt_spin(u32 *rounds)
{
    if (rt__self()->kind == RT_TASK_SIM) {
        rt_yield();
        return;
    }
    if (++*rounds > SPINS_TILL_YIELD)
        sched_yield();
    else
        rt__pause();
}

void
rt_latch_enter(u16 rank)
{
    RtTask *task = rt__self();
    ASSERT(task->latches < RT_LATCHES_MAX);
#ifdef WEFT_CHECK
    for (u32 i = 0; i < task->latches; i++) {
        u16 held = task->latch_ranks[i];
        ASSERT(held < rank || (held == rank && (rank & RT_RANK_MANY)));
    }
    task->latch_ranks[task->latches] = rank;
#else
    (void)rank;
#endif
    task->latches++;
}

void
rt_latch_leave(u16 rank)
{
    RtTask *task = rt__self();
    ASSERT(task->latches > 0);
#ifdef WEFT_CHECK
    u32 at = task->latches;
    while (at > 0 && task->latch_ranks[at - 1] != rank)
        at--;
    ASSERT(at > 0); /* Held, and with this rank. */
    for (; at < task->latches; at++)
        task->latch_ranks[at - 1] = task->latch_ranks[at];
#else
    (void)rank;
#endif
    task->latches--;
}

bool
rt_latch_any_held(void)
{
    return rt__self()->latches > 0;
}

void
rt_latch_init(RtLatch *latch, u16 rank)
{
    rt_word_init(&latch->word, 0);
    latch->rank = rank;
}

bool
rt_latch_try_acquire(RtLatch *latch)
{
    u32 seen = rt_load_relaxed(&latch->word);
    while (!(seen & LOCKED)) {
        if (rt_cas_weak(&latch->word, &seen, seen | LOCKED)) {
            /* No rank check: a try cannot deadlock.  It counts all the same. */
            RtTask *task = rt__self();
            ASSERT(task->latches < RT_LATCHES_MAX);
            task->latch_ranks[task->latches++] = latch->rank;
            return true;
        }
    }
    return false;
}

static void
latch_wait(RtLatch *latch)
{
    bool may_park = !rt_latch_any_held() && rt__self()->guards == 0;
    u32 rounds = 0;
    for (;;) {
        u32 seen = rt_load_relaxed(&latch->word);
        if (!(seen & LOCKED)) {
            if (rt_cas_weak(&latch->word, &seen, seen | LOCKED)) return;
            continue;
        }
        if (!may_park || rounds < LATCH_SPINS) {
            rt_spin(&rounds);
            if (may_park && rt__self()->kind == RT_TASK_SIM) rounds++;
            continue;
        }
        if (!(seen & PARKED) && !rt_cas_weak(&latch->word, &seen, seen | PARKED)) continue;
        (void)rt_park(latch, &latch->word, LOCKED | PARKED, LOCKED | PARKED, RT_FOREVER,
                      RT_PARK_NOCANCEL, 0);
    }
}

void
rt_latch_acquire(RtLatch *latch)
{
    u32 seen = 0;
    if (UNLIKELY(!rt_cas_weak(&latch->word, &seen, LOCKED))) latch_wait(latch);
    rt_latch_enter(latch->rank);
}

static RtParkResult
latch_released(void *arg, const RtParkChoice *choice)
{
    RtLatch *latch = arg;
    rt_store_release(&latch->word, choice->more ? PARKED : 0);
    return RT_WOKEN;
}

void
rt_latch_release(RtLatch *latch)
{
    u32 seen = LOCKED;
    rt_latch_leave(latch->rank);
    if (LIKELY(rt_cas(&latch->word, &seen, 0))) return;
    ASSERT(seen == (LOCKED | PARKED));
    rt_unpark(latch, 1, NULL, latch_released, latch);
}

bool
rt_latch_is_held(const RtLatch *latch)
{
    return (rt_load_relaxed(&latch->word) & LOCKED) != 0;
}
