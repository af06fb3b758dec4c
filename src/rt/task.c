/*
 * task.c -- the current task: thread-local pointer, entering and leaving, cancel, rt_check.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rt/net.h"
#include "rt/process_impl.h"
#include "rt/time.h"

RT_TLS RtTls rt__tls;

#define CHECKS_PER_CLOCK    64 /* On a thread. */
#define CHECKS_MAX          32 /* On a fiber: kernels of 1 ms a call still give way in time. */
#define CHECK_CLOCK_NS      (RT_NS_PER_MS / 4)
#define STACK_MARGIN_BYTES  ((size_t)16 << 10)
#define STACK_UNKNOWN_BYTES ((size_t)96 << 10)
#define PEER_LOOK_NS        (50 * RT_NS_PER_MS)

/* Where the thread's stack ends, less a margin for signal handlers and libc. */
static char *
thread_stack_low(void)
{
    pthread_attr_t attr;
    void *low = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &low, &bytes) != 0) low = NULL;
        pthread_attr_destroy(&attr);
    }
    char *here = __builtin_frame_address(0);
    if (low == NULL || here < (char *)low || here > (char *)low + bytes)
        return here - STACK_UNKNOWN_BYTES; /* A stack of the host's own making. */
    return (char *)low + STACK_MARGIN_BYTES;
}

static char *
tls_stack_low(void)
{
    if (UNLIKELY(rt__tls.stack_low == NULL)) rt__tls.stack_low = thread_stack_low();
    return rt__tls.stack_low;
}

void
rt_task_init(RtTask *task, RtProcess *process, const char *name)
{
    *task = (RtTask){.kind = RT_TASK_THREAD, .process = process, .name = name};
    task->id = rt_fetch_add(&process->task_ids, 1) + 1;
}

NOINLINE RtTask *
rt__self_make(void)
{
    RtTask *own = &rt__tls.own;
    if (own->process == NULL) rt_task_init(own, rt_process_default(), "host thread");
    own->stack_low = tls_stack_low();
    rt__tls.current = own;
    return own;
}

RtTask *
rt_self(void)
{
    return rt__self();
}

const void *
rt_runner(void)
{
    const RtTask *self = rt__self();
    const RtTask *base = rt_load_relaxed(&self->base);
    if (base != NULL) return base;
    return self->sched != NULL ? (const void *)self : (const void *)&rt__tls;
}

RtTask *
rt_task_enter(RtTask *task)
{
    RtTask *previous = rt__self();
    ASSERT(previous->latches == 0 && task->latches == 0);
    RtTask *base = rt_load_relaxed(&previous->base);
    if (base == NULL && previous->sched != NULL) base = previous;
    task->kind = previous->kind;
    task->sched = previous->sched;
    task->loop = previous->loop;
    task->loop_number = previous->loop_number;
    task->owner = previous->owner;
    task->stack_low = previous->stack_low;
    /* From here a canceller knows whom to wake; CANCEL set before is seen by the next park.  A
       thread has no base, before and after: nothing to publish. */
    if (base != NULL || rt_load_relaxed(&task->base) != NULL) rt_store(&task->base, base);
    rt__tls.current = task;
    return previous;
}

void
rt_task_leave(RtTask *previous)
{
    RtTask *task = rt__self();
    if (rt_load_relaxed(&task->base) != NULL) rt_store(&task->base, NULL);
    rt__tls.current = previous;
}

void
rt_task_cancel(RtTask *task)
{
    rt_yield_point();
    atomic_fetch_or(&task->word.atom, RT_TASK_CANCEL);
    /* An embedded task knows its fiber by `base`; a fiber's own task is its own base. */
    RtTask *base = atomic_load(&task->base.atom);
    if (base != NULL)
        base->sched->look(base);
    else if (task->is_base && task->sched != NULL)
        task->sched->look(task);
    else
        rt__futex_wake(&task->word.atom, 1);
}

void
rt_task_clear_cancel(RtTask *task)
{
    rt_fetch_and(&task->word, ~RT_TASK_CANCEL);
}

bool
rt_task_is_cancelled(const RtTask *task)
{
    return (rt_load_acquire(&task->word) & RT_TASK_CANCEL) != 0;
}

u64
rt_task_set_deadline(RtTask *task, u64 deadline_ns)
{
    u64 former = task->deadline_ns;
    task->deadline_ns = deadline_ns;
    return former;
}

