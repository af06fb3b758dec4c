/*
 * build_stmt.c -- statements that change data, transactions, pragmas and the small rest.
 */
#include "sql/parse/build.h"

void
parse__explain(Parser *P, AstExplain explain)
{
    P->explain = explain;
    P->begin = P->current.offset;
}

AstStatement *
parse__statement(Parser *P, AstStatementKind kind, void *payload)
{
    if (payload == NULL) return NULL;
    AstStatement *statement = NODE_NEW(P, AstStatement);
    if (statement == NULL) return NULL;
    statement->kind = kind;
    statement->text = SLICE(P->text, (size_t)(P->end - P->text));
    memcpy(&statement->u, &payload, sizeof(payload)); /* Every member of u is a pointer. */
    STATIC_ASSERT(sizeof(statement->u) == sizeof(payload));
    return statement;
}

/* Hand out the names of parameters as one array of param_count entries. */
static void
finish_params(Parser *P, AstStatement *statement)
{
    Params *params = &P->params;
    statement->param_count = params->count;
    if (params->names_capacity == 0) return;
    if (params->names_capacity < params->count) {
        Slice *names = parse__node(P, params->count * sizeof(*names));
        if (names == NULL) return;
        memcpy(names, params->names, params->names_capacity * sizeof(*names));
        params->names = names;
        params->names_capacity = params->count;
    }
    statement->param_names = params->names;
}

/* Runs when the statement is complete and the next token (its semicolon, unless there is an error
   to come) is known. */
void
parse__finish(Parser *P, AstStatement *statement)
{
    if (statement == NULL) return;
    statement->explain = P->explain;
    statement->span = span_between(P->begin, P->previous_end);
    finish_params(P, statement);
    P->statement = statement;
    P->done = true;
}

AstStatement *
parse__select_statement(Parser *P, SelectDraft *draft)
{
    if (draft == NULL) return NULL;
    AstStatement *statement = parse__statement(P, AST_STMT_SELECT, &draft->select);
    if (statement != NULL) {
        statement->span = parse__trimmed_end(P, draft->select.span.offset, P->current.offset);
    }
    return statement;
}

/* ---- INSERT, UPDATE, DELETE ---- */

AstTarget *
parse__target(Parser *P, Token schema, Token name, Token alias)
{
    AstTarget *target = NODE_NEW(P, AstTarget);
    if (target == NULL) return NULL;
    if (schema.bytes != 0 && P->trigger != NULL && !P->trigger->temp && !P->stored) {
        parse__fail(P, -1,
                    "qualified table names are not allowed on INSERT, UPDATE, and DELETE "
                    "statements within triggers");
    }
    target->schema = parse__name(P, schema);
    target->name = parse__name(P, name);
    target->alias = parse__name(P, alias);
    u32 offset = schema.bytes != 0 ? schema.offset : name.offset;
    target->span = span_between(offset, P->previous_end);
    return target;
}

static void
target_hint(Parser *P, AstTarget *target, Token hint)
{
    target->not_indexed = hint.code == TK_NOT;
    if (!target->not_indexed) target->indexed_by = parse__name(P, hint);
}

/* The statement's own text; only steps of triggers keep it, parse__finish() sets the others'. */
static AstStatement *
step_text(const Parser *P, AstStatement *statement, u32 offset)
{
    if (statement != NULL) statement->span = parse__trimmed_end(P, offset, P->current.offset);
    return statement;
}

/* They were collected from the last to the first. */
static AstUpserts
upserts_in_order(AstUpserts list)
{
    for (u32 i = 0; i < list.count / 2; i++) {
        AstUpsert first = list.items[i];
        list.items[i] = list.items[list.count - 1 - i];
        list.items[list.count - 1 - i] = first;
    }
    return list;
}

AstStatement *
parse__insert(Parser *P, AstWith *with, Token word, AstTarget *target, AstNames columns,
              SelectDraft *select, InsertTail tail)
{
    AstInsert *insert = NODE_NEW(P, AstInsert);
    if (insert == NULL || target == NULL) return NULL;
    insert->with = with;
    insert->conflict = (AstConflict)word.extra;
    insert->replace_word = word.code == TK_REPLACE;
    insert->target = *target;
    insert->columns = columns;
    insert->default_values = select == NULL;
    if (select != NULL) insert->select = &select->select;
    if (tail.upserts != NULL) insert->upserts = upserts_in_order(*tail.upserts);
    if (tail.returning != NULL) insert->returning = *tail.returning;
    return step_text(P, parse__statement(P, AST_STMT_INSERT, insert), word.offset);
}

