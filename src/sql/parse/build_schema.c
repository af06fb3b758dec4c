/*
 * build_schema.c -- CREATE and ALTER.
 *
 * Columns and constraints are collected in the Parser while their rules run, and moved into the
 * statement at its end.
 */
#include "sql/parse/build.h"

/* ---- Columns and constraints ---- */

static AstConstraints *
constraints_here(Parser *P)
{
    if (P->in_table_constraints || P->columns.count == 0) return &P->constraints;
    return &P->columns.items[P->columns.count - 1].constraints;
}

/* The constraint that began with `word` and has just ended. */
static AstConstraint *
constraint_add(Parser *P, AstConstraintKind kind, Token word)
{
    AstConstraint *constraint = LIST_ADD(P, constraints_here(P));
    if (constraint == NULL) return NULL;
    constraint->kind = kind;
    constraint->span = span_between(word.offset, P->previous_end);
    constraint->name = parse__name(P, P->constraint_name);
    constraint->name_clause = P->constraint_clause;
    P->constraint_clause = (Span){0};
    if (!P->in_table_constraints && P->columns.count != 0) {
        AstColumnDef *column = &P->columns.items[P->columns.count - 1];
        column->span = span_between(column->span.offset, P->previous_end);
    }
    return constraint;
}

/* CONSTRAINT x in front of nothing is allowed; it must not be lost (ALTER edits text by spans). */
static void
flush_constraint_name(Parser *P)
{
    if (P->constraint_clause.bytes == 0) return;
    Span clause = P->constraint_clause;
    AstConstraint *constraint = LIST_ADD(P, constraints_here(P));
    if (constraint == NULL) return;
    constraint->kind = AST_CONSTRAINT_NAME_ONLY;
    constraint->name = parse__name(P, P->constraint_name);
    constraint->name_clause = clause;
    constraint->span = clause;
    P->constraint_clause = (Span){0};
}

/* `text` without its last `word` and the blanks before that, if it ends so. */
static bool
strip_word(Slice *text, Slice word)
{
    if (text->bytes < word.bytes) return false;
    size_t bytes = text->bytes - word.bytes;
    if (!slice_equal_nocase(SLICE(text->p + bytes, word.bytes), word)) return false;
    while (bytes > 0 && (text->p[bytes - 1] == ' ' ||
                         (text->p[bytes - 1] >= '\t' && text->p[bytes - 1] <= '\r')))
        bytes--;
    text->bytes = bytes;
    return true;
}

/*
 * In `a INT GENERATED ALWAYS AS (...)` the two words fall back to names and become part of the
 * type. Take them off again, as SQLite does; ALWAYS alone goes too.
 */
static Span
type_plain(Parser *P, Span type)
{
    P->generated_offset = 0;
    if (type.bytes < 16) return type;
    Slice text = SLICE(P->text + type.offset, type.bytes);
    if (!strip_word(&text, SLICE_LITERAL("always"))) return type;
    size_t before = text.bytes;
    if (strip_word(&text, SLICE_LITERAL("generated"))) {
        P->generated_offset = type.offset + (u32)before - 9;
    }
    return (Span){type.offset, (u32)text.bytes};
}

void
parse__column_begin(Parser *P, Token name, Span type)
{
    type = type_plain(P, type);
    flush_constraint_name(P);
    P->constraint_name = TOKEN_NONE;
    AstColumnDef *column = LIST_ADD(P, &P->columns);
    if (column == NULL) return;
    if (P->columns.count > P->columns_max) {
        Slice table = P->table != NULL ? P->table->name.text : SLICE_NONE;
        parse__fail(P, -1, "too many columns on %.*s", (int)table.bytes, (const char *)table.p);
    }
    column->name = parse__name(P, name);
    column->type = type;
    column->span = span_between(name.offset, P->previous_end);
}

void
parse__constraint_name(Parser *P, Token word, Token name)
{
    flush_constraint_name(P);
    P->constraint_name = name;
    P->constraint_clause = span_between(word.offset, token_end(name));
}

/* A comma ends the reign of a constraint name, and the column constraints. */
void
parse__constraint_comma(Parser *P)
{
    flush_constraint_name(P);
    P->constraint_name = TOKEN_NONE;
    P->in_table_constraints = true;
}

