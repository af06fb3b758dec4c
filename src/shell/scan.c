/*
 * scan.c -- a byte-wise state machine over SQL text.
 *
 * `inside` holds the closing byte of an open literal (' " ` ]), '-' in a line comment or '*' in a
 * block comment.  A doubled quote inside a literal closes and opens it again, which comes to the
 * same.  `trigger` counts: 0 at the start of a statement, 1 after CREATE, 2 in a trigger's body, 3
 * when the statement is of another kind; EXPLAIN [QUERY PLAN] and TEMP do not count.
 */
#include "shell/scan.h"

#include <string.h>

enum { AT_START, AFTER_CREATE, IN_TRIGGER, IN_OTHER };

static bool
is_word_byte(u8 c)
{
    return c == '_' || c == '$' || c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z');
}

static bool
word_is(const Scan *scan, const char *word)
{
    return strlen(word) == scan->word_bytes && memcmp(word, scan->word, scan->word_bytes) == 0;
}

/* A whole word has been read. */
static void
word_end(Scan *scan)
{
    if (scan->word_bytes == 0) return;
    scan->end_seen = scan->trigger == IN_TRIGGER && scan->after_semicolon && word_is(scan, "end");
    scan->after_semicolon = false;
    if (scan->trigger == AT_START) {
        if (word_is(scan, "create"))
            scan->trigger = AFTER_CREATE;
        else if (!word_is(scan, "explain") && !word_is(scan, "query") && !word_is(scan, "plan"))
            scan->trigger = IN_OTHER;
    } else if (scan->trigger == AFTER_CREATE) {
        if (word_is(scan, "trigger"))
            scan->trigger = IN_TRIGGER;
        else if (!word_is(scan, "temp") && !word_is(scan, "temporary"))
            scan->trigger = IN_OTHER;
    }
    scan->word_bytes = 0;
}

static void
word_byte(Scan *scan, u8 c)
{
    scan->has_tokens = true;
    if (scan->word_bytes >= sizeof(scan->word)) return; /* Too long for a keyword. */
    scan->word[scan->word_bytes++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* A byte that is neither word nor blank nor semicolon. */
static void
other_byte(Scan *scan, u8 c)
{
    scan->has_tokens = true;
    scan->after_semicolon = scan->end_seen = false;
    if (scan->trigger < IN_TRIGGER) scan->trigger = IN_OTHER;
    if (c == '\'' || c == '"' || c == '`') scan->inside = c;
    if (c == '[') scan->inside = ']';
}

static bool
semicolon(Scan *scan)
{
    if (scan->trigger == IN_TRIGGER && !scan->end_seen) {
        scan->after_semicolon = true;
        return false;
    }
    *scan = (Scan){0};
    return true;
}

/* One byte inside a literal or comment. */
static void
inside_byte(Scan *scan, u8 c)
{
    if (scan->inside == '-') {
        if (c == '\n') scan->inside = 0;
    } else if (scan->inside == '*') {
        if (c == '/' && scan->last == '*') {
            scan->inside = 0;
            c = 0;
        }
    } else if (c == scan->inside) {
        scan->inside = 0;
    }
    scan->last = c;
}

bool
scan_feed(Scan *scan, Slice text, size_t *used_out)
{
    for (size_t i = 0; i < text.bytes; i++) {
        u8 c = text.p[i], before = scan->last;
        if (scan->inside != 0) {
            inside_byte(scan, c);
            continue;
        }
        scan->last = c;
        if (c == '-' && before == '-') {
            scan->inside = '-';
            scan->last = 0;
        } else if (c == '*' && before == '/') {
            scan->inside = '*';
            scan->last = 0;
        } else if (is_word_byte(c)) {
            word_byte(scan, c);
        } else {
            word_end(scan);
            if (c == ';') {
                if (semicolon(scan)) {
                    *used_out = i + 1;
                    return true;
                }
            } else if (c != ' ' && (c < '\t' || c > '\r') && c != '-' && c != '/') {
                other_byte(scan, c);
            }
        }
        /* '-' and '/' may begin a comment; when something else follows they were operators. */
        if ((before == '-' || before == '/') && scan->inside == 0 && c != before)
            scan->has_tokens = true;
    }
    *used_out = text.bytes;
    return false;
}

bool
scan_is_blank(const Scan *scan)
{
    return !scan->has_tokens && scan->inside != '\'' && scan->inside != '"' &&
           scan->inside != '`' && scan->inside != ']';
}
