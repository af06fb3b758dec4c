/*
 * node_material.c -- PLAN_MATERIAL, PLAN_CTE_SCAN, PLAN_RECURSIVE: rows that are kept and read
 * again.
 *
 * A MATERIAL runs its input once and keeps the rows over rewinds, until a register that the input
 * reads has another value or kept results have become invalid.  A shared one (plan->material[no])
 * is read by CTE scans, each at its own place.
 *
 * A recursion takes rows from a queue: each is shown, then the step runs with it as the current
 * row and its results join the queue.  ORDER BY makes the queue a priority queue in which equal
 * rows leave in the order they came.
 */
#include "exec/exec__write.h"
#include "exec/keyset.h"
#include "exec/node.h"
#include "exec/sorter.h"
#include "exec/watch.h"

typedef struct Material {
    ExecNode node;
    RowBuf rows;
    RegWatch watch;
    u32 next;
} Material;

/* Have the rows. */
static Err
material_fill(Exec *exec, Material *material)
{
    if (exec__watch_same(exec, &material->watch)) return OK;
    exec__rowbuf_clear(&material->rows);
    Err err = exec__watch_begin(exec, &material->watch);
    if (err != OK) return err;
    exec__rewind(exec, material->node.input);
    for (;;) {
        const Batch *in = exec__next(exec, material->node.input,
                                     exec__demand(exec, BATCH_ROWS_MAX));
        err = exec__rowbuf_add_batch(&material->rows, in, 0, in->count);
        if (err != OK) return exec__fail(exec, err, NULL);
        if (in->err != OK) return in->err;
        if (in->count == 0) break;
        err = exec__check(exec);
        if (err != OK) return err;
    }
    exec__watch_done(exec, &material->watch);
    return OK;
}

static void
rows_next(Exec *exec, ExecNode *node, const RowBuf *rows, u32 *next, u32 want)
{
    u32 count = MIN_OF(want, rows->rows - *next);
    exec__out_from_rows(exec, node, rows, NULL, *next, count);
    *next += count;
    node->out.last = *next == rows->rows;
}

static void
material_next(Exec *exec, ExecNode *node, u32 want)
{
    Material *material = (Material *)node;
    Err err = material->next == 0 ? material_fill(exec, material) : OK;
    if (err != OK) {
        exec__out_end(node, err);
        return;
    }
    rows_next(exec, node, &material->rows, &material->next, want);
}

static Err
material_resume(Exec *exec, ExecNode *node, u32 used)
{
    (void)exec;
    ((Material *)node)->next -= node->out.count - used;
    return OK;
}

static void
material_rewind(Exec *exec, ExecNode *node)
{
    (void)exec;
    ((Material *)node)->next = 0;
}

static void
material_reset(Exec *exec, ExecNode *node)
{
    Material *material = (Material *)node;
    (void)exec;
    exec__watch_forget(&material->watch);
    material->next = 0;
    exec__rowbuf_clear(&material->rows);
}

static void
material_close(Exec *exec, ExecNode *node)
{
    Material *material = (Material *)node;
    (void)exec;
    exec__rowbuf_free(&material->rows);
    exec__watch_close(&material->watch);
}

static const NodeOps material_ops = {.next = material_next,
                                     .rewind = material_rewind,
                                     .resume = material_resume,
                                     .reset = material_reset,
                                     .close = material_close};

Err
exec__material_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &material_ops, sizeof(Material), node_out);
    if (err != OK) return err;
    Material *material = (Material *)*node_out;
    exec__rowbuf_init(exec, &material->rows, plan->columns);
    err = exec__node_open(exec, plan->input, &material->node.input);
    return err == OK ? exec__watch_open(exec, &material->watch, plan->input) : err;
}

/* ---- CTE_SCAN ---- */

typedef struct CteScan {
    ExecNode node;
    u32 next;
} CteScan;

static void
cte_rewind(Exec *exec, ExecNode *node)
{
    (void)exec;
    ((CteScan *)node)->next = 0;
}

