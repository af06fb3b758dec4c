/*
 * build.h -- private to plan/: from bound queries to nodes.
 *
 * Lowering.  A bound column becomes PX_COLUMN or PX_REG depending on where it is evaluated, which
 * an Env says: a chain of rows and boundaries from the inside out.  A row (Env.layout) tells which
 * cells hold which columns.  A boundary is crossed by values only through registers: the inner
 * side of a loop join and a subquery have one; what crosses it is listed in its entries, and the
 * join or subquery that owns the boundary sets those registers.
 */
#pragma once

#include "sql/bind/bind.h"
#include "value/host_table.h"

typedef struct WholeRow {
    const Source *source;
    u32 base; /* Cell of column 0; the rowid is cell base + column_count. */
} WholeRow;

typedef struct Windows Windows; /* window.c */

typedef struct Layout {
    const Core *core;
    i32 *base; /* By Source.index: the source's first cell, -1: not in this row. */
    u32 columns;
    WholeRow whole[3];
    u32 whole_count;
    /* After grouping: keys, aggregates, bare columns. */
    bool grouped;
    const ExprList *keys;
    bool keys_from_row; /* min() or max() choose the row: key columns come from it too. */
    ExprList bare;
    Windows *windows; /* Calls are cells behind all others. */
} Layout;

typedef struct EnvEntry {
    const void *of;
    u32 column;
    u32 reg;
    PlanExpr *from; /* Lowered, outside of the boundary. */
} EnvEntry;

typedef struct Env Env;
struct Env {
    Env *outer;
    Layout *layout; /* NULL: a boundary */
    EnvEntry *entry;
    u32 count, capacity;
    bool passed; /* Something inside reads a register set further out. */
};

/* ---- lower.c ---- */

PlanExpr *plan__lower(Binder *b, const PlanExpr *e, Env *env);
PlanExpr **plan__lower_list(Binder *b, const ExprList *list, Env *env);
/* AND of the bound conjuncts, lowered; NULL with b->err == OK if there are none. */
PlanExpr *plan__lower_and(Binder *b, PlanExpr *const *terms, u32 count, Env *env);
PlanExpr *plan__column(Binder *b, u32 cell, const PlanExpr *like);
PlanExpr *plan__affinity(Binder *b, PlanExpr *e, u8 affinity); /* Lowered. */
PlanNode *plan__node(Binder *b, PlanKind kind, u32 columns);
void plan__class(PlanNode *node, const PlanExpr *e);
Layout *plan__layout(Binder *b, const Core *core);
/* Assign the cells of a source: those of its columns that are used. */
bool plan__source_cells(Binder *b, Source *source);
/* The expression behind a column of flattened sources. */
const PlanExpr *plan__see_through(const PlanExpr *e);
/* Sources of `core` that the expression reads, in itself and in its subqueries. */
u64 plan__mask(const Core *core, const PlanExpr *e);
bool plan__has_sub(const PlanExpr *e);

/* ---- access.c ---- */

typedef struct Term {
    PlanExpr *expr;
    u64 mask;
    bool placed;
    bool on; /* Of an ON clause: belongs to unit `unit`. */
    u32 unit;
    f64 part; /* Of the rows that it lets pass, if reckoned; 0: by habit. */
} Term;

typedef enum ProbeKind {
    PROBE_EQ,
    PROBE_IS,
    PROBE_LOW,
    PROBE_HIGH,
    PROBE_IN,
    PROBE_IN_SUB
} ProbeKind;

/* A term that can drive a look-up in one column of one source. */
typedef struct Probe {
    u8 kind;
    bool inclusive;
    bool text_range; /* From LIKE or GLOB: only narrows. */
    bool exact;      /* The probe says all that the term says. */
    u8 affinity;     /* Applied to both sides by the comparison. */
    u16 column;
    u32 term;
    const PlanExpr *key;   /* The side that is the column or indexed expression. */
    const PlanExpr *value; /* Bound; PROBE_IN: the list's expression. */
    u64 mask;              /* Sources that the value reads. */
    const Collation *collation;
} Probe;

