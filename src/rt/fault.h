/*
 * fault.h -- make the nth file or socket call fail; for tests.
 *
 * Counted are the system calls that rt makes for rt_file_*, rt_dir_* and net.h, one by one (an
 * exact read of three system calls counts three), closes excepted.
 */
#pragma once

#include "base/base.h"

/* Instead of an error: transfer one byte less than asked (at least one), or stop halfway. */
#define RT_FAULT_SHORT (-1)

/* The nth call from now fails with this errno (EIO, ENOSPC, EINTR, RT_FAULT_SHORT...) without
   being made; with `onwards` all later ones too.  nth 0 disarms.  Thread-safe. */
void rt_fault_arm(u64 nth, int error);
void rt_fault_arm_onwards(u64 nth, int error);
/* True when an armed fault has fired since it was armed. */
bool rt_fault_fired(void);
/* Calls counted since the last arming; arm with a huge nth to count. */
u64 rt_fault_calls(void);
/* Restrict faults to some calls: bits of RtFaultKind, 0 = all.  Reset by arming with nth 0. */
#define RT_FAULT_OPEN   1u
#define RT_FAULT_READ   2u
#define RT_FAULT_WRITE  4u
#define RT_FAULT_SYNC   8u
#define RT_FAULT_SIZE   16u /* truncate, preallocate, punch */
#define RT_FAULT_NAME   32u /* rename, unlink, mkdir, stat, list */
#define RT_FAULT_LOCK   64u
#define RT_FAULT_SOCKET 128u
void rt_fault_only(u32 kinds);
