/*
 * file_test.c -- files do what file.h says, every call fails cleanly, the owner lock excludes.
 *
 * Method: one script of calls in a fresh directory, run whole, then again and again with its nth
 * system call failing (EIO, ENOSPC), being interrupted or being short, until no fault fires; no
 * handle and no block may leak.  The owner lock is tried by two handles and by a forked child;
 * links by processes with and without the kernel's openat2().
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io_script.h"
#include "rt/fault.h"
#include "rt/file.h"
#include "rt/time.h"
#include "unit/cmocka_all.h"

static char test_dir[] = "/tmp/weft-file-XXXXXX";

static void
assert_nothing_leaks(u64 blocks)
{
    RtCounters counters;
    rt_process_counters(rt_process(), &counters);
    assert_int_equal(counters.files, 0);
    assert_int_equal(mem_live_blocks(), blocks);
}

static void
the_script_works(void **state)
{
    (void)state;
    ErrMsg msg = {0};
    u64 blocks = mem_live_blocks();
    assert_int_equal(io_script_files(test_dir, &msg), OK);
    io_script_clean(test_dir);
    assert_nothing_leaks(blocks);
}

static void
every_call_fails_once(void **state)
{
    (void)state;
    const int errors[] = {EIO, ENOSPC, EMFILE, EINTR, RT_FAULT_SHORT};
    for (u32 e = 0; e < COUNT_OF(errors); e++) {
        bool fired = true;
        u32 nth = 1;
        for (; fired; nth++) {
            ErrMsg msg = {0};
            u64 blocks = mem_live_blocks();
            rt_fault_arm(nth, errors[e]);
            Err err = io_script_files(test_dir, &msg);
            fired = rt_fault_fired();
            rt_fault_arm(0, 0);
            bool is_survivable = errors[e] == EINTR || errors[e] == RT_FAULT_SHORT;
            assert_true((err != OK) == (fired && !is_survivable));
            if (err != OK) assert_non_null(msg.text);
            err_clear(&msg);
            io_script_clean(test_dir);
            assert_nothing_leaks(blocks);
        }
        assert_true(nth > 20);
    }
}

static void
failed_allocations_leak_nothing(void **state)
{
    (void)state;
    bool fired = true;
    for (u32 nth = 1; fired; nth++) {
        u64 blocks = mem_live_blocks();
        mem_fail_arm(nth, false);
        Err err = io_script_files(test_dir, NULL);
        fired = mem_fail_fired();
        mem_fail_arm(0, false);
        assert_int_equal(err, fired ? ERR_NOMEM : OK);
        io_script_clean(test_dir);
        assert_nothing_leaks(blocks);
    }
}

static void
errors_are_told_apart(void **state)
{
    (void)state;
    RtDir *dir;
    RtFile *file, *other;
    ErrMsg msg = {0};
    u8 byte;
    assert_int_equal(rt_dir_open("/no/such/dir", &dir, &msg), ERR_NOTFOUND);
    assert_null(dir);
    assert_non_null(strstr(msg.text, "/no/such/dir"));
    assert_int_equal(rt_dir_open(test_dir, &dir, &msg), OK);
    assert_int_equal(rt_file_open(dir, "x", RT_FILE_READ, &file, &msg), ERR_NOTFOUND);
    assert_non_null(strstr(msg.text, "No such file"));
    u32 make = RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE | RT_FILE_EXCLUSIVE;
    assert_int_equal(rt_file_open(dir, "x", make, &file, &msg), OK);
    assert_int_equal(rt_file_open(dir, "x", make, &other, &msg), ERR_EXISTS);
    assert_int_equal(rt_file_read_exact(file, 0, &byte, 1, &msg), ERR_IO_SHORT_READ);
    rt_fault_arm(1, EIO);
    assert_int_equal(rt_file_sync(file, &msg), ERR_IO_SYNC);
    rt_fault_arm(1, ENOSPC);
    assert_int_equal(rt_file_sync(file, &msg), ERR_IO_SYNC);
    rt_fault_arm(1, ENOSPC);
    assert_int_equal(rt_file_write(file, 0, "a", 1, &msg), ERR_FULL);
    rt_fault_arm(1, EIO);
    rt_fault_only(RT_FAULT_READ);
    assert_int_equal(rt_file_write(file, 0, "a", 1, &msg), OK);
    assert_int_equal(rt_file_read_exact(file, 0, &byte, 1, &msg), ERR_IO_READ);
    rt_fault_arm(0, 0);
    rt_file_close(file);
    assert_int_equal(rt_file_unlink(dir, "x", &msg), OK);
    rt_dir_close(dir);
    err_clear(&msg);
}

static void
the_owner_lock_excludes(void **state)
{
    (void)state;
    char path[128];
    RtFile *one, *two;
    RtOwner owner;
    ErrMsg msg = {0};
    u32 flags = RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE;
    snprintf(path, sizeof(path), "%s/owned", test_dir);
    assert_int_equal(rt_file_open(NULL, path, flags, &one, NULL), OK);
    assert_int_equal(rt_file_open(NULL, path, flags, &two, NULL), OK);
    assert_int_equal(rt_file_owner(one, &owner, NULL), OK);
    assert_int_equal(owner.pid, 0);
    assert_int_equal(rt_file_own(one, true, NULL, NULL), OK);
    assert_int_equal(rt_file_own(two, true, &owner, &msg), ERR_OWNED);
    assert_true(owner.is_self && owner.is_alive);
    assert_non_null(strstr(msg.text, "another copy of the engine"));
    rt_file_disown(one);
    assert_int_equal(rt_file_own(one, false, NULL, NULL), OK);
    assert_int_equal(rt_file_own(two, false, NULL, NULL), OK); /* Shared owners agree. */
    rt_file_close(one);
    rt_file_disown(two);
    rt_file_close(two);
    err_clear(&msg);

    pid_t child = fork();
    if (child == 0) {
        /* The child's runtime is foreign: ask the kernel by hand, as another program would. */
        execl("/proc/self/exe", "file_test", "--own", path, NULL);
        _exit(9);
    }
    assert_int_equal(rt_file_open(NULL, path, flags, &two, NULL), OK);
    for (;;) {
        assert_int_equal(rt_file_owner(two, &owner, NULL), OK);
        if (owner.pid == child) break;
        assert_int_equal(rt_sleep_ns(RT_NS_PER_MS), OK);
    }
    assert_int_equal(rt_file_own(two, true, &owner, &msg), ERR_OWNED);
    assert_int_equal(owner.pid, child);
    assert_true(owner.is_alive && !owner.is_self);
    assert_non_null(strstr(msg.text, "owns it"));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(rt_file_own(two, true, &owner, &msg), OK);
    rt_file_close(two);
    err_clear(&msg);
    unlink(path);
}

