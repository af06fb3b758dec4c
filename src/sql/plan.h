/*
 * plan.h -- the product of sql/: a bound, planned statement, and all that exec/ reads of it.
 *
 * A Plan and everything it points to lives in the plan's arena and is immutable once made; many
 * statements may run one plan at once.  It holds no bound value and no run state.
 *
 * Rows.  Every node yields rows of `columns` cells.  Expressions read
 *   - PX_COLUMN n: cell n of the row they are evaluated on (the input row of their node), and
 *   - PX_REG n: register n of the running statement.
 * Registers carry values across nodes: the outer row of a loop join to its inner side, outer
 * columns to a correlated subquery, OLD and NEW to a trigger.  Who sets a register is written at
 * the node that does.  A node whose expressions read registers is started again (exec: "rewound")
 * whenever they change.
 *
 * Comparison stamps (affinity to apply to both sides, collation) are set by the binder, copied by
 * rewrites and never derived again.
 */
#pragma once

#include "sql/schema.h"
#include "value/func.h"
#include "value/value.h"

typedef struct PlanExpr PlanExpr;
typedef struct PlanNode PlanNode;
typedef struct PlanSub PlanSub;
typedef struct Plan Plan;

/* ---- expressions ---- */

typedef enum PlanOp {
    PX_CONST,  /* u.constant */
    PX_PARAM,  /* u.number: 1-based parameter */
    PX_COLUMN, /* u.number: cell of the input row */
    PX_REG,    /* u.number: register */
    /* Unary: arg[0]. */
    PX_NEG,
    PX_BIT_NOT,
    PX_NOT,
    PX_IS_NULL,
    PX_NOT_NULL,
    PX_IS_TRUE,
    PX_IS_FALSE,
    PX_IS_NOT_TRUE,
    PX_IS_NOT_FALSE,
    PX_PLUS,     /* Unary +: the value, without affinity. */
    PX_CAST,     /* To `affinity`. */
    PX_AFFINITY, /* Apply `affinity` as a column would (not a CAST). */
    /* Binary: arg[0], arg[1]. */
    PX_ADD,
    PX_SUB,
    PX_MUL,
    PX_DIV,
    PX_REM,
    PX_BIT_AND,
    PX_BIT_OR,
    PX_SHL,
    PX_SHR,
    PX_CONCAT,
    /* Comparisons: cmp_affinity applied to both, collation. */
    PX_EQ,
    PX_NE,
    PX_LT,
    PX_LE,
    PX_GT,
    PX_GE,
    PX_IS,
    PX_IS_NOT,
    /* N-ary, short-circuiting, left to right. */
    PX_AND,
    PX_OR,
    PX_BETWEEN,    /* arg: x, low, high; stamps in u.between (low and high may differ). */
    PX_IN_LIST,    /* arg[0] IN (arg[1..]); FLAG_NOT. cmp_affinity applies to both sides. */
    PX_IN_SUB,     /* arg[0..columns) IN (u.sub); FLAG_NOT.  u.sub->cmp per column. */
    PX_EXISTS,     /* u.sub; FLAG_NOT */
    PX_SCALAR,     /* u.sub: first column of its first row, NULL if none. */
    PX_SUB_COLUMN, /* Column u.sub_column.column of the one row of u.sub_column.sub (row values). */
    PX_CASE,       /* arg: [base if FLAG_BASE] when1 then1 when2 then2 ... [else if FLAG_ELSE];
                      with a base, stamps per arm in u.arm_stamps. */
    PX_FUNC,       /* u.func over arg[] */
    PX_COALESCE,   /* First arg that is not NULL; evaluates no further. */
    PX_ROW_COMPARE, /* Row values: args a0..an-1, b0..bn-1; u.row: operator and stamps. */
    PX_RAISE,       /* RAISE(): u.raise; arg[0] the message. */
    /* Only while binding (u.bound); never in a finished plan. */
    PX_BOUND_COLUMN,
    PX_BOUND_AGG,
    PX_BOUND_WIN
} PlanOp;

