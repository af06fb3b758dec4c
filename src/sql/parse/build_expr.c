/*
 * build_expr.c -- nodes of expressions and windows.
 *
 * Every node that has operands goes through expr_new(), which measures its height; so no tree can
 * come out of here that is deeper than the limit.
 */
#include "sql/parse/build.h"

static void
check_height(Parser *P, u32 height)
{
    if (UNLIKELY(height > P->expr_depth_max)) {
        parse__fail(P, -1, "Expression tree is too large (maximum depth %u)", P->expr_depth_max);
    }
}

/* A node over operands of at most `height_below`. */
static AstExpr *
expr_new(Parser *P, AstExprKind kind, Span span, u32 height_below)
{
    AstExpr *expr = NODE_NEW(P, AstExpr);
    if (expr == NULL) return NULL;
    expr->kind = (u8)kind;
    expr->height = height_below + 1;
    expr->span = span;
    check_height(P, expr->height);
    return expr;
}

static ALWAYS_INLINE AstExpr *
leaf_new(Parser *P, AstExprKind kind, Token token)
{
    AstExpr *expr = NODE_NEW(P, AstExpr);
    if (expr == NULL) return NULL;
    expr->kind = (u8)kind;
    expr->height = 1;
    expr->span = token_span(token);
    return expr;
}

static Operand
operand_of(AstExpr *expr)
{
    return expr == NULL ? (Operand){0} : (Operand){expr, expr->span};
}

static u32
height_of(const AstExpr *expr)
{
    return expr == NULL ? 0 : expr->height;
}

static u32
height_of_list(AstExprs list)
{
    u32 height = 0;
    for (u32 i = 0; i < list.count; i++)
        height = MAX_OF(height, list.items[i]->height);
    return height;
}

static u32
height_of_terms(AstOrderTerms terms)
{
    u32 height = 0;
    for (u32 i = 0; i < terms.count; i++)
        height = MAX_OF(height, terms.items[i].expr->height);
    return height;
}

static u32
height_of_select(const SelectDraft *draft)
{
    return draft == NULL ? 0 : draft->select.height;
}

/* ---- Leaves ---- */

Operand
parse__parens(Token open, Operand inner, Token close)
{
    if (inner.expr != NULL) inner.expr->flags |= AST_FLAG_PARENS;
    inner.outer = span_between(open.offset, token_end(close));
    return inner;
}

/* x'..' to bytes; the lexer has checked the digits. */
static Slice
blob_bytes(Parser *P, Token token)
{
    const u8 *hex = P->text + token.offset + 2;
    size_t bytes = (token.bytes - 3) / 2;
    u8 *p = arena_bytes(P->arena, bytes + 1);
    if (p == NULL) {
        parse__out_of_memory(P);
        return SLICE_NONE;
    }
    for (size_t i = 0; i < bytes * 2; i++) {
        u8 digit = (u8)((hex[i] & 15) + (hex[i] >= 'A' ? 9 : 0));
        p[i / 2] = (u8)(i % 2 == 0 ? digit << 4 : p[i / 2] | digit);
    }
    p[bytes] = 0;
    return SLICE(p, bytes);
}

static bool
is_hex_literal(Slice text)
{
    return text.bytes > 2 && text.p[0] == '0' && (text.p[1] | 0x20) == 'x';
}

static bool
is_digit(u8 byte, bool hex)
{
    return (byte >= '0' && byte <= '9') || (hex && (byte | 0x20) >= 'a' && (byte | 0x20) <= 'f');
}

/* Take the separators out of 1_000.  Each must stand between two digits. */
static Slice
number_plain(Parser *P, Token token)
{
    Slice text = SLICE(P->text + token.offset, token.bytes);
    bool hex = is_hex_literal(text);
    u8 *p = arena_bytes(P->arena, text.bytes + 1);
    if (p == NULL) {
        parse__out_of_memory(P);
        return SLICE_NONE;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.p[i] != '_') {
            p[bytes++] = text.p[i];
        } else if (i == 0 || i + 1 == text.bytes || !is_digit(text.p[i - 1], hex) ||
                   !is_digit(text.p[i + 1], hex)) {
            parse__fail(P, -1, "unrecognized token: \"%.*s\"", (int)text.bytes,
                        (const char *)text.p);
            return SLICE_NONE;
        }
    }
    p[bytes] = 0;
    return SLICE(p, bytes);
}

