/*
 * server.c -- listeners, the list of connections, the housekeeper, draining.
 *
 * One acceptor a listener; a task for each connection that is not idle (on loops a fiber, else a
 * thread).  The housekeeper joins ended tasks and looks ten times a second at seats whose requests
 * run -- it ends those over their time limit and those whose client has gone -- and at streams that
 * nobody came back for.  Without seats and streams it sleeps.
 */
#include "server/server__quack.h"

#include <stdio.h>
#include <string.h>

#include "rt/file.h"
#include "rt/host.h"
#include "rt/loop.h"
#include "rt/random.h"
#include "rt/time.h"
#include "server/auth.h"
#include "server/hrana/stream.h"
#include "server/show.h"
#include "server/tls.h"

#define TICK_NS         (100 * RT_NS_PER_MS) /* While a request runs... */
#define IDLE_TICK_NS    (500 * RT_NS_PER_MS) /* ...and to notice that one has begun. */
#define ACCEPT_PAUSE_NS (100 * RT_NS_PER_MS)
#define LAST_NS         (5 * RT_NS_PER_S) /* For answers after the interrupt. */
#define REFUSE_WRITE_NS (100 * RT_NS_PER_MS)

static void
default_u64(u64 *field, u64 value)
{
    if (*field == 0) *field = value;
}

static void
options_complete(ServerOptions *options)
{
    if (options->connections_max == 0) options->connections_max = 10000;
    if (options->streams_max == 0) options->streams_max = 4000;
    if (options->handles_max == 0) options->handles_max = 256;
    default_u64(&options->body_bytes_max, (u64)64 << 20);
    default_u64(&options->held_bytes_max, rt_memory_bytes() / 4);
    default_u64(&options->stream_timeout_ns, 10 * RT_NS_PER_S);
    default_u64(&options->request_timeout_ns, 30 * RT_NS_PER_S);
    default_u64(&options->line_bytes_max, (u64)16 << 20);
    default_u64(&options->response_bytes_max, (u64)64 << 20);
    default_u64(&options->idle_timeout_ns, 3600 * RT_NS_PER_S);
    default_u64(&options->transaction_timeout_ns, 300 * RT_NS_PER_S);
    default_u64(&options->keep_alive_timeout_ns, 75 * RT_NS_PER_S);
    default_u64(&options->stale_timeout_ns, 5 * RT_NS_PER_S);
    default_u64(&options->write_timeout_ns, 30 * RT_NS_PER_S);
    default_u64(&options->busy_timeout_ns, 5 * RT_NS_PER_S);
    default_u64(&options->database_timeout_ns, 300 * RT_NS_PER_S);
}

bool
server__hold(Server *server, u64 bytes)
{
    u64 before = rt_fetch_add(&server->held_bytes, bytes);
    if (before + bytes <= server->options.held_bytes_max &&
        mem_account_charge(rt_process_account(rt_process()), bytes) == OK)
        return true;
    rt_fetch_sub(&server->held_bytes, bytes);
    return false;
}

void
server__release(Server *server, u64 bytes)
{
    rt_fetch_sub(&server->held_bytes, bytes);
    mem_account_release(rt_process_account(rt_process()), bytes);
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
                         "{\"err\":{\"code\":%d,\"name\":\"QUACK_LIMIT\",\"message\":\"%s\"}}\n", 5,
                         text);
    server__count(server, COUNT_REFUSED, 1);
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
    conn->trusted = !auth__needed(server->auth);
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
        server__count(server, COUNT_CONNECTIONS, 1);
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
        found = auth__same_secret(SLICE(conn->key, CONN_KEY_BYTES), SLICE(key, CONN_KEY_BYTES));
        rt_mutex_lock(&conn->lock);
        if (found && conn->seat != NULL) (void)seat__interrupt(conn->seat, END_CANCEL);
        rt_mutex_unlock(&conn->lock);
        break;
    }
    rt_mutex_unlock(&server->lock);
    return found;
}

/* ---- housekeeping ---- */

