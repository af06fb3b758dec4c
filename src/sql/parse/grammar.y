/*
 * grammar.y -- the language, for lemon.
 *
 * What is accepted, with which precedence and which keywords serve as names, is SQLite 3.54's.
 * Rules only say what belongs together; the trees are made by the parse__* builders (parser.h).
 * `P` is the Parser.  A rule that needs to know where the next token begins reads P->current: the
 * lookahead is always the token being fed.
 *
 * The driver at the end reads tokens and feeds them.
 */

%token_prefix TK_
%token_type {Token}
%default_type {Token}
%extra_context {Parser *P}

%include {
#include "sql/parse/build.h"

#define NOTHING_FED 0xFFFF /* No token code. */
}

%syntax_error {
    parse__syntax_error(P, &P->current);
}
%stack_overflow {
    parse__out_of_memory(P);
}

/* The order of the first lines is the order of the token codes. */
%token SEMI LP RP COMMA DOT ID STRING INTEGER FLOAT BLOB QNUMBER VARIABLE.

/* Words that are names wherever they cannot be keywords. */
%fallback ID
    ABORT ACTION AFTER ALWAYS ANALYZE ASC ATTACH BEFORE BEGIN BY CASCADE CAST COLUMNKW CONCURRENT
    CONFLICT CTIME_KW CURRENT DATABASE DEFERRED DESC DETACH DO EACH END EXCLUDE EXCLUSIVE EXPLAIN
    FAIL FIRST FOLLOWING FOR GENERATED GROUPS IF IGNORE IMMEDIATE INITIALLY INSTEAD ISOLATION KEY
    LAST LEVEL LIKE_KW MATCH MATERIALIZED NO NULLS OF OFFSET OTHERS PARTITION PLAN PRAGMA PRECEDING
    QUERY RAISE RANGE RECURSIVE REINDEX RELEASE RENAME REPLACE RESTRICT ROLLBACK ROW ROWS SAVEPOINT
    TEMP TIES TRIGGER UNBOUNDED VACUUM VIEW VIRTUAL WITH WITHOUT.

%wildcard ANY.

%left OR.
%left AND.
%right NOT.
%left IS MATCH LIKE_KW BETWEEN IN ISNULL NOTNULL NE EQ.
%left GT LE LT GE.
%right ESCAPE.
%left BITAND BITOR LSHIFT RSHIFT.
%left PLUS MINUS.
%left STAR SLASH REM.
%left CONCAT PTR.
%left COLLATE.
%right BITNOT.
%nonassoc ON.

%token_class id  ID|INDEXED.
%token_class ids ID|STRING.
%token_class nm  ID|INDEXED|JOIN_KW|STRING.
/* A parenthesis behind a string: there may be one behind a name so written, but 'f'(x) is no call. */
%token_class lp  LP|STRING_LP.

/* ---- One statement ---- */

%start_symbol input
input ::= commands.
commands ::= commands command.
commands ::= command.
command ::= SEMI.                                   { P->begin = P->current.offset; }
command ::= explained SEMI.
command ::= explain explained SEMI.
command ::= LONE_EXPR lone SEMI.
lone ::= expr(X).                                   { P->lone = X.expr; P->done = true; }
explained ::= statement(S).                         { parse__finish(P, S); }

explain ::= EXPLAIN.                                { parse__explain(P, AST_EXPLAIN_PROGRAM); }
explain ::= EXPLAIN QUERY PLAN.                     { parse__explain(P, AST_EXPLAIN_QUERY_PLAN); }
explain ::= EXPLAIN EXPLAIN_ANALYZE.                { parse__explain(P, AST_EXPLAIN_ANALYZE); }

%type statement {AstStatement *}

/* ---- Names ---- */

/* The part behind a dot; bytes is 0 without one. */
dotted(A) ::= .                                     { A = TOKEN_NONE; }
dotted(A) ::= DOT nm(X).                            { A = X; }

%type full_name {AstObject *}
full_name(A) ::= nm(X) dotted(Y).                   { A = parse__object(P, X, Y); }

/* ---- Transactions ---- */

statement(A) ::= BEGIN begin_mode(M) transaction_opt.  { A = parse__begin(P, M, AST_ISOLATION_NONE); }
statement(A) ::= BEGIN begin_mode(M) isolation(I).     { A = parse__begin(P, M, I); }
statement(A) ::= BEGIN begin_mode(M) TRANSACTION isolation(I). { A = parse__begin(P, M, I); }
statement(A) ::= COMMIT|END transaction_opt.        { A = parse__simple(P, AST_STMT_COMMIT, NULL); }
statement(A) ::= ROLLBACK transaction_opt.          { A = parse__simple(P, AST_STMT_ROLLBACK, NULL); }
statement(A) ::= SAVEPOINT nm(X).                   { A = parse__simple(P, AST_STMT_SAVEPOINT, &X); }
statement(A) ::= RELEASE savepoint_opt nm(X).       { A = parse__simple(P, AST_STMT_RELEASE, &X); }
statement(A) ::= ROLLBACK transaction_opt TO savepoint_opt nm(X).
                                                    { A = parse__simple(P, AST_STMT_ROLLBACK_TO, &X); }
statement(A) ::= SET_START TRANSACTION isolation(I).
    { A = parse__set_isolation(P, AST_STMT_SET_TRANSACTION, I); }
statement(A) ::= SET_START set_session AS TRANSACTION isolation(I).
    { A = parse__set_isolation(P, AST_STMT_SET_SESSION, I); }

%type begin_mode {int}
begin_mode(A) ::= .                                 { A = AST_BEGIN_DEFERRED; }
begin_mode(A) ::= DEFERRED.                         { A = AST_BEGIN_DEFERRED; }
begin_mode(A) ::= IMMEDIATE.                        { A = AST_BEGIN_IMMEDIATE; }
begin_mode(A) ::= EXCLUSIVE.                        { A = AST_BEGIN_EXCLUSIVE; }
begin_mode(A) ::= CONCURRENT.                       { A = AST_BEGIN_CONCURRENT; }

transaction_opt ::= .
transaction_opt ::= TRANSACTION.
transaction_opt ::= TRANSACTION nm.
transaction_opt ::= TRANSACTION ISOLATION.
savepoint_opt ::= .
savepoint_opt ::= SAVEPOINT.

%type isolation {int}
isolation(A) ::= ISOLATION LEVEL nm(X).             { A = parse__isolation(P, X, NULL); }
isolation(A) ::= ISOLATION LEVEL nm(X) nm(Y).       { A = parse__isolation(P, X, &Y); }
set_session ::= nm(X) nm(Y).                        { parse__set_session(P, X, Y); }

/* ---- CREATE TABLE ---- */

statement(A) ::= CREATE table_head(T) table_body.   { A = parse__create_table_end(P, T); }

%type table_head {AstCreateTable *}
table_head(A) ::= temp(T) TABLE if_not_exists(E) nm(X) dotted(Y).
    { A = parse__create_table(P, T, E, X, Y); }

%type temp {int}
temp(A) ::= .                                       { A = 0; }
temp(A) ::= TEMP.                                   { A = 1; }

%type if_not_exists {int}
if_not_exists(A) ::= .                              { A = 0; }
if_not_exists(A) ::= IF NOT EXISTS.                 { A = 1; }

table_body ::= lp(L) columns table_constraints_opt RP(R) table_options(O).
    { parse__table_body(P, L, R, O); }
table_body ::= AS(W) select(S).                     { parse__table_as(P, W, S); }

