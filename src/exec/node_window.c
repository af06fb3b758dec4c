/*
 * node_window.c -- PLAN_WINDOW: each row of the input with the results of window functions.
 *
 * Rows come sorted.  The node takes in as many as its frames need to finish the rows it is asked
 * for; results point straight into the buffer.
 *
 * Trips.  Where the input streams, the rows that SQLite would not have read yet must be given back:
 * the frames are set back to where the last batch began and moved on to the rows that were used,
 * which shows how far they had to read.  To that end no input is taken while a row is ready, so
 * that all that may go back came in one batch.
 */
#include "exec/exec__write.h"
#include "exec/spill.h"
#include "exec/window.h"

#define RESULT_BYTES_MAX ((size_t)1 << 20) /* Then results that were given are thrown away. */
#define MOVES_CHECK      1024u             /* Interrupts are looked for so often. */

/* The input has not read everything before its first row. */
static bool
streams(const Win *win)
{
    return win->node.streaming && win->node.input->plan->kind != PLAN_SORT;
}

static void
window_rewind(Exec *exec, ExecNode *node)
{
    Win *win = (Win *)node;
    for (u32 i = 0; i < win->frame_count; i++) {
        WinFrame *frame = &win->frame[i];
        exec__win_frame_reset(frame);
        frame->nested = i > 0 && (streams(win) || frame[-1].nested || frame[-1].may_fail);
    }
    exec__win_rows_clear(&win->rows);
    exec__spill_forget(exec, &win->held);
    arena_reset(&win->results);
    win->shown = 0;
    win->ended = win->in_ahead = false;
    win->in_err = win->err = OK;
    exec__rewind(exec, node->input);
}

/* Rows that have all their results. */
static u64
rows_ready(const Win *win)
{
    u64 ready = U64_MAX;
    for (u32 i = 0; i < win->frame_count; i++)
        ready = MIN_OF(ready, win->frame[i].current);
    return ready;
}

/* ---- memory ---- */

/* Keep the bytes of results that are still to be given, and no others. */
static Err
results_trim(Exec *exec, Win *win)
{
    u64 last = win->shown;
    for (u32 i = 0; i < win->frame_count; i++)
        last = MAX_OF(last, win->frame[i].current);
    if (last == win->shown) {
        arena_reset(&win->results);
        return OK;
    }
    if (win->results.total_bytes < RESULT_BYTES_MAX) return OK;
    arena_reset(&win->results_spare);
    for (u32 f = 0; f < win->frame_count; f++) {
        const WinFrame *frame = &win->frame[f];
        for (u32 i = 0; i < frame->call_count; i++) {
            /* Pages have the bytes of theirs. */
            for (u64 row = MAX_OF(win->shown, win->rows.first); row < frame->current; row++) {
                Cell *cell = exec__win_cell(&win->rows, frame->call[i].plan->cell, row);
                if (cell->type < CELL_TEXT) continue;
                if (cell_copy(cell, &win->results_spare, cell) != OK)
                    return exec__fail(exec, ERR_NOMEM, NULL);
            }
        }
    }
    Arena old = win->results;
    win->results = win->results_spare;
    win->results_spare = old;
    arena_reset(&win->results_spare);
    return OK;
}

/* Forget rows that were given and that no frame needs; the last one stays, for its successor to be
   compared with. */
