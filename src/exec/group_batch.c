/*
 * group_batch.c -- grouping and aggregating whole batches.
 *
 * First every row gets its group number, by the tuple map where it can (tuple_map.h), else by key
 * bytes.  Then each aggregate runs over the batch.
 */
#include "exec/exec__write.h"
#include "exec/group.h"
#include "exec/kernel.h"
#include "value/sum.h"

/* The row is not in the map: find its group by key bytes, and enter it if its keys are plain. */
static Err
group_slow(Exec *exec, Group *group, const Batch *in, u32 at)
{
    const PlanNode *plan = group->node.plan;
    bool added;
    u32 number;
    for (u32 i = 0; i < plan->u.group.key_count; i++) {
        group->key_cell[i] = vec_cell(&group->key_vec[i], at);
    }
    if (plan->u.group.bare_count > 0 || group->full) exec__load_all(in, at, group->row);
    Err err = exec__group_find(exec, group, &number, &added);
    if (err != OK) return err;
    if (added && plan->u.group.bare_count > 0) err = exec__group_bare(exec, group, number);
    if (err == OK && added && exec__tuple_is_plain(&group->map, group->key_cell)) {
        err = exec__tuples_add(&group->map, group->hash[at], number);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    group->group_of[at] = number;
    return err;
}

static Err
groups_of_batch(Exec *exec, Group *group, const Batch *in)
{
    const PlanNode *plan = group->node.plan;
    for (u32 i = 0; i < plan->u.group.key_count; i++) {
        Err err = exec__vexpr_eval(exec, group->vkey[i], in, &group->node.bytes,
                                   &group->key_vec[i]);
        if (err != OK) return err;
    }
    exec__tuples_hash(&group->map, in, group->key_vec, group->hash);
    exec__tuples_find_all(&group->map, &group->groups, in, group->key_vec, group->hash,
                          group->group_of);
    for (u32 n = 0; n < in->count; n++) {
        u32 at = batch_at(in, n);
        if (LIKELY(group->group_of[at] != TUPLE_NONE)) continue;
        /* It may have come in since: another row of the batch with the same keys. */
        u32 found = exec__tuples_find(&group->map, &group->groups, group->key_vec, at,
                                      group->hash[at]);
        if (found != TUPLE_NONE) {
            group->group_of[at] = found;
            continue;
        }
        Err err = group_slow(exec, group, in, at);
        if (err != OK) return err;
    }
    return OK;
}

/* ---- aggregates ---- */

static inline void *
agg_state(const Group *group, u32 number, const Agg *agg)
{
    return group->aggs.state[number] + agg->state_offset;
}

static bool
is_null(const Vec *vec, u32 at)
{
    if (vec->constant) at = 0;
    if (vec->kind == VEC_CELL) return vec->u.cell[at].type == CELL_NULL;
    return vec->null != NULL && vec->null[at];
}

static void
run_count(const Group *group, const Agg *agg, const Batch *in, const Vec *vec)
{
    bool all = vec == NULL || (vec->kind != VEC_CELL && vec->null == NULL);
    bool grouped = exec__group_keys(group) > 0;
    if (all && !grouped) {
        *(i64 *)agg_state(group, 0, agg) += in->count;
        return;
    }
    for (u32 n = 0; n < in->count; n++) {
        u32 at = batch_at(in, n);
        if (!all && is_null(vec, at)) continue;
        (*(i64 *)agg_state(group, grouped ? group->group_of[at] : 0, agg))++;
    }
}

#define BLOCK_BOUND ((i64)1 << 50) /* 2,048 such values cannot leave int64 from below 2^62. */

/* All integers into one sum: without 128 bits where nothing can overflow. */
static bool
sum_block(const Batch *in, const Vec *vec, Sum *sum)
{
    if (vec->null != NULL || vec->constant || sum->approximate || sum->real) return false;
    if (sum->whole < -((i128)1 << 62) || sum->whole > ((i128)1 << 62)) return false;
    i64 total = 0, large = 0;
    for (u32 n = 0; n < in->count; n++) {
        i64 value = vec->u.i[batch_at(in, n)];
        large |= (i64)((u64)value + (u64)BLOCK_BOUND) & ~(2 * BLOCK_BOUND - 1);
        total = (i64)((u64)total + (u64)value);
    }
    if (large != 0) return false;
    /* The prefixes inside the block are not looked at: they stay far inside int64. */
    sum->count += in->count;
    sum->whole += total;
    if (sum->whole < sum->low) sum->low = sum->whole;
    if (sum->whole > sum->high) sum->high = sum->whole;
    return true;
}

/* The same for few groups: each group's part of the batch is summed up first. */
static bool
sum_groups(const Group *group, const Agg *agg, const Batch *in, const Vec *vec)
{
    u32 groups = group->aggs.groups;
    if (groups > FEW_GROUPS || vec->null != NULL || vec->constant) return false;
    i64 *part = group->part, large = 0;
    u32 *rows = group->part_rows;
    for (u32 i = 0; i < groups; i++) {
        const Sum *sum = agg_state(group, i, agg);
        part[i] = 0;
        rows[i] = 0;
        if (sum->approximate || sum->real) return false;
        if (sum->whole < -((i128)1 << 62) || sum->whole > ((i128)1 << 62)) return false;
    }
    for (u32 n = 0; n < in->count; n++) {
        u32 at = batch_at(in, n), number = group->group_of[at];
        i64 value = vec->u.i[at];
        large |= (i64)((u64)value + (u64)BLOCK_BOUND) & ~(2 * BLOCK_BOUND - 1);
        part[number] = (i64)((u64)part[number] + (u64)value);
        rows[number]++;
    }
    if (large != 0) return false;
    for (u32 i = 0; i < groups; i++) {
        Sum *sum = agg_state(group, i, agg);
        sum->count += rows[i];
        sum->whole += part[i];
        if (sum->whole < sum->low) sum->low = sum->whole;
        if (sum->whole > sum->high) sum->high = sum->whole;
    }
    return true;
}

static void
run_sum(const Group *group, const Agg *agg, const Batch *in, const Vec *vec)
{
    bool grouped = exec__group_keys(group) > 0;
    if (grouped && vec->kind == VEC_INT && in->count >= FEW_GROUPS &&
        sum_groups(group, agg, in, vec)) {
        return;
    }
    if (!grouped && vec->kind == VEC_INT && sum_block(in, vec, agg_state(group, 0, agg))) return;
    for (u32 n = 0; n < in->count; n++) {
        u32 at = batch_at(in, n), place = vec->constant ? 0 : at;
        if (vec->null != NULL && vec->null[place]) continue;
        Sum *sum = agg_state(group, grouped ? group->group_of[at] : 0, agg);
        if (vec->kind == VEC_INT) {
            sum_feed_int(sum, vec->u.i[place]);
        } else {
            sum_feed_real(sum, vec->u.r[place]);
        }
    }
}

/* min or max of one group: only the best value of the batch is fed.  False: not by number. */
static bool
best_of(const Agg *agg, const Batch *in, const Vec *vec, Cell *best_out)
{
    bool greatest = (agg->plan->def->flags & FUNC_MAX) != 0, any = false;
    u32 best = 0;
    if (vec->kind == VEC_CELL || vec->constant) return false;
    if (vec->null == NULL && in->sel == NULL) {
        best = vec->kind == VEC_INT ? kernel_best_int(vec->u.i, in->count, greatest)
                                    : kernel_best_real(vec->u.r, in->count, greatest);
        *best_out = vec_cell(vec, best);
        return true;
    }
    for (u32 n = 0; n < in->count; n++) {
        u32 at = batch_at(in, n);
        if (vec->null != NULL && vec->null[at]) continue;
        bool better = !any;
        if (any && vec->kind == VEC_INT) {
            better = greatest ? vec->u.i[at] > vec->u.i[best] : vec->u.i[at] < vec->u.i[best];
        } else if (any) {
            better = greatest ? vec->u.r[at] > vec->u.r[best] : vec->u.r[at] < vec->u.r[best];
        }
        if (better) best = at;
        any = true;
    }
    *best_out = any ? vec_cell(vec, best) : cell_null();
    return true;
}

/* Any aggregate, row by row over the vectors of its arguments. */
static Err
run_rows(Exec *exec, Group *group, u32 i, const Batch *in)
{
    Agg *agg = &group->aggs.agg[i];
    for (u32 n = 0; n < in->count; n++) {
        u32 at = batch_at(in, n);
        for (u32 k = 0; k < agg->plan->arg_count; k++) {
            agg->argv[k] = vec_cell(&agg->arg_vec[k], at);
            agg->argv[k].subtype = 0;
        }
        u32 number = exec__group_keys(group) > 0 ? group->group_of[at] : 0;
        Err err = exec__aggs_feed(exec, &group->aggs, number, i);
        if (err != OK) return err;
    }
    return OK;
}

/* Any aggregate over rows that are known to be new. */
static Err
run_fresh(Exec *exec, Group *group, u32 i, const Batch *in)
{
    Agg *agg = &group->aggs.agg[i];
    for (u32 n = 0; n < in->count; n++) {
        u32 at = batch_at(in, n);
        agg->argv[0] = vec_cell(&agg->arg_vec[0], at);
        u32 number = exec__group_keys(group) > 0 ? group->group_of[at] : 0;
        Err err = exec__agg_step(exec, &group->aggs, number, i, agg->argv);
        if (err != OK) return err;
    }
    return OK;
}

/* DISTINCT over integers: narrow `rows` to those with a value new to their group. */
static Err
fresh_ints(Exec *exec, Group *group, Agg *agg, const Vec *vec, Batch *rows)
{
    bool grouped = exec__group_keys(group) > 0;
    u32 count = 0;
    if (agg->fresh == NULL) agg->fresh = EXEC_ROOM(exec, u16, BATCH_ROWS_MAX);
    if (agg->fresh == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (u32 n = 0; n < rows->count; n++) {
        u32 at = batch_at(rows, n);
        bool is_new;
        if (!grouped && exec__ints_in_window(&agg->ints, vec->u.i[at])) continue;
        Err err = exec__ints_add(&agg->ints, grouped ? group->group_of[at] : 0, grouped,
                                 vec->u.i[at], &is_new);
        if (err != OK) return exec__fail(exec, err, NULL);
        agg->fresh[count] = (u16)at;
        count += is_new;
    }
    rows->sel = agg->fresh;
    rows->count = count;
    return OK;
}

/* What comes from joins are cells: when all of them are integers, let kernels have integers. */
static Err
narrow_cells(Exec *exec, Agg *agg, const Batch *in, Vec *vec)
{
    u32 other = 0;
    if (vec->kind != VEC_CELL || vec->constant) return OK;
    if (agg->narrow == NULL) agg->narrow = EXEC_ROOM(exec, i64, BATCH_ROWS_MAX);
    if (agg->narrow == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (u32 n = 0; n < in->count; n++) {
        u32 at = batch_at(in, n);
        agg->narrow[at] = vec->u.cell[at].u.i;
        other |= vec->u.cell[at].type ^ CELL_INT;
    }
    if (other == 0) *vec = (Vec){.kind = VEC_INT, .u.i = agg->narrow};
    return OK;
}

static Err
agg_batch(Exec *exec, Group *group, u32 i, const Batch *in)
{
    Agg *agg = &group->aggs.agg[i];
    const PlanAgg *plan = agg->plan;
    Batch passed = *in;
    Err err = OK;
    if (agg->vfilter != NULL) {
        u32 taken;
        err = exec__vselect(exec, agg->vfilter, in, in->count, &group->node.bytes, agg->sel,
                            &passed.count, &taken);
        passed.sel = agg->sel;
    }
    for (u32 k = 0; err == OK && k < plan->arg_count; k++) {
        err = exec__vexpr_eval(exec, agg->varg[k], &passed, &group->node.bytes, &agg->arg_vec[k]);
    }
    if (err != OK || passed.count == 0) return err;
    if (plan->arg_count == 1 && (plan->distinct || plan->def->kernel == FUNC_KERNEL_SUM)) {
        err = narrow_cells(exec, agg, &passed, &agg->arg_vec[0]);
        if (err != OK) return err;
    }
    if (plan->distinct && plan->arg_count == 1 && !agg->ints_off) {
        const Vec *values = &agg->arg_vec[0];
        if (values->kind != VEC_INT || values->null != NULL || values->constant) {
            return run_rows(exec, group, i, &passed);
        }
        err = fresh_ints(exec, group, agg, values, &passed);
        if (err != OK || passed.count == 0) return err;
    } else if (plan->distinct || plan->arg_count > 1) {
        return run_rows(exec, group, i, &passed);
    }
    const Vec *vec = plan->arg_count == 1 ? &agg->arg_vec[0] : NULL;
    if (plan->def->kernel == FUNC_KERNEL_COUNT) {
        run_count(group, agg, &passed, vec);
        return OK;
    }
    if (plan->def->kernel == FUNC_KERNEL_SUM && vec->kind != VEC_CELL) {
        run_sum(group, agg, &passed, vec);
        return OK;
    }
    if (plan->distinct) return run_fresh(exec, group, i, &passed);
    bool extreme = (plan->def->flags & FUNC_MINMAX) != 0 && exec__group_keys(group) == 0;
    if (extreme && best_of(agg, &passed, vec, &agg->argv[0])) {
        return exec__aggs_feed(exec, &group->aggs, 0, i);
    }
    return run_rows(exec, group, i, &passed);
}

/* Rows that were put off have no group: leave them out. */
static Err
rows_at_hand(Exec *exec, Group *group, const Batch *in, Batch *left)
{
    if (group->sel == NULL) group->sel = EXEC_ROOM(exec, u16, BATCH_ROWS_MAX);
    if (group->sel == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    *left = *in;
    left->sel = group->sel;
    left->count = 0;
    for (u32 n = 0; n < in->count; n++) {
        u32 at = batch_at(in, n);
        group->sel[left->count] = (u16)at;
        left->count += group->group_of[at] != TUPLE_NONE;
    }
    return OK;
}

Err
exec__group_batch(Exec *exec, Group *group, const Batch *in)
{
    Batch left;
    Err err = exec__group_keys(group) > 0 ? groups_of_batch(exec, group, in) : OK;
    if (err == OK && UNLIKELY(group->full)) {
        err = rows_at_hand(exec, group, in, &left);
        if (err != OK || left.count == 0) return err;
        in = &left;
    }
    for (u32 i = 0; err == OK && i < group->aggs.count; i++) {
        err = agg_batch(exec, group, i, in);
    }
    return err;
}

/* ---- opening ---- */

static Err
agg_open(Exec *exec, Agg *agg)
{
    const PlanAgg *plan = agg->plan;
    agg->varg = ARENA_NEW_ARRAY(&exec->arena, VExpr *, MAX_OF(plan->arg_count, 1u));
    agg->arg_vec = ARENA_NEW_ARRAY(&exec->arena, Vec, MAX_OF(plan->arg_count, 1u));
    if (agg->varg == NULL || agg->arg_vec == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    Err err = OK;
    for (u32 k = 0; err == OK && k < plan->arg_count; k++) {
        err = exec__vexpr_open(exec, plan->arg[k], &agg->varg[k]);
    }
    if (err != OK || plan->filter == NULL) return err;
    agg->sel = EXEC_ROOM(exec, u16, BATCH_ROWS_MAX);
    if (agg->sel == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    return exec__vexpr_open(exec, plan->filter, &agg->vfilter);
}

static bool
plan_fits(const PlanNode *plan)
{
    if (plan->u.group.bare_count > 0 &&
        (plan->u.group.bare_agg >= 0 || plan->u.group.key_count == 0)) {
        return false;
    }
    for (u32 i = 0; i < plan->u.group.key_count; i++) {
        if (!exec__vexpr_fits(plan->u.group.key[i])) return false;
    }
    for (u32 i = 0; i < plan->u.group.agg_count; i++) {
        const PlanAgg *agg = &plan->u.group.agg[i];
        /* Subtypes do not come through vectors. */
        if (agg->order_count > 0 || (agg->def->flags & FUNC_SUBTYPE) != 0) return false;
        if (agg->filter != NULL && !exec__vexpr_fits(agg->filter)) return false;
        for (u32 k = 0; k < agg->arg_count; k++) {
            if (!exec__vexpr_fits(agg->arg[k])) return false;
        }
    }
    return true;
}

Err
exec__group_batch_open(Exec *exec, Group *group)
{
    const PlanNode *plan = group->node.plan;
    u32 keys = MAX_OF(plan->u.group.key_count, 1u);
    if (!plan_fits(plan) || exec->want_max == 1) return OK;
    group->vkey = ARENA_NEW_ARRAY(&exec->arena, VExpr *, keys);
    group->key_vec = ARENA_NEW_ARRAY(&exec->arena, Vec, keys);
    group->group_of = EXEC_ROOM(exec, u32, BATCH_ROWS_MAX);
    group->part = EXEC_ROOM(exec, i64, FEW_GROUPS);
    group->part_rows = EXEC_ROOM(exec, u32, FEW_GROUPS);
    group->hash = EXEC_ROOM(exec, u32, BATCH_ROWS_MAX);
    if (group->vkey == NULL || group->key_vec == NULL || group->group_of == NULL ||
        group->hash == NULL) {
        return exec__fail(exec, ERR_NOMEM, NULL);
    }
    Err err = OK;
    for (u32 i = 0; err == OK && i < plan->u.group.key_count; i++) {
        err = exec__vexpr_open(exec, plan->u.group.key[i], &group->vkey[i]);
    }
    for (u32 i = 0; err == OK && i < group->aggs.count; i++) {
        err = agg_open(exec, &group->aggs.agg[i]);
    }
    group->by_batch = err == OK;
    return err;
}
