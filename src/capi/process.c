/*
 * process.c -- what exists once per process: sqlite3_config, the log, automatic extensions, heap
 * limits, and the answers to loadable extensions.
 */
#include "capi/process.h"

#include <stdarg.h>
#include <stdio.h>

#include "capi/build_options.h"
#include "rt/process.h"

#define LOG_TEXT_BYTES 700

static Err
process_create(RtProcess *process, void **root_out)
{
    (void)process;
    CapiProcess *made = MEM_NEW(CapiProcess);
    *root_out = made;
    if (made == NULL) return ERR_NOMEM;
    made->memory_status = true;
    made->uri = SQLITE_USE_URI;
    made->threading = SQLITE_THREADSAFE;
    for (u32 i = 0; i < STATIC_MUTEXES; i++)
        made->static_mutex[i].id = (int)i;
    return OK;
}

static void
process_destroy(void *root)
{
    CapiProcess *process = root;
    capi__free_handles(process->free_db, process->free_stmt);
    mem_free(process);
}

CapiProcess *
capi__process(void)
{
    void *root = NULL;
    return rt_process_root(RT_SLOT_CAPI, process_create, process_destroy, &root) == OK ? root
                                                                                       : NULL;
}

/* ---- sqlite3_config ---- */

/* Settings that say how SQLite should get its memory, pages and locks: ours come from elsewhere. */
static int
config_locked(CapiProcess *process, int what, va_list args)
{
    switch (what) {
    /* Calls are serialized in each of them; what differs is sqlite3_db_mutex(). */
    case SQLITE_CONFIG_SINGLETHREAD: process->threading = 0; return SQLITE_OK;
    case SQLITE_CONFIG_MULTITHREAD: process->threading = 2; return SQLITE_OK;
    case SQLITE_CONFIG_SERIALIZED: process->threading = 1; return SQLITE_OK;
    case SQLITE_CONFIG_LOOKASIDE:
    case SQLITE_CONFIG_PAGECACHE:
    case SQLITE_CONFIG_SCRATCH:
    case SQLITE_CONFIG_PCACHE:
    case SQLITE_CONFIG_PCACHE2:
    case SQLITE_CONFIG_COVERING_INDEX_SCAN:
    case SQLITE_CONFIG_MMAP_SIZE:
    case SQLITE_CONFIG_PMASZ:
    case SQLITE_CONFIG_STMTJRNL_SPILL:
    case SQLITE_CONFIG_SMALL_MALLOC:
    case SQLITE_CONFIG_SORTERREF_SIZE:
    case SQLITE_CONFIG_MEMDB_MAXSIZE:
    case SQLITE_CONFIG_SQLLOG: return SQLITE_OK;
    case SQLITE_CONFIG_MEMSTATUS: process->memory_status = va_arg(args, int) != 0; return SQLITE_OK;
    case SQLITE_CONFIG_URI: process->uri = va_arg(args, int) != 0; return SQLITE_OK;
    case SQLITE_CONFIG_LOG:
        process->log = va_arg(args, void (*)(void *, int, const char *));
        process->log_arg = va_arg(args, void *);
        return SQLITE_OK;
    case SQLITE_CONFIG_PCACHE_HDRSZ: *va_arg(args, int *) = 0; return SQLITE_OK;
    case SQLITE_CONFIG_ROWID_IN_VIEW: *va_arg(args, int *) = 0; return SQLITE_OK;
    default: return SQLITE_ERROR; /* MALLOC, MUTEX, HEAP and the GET forms: docs/compatibility.md */
    }
}

int
sqlite3_config(int what, ...)
{
    CapiProcess *process = capi__process();
    if (process == NULL) return SQLITE_NOMEM;
    va_list args;
    va_start(args, what);
    rt_mutex_lock(&process->mutex);
    /* Only before sqlite3_initialize(), but the log may be set at any time as in SQLite. */
    int code = process->initialized && what != SQLITE_CONFIG_LOG &&
                       what != SQLITE_CONFIG_PCACHE_HDRSZ
                   ? SQLITE_MISUSE
                   : config_locked(process, what, args);
    rt_mutex_unlock(&process->mutex);
    va_end(args);
    return code;
}

int
sqlite3_initialize(void)
{
    CapiProcess *process = capi__process();
    if (process == NULL) return SQLITE_NOMEM;
    rt_mutex_lock(&process->mutex);
    process->initialized = true;
    rt_mutex_unlock(&process->mutex);
    return SQLITE_OK;
}

