/*
 * crowd.c -- statements that lose against each other again and again queue up.
 *
 * Several sessions that run the same searching write at once (a queue's "claim the first ten jobs")
 * want the same rows.  All but one lose them, take a fresh snapshot, search again, and lose again:
 * the work grows with the square of the crowd.  So a text that has lost a row is crowded for a
 * while: who runs it takes a lock named after it first and a snapshot then, and so meets only what
 * the others have left.  Statements of one row need none of this, they queue at the row.
 *
 * It is a matter of speed alone.  The lock is the store's, in its wait graph, and goes at commit
 * before the sync, like rows; only a transaction that has not begun takes it, so it never waits for
 * it with something in its hands.
 */
#include "session/session__impl.h"

#define LOCK_BIT ((u64)1 << 63) /* Schema locks are numbered by trees. */
#define CALM     64u            /* So many runs without waiting, and the text is free again. */

static u64
text_hash(Stmt *stmt)
{
    if (stmt->text_hash == 0) stmt->text_hash = hash_bytes(stmt->sql, stmt->sql_bytes, 0) | 1;
    return stmt->text_hash;
}

static RtU8 *
crowded(Stmt *stmt, u32 at)
{
    Database *database = stmt->session->db[at].database;
    return &database->crowded[text_hash(stmt) >> 32 & (DATABASE_CROWDS - 1)];
}

/* The database of the table that it writes. */
static u32
target_of(const Stmt *stmt)
{
    return stmt->plan->write->table->database;
}

/* Is it the first of its transaction, a write that searches for its rows? */
static bool
may_queue(const Stmt *stmt)
{
    const Session *session = stmt->session;
    if (!stmt->is_write || stmt->plan == NULL || stmt->plan->write == NULL) return false;
    if (!stmt->plan->write->collect || session__single(session)) return false;
    if (session->level == STORE_READ_COMMITTED || session->doomed) return false;
    if (session->has_read || session->has_written || session->savepoint_count > 0) return false;
    return session->running <= 1 && target_of(stmt) != 1 &&
           session->db[target_of(stmt)].database != NULL;
}

Err
crowd__enter(Stmt *stmt)
{
    Session *session = stmt->session;
    stmt->in_crowd = false;
    stmt->may_queue = may_queue(stmt);
    if (!stmt->may_queue) return OK;
    u32 at = target_of(stmt);
    RtU8 *runs = crowded(stmt, at);
    u8 left = rt_load_relaxed(runs);
    if (LIKELY(left == 0)) return OK;
    Err err = session->db[at].txn == NULL ? session__begin_on(session, at) : OK;
    if (err != OK) return err;
    StoreTxn *txn = session->db[at].txn;
    bool waited;
    err = store_txn_take_turn(txn, text_hash(stmt) | LOCK_BIT, &waited);
    if (err != OK) return session__store_error(session, at, err);
    /* Another's count may be lost: no matter. */
    rt_store_relaxed(runs, (u8)(waited ? CALM : left - 1u));
    stmt->in_crowd = true;
    return session__restart(session);
}

bool
crowd__leave_rows(Stmt *stmt)
{
    Session *session = stmt->session;
    if (!stmt->may_queue || stmt->in_crowd) return false;
    rt_store_relaxed(crowded(stmt, target_of(stmt)), (u8)CALM);
    for (u32 i = 0; i < session->db_count; i++) {
        if (session->db[i].txn == NULL) continue;
        store_txn_rollback(session->db[i].txn);
        session__forget_txn(session, i);
    }
    session->has_read = false;
    return true;
}
