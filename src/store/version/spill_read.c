/*
 * spill_read.c -- images that have been spilled, for those who see them or must restore them.
 *
 * A spill that is being looked at is counted, and not thrown away meanwhile.
 */
#include "store/version/spill.h"

/* ---- holding one ---- */

static void
reader_leaves(Store *store, Spill *spill)
{
    rt_latch_acquire(&store->spill_latch);
    spill->readers--;
    rt_latch_release(&store->spill_latch);
}

/* Is what it holds hidden from the transaction by a newer version?  Spill latch held. */
static bool
hides(const StoreTxn *txn, const Spill *spill)
{
    if (spill->state == txn->state) return false;
    u64 status = rt_load_acquire(&spill->state->status);
    return status - 1 >= txn->snapshot; /* Running wraps to the highest number. */
}

bool
spill_may_hide(const StoreTxn *txn)
{
    Store *store = txn->store;
    bool found = false;
    if (rt_load_acquire(&store->spill_count) == 0) return false;
    rt_latch_acquire(&store->spill_latch);
    for (const Spill *spill = store->spills; spill != NULL && !found; spill = spill->next) {
        found = hides(txn, spill);
    }
    rt_latch_release(&store->spill_latch);
    return found;
}

/* The first after `serial` that hides something, counted; NULL: none. */
static Spill *
next_hiding(const StoreTxn *txn, u32 serial)
{
    Store *store = txn->store;
    rt_latch_acquire(&store->spill_latch);
    Spill *spill = store->spills;
    while (spill != NULL && (spill->serial <= serial || !hides(txn, spill))) {
        spill = spill->next;
    }
    if (spill != NULL) spill->readers++;
    rt_latch_release(&store->spill_latch);
    return spill;
}

/* ---- for readers ---- */

/* Of all images in spills and the one in `seen`, the transaction sees the newest that its snapshot
   includes. */
static Err
look_in_spills(StoreTxn *txn, TreeId tree, Slice key, Buf *to, RowSeen *seen)
{
    Store *store = txn->store;
    Buf value = {0};
    Err err = OK;
    u32 serial = 0;
    Spill *spill;
    while (err == OK && (spill = next_hiding(txn, serial)) != NULL) {
        serial = spill->serial;
        bool found;
        SpillImage image;
        Slice bytes;
        err = spill_image_read(store, &spill->tree.map, tree, key, &value, &found, &image, &bytes);
        reader_leaves(store, spill);
        if (err != OK || !found) continue;
        if (image.ts > txn->snapshot || image.ts + 1 <= seen->image_ts) continue;
        seen->image_ts = image.ts + 1;
        seen->lsn = MAX_OF(seen->lsn, image.lsn);
        seen->found = (image.slot_flags & NODE_SLOT_TOMBSTONE) == 0;
        seen->is_long = (image.slot_flags & NODE_SLOT_LONG) != 0;
        u8 *place = to->p + ROW_LEAD_BYTES;
        ASSERT(bytes.bytes <= store->page_bytes);
        if (bytes.bytes > 0) memcpy(place, bytes.p, bytes.bytes);
        seen->value = (Slice){place, bytes.bytes};
    }
    buf_free(&value);
    return err;
}

Err
row_resolve(StoreTxn *txn, Tree *tree, Slice key, Buf *to, RowSeen *seen_out)
{
    Store *store = txn->store;
    RowSeen *seen = seen_out;
    Err err = row_room(store, to);
    while (err == OK) {
        u64 moves = rt_load_acquire(&store->spill_moves);
        PageView view;
        err = btree_leaf_view(&tree->map, BTREE_AT, key, false, &view);
        if (err != OK) break;
        Node node = btree_node(&tree->map, &view);
        bool exact;
        u32 slot = node_find(node, key, &exact);
        *seen = (RowSeen){0};
        if (exact) row_see(txn, tree, node, slot, key, to->p + ROW_LEAD_BYTES, seen);
        if (!pool_view_end(&view)) continue;
        if (!seen->ask_spill) break;
        seen->ask_spill = false;
        err = look_in_spills(txn, tree->id, key, to, seen);
        if (err == OK && rt_load_acquire(&store->spill_moves) == moves) break;
    }
    return err;
}

/* ---- for who undoes in another's place ---- */

Err
spill_image_of(Store *store, TxnState *state, u64 id, const Tree *tree, Slice key, u64 hash,
               bool *spilled_out, Before **before_out)
{
    *spilled_out = false;
    *before_out = NULL;
    rt_latch_acquire(&store->spill_latch);
    Spill *spill = (Spill *)rt_load_acquire(&state->spill);
    if (rt_load_acquire(&state->id) != id) spill = NULL;
    if (spill != NULL) spill->readers++;
    rt_latch_release(&store->spill_latch);
    if (spill == NULL) return OK;
    *spilled_out = true;
    Buf value = {0};
    bool found;
    SpillImage image;
    Slice bytes;
    Err err = spill_image_read(store, &spill->tree.map, tree->id, key, &value, &found, &image,
                               &bytes);
    if (err == OK && found) {
        Before *before = before_new(tree->id, hash, key, bytes);
        if (before == NULL) {
            err = ERR_NOMEM;
        } else {
            before->slot_flags = image.slot_flags;
            before->writer = image.writer;
            before->ts = image.ts;
            before->lsn = image.lsn;
            before->creator = state;
            before->creator_id = id;
            *before_out = before;
        }
    }
    reader_leaves(store, spill);
    buf_free(&value);
    return err;
}
