/*
 * compare.c -- comparisons and their stamps: =, <, IS, BETWEEN, IN, CASE, row values.
 *
 * The affinity that is applied to both sides and the collation are decided here, once.
 */
#include "sql/bind/bind.h"

static PlanStamp
stamp_of(Binder *b, const PlanExpr *left, const PlanExpr *right)
{
    return (PlanStamp){.affinity = bind__compare_affinity(left, right),
                       .collation = bind__need_collation(b, bind__compare_collation(left, right))};
}

PlanExpr *
bind__compare(Binder *b, PlanOp op, PlanExpr *left, PlanExpr *right, Span span)
{
    if (left == NULL || right == NULL) return NULL;
    bool right_null = right->op == PX_CONST && right->u.constant.type == CELL_NULL;
    if (right_null && (op == PX_IS || op == PX_IS_NOT)) {
        PlanExpr *e = bind__new(b, op == PX_IS ? PX_IS_NULL : PX_NOT_NULL, 1, span);
        if (e == NULL) return NULL;
        e->arg[0] = left;
        bind__finish(e);
        return e;
    }
    PlanExpr *e = bind__new(b, op, 2, span);
    if (e == NULL) return NULL;
    e->arg[0] = left;
    e->arg[1] = right;
    bind__finish(e);
    e->cmp_affinity = bind__compare_affinity(left, right);
    e->collation = bind__need_collation(b, bind__compare_collation(left, right));
    return e;
}

static PlanExpr *
row_compare(Binder *b, PlanOp op, const ExprList *left, const ExprList *right, Span span)
{
    if (left->count != right->count) return bind__fail_at(b, span, "row value misused");
    if (left->count == 1) return bind__compare(b, op, left->items[0], right->items[0], span);
    u32 n = left->count;
    PlanExpr *e = bind__new(b, PX_ROW_COMPARE, n * 2, span);
    PlanStamp *stamps = BIND_ARRAY(b, PlanStamp, n);
    if (e == NULL || stamps == NULL) return NULL;
    for (u32 i = 0; i < n; i++) {
        e->arg[i] = left->items[i];
        e->arg[n + i] = right->items[i];
        stamps[i] = stamp_of(b, left->items[i], right->items[i]);
    }
    bind__finish(e);
    e->u.row.op = (u8)op;
    e->u.row.columns = n;
    e->u.row.stamps = stamps;
    return e;
}

/* x IN (): FALSE, and with NOT: TRUE; SQLite forgets x. */
static bool
is_empty_in(const AstExpr *ast)
{
    return ast->kind == AST_EXPR_IN && ast->u.in->kind == AST_IN_LIST && ast->u.in->list.count == 0;
}

/* Is it the word TRUE, or FALSE, or what stands for one?  Parentheses and COLLATE do not matter. */
static bool
is_truth_word(const AstExpr *ast, bool *is_true_out)
{
    while (ast->kind == AST_EXPR_COLLATE)
        ast = ast->u.collate.operand;
    *is_true_out = (ast->flags & AST_FLAG_NOT) != 0;
    if (is_empty_in(ast)) return true;
    if (ast->kind != AST_EXPR_COLUMN || ast->u.column.qualifier != NULL ||
        ast->u.column.name.quote != AST_QUOTE_NONE)
        return false;
    Slice name = ast->u.column.name.text;
    *is_true_out = slice_equal_nocase(name, SLICE_LITERAL("true"));
    return *is_true_out || slice_equal_nocase(name, SLICE_LITERAL("false"));
}

/* x IS TRUE, unless TRUE is the name of a column. */
static PlanExpr *
truth_test(Binder *b, const AstExpr *ast, bool *is_test_out)
{
    *is_test_out = false;
    bool is_true;
    const AstExpr *right = ast->u.binary.right;
    if (ast->op != AST_BINARY_IS && ast->op != AST_BINARY_IS_NOT) return NULL;
    if (!is_truth_word(right, &is_true)) return NULL;
    *is_test_out = true;
    PlanExpr *left = bind__expr(b, ast->u.binary.left);
    PlanExpr *value = left == NULL ? NULL : bind__expr(b, right);
    if (value == NULL) return NULL;
    PlanOp op = ast->op == AST_BINARY_IS ? PX_IS : PX_IS_NOT;
    if (value->op != PX_CONST) return bind__compare(b, op, left, value, ast->span);
    if (op == PX_IS) {
        op = is_true ? PX_IS_TRUE : PX_IS_FALSE;
    } else {
        op = is_true ? PX_IS_NOT_TRUE : PX_IS_NOT_FALSE;
    }
    PlanExpr *e = bind__new(b, op, 1, ast->span);
    if (e == NULL) return NULL;
    e->arg[0] = left;
    bind__finish(e);
    return e;
}

