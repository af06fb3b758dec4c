/*
 * window_frame.c -- how a frame moves: which rows are taken in and out, and when rows get results.
 *
 * A unit is a row (ROWS) or a group of peers (RANGE, GROUPS).  There are three operations, each on
 * one unit at its cursor: STEP at `end`, INVERSE at `start`, RETURN at `current`.  A row that
 * arrives, if it begins a unit, makes one round of them; once the partition is complete, rounds
 * follow until all its rows have their results.  Which operations make up a round depends on the
 * bounds; the order is the one SQLite documents, as the last digits of real sums depend on it.
 */
#include "exec/exec__write.h"
#include "exec/window.h"

typedef enum Op { OP_STEP, OP_INVERSE, OP_RETURN } Op;

/* What an operation waits for: nothing, or the offset of a bound. */
typedef enum Wait { WAIT_START, WAIT_END, WAIT_NOT } Wait;

typedef enum RangeOp { RANGE_GE, RANGE_GT, RANGE_LE, RANGE_LT } RangeOp;

void
exec__win_frame_reset(WinFrame *frame)
{
    for (u32 i = 0; i < frame->call_count; i++)
        exec__win_call_end(&frame->call[i]);
    frame->arrived = frame->seen = frame->part = frame->limit = 0;
    frame->start = frame->current = frame->end = 0;
    frame->group = frame->group_end = 0;
    frame->open = frame->flushing = false;
    frame->phase = 0;
}

/* lag(x) and lag(x, n) with a constant look back a known way; U64_MAX: no one knows. */
static u64
looks_back(const WinCall *call)
{
    if (call->kind != WIN_PURE) return 0;
    switch (call->call.def->kernel) {
    case FUNC_WINDOW_LAG:
    case FUNC_WINDOW_LEAD: {
        i64 by = 1;
        if (call->plan->arg_count > 1) {
            const PlanExpr *arg = call->plan->arg[1];
            if (arg->op != PX_CONST || arg->u.constant.type != CELL_INT) return U64_MAX;
            by = arg->u.constant.u.i;
        }
        if (by < 0) return U64_MAX;
        return call->call.def->kernel == FUNC_WINDOW_LAG ? (u64)by : 0;
    }
    default: return 0;
    }
}

u64
exec__win_frame_low(const WinFrame *frame)
{
    if (!frame->open) return frame->current;
    u64 low = MIN_OF(frame->current, frame->end);
    /* last_value() */
    if (frame->end > frame->part) low = MIN_OF(low, frame->end - 1);
    if (frame->plan->start != BOUND_UNBOUNDED_PRECEDING) low = MIN_OF(low, frame->start);
    if (frame->by_row) low = MIN_OF(low, MIN_OF(frame->start, frame->group));
    for (u32 i = 0; i < frame->call_count; i++) {
        const WinCall *call = &frame->call[i];
        if (call->kind == WIN_PURE && (call->call.def->kernel == FUNC_WINDOW_FIRST_VALUE ||
                                       call->call.def->kernel == FUNC_WINDOW_NTH_VALUE))
            low = MIN_OF(low, frame->start);
        u64 back = looks_back(call), seen = frame->current - frame->part;
        if (back > 0) low = MIN_OF(low, frame->current - MIN_OF(back, seen));
    }
    return low;
}

/* ---- offsets ---- */

static Err
offset_failed(Exec *exec, Wait which, const char *kind)
{
    return exec__fail(exec, ERR_SQL, "frame %s offset must be a non-negative %s",
                      which == WAIT_START ? "starting" : "ending", kind);
}

/* The value of one bound, checked as SQLite does. */
static Err
offset_eval(Exec *exec, Win *win, WinFrame *frame, Wait which)
{
    if (frame->offset[which] == NULL) return OK;
    Cell value;
    Err err = exec__eval_in(exec, frame->offset[which], NULL, &win->scratch, &value);
    if (err != OK) return err;
    value = cell_numeric_value(&value);
    if (frame->plan->unit == FRAME_RANGE) {
        bool good = (value.type == CELL_INT && value.u.i >= 0) ||
                    (value.type == CELL_REAL && value.u.r >= 0.0);
        frame->range[which] = value;
        return good ? OK : offset_failed(exec, which, "number");
    }
    i64 units = -1;
    if (value.type == CELL_INT) units = value.u.i;
    if (value.type == CELL_REAL && !real_is_int(value.u.r, &units)) units = -1;
    frame->left[which] = units;
    return units >= 0 ? OK : offset_failed(exec, which, "integer");
}

