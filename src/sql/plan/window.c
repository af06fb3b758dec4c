/*
 * window.c -- window functions: passes become stages, each a sort (where it is needed) and a
 * WINDOW node.
 *
 * SQLite runs the passes last to first, each on the output of the one before.  Passes that follow
 * each other and agree in PARTITION BY and ORDER BY are one stage here, for the rows and their
 * order are the same; only their frames differ.
 *
 * Cells.  A stage adds cells behind those of its input: first what must be computed before the
 * sort, then its calls.  References to calls are lowered before the number of cells below is known
 * (a group's bare columns are found while lowering), so they are kept in a list and get their
 * numbers at the end.
 */
#include "sql/plan/build.h"

typedef struct Stage {
    u32 first, last; /* Passes of the core. */
    PlanWindow *window;
    PlanWindowCall **call; /* Where the calls stand in `window`, by BoundWin.number; else NULL. */
    ExprList extra;        /* Computed below the sort. */
} Stage;

typedef struct WindowRef {
    PlanExpr *expr;
    u32 win;
} WindowRef;

struct Windows {
    Binder *b;
    Core *core;
    Stage *stage; /* In the order they run. */
    u32 stage_count;
    u32 number;   /* Of the first level, for EXPLAIN QUERY PLAN. */
    Query *order; /* What the first stage wants of its input; NULL: nothing. */
    WindowRef *ref;
    u32 ref_count, ref_capacity;
    u32 *cell;      /* By BoundWin.number */
    bool one_order; /* All passes see the rows in one order: copies say nothing new. */
};

/* ---- stages ---- */

static bool
same_rows(const BoundPass *a, const BoundPass *c)
{
    if (a->partition.count != c->partition.count || a->order_count != c->order_count) return false;
    for (u32 i = 0; i < a->partition.count; i++) {
        if (!bind__equal(a->partition.items[i], c->partition.items[i])) return false;
    }
    for (u32 i = 0; i < a->order_count; i++) {
        const PlanSortKey *x = &a->order[i], *y = &c->order[i];
        if (x->desc != y->desc || x->nulls_last != y->nulls_last || x->collation != y->collation ||
            !bind__equal(x->expr, y->expr))
            return false;
    }
    return true;
}

static u32
key_count(const BoundPass *pass)
{
    return pass->partition.count + pass->order_count;
}

/* Key `at` of the order that a pass wants, its expression bound. */
static PlanSortKey
pass_key(const BoundPass *pass, u32 at)
{
    if (at >= pass->partition.count) return pass->order[at - pass->partition.count];
    PlanExpr *e = pass->partition.items[at];
    return (PlanSortKey){.expr = e,
                         .collation = bind__collation_or_binary(bind__carried_collation(e))};
}

/* Do the first keys of `sorted` give the order that `wanted` asks for? */
static bool
order_covers(const BoundPass *sorted, const BoundPass *wanted)
{
    if (key_count(wanted) > key_count(sorted)) return false;
    for (u32 i = 0; i < key_count(wanted); i++) {
        PlanSortKey x = pass_key(sorted, i), y = pass_key(wanted, i);
        if (x.desc != y.desc || x.nulls_last != y.nulls_last || x.collation != y.collation ||
            !bind__equal(x.expr, y.expr))
            return false;
    }
    return true;
}

static bool
find_stages(Windows *w)
{
    const Core *core = w->core;
    w->stage = BIND_ARRAY(w->b, Stage, core->pass_count);
    if (w->stage == NULL) return false;
    for (u32 i = core->pass_count; i-- > 0;) {
        Stage *stage = w->stage_count == 0 ? NULL : &w->stage[w->stage_count - 1];
        if (stage == NULL || !same_rows(core->pass[stage->last], core->pass[i])) {
            stage = &w->stage[w->stage_count++];
            stage->last = i;
        }
        stage->first = i;
    }
    return true;
}

