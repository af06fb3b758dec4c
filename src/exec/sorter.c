/*
 * sorter.c -- a stable sort of rows by keys, whole or only the first N.
 *
 * Invariant: an item's `row` is its place in `rows`, and rows stand there in the order they came;
 * so the place breaks ties.  Top-N throws losers away whenever twice as many rows as wanted have
 * gathered, and from then on refuses rows that cannot win.
 *
 * A run in the temporary file has its keys as key bytes, whatever mode its rows were sorted in, so
 * that runs of numbers and others can be merged; only with host collations they are cells.
 */
#include "exec/sorter.h"

#include "rt/task.h"

#define PRUNE_SLACK      1024u
#define SPILL_CHECK_ROWS 4096u

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

/* The same of two keys of runs. */
static int
runs_order(void *arg, Slice a, Slice b)
{
    const Sorter *sorter = arg;
    exec__cells_decode(a, sorter->compared, sorter->key_count);
    exec__cells_decode(b, sorter->compared + sorter->key_count, sorter->key_count);
    return cells_order(sorter, sorter->compared, sorter->compared + sorter->key_count);
}

Err
exec__sorter_init(Exec *exec, Sorter *sorter, const PlanSortKey *key, u32 key_count,
                  u32 row_columns)
{
    *sorter = (Sorter){.exec = exec, .key_count = key_count, .rows_max = U64_MAX};
    exec__spill_enlist(exec);
    exec__rowbuf_init(exec, &sorter->rows, row_columns);
    exec__rowbuf_init(exec, &sorter->keys, key_count);
    exec__rowbuf_init(exec, &sorter->spare, row_columns);
    exec__rowbuf_init(exec, &sorter->spare_keys, key_count);
    arena_init(&sorter->key_bytes, exec->account);
    arena_init(&sorter->spare_bytes, exec->account);
    sorter->key = ARENA_NEW_ARRAY(&exec->arena, KeyColumn, MAX_OF(key_count, 1u));
    if (sorter->key == NULL) return ERR_NOMEM;
    bool by_cells = false;
    for (u32 i = 0; i < key_count; i++) {
        /* nulls_last counts before DESC turns the column. */
        sorter->key[i] = (KeyColumn){.collation = key[i].collation,
                                     .desc = key[i].desc,
                                     .nulls_last = key[i].nulls_last != key[i].desc};
        if (key[i].collation != NULL && key[i].collation->kind == COLLATION_HOST) {
            by_cells = true;
        }
    }
    sorter->mode_first = by_cells                           ? SORT_CELLS
                         : key_count >= 1 && key_count <= 2 ? SORT_NUMBERS
                                                            : SORT_BYTES;
    sorter->mode = sorter->mode_first;
    sorter->merged = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(row_columns, 1u));
    sorter->compared = ARENA_NEW_ARRAY(&exec->arena, Cell, by_cells ? 2 * key_count : 1);
    if (sorter->merged == NULL || sorter->compared == NULL) return ERR_NOMEM;
    exec__runs_init(&sorter->runs, by_cells ? runs_order : NULL, sorter);
    return OK;
}

/* What sorting needs beside the rows. */
static void
arrays_free(Sorter *sorter)
{
    mem_free(sorter->item);
    mem_free(sorter->scratch);
    mem_free(sorter->order);
    mem_free(sorter->order_scratch);
    mem_free(sorter->mapped[0]);
    mem_free(sorter->mapped[1]);
    exec__number_room_free(&sorter->room);
    sorter->item = sorter->scratch = NULL;
    sorter->order = sorter->order_scratch = NULL;
    sorter->mapped[0] = sorter->mapped[1] = NULL;
    sorter->capacity = 0;
}

void
exec__sorter_free(Sorter *sorter)
{
    if (sorter->exec == NULL) return; /* Never opened. */
    exec__spill_forget(sorter->exec, &sorter->held);
    exec__runs_free(sorter->exec, &sorter->runs);
    buf_free(&sorter->row_buf);
    exec__rowbuf_free(&sorter->rows);
    exec__rowbuf_free(&sorter->keys);
    exec__rowbuf_free(&sorter->spare);
    exec__rowbuf_free(&sorter->spare_keys);
    arena_free(&sorter->key_bytes);
    arena_free(&sorter->spare_bytes);
    buf_free(&sorter->key_buf);
    mem_free(sorter->near);
    mem_free(sorter->place);
    arrays_free(sorter);
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
    sorter->mode = sorter->mode_first;
    sorter->kind[0] = sorter->kind[1] = CELL_NULL;
    sorter->rows_max = rows_max;
    sorter->next = 0;
    sorter->check_at = 0;
    exec__spill_forget(sorter->exec, &sorter->held);
    if (sorter->runs.count > 0) exec__runs_drop(sorter->exec, &sorter->runs);
    sorter->merging = false;
}

