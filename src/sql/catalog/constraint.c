/*
 * constraint.c -- ALTER TABLE's changes of constraints: SET and DROP NOT NULL, ADD CHECK, DROP
 * CONSTRAINT.  The table's text is edited and read again; the caller checks the rows.
 */
#include "sql/catalog/catalog_unit.h"
#include "sql/parse/parse.h"

static Slice
text_slice(const char *text)
{
    return SLICE(text, strlen(text));
}

/* Where the constraint begins, with its CONSTRAINT clause. */
static u32
begin_of(const AstConstraint *constraint)
{
    bool named = constraint->name_clause.bytes != 0;
    return named ? constraint->name_clause.offset : constraint->span.offset;
}

/* The text without the constraint and the white space before it. */
static char *
without(Arena *arena, const char *sql, u32 from, u32 to)
{
    while (from > 0 && memchr(" \t\n\f\r", sql[from - 1], 5) != NULL)
        from--;
    return arena_printf(arena, "%.*s%s", (int)from, sql, sql + to);
}

/* ---- NOT NULL ---- */

static Err
edit_not_null(DdlContext *ddl, Arena *arena, const AstAlter *alter, const char **sql)
{
    bool sets = alter->kind == AST_ALTER_SET_NOT_NULL;
    AstStatement *ast;
    Err err = catalog__parse_stored(ddl, arena, *sql, &ast);
    if (err != OK) return err;
    const AstColumnDefs *columns = &ast->u.create_table->columns;
    const AstColumnDef *column = NULL;
    for (u32 i = 0; i < columns->count && column == NULL; i++) {
        if (slice_equal_nocase(columns->items[i].name.text, alter->column.text))
            column = &columns->items[i];
    }
    Slice name = alter->column.text;
    if (column == NULL) {
        return err_set_at(ddl->msg, ERR_SQL, (i32)alter->column.span.offset, "no such column: %.*s",
                          (int)name.bytes, (const char *)name.p);
    }
    /* From behind, so that the places of what is left stay right. */
    const char *text = *sql;
    Slice clause = span_slice(ddl->sql, alter->clause);
    u32 end = span_end(column->span);
    if (sets) {
        text = arena_printf(arena, "%.*s %.*s%s", (int)end, text, (int)clause.bytes,
                            (const char *)clause.p, text + end);
    }
    for (u32 i = column->constraints.count; text != NULL && i-- > 0;) {
        const AstConstraint *at = &column->constraints.items[i];
        if (at->kind != AST_CONSTRAINT_NOT_NULL) continue;
        text = without(arena, text, begin_of(at), span_end(at->span));
    }
    *sql = text;
    return text == NULL ? ERR_NOMEM : OK;
}

/* ---- CHECK and CONSTRAINT ---- */

static bool
is_named(const AstConstraint *constraint, Slice name)
{
    return constraint->name_clause.bytes != 0 && slice_equal_nocase(constraint->name.text, name);
}

/* The constraint of that name; *before_out: where what stands before it ends if it is one of the
   table's, else 0. */
static const AstConstraint *
find_named(const AstCreateTable *table, Slice name, u32 *before_out)
{
    *before_out = 0;
    for (u32 i = 0; i < table->columns.count; i++) {
        const AstConstraints *list = &table->columns.items[i].constraints;
        for (u32 k = 0; k < list->count; k++) {
            if (is_named(&list->items[k], name)) return &list->items[k];
        }
    }
    u32 end = span_end(table->columns.items[table->columns.count - 1].span);
    for (u32 i = 0; i < table->constraints.count; i++) {
        const AstConstraint *at = &table->constraints.items[i];
        *before_out = end;
        if (is_named(at, name)) return at;
        end = span_end(at->span);
    }
    return NULL;
}

static Err
edit_add_check(DdlContext *ddl, Arena *arena, const AstAlter *alter, const char **sql)
{
    AstStatement *ast;
    Err err = catalog__parse_stored(ddl, arena, *sql, &ast);
    if (err != OK) return err;
    const AstCreateTable *table = ast->u.create_table;
    Slice name = alter->constraint_name.text;
    u32 before;
    if (ast_name_present(&alter->constraint_name) && find_named(table, name, &before) != NULL) {
        return err_set(ddl->msg, ERR_SQL, "constraint %.*s already exists", (int)name.bytes,
                       (const char *)name.p);
    }
    u32 at = span_end(table->columns.items[table->columns.count - 1].span);
    if (table->constraints.count > 0) {
        at = span_end(table->constraints.items[table->constraints.count - 1].span);
    }
    Slice clause = span_slice(ddl->sql, alter->clause);
    *sql = arena_printf(arena, "%.*s, %.*s%s", (int)at, *sql, (int)clause.bytes,
                        (const char *)clause.p, *sql + at);
    return *sql == NULL ? ERR_NOMEM : OK;
}

static Err
edit_drop(DdlContext *ddl, Arena *arena, const AstAlter *alter, const char **sql)
{
    AstStatement *ast;
    Err err = catalog__parse_stored(ddl, arena, *sql, &ast);
    if (err != OK) return err;
    u32 before;
    Slice name = alter->constraint_name.text;
    const AstConstraint *found = find_named(ast->u.create_table, name, &before);
    if (found == NULL) {
        return err_set(ddl->msg, ERR_SQL, "no such constraint: %.*s", (int)name.bytes,
                       (const char *)name.p);
    }
    if (found->kind == AST_CONSTRAINT_PRIMARY_KEY || found->kind == AST_CONSTRAINT_UNIQUE) {
        return err_set(ddl->msg, ERR_SQL, "constraint may not be dropped: %.*s", (int)name.bytes,
                       (const char *)name.p);
    }
    /* One of the table's goes with the comma before it. */
    u32 from = before > 0 ? before : begin_of(found);
    bool whole = found->kind == AST_CONSTRAINT_CHECK || found->kind == AST_CONSTRAINT_NOT_NULL ||
                 found->kind == AST_CONSTRAINT_FOREIGN_KEY;
    /* DEFAULT, COLLATE and GENERATED lose their name only. */
    *sql = without(arena, *sql, from, span_end(whole ? found->span : found->name_clause));
    return *sql == NULL ? ERR_NOMEM : OK;
}

Err
ddl_alter_constraint(DdlContext *ddl, const TableDef *table, const AstAlter *alter,
                     Catalog **new_out)
{
    *new_out = NULL;
    CatalogUnit *before = catalog__unit_of(ddl->old, text_slice(table->name));
    CatalogUnit *unit = NULL;
    const char *sql = table->sql;
    Arena arena;
    arena_init(&arena, NULL);
    SchemaRow *row = catalog__rows_copy(&arena, before);
    Err err = row == NULL ? ERR_NOMEM : OK;
    if (err == OK && alter->kind == AST_ALTER_ADD_CHECK) {
        err = edit_add_check(ddl, &arena, alter, &sql);
    } else if (err == OK && alter->kind == AST_ALTER_DROP_CONSTRAINT) {
        err = edit_drop(ddl, &arena, alter, &sql);
    } else if (err == OK) {
        err = edit_not_null(ddl, &arena, alter, &sql);
    }
    for (u32 i = 0; err == OK && i < before->row_count; i++) {
        if (row[i].type == ROW_TABLE) row[i].sql = sql;
    }
    if (err == OK) err = catalog__unit_rebuild(ddl, row, before->row_count, NULL, &unit);
    if (err == OK) err = catalog__finish(ddl, before, unit, new_out);
    arena_free(&arena);
    return err;
}