typedef enum PlanExprFlags {
    PX_FLAG_NOT = 1,
    PX_FLAG_BASE = 2,
    PX_FLAG_ELSE = 4,
    PX_FLAG_READS_ROW = 8,  /* Reads the input row somewhere below. */
    PX_FLAG_READS_REG = 16, /* Reads registers somewhere below. */
    PX_FLAG_READS_PARAM = 32,
    PX_FLAG_HAS_SUB = 64, /* Holds a subquery somewhere below. */
    PX_FLAG_ON = 128,     /* Came from the ON clause of an outer join. */
    /* The binder's own: */
    PX_FLAG_COLLATE = 256,     /* An explicit COLLATE stands somewhere below. */
    PX_FLAG_HAS_AGG = 512,     /* An aggregate call stands somewhere below. */
    PX_FLAG_ROWID_NAME = 1024, /* A column named by one of the rowid's names. */
    PX_FLAG_HAS_WIN = 2048     /* A window function call stands somewhere below. */
} PlanExprFlags;

typedef enum PlanClass {
    PLAN_TOTAL,    /* Cannot fail, no side effect: may be evaluated at any time. */
    PLAN_FALLIBLE, /* May raise an error: only where SQLite would evaluate it. */
    PLAN_VOLATILE  /* Counts calls: row by row, in SQLite's order. */
} PlanClass;

typedef struct PlanStamp {
    u8 affinity; /* Applied to both sides before comparing. */
    const Collation *collation;
} PlanStamp;

struct PlanExpr {
    u8 op;           /* PlanOp */
    u8 affinity;     /* The affinity this expression has as an operand; CAST, AFFINITY: target. */
    u8 cmp_affinity; /* Comparisons and IN: affinity applied to both sides. */
    u8 klass;        /* PlanClass */
    u16 flags;       /* PlanExprFlags */
    u32 arg_count;
    u32 sql_offset, sql_bytes;  /* Span in the statement's text. */
    const Collation *collation; /* Comparisons: the one to use.  Else: the one this carries. */
    PlanExpr **arg;
    union {
        Cell constant;
        u32 number;
        struct {
            const FuncDef *def;
            u32 site;            /* Numbered in the plan: where exec keeps auxiliary data. */
            const char *pure_in; /* FuncCall.pure_in */
        } func;
        PlanSub *sub;
        struct {
            PlanSub *sub;
            u32 column;
        } sub_column;
        struct {
            PlanStamp low, high;
        } between;
        PlanStamp *arm_stamps;
        struct {
            u8 op; /* PX_EQ, PX_LT, ...; PX_IS */
            u32 columns;
            PlanStamp *stamps;
        } row;
        struct {
            u8 action; /* Conflict: IGNORE, ROLLBACK, ABORT, FAIL */
        } raise;
        struct {
            void *of;
            u32 column;
        } bound;
    } u;
};

/*
 * A subquery inside an expression.  Before it runs, exec evaluates bind_expr[i] on the row at hand
 * and stores it in register bind_reg[i].  Without binds (and not volatile) it runs once a
 * statement run and its result is kept.
 */
struct PlanSub {
    PlanNode *root;
    u32 number; /* In the plan: where exec keeps its state. */
    u32 bind_count;
    u32 *bind_reg;
    PlanExpr **bind_expr;
    u32 columns;
    PlanStamp *cmp;          /* IN: how column i compares. */
    bool correlated;         /* bind_count > 0 or reads registers set further out. */
    bool is_volatile;        /* Runs at each use. */
    struct PlanKeyed *keyed; /* Another way to run it; NULL: there is none. */
};

/*
 * A correlated subquery run once for all outer rows.  Row i of `root` has key_count keys, then the
 * result columns (none for EXISTS); an outer row is answered by the rows whose keys equal its
 * probes, stamps applied to both.  No row: what the subquery as written gives, which is the same
 * for all such outer rows.  `root` reads nothing outside; probes read registers.
 */
