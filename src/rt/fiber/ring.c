/*
 * ring.c -- io_uring for page reads, writes and syncs; one ring a loop, its descriptor in the
 * loop's epoll.
 *
 * No links, no drain, no fixed buffers: a sync is asked for after its writes were seen to complete,
 * because the caller waits for each of them.  Never more requests in flight than the completion
 * queue holds; beyond that, and for everything else, the pool serves.
 */
#include "rt/fiber/ring_impl.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define ENTRIES 128

/* Older kernels have rings that lose or corrupt writes in corner cases: not for a database. */
static bool
kernel_is_fit(void)
{
    struct utsname name;
    u32 major = 0, minor = 0, patch = 0;
    if (uname(&name) != 0 || sscanf(name.release, "%u.%u.%u", &major, &minor, &patch) < 2)
        return false;
    return major > 5 || (major == 5 && (minor > 15 || (minor == 15 && patch >= 3)));
}

static Err
ring_map(RtRing *ring, const struct io_uring_params *params)
{
    size_t sq_bytes = params->sq_off.array + params->sq_entries * sizeof(u32);
    size_t cq_bytes = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
    ring->rings_bytes = MAX_OF(sq_bytes, cq_bytes);
    ring->sqes_bytes = params->sq_entries * sizeof(struct io_uring_sqe);
    int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    void *rings = mmap(NULL, ring->rings_bytes, protection, flags, ring->fd, IORING_OFF_SQ_RING);
    if (rings == MAP_FAILED) return ERR_UNSUPPORTED;
    ring->rings = rings;
    void *sqes = mmap(NULL, ring->sqes_bytes, protection, flags, ring->fd, IORING_OFF_SQES);
    if (sqes == MAP_FAILED) return ERR_UNSUPPORTED;
    ring->sqes = sqes;
    /* A forked child must not share them. */
    madvise(rings, ring->rings_bytes, MADV_DONTFORK);
    madvise(sqes, ring->sqes_bytes, MADV_DONTFORK);
    u8 *base = rings;
    ring->sq_head = (_Atomic u32 *)(void *)(base + params->sq_off.head);
    ring->sq_tail = (_Atomic u32 *)(void *)(base + params->sq_off.tail);
    ring->sq_array = (u32 *)(void *)(base + params->sq_off.array);
    ring->sq_mask = *(u32 *)(void *)(base + params->sq_off.ring_mask);
    ring->cq_head = (_Atomic u32 *)(void *)(base + params->cq_off.head);
    ring->cq_tail = (_Atomic u32 *)(void *)(base + params->cq_off.tail);
    ring->cq_mask = *(u32 *)(void *)(base + params->cq_off.ring_mask);
    ring->cqes = (struct io_uring_cqe *)(void *)(base + params->cq_off.cqes);
    ring->sq_entries = params->sq_entries;
    ring->in_flight_max = params->cq_entries;
    return OK;
}

/* Bounded helper threads of the kernel: as many as the pool would have. */
static void
ring_limit_workers(const RtRing *ring, u32 loops)
{
    u32 limits[2] = {MAX_OF(4u, 2 * loops), MAX_OF(4u, 2 * loops)};
    syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_IOWQ_MAX_WORKERS, limits, 2);
}

Err
rt__ring_open(u32 entries, u32 flags, RtRing **ring_out)
{
    struct io_uring_params params = {.flags = flags};
    *ring_out = NULL;
    if (!kernel_is_fit()) return ERR_UNSUPPORTED;
    RtRing *ring = MEM_NEW(RtRing);
    if (ring == NULL) return ERR_NOMEM;
    ring->fd = (int)syscall(SYS_io_uring_setup, entries, &params);
    u32 needed = IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP;
    Err err = ring->fd >= 0 && (params.features & needed) == needed ? ring_map(ring, &params)
                                                                    : ERR_UNSUPPORTED;
    if (err != OK) {
        rt__ring_free(ring);
        return err;
    }
    *ring_out = ring;
    return OK;
}

