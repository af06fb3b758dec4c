/*
 * random.h -- entropy.  In the simulator it comes from the seed.
 */
#pragma once

#include "base/base.h"

/* From the system's generator; good for keys.  Never fails (aborts if the kernel has none). */
void rt_random_bytes(void *bytes, size_t count);
/* The same as a number. */
u64 rt_random_u64(void);
