/*
 * alter.c -- ALTER TABLE: checks before and after the change that catalog/ makes.
 */
#include "session/ddl__impl.h"
#include "session/virtual__impl.h"

/* Existing rows must pass the constraints that came with the new column. */
static Err
check_added_column(Ddl *ddl, const TableDef *table, u32 checks_before)
{
    Session *session = ddl->session;
    for (u32 i = checks_before; i < table->check_count; i++) {
        Buf sql = {0};
        Err err = buf_printf(&sql, "SELECT 1 FROM %s.", table->schema);
        if (err == OK) err = sql_name_append(&sql, SLICE(table->name, strlen(table->name)), true);
        if (err == OK) err = buf_printf(&sql, " WHERE NOT (%s) LIMIT 1", table->check[i].sql);
        if (err == OK) err = buf_append_byte(&sql, 0);
        bool row = false;
        err = err == OK ? ddl__run_counted(ddl, (const char *)sql.p, &row) : ddl__fail(ddl, err);
        buf_free(&sql);
        if (err != OK) return err;
        if (row) return session_set_error(session, ERR_SQL, "CHECK constraint failed");
    }
    return OK;
}

/* ---- what views and triggers mean ---- */

/* Looks for the uses of one column while views and triggers are bound. */
typedef struct UseFinder {
    const TableDef *table; /* NULL: nothing is looked for. */
    u32 column;
    Arena *arena;
    DdlNameUse *use;
    u32 count, capacity;
    bool out_of_memory;
} UseFinder;

static void
note_use(void *arg, Slice sql, const AstName *name, const TableDef *table, u32 column)
{
    UseFinder *finder = arg;
    bool is_string = table == NULL;
    if (finder->table == NULL) return;
    if (!is_string && (table != finder->table || column != finder->column)) return;
    if (finder->count == finder->capacity) {
        u32 capacity = finder->capacity * 2 + 16;
        DdlNameUse *list = ARENA_NEW_ARRAY(finder->arena, DdlNameUse, capacity);
        finder->out_of_memory = finder->out_of_memory || list == NULL;
        if (list == NULL) return;
        if (finder->count > 0) memcpy(list, finder->use, sizeof(*list) * finder->count);
        finder->use = list;
        finder->capacity = capacity;
    }
    finder->use[finder->count++] = (DdlNameUse){(const char *)sql.p, name->span, is_string};
}

/* Say where an error stands.  `after` is " after rename" or such, or empty. */
static Err
error_in(Ddl *ddl, Err err, const char *what, const char *name, const char *after)
{
    if (ddl->msg.err == OK) return ddl__fail(ddl, err);
    char *text = mem_strdup(err_message(&ddl->msg));
    err_clear(&ddl->msg);
    err = session_set_error(ddl->session, err, "error in %s %s%s: %s", what, name, after,
                            text == NULL ? "" : text);
    mem_free(text);
    return err;
}

static Err
bind_view(Ddl *ddl, const PlanContext *context, const TableDef *view)
{
    Buf sql = {0};
    Arena arena;
    AstStatement *ast = NULL;
    Plan *plan = NULL;
    size_t consumed;
    arena_init(&arena, NULL);
    Err err = buf_printf(&sql, "SELECT * FROM %s.", view->schema);
    if (err == OK) err = sql_name_append(&sql, SLICE(view->name, strlen(view->name)), true);
    if (err == OK) err = sql_parse(&arena, buf_slice(&sql), NULL, &ast, &consumed, &ddl->msg);
    if (err == OK) err = plan_prepare(context, ast, buf_slice(&sql), &plan, &ddl->msg);
    plan_release(plan);
    arena_free(&arena);
    buf_free(&sql);
    return err;
}

static Err
bind_trigger(Ddl *ddl, const PlanContext *context, const Catalog *catalog, const TableDef *table,
             const TriggerDef *trigger, bool is_temp, const char *after)
{
    Err err = plan_check_trigger(context, table, trigger, is_temp, &ddl->msg);
    if (err == OK) return OK;
    const char *name = context->notes->failed_in;
    bool elsewhere = name != NULL && catalog_find_table(catalog, SLICE(name, strlen(name))) != NULL;
    if (elsewhere) return error_in(ddl, err, "view", name, after);
    return error_in(ddl, err, "trigger", trigger->name, after);
}

/* A view, or a trigger of a table. */
typedef struct Bound {
    i64 schema_row;
    const TableDef *table;
    const TriggerDef *trigger; /* NULL: the view. */
} Bound;

