/*
 * host.c -- machine facts, environment, signals of programs.
 */
#include "rt/host.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/un.h>
#include <unistd.h>

#include "rt/process_impl.h"
#include "rt/time.h"

const char *
rt_env(const char *name)
{
    return getenv(name);
}

const char *
rt_home(void)
{
    const char *home = getenv("HOME");
    if (home != NULL && home[0] != 0) return home;
    struct passwd *user = getpwuid(getuid());
    return user != NULL ? user->pw_dir : NULL;
}

i64
rt_pid(void)
{
    RtProcess *process = rt__self()->process;
    const RtHooks *hooks = rt__hooks(process);
    return hooks != NULL && hooks->pid != NULL ? hooks->pid(process) : getpid();
}

/* The first line of a small file of /proc or /sys; "" when there is none. */
static void
line_read(const char *path, char *text, size_t bytes)
{
    text[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t got = read(fd, text, bytes - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    text[strcspn(text, "\n")] = 0;
}

/* Cores by the cgroup's quota, or 0 when it sets none. */
static u32
cgroup_cores(void)
{
    char text[128];
    unsigned long long quota = 0, period = 0;
    line_read("/sys/fs/cgroup/cpu.max", text, sizeof(text));
    if (sscanf(text, "%llu %llu", &quota, &period) != 2 || period == 0) return 0;
    u64 cores = (quota + period - 1) / period;
    return cores == 0 ? 1 : cores > 4096 ? 0 : (u32)cores;
}

u32
rt_cpu_count(void)
{
    cpu_set_t set;
    u32 cores = 1;
    if (rt__self()->process->world != NULL) return 2;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = (u32)CPU_COUNT(&set);
    u32 quota = cgroup_cores();
    if (quota != 0 && quota < cores) cores = quota;
    return cores == 0 ? 1 : cores;
}

u64
rt_memory_bytes(void)
{
    /* Read once: every database that is opened asks, and the files of a cgroup are slow. */
    static u64 known;
    u64 bytes = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (bytes != 0) return bytes;
    struct sysinfo info;
    if (sysinfo(&info) == 0) bytes = (u64)info.totalram * info.mem_unit;
    char text[64];
    unsigned long long limit;
    line_read("/sys/fs/cgroup/memory.max", text, sizeof(text));
    if (sscanf(text, "%llu", &limit) == 1 && (bytes == 0 || limit < bytes)) bytes = limit;
    __atomic_store_n(&known, bytes, __ATOMIC_RELAXED);
    return bytes;
}

u64
rt_memory_resident_bytes(void)
{
    char text[128];
    unsigned long long total, resident;
    line_read("/proc/self/statm", text, sizeof(text));
    if (sscanf(text, "%llu %llu", &total, &resident) != 2) return 0;
    return resident * (u64)sysconf(_SC_PAGESIZE);
}

void
rt_memory_give_back(void *at, u64 bytes)
{
    if (rt__self()->process->world != NULL) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t low = ALIGN_UP((uintptr_t)at, page), high = ((uintptr_t)at + bytes) / page * page;
    if (low < high) (void)madvise((void *)low, high - low, MADV_DONTNEED);
}

NORETURN void
rt_exit(int status)
{
    _exit(status);
}

static const int signal_numbers[RT_SIGNAL_COUNT_] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

static struct {
    _Atomic(RtSignalFn) fn;
    _Atomic(void *) arg;
} signal_handlers[RT_SIGNAL_COUNT_];

static void
signal_arrived(int number)
{
    int saved = errno;
    for (u32 i = 0; i < RT_SIGNAL_COUNT_; i++) {
        RtSignalFn fn = atomic_load(&signal_handlers[i].fn);
        if (signal_numbers[i] == number && fn != NULL)
            fn(atomic_load(&signal_handlers[i].arg), (RtSignal)i);
    }
    errno = saved;
}

void
rt_signal_on(RtSignal signal, RtSignalFn fn, void *arg)
{
    atomic_store(&signal_handlers[signal].arg, arg);
    atomic_store(&signal_handlers[signal].fn, fn);
    /* Without SA_RESTART, so that a read of standard input ends and sees the cancel. */
    struct sigaction action = {.sa_handler = fn != NULL ? signal_arrived : SIG_DFL};
    sigemptyset(&action.sa_mask);
    sigaction(signal_numbers[signal], &action, NULL);
}

static void
set_of(u32 signal_mask, sigset_t *set_out)
{
    sigemptyset(set_out);
    for (u32 i = 0; i < RT_SIGNAL_COUNT_; i++) {
        if (signal_mask & (1u << i)) sigaddset(set_out, signal_numbers[i]);
    }
}

void
rt_signal_block(u32 signal_mask)
{
    sigset_t set;
    set_of(signal_mask, &set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Blocks the calling thread, so it is for a program's main thread, not for fibers. */
Err
rt_signal_wait(u32 signal_mask, u64 deadline_ns, RtSignal *signal_out)
{
    sigset_t set;
    ASSERT(rt__self()->kind == RT_TASK_THREAD);
    set_of(signal_mask, &set);
    for (;;) {
        u64 now = rt_now_ns(), left = deadline_ns <= now ? 0 : deadline_ns - now;
        if (left > 3600 * RT_NS_PER_S) left = 3600 * RT_NS_PER_S;
        struct timespec wait = {(time_t)(left / RT_NS_PER_S), (long)(left % RT_NS_PER_S)};
        int number = sigtimedwait(&set, NULL, &wait);
        for (u32 i = 0; i < RT_SIGNAL_COUNT_; i++) {
            if (number != signal_numbers[i]) continue;
            *signal_out = (RtSignal)i;
            return OK;
        }
        if (rt_task_is_cancelled(rt__self())) return ERR_INTERRUPT;
        if (rt_now_ns() >= deadline_ns) return ERR_TIMEOUT;
    }
}

void
rt_program_init(void)
{
    /* The caller gets an error before the kernel kills. */
    MemAccount *account = rt_process_account(rt_process_default());
    if (account->cap_bytes == 0) account->cap_bytes = rt_memory_bytes() / 10 * 6;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void
rt_notify(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@')) return;
    size_t bytes = strlen(path);
    if (bytes >= sizeof(name.sun_path)) return;
    memcpy(name.sun_path, path, bytes);
    if (path[0] == '@') name.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    (void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const void *)&name,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes));
    close(fd);
}
