/*
 * sim_net.h -- private: the simulated network as net.c sees it.
 */
#pragma once

#include "rt/net_impl.h"

Err rt__sim_point_wait(RtPoint *point, u32 what, u64 deadline_ns, u32 *ready_out);
void rt__sim_point_shut(RtPoint *point);
