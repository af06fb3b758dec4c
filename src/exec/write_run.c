/*
 * write_run.c -- the row program: the states of one row, and the driver over nested statements.
 *
 * The order within a row is SQLite's: seek again (gone: skip), SET, BEFORE triggers, seek again
 * and reload, NOT NULL, CHECK, uniqueness with REPLACE last, write, hooks, actions of foreign keys,
 * RETURNING, AFTER triggers.
 *
 * Where nobody can tell, an INSERT or UPDATE writes first and asks afterwards: a clash is undone,
 * and the row goes through the checks one by one.
 */
#include "exec/write__run.h"

/* ---- source rows ---- */

/* UPDATE ... FROM: do two matches have one target? */
static bool
same_target(const ExecWrite *w, const Cell *a, const Cell *b)
{
    const IndexDef *primary = w->table->primary_key;
    if (primary == NULL) return cell_compare(&a[0], &b[0], NULL) == 0;
    for (u32 i = 0; i < primary->key_columns; i++) {
        if (cell_compare(&a[i], &b[i], primary->column[i].collation) != 0) return false;
    }
    return true;
}

/* Its matches come sorted by key: each target once, with its last match. */
static Err
next_target(ExecWrite *w, const Cell **row_out)
{
    RowBuf *last = &w->target[0];
    for (;;) {
        const Cell *row;
        Err err = exec__sorter_next(&w->targets, NULL, &row);
        if (err != OK) return exec__fail(w->exec, err, NULL);
        bool ends = last->rows > 0 &&
                    (row == NULL || !same_target(w, exec__rowbuf_row(last, 0), row));
        if (ends) {
            RowBuf swap = w->target[0];
            w->target[0] = w->target[1];
            w->target[1] = swap;
            *row_out = exec__rowbuf_row(&w->target[1], 0);
        }
        exec__rowbuf_clear(last);
        err = row != NULL ? exec__rowbuf_add(last, row) : OK;
        if (err != OK) return exec__fail(w->exec, err, NULL);
        if (ends || row == NULL) return OK;
    }
}

static Err
begin_source(ExecWrite *w)
{
    const PlanNode *source = w->plan->source;
    if (source == NULL || w->direct != WRITE_DIRECT_NONE) return OK;
    Err err = exec__node_rewind(w->exec, source);
    if (err != OK || !w->plan->collect) return err;
    exec__spool_clear(w->exec, &w->collected);
    if (w->joins) exec__sorter_start(&w->targets, U64_MAX);
    if (w->joins) exec__rowbuf_clear(&w->target[0]);
    w->use_collected = true;
    for (;;) {
        const Cell *row;
        err = exec__node_next(w->exec, source, &row);
        if (err != OK) return err;
        if (row == NULL) break;
        err = w->joins ? exec__sorter_add(&w->targets, row, row)
                       : exec__spool_add(w->exec, &w->collected, row);
        if (err != OK) return exec__fail(w->exec, err, NULL);
        err = exec__check(w->exec);
        if (err != OK) return err;
    }
    err = w->joins ? exec__sorter_finish(&w->targets) : OK;
    return err == OK ? OK : exec__fail(w->exec, err, NULL);
}

/* The next source row; false at the end.  A missing source (DEFAULT VALUES) is one empty row. */
static Err
next_source(ExecWrite *w, const Cell **row_out, bool *found_out)
{
    if (w->direct != WRITE_DIRECT_NONE) return write__direct_next(w, row_out, found_out);
    *row_out = NULL;
    if (w->plan->source == NULL) {
        *found_out = w->collected_reader.next++ == 0;
        return OK;
    }
    Err err = OK;
    if (!w->use_collected) {
        err = exec__node_next(w->exec, w->plan->source, row_out);
    } else if (w->joins) {
        err = next_target(w, row_out);
    } else {
        err = exec__spool_row(w->exec, &w->collected, &w->collected_reader, row_out);
        if (err != OK) (void)exec__fail(w->exec, err, NULL);
    }
    *found_out = *row_out != NULL;
    return err;
}

/* ---- the states ---- */

static bool
has_preupdate(const ExecWrite *w)
{
    const ExecHooks *hooks = w->exec->env->hooks;
    return hooks != NULL && hooks->preupdate != NULL;
}

static Err
do_begin(ExecWrite *w)
{
    if (w->plan->host_arg != NULL) return write__host_begin(w);
    Err err = write__start(w);
    if (err != OK) return err;
    if (w->plan->truncate && (!has_preupdate(w) || w->plan->source == NULL)) {
        w->state = WRITE_END;
        return write__truncate(w);
    }
    w->state = WRITE_NEXT;
    return begin_source(w);
}

