/*
 * batch.c -- socket calls of many fibers, carried out by one system call.
 *
 * With many connections active, entering the kernel for each receive and each send costs more than
 * the fibers do, and it drives the code of receiving, of sending and of the engine out of the
 * instruction cache in turn.  So while other fibers are ready, a call waits in a ring until they
 * have had their turns, and all go in together.
 *
 * Nothing is left to the kernel for later: a request says MSG_DONTWAIT, so it has its result,
 * maybe EAGAIN, when the flush returns.  Buffers are borrowed during the flush only, and nothing
 * can be cancelled.  epoll tells when a socket is ready, as without a ring
 * (docs/decisions/007-batched-socket-calls.md).
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rt/fiber/ring_impl.h"
#include "rt/time.h"

/* Nobody's answer waits longer than this for the turns of others. */
#define BATCH_AGE_NS (50 * RT_NS_PER_US)

void
rt__batch_start(RtLoop *loop)
{
    Err err = ERR_UNSUPPORTED;
#if defined(IORING_SETUP_SINGLE_ISSUER) && defined(IORING_SETUP_DEFER_TASKRUN)
    /* Nobody else touches it, so newer kernels need no lock for its completions. */
    u32 flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    err = rt__ring_open(RT_BATCH_MAX, flags, &loop->batch);
#endif
    if (err != OK) err = rt__ring_open(RT_BATCH_MAX, 0, &loop->batch);
    if (err != OK) loop->batch = NULL; /* Then one by one. */
}

void
rt__batch_end(RtLoop *loop)
{
    ASSERT(loop->batched == 0);
    rt__ring_free(loop->batch);
    loop->batch = NULL;
}

void
rt__batch_add(RtLoop *loop, RtFiber *fiber)
{
    RtRing *ring = loop->batch;
    const RtIo *io = fiber->io;
    u32 tail = atomic_load_explicit(ring->sq_tail, memory_order_relaxed);
    u32 at = tail & ring->sq_mask;
    bool is_send = io->op == RT_IO_SEND;
    DCHECK(is_send || io->op == RT_IO_RECV);
    ring->sqes[at] = (struct io_uring_sqe){
        .opcode = is_send ? IORING_OP_SEND : IORING_OP_RECV,
        .fd = io->fd,
        .addr = (u64)(uintptr_t)io->vecs[0].iov_base,
        .len = (u32)MIN_OF(io->vecs[0].iov_len, (size_t)1 << 30),
        .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL,
        .user_data = (u64)(uintptr_t)fiber,
    };
    ring->sq_array[at] = at;
    atomic_store_explicit(ring->sq_tail, tail + 1, memory_order_release);
    if (loop->batched++ == 0) loop->batch_since_ns = loop->now_ns;
    ASSERT(loop->batched <= RT_BATCH_MAX);
}

static void
request_done(RtFiber *fiber, i64 result)
{
    RtIo *io = fiber->io;
    /* The event was older than the bytes' last reader: the fiber goes on waiting. */
    if (fiber->waits_for != NULL && result == -EAGAIN) return;
    io->result = result;
    fiber->io = NULL;
    rt__fiber_go(fiber);
}

static void
reap(RtLoop *loop)
{
    RtRing *ring = loop->batch;
    u32 head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    u32 tail = atomic_load_explicit(ring->cq_tail, memory_order_acquire);
    for (; head != tail; head++, loop->batched--) {
        const struct io_uring_cqe *cqe = &ring->cqes[head & ring->cq_mask];
        request_done((RtFiber *)(uintptr_t)cqe->user_data, cqe->res);
    }
    atomic_store_explicit(ring->cq_head, head, memory_order_release);
}

/* The kernel takes no more now, for want of memory: the rest goes one by one. */
static void
flush_singly(RtLoop *loop)
{
    RtRing *ring = loop->batch;
    RtProcess *process = loop->all->process;
    u32 head = atomic_load_explicit(ring->sq_head, memory_order_acquire);
    u32 tail = atomic_load_explicit(ring->sq_tail, memory_order_relaxed);
    atomic_store_explicit(ring->sq_tail, head, memory_order_release);
    for (; head != tail; head++, loop->batched--) {
        RtFiber *fiber = (RtFiber *)(uintptr_t)ring->sqes[head & ring->sq_mask].user_data;
        process->sys->io(process, fiber->io);
        request_done(fiber, fiber->io->result);
    }
}

void
rt__batch_flush(RtLoop *loop)
{
    RtRing *ring = loop->batch;
    rt__count(&loop->all->process->batched, loop->batched);
    while (loop->batched > 0) {
        u32 tail = atomic_load_explicit(ring->sq_tail, memory_order_relaxed);
        u32 count = tail - atomic_load_explicit(ring->sq_head, memory_order_acquire);
        /* All have their result at once; should a kernel be slower, wait for the rest. */
        u32 wanted = count == 0 ? 1 : 0, flags = count == 0 ? IORING_ENTER_GETEVENTS : 0;
        long taken = syscall(SYS_io_uring_enter, ring->fd, count, wanted, flags, NULL, 0);
        bool has_failed = taken < 0 && errno != EINTR;
        reap(loop);
        if (UNLIKELY(has_failed && count > 0)) flush_singly(loop);
    }
    loop->now_ns = rt_now_ns();
}

bool
rt__batch_is_due(const RtLoop *loop)
{
    return loop->light.head == NULL || loop->batched == RT_BATCH_MAX ||
           loop->now_ns - loop->batch_since_ns >= BATCH_AGE_NS;
}

bool
rt__batch_run(RtLoop *loop, RtIo *io)
{
    if (loop->batch == NULL || !io->may_park || io->injected != 0) return false;
    if (loop->batched == 0 && loop->light.head == NULL) return false; /* No company. */
    RtFiber *fiber = loop->running;
    fiber->io = io;
    rt__fiber_rest(fiber);
    return true;
}
