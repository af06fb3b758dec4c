/*
 * build.h -- what lexer, grammar and tree builders share while one statement is parsed (private).
 *
 * The driver at the end of grammar.y reads tokens and feeds them; the rules call the parse__*
 * builders.  After each token the driver looks at parser->err.  Until then rules may still run with
 * what a failed rule left behind, so every builder takes NULL for a tree that could not be made.
 */
#pragma once

#include "sql/parse/grammar.h"
#include "sql/parse/lex.h"
#include "sql/parse/parse.h"

/* An expression with the span it covers, its own parentheses included. */
typedef struct Operand {
    AstExpr *expr;
    Span outer;
} Operand;

/* A SELECT being built.  The tree's node comes first; the first arm has its place here. */
typedef struct SelectDraft {
    AstSelect select;
    AstArm arm;
    AstSetOp misplaced_before; /* ORDER BY or LIMIT stood before this operator; NONE: nowhere. */
    bool misplaced_order;      /* It was ORDER BY. */
    bool ends_with_values;
} SelectDraft;

typedef struct OnUsing {
    AstExpr *on;
    AstNames *columns; /* USING (...); NULL: none */
} OnUsing;

/* What rarely follows an UPDATE or DELETE. */
typedef struct ChangeRest {
    AstResults *returning;
    AstSelect *order; /* ORDER BY and LIMIT; NULL: neither */
} ChangeRest;

typedef struct WhereReturning {
    AstExpr *where;
    ChangeRest *rest; /* NULL: nothing */
} WhereReturning;

typedef struct InsertTail {
    AstUpserts *upserts;
    AstResults *returning;
} InsertTail;

/* name(...) before what may follow it. */
typedef struct Call {
    AstFunction *function;
    u32 offset, end;
} Call;

typedef struct FilterOver {
    AstExpr *filter;
    AstWindow *over;
} FilterOver;

#define ON_USING_NONE    ((OnUsing){0})
#define FILTER_OVER_NONE ((FilterOver){0})
#define RESULTS_NONE     ((AstResults){0})
#define EXPRS_NONE       ((AstExprs){0})
#define ORDER_NONE       ((AstOrderTerms){0})
#define SETS_NONE        ((AstSets){0})

typedef struct WindowList {
    AstWindow *items;
    u32 count, capacity;
} WindowList;

typedef struct PragmaText {
    Span span;
    u16 code; /* TK_* */
    bool negative, number;
} PragmaText;

typedef struct ParamSlot {
    Slice name;
    u32 number; /* 0: empty */
} ParamSlot;

/* Parameter numbers: open addressing, name -> number. */
typedef struct Params {
    u32 count;    /* Highest number so far. */
    Slice *names; /* [number - 1] */
    u32 names_capacity;
    ParamSlot *slots;
    u32 slots_size, slots_used; /* size is a power of two, or 0 */
} Params;

/* How far the arguments of CREATE VIRTUAL TABLE have come. */
typedef struct VirtualArgs {
    Span *items;
    u32 count, capacity;
} VirtualArgs;

/* AS (expr) STORED */
typedef struct GeneratedPart {
    AstExpr *expr;
    Span text;
    AstName word;
    bool stored;
} GeneratedPart;

typedef struct Parser {
    Arena *arena;
    const u8 *text, *end;
    ErrMsg *msg;
    Err err;

    Token current;    /* The token being fed: the lookahead of every rule that runs. */
    u32 previous_end; /* Where the token before it ends. */
    u32 begin;        /* Where the statement begins, behind EXPLAIN. */
    u32 consumed;     /* Behind the last token read. */
    bool done;        /* A whole statement has been seen. */

    AstExplain explain;
    AstStatement *statement;
    AstExpr *lone; /* For sql_parse_expr(). */
    Params params;

    /* The CREATE TABLE, ALTER TABLE ADD, CREATE TRIGGER or CREATE VIRTUAL TABLE at hand. */
    AstColumnDefs columns;
    AstConstraints constraints; /* Of the table. */
    bool in_table_constraints;
    AstForeignKey *last_foreign_key;
    GeneratedPart generated; /* It comes before the head of its constraint. */
    u32 generated_offset;    /* Of GENERATED ALWAYS when it was taken for a type; 0: none. */
    Token constraint_name;   /* CONSTRAINT name in force; bytes 0: none */
    Span constraint_clause;  /* That clause, until a constraint follows. */
    AstFkAction on_delete, on_update;
    Token foreign_match;
    bool table_options_written;
    AstCreateTable *table;
    AstTriggerEvent trigger_event;
    AstCreateTrigger *trigger;
    VirtualArgs virtual_args;

    u32 expr_depth_max, parser_depth_max, compound_max, function_args_max, param_number_max;
    u32 columns_max;
    size_t text_bytes_max;
    bool stored;
} Parser;

