/*
 * point.h -- the direct path: one row by its whole key, without batches (private to exec/).
 *
 * A plan that is a scan of one row at most, perhaps under a projection, runs as one function: key,
 * look-up, filter, result columns.  So does a SELECT without FROM.  It gives what the operators
 * would give; a key value that is not of the plain kind goes through them.
 */
#pragma once

#include "exec/scan.h"

typedef struct ExecPoint {
    Scan *scan; /* NULL: SELECT without FROM. */
    u32 columns;
    ExecProgram **program; /* Per result column; NULL entries: `pass`. */
    u32 *pass;             /* Cell of the scan's row. */
    bool done;             /* The one row of this run has been given, or there is none. */
} ExecPoint;

/* Set exec->point if the plan has the shape. */
MUST_CHECK Err exec__point_open(Exec *exec);
/* The first step of a run; *handled_out false: use the operators. */
MUST_CHECK Err exec__point_step(Exec *exec, bool *row_out, bool *handled_out);
