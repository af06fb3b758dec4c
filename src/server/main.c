/*
 * main.c -- weftd: start a server, wait for signals, stop it.
 */
#include <stdio.h>
#include <string.h>

#include "rt/console.h"
#include "rt/host.h"
#include "rt/loop.h"
#include "rt/task.h"
#include "rt/time.h"
#include "server/config.h"
#include "server/tls.h"
#include "value/json.h"

#define SIGNALS (1u << RT_SIGTERM | 1u << RT_SIGINT | 1u << RT_SIGHUP)

static const char *const level_names[] = {"error", "warn", "info", "debug"};

static void
log_text(void *arg, LogLevel level, const char *text)
{
    (void)arg;
    Err err = rt_std_print(RT_STDERR, "weftd: %s: %s\n", level_names[level], text);
    (void)err;
}

static void
log_json(void *arg, LogLevel level, const char *text)
{
    Buf line = {0};
    JsonWriter json;
    (void)arg;
    json_writer_init(&json, &line);
    json_begin_object(&json);
    json_key(&json, "time_ms");
    json_write_int(&json, rt_wall_ns() / (i64)RT_NS_PER_MS);
    json_key(&json, "level");
    json_write_string(&json, level_names[level]);
    json_key(&json, "text");
    json_write_string(&json, text);
    json_end_object(&json);
    if (json_writer_done(&json) == OK && buf_append_byte(&line, '\n') == OK) {
        Err err = rt_std_write(RT_STDERR, line.p, line.bytes);
        (void)err;
    }
    buf_free(&line);
}

/* Until a signal says to stop. */
static void
wait_for_end(Server *server)
{
    for (;;) {
        RtSignal signal = RT_SIGTERM;
        ErrMsg msg = {0};
        if (rt_signal_wait(SIGNALS, RT_FOREVER, &signal) != OK || signal != RT_SIGHUP) return;
        rt_notify("RELOADING=1");
        if (server_reload(server, &msg) == OK)
            log_line(LOG_INFO, "certificates were read again");
        else
            log_line(LOG_ERROR, "the old certificate stays: %s", err_message(&msg));
        err_clear(&msg);
        rt_notify("READY=1");
    }
}

static int
serve(const Config *config)
{
    ErrMsg msg = {0};
    Server *server = NULL;
    const ServerOptions *options = &config->options;
    rt_notify("EXTEND_TIMEOUT_USEC=600000000\nSTATUS=recovery"); /* A long log takes a while. */
    Err err = config->threads ? OK : rt_loops_start(NULL, &msg);
    if (err == OK) err = server_start(rt_process_default(), options, &server, &msg);
    if (err != OK) {
        config_complain(options->path != NULL ? options->path : options->dir, err_message(&msg));
        err_clear(&msg);
        if (!config->threads) rt_loops_stop(0);
        return 1;
    }
    for (u32 i = 0; i < options->listen_count; i++)
        err = rt_std_print(RT_STDOUT, "listening on %s\n", server_address(server, i));
    rt_notify("READY=1\nSTATUS=serving");

    wait_for_end(server);
    log_line(LOG_INFO, "stopping");
    rt_notify("STOPPING=1\nEXTEND_TIMEOUT_USEC=600000000");
    err = server_stop(server, config->drain_ns, &msg);
    if (err != OK) config_complain("stopping", err_message(&msg));
    err_clear(&msg);
    server_free(server);
    if (!config->threads) rt_loops_stop(0);
    rt_process_close(rt_process_default());
    return err == OK ? 0 : 1;
}

int
main(int argc, char **argv)
{
    Config config = {0};
    rt_program_init();
    rt_signal_block(SIGNALS);
    bool is_counted = tls__count_memory();
    ASSERT(is_counted);
    int status = config_read(&config, argc, argv);
    if (status == 0 && !config.done) {
        log_set_sink(config.log_json ? log_json : log_text, NULL,
                     config.verbose ? LOG_DEBUG : LOG_INFO);
        status = serve(&config);
    }
    config_free(&config);
    return status;
}
