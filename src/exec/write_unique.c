/*
 * write_unique.c -- uniqueness: which checks in which order, and what a row in the way leads to.
 *
 * Order, as in SQLite: the rowid; the targets of ON CONFLICT clauses as written; then the other
 * unique indexes, those that REPLACE by their own clause last; a rowid that replaces by its own
 * clause comes after them all.
 */
#include "exec/write__run.h"

/* ---- the order ---- */

typedef struct CheckList {
    ExecWrite *w;
    const WriteSet *set; /* NULL: INSERT */
    WriteUnique *unique;
    u32 count;
    bool *used; /* [index_count] */
} CheckList;

/* The ON CONFLICT clause that speaks of a constraint; upsert_count: none. */
static u32
clause_of(const ExecWrite *w, bool of_key, const IndexDef *index)
{
    const PlanWrite *plan = w->plan;
    for (u32 i = 0; i < plan->upsert_count; i++) {
        const PlanUpsert *upsert = &plan->upsert[i];
        if (upsert->any) return i;
        if (of_key && !w->table->without_rowid ? upsert->rowid
                                               : upsert->index != NULL && upsert->index == index) {
            return i;
        }
    }
    return plan->upsert_count;
}

static void
list_add(CheckList *list, bool of_key, u32 index, u8 own)
{
    const ExecWrite *w = list->w;
    u8 statement = list->set != NULL ? list->set->conflict : w->plan->conflict;
    u8 action = statement != CONFLICT_DEFAULT ? statement
                : own != CONFLICT_DEFAULT     ? own
                                              : CONFLICT_ABORT;
    u32 clause = w->plan->upsert_count;
    if (list->set == NULL) {
        clause = clause_of(w, of_key, of_key ? w->table->primary_key : w->index[index].def);
    }
    if (clause < w->plan->upsert_count) {
        action = w->plan->upsert[clause].do_nothing ? CONFLICT_IGNORE : WRITE_DO_UPDATE;
    }
    list->unique[list->count++] = (WriteUnique){
        .of_key = of_key, .action = action, .index = index, .upsert = clause};
    if (action == CONFLICT_REPLACE) list->w->may_replace = true;
}

static bool
is_checked(const CheckList *list, u32 index)
{
    return list->w->index[index].def->unique && !list->used[index] &&
           (list->set == NULL || list->set->touched[index]);
}

static void
add_index(CheckList *list, u32 index)
{
    list->used[index] = true;
    list_add(list, false, index, list->w->index[index].def->conflict);
}

/* The number in "sqlite_autoindex_TABLE_NUMBER": automatic indexes in order of creation. */
static u32
automatic_number(const IndexDef *index)
{
    u32 number = 0, place = 1;
    for (size_t at = strlen(index->name); at > 0; at--, place *= 10) {
        char c = index->name[at - 1];
        if (c < '0' || c > '9' || place > 100000000) break;
        number += place * (u32)(c - '0');
    }
    return number;
}

/* INTEGER PRIMARY KEY: it becomes an index only when all others of the table have been made. */
static bool
key_is_last_made(const TableDef *table)
{
    const IndexColumn *column = &table->primary_key->column[0];
    const char *type = table->column[column->column].type_text;
    return table->primary_key->key_columns == 1 && !column->desc && type != NULL &&
           text_compare_nocase(type, "INTEGER") == 0;
}

/* The key of a WITHOUT ROWID table stands where its index was created: indexes are listed newest
   first, so before the automatic ones that are older. */
static bool
key_comes_before(const ExecWrite *w, u32 index)
{
    const IndexDef *other = w->index[index].def;
    if (!w->table->without_rowid || other->origin != INDEX_UNIQUE) return false;
    return key_is_last_made(w->table) ||
           automatic_number(other) < automatic_number(w->table->primary_key);
}

static void
add_key(CheckList *list)
{
    const TableDef *table = list->w->table;
    list_add(list, true, 0,
             table->without_rowid ? table->primary_key->conflict : table->rowid_conflict);
}

