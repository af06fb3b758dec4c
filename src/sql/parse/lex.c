/*
 * lex.c -- the lexer: one table of byte classes, one function a class of token.
 *
 * Text is bounded by `end`, not by a NUL, so every look ahead is checked; byte_at() reads a zero
 * beyond the end, and zero belongs to no token.
 */
#include "sql/parse/lex.h"

#include "sql/parse/ast_hash.h"
#include "sql/parse/grammar.h"

typedef struct Keyword {
    u64 chunks[3]; /* As name_chunk() folds the word. */
    char text[18];
    u8 bytes;
    u16 code;
    u8 soft; /* The driver looks at it first. */
    u8 ours; /* Not a keyword of SQLite's. */
} Keyword;

#include "sql/parse/keyword_table.h"

/* What a token that begins with this byte can be. */
typedef enum ByteClass {
    BC_BAD,
    BC_END, /* NUL */
    BC_SPACE,
    BC_WORD,
    BC_X, /* x and X: a word or a blob */
    BC_DIGIT,
    BC_QUOTE, /* ' " ` */
    BC_BRACKET,
    BC_QUESTION,
    BC_PARAM, /* : @ # $ */
    BC_DOT,
    BC_MINUS,
    BC_SLASH,
    BC_LESS,
    BC_GREATER,
    BC_EQUALS,
    BC_BANG,
    BC_PIPE,
    BC_SINGLE, /* A token by itself; single_code[] says which. */
    BC_BOM,    /* 0xEF */
} ByteClass;

#define WORD_BYTE  0x20 /* Flag: may stand inside a word. */
#define DIGIT_BYTE 0x40 /* Flag: 0-9. */
#define HEX_BYTE   0x80 /* Flag: 0-9 a-f A-F. */
#define CLASS_MASK 0x1f

#define W (BC_WORD | WORD_BYTE)
#define H (BC_WORD | WORD_BYTE | HEX_BYTE)
#define D (BC_DIGIT | WORD_BYTE | DIGIT_BYTE | HEX_BYTE)
#define X (BC_X | WORD_BYTE)
#define S BC_SINGLE
#define Q BC_QUOTE
#define _ BC_BAD
static const u8 byte_class[256] = {
    [0] = BC_END,        ['\t'] = BC_SPACE,
    ['\n'] = BC_SPACE,   ['\f'] = BC_SPACE,
    ['\r'] = BC_SPACE,   [' '] = BC_SPACE,
    ['!'] = BC_BANG,     ['"'] = Q,
    ['#'] = BC_PARAM,    ['$'] = BC_PARAM | WORD_BYTE,
    ['%'] = S,           ['&'] = S,
    ['\''] = Q,          ['('] = S,
    [')'] = S,           ['*'] = S,
    ['+'] = S,           [','] = S,
    ['-'] = BC_MINUS,    ['.'] = BC_DOT,
    ['/'] = BC_SLASH,    ['0' ... '9'] = D,
    [':'] = BC_PARAM,    [';'] = S,
    ['<'] = BC_LESS,     ['='] = BC_EQUALS,
    ['>'] = BC_GREATER,  ['?'] = BC_QUESTION,
    ['@'] = BC_PARAM,    ['A' ... 'F'] = H,
    ['G' ... 'W'] = W,   ['X'] = X,
    ['Y' ... 'Z'] = W,   ['['] = BC_BRACKET,
    ['_'] = W,           ['`'] = Q,
    ['a' ... 'f'] = H,   ['g' ... 'w'] = W,
    ['x'] = X,           ['y' ... 'z'] = W,
    ['|'] = BC_PIPE,     ['~'] = S,
    [0x80 ... 0xEE] = W, [0xEF] = BC_BOM | WORD_BYTE,
    [0xF0 ... 0xFF] = W,
};
#undef W
#undef H
#undef D
#undef X
#undef S
#undef Q
#undef _