%type table_options {int}
%type table_option {int}
table_options(A) ::= .                              { A = 0; }
table_options(A) ::= table_option(A).
table_options(A) ::= table_options(X) COMMA table_option(Y). { A = X | Y; }
table_option(A) ::= WITHOUT nm(X).                  { A = parse__table_option(P, true, X); }
table_option(A) ::= nm(X).                          { A = parse__table_option(P, false, X); }

columns ::= columns COMMA column_name column_constraints.
columns ::= column_name column_constraints.
column_name ::= nm(X) type_name(T).                 { parse__column_begin(P, X, T); }

/* A type as typed, with (n) or (n, m).  bytes is 0 without one. */
%type type_name {Span}
%type type_words {Span}
type_name(A) ::= .                                  { A = (Span){P->current.offset, 0}; }
type_name(A) ::= type_words(A).
type_name(A) ::= type_words(X) lp signed RP(R).     { A = span_between(X.offset, token_end(R)); }
type_name(A) ::= type_words(X) lp signed COMMA signed RP(R).
                                                    { A = span_between(X.offset, token_end(R)); }
type_words(A) ::= ids(X).                           { A = token_span(X); }
type_words(A) ::= type_words(X) ids(Y).             { A = span_between(X.offset, token_end(Y)); }
signed ::= plus_number.
signed ::= minus_number.

column_constraints ::= column_constraints column_constraint.
column_constraints ::= .

column_constraint ::= CONSTRAINT(W) nm(X).          { parse__constraint_name(P, W, X); }
column_constraint ::= DEFAULT(W) term(X).           { parse__default(P, W, X, NULL); }
column_constraint ::= DEFAULT(W) STRING(X).         { parse__default(P, W, parse__column(P, X), NULL); }
column_constraint ::= DEFAULT(W) PLUS(O) STRING(X). { parse__default(P, W, parse__column(P, X), &O); }
column_constraint ::= DEFAULT(W) MINUS(O) STRING(X). { parse__default(P, W, parse__column(P, X), &O); }
column_constraint ::= DEFAULT(W) LP(L) expr(X) RP(R). { parse__default_parens(P, W, L, X, R); }
column_constraint ::= DEFAULT(W) PLUS(O) term(X).   { parse__default(P, W, X, &O); }
column_constraint ::= DEFAULT(W) MINUS(O) term(X).  { parse__default(P, W, X, &O); }
column_constraint ::= DEFAULT(W) id(X).             { parse__default_word(P, W, X); }
column_constraint ::= NULL(W) on_conflict(C).       { parse__plain_constraint(P, AST_CONSTRAINT_NULL, W, C); }
column_constraint ::= NOT(W) NULL on_conflict(C).   { parse__plain_constraint(P, AST_CONSTRAINT_NOT_NULL, W, C); }
column_constraint ::= PRIMARY(W) KEY sort(S) on_conflict(C) autoincrement(I).
                                                    { parse__column_key(P, W, S, C, I); }
column_constraint ::= UNIQUE(W) on_conflict(C).     { parse__plain_constraint(P, AST_CONSTRAINT_UNIQUE, W, C); }
column_constraint ::= CHECK(W) LP(L) expr(X) RP(R). { parse__check(P, W, L, X, R, AST_CONFLICT_DEFAULT); }
column_constraint ::= REFERENCES(W) nm(X) plain_names_opt(N) foreign_args.
                                                    { parse__references(P, W, NULL, X, N); }
column_constraint ::= deferral(D).                  { parse__deferral(P, D); }
column_constraint ::= COLLATE(W) ids(X).            { parse__column_collate(P, W, X); }
column_constraint ::= GENERATED(W) ALWAYS AS generated. { parse__generated_end(P, W); }
column_constraint ::= AS(W) generated.              { parse__generated_end(P, W); }
generated ::= LP(L) expr(X) RP(R).                  { parse__generated(P, L, X, R, NULL); }
generated ::= LP(L) expr(X) RP(R) ID(K).            { parse__generated(P, L, X, R, &K); }

%type autoincrement {int}
autoincrement(A) ::= .                              { A = 0; }
autoincrement(A) ::= AUTOINCR.                      { A = 1; }

/* MATCH, ON DELETE, ON UPDATE: collected in P->foreign. */
foreign_args ::= .                                  { parse__foreign_begin(P); }
foreign_args ::= foreign_args foreign_arg.
foreign_arg ::= MATCH nm(X).                        { P->foreign_match = X; }
foreign_arg ::= ON INSERT foreign_action.
foreign_arg ::= ON DELETE foreign_action(X).        { P->on_delete = (AstFkAction)X; }
foreign_arg ::= ON UPDATE foreign_action(X).        { P->on_update = (AstFkAction)X; }

%type foreign_action {int}
foreign_action(A) ::= SET NULL.                     { A = AST_FK_SET_NULL; }
foreign_action(A) ::= SET DEFAULT.                  { A = AST_FK_SET_DEFAULT; }
foreign_action(A) ::= CASCADE.                      { A = AST_FK_CASCADE; }
foreign_action(A) ::= RESTRICT.                     { A = AST_FK_RESTRICT; }
foreign_action(A) ::= NO ACTION.                    { A = AST_FK_NO_ACTION; }

/* Bit 0: DEFERRABLE; bit 1: INITIALLY DEFERRED. */
%type deferral {int}
%type deferral_opt {int}
%type initially {int}
deferral(A) ::= NOT DEFERRABLE initially.           { A = 0; }
deferral(A) ::= DEFERRABLE initially(X).            { A = 1 | X; }
deferral_opt(A) ::= .                               { A = 0; }
deferral_opt(A) ::= deferral(A).
initially(A) ::= .                                  { A = 0; }
initially(A) ::= INITIALLY DEFERRED.                { A = 2; }
initially(A) ::= INITIALLY IMMEDIATE.               { A = 0; }

table_constraints_opt ::= .
table_constraints_opt ::= constraint_comma table_constraints.
table_constraints ::= table_constraints constraint_sep table_constraint.
table_constraints ::= table_constraint.
constraint_comma ::= COMMA.                         { parse__constraint_comma(P); }
constraint_sep ::= COMMA.                           { parse__constraint_comma(P); }
constraint_sep ::= .

table_constraint ::= CONSTRAINT(W) nm(X).           { parse__constraint_name(P, W, X); }
table_constraint ::= PRIMARY(W) KEY LP key_terms(T) autoincrement(I) RP on_conflict(C).
                                                    { parse__table_key(P, AST_CONSTRAINT_PRIMARY_KEY, W, T, I, C); }
table_constraint ::= UNIQUE(W) LP key_terms(T) RP on_conflict(C).
                                                    { parse__table_key(P, AST_CONSTRAINT_UNIQUE, W, T, 0, C); }
table_constraint ::= CHECK(W) LP(L) expr(X) RP(R) on_conflict(C). { parse__check(P, W, L, X, R, C); }
table_constraint ::= FOREIGN(W) KEY LP plain_names(L) RP REFERENCES nm(X) plain_names_opt(N)
                     foreign_args deferral_opt(D).  { parse__references(P, W, &L, X, N); parse__deferral(P, D); }

%type on_conflict {int}
%type or_conflict {int}
%type resolution {int}
on_conflict(A) ::= .                                { A = AST_CONFLICT_DEFAULT; }
on_conflict(A) ::= ON CONFLICT resolution(X).       { A = X; }
or_conflict(A) ::= .                                { A = AST_CONFLICT_DEFAULT; }
or_conflict(A) ::= OR resolution(X).                { A = X; }
resolution(A) ::= raise_action(A).
resolution(A) ::= IGNORE.                           { A = AST_CONFLICT_IGNORE; }
resolution(A) ::= REPLACE.                          { A = AST_CONFLICT_REPLACE; }

