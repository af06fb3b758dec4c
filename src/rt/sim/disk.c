/*
 * disk.c -- contents of the simulated disk, and what a power cut leaves of them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rt/sim/disk_impl.h"

void
rt__content_resize(SimContent *content, u64 size)
{
    if (size > content->capacity) {
        u64 capacity = MAX_OF(size, content->capacity * 2 + 4096);
        content->bytes = realloc(content->bytes, capacity);
        if (content->bytes == NULL) abort();
        content->capacity = capacity;
    }
    if (size > content->size) memset(content->bytes + content->size, 0, size - content->size);
    content->size = size;
}

void
rt__content_put(SimContent *content, u64 offset, const void *bytes, u64 count)
{
    if (count == 0) return;
    if (offset + count > content->size) rt__content_resize(content, offset + count);
    memcpy(content->bytes + offset, bytes, count);
}

static void
content_copy(SimContent *to, const SimContent *from)
{
    rt__content_resize(to, 0);
    rt__content_put(to, 0, from->bytes, from->size);
}

SimInode *
rt__inode_new(SimDisk *disk, bool is_dir)
{
    SimInode *inode = rt__world_alloc(sizeof(*inode));
    inode->number = ++disk->inode_count;
    inode->is_dir = is_dir;
    inode->changes_tail = &inode->changes;
    inode->moves_tail = &inode->moves;
    inode->next = disk->inodes;
    disk->inodes = inode;
    return inode;
}

static void
change_add(SimDisk *disk, SimInode *inode, u64 offset, const void *bytes, u64 count)
{
    SimChange *change = rt__world_alloc(sizeof(*change) + count);
    change->number = ++disk->change_number;
    change->offset = offset;
    change->count = count;
    change->size = inode->now.size;
    if (count > 0) memcpy(change->bytes, bytes, count);
    *inode->changes_tail = change;
    inode->changes_tail = &change->next;
    inode->modified_ns = (i64)rt__world->clock_ns;
}

void
rt__inode_write(SimDisk *disk, SimInode *inode, u64 offset, const void *bytes, u64 count)
{
    if (count == 0) return;
    rt__content_put(&inode->now, offset, bytes, count);
    change_add(disk, inode, offset, bytes, count);
}

void
rt__inode_resize(SimDisk *disk, SimInode *inode, u64 size)
{
    rt__content_resize(&inode->now, size);
    if (inode->allocated > size) inode->allocated = size;
    change_add(disk, inode, 0, NULL, 0);
}

static SimChange *
change_take(SimInode *inode)
{
    SimChange *change = inode->changes;
    inode->changes = change->next;
    if (inode->changes == NULL) inode->changes_tail = &inode->changes;
    return change;
}

/* Write the sectors of a change that `keeps` says, and take over its size. */
typedef bool (*SectorKeeps)(void *arg, u64 sector);

static void
change_apply(SimContent *content, const SimChange *change, SectorKeeps keeps, void *arg)
{
    u64 at = change->offset, end = change->offset + change->count;
    while (at < end) {
        u64 sector = at / SECTOR_BYTES;
        u64 until = MIN_OF(end, (sector + 1) * SECTOR_BYTES);
        if (keeps == NULL || keeps(arg, sector))
            rt__content_put(content, at, change->bytes + (at - change->offset), until - at);
        at = until;
    }
}

static bool
keeps_half(void *arg, u64 sector)
{
    (void)arg, (void)sector;
    return rt__world_draw(SIM_DISK, 2) == 0;
}

void
rt__inode_sync(SimDisk *disk, SimInode *inode, u64 number, bool is_failing)
{
    while (inode->changes != NULL && inode->changes->number <= number) {
        SimChange *change = change_take(inode);
        change_apply(&inode->durable, change, is_failing ? keeps_half : NULL, NULL);
        if (!is_failing || inode->durable.size > change->size)
            rt__content_resize(&inode->durable, change->size);
        free(change);
    }
    /* What was lost is clean now: nobody will write it again.  Some systems still show it. */
    if (is_failing && disk->reads_old && inode->changes == NULL)
        content_copy(&inode->now, &inode->durable);
}

/* How many changes of each sector survive: none, all, or the first few. */
typedef struct Survival {
    u32 *total, *left; /* By sector. */
    u64 sectors;
} Survival;

