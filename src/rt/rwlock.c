/*
 * rwlock.c -- the reader-writer lock.
 *
 * While readers hold the lock, PARKED implies WRITER_WAITS, so no reader joins once somebody is
 * parked.  The flags are cleared under the bucket lock only, so what a `decide` sees of them
 * stands. Woken readers are handed the lock (they could not pass WRITER_WAITS by themselves); a
 * writer is handed it only when it has waited for 1 ms.
 */
#include "rt/process_impl.h"
#include "rt/time.h"

#define WRITER       1u
#define PARKED       2u
#define WRITER_WAITS 4u
#define READER       8u
#define FLAGS        (WRITER | PARKED | WRITER_WAITS)

#define HAND_OVER_AGE_NS (1 * RT_NS_PER_MS)

bool
rt_rwlock_try_lock_shared(RtRwLock *lock)
{
    u32 seen = rt_load_relaxed(&lock->word);
    while (!(seen & (WRITER | WRITER_WAITS))) {
        if (rt_cas_weak(&lock->word, &seen, seen + READER)) return true;
    }
    return false;
}

bool
rt_rwlock_try_lock(RtRwLock *lock)
{
    u32 seen = rt_load_relaxed(&lock->word);
    while (!(seen & WRITER) && seen < READER) {
        if (rt_cas_weak(&lock->word, &seen, seen | WRITER)) return true;
    }
    return false;
}

static bool
waits_marked(const RtRwLock *lock)
{
    return (rt_load_relaxed(&lock->word) & (WRITER | WRITER_WAITS)) != 0;
}

static Err
lock_shared(RtRwLock *lock, u64 deadline_ns, u32 flags)
{
    for (;;) {
        if (rt_rwlock_try_lock_shared(lock)) return OK;
        if (deadline_ns == 0) return ERR_BUSY;
        u32 seen = rt_load_relaxed(&lock->word);
        if (!(seen & (WRITER | WRITER_WAITS))) continue;
        if (!(seen & PARKED) && !rt_cas_weak(&lock->word, &seen, seen | PARKED)) continue;
        RtParkResult result = rt_park(lock, &lock->word, FLAGS, (seen | PARKED) & FLAGS,
                                      deadline_ns, flags, 0);
        if (result == RT_HANDED) return OK;
        if (result == RT_TIMEOUT || result == RT_CANCELLED) return rt_park_err(result);
    }
}

static RtPick
readers_before_a_writer(void *arg, const RtWaiterInfo *waiter)
{
    (void)arg;
    return waiter->exclusive ? RT_PICK_STOP : RT_PICK_TAKE;
}

static RtParkResult
writer_gave_up(void *arg, const RtParkChoice *choice)
{
    RtRwLock *lock = arg;
    if (!choice->more) rt_fetch_and(&lock->word, ~(PARKED | WRITER_WAITS));
    return RT_WOKEN;
}

static Err
lock_exclusive(RtRwLock *lock, u64 deadline_ns, u32 flags)
{
    for (;;) {
        if (rt_rwlock_try_lock(lock)) return OK;
        if (deadline_ns == 0) return ERR_BUSY;
        u32 seen = rt_load_relaxed(&lock->word);
        if (!(seen & WRITER) && seen < READER) continue;
        u32 want = seen | PARKED | WRITER_WAITS;
        if (want != seen && !rt_cas_weak(&lock->word, &seen, want)) continue;
        RtParkResult result = rt_park(lock, &lock->word, FLAGS, want & FLAGS, deadline_ns,
                                      flags | RT_PARK_EXCLUSIVE, 0);
        if (result == RT_HANDED) return OK;
        if (result == RT_TIMEOUT || result == RT_CANCELLED) {
            /* Readers may queue only because of us: let them look again. */
            REACHED("rwlock: a writer gave up");
            rt_unpark(lock, RT_PARK_ALL, readers_before_a_writer, writer_gave_up, lock);
            return rt_park_err(result);
        }
    }
}

void
rt_rwlock_lock_shared(RtRwLock *lock)
{
    Err err = lock_shared(lock, RT_FOREVER, RT_PARK_NOCANCEL);
    ASSERT(err == OK);
}

void
rt_rwlock_lock(RtRwLock *lock)
{
    Err err = lock_exclusive(lock, RT_FOREVER, RT_PARK_NOCANCEL);
    ASSERT(err == OK);
}

