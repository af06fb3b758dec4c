/*
 * drill.h -- a process that does what the toy store has no use for: the rare ways of parking.
 */
#pragma once

/* Main of a simulated process.  A mistake is told by rt_sim_fail(). */
void drill_main(void *arg);