/* ---- host_access.c: virtual tables ---- */

typedef enum HostTermKind { HOST_TERM_VALUE, HOST_TERM_LIST, HOST_TERM_SUB } HostTermKind;

/* A term that a virtual table is offered. */
typedef struct HostTerm {
    u32 term;
    i32 column;
    u8 op;   /* HostOp */
    u8 kind; /* HostTermKind */
    u8 affinity;
    bool exact;            /* The constraint says all that the term says. */
    const PlanExpr *value; /* Bound; lists: the IN itself; NULL: none. */
    u64 mask;              /* Sources that the value reads. */
    const Collation *collation;
} HostTerm;

/* What a virtual table answered. */
typedef struct HostAccess {
    HostIndex index;
    const Query *limit; /* Whose LIMIT and OFFSET stand behind the terms; NULL: none. */
} HostAccess;

#define ACCESS_KEYS_MAX 24u /* Key columns of an index that look-ups use. */

typedef struct Access {
    const IndexDef *index; /* NULL: the table's own tree. */
    bool covering, one_row, backwards, ordered;
    bool impossible; /* INDEXED BY cannot be used. */
    u16 eq_count;
    u16 eq[ACCESS_KEYS_MAX]; /* Probe numbers */
    i32 low, high;           /* Probe numbers, -1: none */
    u32 or_term;             /* OR union: term number + 1 */
    HostAccess *host;        /* Virtual tables. */
    f64 cost, rows;
} Access;

typedef struct Join Join;
typedef struct Unit Unit;

/* Probes of all terms for one source, found once. */
bool plan__find_probes(Binder *b, Join *join, u32 unit);
/* The cheapest way into a unit when the sources in `done` are at hand. */
void plan__choose_access(Binder *b, Join *join, u32 unit, u64 done, Access *best_out,
                         bool want_order, Access *ordered_out);
bool plan__probe_push(Binder *b, Unit *unit, const Probe *probe);
/* access_like.c */
bool plan__probe_like(Binder *b, Join *join, Unit *unit, u32 number, const PlanExpr *e);
/* access_or.c */
PlanExpr *plan__or_as_in(Binder *b, const PlanExpr * or); /* NULL: not of that form. */
bool plan__or_prepare(Binder *b, Join *join, u32 unit, u32 number);
void plan__or_choose(Binder *b, Join *join, u32 unit, u64 done, Access *best);
PlanNode *plan__or_node(Binder *b, Join *join, u32 unit, const Access *access, u64 done,
                        Layout *layout, Env *outside);
PlanNode *plan__scan_node(Binder *b, Join *join, u32 unit, const Access *access, Env *env);
/* May a term serve the look-ups of this unit?  Outer joins keep WHERE terms out. */
bool plan__term_serves(const Join *join, u32 unit, const Term *term);
/* host_access.c */
bool plan__host_terms(Binder *b, Join *join, u32 unit);
void plan__host_choose(Binder *b, Join *join, u32 unit, u64 done, Access *best_out, bool want_order,
                       Access *ordered_out);
PlanNode *plan__host_node(Binder *b, Join *join, u32 unit, const Access *access, Env *env);
/* Make `term`, which has its column, that of an IN; false: of another kind. */
bool plan__list_term(const Join *join, const PlanExpr *e, HostTerm *term);
bool plan__scan_arg(Binder *b, const HostTerm *term, Env *env, PlanScanArg *out);
/* The index with the fewest bytes a row, if it is smaller than the table; NULL: none. */
const IndexDef *plan__smallest_index(const TableDef *table);
f64 plan__table_rows(Binder *b, const TableDef *table);
/* The same without the habit of taking small tables for larger ones. */
f64 plan__counted_rows(Binder *b, const TableDef *table);

/* ---- join.c ---- */

/* A hidden column of a table-valued function that a term gives. */
typedef struct FuncArg {
    bool given;
    HostTerm from;
} FuncArg;

