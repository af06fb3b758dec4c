/*
 * table_refs.c -- a walk over a syntax tree that finds the tokens naming one table.
 *
 * Recursion is bounded: the parser limits the height of expressions and the nesting of selects.
 */
#include "sql/catalog/table_refs.h"

#include "sql/parse/parse.h"

static void walk_select(TableRefs *refs, const AstSelect *select);
static void walk_expr(TableRefs *refs, const AstExpr *expr);

static void
add(TableRefs *refs, const AstName *name)
{
    if (!ast_name_present(name) || !slice_equal_nocase(name->text, refs->name)) return;
    if (refs->count == refs->capacity) {
        u32 capacity = refs->capacity * 2 + 16;
        Span *list = ARENA_NEW_ARRAY(refs->arena, Span, capacity);
        refs->out_of_memory = refs->out_of_memory || list == NULL;
        if (list == NULL) return;
        if (refs->count > 0) memcpy(list, refs->span, sizeof(*list) * refs->count);
        refs->span = list;
        refs->capacity = capacity;
    }
    refs->span[refs->count++] = name->span;
}

static void
walk_exprs(TableRefs *refs, const AstExprs *exprs)
{
    for (u32 i = 0; i < exprs->count; i++)
        walk_expr(refs, exprs->items[i]);
}

static void
walk_terms(TableRefs *refs, const AstOrderTerms *terms)
{
    for (u32 i = 0; i < terms->count; i++)
        walk_expr(refs, terms->items[i].expr);
}

static void
walk_window(TableRefs *refs, const AstWindow *window)
{
    if (window == NULL) return;
    walk_exprs(refs, &window->partition_by);
    walk_terms(refs, &window->order_by);
    walk_expr(refs, window->start.offset);
    walk_expr(refs, window->end.offset);
}

static void
walk_in(TableRefs *refs, const AstIn *in)
{
    walk_expr(refs, in->operand);
    walk_exprs(refs, &in->list);
    walk_select(refs, in->select);
    if (in->kind == AST_IN_TABLE) add(refs, &in->table);
}

static void
walk_case(TableRefs *refs, const AstCase *cases)
{
    walk_expr(refs, cases->operand);
    for (u32 i = 0; i < cases->count; i++) {
        walk_expr(refs, cases->arms[i].when);
        walk_expr(refs, cases->arms[i].then);
    }
    walk_expr(refs, cases->otherwise);
}

static void
walk_function(TableRefs *refs, const AstFunction *function)
{
    walk_exprs(refs, &function->args);
    walk_terms(refs, &function->order_by);
    walk_expr(refs, function->filter);
    walk_window(refs, function->over);
}

static void
walk_expr(TableRefs *refs, const AstExpr *expr)
{
    if (expr == NULL) return;
    switch ((AstExprKind)expr->kind) {
    case AST_EXPR_COLUMN:
        if (expr->u.column.qualifier != NULL) add(refs, &expr->u.column.qualifier->table);
        return;
    case AST_EXPR_UNARY:
    case AST_EXPR_RAISE: walk_expr(refs, expr->u.unary.operand); return;
    case AST_EXPR_BINARY:
        walk_expr(refs, expr->u.binary.left);
        walk_expr(refs, expr->u.binary.right);
        return;
    case AST_EXPR_AND:
    case AST_EXPR_OR:
    case AST_EXPR_ROW: walk_exprs(refs, &expr->u.list); return;
    case AST_EXPR_COLLATE: walk_expr(refs, expr->u.collate.operand); return;
    case AST_EXPR_CAST: walk_expr(refs, expr->u.cast.operand); return;
    case AST_EXPR_BETWEEN:
        walk_expr(refs, expr->u.between.operand);
        walk_expr(refs, expr->u.between.low);
        walk_expr(refs, expr->u.between.high);
        return;
    case AST_EXPR_LIKE:
        walk_expr(refs, expr->u.like->operand);
        walk_expr(refs, expr->u.like->pattern);
        walk_expr(refs, expr->u.like->escape);
        return;
    case AST_EXPR_IN: walk_in(refs, expr->u.in); return;
    case AST_EXPR_EXISTS:
    case AST_EXPR_SUBQUERY: walk_select(refs, expr->u.select); return;
    case AST_EXPR_CASE: walk_case(refs, expr->u.case_); return;
    case AST_EXPR_FUNCTION: walk_function(refs, expr->u.function); return;
    case AST_EXPR_NULL:
    case AST_EXPR_INTEGER:
    case AST_EXPR_HEX:
    case AST_EXPR_REAL:
    case AST_EXPR_STRING:
    case AST_EXPR_BLOB:
    case AST_EXPR_CURRENT:
    case AST_EXPR_PARAM: return;
    }
}

static void
walk_from(TableRefs *refs, const AstFrom *from)
{
    for (u32 i = 0; from != NULL && i < from->count; i++) {
        const AstFromItem *item = &from->items[i];
        if (item->kind == AST_FROM_TABLE) add(refs, &item->name);
        walk_exprs(refs, &item->args);
        walk_select(refs, item->select);
        walk_from(refs, item->nested);
        walk_expr(refs, item->on);
    }
}

static void
walk_results(TableRefs *refs, const AstResults *results)
{
    for (u32 i = 0; i < results->count; i++) {
        walk_expr(refs, results->items[i].expr);
        if (results->items[i].kind == AST_RESULT_TABLE_STAR) add(refs, &results->items[i].table);
    }
}