static bool
keeps_first(void *arg, u64 sector)
{
    Survival *survival = arg;
    if (survival->left[sector] == 0) return false;
    survival->left[sector]--;
    return true;
}

static void
survival_draw(Survival *survival, const SimInode *inode)
{
    survival->sectors = 1;
    for (const SimChange *at = inode->changes; at != NULL; at = at->next) {
        u64 last = (at->offset + at->count + SECTOR_BYTES - 1) / SECTOR_BYTES;
        survival->sectors = MAX_OF(survival->sectors, last + 1);
    }
    survival->total = rt__world_alloc(survival->sectors * sizeof(u32));
    survival->left = rt__world_alloc(survival->sectors * sizeof(u32));
    for (const SimChange *at = inode->changes; at != NULL; at = at->next) {
        if (at->count == 0) continue;
        u64 last = (at->offset + at->count - 1) / SECTOR_BYTES;
        for (u64 sector = at->offset / SECTOR_BYTES; sector <= last; sector++)
            survival->total[sector]++;
    }
    u64 mood = rt__world_draw(SIM_CRASH, 4);
    for (u64 i = 0; i < survival->sectors; i++) {
        u32 total = survival->total[i];
        if (total == 0 || mood == 0) continue; /* All lost. */
        survival->left[i] = mood == 1 ? total : (u32)rt__world_draw(SIM_CRASH, total + 1);
    }
}

/* The size is old, new, or between. */
static u64
size_draw(const SimInode *inode)
{
    u64 sizes = 1;
    for (const SimChange *at = inode->changes; at != NULL; at = at->next)
        sizes++;
    u64 nth = rt__world_draw(SIM_CRASH, sizes), size = inode->durable.size, before = size;
    for (const SimChange *at = inode->changes; at != NULL && nth > 0; at = at->next, nth--) {
        before = size;
        size = at->size;
    }
    if (size > before && rt__world_draw(SIM_CRASH, 3) == 0) {
        u64 between = before + rt__world_draw(SIM_CRASH, size - before);
        size = between / SECTOR_BYTES * SECTOR_BYTES;
        if (size < before) size = before;
    }
    return size;
}

/* New area that was never written reads as zeros, rarely as old garbage. */
static void
garbage_put(SimInode *inode, u64 from, const Survival *survival)
{
    if (rt__world_draw(SIM_CRASH, 20) != 0) return;
    for (u64 sector = (from + SECTOR_BYTES - 1) / SECTOR_BYTES;
         (sector + 1) * SECTOR_BYTES <= inode->durable.size; sector++) {
        bool was_written = sector < survival->sectors && survival->total[sector] > 0;
        if (was_written || rt__world_draw(SIM_CRASH, 2) == 0) continue;
        for (u32 i = 0; i < SECTOR_BYTES; i++)
            inode->durable.bytes[sector * SECTOR_BYTES + i] = (u8)rt__world_draw(SIM_CRASH, 256);
    }
}

static void
file_power_cut(SimInode *inode)
{
    if (inode->changes != NULL) {
        Survival survival;
        u64 size = size_draw(inode), old_size = inode->durable.size;
        survival_draw(&survival, inode);
        while (inode->changes != NULL) {
            SimChange *change = change_take(inode);
            change_apply(&inode->durable, change, keeps_first, &survival);
            free(change);
        }
        rt__content_resize(&inode->durable, size);
        if (size > old_size) garbage_put(inode, old_size, &survival);
        free(survival.total);
        free(survival.left);
    }
    content_copy(&inode->now, &inode->durable);
    inode->allocated = MIN_OF(inode->allocated, inode->now.size);
    rt__world_note("survives", inode->number,
                   hash_bytes(inode->now.bytes, inode->now.size, inode->now.size));
}

static u32
entries_place(const SimEntries *entries, const char *name)
{
    u32 at = 0;
    while (at < entries->count && strcmp(entries->list[at].name, name) < 0)
        at++;
    return at;
}

SimInode *
rt__entries_find(const SimEntries *entries, const char *name)
{
    u32 at = entries_place(entries, name);
    bool is_there = at < entries->count && strcmp(entries->list[at].name, name) == 0;
    return is_there ? entries->list[at].inode : NULL;
}

