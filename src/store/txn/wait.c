/*
 * wait.c -- waiting for another transaction: rows, named locks, the write token.
 *
 * All of these are held to the end of their transaction, so there is one kind of wait: for the end
 * of a transaction.  A waiter publishes its edge (waits_for) under the wait latch and follows the
 * edges from there; whoever would close a cycle fails, and since all edges change under the one
 * latch exactly one does.
 *
 * When a transaction ends, one waiter of each resource is woken.  The others of that resource
 * are hung under the woken one, as if they waited for its end: their edge is then right if it
 * takes the row, and if it does not it passes the wake on (wait__pass_on).  So a hot row wakes one
 * task per commit, not all.
 */
#include "rt/park.h"
#include "store/store_private.h"
#include "store/version/row.h"

/* Bound of one sleep: store_txn_interrupt() may come from a signal handler and cannot unpark. */
#define WAIT_SLICE_NS (20 * RT_NS_PER_MS)

static void
hang(StoreTxn *waiter, TxnState *under)
{
    waiter->waits_for = under;
    waiter->next_waiter = NULL;
    StoreTxn **link = &under->waiters;
    while (*link != NULL) {
        link = &(*link)->next_waiter;
    }
    *link = waiter;
}

static void
unhang(StoreTxn *waiter)
{
    if (waiter->waits_for == NULL) return;
    StoreTxn **link = &waiter->waits_for->waiters;
    while (*link != waiter) {
        ASSERT(*link != NULL);
        link = &(*link)->next_waiter;
    }
    *link = waiter->next_waiter;
    waiter->waits_for = NULL;
    waiter->next_waiter = NULL;
}

static void
wake(StoreTxn *waiter)
{
    waiter->waits_for = NULL;
    waiter->next_waiter = NULL;
    rt_store_release(&waiter->wait_word, 0);
    rt_unpark_all(&waiter->wait_word);
}

/* Wake the first waiter of each resource in a detached list, hang the others under it. */
static void
wake_list(StoreTxn *list)
{
    while (list != NULL) {
        StoreTxn *first = list;
        u64 resource = first->resource;
        list = first->next_waiter;
        TxnState *under = first->state;
        wake(first);
        if (resource == WAIT_RESOURCE_ALL) continue;
        StoreTxn **link = &list;
        while (*link != NULL) {
            StoreTxn *other = *link;
            if (other->resource == resource) {
                *link = other->next_waiter;
                hang(other, under);
            } else {
                link = &other->next_waiter;
            }
        }
    }
}

static bool
closes_cycle(const StoreTxn *txn, const TxnState *holder)
{
    while (holder != NULL) {
        if (holder == txn->state) return true;
        const StoreTxn *next = (const StoreTxn *)rt_load_acquire(&holder->txn);
        holder = next != NULL ? next->waits_for : NULL;
    }
    return false;
}

/* Park until woken, or the deadline, or an interrupt. */
static Err
sleep_until_woken(StoreTxn *txn, u64 deadline_ns)
{
    for (;;) {
        if (rt_load_acquire(&txn->wait_word) == 0) return OK;
        if (rt_load_relaxed(&txn->interrupted) != 0) return ERR_INTERRUPT;
        u64 slice_ns = rt_deadline_after(WAIT_SLICE_NS);
        u64 until_ns = MIN_OF(deadline_ns, slice_ns);
        RtParkResult result = rt_park(&txn->wait_word, &txn->wait_word, 1u, 1u, until_ns, 0, 0);
        if (result == RT_CANCELLED) return ERR_INTERRUPT;
        if (result == RT_TIMEOUT && until_ns == deadline_ns) return ERR_BUSY;
    }
}

