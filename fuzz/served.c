/*
 * served.c -- the server is started once, in memory, with small limits and short waits.
 */
#include "served.h"

#include "rt/net.h"
#include "rt/time.h"
#include "server/server.h"
#include "session/session.h"

#define ANSWER_MAX ((size_t)64 << 20)

static Server *server; /* The fuzzer's own. */

static void
server_ready(void)
{
    ServerOptions options = {
        .path = ":memory:",
        .create = true,
        .sync = STORE_SYNC_OFF,
        .listen = {"127.0.0.1:0"},
        .listen_count = 1,
        .line_bytes_max = 1 << 16,
        .body_bytes_max = 1 << 16,
        .response_bytes_max = 1 << 20,
        .statement_timeout_ns = RT_NS_PER_S,
        .busy_timeout_ns = RT_NS_PER_S / 10,
        .stream_timeout_ns = RT_NS_PER_S,
    };
    ErrMsg msg = {0};
    if (server != NULL) return;
    Err err = server_start(rt_process_default(), &options, &server, &msg);
    ASSERT(err == OK);
}

bool
served_exchange(Slice request, Buf *answer)
{
    u8 piece[4096];
    size_t got = 1;
    RtSocket *socket = NULL;
    server_ready();
    u64 deadline = rt_deadline_after(20 * RT_NS_PER_S);
    Err err = rt_connect(server_address(server, 0), deadline, &socket, NULL);
    ASSERT(err == OK);
    err = rt_socket_write(socket, request.p, request.bytes, deadline, NULL);
    rt_socket_shutdown_write(socket);
    while (err == OK && got > 0) {
        err = rt_socket_read(socket, piece, sizeof(piece), deadline, &got, NULL);
        if (err != OK || answer == NULL || got == 0) continue;
        ASSERT(answer->bytes < ANSWER_MAX && buf_append(answer, piece, got) == OK);
    }
    ASSERT(err != ERR_TIMEOUT);
    rt_socket_close(socket);
    return err == OK;
}
