#include "rt/sim/sim_task.h"

#include "rt/process_impl.h"

#ifdef WEFT_CHECK
bool rt__sim_running;
void
rt__sim_yield(void)
{
}
#endif
void
rt__sim_hold(void)
{
}
void
rt__sim_release(void)
{
}
u32
rt__sim_sleep(RtTask *task, u64 deadline_ns, u32 wanted)
{
    (void)task, (void)deadline_ns, (void)wanted;
    UNREACHABLE();
}
void
rt__sim_look(RtTask *base)
{
    (void)base;
    UNREACHABLE();
}
void
rt__sim_switch(void)
{
    UNREACHABLE();
}
Err
rt__sim_start(RtTask *task, RtTaskFn fn, void *arg, RtEvent *ended)
{
    (void)task, (void)fn, (void)arg, (void)ended;
    UNREACHABLE();
}
i64
rt__sim_pid(RtProcess *process)
{
    (void)process;
    UNREACHABLE();
}
