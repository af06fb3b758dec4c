/*
 * backup_api.c -- sqlite3_backup, over the copies in steps of session/copy_step.c.
 *
 * The source is never held up, and whoever reads the target sees its old content until the last
 * step has committed the new one.  Errors are the target's, as in SQLite.
 */
#include "capi/capi.h"

struct sqlite3_backup {
    sqlite3 *to, *from;
    SessionCopy *copy;
    bool done;
    int code; /* Of the last step, unless it went well. */
};

static void
hold(sqlite3 *db, int by)
{
    session_lock(db->session);
    db->backups += (u32)by;
    session_unlock(db->session);
}

sqlite3_backup *
sqlite3_backup_init(sqlite3 *to, const char *to_name, sqlite3 *from, const char *from_name)
{
    if (!capi__db_ok(to) || to->session == NULL || to_name == NULL) return NULL;
    if (!capi__db_ok(from) || from->session == NULL || from_name == NULL) {
        (void)capi__fail(to, ERR_MISUSE, "%s", err_text(ERR_MISUSE));
        return NULL;
    }
    if (to == from) {
        (void)capi__fail(to, ERR_SQL, "source and destination must be distinct");
        return NULL;
    }
    const char *missing = session_file(from->session, from_name) == NULL ? from_name
                          : session_file(to->session, to_name) == NULL   ? to_name
                                                                         : NULL;
    if (missing != NULL) {
        (void)capi__fail(to, ERR_SQL, "unknown database %s", missing);
        return NULL;
    }
    if (!session_autocommit(to->session) || session_is_running(to->session)) {
        (void)capi__fail(to, ERR_SQL, "destination database is in use");
        return NULL;
    }
    sqlite3_backup *backup = MEM_NEW(sqlite3_backup);
    if (backup == NULL ||
        session_copy_open(from->session, from_name, to->session, to_name, &backup->copy) != OK) {
        mem_free(backup);
        (void)capi__fail(to, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
        return NULL;
    }
    backup->to = to;
    backup->from = from;
    hold(to, 1);
    hold(from, 1);
    return backup;
}

/* What another step may mend. */
static bool
is_passing(int code)
{
    int kind = code & 0xff;
    return kind == SQLITE_OK || kind == SQLITE_BUSY || kind == SQLITE_LOCKED;
}

int
sqlite3_backup_step(sqlite3_backup *backup, int pages)
{
    if (backup == NULL) return SQLITE_MISUSE;
    if (backup->done) return SQLITE_DONE;
    if (!is_passing(backup->code)) return backup->code;
    sqlite3 *to = backup->to;
    ErrMsg msg = {.sql_offset = -1};
    u64 most = pages < 0 ? U64_MAX : (u64)pages;
    Err err = session_copy_step(backup->copy, most, &backup->done, &msg);
    for (int tries = 0; err == ERR_BUSY && to->busy != NULL; tries++) {
        if (to->busy(to->busy_arg, tries) == 0) break;
        err_clear(&msg);
        err = session_copy_step(backup->copy, most, &backup->done, &msg);
    }
    backup->code = SQLITE_OK;
    if (err == ERR_LOCKED)
        backup->code = SQLITE_BUSY; /* As SQLite does, whose manual says SQLITE_LOCKED. */
    else if (err != OK)
        backup->code = capi__fail(to, err, "%s", err_message(&msg));
    err_clear(&msg);
    return backup->done ? SQLITE_DONE : backup->code;
}

int
sqlite3_backup_finish(sqlite3_backup *backup)
{
    if (backup == NULL) return SQLITE_OK;
    int code = backup->code;
    sqlite3 *to = backup->to, *from = backup->from;
    session_copy_close(backup->copy);
    mem_free(backup);
    hold(to, -1);
    hold(from, -1);
    capi__close_zombie(from);
    capi__close_zombie(to);
    return code;
}

int
sqlite3_backup_remaining(sqlite3_backup *backup)
{
    u64 left = 0, pages;
    if (backup != NULL) session_copy_progress(backup->copy, &left, &pages);
    return (int)MIN_OF(left, (u64)INT32_MAX);
}

int
sqlite3_backup_pagecount(sqlite3_backup *backup)
{
    u64 left, pages = 0;
    if (backup != NULL) session_copy_progress(backup->copy, &left, &pages);
    return (int)MIN_OF(pages, (u64)INT32_MAX);
}
