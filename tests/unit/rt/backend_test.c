/*
 * backend_test.c -- the same calls by plain threads, by fibers with the worker pool and by fibers
 * with io_uring: each works, each call fails once, nothing leaks; caps are kept; a stack overflow
 * is told by name; where the kernel forbids io_uring the pool serves.
 *
 * Method: the scripts of io_script.h, whole; then with their nth call failing (the error takes the
 * way of the backend: an answer of the pool, a completion of the ring), interrupted or short,
 * until no fault fires.  After each run no file, socket, fiber or block may be left.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io_script.h"
#include "rt/fault.h"
#include "rt/file.h"
#include "rt/host.h"
#include "rt/loop.h"
#include "rt/net.h"
#include "rt/time.h"
#include "unit/cmocka_all.h"

static char test_dir[] = "/tmp/weft-backend-XXXXXX";

typedef struct Matrix {
    bool is_files;
    u32 fired; /* Runs in which a fault hit. */
    RtEvent over;
} Matrix;

static Err
script(const Matrix *matrix)
{
    return matrix->is_files ? io_script_files(test_dir, NULL) : io_script_sockets();
}

static void
every_call_once(Matrix *matrix, int error)
{
    bool fired = true;
    for (u32 nth = 1; fired; nth++) {
        RtCounters counters;
        u64 blocks = mem_live_blocks();
        rt_fault_arm(nth, error);
        Err err = script(matrix);
        fired = rt_fault_fired();
        rt_fault_arm(0, 0);
        matrix->fired += fired;
        bool is_survivable = error == EINTR || error == RT_FAULT_SHORT;
        if (!fired || is_survivable) assert_int_equal(err, OK);
        if (fired && matrix->is_files && !is_survivable) assert_int_not_equal(err, OK);
        if (fired && error == EMFILE && !matrix->is_files) assert_int_equal(err, ERR_LIMIT);
        if (matrix->is_files) io_script_clean(test_dir);
        rt_process_counters(rt_process(), &counters);
        assert_int_equal(counters.files, 0);
        assert_int_equal(counters.sockets, 0);
        /* A loop may keep a registration for the next socket. */
        assert_in_range(mem_live_blocks(), blocks, blocks + (matrix->is_files ? 0 : 4));
    }
}

static void
run_matrix(void *arg)
{
    Matrix *matrix = arg;
    const int of_files[] = {EIO, ENOSPC, EMFILE, EINTR, RT_FAULT_SHORT};
    const int of_sockets[] = {EMFILE, ECONNRESET, EINTR, RT_FAULT_SHORT};
    assert_int_equal(script(matrix), OK);
    if (matrix->is_files) io_script_clean(test_dir);
    u32 kinds = matrix->is_files ? COUNT_OF(of_files) : COUNT_OF(of_sockets);
    for (u32 i = 0; i < kinds; i++)
        every_call_once(matrix, matrix->is_files ? of_files[i] : of_sockets[i]);
    rt_event_set(&matrix->over);
}

/* On a thread (loops NULL) or on a fiber. */
static void
matrix_on(const RtLoopsConfig *loops, bool is_files)
{
    u64 blocks = mem_live_blocks();
    Matrix matrix = {.is_files = is_files};
    if (loops == NULL) {
        run_matrix(&matrix);
    } else {
        ErrMsg msg = {0};
        Err err = rt_loops_start(loops, &msg);
        if (err == ERR_UNSUPPORTED) { /* Said aloud: it is the ring that was not tried. */
            printf("skipped: %s\n", err_message(&msg));
            err_clear(&msg);
            return;
        }
        assert_int_equal(err, OK);
        assert_int_equal(rt_spawn(RT_LOOP_ANY, run_matrix, &matrix, "matrix"), OK);
        rt_event_wait(&matrix.over);
        rt_loops_stop(RT_NS_PER_S);
        RtCounters counters;
        rt_process_counters(rt_process(), &counters);
        assert_int_equal(counters.fibers, 0);
        assert_int_equal(counters.threads, 0);
    }
    assert_true(matrix.fired > 15);
    assert_int_equal(mem_live_blocks(), blocks);
}

static void
threads(void **state)
{
    (void)state;
    matrix_on(NULL, true);
    matrix_on(NULL, false);
}

static void
fibers_with_the_pool(void **state)
{
    (void)state;
    RtLoopsConfig config = {.loops = 1, .io = RT_IO_POOL};
    matrix_on(&config, true);
    matrix_on(&config, false);
}

static void
fibers_with_the_ring(void **state)
{
    (void)state;
    RtLoopsConfig config = {.loops = 1, .io = RT_IO_RING};
    matrix_on(&config, true);
    matrix_on(&config, false);
}

static void
nothing(void *arg)
{
    (void)arg;
}

