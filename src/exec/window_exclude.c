/*
 * window_exclude.c -- results over a frame without some of its rows.
 *
 * The rows that are left out are neighbours: the current row or its peers.  Counts and sums of
 * integers are taken from the whole frame, less what the rows left out add to it; a sum of reals is
 * summed up from its first row each time, for its last digits are those of SQLite, which computes
 * every row from scratch.
 */
#include "exec/exec__write.h"
#include "exec/window.h"

/* Rows of a frame in order: [start, skip), `keep` if it is in the frame, [skip_end, end). */
typedef struct Scan {
    u64 row, end, skip, skip_end, keep;
} Scan;

static bool
scan_next(Scan *scan, u64 *row_out)
{
    while (scan->row < scan->end) {
        if (scan->row < scan->skip || scan->row >= scan->skip_end || scan->row == scan->keep) {
            *row_out = scan->row++;
            return true;
        }
        bool before_keep = scan->keep > scan->row && scan->keep < scan->skip_end;
        scan->row = before_keep ? scan->keep : scan->skip_end;
    }
    return false;
}

/* How many rows are left. */
static u64
scan_count(const Scan *scan)
{
    u64 from = MAX_OF(scan->row, scan->skip), to = MIN_OF(scan->end, scan->skip_end);
    u64 rows = scan->end > scan->row ? scan->end - scan->row : 0;
    if (from >= to) return rows;
    bool kept = scan->keep >= from && scan->keep < to;
    return rows - (to - from) + (kept ? 1 : 0);
}

/* Row number `at`, from 0 on, of those that are left. */
static u64
scan_at(const Scan *scan, u64 at)
{
    Scan part = *scan;
    u64 row = scan->row, before = MIN_OF(scan->skip, scan->end);
    if (row < before) {
        if (at < before - row) return row + at;
        at -= before - row;
        part.row = before;
    }
    for (;; at--) {
        bool found = scan_next(&part, &row);
        ASSERT(found);
        /* Behind the rows left out nothing is missing. */
        if (row >= scan->skip_end) return row + at;
        if (at == 0) return row;
    }
}

static Err
scan_pure(Exec *exec, Win *win, WinCall *call, u64 current, const Scan *scan, Cell *out)
{
    u64 count = scan_count(scan), at = 0;
    *out = cell_null();
    if (count == 0) return OK;
    if (call->call.def->kernel == FUNC_WINDOW_LAST_VALUE) at = count - 1;
    if (call->call.def->kernel == FUNC_WINDOW_NTH_VALUE) {
        i64 number;
        if (!exec__win_nth(exec__win_cell(&win->rows, call->arg[1], current), &number))
            return exec__win_nth_failed(exec);
        at = (u64)number - 1;
    }
    if (at >= count) return OK;
    const Cell *found = exec__win_cell(&win->rows, call->arg[0], scan_at(scan, at));
    Err err = cell_copy(found, &win->results, out);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* ---- counts and sums ---- */

static void
skip_add(const Win *win, const WinCall *call, u64 row, i64 sign, WinSkip *skip)
{
    if (!exec__win_passes(win, call, row)) return;
    Cell value = {.type = CELL_INT};
    if (call->plan->arg_count > 0) value = *exec__win_cell(&win->rows, call->arg[0], row);
    if (value.type == CELL_NULL) return;
    skip->count += sign;
    if (call->kind == WIN_COUNT) return;
    if (value.type != CELL_INT) value = cell_numeric_value(&value);
    if (value.type == CELL_INT) skip->whole += sign * (i128)value.u.i;
}

/* What the rows left out add to the frame; peers ask for the same rows again. */
static WinSkip
skipped(const Win *win, WinCall *call, const Scan *scan)
{
    u64 from = MAX_OF(scan->row, scan->skip), to = MIN_OF(scan->end, scan->skip_end);
    if (from >= to) return (WinSkip){0};
    if (call->skip.from != from || call->skip.to != to || from == to) {
        call->skip = (WinSkip){.from = from, .to = to};
        for (u64 row = from; row < to; row++)
            skip_add(win, call, row, 1, &call->skip);
    }
    WinSkip skip = call->skip;
    if (scan->keep >= from && scan->keep < to) skip_add(win, call, scan->keep, -1, &skip);
    return skip;
}

/* Does the sum of the frame tell what the sum without some rows is, and that nothing overflows? */
static bool
is_exact(const Sum *sum)
{
    i128 bound = (i128)1 << 62;
    return !sum->real && !sum->approximate && sum->low > -bound && sum->high < bound;
}

static Err
scan_fresh(Exec *exec, Win *win, WinCall *call, Scan *scan, Cell *out)
{
    const FuncDef *def = call->call.def;
    Err err = OK;
    u64 row;
    while (err == OK && scan_next(scan, &row)) {
        if (exec__win_passes(win, call, row)) err = exec__win_feed(exec, win, call, row, def->step);
    }
    if (err != OK) return err;
    return exec__win_result(exec, win, call, def->final != NULL ? def->final : def->value, out);
}

static Err
scan_sum(Exec *exec, Win *win, WinCall *call, Scan *scan, Cell *out)
{
    Sum *all = call->call.state, rest = {0};
    bool exact = is_exact(all);
    if (exact) {
        WinSkip skip = skipped(win, call, scan);
        rest.whole = rest.low = rest.high = all->whole - skip.whole;
        rest.count = all->count - skip.count;
    }
    call->call.state = &rest;
    Err err = exact ? exec__win_result(exec, win, call, call->call.def->value, out)
                    : scan_fresh(exec, win, call, scan, out);
    call->call.state = all;
    return err;
}

Err
exec__win_call_scan(Exec *exec, Win *win, const WinFrame *frame, WinCall *call, u64 skip,
                    u64 skip_end, u64 keep, Cell *out)
{
    Scan scan = {frame->start, frame->end, skip, skip_end, keep};
    switch (call->kind) {
    case WIN_PURE: return scan_pure(exec, win, call, frame->current, &scan, out);
    case WIN_COUNT: {
        WinSkip left_out = skipped(win, call, &scan);
        *out = cell_int(*(const i64 *)call->call.state - left_out.count);
        return OK;
    }
    case WIN_SUM: return scan_sum(exec, win, call, &scan, out);
    default: break;
    }
    exec__win_call_begin(call);
    Err err = scan_fresh(exec, win, call, &scan, out);
    exec__win_call_end(call);
    return err;
}
