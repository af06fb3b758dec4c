/*
 * ddl.c -- what CREATE and DROP do to the catalog: rows, trees, the next version.
 *
 * Every change works on one unit: take its rows, add or remove some, build the unit anew (which
 * checks it), write the difference to sqlite_schema, raise the version, derive the catalog.  All of
 * it happens in the caller's transaction, so a rollback takes it back whole.
 */
#include "sql/catalog/catalog_unit.h"
#include "sql/parse/parse.h"
#include "sql/parse/walk.h"
#include "value/collate.h"

static Slice
text_slice(const char *text)
{
    return SLICE(text, strlen(text));
}

/* Errors of the store carry their text in the transaction. */
static Err
store_error(DdlContext *ddl, Err err)
{
    if (err == OK) return OK;
    const ErrMsg *cause = store_txn_error(ddl->txn);
    return err_set(ddl->msg, err, "%s", cause->err == err ? err_message(cause) : err_text(err));
}

static UnitContext
unit_context(DdlContext *ddl)
{
    return (UnitContext){
        .env = ddl->env,
        .version = (u32)catalog_get_version(ddl->old) + 1,
        .creating = true,
        .msg = ddl->msg,
    };
}

static Err
bump_version(DdlContext *ddl)
{
    return store_error(ddl, catalog_set_number(ddl->txn, SCHEMA_VERSION_NUMBER,
                                               (i64)catalog_get_version(ddl->old) + 1));
}

static bool
same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool
same_row(const SchemaRow *a, const SchemaRow *b)
{
    return a->tree == b->tree && same_text(a->name, b->name) && same_text(a->table, b->table) &&
           same_text(a->sql, b->sql);
}

/* Write the rows of `unit` that `before` (may be NULL) lacks, and remove those that are gone. */
static Err
write_difference(DdlContext *ddl, const CatalogUnit *before, const CatalogUnit *after)
{
    TreeId tree = catalog__schema_tree(ddl->old);
    Err err = OK;
    u32 i = 0, k = 0;
    u32 old_count = before == NULL ? 0 : before->row_count;
    u32 new_count = after == NULL ? 0 : after->row_count;
    /* Both are in rowid order. */
    while (err == OK && (i < old_count || k < new_count)) {
        if (k == new_count || (i < old_count && before->row[i].rowid < after->row[k].rowid)) {
            err = catalog__row_delete(ddl->txn, tree, before->row[i++].rowid);
        } else if (i == old_count || after->row[k].rowid < before->row[i].rowid) {
            err = catalog__row_insert(ddl->txn, tree, &after->row[k++]);
        } else {
            /* ALTER changes a row in place. */
            if (!same_row(&before->row[i], &after->row[k])) {
                err = catalog__row_insert(ddl->txn, tree, &after->row[k]);
            }
            i++;
            k++;
        }
    }
    return store_error(ddl, err);
}

/* Finish a change: `unit` takes the place of `before`; either may be NULL.  Takes over `unit`. */
Err
catalog__finish(DdlContext *ddl, const CatalogUnit *before, CatalogUnit *unit, Catalog **new_out)
{
    Err err = write_difference(ddl, before, unit);
    if (err == OK) err = bump_version(ddl);
    if (err == OK) err = catalog__statistics_keep(before, unit);
    if (err != OK) {
        catalog__unit_release(unit);
        return err;
    }
    return catalog__derive(ddl->old, catalog_get_version(ddl->old) + 1, before, unit, new_out);
}

static Err
name_is_allowed(DdlContext *ddl, const AstName *name)
{
    Slice text = name->text;
    if (!ddl->reserved_names && text.bytes >= 7 &&
        slice_equal_nocase(SLICE(text.p, 7), SLICE_LITERAL("sqlite_"))) {
        return err_set(ddl->msg, ERR_SQL, "object name reserved for internal use: %.*s",
                       (int)text.bytes, (const char *)text.p);
    }
    return OK;
}

/* "CREATE TABLE " and the statement from the object's name on. */
static char *
stored_text(DdlContext *ddl, Arena *arena, const char *head, Span stored)
{
    return arena_printf(arena, "%s %.*s", head, (int)stored.bytes,
                        (const char *)ddl->sql.p + stored.offset);
}

