/*
 * exec.h -- running a planned statement.
 *
 * An Exec is the run state of one statement over one immutable Plan: positions, memory, registers.
 * It is opened once, then started, stepped and reset any number of times; running it again
 * allocates nothing once its buffers have grown.
 *
 *     exec_open -> { exec_start -> exec_step ... -> exec_reset }* -> exec_close
 *
 * Rules for callers:
 *   1. The plan, the environment and the transactions outlive the run; parameters are borrowed
 *      until exec_reset().
 *   2. A write statement makes all its changes in the first exec_step(); RETURNING rows are
 *      buffered and shown by the steps that follow.
 *   3. After an error from exec_step() of a write, the caller undoes the statement in the store
 *      (exec knows no savepoints): exec_error_keeps() says whether earlier rows stay (FAIL).
 *   4. Before another statement of the connection writes to a tree, or undoes writes, the caller
 *      calls exec_trip() on every open statement that reads it (exec_reads_tree()).
 *
 * Tasks: one task at a time uses an Exec.  [parks] where marked.
 */
#pragma once

#include "exec/vec.h"
#include "sql/plan.h"

struct RtDir;

typedef struct Exec Exec;

/* What a write tells the session, in SQLite's order.  Members may be NULL. */
typedef enum ExecChange { EXEC_INSERT, EXEC_UPDATE, EXEC_DELETE } ExecChange;

typedef struct ExecPreupdate {
    ExecChange change;
    const TableDef *table;
    i64 rowid_old, rowid_new;      /* rowid tables */
    const Cell *row_old, *row_new; /* column_count cells each; NULL where there is none. */
    u32 depth;                     /* 0: by the statement itself; n: by a trigger n deep. */
} ExecPreupdate;

typedef struct ExecHooks {
    void *arg;
    void (*preupdate)(void *arg, const ExecPreupdate *change);
    /* After the change of one row of a rowid table. */
    void (*update)(void *arg, ExecChange change, const TableDef *table, i64 rowid);
    /* The connection's last_insert_rowid moves at once; read it back with FuncEnv. */
    void (*set_last_rowid)(void *arg, i64 rowid);
    /* changes() as the statements of a trigger see it; put back when the trigger ends. */
    void (*set_changes)(void *arg, i64 changes);
    /* Trees about to be written, so that the session can trip readers.  Called at least once a
       tree and statement before its first change. */
    void (*writes_tree)(void *arg, Store *store, TreeId tree);
    /* A virtual table is about to be written; at least once a statement. */
    Err (*begin_host)(void *arg, struct HostTable *host, ErrMsg *msg);
    /* Called about every `progress_every` operations; true: stop with ERR_INTERRUPT. */
    bool (*progress)(void *arg);
    u32 progress_every;
} ExecHooks;

typedef struct ExecEnv {
    const FuncEnv *func;     /* Never NULL. */
    const ExecHooks *hooks;  /* May be NULL. */
    MemAccount *account;     /* Stands above the accounts of statements; may be NULL. */
    u64 statement_bytes_max; /* Of one statement, with its triggers; 0: no cap of its own. */
    ArenaPool *pool;         /* Where its arenas have their first chunks from; may be NULL. */
    u64 memory_budget_bytes; /* Sorts and hash tables spill beyond it; 0: 64 MB. */
    struct RtDir *spill_dir; /* NULL: the system's place for temporary files. */
    u64 length_max;          /* SQLITE_LIMIT_LENGTH of values and rows. */
    u32 trigger_depth_max;
    bool foreign_keys, recursive_triggers, ignore_check;
    bool defer_foreign_keys; /* All foreign keys count as deferred. */
    i64 deferred_open;       /* Violations of deferred keys open in the transaction so far. */
    bool multi_writers;      /* Rowids from the tree's counter, not from its last key. */
    /* Moves whenever rows may have come or gone: exec counts it up at the start of each write, the
       session at each transaction and undo.  NULL: nothing is remembered from run to run. */
    u64 *write_no;
    bool watch;     /* Count rows, calls and time for each node (EXPLAIN ANALYZE). */
    u32 batch_rows; /* Tests: fixed batch size; 0: grows by demand up to 2,048. */
    u32 trip_every; /* Tests: trip after so many rows shown; 0: never. */
} ExecEnv;

/*
 * Prepare to run `plan`.  Takes no reference on the plan; the caller keeps one.
 * Ownership: on OK the caller owns *exec_out; on error it is NULL and `msg` says why.
 * `env` is borrowed and must outlive the Exec; its members may change between runs.
 */
