/*
 * charge_test.c -- what the process holds outside of the engine's own blocks counts against its
 * cap: stacks by what they have used, sockets, and send buffers that a peer does not empty.
 *
 * Method: look at the account of the process while a known number of fibers and sockets lives, with
 * stacks dug to a known depth; then with a cap that lets only some of them in.
 */
#include "rt/loop.h"
#include "rt/net.h"
#include "rt/time.h"
#include "unit/cmocka_all.h"

#define FIBERS    120u
#define DUG_BYTES ((size_t)100 << 10)
#define STEP      ((u64)8 << 10) /* A stack is charged in such steps. */
#define KEPT      ((u64)32 << 10)

typedef struct Scene {
    RtU32 inside, left;
    RtEvent all_in, go, over;
    u32 wanted;
    bool digs;
} Scene;

static u64
used(void)
{
    return rt_process_account(rt_process())->used_bytes;
}

static void
loops_up(void)
{
    ErrMsg msg = {0};
    RtLoopsConfig config = {.loops = 1};
    if (rt_loops_start(&config, &msg) != OK) fail_msg("%s", err_message(&msg));
}

/* Waits at the bottom of a deep stack. */
static NOINLINE void
dig(Scene *scene, size_t left)
{
    volatile u8 frame[4096];
    memset((void *)(uintptr_t)frame, 1, sizeof(frame)); /* Or a compiler keeps two bytes of it. */
    if (left > sizeof(frame)) {
        dig(scene, left - sizeof(frame));
    } else {
        if (rt_fetch_add(&scene->inside, 1) + 1 == scene->wanted) rt_event_set(&scene->all_in);
        rt_event_wait(&scene->go);
    }
    assert_int_equal(frame[left % sizeof(frame)] + frame[sizeof(frame) - 1], 2);
}

static void
digger(void *arg)
{
    Scene *scene = arg;
    dig(scene, scene->digs ? DUG_BYTES : 0);
    if (rt_fetch_sub(&scene->left, 1) == 1) rt_event_set(&scene->over);
}

static void
spawn(Scene *scene, u32 fibers)
{
    rt_store(&scene->left, fibers);
    for (u32 i = 0; i < fibers; i++)
        assert_int_equal(rt_spawn(0, digger, scene, "digger"), OK);
}

static void
stacks_count_by_what_they_use(void **state)
{
    (void)state;
    u64 before = used();
    loops_up();
    Scene scene = {.wanted = FIBERS, .digs = true};
    spawn(&scene, FIBERS);
    rt_event_wait(&scene.all_in);
    /* The last one has said so before it waits. */
    while (used() < before + FIBERS * DUG_BYTES)
        assert_int_equal(rt_sleep_ns(RT_NS_PER_MS), OK);
    assert_true(used() <= before + FIBERS * (3 * DUG_BYTES));
    rt_event_set(&scene.go);
    rt_event_wait(&scene.over);
    RtCounters counters;
    do
        rt_process_counters(rt_process(), &counters);
    while (counters.fibers > 0);
    /* What lies beyond the part that is kept went back. */
    assert_in_range(used() - before, FIBERS * STEP, FIBERS * KEPT);
    rt_loops_stop(0);
    assert_int_equal(used(), before);
}

static void
a_cap_lets_as_many_run_as_fit(void **state)
{
    (void)state;
    u64 before = used();
    MemAccount *account = rt_process_account(rt_process());
    loops_up();
    mem_account_cap(account, before + 10 * STEP);
    Scene scene = {.wanted = 1};
    spawn(&scene, 100);
    rt_event_wait(&scene.all_in);
    while (used() + STEP <= before + 10 * STEP)
        assert_int_equal(rt_sleep_ns(RT_NS_PER_MS), OK);
    for (u32 i = 0; i < 20; i++)
        assert_int_equal(rt_sleep_ns(RT_NS_PER_MS), OK);
    assert_in_range(rt_load(&scene.inside), 1, 10); /* The others have no stack. */
    rt_event_set(&scene.go);
    rt_event_wait(&scene.over); /* All had their turn. */
    mem_account_cap(account, 0);
    rt_loops_stop(0);
    assert_int_equal(used(), before);
}

static void
sockets_count(void **state)
{
    (void)state;
    static u8 bytes[64 << 10];
    u64 before = used(), soon = rt_deadline_after(20 * RT_NS_PER_S);
    MemAccount *account = rt_process_account(rt_process());
    RtListener *listener;
    RtSocket *one, *other, *none;
    assert_int_equal(rt_listen("127.0.0.1:0", 0, &listener, NULL), OK);
    u64 step = used() - before;
    assert_true(step >= 1024);
    assert_int_equal(rt_connect(rt_listener_address(listener), soon, &one, NULL), OK);
    assert_int_equal(used() - before, 2 * step);
    assert_int_equal(rt_accept(listener, soon, &other, NULL), OK);
    assert_int_equal(used() - before, 3 * step);
    mem_account_cap(account, used() + step - 1);
    assert_int_equal(rt_connect(rt_listener_address(listener), soon, &none, NULL), ERR_NOMEM);
    mem_account_cap(account, 0);

    /* Nobody reads: the kernel holds a send buffer. */
    size_t done = 1, total = 0, got;
    while (done > 0) {
        assert_int_equal(rt_socket_write_some(one, bytes, sizeof(bytes), &done, NULL), OK);
        total += done;
    }
    u64 full = used() - before - 3 * step;
    assert_true(full >= 128 << 10);
    while (total > 0) {
        assert_int_equal(rt_socket_read(other, bytes, sizeof(bytes), soon, &got, NULL), OK);
        total -= got;
    }
    assert_int_equal(rt_socket_write(one, bytes, 1, soon, NULL), OK);
    assert_int_equal(used() - before, 3 * step);

    /* Closed while full. */
    for (done = 1; done > 0;)
        assert_int_equal(rt_socket_write_some(one, bytes, sizeof(bytes), &done, NULL), OK);
    assert_int_equal(used() - before, 3 * step + full);
    rt_socket_close(one);
    assert_int_equal(used() - before, 2 * step);
    rt_socket_close(other);
    rt_listener_close(listener);
    assert_int_equal(used(), before);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_count_by_what_they_use),
        cmocka_unit_test(a_cap_lets_as_many_run_as_fit),
        cmocka_unit_test(sockets_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
