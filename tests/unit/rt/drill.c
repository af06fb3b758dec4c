/*
 * drill.c -- the rare ways of parking, of groups, of caps and of sockets, in the simulator.
 *
 * Each scene brings two things close together in time (a wake and a cancel, a deadline and a
 * broadcast, a parent's cancel and its children's end) and checks what must hold whichever of them
 * is first; which is first is the scheduler's draw.
 */
#include "drill.h"

#include "rt/file.h"
#include "rt/loop.h"
#include "rt/net.h"
#include "rt/sim/sim.h"
#include "rt/time.h"

#define TASKS   3
#define ROUNDS  6
#define STREAM  ((size_t)400 << 10)
#define ADDRESS "127.0.0.1:7100"

typedef struct Scene {
    RtMutex lock;
    RtCond moved;
    RtOnce once;
    RtU32 made, is_over, ran;
    RtListener *listener;
} Scene;

typedef struct Part {
    Scene *scene;
    RtThread *thread;
} Part;

static void
start(Part *part, RtTaskFn fn)
{
    /* Memory may be short by a fault. */
    while (rt_thread_start(rt_process(), fn, part, "drill", &part->thread) != OK)
        (void)!rt_sleep_ns(RT_NS_PER_MS);
}

/* ---- once ---- */

static Err
make_slowly(void *arg)
{
    Scene *scene = arg;
    (void)!rt_sleep_ns(1 + rt_sim_draw(RT_NS_PER_MS));
    if (rt_fetch_add(&scene->made, 1) != 0) rt_sim_fail("made twice");
    return OK;
}

static void
make_once(void *arg)
{
    Scene *scene = ((Part *)arg)->scene;
    if (rt_once(&scene->once, make_slowly, scene) != OK) rt_sim_fail("not made");
    if (rt_load(&scene->made) != 1) rt_sim_fail("said to be made too early");
}

/* ---- waits that end in several ways at once ---- */

static void
wait_often(void *arg)
{
    Scene *scene = ((Part *)arg)->scene;
    while (!rt_load(&scene->is_over)) {
        rt_mutex_lock(&scene->lock);
        u64 deadline_ns = rt_deadline_after(1 + rt_sim_draw(RT_NS_PER_MS));
        Err err = rt_cond_wait_until(&scene->moved, &scene->lock, deadline_ns);
        if (!rt_mutex_is_locked(&scene->lock)) rt_sim_fail("a wait without its mutex");
        rt_mutex_unlock(&scene->lock);
        if (err != OK && err != ERR_BUSY && err != ERR_INTERRUPT)
            rt_sim_fail("a wait ended with %s", err_name(err));
        /* A lonely word that nobody wakes: only a cancel or the deadline can end this one. */
        RtU32 word = {0};
        RtParkResult result = rt_park(&word, &word, 1, 0,
                                      rt_deadline_after(1 + rt_sim_draw(RT_NS_PER_MS)), 0, 0);
        if (result == RT_WOKEN || result == RT_HANDED) rt_sim_fail("woken by nobody");
        rt_task_clear_cancel(rt_self());
    }
}

static void
disturb(Scene *scene, Part *parts)
{
    for (u32 i = 0; i < ROUNDS * TASKS; i++) {
        (void)!rt_sleep_ns(1 + rt_sim_draw(RT_NS_PER_MS / 2));
        if (rt_sim_draw(2) == 0) rt_task_cancel(rt_thread_task(parts[rt_sim_draw(TASKS)].thread));
        rt_mutex_lock(&scene->lock);
        rt_cond_broadcast(&scene->moved, &scene->lock);
        if (rt_sim_draw(2) == 0) rt_task_cancel(rt_thread_task(parts[rt_sim_draw(TASKS)].thread));
        rt_mutex_unlock(&scene->lock);
    }
    rt_store(&scene->is_over, 1);
}

/* ---- a parent that is cancelled ---- */

static void
child(void *arg)
{
    Scene *scene = arg;
    u64 began_ns = rt_now_ns();
    while (rt_check() == OK && rt_sleep_ns(RT_NS_PER_MS) == OK)
        if (rt_now_ns() - began_ns > 600 * RT_NS_PER_S) rt_sim_fail("a child was not cancelled");
    rt_fetch_add(&scene->ran, 1);
}

