/*
 * aggregate.h -- the aggregates of a GROUP node over many groups (private to exec/).
 *
 * Every group has a block of state bytes, one piece an aggregate.  DISTINCT keeps one set for all
 * groups (the group number is part of the key); ORDER BY inside a call sorts the rows of all
 * groups at once, by group first, and feeds them at the end.
 */
#pragma once

#include "exec/int_set.h"
#include "exec/node.h"
#include "exec/sorted_file.h"
#include "exec/sorter.h"

typedef struct Agg {
    const PlanAgg *plan;
    FuncCall call;
    ExecProgram **arg, *filter, **order;
    u32 state_offset;
    bool plain;     /* A row is one step: no FILTER, DISTINCT, ORDER BY; one argument at most. */
    KeyMaker maker; /* DISTINCT */
    KeySet seen;
    SpillSet spilled; /* Beyond the budget: what was seen before. */
    IntSet ints;      /* What has been seen while all of it was integers from vectors ... */
    bool ints_off;    /* ... then something else came: all is in `seen`. */
    Sorter sorter;    /* ORDER BY */
    Cell *argv;       /* Scratch. */
    Cell *order_cell;
    /* Whole batches (group_batch.c). */
    struct VExpr **varg, *vfilter;
    Vec *arg_vec;
    u16 *sel;
    u16 *fresh;  /* DISTINCT: rows with a new value. */
    i64 *narrow; /* Integers that came as cells. */
} Agg;

typedef struct Aggs {
    Exec *exec;
    u32 count;
    Agg *agg;
    u32 state_bytes; /* Of one group. */
    Arena states;
    u8 **state; /* [groups] */
    u32 groups, capacity;
    bool fed; /* Sorted rows have been fed. */
    bool has_distinct;
} Aggs;

MUST_CHECK Err exec__aggs_open(Exec *exec, Aggs *aggs, const PlanAgg *plan, u32 count);
void exec__aggs_close(Aggs *aggs);
/* Forget all groups. */
void exec__aggs_clear(Aggs *aggs);
/* Start another group; they are numbered from 0. */
MUST_CHECK Err exec__aggs_group(Exec *exec, Aggs *aggs);
/* Feed one input row to all aggregates of a group.  Bytes that live for the row only come from
   `arena`. */
MUST_CHECK Err exec__aggs_row(Exec *exec, Aggs *aggs, u32 group, const Cell *row, Arena *arena);
/* Are all of them count(*)?  Then rows may be fed by their number alone. */
bool exec__aggs_only_count(const Aggs *aggs);
void exec__aggs_count(Aggs *aggs, u32 group, u64 rows);
/* DISTINCT: is agg->argv new to the group?  Notes it. */
MUST_CHECK Err exec__agg_is_new(Exec *exec, Agg *agg, u32 group, bool *new_out);
/* Feed agg->argv, which has passed the filter, to one aggregate without ORDER BY. */
MUST_CHECK Err exec__aggs_feed(Exec *exec, Aggs *aggs, u32 group, u32 agg);
/* The same whatever DISTINCT says. */
MUST_CHECK Err exec__agg_step(Exec *exec, Aggs *aggs, u32 group, u32 agg, const Cell *argv);
/* Between rows: what DISTINCT has seen goes to a file if the budget says so. */
MUST_CHECK Err exec__aggs_spill(Exec *exec, Aggs *aggs);
/* All rows are in: feed what had to be sorted first. */
MUST_CHECK Err exec__aggs_finish(Exec *exec, Aggs *aggs);
/* Result of one aggregate. */
MUST_CHECK Err exec__aggs_value(Exec *exec, Aggs *aggs, u32 group, u32 agg, Arena *arena,
                                Cell *out);