/* ---- parse.c: errors ---- */

/* Note an error at byte `offset` (-1: nowhere).  As in SQLite a later one replaces it. */
void parse__fail(Parser *P, i64 offset, const char *format, ...) PRINTF_LIKE(3, 4);
void parse__fail_code(Parser *P, Err err, const char *format, ...) PRINTF_LIKE(3, 4);
void parse__syntax_error(Parser *P, const Token *token);
void parse__out_of_memory(Parser *P);

/* ---- grammar.y ---- */

/* Feed tokens until a statement has ended or an error is noted.  `lone_expr`: the whole text is one
   expression. */
void parse__drive(Parser *P, bool lone_expr);
/* May a token with this code stand for a name, perhaps by fallback? */
bool parse__can_name(u16 code);

/* ---- build.c: nodes, lists, names, parameters ---- */

/* A zeroed node of constant size.  The common case is a few instructions. */
#define NODE_NEW(P, T) ((T *)parse__node_inline((P), sizeof(T)))
void *parse__node(Parser *P, size_t bytes);

static ALWAYS_INLINE void *
parse__node_inline(Parser *P, size_t bytes)
{
    Arena *arena = P->arena;
    u8 *at = (u8 *)ALIGN_UP((uintptr_t)arena->next, 16);
    if (UNLIKELY(arena->next == NULL || at > arena->end || (size_t)(arena->end - at) < bytes)) {
        return parse__node(P, bytes);
    }
    arena->next = at + bytes;
    return memset(at, 0, bytes);
}

/*
 * One more place at the end of `list` (any struct of items, count, capacity): a pointer to the
 * zeroed item, already counted, or NULL.
 */
#define LIST_ADD(P, list)                                                            \
    parse__list_add((P), (void **)&(list)->items, &(list)->count, &(list)->capacity, \
                    sizeof(*(list)->items))
void *parse__list_add(Parser *P, void **items, u32 *count, u32 *capacity, size_t item_bytes);

/* Absent for TOKEN_NONE. */
void parse__name_quoted(Parser *P, Token token, AstName *name_out);
static inline void
parse__name_into(Parser *P, Token token, AstName *name_out)
{
    if (LIKELY(token.hash != 0)) { /* A bare word; but one in 4 billion has hash 0. */
        name_out->text = SLICE(P->text + token.offset, token.bytes);
        name_out->span = (Span){token.offset, token.bytes};
        name_out->hash = token.hash;
        name_out->quote = AST_QUOTE_NONE;
        name_out->keyword = token.code != TK_ID;
        return;
    }
    parse__name_quoted(P, token, name_out);
}
AstName parse__name(Parser *P, Token token);
AstObject *parse__object(Parser *P, Token first, Token second);
AstNames parse__names(Parser *P, AstNames list, Token name);
AstNames *parse__keep_names(Parser *P, AstNames list);
AstNames parse__plain_name(Parser *P, AstNames list, Token name, int collated, int sort);
AstExprs *parse__keep_exprs(Parser *P, AstExprs list);
void
parse__assign_names(Parser *P, AstName *schema_out, AstName *name_out, Token first, Token second);
Operand parse__param(Parser *P, Token token);

