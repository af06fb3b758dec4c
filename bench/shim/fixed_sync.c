/*
 * fixed_sync.c -- LD_PRELOAD: every sync of a file costs BENCH_SYNC_US microseconds (250), no more.
 *
 * The disk of a shared machine drifts by ten times within minutes.  With the files on a memory disk
 * and this library in front, all engines see the same device: fsync, fdatasync, sync_file_range,
 * syncfs and msync(MS_SYNC) wait for the fixed time; syncs of several threads overlap, as those of
 * a disk with its own queue do.  io_uring_setup is refused, so that an engine that would sync
 * through a ring takes its way without one (weftd: its worker pool), which comes through here.
 *
 * bench_sync_count() tells how many syncs there were, so that a driver can check that an engine's
 * syncs do come through here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint64_t count;

uint64_t bench_sync_count(void);

uint64_t
bench_sync_count(void)
{
    return atomic_load(&count);
}

static long
sync_ns(void)
{
    static _Atomic long known;
    long ns = atomic_load(&known);
    if (ns == 0) {
        const char *text = getenv("BENCH_SYNC_US");
        ns = (text == NULL ? 250 : atol(text)) * 1000;
        atomic_store(&known, ns);
    }
    return ns;
}

static int
wait_fixed(void)
{
    static _Thread_local int is_exact;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    /* The kernel may wake a sleeper 50 us late unless it is told not to. */
    if (!is_exact) prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    is_exact = 1;
    end.tv_nsec += sync_ns();
    while (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) {
    }
    atomic_fetch_add(&count, 1);
    return 0;
}

int
fsync(int fd)
{
    (void)fd;
    return wait_fixed();
}

int
fdatasync(int fd)
{
    (void)fd;
    return wait_fixed();
}

int
syncfs(int fd)
{
    (void)fd;
    return wait_fixed();
}

int
sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags)
{
    (void)fd;
    (void)offset;
    (void)bytes;
    (void)flags;
    return wait_fixed();
}

int
msync(void *address, size_t bytes, int flags)
{
    (void)address;
    (void)bytes;
    return (flags & MS_SYNC) != 0 ? wait_fixed() : 0;
}

long
syscall(long number, ...)
{
    static long (*real)(long, ...);
    long argument[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_io_uring_setup) {
        errno = ENOSYS;
        return -1;
    }
    if (number == SYS_fsync || number == SYS_fdatasync) return wait_fixed();
    if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    return real(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                argument[5]);
}