typedef struct PlanKeyed {
    PlanNode *root;
    u32 key_count;
    PlanExpr **probe;
    PlanStamp *stamp; /* [key_count]; IN: one more for the values. */
    bool *null_safe;
    bool is_aggregate; /* One row a key. */
    u32 runs_before;   /* So often it is run as written first. */
} PlanKeyed;

/* ---- nodes ---- */

typedef enum PlanKind {
    PLAN_ONE_ROW,   /* One row without columns. */
    PLAN_VALUES,    /* u.values */
    PLAN_SCAN,      /* u.scan: a table or an index, whole or a range. */
    PLAN_OR_SCAN,   /* u.or_scan: union of scans of one table, each row once. */
    PLAN_FILTER,    /* input; u.filter */
    PLAN_PROJECT,   /* input; u.project */
    PLAN_LOOP_JOIN, /* input = outer, right = inner; u.loop */
    PLAN_HASH_JOIN, /* input = probe side, right = build side; u.hash */
    PLAN_SORT,      /* input; u.sort */
    PLAN_LIMIT,     /* input; u.limit */
    PLAN_GROUP,     /* input; u.group */
    PLAN_DISTINCT,  /* input; u.distinct */
    PLAN_COMPOUND,  /* u.compound */
    PLAN_MATERIAL,  /* input: run once into memory, read many times (u.material).  In the tree
                       itself: keeps the rows of its input over rewinds, until registers that the
                       input reads change. */
    PLAN_CTE_SCAN,  /* u.cte_scan: rows of a PLAN_MATERIAL or of a recursion's current rows */
    PLAN_RECURSIVE, /* u.recursive */
    PLAN_WINDOW,    /* input; u.window: calls over frames, added to each row of the input. */
    PLAN_COUNT,     /* u.count: one row, the number of keys of a tree */
    PLAN_MIN_MAX,   /* not used by the binder yet: MIN/MAX from a tree end is a SCAN with LIMIT 1 */
    PLAN_TABLE_FUNC, /* u.table_func: json_each, generate_series, pragma_*... */
    PLAN_HOST_SCAN   /* u.host_scan: a virtual table. */
} PlanKind;

/* One value or a list of values for one key column of a range. */
typedef struct PlanKeyPart {
    PlanExpr *value;    /* Equality; reads constants, parameters, registers only. */
    PlanExpr **in_list; /* Or an IN list ... */
    u32 in_count;
    PlanSub *in_sub; /* ... or IN (SELECT); probes go in value order, each value once. */
    bool null_safe;  /* IS: NULL matches NULL. */
} PlanKeyPart;

typedef struct PlanScan {
    const TableDef *table;
    const IndexDef *index; /* NULL: the table's own tree. */
    bool backwards;
    bool covering; /* All columns come from the index entry. */
    u16 eq_count;  /* Key columns bound by equality, from the first on. */
    PlanKeyPart *eq;
    PlanExpr *low, *high; /* Range of the key column after them; NULL: open. */
    bool low_inclusive, high_inclusive;
    /* Bound values come converted (PX_AFFINITY stands in the expression where the comparison asks
       for it); exec converts nothing further.  A value of another type than the key's is dealt with
       exactly, as the comparison would: text against a rowid, 1.5 or 1e300 as a rowid bound...; a
       NULL bound selects nothing. */
    u16 *column;      /* Output cell i is this table column (or COLUMN_ROWID). */
    PlanExpr *filter; /* Over the output cells; NULL if none.  Rows failing it are dropped. */
    /* Index expressions available: output cells beyond `table` columns are not used yet. */
} PlanScan;

/* One argument of the scan of a virtual table or a table-valued function: a value, or an IN list
   that is walked value by value or, with `whole_list`, handed over whole.  Nothing at all: NULL. */
