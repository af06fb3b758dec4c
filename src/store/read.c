/*
 * read.c -- single keys, counts and estimates.
 *
 * Values are copied out of the pages while they are viewed, and counted only if the view held: what
 * the caller gets lies in the transaction's own memory and stays until the next such call.
 */
#include "store/longval/parts.h"
#include "store/pool/pool_fast.h"
#include "store/txn/ssi.h"
#include "store/version/spill.h"

/* Read a long value into the buffer that holds its reference.  *gone_out: it went meanwhile. */
static Err
long_fetch(StoreTxn *txn, TreeId tree, Slice key, Buf *buf, Slice *value_io, bool *gone_out)
{
    LongRef ref;
    ASSERT(value_io->bytes == sizeof(ref));
    memcpy(&ref, value_io->p, sizeof(ref));
    buf_clear(buf);
    Err err = buf_reserve(buf, ROW_LEAD_BYTES + (size_t)ref.bytes);
    if (err == OK) {
        err = long_read(txn->store, &ref, 0, buf->p + ROW_LEAD_BYTES, ref.bytes, gone_out);
    }
    *value_io = (Slice){buf->p + ROW_LEAD_BYTES, ref.bytes};
    if (err != OK || *gone_out) return err;
    return parts_overlay(txn, tree, key, 0, buf->p + ROW_LEAD_BYTES, ref.bytes);
}

/* A leaf could not be come by; a tree whose pages are gone is empty. */
static Err
leaf_failed(StoreTxn *txn, const Tree *tree, Err err)
{
    if (rt_load_acquire(&tree->gone) != 0) return txn__usable(txn);
    return txn__fail(txn, err, "%s", err_text(err));
}

Err
store_get(StoreTxn *txn, TreeId tree_id, Slice key, bool *found_out, Slice *value_out)
{
    Tree *tree = store__tree(txn->store, tree_id);
    *found_out = false;
    if (UNLIKELY(tree == NULL)) return txn__fail(txn, ERR_MISUSE, "no such tree: %u", tree_id);
    txn->touched = true;
    if (UNLIKELY(txn->ssi != NULL)) {
        Err noted = ssi__note_key(txn, tree_id, key);
        if (noted != OK) return noted;
    }
    Err err = row_room(txn->store, &txn->got);
    if (UNLIKELY(err != OK)) return txn__fail(txn, err, "out of memory");
    u8 *to = txn->got.p + ROW_LEAD_BYTES;
    RowSeen seen;
    for (;;) {
        PageView view;
        err = btree_leaf_view_near(&tree->map, &txn->near, key, &view);
        if (UNLIKELY(err != OK)) return leaf_failed(txn, tree, err);
        Node node = btree_node(&tree->map, &view);
        bool exact;
        u32 slot = tree->map.is_int && LIKELY(key.bytes == 8)
                       ? node_find_int(node, load_be64(key.p), &exact)
                       : node_find(node, key, &exact);
        seen.found = seen.ask_spill = false;
        seen.lsn = 0;
        if (exact) row_see_fast(txn, tree, node, slot, key, to, &seen);
        if (LIKELY(pool_view_end_fast(&view))) break;
        rt_fetch_add(&tree->map.restarts, 1);
    }
    if (UNLIKELY(seen.ask_spill)) {
        err = row_resolve(txn, tree, key, &txn->got, &seen);
        if (err != OK) return leaf_failed(txn, tree, err);
    }
    if (UNLIKELY(seen.lsn != 0)) txn__raise_dep(txn, seen.lsn);
    err = txn__usable(txn);
    if (UNLIKELY(err != OK) || !seen.found) return err;
    if (UNLIKELY(seen.is_long)) {
        bool gone;
        err = long_fetch(txn, tree_id, key, &txn->got, &seen.value, &gone);
        if (err == OK && gone) err = ERR_CORRUPT; /* Our snapshot should have kept it. */
        if (err != OK) return txn__fail(txn, err, "%s", err_text(err));
    }
    *found_out = true;
    *value_out = seen.value;
    return OK;
}

