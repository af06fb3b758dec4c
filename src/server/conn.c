/*
 * conn.c -- the life of a connection: bring bytes, let the protocol use them, send replies, wait.
 *
 * On a loop the connection has a fiber only while it has something to do: to wait it gives its
 * fiber and its empty buffers back and leaves its socket to the loop (rt_socket_when_readable);
 * the next bytes bring a new fiber.  Without loops the same code runs on a thread of its own.
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
#include "server/tls.h"

#define READ_BYTES ((size_t)16 << 10)
#define LINGER_NS  (1 * RT_NS_PER_S)

/* ---- output ---- */

bool
conn__send(const Conn *conn, const void *bytes, size_t count)
{
    u64 deadline = rt_deadline_after(conn->server->options.write_timeout_ns);
    if (count == 0) return true;
    Err err = conn->tls != NULL ? tls__write(conn->tls, bytes, count, deadline)
                                : rt_socket_write(conn->socket, bytes, count, deadline, NULL);
    if (err == ERR_TIMEOUT)
        log_line(LOG_WARN, "connection %llu: client does not read, dropped",
                 (unsigned long long)conn->number);
    if (err == OK) server__count(conn->server, COUNT_BYTES_OUT, count);
    return err == OK;
}

static bool
send_bytes(Conn *conn, const void *bytes, size_t count)
{
    if (!conn->broken && !conn__send(conn, bytes, count)) conn->broken = true;
    return !conn->broken;
}

bool
conn__flush(Conn *conn)
{
    bool good = send_bytes(conn, conn->out.p, conn->out.bytes);
    if (PLANT(207) && conn->out.bytes > 500) return good;
    buf_clear(&conn->out);
    return good;
}

bool
conn__write(Conn *conn, const void *bytes, size_t count)
{
    return conn__flush(conn) && send_bytes(conn, bytes, count);
}

/* ---- input ---- */

Slice
conn__input(const Conn *conn)
{
    if (conn->in.p == NULL) return SLICE_LITERAL("");
    return SLICE(conn->in.p + conn->in_at, conn->in.bytes - conn->in_at);
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
    if (conn->in_held > conn->in.capacity) {
        server__release(conn->server, conn->in_held);
        conn->in_held = 0;
    }
    if (conn->out.bytes == 0 && conn->out.capacity > keep_bytes) buf_free(&conn->out);
}

/* Long requests count in the server's budget. */
static bool
input_hold(Conn *conn)
{
    size_t bytes = conn->in.bytes;
    if (bytes <= conn->in_held + CONN_KEEP_BYTES) return true;
    if (!server__hold(conn->server, bytes - conn->in_held)) return false;
    conn->in_held = bytes;
    return true;
}

/* Make room and read some bytes; waits.  OK also at the end of input.  ERR_TIMEOUT with `full` set:
   there is no memory for it. */
static Err
input_read(Conn *conn, u64 deadline_ns)
{
    buffers_tidy(conn, CONN_KEEP_BYTES);
    Err err = buf_reserve(&conn->in, READ_BYTES);
    if (err != OK) return err;
    size_t got = 0, room = conn->in.capacity - conn->in.bytes;
    u8 *to = conn->in.p + conn->in.bytes;
    err = conn->tls != NULL ? tls__read(conn->tls, to, room, deadline_ns, &got)
                            : rt_socket_read(conn->socket, to, room, deadline_ns, &got, NULL);
    if (err != OK) return err;
    conn->in.bytes += got;
    conn->in_ended = got == 0;
    conn->full = !input_hold(conn);
    if (conn->full) return ERR_TIMEOUT;
    server__count(conn->server, COUNT_BYTES_IN, got);
    return OK;
}

void
conn__busy(Conn *conn, i32 change)
{
    rt_mutex_lock(&conn->lock);
    conn->busy += (u32)change;
    rt_mutex_unlock(&conn->lock);
}

void
conn__switch(Conn *conn, const Protocol *protocol)
{
    conn->protocol = protocol;
    conn->in_seen = 0;
    conn->wait_since_ns = rt_now_ns();
}

static void conn_wake(void *arg);

typedef enum Turn { TURN_AGAIN, TURN_PARKED, TURN_END } Turn;

/* The wait was too long.  True: the protocol goes on. */
static bool
conn_late(Conn *conn)
{
    bool goes_on = conn->protocol->late(conn);
    return conn__flush(conn) && goes_on && !conn->closing;
}

/* Run what there is, then get more input: read it if it is there, else park or wait. */
static Turn
conn_turn(Conn *conn)
{
    const Protocol *protocol;
    bool on_loop = rt_loop_current() != RT_LOOP_ANY;
    do {
        protocol = conn->protocol;
        protocol->run(conn);
    } while (conn->protocol != protocol && !conn->closing && !conn->broken);
    if (!conn__flush(conn) || conn->closing || conn->in_ended) return TURN_END;
    if (rt_load_relaxed(&conn->server->draining) != 0 && conn->busy == 0) return TURN_END;

    u64 deadline = rt_deadline_after(protocol->wait_ns(conn));
    Err err = input_read(conn, on_loop ? 0 : deadline);
    if (err == OK) return TURN_AGAIN;
    if (err == ERR_TIMEOUT && on_loop && !conn->full) {
        buffers_tidy(conn, 0);
        conn->wait_deadline_ns = deadline;
        /* After this the connection may already be running elsewhere. */
        err = rt_socket_when_readable(conn->socket, deadline, conn_wake, conn);
        return err == OK ? TURN_PARKED : TURN_END;
    }
    if (err == ERR_TIMEOUT) return conn_late(conn) ? TURN_AGAIN : TURN_END;
    return TURN_END;
}

/* The peer may still be sending: read on for a while so that our last words are not destroyed by
   the reset that unread bytes cause. */
static void
conn_linger(Conn *conn)
{
    u8 waste[1024];
    size_t got = 1;
    u64 deadline = rt_deadline_after(LINGER_NS);
    rt_socket_shutdown_write(conn->socket);
    while (got > 0 &&
           rt_socket_read(conn->socket, waste, sizeof(waste), deadline, &got, NULL) == OK) {
    }
}

/* The last things; transactions go first, so that nobody waits for them while we take leave. */
static void
conn_end(Conn *conn)
{
    if (conn->protocol->end != NULL) conn->protocol->end(conn);
    server__release(conn->server, conn->in_held);
    buf_free(&conn->in);
    buf_free(&conn->out);
    if (conn->tls != NULL) tls__shutdown(conn->tls);
    if (!conn->broken && !conn->in_ended) conn_linger(conn);
    tls__free(conn->tls);
    conn->tls = NULL;
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
    bool goes_on = err == OK;
    if (err == ERR_TIMEOUT) /* Woken for nothing, or too late. */
        goes_on = (!conn->full && rt_now_ns() < conn->wait_deadline_ns) || conn_late(conn);
    if (goes_on)
        conn_go_on(conn);
    else
        conn_end(conn);
}

void
conn__serve(void *arg)
{
    Conn *conn = arg;
    conn__switch(conn, &protocol_sniff);
    conn_go_on(conn);
}
