/*
 * node_group.c -- PLAN_GROUP: aggregates by group.
 *
 * By hash: all of the input is read, then the groups leave sorted by their keys.  Ordered input:
 * groups leave as they end; a full output batch pauses the reading in the middle of an input
 * batch.  Without keys there is exactly one group, also over no rows.
 *
 * A row of `groups` holds the key cells of the group's first row, the bare columns of its
 * governing row and, with a governing min or max, its best value so far.
 */
#include "exec/exec__write.h"
#include "exec/group.h"
#include "exec/order.h"

#define ASK_MIN 64u /* Ordered: rows to ask for, however few groups are wanted. */

#define ASK_MIN      64u /* Ordered: rows to ask for, however few groups are wanted. */
#define BY_BATCH_MIN 16u /* Fewer rows are taken one by one. */

void
exec__group_forget(Group *group)
{
    exec__keyset_clear(&group->keys);
    exec__keymaker_reset(&group->maker);
    exec__aggs_clear(&group->aggs);
    exec__tuples_clear(&group->map);
    exec__rowbuf_clear(&group->groups);
    group->next = 0;
}

static void
group_rewind(Exec *exec, ExecNode *node)
{
    Group *group = (Group *)node;
    exec__group_late_clear(exec, group);
    exec__group_forget(group);
    group->complete = false;
    group->pending = OK;
    group->in = NULL;
    group->in_next = 0;
    group->row_kept = false;
    exec__rewind(exec, node->input);
}

