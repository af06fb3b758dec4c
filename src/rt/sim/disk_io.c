/*
 * disk_io.c -- file requests on the simulated disk, with their faults and their time.
 */
#include <errno.h>
#include <stdlib.h>

#include "rt/sim/disk_impl.h"
#include "rt/time.h"

#define FD_BASE          1000
#define DIRECT_ALIGNMENT 512
#define LINGER_NS        (30 * RT_NS_PER_MS)

static void
takes(RtSimHost *host, u64 typical_ns)
{
    typical_ns = typical_ns * rt__world->disk_percent / 100;
    u64 duration_ns = typical_ns / 4 + rt__world_draw(SIM_TIME, typical_ns * 2);
    if (rt__world_fault(host, RT_SIM_SLOW))
        duration_ns += RT_NS_PER_S + rt__world_draw(SIM_TIME, 29 * RT_NS_PER_S);
    rt__world_pass(duration_ns);
}

static SimFd *
fd_of(SimDisk *disk, int fd)
{
    ASSERT(fd >= FD_BASE && (u32)(fd - FD_BASE) < disk->fd_count);
    SimFd *found = &disk->fds[fd - FD_BASE];
    ASSERT(found->process != NULL);
    return found;
}

static i64
fd_new(RtSimProcess *process, SimInode *inode, u32 flags)
{
    SimDisk *disk = process->host->disk;
    u32 at = 0;
    while (at < disk->fd_count && disk->fds[at].process != NULL)
        at++;
    if (at == disk->fd_count) {
        disk->fds = realloc(disk->fds, ++disk->fd_count * sizeof(SimFd));
        if (disk->fds == NULL) abort();
    }
    disk->fds[at] = (SimFd){.process = process, .inode = inode, .flags = flags};
    process->open_files++;
    return FD_BASE + (i64)at;
}

static void
owner_remove(SimInode *inode, int fd)
{
    for (SimOwner **at = &inode->owners; *at != NULL;) {
        SimOwner *owner = *at;
        bool is_over = owner->fd < 0 && owner->until_ns <= rt__world->clock_ns;
        if (!is_over && owner->fd != fd) {
            at = &owner->next;
            continue;
        }
        *at = owner->next;
        free(owner);
    }
}

static void
fd_close(SimDisk *disk, int number)
{
    SimFd *fd = fd_of(disk, number);
    owner_remove(fd->inode, number);
    fd->process->open_files--;
    *fd = (SimFd){0};
}

void
rt__disk_process_gone(SimDisk *disk, RtSimProcess *process)
{
    for (u32 i = 0; i < disk->fd_count; i++) {
        if (disk->fds[i].process != process) continue;
        /* As long as the kernel has I/O of the dead process to finish, its locks stay. */
        bool lingers = rt__world_draw(SIM_CRASH, 2) == 0;
        for (SimOwner *owner = disk->fds[i].inode->owners; owner != NULL && lingers;
             owner = owner->next) {
            if (owner->fd != FD_BASE + (int)i) continue;
            owner->fd = -1;
            owner->until_ns = rt__world->clock_ns + rt__world_draw(SIM_CRASH, LINGER_NS);
        }
        fd_close(disk, FD_BASE + (int)i);
    }
}

static SimInode *
start_of(SimDisk *disk, const RtIo *io)
{
    return io->fd < 0 ? disk->root : fd_of(disk, io->fd)->inode;
}

static i64
open_file(RtSimProcess *process, const RtIo *io)
{
    SimDisk *disk = process->host->disk;
    char last[NAME_BYTES];
    if (rt__world_fault(process->host, RT_SIM_EMFILE)) return -EMFILE;
    SimInode *dir = rt__disk_walk(disk, start_of(disk, io), io->name, last);
    if (dir == NULL || last[0] == 0) return -ENOENT;
    SimInode *inode = rt__entries_find(&dir->entries, last);
    if (inode != NULL && inode->is_dir) return -EISDIR;
    if (inode == NULL) {
        if (!(io->flags & RT_FILE_CREATE)) return -ENOENT;
        if (rt__world_fault(process->host, RT_SIM_NO_SPACE)) return -ENOSPC;
        inode = rt__inode_new(disk, false);
        rt__dir_move(disk, dir, "", last, inode);
    } else {
        if ((io->flags & RT_FILE_CREATE) && (io->flags & RT_FILE_EXCLUSIVE)) return -EEXIST;
        if (io->flags & RT_FILE_TRUNCATE) rt__inode_resize(disk, inode, 0);
    }
    return fd_new(process, inode, io->flags);
}

