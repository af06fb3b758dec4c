/*
 * write_direct.c -- sources of one row, without batches: INSERT ... VALUES of one row, and UPDATE
 * and DELETE of the row with a given rowid.
 *
 * It is the same row program; only the source row is made here, from parameters and constants in
 * the first place.
 */
#include "exec/write__run.h"

#include "exec/program.h"
#include "value/record.h"

/* ---- opening ---- */

static Err
open_value(ExecWrite *w, const PlanExpr *expr, WriteValue *value)
{
    *value = (WriteValue){.kind = WRITE_VALUE_PROGRAM};
    if (expr->op == PX_CONST) {
        value->kind = WRITE_VALUE_CONST;
        value->constant = expr->u.constant;
        return OK;
    }
    if (expr->op == PX_PARAM) {
        value->kind = WRITE_VALUE_PARAM;
        value->param = expr->u.number - 1;
        return OK;
    }
    return exec__compile(w->exec, expr, &value->program);
}

static Err
open_values(ExecWrite *w, PlanExpr *const *expr, u32 count)
{
    Arena *arena = &w->exec->arena;
    w->value = ARENA_NEW_ARRAY(arena, WriteValue, count + 1u);
    w->value_row = ARENA_NEW_ARRAY(arena, Cell, count + 1u);
    if (w->value == NULL || w->value_row == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < count; i++) {
        Err err = open_value(w, expr[i], &w->value[i]);
        if (err != OK) return err;
    }
    w->value_count = count;
    w->value_simple = true;
    for (u32 i = 0; i < count; i++) {
        if (w->value[i].kind == WRITE_VALUE_PROGRAM) w->value_simple = false;
    }
    w->direct = WRITE_DIRECT_VALUES;
    return OK;
}

/* The scan behind a source that yields just the rowid of one row, looked up by equality; else
   NULL. */
static const PlanScan *
rowid_scan(const PlanWrite *plan)
{
    const PlanNode *node = plan->source;
    if (plan->extra > 0 || node == NULL || node->columns != 1) return NULL;
    u32 cell = 0;
    if (node->kind == PLAN_PROJECT) {
        const PlanExpr *expr = node->u.project.expr[0];
        if (expr->op != PX_COLUMN) return NULL;
        cell = expr->u.number;
        node = node->input;
    }
    if (node == NULL || node->kind != PLAN_SCAN || cell >= node->columns) return NULL;
    const PlanScan *scan = &node->u.scan;
    u16 column = scan->column[cell];
    bool is_rowid = column == COLUMN_ROWID || column == scan->table->rowid_column;
    if (!is_rowid || scan->table != plan->table || scan->table->without_rowid) return NULL;
    if (scan->index != NULL || scan->filter != NULL || scan->eq_count != 1) return NULL;
    if (scan->eq[0].value == NULL || scan->eq[0].null_safe) return NULL;
    return scan->low == NULL && scan->high == NULL ? scan : NULL;
}

Err
write__direct_open(ExecWrite *w)
{
    const PlanWrite *plan = w->plan;
    const PlanNode *source = plan->source;
    if (plan->table->is_view) return OK;
    if (plan->kind == WRITE_INSERT) {
        if (source == NULL) return OK;
        if (source->kind == PLAN_VALUES && source->u.values.row_count == 1) {
            return open_values(w, source->u.values.row[0], source->columns);
        }
        if (source->kind == PLAN_PROJECT && source->input->kind == PLAN_ONE_ROW) {
            return open_values(w, source->u.project.expr, source->columns);
        }
        return OK;
    }
    const PlanScan *scan = rowid_scan(plan);
    if (scan == NULL) return OK;
    Err err = open_values(w, &scan->eq[0].value, 1);
    if (err == OK) w->direct = WRITE_DIRECT_ROWID;
    return err;
}

/* ---- running ---- */

static inline Err
take_value(ExecWrite *w, const WriteValue *value, Cell *cell_out)
{
    switch ((WriteValueKind)value->kind) {
    case WRITE_VALUE_PARAM: *cell_out = w->exec->param[value->param]; return OK;
    case WRITE_VALUE_CONST: *cell_out = value->constant; return OK;
    default: return exec__eval(w->exec, value->program, NULL, cell_out);
    }
}

/* The rowid that equals the value, if there can be one. */
static bool
as_rowid(const Cell *cell, i64 *rowid_out)
{
    if (cell->type == CELL_INT) {
        *rowid_out = cell->u.i;
        return true;
    }
    return cell->type == CELL_REAL && real_is_int(cell->u.r, rowid_out);
}

Err
write__direct_next(ExecWrite *w, const Cell **row_out, bool *found_out)
{
    *found_out = w->collected_reader.next++ == 0;
    *row_out = w->value_row;
    if (!*found_out) return OK;
    for (u32 i = 0; i < w->value_count; i++) {
        Err err = take_value(w, &w->value[i], &w->value_row[i]);
        if (err != OK) return err;
    }
    if (w->direct == WRITE_DIRECT_ROWID) {
        i64 rowid = 0;
        *found_out = as_rowid(&w->value_row[0], &rowid);
        w->value_row[0] = cell_int(rowid);
    }
    return OK;
}

