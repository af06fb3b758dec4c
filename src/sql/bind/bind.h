/*
 * bind.h -- from names to meaning: the binder and the bound form that plan/ reads.
 *
 * Binding turns a syntax tree into Query, Core and Source objects whose expressions are PlanExprs
 * with all stamps set, but whose columns are still PX_BOUND_COLUMN (source, column), whose
 * aggregates are PX_BOUND_AGG and whose window function calls are PX_BOUND_WIN.  plan/ lowers them
 * to cells and registers.  A bound expression is never changed after binding: it may be lowered
 * several times, in several places.
 *
 * Errors: the first one sticks in Binder.err; functions that return pointers return NULL then.
 */
#pragma once

#include "sql/plan/planner.h"

typedef struct Binder Binder;
typedef struct Source Source;
typedef struct FromList FromList;
typedef struct Core Core;
typedef struct Query Query;
typedef struct Scope Scope;
typedef struct Cte Cte;
typedef struct WithScope WithScope;
typedef struct BoundAgg BoundAgg;
typedef struct BoundPass BoundPass;
typedef struct BoundWin BoundWin;
typedef struct BoundSub BoundSub;
typedef struct PlanMemo PlanMemo;

#define SOURCES_MAX      64u /* Tables of one join, as in SQLite. */
#define VIEW_DEPTH_MAX   200u
#define SELECT_DEPTH_MAX 400u

typedef struct ExprList {
    PlanExpr **items;
    u32 count, capacity;
} ExprList;

typedef enum SourceKind {
    SOURCE_TABLE,
    SOURCE_QUERY,     /* FROM subquery, view or inlined CTE */
    SOURCE_CTE,       /* Rows of a shared CTE. */
    SOURCE_RECURSION, /* The current rows of a recursive CTE, inside of it. */
    SOURCE_FUNCTION,  /* Table-valued function. */
    SOURCE_ROW        /* The row of a write, excluded, a table expression's row: given cells. */
} SourceKind;

/* What the columns of OLD and NEW, and of excluded, do not bring to a comparison. */
typedef enum SourceBare {
    SOURCE_BARE_NOT,
    SOURCE_BARE_AFFINITY, /* OLD and NEW: no affinity, but for the rowid's. */
    SOURCE_BARE_ALL       /* excluded: neither affinity nor collation. */
} SourceBare;

/* A column as a query offers it to the outside. */
typedef struct QueryColumn {
    const char *name;
    const char *shown; /* What a statement calls it instead; NULL: its name. */
    const char *decl_type;
    const char *origin_database, *origin_table, *origin_column;
    u8 affinity;
    bool explicit_collation;
    const Collation *collation; /* NULL: none. */
    bool hidden_in_star;
} QueryColumn;

struct Source {
    u8 kind; /* SourceKind */
    u8 join; /* AST_JOIN_* with what stands left of it. */
    u8 database;
    bool no_rowid;
    bool flat;     /* Flattened: its columns are `query`'s results, its sources the outer core's. */
    bool nullable; /* Rows of NULLs may stand in for it (outer joins). */
    bool not_indexed;
    bool view_body; /* SOURCE_QUERY made of a view. */
    u8 bare;        /* SourceBare */
    u32 number;     /* In the statement. */
    Core *core;
    u32 index;          /* In core->source. */
    const char *name;   /* Alias or table name: what column references say. */
    Slice alias;        /* Present if one was written. */
    const char *schema; /* For schema.table.column. */
    const TableDef *table;
    Query *query;
    Cte *cte;
    const char *indexed_by;
    ExprList args; /* Table-valued function */
    const TableFunc *func;
    const AstExprs *arg_ast; /* Bound once all sources are known. */
    u32 column_count;
    const QueryColumn *column; /* Not for tables. */
    /* Columns merged with the left side (USING, NATURAL); `keyword` holds the kind of join. */
    AstNames using_names; /* Columns merged with the left side (USING, NATURAL). */
    u8 *used;             /* [column_count + 1]; the last one is the rowid. */
    u16 *cell_of;         /* plan/: position among the cells of this source. */
    u32 cell_count;
    u32 *name_slots; /* Hash of names to column + 1, for wide sources. */
    u32 name_mask;
    PlanExpr ***index_expr; /* By number of index: its expressions by column (lazily). */
    ExprList *index_where;  /* By number of index: conjuncts of a partial index. */
    PlanExpr **generated;   /* Virtual columns: their expressions, where they are used. */
    u8 *generating;         /* Virtual columns being bound: finds loops. */
    u32 base_cell;          /* SOURCE_ROW: cell of its column 0. */
    i32 base_reg;           /* SOURCE_ROW of OLD and NEW: first register; -1: cells. */
};

