/*
 * output.c -- text to the user: gathered in one buffer, written when it is large or a statement
 * has ended.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shell/shell.h"
#include "value/number.h"

#define OUT_BYTES ((size_t)64 << 10)

void
out_flush(Shell *shell)
{
    if (shell->out.bytes == 0) return;
    if (!shell->out_failed) {
        Err err = shell->out_file != NULL
                      ? rt_file_append(shell->out_file, shell->out.p, shell->out.bytes, NULL)
                      : rt_std_write(RT_STDOUT, shell->out.p, shell->out.bytes);
        if (err != OK) shell->out_failed = true;
    }
    buf_clear(&shell->out);
}

void
out_bytes(Shell *shell, const void *bytes, size_t count)
{
    if (count == 0) return;
    if (buf_append(&shell->out, bytes, count) != OK) shell->out_failed = true;
    if (shell->out.bytes >= OUT_BYTES) out_flush(shell);
}

void
out_text(Shell *shell, const char *text)
{
    out_bytes(shell, text, strlen(text));
}

void
out_printf(Shell *shell, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (buf_vprintf(&shell->out, format, args) != OK) shell->out_failed = true;
    va_end(args);
    if (shell->out.bytes >= OUT_BYTES) out_flush(shell);
}

void
shell_complain(Shell *shell, const char *format, ...)
{
    Buf text = {0};
    va_list args;
    out_flush(shell); /* So that both streams read in order on a terminal. */
    va_start(args, format);
    Err err = buf_vprintf(&text, format, args);
    va_end(args);
    if (err == OK) err = buf_append_byte(&text, '\n');
    if (err == OK) err = rt_std_write(RT_STDERR, text.p, text.bytes);
    (void)err; /* Where would one complain? */
    buf_free(&text);
    shell->errors++;
}

Slice
value_text(const Shell *shell, const LinkValue *value, char room[40])
{
    switch (value->type) {
    case WEFT_INTEGER: return SLICE(room, number_put_int(room, value->i));
    case WEFT_FLOAT: return SLICE(room, number_put_real(room, value->r));
    case WEFT_TEXT:
    case WEFT_BLOB: { /* As SQLite's shell: up to the first NUL. */
        const u8 *end = value->text.bytes > 0 ? memchr(value->text.p, 0, value->text.bytes) : NULL;
        return end == NULL ? value->text : (Slice){value->text.p, (size_t)(end - value->text.p)};
    }
    default: return SLICE(shell->null_text, strlen(shell->null_text));
    }
}

/* Text in quotes; runs between quotes are copied whole. */
static void
out_quoted(Shell *shell, Slice text, char quote)
{
    out_bytes(shell, &quote, 1);
    while (text.bytes > 0) {
        const u8 *at = memchr(text.p, quote, text.bytes);
        size_t bytes = at != NULL ? (size_t)(at - text.p) + 1 : text.bytes;
        out_bytes(shell, text.p, bytes);
        if (at != NULL) out_bytes(shell, &quote, 1);
        text = (Slice){text.p + bytes, text.bytes - bytes};
    }
    out_bytes(shell, &quote, 1);
}

static void
out_hex(Shell *shell, Slice bytes)
{
    static const char digits[] = "0123456789abcdef";
    out_text(shell, "X'");
    for (size_t i = 0; i < bytes.bytes; i++) {
        char pair[2] = {digits[bytes.p[i] >> 4], digits[bytes.p[i] & 15]};
        out_bytes(shell, pair, 2);
    }
    out_text(shell, "'");
}

static bool
has_nul(Slice text)
{
    return text.bytes > 0 && memchr(text.p, 0, text.bytes) != NULL;
}

void
out_literal(Shell *shell, const LinkValue *value)
{
    char room[40];
    switch (value->type) {
    case WEFT_INTEGER:
    case WEFT_FLOAT: {
        Slice text = value_text(shell, value, room);
        bool infinite = value->type == WEFT_FLOAT && (value->r - value->r) != 0;
        if (infinite)
            out_text(shell, value->r > 0 ? "1e999" : "-1e999");
        else
            out_bytes(shell, text.p, text.bytes);
        return;
    }
    case WEFT_TEXT:
        if (has_nul(value->text)) { /* No literal can hold that. */
            out_text(shell, "CAST(");
            out_hex(shell, value->text);
            out_text(shell, " AS TEXT)");
        } else {
            out_quoted(shell, value->text, '\'');
        }
        return;
    case WEFT_BLOB: out_hex(shell, value->text); return;
    default: out_text(shell, "NULL"); return;
    }
}

/* Words that a name cannot be without quotes. */
static bool
is_keyword(Slice name)
{
    static const char *const words[] = {
        "ADD",         "ALL",       "ALTER",    "AND",    "AS",         "AUTOINCREMENT", "BETWEEN",
        "CASE",        "CHECK",     "COLLATE",  "COMMIT", "CONSTRAINT", "CREATE",        "DEFAULT",
        "DEFERRABLE",  "DELETE",    "DISTINCT", "DROP",   "ELSE",       "ESCAPE",        "EXISTS",
        "FOREIGN",     "FROM",      "GROUP",    "HAVING", "IN",         "INDEX",         "INSERT",
        "INTERSECT",   "INTO",      "IS",       "ISNULL", "JOIN",       "LIMIT",         "NOT",
        "NOTHING",     "NOTNULL",   "NULL",     "ON",     "OR",         "ORDER",         "PRIMARY",
        "REFERENCES",  "RETURNING", "SELECT",   "SET",    "TABLE",      "THEN",          "TO",
        "TRANSACTION", "UNION",     "UNIQUE",   "UPDATE", "USING",      "VALUES",        "WHEN",
        "WHERE",
    };
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (slice_equal_nocase(name, SLICE(words[i], strlen(words[i])))) return true;
    }
    return false;
}