Err
exec__group_start(Exec *exec, Group *group)
{
    Cell *cells;
    Err err = exec__rowbuf_add_empty(&group->groups, &cells);
    if (err != OK) return exec__fail(exec, err, NULL);
    for (u32 i = 0; i < exec__group_keys(group); i++) {
        err = exec__rowbuf_set(&group->groups, group->groups.rows - 1, i, &group->key_cell[i]);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    return exec__aggs_group(exec, &group->aggs);
}

Err
exec__group_bare(Exec *exec, Group *group, u32 number)
{
    for (u32 i = 0; i < group->node.plan->u.group.bare_count; i++) {
        Cell value;
        Err err = exec__eval_in(exec, group->bare[i], group->row, &group->node.bytes, &value);
        if (err != OK) return err;
        err = exec__rowbuf_set(&group->groups, number, exec__group_keys(group) + i, &value);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    return OK;
}

/*
 * Does this row govern the bare columns of its group?  The first row with the smallest or largest
 * value does; as long as there are only NULLs, the last one.
 */
static Err
row_governs(Exec *exec, Group *group, u32 number, bool is_first, bool *governs_out)
{
    const PlanNode *plan = group->node.plan;
    *governs_out = is_first;
    if (plan->u.group.bare_agg < 0) return OK;
    const Agg *agg = &group->aggs.agg[plan->u.group.bare_agg];
    u32 best_column = exec__group_keys(group) + plan->u.group.bare_count;
    const Cell *best = &exec__rowbuf_row(&group->groups, number)[best_column];
    if (agg->filter != NULL) {
        ExecTruth truth = EXEC_FALSE;
        Err err = exec__truth_in(exec, agg->filter, group->row, &group->node.bytes, &truth);
        if (err != OK || truth != EXEC_TRUE) return err;
    }
    Cell value;
    Err err = exec__eval_in(exec, agg->arg[0], group->row, &group->node.bytes, &value);
    if (err != OK) return err;
    if (value.type == CELL_NULL) {
        *governs_out = best->type == CELL_NULL;
        return OK;
    }
    if (best->type != CELL_NULL) {
        int order = cell_compare(&value, best, agg->plan->collation);
        *governs_out = (agg->plan->def->flags & FUNC_MAX) != 0 ? order > 0 : order < 0;
        if (!*governs_out) return OK;
    }
    *governs_out = true;
    err = exec__rowbuf_set(&group->groups, number, best_column, &value);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

Err
exec__group_feed(Exec *exec, Group *group, u32 number, bool is_first)
{
    Err err = exec__aggs_row(exec, &group->aggs, number, group->row, &group->node.bytes);
    if (err != OK || group->node.plan->u.group.bare_count == 0) return err;
    bool governs;
    err = row_governs(exec, group, number, is_first, &governs);
    return err == OK && governs ? exec__group_bare(exec, group, number) : err;
}

Err
exec__group_find(Exec *exec, Group *group, u32 *number_out, bool *added_out)
{
    Slice key;
    *added_out = false;
    Err err = exec__key_make(&group->maker, group->key_cell, &key);
    if (err == OK && UNLIKELY(group->full)) {
        *number_out = exec__keyset_find(&group->keys, key);
        if (*number_out == TUPLE_NONE) err = exec__group_late(exec, group);
        return err == OK ? OK : exec__fail(exec, err, NULL);
    }
    if (err == OK) err = exec__keyset_add(&group->keys, key, number_out, added_out);
    if (err != OK) return exec__fail(exec, err, NULL);
    return *added_out ? exec__group_start(exec, group) : OK;
}

/* The key cells of the row at hand, and their bytes. */
static Err
row_key(Exec *exec, Group *group, Slice *key_out)
{
    for (u32 i = 0; i < exec__group_keys(group); i++) {
        Err err = exec__eval_in(exec, group->key[i], group->row, &group->node.bytes,
                                &group->key_cell[i]);
        if (err != OK) return err;
    }
    Err err = exec__key_make(&group->maker, group->key_cell, key_out);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static Err
hash_row(Exec *exec, Group *group)
{
    u32 number;
    bool added;
    for (u32 i = 0; i < exec__group_keys(group); i++) {
        Err err = exec__eval_in(exec, group->key[i], group->row, &group->node.bytes,
                                &group->key_cell[i]);
        if (err != OK) return err;
    }
    Err err = exec__group_find(exec, group, &number, &added);
    if (err != OK || number == TUPLE_NONE) return err;
    return exec__group_feed(exec, group, number, added);
}

/* Order of the groups by their key cells, for host collations. */
static bool
group_before(const void *arg, u32 a, u32 b)
{
    const Group *group = arg;
    const PlanNode *plan = group->node.plan;
    const Cell *x = exec__rowbuf_row(&group->groups, a);
    const Cell *y = exec__rowbuf_row(&group->groups, b);
    for (u32 i = 0; i < exec__group_keys(group); i++) {
        int order = cell_compare(&x[i], &y[i], plan->u.group.key_collation[i]);
        bool desc = plan->u.group.key_desc != NULL && plan->u.group.key_desc[i];
        if (order != 0) return desc ? order > 0 : order < 0;
    }
    return a < b;
}

static Err
order_make(Exec *exec, Group *group, bool sort)
{
    u32 count = group->groups.rows;
    if (count > group->order_capacity) {
        u32 *order = mem_realloc(group->order, (size_t)count * sizeof(u32));
        if (order != NULL) group->order = order;
        u32 *scratch = mem_realloc(group->scratch, (size_t)count * sizeof(u32));
        if (scratch != NULL) group->scratch = scratch;
        if (order == NULL || scratch == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
        group->order_capacity = count;
    }
    for (u32 i = 0; i < count; i++) {
        group->order[i] = i;
    }
    if (!sort) return OK;
    if (!group->maker.has_host && exec__group_keys(group) > 0) {
        Err err = exec__keys_sort(group->keys.entry, group->order, count);
        return err == OK ? OK : exec__fail(exec, err, NULL);
    }
    exec__order_sort(group->order, group->scratch, count, group_before, group);
    return OK;
}

static Err
hash_rows(Exec *exec, Group *group, const Batch *in, bool *first)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < in->count; i++) {
        exec__load_all(in, batch_at(in, i), group->row);
        if (exec__group_keys(group) == 0) {
            err = exec__group_feed(exec, group, 0, *first);
            *first = false;
        } else {
            err = hash_row(exec, group);
        }
    }
    return err;
}

/* A group by hash uses half of its part of the budget, for rows that are put off need the rest. */
static Err
hash_spill(Exec *exec, Group *group)
{
    Err err = exec__aggs_spill(exec, &group->aggs);
    if (err != OK || group->full || exec__group_keys(group) == 0) return err;
    u64 memory = exec__group_memory(group);
    (void)exec__spill_due(exec, &group->held, memory);
    if (memory <= exec->spill.share_bytes) return OK;
    err = exec__group_full(exec, group);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static Err
hash_input(Exec *exec, Group *group)
{
    Err err = OK;
    if (exec__group_keys(group) == 0) err = exec__group_start(exec, group);
    bool first = true;
    while (err == OK) {
        const Batch *in = exec__next(exec, group->node.input, exec__demand(exec, BATCH_ROWS_MAX));
        arena_reset(&group->node.bytes);
        if (group->by_batch && in->count >= BY_BATCH_MIN) {
            err = exec__group_batch(exec, group, in);
        } else {
            err = hash_rows(exec, group, in, &first);
        }
        if (err == OK) err = in->err;
        if (err == OK) err = exec__check(exec);
        if (err == OK) err = hash_spill(exec, group);
        if (in->count == 0) break;
    }
    if (err == OK) err = exec__aggs_finish(exec, &group->aggs);
    if (err == OK) err = order_make(exec, group, true);
    return err == OK && group->full ? exec__group_late_start(exec, group) : err;
}

/* Ordered input: up to `want` whole groups. */
static Err
ordered_input(Exec *exec, Group *group, u32 want)
{
    exec__group_forget(group);
    /* Streaming: one group, so that only the first row of the next one has been read. */
    if (group->node.streaming) want = 1;
    for (;;) {
        bool kept = group->row_kept;
        group->row_kept = false;
        if (!kept && (group->in == NULL || group->in_next == group->in->count)) {
            if (group->in != NULL && group->in->err != OK) return group->in->err;
            group->in = exec__next(exec, group->node.input,
                                   exec__demand(exec, MAX_OF(want, ASK_MIN)));
            group->in_next = 0;
            Err err = group->in->count == 0 ? group->in->err : exec__check(exec);
            if (err != OK) return err;
            if (group->in->count == 0) {
                group->complete = true;
                break;
            }
            err = exec__aggs_spill(exec, &group->aggs);
            if (err != OK) return err;
        }
        Slice key;
        if (!kept) exec__load_all(group->in, batch_at(group->in, group->in_next), group->row);
        Err err = row_key(exec, group, &key);
        if (err != OK) return err;
        bool is_new = group->groups.rows == 0 || !slice_equal(key, buf_slice(&group->current));
        if (is_new && group->groups.rows == want) {
            group->row_kept = kept;
            break;
        }
        if (is_new) {
            buf_clear(&group->current);
            err = buf_append(&group->current, key.p, key.bytes);
            err = err != OK ? exec__fail(exec, err, NULL) : exec__group_start(exec, group);
        }
        if (err == OK) err = exec__group_feed(exec, group, group->groups.rows - 1, is_new);
        if (err != OK) return err;
        if (!kept) group->in_next++;
    }
    Err err = exec__aggs_finish(exec, &group->aggs);
    return err == OK ? order_make(exec, group, false) : err;
}

/* Put up to `want` groups into the output. */
static void
groups_show(Exec *exec, Group *group, u32 want)
{
    ExecNode *node = &group->node;
    u32 keys = exec__group_keys(group), bare = node->plan->u.group.bare_count;
    u32 count = MIN_OF(want, group->groups.rows - group->next), done = 0;
    Err err = exec__out_reserve(exec, node, MAX_OF(count, 1u));
    arena_reset(&node->bytes);
    while (err == OK && done < count) {
        u32 number = group->order[group->next];
        const Cell *cells = exec__rowbuf_row(&group->groups, number);
        for (u32 i = 0; i < keys; i++) {
            node->buffer[i][done] = cells[i];
        }
        for (u32 i = 0; err == OK && i < group->aggs.count; i++) {
            err = exec__aggs_value(exec, &group->aggs, number, i, &node->bytes,
                                   &node->buffer[keys + i][done]);
        }
        if (err != OK) break;
        for (u32 i = 0; i < bare; i++) {
            node->buffer[keys + group->aggs.count + i][done] = cells[keys + i];
        }
        group->next++;
        done++;
    }
    exec__out_rows(node, done, err);
    node->out.last = group->complete && group->next == group->groups.rows;
    if (err == OK && group->next == group->groups.rows) node->out.err = group->pending;
}

/* The group at hand cannot be finished: show those before it, then raise the error. */
static Err
groups_cut(Exec *exec, Group *group, Err err)
{
    if (group->groups.rows < 2) return err;
    group->groups.rows--;
    group->pending = err;
    group->complete = true;
    return order_make(exec, group, false);
}

static void
group_next(Exec *exec, ExecNode *node, u32 want)
{
    Group *group = (Group *)node;
    Err err = OK;
    if (!group->complete) {
        if (node->plan->u.group.ordered && exec__group_keys(group) > 0) {
            err = ordered_input(exec, group, want);
            if (err != OK) err = groups_cut(exec, group, err);
        } else {
            err = hash_input(exec, group);
            group->complete = err == OK;
        }
    }
    if (err != OK) {
        exec__out_end(node, err);
        return;
    }
    if (group->merging) {
        exec__group_late_next(exec, group, want);
    } else {
        groups_show(exec, group, want);
    }
}

/*
 * By hash everything is held.  Ordered: the group shown is whole, and the first row of the next
 * one, read already, stays.
 */
static Err
group_resume(Exec *exec, ExecNode *node, u32 used)
{
    Group *group = (Group *)node;
    bool ordered = node->plan->u.group.ordered && exec__group_keys(group) > 0;
    if (group->merging) {
        group->page_next -= node->out.count - used;
        return OK;
    }
    if (!ordered || group->complete || group->row_kept) {
        group->next -= node->out.count - used;
        return OK;
    }
    ASSERT(used == 1 && node->out.count == 1 && group->in_next < group->in->count);
    exec__load_all(group->in, batch_at(group->in, group->in_next), group->row);
    arena_reset(&group->kept);
    for (u32 i = 0; i < node->input->plan->columns; i++) {
        Err err = cell_copy(&group->row[i], &group->kept, &group->row[i]);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    Err err = exec__resume(exec, node->input, group->in_next + 1);
    group->in = NULL;
    group->row_kept = true;
    return err;
}

static void
group_reset(Exec *exec, ExecNode *node)
{
    exec__group_late_clear(exec, (Group *)node);
    exec__group_forget((Group *)node);
}

static void
group_close(Exec *exec, ExecNode *node)
{
    Group *group = (Group *)node;
    exec__group_late_free(exec, group);
    exec__aggs_close(&group->aggs);
    exec__keyset_free(&group->keys);
    exec__keymaker_free(&group->maker);
    exec__rowbuf_free(&group->groups);
    buf_free(&group->current);
    arena_free(&group->kept);
    mem_free(group->order);
    mem_free(group->scratch);
    exec__tuples_free(&group->map);
}

static const NodeOps group_ops = {.next = group_next,
                                  .rewind = group_rewind,
                                  .resume = group_resume,
                                  .reset = group_reset,
                                  .close = group_close};

Err
exec__group_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &group_ops, sizeof(Group), node_out);
    if (err != OK) return err;
    Group *group = (Group *)*node_out;
    u32 keys = plan->u.group.key_count, bare = plan->u.group.bare_count;
    exec__keyset_init(exec, &group->keys);
    arena_init(&group->kept, exec->account);
    exec__rowbuf_init(exec, &group->groups, keys + bare + 1);
    group->row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->input->columns, 1u));
    group->key_cell = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(keys, 1u));
    if (group->row == NULL || group->key_cell == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    err = exec__keymaker_init(exec, &group->maker, plan->u.group.key_collation, keys);
    if (err != OK) return exec__fail(exec, err, NULL);
    exec__tuples_init(exec, &group->map, plan->u.group.key_collation, keys);
    for (u32 i = 0; plan->u.group.key_desc != NULL && i < keys; i++) {
        group->maker.column[i].desc = plan->u.group.key_desc[i];
    }
    err = exec__node_open(exec, plan->input, &group->node.input);
    if (err == OK) err = exec__compile_list(exec, plan->u.group.key, keys, &group->key);
    if (err == OK) err = exec__compile_list(exec, plan->u.group.bare, bare, &group->bare);
    if (err == OK) {
        err = exec__aggs_open(exec, &group->aggs, plan->u.group.agg, plan->u.group.agg_count);
    }
    if (keys > 0 && !plan->u.group.ordered) {
        exec__spill_enlist(exec);
        exec__spill_enlist(exec); /* And the sort of what is put off. */
    }
    if (err != OK || (plan->u.group.ordered && keys > 0)) return err;
    return exec__group_batch_open(exec, group);
}
