/*
 * open_set.h -- the transactions that have written and not ended, and what they would undo.
 *
 * A transaction enters with its first write, before it loads an epoch, and leaves at its commit or
 * when its rollback is complete, both under the commit latch.  A checkpoint pins the set at its
 * cut:
 *
 *     commit latch: open_set_pin(), then page_ops_cut()
 *     page_ops_drain()
 *     open_set_undo() for each, newest entry first
 *     commit latch: open_set_unpin()
 *
 * While a transaction is pinned it goes on, and may end; its undo list and the images in it stay.
 */
#pragma once

#include "store/store_private.h"

typedef struct OpenSet {
    TxnState **states;
    u64 count;
} OpenSet;

/* Enter, if the transaction is not in it; no latch held. */
void open_set_enter(Store *store, TxnState *state);
/* Commit latch held. */
void open_set_leave(Store *store, TxnState *state);

/* How many there are; commit latch held. */
u64 open_set_count(const Store *store);
/* Pin all of them into `states`, which has room for `room` (asserted).  Commit latch held. */
void open_set_pin(Store *store, OpenSet *set, u64 room);
void open_set_unpin(Store *store, OpenSet *set);

/* One thing to undo at recovery. */
typedef struct OpenUndo {
    TreeId tree;
    u8 kind;       /* UndoKind */
    u8 slot_flags; /* BEFORE: NODE_SLOT_TOMBSTONE, NODE_SLOT_LONG of the image. */
    Slice key;
    Slice image; /* BEFORE */
} OpenUndo;

/* Entries of a pinned transaction that were written up to the cut and not undone at it, newest
   first, after page_ops_drain().  Stops at the first error of `each`. */
MUST_CHECK Err open_set_undo(Store *store, const TxnState *state, u64 cut,
                             Err (*each)(void *arg, const OpenUndo *undo), void *arg);
