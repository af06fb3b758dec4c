/*
 * window.c -- window functions: the WINDOW clause, OVER, frames, and which calls share a pass.
 *
 * A call belongs to the innermost SELECT, whatever its arguments refer to.  Its arguments may hold
 * aggregates of that SELECT but no window functions.
 */
#include "sql/bind/bind.h"

#include "sql/parse/walk.h"

STATIC_ASSERT((int)AST_FRAME_ROWS == (int)FRAME_ROWS && (int)AST_FRAME_GROUPS == (int)FRAME_GROUPS);
STATIC_ASSERT((int)AST_BOUND_UNBOUNDED_PRECEDING == (int)BOUND_UNBOUNDED_PRECEDING &&
              (int)AST_BOUND_CURRENT_ROW == (int)BOUND_CURRENT_ROW &&
              (int)AST_BOUND_UNBOUNDED_FOLLOWING == (int)BOUND_UNBOUNDED_FOLLOWING);
STATIC_ASSERT((int)AST_EXCLUDE_CURRENT_ROW == (int)EXCLUDE_CURRENT_ROW &&
              (int)AST_EXCLUDE_WRITTEN_NO_OTHERS == (int)EXCLUDE_NO_OTHERS);

/* ---- named windows ---- */

static const AstWindow *
find_window(Binder *b, const AstWindow *list, u32 count, Slice name)
{
    for (u32 i = count; i-- > 0;) {
        if (slice_equal_nocase(list[i].name.text, name)) return &list[i];
    }
    return bind__fail(b, ERR_SQL, "no such window: %.*s", (int)name.bytes, name.p);
}

/* Fill in what `window` takes over from its base. */
static bool
take_base(Binder *b, AstWindow *window, const AstWindow *list, u32 count)
{
    Slice name = window->base.text;
    const AstWindow *base = find_window(b, list, count, name);
    if (base == NULL) return false;
    const char *clash = NULL;
    if (window->partition_by.count > 0) {
        clash = "PARTITION clause";
    } else if (base->order_by.count > 0 && window->order_by.count > 0) {
        clash = "ORDER BY clause";
    } else if (base->has_frame) {
        clash = "frame specification";
    }
    if (clash != NULL) {
        bind__fail(b, ERR_SQL, "cannot override %s of window: %.*s", clash, (int)name.bytes,
                   name.p);
        return false;
    }
    window->partition_by = base->partition_by;
    if (base->order_by.count > 0) window->order_by = base->order_by;
    window->base = (AstName){0};
    return true;
}

/* A base must stand further left; that of the first window is not looked at, as in SQLite. */
bool
bind__window_clause(Binder *b, Scope *scope, const AstArm *arm)
{
    if (arm->window_count == 0) return true;
    AstWindow *list = BIND_ARRAY(b, AstWindow, arm->window_count);
    if (list == NULL) return false;
    for (u32 i = 0; i < arm->window_count; i++) {
        list[i] = arm->windows[i];
        if (i > 0 && ast_name_present(&list[i].base) && !take_base(b, &list[i], list, i))
            return false;
    }
    scope->window = list;
    scope->window_count = arm->window_count;
    return true;
}

bool
bind__window_names(Binder *b, const AstArm *arm)
{
    if (b->ctx->notes == NULL) return true;
    for (u32 i = 0; i < arm->window_count; i++) {
        const AstWindow *window = &arm->windows[i];
        for (u32 k = 0; k < window->partition_by.count; k++) {
            if (bind__expr(b, window->partition_by.items[k]) == NULL) return false;
        }
        for (u32 k = 0; k < window->order_by.count; k++) {
            if (bind__expr(b, window->order_by.items[k].expr) == NULL) return false;
        }
    }
    return true;
}

static bool
resolve_over(Binder *b, const Scope *scope, const AstWindow *over, AstWindow *out)
{
    *out = *over;
    if (over->only_name) {
        const AstWindow *named = find_window(b, scope->window, scope->window_count,
                                             over->base.text);
        if (named == NULL) return false;
        *out = *named;
        return true;
    }
    if (!ast_name_present(&over->base)) return true;
    return take_base(b, out, scope->window, scope->window_count);
}

/* ---- frames ---- */

