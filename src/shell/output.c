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
    char text[1024];
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (bytes > 0) out_bytes(shell, text, MIN_OF((size_t)bytes, sizeof(text) - 1));
}

void
shell_complain(Shell *shell, const char *format, ...)
{
    Buf text = {0};
    char line[2048];
    va_list args;
    out_flush(shell); /* So that both streams read in order on a terminal. */
    va_start(args, format);
    int bytes = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (bytes < 0) bytes = 0;
    Err err = buf_append(&text, line, MIN_OF((size_t)bytes, sizeof(line) - 1));
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

void
out_literal(Shell *shell, const LinkValue *value)
{
    static const char digits[] = "0123456789abcdef";
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
    case WEFT_TEXT: out_quoted(shell, value->text, '\''); return;
    case WEFT_BLOB:
        out_text(shell, "X'");
        for (size_t i = 0; i < value->text.bytes; i++) {
            char pair[2] = {digits[value->text.p[i] >> 4], digits[value->text.p[i] & 15]};
            out_bytes(shell, pair, 2);
        }
        out_text(shell, "'");
        return;
    default: out_text(shell, "NULL"); return;
    }
}

void
out_name(Shell *shell, const char *name)
{
    bool plain = *name == '_' || (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z');
    for (const char *at = name; *at != 0; at++)
        plain = plain && (*at == '_' || (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
                          (*at >= 'A' && *at <= 'Z'));
    if (plain)
        out_text(shell, name);
    else
        out_quoted(shell, SLICE(name, strlen(name)), '"');
}
