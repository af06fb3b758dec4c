/*
 * finish.c -- what can be known of a plan only when it is whole: which nodes read registers that
 * are set outside of them.
 */
#include "sql/plan/build.h"

/* Sets of registers, one bit each. */
typedef struct Finish {
    Binder *b;
    u32 words;
    u64 *scratch;
} Finish;

static void walk_node(Finish *f, PlanNode *node, u64 *reads);
static void walk_list(Finish *f, PlanExpr *const *list, u32 count, u64 *reads);

static void
walk_sub(Finish *f, PlanSub *sub, u64 *reads)
{
    u64 *own = BIND_ARRAY(f->b, u64, f->words);
    if (own == NULL) return;
    walk_node(f, sub->root, own);
    if (sub->keyed != NULL) {
        walk_node(f, sub->keyed->root, own);
        walk_list(f, sub->keyed->probe, sub->keyed->key_count, own);
    }
    for (u32 i = 0; i < sub->bind_count; i++)
        own[sub->bind_reg[i] / 64] &= ~((u64)1 << (sub->bind_reg[i] % 64));
    for (u32 w = 0; w < f->words; w++)
        reads[w] |= own[w];
}

static void
walk_expr(Finish *f, const PlanExpr *e, u64 *reads)
{
    if (e == NULL) return;
    if (e->op == PX_REG) reads[e->u.number / 64] |= (u64)1 << (e->u.number % 64);
    if ((e->flags & (PX_FLAG_READS_REG | PX_FLAG_HAS_SUB)) == 0) return;
    for (u32 i = 0; i < e->arg_count; i++)
        walk_expr(f, e->arg[i], reads);
    PlanSub *sub = NULL;
    if (e->op == PX_IN_SUB || e->op == PX_EXISTS || e->op == PX_SCALAR) sub = e->u.sub;
    if (e->op == PX_SUB_COLUMN) sub = e->u.sub_column.sub;
    if (sub == NULL) return;
    for (u32 i = 0; i < sub->bind_count; i++)
        walk_expr(f, sub->bind_expr[i], reads);
    walk_sub(f, sub, reads);
}

static void
walk_list(Finish *f, PlanExpr *const *list, u32 count, u64 *reads)
{
    for (u32 i = 0; i < count; i++)
        walk_expr(f, list[i], reads);
}

static void
walk_keys(Finish *f, const PlanSortKey *keys, u32 count, u64 *reads)
{
    for (u32 i = 0; i < count; i++)
        walk_expr(f, keys[i].expr, reads);
}

static void
walk_part(Finish *f, const PlanKeyPart *part, u64 *reads)
{
    walk_expr(f, part->value, reads);
    walk_list(f, part->in_list, part->in_count, reads);
    if (part->in_sub == NULL) return;
    for (u32 k = 0; k < part->in_sub->bind_count; k++)
        walk_expr(f, part->in_sub->bind_expr[k], reads);
    walk_sub(f, part->in_sub, reads);
}

static void
walk_scan(Finish *f, const PlanScan *scan, u64 *reads)
{
    for (u32 i = 0; i < scan->eq_count; i++)
        walk_part(f, &scan->eq[i], reads);
    walk_expr(f, scan->low, reads);
    walk_expr(f, scan->high, reads);
    walk_expr(f, scan->filter, reads);
}

static void
walk_group(Finish *f, const PlanNode *node, u64 *reads)
{
    walk_list(f, node->u.group.key, node->u.group.key_count, reads);
    walk_list(f, node->u.group.bare, node->u.group.bare_count, reads);
    for (u32 i = 0; i < node->u.group.agg_count; i++) {
        const PlanAgg *agg = &node->u.group.agg[i];
        walk_list(f, agg->arg, agg->arg_count, reads);
        walk_expr(f, agg->filter, reads);
        walk_keys(f, agg->order, agg->order_count, reads);
    }
}

