/*
 * copy.c -- copying bytes that others change meanwhile; the yield point of the simulator.
 */
#include "base/base.h"
#include "rt/process_impl.h"
#include "rt/rare.h"

void
rt_copy_racy(void *to, const void *from, size_t bytes)
{
    ASSERT(((uintptr_t)to & 7) == 0 && ((uintptr_t)from & 7) == 0);
    u64 *target = to;
    const u64 *source = from;
    size_t words = bytes / 8;
    for (size_t i = 0; i < words; i++) {
        if (i % 64 == 0) rt_yield_point();
        target[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
    }
    u8 *target_tail = (u8 *)(target + words);
    const u8 *source_tail = (const u8 *)(source + words);
    for (size_t i = 0; i < bytes % 8; i++)
        target_tail[i] = __atomic_load_n(&source_tail[i], __ATOMIC_RELAXED);
}

#ifdef WEFT_CHECK
bool rt__sim_running;
u32 rt__sim_held;
void (*rt__sim_hook)(void);
bool (*rt__sim_rare)(const char *name);

void
rt__sim_yield(void)
{
    if (rt__sim_held == 0) rt__sim_hook();
}
#endif
