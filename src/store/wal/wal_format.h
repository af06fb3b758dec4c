/*
 * wal_format.h -- the log on disk.  docs/FORMAT.md explains it; change both together.
 *
 * All numbers little-endian.  Checksums are checksum64() over the struct up to its checksum field,
 * seeded so that a block is only valid in its own place.
 */
#pragma once

#include "base/base.h"

#define WAL_VERSION            1u
#define WAL_SEGMENT_MAGIC      0x31474f4c54464557ull /* "WEFTLOG1" */
#define WAL_BATCH_MAGIC        0x48435442u           /* "BTCH" */
#define WAL_SEGMENT_HEAD_COPY  4096u                 /* Two copies of the head, this far apart. */
#define WAL_SEGMENT_DATA_START 8192u
#define WAL_BATCH_ALIGN        64u
#define WAL_NAME_INFIX         "-log."

typedef struct WalSegmentHead {
    u64 magic;
    u32 version;
    u32 segment_no;
    u64 store_id;
    u64 generation;
    u64 previous_generation; /* That this one continues; 0: none. */
    u64 start;               /* Position of its first batch; all below it was durable. */
    u64 file_bytes;
    u64 checksum;
} WalSegmentHead;
STATIC_ASSERT(sizeof(WalSegmentHead) == 64);

typedef struct WalBatchHead {
    u32 magic;
    u32 payload_bytes; /* Of records; the batch ends at the next multiple of WAL_BATCH_ALIGN. */
    u64 position;      /* Of this head. */
    u64 generation;
    u64 durable; /* Known durable when the batch was written. */
    u64 payload_checksum;
    u64 reserved[2];
    u64 checksum;
} WalBatchHead;
STATIC_ASSERT(sizeof(WalBatchHead) == 64);

#define WAL_RECORD_CHUNK  1u
#define WAL_RECORD_COMMIT 2u

/* Records begin at multiples of 8 in the payload. */
typedef struct WalRecordHead {
    u32 bytes; /* With this head, without padding. */
    u32 type;
    u64 txn_id;
    u64 stream_offset; /* Of the piece in the transaction's redo stream. */
    u64 ts;            /* COMMIT: its timestamp, else 0. */
    u64 stream_bytes;  /* Of the whole stream. */
} WalRecordHead;
STATIC_ASSERT(sizeof(WalRecordHead) == 40);
#define WAL_RECORD_HEAD_BYTES ((u32)sizeof(WalRecordHead))

static inline u64
wal_batch_seed(u64 generation, u64 position)
{
    return hash_u64(position, generation);
}
