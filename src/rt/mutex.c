/*
 * mutex.c -- mutex, condition and semaphore.
 *
 * Where waiters exist, the lock word is released under the bucket lock (in `decide`), and that is
 * the last touch of the lock: whoever gets it next may free it.
 */
#include "rt/process_impl.h"
#include "rt/rare.h"
#include "rt/time.h"

#define LOCKED 1u
#define PARKED 2u

#define MUTEX_PAUSES_MAX 16 /* 31 in all. */
#define HAND_OVER_AGE_NS (1 * RT_NS_PER_MS)

/* Looks ever more seldom, so that the owner keeps its cache line. */
static bool
mutex_spin(RtMutex *mutex)
{
    if (rt__self()->kind != RT_TASK_THREAD) return false;
    for (u32 pauses = 1; pauses <= MUTEX_PAUSES_MAX; pauses *= 2) {
        u32 seen = rt_load_relaxed(&mutex->word);
        if (!(seen & LOCKED) && rt_cas_weak(&mutex->word, &seen, seen | LOCKED)) return true;
        if (seen & PARKED) return false;
        for (u32 i = 0; i < pauses; i++)
            rt__pause();
    }
    return false;
}

static Err
mutex_lock_slow(RtMutex *mutex, u64 deadline_ns, u32 flags)
{
    if (deadline_ns != 0 && mutex_spin(mutex)) return OK;
    for (;;) {
        u32 seen = rt_load_relaxed(&mutex->word);
        if (!(seen & LOCKED)) {
            if (rt_cas_weak(&mutex->word, &seen, seen | LOCKED)) return OK;
            continue;
        }
        if (deadline_ns == 0) return ERR_BUSY;
        if (!(seen & PARKED) && !rt_cas_weak(&mutex->word, &seen, seen | PARKED)) continue;
        RtParkResult result = rt_park(mutex, &mutex->word, LOCKED | PARKED, LOCKED | PARKED,
                                      deadline_ns, flags, 0);
        if (result == RT_HANDED) return OK;
        if (result == RT_TIMEOUT || result == RT_CANCELLED) return rt_park_err(result);
        if (result == RT_WOKEN && rt_mutex_is_locked(mutex)) REACHED("mutex: barged past");
    }
}

void
rt_mutex_lock(RtMutex *mutex)
{
    u32 seen = 0;
    if (LIKELY(rt_cas_weak(&mutex->word, &seen, LOCKED))) return;
    Err err = mutex_lock_slow(mutex, RT_FOREVER, RT_PARK_NOCANCEL);
    ASSERT(err == OK);
}

Err
rt_mutex_lock_until(RtMutex *mutex, u64 deadline_ns)
{
    u32 seen = 0;
    if (LIKELY(rt_cas_weak(&mutex->word, &seen, LOCKED))) return OK;
    return mutex_lock_slow(mutex, deadline_ns, 0);
}

bool
rt_mutex_try_lock(RtMutex *mutex)
{
    if (rt_rare("mutex: somebody has it")) return false;
    u32 seen = rt_load_relaxed(&mutex->word);
    while (!(seen & LOCKED)) {
        if (rt_cas_weak(&mutex->word, &seen, seen | LOCKED)) return true;
    }
    return false;
}

static RtParkResult
mutex_release(void *arg, const RtParkChoice *choice)
{
    RtMutex *mutex = arg;
    u32 rest = choice->more ? PARKED : 0;
    bool is_old = choice->found > 0 && rt_now_ns() - choice->oldest_ns >= HAND_OVER_AGE_NS;
    if (is_old || (choice->found > 0 && rt_rare("mutex: hand over at once"))) {
        rt_store_release(&mutex->word, LOCKED | rest);
        REACHED("mutex: handed over");
        return RT_HANDED;
    }
    rt_store_release(&mutex->word, rest);
    return RT_WOKEN;
}

void
rt_mutex_unlock(RtMutex *mutex)
{
    u32 seen = LOCKED;
    if (LIKELY(atomic_compare_exchange_strong_explicit(&mutex->word.atom, &seen, 0,
                                                       memory_order_release, memory_order_relaxed)))
        return;
    ASSERT(seen == (LOCKED | PARKED));
    if (PLANT(3)) { /* Touches the lock after its release. */
        rt_store_release(&mutex->word, 0);
        rt_yield_point();
        rt_unpark(mutex, 1, NULL, mutex_release, mutex);
        return;
    }
    rt_unpark(mutex, 1, NULL, mutex_release, mutex);
}

