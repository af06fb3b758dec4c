/*
 * print.c -- from a syntax tree back to SQL.
 *
 * Depth: the recursion follows the tree, whose depth the parser bounds (AstExpr.height, and the
 * parser's stack for nested SELECTs).  A Printer keeps the first error, so that the functions read
 * as the text they write.
 */
#include "sql/parse/print.h"

#include "sql/parse/parse.h"

typedef struct Printer {
    Buf *buf;
    Err err;
} Printer;

static void print_expr(Printer *out, const AstExpr *expr);
static void print_select(Printer *out, const AstSelect *select);
static void print_from(Printer *out, const AstFrom *from);

static void
put(Printer *out, const char *text)
{
    if (out->err == OK) out->err = buf_append_text(out->buf, text);
}

static void
put_slice(Printer *out, Slice slice)
{
    if (out->err == OK) out->err = buf_append(out->buf, slice.p, slice.bytes);
}

/* What was quoted stays quoted: "x" may fall back to a string where x may not. */
static void
put_name(Printer *out, const AstName *name)
{
    if (out->err != OK) return;
    if (name->quote == AST_QUOTE_STRING) {
        out->err = sql_string_append(out->buf, name->text);
    } else if (name->quote == AST_QUOTE_BRACKET &&
               memchr(name->text.p, ']', name->text.bytes) == NULL) {
        put(out, "[");
        put_slice(out, name->text);
        put(out, "]");
    } else {
        out->err = sql_name_append(out->buf, name->text, name->quote != AST_QUOTE_NONE);
    }
}

static void
put_names(Printer *out, const AstNames *names)
{
    for (u32 i = 0; i < names->count; i++) {
        if (i != 0) put(out, ", ");
        put_name(out, &names->items[i]);
    }
}

static void
put_qualified(Printer *out, const AstName *schema, const AstName *name)
{
    if (ast_name_present(schema)) {
        put_name(out, schema);
        put(out, ".");
    }
    put_name(out, name);
}

static void
put_exprs(Printer *out, const AstExprs *list)
{
    for (u32 i = 0; i < list->count; i++) {
        if (i != 0) put(out, ", ");
        print_expr(out, list->items[i]);
    }
}

static void
put_order_terms(Printer *out, const AstOrderTerms *terms)
{
    static const char *const sorts[] = {"", " ASC", " DESC"};
    static const char *const nulls[] = {"", " NULLS FIRST", " NULLS LAST"};
    for (u32 i = 0; i < terms->count; i++) {
        if (i != 0) put(out, ", ");
        print_expr(out, terms->items[i].expr);
        put(out, sorts[terms->items[i].sort]);
        put(out, nulls[terms->items[i].nulls]);
    }
}

/* ---- Expressions ---- */

static const char *const unary_words[] = {
    [AST_UNARY_NEGATE] = "-", [AST_UNARY_PLUS] = "+",         [AST_UNARY_BITNOT] = "~",
    [AST_UNARY_NOT] = "NOT ", [AST_UNARY_ISNULL] = " ISNULL", [AST_UNARY_NOTNULL] = " NOTNULL",
};

static const char *const binary_words[] = {
    [AST_BINARY_EQ] = " = ",           [AST_BINARY_NE] = " <> ",
    [AST_BINARY_LT] = " < ",           [AST_BINARY_LE] = " <= ",
    [AST_BINARY_GT] = " > ",           [AST_BINARY_GE] = " >= ",
    [AST_BINARY_IS] = " IS ",          [AST_BINARY_IS_NOT] = " IS NOT ",
    [AST_BINARY_ADD] = " + ",          [AST_BINARY_SUB] = " - ",
    [AST_BINARY_MUL] = " * ",          [AST_BINARY_DIV] = " / ",
    [AST_BINARY_REM] = " % ",          [AST_BINARY_BITAND] = " & ",
    [AST_BINARY_BITOR] = " | ",        [AST_BINARY_SHIFT_LEFT] = " << ",
    [AST_BINARY_SHIFT_RIGHT] = " >> ", [AST_BINARY_CONCAT] = " || ",
    [AST_BINARY_ARROW] = " -> ",       [AST_BINARY_ARROW_TEXT] = " ->> ",
};

static void
print_blob(Printer *out, Slice blob)
{
    put(out, "x'");
    for (size_t i = 0; i < blob.bytes; i++) {
        if (out->err == OK) out->err = buf_printf(out->buf, "%02X", blob.p[i]);
    }
    put(out, "'");
}

