/*
 * write_apply.c -- a row and its index entries in the store.
 *
 * The table's entry is written before any index entry, so that two writers of one row meet at the
 * row.  A clash undoes what was written since w->row_mark; then it looks as if nothing had been
 * tried.
 */
#include "exec/write__run.h"

static Err
fail_store(ExecWrite *w, Err err)
{
    return exec__fail_store(w->exec, err, w->txn);
}

static Err
fail_missing(ExecWrite *w, const WriteIndex *index)
{
    return exec__fail(w->exec, ERR_CORRUPT, "row missing from index %s", index->def->name);
}

Err
write__read_row(ExecWrite *w, WriteRow *row, bool *found_out)
{
    const TableDef *table = w->table;
    Slice value;
    Err err = store_get(w->txn, table->tree, buf_slice(&row->key), found_out, &value);
    if (err != OK) return fail_store(w, err);
    if (!*found_out) return OK;
    buf_clear(&row->record);
    err = buf_append(&row->record, value.p, value.bytes);
    if (err == OK) {
        err = table_decode_all(&w->codec, buf_slice(&row->key), buf_slice(&row->record),
                               &w->exec->row_arena, row->cell);
    }
    if (err != OK) return exec__fail(w->exec, err, NULL);
    row->rowid = table->without_rowid ? 0 : table_key_rowid(buf_slice(&row->key));
    row->cell[table->column_count] = table->without_rowid ? cell_null() : cell_int(row->rowid);
    return w->plan->generated_count == 0 ? OK : write__generate(w, row->cell, true);
}

Err
write__entry(ExecWrite *w, WriteIndex *index, const Cell *row, i64 rowid, WriteEntry *entry)
{
    const IndexCodec *codec = &index->codec;
    entry->present = true;
    if (index->where != NULL) {
        ExecTruth truth;
        Err err = exec__eval_truth(w->exec, index->where, row, &truth);
        if (err != OK) return err;
        if (truth != EXEC_TRUE) {
            entry->present = false;
            return OK;
        }
    }
    for (u16 i = 0; i < codec->columns; i++) {
        u16 column = codec->column[i].column;
        if (column == COLUMN_EXPR) {
            Err err = exec__eval(w->exec, index->expr[i], row, &index->cell[i]);
            if (err != OK) return err;
        } else {
            index->cell[i] = column == COLUMN_ROWID ? cell_int(rowid) : row[column];
        }
    }
    Err err = index_encode(codec, index->cell, rowid, &entry->key, &entry->value, &entry->claims);
    return err == OK ? OK : exec__fail(w->exec, err, NULL);
}

Err
write__encode_fresh(ExecWrite *w)
{
    WriteRow *fresh = &w->fresh;
    Err err = table_row_key(&w->codec, fresh->cell, fresh->rowid, &fresh->key);
    if (err == OK)
        err = table_encode(&w->codec, fresh->cell, buf_slice(&fresh->key), &fresh->record);
    if (err != OK) return exec__fail(w->exec, err, NULL);
    u64 length_max = w->exec->env->length_max;
    if (length_max != 0 && fresh->record.bytes > length_max) {
        return exec__fail(w->exec, ERR_TOOBIG, NULL);
    }
    bool update = w->op == WRITE_UPDATE;
    w->moves = update && !slice_equal(buf_slice(&fresh->key), buf_slice(&w->old.key));
    for (u32 i = 0; i < w->index_count; i++) {
        WriteIndex *index = &w->index[i];
        if (update && !w->touches_all && !w->sets->touched[i]) continue;
        err = write__entry(w, index, fresh->cell, fresh->rowid, &index->fresh);
        if (err == OK && update) {
            err = write__entry(w, index, w->old.cell, w->old.rowid, &index->old);
        }
        if (err != OK) return err;
    }
    return OK;
}

/* ---- writing ---- */

static Err
put_table(ExecWrite *w, StoreVerdict *verdict_out)
{
    TreeId tree = w->table->tree;
    StorePut mode = w->op == WRITE_UPDATE && !w->moves ? STORE_PUT_UPDATE : STORE_PUT_INSERT;
    if (w->moves) {
        StoreVerdict verdict;
        Err err = store_delete(w->txn, tree, buf_slice(&w->old.key), &verdict);
        if (err != OK) return err;
    }
    return store_put(w->txn, tree, buf_slice(&w->fresh.key), buf_slice(&w->fresh.record), mode,
                     verdict_out);
}

