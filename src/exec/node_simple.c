/*
 * node_simple.c -- operators that look at one row at a time: ONE_ROW, VALUES, COUNT, FILTER,
 * PROJECT, LIMIT.
 *
 * Total expressions over larger batches are computed by kernels (vexpr.h).
 */
#include "exec/exec__write.h"
#include "exec/node.h"
#include "exec/vexpr.h"

#define BY_BATCH_MIN 16u /* Fewer rows are done one by one. */

/* ---- ONE_ROW and COUNT: a single row ---- */

typedef struct OneRow {
    ExecNode node;
    bool done;
} OneRow;

static void
one_row_rewind(Exec *exec, ExecNode *node)
{
    (void)exec;
    ((OneRow *)node)->done = false;
}

static void
one_row_next(Exec *exec, ExecNode *node, u32 want)
{
    OneRow *one = (OneRow *)node;
    (void)exec;
    (void)want;
    exec__out_end(node, OK);
    if (one->done) return;
    one->done = true;
    exec__out_rows(node, 1, OK);
    node->out.last = true;
}

static const NodeOps one_row_ops = {.next = one_row_next, .rewind = one_row_rewind};

Err
exec__one_row_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    return exec__node_new(exec, plan, &one_row_ops, sizeof(OneRow), node_out);
}

static void
count_next(Exec *exec, ExecNode *node, u32 want)
{
    OneRow *one = (OneRow *)node;
    const TableDef *table = node->plan->u.count.table;
    u64 rows = 0;
    (void)want;
    exec__out_end(node, OK);
    if (one->done) return;
    one->done = true;
    StoreTxn *txn = exec__txn(exec, table);
    Err err = store_count(txn, node->plan->u.count.tree, &rows);
    if (err != OK) {
        exec__out_end(node, exec__fail_store(exec, err, txn));
        return;
    }
    err = exec__out_reserve(exec, node, 1);
    if (err == OK) node->buffer[0][0] = cell_int((i64)rows);
    exec__out_rows(node, err == OK, err);
}

static const NodeOps count_ops = {.next = count_next, .rewind = one_row_rewind};

Err
exec__count_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    return exec__node_new(exec, plan, &count_ops, sizeof(OneRow), node_out);
}

/* ---- VALUES ---- */

typedef struct Values {
    ExecNode node;
    ExecProgram **program; /* [row * columns + column]; NULL for constants. */
    u32 next;
} Values;

static void
values_rewind(Exec *exec, ExecNode *node)
{
    (void)exec;
    ((Values *)node)->next = 0;
}

static void
values_next(Exec *exec, ExecNode *node, u32 want)
{
    Values *values = (Values *)node;
    u32 columns = node->plan->columns;
    u32 left = node->plan->u.values.row_count - values->next;
    u32 count = MIN_OF(want, left), done = 0;
    if (count == 0) {
        exec__out_end(node, OK);
        return;
    }
    Err err = exec__out_reserve(exec, node, count);
    while (err == OK && done < count) {
        u32 row = values->next;
        for (u32 i = 0; err == OK && i < columns; i++) {
            const ExecProgram *program = values->program[(size_t)row * columns + i];
            Cell *out = &node->buffer[i][done];
            if (program == NULL) {
                *out = node->plan->u.values.row[row][i]->u.constant;
            } else {
                err = exec__eval_in(exec, program, NULL, &node->bytes, out);
            }
        }
        if (err != OK) break;
        values->next++;
        done++;
    }
    exec__out_rows(node, done, err);
}

static Err
values_resume(Exec *exec, ExecNode *node, u32 used)
{
    (void)exec;
    ((Values *)node)->next -= node->out.count - used;
    return OK;
}

static const NodeOps values_ops = {
    .next = values_next, .rewind = values_rewind, .resume = values_resume};

Err
exec__values_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &values_ops, sizeof(Values), node_out);
    if (err != OK) return err;
    Values *values = (Values *)*node_out;
    size_t cells = (size_t)plan->u.values.row_count * plan->columns;
    values->program = ARENA_NEW_ARRAY(&exec->arena, ExecProgram *, MAX_OF(cells, (size_t)1));
    if (values->program == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (size_t i = 0; i < cells; i++) {
        const PlanExpr *expr = plan->u.values.row[i / plan->columns][i % plan->columns];
        if (expr->op == PX_CONST) continue;
        err = exec__compile(exec, expr, &values->program[i]);
        if (err != OK) return err;
    }
    return OK;
}

