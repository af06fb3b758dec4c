/*
 * write_foreign.c -- foreign keys: counting violations, looking up parents, beginning actions.
 *
 * Violations are counted, not judged: a child row without its parent counts one, and whatever mends
 * it takes one off.  The count of the immediate keys belongs to the outermost statement and must be
 * zero when that ends; the count of the deferred ones belongs to the transaction.  Nothing is taken
 * off a count of zero: rows that were wrong before enforcement began must not hide new ones.
 *
 * What concerns the old row is counted before the change, what concerns the new one after it.
 */
#include "exec/write__run.h"

/* A key of this table as a child. */
typedef struct ForeignKey {
    const PlanForeignKey *plan;
    IndexCodec codec; /* Of the parent's index; unused for rowids. */
    u16 columns;
    Cell *cell; /* [columns] */
} ForeignKey;

/* A key of another table that refers to this one. */
typedef struct ForeignChild {
    const PlanForeignChild *plan;
    Exec *find;
    Exec *action[2]; /* on_delete, on_update */
} ForeignChild;

struct WriteForeign {
    ForeignKey *key;
    ForeignChild *child;
    KeyRange range;
};

/* ---- life ---- */

static Err
open_key(ExecWrite *w, ForeignKey *key, const PlanForeignKey *plan)
{
    Arena *arena = &w->exec->arena;
    key->plan = plan;
    key->columns = 1;
    if (plan->parent != NULL && plan->index != NULL) {
        Err err = index_codec_init(&key->codec, plan->index, arena);
        if (err != OK) return exec__fail(w->exec, err, NULL);
        key->columns = key->codec.key_columns;
    }
    key->cell = ARENA_NEW_ARRAY(arena, Cell, key->columns);
    return key->cell != NULL ? OK : exec__fail(w->exec, ERR_NOMEM, NULL);
}

