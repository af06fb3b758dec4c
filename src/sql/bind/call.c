/*
 * call.c -- function calls: look-up, the calls that are rewritten, aggregates and their owners.
 *
 * An aggregate belongs to the innermost query that its arguments refer to, which may lie outside
 * of the query it is written in.
 */
#include "sql/bind/bind.h"
#include "value/host_table.h"

static const FuncDef *
find_function(Binder *b, Slice name, u32 argc, Span span)
{
    bool exists = false;
    const FuncDef *def = func_find(b->ctx->functions, name, argc, &exists);
    if (def != NULL) return def;
    if (exists) {
        return bind__fail_at(b, span, "wrong number of arguments to function %.*s()",
                             (int)name.bytes, name.p);
    }
    return bind__fail_at(b, span, "no such function: %.*s", (int)name.bytes, name.p);
}

u8
bind__call_class(const FuncDef *def, const ExprList *args)
{
    if ((def->flags & FUNC_VOLATILE) != 0) return PLAN_VOLATILE;
    if ((def->flags & FUNC_FALLIBLE) == 0) return PLAN_TOTAL;
    /* LIKE can only fail by the length of its pattern or by its ESCAPE. */
    if ((def->flags & FUNC_LIKE) != 0 && args->count == 2 && args->items[0]->op == PX_CONST &&
        args->items[0]->u.constant.bytes < 1000)
        return PLAN_TOTAL;
    return PLAN_FALLIBLE;
}

/* Date functions may stand in a schema: only their use of the present time is an error. */
static bool
is_unsteady(const FuncDef *def)
{
    if ((def->flags & FUNC_VOLATILE) != 0) return true;
    if ((def->flags & FUNC_SLOW_CHANGE) == 0) return false;
    static const char *const dates[] = {"date",     "time",      "datetime", "julianday",
                                        "strftime", "unixepoch", "timediff"};
    for (u32 i = 0; i < COUNT_OF(dates); i++) {
        if (strcmp(def->name, dates[i]) == 0) return false;
    }
    return true;
}

bool
bind__authorize_call(Binder *b, const FuncDef *def, bool *ignore_out)
{
    *ignore_out = false;
    if (b->fixed_schema != NULL && (def->flags & FUNC_DIRECT_ONLY) != 0) {
        bind__fail(b, ERR_SQL, "unsafe use of %s()", def->name);
        return false;
    }
    if (b->clause != NULL && is_unsteady(def) && strcmp(b->clause, "CHECK constraints") != 0 &&
        strcmp(b->clause, "DEFAULT") != 0) {
        bind__fail(b, ERR_SQL, "non-deterministic functions prohibited in %s", b->clause);
        return false;
    }
    return bind__authorize(b, PLAN_AUTH_FUNCTION, NULL, def->name, NULL, ignore_out);
}

static PlanExpr *
inline_case(Binder *b, const ExprList *args, Span span)
{
    PlanExpr *e = bind__new(b, PX_CASE, args->count, span);
    if (e == NULL) return NULL;
    memcpy(e->arg, args->items, args->count * sizeof(PlanExpr *));
    if (args->count % 2 == 1) e->flags |= PX_FLAG_ELSE;
    bind__finish(e);
    return e;
}

static bool
name_is(const FuncDef *def, const char *name)
{
    return strcmp(def->name, name) == 0;
}

/* The argument of likely() and its kin: a call has no affinity, whatever stands in it. */
static PlanExpr *
as_value(Binder *b, PlanExpr *arg, Span span)
{
    if (arg->affinity == AFFINITY_NONE) return arg;
    PlanExpr *e = bind__new(b, PX_PLUS, 1, span);
    if (e == NULL) return NULL;
    e->arg[0] = arg;
    bind__finish(e);
    return e;
}

