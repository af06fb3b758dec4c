/*
 * txn.c -- the life of a transaction: begin, marks and undo, commit, rollback.
 *
 * Invariants: every write of a running transaction stands in its undo list, newest last; a mark is
 * the length of that list.  Status, commit timestamp and log position are set together under the
 * commit latch, where the transaction also leaves the open set, so the order of timestamps is the
 * order of the log.
 */
#include "store/store_private.h"

#include <stdarg.h>
#include <stdio.h>

#include "store/file.h"
#include "store/store_private.h"
#include "store/txn/open_set.h"
#include "store/txn/redo.h"
#include "store/txn/ssi.h"
#include "store/version/spill.h"
#include "store/wal/wal.h"

#define UNDO_TURN_EVERY 64u /* Rows, between two looks whether others wait for a turn. */
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

static Err
fail_doomed(StoreTxn *txn)
{
    return txn__fail(txn, ERR_BUSY_SNAPSHOT,
                     "could not serialize access: the owner of the write token came first");
}

static Err
fail_failed(StoreTxn *txn)
{
    return txn__fail(txn, ERR_IO, "%s", store__failure_text(txn->store));
}

static bool
is_doomed(const StoreTxn *txn)
{
    return UNLIKELY(txn->state != NULL && rt_load_acquire(&txn->state->doomed) != 0);
}

Err
txn__usable_slow(StoreTxn *txn)
{
    if (is_doomed(txn)) return fail_doomed(txn);
    if (txn->undo_failed) return fail_failed(txn);
    bool failed = UNLIKELY(store__failed(txn->store)) &&
                  txn->snapshot > settle__safe_ts(txn->store);
    return failed ? fail_failed(txn) : OK;
}

Err
txn__writable_slow(StoreTxn *txn)
{
    if (is_doomed(txn)) return fail_doomed(txn);
    return UNLIKELY(store__failed(txn->store)) ? fail_failed(txn) : OK;
}

