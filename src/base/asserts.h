/*
 * asserts.h -- ASSERT for our own mistakes (on in release), DCHECK for costly checks (check
 * builds), REACHED for rare paths that some test must hit, PLANT for bugs planted to test the
 * tests.
 *
 * Bytes from disk, network or SQL are never asserted: they get an error.
 */
#pragma once

#include "base/types.h"

NORETURN void assert_failed(const char *file, int line, const char *what);

#define ASSERT(cond)  (LIKELY(cond) ? (void)0 : assert_failed(__FILE__, __LINE__, #cond))
#define UNREACHABLE() assert_failed(__FILE__, __LINE__, "unreachable")

#ifdef WEFT_CHECK
#define DCHECK(cond) ASSERT(cond)
/* Marks a rare path.  All marks of a program lie in one section, so that reached_report() also
   knows those that no pass has touched. */
#define REACHED(name)                                                                \
    do {                                                                             \
        static unsigned char reached_once_;                                          \
        static const ReachedMark reached_mark_                                       \
            __attribute__((section("weft_reached"), used)) = {name, &reached_once_}; \
        if (UNLIKELY(!__atomic_load_n(&reached_once_, __ATOMIC_RELAXED)))            \
            __atomic_store_n(&reached_once_, 1, __ATOMIC_RELAXED);                   \
    } while (0)
/* True when planted bug `number` is switched on (environment WEFT_PLANT, or plant_set()). */
#define PLANT(number) plant_is_on(number)
#else
#define DCHECK(cond)  ((void)sizeof(!(cond)))
#define REACHED(name) ((void)0)
#define PLANT(number) false
#endif

typedef struct ReachedMark {
    const char *name;
    unsigned char *once;
} ReachedMark;
/* Call `each` for every mark in the program (none in release builds), reached so far or not.  A
   name that stands in several places comes several times. */
void reached_report(void (*each)(void *arg, const char *name, bool is_reached), void *arg);
bool plant_is_on(u32 number);
void plant_set(u32 number, bool on);