/* One item of a FROM list: a source or a nested join. */
typedef struct FromItem {
    Source *source;
    FromList *nested;
    u8 join;
    u64 mask;    /* Its sources. */
    ExprList on; /* Conjuncts of ON and USING; those of inner joins go to Core.where. */
} FromItem;

struct FromList {
    FromItem *item;
    u32 count, capacity;
};

struct BoundAgg {
    Core *core;
    u32 number; /* In core->agg. */
    const FuncDef *def;
    ExprList args;
    bool star, distinct;
    PlanExpr *filter;
    PlanSortKey *order;
    u32 order_count;
    const Collation *collation;
    PlanExpr *expr; /* As bound: for comparison. */
};

/* What the rows of a window function are ordered by and which of them it sees; calls that agree in
   all of it share a pass.  SQLite runs the passes last to first. */
struct BoundPass {
    ExprList partition;
    PlanSortKey *order; /* Bound expressions. */
    u32 order_count;
    u8 unit, start, end, exclude; /* As in PlanFrame. */
    PlanExpr *start_offset, *end_offset;
    bool is_copy; /* Of pass 0, for ORDER BY (window.c). */
};

struct BoundWin {
    Core *core;
    u32 number; /* In core->win. */
    u32 pass;   /* In core->pass. */
    const FuncDef *def;
    ExprList args;
    PlanExpr *filter;
    const Collation *collation;
    const BoundWin *copy_of; /* The call of pass 0 that it repeats; NULL: none. */
};

typedef struct OrderTerm {
    i32 result; /* Result column, or -1. */
    PlanExpr *expr;
    const Collation *collation;
    bool desc, nulls_last;
} OrderTerm;

struct Core {
    Query *query;
    FromList from;
    Source **source;
    u32 source_count, source_capacity;
    ExprList where; /* Conjuncts, with those of inner ON clauses behind. */
    ExprList results;
    QueryColumn *column; /* Of the results. */
    bool distinct, is_values, has_outer_join, has_right_join;
    PlanExpr ***values; /* VALUES rows */
    u32 value_rows;
    ExprList group_by;
    bool has_group_by;
    bool is_aggregate; /* Groups: by keys, or all rows into one. */
    PlanExpr *having;
    BoundAgg **agg;
    u32 agg_count, agg_capacity;
    BoundWin **win; /* Window function calls, in the order of their binding. */
    u32 win_count, win_capacity;
    BoundPass **pass; /* In the order of their first calls. */
    u32 pass_count;
    u8 klass;       /* Highest class of its expressions. */
    bool rewritten; /* plan/: subqueries in FROM were flattened into it. */
    u32 level;      /* Of its scope. */
    Scope *scope;
};

struct Query {
    Core **arm;
    u8 *op; /* AstSetOp before arm i */
    u32 arm_count;
    OrderTerm *order;
    u32 order_count;
    PlanExpr *limit, *offset;
    bool offset_done; /* A virtual table skips the first rows itself. */
    u32 column_count;
    QueryColumn *column;
    bool is_recursive;
    u32 initial_count;   /* Recursive: arms before the recursive ones. */
    Cte *cte;            /* Recursive */
    u32 level;           /* Of its arms' scopes. */
    u32 outer_level;     /* Lowest scope level outside that it refers to; U32_MAX: none. */
    ExprList outer_refs; /* Columns and aggregates outside that it reads; may repeat. */
    u8 klass;
};

struct Cte {
    AstCte *ast;
    WithScope *with; /* Where it stands: what its body sees. */
    Slice sql;
    Scope *scope; /* Scope outside of the WITH. */
    Query *query;
    bool binding;        /* Inside of its own body. */
    bool recursive_step; /* ... in a recursive arm. */
    u32 self_refs;       /* References by the arm being bound. */
    u32 uses;
    u32 material_no;  /* plan/: the shared rows, U32_MAX: none yet. */
    u32 recursion_no; /* plan/: the current rows of the recursion. */
    QueryColumn *column;
    u32 column_count;
};

