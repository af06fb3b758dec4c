/*
 * func_window.c -- names of the window functions that are no aggregates.
 *
 * The window operator computes them from partitions, peers and frames; here stand only their
 * shapes for name resolution.
 */
#include "func/func_private.h"

#define WINDOW(n, argc, which)                                                \
    {                                                                         \
        .name = n, .argc_min = argc, .argc_max = argc, .kind = FUNC_WINDOW,   \
        .kernel = FUNC_WINDOW_##which, .flags = FUNC_INNOCUOUS | FUNC_ORDERED \
    }

static const FuncDef DEFS[] = {
    WINDOW("row_number", 0, ROW_NUMBER),
    WINDOW("rank", 0, RANK),
    WINDOW("dense_rank", 0, DENSE_RANK),
    WINDOW("percent_rank", 0, PERCENT_RANK),
    WINDOW("cume_dist", 0, CUME_DIST),
    WINDOW("ntile", 1, NTILE),
    WINDOW("lag", 1, LAG),
    WINDOW("lag", 2, LAG),
    WINDOW("lag", 3, LAG),
    WINDOW("lead", 1, LEAD),
    WINDOW("lead", 2, LEAD),
    WINDOW("lead", 3, LEAD),
    WINDOW("first_value", 1, FIRST_VALUE),
    WINDOW("last_value", 1, LAST_VALUE),
    WINDOW("nth_value", 2, NTH_VALUE),
};

FUNC_FAMILY(func__window, DEFS);
