/*
 * batch_test.c -- socket calls that go to the kernel together give what they would give alone.
 *
 * Method: one loop serves many connections, of which every message has its own text, with the
 * ring, with the pool, and with a ring that the kernel refuses to serve: all answers are right,
 * and the counter says which way they went.  Then what may meet a request that a sleeping fiber
 * left with its loop: a deadline, a cancel, a shutdown, the peer's end, and bytes that somebody
 * else has read meanwhile.  The loop is kept busy until all events are there, so that they come in
 * one look.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rt/fiber/ring_impl.h"
#include "rt/loop.h"
#include "rt/net.h"
#include "rt/time.h"
#include "unit/cmocka_all.h"

#define PAIRS  60
#define ROUNDS 30

/* A connection: our end on the loop, the peer's end here. */
typedef struct Pair {
    RtSocket *ours, *peers;
    RtU32 state; /* What the fiber reports. */
    RtTask *task;
    Err err;
    u64 deadline_ns;
    size_t got;
    char bytes[64];
} Pair;
enum { STATE_WAITS = 1, STATE_OVER };

static RtListener *listener;
static Pair pairs[PAIRS];
static RtU32 must_go;

static u64
soon(void)
{
    return rt_deadline_after(20 * RT_NS_PER_S);
}

static void
pairs_make(u32 count)
{
    memset(pairs, 0, sizeof(pairs));
    for (u32 i = 0; i < count; i++) {
        const char *address = rt_listener_address(listener);
        assert_int_equal(rt_connect(address, soon(), &pairs[i].peers, NULL), OK);
        assert_int_equal(rt_accept(listener, soon(), &pairs[i].ours, NULL), OK);
    }
}

static void
state_wait(Pair *pair, u32 state)
{
    u64 until_ns = soon();
    while (rt_load_acquire(&pair->state) != state && rt_now_ns() < until_ns)
        assert_int_equal(rt_sleep_ns(RT_NS_PER_MS / 10), OK);
    assert_int_equal(rt_load_acquire(&pair->state), state);
}

static void
echo(void *arg)
{
    Pair *pair = arg;
    char bytes[64];
    size_t got;
    while (rt_socket_read(pair->ours, bytes, sizeof(bytes), soon(), &got, NULL) == OK && got > 0)
        if (rt_socket_write(pair->ours, bytes, got, soon(), NULL) != OK) break;
    rt_socket_close(pair->ours);
    rt_store_release(&pair->state, STATE_OVER);
}

static u64
batched(void)
{
    RtCounters counters;
    rt_process_counters(rt_process(), &counters);
    return counters.batched;
}

/* Everybody asks before anybody reads its answer. */
static void
echo_all(void)
{
    char text[64], answer[64];
    size_t got;
    for (u32 i = 0; i < PAIRS; i++)
        assert_int_equal(rt_spawn(0, echo, &pairs[i], "echo"), OK);
    for (u32 round = 0; round < ROUNDS; round++) {
        for (u32 i = 0; i < PAIRS; i++) {
            int bytes = snprintf(text, sizeof(text), "%u of round %u", i, round);
            assert_int_equal(rt_socket_write(pairs[i].peers, text, (size_t)bytes, soon(), NULL),
                             OK);
        }
        for (u32 i = 0; i < PAIRS; i++) {
            int bytes = snprintf(text, sizeof(text), "%u of round %u", i, round);
            Err err = rt_socket_read(pairs[i].peers, answer, sizeof(answer), soon(), &got, NULL);
            assert_int_equal(err, OK);
            assert_int_equal(got, bytes);
            assert_memory_equal(answer, text, got);
        }
    }
    for (u32 i = 0; i < PAIRS; i++) {
        rt_socket_close(pairs[i].peers);
        state_wait(&pairs[i], STATE_OVER);
    }
}

static void
loops_up(RtIoChoice io)
{
    assert_int_equal(rt_loops_start(&(RtLoopsConfig){.loops = 1, .io = io}, NULL), OK);
    assert_int_equal(rt_listen("127.0.0.1:0", 0, &listener, NULL), OK);
    rt_store(&must_go, 0);
}

static void
loops_down(void)
{
    RtCounters counters;
    rt_listener_close(listener);
    rt_loops_stop(10 * RT_NS_PER_S);
    rt_process_counters(rt_process(), &counters);
    assert_int_equal(counters.sockets, 0);
    assert_int_equal(counters.fibers, 0);
}

/* False where the kernel has no ring: then there is nothing to see. */
static bool
has_ring(void)
{
    if (strcmp(rt_loops_io_name(), "ring") == 0) return true;
    print_message("no io_uring here\n");
    return false;
}

static void
many_connections_with_the_ring(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks(), before = batched();
    loops_up(RT_IO_AUTO);
    pairs_make(PAIRS);
    bool is_ring = has_ring();
    echo_all();
    /* Each message is a read and a write; the loop cannot always keep up with having company. */
    if (is_ring) assert_true(batched() - before > ROUNDS * PAIRS / 2);
    loops_down();
    assert_int_equal(mem_live_blocks(), blocks);
}

static void
many_connections_with_the_pool(void **state)
{
    (void)state;
    u64 before = batched();
    loops_up(RT_IO_POOL);
    pairs_make(PAIRS);
    echo_all();
    assert_int_equal(batched(), before);
    loops_down();
}

/* On the loop: exchange the ring's descriptor for one that takes no requests, or back. */
static void
ring_exchange(void *arg)
{
    static int former = -1;
    RtRing *ring = rt_self()->loop->batch;
    if (former < 0) {
        former = ring->fd;
        ring->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    } else {
        close(ring->fd);
        ring->fd = former;
        former = -1;
    }
    rt_event_set(arg);
}

