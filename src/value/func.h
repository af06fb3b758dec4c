/*
 * func.h -- what a SQL function is: the shape shared by the built-in ones (src/func), those of the
 * host program (src/capi), name resolution (src/sql) and evaluation (src/exec).
 *
 * A FuncDef is immutable while any plan refers to it.  Calls happen on the task that runs the
 * statement.
 */
#pragma once

#include "value/value.h"

typedef struct FuncDef FuncDef;
typedef struct FuncCall FuncCall;

/*
 * What functions may ask of the session that runs them.  The session fills the table; members may
 * be NULL where a caller has no session (constant folding), and then the functions that need them
 * are never folded, because they are volatile or "slow-changing".
 */
typedef struct FuncEnv {
    void *arg;
    i64 (*changes)(void *arg);
    i64 (*total_changes)(void *arg);
    i64 (*last_insert_rowid)(void *arg);
    void (*random)(void *arg, void *bytes_out, size_t bytes);
    i64 (*now_ms)(void *arg); /* Unix milliseconds, fixed during one step call. */
    /* Seconds that local time is ahead of UTC at that moment; false: not known. */
    bool (*local_offset_s)(void *arg, i64 unix_s, i32 *offset_s_out);
    u64 length_max;       /* SQLITE_LIMIT_LENGTH */
    u32 like_pattern_max; /* SQLITE_LIMIT_LIKE_PATTERN_LENGTH */
    bool case_sensitive_like;
    /* True when the statement was interrupted or is over time; long loops ask now and then. */
    bool (*stop)(void *arg);
} FuncEnv;

/*
 * One call site at run time.  `arena` holds result bytes; it lives at least until the row or batch
 * that the result belongs to has been consumed.  `aux` slots keep values between rows of one
 * statement run, keyed by argument (sqlite3_set_auxdata); NULL where unavailable.
 */
struct FuncCall {
    const FuncDef *def;
    const FuncEnv *env;
    Arena *arena;
    const Collation *collation; /* Of the first argument that has one; BINARY by default. */
    ErrMsg *msg;
    void *state; /* Aggregates and windows: def->state_bytes, zeroed at init. */
    void **aux;
    void (**aux_free)(void *);
    u32 aux_count;
    /* Where the call stands if only pure functions may stand there ("a CHECK constraint", "a
       generated column", "an index"), else NULL: date('now') is an error then. */
    const char *pure_in;
    /* Set by the step of min() and max(): this row is the one whose bare columns count. */
    bool took_row;
};

/* Scalar: read argv, write *result_out (already NULL).  An error carries its text in call->msg. */
typedef Err (*FuncScalar)(FuncCall *call, u32 argc, const Cell *argv, Cell *result_out);
/* Aggregate: feed one row / take one row out again (windows). */
typedef Err (*FuncStep)(FuncCall *call, u32 argc, const Cell *argv);
/* Aggregate result so far; may be called several times; must not change the state. */
typedef Err (*FuncValue)(FuncCall *call, Cell *result_out);
/* Fold `other` (the state of a later run of rows) into call->state. */
typedef Err (*FuncCombine)(FuncCall *call, const void *other);

typedef enum FuncKind { FUNC_SCALAR, FUNC_AGGREGATE, FUNC_WINDOW } FuncKind;

typedef enum FuncFlags {
    FUNC_FALLIBLE = 1,        /* May raise an error: not moved before a filter. */
    FUNC_VOLATILE = 2,        /* Counts or changes by call: random(), host functions. */
    FUNC_SLOW_CHANGE = 4,     /* Constant within a statement, not beyond: changes(), date('now'). */
    FUNC_COLLATES = 8,        /* Uses the collation of its arguments. */
    FUNC_SUBTYPE = 16,        /* Reads subtypes of its arguments. */
    FUNC_RESULT_SUBTYPE = 32, /* May set one on its result. */
    FUNC_MINMAX = 64,         /* min() or max() with one argument: governs bare columns. */
    FUNC_MAX = 128,           /* ... and it is max. */
    FUNC_COUNT = 256,         /* count(): count(*) may come from the tree. */
    FUNC_INNOCUOUS = 512,     /* Allowed in schema of untrusted databases. */
    FUNC_DIRECT_ONLY = 1024,  /* Refused in triggers and views. */
    FUNC_LIKE = 2048,         /* like() or glob(): index ranges may be derived. */
    FUNC_INLINE = 4096,       /* coalesce, ifnull, iif, likely...: the binder rewrites the call. */
    FUNC_ORDERED = 8192       /* Aggregate whose result depends on the order of rows. */
} FuncFlags;

