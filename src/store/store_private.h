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
#include "store/store.h"
#include "store/tree/btree.h"
#include "store/txn/count.h"
#include "store/txn/state.h"
#include "store/version/map.h"

/* Ranks of the store's latches, lowest first.  Pages: POOL_RANK_PAGE, the sweep's is the last. */
#define STORE_RANK_TXNS     100                         /* Store.txns_latch */
#define STORE_RANK_WAIT     110                         /* Store.wait_latch */
#define STORE_RANK_COMMIT   120                         /* Store.commit_latch */
#define STORE_RANK_STATES   130                         /* TxnTable.latch */
#define STORE_RANK_SPILLS   135                         /* Store.spill_latch */
#define STORE_RANK_PAGES    140                         /* Store.pages.latch */
#define STORE_RANK_VERSIONS ((u16)(214 | RT_RANK_MANY)) /* VersionStripe.latch; above pages */
#define STORE_RANK_DOOM     ((u16)(216 | RT_RANK_MANY)) /* Store.doom_latch */

struct Wal;
struct StoreFile;
struct SsiTxn;

/* ---- trees ---- */

/* Have long values been written in parts (longval/parts.c)? */
typedef enum PartsState {
    PARTS_UNKNOWN, /* Nobody has looked since the store was opened. */
    PARTS_NONE,
    PARTS_SOME
} PartsState;

/* Is Tree.number at or above every key of a tree of integers? */
typedef enum TreeNumbering {
    TREE_NUMBERS_UNKNOWN,
    TREE_NUMBERS_WATCHED, /* At or above every key that came since. */
    TREE_NUMBERS_KNOWN
} TreeNumbering;

typedef struct Tree {
    TreeId id;
    u8 kind; /* StoreTreeKind */
    Btree map;
    RtU32 gone;         /* Its pages are free; readers find nothing. */
    RtU32 numbering;    /* TreeNumbering */
    RtU32 key_holds;    /* Holds of its keys in the lock table; changes under the wait latch. */
    RtU64 created_ts;   /* 0 while its creator runs. */
    RtU64 noted_epoch;  /* Of its entry on its creator's undo list; U64_MAX: it comes. */
    RtU64 dropped_ts;   /* 0, or when the drop was committed. */
    RowCount row_count; /* Commit latch. */
    /* What every insert writes, away from what everybody reads. */
    u64 apart[8];
    RtU64 slots;  /* Entries, tombstones too. */
    RtU64 number; /* Highest number handed out, biased so that 0 is I64_MIN. */
    u64 apart_too[6];
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
    u8 level;         /* StoreLevel */
    u8 sync;          /* StoreSync */
    bool touched;     /* Has read or written since its snapshot was taken. */
    bool undo_failed; /* Some of what it took back still stands. */
    BtreeNear near;   /* Where it read or wrote a row last. */
    u8 writer_guess;  /* Index of its id in the leaf that it wrote last. */
    RtU32 interrupted;
    StoreHold *holds;
    ErrMsg error;
    u64 mark_last;     /* The highest mark in use: writes above it may be overwritten in place. */
    Buf redo;          /* What goes to the log, from redo_done on. */
    u64 redo_done;     /* Bytes of the redo stream that have gone ahead. */
    size_t redo_taken; /* So many at the start of `redo` have, too: only while pieces go. */
    Buf scratch;       /* A page, to rebuild leaves in. */
    BeforeArena images;
    CountChanges counts;
    Buf got;        /* What store_get() hands out. */
    Buf got_newest; /* What store_get_newest() hands out. */
    Buf part;       /* A part of a long value, or the row that it belongs to. */

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
} StoreCounters;

/* Page ids: those given back, and the ones that were never used. */
typedef struct StorePages {
    RtLatch latch;
    u32 next; /* First id never used. */
    u32 *free;
    u32 free_count, free_room;
} StorePages;

struct Store {
    RtProcess *process;
    char *path; /* Real path; "" when unnamed. */
    bool in_memory, read_only;
    RtU32 undo_failed;  /* Err: why something could not be undone. */
    RtU32 failed;       /* Nothing is written any more; set by whoever fails, never back. */
    u32 references;     /* Registry mutex. */
    struct Store *next; /* Registry list. */
    struct StoreRoot *root;

    MemAccount account; /* Of everything that belongs to this database. */
    RtEvictor evictor;  /* The pool, once there is one. */

    RtLatch commit_latch; /* Commit order: `last`, the queue's end, log reservation, the token. */
    RtU64 last;           /* Newest commit timestamp; stored under the commit latch. */
    TxnState *queue_oldest, *queue_newest; /* Committed, not settled; commit latch. */
    TxnState *open_newest; /* The open set: who has written and not ended; commit latch. */
    u64 full_lsn;          /* Of the last commit under FULL; commit latch. */
    RtU64 queue_length;
    RtU64 change_number;

