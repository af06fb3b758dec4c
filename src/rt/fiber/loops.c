/*
 * loops.c -- all loops of a process: start, spawning, and the orderly end.
 */
#include "rt/fiber/loop_impl.h"
#include "rt/host.h"
#include "rt/time.h"

#define FIBERS_MAX_DEFAULT 20000
#define LOOPS_MAX          256
#define STOP_LOOK_NS       (2 * RT_NS_PER_MS)

static Err
count_in(RtLoops *all, u32 jobs)
{
    if (atomic_load(&all->is_closing)) return ERR_CLOSED;
    if (atomic_fetch_add(&all->live, jobs) + jobs <= all->fibers_max) return OK;
    atomic_fetch_sub(&all->live, jobs);
    return ERR_LIMIT;
}

static RtLoop *
loop_choose(RtLoops *all, u32 where)
{
    RtLoop *here = rt__self()->loop;
    if (where == RT_LOOP_HERE && here != NULL) return here;
    if (where < all->count) return all->loops[where];
    RtLoop *best = all->loops[0];
    for (u32 i = 1; i < all->count; i++) {
        RtLoop *loop = all->loops[i];
        if (atomic_load_explicit(&loop->live, memory_order_relaxed) <
            atomic_load_explicit(&best->live, memory_order_relaxed))
            best = loop;
    }
    return best;
}

static Err
loops_spawn(RtProcess *process, u32 where, RtTaskFn fn, void *arg, const char *name)
{
    RtLoops *all = process->loops;
    RtJob job = {.fn = fn, .arg = arg, .name = name};
    Err err = count_in(all, 1);
    if (err != OK) return err;
    RtLoop *loop = loop_choose(all, where);
    atomic_fetch_add(&loop->live, 1);
    if (loop == rt__self()->loop && loop->waiting == NULL) {
        RtFiber *fiber = rt__fiber_new(loop);
        if (fiber != NULL) {
            rt__fiber_start(fiber, &job);
            rt__fiber_ready(fiber);
            return OK;
        }
    }
    RtJob *posted = MEM_NEW(RtJob);
    if (posted == NULL) {
        atomic_fetch_sub(&loop->live, 1);
        atomic_fetch_sub(&all->live, 1);
        return ERR_NOMEM;
    }
    *posted = job;
    rt__loop_post(loop, posted);
    return OK;
}

static u64
share_of_self(void)
{
    RtTask *task = rt__self();
    return task->kind == RT_TASK_FIBER ? ((RtFiber *)task->owner)->share->key : 0;
}

/* Children of groups wait in one list; idle loops take from it. */
static Err
loops_group_spawn(RtProcess *process, RtGroup *group, RtTaskFn fn, void *arg)
{
    RtLoops *all = process->loops;
    Err err = count_in(all, 1);
    if (err != OK) return err;
    RtJob *job = MEM_NEW(RtJob);
    if (job == NULL) {
        atomic_fetch_sub(&all->live, 1);
        return ERR_NOMEM;
    }
    *job = (RtJob){.fn = fn,
                   .arg = arg,
                   .name = "group",
                   .group = group,
                   .deadline_ns = rt__self()->deadline_ns,
                   .share = share_of_self()};
    rt_fetch_add(&group->running, 1);
    rt_mutex_lock(&all->shared_lock);
    if (atomic_load(&all->shared) == NULL)
        atomic_store(&all->shared, job);
    else
        all->shared_tail->next = job;
    all->shared_tail = job;
    rt_mutex_unlock(&all->shared_lock);
    for (u32 i = 0; i < all->count; i++) {
        if (atomic_load(&all->loops[i]->is_asleep) == 0) continue;
        rt__loop_poke(all->loops[i]);
        break;
    }
    return OK;
}

RtJob *
rt__loops_take_shared(RtLoops *all)
{
    if (LIKELY(atomic_load_explicit(&all->shared, memory_order_relaxed) == NULL)) return NULL;
    if (!rt_mutex_try_lock(&all->shared_lock)) return NULL; /* The holder is about to poke. */
    RtJob *job = atomic_load(&all->shared);
    if (job != NULL) atomic_store(&all->shared, job->next);
    rt_mutex_unlock(&all->shared_lock);
    return job;
}

static u32
loops_count(RtProcess *process)
{
    return ((RtLoops *)process->loops)->count;
}

static void loops_stop(RtProcess *process, u64 drain_ns);

static const RtHooks loops_hooks = {
    .spawn = loops_spawn,
    .group_spawn = loops_group_spawn,
    .when_readable = rt__reg_when_readable,
    .loop_count = loops_count,
    .stop = loops_stop,
};

static void
loops_free(RtLoops *all)
{
    for (u32 i = 0; i < all->count; i++) {
        RtLoop *loop = all->loops[i];
        if (loop == NULL || loop->thread == NULL) continue;
        atomic_store(&loop->must_stop, 1);
        rt__loop_poke(loop);
        rt_thread_join(loop->thread);
    }
    rt__pool_stop(all->pool);
    for (u32 i = 0; i < all->count; i++)
        rt__loop_free(all->loops[i]);
    mem_free(all);
}

