/*
 * build.c -- making expressions: nodes, constants, affinity and collation stamps, equality.
 */
#include "sql/bind/bind.h"

#include "value/collate.h"

PlanExpr *
bind__new(Binder *b, PlanOp op, u32 arg_count, Span span)
{
    PlanExpr *e = BIND_NEW(b, PlanExpr);
    if (e == NULL) return NULL;
    e->op = (u8)op;
    e->arg_count = arg_count;
    if (b->sql_is_main) {
        e->sql_offset = span.offset;
        e->sql_bytes = span.bytes;
    }
    if (arg_count > 0) {
        e->arg = BIND_ARRAY(b, PlanExpr *, arg_count);
        if (e->arg == NULL) return NULL;
    }
    return e;
}

#define FLAGS_UP                                                                     \
    (PX_FLAG_READS_ROW | PX_FLAG_READS_REG | PX_FLAG_READS_PARAM | PX_FLAG_HAS_SUB | \
     PX_FLAG_HAS_AGG | PX_FLAG_HAS_WIN)

void
bind__finish(PlanExpr *e)
{
    for (u32 i = 0; i < e->arg_count; i++) {
        const PlanExpr *arg = e->arg[i];
        if (arg->klass > e->klass) e->klass = arg->klass;
        e->flags |= (u16)(arg->flags & FLAGS_UP);
        /* An explicit COLLATE in an operand speaks for the whole expression, leftmost first. */
        if ((arg->flags & PX_FLAG_COLLATE) != 0 && (e->flags & PX_FLAG_COLLATE) == 0) {
            e->flags |= PX_FLAG_COLLATE;
            if (e->collation == NULL) e->collation = arg->collation;
        }
    }
}

PlanExpr *
bind__const(Binder *b, Cell cell, Span span)
{
    PlanExpr *e = bind__new(b, PX_CONST, 0, span);
    if (e != NULL) e->u.constant = cell;
    return e;
}

PlanExpr *
bind__text_const(Binder *b, Slice text, Span span)
{
    char *p = bind__keep_text(b, text);
    if (p == NULL) return NULL;
    Cell cell = cell_text(p, text.bytes);
    cell.flags = CELL_TERMINATED;
    return bind__const(b, cell, span);
}

bool
bind__is_const(const PlanExpr *e)
{
    return e->op == PX_CONST;
}

bool
bind__is_true(const PlanExpr *e)
{
    return e->op == PX_CONST && e->u.constant.type == CELL_INT && e->u.constant.u.i != 0;
}

bool
bind__is_false(const PlanExpr *e)
{
    if (e->op != PX_CONST) return false;
    return e->u.constant.type == CELL_NULL ||
           (e->u.constant.type == CELL_INT && e->u.constant.u.i == 0);
}

PlanExpr *
bind__and(Binder *b, PlanExpr *left, PlanExpr *right)
{
    if (left == NULL) return right;
    if (right == NULL) return left;
    PlanExpr *e = bind__new(b, PX_AND, 2, (Span){0, 0});
    if (e == NULL) return NULL;
    e->arg[0] = left;
    e->arg[1] = right;
    bind__finish(e);
    return e;
}

/* What a declared type or CAST name asks for: the first of these rules that fits. */
u8
bind__type_affinity(Slice type)
{
    bool blob = false, real = false, text = false;
    for (size_t i = 0; i + 3 <= type.bytes; i++) {
        Slice three = SLICE(type.p + i, 3);
        Slice four = SLICE(type.p + i, i + 4 <= type.bytes ? 4u : 3u);
        if (slice_equal_nocase(three, SLICE_LITERAL("int"))) return AFFINITY_INTEGER;
        if (slice_equal_nocase(four, SLICE_LITERAL("char")) ||
            slice_equal_nocase(four, SLICE_LITERAL("clob")) ||
            slice_equal_nocase(four, SLICE_LITERAL("text")))
            text = true;
        if (slice_equal_nocase(four, SLICE_LITERAL("blob"))) blob = true;
        if (slice_equal_nocase(four, SLICE_LITERAL("real")) ||
            slice_equal_nocase(four, SLICE_LITERAL("floa")) ||
            slice_equal_nocase(four, SLICE_LITERAL("doub")))
            real = true;
    }
    if (text) return AFFINITY_TEXT;
    if (blob) return AFFINITY_BLOB;
    if (real) return AFFINITY_REAL;
    return AFFINITY_NUMERIC;
}