struct WithScope {
    WithScope *outer;
    Cte *cte;
    u32 count;
};

/* Which expressions may stand somewhere. */
typedef enum ScopeFlags {
    SCOPE_AGG = 1,    /* Aggregates */
    SCOPE_ALIAS = 2,  /* Result aliases as names */
    SCOPE_IN_AGG = 4, /* Inside an aggregate's arguments. */
    SCOPE_SCHEMA = 8, /* An expression of the schema: no subqueries, no parameters. */
    SCOPE_WHERE = 16, /* WHERE: aggregates only of queries further out. */
    SCOPE_WIN = 32,   /* Window functions */
    SCOPE_ORDER = 64  /* ORDER BY: has its own words for an aggregate that may not stand there. */
} ScopeFlags;

struct Scope {
    Scope *outer;
    u32 level; /* 0 for the outermost. */
    u32 flags;
    Core *core;
    Source **source; /* Visible ones, in FROM order. */
    u32 source_count;
    const AstResults *aliases; /* With core->results, while SCOPE_ALIAS. */
    Source *row[3];            /* NEW, OLD, excluded: found by name only. */
    u32 row_count;
    const char *clause;      /* For messages: "CHECK constraints", ... */
    const AstWindow *window; /* The WINDOW clause, base windows filled in. */
    u32 window_count;
};

/* While binding the arguments of an aggregate: the deepest scope they refer to. */
typedef struct AggTrack {
    struct AggTrack *outer;
    i64 deepest; /* -1: none yet */
} AggTrack;

/* plan/: what was planned already for a statement. */
struct PlanMemo {
    const void *def;
    u8 variant;
    void *made;
    PlanMemo *next;
};

struct BoundSub {
    PlanSub sub; /* First: a PlanExpr's u.sub points here until it is lowered. */
    Query *query;
    PlanSub *lowered;        /* The last result of lowering, for row values ... */
    const void *lowered_env; /* ... in this environment. */
};

struct Binder {
    const PlanContext *ctx;
    Plan *plan;
    Arena *scratch; /* Dies after planning. */
    Arena *arena;   /* The plan's. */
    ErrMsg *msg;
    Err err;
    Slice sql;        /* Text that spans refer to now. */
    bool sql_is_main; /* ... and it is the statement's own. */
    Scope *scope;
    WithScope *with;
    AggTrack *track;
    u32 depth;        /* Selects in selects. */
    u32 select_count; /* SELECTs bound so far: EXPLAIN QUERY PLAN numbers them. */
    u32 view_depth;
    u32 source_count;
    const char *fixed_schema; /* Inside a view or trigger: names resolve in that schema only. */
    bool fixed_is_temp;
    const char *inner_name; /* Name of the view or trigger, for the authorizer. */
    u32 param_count;
    const PlanTableUse *uses;
    u32 use_capacity;
    const void *env; /* plan/: the environment while lowering. */
    bool explain;    /* The words of EXPLAIN QUERY PLAN are wanted. */
    u32 trigger_depth;
    /* Plans inside of plans (triggers, actions of foreign keys). */
    Binder *outer;
    struct PlanMemo **memo;
    u32 *reg_next;                 /* Counts registers, for the statement and all plans inside. */
    u8 outer_conflict;             /* Conflict clause of the statement that fires this one. */
    const struct ViewFrame *views; /* Views being expanded. */
    const char *clause;            /* Inside a schema expression: for "... prohibited in %s". */
    u32 material_capacity;
    bool may_decorrelate; /* plan/: a SELECT. */
    u32 keyed_depth;      /* plan/: inside so many subqueries that are planned in two ways. */
};

/* ---- memory and errors (bind.c) ---- */

