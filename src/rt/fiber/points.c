#include "rt/fiber/points.h"

Err
rt__fiber_point_wait(RtPoint *point, u32 what, u64 deadline_ns, u32 *ready_out)
{
    (void)point, (void)what, (void)deadline_ns, (void)ready_out;
    UNREACHABLE();
}
void
rt__fiber_point_close(RtPoint *point)
{
    (void)point;
}
void
rt__fiber_point_shut(RtPoint *point)
{
    (void)point;
}