/* ---- FILTER ---- */

typedef struct Filter {
    ExecNode node;
    ExecProgram *condition;
    VExpr *vcondition; /* NULL: not total. */
    bool
        constant; /* The condition reads no row: it is decided once, before the input is touched. */
    bool decided, passes;
    Cell *row; /* Scratch. */
    u16 *sel;
} Filter;

static void
input_rewind(Exec *exec, ExecNode *node)
{
    exec__rewind(exec, node->input);
}

static void
filter_rewind(Exec *exec, ExecNode *node)
{
    ((Filter *)node)->decided = false;
    exec__rewind(exec, node->input);
}

/* Show the input's vectors through a selection. */
static void
out_selected(ExecNode *node, const Batch *in, const u16 *sel, u32 count, Err err)
{
    Vec *col = node->out.col;
    memcpy(col, in->col, node->out.columns * sizeof(Vec));
    node->out.rows = in->rows;
    node->out.sel = sel;
    node->out.count = count;
    node->out.err = err;
    node->out.last = in->last;
}

/* A constant condition: all rows or none. */
static void
filter_constant(Exec *exec, Filter *filter, u32 want)
{
    ExecNode *node = &filter->node;
    Err err = OK;
    if (!filter->decided) {
        ExecTruth truth = EXEC_FALSE;
        err = exec__truth_in(exec, filter->condition, NULL, &node->bytes, &truth);
        filter->passes = truth == EXEC_TRUE;
        filter->decided = err == OK;
    }
    if (err != OK || !filter->passes) {
        exec__out_end(node, err);
        return;
    }
    const Batch *in = exec__next(exec, node->input, want);
    out_selected(node, in, in->sel, in->count, in->err);
}

/* A selection of a batch, made when it is first needed: most short statements never do. */
static Err
sel_ready(Exec *exec, u16 **sel)
{
    if (LIKELY(*sel != NULL)) return OK;
    *sel = EXEC_ROOM(exec, u16, BATCH_ROWS_MAX);
    return *sel != NULL ? OK : exec__fail(exec, ERR_NOMEM, NULL);
}

static void
filter_next(Exec *exec, ExecNode *node, u32 want)
{
    Filter *filter = (Filter *)node;
    if (filter->constant) {
        filter_constant(exec, filter, want);
        return;
    }
    Err ready = sel_ready(exec, &filter->sel);
    if (ready != OK) {
        exec__out_end(node, ready);
        return;
    }
    for (;;) {
        const Batch *in = exec__next(exec, node->input, want);
        u32 count = 0, taken = 0;
        if (in->count == 0) {
            exec__out_end(node, in->err);
            return;
        }
        Err err;
        if (filter->vcondition != NULL && in->count >= BY_BATCH_MIN) {
            err = exec__vselect(exec, filter->vcondition, in, want, &node->bytes, filter->sel,
                                &count, &taken);
        } else {
            err = exec__select(exec, filter->condition, in, want, filter->row, &node->bytes,
                               filter->sel, &count, &taken);
        }
        if (err == OK) err = in->err;
        if (count > 0 || err != OK) {
            out_selected(node, in, filter->sel, count, err);
            return;
        }
        err = exec__check(exec);
        if (err != OK) {
            exec__out_end(node, err);
            return;
        }
    }
}

static Err
filter_resume(Exec *exec, ExecNode *node, u32 used)
{
    const Batch *in = &node->input->out;
    if (((Filter *)node)->constant) return exec__resume(exec, node->input, used);
    return exec__resume(exec, node->input, exec__live_row(in, node->out.sel[used - 1]) + 1);
}

static const NodeOps filter_ops = {
    .next = filter_next, .rewind = filter_rewind, .resume = filter_resume};

/* Scratch row for programs over a row of `columns` cells. */
static Cell *
scratch_row(Exec *exec, u32 columns)
{
    return ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(columns, 1u));
}

