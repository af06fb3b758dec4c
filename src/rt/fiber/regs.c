/*
 * regs.c -- descriptors registered with a loop's epoll, edge-triggered, once for their life.
 *
 * reg->ready collects what epoll reported.  A wait returns at once if its bit is set, and clears
 * it; then the caller tries its call, and only EAGAIN brings it back.  So readiness that came
 * after the last EAGAIN is never lost, and a stale bit costs one idle try.
 *
 * After a short read or an EAGAIN the caller waits before it tries (point->drained), and an idle
 * connection need not be asked for bytes when it is parked: what comes later makes an edge.  A
 * finish that was reported together with the bytes makes no edge of its own, so is_over keeps it.
 *
 * Nearly all waits are those of a fiber on the loop that keeps the descriptor.  There both sides
 * run on one thread, so the fiber is written down in the registration (`waiter`) and made ready by
 * the event itself: no lock, no queue, no other task's memory.  Everybody else parks on the reg.
 *
 * Registrations are type-stable: an event that epoll had already handed out for a closed one sets
 * bits of a stranger, which is harmless for the same reason.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "rt/fiber/loop_impl.h"
#include "rt/time.h"

struct RtReg {
    /* What an event touches, on one cache line.  From anywhere: */
    alignas(64) RtU32 ready; /* RT_SOCKET_* */
    RtU32 is_over;           /* The peer finished or is gone: reads no longer wait. */
    RtU32 parked;            /* Tasks that wait, or are about to, by parking on the reg. */
    RtU32 is_watched;        /* There is a watcher. */
    /* The loop's own: */
    RtFiber *waiter[2]; /* For reading, for writing; NULL: nobody, or parked on the reg. */
    RtTaskFn idle_fn;   /* Set while the connection is parked without a task. */
    void *idle_arg;
    RtPoint *point; /* For the cache; it is there while somebody waits. */
    RtReady place;  /* Of an idle connection that shall run. */

    bool is_starting; /* It is in that queue. */
    RtTimer timer;    /* Of an idle connection. */
    RtReg *next;      /* In the free list. */
    RtReg *all_next;
    RtLoop *loop;
    RtU32 latch; /* Protects the fields below. */
    RtTask *watcher;
    bool watch_finish;
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
    reg = mem_alloc_aligned(64, sizeof(RtReg));
    if (reg == NULL) return NULL;
    *reg = (RtReg){0};
    reg->place.is_reg = true;
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

/* On the reg's own loop.  The idle connection shall become a fiber: it queues like one. */
static void
idle_start(RtReg *reg)
{
    if (reg->idle_fn == NULL || reg->is_starting) return;
    reg->is_starting = true;
    rt__timer_remove(reg->loop, &reg->timer);
    rt__ready_light(reg->loop, &reg->place);
}

RtFiber *
rt__reg_start(RtReady *place)
{
    RtReg *reg = CONTAINER_OF(place, RtReg, place);
    RtLoop *loop = reg->loop;
    RtJob job = {.fn = reg->idle_fn, .arg = reg->idle_arg, .name = "connection"};
    reg->is_starting = false;
    /* Counted since it was parked: see rt__reg_when_readable(). */
    RtFiber *fiber = loop->waiting == NULL ? rt__fiber_new(loop) : NULL;
    if (fiber == NULL) {
        rt__timer_add(loop, &reg->timer, loop->now_ns + 10 * RT_NS_PER_MS);
        return NULL;
    }
    reg->idle_fn = NULL;
    rt__fiber_start(fiber, &job);
    return fiber;
}

void
rt__reg_timed_out(RtTimer *timer)
{
    idle_start(CONTAINER_OF(timer, RtReg, timer));
}

/* Cancel the task that watches this peer, if that is what happened. */
static void
watcher_tell(RtReg *reg, bool is_gone, bool is_finished)
{
    reg_lock(reg);
    bool is_told = is_gone || (is_finished && reg->watch_finish);
    if (reg->watcher != NULL && is_told) rt_task_cancel(reg->watcher);
    reg_unlock(reg);
}

void
rt__reg_touch(const RtReg *reg)
{
    if (reg->idle_fn != NULL) __builtin_prefetch(reg->point);
    if (reg->waiter[0] != NULL) __builtin_prefetch(reg->waiter[0], 1);
    if (reg->waiter[1] != NULL) __builtin_prefetch(reg->waiter[1], 1);
}

void
rt__reg_touch_request(const RtReg *reg)
{
    const RtFiber *fiber = reg->waiter[0];
    if (fiber == NULL || fiber->io == NULL) return;
    rt__fiber_touch(fiber);
    __builtin_prefetch(fiber->io, 1);
    __builtin_prefetch((const char *)fiber->io + 64, 1);
}