typedef struct PlanScanArg {
    PlanKeyPart part;
    u8 affinity; /* Of a subquery's values; others come converted. */
    bool whole_list;
    /* A list walked value by value, which the table does not promise to test: rows whose output
       cell is another value than the one in force are dropped.  -1: no test. */
    i32 check_cell;
    PlanStamp check;
} PlanScanArg;

typedef struct PlanSortKey {
    PlanExpr *expr; /* Over the input row. */
    const Collation *collation;
    bool desc;
    bool nulls_last; /* Resolved: where NULLs stand in the output. */
} PlanSortKey;

typedef enum PlanJoin {
    JOIN_INNER,
    JOIN_LEFT,  /* Unmatched outer rows come with NULLs on the right. */
    JOIN_SEMI,  /* Outer rows that have a match, once; yields outer columns only. */
    JOIN_ANTI,  /* Outer rows without a match; outer columns only. */
    JOIN_RIGHT, /* Matches, then unmatched inner rows with NULLs on the left. */
    JOIN_FULL   /* RIGHT and FULL come as PLAN_HASH_JOIN only, perhaps with key_count 0. */
} PlanJoin;

typedef struct PlanAgg {
    const FuncDef *def;
    u32 site;
    u32 arg_count;
    PlanExpr **arg; /* Over the input row. */
    const Collation *collation;
    bool distinct; /* One argument; compared by `collation`. */
    PlanExpr *filter;
    u32 order_count; /* ORDER BY inside the call. */
    PlanSortKey *order;
} PlanAgg;

/* ---- windows ---- */

typedef enum PlanFrameUnit { FRAME_ROWS, FRAME_RANGE, FRAME_GROUPS } PlanFrameUnit;
typedef enum PlanBound {
    BOUND_UNBOUNDED_PRECEDING,
    BOUND_PRECEDING, /* By an offset, as FOLLOWING. */
    BOUND_CURRENT_ROW,
    BOUND_FOLLOWING,
    BOUND_UNBOUNDED_FOLLOWING
} PlanBound;
typedef enum PlanExclude {
    EXCLUDE_NOTHING,
    EXCLUDE_CURRENT_ROW,
    EXCLUDE_GROUP,
    EXCLUDE_TIES,
    EXCLUDE_NO_OTHERS /* As written: the same rows as NOTHING, but computed row by row. */
} PlanExclude;

/* One call of a window function or of an aggregate over a frame. */
typedef struct PlanWindowCall {
    const FuncDef *def;
    u32 arg_count;
    PlanExpr **arg; /* Over the input row, as all expressions here. */
    const Collation *collation;
    PlanExpr *filter; /* Aggregates; NULL if none. */
    u32 cell;         /* Output cell. */
} PlanWindowCall;

typedef struct PlanFrame {
    u8 unit, start, end, exclude; /* PlanFrameUnit, PlanBound, PlanExclude */
    PlanExpr *start_offset;       /* PRECEDING and FOLLOWING: reads no row; for each partition. */
    PlanExpr *end_offset;
    u32 call_count;
    PlanWindowCall *call;
} PlanFrame;

/*
 * The input comes sorted by partition, then order.  Output: the cells of the input, then one a
 * call. RANGE with an offset has exactly one order key.
 */
typedef struct PlanWindow {
    u32 partition_count;
    PlanExpr **partition;
    const Collation **partition_collation;
    u32 order_count;
    PlanSortKey *order;
    u32 frame_count;
    PlanFrame *frame;
    u32 level_count; /* EXPLAIN QUERY PLAN: SQLite nests a numbered subquery for each frame, */
    u32 *level;      /* the outermost first. */
} PlanWindow;

typedef enum PlanSetOp { SET_UNION_ALL, SET_UNION, SET_EXCEPT, SET_INTERSECT } PlanSetOp;

