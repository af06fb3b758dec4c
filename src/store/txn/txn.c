/*
 * txn.c -- the life of a transaction: begin, marks and undo, commit, rollback.
 *
 * Invariants: every version that a running transaction has put into a chain is in its state's
 * list exactly once, newest last; a mark is the length of that list.  A version leaves the chain
 * (undo) or is handed to the settler (commit), never both.  Status, commit timestamp and log
 * position are set together under the commit latch, so the order of timestamps is the order of
 * the log.
 */
#include "store/store_private.h"

#include <stdarg.h>
#include <stdio.h>

#include "store/file.h"
#include "store/store_private.h"
#include "store/txn/redo.h"
#include "store/txn/ssi.h"
#include "store/wal/wal.h"

/* Versions settled for each one written, at most, by a commit; and by the end of a reader. */
#define SETTLE_PER_WRITE 4u
#define SETTLE_BASE      256u

Err
txn__fail(StoreTxn *txn, Err err, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    err_clear(&txn->error);
    return err_set(&txn->error, err, "%s", text);
}

Err
txn__usable(StoreTxn *txn)
{
    if (UNLIKELY(txn->state != NULL && rt_load_acquire(&txn->state->doomed) != 0)) {
        return txn__fail(txn, ERR_BUSY_SNAPSHOT,
                         "could not serialize access: the owner of the write token came first");
    }
    if (UNLIKELY(store__failed(txn->store)) && txn->snapshot > settle__safe_ts(txn->store)) {
        return txn__fail(txn, ERR_IO, "the log has failed; the store must be opened again");
    }
    return OK;
}

TxnState *
txn__state(StoreTxn *txn)
{
    if (LIKELY(txn->state != NULL)) return txn->state;
    TxnState *state = MEM_NEW(TxnState);
    if (state == NULL) return NULL;
    state->id = rt_fetch_add(&txn->store->next_txn_id, 1);
    state->txn = txn;
    txn->state = state;
    return state;
}

void
txn__list_append(TxnState *state, Version *version)
{
    version->prev = state->last;
    version->next = NULL;
    if (state->last != NULL) {
        state->last->next = version;
    } else {
        state->first = version;
    }
    state->last = version;
    state->count++;
}

void
txn__list_remove(TxnState *state, Version *version)
{
    ASSERT(state->count > 0);
    if (version->prev != NULL) {
        version->prev->next = version->next;
    } else {
        state->first = version->next;
    }
    if (version->next != NULL) {
        version->next->prev = version->prev;
    } else {
        state->last = version->prev;
    }
    version->next = version->prev = NULL;
    state->count--;
}

static void txn_release(StoreTxn *txn);

/* ---- snapshots ---- */

/* Enter the live list with a fresh snapshot; txns latch held.  Because the settler reads the list
   under the same latch, it cannot miss a snapshot that is being taken. */
static void
snapshot_take(StoreTxn *txn)
{
    Store *store = txn->store;
    txn->snapshot = rt_load_acquire(&store->last);
    if (UNLIKELY(store__failed(store))) txn->snapshot = settle__safe_ts(store);
    txn->touched = false;
    txn->newer = NULL;
    txn->older = store->live_newest;
    if (txn->older != NULL) {
        txn->older->newer = txn;
    } else {
        store->live_oldest = txn;
    }
    store->live_newest = txn;
    store->live_count++;
}

static void
snapshot_leave(StoreTxn *txn)
{
    Store *store = txn->store;
    if (txn->older != NULL) {
        txn->older->newer = txn->newer;
    } else {
        store->live_oldest = txn->newer;
    }
    if (txn->newer != NULL) {
        txn->newer->older = txn->older;
    } else {
        store->live_newest = txn->older;
    }
    txn->older = txn->newer = NULL;
    store->live_count--;
}

