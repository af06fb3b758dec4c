/*
 * command.c -- the dot commands: split the line, find the command, run it.
 */
#include <stdio.h>
#include <string.h>

#include "shell/shell.h"
#include "value/number.h"

#define ARGUMENTS_MAX 32

static const char help_text[] =
    ".bail on|off             Stop after the first error\n"
    ".dump ?TABLE?            Print the database as SQL\n"
    ".echo on|off             Print each statement before it runs\n"
    ".exit ?CODE?             End with this status\n"
    ".headers on|off          Names above results\n"
    ".help                    This text\n"
    ".import FILE TABLE       Load a file; --csv, --tabs, --skip N\n"
    ".indexes ?TABLE?         Names of indexes\n"
    ".mode MODE ?TABLE?       How results look: box column csv insert json line list markdown\n"
    "                         quote table tabs\n"
    ".nullvalue TEXT          What stands for NULL\n"
    ".open ?FILE?             Close this database, open another; --readonly\n"
    ".output ?FILE?           Send results to a file, or back here\n"
    ".param set NAME VALUE    Give a parameter a value; also list, unset NAME, clear\n"
    ".print TEXT...           Print the text\n"
    ".quit                    End\n"
    ".read FILE               Run the SQL and commands in a file\n"
    ".schema ?PATTERN?        The CREATE statements\n"
    ".separator COL ?ROW?     Between columns and after rows\n"
    ".show                    The settings\n"
    ".tables ?PATTERN?        Names of tables and views\n"
    ".timer on|off            Print how long each statement took\n";

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

/* ---- names in columns ---- */

typedef struct Names {
    Arena arena;
    const char **name;
    u32 count, capacity;
    bool failed;
} Names;

static bool
name_add(void *arg, u32 count, const LinkValue *values)
{
    Names *names = arg;
    (void)count;
    if (names->count == names->capacity) {
        u32 capacity = names->capacity == 0 ? 64 : 2 * names->capacity;
        const char **bigger = mem_realloc(names->name, capacity * sizeof(*bigger));
        if (bigger == NULL) {
            names->failed = true;
            return false;
        }
        names->name = bigger;
        names->capacity = capacity;
    }
    const char *name = arena_strndup(&names->arena, values[0].text.p, values[0].text.bytes);
    if (name == NULL) return false;
    names->name[names->count++] = name;
    return true;
}

/* As many columns as 80 characters hold, filled downwards. */
static void
names_print(Shell *shell, const Names *names)
{
    u32 widest = 0;
    for (u32 i = 0; i < names->count; i++)
        widest = MAX_OF(widest, (u32)strlen(names->name[i]));
    u32 columns = MAX_OF(1u, 80 / (widest + 2));
    u32 rows = (names->count + columns - 1) / columns;
    for (u32 row = 0; row < rows; row++) {
        for (u32 i = row; i < names->count; i += rows)
            out_printf(shell, "%s%-*s", i < rows ? "" : "  ", (int)widest, names->name[i]);
        out_text(shell, "\n");
    }
}

/* Append a text as a SQL literal. */
static Err
append_literal(Buf *buf, const char *text)
{
    Err err = buf_append_byte(buf, '\'');
    for (; err == OK && *text != 0; text++) {
        if (*text == '\'') err = buf_append_byte(buf, '\'');
        if (err == OK) err = buf_append_byte(buf, (u8)*text);
    }
    return err == OK ? buf_append_byte(buf, '\'') : err;
}

/* `head` [pattern as a literal] `tail`; a row of it is handed to `each`. */
static bool
pattern_query(Shell *shell, const char *head, const char *pattern, const char *tail, LinkRow each,
              void *arg)
{
    Buf sql = {0};
    Err err = buf_append_text(&sql, head);
    if (err == OK && pattern != NULL) err = append_literal(&sql, pattern);
    if (err == OK) err = buf_append_text(&sql, tail);
    if (err == OK) err = buf_append_byte(&sql, 0);
    bool good = err == OK && shell_query(shell, (const char *)sql.p, each, arg);
    if (err != OK) shell_complain(shell, "Error: out of memory");
    buf_free(&sql);
    return good;
}