static int
compare_bound(const void *a, const void *b)
{
    i64 x = ((const Bound *)a)->schema_row, y = ((const Bound *)b)->schema_row;
    return x < y ? -1 : x > y;
}

/* All views and triggers of a catalog in the order of sqlite_schema. */
static Err
list_bound(const CatalogView *view, const Catalog *catalog, Arena *arena, Bound **list_out,
           u32 *count_out)
{
    const TriggerDef *const *trigger = NULL, *const *loose = NULL;
    u32 loose_count = catalog == NULL ? 0 : catalog_loose_triggers(catalog, &loose);
    u32 tables = catalog == NULL ? 0 : catalog_table_count(catalog), total = tables, count = 0;
    for (u32 i = 0; i < tables; i++)
        total += catalog_triggers(catalog, catalog_table_at(catalog, i), &trigger);
    Bound *list = ARENA_NEW_ARRAY(arena, Bound, total + loose_count + 1);
    if (list == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < tables; i++) {
        const TableDef *table = catalog_table_at(catalog, i);
        if (table->is_view) list[count++] = (Bound){table->schema_row, table, NULL};
        u32 triggers = catalog_triggers(catalog, table, &trigger);
        for (u32 k = 0; k < triggers; k++)
            list[count++] = (Bound){trigger[k]->schema_row, table, trigger[k]};
    }
    for (u32 i = 0; i < loose_count; i++) {
        const TableDef *table = catalog_loose_table(view, loose[i]);
        if (table != NULL) list[count++] = (Bound){loose[i]->schema_row, table, loose[i]};
    }
    sort_items(list, count, sizeof(*list), compare_bound);
    *list_out = list;
    *count_out = count;
    return OK;
}

/* Under PRAGMA writable_schema what means nothing is left as it is. */
static Err
bind_leniently(Ddl *ddl, const PlanContext *context, const Bound *item, bool is_temp)
{
    Err err = item->trigger == NULL
                  ? bind_view(ddl, context, item->table)
                  : plan_check_trigger(context, item->table, item->trigger, is_temp, &ddl->msg);
    if (err == ERR_NOMEM) return ddl__fail(ddl, err);
    err_clear(&ddl->msg);
    return OK;
}

static Err
bind_database(Ddl *ddl, const PlanContext *context, const Catalog *catalog, bool is_temp,
              const char *after)
{
    Arena arena;
    Bound *list = NULL;
    u32 count = 0;
    arena_init(&arena, NULL);
    Err err = list_bound(context->catalog, catalog, &arena, &list, &count);
    if (err != OK) err = ddl__fail(ddl, err);
    for (u32 i = 0; err == OK && i < count; i++) {
        const TableDef *table = list[i].table;
        context->notes->failed_in = NULL;
        if (ddl->session->reserved_names) {
            err = bind_leniently(ddl, context, &list[i], is_temp);
            continue;
        }
        if (list[i].trigger != NULL) {
            err = bind_trigger(ddl, context, catalog, table, list[i].trigger, is_temp, after);
            continue;
        }
        err = bind_view(ddl, context, table);
        if (err == OK) continue;
        const char *name = context->notes->failed_in;
        err = error_in(ddl, err, "view", name != NULL ? name : table->name, after);
    }
    arena_free(&arena);
    return err;
}

/* Every view and trigger of the database, and of temp, must mean something. */
static Err
bind_schema(Ddl *ddl, UseFinder *finder, const char *after)
{
    CatalogView view;
    PlanContext context;
    PlanNotes notes = {.name = note_use, .arg = finder};
    session__catalog_view(ddl->session, &view);
    session__plan_context(ddl->session, &view, &context);
    context.notes = &notes;
    context.triggers_off = true;  /* Each is bound by itself. */
    context.foreign_keys = false; /* Names are asked for, not keys. */
    for (u32 pass = 0; pass < 2; pass++) {
        u32 database = pass == 0 ? ddl->database : 1;
        if (pass == 1 && (ddl->database == 1 || view.count < 2)) break;
        Err err = bind_database(ddl, &context, view.db[database].catalog, database == 1, after);
        if (err != OK) return err;
    }
    return finder->out_of_memory ? ddl__fail(ddl, ERR_NOMEM) : OK;
}