/* Generated columns of the new row; in a STRICT table the columns they read are judged first. */
static Err
generate_fresh(ExecWrite *w)
{
    if (w->plan->generated_count == 0) return OK;
    Err err = w->table->is_view ? OK : write__check_types(w);
    w->type_checked = false;
    return err == OK ? write__generate(w, w->fresh.cell, false) : err;
}

/* INSERT: a new row's values, and what BEFORE triggers see of them. */
static Err
begin_insert(ExecWrite *w, const Cell *source)
{
    const TableDef *table = w->table;
    Err err = write__load_values(w, source);
    if (err != OK) return err;
    w->type_checked = false;
    write__fire(w, WRITE_INSERT, true, NULL, w->fresh.cell, WRITE_PREPARE);
    if (!w->fire.active) return OK;

    /* The rowid is not known yet: triggers see -1 unless the statement gives one. */
    if (!table->is_view && !table->without_rowid) {
        Cell *rowid = &w->fresh.cell[table->column_count];
        if (w->rowid_given) {
            err = write__must_be_int(w, rowid);
            if (err != OK) return err;
        } else {
            *rowid = cell_int(-1);
        }
        if (table->rowid_column != COLUMN_ROWID) w->fresh.cell[table->rowid_column] = *rowid;
    }
    err = generate_fresh(w);
    if (err == OK && !table->is_view) err = write__check_types(w);
    w->type_checked = false;
    return err;
}

/* UPDATE and DELETE: the target's key from the source row. */
static Err
target_key(ExecWrite *w, const Cell *source)
{
    const TableDef *table = w->table;
    if (table->without_rowid) return table_primary_key(&w->codec, source, &w->old.key);
    u8 key[TABLE_KEY_BYTES];
    ASSERT(source[0].type == CELL_INT);
    table_key_put(source[0].u.i, key);
    buf_clear(&w->old.key);
    return buf_append(&w->old.key, key, sizeof(key));
}

static Err
begin_target(ExecWrite *w, const Cell *source)
{
    const TableDef *table = w->table;
    u32 key_cells = table->without_rowid ? table->primary_key->key_columns : 1;
    Err err = OK;
    if (table->is_view) {
        key_cells = table->column_count;
        memcpy(w->old.cell, source, sizeof(Cell) * key_cells);
        w->old.cell[key_cells] = cell_null();
    } else {
        bool found;
        err = target_key(w, source);
        if (err != OK) return exec__fail(w->exec, err, NULL);
        err = write__read_row(w, &w->old, &found);
        if (err != OK) return err;
        if (!found) return OK; /* Deleted meanwhile: the state stays NEXT. */
    }
    if (w->op == WRITE_DELETE) {
        write__fire(w, WRITE_DELETE, true, w->old.cell, NULL, WRITE_PREPARE);
        return OK;
    }
    if (w->plan->extra > 0) {
        memcpy(&w->old.cell[table->column_count + 1u], &source[key_cells],
               sizeof(Cell) * w->plan->extra);
    }
    err = write__set_values(w, w->old.cell);
    if (err == OK) err = generate_fresh(w);
    if (err == OK) {
        write__fire(w, WRITE_UPDATE, true, w->old.cell, w->fresh.cell, WRITE_PREPARE);
    }
    return err;
}

static Err
do_next(ExecWrite *w)
{
    if (w->plan->host_arg != NULL) return write__host_next(w);
    /* A source of one row was checked for when its statement began. */
    Err err = w->direct == WRITE_DIRECT_NONE ? exec__check(w->exec) : OK;
    if (err != OK) return err;
    arena_reset(&w->exec->row_arena);
    w->op = w->plan->kind;
    w->sets = w->op == WRITE_UPDATE ? &w->set : NULL;
    w->recheck = w->checked = w->victims_fired = w->victims_gone = w->touches_all = false;
    w->unique_at = 0;
    w->old_first = NULL;
    const Cell *source;
    bool found;
    err = next_source(w, &source, &found);
    if (err != OK) return err;
    if (!found) {
        w->state = WRITE_END;
        return OK;
    }
    return w->op == WRITE_INSERT ? begin_insert(w, source) : begin_target(w, source);
}

/* Before the target is read again: its row as it was stays OLD for AFTER triggers and RETURNING,
   and new values that lie in its record move to where they last. */
