/*
 * build_select.c -- SELECT: result columns, FROM, arms of compounds, WITH.
 */
#include "sql/parse/build.h"
#include "sql/parse/grammar.h"

/* ---- Result columns ---- */

AstResults
parse__result(Parser *P, AstResults list, Operand item, u32 text_end, Token alias)
{
    if (item.expr == NULL) return list;
    AstResult *result = LIST_ADD(P, &list);
    if (result == NULL) return list;
    result->kind = AST_RESULT_EXPR;
    result->expr = item.expr;
    result->alias = parse__name(P, alias);
    result->text = parse__trimmed(P, item.outer.offset, text_end);
    return list;
}

AstResults
parse__star(Parser *P, AstResults list, const Token *table, Token star)
{
    AstResult *result = LIST_ADD(P, &list);
    if (result == NULL) return list;
    result->kind = AST_RESULT_STAR;
    result->text = token_span(star);
    if (table != NULL) {
        result->kind = AST_RESULT_TABLE_STAR;
        result->table = parse__name(P, *table);
        result->text = span_between(table->offset, token_end(star));
    }
    return list;
}

AstResults *
parse__returning(Parser *P, AstResults list)
{
    if (P->trigger != NULL) parse__fail(P, -1, "cannot use RETURNING in a trigger");
    AstResults *kept = NODE_NEW(P, AstResults);
    if (kept != NULL) *kept = list;
    return kept;
}

/* ---- FROM ---- */

typedef struct JoinWord {
    const char *word;
    u8 bits;
} JoinWord;

static const JoinWord join_words[] = {
    {"natural", AST_JOIN_NATURAL},
    {"left", AST_JOIN_LEFT | AST_JOIN_OUTER},
    {"outer", AST_JOIN_OUTER},
    {"right", AST_JOIN_RIGHT | AST_JOIN_OUTER},
    {"full", AST_JOIN_LEFT | AST_JOIN_RIGHT | AST_JOIN_OUTER},
    {"inner", AST_JOIN_INNER},
    {"cross", AST_JOIN_INNER | AST_JOIN_CROSS},
};

static u8
join_word_bits(const Parser *P, const Token *token)
{
    Slice word = SLICE(P->text + token->offset, token->bytes);
    for (size_t i = 0; i < COUNT_OF(join_words); i++) {
        Slice known = SLICE(join_words[i].word, strlen(join_words[i].word));
        if (slice_equal_nocase(word, known)) return join_words[i].bits;
    }
    return 0;
}

/* The words before JOIN; they may stand in any order. */
int
parse__join_type(Parser *P, const Token *first, const Token *second, const Token *third)
{
    const Token *tokens[3] = {first, second, third};
    const u8 sides = AST_JOIN_LEFT | AST_JOIN_RIGHT | AST_JOIN_OUTER;
    u8 bits = 0;
    bool known = true;
    u32 count = 0;
    for (; count < 3 && tokens[count] != NULL; count++) {
        u8 word = join_word_bits(P, tokens[count]);
        if (word == 0) known = false;
        bits |= word;
    }
    bool inner_outer = (bits & AST_JOIN_INNER) != 0 && (bits & AST_JOIN_OUTER) != 0;
    if (!known || inner_outer || (bits & sides) == AST_JOIN_OUTER) {
        const char *text = (const char *)P->text;
        const Token none = TOKEN_NONE;
        const Token *b = count > 1 ? second : &none;
        const Token *c = count > 2 ? third : &none;
        parse__fail(P, first->offset, "unknown join type: %.*s%s%.*s%s%.*s", (int)first->bytes,
                    text + first->offset, count > 1 ? " " : "", (int)b->bytes, text + b->offset,
                    count > 2 ? " " : "", (int)c->bytes, text + c->offset);
        return AST_JOIN_INNER;
    }
    if ((bits & AST_JOIN_CROSS) != 0) bits &= (u8)~AST_JOIN_INNER;
    if ((bits & (sides | AST_JOIN_CROSS)) == 0) bits |= AST_JOIN_INNER;
    return bits;
}

/* The next item joins so.  The operator waits in a place behind the counted ones. */
AstFrom *
parse__join(Parser *P, AstFrom *from, int join)
{
    if (from == NULL) return NULL;
    AstFromItem *next = LIST_ADD(P, from);
    if (next == NULL) return NULL;
    next->join = (u8)join;
    from->count--;
    return from;
}

/* A new last item.  Its join was left by parse__join(). */
static AstFromItem *
from_add(Parser *P, AstFrom **from, u32 offset, Token alias, OnUsing on_using)
{
    bool first = *from == NULL;
    if (first) *from = NODE_NEW(P, AstFrom);
    if (*from == NULL) return NULL;
    if ((*from)->count >= PARSE_FROM_MAX) {
        parse__fail(P, -1, "too many FROM clause terms, max: %u", PARSE_FROM_MAX);
        return NULL;
    }
    AstFromItem *item = LIST_ADD(P, *from);
    if (item == NULL) return NULL;
    item->span = span_between(offset, P->previous_end);
    item->alias = parse__name(P, alias);
    item->on = on_using.on;
    if (first && (on_using.on != NULL || on_using.columns != NULL)) {
        parse__fail(P, -1, "a JOIN clause is required before %s",
                    on_using.on != NULL ? "ON" : "USING");
    }
    if (on_using.columns != NULL) {
        item->has_using = true;
        item->using_columns = *on_using.columns;
    }
    return item;
}

