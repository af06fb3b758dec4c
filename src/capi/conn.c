/*
 * conn.c -- connections: open, close, errors, counters, limits.
 */
#include "capi/build_options.h"
#include "capi/capi.h"
#include "capi/carray.h"
#include "capi/host_func.h"
#include "capi/pointer.h"
#include "capi/process.h"

#include <stdarg.h>
#include <stdio.h>

#include "rt/process.h"
#include "session/uri.h"

#define NS_PER_MS ((u64)1000000)

bool
capi__db_ok(const sqlite3 *db)
{
    return db != NULL && db->magic == DB_MAGIC;
}

int
capi__code(const sqlite3 *db, int extended)
{
    return db->extended_codes ? extended : extended & 0xff;
}

/* The error is read and written under the session's lock: threads may share a connection. */
static void
lock_error(sqlite3 *db)
{
    if (db->session != NULL) session_lock(db->session);
}

static void
unlock_error(sqlite3 *db)
{
    if (db->session != NULL) session_unlock(db->session);
}

int
capi__result(sqlite3 *db, Err err)
{
    rt_store_relaxed(&db->own_error, 0);
    if (err == OK) return SQLITE_OK;
    lock_error(db);
    const ErrMsg *error = session_error(db->session);
    int code = error->err == ERR_HOST ? error->host_code : err_sqlite(err);
    unlock_error(db);
    return capi__code(db, code);
}

int
capi__fail(sqlite3 *db, Err err, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    lock_error(db);
    err_set(&db->error, err, "%s", text);
    rt_store_relaxed(&db->own_error, 1);
    unlock_error(db);
    return capi__code(db, err_sqlite(err));
}

int
capi__absent(sqlite3 *db, const char *function)
{
    if (!capi__db_ok(db)) return SQLITE_MISUSE;
    return capi__fail(db, ERR_UNSUPPORTED, "%s is not supported", function);
}

/* ---- open ---- */

static bool
names_are_uris(void)
{
    CapiProcess *process = capi__process();
    if (process == NULL) return SQLITE_USE_URI;
    rt_mutex_lock(&process->mutex);
    bool uri = process->uri;
    rt_mutex_unlock(&process->mutex);
    return uri;
}

static Err
open_session(sqlite3 *db, const char *file, int flags)
{
    UriName name;
    bool as_uri = (flags & SQLITE_OPEN_URI) != 0 || names_are_uris();
    Err err = uri_parse(file, as_uri, &name, &db->error);
    if (err == OK) {
        bool is_memory = name.memory || (flags & SQLITE_OPEN_MEMORY) != 0;
        /* A named in-memory database is shared only when asked for. */
        const char *path = is_memory && !name.shared ? NULL : name.path;
        SessionOptions options = {
            .read_only = name.read_only || (flags & SQLITE_OPEN_READONLY) != 0,
            .create = (flags & SQLITE_OPEN_CREATE) != 0 && !name.no_create,
            .in_memory = is_memory && name.shared,
            .uris = as_uri,
            .single_writer = !name.multi,
            .sync = STORE_SYNC_FULL,
            .level = STORE_SNAPSHOT,
        };
        err = session_open(rt_process_default(), path, &options, &db->session, &db->error);
    }
    mem_free(name.path);
    switch (err) {
    case ERR_CANTOPEN:
    case ERR_NOTFOUND:
    case ERR_PERM:
    case ERR_IO:
    case ERR_EXISTS: return err_set(&db->error, ERR_CANTOPEN, "%s", err_text(ERR_CANTOPEN));
    default: return err;
    }
}

/* What sqlite3_config() or the build says. */
static int
default_threading(void)
{
    CapiProcess *process = capi__process();
    if (process == NULL) return SQLITE_THREADSAFE;
    rt_mutex_lock(&process->mutex);
    int threading = process->threading;
    rt_mutex_unlock(&process->mutex);
    return threading;
}

