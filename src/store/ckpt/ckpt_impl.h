/*
 * ckpt_impl.h -- what the files of ckpt/ share.
 */
#pragma once

#include "rt/lock.h"
#include "store/ckpt/ckpt.h"
#include "store/ckpt/page_map.h"
#include "store/ckpt/space.h"

/* A page as the cut must have it, not yet written. */
typedef struct CopyAside {
    struct CopyAside *next;
    u32 page_id;
    _Alignas(16) u8 bytes[];
} CopyAside;

/* Slots of a chain of pages, for giving them back. */
typedef struct SlotList {
    u32 *slots;
    u32 count, room;
} SlotList;

struct CkptReader {
    Ckpt *ckpt;
    u64 epoch;
    u64 next; /* Place of the page after this one. */
    u32 index;
    u32 at, end;
    u8 *page;
    SlotList *slots; /* NULL: not wanted. */
};

struct Ckpt {
    RtFile *file;
    PoolFile *pool_file;
    u32 page_bytes;
    u64 data_start;
    u64 seed; /* Of checksums: from the store's id. */
    bool is_read_only;
    u64 opened_epoch; /* Pages up to it are of an earlier life. */
    PageOps ops;

    RtLatch latch; /* Guards from here to the next comment. */
    Space space;
    PageMap map;
    u32 pages_end; /* First page id never used. */
    u32 *ids_free; /* Room for all below pages_room. */
    u32 ids_count, ids_room;
    CopyAside *copies;
    u64 copy_total;
    bool trims; /* The file is being cut: no slot is given out. */

    RtMutex run_mutex; /* One checkpoint at a time; the superblock. */
    Super super;
    CkptReader description; /* Of one page, read at the opening; without a page: there is none. */
    SlotList chains;        /* Of the last complete checkpoint: directory and description. */
    RtU64 pages_written, chunks_written;
    u32 copies_max;

    RtU32 copies_open; /* Aside and not written. */
    RtU32 failed;
    RtU32 *failure_word; /* Of who watches; NULL: nobody. */
    RtMutex throttle_mutex;
    RtCond throttle_cond;

    RtU32 unsettled; /* The superblock that was read may not be on the disk. */
    RtMutex settle_mutex;
};

/* What is in front of the bytes of a page of a chain. */
#define CHAIN_MAGIC 0x4e494843u /* "CHIN" */
typedef struct ChainHead {
    u64 checksum;
    u32 magic;
    u32 index; /* In its chain. */
    u64 epoch; /* Of the checkpoint. */
    u64 next;  /* Slot + 1 of the next page; 0: the last. */
    u32 bytes; /* After this head. */
    u32 reserved;
} ChainHead;
STATIC_ASSERT(sizeof(ChainHead) == 40);

#define MAP_MAGIC 0x50414d50u /* "PMAP" */
typedef struct MapHead {
    u64 checksum;
    u32 magic;
    u32 number; /* Of the chunk. */
    u64 epoch;
    u64 reserved;
} MapHead;
STATIC_ASSERT(sizeof(MapHead) == MAP_HEAD_BYTES);

struct CkptStream {
    Ckpt *ckpt;
    u64 epoch;
    u32 index;
    u32 slot;  /* Of the page being filled; SLOT_NONE: none yet. */
    u32 first; /* SLOT_NONE: nothing was put. */
    u32 used;
    u8 *page;
    SlotList *slots;
};

/* ---- file.c ---- */
static inline u64
ckpt__offset(const Ckpt *ckpt, u32 slot)
{
    return ckpt->data_start + (u64)slot * ckpt->page_bytes;
}
/* The checksum that bytes in that slot must have. */
u64 ckpt__checksum(const Ckpt *ckpt, u32 slot, const u8 *page);
/* Read a slot and verify its checksum.  [parks] */
MUST_CHECK Err ckpt__read(Ckpt *ckpt, u32 slot, u8 *page, ErrMsg *msg);
/* Seal the page and write it.  [parks] */
MUST_CHECK Err ckpt__write(Ckpt *ckpt, u32 slot, u8 *page, ErrMsg *msg);
/* A free slot.  [parks]  ERR_NOMEM, ERR_FULL. */
MUST_CHECK Err ckpt__slot_take(Ckpt *ckpt, u32 *slot_out);
void ckpt__slot_give(Ckpt *ckpt, u32 slot);
MUST_CHECK Err ckpt__slot_list_add(SlotList *list, u32 slot);
/* The page's map gets room for page ids below `end`.  Latch not held. */
MUST_CHECK Err ckpt__pages_reserve(Ckpt *ckpt, u32 end);
Err ckpt__fail(Ckpt *ckpt, Err err);

/* ---- chain.c ---- */
MUST_CHECK Err chain_start(CkptStream *stream, Ckpt *ckpt, u64 epoch, SlotList *slots, ErrMsg *msg);
/* Write what is left; *first_out: place for the superblock, 0: nothing was put. */
MUST_CHECK Err chain_finish(CkptStream *stream, u64 *first_out, ErrMsg *msg);
void chain_free(CkptStream *stream);

/* Read a chain from its place on.  [parks] */
MUST_CHECK Err chain_open(CkptReader *reader, Ckpt *ckpt, u64 first, SlotList *slots, ErrMsg *msg);
MUST_CHECK Err chain_get(CkptReader *reader, void *bytes, size_t count, ErrMsg *msg);
/* Read and check what is left of it. */
MUST_CHECK Err chain_skip(CkptReader *reader, ErrMsg *msg);
