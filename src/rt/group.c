/*
 * group.c -- the children of a group: known while they live, so that they can be cancelled.
 *
 * group->latch protects the list of started children and orders a cancel against starts and ends.
 * The last child's decrement of `running` is made under the bucket lock and is its last touch of
 * the group.
 */
#include "rt/loop.h"

#include "rt/process_impl.h"

static void
group_lock(RtGroup *group)
{
    u32 rounds = 0, seen = 0;
    while (!rt_cas_weak(&group->latch, &seen, 1)) {
        rt_spin(&rounds);
        seen = 0;
    }
}

static void
group_unlock(RtGroup *group)
{
    rt_store_release(&group->latch, 0);
}

void
rt__group_enter(RtTask *child, RtGroup *group)
{
    group_lock(group);
    child->group_prev = NULL;
    child->group_next = group->children;
    if (child->group_next != NULL) child->group_next->group_prev = child;
    group->children = child;
    if (rt_load_relaxed(&group->cancelled)) rt_fetch_or(&child->word, RT_TASK_CANCEL);
    group_unlock(group);
}

static RtParkResult
child_leaves(void *arg, const RtParkChoice *choice)
{
    RtGroup *group = arg;
    (void)choice;
    rt_fetch_sub(&group->running, 1);
    return RT_WOKEN;
}

/* The parent is woken only by the last child: the others' filter takes nobody. */
static RtPick
parent_if_last(void *arg, const RtWaiterInfo *waiter)
{
    RtGroup *group = arg;
    (void)waiter;
    return rt_load_relaxed(&group->running) == 1 ? RT_PICK_TAKE : RT_PICK_STOP;
}

void
rt__group_leave(RtTask *child, RtGroup *group)
{
    group_lock(group);
    if (child->group_prev != NULL)
        child->group_prev->group_next = child->group_next;
    else
        group->children = child->group_next;
    if (child->group_next != NULL) child->group_next->group_prev = child->group_prev;
    group_unlock(group);
    rt_unpark(group, 1, parent_if_last, child_leaves, group);
}

void
rt_group_cancel(RtGroup *group)
{
    rt_store(&group->cancelled, 1);
    group_lock(group);
    for (RtTask *child = group->children; child != NULL; child = child->group_next)
        rt_task_cancel(child);
    group_unlock(group);
}

void
rt_group_wait(RtGroup *group)
{
    u32 flags = 0;
    for (;;) {
        u32 running = rt_load_acquire(&group->running);
        if (running == 0) return;
        /* The count is compared whole: a child that ends meanwhile makes us look again. */
        RtParkResult result = rt_park(group, &group->running, U32_MAX, running, RT_FOREVER, flags,
                                      0);
        if (result == RT_CANCELLED) {
            REACHED("group: cancelled with its parent");
            rt_group_cancel(group);
            flags = RT_PARK_NOCANCEL;
        }
    }
}