static void
names_command(Shell *shell, const char *head, const char *pattern, const char *tail)
{
    Names names = {0};
    arena_init(&names.arena, NULL);
    if (pattern_query(shell, head, pattern, tail, name_add, &names)) names_print(shell, &names);
    arena_free(&names.arena);
    mem_free(names.name);
}

static void
command_tables(Shell *shell, u32 count, char **argument)
{
    names_command(shell,
                  "SELECT name FROM sqlite_schema WHERE type IN ('table','view') AND "
                  "substr(name,1,7) <> 'sqlite_' AND name LIKE ",
                  count > 0 ? argument[0] : "%", " ORDER BY 1");
}

static void
command_indexes(Shell *shell, u32 count, char **argument)
{
    names_command(shell, "SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name LIKE ",
                  count > 0 ? argument[0] : "%", " ORDER BY 1");
}

static bool
schema_row(void *arg, u32 count, const LinkValue *values)
{
    Shell *shell = arg;
    (void)count;
    out_bytes(shell, values[0].text.p, values[0].text.bytes);
    out_text(shell, ";\n");
    return true;
}

static void
command_schema(Shell *shell, u32 count, char **argument)
{
    if (count == 0) {
        shell_query(shell, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid",
                    schema_row, shell);
        return;
    }
    pattern_query(shell,
                  "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND lower(tbl_name) LIKE ",
                  argument[0], " ORDER BY rowid", schema_row, shell);
}

/* ---- settings ---- */

static bool
is_on(Shell *shell, const char *text)
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
        *setting = is_on(shell, argument[0]);
    else
        shell_complain(shell, "Usage: .%s on|off", name);
}

static void
command_bail(Shell *shell, u32 count, char **argument)
{
    command_switch(shell, count, argument, "bail", &shell->bail);
}

static void
command_echo(Shell *shell, u32 count, char **argument)
{
    command_switch(shell, count, argument, "echo", &shell->echo);
}

static void
command_timer(Shell *shell, u32 count, char **argument)
{
    command_switch(shell, count, argument, "timer", &shell->timer);
}

static void
command_headers(Shell *shell, u32 count, char **argument)
{
    command_switch(shell, count, argument, "headers", &shell->headers);
    if (count == 1) shell->headers_set = true;
}

void
command_mode(Shell *shell, u32 count, char **argument)
{
    if (count == 0) {
        out_printf(shell, "current output mode: %s\n", mode_name(shell->mode));
        return;
    }
    if (!mode_set(shell, argument[0])) {
        shell_complain(shell, "Error: mode should be one of: box column csv insert json line list "
                              "markdown quote table tabs");
        return;
    }
    if (shell->mode == MODE_INSERT)
        snprintf(shell->insert_table, sizeof(shell->insert_table), "%s",
                 count > 1 ? argument[1] : "table");
}

static void
command_nullvalue(Shell *shell, u32 count, char **argument)
{
    if (count == 1)
        snprintf(shell->null_text, sizeof(shell->null_text), "%s", argument[0]);
    else
        shell_complain(shell, "Usage: .nullvalue STRING");
}

static void
command_separator(Shell *shell, u32 count, char **argument)
{
    if (count < 1 || count > 2) {
        shell_complain(shell, "Usage: .separator COL ?ROW?");
        return;
    }
    snprintf(shell->separator, sizeof(shell->separator), "%s", argument[0]);
    if (count == 2) snprintf(shell->row_separator, sizeof(shell->row_separator), "%s", argument[1]);
}

static void
command_show(Shell *shell, u32 count, char **argument)
{
    (void)count;
    (void)argument;
    out_printf(shell, "        echo: %s\n", shell->echo ? "on" : "off");
    out_printf(shell, "     headers: %s\n", shell->headers ? "on" : "off");
    out_printf(shell, "        mode: %s\n", mode_name(shell->mode));
    out_printf(shell, "   nullvalue: \"%s\"\n", shell->null_text);
    out_printf(shell, "      output: %s\n",
               shell->out_file != NULL ? rt_file_name(shell->out_file) : "stdout");
    out_printf(shell, "       timer: %s\n", shell->timer ? "on" : "off");
    out_printf(shell, "    filename: %s\n", shell->path != NULL ? shell->path : ":memory:");
}

