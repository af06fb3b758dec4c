/*
 * file.h -- directories and files.
 *
 * On a plain thread the calls block; on a fiber they run on io_uring or the worker pool while the
 * fiber is parked; in the simulator on the simulated disk.  File I/O ignores deadlines and
 * cancellation.  Short transfers, EINTR and EAGAIN are handled here and nowhere else.
 *
 * Every call that can fail takes an `ErrMsg *msg` last, NULL allowed: it gets the operation, the
 * name and the system's error text.  Mapping: ENOENT ERR_NOTFOUND; EEXIST ERR_EXISTS;
 * EACCES, EPERM ERR_PERM; EROFS ERR_READONLY; EMFILE, ENFILE ERR_LIMIT; ENOMEM ERR_NOMEM; ENOSPC,
 * EDQUOT, EFBIG ERR_FULL; otherwise by operation ERR_CANTOPEN, ERR_IO_READ, ERR_IO_WRITE,
 * ERR_IO_SYNC (a failed sync is ERR_IO_SYNC whatever the cause) or ERR_IO.  After fork() in the
 * child: ERR_FOREIGN.
 *
 * Ownership: a handle belongs to the caller and ends with its close, which takes NULL.  Any task
 * may use a handle; closing needs exclusive use.
 */
#pragma once

#include "rt/process.h"

typedef struct RtDir RtDir;
typedef struct RtFile RtFile;

/* Identity of a file on this machine: equal for two names of one file. */
typedef struct RtFileId {
    u64 device, inode;
} RtFileId;

typedef struct RtStat {
    u64 size_bytes;
    i64 modified_ns; /* Wall clock. */
    RtFileId id;
    u32 mode; /* Permission bits. */
    bool is_dir, is_file;
} RtStat;

/* ---- directories [all park] ---- */
MUST_CHECK Err rt_dir_open(const char *path, RtDir **dir_out, ErrMsg *msg);
/* mkdir; ERR_EXISTS when there is one. */
MUST_CHECK Err rt_dir_create(const char *path, ErrMsg *msg);
MUST_CHECK Err rt_dir_remove(const char *path, ErrMsg *msg); /* Empty ones only. */
void rt_dir_close(RtDir *dir);
/* From now on no file is opened through a link in it, nor outside of it: ERR_PERM. */
void rt_dir_confine(RtDir *dir);
const char *rt_dir_path(const RtDir *dir);
/* Makes creations, renames and unlinks in it durable. */
MUST_CHECK Err rt_dir_sync(RtDir *dir, ErrMsg *msg);
/* Call `each` for every name but . and .., sorted by bytes; stops at the first error of each. */
typedef Err (*RtDirEach)(void *arg, const char *name);
MUST_CHECK Err rt_dir_list(RtDir *dir, RtDirEach each, void *arg, ErrMsg *msg);

/* ---- names; `dir` NULL: the path is relative to the working directory [all park] ---- */
MUST_CHECK Err rt_file_stat(RtDir *dir, const char *name, RtStat *stat_out, ErrMsg *msg);
MUST_CHECK Err rt_file_rename(RtDir *dir, const char *from, const char *to, ErrMsg *msg);
MUST_CHECK Err rt_file_unlink(RtDir *dir, const char *name, ErrMsg *msg);
/* Absolute path without links; the last component need not exist.  *path_out: mem_free(). */
MUST_CHECK Err rt_path_real(const char *path, char **path_out, ErrMsg *msg);

/* ---- files [all park] ---- */
#define RT_FILE_READ      1u
#define RT_FILE_WRITE     2u
#define RT_FILE_CREATE    4u   /* Create if missing (mode 0644 less umask). */
#define RT_FILE_EXCLUSIVE 8u   /* With CREATE: ERR_EXISTS if there. */
#define RT_FILE_TRUNCATE  16u  /* Drop the contents. */
#define RT_FILE_DIRECT    32u  /* O_DIRECT if the file system has it, else silently not. */
#define RT_FILE_APPEND    64u  /* For logs of text: writes go to the end. */
#define RT_FILE_PRIVATE   128u /* CREATE with mode 0600. */
#define RT_FILE_BENEATH   256u /* As in a directory that is confined; `name` is a plain one. */
MUST_CHECK Err rt_file_open(RtDir *dir, const char *name, u32 flags, RtFile **file_out,
                            ErrMsg *msg);
