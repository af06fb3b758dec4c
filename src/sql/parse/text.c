/*
 * text.c -- small services on SQL text: complete statements, keywords, quoting.
 */
#include "sql/parse/grammar.h"
#include "sql/parse/lex.h"
#include "sql/parse/parse.h"

/* ---- sql_complete ---- */

/* Where in a statement we are.  Inside CREATE TRIGGER only "; END ;" ends it. */
typedef enum CompleteState {
    CS_NOTHING,   /* Nothing but blanks so far. */
    CS_COMPLETE,  /* Behind the semicolon of a whole statement. */
    CS_STATEMENT, /* Inside an ordinary statement. */
    CS_EXPLAIN,   /* EXPLAIN so far, and words that tell nothing. */
    CS_CREATE,    /* CREATE so far, perhaps with TEMP. */
    CS_TRIGGER,   /* Inside CREATE TRIGGER. */
    CS_SEMI,      /* Behind a semicolon inside CREATE TRIGGER. */
    CS_END,       /* Behind "; END" inside CREATE TRIGGER. */
} CompleteState;

/* What a token means to that question. */
typedef enum CompleteToken {
    CT_OTHER,
    CT_BLANK,
    CT_SEMI,
    CT_EXPLAIN,
    CT_CREATE,
    CT_TEMP,
    CT_TRIGGER,
    CT_END,
    CT_OPEN, /* A string, name or comment that the text does not close. */
} CompleteToken;

static CompleteState
complete_next(CompleteState state, CompleteToken token)
{
    if (token == CT_SEMI) {
        return state == CS_TRIGGER || state == CS_SEMI ? CS_SEMI : CS_COMPLETE;
    }
    switch (state) {
    case CS_NOTHING:
    case CS_COMPLETE:
        if (token == CT_EXPLAIN) return CS_EXPLAIN;
        return token == CT_CREATE ? CS_CREATE : CS_STATEMENT;
    case CS_EXPLAIN:
        if (token == CT_OTHER) return CS_EXPLAIN;
        return token == CT_CREATE ? CS_CREATE : CS_STATEMENT;
    case CS_CREATE:
        if (token == CT_TEMP) return CS_CREATE;
        return token == CT_TRIGGER ? CS_TRIGGER : CS_STATEMENT;
    case CS_STATEMENT: return CS_STATEMENT;
    case CS_SEMI: return token == CT_END ? CS_END : CS_TRIGGER;
    case CS_TRIGGER:
    case CS_END: return CS_TRIGGER;
    }
    UNREACHABLE();
}

static CompleteToken
complete_word(Slice word)
{
    bool ours;
    switch (lex__keyword_code(word, &ours)) {
    case TK_EXPLAIN: return CT_EXPLAIN;
    case TK_CREATE: return CT_CREATE;
    case TK_TEMP: return CT_TEMP;
    case TK_TRIGGER: return CT_TRIGGER;
    case TK_END: return CT_END;
    default: return CT_OTHER;
    }
}

/* Behind the next `close` at or behind `p`, or NULL. */
static const u8 *
complete_closed(const u8 *p, const u8 *end, u8 close)
{
    const u8 *at = p < end ? memchr(p, close, (size_t)(end - p)) : NULL;
    return at == NULL ? NULL : at + 1;
}

/* Read one token.  SQLite judges by coarser tokens than its parser's, and so do we: a doubled quote
   is two strings, a parameter's parentheses are nothing special. */
static CompleteToken
complete_token(const u8 **at, const u8 *end)
{
    const u8 *p = *at;
    u8 next = p + 1 < end ? p[1] : 0;
    CompleteToken token = CT_OTHER;
    const u8 *behind = p + 1;
    switch (*p) {
    case ';': token = CT_SEMI; break;
    case ' ':
    case '\t':
    case '\n':
    case '\f':
    case '\r': token = CT_BLANK; break;
    case '\'':
    case '"':
    case '`': behind = complete_closed(p + 1, end, *p); break;
    case '[': behind = complete_closed(p + 1, end, ']'); break;
    case '-':
        if (next != '-') break;
        behind = complete_closed(p, end, '\n');
        token = CT_BLANK;
        break;
    case '/':
        if (next != '*') break;
        token = CT_BLANK;
        behind = complete_closed(p + 2, end, '*');
        while (behind != NULL && (behind == end || *behind != '/'))
            behind = complete_closed(behind, end, '*');
        if (behind != NULL) behind++;
        break;
    default:
        if (!lex__is_word_byte(*p)) break;
        while (behind < end && lex__is_word_byte(*behind))
            behind++;
        token = complete_word(SLICE(p, (size_t)(behind - p)));
    }
    *at = behind;
    return behind == NULL ? CT_OPEN : token;
}

bool
sql_complete(Slice text)
{
    if (text.p == NULL) return false;
    const u8 *nul = memchr(text.p, 0, text.bytes);
    const u8 *end = nul != NULL ? nul : text.p + text.bytes;
    CompleteState state = CS_NOTHING;
    for (const u8 *p = text.p; p < end;) {
        CompleteToken token = complete_token(&p, end);
        if (token == CT_OPEN) return false;
        if (token != CT_BLANK) state = complete_next(state, token);
    }
    return state == CS_COMPLETE;
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