void
parse__plain_constraint(Parser *P, AstConstraintKind kind, Token word, int conflict)
{
    AstConstraint *constraint = constraint_add(P, kind, word);
    if (constraint != NULL) constraint->conflict = (AstConflict)conflict;
}

void
parse__column_key(Parser *P, Token word, int sort, int conflict, int autoincrement)
{
    AstConstraint *constraint = constraint_add(P, AST_CONSTRAINT_PRIMARY_KEY, word);
    if (constraint == NULL) return;
    constraint->sort = (u8)sort;
    constraint->conflict = (AstConflict)conflict;
    constraint->autoincrement = autoincrement != 0;
}

void
parse__table_key(Parser *P, AstConstraintKind kind, Token word, AstOrderTerms terms,
                 int autoincrement, int conflict)
{
    AstConstraint *constraint = constraint_add(P, kind, word);
    if (constraint == NULL) return;
    constraint->terms = terms;
    constraint->conflict = (AstConflict)conflict;
    constraint->autoincrement = autoincrement != 0;
}

void
parse__check(Parser *P, Token word, Token open, Operand expr, Token close, int conflict)
{
    AstConstraint *constraint = constraint_add(P, AST_CONSTRAINT_CHECK, word);
    if (constraint == NULL) return;
    constraint->expr = expr.expr;
    constraint->expr_text = parse__trimmed(P, token_end(open), close.offset);
    constraint->conflict = (AstConflict)conflict;
}

/* DEFAULT term, DEFAULT +term, DEFAULT -term: the text is the sign and the term. */
void
parse__default(Parser *P, Token word, Operand value, const Token *sign)
{
    if (value.expr == NULL) return;
    u32 offset = sign != NULL ? sign->offset : value.outer.offset;
    u32 end = span_end(value.outer);
    if (sign != NULL && sign->code == TK_MINUS) {
        value = parse__unary(P, AST_UNARY_NEGATE, *sign, value);
    }
    AstConstraint *constraint = constraint_add(P, AST_CONSTRAINT_DEFAULT, word);
    if (constraint == NULL) return;
    constraint->expr = value.expr;
    constraint->expr_text = span_between(offset, end);
    constraint->default_kind = AST_DEFAULT_TERM;
}

void
parse__default_parens(Parser *P, Token word, Token open, Operand value, Token close)
{
    AstConstraint *constraint = constraint_add(P, AST_CONSTRAINT_DEFAULT, word);
    if (constraint == NULL) return;
    constraint->expr = value.expr;
    constraint->expr_text = parse__trimmed(P, token_end(open), close.offset);
    constraint->default_kind = AST_DEFAULT_PARENS;
}

void
parse__default_word(Parser *P, Token word, Token value)
{
    AstConstraint *constraint = constraint_add(P, AST_CONSTRAINT_DEFAULT, word);
    if (constraint == NULL) return;
    constraint->expr = parse__column(P, value).expr;
    constraint->expr_text = token_span(value);
    constraint->default_kind = AST_DEFAULT_WORD;
}

void
parse__column_collate(Parser *P, Token word, Token name)
{
    AstConstraint *constraint = constraint_add(P, AST_CONSTRAINT_COLLATE, word);
    if (constraint != NULL) constraint->collation = parse__name(P, name);
}

void
parse__generated(Parser *P, Token open, Operand expr, Token close, const Token *word)
{
    P->generated = (GeneratedPart){
        .expr = expr.expr,
        .text = parse__trimmed(P, token_end(open), close.offset),
    };
    if (word == NULL) return;
    P->generated.word = parse__name(P, *word);
    Slice text = P->generated.word.text;
    P->generated.stored = slice_equal_nocase(text, SLICE_LITERAL("stored"));
    if (!P->generated.stored && !slice_equal_nocase(text, SLICE_LITERAL("virtual"))) {
        const AstColumnDefs *columns = &P->columns;
        Slice column = columns->count == 0 ? SLICE_NONE
                                           : columns->items[columns->count - 1].name.text;
        parse__fail(P, -1, "error in generated column \"%.*s\"", (int)column.bytes,
                    (const char *)column.p);
    }
}

