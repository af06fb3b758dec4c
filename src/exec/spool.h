/*
 * spool.h -- rows kept in the order they came and read from front to back (private to exec/).
 *
 * What a materialised input, the targets of a write and RETURNING hold.  Beyond the memory budget
 * the rows so far go to the temporary file, and later ones follow.  Rows are numbered from 0.  All
 * rows are added before the first is read; any number of readers goes over them, each from the
 * front, as often as it likes.
 */
#pragma once

#include "exec/rowbuf.h"
#include "exec/spill.h"

typedef struct RowSpool {
    RowBuf rows; /* The last rows, from number `first` on. */
    u64 first;   /* So many are in the run. */
    SpillRun run;
    SpillWriter writer;
    Buf row_buf;
    u64 held; /* As exec__spill_due() knows it. */
} RowSpool;

/* Zero-initialised stands before the first row of any spool. */
typedef struct SpoolReader {
    u64 next; /* Number of the row to give next; setting it back costs reading from the front. */
    SpillReader in;
    RowBuf page; /* Rows of the run, from number `page_first` on. */
    u64 page_first;
} SpoolReader;

void exec__spool_init(Exec *exec, RowSpool *spool, u32 columns);
/* Forget the rows.  Readers start again. */
void exec__spool_clear(Exec *exec, RowSpool *spool);
void exec__spool_free(Exec *exec, RowSpool *spool);
MUST_CHECK Err exec__spool_add(Exec *exec, RowSpool *spool, const Cell *row);
/* Add the live rows of a batch. */
MUST_CHECK Err exec__spool_add_batch(Exec *exec, RowSpool *spool, const Batch *batch);
static inline u64
exec__spool_count(const RowSpool *spool)
{
    return spool->first + spool->rows.rows;
}

/* Begin at the front. */
static inline void
exec__spool_rewind(SpoolReader *reader)
{
    reader->next = 0;
}
void exec__spool_close(Exec *exec, SpoolReader *reader);
/* At most `want` rows, in node->out. */
void exec__spool_batch(Exec *exec, struct ExecNode *node, RowSpool *spool, SpoolReader *reader,
                       u32 want);
/* The last rows given, so many of them, are given again. */
static inline void
exec__spool_back(SpoolReader *reader, u32 count)
{
    reader->next -= count;
}
/* The next row, good until the next call; NULL at the end. */
MUST_CHECK Err exec__spool_row(Exec *exec, RowSpool *spool, SpoolReader *reader,
                               const Cell **row_out);
