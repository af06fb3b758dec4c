/*
 * program.h -- compiled expressions (private to exec/).
 *
 * An expression becomes a flat list of instructions over cells.  Operands name a cell by a base
 * (slots of the program, the input row, constants, parameters, registers, once cells) and an
 * index, so loading a column costs nothing.  Branches jump forwards only.
 *
 * Invariants:
 *   1. Instructions run in SQLite's order of evaluation; what SQLite does not evaluate is jumped
 *      over.
 *   2. A slot is written before it is read.
 *   3. A subtree without rows, registers or side effects is computed once a run, when it is first
 *      needed, into a once cell whose bytes live in exec->run_arena.
 *   4. A program is never entered again while it runs: its slots belong to it.
 */
#pragma once

#include "exec/exec__run.h"

typedef enum OperandBase {
    AT_SLOT,
    AT_ROW,
    AT_CONST,
    AT_PARAM,
    AT_REG,
    AT_ONCE,
    AT_COUNT_
} OperandBase;
typedef u32 Operand; /* Base in the top 3 bits. */
#define OPERAND(base, index) (((u32)(base) << 29) | (u32)(index))
#define OPERAND_BASE(o)      ((o) >> 29)
#define OPERAND_INDEX(o)     ((o)&0x1FFFFFFFu)

typedef enum InsOp {
    INS_MOVE,
    INS_SET, /* out = NULL, 0 or 1 (flag: EXEC truth). */
    INS_NEG,
    INS_BIT_NOT,
    INS_NOT,
    INS_IS_NULL,
    INS_NOT_NULL,
    INS_IS_TRUTH, /* flag: bit 0 the truth looked for, bit 1 negated. */
    INS_CAST,
    INS_AFFINITY,
    INS_ADD,
    INS_SUB,
    INS_MUL,
    INS_DIV,
    INS_REM,
    INS_BIT_AND,
    INS_BIT_OR,
    INS_SHL,
    INS_SHR,
    INS_CONCAT,
    INS_COMPARE,  /* flag: PlanOp PX_EQ.. PX_IS_NOT */
    INS_AND_STEP, /* Fold a into out; FALSE jumps. */
    INS_OR_STEP,  /* Fold a into out; TRUE jumps. */
    INS_IN_STEP,  /* Fold a = b into out; a match jumps, so does a NULL on the left. */
    INS_IN_SET,   /* a in u.set */
    INS_ROW_STEP, /* One column of a row comparison; decided: jumps.  flag: PlanOp */
    INS_JUMP,
    INS_JUMP_NOT_TRUE, /* a */
    INS_JUMP_NOT_NULL, /* a */
    INS_ONCE,          /* Jump if once cell `out` is computed already. */
    INS_ONCE_SET,      /* once cell out = a */
    INS_CALL,          /* u.site over slots a.. */
    INS_BIND,          /* Register out = a */
    INS_EXISTS,
    INS_SCALAR,
    INS_SUB_COLUMN, /* column: b */
    INS_IN_SUB,     /* Slots a.. in u.sub */
    INS_RAISE
} InsOp;

#define KEEP_GOING 1 /* Flag of AND_STEP, OR_STEP, IN_STEP: what decides does not jump. */

typedef struct CallSite {
    FuncCall call;
    u32 argc;
    u64 constant_args; /* Bit i: argument i is constant, so auxiliary data for it may stay. */
    struct CallSite *next;
} CallSite;

/* The constant items of a long IN list. */
typedef struct InSet InSet;

typedef struct Ins {
    u8 op, affinity, flag, spare;
    Operand a, b;
    u32 out, target;
    union {
        const Collation *collation;
        CallSite *site;
        InSet *set;
        ExecSub *sub;
        const PlanExpr *expr;
    } u;
} Ins;

struct ExecProgram {
    const PlanExpr *expr;
    Ins *ins;
    u32 ins_count;
    Operand result;
    Cell *slot;
    Cell *constant;
    Cell *once;
    u64 *once_run; /* Run in which the once cell was computed. */
    u32 once_count;
    u32 column_count; /* Columns of the row that are read: these, rising. */
    u32 *column;
    u32 row_cells; /* Highest column + 1. */
};

