/*
 * node_loop_join.c -- PLAN_LOOP_JOIN: for each outer row the inner side runs again.
 *
 * Output rows show outer cells through the outer batch, so one output batch never spans two outer
 * batches; inner cells are copied, because the inner batch is gone with the next inner call.
 *
 * After a trip the join goes on behind the inner row that made the last row shown.  Therefore a
 * streaming join ends its batch with each inner batch, unless the inner side has one row at most.
 */
#include "exec/exec__write.h"
#include "exec/scan.h"

typedef struct LoopJoin {
    ExecNode node;
    ExecProgram *condition; /* NULL: always true. */
    u32 outer_columns;
    const Batch *outer; /* NULL: none yet. */
    u32 outer_next;     /* Live row that comes next. */
    bool inner_open;    /* The inner side runs for live row outer_next - 1. */
    bool matched;
    size_t copied_bytes; /* Of inner cells in the batch being made. */
    /* Streaming: where each output row came from. */
    u16 *outer_of; /* Live row of the outer batch. */
    u16 *inner_of; /* Live row of the inner batch, or INNER_DONE. */
    bool single;   /* The inner side has one row at most. */
    Arena kept;    /* Bytes of the outer row at hand after a trip. */
    Cell *row;     /* Scratch: outer cells ++ inner cells. */
} LoopJoin;

static void
loop_rewind(Exec *exec, ExecNode *node)
{
    LoopJoin *join = (LoopJoin *)node;
    join->outer = NULL;
    join->outer_next = 0;
    join->inner_open = false;
    exec__rewind(exec, node->input);
}

static bool
yields_inner(const LoopJoin *join)
{
    u8 kind = join->node.plan->u.loop.join;
    return kind == JOIN_INNER || kind == JOIN_LEFT;
}

#define OUTER_KEPT ((u16)0xFFFF) /* The outer row kept over a trip. */
#define INNER_DONE ((u16)0xFFFF) /* The outer row needs no further inner rows. */

/* One output row from the scratch row; NULLs on the inner side unless `with_inner`. */
static Err
emit(Exec *exec, LoopJoin *join, u32 at, bool with_inner, u32 inner)
{
    ExecNode *node = &join->node;
    if (join->outer_of != NULL) {
        join->outer_of[at] = join->outer == NULL ? OUTER_KEPT : (u16)(join->outer_next - 1);
        join->inner_of[at] = (u16)inner;
    }
    for (u32 i = 0; i < join->outer_columns; i++) {
        node->buffer[i][at] = join->row[i];
    }
    for (u32 i = join->outer_columns; i < node->plan->columns; i++) {
        Cell *out = &node->buffer[i][at];
        *out = with_inner ? join->row[i] : cell_null();
        if (out->type < CELL_TEXT) continue;
        Err err = cell_copy(out, &node->bytes, out);
        if (err != OK) return exec__fail(exec, err, NULL);
        join->copied_bytes += out->bytes;
    }
    return OK;
}

/* Make the next outer row current and start the inner side for it. */
static void
inner_start(Exec *exec, LoopJoin *join)
{
    const PlanNode *plan = join->node.plan;
    u32 at = batch_at(join->outer, join->outer_next++);
    exec__load_all(join->outer, at, join->row);
    for (u32 i = 0; i < plan->u.loop.bind_count; i++) {
        exec->reg[plan->u.loop.bind_reg[i]] = join->row[plan->u.loop.bind_column[i]];
    }
    exec__rewind(exec, join->node.right);
    join->inner_open = true;
    join->matched = false;
}

/* The inner side is at its end for this outer row. */
static Err
inner_finish(Exec *exec, LoopJoin *join, u32 *count)
{
    u8 kind = join->node.plan->u.loop.join;
    join->inner_open = false;
    if (join->matched || (kind != JOIN_LEFT && kind != JOIN_ANTI)) return OK;
    Err err = emit(exec, join, *count, false, INNER_DONE);
    if (err == OK) (*count)++;
    return err;
}

/* One batch of the inner side. */
static Err
inner_step(Exec *exec, LoopJoin *join, u32 want, u32 *count)
{
    bool first_only = !yields_inner(join);
    u32 ask = first_only && join->condition == NULL ? 1 : want - *count;
    const Batch *in = exec__next(exec, join->node.right, exec__demand(exec, ask));
    Err err = OK;
    for (u32 i = 0; i < in->count; i++) {
        exec__load_all(in, batch_at(in, i), join->row + join->outer_columns);
        if (join->condition != NULL) {
            ExecTruth truth = EXEC_FALSE;
            err = exec__truth_in(exec, join->condition, join->row, &join->node.bytes, &truth);
            if (err != OK) return err;
            if (truth != EXEC_TRUE) continue;
        }
        join->matched = true;
        if (first_only) {
            join->inner_open = false;
            if (join->node.plan->u.loop.join == JOIN_ANTI) return OK;
            err = emit(exec, join, *count, false, INNER_DONE);
            if (err == OK) (*count)++;
            return err;
        }
        err = emit(exec, join, *count, true, join->single ? INNER_DONE : i);
        if (err != OK) return err;
        (*count)++;
    }
    if (in->err != OK) return in->err;
    return in->count == 0 || in->last ? inner_finish(exec, join, count) : OK;
}