Err
rt_rwlock_lock_shared_until(RtRwLock *lock, u64 deadline_ns)
{
    return lock_shared(lock, deadline_ns, 0);
}

Err
rt_rwlock_lock_until(RtRwLock *lock, u64 deadline_ns)
{
    return lock_exclusive(lock, deadline_ns, 0);
}

bool
rt_rwlock_try_upgrade(RtRwLock *lock)
{
    u32 seen = rt_load_relaxed(&lock->word);
    while ((seen & ~(PARKED | WRITER_WAITS)) == READER) {
        if (rt_cas(&lock->word, &seen, (seen - READER) | WRITER)) return true;
    }
    return false;
}

/* A holder leaves.  `leaves` is its share of the word, `stays` what it keeps of it. */
typedef struct Release {
    RtRwLock *lock;
    u32 leaves, stays;
    bool is_done; /* Else the waiters chosen from were gone and others are there: choose again. */
} Release;

static RtPick
take_readers(void *arg, const RtWaiterInfo *waiter)
{
    (void)arg;
    return waiter->exclusive ? RT_PICK_SKIP : RT_PICK_TAKE;
}

static RtPick
take_writer(void *arg, const RtWaiterInfo *waiter)
{
    (void)arg;
    return waiter->exclusive ? RT_PICK_TAKE : RT_PICK_SKIP;
}

/*
 * The word without the holder, with `granted` for the chosen waiters.  A loop, because readers may
 * come and go when a waiting writer gave up after the holder looked.
 */
static void
release_word(Release *release, u32 granted, bool more)
{
    u32 seen = rt_load_relaxed(&release->lock->word), next;
    do {
        next = (seen & ~(PARKED | WRITER_WAITS)) - release->leaves + release->stays + granted;
        if (more) next |= PARKED | WRITER_WAITS;
    } while (!rt_cas(&release->lock->word, &seen, next));
    release->is_done = true;
}

static RtParkResult
release_to_readers(void *arg, const RtParkChoice *choice)
{
    Release *release = arg;
    if (choice->found > 0 || release->stays != 0 || !choice->more)
        release_word(release, choice->found * READER, choice->more);
    return RT_HANDED;
}

static RtParkResult
release_to_writer(void *arg, const RtParkChoice *choice)
{
    Release *release = arg;
    if (choice->found == 0 && choice->more) return RT_WOKEN; /* Only readers wait. */
    bool is_last = (rt_load_relaxed(&release->lock->word) & ~(PARKED | WRITER_WAITS)) ==
                   release->leaves;
    bool is_old = choice->found > 0 && rt_now_ns() - choice->oldest_ns >= HAND_OVER_AGE_NS;
    /* While the only holder is leaving and waiters are marked, nobody can join. */
    bool hands_over = is_last && is_old && choice->found == 1 && waits_marked(release->lock);
    release_word(release, hands_over ? WRITER : 0, choice->more);
    return hands_over ? RT_HANDED : RT_WOKEN;
}

static void
release_run(Release *release, bool readers_first)
{
    bool to_readers = readers_first;
    while (!release->is_done) {
        if (to_readers)
            rt_unpark(release->lock, RT_PARK_ALL, take_readers, release_to_readers, release);
        else
            rt_unpark(release->lock, 1, take_writer, release_to_writer, release);
        to_readers = !to_readers;
    }
}

void
rt_rwlock_unlock(RtRwLock *lock)
{
    u32 seen = WRITER;
    if (LIKELY(rt_cas(&lock->word, &seen, 0))) return;
    ASSERT(seen & WRITER);
    release_run(&(Release){.lock = lock, .leaves = WRITER}, true);
}

void
rt_rwlock_downgrade(RtRwLock *lock)
{
    u32 seen = WRITER;
    if (LIKELY(rt_cas(&lock->word, &seen, READER))) return;
    ASSERT(seen & WRITER);
    release_run(&(Release){.lock = lock, .leaves = WRITER, .stays = READER}, true);
}

void
rt_rwlock_unlock_shared(RtRwLock *lock)
{
    u32 seen = rt_load_relaxed(&lock->word);
    for (;;) {
        ASSERT(seen >= READER);
        if (seen < 2 * READER && (seen & PARKED)) break;
        if (rt_cas(&lock->word, &seen, seen - READER)) return;
    }
    release_run(&(Release){.lock = lock, .leaves = READER}, false);
}
