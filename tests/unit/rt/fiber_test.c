/*
 * fiber_test.c -- fibers do all that threads do: switch, wait, time out, are cancelled, talk over
 * sockets, read and write files; loops are fair and end in order.
 *
 * Method: each test starts loops, runs a scene on them, stops them, and checks that nothing is
 * left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rt/file.h"
#include "rt/host.h"
#include "rt/loop.h"
#include "rt/net.h"
#include "rt/time.h"
#include "unit/cmocka_all.h"

static RtLoopsConfig config = {.loops = 2};

static void
loops_up(void)
{
    ErrMsg msg = {0};
    Err err = rt_loops_start(&config, &msg);
    if (err != OK) fail_msg("%s", err_message(&msg));
}

static void
loops_down(u64 blocks)
{
    RtCounters counters;
    rt_loops_stop(10 * RT_NS_PER_S);
    rt_process_counters(rt_process(), &counters);
    assert_int_equal(counters.fibers, 0);
    assert_int_equal(counters.threads, 0);
    assert_int_equal(counters.sockets, 0);
    assert_int_equal(counters.files, 0);
    assert_int_equal(mem_live_blocks(), blocks);
}

typedef struct Scene {
    RtMutex mutex;
    RtRwLock rwlock;
    RtCond cond;
    RtSem sem;
    RtU32 left;
    RtEvent over;
    u64 plain, turn;
    u32 rounds;
    void *extra;
} Scene;

static void
scene_leave(Scene *scene)
{
    if (rt_fetch_sub(&scene->left, 1) == 1) rt_event_set(&scene->over);
}

static void
scene_run(Scene *scene, u32 fibers, u32 threads, RtTaskFn fn)
{
    RtThread *handles[8];
    rt_store(&scene->left, fibers + threads);
    for (u32 i = 0; i < fibers; i++)
        assert_int_equal(rt_spawn(RT_LOOP_ANY, fn, scene, "scene"), OK);
    for (u32 i = 0; i < threads; i++)
        assert_int_equal(rt_thread_start(rt_process(), fn, scene, "scene", &handles[i]), OK);
    rt_event_wait(&scene->over);
    for (u32 i = 0; i < threads; i++)
        rt_thread_join(handles[i]);
}

static void
lock_rounds(void *arg)
{
    Scene *scene = arg;
    Rng rng;
    rng_seed(&rng, rt_self()->id);
    for (u32 i = 0; i < scene->rounds; i++) {
        u64 draw = rng_below(&rng, 6);
        if (draw == 0 &&
            rt_mutex_lock_until(&scene->mutex, rt_deadline_after(rng_below(&rng, 40000))) != OK)
            continue;
        if (draw != 0) rt_mutex_lock(&scene->mutex);
        u64 before = scene->plain;
        if (draw < 3) rt_yield(); /* Holders may park. */
        scene->plain = before + 1;
        rt_fetch_add(&scene->sem.word, 1);
        rt_mutex_unlock(&scene->mutex);
    }
    scene_leave(scene);
}

static void
fibers_and_threads_share_locks(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    loops_up();
    Scene scene = {.rounds = 1500};
    scene_run(&scene, 12, 2, lock_rounds);
    assert_int_equal(scene.plain, rt_load(&scene.sem.word));
    loops_down(blocks);
}

static void
ping(void *arg)
{
    Scene *scene = arg;
    u64 mine = rt_fetch_add(&scene->sem.word, 1);
    rt_mutex_lock(&scene->mutex);
    for (u32 i = 0; i < scene->rounds; i++) {
        while (scene->turn % 2 != mine)
            rt_cond_wait(&scene->cond, &scene->mutex);
        scene->turn++;
        rt_cond_signal(&scene->cond);
    }
    rt_mutex_unlock(&scene->mutex);
    scene_leave(scene);
}

static void
conditions_pass_a_ball(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    loops_up();
    Scene fibers = {.rounds = 5000}, mixed = {.rounds = 500};
    scene_run(&fibers, 2, 0, ping);
    assert_int_equal(fibers.turn, 10000);
    scene_run(&mixed, 1, 1, ping);
    assert_int_equal(mixed.turn, 1000);
    loops_down(blocks);
}

