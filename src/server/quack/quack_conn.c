/*
 * quack_conn.c -- Quack as a protocol of conn.c: cut lines, run them, keep the limits.
 */
#include <stdio.h>
#include <string.h>

#include "server/quack/quack_run.h"

/* Cut the next line out of `in`, without its line end.  False: more bytes are needed. */
static bool
line_next(Conn *conn, Slice *line_out)
{
    Slice input = conn__input(conn);
    const u8 *end = input.bytes > conn->in_seen
                        ? memchr(input.p + conn->in_seen, '\n', input.bytes - conn->in_seen)
                        : NULL;
    size_t bytes, used;
    if (end != NULL) {
        bytes = (size_t)(end - input.p);
        used = bytes + 1;
    } else if ((conn->in_ended || PLANT(205)) && input.bytes > 0) {
        bytes = used = input.bytes; /* The last line needs no line end. */
    } else {
        conn->in_seen = input.bytes;
        return false;
    }
    if (bytes > 0 && input.p[bytes - 1] == '\r') bytes--;
    *line_out = (Slice){input.p, bytes};
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

static bool
in_transaction(const Conn *conn)
{
    return conn->seat != NULL && seat__in_transaction(conn->seat);
}

static bool
state_ready(Conn *conn)
{
    if (conn->quack != NULL) return true;
    conn->quack = MEM_NEW(QuackState);
    if (conn->quack == NULL) return false;
    arena_init(&conn->quack->arena, NULL);
    server__count(conn->server, COUNT_QUACK, 1);
    return true;
}

static void
line_run(Conn *conn, Slice line)
{
    conn__busy(conn, 1);
    if (conn->seat != NULL) seat__begin(conn->seat, conn->socket);
    server__count(conn->server, COUNT_REQUESTS, 1);
    if (!state_ready(conn) || quack__line(conn, line) != OK) {
        conn->closing = true;
        log_line(LOG_ERROR, "connection %llu: out of memory, dropped",
                 (unsigned long long)conn->number);
    }
    if (conn->seat != NULL) {
        seat__end(conn->seat);
        if (seat__is_killed(conn->seat)) conn->closing = true;
    }
    conn__busy(conn, -1);
}

/* Before the wait: what an idle connection does not need goes back. */
static void
rest(Conn *conn)
{
    QuackState *quack = conn->quack;
    if (quack == NULL) return;
    arena_free(&quack->arena);
    buf_free(&quack->scratch);
    if (conn->seat != NULL && quack->handle_count == 0) seat__rest(conn->seat);
}

static void
quack_run(Conn *conn)
{
    Slice line;
    while (!conn->closing && !conn->broken && line_next(conn, &line)) {
        if (is_blank(line)) continue;
        line_run(conn, line);
        if (conn->out.bytes >= CONN_FLUSH_BYTES && !conn__flush(conn)) return;
    }
    if (!conn->closing && conn__input(conn).bytes > conn->server->options.line_bytes_max) {
        char text[80];
        snprintf(text, sizeof(text), "a request line may have %llu bytes",
                 (unsigned long long)conn->server->options.line_bytes_max);
        if (quack__error(conn, 18, "QUACK_LIMIT", text) != OK) conn->broken = true;
        conn->closing = true;
    }
    rest(conn);
}

static u64
quack_wait_ns(const Conn *conn)
{
    const ServerOptions *options = &conn->server->options;
    return in_transaction(conn) ? options->transaction_timeout_ns : options->idle_timeout_ns;
}

/* The limit passed without a request. */
static bool
quack_late(Conn *conn)
{
    const char *text = in_transaction(conn)
                           ? "no request for too long inside a transaction: rolled back"
                           : "no request for too long";
    Err err = conn->full ? quack__error(conn, 7, "QUACK_LIMIT", "too much is waiting to be served")
                         : quack__error(conn, 4, "QUACK_IDLE", text);
    if (err != OK) conn->broken = true;
    return false;
}

void
quack__seat_close(Conn *conn)
{
    rt_mutex_lock(&conn->lock);
    Seat *seat = conn->seat;
    conn->seat = NULL;
    rt_mutex_unlock(&conn->lock);
    seat__close(seat);
}

static void
quack_end(Conn *conn)
{
    QuackState *quack = conn->quack;
    if (quack == NULL) return;
    for (u32 i = 0; i < quack->handle_count; i++)
        seat__release(conn->seat, quack->handle[i].stmt);
    if (!PLANT(206) || !in_transaction(conn)) quack__seat_close(conn);
    mem_free(quack->handle);
    arena_free(&quack->arena);
    buf_free(&quack->scratch);
    fault__free(&quack->fault);
    mem_free(quack);
    conn->quack = NULL;
}

const Protocol protocol_quack = {
    .name = "quack",
    .run = quack_run,
    .wait_ns = quack_wait_ns,
    .late = quack_late,
    .end = quack_end,
};
