/*
 * rules_test.c -- the rules of docs/runtime-hazards.md that are assertions fire when they are
 * broken, and what must not happen to a host program does not.
 *
 * Method: each broken rule is a child process that must die by SIGABRT with the words of the
 * assertion (or a sanitizer's report of it); the same child without the break ends well.
 */
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include "rt/file.h"
#include "rt/host.h"
#include "rt/loop.h"
#include "rt/sim/sim.h"
#include "rt/time.h"
#include "unit/cmocka_all.h"

/* ---- broken rules ---- */

static bool is_broken; /* Of the child: break the rule. */

static void
park_for_a_moment(void)
{
    RtU32 word = {0};
    (void)rt_park(&word, &word, 0, 0, rt_deadline_after(1000), 0, 0);
}

static void
park_under_latch(void)
{
    RtLatch latch;
    rt_latch_init(&latch, 7);
    if (is_broken) rt_latch_acquire(&latch);
    park_for_a_moment();
}

static void
park_under_guard(void)
{
    if (is_broken) rt_guard_enter(rt_self());
    park_for_a_moment();
}

static void
unlock_twice(void)
{
    RtMutex mutex = {0};
    rt_mutex_lock(&mutex);
    rt_mutex_unlock(&mutex);
    if (is_broken) rt_mutex_unlock(&mutex);
}

#ifdef WEFT_CHECK
static void
latches_out_of_order(void)
{
    RtLatch low, high;
    rt_latch_init(&low, 7);
    rt_latch_init(&high, 8);
    rt_latch_acquire(is_broken ? &high : &low);
    rt_latch_acquire(is_broken ? &low : &high);
}

static void
two_of_one_rank(void)
{
    RtLatch one, other;
    rt_latch_init(&one, is_broken ? 7 : 7 | RT_RANK_MANY);
    rt_latch_init(&other, is_broken ? 7 : 7 | RT_RANK_MANY);
    rt_latch_acquire(&one);
    rt_latch_acquire(&other);
}

static void
file_under_latch(void)
{
    RtLatch latch;
    RtStat stat;
    rt_latch_init(&latch, 7);
    if (is_broken) rt_latch_acquire(&latch);
    (void)!rt_file_stat(NULL, "/", &stat, NULL);
}

static void
rounding(void *arg)
{
    if (is_broken) fesetround(FE_UPWARD);
    rt_yield();
    fesetround(FE_TONEAREST);
    rt_event_set(arg);
}

static void
floating_mode_left_changed(void)
{
    RtEvent over = {0};
    if (rt_loops_start(&(RtLoopsConfig){.loops = 1}, NULL) != OK) exit(9);
    if (rt_spawn(0, rounding, &over, "rounding") != OK) exit(9);
    rt_event_wait(&over);
    rt_loops_stop(0);
}
#endif

static const struct {
    const char *says;
    void (*run)(void);
} rules[] = {
    {"latches == 0", park_under_latch},
    {"guards == 0", park_under_guard},
    {"seen == (LOCKED | PARKED)", unlock_twice},
#ifdef WEFT_CHECK
    {"held < rank", latches_out_of_order},
    {"held < rank", two_of_one_rank},
    {"latches == 0", file_under_latch},
    {"floating_mode() == mode", floating_mode_left_changed},
#endif
};

