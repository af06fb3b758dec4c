/*
 * settings_api.c -- settings and counters of a connection: db_config, db_status, file_control, the
 * log and its checkpoints, column metadata, client data.
 */
#include "capi/capi.h"
#include "capi/process.h"

#include <stdarg.h>

static bool
has_session(const sqlite3 *db)
{
    return capi__db_ok(db) && db->session != NULL;
}

/* ---- sqlite3_db_config ---- */

/* Settings without an effect here: they are remembered, and read back. */
static const struct {
    int what;
    bool on; /* At first. */
} kept[] = {
    {SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false},
    {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false},
    {SQLITE_DBCONFIG_ENABLE_QPSG, false},
    {SQLITE_DBCONFIG_TRIGGER_EQP, false},
    {SQLITE_DBCONFIG_DEFENSIVE, false},
    {SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, false},
    {SQLITE_DBCONFIG_LEGACY_FILE_FORMAT, false},
    {SQLITE_DBCONFIG_TRUSTED_SCHEMA, true},
    {SQLITE_DBCONFIG_STMT_SCANSTATUS, false},
    {SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, true},
    {SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, true},
    {SQLITE_DBCONFIG_ENABLE_COMMENTS, true},
    {SQLITE_DBCONFIG_RESET_DATABASE, false},
};

/* The session's setting behind a code, or SESSION_SETTINGS. */
static SessionSetting
setting_of(int what)
{
    switch (what) {
    case SQLITE_DBCONFIG_ENABLE_FKEY: return SESSION_FOREIGN_KEYS;
    case SQLITE_DBCONFIG_ENABLE_TRIGGER: return SESSION_TRIGGERS;
    case SQLITE_DBCONFIG_ENABLE_VIEW: return SESSION_VIEWS;
    case SQLITE_DBCONFIG_DQS_DML: return SESSION_DOUBLE_QUOTED_DML;
    case SQLITE_DBCONFIG_DQS_DDL: return SESSION_DOUBLE_QUOTED_DDL;
    case SQLITE_DBCONFIG_WRITABLE_SCHEMA: return SESSION_WRITABLE_SCHEMA;
    case SQLITE_DBCONFIG_REVERSE_SCANORDER: return SESSION_REVERSE_SCANS;
    default: return SESSION_SETTINGS;
    }
}

static int
config_switch(sqlite3 *db, int what, int value, int *now_out)
{
    int now = 0;
    SessionSetting setting = setting_of(what);
    if (setting != SESSION_SETTINGS) {
        now = session_setting(db->session, setting, value);
    } else if (what == SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION) {
        if (value >= 0) db->may_load = value != 0;
        now = db->may_load;
    } else {
        u32 at = 0;
        while (at < COUNT_OF(kept) && kept[at].what != what)
            at++;
        if (at == COUNT_OF(kept)) return SQLITE_ERROR;
        u32 bit = 1u << at;
        if (value >= 0)
            db->turned = (value != 0) != kept[at].on ? db->turned | bit : db->turned & ~bit;
        now = kept[at].on != ((db->turned & bit) != 0);
    }
    if (now_out != NULL) *now_out = now;
    return SQLITE_OK;
}

int
sqlite3_db_config(sqlite3 *db, int what, ...)
{
    if (!has_session(db)) return SQLITE_MISUSE;
    va_list args;
    int code = SQLITE_OK;
    va_start(args, what);
    switch (what) {
    case SQLITE_DBCONFIG_MAINDBNAME:
    case SQLITE_DBCONFIG_LOOKASIDE: break; /* Our memory comes from elsewhere. */
    case SQLITE_DBCONFIG_FP_DIGITS: {
        int digits = va_arg(args, int);
        int *now_out = va_arg(args, int *);
        if (digits >= 4 && digits <= 23) db->fp_digits = digits;
        if (now_out != NULL) *now_out = db->fp_digits == 0 ? 17 : db->fp_digits;
        break;
    }
    default: {
        int value = va_arg(args, int);
        code = config_switch(db, what, value, va_arg(args, int *));
        break;
    }
    }
    va_end(args);
    return code;
}

/* ---- counters ---- */

