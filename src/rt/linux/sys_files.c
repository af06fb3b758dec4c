/*
 * sys_files.c -- file requests as Linux system calls.  Every function returns a result >= 0 or
 * -errno, and makes no more than it is asked: continuing and repeating is file.c's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rt/host.h"
#include "rt/io.h"
#include "rt/process_impl.h"

/*
 * The owner lock: byte OWNER_AT, exclusive or shared.  Who has it, has also byte
 * OWNER_PID_AT + pid, so that others can read the pid from the lock table: nothing is written, and
 * nothing stays after a death.
 */
#define OWNER_AT      ((off_t)1 << 62)
#define OWNER_PID_AT  (OWNER_AT + 1)
#define OWNER_PID_MAX ((off_t)1 << 31)

#define ZERO_BYTES 65536
#define LIST_BYTES 1536 /* Of directory entries at once. */

static i64
result_of(i64 result)
{
    return result < 0 ? -errno : result;
}

static int
at_dir(const RtIo *io)
{
    return io->fd < 0 ? AT_FDCWD : io->fd;
}

/*
 * openat(), and under RT_FILE_BENEATH neither through a link nor out of the directory: the kernel
 * sees to it in one step.  For a plain name one that has no openat2() can do the same.
 */
static int
open_in(const RtIo *io, int flags, mode_t mode)
{
    if ((io->flags & RT_FILE_BENEATH) == 0) return openat(at_dir(io), io->name, flags, mode);
    struct open_how how = {
        .flags = (u32)flags,
        .mode = (flags & O_CREAT) != 0 ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };
    long fd = syscall(SYS_openat2, at_dir(io), io->name, &how, sizeof(how));
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return (int)fd;
    return openat(at_dir(io), io->name, flags | O_NOFOLLOW, mode);
}

static i64
file_open(const RtIo *io)
{
    bool reads = io->flags & RT_FILE_READ, writes = io->flags & RT_FILE_WRITE;
    int flags = O_CLOEXEC | (reads && writes ? O_RDWR : writes ? O_WRONLY : O_RDONLY);
    mode_t mode = io->flags & RT_FILE_PRIVATE ? 0600 : 0644;
    if (io->flags & RT_FILE_CREATE) flags |= O_CREAT;
    if (io->flags & RT_FILE_EXCLUSIVE) flags |= O_EXCL;
    if (io->flags & RT_FILE_TRUNCATE) flags |= O_TRUNC;
    if (io->flags & RT_FILE_APPEND) flags |= O_APPEND;
    if (io->flags & RT_FILE_DIRECT) {
        int fd = open_in(io, flags | O_DIRECT, mode);
        if (fd >= 0 || errno != EINVAL) return result_of(fd);
        /* The open may have created the file before it refused: go on without EXCL. */
        flags &= ~O_EXCL;
    }
    return result_of(open_in(io, flags, mode));
}

