/*
 * ast.h -- the syntax tree of one SQL statement.
 *
 * A tree lives in the arena that was passed to sql_parse() and dies with it.  Names and texts that
 * need no unescaping are slices of the statement text itself, so the text must outlive the tree.
 * Nothing here is resolved: a tree says what was written, the binder says what it means.
 *
 * Source positions are part of the meaning (column names, stored schema text, RENAME, error
 * offsets).  Every node has a Span, every identifier token is an AstName with the span of the token
 * as typed (quotes included), and every piece of text that is ever shown or stored has a span of
 * its own.  Offsets count bytes from the start of the text that was passed to the parser.
 *
 * Long things are arrays, never chains: AND, OR, function arguments, IN lists, CASE arms, VALUES
 * rows, compounds, FROM terms.  So a walk recurses only as deep as AstExpr.height, which the parser
 * bounds by the depth limit as SQLite measures it.
 *
 * An optional AstName that is absent has text.p == NULL (ast_name_present() tells); an absent
 * expression, select or list pointer is NULL; an absent list has count 0.
 *
 * Tasks: plain data; a finished tree may be read from several tasks.
 */
#pragma once

#include "base/base.h"

/* A run of bytes of the statement text.  {0, 0} where there is none. */
typedef struct Span {
    u32 offset;
    u32 bytes;
} Span;

static inline Slice
span_slice(Slice text, Span span)
{
    return SLICE(text.p + span.offset, span.bytes);
}
static inline u32
span_end(Span span)
{
    return span.offset + span.bytes;
}

/* How an identifier was written. */
typedef enum AstQuote {
    AST_QUOTE_NONE,     /* abc */
    AST_QUOTE_DOUBLE,   /* "abc": as an expression it may fall back to a string */
    AST_QUOTE_BRACKET,  /* [abc] */
    AST_QUOTE_BACKTICK, /* `abc` */
    AST_QUOTE_STRING,   /* 'abc' where the grammar takes a string for a name */
} AstQuote;

/* One identifier token.  `hash` is ast_name_hash(text): equal names, whatever their case, have
   equal hashes. */
typedef struct AstName {
    Slice text; /* Without quotes, doubled quotes undone. */
    Span span;  /* The token as typed. */
    u32 hash;
    u8 quote;   /* AstQuote */
    u8 keyword; /* Nonzero: written bare and also a keyword of the language (fallback). */
} AstName;

static inline bool
ast_name_present(const AstName *name)
{
    return name->text.p != NULL;
}

/* Hash of a name without regard to ASCII case.  May collide; compare with slice_equal_nocase(). */
u32 ast_name_hash(Slice name);

typedef struct AstExpr AstExpr;
typedef struct AstSelect AstSelect;
typedef struct AstStatement AstStatement;
typedef struct AstWindow AstWindow;
typedef struct AstFrom AstFrom;

/* The lists below grow by doubling while parsing; readers look at items[0 .. count). */
typedef struct AstNames {
    AstName *items;
    u32 count, capacity;
} AstNames;

typedef struct AstExprs {
    AstExpr **items;
    u32 count, capacity;
} AstExprs;

typedef enum AstNulls { AST_NULLS_DEFAULT, AST_NULLS_FIRST, AST_NULLS_LAST } AstNulls;
typedef enum AstSort { AST_SORT_DEFAULT, AST_SORT_ASC, AST_SORT_DESC } AstSort;

/* One term of ORDER BY, of an index, of PRIMARY KEY (...), UNIQUE (...) or ON CONFLICT (...).
   A COLLATE is the outermost node of `expr`. */
typedef struct AstOrderTerm {
    AstExpr *expr;
    Span span;
    u8 sort;  /* AstSort */
    u8 nulls; /* AstNulls */
} AstOrderTerm;

typedef struct AstOrderTerms {
    AstOrderTerm *items;
    u32 count, capacity;
} AstOrderTerms;

