/*
 * btree.h -- a B-link tree over the pages of a pool file.
 *
 * Readers descend optimistically: view a child, then check that the page it came from has not
 * changed, then go on; on a change they start again.  Every node carries its tree, level and
 * fences, checked on arrival, and a link to its right sibling: who comes to a node that was split
 * steps right.
 *
 * Writers latch the leaf only.  Splits and merges serialise on the tree's structure mutex and are
 * operations of their own: a split first divides the leaf (both halves latched), then posts the
 * separator to the parent; a merge takes the separator out of the parent first, then joins the
 * leaves.  The root's page id never changes.
 *
 * What a leaf's entries mean is the caller's business: btree_leaf_latch() hands out the latched
 * leaf with room for the entry.
 *
 * Tasks: any number at once.  No call may be made with a page of the file latched or viewed.
 */
#pragma once

#include "store/ckpt/page_op.h"
#include "store/pool/pool.h"
#include "store/tree/node.h"

/* Where page ids come from.  Neither parks for long; `give` is for ids that no operation running
   now can still hold. */
typedef struct BtreePages {
    void *arg;
    Err (*take)(void *arg, u32 *page_id_out);
    void (*give)(void *arg, u32 page_id);
    PageOps *ops; /* NULL: nobody makes checkpoints. */
} BtreePages;

typedef struct Btree {
    PoolFile *file;
    BtreePages pages;
    TreeId tree_id;
    u32 root;       /* Page id. */
    u64 born_epoch; /* Of its creation; 0: in an earlier life. */
    u32 page_bytes;
    bool is_int;
    RtMutex structure; /* One split or merge at a time. */
    u8 *scratch;       /* A page, for who holds the structure mutex. */
    u32 *dead;         /* Ids of merged pages, until btree_reclaim(). */
    u32 dead_count, dead_room;
    RtU64 splits, merges, restarts;
} Btree;

/* A new tree with an empty root.  [parks]  Errors: of the pool and of `take`. */
MUST_CHECK Err btree_create(Btree *tree, PoolFile *file, const BtreePages *pages, TreeId tree_id,
                            bool is_int);
/* The tree whose root is that page. */
MUST_CHECK Err btree_open(Btree *tree, PoolFile *file, const BtreePages *pages, TreeId tree_id,
                          bool is_int, u32 root);
/* Frees the object, not the pages. */
void btree_close(Btree *tree);

/*
 * Latch the leaf that holds `key`, splitting until `need_bytes` (slot, key and value; 0: for a
 * look or a removal) can be added.  The caller ends with pool_unlatch(&view, ...).  [parks]
 * Errors: of the pool and of `take`, ERR_CORRUPT.
 */
MUST_CHECK Err btree_leaf_latch(Btree *tree, Slice key, u32 need_bytes, PageView *view_out);
/*
 * A guess where the next key may be: the leaf of the last one.  Zero: none.  After some misses in a
 * row it is left alone for a while, so that keys in no order do not pay for it.
 */
typedef struct BtreeNear {
    TreeId tree_id;
    u32 leaf;
    u32 misses;
} BtreeNear;
/* btree_leaf_latch(), by the guess if that holds. */
MUST_CHECK Err btree_leaf_latch_near(Btree *tree, BtreeNear *near, Slice key, u32 need_bytes,
                                     PageView *view_out);
/* btree_leaf_view() of the leaf that may hold the key, by the guess if that holds. */
MUST_CHECK Err btree_leaf_view_near(Btree *tree, BtreeNear *near, Slice key, PageView *view_out);
/* Bytes to ask for. */
static inline u32
btree_need_bytes(Slice key, Slice value)
{
    return (u32)(sizeof(NodeSlot) + key.bytes + value.bytes + 16);
}
static inline Node
btree_node(const Btree *tree, const PageView *view)
{
    return (Node){view->bytes, tree->page_bytes};
}

typedef enum BtreeWhere {
    BTREE_AT,     /* The leaf that may hold the key. */
    BTREE_BEFORE, /* The leaf that may hold what comes before the key. */
    BTREE_LAST    /* The rightmost; key ignored. */
} BtreeWhere;
/* View the leaf; what is read from it counts once pool_view_end() has said so.  [parks] */
MUST_CHECK Err btree_leaf_view(Btree *tree, BtreeWhere where, Slice key, bool scan,
                               PageView *view_out);
/* About which part of the entries lies below `key`.  [parks] */
MUST_CHECK Err btree_fraction_below(Btree *tree, Slice key, f64 *fraction_out);
/* Give every page of the tree to `drop`, latched; nobody comes to the tree any more, though some
   may still be on their way.  [parks] */
void btree_drop_pages(Btree *tree, void (*leaf)(void *arg, Node node),
                      void (*drop)(void *arg, PageView *view), void *arg);
/* Copy the whole leaf, as it was at one instant, into `page` (8-aligned).  `scan`: does not count
   for the pages' heat.  [parks] */
MUST_CHECK Err btree_leaf_copy(Btree *tree, BtreeWhere where, Slice key, bool scan, u8 *page);
/* The value of one key, copied.  [parks]  ERR_NOMEM too. */
MUST_CHECK Err btree_get(Btree *tree, Slice key, bool *found_out, NodeSlot *slot_out, Buf *value);

/* The leaf that would hold `key` may be empty: join it with a sibling.  [parks] */
MUST_CHECK Err btree_merge_empty(Btree *tree, Slice key);
/* Give the ids of merged pages back.  The caller knows that no operation on the tree that was
   running when they were merged still runs.  [parks] */
void btree_reclaim(Btree *tree);

/* Check every page and how they hang together, while entries may come and go.  *what_out NULL:
   sound.  [parks] */
MUST_CHECK Err btree_verify(Btree *tree, const char **what_out, u64 *entries_out);