/* True if the fiber that waits to read left its request for the loop to carry out. */
static bool
request_take(RtReg *reg)
{
    RtFiber *fiber = reg->waiter[0];
    if (fiber == NULL || fiber->io == NULL || fiber->state != RT_FIBER_SLEEPING) return false;
    rt__batch_add(reg->loop, fiber);
    return true;
}

void
rt__reg_event(RtReg *reg, u32 events, bool has_company)
{
    u32 ready = 0;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) ready |= RT_SOCKET_READABLE;
    if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) ready |= RT_SOCKET_WRITABLE;
    if (UNLIKELY(events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP))) rt_store(&reg->is_over, 1);
    if ((ready & RT_SOCKET_READABLE) && reg->idle_fn != NULL) {
        /* For the new fiber, which tries first; not left for a later wait. */
        ready &= ~RT_SOCKET_READABLE;
        idle_start(reg);
    } else if ((ready & RT_SOCKET_READABLE) && has_company && request_take(reg))
        ready &= ~RT_SOCKET_READABLE;
    /* seq_cst on both sides: either the waiter sees the bits, or it is seen here. */
    atomic_fetch_or(&reg->ready.atom, ready);
    if (rt_load(&reg->is_over) && rt_load(&reg->is_watched))
        watcher_tell(reg, (events & (EPOLLERR | EPOLLHUP)) != 0, (events & EPOLLRDHUP) != 0);
    if ((ready & RT_SOCKET_READABLE) && reg->waiter[0] != NULL) rt__fiber_go(reg->waiter[0]);
    if ((ready & RT_SOCKET_WRITABLE) && reg->waiter[1] != NULL) rt__fiber_go(reg->waiter[1]);
    if (UNLIKELY(rt_load(&reg->parked) != 0)) rt_unpark_all(reg);
}

static void
keeper_close(RtPoint *point)
{
    RtReg *reg = rt_load_acquire(&point->reg);
    epoll_ctl(reg->loop->epoll_fd, EPOLL_CTL_DEL, point->fd, NULL);
    ASSERT(reg->idle_fn == NULL && reg->waiter[0] == NULL && reg->waiter[1] == NULL);
    reg_lock(reg);
    reg->watcher = NULL;
    rt_store(&reg->is_watched, 0);
    reg_unlock(reg);
    rt_store(&point->keeper, NULL);
    rt_store(&point->reg, NULL);
    reg_free(reg);
}

/* The descriptor is shut down already, so epoll reports it, and that wakes a waiter of the loop;
   the others need not wait for it. */
static void
keeper_shut(RtPoint *point)
{
    RtReg *reg = rt_load_acquire(&point->reg);
    rt_fetch_or(&reg->ready, RT_SOCKET_READABLE | RT_SOCKET_WRITABLE);
    rt_unpark_all(reg);
}

static bool
keeper_watch(RtPoint *point, RtTask *task, bool on_finish)
{
    RtReg *reg = rt_load_acquire(&point->reg);
    reg_lock(reg);
    reg->watcher = task;
    reg->watch_finish = on_finish;
    rt_store(&reg->is_watched, task != NULL);
    reg_unlock(reg);
    return rt_load(&reg->is_over) != 0;
}

static const RtKeeper reg_keeper = {
    .close = keeper_close, .shut = keeper_shut, .watch = keeper_watch};

static RtReg *
reg_if_known(RtPoint *point)
{
    if (rt_load_acquire(&point->keeper) != &reg_keeper) return NULL;
    return rt_load_acquire(&point->reg);
}

/* Register the point with the current loop if nobody has it.  epoll then reports what is possible
   already. */
