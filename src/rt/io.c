/*
 * io.c -- the way out: one function for every request, with the faults of tests.
 */
#include "rt/io.h"

#include <errno.h>
#include <pthread.h>

#include "rt/fault.h"
#include "rt/process_impl.h"

/* Half of a transfer, at least one byte: what an armed RT_FAULT_SHORT makes of it. */
static bool
make_short(const RtIo *io, struct iovec *vec)
{
    bool is_transfer = io->op == RT_IO_READ || io->op == RT_IO_WRITE || io->op == RT_IO_READ_NEXT ||
                       io->op == RT_IO_WRITE_NEXT || io->op == RT_IO_RECV || io->op == RT_IO_SEND;
    if (!is_transfer || io->vecs[0].iov_len < 2) return false;
    *vec = (struct iovec){io->vecs[0].iov_base, io->vecs[0].iov_len / 2};
    return true;
}

static void
carry_out(RtProcess *process, RtIo *io)
{
    RtTask *task = rt__self();
    if (task->sched != NULL) {
        task->sched->io(process, io);
        return;
    }
    /* A cancelled host thread must not unwind through our callers' locks. */
    int former;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former);
    process->sys->io(process, io);
    pthread_setcancelstate(former, NULL);
}

i64
rt__io(RtProcess *process, RtIo *io)
{
    DCHECK(rt__self()->latches == 0);
    rt_yield_point();
    int fault = rt__fault_next(io->op);
    /* On its way through the backend, so that its error paths are tried too. */
    io->injected = UNLIKELY(fault > 0) ? fault : 0;
    struct iovec shorter;
    const struct iovec *vecs = io->vecs;
    int vec_count = io->vec_count;
    if (UNLIKELY(fault == RT_FAULT_SHORT) && make_short(io, &shorter)) {
        io->vecs = &shorter;
        io->vec_count = 1;
    }
    carry_out(process, io);
    io->vecs = vecs;
    io->vec_count = vec_count;
    return io->result;
}
