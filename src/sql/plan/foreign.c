/*
 * foreign.c -- foreign keys of a write: where parents are looked up, how children are found, and
 * the actions, which are statements made as text and planned like the bodies of triggers.
 */
#include "sql/plan/build.h"

#include "sql/parse/parse.h"

/* May the statement delete rows that are in the way of others? */
static bool
may_replace(const PlanWrite *write)
{
    const TableDef *table = write->table;
    if (write->conflict != CONFLICT_DEFAULT) return write->conflict == CONFLICT_REPLACE;
    bool replaces = table->rowid_conflict == CONFLICT_REPLACE;
    if (table->primary_key != NULL) replaces |= table->primary_key->conflict == CONFLICT_REPLACE;
    for (u32 i = 0; i < table->index_count; i++)
        replaces |= table->index[i]->conflict == CONFLICT_REPLACE;
    return replaces;
}

static bool
set_has(const PlanWrite *write, u32 column)
{
    for (u32 i = 0; i < write->set_count; i++) {
        if (write->set_column[i] == column) return true;
    }
    return false;
}

static bool
same_name(const char *a, const char *c)
{
    return slice_equal_nocase(bind__text(a), bind__text(c));
}

static i32
column_number(const TableDef *table, const char *name)
{
    for (u32 i = 0; i < table->column_count; i++) {
        if (same_name(table->column[i].name, name)) return (i32)i;
    }
    return -1;
}

static void *
mismatch(Binder *b, const TableDef *child, const char *parent)
{
    return bind__fail(b, ERR_SQL, "foreign key mismatch - \"%s\" referencing \"%s\"", child->name,
                      parent);
}

/* ---- the parent's key ---- */

typedef struct ParentKey {
    const IndexDef *index; /* NULL: the rowid. */
    u16 *parent_column;    /* By column of the foreign key. */
    u16 *child_column;     /* By column of the index. */
} ParentKey;

/* Does the unique index consist of exactly the columns that the key names?  Then tell which of them
   each index column is. */
static bool
index_fits(const TableDef *parent, const ForeignKeyDef *def, const IndexDef *index, u16 *child)
{
    if (!index->unique || index->where_sql != NULL || index->key_columns != def->column_count)
        return false;
    for (u32 i = 0; i < index->key_columns; i++) {
        const IndexColumn *column = &index->column[i];
        if (column->column >= parent->column_count) return false;
        const ColumnDef *parent_column = &parent->column[column->column];
        if (bind__collation_or_binary(column->collation) !=
            bind__collation_or_binary(parent_column->collation))
            return false;
        if (column->host_collation != NULL || parent_column->host_collation != NULL) return false;
        bool found = false;
        for (u32 k = 0; k < def->column_count && !found; k++) {
            if (!same_name(parent_column->name, def->parent_column[k])) continue;
            child[i] = def->column[k];
            found = true;
        }
        if (!found) return false;
    }
    return true;
}

static const IndexDef *
primary_index(const TableDef *parent)
{
    if (parent->primary_key != NULL) return parent->primary_key;
    for (u32 i = 0; i < parent->index_count; i++) {
        if (parent->index[i]->origin == INDEX_PRIMARY_KEY) return parent->index[i];
    }
    return NULL;
}

/* The key without column names: the parent's primary key. */
static bool
implied_key(const TableDef *parent, const ForeignKeyDef *def, ParentKey *key)
{
    if (parent->rowid_column != COLUMN_ROWID) {
        if (def->column_count != 1) return false;
        key->child_column[0] = def->column[0];
        key->parent_column[0] = parent->rowid_column;
        return true;
    }
    key->index = primary_index(parent);
    if (key->index == NULL || key->index->key_columns != def->column_count) return false;
    for (u32 i = 0; i < def->column_count; i++) {
        key->child_column[i] = def->column[i];
        key->parent_column[i] = key->index->column[i].column;
    }
    return true;
}

