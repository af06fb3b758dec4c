/*
 * parse.c -- the entry points: set a Parser up, drive it, hand out its result or its error.
 */
#include "sql/parse/parse.h"

#include <stdarg.h>
#include <stdio.h>

#include "sql/parse/build.h"

/* ---- Errors ---- */

static void
set_error(Parser *P, Err err, i64 offset, const char *format, va_list args)
{
    if (P->err == ERR_NOMEM) return; /* Whatever else is wrong, it may be because of that. */
    P->err = err;
    if (P->msg == NULL) return;
    va_list again;
    va_copy(again, args);
    int bytes = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = bytes < 0 ? NULL : mem_alloc((size_t)bytes + 1);
    if (text == NULL) {
        P->err = ERR_NOMEM;
        return;
    }
    vsnprintf(text, (size_t)bytes + 1, format, args);
    err_clear(P->msg);
    *P->msg = (ErrMsg){.err = err, .sql_offset = (i32)offset, .text = text};
}

void
parse__fail(Parser *P, i64 offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(P, ERR_SQL, offset, format, args);
    va_end(args);
}

void
parse__fail_code(Parser *P, Err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(P, err, -1, format, args);
    va_end(args);
}

void
parse__syntax_error(Parser *P, const Token *token)
{
    if (token->bytes == 0) {
        parse__fail(P, -1, "incomplete input");
    } else {
        parse__fail(P, token->offset, "near \"%.*s\": syntax error", (int)token->bytes,
                    (const char *)P->text + token->offset);
    }
}

void
parse__out_of_memory(Parser *P)
{
    P->err = ERR_NOMEM;
}

/* The code stands for its text; to make one would take memory. */
static void
note_out_of_memory(ErrMsg *msg)
{
    if (msg == NULL) return;
    err_clear(msg);
    msg->err = ERR_NOMEM;
}

/* ---- Entry points ---- */

static u32
or_default(u32 value, u32 fallback)
{
    return value != 0 ? value : fallback;
}

static void
parser_init(Parser *P, Arena *arena, Slice text, const ParseOptions *options, ErrMsg *msg)
{
    static const ParseOptions defaults = {0};
    if (options == NULL) options = &defaults;
    memset(P, 0, sizeof(*P));
    P->arena = arena;
    P->msg = msg;
    P->expr_depth_max = or_default(options->expr_depth_max, PARSE_EXPR_DEPTH_MAX);
    P->parser_depth_max = or_default(options->parser_depth_max, PARSE_PARSER_DEPTH_MAX);
    P->compound_max = or_default(options->compound_max, PARSE_COMPOUND_MAX);
    P->function_args_max = or_default(options->function_args_max, PARSE_FUNCTION_ARGS_MAX);
    P->param_number_max = or_default(options->param_number_max, PARSE_PARAM_NUMBER_MAX);
    P->columns_max = or_default(options->columns_max, PARSE_COLUMNS_MAX);
    P->text_bytes_max = options->text_bytes_max != 0 ? options->text_bytes_max
                                                     : PARSE_TEXT_BYTES_MAX;
    P->text_bytes_max = MIN_OF(P->text_bytes_max, (size_t)INT32_MAX - 16);
    P->stored = options->stored;
    P->text = text.p != NULL ? text.p : (const u8 *)"";
    /* Offsets are 32 bits.  What lies beyond the limit is cut off; the token that reaches the cut
       is over the limit and is refused. */
    P->end = P->text + MIN_OF(text.bytes, P->text_bytes_max + 8);
}

Err
sql_parse(Arena *arena, Slice text, const ParseOptions *options, AstStatement **statement_out,
          size_t *consumed_out, ErrMsg *msg)
{
    Parser parser;
    parser_init(&parser, arena, text, options, msg);
    parse__drive(&parser, false);
    ASSERT(parser.consumed <= text.bytes);
    *consumed_out = parser.consumed;
    *statement_out = parser.err == OK ? parser.statement : NULL;
    if (parser.err == ERR_NOMEM) note_out_of_memory(msg);
    return parser.err;
}

Err
sql_parse_expr(Arena *arena, Slice text, const ParseOptions *options, AstExpr **expr_out,
               ErrMsg *msg)
{
    Parser parser;
    parser_init(&parser, arena, text, options, msg);
    parse__drive(&parser, true);
    if (parser.err == OK) {
        /* A semicolon ends an expression no more than any other token. */
        Token rest;
        lex__next(parser.text, parser.end, parser.consumed, &rest);
        bool semicolon = parser.current.bytes != 0;
        if (semicolon) rest = parser.current;
        if (rest.bytes != 0) parse__syntax_error(&parser, &rest);
    }
    *expr_out = parser.err == OK ? parser.lone : NULL;
    if (parser.err == ERR_NOMEM) note_out_of_memory(msg);
    return parser.err;
}
