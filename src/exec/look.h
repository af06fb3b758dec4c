/*
 * look.h -- one row of a table by its whole key, without batches (private to exec/).
 */
#pragma once

#include "exec/scan.h"

typedef struct Look {
    Scan *scan;       /* One that exec__scan_is_single(). */
    const u32 *pick;  /* Which output columns of the scan are wanted; NULL: all, in order. */
    u32 count;        /* How many. */
    Operand key;      /* The rowid is this parameter or register ... */
    bool key_at_once; /* ... if this is set. */
} Look;

/* Whether the scan can be looked up so: values are evaluated and compared without a cursor. */
bool exec__look_fits(const PlanScan *scan);
void exec__look_init(Look *look, Scan *scan);
/*
 * Find the row of the present key values and put its cells into `row` if the scan's filter keeps
 * it.  Cells are valid until the next look-up or the end of the run.  [parks]
 */
MUST_CHECK Err exec__look(Exec *exec, Look *look, Cell *row, bool *found_out);
/* The end of the run: nothing of a transaction stays. */
void exec__look_reset(Exec *exec, Look *look);