static void
walk_window(Finish *f, const PlanWindow *window, u64 *reads)
{
    walk_list(f, window->partition, window->partition_count, reads);
    walk_keys(f, window->order, window->order_count, reads);
    for (u32 i = 0; i < window->frame_count; i++) {
        const PlanFrame *frame = &window->frame[i];
        walk_expr(f, frame->start_offset, reads);
        walk_expr(f, frame->end_offset, reads);
        for (u32 k = 0; k < frame->call_count; k++) {
            walk_list(f, frame->call[k].arg, frame->call[k].arg_count, reads);
            walk_expr(f, frame->call[k].filter, reads);
        }
    }
}

static void
walk_own(Finish *f, PlanNode *node, u64 *reads)
{
    switch ((PlanKind)node->kind) {
    case PLAN_VALUES:
        for (u32 r = 0; r < node->u.values.row_count; r++)
            walk_list(f, node->u.values.row[r], node->columns, reads);
        break;
    case PLAN_SCAN: walk_scan(f, &node->u.scan, reads); break;
    case PLAN_OR_SCAN:
        for (u32 i = 0; i < node->u.or_scan.term_count; i++)
            walk_node(f, node->u.or_scan.term[i], reads);
        walk_expr(f, node->u.or_scan.filter, reads);
        break;
    case PLAN_FILTER: walk_expr(f, node->u.filter.condition, reads); break;
    case PLAN_PROJECT: walk_list(f, node->u.project.expr, node->columns, reads); break;
    case PLAN_LOOP_JOIN: walk_expr(f, node->u.loop.condition, reads); break;
    case PLAN_HASH_JOIN:
        walk_list(f, node->u.hash.probe_key, node->u.hash.key_count, reads);
        walk_list(f, node->u.hash.build_key, node->u.hash.key_count, reads);
        walk_expr(f, node->u.hash.condition, reads);
        break;
    case PLAN_SORT: walk_keys(f, node->u.sort.key, node->u.sort.key_count, reads); break;
    case PLAN_GROUP: walk_group(f, node, reads); break;
    case PLAN_WINDOW: walk_window(f, node->u.window, reads); break;
    case PLAN_COMPOUND:
        for (u32 i = 0; i < node->u.compound.arm_count; i++)
            walk_node(f, node->u.compound.arm[i], reads);
        break;
    case PLAN_RECURSIVE:
        walk_node(f, node->u.recursive.initial, reads);
        walk_node(f, node->u.recursive.step, reads);
        break;
    case PLAN_HOST_SCAN:
        for (u32 i = 0; i < node->u.host_scan.arg_count; i++)
            walk_part(f, &node->u.host_scan.arg[i].part, reads);
        break;
    case PLAN_TABLE_FUNC:
        for (u32 i = 0; i < node->u.table_func.arg_count; i++)
            walk_part(f, &node->u.table_func.arg[i].part, reads);
        break;
    default: break;
    }
}

/* Adds to `reads` what the node reads from outside of itself. */
static void
walk_node(Finish *f, PlanNode *node, u64 *reads)
{
    if (node == NULL || f->b->err != OK) return;
    u64 *own = BIND_ARRAY(f->b, u64, f->words);
    if (own == NULL) return;
    walk_own(f, node, own);
    walk_node(f, node->right, own);
    if (node->kind == PLAN_LOOP_JOIN) {
        for (u32 i = 0; i < node->u.loop.bind_count; i++) {
            u32 reg = node->u.loop.bind_reg[i];
            own[reg / 64] &= ~((u64)1 << (reg % 64));
        }
    }
    walk_node(f, node->input, own);
    bool any = false;
    for (u32 w = 0; w < f->words; w++) {
        any |= own[w] != 0;
        reads[w] |= own[w];
    }
    node->reads_regs = any;
}

bool
plan__finish(Binder *b, Plan *plan)
{
    u32 regs = *b->reg_next;
    plan->reg_count = regs;
    if (regs == 0) return true;
    Finish f = {.b = b, .words = (regs + 63) / 64};
    u64 *reads = BIND_ARRAY(b, u64, f.words);
    if (reads == NULL) return false;
    walk_node(&f, plan->root, reads);
    if (plan->write != NULL) walk_node(&f, plan->write->source, reads);
    for (u32 i = 0; i < plan->material_count; i++)
        walk_node(&f, plan->material[i], reads);
    return b->err == OK;
}