Err
wait__for(StoreTxn *txn, TxnState *holder, u64 resource, u64 deadline_ns, const char *what)
{
    Store *store = txn->store;
    ASSERT(txn->state != NULL && txn->state != holder);
    ASSERT(rt_load_relaxed(&holder->txn) !=
           NULL); /* wait__ended() has yet to come, and will wake us. */
    if (closes_cycle(txn, holder)) {
        rt_latch_release(&store->wait_latch);
        rt_fetch_add(&store->counters.deadlocks, 1);
        return txn__fail(txn, ERR_BUSY_DEADLOCK, "deadlock: waiting for %s would close a cycle",
                         what);
    }
    if (deadline_ns == 0) {
        rt_latch_release(&store->wait_latch);
        return txn__fail(txn, ERR_BUSY, "database is locked");
    }
    rt_fetch_add(&store->counters.row_waits, 1);
    txn->resource = resource;
    rt_store_release(&txn->wait_word, 1);
    hang(txn, holder);
    rt_latch_release(&store->wait_latch);

    Err err = sleep_until_woken(txn, deadline_ns);
    if (err == OK) return OK;

    rt_latch_acquire(&store->wait_latch);
    bool woken = rt_load_relaxed(&txn->wait_word) == 0;
    unhang(txn);
    rt_store_release(&txn->wait_word, 0);
    rt_latch_release(&store->wait_latch);
    if (woken && err == ERR_BUSY) return OK; /* Woken in the last moment. */
    if (woken && resource != WAIT_RESOURCE_ALL) wait__pass_on(txn, resource);
    if (err == ERR_INTERRUPT) return txn__fail(txn, err, "interrupted");
    return txn__fail(txn, err, "database is locked");
}

bool
store_txn_is_waited_for(StoreTxn *txn)
{
    Store *store = txn->store;
    rt_latch_acquire(&store->wait_latch);
    bool is = txn->state != NULL && txn->state->waiters != NULL;
    rt_latch_release(&store->wait_latch);
    return is;
}

void
wait__pass_on(StoreTxn *txn, u64 resource)
{
    Store *store = txn->store;
    rt_latch_acquire(&store->wait_latch);
    StoreTxn *list = NULL, **tail = &list;
    StoreTxn **link = &txn->state->waiters;
    while (*link != NULL) {
        StoreTxn *waiter = *link;
        if (waiter->resource == resource) {
            *link = waiter->next_waiter;
            waiter->next_waiter = NULL;
            *tail = waiter;
            tail = &waiter->next_waiter;
        } else {
            link = &waiter->next_waiter;
        }
    }
    wake_list(list);
    rt_latch_release(&store->wait_latch);
}

/* ---- named locks ---- */

static u32
bucket_of(bool is_key, u64 number, Slice key)
{
    u64 hash = hash_u64(number, is_key ? 1 : 2);
    if (key.bytes > 0) hash = hash_bytes(key.p, key.bytes, hash);
    return (u32)(hash % STORE_LOCK_BUCKETS);
}

static StoreLock *
lock_find(Store *store, bool is_key, u64 number, Slice key)
{
    StoreLock *lock = store->lock_table[bucket_of(is_key, number, key)];
    while (lock != NULL) {
        bool same = lock->is_key == is_key && lock->number == number &&
                    slice_equal((Slice){lock->key, lock->key_bytes}, key);
        if (same) break;
        lock = lock->next_in_bucket;
    }
    return lock;
}

/* Somebody else whose hold excludes ours. */
static TxnState *
conflicting(const StoreLock *lock, const TxnState *self, bool exclusive)
{
    for (const StoreHold *hold = lock->holds; hold != NULL; hold = hold->next_in_lock) {
        if (hold->state != self && (hold->exclusive || exclusive)) return hold->state;
    }
    return NULL;
}

TxnState *
wait__key_holder(StoreTxn *txn, const Tree *tree, Slice key, bool deletes)
{
    StoreLock *lock = lock_find(txn->store, true, tree->id, key);
    return lock == NULL ? NULL : conflicting(lock, txn->state, deletes);
}

static void
hold_release(Store *store, StoreHold *hold)
{
    StoreLock *lock = hold->lock;
    StoreHold **link = &lock->holds;
    while (*link != hold) {
        link = &(*link)->next_in_lock;
    }
    *link = hold->next_in_lock;
    if (lock->is_key) {
        Tree *tree = store__tree(store, (TreeId)lock->number);
        rt_fetch_sub(&tree->key_holds, 1);
    }
    if (lock->holds == NULL) {
        Slice key = {lock->key, lock->key_bytes};
        StoreLock **at = &store->lock_table[bucket_of(lock->is_key, lock->number, key)];
        while (*at != lock) {
            at = &(*at)->next_in_bucket;
        }
        *at = lock->next_in_bucket;
        mem_free(lock);
    }
    mem_free(hold);
}

