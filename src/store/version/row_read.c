/*
 * row_read.c -- what a transaction sees at a slot.
 */
#include "store/version/spill.h"

u64
row_writer(Store *store, const Tree *tree, Node node, u32 slot, Slice key, u64 hash)
{
    u8 writer = NODE_LOAD(node_slots(node)[slot].writer);
    if (writer == NODE_WRITER_SETTLED) return 0;
    if (writer != NODE_WRITER_ASK_MAP) return node_writer_id(node, writer);
    version_lock(&store->versions, hash);
    const Before *head = version_head(&store->versions, hash, tree->id, key);
    u64 id = head == NULL ? 0 : head->creator_id;
    version_unlock(&store->versions, hash);
    return id;
}

/* The first image of the chain that the transaction sees. */
static void
see_chain(StoreTxn *txn, const Before *head, u8 *to, RowSeen *seen)
{
    for (const Before *before = head; before != NULL; before = before_below(before)) {
        if (before_is(before, BEFORE_MARKER) || before->ts > txn->snapshot) continue;
        seen->lsn = MAX_OF(seen->lsn, before->lsn);
        seen->image_ts = before->ts + 1;
        if ((before->slot_flags & NODE_SLOT_TOMBSTONE) != 0) return;
        Slice image = before_image(before);
        memcpy(to, image.p, MIN_OF(image.bytes, txn->store->page_bytes));
        seen->found = true;
        seen->is_long = (before->slot_flags & NODE_SLOT_LONG) != 0;
        seen->value = (Slice){to, image.bytes};
        return;
    }
}

/* The slot's value is not the transaction's to see, or the map must tell. */
static NOINLINE bool
see_in_map(StoreTxn *txn, const Tree *tree, Slice key, u8 writer, u8 *to, RowSeen *seen)
{
    VersionMap *map = &txn->store->versions;
    u64 hash = version_hash(tree->id, key);
    version_lock(map, hash);
    const Before *head = version_head(map, hash, tree->id, key);
    bool stands = writer == NODE_WRITER_ASK_MAP &&
                  (head == NULL || txn__sees(txn, head->creator_id, &seen->lsn));
    if (head == NULL && PLANT(132)) stands = true; /* No image: taken for visible. */
    if (!stands) see_chain(txn, head, to, seen);
    version_unlock(map, hash);
    if (!stands && UNLIKELY(rt_load_acquire(&txn->store->spill_count) != 0)) {
        seen->ask_spill = spill_may_hide(txn);
    }
    return stands;
}

void
row_see(StoreTxn *txn, const Tree *tree, Node node, u32 slot_no, Slice key, u8 *to,
        RowSeen *seen_out)
{
    const NodeSlot *slot = &node_slots(node)[slot_no];
    RowSeen *seen = seen_out;
    *seen = (RowSeen){0};
    u8 writer = NODE_LOAD(slot->writer);
    if (writer != NODE_WRITER_SETTLED) {
        bool stands = writer != NODE_WRITER_ASK_MAP &&
                      txn__sees(txn, node_writer_id(node, writer), &seen->lsn);
        if (!stands && !see_in_map(txn, tree, key, writer, to, seen)) return;
    }
    rt_yield_point();
    u8 flags = NODE_LOAD(slot->flags);
    if ((flags & NODE_SLOT_TOMBSTONE) != 0) return;
    Slice value = node_read_value(node, slot_no);
    memcpy(to, value.p, value.bytes);
    seen->found = true;
    seen->is_long = (flags & NODE_SLOT_LONG) != 0;
    seen->value = (Slice){to, value.bytes};
}

bool
row_leaf_stands(const StoreTxn *txn, Node node, u64 *lsn_out)
{
    const NodeHead *head = node_head(node);
    *lsn_out = 0;
    if ((NODE_LOAD(head->flags) & NODE_FLAG_ASKS) != 0) return false;
    u32 count;
    const u64 *writers = node_writers(node, &count);
    for (u32 i = 0; i < count; i++) {
        u64 id = NODE_LOAD(writers[i]);
        if (id != 0 && !txn__sees(txn, id, lsn_out)) return false;
    }
    return true;
}
