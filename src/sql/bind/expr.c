/*
 * expr.c -- binding expressions: the walk, literals, operators, casts, subqueries.
 *
 * The walk recurses by the height of the expression, which the parser bounds; chains of binary
 * operators (a + b + c ...) are walked down their left side without recursion.
 */
#include "sql/bind/bind.h"

#include "rt/task.h"
#include "value/number.h"

static PlanExpr *
bind_integer(Binder *b, const AstExpr *ast, bool negative)
{
    u64 value = 0;
    Slice digits = ast->u.literal;
    bool fits = true;
    for (size_t i = 0; i < digits.bytes && fits; i++) {
        u64 digit = (u64)(digits.p[i] - '0');
        fits = value <= (U64_MAX - digit) / 10;
        value = value * 10 + digit;
    }
    u64 limit = (u64)I64_MAX + (negative ? 1 : 0);
    if (fits && value <= limit)
        return bind__const(b, cell_int(negative ? (i64)(0 - value) : (i64)value), ast->span);
    f64 real = number_real(digits);
    return bind__const(b, cell_real(negative ? -real : real), ast->span);
}

static PlanExpr *
bind_hex(Binder *b, const AstExpr *ast, bool negative)
{
    u64 value = 0;
    u32 used = 0;
    for (size_t i = 0; i < ast->u.literal.bytes; i++) {
        u8 c = ast->u.literal.p[i];
        u64 digit = (u64)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        if (used > 0 || digit > 0) used++;
        value = value << 4 | digit;
    }
    if (used > 16 || (negative && value == (u64)1 << 63)) {
        return bind__fail_at(b, ast->span, "hex literal too big: %s0x%.*s", negative ? "-" : "",
                             (int)ast->u.literal.bytes, ast->u.literal.p);
    }
    return bind__const(b, cell_int((i64)(negative ? 0 - value : value)), ast->span);
}

static PlanExpr *
bind_literal(Binder *b, const AstExpr *ast)
{
    switch (ast->kind) {
    case AST_EXPR_NULL: return bind__const(b, cell_null(), ast->span);
    case AST_EXPR_INTEGER: return bind_integer(b, ast, false);
    case AST_EXPR_HEX: return bind_hex(b, ast, false);
    case AST_EXPR_REAL: return bind__const(b, cell_real(number_real(ast->u.literal)), ast->span);
    case AST_EXPR_STRING: return bind__text_const(b, ast->u.literal, ast->span);
    default: break;
    }
    char *p = bind__keep_text(b, ast->u.literal);
    if (p == NULL) return NULL;
    return bind__const(b, cell_blob(p, ast->u.literal.bytes), ast->span);
}

static PlanExpr *
bind_param(Binder *b, const AstExpr *ast)
{
    for (const Scope *s = b->scope; s != NULL; s = s->outer) {
        if ((s->flags & SCOPE_SCHEMA) != 0)
            return bind__fail_at(b, ast->span, "parameters prohibited in %s", s->clause);
    }
    PlanExpr *e = bind__new(b, PX_PARAM, 0, ast->span);
    if (e == NULL) return NULL;
    e->u.number = ast->u.param.number;
    e->flags |= PX_FLAG_READS_PARAM;
    return e;
}

static PlanExpr *
bind_unary(Binder *b, const AstExpr *ast)
{
    const AstExpr *operand = ast->u.unary.operand;
    if (ast->op == AST_UNARY_NEGATE) {
        if (operand->kind == AST_EXPR_INTEGER) return bind_integer(b, operand, true);
        if (operand->kind == AST_EXPR_HEX) return bind_hex(b, operand, true);
        if (operand->kind == AST_EXPR_REAL)
            return bind__const(b, cell_real(-number_real(operand->u.literal)), ast->span);
    }
    PlanExpr *arg = bind__expr(b, operand);
    if (arg == NULL) return NULL;
    static const u8 ops[] = {[AST_UNARY_NEGATE] = PX_NEG,     [AST_UNARY_PLUS] = PX_PLUS,
                             [AST_UNARY_BITNOT] = PX_BIT_NOT, [AST_UNARY_NOT] = PX_NOT,
                             [AST_UNARY_ISNULL] = PX_IS_NULL, [AST_UNARY_NOTNULL] = PX_NOT_NULL};
    PlanExpr *e = bind__new(b, (PlanOp)ops[ast->op], 1, ast->span);
    if (e == NULL) return NULL;
    e->arg[0] = arg;
    bind__finish(e);
    if (e->op == PX_PLUS) e->collation = arg->collation;
    return e;
}

