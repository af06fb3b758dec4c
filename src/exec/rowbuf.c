/*
 * rowbuf.c -- rows of cells kept in memory: one growing array, bytes in an arena.
 */
#include "exec/rowbuf.h"

void
exec__rowbuf_init(Exec *exec, RowBuf *rows, u32 columns)
{
    *rows = (RowBuf){.columns = columns, .account = exec->account};
    arena_init(&rows->bytes, exec->account);
}

void
exec__rowbuf_free(RowBuf *rows)
{
    if (rows->account != NULL) mem_account_release(rows->account, rows->charged_bytes);
    mem_free(rows->cell);
    arena_free(&rows->bytes);
    *rows = (RowBuf){0};
}

void
exec__rowbuf_clear(RowBuf *rows)
{
    rows->rows = 0;
    arena_reset(&rows->bytes);
}

void
exec__rowbuf_drop(RowBuf *rows)
{
    u32 columns = rows->columns;
    MemAccount *account = rows->account;
    exec__rowbuf_free(rows);
    *rows = (RowBuf){.columns = columns, .account = account};
    arena_init(&rows->bytes, account);
}

u64
exec__rowbuf_memory(const RowBuf *rows)
{
    return (u64)rows->rows * rows->columns * sizeof(Cell) + arena_used(&rows->bytes);
}

static Err
reserve(RowBuf *rows, u32 more)
{
    if (more <= rows->capacity - rows->rows) return OK;
    if (rows->rows > (u32)1 << 30) return ERR_NOMEM;
    u32 capacity = MAX_OF(MAX_OF(rows->capacity * 2, rows->rows + more), 4u);
    size_t row_bytes = MAX_OF((size_t)rows->columns, (size_t)1) * sizeof(Cell);
    u64 extra = (u64)(capacity - rows->capacity) * row_bytes;
    if (rows->account != NULL && mem_account_charge(rows->account, extra) != OK) return ERR_NOMEM;
    Cell *cell = mem_realloc(rows->cell, capacity * row_bytes);
    if (cell == NULL) {
        if (rows->account != NULL) mem_account_release(rows->account, extra);
        return ERR_NOMEM;
    }
    rows->charged_bytes += extra;
    rows->cell = cell;
    rows->capacity = capacity;
    return OK;
}

static inline Err
keep(RowBuf *rows, const Cell *value, Cell *out)
{
    *out = *value;
    out->subtype = 0;
    return value->type < CELL_TEXT ? OK : cell_copy(value, &rows->bytes, out);
}

Err
exec__rowbuf_add_empty(RowBuf *rows, Cell **row_out)
{
    Err err = reserve(rows, 1);
    if (err != OK) return err;
    *row_out = exec__rowbuf_row(rows, rows->rows++);
    for (u32 i = 0; i < rows->columns; i++) {
        (*row_out)[i] = cell_null();
    }
    return OK;
}

Err
exec__rowbuf_add(RowBuf *rows, const Cell *row)
{
    Err err = reserve(rows, 1);
    Cell *to = exec__rowbuf_row(rows, rows->rows);
    for (u32 i = 0; err == OK && i < rows->columns; i++) {
        err = keep(rows, &row[i], &to[i]);
    }
    if (err == OK) rows->rows++;
    return err;
}

Err
exec__rowbuf_set(RowBuf *rows, u32 row, u32 column, const Cell *value)
{
    return keep(rows, value, &exec__rowbuf_row(rows, row)[column]);
}

/* One column of the rows that are being added. */
static Err
add_column(RowBuf *rows, u32 column, const Vec *vec, const Batch *batch, u32 first, u32 count)
{
    Cell *to = exec__rowbuf_row(rows, rows->rows) + column;
    u32 step = rows->columns;
    if (vec->kind == VEC_INT && vec->null == NULL && !vec->constant) {
        for (u32 i = 0; i < count; i++, to += step) {
            *to = cell_int(vec->u.i[batch_at(batch, first + i)]);
        }
        return OK;
    }
    for (u32 i = 0; i < count; i++, to += step) {
        Cell value = vec_cell(vec, batch_at(batch, first + i));
        Err err = keep(rows, &value, to);
        if (err != OK) return err;
    }
    return OK;
}

Err
exec__rowbuf_add_batch(RowBuf *rows, const Batch *batch, u32 first, u32 count)
{
    ASSERT(batch->columns >= rows->columns);
    Err err = reserve(rows, count);
    for (u32 column = 0; err == OK && column < rows->columns; column++) {
        err = add_column(rows, column, &batch->col[column], batch, first, count);
    }
    if (err == OK) rows->rows += count;
    return err;
}