static i64
temp_in(int dir, const char *path)
{
    int fd = openat(dir, path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return result_of(fd);
    /* No O_TMPFILE here: make a name and drop it at once. */
    for (u32 attempt = 0; attempt < 100; attempt++) {
        u64 number;
        rt__linux_sys.random(NULL, &number, sizeof(number));
        Buf name = {0};
        if (buf_printf(&name, "%s/weft-%016llx.tmp", path, (unsigned long long)number) != OK ||
            buf_append_byte(&name, 0) != OK) {
            buf_free(&name);
            return -ENOMEM;
        }
        const char *text = (const char *)name.p;
        i64 made = result_of(openat(dir, text, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
        if (made >= 0) unlinkat(dir, text, 0);
        buf_free(&name);
        if (made != -EEXIST) return made;
    }
    return -EEXIST;
}

static i64
file_open_temp(const RtIo *io)
{
    if (io->fd >= 0) return temp_in(io->fd, ".");
    const char *places[] = {getenv("TMPDIR"), "/var/tmp", "/tmp", "."};
    i64 fd = -ENOENT;
    for (u32 i = 0; i < COUNT_OF(places) && fd < 0; i++) {
        if (places[i] != NULL && places[i][0] != 0) fd = temp_in(AT_FDCWD, places[i]);
    }
    return fd;
}

static void
stat_copy(RtStat *to, const struct stat *from)
{
    *to = (RtStat){
        .size_bytes = (u64)from->st_size,
        .modified_ns = (i64)from->st_mtim.tv_sec * 1000000000 + from->st_mtim.tv_nsec,
        .id = {from->st_dev, from->st_ino},
        .mode = from->st_mode & 07777,
        .is_dir = S_ISDIR(from->st_mode),
        .is_file = S_ISREG(from->st_mode),
    };
}

static i64
name_stat(const RtIo *io)
{
    struct stat stat;
    if (fstatat(at_dir(io), io->name, &stat, 0) != 0) return -errno;
    stat_copy(io->stat, &stat);
    return 0;
}

static i64
fd_stat(const RtIo *io)
{
    struct stat stat;
    if (fstat(io->fd, &stat) != 0) return -errno;
    stat_copy(io->stat, &stat);
    return 0;
}

/* For file systems without fallocate: write the zeros that are missing at the end. */
static i64
allocate_by_writing(const RtIo *io)
{
    static const u8 zeros[ZERO_BYTES];
    struct stat stat;
    if (fstat(io->fd, &stat) != 0) return -errno;
    u64 at = MAX_OF((u64)stat.st_size, io->offset), end = io->offset + io->count;
    while (at < end) {
        ssize_t done = pwrite(io->fd, zeros, MIN_OF(end - at, sizeof(zeros)), (off_t)at);
        if (done < 0 && errno != EINTR) return -errno;
        if (done > 0) at += (u64)done;
    }
    return 0;
}

static i64
file_allocate(const RtIo *io)
{
    if (fallocate(io->fd, 0, (off_t)io->offset, (off_t)io->count) == 0) return 0;
    return errno == EOPNOTSUPP || errno == ENOSYS ? allocate_by_writing(io) : -errno;
}

/* The names of one getdents64() call. */
static i64
entries_add(RtNames *names, const char *entries, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const struct dirent64 *entry = (const struct dirent64 *)(const void *)(entries + at);
        at += entry->d_reclen;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (buf_append(&names->bytes, entry->d_name, strlen(entry->d_name) + 1) != OK)
            return -ENOMEM;
        names->count++;
    }
    return 0;
}

/* Straight from the kernel: readdir() makes three more calls and 32 KiB of memory of it. */
static i64
dir_list(const RtIo *io)
{
    _Alignas(struct dirent64) char entries[LIST_BYTES];
    int fd = openat(io->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return -errno;
    i64 result = 1;
    while (result > 0) {
        result = result_of(getdents64(fd, entries, sizeof(entries)));
        if (result <= 0) break;
        i64 added = entries_add(io->names, entries, (size_t)result);
        if (added < 0) result = added;
    }
    close(fd);
    return result;
}

static i64
names_put(RtNames *names, const char *text)
{
    if (buf_append(&names->bytes, text, strlen(text) + 1) != OK) return -ENOMEM;
    names->count = 1;
    return 0;
}

/* Its last component does not exist. */
static i64
real_path_of_new(const RtIo *io)
{
    const char *slash = strrchr(io->name, '/');
    const char *last = slash != NULL ? slash + 1 : io->name;
    if (last[0] == 0) return -ENOENT;
    size_t bytes = slash == NULL ? 0 : MAX_OF((size_t)(slash - io->name), (size_t)1);
    char *parent = mem_strndup(slash == NULL ? "." : io->name, slash == NULL ? 1 : bytes);
    if (parent == NULL) return -ENOMEM;
    char *whole = mem_alloc(PATH_MAX);
    i64 result = whole == NULL ? -ENOMEM : realpath(parent, whole) == NULL ? -errno : 0;
    mem_free(parent);
    if (result < 0) {
        mem_free(whole);
        return result;
    }
    Err err = buf_printf(&io->names->bytes, "%s/%s", strcmp(whole, "/") == 0 ? "" : whole, last);
    if (err == OK) err = buf_append_byte(&io->names->bytes, 0);
    io->names->count = 1;
    mem_free(whole);
    return err == OK ? 0 : -ENOMEM;
}

/* The directory must exist, the last component need not. */
static i64
real_path(const RtIo *io)
{
    char *whole = mem_alloc(PATH_MAX);
    if (whole == NULL) return -ENOMEM;
    i64 result = realpath(io->name, whole) == NULL ? -errno : names_put(io->names, whole);
    mem_free(whole);
    return result == -ENOENT ? real_path_of_new(io) : result;
}

static int
lock_range(int fd, int command, short type, off_t start, off_t count, struct flock *lock)
{
    *lock = (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = count};
    return fcntl(fd, command, lock);
}

static i64
owner_lock(const RtIo *io)
{
    short type = io->flags & 1 ? F_WRLCK : F_RDLCK;
    struct flock lock;
    if (lock_range(io->fd, F_OFD_SETLK, type, OWNER_AT, 1, &lock) != 0) return -errno;
    if (lock_range(io->fd, F_OFD_SETLK, type, OWNER_PID_AT + getpid(), 1, &lock) == 0) return 0;
    int error = errno;
    lock_range(io->fd, F_OFD_SETLK, F_UNLCK, OWNER_AT, 1, &lock);
    return -error;
}

static i64
owner_unlock(const RtIo *io)
{
    struct flock lock;
    STATIC_ASSERT(OWNER_PID_AT == OWNER_AT + 1); /* Both bytes go in one call. */
    return result_of(lock_range(io->fd, F_OFD_SETLK, F_UNLCK, OWNER_AT, 1 + OWNER_PID_MAX, &lock));
}

static i64
owner_find(const RtIo *io)
{
    struct flock lock;
    if (lock_range(io->fd, F_OFD_GETLK, F_WRLCK, OWNER_PID_AT, OWNER_PID_MAX, &lock) != 0)
        return -errno;
    return lock.l_type == F_UNLCK ? 0 : (i64)(lock.l_start - OWNER_PID_AT);
}

void
rt__owner_describe(RtProcess *process, i64 pid, RtOwner *owner_out)
{
    *owner_out = (RtOwner){.pid = pid};
    if (pid <= 0) return;
    if (process->world != NULL) {
        owner_out->is_alive = rt__hooks(process)->is_alive(pid);
        owner_out->is_self = pid == rt_pid();
        return;
    }
    owner_out->is_self = pid == getpid();
    owner_out->is_alive = kill((pid_t)pid, 0) == 0 || errno == EPERM;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%lld/comm", (long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t got = read(fd, owner_out->program, sizeof(owner_out->program) - 1);
    close(fd);
    while (got > 0 && owner_out->program[got - 1] == '\n')
        owner_out->program[--got] = 0;
}

static i64
name_io(const RtIo *io)
{
    switch (io->op) {
    case RT_IO_STAT: return name_stat(io);
    case RT_IO_RENAME: return result_of(renameat(at_dir(io), io->name, at_dir(io), io->name2));
    case RT_IO_UNLINK: return result_of(unlinkat(at_dir(io), io->name, 0));
    case RT_IO_MAKE_DIR: return result_of(mkdirat(at_dir(io), io->name, 0755));
    case RT_IO_REMOVE_DIR: return result_of(unlinkat(at_dir(io), io->name, AT_REMOVEDIR));
    case RT_IO_LIST: return dir_list(io);
    case RT_IO_REAL_PATH: return real_path(io);
    default: UNREACHABLE();
    }
}

i64
rt__linux_file_io(const RtIo *io)
{
    switch (io->op) {
    case RT_IO_OPEN: return file_open(io);
    case RT_IO_OPEN_DIR:
        return result_of(openat(at_dir(io), io->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    case RT_IO_OPEN_TEMP: return file_open_temp(io);
    case RT_IO_CLOSE:
        close(io->fd); /* Closed whatever it says; EINTR must not be repeated. */
        return 0;
    case RT_IO_READ: return result_of(preadv(io->fd, io->vecs, io->vec_count, (off_t)io->offset));
    case RT_IO_WRITE: return result_of(pwritev(io->fd, io->vecs, io->vec_count, (off_t)io->offset));
    case RT_IO_READ_NEXT: return result_of(readv(io->fd, io->vecs, io->vec_count));
    case RT_IO_WRITE_NEXT: return result_of(writev(io->fd, io->vecs, io->vec_count));
    case RT_IO_SYNC: return result_of(fdatasync(io->fd));
    case RT_IO_DIR_SYNC: return result_of(fsync(io->fd));
    case RT_IO_STAT_FD: return fd_stat(io);
    case RT_IO_ALLOCATE: return file_allocate(io);
    case RT_IO_TRUNCATE: return result_of(ftruncate(io->fd, (off_t)io->count));
    case RT_IO_PUNCH:
        return result_of(fallocate(io->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                   (off_t)io->offset, (off_t)io->count));
    case RT_IO_LOCK: return owner_lock(io);
    case RT_IO_UNLOCK: return owner_unlock(io);
    case RT_IO_LOCK_OWNER: return owner_find(io);
    default: return name_io(io);
    }
}