static Err
grow_array(void **array, size_t count, size_t item_bytes)
{
    void *bigger = mem_realloc(*array, count * item_bytes);
    if (bigger == NULL) return ERR_NOMEM;
    *array = bigger;
    return OK;
}

/* Arrays that another mode left may be smaller than `capacity`, so all in use are grown. */
static Err
sorter_grow(Sorter *sorter, u32 more)
{
    if (more <= sorter->capacity - sorter->count && sorter->grown_mode == sorter->mode) return OK;
    u32 capacity = MAX_OF(sorter->capacity, 64u);
    while (capacity - sorter->count < more) {
        if (capacity > (u32)1 << 30) return ERR_NOMEM;
        capacity *= 2;
    }
    void *order = sorter->order, *second = sorter->order_scratch, *item = sorter->item;
    void *scratch = sorter->scratch;
    Err err = grow_array(&order, capacity, sizeof(u32));
    if (err == OK && sorter->mode == SORT_CELLS) err = grow_array(&second, capacity, sizeof(u32));
    if (sorter->mode == SORT_BYTES) {
        if (err == OK) err = grow_array(&item, capacity, sizeof(SortItem));
        if (err == OK) err = grow_array(&scratch, capacity, sizeof(SortItem));
    } else if (sorter->mode == SORT_NUMBERS) {
        for (u32 k = 0; err == OK && k < sorter->key_count; k++) {
            void *mapped = sorter->mapped[k];
            err = grow_array(&mapped, capacity, sizeof(u64));
            sorter->mapped[k] = mapped;
        }
    }
    sorter->order = order;
    sorter->order_scratch = second;
    sorter->item = item;
    sorter->scratch = scratch;
    if (err != OK) return err;
    sorter->capacity = capacity;
    sorter->grown_mode = sorter->mode;
    return OK;
}

static bool
cells_before(const void *arg, u32 a, u32 b)
{
    const Sorter *sorter = arg;
    int order = cells_order(sorter, exec__rowbuf_row(&sorter->keys, a),
                            exec__rowbuf_row(&sorter->keys, b));
    return order != 0 ? order < 0 : a < b;
}

