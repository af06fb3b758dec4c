/*
 * task.c -- the scheduler: which task runs next, for how many yield points, and when time passes.
 *
 * One real thread.  The scheduler has its own context; a task that waits, is preempted or ends
 * switches to it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rt/sim/sim_impl.h"
#include "rt/time.h"

#ifdef WEFT_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define QUOTA_LONG      1000000
#define QUOTA_BITS      9
#define QUOTA_PRIORITY  400
#define SWITCH_COST_NS  400
#define SHOWN_TASKS_MAX 12

static void
stack_take(World *world, RtStack *stack)
{
    if (world->free_count > 0) {
        *stack = world->free_stacks[--world->free_count];
        return;
    }
    mem_set_source(NULL); /* Stacks are the world's, not of the process that runs now. */
    if (rt__stack_new(&world->stacks, stack) != OK) abort();
    mem_set_source(&rt__sim_heap);
}

static void
stack_give(World *world, RtStack stack)
{
    if (world->free_count == world->free_capacity) {
        world->free_capacity = world->free_capacity * 2 + 16;
        world->free_stacks = realloc(world->free_stacks,
                                     world->free_capacity * sizeof(*world->free_stacks));
        if (world->free_stacks == NULL) abort();
    }
#ifdef WEFT_ASAN
    ASAN_UNPOISON_MEMORY_REGION(stack.low, (size_t)(stack.high - stack.low));
#endif
    world->free_stacks[world->free_count++] = stack;
}

static void
task_main(void *arg)
{
    SimTask *task = arg;
    rt__context_began(&rt__world->context);
    task->fn(task->arg);
    /* From the last event on nobody else may run: the joiner frees what was ours. */
    rt__sim_hold();
    if (task->group != NULL) rt__group_leave(task->base, task->group);
    if (task->ended != NULL) rt_event_set(task->ended);
    rt__sim_release();
    task->state = SIM_DONE;
    rt__context_leave(&task->context, &rt__world->context);
}

SimTask *
rt__sim_task_new(RtSimProcess *process, RtTask *base, RtTaskFn fn, void *arg, const char *name)
{
    World *world = rt__world;
    SimTask *task = rt__world_alloc(sizeof(*task));
    task->base = base != NULL ? base : &task->own;
    /* Until the world knows the task nothing may come between: a crash would lose it. */
    rt__sim_hold();
    if (base == NULL) rt_task_init(task->base, process->rt, name);
    rt__sim_release();
    task->base->kind = RT_TASK_SIM;
    task->base->sched = &rt__sim_sched;
    task->base->is_base = true;
    task->base->owner = task;
    task->current = task->base;
    task->process = process;
    task->fn = fn;
    task->arg = arg;
    task->id = ++world->next_task;
    SimTask *parent = world->running;
    task->key = parent != NULL ? hash_u64(++parent->children, parent->key)
                               : hash_u64((u64)process->pid, 17 + world->draws[SIM_WORK]++);
    task->priority = 1 + (i64)rt__world_draw(SIM_SCHED, 1000000);
    task->deadline_ns = RT_FOREVER;
    stack_take(world, &task->stack);
    task->base->stack_low = task->stack.low + 8192;
    rt__context_make(&task->context, &task->stack, task_main, task);
    if (world->task_count == world->task_capacity) {
        world->task_capacity = world->task_capacity * 2 + 16;
        world->tasks = realloc(world->tasks, world->task_capacity * sizeof(SimTask *));
        if (world->tasks == NULL) abort();
    }
    world->tasks[world->task_count++] = task;
    process->tasks++;
    rt__world_note("task", task->id, (u64)process->pid);
    return task;
}

/* Takes it out of the world; the caller goes on with the tasks behind it. */
static void
task_remove(World *world, SimTask *task)
{
    u32 at = 0;
    while (world->tasks[at] != task)
        at++;
    memmove(world->tasks + at, world->tasks + at + 1,
            (world->task_count - at - 1) * sizeof(SimTask *));
    world->task_count--;
    if (world->frozen == task) world->frozen = NULL;
    task->process->tasks--;
}

static void
task_free(World *world, SimTask *task)
{
    rt__context_free(&task->context);
    free(task->scratch);
    stack_give(world, task->stack);
    free(task);
}