static void
cte_next(Exec *exec, ExecNode *node, u32 want)
{
    CteScan *scan = (CteScan *)node;
    ExecShared *shared = &exec->shared[node->plan->u.cte_scan.material_no];
    if (shared->producer != NULL) {
        Material *material = (Material *)shared->producer;
        Err err = scan->next == 0 ? material_fill(exec, material) : OK;
        if (err != OK) {
            exec__out_end(node, err);
            return;
        }
        rows_next(exec, node, &material->rows, &scan->next, want);
        return;
    }
    exec__out_end(node, OK);
    if (shared->current == NULL || scan->next > 0) return;
    scan->next = 1;
    Err err = exec__out_reserve(exec, node, 1);
    for (u32 i = 0; err == OK && i < node->plan->columns; i++) {
        node->buffer[i][0] = shared->current[i];
    }
    exec__out_rows(node, err == OK, err);
    node->out.last = true;
}

static Err
cte_resume(Exec *exec, ExecNode *node, u32 used)
{
    (void)exec;
    ((CteScan *)node)->next -= node->out.count - used;
    return OK;
}

static const NodeOps cte_ops = {.next = cte_next, .rewind = cte_rewind, .resume = cte_resume};

Err
exec__cte_scan_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    ASSERT(plan->u.cte_scan.material_no < exec->plan->material_count);
    return exec__node_new(exec, plan, &cte_ops, sizeof(CteScan), node_out);
}

/* ---- RECURSIVE ---- */

typedef struct Recursive {
    ExecNode node;
    ExecNode *initial, *step;
    KeyMaker maker;
    KeySet seen; /* UNION */
    RowBuf queue, spare;
    u32 queue_next; /* FIFO: rows before it are done. */
    u32 *heap;      /* Priority queue: row numbers. */
    u32 heap_count, heap_capacity;
    ExecProgram **key, *limit, *offset;
    RowBuf keys; /* Priority queue: sort keys of the rows of `queue`. */
    KeyColumn *key_column;
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
    exec__keyset_clear(&recursion->seen);
    exec__keymaker_reset(&recursion->maker);
    exec__rowbuf_clear(&recursion->queue);
    exec__rowbuf_clear(&recursion->keys);
    recursion->queue_next = 0;
    recursion->heap_count = 0;
    recursion->started = false;
    recursion->step_due = false;
}

/* Does queued row a leave before row b? */
static bool
queue_before(const Recursive *recursion, u32 a, u32 b)
{
    const Cell *x = exec__rowbuf_row(&recursion->keys, a);
    const Cell *y = exec__rowbuf_row(&recursion->keys, b);
    const PlanSortKey *key = recursion->node.plan->u.recursive.key;
    for (u32 i = 0; i < recursion->keys.columns; i++) {
        bool null_x = x[i].type == CELL_NULL, null_y = y[i].type == CELL_NULL;
        if (null_x && null_y) continue;
        if (null_x || null_y) return null_x != key[i].nulls_last;
        int order = cell_compare(&x[i], &y[i], key[i].collation);
        if (order != 0) return key[i].desc ? order > 0 : order < 0;
    }
    return a < b;
}

