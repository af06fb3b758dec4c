/*
 * index_build.c -- from CREATE INDEX's syntax tree to an IndexDef.
 */
#include "sql/catalog/catalog_unit.h"

/* A term that is a plain column, else an expression whose text is kept for the binder. */
static Err
index_term(const UnitContext *context, Arena *arena, Slice sql, const AstOrderTerm *term,
           const TableDef *table, IndexColumn *column)
{
    const AstExpr *expr = term->expr;
    const Collation *collation = NULL;
    const char *host = NULL;
    if (expr->kind == AST_EXPR_COLLATE) {
        Err err = catalog__collation(arena, expr->u.collate.name->text, &collation, &host);
        if (err != OK) return err;
        expr = expr->u.collate.operand;
    }
    *column = (IndexColumn){.desc = term->sort == AST_SORT_DESC, .host_collation = host};
    Slice name = SLICE_NONE;
    if (expr->kind == AST_EXPR_COLUMN && expr->u.column.qualifier == NULL) {
        name = expr->u.column.name.text;
    } else if (expr->kind == AST_EXPR_STRING) {
        name = expr->u.literal; /* 'a' names a column here, as in SQLite. */
    }
    i32 at = name.p == NULL ? -1 : catalog__column_find(table, name);
    if (at >= 0) {
        column->column = (u16)at;
        if (collation == NULL) column->host_collation = table->column[at].host_collation;
        column->collation = collation != NULL ? collation : table->column[at].collation;
        return OK;
    }
    if (expr->kind == AST_EXPR_COLUMN && expr->u.column.name.quote != AST_QUOTE_DOUBLE) {
        if (catalog__is_rowid_name(name)) {
            column->column = COLUMN_ROWID;
            column->collation = &collation_binary;
            return OK;
        }
        return err_set_at(context->msg, ERR_SQL, (i32)expr->span.offset, "no such column: %.*s",
                          (int)name.bytes, (const char *)name.p);
    }
    column->column = COLUMN_EXPR;
    column->collation = collation != NULL ? collation : &collation_binary;
    column->expr_sql = catalog__span_copy(arena, sql, expr->span);
    return column->expr_sql == NULL ? ERR_NOMEM : OK;
}

Err
catalog__index_build(const UnitContext *context, Arena *arena, Slice sql, const AstCreateIndex *ast,
                     TableDef *table, IndexDef *index)
{
    u32 count = ast->terms.count;
    index->unique = ast->unique;
    index->origin = INDEX_CREATED;
    index->key_columns = (u16)count;
    index->column = ARENA_NEW_ARRAY(arena, IndexColumn, count + 1);
    if (index->column == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < count; i++) {
        Err err = index_term(context, arena, sql, &ast->terms.items[i], table, &index->column[i]);
        if (err != OK) return err;
    }
    Err err = index->unique ? catalog__check_unique(context, index->column, count) : OK;
    if (err != OK) return err;
    if (ast->where == NULL) return OK;
    index->where_sql = catalog__span_copy(arena, sql, ast->where->span);
    return index->where_sql == NULL ? ERR_NOMEM : OK;
}
