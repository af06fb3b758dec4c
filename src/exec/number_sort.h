/*
 * number_sort.h -- the order of rows by one or two numbers (private to exec/).
 *
 * Keys are mapped so that unsigned order is the order wanted.  The sort is stable.
 */
#pragma once

#include "exec/order.h"

#define NUMBER_KEYS_MAX 2u

/* Memory that sorts share; zero-initialised is empty. */
typedef struct NumberRoom {
    u32 *place; /* Counts of a digit; as large as exec__numbers_sort() wants it. */
    void *item, *scratch;
    size_t bytes; /* Of each. */
} NumberRoom;

void exec__number_room_free(NumberRoom *room);
/* order_out[0..count): row numbers by key[0][row], then key[1][row], then row.  ERR_NOMEM. */
MUST_CHECK Err exec__number_order(NumberRoom *room, u64 *const *key, u32 key_count, u32 count,
                                  u32 *order_out);
