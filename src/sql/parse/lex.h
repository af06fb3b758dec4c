/*
 * lex.h -- from text to tokens (private).
 *
 * The lexer has no state: a token is read at an offset, so looking ahead costs nothing but reading.
 * Token codes are the grammar's (TK_*, grammar.h made by lemon).
 */
#pragma once

#include "base/base.h"

typedef struct Token {
    u32 offset, bytes;
    u32 hash;  /* ast_name_hash() of a bare word; 0 for anything else. */
    u16 code;  /* TK_*; 0 at the end of the text (bytes 0).  Before any keyword fallback. */
    u16 extra; /* From the lexer: nonzero if the driver must look at the token before feeding it.
                  In the grammar: whatever a rule wants to hand on. */
} Token;

#define TOKEN_NONE ((Token){0})

/*
 * Read the first token at or behind `offset`; blanks and comments are skipped.  `end` bounds the
 * text; a NUL byte ends it too.  A malformed token has code TK_ILLEGAL and the bytes to complain
 * of.
 */
void lex__next(const u8 *text, const u8 *end, u32 offset, Token *token_out);

/* May this byte stand inside a bare name?  Letters, digits, `_`, `$` and all bytes from 0x80. */
bool lex__is_word_byte(u8 byte);

u32 lex__keyword_count(void); /* All of ours, SQLite's and those that only Weft has. */
Slice lex__keyword_text(u32 index);
bool lex__keyword_is_ours(u32 index);
/* TK_* of a keyword, whatever its case; 0 if it is none. */
u16 lex__keyword_code(Slice word, bool *ours_out);