/* ---- plain statements: no triggers, foreign keys, generated columns, checks, RETURNING ---- */

/* May the short ways below be tried?  Whatever they meet that is not plain goes the long way. */
static bool
is_plain(const ExecWrite *w)
{
    const PlanWrite *plan = w->plan;
    return w->direct != WRITE_DIRECT_NONE && !w->table->without_rowid && !w->table->strict &&
           plan->trigger_count == 0 && w->foreign == NULL && plan->returning_count == 0 &&
           plan->generated_count == 0 && plan->check_count == 0 && plan->sequence == NULL;
}

/* UPDATE: the SET list changes neither the rowid nor an entry of an index, and reads no subquery.
 */
static bool
is_plain_update(const ExecWrite *w)
{
    if (w->set.changes_key || w->table->rowid_column == COLUMN_EXPR) return false;
    for (u32 i = 0; i < w->index_count; i++) {
        if (w->set.touched[i]) return false;
    }
    for (u32 i = 0; i < w->plan->set_count; i++) {
        if ((w->plan->set_expr[i]->flags & PX_FLAG_HAS_SUB) != 0) return false;
    }
    return true;
}

static bool
has_short_way(const ExecWrite *w)
{
    if (!is_plain(w)) return false;
    if (w->plan->kind == WRITE_INSERT) return w->optimistic_insert;
    if (w->plan->kind == WRITE_UPDATE) return is_plain_update(w);
    return w->index_count == 0;
}

static void
done_plain(ExecWrite *w, ExecChange change, i64 rowid)
{
    write__changed(w, change, rowid);
    w->exec->rows_changed_total += w->rows;
    if (w->plan->counts_changes) w->exec->rows_changed = w->rows;
    w->running = false;
}

/* Is w->last_rowid, from the run before, still the table's last?  It is if no other write, undo or
   transaction has been in between. */
static bool
last_stands(const ExecWrite *w)
{
    const u64 *write_no = w->exec->env->write_no;
    return write_no != NULL && !w->exec->env->multi_writers && w->last_no != 0 &&
           w->last_no + 1 == *write_no;
}

static void
last_remember(ExecWrite *w)
{
    const u64 *write_no = w->exec->env->write_no;
    i64 rowid = w->fresh.rowid;
    bool known = w->last_known || !w->rowid_given;
    if (w->last_known && rowid < w->last_rowid) rowid = w->last_rowid;
    w->last_rowid = rowid;
    w->last_no = known && write_no != NULL ? *write_no : 0;
}

/* Straight, if that will do. */
static Err
insert_straight(ExecWrite *w, bool *done_out)
{
    u64 last_no = w->last_no;
    w->last_known = last_stands(w);
    w->last_no = 0;
    Err err = write__straight_put(w, done_out);
    if (err == OK && *done_out) {
        last_remember(w);
        done_plain(w, EXEC_INSERT, w->fresh.rowid);
        return OK;
    }
    w->last_no = last_no;
    w->last_known = false;
    return err;
}

static Err
insert_plain(ExecWrite *w, const Cell *source, bool *done_out)
{
    Err err = source != NULL ? write__load_values(w, source) : write__load_direct(w);
    if (err != OK) return err;
    for (u16 i = 0; i < w->not_null_count; i++) {
        if (w->fresh.cell[w->not_null[i]].type == CELL_NULL) return OK;
    }
    w->last_known = last_stands(w);
    w->last_no = 0;
    err = write__new_rowid(w);
    if (err == OK) err = write__encode_fresh(w);
    if (err != OK) return err;
    i32 clash;
    bool newer;
    w->row_mark = w->at_once ? store_txn_place(w->txn) : store_txn_mark(w->txn);
    err = write__apply(w, &clash, &newer);
    if (err != OK || clash != WRITE_CLASH_NONE) {
        w->last_known = false;
        return err;
    }
    last_remember(w);
    done_plain(w, EXEC_INSERT, w->fresh.rowid);
    *done_out = true;
    return OK;
}

/* One column of the record of a row with a rowid. */
static ALWAYS_INLINE Err
read_old(const TableDef *table, const Record *record, u16 c, i64 rowid, Cell *cell_out)
{
    if (c == table->column_count || c == table->rowid_column) {
        *cell_out = cell_int(rowid);
        return OK;
    }
    const ColumnDef *column = &table->column[c];
    if (UNLIKELY(column->generated == 1)) {
        *cell_out = cell_null();
        return OK;
    }
    if (UNLIKELY(column->stored_index >= record->columns)) {
        *cell_out = column->default_value;
        return OK;
    }
    Err err = record_column(record, column->stored_index, cell_out);
    return err == OK && (cell_out->flags & CELL_FROM_KEY) != 0 ? ERR_CORRUPT : err;
}