void
rt__sim_task_drop(SimTask *task)
{
    task_remove(rt__world, task);
    task_free(rt__world, task);
}

void
rt__sim_switch_out(void)
{
    World *world = rt__world;
    SimTask *task = world->running;
    task->current = rt__tls.current;
    rt__context_switch(&task->context, &world->context);
    rt__tls.current = task->current;
}

/* A preemption gives no turn: outside the simulator there is none. */
static void
stretch_failed(const World *world)
{
    const SimTask *task = world->running;
    const char *name = task->base->name != NULL ? task->base->name : "-";
    rt_sim_fail("fiber \"%s\" of %s kept its loop for %llu ms: %llu yield points without a turn",
                name, task->process->name,
                (unsigned long long)(task->stretch * world->yield_cost_ns / RT_NS_PER_MS),
                (unsigned long long)task->stretch);
}

/* The yield point, in check builds at each access to a shared word. */
void
rt__sim_hook_yield(void)
{
    World *world = rt__world;
    if (world->running == NULL) return;
    world->report->yields++;
    world->running->yields++;
    if (UNLIKELY(++world->running->stretch > world->stretch_max) && world->running->is_fiber)
        stretch_failed(world);
    if (--world->quota > 0) return;
    SimTask *task = world->running;
    if (world->options.events == NULL)
        rt__events_record(RT_SIM_EVENT_PREEMPT, task->key, task->yields, 0);
    world->report->preemptions++;
    rt__world_note("preempt", world->running->id, world->report->yields);
    rt__sim_switch_out();
}

static bool
is_runnable(const World *world, const SimTask *task)
{
    return task->state == SIM_RUNNABLE ||
           (task->state == SIM_SLEEPING && task->deadline_ns <= world->clock_ns);
}

static SimTask *
choose_priority(World *world)
{
    SimTask *best = NULL;
    for (u32 i = 0; i < world->task_count; i++) {
        SimTask *task = world->tasks[i];
        if (is_runnable(world, task) && (best == NULL || task->priority > best->priority))
            best = task;
    }
    return best;
}

static SimTask *
choose_random(World *world)
{
    u32 runnable = 0;
    bool freezes = world->scheduler == RT_SIM_FROZEN_TASK && !world->is_healed;
    for (u32 i = 0; i < world->task_count; i++)
        runnable += is_runnable(world, world->tasks[i]);
    if (runnable == 0) return NULL;
    if (freezes && rt__world_draw(SIM_SCHED, 300) == 0)
        world->frozen = world->tasks[rt__world_draw(SIM_SCHED, world->task_count)];
    bool skips = freezes && runnable > 1 && world->frozen != NULL &&
                 is_runnable(world, world->frozen);
    u64 nth = rt__world_draw(SIM_SCHED, runnable - (skips ? 1 : 0));
    for (u32 i = 0;; i++) {
        SimTask *task = world->tasks[i];
        if (!is_runnable(world, task) || (skips && task == world->frozen)) continue;
        if (nth-- == 0) return task;
    }
}

/* The plain choice: tasks in turn, by id. */
static SimTask *
choose_next(World *world)
{
    SimTask *first = NULL;
    for (u32 i = 0; i < world->task_count; i++) {
        SimTask *task = world->tasks[i];
        if (!is_runnable(world, task)) continue;
        if (first == NULL) first = task;
        if (task->id > world->last_id) return task;
    }
    return first;
}

static SimTask *
choose_recorded(World *world)
{
    const RtSimEvent *event = rt__events_find(RT_SIM_EVENT_PICK, world->last_key,
                                              world->last_turns);
    for (u32 i = 0; i < world->task_count && event != NULL; i++) {
        SimTask *task = world->tasks[i];
        if (task->key == event->value && is_runnable(world, task)) return task;
    }
    return choose_next(world);
}

static SimTask *
choose(World *world)
{
    if (world->options.events != NULL) return choose_recorded(world);
    SimTask *task = world->scheduler == RT_SIM_PRIORITIES && !world->is_healed
                        ? choose_priority(world)
                        : choose_random(world);
    if (task != NULL && task != choose_next(world))
        rt__events_record(RT_SIM_EVENT_PICK, world->last_key, world->last_turns, task->key);
    return task;
}

