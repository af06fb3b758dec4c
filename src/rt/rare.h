/*
 * rare.h -- switches that make rare paths common in the simulator.
 *
 *     if (free_slots == 0 || rt_rare("pool: no slot")) ...
 *
 * Each seed switches about a quarter of the names on; such a switch then says true at about one
 * pass in eight, until the world heals.  It is a decision of the run as any fault: recorded,
 * replayed and shrunk.  Always false outside the simulator and in release builds.  A switch may
 * only take a path that could have been taken anyway.
 */
#pragma once

#include "base/base.h"

#ifdef WEFT_CHECK
extern bool rt__sim_running; /* See word.h. */
extern bool (*rt__sim_rare)(const char *name);
static inline bool
rt_rare(const char *name)
{
    return UNLIKELY(rt__sim_running) && rt__sim_rare(name);
}
#else
#define rt_rare(name) false
#endif
