/*
 * command.c -- the dot commands: split the line, find the command, run it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shell/shell.h"
#include "value/number.h"

#define ARGUMENTS_MAX 100

bool
shell_query(Shell *shell, const char *sql, LinkRow each, void *arg)
{
    LinkSink sink = {.arg = arg, .row = each};
    LinkError error = {.offset = -1};
    if (shell->link == NULL) {
        shell_complain(shell, "Error: no database is open");
        return false;
    }
    rt_store(&shell->interrupted, 0u);
    bool good = link_run(shell->link, SLICE(sql, strlen(sql)), &sink, NULL, NULL, &error);
    if (!good)
        shell_complain(shell, "Error: %s", error.text != NULL ? error.text : "out of memory");
    link_error_clear(&error);
    return good;
}

/* ---- queries put together ---- */

static Err
append_quoted(Buf *sql, const char *text, u8 quote)
{
    Err err = buf_append_byte(sql, quote);
    for (; err == OK && *text != 0; text++) {
        if ((u8)*text == quote) err = buf_append_byte(sql, quote);
        if (err == OK) err = buf_append_byte(sql, (u8)*text);
    }
    return err == OK ? buf_append_byte(sql, quote) : err;
}

bool
shell_queryf(Shell *shell, LinkRow each, void *arg, const char *format, ...)
{
    Buf sql = {0};
    Err err = OK;
    va_list args;
    va_start(args, format);
    for (const char *at = format; err == OK && *at != 0; at++) {
        if (*at != '%') {
            err = buf_append_byte(&sql, (u8)*at);
            continue;
        }
        at++;
        if (*at == '%') {
            err = buf_append_byte(&sql, '%');
            continue;
        }
        const char *text = va_arg(args, const char *);
        err = *at == 's' ? buf_append_text(&sql, text)
                         : append_quoted(&sql, text, *at == 'Q' ? '\'' : '"');
    }
    va_end(args);
    if (err == OK) err = buf_append_byte(&sql, 0);
    bool good = err == OK && shell_query(shell, (const char *)sql.p, each, arg);
    if (err != OK) shell_complain(shell, "Error: out of memory");
    buf_free(&sql);
    return good;
}

/* ---- small commands ---- */

static void
command_print(Shell *shell, u32 count, char **argument)
{
    for (u32 i = 0; i < count; i++) {
        if (i > 0) out_text(shell, " ");
        out_text(shell, argument[i]);
    }
    out_text(shell, "\n");
}

static void
command_nothing(Shell *shell, u32 count, char **argument)
{
    (void)shell;
    (void)count;
    (void)argument;
}

static void
command_quit(Shell *shell, u32 count, char **argument)
{
    shell->quit = true;
    if (count > 0) {
        NumberScan scan = number_scan(SLICE(argument[0], strlen(argument[0])));
        if (scan.kind == NUMBER_INT) shell->status = (int)(scan.i & 0xff);
    }
}

static void
help_line(Shell *shell, const Command *command)
{
    char head[64];
    snprintf(head, sizeof(head), ".%s %s", command->name, command->usage);
    out_printf(shell, "%-24s %s\n", head, command->help);
}

/* .help: all; .help NAME: those whose names begin so. */
static void
command_help(Shell *shell, u32 count, char **argument)
{
    const char *wanted = count > 0 ? argument[count - 1] : "";
    u32 shown = 0;
    if (wanted[0] == '-') wanted = "";
    if (wanted[0] == '.') wanted++;
    for (u32 i = 0; i < shell_command_count; i++) {
        const Command *command = &shell_commands[i];
        if (command->run == NULL || strncmp(command->name, wanted, strlen(wanted)) != 0) continue;
        help_line(shell, command);
        shown++;
    }
    if (shown == 0) out_printf(shell, "Nothing matches '%s'\n", wanted);
}

void
shell_usage(Shell *shell, const char *name)
{
    for (u32 i = 0; i < shell_command_count; i++) {
        if (strcmp(shell_commands[i].name, name) != 0) continue;
        shell_complain(shell, "Usage: .%s %s", name, shell_commands[i].usage);
        return;
    }
}

/* ---- dispatch ---- */

