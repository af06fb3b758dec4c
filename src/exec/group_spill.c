/*
 * group_spill.c -- grouping beyond the memory budget.
 *
 * When the groups at hand fill the budget no further one is started.  Rows of groups that are there
 * go on as before; all others are sorted by their keys, stably, and are grouped at the end, one
 * group after the other.  The finished groups of the first kind stand sorted in memory, and both
 * leave merged, so that groups come out in the order they always do, each fed in input order.
 */
#include "exec/exec__write.h"
#include "exec/group.h"

static Err
late_open(Exec *exec, Group *group)
{
    const PlanNode *plan = group->node.plan;
    u32 keys = exec__group_keys(group), columns = plan->input->columns;
    if (group->late_open) return OK;
    PlanSortKey *key = ARENA_NEW_ARRAY(&exec->arena, PlanSortKey, MAX_OF(keys, 1u));
    group->late_row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(columns + keys, 1u));
    group->result = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->columns, 1u));
    if (key == NULL || group->late_row == NULL || group->result == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < keys; i++) {
        if (plan->u.group.key_collation != NULL) {
            key[i].collation = plan->u.group.key_collation[i];
        }
        key[i].desc = plan->u.group.key_desc != NULL && plan->u.group.key_desc[i];
        key[i].nulls_last = key[i].desc;
    }
    exec__rowbuf_init(exec, &group->done, plan->columns);
    exec__rowbuf_init(exec, &group->page, plan->columns);
    exec__rowbuf_init(exec, &group->ahead, columns + keys);
    group->late_open = true; /* Even half made: it is freed. */
    return exec__sorter_init(exec, &group->late, key, keys, columns + keys);
}

u64
exec__group_memory(const Group *group)
{
    u64 state_bytes = arena_used(&group->aggs.states) + group->aggs.groups * sizeof(u8 *);
    u64 map_bytes = group->map.count * 2 * sizeof(TupleSlot);
    return exec__rowbuf_memory(&group->groups) + exec__keyset_memory(&group->keys) + state_bytes +
           map_bytes + (u64)group->groups.rows * 2 * sizeof(u32);
}

Err
exec__group_full(Exec *exec, Group *group)
{
    REACHED("exec: groups were left for later");
    Err err = late_open(exec, group);
    group->full = err == OK;
    return err;
}

Err
exec__group_late(Exec *exec, Group *group)
{
    (void)exec;
    u32 columns = group->node.input->plan->columns, keys = exec__group_keys(group);
    memcpy(group->late_row, group->row, columns * sizeof(Cell));
    memcpy(group->late_row + columns, group->key_cell, keys * sizeof(Cell));
    return exec__sorter_add(&group->late, group->key_cell, group->late_row);
}

void
exec__group_late_clear(Exec *exec, Group *group)
{
    group->full = group->merging = false;
    if (group->held > 0) exec__spill_forget(exec, &group->held);
    if (!group->late_open) return;
    exec__sorter_start(&group->late, U64_MAX);
    exec__rowbuf_clear(&group->done);
    exec__rowbuf_clear(&group->page);
    exec__rowbuf_clear(&group->ahead);
    err_clear(&group->done_msg);
    group->done_err = group->late_err = OK;
    group->done_next = group->page_next = 0;
    group->late_ready = group->late_ended = false;
}

void
exec__group_late_free(Exec *exec, Group *group)
{
    if (!group->late_open) return;
    exec__group_late_clear(exec, group);
    exec__sorter_free(&group->late);
    exec__rowbuf_free(&group->done);
    exec__rowbuf_free(&group->page);
    exec__rowbuf_free(&group->ahead);
}

/* ---- results ---- */

/* The output row of group `number`, good until something is added to the groups. */
static Err
result_row(Exec *exec, Group *group, u32 number)
{
    u32 keys = exec__group_keys(group), bare = group->node.plan->u.group.bare_count;
    const Cell *cells = exec__rowbuf_row(&group->groups, number);
    memcpy(group->result, cells, keys * sizeof(Cell));
    for (u32 i = 0; i < group->aggs.count; i++) {
        Err err = exec__aggs_value(exec, &group->aggs, number, i, &group->node.bytes,
                                   &group->result[keys + i]);
        if (err != OK) return err;
    }
    memcpy(group->result + keys + group->aggs.count, cells + keys, bare * sizeof(Cell));
    return OK;
}

