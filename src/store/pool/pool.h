/*
 * pool.h -- pages in memory: one state word per page, frames, replacement.
 *
 * A PoolFile is the set of pages of one store, numbered from 1.  Each page has an entry of 16
 * bytes: the state word, the number of the frame that holds its bytes, and a content version.  The
 * entry is the only truth about a page: there is no hash table and no pointer to a page outside
 * it.  A Pool is the frames that the files of one page size share.
 *
 * Reading is optimistic: pool_view() gives the bytes and the word; the caller reads, tolerating
 * anything, and asks pool_view_end() whether it all happened at one instant.  A page that is
 * evicted, latched or changed meanwhile fails that test.  Frames are never given back to the
 * system while the pool lives, so a late reader reads other bytes, not unmapped memory.  Under the
 * thread sanitizer a view takes a shared latch instead.
 *
 * Writing: pool_latch(), change, pool_unlatch(changed).
 *
 * Rules: no task parks, and none does I/O, while it has a page latched or viewed.  Latches are
 * taken top-down and left to right.
 */
#pragma once

#include "rt/lock.h"
#include "store/store.h"

typedef struct Pool Pool;
typedef struct PoolFile PoolFile;

#define POOL_RANK_PAGE  ((u16)(200 | RT_RANK_MANY))
#define POOL_RANK_SWEEP ((u16)220)

typedef struct PageEntry {
    RtU64 word;
    RtU32 frame;   /* While resident. */
    RtU32 content; /* Moves when a live row may have changed; never back. */
} PageEntry;
STATIC_ASSERT(sizeof(PageEntry) == 16);

/* The state word.  What an optimistic reader compares is PAGE_SEEN. */
#define PAGE_LATCHED     ((u64)1)
#define PAGE_PARKED      ((u64)2) /* Somebody sleeps on the word. */
#define PAGE_STATE       ((u64)12)
#define PAGE_NONE        ((u64)0) /* No page of this number. */
#define PAGE_EVICTED     ((u64)4)
#define PAGE_LOADING     ((u64)8)
#define PAGE_RESIDENT    ((u64)12)
#define PAGE_DIRTY       ((u64)16)
#define PAGE_WRITING     ((u64)32) /* A copy is being written by the evictor. */
#define PAGE_HOT         ((u64)64)
#define PAGE_SHARED_ONE  ((u64)256)
#define PAGE_SHARED      ((u64)255 << 8)
#define PAGE_VERSION_ONE ((u64)1 << 16)
#define PAGE_VERSION     (~(u64)0 << 16)
#define PAGE_SEEN        (PAGE_VERSION | PAGE_LATCHED | PAGE_STATE)

/* What the pool asks of the owner of a file.  All may park; none is called with a latch held. */
typedef struct PoolClient {
    void *arg;
    /* Fill `bytes` with the page as it was last written.  ERR_IO*, ERR_CORRUPT. */
    Err (*load)(void *arg, u32 page_id, u8 *bytes);
    /* Write a copy of a dirty page to a new place; `bytes` may be changed (checksum).  *place_out
       is handed to `placed` or `discarded`. */
    Err (*write)(void *arg, u32 page_id, u8 *bytes, u64 *place_out);
    /* The copy is the page's newest: called with the page latched, must not park. */
    void (*placed)(void *arg, u32 page_id, u64 place);
    /* The page changed meanwhile. */
    void (*discarded)(void *arg, u32 page_id, u64 place);
} PoolClient;

typedef struct PageView {
    PoolFile *file;
    PageEntry *entry;
    u64 word; /* As it was seen. */
    u8 *bytes;
    u32 page_id;
    bool loaded; /* By this visit. */
} PageView;

/* A pool of pages of `page_bytes` (a power of two, 4096 to 65536), at most `frames_max` in memory
   (at least 16). */
MUST_CHECK Err pool_create(u32 page_bytes, u32 frames_max, Pool **pool_out);
/* Charge frames to `account`, each when it gets memory; before the first page.  `gives_way`: its
   pages can be loaded again, so it leaves the last quarter of each cap to others.  Whatever the
   caps say, it gets POOL_FRAMES_MIN frames. */