/* Look at it; whoever wrote it may still run. */
static Err
newest_look(StoreTxn *txn, Tree *tree, Slice key, u64 hash, Newest *newest_out)
{
    Newest *newest = newest_out;
    u8 *to = txn->got_newest.p + ROW_LEAD_BYTES;
    for (;;) {
        PageView view;
        Err err = btree_leaf_view(&tree->map, BTREE_AT, key, false, &view);
        *newest = (Newest){0};
        if (err != OK) return err;
        Node node = btree_node(&tree->map, &view);
        bool exact;
        u32 slot = node_find(node, key, &exact);
        if (exact) {
            newest->writer = row_writer(txn->store, tree, node, slot, key, hash);
            if (newest->writer != 0) {
                newest->seen = txn_table_look(&txn->store->states, newest->writer);
            }
            u8 flags = NODE_LOAD(node_slots(node)[slot].flags);
            Slice value = node_read_value(node, slot);
            memcpy(to, value.p, value.bytes);
            newest->found = (flags & NODE_SLOT_TOMBSTONE) == 0;
            newest->is_long = (flags & NODE_SLOT_LONG) != 0;
            newest->value = (Slice){to, value.bytes};
        }
        if (pool_view_end(&view)) return OK;
    }
}

/* Wait for the end of who is writing the version that was looked at. */
static Err
newest_wait(StoreTxn *txn, const Newest *newest)
{
    rt_latch_acquire(&txn->store->wait_latch);
    if (!wait__runs(newest->seen.state, newest->writer)) {
        rt_latch_release(&txn->store->wait_latch);
        return OK;
    }
    u64 deadline_ns = txn->wait_ns == 0 ? 0 : rt_deadline_after(txn->wait_ns);
    return wait__for(txn, newest->seen.state, WAIT_RESOURCE_ALL, deadline_ns, "a row");
}

