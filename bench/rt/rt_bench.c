/*
 * rt_bench.c -- what the runtime's primitives cost, each beside a peer written directly where
 * there is one, in turn with it.
 *
 *   rt_bench [--json FILE] [NAME...]
 *   rt_bench --count NAME TIMES        the bare work, for count.py
 *
 * Names: switch spawn mutex contended handoff parked echo; default: all.  FILE gets a line a row.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
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

#define ROUNDS_MAX 31

/* One row: what ours took in each round and, where there is one, the peer in the same round. */
typedef struct Row {
    const char *name, *unit, *peer_name; /* NULL: no peer; the goal is a limit for ours. */
    bool is_rate;                        /* More is better, else less. */
    double goal;                         /* With a peer: how many times as good; 0: none. */
    double ours[ROUNDS_MAX], peer[ROUNDS_MAX];
    u32 rounds;
} Row;

static FILE *json;
static u32 missed;

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void
row_add(Row *row, double ours, double peer)
{
    row->ours[row->rounds] = ours;
    row->peer[row->rounds] = peer;
    row->rounds++;
}

/* Print the medians: the middle one of the rounds' ratios, not the ratio of two middles. */
static void
row_show(Row *row)
{
    double ratio[ROUNDS_MAX];
    u32 middle = row->rounds / 2, last = row->rounds - 1;
    for (u32 i = 0; i < row->rounds; i++) {
        ratio[i] = row->peer_name == NULL ? row->ours[i]
                   : row->is_rate         ? row->ours[i] / row->peer[i]
                                          : row->peer[i] / row->ours[i];
    }
    qsort(ratio, row->rounds, sizeof(double), compare_doubles);
    qsort(row->ours, row->rounds, sizeof(double), compare_doubles);
    qsort(row->peer, row->rounds, sizeof(double), compare_doubles);
    bool is_met = row->peer_name != NULL ? ratio[middle] >= row->goal : ratio[middle] <= row->goal;
    if (row->goal == 0) is_met = true;
    missed += !is_met;
    printf("%-28s %10.2f", row->name, row->ours[middle]);
    if (row->peer_name != NULL)
        printf(" %10.2f %8.2f x", row->peer[middle], ratio[middle]);
    else
        printf(" %10s %10s", "", "");
    printf("  %-12s (%.2f..%.2f)", row->unit, ratio[0], ratio[last]);
    if (row->goal != 0)
        printf(" goal %s %.2f %s", row->peer_name != NULL ? ">=" : "<=", row->goal,
               is_met ? "met" : "-");
    printf("\n");
    fflush(stdout);
    if (json == NULL) return;
    fprintf(json, "{\"name\":\"%s\",\"weft\":%.4f,", row->name, row->ours[middle]);
    if (row->peer_name != NULL)
        fprintf(json, "\"peer\":%.4f,\"peer_name\":\"%s\",\"ratio\":%.3f,", row->peer[middle],
                row->peer_name, ratio[middle]);
    else
        fprintf(json, "\"peer\":null,\"peer_name\":null,\"ratio\":null,");
    fprintf(json, "\"unit\":\"%s\",\"spread\":[%.3f,%.3f],", row->unit, ratio[0], ratio[last]);
    if (row->goal != 0)
        fprintf(json, "\"goal\":%.2f,\"met\":%s}\n", row->goal, is_met ? "true" : "false");
    else
        fprintf(json, "\"goal\":null,\"met\":null}\n");
    fflush(json);
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

static u64
thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
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

static u64 switches = 2000000;
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
switch_some(void)
{
    for (u64 i = 0; i < switches; i++)
        rt__context_switch(&here, &there);
}

static void
switch_prepare(void)
{
    static RtStacks stacks;
    RtStack stack;
    check(rt__stack_new(&stacks, &stack), "stack");
    rt__context_of_thread(&here);
    rt__context_make(&there, &stack, bounce, NULL);
}

static void
bench_switch(void)
{
    switch_prepare();
    Row row = {"rt.switch", "ns", .goal = 30};
    while (row.rounds < 5) {
        u64 began = cpu_ns();
        switch_some();
        row_add(&row, cpu_round_ns(began, switches), 0);
    }
    row_show(&row);
}

static u64 spawns = 500000;
static RtEvent over;

static void
nothing(void *arg)
{
    (void)arg;
}

static void
spawner(void *arg)
{
    (void)arg;
    for (u64 i = 0; i < spawns; i++) {
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
}

static void
spawn_some(void)
{
    check(rt_spawn(0, spawner, NULL, "spawner"), "spawn");
    rt_event_wait(&over);
}

static void
bench_spawn(void)
{
    Row row = {"rt.fiber_life", "ns", .goal = 300};
    while (row.rounds < 5) {
        loops_up(1);
        u64 began = cpu_ns();
        spawn_some();
        row_add(&row, cpu_round_ns(began, spawns), 0);
        rt_loops_stop(RT_NS_PER_S);
    }
    row_show(&row);
}

static u64 locks = 5000000;

static void
lock_some(RtMutex *mutex)
{
    for (u64 i = 0; i < locks; i++) {
        rt_mutex_lock(mutex);
        rt_mutex_unlock(mutex);
    }
}

static void
bench_mutex(void)
{
    RtMutex ours = {0};
    pthread_mutex_t peer = PTHREAD_MUTEX_INITIALIZER;
    /* At most 1.2 times the time of a pthread mutex. */
    Row row = {"rt.mutex", "ns", "pthread mutex", .goal = 1 / 1.2};
    while (row.rounds < 7) {
        u64 began = cpu_ns();
        lock_some(&ours);
        double ours_ns = cpu_round_ns(began, locks);
        began = cpu_ns();
        for (u64 i = 0; i < locks; i++) {
            pthread_mutex_lock(&peer);
            pthread_mutex_unlock(&peer);
        }
        row_add(&row, ours_ns, cpu_round_ns(began, locks));
    }
    row_show(&row);
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
    Row row = {"rt.mutex_8_threads", "M/s", "pthread mutex", .is_rate = true, .goal = 1};
    while (row.rounds < 5) {
        double ours = contended_rate(contend);
        row_add(&row, ours, contended_rate(contend_peer));
    }
    row_show(&row);
}

static u64 handoffs = 500000;
static RtU32 turn, ended;

static void
hand(void *arg)
{
    u32 mine = (u32)(uintptr_t)arg;
    for (u64 i = 0; i < handoffs; i++) {
        while (rt_load_acquire(&turn) != mine)
            (void)rt_park(&turn, &turn, 1, 1 - mine, RT_FOREVER, RT_PARK_NOCANCEL, 0);
        rt_store_release(&turn, 1 - mine);
        rt_unpark(&turn, 1, NULL, NULL, NULL);
    }
    if (rt_fetch_add(&ended, 1) == 1) rt_event_set(&over);
}

static void
hand_some(void)
{
    rt_store(&ended, 0);
    for (uintptr_t i = 0; i < 2; i++)
        check(rt_spawn(0, hand, (void *)i, "hand"), "spawn");
    rt_event_wait(&over);
}

static void
bench_handoff(void)
{
    Row row = {"rt.handoff", "ns", .goal = 150};
    while (row.rounds < 5) {
        loops_up(1);
        u64 began = cpu_ns();
        hand_some();
        row_add(&row, cpu_round_ns(began, 2 * handoffs), 0);
        rt_loops_stop(RT_NS_PER_S);
    }
    row_show(&row);
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
    Row row = {"rt.parked_30000", "MB", .goal = 400};
    row_add(&row, (double)bytes / 1e6, 0);
    row_show(&row);
    rt_store(&gate, 1);
    rt_unpark_all(&gate);
    rt_loops_stop(10 * RT_NS_PER_S);
}

/*
 * Echo: one server thread, our loop or a bare epoll loop; the clients are the same bare thread.
 * Both servers stand on one core and the clients on another, so that the scheduler's choice is not
 * what is measured.
 */
#define CONNECTIONS 1000
#define ECHO_ROUNDS 50
#define MESSAGE     64

static void
pin(u32 core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core % (u32)sysconf(_SC_NPROCESSORS_ONLN), &cores);
    (void)sched_setaffinity(0, sizeof(cores), &cores);
}

static bool is_by_request; /* A fiber a request; else a fiber a connection. */

static void
serve_one(void *arg)
{
    RtSocket *socket = arg;
    u8 bytes[4096];
    size_t got = 1;
    Err err;
    while ((err = rt_socket_read(socket, bytes, sizeof(bytes), 0, &got, NULL)) == OK && got > 0) {
        err = rt_socket_write(socket, bytes, got, RT_FOREVER, NULL);
        if (err != OK) break;
    }
    if (err == ERR_TIMEOUT && rt_socket_when_readable(socket, RT_FOREVER, serve_one, socket) == OK)
        return;
    rt_socket_close(socket);
}

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
    pin(1);
    while (rt_accept(arg, RT_FOREVER, &socket, NULL) == OK) {
        RtTaskFn fn = is_by_request ? serve_one : serve;
        if (rt_spawn(RT_LOOP_HERE, fn, socket, "serve") != OK) rt_socket_close(socket);
    }
}

