/*
 * sort_runs.h -- sorted runs in the temporary file, and merging them (private to exec/).
 *
 * Whoever sorts more than fits writes what it has, sorted, as one run, then the next.  The merge
 * gives all records in order; equal keys leave in the order of the runs, so a stable sort stays
 * stable.  More runs than can be read at once are merged into longer ones first, neighbours with
 * neighbours, every record once a pass.
 */
#pragma once

#include "exec/spill.h"
#include "value/key.h"

/* Order of two key slices; < 0: a before b. */
typedef struct SortRuns SortRuns;
typedef int (*SortRunsOrder)(void *arg, Slice a, Slice b);

typedef struct MergeSource {
    SpillReader reader;
    u64 prefix; /* Of the key, when keys are compared by their bytes. */
    Slice key, row;
} MergeSource;

struct SortRuns {
    SpillRun *run;
    u32 count, capacity;
    SpillWriter writer;
    Buf head;            /* Scratch: a record's key with its length. */
    SortRunsOrder order; /* NULL: memcmp. */
    void *arg;
    MergeSource *source;
    u32 source_capacity;
    u32 *heap; /* Sources by their records, the first on top. */
    u32 heap_count;
    bool fresh; /* The top record has not been given yet. */
};

void exec__runs_init(SortRuns *runs, SortRunsOrder order, void *arg);
/* Forget all records; keeps arrays. */
void exec__runs_drop(Exec *exec, SortRuns *runs);
void exec__runs_free(Exec *exec, SortRuns *runs);

/* A run begins: records that follow come in order. */
MUST_CHECK Err exec__runs_begin(Exec *exec, SortRuns *runs);
MUST_CHECK Err exec__runs_put(Exec *exec, SortRuns *runs, Slice key, Slice row);
/* The run at hand is complete. */
MUST_CHECK Err exec__runs_end(Exec *exec, SortRuns *runs);

/* All runs are complete: get ready to give the records in order.  They are given once. */
MUST_CHECK Err exec__runs_merge(Exec *exec, SortRuns *runs);
/*
 * A merge that is never complete: take the run just written in among those being read.  What has
 * not been given stays in order with it.
 */
MUST_CHECK Err exec__runs_join(Exec *exec, SortRuns *runs);
/* The record that comes next, without passing it; and pass it.  Good until the next call. */
MUST_CHECK Err exec__runs_peek(Exec *exec, SortRuns *runs, Slice *key_out, Slice *row_out,
                               bool *found_out);
static inline void
exec__runs_pass(SortRuns *runs)
{
    runs->fresh = false;
}
/* The next record, good until the next call; *found_out false: the end. */
MUST_CHECK Err exec__runs_next(Exec *exec, SortRuns *runs, Slice *key_out, Slice *row_out,
                               bool *found_out);
