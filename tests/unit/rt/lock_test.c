/*
 * lock_test.c -- every lock excludes, wakes, times out and is cancelled as its header says.
 *
 * Method: several threads hammer one lock around plain (unprotected) counters, so that a lost
 * exclusion shows as a wrong sum and a lost wake as a hang; then deadlines and cancels one by one.
 */
#include "rt/lock.h"
#include "rt/time.h"
#include "unit/cmocka_all.h"

#define THREADS 4
#define ROUNDS  4000

typedef struct Shared {
    RtMutex mutex;
    RtRwLock rwlock;
    RtCond cond;
    RtSem sem;
    RtLatch latch;
    u64 plain, plain2; /* Guarded by the lock under test. */
    u32 queue, taken, producers_left;
} Shared;

static void
run_threads(RtTaskFn fn, void *arg)
{
    RtThread *threads[THREADS];
    for (u32 i = 0; i < THREADS; i++)
        assert_int_equal(rt_thread_start(rt_process(), fn, arg, "test", &threads[i]), OK);
    for (u32 i = 0; i < THREADS; i++)
        rt_thread_join(threads[i]);
}

static void
mutex_rounds(void *arg)
{
    Shared *shared = arg;
    for (u32 i = 0; i < ROUNDS; i++) {
        if (i % 3 == 0) {
            if (rt_mutex_lock_until(&shared->mutex, rt_deadline_after(20000)) != OK) {
                i--;
                continue;
            }
        } else
            rt_mutex_lock(&shared->mutex);
        shared->plain++;
        if (i % 64 == 0) rt_yield();
        rt_mutex_unlock(&shared->mutex);
    }
}

static void
mutex_excludes(void **state)
{
    (void)state;
    Shared shared = {0};
    run_threads(mutex_rounds, &shared);
    assert_int_equal(shared.plain, THREADS * ROUNDS);
    assert_int_equal(rt_load(&shared.mutex.word) & 1, 0);
    assert_true(rt_mutex_try_lock(&shared.mutex));
    assert_false(rt_mutex_try_lock(&shared.mutex));
    assert_int_equal(rt_mutex_lock_until(&shared.mutex, 0), ERR_BUSY);
    assert_int_equal(rt_mutex_lock_until(&shared.mutex, rt_deadline_after(1000000)), ERR_BUSY);
    rt_mutex_unlock(&shared.mutex);
}

static void
rwlock_rounds(void *arg)
{
    Shared *shared = arg;
    u64 seed = rt_self()->id;
    Rng rng;
    rng_seed(&rng, seed);
    for (u32 i = 0; i < ROUNDS; i++) {
        u64 draw = rng_below(&rng, 10);
        u64 soon = rt_deadline_after(rng_below(&rng, 30000));
        if (draw < 5) {
            if (draw == 0) {
                if (rt_rwlock_lock_shared_until(&shared->rwlock, soon) != OK) continue;
            } else
                rt_rwlock_lock_shared(&shared->rwlock);
            assert_int_equal(shared->plain, shared->plain2);
            if (draw == 1) rt_yield();
            if (draw == 2 && rt_rwlock_try_upgrade(&shared->rwlock)) {
                shared->plain++;
                shared->plain2++;
                rt_rwlock_unlock(&shared->rwlock);
            } else
                rt_rwlock_unlock_shared(&shared->rwlock);
        } else {
            if (draw < 7) {
                if (rt_rwlock_lock_until(&shared->rwlock, soon) != OK) continue;
            } else
                rt_rwlock_lock(&shared->rwlock);
            shared->plain++;
            if (draw == 8) rt_yield();
            shared->plain2++;
            if (draw == 9) {
                rt_rwlock_downgrade(&shared->rwlock);
                assert_int_equal(shared->plain, shared->plain2);
                rt_rwlock_unlock_shared(&shared->rwlock);
            } else
                rt_rwlock_unlock(&shared->rwlock);
        }
    }
}