Windows *
plan__windows_new(Binder *b, Core *core)
{
    Windows *w = BIND_NEW(b, Windows);
    if (w == NULL) return NULL;
    w->b = b;
    w->core = core;
    w->number = b->select_count + 1;
    b->select_count += core->pass_count;
    w->cell = BIND_ARRAY(b, u32, core->win_count);
    if (w->cell == NULL || !find_stages(w)) return NULL;
    w->one_order = w->stage_count == 1;
    const BoundPass *pass = core->pass[w->stage[0].last];
    if (key_count(pass) == 0) return w;
    w->order = BIND_NEW(b, Query);
    OrderTerm *term = BIND_ARRAY(b, OrderTerm, key_count(pass));
    if (w->order == NULL || term == NULL) return NULL;
    for (u32 i = 0; i < key_count(pass); i++) {
        PlanSortKey key = pass_key(pass, i);
        term[i] = (OrderTerm){.result = -1,
                              .expr = key.expr,
                              .collation = key.collation,
                              .desc = key.desc,
                              .nulls_last = key.nulls_last};
    }
    w->order->order = term;
    w->order->order_count = key_count(pass);
    return w;
}

const Query *
plan__windows_order(const Windows *w)
{
    return w->order;
}

/* The rows leave in the order of the first pass; a constant key says nothing. */
bool
plan__windows_give_order(const Windows *w, const Query *query)
{
    const BoundPass *pass = w->core->pass[0];
    if (query->order_count > key_count(pass)) return false;
    for (u32 i = 0; i < query->order_count; i++) {
        PlanSortKey key = pass_key(pass, i);
        const OrderTerm *term = &query->order[i];
        if (term->desc != key.desc || term->nulls_last != key.nulls_last ||
            term->collation != key.collation || !bind__equal(term->expr, key.expr))
            return false;
    }
    return true;
}

PlanExpr *
plan__window_ref(Binder *b, Windows *w, const PlanExpr *e)
{
    if (w->ref_count == w->ref_capacity) {
        u32 capacity = w->ref_capacity == 0 ? 8 : w->ref_capacity * 2;
        WindowRef *list = BIND_ARRAY(b, WindowRef, capacity);
        if (list == NULL) return NULL;
        if (w->ref_count > 0) memcpy(list, w->ref, w->ref_count * sizeof(*list));
        w->ref = list;
        w->ref_capacity = capacity;
    }
    PlanExpr *column = plan__column(b, 0, e);
    if (column == NULL) return NULL;
    const BoundWin *win = e->u.bound.of;
    if (w->one_order && win->copy_of != NULL) win = win->copy_of;
    w->ref[w->ref_count++] = (WindowRef){column, win->number};
    return column;
}

/* ---- lowering ---- */

static bool
lower_call(Binder *b, const BoundWin *win, Env *env, PlanWindowCall *call)
{
    call->def = win->def;
    call->arg_count = win->args.count;
    call->arg = plan__lower_list(b, &win->args, env);
    call->collation = win->collation;
    if (win->filter != NULL) call->filter = plan__lower(b, win->filter, env);
    return b->err == OK;
}

static bool
lower_frame(Windows *w, Stage *stage, u32 at, Env *env, PlanFrame *frame)
{
    Binder *b = w->b;
    const Core *core = w->core;
    const BoundPass *pass = core->pass[at];
    frame->unit = pass->unit;
    frame->start = pass->start;
    frame->end = pass->end;
    frame->exclude = pass->exclude;
    if (pass->start_offset != NULL) frame->start_offset = plan__lower(b, pass->start_offset, NULL);
    if (pass->end_offset != NULL) frame->end_offset = plan__lower(b, pass->end_offset, NULL);
    for (u32 i = 0; i < core->win_count; i++)
        frame->call_count += core->win[i]->pass == at ? 1 : 0;
    frame->call = KEEP_ARRAY(b, PlanWindowCall, frame->call_count);
    if (frame->call == NULL || b->err != OK) return false;
    PlanWindowCall *call = frame->call;
    /* SQLite looks at the calls of a pass last to first. */
    for (u32 i = core->win_count; i-- > 0;) {
        if (core->win[i]->pass != at) continue;
        stage->call[i] = call;
        if (!lower_call(b, core->win[i], env, call++)) return false;
    }
    return true;
}