/* Cells of the old row that the SET list reads. */
static Err
read_for_set(ExecWrite *w, i64 rowid, Slice bytes)
{
    Record record;
    Err err = record_open(bytes, &record);
    for (u32 i = 0; i < w->set.count && err == OK; i++) {
        const ExecProgram *program = w->set.expr[i];
        for (u32 k = 0; k < program->column_count && err == OK; k++) {
            u16 column = (u16)program->column[k];
            err = read_old(w->table, &record, column, rowid, &w->old.cell[column]);
        }
    }
    return err == OK ? OK : exec__fail(w->exec, err, NULL);
}

static Err
update_plain(ExecWrite *w, i64 rowid, bool *done_out)
{
    u8 bytes[TABLE_KEY_BYTES];
    table_key_put(rowid, bytes);
    Slice key = SLICE(bytes, sizeof(bytes));
    Slice record;
    bool found;
    Err err = store_get(w->txn, w->table->tree, key, &found, &record);
    if (err != OK) return exec__fail_store(w->exec, err, w->txn);
    if (!found) {
        *done_out = true;
        w->running = false;
        return OK;
    }
    err = read_for_set(w, rowid, record);
    Cell *value = w->fresh.cell;
    for (u32 i = 0; i < w->set.count && err == OK; i++) {
        err = exec__eval(w->exec, w->set.expr[i], w->old.cell, &value[i]);
        if (err == OK) err = write__store_affinity(w, w->set.column[i], &value[i]);
        if (err == OK && value[i].type == CELL_NULL &&
            w->table->column[w->set.column[i]].not_null) {
            return OK; /* The long way says why not. */
        }
    }
    if (err != OK) return err;
    buf_clear(&w->fresh.record);
    bool patched;
    err = record_patch(record, w->set_stored, value, w->set.count, &w->fresh.record, &patched);
    if (err != OK) return exec__fail(w->exec, err, NULL);
    if (!patched) return OK;
    StoreVerdict verdict;
    err = store_put(w->txn, w->table->tree, key, buf_slice(&w->fresh.record), STORE_PUT_UPDATE,
                    &verdict);
    if (err != OK) return exec__fail_store(w->exec, err, w->txn);
    done_plain(w, EXEC_UPDATE, rowid);
    *done_out = true;
    return OK;
}

static Err
delete_plain(ExecWrite *w, i64 rowid, bool *done_out)
{
    u8 bytes[TABLE_KEY_BYTES];
    table_key_put(rowid, bytes);
    Slice key = SLICE(bytes, sizeof(bytes));
    bool found = true;
    Err err = OK;
    /* With other writers about, a row that the snapshot does not see is no target. */
    if (w->exec->env->multi_writers) {
        Slice record;
        err = store_get(w->txn, w->table->tree, key, &found, &record);
    }
    StoreVerdict verdict = STORE_ABSENT;
    if (err == OK && found) err = store_delete(w->txn, w->table->tree, key, &verdict);
    if (err != OK) return exec__fail_store(w->exec, err, w->txn);
    *done_out = true;
    if (verdict == STORE_ABSENT) {
        w->running = false;
        return OK;
    }
    done_plain(w, EXEC_DELETE, rowid);
    return OK;
}

/* Positions in the record of the columns that SET changes. */
static Err
list_stored(ExecWrite *w)
{
    w->set_stored = ARENA_NEW_ARRAY(&w->exec->arena, u16, w->set.count + 1u);
    if (w->set_stored == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < w->set.count; i++) {
        w->set_stored[i] = w->table->column[w->set.column[i]].stored_index;
    }
    return OK;
}

Err
write__plain_open(ExecWrite *w)
{
    w->plain = has_short_way(w);
    w->at_once = w->plain && w->exec->plan->klass != PLAN_VOLATILE &&
                 (w->plan->kind != WRITE_INSERT || w->index_count == 0);
    Err err = write__straight_open(w);
    if (err != OK) return err;
    return w->plain && w->plan->kind == WRITE_UPDATE ? list_stored(w) : OK;
}

Err
write__plain_run(ExecWrite *w, bool *done_out)
{
    const ExecHooks *hooks = w->exec->env->hooks;
    *done_out = false;
    if (hooks != NULL && hooks->preupdate != NULL) return OK;
    w->op = w->plan->kind;
    w->sets = w->op == WRITE_UPDATE ? &w->set : NULL;
    arena_reset(&w->exec->row_arena);
    Err err = write__start(w);
    const Cell *source;
    bool found;
    if (err == OK && w->value_simple && w->op == WRITE_INSERT) {
        if (w->straight != NULL) {
            err = insert_straight(w, done_out);
            if (err != OK || *done_out) return err;
        }
        return insert_plain(w, NULL, done_out);
    }
    if (err == OK) err = write__direct_next(w, &source, &found);
    if (err != OK) return err;
    if (!found) {
        *done_out = true;
        w->running = false;
        return OK;
    }
    switch ((PlanWriteKind)w->op) {
    case WRITE_INSERT: return insert_plain(w, source, done_out);
    case WRITE_UPDATE: return update_plain(w, source[0].u.i, done_out);
    case WRITE_DELETE: break;
    }
    return delete_plain(w, source[0].u.i, done_out);
}