static PlanExpr *
inline_call(Binder *b, const FuncDef *def, const ExprList *args, Span span, bool *done_out)
{
    *done_out = true;
    if (name_is(def, "coalesce") || name_is(def, "ifnull")) {
        PlanExpr *e = bind__new(b, PX_COALESCE, args->count, span);
        if (e == NULL) return NULL;
        memcpy(e->arg, args->items, args->count * sizeof(PlanExpr *));
        bind__finish(e);
        return e;
    }
    if (name_is(def, "iif") || name_is(def, "if")) return inline_case(b, args, span);
    if (name_is(def, "likelihood")) {
        const PlanExpr *p = args->items[1];
        bool good = p->op == PX_CONST && p->u.constant.type == CELL_REAL &&
                    p->u.constant.u.r >= 0.0 && p->u.constant.u.r <= 1.0;
        if (!good) {
            return bind__fail_at(b, span,
                                 "second argument to likelihood() must be a constant "
                                 "between 0.0 and 1.0");
        }
        return as_value(b, args->items[0], span);
    }
    if (name_is(def, "likely") || name_is(def, "unlikely")) {
        return as_value(b, args->items[0], span);
    }
    *done_out = false;
    return NULL;
}

/* A virtual table may have its own version of a function called on one of its columns. */
static const FuncDef *
own_version(Binder *b, const FuncDef *def, const ExprList *args, const PlanExpr *arg)
{
    if (arg->op != PX_BOUND_COLUMN || b->err != OK) return def;
    const Source *source = arg->u.bound.of;
    const TableDef *table = source->kind == SOURCE_TABLE ? source->table : NULL;
    if (table == NULL || table->host == NULL || table->host->ops->find_function == NULL) return def;
    u8 op;
    const FuncDef *own = table->host->ops->find_function(table->host, def->name, args->count, &op);
    return own != NULL ? own : def;
}

static PlanExpr *
scalar_call(Binder *b, const FuncDef *def, const ExprList *args, Span span)
{
    bool ignore;
    if (!bind__authorize_call(b, def, &ignore)) return NULL;
    if (ignore) return bind__const(b, cell_null(), span);
    if ((def->flags & FUNC_INLINE) != 0) {
        bool done;
        PlanExpr *e = inline_call(b, def, args, span, &done);
        if (done) return e;
    }
    PlanExpr *e = bind__new(b, PX_FUNC, args->count, span);
    if (e == NULL) return NULL;
    if (args->count > 0) memcpy(e->arg, args->items, args->count * sizeof(PlanExpr *));
    bind__finish(e);
    u8 klass = bind__call_class(def, args);
    if (klass > e->klass) e->klass = klass;
    e->u.func.def = def;
    /* SQLite holds CURRENT_DATE and its kin for harmless there. */
    if (strncmp(def->name, "current_", 8) != 0) e->u.func.pure_in = bind__pure_place(b);
    if ((def->flags & FUNC_COLLATES) != 0) {
        for (u32 i = 0; i < args->count && e->collation == NULL; i++)
            e->collation = bind__carried_collation(args->items[i]);
    }
    if (e->collation == NULL && (def->flags & FUNC_COLLATES) != 0) e->collation = &collation_binary;
    if ((def->flags & FUNC_COLLATES) != 0) (void)bind__need_collation(b, e->collation);
    return e;
}

PlanExpr *
bind__call(Binder *b, Slice name, ExprList *args, Span span)
{
    const FuncDef *def = find_function(b, name, args->count, span);
    if (def == NULL) return NULL;
    if (def->kind != FUNC_SCALAR) {
        return bind__fail_at(b, span, "misuse of %s function %.*s()",
                             def->kind == FUNC_WINDOW ? "window" : "aggregate", (int)name.bytes,
                             name.p);
    }
    if (args->count >= 2) def = own_version(b, def, args, args->items[1]); /* x LIKE y */
    return scalar_call(b, def, args, span);
}

/* ---- aggregates ---- */

static bool
same_aggregate(const BoundAgg *a, const BoundAgg *c)
{
    if (a->def != c->def || a->star != c->star || a->distinct != c->distinct ||
        a->args.count != c->args.count || a->order_count != 0 || c->order_count != 0 ||
        (a->filter == NULL) != (c->filter == NULL))
        return false;
    if (a->filter != NULL && !bind__equal(a->filter, c->filter)) return false;
    for (u32 i = 0; i < a->args.count; i++) {
        if (!bind__equal(a->args.items[i], c->args.items[i])) return false;
    }
    return true;
}