const Command shell_commands[] = {
    {"archive", 2, NULL, "", "archives are files of SQLite"},
    {"auth", 2, NULL, "", "the shell has no authorizer"},
    {"backup", 3, command_backup, "?DB? FILE", "Write a copy of the database to a file"},
    {"bail", 2, command_bail, "on|off", "Stop after the first error"},
    {"binary", 3, command_nothing, "on|off", "Accepted; output is never translated"},
    {"cd", 2, command_cd, "DIRECTORY", "Change the working directory"},
    {"changes", 3, command_changes, "on|off", "Say how many rows each statement changed"},
    {"check", 3, NULL, "", "it belongs to the tests of SQLite"},
    {"clone", 2, command_clone, "NEWDB", "Copy the contents into a new database"},
    {"connection", 3, command_connection, "?close? ?NUMBER?",
     "The connections, 0 to 4: switch to one, or close one"},
    {"databases", 2, command_databases, "", "Names and files of the attached databases"},
    {"dbconfig", 3, NULL, "", "use pragmas"},
    {"dbinfo", 3, command_dbinfo, "", "Facts about the database"},
    {"dump", 2, command_dump, "?OPTIONS? ?PATTERN...?",
     "Print the database as SQL: --data-only --newlines --nosys --preserve-rowids"},
    {"echo", 2, command_echo, "on|off", "Print each statement before it runs"},
    {"eqp", 2, command_eqp, "on|off", "Show the query plan of each statement first"},
    {"excel", 4, NULL, "", "use .mode csv and .once"},
    {"exit", 3, command_quit, "?CODE?", "End with this status"},
    {"expert", 4, NULL, "", "there is no adviser for indexes"},
    {"explain", 4, command_explain, "on|off|auto", "Show query plans as a tree"},
    {"filectrl", 2, NULL, "", "it belongs to SQLite's files"},
    {"fullschema", 2, command_fullschema, "?--indent?", "The schema and the statistics"},
    {"headers", 3, command_headers, "on|off", "Names above results"},
    {"help", 1, command_help, "?NAME?", "This text"},
    {"import", 2, command_import, "FILE TABLE",
     "Load a file: --ascii --csv --tabs --skip N --schema S -v"},
    {"imposter", 4, NULL, "", "it belongs to SQLite's files"},
    {"indexes", 3, command_indexes, "?TABLE?", "Names of indexes"},
    {"indices", 3, command_indexes, "?TABLE?", "Names of indexes"},
    {"limit", 3, command_limit, "?LIMIT? ?VALUE?", "The limits of the connection; set one"},
    {"lint", 3, command_lint, "fkey-indexes",
     "Foreign keys without an index: -verbose -groupbyparent"},
    {"load", 2, NULL, "", "extensions of SQLite cannot be loaded"},
    {"log", 3, command_log, "FILENAME",
     "Write errors with their statements to a file too: stdout stderr off"},
    {"mode", 1, command_mode, "MODE ?OPTIONS?",
     "How results look: ascii box column csv html insert json line list markdown qbox quote table "
     "tabs tcl; --wrap N --wordwrap on|off --quote"},
    {"nullvalue", 1, command_nullvalue, "STRING", "What stands for NULL"},
    {"once", 3, command_once, "FILE", "The output of the next command goes to a file or |COMMAND"},
    {"open", 2, command_open, "?OPTIONS? ?FILE?", "Open another database: --new --readonly"},
    {"output", 2, command_output, "?FILE?", "Send output to a file or |COMMAND, or back here"},
    {"parameter", 2, command_param, "set NAME VALUE | unset NAME | list | clear",
     "Values for the parameters in statements"},
    {"print", 2, command_print, "STRING...", "Print the text"},
    {"progress", 4, NULL, "", "interrupt with Ctrl-C"},
    {"prompt", 3, command_prompt, "MAIN CONTINUE", "Other prompts"},
    {"quit", 1, command_quit, "", "End"},
    {"read", 3, command_read, "FILE", "Run the SQL and commands in a file or from |COMMAND"},
    {"recover", 3, NULL, "",
     "for a damaged SQLite file run: weft import --salvage APP.db APP.weft"},
    {"restore", 3, command_restore, "?DB? FILE", "Replace the contents by those of a file"},
    {"save", 2, command_backup, "FILE", "Write a copy of the database to a file"},
    {"scanstats", 2, NULL, "", "there are no counters of loops"},
    {"schema", 2, command_schema, "?OPTIONS? ?PATTERN?", "The CREATE statements: --indent --nosys"},
    {"selftest", 4, NULL, "", "use PRAGMA integrity_check"},
    {"separator", 3, command_separator, "COL ?ROW?", "Between columns and after rows"},
    {"session", 3, NULL, "", "changes are not recorded"},
    {"sha3sum", 4, command_sha3sum, "?OPTIONS? ?LIKE-PATTERN?",
     "A hash of the contents: --schema --sha3-224 --sha3-256 --sha3-384 --sha3-512"},
    {"shell", 3, command_shell, "CMD ARGS...", "Run a command of the system"},
    {"show", 2, command_show, "", "The settings"},
    {"stats", 3, command_stats, "?on|off?", "Numbers of the engine, now or after each statement"},
    {"system", 3, command_shell, "CMD ARGS...", "Run a command of the system"},
    {"tables", 1, command_tables, "?PATTERN?", "Names of tables and views"},
    {"testcase", 4, NULL, "", "it belongs to the tests of SQLite"},
    {"testctrl", 4, NULL, "", "it belongs to the tests of SQLite"},
    {"timeout", 5, command_timeout, "MS", "How long to wait for others"},
    {"timer", 5, command_timer, "on|off", "Say how long each statement took"},
    {"trace", 3, NULL, "", "use .echo"},
    {"vfsinfo", 3, NULL, "", "there are no VFSes"},
    {"vfslist", 4, NULL, "", "there are no VFSes"},
    {"vfsname", 4, NULL, "", "there are no VFSes"},
    {"width", 1, command_width, "NUM1 NUM2 ...", "Widths of columns, negative: to the right"},
};
const u32 shell_command_count = COUNT_OF(shell_commands);