static char *
name_text(Arena *arena, const AstName *name)
{
    return arena_strndup(arena, name->text.p, name->text.bytes);
}

Err
catalog__table_name_is_free(DdlContext *ddl, const AstName *name)
{
    Err err = name_is_allowed(ddl, name);
    if (err != OK) return err;
    Slice text = name->text;
    const TableDef *table = catalog_find_table(ddl->old, text);
    if (table != NULL) {
        return err_set_at(ddl->msg, ERR_SQL, (i32)name->span.offset, "%s %.*s already exists",
                          table->is_view ? "view" : "table", (int)name->span.bytes,
                          (const char *)ddl->sql.p + name->span.offset);
    }
    if (catalog_find_index(ddl->old, text) != NULL) {
        return err_set(ddl->msg, ERR_SQL, "there is already an index named %.*s", (int)text.bytes,
                       (const char *)text.p);
    }
    return OK;
}

/* Build a unit from edited rows; `after_what` completes "error in index i after drop column: ...".
 */
Err
catalog__unit_rebuild(DdlContext *ddl, const SchemaRow *row, u32 row_count, const char *after_what,
                      CatalogUnit **unit_out)
{
    UnitContext context = unit_context(ddl);
    context.after_what = after_what;
    if (after_what != NULL) {
        context.check_table = ddl->check_table;
        context.check_index = ddl->check_index;
        context.check_arg = ddl->check_arg;
    }
    return catalog__unit_build(&context, row, row_count, unit_out);
}

/* ---- tables ---- */

/* Trees for the table and its automatic indexes, and the rows of the latter. */
static Err
create_trees(DdlContext *ddl, CatalogUnit *unit)
{
    TableDef *table = unit->table;
    SchemaRow *row = ARENA_NEW_ARRAY(&unit->arena, SchemaRow,
                                     unit->row_count + table->index_count + 1u);
    if (row == NULL) return ERR_NOMEM;
    memcpy(row, unit->row, sizeof(*row) * unit->row_count);
    unit->row = row;
    Err err = store_tree_create(ddl->txn, table->without_rowid ? STORE_TREE_BYTES : STORE_TREE_INT,
                                &table->tree);
    if (err != OK) return store_error(ddl, err);
    row[0].tree = table->tree;
    table->schema_lock_no = table->tree;
    if (table->primary_key != NULL) table->primary_key->tree = table->tree;
    /* The list is newest first; rows go in the order of creation. */
    for (u32 i = table->index_count; i-- > 0;) {
        IndexDef *index = table->index[i];
        err = store_tree_create(ddl->txn, STORE_TREE_BYTES, &index->tree);
        if (err != OK) return store_error(ddl, err);
        row[unit->row_count] = (SchemaRow){
            .rowid = row[0].rowid + unit->row_count,
            .type = ROW_INDEX,
            .name = index->name,
            .table = unit->table_name,
            .tree = index->tree,
        };
        unit->row_count++;
    }
    return OK;
}

static Err
create_table_from(DdlContext *ddl, const char *name, const char *sql, Catalog **new_out)
{
    SchemaRow row = {
        .rowid = catalog__rowid_max(ddl->old) + 1,
        .type = ROW_TABLE,
        .name = name,
        .table = name,
        .sql = sql,
    };
    UnitContext context = unit_context(ddl);
    CatalogUnit *unit;
    /* A temp trigger on a table of main makes a unit without a table; it goes on. */
    CatalogUnit *before = catalog__unit_of(ddl->old, text_slice(name));
    ASSERT(before == NULL || before->table == NULL);
    Err err = catalog__unit_build(&context, &row, 1, &unit);
    if (err != OK) return err;
    err = create_trees(ddl, unit);
    if (err != OK) {
        catalog__unit_release(unit);
        return err;
    }
    return catalog__finish(ddl, NULL, unit, new_out);
}

