/*
 * row_queue.c -- the queue of a recursion: a list in three parts, or a heap over sorted runs.
 */
#include "exec/row_queue.h"

#include "exec/exec__write.h"

#define COMPACT_ROWS 1024u

static int
keys_order(const RowQueue *queue, const Cell *x, const Cell *y)
{
    for (u32 i = 0; i < queue->key_count; i++) {
        const PlanSortKey *key = &queue->key[i];
        bool null_x = x[i].type == CELL_NULL, null_y = y[i].type == CELL_NULL;
        if (null_x && null_y) continue;
        if (null_x || null_y) return null_x != key->nulls_last ? -1 : 1;
        int order = cell_compare(&x[i], &y[i], key->collation);
        if (order != 0) return key->desc ? -order : order;
    }
    i64 a = x[queue->key_count].u.i, b = y[queue->key_count].u.i;
    return a < b ? -1 : a > b;
}

static int
runs_order(void *arg, Slice a, Slice b)
{
    const RowQueue *queue = arg;
    u32 cells = queue->key_count + 1;
    exec__cells_decode(a, queue->compared, cells);
    exec__cells_decode(b, queue->compared + cells, cells);
    return keys_order(queue, queue->compared, queue->compared + cells);
}

Err
exec__queue_init(Exec *exec, RowQueue *queue, u32 columns, const PlanSortKey *key, u32 key_count)
{
    *queue = (RowQueue){.exec = exec, .key = key, .key_count = key_count};
    exec__spill_enlist(exec);
    exec__rowbuf_init(exec, &queue->rows, columns);
    exec__rowbuf_init(exec, &queue->head, columns);
    exec__rowbuf_init(exec, &queue->spare, columns);
    exec__rowbuf_init(exec, &queue->keys, key_count + 1);
    exec__rowbuf_init(exec, &queue->spare_keys, key_count + 1);
    exec__runs_init(&queue->runs, runs_order, queue);
    queue->writer.run = &queue->run;
    queue->reader.consumes = true;
    queue->merged = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(columns, 1u));
    queue->compared = ARENA_NEW_ARRAY(&exec->arena, Cell, 2 * (key_count + 1));
    return queue->merged != NULL && queue->compared != NULL ? OK : ERR_NOMEM;
}

void
exec__queue_clear(RowQueue *queue)
{
    exec__rowbuf_clear(&queue->rows);
    exec__rowbuf_clear(&queue->head);
    exec__rowbuf_clear(&queue->keys);
    queue->head_next = 0;
    queue->heap_count = 0;
    queue->arrived = 0;
    if (queue->held > 0) exec__spill_forget(queue->exec, &queue->held);
    if (queue->run.block != NULL) {
        exec__writer_free(queue->exec, &queue->writer);
        exec__reader_free(queue->exec, &queue->reader);
        exec__run_free(queue->exec, &queue->run);
        queue->writer.run = &queue->run;
        queue->reader.consumes = true;
        queue->in_run = 0;
    }
    if (queue->runs.count > 0) exec__runs_drop(queue->exec, &queue->runs);
}

void
exec__queue_free(RowQueue *queue)
{
    if (queue->exec == NULL) return;
    exec__queue_clear(queue);
    exec__writer_free(queue->exec, &queue->writer);
    exec__runs_free(queue->exec, &queue->runs);
    exec__rowbuf_free(&queue->rows);
    exec__rowbuf_free(&queue->head);
    exec__rowbuf_free(&queue->spare);
    exec__rowbuf_free(&queue->keys);
    exec__rowbuf_free(&queue->spare_keys);
    mem_free(queue->heap);
    buf_free(&queue->row_buf);
    buf_free(&queue->key_buf);
    queue->exec = NULL;
}

/* ---- first in, first out ---- */

