/*
 * sys_sockets.c -- socket requests as Linux system calls; all sockets are non-blocking.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "rt/io.h"
#include "rt/net.h"

#define BACKLOG 1024
STATIC_ASSERT(sizeof(struct sockaddr_un) <= RT_ADDRESS_BYTES);

static void
address_show(RtAddress *address)
{
    const struct sockaddr *any = (const void *)address->bytes;
    char host[INET6_ADDRSTRLEN] = "?";
    if (any->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)any;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
        snprintf(address->text, sizeof(address->text), "%s:%u", host, ntohs(v4->sin_port));
    } else if (any->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)any;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
        snprintf(address->text, sizeof(address->text), "[%s]:%u", host, ntohs(v6->sin6_port));
    } else {
        address->is_unix = true;
        if (address->text[0] == 0) snprintf(address->text, sizeof(address->text), "unix");
    }
}

static i64
resolve_unix(const char *path, RtAddress *address)
{
    struct sockaddr_un *name = (void *)address->bytes;
    size_t bytes = strlen(path);
    if (bytes == 0 || bytes >= sizeof(name->sun_path)) return -ENAMETOOLONG;
    name->sun_family = AF_UNIX;
    memcpy(name->sun_path, path, bytes + 1);
    address->count = (u32)(offsetof(struct sockaddr_un, sun_path) + bytes + 1);
    snprintf(address->text, sizeof(address->text), "unix:%.120s", path);
    address_show(address);
    return 0;
}

/* Digits from 0 to 65535: getaddrinfo() would cut larger numbers. */
static bool
port_is_possible(const char *port)
{
    u32 value = 0;
    if (*port == 0) return false;
    for (; *port >= '0' && *port <= '9'; port++) {
        value = value * 10 + (u32)(*port - '0');
        if (value > 65535) return false;
    }
    return *port == 0;
}

/* Splits "host:port" and "[host]:port"; the host goes to `host`. */
static const char *
port_of(const char *text, char *host, size_t host_bytes)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL) return NULL;
    const char *from = text, *to = colon;
    if (text[0] == '[') {
        if (colon == text || colon[-1] != ']') return NULL;
        from++;
        to--;
    }
    if ((size_t)(to - from) >= host_bytes) return NULL;
    memcpy(host, from, (size_t)(to - from));
    host[to - from] = 0;
    return colon + 1;
}

static i64
resolve(const RtIo *io)
{
    RtAddress *address = io->address;
    *address = (RtAddress){0};
    if (strncmp(io->name, "unix:", 5) == 0) return resolve_unix(io->name + 5, address);
    char host[256];
    const char *port = port_of(io->name, host, sizeof(host));
    if (port == NULL || !port_is_possible(port)) return -EINVAL;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(host[0] != 0 ? host : NULL, port, &hints, &found);
    if (error != 0) return error == EAI_SYSTEM ? -errno : error == EAI_MEMORY ? -ENOMEM : -ENOENT;
    /* "localhost" may give ::1 first where only 127.0.0.1 works: prefer IPv4. */
    struct addrinfo *best = found;
    for (struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        if (at->ai_family == AF_INET) {
            best = at;
            break;
        }
    }
    memcpy(address->bytes, best->ai_addr, best->ai_addrlen);
    address->count = best->ai_addrlen;
    freeaddrinfo(found);
    address_show(address);
    return 0;
}

static int
family_of(const RtAddress *address)
{
    return ((const struct sockaddr *)(const void *)address->bytes)->sa_family;
}

/* A Unix path that nobody answers on is left over from a dead server. */
static bool
unix_is_stale(const RtAddress *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return false;
    int result = connect(fd, (const void *)address->bytes, address->count);
    bool is_stale = result != 0 && errno == ECONNREFUSED;
    close(fd);
    return is_stale;
}

static i64
bind_and_listen(int fd, const RtAddress *address, u32 mode)
{
    const struct sockaddr *name = (const void *)address->bytes;
    const char *path = ((const struct sockaddr_un *)(const void *)name)->sun_path;
    int one = 1;
    if (!address->is_unix) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, name, address->count) != 0) {
        if (errno != EADDRINUSE || !address->is_unix || !unix_is_stale(address)) return -errno;
        if (unlink(path) != 0 || bind(fd, name, address->count) != 0) return -errno;
    }
    /* Before listen(), so that nobody connects under looser permissions. */
    if (address->is_unix && chmod(path, mode & 0777) != 0) return -errno;
    return listen(fd, BACKLOG) == 0 ? 0 : -errno;
}

