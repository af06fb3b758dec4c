/*
 * rt_bench.c -- what the runtime's primitives cost, each beside a peer written directly where
 * there is one.  Prints one JSON object a line.
 *
 *   rt_bench [NAME...]    names: switch spawn mutex contended handoff parked echo; default: all
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rt/fiber/stack.h"
#include "rt/host.h"
#include "rt/lock.h"
#include "rt/loop.h"
#include "rt/net.h"
#include "rt/time.h"

static void
report(const char *name, const char *unit, double ours, double peer)
{
    printf("{\"bench\":\"rt/%s\",\"unit\":\"%s\",\"ours\":%.2f", name, unit, ours);
    if (peer > 0) printf(",\"peer\":%.2f,\"ratio\":%.3f", peer, ours / peer);
    printf("}\n");
    fflush(stdout);
}

static void
check(Err err, const char *what)
{
    if (err == OK) return;
    fprintf(stderr, "%s: %s\n", what, err_text(err));
    exit(1);
}

/* Processor time of the whole program: a busy neighbour does not show in it. */
static u64
cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (u64)now.tv_sec * RT_NS_PER_S + (u64)now.tv_nsec;
}

static double
cpu_round_ns(u64 began_ns, u64 rounds)
{
    return (double)(cpu_ns() - began_ns) / (double)rounds;
}

static double
per_round_ns(u64 began_ns, u64 rounds)
{
    return (double)(rt_now_ns() - began_ns) / (double)rounds;
}

#define SWITCHES 5000000
static RtContext here, there;

static void
bounce(void *arg)
{
    (void)arg;
    rt__context_began(&here);
    for (;;)
        rt__context_switch(&there, &here);
}

static void
bench_switch(void)
{
    RtStacks stacks = {0};
    RtStack stack;
    check(rt__stack_new(&stacks, &stack), "stack");
    rt__context_of_thread(&here);
    rt__context_make(&there, &stack, bounce, NULL);
    u64 began = cpu_ns();
    for (u32 i = 0; i < SWITCHES; i++)
        rt__context_switch(&here, &there);
    report("switch_there_and_back", "ns", cpu_round_ns(began, SWITCHES), 0);
}

#define SPAWNS 1000000
static RtEvent over;
static u64 spawned;

static void
nothing(void *arg)
{
    (void)arg;
}

static void
spawner(void *arg)
{
    (void)arg;
    for (u32 i = 0; i < SPAWNS; i++) {
        check(rt_spawn(RT_LOOP_HERE, nothing, NULL, "nothing"), "spawn");
        if (i % 32 == 31) rt_yield();
    }
    rt_event_set(&over);
}

static void
loops_up(u32 loops)
{
    RtLoopsConfig config = {.loops = loops, .fibers_max = 100000};
    check(rt_loops_start(&config, NULL), "loops");
    over = (RtEvent){0};
    spawned = 0;
}

static void
bench_spawn(void)
{
    loops_up(1);
    u64 began = cpu_ns();
    check(rt_spawn(0, spawner, NULL, "spawner"), "spawn");
    rt_event_wait(&over);
    report("fiber_start_and_end", "ns", cpu_round_ns(began, SPAWNS), 0);
    rt_loops_stop(RT_NS_PER_S);
}

#define LOCKS 20000000

static void
bench_mutex(void)
{
    RtMutex ours = {0};
    pthread_mutex_t peer = PTHREAD_MUTEX_INITIALIZER;
    double best = 1e9, best_peer = 1e9;
    for (u32 round = 0; round < 3; round++) {
        u64 began = cpu_ns();
        for (u32 i = 0; i < LOCKS; i++) {
            rt_mutex_lock(&ours);
            rt_mutex_unlock(&ours);
        }
        best = MIN_OF(best, cpu_round_ns(began, LOCKS));
        began = cpu_ns();
        for (u32 i = 0; i < LOCKS; i++) {
            pthread_mutex_lock(&peer);
            pthread_mutex_unlock(&peer);
        }
        best_peer = MIN_OF(best_peer, cpu_round_ns(began, LOCKS));
    }
    report("mutex_uncontended", "ns", best, best_peer);
}

