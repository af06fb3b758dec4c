/*
 * loop.c -- one loop: its queues, timers, inbox, and the cycle that serves them.
 *
 * A sleeping loop is woken by one eventfd write: whoever posts stores first and then looks at
 * is_asleep; the loop sets is_asleep first and then looks at what was posted (Dekker, seq_cst).
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "rt/fiber/loop_impl.h"
#include "rt/time.h"

#define TURNS_PER_POLL   256
#define STACK_RETRY_NS   (10 * RT_NS_PER_MS)
#define POLL_EVERY_NS    (1 * RT_NS_PER_MS)
#define EVENTS_PER_POLL  RT_BATCH_MAX
#define TOUCHED_TOGETHER 8

Err
rt__timers_owe(RtLoop *loop)
{
    if (loop->timers_owed == loop->timer_capacity) {
        u32 capacity = loop->timer_capacity == 0 ? 64 : loop->timer_capacity * 2;
        RtTimer **timers = mem_realloc(loop->timers, capacity * sizeof(*timers));
        if (timers == NULL) return ERR_NOMEM;
        loop->timers = timers;
        loop->timer_capacity = capacity;
    }
    loop->timers_owed++;
    return OK;
}

static void
timer_put(RtLoop *loop, u32 at, RtTimer *timer)
{
    loop->timers[at] = timer;
    timer->at = at + 1;
}

static void
timer_rise(RtLoop *loop, u32 at, RtTimer *timer)
{
    while (at > 0 && loop->timers[(at - 1) / 2]->deadline_ns > timer->deadline_ns) {
        timer_put(loop, at, loop->timers[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    timer_put(loop, at, timer);
}

static void
timer_sink(RtLoop *loop, u32 at, RtTimer *timer)
{
    for (;;) {
        u32 child = 2 * at + 1;
        if (child >= loop->timer_count) break;
        if (child + 1 < loop->timer_count &&
            loop->timers[child + 1]->deadline_ns < loop->timers[child]->deadline_ns)
            child++;
        if (loop->timers[child]->deadline_ns >= timer->deadline_ns) break;
        timer_put(loop, at, loop->timers[child]);
        at = child;
    }
    timer_rise(loop, at, timer);
}

void
rt__timer_add(RtLoop *loop, RtTimer *timer, u64 deadline_ns)
{
    ASSERT(timer->at == 0 && loop->timer_count < loop->timer_capacity);
    timer->deadline_ns = deadline_ns;
    timer_rise(loop, loop->timer_count++, timer);
}

void
rt__timer_remove(RtLoop *loop, RtTimer *timer)
{
    if (timer->at == 0) return;
    u32 at = timer->at - 1;
    RtTimer *last = loop->timers[--loop->timer_count];
    timer->at = 0;
    if (last != timer) timer_sink(loop, at, last);
}

static void
timers_fire(RtLoop *loop)
{
    while (loop->timer_count > 0 && loop->timers[0]->deadline_ns <= loop->now_ns) {
        RtTimer *timer = loop->timers[0];
        rt__timer_remove(loop, timer);
        if (timer->is_reg)
            rt__reg_timed_out(timer);
        else
            rt__fiber_ready(CONTAINER_OF(timer, RtFiber, timer));
    }
}

void
rt__loop_poke(RtLoop *loop)
{
    if (atomic_load(&loop->is_asleep) != 0 && atomic_exchange(&loop->is_asleep, 0) != 0) {
        u64 one = 1;
        ssize_t done = write(loop->event_fd, &one, sizeof(one));
        (void)done; /* EAGAIN: the counter is full, so the loop will wake anyway. */
    }
}

void
rt__loop_post(RtLoop *loop, RtJob *job)
{
    RtJob *head = atomic_load_explicit(&loop->jobs, memory_order_relaxed);
    do {
        job->next = head;
    } while (!atomic_compare_exchange_weak(&loop->jobs, &head, job));
    rt__loop_poke(loop);
}

static void
inbox_drain(RtLoop *loop)
{
    RtFiber *fiber = atomic_exchange(&loop->inbox, NULL);
    while (fiber != NULL) {
        RtFiber *next = fiber->inbox_next;
        atomic_store(&fiber->is_looked, 0); /* Before the look: a later change posts again. */
        rt__fiber_look_here(fiber);
        fiber = next;
    }
}