void
wait__ended(StoreTxn *txn, TxnState *state)
{
    Store *store = txn->store;
    ASSERT(rt_load_relaxed(&state->status) != TXN_RUNNING);
    rt_latch_acquire(&store->wait_latch);
    while (txn->holds != NULL) {
        StoreHold *hold = txn->holds;
        txn->holds = hold->next_in_txn;
        hold_release(store, hold);
    }
    if (store->token == state) {
        rt_latch_acquire(&store->commit_latch);
        store->token = NULL;
        rt_latch_release(&store->commit_latch);
    }
    rt_store_release(&state->txn, NULL);
    StoreTxn *list = state->waiters;
    state->waiters = NULL;
    wake_list(list);
    rt_latch_release(&store->wait_latch);
}

/* Add our hold to the lock, making the lock if it is not there.  Wait latch held. */
static Err
hold_add(StoreTxn *txn, bool is_key, u64 number, Slice key, bool exclusive)
{
    Store *store = txn->store;
    StoreLock *lock = lock_find(store, is_key, number, key);
    for (StoreHold *own = lock == NULL ? NULL : lock->holds; own != NULL; own = own->next_in_lock) {
        if (own->state != txn->state) continue;
        if (exclusive && !own->exclusive) rt_fetch_add(&store->holds_version, 1);
        own->exclusive = own->exclusive || exclusive;
        return OK;
    }
    StoreHold *hold = MEM_NEW(StoreHold);
    if (hold == NULL) return ERR_NOMEM;
    if (lock == NULL) {
        lock = (StoreLock *)mem_alloc_zeroed(sizeof(StoreLock) + key.bytes);
        if (lock == NULL) {
            mem_free(hold);
            return ERR_NOMEM;
        }
        lock->number = number;
        lock->is_key = is_key;
        lock->key_bytes = (u32)key.bytes;
        if (key.bytes > 0) memcpy(lock->key, key.p, key.bytes);
        StoreLock **bucket = &store->lock_table[bucket_of(is_key, number, key)];
        lock->next_in_bucket = *bucket;
        *bucket = lock;
    }
    hold->lock = lock;
    hold->state = txn->state;
    hold->exclusive = exclusive;
    hold->next_in_lock = lock->holds;
    lock->holds = hold;
    hold->next_in_txn = txn->holds;
    txn->holds = hold;
    if (is_key) {
        rt_fetch_add(&store__tree(store, (TreeId)number)->key_holds, 1);
        rt_fetch_add(&store->holds_version, 1);
    }
    return OK;
}

