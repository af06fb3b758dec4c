/*
 * alter.c -- ALTER TABLE: the stored text is edited token by token, then read again.
 *
 * What the text says after the edit is the definition: the unit is built anew from it, so a change
 * that makes an index, trigger or constraint meaningless is found and refused, and the rows of
 * sqlite_schema keep the spelling that the user gave them.
 */
#include "sql/catalog/catalog_unit.h"
#include "sql/parse/parse.h"
#include "sql/parse/walk.h"
#include "value/record.h"

static Slice
text_slice(const char *text)
{
    return SLICE(text, strlen(text));
}

Err
catalog__parse_stored(DdlContext *ddl, Arena *arena, const char *sql, AstStatement **ast_out)
{
    size_t consumed;
    const ParseOptions options = {.stored = true};
    return sql_parse(arena, text_slice(sql), &options, ast_out, &consumed, ddl->msg);
}

static SchemaRow *
table_row(SchemaRow *row, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        if (row[i].type == ROW_TABLE) return &row[i];
    }
    UNREACHABLE();
}

/* Copy a unit's rows for editing. */
SchemaRow *
catalog__rows_copy(Arena *arena, const CatalogUnit *unit)
{
    SchemaRow *row = ARENA_NEW_ARRAY(arena, SchemaRow, unit->row_count + 1);
    if (row != NULL) memcpy(row, unit->row, sizeof(*row) * unit->row_count);
    return row;
}

/* ---- ADD COLUMN ---- */

static bool
is_constant(const AstExpr *expr)
{
    while (expr->kind == AST_EXPR_UNARY &&
           (expr->op == AST_UNARY_NEGATE || expr->op == AST_UNARY_PLUS)) {
        expr = expr->u.unary.operand;
    }
    return expr->kind == AST_EXPR_NULL || expr->kind == AST_EXPR_INTEGER ||
           expr->kind == AST_EXPR_HEX || expr->kind == AST_EXPR_REAL ||
           expr->kind == AST_EXPR_STRING || expr->kind == AST_EXPR_BLOB ||
           expr->kind == AST_EXPR_COLUMN;
}

/* What SQLite refuses for a table that has rows, because they would need a value each. */
static const char *
refused_with_rows(const AstColumnDef *column, bool foreign_keys)
{
    bool has_default = false, is_not_null = false, is_generated = false, refers = false;
    const char *why = NULL;
    for (u32 i = 0; i < column->constraints.count; i++) {
        const AstConstraint *at = &column->constraints.items[i];
        if (at->kind == AST_CONSTRAINT_GENERATED && at->stored) return "cannot add a STORED column";
        is_generated = is_generated || at->kind == AST_CONSTRAINT_GENERATED;
        is_not_null = is_not_null || at->kind == AST_CONSTRAINT_NOT_NULL;
        refers = refers || at->kind == AST_CONSTRAINT_FOREIGN_KEY;
        if (at->kind != AST_CONSTRAINT_DEFAULT) continue;
        if (!is_constant(at->expr)) why = "Cannot add a column with non-constant default";
        has_default = at->expr->kind != AST_EXPR_NULL;
    }
    if (foreign_keys && refers && has_default) {
        return "Cannot add a REFERENCES column with non-NULL default value";
    }
    if (is_not_null && !has_default && !is_generated) {
        return "Cannot add a NOT NULL column with default value NULL";
    }
    return why;
}

static Err
check_added(DdlContext *ddl, const TableDef *table, const AstColumnDef *column)
{
    for (u32 i = 0; i < column->constraints.count; i++) {
        AstConstraintKind kind = column->constraints.items[i].kind;
        if (kind == AST_CONSTRAINT_PRIMARY_KEY) {
            return err_set(ddl->msg, ERR_SQL, "Cannot add a PRIMARY KEY column");
        }
        if (kind == AST_CONSTRAINT_UNIQUE) {
            return err_set(ddl->msg, ERR_SQL, "Cannot add a UNIQUE column");
        }
    }
    const char *why = refused_with_rows(column, ddl->foreign_keys);
    if (why == NULL) return OK;
    StoreCursor *cursor;
    bool found = false;
    Err err = store_cursor_open(ddl->txn, table->tree, &cursor);
    if (err != OK) return err;
    err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    store_cursor_close(cursor);
    if (err == OK && found) err = err_set(ddl->msg, ERR_SQL, "%s", why);
    return err;
}

