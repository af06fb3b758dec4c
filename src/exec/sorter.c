/*
 * sorter.c -- a stable sort of rows by keys, whole or only the first N.
 *
 * Invariant: an item's `row` is its place in `rows`, and rows stand there in the order they came;
 * so the place breaks ties.  Top-N throws losers away whenever twice as many rows as wanted have
 * gathered, and from then on refuses rows that cannot win.
 */
#include "exec/sorter.h"

#define PRUNE_SLACK 1024u

Err
exec__sorter_init(Exec *exec, Sorter *sorter, const PlanSortKey *key, u32 key_count,
                  u32 row_columns)
{
    *sorter = (Sorter){.key_count = key_count, .rows_max = U64_MAX};
    exec__rowbuf_init(exec, &sorter->rows, row_columns);
    exec__rowbuf_init(exec, &sorter->keys, key_count);
    exec__rowbuf_init(exec, &sorter->spare, row_columns);
    exec__rowbuf_init(exec, &sorter->spare_keys, key_count);
    arena_init(&sorter->key_bytes, exec->env->account);
    arena_init(&sorter->spare_bytes, exec->env->account);
    sorter->key = ARENA_NEW_ARRAY(&exec->arena, KeyColumn, MAX_OF(key_count, 1u));
    if (sorter->key == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < key_count; i++) {
        /* nulls_last counts before DESC turns the column. */
        sorter->key[i] = (KeyColumn){.collation = key[i].collation,
                                     .desc = key[i].desc,
                                     .nulls_last = key[i].nulls_last != key[i].desc};
        if (key[i].collation != NULL && key[i].collation->kind == COLLATION_HOST) {
            sorter->by_cells = true;
        }
    }
    return OK;
}

void
exec__sorter_free(Sorter *sorter)
{
    exec__rowbuf_free(&sorter->rows);
    exec__rowbuf_free(&sorter->keys);
    exec__rowbuf_free(&sorter->spare);
    exec__rowbuf_free(&sorter->spare_keys);
    arena_free(&sorter->key_bytes);
    arena_free(&sorter->spare_bytes);
    buf_free(&sorter->key_buf);
    mem_free(sorter->item);
    mem_free(sorter->scratch);
    mem_free(sorter->order);
    mem_free(sorter->order_scratch);
    *sorter = (Sorter){0};
}

void
exec__sorter_start(Sorter *sorter, u64 rows_max)
{
    exec__rowbuf_clear(&sorter->rows);
    exec__rowbuf_clear(&sorter->keys);
    arena_reset(&sorter->key_bytes);
    sorter->count = 0;
    sorter->has_bar = false;
    sorter->rows_max = rows_max;
}

static Err
sorter_grow(Sorter *sorter)
{
    if (sorter->count < sorter->capacity) return OK;
    u32 capacity = MAX_OF(sorter->capacity * 2, 64u);
    if (sorter->capacity > (u32)1 << 30) return ERR_NOMEM;
    u32 *order = mem_realloc(sorter->order, (size_t)capacity * sizeof(u32));
    if (order == NULL) return ERR_NOMEM;
    sorter->order = order;
    if (sorter->by_cells) {
        u32 *scratch = mem_realloc(sorter->order_scratch, (size_t)capacity * sizeof(u32));
        if (scratch == NULL) return ERR_NOMEM;
        sorter->order_scratch = scratch;
    } else {
        SortItem *item = mem_realloc(sorter->item, (size_t)capacity * sizeof(SortItem));
        if (item == NULL) return ERR_NOMEM;
        sorter->item = item;
        SortItem *scratch = mem_realloc(sorter->scratch, (size_t)capacity * sizeof(SortItem));
        if (scratch == NULL) return ERR_NOMEM;
        sorter->scratch = scratch;
    }
    sorter->capacity = capacity;
    return OK;
}

/* Order of two rows by their key cells. */
static int
cells_order(const Sorter *sorter, const Cell *a, const Cell *b)
{
    for (u32 i = 0; i < sorter->key_count; i++) {
        const KeyColumn *key = &sorter->key[i];
        bool null_a = a[i].type == CELL_NULL, null_b = b[i].type == CELL_NULL;
        int order;
        if (null_a || null_b) {
            order = null_a && null_b ? 0 : null_a ? -1 : 1;
            if (key->nulls_last) order = -order;
        } else {
            order = cell_compare(&a[i], &b[i], key->collation);
        }
        if (order != 0) return key->desc ? -order : order;
    }
    return 0;
}

static bool
cells_before(const void *arg, u32 a, u32 b)
{
    const Sorter *sorter = arg;
    int order = cells_order(sorter, exec__rowbuf_row(&sorter->keys, a),
                            exec__rowbuf_row(&sorter->keys, b));
    return order != 0 ? order < 0 : a < b;
}

static void
sort_now(Sorter *sorter)
{
    if (sorter->by_cells) {
        for (u32 i = 0; i < sorter->count; i++) {
            sorter->order[i] = i;
        }
        exec__order_sort(sorter->order, sorter->order_scratch, sorter->count, cells_before, sorter);
        return;
    }
    exec__items_sort(sorter->item, sorter->scratch, sorter->count);
    for (u32 i = 0; i < sorter->count; i++) {
        sorter->order[i] = sorter->item[i].row;
    }
}

