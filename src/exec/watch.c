/*
 * watch.c -- which registers a subtree reads from outside, and whether they have changed.
 */
#include "exec/watch.h"

#include "exec/exec__write.h"
#include "rt/task.h"

/* One walk over a subtree: bits by register number. */
typedef struct Walk {
    Exec *exec;
    u8 *reads, *sets;   /* [plan->reg_count] */
    bool reads_current; /* The current row of a recursion outside of the subtree. */
    u8 *recursions;     /* [material_count] those inside. */
} Walk;

static Err walk_node(Walk *walk, const PlanNode *node);

static Err walk_list(Walk *walk, PlanExpr *const *expr, u32 count);

static Err
walk_sub(Walk *walk, const PlanSub *sub)
{
    for (u32 i = 0; i < sub->bind_count; i++) {
        walk->sets[sub->bind_reg[i]] = 1;
    }
    Err err = walk_node(walk, sub->root);
    if (err != OK || sub->keyed == NULL) return err;
    err = walk_list(walk, sub->keyed->probe, sub->keyed->key_count);
    return err == OK ? walk_node(walk, sub->keyed->root) : err;
}

static Err
walk_expr(Walk *walk, const PlanExpr *expr)
{
    if (expr == NULL) return OK;
    if (rt_stack_left() < RT_STACK_RESERVE) {
        return exec__fail(walk->exec, ERR_LIMIT, "statement too deeply nested");
    }
    const PlanSub *sub = NULL;
    Err err = OK;
    switch (expr->op) {
    case PX_REG:
        ASSERT(expr->u.number < walk->exec->plan->reg_count);
        walk->reads[expr->u.number] = 1;
        break;
    case PX_IN_SUB:
    case PX_EXISTS:
    case PX_SCALAR: sub = expr->u.sub; break;
    case PX_SUB_COLUMN: sub = expr->u.sub_column.sub; break;
    default: break;
    }
    if (sub != NULL) {
        for (u32 i = 0; err == OK && i < sub->bind_count; i++) {
            err = walk_expr(walk, sub->bind_expr[i]);
        }
        if (err == OK) err = walk_sub(walk, sub);
    }
    for (u32 i = 0; err == OK && i < expr->arg_count; i++) {
        err = walk_expr(walk, expr->arg[i]);
    }
    return err;
}

static Err
walk_list(Walk *walk, PlanExpr *const *expr, u32 count)
{
    Err err = OK;
    for (u32 i = 0; err == OK && expr != NULL && i < count; i++) {
        err = walk_expr(walk, expr[i]);
    }
    return err;
}

static Err
walk_keys(Walk *walk, const PlanSortKey *key, u32 count)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < count; i++) {
        err = walk_expr(walk, key[i].expr);
    }
    return err;
}

static Err
walk_part(Walk *walk, const PlanKeyPart *part)
{
    Err err = walk_expr(walk, part->value);
    if (err == OK) err = walk_list(walk, part->in_list, part->in_count);
    if (err != OK || part->in_sub == NULL) return err;
    err = walk_list(walk, part->in_sub->bind_expr, part->in_sub->bind_count);
    return err == OK ? walk_sub(walk, part->in_sub) : err;
}

static Err
walk_scan(Walk *walk, const PlanScan *scan)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < scan->eq_count; i++)
        err = walk_part(walk, &scan->eq[i]);
    if (err == OK) err = walk_expr(walk, scan->low);
    if (err == OK) err = walk_expr(walk, scan->high);
    return err == OK ? walk_expr(walk, scan->filter) : err;
}

static Err
walk_group(Walk *walk, const PlanNode *node)
{
    Err err = walk_list(walk, node->u.group.key, node->u.group.key_count);
    if (err == OK) err = walk_list(walk, node->u.group.bare, node->u.group.bare_count);
    for (u32 i = 0; err == OK && i < node->u.group.agg_count; i++) {
        const PlanAgg *agg = &node->u.group.agg[i];
        err = walk_list(walk, agg->arg, agg->arg_count);
        if (err == OK) err = walk_expr(walk, agg->filter);
        if (err == OK) err = walk_keys(walk, agg->order, agg->order_count);
    }
    return err;
}

static Err
walk_window(Walk *walk, const PlanWindow *window)
{
    Err err = walk_list(walk, window->partition, window->partition_count);
    if (err == OK) err = walk_keys(walk, window->order, window->order_count);
    for (u32 i = 0; err == OK && i < window->frame_count; i++) {
        const PlanFrame *frame = &window->frame[i];
        err = walk_expr(walk, frame->start_offset);
        if (err == OK) err = walk_expr(walk, frame->end_offset);
        for (u32 k = 0; err == OK && k < frame->call_count; k++) {
            err = walk_list(walk, frame->call[k].arg, frame->call[k].arg_count);
            if (err == OK) err = walk_expr(walk, frame->call[k].filter);
        }
    }
    return err;
}

static Err
walk_hash(Walk *walk, const PlanNode *node)
{
    Err err = walk_list(walk, node->u.hash.probe_key, node->u.hash.key_count);
    if (err == OK) err = walk_list(walk, node->u.hash.build_key, node->u.hash.key_count);
    return err == OK ? walk_expr(walk, node->u.hash.condition) : err;
}

static Err
walk_recursive(Walk *walk, const PlanNode *node)
{
    walk->recursions[node->u.recursive.material_no] = 1;
    Err err = walk_keys(walk, node->u.recursive.key, node->u.recursive.key_count);
    if (err == OK) err = walk_expr(walk, node->u.recursive.limit);
    if (err == OK) err = walk_expr(walk, node->u.recursive.offset);
    if (err == OK) err = walk_node(walk, node->u.recursive.initial);
    return err == OK ? walk_node(walk, node->u.recursive.step) : err;
}

