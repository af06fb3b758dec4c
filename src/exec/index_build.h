/*
 * index_build.h -- fill a new index from its table (CREATE INDEX, REINDEX), and compare an index
 * with its table (PRAGMA integrity_check).
 *
 * Both read a run of the plan that plan_index_build() makes for the index: for each row that the
 * index covers, the declared cells, then the key of the row (the rowid, or the primary-key columns
 * of a WITHOUT ROWID table, in the order of that key).  The caller has opened and started the Exec;
 * it resets and closes it.  Entries belong to the transaction `txn`.  [parks]
 */
#pragma once

#include "exec/exec.h"

/*
 * Put an entry into index->tree for every row.  Entries are sorted first, in portions of
 * `memory_bytes` (0: 64 MB).
 * Errors: ERR_CONSTRAINT_UNIQUE "UNIQUE constraint failed: t.a, t.b" or "...: index 'i'", those of
 * the run, of the store, ERR_NOMEM; each with a text in `msg`.
 */
MUST_CHECK Err index_build(Exec *exec, const IndexDef *index, StoreTxn *txn, MemAccount *account,
                           u64 memory_bytes, ErrMsg *msg);

/* Called for each finding; `text` is in SQLite's words. */
typedef void (*IndexFinding)(void *arg, const char *text);

/*
 * Every row must have its entry, and the index no other: "row 5 missing from index i" (rows are
 * counted from 1 in scan order, as SQLite does), "non-unique entry in index i", "wrong # of entries
 * in index i".  At most `findings_left` are reported; the count is lowered.
 */
MUST_CHECK Err index_check(Exec *exec, const IndexDef *index, StoreTxn *txn, u32 *findings_left,
                           IndexFinding report, void *arg, ErrMsg *msg);

/* Every row can be decoded and holds no NULL in a NOT NULL column: "NULL value in t.a".  Generated
   columns that are not stored are not looked at. */
MUST_CHECK Err table_check(const TableDef *table, StoreTxn *txn, u32 *findings_left,
                           IndexFinding report, void *arg, ErrMsg *msg);