static bool
number_before(const void *arg, u32 a, u32 b)
{
    (void)arg;
    return a < b;
}

static Err
item_set(Sorter *sorter, SortItem *item, Slice key, u32 row)
{
    u8 *bytes = arena_bytes(&sorter->key_bytes, MAX_OF(key.bytes, (size_t)1));
    if (bytes == NULL) return ERR_NOMEM;
    memcpy(bytes, key.p, key.bytes);
    *item = (SortItem){.prefix = exec__key_prefix(key.p, key.bytes),
                       .key = bytes,
                       .key_bytes = (u32)key.bytes,
                       .row = row};
    return OK;
}

/* Copy the rows that are kept to the spare buffers, in the order they came, and swap. */
static Err
keep_first(Sorter *sorter, u32 kept)
{
    if (!sorter->by_cells) {
        /* By place; then item i belongs to the ith row kept. */
        for (u32 i = 0; i < kept; i++) {
            sorter->scratch[i] = sorter->item[i];
        }
    }
    u32 *place = sorter->order;
    u32 *scratch = sorter->order + kept; /* There are at least twice as many as are kept. */
    exec__order_sort(place, scratch, kept, number_before, NULL);
    exec__rowbuf_clear(&sorter->spare);
    exec__rowbuf_clear(&sorter->spare_keys);
    for (u32 i = 0; i < kept; i++) {
        Err err = exec__rowbuf_add(&sorter->spare, exec__rowbuf_row(&sorter->rows, place[i]));
        if (err == OK && sorter->by_cells) {
            err = exec__rowbuf_add(&sorter->spare_keys, exec__rowbuf_row(&sorter->keys, place[i]));
        }
        if (err != OK) return err;
    }
    RowBuf swap = sorter->rows;
    sorter->rows = sorter->spare;
    sorter->spare = swap;
    swap = sorter->keys;
    sorter->keys = sorter->spare_keys;
    sorter->spare_keys = swap;
    if (sorter->by_cells) return OK;
    Arena old = sorter->key_bytes;
    sorter->key_bytes = sorter->spare_bytes;
    sorter->spare_bytes = old;
    arena_reset(&sorter->key_bytes);
    for (u32 i = 0; i < kept; i++) {
        SortItem item = sorter->scratch[i];
        u32 low = 0, high = kept;
        while (high - low > 1) {
            u32 middle = low + (high - low) / 2;
            if (place[middle] <= item.row) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Err err = item_set(sorter, &sorter->item[i], SLICE(item.key, item.key_bytes), low);
        if (err != OK) return err;
    }
    return OK;
}

/* Top-N: throw away what cannot be among the first rows_max. */
static Err
prune(Sorter *sorter)
{
    if (sorter->count / 2 < sorter->rows_max + PRUNE_SLACK) return OK;
    u32 kept = (u32)sorter->rows_max;
    sort_now(sorter);
    /* by_cells: the last row kept becomes the bar, wherever it goes. */
    u32 last = kept > 0 ? sorter->order[kept - 1] : 0;
    Err err = keep_first(sorter, kept);
    if (err != OK) return err;
    if (sorter->by_cells && kept > 0) {
        u32 at = 0;
        while (sorter->order[at] != last) {
            at++;
        }
        sorter->bar_row = at;
    }
    sorter->count = kept;
    sorter->has_bar = true;
    return OK;
}

/* Can a row with that key still be among the first rows_max?  Ties go to the older ones. */
static bool
beats_bar(const Sorter *sorter, const Cell *key, Slice bytes)
{
    if (!sorter->has_bar) return true;
    if (sorter->rows_max == 0) return false;
    if (sorter->by_cells) {
        return cells_order(sorter, key, exec__rowbuf_row(&sorter->keys, sorter->bar_row)) < 0;
    }
    SortItem item = {.prefix = exec__key_prefix(bytes.p, bytes.bytes),
                     .key = bytes.p,
                     .key_bytes = (u32)bytes.bytes,
                     .row = U32_MAX};
    return exec__item_before(&item, &sorter->item[sorter->rows_max - 1]);
}

Err
exec__sorter_add(Sorter *sorter, const Cell *key, const Cell *row)
{
    Err err = OK;
    Slice bytes = SLICE_NONE;
    if (!sorter->by_cells) {
        buf_clear(&sorter->key_buf);
        err = key_append_cells(&sorter->key_buf, key, sorter->key, sorter->key_count);
        if (err != OK) return err;
        bytes = buf_slice(&sorter->key_buf);
    }
    if (!beats_bar(sorter, key, bytes)) return OK;
    err = sorter_grow(sorter);
    if (err == OK) err = exec__rowbuf_add(&sorter->rows, row);
    if (err != OK) return err;
    if (sorter->by_cells) {
        err = exec__rowbuf_add(&sorter->keys, key);
    } else {
        err = item_set(sorter, &sorter->item[sorter->count], bytes, sorter->rows.rows - 1);
    }
    if (err != OK) return err;
    sorter->count++;
    return sorter->rows_max < U32_MAX / 4 ? prune(sorter) : OK;
}

Err
exec__sorter_finish(Sorter *sorter)
{
    sort_now(sorter);
    if (sorter->count > sorter->rows_max) sorter->count = (u32)sorter->rows_max;
    return OK;
}
