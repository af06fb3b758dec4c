/*
 * virtual.c -- virtual tables in the catalog: a row with the module's name and its arguments.
 *
 * What columns such a table has only its module knows, and modules belong to connections; a catalog
 * is shared between them.  So the catalog keeps names and arguments, and a session makes a TableDef
 * of its own from what the module declares (catalog_declared_table).
 */
#include "sql/catalog/catalog_unit.h"
#include "sql/parse/parse.h"

static char *
slice_copy(Arena *arena, Slice text)
{
    return arena_strndup(arena, text.p, text.bytes);
}

Err
catalog__virtual_build(Arena *arena, Slice sql, const AstCreateVirtual *ast, TableDef *table)
{
    table->is_virtual = true;
    table->module = slice_copy(arena, ast->module.text);
    table->module_args = ARENA_NEW_ARRAY(arena, const char *, ast->count + 1);
    if (table->module == NULL || table->module_args == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < ast->count; i++) {
        table->module_args[i] = slice_copy(arena, span_slice(sql, ast->args[i]));
        if (table->module_args[i] == NULL) return ERR_NOMEM;
    }
    table->module_arg_count = ast->count;
    return OK;
}

Err
ddl_create_virtual(DdlContext *ddl, const AstCreateVirtual *ast, Catalog **new_out)
{
    *new_out = NULL;
    Err err = catalog__table_name_is_free(ddl, &ast->name);
    if (err != OK) return err;
    Arena arena;
    arena_init(&arena, NULL);
    SchemaRow row = {
        .rowid = catalog__rowid_max(ddl->old) + 1,
        .type = ROW_TABLE,
        .name = slice_copy(&arena, ast->name.text),
        .sql = arena_printf(&arena, "CREATE VIRTUAL TABLE %.*s", (int)ast->stored.bytes,
                            (const char *)ddl->sql.p + ast->stored.offset),
    };
    row.table = row.name;
    CatalogUnit *unit = NULL;
    err = row.name == NULL || row.sql == NULL ? ERR_NOMEM
                                              : catalog__unit_rebuild(ddl, &row, 1, NULL, &unit);
    if (err == OK) err = catalog__finish(ddl, NULL, unit, new_out);
    arena_free(&arena);
    return err;
}

/* ---- what a module declares ---- */

static bool
is_blank(char c)
{
    return c == ' ' || c == 0;
}

/* A type with the word HIDDEN in it makes the column hidden; the word is no part of the type. */
static Err
take_hidden(Arena *arena, ColumnDef *column)
{
    const char *type = column->type_text;
    if (type == NULL) return OK;
    size_t bytes = strlen(type);
    for (size_t at = 0; at + 6 <= bytes; at++) {
        if (at > 0 && type[at - 1] != ' ') continue;
        if (!is_blank(type[at + 6])) continue;
        if (!slice_equal_nocase(SLICE(type + at, 6), SLICE_LITERAL("hidden"))) continue;
        column->hidden = true;
        size_t behind = type[at + 6] == ' ' ? at + 7 : at + 6;
        size_t before = at > 0 && type[behind] == 0 ? at - 1 : at;
        char *rest = arena_printf(arena, "%.*s%s", (int)before, type, type + behind);
        if (rest == NULL) return ERR_NOMEM;
        column->type_text = rest;
        return OK;
    }
    return OK;
}

/* Names of a virtual table that its module did not give come from the CREATE VIRTUAL TABLE. */
static Err
declared_from(const TableDef *stored, Arena *arena, Slice sql, const AstCreateTable *ast,
              const CatalogEnv *env, TableDef *table, ErrMsg *msg)
{
    *table = *stored;
    table->rowid_column = COLUMN_ROWID;
    UnitContext context = {.env = env, .version = stored->version, .creating = true, .msg = msg};
    Err err = catalog__table_build(&context, arena, sql, ast, table);
    for (u32 i = 0; err == OK && i < table->column_count; i++)
        err = take_hidden(arena, &table->column[i]);
    /* The module keeps its own constraints and indexes. */
    table->rowid_column = COLUMN_ROWID;
    table->index_count = 0;
    table->check_count = 0;
    table->foreign_key_count = 0;
    table->autoincrement = false;
    table->strict = false;
    table->stored_count = table->column_count;
    return err;
}

Err
catalog_declared_table(const TableDef *stored, Slice sql, const CatalogEnv *env, Arena *arena,
                       TableDef *table_out, ErrMsg *msg)
{
    AstStatement *ast = NULL;
    size_t consumed;
    const ParseOptions options = {.stored = true, .no_params = true};
    Slice own = {.p = (const u8 *)arena_strndup(arena, sql.p, sql.bytes), .bytes = sql.bytes};
    if (own.p == NULL) return ERR_NOMEM;
    Err err = sql_parse(arena, own, &options, &ast, &consumed, msg);
    if (err != OK) return err;
    if (ast == NULL || ast->kind != AST_STMT_CREATE_TABLE || ast->u.create_table->as_select != NULL)
        return err_set(msg, ERR_SQL, "syntax error");
    return declared_from(stored, arena, own, ast->u.create_table, env, table_out, msg);
}
