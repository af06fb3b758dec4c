/*
 * sort.c -- see sort.h.
 *
 * A run in the file is its items one after the other: key length, payload length (u32), key,
 * payload.  Merging reads each run through a window that grows to the largest item.
 */
#include "transfer/sort.h"

#include "rt/file.h"

#define PORTION_BYTES ((size_t)64 << 20)
#define WINDOW_BYTES  ((size_t)256 << 10)
#define HEAD_BYTES    8u

typedef struct Item {
    const u8 *bytes; /* Key, then payload. */
    u32 key_bytes, payload_bytes;
} Item;

typedef struct Run {
    u64 at, end; /* Not yet read, in the file. */
    Buf window;
    size_t used; /* Of the window. */
    Item item;   /* The first of what is left. */
} Run;

struct Sort {
    size_t portion_bytes, held_bytes;
    Arena bytes;
    Item *item;
    size_t items, item_capacity;
    RtFile *file;
    u64 file_bytes;
    Buf out;
    Run *run;
    u32 runs;
};

Err
sort_open(size_t portion_bytes, Sort **sort_out)
{
    *sort_out = MEM_NEW(Sort);
    if (*sort_out == NULL) return ERR_NOMEM;
    (*sort_out)->portion_bytes = portion_bytes != 0 ? portion_bytes : PORTION_BYTES;
    arena_init(&(*sort_out)->bytes, NULL);
    return OK;
}

void
sort_close(Sort *sort)
{
    if (sort == NULL) return;
    for (u32 i = 0; i < sort->runs; i++)
        buf_free(&sort->run[i].window);
    mem_free(sort->run);
    mem_free(sort->item);
    arena_free(&sort->bytes);
    buf_free(&sort->out);
    rt_file_close(sort->file);
    mem_free(sort);
}

static int
compare_items(const void *a, const void *b)
{
    const Item *x = a, *y = b;
    return slice_compare(SLICE(x->bytes, x->key_bytes), SLICE(y->bytes, y->key_bytes));
}

static Slice
item_payload(const Item *item)
{
    return SLICE(item->bytes + item->key_bytes, item->payload_bytes);
}

/* ---- portions ---- */

static Err
out_flush(Sort *sort, ErrMsg *msg)
{
    Err err = rt_file_write(sort->file, sort->file_bytes, sort->out.p, sort->out.bytes, msg);
    if (err == OK) sort->file_bytes += sort->out.bytes;
    buf_clear(&sort->out);
    return err;
}

static Err
item_write(Sort *sort, const Item *item, ErrMsg *msg)
{
    u8 head[HEAD_BYTES];
    store_u32(head, item->key_bytes);
    store_u32(head + 4, item->payload_bytes);
    Err err = buf_append(&sort->out, head, sizeof(head));
    if (err == OK)
        err = buf_append(&sort->out, item->bytes, (size_t)item->key_bytes + item->payload_bytes);
    if (err != OK) return err_set(msg, err, NULL);
    return sort->out.bytes < WINDOW_BYTES ? OK : out_flush(sort, msg);
}

static Err
portion_write(Sort *sort, ErrMsg *msg)
{
    Err err = OK;
    if (sort->file == NULL) err = rt_file_open_temp(NULL, &sort->file, msg);
    if (err != OK) return err;
    Run *bigger = mem_realloc(sort->run, (sort->runs + 1) * sizeof(Run));
    if (bigger == NULL) return err_set(msg, ERR_NOMEM, NULL);
    sort->run = bigger;
    Run *run = &sort->run[sort->runs++];
    *run = (Run){.at = sort->file_bytes};
    for (size_t i = 0; err == OK && i < sort->items; i++)
        err = item_write(sort, &sort->item[i], msg);
    if (err == OK) err = out_flush(sort, msg);
    run->end = sort->file_bytes;
    sort->items = 0;
    sort->held_bytes = 0;
    arena_reset(&sort->bytes);
    return err;
}