static Err
tail_spill(RowQueue *queue)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < queue->rows.rows; i++) {
        buf_clear(&queue->row_buf);
        err = exec__cells_encode(&queue->row_buf, exec__rowbuf_row(&queue->rows, i),
                                 queue->rows.columns);
        if (err == OK) {
            err = exec__run_add(queue->exec, &queue->writer, buf_slice(&queue->row_buf),
                                SLICE_NONE);
        }
    }
    if (err == OK) err = exec__run_flush(queue->exec, &queue->writer);
    if (err != OK) return err;
    queue->in_run += queue->rows.rows;
    exec__rowbuf_drop(&queue->rows);
    return OK;
}

/* `head` has been given: the next block of the run takes its place, or the tail. */
static Err
head_fill(RowQueue *queue)
{
    exec__rowbuf_clear(&queue->head);
    queue->head_next = 0;
    if (queue->in_run == 0) {
        RowBuf swap = queue->head;
        queue->head = queue->rows;
        queue->rows = swap;
        return OK;
    }
    if (queue->reader.run == NULL) exec__reader_start(&queue->reader, &queue->run, 0);
    do {
        Slice record;
        bool found;
        Cell *row;
        Err err = exec__reader_next(queue->exec, &queue->reader, &record, &found);
        if (err == OK) err = exec__rowbuf_add_empty(&queue->head, &row);
        if (err != OK) return err;
        ASSERT(found);
        exec__cells_decode(record, row, queue->head.columns);
        for (u32 i = 0; err == OK && i < queue->head.columns; i++) {
            if (row[i].type >= CELL_TEXT) err = cell_copy(&row[i], &queue->head.bytes, &row[i]);
        }
        if (err != OK) return err;
        queue->in_run--;
    } while (queue->reader.left > 0);
    return OK;
}

static Err
take_first(RowQueue *queue, const Cell **row_out)
{
    if (queue->head_next == queue->head.rows) {
        Err err = head_fill(queue);
        if (err != OK) return err;
    }
    if (queue->head_next < queue->head.rows) {
        *row_out = exec__rowbuf_row(&queue->head, queue->head_next++);
    }
    return OK;
}

/* ---- by keys ---- */

/* Does the row in place a leave before that in place b? */
static bool
heap_before(const RowQueue *queue, u32 a, u32 b)
{
    return keys_order(queue, exec__rowbuf_row(&queue->keys, a), exec__rowbuf_row(&queue->keys, b)) <
           0;
}

