/*
 * loop_impl.h -- private: fibers, loops, and all the loops of a process.
 *
 * Who touches what: everything in RtLoop and in a fiber belongs to the loop's own thread, except
 * the atomics under "from anywhere".  Fibers and registrations are type-stable: their memory lives
 * as long as the loops, so a late wake finds a fiber, if maybe another run of it, and does no
 * harm.
 */
#pragma once

#include "rt/fiber/stack.h"
#include "rt/process_impl.h"

typedef struct RtFiber RtFiber;
typedef struct RtLoops RtLoops;
typedef struct RtJob RtJob;
typedef struct RtReg RtReg;
typedef struct RtPool RtPool;
typedef struct RtRing RtRing;

/* A place in the heap of timers. */
typedef struct RtTimer {
    u64 deadline_ns;
    u32 at; /* Index + 1; 0: not in the heap. */
    bool is_reg;
} RtTimer;

/* A place in a queue of what can run: a fiber, or a parked connection that shall get one. */
typedef struct RtReady {
    struct RtReady *next;
    bool is_reg;
} RtReady;

typedef struct RtQueue {
    RtReady *head, *tail;
} RtQueue;

/* Heavy fibers that share one place in the ring of turns. */
typedef struct RtShare {
    u64 key;
    u32 fibers; /* Those that belong to it; the common one does not count. */
    RtQueue queue;
    struct RtShare *next;      /* In the ring, while the queue is not empty. */
    struct RtShare *slot_next; /* In the table. */
} RtShare;
#define RT_SHARE_SLOTS 64

typedef enum RtFiberState {
    RT_FIBER_FREE,
    RT_FIBER_READY,
    RT_FIBER_RUNNING,
    RT_FIBER_SLEEPING,
    RT_FIBER_DONE,
} RtFiberState;

struct RtFiber {
    /* What a wake and a turn touch, on one cache line. */
    alignas(64) RtContext context;
    RtReady ready; /* In a queue. */
    RtTimer timer;
    u32 wanted; /* Bits of current->word that end the sleep. */
    u8 state;
    bool is_heavy;
    RtTask *current; /* What was current when it was switched out. */
    RtLoop *loop;

    u64 cpu_ns;
    const RtPoint *waits_for; /* Set while waiter of its registration. */
    RtIo *io;                 /* To be carried out in a batch; NULL: none, or it has been. */
    char *sp_low;             /* Lowest seen at a switch and by rt_stack_left(). */
    RtShare *share;           /* For its heavy turns. */
    RtFiber *next;            /* In the free list. */
    RtTask task;              /* The fiber's own. */
    RtStack stack;
    size_t charged;    /* Of its stack, in the process' account. */
    RtFiber *all_next; /* Every fiber of the loop, for shutdown and debuggers. */
    RtTaskFn fn;
    void *arg;
    RtGroup *group;
    /* From anywhere: */
    _Atomic u32 is_looked; /* 1 while in the inbox. */
    RtFiber *inbox_next;
};

/* A fiber asked for from elsewhere. */
struct RtJob {
    RtJob *next;
    RtTaskFn fn;
    void *arg;
    const char *name;
    RtGroup *group;
    u64 deadline_ns;
    u64 share;
};

struct RtLoop {
    RtLoops *all;
    u32 index;
    RtThread *thread;
    int epoll_fd, event_fd;
    RtContext context;   /* The thread's own. */
    void *handler_stack; /* See overflow.c. */
    RtFiber *running;
    RtQueue light;
    RtShare *ring_head, *ring_tail; /* Shares with heavy fibers ready. */
    RtShare common, *shares[RT_SHARE_SLOTS];
    i64 heavy_credit_ns; /* What heavy fibers are owed of their quarter; bounded. */
    RtFiber *free, *fibers;
    RtStacks stacks;
    RtTimer **timers;
    u32 timer_count, timer_capacity, timers_owed;
    RtJob *waiting, **waiting_tail; /* Jobs without a stack yet. */
    RtReg *free_regs, *regs;
    RtRing *ring;  /* For files; NULL: the pool. */
    RtRing *batch; /* For sockets; NULL: one by one. */
    u32 batched;   /* Requests in it. */
    u64 batch_since_ns;
    u64 now_ns; /* When the running fiber got its turn. */
    u64 longest_ns;
    u64 looked_cpu_ns; /* Check builds: processor time at the last look around. */
    u64 stretch_said_ns, stretches_unsaid; /* The last line about a long one, and those after it. */
    /* From anywhere: */
    alignas(64) _Atomic(RtFiber *) inbox;
    _Atomic(RtJob *) jobs;
    _Atomic(RtReg *) returned_regs; /* Closed elsewhere. */
    _Atomic u32 is_asleep;
    _Atomic u32 live; /* Fibers and jobs. */
    _Atomic u32 must_stop;
};

struct RtLoops {
    RtProcess *process;
    u32 count, fibers_max;
    _Atomic u32 is_closing;
    _Atomic u32 live;
    RtMutex shared_lock;     /* Protects shared_head. */
    _Atomic(RtJob *) shared; /* Children of groups, for whoever is idle. */
    RtJob *shared_tail;
    RtPool *pool;
    bool has_ring;
    RtLoop *loops[]; /* `count` of them. */
};

