/*
 * net.c -- the simulated network: listeners by address text, connections as two pipes with delay.
 *
 * Bytes in flight are events; those of one direction never overtake each other.
 */
#include "rt/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "rt/sim/sim_impl.h"
#include "rt/time.h"

#define FD_BASE         100000
#define PIPE_BYTES      65536
#define LATE_NS         (20 * RT_NS_PER_MS)
#define FIRST_FREE_PORT 40000

typedef struct SimSocket SimSocket;

struct SimSocket {
    SimSocket *next; /* All of the net. */
    int fd;
    RtSimProcess *process; /* NULL: not accepted yet. */
    SimSocket *peer;       /* NULL: gone. */
    u8 *bytes;             /* Received, not read. */
    u64 count, in_flight;
    u64 arrives_ns;   /* Of the last event under way to it. */
    u64 connected_ns; /* Connecting until then. */
    bool is_listener, is_finished, is_reset, is_shut, has_finished;
    char address[RT_ADDRESS_BYTES];
    SimSocket *queue; /* Of a listener: to be accepted, oldest first. */
    SimSocket *queue_next;
    RtTask *watcher;
    bool watch_finish;
    RtTaskFn idle_fn;
    void *idle_arg;
    u64 idle_ns;
};

typedef enum MessageKind { MESSAGE_DATA, MESSAGE_FINISH, MESSAGE_RESET } MessageKind;

typedef struct SimMessage {
    struct SimMessage *next; /* By time, then in order of sending. */
    u64 time_ns;
    SimSocket *to;
    MessageKind kind;
    u64 count;
    u8 bytes[];
} SimMessage;

struct SimNet {
    SimSocket *sockets;
    SimMessage *messages;
    int next_fd;
    u32 next_port;
};

SimNet *
rt__net_new(void)
{
    SimNet *net = rt__world_alloc(sizeof(*net));
    net->next_fd = FD_BASE;
    net->next_port = FIRST_FREE_PORT;
    return net;
}

static SimSocket *
socket_new(SimNet *net, RtSimProcess *process)
{
    SimSocket *made = rt__world_alloc(sizeof(*made));
    made->fd = net->next_fd++;
    made->process = process;
    made->next = net->sockets;
    net->sockets = made;
    if (process != NULL) process->open_sockets++;
    return made;
}

static SimSocket *
socket_of(int fd)
{
    SimSocket *at = rt__world->net->sockets;
    while (at != NULL && at->fd != fd)
        at = at->next;
    ASSERT(at != NULL);
    return at;
}

static void
message_send(SimSocket *to, MessageKind kind, const void *bytes, u64 count)
{
    SimNet *net = rt__world->net;
    if (to == NULL) return;
    SimMessage *message = rt__world_alloc(sizeof(*message) + count);
    u64 delay_ns = rt__world->net_latency_ns / 2 +
                   rt__world_draw(SIM_NET, rt__world->net_latency_ns);
    if (rt__world_fault(NULL, RT_SIM_NET_SPLIT)) delay_ns += rt__world_draw(SIM_NET, LATE_NS);
    message->time_ns = MAX_OF(rt__world->clock_ns + delay_ns, to->arrives_ns);
    message->to = to;
    message->kind = kind;
    message->count = count;
    if (count > 0) memcpy(message->bytes, bytes, count);
    to->arrives_ns = message->time_ns;
    to->in_flight += count;
    SimMessage **at = &net->messages;
    while (*at != NULL && (*at)->time_ns <= message->time_ns)
        at = &(*at)->next;
    message->next = *at;
    *at = message;
    rt__world->report->messages++;
    rt__world_note("send", (u64)to->fd ^ ((u64)kind << 32), count);
}

static void
socket_free(SimSocket *dead)
{
    SimNet *net = rt__world->net;
    for (SimMessage **at = &net->messages; *at != NULL;) {
        SimMessage *message = *at;
        if (message->to != dead) {
            at = &message->next;
            continue;
        }
        *at = message->next;
        free(message);
    }
    for (SimSocket *at = net->sockets; at != NULL; at = at->next) {
        for (SimSocket **queued = &at->queue; *queued != NULL;) {
            if (*queued == dead)
                *queued = dead->queue_next;
            else
                queued = &(*queued)->queue_next;
        }
        if (at->peer == dead) at->peer = NULL;
    }
    SimSocket **at = &net->sockets;
    while (*at != dead)
        at = &(*at)->next;
    *at = dead->next;
    if (dead->process != NULL) dead->process->open_sockets--;
    free(dead->bytes);
    free(dead);
}

