/*
 * regs.c -- descriptors registered with a loop's epoll, edge-triggered, once for their life.
 *
 * reg->ready collects what epoll reported.  A wait returns at once if its bit is set, and clears
 * it; then the caller tries its call, and only EAGAIN brings it back.  So readiness that came
 * after the last EAGAIN is never lost, and a stale bit costs one idle try.
 *
 * After a short read the caller waits before it tries (point->is_drained).  A finish that was
 * reported together with the bytes makes no edge of its own, so is_over keeps it.
 *
 * Registrations are type-stable: an event that epoll had already handed out for a closed one sets
 * bits of a stranger, which is harmless for the same reason.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "rt/fiber/loop_impl.h"
#include "rt/time.h"

struct RtReg {
    RtReg *next; /* In the free list. */
    RtReg *all_next;
    RtLoop *loop;
    RtTimer timer; /* Of an idle connection. */
    int fd;
    RtU32 ready;   /* RT_SOCKET_* */
    RtU32 is_over; /* The peer finished or is gone: reads no longer wait. */
    RtU32 latch;   /* Protects the fields below. */
    RtTask *watcher;
    bool watch_finish;
    RtTaskFn idle_fn; /* Set while the connection is parked without a task. */
    void *idle_arg;
};

static void
reg_lock(RtReg *reg)
{
    u32 rounds = 0, seen = 0;
    while (!rt_cas_weak(&reg->latch, &seen, 1)) {
        rt_spin(&rounds);
        seen = 0;
    }
}

static void
reg_unlock(RtReg *reg)
{
    rt_store_release(&reg->latch, 0);
}

static RtReg *
reg_new(RtLoop *loop)
{
    if (loop->free_regs == NULL) loop->free_regs = atomic_exchange(&loop->returned_regs, NULL);
    RtReg *reg = loop->free_regs;
    if (reg != NULL) {
        loop->free_regs = reg->next;
        return reg;
    }
    if (rt__timers_owe(loop) != OK) return NULL;
    reg = MEM_NEW(RtReg);
    if (reg == NULL) return NULL;
    reg->loop = loop;
    reg->timer.is_reg = true;
    reg->all_next = loop->regs;
    loop->regs = reg;
    return reg;
}

static void
reg_free(RtReg *reg)
{
    RtLoop *loop = reg->loop;
    if (rt__self()->loop == loop) {
        reg->next = loop->free_regs;
        loop->free_regs = reg;
        return;
    }
    RtReg *head = atomic_load(&loop->returned_regs);
    do {
        reg->next = head;
    } while (!atomic_compare_exchange_weak(&loop->returned_regs, &head, reg));
}

/* On the reg's own loop.  The idle connection becomes a fiber. */
static void
idle_start(RtReg *reg)
{
    RtLoop *loop = reg->loop;
    reg_lock(reg);
    RtJob job = {.fn = reg->idle_fn, .arg = reg->idle_arg, .name = "connection"};
    reg->idle_fn = NULL;
    reg_unlock(reg);
    if (job.fn == NULL) return;
    rt__timer_remove(loop, &reg->timer);
    /* Counted since it was parked: see rt__reg_when_readable(). */
    RtFiber *fiber = loop->waiting == NULL ? rt__fiber_new(loop) : NULL;
    if (fiber != NULL) {
        rt__fiber_start(fiber, &job);
        return;
    }
    /* No memory for a fiber now: keep it ready and try again soon. */
    reg_lock(reg);
    reg->idle_fn = job.fn;
    reg_unlock(reg);
    rt__timer_add(loop, &reg->timer, loop->now_ns + 10 * RT_NS_PER_MS);
}

void
rt__reg_timed_out(RtTimer *timer)
{
    idle_start(CONTAINER_OF(timer, RtReg, timer));
}

void
rt__reg_event(RtReg *reg, u32 events)
{
    u32 ready = 0;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) ready |= RT_SOCKET_READABLE;
    if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) ready |= RT_SOCKET_WRITABLE;
    if (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) rt_store(&reg->is_over, 1);
    rt_fetch_or(&reg->ready, ready);
    reg_lock(reg);
    bool is_gone = (events & (EPOLLERR | EPOLLHUP)) != 0;
    bool is_finished = (events & EPOLLRDHUP) != 0 && reg->watch_finish;
    if (reg->watcher != NULL && (is_gone || is_finished)) rt_task_cancel(reg->watcher);
    bool is_idle = reg->idle_fn != NULL;
    reg_unlock(reg);
    if (is_idle && (ready & RT_SOCKET_READABLE)) idle_start(reg);
    rt_unpark_all(reg);
}

static void
keeper_close(RtPoint *point)
{
    RtReg *reg = rt_load_acquire(&point->reg);
    epoll_ctl(reg->loop->epoll_fd, EPOLL_CTL_DEL, point->fd, NULL);
    reg_lock(reg);
    ASSERT(reg->idle_fn == NULL);
    reg->watcher = NULL;
    reg_unlock(reg);
    rt_store(&point->keeper, NULL);
    rt_store(&point->reg, NULL);
    reg_free(reg);
}