    TxnTable states;
    VersionMap versions;
    RtLatch doom_latch; /* Lists of doomed inserts. */

    RtMutex spill_mutex; /* Undo moves between memory and spills; version/spill.h. */
    RtLatch spill_latch; /* The list, and who reads in it. */
    struct Spill *spills;
    u32 spill_serial;  /* Of the newest; spill mutex. */
    RtU32 spill_count; /* Spills that exist. */
    RtU64 spill_moves; /* Moves when something leaves a spill. */
    u64 spill_bytes;   /* Undo of one transaction that may stay in memory. */

    Pool *pool;
    PoolFile *pages_file;
    StorePages pages;
    BtreePages btree_pages;
    u32 page_bytes;
    u32 entry_bytes_max; /* Longer entries have their values in pages of their own. */
    RtU64 long_serial;

    RtLatch txns_latch; /* The live list and the free list. */
    StoreTxn *live_oldest, *live_newest;
    StoreTxn *spare_txns;
    u64 live_count;

    RtLatch wait_latch; /* Wait graph, lock table; with the commit latch: the token. */
    TxnState *token;
    StoreLock *lock_table[STORE_LOCK_BUCKETS];
    RtU64 holds_version; /* Moves with every hold of a key that is added; wait latch. */

    RtMutex settle_mutex;   /* One settler at a time. */
    RtU32 parts;            /* PartsState */
    RtU32 has_doomed_trees; /* Some tree waits for its pages to be freed. */

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
#define STORE_TREE_ID_END ((u32)1 << 24)

typedef struct TreeShelf {
    RtPtr at[STORE_TREE_FAN];
} TreeShelf;

/* The tree of that id, or NULL. */
static ALWAYS_INLINE Tree *
store__tree(const Store *store, TreeId id)
{
    if (UNLIKELY(id >= STORE_TREE_ID_END)) return NULL;
    const TreeShelf *middle = (const TreeShelf *)rt_load_acquire(&store->trees[id >> 16]);
    if (UNLIKELY(middle == NULL)) return NULL;
    const TreeShelf *low = (const TreeShelf *)rt_load_acquire(&middle->at[(id >> 8) & 255]);
    if (UNLIKELY(low == NULL)) return NULL;
    return (Tree *)rt_load_acquire(&low->at[id & 255]);
}
/* Make a tree object under a given id (recovery, creation).  ERR_NOMEM. */
MUST_CHECK Err store__tree_make(Store *store, TreeId id, StoreTreeKind kind, Tree **tree_out);
/* The same by a transaction that is about to note it on its undo list. */
MUST_CHECK Err store__tree_make_running(Store *store, TreeId id, StoreTreeKind kind,
                                        Tree **tree_out);
/* The tree whose root is that page.  ERR_NOMEM, ERR_LIMIT. */
MUST_CHECK Err store__tree_adopt(Store *store, TreeId id, StoreTreeKind kind, u32 root,
                                 Tree **tree_out);
/* The page size that the options ask for. */
u32 store__page_bytes_of(const StoreOptions *options);
/* The store gets its pool and its pages.  ERR_NOMEM. */
MUST_CHECK Err store__pages_open(Store *store, u32 page_bytes, u32 frames, const PoolClient *client,
                                 const BtreePages *pages);
/* Free all pages of a tree that nobody needs any more.  Those that cannot be loaded are lost to
   the file until it is checked.  [parks] */
void store__tree_empty(Store *store, Tree *tree);
/* The counter of a tree is at least `most`, biased. */
void store__number_raise(Tree *tree, u64 most);
/* A key comes into a tree of integers; its leaf is latched. */
static ALWAYS_INLINE void
store__number_note(Tree *tree, u64 key)
{
    if (LIKELY(rt_load(&tree->numbering) == TREE_NUMBERS_UNKNOWN)) return;
    if (rt_load_relaxed(&tree->number) < key) store__number_raise(tree, key);
}
/* Page ids.  ERR_NOMEM, ERR_LIMIT. */
MUST_CHECK Err store__page_take(Store *store, u32 *page_id_out);
void store__page_give(Store *store, u32 page_id);
/* A latched page is nobody's from here on: it goes, and its id is free. */
void store__page_drop(Store *store, PageView *view);
PageOps *store__page_ops(const Store *store);
/* End of what is durable in the log; U64_MAX in memory. */
u64 store__durable(const Store *store);
/* A change cannot be undone, since its page does not come: what is in memory is not to be written
   any more.  The next open has the committed state from the checkpoint and the log. */
void store__end_writing(Store *store, Err err);
/* Why nothing is written any more. */
const char *store__failure_text(const Store *store);
/* Has writing to the file come to its end?  The log or a checkpoint has failed, or undoing. */
static ALWAYS_INLINE bool
store__failed(const Store *store)
{
    return UNLIKELY(rt_load_acquire(&store->failed) != 0);
}

/* Background work that a commit may owe: start a checkpoint when it is time. */
void store__after_commit(Store *store);

/* ---- txn/txn.c ---- */
/* Record an error for store_txn_error() and return it. */
Err txn__fail(StoreTxn *txn, Err err, const char *format, ...) PRINTF_LIKE(3, 4);
/* The transaction's state, made if it is not there.  NULL: out of memory. */
TxnState *txn__state_make(StoreTxn *txn);
static ALWAYS_INLINE TxnState *
txn__state(StoreTxn *txn)
{
    return LIKELY(txn->state != NULL) ? txn->state : txn__state_make(txn);
}
/* Refuse calls of a transaction that cannot go on: doomed, failed log. */
MUST_CHECK Err txn__usable_slow(StoreTxn *txn);
static ALWAYS_INLINE Err
txn__usable(StoreTxn *txn)
{
    bool doomed = txn->state != NULL && rt_load_acquire(&txn->state->doomed) != 0;
    if (LIKELY(!doomed && !store__failed(txn->store))) return OK;
    return txn__usable_slow(txn);
}
/* The same for a write; takes no latch. */
MUST_CHECK Err txn__writable_slow(StoreTxn *txn);
static ALWAYS_INLINE Err
txn__writable(StoreTxn *txn)
{
    bool doomed = txn->state != NULL && rt_load_acquire(&txn->state->doomed) != 0;
    return LIKELY(!doomed && !store__failed(txn->store)) ? OK : txn__writable_slow(txn);
}
/* Leave the live list and enter it with a snapshot of now. */
void txn__take_fresh_snapshot(StoreTxn *txn);
/* The same in two steps: between them it reads nothing. */
void txn__leave_snapshot(StoreTxn *txn);
void txn__enter_snapshot(StoreTxn *txn);

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
/* A transaction other than txn's that holds the key of `tree` so that it must not be written
   (`deletes`: deleted), or NULL.  Wait latch held. */
TxnState *wait__key_holder(StoreTxn *txn, const Tree *tree, Slice key, bool deletes);
/* Keep everybody else from writing the key until this transaction ends, if memory allows. */
void wait__hold_row(StoreTxn *txn, TreeId tree, Slice key);
/* Is `state` still what `id` names, and running?  Wait latch held. */
static inline bool
wait__runs(const TxnState *state, u64 id)
{
    if (rt_load_acquire(&state->id) != id || rt_load_acquire(&state->txn) == NULL) return false;
    return rt_load_acquire(&state->id) == id;
}

/* ---- txn/settle.c ---- */
/* Settle at most about `budget` versions; returns whether more could be done at once. */
bool settle__run(Store *store, u64 budget);
/* The state has ended, and its list is given up by its task: it settles when it can.  Or it was
   aborted: then all its Befores are out of their chains, and it goes at once unless pinned. */
void settle__hand_over(Store *store, TxnState *state);
/* Highest timestamp at or below which everything committed under FULL is durable. */
u64 settle__safe_ts(Store *store);

/* ---- visibility ---- */

static inline void
txn__raise_dep(StoreTxn *txn, u64 lsn)
{
    if (PLANT(101)) return; /* Shows what may still be lost. */
    if (lsn > txn->dep && lsn > store__durable(txn->store)) txn->dep = lsn;
}

/*
 * Does the transaction see what the writer of this id has written?  *lsn_io: raised to what must be
 * durable before it is shown.
 */
static ALWAYS_INLINE bool
txn__sees(const StoreTxn *txn, u64 id, u64 *lsn_io)
{
    TxnSeen seen = txn_table_look(&txn->store->states, id);
    if (seen.state == NULL || seen.state == txn->state) return true;
    /* Running wraps to the highest number, aborted is beyond every snapshot. */
    if (seen.status - 1 >= txn->snapshot) return false;
    *lsn_io = MAX_OF(*lsn_io, seen.lsn);
    return true;
}

static inline u64
wait__row_resource(TreeId tree, Slice key)
{
    return hash_bytes(key.p, key.bytes, tree) | 4u; /* Never one of the small numbers. */
}
#define WAIT_RESOURCE_ALL   ((u64)0)
#define WAIT_RESOURCE_TOKEN ((u64)1)
