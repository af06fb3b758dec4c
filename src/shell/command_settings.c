/*
 * command_settings.c -- dot commands that set how the shell behaves, and .show.
 */
#include <stdio.h>
#include <string.h>

#include "shell/shell.h"
#include "value/number.h"

#define WRAP_DEFAULT 60u

/* ---- on and off ---- */

bool
shell_is_on(Shell *shell, const char *text)
{
    static const char *const yes[] = {"on", "yes", "true", "1"};
    static const char *const no[] = {"off", "no", "false", "0"};
    for (size_t i = 0; i < COUNT_OF(yes); i++) {
        if (text_compare_nocase(text, yes[i]) == 0) return true;
        if (text_compare_nocase(text, no[i]) == 0) return false;
    }
    shell_complain(shell, "ERROR: Not a boolean value: \"%s\". Assuming \"no\".", text);
    shell->errors--; /* A warning. */
    return false;
}

static void
command_switch(Shell *shell, u32 count, char **argument, const char *name, bool *setting)
{
    if (count == 1)
        *setting = shell_is_on(shell, argument[0]);
    else
        shell_usage(shell, name);
}

void
command_bail(Shell *shell, u32 count, char **argument)
{
    command_switch(shell, count, argument, "bail", &shell->bail);
}

void
command_echo(Shell *shell, u32 count, char **argument)
{
    command_switch(shell, count, argument, "echo", &shell->echo);
}

void
command_timer(Shell *shell, u32 count, char **argument)
{
    command_switch(shell, count, argument, "timer", &shell->timer);
}

void
command_changes(Shell *shell, u32 count, char **argument)
{
    command_switch(shell, count, argument, "changes", &shell->changes);
}

void
command_eqp(Shell *shell, u32 count, char **argument)
{
    command_switch(shell, count, argument, "eqp", &shell->eqp);
}

void
command_headers(Shell *shell, u32 count, char **argument)
{
    command_switch(shell, count, argument, "headers", &shell->headers);
    if (count == 1) shell->headers_set = true;
}

void
command_explain(Shell *shell, u32 count, char **argument)
{
    bool automatic = count == 0 || strcmp(argument[0], "auto") == 0;
    shell->explain_off = !automatic && !shell_is_on(shell, argument[0]);
}

/* ---- results ---- */

static bool
number_take(const char *text, i64 *number_out)
{
    NumberScan scan = number_scan(SLICE(text, strlen(text)));
    *number_out = scan.i;
    return scan.kind == NUMBER_INT && scan.whole;
}

static void
mode_show(Shell *shell)
{
    out_text(shell, mode_name(shell->mode));
    if (!mode_is_aligned(shell->mode)) return;
    out_printf(shell, " --wrap %u --wordwrap %s --%squote", shell->wrap,
               shell->word_wrap ? "on" : "off", shell->quote ? "" : "no");
}

/* One option of .mode; *at moves over its value.  False: none. */
static bool
mode_option(Shell *shell, u32 count, char **argument, u32 *at)
{
    const char *name = argument[*at];
    i64 number = 0;
    if (name[0] != '-') return false;
    while (*name == '-')
        name++;
    bool has_value = *at + 1 < count;
    if (strcmp(name, "quote") == 0 || strcmp(name, "noquote") == 0) {
        shell->quote = name[0] == 'q';
    } else if (strcmp(name, "ww") == 0) {
        shell->word_wrap = true;
    } else if (strcmp(name, "wordwrap") == 0 && has_value) {
        shell->word_wrap = shell_is_on(shell, argument[++*at]);
    } else if (strcmp(name, "wrap") == 0 && has_value) {
        if (!number_take(argument[++*at], &number) || number < 0 || number > U32_MAX) return false;
        shell->wrap = (u32)number;
    } else {
        return false;
    }
    return true;
}

void
command_mode(Shell *shell, u32 count, char **argument)
{
    if (count == 0) {
        out_text(shell, "current output mode: ");
        mode_show(shell);
        out_text(shell, "\n");
        return;
    }
    bool boxed = strcmp(argument[0], "qbox") == 0;
    if (!mode_set(shell, boxed ? "box" : argument[0])) {
        shell_complain(shell, "Error: mode should be one of: ascii box column csv html insert json "
                              "line list markdown qbox quote table tabs tcl");
        return;
    }
    if (mode_is_aligned(shell->mode)) {
        shell->wrap = WRAP_DEFAULT;
        shell->word_wrap = false;
        shell->quote = boxed;
    }
    const char *table = "table";
    for (u32 i = 1; i < count; i++) {
        if (mode_option(shell, count, argument, &i)) continue;
        if (shell->mode != MODE_INSERT || argument[i][0] == '-') {
            shell_complain(shell, "extra argument: \"%s\"", argument[i]);
            return;
        }
        table = argument[i];
    }
    if (shell->mode == MODE_INSERT)
        snprintf(shell->insert_table, sizeof(shell->insert_table), "%s", table);
}