/* The descriptor is shut down already, so epoll reports it, and that wakes everybody. */
static void
keeper_shut(RtPoint *point)
{
    RtReg *reg = rt_load_acquire(&point->reg);
    rt_fetch_or(&reg->ready, RT_SOCKET_READABLE | RT_SOCKET_WRITABLE);
    rt_unpark_all(reg);
}

static void
keeper_watch(RtPoint *point, RtTask *task, bool on_finish)
{
    RtReg *reg = rt_load_acquire(&point->reg);
    reg_lock(reg);
    reg->watcher = task;
    reg->watch_finish = on_finish;
    reg_unlock(reg);
}

static const RtKeeper reg_keeper = {
    .close = keeper_close, .shut = keeper_shut, .watch = keeper_watch};

/* Register the point with the current loop if nobody has it. */
static Err
reg_of(RtPoint *point, RtReg **reg_out)
{
    RtTask *task = rt__self();
    RtReg *reg = NULL;
    *reg_out = NULL;
    if (rt_load_acquire(&point->keeper) == &reg_keeper) {
        *reg_out = rt_load_acquire(&point->reg);
        return OK;
    }
    reg = reg_new(task->loop);
    if (reg == NULL) return ERR_NOMEM;
    reg->fd = point->fd;
    rt_store(&reg->ready, 0);
    rt_store(&reg->is_over, 0);
    reg->watcher = NULL;
    /* One task reads and another writes: both may come here first. */
    void *seen = NULL;
    if (!rt_cas(&point->reg, &seen, reg)) {
        reg_free(reg);
        *reg_out = seen;
        return OK;
    }
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = reg};
    if (epoll_ctl(reg->loop->epoll_fd, EPOLL_CTL_ADD, point->fd, &event) != 0) {
        rt_store(&point->reg, NULL);
        reg_free(reg);
        return rt__errno_err(errno, ERR_LIMIT);
    }
    rt_store(&point->keeper, (void *)(uintptr_t)&reg_keeper);
    *reg_out = reg;
    return OK;
}

Err
rt__reg_keep(RtPoint *point)
{
    RtReg *reg;
    return reg_of(point, &reg);
}

Err
rt__reg_wait(RtPoint *point, u32 what, u64 deadline_ns, u32 *ready_out)
{
    RtReg *reg;
    Err err = reg_of(point, &reg);
    if (err != OK) return err;
    for (;;) {
        u32 ready = rt_fetch_and(&reg->ready, ~what) & what;
        if (rt_load(&point->is_shut)) ready = what;
        if (rt_load(&reg->is_over)) ready |= what & RT_SOCKET_READABLE;
        if (ready != 0) {
            *ready_out = ready;
            return OK;
        }
        RtParkResult result = rt_park(reg, &reg->ready, what, 0, deadline_ns, 0, 0);
        if (result == RT_TIMEOUT) return ERR_TIMEOUT;
        if (result == RT_CANCELLED) return ERR_INTERRUPT;
    }
}

/*
 * The coming fiber is counted now, so that the start later cannot meet the limit, and so that
 * rt_loops_stop() knows of it.
 */
Err
rt__reg_when_readable(RtPoint *point, u64 deadline_ns, RtTaskFn fn, void *arg)
{
    RtLoop *loop = rt__self()->loop;
    RtReg *reg;
    ASSERT(rt__self()->kind == RT_TASK_FIBER);
    if (atomic_load(&loop->all->is_closing)) return ERR_CLOSED;
    Err err = reg_of(point, &reg);
    if (err == OK && reg->loop != loop) {
        /* Sessions move by running elsewhere: so does their socket. */
        keeper_close(point);
        err = reg_of(point, &reg);
    }
    if (err != OK) return err;
    atomic_fetch_add(&loop->live, 1);
    atomic_fetch_add(&loop->all->live, 1);
    reg_lock(reg);
    ASSERT(reg->idle_fn == NULL);
    reg->idle_fn = fn;
    reg->idle_arg = arg;
    reg_unlock(reg);
    if (deadline_ns != RT_FOREVER) rt__timer_add(loop, &reg->timer, deadline_ns);
    /* What came before was reported to nobody: look once. */
    RtIo io = {.op = RT_IO_READY, .fd = point->fd, .flags = RT_SOCKET_READABLE};
    if (rt_load(&point->is_shut) || rt__io(point->process, &io) > 0) idle_start(reg);
    return OK;
}

void
rt__regs_wake_idle(RtLoop *loop)
{
    for (RtReg *reg = loop->regs; reg != NULL; reg = reg->all_next)
        idle_start(reg);
}

void
rt__regs_free(RtLoop *loop)
{
    RtReg *next;
    for (RtReg *reg = loop->regs; reg != NULL; reg = next) {
        next = reg->all_next;
        mem_free(reg);
    }
    loop->regs = loop->free_regs = NULL;
}