static Err
reg_of(RtPoint *point, RtReg **reg_out)
{
    RtTask *task = rt__self();
    RtReg *reg = reg_if_known(point);
    *reg_out = reg;
    if (LIKELY(reg != NULL)) return OK;
    reg = reg_new(task->loop);
    if (reg == NULL) return ERR_NOMEM;
    rt_store(&reg->ready, 0);
    rt_store(&reg->is_over, 0);
    rt_store(&reg->is_watched, 0);
    reg->watcher = NULL;
    reg->point = point;
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

/* The bits of `what` that are possible now; they are cleared, so the caller tries. */
static u32
ready_take(RtPoint *point, RtReg *reg, u32 what)
{
    u32 ready = rt_load(&reg->ready) & what;
    if (ready != 0) rt_fetch_and(&reg->ready, ~ready);
    if (rt_load(&point->is_shut)) ready = what;
    if (rt_load(&reg->is_over)) ready |= what & RT_SOCKET_READABLE;
    return ready;
}

/* A fiber of the reg's own loop, alone in its direction. */
static Err
wait_here(RtPoint *point, RtReg *reg, u32 what, u64 deadline_ns, RtIo *io, u32 *ready_out)
{
    RtTask *task = rt__self();
    RtFiber *fiber = task->owner;
    if (what & RT_SOCKET_READABLE) reg->waiter[0] = fiber;
    if (what & RT_SOCKET_WRITABLE) reg->waiter[1] = fiber;
    fiber->waits_for = point;
    fiber->io = io;
    Err err = OK;
    for (;;) {
        *ready_out = ready_take(point, reg, what);
        if (fiber->io != io) *ready_out |= RT_SOCKET_READABLE; /* It has been carried out. */
        if (*ready_out != 0) break;
        if (rt_task_is_cancelled(task)) {
            err = ERR_INTERRUPT;
            break;
        }
        if (deadline_ns == 0 || (deadline_ns != RT_FOREVER && rt_now_ns() >= deadline_ns)) {
            err = ERR_TIMEOUT;
            break;
        }
        (void)rt__fiber_sched.sleep(task, deadline_ns, RT_TASK_CANCEL);
    }
    if (what & RT_SOCKET_READABLE) reg->waiter[0] = NULL;
    if (what & RT_SOCKET_WRITABLE) reg->waiter[1] = NULL;
    fiber->waits_for = NULL;
    fiber->io = NULL;
    return err;
}

static Err
wait_parked(RtPoint *point, RtReg *reg, u32 what, u64 deadline_ns, u32 *ready_out)
{
    Err err = OK;
    rt_fetch_add(&reg->parked, 1);
    while ((*ready_out = ready_take(point, reg, what)) == 0 && err == OK) {
        RtParkResult result = rt_park(reg, &reg->ready, what, 0, deadline_ns, 0, 0);
        if (result == RT_TIMEOUT) err = ERR_TIMEOUT;
        if (result == RT_CANCELLED) err = ERR_INTERRUPT;
    }
    rt_fetch_sub(&reg->parked, 1);
    return *ready_out != 0 ? OK : err;
}

Err
rt__reg_wait(RtPoint *point, u32 what, u64 deadline_ns, RtIo *io, u32 *ready_out)
{
    RtReg *reg;
    Err err = reg_of(point, &reg);
    if (err != OK) return err;
    bool is_taken = ((what & RT_SOCKET_READABLE) && reg->waiter[0] != NULL) ||
                    ((what & RT_SOCKET_WRITABLE) && reg->waiter[1] != NULL);
    if (LIKELY(reg->loop == rt__self()->loop && !is_taken)) {
        if (reg->loop->batch == NULL) io = NULL;
        return wait_here(point, reg, what, deadline_ns, io, ready_out);
    }
    return wait_parked(point, reg, what, deadline_ns, ready_out);
}

/* True if bytes, an end or a shutdown may be there that no coming event will report. */
static bool
is_readable_now(RtPoint *point, RtReg *reg, bool is_new)
{
    if (rt_load(&point->is_shut) || rt_load(&reg->is_over)) return true;
    if (is_new) return false; /* epoll reports what was there. */
    if (point->drained) return (rt_load(&reg->ready) & RT_SOCKET_READABLE) != 0;
    RtIo io = {.op = RT_IO_READY, .fd = point->fd, .flags = RT_SOCKET_READABLE};
    return rt__io(point->process, &io) > 0;
}

/*
 * The coming fiber is counted now, so that the start later cannot meet the limit, and so that
 * rt_loops_stop() knows of it.
 */
Err
rt__reg_when_readable(RtPoint *point, u64 deadline_ns, RtTaskFn fn, void *arg)
{
    RtLoop *loop = rt__self()->loop;
    RtReg *reg = reg_if_known(point);
    ASSERT(rt__self()->kind == RT_TASK_FIBER);
    if (atomic_load(&loop->all->is_closing)) return ERR_CLOSED;
    /* Sessions move by running elsewhere: so does their socket. */
    if (reg != NULL && reg->loop != loop) {
        keeper_close(point);
        reg = NULL;
    }
    bool is_new = reg == NULL;
    Err err = reg_of(point, &reg);
    if (err != OK) return err;
    atomic_fetch_add(&loop->live, 1);
    atomic_fetch_add(&loop->all->live, 1);
    ASSERT(reg->idle_fn == NULL && reg->waiter[0] == NULL);
    bool is_readable = is_readable_now(point, reg, is_new);
    reg->idle_fn = fn;
    reg->idle_arg = arg;
    rt_fetch_and(&reg->ready, ~RT_SOCKET_READABLE);
    point->drained = RT_MAY_HAVE_MORE; /* Whatever comes is for the new fiber to read. */
    if (deadline_ns != RT_FOREVER) rt__timer_add(loop, &reg->timer, deadline_ns);
    if (is_readable) idle_start(reg);
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
