/*
 * write_host.c -- INSERT, UPDATE and DELETE of virtual tables: a row is one call of the table's
 * update function.
 *
 * The arguments of all rows are computed before the first call, unless an INSERT reads nothing of
 * the table: a table need not stand being changed under a scan.  There are no triggers, indexes or
 * constraints here; what a row may be is the table's business.
 */
#include "exec/program.h"
#include "exec/write__run.h"
#include "value/host_table.h"

Err
write__host_open(ExecWrite *w)
{
    const PlanWrite *plan = w->plan;
    Arena *arena = &w->exec->arena;
    u32 argc = plan->host_arg_count;
    w->host_value = ARENA_NEW_ARRAY(arena, Cell, argc + 1u);
    w->fresh.cell = ARENA_NEW_ARRAY(arena, Cell, w->table->column_count + 1u);
    w->result = ARENA_NEW_ARRAY(arena, Cell, plan->returning_count + 1u);
    if (w->host_value == NULL || w->fresh.cell == NULL || w->result == NULL)
        return exec__fail(w->exec, ERR_NOMEM, NULL);
    exec__spool_init(w->exec, &w->collected, argc);
    w->collected_ready = true;
    Err err = exec__compile_list(w->exec, plan->host_arg, argc, &w->host_arg);
    if (err != OK || plan->returning_count == 0) return err;
    return exec__compile_list(w->exec, plan->returning, plan->returning_count, &w->returning);
}

/* The arguments for one row of the source. */
static Err
make_values(ExecWrite *w, const Cell *source)
{
    for (u32 i = 0; i < w->plan->host_arg_count; i++) {
        u32 column;
        w->host_value[i] = cell_null();
        if (w->host_arg[i] == NULL) continue;
        /* As it is: an evaluation would lose the mark of what stays unchanged. */
        if (exec__program_is_column(w->host_arg[i], &column)) {
            w->host_value[i] = source[column];
            continue;
        }
        Err err = exec__eval(w->exec, w->host_arg[i], source, &w->host_value[i]);
        if (err != OK) return err;
    }
    return OK;
}

static Err
collect(ExecWrite *w)
{
    exec__spool_clear(w->exec, &w->collected);
    w->use_collected = true;
    for (;;) {
        const Cell *row;
        Err err = exec__node_next(w->exec, w->plan->source, &row);
        if (err != OK || row == NULL) return err;
        arena_reset(&w->exec->row_arena);
        err = make_values(w, row);
        if (err != OK) return err;
        err = exec__spool_add(w->exec, &w->collected, w->host_value);
        if (err != OK) return exec__fail(w->exec, err, NULL);
        err = exec__check(w->exec);
        if (err != OK) return err;
    }
}

Err
write__host_begin(ExecWrite *w)
{
    const ExecHooks *hooks = w->exec->env->hooks;
    w->running = true;
    w->use_collected = false;
    exec__spool_rewind(&w->collected_reader);
    w->rows = 0;
    w->fire.active = false;
    w->foreign_open = 0;
    w->op = w->plan->kind;
    w->state = WRITE_NEXT;
    Err err = OK;
    if (hooks != NULL && hooks->begin_host != NULL)
        err = hooks->begin_host(hooks->arg, w->table->host, &w->exec->msg);
    if (err != OK) return w->exec->msg.err == OK ? exec__fail(w->exec, err, NULL) : err;
    err = exec__node_rewind(w->exec, w->plan->source);
    return err == OK && w->plan->collect ? collect(w) : err;
}

static Err
next_values(ExecWrite *w, const Cell **values_out)
{
    *values_out = NULL;
    if (w->use_collected) {
        Err err = exec__spool_row(w->exec, &w->collected, &w->collected_reader, values_out);
        return err == OK ? OK : exec__fail(w->exec, err, NULL);
    }
    const Cell *row;
    Err err = exec__node_next(w->exec, w->plan->source, &row);
    if (err != OK || row == NULL) return err;
    err = make_values(w, row);
    *values_out = w->host_value;
    return err;
}

static bool
is_constraint(const ExecWrite *w, Err err)
{
    if (err == ERR_HOST) return (w->exec->msg.host_code & 0xff) == 19;
    return err >= ERR_CONSTRAINT && err <= ERR_CONSTRAINT_PINNED;
}

/* A failed call under the statement's conflict clause. */
static Err
judge(ExecWrite *w, Err err)
{
    u8 conflict = w->plan->conflict == CONFLICT_DEFAULT ? CONFLICT_ABORT : w->plan->conflict;
    if (w->exec->msg.err == OK) (void)exec__fail(w->exec, err, NULL);
    if (!is_constraint(w, err) || !w->table->host->judges_conflicts) return err;
    if (conflict == CONFLICT_IGNORE) {
        err_clear(&w->exec->msg);
        return OK;
    }
    write__set_undo(w, conflict == CONFLICT_REPLACE ? CONFLICT_ABORT : conflict);
    return err;
}

/* RETURNING of an INSERT shows what was given. */
static Err
returning(ExecWrite *w, const Cell *values)
{
    const PlanWrite *plan = w->plan;
    if (plan->returning_count == 0) return OK;
    memcpy(w->fresh.cell, values + 2, sizeof(Cell) * w->table->column_count);
    w->fresh.cell[w->table->column_count] = values[1].type == CELL_NULL ? cell_int(-1) : values[1];
    exec__subs_forget(w->exec);
    for (u32 i = 0; i < plan->returning_count; i++) {
        Err err = exec__eval(w->exec, w->returning[i], w->fresh.cell, &w->result[i]);
        if (err != OK) return err;
    }
    return exec__returning_push(w->exec, w->result);
}

/* One row; the state stays NEXT until there are no more. */
Err
write__host_next(ExecWrite *w)
{
    const Cell *values;
    Err err = exec__check(w->exec);
    if (err != OK) return err;
    arena_reset(&w->exec->row_arena);
    err = next_values(w, &values);
    if (err != OK) return err;
    if (values == NULL) {
        w->state = WRITE_END;
        return OK;
    }
    if (w->op == WRITE_INSERT) {
        err = returning(w, values);
        if (err != OK) return err;
    }
    HostTable *host = w->table->host;
    u8 conflict = w->plan->conflict == CONFLICT_DEFAULT ? CONFLICT_ABORT : w->plan->conflict;
    i64 rowid = 0;
    err = host->ops->update(host, w->plan->host_arg_count, values, conflict, &rowid, &w->exec->msg);
    if (err != OK) return judge(w, err);
    w->rows++;
    if (w->op != WRITE_INSERT || w->table->without_rowid) return OK;
    const ExecHooks *hooks = w->exec->env->hooks;
    w->exec->last_rowid = rowid;
    w->exec->has_last_rowid = true;
    if (hooks != NULL && hooks->set_last_rowid != NULL) hooks->set_last_rowid(hooks->arg, rowid);
    return OK;
}