static i32
find_column(const TableDef *table, Slice name)
{
    for (u32 i = 0; i < table->column_count; i++) {
        const char *at = table->column[i].name;
        if (slice_equal_nocase(name, SLICE(at, strlen(at)))) return (i32)i;
    }
    return -1;
}

static Err
rename_column(Ddl *ddl, const TableDef *table, const AstAlter *ast, Catalog **catalog_out)
{
    i32 column = find_column(table, ast->column.text);
    if (column < 0) {
        Slice name = ast->column.text;
        err_set_at(&ddl->msg, ERR_SQL, (i32)ast->column.span.offset, "no such column: \"%.*s\"",
                   (int)name.bytes, (const char *)name.p);
        return ddl__fail(ddl, ERR_SQL);
    }
    Arena arena;
    arena_init(&arena, NULL);
    UseFinder finder = {.table = table, .column = (u32)column, .arena = &arena};
    Err err = bind_schema(ddl, &finder, "");
    if (err == OK) {
        err = ddl_rename_column(&ddl->context, table, ast, finder.use, finder.count, catalog_out);
        if (err != OK) err = ddl__fail(ddl, err);
    }
    Ddl temp;
    bool any = false;
    if (err == OK) err = ddl__temp(ddl, &temp, &any);
    if (err == OK && any) {
        Catalog *changed;
        temp.context.sql = ddl->context.sql;
        err = ddl_rename_column(&temp.context, table, ast, finder.use, finder.count, &changed);
        if (err != OK) err = ddl__fail(&temp, err);
        if (err == OK) ddl__done(&temp, changed);
        if (err != OK) catalog_release(*catalog_out);
    }
    arena_free(&arena);
    return err;
}

static Err
rename_table(Ddl *ddl, const TableDef *table, const AstAlter *ast, Catalog **catalog_out)
{
    Ddl temp;
    bool any;
    Err err = ddl__temp(ddl, &temp, &any);
    if (err != OK) return err;
    err = ddl_rename_table(&ddl->context, table, ast, catalog_out);
    if (err != OK) return ddl__fail(ddl, err);
    if (!any) return OK;
    Catalog *changed;
    err = ddl_rename_table(&temp.context, table, ast, &changed);
    if (err != OK) {
        catalog_release(*catalog_out);
        return ddl__fail(&temp, err);
    }
    ddl__done(&temp, changed);
    return OK;
}

static bool
is_constraint_change(AstAlterKind kind)
{
    return kind == AST_ALTER_ADD_CHECK || kind == AST_ALTER_DROP_CONSTRAINT ||
           kind == AST_ALTER_SET_NOT_NULL || kind == AST_ALTER_DROP_NOT_NULL;
}

/* Rows that a new constraint of the table refuses make the change fail. */
static Err
check_rows(Ddl *ddl, const TableDef *table, const AstAlter *ast)
{
    Buf sql = {0};
    bool row = false;
    Slice condition = SLICE_NONE;
    if (ast->kind == AST_ALTER_ADD_CHECK) {
        condition = span_slice(ddl->context.sql, ast->constraint->expr_text);
    }
    Err err = buf_append_text(&sql, "SELECT 1 FROM ");
    if (err == OK) err = sql_name_append(&sql, SLICE(table->schema, strlen(table->schema)), true);
    if (err == OK) err = buf_append_byte(&sql, '.');
    if (err == OK) err = sql_name_append(&sql, SLICE(table->name, strlen(table->name)), true);
    if (err == OK) err = buf_append_text(&sql, " WHERE ");
    if (condition.p != NULL) {
        if (err == OK) err = buf_append_text(&sql, "NOT (");
        if (err == OK) err = buf_append(&sql, condition.p, condition.bytes);
        if (err == OK) err = buf_append_text(&sql, "\n)");
    } else {
        if (err == OK) err = sql_name_append(&sql, ast->column.text, true);
        if (err == OK) err = buf_append_text(&sql, " IS NULL");
    }
    if (err == OK) err = buf_append_text(&sql, " LIMIT 1");
    if (err == OK) err = buf_append_byte(&sql, 0);
    err = err == OK ? ddl__run_counted(ddl, (const char *)sql.p, &row) : ddl__fail(ddl, err);
    buf_free(&sql);
    if (err != OK || !row) return err;
    return session_set_error(ddl->session, ERR_CONSTRAINT, "constraint failed");
}