static Err
sort_now(Sorter *sorter)
{
    if (sorter->mode == SORT_NUMBERS) {
        return exec__number_order(&sorter->room, sorter->mapped, sorter->key_count, sorter->count,
                                  sorter->order);
    }
    if (sorter->mode == SORT_CELLS) {
        for (u32 i = 0; i < sorter->count; i++) {
            sorter->order[i] = i;
        }
        exec__order_sort(sorter->order, sorter->order_scratch, sorter->count, cells_before, sorter);
        return OK;
    }
    exec__items_sort(sorter->item, sorter->scratch, sorter->count, &sorter->place);
    for (u32 i = 0; i < sorter->count; i++) {
        sorter->order[i] = sorter->item[i].row;
    }
    return OK;
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

/* Which of the `kept` places, in rising order, is `row`? */
static u32
place_of(const u32 *place, u32 kept, u32 row)
{
    u32 low = 0, high = kept;
    while (high - low > 1) {
        u32 middle = low + (high - low) / 2;
        if (place[middle] <= row) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Move the rows that are kept to the spare buffers, in the order they came, and swap. */
static Err
rows_keep(Sorter *sorter, const u32 *place, u32 kept)
{
    exec__rowbuf_clear(&sorter->spare);
    exec__rowbuf_clear(&sorter->spare_keys);
    for (u32 i = 0; i < kept; i++) {
        Err err = exec__rowbuf_add(&sorter->spare, exec__rowbuf_row(&sorter->rows, place[i]));
        if (err == OK && sorter->mode == SORT_CELLS) {
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
    return OK;
}

/* Items of the rows that are kept: with fresh bytes and new places; they stay sorted. */
static Err
items_keep(Sorter *sorter, const u32 *place, u32 kept)
{
    if (sorter->mode == SORT_CELLS) return OK;
    if (sorter->mode == SORT_NUMBERS) {
        /* place[i] >= i: nothing is overwritten before it is read. */
        for (u32 k = 0; k < sorter->key_count; k++) {
            for (u32 i = 0; i < kept; i++) {
                sorter->mapped[k][i] = sorter->mapped[k][place[i]];
            }
        }
        return OK;
    }
    Arena old = sorter->key_bytes;
    sorter->key_bytes = sorter->spare_bytes;
    sorter->spare_bytes = old;
    arena_reset(&sorter->key_bytes);
    for (u32 i = 0; i < kept; i++) {
        SortItem item = sorter->item[i];
        Err err = item_set(sorter, &sorter->item[i], SLICE(item.key, item.key_bytes),
                           place_of(place, kept, item.row));
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
    Err err = sort_now(sorter);
    if (err != OK) return err;
    u32 last = kept > 0 ? sorter->order[kept - 1] : 0;
    u32 *place = sorter->order; /* There are at least twice as many as are kept. */
    exec__order_sort(place, sorter->order + kept, kept, number_before, NULL);
    err = rows_keep(sorter, place, kept);
    if (err == OK) err = items_keep(sorter, place, kept);
    if (err != OK) return err;
    if (kept > 0) sorter->bar_row = place_of(place, kept, last);
    for (u32 k = 0; kept > 0 && sorter->mode == SORT_NUMBERS && k < sorter->key_count; k++) {
        sorter->bar[k] = sorter->mapped[k][sorter->bar_row];
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
    if (sorter->mode == SORT_CELLS) {
        return cells_order(sorter, key, exec__rowbuf_row(&sorter->keys, sorter->bar_row)) < 0;
    }
    SortItem item = {.prefix = exec__key_prefix(bytes.p, bytes.bytes),
                     .key = bytes.p,
                     .key_bytes = (u32)bytes.bytes,
                     .row = U32_MAX};
    return exec__item_before(&item, &sorter->item[sorter->rows_max - 1]);
}

/* ---- numbers ---- */

/* Unsigned order of the result is the order of the integers, turned for DESC. */
static inline u64
map_int(i64 value, bool desc)
{
    u64 key = (u64)value ^ (u64)1 << 63;
    return desc ? ~key : key;
}

static inline u64
map_real(f64 value, bool desc)
{
    u64 key;
    f64 plain = value == 0.0 ? 0.0 : value; /* -0.0 is no less than 0.0. */
    memcpy(&key, &plain, sizeof(key));
    key = (key >> 63) != 0 ? ~key : key | (u64)1 << 63;
    return desc ? ~key : key;
}

static Cell
unmap(const Sorter *sorter, u32 k, u64 key)
{
    if (sorter->key[k].desc) key = ~key;
    if (sorter->kind[k] == CELL_INT) return cell_int((i64)(key ^ (u64)1 << 63));
    key = (key >> 63) != 0 ? key & ~((u64)1 << 63) : ~key;
    f64 value;
    memcpy(&value, &key, sizeof(value));
    return cell_real(value);
}

/* A key that is no number of the kind so far: numbers become key bytes. */
static Err
leave_numbers(Sorter *sorter)
{
    sorter->mode = SORT_BYTES;
    Err err = sorter_grow(sorter, 1);
    for (u32 i = 0; err == OK && i < sorter->count; i++) {
        buf_clear(&sorter->key_buf);
        for (u32 k = 0; err == OK && k < sorter->key_count; k++) {
            Cell key = unmap(sorter, k, sorter->mapped[k][i]);
            err = key_append_cell(&sorter->key_buf, &key, &sorter->key[k]);
        }
        if (err == OK) err = item_set(sorter, &sorter->item[i], buf_slice(&sorter->key_buf), i);
    }
    if (err != OK || !sorter->has_bar) return err;
    /* The bar is item[rows_max - 1] of the sorted items. */
    exec__items_sort(sorter->item, sorter->scratch, sorter->count, &sorter->place);
    return OK;
}

/* Are the keys numbers of the kinds that their columns have?  Their mappings. */
static inline bool
number_keys(Sorter *sorter, const Cell *cell, u64 *mapped)
{
    for (u32 k = 0; k < sorter->key_count; k++) {
        if (sorter->kind[k] == CELL_NULL && cell_is_number(&cell[k])) {
            sorter->kind[k] = cell[k].type;
        }
        if (cell[k].type != sorter->kind[k] || cell[k].type == CELL_NULL) return false;
        mapped[k] = cell[k].type == CELL_INT ? map_int(cell[k].u.i, sorter->key[k].desc)
                                             : map_real(cell[k].u.r, sorter->key[k].desc);
    }
    return true;
}

/* Can a row with these keys still be among the first rows_max? */
static inline bool
numbers_beat_bar(const Sorter *sorter, const u64 *mapped)
{
    if (!sorter->has_bar) return true;
    if (sorter->rows_max == 0) return false;
    if (mapped[0] != sorter->bar[0]) return mapped[0] < sorter->bar[0];
    return sorter->key_count > 1 && mapped[1] < sorter->bar[1];
}

/* ---- beyond the budget ---- */

#define ROW_EXTRA_BYTES 72u /* Of items, numbers and row numbers. */

static u64
sorter_memory(const Sorter *sorter)
{
    u64 row_bytes = (u64)sorter->rows.columns * sizeof(Cell) + ROW_EXTRA_BYTES;
    if (sorter->mode == SORT_CELLS) row_bytes += (u64)sorter->key_count * sizeof(Cell);
    return sorter->count * row_bytes + arena_used(&sorter->rows.bytes) +
           arena_used(&sorter->keys.bytes) + arena_used(&sorter->key_bytes);
}

/* The key of the row in place `at` of the order, as it stands in a run. */
static Err
run_key(Sorter *sorter, u32 at, Slice *key_out)
{
    Err err = OK;
    u32 row = sorter->order[at];
    if (sorter->mode == SORT_BYTES) {
        *key_out = (Slice){sorter->item[at].key, sorter->item[at].key_bytes};
        return OK;
    }
    buf_clear(&sorter->key_buf);
    if (sorter->mode == SORT_CELLS) {
        err = exec__cells_encode(&sorter->key_buf, exec__rowbuf_row(&sorter->keys, row),
                                 sorter->key_count);
    }
    for (u32 k = 0; err == OK && sorter->mode == SORT_NUMBERS && k < sorter->key_count; k++) {
        Cell key = unmap(sorter, k, sorter->mapped[k][row]);
        err = key_append_cell(&sorter->key_buf, &key, &sorter->key[k]);
    }
    *key_out = buf_slice(&sorter->key_buf);
    return err;
}

/* Write the rows at hand as a run. */
static Err
spill_now(Sorter *sorter)
{
    Exec *exec = sorter->exec;
    Err err = sort_now(sorter);
    if (err == OK) err = exec__runs_begin(exec, &sorter->runs);
    u32 count = (u32)MIN_OF((u64)sorter->count, sorter->rows_max);
    for (u32 i = 0; err == OK && i < count; i++) {
        Slice key;
        buf_clear(&sorter->row_buf);
        err = run_key(sorter, i, &key);
        if (err != OK) break;
        err = exec__cells_encode(&sorter->row_buf,
                                 exec__rowbuf_row(&sorter->rows, sorter->order[i]),
                                 sorter->rows.columns);
        if (err == OK) err = exec__runs_put(exec, &sorter->runs, key, buf_slice(&sorter->row_buf));
        if (err == OK && i % SPILL_CHECK_ROWS == 0) err = rt_check();
    }
    if (err == OK) err = exec__runs_end(exec, &sorter->runs);
    if (err != OK) return err;
    exec__rowbuf_clear(&sorter->rows);
    exec__rowbuf_clear(&sorter->keys);
    arena_free(&sorter->rows.bytes);
    arena_free(&sorter->keys.bytes);
    arena_free(&sorter->key_bytes);
    exec__spill_forget(exec, &sorter->held);
    sorter->count = 0;
    sorter->has_bar = false;
    sorter->check_at = 0;
    return OK;
}

/* After rows have come: look at the budget now and then. */
static inline Err
spill_check(Sorter *sorter)
{
    size_t bytes = sorter->rows.bytes.total_bytes;
    if (sorter->count < sorter->check_at && bytes == sorter->check_bytes) return OK;
    sorter->check_at = sorter->count + 1 + sorter->count / 8;
    sorter->check_bytes = bytes;
    bool due = exec__spill_due(sorter->exec, &sorter->held, sorter_memory(sorter));
    return due && sorter->count > 1 ? spill_now(sorter) : OK;
}

/* One row more has come. */
static inline Err
row_added(Sorter *sorter)
{
    Err err = sorter->rows_max < U32_MAX / 4 ? prune(sorter) : OK;
    return err == OK ? spill_check(sorter) : err;
}

static Err
numbers_add(Sorter *sorter, const u64 *mapped, const Cell *row)
{
    if (!numbers_beat_bar(sorter, mapped)) return OK;
    Err err = sorter_grow(sorter, 1);
    if (err == OK) err = exec__rowbuf_add(&sorter->rows, row);
    if (err != OK) return err;
    ASSERT(sorter->rows.rows == sorter->count + 1);
    for (u32 k = 0; k < sorter->key_count; k++) {
        sorter->mapped[k][sorter->count] = mapped[k];
    }
    sorter->count++;
    return row_added(sorter);
}

Err
exec__sorter_add(Sorter *sorter, const Cell *key, const Cell *row)
{
    Err err = OK;
    Slice bytes = SLICE_NONE;
    if (sorter->mode == SORT_NUMBERS) {
        u64 mapped[2];
        if (number_keys(sorter, key, mapped)) return numbers_add(sorter, mapped, row);
        err = leave_numbers(sorter);
        if (err != OK) return err;
    }
    if (sorter->mode == SORT_BYTES) {
        buf_clear(&sorter->key_buf);
        err = key_append_cells(&sorter->key_buf, key, sorter->key, sorter->key_count);
        if (err != OK) return err;
        bytes = buf_slice(&sorter->key_buf);
    }
    if (!beats_bar(sorter, key, bytes)) return OK;
    err = sorter_grow(sorter, 1);
    if (err == OK) err = exec__rowbuf_add(&sorter->rows, row);
    if (err != OK) return err;
    if (sorter->mode == SORT_CELLS) {
        err = exec__rowbuf_add(&sorter->keys, key);
    } else {
        err = item_set(sorter, &sorter->item[sorter->count], bytes, sorter->rows.rows - 1);
    }
    if (err != OK) return err;
    sorter->count++;
    return row_added(sorter);
}

/* All keys of the batch are numbers of the kinds so far: no row needs to be looked at. */
static bool
batch_is_numbers(Sorter *sorter, const Vec *key)
{
    if (sorter->mode != SORT_NUMBERS) return false;
    for (u32 k = 0; k < sorter->key_count; k++) {
        u8 kind = key[k].kind == VEC_INT ? CELL_INT : CELL_REAL;
        if (key[k].kind == VEC_CELL || key[k].null != NULL || key[k].constant) return false;
        if (sorter->kind[k] == CELL_NULL) sorter->kind[k] = kind;
        if (sorter->kind[k] != kind) return false;
    }
    return true;
}

static inline u64
map_at(const Sorter *sorter, const Vec *key, u32 k, u32 at)
{
    bool desc = sorter->key[k].desc;
    return key[k].kind == VEC_INT ? map_int(key[k].u.i[at], desc) : map_real(key[k].u.r[at], desc);
}

static Err
numbers_add_all(Sorter *sorter, const Vec *key, const Batch *batch)
{
    Err err = sorter_grow(sorter, batch->count);
    if (err == OK) err = exec__rowbuf_add_batch(&sorter->rows, batch, 0, batch->count);
    for (u32 k = 0; err == OK && k < sorter->key_count; k++) {
        u64 *mapped = sorter->mapped[k] + sorter->count;
        for (u32 n = 0; n < batch->count; n++) {
            mapped[n] = map_at(sorter, key, k, batch_at(batch, n));
        }
    }
    if (err != OK) return err;
    sorter->count += batch->count;
    return spill_check(sorter);
}

/* Top-N: the live rows whose first key does not lose against the bar. */
static u32
numbers_near_bar(const Sorter *sorter, const Vec *key, const Batch *batch, u16 *sel_out)
{
    u64 bar = sorter->bar[0];
    bool desc = sorter->key[0].desc;
    u32 count = 0;
    if (key->kind == VEC_INT) {
        for (u32 n = 0; n < batch->count; n++) {
            u32 at = batch_at(batch, n);
            sel_out[count] = (u16)at;
            count += map_int(key->u.i[at], desc) <= bar;
        }
        return count;
    }
    for (u32 n = 0; n < batch->count; n++) {
        u32 at = batch_at(batch, n);
        sel_out[count] = (u16)at;
        count += map_real(key->u.r[at], desc) <= bar;
    }
    return count;
}

/* The same for texts, by the first bytes of the key; a row whose key must be made stays. */
static u32
texts_near_bar(const Sorter *sorter, const Vec *key, const Batch *batch, u16 *sel_out)
{
    u64 bar = sorter->item[sorter->rows_max - 1].prefix, prefix;
    u32 count = 0;
    for (u32 n = 0; n < batch->count; n++) {
        u32 at = batch_at(batch, n);
        bool loses = key_text_prefix(&key->u.cell[at], &sorter->key[0], &prefix) && prefix > bar;
        sel_out[count] = (u16)at;
        count += !loses;
    }
    return count;
}

Err
exec__sorter_add_batch(Sorter *sorter, const Vec *key, const Batch *batch, Cell *key_scratch,
                       Cell *row_scratch)
{
    bool numbers = batch_is_numbers(sorter, key);
    if (numbers && sorter->rows_max >= U32_MAX / 4) return numbers_add_all(sorter, key, batch);
    Batch left = *batch;
    bool has_bar = sorter->has_bar && sorter->rows_max > 0;
    if (has_bar && sorter->near == NULL) {
        sorter->near = mem_alloc(BATCH_ROWS_MAX * sizeof(u16));
        if (sorter->near == NULL) return ERR_NOMEM;
    }
    u16 *near = sorter->near;
    if (numbers && has_bar) {
        left.count = numbers_near_bar(sorter, &key[0], batch, near);
        left.sel = near;
        batch = &left;
    } else if (sorter->mode == SORT_BYTES && has_bar && sorter->key_count > 0 &&
               key[0].kind == VEC_CELL && !key[0].constant) {
        left.count = texts_near_bar(sorter, &key[0], batch, near);
        left.sel = near;
        batch = &left;
    }
    for (u32 n = 0; n < batch->count; n++) {
        u32 at = batch_at(batch, n);
        u64 mapped[2];
        for (u32 k = 0; numbers && k < sorter->key_count; k++) {
            mapped[k] = map_at(sorter, key, k, at);
        }
        if (numbers && !numbers_beat_bar(sorter, mapped)) continue;
        for (u32 i = 0; i < batch->columns; i++) {
            row_scratch[i] = vec_cell(&batch->col[i], at);
        }
        for (u32 k = 0; !numbers && k < sorter->key_count; k++) {
            key_scratch[k] = vec_cell(&key[k], at);
        }
        Err err = numbers ? numbers_add(sorter, mapped, row_scratch)
                          : exec__sorter_add(sorter, key_scratch, row_scratch);
        if (err != OK) return err;
    }
    return OK;
}

Err
exec__sorter_add_bytes(Sorter *sorter, Slice key, const Cell *row)
{
    ASSERT(sorter->key_count == 0 && sorter->rows_max == U64_MAX);
    Err err = sorter_grow(sorter, 1);
    if (err == OK) err = exec__rowbuf_add(&sorter->rows, row);
    if (err == OK) {
        err = item_set(sorter, &sorter->item[sorter->count], key, sorter->rows.rows - 1);
    }
    if (err != OK) return err;
    sorter->count++;
    return spill_check(sorter);
}

void
exec__sorter_drop(Sorter *sorter)
{
    exec__rowbuf_drop(&sorter->rows);
    exec__rowbuf_drop(&sorter->keys);
    arrays_free(sorter);
}

Err
exec__sorter_finish(Sorter *sorter)
{
    sorter->next = 0;
    if (sorter->runs.count > 0) {
        Err err = sorter->count > 0 ? spill_now(sorter) : OK;
        exec__sorter_drop(sorter); /* The merge needs memory too. */
        sorter->merging = true;
        sorter->left = sorter->rows_max;
        return err == OK ? exec__runs_merge(sorter->exec, &sorter->runs) : err;
    }
    Err err = sort_now(sorter);
    if (err != OK) return err;
    if (sorter->count > sorter->rows_max) sorter->count = (u32)sorter->rows_max;
    return OK;
}

Err
exec__sorter_next(Sorter *sorter, Slice *key_out, const Cell **row_out)
{
    *row_out = NULL;
    if (!sorter->merging) {
        if (sorter->next == sorter->count) return OK;
        u32 at = sorter->next++;
        if (key_out != NULL) {
            ASSERT(sorter->mode == SORT_BYTES);
            *key_out = (Slice){sorter->item[at].key, sorter->item[at].key_bytes};
        }
        *row_out = exec__rowbuf_row(&sorter->rows, sorter->order[at]);
        return OK;
    }
    Slice key, row;
    bool found;
    if (sorter->left == 0) return OK;
    Err err = exec__runs_next(sorter->exec, &sorter->runs, &key, &row, &found);
    if (err != OK || !found) return err;
    sorter->left--;
    exec__cells_decode(row, sorter->merged, sorter->rows.columns);
    if (key_out != NULL) *key_out = key;
    *row_out = sorter->merged;
    return OK;
}
