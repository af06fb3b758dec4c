/*
 * longval.h -- values too long for a leaf: pages of their own.
 *
 * The entry holds a LongRef; the bytes lie in data pages, listed by index pages: the ref names the
 * data page itself, or an index page, or an index of index pages, by the length.  They are written
 * before the entry that names them, never change, and are freed when the last version that names
 * them goes.  Before-images keep the ref, not the bytes.
 *
 * Every page begins with a NodeHead, of level LONG_LEVEL_*, bearing the tree and, as child_low, the
 * value's serial number, so a reader that comes too late notices.
 */
#pragma once

#include "store/store_private.h"

#define LONG_LEVEL_DATA  250u
#define LONG_LEVEL_INDEX 251u

typedef struct LongRef {
    u32 bytes; /* 0: none. */
    u32 root;  /* Page id. */
    TreeId tree;
    u32 serial;
} LongRef;
STATIC_ASSERT(sizeof(LongRef) == 16);

/* Write a value; nobody knows its pages yet.  [parks]  ERR_NOMEM, errors of the pool. */
MUST_CHECK Err long_write(Store *store, TreeId tree, Slice value, LongRef *ref_out);
/* Read `count` bytes from `offset` on; they lie within the value.  *gone_out: the pages are not
   this value's any more (only possible for one that no snapshot of the caller sees).  [parks] */
MUST_CHECK Err long_read(Store *store, const LongRef *ref, u32 offset, u8 *to, u32 count,
                         bool *gone_out);
/* Give the pages back.  [parks] */
void long_free(Store *store, const LongRef *ref);
