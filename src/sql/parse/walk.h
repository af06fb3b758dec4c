/*
 * walk.h -- visit every name, expression and SELECT of a tree, in the order of the text.
 *
 * For work that must not miss an identifier (RENAME edits tokens by their spans) or an expression
 * (which functions does a view call?).  Depth is bounded as the tree's is.
 */
#pragma once

#include "sql/parse/ast.h"

/* What an identifier names where it stands.  Nothing is resolved: a column may turn out to be a
   string ("x"), and a table a CTE. */
typedef enum AstRole {
    AST_ROLE_SCHEMA,
    AST_ROLE_TABLE, /* Table, view, CTE, table-valued function; also the name of one made here. */
    AST_ROLE_QUALIFIER, /* The table part of t.c and t.* */
    AST_ROLE_COLUMN,
    AST_ROLE_ALIAS, /* Of a result column or a table. */
    AST_ROLE_FUNCTION,
    AST_ROLE_COLLATION,
    AST_ROLE_WINDOW,
    AST_ROLE_INDEX,
    AST_ROLE_TRIGGER,
    AST_ROLE_CONSTRAINT,
    AST_ROLE_OTHER, /* Savepoint, pragma, module, MATCH name, STORED... */
} AstRole;

/* Any callback may be NULL. */
typedef struct AstVisitor {
    void *arg;
    void (*name)(void *arg, AstRole role, const AstName *name);
    /* Before what is inside; false: not inside. */
    bool (*expr)(void *arg, const AstExpr *expr);
    bool (*select)(void *arg, const AstSelect *select);
} AstVisitor;

void ast_walk_expr(const AstVisitor *visitor, const AstExpr *expr);
void ast_walk_select(const AstVisitor *visitor, const AstSelect *select);
void ast_walk_statement(const AstVisitor *visitor, const AstStatement *statement);
