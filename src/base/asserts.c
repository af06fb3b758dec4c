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

/* The linker sets these around the section; without a mark in the program there is none. */
extern const ReachedMark __start_weft_reached[] __attribute__((weak, visibility("hidden")));
extern const ReachedMark __stop_weft_reached[] __attribute__((weak, visibility("hidden")));

void
reached_report(void (*each)(void *arg, const char *name, bool is_reached), void *arg)
{
    for (const ReachedMark *mark = __start_weft_reached; mark < __stop_weft_reached; mark++)
        each(arg, mark->name, __atomic_load_n(mark->once, __ATOMIC_RELAXED) != 0);
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