/* AUTOINCREMENT needs sqlite_sequence. */
static Err
ensure_sequence_table(DdlContext *ddl, Catalog **catalog)
{
    static const char name[] = "sqlite_sequence";
    if (catalog_find_table(*catalog, SLICE_LITERAL("sqlite_sequence")) != NULL) return OK;
    DdlContext next = *ddl;
    Catalog *derived = NULL;
    next.old = *catalog;
    Err err = create_table_from(&next, name, "CREATE TABLE sqlite_sequence(name,seq)", &derived);
    if (err != OK) return err;
    catalog_release(*catalog);
    *catalog = derived;
    return OK;
}

Err
ddl_create_stat_table(DdlContext *ddl, Catalog **new_out)
{
    *new_out = NULL;
    return create_table_from(ddl, "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
                             new_out);
}

Err
ddl_read_statistics(DdlContext *ddl, Catalog **new_out)
{
    *new_out = NULL;
    Err err = bump_version(ddl);
    return err == OK ? catalog_load(ddl->txn, ddl->env, new_out, ddl->msg) : err;
}

Err
ddl_create_table(DdlContext *ddl, const AstCreateTable *ast, Catalog **new_out)
{
    ASSERT(ast->as_select == NULL);
    *new_out = NULL;
    Err err = catalog__table_name_is_free(ddl, &ast->name);
    if (err != OK) return err;
    Arena arena;
    arena_init(&arena, NULL);
    char *name = name_text(&arena, &ast->name);
    char *sql = stored_text(ddl, &arena, "CREATE TABLE", ast->stored);
    err = name == NULL || sql == NULL ? ERR_NOMEM : create_table_from(ddl, name, sql, new_out);
    if (err == OK && catalog_find_table(*new_out, text_slice(name))->autoincrement) {
        err = ensure_sequence_table(ddl, new_out);
        if (err != OK) {
            catalog_release(*new_out);
            *new_out = NULL;
        }
    }
    arena_free(&arena);
    return err;
}

Err
ddl_create_table_as(DdlContext *ddl, const AstCreateTable *ast, u32 column_count,
                    const char *const *name, const char *const *type, Catalog **new_out)
{
    *new_out = NULL;
    Err err = catalog__table_name_is_free(ddl, &ast->name);
    if (err != OK) return err;
    Buf sql = {0};
    size_t width = 0;
    for (u32 i = 0; i < column_count; i++)
        width += strlen(name[i]) + (type[i] == NULL ? 0 : strlen(type[i])) + 5;
    /* SQLite breaks long column lists into lines. */
    const char *first = width < 50 ? "" : "\n  ";
    const char *between = width < 50 ? "," : ",\n  ";
    const char *last = width < 50 ? ")" : "\n)";
    err = buf_append_text(&sql, "CREATE TABLE ");
    if (err == OK) err = sql_name_append(&sql, ast->name.text, false);
    if (err == OK) err = buf_append_text(&sql, "(");
    for (u32 i = 0; err == OK && i < column_count; i++) {
        err = buf_append_text(&sql, i == 0 ? first : between);
        if (err == OK) err = sql_name_append(&sql, text_slice(name[i]), false);
        if (err == OK && type[i] != NULL) err = buf_printf(&sql, " %s", type[i]);
    }
    if (err == OK) err = buf_append_text(&sql, last);
    if (err == OK) err = buf_append_byte(&sql, 0);
    char *table_name = mem_strndup(ast->name.text.p, ast->name.text.bytes);
    if (err == OK && table_name == NULL) err = ERR_NOMEM;
    if (err == OK) err = create_table_from(ddl, table_name, (const char *)sql.p, new_out);
    mem_free(table_name);
    buf_free(&sql);
    return err;
}

/* ---- references to other databases ---- */

typedef struct Foreign {
    DdlContext *ddl;
    const char *kind;
    Span name; /* Of what is made. */
    Err err;
} Foreign;

static void
check_schema_name(void *arg, AstRole role, const AstName *name)
{
    Foreign *foreign = arg;
    DdlContext *ddl = foreign->ddl;
    if (role != AST_ROLE_SCHEMA || foreign->err != OK || !ast_name_present(name)) return;
    if (slice_equal_nocase(name->text, text_slice(ddl->env->schema))) return;
    foreign->err = err_set(ddl->msg, ERR_SQL, "%s %.*s cannot reference objects in database %.*s",
                           foreign->kind, (int)foreign->name.bytes,
                           (const char *)ddl->sql.p + foreign->name.offset, (int)name->text.bytes,
                           (const char *)name->text.p);
}