static void
print_param(Printer *out, const AstExpr *expr)
{
    if (expr->u.param.name.p != NULL) {
        put_slice(out, expr->u.param.name);
    } else {
        put(out, "?");
    }
}

static void
print_leaf(Printer *out, const AstExpr *expr)
{
    static const char *const current[] = {"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP"};
    switch (expr->kind) {
    case AST_EXPR_NULL: put(out, "NULL"); break;
    case AST_EXPR_INTEGER:
    case AST_EXPR_REAL: put_slice(out, expr->u.literal); break;
    case AST_EXPR_HEX:
        put(out, "0x");
        put_slice(out, expr->u.literal);
        break;
    case AST_EXPR_STRING:
        if (out->err == OK) out->err = sql_string_append(out->buf, expr->u.literal);
        break;
    case AST_EXPR_BLOB: print_blob(out, expr->u.literal); break;
    case AST_EXPR_CURRENT: put(out, current[expr->op]); break;
    case AST_EXPR_PARAM: print_param(out, expr); break;
    default: {
        ASSERT(expr->kind == AST_EXPR_COLUMN);
        const AstQualifier *qualifier = expr->u.column.qualifier;
        if (qualifier != NULL) {
            put_qualified(out, &qualifier->schema, &qualifier->table);
            put(out, ".");
        }
        put_name(out, &expr->u.column.name);
    }
    }
}

static void
print_unary(Printer *out, const AstExpr *expr)
{
    bool behind = expr->op == AST_UNARY_ISNULL || expr->op == AST_UNARY_NOTNULL;
    put(out, "(");
    if (!behind) put(out, unary_words[expr->op]);
    print_expr(out, expr->u.unary.operand);
    if (behind) put(out, unary_words[expr->op]);
    put(out, ")");
}

static void
print_bound(Printer *out, const AstBound *bound)
{
    static const char *const words[] = {"UNBOUNDED PRECEDING", " PRECEDING", "CURRENT ROW",
                                        " FOLLOWING", "UNBOUNDED FOLLOWING"};
    if (bound->offset != NULL) print_expr(out, bound->offset);
    put(out, words[bound->kind]);
}

/* What stands between the parentheses of a window. */
static void
print_window(Printer *out, const AstWindow *window)
{
    static const char *const units[] = {"ROWS", "RANGE", "GROUPS"};
    static const char *const excludes[] = {"", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP",
                                           " EXCLUDE TIES", " EXCLUDE NO OTHERS"};
    put(out, "(");
    if (ast_name_present(&window->base)) put_name(out, &window->base);
    if (window->partition_by.count != 0) {
        put(out, " PARTITION BY ");
        put_exprs(out, &window->partition_by);
    }
    if (window->order_by.count != 0) {
        put(out, " ORDER BY ");
        put_order_terms(out, &window->order_by);
    }
    if (window->has_frame) {
        put(out, " ");
        put(out, units[window->unit]);
        put(out, " BETWEEN ");
        print_bound(out, &window->start);
        put(out, " AND ");
        print_bound(out, &window->end);
        put(out, excludes[window->exclude]);
    }
    put(out, ")");
}

static void
print_function(Printer *out, const AstFunction *function)
{
    put_name(out, &function->name);
    put(out, function->star ? "(*" : function->distinct ? "(DISTINCT " : "(");
    put_exprs(out, &function->args);
    if (function->order_by.count != 0) {
        put(out, " ORDER BY ");
        put_order_terms(out, &function->order_by);
    }
    put(out, ")");
    if (function->filter != NULL) {
        put(out, " FILTER (WHERE ");
        print_expr(out, function->filter);
        put(out, ")");
    }
    if (function->over == NULL) return;
    put(out, " OVER ");
    if (function->over->only_name) {
        put_name(out, &function->over->base);
    } else {
        print_window(out, function->over);
    }
}

static void
print_in(Printer *out, const AstExpr *expr)
{
    const AstIn *in = expr->u.in;
    put(out, "(");
    print_expr(out, in->operand);
    put(out, (expr->flags & AST_FLAG_NOT) != 0 ? " NOT IN " : " IN ");
    if (in->kind == AST_IN_TABLE || in->kind == AST_IN_FUNCTION) {
        put_qualified(out, &in->schema, &in->table);
    }
    if (in->kind != AST_IN_TABLE) put(out, "(");
    if (in->kind == AST_IN_SELECT) {
        print_select(out, in->select);
    } else {
        put_exprs(out, &in->list);
    }
    if (in->kind != AST_IN_TABLE) put(out, ")");
    put(out, ")");
}