int
sqlite3_shutdown(void)
{
    CapiProcess *process = capi__process();
    if (process == NULL) return SQLITE_OK;
    rt_mutex_lock(&process->mutex);
    process->initialized = false;
    process->extension_count = 0;
    rt_mutex_unlock(&process->mutex);
    return SQLITE_OK;
}

/* ---- the log ---- */

void
capi__log(int code, const char *text)
{
    CapiProcess *process = capi__process();
    if (process == NULL) return;
    rt_mutex_lock(&process->mutex);
    void (*function)(void *, int, const char *) = process->log;
    void *arg = process->log_arg;
    rt_mutex_unlock(&process->mutex);
    if (function != NULL) function(arg, code, text);
}

void
sqlite3_log(int code, const char *format, ...)
{
    va_list args;
    if (format == NULL) return;
    va_start(args, format);
    char *text = sqlite3_vmprintf(format, args);
    va_end(args);
    if (text != NULL && strlen(text) >= LOG_TEXT_BYTES) text[LOG_TEXT_BYTES] = 0;
    capi__log(code, text == NULL ? "" : text);
    sqlite3_free(text);
}

/* ---- extensions ---- */

int
sqlite3_auto_extension(void (*entry)(void))
{
    CapiProcess *process = capi__process();
    if (entry == NULL) return SQLITE_MISUSE;
    if (process == NULL) return SQLITE_NOMEM;
    int (*typed)(sqlite3 *, char **, const struct sqlite3_api_routines *);
    memcpy(&typed, &entry, sizeof(typed));
    rt_mutex_lock(&process->mutex);
    u32 at = 0;
    while (at < process->extension_count && process->extension[at] != typed)
        at++;
    int code = at < AUTO_EXTENSIONS_MAX ? SQLITE_OK : SQLITE_NOMEM;
    if (code == SQLITE_OK && at == process->extension_count) {
        process->extension[process->extension_count++] = typed;
    }
    rt_mutex_unlock(&process->mutex);
    return code;
}

int
sqlite3_cancel_auto_extension(void (*entry)(void))
{
    CapiProcess *process = capi__process();
    if (entry == NULL || process == NULL) return 0;
    int (*typed)(sqlite3 *, char **, const struct sqlite3_api_routines *);
    memcpy(&typed, &entry, sizeof(typed));
    int found = 0;
    rt_mutex_lock(&process->mutex);
    for (u32 i = process->extension_count; i-- > 0;) {
        if (process->extension[i] != typed) continue;
        process->extension[i] = process->extension[--process->extension_count];
        found = 1;
        break;
    }
    rt_mutex_unlock(&process->mutex);
    return found;
}

void
sqlite3_reset_auto_extension(void)
{
    CapiProcess *process = capi__process();
    if (process == NULL) return;
    rt_mutex_lock(&process->mutex);
    process->extension_count = 0;
    rt_mutex_unlock(&process->mutex);
}

int
capi__run_extensions(sqlite3 *db)
{
    CapiProcess *process = capi__process();
    if (process == NULL) return SQLITE_OK;
    for (u32 i = 0;; i++) {
        int (*entry)(sqlite3 *, char **, const struct sqlite3_api_routines *) = NULL;
        rt_mutex_lock(&process->mutex);
        if (i < process->extension_count) entry = process->extension[i];
        rt_mutex_unlock(&process->mutex);
        if (entry == NULL) return SQLITE_OK;
        char *text = NULL;
        int code = entry(db, &text, NULL);
        if (code != SQLITE_OK) {
            (void)capi__fail(db, ERR_SQL, "automatic extension loading failed: %s",
                             text == NULL ? sqlite3_errstr(code) : text);
        }
        sqlite3_free(text);
        if (code != SQLITE_OK) return code;
    }
}

int
sqlite3_enable_load_extension(sqlite3 *db, int on)
{
    if (!capi__db_ok(db)) return SQLITE_MISUSE;
    db->may_load = on != 0;
    return SQLITE_OK;
}

/* An extension brings its own copy of SQLite's inner interface, which is not ours. */
int
sqlite3_load_extension(sqlite3 *db, const char *file, const char *entry, char **error_out)
{
    (void)file;
    (void)entry;
    if (!capi__db_ok(db)) return SQLITE_MISUSE;
    const char *text = db->may_load ? "loadable extensions are not supported" : "not authorized";
    if (error_out != NULL) *error_out = sqlite3_mprintf("%s", text);
    return capi__fail(db, ERR_SQL, "%s", text);
}

