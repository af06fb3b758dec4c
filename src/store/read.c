/*
 * read.c -- single keys, counts and estimates.
 *
 * What a reader gets back points into versions: they never change, and a version that a live
 * snapshot sees, or that the transaction wrote itself, is not freed before that snapshot or
 * transaction has ended.  So nothing is copied, however long the value.
 */
#include "store/store_private.h"
#include "store/txn/ssi.h"

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
    u32 index;
    bool exact;
    rt_rwlock_lock_shared(&tree->lock);
    const MtreeLeaf *leaf = mtree_look(&tree->map, key, &index, &exact);
    Version *version = exact ? txn__visible(txn, leaf->slot[index]) : NULL;
    Err err = txn__usable(txn);
    rt_rwlock_unlock_shared(&tree->lock);
    if (UNLIKELY(err != OK)) return err;
    if (version != NULL && version->kind == VERSION_VALUE) {
        *found_out = true;
        *value_out = version_value(version);
    }
    return OK;
}

/* Judge the newest version under the shared tree lock; *holder_out as in write.c. */
static Err
newest_try(StoreTxn *txn, Tree *tree, Slice key, bool *found_out, bool *newer_out,
           TxnState **holder_out)
{
    Store *store = txn->store;
    Err err = OK;
    u32 index;
    bool exact;
    *holder_out = NULL;
    *found_out = *newer_out = false;
    rt_rwlock_lock_shared(&tree->lock);
    const MtreeLeaf *leaf = mtree_look(&tree->map, key, &index, &exact);
    Version *version = exact ? leaf->slot[index] : NULL;
    while (version != NULL && version->kind == VERSION_LOCK) {
        version = version->older;
    }
    TxnState *writer = version == NULL ? NULL : version->writer;
    if (writer != NULL && writer != txn->state) {
        if (rt_load_acquire(&writer->status) == TXN_RUNNING) {
            rt_latch_acquire(&store->wait_latch);
            if (writer->txn != NULL) {
                *holder_out = writer;
                goto done;
            }
            rt_latch_release(&store->wait_latch);
        }
        txn__raise_dep(txn, writer);
        *newer_out = rt_load_acquire(&writer->status) > txn->snapshot;
    }
    if (version != NULL && version->kind == VERSION_VALUE) {
        *found_out = true;
        buf_clear(&txn->copy);
        Slice value = version_value(version);
        err = buf_append(&txn->copy, value.p, value.bytes);
    }

done:
    rt_rwlock_unlock_shared(&tree->lock);
    return err == OK ? txn__usable(txn) : txn__fail(txn, err, "out of memory");
}

Err
store_get_newest(StoreTxn *txn, TreeId tree_id, Slice key, bool *found_out, bool *newer_out,
                 Slice *value_out)
{
    Tree *tree = store__tree(txn->store, tree_id);
    *found_out = *newer_out = false;
    if (UNLIKELY(tree == NULL)) return txn__fail(txn, ERR_MISUSE, "no such tree: %u", tree_id);
    if (txn__state(txn) == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    txn->touched = true;
    if (txn->ssi != NULL) {
        Err noted = ssi__note_key(txn, tree_id, key);
        if (noted != OK) return noted;
    }
    for (;;) {
        TxnState *holder;
        Err err = newest_try(txn, tree, key, found_out, newer_out, &holder);
        if (holder == NULL) {
            if (err == OK && *newer_out && txn->ssi != NULL) {
                err = txn__fail(txn, ERR_BUSY_SNAPSHOT,
                                "could not serialize access due to concurrent update");
            }
            if (err == OK && *found_out) *value_out = buf_slice(&txn->copy);
            return err;
        }
        if (err != OK) {
            rt_latch_release(&txn->store->wait_latch);
            return err;
        }
        u64 deadline_ns = txn->wait_ns == 0 ? 0 : rt_deadline_after(txn->wait_ns);
        err = wait__for(txn, holder, WAIT_RESOURCE_ALL, deadline_ns, "a row");
        if (err != OK) return err;
    }
}

/* Slots looked at under one hold of the tree lock. */
#define COUNT_STRETCH 4096u

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
    rt_rwlock_lock_shared(&tree->lock);
    if (tree->unsettled == 0) {
        *rows_out = tree->map.slots; /* Settled tombstones are gone with their slots. */
        Err err = txn__usable(txn);
        rt_rwlock_unlock_shared(&tree->lock);
        return err;
    }
    u64 rows = 0;
    u32 index = 0, stretch = 0;
    const MtreeLeaf *leaf = tree->map.first;
    u8 key_copy[STORE_KEY_BYTES_MAX];
    while (leaf != NULL) {
        for (; index < leaf->count; index++) {
            const Version *version = txn__visible(txn, leaf->slot[index]);
            rows += version != NULL && version->kind == VERSION_VALUE;
        }
        stretch += leaf->count;
        index = 0;
        const MtreeLeaf *next = leaf->next;
        if (next != NULL && stretch >= COUNT_STRETCH) {
            /* Let writers in; go on behind the last key seen. */
            Slice key = version_key(leaf->slot[leaf->count - 1]);
            memcpy(key_copy, key.p, key.bytes);
            key.p = key_copy;
            rt_rwlock_unlock_shared(&tree->lock);
            rt_rwlock_lock_shared(&tree->lock);
            bool exact;
            next = mtree_look(&tree->map, key, &index, &exact);
            if (exact) index++;
            stretch = 0;
        }
        leaf = next;
    }
    Err err = txn__usable(txn);
    rt_rwlock_unlock_shared(&tree->lock);
    *rows_out = rows;
    return err;
}

u64
store_estimate_rows(Store *store, TreeId tree_id)
{
    Tree *tree = store__tree(store, tree_id);
    return tree == NULL ? 0 : rt_load_relaxed(&tree->slots);
}

f64
store_estimate_fraction(Store *store, TreeId tree_id, Slice low, Slice high)
{
    Tree *tree = store__tree(store, tree_id);
    if (tree == NULL) return 0.0;
    rt_rwlock_lock_shared(&tree->lock);
    f64 from = low.bytes == 0 ? 0.0 : mtree_fraction_below(&tree->map, low);
    f64 to = high.bytes == 0 ? 1.0 : mtree_fraction_below(&tree->map, high);
    rt_rwlock_unlock_shared(&tree->lock);
    return to > from ? to - from : 0.0;
}
