/*
 * row_settled.c -- rows put in as settled: images and logs being read in.
 */
#include "store/version/row.h"

static void
ref_note(Node node, u32 slot, LongRef *old_out)
{
    if ((node_slots(node)[slot].flags & NODE_SLOT_LONG) == 0) return;
    Slice ref = node_read_value(node, slot);
    if (ref.bytes == sizeof(*old_out)) memcpy(old_out, ref.p, sizeof(*old_out));
}

/* One try; *done_out false: more room is needed. */
static Err
put_try(Tree *tree, Slice key, Slice value, u8 flags, u32 need, u8 *scratch, LongRef *old_out,
        bool *done_out)
{
    PageView view;
    page_op_throttle(tree->map.pages.ops);
    Err err = btree_leaf_latch(&tree->map, key, need, &view);
    if (err != OK) return err;
    Node node = btree_node(&tree->map, &view);
    bool exact;
    u32 slot = node_find(node, key, &exact);
    PageOp op;
    page_op_begin(tree->map.pages.ops, &op);
    page_op_touch(&op, &view);
    if (exact) {
        ref_note(node, slot, old_out);
        *done_out = node_replace(node, slot, value, NODE_WRITER_SETTLED, flags, scratch);
    } else {
        *done_out = node_insert(node, slot, key, value, NODE_WRITER_SETTLED, flags, scratch);
    }
    pool_unlatch(&view, true, true);
    page_op_end(&op);
    if (*done_out && !exact) rt_fetch_add(&tree->slots, 1);
    if (!*done_out) *old_out = (LongRef){0};
    return OK;
}

Err
row_restore_settled(Store *store, Tree *tree, Slice key, Slice value, u8 flags, Buf *scratch)
{
    LongRef old = {0};
    bool done = false;
    Err err = row_room(store, scratch);
    if (err == OK) err = put_try(tree, key, value, flags, 0, scratch->p, &old, &done);
    while (err == OK && !done) {
        u32 need = btree_need_bytes(key, value);
        err = put_try(tree, key, value, flags, need, scratch->p, &old, &done);
    }
    long_free(store, &old);
    return err;
}

Err
row_put_settled(Store *store, Tree *tree, Slice key, Slice value, Buf *scratch)
{
    if (key.bytes + value.bytes <= store->entry_bytes_max) {
        return row_restore_settled(store, tree, key, value, 0, scratch);
    }
    LongRef ref;
    Err err = long_write(store, tree->id, value, &ref);
    if (err != OK) return err;
    Slice place = {(const u8 *)&ref, sizeof(ref)};
    err = row_restore_settled(store, tree, key, place, NODE_SLOT_LONG, scratch);
    if (err != OK) long_free(store, &ref);
    return err;
}

Err
row_remove_settled(Store *store, Tree *tree, Slice key)
{
    LongRef old = {0};
    PageView view;
    page_op_throttle(tree->map.pages.ops);
    Err err = btree_leaf_latch(&tree->map, key, 0, &view);
    if (err != OK) return err;
    Node node = btree_node(&tree->map, &view);
    bool exact, empty = false;
    u32 slot = node_find(node, key, &exact);
    PageOp op;
    page_op_begin(tree->map.pages.ops, &op);
    if (exact) {
        page_op_touch(&op, &view);
        ref_note(node, slot, &old);
        node_remove(node, slot);
        rt_fetch_sub(&tree->slots, 1);
        empty = node_head(node)->count == 0;
    }
    pool_unlatch(&view, exact, exact);
    page_op_end(&op);
    long_free(store, &old);
    if (!empty) return OK;
    err = btree_merge_empty(&tree->map, key);
    btree_reclaim(&tree->map);
    return err;
}
