/*
 * carray.h -- the table-valued functions that the C API adds: carray().
 */
#pragma once

#include "capi/pointer.h"

/* A copy of an array (SQLITE_CARRAY_*) that carray() reads, as a pointer to bind.  NULL: out of
   memory. */
CapiPointer *capi__array_pointer(const void *data, size_t count, int type);
/* SessionHooks.find_table_func */
const TableFunc *capi__find_table_func(void *arg, Slice name);
