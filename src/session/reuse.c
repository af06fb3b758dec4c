/*
 * reuse.c -- a session that changes hands: what it is to a server that keeps a pool of them.
 *
 * A client must not see anything of the one before it.  Counters, errors and the transaction are
 * forgotten; what a client can set and what cannot be found out cheaply makes the session unfit.
 */
#include "session/session__impl.h"

void
session_set_read_only(Session *session, bool read_only)
{
    session->options.read_only = read_only;
}

static bool
settings_are_new(const Session *session, const SessionOptions *options)
{
    const SessionOptions *now = &session->options;
    if (now->single_writer != options->single_writer || now->sync != options->sync) return false;
    if (now->statement_bytes_max != session->statement_bytes_max ||
        now->session_bytes_max != session->account.cap_bytes)
        return false;
    if (now->level != options->level || session->cache_size != -2000) return false;
    if (session->triggers_off || session->views_off) return false;
    const ExecEnv *env = &session->exec_env;
    if (session->plans != SESSION_PLANS_FREE || env->memory_budget_bytes != 0) return false;
    if (env->batch_rows != 0 || env->trip_every != 0) return false;
    if (session->strings_off_dml || session->strings_off_ddl) return false;
    if (session->count_changes || session->full_column_names || session->long_column_names)
        return false;
    if (session->kept != NULL || session->reserved_names) return false;
    return !session->foreign_keys && !session->recursive_triggers && !session->query_only &&
           !session->ignore_check && !session->reverse_unordered && !session->case_sensitive_like;
}

bool
session_reuse(Session *session, const SessionOptions *options)
{
    if (session->running > 0 || session->db[0].read_only) return false;
    if (session->in_transaction) session__rollback(session);
    if (session->db_count > 2 || session->db[1].database != NULL) return false;
    if (!settings_are_new(session, options)) return false;
    session->options = *options;
    session->statement_bytes_max = options->statement_bytes_max;
    session->exec_env.statement_bytes_max = options->statement_bytes_max;
    session->account.cap_bytes = options->session_bytes_max;
    session->changes = session->total_changes = session->last_rowid = 0;
    session->level = options->level;
    session->level_pending = false;
    err_clear(&session->error);
    session->error.sql_offset = -1;
    rt_task_clear_cancel(&session->task);
    rt_store_relaxed(&session->interrupted, 0);
    return true;
}

void
session_rollback(Session *session)
{
    if (session->in_transaction) session__rollback(session);
}

bool
session_is_waited_for(const Session *session)
{
    for (u32 i = 0; i < session->db_count; i++)
        if (session->db[i].txn != NULL && store_txn_is_waited_for(session->db[i].txn)) return true;
    return false;
}

void
session_set_changes(Session *session, i64 changes, i64 total_changes)
{
    session->changes = changes;
    session->total_changes = total_changes;
}

u64
session_memory_bytes(const Session *session)
{
    return atomic_load_explicit(&session->account.used_bytes, memory_order_relaxed);
}

u64
session_schema_bytes(const Session *session)
{
    u64 bytes = 0;
    for (u32 i = 0; i < session->db_count; i++) {
        if (session->db[i].catalog != NULL) bytes += catalog_bytes(session->db[i].catalog);
    }
    return bytes;
}

StmtKind
stmt_kind(const Stmt *stmt)
{
    switch ((AstStatementKind)stmt->kind) {
    case AST_STMT_SELECT: return STMT_KIND_SELECT;
    case AST_STMT_INSERT: return STMT_KIND_INSERT;
    case AST_STMT_UPDATE: return STMT_KIND_UPDATE;
    case AST_STMT_DELETE: return STMT_KIND_DELETE;
    case AST_STMT_BEGIN: return STMT_KIND_BEGIN;
    case AST_STMT_COMMIT:
    case AST_STMT_ROLLBACK: return STMT_KIND_END;
    case AST_STMT_SAVEPOINT:
    case AST_STMT_RELEASE:
    case AST_STMT_ROLLBACK_TO: return STMT_KIND_SAVEPOINT;
    case AST_STMT_SET_TRANSACTION:
    case AST_STMT_SET_SESSION:
    case AST_STMT_PRAGMA: return STMT_KIND_SETTING;
    case AST_STMT_ATTACH:
    case AST_STMT_DETACH:
    case AST_STMT_VACUUM: return STMT_KIND_FILE;
    default: return STMT_KIND_SCHEMA;
    }
}