/* ---- files ---- */

static void
command_read(Shell *shell, u32 count, char **argument)
{
    RtLines lines = {0};
    ErrMsg msg = {0};
    if (count != 1) {
        shell_complain(shell, "Usage: .read FILE");
        return;
    }
    if (shell->read_depth == SHELL_READ_DEPTH) {
        shell_complain(shell, "Error: .read is nested too deep");
        return;
    }
    Err err = rt_file_open(NULL, argument[0], RT_FILE_READ, &lines.file, &msg);
    if (err != OK) {
        shell_complain(shell, "Error: cannot open \"%s\"", argument[0]);
        err_clear(&msg);
        return;
    }
    shell->read_depth++;
    shell_input(shell, &lines);
    shell->read_depth--;
    RtFile *file = lines.file;
    rt_lines_free(&lines);
    rt_file_close(file);
}

static void
command_output(Shell *shell, u32 count, char **argument)
{
    RtFile *file = NULL;
    ErrMsg msg = {0};
    out_flush(shell);
    bool back = count == 0 || strcmp(argument[0], "stdout") == 0;
    Err err = back
                  ? OK
                  : rt_file_open(NULL, argument[0],
                                 RT_FILE_WRITE | RT_FILE_CREATE | RT_FILE_TRUNCATE | RT_FILE_APPEND,
                                 &file, &msg);
    if (err != OK) {
        shell_complain(shell, "Error: cannot open \"%s\"", argument[0]);
        err_clear(&msg);
        return;
    }
    rt_file_close(shell->out_file);
    shell->out_file = file;
}

static void
command_open(Shell *shell, u32 count, char **argument)
{
    bool read_only = count > 0 && strcmp(argument[0], "--readonly") == 0;
    u32 at = read_only ? 1 : 0;
    if (count > at + 1) {
        shell_complain(shell, "Usage: .open ?--readonly? ?FILE?");
        return;
    }
    (void)shell_open(shell, count > at ? argument[at] : NULL, false, read_only);
}

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
command_quit(Shell *shell, u32 count, char **argument)
{
    shell->quit = true;
    if (count > 0) {
        NumberScan scan = number_scan(SLICE(argument[0], strlen(argument[0])));
        if (scan.kind == NUMBER_INT) shell->status = (int)(scan.i & 0xff);
    }
}

static void
command_help(Shell *shell, u32 count, char **argument)
{
    (void)count;
    (void)argument;
    out_text(shell, help_text);
}

/* ---- dispatch ---- */

typedef void (*CommandFn)(Shell *shell, u32 count, char **argument);

static const struct {
    const char *name;
    u32 shortest; /* Letters that suffice. */
    CommandFn run;
} commands[] = {
    {"bail", 2, command_bail},           {"dump", 2, command_dump},
    {"echo", 2, command_echo},           {"exit", 2, command_quit},
    {"headers", 3, command_headers},     {"help", 1, command_help},
    {"import", 2, command_import},       {"indexes", 3, command_indexes},
    {"indices", 3, command_indexes},     {"mode", 1, command_mode},
    {"nullvalue", 1, command_nullvalue}, {"open", 2, command_open},
    {"output", 2, command_output},       {"parameters", 2, command_param},
    {"print", 2, command_print},         {"quit", 1, command_quit},
    {"read", 1, command_read},           {"schema", 2, command_schema},
    {"separator", 2, command_separator}, {"show", 2, command_show},
    {"tables", 1, command_tables},       {"timer", 2, command_timer},
};

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
    CommandFn run = NULL;
    for (size_t i = 0; i < COUNT_OF(commands) && count > 0 && run == NULL; i++) {
        size_t bytes = strlen(argument[0]);
        if (bytes >= commands[i].shortest && strncmp(argument[0], commands[i].name, bytes) == 0)
            run = commands[i].run;
    }
    if (run != NULL)
        run(shell, count - 1, argument + 1);
    else if (count > 0)
        shell_complain(
            shell, "Error: unknown command or invalid arguments:  \"%s\". Enter \".help\" for help",
            argument[0]);
    out_flush(shell);
    mem_free(copy);
}
