/*
 * scan_args.h -- the arguments of a scan that takes any: virtual tables, table-valued functions.
 *
 * An argument is a value, or an IN list: its values converted, in order and each once.  A list that
 * is not taken whole is walked value by value, lists inside of one another.
 */
#pragma once

#include "exec/exec__run.h"
#include "exec/rowbuf.h"
#include "value/host_table.h"

typedef struct ScanArg {
    const PlanScanArg *plan;
    ExecProgram *value;
    ExecProgram **item; /* in_list */
    ExecSub *sub;       /* in_sub, and what it reads of outside */
    ExecProgram **bind;
    bool is_list;
    RowBuf list; /* The values of a list. */
    u32 at;      /* Walked: the one in force. */
    HostList whole;
} ScanArg;

typedef struct ScanArgs {
    u32 count;
    ScanArg *arg;
    Cell *value; /* As the scan gets them; what is not given is NULL. */
    Arena bytes; /* Of the values; the owner may keep more in it until the next begin. */
    bool walks;  /* Some list is walked. */
} ScanArgs;

MUST_CHECK Err exec__args_open(Exec *exec, const PlanScanArg *plan, u32 count, ScanArgs *args);
void exec__args_reset(ScanArgs *args);
void exec__args_close(ScanArgs *args);

/* Evaluate them; *empty_out: a list without values, so there is nothing to find.  Lists that are
   walked stand on their first value. */
MUST_CHECK Err exec__args_begin(Exec *exec, ScanArgs *args, bool *empty_out);
/* The next combination of values of the lists that are walked; false: that was the last. */
bool exec__args_next(ScanArgs *args);

/* Was the argument given? */
static inline bool
exec__arg_given(const ScanArg *arg)
{
    return arg->is_list || arg->value != NULL;
}