Err
store_txn_begin(Store *store, const StoreTxnOptions *options, StoreTxn **txn_out)
{
    *txn_out = NULL;
    if (rt_process_is_foreign(store->process)) return ERR_FOREIGN;
    rt_latch_acquire(&store->txns_latch);
    StoreTxn *txn = store->spare_txns;
    if (LIKELY(txn != NULL)) {
        store->spare_txns = txn->newer;
    } else {
        rt_latch_release(&store->txns_latch);
        txn = MEM_NEW(StoreTxn);
        if (txn == NULL) return ERR_NOMEM;
        txn->store = store;
        rt_latch_acquire(&store->txns_latch);
    }
    snapshot_take(txn);
    rt_latch_release(&store->txns_latch);
    txn->level = (u8)options->level;
    txn->sync = (u8)options->sync;
    txn->wait_ns = options->wait_ns;
    txn->dep = 0;
    rt_store_relaxed(&txn->interrupted, 0);
    if (UNLIKELY(options->level == STORE_SERIALIZABLE) && ssi__begin(txn) != OK) {
        txn_release(txn);
        return ERR_NOMEM;
    }
    *txn_out = txn;
    return OK;
}

void
txn__take_fresh_snapshot(StoreTxn *txn)
{
    Store *store = txn->store;
    rt_latch_acquire(&store->txns_latch);
    snapshot_leave(txn);
    snapshot_take(txn);
    rt_latch_release(&store->txns_latch);
}

Err
txn__begin_at_cut(Store *store, StoreTxn **txn_out, u64 *cut_out, u64 *oldest_out)
{
    StoreTxnOptions options = {.level = STORE_SNAPSHOT, .sync = STORE_SYNC_OFF};
    Err err = store_txn_begin(store, &options, txn_out);
    if (err != OK) return err;
    StoreTxn *txn = *txn_out;
    rt_latch_acquire(&store->txns_latch);
    snapshot_leave(txn);
    rt_latch_acquire(&store->commit_latch);
    snapshot_take(txn);
    *cut_out = wal_next(store->wal);
    *oldest_out = wal_oldest(store->wal, *cut_out);
    rt_latch_release(&store->commit_latch);
    rt_latch_release(&store->txns_latch);
    return OK;
}

Err
store_txn_refresh(StoreTxn *txn)
{
    Store *store = txn->store;
    if (txn->level != STORE_READ_COMMITTED && store_txn_has_written(txn)) {
        return txn__fail(txn, ERR_MISUSE, "a transaction that has written keeps its snapshot");
    }
    if (store__failed(store) && store_txn_has_written(txn)) return txn__usable(txn);
    if (txn->ssi != NULL) {
        ssi__refresh(txn);
    } else {
        txn__take_fresh_snapshot(txn);
    }
    return OK;
}

void
store_txn_set_wait(StoreTxn *txn, u64 wait_ns)
{
    txn->wait_ns = wait_ns;
}

void
store_txn_set_sync(StoreTxn *txn, StoreSync sync)
{
    txn->sync = (u8)sync;
}

bool
store_txn_has_written(const StoreTxn *txn)
{
    return txn->state != NULL && txn->state->count > 0;
}

const ErrMsg *
store_txn_error(const StoreTxn *txn)
{
    return &txn->error;
}

void
store_txn_interrupt(StoreTxn *txn)
{
    rt_store_relaxed(&txn->interrupted, 1);
}

void
store_txn_clear_interrupt(StoreTxn *txn)
{
    rt_store_relaxed(&txn->interrupted, 0);
}

Err
store_txn_wait_shown(StoreTxn *txn)
{
    if (LIKELY(txn->dep == 0 || txn->dep <= store__durable(txn->store))) return OK;
    Err err = wal_flush(txn->store->wal, txn->dep, true);
    if (err != OK) return txn__fail(txn, err, "the log could not be made durable");
    return OK;
}

/* ---- undo ---- */

StoreMark
store_txn_mark(const StoreTxn *txn)
{
    return txn->state == NULL ? 0 : txn->state->count;
}

static void
bury(StoreTxn *txn, Version *version)
{
    version->next = txn->graveyard;
    txn->graveyard = version;
}

/* Take `version`, which is in the chain of the path's slot, out of it. */
static void
chain_unlink(Store *store, Tree *tree, MtreePath *path, Version *version)
{
    Version **link = &path->leaf->slot[path->index];
    if (*link == version && version->older == NULL) {
        mtree_remove(&tree->map, path);
        rt_store_relaxed(&tree->slots, tree->map.slots);
    } else {
        while (*link != version) {
            ASSERT(*link != NULL);
            link = &(*link)->older;
        }
        *link = version->older;
        settle__tidy_slot(store, tree, path);
    }
    ASSERT(tree->unsettled > 0);
    tree->unsettled--;
    version->writer = NULL;
    version->older = NULL;
}

