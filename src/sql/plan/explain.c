/*
 * explain.c -- EXPLAIN QUERY PLAN: the plan in SQLite's words.
 *
 * Rows are (id, parent, notused, detail).  A node that has no line of its own passes its parent's
 * id on to its inputs.
 */
#include "sql/plan/build.h"

typedef struct Explain {
    Binder *b;
    PlanExpr ***rows;
    u32 count, capacity;
    i64 next_id;
    bool *shown; /* By number of a material. */
} Explain;

static i64
add_line(Explain *x, i64 parent, const char *text)
{
    Binder *b = x->b;
    if (text == NULL) {
        if (b->err == OK) bind__fail(b, ERR_NOMEM, "out of memory");
        return 0;
    }
    if (x->count == x->capacity) {
        u32 capacity = x->capacity == 0 ? 16 : x->capacity * 2;
        PlanExpr ***rows = KEEP_ARRAY(b, PlanExpr **, capacity);
        if (rows == NULL) return 0;
        if (x->count > 0) memcpy(rows, x->rows, x->count * sizeof(*rows));
        x->rows = rows;
        x->capacity = capacity;
    }
    i64 id = ++x->next_id;
    PlanExpr **row = KEEP_ARRAY(b, PlanExpr *, 4);
    if (row == NULL) return 0;
    Cell cells[4] = {cell_int(id), cell_int(parent), cell_int(0), cell_text(text, strlen(text))};
    for (u32 i = 0; i < 4; i++) {
        row[i] = KEEP_NEW(b, PlanExpr);
        if (row[i] == NULL) return 0;
        row[i]->op = PX_CONST;
        row[i]->u.constant = cells[i];
    }
    x->rows[x->count++] = row;
    return id;
}

static void explain_node(Explain *x, const PlanNode *node, i64 parent);

static void
explain_sub(Explain *x, const PlanSub *sub, i64 parent, const char *kind)
{
    char *text = arena_printf(x->b->arena, "%s%s %u", sub->correlated ? "CORRELATED " : "", kind,
                              sub->number + 1);
    explain_node(x, sub->root, add_line(x, parent, text));
}

static void
explain_expr(Explain *x, const PlanExpr *e, i64 parent)
{
    if (e == NULL || (e->flags & PX_FLAG_HAS_SUB) == 0 || x->b->err != OK) return;
    for (u32 i = 0; i < e->arg_count; i++)
        explain_expr(x, e->arg[i], parent);
    if (e->op == PX_IN_SUB) explain_sub(x, e->u.sub, parent, "LIST SUBQUERY");
    if (e->op == PX_EXISTS || e->op == PX_SCALAR)
        explain_sub(x, e->u.sub, parent, "SCALAR SUBQUERY");
    if (e->op == PX_SUB_COLUMN && e->u.sub_column.column == 0)
        explain_sub(x, e->u.sub_column.sub, parent, "SCALAR SUBQUERY");
}

static void
explain_list(Explain *x, PlanExpr *const *list, u32 count, i64 parent)
{
    for (u32 i = 0; i < count; i++)
        explain_expr(x, list[i], parent);
}

static void
explain_scan(Explain *x, const PlanNode *node, i64 parent)
{
    const PlanScan *scan = &node->u.scan;
    i64 id = add_line(x, parent, node->eqp);
    (void)id;
    for (u32 i = 0; i < scan->eq_count; i++) {
        if (scan->eq[i].in_sub != NULL) explain_sub(x, scan->eq[i].in_sub, parent, "LIST SUBQUERY");
        explain_expr(x, scan->eq[i].value, parent);
    }
    explain_expr(x, scan->low, parent);
    explain_expr(x, scan->high, parent);
    explain_expr(x, scan->filter, parent);
}

static void
explain_args(Explain *x, const PlanScanArg *arg, u32 count, i64 parent)
{
    for (u32 i = 0; i < count; i++) {
        const PlanKeyPart *part = &arg[i].part;
        if (part->in_sub != NULL) explain_sub(x, part->in_sub, parent, "LIST SUBQUERY");
        explain_expr(x, part->value, parent);
        explain_list(x, part->in_list, part->in_count, parent);
    }
}