/* ---- Views, indexes, triggers, virtual tables, DROP ---- */

statement(A) ::= CREATE temp(T) VIEW if_not_exists(E) nm(X) dotted(Y) plain_names_opt(N) AS select(S).
    { A = parse__create_view(P, T, E, X, Y, N, S); }

statement(A) ::= CREATE unique(U) INDEX if_not_exists(E) nm(X) dotted(Y) ON nm(T) lp key_terms(L) RP where_opt(W).
    { A = parse__create_index(P, U, E, X, Y, T, L, W); }

%type unique {int}
unique(A) ::= .                                     { A = 0; }
unique(A) ::= UNIQUE.                               { A = 1; }

statement(A) ::= CREATE trigger_head(T) BEGIN trigger_steps END(W).
    { A = parse__create_trigger_end(P, T, W); }

%type trigger_head {AstCreateTrigger *}
trigger_head(A) ::= temp(T) TRIGGER if_not_exists(E) nm(X) dotted(Y) trigger_time(M) trigger_event(V)
                    ON full_name(O) for_each_row(F) when_opt(W).
    { A = parse__create_trigger(P, T, E, X, Y, M, V, O, F, W); }

%type trigger_time {int}
trigger_time(A) ::= .                               { A = -1; }
trigger_time(A) ::= BEFORE.                         { A = AST_TRIGGER_BEFORE; }
trigger_time(A) ::= AFTER.                          { A = AST_TRIGGER_AFTER; }
trigger_time(A) ::= INSTEAD OF.                     { A = AST_TRIGGER_INSTEAD; }

/* The event is left in P->trigger_event; the value is the list of columns. */
%type trigger_event {AstNames}
trigger_event(A) ::= DELETE.                        { A = parse__trigger_event(P, AST_TRIGGER_DELETE, NULL); }
trigger_event(A) ::= INSERT.                        { A = parse__trigger_event(P, AST_TRIGGER_INSERT, NULL); }
trigger_event(A) ::= UPDATE.                        { A = parse__trigger_event(P, AST_TRIGGER_UPDATE, NULL); }
trigger_event(A) ::= UPDATE OF names(L).            { A = parse__trigger_event(P, AST_TRIGGER_UPDATE, &L); }

%type for_each_row {int}
for_each_row(A) ::= .                               { A = 0; }
for_each_row(A) ::= FOR EACH ROW.                   { A = 1; }

%type when_opt {AstExpr *}
when_opt(A) ::= .                                   { A = NULL; }
when_opt(A) ::= WHEN expr(X).                       { A = X.expr; }

trigger_steps ::= trigger_steps trigger_step(S) SEMI. { parse__trigger_step(P, S); }
trigger_steps ::= trigger_step(S) SEMI.             { parse__trigger_step(P, S); }

%type trigger_step {AstStatement *}
trigger_step(A) ::= UPDATE(W) or_conflict(C) target(T) trigger_hint SET set_list(L) from_opt(F) where_opt(X).
    { A = parse__update(P, NULL, W, C, T, TOKEN_NONE, L, F, (WhereReturning){.where = X}); }
trigger_step(A) ::= insert_word(W) INTO target(T) names_opt(N) select(S) insert_tail(U).
    { A = parse__insert(P, NULL, W, T, N, S, U); }
trigger_step(A) ::= DELETE(W) FROM target(T) trigger_hint where_opt(X).
    { A = parse__delete(P, NULL, W, T, TOKEN_NONE, (WhereReturning){.where = X}); }
trigger_step(A) ::= select(S).                      { A = parse__select_statement(P, S); }

trigger_hint ::= .
trigger_hint ::= INDEXED BY nm.                     { parse__trigger_hint(P, "INDEXED BY"); }
trigger_hint ::= NOT INDEXED.                       { parse__trigger_hint(P, "NOT INDEXED"); }

statement(A) ::= virtual_head(V).                   { A = parse__create_virtual_end(P, V, NULL); }
statement(A) ::= virtual_head(V) lp virtual_args RP(R). { A = parse__create_virtual_end(P, V, &R); }

%type virtual_head {AstCreateVirtual *}
virtual_head(A) ::= CREATE VIRTUAL TABLE if_not_exists(E) nm(X) dotted(Y) USING nm(M).
    { A = parse__create_virtual(P, E, X, Y, M); }
virtual_args ::= virtual_arg.
virtual_args ::= virtual_args COMMA virtual_arg.
virtual_arg ::= .                                   { parse__virtual_arg(P); }
virtual_arg ::= virtual_arg virtual_token.
virtual_token ::= ANY(X).                           { parse__virtual_token(P, X); }
virtual_token ::= virtual_open any_list RP(X).      { parse__virtual_token(P, X); }
virtual_open ::= lp(X).                             { parse__virtual_token(P, X); }
any_list ::= .
any_list ::= any_list lp any_list RP.
any_list ::= any_list ANY.

statement(A) ::= DROP TABLE if_exists(E) full_name(O).   { A = parse__drop(P, AST_STMT_DROP_TABLE, E, O); }
statement(A) ::= DROP VIEW if_exists(E) full_name(O).    { A = parse__drop(P, AST_STMT_DROP_VIEW, E, O); }
statement(A) ::= DROP INDEX if_exists(E) full_name(O).   { A = parse__drop(P, AST_STMT_DROP_INDEX, E, O); }
statement(A) ::= DROP TRIGGER if_exists(E) full_name(O). { A = parse__drop(P, AST_STMT_DROP_TRIGGER, E, O); }

%type if_exists {int}
if_exists(A) ::= .                                  { A = 0; }
if_exists(A) ::= IF EXISTS.                         { A = 1; }

/* ---- ALTER TABLE ---- */

%type alter {AstAlter *}
alter(A) ::= ALTER TABLE full_name(O).              { A = parse__alter(P, O); }

statement(A) ::= alter(T) RENAME TO nm(X).          { A = parse__alter_rename(P, T, NULL, X); }
statement(A) ::= alter(T) RENAME column_opt nm(X) TO nm(Y). { A = parse__alter_rename(P, T, &X, Y); }
statement(A) ::= alter_add(T) column_constraints.   { A = parse__alter_add_end(P, T); }
statement(A) ::= alter(T) DROP column_opt nm(X).    { A = parse__alter_column(P, T, AST_ALTER_DROP_COLUMN, X, 0, TOKEN_NONE); }
statement(A) ::= alter(T) DROP CONSTRAINT nm(X).    { A = parse__alter_drop_constraint(P, T, X); }
statement(A) ::= alter(T) ALTER column_opt nm(X) DROP(W) NOT NULL.
    { A = parse__alter_column(P, T, AST_ALTER_DROP_NOT_NULL, X, 0, W); }
statement(A) ::= alter(T) ALTER column_opt nm(X) SET NOT(W) NULL on_conflict(C).
    { A = parse__alter_column(P, T, AST_ALTER_SET_NOT_NULL, X, C, W); }
statement(A) ::= alter(T) ADD alter_named CHECK(W) LP(L) expr(X) RP(R) on_conflict(C).
    { parse__check(P, W, L, X, R, C); A = parse__alter_check(P, T); }
statement(A) ::= alter(T) ADD CHECK(W) LP(L) expr(X) RP(R) on_conflict(C).
    { parse__check(P, W, L, X, R, C); A = parse__alter_check(P, T); }
alter_named ::= CONSTRAINT(W) nm(X).                { parse__constraint_name(P, W, X); }

%type alter_add {AstAlter *}
alter_add(A) ::= alter(T) ADD column_opt nm(X) type_name(Y). { A = T; parse__column_begin(P, X, Y); }
column_opt ::= .
column_opt ::= COLUMNKW.