static void
literal_number(Parser *P, AstExpr *expr, Token token, int code)
{
    Slice text = SLICE(P->text + token.offset, token.bytes);
    if (code == TK_QNUMBER) text = number_plain(P, token);
    expr->kind = code == TK_FLOAT ? AST_EXPR_REAL : AST_EXPR_INTEGER;
    if (is_hex_literal(text)) {
        expr->kind = AST_EXPR_HEX;
        text = SLICE(text.p + 2, text.bytes - 2);
    } else if (code == TK_QNUMBER) {
        for (size_t i = 0; i < text.bytes; i++) {
            if (!is_digit(text.p[i], false)) expr->kind = AST_EXPR_REAL;
        }
    }
    expr->u.literal = text;
}

Operand
parse__literal(Parser *P, Token token, int code)
{
    AstExpr *expr = leaf_new(P, AST_EXPR_NULL, token);
    if (expr == NULL) return (Operand){0};
    switch (code) {
    case TK_NULL: break;
    case TK_STRING:
        expr->kind = AST_EXPR_STRING;
        expr->u.literal = sql_dequote(P->arena, SLICE(P->text + token.offset, token.bytes));
        if (expr->u.literal.p == NULL) parse__out_of_memory(P);
        break;
    case TK_BLOB:
        expr->kind = AST_EXPR_BLOB;
        expr->u.literal = blob_bytes(P, token);
        break;
    case TK_CTIME_KW:
        expr->kind = AST_EXPR_CURRENT;
        expr->op = token.bytes == 17                           ? AST_CURRENT_TIMESTAMP
                   : (P->text[token.offset + 8] | 0x20) == 'd' ? AST_CURRENT_DATE
                                                               : AST_CURRENT_TIME;
        break;
    default: literal_number(P, expr, token, code);
    }
    return operand_of(expr);
}

Operand
parse__column(Parser *P, Token name)
{
    if (name.code == TK_STRING) return parse__literal(P, name, TK_STRING);
    AstExpr *expr = leaf_new(P, AST_EXPR_COLUMN, name);
    if (expr == NULL) return (Operand){0};
    parse__name_into(P, name, &expr->u.column.name);
    return (Operand){expr, expr->span};
}

Operand
parse__qualified(Parser *P, const Token *schema, Token table, Token name)
{
    u32 offset = schema != NULL ? schema->offset : table.offset;
    /* SQLite counts one level a dot. */
    AstExpr *expr = expr_new(P, AST_EXPR_COLUMN, span_between(offset, token_end(name)),
                             schema != NULL ? 2 : 1);
    AstQualifier *qualifier = NODE_NEW(P, AstQualifier);
    if (expr == NULL || qualifier == NULL) return (Operand){0};
    if (schema != NULL) parse__name_into(P, *schema, &qualifier->schema);
    parse__name_into(P, table, &qualifier->table);
    expr->u.column.qualifier = qualifier;
    parse__name_into(P, name, &expr->u.column.name);
    return operand_of(expr);
}

/* ---- Operators ---- */

Operand
parse__unary(Parser *P, AstUnary op, Token token, Operand operand)
{
    AstExpr *below = operand.expr;
    if (below == NULL) return (Operand){0};
    Span span = span_between(token.offset, span_end(operand.outer));
    /* A sign before a plus takes its place, as in SQLite: a row of pluses is no deep tree. */
    if ((op == AST_UNARY_PLUS || op == AST_UNARY_NEGATE) && below->kind == AST_EXPR_UNARY &&
        below->op == AST_UNARY_PLUS) {
        below->op = (u8)op;
        below->flags &= (u16)~AST_FLAG_PARENS;
        below->span = span;
        below->u.unary.op = token_span(token);
        return operand_of(below);
    }
    AstExpr *expr = expr_new(P, AST_EXPR_UNARY, span, below->height);
    if (expr == NULL) return (Operand){0};
    expr->op = (u8)op;
    expr->u.unary.operand = below;
    expr->u.unary.op = token_span(token);
    return operand_of(expr);
}

Operand
parse__null_test(Parser *P, bool is_null, Operand operand, Token first, Token last)
{
    if (operand.expr == NULL) return (Operand){0};
    AstExpr *expr = expr_new(P, AST_EXPR_UNARY, span_between(operand.outer.offset, token_end(last)),
                             operand.expr->height);
    if (expr == NULL) return (Operand){0};
    expr->op = is_null ? AST_UNARY_ISNULL : AST_UNARY_NOTNULL;
    expr->u.unary.operand = operand.expr;
    expr->u.unary.op = span_between(first.offset, token_end(last));
    return operand_of(expr);
}

