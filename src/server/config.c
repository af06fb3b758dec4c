/*
 * config.c -- options by name.
 *
 * --NAME VALUE, --NAME=VALUE and, in a configuration file, "NAME = VALUE" mean the same; options
 * without a value are "NAME = true".  The command line comes after the file and wins.
 */
#include "server/config.h"

#include <stdio.h>
#include <string.h>

#include "rt/console.h"
#include "rt/file.h"
#include "rt/host.h"
#include "rt/time.h"
#include "session/session.h"

#define FILE_DEPTH 1

static const char usage_text[] =
    "usage: weftd [options] DATABASE | weftd [options] --dir DIRECTORY\n"
    "\n"
    "Serves Weft databases over one port: the line protocol Quack, and Hrana over HTTP and\n"
    "WebSocket (libSQL's clients).  man weftd tells more.\n"
    "\n"
    "  --dir DIRECTORY           serve every NAME from DIRECTORY/NAME.weft\n"
    "  --create                  make databases that are missing\n"
    "  --listen ADDRESS:PORT     default 127.0.0.1:7432; port 0 picks a free one; may be repeated\n"
    "  --unix PATH               listen on a Unix socket; may be repeated\n"
    "  --token-file FILE         ask clients for the token in FILE (or set WEFT_TOKEN); needed "
    "for\n"
    "                            addresses that other machines can reach\n"
    "  --jwt-key-file FILE       accept tokens signed with this Ed25519 key (public, PEM)\n"
    "  --insecure                serve other machines without a token\n"
    "  --no-greet                over TCP, no banner of Quack before the client has spoken\n"
    "  --allow-origin ORIGIN     web pages that may use the server; may be repeated\n"
    "  --tls-cert, --tls-key     certificate chain and key (PEM); read again on SIGHUP\n"
    "  --sync full|normal|off    when a commit is acknowledged; default full\n"
    "  --pool-size BYTES         memory for pages; K, M and G are understood\n"
    "  --max-connections N       default 10000\n"
    "  --max-streams N           Hrana streams open at once; default 4000\n"
    "  --max-line BYTES          longest Quack request; default 16M\n"
    "  --max-body BYTES          longest HTTP body or WebSocket message; default 64M\n"
    "  --max-response BYTES      rows held back for one answer; default 64M\n"
    "  --max-held BYTES          the same in all; default a quarter of the memory\n"
    "  --max-memory BYTES        for all statements; default 60 % of the memory\n"
    "  --max-database-memory, --max-session-memory, --max-statement-memory BYTES\n"
    "                            the same for those of one database, a session, one statement\n"
    "  --statement-timeout S     end statements that run longer; default 0: never\n"
    "  --idle-timeout S          end connections without requests; default 3600\n"
    "  --keep-alive S            the same for an HTTP connection; default 75\n"
    "  --transaction-timeout S   the same inside a transaction; default 300\n"
    "  --stale-timeout S         for an idle transaction that others wait for; default 5\n"
    "  --stream-timeout S        the same for a Hrana stream over HTTP; default 10\n"
    "  --request-timeout S       for a request to arrive; default 30\n"
    "  --write-timeout S         for a client to take its answer; default 30\n"
    "  --busy-timeout S          longest wait for a row; default 5\n"
    "  --database-timeout S      with --dir: close databases without clients; default 300\n"
    "  --slow-statement S log statements that take longer; default 0: none\n"
    "  --drain-timeout S         how long running requests may go on at the end; default 10\n"
    "  --threads                 a thread for each connection instead of fibers on loops\n"
    "  --log-format text|json    of the lines on standard error\n"
    "  --verbose                 log more\n"
    "  --config FILE             options from a file, one \"name = value\" a line\n"
    "  --version, --help\n"
    "\n"
    "SIGTERM or SIGINT: running requests may finish, then a checkpoint and status 0.\n";

int
config_complain(const char *text, const char *detail)
{
    Err err = rt_std_print(RT_STDERR, "weftd: %s%s%s\n", text, detail != NULL ? ": " : "",
                           detail != NULL ? detail : "");
    (void)err;
    return 2;
}

/* ---- values ---- */

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