/* Frame offsets are constants of the simplest kind; SQLite takes any other one for NULL. */
static bool
steady_part(void *arg, const AstExpr *expr)
{
    bool *steady = arg;
    switch (expr->kind) {
    case AST_EXPR_COLUMN: {
        const AstColumnRef *ref = &expr->u.column;
        bool truth = ref->qualifier == NULL && ref->name.quote == AST_QUOTE_NONE &&
                     (slice_equal_nocase(ref->name.text, SLICE_LITERAL("true")) ||
                      slice_equal_nocase(ref->name.text, SLICE_LITERAL("false")));
        if (!truth) *steady = false;
        break;
    }
    case AST_EXPR_BINARY:
        if (expr->op == AST_BINARY_ARROW || expr->op == AST_BINARY_ARROW_TEXT) *steady = false;
        break;
    case AST_EXPR_CURRENT:
    case AST_EXPR_LIKE:
    case AST_EXPR_EXISTS:
    case AST_EXPR_SUBQUERY:
    case AST_EXPR_FUNCTION:
    case AST_EXPR_RAISE: *steady = false; break;
    default: break;
    }
    return *steady;
}

static bool
steady_select(void *arg, const AstSelect *select)
{
    (void)select;
    *(bool *)arg = false;
    return false;
}

static bool
bind_offset(Binder *b, const AstExpr *ast, PlanExpr **out)
{
    *out = NULL;
    if (ast == NULL) return true;
    bool steady = true;
    AstVisitor visitor = {.arg = &steady, .expr = steady_part, .select = steady_select};
    ast_walk_expr(&visitor, ast);
    Scope *scope = b->scope;
    b->scope = NULL;
    *out = steady ? bind__expr(b, ast) : bind__const(b, cell_null(), ast->span);
    b->scope = scope;
    return *out != NULL;
}

static bool
bind_order(Binder *b, BoundPass *pass, const AstOrderTerms *terms)
{
    pass->order = BIND_ARRAY(b, PlanSortKey, terms->count);
    if (pass->order == NULL) return false;
    for (u32 i = 0; i < terms->count; i++) {
        const AstOrderTerm *term = &terms->items[i];
        PlanExpr *e = bind__expr(b, term->expr);
        if (e == NULL) return false;
        bool desc = term->sort == AST_SORT_DESC;
        pass->order[i] = (PlanSortKey){
            .expr = e,
            .collation = bind__need_collation(
                b, bind__collation_or_binary(bind__carried_collation(e))),
            .desc = desc,
            .nulls_last = term->nulls == AST_NULLS_DEFAULT ? desc : term->nulls == AST_NULLS_LAST};
    }
    pass->order_count = terms->count;
    return true;
}

/* The frames of these functions are what they need, whatever was written. */
static bool
coerce_frame(Binder *b, BoundPass *pass, const FuncDef *def)
{
    static const struct {
        u8 unit, start, end;
    } frames[] = {
        [FUNC_WINDOW_ROW_NUMBER] = {FRAME_ROWS, BOUND_UNBOUNDED_PRECEDING, BOUND_CURRENT_ROW},
        [FUNC_WINDOW_RANK] = {FRAME_RANGE, BOUND_UNBOUNDED_PRECEDING, BOUND_CURRENT_ROW},
        [FUNC_WINDOW_DENSE_RANK] = {FRAME_RANGE, BOUND_UNBOUNDED_PRECEDING, BOUND_CURRENT_ROW},
        [FUNC_WINDOW_PERCENT_RANK] = {FRAME_GROUPS, BOUND_CURRENT_ROW, BOUND_UNBOUNDED_FOLLOWING},
        [FUNC_WINDOW_CUME_DIST] = {FRAME_GROUPS, BOUND_FOLLOWING, BOUND_UNBOUNDED_FOLLOWING},
        [FUNC_WINDOW_NTILE] = {FRAME_ROWS, BOUND_CURRENT_ROW, BOUND_UNBOUNDED_FOLLOWING},
        [FUNC_WINDOW_LAG] = {FRAME_ROWS, BOUND_UNBOUNDED_PRECEDING, BOUND_CURRENT_ROW},
        [FUNC_WINDOW_LEAD] = {FRAME_ROWS, BOUND_UNBOUNDED_PRECEDING, BOUND_UNBOUNDED_FOLLOWING},
    };
    if (def->kind != FUNC_WINDOW || def->kernel >= COUNT_OF(frames)) return true;
    pass->unit = frames[def->kernel].unit;
    pass->start = frames[def->kernel].start;
    pass->end = frames[def->kernel].end;
    pass->exclude = EXCLUDE_NOTHING;
    pass->start_offset = pass->end_offset = NULL;
    if (pass->start != BOUND_FOLLOWING) return true;
    pass->start_offset = bind__const(b, cell_int(1), (Span){0, 0});
    return pass->start_offset != NULL;
}

