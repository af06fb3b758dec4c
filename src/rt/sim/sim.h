/*
 * sim.h -- the simulator: a seeded world of processes, disks and a network, for tests.
 *
 * rt_sim_run() runs `driver` as the first task of an operator process that never crashes.  The
 * driver makes hosts (each with a disk), starts processes on them, crashes and restarts them, and
 * checks a model.  All tasks of all processes run on the calling thread, one at a time; every
 * choice comes from the seed.  All of rt works inside; the engine under test notices nothing.
 *
 * Rules for drivers: no real clock, random, thread or file.  State that must survive the crash of
 * a simulated process belongs to the driver: code of a simulated process may read and write the
 * driver's memory, but never allocates or frees it, and holds no lock of it where it may crash.
 *
 * Only check builds have yield points at shared words; in others tasks change where they wait.
 */
#pragma once

#include "rt/loop.h"

/* Kinds of disk and network faults; bits of RtSimOptions.faults. */
#define RT_SIM_EIO_READ    (1u << 0)  /* A read fails, once. */
#define RT_SIM_EIO_WRITE   (1u << 1)  /* A write fails; any part of it may be there. */
#define RT_SIM_SYNC_FAILS  (1u << 2)  /* A sync fails once; what it covered may be lost for good. */
#define RT_SIM_NO_SPACE    (1u << 3)  /* ENOSPC at write, preallocate, create. */
#define RT_SIM_SHORT       (1u << 4)  /* Short transfers and EINTR. */
#define RT_SIM_SLOW        (1u << 5)  /* One I/O takes up to 30 s. */
#define RT_SIM_BIT_ROT     (1u << 6)  /* A bit of a stored file flips. */
#define RT_SIM_MISDIRECTED (1u << 7)  /* A read returns another place, once. */
#define RT_SIM_NET_SPLIT   (1u << 8)  /* Messages arrive in pieces and late. */
#define RT_SIM_NET_RESET   (1u << 9)  /* Connections break. */
#define RT_SIM_EMFILE      (1u << 10) /* No descriptor for open, accept, connect. */
#define RT_SIM_NO_MEMORY   (1u << 11) /* An allocation fails now and then. */
#define RT_SIM_GENTLE      (RT_SIM_SHORT | RT_SIM_SLOW | RT_SIM_NET_SPLIT)
#define RT_SIM_ALL         ((1u << 12) - 1)

typedef enum RtSimScheduler {
    RT_SIM_ANY_SCHEDULER, /* Drawn from the seed. */
    RT_SIM_RANDOM_WALK,
    RT_SIM_PRIORITIES, /* PCT: random priorities, a few change points. */
    RT_SIM_LONG_SLICES,
    RT_SIM_FROZEN_TASK, /* One task stands still while others can run. */
} RtSimScheduler;

/* A decision that made a run differ from the plain one (tasks in turn, no preemption, no fault).
   `task` is a stable name of the task, `number` that task's own count of such moments. */
typedef enum RtSimEventKind {
    RT_SIM_EVENT_PREEMPT, /* At this yield point. */
    RT_SIM_EVENT_PICK,    /* After this turn, task `value` came next. */
    RT_SIM_EVENT_FAULT,   /* At this draw; value: the kind of fault. */
} RtSimEventKind;
typedef struct RtSimEvent {
    RtSimEventKind kind;
    u64 task, number, value;
} RtSimEvent;
typedef struct RtSimEvents {
    RtSimEvent *list;
    u64 count, capacity;
} RtSimEvents;

typedef struct RtSimOptions {
    u64 seed;
    u32 faults;          /* Kinds allowed; each seed switches about half of them on. */
    u32 fault_per_10000; /* Rate per opportunity of each kind that is on; 0: drawn. */
    RtSimScheduler scheduler;
    bool is_perturbed;         /* Other addresses, heap fill, hash seeds and directory order. */
    bool is_verbose;           /* Trace to standard error. */
    u64 switches_max;          /* More is a livelock; 0: 20 million. */
    const RtSimEvents *events; /* Replay exactly these decisions instead of drawing them. */
} RtSimOptions;

typedef struct RtSimReport {
    bool is_failed;
    u64 trace_hash;
    u64 switches, preemptions, yields, io_calls, faults, crashes, messages;
    u64 clock_ns;
    char failure[1024]; /* Why, if is_failed. */
    RtSimEvents events; /* The decisions of a failed run; rt_sim_events_free(). */
} RtSimReport;

