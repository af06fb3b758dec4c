/*
 * node_distinct.c -- PLAN_DISTINCT: the first of equal rows stays, order is kept.
 */
#include "exec/exec__write.h"
#include "exec/keyset.h"
#include "exec/node.h"
#include "exec/sorted_file.h"
#include "exec/tuple_map.h"

typedef struct Distinct {
    ExecNode node;
    KeyMaker maker;
    KeySet seen;
    SpillSet spilled; /* Beyond the budget: keys that came before those in `seen`. */
    Buf last;         /* Ordered: key of the row before. */
    bool has_last;
    /* Larger batches, not ordered: plain rows are found in the map, rows of `kept`. */
    TupleMap map;
    RowBuf kept;
    u32 *hash;       /* NULL until first use. */
    u32 seen_before; /* Keys in `seen` when the batch was begun. */
    Cell *row;
    u16 *sel;
} Distinct;

#define BY_BATCH_MIN 16u

static void
distinct_clear(Exec *exec, Distinct *distinct)
{
    exec__set_clear(exec, &distinct->spilled);
    exec__keyset_clear(&distinct->seen);
    exec__keymaker_reset(&distinct->maker);
    exec__tuples_clear(&distinct->map);
    exec__rowbuf_clear(&distinct->kept);
}

static void
distinct_rewind(Exec *exec, ExecNode *node)
{
    Distinct *distinct = (Distinct *)node;
    distinct_clear(exec, distinct);
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
        err = exec__set_add(exec, &distinct->spilled, &distinct->seen, key, &number, new_out);
    }
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* A row that the map does not know: by key bytes; plain ones enter the map. */
static Err
row_is_new_slow(Exec *exec, Distinct *distinct, u32 hash, bool *new_out)
{
    Err err = row_is_new(exec, distinct, new_out);
    if (err != OK || !*new_out) return err;
    if (!exec__tuple_is_plain(&distinct->map, distinct->row)) return OK;
    err = exec__rowbuf_add(&distinct->kept, distinct->row);
    if (err == OK) err = exec__tuples_add(&distinct->map, hash, distinct->kept.rows - 1);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* The new rows of a batch. */
static Err
select_new(Exec *exec, Distinct *distinct, const Batch *in, u32 *count_out)
{
    bool by_map = in->count >= BY_BATCH_MIN && !distinct->node.plan->u.distinct.ordered;
    Err err = OK;
    u32 count = 0;
    if (by_map && distinct->hash == NULL) {
        distinct->hash = EXEC_ROOM(exec, u32, BATCH_ROWS_MAX);
        if (distinct->hash == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    }
    if (by_map) exec__tuples_hash(&distinct->map, in, in->col, distinct->hash);
    for (u32 i = 0; err == OK && i < in->count; i++) {
        bool is_new = false;
        u32 at = batch_at(in, i);
        if (by_map && exec__tuples_find(&distinct->map, &distinct->kept, in->col, at,
                                        distinct->hash[at]) != TUPLE_NONE) {
            continue;
        }
        exec__load_all(in, at, distinct->row);
        err = by_map ? row_is_new_slow(exec, distinct, distinct->hash[at], &is_new)
                     : row_is_new(exec, distinct, &is_new);
        if (err == OK && is_new) distinct->sel[count++] = (u16)at;
    }
    *count_out = count;
    return err;
}

/* Before a batch is begun: a trip may take back the keys of the batch, but none before it. */
static Err
spill_check(Exec *exec, Distinct *distinct)
{
    u64 memory = exec__keyset_memory(&distinct->seen) + exec__rowbuf_memory(&distinct->kept) +
                 (u64)distinct->map.count * 2 * sizeof(TupleSlot);
    if (!exec__spill_due(exec, &distinct->spilled.held, memory)) return OK;
    exec__tuples_drop(&distinct->map);
    exec__rowbuf_drop(&distinct->kept);
    Err err = exec__set_flush(exec, &distinct->spilled, &distinct->seen);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static void
distinct_next(Exec *exec, ExecNode *node, u32 want)
{
    Distinct *distinct = (Distinct *)node;
    for (;;) {
        Err err = spill_check(exec, distinct);
        if (err != OK) {
            exec__out_end(node, err);
            return;
        }
        const Batch *in = exec__next(exec, node->input, want);
        u32 count = 0;
        distinct->seen_before = distinct->seen.count;
        err = select_new(exec, distinct, in, &count);
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
        exec__tuples_clear(&distinct->map); /* It would know rows that were not shown. */
        exec__rowbuf_clear(&distinct->kept);
    }
    return exec__resume(exec, node->input, exec__live_row(in, at) + 1);
}

static void
distinct_reset(Exec *exec, ExecNode *node)
{
    distinct_clear(exec, (Distinct *)node);
}

static void
distinct_close(Exec *exec, ExecNode *node)
{
    Distinct *distinct = (Distinct *)node;
    exec__set_free(exec, &distinct->spilled);
    exec__keyset_free(&distinct->seen);
    exec__keymaker_free(&distinct->maker);
    exec__tuples_free(&distinct->map);
    exec__rowbuf_free(&distinct->kept);
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
    exec__spill_enlist(exec);
    exec__tuples_init(exec, &distinct->map, plan->u.distinct.collation,
                      plan->u.distinct.key_columns);
    exec__rowbuf_init(exec, &distinct->kept, plan->u.distinct.key_columns);
    distinct->row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->columns, 1u));
    distinct->sel = EXEC_ROOM(exec, u16, BATCH_ROWS_MAX);
    if (distinct->row == NULL || distinct->sel == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    err = exec__keymaker_init(exec, &distinct->maker, plan->u.distinct.collation,
                              plan->u.distinct.key_columns);
    if (err != OK) return exec__fail(exec, err, NULL);
    return exec__node_open(exec, plan->input, &distinct->node.input);
}
