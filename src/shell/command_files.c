/*
 * command_files.c -- dot commands that read, write and open files, and run commands of the system.
 */
#include <stdio.h>
#include <string.h>

#include "rt/command.h"
#include "shell/shell.h"

/* ---- reading ---- */

RtFile *
shell_file_open(Shell *shell, const char *name)
{
    RtFile *file = NULL;
    ErrMsg msg = {0};
    int status;
    if (name[0] != '|') {
        if (rt_file_open(NULL, name, RT_FILE_READ, &file, &msg) == OK) return file;
        shell_complain(shell, "Error: cannot open \"%s\"", name);
        err_clear(&msg);
        return NULL;
    }
    out_flush(shell);
    Err err = rt_file_open_temp(NULL, &file, &msg);
    if (err == OK) err = rt_command_run(name + 1, NULL, file, &status, &msg);
    if (err == OK) err = rt_file_rewind(file);
    if (err == OK) return file;
    shell_complain(shell, "Error: cannot open \"%s\"", name);
    err_clear(&msg);
    rt_file_close(file);
    return NULL;
}

void
command_read(Shell *shell, u32 count, char **argument)
{
    RtLines lines = {0};
    if (count != 1) {
        shell_usage(shell, "read");
        return;
    }
    if (shell->read_depth == SHELL_READ_DEPTH) {
        shell_complain(shell, "Error: .read is nested too deep");
        return;
    }
    RtFile *file = shell_file_open(shell, argument[0]);
    if (file == NULL) return;
    lines.file = file;
    shell->read_depth++;
    shell_input(shell, &lines);
    shell->read_depth--;
    rt_lines_free(&lines);
    rt_file_close(file);
}

/* ---- writing ---- */

void
shell_output_reset(Shell *shell)
{
    int status;
    ErrMsg msg = {0};
    out_flush(shell);
    RtFile *file = shell->out_file;
    shell->out_file = NULL; /* From here on output is standard output's. */
    if (file != NULL && shell->out_pipe) {
        Err err = rt_command_run(shell->out_name + 1, file, NULL, &status, &msg);
        if (err != OK) shell_complain(shell, "Error: cannot open pipe \"%s\"", shell->out_name + 1);
    }
    err_clear(&msg);
    rt_file_close(file);
    mem_free(shell->out_name);
    shell->out_name = NULL;
    shell->out_pipe = false;
    shell->out_commands = 0;
}

static void
output_to(Shell *shell, const char *name, u32 commands)
{
    ErrMsg msg = {0};
    shell_output_reset(shell);
    if (strcmp(name, "stdout") == 0) return;
    if (name[0] == '-') {
        shell_complain(shell, "ERROR: unknown option: \"%s\"", name);
        return;
    }
    Err err = name[0] == '|'
                  ? rt_file_open_temp(NULL, &shell->out_file, &msg)
                  : rt_file_open(NULL, name,
                                 RT_FILE_WRITE | RT_FILE_CREATE | RT_FILE_TRUNCATE | RT_FILE_APPEND,
                                 &shell->out_file, &msg);
    shell->out_name = err == OK ? mem_strdup(name) : NULL;
    if (err == OK && shell->out_name != NULL) {
        shell->out_pipe = name[0] == '|';
        shell->out_commands = commands;
    } else {
        shell_complain(shell, "Error: cannot write to \"%s\"", name);
        rt_file_close(shell->out_file);
        shell->out_file = NULL;
    }
    err_clear(&msg);
}

void
command_output(Shell *shell, u32 count, char **argument)
{
    if (count > 1)
        shell_usage(shell, "output");
    else
        output_to(shell, count == 0 ? "stdout" : argument[0], 0);
}

void
command_once(Shell *shell, u32 count, char **argument)
{
    if (count > 1)
        shell_usage(shell, "once");
    else
        output_to(shell, count == 0 ? "stdout" : argument[0], 2); /* This one counts too. */
}

/* ---- the system ---- */

