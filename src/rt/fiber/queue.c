/*
 * queue.c -- what is ready on a loop, and whose turn is next.
 *
 * Light: one queue, first come first served, of fibers and of parked connections whose bytes have
 * come; those get a fiber only when their turn comes, so that a burst of requests is served on one
 * warm stack.  Heavy: one queue a share (a database), the shares taking turns in a ring, so that
 * a share with a hundred statements gets no more than one with one.
 */
#include "rt/fiber/loop_impl.h"

static void
queue_put(RtQueue *queue, RtReady *ready)
{
    ready->next = NULL;
    if (queue->head == NULL)
        queue->head = ready;
    else
        queue->tail->next = ready;
    queue->tail = ready;
}

static RtReady *
queue_take(RtQueue *queue)
{
    RtReady *ready = queue->head;
    if (ready != NULL) queue->head = ready->next;
    return ready;
}

void
rt__ready_light(RtLoop *loop, RtReady *ready)
{
    queue_put(&loop->light, ready);
}

static void
ring_put(RtLoop *loop, RtShare *share)
{
    share->next = NULL;
    if (loop->ring_head == NULL)
        loop->ring_head = share;
    else
        loop->ring_tail->next = share;
    loop->ring_tail = share;
}

void
rt__ready_heavy(RtLoop *loop, RtShare *share, RtReady *ready)
{
    bool is_first = share->queue.head == NULL;
    queue_put(&share->queue, ready);
    if (is_first) ring_put(loop, share);
}

static RtReady *
heavy_take(RtLoop *loop)
{
    RtShare *share = loop->ring_head;
    if (share == NULL) return NULL;
    RtReady *ready = queue_take(&share->queue);
    loop->ring_head = share->next;
    if (share->queue.head != NULL) ring_put(loop, share);
    return ready;
}

RtReady *
rt__ready_take(RtLoop *loop)
{
    bool heavy_first = loop->heavy_credit_ns > 0;
    RtReady *ready = heavy_first ? heavy_take(loop) : queue_take(&loop->light);
    if (ready != NULL) return ready;
    return heavy_first ? queue_take(&loop->light) : heavy_take(loop);
}

static u32
share_slot(u64 key)
{
    return (u32)(hash_u64(key, 0) % RT_SHARE_SLOTS);
}

RtShare *
rt__share_get(RtLoop *loop, u64 key)
{
    if (key == 0) return &loop->common;
    RtShare *share = loop->shares[share_slot(key)];
    while (share != NULL && share->key != key)
        share = share->slot_next;
    if (share == NULL) {
        share = MEM_NEW(RtShare);
        if (share == NULL) return &loop->common; /* Less fair, but it runs. */
        share->key = key;
        share->slot_next = loop->shares[share_slot(key)];
        loop->shares[share_slot(key)] = share;
    }
    share->fibers++;
    return share;
}

void
rt__share_leave(RtLoop *loop, RtShare *share)
{
    if (share == &loop->common || --share->fibers > 0) return;
    RtShare **at = &loop->shares[share_slot(share->key)];
    while (*at != share)
        at = &(*at)->slot_next;
    *at = share->slot_next;
    /* Nobody who could be ready is left in it. */
    ASSERT(share->queue.head == NULL);
    mem_free(share);
}