static void
sleeper(void *arg)
{
    Scene *scene = arg;
    Rng rng;
    rng_seed(&rng, rt_self()->id);
    for (u32 i = 0; i < 20; i++) {
        u64 due = rt_deadline_after(rng_below(&rng, 2000000));
        assert_int_equal(rt_sleep_until(due), OK);
        assert_true(rt_now_ns() >= due);
    }
    scene_leave(scene);
}

static void
timers_are_never_early(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    loops_up();
    Scene scene = {0};
    scene_run(&scene, 300, 0, sleeper);
    loops_down(blocks);
}

/* Fills frames with a pattern far down, to be seen by guards, sanitizers and the trim. */
static NOINLINE u64
dig(u32 depth)
{
    volatile u8 frame[1024];
    if (rt_stack_left() < RT_STACK_RESERVE) return depth;
    memset((void *)(uintptr_t)frame, (int)depth, sizeof(frame));
    u64 result = dig(depth + 1);
    assert_int_equal(frame[17], (u8)depth);
    return result;
}

static void
digger(void *arg)
{
    Scene *scene = arg;
    assert_in_range(rt_stack_left(), 200 << 10, 256 << 10);
    u64 depth = dig(0);
    assert_true(depth > 60);
    assert_in_range(rt_fiber_stack_used(), 200 << 10, 256 << 10);
    scene_leave(scene);
}

static void
stacks_hold_what_they_promise(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    loops_up();
    for (u32 i = 0; i < 3; i++) {
        Scene scene = {0};
        scene_run(&scene, 20, 0, digger);
    }
    loops_down(blocks);
}

static void
heavy_kernel(void *arg)
{
    Scene *scene = arg;
    while (!rt_event_is_set(scene->extra))
        assert_int_equal(rt_check(), OK);
    scene_leave(scene);
}

static void
light_request(void *arg)
{
    Scene *scene = arg;
    for (u32 i = 0; i < 100; i++)
        rt_yield();
    if (rt_fetch_sub(&scene->sem.word, 1) == 1) rt_event_set(scene->extra);
    scene_leave(scene);
}

static void
kernels_give_way(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    config.loops = 1;
    loops_up();
    RtEvent stop = {0};
    Scene scene = {.extra = &stop, .sem = {{4}}};
    rt_store(&scene.left, 7);
    for (u32 i = 0; i < 3; i++)
        assert_int_equal(rt_spawn(0, heavy_kernel, &scene, "heavy"), OK);
    for (u32 i = 0; i < 4; i++)
        assert_int_equal(rt_spawn(0, light_request, &scene, "light"), OK);
    rt_event_wait(&scene.over); /* Would never end if the first kernel kept the loop. */
    loops_down(blocks);
    config.loops = 2;
}

/* Ten statements of one database and one of another: which turns were whose. */
typedef struct Shared {
    RtU64 turns[2];
    RtEvent stop;
    RtU32 left;
    RtEvent over;
} Shared;
typedef struct Statement {
    Shared *shared;
    u64 share;
} Statement;

static void
busy(Statement *statement)
{
    rt_share_set(statement->share + 1);
    while (!rt_event_is_set(&statement->shared->stop)) {
        /* A slice, and the next in the queue comes. */
        u64 until = rt_deadline_after(1100000);
        while (rt_now_ns() < until) {
        }
        rt_fetch_add(&statement->shared->turns[statement->share], 1);
        rt_yield();
    }
    if (rt_fetch_sub(&statement->shared->left, 1) == 1) rt_event_set(&statement->shared->over);
}

static void
busy_statement(void *arg)
{
    busy(arg);
}