/* The groups in memory become rows; an error waits for its turn. */
Err
exec__group_late_start(Exec *exec, Group *group)
{
    Err err = OK;
    u32 keys = exec__group_keys(group);
    for (u32 i = 0; err == OK && i < group->groups.rows; i++) {
        arena_reset(&group->node.bytes);
        group->done_err = result_row(exec, group, group->order[i]);
        if (group->done_err != OK) err_move(&group->done_msg, &exec->msg);
        for (u32 k = keys; group->done_err != OK && k < group->node.plan->columns; k++) {
            group->result[k] = cell_null();
        }
        err = exec__rowbuf_add(&group->done, group->result);
        if (group->done_err != OK) break; /* That row stands for the error. */
    }
    exec__group_forget(group);
    exec__rowbuf_drop(&group->groups);
    exec__keyset_drop(&group->keys);
    exec__tuples_drop(&group->map);
    u64 left = exec__rowbuf_memory(&group->done);
    (void)exec__spill_due(exec, &group->held, left);
    if (err == OK) err = exec__sorter_finish(&group->late);
    group->merging = true;
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* ---- groups that come sorted ---- */

/* Start the next group with the row that is at hand. */
static Err
late_begin(Exec *exec, Group *group, const Cell *row)
{
    u32 columns = group->node.input->plan->columns, keys = exec__group_keys(group);
    Slice key;
    exec__group_forget(group);
    memcpy(group->row, row, columns * sizeof(Cell));
    memcpy(group->key_cell, row + columns, keys * sizeof(Cell));
    Err err = exec__key_make(&group->maker, group->key_cell, &key);
    buf_clear(&group->current);
    if (err == OK) err = buf_append(&group->current, key.p, key.bytes);
    if (err != OK) return exec__fail(exec, err, NULL);
    err = exec__group_start(exec, group);
    return err == OK ? exec__group_feed(exec, group, 0, true) : err;
}

/* A group of the sorted rows as a whole: it is number 0 of the groups.  None left: late_ended. */
static Err
late_next(Exec *exec, Group *group)
{
    u32 columns = group->node.input->plan->columns, keys = exec__group_keys(group);
    const Cell *row;
    Err err = OK;
    if (group->ahead.rows > 0) {
        row = exec__rowbuf_row(&group->ahead, 0);
    } else {
        err = exec__sorter_next(&group->late, NULL, &row);
        if (err != OK) return exec__fail(exec, err, NULL);
        group->late_ended = row == NULL;
        if (row == NULL) return OK;
    }
    err = late_begin(exec, group, row);
    exec__rowbuf_clear(&group->ahead);
    while (err == OK) {
        Slice key;
        err = exec__sorter_next(&group->late, NULL, &row);
        if (err == OK && row == NULL) break;
        if (err == OK) {
            memcpy(group->key_cell, row + columns, keys * sizeof(Cell));
            err = exec__key_make(&group->maker, group->key_cell, &key);
        }
        if (err == OK && !slice_equal(key, buf_slice(&group->current))) {
            err = exec__rowbuf_add(&group->ahead, row);
            if (err == OK) break;
        }
        if (err != OK) return exec__fail(exec, err, NULL);
        arena_reset(&group->node.bytes);
        memcpy(group->row, row, columns * sizeof(Cell));
        err = exec__group_feed(exec, group, 0, false);
        if (err == OK) err = exec__aggs_spill(exec, &group->aggs);
        if (err == OK) err = exec__check(exec);
    }
    return err == OK ? exec__aggs_finish(exec, &group->aggs) : err;
}

/* ---- both, merged ---- */

static int
keys_order(const Group *group, const Cell *x, const Cell *y)
{
    const PlanNode *plan = group->node.plan;
    for (u32 i = 0; i < exec__group_keys(group); i++) {
        const Collation *collation = plan->u.group.key_collation != NULL
                                         ? plan->u.group.key_collation[i]
                                         : NULL;
        int order = cell_compare(&x[i], &y[i], collation);
        bool desc = plan->u.group.key_desc != NULL && plan->u.group.key_desc[i];
        if (order != 0) return desc ? -order : order;
    }
    return 0;
}

/* The next group of all becomes a row of the page; *found_out false: there is none. */
static Err
merged_row(Exec *exec, Group *group, bool *found_out)
{
    Err err = OK;
    if (!group->late_ready && !group->late_ended) {
        err = late_next(exec, group);
        if (err != OK) return err;
        group->late_ready = !group->late_ended;
    }
    bool done = group->done_next < group->done.rows;
    *found_out = done || group->late_ready;
    if (!*found_out) return OK;
    const Cell *first = done ? exec__rowbuf_row(&group->done, group->done_next) : NULL;
    bool late = group->late_ready &&
                (!done || keys_order(group, exec__rowbuf_row(&group->groups, 0), first) < 0);
    if (late) {
        arena_reset(&group->node.bytes);
        group->late_ready = false;
        err = result_row(exec, group, 0);
        if (err != OK) return err;
        first = group->result;
    } else if (++group->done_next == group->done.rows && group->done_err != OK) {
        err_move(&exec->msg, &group->done_msg);
        return group->done_err;
    }
    err = exec__rowbuf_add(&group->page, first);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

void
exec__group_late_next(Exec *exec, Group *group, u32 want)
{
    ExecNode *node = &group->node;
    if (group->page_next == group->page.rows && group->late_err == OK) {
        bool found = true;
        exec__rowbuf_clear(&group->page);
        group->page_next = 0;
        while (group->late_err == OK && found && group->page.rows < want &&
               exec__rowbuf_memory(&group->page) < BATCH_BYTES_MAX) {
            group->late_err = merged_row(exec, group, &found);
        }
    }
    u32 count = MIN_OF(want, group->page.rows - group->page_next);
    if (count == 0) {
        exec__out_end(node, group->late_err);
        return;
    }
    exec__out_from_rows(exec, node, &group->page, NULL, group->page_next, count);
    group->page_next += count;
    if (group->page_next == group->page.rows) node->out.err = group->late_err;
}