static bool
named_key(const TableDef *parent, const ForeignKeyDef *def, ParentKey *key)
{
    for (u32 i = 0; i < def->column_count; i++) {
        i32 column = column_number(parent, def->parent_column[i]);
        if (column < 0) return false;
        key->parent_column[i] = (u16)column;
    }
    if (def->column_count == 1 && parent->rowid_column != COLUMN_ROWID &&
        key->parent_column[0] == parent->rowid_column) {
        key->child_column[0] = def->column[0];
        return true;
    }
    if (parent->primary_key != NULL &&
        index_fits(parent, def, parent->primary_key, key->child_column)) {
        key->index = parent->primary_key;
        return true;
    }
    for (u32 i = 0; i < parent->index_count; i++) {
        if (!index_fits(parent, def, parent->index[i], key->child_column)) continue;
        key->index = parent->index[i];
        return true;
    }
    return false;
}

static bool
find_key(const TableDef *parent, const ForeignKeyDef *def, ParentKey *key)
{
    if (parent->is_view) return false;
    bool implied = def->parent_column == NULL || def->parent_column[0] == NULL;
    return implied ? implied_key(parent, def, key) : named_key(parent, def, key);
}

static bool
parent_key(Binder *b, const TableDef *child, const TableDef *parent, const ForeignKeyDef *def,
           ParentKey *key)
{
    *key = (ParentKey){0};
    key->child_column = KEEP_ARRAY(b, u16, def->column_count);
    key->parent_column = KEEP_ARRAY(b, u16, def->column_count);
    if (key->child_column == NULL || key->parent_column == NULL) return false;
    if (find_key(parent, def, key)) return true;
    mismatch(b, child, def->parent_table);
    return false;
}

bool
plan_foreign_parent(const TableDef *parent, const ForeignKeyDef *def, u16 *child_column,
                    u16 *parent_column)
{
    ParentKey key = {.child_column = child_column, .parent_column = parent_column};
    return find_key(parent, def, &key);
}

/* Has the parent what the key refers to? */
static bool
has_key(Binder *b, const TableDef *parent, const ForeignKeyDef *def)
{
    ParentKey key = {.child_column = BIND_ARRAY(b, u16, def->column_count),
                     .parent_column = BIND_ARRAY(b, u16, def->column_count)};
    return key.child_column != NULL && key.parent_column != NULL && find_key(parent, def, &key);
}

/* ---- the child's side ---- */

static bool
plan_keys(Binder *b, Target *target)
{
    const TableDef *table = target->table;
    PlanWrite *write = target->write;
    if (table->foreign_key_count == 0) return true;
    write->foreign_key = KEEP_ARRAY(b, PlanForeignKey, table->foreign_key_count);
    if (write->foreign_key == NULL) return false;
    /* The key declared last comes first, as in SQLite. */
    for (u32 i = table->foreign_key_count; i > 0; i--) {
        const ForeignKeyDef *def = &table->foreign_key[i - 1];
        PlanForeignKey *out = &write->foreign_key[write->foreign_key_count];
        out->def = def;
        out->touched = write->kind != WRITE_UPDATE;
        for (u32 k = 0; k < def->column_count; k++)
            out->touched |= set_has(write, def->column[k]);
        out->parent = catalog_view_table(b->ctx->catalog, bind__text(table->schema),
                                         bind__text(def->parent_table), NULL);
        out->child_column = def->column;
        bool self = same_name(def->parent_table, table->name);
        if (!out->touched && !self && !may_replace(write)) continue;
        write->foreign_key_count++;
        if (out->parent == NULL && !b->ctx->foreign_lenient) {
            bind__fail(b, ERR_SQL, "no such table: %s.%s", table->schema, def->parent_table);
            return false;
        }
        if (out->parent == NULL) continue;
        if (b->ctx->foreign_lenient && !has_key(b, out->parent, def)) {
            write->foreign_key_count--;
            continue;
        }
        ParentKey key;
        if (!parent_key(b, table, out->parent, def, &key)) return false;
        out->index = key.index;
        out->child_column = key.child_column;
        if (!bind__use_table(b, out->parent, false)) return false;
    }
    return true;
}

/* ---- the parent's side: statements about children ---- */

typedef struct Action {
    const TableDef *child, *parent;
    const ForeignKeyDef *def;
    const u16 *parent_column;
    u32 old_reg;
} Action;