void *bind__no_memory(Binder *b); /* Sets err; NULL. */
/* Scratch, zeroed; NULL with err set. */
static inline void *
bind__alloc(Binder *b, size_t bytes)
{
    void *p = arena_alloc(b->scratch, bytes == 0 ? 1 : bytes);
    return LIKELY(p != NULL) ? p : bind__no_memory(b);
}
/* In the plan. */
static inline void *
bind__keep(Binder *b, size_t bytes)
{
    void *p = arena_alloc(b->arena, bytes == 0 ? 1 : bytes);
    return LIKELY(p != NULL) ? p : bind__no_memory(b);
}
char *bind__keep_text(Binder *b, Slice text);
#define BIND_NEW(b, T)      ((T *)bind__alloc((b), sizeof(T)))
#define BIND_ARRAY(b, T, n) ((T *)bind__alloc((b), sizeof(T) * (size_t)(n)))
#define KEEP_NEW(b, T)      ((T *)bind__keep((b), sizeof(T)))
#define KEEP_ARRAY(b, T, n) ((T *)bind__keep((b), sizeof(T) * (size_t)(n)))

/* Set the sticky error; always returns NULL. */
void *bind__fail(Binder *b, Err err, const char *format, ...) PRINTF_LIKE(3, 4);
void *bind__fail_at(Binder *b, Span span, const char *format, ...) PRINTF_LIKE(3, 4);
bool bind__push(Binder *b, ExprList *list, PlanExpr *expr); /* False: err set. */
/* Ask the authorizer; false: denied (err set) -- or *ignore_out. */
bool bind__authorize(Binder *b, int action, const char *first, const char *second,
                     const char *database, bool *ignore_out);
Slice bind__text(const char *text);
bool bind__use_table(Binder *b, const TableDef *table, bool writes);

/* ---- expressions (expr.c, compare.c, call.c, build.c) ---- */

PlanExpr *bind__expr(Binder *b, const AstExpr *ast);
/* Row values: 1 or more expressions. */
bool bind__vector(Binder *b, const AstExpr *ast, ExprList *out);
/* Bind the conjuncts of `ast` (NULL: none) behind those in `list`. */
bool bind__conjuncts(Binder *b, const AstExpr *ast, ExprList *list, u16 flags);
PlanExpr *bind__new(Binder *b, PlanOp op, u32 arg_count, Span span);
void bind__finish(PlanExpr *expr); /* Class and flags from the arguments. */
PlanExpr *bind__const(Binder *b, Cell cell, Span span);
PlanExpr *bind__text_const(Binder *b, Slice text, Span span);
PlanExpr *bind__column(Binder *b, Source *source, u32 column, Span span);
PlanExpr *bind__and(Binder *b, PlanExpr *left, PlanExpr *right);
PlanExpr *bind__compare(Binder *b, PlanOp op, PlanExpr *left, PlanExpr *right, Span span);
PlanExpr *bind__case(Binder *b, const AstExpr *ast);
PlanExpr *bind__in(Binder *b, const AstExpr *ast);
PlanExpr *bind__between(Binder *b, const AstExpr *ast);
PlanExpr *bind__comparison(Binder *b, const AstExpr *ast);
PlanExpr *bind__function(Binder *b, const AstExpr *ast);
PlanExpr *bind__call(Binder *b, Slice name, ExprList *args, Span span);
PlanExpr *bind__aggregate(Binder *b, const AstExpr *ast, const FuncDef *def);
/* Class of a call by its function and arguments. */
u8 bind__call_class(const FuncDef *def, const ExprList *args);
/* False: err set.  *ignore_out: the authorizer wants NULL in the call's place. */
bool bind__authorize_call(Binder *b, const FuncDef *def, bool *ignore_out);
/* window.c */
PlanExpr *bind__window_call(Binder *b, const AstExpr *ast, const FuncDef *def);
/* The WINDOW clause of an arm. */
bool bind__window_clause(Binder *b, Scope *scope, const AstArm *arm);
/* A result, as ORDER BY sees it. */
PlanExpr *bind__window_copy(Binder *b, Core *core, PlanExpr *result);
/* For PlanContext.notes: the names in a WINDOW clause, used or not. */
bool bind__window_names(Binder *b, const AstArm *arm);
/* What stands wrong in a call with OVER whatever its function is; false: err set. */
bool bind__window_form(Binder *b, const AstExpr *ast);
/* "misuse of window function" for the first such call in `e`. */
void bind__window_misuse(Binder *b, const PlanExpr *e);
/* Structural equality: same value for every row. */
bool bind__equal(const PlanExpr *a, const PlanExpr *c);
bool bind__equal_but_collate(const PlanExpr *a, const PlanExpr *c);
bool bind__is_const(const PlanExpr *e); /* PX_CONST */
bool bind__is_true(const PlanExpr *e);
bool bind__is_false(const PlanExpr *e); /* Or NULL. */
u8 bind__compare_affinity(const PlanExpr *left, const PlanExpr *right);
const Collation *bind__compare_collation(const PlanExpr *left, const PlanExpr *right);
const Collation *bind__carried_collation(const PlanExpr *e); /* NULL: none */
const Collation *bind__collation_or_binary(const Collation *collation);
const Collation *bind__find_collation(Binder *b, const AstName *name);
/* What the connection has by that name; if nothing, one that only bind__need_collation() may meet.
   NULL: err set. */
