/*
 * host_table.h -- a table whose rows the host program makes (a virtual table): the shape shared by
 * name resolution and planning (src/sql), the scan and the row program (src/exec), connections
 * (src/session) and the C API (src/capi).
 *
 * A HostTable belongs to one connection.  Its functions run on the task that runs the statement and
 * may run statements of the same connection.  An error carries its text in `msg`, which is never
 * NULL.
 */
#pragma once

#include "value/func.h"

#define HOST_COLUMN_ROWID (-1)

/* What a constraint says: SQLite's numbers.  From HOST_FUNCTION on: a function of the table's. */
typedef enum HostOp {
    HOST_EQ = 2,
    HOST_GT = 4,
    HOST_LE = 8,
    HOST_LT = 16,
    HOST_GE = 32,
    HOST_MATCH = 64,
    HOST_LIKE = 65,
    HOST_GLOB = 66,
    HOST_REGEXP = 67,
    HOST_NE = 68,
    HOST_IS_NOT = 69,
    HOST_IS_NOT_NULL = 70,
    HOST_IS_NULL = 71,
    HOST_IS = 72,
    HOST_LIMIT = 73,
    HOST_OFFSET = 74,
    HOST_FUNCTION = 150
} HostOp;

typedef struct HostConstraint {
    i32 column; /* HOST_COLUMN_ROWID: the rowid. */
    u8 op;      /* HostOp */
    bool usable;
    bool is_list; /* IN: may be asked for whole (`takes_list`). */
    const Collation *collation;
    const Cell *value; /* The right side if it is a constant; else NULL. */
    /* The answers. */
    u32 argument; /* 1-based position among the arguments of the scan; 0: not used. */
    bool omit;    /* The scan alone sees to it. */
    bool takes_list;
} HostConstraint;

typedef struct HostOrder {
    i32 column;
    bool desc;
} HostOrder;

/* How the rows will be used (sqlite3_vtab_distinct). */
typedef enum HostDistinct {
    HOST_IN_ORDER = 0,
    HOST_GROUPED = 1,
    HOST_DISTINCT = 2,
    HOST_DISTINCT_IN_ORDER = 3
} HostDistinct;

/* One question of the planner: how would a scan with these constraints go? */
typedef struct HostIndex {
    HostConstraint *constraint;
    u32 constraint_count;
    HostOrder *order;
    u32 order_count;
    u8 distinct;      /* HostDistinct */
    u64 columns_used; /* The last bit: any column from the 64th on. */
    /* The answers; preset to what a scan of everything is. */
    i32 number;
    const char *text; /* In `arena`; NULL: none. */
    bool ordered;
    bool one_row;
    bool shows_hex; /* `number` in hexadecimal in EXPLAIN QUERY PLAN. */
    f64 cost;
    i64 rows;
    Arena *arena;
} HostIndex;

typedef struct HostTable HostTable;
typedef struct HostCursor HostCursor; /* The maker's; opaque here. */

/* An argument of a scan that stands for a whole IN list: a pointer cell (CELL_POINTER, CELL_NULL)
   whose pointer is one of these.  It lives as long as the scan. */
typedef struct HostList {
    u32 magic; /* HOST_LIST_MAGIC */
    u32 count, at;
    const Cell *value;
    void *scratch; /* The reader's. */
} HostList;
#define HOST_LIST_MAGIC 0x484c5354u

typedef struct HostTableOps {
    /* ERR_CONSTRAINT without a text: not with these constraints. */
    Err (*best_index)(HostTable *table, HostIndex *index, ErrMsg *msg);
    Err (*open)(HostTable *table, HostCursor **cursor_out, ErrMsg *msg);
    void (*close)(HostCursor *cursor);
    /* Begin a scan; *row_out: there is a row. */
    Err (*filter)(HostCursor *cursor, i32 number, const char *text, u32 argc, const Cell *argv,
                  bool *row_out, ErrMsg *msg);
    Err (*next)(HostCursor *cursor, bool *row_out, ErrMsg *msg);
    /* *out is NULL already.  With `unchanged` the value will only be written back: the table may
       decline to make it (CELL_POINTER with HOST_UNCHANGED then). */
    Err (*column)(HostCursor *cursor, u32 column, bool unchanged, Arena *arena, Cell *out,
                  ErrMsg *msg);
    Err (*rowid)(HostCursor *cursor, i64 *rowid_out, ErrMsg *msg);
    /* As sqlite3_module.xUpdate: one argument deletes; else the old key (NULL: insert), the new
       key, the columns.  ERR_CONSTRAINT may be ignored or replaced by its caller's conflict. */
    Err (*update)(HostTable *table, u32 argc, const Cell *argv, u8 conflict, i64 *rowid_out,
                  ErrMsg *msg);
    /* The table's own version of a function whose first argument is one of its columns; *op_out at
       least HOST_FUNCTION: it may also be a constraint.  NULL: none. */
    const FuncDef *(*find_function)(HostTable *table, const char *name, u32 argc, u8 *op_out);
} HostTableOps;

struct HostTable {
    const HostTableOps *ops;
    const char *module;
    bool read_only;
    bool judges_conflicts; /* A constraint error leaves nothing behind: OR IGNORE... may apply. */
    bool is_eponymous;
    bool direct_only; /* Not from triggers and views. */
    bool innocuous;
};

/* The pointer of an argument that xUpdate may leave as it is. */
extern const char host_unchanged[];
static inline bool
cell_is_unchanged(const Cell *cell)
{
    return cell->type == CELL_NULL && (cell->flags & CELL_POINTER) != 0 &&
           cell->u.pointer == (const void *)host_unchanged;
}
static inline Cell
cell_unchanged(void)
{
    return (Cell){.type = CELL_NULL, .flags = CELL_POINTER, .u.p = (const u8 *)host_unchanged};
}