static int
own_and_wait(const char *path)
{
    RtFile *file;
    if (rt_file_open(NULL, path, RT_FILE_READ | RT_FILE_WRITE, &file, NULL) != OK) return 1;
    if (rt_file_own(file, true, NULL, NULL) != OK) return 2;
    (void)!rt_sleep_ns(20 * RT_NS_PER_S);
    return 0;
}

static void
a_forked_child_is_foreign(void **state)
{
    (void)state;
    RtDir *dir;
    assert_int_equal(rt_dir_open(test_dir, &dir, NULL), OK);
    pid_t child = fork();
    if (child == 0) {
        bool is_right = rt_process_is_foreign(rt_process_default()) &&
                        rt_dir_sync(dir, NULL) == ERR_FOREIGN;
        rt_dir_close(dir);
        _exit(is_right ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(rt_dir_sync(dir, NULL), OK);
    rt_dir_close(dir);
}

/* ---- confined directories ---- */

/* As on a kernel that has no openat2(). */
static bool
openat2_forbid(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = COUNT_OF(filter), .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* What opening `name` to write gives; a file that was opened is closed. */
static Err
opened(RtDir *dir, const char *name)
{
    RtFile *file;
    Err err = rt_file_open(dir, name, RT_FILE_READ | RT_FILE_WRITE | RT_FILE_CREATE, &file, NULL);
    if (err == OK) rt_file_close(file);
    return err;
}

/* A process of its own: how many of its expectations fail. */
static int
links_try(const char *path, bool without_openat2)
{
    static const char *const links[] = {"absolute", "upward", "fresh", "loop", "inside"};
    RtDir *dir;
    int bad = 0;
    if (rt_dir_open(path, &dir, NULL) != OK) return 100;
    /* Links are followed where nobody says otherwise. */
    bad += opened(dir, "absolute") != OK;
    rt_dir_confine(dir);
    if (without_openat2 && !openat2_forbid()) return 77;
    for (u32 i = 0; i < COUNT_OF(links); i++)
        bad += opened(dir, links[i]) != ERR_PERM;
    bad += opened(dir, "plain") != OK;
    bad += opened(dir, "made") != OK;
    rt_dir_close(dir);
    return bad;
}

static void
link_make(const char *target, const char *name)
{
    char path[100];
    snprintf(path, sizeof(path), "%s/in/%s", test_dir, name);
    assert_int_equal(symlink(target, path), 0);
}

static int
run_self(const char *how)
{
    char path[60], self[4096];
    int status;
    snprintf(path, sizeof(path), "%s/in", test_dir);
    ssize_t bytes = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(bytes > 0);
    self[bytes] = 0;
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, how, path, (char *)NULL);
        _exit(101);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 102;
}

static void
links_in_a_confined_directory_are_refused(void **state)
{
    (void)state;
    char path[60], command[80];
    snprintf(path, sizeof(path), "%s/in", test_dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/out", test_dir);
    link_make(path, "absolute");
    link_make("../out", "upward");
    link_make("../new", "fresh");
    link_make("loop", "loop");
    link_make("plain", "inside");
    assert_int_equal(run_self("--links"), 0);
    int status = run_self("--links-plain");
    if (status != 77) assert_int_equal(status, 0); /* 77: no seccomp here. */
    snprintf(path, sizeof(path), "%s/new", test_dir);
    assert_int_not_equal(access(path, F_OK), 0);
    snprintf(command, sizeof(command), "rm -r %s/in %s/out", test_dir, test_dir);
    assert_int_equal(system(command), 0);
}

int
main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--own") == 0) return own_and_wait(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--links") == 0) return links_try(argv[2], false);
    if (argc == 3 && strcmp(argv[1], "--links-plain") == 0) return links_try(argv[2], true);
    if (mkdtemp(test_dir) == NULL) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_script_works),
        cmocka_unit_test(every_call_fails_once),
        cmocka_unit_test(failed_allocations_leak_nothing),
        cmocka_unit_test(errors_are_told_apart),
        cmocka_unit_test(the_owner_lock_excludes),
        cmocka_unit_test(a_forked_child_is_foreign),
        cmocka_unit_test(links_in_a_confined_directory_are_refused),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(test_dir);
    return failed;
}
