/*
 * loop.c -- spawning and groups, whoever provides them: loops, the simulator, or nobody.
 */
#include "rt/loop.h"

#include "rt/process_impl.h"

Err
rt_spawn(u32 where, RtTaskFn fn, void *arg, const char *name)
{
    RtProcess *process = rt__self()->process;
    if (rt_process_is_foreign(process)) return ERR_FOREIGN;
    const RtHooks *hooks = rt__hooks(process);
    return hooks == NULL ? ERR_CLOSED : hooks->spawn(process, where, fn, arg, name);
}

u32
rt_loop_count(void)
{
    RtProcess *process = rt__self()->process;
    const RtHooks *hooks = rt__hooks(process);
    return hooks == NULL ? 0 : hooks->loop_count(process);
}

Err
rt_group_spawn(RtGroup *group, RtTaskFn fn, void *arg)
{
    RtProcess *process = rt__self()->process;
    const RtHooks *hooks = rt__hooks(process);
    if (hooks != NULL) return hooks->group_spawn(process, group, fn, arg);
    fn(arg);
    return OK;
}

void
rt_loops_stop(u64 drain_ns)
{
    RtProcess *process = rt__self()->process;
    if (rt_process_is_foreign(process)) return;
    const RtHooks *hooks = rt__hooks(process);
    if (hooks != NULL) hooks->stop(process, drain_ns);
}

u32
rt_loop_current(void)
{
    u32 number = rt__self()->loop_number;
    return number == 0 ? RT_LOOP_ANY : number - 1;
}

void
rt_share_set(u64 share)
{
    RtTask *task = rt__self();
    if (task->sched != NULL && task->sched->share != NULL) task->sched->share(task, share);
}
