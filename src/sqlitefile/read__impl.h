/*
 * read__impl.h -- the open file, as the reader's parts share it; private to sqlitefile/.
 */
#pragma once

#include "rt/file.h"
#include "rt/task.h"
#include "sqlitefile/read.h"

/* No tree of 2^32 pages with two children each is deeper. */
#define SQF_DEPTH_MAX   40u
#define SQF_AHEAD_BYTES ((size_t)256 << 10)

/* A page that lies in the log or the journal. */
typedef struct SqfPlace {
    u32 page, order;
    u64 offset;
} SqfPlace;

typedef struct SqfOverlay {
    SqfPlace *place; /* By page, one each. */
    u32 count, capacity;
    bool is_wal;
} SqfOverlay;

struct Sqf {
    SqfOpen open;
    SqfInfo info;
    char *name;
    SqfOverlay overlay;
    u64 findings;
    u32 pages_read;
    u64 *used;                /* A bit a page: no page may be met twice. */
    u8 *level[SQF_DEPTH_MAX]; /* The pages on the way down to the present leaf. */
    Buf payload;              /* Of the entry at hand, if it has overflow pages. */
    u8 *chain_page;           /* An overflow page. */
    u8 *ahead;                /* Pages [ahead_first, + ahead_pages) of the file. */
    u32 ahead_first, ahead_pages, last_read;
    /* Of a file on disk. */
    RtFile *file, *wal_file, *journal_file;
    RtStat at_open, wal_at_open;
    u8 header_at_open[SQF_HEADER_BYTES];
};

/* overlay.c */
MUST_CHECK Err sqf__wal_open(Sqf *sqf, u32 *pages_out, ErrMsg *msg);
MUST_CHECK Err sqf__journal_open(Sqf *sqf, u32 *pages_out, ErrMsg *msg);
void sqf__overlay_free(SqfOverlay *overlay);
/* Where the page lies in the overlay, or NULL. */
const SqfPlace *sqf__overlay_find(const SqfOverlay *overlay, u32 page);

/* read.c: exactly `count` bytes of a source. */
MUST_CHECK Err sqf__source_read(const SqfSource *source, u64 offset, void *bytes, size_t count,
                                ErrMsg *msg);
/* Damage: an error, or in salvage mode a finding and OK. */
MUST_CHECK Err sqf__damage(Sqf *sqf, ErrMsg *msg, const char *format, ...) PRINTF_LIKE(3, 4);
