/*
 * command_link.c -- dot commands about what is connected: .connection, .limit, .log.
 */
#include <stdio.h>
#include <string.h>

#include "shell/shell.h"
#include "value/number.h"

/* ---- .connection ---- */

static void
connections_print(Shell *shell)
{
    for (u32 i = 0; i < SHELL_CONNECTIONS; i++) {
        bool active = i == shell->connection;
        const char *path = active ? shell->path : shell->other[i].path;
        if (!active && shell->other[i].link == NULL) continue;
        if (path == NULL) path = i == 0 ? ":memory:" : "(memory)";
        out_printf(shell, "%s %u: %s\n", active ? "ACTIVE" : "      ", i, path);
    }
}

static void
connection_switch(Shell *shell, u32 to)
{
    if (to == shell->connection) return;
    ShellConnection *next = &shell->other[to];
    shell->other[shell->connection] = (ShellConnection){shell->link, shell->path, shell->read_only};
    shell->connection = to;
    shell->link = next->link;
    shell->path = next->path;
    shell->read_only = next->read_only;
    *next = (ShellConnection){0};
    if (shell->link == NULL) (void)shell_open(shell, NULL, false, false);
}

static void
connection_close(ShellConnection *connection)
{
    link_close(connection->link);
    mem_free(connection->path);
    *connection = (ShellConnection){0};
}

void
shell_connections_close(Shell *shell)
{
    for (u32 i = 0; i < SHELL_CONNECTIONS; i++)
        connection_close(&shell->other[i]);
}

/* One digit that names a connection. */
static bool
number_of(const char *text, u32 *number_out)
{
    *number_out = (u32)(text[0] - '0');
    return text[0] >= '0' && text[1] == 0 && *number_out < SHELL_CONNECTIONS;
}

void
command_connection(Shell *shell, u32 count, char **argument)
{
    u32 number;
    bool closes = count == 2 && strcmp(argument[0], "close") == 0;
    if (count == 0) {
        connections_print(shell);
    } else if (count == 1 && number_of(argument[0], &number)) {
        connection_switch(shell, number);
    } else if (closes && number_of(argument[1], &number)) {
        if (number == shell->connection)
            shell_complain(shell, "cannot close the active database connection");
        else
            connection_close(&shell->other[number]);
    } else {
        shell_complain(shell, "Usage: .connection [close] [CONNECTION-NUMBER]");
    }
}

/* ---- .limit ---- */

static const char *const limits[] = {"length",          "sql_length",      "column",
                                     "expr_depth",      "compound_select", "vdbe_op",
                                     "function_arg",    "attached",        "like_pattern_length",
                                     "variable_number", "trigger_depth",   "worker_threads"};

static void
limit_print(Shell *shell, int limit)
{
    int value = 0;
    if (link_limit(shell->link, limit, -1, &value))
        out_printf(shell, "%20s %d\n", limits[limit], value);
}

static bool
limit_find(Shell *shell, const char *name, int *limit_out)
{
    u32 found = 0;
    size_t bytes = strlen(name);
    for (u32 i = 0; i < COUNT_OF(limits); i++) {
        if (strncmp(limits[i], name, bytes) != 0) continue;
        *limit_out = (int)i;
        found++;
        if (limits[i][bytes] == 0) return true;
    }
    if (found == 1) return true;
    if (found > 1) {
        shell_complain(shell, "ambiguous limit: \"%s\"", name);
        return false;
    }
    shell_complain(shell, "unknown limit: \"%s\"\nenter \".limits\" with no arguments for a list.",
                   name);
    return false;
}

void
command_limit(Shell *shell, u32 count, char **argument)
{
    int limit, value = 0;
    if (shell->link == NULL || !link_limit(shell->link, 0, -1, &value)) {
        shell_complain(shell, "Error: .limit works on a file, not through a server");
        return;
    }
    if (count > 2) {
        shell_complain(shell, "Usage: .limit NAME ?NEW-VALUE?");
        return;
    }
    for (int i = 0; count == 0 && i < (int)COUNT_OF(limits); i++)
        limit_print(shell, i);
    if (count == 0 || !limit_find(shell, argument[0], &limit)) return;
    if (count == 2) {
        NumberScan scan = number_scan(SLICE(argument[1], strlen(argument[1])));
        if (scan.kind != NUMBER_INT || scan.i < 0 || scan.i > INT32_MAX) {
            shell_complain(shell, "Usage: .limit NAME ?NEW-VALUE?");
            return;
        }
        (void)link_limit(shell->link, limit, (int)scan.i, &value);
    }
    limit_print(shell, limit);
}

/* ---- .log ---- */

void
shell_log_close(Shell *shell)
{
    rt_file_close(shell->log_file);
    shell->log_file = NULL;
    shell->log_to = SHELL_LOG_OFF;
}

void
command_log(Shell *shell, u32 count, char **argument)
{
    if (count != 1) {
        shell_usage(shell, "log");
        return;
    }
    const char *name = argument[0];
    shell_log_close(shell);
    if (strcmp(name, "off") == 0) return;
    if (strcmp(name, "stdout") == 0 || strcmp(name, "on") == 0) {
        shell->log_to = SHELL_LOG_STDOUT;
    } else if (strcmp(name, "stderr") == 0) {
        shell->log_to = SHELL_LOG_STDERR;
    } else {
        ErrMsg msg = {0};
        u32 flags = RT_FILE_WRITE | RT_FILE_CREATE | RT_FILE_TRUNCATE | RT_FILE_APPEND;
        if (rt_file_open(NULL, name, flags, &shell->log_file, &msg) == OK)
            shell->log_to = SHELL_LOG_FILE;
        else
            shell_complain(shell, "Error: cannot open \"%s\"", name);
        err_clear(&msg);
    }
}

void
shell_log(Shell *shell, const LinkError *error, Slice sql)
{
    if (shell->log_to == SHELL_LOG_OFF) return;
    Buf line = {0};
    char head[24];
    int bytes = snprintf(head, sizeof(head), "(%d) ", error->code);
    while (sql.bytes > 0 && (sql.p[0] == ' ' || sql.p[0] == '\n'))
        sql = SLICE(sql.p + 1, sql.bytes - 1);
    while (sql.bytes > 0 && (sql.p[sql.bytes - 1] == ' ' || sql.p[sql.bytes - 1] == '\n'))
        sql.bytes--;
    Err err = buf_append(&line, head, (size_t)bytes);
    if (err == OK && error->text != NULL) err = buf_append_text(&line, error->text);
    if (err == OK) err = buf_append_text(&line, " in \"");
    if (err == OK) err = buf_append(&line, sql.p, sql.bytes);
    if (err == OK) err = buf_append_text(&line, "\"\n");
    if (err == OK && shell->log_to == SHELL_LOG_STDOUT) {
        out_bytes(shell, line.p, line.bytes);
        out_flush(shell);
    } else if (err == OK && shell->log_to == SHELL_LOG_STDERR) {
        err = rt_std_write(RT_STDERR, line.p, line.bytes);
    } else if (err == OK) {
        err = rt_file_append(shell->log_file, line.p, line.bytes, NULL);
    }
    if (err != OK) shell_log_close(shell);
    buf_free(&line);
}
