/*
 * page_op.h -- what every change of pages owes to the checkpoint.
 *
 * A page operation is one change of one or more pages that must be seen whole: a write of an entry,
 * a split, the posting of a separator, a merge.  All pages it changes get the same epoch.  A
 * checkpoint cuts by moving the epoch on; what operations up to the cut's epoch have done belongs
 * to it, what later ones do does not.  The order for the caller:
 *
 *     page_op_throttle(ops)        with nothing latched; may wait for the checkpoint's writer
 *     latch all pages
 *     page_op_begin(ops, &op)
 *     page_op_touch(&op, &view)    each page, before its first change
 *     change; page_op_forget() for a page that leaves its tree
 *     unlatch all pages
 *     page_op_end(&op)
 *
 * Nothing between begin and end parks.  `ops` NULL (stores without a file): nothing to do.
 *
 * The cut side: page_ops_cut() moves the epoch, page_ops_drain() waits until every operation that
 * loaded an older one has ended.  An operation publishes the epoch it loaded and looks again, so it
 * cannot load the old one and be overlooked (store-protocols, hole 2).
 *
 * Every page of a store's file begins with the fields of NodeHead up to `epoch`, whatever follows.
 * A page of another kind than NodeHead's has another `level` than 0.  PAGE_EPOCH_NONE there: the
 * page belongs to no tree (new and not used yet, or merged away); it enters no checkpoint and is
 * not written.
 *
 * Tasks: any number.
 */
#pragma once

#include "rt/word.h"
#include "store/pool/pool.h"
#include "store/tree/node.h"

#define PAGE_EPOCH_NONE U64_MAX
#define PAGE_OP_LANES   32u

/* An operation that runs; 0: nobody. */
typedef struct PageOpLane {
    RtU64 epoch;
    u64 apart[7];
} PageOpLane;

typedef struct PageOps {
    RtU64 epoch; /* Of changes that begin now. */
    RtU64 cut;   /* Epoch of the running checkpoint's cut; 0: none runs. */
    PageOpLane lanes[PAGE_OP_LANES];
    void *arg;
    /* A page, latched, is about to change that the cut must have as it is.  Cannot fail. */
    void (*copy_aside)(void *arg, u32 page_id, const u8 *bytes);
    /* A page, latched, leaves its tree. */
    void (*forget)(void *arg, u32 page_id, u64 epoch);
    /* Wait while too many copies are not written yet.  [parks] */
    void (*throttle)(void *arg);
} PageOps;

typedef struct PageOp {
    PageOps *ops;
    u64 epoch; /* 0 without ops. */
    u32 lane;
} PageOp;

/* Find a free lane and publish the epoch in it. */
void page_op__enter(PageOps *ops, PageOp *op);

static inline void
page_op_throttle(PageOps *ops)
{
    if (ops != NULL && UNLIKELY(rt_load_relaxed(&ops->cut) != 0)) ops->throttle(ops->arg);
}

static inline void
page_op_begin(PageOps *ops, PageOp *op_out)
{
    *op_out = (PageOp){.ops = ops};
    if (ops != NULL) page_op__enter(ops, op_out);
}

static inline void
page_op_touch(PageOp *op, PageView *view)
{
    if (op->ops == NULL) return;
    NodeHead *head = (NodeHead *)(void *)view->bytes;
    u64 cut = rt_load_acquire(&op->ops->cut);
    if (UNLIKELY(cut != 0 && head->epoch <= cut && cut < op->epoch) &&
        (view->word & PAGE_DIRTY) != 0) {
        op->ops->copy_aside(op->ops->arg, view->page_id, view->bytes);
    }
    head->epoch = op->epoch;
}

/* The page, touched before, belongs to no tree from here on. */
static inline void
page_op_forget(PageOp *op, PageView *view)
{
    ((NodeHead *)(void *)view->bytes)->epoch = PAGE_EPOCH_NONE;
    if (op->ops != NULL) op->ops->forget(op->ops->arg, view->page_id, op->epoch);
}

static inline void
page_op_end(PageOp *op)
{
    if (op->ops != NULL) rt_store_release(&op->ops->lanes[op->lane].epoch, 0);
}

/* Cut here: returns the epoch that the cut includes.  The caller has the commit latch. */
u64 page_ops_cut(PageOps *ops);
/* Wait until every operation of the cut's epoch or an earlier one has ended.  Spins: operations are
   short. */
void page_ops_drain(PageOps *ops, u64 cut);
/* The checkpoint of the cut has ended, one way or the other. */
void page_ops_uncut(PageOps *ops);
