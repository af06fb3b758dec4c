/*
 * window_rows.c -- the rows of a WINDOW node: arrays by column, forgotten from the front.
 */
#include "exec/window.h"

#define PRUNE_MIN 4096u /* Fewer rows are not worth moving. */

Err
exec__win_rows_open(Exec *exec, WinRows *rows, u32 columns, bool copies)
{
    *rows = (WinRows){.columns = columns, .copies = copies, .account = exec->account};
    arena_init(&rows->bytes, exec->account);
    arena_init(&rows->spare, exec->account);
    rows->cell = ARENA_NEW_ARRAY(&exec->arena, Cell *, MAX_OF(columns, 1u));
    return rows->cell != NULL ? OK : ERR_NOMEM;
}

static void
drop_arrays(WinRows *rows)
{
    for (u32 i = 0; rows->cell != NULL && i < rows->columns; i++) {
        mem_free(rows->cell[i]);
        rows->cell[i] = NULL;
    }
    mem_free(rows->mark);
    rows->mark = NULL;
    if (rows->account != NULL) mem_account_release(rows->account, rows->charged_bytes);
    rows->charged_bytes = 0;
    rows->capacity = 0;
}

void
exec__win_rows_free(WinRows *rows)
{
    exec__win_pages_free(rows);
    drop_arrays(rows);
    arena_free(&rows->bytes);
    arena_free(&rows->spare);
    *rows = (WinRows){0};
}

void
exec__win_rows_clear(WinRows *rows)
{
    exec__win_pages_free(rows);
    rows->first = 0;
    rows->count = 0;
    if (rows->capacity > 4 * PRUNE_MIN) drop_arrays(rows);
    arena_reset(&rows->bytes);
}

Err
exec__win_rows_reserve(WinRows *rows, u32 more)
{
    if (more <= rows->capacity - rows->count) return OK;
    if (rows->count > (u32)1 << 30) return ERR_NOMEM;
    u32 capacity = MAX_OF(MAX_OF(rows->capacity * 2, rows->count + more), 16u);
    u64 row_bytes = (u64)rows->columns * sizeof(Cell) + 1;
    u64 extra = (u64)(capacity - rows->capacity) * row_bytes;
    if (rows->account != NULL && mem_account_charge(rows->account, extra) != OK) return ERR_NOMEM;
    rows->charged_bytes += extra;
    u8 *mark = mem_realloc(rows->mark, capacity);
    if (mark == NULL) return ERR_NOMEM;
    rows->mark = mark;
    for (u32 i = 0; i < rows->columns; i++) {
        Cell *cell = mem_realloc(rows->cell[i], (size_t)capacity * sizeof(Cell));
        if (cell == NULL) return ERR_NOMEM;
        rows->cell[i] = cell;
    }
    rows->capacity = capacity;
    return OK;
}

Err
exec__win_rows_column(WinRows *rows, u32 column, u32 at, const Vec *vec, const Batch *batch,
                      bool copy)
{
    Cell *to = rows->cell[column] + at;
    if (vec->kind == VEC_INT && vec->null == NULL && !vec->constant) {
        for (u32 i = 0; i < batch->count; i++)
            to[i] = cell_int(vec->u.i[batch_at(batch, i)]);
        return OK;
    }
    if (vec->kind == VEC_CELL && !vec->constant && batch->sel == NULL) {
        memcpy(to, vec->u.cell, batch->count * sizeof(Cell));
    } else {
        for (u32 i = 0; i < batch->count; i++)
            to[i] = vec_cell(vec, batch_at(batch, i));
    }
    if (!copy || vec->kind != VEC_CELL) return OK;
    for (u32 i = 0; i < batch->count; i++) {
        if (to[i].type < CELL_TEXT) continue;
        Err err = cell_copy(&to[i], &rows->bytes, &to[i]);
        if (err != OK) return err;
    }
    return OK;
}

/* Copy what the cells of a column point to into the fresh arena. */
static Err
move_bytes(WinRows *rows, u32 column, Arena *to)
{
    Cell *cell = rows->cell[column];
    for (u32 i = 0; i < rows->count; i++) {
        if (cell[i].type < CELL_TEXT) continue;
        Err err = cell_copy(&cell[i], to, &cell[i]);
        if (err != OK) return err;
    }
    return OK;
}

Err
exec__win_rows_prune(WinRows *rows, u64 low, u32 results_from, u32 results_to)
{
    if (rows->pages != NULL) exec__win_pages_prune(rows, low);
    if (low <= rows->first) return OK;
    u32 gone = (u32)MIN_OF(low - rows->first, (u64)rows->count);
    if (gone < PRUNE_MIN || gone < rows->count / 2) return OK;
    return exec__win_rows_shift(rows, gone, results_from, results_to);
}

Err
exec__win_rows_shift(WinRows *rows, u32 gone, u32 results_from, u32 results_to)
{
    u32 left = rows->count - gone;
    for (u32 i = 0; i < rows->columns; i++)
        memmove(rows->cell[i], rows->cell[i] + gone, left * sizeof(Cell));
    memmove(rows->mark, rows->mark + gone, left);
    rows->first += gone;
    rows->count = left;
    if (rows->bytes.chunk == NULL) return OK;
    arena_reset(&rows->spare);
    for (u32 i = 0; i < rows->columns; i++) {
        if (i >= results_from && i < results_to) continue;
        Err err = move_bytes(rows, i, &rows->spare);
        if (err != OK) return err;
    }
    Arena bytes = rows->bytes;
    rows->bytes = rows->spare;
    rows->spare = bytes;
    arena_reset(&rows->spare);
    return OK;
}
