/*
 * fiber.c -- the life of a fiber: made once, run again and again, freed with its loop.
 *
 * Only the loop's own thread resumes a fiber, so nobody can resume one that is still switching
 * out, and thread-locals stay valid across a switch.
 */
#include <stdio.h>

#include "base/log.h"
#include "rt/fiber/loop_impl.h"
#include "rt/time.h"

#define TOUCHED_LINES 10 /* Of the stack, when a fiber goes on that waits for a socket. */
#define SLICE_NS      (1 * RT_NS_PER_MS)
#define HEAVY_CPU_NS  (2 * RT_NS_PER_MS)
#define STACK_STEP    ((size_t)8 << 10) /* Of what a stack is charged for. */
#define CREDIT_NS     ((i64)(4 * RT_NS_PER_MS))

/* The stack has grown, and is used already: the next who wants memory meets the cap. */
static NOINLINE void
stack_charge(RtFiber *fiber)
{
    size_t bytes = ALIGN_UP((size_t)(fiber->stack.high - fiber->sp_low), STACK_STEP);
    mem_account_add(&fiber->loop->all->process->parts[RT_PART_STACKS], bytes - fiber->charged);
    fiber->charged = bytes;
}

static void
stack_release(RtFiber *fiber, size_t keep)
{
    if (fiber->charged <= keep) return;
    mem_account_release(&fiber->loop->all->process->parts[RT_PART_STACKS], fiber->charged - keep);
    fiber->charged = keep;
}

static ALWAYS_INLINE void
stack_note(RtFiber *fiber, char *here)
{
    if (here >= fiber->sp_low) return;
    fiber->sp_low = here;
    if (UNLIKELY((size_t)(fiber->stack.high - here) > fiber->charged)) stack_charge(fiber);
}

/* Who goes deep without a switch asks rt_stack_left() on the way. */
static void
fiber_stack_at(RtTask *task, char *here)
{
    stack_note(task->owner, here);
}

static void
switch_out(RtFiber *fiber)
{
    RtLoop *loop = fiber->loop;
    stack_note(fiber, __builtin_frame_address(0));
    fiber->current = rt__tls.current;
    rt__context_switch(&fiber->context, &loop->context);
    rt__tls.current = fiber->current;
}

/* Bottom frame of every fiber.  One context serves many runs. */
static void
fiber_main(void *arg)
{
    RtFiber *fiber = arg;
    rt__context_began(&fiber->loop->context);
    while (fiber->fn != NULL) {
        rt__tls.current = &fiber->task;
        fiber->fn(fiber->arg);
        DCHECK(rt__tls.current == &fiber->task && fiber->task.latches == 0);
        fiber->state = RT_FIBER_DONE;
        switch_out(fiber);
    }
    rt__context_leave(&fiber->context, &fiber->loop->context);
}

static RtFiber *
fiber_make(RtLoop *loop)
{
    if (rt__timers_owe(loop) != OK) return NULL;
    RtFiber *fiber = mem_alloc_aligned(64, sizeof(RtFiber));
    if (fiber == NULL) return NULL;
    *fiber = (RtFiber){0};
    if (rt__stack_new(&loop->stacks, &fiber->stack) != OK) {
        mem_free(fiber);
        return NULL;
    }
    fiber->loop = loop;
    fiber->charged = STACK_STEP;
    rt__context_make(&fiber->context, &fiber->stack, fiber_main, fiber);
    fiber->all_next = loop->fibers;
    loop->fibers = fiber;
    return fiber;
}

RtFiber *
rt__fiber_new(RtLoop *loop)
{
    RtFiber *fiber = loop->free;
    if (LIKELY(fiber != NULL)) {
        loop->free = fiber->next;
        return fiber;
    }
    /* The first one gets its stack in any case, since no other would end and make room. */
    MemAccount *account = &loop->all->process->parts[RT_PART_STACKS];
    if (loop->fibers == NULL)
        mem_account_add(account, STACK_STEP);
    else if (mem_account_charge(account, STACK_STEP) != OK)
        return NULL;
    fiber = fiber_make(loop);
    if (fiber == NULL) mem_account_release(account, STACK_STEP);
    return fiber;
}