static const u8 binary_ops[] = {[AST_BINARY_EQ] = PX_EQ,           [AST_BINARY_NE] = PX_NE,
                                [AST_BINARY_LT] = PX_LT,           [AST_BINARY_LE] = PX_LE,
                                [AST_BINARY_GT] = PX_GT,           [AST_BINARY_GE] = PX_GE,
                                [AST_BINARY_IS] = PX_IS,           [AST_BINARY_IS_NOT] = PX_IS_NOT,
                                [AST_BINARY_ADD] = PX_ADD,         [AST_BINARY_SUB] = PX_SUB,
                                [AST_BINARY_MUL] = PX_MUL,         [AST_BINARY_DIV] = PX_DIV,
                                [AST_BINARY_REM] = PX_REM,         [AST_BINARY_BITAND] = PX_BIT_AND,
                                [AST_BINARY_BITOR] = PX_BIT_OR,    [AST_BINARY_SHIFT_LEFT] = PX_SHL,
                                [AST_BINARY_SHIFT_RIGHT] = PX_SHR, [AST_BINARY_CONCAT] = PX_CONCAT};

static bool
is_arithmetic(const AstExpr *ast)
{
    return ast->kind == AST_EXPR_BINARY && ast->op >= AST_BINARY_ADD &&
           ast->op <= AST_BINARY_CONCAT;
}

/* a + b + c ...: the left chain is bound from its inner end outwards. */
static PlanExpr *
bind_arithmetic(Binder *b, const AstExpr *ast)
{
    u32 count = 0;
    for (const AstExpr *at = ast; is_arithmetic(at); at = at->u.binary.left)
        count++;
    const AstExpr **chain = BIND_ARRAY(b, const AstExpr *, count);
    if (chain == NULL) return NULL;
    const AstExpr *inner = ast;
    for (u32 i = count; i-- > 0; inner = inner->u.binary.left)
        chain[i] = inner;
    PlanExpr *left = bind__expr(b, inner);
    for (u32 i = 0; i < count && left != NULL; i++) {
        PlanExpr *right = bind__expr(b, chain[i]->u.binary.right);
        PlanExpr *e = bind__new(b, (PlanOp)binary_ops[chain[i]->op], 2, chain[i]->span);
        if (right == NULL || e == NULL) return NULL;
        e->arg[0] = left;
        e->arg[1] = right;
        bind__finish(e);
        left = e;
    }
    return left;
}

static PlanExpr *
bind_arrow(Binder *b, const AstExpr *ast)
{
    ExprList args = {0};
    if (!bind__push(b, &args, bind__expr(b, ast->u.binary.left))) return NULL;
    if (!bind__push(b, &args, bind__expr(b, ast->u.binary.right))) return NULL;
    Slice name = ast->op == AST_BINARY_ARROW ? SLICE_LITERAL("->") : SLICE_LITERAL("->>");
    return bind__call(b, name, &args, ast->span);
}

static PlanExpr *
bind_binary(Binder *b, const AstExpr *ast)
{
    if (is_arithmetic(ast)) return bind_arithmetic(b, ast);
    if (ast->op == AST_BINARY_ARROW || ast->op == AST_BINARY_ARROW_TEXT) return bind_arrow(b, ast);
    return bind__comparison(b, ast);
}

/* A literal 0 decides an AND before anything else is looked at, as in SQLite; but ALTER TABLE asks
   what all names mean. */
static bool
decides_and(const Binder *b, const AstExpr *ast)
{
    if (b->ctx->notes != NULL) return false;
    return ast->kind == AST_EXPR_INTEGER && ast->u.literal.bytes == 1 && ast->u.literal.p[0] == '0';
}

static PlanExpr *
bind_list(Binder *b, const AstExpr *ast)
{
    bool is_and = ast->kind == AST_EXPR_AND;
    for (u32 i = 0; is_and && i < ast->u.list.count; i++) {
        if (decides_and(b, ast->u.list.items[i])) return bind__const(b, cell_int(0), ast->span);
    }
    PlanExpr *e = bind__new(b, is_and ? PX_AND : PX_OR, ast->u.list.count, ast->span);
    if (e == NULL) return NULL;
    for (u32 i = 0; i < ast->u.list.count; i++) {
        e->arg[i] = bind__expr(b, ast->u.list.items[i]);
        if (e->arg[i] == NULL) return NULL;
    }
    bind__finish(e);
    return e;
}