/* Unlink the rows that were only kept locked: all, or those of one tree. */
static void
drop_locks(StoreTxn *txn, TreeId only)
{
    Version **link = &txn->lock_list;
    while (*link != NULL) {
        Version *version = *link;
        if (only != TREE_NONE && version->tree != only) {
            link = &version->next;
            continue;
        }
        *link = version->next;
        Tree *tree = store__tree(txn->store, version->tree);
        rt_rwlock_lock(&tree->lock);
        if (!(version->flags & VERSION_DETACHED)) {
            MtreePath path;
            mtree_find(&tree->map, version_key(version), &path);
            ASSERT(path.exact);
            chain_unlink(txn->store, tree, &path, version);
        }
        rt_rwlock_unlock(&tree->lock);
        bury(txn, version);
    }
}

/* Undo the newest write: its row returns to what it was, but stays ours if `keep_lock`. */
static void
undo_one(StoreTxn *txn, bool keep_lock)
{
    Store *store = txn->store;
    TxnState *state = txn->state;
    Version *version = state->last;
    txn__list_remove(state, version);
    Tree *tree = store__tree(store, version->tree);
    if (version->kind == VERSION_TREE_CREATE) {
        /* Its rows were written later, so they are undone already; nobody may write any more. */
        drop_locks(txn, tree->id);
        rt_store_release(&tree->dropped_ts, 1);
    }
    bool in_chain = version->kind == VERSION_VALUE || version->kind == VERSION_TOMBSTONE;
    if (!in_chain) {
        bury(txn, version);
        return;
    }
    rt_rwlock_lock(&tree->lock);
    if (version->flags & VERSION_DETACHED) {
        rt_rwlock_unlock(&tree->lock);
        bury(txn, version);
        return;
    }
    bool own_below = version->older != NULL && version->older->writer == state;
    if (own_below) version->older->flags &= (u8)~VERSION_SUPERSEDED;
    if (own_below || !keep_lock) {
        MtreePath path;
        mtree_find(&tree->map, version_key(version), &path);
        ASSERT(path.exact);
        chain_unlink(store, tree, &path, version);
        bury(txn, version);
    } else {
        version->kind = VERSION_LOCK;
        version->next = txn->lock_list;
        txn->lock_list = version;
    }
    rt_rwlock_unlock(&tree->lock);
}

void
store_txn_undo_to(StoreTxn *txn, StoreMark mark)
{
    while (txn->state != NULL && txn->state->count > mark) {
        undo_one(txn, true);
    }
}

/* ---- the end ---- */

static void
empty_graveyard(StoreTxn *txn)
{
    while (txn->graveyard != NULL) {
        Version *version = txn->graveyard;
        txn->graveyard = version->next;
        Tree *tree = store__tree(txn->store, version->tree);
        settle__free_version(txn->store, tree, version);
    }
}

/* Give the object back; its state is no longer its own. */
static void
txn_release(StoreTxn *txn)
{
    Store *store = txn->store;
    empty_graveyard(txn);
    ASSERT(txn->holds == NULL && txn->lock_list == NULL);
    txn->state = NULL;
    err_clear(&txn->error);
    buf_free(&txn->copy);
    rt_latch_acquire(&store->txns_latch);
    snapshot_leave(txn);
    txn->newer = store->spare_txns;
    store->spare_txns = txn;
    rt_latch_release(&store->txns_latch);
}

/* Undo all, become aborted, wake who waits.  The state is freed. */
static void
abort_writes(StoreTxn *txn)
{
    TxnState *state = txn->state;
    if (state == NULL) return;
    bool wrote = state->count > 0;
    while (state->count > 0) {
        undo_one(txn, false);
    }
    drop_locks(txn, TREE_NONE);
    rt_store_release(&state->status, TXN_ABORTED);
    wait__ended(txn, state);
    mem_free(state);
    txn->state = NULL;
    if (wrote) rt_fetch_add(&txn->store->counters.rollbacks, 1);
}

void
store_txn_rollback(StoreTxn *txn)
{
    if (txn == NULL) return;
    Store *store = txn->store;
    abort_writes(txn);
    if (txn->ssi != NULL) ssi__abandon(txn);
    txn_release(txn);
    if (rt_load_relaxed(&store->queue_length) > 0) settle__run(store, SETTLE_BASE);
}

