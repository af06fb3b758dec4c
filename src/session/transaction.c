/*
 * transaction.c -- SQL-level transactions over the store's: autocommit, BEGIN, savepoints,
 * isolation levels, the write token, restarts on a fresh snapshot.
 *
 * A session has at most one store transaction a database, shared by all its statements.  In
 * autocommit it begins with the first statement and ends with the last; a write that ends while a
 * reader of the same connection is still open commits, and the reader goes on in a new transaction
 * (it is tripped, so it seeks again behind its last row).
 *
 * After a lost conflict in a transaction of several statements (multi-writer mode) the store
 * transaction is rolled back at once, so that others go on, and the session is doomed: it takes
 * nothing but ROLLBACK.
 */
#include "rt/time.h"
#include "session/virtual__impl.h"

#define TOKEN_TRIES_MAX 1000u

/* ---- beginning ---- */

Err
session__begin_on(Session *session, u32 at)
{
    SessionDb *db = &session->db[at];
    StoreTxnOptions options = {
        .level = session->level,
        .sync = at == 1 ? STORE_SYNC_OFF : session->options.sync,
        .wait_ns = session->options.busy_timeout_ns,
    };
    /* Single mode is SQLite's: one snapshot, one writer. */
    if (session__single(session)) options.level = STORE_SNAPSHOT;
    db->ddl_at_begin = rt_load_acquire(&db->database->ddl_started);
    Err err = store_txn_begin(db->database->store, &options, &db->txn);
    if (err != OK) return session__fail(session, err, NULL);
    session->txn[at] = db->txn;
    session->open_txns++;
    session->write_no++;
    db->verified = false;
    db->own_ddl = false;
    return OK;
}

Err
session__ensure_txn(Session *session)
{
    bool is_fresh = true;
    for (u32 i = 0; i < session->db_count; i++) {
        SessionDb *db = &session->db[i];
        if (db->database == NULL) continue;
        if (db->txn != NULL) {
            is_fresh = false;
            continue;
        }
        Err err = session__begin_on(session, i);
        if (err != OK) return err;
    }
    bool is_committed_level = session->level == STORE_READ_COMMITTED && !session__single(session);
    if (is_fresh || !is_committed_level || session->running > 0) return OK;
    /* READ COMMITTED: every statement sees what is committed now. */
    for (u32 i = 0; i < session->db_count; i++) {
        SessionDb *db = &session->db[i];
        if (db->database == NULL) continue;
        db->ddl_at_begin = rt_load_acquire(&db->database->ddl_started);
        Err err = store_txn_refresh(db->txn);
        if (err != OK) return session__store_error(session, i, err);
        if (!db->own_ddl) db->verified = false;
    }
    return OK;
}

/* A transaction that has not read takes the token first and the snapshot second, so it cannot be
   stale; one that has read does not wait, since waiting could only end in a stale snapshot. */
static Err
take_token(Session *session, u32 at)
{
    SessionDb *db = &session->db[at];
    bool is_fresh = !session->has_read;
    Err err = OK;
    store_txn_set_wait(db->txn, is_fresh ? session->options.busy_timeout_ns : 0);
    for (u32 tries = 0; tries < TOKEN_TRIES_MAX; tries++) {
        err = store_txn_take_token(db->txn);
        if (err != ERR_BUSY_SNAPSHOT || !is_fresh) break;
        db->ddl_at_begin = rt_load_acquire(&db->database->ddl_started);
        db->verified = false;
        err = store_txn_refresh(db->txn);
        if (err != OK) break;
    }
    store_txn_set_wait(db->txn, session->options.busy_timeout_ns);
    return err == OK ? OK : session__store_error(session, at, err);
}

/* One database may be attached by several names, each with a transaction of its own; only one of
   them writes at a time, as connections to one file in SQLite. */
static bool
twin_has_written(const Session *session, u32 at)
{
    for (u32 i = 0; i < session->db_count; i++) {
        const SessionDb *db = &session->db[i];
        if (i == at || db->database != session->db[at].database || db->txn == NULL) continue;
        if (db->has_token || store_txn_has_written(db->txn)) return true;
    }
    return false;
}