struct Unit {
    FromItem *item;
    Source *source; /* NULL: a nested join */
    u64 mask;
    u64 needs; /* Sources that must come before. */
    u8 join;
    Probe *probe;
    u32 probe_count, probe_capacity;
    f64 rows;
    f64 alone; /* Rows that its own terms leave; 0: not reckoned. */
    u32 *term; /* Numbers of the terms that read it. */
    u32 term_count;
    u64 relevant; /* Sources in those terms: the choice of access depends on no others. */
    bool no_hash; /* A term forbids a hash join. */
    struct UnitChoice {
        bool hash;
        u64 done; /* Only the relevant ones. */
        Access access;
    } * choice[4];
    u32 choice_next;
    struct OrUnion *or_union; /* OR terms that look-ups can serve. */
    FuncArg *func_arg;        /* Table-valued functions: by hidden column. */
    HostTerm *host_term;      /* Virtual tables. */
    u32 host_term_count, host_term_capacity;
};

struct Join {
    Core *core;
    Unit *unit;
    u32 unit_count;
    Term *term;
    u32 term_count;
    Env *outer;
    bool fixed_order;            /* RIGHT or FULL joins are among them. */
    u32 where_from;              /* WHERE terms wait for this position. */
    bool no_or;                  /* A branch of an OR. */
    bool for_write;              /* UPDATE, DELETE: the target's scan. */
    const bool *host_unchanged;  /* By column: only written back (virtual tables); may be NULL. */
    const Query *order_of;       /* ORDER BY that an index may satisfy; NULL: none wanted. */
    const ExprList *order_group; /* Or GROUP BY, or DISTINCT's columns. */
    bool sorted;                 /* Out: the rows come in the wanted order. */
    bool backwards;
    f64 limit_rows; /* 0: unknown */
    f64 first_rows; /* So many rows will be asked for; 0: all. */
    bool measured;  /* The order is weighed in nanoseconds. */
};

/* Is it a virtual table? */
static inline bool
plan__is_host(const Unit *unit)
{
    return unit->source != NULL && unit->source->kind == SOURCE_TABLE &&
           unit->source->table->host != NULL;
}

/* Which terms concern the unit. */
bool plan__unit_terms(Binder *b, Join *join, u32 unit);

typedef struct Step {
    u8 unit;
    bool hash;
    bool instead; /* The hash join stands for the look-ups of `looked_up`, whose words it shows. */
    f64 outer_rows, rows;
    Access access;
    Access looked_up;
} Step;

/* The order of the units; steps[unit_count]. */
bool plan__find_order(Binder *b, Join *join, Step *steps, bool want_order);

/* join_method.c: where reading the unit once beats its look-ups, the step becomes a hash join. */
/* Does the access look up values of other tables? */
bool plan__looks_up(const Unit *u, const Access *access);
bool plan__hash_possible(const Join *join, u32 unit, u64 done);
void plan__choose_method(Binder *b, const Join *join, u64 done, Step *step);
/* The first table of a join; then one that is joined to `outer` rows, as the executor would do it;
 *hash_out: it is no look-up and is hashed. */
f64 plan__first_ns(const Unit *u, const Access *access);
f64 plan__step_ns(Binder *b, const Join *join, u32 unit, u64 done, const Access *access,
                  bool can_hash, f64 outer, bool *hash_out);

/* join_measure.c: what part of the rows each term lets pass, by all that is known. */
bool plan__measure_terms(Binder *b, Join *join);

/* Plan FROM and WHERE of a core.  `join` says what is wanted (order, write) and what came of it.
 *layout_out describes the rows. */
PlanNode *plan__join(Binder *b, Core *core, Join *join, Env *outer, Layout **layout_out);

/* ---- rewrite.c ---- */

bool plan__flatten(Binder *b, Core *core);
/* push.c: WHERE terms into subqueries; LEFT joins that WHERE makes inner. */
bool plan__push_down(Binder *b, Join *join);
bool plan__left_is_inner(const Core *core, const FromItem *item, const ExprList *where);

/* ---- table_func.c ---- */

