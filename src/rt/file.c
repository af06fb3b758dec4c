/*
 * file.c -- files over the backend: exact transfers, error texts, the owner lock's rules.
 *
 * Here, and nowhere else, are short transfers continued and EINTR repeated.
 */
#include "rt/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "rt/fault.h"
#include "rt/host.h"
#include "rt/io.h"
#include "rt/process_impl.h"
#include "rt/time.h"

struct RtDir {
    RtProcess *process;
    int fd;
    bool is_confined;
    char path[];
};

struct RtFile {
    RtProcess *process;
    int fd;
    bool is_owner;
    char name[];
};

#define OWNER_DEAD_RETRY_NS (2 * RT_NS_PER_S)
#define OWNER_DEAD_STEP_NS  (5 * RT_NS_PER_MS)
#define TRANSFER_BYTES_MAX  ((size_t)1 << 30) /* The kernel stops at 2 GiB less a page. */

static Err
fail(ErrMsg *msg, i64 result, Err otherwise, const char *what, const char *name)
{
    int error = (int)-result;
    Err err = rt__errno_err(error, otherwise);
    return err_set(msg, err, "%s %s: %s", what, name, rt__errno_text(error));
}

static Err
fail_foreign(ErrMsg *msg, const char *name)
{
    return err_set(msg, ERR_FOREIGN, "%s: handle was inherited through fork", name);
}

/* Repeats EINTR; everything else is the caller's. */
static i64
io(RtProcess *process, RtIo *request)
{
    do {
        rt__io(process, request);
    } while (request->result == -EINTR);
    return request->result;
}

Err
rt_dir_open(const char *path, RtDir **dir_out, ErrMsg *msg)
{
    RtProcess *process = rt__self()->process;
    *dir_out = NULL;
    if (path[0] == 0) path = ".";
    if (rt_process_is_foreign(process)) return fail_foreign(msg, path);
    size_t bytes = strlen(path) + 1;
    RtDir *dir = mem_alloc_zeroed(sizeof(RtDir) + bytes);
    if (dir == NULL) return err_set(msg, ERR_NOMEM, NULL);
    if (rt__count_in(&process->files, &process->files_max) != OK) {
        mem_free(dir);
        return err_set(msg, ERR_LIMIT, "open directory %s: too many open files", path);
    }
    i64 fd = io(process, &(RtIo){.op = RT_IO_OPEN_DIR, .fd = -1, .name = path});
    if (fd < 0) {
        rt__count(&process->files, (u64)-1);
        mem_free(dir);
        return fail(msg, fd, ERR_CANTOPEN, "open directory", path);
    }
    dir->process = process;
    dir->fd = (int)fd;
    memcpy(dir->path, path, bytes);
    *dir_out = dir;
    return OK;
}

void
rt_dir_close(RtDir *dir)
{
    if (dir == NULL) return;
    if (!rt_process_is_foreign(dir->process)) {
        (void)io(dir->process, &(RtIo){.op = RT_IO_CLOSE, .fd = dir->fd});
        rt__count(&dir->process->files, (u64)-1);
    }
    mem_free(dir);
}

const char *
rt_dir_path(const RtDir *dir)
{
    return dir->path;
}

void
rt_dir_confine(RtDir *dir)
{
    dir->is_confined = true;
}

Err
rt_dir_sync(RtDir *dir, ErrMsg *msg)
{
    if (rt_process_is_foreign(dir->process)) return fail_foreign(msg, dir->path);
    i64 result = io(dir->process, &(RtIo){.op = RT_IO_DIR_SYNC, .fd = dir->fd});
    if (result == 0) return OK;
    return err_set(msg, ERR_IO_SYNC, "sync directory %s: %s", dir->path,
                   rt__errno_text((int)-result));
}

static int
name_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static Err
names_visit(const RtNames *names, RtDirEach each, void *arg, ErrMsg *msg)
{
    const char **sorted = MEM_NEW_ARRAY(const char *, names->count + 1);
    if (sorted == NULL) return err_set(msg, ERR_NOMEM, NULL);
    const char *name = (const char *)names->bytes.p;
    for (u32 i = 0; i < names->count; i++) {
        sorted[i] = name;
        name += strlen(name) + 1;
    }
    qsort(sorted, names->count, sizeof(*sorted), name_compare);
    Err err = OK;
    for (u32 i = 0; i < names->count && err == OK; i++)
        err = each(arg, sorted[i]);
    mem_free(sorted);
    return err;
}

