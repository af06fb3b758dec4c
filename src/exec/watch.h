/*
 * watch.h -- how long a kept result stays good (private to exec/).
 *
 * Operators and subqueries keep what they computed (a materialised input, a hash build side, the
 * result of a subquery) and use it again when they are rewound.  That is right as long as the run
 * is the same, nobody asked to forget, and every register that the subtree reads from outside has
 * its old value.  A subtree that reads the current row of a recursion is never kept; neither is
 * anything inside a correlated subquery of a write, which has to see the changes.
 */
#pragma once

#include "exec/exec__run.h"

typedef struct RegWatch {
    u32 count;
    u32 *reg;
    Cell *seen; /* Their values when the result was made. */
    Arena bytes;
    u64 run_no, data_no; /* Of the result; run 0: there is none. */
    bool never;
} RegWatch;

MUST_CHECK Err exec__watch_open(Exec *exec, RegWatch *watch, const PlanNode *root);
void exec__watch_close(RegWatch *watch);
/* Is the kept result still good? */
bool exec__watch_same(const Exec *exec, const RegWatch *watch);
/* Before a new result is made: remember the registers.  The old result is gone. */
MUST_CHECK Err exec__watch_begin(Exec *exec, RegWatch *watch);
/* It has been made. */
static inline void
exec__watch_done(const Exec *exec, RegWatch *watch)
{
    watch->run_no = exec->run_no;
    watch->data_no = exec->data_no;
}
static inline void
exec__watch_forget(RegWatch *watch)
{
    watch->run_no = 0;
}
