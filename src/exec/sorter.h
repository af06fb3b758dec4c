/*
 * sorter.h -- a stable sort of rows by keys, whole or only the first N (private to exec/).
 *
 * Rows come with their key cells.  One or two keys, each of which is an integer in every row or a
 * real in every row, are sorted as numbers by radix.  Other keys become key bytes and are compared
 * by memcmp; with a collation of the host program the key cells are kept and compared one by one.
 * Rows beyond the memory budget leave as sorted runs, which are merged at the end (sort_runs.h).
 */
#pragma once

#include "exec/keyset.h"
#include "exec/number_sort.h"
#include "exec/order.h"
#include "exec/rowbuf.h"
#include "exec/sort_runs.h"

typedef enum SortMode {
    SORT_NUMBERS, /* Every key so far is a number of the kind its column began with. */
    SORT_BYTES,
    SORT_CELLS /* Host collations: compare cells of `keys`. */
} SortMode;

typedef struct Sorter {
    Exec *exec;
    u32 key_count;
    KeyColumn *key; /* How each key column is encoded. */
    u8 mode;        /* SortMode */
    u8 mode_first;  /* With which a run begins. */
    u8 kind[2];     /* SORT_NUMBERS: CellType of each key column, CELL_NULL before the first row. */
    u64 *mapped[2]; /* By row: the keys, mapped so that unsigned order is the order wanted. */
    NumberRoom room; /* SORT_NUMBERS */
    RowBuf rows;     /* The rows themselves. */
    RowBuf keys;     /* SORT_CELLS only. */
    Arena key_bytes; /* Bytes of the items' keys. */
    SortItem *item, *scratch;
    u32 *order, *order_scratch; /* Row numbers; the second for SORT_CELLS. */
    u32 count, capacity;
    u8 grown_mode; /* The mode whose arrays have that capacity. */
    Buf key_buf;
    u64 rows_max; /* Top-N: only the first rows_max are wanted; U64_MAX: all. */
    u32 *place;   /* Counts of a digit, for sorts of items. */
    u16 *near;    /* Top-N: rows of a batch that are not lost at once. */
    bool has_bar; /* Top-N: rows not before item[rows_max - 1] cannot be among them. */
    u32 bar_row;  /* SORT_CELLS: where that row stands. */
    u64 bar[2];   /* SORT_NUMBERS: its keys. */
    RowBuf spare; /* Top-N: what is kept moves here when losers are thrown away. */
    RowBuf spare_keys;
    Arena spare_bytes;
    /* Beyond the budget. */
    SortRuns runs;
    u64 held;           /* As exec__spill_due() knows it. */
    u32 check_at;       /* Look at the budget when so many rows are there, */
    size_t check_bytes; /* or the bytes of rows have grown. */
    bool merging;       /* The rows come from runs. */
    u32 next;           /* exec__sorter_next(): the place of the next row in memory, */
    u64 left;           /* or how many the merge may still give. */
    Cell *merged;       /* The row it gave last. */
    Cell *compared;     /* SORT_CELLS: scratch for two keys. */
    Buf row_buf;
} Sorter;

MUST_CHECK Err exec__sorter_init(Exec *exec, Sorter *sorter, const PlanSortKey *key, u32 key_count,
                                 u32 row_columns);
void exec__sorter_free(Sorter *sorter);
/* Forget the rows, keep the memory.  rows_max: see above. */
void exec__sorter_start(Sorter *sorter, u64 rows_max);
/* Give the memory back; nothing may be in the sorter. */
void exec__sorter_drop(Sorter *sorter);
/* Add a row. */
MUST_CHECK Err exec__sorter_add(Sorter *sorter, const Cell *key, const Cell *row);
/* Add the live rows of a batch, all columns, by their key vectors. */
MUST_CHECK Err exec__sorter_add_batch(Sorter *sorter, const Vec *key, const Batch *batch,
                                      Cell *key_scratch, Cell *row_scratch);
/* Add a row by key bytes that were made already; the sorter has no key columns of its own. */
MUST_CHECK Err exec__sorter_add_bytes(Sorter *sorter, Slice key, const Cell *row);
/* All rows are in: put them in order. */
MUST_CHECK Err exec__sorter_finish(Sorter *sorter);
/* Rows one by one, in order; *row_out NULL at the end.  A row lives until the next call. */
MUST_CHECK Err exec__sorter_next(Sorter *sorter, Slice *key_out, const Cell **row_out);
/* Without runs all rows are in memory and stay there until the next start: */
static inline bool
exec__sorter_merges(const Sorter *sorter)
{
    return sorter->merging;
}
/* The row in place `at`, 0 <= at < sorter->count. */
static inline u32
exec__sorter_row(const Sorter *sorter, u32 at)
{
    return sorter->order[at];
}
