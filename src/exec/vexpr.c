/*
 * vexpr.c -- expressions over whole batches: the tree, and how kernels are chosen.
 */
#include "exec/vexpr.h"

#include "exec/exec__write.h"
#include "exec/kernel.h"
#include "exec/like.h"
#include "exec/node.h"

struct VExpr {
    const PlanExpr *expr;
    u8 op;       /* PlanOp; PX_CONST for whatever reads no row. */
    bool by_row; /* No kernel: `program` computes it row by row. */
    u32 column;  /* PX_COLUMN */
    VExpr **arg;
    InSet *set;   /* IN a list of constants. */
    ExecSub *sub; /* IN a subquery. */
    Like *like;   /* LIKE; `program` for batches that the kernel does not take. */
    ExecProgram *program;
    Cell *row; /* Scratch for `program`. */
    Cell constant;
    void *data;              /* [BATCH_ROWS_MAX] cells, integers or reals. */
    u8 *null, *truth, *more; /* [BATCH_ROWS_MAX] */
};

/* Deeper trees are computed by row: kernels recurse. */
#define DEPTH_MAX 64u

/* A subquery that stands in for a value or a set which is the same for all rows. */
static bool
is_fixed(const PlanExpr *expr)
{
    if (expr->op == PX_SCALAR) return exec__sub_is_fixed(expr->u.sub);
    return expr->op == PX_IN_SUB && expr->arg_count == 1 && exec__sub_is_fixed(expr->u.sub);
}

static bool
subs_fit(const PlanExpr *expr, u32 depth)
{
    if ((expr->flags & PX_FLAG_HAS_SUB) == 0) return true;
    bool is_sub = expr->op == PX_SCALAR || expr->op == PX_IN_SUB || expr->op == PX_EXISTS ||
                  expr->op == PX_SUB_COLUMN;
    if (depth == DEPTH_MAX || (is_sub && !is_fixed(expr))) return false;
    for (u32 i = 0; i < expr->arg_count; i++) {
        if (!subs_fit(expr->arg[i], depth + 1)) return false;
    }
    return true;
}

bool
exec__vexpr_fits(const PlanExpr *expr)
{
    return expr->klass == PLAN_TOTAL && subs_fit(expr, 0);
}

static bool
has_kernel(const PlanExpr *expr)
{
    switch (expr->op) {
    case PX_NOT:
    case PX_IS_NULL:
    case PX_NOT_NULL:
    case PX_ADD:
    case PX_SUB:
    case PX_MUL:
    case PX_DIV:
    case PX_REM:
    case PX_EQ:
    case PX_NE:
    case PX_LT:
    case PX_LE:
    case PX_GT:
    case PX_GE:
    case PX_AND:
    case PX_OR: return true;
    case PX_BETWEEN: return (expr->flags & PX_FLAG_NOT) == 0;
    case PX_IN_LIST: return exec__in_set_fits(expr);
    case PX_IN_SUB: return is_fixed(expr);
    case PX_FUNC:
        return expr->u.func.def->kernel == FUNC_KERNEL_LIKE && expr->arg_count == 2 &&
               (expr->arg[0]->flags & PX_FLAG_READS_ROW) == 0;
    default: return false;
    }
}

static Err
buffers_make(Exec *exec, VExpr *vexpr)
{
    if (vexpr->data != NULL) return OK;
    vexpr->data = EXEC_ROOM(exec, Cell, BATCH_ROWS_MAX);
    vexpr->null = EXEC_ROOM(exec, u8, (size_t)3 * BATCH_ROWS_MAX);
    if (vexpr->data == NULL || vexpr->null == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    vexpr->truth = vexpr->null + BATCH_ROWS_MAX;
    vexpr->more = vexpr->truth + BATCH_ROWS_MAX;
    return OK;
}

static Err
open_program(Exec *exec, VExpr *vexpr)
{
    Err err = exec__compile(exec, vexpr->expr, &vexpr->program);
    if (err != OK) return err;
    vexpr->row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(vexpr->program->row_cells, 1u));
    return vexpr->row != NULL ? OK : exec__fail(exec, ERR_NOMEM, NULL);
}