/* Fail with this, whatever has failed before. */
static bool
outweigh(Binder *b, const char *text)
{
    if (b->err != OK) {
        err_clear(b->msg);
        b->err = OK;
    }
    bind__fail(b, ERR_SQL, "%s", text);
    return false;
}

static bool
bind_pass(Binder *b, const AstFunction *call, const FuncDef *def, BoundPass *pass)
{
    AstWindow over;
    bool resolved = resolve_over(b, b->scope, call->over, &over);
    if (!resolved && (over.only_name || b->err != ERR_SQL)) return false;
    /* What is found from here on outweighs a clash with the base window, as in SQLite. */
    pass->unit = (u8)over.unit;
    pass->start = (u8)over.start.kind;
    pass->end = (u8)over.end.kind;
    pass->exclude = (u8)over.exclude;
    if (over.unit == AST_FRAME_RANGE && (over.start.offset != NULL || over.end.offset != NULL) &&
        over.order_by.count != 1)
        return outweigh(b,
                        "RANGE with offset PRECEDING/FOLLOWING requires one ORDER BY expression");
    if (def->kind == FUNC_WINDOW && call->filter != NULL)
        return outweigh(b, "FILTER clause may only be used with aggregate window functions");
    if (!resolved) return false;
    if (!bind_offset(b, over.start.offset, &pass->start_offset) ||
        !bind_offset(b, over.end.offset, &pass->end_offset) || !coerce_frame(b, pass, def))
        return false;
    for (u32 i = 0; i < over.partition_by.count; i++) {
        PlanExpr *e = bind__expr(b, over.partition_by.items[i]);
        if (e != NULL) (void)bind__need_collation(b, bind__carried_collation(e));
        if (!bind__push(b, &pass->partition, e)) return false;
    }
    return bind_order(b, pass, &over.order_by);
}

/* ---- passes and calls of a core ---- */

static bool
same_expr(const PlanExpr *a, const PlanExpr *c)
{
    if (a == NULL || c == NULL) return a == c;
    return bind__equal(a, c);
}

static bool
same_list(const ExprList *a, const ExprList *c)
{
    if (a->count != c->count) return false;
    for (u32 i = 0; i < a->count; i++) {
        if (!bind__equal(a->items[i], c->items[i])) return false;
    }
    return true;
}

static bool
same_pass(const BoundPass *a, const BoundPass *c)
{
    if (a->unit != c->unit || a->start != c->start || a->end != c->end ||
        a->exclude != c->exclude || a->order_count != c->order_count ||
        !same_expr(a->start_offset, c->start_offset) || !same_expr(a->end_offset, c->end_offset) ||
        !same_list(&a->partition, &c->partition))
        return false;
    for (u32 i = 0; i < a->order_count; i++) {
        const PlanSortKey *x = &a->order[i], *y = &c->order[i];
        if (x->desc != y->desc || x->nulls_last != y->nulls_last || x->collation != y->collation ||
            !bind__equal(x->expr, y->expr))
            return false;
    }
    return true;
}

static bool
core_push_pass(Binder *b, Core *core, const BoundPass *pass, u32 *number_out)
{
    BoundPass **list = BIND_ARRAY(b, BoundPass *, core->pass_count + 1);
    BoundPass *kept = list == NULL ? NULL : BIND_NEW(b, BoundPass);
    if (kept == NULL) return false;
    if (core->pass_count > 0) memcpy(list, core->pass, core->pass_count * sizeof(*list));
    *kept = *pass;
    core->pass = list;
    *number_out = core->pass_count;
    core->pass[core->pass_count++] = kept;
    return true;
}

static bool
core_add_pass(Binder *b, Core *core, const BoundPass *pass, u32 *number_out)
{
    for (u32 i = 0; i < core->pass_count; i++) {
        *number_out = i;
        if (!core->pass[i]->is_copy && same_pass(core->pass[i], pass)) return true;
    }
    return core_push_pass(b, core, pass, number_out);
}

static bool
same_win(const BoundWin *a, const BoundWin *c)
{
    return a->def == c->def && a->pass == c->pass && a->collation == c->collation &&
           same_list(&a->args, &c->args) && same_expr(a->filter, c->filter);
}