static i64
open_dir(RtSimProcess *process, const RtIo *io)
{
    SimDisk *disk = process->host->disk;
    if (rt__world_fault(process->host, RT_SIM_EMFILE)) return -EMFILE;
    SimInode *inode = rt__disk_find(disk, start_of(disk, io), io->name);
    if (inode == NULL) return -ENOENT;
    return inode->is_dir ? fd_new(process, inode, 0) : -ENOTDIR;
}

static u64
vecs_count(const RtIo *io)
{
    u64 count = 0;
    for (int i = 0; i < io->vec_count; i++)
        count += io->vecs[i].iov_len;
    return count;
}

static bool
is_misaligned(const SimFd *fd, const RtIo *io)
{
    if (!(fd->flags & RT_FILE_DIRECT)) return false;
    u64 bits = io->offset;
    for (int i = 0; i < io->vec_count; i++)
        bits |= (u64)(uintptr_t)io->vecs[i].iov_base | io->vecs[i].iov_len;
    return bits % DIRECT_ALIGNMENT != 0;
}

static u8 *
vecs_gather(const RtIo *io, u64 count)
{
    u8 *bytes = rt__world_alloc(count + 1), *to = bytes;
    for (int i = 0; i < io->vec_count; i++) {
        u64 part = MIN_OF((u64)io->vecs[i].iov_len, count - (u64)(to - bytes));
        if (part > 0) memcpy(to, io->vecs[i].iov_base, part);
        to += part;
    }
    return bytes;
}

static void
vecs_scatter(const RtIo *io, const u8 *bytes, u64 count)
{
    for (int i = 0; i < io->vec_count && count > 0; i++) {
        u64 part = MIN_OF((u64)io->vecs[i].iov_len, count);
        memcpy(io->vecs[i].iov_base, bytes, part);
        bytes += part;
        count -= part;
    }
}

/* Damage that stays: one bit of what is about to be read. */
static void
rot(SimInode *inode, u64 offset, u64 count)
{
    u64 at = offset + rt__world_draw(SIM_DISK, count);
    u8 bit = (u8)(1u << rt__world_draw(SIM_DISK, 8));
    inode->now.bytes[at] ^= bit;
    if (at < inode->durable.size) inode->durable.bytes[at] ^= bit;
}

static i64
read_at(RtSimProcess *process, const RtIo *io, u64 offset)
{
    RtSimHost *host = process->host;
    SimFd *fd = fd_of(host->disk, io->fd);
    SimInode *inode = fd->inode;
    u64 count = vecs_count(io);
    if (is_misaligned(fd, io)) return -EINVAL;
    takes(host, 20 * RT_NS_PER_US);
    if (rt__world_fault(host, RT_SIM_EIO_READ)) return -EIO;
    if (offset >= inode->now.size) return 0;
    count = MIN_OF(count, inode->now.size - offset);
    if (count > 1 && rt__world_fault(host, RT_SIM_SHORT))
        count = 1 + rt__world_draw(SIM_DISK, count);
    if (count > 0 && rt__world_fault(host, RT_SIM_BIT_ROT)) rot(inode, offset, count);
    u64 from = offset;
    if (inode->now.size > count && rt__world_fault(host, RT_SIM_MISDIRECTED))
        from = rt__world_draw(SIM_DISK, inode->now.size - count);
    vecs_scatter(io, inode->now.bytes + from, count);
    return (i64)count;
}

/* Some sectors of a write: those a crash or an error left behind. */
static void
write_some(SimDisk *disk, SimInode *inode, u64 offset, const u8 *bytes, u64 count)
{
    u64 at = offset, end = offset + count;
    bool is_prefix = rt__world_draw(SIM_DISK, 2) == 0;
    while (at < end) {
        u64 until = MIN_OF(end, (at / SECTOR_BYTES + 1) * SECTOR_BYTES);
        bool is_lost = rt__world_draw(SIM_DISK, 3) == 0;
        if (is_lost && is_prefix) return;
        if (!is_lost) rt__inode_write(disk, inode, at, bytes + (at - offset), until - at);
        at = until;
    }
}

