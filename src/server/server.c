/*
 * server.c -- listeners, the list of connections, the housekeeper, draining.
 *
 * One acceptor a listener; a task for each connection that is not idle (on loops a fiber, else a
 * thread). The housekeeper joins ended tasks and looks ten
 * times a second at requests that run: it ends those over their time limit and those whose client
 * was reset.  While nothing runs it sleeps.
 */
#include <stdio.h>
#include <string.h>

#include "rt/loop.h"
#include "rt/random.h"
#include "rt/time.h"
#include "server/server__quack.h"

#define TICK_NS         (100 * RT_NS_PER_MS) /* While a request runs... */
#define IDLE_TICK_NS    (500 * RT_NS_PER_MS) /* ...and to notice that one has begun. */
#define ACCEPT_PAUSE_NS (100 * RT_NS_PER_MS)
#define REFUSE_WRITE_NS (100 * RT_NS_PER_MS)

static void
default_u64(u64 *field, u64 value)
{
    if (*field == 0) *field = value;
}

static void
options_complete(ServerOptions *options)
{
    if (options->connections_max == 0) options->connections_max = 2000;
    if (options->handles_max == 0) options->handles_max = 256;
    default_u64(&options->line_bytes_max, (u64)16 << 20);
    default_u64(&options->response_bytes_max, (u64)64 << 20);
    default_u64(&options->idle_timeout_ns, 3600 * RT_NS_PER_S);
    default_u64(&options->transaction_timeout_ns, 300 * RT_NS_PER_S);
    default_u64(&options->write_timeout_ns, 30 * RT_NS_PER_S);
    default_u64(&options->busy_timeout_ns, 5 * RT_NS_PER_S);
}

bool
server__same_secret(Slice a, Slice b)
{
    u8 different = a.bytes != b.bytes;
    for (size_t i = 0; i < a.bytes && b.bytes > 0; i++)
        different = (u8)(different | (a.p[i] ^ b.p[i % b.bytes]));
    return different == 0;
}

static bool
starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Of a bound address, which is numeric. */
static bool
is_loopback(const char *address)
{
    return starts_with(address, "127.") || starts_with(address, "[::1]:") ||
           starts_with(address, "unix:");
}

/* ---- connections ---- */

static void
conn_unlink(Server *server, Conn *conn)
{
    if (conn->prev != NULL)
        conn->prev->next = conn->next;
    else
        server->conns = conn->next;
    if (conn->next != NULL) conn->next->prev = conn->prev;
    conn->next = conn->prev = NULL;
    server->conn_count--;
}

static void
conn_free(Conn *conn)
{
    rt_socket_close(conn->socket);
    mem_free(conn);
}

void
server__conn_ended(Conn *conn)
{
    Server *server = conn->server;
    rt_mutex_lock(&server->lock);
    conn_unlink(server, conn);
    bool threaded = conn->thread != NULL;
    if (threaded) {
        conn->next = server->dead;
        server->dead = conn;
    }
    rt_cond_broadcast(&server->changed, &server->lock);
    rt_mutex_unlock(&server->lock);
    if (!threaded) conn_free(conn);
}

/* Join and free connections that ended.  With the lock held; released in between. */
static void
dead_bury(Server *server)
{
    while (server->dead != NULL) {
        Conn *conn = server->dead;
        server->dead = conn->next;
        rt_mutex_unlock(&server->lock);
        rt_thread_join(conn->thread);
        conn_free(conn);
        rt_mutex_lock(&server->lock);
    }
}

/* Say why and close; never waits long. */
static void
conn_refuse(Server *server, RtSocket *socket, const char *text)
{
    char line[200];
    int bytes = snprintf(line, sizeof(line),
                         "{\"err\":{\"code\":%d,\"name\":\"QUACK_LIMIT\",\"message\":\"%s\"}}\n",
                         WEFT_BUSY, text);
    rt_fetch_add(&server->refused, 1);
    if (rt_socket_write(socket, line, (size_t)bytes, rt_deadline_after(REFUSE_WRITE_NS), NULL) ==
        OK)
        rt_socket_shutdown_write(socket);
    rt_socket_close(socket);
}

