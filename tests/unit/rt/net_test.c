/*
 * net_test.c -- sockets: echo over TCP and Unix, deadlines, cancel, shutdown, what is known of the
 * peer, and every call failing once.
 *
 * Method: an echo server in one thread, clients in the test's; then one situation after another.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io_script.h"
#include "rt/fault.h"
#include "rt/net.h"
#include "rt/time.h"
#include "unit/cmocka_all.h"

#define BIG_BYTES (3u << 20)

static void
echo_one(RtSocket *socket)
{
    static _Thread_local u8 bytes[65536];
    size_t got;
    while (rt_socket_read(socket, bytes, sizeof(bytes), RT_FOREVER, &got, NULL) == OK && got > 0) {
        if (rt_socket_write(socket, bytes, got, RT_FOREVER, NULL) != OK) break;
    }
    rt_socket_close(socket);
}

static void
echo_server(void *arg)
{
    RtSocket *socket;
    for (;;) {
        Err err = rt_accept(arg, RT_FOREVER, &socket, NULL);
        if (err == ERR_CLOSED) return;
        if (err == OK) echo_one(socket);
    }
}

typedef struct Writer {
    RtSocket *socket;
    const u8 *bytes;
    size_t count;
} Writer;

static void
write_all(void *arg)
{
    Writer *writer = arg;
    assert_int_equal(rt_socket_write(writer->socket, writer->bytes, writer->count,
                                     rt_deadline_after(20 * RT_NS_PER_S), NULL),
                     OK);
    rt_socket_shutdown_write(writer->socket);
}

static void
echo_through(const char *address)
{
    RtListener *listener;
    RtThread *server, *thread;
    RtSocket *socket;
    ErrMsg msg = {0};
    u64 deadline = rt_deadline_after(20 * RT_NS_PER_S);
    assert_int_equal(rt_listen(address, 0600, &listener, &msg), OK);
    assert_int_equal(rt_thread_start(rt_process(), echo_server, listener, "echo", &server), OK);
    assert_int_equal(rt_connect(rt_listener_address(listener), deadline, &socket, &msg), OK);
    assert_true(rt_socket_is_loopback(socket));
    u8 *sent = mem_alloc(BIG_BYTES), *back = mem_alloc(BIG_BYTES);
    for (u32 i = 0; i < BIG_BYTES; i++)
        sent[i] = (u8)(i * 31 + (i >> 9));
    Writer writer = {socket, sent, BIG_BYTES};
    assert_int_equal(rt_thread_start(rt_process(), write_all, &writer, "writer", &thread), OK);
    size_t total = 0, got = 1;
    while (got > 0) {
        assert_int_equal(
            rt_socket_read(socket, back + total, BIG_BYTES - total + 1, deadline, &got, &msg), OK);
        total += got;
        if (total == BIG_BYTES) break;
    }
    assert_int_equal(total, BIG_BYTES);
    assert_memory_equal(sent, back, BIG_BYTES);
    assert_int_equal(rt_socket_read(socket, back, 1, deadline, &got, &msg), OK);
    assert_int_equal(got, 0); /* The server closed after our end. */
    rt_thread_join(thread);
    rt_socket_close(socket);
    rt_listener_shutdown(listener);
    rt_thread_join(server);
    rt_listener_close(listener);
    mem_free(sent);
    mem_free(back);
}

static void
echo_over_tcp_and_unix(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof(path), "unix:/tmp/weft-net-%d", getpid());
    echo_through("127.0.0.1:0");
    echo_through("localhost:0");
    echo_through(path);
    echo_through(path);
    assert_int_not_equal(access(path + 5, F_OK), 0);
}

static void
pair_make(RtListener *listener, RtSocket **client_out, RtSocket **server_out)
{
    u64 deadline = rt_deadline_after(5 * RT_NS_PER_S);
    assert_int_equal(rt_connect(rt_listener_address(listener), deadline, client_out, NULL), OK);
    assert_int_equal(rt_accept(listener, deadline, server_out, NULL), OK);
}

static void
read_cancelled(void *arg)
{
    u8 byte;
    size_t got;
    assert_int_equal(rt_socket_read(arg, &byte, 1, RT_FOREVER, &got, NULL), ERR_INTERRUPT);
}

