/*
 * loops.h -- private: the loops of a process, one a core, and their helpers.
 */
#pragma once

#include "rt/process.h"

/* Stop loops, workers and the ring.  Nothing if they never ran. */
void rt__loops_close(RtProcess *process);
