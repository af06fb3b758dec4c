/*
 * scan_args.c -- arguments evaluated, lists sorted and walked.
 */
#include "exec/scan_args.h"

#include "base/sort.h"
#include "exec/exec__write.h"
#include "exec/node.h"
#include "exec/program.h"

static Err
list_push(void *arg, const Cell *value)
{
    ScanArg *state = arg;
    if (value->type == CELL_NULL) return OK;
    Cell cell = *value;
    Affinity affinity = (Affinity)state->plan->affinity;
    Err err = OK;
    if (affinity != AFFINITY_NONE) err = cell_apply_affinity(&cell, affinity, &state->list.bytes);
    return err == OK ? exec__rowbuf_add(&state->list, &cell) : err;
}

static int
compare_values(const void *a, const void *b)
{
    return cell_compare(a, b, NULL);
}

static Err
fill_list(Exec *exec, ScanArgs *args, ScanArg *state)
{
    Err err = OK;
    exec__rowbuf_clear(&state->list);
    state->at = 0;
    const PlanSub *sub = state->plan->part.in_sub;
    for (u32 i = 0; err == OK && sub != NULL && i < sub->bind_count; i++) {
        err = exec__eval_in(exec, state->bind[i], NULL, &args->bytes, &exec->reg[sub->bind_reg[i]]);
    }
    if (err == OK && sub != NULL) err = exec__sub_each(exec, state->sub, list_push, state);
    for (u32 i = 0; err == OK && state->item != NULL && i < state->plan->part.in_count; i++) {
        Cell value = cell_null();
        err = exec__eval_in(exec, state->item[i], NULL, &args->bytes, &value);
        if (err == OK) err = list_push(state, &value);
    }
    if (err != OK) return exec->msg.err == OK ? exec__fail(exec, err, NULL) : err;
    sort_items(state->list.cell, state->list.rows, sizeof(Cell), compare_values);
    u32 kept = 0;
    for (u32 i = 0; i < state->list.rows; i++) {
        bool again = kept > 0 &&
                     cell_compare(&state->list.cell[kept - 1], &state->list.cell[i], NULL) == 0;
        if (!again) state->list.cell[kept++] = state->list.cell[i];
    }
    state->list.rows = kept;
    return OK;
}

Err
exec__args_begin(Exec *exec, ScanArgs *args, bool *empty_out)
{
    arena_reset(&args->bytes);
    *empty_out = false;
    for (u32 i = 0; i < args->count; i++) {
        ScanArg *state = &args->arg[i];
        args->value[i] = cell_null();
        Err err = OK;
        if (state->is_list) {
            err = fill_list(exec, args, state);
        } else if (state->value != NULL) {
            err = exec__eval_argument(exec, state->value, &args->bytes, &args->value[i]);
        }
        if (err != OK) return err;
        if (!state->is_list) continue;
        if (state->list.rows == 0) {
            *empty_out = true;
        } else if (!state->plan->whole_list) {
            args->value[i] = state->list.cell[0];
        }
        if (!state->plan->whole_list) continue;
        state->whole = (HostList){
            .magic = HOST_LIST_MAGIC, .count = state->list.rows, .value = state->list.cell};
        args->value[i] = (Cell){.flags = CELL_POINTER, .u.pointer = &state->whole};
    }
    return OK;
}

bool
exec__args_next(ScanArgs *args)
{
    for (u32 i = args->count; i-- > 0;) {
        ScanArg *state = &args->arg[i];
        if (!state->is_list || state->plan->whole_list) continue;
        bool more = ++state->at < state->list.rows;
        if (!more) state->at = 0;
        args->value[i] = state->list.cell[state->at];
        if (more) return true;
    }
    return false;
}

static Err
open_arg(Exec *exec, ScanArgs *args, const PlanScanArg *plan, ScanArg *state)
{
    state->plan = plan;
    const PlanKeyPart *part = &plan->part;
    if (part->value != NULL) return exec__compile(exec, part->value, &state->value);
    if (part->in_list == NULL && part->in_sub == NULL) return OK;
    exec__rowbuf_init(exec, &state->list, 1);
    state->is_list = true;
    if (!plan->whole_list) args->walks = true;
    if (part->in_sub == NULL)
        return exec__compile_list(exec, part->in_list, part->in_count, &state->item);
    Err err = exec__compile_list(exec, part->in_sub->bind_expr, part->in_sub->bind_count,
                                 &state->bind);
    return err == OK ? exec__sub_open(exec, part->in_sub, &state->sub) : err;
}

Err
exec__args_open(Exec *exec, const PlanScanArg *plan, u32 count, ScanArgs *args)
{
    Err err = OK;
    arena_init(&args->bytes, exec->account);
    args->value = ARENA_NEW_ARRAY(&exec->arena, Cell, MAX_OF(count, 1u));
    args->arg = ARENA_NEW_ARRAY(&exec->arena, ScanArg, MAX_OF(count, 1u));
    if (args->arg == NULL || args->value == NULL) return exec__fail(exec, ERR_NOMEM, NULL);
    for (args->count = 0; err == OK && args->count < count; args->count++)
        err = open_arg(exec, args, &plan[args->count], &args->arg[args->count]);
    return err;
}

void
exec__args_reset(ScanArgs *args)
{
    for (u32 i = 0; i < args->count; i++) {
        if (args->arg[i].is_list) exec__rowbuf_clear(&args->arg[i].list);
    }
}

void
exec__args_close(ScanArgs *args)
{
    for (u32 i = 0; i < args->count; i++) {
        if (args->arg[i].is_list) exec__rowbuf_free(&args->arg[i].list);
    }
    arena_free(&args->bytes);
}