static void
rwlock_excludes(void **state)
{
    (void)state;
    Shared shared = {0};
    run_threads(rwlock_rounds, &shared);
    assert_int_equal(shared.plain, shared.plain2);
    assert_int_equal(rt_load(&shared.rwlock.word) & ~6u, 0);
    rt_rwlock_lock_shared(&shared.rwlock);
    assert_true(rt_rwlock_try_lock_shared(&shared.rwlock));
    assert_false(rt_rwlock_try_lock(&shared.rwlock));
    assert_int_equal(rt_rwlock_lock_until(&shared.rwlock, rt_deadline_after(100000)), ERR_BUSY);
    assert_true(
        rt_rwlock_try_lock_shared(&shared.rwlock)); /* The writer that left holds none back. */
    rt_rwlock_unlock_shared(&shared.rwlock);
    rt_rwlock_unlock_shared(&shared.rwlock);
    rt_rwlock_unlock_shared(&shared.rwlock);
    rt_rwlock_lock(&shared.rwlock);
    assert_int_equal(rt_rwlock_lock_shared_until(&shared.rwlock, 0), ERR_BUSY);
    rt_rwlock_unlock(&shared.rwlock);
}

static void
queue_producer(void *arg)
{
    Shared *shared = arg;
    for (u32 i = 0; i < ROUNDS; i++) {
        rt_mutex_lock(&shared->mutex);
        shared->queue++;
        if (i % 100 == 99)
            rt_cond_broadcast(&shared->cond, &shared->mutex);
        else
            rt_cond_signal(&shared->cond);
        rt_mutex_unlock(&shared->mutex);
    }
    rt_mutex_lock(&shared->mutex);
    shared->producers_left--;
    rt_cond_broadcast(&shared->cond, &shared->mutex);
    rt_mutex_unlock(&shared->mutex);
}

static void
queue_consumer(void *arg)
{
    Shared *shared = arg;
    rt_mutex_lock(&shared->mutex);
    for (u32 i = 0;; i++) {
        while (shared->queue == 0 && shared->producers_left > 0) {
            if (i % 5 == 0)
                (void)!rt_cond_wait_until(&shared->cond, &shared->mutex, rt_deadline_after(10000));
            else
                rt_cond_wait(&shared->cond, &shared->mutex);
            assert_true(rt_mutex_is_locked(&shared->mutex));
        }
        if (shared->queue == 0) break;
        shared->queue--;
        shared->taken++;
    }
    rt_mutex_unlock(&shared->mutex);
}

static void
queue_side(void *arg)
{
    Shared *shared = arg;
    if (rt_fetch_add(&shared->sem.word, 2) % 4 == 0)
        queue_producer(shared);
    else
        queue_consumer(shared);
}

static void
condition_delivers_all(void **state)
{
    (void)state;
    Shared shared = {.producers_left = THREADS / 2};
    run_threads(queue_side, &shared);
    assert_int_equal(shared.taken, THREADS / 2 * ROUNDS);
}

static void
semaphore_rounds(void *arg)
{
    Shared *shared = arg;
    for (u32 i = 0; i < ROUNDS; i++) {
        if (i % 4 == 0) {
            if (rt_sem_acquire_until(&shared->sem, rt_deadline_after(5000)) != OK) continue;
        } else
            rt_sem_acquire(&shared->sem);
        u64 inside = __atomic_add_fetch(&shared->plain, 1, __ATOMIC_RELAXED);
        assert_true(inside <= 2);
        if (i % 16 == 0) rt_yield();
        __atomic_sub_fetch(&shared->plain, 1, __ATOMIC_RELAXED);
        rt_sem_release(&shared->sem, 1);
    }
}

