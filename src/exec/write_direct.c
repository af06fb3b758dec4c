/*
 * write_direct.c -- sources of one row, without batches: INSERT ... VALUES of one row, and UPDATE
 * and DELETE of the row with a given rowid.
 *
 * It is the same row program; only the source row is made here, from parameters and constants in
 * the first place.
 */
#include "exec/write__run.h"

#include "exec/program.h"

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
    *found_out = w->collected_at++ == 0;
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
