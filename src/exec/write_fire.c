/*
 * write_fire.c -- firing triggers and actions of foreign keys, without C recursion.
 *
 * write__fire() notes what to fire; write__fire_on() runs the bodies one after the other.  A body
 * that writes is handed to the driver, which runs it as the new top frame and comes back here; a
 * body that only selects is run at once, for it can fire nothing.
 */
#include "exec/write__run.h"

static bool
sets_any_of(const ExecWrite *w, const PlanTrigger *trigger)
{
    if (trigger->event != WRITE_UPDATE || trigger->of_count == 0) return true;
    for (u32 i = 0; i < w->sets->count; i++) {
        u16 column = w->sets->column[i];
        if (column == COLUMN_ROWID) column = w->table->rowid_column;
        for (u16 k = 0; k < trigger->of_count; k++) {
            if (trigger->of_column[k] == column) return true;
        }
    }
    return false;
}

bool
write__sets_any(const ExecWrite *w, const u16 *column, u16 count)
{
    for (u16 i = 0; i < count; i++) {
        if (w->sets->changed[column[i] == COLUMN_ROWID ? w->table->column_count : column[i]]) {
            return true;
        }
    }
    return false;
}

bool
write__has_triggers(const ExecWrite *w, u8 event)
{
    for (u32 i = 0; i < w->plan->trigger_count; i++) {
        if (w->plan->trigger[i].event == event) return true;
    }
    return false;
}

void
write__fire(ExecWrite *w, u8 event, bool before, const Cell *old, const Cell *fresh, u8 next)
{
    w->state = next;
    if (w->plan->trigger_count == 0) return;
    w->fire = (WriteFire){
        .active = true,
        .event = event,
        .before = before,
        .old = old,
        .fresh = fresh,
        .next = next,
    };
}

void
write__fire_actions(ExecWrite *w, u8 event, const Cell *old, const Cell *fresh, u8 next)
{
    w->state = next;
    if (w->plan->foreign_child_count == 0 || old == NULL) return;
    w->fire = (WriteFire){
        .active = true,
        .actions = true,
        .event = event,
        .old = old,
        .fresh = fresh,
        .next = next,
    };
}

/* Without recursive triggers one that is running already does not fire again. */
static bool
runs_already(const ExecWrite *w, const PlanTrigger *trigger)
{
    if (w->exec->env->recursive_triggers) return false;
    for (const ExecWrite *frame = w; frame != NULL; frame = frame->caller) {
        if (!frame->fire.active || !frame->fire.in_trigger) continue;
        if (frame == w || frame->fire.actions) continue;
        const PlanTrigger *running = &frame->plan->trigger[frame->fire.trigger];
        if (running == trigger || (frame->table->database == w->table->database &&
                                   strcmp(running->name, trigger->name) == 0)) {
            return true;
        }
    }
    return false;
}

/* OLD and NEW into the registers of `exec`. */
static void
set_registers(const ExecWrite *w, u32 old_reg, u32 new_reg, Exec *exec)
{
    Cell *reg = exec__regs(exec);
    size_t bytes = sizeof(Cell) * (w->table->column_count + 1u);
    if (w->fire.old != NULL) memcpy(&reg[old_reg], w->fire.old, bytes);
    if (w->fire.fresh != NULL) memcpy(&reg[new_reg], w->fire.fresh, bytes);
}

/* Does WHEN let the trigger fire?  In a body that fires its own trigger again the registers hold
   the body's OLD and NEW: they are put back. */
static Err
decide_when(ExecWrite *w, const PlanTrigger *trigger, const ExecProgram *when, bool *fires_out)
{
    u32 cells = w->table->column_count + 1u;
    Cell *reg = exec__regs(w->exec);
    Cell *kept = ARENA_NEW_ARRAY(&w->exec->row_arena, Cell, 2 * cells);
    if (kept == NULL) return exec__fail(w->exec, ERR_NOMEM, NULL);
    memcpy(kept, &reg[trigger->old_reg], sizeof(Cell) * cells);
    memcpy(kept + cells, &reg[trigger->new_reg], sizeof(Cell) * cells);
    set_registers(w, trigger->old_reg, trigger->new_reg, w->exec);
    ExecTruth truth;
    Err err = exec__eval_truth(w->exec, when, NULL, &truth);
    memcpy(&reg[trigger->old_reg], kept, sizeof(Cell) * cells);
    memcpy(&reg[trigger->new_reg], kept + cells, sizeof(Cell) * cells);
    *fires_out = err == OK && truth == EXEC_TRUE;
    return err;
}