/* ---- Expressions ---- */

typedef enum AstExprKind {
    AST_EXPR_NULL,
    AST_EXPR_INTEGER,  /* u.literal: digits, may exceed i64; `_` separators taken out */
    AST_EXPR_HEX,      /* u.literal: the digits after 0x */
    AST_EXPR_REAL,     /* u.literal: as typed, `_` separators taken out */
    AST_EXPR_STRING,   /* u.literal: the string's bytes */
    AST_EXPR_BLOB,     /* u.literal: the decoded bytes */
    AST_EXPR_CURRENT,  /* op: AstCurrent */
    AST_EXPR_PARAM,    /* u.param */
    AST_EXPR_COLUMN,   /* u.column; TRUE and FALSE too: they are columns if one is so named */
    AST_EXPR_UNARY,    /* op: AstUnary; u.unary */
    AST_EXPR_BINARY,   /* op: AstBinary; u.binary */
    AST_EXPR_AND,      /* u.list: two or more terms */
    AST_EXPR_OR,       /* u.list: two or more terms */
    AST_EXPR_COLLATE,  /* u.collate */
    AST_EXPR_CAST,     /* u.cast */
    AST_EXPR_BETWEEN,  /* u.between; flag NOT */
    AST_EXPR_LIKE,     /* u.like: LIKE, GLOB, REGEXP, MATCH; flag NOT */
    AST_EXPR_IN,       /* u.in; flag NOT */
    AST_EXPR_EXISTS,   /* u.select */
    AST_EXPR_SUBQUERY, /* u.select: (SELECT ...) as a value or row value */
    AST_EXPR_ROW,      /* u.list: (a, b, ...), two or more */
    AST_EXPR_CASE,     /* u.case_ */
    AST_EXPR_FUNCTION, /* u.function */
    AST_EXPR_RAISE,    /* op: AstRaise; u.unary.operand is the message, NULL for IGNORE */
} AstExprKind;

typedef enum AstCurrent { AST_CURRENT_DATE, AST_CURRENT_TIME, AST_CURRENT_TIMESTAMP } AstCurrent;

typedef enum AstUnary {
    AST_UNARY_NEGATE, /* -x */
    AST_UNARY_PLUS,   /* +x */
    AST_UNARY_BITNOT, /* ~x */
    AST_UNARY_NOT,    /* NOT x */
    AST_UNARY_ISNULL, /* x ISNULL */
    AST_UNARY_NOTNULL /* x NOTNULL, x NOT NULL */
} AstUnary;

typedef enum AstBinary {
    AST_BINARY_EQ, /* = and == */
    AST_BINARY_NE, /* <> and != */
    AST_BINARY_LT,
    AST_BINARY_LE,
    AST_BINARY_GT,
    AST_BINARY_GE,
    AST_BINARY_IS,     /* x IS y, x IS NOT DISTINCT FROM y; x IS NULL is one of these */
    AST_BINARY_IS_NOT, /* x IS NOT y, x IS DISTINCT FROM y */
    AST_BINARY_ADD,
    AST_BINARY_SUB,
    AST_BINARY_MUL,
    AST_BINARY_DIV,
    AST_BINARY_REM,
    AST_BINARY_BITAND,
    AST_BINARY_BITOR,
    AST_BINARY_SHIFT_LEFT,
    AST_BINARY_SHIFT_RIGHT,
    AST_BINARY_CONCAT,
    AST_BINARY_ARROW,      /* x -> y */
    AST_BINARY_ARROW_TEXT, /* x ->> y */
} AstBinary;

typedef enum AstRaise {
    AST_RAISE_IGNORE,
    AST_RAISE_ROLLBACK,
    AST_RAISE_ABORT,
    AST_RAISE_FAIL
} AstRaise;

