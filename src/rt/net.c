/*
 * net.c -- sockets over the backend: try, and wait when it would block.
 */
#include "rt/net.h"

#include <errno.h>

#include "rt/net_impl.h"
#include "rt/process_impl.h"
#include "rt/rare.h"
#include "rt/time.h"

#define SOCKET_BYTES ((u64)4 << 10) /* The kernel's part of an idle one, and ours. */

static Err
fail(ErrMsg *msg, i64 result, const char *what, const char *address)
{
    int error = (int)-result;
    return err_set(msg, rt__errno_err(error, ERR_IO), "%s %s: %s", what, address,
                   rt__errno_text(error));
}

static Err
fail_wait(ErrMsg *msg, Err err, const char *what, const char *address)
{
    return err_set(msg, err, "%s %s: %s", what, address, err_text(err));
}

/* Interrupted calls are repeated here. */
static i64
call(RtProcess *process, RtIo *io)
{
    do {
        rt__io(process, io);
    } while (io->result == -EINTR);
    return io->result;
}

static Err
resolve(RtProcess *process, const char *text, RtAddress *address, ErrMsg *msg)
{
    if (rt_process_is_foreign(process)) return err_set(msg, ERR_FOREIGN, NULL);
    i64 result = call(process, &(RtIo){.op = RT_IO_RESOLVE, .name = text, .address = address});
    if (result == -EINVAL)
        return err_set(msg, ERR_MISUSE, "\"%s\" is not host:port or unix:/path", text);
    return result < 0 ? fail(msg, result, "find", text) : OK;
}

/* Count one more socket, and what the kernel keeps for it. */
static Err
socket_count_in(RtProcess *process)
{
    Err err = rt__count_in(&process->sockets, &process->sockets_max);
    if (err != OK) return err;
    err = mem_account_charge(&process->parts[RT_PART_SOCKETS], SOCKET_BYTES);
    if (err != OK) rt__count(&process->sockets, (u64)-1);
    return err;
}

static void
socket_count_out(RtProcess *process)
{
    mem_account_release(&process->parts[RT_PART_SOCKETS], SOCKET_BYTES);
    rt__count(&process->sockets, (u64)-1);
}

Err
rt_listen(const char *address, u32 mode, RtListener **listener_out, ErrMsg *msg)
{
    RtProcess *process = rt__self()->process;
    *listener_out = NULL;
    Err err = socket_count_in(process);
    if (err == ERR_LIMIT) return err_set(msg, err, "listen on %s: too many connections", address);
    if (err != OK) return err_set(msg, err, NULL);
    RtListener *listener = MEM_NEW(RtListener);
    if (listener == NULL) {
        socket_count_out(process);
        return err_set(msg, ERR_NOMEM, NULL);
    }
    err = resolve(process, address, &listener->address, msg);
    if (err == OK) {
        i64 fd = call(process,
                      &(RtIo){.op = RT_IO_LISTEN, .address = &listener->address, .flags = mode});
        listener->point = (RtPoint){.process = process, .fd = (int)fd};
        if (fd < 0) err = fail(msg, fd, "listen on", address);
    }
    if (err != OK) {
        socket_count_out(process);
        mem_free(listener);
        return err;
    }
    *listener_out = listener;
    return OK;
}

const char *
rt_listener_address(const RtListener *listener)
{
    return listener->address.text;
}

static Err
socket_make(RtProcess *process, int fd, const RtAddress *peer, RtSocket **socket_out, ErrMsg *msg)
{
    Err err = socket_count_in(process);
    RtSocket *socket = err == OK ? MEM_NEW(RtSocket) : NULL;
    if (socket == NULL) {
        if (err == OK) socket_count_out(process);
        (void)rt__io(process, &(RtIo){.op = RT_IO_CLOSE_SOCKET, .fd = fd});
        if (err != ERR_LIMIT) return err_set(msg, ERR_NOMEM, NULL);
        return err_set(msg, err, "too many connections");
    }
    socket->point = (RtPoint){.process = process, .fd = fd};
    socket->peer = *peer;
    *socket_out = socket;
    return OK;
}

