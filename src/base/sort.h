/*
 * sort.h -- sort an array in place.
 */
#pragma once

#include "base/types.h"

/* < 0, 0 or > 0, as memcmp.  Must be a total order. */
typedef int (*SortCompare)(const void *a, const void *b);

/*
 * Sort `count` items of `item_bytes` each.  Not stable.  Allocates nothing (the C library's qsort()
 * does, unseen by our accounts), and needs O(count log count) comparisons whatever the input.
 */
void sort_items(void *items, size_t count, size_t item_bytes, SortCompare compare);
