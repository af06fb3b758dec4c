/*
 * mtree.h -- an ordered map from byte strings to version chains, resident in memory.
 *
 * A B+tree whose leaves hold, for each key, the first eight key bytes (the head) and the newest
 * Version; the key itself lies in the version.  The tree knows nothing of visibility.
 *
 * Tasks: no locking of its own.  The caller holds the tree's lock: shared to look, exclusive to
 * change.  `structure` moves with every change of slots, so that a remembered place can be
 * trusted while it stands still.
 */
#pragma once

#include "base/base.h"
#include "store/txn/version.h"

#define MTREE_FANOUT     64u
#define MTREE_HEIGHT_MAX 14u /* 32^13 leaves is more than memory holds. */

typedef struct MtreeLeaf MtreeLeaf;
struct MtreeLeaf {
    u16 count;
    MtreeLeaf *prev, *next;
    u64 head[MTREE_FANOUT];
    Version *slot[MTREE_FANOUT]; /* Newest version; never NULL below count. */
};

typedef struct Mtree {
    void *root; /* An inner node, or a leaf when height is 0; NULL: empty. */
    u32 height;
    MtreeLeaf *first, *last;
    u64 slots;
    u64 structure;
    u64 nodes;
    u64 splits;
} Mtree;

/* The way from the root to a place in a leaf: for changes. */
typedef struct MtreePath {
    struct MtreeInner *inner[MTREE_HEIGHT_MAX];
    u16 at[MTREE_HEIGHT_MAX];
    MtreeLeaf *leaf; /* NULL in an empty tree. */
    u32 index;       /* First slot with a key not below the wanted one; may be leaf->count. */
    bool exact;
} MtreePath;

/* The first eight bytes as a number that sorts alike. */
static inline u64
mtree_head(Slice key)
{
    if (LIKELY(key.bytes >= 8)) return load_be64(key.p);
    u64 head = 0;
    for (size_t i = 0; i < key.bytes; i++) {
        head |= (u64)key.p[i] << (56 - 8 * i);
    }
    return head;
}

/* Find a key, or where it would be. */
void mtree_find(const Mtree *tree, Slice key, MtreePath *path_out);
/* The same without the way: *exact_out, and the place.  Leaf NULL: empty tree. */
MtreeLeaf *mtree_look(const Mtree *tree, Slice key, u32 *index_out, bool *exact_out);

/* Put a new slot at the place that mtree_find() gave with exact false.  ERR_NOMEM: unchanged. */
MUST_CHECK Err mtree_insert(Mtree *tree, MtreePath *path, Version *version);
/* Remove the slot at an exact place.  Never fails. */
void mtree_remove(Mtree *tree, MtreePath *path);
/* Free the nodes, not the versions. */
void mtree_free(Mtree *tree);

/* About which fraction of the slots lies below `key`. */
f64 mtree_fraction_below(const Mtree *tree, Slice key);
/* Order and links of every node; false and a word about it when something is wrong. */
bool mtree_verify(const Mtree *tree, const char **what_out);
