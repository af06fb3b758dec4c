/*
 * exec__run.h -- the run state of a statement (private to exec/).
 */
#pragma once

#include "exec/exec.h"

typedef struct ExecProgram ExecProgram; /* A compiled expression. */
typedef struct ExecNode ExecNode;       /* Run state of one plan node. */
typedef struct ExecSub ExecSub;         /* Run state of one subquery. */
typedef struct ExecWrite ExecWrite;     /* Run state of the row program. */

struct Exec {
    const Plan *plan;
    const ExecEnv *env;
    Exec *parent; /* The statement whose trigger this one is; NULL: a statement of its own. */
    u32 depth;    /* Triggers deep. */

    Arena arena;     /* From open to close: programs, node states. */
    Arena row_arena; /* Results of exec__eval() for the row at hand. */
    ErrMsg msg;

    Cell *reg;            /* [plan->reg_count] */
    StoreTxn *const *txn; /* By database, borrowed. */
    const Cell *param;    /* Borrowed. */
    u32 param_count;
    ExecNode **node;  /* [plan->node_count], by PlanNode.number */
    ExecSub **sub;    /* [plan->sub_count], by PlanSub.number */
    ExecWrite *write; /* Owned by the row program; NULL for SELECT. */

    bool running;
    bool started_rows; /* The first step of this run has been made. */
    i64 rows_changed, rows_changed_total;
    i64 last_rowid;
    bool has_last_rowid;
    i64 deferred_violations;
    ExecUndo undo;
    u32 progress_left;
};