static bool
job_start(RtLoop *loop, RtJob *job)
{
    RtFiber *fiber = rt__fiber_new(loop);
    if (fiber == NULL) return false;
    rt__fiber_start(fiber, job);
    rt__fiber_ready(fiber);
    mem_free(job);
    return true;
}

/* Jobs come newest first; they start in the order of asking, as far as stacks go. */
static void
jobs_start(RtLoop *loop)
{
    RtJob *job = atomic_exchange(&loop->jobs, NULL), *ordered = NULL;
    while (job != NULL) {
        RtJob *next = job->next;
        job->next = ordered;
        ordered = job;
        job = next;
    }
    if (ordered != NULL) {
        *loop->waiting_tail = ordered;
        while (*loop->waiting_tail != NULL)
            loop->waiting_tail = &(*loop->waiting_tail)->next;
    }
    while ((job = loop->waiting) != NULL) {
        loop->waiting = job->next;
        if (loop->waiting == NULL) loop->waiting_tail = &loop->waiting;
        if (job_start(loop, job)) continue;
        job->next = loop->waiting; /* No stack now: when a fiber ends. */
        if (loop->waiting == NULL) loop->waiting_tail = &job->next;
        loop->waiting = job;
        return;
    }
}

/*
 * Thousands of connections fit neither into the caches nor into the table of page addresses, so
 * the first look at each would wait for memory.  Several at once wait together.  (A prefetch would
 * do, but not where the page's address is missing too.)
 */
static void
stacks_touch(const RtReady *ready)
{
    for (u32 i = 0; i < TOUCHED_TOGETHER && ready != NULL; i++, ready = ready->next) {
        if (ready->is_reg) continue;
        const RtFiber *fiber = CONTAINER_OF(ready, RtFiber, ready);
        rt__fiber_touch(fiber);
        if (fiber->waits_for != NULL) __builtin_prefetch(fiber->waits_for);
    }
}

/* Turns until nothing is ready, or it is time to look at the world again. */
static void
turns_take(RtLoop *loop)
{
    u64 until_ns = loop->now_ns + POLL_EVERY_NS;
    for (u32 turns = 0; turns < TURNS_PER_POLL && loop->now_ns < until_ns; turns++) {
        if (loop->batched > 0 && rt__batch_is_due(loop)) rt__batch_flush(loop);
        if (turns % TOUCHED_TOGETHER == 0) stacks_touch(loop->light.head);
        RtReady *ready = rt__ready_take(loop);
        if (ready == NULL) return;
        RtFiber *fiber = ready->is_reg ? rt__reg_start(ready) : CONTAINER_OF(ready, RtFiber, ready);
        if (fiber != NULL) rt__fiber_run(loop, fiber);
    }
    rt__batch_flush(loop);
}

static bool
has_ready(const RtLoop *loop)
{
    return loop->light.head != NULL || loop->ring_head != NULL;
}

static bool
has_posted(RtLoop *loop)
{
    return atomic_load(&loop->inbox) != NULL || atomic_load(&loop->jobs) != NULL ||
           atomic_load(&loop->all->shared) != NULL || atomic_load(&loop->must_stop) != 0;
}

static int
poll_wait(RtLoop *loop, struct epoll_event *events, u64 wait_ns)
{
    if (wait_ns == 0) return epoll_wait(loop->epoll_fd, events, EVENTS_PER_POLL, 0);
    /* Without a deadline the kernel need not set a timer. */
    if (wait_ns == RT_FOREVER) return epoll_wait(loop->epoll_fd, events, EVENTS_PER_POLL, -1);
    struct timespec wait = {(time_t)(wait_ns / RT_NS_PER_S), (long)(wait_ns % RT_NS_PER_S)};
    int count = epoll_pwait2(loop->epoll_fd, events, EVENTS_PER_POLL, &wait, NULL);
    if (count >= 0 || errno != ENOSYS) return count;
    u64 wait_ms = wait_ns / RT_NS_PER_MS + 1;
    return epoll_wait(loop->epoll_fd, events, EVENTS_PER_POLL, (int)MIN_OF(wait_ms, 60000));
}

static bool
is_of_reg(const RtLoop *loop, const struct epoll_event *event)
{
    return event->data.ptr != &loop->event_fd && event->data.ptr != &loop->ring;
}