static void
parent(void *arg)
{
    Scene *scene = ((Part *)arg)->scene;
    RtGroup group = {0};
    u32 spawned = 0;
    for (u32 i = 0; i < TASKS; i++)
        spawned += rt_group_spawn(&group, child, scene) == OK;
    rt_group_wait(&group);
    if (rt_load(&scene->ran) != spawned) rt_sim_fail("the parent did not wait");
    if (spawned == 0) return;
    if (!rt_task_is_cancelled(rt_self())) rt_sim_fail("the children ended by themselves");
    rt_task_clear_cancel(rt_self());
}

/* ---- caps ---- */

static void
caps(void)
{
    RtDir *dir;
    RtFile *one = NULL, *two = NULL;
    u32 make = RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE;
    if (rt_dir_open("/", &dir, NULL) != OK) return; /* A fault. */
    RtCounters counters;
    rt_process_counters(rt_process(), &counters);
    rt_process_set_limits(rt_process(), &(RtLimits){.files = counters.files + 1});
    Err err = rt_file_open(dir, "drill", make, &one, NULL);
    if (err == OK && rt_file_open(dir, "drill", make, &two, NULL) == OK)
        rt_sim_fail("one file too many");
    rt_process_set_limits(rt_process(), &(RtLimits){0});
    rt_file_close(one);
    rt_dir_close(dir);
}

/* ---- a reader that is slow ---- */

static void
read_late(void *arg)
{
    Scene *scene = ((Part *)arg)->scene;
    RtSocket *socket;
    u8 bytes[4096];
    size_t got = 1, total = 0;
    u64 until_ns = rt_deadline_after(60 * RT_NS_PER_S);
    Err err = rt_accept(scene->listener, until_ns, &socket, NULL);
    while (err == ERR_LIMIT || err == ERR_NOMEM) { /* Faults. */
        (void)!rt_sleep_ns(RT_NS_PER_MS);
        err = rt_accept(scene->listener, until_ns, &socket, NULL);
    }
    if (err != OK) return;
    (void)!rt_sleep_ns(20 * RT_NS_PER_MS);
    u64 soon = rt_deadline_after(1200 * RT_NS_PER_S);
    while (got > 0 && rt_socket_read(socket, bytes, sizeof(bytes), soon, &got, NULL) == OK) {
        for (size_t i = 0; i < got; i++)
            if (bytes[i] != (u8)((total + i) * 7)) rt_sim_fail("byte %zu is wrong", total + i);
        total += got;
    }
    rt_socket_close(socket);
}

static void
write_much(void)
{
    RtSocket *socket;
    u8 *bytes = mem_alloc(STREAM);
    if (bytes == NULL) return;
    for (size_t i = 0; i < STREAM; i++)
        bytes[i] = (u8)(i * 7);
    if (rt_connect(ADDRESS, rt_deadline_after(RT_NS_PER_S), &socket, NULL) == OK) {
        u64 soon = rt_deadline_after(600 * RT_NS_PER_S);
        Err err = rt_socket_write(socket, bytes, STREAM, soon, NULL);
        if (err == ERR_TIMEOUT) rt_sim_fail("the reader never made room");
        rt_socket_close(socket);
    }
    mem_free(bytes);
}

static void
run_all(Scene *scene, RtTaskFn fn, Part *parts)
{
    for (u32 i = 0; i < TASKS; i++) {
        parts[i] = (Part){.scene = scene};
        start(&parts[i], fn);
    }
}

static void
join_all(Part *parts)
{
    for (u32 i = 0; i < TASKS; i++)
        rt_thread_join(parts[i].thread);
}

void
drill_main(void *arg)
{
    Scene scene = {0};
    Part parts[TASKS], one = {.scene = &scene};
    (void)arg;
    run_all(&scene, make_once, parts);
    join_all(parts);
    run_all(&scene, wait_often, parts);
    disturb(&scene, parts);
    join_all(parts);
    start(&one, parent);
    (void)!rt_sleep_ns(1 + rt_sim_draw(3 * RT_NS_PER_MS));
    rt_task_cancel(rt_thread_task(one.thread));
    rt_thread_join(one.thread);
    caps();
    if (rt_listen(ADDRESS, 0, &scene.listener, NULL) != OK) return;
    start(&one, read_late);
    write_much();
    rt_listener_shutdown(scene.listener);
    rt_thread_join(one.thread);
    rt_listener_close(scene.listener);
}
