/*
 * pool.c -- worker threads that carry out the file requests of fibers.
 *
 * Three lanes, so that nothing waits behind what is slower: reads and writes; syncs; and the slow
 * rest (names, sizes, resolving).  A request lives on the asking fiber's stack, which cannot die:
 * the fiber waits for it without deadline and deaf to cancels.
 */
#include <sys/uio.h>

#include "rt/fiber/loop_impl.h"

typedef enum Lane { LANE_DATA, LANE_SYNC, LANE_SLOW, LANE_COUNT } Lane;

typedef struct LaneState {
    RtMutex lock; /* Protects the queue and is_stopping. */
    RtCond work;
    RtIo *head, *tail;
    bool is_stopping;
    RtProcess *process;
    RtThread **threads;
    u32 thread_count;
} LaneState;

struct RtPool {
    LaneState lanes[LANE_COUNT];
};

static Lane
lane_of(RtIoOp op)
{
    switch (op) {
    case RT_IO_READ:
    case RT_IO_WRITE:
    case RT_IO_READ_NEXT:
    case RT_IO_WRITE_NEXT: return LANE_DATA;
    case RT_IO_SYNC:
    case RT_IO_DIR_SYNC: return LANE_SYNC;
    default: return LANE_SLOW;
    }
}

static void
worker(void *arg)
{
    LaneState *lane = arg;
    rt_mutex_lock(&lane->lock);
    for (;;) {
        RtIo *io = lane->head;
        if (io != NULL) {
            lane->head = io->next;
            rt_mutex_unlock(&lane->lock);
            lane->process->sys->io(lane->process, io);
            rt_event_set(&io->done); /* Last touch. */
            rt_mutex_lock(&lane->lock);
            continue;
        }
        if (lane->is_stopping) break;
        rt_cond_wait(&lane->work, &lane->lock);
    }
    rt_mutex_unlock(&lane->lock);
}

static Err
lane_start(LaneState *lane, RtProcess *process, u32 threads)
{
    lane->process = process;
    lane->threads = MEM_NEW_ARRAY(RtThread *, threads);
    if (lane->threads == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < threads; i++) {
        Err err = rt_thread_start(process, worker, lane, "weft-io", &lane->threads[i]);
        if (err != OK) return err;
        lane->thread_count++;
    }
    return OK;
}

Err
rt__pool_start(RtLoops *all, u32 threads, RtPool **pool_out)
{
    RtPool *pool = MEM_NEW(RtPool);
    *pool_out = pool; /* Also on error: rt__pool_stop() ends what there is. */
    if (pool == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < LANE_COUNT; i++) {
        Err err = lane_start(&pool->lanes[i], all->process, i == LANE_DATA ? threads : 1);
        if (err != OK) return err;
    }
    return OK;
}

void
rt__pool_stop(RtPool *pool)
{
    if (pool == NULL) return;
    for (u32 i = 0; i < LANE_COUNT; i++) {
        LaneState *lane = &pool->lanes[i];
        rt_mutex_lock(&lane->lock);
        lane->is_stopping = true;
        rt_cond_broadcast(&lane->work, &lane->lock);
        rt_mutex_unlock(&lane->lock);
        for (u32 k = 0; k < lane->thread_count; k++)
            rt_thread_join(lane->threads[k]);
        mem_free(lane->threads);
    }
    mem_free(pool);
}

static void
pool_run(RtPool *pool, RtIo *io)
{
    LaneState *lane = &pool->lanes[lane_of(io->op)];
    io->next = NULL;
    rt_word_init(&io->done.word, 0);
    rt_mutex_lock(&lane->lock);
    if (lane->head == NULL)
        lane->head = io;
    else
        lane->tail->next = io;
    lane->tail = io;
    rt_cond_signal(&lane->work);
    rt_mutex_unlock(&lane->lock);
    rt_event_wait(&io->done);
}

/* Cached pages need no other thread: 2 us against a hand-over and back. */
static bool
read_at_once(RtIo *io)
{
    if (io->op != RT_IO_READ) return false;
    ssize_t got = preadv2(io->fd, io->vecs, io->vec_count, (off_t)io->offset, RWF_NOWAIT);
    if (got <= 0) return false; /* Not cached, not supported, the end, an error: the long way. */
    io->result = got;
    return true;
}

void
rt__fiber_io(RtProcess *process, RtIo *io)
{
    RtLoop *loop = rt__self()->loop;
    if (io->op > RT_IO_RESOLVE || io->op == RT_IO_STAT_FD || io->op == RT_IO_UNLOCK) {
        if (!rt__batch_run(loop, io)) process->sys->io(process, io); /* Never waits. */
        return;
    }
    if (LIKELY(io->injected == 0) && read_at_once(io)) return;
    if (loop->ring != NULL && rt__ring_run(loop->ring, io)) return;
    pool_run(loop->all->pool, io);
}