static bool
is_full(RtSimHost *host, const SimInode *inode, u64 end)
{
    bool is_reserved = end <= inode->allocated && !host->disk->is_copy_on_write;
    return !is_reserved && rt__world_fault(host, RT_SIM_NO_SPACE);
}

static i64
write_at(RtSimProcess *process, const RtIo *io, bool appends)
{
    RtSimHost *host = process->host;
    SimDisk *disk = host->disk;
    SimFd *fd = fd_of(disk, io->fd);
    SimInode *inode = fd->inode;
    u64 count = vecs_count(io);
    if (!(fd->flags & RT_FILE_WRITE)) return -EBADF;
    if (is_misaligned(fd, io)) return -EINVAL;
    if (count > 1 && rt__world_fault(host, RT_SIM_SHORT))
        count = 1 + rt__world_draw(SIM_DISK, count);
    u8 *bytes = vecs_gather(io, count);
    rt__world->running->scratch = bytes; /* A crash during the wait below frees it. */
    u64 offset = appends ? inode->now.size : io->offset;
    /* Readers may see part of it before the rest. */
    u64 early = rt__world_draw(SIM_DISK, 4) == 0 ? count / 2 / SECTOR_BYTES * SECTOR_BYTES : 0;
    if (early > 0 && !appends) rt__inode_write(disk, inode, offset, bytes, early);
    takes(host, 15 * RT_NS_PER_US);
    if (appends) offset = inode->now.size;
    i64 result = (i64)count;
    if (is_full(host, inode, offset + count))
        result = -ENOSPC;
    else if (rt__world_fault(host, RT_SIM_EIO_WRITE))
        result = -EIO;
    if (result >= 0)
        rt__inode_write(disk, inode, offset, bytes, count);
    else
        write_some(disk, inode, offset, bytes, count);
    rt__world_note("write", inode->number ^ offset, hash_bytes(bytes, count, offset));
    rt__world->running->scratch = NULL;
    free(bytes);
    return result;
}

void
rt__disk_io_torn(RtSimProcess *process, const RtIo *io)
{
    if (io->op != RT_IO_WRITE && io->op != RT_IO_WRITE_NEXT) return;
    SimDisk *disk = process->host->disk;
    SimInode *inode = fd_of(disk, io->fd)->inode;
    u64 count = vecs_count(io);
    u8 *bytes = vecs_gather(io, count);
    write_some(disk, inode, io->op == RT_IO_WRITE ? io->offset : inode->now.size, bytes, count);
    free(bytes);
}

static i64
sync_file(RtSimProcess *process, const RtIo *io)
{
    RtSimHost *host = process->host;
    SimInode *inode = fd_of(host->disk, io->fd)->inode;
    u64 number = host->disk->change_number; /* Later writes are not covered. */
    takes(host, 300 * RT_NS_PER_US);
    bool is_failing = rt__world_fault(host, RT_SIM_SYNC_FAILS);
    rt__inode_sync(host->disk, inode, number, is_failing);
    return is_failing ? -EIO : 0;
}

static i64
sync_dir(RtSimProcess *process, const RtIo *io)
{
    RtSimHost *host = process->host;
    SimInode *inode = fd_of(host->disk, io->fd)->inode;
    u64 number = host->disk->change_number;
    takes(host, 300 * RT_NS_PER_US);
    if (rt__world_fault(host, RT_SIM_SYNC_FAILS)) return -EIO;
    rt__dir_sync(inode, number);
    return 0;
}

static i64
stat_put(const SimInode *inode, RtStat *stat)
{
    if (inode == NULL) return -ENOENT;
    *stat = (RtStat){
        .size_bytes = inode->now.size,
        .modified_ns = inode->modified_ns,
        .id = {1, inode->number},
        .mode = 0644,
        .is_dir = inode->is_dir,
        .is_file = !inode->is_dir,
    };
    return 0;
}

