/*
 * map.h -- before-images: what keys held before their newest value, by (tree, key).
 *
 * The newest value of a key stands in its leaf.  A Before is what it replaced, with who replaced it
 * (the creator) and whose the replaced value was (the writer).  The Befores of a key form a chain,
 * newest first; the map leads to its head.  If a key has a head, the head's creator is the writer
 * of the key's slot: that is what a slot with NODE_WRITER_ASK_MAP asks for, and for its sake a
 * head may be a marker, without an image.  No slot: no chain.
 *
 * A chain grows under the leaf's latch and its stripe's latch; the settler takes Befores out under
 * the stripe's latch alone.  Readers walk a chain under the stripe's latch and copy what they want
 * out of it before they let go, so what is taken out may be freed at once.
 *
 * The list of a creator (first, last) belongs to its task while it runs, then to the settler.
 */
#pragma once

#include "store/txn/state.h"

#define VERSION_STRIPES 64u

#define BEFORE_MARKER  1u  /* No image: readers step over it. */
#define BEFORE_LINKED  2u  /* In its chain. */
#define BEFORE_DELETES 4u  /* The creator has left a tombstone in the slot. */
#define BEFORE_OWN     8u  /* The image is a value of the creator itself. */
#define BEFORE_ORPHAN  16u /* A marker that is in no list. */
#define BEFORE_ASKED   64u /* Its slot has NODE_WRITER_ASK_MAP. */
#define BEFORE_UNDONE  32u /* Then, if linked, only a marker for its image's writer. */

struct Before {
    Before *older, *newer; /* In the chain; newer: NULL for its head. */
    Before *next_bucket;   /* Of a head: the next chain in its bucket. */
    Before *next, *prev;   /* In the creator's list. */
    Before *lowest; /* Of an own image: the creator's first of the chain, below its own; or NULL. */
    TxnState *creator; /* In whose list it is. */
    u64 creator_id;    /* Whom a slot that asks is told. */
    u64 hash;
    u64 writer; /* Id of the image's writer; 0: it was settled. */
    u64 ts;     /* When that committed; 0: settled. */
    u64 lsn;    /* What must be durable before the image may be shown; 0: nothing. */
    u64 seq;    /* Its place in the creator's undo list. */
    u64 undone; /* Epoch of the undoing, once UNDONE. */
    TreeId tree;
    u32 value_bytes;
    u32 chunk_at; /* In its chunk; 0: its memory is its own. */
    u16 key_bytes;
    u8 slot_flags; /* NODE_SLOT_TOMBSTONE, NODE_SLOT_LONG of the image. */
    RtU8 flags;    /* BEFORE_*; once linked, changes under the stripe's latch only. */
    u8 bytes[];    /* The key, then the image. */
};

static inline Slice
before_key(const Before *before)
{
    return (Slice){before->bytes, before->key_bytes};
}
static inline Slice
before_image(const Before *before)
{
    return (Slice){before->bytes + before->key_bytes, before->value_bytes};
}
static inline bool
before_is(const Before *before, u32 flag)
{
    return (rt_load_relaxed(&before->flags) & flag) != 0;
}
/* The same while nobody else knows it. */
static inline void
before_mark_new(Before *before, u32 flag)
{
    rt_store_relaxed(&before->flags, (u8)(rt_load_relaxed(&before->flags) | flag));
}
/* Stripe latched: no read-modify-write is needed, readers without the latch see one or the other.
 */
static inline void
before_mark(Before *before, u32 flag)
{
    rt_store_release(&before->flags, (u8)(rt_load_relaxed(&before->flags) | flag));
}
static inline void
before_unmark(Before *before, u32 flag)
{
    rt_store_release(&before->flags, (u8)(rt_load_relaxed(&before->flags) & ~flag));
}

/* Where who is not the creator looks next: what one transaction wrote of a row over and over is one
   step, as nobody else sees what lies between.  Stripe latched. */
static inline Before *
before_below(const Before *before)
{
    return before->lowest != NULL ? before->lowest : before->older;
}

typedef struct VersionStripe {
    RtLatch latch;
    u32 chains, buckets;  /* buckets: a power of two, or 0. */
    RtU64 befores, bytes; /* Linked here; change under the latch. */
    u64 charged;          /* Of those bytes and some to come; under the latch. */
    Before **bucket;
} VersionStripe;

typedef struct VersionMap {
    VersionStripe stripes[VERSION_STRIPES];
    RtU32 started; /* Every stripe has buckets, and no cap of memory has been met since. */
    RtMutex start_mutex;
    MemAccount *account; /* May be NULL. */
} VersionMap;

/* How many Befores stand in chains, and their bytes. */
void version_map_count(const VersionMap *map, u64 *befores_out, u64 *bytes_out);

void version_map_init(VersionMap *map, MemAccount *account);
/* Also frees every Before that is still linked. */
void version_map_free(VersionMap *map);

static inline u64
version_hash(TreeId tree, Slice key)
{
    if (LIKELY(key.bytes == 8)) {
        u64 v = (load_u64(key.p) ^ tree) * 0xd6e8feb86659fd93u;
        v = (v ^ v >> 32) * 0xd6e8feb86659fd93u;
        return v ^ v >> 32;
    }
    return hash_bytes(key.p, key.bytes, tree);
}

/* Take the stripe's latch. */
void version_lock(VersionMap *map, u64 hash);
void version_unlock(VersionMap *map, u64 hash);
/* Make sure that Befores can be linked; no latch held.  ERR_NOMEM, also while the account is full:
   what is linked is counted whatever the caps say, so whoever writes a row asks here first. */
MUST_CHECK Err version_map_start(VersionMap *map);
static ALWAYS_INLINE Err
version_prepare(VersionMap *map)
{
    return LIKELY(rt_load_acquire(&map->started) != 0) ? OK : version_map_start(map);
}
/* Head of the chain, or NULL; stripe latched. */
Before *version_head(const VersionMap *map, u64 hash, TreeId tree, Slice key);
/* Put a Before on top of its key's chain; stripe latched, prepared.  True: the stripe has become
   full, and version_grow() would help. */
bool version_link(VersionMap *map, Before *before);
/* Give the stripe more buckets, if memory allows; no latch held. */
void version_grow(VersionMap *map, u64 hash);
/* Take it out of the chain; stripe latched. */
void version_unlink(VersionMap *map, Before *before);

/* A Before with room for key and image; fields beside key, tree, hash and image are zero.
   NULL: out of memory. */
Before *before_new(TreeId tree, u64 hash, Slice key, Slice image);
void before_free(Before *before);

/*
 * Where a transaction that makes many gets them: a chunk at a time, which goes with the last of
 * its Befores.  Used by the transaction's task; what it gave may be freed by anybody.
 */
typedef struct BeforeChunk BeforeChunk;
typedef struct BeforeArena {
    BeforeChunk *chunk; /* Being filled; NULL: none. */
    u32 singles;        /* Made so far without a chunk. */
} BeforeArena;

/* before_new(), from the arena when it has made a few. */
Before *before_new_in(BeforeArena *arena, TreeId tree, u64 hash, Slice key, Slice image);
/* Nothing more comes: the transaction ends. */
void before_arena_end(BeforeArena *arena);

/* The creator's list. */
void before_append(TxnState *state, Before *before);
void before_remove(TxnState *state, Before *before);