/* ---- SELECT ---- */

statement(A) ::= select(S).                         { A = parse__select_statement(P, S); }

%type select {SelectDraft *}
%type compound {SelectDraft *}
%type arm {SelectDraft *}
%type values {SelectDraft *}
%type with_list {AstWith *}
select(A) ::= WITH(W) with_list(L) compound(S).     { A = parse__select_end(P, S, L, W.offset, false); }
select(A) ::= WITH(W) RECURSIVE with_list(L) compound(S). { A = parse__select_end(P, S, L, W.offset, true); }
select(A) ::= compound(S).                          { A = parse__select_end(P, S, NULL, 0, false); }

compound(A) ::= arm(A).
compound(A) ::= compound(L) set_op(O) arm(R).       { A = parse__compound(P, L, O, R); }

set_op(A) ::= UNION(A).
set_op(A) ::= UNION(X) ALL(Y).                      { A = X; A.code = TK_ALL; A.bytes = token_end(Y) - X.offset; }
set_op(A) ::= EXCEPT|INTERSECT(A).

/* What follows the result columns is built from the end, so that an absent clause costs nothing. */
%type select_rest {SelectDraft *}
%type after_from {SelectDraft *}
%type after_where {SelectDraft *}
%type after_group {SelectDraft *}
%type after_having {SelectDraft *}
%type after_windows {SelectDraft *}
%type after_order {SelectDraft *}
arm(A) ::= SELECT(W) distinct(D) results(L) select_rest(S). { A = parse__select(P, S, W, D, L); }
arm(A) ::= values(A).
select_rest(A) ::= after_from(A).
select_rest(A) ::= FROM from_list(F) after_from(S). { A = parse__clause_from(S, F); }
after_from(A) ::= after_where(A).
after_from(A) ::= WHERE expr(X) after_where(S).     { A = parse__clause_where(S, X); }
after_where(A) ::= after_group(A).
after_where(A) ::= GROUP BY exprs(L) after_group(S). { A = parse__clause_group(S, L); }
after_group(A) ::= after_having(A).
after_group(A) ::= HAVING expr(X) after_having(S).  { A = parse__clause_having(S, X); }
after_having(A) ::= after_windows(A).
after_having(A) ::= WINDOW window_list(L) after_windows(S). { A = parse__clause_windows(S, L); }
after_windows(A) ::= after_order(A).
after_windows(A) ::= ORDER BY order_terms(L) after_order(S). { A = parse__clause_order(S, L); }
after_order(A) ::= .                                { A = parse__draft(P); }
after_order(A) ::= LIMIT expr(X).                   { A = parse__clause_limit(P, X.expr, NULL); }
after_order(A) ::= LIMIT expr(X) OFFSET expr(Y).    { A = parse__clause_limit(P, X.expr, Y.expr); }
after_order(A) ::= LIMIT expr(X) COMMA expr(Y).     { A = parse__clause_limit(P, Y.expr, X.expr); }

values(A) ::= VALUES(W) LP exprs(L) RP.             { A = parse__values(P, W, L); }
values(A) ::= values(V) COMMA LP exprs(L) RP.       { A = parse__values_more(P, V, L); }

%type distinct {int}
distinct(A) ::= .                                   { A = 0; }
distinct(A) ::= DISTINCT.                           { A = TK_DISTINCT; }
distinct(A) ::= ALL.                                { A = TK_ALL; }

/* The text of a column ends where the next token begins. */
%type results {AstResults}
results(A) ::= expr(X).                             { A = parse__result(P, RESULTS_NONE, X, P->current.offset, TOKEN_NONE); }
results(A) ::= expr(X) AS(W) nm(N).                 { A = parse__result(P, RESULTS_NONE, X, W.offset, N); }
results(A) ::= expr(X) ids(N).                      { A = parse__result(P, RESULTS_NONE, X, N.offset, N); }
results(A) ::= STAR(S).                             { A = parse__star(P, RESULTS_NONE, NULL, S); }
results(A) ::= nm(T) DOT STAR(S).                   { A = parse__star(P, RESULTS_NONE, &T, S); }
results(A) ::= results(L) COMMA expr(X).            { A = parse__result(P, L, X, P->current.offset, TOKEN_NONE); }
results(A) ::= results(L) COMMA expr(X) AS(W) nm(N). { A = parse__result(P, L, X, W.offset, N); }
results(A) ::= results(L) COMMA expr(X) ids(N).     { A = parse__result(P, L, X, N.offset, N); }
results(A) ::= results(L) COMMA STAR(S).            { A = parse__star(P, L, NULL, S); }
results(A) ::= results(L) COMMA nm(T) DOT STAR(S).  { A = parse__star(P, L, &T, S); }

%type from_opt {AstFrom *}
%type from_list {AstFrom *}
from_opt(A) ::= .                                   { A = NULL; }
from_opt(A) ::= FROM from_list(L).                  { A = L; }

from_list(A) ::= item(I). [OR]                      { A = parse__from(P, I, ON_USING_NONE); }
from_list(A) ::= item(I) on_using(U).               { A = parse__from(P, I, U); }
from_list(A) ::= from_list(L) join_op(J) item(I). [OR] { A = parse__from_join(P, L, J, I, ON_USING_NONE); }
from_list(A) ::= from_list(L) join_op(J) item(I) on_using(U). { A = parse__from_join(P, L, J, I, U); }

%type table {AstFromItem *}
%type source {AstFromItem *}
%type item {AstFromItem *}
table(A) ::= nm(X).                                 { A = parse__from_table(P, NULL, X); }
table(A) ::= nm(X) DOT nm(Y).                       { A = parse__from_table(P, &X, Y); }
source(A) ::= table(T) lp exprs_opt(E) RP.          { A = parse__from_function(T, E); }
source(A) ::= LP(W) select(S) RP.                   { A = parse__from_select(P, W, S); }
source(A) ::= LP(W) from_list(F) RP.                { A = parse__from_nested(P, W, F); }
item(A) ::= table(A).
item(A) ::= table(T) alias(N).                      { A = parse__from_alias(P, T, N); }
item(A) ::= table(T) indexed_by(I).                 { A = parse__from_hint(P, T, I); }
item(A) ::= table(T) alias(N) indexed_by(I).        { A = parse__from_hint(P, parse__from_alias(P, T, N), I); }
item(A) ::= source(A).
item(A) ::= source(T) alias(N).                     { A = parse__from_alias(P, T, N); }
alias(A) ::= AS nm(X).                              { A = X; }
alias(A) ::= ids(A).

%type join_op {int}
join_op(A) ::= COMMA.                               { A = AST_JOIN_COMMA; }
join_op(A) ::= JOIN.                                { A = AST_JOIN_INNER; }
join_op(A) ::= JOIN_KW(X) JOIN.                     { A = parse__join_type(P, &X, NULL, NULL); }
join_op(A) ::= JOIN_KW(X) nm(Y) JOIN.               { A = parse__join_type(P, &X, &Y, NULL); }
join_op(A) ::= JOIN_KW(X) nm(Y) nm(Z) JOIN.         { A = parse__join_type(P, &X, &Y, &Z); }

%type on_using {OnUsing}
on_using(A) ::= ON expr(X).                         { A = (OnUsing){.on = X.expr}; }
on_using(A) ::= USING LP names(L) RP.               { A = (OnUsing){.columns = parse__keep_names(P, L)}; }

/* code TK_NOT: NOT INDEXED; bytes 0: none */
index_hint(A) ::= .                                 { A = TOKEN_NONE; }
index_hint(A) ::= indexed_by(A).
indexed_by(A) ::= INDEXED BY nm(X).                 { A = X; }
indexed_by(A) ::= NOT(W) INDEXED.                   { A = W; }