/* The targets of ON CONFLICT clauses.  The key stands among them, or behind them. */
static void
add_targets(CheckList *list, bool *key_added)
{
    const ExecWrite *w = list->w;
    const PlanWrite *plan = w->plan;
    for (u32 i = 0; i < plan->upsert_count && !plan->upsert[i].any; i++) {
        const PlanUpsert *upsert = &plan->upsert[i];
        if (upsert->rowid || (upsert->index != NULL && upsert->index == w->table->primary_key)) {
            if (!*key_added) add_key(list);
            *key_added = true;
            continue;
        }
        for (u32 k = 0; k < w->index_count; k++) {
            if (w->index[k].def == upsert->index && is_checked(list, k)) add_index(list, k);
        }
    }
}

/* The indexes that REPLACE by their own clause, or the others; the key among them. */
static void
add_indexes(CheckList *list, bool replacing, u8 key_own, bool *key_added)
{
    const ExecWrite *w = list->w;
    bool takes_key = (key_own == CONFLICT_REPLACE) == replacing;
    for (u32 i = 0; i < w->index_count; i++) {
        if ((w->index[i].def->conflict == CONFLICT_REPLACE) != replacing) continue;
        if (takes_key && !*key_added && key_comes_before(w, i)) {
            add_key(list);
            *key_added = true;
        }
        if (is_checked(list, i)) add_index(list, i);
    }
    if (takes_key && !*key_added) {
        add_key(list);
        *key_added = true;
    }
}

Err
write__order_checks(ExecWrite *w, const WriteSet *set, WriteUnique **unique_out, u32 *count_out)
{
    Arena *arena = &w->exec->arena;
    const TableDef *table = w->table;
    CheckList list = {.w = w, .set = set};
    *unique_out = NULL;
    *count_out = 0;
    if (table->is_view) return OK;
    list.unique = ARENA_NEW_ARRAY(arena, WriteUnique, w->index_count + 1u);
    list.used = ARENA_NEW_ARRAY(arena, bool, w->index_count + 1u);
    if (list.unique == NULL || list.used == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);

    bool key_added = set != NULL && !set->changes_key; /* Or not needed. */
    u8 key_own = table->without_rowid ? table->primary_key->conflict : table->rowid_conflict;
    u8 statement = set != NULL ? set->conflict : w->plan->conflict;
    bool key_replaces = statement == CONFLICT_DEFAULT && key_own == CONFLICT_REPLACE &&
                        (set != NULL ||
                         clause_of(w, true, table->primary_key) == w->plan->upsert_count);
    bool targets = set == NULL && w->plan->upsert_count > 0 && !w->plan->upsert[0].any;

    if (!targets && !table->without_rowid && !key_replaces && !key_added) {
        add_key(&list);
        key_added = true;
    }
    if (targets) {
        add_targets(&list, &key_added);
        if (!table->without_rowid && !key_replaces && !key_added) {
            add_key(&list);
            key_added = true;
        }
    }
    add_indexes(&list, false, key_own, &key_added);
    add_indexes(&list, true, key_own, &key_added);
    *unique_out = list.unique;
    *count_out = list.count;
    return OK;
}

/* ---- failing ---- */

static Err
fail_columns(ExecWrite *w, Err code, const IndexDef *index)
{
    Buf names = {0};
    Err err = OK;
    for (u16 i = 0; i < index->key_columns && err == OK; i++) {
        u16 column = index->column[i].column;
        const char *name = column < w->table->column_count ? w->table->column[column].name
                                                           : "rowid";
        err = buf_printf(&names, "%s%s.%s", i == 0 ? "" : ", ", w->table->name, name);
    }
    if (err == OK) {
        err = exec__fail(w->exec, code, "UNIQUE constraint failed: %.*s", (int)names.bytes,
                         (const char *)names.p);
    } else {
        err = exec__fail(w->exec, err, NULL);
    }
    buf_free(&names);
    return err;
}