/* Errors of a connection that died before it was accepted: take the next one. */
static bool
accept_again(i64 result)
{
    return result == -EINTR || result == -ECONNABORTED || result == -EPROTO;
}

Err
rt_accept(RtListener *listener, u64 deadline_ns, RtSocket **socket_out, ErrMsg *msg)
{
    RtPoint *point = &listener->point;
    const char *address = listener->address.text;
    RtAddress peer;
    *socket_out = NULL;
    if (rt_process_is_foreign(point->process)) return err_set(msg, ERR_FOREIGN, NULL);
    for (;;) {
        if (rt_load_acquire(&point->is_shut))
            return err_set(msg, ERR_CLOSED, "accept on %s: shut down", address);
        i64 fd = rt__io(point->process,
                        &(RtIo){.op = RT_IO_ACCEPT, .fd = point->fd, .address = &peer});
        if (fd >= 0) return socket_make(point->process, (int)fd, &peer, socket_out, msg);
        if (accept_again(fd)) {
            REACHED("net: the connection was gone before its accept");
            continue;
        }
        if (fd != -EAGAIN) return fail(msg, fd, "accept on", address);
        u32 ready;
        Err err = rt__point_wait(point, RT_SOCKET_READABLE, deadline_ns, &ready);
        if (err != OK) return fail_wait(msg, err, "accept on", address);
    }
}

void
rt_listener_shutdown(RtListener *listener)
{
    rt__point_shut(&listener->point);
}

void
rt_listener_close(RtListener *listener)
{
    if (listener == NULL) return;
    RtProcess *process = listener->point.process;
    if (!rt_process_is_foreign(process)) {
        if (listener->address.is_unix) {
            (void)rt__io(process, &(RtIo){.op = RT_IO_UNLINK,
                                          .fd = -1,
                                          .name = listener->address.text + strlen("unix:")});
        }
        rt__point_close(&listener->point);
        socket_count_out(process);
    }
    mem_free(listener);
}

static Err
connect_finish(RtSocket *socket, u64 deadline_ns, const char *address, ErrMsg *msg)
{
    u32 ready;
    Err err = rt__point_wait(&socket->point, RT_SOCKET_WRITABLE, deadline_ns, &ready);
    if (err != OK) return fail_wait(msg, err, "connect to", address);
    i64 result = call(socket->point.process,
                      &(RtIo){.op = RT_IO_CONNECT_RESULT, .fd = socket->point.fd});
    return result < 0 ? fail(msg, result, "connect to", address) : OK;
}

Err
rt_connect(const char *address, u64 deadline_ns, RtSocket **socket_out, ErrMsg *msg)
{
    RtProcess *process = rt__self()->process;
    RtAddress peer;
    *socket_out = NULL;
    Err err = resolve(process, address, &peer, msg);
    if (err != OK) return err;
    i64 fd = call(process, &(RtIo){.op = RT_IO_CONNECT, .address = &peer});
    if (fd < 0) return fail(msg, fd, "connect to", address);
    RtSocket *socket = NULL;
    err = socket_make(process, (int)fd, &peer, &socket, msg);
    if (err != OK) return err;
    err = connect_finish(socket, deadline_ns, address, msg);
    if (err != OK) {
        rt_socket_close(socket);
        return err;
    }
    *socket_out = socket;
    return OK;
}

static i64
socket_send(RtSocket *socket, const void *bytes, size_t count, bool may_park)
{
    struct iovec vec = {(void *)(uintptr_t)bytes, count};
    RtIo io = {.op = RT_IO_SEND,
               .fd = socket->point.fd,
               .vecs = &vec,
               .vec_count = 1,
               .may_park = may_park};
    return call(socket->point.process, &io);
}

