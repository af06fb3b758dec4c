/*
 * points.h -- private: descriptors that fibers wait for.
 */
#pragma once

#include "rt/net_impl.h"

Err rt__fiber_point_wait(RtPoint *point, u32 what, u64 deadline_ns, u32 *ready_out);
void rt__fiber_point_close(RtPoint *point);
void rt__fiber_point_shut(RtPoint *point);