void
command_width(Shell *shell, u32 count, char **argument)
{
    if (count > SHELL_WIDTHS) {
        shell_complain(shell, "Error: at most %u widths", SHELL_WIDTHS);
        return;
    }
    shell->widths = count;
    for (u32 i = 0; i < count; i++) {
        i64 number = 0;
        if (!number_take(argument[i], &number)) number = 0;
        shell->width[i] = (i32)MIN_OF(MAX_OF(number, (i64)-100000), (i64)100000);
    }
}

void
command_nullvalue(Shell *shell, u32 count, char **argument)
{
    if (count == 1)
        snprintf(shell->null_text, sizeof(shell->null_text), "%s", argument[0]);
    else
        shell_usage(shell, "nullvalue");
}

void
command_separator(Shell *shell, u32 count, char **argument)
{
    if (count < 1 || count > 2) {
        shell_usage(shell, "separator");
        return;
    }
    snprintf(shell->separator, sizeof(shell->separator), "%s", argument[0]);
    if (count == 2) snprintf(shell->row_separator, sizeof(shell->row_separator), "%s", argument[1]);
}

void
command_prompt(Shell *shell, u32 count, char **argument)
{
    for (u32 i = 0; i < count && i < 2; i++)
        snprintf(shell->prompt[i], sizeof(shell->prompt[i]), "%s", argument[i]);
}

/* ---- the engine ---- */

void
command_timeout(Shell *shell, u32 count, char **argument)
{
    i64 ms = 0;
    if (count > 0 && !number_take(argument[0], &ms)) {
        shell_usage(shell, "timeout");
        return;
    }
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA busy_timeout=%lld", (long long)ms);
    (void)shell_query(shell, sql, NULL, NULL);
}

void
shell_stats(Shell *shell)
{
    weft_statistics stats;
    if (shell->link == NULL || !link_stats(shell->link, &stats)) return;
    const struct {
        const char *name;
        u64 number;
    } line[] = {
        {"commits", stats.commits},
        {"rollbacks", stats.rollbacks},
        {"waits for rows", stats.row_waits},
        {"deadlocks", stats.deadlocks},
        {"write conflicts", stats.conflicts},
        {"syncs of the log", stats.log_syncs},
        {"bytes of log", stats.log_bytes},
        {"checkpoints", stats.checkpoints},
        {"open transactions", stats.transactions_open},
        {"live old versions", stats.versions_live},
        {"bytes of file", stats.file_bytes},
        {"bytes of memory", stats.memory_bytes},
    };
    for (u32 i = 0; i < COUNT_OF(line); i++)
        out_printf(shell, "%-20s %llu\n", line[i].name, (unsigned long long)line[i].number);
}

void
command_stats(Shell *shell, u32 count, char **argument)
{
    if (count == 0)
        shell_stats(shell);
    else
        shell->stats = shell_is_on(shell, argument[0]);
}

/* ---- all at once ---- */

/* A text in double quotes, as C writes it. */
static void
show_text(Shell *shell, const char *name, const char *text)
{
    out_printf(shell, "%12s: \"", name);
    for (; *text != 0; text++) {
        if (*text == '\n')
            out_text(shell, "\\n");
        else if (*text == '\r')
            out_text(shell, "\\r");
        else if (*text == '\t')
            out_text(shell, "\\t");
        else if (*text == '"' || *text == '\\')
            out_printf(shell, "\\%c", *text);
        else if ((u8)*text < ' ')
            out_printf(shell, "\\%03o", (u8)*text);
        else
            out_bytes(shell, text, 1);
    }
    out_text(shell, "\"\n");
}

void
command_show(Shell *shell, u32 count, char **argument)
{
    (void)count;
    (void)argument;
    out_printf(shell, "%12s: %s\n", "echo", shell->echo ? "on" : "off");
    out_printf(shell, "%12s: %s\n", "eqp", shell->eqp ? "on" : "off");
    out_printf(shell, "%12s: %s\n", "explain", shell->explain_off ? "off" : "auto");
    out_printf(shell, "%12s: %s\n", "headers", shell->headers ? "on" : "off");
    out_printf(shell, "%12s: ", "mode");
    mode_show(shell);
    out_text(shell, "\n");
    show_text(shell, "nullvalue", shell->null_text);
    out_printf(shell, "%12s: %s\n", "output", shell->out_name != NULL ? shell->out_name : "stdout");
    show_text(shell, "colseparator", shell->separator);
    show_text(shell, "rowseparator", shell->row_separator);
    out_printf(shell, "%12s: %s\n", "stats", shell->stats ? "on" : "off");
    out_printf(shell, "%12s: ", "width");
    for (u32 i = 0; i < shell->widths; i++)
        out_printf(shell, "%d ", (int)shell->width[i]);
    out_printf(shell, "\n%12s: %s\n", "filename", shell->path != NULL ? shell->path : ":memory:");
}