/* Take the socket into service; on failure it is refused. */
static void
conn_start(Server *server, RtSocket *socket)
{
    Conn *conn = MEM_NEW(Conn);
    if (conn == NULL) {
        conn_refuse(server, socket, "out of memory");
        return;
    }
    conn->server = server;
    conn->socket = socket;
    conn->trusted = server->token == NULL;
    rt_random_bytes(conn->key, sizeof(conn->key));

    rt_mutex_lock(&server->lock);
    const char *refusal = server->stopping ? "shutting down" : NULL;
    if (server->conn_count >= server->options.connections_max) refusal = "too many connections";
    if (refusal == NULL) {
        conn->number = ++server->next_number;
        Err err = rt_loop_count() > 0 ? rt_spawn(RT_LOOP_ANY, conn__serve, conn, "connection")
                                      : rt_thread_start(server->process, conn__serve, conn,
                                                        "connection", &conn->thread);
        if (err != OK) refusal = "no task for another connection";
    }
    if (refusal == NULL) { /* Its task cannot end before it gets the lock. */
        conn->next = server->conns;
        if (conn->next != NULL) conn->next->prev = conn;
        server->conns = conn;
        server->conn_count++;
        rt_fetch_add(&server->accepted, 1);
        rt_cond_broadcast(&server->changed, &server->lock);
    }
    rt_mutex_unlock(&server->lock);
    if (refusal != NULL) {
        conn_refuse(server, socket, refusal);
        mem_free(conn);
    }
}

static void
acceptor_task(void *arg)
{
    ServerListener *listener = arg;
    for (;;) {
        RtSocket *socket = NULL;
        ErrMsg msg = {0};
        Err err = rt_accept(listener->listener, RT_FOREVER, &socket, &msg);
        if (err == OK) {
            conn_start(listener->server, socket);
        } else if (err == ERR_CLOSED || err == ERR_INTERRUPT) {
            err_clear(&msg);
            return;
        } else {
            log_line(LOG_WARN, "accept: %s", err_message(&msg));
            err_clear(&msg);
            if (rt_sleep_ns(ACCEPT_PAUSE_NS) != OK) return;
        }
    }
}

bool
server__cancel(Server *server, u64 number, const u8 key[CONN_KEY_BYTES])
{
    bool found = false;
    rt_mutex_lock(&server->lock);
    for (Conn *conn = server->conns; conn != NULL; conn = conn->next) {
        if (conn->number != number) continue;
        found = server__same_secret(SLICE(conn->key, CONN_KEY_BYTES), SLICE(key, CONN_KEY_BYTES));
        if (found) (void)conn__interrupt(conn, END_CANCEL);
        break;
    }
    rt_mutex_unlock(&server->lock);
    return found;
}

/* ---- housekeeping ---- */

/* Look at one connection; true when a request runs on it. */
static bool
conn_inspect(Conn *conn, u64 now_ns)
{
    rt_mutex_lock(&conn->lock);
    bool busy = conn->state == CONN_BUSY;
    bool late = busy && conn->deadline_ns != 0 && now_ns >= conn->deadline_ns;
    rt_mutex_unlock(&conn->lock);
    if (late)
        (void)conn__interrupt(conn, END_TIMEOUT);
    else if (busy && rt_socket_peer(conn->socket) == RT_PEER_RESET)
        (void)conn__interrupt(conn, END_PEER);
    return busy;
}

static void
housekeeper_task(void *arg)
{
    Server *server = arg;
    rt_mutex_lock(&server->lock);
    while (!server->stopping || server->conns != NULL || server->dead != NULL) {
        dead_bury(server);
        u64 now_ns = rt_now_ns();
        bool busy = false;
        for (Conn *conn = server->conns; conn != NULL; conn = conn->next)
            busy |= conn_inspect(conn, now_ns);
        u64 tick_ns = busy ? TICK_NS : IDLE_TICK_NS;
        u64 wake_ns = server->conns != NULL ? rt_deadline_after(tick_ns) : RT_FOREVER;
        if (server->stopping && server->conns == NULL && server->dead == NULL) break;
        Err err = rt_cond_wait_until(&server->changed, &server->lock, wake_ns);
        if (err != OK && err != ERR_BUSY) break;
    }
    rt_mutex_unlock(&server->lock);
}

/* ---- start and stop ---- */

static Err
listeners_open(Server *server, ErrMsg *msg)
{
    const ServerOptions *options = &server->options;
    for (u32 i = 0; i < options->listen_count; i++) {
        Err err = rt_listen(options->listen[i], 0600, &server->listener[i].listener, msg);
        if (err != OK) return err;
        server->listener[i].server = server;
        server->listener_count = i + 1;
        /* Nobody is accepted before this is known. */
        const char *address = rt_listener_address(server->listener[i].listener);
        if (server->token == NULL && !is_loopback(address))
            return err_set(
                msg, ERR_AUTH,
                "%s can be reached from other machines: a token is needed to listen there",
                address);
    }
    return OK;
}

static Err
database_open(Server *server, ErrMsg *msg)
{
    weft_options open = {.no_create = !server->options.create,
                         .sync = server->options.sync,
                         .pool_bytes = server->options.pool_bytes};
    int code = weft_open(server->path, &open, &server->db);
    if (code == WEFT_OK) return OK;
    if (server->db == NULL) return ERR_NOMEM;
    return err_set(msg, ERR_CANTOPEN, "%s", weft_errmsg(server->db));
}