static void
databases_take_turns(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    config.loops = 1;
    loops_up();
    Shared shared = {.left = {11}};
    Statement one = {&shared, 0}, other = {&shared, 1};
    for (u32 i = 0; i < 10; i++)
        assert_int_equal(rt_spawn(0, busy_statement, &one, "one"), OK);
    assert_int_equal(rt_spawn(0, busy_statement, &other, "other"), OK);
    while (rt_load(&shared.turns[0]) + rt_load(&shared.turns[1]) < 40)
        assert_int_equal(rt_sleep_ns(RT_NS_PER_MS), OK); /* All of them are heavy now. */
    u64 before[2] = {rt_load(&shared.turns[0]), rt_load(&shared.turns[1])};
    while (rt_load(&shared.turns[0]) + rt_load(&shared.turns[1]) < before[0] + before[1] + 40)
        assert_int_equal(rt_sleep_ns(RT_NS_PER_MS), OK);
    u64 theirs = rt_load(&shared.turns[0]) - before[0], its = rt_load(&shared.turns[1]) - before[1];
    rt_event_set(&shared.stop);
    rt_event_wait(&shared.over);
    /* Turn and turn about; ten to one without the shares. */
    assert_in_range(its, theirs - 3, theirs + 3);
    loops_down(blocks);
    config.loops = 2;
}

static void
echo_connection(void *arg)
{
    RtSocket *socket = arg;
    u8 bytes[2048];
    size_t got;
    Err err = rt_socket_read(socket, bytes, sizeof(bytes), 0, &got, NULL);
    if (err == OK && got > 0)
        err = rt_socket_write(socket, bytes, got, rt_deadline_after(5 * RT_NS_PER_S), NULL);
    if (err == ERR_TIMEOUT) got = 1;
    if ((err == OK || err == ERR_TIMEOUT) && got > 0 &&
        rt_socket_when_readable(socket, RT_FOREVER, echo_connection, socket) == OK)
        return; /* Parked without a fiber. */
    rt_socket_close(socket);
}

static void
acceptor(void *arg)
{
    Scene *scene = arg;
    for (;;) {
        RtSocket *socket;
        Err err = rt_accept(scene->extra, RT_FOREVER, &socket, NULL);
        if (err != OK) break;
        if (rt_spawn(RT_LOOP_ANY, echo_connection, socket, "echo") != OK) rt_socket_close(socket);
    }
    scene_leave(scene);
}

static void
client(void *arg)
{
    Scene *scene = arg;
    RtListener *listener = scene->extra;
    RtSocket *socket;
    u8 bytes[1500], back[1500];
    u64 deadline = rt_deadline_after(20 * RT_NS_PER_S);
    assert_int_equal(rt_connect(rt_listener_address(listener), deadline, &socket, NULL), OK);
    for (u32 i = 0; i < scene->rounds; i++) {
        size_t total = 0, got;
        memset(bytes, (int)(i + rt_self()->id), sizeof(bytes));
        assert_int_equal(rt_socket_write(socket, bytes, sizeof(bytes), deadline, NULL), OK);
        while (total < sizeof(bytes)) {
            assert_int_equal(
                rt_socket_read(socket, back + total, sizeof(back) - total, deadline, &got, NULL),
                OK);
            assert_true(got > 0);
            total += got;
        }
        assert_memory_equal(bytes, back, sizeof(bytes));
    }
    rt_socket_close(socket);
    scene_leave(scene);
}

static void
connections_park_without_fibers(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    loops_up();
    RtListener *listener;
    assert_int_equal(rt_listen("127.0.0.1:0", 0, &listener, NULL), OK);
    Scene server = {.extra = listener}, clients = {.extra = listener, .rounds = 30};
    rt_store(&server.left, 1);
    assert_int_equal(rt_spawn(RT_LOOP_ANY, acceptor, &server, "acceptor"), OK);
    scene_run(&clients, 60, 2, client);

    /* One stays idle; shutting down wakes it. */
    RtSocket *idle;
    assert_int_equal(rt_connect(rt_listener_address(listener), RT_FOREVER, &idle, NULL), OK);
    assert_int_equal(rt_socket_write(idle, "a", 1, RT_FOREVER, NULL), OK);
    u8 byte;
    size_t got;
    assert_int_equal(rt_socket_read(idle, &byte, 1, RT_FOREVER, &got, NULL), OK);
    rt_listener_shutdown(listener);
    rt_event_wait(&server.over);
    rt_listener_close(listener);
    rt_loops_stop(5 * RT_NS_PER_S);
    assert_int_equal(rt_socket_read(idle, &byte, 1, RT_FOREVER, &got, NULL), OK);
    assert_int_equal(got, 0);
    rt_socket_close(idle);
    loops_down(blocks);
}

