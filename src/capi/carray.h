/*
 * carray.h -- the table-valued functions that the C API adds: carray().
 */
#pragma once

#include "capi/capi.h"

/* SessionHooks.find_table_func */
const TableFunc *capi__find_table_func(void *arg, Slice name);