void
rt__fiber_start(RtFiber *fiber, const RtJob *job)
{
    RtTask *task = &fiber->task;
    RtProcess *process = fiber->loop->all->process;
    /* Field by field: a late wake may set a bit of task->word meanwhile. */
    rt_store(&task->word, 0);
    task->kind = RT_TASK_FIBER;
    task->sched = &rt__fiber_sched;
    task->is_base = true;
    task->latches = task->guards = 0;
    task->process = process;
    task->loop = fiber->loop;
    task->loop_number = fiber->loop->index + 1;
    task->owner = fiber;
    task->stack_low = fiber->stack.low + 4096; /* For signal frames and the switch itself. */
    task->deadline_ns = job->deadline_ns;
    task->watched = NULL;
    task->id = rt_fetch_add(&process->task_ids, 1) + 1;
    task->name = job->name;
    fiber->fn = job->fn;
    fiber->arg = job->arg;
    fiber->group = job->group;
    fiber->current = task;
    fiber->cpu_ns = 0;
    fiber->is_heavy = job->group != NULL;
    fiber->share = rt__share_get(fiber->loop, job->share);
    fiber->sp_low = fiber->stack.high;
    u64 alive = atomic_fetch_add_explicit(&process->fiber_count, 1, memory_order_relaxed) + 1;
    if (alive > atomic_load_explicit(&process->fiber_peak, memory_order_relaxed))
        atomic_store_explicit(&process->fiber_peak, alive, memory_order_relaxed);
    if (fiber->group != NULL) rt__group_enter(task, fiber->group);
}

void
rt__fiber_ready(RtFiber *fiber)
{
    DCHECK(fiber->timer.at == 0);
    fiber->state = RT_FIBER_READY;
    if (fiber->is_heavy)
        rt__ready_heavy(fiber->loop, fiber->share, &fiber->ready);
    else
        rt__ready_light(fiber->loop, &fiber->ready);
}

static void
fiber_ended(RtLoop *loop, RtFiber *fiber)
{
    fiber->state = RT_FIBER_FREE;
    if (fiber->group != NULL) rt__group_leave(&fiber->task, fiber->group);
    fiber->group = NULL;
    rt__share_leave(loop, fiber->share);
    if ((size_t)(fiber->stack.high - fiber->sp_low) > RT_STACK_KEEP_BYTES / 2) {
        rt__stack_trim(&fiber->stack);
        stack_release(fiber, RT_STACK_KEEP_BYTES);
    }
    fiber->next = loop->free;
    loop->free = fiber;
    rt__count(&loop->all->process->fiber_count, (u64)-1);
    atomic_fetch_sub(&loop->live, 1);
    atomic_fetch_sub(&loop->all->live, 1);
}

#ifdef WEFT_CHECK
/* Rounding, masks and precision; not the flags of what has happened. */
static u32
floating_mode(void)
{
#if defined(__x86_64__)
    u16 x87;
    u32 mxcsr = __builtin_ia32_stmxcsr();
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return (mxcsr & 0xffc0u) << 16 | x87;
#elif defined(__aarch64__)
    u64 control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return (u32)control;
#endif
}
#endif

static NOINLINE void
stretch_longest(RtLoop *loop, u64 ran_ns)
{
    _Atomic u64 *longest = &loop->all->process->longest_stretch_ns;
    u64 seen = atomic_load_explicit(longest, memory_order_relaxed);
    loop->longest_ns = ran_ns;
    while (seen < ran_ns && !atomic_compare_exchange_weak(longest, &seen, ran_ns)) {
    }
}

/* Others have waited for this one.  The machine may have been busy with something else: the
   processor time tells (it holds up to a millisecond of what ran before). */
