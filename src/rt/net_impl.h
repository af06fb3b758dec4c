/*
 * net_impl.h -- private: sockets and listeners as the waits see them.
 */
#pragma once

#include "rt/io.h"
#include "rt/net.h"

typedef struct RtPoint RtPoint;

/* Whoever registered a point (a loop, the simulator) hears of its end. */
typedef struct RtKeeper {
    void (*close)(RtPoint *point); /* Before the descriptor is closed. */
    void (*shut)(RtPoint *point);  /* After is_shut: all waits shall end. */
    /* NULL task: end.  True: the peer has finished or gone already, so look. */
    bool (*watch)(RtPoint *point, RtTask *task, bool on_finish);
} RtKeeper;

/* What the last read tells of the next one, where a loop reports what comes. */
typedef enum RtDrained {
    RT_MAY_HAVE_MORE,
    RT_DRAINED,      /* It found fewer bytes than it asked for, or none. */
    RT_DRAINED_TOLD, /* The same, and a read that would not wait was refused because of it. */
} RtDrained;

/* One descriptor that tasks wait for. */
struct RtPoint {
    RtProcess *process;
    int fd;
    RtU32 is_shut;     /* Set by shutdown: waits end. */
    RtPtr keeper;      /* const RtKeeper, or NULL. */
    RtPtr reg;         /* The keeper's part. */
    RtDrained drained; /* The reading task's own. */
};

struct RtListener {
    RtPoint point;
    RtAddress address;
};

struct RtSocket {
    RtPoint point;
    RtAddress peer;
    bool is_full; /* The last write found no room for all: a send buffer is charged.  The writer's.
                   */
};

/* Wait until `what` (RT_SOCKET_*) is possible.  OK, ERR_TIMEOUT, ERR_INTERRUPT.  [parks] */
Err rt__point_wait(RtPoint *point, u32 what, u64 deadline_ns, u32 *ready_out);
/* The same for one who will then carry out `io` (NULL: nothing known).  Who watches the point may
   do it as soon as it is possible; else io->result is as before. */
Err rt__point_wait_with(RtPoint *point, u32 what, u64 deadline_ns, RtIo *io, u32 *ready_out);
/* Forget the descriptor before it is closed. */
void rt__point_close(RtPoint *point);
/* End all waits on it. */
void rt__point_shut(RtPoint *point);
