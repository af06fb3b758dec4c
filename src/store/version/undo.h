/*
 * undo.h -- the undo list of a transaction: what it has written, oldest first, in few bytes.
 *
 * An entry is a row that was absent before (its key is all there is to remember), a row that had a
 * value or a tombstone (its Before in the version map), or a tree created or dropped.  Each bears
 * the epoch in which it was written and, once it has been undone, that of the undoing: a checkpoint
 * takes what was written and not undone at its cut.
 *
 * The oldest chunks of a long list go to the transaction's spill (version/spill.h) and come back
 * from there when they are undone; `count` has those too.
 *
 * The owner appends and undoes.  A checkpoint that has the transaction pinned reads the chunks
 * whose epoch is not above its cut, after all operations of those epochs have ended: what the owner
 * writes later goes to other chunks, and what it undoes stays, with its mark.
 */
#pragma once

#include "rt/word.h"
#include "store/store.h"

typedef enum UndoKind {
    UNDO_INSERT, /* The key was absent, or a settled tombstone. */
    UNDO_BEFORE,
    UNDO_TREE_CREATE,
    UNDO_TREE_DROP
} UndoKind;

typedef struct UndoEntry {
    u16 bytes;      /* Of this entry. */
    u16 prev_bytes; /* Of the one before it in the chunk; 0: none. */
    u16 key_bytes;
    u8 kind; /* UndoKind */
    u8 tree_kind;
    RtU32 undone; /* Epoch of the undoing, counted from the chunk's, plus 1; 0: stands. */
    u32 redo;     /* Where its redo begins, from the chunk's base on. */
    TreeId tree;
    u8 key[]; /* INSERT: the key; BEFORE: the pointer. */
} UndoEntry;
STATIC_ASSERT(sizeof(UndoEntry) == 20);

typedef struct UndoChunk {
    struct UndoChunk *older, *newer;
    u64 epoch;            /* Of all writes in it. */
    u64 redo_base;        /* Of the redo offsets in it. */
    u32 used, room, last; /* Bytes; place of the newest entry. */
    u8 bytes[];           /* 8-aligned. */
} UndoChunk;

/* A way through the list, from an entry to older ones. */
typedef struct UndoWalk {
    const UndoChunk *chunk;
    const UndoEntry *entry; /* NULL: the end. */
} UndoWalk;

typedef struct UndoLog {
    RtPtr newest;        /* UndoChunk */
    UndoChunk *oldest;   /* The owner's. */
    UndoChunk *spare;    /* Empty, kept. */
    u64 count;           /* Entries that stand, spilled ones too. */
    u64 bytes;           /* Of the chunks. */
    UndoWalk standing;   /* At the newest of them, if known. */
    MemAccount *account; /* Of the chunks, the spare one too; may be NULL. */
} UndoLog;

/* Have room for an entry with a key of this length.  ERR_NOMEM, also while the account is full. */
MUST_CHECK Err undo_reserve(UndoLog *log, size_t key_bytes);
/* The same for who rolls back: counted, but refused only when there is no memory. */
MUST_CHECK Err undo_reserve_back(UndoLog *log, size_t key_bytes);
/* Append after undo_reserve().  BEFORE: `key` is the pointer's bytes.  If the epoch asks for a
   chunk of its own, the one reserved is used. */
UndoEntry *undo_append(UndoLog *log, UndoKind kind, TreeId tree, Slice key, u64 epoch, u64 redo_at);
/* The newest entry that stands; NULL: none.  *redo_out: where its redo begins. */
UndoEntry *undo_newest(UndoLog *log, u64 *redo_out);
/* The newest standing entry has been undone: forget it, or (`keep`) only mark it. */
void undo_pop(UndoLog *log, bool keep, u64 epoch);

static inline Slice
undo_key(const UndoEntry *entry)
{
    return (Slice){entry->key, entry->key_bytes};
}
static inline struct Before *
undo_before(const UndoEntry *entry)
{
    struct Before *before;
    memcpy(&before, entry->key, sizeof(before));
    return before;
}

/* All entries from the newest to the oldest, also undone ones. */
static inline const UndoEntry *
undo_chunk_last(const UndoChunk *chunk)
{
    return (const UndoEntry *)(const void *)(chunk->bytes + chunk->last);
}
UndoWalk undo_walk(const UndoLog *log);
/* The same for what was written up to an epoch, while the owner goes on: it has left those chunks.
 */
UndoWalk undo_walk_up_to(const UndoLog *log, u64 epoch);
const UndoEntry *undo_walk_next(UndoWalk *walk, const UndoChunk **chunk_out);

/* Take the oldest chunk off the list, which has another one; for undo_chunk_free(). */
UndoChunk *undo_take_oldest(UndoLog *log);
void undo_chunk_free(const UndoLog *log, UndoChunk *chunk); /* NULL is allowed. */
/* Nothing in memory stands any more: forget the marks. */
void undo_clear(UndoLog *log);
void undo_reset(UndoLog *log); /* Empty; keeps a chunk. */
void undo_free(UndoLog *log);
