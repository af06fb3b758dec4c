/*
 * exec__run.h -- the run state of a statement (private to exec/).
 */
#pragma once

#include "exec/exec.h"

typedef struct ExecProgram ExecProgram; /* A compiled expression. */
typedef struct ExecNode ExecNode;       /* Run state of one plan node. */
typedef struct ExecSub ExecSub;         /* Run state of one subquery. */
typedef struct ExecWrite ExecWrite;     /* Run state of the row program. */

struct CallSite;
struct InSet;
struct RowBuf;

/* A value as a condition. */
typedef enum ExecTruth { EXEC_FALSE = 0, EXEC_TRUE = 1, EXEC_UNKNOWN = 2 } ExecTruth;

/* A materialised subquery, or the row a recursion works on: what PLAN_CTE_SCAN reads. */
typedef struct ExecShared {
    ExecNode *producer; /* PLAN_MATERIAL; NULL for a recursion. */
    struct RowBuf *rows;
    const Cell *current; /* Recursion: the row at hand; NULL: none. */
} ExecShared;

/* What does not fit goes to a temporary file (spill.h). */
typedef struct Spill {
    struct RtFile *file; /* NULL: nothing has been written in this run. */
    u32 unit_bytes;
    u32 units; /* Of the file. */
    u32 *free_unit;
    u32 free_count, free_capacity;
    u32 holders;    /* Of rows, by the plan. */
    u64 budget_set; /* The environment's, + 1, that the next two come from. */
    u64 budget_bytes, share_bytes;
    u64 held_bytes; /* By all holders. */
    u64 written_bytes;
    ErrMsg why; /* What the file system said. */
} Spill;

struct Exec {
    const Plan *plan;
    const ExecEnv *env;
    Exec *parent; /* The statement whose trigger this one is; NULL: a statement of its own. */
    u32 depth;    /* Triggers deep. */

    MemAccount *account;    /* Of the statement: own_account of the one without a parent. */
    MemAccount own_account; /* Above it: env->account. */
    Arena arena;            /* From open to close: programs, node states. */
    Arena run_arena;        /* From start to start: values computed once a run. */
    Arena row_arena;        /* Results of exec__eval() for the row at hand. */
    ErrMsg msg;
    u64 hash_seed;
    Spill spill;
    u64 run_no;  /* Counts runs; 0: never started. */
    u64 bind_no; /* Changes when transactions may have been replaced: cursors bind again. */
    u64 data_no; /* Changes whenever kept subquery results have become invalid. */

    Cell *reg;            /* [plan->reg_count] */
    StoreTxn *const *txn; /* By database, borrowed. */
    const Cell *param;    /* At least plan->param_count of them. */
    Cell *param_own;      /* Room for them when the caller gave fewer, or zeroblobs. */
    ExecNode *root;       /* NULL for writes without RETURNING. */
    ExecNode **node;      /* [plan->node_count], by PlanNode.number */
    ExecSub **sub;        /* [plan->sub_count], by PlanSub.number */
    ExecShared *shared;   /* [plan->material_count] */
    struct CallSite *sites;
    struct InSet *sets;
    ExecWrite *write; /* Owned by the row program; NULL for SELECT. */

    u32 open_depth;     /* While opening: nodes above the one at hand. */
    bool opening_fresh; /* While opening: inside a correlated subquery of a write. */
    bool running;
    bool written; /* A write: all changes have been made. */
    bool ended;   /* The last row of this run has been given. */
    bool tripped;
    Err trip_err; /* What taking the trip gave; raised by the next step. */
    Arena pinned; /* Bytes of the row shown, once the store may drop them. */
    u8 raise;     /* Conflict: what RAISE() asked for. */
    i64 rows_changed, rows_changed_total;
    i64 last_rowid;
    bool has_last_rowid;
    i64 deferred_violations;
    ExecUndo undo;
    u64 operations;        /* Since the progress handler was called last. */
    u64 operations_before; /* Until then, since the counters were cleared; wraps. */
    ExecStatus own_status; /* `steps` is not used. */
    ExecStatus *status;    /* Of the statement: own_status of the one without a parent. */
    u32 want_max;          /* Rows asked of the root at once: 1 with volatile expressions. */

    /* exec_step: the batch at hand and how far it is read. */
    const Batch *batch;
    u32 batch_next;
    u32 want;
    u32 shown; /* Rows, for env->trip_every. */
    Cell *row; /* [plan->column_count] the current row */

    struct ExecShort *chain; /* The short path; NULL: the plan has another shape. */

    /* RETURNING rows. */
    struct RowSpool *returning;
    struct SpoolReader *returning_reader;
};

/* ---- shared helpers of the read side ---- */

/* Compare under a stamp; op is PX_EQ .. PX_IS_NOT. */
MUST_CHECK Err exec__compare_cells(Exec *exec, u8 op, u8 affinity, const Collation *collation,
                                   const Cell *a, const Cell *b, Arena *arena,
                                   ExecTruth *truth_out);
/* Drop the auxiliary data of all call sites. */
void exec__sites_forget(Exec *exec);
/* Report the error of a function call. */
Err exec__fail_call(Exec *exec, const FuncDef *def, Err err);
/*
 * The affinity to give each side of an equality by itself so that its key bytes agree with the
 * comparison: every numeric affinity compares as NUMERIC.
 */
static inline Affinity
exec__stamp_affinity(u8 affinity)
{
    return affinity >= AFFINITY_NUMERIC ? AFFINITY_NUMERIC : (Affinity)affinity;
}

/* Rows to ask of an input: fewer when volatile expressions want one at a time. */
static inline u32
exec__demand(const Exec *exec, u32 want)
{
    return want < exec->want_max ? want : exec->want_max;
}

/* Room in exec->arena, aligned but not zeroed: for arrays that are written before they are read. */
static inline void *
exec__room(Exec *exec, size_t bytes)
{
    u8 *room = arena_bytes(&exec->arena, bytes + 15);
    return room != NULL ? (void *)ALIGN_UP((uintptr_t)room, 16) : NULL;
}
#define EXEC_ROOM(exec, T, n) ((T *)exec__room((exec), sizeof(T) * (size_t)(n)))
