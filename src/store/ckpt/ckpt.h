/*
 * ckpt.h -- the data file: pages in slots, and checkpoints that never overwrite what is live.
 *
 * The file holds one complete checkpoint at any time.  Pages have ids; a map leads from ids to
 * slots.  Evictions and checkpoints write pages to free slots only.  A checkpoint cuts at one
 * instant (store-protocols, section 4): what operations of epochs up to the cut have done is in
 * it, raw, whether committed or not; the store adds, as its description, what it takes to undo the
 * transactions that were open at the cut.
 *
 * Steps, in this order because each needs the former: the client cuts under its commit latch;
 * operations of the old epoch drain; the client describes; copies that were put aside and pages
 * still dirty from before the cut go to free slots; then the changed chunks of the map, then the
 * directory that names them; sync; the log is durable up to the cut; superblock, sync; only then
 * are slots and log given back that the former checkpoint needed.
 *
 * Errors: a full disk or short memory abandons the checkpoint and loses nothing.  A failed sync,
 * or a failed write of the superblock, ends all writing to the file (ckpt_has_failed()): what is
 * on disk is not known any more, a new start recovers.
 *
 * Damage: every page has a checksum seeded with its slot and the store's id, and its map entry has
 * a part of it; what does not fit is ERR_CORRUPT, never served.
 *
 * Ownership: the Ckpt borrows the file.  Tasks: any number; one checkpoint at a time.
 */
#pragma once

#include "store/ckpt/page_op.h"
#include "store/ckpt/super.h"
#include "store/tree/btree.h"

#define CKPT_RANK_MAP ((u16)(210 | RT_RANK_MANY)) /* Above the pages, which are many. */

typedef struct Ckpt Ckpt;
typedef struct CkptStream CkptStream;

/* What belongs to the instant of the cut. */
typedef struct CkptCut {
    u64 ts, lsn, oldest_lsn, log_generation;
    u32 tree_next;
} CkptCut;

typedef struct CkptClient {
    void *arg;
    /* With its commit latch held: ckpt_cut_here(), fill in the cut, pin what is open. [parks] */
    Err (*cut)(void *arg, CkptCut *cut_out, ErrMsg *msg);
    /* Write what recovery needs besides the pages, by ckpt_stream_put().  Old operations have
       ended.  [parks] */
    Err (*describe)(void *arg, CkptStream *stream, ErrMsg *msg);
    /* See that the log is durable up to there.  [parks] */
    Err (*log_durable)(void *arg, u64 lsn, ErrMsg *msg);
    /* It is over, complete or not.  Called if `cut` was, whatever it returned. */
    void (*ended)(void *arg, bool is_complete);
} CkptClient;

/* An empty file gets its form; nothing is written yet.  `frames`: of the pool, for bounds. */
MUST_CHECK Err ckpt_create(RtFile *file, u32 page_bytes, u64 store_id, u32 frames, Ckpt **ckpt_out,
                           ErrMsg *msg);
/* Read the map of the checkpoint that `super` describes.  [parks]  ERR_CORRUPT names the place. */
MUST_CHECK Err ckpt_open(RtFile *file, const Super *super, u32 frames, Ckpt **ckpt_out,
                         ErrMsg *msg);
/* The pool's file must be closed before.  NULL is allowed. */
void ckpt_free(Ckpt *ckpt);

/* For pool_file_open(); then attach the result, which makes the pages known to it. */
PoolClient ckpt_pool_client(Ckpt *ckpt);
MUST_CHECK Err ckpt_attach(Ckpt *ckpt, PoolFile *pool_file);
/* Where trees get their pages. */
BtreePages ckpt_pages(Ckpt *ckpt);
PageOps *ckpt_ops(Ckpt *ckpt);
/* Nothing is written to the file: dirty pages stay in memory. */
void ckpt_set_read_only(Ckpt *ckpt);
/* The newest superblock that was written, or read. */
const Super *ckpt_super(const Ckpt *ckpt);
/* The data file is in doubt: nothing may be written any more. */
bool ckpt_has_failed(const Ckpt *ckpt);
/* A word that becomes 1 with that; borrowed.  Nothing has failed yet. */
void ckpt_watch_failure(Ckpt *ckpt, RtU32 *word);

/* Take the cut; only in CkptClient.cut.  Returns its epoch. */
u64 ckpt_cut_here(Ckpt *ckpt);
/* Make a checkpoint.  `flags`: SUPER_CLEAN: the last one, nobody else is there.  [parks]
   ERR_FULL, ERR_NOMEM, ERR_IO*: the former checkpoint stands. */
