/*
 * normalize.c -- statements that differ only in their values, written alike.
 *
 * Values become `?`, keywords upper case, bare names lower case; blanks and comments go, but for a
 * blank between two words.  A list after IN that holds nothing but values becomes (?,?,?), so that
 * lists of any length are alike.
 */
#include "sql/parse/grammar.h"
#include "sql/parse/lex.h"
#include "sql/parse/parse.h"

#define NESTING_MAX 1000u /* Lists further in are written as they are. */

/* An open parenthesis. */
typedef struct Open {
    size_t start;    /* Where it stands in the output. */
    bool after_in;   /* IN ( */
    bool all_values; /* So far. */
} Open;

typedef struct Normal {
    const u8 *text;
    Buf *out;
    Open open[NESTING_MAX];
    u32 depth;
    u16 last, before_last; /* Codes of the tokens before. */
} Normal;

static Err
put_word(Normal *n, const u8 *p, size_t bytes, bool upper)
{
    Buf *out = n->out;
    Err err = OK;
    if (out->bytes > 0 && lex__is_word_byte(out->p[out->bytes - 1]))
        err = buf_append_byte(out, ' ');
    for (size_t i = 0; err == OK && i < bytes; i++) {
        u8 c = p[i];
        if (upper && c >= 'a' && c <= 'z') c = (u8)(c - 'a' + 'A');
        if (!upper && c >= 'A' && c <= 'Z') c = (u8)(c - 'A' + 'a');
        err = buf_append_byte(out, c);
    }
    return err;
}

static bool
is_plain_name(Slice name)
{
    bool ours;
    if (name.bytes == 0 || (name.p[0] >= '0' && name.p[0] <= '9')) return false;
    for (size_t i = 0; i < name.bytes; i++) {
        if (!lex__is_word_byte(name.p[i])) return false;
    }
    return lex__keyword_code(name, &ours) == 0;
}

/* A name in quotes: without them if it can do without, else in double ones. */
static Err
put_quoted(Normal *n, const Token *token)
{
    Arena arena;
    arena_init(&arena, NULL);
    Slice name = sql_dequote(&arena, SLICE(n->text + token->offset, token->bytes));
    Err err = name.p == NULL ? ERR_NOMEM : OK;
    if (err == OK && is_plain_name(name)) {
        err = put_word(n, name.p, name.bytes, false);
    } else if (err == OK) {
        err = sql_name_append(n->out, name, true);
    }
    arena_free(&arena);
    return err;
}

static void
open_one(Normal *n)
{
    if (n->depth < NESTING_MAX) n->open[n->depth] = (Open){n->out->bytes, n->last == TK_IN, true};
    n->depth++;
}

static Err
close_one(Normal *n)
{
    if (n->depth == 0) return buf_append_byte(n->out, ')');
    n->depth--;
    if (n->depth >= NESTING_MAX) return buf_append_byte(n->out, ')');
    const Open *open = &n->open[n->depth];
    if (open->after_in && open->all_values) {
        n->out->bytes = open->start;
        return buf_append(n->out, "(?,?,?)", 7);
    }
    /* What is not a value here is none in the list around it. */
    if (!open->all_values && n->depth > 0) n->open[n->depth - 1].all_values = false;
    return buf_append_byte(n->out, ')');
}

static void
not_a_value(Normal *n)
{
    if (n->depth > 0 && n->depth <= NESTING_MAX) n->open[n->depth - 1].all_values = false;
}

static bool
is_value(const Normal *n, u16 code)
{
    switch (code) {
    case TK_STRING:
    case TK_BLOB:
    case TK_INTEGER:
    case TK_FLOAT:
    case TK_QNUMBER:
    case TK_VARIABLE: return true;
    /* IS NULL and NOT NULL say what is asked. */
    case TK_NULL: return n->last != TK_IS && n->last != TK_NOT;
    default: return false;
    }
}

static Err
put_token(Normal *n, const Token *token)
{
    const u8 *p = n->text + token->offset;
    bool ours;
    if (is_value(n, token->code)) return buf_append_byte(n->out, '?');
    if (token->code == TK_LP) {
        open_one(n);
        return buf_append_byte(n->out, '(');
    }
    if (token->code == TK_RP) return close_one(n);
    if (p[0] == '"' || p[0] == '[' || p[0] == '`') {
        not_a_value(n);
        return put_quoted(n, token);
    }
    if (!lex__is_word_byte(p[0])) return buf_append(n->out, p, token->bytes);
    bool is_keyword = lex__keyword_code(SLICE(p, token->bytes), &ours) != 0 && !ours;
    if (!is_keyword || token->code == TK_SELECT) not_a_value(n);
    return put_word(n, p, token->bytes, is_keyword);
}

Err
sql_normalize(Slice sql, Buf *out)
{
    Normal *n = MEM_NEW(Normal);
    if (n == NULL) return ERR_NOMEM;
    n->text = sql.p;
    n->out = out;
    u32 at = 0;
    Err err = OK;
    for (;;) {
        Token token;
        lex__next(sql.p, sql.p + sql.bytes, at, &token);
        if (token.bytes == 0 || token.code == 0 || token.code == TK_SEMI) break;
        err = put_token(n, &token);
        if (err != OK) break;
        n->last = token.code;
        at = token.offset + token.bytes;
    }
    mem_free(n);
    return err == OK ? buf_append(out, ";", 2) : err; /* And a NUL. */
}
