/*
 * disk_impl.h -- private: the simulated disk.
 *
 * Each file has two contents: `now`, which reads see, and `durable`, which a power cut leaves for
 * sure; between them lies the list of changes in the order they completed.  A sync applies changes
 * to `durable`; a power cut applies some.  Directories work the same with entries.
 */
#pragma once

#include "rt/sim/sim_impl.h"

#define SECTOR_BYTES 512
#define NAME_BYTES   256

typedef struct SimChange {
    struct SimChange *next;
    u64 number; /* Of completion, over the whole disk. */
    u64 offset, count;
    u64 size;   /* Of the file afterwards. */
    u8 bytes[]; /* `count`; none for a change of size only. */
} SimChange;

typedef struct SimContent {
    u8 *bytes;
    u64 size, capacity;
} SimContent;

typedef struct SimInode SimInode;

typedef struct SimEntry {
    char name[NAME_BYTES];
    SimInode *inode;
} SimEntry;

typedef struct SimEntries {
    SimEntry *list; /* Sorted by name. */
    u32 count, capacity;
} SimEntries;

/* One change of a directory: `from` goes (unless empty), `to` comes (unless empty). */
typedef struct SimMove {
    struct SimMove *next;
    u64 number;
    char from[NAME_BYTES], to[NAME_BYTES];
    SimInode *inode;
} SimMove;

typedef struct SimOwner {
    struct SimOwner *next;
    i64 pid;
    int fd; /* -1: its process is dead and the kernel not done with it. */
    bool exclusive;
    u64 until_ns; /* When fd is -1. */
} SimOwner;

struct SimInode {
    SimInode *next; /* All of the disk. */
    u64 number;
    bool is_dir;
    i64 modified_ns;
    SimContent now, durable;
    SimChange *changes, **changes_tail;
    u64 allocated; /* Space up to here is reserved. */
    SimEntries entries, durable_entries;
    SimMove *moves, **moves_tail;
    SimOwner *owners;
};

typedef struct SimFd {
    RtSimProcess *process; /* NULL: free. */
    SimInode *inode;
    u32 flags;
    u64 position;
} SimFd;

struct SimDisk {
    SimInode *inodes, *root;
    u64 inode_count, change_number;
    SimFd *fds;
    u32 fd_count;
    bool reads_old;        /* After a failed sync (btrfs); else new (ext4, xfs). */
    bool is_copy_on_write; /* ENOSPC also inside reserved space. */
};

void rt__content_resize(SimContent *content, u64 size); /* New bytes are zero. */
void rt__content_put(SimContent *content, u64 offset, const void *bytes, u64 count);
SimInode *rt__inode_new(SimDisk *disk, bool is_dir);
/* Change `now`, and remember. */
void rt__inode_write(SimDisk *disk, SimInode *inode, u64 offset, const void *bytes, u64 count);
void rt__inode_resize(SimDisk *disk, SimInode *inode, u64 size);
/* Changes up to `number` become durable, or, if the sync failed, some of them. */
void rt__inode_sync(SimDisk *disk, SimInode *inode, u64 number, bool is_failing);

SimInode *rt__entries_find(const SimEntries *entries, const char *name);
void rt__entries_put(SimEntries *entries, const char *name, SimInode *inode);
void rt__entries_remove(SimEntries *entries, const char *name);
/* Change the directory, and remember. */
void rt__dir_move(SimDisk *disk, SimInode *dir, const char *from, const char *to, SimInode *inode);
void rt__dir_sync(SimInode *dir, u64 number);

/* Directory and last name of a path that starts at `at`; NULL: no such directory. */
SimInode *rt__disk_walk(SimDisk *disk, SimInode *at, const char *path, char last[NAME_BYTES]);
/* The inode of a path, or NULL. */
SimInode *rt__disk_find(SimDisk *disk, SimInode *at, const char *path);