static bool
core_add_aggregate(Binder *b, Core *core, BoundAgg *agg, BoundAgg **agg_out)
{
    core->is_aggregate = true;
    for (u32 i = 0; i < core->agg_count; i++) {
        if (same_aggregate(core->agg[i], agg)) {
            *agg_out = core->agg[i];
            return true;
        }
    }
    if (core->agg_count == core->agg_capacity) {
        u32 capacity = core->agg_capacity == 0 ? 4 : core->agg_capacity * 2;
        BoundAgg **list = BIND_ARRAY(b, BoundAgg *, capacity);
        if (list == NULL) return false;
        if (core->agg_count > 0) memcpy(list, core->agg, core->agg_count * sizeof(*list));
        core->agg = list;
        core->agg_capacity = capacity;
    }
    agg->core = core;
    agg->number = core->agg_count;
    core->agg[core->agg_count++] = agg;
    *agg_out = agg;
    return true;
}

static bool
bind_agg_order(Binder *b, BoundAgg *agg, const AstOrderTerms *terms)
{
    agg->order = BIND_ARRAY(b, PlanSortKey, terms->count);
    if (agg->order == NULL) return false;
    for (u32 i = 0; i < terms->count; i++) {
        const AstOrderTerm *term = &terms->items[i];
        PlanExpr *e = bind__expr(b, term->expr);
        if (e == NULL) return false;
        bool desc = term->sort == AST_SORT_DESC;
        agg->order[i] = (PlanSortKey){
            .expr = e,
            .collation = bind__need_collation(
                b, bind__collation_or_binary(bind__carried_collation(e))),
            .desc = desc,
            .nulls_last = term->nulls == AST_NULLS_DEFAULT ? desc : term->nulls == AST_NULLS_LAST};
    }
    agg->order_count = terms->count;
    return true;
}

static bool
bind_agg_parts(Binder *b, BoundAgg *agg, const AstFunction *call)
{
    for (u32 i = 0; i < call->args.count; i++) {
        if (!bind__push(b, &agg->args, bind__expr(b, call->args.items[i]))) return false;
    }
    if (call->filter != NULL) {
        agg->filter = bind__expr(b, call->filter);
        if (agg->filter == NULL) return false;
    }
    if (call->order_by.count > 0 && !bind_agg_order(b, agg, &call->order_by)) return false;
    for (u32 i = 0; i < agg->args.count && agg->collation == NULL; i++)
        agg->collation = bind__carried_collation(agg->args.items[i]);
    agg->collation = bind__collation_or_binary(agg->collation);
    if (agg->distinct || (agg->def->flags & FUNC_COLLATES) != 0)
        (void)bind__need_collation(b, agg->collation);
    return true;
}

static PlanExpr *
aggregate_expr(Binder *b, Scope *owner, BoundAgg *agg, const AstExpr *ast)
{
    const FuncDef *def = agg->def;
    BoundAgg *kept;
    if (!core_add_aggregate(b, owner->core, agg, &kept)) return NULL;
    PlanExpr *e = bind__new(b, PX_BOUND_AGG, 0, ast->span);
    if (e == NULL) return NULL;
    for (u32 i = 0; i < agg->args.count; i++) {
        const PlanExpr *arg = agg->args.items[i];
        if (arg->klass > e->klass) e->klass = arg->klass;
        if ((arg->flags & PX_FLAG_COLLATE) == 0 || (e->flags & PX_FLAG_COLLATE) != 0) continue;
        e->flags |= PX_FLAG_COLLATE; /* As in bind__finish(). */
        e->collation = arg->collation;
    }
    u8 klass = bind__call_class(def, &agg->args);
    if (klass > e->klass) e->klass = klass;
    e->u.bound.of = kept;
    e->flags |= PX_FLAG_HAS_AGG | PX_FLAG_READS_ROW;
    bind__track_level(b, owner->level);
    return bind__mark_outer(b, owner, e) ? e : NULL;
}

