/*
 * node.c -- life of operators, and what they share.
 */
#include "exec/node.h"

#include "exec/exec__write.h"
#include "exec/rowbuf.h"
#include "rt/task.h"
#include "rt/time.h"

/* Bytes of cells in one batch's own columns. */
#define OUT_BYTES_MAX ((size_t)4 << 20)
#define OUT_ROWS_MIN  16u
#define DEEP          12u /* Nodes further down look at the stack before they go on. */

Err
exec__node_new(Exec *exec, const PlanNode *plan, const NodeOps *ops, size_t bytes,
               ExecNode **node_out)
{
    *node_out = NULL;
    ExecNode *node = arena_alloc(&exec->arena, bytes);
    if (node == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    u32 columns = MAX_OF(plan->columns, 1u);
    node->plan = plan;
    node->ops = ops;
    node->out.columns = plan->columns;
    node->out.col = ARENA_NEW_ARRAY(&exec->arena, Vec, columns);
    node->buffer = ARENA_NEW_ARRAY(&exec->arena, Cell *, columns);
    if (node->out.col == NULL || node->buffer == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    size_t rows = OUT_BYTES_MAX / (sizeof(Cell) * columns);
    node->rows_max = (u32)MIN_OF(MAX_OF(rows, (size_t)OUT_ROWS_MIN), (size_t)BATCH_ROWS_MAX);
    arena_init(&node->bytes, exec->account);
    *node_out = node;
    return OK;
}

static Err
node_make(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    switch ((PlanKind)plan->kind) {
    case PLAN_ONE_ROW: return exec__one_row_new(exec, plan, node_out);
    case PLAN_VALUES: return exec__values_new(exec, plan, node_out);
    case PLAN_SCAN: return exec__scan_new(exec, plan, node_out);
    case PLAN_OR_SCAN: return exec__or_scan_new(exec, plan, node_out);
    case PLAN_FILTER: return exec__filter_new(exec, plan, node_out);
    case PLAN_PROJECT: return exec__project_new(exec, plan, node_out);
    case PLAN_LOOP_JOIN: return exec__loop_join_new(exec, plan, node_out);
    case PLAN_HASH_JOIN: return exec__hash_join_new(exec, plan, node_out);
    case PLAN_SORT: return exec__sort_new(exec, plan, node_out);
    case PLAN_LIMIT: return exec__limit_new(exec, plan, node_out);
    case PLAN_GROUP: return exec__group_new(exec, plan, node_out);
    case PLAN_DISTINCT: return exec__distinct_new(exec, plan, node_out);
    case PLAN_COMPOUND: return exec__compound_new(exec, plan, node_out);
    case PLAN_MATERIAL: return exec__material_new(exec, plan, node_out);
    case PLAN_CTE_SCAN: return exec__cte_scan_new(exec, plan, node_out);
    case PLAN_RECURSIVE: return exec__recursive_new(exec, plan, node_out);
    case PLAN_COUNT: return exec__count_new(exec, plan, node_out);
    case PLAN_WINDOW: return exec__window_new(exec, plan, node_out);
    case PLAN_TABLE_FUNC: return exec__table_func_new(exec, plan, node_out);
    case PLAN_HOST_SCAN: return exec__host_scan_new(exec, plan, node_out);
    default: return exec__fail(exec, ERR_INTERNAL, "unknown plan node %u", plan->kind);
    }
}

Err
exec__node_open(Exec *exec, const PlanNode *plan, ExecNode **node_out)
{
    *node_out = NULL;
    if (rt_stack_left() < RT_STACK_RESERVE) {
        return exec__fail(exec, ERR_LIMIT, "statement too deeply nested");
    }
    ExecNode *node = NULL;
    exec->open_depth++;
    Err err = node_make(exec, plan, &node);
    exec->open_depth--;
    /* Even a half-made node is in the table, so that exec_close() finds what it owns. */
    if (node != NULL) {
        node->deep = exec->open_depth >= DEEP;
        ASSERT(plan->number < exec->plan->node_count);
        exec->node[plan->number] = node;
        *node_out = node;
    }
    return err;
}

void
exec__node_close(Exec *exec, ExecNode *node)
{
    if (node == NULL) return;
    if (node->ops->close != NULL) node->ops->close(exec, node);
    arena_free(&node->bytes);
}

void
exec__node_reset(Exec *exec, ExecNode *node)
{
    node->used = false;
    if (node->ops->reset != NULL) node->ops->reset(exec, node);
    arena_reset(&node->bytes);
}

void
exec__rewind(Exec *exec, ExecNode *node)
{
    node->used = true;
    node->counters.rewinds++;
    node->ops->rewind(exec, node);
}

Err
exec__resume(Exec *exec, ExecNode *node, u32 used)
{
    ASSERT(used >= 1 && used <= node->out.count);
    if (node->ops->resume != NULL) return node->ops->resume(exec, node, used);
    ASSERT(used == node->out.count);
    return OK;
}

u32
exec__live_row(const Batch *batch, u32 at)
{
    if (batch->sel == NULL) return at;
    u32 low = 0, high = batch->count;
    while (high - low > 1) {
        u32 middle = low + (high - low) / 2;
        if (batch->sel[middle] <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    ASSERT(batch->sel[low] == at);
    return low;
}

/* Blocking operators hold what they have read, so nothing below them goes stale.  The rest marks
   its own inputs in its constructor's order: input, right, and what it lists itself. */
void
exec__mark_streaming(ExecNode *node)
{
    if (node == NULL) return;
    node->streaming = true;
    switch (node->plan->kind) {
    case PLAN_FILTER:
    case PLAN_PROJECT:
    case PLAN_LIMIT:
    case PLAN_WINDOW:
    case PLAN_DISTINCT:
    case PLAN_HASH_JOIN: exec__mark_streaming(node->input); break;
    case PLAN_LOOP_JOIN:
        exec__mark_streaming(node->input);
        exec__mark_streaming(node->right);
        break;
    case PLAN_GROUP:
        if (node->plan->u.group.ordered) exec__mark_streaming(node->input);
        break;
    case PLAN_OR_SCAN:
    case PLAN_COMPOUND:
        for (u32 i = 0; i < node->part_count; i++) {
            exec__mark_streaming(node->part[i]);
        }
        break;
    default: break;
    }
}

static u64
pages_touched(const Exec *exec)
{
    u64 pages = 0;
    for (u32 i = 0; i < exec->plan->table_count; i++) {
        Store *store = exec->plan->table[i].table->store;
        bool again = store == NULL;
        for (u32 k = 0; k < i; k++)
            again = again || exec->plan->table[k].table->store == store;
        if (again) continue;
        StoreStats stats;
        store_stats(store, &stats);
        pages += stats.page_hits + stats.page_reads;
    }
    return pages;
}

static void
next_watched(Exec *exec, ExecNode *node, u32 want)
{
    u64 pages = pages_touched(exec), spilled = exec->spill.written_bytes;
    u64 begin_ns = rt_now_ns();
    node->ops->next(exec, node, want);
    node->counters.time_ns += rt_now_ns() - begin_ns;
    node->counters.pages += pages_touched(exec) - pages;
    node->counters.spill_bytes += exec->spill.written_bytes - spilled;
}

const Batch *
exec__next(Exec *exec, ExecNode *node, u32 want)
{
    ASSERT(want > 0);
    node->used = true;
    if (node->bytes.chunk != NULL) arena_reset(&node->bytes);
    if (UNLIKELY(node->deep) && rt_stack_left() < RT_STACK_RESERVE) {
        exec__out_end(node, exec__fail(exec, ERR_LIMIT, "statement too deeply nested"));
        return &node->out;
    }
    want = MIN_OF(want, node->rows_max);
    if (UNLIKELY(exec->env->watch)) {
        next_watched(exec, node, want);
    } else {
        node->ops->next(exec, node, want);
    }
    node->counters.calls++;
    exec->operations += node->out.count + 1;
    node->counters.rows += node->out.count;
    DCHECK(node->out.count <= want);
    return &node->out;
}

Err
exec__out_reserve(Exec *exec, ExecNode *node, u32 rows)
{
    u32 columns = node->plan->columns;
    if (rows > node->capacity) {
        u32 capacity = rows == 1 ? 1 : MIN_OF(MAX_OF(rows, node->capacity * 8), BATCH_ROWS_MAX);
        for (u32 i = 0; i < columns; i++) {
            node->buffer[i] = EXEC_ROOM(exec, Cell, capacity);
            if (node->buffer[i] == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
        }
        node->capacity = capacity;
    }
    for (u32 i = 0; i < columns; i++) {
        node->out.col[i] = (Vec){.kind = VEC_CELL, .u.cell = node->buffer[i]};
    }
    return OK;
}

void
exec__out_end(ExecNode *node, Err err)
{
    node->out.rows = 0;
    node->out.count = 0;
    node->out.sel = NULL;
    node->out.err = err;
    node->out.last = true;
}

void
exec__out_rows(ExecNode *node, u32 count, Err err)
{
    node->out.rows = count;
    node->out.count = count;
    node->out.sel = NULL;
    node->out.err = err;
    node->out.last = false;
}

#define ROWS_AHEAD 16u

void
exec__out_from_rows(Exec *exec, ExecNode *node, const RowBuf *rows, const u32 *order, u32 first,
                    u32 count)
{
    Err err = exec__out_reserve(exec, node, MAX_OF(count, 1u));
    if (err != OK) {
        exec__out_end(node, err);
        return;
    }
    u32 columns = node->plan->columns;
    for (u32 i = 0; i < count; i++) {
        /* Rows in another order lie anywhere. */
        if (order != NULL && i + ROWS_AHEAD < count) {
            __builtin_prefetch(exec__rowbuf_row(rows, order[first + i + ROWS_AHEAD]));
        }
        const Cell *row = exec__rowbuf_row(rows, order != NULL ? order[first + i] : first + i);
        for (u32 column = 0; column < columns; column++) {
            node->buffer[column][i] = row[column];
        }
    }
    exec__out_rows(node, count, OK);
}

void
exec__load_row(const Batch *batch, u32 at, const ExecProgram *program, Cell *row)
{
    for (u32 i = 0; i < program->column_count; i++) {
        u32 column = program->column[i];
        DCHECK(column < batch->columns);
        row[column] = vec_cell(&batch->col[column], at);
    }
}

void
exec__load_all(const Batch *batch, u32 at, Cell *row)
{
    for (u32 i = 0; i < batch->columns; i++) {
        row[i] = vec_cell(&batch->col[i], at);
    }
}

Err
exec__eval_at(Exec *exec, const ExecProgram *program, const Batch *batch, u32 at, Cell *row,
              Arena *arena, Cell *out)
{
    exec__load_row(batch, at, program, row);
    return exec__eval_in(exec, program, row, arena, out);
}

Err
exec__select(Exec *exec, const ExecProgram *program, const Batch *batch, u32 want, Cell *row,
             Arena *arena, u16 *sel_out, u32 *count_out, u32 *taken_out)
{
    Err err = OK;
    u32 count = 0, taken = 0;
    while (taken < batch->count && count < want) {
        u32 at = batch_at(batch, taken);
        ExecTruth truth = EXEC_FALSE;
        exec__load_row(batch, at, program, row);
        err = exec__truth_in(exec, program, row, arena, &truth);
        if (err != OK) break;
        if (truth == EXEC_TRUE) sel_out[count++] = (u16)at;
        taken++;
    }
    *count_out = count;
    *taken_out = taken;
    return err;
}

/* A LIMIT or OFFSET value: what converts to an integer without loss. */
static Err
limit_number(Exec *exec, const ExecProgram *program, i64 *out)
{
    Cell value;
    if (program->ins_count == 0 && OPERAND_BASE(program->result) == AT_CONST) {
        value = program->constant[OPERAND_INDEX(program->result)];
        *out = value.u.i;
        if (LIKELY(value.type == CELL_INT)) return OK;
    }
    Err err = exec__eval_in(exec, program, NULL, &exec->row_arena, &value);
    if (err != OK) return err;
    err = cell_apply_affinity(&value, AFFINITY_NUMERIC, &exec->row_arena);
    if (err != OK) return exec__fail(exec, err, NULL);
    if (value.type == CELL_INT) {
        *out = value.u.i;
        return OK;
    }
    if (value.type == CELL_REAL && real_is_int(value.u.r, out)) return OK;
    return exec__fail(exec, ERR_MISMATCH, NULL);
}

Err
exec__eval_limit(Exec *exec, const ExecProgram *limit, const ExecProgram *offset, i64 *limit_out,
                 i64 *offset_out)
{
    *limit_out = -1;
    *offset_out = 0;
    Err err = OK;
    if (limit != NULL) err = limit_number(exec, limit, limit_out);
    if (err == OK && offset != NULL) err = limit_number(exec, offset, offset_out);
    if (*limit_out < 0) *limit_out = -1;
    if (*offset_out < 0) *offset_out = 0;
    return err;
}