static int peer_listen_fd;

static void *
peer_server(void *arg)
{
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = peer_listen_fd}, events[256];
    (void)arg;
    pin(1);
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

/* Thousands of requests a second; *cpu_us_out: of one request, of all but the clients' thread. */
static double
echo_rate(u16 port, double *cpu_us_out)
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
    u64 began = 0, began_cpu = 0, requests = (u64)CONNECTIONS * ECHO_ROUNDS;
    for (u32 round = 0; round <= ECHO_ROUNDS; round++) {
        if (round == 1) { /* The first one is for acceptance. */
            began = rt_now_ns();
            began_cpu = cpu_ns() - thread_cpu_ns();
        }
        for (u32 i = 0; i < CONNECTIONS; i++)
            if (send(fds[i], message, MESSAGE, MSG_NOSIGNAL) != MESSAGE) exit(1);
        for (u32 i = 0; i < CONNECTIONS; i++)
            if (recv(fds[i], answer, MESSAGE, MSG_WAITALL) != MESSAGE) exit(1);
    }
    double rate = 1e6 / per_round_ns(began, requests);
    *cpu_us_out = (double)(cpu_ns() - thread_cpu_ns() - began_cpu) / (double)requests / 1e3;
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
    pthread_setname_np(thread, "peer");
    pthread_detach(thread);
    return ntohs(name.sin_port);
}