static Err
heap_push(RowQueue *queue, u32 row)
{
    if (queue->heap_count == queue->heap_capacity) {
        u32 capacity = MAX_OF(queue->heap_capacity * 2, 16u);
        u32 *heap = mem_realloc(queue->heap, (size_t)capacity * sizeof(u32));
        if (heap == NULL) return ERR_NOMEM;
        queue->heap = heap;
        queue->heap_capacity = capacity;
    }
    u32 at = queue->heap_count++;
    while (at > 0 && heap_before(queue, row, queue->heap[(at - 1) / 2])) {
        queue->heap[at] = queue->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue->heap[at] = row;
    return OK;
}

static u32
heap_pop(RowQueue *queue)
{
    u32 top = queue->heap[0];
    u32 last = queue->heap[--queue->heap_count];
    u32 at = 0;
    for (;;) {
        u32 child = 2 * at + 1;
        if (child >= queue->heap_count) break;
        if (child + 1 < queue->heap_count &&
            heap_before(queue, queue->heap[child + 1], queue->heap[child])) {
            child++;
        }
        if (!heap_before(queue, queue->heap[child], last)) break;
        queue->heap[at] = queue->heap[child];
        at = child;
    }
    if (queue->heap_count > 0) queue->heap[at] = last;
    return top;
}

/* All rows of the heap become a run. */
static Err
heap_spill(RowQueue *queue)
{
    Exec *exec = queue->exec;
    Err err = exec__runs_begin(exec, &queue->runs);
    while (err == OK && queue->heap_count > 0) {
        u32 row = heap_pop(queue);
        buf_clear(&queue->row_buf);
        buf_clear(&queue->key_buf);
        err = exec__cells_encode(&queue->row_buf, exec__rowbuf_row(&queue->rows, row),
                                 queue->rows.columns);
        if (err == OK) {
            err = exec__cells_encode(&queue->key_buf, exec__rowbuf_row(&queue->keys, row),
                                     queue->key_count + 1);
        }
        if (err == OK) {
            err = exec__runs_put(exec, &queue->runs, buf_slice(&queue->key_buf),
                                 buf_slice(&queue->row_buf));
        }
    }
    if (err == OK) err = exec__runs_end(exec, &queue->runs);
    if (err == OK) err = exec__runs_join(exec, &queue->runs);
    if (err != OK) return err;
    exec__rowbuf_drop(&queue->rows);
    exec__rowbuf_drop(&queue->keys);
    return OK;
}

/* Rows that have left still stand in `rows`: when they are most, the others move. */
static Err
heap_compact(RowQueue *queue)
{
    u32 rows = queue->rows.rows;
    if (rows < COMPACT_ROWS || queue->heap_count > rows / 2) return OK;
    exec__rowbuf_clear(&queue->spare);
    exec__rowbuf_clear(&queue->spare_keys);
    for (u32 i = 0; i < queue->heap_count; i++) {
        u32 row = queue->heap[i];
        Err err = exec__rowbuf_add(&queue->spare, exec__rowbuf_row(&queue->rows, row));
        if (err == OK) {
            err = exec__rowbuf_add(&queue->spare_keys, exec__rowbuf_row(&queue->keys, row));
        }
        if (err != OK) return err;
        queue->heap[i] = i; /* The heap's shape does not depend on places. */
    }
    RowBuf swap = queue->rows;
    queue->rows = queue->spare;
    queue->spare = swap;
    swap = queue->keys;
    queue->keys = queue->spare_keys;
    queue->spare_keys = swap;
    exec__rowbuf_drop(&queue->spare);
    exec__rowbuf_drop(&queue->spare_keys);
    return OK;
}

static Err
take_least(RowQueue *queue, const Cell **row_out)
{
    Exec *exec = queue->exec;
    Err err = heap_compact(queue);
    if (err != OK) return err;
    bool found = false;
    Slice key, row;
    if (queue->runs.count > 0) err = exec__runs_peek(exec, &queue->runs, &key, &row, &found);
    if (err != OK) return err;
    if (found && queue->heap_count > 0) {
        exec__cells_decode(key, queue->compared, queue->key_count + 1);
        found = keys_order(queue, queue->compared, exec__rowbuf_row(&queue->keys, queue->heap[0])) <
                0;
    }
    if (found) {
        exec__cells_decode(row, queue->merged, queue->rows.columns);
        exec__runs_pass(&queue->runs);
        *row_out = queue->merged;
    } else if (queue->heap_count > 0) {
        *row_out = exec__rowbuf_row(&queue->rows, heap_pop(queue));
    }
    return OK;
}

static Err
push_key(RowQueue *queue, const Cell *key)
{
    Cell *to;
    Err err = exec__rowbuf_add_empty(&queue->keys, &to);
    for (u32 i = 0; err == OK && i < queue->key_count; i++) {
        err = exec__rowbuf_set(&queue->keys, queue->keys.rows - 1, i, &key[i]);
    }
    if (err != OK) return err;
    to[queue->key_count] = cell_int((i64)queue->arrived++);
    return heap_push(queue, queue->rows.rows - 1);
}

/* ---- both ---- */

Err
exec__queue_push(RowQueue *queue, const Cell *row, const Cell *key)
{
    Err err = exec__rowbuf_add(&queue->rows, row);
    if (err == OK && queue->key_count > 0) err = push_key(queue, key);
    if (err != OK) return err;
    /* First in, first out: what is added now will be taken from `head`, and have company then. */
    u64 memory = exec__rowbuf_memory(&queue->rows);
    memory += queue->key_count > 0 ? exec__rowbuf_memory(&queue->keys) : memory;
    bool due = exec__spill_due(queue->exec, &queue->held, memory);
    if (!due) return OK;
    return queue->key_count > 0 ? heap_spill(queue) : tail_spill(queue);
}

Err
exec__queue_take(RowQueue *queue, const Cell **row_out)
{
    *row_out = NULL;
    return queue->key_count > 0 ? take_least(queue, row_out) : take_first(queue, row_out);
}
