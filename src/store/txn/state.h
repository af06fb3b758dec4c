/*
 * state.h -- what others must know of a transaction that has written or locked something.
 *
 * A TxnState is named by a number (TxnId) that stands in pages and before-images.  Ids are never
 * used again; the memory of a state is: it lies in a table that only grows, so whoever has an id
 * can always look.  When a transaction is settled, or aborted with everything undone, its state
 * takes id 0 and waits for the next one.  So an id that its state does not have (any more) means
 * settled: the value that it stands at is visible to everybody.
 *
 * Who resolves an id that was read from a page believes the answer only if the page has not changed
 * by then: the id of an aborted transaction goes after its writes have been undone.
 */
#pragma once

#include "rt/lock.h"
#include "rt/word.h"
#include "store/store.h"
#include "store/version/undo.h"
#include "store/wal/wal.h"

typedef struct TxnState TxnState;
typedef struct Before Before;

#define TXN_ID_INDEX_BITS 24u
#define TXN_ID_INDEX_MASK (((u64)1 << TXN_ID_INDEX_BITS) - 1)
#define TXN_RUNNING       ((u64)0)
#define TXN_ABORTED       U64_MAX

/* A row of this transaction that a token owner has undone, and that it had inserted: there is no
   before-image to bear the mark. */
typedef struct DoomedInsert {
    struct DoomedInsert *next;
    u64 undone; /* Epoch. */
    TreeId tree;
    u32 key_bytes;
    u8 key[];
} DoomedInsert;

/* A tree that it has created or dropped: found without a walk through its undo. */
typedef struct TreeNote {
    struct TreeNote *older;
    TreeId tree;
    u8 kind; /* UndoKind */
} TreeNote;

struct TxnState {
    RtU64 id;     /* 0: nobody's. */
    RtU64 status; /* TXN_RUNNING, the commit timestamp, or TXN_ABORTED. */
    RtU64 lsn;    /* Of a commit with STORE_SYNC_FULL: the end of its record; else 0. */
    RtU64 refs;   /* Before-images that have this one as their writer. */
    RtU32 doomed; /* A token owner has undone rows of this transaction. */
    RtU32 ended;  /* Its task has let go of it: all below is the settler's. */
    RtU32 named;  /* Slots may name it that no before-image of its own stands for. */
    u32 index;    /* In the table. */
    bool owns_token;
    TreeNote *tree_notes; /* Newest first. */
    bool pruned;          /* The settler has looked for before-images that nobody needs. */
    bool is_open;         /* In the open set. */
    bool is_stuck;        /* Aborted, but not undone: the store has failed, and it stays. */
    UndoLog undo;
    Before *first, *last; /* Before-images that it has made, oldest and newest. */
    u64 befores, before_bytes;
    RtPtr spill;                  /* Undo that has gone to pages (version/spill.h); NULL: none. */
    DoomedInsert *doomed_inserts; /* Guarded by Store.doom_latch. */
    RtU32 pins; /* Checkpoints that need the undo list; changes under the commit latch. */
    TxnState *older, *newer; /* Queue of committed transactions by timestamp; commit latch. */
    TxnState *open_older, *open_newer; /* The open set; commit latch. */
    TxnState *free_next;
    struct StoreTxn *waiters; /* Who waits for the end of this one; guarded by the wait latch. */
    RtPtr txn;                /* The StoreTxn while running; changes under the wait latch. */
    bool chunks_open;         /* Part of the redo stream has gone ahead. */
    WalChunks chunks;
};

#define TXN_TABLE_FIRST  64u /* States of the first shelf; each is twice the one before. */
#define TXN_TABLE_SHELFS 18u

typedef struct TxnTable {
    MemAccount *account; /* Of undo lists; may be NULL. */
    RtPtr shelfs[TXN_TABLE_SHELFS];
    RtLatch latch; /* Guards the rest. */
    TxnState *free_first;
    u32 made; /* States that exist. */
    u32 live; /* Those that have an id. */
    u64 serial;
    RtU64 floor; /* Every id below has been given back: read without the latch. */
} TxnTable;

void txn_table_init(TxnTable *table, MemAccount *account);
void txn_table_free(TxnTable *table);
/* A state with a fresh id, running, not in the open set.  ERR_NOMEM, ERR_LIMIT. */
MUST_CHECK Err txn_table_take(TxnTable *table, struct StoreTxn *txn, TxnState **state_out);
/* The id goes; nobody waits for the state and it is in no list. */
void txn_table_give(TxnTable *table, TxnState *state);

static ALWAYS_INLINE TxnState *
txn_table_at(const TxnTable *table, u32 index)
{
    u32 place = index + TXN_TABLE_FIRST;
    u32 top = 31u - (u32)__builtin_clz(place);
    TxnState *shelf = (TxnState *)rt_load_acquire(&table->shelfs[top - 6]);
    return &shelf[place - (1u << top)];
}

/* What an id means now. */
typedef struct TxnSeen {
    TxnState *state; /* NULL: settled. */
    u64 status;
    u64 lsn;
} TxnSeen;

static ALWAYS_INLINE TxnSeen
txn_table_look(const TxnTable *table, u64 id)
{
    if (LIKELY(id < rt_load_acquire(&table->floor))) return (TxnSeen){0};
    TxnState *state = txn_table_at(table, (u32)(id & TXN_ID_INDEX_MASK));
    TxnSeen seen = {.state = state};
    if (rt_load_acquire(&state->id) != id) return (TxnSeen){0};
    seen.status = rt_load_acquire(&state->status);
    seen.lsn = rt_load_acquire(&state->lsn);
    if (rt_load_acquire(&state->id) != id) return (TxnSeen){0};
    return seen;
}
