/*
 * planner.h -- from a syntax tree to a Plan: name resolution, rewriting, choice of access paths.
 *
 * A plan is made against one catalog snapshot and one environment (functions, collations, flags);
 * it is immutable afterwards and holds no bound value.  The caller keeps the snapshot alive as long
 * as the plan (Plan.catalog names it) and gives the plan back with plan_release().
 *
 * Errors: ERR_SQL with SQLite's text and the byte offset, ERR_AUTH (the authorizer said no),
 * ERR_LIMIT, ERR_UNSUPPORTED (understood, refused by name), ERR_NOMEM, and what a catalog lookup
 * gives.
 *
 * Tasks: no state outside the call; any task, at any time.
 */
#pragma once

#include "sql/catalog/catalog.h"
#include "sql/parse/ast.h"
#include "sql/plan.h"

/* Answers of an authorizer, and the codes of its questions (SQLite's numbers). */
typedef enum PlanAuthAnswer {
    PLAN_AUTH_OK = 0,
    PLAN_AUTH_DENY = 1,
    PLAN_AUTH_IGNORE = 2
} PlanAuthAnswer;
typedef enum PlanAuthAction {
    PLAN_AUTH_DELETE = 9,
    PLAN_AUTH_INSERT = 18,
    PLAN_AUTH_READ = 20,
    PLAN_AUTH_SELECT = 21,
    PLAN_AUTH_UPDATE = 23,
    PLAN_AUTH_FUNCTION = 31,
    PLAN_AUTH_RECURSIVE = 33
} PlanAuthAction;

/*
 * For ALTER TABLE RENAME COLUMN: told of each name that means a column of a base table.  `sql` is
 * the text that the name's span counts from: for stored texts, TableDef.sql and TriggerDef.sql
 * themselves.  A name may be told twice.  For a string in double quotes `table` is NULL.
 */
typedef struct PlanNotes {
    void (*name)(void *arg, Slice sql, const AstName *name, const TableDef *table, u32 column);
    void *arg;
    const char *failed_in; /* Out: the view or trigger whose text made the error; NULL: none. */
} PlanNotes;

typedef struct PlanContext {
    const CatalogView *catalog;
    const FuncTable *functions;
    /* NULL result: no such collation.  The three built-in ones are found without asking. */
    const Collation *(*find_collation)(void *arg, Slice name);
    void *collation_arg;
    /* Table-valued functions by name; NULL result: none.  May be NULL. */
    const TableFunc *(*find_table_func)(void *arg, Slice name);
    void *table_func_arg;
    /* The definition of a virtual table with its columns, made by the module that it names; or
       with `stored` NULL, the table that a module of that name stands for by itself (NULL without
       an error: there is none).  It lives as long as a plan that is not stale. */
    const TableDef *(*find_virtual)(void *arg, const TableDef *stored, Slice name, ErrMsg *msg);
    void *virtual_arg;
    /* Rows of a table as far as known; NULL or a negative answer: unknown. */
    f64 (*table_rows)(void *arg, const TableDef *table);
    void *rows_arg;
    /* The authorizer; NULL: everything is allowed. */
    int (*authorize)(void *arg, int action, const char *first, const char *second,
                     const char *database, const char *inner);
    void *authorize_arg;
    PlanNotes *notes;    /* NULL: nobody listens. */
    MemAccount *account; /* Charged for the plan's arena; may be NULL. */
    ArenaPool *pool;     /* Of whoever holds the plan, which it may not outlive; may be NULL. */
    Arena *scratch; /* For what only planning needs; the caller frees it.  NULL: one of its own. */

    /* Limits; 0: SQLite's default. */
    u32 columns_max, expr_depth_max, compound_max, function_args_max, param_max;

    bool entries_only; /* An index is filled where the program's collations are unknown: its entries
                          stand in the order of BINARY. */
    bool foreign_keys;
    bool foreign_lenient; /* A table is being dropped: keys without a parent are passed over. */
    bool recursive_triggers;
    bool ignore_check_constraints;
    bool reverse_unordered; /* PRAGMA reverse_unordered_selects */
    bool count_changes;     /* INSERT, UPDATE and DELETE return the number of rows. */
    bool full_column_names;
    bool long_column_names_off; /* PRAGMA short_column_names = off */
    bool case_sensitive_like;
    bool strings_double_off; /* Double-quoted strings are refused in DML. */
    bool triggers_off, views_off;
    bool writable_schema;
    bool plain; /* No access paths but whole scans, no rewriting: for tests. */
    /* Force other plans, for tests: no_loop_index has hash joins wherever they are possible, and
       subqueries by key from the first run on. */
    bool no_hash_join, no_loop_index, no_decorrelation;
} PlanContext;

/*
 * Plan one SELECT, VALUES, INSERT, UPDATE or DELETE, also under EXPLAIN QUERY PLAN (rows of id,
 * parent, notused, detail).  `sql` is the statement's whole text, to which the tree's spans refer;
 * it is copied into the plan.  The caller owns *plan_out (one reference); NULL on error.
 */
MUST_CHECK Err plan_prepare(const PlanContext *ctx, const AstStatement *ast, Slice sql,
                            Plan **plan_out, ErrMsg *msg);

/* Bind the WHEN and the body of a trigger of `table` (as the catalog has it), for the errors and
   for PlanContext.notes. */
MUST_CHECK Err plan_check_trigger(const PlanContext *ctx, const TableDef *table,
                                  const TriggerDef *trigger, bool is_temp, ErrMsg *msg);

/* The columns of the parent that a foreign key means, by its own columns; false: none, the key does
   not fit ("foreign key mismatch").  `child_column` gets the key's columns in the order of the
   parent's index.  Both have room for def->column_count. */
bool plan_foreign_parent(const TableDef *parent, const ForeignKeyDef *def, u16 *child_column,
                         u16 *parent_column);

/* What an expression in a schema is for: which names and functions it may use, and the words of
   the messages. */
typedef enum PlanExprUse {
    PLAN_USE_CHECK,
    PLAN_USE_DEFAULT,
    PLAN_USE_GENERATED,
    PLAN_USE_INDEX,
    PLAN_USE_PARTIAL
} PlanExprUse;

/*
 * Bind the text of an expression over one row of `table`: cells 0..column_count-1 are its columns,
 * cell column_count the rowid.  `table` may be under construction (CREATE TABLE checks its own
 * expressions).  The result lives in `arena`.
 */
MUST_CHECK Err plan_bind_table_expr(const PlanContext *ctx, Arena *arena, const TableDef *table,
                                    Slice text, PlanExprUse use, PlanExpr **expr_out, ErrMsg *msg);

/*
 * The plan of CREATE INDEX and REINDEX: for each row of the table that the index covers, its key
 * columns in order (expressions evaluated), then the key of the row (the rowid, or the primary key
 * columns of a WITHOUT ROWID table).
 */
MUST_CHECK Err plan_index_build(const PlanContext *ctx, const TableDef *table,
                                const IndexDef *index, Plan **plan_out, ErrMsg *msg);