void
rt__futex_wait(const _Atomic u32 *word, u32 value, u64 deadline_ns)
{
    struct timespec at = {.tv_sec = (time_t)(deadline_ns / RT_NS_PER_S),
                          .tv_nsec = (long)(deadline_ns % RT_NS_PER_S)};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
            deadline_ns == RT_FOREVER ? NULL : &at, NULL, FUTEX_BITSET_MATCH_ANY);
}

void
rt__futex_wake(const _Atomic u32 *word, u32 count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static u32
thread_sleep(RtTask *task, u64 deadline_ns, u32 wanted)
{
    for (;;) {
        u32 seen = atomic_load_explicit(&task->word.atom, memory_order_acquire);
        if (seen & wanted) return seen & RT_TASK_TOKEN ? RT_TASK_TOKEN : RT_TASK_CANCEL;
        if (deadline_ns != RT_FOREVER && rt_now_ns() >= deadline_ns) return 0;
        rt__futex_wait(&task->word.atom, seen, deadline_ns);
    }
}

u32
rt__task_sleep(RtTask *task, u64 deadline_ns, bool cancellable)
{
    u32 wanted = RT_TASK_TOKEN | (cancellable ? RT_TASK_CANCEL : 0);
    if (task->sched != NULL) return task->sched->sleep(task, deadline_ns, wanted);
    return thread_sleep(task, deadline_ns, wanted);
}

void
rt__task_wake(RtTask *task)
{
    /* Everything needed is read before TOKEN: afterwards the task may be gone. */
    const RtSched *sched = task->sched;
    RtTask *base = atomic_load_explicit(&task->base.atom, memory_order_relaxed);
    if (base == NULL) base = task;
    _Atomic u32 *word = &task->word.atom;
    atomic_fetch_or(word, RT_TASK_TOKEN);
    if (sched != NULL)
        sched->look(base);
    else
        rt__futex_wake(word, 1);
}

/*
 * A fiber's slice; and how many calls may pass until the next look at the clock, so that about
 * CHECK_CLOCK_NS lie between two looks.
 */
static void
check_slice(RtTask *task, u64 now_ns)
{
    u64 since_ns = MAX_OF(task->checked_ns, task->sched->turn_began(task));
    u64 every = MAX_OF(task->checks_every, 1u), took_ns = now_ns - MIN_OF(since_ns, now_ns);
    every = took_ns > CHECK_CLOCK_NS ? every * CHECK_CLOCK_NS / took_ns
                                     : MIN_OF(every * 2, CHECKS_MAX);
    task->checks_every = (u32)MAX_OF(every, 1u);
    task->checks_left = task->checks_every - 1;
    task->checked_ns = now_ns;
    task->sched->slice(task, now_ns);
}

static Err
check_slowly(RtTask *task)
{
    u64 now = rt_now_ns();
    task->checks_left = CHECKS_PER_CLOCK - 1;
    if (task->deadline_ns != 0 && now >= task->deadline_ns) return ERR_TIMEOUT;
    if (task->watched != NULL && now - task->watched_ns >= PEER_LOOK_NS) {
        task->watched_ns = now;
        RtPeer peer = rt_socket_peer(task->watched);
        if (peer == RT_PEER_RESET || (peer == RT_PEER_FINISHED && task->watch_finish)) {
            rt_task_cancel(task);
            return ERR_INTERRUPT;
        }
    }
    if (task->sched != NULL) check_slice(task, now);
    return OK;
}

Err
rt_check(void)
{
    RtTask *task = rt__self();
    rt_yield_point();
    if (UNLIKELY(rt_load_relaxed(&task->word) & RT_TASK_CANCEL)) return ERR_INTERRUPT;
    if (UNLIKELY(task->checks_left == 0)) return check_slowly(task);
    task->checks_left--;
    return OK;
}

void
rt_yield(void)
{
    RtTask *task = rt__self();
    if (task->sched != NULL)
        task->sched->yield(task);
    else
        sched_yield();
}

size_t
rt_stack_left(void)
{
    RtTask *task = rt__self();
    char *here = __builtin_frame_address(0);
    char *low = task->stack_low != NULL ? task->stack_low : tls_stack_low();
    if (task->sched != NULL && task->sched->stack_at != NULL) task->sched->stack_at(task, here);
    return here > low ? (size_t)(here - low) : 0;
}
