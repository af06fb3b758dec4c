/*
 * loop.h -- fibers on loops, one loop a core; groups of parallel work.
 *
 * A fiber is a task with a stack of its own (256 KiB reserved, reused) that runs on one loop from
 * start to end.  Everything of rt works on it as on a thread; what would block parks instead.  A
 * fiber exists while there is work: an idle connection is parked without one by
 * rt_socket_when_readable() (net.h).
 *
 * Fairness: light fibers (under 2 ms of processor time so far) run before heavy ones, which are
 * guaranteed a quarter.  A slice is 1 ms, given up in rt_check().
 *
 * Only programs start loops (weftd, tests); the library does not.  Without loops rt_spawn() answers
 * ERR_CLOSED and groups run their work inline.
 */
#pragma once

#include "rt/lock.h"

typedef enum RtIoChoice { RT_IO_AUTO, RT_IO_POOL, RT_IO_RING } RtIoChoice;

typedef struct RtLoopsConfig {
    u32 loops;        /* 0: one a core. */
    u32 fibers_max;   /* Alive at once; 0: 20,000. */
    RtIoChoice io;    /* How fibers do file I/O; RT_IO_RING fails where the kernel refuses. */
    u32 pool_threads; /* For reads and writes; 0: two a core. */
} RtLoopsConfig;

/* Start the loops of the current process.  config NULL: all defaults.
   Errors: ERR_NOMEM, ERR_LIMIT, ERR_EXISTS (they run), ERR_UNSUPPORTED (RT_IO_RING refused). */
MUST_CHECK Err rt_loops_start(const RtLoopsConfig *config, ErrMsg *msg);
/*
 * Orderly end: from now on rt_spawn() and rt_socket_when_readable() answer ERR_CLOSED, and parked
 * connections get their fiber at once; wait up to drain_ns for the fibers to end; then cancel those
 * left, again and again, until they ended; stop the threads.  Called by a thread.
 */
void rt_loops_stop(u64 drain_ns);
u32 rt_loop_count(void); /* 0 when none run. */
/* "ring" or "pool": how fibers do file I/O now. */
const char *rt_loops_io_name(void);

#define RT_LOOP_HERE (U32_MAX - 1) /* The caller's loop; from a thread: as RT_LOOP_ANY. */
#define RT_LOOP_ANY  U32_MAX       /* The loop with the fewest fibers. */
/*
 * Run fn(arg) on a new fiber of loop `where` (an index or one of the above).  It may start before
 * this returns, never on the caller's stack.  `name` is borrowed for the fiber's life, for logs.
 * Errors: ERR_NOMEM, ERR_LIMIT (fibers_max), ERR_CLOSED (no loops, or they are stopping).
 */
MUST_CHECK Err rt_spawn(u32 where, RtTaskFn fn, void *arg, const char *name);
/* Index of the current loop, RT_LOOP_ANY on a thread. */
u32 rt_loop_current(void);

/*
 * The current fiber's share from here on, a number of the database it works for; 0, the first one,
 * is common.  Shares take turns in the heavy queue of a loop, so that a database with a hundred
 * long statements gets no more of it than one with one.  Children of groups inherit it.  Nothing
 * on a thread.
 */
void rt_share_set(u64 share);

/* Bytes of stack that the current fiber ever used (whole pages); 0 on a thread.  For tests. */
size_t rt_fiber_stack_used(void);

/*
 * Parallel work of one statement: children run in the heavy queue of whichever loop is idle, with
 * the parent's deadline; the parent waits for all before it goes on.  Zero-initialised is empty.
 * Without loops a child runs inside rt_group_spawn().
 */
typedef struct RtGroup {
    RtU32 latch;
    RtU32 running;
    RtU32 cancelled;
    void *children; /* Of those started; guarded by latch. */
} RtGroup;
MUST_CHECK Err rt_group_spawn(RtGroup *group, RtTaskFn fn, void *arg); /* ERR_NOMEM, ERR_LIMIT */
/* All children ended.  Not cancellable: when the parent is cancelled meanwhile, so are they.
 * [parks] */
void rt_group_wait(RtGroup *group);
/* Cancel the children, also those not yet started (they run and see it in rt_check()). */
void rt_group_cancel(RtGroup *group);