Err
rt_dir_list(RtDir *dir, RtDirEach each, void *arg, ErrMsg *msg)
{
    if (rt_process_is_foreign(dir->process)) return fail_foreign(msg, dir->path);
    RtNames names = {0};
    i64 result = io(dir->process, &(RtIo){.op = RT_IO_LIST, .fd = dir->fd, .names = &names});
    Err err = result < 0 ? fail(msg, result, ERR_IO_READ, "list", dir->path)
                         : names_visit(&names, each, arg, msg);
    buf_free(&names.bytes);
    return err;
}

/* A call on a name that yields nothing but success. */
static Err
name_call(RtDir *dir, RtIo *request, const char *what, ErrMsg *msg)
{
    RtProcess *process = dir != NULL ? dir->process : rt__self()->process;
    if (rt_process_is_foreign(process)) return fail_foreign(msg, request->name);
    request->fd = dir != NULL ? dir->fd : -1;
    i64 result = io(process, request);
    return result >= 0 ? OK : fail(msg, result, ERR_IO, what, request->name);
}

Err
rt_dir_create(const char *path, ErrMsg *msg)
{
    return name_call(NULL, &(RtIo){.op = RT_IO_MAKE_DIR, .name = path}, "create directory", msg);
}

Err
rt_dir_remove(const char *path, ErrMsg *msg)
{
    return name_call(NULL, &(RtIo){.op = RT_IO_REMOVE_DIR, .name = path}, "remove directory", msg);
}

Err
rt_file_stat(RtDir *dir, const char *name, RtStat *stat_out, ErrMsg *msg)
{
    *stat_out = (RtStat){0};
    return name_call(dir, &(RtIo){.op = RT_IO_STAT, .name = name, .stat = stat_out}, "look at",
                     msg);
}

Err
rt_file_rename(RtDir *dir, const char *from, const char *to, ErrMsg *msg)
{
    return name_call(dir, &(RtIo){.op = RT_IO_RENAME, .name = from, .name2 = to}, "rename", msg);
}

Err
rt_file_unlink(RtDir *dir, const char *name, ErrMsg *msg)
{
    return name_call(dir, &(RtIo){.op = RT_IO_UNLINK, .name = name}, "remove", msg);
}

Err
rt_path_real(const char *path, char **path_out, ErrMsg *msg)
{
    RtNames names = {0};
    *path_out = NULL;
    Err err = name_call(NULL, &(RtIo){.op = RT_IO_REAL_PATH, .name = path, .names = &names}, "find",
                        msg);
    if (err == OK) {
        *path_out = mem_strdup((const char *)names.bytes.p);
        if (*path_out == NULL) err = err_set(msg, ERR_NOMEM, NULL);
    }
    buf_free(&names.bytes);
    return err;
}

static Err
open_as(RtDir *dir, RtIo *request, const char *shown_name, RtFile **file_out, ErrMsg *msg)
{
    RtProcess *process = dir != NULL ? dir->process : rt__self()->process;
    *file_out = NULL;
    if (rt_process_is_foreign(process)) return fail_foreign(msg, shown_name);
    size_t bytes = strlen(shown_name) + 1;
    RtFile *file = mem_alloc_zeroed(sizeof(RtFile) + bytes);
    if (file == NULL) return err_set(msg, ERR_NOMEM, NULL);
    if (rt__count_in(&process->files, &process->files_max) != OK) {
        mem_free(file);
        return err_set(msg, ERR_LIMIT, "open %s: too many open files", shown_name);
    }
    request->fd = dir != NULL ? dir->fd : -1;
    i64 fd = io(process, request);
    if (fd < 0) {
        rt__count(&process->files, (u64)-1);
        mem_free(file);
        if ((request->flags & RT_FILE_BENEATH) != 0 && (fd == -EXDEV || fd == -ELOOP))
            return err_set(msg, ERR_PERM, "open %s: a link is not followed in this directory",
                           shown_name);
        return fail(msg, fd, ERR_CANTOPEN, "open", shown_name);
    }
    file->process = process;
    file->fd = (int)fd;
    memcpy(file->name, shown_name, bytes);
    *file_out = file;
    return OK;
}

