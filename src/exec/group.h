/*
 * group.h -- the run state of a GROUP node (private to exec/): shared by the operator and its
 * kernels.
 */
#pragma once

#include "exec/aggregate.h"
#include "exec/tuple_map.h"
#include "exec/vexpr.h"

typedef struct Group {
    ExecNode node;
    ExecProgram **key, **bare;
    KeyMaker maker;
    KeySet keys;
    Aggs aggs;
    RowBuf groups;
    u32 *order, *scratch, order_capacity;
    Buf current;     /* Ordered: key bytes of the group at hand. */
    bool complete;   /* All input is in the groups. */
    Err pending;     /* Ordered: raised behind the groups that were whole before it. */
    u32 next;        /* Group to show next, in order. */
    const Batch *in; /* Ordered: the input batch at hand. */
    u32 in_next;
    bool row_kept;        /* The row at hand outlived its batch (after a trip): it comes next. */
    Arena kept;           /* Its bytes. */
    Cell *row, *key_cell; /* Scratch. */
    /* Whole batches (group_batch.c). */
    bool by_batch;
    VExpr **vkey;
    Vec *key_vec;
    TupleMap map;  /* Over the keys in `groups`. */
    u32 *group_of; /* By position in the batch. */
    u32 *hash;     /* The same. */
} Group;

static inline u32
exec__group_keys(const Group *group)
{
    return group->node.plan->u.group.key_count;
}

/* Key of the cells in group->key_cell: find or start its group; the row at hand is in group->row.
 */
MUST_CHECK Err exec__group_find(Exec *exec, Group *group, u32 *number_out, bool *added_out);
MUST_CHECK Err exec__group_start(Exec *exec, Group *group);
/* Take the bare columns from the row at hand. */
MUST_CHECK Err exec__group_bare(Exec *exec, Group *group, u32 number);

/* ---- group_batch.c ---- */

/* Prepare for whole batches, if all expressions allow it (group->by_batch). */
MUST_CHECK Err exec__group_batch_open(Exec *exec, Group *group);
MUST_CHECK Err exec__group_batch(Exec *exec, Group *group, const Batch *in);
