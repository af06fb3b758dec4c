/*
 * node_sort.c -- PLAN_SORT: all rows of the input, in order; or only the first N of them.
 */
#include "exec/exec__write.h"
#include "exec/node.h"
#include "exec/sorter.h"
#include "exec/vexpr.h"

#define BY_BATCH_MIN 16u /* Fewer rows are added one by one. */

typedef struct Sort {
    ExecNode node;
    ExecProgram **key, *limit, *offset;
    Sorter sorter;
    VExpr **vkey; /* NULL: some key is not total. */
    Vec *key_vec;
    Cell *key_cell, *row;
    bool sorted;
    u32 next;
    RowBuf page; /* Beyond the budget: the rows read from the merge last. */
} Sort;

static void
sort_rewind(Exec *exec, ExecNode *node)
{
    Sort *sort = (Sort *)node;
    sort->sorted = false;
    sort->next = 0;
    exec__rowbuf_clear(&sort->page);
    exec__rewind(exec, node->input);
}

static Err
sort_batch(Exec *exec, Sort *sort, const Batch *in)
{
    u32 keys = sort->node.plan->u.sort.key_count;
    if (sort->vkey != NULL && in->count >= BY_BATCH_MIN) {
        Err err = OK;
        for (u32 k = 0; err == OK && k < keys; k++) {
            err = exec__vexpr_eval(exec, sort->vkey[k], in, &sort->node.bytes, &sort->key_vec[k]);
        }
        if (err != OK) return err;
        err = exec__sorter_add_batch(&sort->sorter, sort->key_vec, in, sort->key_cell, sort->row);
        return err == OK ? OK : exec__fail(exec, err, NULL);
    }
    for (u32 i = 0; i < in->count; i++) {
        exec__load_all(in, batch_at(in, i), sort->row);
        for (u32 k = 0; k < keys; k++) {
            Err err = exec__eval_in(exec, sort->key[k], sort->row, &sort->node.bytes,
                                    &sort->key_cell[k]);
            if (err != OK) return err;
        }
        Err err = exec__sorter_add(&sort->sorter, sort->key_cell, sort->row);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    return OK;
}

static Err
sort_input(Exec *exec, Sort *sort)
{
    i64 limit, offset;
    Err err = exec__eval_limit(exec, sort->limit, sort->offset, &limit, &offset);
    if (err != OK) return err;
    u64 rows_max = limit < 0 ? U64_MAX : (u64)limit + (u64)offset;
    exec__sorter_start(&sort->sorter, rows_max);
    exec->status->sorts++;
    if (rows_max == 0) return OK;
    for (;;) {
        const Batch *in = exec__next(exec, sort->node.input, exec__demand(exec, BATCH_ROWS_MAX));
        arena_reset(&sort->node.bytes);
        err = sort_batch(exec, sort, in);
        if (err == OK) err = in->err;
        if (err == OK) err = exec__check(exec);
        if (err != OK) return err;
        if (in->count == 0) break;
    }
    err = exec__sorter_finish(&sort->sorter);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* The next rows of the merge. */
static Err
page_fill(Exec *exec, Sort *sort, u32 want)
{
    RowBuf *page = &sort->page;
    Err err = exec__check(exec);
    if (err != OK) return err;
    exec__rowbuf_clear(page);
    sort->next = 0;
    while (page->rows < want && exec__rowbuf_memory(page) < BATCH_BYTES_MAX) {
        const Cell *row;
        err = exec__sorter_next(&sort->sorter, NULL, &row);
        if (err == OK && row == NULL) break;
        if (err == OK) err = exec__rowbuf_add(page, row);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    return OK;
}

static void
merged_next(Exec *exec, Sort *sort, u32 want)
{
    Err err = sort->next == sort->page.rows ? page_fill(exec, sort, want) : OK;
    u32 count = MIN_OF(want, sort->page.rows - sort->next);
    if (err != OK || count == 0) {
        exec__out_end(&sort->node, err);
        return;
    }
    exec__out_from_rows(exec, &sort->node, &sort->page, NULL, sort->next, count);
    sort->next += count;
}

bool
exec__sort_keeps_rows(const ExecNode *node)
{
    return !exec__sorter_merges(&((const Sort *)node)->sorter);
}

static void
sort_next(Exec *exec, ExecNode *node, u32 want)
{
    Sort *sort = (Sort *)node;
    if (!sort->sorted) {
        Err err = sort_input(exec, sort);
        if (err != OK) {
            exec__out_end(node, err);
            return;
        }
        sort->sorted = true;
    }
    if (exec__sorter_merges(&sort->sorter)) {
        merged_next(exec, sort, want);
        return;
    }
    u32 count = MIN_OF(want, sort->sorter.count - sort->next);
    if (count == 0) {
        exec__out_end(node, OK);
        return;
    }
    exec__out_from_rows(exec, node, &sort->sorter.rows, sort->sorter.order, sort->next, count);
    sort->next += count;
}

static Err
sort_resume(Exec *exec, ExecNode *node, u32 used)
{
    (void)exec;
    ((Sort *)node)->next -= node->out.count - used;
    return OK;
}

static void
sort_reset(Exec *exec, ExecNode *node)
{
    Sort *sort = (Sort *)node;
    (void)exec;
    sort->sorted = false;
    exec__rowbuf_clear(&sort->page);
    exec__sorter_start(&sort->sorter, U64_MAX);
}

static void
sort_close(Exec *exec, ExecNode *node)
{
    (void)exec;
    exec__sorter_free(&((Sort *)node)->sorter);
    exec__rowbuf_free(&((Sort *)node)->page);
}

static const NodeOps sort_ops = {.next = sort_next,
                                 .rewind = sort_rewind,
                                 .resume = sort_resume,
                                 .reset = sort_reset,
                                 .close = sort_close};

static Err
open_kernels(Exec *exec, Sort *sort)
{
    const PlanNode *plan = sort->node.plan;
    u32 keys = plan->u.sort.key_count;
    for (u32 i = 0; i < keys; i++) {
        if (!exec__vexpr_fits(plan->u.sort.key[i].expr)) return OK;
    }
    VExpr **vkey = ARENA_NEW_ARRAY(&exec->arena, VExpr *, MAX_OF(keys, 1u));
    sort->key_vec = ARENA_NEW_ARRAY(&exec->arena, Vec, MAX_OF(keys, 1u));
    if (vkey == NULL || sort->key_vec == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < keys; i++) {
        Err err = exec__vexpr_open(exec, plan->u.sort.key[i].expr, &vkey[i]);
        if (err != OK) return err;
    }
    sort->vkey = vkey;
    return OK;
}

Err
exec__sort_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &sort_ops, sizeof(Sort), node_out);
    if (err != OK) return err;
    Sort *sort = (Sort *)*node_out;
    u32 keys = plan->u.sort.key_count;
    err = exec__sorter_init(exec, &sort->sorter, plan->u.sort.key, keys, plan->input->columns);
    if (err != OK) return exec__fail(exec, err, NULL);
    exec__rowbuf_init(exec, &sort->page, plan->input->columns);
    sort->key = ARENA_NEW_ARRAY(&exec->arena, ExecProgram *, MAX_OF(keys, 1u));
    sort->key_cell = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(keys, 1u));
    sort->row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->input->columns, 1u));
    if (sort->key == NULL || sort->key_cell == NULL || sort->row == NULL) {
        return exec__fail(exec, ERR_NOMEM, NULL);
    }
    err = exec__node_open(exec, plan->input, &sort->node.input);
    for (u32 i = 0; err == OK && i < keys; i++) {
        err = exec__compile(exec, plan->u.sort.key[i].expr, &sort->key[i]);
    }
    if (err == OK) err = open_kernels(exec, sort);
    if (err == OK && plan->u.sort.limit != NULL) {
        err = exec__compile(exec, plan->u.sort.limit, &sort->limit);
    }
    if (err == OK && plan->u.sort.offset != NULL) {
        err = exec__compile(exec, plan->u.sort.offset, &sort->offset);
    }
    return err;
}