static Err
put_name(Buf *sql, const char *name)
{
    return sql_name_append(sql, bind__text(name), true);
}

static Err
put_parent(const Action *a, Buf *sql, const char *row, u32 at)
{
    Err err = buf_append_text(sql, row);
    if (err == OK) err = put_name(sql, a->parent->column[a->parent_column[at]].name);
    return err;
}

static Err
put_where(const Action *a, Buf *sql)
{
    Err err = OK;
    for (u32 i = 0; i < a->def->column_count && err == OK; i++) {
        err = buf_append_text(sql, i == 0 ? " WHERE " : " AND ");
        if (err == OK) err = put_parent(a, sql, "old.", i);
        if (err == OK) err = buf_append_text(sql, " = ");
        if (err == OK) err = put_name(sql, a->child->column[a->def->column[i]].name);
    }
    return err;
}

static Err
put_set(const Action *a, Buf *sql, u8 action)
{
    Err err = OK;
    for (u32 i = 0; i < a->def->column_count && err == OK; i++) {
        const ColumnDef *column = &a->child->column[a->def->column[i]];
        err = buf_append_text(sql, i == 0 ? " SET " : ", ");
        if (err == OK) err = put_name(sql, column->name);
        if (err == OK) err = buf_append_text(sql, " = ");
        if (err != OK) break;
        if (action == FOREIGN_CASCADE) {
            err = put_parent(a, sql, "new.", i);
        } else if (action == FOREIGN_SET_DEFAULT && column->default_sql != NULL) {
            err = buf_printf(sql, "(%s)", column->default_expr);
        } else {
            err = buf_append_text(sql, "NULL");
        }
    }
    return err;
}

static Err
put_statement(const Action *a, Buf *sql, u8 action, bool on_update, bool find)
{
    bool remove = !find && action == FOREIGN_CASCADE && !on_update;
    Err err = buf_append_text(sql, find ? "SELECT 1 FROM " : remove ? "DELETE FROM " : "UPDATE ");
    if (err == OK) err = put_name(sql, a->child->name);
    if (err == OK && !find && !remove) err = put_set(a, sql, action);
    return err == OK ? put_where(a, sql) : err;
}

static bool
plan_text(Binder *b, const Action *a, const Buf *text, Plan *plan)
{
    Slice sql = SLICE(arena_strndup(b->scratch, text->p, text->bytes), text->bytes);
    AstStatement *ast = NULL;
    size_t consumed = 0;
    if (sql.p == NULL) return bind__fail(b, ERR_NOMEM, "out of memory") != NULL;
    Err err = sql_parse(b->scratch, sql, NULL, &ast, &consumed, b->msg);
    if (err != OK) {
        if (b->err == OK) b->err = err;
        return false;
    }
    Binder inner;
    plan__inner_begin(b, &inner, plan, sql);
    inner.scope = plan__row_scope(b, a->parent, a->old_reg, true, true);
    /* Children are found as the check finds their parents: with the parent's affinity. */
    for (u32 i = 0; inner.scope != NULL && i < inner.scope->row_count; i++)
        inner.scope->row[i]->bare = SOURCE_BARE_NOT;
    inner.fixed_schema = a->child->schema;
    inner.fixed_is_temp = false;
    if (inner.scope != NULL) (void)plan__any(&inner, ast);
    return plan__inner_end(b, &inner);
}

static bool
has_statement(u8 action)
{
    return action == FOREIGN_CASCADE || action == FOREIGN_SET_NULL || action == FOREIGN_SET_DEFAULT;
}

static bool
plan_action(Binder *b, const Action *a, u8 action, bool on_update, bool find, Plan *plan)
{
    if (plan == NULL) return b->err == OK;
    Buf sql = {0};
    bool good = put_statement(a, &sql, action, on_update, find) == OK;
    if (!good) bind__fail(b, ERR_NOMEM, "out of memory");
    good = good && plan_text(b, a, &sql, plan);
    buf_free(&sql);
    return good;
}

#define ACTION_PLANS_MAX 400u