void
parse__generated_end(Parser *P, Token word)
{
    AstConstraint *constraint = constraint_add(P, AST_CONSTRAINT_GENERATED, word);
    if (constraint == NULL) return;
    if (P->generated_offset != 0 && constraint == &constraints_here(P)->items[0]) {
        constraint->span = span_between(P->generated_offset, span_end(constraint->span));
    }
    constraint->expr = P->generated.expr;
    constraint->expr_text = P->generated.text;
    constraint->stored = P->generated.stored;
    constraint->generated_word = P->generated.word;
}

/* ---- Foreign keys ---- */

void
parse__foreign_begin(Parser *P)
{
    P->on_delete = P->on_update = AST_FK_NO_ACTION;
    P->foreign_match = TOKEN_NONE;
}

void
parse__references(Parser *P, Token word, const AstNames *columns, Token table,
                  AstNames parent_columns)
{
    AstConstraint *constraint = constraint_add(P, AST_CONSTRAINT_FOREIGN_KEY, word);
    AstForeignKey *key = NODE_NEW(P, AstForeignKey);
    if (constraint == NULL || key == NULL) return;
    if (columns != NULL) key->columns = *columns;
    key->table = parse__name(P, table);
    key->parent_columns = parent_columns;
    key->on_delete = P->on_delete;
    key->on_update = P->on_update;
    key->match = parse__name(P, P->foreign_match);
    constraint->foreign_key = key;
    P->last_foreign_key = key;
}

/* [NOT] DEFERRABLE belongs to the last foreign key, wherever that stands; without one it means
   nothing. */
void
parse__deferral(Parser *P, int deferral)
{
    AstForeignKey *key = P->last_foreign_key;
    if (key == NULL) return;
    key->deferrable = (deferral & 1) != 0;
    key->initially_deferred = (deferral & 2) != 0;
    AstConstraints *list = constraints_here(P);
    if (list->count != 0) {
        AstConstraint *last = &list->items[list->count - 1];
        if (last->foreign_key == key) {
            last->span = span_between(last->span.offset, P->previous_end);
        }
    }
}

/* ---- CREATE TABLE ---- */

/* Forget the parts of an earlier definition (there is none but after an error). */
static void
parts_reset(Parser *P)
{
    P->columns = (AstColumnDefs){0};
    P->constraints = (AstConstraints){0};
    P->in_table_constraints = false;
    P->last_foreign_key = NULL;
    P->constraint_name = TOKEN_NONE;
    P->constraint_clause = (Span){0};
}

AstCreateTable *
parse__create_table(Parser *P, int temp, int if_not_exists, Token first, Token second)
{
    parts_reset(P);
    AstCreateTable *table = NODE_NEW(P, AstCreateTable);
    if (table == NULL) return NULL;
    table->temp = temp != 0;
    table->if_not_exists = if_not_exists != 0;
    parse__assign_names(P, &table->schema, &table->name, first, second);
    P->table = table;
    return table;
}

int
parse__table_option(Parser *P, bool without, Token name)
{
    Slice text = SLICE(P->text + name.offset, name.bytes);
    P->table_options_written = true;
    if (without && slice_equal_nocase(text, SLICE_LITERAL("rowid"))) return TABLE_WITHOUT_ROWID;
    if (!without && slice_equal_nocase(text, SLICE_LITERAL("strict"))) return TABLE_STRICT;
    parse__fail(P, -1, "unknown table option: %.*s", (int)name.bytes, (const char *)text.p);
    return 0;
}

void
parse__table_body(Parser *P, Token open, Token close, int options)
{
    AstCreateTable *table = P->table;
    if (table == NULL) return;
    flush_constraint_name(P);
    table->columns = P->columns;
    table->constraints = P->constraints;
    table->without_rowid = (options & TABLE_WITHOUT_ROWID) != 0;
    table->strict = (options & TABLE_STRICT) != 0;
    /* Behind options SQLite keeps what stands before the next token, comments too. */
    u32 end = P->table_options_written ? P->current.offset : token_end(close);
    table->stored = span_between(table->name.span.offset, end);
    table->args = span_between(open.offset, P->previous_end);
}

