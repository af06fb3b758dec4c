/*
 * group_batch.c -- grouping and aggregating whole batches.
 *
 * First every row gets its group number: integers, texts under BINARY and NULLs are hashed as they
 * stand and compared with the keys of the group found; what is not found so (also reals, which may
 * equal integers) goes through key bytes.  Then each aggregate runs over the batch.
 */
#include "exec/exec__write.h"
#include "exec/group.h"
#include "value/collate.h"
#include "value/sum.h"

#define SLOTS_MIN 256u

void
exec__group_map_clear(GroupMap *map)
{
    if (map->count > 0) memset(map->number, 0, ((size_t)map->mask + 1) * sizeof(u32));
    map->count = 0;
}

void
exec__group_map_free(GroupMap *map)
{
    mem_free(map->hash);
    mem_free(map->number);
    *map = (GroupMap){0};
}

static Err
map_grow(GroupMap *map)
{
    u32 slots = map->number == NULL ? SLOTS_MIN : (map->mask + 1) * 2;
    u32 *hash = mem_alloc((size_t)slots * sizeof(u32));
    u32 *number = mem_alloc_zeroed((size_t)slots * sizeof(u32));
    if (hash == NULL || number == NULL) {
        mem_free(hash);
        mem_free(number);
        return ERR_NOMEM;
    }
    for (u32 i = 0; map->number != NULL && i <= map->mask; i++) {
        if (map->number[i] == 0) continue;
        u32 at = map->hash[i] & (slots - 1);
        while (number[at] != 0) {
            at = (at + 1) & (slots - 1);
        }
        hash[at] = map->hash[i];
        number[at] = map->number[i];
    }
    mem_free(map->hash);
    mem_free(map->number);
    map->hash = hash;
    map->number = number;
    map->mask = slots - 1;
    return OK;
}

static Err
map_add(GroupMap *map, u32 hash, u32 group)
{
    if (map->number == NULL || map->count > map->mask / 2) {
        Err err = map_grow(map);
        if (err != OK) return err;
    }
    u32 at = hash & map->mask;
    while (map->number[at] != 0) {
        at = (at + 1) & map->mask;
    }
    map->hash[at] = hash;
    map->number[at] = group + 1;
    map->count++;
    return OK;
}

/* ---- group numbers ---- */

static inline u32
mix(u32 hash, u64 value)
{
    u64 product = ((u64)hash ^ value) * 0x9E3779B97F4A7C15u;
    product ^= product >> 29;
    product *= 0xBF58476D1CE4E5B9u;
    return (u32)(product >> 32);
}

#define HASH_NULL 0x5bd1e995u

/* A cell whose value may be compared as it stands. */
static inline bool
cell_is_plain(const Cell *cell, bool hides_text)
{
    return cell->type == CELL_NULL || cell->type == CELL_INT ||
           (cell->type == CELL_TEXT && !hides_text);
}

/* Mix one key column into the hashes of all live rows.  REAL keys are not plain. */
static void
hash_column(const Batch *in, const Vec *vec, bool hides_text, u64 seed, u32 *hash)
{
    for (u32 n = 0; n < in->count; n++) {
        u32 at = batch_at(in, n);
        u32 place = vec->constant ? 0 : at;
        if (vec->kind == VEC_INT) {
            bool null = vec->null != NULL && vec->null[place];
            hash[at] = mix(hash[at], null ? HASH_NULL : (u64)vec->u.i[place]);
            continue;
        }
        Cell cell = vec_cell(vec, at);
        if (cell.type == CELL_INT) {
            hash[at] = mix(hash[at], (u64)cell.u.i);
        } else if (cell.type == CELL_TEXT && !hides_text) {
            hash[at] = mix(hash[at], hash_bytes(cell.u.p, cell.bytes, seed));
        } else {
            hash[at] = mix(hash[at], HASH_NULL);
        }
    }
}

/* Are the keys of the row plain and just those of the group? */
static inline bool
keys_match(const Group *group, u32 at, u32 number)
{
    const Cell *have = exec__rowbuf_row(&group->groups, number);
    const PlanNode *plan = group->node.plan;
    for (u32 i = 0; i < plan->u.group.key_count; i++) {
        const Vec *vec = &group->key_vec[i];
        if (vec->kind == VEC_INT && vec->null == NULL) {
            u32 place = vec->constant ? 0 : at;
            if (have[i].type != CELL_INT || have[i].u.i != vec->u.i[place]) return false;
            continue;
        }
        Cell cell = vec_cell(vec, at);
        if (cell.type != have[i].type) return false;
        if (cell.type == CELL_INT && cell.u.i != have[i].u.i) return false;
        if (cell.type == CELL_REAL || cell.type == CELL_BLOB) return false;
        if (cell.type != CELL_TEXT) continue;
        if (collation_hides_text(plan->u.group.key_collation[i])) return false;
        if (cell.bytes != have[i].bytes || memcmp(cell.u.p, have[i].u.p, cell.bytes) != 0) {
            return false;
        }
    }
    return true;
}