u8
bind__compare_affinity(const PlanExpr *left, const PlanExpr *right)
{
    u8 a = left->affinity, c = right->affinity;
    if (a != AFFINITY_NONE && c != AFFINITY_NONE) {
        return a >= AFFINITY_NUMERIC || c >= AFFINITY_NUMERIC ? AFFINITY_NUMERIC : AFFINITY_BLOB;
    }
    return a == AFFINITY_NONE ? c : a;
}

const Collation *
bind__collation_or_binary(const Collation *collation)
{
    return collation != NULL ? collation : &collation_binary;
}

/* The collation that an expression brings to a comparison: columns do, through + and CAST, and
   whatever holds an explicit COLLATE. */
const Collation *
bind__carried_collation(const PlanExpr *e)
{
    if ((e->flags & PX_FLAG_COLLATE) != 0) return bind__collation_or_binary(e->collation);
    switch (e->op) {
    case PX_BOUND_COLUMN:
    case PX_PLUS:
    case PX_CAST:
    case PX_COALESCE: return e->collation;
    default: return NULL;
    }
}

const Collation *
bind__compare_collation(const PlanExpr *left, const PlanExpr *right)
{
    if ((left->flags & PX_FLAG_COLLATE) != 0) return bind__collation_or_binary(left->collation);
    if ((right->flags & PX_FLAG_COLLATE) != 0) return bind__collation_or_binary(right->collation);
    const Collation *collation = bind__carried_collation(left);
    if (collation != NULL) return collation;
    return bind__collation_or_binary(bind__carried_collation(right));
}

/* What stands for a collation that the connection does not have; nothing is compared by it. */
static int
compare_missing(void *arg, Slice a, Slice b)
{
    (void)arg;
    return collation_compare(NULL, a, b);
}

const Collation *
bind__host_collation(Binder *b, const char *name)
{
    const Collation *found = NULL;
    if (b->ctx->find_collation != NULL)
        found = b->ctx->find_collation(b->ctx->collation_arg, bind__text(name));
    if (found != NULL) return found;
    Collation *missing = KEEP_NEW(b, Collation);
    if (missing == NULL) return NULL;
    missing->kind = COLLATION_HOST;
    missing->compare = compare_missing;
    missing->name = name;
    return missing;
}

const Collation *
bind__need_collation(Binder *b, const Collation *collation)
{
    bool missing = collation != NULL && collation->kind == COLLATION_HOST &&
                   collation->compare == compare_missing;
    if (missing && b->ctx->notes == NULL)
        bind__fail(b, ERR_NO_COLLATION, "no such collation sequence: %s", collation->name);
    return collation;
}

const Collation *
bind__find_collation(Binder *b, const AstName *name)
{
    const Collation *collation = collation_find_builtin(name->text);
    if (collation == NULL && b->ctx->find_collation != NULL)
        collation = b->ctx->find_collation(b->ctx->collation_arg, name->text);
    /* ALTER TABLE only asks what the names of tables and columns mean. */
    if (collation == NULL && b->ctx->notes != NULL) return &collation_binary;
    if (collation == NULL) {
        bind__fail(b, ERR_NO_COLLATION, "no such collation sequence: %.*s", (int)name->text.bytes,
                   name->text.p);
    }
    return collation;
}

