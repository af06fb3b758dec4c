/*
 * spill.h -- what does not fit into the memory budget of a statement goes to a temporary file
 * (private to exec/).
 *
 * A statement has one nameless file, made when the first block is written and dropped when the run
 * ends.  It is cut into units; a block is one unit, or several for a record that is longer.  Every
 * block carries a checksum seeded with its place, so a block that comes back damaged, or from
 * elsewhere, is an error and never a wrong row.
 *
 * A SpillRun is a sequence of records, written once from front to back and read from any block on,
 * as often as wanted, also while it grows.
 *
 * The budget is one number for the statement.  Whoever holds rows reports how many bytes
 * (exec__spill_due) and is told to write them out when all holders together are over the budget and
 * it has itself more than its share, so that a statement of many sorts stays within the budget and
 * a statement of one sort may use all of it.
 *
 * Errors: those of rt/file.h; ERR_IO_READ for a damaged block; ERR_NOMEM.  exec__fail(exec, err,
 * NULL) finds the text.  Everything that reads or writes blocks [parks].
 */
#pragma once

#include "exec/exec__run.h"

typedef struct SpillRun {
    struct SpillBlock *block;
    u32 blocks, capacity;
    u64 records;
} SpillRun;

/* Writes a run; at most one at a time writes to it. */
typedef struct SpillWriter {
    SpillRun *run;
    Buf buf; /* The block at hand, with its header. */
    u32 records;
} SpillWriter;

/* A place in a run. */
typedef struct SpillReader {
    SpillRun *run;
    bool consumes; /* Blocks that were read are given back. */
    u32 next;      /* Block to read next. */
    Buf buf;       /* The block at hand. */
    u32 left;      /* Records of it not yet given. */
    size_t at;
} SpillReader;

/* ---- the budget ---- */

/* One more holder of rows shares the budget. */
void exec__spill_enlist(Exec *exec);
/* The holder has `now` bytes, *held as of the last call.  True: write them out. */
static inline bool
exec__spill_due(Exec *exec, u64 *held, u64 now)
{
    Spill *spill = &exec->spill;
    spill->held_bytes += now - *held;
    *held = now;
    return spill->held_bytes > spill->budget_bytes && now > spill->share_bytes;
}
/* It has let go of all. */
static inline void
exec__spill_forget(Exec *exec, u64 *held)
{
    exec->spill.held_bytes -= *held;
    *held = 0;
}
/* Runs to merge at once, blocks to keep at hand: what the budget has room for. */
u32 exec__spill_ways(const Exec *exec);

/* ---- life ---- */

/* Before the first run, and when the environment's budget has changed: take it over. */
void exec__spill_start(Exec *exec);
/* The run is over and all SpillRuns have been dropped: drop the file. */
void exec__spill_end(Exec *exec);
void exec__spill_close(Exec *exec);

/* ---- runs ---- */

/* Give the blocks back; the run is empty afterwards. */
void exec__run_drop(Exec *exec, SpillRun *run);
void exec__run_free(Exec *exec, SpillRun *run); /* And the memory. */

/* Add a record made of two pieces. */
MUST_CHECK Err exec__run_add(Exec *exec, SpillWriter *writer, Slice head, Slice tail);
/* Write what is left; the writer may go on afterwards with a new block. */
MUST_CHECK Err exec__run_flush(Exec *exec, SpillWriter *writer);
void exec__writer_free(Exec *exec, SpillWriter *writer); /* NULL run is allowed. */

/* Begin at block `first`. */
void exec__reader_start(SpillReader *reader, SpillRun *run, u32 first);
/* The next record, good until the next call; *found_out false: the end of what was flushed. */
MUST_CHECK Err exec__reader_next(Exec *exec, SpillReader *reader, Slice *record_out,
                                 bool *found_out);
/* Begin again with the block at hand; and give a record, the last one given, once more. */
void exec__reader_again(SpillReader *reader);
void exec__reader_back(SpillReader *reader, Slice record);
void exec__reader_free(Exec *exec, SpillReader *reader);

/* ---- rows as bytes ---- */

/* Append the cells. */
MUST_CHECK Err exec__cells_encode(Buf *buf, const Cell *cell, u32 count);
/* Read `count` cells back; text and blobs stay in the bytes.  The bytes behind them. */
Slice exec__cells_decode(Slice bytes, Cell *cell, u32 count);