AstFrom *
parse__from_table(Parser *P, AstFrom *from, Token first, Token second, Token alias, Token hint,
                  OnUsing on_using)
{
    AstFromItem *item = from_add(P, &from, first.offset, alias, on_using);
    if (item == NULL) return from;
    item->kind = AST_FROM_TABLE;
    parse__assign_names(P, &item->schema, &item->name, first, second);
    item->not_indexed = hint.code == TK_NOT;
    if (!item->not_indexed) item->indexed_by = parse__name(P, hint);
    return from;
}

AstFrom *
parse__from_function(Parser *P, AstFrom *from, Token first, Token second, AstExprs args,
                     Token alias, OnUsing on_using)
{
    AstFromItem *item = from_add(P, &from, first.offset, alias, on_using);
    if (item == NULL) return from;
    item->kind = AST_FROM_FUNCTION;
    item->args = args;
    parse__assign_names(P, &item->schema, &item->name, first, second);
    return from;
}

AstFrom *
parse__from_select(Parser *P, AstFrom *from, Token open, SelectDraft *select, Token alias,
                   OnUsing on_using)
{
    AstFromItem *item = from_add(P, &from, open.offset, alias, on_using);
    if (item == NULL) return from;
    item->kind = AST_FROM_SUBQUERY;
    item->select = select == NULL ? NULL : &select->select;
    return from;
}

/*
 * (a JOIN b) in front of everything, without alias and condition, is the list itself.  Parentheses
 * around a single item give it the alias written outside, and none if there is none: in
 * `x, (t AS y)` nothing is known as y.
 */
AstFrom *
parse__from_nested(Parser *P, AstFrom *from, Token open, AstFrom *nested, Token alias,
                   OnUsing on_using)
{
    if (nested == NULL || nested->count == 0) return from;
    bool bare = alias.bytes == 0 && on_using.on == NULL && on_using.columns == NULL;
    if (from == NULL && bare) return nested;
    AstFromItem *item = from_add(P, &from, open.offset, alias, on_using);
    if (item == NULL) return from;
    if (nested->count > 1) {
        item->kind = AST_FROM_JOIN;
        item->nested = nested;
        return from;
    }
    AstFromItem outer = *item;
    *item = nested->items[0];
    item->join = outer.join;
    item->alias = outer.alias;
    item->on = outer.on;
    item->has_using = outer.has_using;
    item->using_columns = outer.using_columns;
    item->span = outer.span;
    return from;
}

/* ---- Arms ---- */

static SelectDraft *
draft_new(Parser *P, u32 offset, AstArm **arm_out)
{
    *arm_out = NULL;
    SelectDraft *draft = NODE_NEW(P, SelectDraft);
    if (draft == NULL) return NULL;
    /* Room for one arm only: a compound is the rarer case. */
    AstArm *arm = NODE_NEW(P, AstArm);
    if (arm == NULL) return NULL;
    draft->select.arms = arm;
    draft->select.count = draft->select.capacity = 1;
    arm->span = span_between(offset, P->previous_end);
    draft->select.span = arm->span;
    *arm_out = arm;
    return draft;
}

static u32
tallest(u32 height, const AstExpr *expr)
{
    return expr != NULL && expr->height > height ? expr->height : height;
}

static u32
tallest_of(u32 height, AstExprs list)
{
    for (u32 i = 0; i < list.count; i++)
        height = tallest(height, list.items[i]);
    return height;
}

SelectDraft *
parse__select(Parser *P, Token word, int distinct, AstResults results, AstFrom *from,
              AstExpr *where, AstExprs group_by, AstExpr *having)
{
    AstArm *arm;
    SelectDraft *draft = draft_new(P, word.offset, &arm);
    if (draft == NULL) return NULL;
    arm->distinct = distinct == TK_DISTINCT;
    arm->all = distinct == TK_ALL;
    arm->results = results;
    arm->from = from;
    arm->where = where;
    arm->group_by = group_by;
    arm->having = having;
    u32 height = tallest_of(tallest(tallest(0, where), having), group_by);
    for (u32 i = 0; i < results.count; i++)
        height = tallest(height, results.items[i].expr);
    draft->select.height = height;
    return draft;
}

void
parse__select_windows(SelectDraft *draft, WindowList windows)
{
    if (draft == NULL) return;
    draft->select.arms[0].windows = windows.items;
    draft->select.arms[0].window_count = windows.count;
}

