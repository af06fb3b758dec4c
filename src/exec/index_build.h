/*
 * index_build.h -- fill a new index from its table (CREATE INDEX, REINDEX), and compare tables and
 * indexes with each other (PRAGMA integrity_check).
 *
 * `plan` is what plan_index_build() makes for the index: for each row that the index covers, the
 * declared cells, then the key of the row (the rowid, or the primary-key columns of a WITHOUT ROWID
 * table, in the order of that key).  The caller keeps it.  `txn_by_database` is as for
 * exec_start().  Every error has its text in `msg`.
 */
#pragma once

#include "exec/exec.h"

/*
 * Put an entry into the index's (empty) tree for every row, sorted, in portions of
 * env->memory_budget_bytes.  [parks]
 * Errors: ERR_CONSTRAINT_UNIQUE "UNIQUE constraint failed: t.a, t.b" or "...: index 'i'"; those of
 * the run and of the store; ERR_NOMEM.  The caller undoes the statement.
 */
MUST_CHECK Err exec_index_build(const Plan *plan, const IndexDef *index, const ExecEnv *env,
                                StoreTxn *const *txn_by_database, ErrMsg *msg);

/*
 * The same for rows that may break a unique index: a row whose entry is there already gets none,
 * and `duplicate` is called with the key of the row (as in the plan) and may delete the row.
 * Slower: nothing is sorted.  [parks]
 */
typedef Err (*ExecDuplicate)(void *arg, const Cell *row_key);
MUST_CHECK Err exec_index_build_loose(const Plan *plan, const IndexDef *index, const ExecEnv *env,
                                      StoreTxn *const *txn_by_database, ExecDuplicate duplicate,
                                      void *arg, ErrMsg *msg);

/* Called for each finding; `text` is in SQLite's words. */
typedef void (*ExecFinding)(void *arg, const char *text);

/*
 * Every row must have its entry, and the index no other: "row 5 missing from index i" (rows are
 * counted from 1 in scan order), "non-unique entry in index i", "row 5 values differ from index i",
 * "wrong # of entries in index i".  At most *findings_left are reported; it is lowered.  [parks]
 */
MUST_CHECK Err exec_index_check(const Plan *plan, const IndexDef *index, const ExecEnv *env,
                                StoreTxn *const *txn_by_database, u32 *findings_left,
                                ExecFinding report, void *arg, ErrMsg *msg);

/* Every row can be decoded and holds no NULL in a NOT NULL column: "NULL value in t.a".  Generated
   columns that are not stored are not looked at.  [parks] */
MUST_CHECK Err exec_table_check(const TableDef *table, StoreTxn *txn, u32 *findings_left,
                                ExecFinding report, void *arg, ErrMsg *msg);