Err
rt_file_open(RtDir *dir, const char *name, u32 flags, RtFile **file_out, ErrMsg *msg)
{
    ASSERT(flags & (RT_FILE_READ | RT_FILE_WRITE));
    if (dir != NULL && dir->is_confined) flags |= RT_FILE_BENEATH;
    ASSERT((flags & RT_FILE_BENEATH) == 0 || strchr(name, '/') == NULL);
    return open_as(dir, &(RtIo){.op = RT_IO_OPEN, .name = name, .flags = flags}, name, file_out,
                   msg);
}

Err
rt_file_open_temp(RtDir *dir, RtFile **file_out, ErrMsg *msg)
{
    return open_as(dir, &(RtIo){.op = RT_IO_OPEN_TEMP}, "temporary file", file_out, msg);
}

void
rt_file_close(RtFile *file)
{
    if (file == NULL) return;
    if (!rt_process_is_foreign(file->process)) {
        if (file->is_owner) rt_file_disown(file);
        (void)io(file->process, &(RtIo){.op = RT_IO_CLOSE, .fd = file->fd});
        rt__count(&file->process->files, (u64)-1);
    }
    mem_free(file);
}

const char *
rt_file_name(const RtFile *file)
{
    return file->name;
}

/* Drop `done` bytes from the front of the vectors; returns the first that is left. */
static u32
vecs_advance(struct iovec *vecs, u32 at, u32 vec_count, size_t done)
{
    while (at < vec_count && done >= vecs[at].iov_len)
        done -= vecs[at++].iov_len;
    if (at < vec_count && done > 0) {
        vecs[at].iov_base = (u8 *)vecs[at].iov_base + done;
        vecs[at].iov_len -= done;
    }
    return at;
}

/*
 * Transfer all vectors, or up to the end of the file.  Returns 0, or -errno; *done_out counts the
 * bytes.  A write that makes no progress is taken as a full disk.
 */
static i64
transfer(RtFile *file, RtIoOp op, u64 offset, struct iovec *vecs, u32 vec_count, size_t *done_out)
{
    u32 at = vecs_advance(vecs, 0, vec_count, 0);
    *done_out = 0;
    while (at < vec_count) {
        size_t full = vecs[at].iov_len;
        if (full > TRANSFER_BYTES_MAX) vecs[at].iov_len = TRANSFER_BYTES_MAX;
        i64 got = io(file->process,
                     &(RtIo){.op = op,
                             .fd = file->fd,
                             .offset = offset + *done_out,
                             .vecs = vecs + at,
                             .vec_count = full > TRANSFER_BYTES_MAX ? 1 : (int)(vec_count - at)});
        vecs[at].iov_len = full;
        if (got == -EAGAIN) continue; /* A non-blocking descriptor given to us. */
        if (got < 0) return got;
        if (got == 0) return op == RT_IO_READ || op == RT_IO_READ_NEXT ? 0 : -ENOSPC;
        *done_out += (size_t)got;
        if (op == RT_IO_READ_NEXT) return 0;
        at = vecs_advance(vecs, at, vec_count, (size_t)got);
        if (at < vec_count) REACHED("file: a short transfer goes on");
    }
    return 0;
}

static Err
read_some(RtFile *file, RtIoOp op, u64 offset, void *bytes, size_t count, size_t *got_out,
          ErrMsg *msg)
{
    struct iovec vec = {bytes, count};
    *got_out = 0;
    if (rt_process_is_foreign(file->process)) return fail_foreign(msg, file->name);
    i64 result = transfer(file, op, offset, &vec, 1, got_out);
    return result < 0 ? fail(msg, result, ERR_IO_READ, "read", file->name) : OK;
}

Err
rt_file_read(RtFile *file, u64 offset, void *bytes, size_t count, size_t *got_out, ErrMsg *msg)
{
    return read_some(file, RT_IO_READ, offset, bytes, count, got_out, msg);
}

Err
rt_file_read_next(RtFile *file, void *bytes, size_t count, size_t *got_out, ErrMsg *msg)
{
    return read_some(file, RT_IO_READ_NEXT, 0, bytes, count, got_out, msg);
}