/* In a replay: up to the next recorded preemption of the task. */
static u64
quota_recorded(const World *world, const SimTask *task)
{
    const RtSimEvents *events = world->options.events;
    u64 quota = QUOTA_LONG;
    for (u64 i = 0; i < events->count; i++) {
        const RtSimEvent *event = &events->list[i];
        bool is_ours = event->kind == RT_SIM_EVENT_PREEMPT && event->task == task->key;
        if (is_ours && event->number > task->yields)
            quota = MIN_OF(quota, event->number - task->yields);
    }
    return quota;
}

static void
quota_draw(World *world, SimTask *task)
{
    if (world->options.events != NULL) {
        world->quota_was = quota_recorded(world, task);
        world->quota = (i64)world->quota_was;
        return;
    }
    u64 quota = 1 + rt__world_draw(SIM_SCHED, (u64)1 << rt__world_draw(SIM_SCHED, QUOTA_BITS));
    if (world->is_healed || world->scheduler == RT_SIM_LONG_SLICES) quota = QUOTA_LONG;
    if (world->scheduler == RT_SIM_PRIORITIES && !world->is_healed) {
        quota = QUOTA_PRIORITY;
        for (u32 i = 0; i < COUNT_OF(world->change_points); i++) {
            u64 at = world->change_points[i];
            if (at > world->report->yields) {
                quota = MIN_OF(quota, at - world->report->yields);
            } else if (at != 0) {
                task->priority = --world->lowest; /* Below all others from here on. */
                world->change_points[i] = 0;
            }
        }
    }
    world->quota = (i64)quota;
    world->quota_was = quota;
}

static void
task_run(World *world, SimTask *task)
{
    quota_draw(world, task);
    if (task->state == SIM_SLEEPING) task->state = SIM_RUNNABLE; /* Its time is over. */
    world->running = task;
    world->last_id = task->id;
    world->last_key = task->key;
    world->last_turns = ++task->turns;
    world->report->switches++;
    rt__world_note("run", task->id, (u64)world->quota);
    rt__tls.current = task->current;
    rt__context_switch(&world->context, &task->context);
    rt__tls.current = NULL;
    world->running = NULL;
    u64 used = world->quota_was - (u64)MAX_OF(world->quota, 0);
    world->clock_ns += SWITCH_COST_NS + used * world->yield_cost_ns;
    if (task->state == SIM_DONE) {
        RtSimProcess *process = task->process;
        bool is_driver = task == world->tasks[0] && process == world->operator_process;
        rt__sim_task_drop(task);
        if (is_driver)
            world->is_over = true;
        else if (process->tasks == 0)
            rt__sim_process_ended(process);
    }
}

/* The next moment at which something happens by itself. */
static u64
next_event(const World *world)
{
    u64 next = rt__net_next_event(world->net);
    for (u32 i = 0; i < world->task_count; i++) {
        const SimTask *task = world->tasks[i];
        if (task->state == SIM_SLEEPING) next = MIN_OF(next, task->deadline_ns);
    }
    for (const RtSimProcess *at = world->processes; at != NULL; at = at->next) {
        if (at->crash_ns != 0) next = MIN_OF(next, at->crash_ns);
    }
    return next;
}

static void
events_fire(World *world)
{
    rt__net_fire(world->net);
    RtSimProcess *due = world->dying;
    world->dying = NULL;
    for (RtSimProcess *at = world->processes; at != NULL && due == NULL; at = at->next) {
        if (at->crash_ns != 0 && at->crash_ns <= world->clock_ns) due = at;
    }
    if (due != NULL) rt__sim_process_die(due, due->crash_how);
}

/* The failure text of a deadlock: who waits. */
static void
deadlock_show(World *world)
{
    char text[800];
    size_t used = 0;
    text[0] = 0;
    for (u32 i = 0; i < world->task_count && i < SHOWN_TASKS_MAX; i++) {
        const SimTask *task = world->tasks[i];
        int more = snprintf(text + used, sizeof(text) - used, "%s%s/%s#%llu", i > 0 ? ", " : "",
                            task->process->name, task->base->name != NULL ? task->base->name : "-",
                            (unsigned long long)task->id);
        used = MIN_OF(used + (size_t)more, sizeof(text) - 1);
    }
    rt__world_mark_failed("DEADLOCK: nobody can run and nothing is to come; waiting: %s", text);
}