/* Look at one seat; true when a request runs on it. */
static bool
seat_inspect(Seat *seat, u64 now_ns)
{
    SeatEnd why = END_NONE;
    rt_mutex_lock(&seat->lock);
    bool busy = seat->state == SEAT_BUSY;
    if (busy && seat->deadline_ns != 0 && now_ns >= seat->deadline_ns) why = END_TIMEOUT;
    if (busy && why == END_NONE && seat->socket != NULL) {
        RtPeer peer = rt_socket_peer(seat->socket);
        /* A Quack client may finish sending and still wait for answers (nc -N). */
        bool half = seat->protocol == protocol_quack.name;
        if (peer == RT_PEER_RESET || (peer == RT_PEER_FINISHED && !half)) why = END_PEER;
    }
    /* An open transaction that nobody goes on with. */
    if (!busy && seat->txn_since_ns != 0 && seat->home != NULL &&
        seat->protocol != protocol_quack.name && /* It waits for that itself. */
        now_ns > seat->since_ns + seat->server->options.transaction_timeout_ns)
        rt_socket_shutdown(seat->home);
    rt_mutex_unlock(&seat->lock);
    if (why == END_NONE) return busy;
    if (why == END_TIMEOUT) server__count(seat->server, COUNT_TIMEOUTS, 1);
    (void)seat__interrupt(seat, why);
    return busy;
}

/* Roll back transactions that others wait for and whose clients do not go on.  With the lock held;
   released in between: a seat that is held stays. */
static void
stale_take(Server *server, u64 now_ns)
{
    Seat *seat = server->seats;
    while (seat != NULL) {
        if (!seat__hold_if_stale(seat, now_ns, server->options.stale_timeout_ns)) {
            seat = seat->next;
            continue;
        }
        rt_mutex_unlock(&server->lock);
        log_line(LOG_WARN, "session %llu: its transaction was rolled back: idle, and waited for",
                 (unsigned long long)seat->number);
        server__count(server, COUNT_STALE, 1);
        seat__take_transaction(seat);
        rt_mutex_lock(&server->lock);
        seat = server->seats; /* The list may have changed. */
    }
}

static void
housekeeper_task(void *arg)
{
    Server *server = arg;
    rt_mutex_lock(&server->lock);
    while (!server->stopping || server->conns != NULL || server->dead != NULL) {
        u64 now_ns = rt_now_ns();
        rt_mutex_unlock(&server->lock);
        stream__expire(server, now_ns, false);
        db__close_idle(server, now_ns);
        rt_mutex_lock(&server->lock);
        stale_take(server, now_ns);
        /* From the last of these on the lock is held until the wait, so no change goes unseen. */
        dead_bury(server);
        bool busy = false;
        for (Seat *seat = server->seats; seat != NULL; seat = seat->next)
            busy |= seat_inspect(seat, now_ns);
        bool some = server->conns != NULL || server->seats != NULL ||
                    (server->options.dir != NULL && server->databases != NULL);
        u64 wake_ns = some ? rt_deadline_after(busy ? TICK_NS : IDLE_TICK_NS) : RT_FOREVER;
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
        if (!auth__needed(server->auth) && !options->insecure && !is_loopback(address))
            return err_set(
                msg, ERR_AUTH,
                "%s can be reached from other machines: a token is needed to listen there",
                address);
    }
    return OK;
}

/* The directory that holds `path`; mem_alloc'd. */
static char *
path_above(const char *path)
{
    size_t bytes = strlen(path);
    while (bytes > 1 && path[bytes - 1] == '/')
        bytes--;
    while (bytes > 0 && path[bytes - 1] != '/')
        bytes--;
    if (bytes == 0) return mem_strdup(".");
    while (bytes > 1 && path[bytes - 1] == '/')
        bytes--;
    return mem_strndup(path, bytes);
}

/*
 * The directory of the databases is there, and stays there: what it holds is only as durable as its
 * own entry.  Synced at each start, because one that made it may have been killed before.
 */
static Err
directory_make(const char *path, bool create, ErrMsg *msg)
{
    RtStat stat;
    RtDir *parent = NULL;
    Err err = rt_file_stat(NULL, path, &stat, msg);
    bool is_new = err == ERR_NOTFOUND && create;
    if (is_new) {
        err_clear(msg);
        err = rt_dir_create(path, msg);
    }
    if (err != OK || PLANT(212)) return err;
    char *above = path_above(path);
    if (above == NULL) return err_set(msg, ERR_NOMEM, NULL);
    err = rt_dir_open(above, &parent, msg);
    mem_free(above);
    if (err == OK) {
        err = rt_dir_sync(parent, msg);
        rt_dir_close(parent);
    } else if (!is_new && err != ERR_NOMEM) { /* Not ours to look at, nor made by us. */
        err_clear(msg);
        err = OK;
    }
    return err;
}

/* One database is opened at once, so that a wrong path is told; in a directory each when asked for.
 */
