/*
 * sort.h -- sort more (key, payload) pairs than memory holds; private to transfer/.
 *
 * Portions are sorted in memory; if there are several they go to a temporary file as runs and are
 * merged.
 */
#pragma once

#include "base/base.h"

typedef struct Sort Sort;

/* `portion_bytes` 0: 64 MB. */
MUST_CHECK Err sort_open(size_t portion_bytes, Sort **sort_out);
void sort_close(Sort *sort); /* NULL is allowed. */
/* Both are copied. */
MUST_CHECK Err sort_add(Sort *sort, Slice key, Slice payload, ErrMsg *msg);
/* All payloads by key (memcmp); those of equal keys in any order.  Once. */
typedef Err (*SortEach)(void *arg, Slice payload);
MUST_CHECK Err sort_drain(Sort *sort, SortEach each, void *arg, ErrMsg *msg);
