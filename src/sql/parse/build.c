/*
 * build.c -- what all builders use: nodes, lists, names, parameters.
 */
#include "sql/parse/build.h"

#include "sql/parse/ast_hash.h"

/* Room for the first items: small ones come in numbers. */
#define LIST_BYTES_FIRST 160u

void *
parse__node(Parser *P, size_t bytes)
{
    void *node = arena_alloc(P->arena, bytes);
    if (UNLIKELY(node == NULL)) parse__out_of_memory(P);
    return node;
}

void *
parse__list_add(Parser *P, void **items, u32 *count, u32 *capacity, size_t item_bytes)
{
    if (UNLIKELY(*count == *capacity)) {
        u32 more = *capacity * 2;
        if (more == 0) more = MIN_OF(4, MAX_OF(1, LIST_BYTES_FIRST / (u32)item_bytes));
        u8 *grown = parse__node(P, more * item_bytes);
        if (grown == NULL) return NULL;
        if (*count != 0) memcpy(grown, *items, *count * item_bytes);
        *items = grown;
        *capacity = more;
    }
    return (u8 *)*items + item_bytes * (*count)++;
}

static bool
is_blank(u8 byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

Span
parse__trimmed(const Parser *P, u32 offset, u32 end)
{
    while (offset < end && is_blank(P->text[offset]))
        offset++;
    return parse__trimmed_end(P, offset, end);
}

Span
parse__trimmed_end(const Parser *P, u32 offset, u32 end)
{
    while (offset < end && is_blank(P->text[end - 1]))
        end--;
    return span_between(offset, end);
}

/* ---- Names ---- */

static u8
quote_of(u8 first)
{
    switch (first) {
    case '"': return AST_QUOTE_DOUBLE;
    case '[': return AST_QUOTE_BRACKET;
    case '`': return AST_QUOTE_BACKTICK;
    case '\'': return AST_QUOTE_STRING;
    default: return AST_QUOTE_NONE;
    }
}

void
parse__name_quoted(Parser *P, Token token, AstName *name_out)
{
    *name_out = (AstName){0};
    if (token.bytes == 0) return;
    AstName name = {
        .text = SLICE(P->text + token.offset, token.bytes),
        .span = token_span(token),
        .hash = token.hash,
        .quote = quote_of(P->text[token.offset]),
    };
    if (name.quote == AST_QUOTE_NONE) {
        name.keyword = token.code != TK_ID;
    } else {
        name.text = sql_dequote(P->arena, name.text);
        if (name.text.p == NULL) {
            parse__out_of_memory(P);
            return;
        }
        name.hash = ast_name_hash(name.text);
    }
    *name_out = name;
}

AstName
parse__name(Parser *P, Token token)
{
    AstName name;
    parse__name_into(P, token, &name);
    return name;
}

void
parse__assign_names(Parser *P, AstName *schema_out, AstName *name_out, Token first, Token second)
{
    if (second.bytes != 0) {
        parse__name_into(P, first, schema_out);
        parse__name_into(P, second, name_out);
    } else {
        parse__name_into(P, first, name_out);
    }
}

AstObject *
parse__object(Parser *P, Token first, Token second)
{
    AstObject *object = NODE_NEW(P, AstObject);
    if (object == NULL) return NULL;
    parse__assign_names(P, &object->schema, &object->name, first, second);
    return object;
}

AstNames
parse__names(Parser *P, AstNames list, Token name)
{
    AstName *item = LIST_ADD(P, &list);
    if (item != NULL) parse__name_into(P, name, item);
    return list;
}

AstNames *
parse__keep_names(Parser *P, AstNames list)
{
    AstNames *kept = NODE_NEW(P, AstNames);
    if (kept != NULL) *kept = list;
    return kept;
}

AstExprs *
parse__keep_exprs(Parser *P, AstExprs list)
{
    AstExprs *kept = NODE_NEW(P, AstExprs);
    if (kept != NULL) *kept = list;
    return kept;
}

/* Old schemas may say `(a COLLATE x DESC)` where only names belong; nobody else may. */
AstNames
parse__plain_name(Parser *P, AstNames list, Token name, int collated, int sort)
{
    if ((collated != 0 || sort != AST_SORT_DEFAULT) && !P->stored) {
        parse__fail(P, -1, "syntax error after column name \"%.*s\"", (int)name.bytes,
                    (const char *)P->text + name.offset);
    }
    return parse__names(P, list, name);
}

/* ---- Parameters ---- */

static ParamSlot *
param_slot(const Params *params, Slice name)
{
    u32 mask = params->slots_size - 1;
    u32 at = (u32)hash_bytes(name.p, name.bytes, 0) & mask;
    while (params->slots[at].number != 0 && !slice_equal(params->slots[at].name, name))
        at = (at + 1) & mask;
    return &params->slots[at];
}

static bool
param_slots_grow(Parser *P)
{
    Params old = P->params;
    u32 size = old.slots_size == 0 ? 16 : old.slots_size * 2;
    ParamSlot *slots = parse__node(P, size * sizeof(*slots));
    if (slots == NULL) return false;
    P->params.slots = slots;
    P->params.slots_size = size;
    for (u32 i = 0; i < old.slots_size; i++) {
        if (old.slots[i].number != 0) *param_slot(&P->params, old.slots[i].name) = old.slots[i];
    }
    return true;
}

/* The number of a named parameter: that of its earlier use, or 0. */
static u32
param_known(const Params *params, Slice name)
{
    return params->slots_size == 0 ? 0 : param_slot(params, name)->number;
}

static void
param_remember(Parser *P, Slice name, u32 number)
{
    Params *params = &P->params;
    if (params->slots_used * 2 >= params->slots_size && !param_slots_grow(P)) return;
    ParamSlot *slot = param_slot(params, name);
    if (slot->number == 0) {
        *slot = (ParamSlot){name, number};
        params->slots_used++;
    }
    if (number > params->names_capacity) {
        u32 capacity = MAX_OF(number, params->names_capacity * 2);
        Slice *names = parse__node(P, capacity * sizeof(*names));
        if (names == NULL) return;
        if (params->names_capacity != 0) {
            memcpy(names, params->names, params->names_capacity * sizeof(*names));
        }
        params->names = names;
        params->names_capacity = capacity;
    }
    if (params->names[number - 1].p == NULL) params->names[number - 1] = name;
}

/* The number behind "?", or 0 if it is none that may be used. */
static u32
param_number(const Parser *P, Slice name)
{
    u64 number = 0;
    for (size_t i = 1; i < name.bytes; i++) {
        number = number * 10 + (u64)(name.p[i] - '0');
        if (number > P->param_number_max) return 0;
    }
    return (u32)number;
}

/*
 * "?" takes the next number after the highest so far; "?N" is N; a name keeps the number of its
 * first use, which is the next one.
 */
Operand
parse__param(Parser *P, Token token)
{
    Params *params = &P->params;
    Slice name = SLICE(P->text + token.offset, token.bytes);
    u32 number;
    if (name.bytes == 1) {
        number = ++params->count;
        name = SLICE_NONE;
    } else if (name.p[0] == '?') {
        number = param_number(P, name);
        if (number == 0) {
            parse__fail(P, token.offset, "variable number must be between ?1 and ?%u",
                        P->param_number_max);
            return (Operand){0};
        }
        if (number > params->count) params->count = number;
        param_remember(P, name, number);
    } else if (name.p[0] == '#' && name.p[1] >= '0' && name.p[1] <= '9') {
        parse__syntax_error(P, &token);
        return (Operand){0};
    } else {
        number = param_known(params, name);
        if (number == 0) {
            number = ++params->count;
            param_remember(P, name, number);
        }
    }
    if (number > P->param_number_max) {
        parse__fail(P, token.offset, "too many SQL variables");
        return (Operand){0};
    }
    AstExpr *expr = NODE_NEW(P, AstExpr);
    if (expr == NULL) return (Operand){0};
    *expr = (AstExpr){.kind = AST_EXPR_PARAM, .height = 1, .span = token_span(token)};
    expr->u.param.number = number;
    expr->u.param.name = name;
    return (Operand){expr, expr->span};
}