static Err
put_entry(ExecWrite *w, WriteIndex *index, StoreVerdict *verdict_out)
{
    const WriteEntry *fresh = &index->fresh;
    const WriteEntry *old = &index->old;
    bool had = w->op == WRITE_UPDATE && old->present;
    *verdict_out = STORE_DONE;
    bool same_key = had && fresh->present &&
                    slice_equal(buf_slice(&fresh->key), buf_slice(&old->key));
    if (same_key && slice_equal(buf_slice(&fresh->value), buf_slice(&old->value))) return OK;
    if (had && !same_key) {
        StoreVerdict verdict;
        Err err = store_delete(w->txn, index->def->tree, buf_slice(&old->key), &verdict);
        if (err != OK) return fail_store(w, err);
        if (verdict == STORE_ABSENT) return fail_missing(w, index);
    }
    if (!fresh->present) return OK;
    StorePut mode = fresh->claims && !same_key ? STORE_PUT_INSERT : STORE_PUT_ANY;
    Err err = store_put(w->txn, index->def->tree, buf_slice(&fresh->key), buf_slice(&fresh->value),
                        mode, verdict_out);
    return err == OK ? OK : fail_store(w, err);
}

static bool
is_clash(StoreVerdict verdict)
{
    return verdict == STORE_EXISTS || verdict == STORE_EXISTS_NEWER;
}

Err
write__apply(ExecWrite *w, i32 *clash_out, bool *newer_out)
{
    StoreVerdict verdict;
    *clash_out = WRITE_CLASH_NONE;
    *newer_out = false;
    Err err = put_table(w, &verdict);
    if (err != OK) return fail_store(w, err);
    if (is_clash(verdict)) {
        *clash_out = WRITE_CLASH_KEY;
    }
    for (u32 i = 0; i < w->index_count && *clash_out == WRITE_CLASH_NONE; i++) {
        if (w->op == WRITE_UPDATE && !w->touches_all && !w->sets->touched[i]) continue;
        WriteIndex *index = &w->index[i];
        if (w->op == WRITE_INSERT && !index->fresh.present) continue;
        err = put_entry(w, index, &verdict);
        if (err != OK) return err;
        if (is_clash(verdict)) *clash_out = (i32)i;
    }
    if (*clash_out == WRITE_CLASH_NONE) return OK;
    *newer_out = verdict == STORE_EXISTS_NEWER;
    store_txn_undo_to(w->txn, w->row_mark);
    return OK;
}

Err
write__delete_row(ExecWrite *w, WriteRow *row)
{
    /* Entries first, while nothing has changed: their expressions may fail. */
    for (u32 i = 0; i < w->index_count; i++) {
        WriteIndex *index = &w->index[i];
        Err err = write__entry(w, index, row->cell, row->rowid, &index->gone);
        if (err != OK) return err;
    }
    StoreVerdict verdict;
    Err err = store_delete(w->txn, w->table->tree, buf_slice(&row->key), &verdict);
    if (err != OK) return fail_store(w, err);
    for (u32 i = 0; i < w->index_count; i++) {
        WriteIndex *index = &w->index[i];
        if (!index->gone.present) continue;
        err = store_delete(w->txn, index->def->tree, buf_slice(&index->gone.key), &verdict);
        if (err != OK) return fail_store(w, err);
        if (verdict == STORE_ABSENT) return fail_missing(w, index);
    }
    return OK;
}

Err
write__truncate(ExecWrite *w)
{
    u64 rows = 0, entries = 0;
    Err err = store_tree_clear(w->txn, w->table->tree, &rows);
    for (u32 i = 0; i < w->index_count && err == OK; i++) {
        err = store_tree_clear(w->txn, w->index[i].def->tree, &entries);
    }
    if (err != OK) return fail_store(w, err);
    w->rows = (i64)rows;
    return OK;
}

/* ---- telling ---- */

void
write__preupdate(ExecWrite *w, ExecChange change, const WriteRow *old, const WriteRow *fresh)
{
    const ExecHooks *hooks = w->exec->env->hooks;
    if (hooks == NULL || hooks->preupdate == NULL || w->table->is_system) return;
    ExecPreupdate news = {
        .change = change,
        .table = w->table,
        .rowid_old = old != NULL ? old->rowid : fresh->rowid,
        .rowid_new = fresh != NULL ? fresh->rowid : old->rowid,
        .row_old = old != NULL ? old->cell : NULL,
        .row_new = fresh != NULL ? fresh->cell : NULL,
        .depth = w->depth,
    };
    hooks->preupdate(hooks->arg, &news);
}

void
write__changed(ExecWrite *w, ExecChange change, i64 rowid)
{
    const ExecHooks *hooks = w->exec->env->hooks;
    w->rows++;
    if (change == EXEC_INSERT && !w->table->without_rowid) {
        w->exec->last_rowid = rowid;
        w->exec->has_last_rowid = true;
        if (hooks != NULL && hooks->set_last_rowid != NULL) {
            hooks->set_last_rowid(hooks->arg, rowid);
        }
    }
    if (hooks == NULL || hooks->update == NULL) return;
    if (w->table->without_rowid || w->table->is_system) return;
    hooks->update(hooks->arg, change, w->table, rowid);
}
