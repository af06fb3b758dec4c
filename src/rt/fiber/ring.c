/*
 * ring.c -- io_uring for page reads, writes and syncs.
 */
#include "rt/fiber/loop_impl.h"

Err
rt__ring_new(RtLoop *loop, RtRing **ring_out)
{
    (void)loop;
    *ring_out = NULL;
    return ERR_UNSUPPORTED;
}

void
rt__ring_free(RtRing *ring)
{
    ASSERT(ring == NULL);
}

bool
rt__ring_run(RtRing *ring, RtIo *io)
{
    (void)ring, (void)io;
    return false;
}

void
rt__ring_reap(RtRing *ring)
{
    (void)ring;
}