Err
read__newest(StoreTxn *txn, Tree *tree, Slice key, bool waits, Newest *newest_out)
{
    Newest *newest = newest_out;
    u64 hash = version_hash(tree->id, key);
    if (txn__state(txn) == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    txn->touched = true;
    Err err = txn->ssi == NULL ? OK : ssi__note_key(txn, tree->id, key);
    if (err != OK) return err;
    for (;;) {
        err = row_room(txn->store, &txn->got_newest);
        if (err != OK) return txn__fail(txn, err, "out of memory");
        err = newest_look(txn, tree, key, hash, newest);
        if (err != OK) return leaf_failed(txn, tree, err);
        bool others = newest->seen.state != NULL && newest->seen.state != txn->state;
        if (!others) return OK;
        if (newest->seen.status == TXN_RUNNING) {
            newest->busy = !waits;
            if (newest->busy) return OK;
            err = newest_wait(txn, newest);
            if (err != OK) return err;
            continue;
        }
        if (UNLIKELY(newest->seen.status == TXN_ABORTED)) {
            err = txn__writable(txn); /* It may be that it could not be undone; else look again. */
            if (err != OK) return err;
            continue;
        }
        txn__raise_dep(txn, newest->seen.lsn);
        newest->newer = newest->seen.status > txn->snapshot;
        return OK;
    }
}

Err
store_get_newest(StoreTxn *txn, TreeId tree_id, Slice key, bool *found_out, bool *newer_out,
                 Slice *value_out)
{
    Tree *tree = store__tree(txn->store, tree_id);
    *found_out = *newer_out = false;
    if (UNLIKELY(tree == NULL)) return txn__fail(txn, ERR_MISUSE, "no such tree: %u", tree_id);
    Newest newest;
    Err err;
    for (bool gone = true; gone;) {
        gone = false;
        err = read__newest(txn, tree, key, true, &newest);
        if (err != OK) return err;
        *newer_out = newest.newer;
        if (!newest.found || !newest.is_long) break;
        LongRef ref; /* The look at the parts takes the memory that it stands in. */
        bool newer;
        memcpy(&ref, newest.value.p, sizeof(ref));
        newest.value.p = (const u8 *)&ref;
        err = parts_newer(txn, tree_id, key, &newer);
        if (err != OK) return err;
        *newer_out = *newer_out || newer;
        /* A version that no snapshot sees may go while its long value is read: then look again. */
        err = long_fetch(txn, tree_id, key, &txn->got_newest, &newest.value, &gone);
        if (err != OK) return txn__fail(txn, err, "%s", err_text(err));
    }
    err = txn__usable(txn);
    if (err != OK) return err;
    if (*newer_out && txn->ssi != NULL) {
        return txn__fail(txn, ERR_BUSY_SNAPSHOT,
                         "could not serialize access due to concurrent update");
    }
    *found_out = newest.found;
    if (newest.found) *value_out = newest.value;
    return OK;
}

/* ---- counting ---- */

/* Entries of a leaf that the transaction sees, one by one.  *asks_out: spills must be asked. */
static u32
count_slots(StoreTxn *txn, const Tree *tree, Node node, u8 *space, u64 *lsn_io, bool *asks_out)
{
    u8 key_bytes[STORE_KEY_BYTES_MAX];
    u32 rows = 0;
    u32 most = (node.bytes - NODE_HEAD_BYTES) / (u32)sizeof(NodeSlot);
    u32 count = NODE_LOAD(node_head(node)->count);
    for (u32 i = 0; i < MIN_OF(count, most); i++) {
        Slice key = {key_bytes, node_read_key(node, i, key_bytes)};
        RowSeen seen;
        row_see(txn, tree, node, i, key, space, &seen);
        rows += seen.found;
        *lsn_io = MAX_OF(*lsn_io, seen.lsn);
        *asks_out = *asks_out || seen.ask_spill;
    }
    return rows;
}

/* The same key by key, from a copy of the leaf: what the transaction sees of a key stays. */
static Err
count_resolved(StoreTxn *txn, Tree *tree, Node copy, u32 *rows_out, u64 *lsn_io)
{
    u8 key_bytes[STORE_KEY_BYTES_MAX];
    Err err = OK;
    *rows_out = 0;
    for (u32 i = 0; i < node_head(copy)->count && err == OK; i++) {
        Slice key = {key_bytes, node_read_key(copy, i, key_bytes)};
        RowSeen seen;
        err = row_resolve(txn, tree, key, &txn->got, &seen);
        if (err != OK) break;
        *rows_out += seen.found;
        *lsn_io = MAX_OF(*lsn_io, seen.lsn);
    }
    return err;
}

/* A walk from leaf to leaf. */
typedef struct CountWalk {
    StoreTxn *txn;
    Tree *tree;
    u64 rows;
    u8 *copy;  /* Of a leaf. */
    u64 lsn;   /* Must be durable before the count is shown. */
    u32 right; /* Page id of the next leaf, if it still is that. */
    u32 low_bytes;
    u8 low[STORE_KEY_BYTES_MAX]; /* Where it begins. */
} CountWalk;

/* View the leaf that begins at `low`, by the link that led there if that still does. */
static Err
count_view(CountWalk *walk, PageView *view)
{
    Btree *map = &walk->tree->map;
    Slice low = {walk->low, walk->low_bytes};
    if (walk->right != NODE_PAGE_NONE) {
        Err err = pool_view(map->file, walk->right, true, view);
        if (err == OK) {
            Node node = btree_node(map, view);
            const NodeHead *head = node_head(node);
            bool good = head->tree_id == map->tree_id && head->level == 0 &&
                        (head->flags & NODE_FLAG_DEAD) == 0 &&
                        slice_equal(node_fences(node).low, low) && pool_view_check(view);
            if (LIKELY(good)) return OK;
            (void)pool_view_end(view);
        }
    }
    return btree_leaf_view(map, BTREE_AT, low, true, view);
}

/* Count one leaf, and go on to where the next begins.  *more_out: there is one. */
static Err
count_leaf(CountWalk *walk, bool *more_out)
{
    StoreTxn *txn = walk->txn;
    for (;;) {
        PageView view;
        Err err = count_view(walk, &view);
        if (err != OK) return err;
        Node node = btree_node(&walk->tree->map, &view);
        u64 lsn;
        bool asks = false;
        u32 rows = node_head(node)->live;
        if (!row_leaf_stands(txn, node, &lsn)) {
            rows = count_slots(txn, walk->tree, node, txn->got.p, &lsn, &asks);
            if (asks) rt_copy_racy(walk->copy, node.p, node.bytes);
        }
        u8 high[STORE_KEY_BYTES_MAX];
        NodeFences fences = node_fences(node);
        size_t high_bytes = fences.has_high ? MIN_OF(fences.high.bytes, sizeof(high)) : 0;
        if (high_bytes > 0) memcpy(high, fences.high.p, high_bytes);
        u32 right = node_head(node)->right;
        *more_out = fences.has_high;
        if (!pool_view_end(&view)) continue;
        if (UNLIKELY(asks)) {
            err = count_resolved(txn, walk->tree, (Node){walk->copy, node.bytes}, &rows, &lsn);
            if (err != OK) return err;
        }
        walk->lsn = MAX_OF(walk->lsn, lsn);
        walk->rows += rows;
        walk->right = right;
        walk->low_bytes = (u32)high_bytes;
        if (high_bytes > 0) memcpy(walk->low, high, high_bytes);
        return OK;
    }
}

Err
store_count(StoreTxn *txn, TreeId tree_id, u64 *rows_out)
{
    Tree *tree = store__tree(txn->store, tree_id);
    *rows_out = 0;
    if (UNLIKELY(tree == NULL)) return txn__fail(txn, ERR_MISUSE, "no such tree: %u", tree_id);
    txn->touched = true;
    if (UNLIKELY(txn->ssi != NULL)) {
        Err noted = ssi__note_range(txn, tree_id, NULL, NULL);
        if (noted != OK) return noted;
    }
    u64 lsn;
    bool is_gone = rt_load_acquire(&tree->gone) != 0;
    if (LIKELY(!is_gone) && count_look(txn, tree, rows_out, &lsn)) {
        txn__raise_dep(txn, lsn);
        return txn__usable(txn);
    }
    *rows_out = 0;
    Err err = row_room(txn->store, &txn->got);
    if (err == OK) err = row_room(txn->store, &txn->scratch);
    if (err != OK) return txn__fail(txn, err, "out of memory");
    CountWalk walk;
    memset(&walk, 0, offsetof(CountWalk, low));
    walk.copy = txn->scratch.p;
    walk.txn = txn;
    walk.tree = tree;
    for (bool more = true; more;) {
        err = count_leaf(&walk, &more);
        if (err != OK) return leaf_failed(txn, tree, err);
        if (UNLIKELY(rt_load_relaxed(&txn->interrupted) != 0)) {
            return txn__fail(txn, ERR_INTERRUPT, "interrupted");
        }
    }
    txn__raise_dep(txn, walk.lsn);
    *rows_out = walk.rows;
    err = txn__usable(txn);
    if (err == OK) count_learn(txn, tree, walk.rows, walk.lsn);
    return err;
}

u64
store_estimate_rows(Store *store, TreeId tree_id)
{
    Tree *tree = store__tree(store, tree_id);
    if (tree == NULL || rt_load_acquire(&tree->gone) != 0) return 0;
    return rt_load_relaxed(&tree->slots);
}

f64
store_estimate_fraction(Store *store, TreeId tree_id, Slice low, Slice high)
{
    Tree *tree = store__tree(store, tree_id);
    if (tree == NULL || rt_load_acquire(&tree->gone) != 0) return 0.0;
    f64 from = 0.0, to = 1.0;
    Err err = OK;
    if (low.bytes > 0) err = btree_fraction_below(&tree->map, low, &from);
    if (err == OK && high.bytes > 0) err = btree_fraction_below(&tree->map, high, &to);
    return err == OK && to > from ? to - from : 0.0;
}