/* What is stored in a database speaks of that database alone, unless it is the temporary one. */
static Err
check_references(DdlContext *ddl, const char *kind, Span name, const AstSelect *select,
                 const AstCreateTrigger *trigger)
{
    Foreign foreign = {.ddl = ddl, .kind = kind, .name = name};
    const AstVisitor visitor = {.arg = &foreign, .name = check_schema_name};
    if (ddl->env->database == 1) return OK;
    if (select != NULL) ast_walk_select(&visitor, select);
    for (u32 i = 0; trigger != NULL && i < trigger->count; i++)
        ast_walk_statement(&visitor, trigger->steps[i]);
    return foreign.err;
}

Err
ddl_create_view(DdlContext *ddl, const AstCreateView *ast, Catalog **new_out)
{
    *new_out = NULL;
    Err err = catalog__table_name_is_free(ddl, &ast->name);
    if (err == OK) err = check_references(ddl, "view", ast->name.span, ast->select, NULL);
    if (err != OK) return err;
    Arena arena;
    arena_init(&arena, NULL);
    SchemaRow row = {
        .rowid = catalog__rowid_max(ddl->old) + 1,
        .type = ROW_VIEW,
        .name = name_text(&arena, &ast->name),
        .sql = stored_text(ddl, &arena, "CREATE VIEW", ast->stored),
    };
    row.table = row.name;
    CatalogUnit *unit = NULL;
    UnitContext context = unit_context(ddl);
    err = row.name == NULL || row.sql == NULL ? ERR_NOMEM
                                              : catalog__unit_build(&context, &row, 1, &unit);
    if (err == OK) err = catalog__finish(ddl, NULL, unit, new_out);
    arena_free(&arena);
    return err;
}

/* ---- collations ---- */

static void
check_collation_name(void *arg, AstRole role, const AstName *name)
{
    Foreign *missing = arg;
    const CatalogEnv *env = missing->ddl->env;
    if (role != AST_ROLE_COLLATION || missing->err != OK || !ast_name_present(name)) return;
    if (collation_find_builtin(name->text) != NULL) return;
    if (env->find_collation != NULL && env->find_collation(env->arg, name->text) != NULL) return;
    missing->err = err_set(missing->ddl->msg, ERR_NO_COLLATION, "no such collation sequence: %.*s",
                           (int)name->text.bytes, (const char *)name->text.p);
}

Err
ddl_check_collations(DdlContext *ddl, const AstStatement *statement)
{
    Foreign missing = {.ddl = ddl};
    const AstVisitor visitor = {.arg = &missing, .name = check_collation_name};
    ast_walk_statement(&visitor, statement);
    return missing.err;
}

/* ---- indexes and triggers: rows added to a unit ---- */

static Err
add_row(DdlContext *ddl, const CatalogUnit *before, const SchemaRow *row, CatalogUnit **unit_out)
{
    u32 count = before == NULL ? 0 : before->row_count;
    SchemaRow *rows = MEM_NEW_ARRAY(SchemaRow, count + 1);
    if (rows == NULL) return ERR_NOMEM;
    if (count > 0) memcpy(rows, before->row, sizeof(*rows) * count);
    rows[count] = *row;
    UnitContext context = unit_context(ddl);
    Err err = catalog__unit_build(&context, rows, count + 1, unit_out);
    mem_free(rows);
    return err;
}

static Err
remove_row(DdlContext *ddl, const CatalogUnit *before, RowType type, const char *name,
           CatalogUnit **unit_out)
{
    *unit_out = NULL;
    SchemaRow *rows = MEM_NEW_ARRAY(SchemaRow, before->row_count + 1);
    if (rows == NULL) return ERR_NOMEM;
    u32 count = 0;
    for (u32 i = 0; i < before->row_count; i++) {
        const SchemaRow *row = &before->row[i];
        if (row->type == type && text_compare_nocase(row->name, name) == 0) continue;
        rows[count++] = *row;
    }
    UnitContext context = unit_context(ddl);
    context.creating = false;
    Err err = count == 0 ? OK : catalog__unit_build(&context, rows, count, unit_out);
    mem_free(rows);
    return err;
}

