/*
 * wal_segment.h -- segment files: names, heads, creation and listing.
 */
#pragma once

#include "rt/file.h"
#include "store/wal/wal_format.h"

#define WAL_SEGMENT_BYTES_FIRST ((u64)256 << 10)
#define WAL_SEGMENT_BYTES_MAX   ((u64)16 << 20)

typedef struct WalSegment {
    u32 segment_no;
    bool has_head; /* The head below is valid. */
    WalSegmentHead head;
    RtFile *file; /* NULL while only listed. */
    u64 file_bytes;
    struct WalSegment *next; /* Higher number. */
} WalSegment;

/* "NAME-log.0000002a"; mem_free(). */
char *wal__segment_name(const char *name, u32 segment_no);
/* Make a zero-filled, synced file of that number, without a head.  On error none is left. */
MUST_CHECK Err wal__segment_create(RtDir *dir, const char *name, u32 segment_no, u64 file_bytes,
                                   WalSegment **segment_out, ErrMsg *msg);
/* Write both copies of the head and sync. */
MUST_CHECK Err wal__segment_start(WalSegment *segment, const WalSegmentHead *head, ErrMsg *msg);
void wal__segment_free(WalSegment *segment); /* Closes the file; NULL is allowed. */
void wal__segments_free(WalSegment *list);
MUST_CHECK Err wal__segment_unlink(RtDir *dir, const char *name, u32 segment_no, ErrMsg *msg);
/* All segment files of the log by rising number, with their heads where valid, files open for
   reading (for writing too if `writable`). */
MUST_CHECK Err wal__segments_list(RtDir *dir, const char *name, bool writable,
                                  WalSegment **list_out, ErrMsg *msg);

static inline u64
wal__segment_room(const WalSegment *segment)
{
    return segment->file_bytes - WAL_SEGMENT_DATA_START;
}

/* Is this a batch head, intact and in its own place as far as it can tell itself? */
static inline bool
wal__batch_head_ok(const WalBatchHead *head)
{
    return head->magic == WAL_BATCH_MAGIC &&
           head->checksum == checksum64(head, offsetof(WalBatchHead, checksum),
                                        wal_batch_seed(head->generation, head->position));
}
