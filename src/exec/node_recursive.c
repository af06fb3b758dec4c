/*
 * node_recursive.c -- PLAN_RECURSIVE: WITH RECURSIVE.
 *
 * A recursion takes rows from a queue (row_queue.h): each is shown, then the step runs with it as
 * the current row and its results join the queue.  ORDER BY makes the queue a priority queue in
 * which equal rows leave in the order they came.
 */
#include "exec/exec__write.h"
#include "exec/keyset.h"
#include "exec/node.h"
#include "exec/row_queue.h"
#include "exec/sorted_file.h"

typedef struct Recursive {
    ExecNode node;
    ExecNode *initial, *step;
    KeyMaker maker;
    KeySet seen;      /* UNION, and */
    SpillSet spilled; /* what came before and had no room. */
    RowQueue queue;
    ExecProgram **key, *limit, *offset;
    bool started;
    bool step_due; /* The row shown last has not been expanded. */
    i64 left, skip;
    RowBuf current; /* One row: the one the step works on. */
    Cell *row, *key_cell;
} Recursive;

static void
recursive_rewind(Exec *exec, ExecNode *node)
{
    Recursive *recursion = (Recursive *)node;
    exec->shared[node->plan->u.recursive.material_no].current = NULL;
    exec__set_clear(exec, &recursion->spilled);
    exec__keyset_clear(&recursion->seen);
    exec__keymaker_reset(&recursion->maker);
    exec__queue_clear(&recursion->queue);
    recursion->started = false;
    recursion->step_due = false;
}

