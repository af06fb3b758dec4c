/*
 * spill.h -- undo that has outgrown memory.
 *
 * A transaction whose undo list and before-images pass Store.spill_bytes moves the oldest of them
 * into a tree of pages of its own, its spill: pages of the store's file like all others, so they
 * are evicted, and a checkpoint that finds the transaction open names the tree's root instead of
 * writing all that would have to be undone.  docs/FORMAT.md has the bytes.
 *
 * The tree holds two kinds of entries:
 *   - pieces, numbered, a stack: undo entries in the order of their writing.  They come back to
 *     memory, newest piece first, when they are to be undone;
 *   - images by (tree, key): of each key that the transaction found with somebody else's version,
 *     that version.  This is what others read, and what recovery restores; there is at most one.
 *     Images of the transaction's own versions stand in the pieces.
 *
 * All movements happen under Store.spill_mutex, which a checkpoint holds from its cut until it has
 * described what is open: so no movement is cut in two, and what is described stands still.  The
 * one who throws a spill away after a commit is the settler, whose mutex a checkpoint holds too.
 *
 * Readers look without the mutex.  An entry that leaves memory is in the tree before; one that
 * comes back is linked in memory before it leaves the tree, and Store.spill_moves moves between
 * the two, so who looks first in memory, then in the tree, and finds the number unmoved has missed
 * nothing.
 */
#pragma once

#include "store/version/row.h"

#define SPILL_BYTES_DEFAULT ((u64)8 << 20)

typedef struct Spill {
    struct Spill *next; /* Store.spills, rising serial; spill latch. */
    TxnState *state;
    u32 serial;
    u32 readers;   /* Spill latch. */
    Tree tree;     /* Not in the store's table. */
    u64 pieces;    /* On the stack. */
    u64 entries;   /* In them. */
    bool has_work; /* Tombstones to be purged, or long values to be freed, when it settles. */
    u64 settled;   /* Pieces from here on have been seen to. */
    Buf piece, value, scratch;
} Spill;

/* Is there so much undo in memory that some should go? */
static ALWAYS_INLINE bool
spill_is_due(const StoreTxn *txn)
{
    const TxnState *state = txn->state;
    u64 bytes = state->undo.bytes + state->before_bytes;
    return UNLIKELY(bytes > txn->store->spill_bytes || PLANT(141));
}
/* Move the oldest undo of the transaction away until enough is free.  [parks]  On an error
   everything is where it was, and the transaction's error is set. */
MUST_CHECK Err spill_out(StoreTxn *txn);
/* Nothing in memory stands any more: bring the newest piece back.  An error, after some tries,
   means that the store must end its writing.  [parks] */
MUST_CHECK Err spill_in(StoreTxn *txn);
/* All is undone: the owner throws its spill away.  [parks] */
void spill_drop(Store *store, TxnState *state);
/* The transaction is settled: purge and free what its spill names, then throw it away.  True: done,
   else about `budget` entries were.  Only the settler.  [parks] */
bool spill_settle(Store *store, TxnState *state, u64 budget);
/* The store goes, and with it what was never settled. */
void spill_free_all(Store *store);

/* The image that `state` (named by `id`) has spilled of a key, as a Before that nobody knows, or
   NULL.  *spilled_out: it has a spill at all.  [parks] */
MUST_CHECK Err spill_image_of(Store *store, TxnState *state, u64 id, const Tree *tree, Slice key,
                              u64 hash, bool *spilled_out, Before **before_out);
/* May a spill hold an image that the transaction is to see instead of what it finds? */
bool spill_may_hide(const StoreTxn *txn);
/* What the transaction sees of a key, by whatever way.  The value goes to `to`.  [parks] */
MUST_CHECK Err row_resolve(StoreTxn *txn, Tree *tree, Slice key, Buf *to, RowSeen *seen_out);

/* ---- the entries, for recovery and checkpoints ---- */

#define SPILL_ENTRY_OWN     0x10u /* The image is a value of the transaction itself. */
#define SPILL_ENTRY_DELETES 0x20u /* It has left a tombstone. */
#define SPILL_ENTRY_HELD    0x40u /* Its Before is in its chain, as a marker. */
#define SPILL_ENTRY_DONE    0x80u /* A token owner has undone it. */

typedef struct SpillPieceHead {
    u64 epoch, redo_base;
    u32 entries, reserved;
} SpillPieceHead;
STATIC_ASSERT(sizeof(SpillPieceHead) == 24);

typedef struct SpillImage {
    u64 writer, ts, lsn; /* As in Before. */
    u32 reserved;
    u16 key_bytes; /* The whole key follows if it is too long to stand in the tree's key. */
    u8 slot_flags;
    u8 reserved_1;
} SpillImage;
STATIC_ASSERT(sizeof(SpillImage) == 32);

typedef struct SpillEntry {
    u8 kind;  /* UndoKind */
    u8 flags; /* SPILL_ENTRY_* */
    u8 slot_flags, tree_kind;
    TreeId tree;
    u64 redo; /* Position. */
    Slice key, image;
} SpillEntry;

typedef struct SpillReader {
    SpillPieceHead head;
    Slice rest;
    u32 left;
    u64 redo;
    u32 key_bytes;
    u8 key[STORE_KEY_BYTES_MAX];
} SpillReader;

/* Read piece `number` of a spill into `value`, which the reader then walks.  ERR_CORRUPT, errors of
   the pool.  [parks] */
MUST_CHECK Err spill_piece_read(Store *store, Btree *map, u64 number, Buf *value,
                                SpillReader *reader_out);
/* The next entry, valid until the next call.  False: the end, or (left > 0) damage. */
bool spill_piece_next(SpillReader *reader, SpillEntry *entry_out);
/* The image of a key; its bytes lie in `value`.  [parks] */
MUST_CHECK Err spill_image_read(Store *store, Btree *map, TreeId tree, Slice key, Buf *value,
                                bool *found_out, SpillImage *image_out, Slice *bytes_out);