static void
print_case(Printer *out, const AstCase *node)
{
    put(out, "CASE ");
    if (node->operand != NULL) print_expr(out, node->operand);
    for (u32 i = 0; i < node->count; i++) {
        put(out, " WHEN ");
        print_expr(out, node->arms[i].when);
        put(out, " THEN ");
        print_expr(out, node->arms[i].then);
    }
    if (node->otherwise != NULL) {
        put(out, " ELSE ");
        print_expr(out, node->otherwise);
    }
    put(out, " END");
}

static void
print_like(Printer *out, const AstExpr *expr)
{
    const AstLike *like = expr->u.like;
    put(out, "(");
    print_expr(out, like->operand);
    put(out, (expr->flags & AST_FLAG_NOT) != 0 ? " NOT " : " ");
    put_slice(out, like->op.text);
    put(out, " ");
    print_expr(out, like->pattern);
    if (like->escape != NULL) {
        put(out, " ESCAPE ");
        print_expr(out, like->escape);
    }
    put(out, ")");
}

static void
print_raise(Printer *out, const AstExpr *expr)
{
    static const char *const words[] = {"IGNORE", "ROLLBACK", "ABORT", "FAIL"};
    put(out, "RAISE(");
    put(out, words[expr->op]);
    if (expr->u.unary.operand != NULL) {
        put(out, ", ");
        print_expr(out, expr->u.unary.operand);
    }
    put(out, ")");
}

static void
print_chain(Printer *out, const AstExpr *expr, const char *between)
{
    put(out, "(");
    for (u32 i = 0; i < expr->u.list.count; i++) {
        if (i != 0) put(out, between);
        print_expr(out, expr->u.list.items[i]);
    }
    put(out, ")");
}

static void
print_expr(Printer *out, const AstExpr *expr)
{
    switch ((AstExprKind)expr->kind) {
    case AST_EXPR_UNARY: print_unary(out, expr); break;
    case AST_EXPR_BINARY:
        put(out, "(");
        print_expr(out, expr->u.binary.left);
        put(out, binary_words[expr->op]);
        print_expr(out, expr->u.binary.right);
        put(out, ")");
        break;
    case AST_EXPR_AND: print_chain(out, expr, " AND "); break;
    case AST_EXPR_OR: print_chain(out, expr, " OR "); break;
    case AST_EXPR_ROW: print_chain(out, expr, ", "); break;
    case AST_EXPR_COLLATE:
        put(out, "(");
        print_expr(out, expr->u.collate.operand);
        put(out, " COLLATE ");
        put_name(out, expr->u.collate.name);
        put(out, ")");
        break;
    case AST_EXPR_CAST:
        put(out, "CAST(");
        print_expr(out, expr->u.cast.operand);
        put(out, " AS ");
        put_slice(out, expr->u.cast.type_text);
        put(out, ")");
        break;
    case AST_EXPR_BETWEEN:
        put(out, "(");
        print_expr(out, expr->u.between.operand);
        put(out, (expr->flags & AST_FLAG_NOT) != 0 ? " NOT BETWEEN " : " BETWEEN ");
        print_expr(out, expr->u.between.low);
        put(out, " AND ");
        print_expr(out, expr->u.between.high);
        put(out, ")");
        break;
    case AST_EXPR_LIKE: print_like(out, expr); break;
    case AST_EXPR_IN: print_in(out, expr); break;
    case AST_EXPR_EXISTS:
    case AST_EXPR_SUBQUERY:
        put(out, expr->kind == AST_EXPR_EXISTS ? "EXISTS (" : "(");
        print_select(out, expr->u.select);
        put(out, ")");
        break;
    case AST_EXPR_CASE: print_case(out, expr->u.case_); break;
    case AST_EXPR_FUNCTION: print_function(out, expr->u.function); break;
    case AST_EXPR_RAISE: print_raise(out, expr); break;
    default: print_leaf(out, expr);
    }
}

/* ---- SELECT ---- */

static void
print_results(Printer *out, const AstResults *results)
{
    for (u32 i = 0; i < results->count; i++) {
        const AstResult *result = &results->items[i];
        if (i != 0) put(out, ", ");
        if (result->kind == AST_RESULT_EXPR) {
            print_expr(out, result->expr);
            if (ast_name_present(&result->alias)) {
                put(out, " AS ");
                put_name(out, &result->alias);
            }
            continue;
        }
        if (result->kind == AST_RESULT_TABLE_STAR) {
            put_name(out, &result->table);
            put(out, ".");
        }
        put(out, "*");
    }
}

