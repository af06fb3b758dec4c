/*
 * vexpr.h -- expressions over whole batches (private to exec/).
 *
 * A VExpr is made of kernels: plain loops over typed arrays.  What has no kernel is computed by the
 * row interpreter for every row, so any total expression can be a VExpr.  Expressions that may
 * fail or count calls are not: they run row by row in SQLite's order.
 *
 * Results agree with the row interpreter bit for bit; a kernel that cannot do a batch exactly (an
 * overflow, a mixed column) leaves it to cells.
 */
#pragma once

#include "exec/program.h"

typedef struct VExpr VExpr;

/* Can the expression be a VExpr? */
bool exec__vexpr_fits(const PlanExpr *expr);
MUST_CHECK Err exec__vexpr_open(Exec *exec, const PlanExpr *expr, VExpr **vexpr_out);
/*
 * The values at the live rows of `batch`, at the same positions; others are undefined.  The vector
 * belongs to the VExpr until its next evaluation (or to the batch, for a plain column).  New bytes
 * come from `arena`.
 */
MUST_CHECK Err exec__vexpr_eval(Exec *exec, VExpr *vexpr, const Batch *batch, Arena *arena,
                                Vec *out);
/* A filter: the first `want` live rows where it is true.  *taken_out: live rows looked at, up to
   and including the last one selected, or all. */
MUST_CHECK Err exec__vselect(Exec *exec, VExpr *vexpr, const Batch *batch, u32 want, Arena *arena,
                             u16 *sel_out, u32 *count_out, u32 *taken_out);
