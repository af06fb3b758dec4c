/*
 * func_window.c -- names of the window functions that are no aggregates.
 *
 * The window operator computes them by name from partitions, peers and frames; here stand only
 * their shapes for name resolution.
 */
#include "func/func_private.h"

#define WINDOW(n, argc)                                                     \
    {                                                                       \
        .name = n, .argc_min = argc, .argc_max = argc, .kind = FUNC_WINDOW, \
        .flags = FUNC_INNOCUOUS | FUNC_ORDERED                              \
    }

static const FuncDef DEFS[] = {
    WINDOW("row_number", 0),   WINDOW("rank", 0),       WINDOW("dense_rank", 0),
    WINDOW("percent_rank", 0), WINDOW("cume_dist", 0),  WINDOW("ntile", 1),
    WINDOW("lag", 1),          WINDOW("lag", 2),        WINDOW("lag", 3),
    WINDOW("lead", 1),         WINDOW("lead", 2),       WINDOW("lead", 3),
    WINDOW("first_value", 1),  WINDOW("last_value", 1), WINDOW("nth_value", 2),
};

FUNC_FAMILY(func__window, DEFS);