Err
rt_socket_read(RtSocket *socket, void *bytes, size_t count, u64 deadline_ns, size_t *got_out,
               ErrMsg *msg)
{
    *got_out = 0;
    ASSERT(count > 0);
    RtPoint *point = &socket->point;
    if (rt_process_is_foreign(point->process)) return err_set(msg, ERR_FOREIGN, NULL);
    /* A loop that watches reports whatever comes after a short read: no need to ask the kernel
       first.  Who asks again and again without waiting gets the kernel's word every other time. */
    bool waits_first = point->drained == RT_DRAINED ||
                       (point->drained == RT_DRAINED_TOLD && deadline_ns != 0);
    point->drained = waits_first ? RT_DRAINED_TOLD : RT_MAY_HAVE_MORE;
    struct iovec vec = {bytes, count};
    for (;;) {
        RtIo io = {.op = RT_IO_RECV,
                   .fd = point->fd,
                   .vecs = &vec,
                   .vec_count = 1,
                   .may_park = deadline_ns != 0,
                   .result = RT_IO_UNDONE};
        if (waits_first) {
            u32 ready;
            /* Armed faults count calls: then none is made that may find nobody waiting. */
            RtIo *early = rt__fault_is_armed() ? NULL : &io;
            Err err = rt__point_wait_with(point, RT_SOCKET_READABLE, deadline_ns, early, &ready);
            if (err != OK) return fail_wait(msg, err, "read from", socket->peer.text);
        }
        bool is_done = io.result != RT_IO_UNDONE && io.result != -EINTR;
        i64 got = is_done ? io.result : call(point->process, &io);
        bool is_empty = got == -EAGAIN || (got > 0 && (size_t)got < count);
        bool is_kept = rt_load_relaxed(&point->keeper) != NULL;
        point->drained = is_empty && is_kept ? RT_DRAINED : RT_MAY_HAVE_MORE;
        if (got >= 0) {
            *got_out = (size_t)got;
            return OK;
        }
        if (got != -EAGAIN) return fail(msg, got, "read from", socket->peer.text);
        waits_first = true;
    }
}

/* A peer that does not read makes the kernel hold a whole send buffer for us. */
static void
send_buffer_note(RtSocket *socket, bool is_full)
{
    if (LIKELY(socket->is_full == is_full)) return;
    socket->is_full = is_full;
    if (is_full)
        mem_account_add(&socket->point.process->parts[RT_PART_SOCKETS], RT_SEND_BUFFER_BYTES);
    else
        mem_account_release(&socket->point.process->parts[RT_PART_SOCKETS], RT_SEND_BUFFER_BYTES);
}

static Err
write_some(RtSocket *socket, const void *bytes, size_t count, bool may_park, size_t *written_out,
           ErrMsg *msg)
{
    *written_out = 0;
    if (rt_process_is_foreign(socket->point.process)) return err_set(msg, ERR_FOREIGN, NULL);
    if (count == 0) return OK;
    if (count > 1 && rt_rare("net: room for one byte")) count = 1;
    i64 done = socket_send(socket, bytes, count, may_park);
    send_buffer_note(socket, done < 0 ? done == -EAGAIN : (size_t)done < count);
    if (done == -EAGAIN) return OK;
    if (done < 0) return fail(msg, done, "write to", socket->peer.text);
    *written_out = (size_t)done;
    return OK;
}

Err
rt_socket_write_some(RtSocket *socket, const void *bytes, size_t count, size_t *written_out,
                     ErrMsg *msg)
{
    return write_some(socket, bytes, count, false, written_out, msg);
}

Err
rt_socket_write(RtSocket *socket, const void *bytes, size_t count, u64 deadline_ns, ErrMsg *msg)
{
    const u8 *at = bytes;
    while (count > 0) {
        size_t done;
        Err err = write_some(socket, at, count, true, &done, msg);
        if (err != OK) return err;
        at += done;
        count -= done;
        if (done > 0 || count == 0) continue;
        REACHED("net: a writer waits for room");
        u32 ready;
        err = rt__point_wait(&socket->point, RT_SOCKET_WRITABLE, deadline_ns, &ready);
        if (err != OK) return fail_wait(msg, err, "write to", socket->peer.text);
    }
    return OK;
}