%type where_opt {AstExpr *}
where_opt(A) ::= .                                  { A = NULL; }
where_opt(A) ::= WHERE expr(X).                     { A = X.expr; }

%type key_terms {AstOrderTerms}
key_terms(A) ::= order_terms(L).                     { A = parse__key_terms(P, L); }
%type order_terms {AstOrderTerms}
%type order_opt {AstOrderTerms}
order_opt(A) ::= .                                  { A = (AstOrderTerms){0}; }
order_opt(A) ::= ORDER BY order_terms(L).           { A = L; }
order_terms(A) ::= order_terms(L) COMMA expr(X) order_mode(M). { A = parse__order_term(P, L, X, M); }
order_terms(A) ::= expr(X) order_mode(M).           { A = parse__order_term(P, (AstOrderTerms){0}, X, M); }

/* AstSort + 4 * AstNulls */
%type order_mode {int}
order_mode(A) ::= .                                 { A = 0; }
order_mode(A) ::= ASC.                              { A = AST_SORT_ASC; }
order_mode(A) ::= DESC.                             { A = AST_SORT_DESC; }
order_mode(A) ::= nulls(N).                         { A = N; }
order_mode(A) ::= ASC nulls(N).                     { A = AST_SORT_ASC + N; }
order_mode(A) ::= DESC nulls(N).                    { A = AST_SORT_DESC + N; }
%type nulls {int}
nulls(A) ::= NULLS FIRST.                           { A = 4 * AST_NULLS_FIRST; }
nulls(A) ::= NULLS LAST.                            { A = 4 * AST_NULLS_LAST; }

%type sort {int}
sort(A) ::= .                                       { A = AST_SORT_DEFAULT; }
sort(A) ::= ASC.                                    { A = AST_SORT_ASC; }
sort(A) ::= DESC.                                   { A = AST_SORT_DESC; }

with_list(A) ::= with_item(A).
with_list(A) ::= with_list(L) COMMA with_name(N) plain_names_opt(C) with_as(M) LP select(S) RP(R).
    { A = parse__cte(P, L, N, C, M, S, R); }
%type with_item {AstWith *}
with_item(A) ::= with_name(N) plain_names_opt(C) with_as(M) LP select(S) RP(R).
    { A = parse__cte(P, NULL, N, C, M, S, R); }
with_name(A) ::= nm(A).
%type with_as {int}
with_as(A) ::= AS.                                  { A = AST_MATERIALIZE_ANY; }
with_as(A) ::= AS MATERIALIZED.                     { A = AST_MATERIALIZE_YES; }
with_as(A) ::= AS NOT MATERIALIZED.                 { A = AST_MATERIALIZE_NO; }

/* Names with an optional COLLATE, ASC or DESC that only old schemas may have. */
%type plain_names {AstNames}
%type plain_names_opt {AstNames}
plain_names_opt(A) ::= .                            { A = (AstNames){0}; }
plain_names_opt(A) ::= lp plain_names(L) RP.        { A = L; }
plain_names(A) ::= plain_names(L) COMMA nm(X) collated(C) sort(S). { A = parse__plain_name(P, L, X, C, S); }
plain_names(A) ::= nm(X) collated(C) sort(S).       { A = parse__plain_name(P, (AstNames){0}, X, C, S); }
%type collated {int}
collated(A) ::= .                                   { A = 0; }
collated(A) ::= COLLATE ids.                        { A = 1; }

%type names {AstNames}
%type names_opt {AstNames}
names_opt(A) ::= .                                  { A = (AstNames){0}; }
names_opt(A) ::= lp names(L) RP.                    { A = L; }
names(A) ::= names(L) COMMA nm(X).                  { A = parse__names(P, L, X); }
names(A) ::= nm(X).                                 { A = parse__names(P, (AstNames){0}, X); }

/* ---- INSERT, UPDATE, DELETE ---- */

%type with {AstWith *}
with(A) ::= .                                       { A = NULL; }
with(A) ::= WITH with_list(L).                      { A = L; }
with(A) ::= WITH RECURSIVE with_list(L).            { A = parse__recursive(L); }

%type target {AstTarget *}
target(A) ::= nm(X).                                { A = parse__target(P, TOKEN_NONE, X, TOKEN_NONE); }
target(A) ::= nm(X) DOT nm(Y).                      { A = parse__target(P, X, Y, TOKEN_NONE); }
target(A) ::= nm(X) AS nm(Z).                       { A = parse__target(P, TOKEN_NONE, X, Z); }
target(A) ::= nm(X) DOT nm(Y) AS nm(Z).             { A = parse__target(P, X, Y, Z); }

/* extra: the AstConflict */
insert_word(A) ::= INSERT(A) or_conflict(C).        { A.extra = (u16)C; }
insert_word(A) ::= REPLACE(A).                      { A.extra = AST_CONFLICT_REPLACE; }

statement(A) ::= with(H) insert_word(W) INTO target(T) names_opt(N) select(S) insert_tail(U).
    { A = parse__insert(P, H, W, T, N, S, U); }
statement(A) ::= with(H) insert_word(W) INTO target(T) names_opt(N) DEFAULT VALUES returning(R).
    { A = parse__insert(P, H, W, T, N, NULL, (InsertTail){NULL, R}); }

/* Built from the end; parse__insert() turns the order round. */
%type insert_tail {InsertTail}
insert_tail(A) ::= .                                { A = (InsertTail){0}; }
insert_tail(A) ::= RETURNING results(L).            { A = (InsertTail){NULL, parse__returning(P, L)}; }
insert_tail(A) ::= ON(W) CONFLICT DO NOTHING returning(R).
    { A = parse__upsert(P, (InsertTail){NULL, R}, W, ORDER_NONE, NULL, false, SETS_NONE, NULL); }
insert_tail(A) ::= ON(W) CONFLICT DO UPDATE SET set_list(L) where_opt(X) returning(R).
    { A = parse__upsert(P, (InsertTail){NULL, R}, W, ORDER_NONE, NULL, true, L, X); }
insert_tail(A) ::= ON(W) CONFLICT LP key_terms(T) RP where_opt(Y) DO NOTHING insert_tail(U).
    { A = parse__upsert(P, U, W, T, Y, false, SETS_NONE, NULL); }
insert_tail(A) ::= ON(W) CONFLICT LP key_terms(T) RP where_opt(Y) DO UPDATE SET set_list(L) where_opt(X) insert_tail(U).
    { A = parse__upsert(P, U, W, T, Y, true, L, X); }

%type returning {AstResults *}
returning(A) ::= .                                  { A = NULL; }
returning(A) ::= RETURNING results(L).              { A = parse__returning(P, L); }

statement(A) ::= with(H) UPDATE(W) or_conflict(C) target(T) index_hint(I) SET set_list(L) from_opt(F) change_tail(X).
    { A = parse__update(P, H, W, C, T, I, L, F, X); }
statement(A) ::= with(H) DELETE(W) FROM target(T) index_hint(I) change_tail(X).
    { A = parse__delete(P, H, W, T, I, X); }