bool
rt_mutex_is_locked(const RtMutex *mutex)
{
    return (rt_load_relaxed(&mutex->word) & LOCKED) != 0;
}

static Err
cond_wait(RtCond *cond, RtMutex *mutex, u64 deadline_ns, u32 flags)
{
    u32 sequence = rt_load_relaxed(&cond->sequence);
    rt_mutex_unlock(mutex);
    RtParkResult result = rt_park(cond, &cond->sequence, U32_MAX, sequence, deadline_ns, flags, 0);
    /* After a broadcast the wait may have ended as a wait for the mutex: then it may be handed. */
    if (result != RT_HANDED) rt_mutex_lock(mutex);
    return rt_park_err(result);
}

void
rt_cond_wait(RtCond *cond, RtMutex *mutex)
{
    Err err = cond_wait(cond, mutex, RT_FOREVER, RT_PARK_NOCANCEL);
    ASSERT(err == OK);
}

Err
rt_cond_wait_until(RtCond *cond, RtMutex *mutex, u64 deadline_ns)
{
    return cond_wait(cond, mutex, deadline_ns, 0);
}

void
rt_cond_signal(RtCond *cond)
{
    rt_fetch_add(&cond->sequence, 1);
    rt_unpark(cond, 1, NULL, NULL, NULL);
}

/* Under both bucket locks: from here on an unlock of the mutex looks at its queue. */
static u32
broadcast_wakes(void *arg)
{
    RtMutex *mutex = arg;
    return rt_fetch_or(&mutex->word, PARKED) & LOCKED ? 0 : 1;
}

void
rt_cond_broadcast(RtCond *cond, RtMutex *mutex)
{
    rt_fetch_add(&cond->sequence, 1);
    rt_unpark_requeue(cond, mutex, broadcast_wakes, mutex);
}

/* Semaphore: bit 0 says that somebody may be parked, the rest counts permits. */
#define SEM_PARKED 1u
#define SEM_PERMIT 2u

void
rt_sem_init(RtSem *sem, u32 permits)
{
    ASSERT(permits <= U32_MAX / SEM_PERMIT);
    rt_word_init(&sem->word, permits * SEM_PERMIT);
}

bool
rt_sem_try_acquire(RtSem *sem)
{
    u32 seen = rt_load_relaxed(&sem->word);
    while (seen >= SEM_PERMIT) {
        if (rt_cas_weak(&sem->word, &seen, seen - SEM_PERMIT)) return true;
    }
    return false;
}

static Err
sem_acquire(RtSem *sem, u64 deadline_ns, u32 flags)
{
    for (;;) {
        /* Also after a wake that came with the deadline: a permit is never left lying. */
        if (rt_sem_try_acquire(sem)) return OK;
        if (deadline_ns == 0) return ERR_BUSY;
        u32 seen = 0;
        if (!rt_cas(&sem->word, &seen, SEM_PARKED) && seen != SEM_PARKED) continue;
        RtParkResult result = rt_park(sem, &sem->word, U32_MAX, SEM_PARKED, deadline_ns, flags, 0);
        if (result == RT_TIMEOUT || result == RT_CANCELLED) return rt_park_err(result);
    }
}

void
rt_sem_acquire(RtSem *sem)
{
    Err err = sem_acquire(sem, RT_FOREVER, RT_PARK_NOCANCEL);
    ASSERT(err == OK);
}

Err
rt_sem_acquire_until(RtSem *sem, u64 deadline_ns)
{
    return sem_acquire(sem, deadline_ns, 0);
}

typedef struct SemRelease {
    RtSem *sem;
    u32 permits;
} SemRelease;

static RtParkResult
sem_release(void *arg, const RtParkChoice *choice)
{
    SemRelease *release = arg;
    u32 seen = rt_load_relaxed(&release->sem->word), next;
    do {
        next = (seen & ~SEM_PARKED) + release->permits * SEM_PERMIT;
        if (choice->more) next |= SEM_PARKED;
    } while (!rt_cas(&release->sem->word, &seen, next));
    return RT_WOKEN;
}

void
rt_sem_release(RtSem *sem, u32 permits)
{
    if (permits == 0) return;
    u32 seen = rt_load_relaxed(&sem->word);
    while (!(seen & SEM_PARKED)) {
        ASSERT(seen / SEM_PERMIT + permits <= U32_MAX / SEM_PERMIT);
        if (rt_cas(&sem->word, &seen, seen + permits * SEM_PERMIT)) return;
    }
    SemRelease release = {sem, permits};
    rt_unpark(sem, permits, NULL, sem_release, &release);
}
