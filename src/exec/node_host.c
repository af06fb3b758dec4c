/*
 * node_host.c -- PLAN_HOST_SCAN: the rows of a virtual table.
 *
 * The scan begins at the first next() after a rewind, with its arguments as they are then.  An IN
 * list that the table does not take whole makes one scan for each of its values, in value order.
 * As long as nothing above collects rows, one is read at a time: the table is asked for no row that
 * nobody wants, and functions of its own see the row that they are called on.
 */
#include "exec/exec__write.h"
#include "exec/node.h"
#include "exec/scan_args.h"
#include "value/host_table.h"

typedef struct HostScan {
    ExecNode node;
    HostTable *host;
    HostCursor *cursor; /* Open from the first row of a run to its end. */
    ScanArgs args;
    bool started, ended, scanning;
} HostScan;

static Err
host_fail(Exec *exec, Err err)
{
    return exec->msg.err == OK ? exec__fail(exec, err, NULL) : err;
}

static Err
filter(Exec *exec, HostScan *scan, bool *row_out)
{
    const PlanNode *plan = scan->node.plan;
    scan->scanning = true;
    Err err = scan->host->ops->filter(scan->cursor, plan->u.host_scan.number,
                                      plan->u.host_scan.text, scan->args.count, scan->args.value,
                                      row_out, &exec->msg);
    return err == OK ? OK : host_fail(exec, err);
}

/* ---- rows ---- */

static Err
begin_scan(Exec *exec, HostScan *scan, bool *row_out)
{
    bool empty;
    *row_out = false;
    scan->started = true;
    Err err = OK;
    if (scan->cursor == NULL) {
        err = scan->host->ops->open(scan->host, &scan->cursor, &exec->msg);
        if (err != OK) return host_fail(exec, err);
    }
    err = exec__args_begin(exec, &scan->args, &empty);
    if (err != OK) return err;
    if (empty) {
        scan->ended = true;
        return OK;
    }
    return filter(exec, scan, row_out);
}

/* To the first or next row; past the end of one scan, to that of the next values. */
static Err
advance(Exec *exec, HostScan *scan, bool *row_out)
{
    Err err = OK;
    *row_out = false;
    if (!scan->started) {
        err = begin_scan(exec, scan, row_out);
    } else {
        err = scan->host->ops->next(scan->cursor, row_out, &exec->msg);
        if (err != OK) err = host_fail(exec, err);
    }
    while (err == OK && !*row_out && !scan->ended) {
        if (scan->args.walks && exec__args_next(&scan->args)) {
            err = filter(exec, scan, row_out);
        } else {
            scan->ended = true;
        }
    }
    return err;
}

static Err
read_cell(Exec *exec, HostScan *scan, u16 column, Cell *out)
{
    const bool *unchanged = scan->node.plan->u.host_scan.unchanged;
    *out = cell_null();
    if (column != COLUMN_ROWID) {
        return scan->host->ops->column(scan->cursor, column, unchanged != NULL && unchanged[column],
                                       &scan->node.bytes, out, &exec->msg);
    }
    i64 rowid = 0;
    Err err = scan->host->ops->rowid(scan->cursor, &rowid, &exec->msg);
    *out = cell_int(rowid);
    return err;
}

/* The rowid, which stands last, is asked for first: as in SELECT rowid, *. */
static Err
read_row(Exec *exec, HostScan *scan, u32 at)
{
    const PlanNode *plan = scan->node.plan;
    u32 columns = plan->columns;
    bool first = columns > 0 && plan->u.host_scan.column[columns - 1] == COLUMN_ROWID;
    for (u32 k = 0; k < columns; k++) {
        u32 i = !first ? k : k == 0 ? columns - 1 : k - 1;
        Err err = read_cell(exec, scan, plan->u.host_scan.column[i], &scan->node.buffer[i][at]);
        if (err != OK) return host_fail(exec, err);
    }
    return OK;
}

/* Does the row have the values that are being walked? */
static Err
check_row(Exec *exec, HostScan *scan, u32 at, bool *fits_out)
{
    *fits_out = true;
    for (u32 i = 0; scan->args.walks && i < scan->args.count; i++) {
        const ScanArg *state = &scan->args.arg[i];
        if (!state->is_list || state->plan->check_cell < 0) continue;
        const PlanStamp *stamp = &state->plan->check;
        ExecTruth truth;
        Err err = exec__compare_cells(exec, PX_EQ, stamp->affinity, stamp->collation,
                                      &scan->node.buffer[state->plan->check_cell][at],
                                      &scan->args.value[i], &scan->node.bytes, &truth);
        if (err != OK) return err;
        if (truth != EXEC_TRUE) *fits_out = false;
    }
    return OK;
}

static void
host_next(Exec *exec, ExecNode *node, u32 want)
{
    HostScan *scan = (HostScan *)node;
    Err err = OK;
    u32 done = 0;
    if (node->streaming || exec->plan->klass == PLAN_VOLATILE) want = 1;
    if (!scan->ended) err = exec__out_reserve(exec, node, want);
    while (err == OK && !scan->ended && done < want) {
        bool row, fits = false;
        err = advance(exec, scan, &row);
        if (err == OK && row) err = read_row(exec, scan, done);
        if (err == OK && row) err = check_row(exec, scan, done, &fits);
        if (err == OK && fits) done++;
        if (err == OK) err = exec__check(exec);
    }
    if (done == 0) {
        exec__out_end(node, err);
    } else {
        exec__out_rows(node, done, err);
    }
}

static void
host_rewind(Exec *exec, ExecNode *node)
{
    (void)exec;
    HostScan *scan = (HostScan *)node;
    scan->started = false;
    scan->ended = false;
}

static void
host_reset(Exec *exec, ExecNode *node)
{
    (void)exec;
    HostScan *scan = (HostScan *)node;
    if (scan->cursor != NULL) scan->host->ops->close(scan->cursor);
    scan->cursor = NULL;
    scan->started = false;
    scan->ended = false;
    exec__args_reset(&scan->args);
}

static void
host_close(Exec *exec, ExecNode *node)
{
    HostScan *scan = (HostScan *)node;
    host_reset(exec, node);
    exec__args_close(&scan->args);
}

static const NodeOps host_ops = {
    .next = host_next, .rewind = host_rewind, .reset = host_reset, .close = host_close};

Err
exec__host_scan_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &host_ops, sizeof(HostScan), node_out);
    if (err != OK) return err;
    HostScan *scan = (HostScan *)*node_out;
    scan->host = plan->u.host_scan.table->host;
    return exec__args_open(exec, plan->u.host_scan.arg, plan->u.host_scan.arg_count, &scan->args);
}