static Err
walk_nodes(Walk *walk, PlanNode *const *node, u32 count)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < count; i++) {
        err = walk_node(walk, node[i]);
    }
    return err;
}

/* What stands in the node itself. */
static Err
walk_own(Walk *walk, const PlanNode *node)
{
    Err err = OK;
    switch ((PlanKind)node->kind) {
    case PLAN_VALUES:
        for (u32 i = 0; err == OK && i < node->u.values.row_count; i++) {
            err = walk_list(walk, node->u.values.row[i], node->columns);
        }
        return err;
    case PLAN_SCAN: return walk_scan(walk, &node->u.scan);
    case PLAN_OR_SCAN:
        err = walk_nodes(walk, node->u.or_scan.term, node->u.or_scan.term_count);
        return err == OK ? walk_expr(walk, node->u.or_scan.filter) : err;
    case PLAN_FILTER: return walk_expr(walk, node->u.filter.condition);
    case PLAN_PROJECT: return walk_list(walk, node->u.project.expr, node->columns);
    case PLAN_LOOP_JOIN:
        for (u32 i = 0; i < node->u.loop.bind_count; i++) {
            walk->sets[node->u.loop.bind_reg[i]] = 1;
        }
        return walk_expr(walk, node->u.loop.condition);
    case PLAN_HASH_JOIN: return walk_hash(walk, node);
    case PLAN_SORT:
        err = walk_keys(walk, node->u.sort.key, node->u.sort.key_count);
        if (err == OK) err = walk_expr(walk, node->u.sort.limit);
        return err == OK ? walk_expr(walk, node->u.sort.offset) : err;
    case PLAN_LIMIT:
        err = walk_expr(walk, node->u.limit.limit);
        return err == OK ? walk_expr(walk, node->u.limit.offset) : err;
    case PLAN_GROUP: return walk_group(walk, node);
    case PLAN_WINDOW: return walk_window(walk, node->u.window);
    case PLAN_COMPOUND: return walk_nodes(walk, node->u.compound.arm, node->u.compound.arm_count);
    case PLAN_CTE_SCAN: {
        u32 number = node->u.cte_scan.material_no;
        const PlanNode *shared = walk->exec->plan->material[number];
        if (shared != NULL) return walk_node(walk, shared);
        if (!walk->recursions[number]) walk->reads_current = true;
        return OK;
    }
    case PLAN_RECURSIVE: return walk_recursive(walk, node);
    case PLAN_HOST_SCAN:
        for (u32 i = 0; err == OK && i < node->u.host_scan.arg_count; i++)
            err = walk_part(walk, &node->u.host_scan.arg[i].part);
        return err;
    case PLAN_TABLE_FUNC:
        for (u32 i = 0; err == OK && i < node->u.table_func.arg_count; i++)
            err = walk_part(walk, &node->u.table_func.arg[i].part);
        return err;
    default: return OK;
    }
}

static Err
walk_node(Walk *walk, const PlanNode *node)
{
    if (node == NULL) return OK;
    if (rt_stack_left() < RT_STACK_RESERVE) {
        return exec__fail(walk->exec, ERR_LIMIT, "statement too deeply nested");
    }
    Err err = walk_own(walk, node);
    if (err == OK) err = walk_node(walk, node->input);
    return err == OK ? walk_node(walk, node->right) : err;
}

static Err
watch_fill(Exec *exec, RegWatch *watch, const Walk *walk)
{
    u32 count = 0;
    for (u32 i = 0; i < exec->plan->reg_count; i++) {
        if (walk->reads[i] && !walk->sets[i]) count++;
    }
    watch->reg = ARENA_NEW_ARRAY(&exec->arena, u32, MAX_OF(count, 1u));
    watch->seen = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(count, 1u));
    if (watch->reg == NULL || watch->seen == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < exec->plan->reg_count; i++) {
        if (walk->reads[i] && !walk->sets[i]) watch->reg[watch->count++] = i;
    }
    watch->never = walk->reads_current || exec->opening_fresh;
    return OK;
}

Err
exec__watch_open(Exec *exec, RegWatch *watch, const PlanNode *root)
{
    *watch = (RegWatch){0};
    arena_init(&watch->bytes, exec->account);
    size_t regs = MAX_OF(exec->plan->reg_count, 1u);
    size_t materials = MAX_OF(exec->plan->material_count, 1u);
    u8 *bits = mem_alloc_zeroed(2 * regs + materials);
    if (bits == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    Walk walk = {.exec = exec, .reads = bits, .sets = bits + regs, .recursions = bits + 2 * regs};
    Err err = walk_node(&walk, root);
    if (err == OK) err = watch_fill(exec, watch, &walk);
    mem_free(bits);
    return err;
}

void
exec__watch_close(RegWatch *watch)
{
    arena_free(&watch->bytes);
}

bool
exec__watch_same(const Exec *exec, const RegWatch *watch)
{
    if (watch->never || watch->run_no != exec->run_no || watch->data_no != exec->data_no) {
        return false;
    }
    for (u32 i = 0; i < watch->count; i++) {
        if (!cell_identical(&exec->reg[watch->reg[i]], &watch->seen[i])) return false;
    }
    return true;
}

Err
exec__watch_begin(Exec *exec, RegWatch *watch)
{
    watch->run_no = 0;
    arena_reset(&watch->bytes);
    for (u32 i = 0; i < watch->count; i++) {
        Err err = cell_copy(&exec->reg[watch->reg[i]], &watch->bytes, &watch->seen[i]);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    return OK;
}
