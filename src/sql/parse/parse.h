/*
 * parse.h -- from SQL text to a syntax tree.
 *
 * The language is SQLite 3.54's, with its precedence, its keyword fallback (most keywords serve as
 * names where they cannot be keywords), its limits and its messages, plus BEGIN CONCURRENT,
 * isolation levels and EXPLAIN ANALYZE.
 *
 * Errors are ERR_SQL with SQLite's text and byte offset (near "x": syntax error, incomplete input,
 * unrecognized token: "x", Expression tree is too large (maximum depth 1000)...), ERR_TOOBIG for
 * text over the limit, ERR_LIMIT where SQLite gives SQLITE_ERROR for a limit too, and ERR_NOMEM.
 *
 * Memory: everything goes into the caller's arena, but for the parser's own stack when a statement
 * nests deeply.  Uses a small, constant amount of C stack however deep the text nests.
 * Tasks: no state outside the arena; any task, at any time.
 */
#pragma once

#include "sql/parse/ast.h"

/* SQLite's defaults (sqlite3_limit lowers them). */
#define PARSE_EXPR_DEPTH_MAX    1000u
#define PARSE_PARSER_DEPTH_MAX  2500u
#define PARSE_COMPOUND_MAX      500u
#define PARSE_FROM_MAX          200u
#define PARSE_FUNCTION_ARGS_MAX 1000u
#define PARSE_PARAM_NUMBER_MAX  32766u
#define PARSE_COLUMNS_MAX       2000u
#define PARSE_TEXT_BYTES_MAX    1000000000u

typedef struct ParseOptions {
    u32 expr_depth_max; /* 0 in any of these: the default above; expr_depth: 0 is the default too.
                         */
    u32 parser_depth_max;
    u32 compound_max;
    u32 function_args_max;
    u32 param_number_max;
    u32 columns_max;
    size_t text_bytes_max;
    bool stored;    /* Text from sqlite_schema: SQLite's leniency towards old schemas applies. */
    bool no_params; /* A parameter is an error: parameters prohibited in ... (stored text). */
} ParseOptions;

/*
 * Parse the first statement of `text`.
 *
 * On OK *statement_out is the tree, or NULL if the text holds only blanks, comments and semicolons.
 * *consumed_out is where the rest of the text begins: behind the statement's semicolon, or the end.
 * On error *statement_out is NULL and *consumed_out is behind the token at which parsing stopped.
 * `options` may be NULL for the defaults; `msg` may be NULL.  A NUL byte ends the text:
 * *consumed_out does not pass it, so a loop over statements ends when *statement_out is NULL, not
 * at text.bytes.
 */
MUST_CHECK Err sql_parse(Arena *arena, Slice text, const ParseOptions *options,
                         AstStatement **statement_out, size_t *consumed_out, ErrMsg *msg);

/* Parse a lone expression, as in stored CHECK and DEFAULT text; spans refer to `text`. */
MUST_CHECK Err sql_parse_expr(Arena *arena, Slice text, const ParseOptions *options,
                              AstExpr **expr_out, ErrMsg *msg);

/* True if `text` ends with a complete statement, as sqlite3_complete() judges: the last token is a
   semicolon outside string, comment and CREATE TRIGGER body. */
bool sql_complete(Slice text);

/* Append the first statement of `sql` with `?` for its values, lists of values after IN of one
   length, keywords upper and names lower case, no more blanks than needed; and a NUL, which counts.
 */
MUST_CHECK Err sql_normalize(Slice sql, Buf *out);

/* Keywords, as sqlite3_keyword_count(), _name() and _check() have them.  Names are upper case, not
   NUL-terminated. */
u32 sql_keyword_count(void);
Slice sql_keyword_name(u32 index);
bool sql_keyword_check(Slice word);

/* True if `name` must be quoted to stand as an identifier (empty, odd characters, keyword). */
bool sql_name_needs_quotes(Slice name);
/* Append `name` as an identifier: bare if possible unless `always`, else in double quotes. */
MUST_CHECK Err sql_name_append(Buf *buf, Slice name, bool always);
/* Append a string literal with single quotes. */
MUST_CHECK Err sql_string_append(Buf *buf, Slice text);
/* Undo the quotes of one identifier or string token ('x', "x", [x], `x`; else as it is).  The
   result is in the arena or a part of `token`.  p == NULL: out of memory. */
Slice sql_dequote(Arena *arena, Slice token);