static Err
alter_constraint(Ddl *ddl, const TableDef *table, const AstAlter *ast)
{
    Catalog *catalog = NULL;
    Err err = ddl_alter_constraint(&ddl->context, table, ast, &catalog);
    if (err != OK) return ddl__fail(ddl, err);
    ddl__done(ddl, catalog);
    table = catalog_find_table(catalog, ast->table.text);
    err = ddl__check_table(ddl, table);
    bool adds = ast->kind == AST_ALTER_ADD_CHECK || ast->kind == AST_ALTER_SET_NOT_NULL;
    return err == OK && adds ? check_rows(ddl, table, ast) : err;
}

static Err
alter_found(Ddl *ddl, const TableDef *table, const AstAlter *ast)
{
    Catalog *catalog = NULL;
    u32 checks = table->check_count;
    UseFinder nothing = {0};
    Err err = table->is_view || table->is_virtual ? OK : ddl__lock(ddl, table);
    bool drops = ast->kind == AST_ALTER_DROP_COLUMN;
    bool names_change = ast->kind == AST_ALTER_RENAME_TABLE || drops;
    if (err == OK && drops) {
        u32 column;
        err = ddl_check_dropped(&ddl->context, table, ast, &column);
        if (err != OK) return ddl__fail(ddl, err);
        ddl->context.check_table = ddl__check_unnamed_table;
        ddl->context.check_index = ddl__check_index;
        ddl->context.check_arg = ddl;
    }
    if (err == OK && names_change && !table->is_view) err = bind_schema(ddl, &nothing, "");
    if (err != OK) return err;
    switch (ast->kind) {
    case AST_ALTER_ADD_COLUMN:
        err = ddl_check_collations(&ddl->context, ddl->stmt->ast);
        if (err == OK) err = ddl_add_column(&ddl->context, table, ast, &catalog);
        break;
    case AST_ALTER_DROP_COLUMN: err = ddl_drop_column(&ddl->context, table, ast, &catalog); break;
    case AST_ALTER_RENAME_TABLE:
        err = rename_table(ddl, table, ast, &catalog);
        if (err != OK) return err;
        break;
    case AST_ALTER_RENAME_COLUMN:
        err = rename_column(ddl, table, ast, &catalog);
        if (err != OK) return err;
        break;
    case AST_ALTER_ADD_CHECK:
    case AST_ALTER_DROP_CONSTRAINT:
    case AST_ALTER_SET_NOT_NULL:
    case AST_ALTER_DROP_NOT_NULL: return alter_constraint(ddl, table, ast);
    }
    if (err != OK) return ddl__fail(ddl, err);
    bool renamed_counter = ast->kind == AST_ALTER_RENAME_TABLE && table->autoincrement;
    char *old_name = mem_strdup(table->name);
    ddl__done(ddl, catalog);
    Slice name = ast->kind == AST_ALTER_RENAME_TABLE ? ast->new_name.text : ast->table.text;
    table = catalog_find_table(catalog, name);
    if (renamed_counter && old_name != NULL) {
        Buf sql = {0};
        err = buf_printf(&sql, "UPDATE %s.sqlite_sequence SET name=", table->schema);
        if (err == OK) err = sql_string_append(&sql, name);
        if (err == OK) err = buf_append_text(&sql, " WHERE name=");
        if (err == OK) err = sql_string_append(&sql, SLICE(old_name, strlen(old_name)));
        if (err == OK) err = buf_append_byte(&sql, 0);
        err = err == OK ? ddl__run(ddl, (const char *)sql.p) : ddl__fail(ddl, err);
        buf_free(&sql);
    }
    mem_free(old_name);
    if (err != OK) return err;
    err = drops ? OK : ddl__check_unnamed_table(ddl, table); /* Drops have been checked. */
    if (err != OK && ast->kind == AST_ALTER_ADD_COLUMN) {
        return error_in(ddl, err, "table", table->name, " after add column");
    }
    if (err != OK) return ddl__fail(ddl, err);
    if (drops) return bind_schema(ddl, &nothing, " after drop column");
    if (ast->kind != AST_ALTER_ADD_COLUMN) return bind_schema(ddl, &nothing, " after rename");
    return check_added_column(ddl, table, checks);
}