/* AstExpr.flags */
#define AST_FLAG_NOT      ((u16)1) /* NOT BETWEEN, NOT LIKE, NOT IN */
#define AST_FLAG_PARENS   ((u16)2) /* Was written in parentheses. */
#define AST_FLAG_DISTINCT ((u16)4) /* IS [NOT] DISTINCT FROM spelling */

/* A column reference: name, table.name or schema.table.name. */
typedef struct AstQualifier {
    AstName schema; /* Absent in table.name. */
    AstName table;
} AstQualifier;

typedef struct AstColumnRef {
    AstName name;
    AstQualifier *qualifier; /* NULL: a bare name */
} AstColumnRef;

typedef struct AstParamRef {
    u32 number; /* From 1, by SQLite's rule. */
    Slice name; /* With its first character, as ":a" or "?3"; p == NULL for a plain "?". */
} AstParamRef;

typedef struct AstFunction {
    AstName name;
    AstExprs args;
    AstOrderTerms order_by; /* f(x ORDER BY y) */
    AstExpr *filter;        /* FILTER (WHERE ...), or NULL */
    AstWindow *over;        /* OVER ..., or NULL */
    bool star;              /* f(*) */
    bool distinct;          /* f(DISTINCT ...) */
    bool all;               /* f(ALL ...) as typed; means nothing */
} AstFunction;

typedef struct AstCaseArm {
    AstExpr *when, *then;
} AstCaseArm;

typedef struct AstCase {
    AstExpr *operand; /* CASE x WHEN ..., or NULL */
    AstCaseArm *arms;
    u32 count, capacity;
    AstExpr *otherwise; /* ELSE, or NULL */
} AstCase;

typedef enum AstInKind {
    AST_IN_LIST,    /* list; empty: false, NOT IN true, whatever the operand */
    AST_IN_SELECT,  /* select; also written IN ((SELECT ...)) */
    AST_IN_TABLE,   /* schema, table */
    AST_IN_FUNCTION /* schema, table and list: a table-valued function with its arguments */
} AstInKind;

typedef struct AstIn {
    AstExpr *operand;
    AstInKind kind;
    AstExprs list;
    AstSelect *select;
    AstName schema, table;
} AstIn;

typedef enum AstLikeKind { AST_LIKE, AST_GLOB, AST_REGEXP, AST_MATCH } AstLikeKind;

/* a LIKE b ESCAPE c calls like(b, a, c). */
typedef struct AstLike {
    AstExpr *operand, *pattern;
    AstExpr *escape; /* NULL if none */
    AstName op; /* The word as typed; op.text "LIKE", "glob"...: name of the function called. */
    AstLikeKind kind;
} AstLike;

struct AstExpr {
    u8 kind;    /* AstExprKind */
    u8 op;      /* see the kind */
    u16 flags;  /* AST_FLAG_* */
    u32 height; /* 1 for a leaf; an AND of n leaves counts n, as SQLite's chain of pairs does. */
    Span span;  /* Of the expression itself, without parentheses put around it. */
    union {
        Slice literal;
        AstParamRef param;
        AstColumnRef column;
        struct {
            AstExpr *operand;
            Span op; /* The operator as typed. */
        } unary;
        struct {
            AstExpr *left, *right;
            Span op; /* The operator as typed. */
        } binary;
        AstExprs list;
        struct {
            AstExpr *operand;
            AstName *name;
        } collate;
        struct {
            AstExpr *operand;
            Span type; /* {offset, 0} when empty; AS with no type is allowed. */
            Slice type_text;
        } cast;
        struct {
            AstExpr *operand, *low, *high;
        } between;
        AstLike *like;
        AstIn *in;
        AstSelect *select;
        AstCase *case_;
        AstFunction *function;
    } u;
};

/* ---- SELECT ---- */

