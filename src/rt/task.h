/*
 * task.h -- who is running: a thread of the host, a thread of ours, or a fiber on a loop.
 *
 * Engine code cannot tell which.  rt_self() works anywhere; on a host thread that never met us it
 * makes a task in thread-local memory (no exit hook, nothing to free).
 *
 * A library call may bring its own task: the connection embeds an RtTask and brackets each call
 * with rt_task_enter/rt_task_leave under the connection's mutex, so that rt_task_cancel() from
 * another thread or a signal handler hits exactly that connection's call.  Host callbacks are
 * bracketed the other way round (rt_task_leave before, rt_task_enter after).
 */
#pragma once

#include "rt/process.h"
#include "rt/word.h"

#define RT_FOREVER U64_MAX /* As a deadline: none.  0: do not wait at all. */

typedef enum RtTaskKind { RT_TASK_THREAD, RT_TASK_FIBER, RT_TASK_SIM } RtTaskKind;

/* Bits of RtTask.word. */
#define RT_TASK_TOKEN  1u /* A waker has decided this task's wait. */
#define RT_TASK_CANCEL 2u /* Asked to stop; sticky until rt_task_clear_cancel(). */

#define RT_LATCHES_MAX 8 /* Latches one task may hold at once. */

typedef struct RtLoop RtLoop;
typedef struct RtTask RtTask;
typedef struct RtSched RtSched; /* Private: how this kind of task waits. */
/* Memory belongs to whoever embeds it.  Fields are rt's; others use the functions. */
struct RtTask {
    RtU32 word;                      /* TOKEN | CANCEL; also the futex a thread sleeps on. */
    u8 kind;                         /* RtTaskKind */
    bool is_base;                    /* A fiber's or simulated task's own. */
    u16 latches;                     /* Latch-class locks held: parking is forbidden unless 0. */
    u16 guards;                      /* Epoch guards held: the same. */
    u16 latch_ranks[RT_LATCHES_MAX]; /* Check builds only. */
    u32 loop_number;                 /* Index of the loop + 1; 0 on a thread. */
    u32 checks_left, checks_every;   /* Calls of rt_check until and between looks at the clock. */
    const RtSched *sched;            /* NULL: a thread. */
    RtProcess *process;
    RtPtr base;   /* The fiber's or simulated task's own RtTask while entered on one, else NULL. */
    RtLoop *loop; /* The loop of a fiber, else NULL. */
    void *owner;  /* RtFiber, RtThread or simulated task. */
    char *stack_low; /* Lowest address that rt_stack_left() may hand out; NULL: unknown. */
    RtTask *group_next, *group_prev; /* Siblings in a group. */
    u64 checked_ns;                  /* On a fiber: when rt_check() last read the clock. */
    u64 deadline_ns;                 /* rt_check() fails after it; 0: none. */
    struct RtSocket *watched;        /* rt_socket_watch_peer() */
    u64 watched_ns;
    bool watch_finish;
    u64 id;           /* Unique in the process, for logs and deadlock edges. */
    const char *name; /* For people; may be NULL. */
};

/* The current task. */
RtTask *rt_self(void);
/* Who runs the current task: the thread or fiber itself, the same inside of rt_task_enter() and
   outside.  Only to be compared. */
const void *rt_runner(void);

/* Prepare a task embedded in a connection.  No resources, no end function. */
void rt_task_init(RtTask *task, RtProcess *process, const char *name);
/* Make `task` current, on whatever is running (thread, fiber, simulated task).  Returns what was
   current, for rt_task_leave().  Holds no latch and no guard. */
RtTask *rt_task_enter(RtTask *task);
void rt_task_leave(RtTask *previous);

/*
 * Ask a task to stop: every cancellable wait of it returns ERR_INTERRUPT (parking: RT_CANCELLED)
 * and rt_check() too, until rt_task_clear_cancel().  Async-signal-safe for thread tasks.  The task
 * must still exist.
 */
void rt_task_cancel(RtTask *task);
void rt_task_clear_cancel(RtTask *task);
bool rt_task_is_cancelled(const RtTask *task);
/* rt_check() and cancellable waits of this task end after this monotonic time; 0: none.
   Returns the former value. */
u64 rt_task_set_deadline(RtTask *task, u64 deadline_ns);

/*
 * To be called by every long kernel at least once a millisecond of work: ERR_INTERRUPT when
 * cancelled, ERR_TIMEOUT past the task's deadline, else OK after giving other fibers a turn if
 * this one's slice is over.  Cheap (a load and a counter): how often it reads the clock follows
 * from how much time passes between calls, on a fiber at least every 32nd, on a thread every 64th.
 */
MUST_CHECK Err rt_check(void);
/* The same for who cannot stop half way: only the turn for others. */
static inline void
rt_give_turn(void)
{
    Err ignored = rt_check();
    (void)ignored;
}
/* Let others run first (sched_yield on a thread). */
void rt_yield(void);
/* One round of a busy wait for a latch.  `*rounds` starts at 0. */
void rt_spin(u32 *rounds);

/* Bytes of stack that may still be used below the caller, 0 when none.  Recursion controlled by
   SQL asks it and fails with its depth error below RT_STACK_RESERVE. */
size_t rt_stack_left(void);
#define RT_STACK_RESERVE ((size_t)24 << 10)

/*
 * Threads of our own.  In the simulator they are simulated tasks.  Signals are blocked in them.
 * rt_thread_start: on OK the caller owns *thread_out and ends it with rt_thread_join().
 * Errors: ERR_NOMEM, ERR_LIMIT, ERR_FOREIGN.
 */
typedef struct RtThread RtThread;
typedef void (*RtTaskFn)(void *arg);
MUST_CHECK Err rt_thread_start(RtProcess *process, RtTaskFn fn, void *arg, const char *name,
                               RtThread **thread_out);
/* Wait for its end and free it.  NULL is allowed.  [parks, not cancellable] */
void rt_thread_join(RtThread *thread);
RtTask *rt_thread_task(RtThread *thread);

/* Epoch guards (store): counted so that parking inside one is caught. */
static inline void
rt_guard_enter(RtTask *task)
{
    task->guards++;
}
static inline void
rt_guard_leave(RtTask *task)
{
    DCHECK(task->guards > 0);
    task->guards--;
}