void
rt__sim_turns(void)
{
    World *world = rt__world;
    while (!world->is_over) {
        events_fire(world);
        SimTask *task = choose(world);
        if (task != NULL) {
            task_run(world, task);
            if (world->report->switches > world->options.switches_max)
                rt__world_mark_failed("LIVELOCK: no end after %llu switches",
                                      (unsigned long long)world->report->switches);
            continue;
        }
        u64 next = next_event(world);
        if (next == RT_FOREVER)
            deadlock_show(world);
        else
            world->clock_ns = MAX_OF(world->clock_ns, next);
    }
}

static u32
wanted_bit(u32 word, u32 wanted)
{
    u32 bits = word & wanted;
    return bits & RT_TASK_TOKEN ? RT_TASK_TOKEN : bits;
}

static u32
sim_sleep(RtTask *task, u64 deadline_ns, u32 wanted)
{
    SimTask *self = task->owner;
    ASSERT(self == rt__world->running);
    u32 bit = wanted_bit(atomic_load(&task->word.atom), wanted);
    if (bit != 0) return bit;
    self->wanted = wanted;
    self->deadline_ns = deadline_ns;
    self->state = SIM_SLEEPING;
    self->stretch = 0;
    rt__sim_switch_out();
    self->deadline_ns = RT_FOREVER;
    self->wanted = 0;
    self->waits = NULL;
    return wanted_bit(atomic_load(&task->word.atom), wanted);
}

static void
sim_look(RtTask *base)
{
    SimTask *task = base->owner;
    if (task->state != SIM_SLEEPING) return;
    /* Of the running task the entered one is in the thread-local, but that one does not sleep. */
    if (atomic_load(&task->current->word.atom) & task->wanted) task->state = SIM_RUNNABLE;
}

static void
sim_yield(RtTask *task)
{
    /* It waits for somebody (a spin): so somebody else must come first. */
    SimTask *self = task->owner;
    self->priority = --rt__world->lowest;
    if (task->latches == 0 && task->guards == 0) self->stretch = 0;
    rt__sim_switch_out();
}

static void
sim_slice(RtTask *task, u64 now_ns)
{
    (void)now_ns;
    if (task->latches == 0 && task->guards == 0) ((SimTask *)task->owner)->stretch = 0;
}

/* Time stands still while a task runs, so every turn has just begun. */
static u64
sim_turn_began(const RtTask *task)
{
    (void)task;
    return rt__world->clock_ns;
}

static void
sim_task_io(RtProcess *process, RtIo *io)
{
    process->sys->io(process, io);
}

const RtSched rt__sim_sched = {
    .sleep = sim_sleep,
    .look = sim_look,
    .yield = sim_yield,
    .slice = sim_slice,
    .turn_began = sim_turn_began,
    .io = sim_task_io,
    .point_keep = rt__net_keep,
    .point_wait = rt__net_wait,
};

void
rt__world_pass(u64 duration_ns)
{
    SimTask *self = rt__world->running;
    if (duration_ns == 0) return;
    self->wanted = 0;
    self->stretch = 0;
    self->deadline_ns = rt__world->clock_ns + duration_ns;
    self->state = SIM_SLEEPING;
    rt__sim_switch_out();
    self->deadline_ns = RT_FOREVER;
}

void
rt__world_wait(const void *key, u64 deadline_ns, u32 wanted)
{
    SimTask *self = rt__world->running;
    self->waits = key;
    (void)sim_sleep(rt__tls.current, deadline_ns, wanted);
    self->waits = NULL;
}

void
rt__world_wake(const void *key)
{
    World *world = rt__world;
    for (u32 i = 0; i < world->task_count; i++) {
        SimTask *task = world->tasks[i];
        if (task->state == SIM_SLEEPING && task->waits == key) task->state = SIM_RUNNABLE;
    }
}
