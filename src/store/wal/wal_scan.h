/*
 * wal_scan.h -- reading the log back after a crash.
 */
#pragma once

#include "rt/file.h"
#include "store/wal/wal_format.h"

typedef struct WalScanStart {
    u64 store_id;
    u64 generation; /* The one that the data file names. */
    u64 oldest;     /* Records from here on are wanted. */
    u64 durable;    /* The data file vouches for everything below. */
} WalScanStart;

typedef struct WalScanEnd {
    u64 position;        /* End of the last whole batch. */
    u64 durable;         /* Highest position that the log itself states to be durable. */
    u64 last_generation; /* To be continued. */
    u32 segment_no_next; /* Higher than that of any file. */
    u64 records;
} WalScanEnd;

/* A record, as the scan hands it out. */
typedef struct WalRecord {
    u64 generation;
    u64 start; /* Position. */
    const WalRecordHead *head;
    Slice piece; /* Follows the head. */
    /* Where the piece may be read again while the scan runs. */
    RtFile *file;
    u64 offset;
} WalRecord;

/* Called in the order of the log; all records of one generation come together. */
typedef Err (*WalRecordFn)(void *arg, const WalRecord *record);

/*
 * Read the log beside `name` in `dir`.  With `repair`, everything that is not proven durable is
 * written again, same bytes, and synced: it may lie in the kernel's cache only.  [parks]
 *
 * Errors: ERR_CORRUPT when something that was durable is missing or damaged, naming file and
 * place; those of `each`; ERR_IO*, ERR_NOMEM.
 */
MUST_CHECK Err wal_scan(RtDir *dir, const char *name, const WalScanStart *start, bool repair,
                        WalRecordFn each, void *arg, WalScanEnd *end_out, ErrMsg *msg);

/*
 * For a data file that needs no log: is there a log that goes on from `position`, holding
 * anything?  Then the data file's own account is not the newest.  [parks]
 */
MUST_CHECK Err wal_scan_strays(RtDir *dir, const char *name, u64 store_id, u64 position,
                               bool *found_out, u32 *segment_no_next_out, ErrMsg *msg);