static Err
heap_push(Recursive *recursion, u32 row)
{
    if (recursion->heap_count == recursion->heap_capacity) {
        u32 capacity = MAX_OF(recursion->heap_capacity * 2, 16u);
        u32 *heap = mem_realloc(recursion->heap, (size_t)capacity * sizeof(u32));
        if (heap == NULL) return ERR_NOMEM;
        recursion->heap = heap;
        recursion->heap_capacity = capacity;
    }
    u32 at = recursion->heap_count++;
    while (at > 0 && queue_before(recursion, row, recursion->heap[(at - 1) / 2])) {
        recursion->heap[at] = recursion->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    recursion->heap[at] = row;
    return OK;
}

static u32
heap_pop(Recursive *recursion)
{
    u32 top = recursion->heap[0];
    u32 last = recursion->heap[--recursion->heap_count];
    u32 at = 0;
    for (;;) {
        u32 child = 2 * at + 1;
        if (child >= recursion->heap_count) break;
        if (child + 1 < recursion->heap_count &&
            queue_before(recursion, recursion->heap[child + 1], recursion->heap[child])) {
            child++;
        }
        if (!queue_before(recursion, recursion->heap[child], last)) break;
        recursion->heap[at] = recursion->heap[child];
        at = child;
    }
    if (recursion->heap_count > 0) recursion->heap[at] = last;
    return top;
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
        if (err == OK) err = exec__keyset_add(&recursion->seen, key, &number, &added);
        if (err != OK) return exec__fail(exec, err, NULL);
        if (!added) return OK;
    }
    err = exec__rowbuf_add(&recursion->queue, recursion->row);
    if (err != OK) return exec__fail(exec, err, NULL);
    if (plan->u.recursive.key_count == 0) return OK;
    for (u32 i = 0; i < plan->u.recursive.key_count; i++) {
        err = exec__eval_in(exec, recursion->key[i], recursion->row, &recursion->node.bytes,
                            &recursion->key_cell[i]);
        if (err != OK) return err;
    }
    err = exec__rowbuf_add(&recursion->keys, recursion->key_cell);
    if (err == OK) err = heap_push(recursion, recursion->queue.rows - 1);
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

/* FIFO: when most rows are done, move the rest to fresh memory. */
static Err
queue_compact(Exec *exec, Recursive *recursion)
{
    u32 done = recursion->queue_next, left = recursion->queue.rows - done;
    if (recursion->node.plan->u.recursive.key_count > 0 || done < 1024 || left > done) return OK;
    exec__rowbuf_clear(&recursion->spare);
    for (u32 i = 0; i < left; i++) {
        Err err = exec__rowbuf_add(&recursion->spare,
                                   exec__rowbuf_row(&recursion->queue, done + i));
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    RowBuf swap = recursion->queue;
    recursion->queue = recursion->spare;
    recursion->spare = swap;
    recursion->queue_next = 0;
    return OK;
}

/* Make the next queued row current; *found_out false: the recursion is over. */
static Err
queue_take(Exec *exec, Recursive *recursion, bool *found_out)
{
    const PlanNode *plan = recursion->node.plan;
    u32 row;
    Err err = queue_compact(exec, recursion);
    if (err != OK) return err;
    if (plan->u.recursive.key_count > 0) {
        *found_out = recursion->heap_count > 0;
        if (!*found_out) return OK;
        row = heap_pop(recursion);
    } else {
        *found_out = recursion->queue_next < recursion->queue.rows;
        if (!*found_out) return OK;
        row = recursion->queue_next++;
    }
    exec__rowbuf_clear(&recursion->current);
    err = exec__rowbuf_add(&recursion->current, exec__rowbuf_row(&recursion->queue, row));
    if (err != OK) return exec__fail(exec, err, NULL);
    exec->shared[plan->u.recursive.material_no].current = recursion->current.cell;
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
    (void)exec;
    exec__keyset_free(&recursion->seen);
    exec__keymaker_free(&recursion->maker);
    exec__rowbuf_free(&recursion->queue);
    exec__rowbuf_free(&recursion->spare);
    exec__rowbuf_free(&recursion->keys);
    exec__rowbuf_free(&recursion->current);
    mem_free(recursion->heap);
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
    exec__rowbuf_init(exec, &recursion->queue, plan->columns);
    exec__rowbuf_init(exec, &recursion->spare, plan->columns);
    exec__rowbuf_init(exec, &recursion->keys, plan->u.recursive.key_count);
    exec__rowbuf_init(exec, &recursion->current, plan->columns);
    recursion->row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->columns, 1u));
    if (recursion->row == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    if (plan->u.recursive.distinct) {
        err = exec__keymaker_init(exec, &recursion->maker, plan->u.recursive.collation,
                                  plan->columns);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    err = recursive_programs(exec, recursion);
    if (err == OK) err = exec__node_open(exec, plan->u.recursive.initial, &recursion->initial);
    if (err == OK) err = exec__node_open(exec, plan->u.recursive.step, &recursion->step);
    return err;
}
