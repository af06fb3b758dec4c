/*
 * fault.c -- the armed fault, and errno as text and as Err.
 */
#include "rt/fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "rt/io.h"

static _Atomic u32 armed; /* 0 nothing, 1 once, 2 onwards */
static _Atomic u32 kinds_only;
static _Atomic u64 calls, fire_at;
static _Atomic int fire_error;
static _Atomic bool fired;

static void
arm(u64 nth, int error, u32 how)
{
    atomic_store(&armed, 0);
    atomic_store(&calls, 0);
    atomic_store(&fired, false);
    atomic_store(&fire_at, nth);
    atomic_store(&fire_error, error);
    if (nth == 0)
        atomic_store(&kinds_only, 0);
    else
        atomic_store(&armed, how);
}

void
rt_fault_arm(u64 nth, int error)
{
    arm(nth, error, 1);
}

void
rt_fault_arm_onwards(u64 nth, int error)
{
    arm(nth, error, 2);
}

bool
rt_fault_fired(void)
{
    return atomic_load(&fired);
}

u64
rt_fault_calls(void)
{
    return atomic_load(&calls);
}

void
rt_fault_only(u32 kinds)
{
    atomic_store(&kinds_only, kinds);
}

static u32
kind_of(RtIoOp op)
{
    switch (op) {
    case RT_IO_OPEN:
    case RT_IO_OPEN_DIR:
    case RT_IO_OPEN_TEMP: return RT_FAULT_OPEN;
    case RT_IO_READ:
    case RT_IO_READ_NEXT: return RT_FAULT_READ;
    case RT_IO_WRITE:
    case RT_IO_WRITE_NEXT: return RT_FAULT_WRITE;
    case RT_IO_SYNC:
    case RT_IO_DIR_SYNC: return RT_FAULT_SYNC;
    case RT_IO_ALLOCATE:
    case RT_IO_TRUNCATE:
    case RT_IO_PUNCH: return RT_FAULT_SIZE;
    case RT_IO_STAT:
    case RT_IO_STAT_FD:
    case RT_IO_RENAME:
    case RT_IO_UNLINK:
    case RT_IO_MAKE_DIR:
    case RT_IO_REMOVE_DIR:
    case RT_IO_LIST:
    case RT_IO_REAL_PATH: return RT_FAULT_NAME;
    case RT_IO_LOCK:
    case RT_IO_LOCK_OWNER: return RT_FAULT_LOCK;
    case RT_IO_RESOLVE:
    case RT_IO_LISTEN:
    case RT_IO_ACCEPT:
    case RT_IO_CONNECT:
    case RT_IO_CONNECT_RESULT:
    case RT_IO_RECV:
    case RT_IO_SEND: return RT_FAULT_SOCKET;
    default: return 0; /* Close, unlock, shutdown and looks cannot fail. */
    }
}

bool
rt__fault_is_armed(void)
{
    return atomic_load_explicit(&armed, memory_order_relaxed) != 0;
}

int
rt__fault_next(RtIoOp op)
{
    u32 how = atomic_load_explicit(&armed, memory_order_relaxed);
    if (LIKELY(how == 0)) return 0;
    u32 kind = kind_of(op);
    u32 only = atomic_load(&kinds_only);
    if (kind == 0 || (only != 0 && !(kind & only))) return 0;
    u64 number = atomic_fetch_add(&calls, 1) + 1;
    u64 at = atomic_load(&fire_at);
    if (number < at || (number > at && how == 1)) return 0;
    atomic_store(&fired, true);
    return atomic_load(&fire_error);
}

const char *
rt__errno_text(int error)
{
#if defined(__GLIBC__)
    const char *text = strerrordesc_np(error); /* Not translated. */
    return text != NULL ? text : "unknown error";
#else
    return strerror(error);
#endif
}

Err
rt__errno_err(int error, Err otherwise)
{
    switch (error) {
    case 0: return OK;
    case ENOENT:
    case ENOTDIR: return ERR_NOTFOUND;
    case EEXIST:
    case EADDRINUSE:
    case ENOTEMPTY: return ERR_EXISTS;
    case EACCES:
    case EPERM: return ERR_PERM;
    case EROFS: return ERR_READONLY;
    case EMFILE:
    case ENFILE:
    case ENOBUFS: return ERR_LIMIT;
    case ENOMEM: return ERR_NOMEM;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return ERR_FULL;
    case EPIPE:
    case ECONNRESET:
    case ECONNABORTED:
    case ECONNREFUSED:
    case ENOTCONN:
    case ESHUTDOWN: return ERR_CLOSED;
    case ETIMEDOUT:
    case EAGAIN: return ERR_TIMEOUT;
    case EOPNOTSUPP:
    case ENOSYS: return ERR_UNSUPPORTED;
    default: return otherwise;
    }
}