static inline Span
token_span(Token token)
{
    return (Span){token.offset, token.bytes};
}
static inline u32
token_end(Token token)
{
    return token.offset + token.bytes;
}
static inline Span
span_between(u32 offset, u32 end)
{
    return (Span){offset, end - offset};
}
/* Without blanks at either end. */
Span parse__trimmed(const Parser *P, u32 offset, u32 end);
Span parse__trimmed_end(const Parser *P, u32 offset, u32 end); /* Only behind. */

/* ---- build_expr.c ---- */

Operand parse__parens(Token open, Operand inner, Token close);
Operand parse__literal(Parser *P, Token token, int code);
Operand parse__column(Parser *P, Token name);
Operand parse__qualified(Parser *P, const Token *schema, Token table, Token name);
Operand parse__unary(Parser *P, AstUnary op, Token token, Operand operand);
Operand parse__null_test(Parser *P, bool is_null, Operand operand, Token first, Token last);
Operand parse__binary(Parser *P, int code, Operand left, Token token, Operand right);
Operand parse__is(Parser *P, Operand left, Token token, bool negated, bool distinct, Operand right);
Operand parse__chain(Parser *P, AstExprKind kind, Operand left, Token token, Operand right);
Operand parse__collate(Parser *P, Operand operand, Token name);
Operand parse__cast(Parser *P, Token word, Operand operand, Span type, Token close);
Operand parse__between(Parser *P, Operand operand, int negated, Operand low, Operand high);
/* op.extra: with NOT */
Operand parse__like(Parser *P, Operand operand, Token op, Operand pattern, const Operand *escape);
/* The columns of an index: they have no place for NULLs. */
AstOrderTerms parse__key_terms(Parser *P, AstOrderTerms list);
Operand parse__in_list(Parser *P, Operand operand, int negated, AstExprs list, Token close);
Operand parse__in_select(Parser *P, Operand operand, int negated, SelectDraft *select, Token close);
Operand
parse__in_table(Parser *P, Operand operand, int negated, Token first, Token second, AstExprs *args);
Operand parse__subquery(Parser *P, AstExprKind kind, Token first, SelectDraft *select, Token close);
Operand parse__row(Parser *P, Token open, AstExprs list, Token close);
AstCase *parse__case_arm(Parser *P, AstCase *node, Operand when, Operand then);
Operand
parse__case(Parser *P, Token word, AstExpr *operand, AstCase *node, AstExpr *otherwise, Token end);
/* kind: 0, TK_DISTINCT, TK_ALL or TK_STAR */
Call parse__function(Parser *P, Token name, Token close, int kind, AstExprs args,
                     AstOrderTerms order_by);
Operand parse__call(Parser *P, Call call, FilterOver tail);
AstRaise parse__raise_of(int conflict);
Operand parse__raise(Parser *P, Token word, AstRaise action, Operand message, Token close);
AstExprs parse__exprs(Parser *P, AstExprs list, Operand item);
/* mode: AstSort + 4 * AstNulls */
AstOrderTerms parse__order_term(Parser *P, AstOrderTerms list, Operand item, int mode);

AstWindow *parse__frame_default(Parser *P);
AstWindow *parse__frame(Parser *P, int unit, AstBound start, AstBound end, int exclude);
AstWindow *parse__window(Parser *P, AstWindow *window, const Token *base, AstExprs partition_by,
                         AstOrderTerms order_by);
AstWindow *parse__window_named(Parser *P, AstWindow *window, Token name, Token close);
WindowList parse__window_list(Parser *P, WindowList list, AstWindow *window);
AstWindow *parse__over(AstWindow *window, Token word, Token close);
AstWindow *parse__over_name(Parser *P, Token word, Token name);

/* ---- build_select.c ---- */

