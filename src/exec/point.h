/*
 * point.h -- the direct path: one row by its whole key, without batches (private to exec/).
 *
 * A plan that is a scan of one row at most, perhaps under a projection, runs as one function: key,
 * look-up, filter, result columns.  So does a SELECT without FROM.  It gives what the operators
 * would give; a key value that is not of the plain kind goes through them.
 */
#pragma once

#include "exec/scan.h"

typedef enum PointState {
    POINT_NEW,
    POINT_DONE,    /* The one row of this run has been given, or there is none. */
    POINT_DECLINED /* The operators do this run. */
} PointState;

typedef struct ExecPoint {
    Scan *scan; /* NULL: SELECT without FROM. */
    u32 columns;
    ExecProgram **program; /* Per result column; NULL entries: `pass`. */
    u32 *pass;             /* Cell of the scan's row. */
    bool passes;           /* No filter, no programs: result cells come straight from the record. */
    i32 key_param;         /* The rowid is this parameter, counted from 0; negative: it is not. */
    u8 state;              /* PointState */
} ExecPoint;

/* Set exec->point if the plan has the shape. */
MUST_CHECK Err exec__point_open(Exec *exec);
/* The first step of a run; sets the state to done or declined. */
MUST_CHECK Err exec__point_step(Exec *exec, bool *row_out);
/* The end of a run that it has done. */
void exec__point_reset(Exec *exec);