static Err
keep_old(ExecWrite *w)
{
    u32 cells = w->table->column_count + 1u;
    Arena *arena = &w->exec->row_arena;
    const Buf *record = &w->old.record;
    Cell *kept = w->old_first == NULL ? ARENA_NEW_ARRAY(arena, Cell, cells) : NULL;
    if (w->old_first == NULL && kept == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < cells && kept != NULL; i++) {
        Err err = cell_copy(&w->old.cell[i], arena, &kept[i]);
        if (err != OK) return err;
    }
    if (kept != NULL) w->old_first = kept;
    for (u32 i = 0; i < cells && w->op == WRITE_UPDATE; i++) {
        Cell *cell = &w->fresh.cell[i];
        if (cell->type != CELL_TEXT && cell->type != CELL_BLOB) continue;
        const u8 *p = cell->u.p;
        if (p < record->p || p > record->p + record->bytes) continue;
        Err err = cell_copy(cell, arena, cell);
        if (err != OK) return err;
    }
    return OK;
}

/* The target as it stands now. */
static Err
read_target_again(ExecWrite *w, bool *found_out)
{
    Err err = keep_old(w);
    return err == OK ? write__read_row(w, &w->old, found_out) : exec__fail(w->exec, err, NULL);
}

/* The row again, after triggers may have changed it; gone: the statement skips it. */
static Err
reload_target(ExecWrite *w, bool *found_out)
{
    *found_out = true;
    if (!write__has_triggers(w, w->op)) return OK;
    Err err = read_target_again(w, found_out);
    if (err != OK || !*found_out || w->op == WRITE_DELETE) return err;
    write__reload_unset(w);
    return generate_fresh(w);
}

static Err
do_prepare(ExecWrite *w)
{
    const TableDef *table = w->table;
    Err err = OK;
    if (table->is_view) {
        w->state = WRITE_RETURNING;
        return OK;
    }
    if (w->op == WRITE_INSERT) {
        if (!table->without_rowid) err = write__new_rowid(w);
        if (err == OK) err = generate_fresh(w);
    } else {
        bool found;
        err = reload_target(w, &found);
        if (err == OK && !found) {
            w->state = WRITE_NEXT;
            return OK;
        }
    }
    if (err != OK) return err;
    w->row_mark = store_txn_mark(w->txn);
    if (w->op == WRITE_DELETE) {
        w->state = WRITE_APPLY;
        return OK;
    }
    bool ignore;
    err = write__check_row(w, &ignore);
    if (err != OK) return err;
    if (ignore) {
        w->state = WRITE_NEXT;
        return OK;
    }
    err = write__encode_fresh(w);
    if (err != OK) return err;
    /* A wrong type stands behind a duplicate rowid in the order of errors: no writing first. */
    bool first = w->op == WRITE_INSERT ? w->optimistic_insert : !w->may_replace;
    first = first && !has_preupdate(w) && write__types_fit(w);
    w->state = first ? WRITE_APPLY : WRITE_UNIQUE;
    return OK;
}

/* ON CONFLICT DO UPDATE: the row in the way is in w->old. */
static Err
begin_upsert(ExecWrite *w)
{
    u32 cells = w->table->column_count + 1u;
    memcpy(w->upsert_cell, w->old.cell, sizeof(Cell) * cells);
    memcpy(w->upsert_cell + cells, w->fresh.cell, sizeof(Cell) * cells);
    w->op = WRITE_UPDATE;
    w->checked = false;
    w->unique_at = 0;
    if (w->sets->where != NULL) {
        ExecTruth truth;
        Err err = exec__eval_truth(w->exec, w->sets->where, w->upsert_cell, &truth);
        if (err != OK) return err;
        if (truth != EXEC_TRUE) {
            w->state = WRITE_NEXT;
            return OK;
        }
    }
    Err err = write__set_values(w, w->upsert_cell);
    if (err == OK) err = generate_fresh(w);
    if (err == OK) {
        write__fire(w, WRITE_UPDATE, true, w->old.cell, w->fresh.cell, WRITE_PREPARE);
    }
    return err;
}

static bool
victims_fire(const ExecWrite *w)
{
    return w->exec->env->recursive_triggers && write__has_triggers(w, WRITE_DELETE);
}