static bool
lower_rows(Binder *b, const BoundPass *pass, Env *env, PlanWindow *window)
{
    window->partition_count = pass->partition.count;
    window->partition = plan__lower_list(b, &pass->partition, env);
    window->partition_collation = KEEP_ARRAY(b, const Collation *, pass->partition.count);
    window->order_count = pass->order_count;
    window->order = KEEP_ARRAY(b, PlanSortKey, pass->order_count);
    if (window->partition == NULL || window->partition_collation == NULL || window->order == NULL)
        return false;
    for (u32 i = 0; i < pass->partition.count; i++)
        window->partition_collation[i] = pass_key(pass, i).collation;
    for (u32 i = 0; i < pass->order_count; i++) {
        window->order[i] = pass->order[i];
        window->order[i].expr = plan__lower(b, pass->order[i].expr, env);
        if (window->order[i].expr == NULL) return false;
    }
    return true;
}

static bool
has_calls(const Core *core, u32 pass)
{
    for (u32 i = 0; i < core->win_count; i++) {
        if (core->win[i]->pass == pass) return true;
    }
    return false;
}

static bool
lower_stage(Windows *w, Stage *stage, Env *env)
{
    Binder *b = w->b;
    PlanWindow *window = KEEP_NEW(b, PlanWindow);
    stage->window = window;
    stage->call = BIND_ARRAY(b, PlanWindowCall *, w->core->win_count);
    if (window == NULL || stage->call == NULL) return false;
    u32 passes = stage->last - stage->first + 1;
    window->frame = KEEP_ARRAY(b, PlanFrame, passes);
    window->level_count = passes;
    window->level = KEEP_ARRAY(b, u32, passes);
    if (window->frame == NULL || window->level == NULL) return false;
    if (!lower_rows(b, w->core->pass[stage->first], env, window)) return false;
    for (u32 i = 0; i < passes; i++) {
        window->level[i] = w->number + stage->first + i;
        /* The last pass runs first. */
        u32 at = stage->last - i;
        if (w->core->pass[at]->is_copy && (w->one_order || !has_calls(w->core, at))) continue;
        if (!lower_frame(w, stage, at, env, &window->frame[window->frame_count++])) return false;
    }
    return true;
}

bool
plan__windows_lower(Windows *w, Env *env)
{
    env->layout->windows = w;
    for (u32 i = 0; i < w->stage_count; i++) {
        if (!lower_stage(w, &w->stage[i], env)) return false;
    }
    return w->b->err == OK;
}

/* ---- nodes ---- */

/* The expression as a cell of the stage's sort, computed below it. */
static PlanExpr *
below_sort(Windows *w, Stage *stage, u32 width, PlanExpr *e)
{
    if (e->op == PX_COLUMN || e->op == PX_CONST) return e;
    PlanExpr *cell = plan__column(w->b, width + stage->extra.count, e);
    return cell != NULL && bind__push(w->b, &stage->extra, e) ? cell : NULL;
}

/* What may fail or counts calls is computed in the order of the scan, and keys once. */
static bool
move_below(Windows *w, Stage *stage, u32 width)
{
    PlanWindow *window = stage->window;
    for (u32 i = 0; i < window->partition_count; i++) {
        window->partition[i] = below_sort(w, stage, width, window->partition[i]);
        if (window->partition[i] == NULL) return false;
    }
    for (u32 i = 0; i < window->order_count; i++) {
        window->order[i].expr = below_sort(w, stage, width, window->order[i].expr);
        if (window->order[i].expr == NULL) return false;
    }
    for (u32 f = 0; f < window->frame_count; f++) {
        for (u32 i = 0; i < window->frame[f].call_count; i++) {
            PlanWindowCall *call = &window->frame[f].call[i];
            /* Subtypes do not come through a sort. */
            bool late = (call->def->flags & FUNC_SUBTYPE) != 0;
            for (u32 k = 0; k < call->arg_count && !late; k++) {
                if (call->arg[k]->klass == PLAN_TOTAL) continue;
                call->arg[k] = below_sort(w, stage, width, call->arg[k]);
                if (call->arg[k] == NULL) return false;
            }
            if (call->filter == NULL || call->filter->klass == PLAN_TOTAL) continue;
            call->filter = below_sort(w, stage, width, call->filter);
            if (call->filter == NULL) return false;
        }
    }
    return true;
}