static void
regs_touch(const RtLoop *loop, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++)
        __builtin_prefetch(events[i].data.ptr, 1);
    for (int i = 0; i < count; i++) {
        if (is_of_reg(loop, &events[i])) rt__reg_touch(events[i].data.ptr);
    }
    for (int i = 0; i < count; i++) {
        if (is_of_reg(loop, &events[i])) rt__reg_touch_request(events[i].data.ptr);
    }
}

static void
world_look(RtLoop *loop)
{
    struct epoll_event events[EVENTS_PER_POLL];
    u64 wait_ns = 0;
    if (!has_ready(loop)) {
        u64 next_ns = loop->timer_count > 0 ? loop->timers[0]->deadline_ns : RT_FOREVER;
        /* Jobs wait for a stack: one is free, or others give memory back and nobody tells us. */
        if (UNLIKELY(loop->waiting != NULL))
            next_ns = MIN_OF(next_ns, loop->now_ns + (loop->free != NULL ? 0 : STACK_RETRY_NS));
        u64 left_ns = next_ns <= loop->now_ns ? 0 : next_ns - loop->now_ns;
        atomic_store(&loop->is_asleep, 1);
        if (!has_posted(loop)) wait_ns = next_ns == RT_FOREVER ? RT_FOREVER : left_ns;
    }
    int count = poll_wait(loop, events, wait_ns);
    atomic_store(&loop->is_asleep, 0);
    loop->now_ns = rt_now_ns();
#ifdef WEFT_CHECK
    loop->looked_cpu_ns = rt_cpu_ns(); /* A system call: not in production. */
#endif
    regs_touch(loop, events, count);
    for (int i = 0; i < count; i++) {
        void *what = events[i].data.ptr;
        if (what == &loop->event_fd) {
            u64 number;
            ssize_t got = read(loop->event_fd, &number, sizeof(number));
            (void)got;
        } else if (what == &loop->ring)
            rt__ring_reap(loop->ring);
        else
            rt__reg_event(what, events[i].events, count > 1);
    }
    if (loop->batched > 0) rt__batch_flush(loop);
}

static void
loop_cycle(RtLoop *loop)
{
    inbox_drain(loop);
    jobs_start(loop);
    timers_fire(loop);
    turns_take(loop);
    if (!has_ready(loop)) {
        RtJob *job = rt__loops_take_shared(loop->all);
        if (job != NULL) {
            atomic_fetch_add(&loop->live, 1);
            rt__loop_adopt(loop, job);
            return;
        }
    }
    world_look(loop);
}

void
rt__loop_adopt(RtLoop *loop, RtJob *job)
{
    job->next = NULL;
    *loop->waiting_tail = job;
    loop->waiting_tail = &job->next;
}

void
rt__loop_main(void *arg)
{
    RtLoop *loop = arg;
    RtTask *task = rt__self();
    task->loop = loop;
    rt__context_of_thread(&loop->context);
    loop->now_ns = rt_now_ns();
    loop->handler_stack = rt__overflow_stack_use();
    if (loop->all->has_ring) rt__batch_start(loop);
    while (atomic_load(&loop->must_stop) == 0)
        loop_cycle(loop);
    ASSERT(atomic_load(&loop->live) == 0);
    rt__fibers_free(loop);
    rt__batch_end(loop);
    rt__overflow_stack_end(loop->handler_stack);
    task->loop = NULL;
}

Err
rt__loop_new(RtLoops *all, u32 index, RtLoop **loop_out)
{
    RtLoop *loop = mem_alloc_aligned(64, sizeof(RtLoop));
    *loop_out = loop;
    if (loop == NULL) return ERR_NOMEM;
    *loop = (RtLoop){.all = all, .index = index, .epoll_fd = -1, .event_fd = -1};
    loop->waiting_tail = &loop->waiting;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &loop->event_fd};
    if (loop->epoll_fd < 0 || loop->event_fd < 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->event_fd, &event) != 0)
        return rt__errno_err(errno, ERR_LIMIT);
    return OK;
}

void
rt__loop_free(RtLoop *loop)
{
    if (loop == NULL) return;
    rt__ring_free(loop->ring);
    rt__regs_free(loop);
    if (loop->event_fd >= 0) close(loop->event_fd);
    if (loop->epoll_fd >= 0) close(loop->epoll_fd);
    mem_free(loop->timers);
    mem_free(loop);
}
