/*
 * io.h -- private: one request to the world outside, and the table of a backend.
 *
 * Every file and socket call becomes an RtIo and goes through rt__io(): there faults are injected,
 * and there a fiber hands file requests to the ring or the pool.  A backend is the function that
 * carries a request out (linux/, sim/), so adding a call means a new RtIoOp and a case in each.
 */
#pragma once

#include <sys/uio.h>

#include "rt/file.h"
#include "rt/lock.h"

typedef enum RtIoOp {
    RT_IO_OPEN, /* fd = directory or -1, name, flags (RT_FILE_*); result: descriptor */
    RT_IO_OPEN_DIR,
    RT_IO_OPEN_TEMP,
    RT_IO_CLOSE,
    RT_IO_READ, /* vecs at offset; result: bytes */
    RT_IO_WRITE,
    RT_IO_READ_NEXT, /* At the current position. */
    RT_IO_WRITE_NEXT,
    RT_IO_SYNC,
    RT_IO_DIR_SYNC,
    RT_IO_STAT,     /* fd = directory or -1, name, stat */
    RT_IO_STAT_FD,  /* fd, stat */
    RT_IO_ALLOCATE, /* offset, count */
    RT_IO_TRUNCATE, /* count = new size */
    RT_IO_PUNCH,    /* offset, count */
    RT_IO_RENAME,   /* fd, name, name2 */
    RT_IO_UNLINK,
    RT_IO_MAKE_DIR,
    RT_IO_REMOVE_DIR,
    RT_IO_LIST,      /* fd, names */
    RT_IO_REAL_PATH, /* name; names gets one entry */
    RT_IO_LOCK,      /* fd, flags: 1 exclusive */
    RT_IO_UNLOCK,
    RT_IO_LOCK_OWNER, /* result: pid; 0 nobody, or not yet recorded */

    RT_IO_RESOLVE, /* name; address */
    RT_IO_LISTEN,  /* address, flags = mode */
    RT_IO_ACCEPT,  /* fd; result: descriptor; address = peer */
    RT_IO_CONNECT, /* address; result: descriptor, connecting */
    RT_IO_CONNECT_RESULT,
    RT_IO_RECV, /* fd, vecs[0] */
    RT_IO_SEND,
    RT_IO_SHUTDOWN, /* flags: 1 write only */
    RT_IO_PEER,     /* result: RtPeer */
    RT_IO_CLOSE_SOCKET,
    RT_IO_READY, /* flags: RT_SOCKET_*; result: those that are possible now */
    RT_IO_COUNT_
} RtIoOp;

#define RT_ADDRESS_BYTES 128
/* A socket address: sockaddr bytes on Linux, the text in the simulator. */
typedef struct RtAddress {
    alignas(8) u8 bytes[RT_ADDRESS_BYTES];
    u32 count;
    bool is_unix;
    char text[RT_ADDRESS_BYTES];
} RtAddress;

typedef struct RtNames {
    Buf bytes; /* NUL-terminated names, one after the other. */
    u32 count;
} RtNames;

/* What a socket may hold of ours that its peer has not read. */
#define RT_SEND_BUFFER_BYTES (256 << 10)

typedef struct RtIo {
    RtIoOp op;
    int fd;
    u32 flags;
    int vec_count;
    const struct iovec *vecs;
    u64 offset, count;
    const char *name, *name2;
    RtStat *stat;
    RtNames *names;
    RtAddress *address;
    i64 result;    /* >= 0, or -errno. */
    int injected;  /* An armed fault: the backend answers with this errno and does nothing. */
    bool may_park; /* RECV, SEND: the caller is at a point where it may be parked. */

    /* For the ring and the pool. */
    struct RtIo *next;
    RtEvent done; /* The fiber that asked waits for it. */
} RtIo;

/* As a result: not carried out yet. */
#define RT_IO_UNDONE ((i64)1 << 62)

/* A backend.  Each function belongs to a process; `process` is the caller's. */
typedef struct RtSys {
    const char *name;
    void (*io)(RtProcess *process, RtIo *io); /* Sets io->result. */
    u64 (*now_ns)(RtProcess *process);
    i64 (*wall_ns)(RtProcess *process);
    void (*random)(RtProcess *process, void *bytes, size_t count);
} RtSys;

extern const RtSys rt__linux_sys;

/* Carry out a request on behalf of the current task; sets and returns io->result.  [parks] */
i64 rt__io(RtProcess *process, RtIo *io);
/* The fault decision for one request: 0 go on, an errno, or RT_FAULT_SHORT. */
int rt__fault_next(RtIoOp op);
/* A test wants to decide about coming requests. */
bool rt__fault_is_armed(void);
/* The system's text for an errno, independent of locale. */
const char *rt__errno_text(int error);
/* errno -> Err by the table of file.h; `otherwise` for all the rest. */
Err rt__errno_err(int error, Err otherwise);

/* The descriptor of a file. */
int rt__file_fd(const RtFile *file);
/* Fill in what the system knows of a process. */
void rt__owner_describe(RtProcess *process, i64 pid, RtOwner *owner_out);

/* linux/: the two halves of rt__linux_sys.io; results as RtIo.result. */
i64 rt__linux_file_io(const RtIo *io);
i64 rt__linux_socket_io(const RtIo *io);