/* Compile into `arena_of(exec)`; see exec__write.h for the contract. */
MUST_CHECK Err exec__compile(Exec *exec, const PlanExpr *expr, ExecProgram **program_out);
/* The same for an expression of which only the truth counts: terms that cannot change it are not
   evaluated, as in WHERE. */
MUST_CHECK Err exec__compile_condition(Exec *exec, const PlanExpr *expr, ExecProgram **program_out);
/* Compile expr[0..count); entries that are NULL stay NULL. */
MUST_CHECK Err exec__compile_list(Exec *exec, PlanExpr *const *expr, u32 count,
                                  ExecProgram ***programs_out);
/* Evaluate on a row; new bytes come from `arena`. */
MUST_CHECK Err exec__eval_in(Exec *exec, const ExecProgram *program, const Cell *row, Arena *arena,
                             Cell *value_out);
/* The same for an argument of a table-valued function or virtual table, which reads no row: pointer
   values and subtypes stay. */
MUST_CHECK Err exec__eval_argument(Exec *exec, const ExecProgram *program, Arena *arena,
                                   Cell *value_out);
/* The same, subtype included: for arguments of functions that ask for it. */
MUST_CHECK Err exec__eval_subtype_in(Exec *exec, const ExecProgram *program, const Cell *row,
                                     Arena *arena, Cell *value_out);
MUST_CHECK Err exec__truth_in(Exec *exec, const ExecProgram *program, const Cell *row, Arena *arena,
                              ExecTruth *truth_out);
/* The result is just this column of the row (then no program needs to run). */
static inline bool
exec__program_is_column(const ExecProgram *program, u32 *column_out)
{
    *column_out = OPERAND_INDEX(program->result);
    return program->ins_count == 0 && OPERAND_BASE(program->result) == AT_ROW;
}

/* ---- IN lists (in_set.c) ---- */

/* A set over constant items; the program's constants hold them.  Built at first use. */
MUST_CHECK Err exec__in_set_new(Exec *exec, const PlanExpr *in_list, InSet **set_out);
/* value IN items: 1, 0 or NULL. */
MUST_CHECK Err exec__in_set_test(Exec *exec, InSet *set, const Cell *value, Arena *arena,
                                 Cell *out);
/* The truths of all live rows: a kernel where the value is a vector of integers. */
MUST_CHECK Err exec__in_set_truths(Exec *exec, InSet *set, const Batch *batch, const Vec *value,
                                   Arena *arena, u8 *truth);
/* May the list be a set?  Constants only, under a collation that has key bytes. */
bool exec__in_set_fits(const PlanExpr *in_list);
void exec__in_set_free(InSet *set);

/* ---- subqueries (subquery.c) ---- */

MUST_CHECK Err exec__sub_open(Exec *exec, const PlanSub *plan, ExecSub **sub_out);
void exec__sub_reset(Exec *exec, ExecSub *sub); /* The run is over. */
void exec__sub_close(Exec *exec, ExecSub *sub); /* NULL is allowed. */
MUST_CHECK Err exec__sub_exists(Exec *exec, ExecSub *sub, Arena *arena, bool *exists_out);
/* Column `column` of the first row, NULL if there is none. */
MUST_CHECK Err exec__sub_scalar(Exec *exec, ExecSub *sub, u32 column, Arena *arena, Cell *out);
/* (value[0..columns)) IN (sub): 1, 0 or NULL. */
MUST_CHECK Err exec__sub_in(Exec *exec, ExecSub *sub, const Cell *value, Arena *arena, Cell *out);
/* Does it give the same for every row? */
bool exec__sub_is_fixed(const PlanSub *plan);
/* The same for all live rows of a batch; a fixed one of one column.  Truths at the rows' places. */
MUST_CHECK Err exec__sub_in_truths(Exec *exec, ExecSub *sub, const Batch *batch, const Vec *value,
                                   Arena *arena, u8 *truth);
/* For a scan over IN (SELECT): call `each` with the first column of every row. */
typedef Err (*ExecSubEach)(void *arg, const Cell *value);
MUST_CHECK Err exec__sub_each(Exec *exec, ExecSub *sub, ExecSubEach each, void *arg);