void
parse__select_tail(Parser *P, SelectDraft *draft, AstOrderTerms order_by, Limit limit)
{
    (void)P;
    if (draft == NULL) return;
    AstSelect *select = &draft->select;
    select->order_by = order_by;
    select->limit = limit.limit;
    select->offset = limit.offset;
    u32 height = tallest(tallest(select->height, limit.limit), limit.offset);
    for (u32 i = 0; i < order_by.count; i++)
        height = tallest(height, order_by.items[i].expr);
    select->height = height;
}

SelectDraft *
parse__values(Parser *P, Token word, AstExprs row)
{
    AstArm *arm;
    SelectDraft *draft = draft_new(P, word.offset, &arm);
    if (draft == NULL) return NULL;
    arm->is_values = true;
    draft->ends_with_values = true;
    return parse__values_more(P, draft, row);
}

SelectDraft *
parse__values_more(Parser *P, SelectDraft *draft, AstExprs row)
{
    if (draft == NULL) return NULL;
    AstArm *arm = &draft->select.arms[0];
    AstExprs *item = LIST_ADD(P, &arm->values);
    if (item == NULL) return draft;
    *item = row;
    if (row.count != arm->values.items[0].count) {
        parse__fail(P, -1, "all VALUES must have the same number of terms");
    }
    draft->select.height = tallest_of(draft->select.height, row);
    /* The closing parenthesis is the token just fed; the span ends behind it. */
    arm->span = span_between(arm->span.offset, P->previous_end);
    draft->select.span = arm->span;
    return draft;
}

static AstSetOp
set_op_of(u16 code)
{
    switch (code) {
    case TK_UNION: return AST_SET_UNION;
    case TK_ALL: return AST_SET_UNION_ALL;
    case TK_EXCEPT: return AST_SET_EXCEPT;
    default: return AST_SET_INTERSECT;
    }
}

SelectDraft *
parse__compound(Parser *P, SelectDraft *left, Token op, SelectDraft *right)
{
    if (left == NULL || right == NULL) return NULL;
    AstSelect *select = &left->select;
    AstArm *arm = parse__list_add(P, (void **)&select->arms, &select->count, &select->capacity,
                                  sizeof(*select->arms));
    if (arm == NULL) return NULL;
    *arm = right->select.arms[0];
    arm->op = set_op_of(op.code);
    arm->op_span = token_span(op);
    /* What the arms so far ended with belongs behind the last arm: an error, told at the end. */
    if (select->order_by.count != 0 || select->limit != NULL) {
        left->misplaced_before = arm->op;
        left->misplaced_order = select->order_by.count != 0;
    }
    select->order_by = right->select.order_by;
    select->limit = right->select.limit;
    select->offset = right->select.offset;
    select->height = MAX_OF(select->height, right->select.height);
    left->ends_with_values = right->ends_with_values;
    return left;
}

static const char *
set_op_name(AstSetOp op)
{
    switch (op) {
    case AST_SET_UNION_ALL: return "UNION ALL";
    case AST_SET_INTERSECT: return "INTERSECT";
    case AST_SET_EXCEPT: return "EXCEPT";
    default: return "UNION";
    }
}

SelectDraft *
parse__select_end(Parser *P, SelectDraft *draft, AstWith *with, u32 offset, bool recursive)
{
    if (draft == NULL) return NULL;
    AstSelect *select = &draft->select;
    select->with = recursive ? parse__recursive(with) : with;
    if (with == NULL) offset = select->arms[0].span.offset;
    select->span = span_between(offset, P->previous_end);
    if (draft->misplaced_before != AST_SET_NONE) {
        parse__fail(P, -1, "%s clause should come after %s not before",
                    draft->misplaced_order ? "ORDER BY" : "LIMIT",
                    set_op_name(draft->misplaced_before));
    }
    if (select->count > P->compound_max && !draft->ends_with_values) {
        parse__fail(P, -1, "too many terms in compound SELECT");
    }
    return draft;
}

/* ---- WITH ---- */

AstWith *
parse__cte(Parser *P, AstWith *with, Token name, AstNames columns, int materialize,
           SelectDraft *select, Token close)
{
    if (with == NULL) with = NODE_NEW(P, AstWith);
    if (with == NULL || select == NULL) return with;
    AstName cte_name = parse__name(P, name);
    for (u32 i = 0; i < with->count; i++) {
        if (with->items[i].name.hash == cte_name.hash &&
            slice_equal_nocase(with->items[i].name.text, cte_name.text)) {
            parse__fail(P, -1, "duplicate WITH table name: %.*s", (int)cte_name.text.bytes,
                        (const char *)cte_name.text.p);
        }
    }
    AstCte *cte = LIST_ADD(P, with);
    if (cte == NULL) return with;
    cte->name = cte_name;
    cte->columns = columns;
    cte->materialize = (AstMaterialize)materialize;
    cte->select = &select->select;
    cte->span = span_between(name.offset, token_end(close));
    return with;
}

AstWith *
parse__recursive(AstWith *with)
{
    if (with != NULL) with->recursive = true;
    return with;
}