MUST_CHECK Err ckpt_run(Ckpt *ckpt, const CkptClient *client, u32 flags, ErrMsg *msg);
/* Write a superblock with other log positions or flags for the same checkpoint, and sync.  Nobody
   makes a checkpoint meanwhile.  [parks] */
MUST_CHECK Err ckpt_write_super(Ckpt *ckpt, const Super *super, ErrMsg *msg);
/*
 * The superblock that was read may lie in the kernel's cache only, after a sync that failed: write
 * it again and sync, once.  Whatever changes the file does so first, because the older superblock
 * names slots that are written or cut off now; who only reads never does.  [parks]
 */
MUST_CHECK Err ckpt_settle(Ckpt *ckpt, ErrMsg *msg);
/* Give the end of the file back if nothing is there.  [parks] */
void ckpt_trim(Ckpt *ckpt);

/* ---- looking at a file that is perhaps damaged, page by page; look.c ---- */

/* Nothing is read yet.  To be freed by ckpt_free(); only the calls here may follow. */
MUST_CHECK Err ckpt_look_open(RtFile *file, const Super *super, Ckpt **ckpt_out, ErrMsg *msg);
/* The slot of a page.  *found_out false: the checkpoint has no such page.  [parks] */
MUST_CHECK Err ckpt_look_find(Ckpt *ckpt, u32 page_id, bool *found_out, u32 *slot_out, ErrMsg *msg);
typedef enum CkptSlotKind { CKPT_SLOT_NODE, CKPT_SLOT_CHAIN, CKPT_SLOT_MAP } CkptSlotKind;
typedef struct CkptSlotLook {
    CkptSlotKind kind; /* As the bytes say; meaningless unless `fits`. */
    bool fits;         /* The checksum is that of these bytes in this slot. */
    u64 epoch;         /* Chains and parts of the map: of their checkpoint. */
    u32 number;        /* Which page of its chain, or part of the map, it is. */
    u64 next;          /* Chains: slot + 1 of the next page, 0 none. */
    u32 used;          /* Chains: bytes in it.  Parts of the map: pages that it names. */
} CkptSlotLook;
/* The bytes of a slot, whatever they are.  ERR_CORRUPT: the file ends before.  [parks] */
MUST_CHECK Err ckpt_look_slot(Ckpt *ckpt, u32 slot, u8 *page, CkptSlotLook *look_out, ErrMsg *msg);

/* ---- a copy of the newest complete checkpoint ---- */

typedef struct CkptCopy CkptCopy;
/* Pin the checkpoint: its slots stay as they are until ckpt_copy_close().  [parks] */
MUST_CHECK Err ckpt_copy_open(Ckpt *ckpt, CkptCopy **copy_out, ErrMsg *msg);
/* Copy up to `pages` slots into `to`, each verified; those that it needs only, each at its own
   place.  *more_out false: all but the superblock is there.  [parks]  ERR_CORRUPT names the place.
 */
MUST_CHECK Err ckpt_copy_step(CkptCopy *copy, RtFile *to, u32 pages, bool *more_out, ErrMsg *msg);
/* The superblock with which the copy is a whole file without a log. */
Super ckpt_copy_super(const CkptCopy *copy);
/* Slots copied, and how many there are at most. */
void ckpt_copy_progress(const CkptCopy *copy, u64 *done_out, u64 *most_out);
void ckpt_copy_close(CkptCopy *copy); /* NULL is allowed. */

/* ---- the description ---- */

MUST_CHECK Err ckpt_stream_put(CkptStream *stream, const void *bytes, size_t count, ErrMsg *msg);
/* Read the description of the checkpoint that was opened, from its start, in pieces of any size.
   [parks] */
typedef struct CkptReader CkptReader;
MUST_CHECK Err ckpt_reader_open(Ckpt *ckpt, CkptReader **reader_out, ErrMsg *msg);
/* ERR_CORRUPT when the description ends before `count` bytes. */
MUST_CHECK Err ckpt_reader_get(CkptReader *reader, void *bytes, size_t count, ErrMsg *msg);
bool ckpt_reader_is_at_end(CkptReader *reader);
void ckpt_reader_close(CkptReader *reader);

typedef struct CkptStats {
    u32 slots_end, slots_taken;
    u64 copies_aside, pages_written, chunks_written;
} CkptStats;
void ckpt_stats(Ckpt *ckpt, CkptStats *stats_out);