Err
write__foreign_open(ExecWrite *w)
{
    const PlanWrite *plan = w->plan;
    if (plan->foreign_key_count == 0 && plan->foreign_child_count == 0) return OK;
    Arena *arena = &w->exec->arena;
    WriteForeign *foreign = ARENA_NEW(arena, WriteForeign);
    if (foreign == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
    foreign->key = ARENA_NEW_ARRAY(arena, ForeignKey, plan->foreign_key_count + 1u);
    foreign->child = ARENA_NEW_ARRAY(arena, ForeignChild, plan->foreign_child_count + 1u);
    if (foreign->key == NULL || foreign->child == NULL) {
        return exec__fail(w->exec, ERR_NOMEM, NULL);
    }
    w->foreign = foreign;
    for (u32 i = 0; i < plan->foreign_key_count; i++) {
        Err err = open_key(w, &foreign->key[i], &plan->foreign_key[i]);
        if (err != OK) return err;
    }
    for (u32 i = 0; i < plan->foreign_child_count; i++) {
        foreign->child[i].plan = &plan->foreign_child[i];
    }
    return OK;
}

void
write__foreign_close(ExecWrite *w)
{
    if (w->foreign == NULL) return;
    range_free(&w->foreign->range);
    w->foreign = NULL;
}

ExecWrite *
write__foreign_take_children(ExecWrite *w, ExecWrite *list)
{
    if (w->foreign == NULL) return list;
    for (u32 i = 0; i < w->plan->foreign_child_count; i++) {
        list = write__take_child(&w->foreign->child[i].find, list);
        list = write__take_child(&w->foreign->child[i].action[0], list);
        list = write__take_child(&w->foreign->child[i].action[1], list);
    }
    return list;
}

/* ---- counting ---- */

static bool
is_deferred(const ExecWrite *w, const ForeignKeyDef *def)
{
    return def->deferred || w->exec->env->defer_foreign_keys;
}

static i64
open_violations(const ExecWrite *w, const ForeignKeyDef *def)
{
    if (!is_deferred(w, def)) return w->root->foreign_open;
    return w->exec->env->deferred_open + w->root->exec->deferred_violations;
}

static void
count_violations(ExecWrite *w, const ForeignKeyDef *def, i64 by)
{
    if (is_deferred(w, def)) {
        w->root->exec->deferred_violations += by;
    } else {
        w->root->foreign_open += by;
    }
}

/* ---- the child's side ---- */

/* Does a parent row with that key exist?  It is locked, so that it stays. */
static Err
parent_exists(ExecWrite *w, const TableDef *parent, TreeId tree, Slice key, bool *exists_out)
{
    StoreTxn *txn = exec__txn(w->exec, parent);
    bool newer;
    Slice value;
    Err err = OK;
    if (w->exec->env->multi_writers) err = store_txn_lock_key(txn, tree, key);
    if (err == OK) err = store_get_newest(txn, tree, key, exists_out, &newer, &value);
    return err == OK ? OK : exec__fail_store(w->exec, err, txn);
}

static Err
find_rowid_parent(ExecWrite *w, const ForeignKey *key, bool *exists_out)
{
    Cell cell = key->cell[0];
    Err err = cell_apply_affinity(&cell, AFFINITY_INTEGER, &w->exec->row_arena);
    if (err != OK) return exec__fail(w->exec, err, NULL);
    *exists_out = false;
    if (cell.type != CELL_INT) return OK;
    u8 bytes[TABLE_KEY_BYTES];
    table_key_put(cell.u.i, bytes);
    const TableDef *parent = key->plan->parent;
    return parent_exists(w, parent, parent->tree, SLICE(bytes, sizeof(bytes)), exists_out);
}

static Err
find_parent(ExecWrite *w, ForeignKey *key, const Cell *row, bool *null_out, bool *exists_out)
{
    *null_out = *exists_out = false;
    for (u16 i = 0; i < key->columns; i++) {
        key->cell[i] = row[key->plan->child_column[i]];
        if (key->cell[i].type == CELL_NULL) {
            *null_out = true;
            return OK;
        }
    }
    if (key->plan->parent == NULL) return OK;
    if (key->plan->index == NULL) return find_rowid_parent(w, key, exists_out);
    for (u16 i = 0; i < key->columns; i++) {
        u8 affinity = key->codec.column[i].affinity;
        Err err = OK;
        if (affinity > AFFINITY_BLOB) {
            err = cell_apply_affinity(&key->cell[i], (Affinity)affinity, &w->exec->row_arena);
        }
        if (err != OK) return exec__fail(w->exec, err, NULL);
    }
    KeyRange *range = &w->foreign->range;
    Err err = index_range_build(&key->codec, key->cell, key->columns, NULL, NULL, false, NULL,
                                false, range);
    if (err != OK) return exec__fail(w->exec, err, NULL);
    ASSERT(range->point);
    return parent_exists(w, key->plan->parent, key->plan->index->tree, buf_slice(&range->low),
                         exists_out);
}

/* Count the row's own keys: +1 for each parent that is missing when a row comes, -1 when it goes.
 */
static Err
count_parents(ExecWrite *w, u8 event, const Cell *row, i64 by)
{
    for (u32 i = 0; i < w->plan->foreign_key_count; i++) {
        ForeignKey *key = &w->foreign->key[i];
        const ForeignKeyDef *def = key->plan->def;
        bool self = key->plan->parent == w->table;
        if (event == WRITE_UPDATE && !self &&
            !write__sets_any(w, key->plan->child_column, key->columns)) {
            continue;
        }
        if (by < 0 && open_violations(w, def) <= 0) continue;
        bool is_null, exists;
        Err err = find_parent(w, key, row, &is_null, &exists);
        if (err != OK) return err;
        if (!is_null && !exists) count_violations(w, def, by);
    }
    return OK;
}

/* ---- the parent's side ---- */

static const Cell *
parent_cell(const ExecWrite *w, const PlanForeignChild *child, u16 i, const Cell *row)
{
    u16 column = child->parent_column[i];
    return &row[column == COLUMN_ROWID ? w->table->column_count : column];
}

static const Collation *
parent_collation(const ExecWrite *w, const PlanForeignChild *child, u16 i)
{
    u16 column = child->parent_column[i];
    return column == COLUMN_ROWID ? NULL : w->table->column[column].collation;
}

/* Is the parent key of the two rows the same (NULL is NULL)? */
static bool
same_parent_key(const ExecWrite *w, const PlanForeignChild *child, const Cell *a, const Cell *b)
{
    for (u16 i = 0; i < child->def->column_count; i++) {
        if (cell_compare(parent_cell(w, child, i, a), parent_cell(w, child, i, b),
                         parent_collation(w, child, i)) != 0) {
            return false;
        }
    }
    return true;
}

/* A row of a table that refers to itself: does it refer to itself in fact? */
static bool
is_own_parent(const ExecWrite *w, const PlanForeignChild *child, const Cell *row)
{
    if (child->child != w->table) return false;
    for (u16 i = 0; i < child->def->column_count; i++) {
        const Cell *own = &row[child->def->column[i]];
        const Cell *parent = parent_cell(w, child, i, row);
        if (own->type == CELL_NULL || parent->type == CELL_NULL) return false;
        if (cell_compare(own, parent, parent_collation(w, child, i)) != 0) return false;
    }
    return true;
}

/* How many child rows refer to the parent key of `row`; `enough` ends the count. */
static Err
count_children(ExecWrite *w, ForeignChild *child, const Cell *row, i64 enough, i64 *count_out)
{
    const PlanForeignChild *plan = child->plan;
    *count_out = 0;
    for (u16 i = 0; i < plan->def->column_count; i++) {
        if (parent_cell(w, plan, i, row)->type == CELL_NULL) return OK;
    }
    if (child->find == NULL) {
        Err err = exec__open_child(w->exec, plan->find, &child->find);
        if (err != OK) return err;
    }
    memcpy(&exec__regs(child->find)[plan->old_reg], row,
           sizeof(Cell) * (w->table->column_count + 1u));
    Err err = exec_start(child->find, w->exec->txn, NULL, 0);
    bool more = err == OK;
    while (more && *count_out < enough) {
        err = exec_step(child->find, &more);
        if (err != OK) break;
        if (more) (*count_out)++;
    }
    if (err != OK) err = exec__adopt_error(w->exec, child->find, err);
    exec_reset(child->find);
    return err;
}

static bool
child_is_touched(const ExecWrite *w, u8 event, const PlanForeignChild *child)
{
    return event != WRITE_UPDATE ||
           write__sets_any(w, child->parent_column, child->def->column_count);
}

/* ---- what the row program calls ---- */

Err
write__foreign_before(ExecWrite *w, u8 event, const Cell *old, const Cell *fresh)
{
    if (w->foreign == NULL || old == NULL) return OK;
    Err err = count_parents(w, event, old, -1);
    for (u32 i = 0; i < w->plan->foreign_child_count && err == OK; i++) {
        ForeignChild *child = &w->foreign->child[i];
        if (!child_is_touched(w, event, child->plan)) continue;
        if (fresh != NULL && same_parent_key(w, child->plan, old, fresh)) continue;
        i64 children = 0;
        err = count_children(w, child, old, I64_MAX, &children);
        if (children > 0 && is_own_parent(w, child->plan, old)) children--;
        count_violations(w, child->plan->def, children);
    }
    return err;
}

Err
write__foreign_after(ExecWrite *w, u8 event, const Cell *old, const Cell *fresh)
{
    if (w->foreign == NULL || fresh == NULL) return OK;
    Err err = count_parents(w, event, fresh, 1);
    for (u32 i = 0; i < w->plan->foreign_child_count && err == OK; i++) {
        ForeignChild *child = &w->foreign->child[i];
        if (!child_is_touched(w, event, child->plan)) continue;
        if (old != NULL && same_parent_key(w, child->plan, old, fresh)) continue;
        i64 open = open_violations(w, child->plan->def);
        if (open <= 0) continue;
        i64 children = 0;
        err = count_children(w, child, fresh, I64_MAX, &children);
        /* The row itself was counted as a child that has its parent. */
        if (children > 0 && is_own_parent(w, child->plan, fresh)) children--;
        count_violations(w, child->plan->def, -MIN_OF(children, open));
    }
    return err;
}

Err
write__foreign_end(ExecWrite *w)
{
    if (w->foreign_open <= 0) return OK;
    return exec__fail(w->exec, ERR_CONSTRAINT_FOREIGNKEY, NULL);
}

/* ---- actions ---- */

static u8
action_of(const ExecWrite *w, const PlanForeignChild *child, u8 event)
{
    u8 action = event == WRITE_DELETE ? child->def->on_delete : child->def->on_update;
    if (action == FOREIGN_RESTRICT && w->exec->env->defer_foreign_keys) return FOREIGN_NO_ACTION;
    return action;
}

Err
write__next_action(ExecWrite *w, bool *found_out)
{
    WriteFire *fire = &w->fire;
    *found_out = false;
    for (; fire->trigger < w->plan->foreign_child_count; fire->trigger++) {
        ForeignChild *child = &w->foreign->child[fire->trigger];
        const PlanForeignChild *plan = child->plan;
        u8 action = action_of(w, plan, fire->event);
        if (action == FOREIGN_NO_ACTION || !child_is_touched(w, fire->event, plan)) continue;
        if (fire->fresh != NULL && same_parent_key(w, plan, fire->old, fire->fresh)) continue;
        if (action != FOREIGN_RESTRICT) {
            *found_out = true;
            return OK;
        }
        i64 children;
        Err err = count_children(w, child, fire->old, 1, &children);
        if (err != OK) return err;
        if (children > 0) {
            write__set_undo(w, CONFLICT_ABORT);
            return exec__fail(w->exec, ERR_CONSTRAINT_TRIGGER, "FOREIGN KEY constraint failed");
        }
    }
    return OK;
}

void
write__action_body(ExecWrite *w, const Plan **plan_out, Exec ***child_out, u32 *old_reg_out,
                   u32 *new_reg_out)
{
    ForeignChild *child = &w->foreign->child[w->fire.trigger];
    bool deletes = w->fire.event == WRITE_DELETE;
    *plan_out = deletes ? child->plan->on_delete : child->plan->on_update;
    *child_out = &child->action[deletes ? 0 : 1];
    *old_reg_out = child->plan->old_reg;
    *new_reg_out = child->plan->new_reg;
}
