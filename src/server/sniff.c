/*
 * sniff.c -- which protocol a new connection speaks: its first byte decides.
 *
 *     0x16                    TLS; what is inside is looked at again
 *     A-Z                     HTTP, from which a WebSocket may grow
 *     anything else           Quack
 *
 * Who is silent for a moment is taken for a Quack client that waits for the banner.  It may also
 * be an HTTP client that has connected ahead; for those the server can be told (`no_greet`) to
 * speak to nobody over TCP who has not spoken: then a Quack client that wants the banner sends an
 * empty line.  Under TLS nobody who is silent is greeted.
 */
#include "rt/time.h"
#include "server/server__quack.h"
#include "server/tls.h"

#define BANNER_WAIT_NS (250 * RT_NS_PER_MS)
#define TLS_RECORD     0x16

/* TLS begins: what was read belongs to it. */
static void
begin_tls(Conn *conn)
{
    Server *server = conn->server;
    Slice seen = conn__input(conn);
    rt_mutex_lock(&server->lock);
    conn->tls = tls__new(server->tls, conn->socket, seen);
    rt_mutex_unlock(&server->lock);
    buf_clear(&conn->in);
    conn->in_at = conn->in_seen = 0;
    if (conn->tls == NULL) conn->closing = true;
    server__count(server, COUNT_TLS, 1);
}

/* The context itself changes when certificates are read again; that there is one does not. */
static bool
has_certificate(const Conn *conn)
{
    return conn->server->options.tls_cert != NULL;
}

/* With a certificate at hand, what comes from another machine has to be encrypted. */
static bool
may_be_plain(const Conn *conn)
{
    return conn->tls != NULL || !has_certificate(conn) || rt_socket_is_loopback(conn->socket);
}

/* Is silence taken for Quack here? */
static bool
greets(const Conn *conn)
{
    if (conn->tls != NULL || !may_be_plain(conn)) return false;
    return !conn->server->options.no_greet || rt_socket_is_unix(conn->socket);
}

static void
sniff_run(Conn *conn)
{
    Slice input = conn__input(conn);
    if (input.bytes == 0) return;
    if (input.p[0] == TLS_RECORD && conn->tls == NULL && has_certificate(conn)) {
        begin_tls(conn);
        return;
    }
    if (!may_be_plain(conn)) {
        conn->closing = true;
        return;
    }
    bool http = input.p[0] >= 'A' && input.p[0] <= 'Z';
    if (!http && quack__banner(conn) != OK) conn->closing = true;
    conn__switch(conn, http ? &protocol_http : &protocol_quack);
}

static u64
sniff_wait_ns(const Conn *conn)
{
    const ServerOptions *options = &conn->server->options;
    if (greets(conn)) return BANNER_WAIT_NS;
    bool may_come_ahead = conn->tls == NULL && may_be_plain(conn);
    return may_come_ahead ? options->keep_alive_timeout_ns : options->request_timeout_ns;
}

static bool
sniff_late(Conn *conn)
{
    if (!greets(conn)) return false;
    conn__switch(conn, &protocol_quack);
    return quack__banner(conn) == OK;
}

const Protocol protocol_sniff = {
    .name = "new",
    .run = sniff_run,
    .wait_ns = sniff_wait_ns,
    .late = sniff_late,
};
