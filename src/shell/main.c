/*
 * main.c -- the weft shell: options, and which kind of input there is.
 */
#include <stdio.h>
#include <string.h>

#include "rt/host.h"
#include "rt/task.h"
#include "shell/shell.h"
#include "tools/tools.h"

#define COMMANDS_MAX 64

static const char usage_text[] =
    "usage: weft [options] [FILE [SQL...]]\n"
    "       weft import APP.db APP.weft    make a Weft database from a SQLite file\n"
    "       weft export APP.weft APP.db    the other way\n"
    "       weft dump-page APP.weft [N]    say what page N of the file holds\n"
    "\n"
    "Runs SQL and dot commands on a Weft database file (none: one in memory) from SQL, standard "
    "input\n"
    "or a prompt.  Exit status 1 if a statement failed.\n"
    "\n"
    "  --connect HOST:PORT   use a weftd instead of a file (unix:PATH too; WEFT_TOKEN is its "
    "token)\n"
    "  --readonly            refuse to write\n"
    "  --bail                stop at the first error\n"
    "  --batch, --interactive\n"
    "  --init FILE           run the commands in this file first\n"
    "  --cmd COMMAND         run this before anything else\n"
    "  --header, --noheader\n"
    "  --ascii --box --column --csv --html --json --line --list --markdown --quote --table --tabs "
    "--tcl\n"
    "  --nullvalue TEXT      what stands for NULL\n"
    "  --separator SEP       between columns\n"
    "  --newline SEP         after rows\n"
    "  --echo                print statements before they run\n"
    "  --stats               numbers of the engine after each statement\n"
    "  --version, --help\n";

typedef struct Setup {
    const char *file, *server, *init;
    const char *sql[COMMANDS_MAX];
    u32 sqls;
    const char *command[COMMANDS_MAX];
    u32 commands;
    bool batch, interactive, read_only, done;
} Setup;

static int
complain(const char *text, const char *detail)
{
    Err err = rt_std_print(RT_STDERR, "weft: Error: %s: %s\n", text, detail);
    (void)err;
    return 1;
}

/* Options without a value; false: unknown. */
static bool
flag_take(Shell *shell, Setup *setup, const char *name)
{
    if (strcmp(name, "bail") == 0)
        shell->bail = true;
    else if (strcmp(name, "batch") == 0)
        setup->batch = true;
    else if (strcmp(name, "interactive") == 0)
        setup->interactive = true;
    else if (strcmp(name, "readonly") == 0)
        setup->read_only = true;
    else if (strcmp(name, "echo") == 0)
        shell->echo = true;
    else if (strcmp(name, "stats") == 0)
        shell->stats = true;
    else if (strcmp(name, "header") == 0 || strcmp(name, "noheader") == 0) {
        shell->headers = name[0] == 'h';
        shell->headers_set = true;
    } else
        return strlen(name) >= 3 && strcmp(name, "insert") != 0 && mode_set(shell, name);
    return true;
}

static bool
value_take(Shell *shell, Setup *setup, const char *name, const char *value)
{
    if (strcmp(name, "connect") == 0)
        setup->server = value;
    else if (strcmp(name, "nullvalue") == 0)
        snprintf(shell->null_text, sizeof(shell->null_text), "%s", value);
    else if (strcmp(name, "separator") == 0)
        snprintf(shell->separator, sizeof(shell->separator), "%s", value);
    else if (strcmp(name, "newline") == 0)
        snprintf(shell->row_separator, sizeof(shell->row_separator), "%s", value);
    else if (strcmp(name, "init") == 0)
        setup->init = value;
    else if (strcmp(name, "cmd") == 0 && setup->commands < COMMANDS_MAX)
        setup->command[setup->commands++] = value;
    else
        return false;
    return true;
}

static bool
needs_value(const char *name)
{
    return strcmp(name, "connect") == 0 || strcmp(name, "nullvalue") == 0 ||
           strcmp(name, "separator") == 0 || strcmp(name, "cmd") == 0 ||
           strcmp(name, "newline") == 0 || strcmp(name, "init") == 0;
}