static bool
same_cell(const Cell *a, const Cell *c)
{
    if (a->type != c->type) return false;
    switch (a->type) {
    case CELL_NULL: return true;
    case CELL_INT: return a->u.i == c->u.i;
    case CELL_REAL: return memcmp(&a->u.r, &c->u.r, sizeof(f64)) == 0;
    default:
        return a->bytes == c->bytes && (a->bytes == 0 || memcmp(a->u.p, c->u.p, a->bytes) == 0);
    }
}

static bool
same_stamp(const PlanStamp *a, const PlanStamp *c)
{
    return a->affinity == c->affinity && a->collation == c->collation;
}

static const BoundWin *
window_root(const PlanExpr *e)
{
    const BoundWin *win = e->u.bound.of;
    return win->copy_of != NULL ? win->copy_of : win;
}

static bool
same_special(const PlanExpr *a, const PlanExpr *c)
{
    switch (a->op) {
    case PX_CONST: return same_cell(&a->u.constant, &c->u.constant);
    case PX_PARAM:
    case PX_COLUMN:
    case PX_REG: return a->u.number == c->u.number;
    case PX_BOUND_WIN: return window_root(a) == window_root(c);
    case PX_BOUND_COLUMN:
    case PX_BOUND_AGG:
        return a->u.bound.of == c->u.bound.of && a->u.bound.column == c->u.bound.column;
    case PX_FUNC: return a->u.func.def == c->u.func.def && a->collation == c->collation;
    case PX_CAST:
    case PX_AFFINITY: return a->affinity == c->affinity;
    case PX_EQ:
    case PX_NE:
    case PX_LT:
    case PX_LE:
    case PX_GT:
    case PX_GE:
    case PX_IS:
    case PX_IS_NOT:
    case PX_IN_LIST: return a->cmp_affinity == c->cmp_affinity && a->collation == c->collation;
    case PX_BETWEEN:
        return same_stamp(&a->u.between.low, &c->u.between.low) &&
               same_stamp(&a->u.between.high, &c->u.between.high);
    case PX_CASE:
        for (u32 i = 0; (a->flags & PX_FLAG_BASE) != 0 && i < (a->arg_count - 1) / 2; i++) {
            if (!same_stamp(&a->u.arm_stamps[i], &c->u.arm_stamps[i])) return false;
        }
        return true;
    case PX_IN_SUB:
    case PX_EXISTS:
    case PX_SCALAR:
    case PX_SUB_COLUMN:
    case PX_ROW_COMPARE:
    case PX_RAISE: return false; /* Only the same node is the same. */
    default: return true;
    }
}

/* Recursion: as deep as the expression, which the parser bounds. */
bool
bind__equal(const PlanExpr *a, const PlanExpr *c)
{
    if (a == c) return true;
    if (a->op != c->op || a->arg_count != c->arg_count) return false;
    if ((a->flags & (PX_FLAG_NOT | PX_FLAG_BASE | PX_FLAG_ELSE)) !=
        (c->flags & (PX_FLAG_NOT | PX_FLAG_BASE | PX_FLAG_ELSE)))
        return false;
    if ((a->flags & PX_FLAG_COLLATE) != (c->flags & PX_FLAG_COLLATE)) return false;
    if ((a->flags & PX_FLAG_COLLATE) != 0 && a->collation != c->collation) return false;
    if (!same_special(a, c)) return false;
    for (u32 i = 0; i < a->arg_count; i++) {
        if (!bind__equal(a->arg[i], c->arg[i])) return false;
    }
    return true;
}

/* The same but for a COLLATE around either. */
bool
bind__equal_but_collate(const PlanExpr *a, const PlanExpr *c)
{
    PlanExpr left = *a, right = *c;
    left.flags = (u16)(left.flags & ~PX_FLAG_COLLATE);
    right.flags = (u16)(right.flags & ~PX_FLAG_COLLATE);
    return bind__equal(&left, &right);
}
