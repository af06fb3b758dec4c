/*
 * park.c -- the table of wait queues.
 *
 * Invariants, all under the lock of a waiter's bucket:
 *  1. node->key != NULL exactly while the node is linked; whoever unlinks it (the waiter giving
 *     up, or a waker) decides the result.
 *  2. A waker that unlinked a node sets TOKEN afterwards, outside the lock, and that is its last
 *     touch: until then the waiter stays, so the node on its stack is alive.
 *  3. bucket->waiters counts linked nodes plus tasks about to compare; with the two seq_cst fences
 *     either the waker sees the count or the waiter sees the changed word.
 *
 * The words here are raw atomics: inside the simulator there must be no yield while a bucket is
 * locked, or the one real thread would block on itself.
 */
#include "rt/park.h"

#include "rt/process_impl.h"
#include "rt/rare.h"
#include "rt/time.h"

struct RtWaiter {
    RtWaiter *next, *prev;
    _Atomic(const void *) key; /* NULL once unlinked. */
    RtTask *task;
    u64 arg, since_ns;
    bool exclusive;
    u8 result; /* RtParkResult, valid once TOKEN is set. */
};

static RtBucket *
bucket_of(RtProcess *process, const void *key)
{
    u64 hash = (u64)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    return &process->buckets[hash >> 54];
}
STATIC_ASSERT(RT_BUCKETS == 1u << 10);

