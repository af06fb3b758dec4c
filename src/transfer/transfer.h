/*
 * transfer.h -- the contents of a SQLite file into a session's database, and back out.
 *
 * Import keeps what SQL can see: schema texts and the order of schema rows, rowids, every value
 * with its type, AUTOINCREMENT counters, statistics, user_version, application_id; indexes are
 * built anew.  Text becomes UTF-8.  Export writes a file that SQLite opens, with the pages,
 * encoding and vacuum mode that an imported file had unless told otherwise.
 */
#pragma once

#include "session/session.h"
#include "sqlitefile/read.h"
#include "sqlitefile/write.h"

/* `done` of `total`, in units of the caller's interest only as a ratio; `what` is being worked on.
 */
typedef void (*TransferProgress)(void *arg, const char *what, u64 done, u64 total);

typedef struct TransferImport {
    bool salvage;      /* Damaged places are left out (the Sqf was opened with salvage too). */
    bool skip_virtual; /* Leave virtual tables out instead of refusing the file. */
    bool keep_virtual; /* Keep their schema rows: whoever opens the database has the modules. */
    TransferProgress progress;                 /* May be NULL. */
    void (*note)(void *arg, const char *text); /* Things left out, findings; may be NULL. */
    void *arg;
} TransferImport;

typedef struct TransferCounts {
    u64 tables, rows, indexes, views, triggers;
    u64 rows_lost; /* Salvage: rows that were found and could not be used. */
    u64 left_out;  /* Objects of the schema. */
} TransferCounts;

/*
 * Fill the empty main database of the session.  After an error it holds a part and is to be thrown
 * away; counts_out says how far it came.  Errors: those of sqf, of the session; ERR_UNSUPPORTED
 * (names what); each with its text in `msg`.  [parks]
 */
MUST_CHECK Err transfer_import(Sqf *sqf, Session *session, const TransferImport *import,
                               TransferCounts *counts_out, ErrMsg *msg);

#define TRANSFER_AS_IMPORTED U32_MAX
typedef struct TransferExport {
    u32 page_bytes; /* 0: as imported, else 4096. */
    u32 encoding;   /* 0: as imported, else UTF-8. */
    u32 vacuum;     /* TRANSFER_AS_IMPORTED, or a SqfVacuum. */
    bool wal;
    TransferProgress progress;
    void *arg;
} TransferExport;

/* Write the main database of the session, as one snapshot sees it.  *bytes_out: size of the file.
   [parks] */
MUST_CHECK Err transfer_export(Session *session, const TransferExport *export,
                               const SqfTarget *target, TransferCounts *counts_out, u64 *bytes_out,
                               ErrMsg *msg);

/* Names of the numbers in which a database remembers what file it was made from. */
#define TRANSFER_PAGE_BYTES "sqlite_page_bytes"
#define TRANSFER_ENCODING   "sqlite_encoding"
#define TRANSFER_VACUUM     "sqlite_vacuum"
