/*
 * sim_impl.h -- private: the world.
 *
 * Memory of the world comes from malloc, never from mem_alloc: that is the simulated processes'.
 */
#pragma once

#include "rt/fiber/stack.h"
#include "rt/process_impl.h"
#include "rt/rare.h"
#include "rt/sim/sim.h"

typedef struct SimTask SimTask;
typedef struct SimDisk SimDisk;
typedef struct SimNet SimNet;
typedef struct SimBlock SimBlock;
typedef struct World World;

typedef enum SimPurpose {
    SIM_SCHED,
    SIM_DISK,
    SIM_NET,
    SIM_WORK,
    SIM_CRASH,
    SIM_TIME,
    SIM_RNGS
} SimPurpose;

typedef enum SimState { SIM_RUNNABLE, SIM_SLEEPING, SIM_DONE } SimState;

struct SimTask {
    RtContext context;
    RtStack stack;
    RtTask own; /* The base, unless that is an RtThread's. */
    RtTask *base, *current;
    RtSimProcess *process;
    RtTaskFn fn;
    void *arg;
    RtEvent *ended; /* May be NULL. */
    RtGroup *group; /* May be NULL. */
    u64 id;
    u64 key; /* A name that does not depend on the order of spawns of others. */
    u64 children, yields, turns, sites, draws[SIM_RNGS];
    i64 priority;
    bool is_fiber; /* Spawned, not a thread. */
    SimState state;
    u32 wanted;        /* Bits of current->word that end the sleep. */
    u64 deadline_ns;   /* Or this time. */
    u64 stretch;       /* Yield points since others could last have had a turn on its loop. */
    const void *waits; /* Or rt__world_wake() of this. */
    RtIo *io;          /* In flight. */
    u8 *scratch;       /* Of that request; freed with the task. */
};

struct RtSimProcess {
    RtSimProcess *next;
    RtProcess *rt;
    RtSimHost *host;
    char name[32];
    i64 pid;
    u32 tasks;
    bool is_crashed, is_ended, is_closing;
    SimBlock *blocks; /* Its heap. */
    u64 block_count;
    u64 io_count, crash_io, crash_ns;
    RtSimCrash crash_how;
    u32 open_files, open_sockets;
};

struct RtSimHost {
    RtSimHost *next;
    char name[32];
    SimDisk *disk;
    u64 fault_counts[32];
};

struct World {
    RtSimOptions options;
    RtSimReport *report;
    Rng sched;
    u64 hash;
    u64 clock_ns;
    i64 wall_offset_ns;
    u32 faults_on;                                   /* Kinds that hit now. */
    u32 fault_rate;                                  /* Per 10,000. */
    u64 yield_cost_ns, net_latency_ns, disk_percent; /* Speeds of this seed's machine. */
    RtSimScheduler scheduler;
    u64 stretch_max; /* Yield points that a fiber may pass without a turn: 50 ms. */
    bool is_healed, is_over;

    SimTask **tasks; /* By id. */
    u32 task_count, task_capacity;
    SimTask *running, *frozen;
    RtContext context; /* The scheduler's. */
    RtStacks stacks;
    RtStack *free_stacks;
    u32 free_count, free_capacity;
    u64 next_task, change_points[3];
    i64 lowest;          /* Priority given last to a task that was put behind all others. */
    i64 quota;           /* Yield points until the next preemption. */
    u64 quota_was;       /* As drawn. */
    u64 draws[SIM_RNGS]; /* Made by nobody in particular. */
    u64 last_id, last_key, last_turns; /* Whose turn it was. */
    RtSimEvents recorded;
    const RtSimEvent **index; /* Of options.events. */
    u64 index_mask;
    RtSimProcess *dying; /* To be crashed once nothing of it runs. */

    RtSimProcess *processes;
    RtSimProcess *operator_process;
    RtSimHost *hosts;
    SimNet *net;
    i64 next_pid;
};

#define RT_SIM_RARE (1u << 31) /* As the value of a fault event: a switch of rare.h. */

extern World *rt__world;
extern const RtSched rt__sim_sched;
extern const RtSys rt__sim_sys;
extern const RtHooks rt__sim_hooks;
extern const MemSource rt__sim_heap;

void *rt__world_alloc(size_t bytes); /* Zeroed; aborts when real memory is out. */
u64 rt__world_draw(SimPurpose purpose, u64 below);
void rt__world_note(const char *what, u64 a, u64 b);
/* The run has failed; the first text stands. */
void rt__world_mark_failed(const char *format, ...) PRINTF_LIKE(1, 2);
/* True if a fault of this kind shall hit now; counts it against the host (may be NULL). */
bool rt__world_fault(RtSimHost *host, u32 kind);

/* events.c */
void rt__events_record(RtSimEventKind kind, u64 task, u64 number, u64 value);
void rt__events_index(World *world);
const RtSimEvent *rt__events_find(RtSimEventKind kind, u64 task, u64 number);

/* task.c: the scheduler. */
SimTask *
rt__sim_task_new(RtSimProcess *process, RtTask *base, RtTaskFn fn, void *arg, const char *name);
/* It runs on a loop, as far as rt_loop_current() is asked. */
void rt__sim_make_fiber(SimTask *task);
void rt__sim_task_drop(SimTask *task); /* Never runs again. */
void rt__sim_turns(void);              /* Until the driver ended or the run failed. */
void rt__sim_hook_yield(void);
void rt__sim_switch_out(void);
/* Sleep in virtual time, deaf to everything (I/O). */
void rt__world_pass(u64 duration_ns);
/* Sleep until rt__world_wake(key), the deadline or a wanted bit. */
void rt__world_wait(const void *key, u64 deadline_ns, u32 wanted);
void rt__world_wake(const void *key);

/* process.c */
RtSimProcess *rt__sim_process_new(RtSimHost *host, const char *name);
/* Now; the caller is the scheduler. */
void rt__sim_process_die(RtSimProcess *process, RtSimCrash how);
/* From a task of it: does not return. */
NORETURN void rt__sim_process_crash_self(RtSimProcess *process, RtSimCrash how);
void rt__sim_process_free(RtSimProcess *process);
void rt__sim_process_ended(RtSimProcess *process);

/* heap.c */
void rt__sim_heap_drop(RtSimProcess *process);

/* disk.c: contents and what survives. */
SimDisk *rt__disk_new(void);
SimDisk *rt__disk_copy(const SimDisk *disk);
void rt__disk_free(SimDisk *disk);
void rt__disk_power_cut(SimDisk *disk);
/* Descriptors and locks of a dead process go; its writes in flight end partly. */
void rt__disk_process_gone(SimDisk *disk, RtSimProcess *process);

/* disk_io.c */
void rt__disk_io(RtSimProcess *process, RtIo *io);
/* A request that its task will not finish: some of its sectors are written. */
void rt__disk_io_torn(RtSimProcess *process, const RtIo *io);

/* net.c */
SimNet *rt__net_new(void);
void rt__net_free(SimNet *net);
void rt__net_process_gone(SimNet *net, RtSimProcess *process);
void rt__net_io(RtSimProcess *process, RtIo *io);
Err rt__net_keep(RtPoint *point);
Err rt__net_wait(RtPoint *point, u32 what, u64 deadline_ns, RtIo *io, u32 *ready_out);
Err rt__net_when_readable(RtPoint *point, u64 deadline_ns, RtTaskFn fn, void *arg);
void rt__net_wake_idle(SimNet *net, RtSimProcess *process);
u64 rt__net_next_event(const SimNet *net); /* RT_FOREVER: none. */
void rt__net_fire(SimNet *net);