PlanExpr *
bind__aggregate(Binder *b, const AstExpr *ast, const FuncDef *def)
{
    const AstFunction *call = ast->u.function;
    Scope *scope = b->scope;
    Slice name = call->name.text;
    if (scope == NULL || (scope->flags & SCOPE_AGG) == 0) {
        bool order = scope != NULL && (scope->flags & (SCOPE_ORDER | SCOPE_IN_AGG)) == SCOPE_ORDER;
        return bind__fail_at(b, ast->span, "misuse of aggregate%s %.*s()",
                             order ? ":" : " function", (int)name.bytes, name.p);
    }
    if (call->distinct && call->args.count != 1)
        return bind__fail_at(b, ast->span, "DISTINCT aggregates must have exactly one argument");
    bool ignore;
    if (!bind__authorize_call(b, def, &ignore)) return NULL;
    if (ignore) return bind__const(b, cell_null(), ast->span);
    BoundAgg *agg = BIND_NEW(b, BoundAgg);
    if (agg == NULL) return NULL;
    agg->def = def;
    agg->star = call->star;
    agg->distinct = call->distinct;
    AggTrack track = {.outer = b->track, .deepest = -1};
    b->track = &track;
    u32 flags = scope->flags;
    scope->flags = (flags & ~(u32)(SCOPE_AGG | SCOPE_WIN)) | SCOPE_IN_AGG;
    bool good = bind_agg_parts(b, agg, call);
    scope->flags = flags;
    b->track = track.outer;
    if (!good) return NULL;
    Scope *owner = scope;
    while (track.deepest >= 0 && owner->outer != NULL && (i64)owner->level > track.deepest)
        owner = owner->outer;
    bool wrong = owner == scope ? (flags & SCOPE_WHERE) != 0
                                : (owner->flags & SCOPE_AGG) == 0 || owner->core == NULL;
    if (wrong) {
        return bind__fail_at(b, ast->span, "misuse of aggregate: %.*s()", (int)name.bytes, name.p);
    }
    return aggregate_expr(b, owner, agg, ast);
}

/* ALTER TABLE only asks what the names of tables and columns mean: whether this connection has the
   function is not its business. */
static PlanExpr *
unknown_call(Binder *b, const AstFunction *call, Span span)
{
    for (u32 i = 0; i < call->args.count; i++) {
        if (bind__expr(b, call->args.items[i]) == NULL) return NULL;
    }
    if (call->filter != NULL && bind__expr(b, call->filter) == NULL) return NULL;
    return bind__const(b, cell_null(), span);
}

PlanExpr *
bind__function(Binder *b, const AstExpr *ast)
{
    const AstFunction *call = ast->u.function;
    Slice name = call->name.text;
    bool exists;
    if (b->ctx->notes != NULL && call->over == NULL &&
        func_find(b->ctx->functions, name, call->args.count, &exists) == NULL)
        return unknown_call(b, call, ast->span);
    if (call->over != NULL && !bind__window_form(b, ast)) return NULL;
    const FuncDef *def = find_function(b, name, call->args.count, ast->span);
    if (def == NULL) return NULL;
    if (call->over != NULL) return bind__window_call(b, ast, def);
    if (def->kind == FUNC_WINDOW) {
        return bind__fail_at(b, ast->span, "misuse of window function %.*s()", (int)name.bytes,
                             name.p);
    }
    if (def->kind == FUNC_AGGREGATE) return bind__aggregate(b, ast, def);
    if (call->filter != NULL) {
        return bind__fail_at(b, ast->span, "FILTER may not be used with non-aggregate %.*s()",
                             (int)name.bytes, name.p);
    }
    if (call->order_by.count > 0) {
        return bind__fail_at(b, ast->span, "ORDER BY may not be used with non-aggregate %.*s()",
                             (int)name.bytes, name.p);
    }
    ExprList args = {0};
    for (u32 i = 0; i < call->args.count; i++) {
        if (!bind__push(b, &args, bind__expr(b, call->args.items[i]))) return NULL;
    }
    if (args.count > 0) def = own_version(b, def, &args, args.items[0]);
    return scalar_call(b, def, &args, ast->span);
}