/* Sources that the arguments read. */
u64 plan__func_needs(const Core *core, const Source *source);
/* Find the terms that give hidden columns, once all other needs are known; adds to the needs. */
bool plan__func_bind(Binder *b, Join *join, u32 unit);
/* Its rows, or those of any unit that is no table, with the sources in `done` at hand. */
f64 plan__func_rows(const Join *join, u32 unit, u64 done);
/* `done`: the sources at hand. */
PlanNode *plan__table_func(Binder *b, Join *join, u32 unit, u64 done, Env *outside);

/* ---- decorrelate.c ---- */

/* What of a subquery is wanted. */
typedef enum SubUse { SUB_ROW, SUB_EXISTS, SUB_IN, SUB_EACH } SubUse;

typedef struct Keyed {
    ExprList outer; /* Bound: the outer sides of the keys. */
} Keyed;

/* The other way to run the subquery, without its probes; NULL: there is none, or b->err. */
PlanKeyed *plan__sub_keyed(Binder *b, BoundSub *bound, Env *env, SubUse use, Keyed *state);
/* Does it show the same row first? */
bool plan__keyed_fits(const PlanKeyed *keyed, const PlanNode *as_written, SubUse use);
u32 plan__keyed_runs(const PlanKeyed *keyed, const PlanNode *as_written);

/* ---- query.c, core.c ---- */

PlanNode *plan__query(Binder *b, Query *query, Env *outer);
PlanNode *plan__core(Binder *b, Query *query, Core *core, Env *outer, bool with_order, bool exists);
PlanSub *plan__sub(Binder *b, BoundSub *sub, Env *env, SubUse use);
PlanNode *plan__cte_source(Binder *b, Source *source, Env *outer);
PlanNode *plan__filter(Binder *b, PlanNode *input, PlanExpr *condition);
PlanNode *plan__limit(Binder *b, PlanNode *input, const Query *query);
bool plan__has_rows(Binder *b, Source *source);

/* ---- window.c ---- */

/* Plan the window functions of a core in three steps: what they want, their expressions over the
   rows of the core (with those of the results), the nodes. */
Windows *plan__windows_new(Binder *b, Core *core);
/* An order of the input that spares the first sort; NULL: none. */
const Query *plan__windows_order(const Windows *w);
/* Is ORDER BY met by the order in which the rows leave? */
bool plan__windows_give_order(const Windows *w, const Query *query);
bool plan__windows_lower(Windows *w, Env *env);
/* A call, read from the row behind the nodes. */
PlanExpr *plan__window_ref(Binder *b, Windows *w, const PlanExpr *e);
/* `sorted`: the input has the order of plan__windows_order(). */
PlanNode *plan__windows_nodes(Windows *w, PlanNode *input, bool sorted);

/* ---- trigger.c, foreign.c ---- */

/* What was planned already for a statement, by the definition it came from. */
enum { PLAN_MEMO_FOREIGN = 100, PLAN_MEMO_INNER }; /* Below: a trigger under that Conflict. */
void *plan__memo_find(Binder *b, const void *def, u8 variant);
bool plan__memo_add(Binder *b, const void *def, u8 variant, void *made);
Plan *plan__inner_new(Binder *b);
void plan__inner_begin(Binder *b, Binder *inner, Plan *plan, Slice sql);
bool plan__inner_end(Binder *b, Binder *inner);
Scope *plan__row_scope(Binder *b, const TableDef *table, u32 old_reg, bool has_old, bool has_new);
/* Any statement that can be planned, into b->plan; planner.c. */
bool plan__any(Binder *b, const AstStatement *ast);

/* ---- why.c ---- */

/* For EXPLAIN ANALYZE: why the access was chosen, into node->why. */
bool plan__why_scan(Binder *b, const Unit *u, const Access *access, PlanNode *node);

/* ---- words.c ---- */

bool plan__name_scan(Binder *b, PlanNode *node, const char *name, u8 join, bool for_write);
bool
plan__name_hash(Binder *b, PlanNode *right, const Source *source, const ExprList *keys, u8 join);
bool plan__name_source(Binder *b, PlanNode *node, const Source *source);
/* The words of the look-ups that a hash join stands for. */
bool plan__name_access(Binder *b, PlanNode *node, const char *name, const Access *access, u8 join);