static void
idle_expired(void *arg)
{
    Scene *scene = arg;
    u8 byte;
    size_t got;
    assert_int_equal(rt_socket_read(scene->extra, &byte, 1, 0, &got, NULL), ERR_TIMEOUT);
    scene->plain = rt_now_ns();
    scene_leave(scene);
}

static void
idle_parker(void *arg)
{
    Scene *scene = arg;
    scene->turn = rt_deadline_after(3 * RT_NS_PER_MS);
    assert_int_equal(rt_socket_when_readable(scene->extra, scene->turn, idle_expired, scene), OK);
}

static void
watched_statement(void *arg)
{
    Scene *scene = arg;
    rt_event_set(&scene->over);
    RtSocket *socket = scene->extra;
    u32 ready;
    /* Registered with the loop by a first wait, then parked on something else. */
    assert_int_equal(rt_socket_wait(socket, RT_SOCKET_READABLE, rt_deadline_after(1000), &ready),
                     ERR_TIMEOUT);
    rt_socket_watch_peer(socket, rt_self(), true);
    assert_int_equal(rt_sleep_ns(20 * RT_NS_PER_S), ERR_INTERRUPT);
    rt_socket_watch_peer(NULL, rt_self(), true);
    rt_task_clear_cancel(rt_self());
    rt_socket_close(socket);
    scene_leave(scene);
}

static void
idle_times_out_and_lost_peers_cancel(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    loops_up();
    RtListener *listener;
    RtSocket *peer, *socket;
    assert_int_equal(rt_listen("127.0.0.1:0", 0, &listener, NULL), OK);
    assert_int_equal(rt_connect(rt_listener_address(listener), RT_FOREVER, &peer, NULL), OK);
    assert_int_equal(rt_accept(listener, RT_FOREVER, &socket, NULL), OK);
    Scene scene = {.extra = socket};
    scene_run(&scene, 1, 0, idle_parker);
    assert_true(scene.plain >= scene.turn);

    Scene watch = {.extra = socket};
    rt_store(&watch.left, 1);
    assert_int_equal(rt_spawn(RT_LOOP_ANY, watched_statement, &watch, "statement"), OK);
    rt_event_wait(&watch.over);
    assert_int_equal(rt_sleep_ns(5 * RT_NS_PER_MS), OK);
    rt_socket_close(peer);
    rt_listener_close(listener);
    loops_down(blocks);
}

typedef struct Talk {
    RtSocket *socket;
    RtEvent asked, over;
} Talk;

/* Short reads, refused reads and waits in all orders: nothing that came is waited for again. */
static void
talker(void *arg)
{
    Talk *talk = arg;
    RtSocket *socket = talk->socket;
    u8 bytes[64];
    size_t got;
    u32 ready;
    u64 late = rt_deadline_after(5 * RT_NS_PER_S);
    assert_int_equal(rt_socket_read(socket, bytes, 1, late, &got, NULL), OK);
    assert_int_equal(rt_socket_read(socket, bytes, 64, late, &got, NULL), OK); /* Short. */
    assert_int_equal(got, 1);
    assert_int_equal(rt_socket_read(socket, bytes, 64, 0, &got, NULL), ERR_TIMEOUT);
    assert_int_equal(rt_socket_read(socket, bytes, 64, 0, &got, NULL), ERR_TIMEOUT);
    rt_event_set(&talk->asked);
    assert_int_equal(rt_socket_wait(socket, RT_SOCKET_READABLE, late, &ready), OK);
    assert_int_equal(rt_socket_read(socket, bytes, 64, late, &got, NULL), OK);
    assert_int_equal(got, 3);
    assert_int_equal(rt_socket_read(socket, bytes, 64, 0, &got, NULL), ERR_TIMEOUT);
    rt_event_set(&talk->over);
    assert_int_equal(rt_socket_read(socket, bytes, 64, late, &got, NULL), OK);
    assert_int_equal(got, 0); /* The end. */
    rt_socket_close(socket);
}

