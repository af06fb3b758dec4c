/*
 * index_info.h -- sqlite3_index_info: the planner's question as the program's xBestIndex sees it.
 */
#pragma once

#include "capi/capi.h"

typedef struct BestIndex {
    sqlite3_index_info info; /* First: the program's pointer is one to this struct. */
    HostIndex *index;
    sqlite3 *db;
    sqlite3_value *value; /* By constraint, for sqlite3_vtab_rhs_value. */
    bool *takes_list;
} BestIndex;

/* False: out of memory; free it all the same. */
bool index_info__fill(BestIndex *best, HostIndex *index, sqlite3 *db);
/* Move what the program answered to the HostIndex; false: out of memory. */
bool index_info__answers(BestIndex *best);
void index_info__free(BestIndex *best);
/* What sqlite3_vtab_in_first left with an argument. */
void index_info__list_end(sqlite3_value *value);
