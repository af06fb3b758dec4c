/*
 * spool.c -- rows kept in the order they came: in memory, or the first ones in a run.
 */
#include "exec/spool.h"

#include "exec/exec__write.h"
#include "exec/node.h"

#define PAGE_ROWS 256u /* Read at once for a reader of single rows. */

void
exec__spool_init(Exec *exec, RowSpool *spool, u32 columns)
{
    *spool = (RowSpool){.first = 0};
    exec__rowbuf_init(exec, &spool->rows, columns);
    spool->writer.run = &spool->run;
    exec__spill_enlist(exec);
}

void
exec__spool_clear(Exec *exec, RowSpool *spool)
{
    exec__rowbuf_clear(&spool->rows);
    spool->first = 0;
    if (spool->held > 0) exec__spill_forget(exec, &spool->held);
    if (spool->run.block == NULL) return;
    exec__writer_free(exec, &spool->writer);
    exec__run_free(exec, &spool->run);
    spool->writer.run = &spool->run;
}

void
exec__spool_free(Exec *exec, RowSpool *spool)
{
    exec__spool_clear(exec, spool);
    exec__writer_free(exec, &spool->writer);
    exec__rowbuf_free(&spool->rows);
    buf_free(&spool->row_buf);
}

/* ---- adding ---- */

/* All rows at hand go to the run. */
static Err
spool_spill(Exec *exec, RowSpool *spool)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < spool->rows.rows; i++) {
        buf_clear(&spool->row_buf);
        err = exec__cells_encode(&spool->row_buf, exec__rowbuf_row(&spool->rows, i),
                                 spool->rows.columns);
        if (err == OK) {
            err = exec__run_add(exec, &spool->writer, buf_slice(&spool->row_buf), SLICE_NONE);
        }
    }
    if (err == OK) err = exec__run_flush(exec, &spool->writer);
    if (err != OK) return err;
    spool->first += spool->rows.rows;
    exec__rowbuf_drop(&spool->rows);
    exec__spill_forget(exec, &spool->held);
    return OK;
}

static inline Err
spool_check(Exec *exec, RowSpool *spool)
{
    bool due = exec__spill_due(exec, &spool->held, exec__rowbuf_memory(&spool->rows));
    return due ? spool_spill(exec, spool) : OK;
}

Err
exec__spool_add(Exec *exec, RowSpool *spool, const Cell *row)
{
    Err err = exec__rowbuf_add(&spool->rows, row);
    return err == OK ? spool_check(exec, spool) : err;
}

Err
exec__spool_add_batch(Exec *exec, RowSpool *spool, const Batch *batch)
{
    Err err = exec__rowbuf_add_batch(&spool->rows, batch, 0, batch->count);
    return err == OK ? spool_check(exec, spool) : err;
}

/* ---- reading ---- */

void
exec__spool_close(Exec *exec, SpoolReader *reader)
{
    exec__reader_free(exec, &reader->in);
    exec__rowbuf_free(&reader->page);
    reader->next = 0;
    reader->page_first = 0;
}

/* Make the page hold row reader->next, which stands in the run, and up to `want` rows. */
static Err
page_fill(Exec *exec, RowSpool *spool, SpoolReader *reader, u32 want)
{
    RowBuf *page = &reader->page;
    u32 columns = spool->rows.columns;
    if (page->columns == 0) exec__rowbuf_init(exec, page, columns);
    u64 page_end = reader->page_first + page->rows;
    if (reader->next > 0 && reader->next >= reader->page_first && reader->next < page_end) {
        return OK;
    }
    if (reader->next == 0 || reader->next != page_end) {
        /* From the front, or to some other place behind it. */
        exec__reader_start(&reader->in, &spool->run, 0);
        for (u64 i = 0; i < reader->next; i++) {
            Slice record;
            bool found;
            Err err = exec__reader_next(exec, &reader->in, &record, &found);
            if (err != OK) return err;
        }
    }
    exec__rowbuf_clear(page);
    reader->page_first = reader->next;
    while (page->rows < want && reader->next + page->rows < spool->first &&
           exec__rowbuf_memory(page) < BATCH_BYTES_MAX) {
        Slice record;
        bool found;
        Err err = exec__reader_next(exec, &reader->in, &record, &found);
        if (err != OK) return err;
        ASSERT(found);
        Cell *row;
        err = exec__rowbuf_add_empty(page, &row);
        if (err != OK) return err;
        exec__cells_decode(record, row, columns);
        for (u32 i = 0; err == OK && i < columns; i++) {
            if (row[i].type >= CELL_TEXT) err = cell_copy(&row[i], &page->bytes, &row[i]);
        }
        if (err != OK) return err;
    }
    return OK;
}

void
exec__spool_batch(Exec *exec, ExecNode *node, RowSpool *spool, SpoolReader *reader, u32 want)
{
    const RowBuf *rows = &spool->rows;
    u64 first = spool->first;
    if (reader->next < spool->first) {
        Err err = page_fill(exec, spool, reader, want);
        if (err != OK) {
            exec__out_end(node, exec__fail(exec, err, NULL));
            return;
        }
        rows = &reader->page;
        first = reader->page_first;
    }
    u32 at = (u32)(reader->next - first);
    u32 count = MIN_OF(want, rows->rows - at);
    exec__out_from_rows(exec, node, rows, NULL, at, count);
    reader->next += count;
    node->out.last = reader->next == exec__spool_count(spool);
}

Err
exec__spool_row(Exec *exec, RowSpool *spool, SpoolReader *reader, const Cell **row_out)
{
    *row_out = NULL;
    if (reader->next == exec__spool_count(spool)) return OK;
    if (reader->next >= spool->first) {
        *row_out = exec__rowbuf_row(&spool->rows, (u32)(reader->next++ - spool->first));
        return OK;
    }
    Err err = page_fill(exec, spool, reader, PAGE_ROWS);
    if (err != OK) return err;
    *row_out = exec__rowbuf_row(&reader->page, (u32)(reader->next++ - reader->page_first));
    return OK;
}
