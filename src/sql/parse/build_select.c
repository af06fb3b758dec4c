/*
 * build_select.c -- SELECT: result columns, FROM, arms of compounds, WITH.
 */
#include "sql/parse/build.h"

/* ---- Result columns ---- */

AstResults
parse__result(Parser *P, AstResults list, Operand item, u32 text_end, Token alias)
{
    if (item.expr == NULL) return list;
    AstResult *result = LIST_ADD(P, &list);
    if (result == NULL) return list;
    result->kind = AST_RESULT_EXPR;
    result->expr = item.expr;
    if (alias.bytes != 0) parse__name_into(P, alias, &result->alias);
    result->text = parse__trimmed_end(P, item.outer.offset, text_end);
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

/* An item that may become a whole FROM: the list with room for one is beside it. */
typedef struct ItemDraft {
    AstFromItem item;
    AstFrom list;
} ItemDraft;

static AstFromItem *
item_new(Parser *P, AstFromKind kind, u32 offset)
{
    ItemDraft *draft = NODE_NEW(P, ItemDraft);
    if (draft == NULL) return NULL;
    draft->item.kind = kind;
    draft->item.span.offset = offset;
    return &draft->item;
}

AstFromItem *
parse__from_table(Parser *P, const Token *schema, Token name)
{
    AstFromItem *item = item_new(P, AST_FROM_TABLE, schema != NULL ? schema->offset : name.offset);
    if (item == NULL) return NULL;
    if (schema != NULL) parse__name_into(P, *schema, &item->schema);
    parse__name_into(P, name, &item->name);
    return item;
}

AstFromItem *
parse__from_function(AstFromItem *item, AstExprs args)
{
    if (item == NULL) return NULL;
    item->kind = AST_FROM_FUNCTION;
    item->args = args;
    return item;
}

AstFromItem *
parse__from_select(Parser *P, Token open, SelectDraft *select)
{
    if (select == NULL) return NULL;
    AstFromItem *item = item_new(P, AST_FROM_SUBQUERY, open.offset);
    if (item != NULL) item->select = &select->select;
    return item;
}

AstFromItem *
parse__from_nested(Parser *P, Token open, AstFrom *nested)
{
    if (nested == NULL) return NULL;
    AstFromItem *item = item_new(P, AST_FROM_JOIN, open.offset);
    if (item != NULL) item->nested = nested;
    return item;
}

AstFromItem *
parse__from_alias(Parser *P, AstFromItem *item, Token alias)
{
    if (item != NULL) parse__name_into(P, alias, &item->alias);
    return item;
}

AstFromItem *
parse__from_hint(Parser *P, AstFromItem *item, Token hint)
{
    if (item == NULL) return NULL;
    item->not_indexed = hint.code == TK_NOT;
    if (!item->not_indexed) item->indexed_by = parse__name(P, hint);
    return item;
}

static void
item_condition(Parser *P, AstFromItem *item, OnUsing on_using)
{
    item->span = span_between(item->span.offset, P->previous_end);
    item->on = on_using.on;
    if (on_using.columns == NULL) return;
    item->has_using = true;
    item->using_columns = *on_using.columns;
}

/* Parentheses around a single item give it the alias written outside, and none if there is none: in
   `x, (t AS y)` nothing is known as y. */
static void
item_unwrap(AstFromItem *item)
{
    if (item->kind != AST_FROM_JOIN || item->nested->count != 1) return;
    AstFromItem outer = *item;
    *item = item->nested->items[0];
    item->join = outer.join;
    item->alias = outer.alias;
    item->on = outer.on;
    item->has_using = outer.has_using;
    item->using_columns = outer.using_columns;
    item->span = outer.span;
}

/* The first item.  (a JOIN b) in front of everything, without alias and condition, is the list. */
AstFrom *
parse__from(Parser *P, AstFromItem *item, OnUsing on_using)
{
    if (item == NULL) return NULL;
    bool conditional = on_using.on != NULL || on_using.columns != NULL;
    if (conditional) {
        parse__fail(P, -1, "a JOIN clause is required before %s",
                    on_using.on != NULL ? "ON" : "USING");
    }
    if (item->kind == AST_FROM_JOIN && !ast_name_present(&item->alias) && !conditional) {
        return item->nested;
    }
    item_condition(P, item, on_using);
    item_unwrap(item);
    AstFrom *from = &CONTAINER_OF(item, ItemDraft, item)->list;
    *from = (AstFrom){item, 1, 1};
    return from;
}

AstFrom *
parse__from_join(Parser *P, AstFrom *from, int join, AstFromItem *item, OnUsing on_using)
{
    if (from == NULL || item == NULL) return from;
    if (from->count >= PARSE_FROM_MAX) {
        parse__fail(P, -1, "too many FROM clause terms, max: %u", PARSE_FROM_MAX);
        return from;
    }
    item_condition(P, item, on_using);
    item_unwrap(item);
    AstFromItem *place = LIST_ADD(P, from);
    if (place == NULL) return from;
    *place = *item;
    place->join = (u8)join;
    return from;
}

/* ---- Arms ---- */

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
parse__draft(Parser *P)
{
    SelectDraft *draft = NODE_NEW(P, SelectDraft);
    if (draft == NULL) return NULL;
    draft->select.arms = &draft->arm;
    draft->select.count = draft->select.capacity = 1;
    return draft;
}

SelectDraft *
parse__clause_from(SelectDraft *draft, AstFrom *from)
{
    if (draft != NULL) draft->arm.from = from;
    return draft;
}

SelectDraft *
parse__clause_where(SelectDraft *draft, Operand where)
{
    if (draft == NULL) return NULL;
    draft->arm.where = where.expr;
    draft->select.height = tallest(draft->select.height, where.expr);
    return draft;
}

SelectDraft *
parse__clause_group(SelectDraft *draft, AstExprs group_by)
{
    if (draft == NULL) return NULL;
    draft->arm.group_by = group_by;
    draft->select.height = tallest_of(draft->select.height, group_by);
    return draft;
}

SelectDraft *
parse__clause_having(SelectDraft *draft, Operand having)
{
    if (draft == NULL) return NULL;
    draft->arm.having = having.expr;
    draft->select.height = tallest(draft->select.height, having.expr);
    return draft;
}

SelectDraft *
parse__clause_windows(SelectDraft *draft, WindowList windows)
{
    if (draft == NULL) return NULL;
    draft->arm.windows = windows.items;
    draft->arm.window_count = windows.count;
    return draft;
}

SelectDraft *
parse__clause_order(SelectDraft *draft, AstOrderTerms order_by)
{
    if (draft == NULL) return NULL;
    draft->select.order_by = order_by;
    for (u32 i = 0; i < order_by.count; i++)
        draft->select.height = tallest(draft->select.height, order_by.items[i].expr);
    return draft;
}

SelectDraft *
parse__clause_limit(Parser *P, AstExpr *limit, AstExpr *offset)
{
    SelectDraft *draft = parse__draft(P);
    if (draft == NULL) return NULL;
    draft->select.limit = limit;
    draft->select.offset = offset;
    draft->select.height = tallest(tallest(0, limit), offset);
    return draft;
}

SelectDraft *
parse__select(Parser *P, SelectDraft *draft, Token word, int distinct, AstResults results)
{
    if (draft == NULL) return NULL;
    AstArm *arm = &draft->arm;
    arm->span = span_between(word.offset, P->previous_end);
    arm->distinct = distinct == TK_DISTINCT;
    arm->all = distinct == TK_ALL;
    arm->results = results;
    for (u32 i = 0; i < results.count; i++)
        draft->select.height = tallest(draft->select.height, results.items[i].expr);
    return draft;
}

SelectDraft *
parse__values(Parser *P, Token word, AstExprs row)
{
    SelectDraft *draft = parse__draft(P);
    if (draft == NULL) return NULL;
    draft->arm.span.offset = word.offset;
    draft->arm.is_values = true;
    draft->ends_with_values = true;
    return parse__values_more(P, draft, row);
}

SelectDraft *
parse__values_more(Parser *P, SelectDraft *draft, AstExprs row)
{
    if (draft == NULL) return NULL;
    AstArm *arm = &draft->arm;
    AstExprs *item = LIST_ADD(P, &arm->values);
    if (item == NULL) return draft;
    *item = row;
    draft->select.height = tallest_of(draft->select.height, row);
    /* The closing parenthesis was the token before. */
    arm->span = span_between(arm->span.offset, P->previous_end);
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