static void
echo_both(u16 ours_port, u16 peer_port, const char *name, const char *name_cpu)
{
    Row rate = {name, "k requests/s", "epoll loop", .is_rate = true, .goal = 1};
    Row cpu = {name_cpu, "us", "epoll loop"};
    for (u32 round = 0; round < 15; round++) {
        double ours[2], peer[2];
        if (round % 2 == 0) ours[0] = echo_rate(ours_port, &ours[1]);
        peer[0] = echo_rate(peer_port, &peer[1]);
        if (round % 2 == 1) ours[0] = echo_rate(ours_port, &ours[1]);
        row_add(&rate, ours[0], peer[0]);
        row_add(&cpu, ours[1], peer[1]);
    }
    row_show(&rate);
    row_show(&cpu);
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
    cpu_set_t before;
    (void)sched_getaffinity(0, sizeof(before), &before);
    pin(0);
    echo_both(ours_port, peer_port, "rt.echo_1000", "rt.echo_1000_cpu");
    is_by_request = true;
    echo_both(ours_port, peer_port, "rt.echo_1000_parked", "rt.echo_1000_parked_cpu");
    (void)sched_setaffinity(0, sizeof(before), &before);
    rt_listener_shutdown(listener);
    rt_loops_stop(RT_NS_PER_S);
    rt_listener_close(listener);
}

/* The same work, `count` times, for a tool that counts instructions: no clock, no peer. */
static int
count_only(const char *name, u64 count)
{
    switches = spawns = locks = count;
    handoffs = count / 2;
    if (strcmp(name, "switch") == 0) {
        switch_prepare();
        switch_some();
        return 0;
    }
    if (strcmp(name, "mutex") == 0) {
        lock_some(&shared_mutex);
        return 0;
    }
    loops_up(1);
    if (strcmp(name, "fiber_life") == 0) spawn_some();
    if (strcmp(name, "handoff") == 0) hand_some();
    rt_loops_stop(RT_NS_PER_S);
    return 0;
}

int
main(int argc, char **argv)
{
    const struct {
        const char *name;
        void (*run)(void);
    } benches[] = {
        {"parked", bench_parked}, {"switch", bench_switch},       {"spawn", bench_spawn},
        {"mutex", bench_mutex},   {"contended", bench_contended}, {"handoff", bench_handoff},
        {"echo", bench_echo},
    };
    int first = 1;
    if (argc == 4 && strcmp(argv[1], "--count") == 0) {
        rt_program_init();
        return count_only(argv[2], strtoull(argv[3], NULL, 10));
    }
    if (argc > 2 && strcmp(argv[1], "--json") == 0) {
        json = fopen(argv[2], "a");
        if (json == NULL) return 1;
        first = 3;
    }
    rt_program_init();
    for (u32 i = 0; i < COUNT_OF(benches); i++) {
        bool is_wanted = first == argc;
        for (int k = first; k < argc; k++)
            is_wanted = is_wanted || strcmp(argv[k], benches[i].name) == 0;
        if (is_wanted) benches[i].run();
    }
    if (json != NULL) fclose(json);
    if (missed > 0) printf("%u goals not met\n", missed);
    return 0;
}
