/*
 * window_call.c -- what is computed over a frame: aggregates by step and inverse, min() and max()
 * over a moving start by a queue, the window functions from the cursors.
 */
#include <math.h>

#include "exec/exec__write.h"
#include "exec/window.h"
#include "value/sum.h"

/* ---- life ---- */

static u8
kind_of(const PlanFrame *frame, const FuncDef *def)
{
    if (def->kind == FUNC_WINDOW) return WIN_PURE;
    if (def->kernel == FUNC_KERNEL_COUNT) return WIN_COUNT;
    if (def->kernel == FUNC_KERNEL_SUM) return WIN_SUM;
    bool moves = frame->start != BOUND_UNBOUNDED_PRECEDING && frame->exclude == EXCLUDE_NOTHING;
    return (def->flags & FUNC_MINMAX) != 0 && moves ? WIN_BEST : WIN_GENERIC;
}

Err
exec__win_call_open(Exec *exec, Win *win, const PlanFrame *frame, WinCall *call)
{
    const PlanWindowCall *plan = call->plan;
    const FuncDef *def = plan->def;
    call->kind = kind_of(frame, def);
    call->call = (FuncCall){
        .def = def, .env = exec->env->func, .collation = plan->collation, .msg = &exec->msg};
    call->filter = U32_MAX;
    call->moves = frame->exclude == EXCLUDE_NOTHING || call->kind == WIN_COUNT ||
                  call->kind == WIN_SUM;
    call->by_row = def->kind == FUNC_WINDOW &&
                   (def->kernel == FUNC_WINDOW_LAG || def->kernel == FUNC_WINDOW_LEAD ||
                    def->kernel == FUNC_WINDOW_NTH_VALUE);
    call->arg = ARENA_NEW_ARRAY(&exec->arena, u32, plan->arg_count + 1);
    call->argv = ARENA_NEW_ARRAY(&exec->arena, Cell, plan->arg_count + 1);
    call->call.state = arena_alloc(&exec->arena, MAX_OF(def->state_bytes, 16u));
    if (call->arg == NULL || call->argv == NULL || call->call.state == NULL)
        return exec__fail(exec, ERR_NOMEM, NULL);
    bool subtype = (def->flags & FUNC_SUBTYPE) != 0;
    Err err = OK;
    for (u32 i = 0; err == OK && i < plan->arg_count; i++)
        err = exec__win_source(exec, win, plan->arg[i], false, subtype, &call->arg[i]);
    if (err == OK && plan->filter != NULL)
        err = exec__win_source(exec, win, plan->filter, true, false, &call->filter);
    return err;
}

void
exec__win_call_begin(WinCall *call)
{
    exec__win_call_end(call);
    call->groups = 0;
    call->queue.head = call->queue.count = 0;
    call->skip = (WinSkip){0};
    if (call->kind == WIN_PURE || call->kind == WIN_BEST) return;
    memset(call->call.state, 0, call->call.def->state_bytes);
    call->begun = true;
}

void
exec__win_call_end(WinCall *call)
{
    if (!call->begun) return;
    call->begun = false;
    if (call->call.def->state_free != NULL) call->call.def->state_free(&call->call);
}

void
exec__win_call_close(WinCall *call)
{
    exec__win_call_end(call);
    mem_free(call->queue.row);
    call->queue = (WinQueue){0};
}

/* ---- rows in and out ---- */

Err
exec__win_feed(Exec *exec, Win *win, WinCall *call, u64 row, FuncStep step)
{
    u32 count = call->plan->arg_count;
    for (u32 i = 0; i < count; i++)
        call->argv[i] = *exec__win_cell(&win->rows, call->arg[i], row);
    arena_reset(&win->scratch);
    call->call.arena = &win->scratch;
    Err err = step(&call->call, count, call->argv);
    return err == OK ? OK : exec__fail_call(exec, call->call.def, err);
}

static inline void
count_rows(Win *win, WinCall *call, u64 from, u64 to, i64 by)
{
    i64 *count = call->call.state;
    bool all = call->plan->arg_count == 0;
    if (all && call->filter == U32_MAX) {
        *count += by * (i64)(to - from);
        return;
    }
    for (u64 row = from; row < to; row++) {
        if (!exec__win_passes(win, call, row)) continue;
        if (all || exec__win_cell(&win->rows, call->arg[0], row)->type != CELL_NULL) *count += by;
    }
}

static Err
sum_rows(Exec *exec, Win *win, WinCall *call, u64 from, u64 to, bool in)
{
    Sum *sum = call->call.state;
    for (u64 row = from; row < to; row++) {
        if (!exec__win_passes(win, call, row)) continue;
        const Cell *value = exec__win_cell(&win->rows, call->arg[0], row);
        if (value->type == CELL_INT) {
            sum->count += in ? 1 : -1;
            sum_integer(sum, value->u.i, in);
        } else if (value->type == CELL_REAL && in) {
            sum_feed_real(sum, value->u.r);
        } else if (value->type == CELL_REAL) {
            sum->count--;
            sum_real(sum, -value->u.r);
        } else if (value->type != CELL_NULL) {
            const FuncDef *def = call->call.def;
            Err err = exec__win_feed(exec, win, call, row, in ? def->step : def->inverse);
            if (err != OK) return err;
        }
    }
    return OK;
}