void
rt__entries_put(SimEntries *entries, const char *name, SimInode *inode)
{
    u32 at = entries_place(entries, name);
    if (at < entries->count && strcmp(entries->list[at].name, name) == 0) {
        entries->list[at].inode = inode;
        return;
    }
    if (entries->count == entries->capacity) {
        entries->capacity = entries->capacity * 2 + 8;
        entries->list = realloc(entries->list, entries->capacity * sizeof(SimEntry));
        if (entries->list == NULL) abort();
    }
    memmove(entries->list + at + 1, entries->list + at, (entries->count - at) * sizeof(SimEntry));
    entries->count++;
    snprintf(entries->list[at].name, NAME_BYTES, "%s", name);
    entries->list[at].inode = inode;
}

void
rt__entries_remove(SimEntries *entries, const char *name)
{
    u32 at = entries_place(entries, name);
    if (at == entries->count || strcmp(entries->list[at].name, name) != 0) return;
    entries->count--;
    memmove(entries->list + at, entries->list + at + 1, (entries->count - at) * sizeof(SimEntry));
}

static void
move_apply(SimEntries *entries, const SimMove *move)
{
    if (move->from[0] != 0) rt__entries_remove(entries, move->from);
    if (move->to[0] != 0) rt__entries_put(entries, move->to, move->inode);
}

void
rt__dir_move(SimDisk *disk, SimInode *dir, const char *from, const char *to, SimInode *inode)
{
    SimMove *move = rt__world_alloc(sizeof(*move));
    move->number = ++disk->change_number;
    snprintf(move->from, NAME_BYTES, "%s", from);
    snprintf(move->to, NAME_BYTES, "%s", to);
    move->inode = inode;
    *dir->moves_tail = move;
    dir->moves_tail = &move->next;
    move_apply(&dir->entries, move);
}

static void
entries_copy(SimEntries *to, const SimEntries *from)
{
    to->count = 0;
    for (u32 i = 0; i < from->count; i++)
        rt__entries_put(to, from->list[i].name, from->list[i].inode);
}

/* keep_per_4: how many of four changes are applied; the others are forgotten. */
static void
moves_apply(SimInode *dir, u64 number, u64 keep_per_4)
{
    while (dir->moves != NULL && dir->moves->number <= number) {
        SimMove *move = dir->moves;
        dir->moves = move->next;
        if (dir->moves == NULL) dir->moves_tail = &dir->moves;
        if (keep_per_4 == 4 || rt__world_draw(SIM_CRASH, 4) < keep_per_4)
            move_apply(&dir->durable_entries, move);
        free(move);
    }
}

void
rt__dir_sync(SimInode *dir, u64 number)
{
    moves_apply(dir, number, 4);
}

void
rt__disk_power_cut(SimDisk *disk)
{
    for (SimInode *inode = disk->inodes; inode != NULL; inode = inode->next) {
        if (inode->is_dir) {
            const u64 moods[] = {0, 2, 3, 4};
            moves_apply(inode, U64_MAX, moods[rt__world_draw(SIM_CRASH, 4)]);
            entries_copy(&inode->entries, &inode->durable_entries);
        } else
            file_power_cut(inode);
        while (inode->owners != NULL) {
            SimOwner *owner = inode->owners;
            inode->owners = owner->next;
            free(owner);
        }
    }
}

SimDisk *
rt__disk_new(void)
{
    SimDisk *disk = rt__world_alloc(sizeof(*disk));
    disk->root = rt__inode_new(disk, true);
    disk->reads_old = rt__world_draw(SIM_DISK, 2) == 0;
    disk->is_copy_on_write = rt__world_draw(SIM_DISK, 4) == 0;
    return disk;
}

static void
inode_free(SimInode *inode)
{
    while (inode->changes != NULL)
        free(change_take(inode));
    moves_apply(inode, U64_MAX, 4);
    while (inode->owners != NULL) {
        SimOwner *owner = inode->owners;
        inode->owners = owner->next;
        free(owner);
    }
    free(inode->now.bytes);
    free(inode->durable.bytes);
    free(inode->entries.list);
    free(inode->durable_entries.list);
    free(inode);
}

