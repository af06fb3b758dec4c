/*
 * events.c -- a run as a list of its decisions, replay of such a list, and shrinking it.
 *
 * Recorded is only what differs from the plain run: preemptions, picks that are not the next task
 * in turn, faults.  Each is named by the task and that task's own count, so that leaving one out
 * does not rename the others.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rt/sim/sim_impl.h"

static u64
event_hash(RtSimEventKind kind, u64 task, u64 number)
{
    return hash_u64(number, hash_u64(task, (u64)kind + 1));
}

void
rt__events_record(RtSimEventKind kind, u64 task, u64 number, u64 value)
{
    RtSimEvents *events = &rt__world->recorded;
    if (events->count == events->capacity) {
        events->capacity = events->capacity * 2 + 256;
        events->list = realloc(events->list, events->capacity * sizeof(RtSimEvent));
        if (events->list == NULL) abort();
    }
    events->list[events->count++] = (RtSimEvent){kind, task, number, value};
}

/* An open table over the list that is replayed. */
void
rt__events_index(World *world)
{
    const RtSimEvents *events = world->options.events;
    world->index_mask = 63;
    while (world->index_mask < events->count * 2)
        world->index_mask = world->index_mask * 2 + 1;
    world->index = rt__world_alloc((world->index_mask + 1) * sizeof(RtSimEvent *));
    for (u64 i = 0; i < events->count; i++) {
        const RtSimEvent *event = &events->list[i];
        u64 at = event_hash(event->kind, event->task, event->number) & world->index_mask;
        while (world->index[at] != NULL)
            at = (at + 1) & world->index_mask;
        world->index[at] = event;
    }
}

const RtSimEvent *
rt__events_find(RtSimEventKind kind, u64 task, u64 number)
{
    World *world = rt__world;
    u64 at = event_hash(kind, task, number) & world->index_mask;
    for (; world->index[at] != NULL; at = (at + 1) & world->index_mask) {
        const RtSimEvent *event = world->index[at];
        if (event->kind == kind && event->task == task && event->number == number) return event;
    }
    return NULL;
}

void
rt_sim_events_free(RtSimEvents *events)
{
    free(events->list);
    *events = (RtSimEvents){0};
}

typedef struct Shrink {
    RtSimOptions options;
    RtTaskFn driver;
    void *arg;
    RtSimReport report;
    u32 runs_left;
} Shrink;

static bool
still_fails(Shrink *shrink, const RtSimEvents *events)
{
    RtSimReport report;
    shrink->options.events = events;
    shrink->runs_left--;
    rt_sim_run(&shrink->options, shrink->driver, shrink->arg, &report);
    rt_sim_events_free(&report.events);
    if (!report.is_failed) return false;
    shrink->report = report;
    return true;
}

/* Without the events [from, from + count). */
static RtSimEvents
events_without(const RtSimEvents *events, u64 from, u64 count)
{
    RtSimEvents fewer = {0};
    u64 end = MIN_OF(from + count, events->count);
    fewer.count = fewer.capacity = events->count - (end - from);
    fewer.list = malloc((fewer.count + 1) * sizeof(RtSimEvent));
    if (fewer.list == NULL) abort();
    memcpy(fewer.list, events->list, from * sizeof(RtSimEvent));
    memcpy(fewer.list + from, events->list + end, (events->count - end) * sizeof(RtSimEvent));
    return fewer;
}

bool
rt_sim_shrink(const RtSimOptions *options, RtTaskFn driver, void *arg, u32 runs_max,
              RtSimReport *report_out)
{
    Shrink shrink = {.options = *options, .driver = driver, .arg = arg, .runs_left = runs_max};
    rt_sim_run(options, driver, arg, report_out);
    if (!report_out->is_failed) return false;
    RtSimEvents events = report_out->events;
    report_out->events = (RtSimEvents){0};
    if (!still_fails(&shrink, &events)) {
        report_out->events = events; /* Hangs on something not recorded: keep the whole list. */
        return false;
    }
    for (u64 chunk = events.count / 2 + 1; chunk > 0; chunk = chunk == 1 ? 0 : (chunk + 1) / 2) {
        for (u64 at = 0; at < events.count && shrink.runs_left > 0;) {
            RtSimEvents fewer = events_without(&events, at, chunk);
            bool fails = still_fails(&shrink, &fewer);
            RtSimEvents *worse = fails ? &events : &fewer;
            rt_sim_events_free(worse);
            if (fails)
                events = fewer;
            else
                at += chunk;
        }
    }
    *report_out = shrink.report;
    report_out->events = events;
    return true;
}

bool
rt_sim_events_write(const RtSimEvents *events, const char *path)
{
    static const char *const names[] = {"preempt", "pick", "fault"};
    FILE *file = fopen(path, "w");
    if (file == NULL) return false;
    for (u64 i = 0; i < events->count; i++) {
        const RtSimEvent *event = &events->list[i];
        fprintf(file, "%s %llx %llu %llx\n", names[event->kind], (unsigned long long)event->task,
                (unsigned long long)event->number, (unsigned long long)event->value);
    }
    return fclose(file) == 0;
}

bool
rt_sim_events_read(const char *path, RtSimEvents *events_out)
{
    char name[16];
    unsigned long long task, number, value;
    *events_out = (RtSimEvents){0};
    FILE *file = fopen(path, "r");
    if (file == NULL) return false;
    while (fscanf(file, "%15s %llx %llu %llx", name, &task, &number, &value) == 4) {
        RtSimEvents *events = events_out;
        if (events->count == events->capacity) {
            events->capacity = events->capacity * 2 + 64;
            events->list = realloc(events->list, events->capacity * sizeof(RtSimEvent));
            if (events->list == NULL) abort();
        }
        RtSimEventKind kind = name[0] == 'f'   ? RT_SIM_EVENT_FAULT
                              : name[1] == 'r' ? RT_SIM_EVENT_PREEMPT
                                               : RT_SIM_EVENT_PICK;
        events->list[events->count++] = (RtSimEvent){kind, task, number, value};
    }
    fclose(file);
    return true;
}