const Collation *bind__host_collation(Binder *b, const char *name);
/* Something is going to be compared by `collation`: it must be there, else err is set. */
const Collation *bind__need_collation(Binder *b, const Collation *collation);
u8 bind__type_affinity(Slice type);

/* ---- names (names.c) ---- */

PlanExpr *bind__name(Binder *b, const AstExpr *ast);
/* Column of a source by name: its number, COLUMN_ROWID for rowid names, or -1. */
i32 bind__find_column(Binder *b, Source *source, Slice name, bool rowid_names);
bool bind__is_rowid_name(Slice name);
/* Tell PlanContext.notes that `name` means that column of the source, if it is a base table. */
void bind__note(Binder *b, const Source *source, const AstName *name, i32 column);
const TableDef *bind__find_table(Binder *b, const AstName *schema, const AstName *name);
/* A virtual table with its columns; stored NULL: what a module of that name stands for.  NULL:
   there is none, or b->err is set. */
const TableDef *bind__virtual_table(Binder *b, const TableDef *stored, Slice name);
const char *bind__column_name(const Source *source, u32 column);
/* `e` refers to something of `scope`: every query between here and there depends on it. */
bool bind__mark_outer(Binder *b, const Scope *scope, PlanExpr *e);
void bind__track_level(Binder *b, u32 level);
bool bind__column_hidden(const Source *source, u32 column);

/* Bind an expression of the schema over the columns of `source` (CHECK, index, ...); `clause` is
   the name for messages.  With `quiet` the columns are not counted as used. */
/* Where in the schema the expression stands, if the same arguments must give the same result there:
   FuncCall.pure_in; NULL: elsewhere. */
const char *bind__pure_place(const Binder *b);
PlanExpr *bind__schema_expr(Binder *b, Source *source, Slice sql, const char *clause, bool quiet);
bool
bind__schema_conjuncts(Binder *b, Source *source, Slice sql, const char *clause, ExprList *out);

/* ---- SELECT (select.c, from.c, order.c) ---- */

/* Bind a whole SELECT inside the present scope. */
Query *bind__select(Binder *b, AstSelect *ast);
Source *bind__source_new(Binder *b, SourceKind kind, const char *name);
Source *bind__table_source(Binder *b, const TableDef *table, const char *name);
bool bind__core_add_source(Binder *b, Core *core, Source *source);
/* FROM in two steps, so that ON comes after the results and WHERE. */
bool bind__from(Binder *b, Core *core, Scope *scope, const AstFrom *ast);
bool bind__from_using(Binder *b, Core *core, const AstFrom *ast);
bool bind__from_on(Binder *b, Core *core, const AstFrom *ast);
bool bind__results(Binder *b, Core *core, const AstResults *results);
bool bind__order(Binder *b, Query *query, const AstSelect *ast);
bool bind__group_by(Binder *b, Core *core, const AstExprs *group, const AstResults *results);
BoundSub *bind__subquery(Binder *b, AstSelect *ast);
bool bind__limit(Binder *b, Query *query, const AstExpr *limit, const AstExpr *offset);
bool bind__with_push(Binder *b, AstWith *with);
Query *bind__view(Binder *b, const TableDef *view);
Source *bind__query_source(Binder *b, Query *query, const char *name);
Cte *bind__find_cte(Binder *b, const AstName *name);
Query *bind__cte(Binder *b, Cte *cte);
/* A query of one core without results, for UPDATE, DELETE and index builds. */
Query *bind__query_new(Binder *b, u32 arms);
Core *bind__core_new(Binder *b, Query *query);
void bind__scope_push(Binder *b, Scope *scope, Core *core);
void bind__scope_pop(Binder *b);