%type change_tail {WhereReturning}
%type change_returning {WhereReturning}
%type change_order {WhereReturning}
%type change_limit {WhereReturning}
change_tail(A) ::= change_returning(A).
change_tail(A) ::= WHERE expr(X) change_returning(R). { A = R; A.where = X.expr; }
change_returning(A) ::= change_order(A).
change_returning(A) ::= RETURNING results(L) change_order(X). { A = parse__change_returning(P, X, parse__returning(P, L)); }
change_order(A) ::= change_limit(A).
change_order(A) ::= ORDER BY order_terms(L) change_limit(X). { A = parse__change_order(P, X, &L); }
change_limit(A) ::= .                               { A = (WhereReturning){0}; }
change_limit(A) ::= LIMIT expr(X).                  { A = parse__change_limit(P, X.expr, NULL); }
change_limit(A) ::= LIMIT expr(X) OFFSET expr(Y).   { A = parse__change_limit(P, X.expr, Y.expr); }
change_limit(A) ::= LIMIT expr(X) COMMA expr(Y).    { A = parse__change_limit(P, Y.expr, X.expr); }

%type set_list {AstSets}
set_list(A) ::= set_list(L) COMMA nm(X) EQ expr(Y). { A = parse__set(P, L, X, Y); }
set_list(A) ::= set_list(L) COMMA LP(W) names(N) RP EQ expr(Y). { A = parse__set_row(P, L, W, N, Y); }
set_list(A) ::= nm(X) EQ expr(Y).                   { A = parse__set(P, (AstSets){0}, X, Y); }
set_list(A) ::= LP(W) names(N) RP EQ expr(Y).       { A = parse__set_row(P, (AstSets){0}, W, N, Y); }

/* ---- Expressions ---- */

%type expr {Operand}
%type term {Operand}
expr(A) ::= term(A).
expr(A) ::= LP(L) expr(X) RP(R).                    { A = parse__parens(L, X, R); }
expr(A) ::= nm(X).                                  { A = parse__column(P, X); }
expr(A) ::= nm(T) DOT nm(X).                        { A = parse__qualified(P, NULL, T, X); }
expr(A) ::= nm(S) DOT nm(T) DOT nm(X).              { A = parse__qualified(P, &S, T, X); }
term(A) ::= NULL|FLOAT|BLOB(X).                     { A = parse__literal(P, X, X.code); }
term(A) ::= INTEGER|QNUMBER(X).                     { A = parse__literal(P, X, X.code); }
term(A) ::= CTIME_KW(X).                            { A = parse__literal(P, X, TK_CTIME_KW); }
expr(A) ::= VARIABLE(X).                            { A = parse__param(P, X); }
expr(A) ::= expr(X) COLLATE ids(N).                 { A = parse__collate(P, X, N); }
expr(A) ::= CAST(W) LP expr(X) AS type_name(T) RP(R). { A = parse__cast(P, W, X, T, R); }

expr(A) ::= call(F).                                { A = parse__call(P, F, FILTER_OVER_NONE); }
expr(A) ::= call(F) filter_over(V).                 { A = parse__call(P, F, V); }
%type call {Call}
call(A) ::= nm(N) LP RP(R).                      { A = parse__function(P, N, R, 0, EXPRS_NONE, ORDER_NONE); }
call(A) ::= nm(N) LP exprs(E) RP(R).             { A = parse__function(P, N, R, 0, E, ORDER_NONE); }
call(A) ::= nm(N) LP exprs(E) ORDER BY order_terms(O) RP(R). { A = parse__function(P, N, R, 0, E, O); }
call(A) ::= nm(N) LP ORDER BY order_terms(O) RP(R). { A = parse__function(P, N, R, 0, EXPRS_NONE, O); }
call(A) ::= nm(N) LP DISTINCT|ALL(D) exprs_opt(E) RP(R). { A = parse__function(P, N, R, D.code, E, ORDER_NONE); }
call(A) ::= nm(N) LP DISTINCT|ALL(D) exprs_opt(E) ORDER BY order_terms(O) RP(R). { A = parse__function(P, N, R, D.code, E, O); }
call(A) ::= nm(N) LP STAR RP(R).                 { A = parse__function(P, N, R, TK_STAR, EXPRS_NONE, ORDER_NONE); }

expr(A) ::= LP(L) exprs(X) COMMA expr(Y) RP(R).     { A = parse__row(P, L, parse__exprs(P, X, Y), R); }
expr(A) ::= expr(X) AND(O) expr(Y).                 { A = parse__chain(P, AST_EXPR_AND, X, O, Y); }
expr(A) ::= expr(X) OR(O) expr(Y).                  { A = parse__chain(P, AST_EXPR_OR, X, O, Y); }
expr(A) ::= expr(X) LT|GT|GE|LE(O) expr(Y).         { A = parse__binary(P, O.code, X, O, Y); }
expr(A) ::= expr(X) EQ|NE(O) expr(Y).               { A = parse__binary(P, O.code, X, O, Y); }
expr(A) ::= expr(X) BITAND|BITOR|LSHIFT|RSHIFT(O) expr(Y). { A = parse__binary(P, O.code, X, O, Y); }
expr(A) ::= expr(X) PLUS|MINUS(O) expr(Y).          { A = parse__binary(P, O.code, X, O, Y); }
expr(A) ::= expr(X) STAR|SLASH|REM(O) expr(Y).      { A = parse__binary(P, O.code, X, O, Y); }
expr(A) ::= expr(X) CONCAT(O) expr(Y).              { A = parse__binary(P, TK_CONCAT, X, O, Y); }
expr(A) ::= expr(X) PTR(O) expr(Y).                 { A = parse__binary(P, TK_PTR, X, O, Y); }

/* extra: with NOT */
like_op(A) ::= LIKE_KW|MATCH(A).                    { A.extra = 0; }
like_op(A) ::= NOT LIKE_KW|MATCH(X).                { A = X; A.extra = 1; }
expr(A) ::= expr(X) like_op(O) expr(Y). [LIKE_KW]   { A = parse__like(P, X, O, Y, NULL); }
expr(A) ::= expr(X) like_op(O) expr(Y) ESCAPE expr(Z). [LIKE_KW] { A = parse__like(P, X, O, Y, &Z); }

expr(A) ::= expr(X) ISNULL|NOTNULL(O).              { A = parse__null_test(P, O.code == TK_ISNULL, X, O, O); }
expr(A) ::= expr(X) NOT(O) NULL(E).                 { A = parse__null_test(P, false, X, O, E); }
expr(A) ::= expr(X) IS(O) expr(Y).                  { A = parse__is(P, X, O, false, false, Y); }
expr(A) ::= expr(X) IS(O) NOT expr(Y).              { A = parse__is(P, X, O, true, false, Y); }
expr(A) ::= expr(X) IS(O) NOT DISTINCT FROM expr(Y). { A = parse__is(P, X, O, false, true, Y); }
expr(A) ::= expr(X) IS(O) DISTINCT FROM expr(Y).    { A = parse__is(P, X, O, true, true, Y); }

expr(A) ::= NOT(O) expr(X).                         { A = parse__unary(P, AST_UNARY_NOT, O, X); }
expr(A) ::= BITNOT(O) expr(X).                      { A = parse__unary(P, AST_UNARY_BITNOT, O, X); }
expr(A) ::= PLUS(O) expr(X). [BITNOT]               { A = parse__unary(P, AST_UNARY_PLUS, O, X); }
expr(A) ::= MINUS(O) expr(X). [BITNOT]              { A = parse__unary(P, AST_UNARY_NEGATE, O, X); }

%type between_op {int}
between_op(A) ::= BETWEEN.                          { A = 0; }
between_op(A) ::= NOT BETWEEN.                      { A = 1; }
expr(A) ::= expr(X) between_op(N) expr(Y) AND expr(Z). [BETWEEN] { A = parse__between(P, X, N, Y, Z); }