Err
session__ensure_token(Session *session, i32 database)
{
    session->write_no++;          /* For who writes past exec. */
    if (database == 1) return OK; /* Temp is the session's own. */
    if (session->options.read_only || session->query_only) {
        return session__fail(session, ERR_READONLY, NULL);
    }
    for (u32 i = 0; i < session->db_count; i++) {
        SessionDb *db = &session->db[i];
        bool is_meant = database < 0 || (u32)database == i;
        if (db->database == NULL || i == 1 || !is_meant) continue;
        if (db->read_only || store_is_read_only(db->database->store)) {
            return session__fail(session, ERR_READONLY, NULL);
        }
        if (db->has_token) continue;
        if (session->db_count > 2 && twin_has_written(session, i)) {
            return session_set_error(session, ERR_BUSY, "database is locked");
        }
        if (!session__single(session)) continue;
        Err err = take_token(session, i);
        if (err != OK) return err;
        db->has_token = true;
    }
    return OK;
}

/* The databases whose tables the plan writes. */
static Err
tokens_for_plan(Session *session, const Plan *plan)
{
    for (u32 i = 0; i < plan->table_count; i++) {
        if (!plan->table[i].writes) continue;
        u32 database = plan->table[i].table->database;
        if (session->db[database].has_token && !session->query_only) continue;
        Err err = session__ensure_token(session, (i32)database);
        if (err != OK) return err;
    }
    return OK;
}

/* Shared schema locks on the written tables; then: has DDL changed one since our snapshot? */
static Err
lock_tables(Session *session, const Plan *plan)
{
    for (u32 i = 0; i < plan->table_count; i++) {
        const TableDef *table = plan->table[i].table;
        if (!plan->table[i].writes || table->is_view || table->is_virtual || table->database == 1)
            continue;
        SessionDb *db = &session->db[table->database];
        Err err = store_txn_lock_schema(db->txn, table->schema_lock_no, false);
        if (err != OK) return session__store_error(session, table->database, err);
        u64 started = rt_load_acquire(&db->database->ddl_started);
        if (started == db->ddl_at_begin && !db->own_ddl &&
            started == rt_load_acquire(&db->database->ddl_finished)) {
            continue;
        }
        /* The lock is ours: whatever DDL on this table there was is decided by now. */
        u8 key[16];
        bool found, newer = false;
        Slice value;
        memcpy(key, "table:", 6);
        store_be32(key + 6, table->tree);
        err = store_get_newest(db->txn, TREE_ROOT, SLICE(key, 10), &found, &newer, &value);
        if (err != OK) return session__store_error(session, table->database, err);
        if (newer) {
            return session_set_error(session, ERR_BUSY_SNAPSHOT,
                                     "could not serialize access due to schema change");
        }
    }
    return OK;
}

Err
session__ensure_writer(Session *session, const Plan *plan)
{
    Err err = tokens_for_plan(session, plan);
    if (err != OK || session__single(session)) return err;
    return lock_tables(session, plan);
}

/* ---- ending ---- */

static void
end_flags(Session *session)
{
    session->in_transaction = false;
    session->doomed = false;
    session->has_shown = false;
    session->has_written = false;
    session->has_read = false;
    session->concurrent = false;
    session->level_pending = false;
    session->level = session->options.level;
    session->deferred_violations = 0;
    session->defer_foreign_keys = false;
    session->exec_env.defer_foreign_keys = false;
    session->exec_env.multi_writers = !session__single(session);
    for (u32 i = 0; i < session->savepoint_count; i++)
        mem_free(session->savepoint[i].name);
    session->savepoint_count = 0;
}

void
session__forget_txn(Session *session, u32 at)
{
    ASSERT(session->db[at].txn != NULL && session->open_txns > 0);
    session->open_txns--;
    session->db[at].txn = NULL;
    session->txn[at] = NULL;
    session->db[at].verified = false;
    session->db[at].has_token = false;
}

static void
rollback_store(Session *session)
{
    if (session->host.rollback != NULL && session_in_write_transaction(session)) {
        session->host.rollback(session->host.rollback_arg);
    }
    session__trip_all(session);
    session__forget_own_catalogs(session);
    virtual__end(session, false);
    for (u32 i = session->db_count; i-- > 0;) {
        SessionDb *db = &session->db[i];
        if (db->txn == NULL) continue;
        store_txn_rollback(db->txn);
        db->own_ddl = false;
        session__forget_txn(session, i);
    }
}

/* Open readers go on in a new transaction.  If that cannot begin, their next step says so. */
static void
resume_readers(Session *session)
{
    if (session->running == 0) return;
    for (u32 i = 0; i < session->db_count; i++) {
        if (session->db[i].database == NULL) continue;
        if (session->db[i].txn == NULL && session__begin_on(session, i) != OK) return;
    }
    session->has_read = true;
}

void
session__rollback(Session *session)
{
    rollback_store(session);
    end_flags(session);
    resume_readers(session);
}

