/*
 * exec__write.h -- the boundary between the read side of exec/ and the row program of writes.
 *
 * The row program (write*.c) owns ExecWrite, its run state.  It reads target rows from
 * plan->write->source, evaluates expressions and changes trees; everything it needs of the read
 * side is declared here.
 *
 * Errors: a failing function sets exec->msg (through exec__fail or by passing exec->msg on) and
 * returns the code.  The caller returns it unchanged.
 */
#pragma once

#include "exec/exec__run.h"

/* ---- what the row program offers ---- */

/* Once, at exec_open of a plan with `write`: allocate ExecWrite in exec->arena (long-lived),
   compile expressions with exec__compile(). */
MUST_CHECK Err exec__write_open(Exec *exec);
/* Make all changes of the statement.  RETURNING rows go to exec__returning_push().  [parks] */
MUST_CHECK Err exec__write_run(Exec *exec);
void exec__write_reset(Exec *exec); /* At exec_reset(); also after errors. */
void exec__write_close(Exec *exec); /* At exec_close(); ExecWrite may be NULL. */

/* ---- what the read side offers ---- */

/*
 * Compile an expression once, evaluate it often.  The program lives in exec->arena.
 * `row` is the row of cells that PX_COLUMN reads (as many as the expression uses).  The result's
 * bytes live in exec->row_arena, in the row, in registers or in the plan: the caller resets
 * exec->row_arena between rows (arena_reset) once nothing of the row is needed any more.
 */
MUST_CHECK Err exec__compile(Exec *exec, const PlanExpr *expr, ExecProgram **program_out);
MUST_CHECK Err exec__eval(Exec *exec, const ExecProgram *program, const Cell *row, Cell *value_out);
/* The value as a condition. */
MUST_CHECK Err exec__eval_truth(Exec *exec, const ExecProgram *program, const Cell *row,
                                ExecTruth *truth_out);

/* Rows of a plan node.  Rewind starts it (again); next gives one row of node->columns cells or
   NULL at the end.  The row lives until the next call on this node.  [parks] */
MUST_CHECK Err exec__node_rewind(Exec *exec, const PlanNode *node);
MUST_CHECK Err exec__node_next(Exec *exec, const PlanNode *node, const Cell **row_out);

/* Subqueries that ran "once a statement" are forgotten, so that a SET or RETURNING subquery that
   reads the changed table sees the change. */
void exec__subs_forget(Exec *exec);

/* Registers of this run (plan->reg_count of them); OLD and NEW of triggers are written here. */
static inline Cell *
exec__regs(Exec *exec)
{
    return exec->reg;
}

/* Keep a copy of a RETURNING row (plan->column_count cells) to be shown after all changes. */
MUST_CHECK Err exec__returning_push(Exec *exec, const Cell *row);

/* Set the error of the run; returns `err`. */
Err exec__fail(Exec *exec, Err err, const char *format, ...) PRINTF_LIKE(3, 4);
/* The error of a failed store call on `txn`, with its text. */
Err exec__fail_store(Exec *exec, Err err, const StoreTxn *txn);
/* Interrupts, timeouts, the progress handler; to be called once a row. */
MUST_CHECK Err exec__check(Exec *exec);
static inline StoreTxn *
exec__txn(const Exec *exec, const TableDef *table)
{
    return exec->txn[table->database];
}

/*
 * A nested statement (the body of a trigger): an Exec of its own with its own registers, in the
 * same transactions.  Open it once (at exec__write_open or at first use), then for each run write
 * OLD and NEW into exec__regs(child), exec_start() it with exec->txn, and step it to its end;
 * exec__adopt_error moves its error to the parent.
 */
MUST_CHECK Err exec__open_child(Exec *parent, const Plan *body, Exec **child_out);
Err exec__adopt_error(Exec *parent, Exec *child, Err err);
