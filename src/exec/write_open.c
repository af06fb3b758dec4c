/*
 * write_open.c -- the row program's life: codecs and programs made once, a run begun, all given
 * back.
 *
 * After the first runs have grown the buffers, a run allocates nothing: everything here is kept.
 */
#include "exec/write__run.h"

/* ---- what expressions read ---- */

/* Does `expr` read a cell of its row for which reads[cell] holds (cells below `count`)? */
static bool
reads_marked(const PlanExpr *expr, const bool *reads, u32 count, u32 depth)
{
    if (expr == NULL) return false;
    if (depth > 1200) return true; /* Deeper than the parser allows: assume the worst. */
    if (expr->op == PX_COLUMN) return expr->u.number < count && reads[expr->u.number];
    for (u32 i = 0; i < expr->arg_count; i++) {
        if (reads_marked(expr->arg[i], reads, count, depth + 1)) return true;
    }
    return (expr->flags & PX_FLAG_HAS_SUB) != 0; /* Its binds may read anything. */
}

/* ---- opening ---- */

static Err
compile_list(ExecWrite *w, PlanExpr **expr, u32 count, ExecProgram ***programs_out)
{
    *programs_out = NULL;
    if (count == 0 || expr == NULL) return OK;
    ExecProgram **programs = ARENA_NEW_ARRAY(&w->exec->arena, ExecProgram *, count);
    if (programs == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < count; i++) {
        if (expr[i] == NULL) continue;
        Err err = exec__compile(w->exec, expr[i], &programs[i]);
        if (err != OK) return err;
    }
    *programs_out = programs;
    return OK;
}

static Err
compile_one(ExecWrite *w, PlanExpr *expr, ExecProgram **program_out)
{
    *program_out = NULL;
    return expr == NULL ? OK : exec__compile(w->exec, expr, program_out);
}

static Err
codec_error(ExecWrite *w, Err err, const IndexDef *index)
{
    if (err != ERR_UNSUPPORTED) return exec__fail(w->exec, err, NULL);
    return exec__fail(w->exec, err,
                      "index %s uses a collation of the host program, which is not supported",
                      index->name);
}