/* Close: what is unread or not accepted makes a reset. */
static void
socket_close(SimSocket *closed)
{
    while (closed->queue != NULL) {
        SimSocket *waiting = closed->queue;
        closed->queue = waiting->queue_next;
        message_send(waiting->peer, MESSAGE_RESET, NULL, 0);
        socket_free(waiting);
    }
    if (closed->peer != NULL) {
        bool resets = closed->count > 0 || closed->in_flight > 0;
        if (resets)
            message_send(closed->peer, MESSAGE_RESET, NULL, 0);
        else if (!closed->has_finished)
            message_send(closed->peer, MESSAGE_FINISH, NULL, 0);
    }
    socket_free(closed);
}

void
rt__net_free(SimNet *net)
{
    while (net->sockets != NULL)
        socket_free(net->sockets);
    free(net);
}

void
rt__net_process_gone(SimNet *net, RtSimProcess *process)
{
    for (SimSocket *at = net->sockets, *next; at != NULL; at = next) {
        next = at->next;
        if (at->process != process) continue;
        socket_close(at);
        next = net->sockets; /* The close may have freed others. */
    }
}

static i64
resolve(const RtIo *io)
{
    RtAddress *address = io->address;
    const char *name = io->name;
    *address = (RtAddress){0};
    address->is_unix = strncmp(name, "unix:", 5) == 0;
    if (strchr(name, ':') == NULL) return -EINVAL;
    bool is_local = strncmp(name, "localhost:", 10) == 0;
    snprintf(address->text, sizeof(address->text), "%s%s", is_local ? "127.0.0.1" : "",
             is_local ? name + 9 : name);
    return 0;
}

static SimSocket *
listener_at(const char *address)
{
    SimSocket *at = rt__world->net->sockets;
    while (at != NULL && !(at->is_listener && !at->is_shut && strcmp(at->address, address) == 0))
        at = at->next;
    return at;
}

static i64
listen_at(RtSimProcess *process, const RtIo *io)
{
    RtAddress *address = io->address;
    size_t bytes = strlen(address->text);
    if (!address->is_unix && bytes > 2 && strcmp(address->text + bytes - 2, ":0") == 0) {
        snprintf(address->text + bytes - 1, sizeof(address->text) - bytes, "%u",
                 rt__world->net->next_port++);
    }
    if (listener_at(address->text) != NULL) return -EADDRINUSE;
    SimSocket *made = socket_new(rt__world->net, process);
    made->is_listener = true;
    snprintf(made->address, sizeof(made->address), "%s", address->text);
    return made->fd;
}

static i64
connect_to(RtSimProcess *process, const RtIo *io)
{
    SimNet *net = rt__world->net;
    if (rt__world_fault(NULL, RT_SIM_EMFILE)) return -EMFILE;
    SimSocket *listener = listener_at(io->address->text);
    if (listener == NULL) return -ECONNREFUSED;
    SimSocket *client = socket_new(net, process), *server = socket_new(net, NULL);
    client->peer = server;
    server->peer = client;
    u64 latency_ns = rt__world->net_latency_ns;
    client->connected_ns = rt__world->clock_ns + latency_ns + rt__world_draw(SIM_NET, latency_ns);
    snprintf(client->address, sizeof(client->address), "%s", io->address->text);
    snprintf(server->address, sizeof(server->address), "127.0.0.1:%u", net->next_port++);
    SimSocket **at = &listener->queue;
    while (*at != NULL)
        at = &(*at)->queue_next;
    *at = server;
    rt__world_wake(listener);
    return client->fd;
}

static i64
accept_from(RtSimProcess *process, const RtIo *io)
{
    SimSocket *listener = socket_of(io->fd);
    SimSocket *made = listener->queue;
    if (listener->is_shut) return -EINVAL;
    if (made == NULL) return -EAGAIN;
    if (rt__world_fault(NULL, RT_SIM_EMFILE)) return -EMFILE;
    /* Another one came before it and is gone again. */
    if (rt__world_fault(NULL, RT_SIM_NET_RESET)) return -ECONNABORTED;
    listener->queue = made->queue_next;
    made->process = process;
    process->open_sockets++;
    *io->address = (RtAddress){.is_unix = strncmp(listener->address, "unix:", 5) == 0};
    snprintf(io->address->text, sizeof(io->address->text), "%s", made->address);
    return made->fd;
}

