/*
 * write_rowid.c -- which rowid a new row gets.
 *
 * One writer: SQLite's rule, the last rowid plus 1, and when that is taken up to the largest
 * integer, a random free one.  Many writers: a counter of the tree, which never hands out a number
 * twice.  AUTOINCREMENT: above everything that sqlite_sequence remembers.
 */
#include "exec/write__run.h"

#define RANDOM_TRIES 100

Err
write__must_be_int(ExecWrite *w, Cell *cell)
{
    Err err = cell_apply_affinity(cell, AFFINITY_INTEGER, &w->exec->row_arena);
    if (err != OK) return exec__fail(w->exec, err, NULL);
    if (cell->type == CELL_INT) return OK;
    return exec__fail(w->exec, ERR_MISMATCH, "datatype mismatch");
}

static Err
last_rowid(ExecWrite *w, bool *found_out, i64 *rowid_out)
{
    if (w->last_known) {
        *found_out = true;
        *rowid_out = w->last_rowid;
        return OK;
    }
    Err err = OK;
    /* Kept over runs: a rebound cursor costs no allocation. */
    if (w->last == NULL) {
        err = store_cursor_open(w->txn, w->table->tree, &w->last);
    } else if (!w->last_bound) {
        store_cursor_rebind(w->last, w->txn, w->table->tree);
    }
    w->last_bound = true;
    if (err == OK) err = store_cursor_seek(w->last, STORE_SEEK_LAST, SLICE_NONE, found_out);
    if (err != OK) return exec__fail_store(w->exec, err, w->txn);
    if (*found_out) *rowid_out = table_key_rowid(store_cursor_key(w->last));
    return OK;
}

/* A rowid that is free, by chance. */
static Err
random_rowid(ExecWrite *w, i64 *rowid_out)
{
    const FuncEnv *func = w->exec->env->func;
    for (u32 i = 0; func->random != NULL && i < RANDOM_TRIES; i++) {
        u64 bits = 0;
        func->random(func->arg, &bits, sizeof(bits));
        i64 rowid = (i64)(bits & ((u64)I64_MAX >> 1)) + 1;
        u8 key[TABLE_KEY_BYTES];
        table_key_put(rowid, key);
        bool found, newer;
        Slice value;
        Err err = store_get_newest(w->txn, w->table->tree, SLICE(key, sizeof(key)), &found, &newer,
                                   &value);
        if (err != OK) return exec__fail_store(w->exec, err, w->txn);
        if (!found) {
            *rowid_out = rowid;
            return OK;
        }
    }
    return exec__fail(w->exec, ERR_FULL, NULL);
}

/* ---- AUTOINCREMENT ---- */

/* The row of the table in sqlite_sequence. */
static Err
sequence_read(ExecWrite *w, WriteSequence *at)
{
    Slice name = SLICE(at->table->name, strlen(at->table->name));
    StoreCursor *cursor = NULL;
    at->highest = 0;
    at->rowid = 0;
    Err err = store_cursor_open(w->txn, at->sequence->tree, &cursor);
    if (err != OK) return exec__fail_store(w->exec, err, w->txn);
    bool found;
    err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    while (err == OK && found) {
        static const u16 wanted[] = {0, 1};
        Cell cell[2];
        Slice key = store_cursor_key(cursor);
        Err damaged = table_decode(at->codec, key, store_cursor_value(cursor), wanted, 2,
                                   &w->exec->row_arena, cell);
        if (damaged != OK) {
            store_cursor_close(cursor);
            return exec__fail(w->exec, damaged, NULL);
        }
        if (cell[0].type == CELL_TEXT && slice_equal(SLICE(cell[0].u.p, cell[0].bytes), name)) {
            at->highest = cell_to_int(&cell[1]);
            at->rowid = table_key_rowid(key);
            break;
        }
        err = store_cursor_next(cursor, &found);
    }
    store_cursor_close(cursor);
    if (err != OK) return exec__fail_store(w->exec, err, w->txn);
    at->read = true;
    return OK;
}