/* The plans for one foreign key, made once: a key that leads back to itself makes a cycle. */
static PlanForeignChild *
plan_child(Binder *b, const TableDef *child, const TableDef *parent, const ForeignKeyDef *def)
{
    PlanForeignChild *made = plan__memo_find(b, def, PLAN_MEMO_FOREIGN);
    if (made != NULL) return made;
    if (b->trigger_depth >= ACTION_PLANS_MAX)
        return bind__fail(b, ERR_SQL, "triggers nested too deep");
    ParentKey key;
    made = KEEP_NEW(b, PlanForeignChild);
    if (made == NULL || !parent_key(b, child, parent, def, &key)) return NULL;
    if (!plan__memo_add(b, def, PLAN_MEMO_FOREIGN, made)) return NULL;
    made->def = def;
    made->child = child;
    made->parent_column = key.parent_column;
    made->old_reg = *b->reg_next;
    made->new_reg = made->old_reg + parent->column_count + 1u;
    *b->reg_next += 2 * (parent->column_count + 1u);
    Action a = {child, parent, def, key.parent_column, made->old_reg};
    /* The plans exist before they are filled, for those that lead back here. */
    made->find = plan__inner_new(b);
    if (has_statement(def->on_delete)) made->on_delete = plan__inner_new(b);
    if (has_statement(def->on_update)) made->on_update = plan__inner_new(b);
    bool good = b->err == OK && plan_action(b, &a, 0, false, true, made->find) &&
                plan_action(b, &a, def->on_delete, false, false, made->on_delete) &&
                plan_action(b, &a, def->on_update, true, false, made->on_update);
    return good ? made : NULL;
}

static bool
refers_to(const ForeignKeyDef *def, const TableDef *parent)
{
    return same_name(def->parent_table, parent->name);
}

/* A new parent neither breaks nor mends a key that is checked at once, so SQLite does not look at
   such keys when a statement inserts one row. */
static bool
inserts_one(const Binder *b, const Target *target)
{
    const PlanWrite *write = target->write;
    for (u32 i = 0; i < write->upsert_count; i++) {
        if (!write->upsert[i].do_nothing) return false;
    }
    return write->kind == WRITE_INSERT && b->outer == NULL && target->one_row;
}

static bool
plan_children(Binder *b, Target *target)
{
    const CatalogView *view = b->ctx->catalog;
    const TableDef *parent = target->table;
    PlanWrite *write = target->write;
    const Catalog *catalog = parent->database < view->count ? view->db[parent->database].catalog
                                                            : NULL;
    if (catalog == NULL) return true;
    u32 total = 0;
    for (u32 t = 0; t < catalog_table_count(catalog); t++) {
        const TableDef *child = catalog_table_at(catalog, t);
        for (u32 i = 0; i < child->foreign_key_count; i++)
            total += refers_to(&child->foreign_key[i], parent) ? 1 : 0;
    }
    if (total == 0) return true;
    write->foreign_child = KEEP_ARRAY(b, PlanForeignChild, total);
    if (write->foreign_child == NULL) return false;
    /* The newest table and key first: it shows in which action runs before which. */
    for (u32 t = catalog_table_count(catalog); t > 0; t--) {
        const TableDef *child = catalog_table_at(catalog, t - 1);
        for (u32 i = child->foreign_key_count; i > 0; i--) {
            const ForeignKeyDef *def = &child->foreign_key[i - 1];
            if (!refers_to(def, parent)) continue;
            bool passes = b->ctx->foreign_lenient || (inserts_one(b, target) && !def->deferred);
            if (passes && !has_key(b, parent, def)) continue;
            PlanForeignChild *made = plan_child(b, child, parent, def);
            if (made == NULL) return false;
            PlanForeignChild *out = &write->foreign_child[write->foreign_child_count++];
            *out = *made;
            out->touched = write->kind != WRITE_UPDATE;
            for (u32 k = 0; k < def->column_count; k++)
                out->touched |= set_has(write, made->parent_column[k]);
            if (!bind__use_table(b, child, false)) return false;
        }
    }
    return true;
}

bool
plan__foreign_keys(Binder *b, Target *target)
{
    if (!b->ctx->foreign_keys || target->table->is_view) return true;
    return plan_keys(b, target) && plan_children(b, target);
}
