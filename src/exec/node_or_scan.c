/*
 * node_or_scan.c -- PLAN_OR_SCAN: the scans of an OR's terms one after the other, each row once.
 */
#include "exec/exec__write.h"
#include "exec/keyset.h"
#include "exec/node.h"

typedef struct OrScan {
    ExecNode node;
    u32 current;
    u32 *seen_after; /* By live row of the output: keys in `seen` behind it. */
    ExecProgram *filter;
    KeyMaker maker;
    KeySet seen;
    Cell *row;
    u16 *sel;
} OrScan;

static void
or_scan_rewind(Exec *exec, ExecNode *node)
{
    OrScan *scan = (OrScan *)node;
    scan->current = 0;
    exec__keyset_clear(&scan->seen);
    exec__keymaker_reset(&scan->maker);
    if (node->plan->u.or_scan.term_count > 0) exec__rewind(exec, node->part[0]);
}

/* Is the row new, and does it pass the filter? */
static Err
row_take(Exec *exec, OrScan *scan, const Batch *in, u32 at, bool *take_out)
{
    const PlanNode *plan = scan->node.plan;
    Slice key;
    u32 number;
    exec__load_all(in, at, scan->row);
    Err err = exec__key_make(&scan->maker, scan->row + plan->u.or_scan.key_first, &key);
    if (err == OK) err = exec__keyset_add(&scan->seen, key, &number, take_out);
    if (err != OK) return exec__fail(exec, err, NULL);
    if (!*take_out || scan->filter == NULL) return OK;
    ExecTruth truth = EXEC_FALSE;
    err = exec__truth_in(exec, scan->filter, scan->row, &scan->node.bytes, &truth);
    *take_out = truth == EXEC_TRUE;
    return err;
}

static void
or_scan_next(Exec *exec, ExecNode *node, u32 want)
{
    OrScan *scan = (OrScan *)node;
    const PlanNode *plan = node->plan;
    while (scan->current < plan->u.or_scan.term_count) {
        const Batch *in = exec__next(exec, node->part[scan->current], want);
        u32 count = 0;
        Err err = OK;
        for (u32 i = 0; err == OK && i < in->count; i++) {
            bool take = false;
            u32 at = batch_at(in, i);
            err = row_take(exec, scan, in, at, &take);
            if (err != OK || !take) continue;
            scan->seen_after[count] = scan->seen.count;
            scan->sel[count++] = (u16)at;
        }
        bool term_done = in->count == 0 && in->err == OK;
        if (err == OK) err = in->err;
        if (count > 0 || err != OK) {
            memcpy(node->out.col, in->col, plan->columns * sizeof(Vec));
            exec__out_rows(node, count, err);
            node->out.rows = in->rows;
            node->out.sel = scan->sel;
            return;
        }
        if (!term_done) continue;
        scan->current++;
        if (scan->current < plan->u.or_scan.term_count) {
            exec__rewind(exec, node->part[scan->current]);
        }
    }
    exec__out_end(node, OK);
}

static Err
or_scan_resume(Exec *exec, ExecNode *node, u32 used)
{
    OrScan *scan = (OrScan *)node;
    ExecNode *term = node->part[scan->current];
    exec__keyset_truncate(&scan->seen, scan->seen_after[used - 1]);
    return exec__resume(exec, term, exec__live_row(&term->out, scan->sel[used - 1]) + 1);
}

static void
or_scan_close(Exec *exec, ExecNode *node)
{
    OrScan *scan = (OrScan *)node;
    (void)exec;
    exec__keyset_free(&scan->seen);
    exec__keymaker_free(&scan->maker);
}

static const NodeOps or_scan_ops = {.next = or_scan_next,
                                    .rewind = or_scan_rewind,
                                    .resume = or_scan_resume,
                                    .close = or_scan_close};

Err
exec__or_scan_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &or_scan_ops, sizeof(OrScan), node_out);
    if (err != OK) return err;
    OrScan *scan = (OrScan *)*node_out;
    u32 terms = plan->u.or_scan.term_count;
    exec__keyset_init(exec, &scan->seen);
    scan->seen_after = EXEC_ROOM(exec, u32, BATCH_ROWS_MAX);
    scan->node.part = ARENA_NEW_ARRAY(&exec->arena, ExecNode *, MAX_OF(terms, 1u));
    scan->row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->columns, 1u));
    scan->sel = EXEC_ROOM(exec, u16, BATCH_ROWS_MAX);
    if (scan->seen_after == NULL || scan->node.part == NULL || scan->row == NULL ||
        scan->sel == NULL) {
        return exec__fail(exec, ERR_NOMEM, NULL);
    }
    err = exec__keymaker_init(exec, &scan->maker, NULL, plan->u.or_scan.key_count);
    if (err != OK) return exec__fail(exec, err, NULL);
    for (u32 i = 0; err == OK && i < terms; i++) {
        err = exec__node_open(exec, plan->u.or_scan.term[i], &scan->node.part[i]);
        if (err == OK) scan->node.part_count++;
    }
    if (err == OK && plan->u.or_scan.filter != NULL) {
        err = exec__compile_condition(exec, plan->u.or_scan.filter, &scan->filter);
    }
    return err;
}
