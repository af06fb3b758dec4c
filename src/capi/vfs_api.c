/*
 * vfs_api.c -- the one sqlite3_vfs, which gives names, time and chance but opens no files.
 *
 * Files are the store's; programs that look for a VFS to ask it for the time or a full name find
 * one called "unix".  Another cannot be registered: a connection would never use it.
 */
#include "capi/capi.h"
#include "rt/file.h"
#include "rt/host.h"
#include "rt/random.h"
#include "rt/time.h"

#define MS_FROM_JULIAN_EPOCH 210866760000000ll /* Of 1970-01-01. */
#define PATH_BYTES_MAX       512

static int
vfs_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *flags_out)
{
    (void)vfs;
    (void)name;
    (void)flags;
    if (file != NULL) file->pMethods = NULL;
    if (flags_out != NULL) *flags_out = 0;
    return SQLITE_CANTOPEN;
}

static int
vfs_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
    (void)vfs;
    (void)name;
    (void)sync_dir;
    return SQLITE_IOERR_DELETE;
}

static int
vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *result_out)
{
    (void)vfs;
    (void)name;
    (void)flags;
    *result_out = 0;
    return SQLITE_IOERR_ACCESS;
}

static int
vfs_full_name(sqlite3_vfs *vfs, const char *name, int room, char *out)
{
    (void)vfs;
    const char *here = name[0] == '/' ? NULL : rt_env("PWD");
    sqlite3_snprintf(room, out, "%s%s%s", here == NULL ? "" : here, here == NULL ? "" : "/", name);
    return SQLITE_OK;
}

static void *
vfs_dl_open(sqlite3_vfs *vfs, const char *name)
{
    (void)vfs;
    (void)name;
    return NULL;
}

static void
vfs_dl_error(sqlite3_vfs *vfs, int room, char *out)
{
    (void)vfs;
    sqlite3_snprintf(room, out, "loadable extensions are not supported");
}

static void (*vfs_dl_symbol(sqlite3_vfs *vfs, void *library, const char *name))(void)
{
    (void)vfs;
    (void)library;
    (void)name;
    return NULL;
}

static void
vfs_dl_close(sqlite3_vfs *vfs, void *library)
{
    (void)vfs;
    (void)library;
}

static int
vfs_randomness(sqlite3_vfs *vfs, int bytes, char *out)
{
    (void)vfs;
    if (bytes > 0) rt_random_bytes(out, (size_t)bytes);
    return bytes;
}

static int
vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
    (void)vfs;
    if (microseconds > 0) (void)sqlite3_sleep((microseconds + 999) / 1000);
    return microseconds;
}

static int
vfs_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    (void)vfs;
    *out = (sqlite3_int64)(rt_wall_ns() / 1000000) + MS_FROM_JULIAN_EPOCH;
    return SQLITE_OK;
}

static int
vfs_time(sqlite3_vfs *vfs, double *out)
{
    sqlite3_int64 ms;
    int code = vfs_time_ms(vfs, &ms);
    *out = (double)ms / 86400000.0;
    return code;
}

static int
vfs_last_error(sqlite3_vfs *vfs, int room, char *out)
{
    (void)vfs;
    if (room > 0) out[0] = 0;
    return 0;
}

static const sqlite3_vfs the_vfs = {
    .iVersion = 2,
    .szOsFile = (int)sizeof(sqlite3_file),
    .mxPathname = PATH_BYTES_MAX,
    .zName = "unix",
    .xOpen = vfs_open,
    .xDelete = vfs_delete,
    .xAccess = vfs_access,
    .xFullPathname = vfs_full_name,
    .xDlOpen = vfs_dl_open,
    .xDlError = vfs_dl_error,
    .xDlSym = vfs_dl_symbol,
    .xDlClose = vfs_dl_close,
    .xRandomness = vfs_randomness,
    .xSleep = vfs_sleep,
    .xCurrentTime = vfs_time,
    .xGetLastError = vfs_last_error,
    .xCurrentTimeInt64 = vfs_time_ms,
};

sqlite3_vfs *
sqlite3_vfs_find(const char *name)
{
    if (name != NULL && strcmp(name, the_vfs.zName) != 0) return NULL;
    return (sqlite3_vfs *)(uintptr_t)&the_vfs;
}

int
sqlite3_vfs_register(sqlite3_vfs *vfs, int as_default)
{
    (void)as_default;
    if (vfs == NULL) return SQLITE_MISUSE;
    return vfs == &the_vfs ? SQLITE_OK : SQLITE_ERROR;
}

int
sqlite3_vfs_unregister(sqlite3_vfs *vfs)
{
    (void)vfs;
    return SQLITE_OK;
}