/* ---- memory ---- */

sqlite3_int64
sqlite3_memory_used(void)
{
    const MemAccount *account = rt_process_account(rt_process_default());
    return (sqlite3_int64)account->used_bytes;
}

sqlite3_int64
sqlite3_memory_highwater(int reset)
{
    MemAccount *account = rt_process_account(rt_process_default());
    sqlite3_int64 peak = (sqlite3_int64)account->peak_bytes;
    if (reset != 0) account->peak_bytes = account->used_bytes;
    return peak;
}

sqlite3_uint64
sqlite3_msize(void *block)
{
    return block == NULL ? 0 : mem_block_bytes(block);
}

int
sqlite3_memory_alarm(void (*function)(void *, sqlite3_int64, int), void *arg,
                     sqlite3_int64 threshold)
{
    (void)function;
    (void)arg;
    (void)threshold;
    return SQLITE_OK; /* As SQLite since 3.8.7: it does nothing. */
}

static sqlite3_int64
set_limit(i64 *limit, sqlite3_int64 bytes, i64 *other, bool other_is_cap)
{
    sqlite3_int64 former = *limit;
    if (bytes < 0) return former;
    *limit = bytes;
    if (other_is_cap && *other > 0 && (bytes == 0 || bytes > *other)) *limit = *other;
    if (!other_is_cap && bytes > 0 && (*other == 0 || *other > bytes)) *other = bytes;
    return former;
}

/* The cap of the engine's memory is the hard limit; PRAGMA hard_heap_limit sets it too. */
static MemAccount *
hard_limit_look(CapiProcess *process)
{
    MemAccount *account = rt_process_account(rt_process_default());
    process->hard_heap_limit = (i64)account->cap_bytes;
    if (process->hard_heap_limit > 0 &&
        (process->soft_heap_limit == 0 || process->soft_heap_limit > process->hard_heap_limit))
        process->soft_heap_limit = process->hard_heap_limit;
    return account;
}

sqlite3_int64
sqlite3_soft_heap_limit64(sqlite3_int64 bytes)
{
    CapiProcess *process = capi__process();
    if (process == NULL) return -1;
    rt_mutex_lock(&process->mutex);
    (void)hard_limit_look(process);
    sqlite3_int64 former = set_limit(&process->soft_heap_limit, bytes, &process->hard_heap_limit,
                                     true);
    rt_mutex_unlock(&process->mutex);
    return former;
}

void
sqlite3_soft_heap_limit(int bytes)
{
    (void)sqlite3_soft_heap_limit64(bytes < 0 ? 0 : bytes);
}

sqlite3_int64
sqlite3_hard_heap_limit64(sqlite3_int64 bytes)
{
    CapiProcess *process = capi__process();
    if (process == NULL) return -1;
    rt_mutex_lock(&process->mutex);
    MemAccount *account = hard_limit_look(process);
    sqlite3_int64 former = set_limit(&process->hard_heap_limit, bytes, &process->soft_heap_limit,
                                     false);
    /* The engine's accounts fail with "out of memory" beyond their cap. */
    account->cap_bytes = (u64)process->hard_heap_limit;
    rt_mutex_unlock(&process->mutex);
    return former;
}

int
sqlite3_status64(int what, sqlite3_int64 *now_out, sqlite3_int64 *peak_out, int reset)
{
    if (now_out == NULL || peak_out == NULL) return SQLITE_MISUSE;
    *now_out = *peak_out = 0;
    if (what < 0 || what > SQLITE_STATUS_MALLOC_COUNT) return SQLITE_MISUSE;
    if (what != SQLITE_STATUS_MEMORY_USED) return SQLITE_OK;
    *now_out = sqlite3_memory_used();
    *peak_out = sqlite3_memory_highwater(reset);
    return SQLITE_OK;
}

int
sqlite3_status(int what, int *now_out, int *peak_out, int reset)
{
    sqlite3_int64 now = 0, peak = 0;
    if (now_out == NULL || peak_out == NULL) return SQLITE_MISUSE;
    int code = sqlite3_status64(what, &now, &peak, reset);
    *now_out = (int)now;
    *peak_out = (int)peak;
    return code;
}
