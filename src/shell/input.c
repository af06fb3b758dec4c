/*
 * input.c -- from lines to statements: gather until one is complete, run it, report errors.
 */
#include <stdio.h>
#include <string.h>

#include "rt/command.h"
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

typedef struct PlanLine {
    struct PlanLine *next;
    i64 id, parent;
    const char *text;
} PlanLine;

typedef struct Shown {
    Shell *shell;
    Table *table;
    /* Of a query plan, which is shown as a tree. */
    bool is_plan;
    Arena arena;
    PlanLine *first, **last;
} Shown;

/* EXPLAIN QUERY PLAN is known by its columns. */
static bool
is_plan(u32 count, const char *const *names)
{
    static const char *const plan[] = {"id", "parent", "notused", "detail"};
    for (u32 i = 0; i < COUNT_OF(plan); i++) {
        if (count != COUNT_OF(plan) || strcmp(names[i], plan[i]) != 0) return false;
    }
    return true;
}

static bool
plan_add(Shown *shown, const LinkValue *values)
{
    PlanLine *line = ARENA_NEW(&shown->arena, PlanLine);
    if (line == NULL) return false;
    line->id = values[0].i;
    line->parent = values[1].i;
    line->text = arena_strndup(&shown->arena, values[3].text.p, values[3].text.bytes);
    *shown->last = line;
    shown->last = &line->next;
    return line->text != NULL;
}

/* The lines below `parent`, each behind `indent`. */
static void
plan_level(Shown *shown, i64 parent, const char *indent, u32 depth)
{
    char deeper[200];
    const PlanLine *last = NULL;
    for (const PlanLine *line = shown->first; line != NULL; line = line->next) {
        if (line->parent == parent) last = line;
    }
    for (const PlanLine *line = shown->first; line != NULL; line = line->next) {
        if (line->parent != parent) continue;
        out_printf(shown->shell, "%s%s%s\n", indent, line == last ? "`--" : "|--", line->text);
        snprintf(deeper, sizeof(deeper), "%s%s", indent, line == last ? "   " : "|  ");
        if (depth < 60 && line->id != parent) plan_level(shown, line->id, deeper, depth + 1);
    }
}

static bool
on_columns(void *arg, u32 count, const char *const *names)
{
    Shown *shown = arg;
    shown->is_plan = !shown->shell->explain_off && is_plan(count, names);
    if (shown->is_plan) {
        arena_init(&shown->arena, NULL);
        shown->first = NULL;
        shown->last = &shown->first;
        return true;
    }
    shown->table = table_begin(shown->shell, count, names);
    return shown->table != NULL;
}

static bool
on_row(void *arg, u32 count, const LinkValue *values)
{
    Shown *shown = arg;
    (void)count;
    return shown->is_plan ? plan_add(shown, values) : table_row(shown->table, values);
}

static void
on_done(void *arg)
{
    Shown *shown = arg;
    if (shown->is_plan) {
        if (shown->first != NULL) out_text(shown->shell, "QUERY PLAN\n");
        plan_level(shown, 0, "", 0);
        arena_free(&shown->arena);
    } else {
        table_end(shown->table);
    }
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
    if (error->while_running && (error->code & 0xff) > WEFT_ERROR)
        shell_complain(shell, "Runtime error%s: %s (%d)", place, text, error->code & 0xff);
    else if (error->while_running)
        shell_complain(shell, "Runtime error%s: %s", place, text);
    else
        shell_complain(shell, "Parse error%s: %s", place, text);
    if (error->offset >= 0) caret_print(shell, sql, error);
}

static bool
sql_run(Shell *shell, Slice sql, u64 line)
{
    Shown shown = {.shell = shell};
    LinkSink sink = {&shown, on_columns, on_row, on_done};
    LinkError error = {.offset = -1};
    bool good = link_run(shell->link, sql, &sink, param_value, shell, &error);
    out_flush(shell);
    if (!good) shell_log(shell, &error, sql);
    if (!good) error_print(shell, sql, line, &error);
    link_error_clear(&error);
    return good;
}

/* The first statement of a text, with its semicolon. */
static Slice
statement_take(Slice *sql)
{
    Scan scan = {0};
    size_t used = 0;
    (void)scan_feed(&scan, *sql, &used);
    Slice one = SLICE(sql->p, used);
    *sql = SLICE(sql->p + used, sql->bytes - used);
    return one;
}

/* Is there anything but blanks and comments in it? */
static bool
says_something(Slice sql)
{
    Scan scan = {0};
    while (sql.bytes > 0 && (sql.p[sql.bytes - 1] == ';' || sql.p[sql.bytes - 1] <= ' '))
        sql.bytes--;
    for (size_t at = 0; at < sql.bytes;) {
        size_t used = 0;
        (void)scan_feed(&scan, SLICE(sql.p + at, sql.bytes - at), &used);
        at += used;
    }
    return !scan_is_blank(&scan);
}