static void
semaphore_counts(void **state)
{
    (void)state;
    Shared shared = {0};
    rt_sem_init(&shared.sem, 2);
    run_threads(semaphore_rounds, &shared);
    assert_int_equal(rt_load(&shared.sem.word) >> 1, 2);
    assert_true(rt_sem_try_acquire(&shared.sem));
    assert_true(rt_sem_try_acquire(&shared.sem));
    assert_false(rt_sem_try_acquire(&shared.sem));
    assert_int_equal(rt_sem_acquire_until(&shared.sem, 0), ERR_BUSY);
}

static void
latch_rounds(void *arg)
{
    Shared *shared = arg;
    for (u32 i = 0; i < ROUNDS; i++) {
        if (i % 8 == 0) {
            if (!rt_latch_try_acquire(&shared->latch)) continue;
            shared->plain2++;
        } else
            rt_latch_acquire(&shared->latch);
        shared->plain++;
        rt_latch_release(&shared->latch);
    }
}

static void
latch_excludes_and_counts(void **state)
{
    (void)state;
    Shared shared = {0};
    rt_latch_init(&shared.latch, 10);
    run_threads(latch_rounds, &shared);
    assert_int_equal(shared.plain, THREADS * (ROUNDS - ROUNDS / 8) + shared.plain2);
    RtLatch upper;
    rt_latch_init(&upper, 20 | RT_RANK_MANY);
    rt_latch_acquire(&shared.latch);
    rt_latch_acquire(&upper);
    rt_latch_enter(20 | RT_RANK_MANY);
    assert_true(rt_latch_any_held());
    assert_int_equal(rt_self()->latches, 3);
    rt_latch_release(&shared.latch); /* Any order of release. */
    rt_latch_leave(20 | RT_RANK_MANY);
    rt_latch_release(&upper);
    assert_false(rt_latch_any_held());
}

static Err
once_body(void *arg)
{
    Shared *shared = arg;
    shared->plain++;
    rt_yield();
    return shared->plain < 3 ? ERR_IO : OK;
}

static RtOnce once;
static void
once_side(void *arg)
{
    while (rt_once(&once, once_body, arg) != OK) {
    }
}

static void
once_runs_until_success(void **state)
{
    (void)state;
    Shared shared = {0};
    run_threads(once_side, &shared);
    assert_int_equal(shared.plain, 3);
}

static void
wait_cancelled(void *arg)
{
    Shared *shared = arg;
    assert_int_equal(rt_mutex_lock_until(&shared->mutex, RT_FOREVER), ERR_INTERRUPT);
    assert_int_equal(rt_sleep_ns(3600 * RT_NS_PER_S), ERR_INTERRUPT);
    assert_int_equal(rt_check(), ERR_INTERRUPT);
    rt_task_clear_cancel(rt_self());
    assert_int_equal(rt_check(), OK);
    rt_task_set_deadline(rt_self(), rt_now_ns());
    Err err = OK;
    for (u32 i = 0; i < 200 && err == OK; i++)
        err = rt_check();
    assert_int_equal(err, ERR_TIMEOUT);
}

static void
cancel_ends_waits(void **state)
{
    (void)state;
    Shared shared = {0};
    RtThread *thread;
    rt_mutex_lock(&shared.mutex);
    assert_int_equal(rt_thread_start(rt_process(), wait_cancelled, &shared, "waiter", &thread), OK);
    assert_int_equal(rt_sleep_ns(2000000), OK);
    rt_task_cancel(rt_thread_task(thread));
    rt_thread_join(thread);
    rt_mutex_unlock(&shared.mutex);
}

static void
event_side(void *arg)
{
    RtEvent *event = arg;
    rt_event_set(event);
}

static void
event_stays_set(void **state)
{
    (void)state;
    for (u32 i = 0; i < 200; i++) {
        RtEvent *event = MEM_NEW(RtEvent);
        RtThread *thread;
        assert_int_equal(rt_event_wait_until(event, 0), ERR_BUSY);
        assert_int_equal(rt_thread_start(rt_process(), event_side, event, "setter", &thread), OK);
        rt_event_wait(event);
        assert_true(rt_event_is_set(event));
        mem_free(event); /* Right after the wake: the setter must not touch it again. */
        rt_thread_join(thread);
    }
}