/* Runs to the end of `driver`, or to the first failure.  Not re-entrant. */
void rt_sim_run(const RtSimOptions *options, RtTaskFn driver, void *arg, RtSimReport *report_out);
/* The same twice, the second time perturbed; differing trace hashes are a failure. */
void rt_sim_prove(const RtSimOptions *options, RtTaskFn driver, void *arg, RtSimReport *report_out);

/*
 * Run, and if it fails leave out decisions as long as it still fails, in at most runs_max runs.
 * True: the report and its events are those of the smallest failing run found.  A failure that
 * aborts the program cannot be shrunk.
 */
MUST_CHECK bool rt_sim_shrink(const RtSimOptions *options, RtTaskFn driver, void *arg, u32 runs_max,
                              RtSimReport *report_out);
void rt_sim_events_free(RtSimEvents *events);
/* As text, one a line; false: the file cannot be written / read. */
MUST_CHECK bool rt_sim_events_write(const RtSimEvents *events, const char *path);
MUST_CHECK bool rt_sim_events_read(const char *path, RtSimEvents *events_out);

/* ---- inside a run ---- */
bool rt_sim_is_running(void);
/* The model found a mistake: the run ends as failed.  Does not return. */
NORETURN void rt_sim_fail(const char *format, ...) PRINTF_LIKE(1, 2);
/* Numbers for the workload, independent of all other draws. */
u64 rt_sim_draw(u64 below);
/* Add an observation (a statement's result) to the trace. */
void rt_sim_trace(const char *what, u64 value);

typedef struct RtSimHost RtSimHost;
typedef struct RtSimProcess RtSimProcess;

/* A machine with an empty disk.  Lives until the run ends. */
RtSimHost *rt_sim_host(const char *name);
/* Another one with the same files, all of it durable: crash images from one history. */
RtSimHost *rt_sim_host_copy(const RtSimHost *host, const char *name);
/*
 * Start a process on the host; fn(arg) is its main.  It has ended when main returned and no task
 * of it is left.  rt_spawn() and groups work as if loops were running.
 */
RtSimProcess *rt_sim_start(RtSimHost *host, const char *name, RtTaskFn fn, void *arg);
typedef enum RtSimCrash {
    RT_SIM_KILL,     /* Finished writes stay; those in flight end partly. */
    RT_SIM_POWER_CUT /* All processes of the host die; unsynced writes may be lost or torn. */
} RtSimCrash;
/* Crash it now.  Its tasks, heap, sockets and locks are gone. */
void rt_sim_crash(RtSimProcess *process, RtSimCrash how);
/* Crash it at its nth I/O call from now (0: never). */
void rt_sim_crash_at_io(RtSimProcess *process, u64 nth, RtSimCrash how);
/* Crash it after this much virtual time. */
void rt_sim_crash_after(RtSimProcess *process, u64 delay_ns, RtSimCrash how);
u64 rt_sim_io_count(const RtSimProcess *process);
bool rt_sim_has_ended(const RtSimProcess *process);
/* Wait for its end.  True: it ended by itself (and left no block and no handle behind, else the
   run fails); false: it crashed.  Frees the handle. */
bool rt_sim_wait(RtSimProcess *process);
/* Ask all its tasks to stop (rt_task_cancel on each). */
void rt_sim_interrupt(RtSimProcess *process);

/* From now on no faults and no preemption: the liveness phase. */
void rt_sim_heal(void);
/* The kinds that are on; exactly these kinds from now on. */
u32 rt_sim_faults_on(void);
void rt_sim_faults(u32 faults);
/* How often faults of these kinds have hit this host's disk: what the model must excuse. */
u64 rt_sim_fault_count(const RtSimHost *host, u32 kinds);

/* The disk by hand.  Paths from "/".  False, or 0: no such file. */
bool rt_sim_disk_get(RtSimHost *host, const char *path, u8 **bytes_out, u64 *size_out);
void rt_sim_disk_put(RtSimHost *host, const char *path, const void *bytes, u64 size);
u64 rt_sim_disk_size(RtSimHost *host, const char *path);
bool rt_sim_disk_flip(RtSimHost *host, const char *path, u64 bit);