/* A nameless read-write file in `dir` that vanishes at close; NULL: the system's place for
   temporary files ($TMPDIR, /var/tmp, /tmp). */
MUST_CHECK Err rt_file_open_temp(RtDir *dir, RtFile **file_out, ErrMsg *msg);
/* Close without sync.  Releases the owner lock if this handle has it. */
void rt_file_close(RtFile *file);
const char *rt_file_name(const RtFile *file); /* As opened; for messages. */

typedef struct RtIoVec {
    void *bytes;
    size_t count;
} RtIoVec;
#define RT_IOVEC_MAX 64

/* All `count` bytes or an error; ERR_IO_SHORT_READ when the file ends before. */
MUST_CHECK Err rt_file_read_exact(RtFile *file, u64 offset, void *bytes, size_t count, ErrMsg *msg);
/* Up to `count` bytes; fewer only at the end of the file. */
MUST_CHECK Err rt_file_read(RtFile *file, u64 offset, void *bytes, size_t count, size_t *got_out,
                            ErrMsg *msg);
/* All bytes or an error (then any part may have been written). */
MUST_CHECK Err rt_file_write(RtFile *file, u64 offset, const void *bytes, size_t count,
                             ErrMsg *msg);
/* The vectored forms, exact, one system call where possible; vec_count <= RT_IOVEC_MAX. */
MUST_CHECK Err rt_file_readv(RtFile *file, u64 offset, const RtIoVec *vecs, u32 vec_count,
                             ErrMsg *msg);
MUST_CHECK Err rt_file_writev(RtFile *file, u64 offset, const RtIoVec *vecs, u32 vec_count,
                              ErrMsg *msg);
/* Add at the end (RT_FILE_APPEND handles). */
MUST_CHECK Err rt_file_append(RtFile *file, const void *bytes, size_t count, ErrMsg *msg);
/* From the current position, for pipes and scripts: 0 bytes got means the end. */
MUST_CHECK Err rt_file_read_next(RtFile *file, void *bytes, size_t count, size_t *got_out,
                                 ErrMsg *msg);

/* fdatasync: every write completed before the call, and the size, are durable after OK.  Not the
   directory entry: rt_dir_sync().  After an error never try again: reread or stop. */
MUST_CHECK Err rt_file_sync(RtFile *file, ErrMsg *msg);
MUST_CHECK Err rt_file_size(RtFile *file, u64 *size_out, ErrMsg *msg);
MUST_CHECK Err rt_file_id(RtFile *file, RtFileId *id_out, ErrMsg *msg);
/* Reserve space so that later writes inside cannot meet ENOSPC (except on copy-on-write file
   systems); the file grows to offset + count if shorter; new bytes read as zeros. */
MUST_CHECK Err rt_file_preallocate(RtFile *file, u64 offset, u64 count, ErrMsg *msg);
MUST_CHECK Err rt_file_truncate(RtFile *file, u64 size_bytes, ErrMsg *msg); /* Or extend. */
/* Give the space of a range back without changing the size; ERR_UNSUPPORTED where impossible. */
MUST_CHECK Err rt_file_punch(RtFile *file, u64 offset, u64 count, ErrMsg *msg);

/* ---- owner lock ---- */
typedef struct RtOwner {
    i64 pid;          /* 0: unknown. */
    bool is_self;     /* Our own pid: another copy of the engine, or another handle. */
    bool is_alive;    /* A process of that pid exists. */
    char program[64]; /* Its name, "" if unknown. */
} RtOwner;
/*
 * Take the exclusive owner lock of the file (open file description lock at the end of the offset
 * range, so it never collides with data).  ERR_OWNED: another description has it, and *owner_out
 * (may be NULL) tells who. A lock whose owner is dead (the kernel still finishes its I/O) is
 * retried for 2 s.  Shared owners (read-only opens) exclude exclusive ones only.
 */
MUST_CHECK Err rt_file_own(RtFile *file, bool exclusive, RtOwner *owner_out, ErrMsg *msg);
void rt_file_disown(RtFile *file);
/* Who owns it now; pid 0 and is_alive false when nobody. */
MUST_CHECK Err rt_file_owner(RtFile *file, RtOwner *owner_out, ErrMsg *msg);
