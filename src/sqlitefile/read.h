/*
 * read.h -- read a SQLite database file: schema rows, tables and indexes in key order.
 *
 * A Sqf is one database as it stands at one moment: the file, and over it the committed frames of a
 * write-ahead log or, after a crash, the original pages of a hot rollback journal.  Nothing is ever
 * written; memory is bounded whatever the file's size (one page a tree level, a bit a page, eight
 * bytes a page of the log or journal, and the row at hand).
 *
 * Everything read is checked.  Damage is ERR_CORRUPT with the page in its message, or, in salvage
 * mode, a finding: what hangs below the damaged place is left out and reading goes on.
 *
 * Ownership: slices and cells that are handed out live until the callback returns.
 * Tasks: one at a time.  Every call that reads may park.
 */
#pragma once

#include "sqlitefile/format.h"

struct RtFile;

/* Where bytes come from.  `read` gives up to `count` bytes, fewer only at the end. */
typedef struct SqfSource {
    void *arg;
    Err (*read)(void *arg, u64 offset, void *bytes, size_t count, size_t *got_out, ErrMsg *msg);
    u64 size_bytes;
} SqfSource;

SqfSource sqf_source_memory(const Slice *bytes); /* `bytes` must stay. */

typedef struct SqfOpen {
    const char *name;                 /* For messages; copied. */
    SqfSource database, wal, journal; /* wal, journal: `read` NULL if there is none. */
    bool salvage;
    void (*finding)(void *arg, const char *text); /* In salvage mode; may be NULL. */
    void *finding_arg;
} SqfOpen;

typedef struct SqfInfo {
    u32 page_bytes, usable_bytes, pages;
    SqfEncoding encoding;
    SqfVacuum vacuum;
    u32 read_version, write_version, schema_format, schema_cookie, change_counter;
    u32 free_first, free_pages, library_version, largest_root;
    i32 cache_size, user_version, application_id;
    u32 wal_frames;    /* Committed frames laid over the file. */
    u32 journal_pages; /* Pages put back from a hot journal. */
} SqfInfo;

typedef struct Sqf Sqf;

/* ERR_NOTADB: no such file format; ERR_VERSION; ERR_CORRUPT; ERR_NOMEM; ERR_IO*. */
MUST_CHECK Err sqf_open(const SqfOpen *open, Sqf **sqf_out, ErrMsg *msg);
/* The same for a file on disk with what lies beside it (PATH-wal, PATH-journal). */
MUST_CHECK Err sqf_open_file(const char *path, bool salvage,
                             void (*finding)(void *arg, const char *text), void *finding_arg,
                             Sqf **sqf_out, ErrMsg *msg);
void sqf_close(Sqf *sqf); /* NULL is allowed. */
const SqfInfo *sqf_info(const Sqf *sqf);
/* Has somebody else changed the file or what lies beside it since it was opened?  ERR_BUSY then.
   (Of a source in memory always OK.) */
MUST_CHECK Err sqf_unchanged(Sqf *sqf, ErrMsg *msg);
/* b-tree and overflow pages read so far, for progress. */
u32 sqf_pages_read(const Sqf *sqf);
u64 sqf_findings(const Sqf *sqf);

/* Stops the scan with the error that it returns, which goes through unchanged. */
typedef Err (*SqfEntry)(void *arg, i64 rowid, Slice payload);
/* All rows of the table b-tree at `root`, rowids rising. */
MUST_CHECK Err sqf_scan_table(Sqf *sqf, u32 root, SqfEntry each, void *arg, ErrMsg *msg);
/* All entries of the index b-tree at `root` in key order; `rowid` means nothing. */
MUST_CHECK Err sqf_scan_index(Sqf *sqf, u32 root, SqfEntry each, void *arg, ErrMsg *msg);

/* The page itself, with the log or journal over it; `bytes` holds page_bytes. */
MUST_CHECK Err sqf_read_page(Sqf *sqf, u32 page, u8 *bytes, ErrMsg *msg);
/* Follow the list of free pages; ERR_CORRUPT when it is not what the header says. */
MUST_CHECK Err sqf_check_free(Sqf *sqf, ErrMsg *msg);

/* A row of sqlite_schema. */
typedef struct SqfSchemaRow {
    i64 rowid;
    const char *type, *name, *table, *sql; /* NUL-terminated; `sql` may be NULL. */
    u32 root;                              /* 0: views and triggers. */
} SqfSchemaRow;
/* All of them, in `arena`.  In salvage mode rows that are none are findings. */
MUST_CHECK Err sqf_schema(Sqf *sqf, Arena *arena, SqfSchemaRow **row_out, u32 *count_out,
                          ErrMsg *msg);