Err
rt_socket_wait(RtSocket *socket, u32 what, u64 deadline_ns, u32 *ready_out)
{
    RtPoint *point = &socket->point;
    *ready_out = 0;
    if (rt_process_is_foreign(point->process)) return ERR_FOREIGN;
    /* What this wait reports is taken from the loop's notes: the next read tries at once. */
    if (what & RT_SOCKET_READABLE) point->drained = RT_MAY_HAVE_MORE;
    if (rt_load_acquire(&point->is_shut)) {
        *ready_out = what;
        return OK;
    }
    /* A loop hears of changes only, and this one may have been heard: look first. */
    i64 ready = rt__io(point->process, &(RtIo){.op = RT_IO_READY, .fd = point->fd, .flags = what});
    if (ready > 0) {
        *ready_out = (u32)ready;
        return OK;
    }
    return rt__point_wait(&socket->point, what, deadline_ns, ready_out);
}

Err
rt_socket_when_readable(RtSocket *socket, u64 deadline_ns, RtTaskFn fn, void *arg)
{
    RtProcess *process = socket->point.process;
    const RtHooks *hooks = rt__hooks(process);
    if (rt_process_is_foreign(process)) return ERR_FOREIGN;
    if (hooks == NULL) return ERR_CLOSED;
    return hooks->when_readable(&socket->point, deadline_ns, fn, arg);
}

RtPeer
rt_socket_peer(RtSocket *socket)
{
    return (RtPeer)rt__io(socket->point.process, &(RtIo){.op = RT_IO_PEER, .fd = socket->point.fd});
}

void
rt_socket_watch_peer(RtSocket *socket, RtTask *task, bool on_finish)
{
    RtSocket *former = task->watched;
    const RtKeeper *keeper;
    if (former != NULL && (keeper = rt_load_acquire(&former->point.keeper)) != NULL)
        keeper->watch(&former->point, NULL, false);
    task->watched = socket;
    task->watch_finish = on_finish;
    task->watched_ns = 0;
    if (socket == NULL) return;
    /* Without a keeper, for want of memory too, rt_check() looks now and then. */
    if (task->sched != NULL && task->sched->point_keep(&socket->point) != OK) return;
    keeper = rt_load_acquire(&socket->point.keeper);
    if (keeper == NULL || !keeper->watch(&socket->point, task, on_finish)) return;
    /* It has been lost before the watch began, and no event will tell. */
    RtPeer peer = rt_socket_peer(socket);
    if (peer == RT_PEER_RESET || (peer == RT_PEER_FINISHED && on_finish)) rt_task_cancel(task);
}

void
rt_socket_shutdown_write(RtSocket *socket)
{
    (void)rt__io(socket->point.process,
                 &(RtIo){.op = RT_IO_SHUTDOWN, .fd = socket->point.fd, .flags = 1});
}

void
rt_socket_shutdown_read(RtSocket *socket)
{
    (void)rt__io(socket->point.process,
                 &(RtIo){.op = RT_IO_SHUTDOWN, .fd = socket->point.fd, .flags = 2});
}

void
rt_socket_shutdown(RtSocket *socket)
{
    rt__point_shut(&socket->point);
}

void
rt_socket_close(RtSocket *socket)
{
    if (socket == NULL) return;
    if (!rt_process_is_foreign(socket->point.process)) {
        rt__point_close(&socket->point);
        send_buffer_note(socket, false);
        socket_count_out(socket->point.process);
    }
    mem_free(socket);
}

const char *
rt_socket_peer_address(const RtSocket *socket)
{
    return socket->peer.text;
}

bool
rt_socket_is_unix(const RtSocket *socket)
{
    return socket->peer.is_unix;
}

bool
rt_socket_is_loopback(const RtSocket *socket)
{
    const char *text = socket->peer.text;
    return socket->peer.is_unix || strncmp(text, "127.", 4) == 0 ||
           strncmp(text, "[::1]", 5) == 0 || strncmp(text, "[::ffff:127.", 12) == 0;
}
