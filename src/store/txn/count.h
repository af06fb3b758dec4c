/*
 * count.h -- how many rows a tree has, without looking at its leaves.
 *
 * A transaction keeps by how much it has changed the number of rows of each tree (its changes); a
 * commit adds them to the trees under the commit latch, at the instant when it becomes visible.  So
 * a tree's number is that of all that is committed, and that is what a snapshot sees unless
 * somebody has committed a change of the number after it was taken.
 *
 * A tree of an earlier life of the process has no number until somebody has counted its leaves.
 *
 * Tasks: a transaction's changes belong to its task; RowCount is guarded by the commit latch.
 */
#pragma once

#include "base/base.h"

struct StoreTxn;
struct Tree;

/* Of a tree. */
typedef struct RowCount {
    u64 rows;
    u64 ts;  /* Of the last commit that changed it. */
    u64 lsn; /* Must be durable before `rows` is shown; 0: nothing. */
    bool is_known;
} RowCount;

/* What a transaction that has not ended did to one tree. */
typedef struct CountChange {
    struct Tree *tree;
    i64 rows;
} CountChange;

typedef struct CountChanges {
    CountChange *change;
    u32 count, room;
    u32 last; /* Found or made last. */
} CountChanges;

/* Have room for a change of a tree without one so far.  ERR_NOMEM. */
MUST_CHECK Err count_reserve(struct StoreTxn *txn);
/* The transaction has made `rows` more (or, undoing, fewer) rows; after count_reserve(). */
void count_note(struct StoreTxn *txn, struct Tree *tree, i64 rows);
/* The transaction is committed; commit latch held. */
void count_publish(struct StoreTxn *txn, u64 ts, u64 lsn);
/* It has ended. */
void count_reset(struct StoreTxn *txn);
void count_free(struct StoreTxn *txn);

/* Rows of the tree as the transaction sees it.  False: the leaves must be counted. */
bool count_look(struct StoreTxn *txn, struct Tree *tree, u64 *rows_out, u64 *lsn_out);
/* They have been: so many does the transaction see. */
void count_learn(struct StoreTxn *txn, struct Tree *tree, u64 rows, u64 lsn);