void
command_cd(Shell *shell, u32 count, char **argument)
{
    if (count != 1)
        shell_usage(shell, "cd");
    else if (rt_change_dir(argument[0]) != OK)
        shell_complain(shell, "Cannot change to directory \"%s\"", argument[0]);
}

void
command_shell(Shell *shell, u32 count, char **argument)
{
    Buf text = {0};
    int status = 0;
    ErrMsg msg = {0};
    if (count == 0) {
        shell_usage(shell, "system");
        return;
    }
    Err err = OK;
    for (u32 i = 0; i < count && err == OK; i++) {
        const char *quote = strchr(argument[i], ' ') != NULL ? "\"" : "";
        err = buf_printf(&text, "%s%s%s%s", i > 0 ? " " : "", quote, argument[i], quote);
    }
    if (err == OK) err = buf_append_byte(&text, 0);
    if (err != OK) {
        buf_free(&text);
        shell_complain(shell, "Error: out of memory");
        return;
    }
    out_flush(shell);
    if (rt_command_run((const char *)text.p, NULL, NULL, &status, &msg) != OK)
        shell_complain(shell, "Error: %s", err_message(&msg));
    else if (status != 0)
        shell_complain(shell, "System command returns %d", status << 8);
    buf_free(&text);
    err_clear(&msg);
}

/* ---- databases ---- */

void
command_open(Shell *shell, u32 count, char **argument)
{
    bool read_only = false, fresh = false;
    const char *name = NULL;
    for (u32 i = 0; i < count; i++) {
        if (strcmp(argument[i], "--readonly") == 0 || strcmp(argument[i], "-readonly") == 0) {
            read_only = true;
        } else if (strcmp(argument[i], "--new") == 0 || strcmp(argument[i], "-new") == 0) {
            fresh = true;
        } else if (argument[i][0] == '-') {
            shell_complain(shell, "unknown option: %s", argument[i]);
            return;
        } else if (name != NULL) {
            shell_complain(shell, "extra argument: \"%s\"", argument[i]);
            return;
        } else {
            name = argument[i];
        }
    }
    if (fresh && name != NULL) {
        Link *link = shell->link; /* It may be the very file. */
        shell->link = NULL;
        link_close(link);
        Err err = rt_file_unlink(NULL, name, NULL);
        (void)err; /* There was none. */
    }
    (void)shell_open(shell, name, false, read_only);
}

/* The arguments of .backup and .restore: a database's name may stand before the file's. */
static const char *
file_argument(Shell *shell, u32 count, char **argument, const char *command, const char **database)
{
    *database = "main";
    if (count == 0) {
        shell_complain(shell, "missing FILENAME argument on .%s", command);
        return NULL;
    }
    if (count > 2) {
        shell_usage(shell, command);
        return NULL;
    }
    if (count == 2) *database = argument[0];
    if (shell->link != NULL && link_is_remote(shell->link)) {
        shell_complain(shell, "Error: .%s works on a file, not through a server", command);
        return NULL;
    }
    return argument[count - 1];
}

/* A copy under another name takes the place of FILE when it is whole. */
void
command_backup(Shell *shell, u32 count, char **argument)
{
    const char *database;
    ErrMsg msg = {0};
    const char *file = file_argument(shell, count, argument, "backup", &database);
    if (file == NULL) return;
    size_t bytes = strlen(file) + sizeof("-part");
    char *part = mem_alloc(bytes);
    if (part == NULL) {
        shell_complain(shell, "Error: out of memory");
        return;
    }
    snprintf(part, bytes, "%s-part", file);
    Err err = rt_file_unlink(NULL, part, NULL); /* Left by a run that was killed. */
    (void)err;
    LinkError error = {.offset = -1};
    if (shell->link == NULL)
        shell_complain(shell, "Error: no database is open");
    else if (!link_backup(shell->link, database, part, &error))
        shell_complain(shell, "Error: %s", error.text != NULL ? error.text : "out of memory");
    else if (rt_file_rename(NULL, part, file, &msg) != OK)
        shell_complain(shell, "Error: %s", err_message(&msg));
    link_error_clear(&error);
    err_clear(&msg);
    mem_free(part);
}