static Err
index_table(DdlContext *ddl, const AstCreateIndex *ast, const TableDef **table_out)
{
    Slice name = ast->table.text;
    const TableDef *table = catalog_find_table(ddl->old, name);
    *table_out = table;
    if (table == NULL) {
        return err_set(ddl->msg, ERR_SQL, "no such table: %s.%.*s", ddl->env->schema,
                       (int)name.bytes, (const char *)name.p);
    }
    if (table->is_system) {
        return err_set(ddl->msg, ERR_SQL, "table %s may not be indexed", table->name);
    }
    if (table->is_view) return err_set(ddl->msg, ERR_SQL, "views may not be indexed");
    if (table->is_virtual) {
        return err_set(ddl->msg, ERR_SQL, "virtual tables may not be indexed");
    }
    name = ast->name.text;
    if (catalog_find_table(ddl->old, name) != NULL) {
        return err_set(ddl->msg, ERR_SQL, "there is already a table named %.*s", (int)name.bytes,
                       (const char *)name.p);
    }
    if (catalog_find_index(ddl->old, name) != NULL) {
        return err_set(ddl->msg, ERR_SQL, "index %.*s already exists", (int)name.bytes,
                       (const char *)name.p);
    }
    return OK;
}

Err
ddl_create_index(DdlContext *ddl, const AstCreateIndex *ast, Catalog **new_out,
                 const IndexDef **index_out)
{
    *new_out = NULL;
    *index_out = NULL;
    const TableDef *table;
    Err err = name_is_allowed(ddl, &ast->name);
    if (err == OK) err = index_table(ddl, ast, &table);
    if (err != OK) return err;
    CatalogUnit *before = catalog__unit_of(ddl->old, text_slice(table->name));
    Arena arena;
    arena_init(&arena, NULL);
    SchemaRow row = {
        .rowid = catalog__rowid_max(ddl->old) + 1,
        .type = ROW_INDEX,
        .name = name_text(&arena, &ast->name),
        .table = before->table_name,
        .sql = stored_text(ddl, &arena, ast->unique ? "CREATE UNIQUE INDEX" : "CREATE INDEX",
                           ast->stored),
    };
    CatalogUnit *unit = NULL;
    err = row.name == NULL || row.sql == NULL ? ERR_NOMEM : OK;
    if (err == OK) {
        err = store_error(ddl, store_tree_create(ddl->txn, STORE_TREE_BYTES, &row.tree));
    }
    if (err == OK) err = add_row(ddl, before, &row, &unit);
    if (err == OK) err = catalog__finish(ddl, before, unit, new_out);
    if (err == OK) *index_out = catalog_find_index(*new_out, text_slice(row.name));
    arena_free(&arena);
    return err;
}

static Err
trigger_table(DdlContext *ddl, const AstCreateTrigger *ast, const TableDef *table)
{
    Slice name = ast->table.text, schema = ast->table_schema.text;
    if (!ast_name_present(&ast->table_schema) && ddl->env->database != 1)
        schema = text_slice(ddl->env->schema);
    if (table == NULL) {
        return err_set(ddl->msg, ERR_SQL, "no such table: %.*s%s%.*s", (int)schema.bytes,
                       schema.p == NULL ? "" : (const char *)schema.p, schema.p == NULL ? "" : ".",
                       (int)name.bytes, (const char *)name.p);
    }
    if (table->is_system)
        return err_set(ddl->msg, ERR_SQL, "cannot create trigger on system table");
    if (table->is_virtual)
        return err_set(ddl->msg, ERR_SQL, "cannot create triggers on virtual tables");
    if (table->is_view && ast->time != AST_TRIGGER_INSTEAD) {
        return err_set(ddl->msg, ERR_SQL, "cannot create %s trigger on view: %.*s",
                       ast->time == AST_TRIGGER_BEFORE ? "BEFORE" : "AFTER", (int)name.bytes,
                       (const char *)name.p);
    }
    if (!table->is_view && ast->time == AST_TRIGGER_INSTEAD) {
        return err_set(ddl->msg, ERR_SQL, "cannot create INSTEAD OF trigger on table: %.*s",
                       (int)name.bytes, (const char *)name.p);
    }
    name = span_slice(ddl->sql, ast->name.span);
    if (catalog_find_trigger(ddl->old, ast->name.text) != NULL) {
        return err_set(ddl->msg, ERR_SQL, "trigger %.*s already exists", (int)name.bytes,
                       (const char *)name.p);
    }
    return OK;
}