static Err
database_open(Server *server, ErrMsg *msg)
{
    Fault fault = {0};
    if (server->options.dir != NULL)
        return directory_make(server->options.dir, server->options.create, msg);
    ServedDb *db = db__find(server, SLICE_NONE, &fault);
    Err err = db == NULL ? ERR_CANTOPEN : db__open(db, &fault);
    if (err != OK) {
        Slice text = fault__text(&fault);
        err_set(msg, err, "%.*s", (int)text.bytes, (const char *)text.p);
    }
    fault__free(&fault);
    return err;
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

/* All that must be there before anybody is accepted. */
static Err
parts_open(Server *server, ErrMsg *msg)
{
    const ServerOptions *options = &server->options;
    Err err = auth__new(options, &server->auth, msg);
    if (err == OK && options->tls_cert != NULL)
        err = tls__context_new(options->tls_cert, options->tls_key, &server->tls, msg);
    if (err == OK && show__init(server) != OK) err = err_set(msg, ERR_NOMEM, NULL);
    if (err == OK && stream__init(server) != OK) err = err_set(msg, ERR_NOMEM, NULL);
    if (err == OK) err = database_open(server, msg);
    if (err == OK) err = listeners_open(server, msg);
    return err;
}

Err
server_start(RtProcess *process, const ServerOptions *options, Server **server_out, ErrMsg *msg)
{
    ASSERT((options->path == NULL) != (options->dir == NULL));
    ASSERT(options->listen_count <= SERVER_LISTENERS_MAX);
    *server_out = NULL;
    Server *server = MEM_NEW(Server);
    if (server == NULL) return err_set(msg, ERR_NOMEM, NULL);
    server->process = process;
    server->options = *options;
    server->started_ns = rt_now_ns();
    options_complete(&server->options);
    if (options->memory_bytes_max != 0)
        rt_process_account(process)->cap_bytes = options->memory_bytes_max;

    Err err = parts_open(server, msg);
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

Err
server_reload(Server *server, ErrMsg *msg)
{
    const ServerOptions *options = &server->options;
    TlsContext *context = NULL;
    if (options->tls_cert == NULL) return OK;
    Err err = tls__context_new(options->tls_cert, options->tls_key, &context, msg);
    if (err != OK) return err;
    rt_mutex_lock(&server->lock);
    TlsContext *former = server->tls;
    server->tls = context;
    rt_mutex_unlock(&server->lock);
    tls__context_free(former);
    return OK;
}

const char *
server_address(const Server *server, u32 index)
{
    ASSERT(index < server->listener_count);
    return rt_listener_address(server->listener[index].listener);
}

/* How far the drain has come. */
typedef enum Pressure { END_IDLE, INTERRUPT, END_ALL } Pressure;

/* End connections: the idle ones, then what runs, then all.  How many are left. */
static u32
conns_end(Server *server, Pressure pressure)
{
    u32 left = 0;
    rt_mutex_lock(&server->lock);
    for (Conn *conn = server->conns; conn != NULL; conn = conn->next) {
        left++;
        rt_mutex_lock(&conn->lock);
        bool busy = conn->busy > 0;
        rt_mutex_unlock(&conn->lock);
        /* One that is just now getting busy notices the end of its socket afterwards. */
        if (pressure == END_ALL)
            rt_socket_shutdown(conn->socket);
        else if (!busy)
            rt_socket_shutdown_read(conn->socket); /* It may take its leave. */
    }
    for (Seat *seat = server->seats; pressure >= INTERRUPT && seat != NULL; seat = seat->next)
        (void)seat__interrupt(seat, END_DRAIN);
    rt_mutex_unlock(&server->lock);
    return left;
}

static void
conns_drain(Server *server, u64 drain_ns)
{
    u64 deadline = rt_deadline_after(drain_ns), last = rt_deadline_after(drain_ns + LAST_NS);
    for (;;) {
        u64 now = rt_now_ns();
        Pressure pressure = now >= last ? END_ALL : now >= deadline ? INTERRUPT : END_IDLE;
        if (conns_end(server, pressure) == 0) return;
        if (rt_sleep_ns(TICK_NS / 5) != OK) rt_task_clear_cancel(rt_self());
    }
}

Err
server_stop(Server *server, u64 drain_ns, ErrMsg *msg)
{
    rt_mutex_lock(&server->lock);
    server->stopping = true;
    rt_store(&server->draining, 1u);
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

    stream__expire(server, RT_FOREVER, true);
    return db__close_all(server, msg);
}

void
server_free(Server *server)
{
    if (server == NULL) return;
    ASSERT(server->databases == NULL && server->conns == NULL);
    for (u32 i = 0; i < server->listener_count; i++)
        rt_listener_close(server->listener[i].listener);
    stream__free(server);
    show__free(server);
    tls__context_free(server->tls);
    auth__free(server->auth);
    mem_free(server);
}