/* A counter since the last reset. */
static sqlite3_int64
counted(u64 now, u64 *before_io, bool reset)
{
    u64 since = now - *before_io;
    if (reset) *before_io = now;
    return (sqlite3_int64)since;
}

int
sqlite3_db_status64(sqlite3 *db, int what, sqlite3_int64 *now_out, sqlite3_int64 *peak_out,
                    int reset)
{
    if (!has_session(db) || now_out == NULL || peak_out == NULL) return SQLITE_MISUSE;
    *now_out = *peak_out = 0;
    if (what < 0 || what > SQLITE_DBSTATUS_MAX) return SQLITE_ERROR;
    StoreStats stats;
    session_lock(db->session);
    store_stats(session_store(db->session), &stats);
    switch (what) {
    case SQLITE_DBSTATUS_CACHE_USED:
    case SQLITE_DBSTATUS_CACHE_USED_SHARED: *now_out = (sqlite3_int64)stats.memory_bytes; break;
    case SQLITE_DBSTATUS_CACHE_HIT:
        *now_out = counted(stats.page_hits, &db->hits_before, reset);
        break;
    case SQLITE_DBSTATUS_CACHE_MISS:
        *now_out = counted(stats.page_reads, &db->misses_before, reset);
        break;
    case SQLITE_DBSTATUS_CACHE_WRITE:
        *now_out = counted(stats.page_writes, &db->writes_before, reset);
        break;
    case SQLITE_DBSTATUS_SCHEMA_USED:
        *now_out = (sqlite3_int64)session_schema_bytes(db->session);
        break;
    case SQLITE_DBSTATUS_STMT_USED:
        *now_out = (sqlite3_int64)session_memory_bytes(db->session);
        break;
    case SQLITE_DBSTATUS_DEFERRED_FKS:
        *now_out = session_has_deferred_violations(db->session);
        break;
    default: break; /* No lookaside, nothing spilled from a cache. */
    }
    session_unlock(db->session);
    return SQLITE_OK;
}

int
sqlite3_db_status(sqlite3 *db, int what, int *now_out, int *peak_out, int reset)
{
    sqlite3_int64 now, peak;
    if (now_out == NULL || peak_out == NULL) return SQLITE_MISUSE;
    int code = sqlite3_db_status64(db, what, &now, &peak, reset);
    *now_out = code == SQLITE_OK ? (int)MIN_OF(now, (sqlite3_int64)0x7fffffff) : 0;
    *peak_out = code == SQLITE_OK ? (int)MIN_OF(peak, (sqlite3_int64)0x7fffffff) : 0;
    return code;
}

/* ---- files ---- */

static int
set_int(void *arg, int value)
{
    if (arg == NULL) return SQLITE_MISUSE;
    *(int *)arg = value;
    return SQLITE_OK;
}

int
sqlite3_file_control(sqlite3 *db, const char *name, int what, void *arg)
{
    if (!has_session(db)) return SQLITE_MISUSE;
    if (session_file(db->session, name == NULL ? "main" : name) == NULL) return SQLITE_ERROR;
    switch (what) {
    case SQLITE_FCNTL_FILE_POINTER:
    case SQLITE_FCNTL_JOURNAL_POINTER:
        if (arg == NULL) return SQLITE_MISUSE;
        *(sqlite3_file **)arg = NULL;
        return SQLITE_OK;
    case SQLITE_FCNTL_VFS_POINTER:
        if (arg == NULL) return SQLITE_MISUSE;
        *(sqlite3_vfs **)arg = sqlite3_vfs_find(NULL);
        return SQLITE_OK;
    case SQLITE_FCNTL_VFSNAME:
        if (arg == NULL) return SQLITE_MISUSE;
        *(char **)arg = sqlite3_mprintf("unix");
        return *(char **)arg == NULL ? SQLITE_NOMEM : SQLITE_OK;
    case SQLITE_FCNTL_DATA_VERSION:
        return set_int(arg, (int)(store_change_number(session_store(db->session)) & 0x7fffffff));
    case SQLITE_FCNTL_MMAP_SIZE:
        if (arg == NULL) return SQLITE_MISUSE;
        *(sqlite3_int64 *)arg = 0; /* Nothing is mapped. */
        return SQLITE_OK;
    case SQLITE_FCNTL_LOCKSTATE:
    case SQLITE_FCNTL_LAST_ERRNO:
    case SQLITE_FCNTL_HAS_MOVED:
    case SQLITE_FCNTL_RESERVE_BYTES: return set_int(arg, 0);
    case SQLITE_FCNTL_POWERSAFE_OVERWRITE:
    case SQLITE_FCNTL_PERSIST_WAL: return set_int(arg, 1);
    case SQLITE_FCNTL_SIZE_HINT:
    case SQLITE_FCNTL_CHUNK_SIZE:
    case SQLITE_FCNTL_RESET_CACHE: return SQLITE_OK;
    default: return SQLITE_NOTFOUND;
    }
}