/* Seconds, with up to three digits after a point. */
static bool
parse_seconds(const char *text, u64 *ns_out)
{
    u64 seconds = 0, part = 0, unit = RT_NS_PER_S;
    bool digits = false;
    for (; *text >= '0' && *text <= '9'; text++, digits = true) {
        if (seconds > U64_MAX / RT_NS_PER_S / 10) return false;
        seconds = seconds * 10 + (u64)(*text - '0');
    }
    if (*text == '.') {
        text++;
        for (; *text >= '0' && *text <= '9' && unit > RT_NS_PER_MS; text++) {
            unit /= 10;
            part += unit * (u64)(*text - '0');
        }
    }
    if (!digits || *text != 0 || seconds > U64_MAX / RT_NS_PER_S / 2) return false;
    *ns_out = seconds * RT_NS_PER_S + part;
    return true;
}

static bool
parse_count(const char *text, u32 *count_out)
{
    u64 number = 0;
    bool good = parse_size(text, &number) && number > 0 && number <= 1000000;
    *count_out = (u32)number;
    return good;
}

/* A copy that lives as long as the config; NULL: no memory, too many. */
static const char *
keep(Config *config, const char *text)
{
    if (config->string_count == COUNT_OF(config->string)) return NULL;
    char *copy = mem_strdup(text);
    if (copy != NULL) config->string[config->string_count++] = copy;
    return copy;
}

static bool
listen_add(Config *config, const char *prefix, const char *address)
{
    ServerOptions *options = &config->options;
    char text[300];
    if (options->listen_count == SERVER_LISTENERS_MAX) return false;
    if ((size_t)snprintf(text, sizeof(text), "%s%s", prefix, address) >= sizeof(text)) return false;
    options->listen[options->listen_count] = keep(config, text);
    return options->listen[options->listen_count++] != NULL;
}

static bool
parse_sync(const char *text, i32 *sync_out)
{
    static const struct {
        const char *name;
        i32 sync;
    } syncs[] = {{"full", STORE_SYNC_FULL}, {"normal", STORE_SYNC_NORMAL}, {"off", STORE_SYNC_OFF}};
    for (size_t i = 0; i < COUNT_OF(syncs); i++) {
        if (strcmp(text, syncs[i].name) != 0) continue;
        *sync_out = syncs[i].sync;
        return true;
    }
    return false;
}

/* ---- options ---- */

typedef enum Kind { SIZE, SECONDS, COUNT, TEXT, FLAG } Kind;

#define OPTION(name, kind, member)           \
    {                                        \
        name, kind, offsetof(Config, member) \
    }
static const struct {
    const char *name;
    Kind kind;
    size_t offset;
} plain[] = {
    OPTION("dir", TEXT, options.dir),
    OPTION("create", FLAG, options.create),
    OPTION("insecure", FLAG, options.insecure),
    OPTION("no-greet", FLAG, options.no_greet),
    OPTION("token-file", TEXT, token_file),
    OPTION("jwt-key-file", TEXT, jwt_key_file),
    OPTION("tls-cert", TEXT, options.tls_cert),
    OPTION("tls-key", TEXT, options.tls_key),
    OPTION("pool-size", SIZE, options.pool_bytes),
    OPTION("max-connections", COUNT, options.connections_max),
    OPTION("max-streams", COUNT, options.streams_max),
    OPTION("max-line", SIZE, options.line_bytes_max),
    OPTION("max-body", SIZE, options.body_bytes_max),
    OPTION("max-response", SIZE, options.response_bytes_max),
    OPTION("max-held", SIZE, options.held_bytes_max),
    OPTION("max-memory", SIZE, options.memory_bytes_max),
    OPTION("max-database-memory", SIZE, options.database_memory_bytes_max),
    OPTION("max-session-memory", SIZE, options.session_memory_bytes_max),
    OPTION("max-statement-memory", SIZE, options.statement_memory_bytes_max),
    OPTION("statement-timeout", SECONDS, options.statement_timeout_ns),
    OPTION("idle-timeout", SECONDS, options.idle_timeout_ns),
    OPTION("keep-alive", SECONDS, options.keep_alive_timeout_ns),
    OPTION("transaction-timeout", SECONDS, options.transaction_timeout_ns),
    OPTION("stale-timeout", SECONDS, options.stale_timeout_ns),
    OPTION("stream-timeout", SECONDS, options.stream_timeout_ns),
    OPTION("request-timeout", SECONDS, options.request_timeout_ns),
    OPTION("write-timeout", SECONDS, options.write_timeout_ns),
    OPTION("busy-timeout", SECONDS, options.busy_timeout_ns),
    OPTION("database-timeout", SECONDS, options.database_timeout_ns),
    OPTION("slow-statement", SECONDS, options.slow_ns),
    OPTION("drain-timeout", SECONDS, drain_ns),
    OPTION("threads", FLAG, threads),
    OPTION("verbose", FLAG, verbose),
};

