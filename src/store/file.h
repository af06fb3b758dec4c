/*
 * file.h -- a store's data file: opening with recovery, checkpoints, the last close.
 */
#pragma once

#include "store/ckpt/ckpt.h"
#include "store/store_private.h"
#include "store/txn/open_set.h"

typedef struct StoreFile {
    RtDir *dir;
    char *name; /* In dir. */
    RtFile *file;
    Ckpt *ckpt;
    RtMutex mutex;      /* One checkpoint, or start of the log, at a time. */
    bool name_unsynced; /* The file was made in this life, its name is perhaps not durable. */
    bool has_log;       /* There is a log that the next open would need. */
    bool is_open;       /* Opening it has succeeded. */
    bool is_new;        /* Nothing was ever written to it. */
    RtU32 log_ready;    /* The log has begun in this life, and the superblock names it or what it
                           continues. */
    RtU64 cut_lsn;      /* Of the newest superblock, for pacing. */
    RtU64 file_bytes;

    /* Of the checkpoint that runs. */
    OpenSet pinned;
    u64 pinned_room;
    u64 cut_epoch, cut_ts;
    bool holds_settler;

    /* The helper thread, started when the first checkpoint is due. */
    RtThread *helper;
    RtMutex helper_mutex;
    RtCond helper_cond;
    bool helper_wanted, helper_stops, helper_tried;
} StoreFile;

/*
 * Open the file at `path` (real, absolute) and fill the store, which has no trees yet: the
 * checkpoint, then the log.  On error the store has no file.  [parks]
 */
MUST_CHECK Err file__open(Store *store, const StoreOptions *options, ErrMsg *msg);
/* Stop the helper, and make one complete file without a log.  Reports only to the log of the
   program.  Nothing is freed.  [parks] */
void file__finish(Store *store);
/* Free; the pool's file is closed.  */
void file__close(Store *store);
/* May commits go to the log? */
bool file__log_is_ready(const Store *store);
/* Before the first commit: there must be a log.  [parks] */
MUST_CHECK Err file__begin_log(Store *store, ErrMsg *msg);
/* Make a checkpoint now.  `closing`: nobody else is there, the log ends.  [parks] */
MUST_CHECK Err file__checkpoint(Store *store, bool closing, ErrMsg *msg);
/* Is a checkpoint due? */
bool file__is_due(const Store *store);
/* Have one made soon, by the helper or here.  [parks] */
void file__checkpoint_soon(Store *store);

/* ---- checkpoint.c ---- */
/* What a checkpoint asks of the store. */
CkptClient checkpoint__client(Store *store);