AstResults parse__result(Parser *P, AstResults list, Operand item, u32 text_end, Token alias);
AstResults parse__star(Parser *P, AstResults list, const Token *table, Token star);
AstResults *parse__returning(Parser *P, AstResults list);
int parse__join_type(Parser *P, const Token *first, const Token *second, const Token *third);
AstFromItem *parse__from_table(Parser *P, const Token *schema, Token name);
AstFromItem *parse__from_function(AstFromItem *item, AstExprs args);
AstFromItem *parse__from_select(Parser *P, Token open, SelectDraft *select);
AstFromItem *parse__from_nested(Parser *P, Token open, AstFrom *nested);
AstFromItem *parse__from_alias(Parser *P, AstFromItem *item, Token alias);
AstFromItem *parse__from_hint(Parser *P, AstFromItem *item, Token hint);
AstFrom *parse__from(Parser *P, AstFromItem *item, OnUsing on_using);
AstFrom *parse__from_join(Parser *P, AstFrom *from, int join, AstFromItem *item, OnUsing on_using);
SelectDraft *parse__draft(Parser *P);
SelectDraft *parse__clause_from(SelectDraft *draft, AstFrom *from);
SelectDraft *parse__clause_where(SelectDraft *draft, Operand where);
SelectDraft *parse__clause_group(SelectDraft *draft, AstExprs group_by);
SelectDraft *parse__clause_having(SelectDraft *draft, Operand having);
SelectDraft *parse__clause_windows(SelectDraft *draft, WindowList windows);
SelectDraft *parse__clause_order(SelectDraft *draft, AstOrderTerms order_by);
SelectDraft *parse__clause_limit(Parser *P, AstExpr *limit, AstExpr *offset);
SelectDraft *
parse__select(Parser *P, SelectDraft *draft, Token word, int distinct, AstResults results);
SelectDraft *parse__values(Parser *P, Token word, AstExprs row);
SelectDraft *parse__values_more(Parser *P, SelectDraft *draft, AstExprs row);
/* op.code: TK_UNION, TK_ALL (UNION ALL), TK_EXCEPT, TK_INTERSECT; its span is the whole operator */
SelectDraft *parse__compound(Parser *P, SelectDraft *left, Token op, SelectDraft *right);
SelectDraft *
parse__select_end(Parser *P, SelectDraft *draft, AstWith *with, u32 offset, bool recursive);
AstWith *parse__cte(Parser *P, AstWith *with, Token name, AstNames columns, int materialize,
                    SelectDraft *select, Token close);
AstWith *parse__recursive(AstWith *with);

/* ---- build_stmt.c ---- */

void parse__explain(Parser *P, AstExplain explain);
void parse__finish(Parser *P, AstStatement *statement);
/* A statement whose payload is `payload` (any member of AstStatement.u); NULL if that is NULL. */
AstStatement *parse__statement(Parser *P, AstStatementKind kind, void *payload);
AstStatement *parse__select_statement(Parser *P, SelectDraft *draft);
AstTarget *parse__target(Parser *P, Token schema, Token name, Token alias);
/* word.extra: the AstConflict */
AstStatement *parse__insert(Parser *P, AstWith *with, Token word, AstTarget *target,
                            AstNames columns, SelectDraft *select, InsertTail tail);
AstStatement *parse__update(Parser *P, AstWith *with, Token word, int conflict, AstTarget *target,
                            Token hint, AstSets sets, AstFrom *from, WhereReturning tail);
AstStatement *parse__delete(Parser *P, AstWith *with, Token word, AstTarget *target, Token hint,
                            WhereReturning tail);
WhereReturning parse__change_limit(Parser *P, AstExpr *limit, AstExpr *offset);
WhereReturning parse__change_order(Parser *P, WhereReturning tail, const AstOrderTerms *order_by);
WhereReturning parse__change_returning(Parser *P, WhereReturning tail, AstResults *returning);
AstSets parse__set(Parser *P, AstSets list, Token name, Operand value);
AstSets parse__set_row(Parser *P, AstSets list, Token open, AstNames columns, Operand value);
/* In front of `tail`; the list is kept in reverse until parse__insert(). */
InsertTail parse__upsert(Parser *P, InsertTail tail, Token word, AstOrderTerms target,
                         AstExpr *target_where, bool do_update, AstSets sets, AstExpr *where);