static Err
commit_one(Session *session, u32 at)
{
    SessionDb *db = &session->db[at];
    ErrMsg msg = {.sql_offset = -1};
    bool is_ddl = db->own_ddl, wrote = store_txn_has_written(db->txn);
    if (!wrote && session->level != STORE_SERIALIZABLE) {
        store_txn_rollback(db->txn);
        db->own_ddl = false;
        session__forget_txn(session, at);
        return OK;
    }
    if (is_ddl) rt_fetch_add(&db->database->ddl_started, 1);
    Err err = store_txn_commit(db->txn, &msg);
    if (err == OK && is_ddl && at == 0 && db->catalog != NULL) {
        database__publish(db->database, db->catalog);
    }
    if (is_ddl) rt_fetch_add(&db->database->ddl_finished, 1);
    if (err == ERR_BUSY) return session__fail(session, err, &msg);
    session__forget_txn(session, at);
    if (err != OK) {
        if (is_ddl) session__forget_own_catalogs(session);
        db->own_ddl = false;
        return session__fail(session, err, &msg);
    }
    db->own_ddl = false;
    db->commits += wrote;
    return OK;
}

/* The program may run statements then: everything is over. */
static void
tell_committed(Session *session)
{
    u32 wrote = session->wrote;
    session->wrote = 0;
    for (u32 i = 0; session->host.committed != NULL && wrote >> i != 0; i++) {
        if ((wrote >> i & 1) != 0 && session->db[i].name != NULL)
            session->host.committed(session->host.committed_arg, session->db[i].name);
    }
}

/* Commit every database's transaction, main first. */
static Err
commit_store(Session *session)
{
    Err synced = virtual__sync(session);
    if (synced != OK) {
        rollback_store(session);
        return synced;
    }
    if (session->host.commit != NULL && session_in_write_transaction(session) &&
        session->host.commit(session->host.commit_arg)) {
        rollback_store(session);
        err_set(&session->error, ERR_HOST, "constraint failed");
        session->error.host_code = 19 | (2 << 8); /* SQLITE_CONSTRAINT_COMMITHOOK */
        return ERR_HOST;
    }
    session__trip_all(session);
    session->wrote = 0;
    for (u32 i = 0; i < session->db_count; i++) {
        if (session->db[i].txn == NULL) continue;
        if (i != 1 && store_txn_has_written(session->db[i].txn)) session->wrote |= 1u << i;
        Err err = commit_one(session, i);
        if (err == ERR_BUSY) return err;
        if (err != OK) {
            rollback_store(session);
            return err;
        }
    }
    virtual__end(session, true);
    return OK;
}

Err
session__commit(Session *session)
{
    if (!session->in_transaction) {
        return session_set_error(session, ERR_SQL, "cannot commit - no transaction is active");
    }
    if (session->running_writes > 0) {
        return session_set_error(session, ERR_BUSY,
                                 "cannot commit transaction - SQL statements in progress");
    }
    if (session->doomed) {
        return session_set_error(session, ERR_BUSY_SNAPSHOT,
                                 "transaction has failed: only ROLLBACK is possible");
    }
    if (session->deferred_violations > 0) {
        return session__fail(session, ERR_CONSTRAINT_FOREIGNKEY, NULL);
    }
    Err err = commit_store(session);
    if (err == ERR_BUSY) return err;
    end_flags(session);
    resume_readers(session);
    if (err == OK) tell_committed(session);
    return err;
}

Err
session__autocommit_end(Session *session, bool ok)
{
    if (session->in_transaction) return OK;
    Err err = OK;
    bool writes = session_in_write_transaction(session) || virtual__in_transaction(session);
    if (session->running_writes == 0 && writes) {
        if (ok && session->deferred_violations > 0) {
            err = session__fail(session, ERR_CONSTRAINT_FOREIGNKEY, NULL);
        } else if (ok) {
            err = commit_store(session);
        }
        if (!ok || err != OK) rollback_store(session);
        end_flags(session);
        resume_readers(session);
        if (ok && err == OK) tell_committed(session);
        return err;
    }
    if (session->running > 0) return OK;
    for (u32 i = 0; i < session->db_count; i++) {
        if (session->db[i].txn == NULL) continue;
        Err one = commit_one(session, i);
        if (err == OK) err = one;
    }
    if (err != OK) rollback_store(session);
    end_flags(session);
    return err;
}

bool
session__has_work_at_end(const Session *session)
{
    return !session->in_transaction && session->open_txns > 0;
}