static void
a_kernel_that_takes_no_requests(void **state)
{
    (void)state;
    RtEvent done = {0};
    loops_up(RT_IO_AUTO);
    if (has_ring()) {
        assert_int_equal(rt_spawn(0, ring_exchange, &done, "exchange"), OK);
        rt_event_wait(&done);
        u64 before = batched();
        pairs_make(PAIRS);
        echo_all();
        assert_true(batched() > before);
        done = (RtEvent){0};
        assert_int_equal(rt_spawn(0, ring_exchange, &done, "exchange"), OK);
        rt_event_wait(&done);
    }
    loops_down();
}

/* ---- what may meet a request that was left with the loop ---- */

static void
read_once(void *arg)
{
    Pair *pair = arg;
    pair->task = rt_self();
    /* A first read, so that the socket is known to be empty and is looked after. */
    pair->err = rt_socket_read(pair->ours, pair->bytes, sizeof(pair->bytes), soon(), &pair->got,
                               NULL);
    rt_store_release(&pair->state, STATE_WAITS);
    if (pair->err == OK)
        pair->err = rt_socket_read(pair->ours, pair->bytes, sizeof(pair->bytes), pair->deadline_ns,
                                   &pair->got, NULL);
    rt_store_release(&pair->state, STATE_OVER);
}

static void
keep_busy(void *arg)
{
    rt_event_set(arg);
    while (rt_load_acquire(&must_go) == 0)
        continue; /* No turn for others meanwhile. */
}

/* `count` fibers wait for a second message, and the loop looks at no event until loop_free(). */
static void
loop_busy(u32 count, u64 deadline_ns)
{
    static RtEvent busy;
    pairs_make(count);
    for (u32 i = 0; i < count; i++) {
        pairs[i].deadline_ns = deadline_ns;
        assert_int_equal(rt_spawn(0, read_once, &pairs[i], "reader"), OK);
        assert_int_equal(rt_socket_write(pairs[i].peers, "1", 1, soon(), NULL), OK);
        state_wait(&pairs[i], STATE_WAITS);
    }
    busy = (RtEvent){0};
    assert_int_equal(rt_spawn(0, keep_busy, &busy, "busy"), OK);
    rt_event_wait(&busy);
}

static void
loop_free(void)
{
    rt_store_release(&must_go, 1);
}

static void
say(u32 pair, const char *text)
{
    assert_int_equal(rt_socket_write(pairs[pair].peers, text, strlen(text), soon(), NULL), OK);
}

static void
pairs_end(u32 count)
{
    for (u32 i = 0; i < count; i++) {
        state_wait(&pairs[i], STATE_OVER);
        rt_socket_close(pairs[i].ours);
        rt_socket_close(pairs[i].peers);
    }
}

static void
all_that_may_happen_at_once(void **state)
{
    (void)state;
    loops_up(RT_IO_AUTO);
    bool is_ring = has_ring();
    loop_busy(6, soon());
    u64 before = batched();
    say(0, "zero");
    rt_socket_shutdown_write(pairs[1].peers);
    say(2, "two");
    rt_task_cancel(pairs[2].task); /* The bytes win, or the cancel does: not both. */
    say(3, "three");
    rt_socket_shutdown(pairs[3].ours); /* What had come may still be read. */
    rt_task_cancel(pairs[4].task);
    char stolen[8];
    say(5, "taken");
    ssize_t got;
    u64 until_ns = soon();
    do {
        got = recv(pairs[5].ours->point.fd, stolen, sizeof(stolen), MSG_DONTWAIT);
    } while (got < 0 && errno == EAGAIN && rt_now_ns() < until_ns);
    assert_int_equal(got, 5);
    loop_free();
    for (u32 i = 0; i < 5; i++)
        state_wait(&pairs[i], STATE_OVER);
    assert_int_equal(pairs[0].err, OK);
    assert_int_equal(pairs[0].got, 4);
    assert_memory_equal(pairs[0].bytes, "zero", 4);
    assert_int_equal(pairs[1].err, OK);
    assert_int_equal(pairs[1].got, 0);
    assert_true(pairs[2].err == ERR_INTERRUPT || (pairs[2].err == OK && pairs[2].got == 3));
    assert_true(pairs[3].err == OK && (pairs[3].got == 5 || pairs[3].got == 0));
    assert_int_equal(pairs[4].err, ERR_INTERRUPT);
    /* The one whose bytes were gone waits on, and hears of the next ones. */
    assert_int_equal(rt_load_acquire(&pairs[5].state), STATE_WAITS);
    say(5, "five");
    state_wait(&pairs[5], STATE_OVER);
    assert_int_equal(pairs[5].err, OK);
    assert_memory_equal(pairs[5].bytes, "five", 4);
    if (is_ring) assert_true(batched() - before >= 4); /* 0, 1, 3, 5; maybe 2. */
    pairs_end(6);
    loops_down();
}

static void
a_deadline_ends_a_request_that_was_left(void **state)
{
    (void)state;
    loops_up(RT_IO_AUTO);
    loop_busy(3, rt_deadline_after(300 * RT_NS_PER_MS));
    say(0, "in time");
    loop_free();
    pairs_end(3);
    assert_int_equal(pairs[0].err, OK);
    assert_int_equal(pairs[0].got, 7);
    assert_int_equal(pairs[1].err, ERR_TIMEOUT);
    assert_int_equal(pairs[2].err, ERR_TIMEOUT);
    loops_down();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_connections_with_the_ring),
        cmocka_unit_test(many_connections_with_the_pool),
        cmocka_unit_test(a_kernel_that_takes_no_requests),
        cmocka_unit_test(all_that_may_happen_at_once),
        cmocka_unit_test(a_deadline_ends_a_request_that_was_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