/* Go to the next trigger that fires, its WHEN decided. */
static Err
next_trigger(ExecWrite *w, bool *found_out)
{
    WriteFire *fire = &w->fire;
    *found_out = false;
    for (; fire->trigger < w->plan->trigger_count; fire->trigger++) {
        const PlanTrigger *trigger = &w->plan->trigger[fire->trigger];
        if (trigger->event != fire->event || trigger->before != fire->before) continue;
        if (!sets_any_of(w, trigger) || runs_already(w, trigger)) continue;
        const ExecProgram *when = w->bodies[fire->trigger].when;
        bool fires = true;
        Err err = when == NULL ? OK : decide_when(w, trigger, when, &fires);
        if (err != OK) return err;
        if (!fires) continue;
        *found_out = true;
        return OK;
    }
    return OK;
}

static void
save_counts(ExecWrite *w)
{
    const FuncEnv *func = w->exec->env->func;
    w->saved_changes = func->changes != NULL ? func->changes(func->arg) : 0;
    w->saved_last_rowid = func->last_insert_rowid != NULL ? func->last_insert_rowid(func->arg) : 0;
}

void
write__restore_counts(ExecWrite *w)
{
    const ExecHooks *hooks = w->exec->env->hooks;
    const FuncEnv *func = w->exec->env->func;
    if (hooks == NULL) return;
    if (hooks->set_last_rowid != NULL && func->last_insert_rowid != NULL) {
        hooks->set_last_rowid(hooks->arg, w->saved_last_rowid);
    }
    if (hooks->set_changes != NULL && func->changes != NULL) {
        hooks->set_changes(hooks->arg, w->saved_changes);
    }
}

/* A body without writes, to its end. */
static Err
run_select(ExecWrite *w, Exec *child)
{
    bool row = true;
    Err err = OK;
    while (err == OK && row) {
        err = exec_step(child, &row);
    }
    if (err != OK) {
        w->exec->raise = child->raise;
        err = exec__adopt_error(w->exec, child, err);
    }
    exec_reset(child);
    return err;
}

/* Body number fire->body of what is firing; false: there are no more. */
static bool
next_body(ExecWrite *w, const Plan **plan_out, Exec ***child_out, u32 *old_reg_out,
          u32 *new_reg_out)
{
    WriteFire *fire = &w->fire;
    if (fire->actions) {
        write__action_body(w, plan_out, child_out, old_reg_out, new_reg_out);
        return fire->body == 0;
    }
    const PlanTrigger *trigger = &w->plan->trigger[fire->trigger];
    if (fire->body == trigger->body_count) return false;
    *plan_out = trigger->body[fire->body];
    *child_out = &w->bodies[fire->trigger].child[fire->body];
    *old_reg_out = trigger->old_reg;
    *new_reg_out = trigger->new_reg;
    return true;
}

static Err
start_body(ExecWrite *w, bool *found_out, ExecWrite **call_out)
{
    const Plan *plan;
    Exec **slot;
    u32 old_reg, new_reg;
    *found_out = next_body(w, &plan, &slot, &old_reg, &new_reg);
    if (!*found_out) return OK;
    if (*slot == NULL) {
        Err err = exec__open_child(w->exec, plan, slot);
        if (err != OK) return err;
    }
    Exec *child = *slot;
    w->fire.body++;
    child->depth = w->depth + 1;
    set_registers(w, old_reg, new_reg, child);
    Err err = exec_start(child, w->exec->txn, NULL, 0);
    if (err != OK) return exec__adopt_error(w->exec, child, err);
    if (child->write == NULL) return run_select(w, child);
    *call_out = child->write;
    return OK;
}

Err
write__fire_on(ExecWrite *w, ExecWrite **call_out)
{
    WriteFire *fire = &w->fire;
    *call_out = NULL;
    while (fire->active) {
        bool found;
        if (!fire->in_trigger) {
            Err err = fire->actions ? write__next_action(w, &found) : next_trigger(w, &found);
            if (err != OK) return err;
            if (!found) {
                fire->active = false;
                return OK;
            }
            if (w->depth + 1 > w->exec->env->trigger_depth_max) {
                return exec__fail(w->exec, ERR_SQL, "triggers nested too deep");
            }
            fire->in_trigger = true;
            fire->body = 0;
            save_counts(w);
        }
        Err err = start_body(w, &found, call_out);
        if (err != OK || *call_out != NULL) return err;
        if (!found) {
            write__restore_counts(w);
            fire->in_trigger = false;
            fire->trigger++;
        }
    }
    return OK;
}