/* More outer rows; *end_out: there are none, or output must be shown first. */
static Err
outer_more(Exec *exec, LoopJoin *join, u32 want, u32 count, bool *end_out)
{
    *end_out = false;
    if (join->outer != NULL) {
        if (join->outer_next < join->outer->count) return OK;
        *end_out = true;
        if (join->outer->err != OK) return join->outer->err;
        if (count > 0) return OK;
        *end_out = false;
    }
    if (count > 0) {
        /* They belong to a row kept over a trip; resuming must not find a newer outer batch. */
        *end_out = true;
        return OK;
    }
    join->outer = exec__next(exec, join->node.input, want);
    join->outer_next = 0;
    if (join->outer->count == 0) {
        *end_out = true;
        return join->outer->err;
    }
    return exec__check(exec);
}

static Err
streaming_start(Exec *exec, LoopJoin *join)
{
    join->outer_of = EXEC_ROOM(exec, u16, BATCH_ROWS_MAX);
    join->inner_of = EXEC_ROOM(exec, u16, BATCH_ROWS_MAX);
    bool whole = join->outer_of != NULL && join->inner_of != NULL;
    return whole ? OK : exec__fail(exec, ERR_NOMEM, NULL);
}

static Err
loop_resume(Exec *exec, ExecNode *node, u32 used)
{
    LoopJoin *join = (LoopJoin *)node;
    const PlanNode *plan = node->plan;
    u32 outer = join->outer_of[used - 1], inner = join->inner_of[used - 1];
    join->inner_open = inner != INNER_DONE;
    join->matched = true;
    if (join->inner_open) {
        /* Rows from inner batches but the last one are followed by INNER_DONE ones only. */
        if (outer != OUTER_KEPT) {
            exec__load_all(join->outer, batch_at(join->outer, outer), join->row);
            arena_reset(&join->kept);
        }
        for (u32 i = 0; outer != OUTER_KEPT && i < join->outer_columns; i++) {
            Err err = cell_copy(&join->row[i], &join->kept, &join->row[i]);
            if (err != OK) return exec__fail(exec, err, NULL);
        }
        for (u32 i = 0; i < plan->u.loop.bind_count; i++) {
            exec->reg[plan->u.loop.bind_reg[i]] = join->row[plan->u.loop.bind_column[i]];
        }
        Err err = exec__resume(exec, node->right, inner + 1);
        if (err != OK) return err;
    }
    if (outer == OUTER_KEPT) return OK;
    Err err = exec__resume(exec, node->input, outer + 1);
    join->outer = NULL;
    join->outer_next = 0;
    return err;
}

static void
loop_close(Exec *exec, ExecNode *node)
{
    (void)exec;
    arena_free(&((LoopJoin *)node)->kept);
}

static void
loop_next(Exec *exec, ExecNode *node, u32 want)
{
    LoopJoin *join = (LoopJoin *)node;
    u32 count = 0;
    join->copied_bytes = 0;
    Err err = exec__out_reserve(exec, node, want);
    if (err == OK && node->streaming && join->outer_of == NULL) err = streaming_start(exec, join);
    while (err == OK && count < want) {
        if (!join->inner_open) {
            bool end = false;
            err = outer_more(exec, join, want, count, &end);
            if (err != OK || end) break;
            inner_start(exec, join);
        }
        err = inner_step(exec, join, want, &count);
        /* Keep the batch within bounds when inner rows are wide. */
        if (join->copied_bytes > BATCH_BYTES_MAX) break;
        if (node->streaming && count > 0 && join->inner_of[count - 1] != INNER_DONE) break;
    }
    exec__out_rows(node, count, err);
}

static const NodeOps loop_ops = {
    .next = loop_next, .rewind = loop_rewind, .resume = loop_resume, .close = loop_close};

/* Can the plan node give more than one row? */
static bool
is_single(const PlanNode *plan)
{
    while (plan->kind == PLAN_FILTER || plan->kind == PLAN_PROJECT) {
        plan = plan->input;
    }
    if (plan->kind == PLAN_ONE_ROW) return true;
    return plan->kind == PLAN_SCAN && exec__scan_is_single(&plan->u.scan);
}

Err
exec__loop_join_new(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    Err err = exec__node_new(exec, plan, &loop_ops, sizeof(LoopJoin), node_out);
    if (err != OK) return err;
    LoopJoin *join = (LoopJoin *)*node_out;
    if (plan->u.loop.join > JOIN_ANTI) {
        return exec__fail(exec, ERR_INTERNAL, "a loop join cannot be RIGHT or FULL");
    }
    join->outer_columns = plan->input->columns;
    join->single = is_single(plan->right);
    arena_init(&join->kept, exec->account);
    join->row = ARENA_NEW_ARRAY(&exec->arena, Cell,
                                MAX_OF(plan->input->columns + plan->right->columns, 1u));
    if (join->row == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    err = exec__node_open(exec, plan->input, &join->node.input);
    if (err == OK) err = exec__node_open(exec, plan->right, &join->node.right);
    if (err == OK && plan->u.loop.condition != NULL) {
        err = exec__compile_condition(exec, plan->u.loop.condition, &join->condition);
    }
    return err;
}

ExecProgram *
exec__loop_condition(const ExecNode *join)
{
    return ((const LoopJoin *)join)->condition;
}