MUST_CHECK Err exec_open(const Plan *plan, const ExecEnv *env, Exec **exec_out, ErrMsg *msg);
void exec_close(Exec *exec); /* NULL is allowed. */
/* A SELECT of expressions alone: it may run with no transaction at all. */
bool exec_plan_reads_nothing(const Plan *plan);

/*
 * Begin a run.  txn_by_database[table->database] is the transaction to use for each database (NULL
 * entries for those not used); params are cells 1..param_count in order, missing ones are NULL.
 * Both are borrowed until exec_reset().
 */
MUST_CHECK Err exec_start(Exec *exec, StoreTxn *const *txn_by_database, const Cell *params,
                          u32 param_count);
/* Make the next row current, *row_out false at the end.  [parks] */
MUST_CHECK Err exec_step(Exec *exec, bool *row_out);
/* Make the next row of a SELECT current if it lies read and computed at hand: does nothing else,
   cannot fail, never parks.  False: use exec_step(). */
bool exec_next_at_hand(Exec *exec);
/* Is it known from the steps before that no row follows, as things are now? */
bool exec_ends_at_hand(const Exec *exec);
/* ... and whatever is written: nothing will be read any more. */
bool exec_ends_for_good(const Exec *exec);
/* The current row: plan->column_count cells, valid until the next step or reset.  Long values by
   reference are resolved with exec_load(). */
const Cell *exec_row(const Exec *exec);
/*
 * For consumers of whole vectors: at least one and at most `want` rows, count 0 at the end.  Not
 * mixed with exec_step in one run.  A batch may carry an error after its rows: it is returned by
 * the next call.  [parks]
 */
MUST_CHECK Err exec_next_batch(Exec *exec, u32 want, const Batch **batch_out);
/* End the run, keep memory and programs. */
void exec_reset(Exec *exec);

/* Why the last call failed. */
const ErrMsg *exec_error(const Exec *exec);
/* After a failed write: changes of earlier rows stay (FAIL), or the whole transaction goes. */
typedef enum ExecUndo { EXEC_UNDO_STATEMENT, EXEC_UNDO_NOTHING, EXEC_UNDO_TRANSACTION } ExecUndo;
ExecUndo exec_error_undo(const Exec *exec);

/*
 * A write that puts one row into one tree or changes nothing, and calls nothing of the host:
 * whoever begins it needs no mark to undo it to, if it fails.  If the run needs more than that
 * after all, it takes a mark itself, before it writes.
 */
bool exec_writes_at_once(const Exec *exec);
/* Has the present run done so?  Then its change goes with the transaction only. */
bool exec_wrote_at_once(const Exec *exec);

/* Counters of the present run. */
i64 exec_rows_changed(const Exec *exec);                /* As changes() counts. */
i64 exec_rows_changed_total(const Exec *exec);          /* With triggers and FK actions. */
bool exec_last_rowid(const Exec *exec, i64 *rowid_out); /* False: no row was inserted. */
i64 exec_deferred_violations(const Exec *exec); /* Change of the count of open deferred FKs. */

/* What the runs since it was opened, or since the counters were cleared, have done. */
typedef struct ExecStatus {
    u64 full_scan_rows; /* Read by scans of whole tables and indexes, those read ahead included. */
    u64 sorts;
    u64 build_rows; /* Put into hash tables of joins. */
    u64 steps;      /* About: rows and calls of operators, as the progress handler counts them. */
} ExecStatus;
void exec_status(const Exec *exec, ExecStatus *status_out);
void exec_status_clear(Exec *exec);
u64 exec_memory_bytes(const Exec *exec);

/* Trips: does an unfinished scan of this run read `tree`?  And: what it has read ahead is stale. */
bool exec_reads_tree(const Exec *exec, const Store *store, TreeId tree);
void exec_trip(Exec *exec);
/* Has the run begun and not ended? */
bool exec_is_running(const Exec *exec);

/* EXPLAIN ANALYZE: what node `number` did in the present run. */
typedef struct ExecNodeCounters {
    u64 rows, calls, rewinds;
    u64 time_ns; /* These three with all inputs. */
    u64 pages;   /* Touched in the stores that the plan reads, also by others meanwhile. */
    u64 spill_bytes;
} ExecNodeCounters;
/* The operator that was opened under that number; NULL: none. */
const PlanNode *exec_node_plan(const Exec *exec, u32 number);
void exec_node_counters(const Exec *exec, u32 number, ExecNodeCounters *counters_out);
