/*
 * group.h -- the run state of a GROUP node (private to exec/): shared by the operator and its
 * kernels.
 */
#pragma once

#include "exec/aggregate.h"
#include "exec/tuple_map.h"
#include "exec/vexpr.h"

#define FEW_GROUPS 256u /* So many are summed up batch by batch. */

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
    TupleMap map;   /* Over the keys in `groups`. */
    u32 *group_of;  /* By position in the batch. */
    i64 *part;      /* By group, of FEW_GROUPS: its part of a batch's sum, */
    u32 *part_rows; /* and of its rows. */
    u32 *hash;      /* The same. */
    u16 *sel;       /* Rows whose group is at hand. */
    /* Beyond the budget (group_spill.c). */
    u64 held;       /* As exec__spill_due() knows it. */
    bool full;      /* No group may be added. */
    bool late_open; /* What follows has been made. */
    Sorter late;    /* Rows of other groups, their keys behind them. */
    Cell *late_row, *result;
    bool merging;
    RowBuf done; /* The groups that were in memory: their output rows, in order. */
    u32 done_next;
    Err done_err; /* The last of them stands for this error, */
    ErrMsg done_msg;
    RowBuf ahead;    /* The first row of the sorted group after the one at hand. */
    bool late_ready; /* A sorted group is at hand, whole. */
    bool late_ended;
    RowBuf page; /* Output rows read last, and what comes behind them. */
    u32 page_next;
    Err late_err;
} Group;

static inline u32
exec__group_keys(const Group *group)
{
    return group->node.plan->u.group.key_count;
}

/* Key of the cells in group->key_cell: find or start its group; the row at hand is in group->row.
 *number_out TUPLE_NONE: no group is started any more, the row has been put off. */
MUST_CHECK Err exec__group_find(Exec *exec, Group *group, u32 *number_out, bool *added_out);
MUST_CHECK Err exec__group_start(Exec *exec, Group *group);
/* Take the bare columns from the row at hand. */
MUST_CHECK Err exec__group_bare(Exec *exec, Group *group, u32 number);

/* Feed the row at hand to group `number`. */
MUST_CHECK Err exec__group_feed(Exec *exec, Group *group, u32 number, bool is_first);
/* Forget all groups. */
void exec__group_forget(Group *group);

/* ---- group_spill.c ---- */

u64 exec__group_memory(const Group *group);
/* From now on rows of groups that are not at hand are put off: */
MUST_CHECK Err exec__group_full(Exec *exec, Group *group);
/* the row at hand, with its keys. */
MUST_CHECK Err exec__group_late(Exec *exec, Group *group);
/* All rows are in. */
MUST_CHECK Err exec__group_late_start(Exec *exec, Group *group);
void exec__group_late_next(Exec *exec, Group *group, u32 want);
void exec__group_late_clear(Exec *exec, Group *group);
void exec__group_late_free(Exec *exec, Group *group);

/* ---- group_batch.c ---- */

/* Prepare for whole batches, if all expressions allow it (group->by_batch). */
MUST_CHECK Err exec__group_batch_open(Exec *exec, Group *group);
MUST_CHECK Err exec__group_batch(Exec *exec, Group *group, const Batch *in);
