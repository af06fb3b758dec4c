/*
 * main.c -- weftd: serve one database file to clients of the Quack protocol.
 */
#include <stdio.h>
#include <string.h>

#include "rt/console.h"
#include "rt/file.h"
#include "rt/host.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "rt/time.h"
#include "server/server.h"
#include "weft.h"

#define TOKEN_BYTES_MAX 4096
#define DEFAULT_ADDRESS "127.0.0.1:7432"

static const char usage_text[] =
    "usage: weftd [options] DATABASE\n"
    "\n"
    "Serves a Weft database file; docs/quack.md describes the protocol.\n"
    "\n"
    "  --create                  make the file if it is missing\n"
    "  --listen ADDRESS:PORT     default " DEFAULT_ADDRESS
    "; port 0 picks a free one; may be repeated\n"
    "  --unix PATH               listen on a Unix socket; may be repeated\n"
    "  --token-file FILE         ask clients for the token in FILE (or set WEFT_TOKEN); needed "
    "for\n"
    "                            addresses that other machines can reach\n"
    "  --sync full|normal|off    when a commit is acknowledged; default full\n"
    "  --pool-size BYTES         memory for pages; K, M and G are understood\n"
    "  --max-connections N       default 2000\n"
    "  --max-line BYTES          longest request; default 16M\n"
    "  --max-response BYTES      rows of a writing statement held back; default 64M\n"
    "  --statement-timeout S     end statements that run longer; default 0: never\n"
    "  --idle-timeout S          end connections without requests; default 3600\n"
    "  --transaction-timeout S   the same inside a transaction; default 300\n"
    "  --busy-timeout S          longest wait for a row; default 5\n"
    "  --threads                 a thread for each connection instead of fibers on loops\n"
    "  --drain-timeout S         how long running requests may go on at the end; default 10\n"
    "  --verbose                 log more\n"
    "  --version, --help\n"
    "\n"
    "SIGTERM or SIGINT: running requests may finish, then a checkpoint and status 0.\n";

typedef struct Setup {
    ServerOptions options;
    const char *token_file;
    char token[TOKEN_BYTES_MAX + 1];
    char unix_address[SERVER_LISTENERS_MAX][256];
    u64 drain_ns;
    bool threads, verbose, done;
} Setup;

static int
complain(const char *text, const char *detail)
{
    Err err = rt_std_print(RT_STDERR, "weftd: %s%s%s\n", text, detail != NULL ? ": " : "",
                           detail != NULL ? detail : "");
    (void)err;
    return 2;
}

static void
log_to_stderr(void *arg, LogLevel level, const char *text)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    (void)arg;
    Err err = rt_std_print(RT_STDERR, "weftd: %s: %s\n", names[level], text);
    (void)err;
}

/* Digits with an optional K, M or G. */
static bool
parse_size(const char *text, u64 *size_out)
{
    u64 value = 0;
    if (*text == 0) return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (value > U64_MAX / 10 - 1) return false;
        value = value * 10 + (u64)(*text - '0');
    }
    u32 shift = *text == 'K' ? 10 : *text == 'M' ? 20 : *text == 'G' ? 30 : 0;
    if (shift > 0) text++;
    if (*text != 0 || value > (U64_MAX >> 1) >> shift) return false;
    *size_out = value << shift;
    return true;
}

static bool
parse_seconds(const char *text, u64 *ns_out)
{
    u64 seconds = 0;
    if (!parse_size(text, &seconds) || seconds > U64_MAX / RT_NS_PER_S) return false;
    *ns_out = seconds * RT_NS_PER_S;
    return true;
}

static bool
listen_add(ServerOptions *options, const char *address)
{
    if (options->listen_count == SERVER_LISTENERS_MAX) return false;
    options->listen[options->listen_count++] = address;
    return true;
}

static bool
parse_sync(const char *text, i32 *sync_out)
{
    if (strcmp(text, "full") == 0)
        *sync_out = WEFT_SYNC_FULL;
    else if (strcmp(text, "normal") == 0)
        *sync_out = WEFT_SYNC_NORMAL;
    else if (strcmp(text, "off") == 0)
        *sync_out = WEFT_SYNC_OFF;
    else
        return false;
    return true;
}

static bool
parse_value(Setup *setup, const char *name, const char *value, bool *known_out)
{
    ServerOptions *options = &setup->options;
    u64 number = 0;
    *known_out = true;
    if (strcmp(name, "listen") == 0) return listen_add(options, value);
    if (strcmp(name, "unix") == 0) {
        char *address = setup->unix_address[options->listen_count % SERVER_LISTENERS_MAX];
        size_t room = sizeof(setup->unix_address[0]);
        return (size_t)snprintf(address, room, "unix:%s", value) < room &&
               listen_add(options, address);
    }
    if (strcmp(name, "token-file") == 0) {
        setup->token_file = value;
        return true;
    }
    if (strcmp(name, "sync") == 0) return parse_sync(value, &options->sync);
    if (strcmp(name, "pool-size") == 0) return parse_size(value, &options->pool_bytes);
    if (strcmp(name, "max-line") == 0) return parse_size(value, &options->line_bytes_max);
    if (strcmp(name, "max-response") == 0) return parse_size(value, &options->response_bytes_max);
    if (strcmp(name, "max-connections") == 0) {
        bool good = parse_size(value, &number) && number > 0 && number <= 1000000;
        options->connections_max = (u32)number;
        return good;
    }
    if (strcmp(name, "statement-timeout") == 0)
        return parse_seconds(value, &options->statement_timeout_ns);
    if (strcmp(name, "idle-timeout") == 0) return parse_seconds(value, &options->idle_timeout_ns);
    if (strcmp(name, "transaction-timeout") == 0)
        return parse_seconds(value, &options->transaction_timeout_ns);
    if (strcmp(name, "busy-timeout") == 0) return parse_seconds(value, &options->busy_timeout_ns);
    if (strcmp(name, "drain-timeout") == 0) return parse_seconds(value, &setup->drain_ns);
    *known_out = false;
    return false;
}