static bool
core_push_win(Binder *b, Core *core, BoundWin *win)
{
    if (core->win_count == core->win_capacity) {
        u32 capacity = core->win_capacity == 0 ? 4 : core->win_capacity * 2;
        BoundWin **list = BIND_ARRAY(b, BoundWin *, capacity);
        if (list == NULL) return false;
        if (core->win_count > 0) memcpy(list, core->win, core->win_count * sizeof(*list));
        core->win = list;
        core->win_capacity = capacity;
    }
    win->core = core;
    win->number = core->win_count;
    core->win[core->win_count++] = win;
    return true;
}

/* Calls that say the same are one, unless they count their calls. */
static bool
core_add_win(Binder *b, Core *core, BoundWin *win, u8 klass, BoundWin **win_out)
{
    for (u32 i = 0; i < core->win_count && klass != PLAN_VOLATILE; i++) {
        *win_out = core->win[i];
        if (core->win[i]->copy_of == NULL && same_win(core->win[i], win)) return true;
    }
    *win_out = win;
    return core_push_win(b, core, win);
}

/* ---- calls ---- */

bool
bind__window_form(Binder *b, const AstExpr *ast)
{
    const AstFunction *call = ast->u.function;
    if (call->distinct) {
        bind__fail(b, ERR_SQL, "DISTINCT is not supported for window functions");
        return false;
    }
    if (call->order_by.count > 0) {
        bind__fail_at(b, ast->span, "ORDER BY may not be used with non-aggregate %.*s()",
                      (int)call->name.text.bytes, call->name.text.p);
        return false;
    }
    return true;
}

static bool
bind_parts(Binder *b, const AstFunction *call, BoundWin *win, BoundPass *pass)
{
    for (u32 i = 0; i < call->args.count; i++) {
        if (!bind__push(b, &win->args, bind__expr(b, call->args.items[i]))) return false;
    }
    for (u32 i = 0; i < win->args.count && win->collation == NULL; i++)
        win->collation = bind__carried_collation(win->args.items[i]);
    win->collation = bind__collation_or_binary(win->collation);
    if (!bind_pass(b, call, win->def, pass)) return false;
    if (call->filter == NULL) return true;
    win->filter = bind__expr(b, call->filter);
    return win->filter != NULL;
}

static void
raise_class(u8 *klass, const PlanExpr *e)
{
    if (e != NULL && e->klass > *klass) *klass = e->klass;
}

static u8
window_class(const BoundWin *win, const BoundPass *pass)
{
    u8 klass = bind__call_class(win->def, &win->args);
    /* Offsets, ntile() and nth_value() are checked while running. */
    if (pass->start_offset != NULL || pass->end_offset != NULL ||
        (win->def->kind == FUNC_WINDOW &&
         (win->def->kernel == FUNC_WINDOW_NTILE || win->def->kernel == FUNC_WINDOW_NTH_VALUE))) {
        if (klass < PLAN_FALLIBLE) klass = PLAN_FALLIBLE;
    }
    raise_class(&klass, win->filter);
    for (u32 i = 0; i < win->args.count; i++)
        raise_class(&klass, win->args.items[i]);
    for (u32 i = 0; i < pass->partition.count; i++)
        raise_class(&klass, pass->partition.items[i]);
    for (u32 i = 0; i < pass->order_count; i++)
        raise_class(&klass, pass->order[i].expr);
    return klass;
}

static PlanExpr *
window_expr(Binder *b, BoundWin *win, const BoundPass *pass, const AstExpr *ast)
{
    Core *core = b->scope->core;
    BoundWin *kept;
    u8 klass = window_class(win, pass);
    if (!core_add_pass(b, core, pass, &win->pass)) return NULL;
    if (!core_add_win(b, core, win, klass, &kept)) return NULL;
    PlanExpr *e = bind__new(b, PX_BOUND_WIN, 0, ast->span);
    if (e == NULL) return NULL;
    e->u.bound.of = kept;
    e->klass = klass;
    e->flags |= PX_FLAG_HAS_WIN | PX_FLAG_READS_ROW;
    for (u32 i = 0; i < win->args.count; i++) {
        e->flags |= (u16)(win->args.items[i]->flags & PX_FLAG_HAS_AGG);
        if ((win->args.items[i]->flags & PX_FLAG_COLLATE) == 0 || e->collation != NULL) continue;
        e->flags |= PX_FLAG_COLLATE;
        e->collation = win->args.items[i]->collation;
    }
    bind__track_level(b, b->scope->level);
    return e;
}

