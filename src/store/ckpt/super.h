/*
 * super.h -- the superblock: which checkpoint the data file holds, and which log goes on from it.
 *
 * Two superblocks alternate by sequence number, each written twice, 4096 bytes apart.  The valid
 * one with the highest sequence counts; the other is only meaningful if that one was never
 * complete, which the tags in the page map and the log's generation tell.  docs/FORMAT.md has
 * every byte.
 */
#pragma once

#include "rt/file.h"

#define SUPER_MAGIC        0x0032424454464557ull /* "WEFTDB2\0" */
#define SUPER_VERSION      2u
#define SUPER_COPY_BYTES   4096u
#define SUPER_COPIES_BYTES (4 * (u64)SUPER_COPY_BYTES) /* What the superblocks lie in. */
#define SUPER_CLEAN        1u /* Closed in order: there is no log, and none is needed. */

typedef struct Super {
    u64 magic;
    u32 version;
    u32 flags;
    u64 sequence; /* The higher one counts. */
    u64 store_id;
    u64 epoch;      /* The checkpoint holds the changes of operations up to here. */
    u64 cut_ts;     /* And what was committed up to here, */
    u64 cut_lsn;    /* whose records end at or below here. */
    u64 oldest_lsn; /* The log is needed from here. */
    u64 log_generation;
    u64 directory;   /* Place of the chain that says where the map is; 0: no page. */
    u64 description; /* Place of the chain that the store wrote; 0: none. */
    u32 slots_end;   /* Slots below may be in use. */
    u32 pages_end;   /* Page ids below may be in use. */
    u32 tree_next;   /* First unused tree id. */
    u32 page_bytes;
    u64 checksum;
} Super;
STATIC_ASSERT(sizeof(Super) == 112);

/* Write both copies into their slot; does not sync.  Fills magic, version and checksum. [parks] */
MUST_CHECK Err super_write(RtFile *file, Super *super, ErrMsg *msg);
/*
 * Find the newest.  *found_out false: the file has none that is whole; *ours_out tells whether it
 * has the magic at all.  [parks]  Errors: ERR_VERSION, ERR_IO*.
 */
MUST_CHECK Err super_read(RtFile *file, Super *super_out, bool *found_out, bool *ours_out,
                          ErrMsg *msg);
