/*
 * sys.c -- the Linux backend: clock, entropy, and the two halves of io.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "rt/io.h"
#include "rt/time.h"

static void
linux_io(RtProcess *process, RtIo *io)
{
    (void)process;
    if (UNLIKELY(io->injected != 0))
        io->result = -io->injected;
    else
        io->result = io->op < RT_IO_RESOLVE ? rt__linux_file_io(io) : rt__linux_socket_io(io);
}

static u64
clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (u64)now.tv_sec * RT_NS_PER_S + (u64)now.tv_nsec;
}

static u64
linux_now_ns(RtProcess *process)
{
    (void)process;
    return clock_ns(CLOCK_MONOTONIC);
}

static i64
linux_wall_ns(RtProcess *process)
{
    (void)process;
    return (i64)clock_ns(CLOCK_REALTIME);
}

static void
linux_random(RtProcess *process, void *bytes, size_t count)
{
    u8 *at = bytes;
    (void)process;
    while (count > 0) {
        ssize_t got = getrandom(at, count, 0);
        if (got < 0 && errno == EINTR) continue;
        ASSERT(got > 0); /* Every supported kernel has it. */
        at += got;
        count -= (size_t)got;
    }
}

const RtSys rt__linux_sys = {
    .name = "linux",
    .io = linux_io,
    .now_ns = linux_now_ns,
    .wall_ns = linux_wall_ns,
    .random = linux_random,
};
