/*
 * btree_impl.h -- what the files of the B-link tree share.
 */
#pragma once

#include "store/tree/btree.h"

/* View the node of `level` that fits `where` and `key`.  The view goes on; what was read so far is
   not yet known to be true.  [parks] */
MUST_CHECK Err btree__descend(Btree *tree, BtreeWhere where, Slice key, u8 level, bool scan,
                              PageView *view_out);
/* The same, latched, and certain. */
MUST_CHECK Err btree__descend_latch(Btree *tree, Slice key, u8 level, PageView *view_out);
/* Split the node of `level` that holds `key`, if it has less room than `need_bytes`.  Structure
   mutex held.  [parks] */
MUST_CHECK Err btree__split(Btree *tree, u8 level, Slice key, u32 need_bytes);
/* Make the separator that leads to `child` known to the nodes of `level`.  Structure mutex held.
   [parks] */
MUST_CHECK Err btree__post(Btree *tree, u8 level, Slice separator, u32 child);