/* A commit that cannot go on: roll back and report. */
static Err
commit_failed(StoreTxn *txn, Err err, ErrMsg *msg)
{
    if (txn->error.err != err) txn__fail(txn, err, "%s", err_text(err));
    if (msg != NULL) err_move(msg, &txn->error);
    store_txn_rollback(txn);
    return err;
}

static Err
commit_reader(StoreTxn *txn, ErrMsg *msg)
{
    Err err = store_txn_wait_shown(txn);
    if (err == OK && txn->ssi != NULL) {
        err = ssi__commit_start(txn);
        if (err == OK) ssi__commit_end(txn, true, 0);
    }
    if (err != OK) return commit_failed(txn, err, msg);
    store_txn_rollback(txn);
    return OK;
}

/* Date the trees that this commit creates and drops. */
static void
date_trees(Store *store, const TxnState *state, u64 ts)
{
    for (const Version *version = state->first; version != NULL; version = version->next) {
        Tree *tree = store__tree(store, version->tree);
        if (version->kind == VERSION_TREE_CREATE) rt_store_release(&tree->created_ts, ts);
        if (version->kind == VERSION_TREE_DROP) rt_store_release(&tree->dropped_ts, ts);
    }
}

/* The instant of the commit; commit latch held. */
static void
commit_publish(StoreTxn *txn, u64 lsn)
{
    Store *store = txn->store;
    TxnState *state = txn->state;
    u64 ts = rt_load_relaxed(&store->last) + 1;
    state->lsn = lsn;
    state->full = txn->sync == STORE_SYNC_FULL && store->wal != NULL;
    state->newer = NULL;
    state->older = store->queue_newest;
    if (state->older != NULL) {
        state->older->newer = state;
    } else {
        store->queue_oldest = state;
    }
    store->queue_newest = state;
    rt_fetch_add(&store->queue_length, 1);
    if (UNLIKELY(state->makes_trees)) date_trees(store, state, ts);
    rt_store_release(&state->status, ts);
    rt_store_release(&store->last, ts);
    rt_fetch_add(&store->change_number, 1);
}

/* Wait until the token's owner has ended. */
static Err
token_wait(StoreTxn *txn)
{
    Store *store = txn->store;
    u64 deadline_ns = txn->wait_ns == 0 ? 0 : rt_deadline_after(txn->wait_ns);
    rt_latch_acquire(&store->wait_latch);
    TxnState *owner = store->token;
    if (owner == NULL) {
        rt_latch_release(&store->wait_latch);
        return OK;
    }
    return wait__for(txn, owner, WAIT_RESOURCE_ALL, deadline_ns, "the write token");
}

/*
 * Take the commit latch when nothing stands against a commit any more; with a log, room for
 * `bytes` is secured in it.  ERR_BUSY: another transaction keeps the token; ERR_LOCKED: the same at
 * SERIALIZABLE, before any wait.
 */
static Err
commit_enter(StoreTxn *txn, u32 bytes)
{
    Store *store = txn->store;
    for (;;) {
        if (store->wal != NULL) {
            Err err = wal_reserve(store->wal, bytes);
            if (err != OK) return txn__fail(txn, err, "%s", wal_failure_text(store->wal, err));
        } else {
            rt_latch_acquire(&store->commit_latch);
        }
        bool token_is_free = store->token == NULL || store->token == txn->state;
        if (token_is_free && rt_load_relaxed(&txn->state->doomed) == 0) return OK;
        rt_latch_release(&store->commit_latch);
        Err err = txn__usable(txn);
        if (err != OK) return err;
        /* Who judges serializability holds a mutex that the token's owner may need: first let
           go of it. */
        if (txn->ssi != NULL) return ERR_LOCKED;
        err = token_wait(txn);
        if (err != OK) return err;
    }
}

/* The chunks of a commit that came to nothing need not be kept. */
static void
chunks_forget(Store *store, RedoWriter *writer)
{
    if (!writer->open) return;
    rt_latch_acquire(&store->commit_latch);
    wal_chunks_end(store->wal, &writer->chunks);
    rt_latch_release(&store->commit_latch);
}

