/*
 * print.h -- from a syntax tree back to SQL.
 *
 * The text means what the tree means: parsing it again gives an equal tree.  It is canonical rather
 * than as typed: operators stand in parentheses, names are quoted where they were or must be,
 * blanks are single.  (Editing text as typed, as ALTER TABLE RENAME must, goes by the spans in the
 * tree.)
 */
#pragma once

#include "sql/parse/ast.h"

MUST_CHECK Err ast_print_expr(Buf *buf, const AstExpr *expr);
MUST_CHECK Err ast_print_select(Buf *buf, const AstSelect *select);
/* SELECT, INSERT, UPDATE and DELETE; of every other statement its text as typed. */
MUST_CHECK Err ast_print_statement(Buf *buf, const AstStatement *statement);