AstStatement *
parse__update(Parser *P, AstWith *with, Token word, int conflict, AstTarget *target, Token hint,
              AstSets sets, AstFrom *from, WhereReturning tail)
{
    AstUpdate *update = NODE_NEW(P, AstUpdate);
    if (update == NULL || target == NULL) return NULL;
    if (sets.count > P->columns_max) parse__fail(P, -1, "too many columns in set list");
    update->with = with;
    update->conflict = (AstConflict)conflict;
    target_hint(P, target, hint);
    update->target = *target;
    update->sets = sets;
    update->from = from;
    update->where = tail.where;
    if (tail.rest != NULL) update->order = tail.rest->order;
    if (tail.rest != NULL && tail.rest->returning != NULL)
        update->returning = *tail.rest->returning;
    return step_text(P, parse__statement(P, AST_STMT_UPDATE, update), word.offset);
}

AstStatement *
parse__delete(Parser *P, AstWith *with, Token word, AstTarget *target, Token hint,
              WhereReturning tail)
{
    AstDelete *delete_ = NODE_NEW(P, AstDelete);
    if (delete_ == NULL || target == NULL) return NULL;
    delete_->with = with;
    target_hint(P, target, hint);
    delete_->target = *target;
    delete_->where = tail.where;
    if (tail.rest != NULL) delete_->order = tail.rest->order;
    if (tail.rest != NULL && tail.rest->returning != NULL)
        delete_->returning = *tail.rest->returning;
    return step_text(P, parse__statement(P, AST_STMT_DELETE, delete_), word.offset);
}

/* What follows WHERE; ORDER BY and LIMIT as those of a SELECT with one arm. */
static ChangeRest *
change_rest(Parser *P, WhereReturning *tail, bool order)
{
    if (tail->rest == NULL) tail->rest = NODE_NEW(P, ChangeRest);
    if (tail->rest == NULL || !order || tail->rest->order != NULL) return tail->rest;
    AstSelect *select = NODE_NEW(P, AstSelect);
    if (select != NULL) select->arms = NODE_NEW(P, AstArm);
    if (select == NULL || select->arms == NULL) return NULL;
    select->count = 1;
    tail->rest->order = select;
    return tail->rest;
}

WhereReturning
parse__change_limit(Parser *P, AstExpr *limit, AstExpr *offset)
{
    WhereReturning tail = {0};
    ChangeRest *rest = change_rest(P, &tail, true);
    if (rest == NULL) return tail;
    rest->order->limit = limit;
    rest->order->offset = offset;
    return tail;
}

WhereReturning
parse__change_order(Parser *P, WhereReturning tail, const AstOrderTerms *order_by)
{
    ChangeRest *rest = change_rest(P, &tail, true);
    if (rest != NULL) rest->order->order_by = *order_by;
    return tail;
}

WhereReturning
parse__change_returning(Parser *P, WhereReturning tail, AstResults *returning)
{
    ChangeRest *rest = change_rest(P, &tail, false);
    if (rest != NULL) rest->returning = returning;
    return tail;
}

AstSets
parse__set(Parser *P, AstSets list, Token name, Operand value)
{
    AstSet *set = LIST_ADD(P, &list);
    if (set == NULL) return list;
    set->columns = parse__names(P, (AstNames){0}, name);
    set->value = value.expr;
    set->span = span_between(name.offset, span_end(value.outer));
    return list;
}

AstSets
parse__set_row(Parser *P, AstSets list, Token open, AstNames columns, Operand value)
{
    if (value.expr == NULL) return list;
    const AstExpr *expr = value.expr;
    /* What a SELECT yields is counted by the binder. */
    u32 values = expr->kind == AST_EXPR_ROW ? expr->u.list.count : 1;
    if (expr->kind != AST_EXPR_SUBQUERY && columns.count != values) {
        parse__fail(P, -1, "%u columns assigned %u values", columns.count, values);
    }
    AstSet *set = LIST_ADD(P, &list);
    if (set == NULL) return list;
    set->columns = columns;
    set->is_row = true;
    set->value = value.expr;
    set->span = span_between(open.offset, span_end(value.outer));
    return list;
}

InsertTail
parse__upsert(Parser *P, InsertTail tail, Token word, AstOrderTerms target, AstExpr *target_where,
              bool do_update, AstSets sets, AstExpr *where)
{
    if (tail.upserts == NULL) tail.upserts = NODE_NEW(P, AstUpserts);
    if (tail.upserts == NULL) return tail;
    AstUpsert *upsert = LIST_ADD(P, tail.upserts);
    if (upsert == NULL) return tail;
    *upsert = (AstUpsert){
        .target = target,
        .target_where = target_where,
        .do_update = do_update,
        .sets = sets,
        .where = where,
        .span = token_span(word),
    };
    return tail;
}

/* ---- Transactions ---- */

AstStatement *
parse__begin(Parser *P, int mode, int isolation)
{
    AstTransaction *transaction = NODE_NEW(P, AstTransaction);
    if (transaction == NULL) return NULL;
    transaction->mode = (AstBeginMode)mode;
    transaction->isolation = (AstIsolation)isolation;
    return parse__statement(P, AST_STMT_BEGIN, transaction);
}

