/*
 * target.h -- a file that appears whole or not at all; and a bar of progress.  Private to tools/.
 */
#pragma once

#include "base/base.h"
#include "rt/file.h"
#include "transfer/transfer.h"

/* The work goes on under TARGET-part and gets its name at the end. */
typedef struct Target {
    const char *path; /* Borrowed. */
    char *part;
} Target;

/* ERR_EXISTS when there is such a file.  What an earlier run left under the temporary name goes. */
MUST_CHECK Err target_begin(Target *target, const char *path, ErrMsg *msg);
/* Give the finished file its name, durably. */
MUST_CHECK Err target_keep(Target *target, ErrMsg *msg);
/* Remove what is under the temporary name, if anything; frees. */
void target_end(Target *target);

/* Progress on standard error, if that is a terminal. */
typedef struct Bar {
    bool on, shown;
    u64 next_ns;
} Bar;

Bar bar_make(bool quiet);
void bar_show(Bar *bar, const char *what, u64 done, u64 total);
void bar_clear(Bar *bar);

/* Make Ctrl-C cancel this task; and the end of that. */
void interrupt_on(void);
void interrupt_off(void);
/* What was carried over into `to`, on standard output. */
void summary(const char *to, const TransferCounts *counts, u64 started_ns);
/* A line on standard error; returns 1. */
int complain(const char *format, ...) PRINTF_LIKE(1, 2);