struct PlanNode {
    u8 kind;         /* PlanKind */
    u8 klass;        /* Highest class of the expressions in this node. */
    bool reads_regs; /* Reads registers set outside of this subtree. */
    u32 number;      /* In the plan: where exec keeps its state. */
    u32 columns;
    f64 rows, cost; /* Estimates. */
    PlanNode *input, *right;
    union {
        struct {
            u32 row_count;
            PlanExpr ***row; /* row[i][column]; read no input row */
        } values;
        PlanScan scan;
        struct {
            const TableDef *table;
            u32 term_count;
            PlanNode **term; /* PLAN_SCANs with equal output columns; cell `key_cells` on identify
                                the row */
            u32 key_first, key_count;
            PlanExpr *filter;
        } or_scan;
        struct {
            PlanExpr *condition; /* Rows where it is true stay.  Without PX_FLAG_READS_ROW, and not
                                    volatile: decided once, at each rewind, before the input. */
        } filter;
        struct {
            PlanExpr **expr; /* `columns` of them, over the input row. */
        } project;
        struct {
            u8 join;        /* PlanJoin */
            u32 bind_count; /* Before each rewind of `right`: register <- outer cell. */
            u32 *bind_reg;
            u32 *bind_column;
            PlanExpr *condition; /* Over outer cells ++ inner cells; NULL if none. */
        } loop;
        struct {
            u8 join;
            u32 key_count;
            PlanExpr **probe_key; /* Over a row of input. */
            PlanExpr **build_key; /* Over a row of right. */
            PlanStamp *stamp;
            bool *null_safe;
            PlanExpr *condition; /* Residual, over probe cells ++ build cells. */
        } hash;
        struct {
            u32 key_count;
            PlanSortKey *key;
            u32 sorted_prefix; /* The input is already sorted by that many keys. */
            PlanExpr *limit; /* Top-N: rows needed (limit + offset added up by exec); NULL: all. */
            PlanExpr *offset;
            bool of_targets; /* The keys of an UPDATE or DELETE; no query asked for the order. */
        } sort;
        struct {
            PlanExpr *limit; /* Negative: no limit.  NULL: none. */
            PlanExpr *offset;
        } limit;
        struct {
            u32 key_count;
            PlanExpr **key; /* Output cells 0..key_count-1. */
            const Collation **key_collation;
            bool *key_desc; /* Order of output, NULL: ascending. */
            u32 agg_count;
            PlanAgg *agg; /* Output cells after the keys. */
            u32 bare_count;
            PlanExpr **bare; /* Output cells after the aggregates: from the governing row. */
            i32 bare_agg;    /* The min or max that chooses the row; -1: the group's first row. */
            bool ordered;    /* The input comes grouped by the keys. */
        } group;             /* key_count == 0: always exactly one row. */
        struct {
            u32 key_columns; /* The first so many cells decide; the rest comes from the first row.
                              */
            const Collation **collation; /* One a key column. */
            bool ordered;
        } distinct;
        struct {
            u8 op;         /* PlanSetOp */
            u32 arm_count; /* UNION ALL: any number; else 2 */
            PlanNode **arm;
            const Collation **collation;
        } compound;
        struct {
            u32 material_no;
        } material;
        struct {
            u32 material_no; /* Which material or recursion. */
        } cte_scan;
        struct {
            u32 material_no;
            PlanNode *initial;
            PlanNode *step; /* Reads the current row by PLAN_CTE_SCAN of material_no. */
            bool distinct;  /* UNION */
            const Collation **collation;
            u32 key_count; /* ORDER BY: a priority queue. */
            PlanSortKey *key;
            PlanExpr *limit, *offset;
        } recursive;
        PlanWindow *window;
        struct {
            const TableDef *table;
            TreeId tree; /* The smallest tree that holds every row. */
            const IndexDef *index;
        } count;
        struct {
            const TableFunc *func;
            u32 arg_count;    /* As many as func has hidden columns, and the two limits. */
            PlanScanArg *arg; /* Nothing at all: not given. */
            u16 *column;
        } table_func;
        struct {
            const TableDef *table; /* With `host`. */
            i32 number;            /* The table's own name of the way ... */
            const char *text;      /* ... and more of it; NULL: none. */
            u32 arg_count;
            PlanScanArg *arg;
            u16 *column;           /* Output cell i is this column, or COLUMN_ROWID. */
            const bool *unchanged; /* By column: only to be written back; NULL: none. */
        } host_scan;
    } u;
    const char *eqp; /* EXPLAIN QUERY PLAN text of this node; NULL: it has no line of its own. */
    const char *why; /* EXPLAIN ANALYZE: why it is this one; NULL: the kind says it. */
};