static Err
do_unique(ExecWrite *w)
{
    const WriteUnique *unique = w->op == WRITE_UPDATE ? w->sets->unique : w->unique;
    u32 count = w->op == WRITE_UPDATE ? w->sets->unique_count : w->unique_count;
    while (w->unique_at < count) {
        const WriteUnique *check = &unique[w->unique_at];
        WriteVerdict verdict;
        /* The rowid is judged before types are, indexes are not. */
        bool of_rowid = check->of_key && !w->table->without_rowid;
        Err err = of_rowid ? OK : write__check_types(w);
        if (err == OK) err = write__check_unique(w, check, &verdict);
        if (err != OK) return err;
        switch (verdict) {
        case WRITE_FREE: w->unique_at++; continue;
        case WRITE_SKIP: w->state = WRITE_NEXT; return OK;
        case WRITE_UPDATE_IT: return begin_upsert(w);
        case WRITE_REPLACE: break;
        }
        w->unique_at++;
        w->last_known = false;
        if (victims_fire(w)) {
            write__fire(w, WRITE_DELETE, true, w->victim.cell, NULL, WRITE_VICTIM_DELETE);
        } else {
            w->state = WRITE_VICTIM_DELETE;
        }
        return OK;
    }
    if (w->victims_fired && !w->recheck) {
        w->recheck = true;
        w->unique_at = 0;
        return OK;
    }
    w->checked = true;
    w->state = WRITE_APPLY;
    Err err = write__check_types(w);
    if (err != OK || w->op != WRITE_UPDATE || !w->victims_gone) return err;
    /* With a replaced row, actions and triggers may have taken the target itself, or changed it. */
    bool found;
    err = read_target_again(w, &found);
    w->touches_all = true;
    if (err != OK || found) return err == OK ? write__encode_fresh(w) : err;
    w->state = WRITE_NEXT;
    return OK;
}

static Err
do_victim_delete(ExecWrite *w)
{
    bool found = true;
    Err err = OK;
    if (victims_fire(w)) {
        w->victims_fired = true;
        err = write__read_row(w, &w->victim, &found);
    }
    if (err != OK) return err;
    if (!found) {
        w->state = WRITE_UNIQUE;
        return OK;
    }
    write__preupdate(w, EXEC_DELETE, &w->victim, NULL);
    err = write__foreign_before(w, WRITE_DELETE, w->victim.cell, NULL);
    if (err == OK) err = write__delete_row(w, &w->victim);
    if (err != OK) return err;
    w->victims_gone = true;
    if (w->foreign != NULL) w->victims_fired = true; /* Actions may have run. */
    write__fire_actions(w, WRITE_DELETE, w->victim.cell, NULL, WRITE_VICTIM_AFTER);
    return OK;
}

static Err
do_victim_after(ExecWrite *w)
{
    w->state = WRITE_UNIQUE;
    if (victims_fire(w)) {
        write__fire(w, WRITE_DELETE, false, w->victim.cell, NULL, WRITE_UNIQUE);
    }
    return OK;
}

/* A clash although the checks found nothing, or one that cannot be undone quietly. */
static Err
late_clash(ExecWrite *w, i32 clash, bool newer)
{
    const WriteUnique *unique = w->op == WRITE_UPDATE ? w->sets->unique : w->unique;
    u32 count = w->op == WRITE_UPDATE ? w->sets->unique_count : w->unique_count;
    for (u32 i = 0; i < count; i++) {
        bool same = clash == WRITE_CLASH_KEY ? unique[i].of_key
                                             : !unique[i].of_key && unique[i].index == (u32)clash;
        if (!same) continue;
        u8 action = unique[i].action;
        bool decides = action == CONFLICT_IGNORE || action == CONFLICT_REPLACE ||
                       action == WRITE_DO_UPDATE;
        if (decides && newer) break;
        return write__fail_unique(w, &unique[i], decides ? CONFLICT_ABORT : action);
    }
    return exec__fail(w->exec, ERR_BUSY_SNAPSHOT,
                      "could not serialize access due to concurrent update");
}

static Err
resolve_clash(ExecWrite *w, i32 clash, bool newer)
{
    if (w->op == WRITE_INSERT && clash == WRITE_CLASH_KEY && !w->rowid_given &&
        !w->table->without_rowid && w->exec->env->multi_writers) {
        /* Somebody took that number by hand: another one. */
        Err err = write__new_rowid(w);
        if (err == OK) err = write__encode_fresh(w);
        return err; /* The state stays APPLY. */
    }
    if (w->checked) return late_clash(w, clash, newer);
    w->unique_at = 0;
    w->state = WRITE_UNIQUE;
    return OK;
}

