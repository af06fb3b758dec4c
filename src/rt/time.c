/*
 * time.c -- the clock of the current process, and sleeping.
 */
#include "rt/time.h"

#include <time.h>

#include "rt/process_impl.h"
#include "rt/random.h"

u64
rt_now_ns(void)
{
    RtProcess *process = rt__self()->process;
    return process->sys->now_ns(process);
}

i64
rt_wall_ns(void)
{
    RtProcess *process = rt__self()->process;
    return process->sys->wall_ns(process);
}

u64
rt_deadline_after(u64 timeout_ns)
{
    u64 now = rt_now_ns();
    return timeout_ns >= RT_FOREVER - now ? RT_FOREVER : now + timeout_ns;
}

Err
rt_sleep_until(u64 deadline_ns)
{
    RtU32 word = {0}; /* Nobody ever wakes its address. */
    if (deadline_ns == 0) return OK;
    RtParkResult result = rt_park(&word, &word, 0, 0, deadline_ns, 0, 0);
    return result == RT_CANCELLED ? ERR_INTERRUPT : OK;
}

Err
rt_sleep_ns(u64 duration_ns)
{
    return rt_sleep_until(rt_deadline_after(duration_ns));
}

Err
rt_local_offset_s(i64 unix_s, i32 *offset_s_out)
{
    *offset_s_out = 0;
    if (rt__self()->process->world != NULL) return OK; /* The simulator lives in UTC. */
    struct tm broken;
    time_t moment = (time_t)unix_s;
    if (localtime_r(&moment, &broken) == NULL) return ERR_RANGE;
    *offset_s_out = (i32)broken.tm_gmtoff;
    return OK;
}

u64
rt_cpu_ns(void)
{
    RtProcess *process = rt__self()->process;
    if (process->world != NULL) return process->sys->now_ns(process);
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (u64)now.tv_sec * RT_NS_PER_S + (u64)now.tv_nsec;
}

void
rt_random_bytes(void *bytes, size_t count)
{
    RtProcess *process = rt__self()->process;
    process->sys->random(process, bytes, count);
}

u64
rt_random_u64(void)
{
    u64 number;
    rt_random_bytes(&number, sizeof(number));
    return number;
}