static PlanNode *
over(Binder *b, PlanNode *input, PlanKind kind, u32 columns)
{
    PlanNode *node = plan__node(b, kind, columns);
    if (node == NULL) return NULL;
    node->input = input;
    node->rows = input->rows;
    node->klass = input->klass;
    return node;
}

static PlanNode *
extra_node(Windows *w, const Stage *stage, PlanNode *input)
{
    Binder *b = w->b;
    u32 width = input->columns, count = width + stage->extra.count;
    if (count == width) return input;
    PlanNode *node = over(b, input, PLAN_PROJECT, count);
    PlanExpr **exprs = node == NULL ? NULL : KEEP_ARRAY(b, PlanExpr *, count);
    if (exprs == NULL) return NULL;
    for (u32 i = 0; i < count; i++) {
        exprs[i] = i < width ? plan__column(b, i, NULL) : stage->extra.items[i - width];
        if (exprs[i] == NULL) return NULL;
        plan__class(node, exprs[i]);
    }
    node->u.project.expr = exprs;
    return node;
}

static PlanNode *
sort_stage(Windows *w, Stage *stage, PlanNode *input)
{
    Binder *b = w->b;
    PlanWindow *window = stage->window;
    if (!move_below(w, stage, input->columns)) return NULL;
    input = extra_node(w, stage, input);
    PlanNode *sort = input == NULL ? NULL : over(b, input, PLAN_SORT, input->columns);
    if (sort == NULL) return NULL;
    u32 keys = window->partition_count + window->order_count;
    PlanSortKey *key = KEEP_ARRAY(b, PlanSortKey, keys);
    if (key == NULL) return NULL;
    for (u32 i = 0; i < window->partition_count; i++) {
        key[i] = (PlanSortKey){.expr = window->partition[i],
                               .collation = window->partition_collation[i]};
    }
    for (u32 i = 0; i < window->order_count; i++)
        key[window->partition_count + i] = window->order[i];
    sort->u.sort.key_count = keys;
    sort->u.sort.key = key;
    return sort;
}

static void
class_of_stage(PlanNode *node, const PlanWindow *window)
{
    for (u32 f = 0; f < window->frame_count; f++) {
        for (u32 i = 0; i < window->frame[f].call_count; i++) {
            const PlanWindowCall *call = &window->frame[f].call[i];
            for (u32 k = 0; k < call->arg_count; k++)
                plan__class(node, call->arg[k]);
            plan__class(node, call->filter);
            if ((call->def->flags & FUNC_VOLATILE) != 0) node->klass = PLAN_VOLATILE;
        }
    }
    for (u32 i = 0; i < window->partition_count; i++)
        plan__class(node, window->partition[i]);
    for (u32 i = 0; i < window->order_count; i++)
        plan__class(node, window->order[i].expr);
}

static PlanNode *
stage_node(Windows *w, Stage *stage, PlanNode *input)
{
    u32 calls = 0;
    /* Without frames it only shows in EXPLAIN QUERY PLAN. */
    if (stage->window->frame_count == 0 && !w->b->explain) return input;
    for (u32 i = 0; i < w->core->win_count; i++) {
        if (stage->call[i] == NULL) continue;
        w->cell[i] = input->columns + calls++;
        stage->call[i]->cell = w->cell[i];
    }
    PlanNode *node = over(w->b, input, PLAN_WINDOW, input->columns + calls);
    if (node == NULL) return NULL;
    node->u.window = stage->window;
    class_of_stage(node, stage->window);
    return node;
}

PlanNode *
plan__windows_nodes(Windows *w, PlanNode *input, bool sorted)
{
    const Core *core = w->core;
    const BoundPass *order = sorted ? core->pass[w->stage[0].last] : NULL;
    for (u32 i = 0; i < w->stage_count && input != NULL; i++) {
        Stage *stage = &w->stage[i];
        const BoundPass *wanted = core->pass[stage->last];
        bool covered = key_count(wanted) == 0 || (order != NULL && order_covers(order, wanted));
        if (!covered) {
            input = sort_stage(w, stage, input);
            order = wanted;
        }
        if (input != NULL) input = stage_node(w, stage, input);
    }
    for (u32 i = 0; i < w->ref_count; i++)
        w->ref[i].expr->u.number = w->cell[w->ref[i].win];
    return input;
}