static i64
rename_entry(SimDisk *disk, const RtIo *io)
{
    char from[NAME_BYTES], to[NAME_BYTES];
    SimInode *source = rt__disk_walk(disk, start_of(disk, io), io->name, from);
    SimInode *target = rt__disk_walk(disk, start_of(disk, io), io->name2, to);
    if (source == NULL || target == NULL) return -ENOENT;
    SimInode *inode = rt__entries_find(&source->entries, from);
    if (inode == NULL) return -ENOENT;
    if (source == target) {
        if (strcmp(from, to) != 0) rt__dir_move(disk, source, from, to, inode);
        return 0;
    }
    rt__dir_move(disk, target, "", to, inode);
    rt__dir_move(disk, source, from, "", NULL);
    return 0;
}

static i64
unlink_entry(SimDisk *disk, const RtIo *io, bool is_dir)
{
    char last[NAME_BYTES];
    SimInode *dir = rt__disk_walk(disk, start_of(disk, io), io->name, last);
    SimInode *inode = dir == NULL ? NULL : rt__entries_find(&dir->entries, last);
    if (inode == NULL) return -ENOENT;
    if (inode->is_dir != is_dir) return is_dir ? -ENOTDIR : -EISDIR;
    if (is_dir && inode->entries.count > 0) return -ENOTEMPTY;
    rt__dir_move(disk, dir, last, "", NULL);
    return 0;
}

static i64
make_dir(RtSimProcess *process, const RtIo *io)
{
    SimDisk *disk = process->host->disk;
    char last[NAME_BYTES];
    SimInode *dir = rt__disk_walk(disk, start_of(disk, io), io->name, last);
    if (dir == NULL) return -ENOENT;
    if (last[0] == 0 || rt__entries_find(&dir->entries, last) != NULL) return -EEXIST;
    if (rt__world_fault(process->host, RT_SIM_NO_SPACE)) return -ENOSPC;
    rt__dir_move(disk, dir, "", last, rt__inode_new(disk, true));
    return 0;
}

static i64
list_dir(const SimInode *dir, RtNames *names)
{
    u32 count = dir->entries.count;
    for (u32 i = 0; i < count; i++) {
        /* The order of a directory is anybody's guess: the perturbed run has another. */
        u32 at = rt__world->options.is_perturbed ? count - 1 - i : i;
        const char *name = dir->entries.list[at].name;
        if (buf_append(&names->bytes, name, strlen(name) + 1) != OK) return -ENOMEM;
        names->count++;
    }
    return 0;
}

/* Everything hangs on one root, so a path is real already. */
static i64
real_path(const RtIo *io)
{
    const char *name = io->name;
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    if (name[0] != '/' && buf_append_byte(&io->names->bytes, '/') != OK) return -ENOMEM;
    if (buf_append(&io->names->bytes, name, strlen(name) + 1) != OK) return -ENOMEM;
    io->names->count = 1;
    return 0;
}

static i64
lock_file(RtSimProcess *process, const RtIo *io)
{
    SimInode *inode = fd_of(process->host->disk, io->fd)->inode;
    bool exclusive = io->flags & 1;
    owner_remove(inode, io->fd); /* Also those that are over. */
    for (const SimOwner *owner = inode->owners; owner != NULL; owner = owner->next) {
        if (exclusive || owner->exclusive) return -EAGAIN;
    }
    SimOwner *owner = rt__world_alloc(sizeof(*owner));
    *owner = (SimOwner){
        .next = inode->owners, .pid = process->pid, .fd = io->fd, .exclusive = exclusive};
    inode->owners = owner;
    return 0;
}

static i64
lock_owner(RtSimProcess *process, const RtIo *io)
{
    SimInode *inode = fd_of(process->host->disk, io->fd)->inode;
    owner_remove(inode, -2);
    for (const SimOwner *owner = inode->owners; owner != NULL; owner = owner->next) {
        if (owner->fd != io->fd) return owner->pid;
    }
    return 0;
}