Err
ddl_add_column(DdlContext *ddl, const TableDef *table, const AstAlter *alter, Catalog **new_out)
{
    *new_out = NULL;
    Err err = check_added(ddl, table, alter->definition);
    if (err != OK) return err;
    CatalogUnit *before = catalog__unit_of(ddl->old, text_slice(table->name));
    CatalogUnit *unit = NULL;
    AstStatement *ast;
    Arena arena;
    arena_init(&arena, NULL);
    SchemaRow *row = catalog__rows_copy(&arena, before);
    err = row == NULL ? ERR_NOMEM : catalog__parse_stored(ddl, &arena, table->sql, &ast);
    if (err == OK) {
        /* Behind the last column, before the table's constraints. */
        const AstColumnDefs *columns = &ast->u.create_table->columns;
        u32 at = span_end(columns->items[columns->count - 1].span);
        Slice clause = span_slice(ddl->sql, alter->clause);
        SchemaRow *own = table_row(row, before->row_count);
        own->sql = arena_printf(&arena, "%.*s, %.*s%s", (int)at, table->sql, (int)clause.bytes,
                                (const char *)clause.p, table->sql + at);
        err = own->sql == NULL ? ERR_NOMEM : OK;
    }
    if (err == OK) err = catalog__unit_rebuild(ddl, row, before->row_count, NULL, &unit);
    if (err == OK) err = catalog__finish(ddl, before, unit, new_out);
    arena_free(&arena);
    return err;
}

/* ---- DROP COLUMN ---- */

Err
ddl_check_dropped(DdlContext *ddl, const TableDef *table, const AstAlter *alter, u32 *column_out)
{
    Slice name = alter->column.text;
    if (table->is_view) {
        return err_set(ddl->msg, ERR_SQL, "cannot drop column from view \"%s\"", table->name);
    }
    i32 at = catalog__column_find(table, name);
    if (at < 0) {
        return err_set_at(ddl->msg, ERR_SQL, (i32)alter->column.span.offset,
                          "no such column: \"%.*s\"", (int)name.bytes, (const char *)name.p);
    }
    const ColumnDef *column = &table->column[at];
    *column_out = (u32)at;
    if (column->primary_key || table->rowid_column == (u32)at) {
        return err_set(ddl->msg, ERR_SQL, "cannot drop PRIMARY KEY column: \"%s\"", column->name);
    }
    for (u32 i = 0; i < table->index_count; i++) {
        const IndexDef *index = table->index[i];
        if (index->origin != INDEX_UNIQUE || index->key_columns != 1) continue;
        if (index->column[0].column != (u32)at) continue;
        return err_set(ddl->msg, ERR_SQL, "cannot drop UNIQUE column: \"%s\"", column->name);
    }
    if (table->column_count == 1) {
        return err_set(ddl->msg, ERR_SQL, "cannot drop column \"%s\": no other columns exist",
                       column->name);
    }
    return OK;
}

/* The text without the column and one of the commas beside it. */
static char *
without_column(Arena *arena, const char *sql, const AstColumnDefs *columns, u32 at)
{
    u32 from, to;
    if (at + 1 < columns->count) {
        from = columns->items[at].span.offset;
        to = columns->items[at + 1].span.offset;
    } else {
        from = span_end(columns->items[at - 1].span);
        to = span_end(columns->items[at].span);
    }
    return arena_printf(arena, "%.*s%s", (int)from, sql, sql + to);
}

/* Rewrite one row without the stored column. */
static Err
strip_row(DdlContext *ddl, const TableDef *table, u32 drop, Slice key, Slice value, Cell *cell,
          Buf *out)
{
    Record record;
    u32 read = 0;
    StoreVerdict verdict;
    Err err = record_open(value, &record);
    if (err == OK) err = record_columns(&record, table->stored_count, cell, &read);
    /* A row older than the column does not hold it. */
    if (err != OK || read <= drop) return err;
    for (u32 i = drop; i + 1 < read; i++)
        cell[i] = cell[i + 1];
    buf_clear(out);
    err = record_encode(cell, read - 1, out);
    if (err != OK) return err;
    return store_put(ddl->txn, table->tree, key, buf_slice(out), STORE_PUT_UPDATE, &verdict);
}

