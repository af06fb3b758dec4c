/*
 * process.h -- what the C API keeps once per process: settings of sqlite3_config, the log function,
 * automatic extensions.  It hangs on the RtProcess; a mutex guards it.
 */
#pragma once

#include "capi/capi.h"
#include "rt/lock.h"

#define AUTO_EXTENSIONS_MAX 64u
#define STATIC_MUTEXES      14u /* SQLITE_MUTEX_STATIC_VFS3 and below. */

typedef struct CapiMutex {
    int id;
    RtMutex mutex;
    RtPtr owner; /* rt_runner() */
    u32 depth;   /* The owner's. */
} CapiMutex;

typedef struct CapiProcess {
    RtMutex mutex;
    void (*log)(void *, int, const char *);
    void *log_arg;
    bool uri;      /* SQLITE_CONFIG_URI */
    int threading; /* As SQLITE_THREADSAFE; by SQLITE_CONFIG_SINGLETHREAD and its like. */
    bool initialized;
    bool memory_status;
    i64 soft_heap_limit, hard_heap_limit;
    int (*extension[AUTO_EXTENSIONS_MAX])(sqlite3 *, char **, const struct sqlite3_api_routines *);
    u32 extension_count;
    sqlite3 *free_db; /* Closed connections and finalized statements (handle.c). */
    sqlite3_stmt *free_stmt;
    CapiMutex static_mutex[STATIC_MUTEXES];
} CapiProcess;

/* NULL: out of memory, or a child made by fork(). */
CapiProcess *capi__process(void);
/* Run the automatic extensions on a new connection: SQLITE_OK or what one of them gave, with its
   text as the connection's error. */
int capi__run_extensions(sqlite3 *db);