static i64
allocate(RtSimProcess *process, const RtIo *io)
{
    SimDisk *disk = process->host->disk;
    SimInode *inode = fd_of(disk, io->fd)->inode;
    u64 end = io->offset + io->count;
    takes(process->host, 50 * RT_NS_PER_US);
    if (rt__world_fault(process->host, RT_SIM_NO_SPACE)) return -ENOSPC;
    if (end > inode->now.size) rt__inode_resize(disk, inode, end);
    if (io->offset <= inode->allocated) inode->allocated = MAX_OF(inode->allocated, end);
    return 0;
}

static i64
punch(RtSimProcess *process, const RtIo *io)
{
    SimDisk *disk = process->host->disk;
    SimInode *inode = fd_of(disk, io->fd)->inode;
    u64 end = MIN_OF(io->offset + io->count, inode->now.size);
    if (end <= io->offset) return 0;
    u8 *zeros = rt__world_alloc(end - io->offset);
    rt__inode_write(disk, inode, io->offset, zeros, end - io->offset);
    free(zeros);
    return 0;
}

static i64
next_io(RtSimProcess *process, const RtIo *io, bool is_write)
{
    SimFd *fd = fd_of(process->host->disk, io->fd);
    RtIo at = *io;
    at.offset = fd->position;
    bool appends = (fd->flags & RT_FILE_APPEND) != 0;
    i64 result = is_write ? write_at(process, &at, appends) : read_at(process, io, fd->position);
    if (result > 0 && !(is_write && appends))
        fd_of(process->host->disk, io->fd)->position += (u64)result;
    return result;
}

static i64
file_call(RtSimProcess *process, const RtIo *io)
{
    SimDisk *disk = process->host->disk;
    switch (io->op) {
    case RT_IO_CLOSE: fd_close(disk, io->fd); return 0;
    case RT_IO_READ: return read_at(process, io, io->offset);
    case RT_IO_WRITE: return write_at(process, io, false);
    case RT_IO_READ_NEXT: return next_io(process, io, false);
    case RT_IO_WRITE_NEXT: return next_io(process, io, true);
    case RT_IO_SYNC: return sync_file(process, io);
    case RT_IO_DIR_SYNC: return sync_dir(process, io);
    case RT_IO_STAT_FD: return stat_put(fd_of(disk, io->fd)->inode, io->stat);
    case RT_IO_ALLOCATE: return allocate(process, io);
    case RT_IO_TRUNCATE: rt__inode_resize(disk, fd_of(disk, io->fd)->inode, io->count); return 0;
    case RT_IO_PUNCH: return punch(process, io);
    case RT_IO_LIST: return list_dir(fd_of(disk, io->fd)->inode, io->names);
    case RT_IO_LOCK: return lock_file(process, io);
    case RT_IO_UNLOCK: owner_remove(fd_of(disk, io->fd)->inode, io->fd); return 0;
    case RT_IO_LOCK_OWNER: return lock_owner(process, io);
    default: UNREACHABLE();
    }
}

static i64
name_call(RtSimProcess *process, const RtIo *io)
{
    SimDisk *disk = process->host->disk;
    switch (io->op) {
    case RT_IO_OPEN: return open_file(process, io);
    case RT_IO_OPEN_DIR: return open_dir(process, io);
    case RT_IO_OPEN_TEMP:
        return fd_new(process, rt__inode_new(disk, false), RT_FILE_READ | RT_FILE_WRITE);
    case RT_IO_STAT: return stat_put(rt__disk_find(disk, start_of(disk, io), io->name), io->stat);
    case RT_IO_RENAME: return rename_entry(disk, io);
    case RT_IO_UNLINK: return unlink_entry(disk, io, false);
    case RT_IO_MAKE_DIR: return make_dir(process, io);
    case RT_IO_REMOVE_DIR: return unlink_entry(disk, io, true);
    case RT_IO_REAL_PATH: return real_path(io);
    default: return file_call(process, io);
    }
}

void
rt__disk_io(RtSimProcess *process, RtIo *io)
{
    bool may_be_interrupted = io->op != RT_IO_CLOSE && io->op != RT_IO_UNLOCK;
    if (may_be_interrupted && rt__world_draw(SIM_DISK, 8) == 0 &&
        rt__world_fault(process->host, RT_SIM_SHORT)) {
        io->result = -EINTR;
        return;
    }
    io->result = name_call(process, io);
}
