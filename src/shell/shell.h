/*
 * shell.h -- the weft shell: what its parts share.  Everything here is private to shell/.
 *
 * One Shell per program run, used by one task.  The signal handler touches only `interrupted` and
 * the link (both safe there).
 */
#pragma once

#include "base/base.h"
#include "rt/console.h"
#include "rt/file.h"
#include "rt/word.h"
#include "shell/link.h"
#include "shell/scan.h"

typedef enum Mode {
    MODE_LIST,
    MODE_COLUMN,
    MODE_BOX,
    MODE_TABLE,
    MODE_MARKDOWN,
    MODE_CSV,
    MODE_JSON,
    MODE_LINE,
    MODE_INSERT,
    MODE_QUOTE,
    MODE_TABS,
    MODE_ASCII,
    MODE_HTML,
    MODE_TCL,
    MODE_COUNT_
} Mode;

#define SHELL_SEPARATOR_MAX 20
#define SHELL_NAME_MAX      256
#define SHELL_WIDTHS        100
#define SHELL_READ_DEPTH    16 /* .read inside .read */

/* A value bound by .param to a parameter name. */
typedef struct ShellParam {
    struct ShellParam *next;
    char *name;
    LinkValue value; /* Its text is owned. */
} ShellParam;

/* A connection that is not the active one (.connection). */
#define SHELL_CONNECTIONS 5u
typedef struct ShellConnection {
    Link *link; /* NULL: none is open under this number. */
    char *path;
    bool read_only;
} ShellConnection;

typedef enum ShellLog {
    SHELL_LOG_OFF,
    SHELL_LOG_STDOUT,
    SHELL_LOG_STDERR,
    SHELL_LOG_FILE
} ShellLog;

/* Rows that wait until the widths are known, or for nothing. */
typedef struct Table Table;

typedef struct Shell {
    Link *link;
    char *path; /* What is open; NULL: in memory. */
    bool interactive, bail, echo, timer, changes, stats, read_only;
    bool eqp;         /* Show each statement's query plan first. */
    bool explain_off; /* Show query plans as rows, not as a tree. */
    char prompt[2][SHELL_SEPARATOR_MAX + 1];
    bool headers, headers_set; /* Set by .headers; else the mode decides. */
    u8 mode;                   /* Mode */
    u32 wrap;                  /* Aligned modes: widest a column may be, 0: any. */
    bool word_wrap, quote;     /* Aligned modes: cut between words; show SQL literals. */
    i32 width[SHELL_WIDTHS];   /* .width: narrowest and widest, negative to the right; 0: any. */
    u32 widths;
    char separator[SHELL_SEPARATOR_MAX + 1];
    char row_separator[SHELL_SEPARATOR_MAX + 1];
    char null_text[SHELL_NAME_MAX];
    char insert_table[SHELL_NAME_MAX]; /* .mode insert TABLE */
    ShellParam *params;
    Buf out;          /* Output not yet written. */
    RtFile *out_file; /* .output; NULL: standard output. */
    char *out_name;   /* What it was called. */
    bool out_pipe;    /* ... a command, which gets the file when it is complete. */
    u32 out_commands; /* .once: back to standard output after so many commands; 0: stay. */
    bool out_failed;  /* The reader of our output is gone. */
    ShellConnection other[SHELL_CONNECTIONS];
    u32 connection; /* Number of the active one. */
    u8 log_to;      /* ShellLog: where errors are written too. */
    RtFile *log_file;
    u32 read_depth;
    u64 errors;
    bool quit;
    int status; /* Of .quit CODE. */
    RtU32 interrupted;
} Shell;

/* ---- main.c, input.c ---- */
/* Run SQL and dot commands from `lines` until they end, .quit, or an error with bail. */
void shell_input(Shell *shell, RtLines *lines);
/* Prompt, edit, run; until the end of input. */
void shell_interactive(Shell *shell);
/* Run complete statements; errors are printed, with `line` as the place (0: none). */
void shell_sql(Shell *shell, Slice sql, u64 line);
/* Open another database, local path or "HOST:PORT" when `remote`.  False: a message was printed. */
bool shell_open(Shell *shell, const char *path, bool remote, bool read_only);

/* Does `text` say on or off?  Complains if neither, and means off. */
bool shell_is_on(Shell *shell, const char *text);

/* ---- command.c ---- */
/* Run one dot command; `line` begins with the dot. */
void shell_command(Shell *shell, Slice line);
/* Run a query for a command; rows go to `each`.  False: a message was printed. */
bool shell_query(Shell *shell, const char *sql, LinkRow each, void *arg);
/* The same with parts that are put together: a %s is a text as it is, a %Q in single quotes, a %w
   in double quotes, each the next argument. */
bool shell_queryf(Shell *shell, LinkRow each, void *arg, const char *format, ...);
/* What a command takes: its arguments without its name. */
typedef void (*CommandFn)(Shell *shell, u32 count, char **argument);
typedef struct Command {
    const char *name;
    u32 shortest;      /* Letters that suffice. */
    CommandFn run;     /* NULL: refused by name. */
    const char *usage; /* Arguments. */
    const char *help;
} Command;
extern const Command shell_commands[];
extern const u32 shell_command_count;
/* Say how a command is used; counts as an error. */
void shell_usage(Shell *shell, const char *name);