static Err
vexpr_open(Exec *exec, const PlanExpr *expr, u32 depth, VExpr **vexpr_out)
{
    *vexpr_out = NULL;
    VExpr *vexpr = ARENA_NEW(&exec->arena, VExpr);
    if (vexpr == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    *vexpr_out = vexpr;
    vexpr->expr = expr;
    vexpr->op = expr->op;
    if (expr->op == PX_COLUMN) {
        vexpr->column = expr->u.number;
        return OK;
    }
    if ((expr->flags & PX_FLAG_READS_ROW) == 0) {
        vexpr->op = PX_CONST;
        return open_program(exec, vexpr);
    }
    vexpr->by_row = !has_kernel(expr) || depth == DEPTH_MAX;
    if (vexpr->by_row) return open_program(exec, vexpr);
    vexpr->arg = ARENA_NEW_ARRAY(&exec->arena, VExpr *, MAX_OF(expr->arg_count, 1u));
    if (vexpr->arg == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    Err err = OK;
    if (expr->op == PX_FUNC) {
        vexpr->like = ARENA_NEW(&exec->arena, Like);
        if (vexpr->like == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
        err = open_program(exec, vexpr);
    }
    u32 args = expr->arg_count;
    if (expr->op == PX_IN_LIST) {
        err = exec__in_set_new(exec, expr, &vexpr->set);
        args = 1;
    } else if (expr->op == PX_IN_SUB) {
        err = exec__sub_open(exec, expr->u.sub, &vexpr->sub);
    }
    for (u32 i = 0; err == OK && i < args; i++) {
        err = vexpr_open(exec, expr->arg[i], depth + 1, &vexpr->arg[i]);
    }
    return err;
}

Err
exec__vexpr_open(Exec *exec, const PlanExpr *expr, VExpr **vexpr_out)
{
    ASSERT(exec__vexpr_fits(expr));
    return vexpr_open(exec, expr, 0, vexpr_out);
}

/* A vector that has one value for all rows. */
static Vec
constant_vec(VExpr *vexpr)
{
    const Cell *cell = &vexpr->constant;
    if (cell->type == CELL_INT) {
        return (Vec){.kind = VEC_INT, .constant = true, .u.i = &cell->u.i};
    }
    if (cell->type == CELL_REAL) {
        return (Vec){.kind = VEC_REAL, .constant = true, .u.r = &cell->u.r};
    }
    return (Vec){.kind = VEC_CELL, .constant = true, .u.cell = cell};
}

static Err
eval_by_row(Exec *exec, VExpr *vexpr, const Batch *batch, Arena *arena, Vec *out)
{
    Cell *cells = vexpr->data;
    for (u32 n = 0; n < batch->count; n++) {
        u32 at = batch_at(batch, n);
        Err err = exec__eval_at(exec, vexpr->program, batch, at, vexpr->row, arena, &cells[at]);
        if (err != OK) return err;
    }
    *out = (Vec){.kind = VEC_CELL, .u.cell = cells};
    return OK;
}

static Err
eval_arithmetic(VExpr *vexpr, const Batch *batch, const Vec *a, const Vec *b, Vec *out)
{
    if (kernel_arithmetic(vexpr->op, batch, a, b, vexpr->data, vexpr->null, out)) return OK;
    REACHED("exec: a kernel left a batch to cells");
    Cell *cells = vexpr->data;
    for (u32 n = 0; n < batch->count; n++) {
        u32 at = batch_at(batch, n);
        Cell x = vec_cell(a, at), y = vec_cell(b, at);
        cells[at] = kernel_arithmetic_cell(vexpr->op, &x, &y);
    }
    *out = (Vec){.kind = VEC_CELL, .u.cell = cells};
    return OK;
}

/* One comparison for all live rows; truths go to `truth`. */
static Err
compare_rows(Exec *exec, u8 op, const PlanStamp *stamp, const Batch *batch, const Vec *a,
             const Vec *b, Arena *arena, u8 *truth)
{
    if (kernel_compare(op, batch, a, b, truth)) return OK;
    for (u32 n = 0; n < batch->count; n++) {
        u32 at = batch_at(batch, n);
        Cell x = vec_cell(a, at), y = vec_cell(b, at);
        ExecTruth one;
        Err err = exec__compare_cells(exec, op, stamp->affinity, stamp->collation, &x, &y, arena,
                                      &one);
        if (err != OK) return err;
        truth[at] = (u8)one;
    }
    return OK;
}

/* x LIKE pattern, for texts and a simple pattern; *done_out false: row by row. */
static Err
eval_like(Exec *exec, VExpr *vexpr, const Batch *batch, Arena *arena, u8 *truth, bool *done_out)
{
    const FuncEnv *env = exec->env->func;
    Vec pattern, text;
    *done_out = false;
    Err err = exec__vexpr_eval(exec, vexpr->arg[0], batch, arena, &pattern);
    if (err == OK) err = exec__vexpr_eval(exec, vexpr->arg[1], batch, arena, &text);
    if (err != OK || text.kind != VEC_CELL || text.constant) return err;
    const Cell *like = pattern.kind == VEC_CELL ? pattern.u.cell : NULL;
    if (like == NULL || like->type != CELL_TEXT || (like->flags & CELL_BY_REF) != 0) return OK;
    Slice bytes = SLICE(like->u.p, like->bytes);
    if (env->like_pattern_max != 0 && bytes.bytes > env->like_pattern_max) return OK;
    if (!like_open(vexpr->like, bytes, env->case_sensitive_like)) return OK;
    for (u32 n = 0; n < batch->count; n++) {
        u32 at = batch_at(batch, n);
        const Cell *cell = &text.u.cell[at];
        if (LIKELY(cell->type == CELL_TEXT && (cell->flags & CELL_BY_REF) == 0)) {
            truth[at] = like_matches(vexpr->like, SLICE(cell->u.p, cell->bytes));
        } else if (cell->type == CELL_NULL) {
            truth[at] = EXEC_UNKNOWN;
        } else if (cell->type == CELL_BLOB && (cell->flags & CELL_BY_REF) == 0) {
            truth[at] = EXEC_FALSE;
        } else {
            Cell value;
            err = exec__eval_at(exec, vexpr->program, batch, at, vexpr->row, arena, &value);
            if (err != OK) return err;
            truth[at] = (u8)cell_truth(&value);
        }
    }
    *done_out = true;
    return OK;
}

static Err
eval_func(Exec *exec, VExpr *vexpr, const Batch *batch, Arena *arena, Vec *out)
{
    bool done;
    Err err = eval_like(exec, vexpr, batch, arena, vexpr->truth, &done);
    if (err != OK) return err;
    if (!done) return eval_by_row(exec, vexpr, batch, arena, out);
    kernel_truth_values(batch, vexpr->truth, vexpr->data, vexpr->null, out);
    return OK;
}

/* IN a list of constants or a subquery. */
static Err
eval_in(Exec *exec, VExpr *vexpr, const Batch *batch, Arena *arena, u8 *truth)
{
    Vec value;
    Err err = exec__vexpr_eval(exec, vexpr->arg[0], batch, arena, &value);
    if (err != OK) return err;
    err = vexpr->op == PX_IN_SUB
              ? exec__sub_in_truths(exec, vexpr->sub, batch, &value, arena, truth)
              : exec__in_set_truths(exec, vexpr->set, batch, &value, arena, truth);
    if (err == OK && (vexpr->expr->flags & PX_FLAG_NOT) != 0) kernel_not(batch, truth);
    return err;
}

/* Truths of the live rows, one byte each at the row's position. */
static Err
eval_truth(Exec *exec, VExpr *vexpr, const Batch *batch, Arena *arena, u8 *truth)
{
    const PlanExpr *expr = vexpr->expr;
    Vec a, b;
    Err err = buffers_make(exec, vexpr);
    if (err != OK) return err;
    u8 *more = vexpr->more;
    switch (vexpr->by_row ? PX_CONST : vexpr->op) {
    case PX_EQ:
    case PX_NE:
    case PX_LT:
    case PX_LE:
    case PX_GT:
    case PX_GE: {
        PlanStamp stamp = {expr->cmp_affinity, expr->collation};
        err = exec__vexpr_eval(exec, vexpr->arg[0], batch, arena, &a);
        if (err == OK) err = exec__vexpr_eval(exec, vexpr->arg[1], batch, arena, &b);
        return err == OK ? compare_rows(exec, vexpr->op, &stamp, batch, &a, &b, arena, truth) : err;
    }
    case PX_BETWEEN:
        err = exec__vexpr_eval(exec, vexpr->arg[0], batch, arena, &a);
        if (err == OK) err = exec__vexpr_eval(exec, vexpr->arg[1], batch, arena, &b);
        if (err == OK) {
            err = compare_rows(exec, PX_GE, &expr->u.between.low, batch, &a, &b, arena, truth);
        }
        if (err == OK) err = exec__vexpr_eval(exec, vexpr->arg[2], batch, arena, &b);
        if (err == OK) {
            err = compare_rows(exec, PX_LE, &expr->u.between.high, batch, &a, &b, arena, more);
        }
        if (err == OK) kernel_and(batch, truth, more);
        return err;
    case PX_AND:
    case PX_OR:
        err = eval_truth(exec, vexpr->arg[0], batch, arena, truth);
        for (u32 i = 1; err == OK && i < expr->arg_count; i++) {
            err = eval_truth(exec, vexpr->arg[i], batch, arena, more);
            if (err != OK) break;
            if (vexpr->op == PX_AND) {
                kernel_and(batch, truth, more);
            } else {
                kernel_or(batch, truth, more);
            }
        }
        return err;
    case PX_NOT:
        err = eval_truth(exec, vexpr->arg[0], batch, arena, truth);
        if (err == OK) kernel_not(batch, truth);
        return err;
    case PX_IN_LIST:
    case PX_IN_SUB: return eval_in(exec, vexpr, batch, arena, truth);
    case PX_IS_NULL:
    case PX_NOT_NULL:
        err = exec__vexpr_eval(exec, vexpr->arg[0], batch, arena, &a);
        if (err == OK) kernel_null(batch, &a, vexpr->op == PX_IS_NULL, truth);
        return err;
    case PX_FUNC: {
        bool done;
        err = eval_like(exec, vexpr, batch, arena, truth, &done);
        if (err != OK || done) return err;
        err = eval_by_row(exec, vexpr, batch, arena, &a);
        if (err == OK) kernel_truth(batch, &a, truth);
        return err;
    }
    default:
        err = exec__vexpr_eval(exec, vexpr, batch, arena, &a);
        if (err == OK) kernel_truth(batch, &a, truth);
        return err;
    }
}

Err
exec__vexpr_eval(Exec *exec, VExpr *vexpr, const Batch *batch, Arena *arena, Vec *out)
{
    if (vexpr->op == PX_COLUMN) {
        *out = batch->col[vexpr->column];
        return OK;
    }
    if (vexpr->op == PX_CONST) {
        Err err = exec__eval_in(exec, vexpr->program, NULL, arena, &vexpr->constant);
        *out = constant_vec(vexpr);
        return err;
    }
    Err err = buffers_make(exec, vexpr);
    if (err != OK) return err;
    if (vexpr->by_row) return eval_by_row(exec, vexpr, batch, arena, out);
    if (vexpr->op == PX_FUNC) return eval_func(exec, vexpr, batch, arena, out);
    if (vexpr->op >= PX_ADD && vexpr->op <= PX_REM) {
        Vec a, b;
        err = exec__vexpr_eval(exec, vexpr->arg[0], batch, arena, &a);
        if (err == OK) err = exec__vexpr_eval(exec, vexpr->arg[1], batch, arena, &b);
        return err == OK ? eval_arithmetic(vexpr, batch, &a, &b, out) : err;
    }
    err = eval_truth(exec, vexpr, batch, arena, vexpr->truth);
    if (err == OK) kernel_truth_values(batch, vexpr->truth, vexpr->data, vexpr->null, out);
    return err;
}

/* Is it made of loops over numbers alone, which go through all rows sooner than through half of
   them one by one? */
static bool
is_dense(const VExpr *vexpr, u32 depth)
{
    if (vexpr->op == PX_COLUMN || vexpr->op == PX_CONST) return true;
    if (vexpr->by_row || depth == 0) return false;
    switch (vexpr->op) {
    case PX_IS_NULL:
    case PX_NOT_NULL:
    case PX_ADD:
    case PX_SUB:
    case PX_MUL:
    case PX_EQ:
    case PX_NE:
    case PX_LT:
    case PX_LE:
    case PX_GT:
    case PX_GE:
    case PX_BETWEEN: break;
    default: return false;
    }
    for (u32 i = 0; i < vexpr->expr->arg_count; i++) {
        if (!is_dense(vexpr->arg[i], depth - 1)) return false;
    }
    return true;
}

/* Do the columns that it reads have numbers in this batch? */
static bool
reads_numbers(const VExpr *vexpr, const Batch *batch)
{
    if (vexpr->op == PX_COLUMN) return batch->col[vexpr->column].kind != VEC_CELL;
    if (vexpr->op == PX_CONST) return true;
    for (u32 i = 0; i < vexpr->expr->arg_count; i++) {
        if (!reads_numbers(vexpr->arg[i], batch)) return false;
    }
    return true;
}

#define DENSE_DEPTH 4u

static Err narrow(Exec *exec, VExpr *vexpr, Batch *batch, Arena *arena, u16 *sel);

/* Conditions one after the other, each for the rows that are left; for all rows while more than a
   quarter of them is left. */
static Err
narrow_and(Exec *exec, VExpr *vexpr, Batch *batch, Arena *arena, u16 *sel)
{
    u32 next = 0, count = vexpr->expr->arg_count;
    Err err = buffers_make(exec, vexpr);
    if (err != OK) return err;
    u32 left = batch->count;
    while (batch->sel == NULL && next < count && left > batch->count / 4) {
        VExpr *arg = vexpr->arg[next];
        if (!is_dense(arg, DENSE_DEPTH) || !reads_numbers(arg, batch)) break;
        u8 *truth = next == 0 ? vexpr->truth : vexpr->more;
        err = eval_truth(exec, arg, batch, arena, truth);
        if (err != OK) return err;
        if (next++ > 0) kernel_and(batch, vexpr->truth, vexpr->more);
        left = kernel_count(batch, vexpr->truth);
    }
    if (next > 0) {
        batch->count = kernel_pick(batch, vexpr->truth, sel);
        batch->sel = sel;
    }
    for (; err == OK && batch->count > 0 && next < count; next++) {
        err = narrow(exec, vexpr->arg[next], batch, arena, sel);
    }
    return err;
}

/* Narrow `batch` to the rows where the condition is true. */
static Err
narrow(Exec *exec, VExpr *vexpr, Batch *batch, Arena *arena, u16 *sel)
{
    if (vexpr->op == PX_AND && !vexpr->by_row) return narrow_and(exec, vexpr, batch, arena, sel);
    Err err = buffers_make(exec, vexpr);
    if (err == OK) err = eval_truth(exec, vexpr, batch, arena, vexpr->truth);
    if (err != OK) return err;
    batch->count = kernel_pick(batch, vexpr->truth, sel);
    batch->sel = sel;
    return OK;
}

Err
exec__vselect(Exec *exec, VExpr *vexpr, const Batch *batch, u32 want, Arena *arena, u16 *sel_out,
              u32 *count_out, u32 *taken_out)
{
    Batch rest = *batch;
    Err err = narrow(exec, vexpr, &rest, arena, sel_out);
    *count_out = err == OK ? MIN_OF(rest.count, want) : 0;
    *taken_out = batch->count;
    if (rest.count > want) *taken_out = exec__live_row(batch, sel_out[want - 1]) + 1;
    return err;
}