static bool
uses_own_collation(const PlanExpr *e)
{
    return (e->op >= PX_EQ && e->op <= PX_IS_NOT) || e->op == PX_IN_LIST || e->op == PX_FUNC ||
           e->op == PX_IN_SUB;
}

static PlanExpr *
bind_collate(Binder *b, const AstExpr *ast)
{
    PlanExpr *operand = bind__expr(b, ast->u.collate.operand);
    const Collation *collation = bind__find_collation(b, ast->u.collate.name);
    if (operand == NULL || collation == NULL) return NULL;
    PlanExpr *e = NULL;
    if (uses_own_collation(operand)) {
        e = bind__new(b, PX_PLUS, 1, ast->span);
        if (e == NULL) return NULL;
        e->arg[0] = operand;
        bind__finish(e);
    } else {
        e = BIND_NEW(b, PlanExpr);
        if (e == NULL) return NULL;
        *e = *operand;
    }
    e->collation = collation;
    e->flags |= PX_FLAG_COLLATE;
    return e;
}

static PlanExpr *
bind_cast(Binder *b, const AstExpr *ast)
{
    PlanExpr *arg = bind__expr(b, ast->u.cast.operand);
    PlanExpr *e = arg == NULL ? NULL : bind__new(b, PX_CAST, 1, ast->span);
    if (e == NULL) return NULL;
    e->arg[0] = arg;
    bind__finish(e);
    e->affinity = bind__type_affinity(span_slice(b->sql, ast->u.cast.type));
    e->collation = arg->collation;
    return e;
}

static PlanExpr *
bind_like(Binder *b, const AstExpr *ast)
{
    const AstLike *like = ast->u.like;
    ExprList args = {0};
    if (!bind__push(b, &args, bind__expr(b, like->pattern))) return NULL;
    if (!bind__push(b, &args, bind__expr(b, like->operand))) return NULL;
    if (like->escape != NULL && !bind__push(b, &args, bind__expr(b, like->escape))) return NULL;
    static const char *const names[] = {"like", "glob", "regexp", "match"};
    PlanExpr *e = bind__call(b, bind__text(names[like->kind]), &args, ast->span);
    if (e == NULL || (ast->flags & AST_FLAG_NOT) == 0) return e;
    PlanExpr *not = bind__new(b, PX_NOT, 1, ast->span);
    if (not == NULL) return NULL;
    not ->arg[0] = e;
    bind__finish(not );
    return not ;
}

static PlanExpr *
bind_exists(Binder *b, const AstExpr *ast)
{
    BoundSub *sub = bind__subquery(b, ast->u.select);
    PlanExpr *e = sub == NULL ? NULL : bind__new(b, PX_EXISTS, 0, ast->span);
    if (e == NULL) return NULL;
    e->u.sub = &sub->sub;
    e->klass = sub->query->klass;
    e->flags |= PX_FLAG_HAS_SUB;
    if (sub->query->outer_level != U32_MAX) e->flags |= PX_FLAG_READS_ROW;
    return e;
}

/* One expression for each column of a subquery used as a value. */
static bool
sub_columns(Binder *b, const AstExpr *ast, ExprList *out)
{
    BoundSub *sub = bind__subquery(b, ast->u.select);
    if (sub == NULL) return false;
    const Query *query = sub->query;
    for (u32 i = 0; i < query->column_count; i++) {
        PlanOp op = query->column_count == 1 ? PX_SCALAR : PX_SUB_COLUMN;
        PlanExpr *e = bind__new(b, op, 0, ast->span);
        if (e == NULL) return false;
        if (op == PX_SCALAR) {
            e->u.sub = &sub->sub;
        } else {
            e->u.sub_column.sub = &sub->sub;
            e->u.sub_column.column = i;
        }
        e->affinity = query->column[i].affinity;
        e->klass = query->klass;
        e->flags |= PX_FLAG_HAS_SUB;
        if (query->outer_level != U32_MAX) e->flags |= PX_FLAG_READS_ROW;
        if (!bind__push(b, out, e)) return false;
    }
    return true;
}

bool
bind__vector(Binder *b, const AstExpr *ast, ExprList *out)
{
    if (ast->kind == AST_EXPR_SUBQUERY) return sub_columns(b, ast, out);
    if (ast->kind != AST_EXPR_ROW) return bind__push(b, out, bind__expr(b, ast));
    for (u32 i = 0; i < ast->u.list.count; i++) {
        if (!bind__push(b, out, bind__expr(b, ast->u.list.items[i]))) return false;
    }
    return true;
}