/* What exec may do by itself: aggregates whose state it feeds, in any mix with step(), because the
   layout is known; functions that it computes over whole vectors. */
typedef enum FuncKernel {
    FUNC_KERNEL_NONE,
    FUNC_KERNEL_COUNT, /* i64: rows, or values that are not NULL. */
    FUNC_KERNEL_SUM,   /* Sum (value/sum.h) of the values. */
    FUNC_KERNEL_LIKE   /* like(pattern, text) */
} FuncKernel;

/* Window functions that are no aggregates: FuncDef.kernel of those of kind FUNC_WINDOW.  Exec
   computes them from partitions, peers and frames. */
typedef enum FuncWindow {
    FUNC_WINDOW_ROW_NUMBER,
    FUNC_WINDOW_RANK,
    FUNC_WINDOW_DENSE_RANK,
    FUNC_WINDOW_PERCENT_RANK,
    FUNC_WINDOW_CUME_DIST,
    FUNC_WINDOW_NTILE,
    FUNC_WINDOW_LAG,
    FUNC_WINDOW_LEAD,
    FUNC_WINDOW_FIRST_VALUE,
    FUNC_WINDOW_LAST_VALUE,
    FUNC_WINDOW_NTH_VALUE
} FuncWindow;

struct FuncDef {
    const char *name; /* Lower case. */
    i16 argc_min;
    i16 argc_max; /* -1: any number. */
    u8 kind;      /* FuncKind */
    u32 flags;
    u8 kernel; /* FuncKernel, or FuncWindow for FUNC_WINDOW; set by the built-in definitions only.
                */
    u32 state_bytes;
    FuncScalar scalar;
    FuncStep step;
    FuncStep inverse; /* NULL: cannot be used as a moving window. */
    FuncValue value;
    FuncValue final;                    /* The result at the end, once; NULL: `value`. */
    FuncCombine combine;                /* NULL: cannot run in parallel. */
    void (*state_free)(FuncCall *call); /* Release what the state owns; NULL: nothing. */
    void *user_data;
};

/*
 * A function that yields rows: FROM name(arg, ...).  Its columns from `hidden_from` on are hidden;
 * they are its arguments, in order, whether given in parentheses or by "WHERE column = value".
 */
typedef struct TableFunc TableFunc;
typedef struct TableCall {
    const TableFunc *func;
    const FuncEnv *env;
    Arena *arena; /* Bytes of column values; as FuncCall.arena. */
    ErrMsg *msg;
    void *state; /* func->state_bytes, zeroed before the first start; owned by the caller. */
} TableCall;

struct TableFunc {
    const char *name; /* Lower case. */
    const char *const *column;
    u16 column_count;
    u16 hidden_from;
    bool has_limits; /* start() gets two more: the least and the greatest wanted column 0. */
    u32 flags;       /* FuncFlags: FALLIBLE, INNOCUOUS */
    u32 state_bytes;
    /* Begin, or begin again with other arguments.  arg[i] is the hidden column hidden_from + i,
       NULL if it is not given; the cells need not outlive the call.  Limits only narrow: they may
       be of any type, compare as numbers, NULL cells match no row; rows beyond them are no error.
     */
    Err (*start)(TableCall *call, const Cell *const *arg);
    /* Go to the first, then to the next row; *row_out false: there is none. */
    Err (*next)(TableCall *call, bool *row_out);
    /* A column of the row, hidden ones too; *out is already NULL. */
    Err (*value)(TableCall *call, u32 column, Cell *out);
    i64 (*rowid)(const TableCall *call);
    void (*end)(TableCall *call); /* Release what the state owns. */
};

/*
 * A set of functions by name.  `func_find` prefers an exact argument count over "any number"; any
 * match in a table hides the parents' ones.
 * *exists_out (may be NULL) tells "wrong number of arguments" from "no such function".
 */
typedef struct FuncTable FuncTable;
struct FuncTable {
    const FuncTable *parent; /* Asked when this one has no match: built-ins under a session's. */
    const FuncDef *const *defs;
    u32 count;
    /* Open addressing by name hash; built by func_table_index. */
    u32 *slots;
    u32 slot_mask;
};

/* Build the name index over defs[0..count).  The slots are owned: func_table_free. */
MUST_CHECK Err func_table_init(FuncTable *table, const FuncTable *parent,
                               const FuncDef *const *defs, u32 count);
void func_table_free(FuncTable *table);
const FuncDef *func_find(const FuncTable *table, Slice name, u32 argc, bool *exists_out);