/* Rows are read in portions whose bytes are copied, since a write may move what a cursor showed. */
static Err
strip_rows(DdlContext *ddl, const TableDef *table, u32 drop)
{
    StoreCursor *cursor = NULL;
    StoreRun run = {0};
    bool found;
    Arena arena;
    Buf out = {0};
    arena_init(&arena, NULL);
    Cell *cell = MEM_NEW_ARRAY(Cell, table->stored_count + 1u);
    Err err = cell == NULL ? ERR_NOMEM : store_cursor_open(ddl->txn, table->tree, &cursor);
    if (err == OK) err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    while (err == OK && found && !run.end) {
        err = store_cursor_fetch(cursor, 512, (size_t)1 << 20, false, &run);
        u32 rows = err == OK ? run.rows : 0;
        arena_reset(&arena);
        Slice *copy = ARENA_NEW_ARRAY(&arena, Slice, (size_t)rows * 2 + 1);
        if (copy == NULL) err = ERR_NOMEM;
        for (u32 i = 0; err == OK && i < rows * 2; i++) {
            Slice from = i % 2 == 0 ? run.key[i / 2] : run.value[i / 2];
            copy[i] = SLICE(arena_strndup(&arena, from.p, from.bytes), from.bytes);
            if (copy[i].p == NULL) err = ERR_NOMEM;
        }
        for (u32 i = 0; err == OK && i < rows; i++) {
            err = strip_row(ddl, table, drop, copy[i * 2], copy[i * 2 + 1], cell, &out);
        }
    }
    store_cursor_close(cursor);
    mem_free(cell);
    buf_free(&out);
    arena_free(&arena);
    return err;
}

typedef struct QuotedUse {
    Slice name;
    bool found;
} QuotedUse;

static bool
visit_quoted(void *arg, const AstExpr *expr)
{
    QuotedUse *use = arg;
    if (expr->kind == AST_EXPR_COLUMN && expr->u.column.name.quote == AST_QUOTE_DOUBLE &&
        slice_equal_nocase(expr->u.column.name.text, use->name)) {
        use->found = true;
    }
    return true;
}

static bool
has_string_term(const AstOrderTerms *terms, Slice name)
{
    for (u32 i = 0; i < terms->count; i++) {
        const AstExpr *expr = terms->items[i].expr;
        if (expr->kind == AST_EXPR_COLLATE) expr = expr->u.collate.operand;
        if (expr->kind == AST_EXPR_STRING && slice_equal_nocase(expr->u.literal, name)) return true;
    }
    return false;
}

/* Who used the column as "x", or as 'x' in an index, must not be left with a string. */
static Err
check_quoted(DdlContext *ddl, Arena *arena, const SchemaRow *row, const char *column)
{
    if (row->sql == NULL || (row->type != ROW_TABLE && row->type != ROW_INDEX)) return OK;
    AstStatement *ast;
    QuotedUse use = {.name = text_slice(column)};
    const AstVisitor visitor = {.arg = &use, .expr = visit_quoted};
    Err err = catalog__parse_stored(ddl, arena, row->sql, &ast);
    if (err != OK) return err;
    ast_walk_statement(&visitor, ast);
    if (row->type == ROW_INDEX) {
        use.found = use.found || has_string_term(&ast->u.create_index->terms, use.name);
    }
    if (!use.found) return OK;
    return err_set(ddl->msg, ERR_SQL, "error in %s %s after drop column: no such column: %s",
                   row->type == ROW_TABLE ? "table" : "index", row->name, column);
}

/* The unit's rows without the column; `row` is edited. */
static Err
rows_without_column(DdlContext *ddl, Arena *arena, const TableDef *table, u32 at, SchemaRow *row,
                    u32 count)
{
    AstStatement *ast;
    Err err = OK;
    for (u32 i = 0; err == OK && i < count; i++)
        err = catalog__fix_strings(ddl, arena, table, &row[i]);
    if (err != OK) return err;
    SchemaRow *own = table_row(row, count);
    err = catalog__parse_stored(ddl, arena, own->sql, &ast);
    if (err != OK) return err;
    own->sql = without_column(arena, own->sql, &ast->u.create_table->columns, at);
    return own->sql == NULL ? ERR_NOMEM : OK;
}

Err
ddl_drop_column(DdlContext *ddl, const TableDef *table, const AstAlter *alter, Catalog **new_out)
{
    *new_out = NULL;
    u32 at = 0;
    Err err = ddl_check_dropped(ddl, table, alter, &at);
    if (err != OK) return err;
    CatalogUnit *before = catalog__unit_of(ddl->old, text_slice(table->name));
    CatalogUnit *unit = NULL;
    Arena arena;
    arena_init(&arena, NULL);
    SchemaRow *row = catalog__rows_copy(&arena, before);
    err = row == NULL ? ERR_NOMEM
                      : rows_without_column(ddl, &arena, table, at, row, before->row_count);
    if (err == OK) {
        err = catalog__unit_rebuild(ddl, row, before->row_count, "after drop column", &unit);
    }
    for (u32 i = 0; err == OK && i < before->row_count; i++)
        err = check_quoted(ddl, &arena, &row[i], table->column[at].name);
    if (err == OK && table->column[at].generated != 1) {
        err = strip_rows(ddl, table, table->column[at].stored_index);
    }
    if (err == OK) {
        err = catalog__finish(ddl, before, unit, new_out);
    } else {
        catalog__unit_release(unit);
    }
    arena_free(&arena);
    return err;
}
