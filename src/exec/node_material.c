/*
 * node_material.c -- PLAN_MATERIAL, PLAN_CTE_SCAN: rows that are kept and read again.
 *
 * A MATERIAL runs its input once and keeps the rows over rewinds, until a register that the input
 * reads has another value or kept results have become invalid.  A shared one (plan->material[no])
 * is read by CTE scans, each at its own place.
 */
#include "exec/exec__write.h"
#include "exec/node.h"
#include "exec/spool.h"
#include "exec/watch.h"

typedef struct Material {
    ExecNode node;
    RowSpool rows;
    RegWatch watch;
    SpoolReader reader;
} Material;

/* Have the rows. */
static Err
material_fill(Exec *exec, Material *material)
{
    material->node.used = true; /* A scan of a CTE comes here past exec__next(). */
    if (exec__watch_same(exec, &material->watch)) return OK;
    exec__spool_clear(exec, &material->rows);
    material->node.used = true; /* A CTE scan does not come through exec__next(). */
    Err err = exec__watch_begin(exec, &material->watch);
    if (err != OK) return err;
    exec__rewind(exec, material->node.input);
    for (;;) {
        const Batch *in = exec__next(exec, material->node.input,
                                     exec__demand(exec, BATCH_ROWS_MAX));
        err = exec__spool_add_batch(exec, &material->rows, in);
        if (err != OK) return exec__fail(exec, err, NULL);
        if (in->err != OK) return in->err;
        if (in->count == 0) break;
        err = exec__check(exec);
        if (err != OK) return err;
    }
    exec__watch_done(exec, &material->watch);
    return OK;
}

static void
material_next(Exec *exec, ExecNode *node, u32 want)
{
    Material *material = (Material *)node;
    Err err = material->reader.next == 0 ? material_fill(exec, material) : OK;
    if (err != OK) {
        exec__out_end(node, err);
        return;
    }
    exec__spool_batch(exec, node, &material->rows, &material->reader, want);
}

static Err
material_resume(Exec *exec, ExecNode *node, u32 used)
{
    (void)exec;
    exec__spool_back(&((Material *)node)->reader, node->out.count - used);
    return OK;
}

static void
material_rewind(Exec *exec, ExecNode *node)
{
    (void)exec;
    exec__spool_rewind(&((Material *)node)->reader);
}

static void
material_reset(Exec *exec, ExecNode *node)
{
    Material *material = (Material *)node;
    exec__watch_forget(&material->watch);
    exec__spool_close(exec, &material->reader);
    exec__spool_clear(exec, &material->rows);
}

static void
material_close(Exec *exec, ExecNode *node)
{
    Material *material = (Material *)node;
    exec__spool_close(exec, &material->reader);
    exec__spool_free(exec, &material->rows);
    exec__watch_close(&material->watch);
}

static const NodeOps material_ops = {.next = material_next,
                                     .rewind = material_rewind,
                                     .resume = material_resume,
                                     .reset = material_reset,
                                     .close = material_close};

Err
exec__material_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &material_ops, sizeof(Material), node_out);
    if (err != OK) return err;
    Material *material = (Material *)*node_out;
    exec__spool_init(exec, &material->rows, plan->columns);
    err = exec__node_open(exec, plan->input, &material->node.input);
    return err == OK ? exec__watch_open(exec, &material->watch, plan->input) : err;
}

/* ---- CTE_SCAN ---- */

typedef struct CteScan {
    ExecNode node;
    SpoolReader reader; /* Its number alone for the row of a recursion. */
} CteScan;

static void
cte_rewind(Exec *exec, ExecNode *node)
{
    (void)exec;
    exec__spool_rewind(&((CteScan *)node)->reader);
}

static void
cte_next(Exec *exec, ExecNode *node, u32 want)
{
    CteScan *scan = (CteScan *)node;
    ExecShared *shared = &exec->shared[node->plan->u.cte_scan.material_no];
    if (shared->producer != NULL) {
        Material *material = (Material *)shared->producer;
        Err err = scan->reader.next == 0 ? material_fill(exec, material) : OK;
        if (err != OK) {
            exec__out_end(node, err);
            return;
        }
        exec__spool_batch(exec, node, &material->rows, &scan->reader, want);
        return;
    }
    exec__out_end(node, OK);
    if (shared->current == NULL || scan->reader.next > 0) return;
    scan->reader.next = 1;
    Err err = exec__out_reserve(exec, node, 1);
    for (u32 i = 0; err == OK && i < node->plan->columns; i++) {
        node->buffer[i][0] = shared->current[i];
    }
    exec__out_rows(node, err == OK, err);
    node->out.last = true;
}

static Err
cte_resume(Exec *exec, ExecNode *node, u32 used)
{
    (void)exec;
    exec__spool_back(&((CteScan *)node)->reader, node->out.count - used);
    return OK;
}

static void
cte_reset(Exec *exec, ExecNode *node)
{
    exec__spool_close(exec, &((CteScan *)node)->reader);
}

static const NodeOps cte_ops = {.next = cte_next,
                                .rewind = cte_rewind,
                                .resume = cte_resume,
                                .reset = cte_reset,
                                .close = cte_reset};

Err
exec__cte_scan_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    ASSERT(plan->u.cte_scan.material_no < exec->plan->material_count);
    return exec__node_new(exec, plan, &cte_ops, sizeof(CteScan), node_out);
}
