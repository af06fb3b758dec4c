/*
 * write.h -- write a SQLite database file from sorted rows and entries.
 *
 * Every tree is built once, from its leaves up, in key order; a page is written when it is full and
 * never touched again, so memory is bounded whatever the size (two pages a tree level; with page
 * maps 5 bytes a page of the file).  Root pages are given out first, so that a schema row may name
 * a root before its tree is written.
 *
 *     sqf_writer_open(&create, &target, trees, &writer, msg);
 *     for each tree: sqf_tree_begin(), sqf_tree_row() or sqf_tree_entry() ..., sqf_tree_end();
 *     the schema likewise: sqf_tree_begin(writer, SQF_TREE_SCHEMA, ...), its rows, end;
 *     sqf_writer_finish();
 *
 * The file is complete and valid only after sqf_writer_finish() returned OK.
 */
#pragma once

#include "sqlitefile/format.h"

/* Where bytes go.  Writes need not be in order; what was never written reads as zeros. */
typedef struct SqfTarget {
    void *arg;
    Err (*write)(void *arg, u64 offset, const void *bytes, size_t count, ErrMsg *msg);
} SqfTarget;

typedef struct SqfCreate {
    u32 page_bytes;       /* 0: 4096. */
    u32 reserved_bytes;   /* At the end of every page, 0 to 255. */
    SqfEncoding encoding; /* 0: UTF-8. */
    SqfVacuum vacuum;
    bool wal; /* The file is to be opened in write-ahead mode. */
    i32 user_version, application_id, cache_size;
    u32 schema_cookie;
} SqfCreate;

typedef struct SqfWriter SqfWriter;

#define SQF_TREE_SCHEMA U32_MAX

/* `trees`: how many besides the schema's.  Errors: ERR_MISUSE (sizes that cannot be), ERR_NOMEM. */
MUST_CHECK Err sqf_writer_open(const SqfCreate *create, const SqfTarget *target, u32 trees,
                               SqfWriter **writer_out, ErrMsg *msg);
void sqf_writer_close(SqfWriter *writer); /* NULL is allowed.  Does not finish. */
/* Root page of tree 0 <= at < trees. */
u32 sqf_writer_root(const SqfWriter *writer, u32 at);
/* Bytes written so far, for progress. */
u64 sqf_writer_bytes(const SqfWriter *writer);

/* One tree at a time, each exactly once. */
MUST_CHECK Err sqf_tree_begin(SqfWriter *writer, u32 at, bool is_index, ErrMsg *msg);
/* `payload` is a record.  Rowids rise (ERR_MISUSE).  Errors: those of the target, ERR_NOMEM,
   ERR_FULL (no page numbers left). */
MUST_CHECK Err sqf_tree_row(SqfWriter *writer, i64 rowid, Slice payload, ErrMsg *msg);
/* Entries come in the order of SQLite's comparison; that is the caller's promise. */
MUST_CHECK Err sqf_tree_entry(SqfWriter *writer, Slice payload, ErrMsg *msg);
MUST_CHECK Err sqf_tree_end(SqfWriter *writer, ErrMsg *msg);

/* Page maps, header; *bytes_out: size of the file. */
MUST_CHECK Err sqf_writer_finish(SqfWriter *writer, u64 *bytes_out, ErrMsg *msg);