#define POOL_FRAMES_MIN 16u
void pool_set_account(Pool *pool, MemAccount *account, bool gives_way);
/* Give back memory of free frames and of frames with clean pages that nobody needs at once; returns
   the bytes, at least `bytes` if it has them.  Neither parks nor waits; RtEvictor.give. */
u64 pool_give_back(void *pool, u64 bytes);
/* Charge what data needs and cannot give back: it leaves an eighth of the smallest cap, so that
   statements can still read, delete and end.  ERR_NOMEM. */
MUST_CHECK Err pool_charge_reserving(MemAccount *account, u64 bytes);
void pool_free(Pool *pool); /* No file is open.  NULL is allowed. */
u32 pool_page_bytes(const Pool *pool);

/* A file without pages.  `client` is copied. */
MUST_CHECK Err pool_file_open(Pool *pool, const PoolClient *client, PoolFile **file_out);
/* Drop all its pages, dirty or not; nobody else uses the file.  NULL is allowed. */
void pool_file_close(PoolFile *file);
u32 pool_file_page_bytes(const PoolFile *file);
Pool *pool_of_file(const PoolFile *file);

/*
 * Close a file and its pool, which has no other; nobody else uses either.  A small pool is not
 * freed but returned without pages, charged to nobody: pool_renew() makes it and its file as good
 * as new, or says that it is of another kind.  Pools come back with what their frames last held.
 */
PoolFile *pool_retire(PoolFile *file);
MUST_CHECK bool
pool_renew(PoolFile *spare, u32 page_bytes, u32 frames_max, const PoolClient *client);
/* The file and its pool.  NULL is allowed. */
void pool_spare_free(PoolFile *spare);
/* Say that pages up to page_id may exist on disk (they become EVICTED if they are NONE). */
MUST_CHECK Err pool_file_adopt(PoolFile *file, u32 page_id);

/*
 * Optimistic view of a page, loaded if need be; waits while it is latched.  `scan`: this visit does
 * not count for its heat.  [parks]  Errors: those of load, ERR_NOMEM (no frame can be freed;
 * ERR_FULL: because the disk is full), ERR_NOTFOUND (no such page).
 */
MUST_CHECK Err pool_view(PoolFile *file, u32 page_id, bool scan, PageView *view_out);
/* Has nothing changed so far?  The view goes on. */
bool pool_view_check(const PageView *view);
/* End the view; true: everything read from it was true at one instant. */
bool pool_view_end(PageView *view);
/* Turn the view into an exclusive latch if nothing has changed; else false, and the view is over.
   Does not park. */
MUST_CHECK bool pool_view_latch(PageView *view);

/* Latch a page exclusively, loaded if need be.  [parks]  Errors as pool_view(). */
MUST_CHECK Err pool_latch(PoolFile *file, u32 page_id, PageView *view_out);
/* Latch a page exclusively if it is resident and nobody has it: never parks, for a second page
   while one is latched.  False: not done. */
MUST_CHECK bool pool_try_latch(PoolFile *file, u32 page_id, PageView *view_out);
/* `changed`: the page is dirty now and its version moves.  `content`: a live row may differ. */
void pool_unlatch(PageView *view, bool changed, bool content);
/* A new page of zeros, latched and dirty.  [parks]  ERR_NOMEM, ERR_FULL, ERR_EXISTS. */
MUST_CHECK Err pool_make(PoolFile *file, u32 page_id, PageView *view_out);
/* The latched page ceases to exist; its frame is free. */
void pool_drop(PageView *view);

/* The page was written elsewhere (checkpoint) when its word was `word`: clean, unless it changed.
 */
bool pool_clean(PoolFile *file, u32 page_id, u64 word);
/* Word of a page, for checkpoints and tests. */
u64 pool_word(PoolFile *file, u32 page_id);

/* Make frames free until `frames` are, or nothing more can be evicted.  Background.  [parks] */
void pool_refill(Pool *pool, u32 frames);

typedef struct PoolStats {
    u64 loads, evictions, writes, discards, sweeps, waits;
    u32 frames, frames_free;
    u32 frames_charged; /* That have memory. */
} PoolStats;
void pool_stats(Pool *pool, PoolStats *stats_out);