PlanExpr *
bind__comparison(Binder *b, const AstExpr *ast)
{
    static const u8 ops[] = {
        [AST_BINARY_EQ] = PX_EQ, [AST_BINARY_NE] = PX_NE,        [AST_BINARY_LT] = PX_LT,
        [AST_BINARY_LE] = PX_LE, [AST_BINARY_GT] = PX_GT,        [AST_BINARY_GE] = PX_GE,
        [AST_BINARY_IS] = PX_IS, [AST_BINARY_IS_NOT] = PX_IS_NOT};
    bool is_test;
    PlanExpr *test = truth_test(b, ast, &is_test);
    if (is_test || b->err != OK) return test;
    const AstExpr *left = ast->u.binary.left, *right = ast->u.binary.right;
    if (left->kind != AST_EXPR_ROW && left->kind != AST_EXPR_SUBQUERY &&
        right->kind != AST_EXPR_ROW && right->kind != AST_EXPR_SUBQUERY) {
        PlanExpr *l = bind__expr(b, left);
        PlanExpr *r = l == NULL ? NULL : bind__expr(b, right);
        return bind__compare(b, (PlanOp)ops[ast->op], l, r, ast->span);
    }
    ExprList l = {0}, r = {0};
    if (!bind__vector(b, left, &l) || !bind__vector(b, right, &r)) return NULL;
    return row_compare(b, (PlanOp)ops[ast->op], &l, &r, ast->span);
}

PlanExpr *
bind__between(Binder *b, const AstExpr *ast)
{
    ExprList x = {0}, low = {0}, high = {0};
    if (!bind__vector(b, ast->u.between.operand, &x)) return NULL;
    if (!bind__vector(b, ast->u.between.low, &low)) return NULL;
    if (!bind__vector(b, ast->u.between.high, &high)) return NULL;
    PlanExpr *e = NULL;
    if (x.count == 1 && low.count == 1 && high.count == 1) {
        e = bind__new(b, PX_BETWEEN, 3, ast->span);
        if (e == NULL) return NULL;
        e->arg[0] = x.items[0];
        e->arg[1] = low.items[0];
        e->arg[2] = high.items[0];
        bind__finish(e);
        e->u.between.low = stamp_of(b, e->arg[0], e->arg[1]);
        e->u.between.high = stamp_of(b, e->arg[0], e->arg[2]);
    } else {
        PlanExpr *from = row_compare(b, PX_GE, &x, &low, ast->span);
        PlanExpr *to = from == NULL ? NULL : row_compare(b, PX_LE, &x, &high, ast->span);
        e = to == NULL ? NULL : bind__and(b, from, to);
        if (e == NULL) return NULL;
    }
    if ((ast->flags & AST_FLAG_NOT) == 0) return e;
    PlanExpr *not = bind__new(b, PX_NOT, 1, ast->span);
    if (not == NULL) return NULL;
    not ->arg[0] = e;
    bind__finish(not );
    return not ;
}

PlanExpr *
bind__case(Binder *b, const AstExpr *ast)
{
    const AstCase *c = ast->u.case_;
    u32 base = c->operand != NULL ? 1 : 0;
    u32 count = base + c->count * 2 + (c->otherwise != NULL ? 1 : 0);
    PlanExpr *e = bind__new(b, PX_CASE, count, ast->span);
    PlanStamp *stamps = BIND_ARRAY(b, PlanStamp, c->count);
    if (e == NULL || stamps == NULL) return NULL;
    u32 at = 0;
    if (base != 0) {
        e->flags |= PX_FLAG_BASE;
        e->arg[at] = bind__expr(b, c->operand);
        if (e->arg[at++] == NULL) return NULL;
    }
    for (u32 i = 0; i < c->count; i++) {
        e->arg[at] = bind__expr(b, c->arms[i].when);
        if (e->arg[at++] == NULL) return NULL;
        e->arg[at] = bind__expr(b, c->arms[i].then);
        if (e->arg[at++] == NULL) return NULL;
        if (base != 0) stamps[i] = stamp_of(b, e->arg[0], e->arg[at - 2]);
    }
    if (c->otherwise != NULL) {
        e->flags |= PX_FLAG_ELSE;
        e->arg[at] = bind__expr(b, c->otherwise);
        if (e->arg[at++] == NULL) return NULL;
    }
    bind__finish(e);
    e->u.arm_stamps = base != 0 ? stamps : NULL;
    return e;
}

/* ---- IN ---- */

static PlanExpr *in_sub(Binder *b, const AstExpr *ast, const ExprList *x, BoundSub *sub);

/* (a, b) IN ((1, 2), (3, 4)): as IN (VALUES ...). */
static PlanExpr *
in_rows(Binder *b, const AstExpr *ast, const ExprList *x)
{
    const AstExprs *list = &ast->u.in->list;
    AstSelect *select = BIND_NEW(b, AstSelect);
    AstArm *arm = BIND_NEW(b, AstArm);
    AstExprs *rows = BIND_ARRAY(b, AstExprs, list->count);
    if (select == NULL || arm == NULL || rows == NULL) return NULL;
    for (u32 i = 0; i < list->count; i++) {
        const AstExpr *row = list->items[i];
        u32 terms = row->kind == AST_EXPR_ROW ? row->u.list.count : 1;
        if (terms != x->count) {
            return bind__fail_at(b, row->span, "IN(...) element has %u term%s - expected %u", terms,
                                 terms == 1 ? "" : "s", x->count);
        }
        rows[i] = row->u.list;
    }
    arm->is_values = true;
    arm->values = (AstRows){.items = rows, .count = list->count, .capacity = list->count};
    select->arms = arm;
    select->count = 1;
    BoundSub *sub = bind__subquery(b, select);
    return sub == NULL ? NULL : in_sub(b, ast, x, sub);
}

