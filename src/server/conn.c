/*
 * conn.c -- the life of a connection: read lines, run them, send replies, wait, end.
 *
 * On a loop the connection has a fiber only while it has something to do: to wait it gives its
 * fiber and its empty buffers back and leaves its socket to the loop (conn_park); the next bytes
 * bring a new fiber, which goes on in conn__serve.  Without loops the same code runs on a thread of
 * its own and waits there.
 *
 * Replies gather in `out` while more whole requests are waiting in `in`, so pipelined requests
 * share system calls; before the connection waits for input, everything is sent.  A client that
 * does not read holds its own request back (conn__flush waits) and is dropped after a time limit.
 */
#include <stdio.h>
#include <string.h>

#include "rt/loop.h"
#include "rt/time.h"
#include "server/server__quack.h"

#define READ_BYTES ((size_t)16 << 10)
#define LINGER_NS  (1 * RT_NS_PER_S)

bool
conn__flush(Conn *conn)
{
    if (conn->broken) return false;
    if (conn->out.bytes == 0) return true;
    u64 deadline = rt_deadline_after(conn->server->options.write_timeout_ns);
    Err err = rt_socket_write(conn->socket, conn->out.p, conn->out.bytes, deadline, NULL);
    if (err != OK) {
        if (err == ERR_TIMEOUT)
            log_line(LOG_WARN, "connection %llu: client does not read, dropped",
                     (unsigned long long)conn->number);
        conn->broken = true;
        return false;
    }
    rt_fetch_add(&conn->server->bytes_out, conn->out.bytes);
    buf_clear(&conn->out);
    return true;
}

int
conn__open(Conn *conn)
{
    if (conn->db != NULL) return WEFT_OK;
    const ServerOptions *options = &conn->server->options;
    weft_options open = {.no_create = true,
                         .sync = options->sync,
                         .pool_bytes = options->pool_bytes,
                         .busy_timeout_ms = (i64)(options->busy_timeout_ns / RT_NS_PER_MS)};
    weft_db *db = NULL;
    int code = weft_open(conn->server->path, &open, &db);
    if (code != WEFT_OK) {
        log_line(LOG_ERROR, "connection %llu: cannot open a session: %s",
                 (unsigned long long)conn->number, db != NULL ? weft_errmsg(db) : "out of memory");
        (void)weft_close(db);
        return code;
    }
    rt_mutex_lock(&conn->lock);
    conn->db = db;
    rt_mutex_unlock(&conn->lock);
    return WEFT_OK;
}

bool
conn__interrupt(Conn *conn, ConnEnd why)
{
    rt_mutex_lock(&conn->lock);
    bool busy = conn->state == CONN_BUSY;
    if (busy) {
        if (conn->ended_by == END_NONE) conn->ended_by = (u8)why;
        rt_store(&conn->stop, 1u);
        if (conn->db != NULL) weft_interrupt(conn->db);
    }
    rt_mutex_unlock(&conn->lock);
    return busy;
}

static void
state_set(Conn *conn, ConnState state)
{
    rt_mutex_lock(&conn->lock);
    conn->state = (u8)state;
    conn->ended_by = END_NONE;
    conn->deadline_ns = 0;
    rt_store(&conn->stop, 0u);
    if (state == CONN_BUSY && conn->server->options.statement_timeout_ns > 0)
        conn->deadline_ns = rt_deadline_after(conn->server->options.statement_timeout_ns);
    rt_mutex_unlock(&conn->lock);
}

/* Cut the next line out of `in`, without its line end.  False: more bytes are needed. */
static bool
line_next(Conn *conn, Slice *line_out)
{
    u8 *from = conn->in.p + conn->in_at;
    size_t have = conn->in.bytes - conn->in_at;
    u8 *end = have > conn->in_seen ? memchr(from + conn->in_seen, '\n', have - conn->in_seen)
                                   : NULL;
    size_t bytes, used;
    if (end != NULL) {
        bytes = (size_t)(end - from);
        used = bytes + 1;
    } else if (conn->in_ended && have > 0) {
        bytes = used = have; /* The last line needs no line end. */
    } else {
        conn->in_seen = have;
        return false;
    }
    if (bytes > 0 && from[bytes - 1] == '\r') bytes--;
    *line_out = (Slice){from, bytes};
    conn->in_at += used;
    conn->in_seen = 0;
    return true;
}

static bool
is_blank(Slice line)
{
    for (size_t i = 0; i < line.bytes; i++)
        if (line.p[i] != ' ' && line.p[i] != '\t') return false;
    return true;
}

/* Move the rest of the input to the front; give empty buffers back. */
static void
buffers_tidy(Conn *conn, size_t keep_bytes)
{
    if (conn->in_at > 0) {
        conn->in.bytes -= conn->in_at;
        memmove(conn->in.p, conn->in.p + conn->in_at, conn->in.bytes);
        conn->in_at = 0;
    }
    if (conn->in.bytes == 0 && conn->in.capacity > keep_bytes) buf_free(&conn->in);
    if (conn->out.bytes == 0 && conn->out.capacity > keep_bytes) buf_free(&conn->out);
}