/* 0: go on; else the status to end with, or setup->done. */
static int
parse_arguments(Setup *setup, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (strncmp(argument, "--", 2) != 0) {
            if (setup->options.path != NULL) return complain("more than one database", argument);
            setup->options.path = argument;
        } else if (strcmp(argument, "--create") == 0) {
            setup->options.create = true;
        } else if (strcmp(argument, "--threads") == 0) {
            setup->threads = true;
        } else if (strcmp(argument, "--verbose") == 0) {
            setup->verbose = true;
        } else if (strcmp(argument, "--version") == 0 || strcmp(argument, "--help") == 0) {
            setup->done = true;
            Err err = argument[2] == 'v' ? rt_std_print(RT_STDOUT, "weftd %s\n", weft_version())
                                         : rt_std_print(RT_STDOUT, "%s", usage_text);
            return err == OK ? 0 : 1;
        } else {
            char name[40];
            const char *equal = strchr(argument, '=');
            size_t bytes = equal != NULL ? (size_t)(equal - argument) - 2 : strlen(argument) - 2;
            const char *value = equal != NULL ? equal + 1 : i + 1 < argc ? argv[++i] : NULL;
            bool known = false;
            if (bytes >= sizeof(name)) return complain("unknown option", argument);
            memcpy(name, argument + 2, bytes);
            name[bytes] = 0;
            bool good = parse_value(setup, name, value != NULL ? value : "", &known);
            if (!known) return complain("unknown option", argument);
            if (!good || value == NULL) return complain("bad value of option", argument);
        }
    }
    if (setup->options.path == NULL) return complain("which database? (weftd --help)", NULL);
    return 0;
}

/* The token from its file or from the environment. */
static int
token_read(Setup *setup)
{
    const char *text = rt_env("WEFT_TOKEN");
    size_t bytes = 0;
    ErrMsg msg = {0};
    if (setup->token_file != NULL) {
        RtFile *file = NULL;
        Err err = rt_file_open(NULL, setup->token_file, RT_FILE_READ, &file, &msg);
        if (err == OK) err = rt_file_read(file, 0, setup->token, TOKEN_BYTES_MAX, &bytes, &msg);
        rt_file_close(file);
        if (err != OK) {
            int status = complain("token file", err_message(&msg));
            err_clear(&msg);
            return status;
        }
        while (bytes > 0 && (setup->token[bytes - 1] == '\n' || setup->token[bytes - 1] == '\r'))
            bytes--;
        setup->token[bytes] = 0;
        text = setup->token;
    }
    if (text != NULL && *text == 0) return complain("the token is empty", NULL);
    setup->options.token = text;
    return 0;
}

static int
serve(const Setup *setup)
{
    ErrMsg msg = {0};
    Server *server = NULL;
    u32 signals = 1u << RT_SIGTERM | 1u << RT_SIGINT;
    Err err = setup->threads ? OK : rt_loops_start(NULL, &msg);
    if (err == OK) err = server_start(rt_process_default(), &setup->options, &server, &msg);
    if (err != OK) {
        complain(setup->options.path, err_message(&msg));
        err_clear(&msg);
        return 1;
    }
    for (u32 i = 0; i < setup->options.listen_count; i++)
        err = rt_std_print(RT_STDOUT, "listening on %s\n", server_address(server, i));
    rt_notify("READY=1");

    RtSignal signal = RT_SIGTERM;
    err = rt_signal_wait(signals, RT_FOREVER, &signal);
    log_line(LOG_INFO, "stopping");
    rt_notify("STOPPING=1");
    err = server_stop(server, setup->drain_ns, &msg);
    if (err != OK) complain("stopping", err_message(&msg));
    err_clear(&msg);
    server_free(server);
    if (!setup->threads) rt_loops_stop(0);
    rt_process_close(rt_process_default());
    return err == OK ? 0 : 1;
}

int
main(int argc, char **argv)
{
    static Setup setup; /* main's, not the library's. */
    rt_program_init();
    rt_signal_block(1u << RT_SIGTERM | 1u << RT_SIGINT);
    setup.drain_ns = 10 * RT_NS_PER_S;
    int status = parse_arguments(&setup, argc, argv);
    if (status != 0 || setup.done) return status;
    status = token_read(&setup);
    if (status != 0) return status;
    if (setup.options.listen_count == 0) (void)listen_add(&setup.options, DEFAULT_ADDRESS);
    log_set_sink(log_to_stderr, NULL, setup.verbose ? LOG_DEBUG : LOG_INFO);
    return serve(&setup);
}