Err
sort_add(Sort *sort, Slice key, Slice payload, ErrMsg *msg)
{
    size_t bytes = key.bytes + payload.bytes;
    if (sort->items > 0 && sort->held_bytes + bytes + sizeof(Item) > sort->portion_bytes) {
        sort_items(sort->item, sort->items, sizeof(Item), compare_items);
        Err err = portion_write(sort, msg);
        if (err != OK) return err;
    }
    if (sort->items == sort->item_capacity) {
        size_t capacity = sort->item_capacity * 2 + 1024;
        Item *bigger = mem_realloc(sort->item, capacity * sizeof(Item));
        if (bigger == NULL) return err_set(msg, ERR_NOMEM, NULL);
        sort->item = bigger;
        sort->item_capacity = capacity;
    }
    u8 *copy = arena_bytes(&sort->bytes, bytes + 1);
    if (copy == NULL) return err_set(msg, ERR_NOMEM, NULL);
    if (key.bytes > 0) memcpy(copy, key.p, key.bytes);
    if (payload.bytes > 0) memcpy(copy + key.bytes, payload.p, payload.bytes);
    sort->item[sort->items++] = (Item){copy, (u32)key.bytes, (u32)payload.bytes};
    sort->held_bytes += bytes + sizeof(Item);
    return OK;
}

/* ---- merging ---- */

/* Have `bytes` bytes of the run at window + used. */
static Err
run_need(Sort *sort, Run *run, size_t bytes, ErrMsg *msg)
{
    size_t left = run->window.bytes - run->used;
    if (left >= bytes) return OK;
    if (left > 0) memmove(run->window.p, run->window.p + run->used, left);
    run->window.bytes = left;
    run->used = 0;
    size_t want = (size_t)MIN_OF(run->end - run->at, (u64)MAX_OF(WINDOW_BYTES, bytes - left));
    Err err = buf_reserve(&run->window, want);
    if (err != OK) return err_set(msg, err, NULL);
    err = rt_file_read_exact(sort->file, run->at, run->window.p + left, want, msg);
    run->at += want;
    run->window.bytes += want;
    return err;
}

/* Read the next item; *end_out: there is none. */
static Err
run_next(Sort *sort, Run *run, bool *end_out, ErrMsg *msg)
{
    *end_out = run->used == run->window.bytes && run->at == run->end;
    if (*end_out) return OK;
    Err err = run_need(sort, run, HEAD_BYTES, msg);
    if (err != OK) return err;
    u32 key_bytes = load_u32(run->window.p + run->used);
    u32 payload_bytes = load_u32(run->window.p + run->used + 4);
    size_t bytes = HEAD_BYTES + (size_t)key_bytes + payload_bytes;
    err = run_need(sort, run, bytes, msg);
    run->item = (Item){run->window.p + run->used + HEAD_BYTES, key_bytes, payload_bytes};
    run->used += bytes;
    return err;
}

/* Let the run at `at` sink to its place in the heap. */
static void
heap_sink(Run **heap, u32 count, u32 at)
{
    for (;;) {
        u32 child = 2 * at + 1;
        if (child >= count) return;
        if (child + 1 < count && compare_items(&heap[child + 1]->item, &heap[child]->item) < 0)
            child++;
        if (compare_items(&heap[at]->item, &heap[child]->item) <= 0) return;
        Run *run = heap[at];
        heap[at] = heap[child];
        heap[child] = run;
        at = child;
    }
}

static Err
runs_merge(Sort *sort, Run **heap, SortEach each, void *arg, ErrMsg *msg)
{
    u32 count = 0;
    bool end;
    for (u32 i = 0; i < sort->runs; i++) {
        Err err = run_next(sort, &sort->run[i], &end, msg);
        if (err != OK) return err;
        if (!end) heap[count++] = &sort->run[i];
    }
    for (u32 i = count / 2; i-- > 0;)
        heap_sink(heap, count, i);
    while (count > 0) {
        Err err = each(arg, item_payload(&heap[0]->item));
        if (err == OK) err = run_next(sort, heap[0], &end, msg);
        if (err != OK) return err;
        if (end) heap[0] = heap[--count];
        heap_sink(heap, count, 0);
    }
    return OK;
}

Err
sort_drain(Sort *sort, SortEach each, void *arg, ErrMsg *msg)
{
    Err err = OK;
    if (sort->items > 1) sort_items(sort->item, sort->items, sizeof(Item), compare_items);
    if (sort->runs == 0) {
        for (size_t i = 0; err == OK && i < sort->items; i++)
            err = each(arg, item_payload(&sort->item[i]));
        return err;
    }
    if (sort->items > 0) err = portion_write(sort, msg);
    if (err != OK) return err;
    Run **heap = MEM_NEW_ARRAY(Run *, sort->runs);
    if (heap == NULL) return err_set(msg, ERR_NOMEM, NULL);
    err = runs_merge(sort, heap, each, arg, msg);
    mem_free(heap);
    return err;
}
