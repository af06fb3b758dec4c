/*
 * exec.c -- the life of a statement run: open, start, step, reset, close.
 *
 * Invariant: between exec_reset() and exec_start() no cursor is bound to a transaction and no
 * register, parameter or kept result of the last run can be seen.
 */
#include "exec/exec.h"

#include <stdarg.h>
#include <stdio.h>

#include "exec/exec__write.h"
#include "exec/node.h"
#include "exec/scan.h"
#include "exec/short.h"
#include "exec/spool.h"
#include "rt/process.h"
#include "rt/task.h"

/* ---- errors and interruption ---- */

Err
exec__fail(Exec *exec, Err err, const char *format, ...)
{
    if (format == NULL) {
        const ErrMsg *why = &exec->spill.why;
        return err_set(&exec->msg, err, "%s", why->err == err ? err_message(why) : err_text(err));
    }
    va_list args;
    va_start(args, format);
    err_vset_at(&exec->msg, err, -1, format, args);
    va_end(args);
    return err;
}

Err
exec__fail_store(Exec *exec, Err err, const StoreTxn *txn)
{
    const ErrMsg *why = txn != NULL ? store_txn_error(txn) : NULL;
    if (why == NULL || why->err != err) return exec__fail(exec, err, NULL);
    return err_set(&exec->msg, err, "%s", err_message(why));
}

Err
exec__check(Exec *exec)
{
    const ExecHooks *hooks = exec->env->hooks;
    Err err = rt_check();
    if (UNLIKELY(err != OK)) return exec__fail(exec, err, NULL);
    exec->operations++;
    if (hooks == NULL || hooks->progress == NULL || hooks->progress_every == 0) return OK;
    while (exec->operations >= hooks->progress_every) {
        exec->operations -= hooks->progress_every;
        exec->operations_before += hooks->progress_every;
        if (hooks->progress(hooks->arg)) return exec__fail(exec, ERR_INTERRUPT, NULL);
    }
    return OK;
}

void
exec_status(const Exec *exec, ExecStatus *status_out)
{
    *status_out = *exec->status;
    status_out->steps = exec->operations + exec->operations_before;
}

void
exec_status_clear(Exec *exec)
{
    *exec->status = (ExecStatus){0};
    /* The handler's turn stays where it is. */
    exec->operations_before = 0 - exec->operations;
}

u64
exec_memory_bytes(const Exec *exec)
{
    return exec->account->used_bytes;
}

/* ---- open and close ---- */

static Err
tables_make(Exec *exec)
{
    const Plan *plan = exec->plan;
    exec->reg = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->reg_count, 1u));
    exec->param_own = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->param_count, 1u));
    exec->node = ARENA_NEW_ARRAY(&exec->arena, ExecNode *, MAX_OF(plan->node_count, 1u));
    exec->sub = ARENA_NEW_ARRAY(&exec->arena, ExecSub *, MAX_OF(plan->sub_count, 1u));
    exec->shared = ARENA_NEW_ARRAY(&exec->arena, ExecShared, MAX_OF(plan->material_count, 1u));
    exec->row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(plan->column_count, 1u));
    bool whole = exec->reg != NULL && exec->param_own != NULL && exec->node != NULL &&
                 exec->sub != NULL && exec->shared != NULL && exec->row != NULL;
    return whole ? OK : exec__fail(exec, ERR_NOMEM, NULL);
}

