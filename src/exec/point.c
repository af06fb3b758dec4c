/*
 * point.c -- the direct path: one row by its whole key.
 */
#include "exec/point.h"

#include "exec/exec__write.h"

/* Result columns that read the row, or none: programs. */
static Err
open_columns(Exec *exec, ExecPoint *point, const PlanNode *project)
{
    u32 columns = MAX_OF(point->columns, 1u);
    point->pass = ARENA_NEW_ARRAY(&exec->arena, u32, columns);
    point->program = ARENA_NEW_ARRAY(&exec->arena, ExecProgram *, columns);
    if (point->pass == NULL || point->program == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    point->passes = point->scan != NULL && point->scan->filter == NULL;
    for (u32 i = 0; i < point->columns; i++) {
        point->pass[i] = i;
        if (project == NULL) continue;
        const PlanExpr *expr = project->u.project.expr[i];
        if (expr->op == PX_COLUMN) {
            point->pass[i] = expr->u.number;
            continue;
        }
        point->passes = false;
        Err err = exec__compile(exec, expr, &point->program[i]);
        if (err != OK) return err;
    }
    exec->point = point;
    return OK;
}

/* SELECT without FROM. */
static Err
open_expressions(Exec *exec, const PlanNode *project)
{
    ExecPoint *point = ARENA_NEW(&exec->arena, ExecPoint);
    if (point == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    point->columns = project->columns;
    return open_columns(exec, point, project);
}

/* A parameter that is compared with the rowid: an integer needs no conversion. */
static i32
key_param(const PlanScan *scan)
{
    if (scan->index != NULL || scan->table->without_rowid) return -1;
    const PlanExpr *value = scan->eq[0].value;
    if (value != NULL && value->op == PX_AFFINITY) value = value->arg[0];
    return value != NULL && value->op == PX_PARAM ? (i32)value->u.number - 1 : -1;
}

Err
exec__point_open(Exec *exec)
{
    const PlanNode *plan = exec->plan->root;
    const PlanNode *project = plan->kind == PLAN_PROJECT ? plan : NULL;
    const PlanNode *scan = project != NULL ? plan->input : plan;
    if (project != NULL && scan->kind == PLAN_ONE_ROW) return open_expressions(exec, project);
    if (scan->kind != PLAN_SCAN || !exec__scan_is_single(&scan->u.scan)) return OK;
    bool covering = scan->u.scan.covering && scan->u.scan.index != NULL;
    if (scan->u.scan.low != NULL || scan->u.scan.high != NULL || covering) return OK;
    ExecPoint *point = ARENA_NEW(&exec->arena, ExecPoint);
    if (point == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    point->scan = (Scan *)exec->node[scan->number];
    point->columns = plan->columns;
    point->key_param = key_param(&scan->u.scan);
    return open_columns(exec, point, project);
}

/* The key of the row in the table's tree; *found_out false: there is no such row; *handled_out
   false: the value is of a kind that needs more thought. */
static Err
find_key(Exec *exec, Scan *scan, u8 *rowid_key, Slice *key_out, bool *found_out, bool *handled_out)
{
    const PlanScan *plan = &scan->node.plan->u.scan;
    i32 param = exec->point->key_param;
    if (LIKELY(param >= 0 && exec->param[param].type == CELL_INT)) {
        table_key_put(exec->param[param].u.i, rowid_key);
        *key_out = SLICE(rowid_key, TABLE_KEY_BYTES);
        *found_out = *handled_out = true;
        return OK;
    }
    *found_out = false;
    *handled_out = false;
    for (u32 i = 0; i < plan->eq_count; i++) {
        Err err = exec__eval_in(exec, scan->eq[i], NULL, &scan->node.bytes, &scan->eq_value[i]);
        if (err != OK) return err;
    }
    if (scan->codec == NULL) {
        if (scan->eq_value[0].type != CELL_INT) return OK;
        table_key_put(scan->eq_value[0].u.i, rowid_key);
        *key_out = SLICE(rowid_key, TABLE_KEY_BYTES);
        *found_out = *handled_out = true;
        return OK;
    }
    Err err = index_range_build(scan->codec, scan->eq_value, plan->eq_count, scan->null_safe, NULL,
                                false, NULL, false, &scan->range);
    if (err != OK) return exec__fail(exec, err, NULL);
    *handled_out = scan->range.empty || (scan->range.point && !scan->range.recheck);
    if (scan->range.empty || !*handled_out) return OK;
    *key_out = buf_slice(&scan->range.low);
    *found_out = true;
    if (scan->index == NULL) return OK;
    Slice entry;
    err = store_get(scan->txn, scan->tree, *key_out, found_out, &entry);
    if (err != OK) return exec__fail_store(exec, err, scan->txn);
    if (!*found_out) return OK;
    err = index_table_key(scan->codec, *key_out, entry, &scan->node.bytes, &scan->table_key);
    *key_out = buf_slice(&scan->table_key);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* Result columns from the scan's row, if there is a scan. */
static Err
project(Exec *exec, const ExecPoint *point, const Cell *row, Arena *arena)
{
    for (u32 i = 0; i < point->columns; i++) {
        if (point->program[i] == NULL) {
            exec->row[i] = row[point->pass[i]];
            continue;
        }
        Err err = exec__eval_in(exec, point->program[i], row, arena, &exec->row[i]);
        if (err != OK) return err;
    }
    return OK;
}

Err
exec__point_step(Exec *exec, bool *row_out)
{
    ExecPoint *point = exec->point;
    Scan *scan = point->scan;
    point->state = POINT_DONE;
    if (scan == NULL) {
        *row_out = true;
        return project(exec, point, NULL, &exec->run_arena);
    }
    const PlanScan *plan = &scan->node.plan->u.scan;
    u8 rowid_key[TABLE_KEY_BYTES];
    Slice key = SLICE_NONE, record;
    bool found, handled, keep = true;
    *row_out = false;
    scan->txn = exec__txn(exec, plan->table);
    Err err = find_key(exec, scan, rowid_key, &key, &found, &handled);
    if (err != OK) return err;
    if (UNLIKELY(!handled)) {
        point->state = POINT_DECLINED;
        return OK;
    }
    if (!found) return OK;
    err = store_get(scan->txn, plan->table->tree, key, &found, &record);
    if (err != OK) return exec__fail_store(exec, err, scan->txn);
    if (!found) {
        if (scan->index == NULL) return OK;
        return exec__fail(exec, ERR_CORRUPT, "index %s has an entry without a row",
                          plan->index->name);
    }
    if (LIKELY(point->passes)) {
        scan->node.counters.rows++;
        *row_out = true;
        return exec__scan_pick(exec, scan, key, record, point->pass, point->columns, exec->row);
    }
    err = exec__scan_row(exec, scan, key, record, scan->row);
    if (err == OK && scan->filter != NULL) {
        ExecTruth truth = EXEC_FALSE;
        err = exec__truth_in(exec, scan->filter, scan->row, &scan->node.bytes, &truth);
        keep = truth == EXEC_TRUE;
    }
    if (err != OK || !keep) return err;
    scan->node.counters.rows++;
    *row_out = true;
    return project(exec, point, scan->row, &scan->node.bytes);
}

void
exec__point_reset(Exec *exec)
{
    Scan *scan = exec->point->scan;
    exec->point->state = POINT_NEW;
    if (scan == NULL) return;
    arena_reset(&scan->node.bytes);
    scan->txn = NULL;
}