Err
store_txn_lock_schema(StoreTxn *txn, u64 lock_no, bool exclusive)
{
    Store *store = txn->store;
    Err err = txn__usable(txn);
    if (err != OK) return err;
    if (txn__state(txn) == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    u64 deadline_ns = txn->wait_ns == 0 ? 0 : rt_deadline_after(txn->wait_ns);
    for (;;) {
        rt_latch_acquire(&store->wait_latch);
        StoreLock *lock = lock_find(store, false, lock_no, SLICE_NONE);
        TxnState *other = lock == NULL ? NULL : conflicting(lock, txn->state, exclusive);
        if (other == NULL) break;
        err = wait__for(txn, other, WAIT_RESOURCE_ALL, deadline_ns, "a schema lock");
        if (err != OK) return err;
    }
    err = hold_add(txn, false, lock_no, SLICE_NONE, exclusive);
    rt_latch_release(&store->wait_latch);
    return err == OK ? OK : txn__fail(txn, err, "out of memory");
}

/* Take the lock if nobody has it; else *holder_out, and the wait latch stays held. */
static Err
turn_try(StoreTxn *txn, u64 lock_no, TxnState **holder_out)
{
    Store *store = txn->store;
    rt_latch_acquire(&store->wait_latch);
    StoreLock *lock = lock_find(store, false, lock_no, SLICE_NONE);
    *holder_out = lock == NULL ? NULL : conflicting(lock, txn->state, true);
    if (*holder_out != NULL) return OK;
    Err err = hold_add(txn, false, lock_no, SLICE_NONE, true);
    rt_latch_release(&store->wait_latch);
    return err == OK ? OK : txn__fail(txn, err, "out of memory");
}

Err
store_txn_take_turn(StoreTxn *txn, u64 lock_no, bool *waited_out)
{
    *waited_out = false;
    Err err = txn__usable(txn);
    if (err != OK) return err;
    if (txn__state(txn) == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    ASSERT(txn->state->undo.count == 0);
    TxnState *holder;
    err = turn_try(txn, lock_no, &holder);
    if (err != OK || holder == NULL) return err;
    rt_latch_release(&txn->store->wait_latch);

    /* A waiter's snapshot would keep every version that those before it leave behind, and each of
       them would have to read past all of these. */
    bool leaves = txn->ssi == NULL;
    u64 deadline_ns = txn->wait_ns == 0 ? 0 : rt_deadline_after(txn->wait_ns);
    u64 resource = hash_u64(lock_no, 3) | 4u; /* Never one of the small numbers. */
    if (leaves) txn__leave_snapshot(txn);
    *waited_out = true;
    while (err == OK) {
        err = turn_try(txn, lock_no, &holder);
        if (err != OK || holder == NULL) break;
        err = wait__for(txn, holder, resource, deadline_ns, "a turn");
    }
    if (err != OK) wait__pass_on(txn, resource); /* Others may stand behind it. */
    if (leaves) txn__enter_snapshot(txn);
    return err;
}

void
wait__hold_row(StoreTxn *txn, TreeId tree, Slice key)
{
    rt_latch_acquire(&txn->store->wait_latch);
    Err ignored = hold_add(txn, true, tree, key, true);
    (void)ignored; /* Then somebody may come first when the statement runs again. */
    rt_latch_release(&txn->store->wait_latch);
}

/* ---- parent keys ---- */

/* A running transaction that has deleted or inserted the key, so that its existence is not certain;
   0: nobody.  Leaf viewed. */
static u64
existence_writer(StoreTxn *txn, const Tree *tree, Node node, Slice key, u64 hash)
{
    bool exact;
    u32 slot = node_find(node, key, &exact);
    if (!exact) return 0;
    u64 id = row_writer(txn->store, tree, node, slot, key, hash);
    if (id == 0) return 0;
    TxnSeen seen = txn_table_look(&txn->store->states, id);
    bool runs = seen.state != NULL && seen.state != txn->state && seen.status == TXN_RUNNING;
    if (!runs) return 0;
    bool exists = (node_slots(node)[slot].flags & NODE_SLOT_TOMBSTONE) == 0, existed = false;
    VersionMap *map = &txn->store->versions;
    version_lock(map, hash);
    const Before *below = version_head(map, hash, tree->id, key);
    while (below != NULL && (before_is(below, BEFORE_MARKER) || before_is(below, BEFORE_OWN))) {
        below = before_below(below);
    }
    if (below != NULL && below->creator_id == id) {
        existed = (below->slot_flags & NODE_SLOT_TOMBSTONE) == 0;
    }
    version_unlock(map, hash);
    return exists == existed ? 0 : id;
}

/* The same on the leaf as it is now.  [parks] */
static Err
existence_check(StoreTxn *txn, Tree *tree, Slice key, u64 *id_out)
{
    u64 hash = version_hash(tree->id, key);
    for (;;) {
        PageView view;
        *id_out = 0;
        Err err = btree_leaf_view(&tree->map, BTREE_AT, key, false, &view);
        if (err != OK) return rt_load_acquire(&tree->gone) != 0 ? OK : err;
        *id_out = existence_writer(txn, tree, btree_node(&tree->map, &view), key, hash);
        if (pool_view_end(&view)) return OK;
    }
}

static void
hold_drop(StoreTxn *txn, TreeId tree, Slice key)
{
    for (StoreHold **link = &txn->holds; *link != NULL; link = &(*link)->next_in_txn) {
        StoreHold *hold = *link;
        const StoreLock *lock = hold->lock;
        bool same = lock->is_key && lock->number == tree &&
                    slice_equal((Slice){lock->key, lock->key_bytes}, key);
        if (!same) continue;
        *link = hold->next_in_txn;
        hold_release(txn->store, hold);
        return;
    }
}

/* Hold the key; *fresh_out: it was not held before. */
static Err
key_hold(StoreTxn *txn, TreeId tree, Slice key, bool *fresh_out)
{
    Store *store = txn->store;
    rt_latch_acquire(&store->wait_latch);
    const StoreHold *newest = txn->holds;
    Err err = hold_add(txn, true, tree, key, false);
    *fresh_out = txn->holds != newest;
    rt_latch_release(&store->wait_latch);
    return err;
}

Err
store_txn_lock_key(StoreTxn *txn, TreeId tree_id, Slice key)
{
    Store *store = txn->store;
    Err err = txn__usable(txn);
    if (err != OK) return err;
    Tree *tree = store__tree(store, tree_id);
    if (tree == NULL) return txn__fail(txn, ERR_MISUSE, "no such tree: %u", tree_id);
    if (txn__state(txn) == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    u64 deadline_ns = txn->wait_ns == 0 ? 0 : rt_deadline_after(txn->wait_ns);
    for (;;) {
        /* First the hold, then the look: a deleter looks at the holds with the leaf latched, so
           one of the two sees the other. */
        bool fresh;
        u64 id;
        err = key_hold(txn, tree_id, key, &fresh);
        if (err == OK) err = existence_check(txn, tree, key, &id);
        if (err != OK) return txn__fail(txn, err, "%s", err_text(err));
        if (id == 0) return OK;
        rt_latch_acquire(&store->wait_latch);
        if (fresh) hold_drop(txn, tree_id, key);
        TxnState *writer = txn_table_at(&store->states, (u32)(id & TXN_ID_INDEX_MASK));
        if (!wait__runs(writer, id)) {
            rt_latch_release(&store->wait_latch);
            continue;
        }
        err = wait__for(txn, writer, WAIT_RESOURCE_ALL, deadline_ns, "a parent key");
        if (err != OK) return err;
    }
}

/* ---- the write token ---- */

Err
store_txn_take_token(StoreTxn *txn)
{
    Store *store = txn->store;
    Err err = txn__usable(txn);
    if (err != OK) return err;
    if (txn__state(txn) == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    if (store->read_only) return txn__fail(txn, ERR_READONLY, "the store is read-only");
    u64 deadline_ns = txn->wait_ns == 0 ? 0 : rt_deadline_after(txn->wait_ns);
    bool waited = false;
    for (;;) {
        rt_latch_acquire(&store->wait_latch);
        if (store->token == txn->state) {
            rt_latch_release(&store->wait_latch);
            return OK;
        }
        if (store->token == NULL) break;
        err = wait__for(txn, store->token, WAIT_RESOURCE_TOKEN, deadline_ns, "the write token");
        if (err != OK) {
            if (waited) wait__pass_on(txn, WAIT_RESOURCE_TOKEN);
            return err;
        }
        waited = true;
    }
    rt_latch_acquire(&store->commit_latch);
    bool stale = txn->touched && rt_load_relaxed(&store->last) > txn->snapshot;
    if (!stale) {
        store->token = txn->state;
        txn->state->owns_token = true;
    }
    rt_latch_release(&store->commit_latch);
    rt_latch_release(&store->wait_latch);
    if (stale) {
        if (waited) wait__pass_on(txn, WAIT_RESOURCE_TOKEN);
        rt_fetch_add(&store->counters.conflicts, 1);
        return txn__fail(txn, ERR_BUSY_SNAPSHOT, "database is locked");
    }
    /* Token first, snapshot second: nobody else can commit any more. */
    if (!txn->touched) return store_txn_refresh(txn);
    return OK;
}