typedef enum AstFrameUnit { AST_FRAME_ROWS, AST_FRAME_RANGE, AST_FRAME_GROUPS } AstFrameUnit;
typedef enum AstBoundKind {
    AST_BOUND_UNBOUNDED_PRECEDING,
    AST_BOUND_PRECEDING, /* expr PRECEDING */
    AST_BOUND_CURRENT_ROW,
    AST_BOUND_FOLLOWING, /* expr FOLLOWING */
    AST_BOUND_UNBOUNDED_FOLLOWING,
} AstBoundKind;
typedef enum AstExclude {
    AST_EXCLUDE_NO_OTHERS,
    AST_EXCLUDE_CURRENT_ROW,
    AST_EXCLUDE_GROUP,
    AST_EXCLUDE_TIES,
    AST_EXCLUDE_WRITTEN_NO_OTHERS, /* EXCLUDE NO OTHERS: makes SQLite compute row by row. */
} AstExclude;

typedef struct AstBound {
    AstBoundKind kind;
    AstExpr *offset; /* For PRECEDING and FOLLOWING. */
} AstBound;

/* OVER name: only `base` and `only_name`.  OVER (base ...) or WINDOW name AS (base ...). */
struct AstWindow {
    AstName name; /* In a WINDOW clause. */
    AstName base; /* The window this one builds on; absent if none. */
    bool only_name;
    bool has_frame; /* False: RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW. */
    AstExprs partition_by;
    AstOrderTerms order_by;
    AstFrameUnit unit;
    AstBound start, end;
    AstExclude exclude;
    Span span;
};

typedef enum AstResultKind {
    AST_RESULT_EXPR,
    AST_RESULT_STAR,       /* * */
    AST_RESULT_TABLE_STAR, /* table.* */
} AstResultKind;

typedef struct AstResult {
    AstResultKind kind;
    AstExpr *expr;
    AstName alias; /* AS x or x; absent if none. */
    AstName table; /* For table.* */
    Span text;     /* The expression as typed: the column's name when nothing better is known. */
} AstResult;

typedef struct AstResults {
    AstResult *items;
    u32 count, capacity;
} AstResults;

/* AstFromItem.join: how an item joins with what stands left of it.  0 for the first item. */
#define AST_JOIN_COMMA   ((u8)0x01)
#define AST_JOIN_INNER   ((u8)0x02) /* JOIN, INNER JOIN */
#define AST_JOIN_CROSS   ((u8)0x04)
#define AST_JOIN_NATURAL ((u8)0x08)
#define AST_JOIN_LEFT    ((u8)0x10)
#define AST_JOIN_RIGHT   ((u8)0x20) /* FULL: LEFT | RIGHT */
#define AST_JOIN_OUTER   ((u8)0x40) /* The word OUTER, or implied by LEFT, RIGHT, FULL */

typedef enum AstFromKind {
    AST_FROM_TABLE,    /* schema, name */
    AST_FROM_FUNCTION, /* schema, name, args */
    AST_FROM_SUBQUERY, /* select */
    AST_FROM_JOIN,     /* nested: (a JOIN b ...) */
} AstFromKind;

typedef struct AstFromItem {
    AstFromKind kind;
    u8 join;          /* AST_JOIN_* */
    bool not_indexed; /* NOT INDEXED */
    bool has_using;
    AstName schema, name, alias;
    AstName indexed_by;
    AstExprs args;
    AstSelect *select;
    AstFrom *nested;
    AstExpr *on;
    AstNames using_columns;
    Span span;
} AstFromItem;

struct AstFrom {
    AstFromItem *items;
    u32 count, capacity;
};

typedef enum AstSetOp {
    AST_SET_NONE,
    AST_SET_UNION,
    AST_SET_UNION_ALL,
    AST_SET_EXCEPT,
    AST_SET_INTERSECT
} AstSetOp;

typedef struct AstRows {
    AstExprs *items;
    u32 count, capacity;
} AstRows;

