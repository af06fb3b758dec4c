/*
 * fiber.h -- private: what the rest of rt asks of fibers.  `base` is a fiber's own task.
 */
#pragma once

#include "rt/task.h"

/* Sleep as rt__task_sleep; runs on the fiber, switches to its loop. */
u32 rt__fiber_sleep(RtTask *task, u64 deadline_ns, u32 wanted);
/* Some bit of the fiber's current task changed: its loop shall look.  Any thread. */
void rt__fiber_look(RtTask *base);
/* Give way if the slice is over; always. */
void rt__fiber_slice(RtTask *task, u64 now_ns);
void rt__fiber_yield(RtTask *task);
