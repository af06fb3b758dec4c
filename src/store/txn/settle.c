/*
 * settle.c -- when nobody needs an old version any more.
 *
 * A committed transaction is settled when every live snapshot sees it and it cannot be lost: a
 * FULL one when it is durable, one below FULL when every FULL one before it is.  Committed
 * transactions wait in a queue by timestamp and settle in that order, so that what is settled is
 * a prefix: after a failed sync no snapshot can see half of what was lost.  Settling a version
 * clears its writer and frees everything older in its chain; a tombstone goes with its slot.
 *
 * While an old snapshot holds the queue up, versions between two live snapshots are dropped as
 * soon as they are overwritten (prune), so one forgotten reader costs one version a key.
 *
 * A queue in the order of timestamps also means that what lies below a settled version has been
 * settled before, hence is in nobody's list and may be freed by whoever holds the tree lock.
 */
#include "store/store_private.h"

#define PRUNED_ROW    32u
#define SNAPSHOTS_MAX 128u /* Different ones; above the last of them every version stays. */

void
settle__free_version(Store *store, Tree *tree, Version *version)
{
    u64 cost = version_cost(version);
    rt_fetch_sub(&tree->bytes, cost);
    rt_fetch_sub(&store->counters.version_bytes, cost);
    rt_fetch_sub(&store->counters.versions_live, 1);
    mem_free(version);
}

void
settle__tidy_slot(Store *store, Tree *tree, MtreePath *path)
{
    Version *head = path->leaf->slot[path->index];
    if (head->kind != VERSION_TOMBSTONE || head->writer != NULL) return;
    ASSERT(head->older == NULL);
    mtree_remove(&tree->map, path);
    rt_store_relaxed(&tree->slots, tree->map.slots);
    settle__free_version(store, tree, head);
}

u64
settle__safe_ts(Store *store)
{
    u64 durable = store__durable(store);
    rt_latch_acquire(&store->commit_latch);
    u64 safe = rt_load_relaxed(&store->last);
    for (const TxnState *state = store->queue_oldest; state != NULL; state = state->newer) {
        if (!state->full || state->lsn <= durable) continue;
        safe = rt_load_relaxed(&state->status) - 1;
        break;
    }
    rt_latch_release(&store->commit_latch);
    return safe;
}

/* The different snapshots in use, rising, at most SNAPSHOTS_MAX.  *mark_out: every snapshot taken
   later is at or above it; lower when there are more snapshots than fit. */
static u64
snapshots_list(Store *store, u64 *snapshots, u64 *mark_out)
{
    rt_latch_acquire(&store->txns_latch);
    u64 count = 0;
    *mark_out = rt_load_acquire(&store->last);
    for (const StoreTxn *txn = store->live_oldest; txn != NULL; txn = txn->newer) {
        if (count > 0 && snapshots[count - 1] == txn->snapshot) continue;
        if (count == SNAPSHOTS_MAX) {
            *mark_out = snapshots[count - 1];
            break;
        }
        snapshots[count++] = txn->snapshot;
    }
    rt_latch_release(&store->txns_latch);
    return count;
}

static void
queue_remove(Store *store, TxnState *state)
{
    rt_latch_acquire(&store->commit_latch);
    if (state->older != NULL) {
        state->older->newer = state->newer;
    } else {
        store->queue_oldest = state->newer;
    }
    if (state->newer != NULL) {
        state->newer->older = state->older;
    } else {
        store->queue_newest = state->older;
    }
    rt_latch_release(&store->commit_latch);
    rt_fetch_sub(&store->queue_length, 1);
}

static bool
is_safe(const Store *store, const TxnState *state)
{
    if (PLANT(105)) return true; /* Settles what is not durable. */
    return !state->full || state->lsn <= store__durable(store);
}

/* ---- settling ---- */

static void
settle_drop(Store *store, Version *version, Tree *tree)
{
    rt_rwlock_lock(&tree->lock);
    if (tree->unsettled == 0) {
        store__tree_empty(store, tree);
    } else {
        store->has_doomed_trees = true; /* Somebody wrote beside the drop; later. */
    }
    rt_rwlock_unlock(&tree->lock);
    settle__free_version(store, tree, version);
}

/* One version whose transaction is settled; exclusive tree lock held.  May free it. */
static void
settle_row(Store *store, Tree *tree, Version *version)
{
    version->writer = NULL;
    ASSERT(tree->unsettled > 0);
    tree->unsettled--;
    while (version->older != NULL) {
        Version *old = version->older;
        version->older = old->older;
        if (old->writer != NULL) {
            /* An own write under a newer own write: the same list, further behind. */
            old->writer = NULL;
            tree->unsettled--;
        }
        settle__free_version(store, tree, old);
    }
    if (version->kind != VERSION_TOMBSTONE) return;
    MtreePath path;
    mtree_find(&tree->map, version_key(version), &path);
    ASSERT(path.exact);
    if (path.leaf->slot[path.index] == version) settle__tidy_slot(store, tree, &path);
}

/*
 * Settle up to `budget` versions of one transaction, newest first, so that an own write that was
 * overwritten in the same transaction is taken out of the list together with the newer one.
 */