static Err
fail_short(ErrMsg *msg, const RtFile *file, u64 offset, size_t count, size_t got)
{
    return err_set(msg, ERR_IO_SHORT_READ, "read %s: %zu of %zu bytes at offset %llu, then its end",
                   file->name, got, count, (unsigned long long)offset);
}

Err
rt_file_read_exact(RtFile *file, u64 offset, void *bytes, size_t count, ErrMsg *msg)
{
    size_t got;
    Err err = rt_file_read(file, offset, bytes, count, &got, msg);
    if (err != OK || got == count) return err;
    return fail_short(msg, file, offset, count, got);
}

static size_t
vecs_copy(struct iovec *to, const RtIoVec *vecs, u32 vec_count)
{
    size_t total = 0;
    ASSERT(vec_count <= RT_IOVEC_MAX);
    for (u32 i = 0; i < vec_count; i++) {
        to[i] = (struct iovec){vecs[i].bytes, vecs[i].count};
        total += vecs[i].count;
    }
    return total;
}

Err
rt_file_readv(RtFile *file, u64 offset, const RtIoVec *vecs, u32 vec_count, ErrMsg *msg)
{
    struct iovec copy[RT_IOVEC_MAX];
    size_t total = vecs_copy(copy, vecs, vec_count), got;
    if (rt_process_is_foreign(file->process)) return fail_foreign(msg, file->name);
    i64 result = transfer(file, RT_IO_READ, offset, copy, vec_count, &got);
    if (result < 0) return fail(msg, result, ERR_IO_READ, "read", file->name);
    return got == total ? OK : fail_short(msg, file, offset, total, got);
}

Err
rt_file_writev(RtFile *file, u64 offset, const RtIoVec *vecs, u32 vec_count, ErrMsg *msg)
{
    struct iovec copy[RT_IOVEC_MAX];
    size_t done;
    vecs_copy(copy, vecs, vec_count);
    if (rt_process_is_foreign(file->process)) return fail_foreign(msg, file->name);
    i64 result = transfer(file, RT_IO_WRITE, offset, copy, vec_count, &done);
    return result < 0 ? fail(msg, result, ERR_IO_WRITE, "write", file->name) : OK;
}

Err
rt_file_write(RtFile *file, u64 offset, const void *bytes, size_t count, ErrMsg *msg)
{
    struct iovec vec = {(void *)(uintptr_t)bytes, count};
    size_t done;
    if (rt_process_is_foreign(file->process)) return fail_foreign(msg, file->name);
    i64 result = transfer(file, RT_IO_WRITE, offset, &vec, 1, &done);
    return result < 0 ? fail(msg, result, ERR_IO_WRITE, "write", file->name) : OK;
}

Err
rt_file_append(RtFile *file, const void *bytes, size_t count, ErrMsg *msg)
{
    struct iovec vec = {(void *)(uintptr_t)bytes, count};
    size_t done;
    if (rt_process_is_foreign(file->process)) return fail_foreign(msg, file->name);
    i64 result = transfer(file, RT_IO_WRITE_NEXT, 0, &vec, 1, &done);
    return result < 0 ? fail(msg, result, ERR_IO_WRITE, "write", file->name) : OK;
}

Err
rt_file_sync(RtFile *file, ErrMsg *msg)
{
    if (rt_process_is_foreign(file->process)) return fail_foreign(msg, file->name);
    /* A sync that was interrupted has not happened and has lost nothing: io() repeats it. */
    i64 result = io(file->process, &(RtIo){.op = RT_IO_SYNC, .fd = file->fd});
    if (result == 0) return OK;
    return err_set(msg, ERR_IO_SYNC, "sync %s: %s", file->name, rt__errno_text((int)-result));
}

static Err
file_call(RtFile *file, RtIo *request, Err otherwise, const char *what, ErrMsg *msg)
{
    if (rt_process_is_foreign(file->process)) return fail_foreign(msg, file->name);
    request->fd = file->fd;
    i64 result = io(file->process, request);
    return result >= 0 ? OK : fail(msg, result, otherwise, what, file->name);
}

Err
rt_file_size(RtFile *file, u64 *size_out, ErrMsg *msg)
{
    RtStat stat = {0};
    Err err = file_call(file, &(RtIo){.op = RT_IO_STAT_FD, .stat = &stat}, ERR_IO, "look at", msg);
    *size_out = stat.size_bytes;
    return err;
}

