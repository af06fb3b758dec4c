/*
 * aggregate.c -- states of aggregates: starting, feeding, results.
 */
#include "exec/aggregate.h"

#include "exec/exec__write.h"

static Err
agg_open_order(Exec *exec, Agg *agg)
{
    const PlanAgg *plan = agg->plan;
    u32 keys = plan->order_count + 1;
    PlanSortKey *key = ARENA_NEW_ARRAY(&exec->arena, PlanSortKey, keys);
    agg->order = ARENA_NEW_ARRAY(&exec->arena, ExecProgram *, keys);
    agg->order_cell = ARENA_NEW_ARRAY(&exec->arena, Cell, keys);
    if (key == NULL || agg->order == NULL || agg->order_cell == NULL) {
        return exec__fail(exec, ERR_NOMEM, NULL);
    }
    memcpy(key + 1, plan->order, plan->order_count * sizeof(PlanSortKey));
    Err err = exec__sorter_init(exec, &agg->sorter, key, keys, plan->arg_count + 1);
    if (err != OK) return exec__fail(exec, err, NULL);
    for (u32 i = 0; err == OK && i < plan->order_count; i++) {
        err = exec__compile(exec, plan->order[i].expr, &agg->order[i]);
    }
    return err;
}

static Err
agg_open(Exec *exec, Agg *agg, const PlanAgg *plan)
{
    agg->plan = plan;
    agg->call = (FuncCall){.def = plan->def,
                           .env = exec->env->func,
                           .collation = plan->collation != NULL ? plan->collation
                                                                : &collation_binary,
                           .msg = &exec->msg};
    agg->plain = plan->filter == NULL && plan->order_count == 0 && !plan->distinct &&
                 plan->arg_count <= 1;
    exec__keyset_init(exec, &agg->seen);
    agg->argv = ARENA_NEW_ARRAY(&exec->arena, Cell, plan->arg_count + 1);
    if (agg->argv == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    Err err = exec__compile_list(exec, plan->arg, plan->arg_count, &agg->arg);
    if (err == OK && plan->filter != NULL)
        err = exec__compile_condition(exec, plan->filter, &agg->filter);
    if (err == OK && plan->order_count > 0) err = agg_open_order(exec, agg);
    if (err != OK || !plan->distinct) return err;
    exec__spill_enlist(exec);
    err = exec__keymaker_init(exec, &agg->maker, &agg->plan->collation, 1);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

Err
exec__aggs_open(Exec *exec, Aggs *aggs, const PlanAgg *plan, u32 count)
{
    *aggs = (Aggs){.exec = exec};
    arena_init(&aggs->states, exec->account);
    aggs->agg = ARENA_NEW_ARRAY(&exec->arena, Agg, MAX_OF(count, 1u));
    if (aggs->agg == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (u32 i = 0; i < count; i++) {
        aggs->count++;
        aggs->agg[i].state_offset = aggs->state_bytes;
        aggs->state_bytes += (u32)ALIGN_UP(plan[i].def->state_bytes, 16);
        aggs->has_distinct |= plan[i].distinct;
        Err err = agg_open(exec, &aggs->agg[i], &plan[i]);
        if (err != OK) return err;
    }
    return OK;
}

static inline void *
state_of(const Aggs *aggs, u32 group, u32 agg)
{
    return aggs->state[group] + aggs->agg[agg].state_offset;
}

void
exec__aggs_clear(Aggs *aggs)
{
    for (u32 i = 0; i < aggs->count; i++) {
        Agg *agg = &aggs->agg[i];
        if (agg->plan->def->state_free != NULL) {
            for (u32 group = 0; group < aggs->groups; group++) {
                agg->call.state = state_of(aggs, group, i);
                agg->call.arena = &aggs->states;
                agg->plan->def->state_free(&agg->call);
            }
        }
        if (agg->plan->distinct) {
            exec__ints_clear(&agg->ints);
            agg->ints_off = false;
            exec__set_clear(aggs->exec, &agg->spilled);
            exec__keyset_clear(&agg->seen);
            exec__keymaker_reset(&agg->maker);
        }
        if (agg->plan->order_count > 0) exec__sorter_start(&agg->sorter, U64_MAX);
    }
    aggs->groups = 0;
    aggs->fed = false;
    arena_reset(&aggs->states);
}

void
exec__aggs_close(Aggs *aggs)
{
    if (aggs->agg == NULL) return;
    exec__aggs_clear(aggs);
    for (u32 i = 0; i < aggs->count; i++) {
        exec__set_free(aggs->exec, &aggs->agg[i].spilled);
        exec__keyset_free(&aggs->agg[i].seen);
        exec__ints_free(&aggs->agg[i].ints);
        if (aggs->agg[i].plan->distinct) exec__keymaker_free(&aggs->agg[i].maker);
        if (aggs->agg[i].plan->order_count > 0) exec__sorter_free(&aggs->agg[i].sorter);
    }
    mem_free(aggs->state);
    arena_free(&aggs->states);
    *aggs = (Aggs){0};
}

Err
exec__aggs_group(Exec *exec, Aggs *aggs)
{
    if (aggs->groups == aggs->capacity) {
        u32 capacity = MAX_OF(aggs->capacity * 2, 16u);
        u8 **state = mem_realloc(aggs->state, (size_t)capacity * sizeof(u8 *));
        if (state == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
        aggs->state = state;
        aggs->capacity = capacity;
    }
    u8 *state = arena_alloc(&aggs->states, MAX_OF(aggs->state_bytes, 1u));
    if (state == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    aggs->state[aggs->groups++] = state;
    return OK;
}

Err
exec__agg_step(Exec *exec, Aggs *aggs, u32 group, u32 i, const Cell *argv)
{
    Agg *agg = &aggs->agg[i];
    agg->call.state = state_of(aggs, group, i);
    agg->call.arena = &aggs->states;
    Err err = agg->plan->def->step(&agg->call, agg->plan->arg_count, argv);
    return err == OK ? OK : exec__fail_call(exec, agg->plan->def, err);
}

static Err
seen_add(Exec *exec, Agg *agg, u32 group, const Cell *argv, bool *new_out)
{
    Slice key;
    u32 number;
    Err err = exec__key_make(&agg->maker, argv, &key);
    u8 bytes[4];
    store_be32(bytes, group);
    if (err == OK) err = buf_append(&agg->maker.buf, bytes, sizeof(bytes));
    if (err == OK) {
        err = exec__set_add(exec, &agg->spilled, &agg->seen, buf_slice(&agg->maker.buf), &number,
                            new_out);
    }
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

/* Something that is no integer has come: from now on key bytes tell what is equal. */
static Err
ints_leave(Exec *exec, Agg *agg)
{
    u64 at = 0;
    u32 group;
    i64 value;
    bool is_new;
    while (exec__ints_next(&agg->ints, &at, &group, &value)) {
        Cell cell = cell_int(value);
        Err err = seen_add(exec, agg, group, &cell, &is_new);
        if (err != OK) return err;
    }
    exec__ints_clear(&agg->ints);
    agg->ints_off = true;
    return OK;
}

Err
exec__agg_is_new(Exec *exec, Agg *agg, u32 group, bool *new_out)
{
    if (!agg->ints_off) {
        REACHED("exec: DISTINCT went on with key bytes");
        Err err = ints_leave(exec, agg);
        if (err != OK) return err;
    }
    return seen_add(exec, agg, group, agg->argv, new_out);
}

Err
exec__aggs_feed(Exec *exec, Aggs *aggs, u32 group, u32 i)
{
    Agg *agg = &aggs->agg[i];
    if (agg->plan->distinct && agg->plan->arg_count > 0) {
        bool is_new;
        Err err = exec__agg_is_new(exec, agg, group, &is_new);
        if (err != OK || !is_new) return err;
    }
    return exec__agg_step(exec, aggs, group, i, agg->argv);
}

static ALWAYS_INLINE Err
agg_arg(Exec *exec, Agg *agg, u32 k, const Cell *row, Arena *arena)
{
    u32 column;
    if (exec__program_is_column(agg->arg[k], &column) && (row[column].flags & CELL_POINTER) == 0) {
        agg->argv[k] = row[column];
        if ((agg->plan->def->flags & FUNC_SUBTYPE) == 0) agg->argv[k].subtype = 0;
        return OK;
    }
    return (agg->plan->def->flags & FUNC_SUBTYPE) != 0
               ? exec__eval_subtype_in(exec, agg->arg[k], row, arena, &agg->argv[k])
               : exec__eval_in(exec, agg->arg[k], row, arena, &agg->argv[k]);
}

/* One step. */
static ALWAYS_INLINE Err
agg_row_plain(Exec *exec, Aggs *aggs, u32 group, u32 i, const Cell *row, Arena *arena)
{
    Agg *agg = &aggs->agg[i];
    if (agg->plan->arg_count > 0) {
        Err err = agg_arg(exec, agg, 0, row, arena);
        if (err != OK) return err;
    }
    return exec__agg_step(exec, aggs, group, i, agg->argv);
}

static NOINLINE Err
agg_row(Exec *exec, Aggs *aggs, u32 group, u32 i, const Cell *row, Arena *arena)
{
    Agg *agg = &aggs->agg[i];
    const PlanAgg *plan = agg->plan;
    Err err = OK;
    if (agg->filter != NULL) {
        ExecTruth truth = EXEC_FALSE;
        err = exec__truth_in(exec, agg->filter, row, arena, &truth);
        if (err != OK || truth != EXEC_TRUE) return err;
    }
    for (u32 k = 0; k < plan->arg_count; k++) {
        err = agg_arg(exec, agg, k, row, arena);
        if (err != OK) return err;
    }
    if (plan->order_count == 0) return exec__aggs_feed(exec, aggs, group, i);
    if (plan->distinct && plan->arg_count > 0) {
        bool is_new;
        err = exec__agg_is_new(exec, agg, group, &is_new);
        if (err != OK || !is_new) return err;
    }
    agg->order_cell[0] = cell_int(group);
    agg->argv[plan->arg_count] = cell_int(group);
    for (u32 k = 0; k < plan->order_count; k++) {
        err = exec__eval_in(exec, agg->order[k], row, arena, &agg->order_cell[k + 1]);
        if (err != OK) return err;
    }
    err = exec__sorter_add(&agg->sorter, agg->order_cell, agg->argv);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

Err
exec__aggs_row(Exec *exec, Aggs *aggs, u32 group, const Cell *row, Arena *arena)
{
    for (u32 i = 0; i < aggs->count; i++) {
        Err err = LIKELY(aggs->agg[i].plain) ? agg_row_plain(exec, aggs, group, i, row, arena)
                                             : agg_row(exec, aggs, group, i, row, arena);
        if (err != OK) return err;
    }
    return OK;
}

bool
exec__aggs_only_count(const Aggs *aggs)
{
    for (u32 i = 0; i < aggs->count; i++) {
        const Agg *agg = &aggs->agg[i];
        const FuncDef *def = agg->plan->def;
        bool counts = def->kernel == FUNC_KERNEL_COUNT && def->kind == FUNC_AGGREGATE;
        if (!counts || !agg->plain || agg->plan->arg_count > 0) return false;
    }
    return true;
}

void
exec__aggs_count(Aggs *aggs, u32 group, u64 rows)
{
    for (u32 i = 0; i < aggs->count; i++) {
        *(i64 *)state_of(aggs, group, i) += (i64)rows;
    }
}

/* The rows of the sorter are the arguments, then the group. */
static Err
agg_feed_sorted(Exec *exec, Aggs *aggs, u32 i)
{
    Agg *agg = &aggs->agg[i];
    Err err = exec__sorter_finish(&agg->sorter);
    if (err != OK) return exec__fail(exec, err, NULL);
    for (;;) {
        const Cell *row;
        err = exec__sorter_next(&agg->sorter, NULL, &row);
        if (err != OK) return exec__fail(exec, err, NULL);
        if (row == NULL) return OK;
        err = exec__agg_step(exec, aggs, (u32)row[agg->plan->arg_count].u.i, i, row);
        if (err != OK) return err;
    }
}

static Err
agg_spill(Exec *exec, Agg *agg)
{
    u64 memory = exec__keyset_memory(&agg->seen) + exec__ints_memory(&agg->ints);
    if (!exec__spill_due(exec, &agg->spilled.held, memory)) return OK;
    Err err = agg->ints_off ? OK : ints_leave(exec, agg);
    if (err != OK) return err;
    exec__ints_free(&agg->ints);
    err = exec__set_flush(exec, &agg->spilled, &agg->seen);
    return err == OK ? OK : exec__fail(exec, err, NULL);
}

Err
exec__aggs_spill(Exec *exec, Aggs *aggs)
{
    for (u32 i = 0; aggs->has_distinct && i < aggs->count; i++) {
        Err err = aggs->agg[i].plan->distinct ? agg_spill(exec, &aggs->agg[i]) : OK;
        if (err != OK) return err;
    }
    return OK;
}

Err
exec__aggs_finish(Exec *exec, Aggs *aggs)
{
    if (aggs->fed) return OK;
    aggs->fed = true;
    for (u32 i = 0; i < aggs->count; i++) {
        if (aggs->agg[i].plan->order_count == 0) continue;
        Err err = agg_feed_sorted(exec, aggs, i);
        if (err != OK) return err;
    }
    return OK;
}

Err
exec__aggs_value(Exec *exec, Aggs *aggs, u32 group, u32 i, Arena *arena, Cell *out)
{
    Agg *agg = &aggs->agg[i];
    *out = cell_null();
    agg->call.state = state_of(aggs, group, i);
    agg->call.arena = arena;
    const FuncDef *def = agg->plan->def;
    Err err = (def->final != NULL ? def->final : def->value)(&agg->call, out);
    if (err != OK) return exec__fail_call(exec, agg->plan->def, err);
    out->subtype = 0;
    return OK;
}
