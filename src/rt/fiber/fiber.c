#include "rt/fiber/fiber.h"

u32
rt__fiber_sleep(RtTask *task, u64 deadline_ns, u32 wanted)
{
    (void)task, (void)deadline_ns, (void)wanted;
    UNREACHABLE();
}
void
rt__fiber_look(RtTask *base)
{
    (void)base;
    UNREACHABLE();
}
void
rt__fiber_slice(RtTask *task, u64 now_ns)
{
    (void)task, (void)now_ns;
    UNREACHABLE();
}
void
rt__fiber_yield(RtTask *task)
{
    (void)task;
    UNREACHABLE();
}