static i64
socket_listen(const RtIo *io)
{
    RtAddress *address = io->address;
    int fd = socket(family_of(address), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    i64 result = bind_and_listen(fd, address, io->flags);
    if (result < 0) {
        close(fd);
        return result;
    }
    socklen_t count = sizeof(address->bytes);
    if (!address->is_unix && getsockname(fd, (void *)address->bytes, &count) == 0)
        address_show(address);
    return fd;
}

static void
socket_prepare(int fd, bool is_unix)
{
    int one = 1, send_bytes = RT_SEND_BUFFER_BYTES;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes));
    if (!is_unix) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static i64
socket_accept(const RtIo *io)
{
    RtAddress *address = io->address;
    socklen_t count = sizeof(address->bytes);
    *address = (RtAddress){0};
    int fd = accept4(io->fd, (void *)address->bytes, &count, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return -errno;
    address->count = count;
    address_show(address);
    socket_prepare(fd, address->is_unix);
    return fd;
}

static i64
socket_connect(const RtIo *io)
{
    const RtAddress *address = io->address;
    int fd = socket(family_of(address), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -errno;
    socket_prepare(fd, address->is_unix);
    if (connect(fd, (const void *)address->bytes, address->count) != 0 && errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

static i64
connect_result(const RtIo *io)
{
    int error = 0;
    socklen_t count = sizeof(error);
    if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &count) != 0) return -errno;
    return -error;
}

static i64
socket_peer(const RtIo *io)
{
    struct pollfd poller = {.fd = io->fd, .events = POLLRDHUP};
    if (poll(&poller, 1, 0) <= 0) return RT_PEER_OPEN;
    if (poller.revents & (POLLERR | POLLNVAL)) return RT_PEER_RESET;
    if ((poller.revents & POLLHUP) && !(poller.revents & POLLRDHUP)) return RT_PEER_RESET;
    return poller.revents & (POLLRDHUP | POLLHUP) ? RT_PEER_FINISHED : RT_PEER_OPEN;
}

static i64
socket_ready(const RtIo *io)
{
    short events = (short)((io->flags & RT_SOCKET_READABLE ? POLLIN | POLLRDHUP : 0) |
                           (io->flags & RT_SOCKET_WRITABLE ? POLLOUT : 0));
    struct pollfd poller = {.fd = io->fd, .events = events};
    if (poll(&poller, 1, 0) <= 0) return 0;
    u32 ready = 0;
    if (poller.revents & ~POLLOUT) ready |= RT_SOCKET_READABLE;
    if (poller.revents & (POLLOUT | POLLERR | POLLHUP)) ready |= RT_SOCKET_WRITABLE;
    return ready & io->flags;
}

i64
rt__linux_socket_io(const RtIo *io)
{
    i64 result;
    switch (io->op) {
    case RT_IO_RESOLVE: return resolve(io);
    case RT_IO_LISTEN: return socket_listen(io);
    case RT_IO_ACCEPT: return socket_accept(io);
    case RT_IO_CONNECT: return socket_connect(io);
    case RT_IO_CONNECT_RESULT: return connect_result(io);
    /* Not recv() and send(): as cancellation points they cost more than the rest of the way. */
    case RT_IO_RECV:
        result = syscall(SYS_recvfrom, io->fd, io->vecs[0].iov_base, io->vecs[0].iov_len, 0, NULL,
                         NULL);
        break;
    case RT_IO_SEND:
        result = syscall(SYS_sendto, io->fd, io->vecs[0].iov_base, io->vecs[0].iov_len,
                         MSG_NOSIGNAL, NULL, 0);
        break;
    case RT_IO_SHUTDOWN:
        result = shutdown(io->fd, io->flags == 1 ? SHUT_WR : io->flags == 2 ? SHUT_RD : SHUT_RDWR);
        break;
    case RT_IO_CLOSE_SOCKET: close(io->fd); return 0;
    case RT_IO_PEER: return socket_peer(io);
    case RT_IO_READY: return socket_ready(io);
    default: UNREACHABLE();
    }
    return result < 0 ? -errno : result;
}