static bool
set_plain(Config *config, size_t which, const char *value)
{
    void *member = (u8 *)config + plain[which].offset;
    switch (plain[which].kind) {
    case SIZE: return parse_size(value, member);
    case SECONDS: return parse_seconds(value, member);
    case COUNT: return parse_count(value, member);
    case TEXT: {
        const char **text = member;
        *text = keep(config, value);
        return *text != NULL && **text != 0;
    }
    case FLAG:
        *(bool *)member = strcmp(value, "true") == 0;
        return *(bool *)member || strcmp(value, "false") == 0;
    }
    return false;
}

/* Set an option by name. */
static bool
set(Config *config, const char *name, const char *value, bool *known_out)
{
    ServerOptions *options = &config->options;
    *known_out = true;
    if (strcmp(name, "listen") == 0) return listen_add(config, "", value);
    if (strcmp(name, "unix") == 0) return listen_add(config, "unix:", value);
    if (strcmp(name, "sync") == 0) return parse_sync(value, &options->sync);
    if (strcmp(name, "database") == 0) {
        options->path = options->path == NULL ? keep(config, value) : NULL;
        return options->path != NULL;
    }
    if (strcmp(name, "allow-origin") == 0) {
        if (options->origin_count == SERVER_ORIGINS_MAX) return false;
        options->origin[options->origin_count] = keep(config, value);
        return options->origin[options->origin_count++] != NULL;
    }
    if (strcmp(name, "log-format") == 0) {
        config->log_json = strcmp(value, "json") == 0;
        return config->log_json || strcmp(value, "text") == 0;
    }
    for (size_t i = 0; i < COUNT_OF(plain); i++)
        if (strcmp(name, plain[i].name) == 0) return set_plain(config, i, value);
    *known_out = false;
    return false;
}

static bool
is_flag(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(plain); i++)
        if (strcmp(name, plain[i].name) == 0) return plain[i].kind == FLAG;
    return false;
}

/* ---- files ---- */

/* The whole of a small file, NUL-terminated; NULL: complained about. */
static char *
file_text(const char *what, const char *path)
{
    RtFile *file = NULL;
    ErrMsg msg = {0};
    size_t bytes = 0;
    char *text = mem_alloc(CONFIG_TEXT_MAX + 1);
    Err err = text == NULL ? err_set(&msg, ERR_NOMEM, NULL)
                           : rt_file_open(NULL, path, RT_FILE_READ, &file, &msg);
    if (err == OK) err = rt_file_read(file, 0, text, CONFIG_TEXT_MAX, &bytes, &msg);
    rt_file_close(file);
    if (err != OK) {
        config_complain(what, err_message(&msg));
        err_clear(&msg);
        mem_free(text);
        return NULL;
    }
    while (bytes > 0 && (text[bytes - 1] == '\n' || text[bytes - 1] == '\r'))
        bytes--;
    text[bytes] = 0;
    return text;
}

static char *
trimmed(char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    size_t bytes = strlen(text);
    while (bytes > 0 &&
           (text[bytes - 1] == ' ' || text[bytes - 1] == '\t' || text[bytes - 1] == '\r'))
        text[--bytes] = 0;
    return text;
}

static int
line_set(Config *config, char *line)
{
    bool known = false;
    line = trimmed(line);
    if (*line == 0 || *line == '#') return 0;
    char *equal = strchr(line, '=');
    if (equal == NULL) return config_complain("not \"name = value\" in the configuration", line);
    *equal = 0;
    char *name = trimmed(line), *value = trimmed(equal + 1);
    bool good = set(config, name, value, &known);
    if (!known) return config_complain("unknown option in the configuration", name);
    return good ? 0 : config_complain("bad value in the configuration", name);
}

