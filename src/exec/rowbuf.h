/*
 * rowbuf.h -- rows of cells kept in memory with their bytes (private to exec/).
 *
 * What blocking operators hold: sort inputs, hash build sides, groups, materialised subqueries.
 * Rows are numbered from 0; row pointers move when rows are added.
 */
#pragma once

#include "exec/exec__run.h"

typedef struct RowBuf {
    Arena bytes;
    Cell *cell;
    u32 columns;
    u32 rows, capacity;
    MemAccount *account;
    u64 charged_bytes;
} RowBuf;

void exec__rowbuf_init(Exec *exec, RowBuf *rows, u32 columns);
void exec__rowbuf_free(RowBuf *rows);
void exec__rowbuf_clear(RowBuf *rows); /* Keeps the memory. */
void exec__rowbuf_drop(RowBuf *rows);  /* Does not. */
/* Append a copy of a row; its bytes are copied too. */
MUST_CHECK Err exec__rowbuf_add(RowBuf *rows, const Cell *row);
/* Append a row of NULLs to be filled by exec__rowbuf_set(). */
MUST_CHECK Err exec__rowbuf_add_empty(RowBuf *rows, Cell **row_out);
/* Replace one cell; the old bytes stay behind until the buffer is cleared. */
MUST_CHECK Err exec__rowbuf_set(RowBuf *rows, u32 row, u32 column, const Cell *value);
/* Append the live rows [first, first + count) of a batch. */
MUST_CHECK Err exec__rowbuf_add_batch(RowBuf *rows, const Batch *batch, u32 first, u32 count);
static inline Cell *
exec__rowbuf_row(const RowBuf *rows, u32 row)
{
    return rows->cell + (size_t)row * rows->columns;
}
u64 exec__rowbuf_memory(const RowBuf *rows);
