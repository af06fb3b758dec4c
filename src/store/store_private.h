/*
 * store_private.h -- the store's own objects, shared by its folders.
 *
 * Which lock protects what, and in which order they are taken, stands in docs/LATCHES.md; the
 * rank constants here are its short form.
 */
#pragma once

#include "rt/lock.h"
#include "rt/process.h"
#include "rt/time.h"
#include "store/resident/mtree.h"
#include "store/store.h"
#include "store/txn/version.h"

/* Ranks of the store's latches, lowest first. */
#define STORE_RANK_TXNS   100 /* Store.txns_latch */
#define STORE_RANK_WAIT   110 /* Store.wait_latch */
#define STORE_RANK_COMMIT 120 /* Store.commit_latch */

struct Wal;
struct StoreFile;
struct SsiTxn;

/* ---- trees ---- */

typedef struct Tree {
    TreeId id;
    u8 kind;       /* StoreTreeKind */
    RtRwLock lock; /* Guards map, the chains in it and `unsettled`.  Never held across I/O. */
    Mtree map;
    u64 unsettled;    /* Versions in chains that have a writer. */
    RtU64 slots;      /* map.slots, for readers without the lock. */
    RtU64 number;     /* Highest number handed out, biased so that 0 is I64_MIN. */
    RtU32 key_locks;  /* Shared key locks in the lock table; changes under the wait latch. */
    RtU64 created_ts; /* 0 while its creator runs. */
    RtU64 dropped_ts; /* 0, or when the drop was committed. */
    RtU64 bytes;      /* Memory of its versions. */
} Tree;

/* ---- locks by name ---- */

typedef struct StoreLock StoreLock;

/* One transaction's hold of one lock. */
typedef struct StoreHold {
    StoreLock *lock;
    TxnState *state;
    bool exclusive;
    struct StoreHold *next_in_lock, *next_in_txn;
} StoreHold;

struct StoreLock {
    StoreLock *next_in_bucket;
    StoreHold *holds;
    u64 number; /* Schema lock number, or the tree of a key lock. */
    u32 key_bytes;
    bool is_key;
    u8 key[];
};

#define STORE_LOCK_BUCKETS 64u

/* ---- transactions ---- */

struct StoreTxn {
    Store *store;
    TxnState *state; /* NULL until it writes, locks or waits. */
    u64 snapshot;
    u64 dep;            /* Must be durable before anything read may be shown. */
    struct SsiTxn *ssi; /* SERIALIZABLE only. */
    u64 wait_ns;
    u8 level;     /* StoreLevel */
    u8 sync;      /* StoreSync */
    bool touched; /* Has read or written since its snapshot was taken. */
    RtU32 interrupted;
    Version *lock_list; /* Undone writes whose rows stay locked; by `next`. */
    Version *graveyard; /* Undone versions that slices may point into; by `next`. */
    StoreHold *holds;
    ErrMsg error;
    Buf copy; /* What store_get_newest() hands out. */

    /* Live transactions by age of snapshot; txns latch. */
    StoreTxn *older, *newer;
    /* Waiting; wait latch. */
    TxnState *waits_for;
    StoreTxn *next_waiter;
    u64 resource;
    RtU32 wait_word; /* 1 while parked and not woken. */
};

/* ---- the store ---- */

#define STORE_TREE_FAN 256u

typedef struct StoreCounters {
    RtU64 commits, rollbacks, row_waits, deadlocks, conflicts;
    RtU64 checkpoints, checkpoint_ns_last, restarts;
    RtU64 versions_live, version_bytes;
} StoreCounters;

struct Store {
    RtProcess *process;
    char *path; /* Real path; "" when unnamed. */
    bool in_memory, read_only;
    u32 references;     /* Registry mutex. */
    struct Store *next; /* Registry list. */
    struct StoreRoot *root;

    RtLatch commit_latch; /* Commit order: `last`, the queue's end, log reservation, the token. */
    RtU64 last;           /* Newest commit timestamp; stored under the commit latch. */
    TxnState *queue_oldest, *queue_newest; /* Committed, not settled; commit latch. */
    RtU64 queue_length;
    RtU64 next_txn_id;
    RtU64 change_number;

    RtLatch txns_latch; /* The live list and the free list. */
    StoreTxn *live_oldest, *live_newest;
    StoreTxn *spare_txns;
    u64 live_count;

    RtLatch wait_latch; /* Wait graph, lock table; with the commit latch: the token. */
    TxnState *token;
    StoreLock *lock_table[STORE_LOCK_BUCKETS];

    RtMutex settle_mutex; /* One settler at a time. */
    bool has_doomed_trees;

    RtMutex ssi_mutex; /* SERIALIZABLE: lists, counter, and the snapshots taken there. */
    struct SsiTxn *ssi_live, *ssi_committed;
    u64 ssi_counter;