static Err
rows_trim(Exec *exec, Win *win)
{
    if (win->rows.count == 0) return OK;
    u64 low = MIN_OF(win->shown, exec__win_total(&win->rows) - 1);
    for (u32 i = 0; i < win->frame_count; i++)
        low = MIN_OF(low, exec__win_frame_low(&win->frame[i]));
    const PlanNode *plan = win->node.plan;
    Err err = exec__win_rows_prune(&win->rows, low, plan->input->columns, plan->columns);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* ---- rows ---- */

/* Before rows are taken in, for those may be given back after a trip. */
static Err
spill_check(Exec *exec, Win *win)
{
    WinRows *rows = &win->rows;
    const PlanNode *plan = win->node.plan;
    u64 row_bytes = (u64)rows->columns * sizeof(Cell) + 1;
    u64 memory = rows->count * row_bytes + arena_used(&rows->bytes) + arena_used(&win->results);
    if (!exec__spill_due(exec, &win->held, memory)) return OK;
    if (win->computed == NULL) {
        win->computed = ARENA_NEW_ARRAY(&exec->arena, u64, rows->columns);
        if (win->computed == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    }
    for (u32 i = 0; i < rows->columns; i++)
        win->computed[i] = U64_MAX;
    for (u32 f = 0; f < win->frame_count; f++) {
        for (u32 i = 0; i < win->frame[f].call_count; i++)
            win->computed[win->frame[f].call[i].plan->cell] = win->frame[f].current;
    }
    u32 moved = 0;
    Err err = rows->pages == NULL ? exec__win_pages_open(exec, rows, win->frame_count) : OK;
    if (err == OK) err = exec__win_pages_move(rows, win->computed, win->shown, &moved);
    if (err == OK && moved > 0)
        err = exec__win_rows_shift(rows, moved, plan->input->columns, plan->columns);
    memory = rows->count * row_bytes + arena_used(&rows->bytes) + arena_used(&win->results);
    (void)exec__spill_due(exec, &win->held, memory);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

static Err
take_input(Exec *exec, Win *win, u32 want)
{
    Err err = spill_check(exec, win);
    if (err != OK) return err;
    /* A sort has read everything already. */
    if (win->node.input->plan->kind == PLAN_SORT) want = BATCH_ROWS_MAX;
    u64 first = exec__win_total(&win->rows);
    const Batch *in = exec__next(exec, win->node.input, exec__demand(exec, want));
    if (in->count == 0) {
        win->in_err = in->err;
        win->ended = in->err == OK;
        return OK;
    }
    win->in_ahead = true;
    win->in_first = first;
    win->rows.copies = win->node.input->plan->kind != PLAN_SORT ||
                       !exec__sort_keeps_rows(win->node.input);
    err = exec__win_take(exec, win, in);
    /* What could be computed stands before the error. */
    win->in_err = err != OK ? err : in->err;
    return OK;
}

/* A move that brings frame number `at` further: its own, or one of the frames before it that it
   waits for. */
static Err
move(Exec *exec, Win *win, u32 at, bool *waits_out)
{
    for (;; at--) {
        Err err = exec__win_frame_move(exec, win, &win->frame[at], waits_out);
        if (err == OK && ++win->moves % MOVES_CHECK == 0) err = exec__check(exec);
        if (err == OK && UNLIKELY(win->rows.pages != NULL)) {
            err = exec__win_pages_err(&win->rows);
            if (err != OK) (void)exec__fail(exec, err, NULL);
        }
        if (err != OK || !*waits_out || !win->frame[at].nested) return err;
    }
}

/* Move on until `target` rows are ready, or no more can be. */
static Err
work(Exec *exec, Win *win, u64 target, u32 want)
{
    for (;;) {
        bool any_waits = false;
        for (u32 i = 0; i < win->frame_count; i++) {
            bool frame_waits = false;
            while (win->frame[i].current < target && !frame_waits) {
                Err err = move(exec, win, i, &frame_waits);
                if (err != OK) return err;
            }
            any_waits |= frame_waits;
        }
        if (!any_waits || win->ended || win->in_err != OK) return OK;
        if (streams(win) && rows_ready(win) > win->shown) return OK;
        Err err = take_input(exec, win, want);
        if (err == OK) err = exec__check(exec);
        if (err != OK) return err;
    }
}

/* ---- setting back ---- */

static void
save(Win *win)
{
    for (u32 f = 0; f < win->frame_count; f++) {
        WinSaved *saved = &win->saved[f];
        const WinFrame *frame = &win->frame[f];
        u8 *states = saved->states;
        saved->frame = *frame;
        for (u32 i = 0; i < frame->call_count; i++) {
            saved->call[i] = frame->call[i];
            u32 bytes = frame->call[i].call.def->state_bytes;
            memcpy(states, frame->call[i].call.state, bytes);
            states += bytes;
        }
    }
}

static void
go_back(Win *win)
{
    for (u32 f = 0; f < win->frame_count; f++) {
        const WinSaved *saved = &win->saved[f];
        WinFrame *frame = &win->frame[f];
        const u8 *states = saved->states;
        *frame = saved->frame;
        for (u32 i = 0; i < frame->call_count; i++) {
            frame->call[i] = saved->call[i];
            u32 bytes = frame->call[i].call.def->state_bytes;
            memcpy(frame->call[i].call.state, states, bytes);
            states += bytes;
        }
    }
}

static void
give(Win *win, u32 count, Err err)
{
    ExecNode *node = &win->node;
    if (count == 0) {
        exec__out_end(node, err);
        return;
    }
    for (u32 i = 0; i < node->plan->columns; i++) {
        const Cell *cell = exec__win_cell(&win->rows, i, win->shown);
        node->out.col[i] = (Vec){.kind = VEC_CELL, .u.cell = cell};
    }
    exec__out_rows(node, count, err);
    win->shown += count;
    node->out.last = err == OK && win->ended && win->shown == exec__win_total(&win->rows);
}

static void
window_next(Exec *exec, ExecNode *node, u32 want)
{
    Win *win = (Win *)node;
    Err err = win->err;
    if (err == OK) err = results_trim(exec, win);
    if (err == OK) err = rows_trim(exec, win);
    if (streams(win) && win->careful) {
        want = 1;
    } else if (streams(win)) {
        save(win);
    }
    if (err == OK) err = work(exec, win, win->shown + want, want);
    win->err = err;
    u64 ready = rows_ready(win) - win->shown;
    u32 count = (u32)MIN_OF(ready, (u64)want);
    if (err == OK) err = win->in_err;
    if (UNLIKELY(count > 0 && win->shown < win->rows.first)) {
        count = MIN_OF(count, exec__win_page_run(&win->rows, win->shown));
        (void)exec__win_cell(&win->rows, 0, win->shown);
        Err read = exec__win_pages_err(&win->rows);
        if (read != OK) {
            exec__out_end(node, exec__fail(exec, read, NULL));
            return;
        }
    }
    give(win, count, count == ready ? err : OK);
}

static Err
window_resume(Exec *exec, ExecNode *node, u32 used)
{
    Win *win = (Win *)node;
    win->shown -= node->out.count - used;
    if (win->ended || win->in_err != OK || !win->in_ahead || !streams(win)) return OK;
    win->in_ahead = false;
    if (!win->careful) go_back(win);
    u64 read = 0;
    for (u32 i = 0; i < win->frame_count; i++) {
        WinFrame *frame = &win->frame[i];
        bool waits = false;
        while (frame->current < win->shown) {
            Err err = move(exec, win, i, &waits);
            if (err != OK) return err;
            ASSERT(!waits);
        }
    }
    for (u32 i = 0; i < win->frame_count; i++)
        read = MAX_OF(read, win->frame[i].seen);
    ASSERT(read > win->in_first && read <= exec__win_total(&win->rows));
    win->rows.count = (u32)(read - win->rows.first);
    return exec__resume(exec, node->input, (u32)(read - win->in_first));
}

static void
window_reset(Exec *exec, ExecNode *node)
{
    Win *win = (Win *)node;
    for (u32 i = 0; i < win->frame_count; i++)
        exec__win_frame_reset(&win->frame[i]);
    exec__win_rows_clear(&win->rows);
    exec__spill_forget(exec, &win->held);
    arena_reset(&win->results);
    arena_reset(&win->results_spare);
    arena_reset(&win->scratch);
}

static void
window_close(Exec *exec, ExecNode *node)
{
    Win *win = (Win *)node;
    (void)exec;
    for (u32 f = 0; win->frame != NULL && f < win->frame_count; f++) {
        for (u32 i = 0; win->frame[f].call != NULL && i < win->frame[f].call_count; i++)
            exec__win_call_close(&win->frame[f].call[i]);
    }
    exec__win_rows_free(&win->rows);
    arena_free(&win->results);
    arena_free(&win->results_spare);
    arena_free(&win->scratch);
}

static const NodeOps window_ops = {.next = window_next,
                                   .rewind = window_rewind,
                                   .resume = window_resume,
                                   .reset = window_reset,
                                   .close = window_close};

/* ---- opening ---- */

/* SQLite computes each frame in a subquery around those before it: if one of them fails, nothing
   of what stands outside has been seen. */
static bool
may_fail(const PlanFrame *frame)
{
    for (u32 i = 0; i < frame->call_count; i++) {
        const FuncDef *def = frame->call[i].def;
        if ((def->flags & (FUNC_FALLIBLE | FUNC_VOLATILE)) != 0) return true;
        if (def->kind == FUNC_WINDOW &&
            (def->kernel == FUNC_WINDOW_NTILE || def->kernel == FUNC_WINDOW_NTH_VALUE))
            return true;
    }
    return frame->start_offset != NULL || frame->end_offset != NULL;
}

static Err
open_saved(Exec *exec, const WinFrame *frame, WinSaved *saved)
{
    size_t bytes = 1;
    for (u32 i = 0; i < frame->call_count; i++)
        bytes += frame->call[i].call.def->state_bytes;
    saved->call = ARENA_NEW_ARRAY(&exec->arena, WinCall, MAX_OF(frame->call_count, 1u));
    saved->states = arena_alloc(&exec->arena, bytes);
    bool good = saved->call != NULL && saved->states != NULL;
    return good ? OK : exec__fail(exec, ERR_NOMEM, NULL);
}

static Err
open_frame(Exec *exec, Win *win, WinFrame *frame)
{
    const PlanFrame *plan = frame->plan;
    frame->by_row = plan->exclude != EXCLUDE_NOTHING;
    WinCall *call = ARENA_NEW_ARRAY(&exec->arena, WinCall, MAX_OF(plan->call_count, 1u));
    if (call == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    frame->call = call;
    Err err = OK;
    for (u32 i = 0; err == OK && i < plan->call_count; i++) {
        call[i].plan = &plan->call[i];
        frame->call_count++;
        err = exec__win_call_open(exec, win, plan, &call[i]);
        bool ntile = call[i].kind == WIN_PURE && call[i].plan->def->kernel == FUNC_WINDOW_NTILE;
        /* What a state owns cannot be copied; between rows those of EXCLUDE own nothing. */
        win->careful |= call[i].kind == WIN_BEST ||
                        (call[i].moves && call[i].plan->def->state_free != NULL);
        frame->computes |= call[i].moves && (call[i].kind != WIN_PURE || ntile);
    }
    if (err == OK) err = open_saved(exec, frame, &win->saved[frame - win->frame]);
    if (err == OK && plan->start_offset != NULL)
        err = exec__compile(exec, plan->start_offset, &frame->offset[0]);
    if (err == OK && plan->end_offset != NULL)
        err = exec__compile(exec, plan->end_offset, &frame->offset[1]);
    return err;
}

static Err
open_keys(Exec *exec, Win *win)
{
    const PlanWindow *plan = win->plan;
    win->partition = ARENA_NEW_ARRAY(&exec->arena, u32, MAX_OF(plan->partition_count, 1u));
    win->order = ARENA_NEW_ARRAY(&exec->arena, u32, MAX_OF(plan->order_count, 1u));
    if (win->partition == NULL || win->order == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    Err err = OK;
    for (u32 i = 0; err == OK && i < plan->partition_count; i++)
        err = exec__win_source(exec, win, plan->partition[i], false, false, &win->partition[i]);
    for (u32 i = 0; err == OK && i < plan->order_count; i++)
        err = exec__win_source(exec, win, plan->order[i].expr, false, false, &win->order[i]);
    return err;
}

Err
exec__window_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &window_ops, sizeof(Win), node_out);
    if (err != OK) return err;
    Win *win = (Win *)*node_out;
    win->plan = plan->u.window;
    win->by_batch = true;
    arena_init(&win->results, exec->account);
    arena_init(&win->results_spare, exec->account);
    arena_init(&win->scratch, exec->account);
    win->row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->input->columns, 1u));
    win->frame = ARENA_NEW_ARRAY(&exec->arena, WinFrame, MAX_OF(win->plan->frame_count, 1u));
    win->saved = ARENA_NEW_ARRAY(&exec->arena, WinSaved, MAX_OF(win->plan->frame_count, 1u));
    if (win->row == NULL || win->frame == NULL || win->saved == NULL)
        return exec__fail(exec, ERR_NOMEM, NULL);
    exec__spill_enlist(exec);
    err = exec__win_sources_open(exec, win);
    if (err == OK) err = exec__node_open(exec, plan->input, &win->node.input);
    if (err == OK) err = open_keys(exec, win);
    for (u32 i = 0; err == OK && i < win->plan->frame_count; i++) {
        win->frame[i].plan = &win->plan->frame[i];
        win->frame[i].may_fail = may_fail(win->frame[i].plan);
        win->frame_count++;
        err = open_frame(exec, win, &win->frame[i]);
    }
    if (err != OK) return err;
    /* What a sort gives out lasts until it is rewound. */
    err = exec__win_rows_open(exec, &win->rows, plan->columns + win->source_count,
                              plan->input->kind != PLAN_SORT);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}