static Err
open_indexes(ExecWrite *w)
{
    const PlanWrite *plan = w->plan;
    Arena *arena = &w->exec->arena;
    w->index_count = plan->index_count;
    w->index = ARENA_NEW_ARRAY(arena, WriteIndex, MAX_OF(plan->index_count, 1u));
    if (w->index == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < plan->index_count; i++) {
        WriteIndex *index = &w->index[i];
        index->plan = &plan->index[i];
        index->def = plan->index[i].index;
        Err err = index_codec_init(&index->codec, index->def, arena);
        if (err != OK) return codec_error(w, err, index->def);
        index->cell = ARENA_NEW_ARRAY(arena, Cell, index->codec.columns);
        if (index->cell == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
        for (u16 k = 0; k < index->codec.key_columns; k++) {
            if (index->codec.column[k].column == COLUMN_EXPR) index->has_expr = true;
        }
        if (index->has_expr) {
            err = compile_list(w, index->plan->expr, index->codec.key_columns, &index->expr);
            if (err != OK) return err;
        }
        err = compile_one(w, index->plan->where, &index->where);
        if (err != OK) return err;
    }
    return OK;
}

/* Which columns a SET list changes: those in it and the generated ones that depend on them. */
static void
mark_changed(ExecWrite *w, WriteSet *set)
{
    const TableDef *table = w->table;
    u16 columns = table->column_count;
    for (u32 i = 0; i < set->count; i++) {
        u16 column = set->column[i];
        if (column == COLUMN_ROWID || column == table->rowid_column) {
            set->changed[columns] = true;
            if (table->rowid_column != COLUMN_ROWID) set->changed[table->rowid_column] = true;
            set->changes_key = true;
        } else {
            set->changed[column] = true;
        }
    }
    for (u16 i = 0; i < w->plan->generated_count; i++) {
        u16 column = w->plan->generated_order[i];
        if (reads_marked(w->plan->generated[column], set->changed, columns + 1u, 0)) {
            set->changed[column] = true;
        }
    }
    if (table->without_rowid) {
        for (u16 i = 0; i < table->primary_key->key_columns; i++) {
            if (set->changed[table->primary_key->column[i].column]) set->changes_key = true;
        }
    }
}

static void
mark_touched(ExecWrite *w, WriteSet *set)
{
    u32 cells = w->table->column_count + 1u;
    for (u32 i = 0; i < w->plan->check_count; i++) {
        set->check[i] = reads_marked(w->plan->check[i], set->changed, cells, 0);
    }
    for (u32 i = 0; i < w->index_count; i++) {
        const WriteIndex *index = &w->index[i];
        bool touched = set->changes_key || reads_marked(index->plan->where, set->changed, cells, 0);
        for (u16 k = 0; k < index->codec.key_columns && !touched; k++) {
            u16 column = index->codec.column[k].column;
            touched = column == COLUMN_EXPR
                          ? reads_marked(index->plan->expr[k], set->changed, cells, 0)
                          : column < w->table->column_count && set->changed[column];
        }
        set->touched[i] = touched;
    }
}

static Err
open_set(ExecWrite *w, WriteSet *set, u32 count, const u16 *column, PlanExpr **expr, u8 conflict)
{
    Arena *arena = &w->exec->arena;
    *set = (WriteSet){.count = count, .column = column, .conflict = conflict};
    set->changed = ARENA_NEW_ARRAY(arena, bool, w->table->column_count + 1u);
    set->check = ARENA_NEW_ARRAY(arena, bool, w->plan->check_count + 1u);
    set->touched = ARENA_NEW_ARRAY(arena, bool, w->index_count + 1u);
    if (set->changed == NULL || set->check == NULL || set->touched == NULL) {
        return exec__fail(w->exec, ERR_NOMEM, NULL);
    }
    Err err = compile_list(w, expr, count, &set->expr);
    if (err != OK) return err;
    mark_changed(w, set);
    mark_touched(w, set);
    return write__order_checks(w, set, &set->unique, &set->unique_count);
}

static Err
open_sets(ExecWrite *w)
{
    const PlanWrite *plan = w->plan;
    if (plan->kind == WRITE_UPDATE) {
        return open_set(w, &w->set, plan->set_count, plan->set_column, plan->set_expr,
                        plan->conflict);
    }
    if (plan->kind != WRITE_INSERT) return OK;
    if (plan->upsert_count > 0) {
        w->upsert = ARENA_NEW_ARRAY(&w->exec->arena, WriteSet, plan->upsert_count);
        if (w->upsert == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
    }
    for (u32 i = 0; i < plan->upsert_count; i++) {
        const PlanUpsert *upsert = &plan->upsert[i];
        if (upsert->do_nothing) continue;
        Err err = open_set(w, &w->upsert[i], upsert->set_count, upsert->set_column,
                           upsert->set_expr, CONFLICT_ABORT);
        if (err == OK) err = compile_one(w, upsert->where, &w->upsert[i].where);
        if (err != OK) return err;
    }
    return write__order_checks(w, NULL, &w->unique, &w->unique_count);
}

static Err
open_programs(ExecWrite *w)
{
    const PlanWrite *plan = w->plan;
    Err err = OK;
    if (plan->kind != WRITE_DELETE) {
        err = compile_list(w, plan->default_expr, w->table->column_count, &w->default_expr);
        if (err != OK) return err;
    }
    if (plan->generated_count > 0) {
        w->generated = ARENA_NEW_ARRAY(&w->exec->arena, ExecProgram *, plan->generated_count);
        if (w->generated == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
        for (u16 i = 0; i < plan->generated_count; i++) {
            err = compile_one(w, plan->generated[plan->generated_order[i]], &w->generated[i]);
            if (err != OK) return err;
        }
    }
    err = compile_list(w, plan->check, plan->check_count, &w->check);
    if (err == OK) err = compile_list(w, plan->returning, plan->returning_count, &w->returning);
    return err;
}

/* The columns with NOT NULL; generated ones come last, because they are checked last. */
static Err
list_not_null(ExecWrite *w)
{
    const TableDef *table = w->table;
    w->not_null = ARENA_NEW_ARRAY(&w->exec->arena, u16, table->column_count + 1u);
    if (w->not_null == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
    for (u16 c = 0; c < table->column_count; c++) {
        if (!table->column[c].not_null || c == table->rowid_column) continue;
        w->not_null[w->not_null_count++] = c;
    }
    return OK;
}

static Err
open_rows(ExecWrite *w)
{
    Arena *arena = &w->exec->arena;
    Err err = list_not_null(w);
    if (err != OK) return err;
    u32 cells = w->table->column_count + 1u;
    w->fresh.cell = ARENA_NEW_ARRAY(arena, Cell, cells);
    w->old.cell = ARENA_NEW_ARRAY(arena, Cell, cells + w->plan->extra);
    w->victim.cell = ARENA_NEW_ARRAY(arena, Cell, cells);
    w->result = ARENA_NEW_ARRAY(arena, Cell, w->plan->returning_count + 1u);
    if (w->fresh.cell == NULL || w->old.cell == NULL || w->victim.cell == NULL ||
        w->result == NULL) {
        return exec__fail(w->exec, ERR_NOMEM, NULL);
    }
    if (w->plan->upsert_count > 0) {
        w->upsert_cell = ARENA_NEW_ARRAY(arena, Cell, 2 * cells);
        if (w->upsert_cell == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
    }
    exec__spool_init(w->exec, &w->collected,
                     w->plan->source == NULL ? 1 : w->plan->source->columns);
    w->collected_ready = true;
    return OK;
}

/* UPDATE ... FROM sorts its matches by the key of the target, which begins each row. */
static Err
open_targets(ExecWrite *w)
{
    const IndexDef *primary = w->table->primary_key;
    u32 keys = primary == NULL ? 1 : primary->key_columns, columns = w->plan->source->columns;
    PlanSortKey *key = ARENA_NEW_ARRAY(&w->exec->arena, PlanSortKey, keys);
    if (key == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
    for (u32 i = 0; primary != NULL && i < keys; i++) {
        key[i].collation = primary->column[i].collation;
        key[i].desc = key[i].nulls_last = primary->column[i].desc;
    }
    exec__rowbuf_init(w->exec, &w->target[0], columns);
    exec__rowbuf_init(w->exec, &w->target[1], columns);
    Err err = exec__sorter_init(w->exec, &w->targets, key, keys, columns);
    return err == OK ? OK : exec__fail(w->exec, err, NULL);
}

static Err
open_triggers(ExecWrite *w)
{
    const PlanWrite *plan = w->plan;
    if (plan->trigger_count == 0) return OK;
    Arena *arena = &w->exec->arena;
    w->bodies = ARENA_NEW_ARRAY(arena, WriteBodies, plan->trigger_count);
    if (w->bodies == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < plan->trigger_count; i++) {
        const PlanTrigger *trigger = &plan->trigger[i];
        w->bodies[i].child = ARENA_NEW_ARRAY(arena, Exec *, MAX_OF(trigger->body_count, 1u));
        if (w->bodies[i].child == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
        Err err = compile_one(w, trigger->when, &w->bodies[i].when);
        if (err != OK) return err;
    }
    return OK;
}

/* Writing first and asking later is right when a clash can simply be undone, and wise when clashes
   are rare. */
static bool
may_write_first(const ExecWrite *w)
{
    if (w->plan->upsert_count > 0) return false;
    for (u32 i = 0; i < w->unique_count; i++) {
        if (w->unique[i].action == CONFLICT_REPLACE && w->index_count > 0) return false;
    }
    return true;
}

/* Does the source join the target with other rows (UPDATE ... FROM)? */
static bool
reads_join(const PlanNode *node)
{
    while (node != NULL && node->kind != PLAN_LOOP_JOIN && node->kind != PLAN_HASH_JOIN) {
        node = node->input;
    }
    return node != NULL;
}

static bool
inserts_one_row(const PlanWrite *plan)
{
    const PlanNode *source = plan->source;
    if (plan->kind != WRITE_INSERT) return false;
    while (source != NULL && source->kind == PLAN_PROJECT) {
        source = source->input;
    }
    return source == NULL || source->kind == PLAN_ONE_ROW ||
           (source->kind == PLAN_VALUES && source->u.values.row_count == 1);
}

Err
exec__write_open(Exec *exec)
{
    const PlanWrite *plan = exec->plan->write;
    ASSERT(plan != NULL && exec->write == NULL);
    ExecWrite *w = ARENA_NEW(&exec->arena, ExecWrite);
    if (w == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    exec->write = w;
    w->exec = exec;
    w->plan = plan;
    w->table = plan->table;
    if (plan->host_arg != NULL) return write__host_open(w);
    Err err = table_codec_init(&w->codec, w->table, &exec->arena);
    if (err != OK) return codec_error(w, err, w->table->primary_key);
    err = open_indexes(w);
    if (err == OK) err = open_programs(w);
    if (err == OK) err = open_rows(w);
    if (err == OK) err = open_triggers(w);
    if (err == OK) err = open_sets(w);
    if (err == OK) err = write__foreign_open(w);
    if (err == OK && !exec->env->watch) err = write__direct_open(w);
    if (err != OK) return err;
    if (plan->sequence != NULL) {
        err = table_codec_init(&w->sequence_codec, plan->sequence, &exec->arena);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    w->joins = plan->kind == WRITE_UPDATE && !w->table->is_view && reads_join(plan->source);
    if (w->joins) err = open_targets(w);
    if (err != OK) return err;
    w->optimistic_insert = may_write_first(w);
    err = write__plain_open(w);
    if (err != OK) return err;
    w->fails_early = inserts_one_row(plan) && !write__has_triggers(w, WRITE_INSERT) &&
                     !w->may_replace;
    w->last_keeps = plan->trigger_count == 0 && plan->foreign_child_count == 0 &&
                    exec->plan->klass != PLAN_VOLATILE;
    return OK;
}

/* ---- a run ---- */

static void
announce_tree(ExecWrite *w, TreeId tree)
{
    const ExecHooks *hooks = w->exec->env->hooks;
    if (hooks == NULL || hooks->writes_tree == NULL || tree == TREE_NONE) return;
    hooks->writes_tree(hooks->arg, w->table->store, tree);
}

Err
write__start(ExecWrite *w)
{
    w->running = true;
    w->txn = exec__txn(w->exec, w->table);
    w->last_bound = false;
    if (w->exec->env->write_no != NULL) ++*w->exec->env->write_no;
    w->op = w->plan->kind;
    w->sets = w->plan->kind == WRITE_UPDATE ? &w->set : NULL;
    w->use_collected = false;
    exec__spool_rewind(&w->collected_reader);
    w->rows = 0;
    w->fire.active = false;
    w->last_known = false;
    w->foreign_open = 0;
    if (w->table->is_view) return OK;

    announce_tree(w, w->table->tree);
    bool all = w->plan->kind != WRITE_UPDATE || w->may_replace;
    for (u32 i = 0; i < w->index_count; i++) {
        if (all || w->set.touched[i]) announce_tree(w, w->index[i].def->tree);
    }
    if (w->plan->sequence != NULL) announce_tree(w, w->plan->sequence->tree);
    return write__sequence_start(w);
}

void
exec__write_reset(Exec *exec)
{
    ExecWrite *w = exec->write;
    if (w == NULL) return;
    w->running = w->wrote_at_once = false;
    w->fire.active = false;
    w->caller = NULL;
    if (!w->use_collected) return;
    w->use_collected = false;
    exec__spool_close(exec, &w->collected_reader);
    exec__spool_clear(exec, &w->collected);
    if (w->joins) exec__sorter_start(&w->targets, U64_MAX);
}

bool
exec_writes_at_once(const Exec *exec)
{
    return exec->write != NULL && exec->write->at_once;
}

bool
exec_wrote_at_once(const Exec *exec)
{
    return exec->write != NULL && exec->write->wrote_at_once;
}

static void
free_entry(WriteEntry *entry)
{
    buf_free(&entry->key);
    buf_free(&entry->value);
}

static void
free_row(WriteRow *row)
{
    buf_free(&row->key);
    buf_free(&row->record);
}

/* Take the child statements of `w` away from it: selects are closed, writes go in front of `list`,
   linked by `caller`. */
static ExecWrite *
take_children(ExecWrite *w, ExecWrite *list)
{
    for (u32 i = 0; w->bodies != NULL && i < w->plan->trigger_count; i++) {
        for (u32 k = 0; w->bodies[i].child != NULL && k < w->plan->trigger[i].body_count; k++) {
            list = write__take_child(&w->bodies[i].child[k], list);
        }
    }
    return write__foreign_take_children(w, list);
}

ExecWrite *
write__take_child(Exec **child, ExecWrite *list)
{
    Exec *exec = *child;
    *child = NULL;
    if (exec == NULL || exec->write == NULL) {
        exec_close(exec);
        return list;
    }
    exec->write->caller = list;
    return exec->write;
}

void
exec__write_close(Exec *exec)
{
    ExecWrite *w = exec->write;
    if (w == NULL) return;
    exec__write_reset(exec);
    /* Bodies of bodies may stand a thousand deep: each is closed when it has no children left. */
    for (ExecWrite *list = take_children(w, NULL); list != NULL;) {
        ExecWrite *next = list->caller;
        Exec *child = list->exec;
        next = take_children(list, next);
        exec_close(child);
        list = next;
    }
    for (u32 i = 0; w->index != NULL && i < w->index_count; i++) {
        free_entry(&w->index[i].fresh);
        free_entry(&w->index[i].old);
        free_entry(&w->index[i].gone);
    }
    write__foreign_close(w);
    free_row(&w->fresh);
    free_row(&w->old);
    free_row(&w->victim);
    exec__spool_close(exec, &w->collected_reader);
    if (w->collected_ready) exec__spool_free(exec, &w->collected);
    exec__sorter_free(&w->targets);
    exec__rowbuf_free(&w->target[0]);
    exec__rowbuf_free(&w->target[1]);
    store_cursor_close(w->last);
    exec->write = NULL;
}