#define CONTENDERS 8
#define CONTENDED  300000
static RtMutex shared_mutex;
static pthread_mutex_t shared_peer = PTHREAD_MUTEX_INITIALIZER;
static volatile u64 guarded;

static void
contend(void *arg)
{
    (void)arg;
    for (u32 i = 0; i < CONTENDED; i++) {
        rt_mutex_lock(&shared_mutex);
        guarded++;
        rt_mutex_unlock(&shared_mutex);
    }
}

static void
contend_peer(void *arg)
{
    (void)arg;
    for (u32 i = 0; i < CONTENDED; i++) {
        pthread_mutex_lock(&shared_peer);
        guarded++;
        pthread_mutex_unlock(&shared_peer);
    }
}

static double
contended_rate(RtTaskFn fn)
{
    RtThread *threads[CONTENDERS];
    u64 began = rt_now_ns();
    for (u32 i = 0; i < CONTENDERS; i++)
        check(rt_thread_start(rt_process(), fn, NULL, "contender", &threads[i]), "thread");
    for (u32 i = 0; i < CONTENDERS; i++)
        rt_thread_join(threads[i]);
    return 1000.0 / per_round_ns(began, (u64)CONTENDERS * CONTENDED);
}

static void
bench_contended(void)
{
    double ours = 0, peer = 0;
    for (u32 round = 0; round < 3; round++) {
        ours = MAX_OF(ours, contended_rate(contend));
        peer = MAX_OF(peer, contended_rate(contend_peer));
    }
    report("mutex_8_threads", "M/s", ours, peer);
}

#define HANDOFFS 1000000
static RtU32 turn, ended;

static void
hand(void *arg)
{
    u32 mine = (u32)(uintptr_t)arg;
    for (u32 i = 0; i < HANDOFFS; i++) {
        while (rt_load_acquire(&turn) != mine)
            (void)rt_park(&turn, &turn, 1, 1 - mine, RT_FOREVER, RT_PARK_NOCANCEL, 0);
        rt_store_release(&turn, 1 - mine);
        rt_unpark(&turn, 1, NULL, NULL, NULL);
    }
    if (rt_fetch_add(&ended, 1) == 1) rt_event_set(&over);
}

static void
bench_handoff(void)
{
    loops_up(1);
    rt_store(&ended, 0);
    u64 began = cpu_ns();
    for (uintptr_t i = 0; i < 2; i++)
        check(rt_spawn(0, hand, (void *)i, "hand"), "spawn");
    rt_event_wait(&over);
    report("handoff_between_fibers", "ns", cpu_round_ns(began, 2 * HANDOFFS), 0);
    rt_loops_stop(RT_NS_PER_S);
}

#define PARKED 30000
static RtU32 gate, waiting;

static void
wait_at_gate(void *arg)
{
    (void)arg;
    rt_fetch_add(&waiting, 1);
    while (rt_load_acquire(&gate) == 0)
        (void)rt_park(&gate, &gate, U32_MAX, 0, RT_FOREVER, RT_PARK_NOCANCEL, 0);
}

static void
bench_parked(void)
{
    loops_up(0);
    u64 before = rt_memory_resident_bytes();
    for (u32 i = 0; i < PARKED; i++)
        check(rt_spawn(RT_LOOP_ANY, wait_at_gate, NULL, "waiter"), "spawn");
    while (rt_load(&waiting) < PARKED)
        check(rt_sleep_ns(RT_NS_PER_MS), "sleep");
    u64 bytes = rt_memory_resident_bytes() - before;
    report("parked_30000_fibers", "MB", (double)bytes / 1e6, 0);
    rt_store(&gate, 1);
    rt_unpark_all(&gate);
    rt_loops_stop(10 * RT_NS_PER_S);
}

/* Echo: one server loop, ours or a bare epoll loop; the clients are the same bare thread. */
#define CONNECTIONS 1000
#define ECHO_ROUNDS 100
#define MESSAGE     64

static void
serve(void *arg)
{
    RtSocket *socket = arg;
    u8 bytes[4096];
    size_t got;
    while (rt_socket_read(socket, bytes, sizeof(bytes), RT_FOREVER, &got, NULL) == OK && got > 0) {
        if (rt_socket_write(socket, bytes, got, RT_FOREVER, NULL) != OK) break;
    }
    rt_socket_close(socket);
}