%type in_op {int}
in_op(A) ::= IN.                                    { A = 0; }
in_op(A) ::= NOT IN.                                { A = 1; }
expr(A) ::= expr(X) in_op(N) LP exprs_opt(L) RP(R). [IN] { A = parse__in_list(P, X, N, L, R); }
expr(A) ::= expr(X) in_op(N) LP select(S) RP(R). [IN] { A = parse__in_select(P, X, N, S, R); }
expr(A) ::= expr(X) in_op(N) nm(T) dotted(U) table_args(L). [IN] { A = parse__in_table(P, X, N, T, U, L); }
%type table_args {AstExprs *}
table_args(A) ::= .                                 { A = NULL; }
table_args(A) ::= lp exprs_opt(L) RP.               { A = parse__keep_exprs(P, L); }
expr(A) ::= LP(L) select(S) RP(R).                  { A = parse__subquery(P, AST_EXPR_SUBQUERY, L, S, R); }
expr(A) ::= EXISTS(W) LP select(S) RP(R).           { A = parse__subquery(P, AST_EXPR_EXISTS, W, S, R); }

expr(A) ::= CASE(W) case_operand(X) case_arms(L) case_else(E) END(Z). { A = parse__case(P, W, X, L, E, Z); }
%type case_arms {AstCase *}
case_arms(A) ::= case_arms(L) WHEN expr(X) THEN expr(Y). { A = parse__case_arm(P, L, X, Y); }
case_arms(A) ::= WHEN expr(X) THEN expr(Y).         { A = parse__case_arm(P, NULL, X, Y); }
%type case_operand {AstExpr *}
case_operand(A) ::= .                               { A = NULL; }
case_operand(A) ::= expr(X).                        { A = X.expr; }
%type case_else {AstExpr *}
case_else(A) ::= .                                  { A = NULL; }
case_else(A) ::= ELSE expr(X).                      { A = X.expr; }

expr(A) ::= RAISE(W) LP IGNORE RP(R).               { A = parse__raise(P, W, AST_RAISE_IGNORE, (Operand){0}, R); }
expr(A) ::= RAISE(W) LP raise_action(T) COMMA expr(X) RP(R). { A = parse__raise(P, W, parse__raise_of(T), X, R); }
/* Values are AstConflict's. */
%type raise_action {int}
raise_action(A) ::= ROLLBACK.                       { A = AST_CONFLICT_ROLLBACK; }
raise_action(A) ::= ABORT.                          { A = AST_CONFLICT_ABORT; }
raise_action(A) ::= FAIL.                           { A = AST_CONFLICT_FAIL; }

%type exprs {AstExprs}
%type exprs_opt {AstExprs}
exprs_opt(A) ::= .                                  { A = (AstExprs){0}; }
exprs_opt(A) ::= exprs(A).
exprs(A) ::= exprs(L) COMMA expr(X).                { A = parse__exprs(P, L, X); }
exprs(A) ::= expr(X).                               { A = parse__exprs(P, (AstExprs){0}, X); }

/* ---- Windows ---- */

%type window_list {WindowList}
%type window_definition {AstWindow *}
%type window {AstWindow *}
%type frame_opt {AstWindow *}
window_list(A) ::= window_definition(W).             { A = parse__window_list(P, (WindowList){0}, W); }
window_list(A) ::= window_list(L) COMMA window_definition(W). { A = parse__window_list(P, L, W); }
window_definition(A) ::= nm(N) AS LP window(W) RP(R).  { A = parse__window_named(P, W, N, R); }

window(A) ::= frame_opt(A).
window(A) ::= PARTITION BY exprs(L) order_opt(O) frame_opt(F).    { A = parse__window(P, F, NULL, L, O); }
window(A) ::= nm(B) PARTITION BY exprs(L) order_opt(O) frame_opt(F). { A = parse__window(P, F, &B, L, O); }
window(A) ::= ORDER BY order_terms(O) frame_opt(F). { A = parse__window(P, F, NULL, (AstExprs){0}, O); }
window(A) ::= nm(B) ORDER BY order_terms(O) frame_opt(F). { A = parse__window(P, F, &B, (AstExprs){0}, O); }
window(A) ::= nm(B) frame_opt(F).                   { A = parse__window(P, F, &B, (AstExprs){0}, (AstOrderTerms){0}); }

frame_opt(A) ::= .                                  { A = parse__frame_default(P); }
frame_opt(A) ::= frame_unit(U) frame_start(S) exclude_opt(E).
    { A = parse__frame(P, U, S, (AstBound){AST_BOUND_CURRENT_ROW, NULL}, E); }
frame_opt(A) ::= frame_unit(U) BETWEEN frame_start(S) AND frame_end(T) exclude_opt(E).
    { A = parse__frame(P, U, S, T, E); }

%type frame_unit {int}
frame_unit(A) ::= RANGE.                            { A = AST_FRAME_RANGE; }
frame_unit(A) ::= ROWS.                             { A = AST_FRAME_ROWS; }
frame_unit(A) ::= GROUPS.                           { A = AST_FRAME_GROUPS; }

%type frame_start {AstBound}
%type frame_end {AstBound}
%type frame_bound {AstBound}
frame_start(A) ::= frame_bound(A).
frame_start(A) ::= UNBOUNDED PRECEDING.             { A = (AstBound){AST_BOUND_UNBOUNDED_PRECEDING, NULL}; }
frame_end(A) ::= frame_bound(A).
frame_end(A) ::= UNBOUNDED FOLLOWING.               { A = (AstBound){AST_BOUND_UNBOUNDED_FOLLOWING, NULL}; }
frame_bound(A) ::= expr(X) PRECEDING.               { A = (AstBound){AST_BOUND_PRECEDING, X.expr}; }
frame_bound(A) ::= expr(X) FOLLOWING.               { A = (AstBound){AST_BOUND_FOLLOWING, X.expr}; }
frame_bound(A) ::= CURRENT ROW.                     { A = (AstBound){AST_BOUND_CURRENT_ROW, NULL}; }

%type exclude_opt {int}
%type exclude {int}
exclude_opt(A) ::= .                                { A = AST_EXCLUDE_NO_OTHERS; }
exclude_opt(A) ::= EXCLUDE exclude(X).               { A = X; }
exclude(A) ::= NO OTHERS.                           { A = AST_EXCLUDE_WRITTEN_NO_OTHERS; }
exclude(A) ::= CURRENT ROW.                         { A = AST_EXCLUDE_CURRENT_ROW; }
exclude(A) ::= GROUP.                               { A = AST_EXCLUDE_GROUP; }
exclude(A) ::= TIES.                                { A = AST_EXCLUDE_TIES; }

%type filter_over {FilterOver}
%type over {AstWindow *}
%type filter {AstExpr *}
filter_over(A) ::= filter(F) over(W).               { A = (FilterOver){F, W}; }
filter_over(A) ::= over(W).                         { A = (FilterOver){NULL, W}; }
filter_over(A) ::= filter(F).                       { A = (FilterOver){F, NULL}; }
over(A) ::= OVER(L) LP window(W) RP(R).             { A = parse__over(W, L, R); }
over(A) ::= OVER(L) nm(N).                          { A = parse__over_name(P, L, N); }
filter(A) ::= FILTER LP WHERE expr(X) RP.           { A = X.expr; }

/* ---- The rest ---- */

statement(A) ::= PRAGMA nm(X) dotted(Y).            { A = parse__pragma(P, X, Y, AST_PRAGMA_NO_VALUE, (PragmaText){0}); }
statement(A) ::= PRAGMA nm(X) dotted(Y) EQ pragma_value(V).    { A = parse__pragma(P, X, Y, AST_PRAGMA_EQUALS, V); }
statement(A) ::= PRAGMA nm(X) dotted(Y) lp pragma_value(V) RP. { A = parse__pragma(P, X, Y, AST_PRAGMA_CALL, V); }