AstStatement *parse__begin(Parser *P, int mode, int isolation);
AstStatement *parse__simple(Parser *P, AstStatementKind kind, const Token *name);
AstStatement *parse__set_isolation(Parser *P, AstStatementKind kind, int isolation);
int parse__isolation(Parser *P, Token first, const Token *second);
void parse__set_session(Parser *P, Token first, Token second);
AstStatement *
parse__pragma(Parser *P, Token first, Token second, AstPragmaValue form, PragmaText value);
AstStatement *
parse__attach(Parser *P, AstStatementKind kind, AstExpr *file, AstExpr *name, AstExpr *key);
AstStatement *parse__object_statement(Parser *P, AstStatementKind kind, Token first, Token second);
AstStatement *parse__vacuum(Parser *P, Token schema, AstExpr *into);
AstStatement *parse__drop(Parser *P, AstStatementKind kind, int if_exists, AstObject *object);

/* ---- build_schema.c ---- */

/* Bits of table options. */
#define TABLE_WITHOUT_ROWID 1
#define TABLE_STRICT        2

AstCreateTable *
parse__create_table(Parser *P, int temp, int if_not_exists, Token first, Token second);
void parse__table_body(Parser *P, Token open, Token close, int options);
void parse__table_as(Parser *P, Token word, SelectDraft *select);
int parse__table_option(Parser *P, bool without, Token name);
AstStatement *parse__create_table_end(Parser *P, AstCreateTable *table);
void parse__column_begin(Parser *P, Token name, Span type);
void parse__constraint_name(Parser *P, Token word, Token name);
void parse__constraint_comma(Parser *P);
void parse__default(Parser *P, Token word, Operand value, const Token *sign);
void parse__default_parens(Parser *P, Token word, Token open, Operand value, Token close);
void parse__default_word(Parser *P, Token word, Token value);
void parse__plain_constraint(Parser *P, AstConstraintKind kind, Token word, int conflict);
void parse__column_key(Parser *P, Token word, int sort, int conflict, int autoincrement);
void parse__table_key(Parser *P, AstConstraintKind kind, Token word, AstOrderTerms terms,
                      int autoincrement, int conflict);
void parse__check(Parser *P, Token word, Token open, Operand expr, Token close, int conflict);
void parse__foreign_begin(Parser *P);
void parse__references(Parser *P, Token word, const AstNames *columns, Token table,
                       AstNames parent_columns);
void parse__deferral(Parser *P, int deferral);
void parse__column_collate(Parser *P, Token word, Token name);
void parse__generated(Parser *P, Token open, Operand expr, Token close, const Token *word);
void parse__generated_end(Parser *P, Token word);

AstStatement *parse__create_view(Parser *P, int temp, int if_not_exists, Token first, Token second,
                                 AstNames columns, SelectDraft *select);
AstStatement *parse__create_index(Parser *P, int unique, int if_not_exists, Token first,
                                  Token second, Token table, AstOrderTerms terms, AstExpr *where);
AstNames parse__trigger_event(Parser *P, AstTriggerEvent event, const AstNames *columns);
AstCreateTrigger *
parse__create_trigger(Parser *P, int temp, int if_not_exists, Token first, Token second, int time,
                      AstNames columns, AstObject *table, int for_each_row, AstExpr *when);
void parse__trigger_step(Parser *P, AstStatement *step);
void parse__trigger_hint(Parser *P, const char *what);
AstStatement *parse__create_trigger_end(Parser *P, AstCreateTrigger *trigger, Token end);
AstCreateVirtual *
parse__create_virtual(Parser *P, int if_not_exists, Token first, Token second, Token module);
void parse__virtual_arg(Parser *P);
void parse__virtual_token(Parser *P, Token token);
AstStatement *parse__create_virtual_end(Parser *P, AstCreateVirtual *table, const Token *close);
AstAlter *parse__alter(Parser *P, AstObject *table);
AstStatement *parse__alter_rename(Parser *P, AstAlter *alter, const Token *column, Token new_name);
AstStatement *parse__alter_column(Parser *P, AstAlter *alter, AstAlterKind kind, Token column,
                                  int conflict, Token clause);
AstStatement *parse__alter_drop_constraint(Parser *P, AstAlter *alter, Token name);
AstStatement *parse__alter_add_end(Parser *P, AstAlter *alter);
AstStatement *parse__alter_check(Parser *P, AstAlter *alter);