void
session__drop_snapshots(Session *session)
{
    if (session->running != 1 || session->running_writes > 0) return;
    if (session->level == STORE_SERIALIZABLE || session->open_txns == 0) return;
    for (u32 i = 0; i < session->db_count; i++) {
        SessionDb *db = &session->db[i];
        if (db->txn != NULL && (db->own_ddl || store_txn_has_written(db->txn))) return;
    }
    for (u32 i = 0; i < session->db_count; i++) {
        if (session->db[i].txn == NULL) continue;
        store_txn_rollback(session->db[i].txn);
        session__forget_txn(session, i);
    }
    end_flags(session);
}

/* ---- BEGIN, isolation ---- */

static StoreLevel
store_level(AstIsolation isolation, StoreLevel otherwise)
{
    switch (isolation) {
    case AST_ISOLATION_NONE: return otherwise;
    case AST_ISOLATION_READ_UNCOMMITTED:
    case AST_ISOLATION_READ_COMMITTED: return STORE_READ_COMMITTED;
    case AST_ISOLATION_REPEATABLE_READ:
    case AST_ISOLATION_SNAPSHOT: return STORE_SNAPSHOT;
    case AST_ISOLATION_SERIALIZABLE: return STORE_SERIALIZABLE;
    }
    UNREACHABLE();
}

Err
session__begin(Session *session, const AstTransaction *ast)
{
    if (session->in_transaction) {
        return session_set_error(session, ERR_SQL,
                                 "cannot start a transaction within a transaction");
    }
    bool is_named = ast->isolation != AST_ISOLATION_NONE;
    bool has_open = session->db[0].txn != NULL;
    if (has_open && (is_named || ast->mode == AST_BEGIN_CONCURRENT)) {
        return session_set_error(session, ERR_BUSY,
                                 "cannot choose an isolation level while a statement is open");
    }
    session->in_transaction = true;
    session->level = store_level(ast->isolation, session->level);
    if (session->options.single_writer) {
        session->concurrent = is_named || ast->mode == AST_BEGIN_CONCURRENT;
        session->exec_env.multi_writers = session->concurrent;
    }
    if (ast->mode != AST_BEGIN_IMMEDIATE && ast->mode != AST_BEGIN_EXCLUSIVE) return OK;
    Err err = session__ensure_txn(session);
    if (err == OK) err = session__ensure_token(session, -1);
    if (err == OK) return OK;
    ErrMsg kept = {.sql_offset = -1};
    err_move(&kept, &session->error);
    session__rollback(session);
    return session__fail(session, err, &kept);
}

Err
session__set_isolation(Session *session, AstIsolation isolation, bool for_session)
{
    StoreLevel level = store_level(isolation, session->options.level);
    if (for_session) {
        session->options.level = level;
        if (!session->in_transaction && session->db[0].txn == NULL) session->level = level;
        return OK;
    }
    if (!session->in_transaction) {
        return session_set_error(session, ERR_SQL,
                                 "SET TRANSACTION is only possible inside a transaction");
    }
    if (session->db[0].txn != NULL) {
        return session_set_error(session, ERR_SQL,
                                 "SET TRANSACTION must come before the first query");
    }
    session->level = level;
    session->level_pending = true;
    if (session->options.single_writer) {
        session->concurrent = true;
        session->exec_env.multi_writers = true;
    }
    return OK;
}

/* ---- savepoints and marks ---- */

void
session__marks(Session *session, StoreMark *mark_out)
{
    for (u32 i = 0; i < session->db_count; i++) {
        StoreTxn *txn = session->db[i].txn;
        mark_out[i] = txn == NULL ? 0 : store_txn_mark(txn);
    }
}

void
session__places(Session *session, StoreMark *place_out)
{
    for (u32 i = 0; i < session->db_count; i++) {
        StoreTxn *txn = session->db[i].txn;
        place_out[i] = txn == NULL ? 0 : store_txn_place(txn);
    }
}

void
session__drop_marks(Session *session)
{
    u32 count = session->savepoint_count;
    for (u32 i = 0; i < session->db_count; i++) {
        StoreTxn *txn = session->db[i].txn;
        StoreMark keep = count == 0 ? 0 : session->savepoint[count - 1].mark[i];
        if (txn != NULL) store_txn_drop_marks(txn, keep);
    }
}

void
session__undo_to(Session *session, const StoreMark *mark)
{
    session->write_no++;
    session__trip_all(session);
    for (u32 i = 0; i < session->db_count; i++) {
        if (session->db[i].txn != NULL) store_txn_undo_to(session->db[i].txn, mark[i]);
    }
    session__forget_own_catalogs(session);
}