static void
caps_are_kept(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    RtProcess *process = rt_process();
    RtLimits limits = {.threads = 1, .files = 2, .sockets = 2};
    rt_process_set_limits(process, &limits);
    RtDir *dir, *none_dir;
    RtFile *file, *none;
    ErrMsg msg = {0};
    u32 make = RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE;
    assert_int_equal(rt_dir_open(test_dir, &dir, NULL), OK);
    assert_int_equal(rt_file_open(dir, "a", make, &file, NULL), OK);
    assert_int_equal(rt_file_open(dir, "b", make, &none, &msg), ERR_LIMIT);
    assert_non_null(strstr(msg.text, "too many open files"));
    assert_int_equal(rt_dir_open(test_dir, &none_dir, NULL), ERR_LIMIT);
    rt_file_close(file);
    assert_int_equal(rt_file_unlink(dir, "a", NULL), OK);
    assert_int_equal(rt_file_unlink(dir, "b", NULL), ERR_NOTFOUND); /* It was not made. */
    rt_dir_close(dir);

    RtListener *listener;
    RtSocket *socket, *other;
    u64 soon = rt_deadline_after(5 * RT_NS_PER_S);
    assert_int_equal(rt_listen("127.0.0.1:0", 0, &listener, NULL), OK);
    assert_int_equal(rt_connect(rt_listener_address(listener), soon, &socket, NULL), OK);
    assert_int_equal(rt_accept(listener, soon, &other, &msg), ERR_LIMIT);
    assert_non_null(strstr(msg.text, "too many connections"));
    rt_socket_close(socket);
    rt_listener_close(listener);

    RtThread *one, *two;
    assert_int_equal(rt_thread_start(process, nothing, NULL, "one", &one), OK);
    Err err = rt_thread_start(process, nothing, NULL, "two", &two); /* The first may be over. */
    assert_true(err == ERR_LIMIT || err == OK);
    rt_thread_join(one);
    rt_thread_join(two);
    rt_process_set_limits(process, &(RtLimits){0});
    err_clear(&msg);
    assert_int_equal(mem_live_blocks(), blocks);
}

static NOINLINE u64
endless(u64 depth)
{
    volatile u8 frame[512];
    frame[depth % 512] = (u8)depth;
    if (depth == U64_MAX) return 0; /* For the compiler: it never comes to that. */
    return endless(depth + 1) + frame[depth % 512];
}

static void
deep(void *arg)
{
    *(volatile u64 *)arg = endless(0);
}

static int
overflow(void)
{
    u64 result;
    if (rt_loops_start(&(RtLoopsConfig){.loops = 1}, NULL) != OK) return 1;
    if (rt_spawn(0, deep, &result, "the deep one") != OK) return 1;
    (void)!rt_sleep_ns(20 * RT_NS_PER_S);
    return 0;
}

static void
an_overflow_names_its_fiber(void **state)
{
    (void)state;
    int pipes[2], status;
    char text[4096];
    size_t used = 0;
    ssize_t got;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        execl("/proc/self/exe", "backend_test", "--overflow", NULL);
        _exit(0);
    }
    close(pipes[1]);
    while ((got = read(pipes[0], text + used, sizeof(text) - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = 0;
    close(pipes[0]);
    waitpid(child, &status, 0);
    assert_non_null(strstr(text, "stack overflow in fiber \"the deep one\""));
    /* By the signal, or by a sanitizer's report. */
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

/* From here on this process's kernel knows no io_uring, as in a container. */
static bool
forbid_io_uring(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {COUNT_OF(filter), filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void
script_and_tell(void *arg)
{
    Matrix *matrix = arg;
    matrix->fired = io_script_files(test_dir, NULL) == OK && io_script_sockets() == OK;
    rt_event_set(&matrix->over);
}

/* 0: as it should be; else the step that was not. */
static int
forbidden(void)
{
    Matrix matrix = {0};
    ErrMsg msg = {0};
    if (!forbid_io_uring()) return 77;
    if (rt_loops_start(&(RtLoopsConfig){.io = RT_IO_RING}, &msg) != ERR_UNSUPPORTED) return 1;
    if (strstr(msg.text, "io_uring is not available here") == NULL) return 2;
    err_clear(&msg);
    if (rt_loops_start(&(RtLoopsConfig){.io = RT_IO_AUTO}, NULL) != OK) return 3;
    if (strcmp(rt_loops_io_name(), "pool") != 0) return 4;
    if (rt_spawn(0, script_and_tell, &matrix, "script") != OK) return 5;
    rt_event_wait(&matrix.over);
    rt_loops_stop(10 * RT_NS_PER_S);
    return matrix.fired != 0 ? 0 : 6;
}

static void
where_io_uring_is_forbidden_the_pool_serves(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "backend_test", "--forbidden", NULL);
        _exit(99);
    }
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) skip(); /* No seccomp here. */
    assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--overflow") == 0) return overflow();
    if (mkdtemp(test_dir) == NULL) return 1;
    if (argc == 2 && strcmp(argv[1], "--forbidden") == 0) {
        int step = forbidden();
        rmdir(test_dir);
        return step;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads),
        cmocka_unit_test(fibers_with_the_pool),
        cmocka_unit_test(fibers_with_the_ring),
        cmocka_unit_test(where_io_uring_is_forbidden_the_pool_serves),
        cmocka_unit_test(caps_are_kept),
        cmocka_unit_test(an_overflow_names_its_fiber),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(test_dir);
    return failed;
}