/* The table's number in this statement, read from sqlite_sequence at first use. */
static Err
sequence_of(ExecWrite *w, WriteSequence **sequence_out)
{
    ExecWrite *root = w->root;
    WriteSequence *at = root->sequences;
    while (at != NULL && at->table != w->table) {
        at = at->next;
    }
    if (at == NULL) {
        at = ARENA_NEW(&root->exec->arena, WriteSequence);
        if (at == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
        *at = (WriteSequence){.next = root->sequences, .table = w->table};
        root->sequences = at;
    }
    *sequence_out = at;
    at->sequence = w->plan->sequence;
    at->codec = &w->sequence_codec;
    return at->read ? OK : sequence_read(w, at);
}

Err
write__sequence_start(ExecWrite *w)
{
    WriteSequence *at;
    if (w->caller == NULL) {
        for (at = w->sequences; at != NULL; at = at->next) {
            at->read = at->save = false;
        }
    }
    if (w->plan->sequence == NULL) return OK;
    Err err = sequence_of(w, &at);
    if (err == OK && at->rowid == 0) at->save = true; /* Even if no row follows. */
    return err;
}

Err
write__sequence_step(ExecWrite *w)
{
    WriteSequence *at;
    if (w->plan->sequence == NULL) return OK;
    Err err = sequence_of(w, &at);
    if (err != OK) return err;
    if (w->fresh.rowid > at->highest) {
        at->highest = w->fresh.rowid;
        at->save = true;
    }
    return OK;
}

static Err
sequence_write(ExecWrite *w, WriteSequence *at)
{
    Err err;
    if (at->rowid == 0) {
        StoreCursor *cursor = NULL;
        bool found = false;
        err = store_cursor_open(w->txn, at->sequence->tree, &cursor);
        if (err == OK) err = store_cursor_seek(cursor, STORE_SEEK_LAST, SLICE_NONE, &found);
        i64 last = err == OK && found ? table_key_rowid(store_cursor_key(cursor)) : 0;
        store_cursor_close(cursor);
        if (err != OK) return exec__fail_store(w->exec, err, w->txn);
        if (last == I64_MAX) return exec__fail(w->exec, ERR_FULL, NULL);
        at->rowid = last + 1;
    }
    Cell row[2] = {cell_text(at->table->name, strlen(at->table->name)), cell_int(at->highest)};
    Buf *key = &w->victim.key;
    Buf *record = &w->victim.record;
    err = table_row_key(at->codec, row, at->rowid, key);
    if (err == OK) err = table_encode(at->codec, row, buf_slice(key), record);
    if (err != OK) return exec__fail(w->exec, err, NULL);
    StoreVerdict verdict;
    err = store_put(w->txn, at->sequence->tree, buf_slice(key), buf_slice(record), STORE_PUT_ANY,
                    &verdict);
    return err == OK ? OK : exec__fail_store(w->exec, err, w->txn);
}

Err
write__sequence_save(ExecWrite *w)
{
    for (WriteSequence *at = w->sequences; at != NULL; at = at->next) {
        if (!at->save) continue;
        at->save = false;
        Err err = sequence_write(w, at);
        if (err != OK) return err;
    }
    return OK;
}

/* ---- the rule ---- */

/* Many writers, no AUTOINCREMENT: the tree counts. */
static Err
allocate_counted(ExecWrite *w, i64 *rowid_out)
{
    Err err = store_tree_next_key(w->txn, w->table->tree, rowid_out);
    if (err == ERR_FULL) return random_rowid(w, rowid_out);
    return err == OK ? OK : exec__fail_store(w->exec, err, w->txn);
}

static Err
allocate(ExecWrite *w, i64 *rowid_out)
{
    if (w->exec->env->multi_writers && w->plan->sequence == NULL) {
        return allocate_counted(w, rowid_out);
    }
    bool found = false;
    i64 last = 0;
    Err err = last_rowid(w, &found, &last);
    if (err != OK) return err;
    if (w->plan->sequence != NULL) {
        WriteSequence *at;
        err = sequence_of(w, &at);
        if (err != OK) return err;
        if (at->highest == I64_MAX || (found && last == I64_MAX)) {
            return exec__fail(w->exec, ERR_FULL, NULL);
        }
        if (!found || last < at->highest) {
            found = true;
            last = at->highest;
        }
    }
    if (found && last == I64_MAX) return random_rowid(w, rowid_out);
    i64 next = found ? last + 1 : 1;
    if (w->exec->env->multi_writers) {
        err = store_tree_next_number(w->txn, w->table->tree, next, &next);
        if (err != OK) return exec__fail_store(w->exec, err, w->txn);
    }
    *rowid_out = next;
    return OK;
}

Err
write__new_rowid(ExecWrite *w)
{
    const TableDef *table = w->table;
    Cell *cell = &w->fresh.cell[table->column_count];
    Err err;
    if (w->rowid_given) {
        err = write__must_be_int(w, cell);
    } else {
        i64 rowid = 0;
        err = allocate(w, &rowid);
        *cell = cell_int(rowid);
    }
    if (err != OK) return err;
    w->fresh.rowid = cell->u.i;
    if (table->rowid_column != COLUMN_ROWID) w->fresh.cell[table->rowid_column] = *cell;
    return write__sequence_step(w);
}
