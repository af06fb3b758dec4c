/*
 * once.c -- run-once and events.
 */
#include "rt/process_impl.h"

enum { ONCE_NEW, ONCE_RUNNING, ONCE_WAITED, ONCE_DONE };

Err
rt_once(RtOnce *once, RtOnceFn fn, void *arg)
{
    for (;;) {
        u32 seen = rt_load_acquire(&once->word);
        if (LIKELY(seen == ONCE_DONE)) return OK;
        if (seen == ONCE_NEW) {
            if (!rt_cas(&once->word, &seen, ONCE_RUNNING)) continue;
            Err err = fn(arg);
            rt_exchange(&once->word, err == OK ? ONCE_DONE : ONCE_NEW);
            rt_unpark_all(once);
            return err;
        }
        if (seen == ONCE_RUNNING && !rt_cas(&once->word, &seen, ONCE_WAITED)) continue;
        REACHED("once: waits for who came first");
        (void)rt_park(once, &once->word, U32_MAX, ONCE_WAITED, RT_FOREVER, RT_PARK_NOCANCEL, 0);
    }
}

enum { EVENT_UNSET, EVENT_WAITED, EVENT_SET };

static RtParkResult
event_mark(void *arg, const RtParkChoice *choice)
{
    RtEvent *event = arg;
    (void)choice;
    rt_store_release(&event->word, EVENT_SET); /* Last touch: a waiter may free the event. */
    return RT_WOKEN;
}

void
rt_event_set(RtEvent *event)
{
    u32 seen = EVENT_UNSET;
    if (rt_cas(&event->word, &seen, EVENT_SET) || seen == EVENT_SET) return;
    rt_unpark(event, RT_PARK_ALL, NULL, event_mark, event);
}

bool
rt_event_is_set(const RtEvent *event)
{
    return rt_load_acquire(&event->word) == EVENT_SET;
}

static Err
event_wait(RtEvent *event, u64 deadline_ns, u32 flags)
{
    for (;;) {
        u32 seen = rt_load_acquire(&event->word);
        if (seen == EVENT_SET) return OK;
        if (deadline_ns == 0) return ERR_BUSY;
        if (seen == EVENT_UNSET && !rt_cas(&event->word, &seen, EVENT_WAITED)) continue;
        RtParkResult result = rt_park(event, &event->word, U32_MAX, EVENT_WAITED, deadline_ns,
                                      flags, 0);
        if (result == RT_TIMEOUT || result == RT_CANCELLED) return rt_park_err(result);
    }
}

void
rt_event_wait(RtEvent *event)
{
    Err err = event_wait(event, RT_FOREVER, RT_PARK_NOCANCEL);
    ASSERT(err == OK);
}

Err
rt_event_wait_until(RtEvent *event, u64 deadline_ns)
{
    return event_wait(event, deadline_ns, 0);
}