static void
accept_all(void *arg)
{
    RtSocket *socket;
    while (rt_accept(arg, RT_FOREVER, &socket, NULL) == OK) {
        if (rt_spawn(RT_LOOP_HERE, serve, socket, "serve") != OK) rt_socket_close(socket);
    }
}

static int peer_listen_fd;

static void *
peer_server(void *arg)
{
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = peer_listen_fd}, events[256];
    (void)arg;
    epoll_ctl(epoll, EPOLL_CTL_ADD, peer_listen_fd, &event);
    for (;;) {
        int count = epoll_wait(epoll, events, 256, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == peer_listen_fd) {
                int one = 1, accepted;
                while ((accepted = accept4(fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
                    event = (struct epoll_event){.events = EPOLLIN, .data.fd = accepted};
                    epoll_ctl(epoll, EPOLL_CTL_ADD, accepted, &event);
                }
                continue;
            }
            u8 bytes[4096];
            ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
            if (got > 0)
                (void)!send(fd, bytes, (size_t)got, MSG_NOSIGNAL);
            else if (got == 0 || errno != EAGAIN)
                close(fd);
        }
    }
    return NULL;
}

static double
echo_rate(u16 port)
{
    static int fds[CONNECTIONS];
    static u8 message[MESSAGE], answer[MESSAGE];
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (u32 i = 0; i < CONNECTIONS; i++) {
        int one = 1;
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fds[i], (const void *)&name, sizeof(name)) != 0) exit(1);
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    }
    u64 began = rt_now_ns();
    for (u32 round = 0; round < ECHO_ROUNDS; round++) {
        for (u32 i = 0; i < CONNECTIONS; i++)
            if (send(fds[i], message, MESSAGE, MSG_NOSIGNAL) != MESSAGE) exit(1);
        for (u32 i = 0; i < CONNECTIONS; i++)
            if (recv(fds[i], answer, MESSAGE, MSG_WAITALL) != MESSAGE) exit(1);
    }
    double rate = 1e6 / per_round_ns(began, (u64)CONNECTIONS * ECHO_ROUNDS);
    for (u32 i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    return rate;
}

static u16
peer_start(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    socklen_t bytes = sizeof(name);
    pthread_t thread;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer_listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(peer_listen_fd, (const void *)&name, sizeof(name)) != 0) exit(1);
    if (listen(peer_listen_fd, 1024) != 0) exit(1);
    getsockname(peer_listen_fd, (void *)&name, &bytes);
    if (pthread_create(&thread, NULL, peer_server, NULL) != 0) exit(1);
    pthread_detach(thread);
    return ntohs(name.sin_port);
}

static void
bench_echo(void)
{
    RtListener *listener;
    loops_up(1);
    check(rt_listen("127.0.0.1:0", 0, &listener, NULL), "listen");
    check(rt_spawn(0, accept_all, listener, "acceptor"), "spawn");
    u16 ours_port = (u16)atoi(strrchr(rt_listener_address(listener), ':') + 1);
    u16 peer_port = peer_start();
    double ours = 0, peer = 0;
    for (u32 round = 0; round < 5; round++) {
        ours = MAX_OF(ours, echo_rate(ours_port));
        peer = MAX_OF(peer, echo_rate(peer_port));
    }
    report("echo_1000_connections", "k requests/s", ours, peer);
    rt_listener_shutdown(listener);
    rt_loops_stop(RT_NS_PER_S);
    rt_listener_close(listener);
}

int
main(int argc, char **argv)
{
    const struct {
        const char *name;
        void (*run)(void);
    } benches[] = {
        {"switch", bench_switch},       {"spawn", bench_spawn},     {"mutex", bench_mutex},
        {"contended", bench_contended}, {"handoff", bench_handoff}, {"parked", bench_parked},
        {"echo", bench_echo},
    };
    rt_program_init();
    for (u32 i = 0; i < COUNT_OF(benches); i++) {
        bool is_wanted = argc == 1;
        for (int k = 1; k < argc; k++)
            is_wanted = is_wanted || strcmp(argv[k], benches[i].name) == 0;
        if (is_wanted) benches[i].run();
    }
    return 0;
}
