/*
 * ring_impl.h -- private: an io_uring as it lies in memory; of one loop, touched by its thread
 * only.
 */
#pragma once

#include <linux/io_uring.h>

#include "rt/fiber/loop_impl.h"

struct RtRing {
    int fd;
    u32 in_flight, in_flight_max;
    void *rings; /* Submission and completion queue share one mapping. */
    size_t rings_bytes;
    struct io_uring_sqe *sqes;
    size_t sqes_bytes;
    _Atomic u32 *sq_head, *sq_tail, *cq_head, *cq_tail;
    u32 *sq_array;
    u32 sq_mask, cq_mask, sq_entries;
    struct io_uring_cqe *cqes;
};

/* A ring with room for `entries` requests; flags: IORING_SETUP_*.  ERR_UNSUPPORTED: the kernel has
   none, an unfit one, or forbids it; ERR_NOMEM.  The caller ends it with rt__ring_free(). */
MUST_CHECK Err rt__ring_open(u32 entries, u32 flags, RtRing **ring_out);
