/*
 * net_impl.h -- private: sockets and listeners as the waits see them.
 */
#pragma once

#include "rt/io.h"
#include "rt/net.h"

/* One descriptor that tasks wait for. */
typedef struct RtPoint {
    RtProcess *process;
    int fd;
    RtU32 is_shut;   /* Set by shutdown: waits end with ERR_CLOSED. */
    void *loop_part; /* The loop's registration of it, owned by fiber/. */
} RtPoint;

struct RtListener {
    RtPoint point;
    RtAddress address;
};

struct RtSocket {
    RtPoint point;
    RtAddress peer;
};

/* Wait until `what` (RT_SOCKET_*) is possible.  OK, ERR_TIMEOUT, ERR_INTERRUPT.  [parks] */
Err rt__point_wait(RtPoint *point, u32 what, u64 deadline_ns, u32 *ready_out);
/* Forget the descriptor before it is closed. */
void rt__point_close(RtPoint *point);
/* End all waits on it. */
void rt__point_shut(RtPoint *point);
