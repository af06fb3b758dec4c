/*
 * time.h -- the one clock.  Nanoseconds; in the simulator virtual.
 */
#pragma once

#include "base/base.h"

#define RT_NS_PER_US ((u64)1000)
#define RT_NS_PER_MS ((u64)1000000)
#define RT_NS_PER_S  ((u64)1000000000)

u64 rt_now_ns(void);  /* Monotonic, never goes back; for deadlines and durations. */
i64 rt_wall_ns(void); /* Since 1970-01-01 UTC; may jump. */
/* now + timeout, saturating at RT_FOREVER. */
u64 rt_deadline_after(u64 timeout_ns);
/* [parks]  OK when the time is over, ERR_INTERRUPT when cancelled. */
MUST_CHECK Err rt_sleep_ns(u64 duration_ns);
MUST_CHECK Err rt_sleep_until(u64 deadline_ns);

/* Seconds to add to UTC for local time at that UTC moment; for 'localtime' and its kin.
   ERR_RANGE when the system cannot say (years outside its range). */
MUST_CHECK Err rt_local_offset_s(i64 unix_s, i32 *offset_s_out);

/* CPU time of the calling thread or fiber, for metrics and slices. */
u64 rt_cpu_ns(void);