static void
bucket_lock(RtBucket *bucket)
{
    rt__sim_hold();
    u32 seen = 0;
    if (LIKELY(atomic_compare_exchange_strong_explicit(&bucket->lock, &seen, 1,
                                                       memory_order_acquire, memory_order_relaxed)))
        return;
    for (u32 i = 0; i < 100; i++) {
        rt__pause();
        seen = 0;
        if (atomic_load_explicit(&bucket->lock, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong_explicit(&bucket->lock, &seen, 1, memory_order_acquire,
                                                    memory_order_relaxed))
            return;
    }
    while (atomic_exchange_explicit(&bucket->lock, 2, memory_order_acquire) != 0)
        rt__futex_wait(&bucket->lock, 2, RT_FOREVER);
}

static void
bucket_unlock(RtBucket *bucket)
{
    if (UNLIKELY(atomic_exchange_explicit(&bucket->lock, 0, memory_order_release) == 2))
        rt__futex_wake(&bucket->lock, 1);
    rt__sim_release();
}

/* TSan does not model fences: there the count itself is the meeting point. */
static void
fence_on(RtBucket *bucket)
{
#ifdef WEFT_TSAN
    atomic_fetch_add(&bucket->waiters, 0);
#else
    (void)bucket;
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

static void
node_link(RtBucket *bucket, RtWaiter *node)
{
    node->next = NULL;
    node->prev = bucket->tail;
    if (bucket->tail != NULL)
        bucket->tail->next = node;
    else
        bucket->head = node;
    bucket->tail = node;
}

static void
node_unlink(RtBucket *bucket, RtWaiter *node)
{
    if (node->prev != NULL)
        node->prev->next = node->next;
    else
        bucket->head = node->next;
    if (node->next != NULL)
        node->next->prev = node->prev;
    else
        bucket->tail = node->prev;
}

/* The word to compare, of either width. */
typedef struct ParkWord {
    const RtU32 *narrow; /* Or NULL and */
    const RtU64 *wide;
    u64 mask, value;
} ParkWord;

static bool
word_matches(const ParkWord *word)
{
    u64 now;
    if (word->narrow != NULL)
        now = atomic_load_explicit(&((RtU32 *)(uintptr_t)word->narrow)->atom, memory_order_seq_cst);
    else
        now = atomic_load_explicit(&((RtU64 *)(uintptr_t)word->wide)->atom, memory_order_seq_cst);
    return (now & word->mask) == word->value;
}

/* The waiter gives up: true when it unlinked itself, false when a waker was first. */
static bool
node_withdraw(RtProcess *process, RtWaiter *node)
{
    for (;;) {
        const void *key = atomic_load_explicit(&node->key, memory_order_relaxed);
        if (key == NULL) return false;
        RtBucket *bucket = bucket_of(process, key);
        rt_yield_point();
        bucket_lock(bucket);
        /* A requeue may have moved the node to another bucket meanwhile. */
        bool is_here = atomic_load_explicit(&node->key, memory_order_relaxed) == key;
        if (is_here) {
            node_unlink(bucket, node);
            atomic_store_explicit(&node->key, NULL, memory_order_relaxed);
            atomic_fetch_sub(&bucket->waiters, 1);
        }
        bucket_unlock(bucket);
        if (is_here) return true;
        REACHED("park: moved to another key while giving up");
    }
}

static RtParkResult
park_sleep(RtTask *task, RtWaiter *node, u64 deadline_ns, bool cancellable)
{
    RtProcess *process = task->process;
    u32 why = rt__task_sleep(task, deadline_ns, cancellable);
    if (why & RT_TASK_TOKEN) return (RtParkResult)node->result;
    bool is_withdrawn = PLANT(1) ? true : node_withdraw(process, node);
    if (is_withdrawn) {
        if (why & RT_TASK_CANCEL)
            REACHED("park: withdrawn by a cancel");
        else
            REACHED("park: withdrawn at the deadline");
        bool is_cancel = (why & RT_TASK_CANCEL) != 0;
        rt__count(is_cancel ? &process->cancels : &process->timeouts, 1);
        return is_cancel ? RT_CANCELLED : RT_TIMEOUT;
    }
    /* A waker decided first: its token is on the way, and so is the answer. */
    REACHED("park: woken while giving up");
    why = rt__task_sleep(task, RT_FOREVER, false);
    ASSERT(why & RT_TASK_TOKEN);
    return (RtParkResult)node->result;
}

static RtParkResult
park(const void *key, const ParkWord *word, u64 deadline_ns, u32 flags, u64 arg)
{
    RtTask *task = rt__self();
    RtProcess *process = task->process;
    bool cancellable = (flags & RT_PARK_NOCANCEL) == 0;
    ASSERT(key != NULL);
    ASSERT(task->latches == 0 && task->guards == 0);
    rt_yield_point();
    if (cancellable && rt_task_is_cancelled(task)) return RT_CANCELLED;
    /* As if the word had changed and changed back. */
    if (word->mask != 0 && rt_rare("park: changed and back")) return RT_CHANGED;

    RtWaiter node = {.task = task,
                     .arg = arg,
                     .since_ns = rt_now_ns(),
                     .exclusive = (flags & RT_PARK_EXCLUSIVE) != 0};
    atomic_init(&node.key, key);
    RtBucket *bucket = bucket_of(process, key);
    bool planted = PLANT(2) && !word_matches(word);
    if (planted) return RT_CHANGED;
    if (PLANT(2)) rt_yield_point(); /* Compared too early: a wake may be lost here. */
    bucket_lock(bucket);
    atomic_fetch_add(&bucket->waiters, 1);
    fence_on(bucket);
    if (!PLANT(2) && !word_matches(word)) {
        atomic_fetch_sub(&bucket->waiters, 1);
        bucket_unlock(bucket);
        REACHED("park: the word changed before the sleep");
        return RT_CHANGED;
    }
    if (deadline_ns == 0) {
        atomic_fetch_sub(&bucket->waiters, 1);
        bucket_unlock(bucket);
        return RT_TIMEOUT;
    }
    atomic_fetch_and(&task->word.atom, ~RT_TASK_TOKEN);
    node_link(bucket, &node);
    bucket_unlock(bucket);
    rt__count(&process->parks, 1);
    return park_sleep(task, &node, deadline_ns, cancellable);
}

RtParkResult
rt_park_u32(const void *key, const RtU32 *word, u32 mask, u32 value, u64 deadline_ns, u32 flags,
            u64 arg)
{
    ParkWord compare = {.narrow = word, .mask = mask, .value = value};
    return park(key, &compare, deadline_ns, flags, arg);
}

RtParkResult
rt_park_u64(const void *key, const RtU64 *word, u64 mask, u64 value, u64 deadline_ns, u32 flags,
            u64 arg)
{
    ParkWord compare = {.wide = word, .mask = mask, .value = value};
    return park(key, &compare, deadline_ns, flags, arg);
}

static RtPick
pick(const RtWaiter *node, RtParkFilter filter, void *arg)
{
    if (filter == NULL) return RT_PICK_TAKE;
    RtWaiterInfo info = {.task = node->task,
                         .arg = node->arg,
                         .since_ns = node->since_ns,
                         .exclusive = node->exclusive};
    return filter(arg, &info);
}

/* Unlink up to `count` waiters of the key into a list of their own, in order. */
static RtWaiter *
bucket_choose(RtBucket *bucket, const void *key, u32 count, RtParkFilter filter, void *arg,
              RtParkChoice *choice)
{
    RtWaiter *chosen = NULL, **tail = &chosen;
    bool is_open = true;
    for (RtWaiter *node = bucket->head, *next; node != NULL; node = next) {
        next = node->next;
        if (atomic_load_explicit(&node->key, memory_order_relaxed) != key) continue;
        RtPick what = is_open && choice->found < count ? pick(node, filter, arg) : RT_PICK_SKIP;
        if (what == RT_PICK_STOP) is_open = false;
        if (what != RT_PICK_TAKE) {
            choice->more = true;
            if (!is_open || choice->found >= count) break;
            continue;
        }
        node_unlink(bucket, node);
        atomic_store_explicit(&node->key, NULL, memory_order_relaxed);
        if (choice->found == 0 || node->since_ns < choice->oldest_ns)
            choice->oldest_ns = node->since_ns;
        choice->found++;
        node->next = NULL;
        *tail = node;
        tail = &node->next;
    }
    atomic_fetch_sub(&bucket->waiters, choice->found);
    return chosen;
}

static void
wake_list(RtProcess *process, RtWaiter *node, u32 count)
{
    rt__count(&process->wakes, count);
    while (node != NULL) {
        RtWaiter *next = node->next;
        RtTask *task = node->task;
        node = next;
        rt__task_wake(task); /* The former node may be gone now. */
    }
}

u32
rt_unpark(const void *key, u32 count, RtParkFilter filter, RtParkDecide decide, void *arg)
{
    RtProcess *process = rt__self()->process;
    RtBucket *bucket = bucket_of(process, key);
    rt_yield_point();
    fence_on(bucket);
    if (decide == NULL && atomic_load(&bucket->waiters) == 0) return 0;

    RtParkChoice choice = {0};
    bucket_lock(bucket);
    RtWaiter *chosen = bucket_choose(bucket, key, count, filter, arg, &choice);
    RtParkResult result = decide != NULL ? decide(arg, &choice) : RT_WOKEN;
    for (RtWaiter *node = chosen; node != NULL; node = node->next)
        node->result = (u8)result;
    bucket_unlock(bucket);
    wake_list(process, chosen, choice.found);
    return choice.found;
}

static void
requeue_move(RtBucket *source, const void *from, RtBucket *target, const void *to, u32 *moved)
{
    for (RtWaiter *node = source->head, *next; node != NULL; node = next) {
        next = node->next;
        if (atomic_load_explicit(&node->key, memory_order_relaxed) != from) continue;
        node_unlink(source, node);
        atomic_store_explicit(&node->key, to, memory_order_relaxed);
        node_link(target, node);
        (*moved)++;
    }
    atomic_fetch_sub(&source->waiters, *moved);
    atomic_fetch_add(&target->waiters, *moved);
}

u32
rt_unpark_requeue(const void *from, const void *to, RtRequeueWakes wakes, void *arg)
{
    RtProcess *process = rt__self()->process;
    RtBucket *source = bucket_of(process, from), *target = bucket_of(process, to);
    ASSERT(from != to);
    rt_yield_point();
    fence_on(source);
    if (atomic_load(&source->waiters) == 0) return 0;

    RtBucket *first = source < target ? source : target;
    RtBucket *second = source < target ? target : source;
    bucket_lock(first);
    if (second != first) bucket_lock(second);
    RtParkChoice choice = {0};
    RtWaiter *chosen = NULL;
    u32 moved = 0;
    bool any = false;
    for (RtWaiter *node = source->head; node != NULL && !any; node = node->next)
        any = atomic_load_explicit(&node->key, memory_order_relaxed) == from;
    if (any) {
        u32 wake = wakes(arg);
        if (wake > 0) chosen = bucket_choose(source, from, wake, NULL, NULL, &choice);
        for (RtWaiter *node = chosen; node != NULL; node = node->next)
            node->result = RT_WOKEN;
        requeue_move(source, from, target, to, &moved);
        if (moved > 0) REACHED("park: waiters moved to another key");
    }
    if (second != first) bucket_unlock(second);
    bucket_unlock(first);
    wake_list(process, chosen, choice.found);
    return choice.found + moved;
}

Err
rt_park_err(RtParkResult result)
{
    switch (result) {
    case RT_TIMEOUT: return ERR_BUSY;
    case RT_CANCELLED: return ERR_INTERRUPT;
    default: return OK;
    }
}