/* The exit status of `rules_test NUMBER broken|kept`, and what it said. */
static int
child_run(u32 rule, bool broken, char *text, size_t bytes)
{
    int pipes[2], status = 0;
    char number[16];
    size_t used = 0;
    ssize_t got;
    assert_int_equal(pipe(pipes), 0);
    snprintf(number, sizeof(number), "%u", rule);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        execl("/proc/self/exe", "rules_test", number, broken ? "broken" : "kept", NULL);
        _exit(9);
    }
    close(pipes[1]);
    while ((got = read(pipes[0], text + used, bytes - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = 0;
    close(pipes[0]);
    waitpid(child, &status, 0);
    return status;
}

static void
a_broken_rule_ends_the_program(void **state)
{
    (void)state;
    char text[16384];
    for (u32 i = 0; i < COUNT_OF(rules); i++) {
        int status = child_run(i, false, text, sizeof(text));
        if (status != 0) fail_msg("rule %u, kept: %s", i, text);
        status = child_run(i, true, text, sizeof(text));
        if (status == 0) fail_msg("rule %u, broken, was not noticed", i);
        if (strstr(text, rules[i].says) == NULL)
            fail_msg("rule %u, broken: wanted \"%s\", got: %s", i, rules[i].says, text);
    }
}

/* ---- what must not happen ---- */

static char test_dir[] = "/tmp/weft-rules-XXXXXX";

typedef struct Guest {
    RtFile *file;
    u8 byte;
    size_t got;
    Err err;
    RtEvent reads;
    bool is_past;
} Guest;

static void *
guest_main(void *arg)
{
    Guest *guest = arg;
    rt_event_set(&guest->reads);
    guest->err = rt_file_read_next(guest->file, &guest->byte, 1, &guest->got, NULL);
    guest->is_past = true; /* Our callers' locks have been released by now. */
    pthread_testcancel();
    return guest;
}

static void
a_cancelled_host_thread_leaves_our_calls_first(void **state)
{
    (void)state;
    char path[80];
    Guest guest = {0};
    pthread_t thread;
    void *result = &guest;
    snprintf(path, sizeof(path), "%s/pipe", test_dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(rt_file_open(NULL, path, RT_FILE_READ | RT_FILE_WRITE, &guest.file, NULL), OK);
    assert_int_equal(pthread_create(&thread, NULL, guest_main, &guest), 0);
    rt_event_wait(&guest.reads);
    assert_int_equal(pthread_cancel(thread), 0); /* Before or in the read. */
    assert_int_equal(rt_sleep_ns(10 * RT_NS_PER_MS), OK);
    assert_int_equal(rt_file_append(guest.file, "x", 1, NULL), OK);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_true(guest.is_past);
    assert_int_equal(guest.err, OK);
    assert_int_equal(guest.byte, 'x');
    rt_file_close(guest.file);
    unlink(path);
}

static void
look_at_mask(void *arg)
{
    sigset_t *mask = arg;
    pthread_sigmask(SIG_SETMASK, NULL, mask);
}

/* Signals are the host's: none is delivered to a thread of ours, but its own faults. */
static void
our_threads_take_no_signals(void **state)
{
    (void)state;
    sigset_t mask, before, after;
    RtThread *thread;
    const int blocked[] = {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGPIPE};
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(rt_thread_start(rt_process(), look_at_mask, &mask, "mask", &thread), OK);
    rt_thread_join(thread);
    for (u32 i = 0; i < COUNT_OF(blocked); i++)
        assert_int_equal(sigismember(&mask, blocked[i]), 1);
    assert_int_equal(sigismember(&mask, SIGSEGV), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (u32 i = 0; i < COUNT_OF(blocked); i++)
        assert_int_equal(sigismember(&after, blocked[i]), sigismember(&before, blocked[i]));
}

typedef struct Deaf {
    RtEvent over;
    const char *path;
} Deaf;

/* File I/O hears no cancel and no deadline: its buffer stays until the kernel has done. */
static void
deaf_io(void *arg)
{
    Deaf *deaf = arg;
    RtFile *file;
    u8 out[5000], in[5000];
    RtTask *self = rt_self();
    rt_task_cancel(self);
    rt_task_set_deadline(self, 1);
    for (u32 i = 0; i < 50; i++) {
        u32 flags = RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE;
        assert_int_equal(rt_file_open(NULL, deaf->path, flags, &file, NULL), OK);
        memset(out, (int)i, sizeof(out));
        assert_int_equal(rt_file_write(file, 0, out, sizeof(out), NULL), OK);
        assert_int_equal(rt_file_sync(file, NULL), OK);
        assert_int_equal(rt_file_read_exact(file, 0, in, sizeof(in), NULL), OK);
        assert_memory_equal(in, out, sizeof(in));
        rt_file_close(file);
    }
    rt_task_set_deadline(self, 0);
    assert_int_equal(rt_check(), ERR_INTERRUPT); /* It was not lost meanwhile. */
    rt_event_set(&deaf->over);
}

static void
file_io_hears_no_cancel(void **state)
{
    (void)state;
    char path[80];
    snprintf(path, sizeof(path), "%s/deaf", test_dir);
    for (u32 i = 0; i < 2; i++) {
        Deaf deaf = {.path = path};
        RtLoopsConfig config = {.loops = 1, .io = i == 0 ? RT_IO_POOL : RT_IO_AUTO};
        assert_int_equal(rt_loops_start(&config, NULL), OK);
        assert_int_equal(rt_spawn(0, deaf_io, &deaf, "deaf"), OK);
        rt_event_wait(&deaf.over);
        rt_loops_stop(0);
    }
    unlink(path);
}

/* ---- stacks ---- */

typedef struct Stack {
    RtEvent over;
    size_t used;
    u32 frames;
} Stack;

static NOINLINE void
dig(u32 left)
{
    volatile u8 frame[1024];
    frame[left % 1024] = (u8)left;
    if (left > 0 && rt_stack_left() > RT_STACK_RESERVE) dig(left - 1);
    assert_int_equal(frame[left % 1024], (u8)left);
}

static void
dig_deep(void *arg)
{
    dig(120);
    rt_event_set(&((Stack *)arg)->over);
}

static void
look_at_stack(void *arg)
{
    Stack *stack = arg;
    stack->used = rt_fiber_stack_used();
    rt_event_set(&stack->over);
}

/* The pages of a deep run go back to the system, not only out of the account. */
static void
deep_stacks_are_given_back(void **state)
{
    (void)state;
    assert_int_equal(rt_loops_start(&(RtLoopsConfig){.loops = 1}, NULL), OK);
    for (u32 i = 0; i < 3; i++) {
        Stack deep = {0}, next = {0};
        assert_int_equal(rt_spawn(0, dig_deep, &deep, "deep"), OK);
        rt_event_wait(&deep.over);
        RtCounters counters;
        do
            rt_process_counters(rt_process(), &counters);
        while (counters.fibers > 0);
        /* The same stack: the last one that was freed is the first to be used. */
        assert_int_equal(rt_spawn(0, look_at_stack, &next, "next"), OK);
        rt_event_wait(&next.over);
        assert_in_range(next.used, 1, 48 << 10);
    }
    rt_loops_stop(0);
}

static _Unwind_Reason_Code
count_frame(struct _Unwind_Context *context, void *arg)
{
    Stack *stack = arg;
    (void)context;
    return ++stack->frames > 200 ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static void
unwind_after_switch(void *arg)
{
    Stack *stack = arg;
    rt_yield();
    _Unwind_Backtrace(count_frame, stack);
    rt_event_set(&stack->over);
}

static void
a_fiber_can_be_unwound(void **state)
{
    (void)state;
    Stack stack = {0};
    assert_int_equal(rt_loops_start(&(RtLoopsConfig){.loops = 1}, NULL), OK);
    assert_int_equal(rt_spawn(0, unwind_after_switch, &stack, "unwound"), OK);
    rt_event_wait(&stack.over);
    rt_loops_stop(0);
    assert_in_range(stack.frames, 2, 12); /* This one, the fiber's bottom, the entry; then none. */
}

/* ---- the owner lock ---- */

static void
own(bool *is_owner)
{
    RtFile *file;
    u32 flags = RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE;
    if (rt_file_open(NULL, "/owned", flags, &file, NULL) != OK) rt_sim_fail("no file");
    *is_owner = rt_file_own(file, true, NULL, NULL) == OK;
}

static void
own_and_wait(void *arg)
{
    own(arg);
    (void)!rt_sleep_ns(RT_NS_PER_S);
}

static void
own_and_end(void *arg)
{
    RtFile *file;
    bool *is_owner = arg;
    if (rt_file_open(NULL, "/owned", RT_FILE_READ | RT_FILE_WRITE, &file, NULL) != OK)
        rt_sim_fail("no file");
    *is_owner = rt_file_own(file, true, NULL, NULL) == OK;
    rt_file_close(file);
}

static void
owners_driver(void *arg)
{
    (void)arg;
    RtSimHost *host = rt_sim_host("machine");
    for (u32 i = 0; i < 10; i++) {
        bool first = false, second = false;
        RtSimProcess *process = rt_sim_start(host, "first", own_and_wait, &first);
        (void)!rt_sleep_ns(100 * RT_NS_PER_MS);
        rt_sim_crash(process, RT_SIM_KILL);
        (void)rt_sim_wait(process);
        if (!first) rt_sim_fail("the first did not get it");
        process = rt_sim_start(host, "second", own_and_end, &second);
        (void)rt_sim_wait(process);
        /* The kernel may keep the lock of the dead one for some time. */
        if (!second) rt_sim_fail("the dead one's lock was not waited for");
    }
}

static void
a_dead_owners_lock_is_waited_for(void **state)
{
    (void)state;
    for (u64 seed = 1; seed <= 10; seed++) {
        RtSimOptions options = {.seed = seed};
        RtSimReport report;
        rt_sim_run(&options, owners_driver, NULL, &report);
        if (report.is_failed) fail_msg("%s", report.failure);
    }
}

int
main(int argc, char **argv)
{
    if (argc == 3) {
        u32 rule = (u32)strtoul(argv[1], NULL, 10);
        is_broken = strcmp(argv[2], "broken") == 0;
        rules[rule].run();
        return 0;
    }
    if (mkdtemp(test_dir) == NULL) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_rule_ends_the_program),
        cmocka_unit_test(a_cancelled_host_thread_leaves_our_calls_first),
        cmocka_unit_test(our_threads_take_no_signals),
        cmocka_unit_test(file_io_hears_no_cancel),
        cmocka_unit_test(deep_stacks_are_given_back),
        cmocka_unit_test(a_fiber_can_be_unwound),
        cmocka_unit_test(a_dead_owners_lock_is_waited_for),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(test_dir);
    return failed;
}