/* True if a common table expression hides the table. */
static bool
walk_with(TableRefs *refs, const AstWith *with)
{
    for (u32 i = 0; with != NULL && i < with->count; i++) {
        if (slice_equal_nocase(with->items[i].name.text, refs->name)) return true;
    }
    for (u32 i = 0; with != NULL && i < with->count; i++)
        walk_select(refs, with->items[i].select);
    return false;
}

static void
walk_select(TableRefs *refs, const AstSelect *select)
{
    if (select == NULL || walk_with(refs, select->with)) return;
    for (u32 i = 0; i < select->count; i++) {
        const AstArm *arm = &select->arms[i];
        for (u32 k = 0; k < arm->values.count; k++)
            walk_exprs(refs, &arm->values.items[k]);
        walk_results(refs, &arm->results);
        walk_from(refs, arm->from);
        walk_expr(refs, arm->where);
        walk_exprs(refs, &arm->group_by);
        walk_expr(refs, arm->having);
        for (u32 k = 0; k < arm->window_count; k++)
            walk_window(refs, &arm->windows[k]);
    }
    walk_terms(refs, &select->order_by);
    walk_expr(refs, select->limit);
    walk_expr(refs, select->offset);
}

static void
walk_sets(TableRefs *refs, const AstSets *sets)
{
    for (u32 i = 0; i < sets->count; i++)
        walk_expr(refs, sets->items[i].value);
}

static void
walk_insert(TableRefs *refs, const AstInsert *insert)
{
    if (walk_with(refs, insert->with)) return;
    add(refs, &insert->target.name);
    walk_select(refs, insert->select);
    for (u32 i = 0; i < insert->upserts.count; i++) {
        const AstUpsert *upsert = &insert->upserts.items[i];
        walk_terms(refs, &upsert->target);
        walk_expr(refs, upsert->target_where);
        walk_sets(refs, &upsert->sets);
        walk_expr(refs, upsert->where);
    }
    walk_results(refs, &insert->returning);
}

static void
walk_constraints(TableRefs *refs, const AstConstraints *constraints)
{
    for (u32 i = 0; i < constraints->count; i++) {
        const AstConstraint *at = &constraints->items[i];
        if (at->foreign_key != NULL) add(refs, &at->foreign_key->table);
        walk_expr(refs, at->expr);
    }
}

static void
walk_schema(TableRefs *refs, const AstStatement *ast)
{
    switch (ast->kind) {
    case AST_STMT_CREATE_TABLE: {
        const AstCreateTable *table = ast->u.create_table;
        add(refs, &table->name);
        for (u32 i = 0; i < table->columns.count; i++)
            walk_constraints(refs, &table->columns.items[i].constraints);
        walk_constraints(refs, &table->constraints);
        return;
    }
    case AST_STMT_CREATE_INDEX:
        add(refs, &ast->u.create_index->table);
        walk_terms(refs, &ast->u.create_index->terms);
        walk_expr(refs, ast->u.create_index->where);
        return;
    case AST_STMT_CREATE_VIEW: walk_select(refs, ast->u.create_view->select); return;
    case AST_STMT_CREATE_TRIGGER: {
        const AstCreateTrigger *trigger = ast->u.create_trigger;
        add(refs, &trigger->table);
        walk_expr(refs, trigger->when);
        for (u32 i = 0; i < trigger->count; i++)
            table_refs_collect(refs, trigger->steps[i]);
        return;
    }
    default: return;
    }
}

void
table_refs_collect(TableRefs *refs, const AstStatement *ast)
{
    switch (ast->kind) {
    case AST_STMT_SELECT: walk_select(refs, ast->u.select); return;
    case AST_STMT_INSERT: walk_insert(refs, ast->u.insert); return;
    case AST_STMT_UPDATE:
        if (walk_with(refs, ast->u.update->with)) return;
        add(refs, &ast->u.update->target.name);
        walk_sets(refs, &ast->u.update->sets);
        walk_from(refs, ast->u.update->from);
        walk_expr(refs, ast->u.update->where);
        walk_results(refs, &ast->u.update->returning);
        return;
    case AST_STMT_DELETE:
        if (walk_with(refs, ast->u.delete_->with)) return;
        add(refs, &ast->u.delete_->target.name);
        walk_expr(refs, ast->u.delete_->where);
        walk_results(refs, &ast->u.delete_->returning);
        return;
    default: walk_schema(refs, ast); return;
    }
}

char *
table_refs_replace(TableRefs *refs, Slice text, Slice new_name)
{
    /* The walk goes by meaning; the edit goes by position. */
    for (u32 i = 1; i < refs->count; i++) {
        Span at = refs->span[i];
        u32 k = i;
        for (; k > 0 && refs->span[k - 1].offset > at.offset; k--)
            refs->span[k] = refs->span[k - 1];
        refs->span[k] = at;
    }
    Buf out = {0};
    Err err = OK;
    size_t from = 0;
    for (u32 i = 0; err == OK && i < refs->count; i++) {
        Span span = refs->span[i];
        if (i > 0 && span.offset == refs->span[i - 1].offset) continue;
        err = buf_append(&out, text.p + from, span.offset - from);
        /* SQLite writes the new name in double quotes. */
        if (err == OK) err = sql_name_append(&out, new_name, true);
        from = span_end(span);
    }
    if (err == OK) err = buf_append(&out, text.p + from, text.bytes - from);
    char *copy = err == OK ? arena_strndup(refs->arena, out.p, out.bytes) : NULL;
    buf_free(&out);
    return copy;
}