static Err
tasks_start(Server *server)
{
    Err err = rt_thread_start(server->process, housekeeper_task, server, "housekeeper",
                              &server->housekeeper);
    for (u32 i = 0; err == OK && i < server->listener_count; i++) {
        err = rt_thread_start(server->process, acceptor_task, &server->listener[i], "acceptor",
                              &server->listener[i].acceptor);
    }
    return err;
}

Err
server_start(RtProcess *process, const ServerOptions *options, Server **server_out, ErrMsg *msg)
{
    ASSERT(options->path != NULL);
    ASSERT(options->listen_count <= SERVER_LISTENERS_MAX);
    *server_out = NULL;
    Server *server = MEM_NEW(Server);
    if (server == NULL) return err_set(msg, ERR_NOMEM, NULL);
    server->process = process;
    server->options = *options;
    options_complete(&server->options);
    server->path = mem_strdup(options->path);
    if (options->token != NULL) server->token = mem_strdup(options->token);
    server->options.path = server->path;
    server->options.token = server->token;

    Err err = server->path == NULL || (options->token != NULL && server->token == NULL)
                  ? err_set(msg, ERR_NOMEM, NULL)
                  : OK;
    if (err == OK) err = database_open(server, msg);
    if (err == OK) err = listeners_open(server, msg);
    if (err == OK) {
        err = tasks_start(server);
        if (err != OK) err_set(msg, err, "no task for the server: %s", err_text(err));
    }
    if (err != OK) {
        ErrMsg ignored = {0};
        if (server_stop(server, 0, &ignored) != OK) err_clear(&ignored);
        server_free(server);
        return err;
    }
    *server_out = server;
    return OK;
}

const char *
server_address(const Server *server, u32 index)
{
    ASSERT(index < server->listener_count);
    return rt_listener_address(server->listener[index].listener);
}

/* End every connection; those that run a request only if `running` too. */
static u32
conns_end(Server *server, bool running)
{
    u32 left = 0;
    rt_mutex_lock(&server->lock);
    for (Conn *conn = server->conns; conn != NULL; conn = conn->next) {
        left++;
        rt_mutex_lock(&conn->lock);
        bool idle = conn->state != CONN_BUSY;
        rt_mutex_unlock(&conn->lock);
        /* One that is just now getting busy notices the end of its socket afterwards. */
        if (idle)
            rt_socket_shutdown(conn->socket);
        else if (running)
            (void)conn__interrupt(conn, END_DRAIN);
    }
    rt_mutex_unlock(&server->lock);
    return left;
}

static void
conns_drain(Server *server, u64 drain_ns)
{
    u64 deadline = rt_deadline_after(drain_ns);
    while (conns_end(server, rt_now_ns() >= deadline) > 0)
        if (rt_sleep_ns(TICK_NS / 5) != OK) rt_task_clear_cancel(rt_self());
}

Err
server_stop(Server *server, u64 drain_ns, ErrMsg *msg)
{
    rt_mutex_lock(&server->lock);
    server->stopping = true;
    rt_cond_broadcast(&server->changed, &server->lock);
    rt_mutex_unlock(&server->lock);
    for (u32 i = 0; i < server->listener_count; i++)
        rt_listener_shutdown(server->listener[i].listener);
    for (u32 i = 0; i < server->listener_count; i++) {
        rt_thread_join(server->listener[i].acceptor);
        server->listener[i].acceptor = NULL;
    }
    conns_drain(server, drain_ns);
    rt_mutex_lock(&server->lock);
    rt_cond_broadcast(&server->changed, &server->lock);
    rt_mutex_unlock(&server->lock);
    rt_thread_join(server->housekeeper);
    server->housekeeper = NULL;

    Err err = OK;
    if (server->db != NULL) {
        if (weft_checkpoint(server->db) != WEFT_OK)
            err = err_set(msg, ERR_IO, "checkpoint: %s", weft_errmsg(server->db));
        (void)weft_close(server->db);
        server->db = NULL;
    }
    return err;
}

void
server_free(Server *server)
{
    if (server == NULL) return;
    ASSERT(server->db == NULL && server->conns == NULL);
    for (u32 i = 0; i < server->listener_count; i++)
        rt_listener_close(server->listener[i].listener);
    mem_free(server->path);
    mem_free(server->token);
    mem_free(server);
}

void
server_counters(Server *server, ServerCounters *counters_out)
{
    rt_mutex_lock(&server->lock);
    u64 now = server->conn_count;
    rt_mutex_unlock(&server->lock);
    *counters_out = (ServerCounters){
        .connections = rt_load_relaxed(&server->accepted),
        .connections_now = now,
        .refused = rt_load_relaxed(&server->refused),
        .requests = rt_load_relaxed(&server->requests),
        .errors = rt_load_relaxed(&server->errors),
        .rows = rt_load_relaxed(&server->rows),
        .bytes_in = rt_load_relaxed(&server->bytes_in),
        .bytes_out = rt_load_relaxed(&server->bytes_out),
    };
}