Err
rt__ring_new(RtLoop *loop, RtRing **ring_out)
{
    RtRing *ring;
    *ring_out = NULL;
    Err err = rt__ring_open(ENTRIES, 0, &ring);
    if (err != OK) return err;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &loop->ring};
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, ring->fd, &event) != 0) {
        rt__ring_free(ring);
        return ERR_LIMIT;
    }
    ring_limit_workers(ring, loop->all->count);
    *ring_out = ring;
    return OK;
}

void
rt__ring_free(RtRing *ring)
{
    if (ring == NULL) return;
    ASSERT(ring->in_flight == 0);
    if (ring->sqes != NULL) munmap(ring->sqes, ring->sqes_bytes);
    if (ring->rings != NULL) munmap(ring->rings, ring->rings_bytes);
    if (ring->fd >= 0) close(ring->fd);
    mem_free(ring);
}

static bool
sqe_fill(struct io_uring_sqe *sqe, RtIo *io)
{
    *sqe = (struct io_uring_sqe){.fd = io->fd, .user_data = (u64)(uintptr_t)io};
    if (UNLIKELY(io->injected != 0)) {
        sqe->fd = -1;
        sqe->opcode = IORING_OP_NOP;
        return true;
    }
    switch (io->op) {
    case RT_IO_READ: sqe->opcode = IORING_OP_READV; break;
    case RT_IO_WRITE: sqe->opcode = IORING_OP_WRITEV; break;
    case RT_IO_SYNC:
        sqe->opcode = IORING_OP_FSYNC;
        sqe->fsync_flags = IORING_FSYNC_DATASYNC;
        return true;
    default: return false;
    }
    sqe->addr = (u64)(uintptr_t)io->vecs;
    sqe->len = (u32)io->vec_count;
    sqe->off = io->offset;
    return true;
}

static void
reap(RtRing *ring)
{
    u32 head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    u32 tail = atomic_load_explicit(ring->cq_tail, memory_order_acquire);
    while (head != tail) {
        const struct io_uring_cqe *cqe = &ring->cqes[head & ring->cq_mask];
        RtIo *io = (RtIo *)(uintptr_t)cqe->user_data;
        io->result = UNLIKELY(io->injected != 0) ? -io->injected : cqe->res;
        head++;
        atomic_store_explicit(ring->cq_head, head, memory_order_release);
        ring->in_flight--;
        rt_event_set(&io->done); /* Last touch: the fiber's frame may be gone then. */
    }
}

void
rt__ring_reap(RtRing *ring)
{
    reap(ring);
}

/* Put one request in; false when the kernel will not take it now. */
static bool
submit(RtRing *ring, RtIo *io)
{
    u32 tail = atomic_load_explicit(ring->sq_tail, memory_order_relaxed);
    u32 head = atomic_load_explicit(ring->sq_head, memory_order_acquire);
    if (ring->in_flight >= ring->in_flight_max || tail - head >= ring->sq_entries) return false;
    u32 at = tail & ring->sq_mask;
    if (!sqe_fill(&ring->sqes[at], io)) return false;
    rt_word_init(&io->done.word, 0);
    ring->sq_array[at] = at;
    atomic_store_explicit(ring->sq_tail, tail + 1, memory_order_release);
    for (;;) {
        long taken = syscall(SYS_io_uring_enter, ring->fd, 1, 0, 0, NULL, 0);
        if (taken == 1) break;
        if (taken < 0 && errno == EINTR) continue;
        /* Not taken: nobody else fills this queue, so the entry is still the last. */
        atomic_store_explicit(ring->sq_tail, tail, memory_order_release);
        return false;
    }
    ring->in_flight++;
    return true;
}

bool
rt__ring_run(RtRing *ring, RtIo *io)
{
    if (io->op != RT_IO_READ && io->op != RT_IO_WRITE && io->op != RT_IO_SYNC) return false;
    if (!submit(ring, io)) return false;
    reap(ring); /* What the kernel had at hand is complete already. */
    rt_event_wait(&io->done);
    return true;
}
