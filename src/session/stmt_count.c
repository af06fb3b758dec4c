/*
 * stmt_count.c -- what a statement has done since it was prepared: scans, sorts, steps.
 *
 * The executor counts; its numbers are gathered here when they are asked for, and before a run
 * state goes.
 */
#include "session/session__impl.h"

/* The counters of the present run state are added to those of former ones. */
void
stmt__gather_counts(Stmt *stmt)
{
    if (stmt->exec == NULL) return;
    ExecStatus status;
    exec_status(stmt->exec, &status);
    stmt->count[STMT_COUNT_FULL_SCAN_ROWS] += status.full_scan_rows;
    stmt->count[STMT_COUNT_SORTS] += status.sorts;
    stmt->count[STMT_COUNT_BUILD_ROWS] += status.build_rows;
    stmt->count[STMT_COUNT_STEPS] += status.steps;
    exec_status_clear(stmt->exec);
}

u64
stmt_counter(Stmt *stmt, StmtCounter counter, bool clear)
{
    session_lock(stmt->session);
    stmt__gather_counts(stmt);
    u64 value = stmt->count[counter];
    if (clear) stmt->count[counter] = 0;
    session_unlock(stmt->session);
    return value;
}

u64
stmt_memory_bytes(const Stmt *stmt)
{
    return stmt->exec == NULL ? 0 : exec_memory_bytes(stmt->exec);
}