/* One arm of a compound: SELECT ... or VALUES (...), (...). */
typedef struct AstArm {
    AstSetOp op;   /* Joins this arm with the result of all arms before; NONE for the first. */
    bool distinct; /* SELECT DISTINCT */
    bool all;      /* SELECT ALL, as typed; means nothing */
    bool is_values;
    AstRows values;
    AstResults results;
    AstFrom *from; /* NULL: no FROM */
    AstExpr *where;
    AstExprs group_by;
    AstExpr *having;
    AstWindow *windows;
    u32 window_count;
    Span span;
    Span op_span; /* UNION, UNION ALL... as typed */
} AstArm;

typedef enum AstMaterialize {
    AST_MATERIALIZE_ANY,
    AST_MATERIALIZE_YES,
    AST_MATERIALIZE_NO
} AstMaterialize;

typedef struct AstCte {
    AstName name;
    AstNames columns;
    AstSelect *select;
    AstMaterialize materialize;
    Span span;
} AstCte;

typedef struct AstWith {
    AstCte *items;
    u32 count, capacity;
    bool recursive; /* The word RECURSIVE; SQLite allows recursion without it. */
} AstWith;

/* A whole SELECT: the arms apply left to right, then ORDER BY and LIMIT. */
struct AstSelect {
    AstWith *with; /* NULL if none */
    AstArm *arms;
    u32 count, capacity;
    AstOrderTerms order_by;
    AstExpr *limit, *offset; /* `LIMIT a, b` has been turned: limit is b, offset is a. */
    Span span;               /* From WITH or the first SELECT to the end. */
    u32 height;              /* Greatest expression height inside. */
};

/* ---- Changing data ---- */

typedef enum AstConflict {
    AST_CONFLICT_DEFAULT,
    AST_CONFLICT_ROLLBACK,
    AST_CONFLICT_ABORT,
    AST_CONFLICT_FAIL,
    AST_CONFLICT_IGNORE,
    AST_CONFLICT_REPLACE,
} AstConflict;

/* SET a = x, or SET (a, b) = row: then columns.count > 1 or `is_row`. */
typedef struct AstSet {
    AstNames columns;
    bool is_row; /* Written with parentheses, even around one name. */
    AstExpr *value;
    Span span;
} AstSet;

typedef struct AstSets {
    AstSet *items;
    u32 count, capacity;
} AstSets;

/* The table that a statement changes. */
typedef struct AstTarget {
    AstName schema, name, alias;
    AstName indexed_by;
    bool not_indexed;
    Span span;
} AstTarget;

typedef struct AstUpsert {
    AstOrderTerms target; /* ON CONFLICT (...); count 0: no target */
    AstExpr *target_where;
    bool do_update; /* Else DO NOTHING. */
    AstSets sets;
    AstExpr *where;
    Span span; /* Of its first word, ON. */
} AstUpsert;

typedef struct AstUpserts {
    AstUpsert *items;
    u32 count, capacity;
} AstUpserts;

typedef struct AstInsert {
    AstWith *with;
    AstConflict conflict; /* REPLACE INTO is OR REPLACE. */
    bool replace_word;
    AstTarget target;
    AstNames columns;
    bool default_values;
    AstSelect *select; /* VALUES too; NULL for DEFAULT VALUES */
    AstUpserts upserts;
    AstResults returning;
} AstInsert;

typedef struct AstUpdate {
    AstWith *with;
    AstConflict conflict;
    AstTarget target;
    AstSets sets;
    AstFrom *from;
    AstExpr *where;
    AstResults returning;
    AstSelect *order; /* Only ORDER BY, LIMIT and OFFSET of it are set; NULL: none of them */
} AstUpdate;

typedef struct AstDelete {
    AstWith *with;
    AstTarget target;
    AstExpr *where;
    AstResults returning;
    AstSelect *order; /* As in AstUpdate. */
} AstDelete;

/* ---- Schema ---- */

