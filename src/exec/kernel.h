/*
 * kernel.h -- plain loops over vectors (private to exec/).
 *
 * Truths are bytes: EXEC_FALSE, EXEC_TRUE, EXEC_UNKNOWN, at the position of the row.  A kernel
 * that returns false did nothing useful: the caller does the batch cell by cell.
 */
#pragma once

#include "exec/exec__run.h"

/* a op b for PX_ADD, SUB, MUL, DIV, REM; `data` has room for BATCH_ROWS_MAX numbers. */
bool kernel_arithmetic(u8 op, const Batch *batch, const Vec *a, const Vec *b, void *data, u8 *null,
                       Vec *out);
Cell kernel_arithmetic_cell(u8 op, const Cell *a, const Cell *b);
/* a op b for PX_EQ .. PX_GE, when both sides are numbers. */
bool kernel_compare(u8 op, const Batch *batch, const Vec *a, const Vec *b, u8 *truth);

/* Is the integer among those of the bits, or of the sorted numbers?  `no`: FALSE, or UNKNOWN where
   the list has a NULL. */
void kernel_in_bits(const Batch *batch, const Vec *a, const u64 *bits, i64 first, u64 span, u8 no,
                    u8 *truth);
void
kernel_in_sorted(const Batch *batch, const Vec *a, const i64 *number, u32 count, u8 no, u8 *truth);

/* truth = truth AND more, and so on. */
void kernel_and(const Batch *batch, u8 *truth, const u8 *more);
void kernel_or(const Batch *batch, u8 *truth, const u8 *more);
void kernel_not(const Batch *batch, u8 *truth);
void kernel_null(const Batch *batch, const Vec *a, bool is_null, u8 *truth);
void kernel_truth(const Batch *batch, const Vec *a, u8 *truth);
/* Truths as a vector of 0, 1 and NULL. */
void kernel_truth_values(const Batch *batch, const u8 *truth, i64 *data, u8 *null, Vec *out);
/* How many live rows of a batch without a selection are true. */
u32 kernel_count(const Batch *batch, const u8 *truth);
/* Positions of the live rows that are true; `sel` may be the batch's own.  Returns how many. */
u32 kernel_pick(const Batch *batch, const u8 *truth, u16 *sel);
/* The first place of the greatest or the least of x[0..count), count > 0, no NaN among them. */
u32 kernel_best_int(const i64 *x, u32 count, bool greatest);
u32 kernel_best_real(const f64 *x, u32 count, bool greatest);