/* ---- writes ---- */

/* One index of the target, ready for the row program. */
typedef struct PlanIndexWrite {
    const IndexDef *index;
    PlanExpr **expr; /* For COLUMN_EXPR columns: over the row (see below); else NULL entries. */
    PlanExpr *where; /* Partial index. */
    bool touched;    /* UPDATE: some column of it is in SET. */
} PlanIndexWrite;

typedef struct PlanUpsert {
    const IndexDef *index; /* The conflict target; NULL with `any`, or the rowid. */
    bool any;              /* No target given. */
    bool rowid;
    bool do_nothing;
    u32 set_count;
    u16 *set_column;
    PlanExpr **set_expr; /* Over the old row, then the excluded row: cells column_count+1.. (its
                            rowid included). */
    PlanExpr *where;
} PlanUpsert;

/*
 * One trigger that the statement can set off: those of its own event, those of UPDATE for ON
 * CONFLICT DO UPDATE, and, when recursive triggers are on, those of DELETE where REPLACE may delete
 * rows.  In firing order.  A body may lead back to itself (recursive triggers): plans are then a
 * cyclic graph, and exec opens one run state a level.
 */
typedef struct PlanTrigger {
    const char *name;
    u8 event;       /* PlanWriteKind */
    bool before;    /* Else after (INSTEAD OF on views: before). */
    PlanExpr *when; /* Reads OLD and NEW registers. */
    u32 body_count;
    Plan **body; /* Run with the row's registers. */
    u32 old_reg,
        new_reg;         /* Column i of OLD is register old_reg + i; the rowid is + column_count. */
    u64 column_mask_any; /* UPDATE OF: 1 if limited */
    u16 of_count;
    u16 *of_column;
} PlanTrigger;

typedef enum PlanWriteKind { WRITE_INSERT, WRITE_UPDATE, WRITE_DELETE } PlanWriteKind;

/* A foreign key of the written table: a row with such a parent must exist. */
typedef struct PlanForeignKey {
    const ForeignKeyDef *def;
    const TableDef *parent; /* NULL: no such table; every key without NULL violates. */
    const IndexDef *index;  /* The unique index (or WITHOUT ROWID key) to look it up in; NULL: the
                               rowid. */
    u16 *child_column;      /* By column of `index` (one for a rowid): the column of this table. */
    bool touched;           /* UPDATE: one of them is in SET. */
} PlanForeignKey;

/* A foreign key that refers to the written table. */
typedef struct PlanForeignChild {
    const ForeignKeyDef *def;
    const TableDef *child;
    u16 *
        parent_column; /* By column of def: the column of this table, COLUMN_ROWID if it is that. */
    bool touched;      /* UPDATE: one of them is in SET. */
    Plan *find;        /* SELECT that yields a row for each child row whose key is that of OLD. */
    Plan *on_delete;   /* Body of the action, as of a trigger; NULL: NO ACTION and RESTRICT. */
    Plan *on_update;
    u32 old_reg, new_reg; /* As in PlanTrigger, in all three. */
} PlanForeignChild;