static void
print_join(Printer *out, u8 join)
{
    const u8 both = AST_JOIN_LEFT | AST_JOIN_RIGHT;
    if (join == AST_JOIN_COMMA) {
        put(out, ", ");
        return;
    }
    if ((join & AST_JOIN_NATURAL) != 0) put(out, " NATURAL");
    if ((join & AST_JOIN_CROSS) != 0) put(out, " CROSS");
    if ((join & both) == both) {
        put(out, " FULL");
    } else if ((join & AST_JOIN_LEFT) != 0) {
        put(out, " LEFT");
    } else if ((join & AST_JOIN_RIGHT) != 0) {
        put(out, " RIGHT");
    }
    put(out, " JOIN ");
}

static void
print_index_hint(Printer *out, const AstName *indexed_by, bool not_indexed)
{
    if (not_indexed) put(out, " NOT INDEXED");
    if (!ast_name_present(indexed_by)) return;
    put(out, " INDEXED BY ");
    put_name(out, indexed_by);
}

static void
print_from_item(Printer *out, const AstFromItem *item)
{
    switch (item->kind) {
    case AST_FROM_TABLE: put_qualified(out, &item->schema, &item->name); break;
    case AST_FROM_FUNCTION:
        put_qualified(out, &item->schema, &item->name);
        put(out, "(");
        put_exprs(out, &item->args);
        put(out, ")");
        break;
    case AST_FROM_SUBQUERY:
        put(out, "(");
        print_select(out, item->select);
        put(out, ")");
        break;
    case AST_FROM_JOIN:
        put(out, "(");
        print_from(out, item->nested);
        put(out, ")");
        break;
    }
    if (ast_name_present(&item->alias)) {
        put(out, " AS ");
        put_name(out, &item->alias);
    }
    print_index_hint(out, &item->indexed_by, item->not_indexed);
    if (item->on != NULL) {
        put(out, " ON ");
        print_expr(out, item->on);
    }
    if (item->has_using) {
        put(out, " USING (");
        put_names(out, &item->using_columns);
        put(out, ")");
    }
}

static void
print_from(Printer *out, const AstFrom *from)
{
    for (u32 i = 0; i < from->count; i++) {
        if (i != 0) print_join(out, from->items[i].join);
        print_from_item(out, &from->items[i]);
    }
}

static void
print_optional(Printer *out, const char *words, const AstExpr *expr)
{
    if (expr == NULL) return;
    put(out, words);
    print_expr(out, expr);
}

static void
print_arm(Printer *out, const AstArm *arm)
{
    static const char *const ops[] = {"", " UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT "};
    put(out, ops[arm->op]);
    if (arm->is_values) {
        put(out, "VALUES ");
        for (u32 i = 0; i < arm->values.count; i++) {
            put(out, i == 0 ? "(" : ", (");
            put_exprs(out, &arm->values.items[i]);
            put(out, ")");
        }
        return;
    }
    put(out, arm->distinct ? "SELECT DISTINCT " : "SELECT ");
    print_results(out, &arm->results);
    if (arm->from != NULL) {
        put(out, " FROM ");
        print_from(out, arm->from);
    }
    print_optional(out, " WHERE ", arm->where);
    if (arm->group_by.count != 0) {
        put(out, " GROUP BY ");
        put_exprs(out, &arm->group_by);
    }
    print_optional(out, " HAVING ", arm->having);
    for (u32 i = 0; i < arm->window_count; i++) {
        put(out, i == 0 ? " WINDOW " : ", ");
        put_name(out, &arm->windows[i].name);
        put(out, " AS ");
        print_window(out, &arm->windows[i]);
    }
}

static void
print_with(Printer *out, const AstWith *with)
{
    static const char *const materialize[] = {" AS (", " AS MATERIALIZED (",
                                              " AS NOT MATERIALIZED ("};
    if (with == NULL) return;
    put(out, with->recursive ? "WITH RECURSIVE " : "WITH ");
    for (u32 i = 0; i < with->count; i++) {
        const AstCte *cte = &with->items[i];
        if (i != 0) put(out, ", ");
        put_name(out, &cte->name);
        if (cte->columns.count != 0) {
            put(out, "(");
            put_names(out, &cte->columns);
            put(out, ")");
        }
        put(out, materialize[cte->materialize]);
        print_select(out, cte->select);
        put(out, ")");
    }
    put(out, " ");
}

static void
print_order_limit(Printer *out, const AstSelect *select)
{
    if (select->order_by.count != 0) {
        put(out, " ORDER BY ");
        put_order_terms(out, &select->order_by);
    }
    print_optional(out, " LIMIT ", select->limit);
    print_optional(out, " OFFSET ", select->offset);
}