Err
exec__filter_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &filter_ops, sizeof(Filter), node_out);
    if (err != OK) return err;
    Filter *filter = (Filter *)*node_out;
    const PlanExpr *condition = plan->u.filter.condition;
    filter->constant = (condition->flags & PX_FLAG_READS_ROW) == 0 &&
                       condition->klass != PLAN_VOLATILE;
    filter->row = scratch_row(exec, plan->input->columns);
    if (filter->row == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    err = exec__node_open(exec, plan->input, &filter->node.input);
    if (err == OK) err = exec__compile_condition(exec, condition, &filter->condition);
    if (err != OK || filter->constant || !exec__vexpr_fits(condition)) return err;
    return exec__vexpr_open(exec, condition, &filter->vcondition);
}

/* ---- PROJECT ---- */

typedef struct Project {
    ExecNode node;
    ExecProgram **program; /* NULL entries: the column passes through. */
    u32 *pass;             /* Input column of those. */
    VExpr **vexpr;         /* For the total ones; else NULL. */
    bool has_rows;         /* Some computed entry is not total. */
    Cell *row;
    bool computes; /* Some entry is not NULL. */
} Project;

/* The computed columns of one row, left to right; without those that kernels do. */
static Err
project_row(Exec *exec, Project *project, const Batch *in, u32 at, bool kernels)
{
    ExecNode *node = &project->node;
    for (u32 i = 0; i < node->plan->columns; i++) {
        if (project->program[i] == NULL) continue;
        if (kernels && project->vexpr[i] != NULL) continue;
        Err err = exec__eval_at(exec, project->program[i], in, at, project->row, &node->bytes,
                                &node->buffer[i][at]);
        if (err != OK) return err;
    }
    return OK;
}

static void
project_next(Exec *exec, ExecNode *node, u32 want)
{
    Project *project = (Project *)node;
    const Batch *in = exec__next(exec, node->input, want);
    if (in->count == 0) {
        exec__out_end(node, in->err);
        return;
    }
    Err err = project->computes ? exec__out_reserve(exec, node, in->rows) : OK;
    u32 done = in->count;
    bool kernels = in->count >= BY_BATCH_MIN;
    bool by_row = kernels ? project->has_rows : project->computes;
    for (u32 i = 0; err == OK && by_row && i < in->count; i++) {
        err = project_row(exec, project, in, batch_at(in, i), kernels);
        if (err != OK) done = i;
    }
    for (u32 i = 0; kernels && i < node->plan->columns; i++) {
        if (project->vexpr[i] == NULL) continue;
        Err failed = exec__vexpr_eval(exec, project->vexpr[i], in, &node->bytes, &node->out.col[i]);
        if (failed == OK) continue;
        /* Only for want of memory: total expressions do not fail. */
        err = failed;
        done = 0;
    }
    for (u32 i = 0; i < node->plan->columns; i++) {
        if (project->program[i] == NULL) node->out.col[i] = in->col[project->pass[i]];
    }
    node->out.rows = in->rows;
    node->out.sel = in->sel;
    node->out.count = done;
    node->out.err = err != OK ? err : in->err;
    node->out.last = in->last;
}

static Err
project_resume(Exec *exec, ExecNode *node, u32 used)
{
    return exec__resume(exec, node->input, used);
}

static const NodeOps project_ops = {
    .next = project_next, .rewind = input_rewind, .resume = project_resume};