static PlanExpr *
bind_scalar_sub(Binder *b, const AstExpr *ast)
{
    ExprList columns = {0};
    if (!sub_columns(b, ast, &columns)) return NULL;
    if (columns.count != 1) {
        return bind__fail_at(b, ast->span, "sub-select returns %u columns - expected 1",
                             columns.count);
    }
    return columns.items[0];
}

static PlanExpr *
bind_raise(Binder *b, const AstExpr *ast)
{
    bool in_trigger = false;
    for (const Scope *s = b->scope; s != NULL; s = s->outer)
        if (s->row_count > 0) in_trigger = true;
    if (!in_trigger || b->trigger_depth == 0)
        return bind__fail_at(b, ast->span, "RAISE() may only be used within a trigger-program");
    const AstExpr *message = ast->u.unary.operand;
    PlanExpr *e = bind__new(b, PX_RAISE, message == NULL ? 0 : 1, ast->span);
    if (e == NULL) return NULL;
    if (message != NULL) {
        e->arg[0] = bind__expr(b, message);
        if (e->arg[0] == NULL) return NULL;
    }
    bind__finish(e);
    static const u8 actions[] = {[AST_RAISE_IGNORE] = CONFLICT_IGNORE,
                                 [AST_RAISE_ROLLBACK] = CONFLICT_ROLLBACK,
                                 [AST_RAISE_ABORT] = CONFLICT_ABORT,
                                 [AST_RAISE_FAIL] = CONFLICT_FAIL};
    e->u.raise.action = actions[ast->op];
    e->klass = PLAN_VOLATILE;
    return e;
}

static PlanExpr *
bind_current(Binder *b, const AstExpr *ast)
{
    static const char *const names[] = {"current_date", "current_time", "current_timestamp"};
    ExprList none = {0};
    return bind__call(b, bind__text(names[ast->op]), &none, ast->span);
}

PlanExpr *
bind__expr(Binder *b, const AstExpr *ast)
{
    if (b->err != OK) return NULL;
    if (ast->height > 64 && rt_stack_left() < RT_STACK_RESERVE)
        return bind__fail(b, ERR_SQL, "Expression tree is too large (maximum depth 1000)");
    switch ((AstExprKind)ast->kind) {
    case AST_EXPR_NULL:
    case AST_EXPR_INTEGER:
    case AST_EXPR_HEX:
    case AST_EXPR_REAL:
    case AST_EXPR_STRING:
    case AST_EXPR_BLOB: return bind_literal(b, ast);
    case AST_EXPR_CURRENT: return bind_current(b, ast);
    case AST_EXPR_PARAM: return bind_param(b, ast);
    case AST_EXPR_COLUMN: return bind__name(b, ast);
    case AST_EXPR_UNARY: return bind_unary(b, ast);
    case AST_EXPR_BINARY: return bind_binary(b, ast);
    case AST_EXPR_AND:
    case AST_EXPR_OR: return bind_list(b, ast);
    case AST_EXPR_COLLATE: return bind_collate(b, ast);
    case AST_EXPR_CAST: return bind_cast(b, ast);
    case AST_EXPR_BETWEEN: return bind__between(b, ast);
    case AST_EXPR_LIKE: return bind_like(b, ast);
    case AST_EXPR_IN: return bind__in(b, ast);
    case AST_EXPR_EXISTS: return bind_exists(b, ast);
    case AST_EXPR_SUBQUERY: return bind_scalar_sub(b, ast);
    case AST_EXPR_ROW: return bind__fail_at(b, ast->span, "row value misused");
    case AST_EXPR_CASE: return bind__case(b, ast);
    case AST_EXPR_FUNCTION: return bind__function(b, ast);
    case AST_EXPR_RAISE: return bind_raise(b, ast);
    }
    return bind__fail(b, ERR_INTERNAL, "unknown kind of expression");
}

bool
bind__conjuncts(Binder *b, const AstExpr *ast, ExprList *list, u16 flags)
{
    if (ast == NULL) return true;
    u32 from = list->count;
    if (ast->kind == AST_EXPR_AND) {
        for (u32 i = 0; i < ast->u.list.count; i++) {
            if (decides_and(b, ast->u.list.items[i]))
                return bind__push(b, list, bind__const(b, cell_int(0), ast->span));
        }
        for (u32 i = 0; i < ast->u.list.count; i++) {
            if (!bind__conjuncts(b, ast->u.list.items[i], list, flags)) return false;
        }
        return true;
    }
    if (!bind__push(b, list, bind__expr(b, ast))) return false;
    for (u32 i = from; flags != 0 && i < list->count; i++)
        list->items[i]->flags |= flags;
    return true;
}
