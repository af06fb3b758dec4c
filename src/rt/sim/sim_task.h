/*
 * sim_task.h -- private: what the rest of rt asks of the simulator's scheduler.
 */
#pragma once

#include "rt/lock.h"

u32 rt__sim_sleep(RtTask *task, u64 deadline_ns, u32 wanted);
void rt__sim_look(RtTask *base);
/* Let another task run, whatever its number of yield points. */
void rt__sim_switch(void);
/* Make `task` a simulated task that runs fn(arg) and sets `ended` as its last act. */
MUST_CHECK Err rt__sim_start(RtTask *task, RtTaskFn fn, void *arg, RtEvent *ended);
/* The simulated process's number. */
i64 rt__sim_pid(RtProcess *process);