static int
config_file_read(Config *config, const char *path)
{
    int status = 0;
    char *text = file_text("configuration", path);
    if (text == NULL) return 2;
    for (char *line = text; status == 0 && line != NULL;) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = 0;
        status = line_set(config, line);
        line = end == NULL ? NULL : end + 1;
    }
    mem_free(text);
    return status;
}

/* ---- the command line ---- */

static int
help(Config *config, bool version)
{
    config->done = true;
    Err err = version ? rt_std_print(RT_STDOUT, "weftd %s\n", WEFT_VERSION)
                      : rt_std_print(RT_STDOUT, "%s", usage_text);
    return err == OK ? 0 : 1;
}

/* One "--option"; takes its value from the next argument if it has none of its own. */
static int
option_set(Config *config, int argc, char **argv, int *at)
{
    char name[40];
    const char *argument = argv[*at], *equal = strchr(argument, '=');
    size_t bytes = equal != NULL ? (size_t)(equal - argument) - 2 : strlen(argument) - 2;
    bool known = false;
    if (bytes >= sizeof(name)) return config_complain("unknown option", argument);
    memcpy(name, argument + 2, bytes);
    name[bytes] = 0;
    const char *value = equal != NULL    ? equal + 1
                        : is_flag(name)  ? "true"
                        : *at + 1 < argc ? argv[++*at]
                                         : NULL;
    if (strcmp(name, "config") == 0) return 0; /* Read before all others. */
    bool good = set(config, name, value != NULL ? value : "", &known);
    if (!known) return config_complain("unknown option", argument);
    return good && value != NULL ? 0 : config_complain("bad value of option", argument);
}

static int
arguments_read(Config *config, int argc, char **argv)
{
    int status = 0;
    bool known;
    for (int i = 1; status == 0 && i < argc && !config->done; i++) {
        if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "--help") == 0)
            status = help(config, argv[i][2] == 'v');
        else if (strncmp(argv[i], "--", 2) == 0)
            status = option_set(config, argc, argv, &i);
        else if (!set(config, "database", argv[i], &known))
            status = config_complain("more than one database", argv[i]);
    }
    return status;
}

/* --config FILE or --config=FILE, wherever it stands. */
static const char *
config_path(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--config=", 9) == 0) return argv[i] + 9;
        if (strcmp(argv[i], "--config") == 0) return i + 1 < argc ? argv[i + 1] : "";
    }
    return NULL;
}

static int
secrets_read(Config *config)
{
    config->options.token = rt_env("WEFT_TOKEN");
    if (config->token_file != NULL) {
        config->token = file_text("token file", config->token_file);
        if (config->token == NULL) return 2;
        config->options.token = config->token;
    }
    if (config->jwt_key_file != NULL) {
        config->jwt_key = file_text("JWT key file", config->jwt_key_file);
        if (config->jwt_key == NULL) return 2;
        config->options.jwt_key = config->jwt_key;
    }
    if (config->options.token != NULL && config->options.token[0] == 0)
        return config_complain("the token is empty", NULL);
    return 0;
}

int
config_read(Config *config, int argc, char **argv)
{
    const ServerOptions *options = &config->options;
    const char *path = config_path(argc, argv);
    config->drain_ns = 10 * RT_NS_PER_S;
    config->options.sync = STORE_SYNC_FULL;
    int status = path == NULL ? 0 : config_file_read(config, path);
    if (status == 0) status = arguments_read(config, argc, argv);
    if (status != 0 || config->done) return status;
    if (options->path == NULL && options->dir == NULL)
        return config_complain("which database? (weftd --help)", NULL);
    if (options->path != NULL && options->dir != NULL)
        return config_complain("either one database or --dir", NULL);
    if ((options->tls_cert == NULL) != (options->tls_key == NULL))
        return config_complain("--tls-cert and --tls-key go together", NULL);
    status = secrets_read(config);
    if (status == 0 && options->listen_count == 0)
        status = listen_add(config, "", "127.0.0.1:7432") ? 0 : 2;
    return status;
}

void
config_free(Config *config)
{
    for (u32 i = 0; i < config->string_count; i++)
        mem_free(config->string[i]);
    mem_free(config->token);
    mem_free(config->jwt_key);
    *config = (Config){0};
}