static u64
settle_some(Store *store, TxnState *state, u64 budget)
{
    u64 done = 0;
    while (state->last != NULL && done < budget) {
        Version *version = state->last;
        Tree *tree = store__tree(store, version->tree);
        if (version->kind == VERSION_TREE_CREATE || version->kind == VERSION_TREE_DROP) {
            txn__list_remove(state, version);
            if (version->kind == VERSION_TREE_DROP) {
                settle_drop(store, version, tree);
            } else {
                settle__free_version(store, tree, version);
            }
            done++;
            continue;
        }
        rt_rwlock_lock(&tree->lock);
        for (u32 i = 0; i < 512 && done < budget; i++) {
            txn__list_remove(state, version);
            for (Version *own = version->older; own != NULL && own->writer == state;
                 own = own->older) {
                txn__list_remove(state, own);
            }
            settle_row(store, tree, version);
            done++;
            version = state->last;
            if (version == NULL || version->tree != tree->id) break;
            if (version->kind == VERSION_TREE_CREATE || version->kind == VERSION_TREE_DROP) break;
        }
        rt_rwlock_unlock(&tree->lock);
    }
    return done;
}

/* ---- pruning ---- */

/* Is there a snapshot s with low <= s < high? */
static bool
snapshot_between(const u64 *snapshots, u64 count, u64 low, u64 high)
{
    for (u64 i = 0; i < count; i++) {
        if (snapshots[i] >= low) return snapshots[i] < high;
    }
    return false;
}

/* Free those versions below `version` that no snapshot needs; exclusive tree lock held. */
static void
prune_chain(Store *store, Tree *tree, Version *version, const u64 *snapshots, u64 count)
{
    u64 high = rt_load_relaxed(&version->writer->status);
    Version **link = &version->older;
    while (*link != NULL) {
        Version *old = *link;
        TxnState *writer = old->writer;
        if (writer == NULL) break;
        u64 low = rt_load_relaxed(&writer->status);
        ASSERT(low != TXN_RUNNING && low <= high);
        bool needed = low == high || rt_load_acquire(&writer->ended) == 0 ||
                      snapshot_between(snapshots, count, low, high);
        if (needed) {
            high = low;
            link = &old->older;
            continue;
        }
        *link = old->older;
        tree->unsettled--;
        txn__list_remove(writer, old);
        settle__free_version(store, tree, old);
        if (writer->count == 0) {
            queue_remove(store, writer);
            mem_free(writer);
        }
    }
}

static void
prune_below(Store *store, TxnState *state, const u64 *snapshots, u64 count)
{
    for (Version *version = state->first; version != NULL; version = version->next) {
        if (version->kind != VERSION_VALUE && version->kind != VERSION_TOMBSTONE) continue;
        Tree *tree = store__tree(store, version->tree);
        rt_rwlock_lock(&tree->lock);
        prune_chain(store, tree, version, snapshots, count);
        rt_rwlock_unlock(&tree->lock);
    }
    state->pruned = true;
}

/* A committed transaction that can be looked at and has not been.  Those come in at the new end,
   nearly in order, so a row of old acquaintances ends the search. */
static TxnState *
unpruned(Store *store, u64 mark)
{
    u32 known = 0;
    rt_latch_acquire(&store->commit_latch);
    TxnState *state = store->queue_newest;
    for (; state != NULL && known < PRUNED_ROW; state = state->older) {
        bool ready = rt_load_relaxed(&state->status) <= mark && is_safe(store, state) &&
                     rt_load_acquire(&state->ended) != 0;
        if (ready && !state->pruned) break;
        known = ready ? known + 1 : 0;
    }
    rt_latch_release(&store->commit_latch);
    return known < PRUNED_ROW ? state : NULL;
}

/* ---- the pass ---- */

static void
empty_doomed_trees(Store *store)
{
    bool left = false;
    u32 end = rt_load_acquire(&store->tree_next);
    for (TreeId id = 1; id < end; id++) {
        Tree *tree = store__tree(store, id);
        if (tree == NULL || rt_load_acquire(&tree->dropped_ts) == 0) continue;
        rt_rwlock_lock(&tree->lock);
        if (tree->map.slots > 0 && tree->unsettled == 0) store__tree_empty(store, tree);
        left = left || tree->map.slots > 0;
        rt_rwlock_unlock(&tree->lock);
    }
    store->has_doomed_trees = left;
}

bool
settle__run(Store *store, u64 budget)
{
    if (!rt_mutex_try_lock(&store->settle_mutex)) return false;
    u64 snapshots[SNAPSHOTS_MAX];
    u64 mark;
    u64 count = snapshots_list(store, snapshots, &mark);
    u64 horizon = count > 0 ? MIN_OF(snapshots[0], mark) : mark;
    u64 left = budget;
    bool more = false;
    TxnState *state;
    for (;;) {
        rt_latch_acquire(&store->commit_latch);
        state = store->queue_oldest;
        rt_latch_release(&store->commit_latch);
        if (state == NULL || rt_load_relaxed(&state->status) > horizon) break;
        if (!is_safe(store, state)) break;
        left -= settle_some(store, state, left);
        if (state->count > 0) {
            more = true;
            break;
        }
        queue_remove(store, state);
        mem_free(state);
    }
    /* Held up by a snapshot: drop what lies between snapshots, once for each commit. */
    bool held = state != NULL && rt_load_relaxed(&state->status) > horizon;
    TxnState *next;
    while (held && (next = unpruned(store, mark)) != NULL) {
        prune_below(store, next, snapshots, count);
    }
    if (store->has_doomed_trees) empty_doomed_trees(store);
    rt_mutex_unlock(&store->settle_mutex);
    return more;
}