/* .eqp: before each statement its plan.  What has none (schema changes, pragmas) shows nothing. */
static bool
explained_run(Shell *shell, Slice sql, u64 line)
{
    bool good = true;
    while (good && sql.bytes > 0) {
        Slice one = statement_take(&sql);
        Buf text = {0};
        if (!says_something(one)) continue;
        Err err = buf_append_text(&text, "EXPLAIN QUERY PLAN ");
        if (err == OK) err = buf_append(&text, one.p, one.bytes);
        Shown shown = {.shell = shell};
        LinkSink sink = {&shown, on_columns, on_row, on_done};
        LinkError error = {.offset = -1};
        if (err == OK)
            (void)link_run(shell->link, buf_slice(&text), &sink, param_value, shell, &error);
        link_error_clear(&error);
        buf_free(&text);
        good = sql_run(shell, one, line);
    }
    return good;
}

static void
timer_print(Shell *shell, u64 started_ns, u64 user_us, u64 system_us)
{
    u64 user_now_us, system_now_us;
    rt_cpu_times(&user_now_us, &system_now_us);
    u64 us = (rt_now_ns() - started_ns) / RT_NS_PER_US;
    user_us = user_now_us - user_us;
    system_us = system_now_us - system_us;
    out_printf(shell, "Run Time: real %llu.%03llu user %llu.%06llu sys %llu.%06llu\n",
               (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000 / 1000),
               (unsigned long long)(user_us / 1000000), (unsigned long long)(user_us % 1000000),
               (unsigned long long)(system_us / 1000000),
               (unsigned long long)(system_us % 1000000));
}

static bool
changes_row(void *arg, u32 count, const LinkValue *values)
{
    (void)count;
    out_printf(arg, "changes: %lld   total_changes: %lld\n", (long long)values[0].i,
               (long long)values[1].i);
    return true;
}

void
shell_sql(Shell *shell, Slice sql, u64 line)
{
    u64 user_us, system_us;
    if (shell->link == NULL) {
        shell_complain(shell, "Error: no database is open");
        return;
    }
    u64 started_ns = rt_now_ns();
    rt_cpu_times(&user_us, &system_us);
    rt_store(&shell->interrupted, 0u);
    bool good = shell->eqp ? explained_run(shell, sql, line) : sql_run(shell, sql, line);
    if (good && shell->changes)
        (void)shell_query(shell, "SELECT changes(), total_changes()", changes_row, shell);
    if (shell->timer) timer_print(shell, started_ns, user_us, system_us);
    if (shell->stats) shell_stats(shell);
    out_flush(shell);
    if (shell->out_commands > 0 && --shell->out_commands == 0) shell_output_reset(shell);
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

/* A statement over several lines is one entry of the history, so that it comes back whole for
   editing.  Its lines are joined by blanks; with a "--" comment among them they stay apart. */
static void
history_take(Edit *edit, Buf *entry, Slice line, bool ended)
{
    Err err = entry->bytes > 0 ? buf_append_byte(entry, '\n') : OK;
    if (err == OK) err = buf_append(entry, line.p, line.bytes);
    if (err == OK && !ended) return;
    if (err == OK) err = buf_append_byte(entry, 0);
    char *text = (char *)entry->p, *from = text;
    bool apart = err == OK && strstr(text, "--") != NULL;
    for (char *at = text; err == OK && *at != 0; at++) {
        if (*at != '\n') continue;
        *at = apart ? 0 : ' ';
        if (apart && *from != 0) edit_remember(edit, from);
        if (apart) from = at + 1;
    }
    if (err == OK && *from != 0) edit_remember(edit, from);
    buf_clear(entry);
}

void
shell_interactive(Shell *shell)
{
    char history[1024];
    const char *home = rt_home();
    if (home != NULL) snprintf(history, sizeof(history), "%s/.weft_history", home);
    Buf entry = {0};
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
        const char *first = shell->prompt[0][0] != 0 ? shell->prompt[0] : "weft> ";
        const char *next = shell->prompt[1][0] != 0 ? shell->prompt[1] : " ...> ";
        out_flush(shell);
        rt_store(&shell->interrupted, 0u);
        rt_task_clear_cancel(rt_self());
        if (!edit_line(edit, pending.text.bytes == 0 ? first : next, &line, &interrupted)) break;
        if (interrupted) { /* Forget the statement, keep the shell. */
            pending_clear(&pending);
            buf_clear(&entry);
            out_text(shell, "\n");
            continue;
        }
        Buf copy = {0}; /* The line is the editor's; its next call is the history's. */
        Err err = buf_append(&copy, line.p, line.bytes);
        line_take(shell, &pending, line, ++number);
        if (err == OK) history_take(edit, &entry, buf_slice(&copy), pending.text.bytes == 0);
        buf_free(&copy);
        shell->out_failed = false;
    }
    buf_free(&entry);
    edit_close(edit);
    buf_free(&pending.text);
}