Err
exec__project_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &project_ops, sizeof(Project), node_out);
    if (err != OK) return err;
    Project *project = (Project *)*node_out;
    project->row = scratch_row(exec, plan->input->columns);
    project->pass = ARENA_NEW_ARRAY(&exec->arena, u32, MAX_OF(plan->columns, 1u));
    project->vexpr = ARENA_NEW_ARRAY(&exec->arena, VExpr *, MAX_OF(plan->columns, 1u));
    if (project->vexpr == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    if (project->row == NULL || project->pass == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    err = exec__node_open(exec, plan->input, &project->node.input);
    if (err != OK) return err;
    err = exec__compile_list(exec, plan->u.project.expr, plan->columns, &project->program);
    for (u32 i = 0; err == OK && i < plan->columns; i++) {
        const PlanExpr *expr = plan->u.project.expr[i];
        if (exec__program_is_column(project->program[i], &project->pass[i])) {
            project->program[i] = NULL;
            continue;
        }
        project->computes = true;
        if (exec__vexpr_fits(expr)) {
            err = exec__vexpr_open(exec, expr, &project->vexpr[i]);
        } else {
            project->has_rows = true;
        }
    }
    return err;
}

/* ---- LIMIT ---- */

typedef struct Limit {
    ExecNode node;
    ExecProgram *limit, *offset;
    bool started;
    i64 left;    /* Rows still to give; -1: no limit. */
    i64 skip;    /* Rows still to drop. */
    u32 dropped; /* Of the input batch at hand. */
    u16 *sel;
} Limit;

static void
limit_rewind(Exec *exec, ExecNode *node)
{
    ((Limit *)node)->started = false;
    exec__rewind(exec, node->input);
}

static void
limit_next(Exec *exec, ExecNode *node, u32 want)
{
    Limit *limit = (Limit *)node;
    if (!limit->started) {
        Err err = exec__eval_limit(exec, limit->limit, limit->offset, &limit->left, &limit->skip);
        if (err == OK && limit->skip > 0) err = sel_ready(exec, &limit->sel);
        if (err != OK) {
            exec__out_end(node, err);
            return;
        }
        limit->started = true;
    }
    for (;;) {
        u64 useful = limit->left < 0 ? want : MIN_OF((u64)limit->left, (u64)want);
        u64 ask = useful + (u64)limit->skip;
        if (useful == 0) {
            exec__out_end(node, OK);
            return;
        }
        const Batch *in = exec__next(exec, node->input,
                                     (u32)MIN_OF(ask, (u64)exec__demand(exec, BATCH_ROWS_MAX)));
        u32 drop = (u32)MIN_OF((u64)in->count, (u64)limit->skip);
        u32 give = (u32)MIN_OF((u64)(in->count - drop), useful);
        limit->skip -= drop;
        limit->dropped = drop;
        if (give == 0 && in->count > 0 && in->err == OK) continue;
        if (limit->left > 0) limit->left -= give;
        for (u32 i = 0; drop > 0 && i < give; i++) {
            limit->sel[i] = (u16)batch_at(in, drop + i);
        }
        out_selected(node, in, drop > 0 ? limit->sel : in->sel, give, in->err);
        if (give == 0) exec__out_end(node, in->err);
        /* The row behind the last one wanted is not needed, so its error is not ours. */
        if (limit->left == 0) node->out.err = OK;
        if (limit->left == 0) node->out.last = true;
        return;
    }
}

static Err
limit_resume(Exec *exec, ExecNode *node, u32 used)
{
    Limit *limit = (Limit *)node;
    if (limit->left >= 0) limit->left += node->out.count - used;
    return exec__resume(exec, node->input, limit->dropped + used);
}

static const NodeOps limit_ops = {
    .next = limit_next, .rewind = limit_rewind, .resume = limit_resume};

Err
exec__limit_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &limit_ops, sizeof(Limit), node_out);
    if (err != OK) return err;
    Limit *limit = (Limit *)*node_out;
    err = exec__node_open(exec, plan->input, &limit->node.input);
    if (err == OK && plan->u.limit.limit != NULL) {
        err = exec__compile(exec, plan->u.limit.limit, &limit->limit);
    }
    if (err == OK && plan->u.limit.offset != NULL) {
        err = exec__compile(exec, plan->u.limit.offset, &limit->offset);
    }
    return err;
}

/* ---- for the short path ---- */

ExecProgram *
exec__filter_program(const ExecNode *filter)
{
    return ((const Filter *)filter)->condition;
}

void
exec__project_parts(const ExecNode *project, ExecProgram ***program_out, const u32 **pass_out)
{
    *program_out = ((const Project *)project)->program;
    *pass_out = ((const Project *)project)->pass;
}

void
exec__limit_parts(const ExecNode *limit, ExecProgram **limit_out, ExecProgram **offset_out)
{
    *limit_out = ((const Limit *)limit)->limit;
    *offset_out = ((const Limit *)limit)->offset;
}