/* ---- RANGE ---- */

static Cell
range_key(const Win *win, const WinFrame *frame, u64 row)
{
    if (row >= frame->limit) return cell_null();
    return *exec__win_cell(&win->rows, win->order[0], row);
}

static bool
order_is(RangeOp op, int order)
{
    switch (op) {
    case RANGE_GE: return order >= 0;
    case RANGE_GT: return order > 0;
    case RANGE_LE: return order <= 0;
    default: return order < 0;
    }
}

/* key(row_a) + offset  op  key(row_b), turned for DESC.  What is no number stays as it is; where
   NULLs stand on the side that SQLite's comparisons do not expect, they are looked at first. */
static bool
range_test(const Win *win, const WinFrame *frame, RangeOp op, u64 row_a, Wait which, u64 row_b)
{
    static const u8 turned[] = {
        [RANGE_GE] = RANGE_LE, [RANGE_GT] = RANGE_LT, [RANGE_LE] = RANGE_GE};
    const PlanSortKey *key = &win->plan->order[0];
    Cell a = range_key(win, frame, row_a), b = range_key(win, frame, row_b);
    bool null_a = a.type == CELL_NULL, null_b = b.type == CELL_NULL;
    if (key->desc) op = (RangeOp)turned[op];
    if (key->nulls_last != key->desc) {
        if (null_a)
            return op == RANGE_GE || (op == RANGE_GT && !null_b) || (op == RANGE_LE && null_b);
        if (null_b) return op == RANGE_LE || op == RANGE_LT;
    }
    if (a.type < CELL_TEXT) {
        bool grows = (op == RANGE_GE && !key->desc) || (op == RANGE_LE && key->desc);
        if (grows && !null_a && !null_b && order_is(op, cell_compare(&a, &b, NULL))) return true;
        a = key->desc ? cell_sub(&a, &frame->range[which]) : cell_add(&a, &frame->range[which]);
    }
    return order_is(op, cell_compare(&a, &b, key->collation));
}

/* Must the operation wait?  A countdown goes on with each time it is asked. */
static bool
waits(const Win *win, WinFrame *frame, Op op, Wait wait)
{
    if (frame->plan->unit != FRAME_RANGE) {
        if (frame->left[wait] <= 0) return false;
        frame->left[wait]--;
        return true;
    }
    if (op == OP_STEP) return range_test(win, frame, RANGE_GT, frame->end, wait, frame->current);
    if (frame->plan->start == BOUND_FOLLOWING)
        return range_test(win, frame, RANGE_LE, frame->current, wait, frame->start);
    return range_test(win, frame, RANGE_GE, frame->start, wait, frame->current);
}

/* ---- results ---- */

static Err
values_make(Exec *exec, Win *win, WinFrame *frame)
{
    for (u32 i = 0; i < frame->call_count; i++) {
        Err err = exec__win_call_value(exec, win, frame, &frame->call[i]);
        if (err != OK) return err;
    }
    return OK;
}

/* EXCLUDE: the peers of the current row, as far as they have arrived. */
static void
find_peers(const Win *win, WinFrame *frame)
{
    u64 row = frame->current;
    if (exec__win_marked(&win->rows, row, WIN_PEERS) || row == frame->part) frame->group = row;
    frame->group_end = MAX_OF(frame->group_end, row + 1);
    while (frame->group_end < frame->limit &&
           !exec__win_marked(&win->rows, frame->group_end, WIN_PEERS))
        frame->group_end++;
}

