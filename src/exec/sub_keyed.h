/*
 * sub_keyed.h -- a correlated subquery run once, its rows kept by key (private to exec/).
 */
#pragma once

#include "exec/program.h"

typedef struct SubKeyed SubKeyed;

MUST_CHECK Err exec__keyed_open(Exec *exec, const PlanSub *plan, SubKeyed **keyed_out);
void exec__keyed_close(SubKeyed *keyed); /* NULL is allowed. */
void exec__keyed_reset(SubKeyed *keyed);

/* To be asked before each run of the subquery as written: *ready_out, the rows are at hand and
   answer in its place. */
MUST_CHECK Err exec__keyed_ready(Exec *exec, SubKeyed *keyed, bool *ready_out);

#define KEYED_NONE U32_MAX

/* The first row whose keys equal the probes; KEYED_NONE: there is none. */
MUST_CHECK Err exec__keyed_find(Exec *exec, SubKeyed *keyed, Arena *arena, u32 *row_out);
/* Result column of that row. */
const Cell *exec__keyed_value(const SubKeyed *keyed, u32 row, u32 column);
/* value IN the rows found: 1, 0 or NULL. */
MUST_CHECK Err exec__keyed_in(Exec *exec, SubKeyed *keyed, const Cell *value, Arena *arena,
                              Cell *out);

/* What the subquery as written gave for an outer row without rows; NULL: not known yet. */
const Cell *exec__keyed_empty(const SubKeyed *keyed);
MUST_CHECK Err exec__keyed_set_empty(Exec *exec, SubKeyed *keyed, const Cell *row);