void
parse__table_as(Parser *P, Token word, SelectDraft *select)
{
    AstCreateTable *table = P->table;
    if (table == NULL || select == NULL) return;
    table->as_select = &select->select;
    table->stored = span_between(table->name.span.offset, P->previous_end);
    table->args = span_between(word.offset, P->previous_end);
}

AstStatement *
parse__create_table_end(Parser *P, AstCreateTable *table)
{
    return parse__statement(P, AST_STMT_CREATE_TABLE, table);
}

/* ---- Views and indexes ---- */

AstStatement *
parse__create_view(Parser *P, int temp, int if_not_exists, Token first, Token second,
                   AstNames columns, SelectDraft *select)
{
    AstCreateView *view = NODE_NEW(P, AstCreateView);
    if (view == NULL || select == NULL) return NULL;
    if (P->params.count != 0) parse__fail(P, -1, "parameters are not allowed in views");
    view->temp = temp != 0;
    view->if_not_exists = if_not_exists != 0;
    parse__assign_names(P, &view->schema, &view->name, first, second);
    view->columns = columns;
    view->select = &select->select;
    view->stored = parse__trimmed(P, view->name.span.offset, P->current.offset);
    return parse__statement(P, AST_STMT_CREATE_VIEW, view);
}

AstStatement *
parse__create_index(Parser *P, int unique, int if_not_exists, Token first, Token second,
                    Token table, AstOrderTerms terms, AstExpr *where)
{
    AstCreateIndex *index = NODE_NEW(P, AstCreateIndex);
    if (index == NULL) return NULL;
    index->unique = unique != 0;
    index->if_not_exists = if_not_exists != 0;
    parse__assign_names(P, &index->schema, &index->name, first, second);
    index->table = parse__name(P, table);
    index->terms = terms;
    index->where = where;
    index->stored = span_between(index->name.span.offset, P->current.offset);
    return parse__statement(P, AST_STMT_CREATE_INDEX, index);
}

/* ---- Triggers ---- */

AstNames
parse__trigger_event(Parser *P, AstTriggerEvent event, const AstNames *columns)
{
    P->trigger_event = event;
    return columns != NULL ? *columns : (AstNames){0};
}

AstCreateTrigger *
parse__create_trigger(Parser *P, int temp, int if_not_exists, Token first, Token second, int time,
                      AstNames columns, AstObject *table, int for_each_row, AstExpr *when)
{
    AstCreateTrigger *trigger = NODE_NEW(P, AstCreateTrigger);
    if (trigger == NULL || table == NULL) return NULL;
    trigger->temp = temp != 0;
    trigger->if_not_exists = if_not_exists != 0;
    trigger->for_each_row = for_each_row != 0;
    trigger->time_written = time >= 0;
    trigger->time = time >= 0 ? (AstTriggerTime)time : AST_TRIGGER_BEFORE;
    trigger->event = P->trigger_event;
    parse__assign_names(P, &trigger->schema, &trigger->name, first, second);
    trigger->table_schema = table->schema;
    trigger->table = table->name;
    trigger->columns = columns;
    trigger->when = when;
    P->trigger = trigger;
    return trigger;
}

void
parse__trigger_step(Parser *P, AstStatement *step)
{
    AstCreateTrigger *trigger = P->trigger;
    if (trigger == NULL || step == NULL) return;
    AstStatement **at = parse__list_add(P, (void **)&trigger->steps, &trigger->count,
                                        &trigger->capacity, sizeof(*trigger->steps));
    if (at != NULL) *at = step;
}

void
parse__trigger_hint(Parser *P, const char *what)
{
    parse__fail(
        P, -1, "the %s clause is not allowed on UPDATE or DELETE statements within triggers", what);
}

AstStatement *
parse__create_trigger_end(Parser *P, AstCreateTrigger *trigger, Token end)
{
    P->trigger = NULL;
    if (trigger == NULL) return NULL;
    trigger->stored = span_between(trigger->name.span.offset, token_end(end));
    return parse__statement(P, AST_STMT_CREATE_TRIGGER, trigger);
}

/* ---- Virtual tables ---- */