/* Put the scratch row into the queue, unless UNION has seen it. */
static Err
queue_row(Exec *exec, Recursive *recursion)
{
    const PlanNode *plan = recursion->node.plan;
    Err err = OK;
    if (plan->u.recursive.distinct) {
        Slice key;
        u32 number;
        bool added;
        err = exec__key_make(&recursion->maker, recursion->row, &key);
        if (err == OK) {
            err = exec__set_add(exec, &recursion->spilled, &recursion->seen, key, &number, &added);
        }
        u64 memory = exec__keyset_memory(&recursion->seen);
        if (err == OK && exec__spill_due(exec, &recursion->spilled.held, memory)) {
            err = exec__set_flush(exec, &recursion->spilled, &recursion->seen);
        }
        if (err != OK) return exec__fail(exec, err, NULL);
        if (!added) return OK;
    }
    for (u32 i = 0; i < plan->u.recursive.key_count; i++) {
        err = exec__eval_in(exec, recursion->key[i], recursion->row, &recursion->node.bytes,
                            &recursion->key_cell[i]);
        if (err != OK) return err;
    }
    err = exec__queue_push(&recursion->queue, recursion->row, recursion->key_cell);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static Err
queue_all(Exec *exec, Recursive *recursion, ExecNode *from)
{
    exec__rewind(exec, from);
    for (;;) {
        const Batch *in = exec__next(exec, from, exec__demand(exec, BATCH_ROWS_MAX));
        for (u32 i = 0; i < in->count; i++) {
            exec__load_all(in, batch_at(in, i), recursion->row);
            Err err = queue_row(exec, recursion);
            if (err != OK) return err;
        }
        if (in->count == 0 || in->last || in->err != OK) return in->err;
    }
}

/* Make the next queued row current; *found_out false: the recursion is over. */
static Err
queue_take(Exec *exec, Recursive *recursion, bool *found_out)
{
    const Cell *row;
    Err err = exec__queue_take(&recursion->queue, &row);
    *found_out = row != NULL;
    if (err != OK) return exec__fail(exec, err, NULL);
    if (row == NULL) return OK;
    exec__rowbuf_clear(&recursion->current);
    err = exec__rowbuf_add(&recursion->current, row);
    if (err != OK) return exec__fail(exec, err, NULL);
    u32 number = recursion->node.plan->u.recursive.material_no;
    exec->shared[number].current = recursion->current.cell;
    return OK;
}

static Err
recursive_start(Exec *exec, Recursive *recursion)
{
    if (recursion->started) return OK;
    Err err = exec__eval_limit(exec, recursion->limit, recursion->offset, &recursion->left,
                               &recursion->skip);
    if (err != OK) return err;
    recursion->started = true;
    if (recursion->left == 0) return OK;
    return queue_all(exec, recursion, recursion->initial);
}

/* Show the current row at place `at`, with its bytes. */
static Err
current_show(Exec *exec, Recursive *recursion, u32 at)
{
    ExecNode *node = &recursion->node;
    for (u32 i = 0; i < node->plan->columns; i++) {
        Err err = cell_copy(&recursion->current.cell[i], &node->bytes, &node->buffer[i][at]);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    return OK;
}

static void
recursive_next(Exec *exec, ExecNode *node, u32 want)
{
    Recursive *recursion = (Recursive *)node;
    u32 count = 0;
    /* Streaming: one row, so that no step has run ahead of the row shown. */
    if (node->streaming) want = 1;
    Err err = recursive_start(exec, recursion);
    if (err == OK) err = exec__out_reserve(exec, node, want);
    while (err == OK && count < want && recursion->left != 0) {
        bool found = false;
        if (recursion->step_due) {
            recursion->step_due = false;
            err = queue_all(exec, recursion, recursion->step);
            if (err == OK) err = exec__check(exec);
        }
        if (err == OK) err = queue_take(exec, recursion, &found);
        if (err != OK || !found) break;
        recursion->step_due = true;
        if (recursion->skip > 0) {
            recursion->skip--;
            continue;
        }
        err = current_show(exec, recursion, count);
        if (err != OK) break;
        count++;
        if (recursion->left > 0) recursion->left--;
    }
    exec__out_rows(node, count, err);
}

static void
recursive_close(Exec *exec, ExecNode *node)
{
    Recursive *recursion = (Recursive *)node;
    exec__set_free(exec, &recursion->spilled);
    exec__keyset_free(&recursion->seen);
    exec__keymaker_free(&recursion->maker);
    exec__queue_free(&recursion->queue);
    exec__rowbuf_free(&recursion->current);
}

static const NodeOps recursive_ops = {.next = recursive_next,
                                      .rewind = recursive_rewind,
                                      .reset = recursive_rewind,
                                      .close = recursive_close};

static Err
recursive_programs(Exec *exec, Recursive *recursion)
{
    const PlanNode *plan = recursion->node.plan;
    u32 keys = plan->u.recursive.key_count;
    recursion->key = ARENA_NEW_ARRAY(&exec->arena, ExecProgram *, MAX_OF(keys, 1u));
    recursion->key_cell = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(keys, 1u));
    if (recursion->key == NULL || recursion->key_cell == NULL) {
        return exec__fail(exec, ERR_NOMEM, NULL);
    }
    Err err = OK;
    for (u32 i = 0; err == OK && i < keys; i++) {
        err = exec__compile(exec, plan->u.recursive.key[i].expr, &recursion->key[i]);
    }
    if (err == OK && plan->u.recursive.limit != NULL) {
        err = exec__compile(exec, plan->u.recursive.limit, &recursion->limit);
    }
    if (err == OK && plan->u.recursive.offset != NULL) {
        err = exec__compile(exec, plan->u.recursive.offset, &recursion->offset);
    }
    return err;
}

Err
exec__recursive_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &recursive_ops, sizeof(Recursive), node_out);
    if (err != OK) return err;
    Recursive *recursion = (Recursive *)*node_out;
    exec__keyset_init(exec, &recursion->seen);
    err = exec__queue_init(exec, &recursion->queue, plan->columns, plan->u.recursive.key,
                           plan->u.recursive.key_count);
    if (err != OK) return exec__fail(exec, err, NULL);
    exec__rowbuf_init(exec, &recursion->current, plan->columns);
    recursion->row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->columns, 1u));
    if (recursion->row == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    if (plan->u.recursive.distinct) {
        exec__spill_enlist(exec);
        err = exec__keymaker_init(exec, &recursion->maker, plan->u.recursive.collation,
                                  plan->columns);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    err = recursive_programs(exec, recursion);
    if (err == OK) err = exec__node_open(exec, plan->u.recursive.initial, &recursion->initial);
    if (err == OK) err = exec__node_open(exec, plan->u.recursive.step, &recursion->step);
    return err;
}