static void
explain_compound(Explain *x, const PlanNode *node, i64 parent)
{
    if (node->u.compound.op == SET_UNION_ALL) {
        i64 id = add_line(x, parent, "COMPOUND QUERY");
        for (u32 i = 0; i < node->u.compound.arm_count; i++) {
            const char *words = i == 0 ? "LEFT-MOST SUBQUERY" : "UNION ALL";
            explain_node(x, node->u.compound.arm[i], add_line(x, id, words));
        }
        return;
    }
    static const char *const words[] = {[SET_UNION] = "MERGE (UNION)",
                                        [SET_EXCEPT] = "MERGE (EXCEPT)",
                                        [SET_INTERSECT] = "MERGE (INTERSECT)"};
    i64 id = add_line(x, parent, words[node->u.compound.op]);
    explain_node(x, node->u.compound.arm[0], add_line(x, id, "LEFT"));
    explain_node(x, node->u.compound.arm[1], add_line(x, id, "RIGHT"));
}

static void
explain_join(Explain *x, const PlanNode *node, i64 parent)
{
    explain_node(x, node->input, parent);
    explain_node(x, node->right, parent);
    if (node->kind == PLAN_HASH_JOIN) {
        explain_expr(x, node->u.hash.condition, parent);
    } else {
        explain_expr(x, node->u.loop.condition, parent);
    }
}

static void
explain_group(Explain *x, const PlanNode *node, i64 parent)
{
    explain_node(x, node->input, parent);
    explain_list(x, node->u.group.key, node->u.group.key_count, parent);
    for (u32 i = 0; i < node->u.group.agg_count; i++) {
        const PlanAgg *agg = &node->u.group.agg[i];
        explain_list(x, agg->arg, agg->arg_count, parent);
        if (agg->distinct) {
            add_line(x, parent,
                     arena_printf(x->b->arena, "USE TEMP B-TREE FOR %s(DISTINCT)", agg->def->name));
        }
    }
    if (node->u.group.key_count > 0 && !node->u.group.ordered)
        add_line(x, parent, "USE TEMP B-TREE FOR GROUP BY");
}

/* SQLite makes each frame a subquery around the rows that it sees. */
static void
explain_window(Explain *x, const PlanNode *node, i64 parent)
{
    const PlanWindow *window = node->u.window;
    u32 levels = window->level_count;
    i64 *above = BIND_ARRAY(x->b, i64, levels + 1);
    if (above == NULL) return;
    above[0] = parent;
    for (u32 i = 0; i < levels; i++) {
        char *text = arena_printf(x->b->arena, "CO-ROUTINE (subquery-%u)", window->level[i]);
        above[i + 1] = add_line(x, above[i], text);
    }
    explain_node(x, node->input, above[levels]);
    explain_list(x, window->partition, window->partition_count, above[levels]);
    for (u32 i = 0; i < window->frame_count; i++) {
        const PlanFrame *frame = &window->frame[i];
        for (u32 k = 0; k < frame->call_count; k++) {
            explain_list(x, frame->call[k].arg, frame->call[k].arg_count, above[levels]);
            explain_expr(x, frame->call[k].filter, above[levels]);
        }
    }
    for (u32 i = levels; i-- > 0;) {
        char *text = arena_printf(x->b->arena, "SCAN (subquery-%u)", window->level[i]);
        add_line(x, above[i], text);
    }
}