typedef enum AstFkAction {
    AST_FK_NO_ACTION,
    AST_FK_RESTRICT,
    AST_FK_CASCADE,
    AST_FK_SET_NULL,
    AST_FK_SET_DEFAULT,
} AstFkAction;

typedef struct AstForeignKey {
    AstNames columns; /* Child columns; empty in a column constraint. */
    AstName table;
    AstNames parent_columns; /* Empty: the parent's primary key. */
    AstFkAction on_delete, on_update;
    AstName match;           /* MATCH name: parsed, without effect, as in SQLite. */
    bool deferrable;         /* DEFERRABLE was written (not NOT DEFERRABLE). */
    bool initially_deferred; /* True only for DEFERRABLE INITIALLY DEFERRED. */
} AstForeignKey;

typedef enum AstConstraintKind {
    AST_CONSTRAINT_NOT_NULL,    /* columns only; conflict */
    AST_CONSTRAINT_NULL,        /* columns only; no effect */
    AST_CONSTRAINT_PRIMARY_KEY, /* conflict, autoincrement; sort (column) or terms (table) */
    AST_CONSTRAINT_UNIQUE,      /* conflict; terms (table) */
    AST_CONSTRAINT_CHECK,       /* expr, expr_text; conflict (table; no effect) */
    AST_CONSTRAINT_DEFAULT,     /* columns only: expr, expr_text, default_kind */
    AST_CONSTRAINT_COLLATE,     /* columns only: collation */
    AST_CONSTRAINT_FOREIGN_KEY, /* foreign_key */
    AST_CONSTRAINT_GENERATED,   /* columns only: expr, expr_text, stored */
    AST_CONSTRAINT_NAME_ONLY,   /* CONSTRAINT x with nothing behind it */
} AstConstraintKind;

typedef enum AstDefaultKind {
    AST_DEFAULT_TERM,   /* DEFAULT 5, DEFAULT +5, DEFAULT -5, DEFAULT CURRENT_TIME */
    AST_DEFAULT_PARENS, /* DEFAULT (expr) */
    AST_DEFAULT_WORD,   /* DEFAULT abc: the string 'abc' (or TRUE, FALSE); expr is a COLUMN node */
} AstDefaultKind;

/* A column or table constraint. */
typedef struct AstConstraint {
    AstConstraintKind kind;
    AstName name;     /* CONSTRAINT name in force; it stays in force until the next comma. */
    Span name_clause; /* "CONSTRAINT name" if it stands directly before; else {0, 0}. */
    Span span;        /* The constraint itself, without that clause. */
    AstConflict conflict;
    bool autoincrement;
    u8 sort; /* AstSort */
    AstOrderTerms terms;
    AstExpr *expr;
    Span expr_text; /* What is stored and shown: without the enclosing parentheses, trimmed. */
    AstDefaultKind default_kind;
    AstName collation;
    AstForeignKey *foreign_key;
    bool stored;            /* GENERATED ... STORED */
    AstName generated_word; /* The word behind the parentheses as typed; absent if none. */
} AstConstraint;

typedef struct AstConstraints {
    AstConstraint *items;
    u32 count, capacity;
} AstConstraints;

typedef struct AstColumnDef {
    AstName name;
    Span type; /* Type name as typed, with its (n, m), without GENERATED ALWAYS; bytes 0 if none. */
    AstConstraints constraints;
    Span span; /* From the name to the last constraint. */
} AstColumnDef;

typedef struct AstColumnDefs {
    AstColumnDef *items;
    u32 count, capacity;
} AstColumnDefs;

/* In every CREATE: `stored` runs from the object's own name to the end of the statement; what
   sqlite_schema keeps is "CREATE TABLE " (or "CREATE UNIQUE INDEX "...) followed by it. */
typedef struct AstCreateTable {
    bool temp, if_not_exists;
    AstName schema, name;
    AstColumnDefs columns;
    AstConstraints constraints;
    bool without_rowid, strict;
    AstSelect *as_select; /* Then columns and constraints are empty. */
    Span stored;
    Span args; /* From "(" or AS to the end. */
} AstCreateTable;