static void
entered_task_is_current(void **state)
{
    (void)state;
    RtTask task;
    RtTask *outer = rt_self();
    rt_task_init(&task, rt_process_default(), "connection");
    assert_int_not_equal(task.id, outer->id);
    RtTask *before = rt_task_enter(&task);
    assert_ptr_equal(before, outer);
    assert_ptr_equal(rt_self(), &task);
    rt_task_cancel(&task);
    assert_int_equal(rt_sleep_ns(RT_NS_PER_S), ERR_INTERRUPT);
    rt_task_leave(before);
    assert_ptr_equal(rt_self(), outer);
    assert_int_equal(rt_check(), OK);
    assert_true(rt_stack_left() > 100000);
}

typedef struct Crowd {
    RtMutex mutex;
    RtCond cond;
    u32 waiting;
    bool may_go;
} Crowd;

static void
one_of_many(void *arg)
{
    Crowd *crowd = arg;
    rt_mutex_lock(&crowd->mutex);
    crowd->waiting++;
    while (!crowd->may_go)
        rt_cond_wait(&crowd->cond, &crowd->mutex);
    crowd->waiting--;
    rt_mutex_unlock(&crowd->mutex);
}

/* One broadcast is enough for all, though it moves them to the mutex' queue. */
static void
a_broadcast_reaches_all(void **state)
{
    (void)state;
    Crowd crowd = {0};
    RtThread *threads[6];
    for (u32 i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(rt_thread_start(rt_process(), one_of_many, &crowd, "one", &threads[i]),
                         OK);
    for (bool are_in = false; !are_in; rt_mutex_unlock(&crowd.mutex)) {
        rt_mutex_lock(&crowd.mutex);
        are_in = crowd.waiting == COUNT_OF(threads);
        if (are_in) crowd.may_go = true;
        if (are_in) rt_cond_broadcast(&crowd.cond, &crowd.mutex);
    }
    for (u32 i = 0; i < COUNT_OF(threads); i++)
        rt_thread_join(threads[i]);
    assert_int_equal(crowd.waiting, 0);
}

typedef struct Old {
    RtMutex mutex;
    RtEvent may_end;
} Old;

static void
old_waiter(void *arg)
{
    Old *old = arg;
    rt_mutex_lock(&old->mutex);
    rt_event_wait(&old->may_end);
    rt_mutex_unlock(&old->mutex);
}

/* Whoever waited over 1 ms gets the lock from the unlock itself: nobody can barge past. */
static void
an_old_waiter_is_handed_the_lock(void **state)
{
    (void)state;
    Old old = {0};
    RtThread *thread;
    RtCounters before, now;
    rt_process_counters(rt_process(), &before);
    rt_mutex_lock(&old.mutex);
    assert_int_equal(rt_thread_start(rt_process(), old_waiter, &old, "old", &thread), OK);
    do
        rt_process_counters(rt_process(), &now);
    while (now.parks == before.parks);
    assert_int_equal(rt_sleep_ns(2 * RT_NS_PER_MS), OK);
    rt_mutex_unlock(&old.mutex);
    assert_false(rt_mutex_try_lock(&old.mutex));
    rt_event_set(&old.may_end);
    rt_thread_join(thread);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broadcast_reaches_all),
        cmocka_unit_test(an_old_waiter_is_handed_the_lock),
        cmocka_unit_test(mutex_excludes),
        cmocka_unit_test(rwlock_excludes),
        cmocka_unit_test(condition_delivers_all),
        cmocka_unit_test(semaphore_counts),
        cmocka_unit_test(latch_excludes_and_counts),
        cmocka_unit_test(once_runs_until_success),
        cmocka_unit_test(cancel_ends_waits),
        cmocka_unit_test(event_stays_set),
        cmocka_unit_test(entered_task_is_current),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