AstCreateVirtual *
parse__create_virtual(Parser *P, int if_not_exists, Token first, Token second, Token module)
{
    AstCreateVirtual *table = NODE_NEW(P, AstCreateVirtual);
    if (table == NULL) return NULL;
    table->if_not_exists = if_not_exists != 0;
    parse__assign_names(P, &table->schema, &table->name, first, second);
    table->module = parse__name(P, module);
    table->stored = span_between(table->name.span.offset, token_end(module));
    P->virtual_args = (VirtualArgs){0};
    return table;
}

/* An argument begins; it is empty until a token comes. */
void
parse__virtual_arg(Parser *P)
{
    Span *arg = LIST_ADD(P, &P->virtual_args);
    if (arg != NULL) *arg = (Span){P->current.offset, 0};
}

void
parse__virtual_token(Parser *P, Token token)
{
    if (P->virtual_args.count == 0) return;
    Span *arg = &P->virtual_args.items[P->virtual_args.count - 1];
    if (arg->bytes == 0) arg->offset = token.offset;
    *arg = span_between(arg->offset, token_end(token));
}

AstStatement *
parse__create_virtual_end(Parser *P, AstCreateVirtual *table, const Token *close)
{
    if (table == NULL) return NULL;
    if (close != NULL) {
        table->stored = span_between(table->name.span.offset, token_end(*close));
        table->args = P->virtual_args.items;
        table->count = P->virtual_args.count;
        table->capacity = P->virtual_args.capacity;
        /* `USING m()` has no argument rather than an empty one. */
        if (table->count == 1 && table->args[0].bytes == 0) table->count = 0;
    }
    return parse__statement(P, AST_STMT_CREATE_VIRTUAL, table);
}

/* ---- ALTER TABLE ---- */

AstAlter *
parse__alter(Parser *P, AstObject *table)
{
    parts_reset(P);
    AstAlter *alter = NODE_NEW(P, AstAlter);
    if (alter == NULL || table == NULL) return NULL;
    alter->schema = table->schema;
    alter->table = table->name;
    return alter;
}

AstStatement *
parse__alter_rename(Parser *P, AstAlter *alter, const Token *column, Token new_name)
{
    if (alter == NULL) return NULL;
    alter->kind = column != NULL ? AST_ALTER_RENAME_COLUMN : AST_ALTER_RENAME_TABLE;
    if (column != NULL) alter->column = parse__name(P, *column);
    alter->new_name = parse__name(P, new_name);
    return parse__statement(P, AST_STMT_ALTER, alter);
}

AstStatement *
parse__alter_column(Parser *P, AstAlter *alter, AstAlterKind kind, Token column, int conflict,
                    Token clause)
{
    if (alter == NULL) return NULL;
    alter->kind = kind;
    alter->column = parse__name(P, column);
    alter->conflict = (AstConflict)conflict;
    if (clause.bytes != 0) alter->clause = span_between(clause.offset, P->previous_end);
    return parse__statement(P, AST_STMT_ALTER, alter);
}

AstStatement *
parse__alter_drop_constraint(Parser *P, AstAlter *alter, Token name)
{
    if (alter == NULL) return NULL;
    alter->kind = AST_ALTER_DROP_CONSTRAINT;
    alter->constraint_name = parse__name(P, name);
    return parse__statement(P, AST_STMT_ALTER, alter);
}

AstStatement *
parse__alter_add_end(Parser *P, AstAlter *alter)
{
    flush_constraint_name(P);
    if (alter == NULL || P->columns.count == 0) return NULL;
    alter->kind = AST_ALTER_ADD_COLUMN;
    alter->definition = &P->columns.items[0];
    alter->clause = span_between(alter->definition->span.offset, P->previous_end);
    return parse__statement(P, AST_STMT_ALTER, alter);
}

AstStatement *
parse__alter_check(Parser *P, AstAlter *alter)
{
    if (alter == NULL || P->constraints.count == 0) return NULL;
    alter->kind = AST_ALTER_ADD_CHECK;
    alter->constraint = &P->constraints.items[0];
    alter->constraint_name = alter->constraint->name;
    bool named = alter->constraint->name_clause.bytes != 0;
    u32 offset = named ? alter->constraint->name_clause.offset : alter->constraint->span.offset;
    alter->clause = span_between(offset, P->previous_end);
    return parse__statement(P, AST_STMT_ALTER, alter);
}