typedef struct AstCreateIndex {
    bool unique, if_not_exists;
    AstName schema, name, table;
    AstOrderTerms terms;
    AstExpr *where;
    Span stored;
} AstCreateIndex;

typedef struct AstCreateView {
    bool temp, if_not_exists;
    AstName schema, name;
    AstNames columns;
    AstSelect *select;
    Span stored;
} AstCreateView;

typedef enum AstTriggerTime {
    AST_TRIGGER_BEFORE,
    AST_TRIGGER_AFTER,
    AST_TRIGGER_INSTEAD
} AstTriggerTime;
typedef enum AstTriggerEvent {
    AST_TRIGGER_INSERT,
    AST_TRIGGER_UPDATE,
    AST_TRIGGER_DELETE
} AstTriggerEvent;

typedef struct AstCreateTrigger {
    bool temp, if_not_exists, for_each_row;
    bool time_written; /* False: BEFORE by default */
    AstTriggerTime time;
    AstTriggerEvent event;
    AstName schema, name;
    AstName table_schema, table;
    AstNames columns; /* UPDATE OF ... */
    AstExpr *when;
    AstStatement **steps; /* INSERT, UPDATE, DELETE, SELECT, with their spans */
    u32 count, capacity;
    Span stored;
} AstCreateTrigger;

typedef struct AstCreateVirtual {
    bool if_not_exists;
    AstName schema, name, module;
    Span *args; /* Raw text of each argument, trimmed. */
    u32 count, capacity;
    Span stored;
} AstCreateVirtual;

/* DROP TABLE, VIEW, INDEX, TRIGGER: the statement kind says which. */
typedef struct AstDrop {
    bool if_exists;
    AstName schema, name;
} AstDrop;

typedef enum AstAlterKind {
    AST_ALTER_RENAME_TABLE,    /* new_name */
    AST_ALTER_RENAME_COLUMN,   /* column, new_name */
    AST_ALTER_ADD_COLUMN,      /* definition */
    AST_ALTER_DROP_COLUMN,     /* column */
    AST_ALTER_ADD_CHECK,       /* constraint; its name may be absent */
    AST_ALTER_DROP_CONSTRAINT, /* constraint_name */
    AST_ALTER_SET_NOT_NULL,    /* column, conflict */
    AST_ALTER_DROP_NOT_NULL,   /* column */
} AstAlterKind;

typedef struct AstAlter {
    AstAlterKind kind;
    AstName schema, table;
    AstName column, new_name, constraint_name;
    AstColumnDef *definition;
    AstConstraint *constraint;
    AstConflict conflict;
    Span clause; /* The added column definition or constraint, or SET NOT NULL ..., as typed. */
} AstAlter;

/* ---- Transactions and the rest ---- */

typedef enum AstBeginMode {
    AST_BEGIN_DEFERRED, /* Also when nothing is written. */
    AST_BEGIN_IMMEDIATE,
    AST_BEGIN_EXCLUSIVE,
    AST_BEGIN_CONCURRENT,
} AstBeginMode;

typedef enum AstIsolation {
    AST_ISOLATION_NONE, /* Not named. */
    AST_ISOLATION_READ_UNCOMMITTED,
    AST_ISOLATION_READ_COMMITTED,
    AST_ISOLATION_REPEATABLE_READ,
    AST_ISOLATION_SNAPSHOT,
    AST_ISOLATION_SERIALIZABLE,
} AstIsolation;

typedef struct AstTransaction {
    AstBeginMode mode;
    AstIsolation isolation;
    AstName name; /* Savepoint name; BEGIN TRANSACTION name (without effect). */
} AstTransaction;

typedef enum AstPragmaValue {
    AST_PRAGMA_NO_VALUE,
    AST_PRAGMA_EQUALS, /* PRAGMA x = v */
    AST_PRAGMA_CALL,   /* PRAGMA x(v) */
} AstPragmaValue;