static Err
loops_make(RtLoops *all, const RtLoopsConfig *config, ErrMsg *msg)
{
    u32 pool_threads = config->pool_threads != 0 ? config->pool_threads : 2 * all->count;
    Err err = rt__pool_start(all, pool_threads, &all->pool);
    for (u32 i = 0; i < all->count && err == OK; i++)
        err = rt__loop_new(all, i, &all->loops[i]);
    if (err != OK) return err_set(msg, err, "start loops: %s", err_text(err));
    all->has_ring = config->io != RT_IO_POOL;
    for (u32 i = 0; i < all->count && all->has_ring; i++)
        all->has_ring = rt__ring_new(all->loops[i], &all->loops[i]->ring) == OK;
    if (config->io == RT_IO_RING && !all->has_ring)
        return err_set(msg, ERR_UNSUPPORTED, "io_uring is not available here");
    if (!all->has_ring) {
        for (u32 i = 0; i < all->count; i++) {
            rt__ring_free(all->loops[i]->ring);
            all->loops[i]->ring = NULL;
        }
    }
    for (u32 i = 0; i < all->count && err == OK; i++) {
        RtLoop *loop = all->loops[i];
        err = rt_thread_start(all->process, rt__loop_main, loop, "weft-loop", &loop->thread);
    }
    return err == OK ? OK : err_set(msg, err, "start loops: %s", err_text(err));
}

Err
rt_loops_start(const RtLoopsConfig *config, ErrMsg *msg)
{
    RtProcess *process = rt__self()->process;
    RtLoopsConfig defaults = {0};
    if (config == NULL) config = &defaults;
    if (rt_process_is_foreign(process)) return err_set(msg, ERR_FOREIGN, NULL);
    if (process->world != NULL) return OK; /* The simulator has them from the start. */
    if (rt__hooks(process) != NULL) return err_set(msg, ERR_EXISTS, "loops are running");
    u32 count = config->loops != 0 ? config->loops : rt_cpu_count();
    if (count > LOOPS_MAX) count = LOOPS_MAX;
    RtLoops *all = mem_alloc_zeroed(sizeof(RtLoops) + count * sizeof(RtLoop *));
    if (all == NULL) return err_set(msg, ERR_NOMEM, NULL);
    all->process = process;
    all->count = count;
    all->fibers_max = config->fibers_max != 0 ? config->fibers_max : FIBERS_MAX_DEFAULT;
    Err err = loops_make(all, config, msg);
    if (err != OK) {
        loops_free(all);
        return err;
    }
    rt__overflow_enter();
    process->loops = all;
    rt_store_release(&process->hooks, (void *)(uintptr_t)&loops_hooks);
    return OK;
}

/* Runs as a fiber on each loop: cancels the loop's other fibers, where nobody else touches them. */
static void
cancel_others(void *arg)
{
    RtFiber *self = rt__self()->owner;
    (void)arg;
    for (RtFiber *fiber = self->loop->fibers; fiber != NULL; fiber = fiber->all_next) {
        if (fiber == self || fiber->state == RT_FIBER_FREE) continue;
        if (fiber->current != &fiber->task) rt_task_cancel(fiber->current);
        rt_task_cancel(&fiber->task);
    }
}

static void
wake_idle(void *arg)
{
    (void)arg;
    rt__regs_wake_idle(rt__self()->loop);
}

/* Post fn to every loop, closing or not. */
static void
run_on_all(RtLoops *all, RtTaskFn fn)
{
    for (u32 i = 0; i < all->count; i++) {
        RtJob *job = MEM_NEW(RtJob);
        if (job == NULL) return; /* The caller repeats. */
        *job = (RtJob){.fn = fn, .name = "stop"};
        atomic_fetch_add(&all->live, 1);
        atomic_fetch_add(&all->loops[i]->live, 1);
        rt__loop_post(all->loops[i], job);
    }
}

static bool
wait_until_empty(RtLoops *all, u64 deadline_ns)
{
    RtU32 nobody = {0};
    while (atomic_load(&all->live) != 0) {
        if (rt_now_ns() >= deadline_ns) return false;
        (void)rt_park(&nobody, &nobody, 0, 0, rt_deadline_after(STOP_LOOK_NS), RT_PARK_NOCANCEL, 0);
    }
    return true;
}

static void
loops_stop(RtProcess *process, u64 drain_ns)
{
    RtLoops *all = process->loops;
    ASSERT(rt__self()->loop == NULL);
    atomic_store(&all->is_closing, 1);
    run_on_all(all, wake_idle);
    if (!wait_until_empty(all, rt_deadline_after(drain_ns))) {
        /* Sticky, but a fiber may clear it for its cleanup and wait again: repeat. */
        do {
            run_on_all(all, wake_idle);
            run_on_all(all, cancel_others);
        } while (!wait_until_empty(all, rt_deadline_after(50 * RT_NS_PER_MS)));
    }
    rt_store(&process->hooks, NULL);
    process->loops = NULL;
    loops_free(all);
    rt__overflow_leave();
}

const char *
rt_loops_io_name(void)
{
    RtLoops *all = rt__self()->process->loops;
    return all != NULL && all->has_ring ? "ring" : "pool";
}
