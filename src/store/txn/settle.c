/*
 * settle.c -- when nobody needs an old version any more.
 *
 * A committed transaction is settled when every live snapshot sees it and it cannot be lost: a
 * FULL one when it is durable, one below FULL when every FULL one before it is.  Committed
 * transactions wait in a queue by timestamp and settle in that order, so that what is settled is
 * a prefix: after a failed sync no snapshot can see half of what was lost.  Settling one frees the
 * before-images that it has made and purges its tombstones; the values in the leaves are not
 * visited: that its id names nobody any more says that they are settled.
 *
 * While an old snapshot holds the queue up, images between two live snapshots are dropped as
 * soon as they are overwritten (prune), so one forgotten reader costs one image a key.  What is on
 * top of its chain only loses its image: it may name the writer of a slot.
 *
 * One settler at a time; it alone changes the lists of transactions that have ended.
 */
#include "store/txn/open_set.h"
#include "store/version/spill.h"

#define PRUNED_ROW    32u
#define TURN_EVERY    64u  /* Before-images, between two looks whether others wait for a turn. */
#define SNAPSHOTS_MAX 128u /* Different ones; above the last of them every version stays. */

u64
settle__safe_ts(Store *store)
{
    u64 durable = store__durable(store);
    rt_latch_acquire(&store->commit_latch);
    u64 safe = rt_load_relaxed(&store->last);
    /* Log positions rise with timestamps: those that are not durable stand at the new end, and the
       first FULL one that is ends the search. */
    const TxnState *state = store->full_lsn <= durable ? NULL : store->queue_newest;
    for (; state != NULL; state = state->older) {
        u64 lsn = rt_load_relaxed(&state->lsn);
        if (lsn != 0 && lsn <= durable) break;
        if (lsn != 0) safe = rt_load_relaxed(&state->status) - 1;
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

/* Commit latch held. */
static void
queue_take(Store *store, TxnState *state)
{
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
    rt_fetch_sub(&store->queue_length, 1);
}

static void
queue_remove(Store *store, TxnState *state)
{
    rt_latch_acquire(&store->commit_latch);
    queue_take(store, state);
    rt_latch_release(&store->commit_latch);
}

/* The oldest of the queue, once `done` (or NULL) has left it. */
static TxnState *
queue_first(Store *store, TxnState *done)
{
    rt_latch_acquire(&store->commit_latch);
    if (done != NULL) queue_take(store, done);
    TxnState *first = store->queue_oldest;
    rt_latch_release(&store->commit_latch);
    return first;
}

static bool
is_safe(const Store *store, const TxnState *state)
{
    if (PLANT(105)) return true; /* Settles what is not durable. */
    return rt_load_relaxed(&state->lsn) <= store__durable(store);
}

/* ---- settling ---- */

static void
image_free_long(Store *store, const Before *before)
{
    if ((before->slot_flags & NODE_SLOT_LONG) == 0) return;
    LongRef ref;
    Slice image = before_image(before);
    ASSERT(image.bytes == sizeof(ref));
    memcpy(&ref, image.p, sizeof(ref));
    long_free(store, &ref);
}

/* Out of the chain, out of its list, and free. */
static void
before_settle(Store *store, TxnState *state, Before *before)
{
    u64 hash = before->hash;
    if (before_is(before, BEFORE_UNDONE)) {
        row__before_release(store, before);
        return;
    }
    version_lock(&store->versions, hash);
    if (before_is(before, BEFORE_LINKED)) version_unlink(&store->versions, before);
    version_unlock(&store->versions, hash);
    before_remove(state, before);
    if (!before_is(before, BEFORE_MARKER)) image_free_long(store, before);
    if (before_is(before, BEFORE_DELETES)) {
        Tree *tree = store__tree(store, before->tree);
        row_purge(store, tree, before_key(before), hash, rt_load_relaxed(&state->id));
    }
    before_free(before);
}

void
settle__hand_over(Store *store, TxnState *state)
{
    if (LIKELY(rt_load_relaxed(&state->status) != TXN_ABORTED)) {
        rt_store_release(&state->ended, 1);
        return;
    }
    rt_latch_acquire(&store->commit_latch);
    rt_store_release(&state->ended, 1);
    bool pinned = rt_load_relaxed(&state->pins) > 0;
    rt_latch_release(&store->commit_latch);
    if (pinned) return;
    for (Before *before = state->first; before != NULL;) {
        Before *next = before->next;
        bool undone = before_is(before, BEFORE_UNDONE);
        ASSERT(undone || state->is_stuck);
        if (undone) row__before_release(store, before);
        before = next;
    }
    if (UNLIKELY(state->is_stuck)) return; /* Its id must go on meaning that it was aborted. */
    txn_table_give(&store->states, state);
}

/* Mark the trees that a settled transaction has dropped. */
static void
settle_drops(Store *store, const TxnState *state)
{
    for (const TreeNote *note = state->tree_notes; note != NULL; note = note->older) {
        if (note->kind == UNDO_TREE_DROP) rt_store_release(&store->has_doomed_trees, 1);
    }
}

/* Others may run; what has begun is not cancelled. */
static void
maybe_turn(u64 done)
{
    if (done % TURN_EVERY == 0) rt_give_turn();
}

static u64
settle_some(Store *store, TxnState *state, u64 budget)
{
    u64 done = 1;
    for (; state->first != NULL && done < budget; done++) {
        before_settle(store, state, state->first);
        maybe_turn(done);
    }
    return done;
}

/* ---- pruning ---- */

/* Is there a snapshot s with low <= s < high? */
static bool
snapshot_between(const u64 *snapshots, u64 count, u64 low, u64 high)
{
    if (PLANT(135)) count = MIN_OF(count, 1); /* Asks the oldest only. */
    for (u64 i = 0; i < count; i++) {
        if (snapshots[i] >= low) return snapshots[i] < high;
    }
    return false;
}

typedef struct Pruning {
    Store *store;
    const u64 *snapshots;
    u64 count;
    TxnState *state; /* Whose list is being walked: it stays. */
} Pruning;

/* Nothing leads to the state any more, though it is not settled: no slot, no image names it. */
static void
maybe_give(Pruning *p, TxnState *state)
{
    bool needed = state == p->state || state->befores > 0 || rt_load_acquire(&state->refs) != 0 ||
                  rt_load_acquire(&state->named) != 0 || rt_load_relaxed(&state->pins) > 0 ||
                  state->tree_notes != NULL || rt_load_acquire(&state->spill) != NULL;
    if (needed) return;
    queue_remove(p->store, state);
    txn_table_give(&p->store->states, state);
}

/* What was taken out of a chain, or (`stripped`) has become a marker, goes; and who wrote the image
   may have been needed for it only. */
static void
image_drop(Pruning *p, Before *before, bool stripped, bool had_image)
{
    Store *store = p->store;
    u64 writer = had_image && !before_is(before, BEFORE_OWN) ? before->writer : 0;
    if (had_image) image_free_long(store, before);
    if (before_is(before, BEFORE_ORPHAN)) {
        before_free(before);
        return;
    }
    if (!stripped) {
        TxnState *creator = before->creator;
        before_remove(creator, before);
        before_free(before);
        maybe_give(p, creator);
    }
    if (writer == 0) return;
    TxnState *state = txn_table_at(&store->states, (u32)(writer & TXN_ID_INDEX_MASK));
    if (rt_load_acquire(&state->id) != writer) return;
    rt_fetch_sub(&state->refs, 1);
    bool ready = rt_load_acquire(&state->ended) != 0 &&
                 rt_load_relaxed(&state->status) != TXN_ABORTED;
    if (ready) maybe_give(p, state);
}

/* Has the creator committed, and is what stands in its list the settler's to change? */
static bool
is_ours(const Before *before)
{
    const TxnState *creator = before->creator;
    u64 status = rt_load_acquire(&creator->status);
    return status != TXN_RUNNING && status != TXN_ABORTED &&
           rt_load_acquire(&creator->ended) != 0 && rt_load_relaxed(&creator->pins) == 0;
}

/* Is the image of any use to a snapshot? */
static bool
is_needed(const Pruning *p, const Before *before)
{
    u64 high = rt_load_acquire(&before->creator->status);
    return snapshot_between(p->snapshots, p->count, before->ts, high);
}

/*
 * Of the chain from `before` on downwards, take out one that nobody needs, or make a marker of it
 * if it is on top; stripe latched.  NULL: there is none.
 */
static Before *
idle_take(Pruning *p, Before *before, bool *stripped_out, bool *had_image_out)
{
    VersionMap *map = &p->store->versions;
    const Before *head = version_head(map, before->hash, before->tree, before_key(before));
    for (; before != NULL; before = before->older) {
        bool orphan = before_is(before, BEFORE_ORPHAN), marker = before_is(before, BEFORE_MARKER);
        if (before == head && marker) continue;
        if (!orphan && (before_is(before, BEFORE_UNDONE) || !is_ours(before))) continue;
        if (!marker && is_needed(p, before)) continue;
        *stripped_out = before == head;
        *had_image_out = !marker;
        if (before == head) {
            before_mark(before, BEFORE_MARKER);
        } else {
            version_unlink(map, before);
        }
        return before;
    }
    return NULL;
}

/* Drop what nobody needs of the chains that the state's images are in. */
static void
prune_below(Pruning *p, TxnState *state)
{
    VersionMap *map = &p->store->versions;
    u64 done = 0;
    p->state = state;
    for (Before *before = state->first; before != NULL;) {
        Before *next = before->next;
        bool self = false;
        maybe_turn(++done);
        u64 hash = before->hash;
        while (!self) {
            bool stripped, had_image;
            Before *idle = NULL;
            version_lock(map, hash);
            if (before_is(before, BEFORE_LINKED)) {
                idle = idle_take(p, before, &stripped, &had_image);
            }
            version_unlock(map, hash);
            if (idle == NULL) break;
            self = idle == before && !stripped;
            if (idle == next) next = next->next; /* It leaves the list that is walked. */
            image_drop(p, idle, stripped, had_image);
        }
        before = next;
    }
    state->pruned = true;
    p->state = NULL;
    maybe_give(p, state);
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

/* Free the pages of the trees whose drop is settled.  Who still runs with an older snapshot and
   has rows there finds them gone. */
static void
empty_doomed_trees(Store *store, u64 horizon)
{
    rt_store_release(&store->has_doomed_trees, 0);
    u32 end = rt_load_acquire(&store->tree_next);
    for (TreeId id = 1; id < end; id++) {
        Tree *tree = store__tree(store, id);
        if (tree == NULL || rt_load_acquire(&tree->gone) != 0) continue;
        u64 dropped = rt_load_acquire(&tree->dropped_ts);
        if (dropped == 0) continue;
        if (dropped <= horizon) {
            store__tree_empty(store, tree);
        } else {
            rt_store_release(&store->has_doomed_trees, 1);
        }
    }
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
    TxnState *state = queue_first(store, NULL);
    for (;;) {
        if (state == NULL || rt_load_relaxed(&state->status) > horizon) break;
        if (!is_safe(store, state) || rt_load_relaxed(&state->pins) > 0) break;
        left -= MIN_OF(left, settle_some(store, state, left));
        if (state->first != NULL || !spill_settle(store, state, MAX_OF(left, 1))) {
            more = true;
            break;
        }
        if (UNLIKELY(state->tree_notes != NULL)) settle_drops(store, state);
        TxnState *done = state;
        state = queue_first(store, done);
        txn_table_give(&store->states, done);
    }
    /* Held up by a snapshot: drop what lies between snapshots, once for each commit. */
    bool held = state != NULL && rt_load_relaxed(&state->status) > horizon;
    Pruning p = {.store = store, .snapshots = snapshots, .count = count};
    /* After a failed sync snapshots begin at the safe timestamp: nothing above it may be thinned
       out, also not of commits below FULL. */
    if (held) {
        u64 safe = settle__safe_ts(store);
        mark = MIN_OF(mark, safe);
    }
    u64 settled = state == NULL ? horizon : MIN_OF(horizon, rt_load_relaxed(&state->status) - 1);
    TxnState *next;
    while (held && (next = unpruned(store, mark)) != NULL) {
        prune_below(&p, next);
    }
    if (rt_load_relaxed(&store->has_doomed_trees) != 0) {
        empty_doomed_trees(store, settled);
    }
    rt_mutex_unlock(&store->settle_mutex);
    return more;
}