typedef struct AstPragma {
    AstName schema, name;
    AstPragmaValue form;
    bool negative;   /* The value was -number. */
    bool is_number;  /* The value is a number, with + or - or without. */
    Slice value;     /* Unquoted text of the value; with its "-" if negative. */
    Span value_span; /* As typed. */
    u8 quote;        /* AstQuote of the value */
} AstPragma;

/* ATTACH file AS name KEY key; DETACH name; VACUUM schema INTO file; ANALYZE and REINDEX [[a.]b].
 */
typedef struct AstAttach {
    AstExpr *file, *name, *key;
} AstAttach;

typedef struct AstVacuum {
    AstName schema;
    AstExpr *into;
} AstVacuum;

typedef struct AstObject {
    AstName schema, name; /* Both absent: everything. */
} AstObject;

typedef enum AstStatementKind {
    AST_STMT_SELECT,
    AST_STMT_INSERT,
    AST_STMT_UPDATE,
    AST_STMT_DELETE,
    AST_STMT_CREATE_TABLE,
    AST_STMT_CREATE_INDEX,
    AST_STMT_CREATE_VIEW,
    AST_STMT_CREATE_TRIGGER,
    AST_STMT_CREATE_VIRTUAL,
    AST_STMT_DROP_TABLE,
    AST_STMT_DROP_INDEX,
    AST_STMT_DROP_VIEW,
    AST_STMT_DROP_TRIGGER,
    AST_STMT_ALTER,
    AST_STMT_BEGIN,
    AST_STMT_COMMIT, /* END too */
    AST_STMT_ROLLBACK,
    AST_STMT_SAVEPOINT,
    AST_STMT_RELEASE,
    AST_STMT_ROLLBACK_TO,
    AST_STMT_SET_TRANSACTION, /* SET TRANSACTION ISOLATION LEVEL x */
    AST_STMT_SET_SESSION,     /* SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL x */
    AST_STMT_PRAGMA,
    AST_STMT_ATTACH,
    AST_STMT_DETACH, /* u.attach.name */
    AST_STMT_ANALYZE,
    AST_STMT_REINDEX,
    AST_STMT_VACUUM,
    AST_STMT_COUNT_
} AstStatementKind;

typedef enum AstExplain {
    AST_EXPLAIN_NONE,
    AST_EXPLAIN_PROGRAM,    /* EXPLAIN */
    AST_EXPLAIN_QUERY_PLAN, /* EXPLAIN QUERY PLAN */
    AST_EXPLAIN_ANALYZE,    /* EXPLAIN ANALYZE statement */
} AstExplain;

struct AstStatement {
    AstStatementKind kind;
    AstExplain explain;
    Slice text; /* The text all spans refer to. */
    Span span;  /* First to last token, without EXPLAIN and without the semicolon. */
    /* Parameters are numbered 1 .. param_count; param_names[n - 1] is the name of number n with its
       first character (":a", "?3"), p == NULL where it has none.  NULL if no parameter is named. */
    u32 param_count;
    const Slice *param_names;
    union {
        AstSelect *select;
        AstInsert *insert;
        AstUpdate *update;
        AstDelete *delete_;
        AstCreateTable *create_table;
        AstCreateIndex *create_index;
        AstCreateView *create_view;
        AstCreateTrigger *create_trigger;
        AstCreateVirtual *create_virtual;
        AstDrop *drop;
        AstAlter *alter;
        AstTransaction *transaction;
        AstPragma *pragma;
        AstAttach *attach;
        AstObject *object; /* ANALYZE, REINDEX */
        AstVacuum *vacuum;
    } u;
};

/* "SELECT", "CREATE TABLE"...: for messages such as "X is not supported yet". */
const char *ast_statement_name(AstStatementKind kind);