/* Log and publish.  On OK the transaction is committed, perhaps not yet durable. */
static Err
commit_writes(StoreTxn *txn)
{
    Store *store = txn->store;
    if (store->wal == NULL) {
        Err err = commit_enter(txn, 0);
        if (err != OK) return err;
        commit_publish(txn, 0);
        rt_latch_release(&store->commit_latch);
        return OK;
    }
    RedoWriter writer;
    redo_writer_start(&writer, txn->state);
    /* All but the last piece of a long record go ahead of it. */
    while (writer.total_bytes - writer.done_bytes > WAL_PIECE_BYTES_MAX) {
        Err err = commit_enter(txn, WAL_RECORD_HEAD_BYTES + WAL_PIECE_BYTES_MAX);
        if (err != OK) {
            chunks_forget(store, &writer);
            return err;
        }
        WalPlace place;
        if (!writer.open) wal_chunks_begin(store->wal, &writer.chunks);
        writer.open = true;
        wal_take(store->wal, WAL_RECORD_HEAD_BYTES + WAL_PIECE_BYTES_MAX, &place);
        rt_latch_release(&store->commit_latch);
        redo_writer_piece(&writer, &place, WAL_RECORD_CHUNK, 0);
        wal_filled(store->wal, &place);
    }
    u32 bytes = WAL_RECORD_HEAD_BYTES + (u32)(writer.total_bytes - writer.done_bytes);
    Err err = commit_enter(txn, bytes);
    if (err != OK) {
        chunks_forget(store, &writer);
        return err;
    }
    WalPlace place;
    wal_take(store->wal, bytes, &place);
    commit_publish(txn, place.end);
    if (writer.open) wal_chunks_end(store->wal, &writer.chunks);
    u64 ts = rt_load_relaxed(&txn->state->status);
    rt_latch_release(&store->commit_latch);
    redo_writer_piece(&writer, &place, WAL_RECORD_COMMIT, ts);
    wal_filled(store->wal, &place);
    return OK;
}

/* The same between the judgement and its record. */
static Err
commit_serializable(StoreTxn *txn)
{
    for (;;) {
        Err err = ssi__commit_start(txn);
        if (err != OK) return err;
        err = commit_writes(txn);
        ssi__commit_end(txn, err == OK, rt_load_relaxed(&txn->state->status));
        if (err != ERR_LOCKED) return err;
        err = token_wait(txn);
        if (err != OK) return err;
    }
}

/* Wait as the commit's synchronous level asks. */
static Err
commit_harden(Store *store, StoreSync sync, u64 lsn, u64 dep)
{
    if (store->wal == NULL) return OK;
    bool full = sync == STORE_SYNC_FULL && !PLANT(108); /* Acknowledges before the sync. */
    if (full) return wal_flush(store->wal, MAX_OF(lsn, dep), true);
    return wal_flush(store->wal, lsn, false);
}

Err
store_txn_commit(StoreTxn *txn, ErrMsg *msg)
{
    Store *store = txn->store;
    TxnState *state = txn->state;
    if (rt_process_is_foreign(store->process))
        return err_set(msg, ERR_FOREIGN, "opened before fork()");
    Err err = txn__usable(txn);
    if (err != OK) return commit_failed(txn, err, msg);
    if (state == NULL || state->count == 0) return commit_reader(txn, msg);

    if (store->wal != NULL && UNLIKELY(!file__log_is_ready(store))) {
        err = file__begin_log(store, &txn->error);
        if (err != OK) return commit_failed(txn, err, msg);
    }
    drop_locks(txn, TREE_NONE);
    err = txn->ssi == NULL ? commit_writes(txn) : commit_serializable(txn);
    if (err == ERR_BUSY) {
        if (msg != NULL) err_set(msg, err, "%s", err_message(&txn->error));
        return err;
    }
    if (err != OK) return commit_failed(txn, err, msg);

    /* Committed: from here on nothing can take it back. */
    u64 lsn = state->lsn, dep = txn->dep, writes = state->count;
    StoreSync sync = (StoreSync)txn->sync;
    wait__ended(txn, state); /* From here on the settler may free the state. */
    txn_release(txn);
    rt_fetch_add(&store->counters.commits, 1);
    err = commit_harden(store, sync, lsn, dep);
    if (err != OK) return err_set(msg, err, "%s", wal_failure_text(store->wal, err));
    settle__run(store, SETTLE_BASE + SETTLE_PER_WRITE * writes);
    store__after_commit(store);
    return OK;
}