extern const RtSched rt__fiber_sched;

/* queue.c */
void rt__ready_light(RtLoop *loop, RtReady *ready);
void rt__ready_heavy(RtLoop *loop, RtShare *share, RtReady *ready);
/* What comes next, or NULL. */
RtReady *rt__ready_take(RtLoop *loop);
/* The share of this key, with one fiber more; never fails. */
RtShare *rt__share_get(RtLoop *loop, u64 key);
void rt__share_leave(RtLoop *loop, RtShare *share);

/* fiber.c */
RtFiber *rt__fiber_new(RtLoop *loop); /* NULL: no memory. */
/* Make it a new task; the caller runs it or makes it ready. */
void rt__fiber_start(RtFiber *fiber, const RtJob *job);
void rt__fiber_run(RtLoop *loop, RtFiber *fiber); /* One turn. */
void rt__fiber_ready(RtFiber *fiber);
/* On the loop's own thread: wake the fiber if what it waits for has come. */
void rt__fiber_look_here(RtFiber *fiber);
/* The same, whatever it waits for: it looks itself. */
void rt__fiber_go(RtFiber *fiber);
/* Fetch into the cache what a turn of it touches of its stack. */
void rt__fiber_touch(const RtFiber *fiber);
/* The running fiber's: sleep until rt__fiber_go(), deaf to all else. */
void rt__fiber_rest(RtFiber *fiber);
void rt__fibers_free(RtLoop *loop);

/* loop.c */
MUST_CHECK Err rt__loop_new(RtLoops *all, u32 index, RtLoop **loop_out);
void rt__loop_free(RtLoop *loop);
void rt__loop_main(void *arg);
void rt__loop_poke(RtLoop *loop);              /* Wake it if it sleeps.  Any thread. */
void rt__loop_post(RtLoop *loop, RtJob *job);  /* Any thread. */
void rt__loop_adopt(RtLoop *loop, RtJob *job); /* On its own thread; `live` counts it. */
/* Promise room for one more timer; ERR_NOMEM. */
MUST_CHECK Err rt__timers_owe(RtLoop *loop);
void rt__timer_add(RtLoop *loop, RtTimer *timer, u64 deadline_ns);
void rt__timer_remove(RtLoop *loop, RtTimer *timer);

/* overflow.c: name the fiber whose stack overflowed.  Nested; the last leave restores. */
void rt__overflow_enter(void);
void rt__overflow_leave(void);
/* The loop's thread: the stack that the handler runs on.  NULL: no memory, then no message. */
void *rt__overflow_stack_use(void);
void rt__overflow_stack_end(void *stack);

/* loops.c */
RtJob *rt__loops_take_shared(RtLoops *all);

/* regs.c: descriptors in epoll. */
Err rt__reg_keep(RtPoint *point);
Err rt__reg_wait(RtPoint *point, u32 what, u64 deadline_ns, RtIo *io, u32 *ready_out);
Err rt__reg_when_readable(RtPoint *point, u64 deadline_ns, RtTaskFn fn, void *arg);
/* With company, what a waiting fiber wants read is put into the batch. */
void rt__reg_event(RtReg *reg, u32 epoll_events, bool has_company);
/* Fetch into the cache what rt__reg_event() will touch; then what hangs on that. */
void rt__reg_touch(const RtReg *reg);
void rt__reg_touch_request(const RtReg *reg);
/* The turn of a parked connection: its fiber, started, or NULL for want of memory; then it comes
   again by itself. */
RtFiber *rt__reg_start(RtReady *ready);
void rt__reg_timed_out(RtTimer *timer);
void rt__regs_wake_idle(RtLoop *loop); /* All parked connections get their fiber. */
void rt__regs_free(RtLoop *loop);

/* pool.c */
MUST_CHECK Err rt__pool_start(RtLoops *all, u32 threads, RtPool **pool_out);
void rt__pool_stop(RtPool *pool);
/* The io of rt__fiber_sched. */
void rt__fiber_io(RtProcess *process, RtIo *io);

/* ring.c */
MUST_CHECK Err rt__ring_new(RtLoop *loop, RtRing **ring_out); /* ERR_UNSUPPORTED */
void rt__ring_free(RtRing *ring);
/* True if the ring took the request; the fiber slept until it was done. */
bool rt__ring_run(RtRing *ring, RtIo *io);
void rt__ring_reap(RtRing *ring);

/* batch.c: socket calls that go together.  On the loop's own thread. */
#define RT_BATCH_MAX 32 /* With more, sockets leave the cache between two calls for them. */
void rt__batch_start(RtLoop *loop);
void rt__batch_end(RtLoop *loop);
/* fiber->io shall be carried out; the fiber sleeps. */
void rt__batch_add(RtLoop *loop, RtFiber *fiber);
/* Carry out what is in the batch and wake its fibers. */
void rt__batch_flush(RtLoop *loop);
/* There is something in it, and it shall wait no longer. */
bool rt__batch_is_due(const RtLoop *loop);
/* True if the running fiber's request went with others; it slept until it was done. */
bool rt__batch_run(RtLoop *loop, RtIo *io);