/* ---- the log ---- */

static void
committed(void *arg, const char *database)
{
    sqlite3 *db = arg;
    StoreStats stats;
    store_stats(session_store(db->session), &stats);
    int pages = (int)MIN_OF(stats.log_bytes / 4096 + 1, (u64)0x7fffffff);
    (void)db->wal(db->wal_arg, db, database, pages);
}

void *
sqlite3_wal_hook(sqlite3 *db, int (*function)(void *, sqlite3 *, const char *, int), void *arg)
{
    if (!has_session(db)) return NULL;
    session_lock(db->session);
    SessionHooks hooks = *session_hooks(db->session);
    void *former = db->wal_arg;
    db->wal = function;
    db->wal_arg = arg;
    hooks.committed = function == NULL ? NULL : committed;
    hooks.committed_arg = db;
    session_set_hooks(db->session, &hooks);
    session_unlock(db->session);
    return former;
}

/* The store makes checkpoints by itself; the number only takes the hook away, as in SQLite. */
int
sqlite3_wal_autocheckpoint(sqlite3 *db, int frames)
{
    (void)frames;
    if (!has_session(db)) return SQLITE_MISUSE;
    (void)sqlite3_wal_hook(db, NULL, NULL);
    return SQLITE_OK;
}

int
sqlite3_wal_checkpoint_v2(sqlite3 *db, const char *name, int mode, int *log_out, int *done_out)
{
    if (log_out != NULL) *log_out = -1;
    if (done_out != NULL) *done_out = -1;
    if (!has_session(db) || mode < -1 || mode > SQLITE_CHECKPOINT_TRUNCATE) return SQLITE_MISUSE;
    if (name != NULL && name[0] != 0 && session_file(db->session, name) == NULL) {
        return capi__fail(db, ERR_SQL, "unknown database: %s", name);
    }
    if (session_in_write_transaction(db->session)) {
        return capi__fail(db, ERR_LOCKED, "%s", err_text(ERR_LOCKED));
    }
    Err err = mode < 0 ? OK : session_checkpoint(db->session);
    if (err == OK && log_out != NULL) *log_out = 0;
    if (err == OK && done_out != NULL) *done_out = 0;
    return capi__result(db, err);
}

int
sqlite3_wal_checkpoint(sqlite3 *db, const char *name)
{
    return sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
}

/* Nothing is ever vacuumed by itself: the function is kept for its destructor alone. */
int
sqlite3_autovacuum_pages(sqlite3 *db,
                         unsigned int (*function)(void *, const char *, unsigned int, unsigned int,
                                                  unsigned int),
                         void *arg, void (*destroy)(void *))
{
    if (!has_session(db)) {
        if (destroy != NULL) destroy(arg);
        return SQLITE_MISUSE;
    }
    if (db->autovacuum_destroy != NULL) db->autovacuum_destroy(db->autovacuum_arg);
    db->autovacuum_arg = function == NULL ? NULL : arg;
    db->autovacuum_destroy = function == NULL ? NULL : destroy;
    return SQLITE_OK;
}

/* Connections never wait for each other inside of a call that gave SQLITE_LOCKED. */
int
sqlite3_unlock_notify(sqlite3 *db, void (*function)(void **, int), void *arg)
{
    if (!has_session(db)) return SQLITE_MISUSE;
    if (function != NULL) function(&arg, 1);
    return SQLITE_OK;
}

