/*
 * row.h -- one row of one tree: read, write, undo and purge, as pages and version map hold it.
 *
 * Every change is one page operation on one latched leaf; the order of the steps is that of the
 * README.  Readers look at a leaf optimistically, resolve the writer of the slot, and go to the map
 * only if they must not see it.
 */
#pragma once

#include "store/longval/longval.h"
#include "store/store_private.h"
#include "store/tree/node_fast.h"

/* Bytes before a value in a buffer that is handed out: decoders load words that end in it. */
#define ROW_LEAD_BYTES 16u

/* What a transaction sees at one slot. */
typedef struct RowSeen {
    bool found;
    bool is_long; /* The value is a reference (longval/). */
    /* An image in a spill may be what it sees instead: row_resolve() tells. */
    bool ask_spill;
    Slice value;  /* In the buffer that was given. */
    u64 lsn;      /* Must be durable before it is shown. */
    u64 image_ts; /* Of the image that was taken, plus 1; 0: none. */
} RowSeen;

/* The newest version of a key, whoever sees it. */
typedef struct RowNewest {
    u64 writer;   /* Id; 0: settled. */
    TxnSeen seen; /* Of the writer. */
} RowNewest;

/*
 * What `txn` sees at a slot of a leaf that is being viewed; the caller validates the view before it
 * believes anything.  `to` has room for a page.
 */
void
row_see(StoreTxn *txn, const Tree *tree, Node node, u32 slot, Slice key, u8 *to, RowSeen *seen_out);
/* Is it the transaction itself, or settled for sure? */
static ALWAYS_INLINE bool
row__stands_fast(const StoreTxn *txn, u64 writer)
{
    if (writer < rt_load_acquire(&txn->store->states.floor)) return true;
    return txn->state != NULL && rt_load_relaxed(&txn->state->id) == writer;
}
/* The same, short where the slot's value stands. */
static ALWAYS_INLINE void
row_see_fast(StoreTxn *txn, const Tree *tree, Node node, u32 slot_no, Slice key, u8 *to,
             RowSeen *seen_out)
{
    const NodeSlot *slot = &node_slots(node)[slot_no];
    u8 writer = NODE_LOAD(slot->writer), flags = NODE_LOAD(slot->flags);
    bool settled = writer == NODE_WRITER_SETTLED ||
                   (writer != NODE_WRITER_ASK_MAP &&
                    row__stands_fast(txn, node_writer_id_fast(node, writer)));
    if (UNLIKELY(!settled || flags != 0)) {
        row_see(txn, tree, node, slot_no, key, to, seen_out);
        return;
    }
    rt_yield_point();
    Slice value = node_value_plain(node, slot);
    memcpy(to, value.p, value.bytes);
    *seen_out = (RowSeen){.found = true, .value = {to, value.bytes}};
}

/* Does every slot of the leaf hold what `txn` sees (tombstones aside)?  *lsn_out: what must be
   durable before they are shown. */
bool row_leaf_stands(const StoreTxn *txn, Node node, u64 *lsn_out);
/* Who wrote the newest version at a slot: 0, or an id.  Leaf viewed or latched. */
u64 row_writer(Store *store, const Tree *tree, Node node, u32 slot, Slice key, u64 hash);

/* Room for a page and what goes before it.  ERR_NOMEM. */
static ALWAYS_INLINE Err
row_room(const Store *store, Buf *buf)
{
    size_t bytes = ROW_LEAD_BYTES + (size_t)store->page_bytes;
    if (LIKELY(buf->capacity >= bytes)) return OK;
    buf_clear(buf);
    return buf_reserve(buf, bytes);
}

typedef struct RowWrite {
    StoreTxn *txn;
    Tree *tree;
    Slice key;
    Slice value;   /* As it goes into the leaf: a long one is a reference. */
    Slice content; /* The whole value, for the log. */
    u8 slot_flags; /* NODE_SLOT_TOMBSTONE, NODE_SLOT_LONG */
    StorePut mode;
    bool is_delete;
    u64 hash;
    StoreVerdict verdict;
    bool written;
    bool was_long;   /* What it has written over was a long value. */
    bool grow;       /* The version map has become full. */
    LongRef dropped; /* Written over in place. */
} RowWrite;

/* Write one row, waiting for whoever holds it.  [parks] */
MUST_CHECK Err row_write(RowWrite *w);

/* Undo the newest standing entry of the transaction's list.  Needs no memory.  [parks]  False: its
   page cannot be read; the entry stands, and the store writes no more (store__end_writing()). */
MUST_CHECK bool row_undo(StoreTxn *txn, bool keep_lock);

/* Remove a slot whose tombstone nobody needs.  `id`: a transaction that counts as settled. [parks]
 */
void row_purge(Store *store, Tree *tree, Slice key, u64 hash, u64 id);

/* Tombstones of a leaf that make a scan, which has met them, remove those that nobody needs; so few
   do where they are the half of it. */
#define ROW_GRAVES     32u
#define ROW_GRAVES_FEW 8u
/* Has a viewed leaf so many, and are its writers settled? */
bool row_leaf_has_graves(const Store *store, Node node);
/* Remove them from the leaf of `key`, while nothing is latched or viewed.  [parks] */
void row_purge_leaf(Store *store, Tree *tree, Slice key);

/* Recovery: put or remove a row as settled, when nobody else is there.  `scratch` belongs to the
   caller, for the next call.  [parks] */
MUST_CHECK Err row_put_settled(Store *store, Tree *tree, Slice key, Slice value, Buf *scratch);
/* The same with a value as it stands in leaves; `flags`: NODE_SLOT_LONG or 0. */
MUST_CHECK Err row_restore_settled(Store *store, Tree *tree, Slice key, Slice value, u8 flags,
                                   Buf *scratch);
MUST_CHECK Err row_remove_settled(Store *store, Tree *tree, Slice key);

/* ---- shared by the files of version/ ---- */

/* Index of the writer in the leaf's table, perhaps NODE_WRITER_ASK_MAP.  Leaf latched and
   touched. */
u8 row__writer_index(Store *store, Node node, u64 id, u8 *scratch);
/* Take out of the chain what only was there to name a writer that is settled; stripe latched. */
void row__drop_orphans(Store *store, u64 hash, TreeId tree, Slice key);
/* The leaf of the key, latched, though its page may have to come from the disk more than once.
 *gone_out: there is none any more.  ERR_IO*, ERR_CORRUPT, ERR_NOMEM: it does not come.  [parks] */
MUST_CHECK Err row__leaf_for_undo(Tree *tree, Slice key, bool *gone_out, PageView *view_out);
/* The writer of an image is needed as long as the image is. */
void row__writer_keep(Store *store, const Before *before);
/* The token owner has met a row of `loser`: doom it and undo its newest write of this key; the
   caller looks again.  Nothing is latched.  ERR_NOMEM: nothing was done.  [parks] */
MUST_CHECK Err row__doom(RowWrite *w, TxnState *loser, u64 loser_id);
/* An undone Before leaves its creator's list; it goes, unless its chain needs it as a marker. */
void row__before_release(Store *store, Before *before);
