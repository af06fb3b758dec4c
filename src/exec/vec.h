/*
 * vec.h -- vectors and batches: what operators hand to each other.
 *
 * A Batch holds up to BATCH_ROWS_MAX rows, column by column.  A column is a Vec: integers, reals,
 * or cells of any type.  Text and blobs travel as cells (a Cell is 16 bytes, as a string reference
 * would be); a column that mixes types is a cell vector in that batch only.
 *
 * Ownership: a batch, its vectors and the bytes its cells point to belong to the operator that
 * made it and live until the next call of that operator.  Nobody else writes to them.
 *
 * Errors belong to rows: `err` is what happens after the last live row.  Rows before it are good;
 * whoever needs the row behind them raises it.  A batch with count == 0 and err == OK is the end.
 */
#pragma once

#include "value/value.h"

#define BATCH_ROWS_MAX  2048u
#define BATCH_BYTES_MAX ((size_t)1 << 20)

typedef enum VecKind {
    VEC_CELL, /* u.cell */
    VEC_INT,  /* u.i, NULLs in `null` */
    VEC_REAL  /* u.r, NULLs in `null` */
} VecKind;

typedef struct Vec {
    u8 kind;       /* VecKind */
    bool constant; /* Element 0 stands for every row. */
    union {
        const Cell *cell;
        const i64 *i;
        const f64 *r;
    } u;
    const u8 *null; /* INT, REAL: 1 where the value is NULL; NULL pointer: no NULLs. */
} Vec;

typedef struct Batch {
    u32 rows;       /* Rows that stand in the vectors. */
    u32 count;      /* Live rows. */
    const u16 *sel; /* Their `count` positions, rising; NULL: the first `count` ones. */
    Err err;        /* What happens after the last live row. */
    bool last;      /* Nothing follows this batch (a hint; false proves nothing). */
    u32 columns;
    Vec *col;
} Batch;

/* Position in the vectors of the nth live row. */
static inline u32
batch_at(const Batch *batch, u32 nth)
{
    return batch->sel != NULL ? batch->sel[nth] : nth;
}

/* The value at position `at`, whatever the vector's kind. */
static inline Cell
vec_cell(const Vec *vec, u32 at)
{
    if (vec->constant) at = 0;
    if (vec->kind == VEC_CELL) return vec->u.cell[at];
    if (vec->null != NULL && vec->null[at]) return cell_null();
    if (vec->kind == VEC_INT) return cell_int(vec->u.i[at]);
    return (Cell){.type = CELL_REAL, .u.r = vec->u.r[at]};
}