static NOINLINE void
stretch_tell(RtLoop *loop, const RtFiber *fiber, u64 ran_ns)
{
    char cpu[48] = "";
    rt__count(&loop->all->process->long_stretches, 1);
#ifdef WEFT_CHECK
    u64 cpu_ns = rt_cpu_ns() - loop->looked_cpu_ns;
    snprintf(cpu, sizeof(cpu), ", at most %llu ms at work",
             (unsigned long long)(cpu_ns / RT_NS_PER_MS));
#endif
    if (loop->stretch_said_ns != 0 && loop->now_ns - loop->stretch_said_ns < RT_NS_PER_S) {
        loop->stretches_unsaid++;
        return;
    }
    const char *name = fiber->task.name != NULL ? fiber->task.name : "-";
    log_line(LOG_WARN, "fiber \"%.60s\" (%llu) kept loop %u for %llu ms%s; %llu more were not told",
             name, (unsigned long long)fiber->task.id, loop->index,
             (unsigned long long)(ran_ns / RT_NS_PER_MS), cpu,
             (unsigned long long)loop->stretches_unsaid);
    loop->stretch_said_ns = loop->now_ns;
    loop->stretches_unsaid = 0;
}

void
rt__fiber_run(RtLoop *loop, RtFiber *fiber)
{
    RtTask *outer = rt__tls.current;
    u64 began_ns = loop->now_ns;
    fiber->state = RT_FIBER_RUNNING;
    loop->running = fiber;
#ifdef WEFT_CHECK
    u32 mode = floating_mode();
#endif
    rt__context_switch(&loop->context, &fiber->context);
#ifdef WEFT_CHECK
    ASSERT(floating_mode() == mode); /* The switch does not save it: nobody changes it. */
#endif
    loop->running = NULL;
    rt__tls.current = outer;
    loop->now_ns = loop->all->process->sys->now_ns(loop->all->process);
    u64 ran_ns = loop->now_ns - began_ns;
    if (UNLIKELY(ran_ns > loop->longest_ns)) stretch_longest(loop, ran_ns);
    if (UNLIKELY(ran_ns > RT_STRETCH_MAX_NS)) stretch_tell(loop, fiber, ran_ns);
    /* Three parts of the time for light fibers, one for heavy ones, while both have work. */
    loop->heavy_credit_ns += fiber->is_heavy ? -(i64)ran_ns : (i64)ran_ns / 3;
    loop->heavy_credit_ns = MAX_OF(-CREDIT_NS, MIN_OF(CREDIT_NS, loop->heavy_credit_ns));
    fiber->cpu_ns += ran_ns;
    if (fiber->cpu_ns > HEAVY_CPU_NS) fiber->is_heavy = true;
    if (fiber->state == RT_FIBER_READY)
        rt__fiber_ready(fiber);
    else if (fiber->state == RT_FIBER_DONE)
        fiber_ended(loop, fiber);
}

static u32
wanted_bit(u32 word, u32 wanted)
{
    u32 bits = word & wanted;
    return bits & RT_TASK_TOKEN ? RT_TASK_TOKEN : bits;
}

static u32
fiber_sleep(RtTask *task, u64 deadline_ns, u32 wanted)
{
    RtFiber *fiber = task->owner;
    RtLoop *loop = fiber->loop;
    u32 bit = wanted_bit(atomic_load(&task->word.atom), wanted);
    if (bit != 0) return bit;
    ASSERT(loop->running == fiber);
    fiber->wanted = wanted;
    fiber->state = RT_FIBER_SLEEPING;
    if (deadline_ns != RT_FOREVER) rt__timer_add(loop, &fiber->timer, deadline_ns);
    switch_out(fiber);
    return wanted_bit(atomic_load(&task->word.atom), wanted);
}

void
rt__fiber_touch(const RtFiber *fiber)
{
    const char *top = fiber->context.sp;
    /* A load, since a prefetch does nothing where the page's address is missing too. */
    (void)*(const volatile char *)top;
    for (u32 i = 1; i < TOUCHED_LINES; i++)
        __builtin_prefetch(top + 64 * i, 1);
    __builtin_prefetch(&fiber->cpu_ns, 1);
    __builtin_prefetch(&fiber->task, 1);
}