    RtMutex trees_mutex;         /* Creation of trees. */
    RtPtr trees[STORE_TREE_FAN]; /* Three levels of 256; entries appear and never go. */
    RtU32 tree_next;             /* First unused id. */

    struct Wal *wal;        /* NULL in memory. */
    struct StoreFile *file; /* NULL in memory. */
    StoreCounters counters;
};

/* ---- store.c ---- */
/* The tree of that id, or NULL. */
Tree *store__tree(const Store *store, TreeId id);
/* Make a tree object under a given id (recovery, creation).  ERR_NOMEM. */
MUST_CHECK Err store__tree_make(Store *store, TreeId id, StoreTreeKind kind, Tree **tree_out);
/* Free all versions and nodes of a tree; exclusive lock held, or nobody else there. */
void store__tree_empty(Store *store, Tree *tree);
/* End of what is durable in the log; U64_MAX in memory. */
u64 store__durable(const Store *store);
/* Has the log failed? */
bool store__failed(const Store *store);

/* Background work that a commit may owe: start a checkpoint when it is time. */
void store__after_commit(Store *store);

/* ---- txn/txn.c ---- */
/* Record an error for store_txn_error() and return it. */
Err txn__fail(StoreTxn *txn, Err err, const char *format, ...) PRINTF_LIKE(3, 4);
/* The transaction's state, made if it is not there.  NULL: out of memory. */
TxnState *txn__state(StoreTxn *txn);
/* Refuse calls of a transaction that cannot go on: doomed, failed log. */
MUST_CHECK Err txn__usable(StoreTxn *txn);
/* Begin with a snapshot of this instant, and the log positions that belong to it: everything
   committed up to the snapshot has its record below *cut_out, all else above. */
MUST_CHECK Err txn__begin_at_cut(Store *store, StoreTxn **txn_out, u64 *cut_out, u64 *oldest_out);
/* Leave the live list and enter it with a snapshot of now. */
void txn__take_fresh_snapshot(StoreTxn *txn);
void txn__list_append(TxnState *state, Version *version);
void txn__list_remove(TxnState *state, Version *version);

/* ---- txn/wait.c ---- */
/*
 * Wait until `holder` has ended.  The caller holds the wait latch, has seen there that holder
 * runs, and loses the latch here, also on error.  `resource`: 0, or what the waiter wants; of
 * those that want the same only one is woken.  [parks]
 */
MUST_CHECK Err wait__for(StoreTxn *txn, TxnState *holder, u64 resource, u64 deadline_ns,
                         const char *what);
/* The state has ended: let go of its named locks and the token, wake who waited. */
void wait__ended(StoreTxn *txn, TxnState *state);
/* A waiter that was woken for `resource` did not take it: wake the next. */
void wait__pass_on(StoreTxn *txn, u64 resource);
/* A transaction other than txn's that holds the key of `tree`, or NULL.  Wait latch held. */
TxnState *wait__key_holder(StoreTxn *txn, const Tree *tree, Slice key);

/* ---- txn/settle.c ---- */
/* Settle at most about `budget` versions; returns whether more could be done at once. */
bool settle__run(Store *store, u64 budget);
/* Free a version, keeping the counters. */
void settle__free_version(Store *store, Tree *tree, Version *version);
/* The path's slot has a settled tombstone on top: remove it. */
void settle__tidy_slot(Store *store, Tree *tree, MtreePath *path);
/* Highest timestamp at or below which everything committed under FULL is durable. */
u64 settle__safe_ts(Store *store);

/* ---- visibility ---- */

static inline void
txn__raise_dep(StoreTxn *txn, const TxnState *writer)
{
    if (PLANT(101)) return; /* Shows what may still be lost. */
    if (writer->full && writer->lsn > txn->dep && writer->lsn > store__durable(txn->store)) {
        txn->dep = writer->lsn;
    }
}

/* The version that `txn` sees, which may be a tombstone; NULL: none.  Tree lock held. */
static ALWAYS_INLINE Version *
txn__visible(StoreTxn *txn, Version *version)
{
    for (; version != NULL; version = version->older) {
        TxnState *writer = version->writer;
        if (LIKELY(writer == NULL)) return version;
        if (version->kind == VERSION_LOCK) continue;
        if (writer == txn->state) return version;
        /* Running wraps to the highest number, aborted is beyond every snapshot. */
        if (rt_load_acquire(&writer->status) - 1 < txn->snapshot) {
            txn__raise_dep(txn, writer);
            return version;
        }
    }
    return NULL;
}

static inline u64
wait__row_resource(TreeId tree, Slice key)
{
    return hash_bytes(key.p, key.bytes, tree) | 4u; /* Never one of the small numbers. */
}
#define WAIT_RESOURCE_ALL   ((u64)0)
#define WAIT_RESOURCE_TOKEN ((u64)1)
