/*
 * text.c -- small services on SQL text: complete statements, keywords, quoting.
 */
#include "sql/parse/grammar.h"
#include "sql/parse/lex.h"
#include "sql/parse/parse.h"

/* ---- sql_complete ---- */

/*
 * Where in a statement we are.  Inside CREATE TRIGGER only "; END ;" ends it.
 */
typedef enum CompleteState {
    CS_NOTHING,   /* Nothing but blanks so far. */
    CS_COMPLETE,  /* Behind the semicolon of a whole statement. */
    CS_STATEMENT, /* Inside an ordinary statement. */
    CS_EXPLAIN,   /* EXPLAIN so far. */
    CS_CREATE,    /* CREATE so far, perhaps with TEMP. */
    CS_TRIGGER,   /* Inside CREATE TRIGGER. */
    CS_SEMI,      /* Behind a semicolon inside CREATE TRIGGER. */
    CS_END,       /* Behind "; END" inside CREATE TRIGGER. */
} CompleteState;

static CompleteState
complete_begin(u16 code)
{
    switch (code) {
    case TK_EXPLAIN: return CS_EXPLAIN;
    case TK_CREATE: return CS_CREATE;
    default: return CS_STATEMENT;
    }
}

static CompleteState
complete_next(CompleteState state, u16 code)
{
    switch (state) {
    case CS_NOTHING:
    case CS_COMPLETE: return code == TK_SEMI ? CS_COMPLETE : complete_begin(code);
    case CS_EXPLAIN:
        if (code == TK_SEMI) return CS_COMPLETE;
        if (code == TK_CREATE) return CS_CREATE;
        return code == TK_EXPLAIN || code == TK_TEMP || code == TK_TRIGGER || code == TK_END
                   ? CS_STATEMENT
                   : CS_EXPLAIN;
    case CS_CREATE:
        if (code == TK_SEMI) return CS_COMPLETE;
        if (code == TK_TEMP) return CS_CREATE;
        return code == TK_TRIGGER ? CS_TRIGGER : CS_STATEMENT;
    case CS_STATEMENT: return code == TK_SEMI ? CS_COMPLETE : CS_STATEMENT;
    case CS_TRIGGER: return code == TK_SEMI ? CS_SEMI : CS_TRIGGER;
    case CS_SEMI:
        if (code == TK_SEMI) return CS_SEMI;
        return code == TK_END ? CS_END : CS_TRIGGER;
    case CS_END: return code == TK_SEMI ? CS_COMPLETE : CS_TRIGGER;
    }
    UNREACHABLE();
}

bool
sql_complete(Slice text)
{
    CompleteState state = CS_NOTHING;
    size_t offset = 0;
    for (;;) {
        /* The lexer counts in 32 bits; longer text is taken from where we are. */
        Slice rest = SLICE(text.p + offset, text.bytes - offset);
        if (rest.bytes > INT32_MAX) rest.bytes = INT32_MAX;
        Token token;
        lex__next(rest.p, rest.p + rest.bytes, 0, &token);
        if (token.code == 0) return state == CS_COMPLETE && (token.extra & LEX_OPEN_COMMENT) == 0;
        state = complete_next(state, token.code);
        offset += token.offset + token.bytes;
    }
}

/* ---- Keywords ---- */

u32
sql_keyword_count(void)
{
    u32 count = 0;
    for (u32 i = 0; i < lex__keyword_count(); i++) {
        if (!lex__keyword_is_ours(i)) count++;
    }
    return count;
}

Slice
sql_keyword_name(u32 index)
{
    for (u32 i = 0; i < lex__keyword_count(); i++) {
        if (lex__keyword_is_ours(i)) continue;
        if (index == 0) return lex__keyword_text(i);
        index--;
    }
    return SLICE_NONE;
}

bool
sql_keyword_check(Slice word)
{
    bool ours;
    return lex__keyword_code(word, &ours) != 0 && !ours;
}

/* ---- Quoting ---- */

bool
sql_name_needs_quotes(Slice name)
{
    if (name.bytes == 0) return true;
    if ((name.p[0] >= '0' && name.p[0] <= '9') || name.p[0] == '$') return true;
    for (size_t i = 0; i < name.bytes; i++) {
        if (!lex__is_word_byte(name.p[i])) return true;
    }
    bool ours;
    return lex__keyword_code(name, &ours) != 0;
}

static Err
append_quoted(Buf *buf, Slice text, u8 quote)
{
    size_t before = buf->bytes;
    Err err = buf_append_byte(buf, quote);
    for (size_t i = 0; i < text.bytes && err == OK; i++) {
        err = buf_append_byte(buf, text.p[i]);
        if (err == OK && text.p[i] == quote) err = buf_append_byte(buf, quote);
    }
    if (err == OK) err = buf_append_byte(buf, quote);
    if (err != OK) buf->bytes = before;
    return err;
}

Err
sql_name_append(Buf *buf, Slice name, bool always)
{
    if (!always && !sql_name_needs_quotes(name)) return buf_append(buf, name.p, name.bytes);
    return append_quoted(buf, name, '"');
}

Err
sql_string_append(Buf *buf, Slice text)
{
    return append_quoted(buf, text, '\'');
}

Slice
sql_dequote(Arena *arena, Slice token)
{
    if (token.bytes < 2) return token;
    u8 quote = token.p[0];
    if (quote != '\'' && quote != '"' && quote != '`' && quote != '[') return token;
    Slice inside = SLICE(token.p + 1, token.bytes - 2);
    if (quote == '[' || memchr(inside.p, quote, inside.bytes) == NULL) return inside;
    u8 *p = arena_bytes(arena, inside.bytes + 1);
    if (p == NULL) return SLICE_NONE;
    size_t bytes = 0;
    for (size_t i = 0; i < inside.bytes; i++) {
        p[bytes++] = inside.p[i];
        if (inside.p[i] == quote) i++;
    }
    p[bytes] = 0;
    return SLICE(p, bytes);
}
