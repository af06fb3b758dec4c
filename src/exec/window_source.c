/*
 * window_source.c -- rows come into a WINDOW node: columns of the input, and expressions over them
 * that keys, arguments and filters are.
 *
 * Expressions are computed once, when the row arrives; SQLite does so in the subquery around the
 * rows.
 */
#include "exec/exec__write.h"
#include "exec/window.h"

#define BY_BATCH_MIN 16u

struct WinSource {
    const PlanExpr *expr;
    ExecProgram *program;
    VExpr *vexpr; /* NULL: computed row by row. */
    u32 column;
    bool truth;   /* Only as a condition: 1 or 0. */
    bool subtype; /* The function asks for subtypes. */
};

Err
exec__win_sources_open(Exec *exec, Win *win)
{
    const PlanWindow *plan = win->plan;
    u32 count = plan->partition_count + plan->order_count + 1;
    for (u32 f = 0; f < plan->frame_count; f++) {
        for (u32 i = 0; i < plan->frame[f].call_count; i++)
            count += plan->frame[f].call[i].arg_count + 1;
    }
    win->source = ARENA_NEW_ARRAY(&exec->arena, WinSource, count);
    return win->source != NULL ? OK : exec__fail(exec, ERR_NOMEM, NULL);
}

Err
exec__win_source(Exec *exec, Win *win, const PlanExpr *expr, bool truth, bool subtype,
                 u32 *column_out)
{
    if (expr->op == PX_COLUMN && !truth) {
        *column_out = expr->u.number;
        return OK;
    }
    WinSource *source = &win->source[win->source_count];
    *source = (WinSource){.expr = expr, .truth = truth, .subtype = subtype};
    source->column = win->node.plan->columns + win->source_count++;
    *column_out = source->column;
    Err err = truth ? exec__compile_condition(exec, expr, &source->program)
                    : exec__compile(exec, expr, &source->program);
    if (err != OK) return err;
    if (exec__vexpr_fits(expr) && !subtype) return exec__vexpr_open(exec, expr, &source->vexpr);
    win->by_batch = false;
    return OK;
}

static Cell
truth_cell(const Cell *value)
{
    return cell_int(cell_truth(value) == TRUTH_TRUE);
}

/* The sources of one row of the batch, into place `at`. */
static Err
take_row(Exec *exec, Win *win, const Batch *in, u32 row, u32 at)
{
    WinRows *rows = &win->rows;
    exec__load_all(in, row, win->row);
    for (u32 i = 0; i < win->source_count; i++) {
        WinSource *source = &win->source[i];
        Cell *out = &rows->cell[source->column][at];
        Err err = source->subtype
                      ? exec__eval_subtype_in(exec, source->program, win->row, &win->node.bytes,
                                              out)
                      : exec__eval_in(exec, source->program, win->row, &win->node.bytes, out);
        if (err != OK) return err;
        if (source->truth) *out = truth_cell(out);
        if (out->type < CELL_TEXT) continue;
        err = cell_copy(out, &rows->bytes, out);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    return OK;
}

static Err
take_batch(Exec *exec, Win *win, const Batch *in, u32 at)
{
    for (u32 i = 0; i < win->source_count; i++) {
        WinSource *source = &win->source[i];
        Vec vec;
        Err err = exec__vexpr_eval(exec, source->vexpr, in, &win->node.bytes, &vec);
        if (err != OK) return err;
        err = exec__win_rows_column(&win->rows, source->column, at, &vec, in, !source->truth);
        if (err != OK) return exec__fail(exec, err, NULL);
        Cell *cell = win->rows.cell[source->column] + at;
        for (u32 k = 0; source->truth && k < in->count; k++)
            cell[k] = truth_cell(&cell[k]);
    }
    return OK;
}

static inline bool
differs(const Cell *a, const Cell *b, const Collation *collation)
{
    if (a->type == CELL_INT && b->type == CELL_INT) return a->u.i != b->u.i;
    return cell_compare(a, b, collation) != 0;
}

/* Where do partitions and groups of peers begin among the rows from place `at` on? */
static void
mark_rows(Win *win, u32 at, u32 count)
{
    const PlanWindow *plan = win->plan;
    WinRows *rows = &win->rows;
    memset(rows->mark + at, 0, count);
    for (u32 i = 0; i < plan->partition_count; i++) {
        const Cell *cell = rows->cell[win->partition[i]];
        for (u32 k = MAX_OF(at, 1u); k < at + count; k++) {
            if (differs(&cell[k - 1], &cell[k], plan->partition_collation[i]))
                rows->mark[k] = WIN_PARTITION | WIN_PEERS;
        }
    }
    for (u32 i = 0; i < plan->order_count; i++) {
        const Cell *cell = rows->cell[win->order[i]];
        for (u32 k = MAX_OF(at, 1u); k < at + count; k++) {
            if (differs(&cell[k - 1], &cell[k], plan->order[i].collation))
                rows->mark[k] |= WIN_PEERS;
        }
    }
    if (at == 0 && rows->first == 0 && count > 0) rows->mark[0] = WIN_PARTITION | WIN_PEERS;
}

/* At least one row before these is in the buffer, unless they are the first. */
Err
exec__win_take(Exec *exec, Win *win, const Batch *in)
{
    WinRows *rows = &win->rows;
    u32 at = rows->count, count = in->count;
    Err err = exec__win_rows_reserve(rows, count);
    for (u32 i = 0; err == OK && i < win->node.plan->input->columns; i++)
        err = exec__win_rows_column(rows, i, at, &in->col[i], in, rows->copies);
    if (err != OK) return exec__fail(exec, err, NULL);
    if (win->by_batch && count >= BY_BATCH_MIN) {
        err = take_batch(exec, win, in, at);
        if (err != OK) count = 0;
    } else {
        for (u32 i = 0; err == OK && win->source_count > 0 && i < count; i++) {
            err = take_row(exec, win, in, batch_at(in, i), at + i);
            if (err != OK) count = i;
        }
    }
    mark_rows(win, at, count);
    rows->count += count;
    return err;
}
