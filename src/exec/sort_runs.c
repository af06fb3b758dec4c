/*
 * sort_runs.c -- sorted runs in the temporary file: writing, merging with a heap.
 *
 * A record is the length of its key, the key, the row.
 */
#include "exec/sort_runs.h"

#include "exec/exec__write.h"
#include "exec/order.h"

void
exec__runs_init(SortRuns *runs, SortRunsOrder order, void *arg)
{
    *runs = (SortRuns){.order = order, .arg = arg};
}

static void
sources_close(Exec *exec, SortRuns *runs)
{
    for (u32 i = 0; i < runs->source_capacity; i++) {
        exec__reader_free(exec, &runs->source[i].reader);
    }
    runs->heap_count = 0;
    runs->fresh = false;
}

void
exec__runs_drop(Exec *exec, SortRuns *runs)
{
    sources_close(exec, runs);
    exec__writer_free(exec, &runs->writer);
    for (u32 i = 0; i < runs->count; i++) {
        exec__run_free(exec, &runs->run[i]);
    }
    runs->count = 0;
}

void
exec__runs_free(Exec *exec, SortRuns *runs)
{
    exec__runs_drop(exec, runs);
    mem_free(runs->run);
    mem_free(runs->source);
    mem_free(runs->heap);
    buf_free(&runs->head);
    *runs = (SortRuns){0};
}

/* ---- writing ---- */

Err
exec__runs_begin(Exec *exec, SortRuns *runs)
{
    (void)exec;
    if (runs->count == runs->capacity) {
        u32 capacity = MAX_OF(runs->capacity * 2, 8u);
        SpillRun *bigger = mem_realloc(runs->run, (size_t)capacity * sizeof(SpillRun));
        if (bigger == NULL) return ERR_NOMEM;
        runs->run = bigger;
        runs->capacity = capacity;
        /* Those of exec__runs_join() are being read: source i reads run i. */
        for (u32 i = 0; i < MIN_OF(runs->source_capacity, runs->count); i++) {
            runs->source[i].reader.run = &bigger[i];
        }
    }
    runs->run[runs->count] = (SpillRun){0};
    runs->writer.run = &runs->run[runs->count++];
    return OK;
}

Err
exec__runs_put(Exec *exec, SortRuns *runs, Slice key, Slice row)
{
    /* One copy more than needed, of the key alone: the writer takes two pieces. */
    Buf *head = &runs->head;
    u8 length[4];
    store_u32(length, (u32)key.bytes);
    buf_clear(head);
    Err err = buf_append(head, length, sizeof(length));
    if (err == OK) err = buf_append(head, key.p, key.bytes);
    return err == OK ? exec__run_add(exec, &runs->writer, buf_slice(head), row) : err;
}

Err
exec__runs_end(Exec *exec, SortRuns *runs)
{
    return exec__run_flush(exec, &runs->writer);
}

/* ---- merging ---- */

static bool
source_before(const SortRuns *runs, u32 a, u32 b)
{
    const MergeSource *x = &runs->source[a], *y = &runs->source[b];
    int order;
    if (runs->order != NULL) {
        order = runs->order(runs->arg, x->key, y->key);
    } else if (x->prefix != y->prefix) {
        return x->prefix < y->prefix;
    } else {
        order = slice_compare(x->key, y->key);
    }
    return order != 0 ? order < 0 : a < b;
}

static Err
source_read(Exec *exec, SortRuns *runs, u32 number, bool *found_out)
{
    MergeSource *source = &runs->source[number];
    Slice record;
    Err err = exec__reader_next(exec, &source->reader, &record, found_out);
    if (err != OK || !*found_out) return err;
    u32 bytes = load_u32(record.p);
    ASSERT(bytes <= record.bytes - 4);
    source->key = (Slice){record.p + 4, bytes};
    source->row = (Slice){record.p + 4 + bytes, record.bytes - 4 - bytes};
    if (runs->order == NULL) source->prefix = exec__key_prefix(source->key.p, source->key.bytes);
    return OK;
}