/* The row is not in the map: find its group by key bytes, and enter it if its keys are plain. */
static Err
group_slow(Exec *exec, Group *group, const Batch *in, u32 at)
{
    const PlanNode *plan = group->node.plan;
    bool plain = true, added;
    u32 number;
    for (u32 i = 0; i < plan->u.group.key_count; i++) {
        group->key_cell[i] = vec_cell(&group->key_vec[i], at);
        bool hides = collation_hides_text(plan->u.group.key_collation[i]);
        plain = plain && cell_is_plain(&group->key_cell[i], hides);
    }
    if (plan->u.group.bare_count > 0) exec__load_all(in, at, group->row);
    Err err = exec__group_find(exec, group, &number, &added);
    if (err != OK) return err;
    if (added && plan->u.group.bare_count > 0) err = exec__group_bare(exec, group, number);
    if (err == OK && added && plain) {
        err = map_add(&group->map, group->hash[at], number);
        if (err != OK) return exec__fail(exec, err, NULL);
    }
    group->group_of[at] = number;
    return err;
}

static Err
groups_of_batch(Exec *exec, Group *group, const Batch *in)
{
    const PlanNode *plan = group->node.plan;
    const GroupMap *map = &group->map;
    for (u32 i = 0; i < plan->u.group.key_count; i++) {
        Err err = exec__vexpr_eval(exec, group->vkey[i], in, &group->node.bytes,
                                   &group->key_vec[i]);
        if (err != OK) return err;
    }
    for (u32 n = 0; n < in->count; n++) {
        group->hash[batch_at(in, n)] = 0;
    }
    for (u32 i = 0; i < plan->u.group.key_count; i++) {
        bool hides = collation_hides_text(plan->u.group.key_collation[i]);
        hash_column(in, &group->key_vec[i], hides, exec->hash_seed, group->hash);
    }
    for (u32 n = 0; n < in->count; n++) {
        u32 at = batch_at(in, n), hash = group->hash[at];
        u32 found = 0;
        if (map->number != NULL) {
            u32 slot = hash & map->mask;
            while (map->number[slot] != 0) {
                if (map->hash[slot] == hash && keys_match(group, at, map->number[slot] - 1)) break;
                slot = (slot + 1) & map->mask;
            }
            found = map->number[slot];
        }
        if (LIKELY(found != 0)) {
            group->group_of[at] = found - 1;
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
    if (all && exec__group_keys(group) == 0) {
        *(i64 *)agg_state(group, 0, agg) += in->count;
        return;
    }
    for (u32 n = 0; n < in->count; n++) {
        u32 at = batch_at(in, n);
        if (!all && is_null(vec, at)) continue;
        (*(i64 *)agg_state(group, group->group_of[at], agg))++;
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
        large |= (value + BLOCK_BOUND) & ~(2 * BLOCK_BOUND - 1);
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

static void
run_sum(const Group *group, const Agg *agg, const Batch *in, const Vec *vec)
{
    bool grouped = exec__group_keys(group) > 0;
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
    if (plan->distinct || plan->arg_count > 1) return run_rows(exec, group, i, &passed);
    const Vec *vec = plan->arg_count == 1 ? &agg->arg_vec[0] : NULL;
    if (plan->def->kernel == FUNC_KERNEL_COUNT) {
        run_count(group, agg, &passed, vec);
        return OK;
    }
    if (plan->def->kernel == FUNC_KERNEL_SUM && vec->kind != VEC_CELL) {
        run_sum(group, agg, &passed, vec);
        return OK;
    }
    bool extreme = (plan->def->flags & FUNC_MINMAX) != 0 && exec__group_keys(group) == 0;
    if (extreme && best_of(agg, &passed, vec, &agg->argv[0])) {
        return exec__aggs_feed(exec, &group->aggs, 0, i);
    }
    return run_rows(exec, group, i, &passed);
}

Err
exec__group_batch(Exec *exec, Group *group, const Batch *in)
{
    Err err = exec__group_keys(group) > 0 ? groups_of_batch(exec, group, in) : OK;
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
    agg->sel = ARENA_NEW_ARRAY(&exec->arena, u16, BATCH_ROWS_MAX);
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
        if (agg->order_count > 0) return false;
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
    group->group_of = ARENA_NEW_ARRAY(&exec->arena, u32, BATCH_ROWS_MAX);
    group->hash = ARENA_NEW_ARRAY(&exec->arena, u32, BATCH_ROWS_MAX);
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