static PlanExpr *
in_list(Binder *b, const AstExpr *ast, const ExprList *x)
{
    const AstIn *in = ast->u.in;
    bool not = (ast->flags & AST_FLAG_NOT) != 0;
    if (x->count != 1) return in_rows(b, ast, x);
    PlanExpr *e = bind__new(b, PX_IN_LIST, in->list.count + 1, ast->span);
    if (e == NULL) return NULL;
    e->arg[0] = x->items[0];
    for (u32 i = 0; i < in->list.count; i++) {
        e->arg[i + 1] = bind__expr(b, in->list.items[i]);
        if (e->arg[i + 1] == NULL) return NULL;
    }
    bind__finish(e);
    /* Only the left side speaks: `1 IN (text_column)` compares without affinity. */
    e->cmp_affinity = x->items[0]->affinity;
    e->collation = bind__collation_or_binary(bind__carried_collation(x->items[0]));
    (void)bind__need_collation(b, e->collation);
    if (in->list.count == 1 && e->arg[1]->op == PX_CONST) {
        e->op = not ? PX_NE : PX_EQ;
    } else if (not ) {
        e->flags |= PX_FLAG_NOT;
    }
    return e;
}

static PlanExpr *
in_sub(Binder *b, const AstExpr *ast, const ExprList *x, BoundSub *sub)
{
    const Query *query = sub->query;
    if (query->column_count != x->count) {
        return bind__fail_at(b, ast->span, "sub-select returns %u columns - expected %u",
                             query->column_count, x->count);
    }
    PlanExpr *e = bind__new(b, PX_IN_SUB, x->count, ast->span);
    PlanStamp *stamps = BIND_ARRAY(b, PlanStamp, x->count);
    if (e == NULL || stamps == NULL) return NULL;
    for (u32 i = 0; i < x->count; i++) {
        e->arg[i] = x->items[i];
        PlanExpr right = {.op = PX_BOUND_COLUMN,
                          .affinity = query->column[i].affinity,
                          .collation = bind__need_collation(b, query->column[i].collation)};
        if (query->column[i].explicit_collation) right.flags |= PX_FLAG_COLLATE;
        stamps[i] = stamp_of(b, x->items[i], &right);
    }
    bind__finish(e);
    sub->sub.cmp = stamps;
    e->u.sub = &sub->sub;
    if (query->klass > e->klass) e->klass = query->klass;
    e->flags |= PX_FLAG_HAS_SUB;
    if (query->outer_level != U32_MAX) e->flags |= PX_FLAG_READS_ROW;
    if ((ast->flags & AST_FLAG_NOT) != 0) e->flags |= PX_FLAG_NOT;
    return e;
}

/* x IN table, x IN function(...): as SELECT * FROM it. */
static AstSelect *
select_star(Binder *b, const AstIn *in)
{
    AstSelect *select = BIND_NEW(b, AstSelect);
    AstArm *arm = BIND_NEW(b, AstArm);
    AstResult *result = BIND_NEW(b, AstResult);
    AstFrom *from = BIND_NEW(b, AstFrom);
    AstFromItem *item = BIND_NEW(b, AstFromItem);
    if (select == NULL || arm == NULL || result == NULL || from == NULL || item == NULL)
        return NULL;
    result->kind = AST_RESULT_STAR;
    item->kind = in->kind == AST_IN_FUNCTION ? AST_FROM_FUNCTION : AST_FROM_TABLE;
    item->schema = in->schema;
    item->name = in->table;
    item->args = in->list;
    from->items = item;
    from->count = 1;
    arm->results = (AstResults){.items = result, .count = 1, .capacity = 1};
    arm->from = from;
    select->arms = arm;
    select->count = 1;
    return select;
}

PlanExpr *
bind__in(Binder *b, const AstExpr *ast)
{
    const AstIn *in = ast->u.in;
    ExprList x = {0};
    if (is_empty_in(ast)) {
        return bind__const(b, cell_int((ast->flags & AST_FLAG_NOT) != 0 ? 1 : 0), ast->span);
    }
    if (!bind__vector(b, in->operand, &x)) return NULL;
    if (in->kind == AST_IN_LIST) return in_list(b, ast, &x);
    AstSelect *select = in->kind == AST_IN_SELECT ? in->select : select_star(b, in);
    BoundSub *sub = select == NULL ? NULL : bind__subquery(b, select);
    return sub == NULL ? NULL : in_sub(b, ast, &x, sub);
}