static bool
reset_now(SimSocket *at)
{
    if (at->is_reset || at->peer == NULL || !rt__world_fault(NULL, RT_SIM_NET_RESET)) return false;
    at->is_reset = true;
    message_send(at->peer, MESSAGE_RESET, NULL, 0);
    return true;
}

static i64
send_bytes(const RtIo *io)
{
    SimSocket *from = socket_of(io->fd);
    u64 count = io->vecs[0].iov_len;
    if (from->is_reset || reset_now(from)) return -ECONNRESET;
    if (from->peer == NULL || from->has_finished || from->is_shut) return -EPIPE;
    if (from->connected_ns > rt__world->clock_ns) return -EAGAIN;
    u64 space = PIPE_BYTES - MIN_OF((u64)PIPE_BYTES, from->peer->count + from->peer->in_flight);
    count = MIN_OF(count, space);
    if (count == 0) return -EAGAIN;
    if (rt__world_fault(NULL, RT_SIM_NET_SPLIT)) count = 1 + rt__world_draw(SIM_NET, count);
    message_send(from->peer, MESSAGE_DATA, io->vecs[0].iov_base, count);
    return (i64)count;
}

static i64
receive_bytes(const RtIo *io)
{
    SimSocket *at = socket_of(io->fd);
    u64 count = MIN_OF((u64)io->vecs[0].iov_len, at->count);
    if (at->is_reset || reset_now(at)) return -ECONNRESET;
    if (count == 0) return at->is_finished || at->is_shut ? 0 : -EAGAIN;
    if (rt__world_fault(NULL, RT_SIM_NET_SPLIT)) count = 1 + rt__world_draw(SIM_NET, count);
    memcpy(io->vecs[0].iov_base, at->bytes, count);
    at->count -= count;
    memmove(at->bytes, at->bytes + count, at->count);
    rt__world_note("recv", (u64)at->fd, hash_bytes(io->vecs[0].iov_base, count, count));
    if (at->peer != NULL) rt__world_wake(at->peer); /* There is room again. */
    return (i64)count;
}

/* A connection parked without a task gets one. */
static void
idle_start(SimSocket *at)
{
    RtTaskFn fn = at->idle_fn;
    at->idle_fn = NULL;
    if (fn == NULL) return;
    SimTask *task = rt__sim_task_new(at->process, NULL, fn, at->idle_arg, "connection");
    rt__sim_make_fiber(task);
}

static i64
shut_down(const RtIo *io)
{
    SimSocket *at = socket_of(io->fd);
    if (io->flags == 2) { /* Reading only. */
        at->is_finished = true;
        idle_start(at);
        rt__world_wake(at);
        return 0;
    }
    if (at->peer != NULL && !at->has_finished) message_send(at->peer, MESSAGE_FINISH, NULL, 0);
    at->has_finished = true;
    if (!(io->flags & 1)) {
        at->is_shut = true;
        idle_start(at);
    }
    rt__world_wake(at);
    return 0;
}

static u32
ready_bits(const SimSocket *at)
{
    if (at->is_listener) return at->queue != NULL || at->is_shut ? RT_SOCKET_READABLE : 0;
    bool is_over = at->is_reset || at->is_shut;
    u32 bits = 0;
    if (is_over || at->count > 0 || at->is_finished) bits |= RT_SOCKET_READABLE;
    bool has_room = at->peer == NULL || at->peer->count + at->peer->in_flight < PIPE_BYTES;
    if (is_over || (has_room && at->connected_ns <= rt__world->clock_ns))
        bits |= RT_SOCKET_WRITABLE;
    return bits;
}

static i64
peer_of(const RtIo *io)
{
    const SimSocket *at = socket_of(io->fd);
    return at->is_reset ? RT_PEER_RESET : at->is_finished ? RT_PEER_FINISHED : RT_PEER_OPEN;
}