static Err
row_by_scan(Exec *exec, Win *win, WinFrame *frame)
{
    u64 row = frame->current, skip = row, skip_end = row, keep = U64_MAX;
    if (frame->plan->exclude == EXCLUDE_CURRENT_ROW) skip_end = row + 1;
    if (frame->plan->exclude == EXCLUDE_GROUP || frame->plan->exclude == EXCLUDE_TIES) {
        find_peers(win, frame);
        skip = frame->group;
        skip_end = frame->group_end;
        if (frame->plan->exclude == EXCLUDE_TIES) keep = row;
    }
    for (u32 i = 0; i < frame->call_count; i++) {
        WinCall *call = &frame->call[i];
        Cell value;
        Err err = exec__win_call_scan(exec, win, frame, call, skip, skip_end, keep, &value);
        if (err != OK) return err;
        err = exec__win_store(&win->rows, call->plan->cell, row, &value);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    return exec__check(exec);
}

/* Results for the rows from frame->current up to `to`, which share a frame; the cursor stops before
   the first one that fails. */
static Err
rows_return(Exec *exec, Win *win, WinFrame *frame, u64 to)
{
    Err err = OK;
    if (frame->by_row) {
        while (err == OK && frame->current < to) {
            err = row_by_scan(exec, win, frame);
            if (err == OK) frame->current++;
        }
        return err;
    }
    for (u32 i = 0; i < frame->call_count; i++) {
        WinCall *call = &frame->call[i];
        for (u64 row = frame->current; row < to; row++) {
            Cell value = call->value;
            Err failed = OK;
            if (call->by_row) failed = exec__win_call_row(exec, win, frame, call, row, &value);
            if (failed == OK) failed = exec__win_store(&win->rows, call->plan->cell, row, &value);
            if (failed == OK) continue;
            if (exec->msg.err == OK) (void)exec__fail(exec, failed, NULL);
            err = failed;
            to = row;
        }
    }
    frame->current = to;
    return err;
}

/* ---- operations ---- */

/* Behind the unit that begins at `row`, no further than `limit`. */
static u64
unit_end(const Win *win, const WinFrame *frame, u64 row, u64 limit)
{
    if (frame->plan->unit == FRAME_ROWS) return row + 1;
    do {
        row++;
    } while (row < limit && !exec__win_marked(&win->rows, row, WIN_PEERS));
    return row;
}

/* Two bounds on the same side may have changed places: the start does not pass the end, and the end
   does not pass what has arrived. */
static u64
unit_limit(const WinFrame *frame, Op op, Wait wait)
{
    const PlanFrame *plan = frame->plan;
    if (wait == WAIT_NOT || plan->unit != FRAME_RANGE || plan->start != plan->end)
        return frame->limit;
    if (op == OP_INVERSE) return frame->end < frame->limit ? frame->end : frame->limit;
    return frame->flushing ? frame->limit : frame->limit - 1;
}

static Err
unit_move(Exec *exec, Win *win, WinFrame *frame, Op op, u64 *cursor, u64 to)
{
    if (op == OP_RETURN) return rows_return(exec, win, frame, to);
    Err err = OK;
    for (u32 i = 0; err == OK && frame->computes && i < frame->call_count; i++) {
        WinCall *call = &frame->call[i];
        if (!call->moves) continue;
        err = op == OP_STEP ? exec__win_call_step(exec, win, call, *cursor, to)
                            : exec__win_call_inverse(exec, win, call, *cursor, to);
    }
    if (err == OK) *cursor = to;
    return err;
}

/* One operation; RANGE with an offset goes on while it need not wait.  *end_out: the cursor has
   come to the end of the partition. */
static Err
operate(Exec *exec, Win *win, WinFrame *frame, Op op, Wait wait, bool *end_out)
{
    *end_out = false;
    if (op == OP_INVERSE && frame->plan->start == BOUND_UNBOUNDED_PRECEDING) return OK;
    u64 *cursor = op == OP_STEP ? &frame->end : op == OP_INVERSE ? &frame->start : &frame->current;
    do {
        if (wait != WAIT_NOT && waits(win, frame, op, wait)) return OK;
        Err err = OK;
        if (op == OP_RETURN && !frame->by_row) err = values_make(exec, win, frame);
        u64 limit = unit_limit(frame, op, wait);
        if (err != OK || *cursor >= limit) return err;
        err = unit_move(exec, win, frame, op, cursor, unit_end(win, frame, *cursor, limit));
        if (err != OK) return err;
        if (*cursor >= frame->limit) {
            *end_out = true;
            return OK;
        }
        if (*cursor >= limit) return OK;
    } while (wait != WAIT_NOT && frame->plan->unit == FRAME_RANGE);
    return OK;
}

static Err
plain(Exec *exec, Win *win, WinFrame *frame, Op op, Wait wait)
{
    bool end;
    return operate(exec, win, frame, op, wait, &end);
}

/* ---- rounds ---- */

/* Which bound an operation on `start` or `end` waits for. */
static Wait
start_wait(const WinFrame *frame)
{
    return frame->offset[WAIT_START] != NULL ? WAIT_START : WAIT_NOT;
}
static Wait
end_wait(const WinFrame *frame)
{
    return frame->offset[WAIT_END] != NULL ? WAIT_END : WAIT_NOT;
}

static Err
round_following(Exec *exec, Win *win, WinFrame *frame)
{
    Err err = plain(exec, win, frame, OP_STEP, WAIT_NOT);
    if (frame->plan->end == BOUND_UNBOUNDED_FOLLOWING) return err;
    if (frame->plan->unit != FRAME_RANGE) {
        if (err == OK) err = plain(exec, win, frame, OP_RETURN, WAIT_END);
        return err == OK ? plain(exec, win, frame, OP_INVERSE, WAIT_START) : err;
    }
    while (err == OK && !range_test(win, frame, RANGE_GE, frame->current, WAIT_END, frame->end)) {
        err = plain(exec, win, frame, OP_INVERSE, WAIT_START);
        if (err == OK) err = plain(exec, win, frame, OP_RETURN, WAIT_NOT);
    }
    return err;
}

static Err
round_preceding(Exec *exec, Win *win, WinFrame *frame)
{
    bool early = frame->plan->start == BOUND_PRECEDING && frame->plan->unit == FRAME_RANGE;
    Err err = plain(exec, win, frame, OP_STEP, WAIT_END);
    if (err == OK && early) err = plain(exec, win, frame, OP_INVERSE, WAIT_START);
    if (err == OK) err = plain(exec, win, frame, OP_RETURN, WAIT_NOT);
    if (err == OK && !early && !frame->flushing)
        err = plain(exec, win, frame, OP_INVERSE, start_wait(frame));
    return err;
}

static Err
round_around(Exec *exec, Win *win, WinFrame *frame)
{
    Err err = plain(exec, win, frame, OP_STEP, WAIT_NOT);
    if (frame->plan->end == BOUND_UNBOUNDED_FOLLOWING) return err;
    Wait end = end_wait(frame);
    bool range = frame->plan->unit == FRAME_RANGE;
    if (!range && end != WAIT_NOT && frame->left[WAIT_END] > 0) {
        frame->left[WAIT_END]--;
        return err;
    }
    while (err == OK) {
        if (range && end != WAIT_NOT &&
            range_test(win, frame, RANGE_GE, frame->current, WAIT_END, frame->end))
            break;
        err = plain(exec, win, frame, OP_RETURN, WAIT_NOT);
        if (err == OK) err = plain(exec, win, frame, OP_INVERSE, start_wait(frame));
        if (!range || end == WAIT_NOT) break;
    }
    return err;
}

/* ---- partitions ---- */

static bool
bounds_crossed(const WinFrame *frame)
{
    const PlanFrame *plan = frame->plan;
    if (plan->unit == FRAME_RANGE || plan->start != plan->end || start_wait(frame) == WAIT_NOT)
        return false;
    return plan->start == BOUND_FOLLOWING ? frame->left[WAIT_END] < frame->left[WAIT_START]
                                          : frame->left[WAIT_END] > frame->left[WAIT_START];
}

/* The first row of a partition. */
static Err
partition_begin(Exec *exec, Win *win, WinFrame *frame, u64 row)
{
    frame->part = frame->start = frame->current = frame->end = row;
    frame->group = frame->group_end = row;
    frame->open = true;
    for (u32 i = 0; i < frame->call_count; i++) {
        if (frame->call[i].moves) exec__win_call_begin(&frame->call[i]);
    }
    arena_reset(&win->scratch);
    Err err = offset_eval(exec, win, frame, WAIT_START);
    if (err == OK) err = offset_eval(exec, win, frame, WAIT_END);
    if (err != OK) return err;
    if (bounds_crossed(frame)) {
        /* No row is in any frame: each row is done with as soon as it is there. */
        if (!frame->by_row) err = values_make(exec, win, frame);
        if (err == OK) err = rows_return(exec, win, frame, row + 1);
        if (err != OK) return err;
        frame->start = frame->current = frame->end = row + 1;
        frame->open = false;
        return OK;
    }
    if (frame->plan->start == BOUND_FOLLOWING && frame->plan->unit != FRAME_RANGE &&
        end_wait(frame) != WAIT_NOT)
        frame->left[WAIT_START] = frame->left[WAIT_END] - frame->left[WAIT_START];
    return OK;
}

static Err
row_arrives(Exec *exec, Win *win, WinFrame *frame, u64 row)
{
    frame->limit = row + 1;
    if (!frame->open) return partition_begin(exec, win, frame, row);
    if (frame->plan->unit != FRAME_ROWS && !exec__win_marked(&win->rows, row, WIN_PEERS)) return OK;
    if (frame->plan->start == BOUND_FOLLOWING) return round_following(exec, win, frame);
    if (frame->plan->end == BOUND_PRECEDING) return round_preceding(exec, win, frame);
    return round_around(exec, win, frame);
}

/* ---- the end of a partition ---- */

enum { FLUSH_BEGIN, FLUSH_ROUNDS, FLUSH_REST, FLUSH_DONE };

static void
flush_done(WinFrame *frame)
{
    for (u32 i = 0; i < frame->call_count; i++)
        exec__win_call_end(&frame->call[i]);
    frame->open = frame->flushing = false;
    frame->phase = FLUSH_BEGIN;
}

static Err
flush_begin(Exec *exec, Win *win, WinFrame *frame)
{
    const PlanFrame *plan = frame->plan;
    if (plan->end == BOUND_PRECEDING) {
        frame->phase = FLUSH_DONE;
        return round_preceding(exec, win, frame);
    }
    frame->phase = FLUSH_ROUNDS;
    Err err = plain(exec, win, frame, OP_STEP, WAIT_NOT);
    if (plan->start == BOUND_FOLLOWING && plan->unit != FRAME_RANGE &&
        plan->end == BOUND_FOLLOWING) {
        frame->left[WAIT_END] -= frame->left[WAIT_START];
        frame->left[WAIT_START] = 0;
    }
    return err;
}

static Err
flush_following(Exec *exec, Win *win, WinFrame *frame)
{
    const PlanFrame *plan = frame->plan;
    bool end;
    if (plan->unit == FRAME_RANGE) {
        Err err = operate(exec, win, frame, OP_INVERSE, WAIT_START, &end);
        if (end) frame->phase = FLUSH_REST;
        if (end || err != OK) return err;
        err = operate(exec, win, frame, OP_RETURN, WAIT_NOT, &end);
        if (end) frame->phase = FLUSH_DONE;
        return err;
    }
    bool open = plan->end == BOUND_UNBOUNDED_FOLLOWING;
    Err err = operate(exec, win, frame, OP_RETURN, open ? WAIT_START : WAIT_END, &end);
    if (end) frame->phase = FLUSH_DONE;
    if (end || err != OK) return err;
    err = operate(exec, win, frame, OP_INVERSE, open ? WAIT_NOT : WAIT_START, &end);
    if (end) frame->phase = FLUSH_REST;
    return err;
}

static Err
flush_around(Exec *exec, Win *win, WinFrame *frame)
{
    bool end;
    Err err = operate(exec, win, frame, OP_RETURN, WAIT_NOT, &end);
    if (end) frame->phase = FLUSH_DONE;
    if (end || err != OK) return err;
    return plain(exec, win, frame, OP_INVERSE, start_wait(frame));
}

static Err
flush_move(Exec *exec, Win *win, WinFrame *frame)
{
    bool end;
    Err err = OK;
    switch (frame->phase) {
    case FLUSH_BEGIN: err = flush_begin(exec, win, frame); break;
    case FLUSH_ROUNDS:
        err = frame->plan->start == BOUND_FOLLOWING ? flush_following(exec, win, frame)
                                                    : flush_around(exec, win, frame);
        break;
    default:
        err = operate(exec, win, frame, OP_RETURN, WAIT_NOT, &end);
        if (end) frame->phase = FLUSH_DONE;
        break;
    }
    if (err == OK && frame->phase == FLUSH_DONE) {
        ASSERT(frame->current == frame->limit);
        flush_done(frame);
    }
    return err;
}

Err
exec__win_frame_move(Exec *exec, Win *win, WinFrame *frame, bool *waits_out)
{
    const WinRows *rows = &win->rows;
    u64 total = exec__win_total(rows), there = frame->nested ? (frame - 1)->current : total;
    *waits_out = false;
    if (frame->flushing) return flush_move(exec, win, frame);
    if (frame->arrived < there) {
        u64 row = frame->arrived;
        frame->seen = row + 1;
        if (frame->open && exec__win_marked(rows, row, WIN_PARTITION)) {
            frame->flushing = true;
            return flush_move(exec, win, frame);
        }
        frame->arrived++;
        return row_arrives(exec, win, frame, row);
    }
    if (win->ended && there == total && frame->open) {
        frame->flushing = true;
        return flush_move(exec, win, frame);
    }
    *waits_out = true;
    return OK;
}