static const Command *
command_find(const char *name)
{
    size_t bytes = strlen(name);
    for (u32 i = 0; i < shell_command_count; i++) {
        const Command *command = &shell_commands[i];
        if (bytes >= command->shortest && strncmp(name, command->name, bytes) == 0) return command;
    }
    return NULL;
}

/* One character after a backslash in double quotes. */
static char
unescape(char c)
{
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    default: return c;
    }
}

/* Split in place into words; quotes of both kinds hold words together, backslashes count in double
   ones. */
static u32
arguments_split(char *line, char **argument)
{
    u32 count = 0;
    char *from = line;
    while (count < ARGUMENTS_MAX) {
        while (*from == ' ' || *from == '\t')
            from++;
        if (*from == 0) break;
        char quote = *from == '\'' || *from == '"' ? *from++ : 0;
        char *to = from;
        argument[count++] = from;
        while (*from != 0 && (quote != 0 ? *from != quote : *from != ' ' && *from != '\t')) {
            if (*from == '\\' && from[1] != 0 && quote != '\'') {
                *to++ = unescape(from[1]);
                from += 2;
            } else {
                *to++ = *from++;
            }
        }
        bool last = *from == 0;
        *to = 0;
        if (!last) from++;
    }
    return count;
}

void
shell_command(Shell *shell, Slice line)
{
    char *argument[ARGUMENTS_MAX];
    char *copy = mem_strndup(line.p + 1, line.bytes - 1);
    if (copy == NULL) {
        shell_complain(shell, "Error: out of memory");
        return;
    }
    u32 count = arguments_split(copy, argument);
    const Command *command = count > 0 ? command_find(argument[0]) : NULL;
    if (command != NULL && command->run != NULL)
        command->run(shell, count - 1, argument + 1);
    else if (command != NULL)
        shell_complain(shell, "Error: .%s is not supported: %s", command->name, command->help);
    else if (count > 0)
        shell_complain(
            shell, "Error: unknown command or invalid arguments:  \"%s\". Enter \".help\" for help",
            argument[0]);
    out_flush(shell);
    mem_free(copy);
    if (shell->out_commands > 0 && --shell->out_commands == 0) shell_output_reset(shell);
}
