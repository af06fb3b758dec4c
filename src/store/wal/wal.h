/*
 * wal.h -- the write-ahead log: reserve a place, fill it, make it durable.
 *
 * The log is one byte sequence cut into batches; a position is a byte offset in it, so comparing
 * two positions compares the age of two records.  A batch is what one flush writes; batches lie in
 * segment files beside the data file.  docs/FORMAT.md has every byte.
 *
 * Rules for callers:
 *   1. The reservation latch (the store's commit latch) is taken by wal_reserve() and given back by
 *      the caller.  Between wal_reserve() and wal_take() nothing can fail or park.
 *   2. Every place taken is filled (wal_filled) without parking in between.
 *   3. Acknowledge a FULL commit only after wal_flush(lsn, true) returned OK for its position.
 *   4. After a failed write or sync the log fail-stops: reservations and flushes beyond what is
 *      durable return the error until the store is opened again.  A failed sync is never repeated.
 *
 * A position of a record is always the position of its end.
 */
#pragma once

#include "rt/file.h"
#include "rt/lock.h"
#include "store/wal/wal_format.h"

typedef struct Wal Wal;

/* Longest piece of a redo stream in one record. */
#define WAL_PIECE_BYTES_MAX ((u32)256 << 10)

typedef struct WalPlace {
    u8 *to;    /* In the log's buffer; 8-aligned. */
    u32 bytes; /* Of the whole record. */
    u64 end;   /* Position of its end. */
    struct WalBuffer *buffer;
} WalPlace;

/* A transaction whose chunks are in the log and whose commit is not: keeps the log from there. */
typedef struct WalChunks {
    u64 start;
    struct WalChunks *next;
} WalChunks;

/* Where a log starts that does not exist yet. */
typedef struct WalStart {
    u64 store_id;
    u64 position;            /* First free position. */
    u64 previous_generation; /* That it continues; 0: none. */
    u64 durable;             /* Known durable. */
    u32 segment_no;          /* Number of the first new segment file. */
} WalStart;

/*
 * Make the object.  Nothing is written before wal_begin().  `dir` and `latch` are borrowed, `name`
 * (of the data file in dir) is copied.
 */
MUST_CHECK Err wal_open(RtDir *dir, const char *name, RtLatch *latch, const WalStart *start,
                        Wal **wal_out);
/* Stop and free; does not flush.  NULL is allowed. */
void wal_close(Wal *wal);

/* Has a segment been started since wal_open()? */
bool wal_is_begun(const Wal *wal);
/* Start a fresh generation: first segment written and synced.  [parks]  ERR_IO*, ERR_FULL,
   ERR_NOMEM. */
MUST_CHECK Err wal_begin(Wal *wal, ErrMsg *msg);
u64 wal_generation(const Wal *wal);

/* Secure room for a record and take the latch; on error it is not taken.  [parks]
   Errors: ERR_FULL, ERR_IO*, ERR_NOMEM; none of them leaves anything behind. */
MUST_CHECK Err wal_reserve(Wal *wal, u32 bytes);
/* Take the room; latch held.  `bytes` as reserved. */
void wal_take(Wal *wal, u32 bytes, WalPlace *place_out);
void wal_filled(Wal *wal, const WalPlace *place);
/* Next free position; latch held. */
u64 wal_next(const Wal *wal);

/* Register chunks at the next position; latch held. */
void wal_chunks_begin(Wal *wal, WalChunks *chunks);
void wal_chunks_end(Wal *wal, WalChunks *chunks); /* Latch held. */
/* Oldest position that a recovery needs when everything below `cut` is elsewhere; latch held. */
u64 wal_oldest(const Wal *wal, u64 cut);

/* Return when everything up to `lsn` is handed to the kernel (sync false) or durable. [parks]
   Callers that wait together share one write and one sync. */
MUST_CHECK Err wal_flush(Wal *wal, u64 lsn, bool sync);
u64 wal_durable(const Wal *wal);
bool wal_is_failed(const Wal *wal);
/* A word that becomes 1 before the log is known to have failed; borrowed. */
void wal_watch_failure(Wal *wal, RtU32 *word);
/* Words for an error of the log: what failed first, or the code's text. */
const char *wal_failure_text(const Wal *wal, Err err);

/* Delete the segments that lie wholly below `oldest`.  [parks] */
void wal_recycle(Wal *wal, u64 oldest);
/* Bytes in the log from `position` on. */
u64 wal_bytes_since(const Wal *wal, u64 position);
/* Delete every segment file of the log, also those of earlier lives.  [parks] */
MUST_CHECK Err wal_remove_all(RtDir *dir, const char *name, ErrMsg *msg);

typedef struct WalStats {
    u64 syncs, bytes, groups; /* Flushed records / syncs: mean group size. */
} WalStats;
void wal_stats(const Wal *wal, WalStats *stats_out);
