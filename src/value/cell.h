/*
 * cell.h -- what the files of value/ share about cells.
 */
#pragma once

#include "value/value.h"

/* True if r is an integer of at most 51 bits (-0.0 counts as 0). */
bool value__real_is_small_int(f64 r, i64 *out);
/* See cell.c. */
bool value__text_to_number(Cell *cell, bool integers);
/* A REAL cell with an integral value strictly inside int64 becomes INT. */
void value__real_to_int(Cell *cell);