static void
a_reported_wait_is_readable(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    loops_up();
    RtListener *listener;
    RtSocket *peer;
    Talk talk = {0};
    assert_int_equal(rt_listen("127.0.0.1:0", 0, &listener, NULL), OK);
    assert_int_equal(rt_connect(rt_listener_address(listener), RT_FOREVER, &peer, NULL), OK);
    assert_int_equal(rt_accept(listener, RT_FOREVER, &talk.socket, NULL), OK);
    assert_int_equal(rt_socket_write(peer, "ab", 2, RT_FOREVER, NULL), OK);
    assert_int_equal(rt_spawn(RT_LOOP_ANY, talker, &talk, "talker"), OK);
    rt_event_wait(&talk.asked);
    assert_int_equal(rt_sleep_ns(2 * RT_NS_PER_MS), OK);
    assert_int_equal(rt_socket_write(peer, "cde", 3, RT_FOREVER, NULL), OK);
    rt_event_wait(&talk.over);
    rt_socket_close(peer);
    rt_listener_close(listener);
    loops_down(blocks);
}

static void
file_worker(void *arg)
{
    Scene *scene = arg;
    RtFile *file;
    u8 out[8192], in[8192];
    u64 at = rt_fetch_add(&scene->sem.word, 1) * sizeof(out);
    for (u32 i = 0; i < 20; i++) {
        memset(out, (int)(at / sizeof(out) + i), sizeof(out));
        assert_int_equal(
            rt_file_open(NULL, scene->extra, RT_FILE_READ | RT_FILE_WRITE, &file, NULL), OK);
        assert_int_equal(rt_file_write(file, at, out, sizeof(out), NULL), OK);
        assert_int_equal(rt_file_sync(file, NULL), OK);
        assert_int_equal(rt_file_read_exact(file, at, in, sizeof(in), NULL), OK);
        assert_memory_equal(in, out, sizeof(in));
        rt_file_close(file);
    }
    scene_leave(scene);
}

static void
files_work_on_fibers(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    const RtIoChoice choices[] = {RT_IO_POOL, RT_IO_AUTO};
    for (u32 i = 0; i < 2; i++) {
        RtFile *file;
        char path[] = "/tmp/weft-fiber-XXXXXX";
        close(mkstemp(path));
        config.io = choices[i];
        loops_up();
        printf("file I/O by %s\n", rt_loops_io_name());
        Scene scene = {.extra = path};
        scene_run(&scene, 12, 1, file_worker);
        loops_down(blocks);
        assert_int_equal(rt_file_open(NULL, path, RT_FILE_READ, &file, NULL), OK);
        u64 size;
        assert_int_equal(rt_file_size(file, &size, NULL), OK);
        assert_int_equal(size, 13 * 8192);
        rt_file_close(file);
        unlink(path);
    }
}

static void
child(void *arg)
{
    u64 *sum = arg;
    Err err = OK;
    for (u32 i = 0; i < 2000 && err == OK; i++)
        err = rt_check();
    __atomic_add_fetch(sum, err == OK ? 1 : 1000000, __ATOMIC_RELAXED);
}

static void
endless_child(void *arg)
{
    u64 *sum = arg;
    while (rt_check() == OK)
        rt_yield();
    assert_int_equal(rt_sleep_ns(RT_NS_PER_S), ERR_INTERRUPT);
    __atomic_add_fetch(sum, 1, __ATOMIC_RELAXED);
}

