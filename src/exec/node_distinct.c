/*
 * node_distinct.c -- PLAN_DISTINCT: the first of equal rows stays, order is kept.
 */
#include "exec/exec__write.h"
#include "exec/keyset.h"
#include "exec/node.h"

typedef struct Distinct {
    ExecNode node;
    KeyMaker maker;
    KeySet seen;
    Buf last; /* Ordered: key of the row before. */
    bool has_last;
    u32 seen_before; /* Keys in `seen` when the batch was begun. */
    Cell *row;
    u16 *sel;
} Distinct;

static void
distinct_rewind(Exec *exec, ExecNode *node)
{
    Distinct *distinct = (Distinct *)node;
    exec__keyset_clear(&distinct->seen);
    exec__keymaker_reset(&distinct->maker);
    distinct->has_last = false;
    exec__rewind(exec, node->input);
}

static Err
row_is_new(Exec *exec, Distinct *distinct, bool *new_out)
{
    Slice key;
    u32 number;
    Err err = exec__key_make(&distinct->maker, distinct->row, &key);
    if (err == OK && distinct->node.plan->u.distinct.ordered) {
        *new_out = !distinct->has_last || !slice_equal(key, buf_slice(&distinct->last));
        distinct->has_last = true;
        buf_clear(&distinct->last);
        err = buf_append(&distinct->last, key.p, key.bytes);
    } else if (err == OK) {
        err = exec__keyset_add(&distinct->seen, key, &number, new_out);
    }
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static void
distinct_next(Exec *exec, ExecNode *node, u32 want)
{
    Distinct *distinct = (Distinct *)node;
    for (;;) {
        const Batch *in = exec__next(exec, node->input, want);
        u32 count = 0;
        Err err = OK;
        distinct->seen_before = distinct->seen.count;
        for (u32 i = 0; err == OK && i < in->count; i++) {
            bool is_new = false;
            u32 at = batch_at(in, i);
            exec__load_all(in, at, distinct->row);
            err = row_is_new(exec, distinct, &is_new);
            if (err == OK && is_new) distinct->sel[count++] = (u16)at;
        }
        if (err == OK) err = in->err;
        if (err == OK && count == 0 && in->count > 0) err = exec__check(exec);
        if (count == 0 && in->count > 0 && err == OK) continue;
        memcpy(node->out.col, in->col, node->out.columns * sizeof(Vec));
        exec__out_rows(node, count, err);
        node->out.rows = in->rows;
        node->out.sel = distinct->sel;
        return;
    }
}

static Err
distinct_resume(Exec *exec, ExecNode *node, u32 used)
{
    Distinct *distinct = (Distinct *)node;
    const Batch *in = &node->input->out;
    u32 at = node->out.sel[used - 1];
    if (node->plan->u.distinct.ordered) {
        Slice key;
        exec__load_all(in, at, distinct->row);
        Err err = exec__key_make(&distinct->maker, distinct->row, &key);
        buf_clear(&distinct->last);
        if (err == OK) err = buf_append(&distinct->last, key.p, key.bytes);
        if (err != OK) return exec__fail(exec, err, NULL);
    } else {
        exec__keyset_truncate(&distinct->seen, distinct->seen_before + used);
    }
    return exec__resume(exec, node->input, exec__live_row(in, at) + 1);
}

static void
distinct_reset(Exec *exec, ExecNode *node)
{
    (void)exec;
    exec__keyset_clear(&((Distinct *)node)->seen);
}

static void
distinct_close(Exec *exec, ExecNode *node)
{
    Distinct *distinct = (Distinct *)node;
    (void)exec;
    exec__keyset_free(&distinct->seen);
    exec__keymaker_free(&distinct->maker);
    buf_free(&distinct->last);
}

static const NodeOps distinct_ops = {.next = distinct_next,
                                     .rewind = distinct_rewind,
                                     .resume = distinct_resume,
                                     .reset = distinct_reset,
                                     .close = distinct_close};

Err
exec__distinct_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &distinct_ops, sizeof(Distinct), node_out);
    if (err != OK) return err;
    Distinct *distinct = (Distinct *)*node_out;
    exec__keyset_init(exec, &distinct->seen);
    distinct->row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->columns, 1u));
    distinct->sel = ARENA_NEW_ARRAY(&exec->arena, u16, BATCH_ROWS_MAX);
    if (distinct->row == NULL || distinct->sel == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    err = exec__keymaker_init(exec, &distinct->maker, plan->u.distinct.collation,
                              plan->u.distinct.key_columns);
    if (err != OK) return exec__fail(exec, err, NULL);
    return exec__node_open(exec, plan->input, &distinct->node.input);
}