static void
heap_up(SortRuns *runs, u32 number)
{
    u32 at = runs->heap_count++;
    while (at > 0 && source_before(runs, number, runs->heap[(at - 1) / 2])) {
        runs->heap[at] = runs->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    runs->heap[at] = number;
}

/* The top's record has changed, or `number` takes its place. */
static void
heap_down(SortRuns *runs, u32 number)
{
    u32 at = 0;
    for (;;) {
        u32 child = 2 * at + 1;
        if (child >= runs->heap_count) break;
        if (child + 1 < runs->heap_count &&
            source_before(runs, runs->heap[child + 1], runs->heap[child])) {
            child++;
        }
        if (!source_before(runs, runs->heap[child], number)) break;
        runs->heap[at] = runs->heap[child];
        at = child;
    }
    runs->heap[at] = number;
}

static Err
sources_reserve(SortRuns *runs, u32 count)
{
    if (count <= runs->source_capacity) return OK;
    MergeSource *source = mem_realloc(runs->source, count * sizeof(MergeSource));
    if (source == NULL) return ERR_NOMEM;
    runs->source = source;
    memset(source + runs->source_capacity, 0,
           (count - runs->source_capacity) * sizeof(MergeSource));
    runs->source_capacity = count;
    u32 *heap = mem_realloc(runs->heap, count * sizeof(u32));
    if (heap == NULL) return ERR_NOMEM;
    runs->heap = heap;
    return OK;
}

/* Read the runs [first, first + count). */
static Err
sources_open(Exec *exec, SortRuns *runs, u32 first, u32 count)
{
    Err err = sources_reserve(runs, MAX_OF(count, 1u));
    runs->heap_count = 0;
    runs->fresh = true;
    for (u32 i = 0; err == OK && i < count; i++) {
        bool found;
        runs->source[i].reader.consumes = true;
        exec__reader_start(&runs->source[i].reader, &runs->run[first + i], 0);
        err = source_read(exec, runs, i, &found);
        if (err == OK && found) heap_up(runs, i);
    }
    return err;
}

Err
exec__runs_peek(Exec *exec, SortRuns *runs, Slice *key_out, Slice *row_out, bool *found_out)
{
    if (!runs->fresh && runs->heap_count > 0) {
        u32 top = runs->heap[0];
        bool found;
        Err err = source_read(exec, runs, top, &found);
        if (err != OK) return err;
        if (!found) top = runs->heap[--runs->heap_count];
        if (runs->heap_count > 0) heap_down(runs, top);
    }
    runs->fresh = true;
    *found_out = runs->heap_count > 0;
    if (!*found_out) return OK;
    *key_out = runs->source[runs->heap[0]].key;
    *row_out = runs->source[runs->heap[0]].row;
    return OK;
}

Err
exec__runs_next(Exec *exec, SortRuns *runs, Slice *key_out, Slice *row_out, bool *found_out)
{
    Err err = exec__runs_peek(exec, runs, key_out, row_out, found_out);
    exec__runs_pass(runs);
    return err;
}

/* The runs [first, first + count) become run number `to`, which is one of them or before them. */
static Err
merge_into(Exec *exec, SortRuns *runs, u32 first, u32 count, u32 to)
{
    SpillRun merged = {0};
    bool found = true;
    runs->writer.run = &merged;
    Err err = sources_open(exec, runs, first, count);
    while (err == OK && found) {
        Slice key, row;
        err = exec__runs_next(exec, runs, &key, &row, &found);
        if (err == OK && found) err = exec__runs_put(exec, runs, key, row);
    }
    if (err == OK) err = exec__run_flush(exec, &runs->writer);
    for (u32 i = 0; i < count; i++) {
        exec__run_free(exec, &runs->run[first + i]);
    }
    runs->run[to] = merged;
    return err;
}

Err
exec__runs_merge(Exec *exec, SortRuns *runs)
{
    u32 ways = exec__spill_ways(exec);
    while (runs->count > ways) {
        REACHED("exec: runs were merged in several passes");
        u32 to = 0;
        for (u32 first = 0; first < runs->count; first += ways) {
            u32 count = MIN_OF(ways, runs->count - first);
            Err err = merge_into(exec, runs, first, count, to++);
            if (err != OK) return err;
        }
        runs->count = to;
    }
    exec__writer_free(exec, &runs->writer);
    return sources_open(exec, runs, 0, runs->count);
}

/* Everything that has not been given becomes one run. */
static Err
merge_open(Exec *exec, SortRuns *runs)
{
    SpillRun merged = {0};
    bool found = true;
    runs->writer.run = &merged;
    Err err = OK;
    while (err == OK && found) {
        Slice key, row;
        err = exec__runs_next(exec, runs, &key, &row, &found);
        if (err == OK && found) err = exec__runs_put(exec, runs, key, row);
    }
    if (err == OK) err = exec__run_flush(exec, &runs->writer);
    for (u32 i = 0; i < runs->count; i++) {
        exec__run_free(exec, &runs->run[i]);
    }
    runs->run[0] = merged;
    runs->count = 1;
    return err == OK ? sources_open(exec, runs, 0, 1) : err;
}

Err
exec__runs_join(Exec *exec, SortRuns *runs)
{
    u32 number = runs->count - 1;
    Slice key, row;
    bool found;
    Err err = sources_reserve(runs, runs->count);
    if (err == OK) err = exec__runs_peek(exec, runs, &key, &row, &found); /* The top is due. */
    if (err != OK) return err;
    MergeSource *source = &runs->source[number];
    source->reader.consumes = true;
    exec__reader_start(&source->reader, &runs->run[number], 0);
    err = source_read(exec, runs, number, &found);
    if (err == OK && found) heap_up(runs, number);
    if (err != OK || runs->count <= exec__spill_ways(exec)) return err;
    REACHED("exec: runs of a queue were merged");
    return merge_open(exec, runs);
}