bool
name_is_plain(Slice name)
{
    bool plain = name.bytes > 0 && (name.p[0] < '0' || name.p[0] > '9');
    for (size_t i = 0; plain && i < name.bytes; i++) {
        u8 c = name.p[i];
        plain = c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    }
    return plain && !is_keyword(name);
}

void
out_name(Shell *shell, const char *name)
{
    Slice text = SLICE(name, strlen(name));
    if (name_is_plain(text))
        out_text(shell, name);
    else
        out_quoted(shell, text, '"');
}

void
out_create(Shell *shell, const char *sql)
{
    static const char head[] = "CREATE TABLE ";
    size_t bytes = sizeof(head) - 1;
    bool quoted = strncmp(sql, head, bytes) == 0 && (sql[bytes] == '"' || sql[bytes] == '\'');
    if (quoted) out_text(shell, "CREATE TABLE IF NOT EXISTS ");
    out_text(shell, sql + (quoted ? bytes : 0));
}

void
out_statement_end(Shell *shell, const char *sql)
{
    Scan scan = {0};
    size_t bytes = strlen(sql);
    for (size_t at = 0; at < bytes;) {
        size_t used = 0;
        (void)scan_feed(&scan, SLICE(sql + at, bytes - at), &used);
        at += used;
    }
    /* A comment to the end of the line would swallow the semicolon. */
    out_text(shell, scan.inside != 0 ? "\n;\n" : ";\n");
}

Err
literal_append(const LinkValue *value, Buf *out)
{
    static const char digits[] = "0123456789abcdef";
    char room[40];
    Slice bytes = value->text;
    switch (value->type) {
    case WEFT_INTEGER: return buf_append(out, room, number_put_int(room, value->i));
    case WEFT_FLOAT: return buf_append(out, room, number_put_real(room, value->r));
    case WEFT_TEXT:
    case WEFT_BLOB: break;
    default: return buf_append_text(out, "NULL");
    }
    bool is_text = value->type == WEFT_TEXT;
    Err err = buf_append_text(out, is_text ? "'" : "x'");
    for (size_t i = 0; err == OK && i < bytes.bytes; i++) {
        u8 c = bytes.p[i];
        u8 pair[2] = {c, c};
        size_t count = is_text && c != '\'' ? 1 : 2;
        if (!is_text) {
            pair[0] = (u8)digits[c >> 4];
            pair[1] = (u8)digits[c & 15];
        }
        err = buf_append(out, pair, count);
    }
    return err == OK ? buf_append_byte(out, '\'') : err;
}

/* A text that does not occur in `text` and may stand for a line end there. */
static const char *
stand_in(Slice text, const char *first, const char *second, char room[16])
{
    for (u32 i = 0;; i++) {
        const char *wanted = i == 0 ? first : i == 1 ? second : room;
        if (i > 1) snprintf(room, 16, "(%s%u)", first, i - 2);
        if (memmem(text.p, text.bytes, wanted, strlen(wanted)) == NULL) return wanted;
    }
}

/* Text in quotes, with what stands for its line ends. */
static void
out_stood_in(Shell *shell, Slice text, const char *lf, const char *cr)
{
    out_text(shell, "'");
    for (size_t i = 0; i < text.bytes; i++) {
        u8 c = text.p[i];
        if (c == '\'')
            out_text(shell, "''");
        else if (c == '\n' && lf != NULL)
            out_text(shell, lf);
        else if (c == '\r' && cr != NULL)
            out_text(shell, cr);
        else
            out_bytes(shell, &c, 1);
    }
    out_text(shell, "'");
}

void
out_line_literal(Shell *shell, const LinkValue *value)
{
    char lf_room[16], cr_room[16];
    Slice text = value->text;
    bool has_lf = value->type == WEFT_TEXT && memchr(text.p, '\n', text.bytes) != NULL;
    bool has_cr = value->type == WEFT_TEXT && memchr(text.p, '\r', text.bytes) != NULL;
    if ((!has_lf && !has_cr) || has_nul(text)) {
        out_literal(shell, value);
        return;
    }
    const char *lf = has_lf ? stand_in(text, "\\n", "\\012", lf_room) : NULL;
    const char *cr = has_cr ? stand_in(text, "\\r", "\\015", cr_room) : NULL;
    if (has_lf) out_text(shell, "replace(");
    if (has_cr) out_text(shell, "replace(");
    out_stood_in(shell, text, lf, cr);
    if (has_cr) out_printf(shell, ",'%s',char(13))", cr);
    if (has_lf) out_printf(shell, ",'%s',char(10))", lf);
}