static void
peers_deadlines_and_cancels(void **state)
{
    (void)state;
    RtListener *listener;
    RtSocket *client, *server, *none;
    RtThread *thread;
    u8 byte;
    size_t got;
    u32 ready;
    assert_int_equal(rt_listen("127.0.0.1:0", 0, &listener, NULL), OK);
    assert_int_equal(rt_accept(listener, rt_deadline_after(1000000), &none, NULL), ERR_TIMEOUT);
    pair_make(listener, &client, &server);
    assert_int_equal(rt_socket_read(server, &byte, 1, 0, &got, NULL), ERR_TIMEOUT);
    assert_int_equal(rt_socket_read(server, &byte, 1, rt_deadline_after(3000000), &got, NULL),
                     ERR_TIMEOUT);
    assert_int_equal(rt_socket_wait(server, RT_SOCKET_WRITABLE, RT_FOREVER, &ready), OK);
    assert_int_equal(ready, RT_SOCKET_WRITABLE);
    assert_int_equal(rt_thread_start(rt_process(), read_cancelled, server, "reader", &thread), OK);
    assert_int_equal(rt_sleep_ns(2000000), OK);
    rt_task_cancel(rt_thread_task(thread));
    rt_thread_join(thread);

    assert_int_equal(rt_socket_peer(server), RT_PEER_OPEN);
    assert_int_equal(rt_socket_write(client, "x", 1, RT_FOREVER, NULL), OK);
    rt_socket_shutdown_write(client);
    assert_int_equal(rt_socket_wait(server, RT_SOCKET_READABLE, RT_FOREVER, &ready), OK);
    while (rt_socket_peer(server) == RT_PEER_OPEN)
        rt_yield();
    assert_int_equal(rt_socket_peer(server), RT_PEER_FINISHED);
    assert_int_equal(rt_socket_read(server, &byte, 1, RT_FOREVER, &got, NULL), OK);
    assert_int_equal(got, 1); /* Sent before the end, still there. */
    assert_int_equal(rt_socket_read(server, &byte, 1, RT_FOREVER, &got, NULL), OK);
    assert_int_equal(got, 0);

    rt_socket_watch_peer(server, rt_self(), true);
    Err err = OK;
    while (err == OK)
        err = rt_check();
    assert_int_equal(err, ERR_INTERRUPT);
    rt_socket_watch_peer(NULL, rt_self(), false);
    rt_task_clear_cancel(rt_self());
    rt_socket_close(client);
    rt_socket_close(server);

    /* Unread bytes at close make a reset. */
    pair_make(listener, &client, &server);
    assert_int_equal(rt_socket_write(server, "y", 1, RT_FOREVER, NULL), OK);
    assert_int_equal(rt_socket_wait(client, RT_SOCKET_READABLE, RT_FOREVER, &ready), OK);
    rt_socket_close(client);
    while (rt_socket_peer(server) != RT_PEER_RESET)
        rt_yield();
    assert_int_equal(rt_socket_read(server, &byte, 1, RT_FOREVER, &got, NULL), ERR_CLOSED);
    rt_socket_close(server);
    rt_listener_close(listener);
    assert_int_equal(rt_connect("127.0.0.1:1", RT_FOREVER, &none, NULL), ERR_CLOSED);
    assert_int_equal(rt_connect("nonsense", RT_FOREVER, &none, NULL), ERR_MISUSE);
}

static void
every_call_fails_once(void **state)
{
    (void)state;
    const int errors[] = {EMFILE, ECONNRESET, EINTR, EAGAIN, RT_FAULT_SHORT};
    for (u32 e = 0; e < COUNT_OF(errors); e++) {
        bool fired = true;
        u32 nth = 1;
        for (; fired; nth++) {
            u64 blocks = mem_live_blocks();
            rt_fault_arm(nth, errors[e]);
            Err err = io_script_sockets();
            fired = rt_fault_fired();
            rt_fault_arm(0, 0);
            if (!fired || errors[e] == RT_FAULT_SHORT) assert_int_equal(err, OK);
            if (fired && errors[e] == EMFILE) assert_int_equal(err, ERR_LIMIT);
            RtCounters counters;
            rt_process_counters(rt_process(), &counters);
            assert_int_equal(counters.sockets, 0);
            assert_int_equal(mem_live_blocks(), blocks);
        }
        assert_true(nth > 5);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echo_over_tcp_and_unix),
        cmocka_unit_test(peers_deadlines_and_cancels),
        cmocka_unit_test(every_call_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