static int
arguments_take(Shell *shell, Setup *setup, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (argument[0] != '-' || argument[1] == 0) {
            if (setup->file == NULL && setup->server == NULL)
                setup->file = argument;
            else if (setup->sqls < COMMANDS_MAX)
                setup->sql[setup->sqls++] = argument;
            else
                return complain("too many arguments", argument);
            continue;
        }
        const char *name = argument + (argument[1] == '-' ? 2 : 1);
        if (strcmp(name, "help") == 0 || strcmp(name, "version") == 0) {
            setup->done = true;
            out_text(shell, name[0] == 'h' ? usage_text : weft_version());
            if (name[0] == 'v') out_text(shell, "\n");
            return 0;
        }
        if (needs_value(name)) {
            if (i + 1 == argc || !value_take(shell, setup, name, argv[i + 1]))
                return complain("missing argument to option", argument);
            i++;
        } else if (!flag_take(shell, setup, name)) {
            return complain("unknown option", argument);
        }
    }
    return 0;
}

bool
shell_open(Shell *shell, const char *path, bool remote, bool read_only)
{
    LinkError error = {.offset = -1};
    Link *old = shell->link; /* The signal handler must never see a link that is being freed. */
    shell->link = NULL;
    link_close(old);
    mem_free(shell->path);
    shell->path = path != NULL ? mem_strdup(path) : NULL;
    shell->read_only = read_only;
    shell->link = remote ? link_open_server(path, rt_env("WEFT_TOKEN"), &error)
                         : link_open_file(path, read_only, &error);
    if (shell->link == NULL)
        shell_complain(
            shell, "Error: unable to open database \"%s\": %s",
            path != NULL ? path : ":memory:", error.text != NULL ? error.text : "out of memory");
    link_error_clear(&error);
    return shell->link != NULL;
}

/* In signal context. */
static void
on_interrupt(void *arg, RtSignal signal)
{
    Shell *shell = arg;
    (void)signal;
    rt_store(&shell->interrupted, 1u);
    if (shell->link != NULL) link_interrupt(shell->link);
}

static void
text_run(Shell *shell, const char *text)
{
    if (text[0] == '.')
        shell_command(shell, SLICE(text, strlen(text)));
    else
        shell_sql(shell, SLICE(text, strlen(text)), 0);
}

static void
input_run(Shell *shell, const Setup *setup)
{
    RtLines lines = {0};
    if (setup->init != NULL) {
        char *argument[] = {(char *)(uintptr_t)setup->init};
        command_read(shell, 1, argument);
    }
    for (u32 i = 0; i < setup->commands && !shell->quit; i++)
        text_run(shell, setup->command[i]);
    if (shell->quit || (shell->bail && shell->errors > 0)) return;
    for (u32 i = 0; i < setup->sqls && !shell->quit; i++) {
        text_run(shell, setup->sql[i]);
        if (shell->bail && shell->errors > 0) return;
    }
    if (setup->sqls > 0) {
        return;
    } else if (shell->interactive) {
        rt_signal_on(RT_SIGINT, on_interrupt, shell);
        shell_interactive(shell);
        rt_signal_on(RT_SIGINT, NULL, NULL);
        shell->errors = 0; /* The user has seen them. */
    } else {
        shell_input(shell, &lines);
        rt_lines_free(&lines);
    }
}

static void
shell_free(Shell *shell)
{
    char clear[] = "clear";
    char *argument[] = {clear};
    Link *link = shell->link;
    shell->link = NULL;
    link_close(link);
    shell_connections_close(shell);
    shell_log_close(shell);
    command_param(shell, 1, argument);
    shell_output_reset(shell);
    mem_free(shell->path);
    buf_free(&shell->out);
}

int
main(int argc, char **argv)
{
    Setup setup = {0};
    Shell shell = {0};
    rt_program_init();
    /* A file of that name is still opened by "./import". */
    if (argc > 1 && strcmp(argv[1], "import") == 0) return tools_import(argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], "export") == 0) return tools_export(argc - 2, argv + 2);
    if (argc > 1 && strcmp(argv[1], "dump-page") == 0) return tools_dump_page(argc - 2, argv + 2);
    (void)mode_set(&shell, "list");
    int status = arguments_take(&shell, &setup, argc, argv);
    if (status == 0 && !setup.done) {
        bool terminal = rt_std_is_tty(RT_STDIN) && rt_std_is_tty(RT_STDOUT);
        shell.interactive = setup.sqls == 0 && !setup.batch && (setup.interactive || terminal);
        const char *where = setup.server != NULL ? setup.server : setup.file;
        if (!shell_open(&shell, where, setup.server != NULL, setup.read_only))
            status = 1;
        else
            input_run(&shell, &setup);
        if (status == 0) status = shell.status != 0 ? shell.status : shell.errors > 0;
    }
    shell_free(&shell);
    return status;
}