/* Make room and read some bytes; waits.  OK also at the end of input. */
static Err
input_read(Conn *conn, u64 deadline_ns)
{
    buffers_tidy(conn, CONN_KEEP_BYTES);
    Err err = buf_reserve(&conn->in, READ_BYTES);
    if (err != OK) return err;
    size_t got = 0;
    err = rt_socket_read(conn->socket, conn->in.p + conn->in.bytes,
                         conn->in.capacity - conn->in.bytes, deadline_ns, &got, NULL);
    if (err != OK) return err;
    conn->in.bytes += got;
    conn->in_ended = got == 0;
    rt_fetch_add(&conn->server->bytes_in, got);
    return OK;
}

/* Run the lines that are there. */
static void
lines_run(Conn *conn)
{
    Slice line;
    while (!conn->closing && !conn->broken && line_next(conn, &line)) {
        if (is_blank(line)) continue;
        state_set(conn, CONN_BUSY);
        rt_fetch_add(&conn->server->requests, 1);
        if (quack__line(conn, line) != OK) {
            conn->closing = true;
            log_line(LOG_ERROR, "connection %llu: out of memory, dropped",
                     (unsigned long long)conn->number);
        }
        state_set(conn, CONN_IDLE);
        if (conn->out.bytes >= CONN_FLUSH_BYTES && !conn__flush(conn)) return;
    }
    if (!conn->closing && conn->in.bytes - conn->in_at > conn->server->options.line_bytes_max) {
        char text[80];
        snprintf(text, sizeof(text), "a request line may have %llu bytes",
                 (unsigned long long)conn->server->options.line_bytes_max);
        if (quack__error(conn, WEFT_TOOBIG, "QUACK_LIMIT", text) != OK) conn->broken = true;
        conn->closing = true;
    }
}

static bool
in_transaction(const Conn *conn)
{
    return conn->db != NULL && !weft_autocommit(conn->db);
}

/* The limit passed without a request. */
static void
idle_end(Conn *conn)
{
    const char *text = in_transaction(conn)
                           ? "no request for too long inside a transaction: rolled back"
                           : "no request for too long";
    if (quack__error(conn, WEFT_ABORT, "QUACK_IDLE", text) == OK) (void)!conn__flush(conn);
}

static void conn_wake(void *arg);

typedef enum Turn { TURN_AGAIN, TURN_PARKED, TURN_END } Turn;

/* Run what there is, then get more input: read it if it is there, else park or wait. */
static Turn
conn_turn(Conn *conn)
{
    const ServerOptions *options = &conn->server->options;
    bool on_loop = rt_loop_current() != RT_LOOP_ANY;
    lines_run(conn);
    if (!conn__flush(conn) || conn->closing || conn->in_ended) return TURN_END;

    u64 timeout_ns = in_transaction(conn) ? options->transaction_timeout_ns
                                          : options->idle_timeout_ns;
    u64 deadline = rt_deadline_after(timeout_ns);
    Err err = input_read(conn, on_loop ? 0 : deadline);
    if (err == OK) return TURN_AGAIN;
    if (err == ERR_TIMEOUT && on_loop) {
        buffers_tidy(conn, 0);
        conn->idle_deadline_ns = deadline;
        /* After this the connection may already be running elsewhere. */
        err = rt_socket_when_readable(conn->socket, deadline, conn_wake, conn);
        return err == OK ? TURN_PARKED : TURN_END;
    }
    if (err == ERR_TIMEOUT) idle_end(conn);
    return TURN_END;
}

/* The peer may still be sending: read on for a while so that our last words are not destroyed by
   the reset that unread bytes cause. */
static void
conn_linger(Conn *conn)
{
    u8 waste[4096];
    size_t got = 1;
    u64 deadline = rt_deadline_after(LINGER_NS);
    rt_socket_shutdown_write(conn->socket);
    while (got > 0 &&
           rt_socket_read(conn->socket, waste, sizeof(waste), deadline, &got, NULL) == OK) {
    }
}

/* The last things; the transaction goes first, so that nobody waits for it while we take leave. */
static void
conn_end(Conn *conn)
{
    quack__free(conn->quack);
    conn->quack = NULL;
    rt_mutex_lock(&conn->lock);
    weft_db *db = conn->db;
    conn->db = NULL;
    conn->state = CONN_DONE;
    rt_mutex_unlock(&conn->lock);
    (void)weft_close(db);
    if (!conn->broken && !conn->in_ended) conn_linger(conn);
    buf_free(&conn->in);
    buf_free(&conn->out);
    server__conn_ended(conn);
}

static void
conn_go_on(Conn *conn)
{
    Turn turn;
    do {
        turn = conn_turn(conn);
    } while (turn == TURN_AGAIN);
    if (turn == TURN_END) conn_end(conn);
}

/* A parked connection has input, lost its peer, was shut down, or its time is over. */
static void
conn_wake(void *arg)
{
    Conn *conn = arg;
    Err err = input_read(conn, 0);
    if (err == OK) {
        conn_go_on(conn);
        return;
    }
    if (err == ERR_TIMEOUT && rt_now_ns() < conn->idle_deadline_ns) {
        conn_go_on(conn); /* Woken for nothing. */
        return;
    }
    if (err == ERR_TIMEOUT) idle_end(conn);
    conn_end(conn);
}

void
conn__serve(void *arg)
{
    Conn *conn = arg;
    if (quack__banner(conn) == OK)
        conn_go_on(conn);
    else
        conn_end(conn);
}
