/*
 * image.h -- the data file of the resident engine: a head and a whole consistent image.
 *
 * The head (superblock) says where the image ends, at which log position and timestamp it was cut,
 * and which log goes on from there.  Two alternate by sequence number, each stored twice.  An
 * image is written to a new file, which takes the old one's name when it is complete and synced;
 * only heads change in place.  docs/FORMAT.md has every byte.
 */
#pragma once

#include "rt/file.h"
#include "store/store.h"

#define IMAGE_MAGIC       0x0031424454464557ull /* "WEFTDB1\0" */
#define IMAGE_VERSION     1u
#define IMAGE_HEAD_BYTES  4096u /* Distance of the four copies. */
#define IMAGE_DATA_START  (4 * (u64)IMAGE_HEAD_BYTES)
#define IMAGE_BLOCK_BYTES ((u32)128 << 10)
#define IMAGE_BLOCK_MAGIC 0x4b4c4249u /* "IBLK" */

#define IMAGE_CLEAN 1u /* Closed in order: there is no log, and none is needed. */

typedef struct ImageHead {
    u64 magic;
    u32 version;
    u32 flags;
    u64 sequence; /* Of the head; the higher one counts. */
    u64 store_id;
    u64 image_id; /* Seed of the block checksums. */
    u64 image_blocks;
    u64 cut_ts;     /* The image holds what was committed up to here. */
    u64 cut_lsn;    /* Commit records that begin at or after here are not in it. */
    u64 oldest_lsn; /* The log is needed from here. */
    u64 log_generation;
    u64 rows;
    u32 tree_next; /* First unused tree id. */
    u32 page_bytes;
    u64 checksum;
} ImageHead;
STATIC_ASSERT(sizeof(ImageHead) == 104);

typedef struct ImageBlockHead {
    u32 magic;
    u32 bytes; /* Of the payload. */
    u64 block_no;
    u64 checksum; /* Of payload and head before it. */
} ImageBlockHead;
STATIC_ASSERT(sizeof(ImageBlockHead) == 24);

/* Write both copies of the head into its slot; does not sync.  [parks] */
MUST_CHECK Err image_head_write(RtFile *file, ImageHead *head, ErrMsg *msg);
/*
 * Find the newest head.  *found_out false: the file has none of ours (then it is foreign, or too
 * damaged to tell).  [parks]  Errors: ERR_VERSION, ERR_IO*.
 */
MUST_CHECK Err image_head_read(RtFile *file, ImageHead *head_out, bool *found_out, ErrMsg *msg);

/* ---- writing ---- */

typedef struct ImageWriter {
    RtFile *file;
    ErrMsg *msg;
    u64 image_id;
    u64 block_no;
    u64 rows;
    u32 used;
    u8 *block; /* IMAGE_BLOCK_BYTES, head first. */
} ImageWriter;

MUST_CHECK Err image_writer_start(ImageWriter *writer, RtFile *file, u64 image_id, ErrMsg *msg);
MUST_CHECK Err image_writer_tree(ImageWriter *writer, TreeId id, StoreTreeKind kind);
MUST_CHECK Err image_writer_row(ImageWriter *writer, Slice key, Slice value);
/* The end mark and the last block.  The number of blocks is then writer->block_no. */
MUST_CHECK Err image_writer_end(ImageWriter *writer);
void image_writer_free(ImageWriter *writer);

/* ---- reading ---- */

typedef struct ImageSink {
    void *arg;
    Err (*tree)(void *arg, TreeId id, StoreTreeKind kind);
    Err (*row)(void *arg, Slice key, Slice value); /* Of the last tree, keys rising. */
} ImageSink;

/* Read the whole image.  [parks]  ERR_CORRUPT names the block. */
MUST_CHECK Err image_read(RtFile *file, const ImageHead *head, const ImageSink *sink, ErrMsg *msg);
