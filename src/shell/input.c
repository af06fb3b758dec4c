/*
 * input.c -- from lines to statements: gather until one is complete, run it, report errors.
 */
#include <stdio.h>
#include <string.h>

#include "rt/host.h"
#include "rt/task.h"
#include "rt/time.h"
#include "shell/edit.h"
#include "shell/shell.h"

#define CARET_CONTEXT 78u /* Widest piece of SQL shown with an error. */
#define CARET_LEFT    50u /* At most so much of it before the mistake. */

/* What has been read of a statement. */
typedef struct Pending {
    Buf text;
    Scan scan;
    u64 first_line;
} Pending;

/* ---- results ---- */

typedef struct Shown {
    Shell *shell;
    Table *table;
} Shown;

static bool
on_columns(void *arg, u32 count, const char *const *names)
{
    Shown *shown = arg;
    shown->table = table_begin(shown->shell, count, names);
    return shown->table != NULL;
}

static bool
on_row(void *arg, u32 count, const LinkValue *values)
{
    (void)count;
    return table_row(((Shown *)arg)->table, values);
}

static void
on_done(void *arg)
{
    Shown *shown = arg;
    table_end(shown->table);
    shown->table = NULL;
    out_flush(shown->shell);
}

static bool
param_value(void *arg, const char *name, LinkValue *value_out)
{
    for (const ShellParam *param = ((Shell *)arg)->params; param != NULL; param = param->next) {
        if (strcmp(param->name, name) != 0) continue;
        *value_out = param->value;
        return true;
    }
    return false;
}

/* The statement around the place of the error, on one line, and a mark below it. */
static void
caret_print(Shell *shell, Slice sql, const LinkError *error)
{
    char text[CARET_CONTEXT + 1];
    size_t from = (size_t)error->statement, at = (size_t)error->offset, bytes = 0;
    if (at < from || at > sql.bytes) return;
    while (from < at && (sql.p[from] == ' ' || sql.p[from] == '\n'))
        from++;
    while (at - from > CARET_LEFT)
        from++;
    while (from < at && (sql.p[from] & 0xC0) == 0x80)
        from++; /* Whole characters. */
    while (bytes < CARET_CONTEXT && from + bytes < sql.bytes) {
        u8 c = sql.p[from + bytes];
        text[bytes++] = (char)(c < ' ' ? ' ' : c);
    }
    while (from + bytes < sql.bytes && bytes > 0 && (sql.p[from + bytes] & 0xC0) == 0x80)
        bytes--;
    while (bytes > 0 && text[bytes - 1] == ' ')
        bytes--;
    text[bytes] = 0;
    int column = (int)utf8_count(sql.p + from, at - from);
    shell_complain(shell, "  %s\n  %*s%s", text, column < 25 ? column : column - 14, "",
                   column < 25 ? "^--- error here" : "error here ---^");
    shell->errors--; /* One error, two messages. */
}

static void
error_print(Shell *shell, Slice sql, u64 line, const LinkError *error)
{
    const char *text = error->text != NULL ? error->text : "out of memory";
    char place[40] = "";
    if (line > 0) snprintf(place, sizeof(place), " near line %llu", (unsigned long long)line);
    if (error->while_running)
        shell_complain(shell, "Runtime error%s: %s (%d)", place, text, error->code & 0xff);
    else
        shell_complain(shell, "Parse error%s: %s", place, text);
    if (error->offset >= 0) caret_print(shell, sql, error);
}

void
shell_sql(Shell *shell, Slice sql, u64 line)
{
    Shown shown = {.shell = shell};
    LinkSink sink = {&shown, on_columns, on_row, on_done};
    LinkError error = {.offset = -1};
    if (shell->link == NULL) {
        shell_complain(shell, "Error: no database is open");
        return;
    }
    u64 started_ns = rt_now_ns();
    rt_store(&shell->interrupted, 0u);
    bool good = link_run(shell->link, sql, &sink, param_value, shell, &error);
    out_flush(shell);
    if (!good) error_print(shell, sql, line, &error);
    link_error_clear(&error);
    if (shell->timer) {
        u64 us = (rt_now_ns() - started_ns) / RT_NS_PER_US;
        out_printf(shell, "Run Time: real %llu.%06llu\n", (unsigned long long)(us / 1000000),
                   (unsigned long long)(us % 1000000));
        out_flush(shell);
    }
}

