/*
 * version.h -- one value of one key, and the transaction that wrote it.
 *
 * The versions of a key form a chain, newest first; the tree's slot leads to the newest.  The
 * versions of a transaction form a list in the order of writing: its undo list, which after the
 * commit is the list of what has to be settled.
 *
 * `older`, `writer`, `kind` and `flags` change only under the exclusive lock of the version's
 * tree (or while nobody else can see the version).  `next` and `prev` belong to the running
 * transaction's task, after its end to the settler.  The bytes never change.
 */
#pragma once

#include "rt/word.h"
#include "store/store.h"

typedef struct Version Version;
typedef struct TxnState TxnState;

typedef enum VersionKind {
    VERSION_VALUE,
    VERSION_TOMBSTONE,
    VERSION_LOCK,        /* Undone, but the row stays locked: readers step over it. */
    VERSION_TREE_CREATE, /* In a transaction's list only. */
    VERSION_TREE_DROP
} VersionKind;

#define VERSION_DETACHED   1u /* Out of its chain; waits in its list to be freed. */
#define VERSION_SUPERSEDED 2u /* A newer write of the same transaction stands above. */

struct Version {
    Version *older;
    TxnState *writer; /* NULL: settled. */
    Version *next, *prev;
    TreeId tree;
    u32 value_bytes;
    u16 key_bytes;
    u8 kind;    /* VersionKind */
    u8 flags;   /* VERSION_DETACHED, VERSION_SUPERSEDED */
    u8 bytes[]; /* The key, then the value. */
};

static inline Slice
version_key(const Version *version)
{
    return (Slice){version->bytes, version->key_bytes};
}

static inline Slice
version_value(const Version *version)
{
    return (Slice){version->bytes + version->key_bytes, version->value_bytes};
}

#define TXN_RUNNING ((u64)0)
#define TXN_ABORTED U64_MAX

/*
 * What others must know of a transaction that has written or locked something.  It outlives the
 * StoreTxn until its last version is settled.
 */
struct TxnState {
    RtU64 status; /* TXN_RUNNING, the commit timestamp, or TXN_ABORTED. */
    RtU32 doomed; /* A token owner has undone rows of this transaction. */
    RtU32 ended;  /* Its task has let go of it: the list is the settler's. */
    bool full;    /* Committed with STORE_SYNC_FULL: valid once status is a timestamp. */
    bool pruned;  /* The settler has looked for versions that nobody needs. */
    bool owns_token;
    bool makes_trees;         /* The list may hold creations and drops of trees. */
    u64 lsn;                  /* End of the commit record; like `full`. */
    u64 id;                   /* Unique in the store. */
    Version *first, *last;    /* Oldest and newest write. */
    u64 count;                /* Versions in the list. */
    TxnState *older, *newer;  /* Queue of committed transactions, by timestamp. */
    struct StoreTxn *waiters; /* Who waits for the end of this one; guarded by the wait latch. */
    struct StoreTxn *txn;     /* While running. */
};

/* NULL when memory is short.  The caller fills in tree and links. */
static inline Version *
version_new(VersionKind kind, Slice key, Slice value)
{
    Version *version = (Version *)mem_alloc(offsetof(Version, bytes) + key.bytes + value.bytes);
    if (version == NULL) return NULL;
    version->older = version->next = version->prev = NULL;
    version->writer = NULL;
    version->kind = (u8)kind;
    version->flags = 0;
    version->key_bytes = (u16)key.bytes;
    version->value_bytes = (u32)value.bytes;
    if (key.bytes > 0) memcpy(version->bytes, key.p, key.bytes);
    if (value.bytes > 0) memcpy(version->bytes + key.bytes, value.p, value.bytes);
    return version;
}

/* Memory of one version, for accounts. */
static inline u64
version_cost(const Version *version)
{
    return offsetof(Version, bytes) + 16 + version->key_bytes + (u64)version->value_bytes;
}