static Operand
binary_new(Parser *P, AstBinary op, Operand left, Token token, Operand right)
{
    if (left.expr == NULL || right.expr == NULL) return (Operand){0};
    AstExpr *expr = expr_new(P, AST_EXPR_BINARY,
                             span_between(left.outer.offset, span_end(right.outer)),
                             MAX_OF(left.expr->height, right.expr->height));
    if (expr == NULL) return (Operand){0};
    expr->op = (u8)op;
    expr->u.binary.left = left.expr;
    expr->u.binary.right = right.expr;
    expr->u.binary.op = token_span(token);
    return operand_of(expr);
}

static AstBinary
binary_of(int code, Token token)
{
    switch (code) {
    case TK_EQ: return AST_BINARY_EQ;
    case TK_NE: return AST_BINARY_NE;
    case TK_LT: return AST_BINARY_LT;
    case TK_LE: return AST_BINARY_LE;
    case TK_GT: return AST_BINARY_GT;
    case TK_GE: return AST_BINARY_GE;
    case TK_PLUS: return AST_BINARY_ADD;
    case TK_MINUS: return AST_BINARY_SUB;
    case TK_STAR: return AST_BINARY_MUL;
    case TK_SLASH: return AST_BINARY_DIV;
    case TK_REM: return AST_BINARY_REM;
    case TK_BITAND: return AST_BINARY_BITAND;
    case TK_BITOR: return AST_BINARY_BITOR;
    case TK_LSHIFT: return AST_BINARY_SHIFT_LEFT;
    case TK_RSHIFT: return AST_BINARY_SHIFT_RIGHT;
    case TK_CONCAT: return AST_BINARY_CONCAT;
    case TK_PTR: return token.bytes == 3 ? AST_BINARY_ARROW_TEXT : AST_BINARY_ARROW;
    default: UNREACHABLE();
    }
}

Operand
parse__binary(Parser *P, int code, Operand left, Token token, Operand right)
{
    return binary_new(P, binary_of(code, token), left, token, right);
}

Operand
parse__is(Parser *P, Operand left, Token token, bool negated, bool distinct, Operand right)
{
    Operand is = binary_new(P, negated ? AST_BINARY_IS_NOT : AST_BINARY_IS, left, token, right);
    if (is.expr == NULL) return is;
    if (distinct) is.expr->flags |= AST_FLAG_DISTINCT;
    return is;
}

/*
 * AND and OR.  A left operand of the same kind grows by the right one instead of becoming a level;
 * its height grows as if it had.
 */
Operand
parse__chain(Parser *P, AstExprKind kind, Operand left, Token token, Operand right)
{
    (void)token;
    if (left.expr == NULL || right.expr == NULL) return (Operand){0};
    AstExpr *expr = left.expr;
    Span span = span_between(left.outer.offset, span_end(right.outer));
    if (expr->kind != kind || (expr->flags & AST_FLAG_PARENS) != 0) {
        expr = expr_new(P, kind, span, MAX_OF(left.expr->height, right.expr->height));
        if (expr == NULL) return (Operand){0};
        expr->u.list = parse__exprs(P, (AstExprs){0}, left);
    } else {
        expr->height = MAX_OF(expr->height, right.expr->height) + 1;
        expr->span = span;
        check_height(P, expr->height);
    }
    expr->u.list = parse__exprs(P, expr->u.list, right);
    return operand_of(expr);
}

Operand
parse__collate(Parser *P, Operand operand, Token name)
{
    if (operand.expr == NULL) return (Operand){0};
    AstExpr *expr = expr_new(P, AST_EXPR_COLLATE,
                             span_between(operand.outer.offset, token_end(name)),
                             operand.expr->height);
    AstName *collation = NODE_NEW(P, AstName);
    if (expr == NULL || collation == NULL) return (Operand){0};
    *collation = parse__name(P, name);
    expr->u.collate.operand = operand.expr;
    expr->u.collate.name = collation;
    return operand_of(expr);
}

Operand
parse__cast(Parser *P, Token word, Operand operand, Span type, Token close)
{
    AstExpr *expr = expr_new(P, AST_EXPR_CAST, span_between(word.offset, token_end(close)),
                             height_of(operand.expr));
    if (expr == NULL) return (Operand){0};
    expr->u.cast.operand = operand.expr;
    expr->u.cast.type = type;
    expr->u.cast.type_text = SLICE(P->text + type.offset, type.bytes);
    return operand_of(expr);
}

