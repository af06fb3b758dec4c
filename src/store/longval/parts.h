/*
 * parts.h -- long values that were written in parts.
 *
 * The pages of a long value never change.  A part that is written over becomes a row of its own in
 * TREE_ROOT, beside the row that it belongs to, and lies over the value's pages for whoever sees
 * that row: versions, undo, log, recovery and checkpoints of parts are those of rows.  Keys: bytes
 * ff 50, the tree (4 bytes, big-endian), the row's key (8 bytes), a number (4 bytes, big-endian): 0
 * the head, which is there if any part is, n the bytes from (n - 1) * parts_bytes() on.
 * docs/decisions/015-parts-of-long-values.md says why.
 *
 * Who writes a part writes the head, and looks at the row before and after that; who writes or
 * deletes the whole row deletes the head, and the parts, after it.  So of two that meet one waits
 * for the other's end and finds what it wrote to be newer than its snapshot.
 */
#pragma once

#include "store/version/row.h"

/* Bytes of a part, but for the last of a value. */
static inline u32
parts_bytes(const Store *store)
{
    return store->page_bytes / 8;
}

/* Put what lies over `count` bytes of a long value, from `offset` on, over those at `to`; by the
   transaction's snapshot.  [parks] */
MUST_CHECK Err parts_overlay(StoreTxn *txn, TreeId tree, Slice key, u64 offset, u8 *to, u64 count);
/* The whole value of a row was long and has been written over or deleted by the transaction: its
   parts go.  [parks] */
MUST_CHECK Err parts_forget(StoreTxn *txn, TreeId tree, Slice key);
/* The same for all rows of a tree. */
MUST_CHECK Err parts_forget_tree(StoreTxn *txn, TreeId tree);
/* Is the newest head of the row newer than the snapshot?  Waits for who is writing it.  [parks] */
MUST_CHECK Err parts_newer(StoreTxn *txn, TreeId tree, Slice key, bool *newer_out);

/* The newest version of a key, as it was at one instant (read.c). */
typedef struct Newest {
    bool found, is_long;
    bool newer; /* Committed after the snapshot. */
    bool busy;  /* Somebody else is writing it: only without `waits`. */
    Slice value;
    u64 writer;
    TxnSeen seen;
} Newest;
/* Look at it, in the transaction's memory; a long value is a reference. [parks] */
MUST_CHECK Err read__newest(StoreTxn *txn, Tree *tree, Slice key, bool waits, Newest *newest_out);