static void
apply_build_options(Session *session)
{
    (void)session_setting(session, SESSION_FOREIGN_KEYS, SQLITE_DEFAULT_FOREIGN_KEYS);
    (void)session_setting(session, SESSION_DOUBLE_QUOTED_DML, SQLITE_DQS & 1);
    (void)session_setting(session, SESSION_DOUBLE_QUOTED_DDL, (SQLITE_DQS & 2) != 0);
}

int
sqlite3_open_v2(const char *file, sqlite3 **db_out, int flags, const char *vfs)
{
    if (db_out == NULL) return SQLITE_MISUSE;
    *db_out = NULL;
    sqlite3 *db = capi__db_new();
    if (db == NULL) return SQLITE_NOMEM;
    db->magic = DB_MAGIC;
    db->error.sql_offset = -1;
    *db_out = db;
    if (vfs != NULL && strcmp(vfs, "unix") != 0) {
        return capi__fail(db, ERR_SQL, "no such vfs: %s", vfs);
    }
    int access = flags & (SQLITE_OPEN_READONLY | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (access != SQLITE_OPEN_READONLY && access != SQLITE_OPEN_READWRITE &&
        access != (SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) {
        return capi__fail(db, ERR_MISUSE, "%s", err_text(ERR_MISUSE));
    }
    db->extended_codes = (flags & SQLITE_OPEN_EXRESCODE) != 0;
    int threading = default_threading();
    db->without_mutex = threading == 0 || (flags & SQLITE_OPEN_NOMUTEX) != 0 ||
                        (threading == 2 && (flags & SQLITE_OPEN_FULLMUTEX) == 0);
    Err err = open_session(db, file, flags);
    rt_store_relaxed(&db->own_error, err != OK);
    if (err != OK) return capi__code(db, err_sqlite(err));
    apply_build_options(db->session);
    SessionHooks hooks = *session_hooks(db->session);
    hooks.find_table_func = capi__find_table_func;
    session_set_hooks(db->session, &hooks);
    return capi__run_extensions(db);
}

int
sqlite3_open(const char *file, sqlite3 **db_out)
{
    return sqlite3_open_v2(file, db_out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
}

int
sqlite3_open16(const void *file, sqlite3 **db_out)
{
    if (db_out == NULL) return SQLITE_MISUSE;
    size_t bytes;
    char *name = capi__from_utf16(file, -1, &bytes);
    if (name == NULL) return SQLITE_NOMEM;
    int code = sqlite3_open(name, db_out);
    mem_free(name);
    return code;
}

/* ---- close ---- */

static void
free_db(sqlite3 *db)
{
    if ((db->trace_mask & SQLITE_TRACE_CLOSE) != 0 && db->trace != NULL)
        db->trace(SQLITE_TRACE_CLOSE, db->trace_arg, db, NULL);
    session_destroy(db->session);
    capi__free_settings(db);
    pointer__free(db->pointers);
    host__free(db);
    err_clear(&db->error);
    mem_free(db->errmsg16);
    capi__db_free(db);
}

int
sqlite3_close(sqlite3 *db)
{
    if (db == NULL) return SQLITE_OK;
    if (!capi__db_ok(db)) return SQLITE_MISUSE;
    if (db->first != NULL || db->backups > 0) {
        return capi__fail(db, ERR_BUSY,
                          "unable to close due to unfinalized statements or unfinished backups");
    }
    free_db(db);
    return SQLITE_OK;
}

int
sqlite3_close_v2(sqlite3 *db)
{
    if (db == NULL) return SQLITE_OK;
    if (!capi__db_ok(db)) return SQLITE_MISUSE;
    db->is_zombie = true; /* The last finalize frees it. */
    capi__close_zombie(db);
    return SQLITE_OK;
}

void
capi__close_zombie(sqlite3 *db)
{
    if (db->is_zombie && db->first == NULL && db->backups == 0) free_db(db);
}

/* ---- errors ---- */

static const ErrMsg *
last_error(const sqlite3 *db)
{
    return rt_load_relaxed(&db->own_error) != 0 || db->session == NULL ? &db->error
                                                                       : session_error(db->session);
}

int
sqlite3_extended_errcode(sqlite3 *db)
{
    if (db == NULL) return SQLITE_NOMEM;
    if (!capi__db_ok(db)) return SQLITE_MISUSE;
    lock_error(db);
    const ErrMsg *error = last_error(db);
    int code = error->err == ERR_HOST ? error->host_code : err_sqlite(error->err);
    unlock_error(db);
    return code;
}

int
sqlite3_errcode(sqlite3 *db)
{
    int code = sqlite3_extended_errcode(db);
    return capi__db_ok(db) ? capi__code(db, code) : code;
}

const char *
sqlite3_errmsg(sqlite3 *db)
{
    if (db == NULL) return err_text(ERR_NOMEM);
    if (!capi__db_ok(db)) return err_text(ERR_MISUSE);
    lock_error(db);
    const ErrMsg *error = last_error(db);
    const char *text = error->err == OK ? "not an error" : err_message(error);
    unlock_error(db);
    return text;
}

const void *
sqlite3_errmsg16(sqlite3 *db)
{
    static const u16 no_memory[] = {'o', 'u', 't', ' ', 'o', 'f', ' ',
                                    'm', 'e', 'm', 'o', 'r', 'y', 0};
    if (!capi__db_ok(db)) return no_memory;
    lock_error(db);
    const char *text = sqlite3_errmsg(db);
    int bytes;
    mem_free(db->errmsg16);
    db->errmsg16 = capi__to_utf16(text, strlen(text), &bytes);
    unlock_error(db);
    return db->errmsg16 == NULL ? no_memory : db->errmsg16;
}

int
sqlite3_error_offset(sqlite3 *db)
{
    if (!capi__db_ok(db)) return -1;
    lock_error(db);
    const ErrMsg *error = last_error(db);
    int offset = error->err == OK ? -1 : error->sql_offset;
    unlock_error(db);
    return offset;
}

const char *
sqlite3_errstr(int code)
{
    static const char *const texts[] = {
        "not an error",
        "SQL logic error",
        NULL,
        "access permission denied",
        "query aborted",
        "database is locked",
        "database table is locked",
        "out of memory",
        "attempt to write a readonly database",
        "interrupted",
        "disk I/O error",
        "database disk image is malformed",
        "unknown operation",
        "database or disk is full",
        "unable to open database file",
        "locking protocol",
        NULL,
        "database schema has changed",
        "string or blob too big",
        "constraint failed",
        "datatype mismatch",
        "bad parameter or other API misuse",
        NULL,
        "authorization denied",
        NULL,
        "column index out of range",
        "file is not a database",
        "notification message",
        "warning message",
    };
    if (code == SQLITE_ABORT_ROLLBACK) return "abort due to ROLLBACK";
    if (code == SQLITE_ROW) return "another row available";
    if (code == SQLITE_DONE) return "no more rows available";
    code &= 0xff;
    const char *text = (size_t)code < COUNT_OF(texts) ? texts[code] : NULL;
    return text == NULL ? "unknown error" : text;
}

int
sqlite3_extended_result_codes(sqlite3 *db, int on)
{
    if (!capi__db_ok(db)) return SQLITE_MISUSE;
    db->extended_codes = on != 0;
    return SQLITE_OK;
}

int
sqlite3_system_errno(sqlite3 *db)
{
    (void)db;
    return 0;
}

/* ---- counters and settings ---- */

static bool
has_session(const sqlite3 *db)
{
    return capi__db_ok(db) && db->session != NULL;
}

sqlite3_int64
sqlite3_changes64(sqlite3 *db)
{
    return has_session(db) ? session_changes(db->session) : 0;
}

int
sqlite3_changes(sqlite3 *db)
{
    return (int)sqlite3_changes64(db);
}

sqlite3_int64
sqlite3_total_changes64(sqlite3 *db)
{
    return has_session(db) ? session_total_changes(db->session) : 0;
}

int
sqlite3_total_changes(sqlite3 *db)
{
    return (int)sqlite3_total_changes64(db);
}

sqlite3_int64
sqlite3_last_insert_rowid(sqlite3 *db)
{
    return has_session(db) ? session_last_rowid(db->session) : 0;
}

void
sqlite3_set_last_insert_rowid(sqlite3 *db, sqlite3_int64 rowid)
{
    if (has_session(db)) session_set_last_rowid(db->session, rowid);
}

int
sqlite3_get_autocommit(sqlite3 *db)
{
    return has_session(db) ? session_autocommit(db->session) : 1;
}

int
sqlite3_is_interrupted(sqlite3 *db)
{
    return has_session(db) && session_is_interrupted(db->session);
}

void
sqlite3_interrupt(sqlite3 *db)
{
    if (has_session(db)) session_interrupt(db->session);
}

int
sqlite3_busy_timeout(sqlite3 *db, int milliseconds)
{
    if (!has_session(db)) return SQLITE_MISUSE;
    db->busy_timeout_ms = milliseconds;
    u64 ns = milliseconds <= 0 ? 0 : (u64)milliseconds * NS_PER_MS;
    session_set_busy_timeout(db->session, ns);
    return SQLITE_OK;
}

int
sqlite3_limit(sqlite3 *db, int id, int value)
{
    return has_session(db) ? session_limit(db->session, id, value) : -1;
}

/* The name with its parameters behind it; made once for each file. */
static const char *
keep_name(sqlite3 *db, const char *file, int count, const char **params)
{
    for (const FileName *kept = db->names; kept != NULL; kept = kept->next) {
        if (strcmp(kept->name, file) == 0) return kept->name;
    }
    FileName *made = MEM_NEW(FileName);
    char *journal = sqlite3_mprintf("%s-journal", file);
    char *wal = sqlite3_mprintf("%s-wal", file);
    if (made != NULL && journal != NULL && wal != NULL)
        made->name = sqlite3_create_filename(file, journal, wal, count, params);
    sqlite3_free(journal);
    sqlite3_free(wal);
    if (made == NULL || made->name == NULL) {
        mem_free(made);
        return NULL;
    }
    made->next = db->names;
    db->names = made;
    return made->name;
}

const char *
sqlite3_db_filename(sqlite3 *db, const char *name)
{
    if (!has_session(db)) return NULL;
    session_lock(db->session);
    const char *file = session_file(db->session, name == NULL ? "main" : name);
    const char *kept = file == NULL ? NULL : keep_name(db, file, 0, NULL);
    session_unlock(db->session);
    return kept;
}

int
sqlite3_db_readonly(sqlite3 *db, const char *name)
{
    if (name == NULL) name = "main";
    if (!has_session(db) || session_file(db->session, name) == NULL) return -1;
    return session_database_is_read_only(db->session, name);
}

const char *
sqlite3_db_name(sqlite3 *db, int at)
{
    return has_session(db) && at >= 0 ? session_database_name(db->session, (u32)at) : NULL;
}

int
sqlite3_txn_state(sqlite3 *db, const char *schema)
{
    if (!has_session(db)) return -1;
    if (schema != NULL && session_file(db->session, schema) == NULL) return -1;
    if (session_may_write(db->session)) return SQLITE_TXN_WRITE;
    return session_autocommit(db->session) ? SQLITE_TXN_NONE : SQLITE_TXN_READ;
}

int
sqlite3_db_cacheflush(sqlite3 *db)
{
    return has_session(db) ? SQLITE_OK : SQLITE_MISUSE;
}

int
sqlite3_db_release_memory(sqlite3 *db)
{
    return has_session(db) ? SQLITE_OK : SQLITE_MISUSE;
}