static Err
open_parts(Exec *exec)
{
    const Plan *plan = exec->plan;
    Err err = tables_make(exec);
    for (u32 i = 0; err == OK && plan->material != NULL && i < plan->material_count; i++) {
        if (plan->material[i] == NULL) continue;
        err = exec__node_open(exec, plan->material[i], &exec->shared[i].producer);
    }
    if (err == OK && plan->root != NULL && plan->write == NULL) {
        err = exec__node_open(exec, plan->root, &exec->root);
        if (err == OK) exec__mark_streaming(exec->root);
        if (err == OK && !exec->env->watch)
            err = exec__short_open(exec, plan->root, false, exec->row, &exec->chain);
    }
    if (err == OK && plan->write != NULL && plan->write->source != NULL) {
        ExecNode *source;
        err = exec__node_open(exec, plan->write->source, &source);
    }
    if (err == OK && plan->write != NULL) {
        exec->returning = ARENA_NEW(&exec->arena, RowSpool);
        exec->returning_reader = ARENA_NEW(&exec->arena, SpoolReader);
        if (exec->returning_reader == NULL) exec->returning = NULL;
        if (exec->returning == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
        exec__spool_init(exec, exec->returning, plan->column_count);
        err = exec__write_open(exec);
    }
    return err;
}

static Err
exec_new(const Plan *plan, const ExecEnv *env, Exec *parent, Exec **exec_out, ErrMsg *msg)
{
    *exec_out = NULL;
    Exec *exec = MEM_NEW(Exec);
    if (exec == NULL) return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    exec->plan = plan;
    exec->env = env;
    exec->want_max = plan->klass == PLAN_VOLATILE ? 1 : BATCH_ROWS_MAX;
    exec->hash_seed = rt_process_hash_seed(rt_process());
    exec->parent = parent;
    exec->depth = parent == NULL ? 0 : parent->depth + 1;
    exec->account = parent == NULL ? &exec->own_account : parent->account;
    exec->status = parent == NULL ? &exec->own_status : parent->status;
    exec->own_account = (MemAccount){
        .parent = env->account, .name = "statement", .cap_bytes = env->statement_bytes_max};
    arena_init_pooled(&exec->arena, exec->account, env->pool);
    arena_init_pooled(&exec->run_arena, exec->account, env->pool);
    arena_init_pooled(&exec->row_arena, exec->account, env->pool);
    *exec_out = exec;
    return OK;
}

static Err
open_with(const Plan *plan, const ExecEnv *env, Exec *parent, Exec **exec_out, ErrMsg *msg)
{
    ASSERT(env->func != NULL);
    Err err = exec_new(plan, env, parent, exec_out, msg);
    if (err != OK) return err;
    err = open_parts(*exec_out);
    if (err == OK) return OK;
    if (msg != NULL) err_move(msg, &(*exec_out)->msg);
    exec_close(*exec_out);
    *exec_out = NULL;
    return err;
}

Err
exec_open(const Plan *plan, const ExecEnv *env, Exec **exec_out, ErrMsg *msg)
{
    return open_with(plan, env, NULL, exec_out, msg);
}

void
exec_close(Exec *exec)
{
    if (exec == NULL) return;
    if (exec->running) exec_reset(exec);
    exec__sites_forget(exec);
    exec__write_close(exec);
    for (u32 i = 0; exec->node != NULL && i < exec->plan->node_count; i++) {
        exec__node_close(exec, exec->node[i]);
    }
    for (u32 i = 0; exec->sub != NULL && i < exec->plan->sub_count; i++) {
        exec__sub_close(exec, exec->sub[i]);
    }
    exec__in_set_free(exec->sets);
    exec__short_close(exec->chain);
    if (exec->returning != NULL) {
        exec__spool_close(exec, exec->returning_reader);
        exec__spool_free(exec, exec->returning);
    }
    exec__spill_close(exec);
    arena_free(&exec->pinned);
    arena_free(&exec->row_arena);
    arena_free(&exec->run_arena);
    arena_free(&exec->arena);
    err_clear(&exec->msg);
    mem_free(exec);
}

bool
exec_plan_reads_nothing(const Plan *plan)
{
    if (plan->sub_count > 0 || plan->table_count > 0 || plan->write != NULL) return false;
    const PlanNode *node = plan->root;
    return node->kind == PLAN_PROJECT && node->input->kind == PLAN_ONE_ROW;
}

Err
exec__open_child(Exec *parent, const Plan *body, Exec **child_out)
{
    return open_with(body, parent->env, parent, child_out, &parent->msg);
}

Err
exec__adopt_error(Exec *parent, Exec *child, Err err)
{
    err_move(&parent->msg, &child->msg);
    parent->raise = child->raise;
    return err;
}

/* ---- running ---- */

Err
exec_start(Exec *exec, StoreTxn *const *txn_by_database, const Cell *params, u32 param_count)
{
    ASSERT(!exec->running);
    err_clear(&exec->msg);
    if (UNLIKELY(exec->spill.budget_set != exec->env->memory_budget_bytes + 1)) {
        exec__spill_start(exec);
    }
    exec->txn = txn_by_database;
    exec->param = params;
    if (param_count < exec->plan->param_count) {
        for (u32 i = 0; i < exec->plan->param_count; i++) {
            exec->param_own[i] = i < param_count ? params[i] : cell_null();
        }
        exec->param = exec->param_own;
    }
    mem_account_cap(&exec->own_account, exec->env->statement_bytes_max);
    for (u32 i = 0; UNLIKELY(exec->env->watch) && i < exec->plan->node_count; i++) {
        if (exec->node[i] != NULL) exec->node[i]->counters = (ExecNodeCounters){0};
    }
    exec->run_no++;
    exec->bind_no++;
    exec->running = true;
    exec->ended = false;
    exec->tripped = false;
    exec->raise = 0;
    exec->rows_changed = 0;
    exec->rows_changed_total = 0;
    exec->has_last_rowid = false;
    exec->deferred_violations = 0;
    exec->undo = EXEC_UNDO_STATEMENT;
    exec->batch = NULL;
    exec->batch_next = 0;
    exec->want = exec->env->batch_rows != 0 ? exec->env->batch_rows : 1;
    exec->written = false;
    if (exec->returning != NULL) exec__spool_rewind(exec->returning_reader);
    if (exec->chain != NULL) {
        exec__short_start(exec->chain); /* The operators are not touched unless it declines. */
    } else if (exec->root != NULL) {
        exec__rewind(exec, exec->root);
    }
    return OK;
}

static Err
run_fail(Exec *exec, Err err)
{
    exec->ended = true;
    return err;
}

/* A trip: what was read ahead is stale.  Go on behind the last row shown. */
static Err
trip_resume(Exec *exec)
{
    exec->bind_no++;
    if (exec->chain != NULL && exec->chain->state != SHORT_DECLINED) {
        return exec__short_resume(exec, exec->chain);
    }
    if (exec->batch == NULL || exec->batch_next == 0) return OK;
    REACHED("exec: a trip dropped rows read ahead");
    Err err = exec__resume(exec, exec->root, exec->batch_next);
    exec->batch = NULL;
    exec->batch_next = 0;
    return err;
}

static Err
trip_take(Exec *exec)
{
    exec->tripped = false;
    return exec->trip_err;
}

/* The row shown stays readable until the next step, whatever the store does meanwhile. */
static Err
pin_row(Exec *exec)
{
    if (exec->batch == NULL) return OK; /* Pinned by an earlier trip, or nothing shown. */
    arena_reset(&exec->pinned);
    for (u32 i = 0; i < exec->plan->column_count; i++) {
        Err err = cell_copy(&exec->row[i], &exec->pinned, &exec->row[i]);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    return OK;
}

static ALWAYS_INLINE void
row_load(Exec *exec)
{
    const Batch *batch = exec->batch;
    u32 at = batch_at(batch, exec->batch_next++);
    Cell *row = exec->row;
    for (u32 i = 0; i < batch->columns; i++) {
        row[i] = vec_cell(&batch->col[i], at);
    }
}

bool
exec_next_at_hand(Exec *exec)
{
    const Batch *batch = exec->batch;
    if (exec->tripped || exec->plan->write != NULL || exec->env->trip_every != 0) return false;
    if (batch != NULL && exec->batch_next < batch->count) {
        row_load(exec);
        return true;
    }
    return exec->chain != NULL && exec__short_at_hand(exec, exec->chain);
}

bool
exec_ends_at_hand(const Exec *exec)
{
    if (exec->chain == NULL || exec->msg.err != OK) return false;
    return exec->chain->state == SHORT_DONE || (!exec->tripped && exec__short_ends(exec->chain));
}

bool
exec_ends_for_good(const Exec *exec)
{
    return exec->chain != NULL && exec->chain->state == SHORT_DONE && exec->msg.err == OK;
}

/* The operators take the run over, with what the short path has fetched. */
static void
chain_hand_over(Exec *exec)
{
    exec__rewind(exec, exec->root);
    exec__short_hand_over(exec->chain);
}

/* A row was shown; tests trip after so many. */
static ALWAYS_INLINE void
shown_count(Exec *exec)
{
    if (UNLIKELY(exec->env->trip_every != 0) && ++exec->shown % exec->env->trip_every == 0) {
        exec_trip(exec);
    }
}

/* The short path; afterwards the chain's state says whether the operators must do it. */
static Err
chain_step(Exec *exec, bool *row_out)
{
    ExecShort *chain = exec->chain;
    if (UNLIKELY(exec->tripped)) {
        Err taken = trip_take(exec);
        if (taken != OK) return run_fail(exec, taken);
    }
    if (chain->state == SHORT_DONE) {
        exec->ended = true;
        return OK;
    }
    Err err = exec__check(exec);
    if (err == OK) err = exec__short_next(exec, chain, row_out);
    if (err != OK) return run_fail(exec, err);
    if (UNLIKELY(chain->state == SHORT_DECLINED)) {
        chain_hand_over(exec);
        return OK;
    }
    exec->ended = !*row_out;
    if (*row_out) shown_count(exec);
    return OK;
}

/* The next row of a SELECT. */
static Err
select_step(Exec *exec, bool *row_out)
{
    if (exec->chain != NULL && exec->chain->state != SHORT_DECLINED) {
        Err err = chain_step(exec, row_out);
        if (err != OK || exec->chain->state != SHORT_DECLINED) return err;
    }
    if (UNLIKELY(exec->tripped)) {
        Err err = trip_take(exec);
        if (err != OK) return run_fail(exec, err);
    }
    while (exec->batch == NULL || exec->batch_next == exec->batch->count) {
        if (exec->batch != NULL && exec->batch->err != OK) return run_fail(exec, exec->batch->err);
        Err err = exec__check(exec);
        if (err != OK) return run_fail(exec, err);
        exec->batch = exec__next(exec, exec->root, exec__demand(exec, exec->want));
        exec->batch_next = 0;
        if (exec->env->batch_rows == 0) exec->want = MIN_OF(exec->want * 2, BATCH_ROWS_MAX);
        if (exec->batch->count > 0) break;
        if (exec->batch->err != OK) return run_fail(exec, exec->batch->err);
        exec->ended = true;
        return OK;
    }
    row_load(exec);
    shown_count(exec);
    *row_out = true;
    return OK;
}

static Err
write_step(Exec *exec, bool *row_out)
{
    if (!exec->written) {
        Err err = exec__check(exec);
        if (err == OK) err = exec__write_run(exec);
        if (err != OK) return run_fail(exec, err);
        exec->written = true;
    }
    const Cell *row;
    Err err = exec__spool_row(exec, exec->returning, exec->returning_reader, &row);
    if (err != OK) return run_fail(exec, exec__fail(exec, err, NULL));
    if (row == NULL) {
        exec->ended = true;
        return OK;
    }
    memcpy(exec->row, row, exec->plan->column_count * sizeof(Cell));
    *row_out = true;
    return OK;
}

Err
exec_step(Exec *exec, bool *row_out)
{
    ASSERT(exec->running);
    *row_out = false;
    if (exec->ended) return exec->msg.err;
    return exec->plan->write != NULL ? write_step(exec, row_out) : select_step(exec, row_out);
}

const Cell *
exec_row(const Exec *exec)
{
    return exec->row;
}

Err
exec_next_batch(Exec *exec, u32 want, const Batch **batch_out)
{
    ASSERT(exec->running && exec->root != NULL && want > 0);
    if (exec->chain != NULL && exec->chain->state == SHORT_NEW) {
        exec->chain->state = SHORT_DECLINED;
        chain_hand_over(exec);
    }
    if (UNLIKELY(exec->tripped)) {
        Err err = trip_take(exec);
        if (err != OK) return run_fail(exec, err);
    }
    if (exec->batch != NULL && exec->batch->err != OK) return run_fail(exec, exec->batch->err);
    Err err = exec__check(exec);
    if (err != OK) return run_fail(exec, err);
    exec->batch = exec__next(exec, exec->root, exec__demand(exec, want));
    exec->batch_next = exec->batch->count;
    if (exec->batch->count == 0 && exec->batch->err != OK) return run_fail(exec, exec->batch->err);
    if (exec->batch->count == 0) exec->ended = true;
    *batch_out = exec->batch;
    return OK;
}

void
exec_reset(Exec *exec)
{
    if (!exec->running) return;
    exec->running = false;
    exec->batch = NULL;
    exec->txn = NULL;
    exec->param = NULL;
    arena_reset(&exec->run_arena);
    arena_reset(&exec->row_arena);
    if (exec->sites != NULL) exec__sites_forget(exec);
    if (exec->chain != NULL && exec->chain->state != SHORT_DECLINED) {
        exec__short_reset(exec, exec->chain);
        if (exec->plan->sub_count == 0) return; /* No operator has run. */
    }
    if (exec->plan->write != NULL) {
        exec__write_reset(exec);
        if (exec__spool_count(exec->returning) > 0) {
            exec__spool_close(exec, exec->returning_reader);
            exec__spool_clear(exec, exec->returning);
        }
    }
    for (u32 i = 0; i < exec->plan->node_count; i++) {
        if (exec->node[i] != NULL && exec->node[i]->used) exec__node_reset(exec, exec->node[i]);
    }
    for (u32 i = 0; i < exec->plan->sub_count; i++) {
        if (exec->sub[i] != NULL) exec__sub_reset(exec, exec->sub[i]);
    }
    exec__spill_end(exec);
}

/* ---- for the row program ---- */

Err
exec__node_rewind(Exec *exec, const PlanNode *node)
{
    ExecNode *run = exec->node[node->number];
    exec__rewind(exec, run);
    run->pulled = NULL;
    return OK;
}

Err
exec__node_next(Exec *exec, const PlanNode *node, const Cell **row_out)
{
    ExecNode *run = exec->node[node->number];
    *row_out = NULL;
    if (run->pulled_row == NULL) {
        run->pulled_row = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(node->columns, 1u));
        if (run->pulled_row == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    }
    if (run->pulled == NULL || run->pulled_next == run->pulled->count) {
        if (run->pulled != NULL && run->pulled->err != OK) return run->pulled->err;
        u32 want = run->pulled == NULL ? 1 : MIN_OF(run->pulled_want * 2, BATCH_ROWS_MAX);
        run->pulled_want = exec->env->batch_rows != 0 ? exec->env->batch_rows : want;
        run->pulled = exec__next(exec, run, exec__demand(exec, run->pulled_want));
        run->pulled_next = 0;
        if (run->pulled->count == 0) return run->pulled->err;
    }
    exec__load_all(run->pulled, batch_at(run->pulled, run->pulled_next++), run->pulled_row);
    *row_out = run->pulled_row;
    return OK;
}

void
exec__subs_forget(Exec *exec)
{
    exec->data_no++;
}

Err
exec__returning_push(Exec *exec, const Cell *row)
{
    Err err = exec__spool_add(exec, exec->returning, row);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* ---- questions ---- */

const ErrMsg *
exec_error(const Exec *exec)
{
    return &exec->msg;
}

ExecUndo
exec_error_undo(const Exec *exec)
{
    return exec->undo;
}

i64
exec_rows_changed(const Exec *exec)
{
    return exec->rows_changed;
}

i64
exec_rows_changed_total(const Exec *exec)
{
    return exec->rows_changed_total;
}

bool
exec_last_rowid(const Exec *exec, i64 *rowid_out)
{
    *rowid_out = exec->last_rowid;
    return exec->has_last_rowid;
}

i64
exec_deferred_violations(const Exec *exec)
{
    return exec->deferred_violations;
}

bool
exec_reads_tree(const Exec *exec, const Store *store, TreeId tree)
{
    if (!exec->running || exec->ended) return false;
    for (u32 i = 0; i < exec->plan->node_count; i++) {
        const ExecNode *node = exec->node[i];
        if (node == NULL || node->plan->kind != PLAN_SCAN) continue;
        const PlanScan *scan = &node->plan->u.scan;
        if (scan->table->store != store) continue;
        if (scan->table->tree == tree) return true;
        if (scan->index != NULL && scan->index->tree == tree) return true;
    }
    return false;
}

void
exec_trip(Exec *exec)
{
    if (!exec->running || exec->ended) return;
    /* Now, not at the next step: keys and bytes read ahead may lie in versions that go with the
       transaction. */
    Err err = exec->tripped ? exec->trip_err : OK;
    if (err == OK && exec->root != NULL && exec->row != NULL) err = pin_row(exec);
    if (err == OK) err = trip_resume(exec);
    exec->tripped = true;
    exec->trip_err = err;
}

bool
exec_is_running(const Exec *exec)
{
    return exec->running && !exec->ended;
}

const PlanNode *
exec_node_plan(const Exec *exec, u32 number)
{
    ASSERT(number < exec->plan->node_count);
    return exec->node[number] == NULL ? NULL : exec->node[number]->plan;
}

void
exec_node_counters(const Exec *exec, u32 number, ExecNodeCounters *counters_out)
{
    ASSERT(number < exec->plan->node_count);
    *counters_out = (ExecNodeCounters){0};
    if (exec->node[number] != NULL) *counters_out = exec->node[number]->counters;
}
