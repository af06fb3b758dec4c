/*
 * node.h -- operators (private to exec/).
 *
 * An operator is pulled: exec__next(node, want) gives a batch of at most `want` live rows.
 *
 * Invariants:
 *   1. A batch and all that its cells point to live until the next call on the same node.
 *   2. An operator asks its input for no more rows than its own consumer can use, except blocking
 *      ones, which take all.
 *   3. Only total expressions are evaluated for rows that nobody has asked for.
 *   4. After a batch with count 0 or an error, an operator is not asked again before a rewind.
 *   5. Rewinding does no work: the first next() after it does.
 *   6. A streaming node (one with no blocking operator above it) can say for each live row of its
 *      last batch how to go on behind that row.
 */
#pragma once

#include "exec/program.h"

typedef struct NodeOps {
    /* Put node->out together: at most `want` rows. */
    void (*next)(Exec *exec, ExecNode *node, u32 want);
    /* Start again; registers may have changed. */
    void (*rewind)(Exec *exec, ExecNode *node);
    /* The run is over: let go of cursors and large memory. */
    void (*reset)(Exec *exec, ExecNode *node);
    void (*close)(Exec *exec, ExecNode *node);
    /*
     * A trip: the first `used` (at least one) live rows of the last batch have been consumed, the
     * rest is stale.  Go on behind them with what the data are now.  NULL: there is nothing ahead.
     */
    Err (*resume)(Exec *exec, ExecNode *node, u32 used);
} NodeOps;

struct ExecNode {
    const PlanNode *plan;
    const NodeOps *ops;
    ExecNode *input, *right;
    u32 part_count; /* Arms of UNION ALL, terms of an OR scan. */
    ExecNode **part;
    Batch out;
    Cell **buffer; /* Per column of `out`, [capacity]; columns that pass through do not use it. */
    u32 capacity;
    bool deep;      /* So many nodes stand above that the stack may run short. */
    bool streaming; /* No blocking operator stands above. */
    bool used;      /* Since the last reset. */
    u32 rows_max;   /* Rows of one batch, so that it stays within bounds for wide rows. */
    Arena bytes;    /* What cells of `out` point to; emptied at each next(). */
    ExecNodeCounters counters;
    /* Read row by row by exec__node_next(). */
    const Batch *pulled;
    u32 pulled_next, pulled_want;
    Cell *pulled_row;
};

/* Make the run state of a plan node and of all below it. */
MUST_CHECK Err exec__node_open(Exec *exec, const PlanNode *plan, ExecNode **node_out);
void exec__node_close(Exec *exec, ExecNode *node); /* NULL is allowed. */
void exec__node_reset(Exec *exec, ExecNode *node);
void exec__rewind(Exec *exec, ExecNode *node);
const Batch *exec__next(Exec *exec, ExecNode *node, u32 want);
/* See NodeOps.resume. */
MUST_CHECK Err exec__resume(Exec *exec, ExecNode *node, u32 used);
/* Mark the streaming nodes from the root down. */
void exec__mark_streaming(ExecNode *node);
/* Which live row of `batch` stands at position `at`. */
u32 exec__live_row(const Batch *batch, u32 at);

/* Constructors, one a kind; they allocate their struct, whose first member is the ExecNode. */
MUST_CHECK Err exec__one_row_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__values_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__scan_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__or_scan_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__count_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__filter_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__project_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__limit_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__loop_join_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__hash_join_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__sort_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__group_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__distinct_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__compound_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__material_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__cte_scan_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__table_func_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__host_scan_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__window_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);
MUST_CHECK Err exec__recursive_new(Exec *exec, const PlanNode *plan, ExecNode **node_out);

/* A sort that has given its first batch: do its rows last until it is rewound?  Not if they come
   from runs in the temporary file. */
bool exec__sort_keeps_rows(const ExecNode *node);

/* ---- helpers for operators ---- */

/* Allocate a node of `bytes` with its output vectors. */
MUST_CHECK Err exec__node_new(Exec *exec, const PlanNode *plan, const NodeOps *ops, size_t bytes,
                              ExecNode **node_out);
/* Room for `rows` rows in all own columns; vectors point there. */
MUST_CHECK Err exec__out_reserve(Exec *exec, ExecNode *node, u32 rows);
/* An empty batch: the end, or an error at its start. */
void exec__out_end(ExecNode *node, Err err);
/* A batch of the first `count` rows of the own columns. */
void exec__out_rows(ExecNode *node, u32 count, Err err);
/* A rowbuf's rows from `first` on as the output; rows are transposed. */
struct RowBuf;
void exec__out_from_rows(Exec *exec, ExecNode *node, const struct RowBuf *rows, const u32 *order,
                         u32 first, u32 count);

/* Cells of one row of a batch: only the columns that a program reads, or all. */
void exec__load_row(const Batch *batch, u32 at, const ExecProgram *program, Cell *row);
void exec__load_all(const Batch *batch, u32 at, Cell *row);

/* Evaluate on one position of a batch; `row` is scratch for program->row_cells cells. */
MUST_CHECK Err exec__eval_at(Exec *exec, const ExecProgram *program, const Batch *batch, u32 at,
                             Cell *row, Arena *arena, Cell *out);
/*
 * Live rows of `batch` where the condition is true: *count_out positions in `sel_out`, no more
 * than `want`; *taken_out says how many live rows were looked at.  Stops before the first failing
 * row, whose error is returned.
 */
MUST_CHECK Err exec__select(Exec *exec, const ExecProgram *program, const Batch *batch, u32 want,
                            Cell *row, Arena *arena, u16 *sel_out, u32 *count_out, u32 *taken_out);
/* LIMIT and OFFSET as integers: -1: no limit; offset 0.  ERR_MISMATCH "datatype mismatch". */
MUST_CHECK Err exec__eval_limit(Exec *exec, const ExecProgram *limit, const ExecProgram *offset,
                                i64 *limit_out, i64 *offset_out);

/* ---- what the short path takes over from operators ---- */

ExecProgram *exec__filter_program(const ExecNode *filter);
/* NULL entries: the column passes, from cell pass[i] of the input. */
void exec__project_parts(const ExecNode *project, ExecProgram ***program_out, const u32 **pass_out);
void exec__limit_parts(const ExecNode *limit, ExecProgram **limit_out, ExecProgram **offset_out);
ExecProgram *exec__loop_condition(const ExecNode *join); /* NULL: none. */