static void
parent(void *arg)
{
    Scene *scene = arg;
    RtGroup group = {0};
    u64 sum = 0;
    for (u32 i = 0; i < 20; i++)
        assert_int_equal(rt_group_spawn(&group, child, &sum), OK);
    rt_group_wait(&group);
    assert_int_equal(sum, 20);
    if (rt_loop_count() > 0) {
        RtGroup second = {0};
        sum = 0;
        for (u32 i = 0; i < 5; i++)
            assert_int_equal(rt_group_spawn(&second, endless_child, &sum), OK);
        rt_task_cancel(rt_self()); /* Cancels the children by the wait. */
        rt_group_wait(&second);
        assert_int_equal(sum, 5);
        rt_task_clear_cancel(rt_self());
    }
    if (scene != NULL) scene_leave(scene);
}

static void
groups_run_and_are_cancelled(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    parent(NULL); /* Inline. */
    loops_up();
    Scene scene = {0};
    scene_run(&scene, 6, 1, parent);
    loops_down(blocks);
}

static void
stubborn(void *arg)
{
    Scene *scene = arg;
    while (rt_sleep_ns(3600 * RT_NS_PER_S) == OK) {
    }
    rt_task_clear_cancel(rt_self()); /* Cleanup that itself would wait. */
    assert_int_equal(rt_sleep_ns(3600 * RT_NS_PER_S), ERR_INTERRUPT);
    rt_fetch_add(&scene->left, 1);
}

static void
the_end_is_orderly(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    Scene scene = {0};
    loops_up();
    for (u32 i = 0; i < 50; i++)
        assert_int_equal(rt_spawn(RT_LOOP_ANY, stubborn, &scene, "stubborn"), OK);
    rt_loops_stop(2 * RT_NS_PER_MS);
    assert_int_equal(rt_load(&scene.left), 50);
    assert_int_equal(rt_spawn(RT_LOOP_ANY, stubborn, &scene, "late"), ERR_CLOSED);
    loops_down(blocks);

    config.fibers_max = 3;
    loops_up();
    for (u32 i = 0; i < 3; i++)
        assert_int_equal(rt_spawn(RT_LOOP_ANY, stubborn, &scene, "stubborn"), OK);
    assert_int_equal(rt_spawn(RT_LOOP_ANY, stubborn, &scene, "one too many"), ERR_LIMIT);
    config.fibers_max = 0;
    rt_loops_stop(0);
    loops_down(blocks);
}

static void
cancel_target(void *arg)
{
    Scene *scene = arg;
    RtTask connection;
    rt_task_init(&connection, rt_process(), "connection");
    RtTask *before = rt_task_enter(&connection);
    scene->extra = &connection;
    rt_event_set(&scene->over);
    assert_int_equal(rt_sleep_ns(60 * RT_NS_PER_S), ERR_INTERRUPT);
    rt_task_leave(before);
    assert_int_equal(rt_check(), OK); /* The fiber's own task was not hit. */
    rt_fetch_add(&scene->sem.word, 1);
}

static void
entered_tasks_are_cancelled_on_fibers(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    loops_up();
    for (u32 i = 0; i < 100; i++) {
        Scene scene = {0};
        assert_int_equal(rt_spawn(RT_LOOP_ANY, cancel_target, &scene, "target"), OK);
        rt_event_wait(&scene.over);
        rt_task_cancel(scene.extra);
        while (rt_load(&scene.sem.word) == 0)
            rt_yield();
    }
    loops_down(blocks);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fibers_and_threads_share_locks),
        cmocka_unit_test(conditions_pass_a_ball),
        cmocka_unit_test(timers_are_never_early),
        cmocka_unit_test(stacks_hold_what_they_promise),
        cmocka_unit_test(kernels_give_way),
        cmocka_unit_test(databases_take_turns),
        cmocka_unit_test(a_reported_wait_is_readable),
        cmocka_unit_test(connections_park_without_fibers),
        cmocka_unit_test(idle_times_out_and_lost_peers_cancel),
        cmocka_unit_test(files_work_on_fibers),
        cmocka_unit_test(groups_run_and_are_cancelled),
        cmocka_unit_test(the_end_is_orderly),
        cmocka_unit_test(entered_tasks_are_cancelled_on_fibers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