PlanExpr *
bind__window_call(Binder *b, const AstExpr *ast, const FuncDef *def)
{
    const AstFunction *call = ast->u.function;
    Slice name = call->name.text;
    bool slides = def->kind == FUNC_WINDOW || def->inverse != NULL ||
                  (def->flags & FUNC_MINMAX) != 0;
    if (def->kind == FUNC_SCALAR || !slides) {
        return bind__fail_at(b, ast->span, "%.*s() may not be used as a window function",
                             (int)name.bytes, name.p);
    }
    Scope *scope = b->scope;
    if (scope == NULL || scope->core == NULL || (scope->flags & SCOPE_WIN) == 0) {
        return bind__fail_at(b, ast->span, "misuse of window function %.*s()", (int)name.bytes,
                             name.p);
    }
    bool ignore;
    if (!bind__authorize_call(b, def, &ignore)) return NULL;
    if (ignore) return bind__const(b, cell_null(), ast->span);
    BoundWin *win = BIND_NEW(b, BoundWin);
    if (win == NULL) return NULL;
    win->def = def;
    BoundPass pass = {0};
    u32 flags = scope->flags;
    scope->flags &= ~(u32)SCOPE_WIN;
    bool good = bind_parts(b, call, win, &pass);
    scope->flags = flags;
    return good ? window_expr(b, win, &pass, ast) : NULL;
}

static bool
uses_first_pass(const PlanExpr *e)
{
    if (e->op == PX_BOUND_WIN) return ((const BoundWin *)e->u.bound.of)->pass == 0;
    for (u32 i = 0; i < e->arg_count; i++) {
        if ((e->arg[i]->flags & PX_FLAG_HAS_WIN) != 0 && uses_first_pass(e->arg[i])) return true;
    }
    return false;
}

static BoundWin *
win_copy(Binder *b, Core *core, const BoundWin *win)
{
    u32 number = 0;
    while (number < core->pass_count && !core->pass[number]->is_copy)
        number++;
    if (number == core->pass_count) {
        BoundPass pass = *core->pass[0];
        pass.is_copy = true;
        if (!core_push_pass(b, core, &pass, &number)) return NULL;
    }
    for (u32 i = 0; i < core->win_count; i++) {
        if (core->win[i]->copy_of == win) return core->win[i];
    }
    BoundWin *copy = BIND_NEW(b, BoundWin);
    if (copy == NULL) return NULL;
    *copy = *win;
    copy->pass = number;
    copy->copy_of = win;
    return core_push_win(b, core, copy) ? copy : NULL;
}

/* When ORDER BY names a result, SQLite repeats the result's calls of the outermost pass in the
   subquery around the rows, and the repeated values are what is sorted by and shown.  They differ
   where the frame depends on the order of rows that are equal to the window. */
PlanExpr *
bind__window_copy(Binder *b, Core *core, PlanExpr *result)
{
    if ((result->flags & PX_FLAG_HAS_WIN) == 0 || !uses_first_pass(result)) return result;
    PlanExpr *e = BIND_NEW(b, PlanExpr);
    if (e == NULL) return NULL;
    *e = *result;
    if (e->op == PX_BOUND_WIN) {
        e->u.bound.of = win_copy(b, core, result->u.bound.of);
        return e->u.bound.of == NULL ? NULL : e;
    }
    e->arg = BIND_ARRAY(b, PlanExpr *, e->arg_count);
    if (e->arg == NULL) return NULL;
    for (u32 i = 0; i < e->arg_count; i++) {
        e->arg[i] = bind__window_copy(b, core, result->arg[i]);
        if (e->arg[i] == NULL) return NULL;
    }
    return e;
}

void
bind__window_misuse(Binder *b, const PlanExpr *e)
{
    if (e->op == PX_BOUND_WIN) {
        const BoundWin *win = e->u.bound.of;
        bind__fail(b, ERR_SQL, "misuse of window function %s()", win->def->name);
        return;
    }
    for (u32 i = 0; i < e->arg_count && b->err == OK; i++) {
        if ((e->arg[i]->flags & PX_FLAG_HAS_WIN) != 0) bind__window_misuse(b, e->arg[i]);
    }
}