static Err
refuse_virtual(Session *session, const TableDef *table, AstAlterKind kind)
{
    switch (kind) {
    case AST_ALTER_ADD_COLUMN:
        return session_set_error(session, ERR_SQL, "virtual tables may not be altered");
    case AST_ALTER_DROP_COLUMN:
        return session_set_error(session, ERR_SQL, "cannot drop column from virtual table \"%s\"",
                                 table->name);
    case AST_ALTER_RENAME_COLUMN:
        return session_set_error(session, ERR_SQL, "cannot rename columns of virtual table \"%s\"",
                                 table->name);
    default:
        return session_set_error(session, ERR_SQL,
                                 "cannot edit constraints of virtual table \"%s\"", table->name);
    }
}

/* The module renames what it has made, then views and triggers follow. */
static Err
rename_virtual(Ddl *ddl, const TableDef *table, const AstAlter *ast)
{
    Session *session = ddl->session;
    UseFinder nothing = {0};
    Arena arena;
    arena_init(&arena, NULL);
    Catalog *held = catalog_retain(ddl->context.old);
    char *name = arena_strndup(&arena, ast->new_name.text.p, ast->new_name.text.bytes);
    Err err = name == NULL ? ERR_NOMEM : virtual__rename(session, table, name, &ddl->msg);
    Catalog *catalog = NULL;
    if (err == OK) {
        ddl->context.old = session->db[ddl->database].catalog;
        const TableDef *now = catalog_find_table(ddl->context.old,
                                                 SLICE(table->name, strlen(table->name)));
        err = now == NULL ? ERR_SCHEMA : ddl_rename_table(&ddl->context, now, ast, &catalog);
    }
    catalog_release(held);
    arena_free(&arena);
    if (err != OK) return ddl__fail(ddl, err);
    ddl__done(ddl, catalog);
    return bind_schema(ddl, &nothing, " after rename");
}

Err
ddl__alter_table(Ddl *ddl, const AstAlter *ast)
{
    Session *session = ddl->session;
    CatalogView view;
    session__catalog_view(session, &view);
    Slice name = ast->table.text;
    const TableDef *table = catalog_view_table(&view, ast->schema.text, name, NULL);
    if (table == NULL) {
        return session_set_error(session, ERR_SQL, "no such table: %.*s", (int)name.bytes,
                                 (const char *)name.p);
    }
    Err err = ddl__context(ddl, table->database);
    if (err != OK) return err;
    table = catalog_find_table(ddl->context.old, name);
    if (table == NULL) return session_set_error(session, ERR_SCHEMA, "%s", err_text(ERR_SCHEMA));
    if (table->is_system) {
        return session_set_error(session, ERR_SQL, "table %s may not be altered", table->name);
    }
    if (table->is_view && ast->kind == AST_ALTER_RENAME_COLUMN) {
        return session_set_error(session, ERR_SQL, "cannot rename columns of view \"%s\"",
                                 table->name);
    }
    if (table->is_view && is_constraint_change(ast->kind)) {
        return session_set_error(session, ERR_SQL, "cannot edit constraints of view \"%s\"",
                                 table->name);
    }
    if (table->is_view && ast->kind == AST_ALTER_ADD_COLUMN) {
        return session_set_error(session, ERR_SQL, "Cannot add a column to a view");
    }
    if (table->is_view && ast->kind != AST_ALTER_DROP_COLUMN) {
        return session_set_error(session, ERR_SQL, "view %s may not be altered", table->name);
    }
    if (table->is_virtual && ast->kind != AST_ALTER_RENAME_TABLE) {
        return refuse_virtual(session, table, ast->kind);
    }
    Slice new_name = ast->new_name.text;
    bool renames = ast->kind == AST_ALTER_RENAME_TABLE || ast->kind == AST_ALTER_RENAME_COLUMN;
    if (renames) err = session__open_temp(session); /* Its objects may be meant. */
    if (err != OK) return err;
    if (ast->kind == AST_ALTER_RENAME_TABLE) {
        if (new_name.bytes >= 7 &&
            slice_equal_nocase(SLICE(new_name.p, 7), SLICE_LITERAL("sqlite_"))) {
            return session_set_error(session, ERR_SQL,
                                     "object name reserved for internal use: %.*s",
                                     (int)new_name.bytes, (const char *)new_name.p);
        }
        if (catalog_find_table(ddl->context.old, new_name) != NULL ||
            catalog_find_index(ddl->context.old, new_name) != NULL) {
            return session_set_error(session, ERR_SQL,
                                     "there is already another table or index with this name: %.*s",
                                     (int)new_name.bytes, (const char *)new_name.p);
        }
    }
    return table->is_virtual ? rename_virtual(ddl, table, ast) : alter_found(ddl, table, ast);
}
