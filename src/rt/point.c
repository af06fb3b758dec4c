/*
 * point.c -- waiting for a descriptor on a plain thread: poll.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>

#include "rt/net_impl.h"
#include "rt/process_impl.h"
#include "rt/time.h"

/* A thread in poll() hears neither a cancel nor a shutdown of a listener: it looks this often. */
#define POLL_STEP_MS 50

static Err
thread_wait(RtPoint *point, u32 what, u64 deadline_ns, u32 *ready_out)
{
    RtTask *task = rt__self();
    short events = (short)((what & RT_SOCKET_READABLE ? POLLIN | POLLRDHUP : 0) |
                           (what & RT_SOCKET_WRITABLE ? POLLOUT : 0));
    for (;;) {
        if (rt_task_is_cancelled(task)) return ERR_INTERRUPT;
        if (rt_load_acquire(&point->is_shut)) {
            *ready_out = what;
            return OK;
        }
        u64 now = deadline_ns == 0 ? 0 : rt_now_ns();
        u64 left_ms = deadline_ns <= now ? 0 : (deadline_ns - now) / RT_NS_PER_MS + 1;
        struct pollfd poller = {.fd = point->fd, .events = events};
        int former;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former);
        int found = poll(&poller, 1, (int)MIN_OF(left_ms, POLL_STEP_MS));
        pthread_setcancelstate(former, NULL);
        if (found > 0) {
            u32 ready = 0;
            if (poller.revents & ~POLLOUT) ready |= RT_SOCKET_READABLE;
            if (poller.revents & (POLLOUT | POLLERR | POLLHUP)) ready |= RT_SOCKET_WRITABLE;
            *ready_out = ready & what;
            return OK;
        }
        if (left_ms == 0) return ERR_TIMEOUT;
    }
}

Err
rt__point_wait_with(RtPoint *point, u32 what, u64 deadline_ns, RtIo *io, u32 *ready_out)
{
    RtTask *task = rt__self();
    ASSERT(task->latches == 0 && task->guards == 0);
    *ready_out = 0;
    if (task->sched != NULL)
        return task->sched->point_wait(point, what, deadline_ns, io, ready_out);
    return thread_wait(point, what, deadline_ns, ready_out);
}

Err
rt__point_wait(RtPoint *point, u32 what, u64 deadline_ns, u32 *ready_out)
{
    return rt__point_wait_with(point, what, deadline_ns, NULL, ready_out);
}

void
rt__point_close(RtPoint *point)
{
    const RtKeeper *keeper = rt_load_acquire(&point->keeper);
    if (keeper != NULL) keeper->close(point);
    (void)rt__io(point->process, &(RtIo){.op = RT_IO_CLOSE_SOCKET, .fd = point->fd});
}

void
rt__point_shut(RtPoint *point)
{
    rt_store(&point->is_shut, 1);
    (void)rt__io(point->process, &(RtIo){.op = RT_IO_SHUTDOWN, .fd = point->fd});
    const RtKeeper *keeper = rt_load(&point->keeper);
    if (keeper != NULL) keeper->shut(point);
}
