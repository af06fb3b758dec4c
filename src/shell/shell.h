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
    MODE_COUNT_
} Mode;

#define SHELL_SEPARATOR_MAX 20
#define SHELL_NAME_MAX      256
#define SHELL_READ_DEPTH    16 /* .read inside .read */

/* A value bound by .param to a parameter name. */
typedef struct ShellParam {
    struct ShellParam *next;
    char *name;
    LinkValue value; /* Its text is owned. */
} ShellParam;

/* Rows that wait until the widths are known, or for nothing. */
typedef struct Table Table;

typedef struct Shell {
    Link *link;
    char *path; /* What is open; NULL: in memory. */
    bool interactive, bail, echo, timer;
    bool headers, headers_set; /* Set by .headers; else the mode decides. */
    u8 mode;                   /* Mode */
    char separator[SHELL_SEPARATOR_MAX + 1];
    char row_separator[SHELL_SEPARATOR_MAX + 1];
    char null_text[SHELL_NAME_MAX];
    char insert_table[SHELL_NAME_MAX]; /* .mode insert TABLE */
    ShellParam *params;
    Buf out;          /* Output not yet written. */
    RtFile *out_file; /* .output; NULL: standard output. */
    bool out_failed;  /* The reader of our output is gone. */
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

/* ---- command.c ---- */
/* Run one dot command; `line` begins with the dot. */
void shell_command(Shell *shell, Slice line);
/* Run a query for a command; rows go to `each`.  False: a message was printed. */
bool shell_query(Shell *shell, const char *sql, LinkRow each, void *arg);
/* command_dump.c, command_import.c; arguments without the command's name. */
void command_dump(Shell *shell, u32 count, char **argument);
void command_import(Shell *shell, u32 count, char **argument);
void command_mode(Shell *shell, u32 count, char **argument);
void command_param(Shell *shell, u32 count, char **argument);

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
/* An identifier, in double quotes where it needs them. */
void out_name(Shell *shell, const char *name);
/* The plain text of a value: digits, bytes, null_text. `room` is used for numbers. */
Slice value_text(const Shell *shell, const LinkValue *value, char room[40]);

/* ---- format.c: result sets ---- */
const char *mode_name(u8 mode);
/* Set the mode with its separators; false: no such mode. */
bool mode_set(Shell *shell, const char *name);
/* Print one result set: begin, rows, end.  *table_out is freed by table_end(). */
Table *table_begin(Shell *shell, u32 column_count, const char *const *names);
bool table_row(Table *table, const LinkValue *values);
void table_end(Table *table);