static void
print_select(Printer *out, const AstSelect *select)
{
    print_with(out, select->with);
    for (u32 i = 0; i < select->count; i++)
        print_arm(out, &select->arms[i]);
    print_order_limit(out, select);
}

/* ---- INSERT, UPDATE, DELETE ---- */

static void
print_target(Printer *out, const AstTarget *target)
{
    put_qualified(out, &target->schema, &target->name);
    if (ast_name_present(&target->alias)) {
        put(out, " AS ");
        put_name(out, &target->alias);
    }
    print_index_hint(out, &target->indexed_by, target->not_indexed);
}

static void
print_sets(Printer *out, const AstSets *sets)
{
    put(out, " SET ");
    for (u32 i = 0; i < sets->count; i++) {
        const AstSet *set = &sets->items[i];
        if (i != 0) put(out, ", ");
        if (set->is_row) put(out, "(");
        put_names(out, &set->columns);
        if (set->is_row) put(out, ")");
        put(out, " = ");
        print_expr(out, set->value);
    }
}

static void
print_returning(Printer *out, const AstResults *returning)
{
    if (returning->count == 0) return;
    put(out, " RETURNING ");
    print_results(out, returning);
}

static const char *const conflict_words[] = {"",         " OR ROLLBACK", " OR ABORT",
                                             " OR FAIL", " OR IGNORE",   " OR REPLACE"};

static void
print_upserts(Printer *out, const AstUpserts *upserts)
{
    for (u32 i = 0; i < upserts->count; i++) {
        const AstUpsert *upsert = &upserts->items[i];
        put(out, " ON CONFLICT");
        if (upsert->target.count != 0) {
            put(out, " (");
            put_order_terms(out, &upsert->target);
            put(out, ")");
        }
        print_optional(out, " WHERE ", upsert->target_where);
        put(out, upsert->do_update ? " DO UPDATE" : " DO NOTHING");
        if (upsert->do_update) print_sets(out, &upsert->sets);
        print_optional(out, " WHERE ", upsert->where);
    }
}

static void
print_insert(Printer *out, const AstInsert *insert)
{
    print_with(out, insert->with);
    put(out, "INSERT");
    put(out, conflict_words[insert->conflict]);
    put(out, " INTO ");
    print_target(out, &insert->target);
    if (insert->columns.count != 0) {
        put(out, " (");
        put_names(out, &insert->columns);
        put(out, ")");
    }
    put(out, insert->default_values ? " DEFAULT VALUES" : " ");
    if (insert->select != NULL) print_select(out, insert->select);
    print_upserts(out, &insert->upserts);
    print_returning(out, &insert->returning);
}

static void
print_update(Printer *out, const AstUpdate *update)
{
    print_with(out, update->with);
    put(out, "UPDATE");
    put(out, conflict_words[update->conflict]);
    put(out, " ");
    print_target(out, &update->target);
    print_sets(out, &update->sets);
    if (update->from != NULL) {
        put(out, " FROM ");
        print_from(out, update->from);
    }
    print_optional(out, " WHERE ", update->where);
    print_returning(out, &update->returning);
    if (update->order != NULL) print_order_limit(out, update->order);
}

static void
print_delete(Printer *out, const AstDelete *delete_)
{
    print_with(out, delete_->with);
    put(out, "DELETE FROM ");
    print_target(out, &delete_->target);
    print_optional(out, " WHERE ", delete_->where);
    print_returning(out, &delete_->returning);
    if (delete_->order != NULL) print_order_limit(out, delete_->order);
}

Err
ast_print_expr(Buf *buf, const AstExpr *expr)
{
    Printer out = {.buf = buf};
    print_expr(&out, expr);
    return out.err;
}

Err
ast_print_select(Buf *buf, const AstSelect *select)
{
    Printer out = {.buf = buf};
    print_select(&out, select);
    return out.err;
}

Err
ast_print_statement(Buf *buf, const AstStatement *statement)
{
    static const char *const explain[] = {"", "EXPLAIN ", "EXPLAIN QUERY PLAN ",
                                          "EXPLAIN ANALYZE "};
    Printer out = {.buf = buf};
    put(&out, explain[statement->explain]);
    switch (statement->kind) {
    case AST_STMT_SELECT: print_select(&out, statement->u.select); break;
    case AST_STMT_INSERT: print_insert(&out, statement->u.insert); break;
    case AST_STMT_UPDATE: print_update(&out, statement->u.update); break;
    case AST_STMT_DELETE: print_delete(&out, statement->u.delete_); break;
    default: put_slice(&out, span_slice(statement->text, statement->span));
    }
    return out.err;
}