TxnState *
txn__state_make(StoreTxn *txn)
{
    TxnState *state;
    if (txn_table_take(&txn->store->states, txn, &state) != OK) return NULL;
    txn->state = state;
    return state;
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
txn__leave_snapshot(StoreTxn *txn)
{
    rt_latch_acquire(&txn->store->txns_latch);
    snapshot_leave(txn);
    rt_latch_release(&txn->store->txns_latch);
}

void
txn__enter_snapshot(StoreTxn *txn)
{
    rt_latch_acquire(&txn->store->txns_latch);
    snapshot_take(txn);
    rt_latch_release(&txn->store->txns_latch);
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

Err
store_txn_join(StoreTxn *txn, const StoreTxn *other)
{
    Store *store = txn->store;
    ASSERT(store == other->store && txn != other);
    if (txn->level == STORE_SERIALIZABLE || store_txn_has_written(txn))
        return txn__fail(txn, ERR_MISUSE, "only a reader can join the snapshot of another");
    rt_latch_acquire(&store->txns_latch);
    snapshot_leave(txn);
    txn->snapshot = other->snapshot;
    txn->touched = false;
    /* The list stays in the order of snapshots. */
    txn->older = (StoreTxn *)(uintptr_t)other;
    txn->newer = other->newer;
    if (txn->newer != NULL) {
        txn->newer->older = txn;
    } else {
        store->live_newest = txn;
    }
    txn->older->newer = txn;
    store->live_count++;
    rt_latch_release(&store->txns_latch);
    return OK;
}

u64
store_txn_moment(const StoreTxn *txn)
{
    return txn->snapshot;
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
    return txn->state != NULL && txn->state->undo.count > 0;
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
store_txn_place(const StoreTxn *txn)
{
    return txn->state == NULL ? 0 : txn->state->undo.count;
}

StoreMark
store_txn_mark(StoreTxn *txn)
{
    txn->mark_last = store_txn_place(txn);
    return txn->mark_last;
}

void
store_txn_drop_marks(StoreTxn *txn, StoreMark keep)
{
    txn->mark_last = MIN_OF(txn->mark_last, keep);
}

/* Undoing gives others a turn; it is not cancelled. */
static void
undo_turn(const StoreTxn *txn)
{
    if (txn->state->undo.count % UNDO_TURN_EVERY == 0) rt_give_turn();
}

void
store_txn_undo_to(StoreTxn *txn, StoreMark mark)
{
    while (txn->state != NULL && txn->state->undo.count > mark) {
        if (!row_undo(txn, true)) {
            txn->undo_failed = true; /* Nothing but rolling it back is possible. */
            break;
        }
        undo_turn(txn);
    }
    txn->mark_last = MIN_OF(txn->mark_last, mark);
}

/* ---- the end ---- */

#define KEEP_BYTES ((size_t)1 << 17) /* Of a buffer, when the object is given back. */

static void
buffer_trim(Buf *buf)
{
    if (UNLIKELY(buf->capacity > KEEP_BYTES)) buf_free(buf);
}

/* Give the object back; its state is no longer its own. */
static void
txn_release(StoreTxn *txn)
{
    Store *store = txn->store;
    ASSERT(txn->holds == NULL);
    txn->state = NULL;
    txn->mark_last = 0;
    txn->undo_failed = false;
    before_arena_end(&txn->images);
    count_reset(txn);
    err_clear(&txn->error);
    buffer_trim(&txn->got);
    buffer_trim(&txn->got_newest);
    buffer_trim(&txn->part);
    redo_reset(txn);
    rt_latch_acquire(&store->txns_latch);
    snapshot_leave(txn);
    txn->newer = store->spare_txns;
    store->spare_txns = txn;
    rt_latch_release(&store->txns_latch);
}

/* Undo all, become aborted, wake who waits. */
static void
abort_writes(StoreTxn *txn)
{
    Store *store = txn->store;
    TxnState *state = txn->state;
    if (state == NULL) return;
    bool wrote = state->undo.count > 0;
    while (state->undo.count > 0) {
        undo_turn(txn);
        if (row_undo(txn, false)) continue;
        /* The rows that stand stay those of an aborted transaction: nobody sees them.  It stays in
           the open set, so that no cut takes them for settled. */
        state->is_stuck = true;
        break;
    }
    if (LIKELY(!state->is_stuck)) spill_drop(store, state);
    rt_latch_acquire(&store->commit_latch);
    if (store->wal != NULL) redo_chunks_end(txn);
    if (LIKELY(!state->is_stuck)) open_set_leave(store, state);
    rt_store_release(&state->status, TXN_ABORTED);
    rt_latch_release(&store->commit_latch);
    wait__ended(txn, state);
    settle__hand_over(store, state);
    txn->state = NULL;
    if (wrote) rt_fetch_add(&store->counters.rollbacks, 1);
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
    for (const TreeNote *note = state->tree_notes; note != NULL; note = note->older) {
        Tree *tree = store__tree(store, note->tree);
        if (note->kind == UNDO_TREE_CREATE) rt_store_release(&tree->created_ts, ts);
        if (note->kind == UNDO_TREE_DROP) rt_store_release(&tree->dropped_ts, ts);
    }
}

/* The instant of the commit; commit latch held. */
static void
commit_publish(StoreTxn *txn, u64 lsn)
{
    Store *store = txn->store;
    TxnState *state = txn->state;
    u64 ts = rt_load_relaxed(&store->last) + 1;
    bool full = txn->sync == STORE_SYNC_FULL && store->wal != NULL;
    rt_store_release(&state->lsn, full ? lsn : 0);
    if (full) store->full_lsn = lsn;
    open_set_leave(store, state);
    state->newer = NULL;
    state->older = store->queue_newest;
    if (state->older != NULL) {
        state->older->newer = state;
    } else {
        store->queue_oldest = state;
    }
    store->queue_newest = state;
    rt_fetch_add(&store->queue_length, 1);
    if (UNLIKELY(state->tree_notes != NULL)) date_trees(store, state, ts);
    count_publish(txn, ts, full ? lsn : 0);
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

/* Log and publish.  On OK the transaction is committed, perhaps not yet durable. */
static Err
commit_writes(StoreTxn *txn, u64 *lsn_out)
{
    Store *store = txn->store;
    TxnState *state = txn->state;
    *lsn_out = 0;
    if (store->wal == NULL) {
        Err err = commit_enter(txn, 0);
        if (err != OK) return err;
        commit_publish(txn, 0);
        rt_latch_release(&store->commit_latch);
        return OK;
    }
    WalPlace place;
    /* All but the last piece of a long record go ahead of it. */
    while (redo_left(txn) > WAL_PIECE_BYTES_MAX) {
        Err err = commit_enter(txn, WAL_RECORD_HEAD_BYTES + WAL_PIECE_BYTES_MAX);
        if (err != OK) {
            redo_drop_taken(txn);
            return err;
        }
        if (!state->chunks_open) wal_chunks_begin(store->wal, &state->chunks);
        state->chunks_open = true;
        wal_take(store->wal, WAL_RECORD_HEAD_BYTES + WAL_PIECE_BYTES_MAX, &place);
        rt_latch_release(&store->commit_latch);
        redo_piece(txn, &place, WAL_RECORD_CHUNK, 0);
        wal_filled(store->wal, &place);
    }
    redo_drop_taken(txn);
    u32 bytes = WAL_RECORD_HEAD_BYTES + (u32)txn->redo.bytes;
    Err err = commit_enter(txn, bytes);
    if (err != OK) return err;
    wal_take(store->wal, bytes, &place);
    commit_publish(txn, place.end);
    redo_chunks_end(txn);
    u64 ts = rt_load_relaxed(&state->status);
    rt_latch_release(&store->commit_latch);
    redo_piece(txn, &place, WAL_RECORD_COMMIT, ts);
    wal_filled(store->wal, &place);
    *lsn_out = place.end;
    return OK;
}

/* The same between the judgement and its record. */
static Err
commit_serializable(StoreTxn *txn, u64 *lsn_out)
{
    for (;;) {
        Err err = ssi__commit_start(txn);
        if (err != OK) return err;
        err = commit_writes(txn, lsn_out);
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
    if (state == NULL || state->undo.count == 0) return commit_reader(txn, msg);

    if (store->wal != NULL && UNLIKELY(!file__log_is_ready(store))) {
        err = file__begin_log(store, &txn->error);
        if (err != OK) return commit_failed(txn, err, msg);
    }
    u64 lsn;
    err = txn->ssi == NULL ? commit_writes(txn, &lsn) : commit_serializable(txn, &lsn);
    if (err == ERR_BUSY) {
        if (msg != NULL) err_set(msg, err, "%s", err_message(&txn->error));
        return err;
    }
    if (err != OK) return commit_failed(txn, err, msg);

    /* Committed: from here on nothing can take it back. */
    u64 dep = txn->dep, writes = state->undo.count;
    StoreSync sync = (StoreSync)txn->sync;
    wait__ended(txn, state);
    settle__hand_over(store, state); /* From here on the settler may give the state away. */
    txn_release(txn);
    rt_fetch_add(&store->counters.commits, 1);
    err = commit_harden(store, sync, lsn, dep);
    if (err != OK) return err_set(msg, err, "%s", wal_failure_text(store->wal, err));
    settle__run(store, SETTLE_BASE + SETTLE_PER_WRITE * writes);
    store__after_commit(store);
    return OK;
}