void
rt__disk_free(SimDisk *disk)
{
    while (disk->inodes != NULL) {
        SimInode *inode = disk->inodes;
        disk->inodes = inode->next;
        inode_free(inode);
    }
    free(disk->fds);
    free(disk);
}

static void
dir_copy(SimDisk *disk, SimInode *to, const SimInode *from)
{
    for (u32 i = 0; i < from->entries.count; i++) {
        const SimEntry *entry = &from->entries.list[i];
        SimInode *inode = rt__inode_new(disk, entry->inode->is_dir);
        content_copy(&inode->now, &entry->inode->now);
        content_copy(&inode->durable, &entry->inode->now);
        rt__entries_put(&to->entries, entry->name, inode);
        rt__entries_put(&to->durable_entries, entry->name, inode);
        if (inode->is_dir) dir_copy(disk, inode, entry->inode);
    }
}

SimDisk *
rt__disk_copy(const SimDisk *from)
{
    SimDisk *disk = rt__disk_new();
    dir_copy(disk, disk->root, from->root);
    return disk;
}

SimInode *
rt__disk_walk(SimDisk *disk, SimInode *at, const char *path, char last[NAME_BYTES])
{
    if (path[0] == '/') at = disk->root;
    for (;;) {
        while (*path == '/')
            path++;
        size_t bytes = strcspn(path, "/");
        if (bytes >= NAME_BYTES) return NULL;
        memcpy(last, path, bytes);
        last[bytes] = 0;
        path += bytes;
        while (*path == '/')
            path++;
        if (*path == 0) return at;
        if (strcmp(last, ".") == 0) continue;
        at = rt__entries_find(&at->entries, last);
        if (at == NULL || !at->is_dir) return NULL;
    }
}

SimInode *
rt__disk_find(SimDisk *disk, SimInode *at, const char *path)
{
    char last[NAME_BYTES];
    SimInode *dir = rt__disk_walk(disk, at, path, last);
    if (dir == NULL || last[0] == 0 || strcmp(last, ".") == 0) return dir;
    return rt__entries_find(&dir->entries, last);
}

bool
rt_sim_disk_get(RtSimHost *host, const char *path, u8 **bytes_out, u64 *size_out)
{
    SimInode *inode = rt__disk_find(host->disk, host->disk->root, path);
    *bytes_out = NULL;
    *size_out = 0;
    if (inode == NULL || inode->is_dir) return false;
    *size_out = inode->now.size;
    *bytes_out = mem_alloc(inode->now.size + 1);
    if (*bytes_out == NULL) return false;
    if (inode->now.size > 0) memcpy(*bytes_out, inode->now.bytes, inode->now.size);
    return true;
}

void
rt_sim_disk_put(RtSimHost *host, const char *path, const void *bytes, u64 size)
{
    SimDisk *disk = host->disk;
    char last[NAME_BYTES];
    SimInode *dir = rt__disk_walk(disk, disk->root, path, last);
    ASSERT(dir != NULL && last[0] != 0);
    SimInode *inode = rt__entries_find(&dir->entries, last);
    if (inode == NULL) inode = rt__inode_new(disk, false);
    rt__entries_put(&dir->entries, last, inode);
    rt__entries_put(&dir->durable_entries, last, inode);
    rt__inode_sync(disk, inode, U64_MAX, false);
    rt__content_resize(&inode->now, 0);
    rt__content_put(&inode->now, 0, bytes, size);
    content_copy(&inode->durable, &inode->now);
}

u64
rt_sim_disk_size(RtSimHost *host, const char *path)
{
    SimInode *inode = rt__disk_find(host->disk, host->disk->root, path);
    return inode == NULL ? 0 : inode->now.size;
}

bool
rt_sim_disk_flip(RtSimHost *host, const char *path, u64 bit)
{
    SimInode *inode = rt__disk_find(host->disk, host->disk->root, path);
    if (inode == NULL || bit / 8 >= inode->now.size) return false;
    inode->now.bytes[bit / 8] ^= (u8)(1u << (bit % 8));
    if (bit / 8 < inode->durable.size) inode->durable.bytes[bit / 8] ^= (u8)(1u << (bit % 8));
    return true;
}
