/*
 * run.h -- what run.c and cursor.c share.
 */
#pragma once

#include "server/hrana/hrana.h"

/* How a step of a batch went. */
enum { STEP_SKIPPED, STEP_OK, STEP_FAILED };

/* Prepared and bound; *read_only_out: it begins a transaction that may not write. */
MUST_CHECK bool hrana__prepare(Seat *seat, const HranaStmt *given, Stmt **stmt_out,
                               bool *read_only_out, Fault *fault);
/* After its end: rows changed; true if there is a last rowid to show. */
bool hrana__changes(Seat *seat, const Stmt *stmt, u64 *affected_out, i64 *rowid_out);
/* Around a statement that has to be undone if its rows are too many; *own_out: end it. */
MUST_CHECK bool hrana__own_begin(Seat *seat, const Stmt *stmt, bool *own_out, Fault *fault);
MUST_CHECK bool hrana__own_end(Seat *seat, bool good, Fault *fault);
bool hrana__cond(const HranaCond *cond, const u8 *state, Seat *seat);