static void
remember_last(ExecWrite *w)
{
    if (!w->last_keeps || w->exec->env->multi_writers || w->table->without_rowid) return;
    if (!w->last_known) {
        /* A number just allocated is the last one; of a given one nothing is known. */
        if (w->rowid_given || w->plan->sequence != NULL) return;
        w->last_rowid = w->fresh.rowid;
        w->last_known = true;
    } else if (w->fresh.rowid > w->last_rowid) {
        w->last_rowid = w->fresh.rowid;
    }
}

/* While an UPDATE replaces a row, the DELETE triggers of that row must leave the table alone. */
static bool
is_pinned(const ExecWrite *w)
{
    for (const ExecWrite *frame = w->caller; frame != NULL; frame = frame->caller) {
        if (frame->table != w->table || frame->op != WRITE_UPDATE || frame->fire.actions) continue;
        u8 next = frame->fire.next;
        bool of_victim = next == WRITE_VICTIM_DELETE || next == WRITE_UNIQUE;
        if (frame->fire.active && of_victim) return true;
    }
    return false;
}

static Err
do_apply(ExecWrite *w)
{
    Err err;
    if (UNLIKELY(is_pinned(w))) return exec__fail(w->exec, ERR_CONSTRAINT_PINNED, NULL);
    if (w->op == WRITE_DELETE) {
        write__preupdate(w, EXEC_DELETE, &w->old, NULL);
        err = write__foreign_before(w, WRITE_DELETE, w->old.cell, NULL);
        if (err == OK) err = write__delete_row(w, &w->old);
        if (err != OK) return err;
        write__changed(w, EXEC_DELETE, w->old.rowid);
        write__fire_actions(w, WRITE_DELETE, w->old.cell, NULL, WRITE_RETURNING);
        return OK;
    }
    bool update = w->op == WRITE_UPDATE;
    const Cell *old = update ? w->old.cell : NULL;
    i64 immediate = w->root->foreign_open;
    i64 deferred = w->root->exec->deferred_violations;
    i32 clash;
    bool newer;
    write__preupdate(w, update ? EXEC_UPDATE : EXEC_INSERT, update ? &w->old : NULL, &w->fresh);
    err = write__foreign_before(w, w->op, old, w->fresh.cell);
    if (err == OK) err = write__apply(w, &clash, &newer);
    if (err != OK) return err;
    if (clash != WRITE_CLASH_NONE) {
        w->root->foreign_open = immediate;
        w->root->exec->deferred_violations = deferred;
        return resolve_clash(w, clash, newer);
    }
    if (!update) remember_last(w);
    err = write__foreign_after(w, w->op, old, w->fresh.cell);
    /* The only row of a statement fails at once: last_insert_rowid() does not move. */
    if (err == OK && w->fails_early && !update) err = write__foreign_end(w);
    if (err != OK) return err;
    write__changed(w, update ? EXEC_UPDATE : EXEC_INSERT, w->fresh.rowid);
    write__fire_actions(w, w->op, old, w->fresh.cell, WRITE_RETURNING);
    return OK;
}

static Err
do_returning(ExecWrite *w)
{
    const PlanWrite *plan = w->plan;
    const Cell *old = w->old_first != NULL ? w->old_first : w->old.cell;
    const Cell *row = w->op == WRITE_DELETE ? old : w->fresh.cell;
    if (plan->returning_count > 0) {
        exec__subs_forget(w->exec);
        for (u32 i = 0; i < plan->returning_count; i++) {
            Err err = exec__eval(w->exec, w->returning[i], row, &w->result[i]);
            if (err != OK) return err;
        }
        Err err = exec__returning_push(w->exec, w->result);
        if (err != OK) return err;
    }
    write__fire(w, w->op, false, w->op == WRITE_INSERT ? NULL : old,
                w->op == WRITE_DELETE ? NULL : w->fresh.cell, WRITE_NEXT);
    return OK;
}

/* Run until a nested write must run (*call_out) or the statement is done. */
static Err
run_states(ExecWrite *w, ExecWrite **call_out)
{
    *call_out = NULL;
    for (;;) {
        Err err = OK;
        if (w->fire.active) {
            err = write__fire_on(w, call_out);
            if (err != OK || *call_out != NULL) return err;
        }
        switch ((WriteState)w->state) {
        case WRITE_BEGIN: err = do_begin(w); break;
        case WRITE_NEXT: err = do_next(w); break;
        case WRITE_PREPARE: err = do_prepare(w); break;
        case WRITE_UNIQUE: err = do_unique(w); break;
        case WRITE_VICTIM_DELETE: err = do_victim_delete(w); break;
        case WRITE_VICTIM_AFTER: err = do_victim_after(w); break;
        case WRITE_APPLY: err = do_apply(w); break;
        case WRITE_RETURNING: err = do_returning(w); break;
        case WRITE_END: return OK;
        }
        if (err != OK) return err;
    }
}

