/*
 * parse_fuzz.c -- any bytes through the SQL parser.
 *
 * Checked: no crash, the spans lie inside the text, the height bounds the depth, and a printed tree
 * parses to a tree that prints the same.  The first input byte chooses options.
 */
#include <stddef.h>
#include <stdint.h>

#include "sql/parse/parse.h"
#include "sql/parse/print.h"
#include "sql/parse/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void
check_span(const AstStatement *statement, Span span)
{
    ASSERT((u64)span.offset + span.bytes <= statement->text.bytes);
}

static void
check_name(void *arg, AstRole role, const AstName *name)
{
    const AstStatement *statement = arg;
    (void)role;
    check_span(statement, name->span);
    ASSERT(name->hash == ast_name_hash(name->text));
    ASSERT(name->span.bytes >= name->text.bytes);
}

static bool
check_expr(void *arg, const AstExpr *expr)
{
    check_span(arg, expr->span);
    ASSERT(expr->height >= 1 && expr->height <= PARSE_EXPR_DEPTH_MAX);
    return true;
}

static void
check_results(const AstStatement *statement, const AstResults *results)
{
    for (u32 i = 0; i < results->count; i++) {
        const AstResult *result = &results->items[i];
        check_span(statement, result->text);
        if (result->kind != AST_RESULT_EXPR) continue;
        /* The text is at least the expression. */
        ASSERT(result->text.offset <= result->expr->span.offset);
        ASSERT(span_end(result->text) >= span_end(result->expr->span));
    }
}

static void
check_statement(const AstStatement *statement)
{
    AstVisitor visitor = {
        .arg = (void *)(uintptr_t)statement, .name = check_name, .expr = check_expr};
    ast_walk_statement(&visitor, statement);
    check_span(statement, statement->span);
    if (statement->kind == AST_STMT_SELECT) {
        const AstSelect *select = statement->u.select;
        check_span(statement, select->span);
        for (u32 i = 0; i < select->count; i++) {
            check_span(statement, select->arms[i].span);
            check_results(statement, &select->arms[i].results);
        }
    } else if (statement->kind == AST_STMT_CREATE_TABLE) {
        const AstCreateTable *table = statement->u.create_table;
        check_span(statement, table->stored);
        for (u32 i = 0; i < table->columns.count; i++) {
            check_span(statement, table->columns.items[i].span);
        }
    }
}

static void
check_print(Arena *arena, const AstStatement *statement)
{
    if (statement->kind > AST_STMT_DELETE) return;
    Buf first = {0}, second = {0};
    AstStatement *again;
    size_t consumed;
    ASSERT(ast_print_statement(&first, statement) == OK);
    /* Parentheses that printing adds may nest deeper than the parser's stack. */
    Err err = sql_parse(arena, buf_slice(&first), NULL, &again, &consumed, NULL);
    if (err == OK) {
        ASSERT(again != NULL && again->kind == statement->kind);
        ASSERT(ast_print_statement(&second, again) == OK);
        ASSERT(slice_equal(buf_slice(&first), buf_slice(&second)));
    } else {
        ASSERT(statement->span.bytes > PARSE_PARSER_DEPTH_MAX / 4);
    }
    buf_free(&first);
    buf_free(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0) return 0;
    ParseOptions options = {.stored = (data[0] & 1) != 0};
    bool lone = (data[0] & 2) != 0;
    Slice text = SLICE(data + 1, bytes - 1);
    Arena arena;
    ErrMsg msg = {0};
    arena_init(&arena, NULL);
    (void)sql_complete(text);
    if (lone) {
        AstExpr *expr;
        if (sql_parse_expr(&arena, text, &options, &expr, &msg) == OK) ASSERT(expr != NULL);
    }
    while (text.bytes > 0) {
        AstStatement *statement;
        size_t consumed;
        Err err = sql_parse(&arena, text, &options, &statement, &consumed, &msg);
        ASSERT(consumed <= text.bytes);
        if (err != OK || statement == NULL) break;
        check_statement(statement);
        check_print(&arena, statement);
        ASSERT(consumed > 0);
        text = SLICE(text.p + consumed, text.bytes - consumed);
        arena_reset(&arena);
    }
    err_clear(&msg);
    arena_free(&arena);
    return 0;
}