int
sqlite3_setlk_timeout(sqlite3 *db, int milliseconds, int flags)
{
    (void)flags;
    if (!has_session(db)) return SQLITE_MISUSE;
    return milliseconds < -1 ? SQLITE_RANGE : SQLITE_OK;
}

/* ---- the schema ---- */

int
sqlite3_table_column_metadata(sqlite3 *db, const char *database, const char *table,
                              const char *column, char const **type_out, char const **collation_out,
                              int *not_null_out, int *primary_key_out, int *autoincrement_out)
{
    SessionColumn found = {.type = NULL};
    if (!has_session(db) || table == NULL) return SQLITE_MISUSE;
    int code = capi__result(db, session_find_column(db->session, database, table, column, &found));
    if (column == NULL && code == SQLITE_OK) return code;
    if (type_out != NULL) *type_out = found.type;
    if (collation_out != NULL) *collation_out = found.collation;
    if (not_null_out != NULL) *not_null_out = found.not_null;
    if (primary_key_out != NULL) *primary_key_out = found.primary_key;
    if (autoincrement_out != NULL) *autoincrement_out = found.autoincrement;
    return code;
}

/* ---- client data ---- */

void *
sqlite3_get_clientdata(sqlite3 *db, const char *name)
{
    if (!has_session(db) || name == NULL) return NULL;
    void *found = NULL;
    session_lock(db->session);
    for (const ClientData *data = db->client_data; data != NULL; data = data->next) {
        if (strcmp(data->name, name) == 0) found = data->pointer;
    }
    session_unlock(db->session);
    return found;
}

static void
drop_client_data(sqlite3 *db, const char *name)
{
    for (ClientData **link = &db->client_data; *link != NULL; link = &(*link)->next) {
        ClientData *data = *link;
        if (strcmp(data->name, name) != 0) continue;
        *link = data->next;
        if (data->destroy != NULL) data->destroy(data->pointer);
        mem_free(data);
        return;
    }
}

int
sqlite3_set_clientdata(sqlite3 *db, const char *name, void *pointer, void (*destroy)(void *))
{
    if (!has_session(db) || name == NULL) return SQLITE_MISUSE;
    session_lock(db->session);
    drop_client_data(db, name);
    int code = SQLITE_OK;
    if (pointer != NULL) {
        size_t bytes = strlen(name) + 1;
        ClientData *data = mem_alloc(sizeof(*data) + bytes);
        if (data == NULL) {
            if (destroy != NULL) destroy(pointer);
            code = SQLITE_NOMEM;
        } else {
            data->next = db->client_data;
            data->pointer = pointer;
            data->destroy = destroy;
            memcpy(data->name, name, bytes);
            db->client_data = data;
        }
    }
    session_unlock(db->session);
    return code;
}

/* What a closing connection gives back. */
void
capi__free_settings(sqlite3 *db)
{
    while (db->client_data != NULL)
        drop_client_data(db, db->client_data->name);
    if (db->autovacuum_destroy != NULL) db->autovacuum_destroy(db->autovacuum_arg);
    db->autovacuum_destroy = NULL;
    for (FileName *name = db->names; name != NULL;) {
        FileName *next = name->next;
        sqlite3_free_filename(name->name);
        mem_free(name);
        name = next;
    }
    db->names = NULL;
    void *mutex = rt_load_relaxed(&db->mutex);
    if (mutex != NULL) sqlite3_mutex_free((sqlite3_mutex *)mutex);
    rt_store_relaxed(&db->mutex, NULL);
}

/* ---- tests ---- */

/* SQLite's own test hooks: what can be answered is answered, the rest is 0. */
int
sqlite3_test_control(int what, ...)
{
    switch (what) {
    case SQLITE_TESTCTRL_BYTEORDER: return 1234 * 100 + 10;
    case SQLITE_TESTCTRL_ALWAYS:
    case SQLITE_TESTCTRL_ASSERT: {
        va_list args;
        va_start(args, what);
        int value = va_arg(args, int);
        va_end(args);
        return what == SQLITE_TESTCTRL_ALWAYS ? value : 0;
    }
    default: return 0;
    }
}
