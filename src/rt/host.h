/*
 * host.h -- facts about the machine and the process, environment, signals.
 */
#pragma once

#include "rt/task.h"

/* NULL if unset. */
const char *rt_env(const char *name);
/* The user's home directory or NULL. */
const char *rt_home(void);
i64 rt_pid(void);
/* Cores this process may use: affinity and the cgroup's cpu.max; at least 1. */
u32 rt_cpu_count(void);
/* Lower of physical memory and the cgroup's limit. */
u64 rt_memory_bytes(void);
/* Resident memory now; for metrics. */
u64 rt_memory_resident_bytes(void);
NORETURN void rt_exit(int status); /* Without running exit handlers. */

/*
 * Signals; for programs (weft, weftd), never for the library.
 *
 * rt_signal_on() installs a handler that calls `fn` in signal context: it may call
 * rt_task_cancel() and nothing else of rt.  rt_signal_block() in main before any thread starts
 * makes rt_signal_wait() deliver them in order to one waiting task instead.
 */
typedef enum RtSignal { RT_SIGINT, RT_SIGTERM, RT_SIGHUP, RT_SIGUSR1, RT_SIGNAL_COUNT_ } RtSignal;
typedef void (*RtSignalFn)(void *arg, RtSignal signal);
void rt_signal_on(RtSignal signal, RtSignalFn fn, void *arg); /* NULL: the default again. */
void rt_signal_block(u32 signal_mask);                        /* Bits 1 << RT_SIG*. */
MUST_CHECK Err rt_signal_wait(u32 signal_mask, u64 deadline_ns, RtSignal *signal_out); /* [parks] */
/* Give the pages that lie whole in this range of mem_alloc'd memory back to the system: what was in
   them is lost, and they cost nothing until they are written again. */
void rt_memory_give_back(void *at, u64 bytes);

/* SIGPIPE and SIGXFSZ ignored, descriptor limit raised to its maximum, the process' account capped
   at 60 % of rt_memory_bytes(): call first in main of a program, never in the library. */
void rt_program_init(void);
/* systemd's notification datagram, e.g. "READY=1"; nothing if not under systemd. */
void rt_notify(const char *text);