/* NOT BETWEEN, NOT LIKE and NOT IN are one node here and two levels in SQLite. */
static u32
negated_height(u32 height, bool negated)
{
    return negated ? height + 1 : height;
}

Operand
parse__between(Parser *P, Operand operand, int negated, Operand low, Operand high)
{
    if (operand.expr == NULL || low.expr == NULL || high.expr == NULL) return (Operand){0};
    u32 below = MAX_OF(MAX_OF(low.expr->height, high.expr->height), operand.expr->height);
    AstExpr *expr = expr_new(P, AST_EXPR_BETWEEN,
                             span_between(operand.outer.offset, span_end(high.outer)),
                             negated_height(below, negated != 0));
    if (expr == NULL) return (Operand){0};
    if (negated != 0) expr->flags |= AST_FLAG_NOT;
    expr->u.between.operand = operand.expr;
    expr->u.between.low = low.expr;
    expr->u.between.high = high.expr;
    return operand_of(expr);
}

static AstLikeKind
like_kind(u8 first)
{
    switch (first | 0x20) {
    case 'l': return AST_LIKE;
    case 'g': return AST_GLOB;
    case 'r': return AST_REGEXP;
    default: return AST_MATCH;
    }
}

Operand
parse__like(Parser *P, Operand operand, Token op, Operand pattern, const Operand *escape)
{
    if (operand.expr == NULL || pattern.expr == NULL) return (Operand){0};
    AstExpr *escape_expr = escape != NULL ? escape->expr : NULL;
    bool negated = op.extra != 0;
    u32 below = MAX_OF(MAX_OF(operand.expr->height, pattern.expr->height), height_of(escape_expr));
    u32 end = span_end(escape != NULL ? escape->outer : pattern.outer);
    AstExpr *expr = expr_new(P, AST_EXPR_LIKE, span_between(operand.outer.offset, end),
                             negated_height(below, negated));
    AstLike *like = NODE_NEW(P, AstLike);
    if (expr == NULL || like == NULL) return (Operand){0};
    if (negated) expr->flags |= AST_FLAG_NOT;
    *like = (AstLike){
        .operand = operand.expr,
        .pattern = pattern.expr,
        .escape = escape_expr,
        .op = parse__name(P, op),
        .kind = like_kind(P->text[op.offset]),
    };
    expr->u.like = like;
    return operand_of(expr);
}

/* ---- IN, subqueries, rows ---- */

static AstIn *
in_new(Parser *P, Operand operand, int negated, u32 height_right, u32 end, Operand *out)
{
    *out = (Operand){0};
    if (operand.expr == NULL) return NULL;
    u32 below = MAX_OF(operand.expr->height, height_right);
    AstExpr *expr = expr_new(P, AST_EXPR_IN, span_between(operand.outer.offset, end),
                             negated_height(below, negated != 0));
    AstIn *in = NODE_NEW(P, AstIn);
    if (expr == NULL || in == NULL) return NULL;
    if (negated != 0) expr->flags |= AST_FLAG_NOT;
    in->operand = operand.expr;
    expr->u.in = in;
    *out = operand_of(expr);
    return in;
}

Operand
parse__in_list(Parser *P, Operand operand, int negated, AstExprs list, Token close)
{
    Operand result;
    AstIn *in = in_new(P, operand, negated, height_of_list(list), token_end(close), &result);
    if (in == NULL) return result;
    /* x IN ((SELECT ...)) is x IN (SELECT ...). */
    if (list.count == 1 && list.items[0]->kind == AST_EXPR_SUBQUERY) {
        in->kind = AST_IN_SELECT;
        in->select = list.items[0]->u.select;
        return result;
    }
    in->kind = AST_IN_LIST;
    in->list = list;
    return result;
}

Operand
parse__in_select(Parser *P, Operand operand, int negated, SelectDraft *select, Token close)
{
    Operand result;
    AstIn *in = in_new(P, operand, negated, height_of_select(select), token_end(close), &result);
    if (in == NULL || select == NULL) return result;
    in->kind = AST_IN_SELECT;
    in->select = &select->select;
    return result;
}