static void
explain_below(Explain *x, const PlanNode *node, i64 parent)
{
    switch ((PlanKind)node->kind) {
    case PLAN_ONE_ROW: add_line(x, parent, "SCAN CONSTANT ROW"); break;
    case PLAN_VALUES:
        add_line(
            x, parent,
            node->u.values.row_count == 1
                ? "SCAN CONSTANT ROW"
                : arena_printf(x->b->arena, "SCAN %u-ROW VALUES CLAUSE", node->u.values.row_count));
        break;
    case PLAN_SCAN: explain_scan(x, node, parent); break;
    case PLAN_OR_SCAN: {
        i64 id = add_line(x, parent, "MULTI-INDEX OR");
        for (u32 i = 0; i < node->u.or_scan.term_count; i++) {
            char *text = arena_printf(x->b->arena, "INDEX %u", i + 1);
            explain_node(x, node->u.or_scan.term[i], add_line(x, id, text));
        }
        explain_expr(x, node->u.or_scan.filter, parent);
        break;
    }
    case PLAN_FILTER:
        explain_node(x, node->input, parent);
        explain_expr(x, node->u.filter.condition, parent);
        break;
    case PLAN_PROJECT:
        explain_node(x, node->input, parent);
        explain_list(x, node->u.project.expr, node->columns, parent);
        break;
    case PLAN_LOOP_JOIN:
    case PLAN_HASH_JOIN: explain_join(x, node, parent); break;
    case PLAN_SORT:
        explain_node(x, node->input, parent);
        if (!node->u.sort.of_targets) add_line(x, parent, "USE TEMP B-TREE FOR ORDER BY");
        break;
    case PLAN_GROUP: explain_group(x, node, parent); break;
    case PLAN_WINDOW: explain_window(x, node, parent); break;
    case PLAN_DISTINCT:
        explain_node(x, node->input, parent);
        if (!node->u.distinct.ordered) add_line(x, parent, "USE TEMP B-TREE FOR DISTINCT");
        break;
    case PLAN_COMPOUND: explain_compound(x, node, parent); break;
    case PLAN_RECURSIVE: {
        i64 id = add_line(x, parent, "SETUP");
        explain_node(x, node->u.recursive.initial, id);
        id = add_line(x, parent, "RECURSIVE STEP");
        explain_node(x, node->u.recursive.step, id);
        break;
    }
    case PLAN_TABLE_FUNC:
        add_line(x, parent, node->eqp);
        explain_args(x, node->u.table_func.arg, node->u.table_func.arg_count, parent);
        break;
    case PLAN_HOST_SCAN:
        add_line(x, parent, node->eqp);
        explain_args(x, node->u.host_scan.arg, node->u.host_scan.arg_count, parent);
        break;
    case PLAN_COUNT: add_line(x, parent, node->eqp); break;
    default:
        if (node->input != NULL) explain_node(x, node->input, parent);
        break;
    }
}

/* Shared rows: their plan is shown where they are read first. */
static void
explain_cte_scan(Explain *x, const PlanNode *node, i64 parent)
{
    u32 number = node->u.cte_scan.material_no;
    const PlanNode *root = x->b->plan->material[number];
    const char *text = node->eqp != NULL ? node->eqp : "SCAN";
    if (root != NULL && !x->shown[number]) {
        x->shown[number] = true;
        const char *name = strchr(text, ' ');
        i64 id = add_line(x, parent,
                          arena_printf(x->b->arena, "MATERIALIZE%s", name == NULL ? "" : name));
        explain_node(x, root->input, id);
    }
    add_line(x, parent, text);
}

static void
explain_node(Explain *x, const PlanNode *node, i64 parent)
{
    if (node == NULL || x->b->err != OK) return;
    if (node->kind == PLAN_CTE_SCAN) {
        explain_cte_scan(x, node, parent);
        return;
    }
    if (node->eqp != NULL && node->kind != PLAN_SCAN && node->kind != PLAN_COUNT &&
        node->kind != PLAN_TABLE_FUNC && node->kind != PLAN_HOST_SCAN) {
        /* A subquery of FROM stands above its body; what scans it comes later. */
        explain_below(x, node, add_line(x, parent, node->eqp));
        const char *name = strchr(node->eqp, ' ');
        add_line(x, parent, arena_printf(x->b->arena, "SCAN%s", name == NULL ? "" : name));
        return;
    }
    explain_below(x, node, parent);
}

/* What is written: one row of VALUES has no words of its own, only its subqueries have. */
static void
explain_written(Explain *x, const PlanNode *source)
{
    if (source == NULL || source->kind == PLAN_ONE_ROW) return;
    if (source->kind == PLAN_VALUES && source->u.values.row_count == 1) {
        explain_list(x, source->u.values.row[0], source->columns, 0);
        return;
    }
    explain_node(x, source, 0);
}

bool
plan__explain(Binder *b)
{
    Explain x = {.b = b};
    Plan *plan = b->plan;
    x.shown = BIND_ARRAY(b, bool, plan->material_count);
    if (x.shown == NULL) return false;
    if (plan->write != NULL) explain_written(&x, plan->write->source);
    explain_node(&x, plan->root, 0);
    if (b->err != OK) return false;
    PlanNode *node = plan__node(b, PLAN_VALUES, 4);
    if (node == NULL) return false;
    node->u.values.row_count = x.count;
    node->u.values.row = x.rows;
    plan->root = node;
    plan->write = NULL;
    plan->read_only = true;
    plan->klass = PLAN_TOTAL;
    static const char *const names[] = {"id", "parent", "notused", "detail"};
    QueryColumn columns[4] = {0};
    for (u32 i = 0; i < 4; i++)
        columns[i].name = names[i];
    return plan__columns(b, columns, 4);
}