static const u8 single_code[128] = {
    ['%'] = TK_REM,  ['&'] = TK_BITAND, ['('] = TK_LP,   [')'] = TK_RP,     ['*'] = TK_STAR,
    ['+'] = TK_PLUS, [','] = TK_COMMA,  [';'] = TK_SEMI, ['~'] = TK_BITNOT,
};
STATIC_ASSERT(TK_REM < 256 && TK_BITAND < 256 && TK_STAR < 256 && TK_PLUS < 256 && TK_BITNOT < 256);

static inline u8
byte_at(const u8 *p, const u8 *end)
{
    return p < end ? *p : 0;
}

bool
lex__is_word_byte(u8 byte)
{
    return (byte_class[byte] & WORD_BYTE) != 0;
}

/* Inside a run of blanks a vertical tab counts too, though none may begin one. */
static inline bool
is_space(u8 byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static inline const u8 *
skip_blanks(const u8 *p, const u8 *end)
{
    if (p >= end || (byte_class[*p] & CLASS_MASK) != BC_SPACE) return p;
    do {
        p++;
    } while (p < end && is_space(*p));
    return p;
}

static const u8 *
skip_flagged(const u8 *p, const u8 *end, u8 flag)
{
    while (p < end && (byte_class[*p] & flag) != 0)
        p++;
    return p;
}

/* Behind "--": up to the end of the line. */
static const u8 *
skip_line_comment(const u8 *p, const u8 *end)
{
    while (p < end && *p != '\n' && *p != 0)
        p++;
    return p;
}

/* Behind the slash and star: past the closing pair, or to the end of the text. */
static const u8 *
skip_block_comment(const u8 *p, const u8 *end)
{
    for (; p < end && *p != 0; p++) {
        if (p[0] == '*' && byte_at(p + 1, end) == '/') return p + 2;
    }
    return p;
}

/* The keyword with this hash and these bytes, or NULL. */
static const Keyword *
keyword_find(const u8 *p, size_t bytes, u32 hash)
{
    u8 slot = keyword_slot[(u8)((hash >> KEYWORD_SHIFT) + keyword_displacement[hash & 63])];
    if (slot == 0) return NULL;
    const Keyword *keyword = &keywords[slot - 1];
    if (keyword->bytes != bytes) return NULL;
    for (u32 i = 0; bytes != 0; i++) {
        size_t step = MIN_OF(bytes, 8);
        if (name_chunk(p, step) != keyword->chunks[i]) return NULL;
        p += step;
        bytes -= step;
    }
    return keyword;
}

/* A word of up to 8 bytes far from the end: its bytes are in one load. */
static ALWAYS_INLINE void
lex_short_word(const u8 *start, u32 bytes, Token *token)
{
    u64 chunk = (load_u64(start) & (~(u64)0 >> (64 - 8 * bytes))) | NAME_FOLD;
    u32 hash = (u32)name_hash_step(name_hash_begin(bytes), chunk);
    u32 slot = keyword_slot[(u8)((hash >> KEYWORD_SHIFT) + keyword_displacement[hash & 63])];
    token->hash = hash;
    token->code = TK_ID;
    if (slot == 0) return;
    const Keyword *keyword = &keywords[slot - 1];
    if (keyword->chunks[0] != chunk || keyword->bytes != bytes) return;
    token->code = keyword->code;
    token->extra = keyword->soft;
}

static NOINLINE void
lex_long_word(const u8 *start, u32 bytes, Token *token)
{
    token->hash = name_hash(start, bytes);
    token->code = TK_ID;
    const Keyword *keyword = keyword_find(start, bytes, token->hash);
    if (keyword == NULL) return;
    token->code = keyword->code;
    token->extra = keyword->soft;
}

static ALWAYS_INLINE void
lex_word(const u8 *start, const u8 *end, Token *token)
{
    const u8 *p = start + 1;
    if (LIKELY(end - start >= 8)) {
        const u8 *stop = start + 8; /* Up to here no look at the end is needed. */
        while (p < stop && (byte_class[*p] & WORD_BYTE) != 0)
            p++;
        if (p < stop) {
            token->bytes = (u32)(p - start);
            lex_short_word(start, token->bytes, token);
            return;
        }
    }
    p = skip_flagged(p, end, WORD_BYTE);
    token->bytes = (u32)(p - start);
    lex_long_word(start, token->bytes, token);
}

/* Digits and `_`; a `_` makes it a QNUMBER, whose form the parser checks. */
static const u8 *
skip_digits(const u8 *p, const u8 *end, u8 flag, u16 *code)
{
    for (;; p++) {
        u8 c = byte_at(p, end);
        if (c == '_') {
            *code = TK_QNUMBER;
        } else if ((byte_class[c] & flag) == 0) {
            return p;
        }
    }
}

static bool
is_digit(const u8 *p, const u8 *end)
{
    return (byte_class[byte_at(p, end)] & DIGIT_BYTE) != 0;
}

static const u8 *
lex_number(const u8 *p, const u8 *end, u16 *code_out)
{
    u16 code = TK_INTEGER;
    if (p[0] == '0' && (byte_at(p + 1, end) | 0x20) == 'x' &&
        (byte_class[byte_at(p + 2, end)] & HEX_BYTE) != 0) {
        p = skip_digits(p + 3, end, HEX_BYTE, &code);
    } else {
        p = skip_digits(p, end, DIGIT_BYTE, &code);
        if (byte_at(p, end) == '.') {
            if (code == TK_INTEGER) code = TK_FLOAT;
            p = skip_digits(p + 1, end, DIGIT_BYTE, &code);
        }
        if ((byte_at(p, end) | 0x20) == 'e') {
            u8 sign = byte_at(p + 1, end);
            const u8 *exponent = p + (sign == '+' || sign == '-' ? 2 : 1);
            if (is_digit(exponent, end)) {
                if (code == TK_INTEGER) code = TK_FLOAT;
                p = skip_digits(exponent + 1, end, DIGIT_BYTE, &code);
            }
        }
    }
    const u8 *behind = skip_flagged(p, end, WORD_BYTE);
    *code_out = behind == p ? code : TK_ILLEGAL;
    return behind;
}

/* 'text', "name" or `name`; a doubled quote stands for itself. */
static const u8 *
lex_quoted(const u8 *p, const u8 *end, u16 *code_out)
{
    u8 quote = *p++;
    for (; p < end && *p != 0; p++) {
        if (*p != quote) continue;
        if (byte_at(p + 1, end) == quote) {
            p++;
            continue;
        }
        *code_out = quote == '\'' ? TK_STRING : TK_ID;
        return p + 1;
    }
    *code_out = TK_ILLEGAL;
    return p;
}

static const u8 *
lex_bracket(const u8 *p, const u8 *end, u16 *code_out)
{
    while (p < end && *p != 0 && *p != ']')
        p++;
    *code_out = byte_at(p, end) == ']' ? TK_ID : TK_ILLEGAL;
    return *code_out == TK_ID ? p + 1 : p;
}

/* :name @name #name $name; "::" may stand between words and (...) behind them, as Tcl writes. */
static const u8 *
lex_param(const u8 *p, const u8 *end, u16 *code_out)
{
    u32 word_bytes = 0;
    *code_out = TK_VARIABLE;
    for (p++; p < end && *p != 0; p++) {
        if (lex__is_word_byte(*p)) {
            word_bytes++;
        } else if (*p == '(' && word_bytes > 0) {
            do {
                p++;
            } while (p < end && *p != 0 && !is_space(*p) && *p != ')');
            if (byte_at(p, end) == ')') {
                p++;
            } else {
                *code_out = TK_ILLEGAL;
            }
            break;
        } else if (*p == ':' && byte_at(p + 1, end) == ':') {
            p++;
        } else {
            break;
        }
    }
    if (word_bytes == 0) *code_out = TK_ILLEGAL;
    return p;
}

/* x'hex': `p` is at the x. */
static const u8 *
lex_blob(const u8 *p, const u8 *end, u16 *code_out)
{
    const u8 *digits = p + 2;
    p = skip_flagged(digits, end, HEX_BYTE);
    *code_out = TK_BLOB;
    if (byte_at(p, end) != '\'' || (p - digits) % 2 != 0) {
        *code_out = TK_ILLEGAL;
        while (p < end && *p != 0 && *p != '\'')
            p++;
    }
    return byte_at(p, end) == '\'' ? p + 1 : p;
}

static u16
lex_less(u8 next, u32 *bytes_out)
{
    *bytes_out = next == '=' || next == '>' || next == '<' ? 2 : 1;
    return next == '=' ? TK_LE : next == '>' ? TK_NE : next == '<' ? TK_LSHIFT : TK_LT;
}

static u16
lex_greater(u8 next, u32 *bytes_out)
{
    *bytes_out = next == '=' || next == '>' ? 2 : 1;
    return next == '=' ? TK_GE : next == '>' ? TK_RSHIFT : TK_GT;
}

/* Tokens of one to three bytes that need a look ahead.  Code 0: it was a comment. */
static u16
lex_operator(const u8 *p, const u8 *end, u8 class, u32 *bytes_out)
{
    u8 next = byte_at(p + 1, end);
    *bytes_out = 1;
    switch (class) {
    case BC_MINUS:
        if (next == '-') return 0;
        if (next != '>') return TK_MINUS;
        *bytes_out = byte_at(p + 2, end) == '>' ? 3 : 2;
        return TK_PTR;
    case BC_SLASH: return next == '*' && byte_at(p + 2, end) != 0 ? 0 : TK_SLASH;
    case BC_LESS: return lex_less(next, bytes_out);
    case BC_GREATER: return lex_greater(next, bytes_out);
    case BC_EQUALS: *bytes_out = next == '=' ? 2 : 1; return TK_EQ;
    case BC_BANG:
        if (next != '=') return TK_ILLEGAL;
        *bytes_out = 2;
        return TK_NE;
    default:
        ASSERT(class == BC_PIPE);
        if (next != '|') return TK_BITOR;
        *bytes_out = 2;
        return TK_CONCAT;
    }
}

/* A token that is neither a word nor a single byte; code 0: a comment or a byte order mark. */
static void
lex_other(const u8 *p, const u8 *end, u8 class, Token *token)
{
    const u8 *behind = p + 1;
    switch (class) {
    case BC_DIGIT: behind = lex_number(p, end, &token->code); break;
    case BC_DOT:
        token->code = TK_DOT;
        if (is_digit(p + 1, end)) behind = lex_number(p, end, &token->code);
        break;
    case BC_QUOTE: behind = lex_quoted(p, end, &token->code); break;
    case BC_BRACKET: behind = lex_bracket(p, end, &token->code); break;
    case BC_QUESTION:
        token->code = TK_VARIABLE;
        behind = skip_flagged(p + 1, end, DIGIT_BYTE);
        break;
    case BC_PARAM: behind = lex_param(p, end, &token->code); break;
    case BC_X:
        if (byte_at(p + 1, end) != '\'') {
            lex_word(p, end, token);
            return;
        }
        behind = lex_blob(p, end, &token->code);
        break;
    case BC_BOM:
        if (byte_at(p + 1, end) != 0xBB || byte_at(p + 2, end) != 0xBF) {
            lex_word(p, end, token);
            return;
        }
        behind = p + 3;
        break;
    case BC_BAD: token->code = TK_ILLEGAL; break;
    default: {
        u32 bytes;
        token->code = lex_operator(p, end, class, &bytes);
        behind = p + bytes;
        if (token->code != 0) break;
        behind = class == BC_MINUS ? skip_line_comment(p + 2, end) : skip_block_comment(p + 2, end);
    }
    }
    token->bytes = (u32)(behind - p);
    if (token->code == TK_ILLEGAL) token->extra = 1;
}

/* Any token, and whatever stands behind comments. */
static NOINLINE void
lex_rare(const u8 *text, const u8 *p, const u8 *end, Token *token_out)
{
    for (;;) {
        p = skip_blanks(p, end);
        *token_out = (Token){.offset = (u32)(p - text)};
        u8 class = p < end ? byte_class[*p] & CLASS_MASK : BC_END;
        switch (class) {
        case BC_END: token_out->extra = 1; return;
        case BC_WORD: lex_word(p, end, token_out); return;
        case BC_SINGLE:
            token_out->bytes = 1;
            token_out->code = single_code[*p];
            return;
        default: lex_other(p, end, class, token_out);
        }
        if (token_out->code != 0) return;
        p += token_out->bytes;
    }
}

/* Digits only, and nothing behind them that could belong to the number; 0: not so simple. */
static ALWAYS_INLINE u32
plain_digits(const u8 *p, const u8 *end)
{
    const u8 *start = p;
    do {
        p++;
    } while (p < end && (byte_class[*p] & DIGIT_BYTE) != 0);
    u8 behind = byte_at(p, end);
    return behind == '.' || (byte_class[behind] & WORD_BYTE) != 0 ? 0 : (u32)(p - start);
}

/* The common tokens are done here, all others in lex_rare(). */
void
lex__next(const u8 *text, const u8 *end, u32 offset, Token *token_out)
{
    const u8 *p = skip_blanks(text + offset, end);
    u8 class = p < end ? byte_class[*p] & CLASS_MASK : BC_END;
    u32 bytes = 1;
    u16 code;
    if (LIKELY(class == BC_WORD)) {
        *token_out = (Token){.offset = (u32)(p - text)};
        lex_word(p, end, token_out);
        return;
    }
    switch (class) {
    case BC_SINGLE: code = single_code[*p]; break;
    case BC_END: *token_out = (Token){.offset = (u32)(p - text), .extra = 1}; return;
    case BC_DOT:
        if (is_digit(p + 1, end)) goto rare;
        code = TK_DOT;
        break;
    case BC_QUESTION:
        if (is_digit(p + 1, end)) goto rare;
        code = TK_VARIABLE;
        break;
    case BC_EQUALS:
        if (byte_at(p + 1, end) == '=') bytes = 2;
        code = TK_EQ;
        break;
    case BC_LESS: code = lex_less(byte_at(p + 1, end), &bytes); break;
    case BC_GREATER: code = lex_greater(byte_at(p + 1, end), &bytes); break;
    case BC_DIGIT:
        bytes = plain_digits(p, end);
        if (bytes == 0) goto rare;
        code = TK_INTEGER;
        break;
    default: goto rare;
    }
    *token_out = (Token){.offset = (u32)(p - text), .bytes = bytes, .code = code};
    return;
rare:
    lex_rare(text, p, end, token_out);
}

u32
lex__keyword_count(void)
{
    return KEYWORD_COUNT;
}

Slice
lex__keyword_text(u32 index)
{
    ASSERT(index < KEYWORD_COUNT);
    return SLICE(keywords[index].text, keywords[index].bytes);
}

bool
lex__keyword_is_ours(u32 index)
{
    ASSERT(index < KEYWORD_COUNT);
    return keywords[index].ours != 0;
}

u16
lex__keyword_code(Slice word, bool *ours_out)
{
    *ours_out = false;
    const Keyword *keyword = keyword_find(word.p, word.bytes, name_hash(word.p, word.bytes));
    /* Folding takes more for equal than case alone; a word of odd bytes is compared again. */
    if (keyword == NULL) return 0;
    if (!slice_equal_nocase(word, SLICE(keyword->text, keyword->bytes))) return 0;
    *ours_out = keyword->ours != 0;
    return keyword->code;
}
