/*
 * alter.c -- ALTER TABLE: checks before and after the change that catalog/ makes.
 */
#include "session/ddl__impl.h"

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

/* Say where an error that a dropped column caused stands. */
static Err
after_drop(Ddl *ddl, Err err, const char *what, const char *name)
{
    char *text = mem_strdup(err_message(session_error(ddl->session)));
    err = session_set_error(ddl->session, err, "error in %s %s after drop column: %s", what, name,
                            text == NULL ? "" : text);
    mem_free(text);
    return err;
}

/* Every view must still mean something. */
static Err
check_views(Ddl *ddl)
{
    const Catalog *catalog = ddl->context.old;
    for (u32 i = 0; i < catalog_table_count(catalog); i++) {
        const TableDef *view = catalog_table_at(catalog, i);
        if (!view->is_view) continue;
        Buf sql = {0};
        bool row;
        Err err = buf_printf(&sql, "SELECT 1 FROM (SELECT * FROM %s.", view->schema);
        if (err == OK) err = sql_name_append(&sql, SLICE(view->name, strlen(view->name)), true);
        if (err == OK) err = buf_append_text(&sql, ") LIMIT 0");
        if (err == OK) err = buf_append_byte(&sql, 0);
        err = err == OK ? ddl__run_counted(ddl, (const char *)sql.p, &row) : ddl__fail(ddl, err);
        buf_free(&sql);
        if (err == ERR_SQL) return after_drop(ddl, err, "view", view->name);
        if (err != OK) return err;
    }
    return OK;
}

static Err
alter_found(Ddl *ddl, const TableDef *table, const AstAlter *ast)
{
    Session *session = ddl->session;
    Catalog *catalog = NULL;
    u32 checks = table->check_count;
    Err err = table->is_view ? OK : ddl__lock(ddl, table);
    if (err != OK) return err;
    switch (ast->kind) {
    case AST_ALTER_ADD_COLUMN: err = ddl_add_column(&ddl->context, table, ast, &catalog); break;
    case AST_ALTER_DROP_COLUMN: err = ddl_drop_column(&ddl->context, table, ast, &catalog); break;
    case AST_ALTER_RENAME_TABLE: err = ddl_rename_table(&ddl->context, table, ast, &catalog); break;
    default:
        return session_set_error(session, ERR_UNSUPPORTED,
                                 "this form of ALTER TABLE is not supported yet");
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
    err = ddl__check_table(ddl, table);
    bool drops = ast->kind == AST_ALTER_DROP_COLUMN;
    if (err != OK) return drops ? after_drop(ddl, err, "table", table->name) : err;
    if (drops) return check_views(ddl);
    return ast->kind == AST_ALTER_ADD_COLUMN ? check_added_column(ddl, table, checks) : OK;
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
    if (table->is_view && ast->kind == AST_ALTER_ADD_COLUMN) {
        return session_set_error(session, ERR_SQL, "Cannot add a column to a view");
    }
    if (table->is_view && ast->kind != AST_ALTER_DROP_COLUMN) {
        return session_set_error(session, ERR_SQL, "view %s may not be altered", table->name);
    }
    Slice new_name = ast->new_name.text;
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
    return alter_found(ddl, table, ast);
}
