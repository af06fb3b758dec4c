/*
 * asserts.c -- what happens when an assertion fails; registry of REACHED marks and planted bugs.
 */
#include "base/asserts.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

NORETURN void
assert_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "weft: %s:%d: assertion failed: %s\n", file, line, what);
    fflush(stderr);
    abort();
}

#define REACHED_MAX 1024
static const char *reached_names[REACHED_MAX];
static _Atomic u32 reached_count;

void
reached_mark(const char *name)
{
    u32 at = atomic_fetch_add(&reached_count, 1);
    if (at < REACHED_MAX) __atomic_store_n(&reached_names[at], name, __ATOMIC_RELEASE);
}

void
reached_report(void (*each)(void *arg, const char *name), void *arg)
{
    u32 count = atomic_load(&reached_count);
    for (u32 i = 0; i < count && i < REACHED_MAX; i++) {
        const char *name = __atomic_load_n(&reached_names[i], __ATOMIC_ACQUIRE);
        if (name != NULL) each(arg, name);
    }
}

#define PLANT_MAX 256
static _Atomic u8 plant_on[PLANT_MAX];
static _Atomic u8 plant_env_read;

/* WEFT_PLANT="3,17" switches planted bugs on from outside. */
static void
plant_read_environment(void)
{
    if (atomic_exchange(&plant_env_read, 1)) return;
    const char *list = getenv("WEFT_PLANT");
    while (list != NULL && *list != 0) {
        char *end;
        unsigned long number = strtoul(list, &end, 10);
        if (end == list) return;
        if (number < PLANT_MAX) plant_on[number] = 1;
        list = *end == ',' ? end + 1 : end;
    }
}

bool
plant_is_on(u32 number)
{
    ASSERT(number < PLANT_MAX);
    if (UNLIKELY(!atomic_load_explicit(&plant_env_read, memory_order_relaxed))) {
        plant_read_environment();
    }
    return atomic_load_explicit(&plant_on[number], memory_order_relaxed) != 0;
}

void
plant_set(u32 number, bool on)
{
    ASSERT(number < PLANT_MAX);
    plant_read_environment();
    plant_on[number] = on;
}