Operand
parse__in_table(Parser *P, Operand operand, int negated, Token first, Token second, AstExprs *args)
{
    Operand result;
    u32 below = args == NULL ? 0 : height_of_list(*args);
    u32 end = args != NULL ? P->previous_end : token_end(second.bytes != 0 ? second : first);
    AstIn *in = in_new(P, operand, negated, below, end, &result);
    if (in == NULL) return result;
    in->kind = args != NULL ? AST_IN_FUNCTION : AST_IN_TABLE;
    if (args != NULL) in->list = *args;
    parse__assign_names(P, &in->schema, &in->table, first, second);
    return result;
}

Operand
parse__subquery(Parser *P, AstExprKind kind, Token first, SelectDraft *select, Token close)
{
    if (select == NULL) return (Operand){0};
    AstExpr *expr = expr_new(P, kind, span_between(first.offset, token_end(close)),
                             height_of_select(select));
    if (expr == NULL) return (Operand){0};
    expr->u.select = &select->select;
    return operand_of(expr);
}

Operand
parse__row(Parser *P, Token open, AstExprs list, Token close)
{
    AstExpr *expr = expr_new(P, AST_EXPR_ROW, span_between(open.offset, token_end(close)),
                             height_of_list(list));
    if (expr != NULL) expr->u.list = list;
    return operand_of(expr);
}

/* ---- CASE, functions, RAISE ---- */

AstCase *
parse__case_arm(Parser *P, AstCase *node, Operand when, Operand then)
{
    if (node == NULL) node = NODE_NEW(P, AstCase);
    if (node == NULL || when.expr == NULL || then.expr == NULL) return node;
    AstCaseArm *arm = parse__list_add(P, (void **)&node->arms, &node->count, &node->capacity,
                                      sizeof(*node->arms));
    if (arm != NULL) *arm = (AstCaseArm){when.expr, then.expr};
    return node;
}

Operand
parse__case(Parser *P, Token word, AstExpr *operand, AstCase *node, AstExpr *otherwise, Token end)
{
    if (node == NULL) return (Operand){0};
    u32 below = MAX_OF(height_of(operand), height_of(otherwise));
    for (u32 i = 0; i < node->count; i++) {
        below = MAX_OF(below, MAX_OF(node->arms[i].when->height, node->arms[i].then->height));
    }
    AstExpr *expr = expr_new(P, AST_EXPR_CASE, span_between(word.offset, token_end(end)), below);
    if (expr == NULL) return (Operand){0};
    node->operand = operand;
    node->otherwise = otherwise;
    expr->u.case_ = node;
    return operand_of(expr);
}

Call
parse__function(Parser *P, Token name, Token close, int kind, AstExprs args, AstOrderTerms order_by)
{
    if (args.count > P->function_args_max) {
        parse__fail(P, name.offset, "too many arguments on function %.*s", (int)name.bytes,
                    (const char *)P->text + name.offset);
    }
    AstFunction *function = NODE_NEW(P, AstFunction);
    if (function == NULL) return (Call){0};
    parse__name_into(P, name, &function->name);
    function->args = args;
    function->order_by = order_by;
    function->distinct = kind == TK_DISTINCT;
    function->all = kind == TK_ALL;
    function->star = kind == TK_STAR;
    return (Call){function, name.offset, token_end(close)};
}

static u32
height_of_window(const AstWindow *window)
{
    if (window == NULL) return 0;
    u32 height = MAX_OF(height_of_list(window->partition_by), height_of_terms(window->order_by));
    return MAX_OF(height, MAX_OF(height_of(window->start.offset), height_of(window->end.offset)));
}

Operand
parse__call(Parser *P, Call call, FilterOver tail)
{
    AstFunction *function = call.function;
    if (function == NULL) return (Operand){0};
    u32 below = MAX_OF(height_of_list(function->args), height_of_terms(function->order_by));
    u32 end = call.end;
    if (tail.filter != NULL || tail.over != NULL) {
        below = MAX_OF(below, MAX_OF(height_of(tail.filter), height_of_window(tail.over)));
        end = P->previous_end;
    }
    AstExpr *expr = expr_new(P, AST_EXPR_FUNCTION, span_between(call.offset, end), below);
    if (expr == NULL) return (Operand){0};
    function->filter = tail.filter;
    function->over = tail.over;
    expr->u.function = function;
    return operand_of(expr);
}