void
rt__fiber_rest(RtFiber *fiber)
{
    ASSERT(fiber->loop->running == fiber);
    fiber->wanted = 0;
    fiber->state = RT_FIBER_SLEEPING;
    rt__batch_add(fiber->loop, fiber);
    switch_out(fiber);
    DCHECK(fiber->io == NULL);
}

void
rt__fiber_go(RtFiber *fiber)
{
    if (fiber->state != RT_FIBER_SLEEPING) return;
    rt__timer_remove(fiber->loop, &fiber->timer); /* Or it would make it ready once more. */
    rt__fiber_ready(fiber);
}

void
rt__fiber_look_here(RtFiber *fiber)
{
    if (fiber->state != RT_FIBER_SLEEPING) return;
    u32 word = atomic_load(&fiber->current->word.atom);
    if (word & fiber->wanted) rt__fiber_go(fiber);
}

static void
fiber_look(RtTask *base)
{
    RtFiber *fiber = base->owner;
    RtLoop *loop = fiber->loop;
    if (rt__self()->loop == loop) {
        rt__fiber_look_here(fiber);
        return;
    }
    if (atomic_exchange(&fiber->is_looked, 1) != 0) return; /* On its way already. */
    RtFiber *head = atomic_load_explicit(&loop->inbox, memory_order_relaxed);
    do {
        fiber->inbox_next = head;
    } while (!atomic_compare_exchange_weak(&loop->inbox, &head, fiber));
    rt__loop_poke(loop);
}

static void
fiber_yield(RtTask *task)
{
    RtFiber *fiber = task->owner;
    fiber->state = RT_FIBER_READY; /* Queued by the loop, behind the others. */
    switch_out(fiber);
}

static void
fiber_slice(RtTask *task, u64 now_ns)
{
    RtFiber *fiber = task->owner;
    if (now_ns - fiber->loop->now_ns >= SLICE_NS && task->latches == 0 && task->guards == 0)
        fiber_yield(task);
}

static u64
fiber_turn_began(const RtTask *task)
{
    return ((const RtFiber *)task->owner)->loop->now_ns;
}

static void
fiber_share(RtTask *task, u64 share)
{
    RtFiber *fiber = task->owner;
    if (fiber->share->key == share) return;
    rt__share_leave(fiber->loop, fiber->share);
    fiber->share = rt__share_get(fiber->loop, share);
}

const RtSched rt__fiber_sched = {
    .sleep = fiber_sleep,
    .look = fiber_look,
    .yield = fiber_yield,
    .slice = fiber_slice,
    .turn_began = fiber_turn_began,
    .stack_at = fiber_stack_at,
    .share = fiber_share,
    .io = rt__fiber_io,
    .point_keep = rt__reg_keep,
    .point_wait = rt__reg_wait,
};

size_t
rt_fiber_stack_used(void)
{
    RtTask *task = rt__self();
    if (task->kind != RT_TASK_FIBER) return 0;
    return rt__stack_used(&((RtFiber *)task->owner)->stack);
}

/* Every fiber is free: let each make its last switch, so that the sanitizers forget it. */
void
rt__fibers_free(RtLoop *loop)
{
    RtFiber *next;
    for (RtFiber *fiber = loop->fibers; fiber != NULL; fiber = next) {
        next = fiber->all_next;
        ASSERT(fiber->state == RT_FIBER_FREE);
        RtTask *outer = rt__tls.current;
        fiber->fn = NULL;
        rt__context_switch(&loop->context, &fiber->context);
        rt__tls.current = outer;
        rt__context_free(&fiber->context);
        stack_release(fiber, 0);
        mem_free(fiber);
    }
    loop->fibers = loop->free = NULL;
    rt__stacks_free(&loop->stacks);
}