%type pragma_value {PragmaText}
pragma_value(A) ::= plus_number(X).                 { A = (PragmaText){token_span(X), X.code, false, true}; }
pragma_value(A) ::= minus_number(X).                { A = (PragmaText){token_span(X), X.code, true, true}; }
pragma_value(A) ::= nm(X).                          { A = (PragmaText){token_span(X), X.code, false, false}; }
pragma_value(A) ::= ON|DELETE|DEFAULT(X).           { A = (PragmaText){token_span(X), X.code, false, false}; }
plus_number(A) ::= PLUS number(X).                  { A = X; }
plus_number(A) ::= number(A).
minus_number(A) ::= MINUS number(X).                { A = X; }
number(A) ::= INTEGER|FLOAT(A).

statement(A) ::= ATTACH database_opt expr(X) AS expr(Y) key_opt(K).
    { A = parse__attach(P, AST_STMT_ATTACH, X.expr, Y.expr, K); }
statement(A) ::= DETACH database_opt expr(X).       { A = parse__attach(P, AST_STMT_DETACH, NULL, X.expr, NULL); }
database_opt ::= .
database_opt ::= DATABASE.
%type key_opt {AstExpr *}
key_opt(A) ::= .                                    { A = NULL; }
key_opt(A) ::= KEY expr(X).                         { A = X.expr; }

statement(A) ::= REINDEX.                           { A = parse__object_statement(P, AST_STMT_REINDEX, TOKEN_NONE, TOKEN_NONE); }
statement(A) ::= REINDEX nm(X) dotted(Y).           { A = parse__object_statement(P, AST_STMT_REINDEX, X, Y); }
statement(A) ::= ANALYZE.                           { A = parse__object_statement(P, AST_STMT_ANALYZE, TOKEN_NONE, TOKEN_NONE); }
statement(A) ::= ANALYZE nm(X) dotted(Y).           { A = parse__object_statement(P, AST_STMT_ANALYZE, X, Y); }
statement(A) ::= VACUUM into_opt(X).                { A = parse__vacuum(P, TOKEN_NONE, X); }
statement(A) ::= VACUUM nm(N) into_opt(X).          { A = parse__vacuum(P, N, X); }
%type into_opt {AstExpr *}
into_opt(A) ::= .                                   { A = NULL; }
into_opt(A) ::= INTO expr(X).                       { A = X.expr; }

/* Only the driver makes these: a keyword that needs more than one token of lookahead. */
%token ADD ALL ALTER AS AUTOINCR CASE CHECK COMMIT CONSTRAINT CREATE DEFAULT DEFERRABLE DELETE
    DISTINCT DROP ELSE EXCEPT EXISTS EXPLAIN_ANALYZE FILTER FOREIGN FROM GROUP HAVING INDEX INDEXED
    INSERT INTERSECT INTO JOIN JOIN_KW LIMIT LONE_EXPR NOTHING NULL STRING_LP ORDER OVER PRIMARY REFERENCES
    RETURNING SELECT SET SET_START TABLE THEN TO TRANSACTION UNION UNIQUE UPDATE USING VALUES WHEN WHERE
    WINDOW ILLEGAL.

%code {
/* WINDOW is a keyword only before "name AS"; OVER only behind ")" and before "(" or a name; FILTER
   only behind ")" and before "(".  EXPLAIN ANALYZE is ours only before the start of a statement, and
   SET begins a statement of ours only before TRANSACTION or two names. */
static u16
driver_soft_keyword(Parser *P, Token token, u16 before)
{
    if (token.code == TK_SET && before != NOTHING_FED && before != TK_SEMI) return TK_SET;
    if (token.code == TK_ANALYZE && before != TK_EXPLAIN) return TK_ANALYZE;
    Token next;
    lex__next(P->text, P->end, token_end(token), &next);
    switch (token.code) {
    case TK_SET:
        if (next.code == TK_TRANSACTION) return TK_SET_START;
        if (next.code != TK_ID) return TK_SET;
        lex__next(P->text, P->end, token_end(next), &next);
        return next.code == TK_ID ? TK_SET_START : TK_SET;
    case TK_WINDOW:
        if (!parse__can_name(next.code)) return TK_ID;
        lex__next(P->text, P->end, token_end(next), &next);
        return next.code == TK_AS ? TK_WINDOW : TK_ID;
    case TK_OVER:
        return before == TK_RP && (next.code == TK_LP || parse__can_name(next.code)) ? TK_OVER : TK_ID;
    case TK_FILTER:
        return before == TK_RP && next.code == TK_LP ? TK_FILTER : TK_ID;
    default:
        ASSERT(token.code == TK_ANALYZE);
        switch (next.code) {
        case TK_SELECT: case TK_VALUES: case TK_WITH: case TK_INSERT: case TK_REPLACE:
        case TK_UPDATE: case TK_DELETE:
            return TK_EXPLAIN_ANALYZE;
        default:
            return TK_ANALYZE;
        }
    }
}

bool
parse__can_name(u16 code)
{
    return code == TK_ID || code == TK_STRING || code == TK_JOIN_KW || code == TK_WINDOW ||
           code == TK_OVER || (code < COUNT_OF(yyFallback) && yyFallback[code] == TK_ID);
}

/* The code of a token that the lexer marked: an end, a soft keyword or no token at all.
   NOTHING_FED: stop. */
static NOINLINE u32
driver_special(Parser *P, u32 before)
{
    Token token = P->current;
    if (token.code == TK_ILLEGAL) {
        parse__fail(P, token.offset, "unrecognized token: \"%.*s\"", (int)token.bytes,
                    (const char *)P->text + token.offset);
        return NOTHING_FED;
    }
    if (token.code != 0) return driver_soft_keyword(P, token, (u16)before);
    if (before == NOTHING_FED) return NOTHING_FED; /* Nothing but blanks. */
    return before == TK_SEMI ? 0 : TK_SEMI;        /* The end acts as a semicolon first. */
}

/* The first token of a lone expression; apart, so that the loop has the engine inlined once. */
static NOINLINE bool
engine_feed_apart(Engine *engine, Parser *P, u32 code)
{
    return engine_feed(engine, P, code);
}

void
parse__drive(Parser *P, bool lone_expr)
{
    Engine engine;
    u32 before = NOTHING_FED;
    u32 offset = 0;
    const u32 offset_max = (u32)P->text_bytes_max;
    engine_init(&engine, P->parser_depth_max);
    if (lone_expr) {
        before = TK_LONE_EXPR;
        if (!engine_feed_apart(&engine, P, before)) engine_out_of_memory(P);
    }
    lex__next(P->text, P->end, offset, &P->current);
    P->begin = P->current.offset;
    for (;;) {
        offset = token_end(P->current);
        u32 code = P->current.code;
        if (UNLIKELY(P->current.extra != 0)) {
            code = driver_special(P, before);
            if (code == NOTHING_FED) break;
        }
        if (UNLIKELY(before == TK_STRING) && code == TK_LP) code = TK_STRING_LP;
        if (UNLIKELY(offset > offset_max)) {
            parse__fail_code(P, ERR_TOOBIG, "string or blob too big");
            break;
        }
        if (UNLIKELY(!engine_feed(&engine, P, code))) engine_out_of_memory(P);
        if (UNLIKELY(engine.top >= engine.deepest)) {
            parse__fail_code(P, ERR_SQL, "Recursion limit");
        }
        if (P->err != OK || P->done || code == 0) break;
        P->previous_end = offset;
        before = code;
        lex__next(P->text, P->end, offset, &P->current);
    }
    P->consumed = offset;
    engine_free(&engine);
}
}