Err
session__savepoint(Session *session, Slice name)
{
    if (session->savepoint_count == session->savepoint_capacity) {
        u32 capacity = session->savepoint_capacity * 2 + 8;
        Savepoint *list = mem_realloc(session->savepoint, sizeof(*list) * capacity);
        if (list == NULL) return session__fail(session, ERR_NOMEM, NULL);
        session->savepoint = list;
        session->savepoint_capacity = capacity;
    }
    Savepoint *savepoint = &session->savepoint[session->savepoint_count];
    *savepoint = (Savepoint){
        .name = mem_strndup(name.p, name.bytes),
        .began = !session->in_transaction,
        .deferred_violations = session->deferred_violations,
    };
    if (savepoint->name == NULL) return session__fail(session, ERR_NOMEM, NULL);
    session__marks(session, savepoint->mark);
    Err err = virtual__savepoint(session, HOST_SAVEPOINT, session->savepoint_count);
    if (err != OK) {
        mem_free(savepoint->name);
        return err;
    }
    session->savepoint_count++;
    session->in_transaction = true;
    return OK;
}

/* Newest first; -1 if there is none of that name. */
static i32
find_savepoint(const Session *session, Slice name)
{
    for (u32 i = session->savepoint_count; i-- > 0;) {
        const char *at = session->savepoint[i].name;
        if (slice_equal_nocase(name, SLICE(at, strlen(at)))) return (i32)i;
    }
    return -1;
}

static Err
no_savepoint(Session *session, Slice name)
{
    return session_set_error(session, ERR_SQL, "no such savepoint: %.*s", (int)name.bytes,
                             (const char *)name.p);
}

static void
drop_savepoints(Session *session, u32 keep)
{
    while (session->savepoint_count > keep)
        mem_free(session->savepoint[--session->savepoint_count].name);
}

Err
session__release(Session *session, Slice name)
{
    i32 at = find_savepoint(session, name);
    if (at < 0) return no_savepoint(session, name);
    if (at == 0 && session->savepoint[0].began) return session__commit(session);
    drop_savepoints(session, (u32)at);
    return virtual__savepoint(session, HOST_RELEASE, (u32)at);
}

Err
session__rollback_to(Session *session, Slice name)
{
    i32 at = find_savepoint(session, name);
    if (at < 0) return no_savepoint(session, name);
    if (session->doomed) {
        return session_set_error(session, ERR_BUSY_SNAPSHOT,
                                 "transaction has failed: only ROLLBACK is possible");
    }
    session->deferred_violations = session->savepoint[at].deferred_violations;
    session__undo_to(session, session->savepoint[at].mark);
    drop_savepoints(session, (u32)at + 1);
    return virtual__savepoint(session, HOST_ROLLBACK_TO, (u32)at);
}

/* ---- restarts ---- */

bool
session__may_restart(const Session *session)
{
    if (session__single(session) || session->running > 1) return false;
    if (session->level == STORE_READ_COMMITTED) return true;
    return !session->has_shown && !session->has_written;
}

Err
session__restart(Session *session)
{
    for (u32 i = 0; i < session->db_count; i++) {
        SessionDb *db = &session->db[i];
        if (db->txn == NULL) continue;
        db->ddl_at_begin = rt_load_acquire(&db->database->ddl_started);
        db->verified = false;
        Err err = store_txn_refresh(db->txn);
        if (err != OK) return session__store_error(session, i, err);
    }
    return OK;
}

/* ---- showing ---- */

Err
session__wait_shown(Session *session)
{
    if (session->open_txns == 0) return OK; /* Nothing of a database: a later write may restart. */
    u32 left = session->open_txns;
    for (u32 i = 0; left > 0; i++) {
        ASSERT(i < session->db_count);
        if (session->db[i].txn == NULL) continue;
        Err err = store_txn_wait_shown(session->db[i].txn);
        if (err != OK) return session__store_error(session, i, err);
        left--;
    }
    session->has_shown = true;
    return OK;
}

/* ---- trips ---- */

void
session__trip(Session *session, const Exec *except, const Store *store, TreeId tree)
{
    if (session->running <= 1) return;
    for (Stmt *stmt = session->first_stmt; stmt != NULL; stmt = stmt->next) {
        if (stmt->state != STMT_RUNNING || stmt->exec == NULL || stmt->exec == except) continue;
        if (exec_reads_tree(stmt->exec, store, tree)) exec_trip(stmt->exec);
    }
}

void
session__trip_all(Session *session)
{
    for (Stmt *stmt = session->first_stmt; stmt != NULL; stmt = stmt->next) {
        if (stmt->state == STMT_RUNNING && stmt->exec != NULL) exec_trip(stmt->exec);
    }
}
