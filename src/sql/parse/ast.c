/*
 * ast.c -- the few functions over finished trees that everybody needs.
 */
#include "sql/parse/ast.h"

#include "sql/parse/ast_hash.h"

u32
ast_name_hash(Slice name)
{
    return name_hash(name.p, name.bytes);
}

static const char *const statement_names[AST_STMT_COUNT_] = {
    [AST_STMT_SELECT] = "SELECT",
    [AST_STMT_INSERT] = "INSERT",
    [AST_STMT_UPDATE] = "UPDATE",
    [AST_STMT_DELETE] = "DELETE",
    [AST_STMT_CREATE_TABLE] = "CREATE TABLE",
    [AST_STMT_CREATE_INDEX] = "CREATE INDEX",
    [AST_STMT_CREATE_VIEW] = "CREATE VIEW",
    [AST_STMT_CREATE_TRIGGER] = "CREATE TRIGGER",
    [AST_STMT_CREATE_VIRTUAL] = "CREATE VIRTUAL TABLE",
    [AST_STMT_DROP_TABLE] = "DROP TABLE",
    [AST_STMT_DROP_INDEX] = "DROP INDEX",
    [AST_STMT_DROP_VIEW] = "DROP VIEW",
    [AST_STMT_DROP_TRIGGER] = "DROP TRIGGER",
    [AST_STMT_ALTER] = "ALTER TABLE",
    [AST_STMT_BEGIN] = "BEGIN",
    [AST_STMT_COMMIT] = "COMMIT",
    [AST_STMT_ROLLBACK] = "ROLLBACK",
    [AST_STMT_SAVEPOINT] = "SAVEPOINT",
    [AST_STMT_RELEASE] = "RELEASE",
    [AST_STMT_ROLLBACK_TO] = "ROLLBACK TO",
    [AST_STMT_SET_TRANSACTION] = "SET TRANSACTION",
    [AST_STMT_SET_SESSION] = "SET SESSION CHARACTERISTICS",
    [AST_STMT_PRAGMA] = "PRAGMA",
    [AST_STMT_ATTACH] = "ATTACH",
    [AST_STMT_DETACH] = "DETACH",
    [AST_STMT_ANALYZE] = "ANALYZE",
    [AST_STMT_REINDEX] = "REINDEX",
    [AST_STMT_VACUUM] = "VACUUM",
};

const char *
ast_statement_name(AstStatementKind kind)
{
    ASSERT((unsigned)kind < AST_STMT_COUNT_);
    return statement_names[kind];
}
