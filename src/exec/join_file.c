/*
 * join_file.c -- the build side of a hash join in a sorted file.
 */
#include "exec/join_file.h"

#include "exec/exec__write.h"

Err
exec__join_file_begin(Exec *exec, JoinFile *file, u32 columns, bool keyed, bool ordered)
{
    REACHED("exec: the build side of a hash join went to a file");
    if (!file->ready) {
        file->columns = columns;
        file->keyed = keyed;
        file->ordered = ordered || !keyed;
        file->row = ARENA_NEW_ARRAY(&exec->arena, Cell, columns + 1);
        if (file->row == NULL) return ERR_NOMEM;
        Err err = exec__sorter_init(exec, &file->sorter, NULL, 0, columns + 1);
        if (err != OK) return err;
        exec__spool_init(exec, &file->all, columns);
        file->ready = true;
    }
    file->in_use = true;
    file->rows = 0;
    return OK;
}

Err
exec__join_file_add(Exec *exec, JoinFile *file, Slice key, bool usable, const Cell *row)
{
    Err err = OK;
    if (file->keyed && usable) {
        memcpy(file->row, row, file->columns * sizeof(Cell));
        file->row[file->columns] = cell_int((i64)file->rows);
        err = exec__sorter_add_bytes(&file->sorter, key, file->row);
    }
    if (err == OK && file->ordered) err = exec__spool_add(exec, &file->all, row);
    file->rows++;
    return err;
}

Err
exec__join_file_end(Exec *exec, JoinFile *file)
{
    if (!file->keyed) return OK;
    Err err = exec__sorter_finish(&file->sorter);
    if (err == OK) err = exec__file_begin(exec, &file->file, file->rows);
    while (err == OK) {
        Slice key;
        const Cell *row;
        err = exec__sorter_next(&file->sorter, &key, &row);
        if (err != OK || row == NULL) break;
        buf_clear(&file->row_buf);
        err = exec__cells_encode(&file->row_buf, row, file->columns + 1);
        if (err == OK) err = exec__file_put(exec, &file->file, key, buf_slice(&file->row_buf));
    }
    if (err == OK) err = exec__file_end(exec, &file->file);
    exec__sorter_start(&file->sorter, U64_MAX);
    exec__sorter_drop(&file->sorter);
    return err;
}

void
exec__join_file_clear(Exec *exec, JoinFile *file)
{
    if (!file->in_use) return;
    file->in_use = false;
    exec__sorter_start(&file->sorter, U64_MAX);
    exec__file_free(exec, &file->file);
    exec__spool_close(exec, &file->candidates);
    exec__spool_close(exec, &file->unmatched);
    exec__spool_clear(exec, &file->all);
    mem_free(file->matched);
    file->matched = NULL;
}

void
exec__join_file_free(Exec *exec, JoinFile *file)
{
    if (!file->ready) return;
    exec__join_file_clear(exec, file);
    exec__sorter_free(&file->sorter);
    exec__spool_free(exec, &file->all);
    buf_free(&file->key);
    buf_free(&file->row_buf);
    file->ready = false;
}

Err
exec__join_file_unmatch(Exec *exec, JoinFile *file)
{
    (void)exec;
    mem_free(file->matched);
    file->matched = mem_alloc_zeroed((size_t)(file->rows / 8 + 1));
    return file->matched != NULL ? OK : ERR_NOMEM;
}

Err
exec__join_file_probe(Exec *exec, JoinFile *file, Slice key, u64 skip, bool *found_out)
{
    if (!file->keyed) {
        *found_out = skip < file->rows;
        file->candidates.next = skip;
        return OK;
    }
    buf_clear(&file->key);
    Err err = buf_append(&file->key, key.p, key.bytes);
    if (err == OK) err = exec__file_seek(exec, &file->file, buf_slice(&file->key), found_out);
    for (u64 i = 0; err == OK && *found_out && i < skip; i++) {
        Slice row;
        err = exec__file_row(exec, &file->file, &row, found_out);
    }
    return err;
}

Err
exec__join_file_next(Exec *exec, JoinFile *file, const Cell **row_out)
{
    *row_out = NULL;
    if (!file->keyed) return exec__join_file_at(exec, file, file->candidates.next, row_out);
    Slice row;
    bool found;
    Err err = exec__file_row(exec, &file->file, &row, &found);
    if (err != OK || !found) return err;
    exec__cells_decode(row, file->row, file->columns + 1);
    *row_out = file->row;
    return OK;
}

Err
exec__join_file_at(Exec *exec, JoinFile *file, u64 number, const Cell **row_out)
{
    SpoolReader *reader = file->keyed ? &file->unmatched : &file->candidates;
    const Cell *row;
    reader->next = number;
    Err err = exec__spool_row(exec, &file->all, reader, &row);
    *row_out = NULL;
    if (err != OK || row == NULL) return err;
    memcpy(file->row, row, file->columns * sizeof(Cell));
    file->row[file->columns] = cell_int((i64)number);
    *row_out = file->row;
    return OK;
}