static Err
queue_push(WinQueue *queue, u64 row)
{
    if (queue->head + queue->count == queue->capacity) {
        if (queue->head > queue->capacity / 2) {
            memmove(queue->row, queue->row + queue->head, queue->count * sizeof(u64));
            queue->head = 0;
        } else {
            if (queue->capacity > (u32)1 << 30) return ERR_NOMEM;
            u32 capacity = MAX_OF(queue->capacity * 2, 64u);
            u64 *rows = mem_realloc(queue->row, (size_t)capacity * sizeof(u64));
            if (rows == NULL) return ERR_NOMEM;
            queue->row = rows;
            queue->capacity = capacity;
        }
    }
    queue->row[queue->head + queue->count++] = row;
    return OK;
}

/* A new value drops those that it beats, and its equals: the last of equal ones is the result, as
   in SQLite. */
static Err
best_step(Exec *exec, Win *win, WinCall *call, u64 from, u64 to)
{
    WinQueue *queue = &call->queue;
    const WinRows *rows = &win->rows;
    bool max = (call->call.def->flags & FUNC_MAX) != 0;
    for (u64 row = from; row < to; row++) {
        const Cell *value = exec__win_cell(rows, call->arg[0], row);
        if (value->type == CELL_NULL || !exec__win_passes(win, call, row)) continue;
        while (queue->count > 0) {
            u64 last = queue->row[queue->head + queue->count - 1];
            int order = cell_compare(exec__win_cell(rows, call->arg[0], last), value,
                                     call->call.collation);
            if (max ? order > 0 : order < 0) break;
            queue->count--;
        }
        Err err = queue_push(queue, row);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    return OK;
}

static void
best_inverse(WinCall *call, u64 to)
{
    WinQueue *queue = &call->queue;
    while (queue->count > 0 && queue->row[queue->head] < to) {
        queue->head++;
        queue->count--;
    }
    if (queue->count == 0) queue->head = 0;
}

/* ntile() looks at its argument in the first row of a partition. */
static Err
ntile_check(Exec *exec, Win *win, WinCall *call, u64 row)
{
    if (call->groups != 0) return OK;
    call->groups = cell_to_int(exec__win_cell(&win->rows, call->arg[0], row));
    if (call->groups > 0) return OK;
    return exec__fail(exec, ERR_SQL, "argument of ntile must be a positive integer");
}

Err
exec__win_call_step(Exec *exec, Win *win, WinCall *call, u64 from, u64 to)
{
    Err err = OK;
    switch (call->kind) {
    case WIN_PURE:
        if (call->call.def->kernel == FUNC_WINDOW_NTILE) return ntile_check(exec, win, call, from);
        return OK;
    case WIN_COUNT: count_rows(win, call, from, to, 1); return OK;
    case WIN_SUM: return sum_rows(exec, win, call, from, to, true);
    case WIN_BEST: return best_step(exec, win, call, from, to);
    default: break;
    }
    for (u64 row = from; err == OK && row < to; row++) {
        if (exec__win_passes(win, call, row))
            err = exec__win_feed(exec, win, call, row, call->call.def->step);
    }
    return err;
}

Err
exec__win_call_inverse(Exec *exec, Win *win, WinCall *call, u64 from, u64 to)
{
    Err err = OK;
    switch (call->kind) {
    case WIN_PURE: return OK;
    case WIN_COUNT: count_rows(win, call, from, to, -1); return OK;
    case WIN_SUM: return sum_rows(exec, win, call, from, to, false);
    case WIN_BEST: best_inverse(call, to); return OK;
    default: break;
    }
    for (u64 row = from; err == OK && row < to; row++) {
        if (exec__win_passes(win, call, row))
            err = exec__win_feed(exec, win, call, row, call->call.def->inverse);
    }
    return err;
}

/* ---- results ---- */

static Cell
ntile_value(const WinCall *call, const WinFrame *frame)
{
    i64 total = (i64)(frame->end - frame->part), row = (i64)(frame->start - frame->part);
    i64 tiles = call->groups;
    i64 size = total / tiles;
    if (size == 0) return cell_int(row + 1);
    i64 large = total - tiles * size; /* So many tiles have one row more. */
    i64 small_from = large * (size + 1);
    if (row < small_from) return cell_int(1 + row / (size + 1));
    return cell_int(1 + large + (row - small_from) / size);
}

/* The frame has all its rows where one of these is asked for. */
static Cell
pure_value(Win *win, const WinFrame *frame, WinCall *call)
{
    i64 before = (i64)(frame->current - frame->part);
    i64 total = (i64)(frame->end - frame->part);
    switch (call->call.def->kernel) {
    case FUNC_WINDOW_ROW_NUMBER:
    case FUNC_WINDOW_RANK: return cell_int(before + 1);
    case FUNC_WINDOW_DENSE_RANK: return cell_int(++call->groups);
    case FUNC_WINDOW_PERCENT_RANK:
        return cell_real(total > 1 ? (f64)before / (f64)(total - 1) : 0.0);
    case FUNC_WINDOW_CUME_DIST:
        return cell_real((f64)(i64)(frame->start - frame->part) / (f64)total);
    case FUNC_WINDOW_NTILE: return ntile_value(call, frame);
    case FUNC_WINDOW_FIRST_VALUE:
        if (frame->start >= frame->end) return cell_null();
        return *exec__win_cell(&win->rows, call->arg[0], frame->start);
    case FUNC_WINDOW_LAST_VALUE:
        if (frame->start >= frame->end) return cell_null();
        return *exec__win_cell(&win->rows, call->arg[0], frame->end - 1);
    default: return cell_null(); /* By row. */
    }
}

Err
exec__win_result(Exec *exec, Win *win, WinCall *call, FuncValue value, Cell *out)
{
    *out = cell_null();
    call->call.arena = &win->results;
    Err err = value(&call->call, out);
    return err == OK ? OK : exec__fail_call(exec, call->call.def, err);
}

Err
exec__win_call_value(Exec *exec, Win *win, const WinFrame *frame, WinCall *call)
{
    switch (call->kind) {
    case WIN_PURE: {
        call->value = pure_value(win, frame, call);
        if (call->value.type < CELL_TEXT) return OK;
        Err err = cell_copy(&call->value, &win->results, &call->value);
        return err == OK ? OK : exec__fail(exec, err, NULL);
    }
    case WIN_COUNT: call->value = cell_int(*(const i64 *)call->call.state); return OK;
    case WIN_BEST: {
        const WinQueue *queue = &call->queue;
        call->value = cell_null();
        if (queue->count == 0) return OK;
        const Cell *best = exec__win_cell(&win->rows, call->arg[0], queue->row[queue->head]);
        Err err = cell_copy(best, &win->results, &call->value);
        return err == OK ? OK : exec__fail(exec, err, NULL);
    }
    default: return exec__win_result(exec, win, call, call->call.def->value, &call->value);
    }
}

/* A row of the partition by its number from 1 on, which came out of arithmetic. */
static bool
place_of(const WinFrame *frame, const Cell *number, u64 *row_out)
{
    i64 place;
    if (number->type == CELL_INT) {
        place = number->u.i;
    } else if (number->type != CELL_REAL || !real_is_int(number->u.r, &place)) {
        return false;
    }
    if (place < 1 || (u64)place > frame->limit - frame->part) return false;
    *row_out = frame->part + (u64)place - 1;
    return true;
}

static void
lag_value(Win *win, const WinFrame *frame, WinCall *call, u64 row, Cell *out)
{
    const WinRows *rows = &win->rows;
    u32 args = call->plan->arg_count;
    bool lead = call->call.def->kernel == FUNC_WINDOW_LEAD;
    Cell own = cell_int((i64)(row - frame->part) + 1);
    Cell by = args < 2 ? cell_int(1) : *exec__win_cell(rows, call->arg[1], row);
    Cell place = lead ? cell_add(&own, &by) : cell_sub(&own, &by);
    u64 found;
    *out = args < 3 ? cell_null() : *exec__win_cell(rows, call->arg[2], row);
    if (place_of(frame, &place, &found)) *out = *exec__win_cell(rows, call->arg[0], found);
}

bool
exec__win_nth(const Cell *cell, i64 *number_out)
{
    Cell number = cell_numeric_value(cell);
    if (number.type == CELL_INT) {
        *number_out = number.u.i;
    } else if (number.type != CELL_REAL || !real_is_int(number.u.r, number_out)) {
        return false;
    }
    return *number_out > 0;
}

Err
exec__win_nth_failed(Exec *exec)
{
    return exec__fail(exec, ERR_SQL, "second argument to nth_value must be a positive integer");
}

Err
exec__win_call_row(Exec *exec, Win *win, const WinFrame *frame, WinCall *call, u64 row, Cell *out)
{
    if (call->call.def->kernel != FUNC_WINDOW_NTH_VALUE) {
        lag_value(win, frame, call, row, out);
    } else {
        i64 number;
        if (!exec__win_nth(exec__win_cell(&win->rows, call->arg[1], row), &number))
            return exec__win_nth_failed(exec);
        *out = cell_null();
        if (frame->start < frame->end && (u64)number <= frame->end - frame->start)
            *out = *exec__win_cell(&win->rows, call->arg[0], frame->start + (u64)number - 1);
    }
    if (out->type < CELL_TEXT) return OK;
    Err err = cell_copy(out, &win->results, out);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}
