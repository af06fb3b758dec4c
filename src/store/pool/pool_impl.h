/*
 * pool_impl.h -- what the files of pool/ share.
 */
#pragma once

#include "rt/task.h"
#include "store/pool/pool.h"

#define POOL_CHUNK_BYTES ((size_t)2 << 20) /* Of frames: the size of a huge page. */
/* A page number in three parts: shelf, chunk on it, entry in it.  A chunk has 64 KiB. */
#define POOL_ENTRIES_SHIFT 12u
#define POOL_ENTRIES       (1u << POOL_ENTRIES_SHIFT)
#define POOL_SHELF_SHIFT   10u
#define POOL_SHELF         (1u << POOL_SHELF_SHIFT)
#define POOL_FRAME_NONE    U32_MAX

/* Whose page a frame holds; guarded by the sweep latch, except by whoever owns the frame. */
typedef struct Frame {
    PoolFile *file; /* NULL: free, or being filled. */
    u32 page_id;
    u32 next_free;
} Frame;

struct Pool {
    u32 page_bytes, page_shift;
    u32 frames_max;
    RtLatch sweep_latch; /* Hand, free list, frames' owners. */
    u32 frames_made;     /* So many frames have memory. */
    u32 free_first, free_count;
    u32 cold_first, cold_count; /* Free frames without memory, not charged. */
    u32 charged;                /* Frames that are, one page each. */
    MemAccount *account;        /* May be NULL. */
    RtU64 around_bytes;         /* Charged beside the frames: their records, files' directories. */
    bool gives_way;             /* Its pages can be loaded again. */
    u32 hand;
    RtPtr *frames; /* By chunk: an array of Frame. */
    RtPtr *chunks; /* Memory of the frames, never given back. */
    u32 chunk_count;
    RtU64 loads, evictions, writes, discards, sweeps, waits;
    RtU32 disk_full; /* The last page that was to be written out found no room. */
};

struct PoolFile {
    Pool *pool;
    PoolClient client;
    RtMutex grow_mutex;
    u32 sweepers;        /* Tasks that evict a page of this file; sweep latch. */
    bool closing;        /* The hand passes by; sweep latch. */
    RtU32 top;           /* Highest page number that has been asked for an entry. */
    u64 directory_bytes; /* Of shelves and their chunks, in the pool's account. */
    RtPtr shelves[POOL_SHELF];
};

typedef struct PoolShelf {
    RtPtr chunks[POOL_SHELF];
} PoolShelf;

/* The entry of a page, NULL: no entry was made for it. */
static ALWAYS_INLINE PageEntry *
pool__entry_fast(const PoolFile *file, u32 page_id)
{
    u32 chunk_no = page_id >> POOL_ENTRIES_SHIFT;
    const PoolShelf *shelf = (const PoolShelf *)rt_load_acquire(
        &file->shelves[chunk_no >> POOL_SHELF_SHIFT]);
    if (UNLIKELY(shelf == NULL)) return NULL;
    PageEntry *chunk = (PageEntry *)rt_load_acquire(&shelf->chunks[chunk_no & (POOL_SHELF - 1)]);
    return chunk == NULL ? NULL : &chunk[page_id & (POOL_ENTRIES - 1)];
}

static inline u8 *
pool__frame_bytes(const Pool *pool, u32 frame)
{
    u64 offset = (u64)frame << pool->page_shift;
    u8 *chunk = (u8 *)rt_load_relaxed(&pool->chunks[offset / POOL_CHUNK_BYTES]);
    return chunk + offset % POOL_CHUNK_BYTES;
}

static inline Frame *
pool__frame(const Pool *pool, u32 frame)
{
    u32 shift = (u32)__builtin_ctz(POOL_CHUNK_BYTES) - pool->page_shift;
    Frame *frames = (Frame *)rt_load_relaxed(&pool->frames[frame >> shift]);
    return &frames[frame & ((1u << shift) - 1)];
}

/* The entry of a page, NULL: no entry was made for it. */
PageEntry *pool__entry(const PoolFile *file, u32 page_id);
/* The same, made if need be.  ERR_NOMEM, ERR_LIMIT. */
MUST_CHECK Err pool__entry_make(PoolFile *file, u32 page_id, PageEntry **entry_out);

/* A free frame, by eviction if need be.  No latch held.  [parks]  ERR_NOMEM. */
MUST_CHECK Err pool__frame_take(Pool *pool, u32 *frame_out);
void pool__frame_give(Pool *pool, u32 frame);
/* The frame holds this page now: the sweep may find it. */
void pool__frame_own(Pool *pool, u32 frame, PoolFile *file, u32 page_id);

/* What a pool has beside its frames, whatever the caps say. */
void pool__around_add(Pool *pool, u64 bytes);
void pool__around_release(Pool *pool, u64 bytes);

/* All pages of the file go, and their frames are free; nobody else uses it. */
void pool__file_empty(PoolFile *file);
/* All frames are free: they become cold ones, and nothing is charged any more. */
void pool__frames_cold(Pool *pool);

/* Keep the hand away from the file, and wait until who evicts from it has done. */
void pool__file_leave(PoolFile *file);

/* Change bits of a word, and wake who sleeps on it. */
void pool__word_release(PageEntry *entry, u64 clear, u64 set, u64 add);
