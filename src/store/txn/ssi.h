/*
 * ssi.h -- SERIALIZABLE: snapshot isolation plus the pivot rules.
 *
 * A serializable transaction keeps the key ranges that it read.  At its commit the edges to other
 * serializable transactions are computed from those ranges and the keys written, and a commit that
 * would complete a dangerous structure fails.  What committed is kept while a live one began
 * before it ended.  Only transactions of this level take part.  All under Store.ssi_mutex, except
 * the noting of reads, which is the transaction's own.
 *
 * A transaction that never writes never fails.
 */
#pragma once

#include "store/store_private.h"

typedef struct SsiRange {
    TreeId tree;
    bool has_low, has_high; /* Without: open to that end. */
    u32 low_at, low_bytes;  /* In SsiTxn.keys. */
    u32 high_at, high_bytes, high_room;
} SsiRange;

typedef struct SsiKey {
    TreeId tree;
    Slice key; /* In SsiTxn.keys after the end. */
} SsiKey;

typedef struct SsiTxn {
    struct SsiTxn *newer, *older; /* Live or committed list. */
    u64 snapshot;
    u64 begin_no, end_no; /* Of one counter; end_no once committed. */
    RtU32 ever_wrote;     /* Set by its task, read by committers. */
    u64 ts;               /* Commit timestamp; 0: wrote nothing. */
    bool has_out;         /* Had an out edge when it committed. */
    Buf keys;             /* Bytes of the ranges, later also of the keys written. */
    SsiRange *ranges;
    u32 range_count, range_capacity;
    SsiKey *written; /* By tree and key; after the commit. */
    u64 written_count;
} SsiTxn;

/* Attach to a transaction, with a fresh snapshot.  [parks]  ERR_NOMEM. */
MUST_CHECK Err ssi__begin(StoreTxn *txn);
/* A fresh snapshot for a transaction that has not written; its reads are forgotten.  [parks] */
void ssi__refresh(StoreTxn *txn);
/* The transaction ends without a commit.  [parks] */
void ssi__abandon(StoreTxn *txn);

/* Note a read.  ERR_NOMEM. */
MUST_CHECK Err ssi__note_key(StoreTxn *txn, TreeId tree, Slice key);
/* NULL: open.  *range_io: the range to extend if it is this transaction's last, else made. */
MUST_CHECK Err ssi__note_range(StoreTxn *txn, TreeId tree, const Slice *low, const Slice *high);

/*
 * Before a commit: take the mutex and judge.  On OK the mutex is held, to be given back by
 * ssi__commit_end(), which `committed` tells how it went.  [parks]  ERR_SERIALIZE, ERR_NOMEM.
 */
MUST_CHECK Err ssi__commit_start(StoreTxn *txn);
void ssi__commit_end(StoreTxn *txn, bool committed, u64 ts);