AstStatement *
parse__simple(Parser *P, AstStatementKind kind, const Token *name)
{
    AstTransaction *transaction = NODE_NEW(P, AstTransaction);
    if (transaction == NULL) return NULL;
    if (name != NULL) transaction->name = parse__name(P, *name);
    return parse__statement(P, kind, transaction);
}

AstStatement *
parse__set_isolation(Parser *P, AstStatementKind kind, int isolation)
{
    AstTransaction *transaction = NODE_NEW(P, AstTransaction);
    if (transaction == NULL) return NULL;
    transaction->isolation = (AstIsolation)isolation;
    return parse__statement(P, kind, transaction);
}

static bool
token_is(const Parser *P, const Token *token, const char *word)
{
    if (token == NULL) return word == NULL;
    if (word == NULL) return false;
    return slice_equal_nocase(SLICE(P->text + token->offset, token->bytes),
                              SLICE(word, strlen(word)));
}

typedef struct Level {
    const char *first, *second;
    AstIsolation isolation;
} Level;

static const Level levels[] = {
    {"read", "uncommitted", AST_ISOLATION_READ_UNCOMMITTED},
    {"read", "committed", AST_ISOLATION_READ_COMMITTED},
    {"repeatable", "read", AST_ISOLATION_REPEATABLE_READ},
    {"snapshot", NULL, AST_ISOLATION_SNAPSHOT},
    {"serializable", NULL, AST_ISOLATION_SERIALIZABLE},
};

int
parse__isolation(Parser *P, Token first, const Token *second)
{
    bool first_known = false;
    for (size_t i = 0; i < COUNT_OF(levels); i++) {
        if (!token_is(P, &first, levels[i].first)) continue;
        if (token_is(P, second, levels[i].second)) return (int)levels[i].isolation;
        first_known = true;
    }
    parse__syntax_error(P, first_known ? (second != NULL ? second : &P->current) : &first);
    return AST_ISOLATION_NONE;
}

void
parse__set_session(Parser *P, Token first, Token second)
{
    if (!token_is(P, &first, "session")) {
        parse__syntax_error(P, &first);
    } else if (!token_is(P, &second, "characteristics")) {
        parse__syntax_error(P, &second);
    }
}

/* ---- The rest ---- */

AstStatement *
parse__pragma(Parser *P, Token first, Token second, AstPragmaValue form, PragmaText value)
{
    AstPragma *pragma = NODE_NEW(P, AstPragma);
    if (pragma == NULL) return NULL;
    parse__assign_names(P, &pragma->schema, &pragma->name, first, second);
    pragma->form = form;
    if (form == AST_PRAGMA_NO_VALUE) return parse__statement(P, AST_STMT_PRAGMA, pragma);

    Slice text = SLICE(P->text + value.span.offset, value.span.bytes);
    pragma->is_number = value.number;
    pragma->negative = value.negative;
    pragma->value_span = value.span;
    if (value.negative) {
        u8 *p = arena_bytes(P->arena, text.bytes + 1);
        if (p == NULL) {
            parse__out_of_memory(P);
            return NULL;
        }
        p[0] = '-';
        memcpy(p + 1, text.p, text.bytes);
        pragma->value = SLICE(p, text.bytes + 1);
    } else {
        AstName name = parse__name(
            P, (Token){.offset = value.span.offset, .bytes = value.span.bytes, .code = value.code});
        pragma->value = name.text;
        pragma->quote = name.quote;
    }
    return parse__statement(P, AST_STMT_PRAGMA, pragma);
}

AstStatement *
parse__attach(Parser *P, AstStatementKind kind, AstExpr *file, AstExpr *name, AstExpr *key)
{
    AstAttach *attach = NODE_NEW(P, AstAttach);
    if (attach == NULL) return NULL;
    *attach = (AstAttach){file, name, key};
    return parse__statement(P, kind, attach);
}

AstStatement *
parse__object_statement(Parser *P, AstStatementKind kind, Token first, Token second)
{
    return parse__statement(P, kind, parse__object(P, first, second));
}

AstStatement *
parse__vacuum(Parser *P, Token schema, AstExpr *into)
{
    AstVacuum *vacuum = NODE_NEW(P, AstVacuum);
    if (vacuum == NULL) return NULL;
    vacuum->schema = parse__name(P, schema);
    vacuum->into = into;
    return parse__statement(P, AST_STMT_VACUUM, vacuum);
}

AstStatement *
parse__drop(Parser *P, AstStatementKind kind, int if_exists, AstObject *object)
{
    AstDrop *drop = NODE_NEW(P, AstDrop);
    if (drop == NULL || object == NULL) return NULL;
    drop->if_exists = if_exists != 0;
    drop->schema = object->schema;
    drop->name = object->name;
    return parse__statement(P, kind, drop);
}