void
rt__net_io(RtSimProcess *process, RtIo *io)
{
    switch (io->op) {
    case RT_IO_RESOLVE: io->result = resolve(io); break;
    case RT_IO_LISTEN: io->result = listen_at(process, io); break;
    case RT_IO_ACCEPT: io->result = accept_from(process, io); break;
    case RT_IO_CONNECT: io->result = connect_to(process, io); break;
    case RT_IO_CONNECT_RESULT: io->result = socket_of(io->fd)->is_reset ? -ECONNREFUSED : 0; break;
    case RT_IO_RECV: io->result = receive_bytes(io); break;
    case RT_IO_SEND: io->result = send_bytes(io); break;
    case RT_IO_SHUTDOWN: io->result = shut_down(io); break;
    case RT_IO_PEER: io->result = peer_of(io); break;
    case RT_IO_READY: io->result = ready_bits(socket_of(io->fd)) & io->flags; break;
    case RT_IO_CLOSE_SOCKET:
        socket_close(socket_of(io->fd));
        io->result = 0;
        break;
    default: UNREACHABLE();
    }
}

static void
keeper_nothing(RtPoint *point)
{
    (void)point;
}

static bool
keeper_watch(RtPoint *point, RtTask *task, bool on_finish)
{
    SimSocket *at = socket_of(point->fd);
    at->watcher = task;
    at->watch_finish = on_finish;
    return at->is_reset || at->is_finished;
}

static const RtKeeper sim_keeper = {
    .close = keeper_nothing, .shut = keeper_nothing, .watch = keeper_watch};

Err
rt__net_keep(RtPoint *point)
{
    rt_store(&point->keeper, (void *)(uintptr_t)&sim_keeper);
    return OK;
}

Err
rt__net_wait(RtPoint *point, u32 what, u64 deadline_ns, RtIo *io, u32 *ready_out)
{
    (void)io;
    SimSocket *at = socket_of(point->fd);
    RtTask *task = rt__self();
    for (;;) {
        if (rt_task_is_cancelled(task)) return ERR_INTERRUPT;
        *ready_out = ready_bits(at) & what;
        if (*ready_out != 0) return OK;
        if (deadline_ns <= rt__world->clock_ns) return ERR_TIMEOUT;
        u64 until_ns = deadline_ns;
        if (at->connected_ns > rt__world->clock_ns) until_ns = MIN_OF(until_ns, at->connected_ns);
        rt__world_wait(at, until_ns, RT_TASK_CANCEL);
    }
}

Err
rt__net_when_readable(RtPoint *point, u64 deadline_ns, RtTaskFn fn, void *arg)
{
    SimSocket *at = socket_of(point->fd);
    if (at->process->is_closing) return ERR_CLOSED;
    ASSERT(at->idle_fn == NULL);
    at->idle_fn = fn;
    at->idle_arg = arg;
    at->idle_ns = deadline_ns;
    if (ready_bits(at) & RT_SOCKET_READABLE) idle_start(at);
    return OK;
}

void
rt__net_wake_idle(SimNet *net, RtSimProcess *process)
{
    for (SimSocket *at = net->sockets; at != NULL; at = at->next) {
        if (at->process == process) idle_start(at);
    }
}

u64
rt__net_next_event(const SimNet *net)
{
    u64 next = net->messages != NULL ? net->messages->time_ns : RT_FOREVER;
    for (const SimSocket *at = net->sockets; at != NULL; at = at->next) {
        if (at->idle_fn != NULL) next = MIN_OF(next, at->idle_ns);
    }
    return next;
}

static void
message_arrive(SimMessage *message)
{
    SimSocket *to = message->to;
    to->in_flight -= message->count;
    if (message->kind == MESSAGE_RESET) {
        to->is_reset = true;
        to->count = 0;
    } else if (message->kind == MESSAGE_FINISH) {
        to->is_finished = true;
    } else {
        to->bytes = realloc(to->bytes, to->count + message->count);
        if (to->bytes == NULL) abort();
        memcpy(to->bytes + to->count, message->bytes, message->count);
        to->count += message->count;
    }
    bool is_loss = to->is_reset || (to->is_finished && to->watch_finish);
    if (to->watcher != NULL && is_loss && message->kind != MESSAGE_DATA)
        rt_task_cancel(to->watcher);
    idle_start(to);
    rt__world_wake(to);
}

void
rt__net_fire(SimNet *net)
{
    while (net->messages != NULL && net->messages->time_ns <= rt__world->clock_ns) {
        SimMessage *message = net->messages;
        net->messages = message->next;
        rt__world_note("arrive", (u64)message->to->fd, message->count);
        message_arrive(message);
        free(message);
    }
    for (SimSocket *at = net->sockets; at != NULL; at = at->next) {
        if (at->idle_fn != NULL && at->idle_ns <= rt__world->clock_ns) idle_start(at);
    }
}
