/*
 * row_queue.h -- the queue of a recursion (private to exec/).
 *
 * Rows leave in the order they came, or, with keys, by the keys and then in the order they came.
 * What the memory budget has no room for waits in the temporary file: first in, first out as one
 * run between the rows being taken and those just added; with keys as sorted runs, whose first rows
 * compete with the top of the heap.
 */
#pragma once

#include "exec/rowbuf.h"
#include "exec/sort_runs.h"

typedef struct RowQueue {
    Exec *exec;
    const PlanSortKey *key;
    u32 key_count; /* 0: first in, first out. */
    u64 held;      /* As exec__spill_due() knows it. */
    Buf row_buf, key_buf;
    /* First in, first out: head, then the run, then `rows`. */
    RowBuf rows, head;
    u32 head_next;
    SpillRun run;
    SpillWriter writer;
    SpillReader reader;
    u64 in_run; /* Rows of the run that have not been read. */
    /* By keys: `rows` and beside them `keys`, with the number of each row's arrival. */
    RowBuf keys, spare, spare_keys;
    u32 *heap; /* Places in `rows`. */
    u32 heap_count, heap_capacity;
    u64 arrived;
    SortRuns runs;
    Cell *merged;   /* The row taken from the runs last. */
    Cell *compared; /* Scratch for keys. */
} RowQueue;

MUST_CHECK Err exec__queue_init(Exec *exec, RowQueue *queue, u32 columns, const PlanSortKey *key,
                                u32 key_count);
void exec__queue_clear(RowQueue *queue);
void exec__queue_free(RowQueue *queue);
/* `key`: key_count cells. */
MUST_CHECK Err exec__queue_push(RowQueue *queue, const Cell *row, const Cell *key);
/* The next row, good until the next call of any kind; NULL: the queue is empty. */
MUST_CHECK Err exec__queue_take(RowQueue *queue, const Cell **row_out);