Err
ddl_create_trigger(DdlContext *ddl, const AstCreateTrigger *ast, const TableDef *table,
                   Catalog **new_out)
{
    *new_out = NULL;
    Err err = name_is_allowed(ddl, &ast->name);
    if (err == OK) err = trigger_table(ddl, ast, table);
    if (err == OK) err = check_references(ddl, "trigger", ast->name.span, NULL, ast);
    if (err != OK) return err;
    /* A loose one is a unit by itself. */
    CatalogUnit *before = NULL;
    if (table->database == ddl->env->database)
        before = catalog__unit_of(ddl->old, text_slice(table->name));
    Arena arena;
    arena_init(&arena, NULL);
    SchemaRow row = {
        .rowid = catalog__rowid_max(ddl->old) + 1,
        .type = ROW_TRIGGER,
        .name = name_text(&arena, &ast->name),
        .table = table->name,
        .sql = stored_text(ddl, &arena, "CREATE TRIGGER", ast->stored),
    };
    CatalogUnit *unit = NULL;
    err = row.name == NULL || row.sql == NULL ? ERR_NOMEM : add_row(ddl, before, &row, &unit);
    if (err == OK) err = catalog__finish(ddl, before, unit, new_out);
    arena_free(&arena);
    return err;
}

/* ---- DROP ---- */

Err
ddl_drop_table(DdlContext *ddl, const TableDef *table, Catalog **new_out)
{
    *new_out = NULL;
    if (table->is_system && strncmp(table->name, "sqlite_stat", 11) != 0) {
        return err_set(ddl->msg, ERR_SQL, "table %s may not be dropped", table->name);
    }
    CatalogUnit *before = catalog__unit_of(ddl->old, text_slice(table->name));
    Err err = OK;
    if (!table->is_view && !table->is_virtual) {
        for (u32 i = 0; err == OK && i < table->index_count; i++)
            err = store_tree_drop(ddl->txn, table->index[i]->tree);
        if (err == OK) err = store_tree_drop(ddl->txn, table->tree);
    }
    if (err != OK) return store_error(ddl, err);
    return catalog__finish(ddl, before, NULL, new_out);
}

Err
ddl_drop_index(DdlContext *ddl, const IndexDef *index, Catalog **new_out)
{
    *new_out = NULL;
    if (index->origin != INDEX_CREATED) {
        return err_set(ddl->msg, ERR_SQL,
                       "index associated with UNIQUE or PRIMARY KEY constraint cannot be dropped");
    }
    CatalogUnit *before = catalog__unit_of(ddl->old, text_slice(index->table->name));
    CatalogUnit *unit;
    Err err = store_error(ddl, store_tree_drop(ddl->txn, index->tree));
    if (err == OK) err = remove_row(ddl, before, ROW_INDEX, index->name, &unit);
    if (err == OK) err = catalog__finish(ddl, before, unit, new_out);
    return err;
}

Err
ddl_drop_trigger(DdlContext *ddl, const TriggerDef *trigger, Catalog **new_out)
{
    *new_out = NULL;
    CatalogUnit *before = catalog__unit_of_trigger(ddl->old, trigger);
    CatalogUnit *unit;
    Err err = remove_row(ddl, before, ROW_TRIGGER, trigger->name, &unit);
    if (err == OK) err = catalog__finish(ddl, before, unit, new_out);
    return err;
}