/* One file each, or together in command_settings.c, command_schema.c, command_files.c. */
void command_backup(Shell *shell, u32 count, char **argument);
void command_bail(Shell *shell, u32 count, char **argument);
void command_connection(Shell *shell, u32 count, char **argument);
void command_cd(Shell *shell, u32 count, char **argument);
void command_changes(Shell *shell, u32 count, char **argument);
void command_clone(Shell *shell, u32 count, char **argument);
void command_databases(Shell *shell, u32 count, char **argument);
void command_dbinfo(Shell *shell, u32 count, char **argument);
void command_dump(Shell *shell, u32 count, char **argument);
void command_echo(Shell *shell, u32 count, char **argument);
void command_eqp(Shell *shell, u32 count, char **argument);
void command_explain(Shell *shell, u32 count, char **argument);
void command_fullschema(Shell *shell, u32 count, char **argument);
void command_headers(Shell *shell, u32 count, char **argument);
void command_import(Shell *shell, u32 count, char **argument);
void command_indexes(Shell *shell, u32 count, char **argument);
void command_limit(Shell *shell, u32 count, char **argument);
void command_lint(Shell *shell, u32 count, char **argument);
void command_log(Shell *shell, u32 count, char **argument);
void command_mode(Shell *shell, u32 count, char **argument);
void command_nullvalue(Shell *shell, u32 count, char **argument);
void command_once(Shell *shell, u32 count, char **argument);
void command_open(Shell *shell, u32 count, char **argument);
void command_output(Shell *shell, u32 count, char **argument);
void command_param(Shell *shell, u32 count, char **argument);
void command_prompt(Shell *shell, u32 count, char **argument);
void command_read(Shell *shell, u32 count, char **argument);
void command_restore(Shell *shell, u32 count, char **argument);
void command_schema(Shell *shell, u32 count, char **argument);
void command_separator(Shell *shell, u32 count, char **argument);
void command_sha3sum(Shell *shell, u32 count, char **argument);
void command_shell(Shell *shell, u32 count, char **argument);
void command_show(Shell *shell, u32 count, char **argument);
void command_stats(Shell *shell, u32 count, char **argument);
void command_tables(Shell *shell, u32 count, char **argument);
void command_timeout(Shell *shell, u32 count, char **argument);
void command_timer(Shell *shell, u32 count, char **argument);
void command_width(Shell *shell, u32 count, char **argument);
/* Write the statistics that .stats shows. */
void shell_stats(Shell *shell);
/* .connection: close those that are not active; .log: write an error, and the end of it. */
void shell_connections_close(Shell *shell);
void shell_log(Shell *shell, const LinkError *error, Slice sql);
void shell_log_close(Shell *shell);
/* Output goes to standard output again. */
void shell_output_reset(Shell *shell);
/* A file to read from: FILE, or for "|COMMAND" what that command prints.  NULL: complained. */
RtFile *shell_file_open(Shell *shell, const char *name);
/* Names of the columns of a table or view that can be written, with commas, into `out`: in double
   quotes, or `plain`: only where they need them. */
bool shell_columns(Shell *shell, const char *schema, const char *table, bool plain, Buf *out);

/* ---- output.c: text ---- */
void out_bytes(Shell *shell, const void *bytes, size_t count);
void out_text(Shell *shell, const char *text);
void out_printf(Shell *shell, const char *format, ...) PRINTF_LIKE(2, 3);
/* Write what has gathered; on failure out_failed is set. */
void out_flush(Shell *shell);
/* One line on standard error; counts as an error. */
void shell_complain(Shell *shell, const char *format, ...) PRINTF_LIKE(2, 3);
/* A value as SQL text: 'it''s', 1.5, X'00', NULL. */
void out_literal(Shell *shell, const LinkValue *value);
/* The same; line ends inside text stand as replace('..','\n',char(10)), so that it is one line. */
void out_line_literal(Shell *shell, const LinkValue *value);
/* The same into a buffer; with x for X. */
MUST_CHECK Err literal_append(const LinkValue *value, Buf *out);
/* An identifier, in double quotes where it needs them. */
void out_name(Shell *shell, const char *name);
bool name_is_plain(Slice name); /* It needs none. */
/* The CREATE text of a schema row; with IF NOT EXISTS if the name of a table is quoted. */
void out_create(Shell *shell, const char *sql);
/* The semicolon behind such a text. */
void out_statement_end(Shell *shell, const char *sql);
/* The plain text of a value: digits, bytes, null_text. `room` is used for numbers. */
Slice value_text(const Shell *shell, const LinkValue *value, char room[40]);

/* ---- format.c: result sets ---- */
const char *mode_name(u8 mode);
/* Set the mode with its separators; false: no such mode. */
bool mode_set(Shell *shell, const char *name);
bool mode_is_aligned(u8 mode);
/* Print one result set: begin, rows, end.  *table_out is freed by table_end(). */
Table *table_begin(Shell *shell, u32 column_count, const char *const *names);
bool table_row(Table *table, const LinkValue *values);
void table_end(Table *table);