/* ---- the driver ---- */

static Err
finish(ExecWrite *w)
{
    Err err = OK;
    if (w->caller == NULL) {
        err = write__sequence_save(w);
        if (err == OK) err = write__foreign_end(w);
    } else {
        const ExecHooks *hooks = w->exec->env->hooks;
        if (hooks != NULL && hooks->set_changes != NULL) hooks->set_changes(hooks->arg, w->rows);
    }
    if (err != OK) return err;
    w->running = false;
    w->root->exec->rows_changed_total += w->rows;
    if (w->plan->counts_changes) w->exec->rows_changed = w->rows;
    return OK;
}

/* RAISE(IGNORE) in a trigger: the statement that fired it goes on with its next row. */
static void
skip_row(ExecWrite *w)
{
    write__restore_counts(w);
    w->fire.active = false;
    err_clear(&w->exec->msg);
    w->exec->raise = 0;
    bool of_victim = w->fire.next == WRITE_VICTIM_DELETE || w->fire.next == WRITE_VICTIM_AFTER ||
                     w->fire.next == WRITE_UNIQUE;
    w->state = of_victim ? WRITE_UNIQUE : WRITE_NEXT;
}

/*
 * An error in *top: RAISE(IGNORE) is caught by the statement whose trigger it stands in, everything
 * else goes up to the outermost statement.
 */
static Err
unwind(ExecWrite **top, Err err)
{
    ExecWrite *w = *top;
    bool ignored = err == ERR_ABORT && w->exec->raise == CONFLICT_IGNORE;
    if (ignored && w->fire.active && w->fire.in_trigger) {
        skip_row(w); /* Raised by a SELECT in the body. */
        return OK;
    }
    if (ignored && w->caller != NULL) {
        ExecWrite *caller = w->caller;
        exec_reset(w->exec);
        w->exec->raise = 0;
        skip_row(caller);
        *top = caller;
        return OK;
    }
    if (err == ERR_CONSTRAINT_TRIGGER && w->exec->raise != 0) write__set_undo(w, w->exec->raise);
    if (w->fire.active && w->fire.in_trigger) write__restore_counts(w);
    while (w->caller != NULL) {
        ExecWrite *caller = w->caller;
        write__restore_counts(caller);
        caller->exec->undo = w->exec->undo;
        (void)exec__adopt_error(caller->exec, w->exec, err);
        exec_reset(w->exec);
        w = caller;
    }
    w->fire.active = false;
    *top = NULL;
    if (w->exec->undo == EXEC_UNDO_NOTHING && w->foreign_open > 0) {
        /* FAIL would keep rows that violate a foreign key: that weighs more. */
        w->exec->undo = EXEC_UNDO_STATEMENT;
        return write__foreign_end(w);
    }
    if (w->exec->undo == EXEC_UNDO_NOTHING) {
        w->exec->rows_changed = w->plan->counts_changes ? w->rows : 0;
    }
    return err;
}

Err
exec__write_run(Exec *exec)
{
    ExecWrite *root = exec->write;
    ExecWrite *top = root;
    root->caller = NULL;
    root->root = root;
    root->depth = exec->depth;
    root->state = WRITE_BEGIN;
    root->fire.active = false;
    exec->undo = EXEC_UNDO_STATEMENT;
    Err err = OK;
    root->wrote_at_once = false;
    if (root->plain) {
        bool done;
        err = write__plain_run(root, &done);
        root->wrote_at_once = root->at_once && done && root->rows > 0;
        if (err != OK || done) return err;
        if (root->at_once) (void)store_txn_mark(exec__txn(exec, root->table));
    }
    while (top != NULL) {
        ExecWrite *call = NULL;
        err = run_states(top, &call);
        if (err == OK && call == NULL) err = finish(top);
        if (err != OK) {
            err = unwind(&top, err);
        } else if (call != NULL) {
            call->caller = top;
            call->root = root;
            call->depth = top->depth + 1;
            call->state = WRITE_BEGIN;
            call->fire.active = false;
            call->exec->undo = EXEC_UNDO_STATEMENT;
            top = call;
        } else {
            ExecWrite *caller = top->caller;
            if (caller != NULL) exec_reset(top->exec);
            top = caller;
        }
    }
    return err;
}