/* ---- write.c, write_change.c, write_table.c ---- */

bool plan__insert(Binder *b, const AstInsert *ast);
bool plan__update(Binder *b, const AstUpdate *ast);
bool plan__delete(Binder *b, const AstDelete *ast);

/* A statement that writes: the target and the row that its expressions read. */
typedef struct Target {
    PlanWrite *write;
    const TableDef *table;
    const TableDef *stored; /* As the catalog has it: differs for views. */
    Source *source;         /* Whole in `row`: cells 0.., the rowid last. */
    Layout *row;
    Env *env;     /* Of that row. */
    bool one_row; /* INSERT: no more than one row comes. */
} Target;

bool plan__may_change(Binder *b, const TableDef *table, u8 kind);
/* Find the target and check that it may be written. */
const TableDef *plan__target_table(Binder *b, const AstTarget *ast);
bool
plan__target_init(Binder *b, Target *target, const TableDef *table, const AstTarget *ast, u8 kind);
/* CHECK, indexes, defaults, generated columns. */
bool plan__target_table_parts(Binder *b, Target *target);
/* The program's collations that a changed index was declared with must be there, as in SQLite,
   although its entries are in the order of BINARY. */
bool plan__index_collations(Binder *b, const IndexDef *index);
bool plan__need_indexes(Binder *b, const Target *target);
bool plan__returning(Binder *b, Target *target, const AstResults *results);
typedef struct SetList {
    u16 *column;
    ExprList value; /* Bound */
    u32 count;
} SetList;
bool plan__bind_sets(Binder *b, Target *target, const AstSets *sets, SetList *out);
/* The statement's conflict clause; one further out overrides it. */
u8 plan__conflict(const Binder *b, u8 ast_conflict);
/* The triggers of `stored`, the catalog's definition of the target. */
bool plan__triggers(Binder *b, Target *target, const TableDef *stored);
bool plan__foreign_keys(Binder *b, Target *target);
/* A view as if it were a table: the catalog knows no columns of views. */
const TableDef *plan__view_table(Binder *b, const TableDef *view, Query **query_out);
bool plan__columns(Binder *b, const QueryColumn *column, u32 count);
/* Does the expression read that column of the source? */
bool plan__reads_column(const PlanExpr *e, const Source *source, u32 column);

/* write_host.c: virtual tables.  `core` has the target and FROM, WHERE bound; sets NULL: DELETE. */
bool plan__host_may_write(Binder *b, const TableDef *table);
bool plan__host_insert(Binder *b, Target *target, const AstInsert *ast);
bool plan__host_change(Binder *b, Core *core, Target *target, const SetList *sets,
                       const AstResults *returning);

/* write_order.c: ORDER BY and LIMIT of UPDATE and DELETE, kept with the query of their targets. */
/* `ast` NULL: neither.  `keys`: the bound keys of the target. */
bool plan__order_bind(Binder *b, Query *query, const Target *target, const ExprList *keys,
                      const AstSelect *ast);
/* Ask the join for rows in that order, and say how many will be read. */
void plan__order_wanted(const Binder *b, const Query *query, Join *join);
/* The rows of the join, sorted and cut: each is a target. */
PlanNode *
plan__order_rows(Binder *b, const Query *query, PlanNode *input, const Join *join, Env *env);
/* With FROM: `input` is a projection that begins with the keys; its rows repeat targets. */
PlanNode *
plan__order_targets(Binder *b, const Query *query, const ExprList *keys, PlanNode *input, Env *env);

/* A plan with nothing in it; planner.c. */
MUST_CHECK Err plan__new(const PlanContext *ctx, Slice sql, Plan **plan_out, ErrMsg *msg);

/* ---- explain.c, finish.c ---- */

/* Replace the plan's root by the rows of EXPLAIN QUERY PLAN. */
bool plan__explain(Binder *b);
/* Which nodes read registers from outside of themselves; the classes of the whole. */
bool plan__finish(Binder *b, Plan *plan);