/*
 * A write statement.  "The row" that its expressions read has cells 0..column_count-1 for the
 * table's columns and cell column_count for the rowid; UPDATE ... FROM and UPSERT add cells behind.
 *
 * INSERT: `source` yields the values; value_cell[c] says which of its cells goes to column c, or
 * -1: the default.  UPDATE and DELETE: `source` yields the key of each target (rowid, or the
 * primary key columns of a WITHOUT ROWID table), in scan order, then `extra` cells.  For a view it
 * yields the old row's cells instead of a key.
 */
typedef struct PlanWrite {
    u8 kind;     /* PlanWriteKind */
    u8 conflict; /* Conflict of the statement; DEFAULT: each constraint's own. */
    const TableDef *table;
    PlanNode *source;
    bool collect;            /* Read all targets before the first change. */
    bool truncate;           /* DELETE without WHERE, triggers or foreign keys: clear the trees. */
    i32 *value_cell;         /* INSERT: per column; and [column_count] for an explicit rowid. */
    PlanExpr **default_expr; /* Per column, NULL: none. */
    PlanExpr **generated;    /* Per column, over the row; NULL: not generated. */
    u16 *generated_order;    /* Columns in the order of their dependencies. */
    u16 generated_count;
    u32 set_count;   /* UPDATE */
    u16 *set_column; /* Column, or COLUMN_ROWID. */
    PlanExpr **set_expr;
    u32 extra;
    u32 check_count;
    PlanExpr **check;        /* Over the row; NULL passes. */
    const char **check_text; /* For the message: the constraint's name or text. */
    u32 index_count;
    PlanIndexWrite
        *index; /* All indexes of the table (without the primary key of WITHOUT ROWID). */
    u32 upsert_count;
    PlanUpsert *upsert;
    u32 returning_count;
    PlanExpr **returning; /* Over the row. */
    u32 trigger_count;
    PlanTrigger *trigger;
    u32 foreign_key_count; /* 0 with PRAGMA foreign_keys off. */
    PlanForeignKey *foreign_key;
    u32 foreign_child_count;
    PlanForeignChild *foreign_child;
    /* A virtual table: the arguments of its update function, over a row of `source`. */
    u32 host_arg_count;
    PlanExpr **host_arg;
    const TableDef *sequence; /* AUTOINCREMENT: sqlite_sequence of that database; else NULL. */
    bool counts_changes;
} PlanWrite;

/* ---- statements ---- */

typedef struct PlanColumn {
    const char *name;
    const char *decl_type;                                      /* NULL for expressions. */
    const char *origin_database, *origin_table, *origin_column; /* NULL for expressions. */
} PlanColumn;

typedef struct PlanTableUse {
    const TableDef *table;
    bool writes;
} PlanTableUse;

struct Plan {
    Arena arena; /* Owns everything, this struct included. */
    _Atomic u32 references;
    PlanNode *root;   /* Rows of a SELECT; NULL for writes without RETURNING. */
    PlanWrite *write; /* NULL for SELECT. */
    u32 column_count;
    PlanColumn *column;
    u32 param_count;
    const char **param_name; /* [param_count], NULL entries for `?`. With their prefix. */
    u32 reg_count;           /* Registers to allocate. */
    u32 node_count, sub_count, site_count, material_count;
    /* [material_count] The shared ones: a PLAN_MATERIAL that several PLAN_CTE_SCANs read, run when
       the first of them asks; NULL for the numbers of recursions. */
    PlanNode **material;
    u8 klass; /* Highest class in it. */
    bool read_only;
    bool counts_changes; /* A write whose only row is the number of rows it changed. */
    u32 table_count;
    PlanTableUse *table; /* For schema locks, trips and re-preparation. */
    const void *catalog; /* The snapshot it holds a reference on (opaque here). */
    const char *sql;     /* Its text, NUL-terminated, for spans. */
};

/* Give back one reference; the last frees the plan.  NULL is allowed. */
void plan_release(Plan *plan);