AstRaise
parse__raise_of(int conflict)
{
    switch (conflict) {
    case AST_CONFLICT_ROLLBACK: return AST_RAISE_ROLLBACK;
    case AST_CONFLICT_ABORT: return AST_RAISE_ABORT;
    default: return AST_RAISE_FAIL;
    }
}

Operand
parse__raise(Parser *P, Token word, AstRaise action, Operand message, Token close)
{
    AstExpr *expr = expr_new(P, AST_EXPR_RAISE, span_between(word.offset, token_end(close)),
                             height_of(message.expr));
    if (expr == NULL) return (Operand){0};
    expr->op = (u8)action;
    expr->u.unary.operand = message.expr;
    expr->u.unary.op = token_span(word);
    return operand_of(expr);
}

/* ---- Lists ---- */

AstExprs
parse__exprs(Parser *P, AstExprs list, Operand item)
{
    if (item.expr == NULL) return list;
    AstExpr **at = LIST_ADD(P, &list);
    if (at != NULL) *at = item.expr;
    return list;
}

AstOrderTerms
parse__order_term(Parser *P, AstOrderTerms list, Operand item, int mode)
{
    if (item.expr == NULL) return list;
    AstOrderTerm *term = LIST_ADD(P, &list);
    if (term != NULL) {
        *term = (AstOrderTerm){.expr = item.expr,
                               .span = span_between(item.outer.offset, P->previous_end),
                               .sort = (u8)(mode % 4),
                               .nulls = (u8)(mode / 4)};
    }
    return list;
}

AstOrderTerms
parse__key_terms(Parser *P, AstOrderTerms list)
{
    for (u32 i = 0; i < list.count && !P->stored; i++) {
        if (list.items[i].nulls == AST_NULLS_DEFAULT) continue;
        parse__fail(P, -1, "unsupported use of NULLS %s",
                    list.items[i].nulls == AST_NULLS_FIRST ? "FIRST" : "LAST");
        break;
    }
    return list;
}

/* ---- Windows ---- */

AstWindow *
parse__frame_default(Parser *P)
{
    AstWindow *window = NODE_NEW(P, AstWindow);
    if (window == NULL) return NULL;
    window->unit = AST_FRAME_RANGE;
    window->start.kind = AST_BOUND_UNBOUNDED_PRECEDING;
    window->end.kind = AST_BOUND_CURRENT_ROW;
    return window;
}

/* An end that can only lie before its start is refused, and so is an end without a start. */
AstWindow *
parse__frame(Parser *P, int unit, AstBound start, AstBound end, int exclude)
{
    bool backwards = (start.kind == AST_BOUND_CURRENT_ROW && end.kind == AST_BOUND_PRECEDING) ||
                     (start.kind == AST_BOUND_FOLLOWING &&
                      (end.kind == AST_BOUND_PRECEDING || end.kind == AST_BOUND_CURRENT_ROW));
    if (backwards) parse__fail(P, -1, "unsupported frame specification");
    AstWindow *window = NODE_NEW(P, AstWindow);
    if (window == NULL) return NULL;
    window->has_frame = true;
    window->unit = (AstFrameUnit)unit;
    window->start = start;
    window->end = end;
    window->exclude = (AstExclude)exclude;
    return window;
}

AstWindow *
parse__window(Parser *P, AstWindow *window, const Token *base, AstExprs partition_by,
              AstOrderTerms order_by)
{
    if (window == NULL) return NULL;
    if (base != NULL) window->base = parse__name(P, *base);
    window->partition_by = partition_by;
    window->order_by = order_by;
    return window;
}

AstWindow *
parse__window_named(Parser *P, AstWindow *window, Token name, Token close)
{
    if (window == NULL) return NULL;
    window->name = parse__name(P, name);
    window->span = span_between(name.offset, token_end(close));
    return window;
}

WindowList
parse__window_list(Parser *P, WindowList list, AstWindow *window)
{
    if (window == NULL) return list;
    AstWindow *item = LIST_ADD(P, &list);
    if (item != NULL) *item = *window;
    return list;
}

AstWindow *
parse__over(AstWindow *window, Token word, Token close)
{
    if (window == NULL) return NULL;
    window->span = span_between(word.offset, token_end(close));
    return window;
}

AstWindow *
parse__over_name(Parser *P, Token word, Token name)
{
    AstWindow *window = NODE_NEW(P, AstWindow);
    if (window == NULL) return NULL;
    window->only_name = true;
    window->base = parse__name(P, name);
    window->span = span_between(word.offset, token_end(name));
    return window;
}
