/*
 * redo.h -- what a transaction changes, as bytes for the log, and back.
 *
 * The redo stream of a transaction is the sequence of its operations; docs/FORMAT.md has the
 * bytes.  It grows with each write and is cut back by each undo.  It travels in pieces: the commit
 * record has the last one; of a long stream chunk records go ahead.  A piece that begins before the
 * end of those that went ahead replaces what they said from there on.
 *
 * Stores without a log keep no stream.
 */
#pragma once

#include "store/store_private.h"

typedef enum RedoKind { REDO_PUT = 1, REDO_DELETE, REDO_CREATE, REDO_DROP } RedoKind;

/* Where the next operation begins in the stream. */
static inline u64
redo_position(const StoreTxn *txn)
{
    return txn->redo_done + txn->redo.bytes;
}
#define REDO_HEAD_BYTES_MAX 24u

/* Memory for an operation with this many bytes of key and value.  ERR_NOMEM. */
static ALWAYS_INLINE Err
redo_reserve(StoreTxn *txn, size_t bytes)
{
    size_t want = bytes + REDO_HEAD_BYTES_MAX;
    if (LIKELY(txn->redo.capacity - txn->redo.bytes >= want)) return OK;
    return txn->store->wal == NULL ? OK : buf_reserve(&txn->redo, want);
}
/* Append an operation after redo_reserve().  CREATE: the value is one byte, the tree's kind. */
void redo_append(StoreTxn *txn, RedoKind kind, TreeId tree, Slice key, Slice value);
/* The operations from `position` on have been undone. */
void redo_cut(StoreTxn *txn, u64 position);

#define REDO_SPILL_BYTES ((size_t)1 << 20) /* A stream of this length begins to go ahead. */

/* If the stream has become long, let pieces of it go ahead; what cannot go stays.  [parks] */
void redo_spill_now(StoreTxn *txn);
static ALWAYS_INLINE void
redo_spill(StoreTxn *txn)
{
    if (UNLIKELY(txn->redo.bytes >= REDO_SPILL_BYTES)) redo_spill_now(txn);
}
/* Fill a place in the log with a record head and the next bytes of the stream. */
void redo_piece(StoreTxn *txn, const WalPlace *place, u32 type, u64 ts);
/* Bytes that no piece has taken yet. */
static inline size_t
redo_left(const StoreTxn *txn)
{
    return txn->redo.bytes - txn->redo_taken;
}
/* The pieces taken so far leave the buffer: after the last of a row of them, so that what is behind
   them moves once. */
void redo_drop_taken(StoreTxn *txn);
/* The pieces that went ahead need not be kept any more; commit latch held. */
void redo_chunks_end(StoreTxn *txn);
/* Empty the stream. */
void redo_reset(StoreTxn *txn);

typedef struct RedoOp {
    u8 kind; /* RedoKind */
    TreeId tree;
    Slice key, value; /* CREATE: the value is one byte, the tree's kind. */
} RedoOp;

/* Take the next operation off a stream; false at the end or when it is damaged. */
bool redo_next(Slice *stream, RedoOp *op_out);
