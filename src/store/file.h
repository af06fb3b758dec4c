/*
 * file.h -- a store's data file: opening with recovery, checkpoints, the last close.
 */
#pragma once

#include "store/resident/image.h"
#include "store/store_private.h"

typedef struct StoreFile {
    RtDir *dir;
    char *name; /* In dir. */
    char *temp_name;
    RtFile *file;
    RtMutex mutex;      /* One checkpoint, or start of the log, at a time. */
    ImageHead head;     /* The newest that was written. */
    bool has_image;     /* False: the file is empty. */
    bool name_unsynced; /* A new file has the name, perhaps not durably. */
    bool has_log;       /* There is a log that the next open would need. */
    RtU32
        log_ready; /* The log has begun in this life, and the head names it or what it continues. */
    RtU64 cut_lsn; /* head.cut_lsn, for pacing. */
    RtU64 file_bytes;

    /* The helper thread, started when the first checkpoint is due. */
    RtThread *helper;
    RtMutex helper_mutex;
    RtCond helper_cond;
    bool helper_wanted, helper_stops, helper_tried;
} StoreFile;

/*
 * Open the file at `path` (real, absolute) and fill the store, which has no trees yet: image, then
 * log.  On error the store has no file.  [parks]
 */
MUST_CHECK Err file__open(Store *store, const StoreOptions *options, ErrMsg *msg);
/* The last close: one complete file, no log.  Frees; reports only to the log of the program.
   [parks] */
void file__close(Store *store);
/* May commits go to the log? */
bool file__log_is_ready(const Store *store);
/* Before the first commit: there must be a log.  [parks] */
MUST_CHECK Err file__begin_log(Store *store, ErrMsg *msg);
/* Write an image of now.  `closing`: nobody else is there, the log ends.  [parks] */
MUST_CHECK Err file__checkpoint(Store *store, bool closing, ErrMsg *msg);
/* Is a checkpoint due? */
bool file__is_due(const Store *store);
/* Have one made soon, by the helper or here.  [parks] */
void file__checkpoint_soon(Store *store);