Err
rt_file_id(RtFile *file, RtFileId *id_out, ErrMsg *msg)
{
    RtStat stat = {0};
    Err err = file_call(file, &(RtIo){.op = RT_IO_STAT_FD, .stat = &stat}, ERR_IO, "look at", msg);
    *id_out = stat.id;
    return err;
}

Err
rt_file_preallocate(RtFile *file, u64 offset, u64 count, ErrMsg *msg)
{
    return file_call(file, &(RtIo){.op = RT_IO_ALLOCATE, .offset = offset, .count = count},
                     ERR_IO_WRITE, "reserve space in", msg);
}

Err
rt_file_truncate(RtFile *file, u64 size_bytes, ErrMsg *msg)
{
    return file_call(file, &(RtIo){.op = RT_IO_TRUNCATE, .count = size_bytes}, ERR_IO_WRITE,
                     "resize", msg);
}

Err
rt_file_punch(RtFile *file, u64 offset, u64 count, ErrMsg *msg)
{
    return file_call(file, &(RtIo){.op = RT_IO_PUNCH, .offset = offset, .count = count},
                     ERR_IO_WRITE, "give back space of", msg);
}

Err
rt_file_owner(RtFile *file, RtOwner *owner_out, ErrMsg *msg)
{
    *owner_out = (RtOwner){0};
    if (rt_process_is_foreign(file->process)) return fail_foreign(msg, file->name);
    RtIo request = {.op = RT_IO_LOCK_OWNER, .fd = file->fd};
    i64 pid = io(file->process, &request);
    if (pid < 0) return fail(msg, pid, ERR_IO, "find the owner of", file->name);
    if (file->is_owner) pid = rt_pid();
    rt__owner_describe(file->process, pid, owner_out);
    return OK;
}

static Err
owned_by_other(RtFile *file, const RtOwner *owner, ErrMsg *msg)
{
    if (owner->is_self) {
        return err_set(msg, ERR_OWNED, "%s: another copy of the engine in this process owns it",
                       file->name);
    }
    if (owner->pid > 0) {
        return err_set(msg, ERR_OWNED, "%s: process %lld (%s) owns it", file->name,
                       (long long)owner->pid, owner->program[0] != 0 ? owner->program : "unknown");
    }
    return err_set(msg, ERR_OWNED, "%s: another process owns it", file->name);
}

Err
rt_file_own(RtFile *file, bool exclusive, RtOwner *owner_out, ErrMsg *msg)
{
    RtOwner owner = {0};
    u64 give_up_ns = rt_deadline_after(OWNER_DEAD_RETRY_NS);
    if (owner_out != NULL) *owner_out = owner;
    if (rt_process_is_foreign(file->process)) return fail_foreign(msg, file->name);
    for (;;) {
        RtIo request = {.op = RT_IO_LOCK, .fd = file->fd, .flags = exclusive ? 1 : 0};
        i64 result = io(file->process, &request);
        if (result == 0) {
            file->is_owner = true;
            return OK;
        }
        if (result != -EAGAIN && result != -EACCES)
            return fail(msg, result, ERR_IO, "lock", file->name);
        Err err = rt_file_owner(file, &owner, msg);
        if (err != OK) return err;
        if (owner_out != NULL) *owner_out = owner;
        bool is_dying = owner.pid > 0 && !owner.is_alive;
        bool is_between = owner.pid == 0; /* Gone, or its pid not yet recorded. */
        if (!(is_dying || is_between) || rt_now_ns() >= give_up_ns)
            return owned_by_other(file, &owner, msg);
        RtU32 nobody = {0};
        (void)rt_park(&nobody, &nobody, 0, 0, rt_deadline_after(OWNER_DEAD_STEP_NS),
                      RT_PARK_NOCANCEL, 0);
    }
}

void
rt_file_disown(RtFile *file)
{
    if (!file->is_owner || rt_process_is_foreign(file->process)) return;
    (void)io(file->process, &(RtIo){.op = RT_IO_UNLOCK, .fd = file->fd});
    file->is_owner = false;
}

int
rt__file_fd(const RtFile *file)
{
    return file->fd;
}
