/*
 * int_set.h -- which integers a group has seen (private to exec/): DISTINCT inside an aggregate.
 *
 * Small numbers of a call without groups stand in a bitmap that grows with the largest of them, as
 * long as it is not mostly empty; the others, and all of a call with groups, in an open hash table.
 */
#pragma once

#include "exec/exec__run.h"

typedef struct IntSet {
    u64 *bits; /* One bit a number below `window`. */
    u64 window;
    u64 bits_set;
    i64 *value; /* Hash table: [mask + 1] */
    u32 *group; /* Group + 1; 0: the slot is free. */
    u32 mask, count;
} IntSet;

/* Zero-initialised is empty. */
void exec__ints_clear(IntSet *set);
void exec__ints_free(IntSet *set);
u64 exec__ints_memory(const IntSet *set);
/* Add a number to a group's; *new_out: it was not there.  Errors: ERR_NOMEM. */
MUST_CHECK Err exec__ints_add(IntSet *set, u32 group, bool grouped, i64 value, bool *new_out);
/* Has a call without groups seen it? */
bool exec__ints_in_table(const IntSet *set, i64 value);
static inline bool
exec__ints_has(const IntSet *set, i64 value)
{
    if ((u64)value < set->window && (set->bits[(u64)value / 64] >> ((u64)value % 64) & 1) != 0)
        return true;
    return set->count > 0 && exec__ints_in_table(set, value);
}
/* All of them, in no order: *at starts at 0; false: there are no more. */
bool exec__ints_next(const IntSet *set, u64 *at, u32 *group_out, i64 *value_out);

/* A quick yes for a call without groups; false proves nothing. */
static inline bool
exec__ints_in_window(const IntSet *set, i64 value)
{
    return (u64)value < set->window && (set->bits[(u64)value / 64] >> ((u64)value % 64) & 1) != 0;
}