Err
write__fail_unique(ExecWrite *w, const WriteUnique *unique, u8 action)
{
    const TableDef *table = w->table;
    write__set_undo(w, action);
    if (unique->of_key && !table->without_rowid) {
        bool named = table->rowid_column != COLUMN_ROWID;
        return exec__fail(w->exec, named ? ERR_CONSTRAINT_PRIMARYKEY : ERR_CONSTRAINT_ROWID,
                          "UNIQUE constraint failed: %s.%s", table->name,
                          named ? table->column[table->rowid_column].name : "rowid");
    }
    const IndexDef *index = unique->of_key ? table->primary_key : w->index[unique->index].def;
    Err code = index->origin == INDEX_PRIMARY_KEY ? ERR_CONSTRAINT_PRIMARYKEY
                                                  : ERR_CONSTRAINT_UNIQUE;
    if (!unique->of_key && w->index[unique->index].has_expr) {
        return exec__fail(w->exec, code, "UNIQUE constraint failed: index '%s'", index->name);
    }
    return fail_columns(w, code, index);
}

/* ---- checking ---- */

/* The key of the row in the way, in w->victim.key. */
static Err
find_clash(ExecWrite *w, const WriteUnique *unique, bool *found_out, bool *newer_out)
{
    Slice value;
    Err err;
    *found_out = *newer_out = false;
    if (unique->of_key) {
        if (w->op == WRITE_UPDATE && !w->moves) return OK;
        Slice key = buf_slice(&w->fresh.key);
        err = store_get_newest(w->txn, w->table->tree, key, found_out, newer_out, &value);
        if (err != OK) return exec__fail_store(w->exec, err, w->txn);
        if (!*found_out) return OK;
        buf_clear(&w->victim.key);
        err = buf_append(&w->victim.key, key.p, key.bytes);
        return err == OK ? OK : exec__fail(w->exec, err, NULL);
    }
    WriteIndex *index = &w->index[unique->index];
    if (!index->fresh.present || !index->fresh.claims) return OK;
    Slice key = buf_slice(&index->fresh.key);
    err = store_get_newest(w->txn, index->def->tree, key, found_out, newer_out, &value);
    if (err != OK) return exec__fail_store(w->exec, err, w->txn);
    if (!*found_out) return OK;
    err = index_table_key(&index->codec, key, value, &w->exec->row_arena, &w->victim.key);
    if (err != OK) return exec__fail(w->exec, err, NULL);
    if (w->op == WRITE_UPDATE && slice_equal(buf_slice(&w->victim.key), buf_slice(&w->old.key))) {
        *found_out = false; /* The row itself. */
    }
    return OK;
}

static Err
load(ExecWrite *w, WriteRow *row)
{
    bool found;
    Err err = write__read_row(w, row, &found);
    if (err != OK || found) return err;
    return exec__fail(w->exec, ERR_CORRUPT, "an index of table %s leads to a missing row",
                      w->table->name);
}

Err
write__check_unique(ExecWrite *w, const WriteUnique *unique, WriteVerdict *verdict_out)
{
    bool found, newer;
    *verdict_out = WRITE_FREE;
    Err err = find_clash(w, unique, &found, &newer);
    if (err != OK || !found) return err;

    u8 action = w->recheck ? CONFLICT_ABORT : unique->action;
    bool decides = action == CONFLICT_IGNORE || action == CONFLICT_REPLACE ||
                   action == WRITE_DO_UPDATE;
    if (!decides) return write__fail_unique(w, unique, action);
    if (newer) {
        /* The snapshot cannot see that row: what to do with it cannot be decided. */
        return exec__fail(w->exec, ERR_BUSY_SNAPSHOT,
                          "could not serialize access due to concurrent update");
    }
    if (action == CONFLICT_IGNORE) {
        *verdict_out = WRITE_SKIP;
        return OK;
    }
    if (action == CONFLICT_REPLACE) {
        *verdict_out = WRITE_REPLACE;
        return load(w, &w->victim);
    }
    *verdict_out = WRITE_UPDATE_IT;
    w->sets = &w->upsert[unique->upsert];
    buf_clear(&w->old.key);
    err = buf_append(&w->old.key, w->victim.key.p, w->victim.key.bytes);
    if (err != OK) return exec__fail(w->exec, err, NULL);
    return load(w, &w->old);
}