/* ---- lines ---- */

static void
pending_clear(Pending *pending)
{
    buf_clear(&pending->text);
    pending->scan = (Scan){0};
}

/* Does the line stand for a semicolon: "go" or "/" alone? */
static bool
is_go(Slice line)
{
    while (line.bytes > 0 && (line.p[line.bytes - 1] == ' ' || line.p[line.bytes - 1] == '\t'))
        line.bytes--;
    return slice_equal_nocase(line, SLICE_LITERAL("go")) || slice_equal(line, SLICE_LITERAL("/"));
}

static void
line_take(Shell *shell, Pending *pending, Slice line, u64 number)
{
    bool fresh = pending->text.bytes == 0;
    if (fresh && line.bytes > 0 && line.p[0] == '.') {
        if (shell->echo) out_printf(shell, "%.*s\n", (int)line.bytes, (const char *)line.p);
        shell_command(shell, line);
        return;
    }
    if (!fresh && pending->scan.inside == 0 && is_go(line)) line = SLICE_LITERAL(";");
    if (fresh) pending->first_line = number;
    Err err = buf_append(&pending->text, line.p, line.bytes);
    if (err == OK) err = buf_append_byte(&pending->text, '\n');
    if (err != OK) {
        shell_complain(shell, "Error: out of memory");
        pending_clear(pending);
        return;
    }
    /* Several statements may end on this line; they run together when the last one has ended. */
    bool ended = false;
    size_t from = pending->text.bytes - line.bytes - 1;
    while (from < pending->text.bytes) {
        size_t used = 0;
        Slice rest = {pending->text.p + from, pending->text.bytes - from};
        ended |= scan_feed(&pending->scan, rest, &used);
        from += used;
    }
    bool blank = scan_is_blank(&pending->scan);
    if (ended && blank && pending->scan.inside == 0) {
        if (shell->echo) out_bytes(shell, pending->text.p, pending->text.bytes);
        shell_sql(shell, buf_slice(&pending->text), pending->first_line);
        pending_clear(pending);
    } else if (!ended && blank && pending->scan.inside == 0) {
        pending_clear(pending); /* Only blanks and comments. */
    }
}

void
shell_input(Shell *shell, RtLines *lines)
{
    Pending pending = {0};
    u64 number = 0;
    bool more = true;
    while (!shell->quit && !shell->out_failed && !(shell->bail && shell->errors > 0)) {
        Slice line;
        ErrMsg msg = {0};
        Err err = rt_lines_next(lines, &line, &more, &msg);
        if (err != OK) {
            shell_complain(shell, "Error: %s", err_message(&msg));
            err_clear(&msg);
            break;
        }
        if (!more) break;
        line_take(shell, &pending, line, ++number);
    }
    if (!more && !shell->quit && pending.text.bytes > 0) {
        if (scan_is_blank(&pending.scan))
            pending_clear(&pending);
        else
            shell_sql(shell, buf_slice(&pending.text), pending.first_line);
    }
    out_flush(shell);
    buf_free(&pending.text);
}

void
shell_interactive(Shell *shell)
{
    char history[1024];
    const char *home = rt_home();
    if (home != NULL) snprintf(history, sizeof(history), "%s/.weft_history", home);
    Edit *edit = edit_open(home != NULL ? history : NULL);
    Pending pending = {0};
    u64 number = 0;
    if (edit == NULL) {
        shell_complain(shell, "Error: the terminal cannot be used");
        return;
    }
    out_printf(shell, "Weft %s. Enter \".help\" for usage hints.\n", weft_version());
    if (shell->path == NULL) out_text(shell, "Connected to a transient in-memory database.\n");
    while (!shell->quit) {
        Slice line;
        bool interrupted = false;
        out_flush(shell);
        rt_store(&shell->interrupted, 0u);
        rt_task_clear_cancel(rt_self());
        if (!edit_line(edit, pending.text.bytes == 0 ? "weft> " : " ...> ", &line, &interrupted))
            break;
        if (interrupted) { /* Forget the statement, keep the shell. */
            pending_clear(&pending);
            out_text(shell, "\n");
            continue;
        }
        line_take(shell, &pending, line, ++number);
        shell->out_failed = false;
    }
    edit_close(edit);
    buf_free(&pending.text);
}
