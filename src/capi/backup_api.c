/*
 * backup_api.c -- sqlite3_backup.
 *
 * A backup counts its steps as SQLite's does, in pages of its source as they would be, and starts
 * over when the source has changed; the last step makes the copy, of one snapshot and in one
 * transaction of the target.  So whoever writes to the source meanwhile is never held up, and
 * whoever reads the target sees the old content or the new one.
 */
#include "capi/capi.h"

struct sqlite3_backup {
    sqlite3 *to, *from;
    char *to_name, *from_name;
    u64 pages, left, change_number;
    bool begun, done;
    int code; /* An error that ends the backup. */
};

static void
free_backup(sqlite3_backup *backup)
{
    mem_free(backup->to_name);
    mem_free(backup->from_name);
    mem_free(backup);
}

static bool
has_database(sqlite3 *db, const char *name)
{
    u64 pages, change_number;
    return session_copy_size(db->session, name, &pages, &change_number) == OK;
}

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
    if (!has_database(from, from_name) || !has_database(to, to_name)) {
        const char *missing = has_database(from, from_name) ? to_name : from_name;
        (void)capi__fail(to, ERR_SQL, "unknown database %s", missing);
        return NULL;
    }
    if (!session_autocommit(to->session) || session_is_running(to->session)) {
        (void)capi__fail(to, ERR_SQL, "destination database is in use");
        return NULL;
    }
    sqlite3_backup *backup = MEM_NEW(sqlite3_backup);
    if (backup != NULL) {
        backup->to = to;
        backup->from = from;
        backup->to_name = mem_strdup(to_name);
        backup->from_name = mem_strdup(from_name);
    }
    if (backup == NULL || backup->to_name == NULL || backup->from_name == NULL) {
        if (backup != NULL) free_backup(backup);
        (void)capi__fail(to, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
        return NULL;
    }
    hold(to, 1);
    hold(from, 1);
    return backup;
}

/* How much there is to do; from the start if the source has changed. */
static Err
measure(sqlite3_backup *backup)
{
    u64 pages, change_number;
    Err err = session_copy_size(backup->from->session, backup->from_name, &pages, &change_number);
    if (err != OK) return err;
    if (!backup->begun || change_number != backup->change_number) backup->left = pages;
    backup->pages = pages;
    backup->change_number = change_number;
    backup->begun = true;
    return OK;
}

int
sqlite3_backup_step(sqlite3_backup *backup, int pages)
{
    if (backup == NULL) return SQLITE_MISUSE;
    if (backup->done) return SQLITE_DONE;
    if (backup->code != SQLITE_OK) return backup->code;
    Err err = measure(backup);
    if (err != OK) return capi__result(backup->from, err);
    if (pages >= 0 && (u64)pages < backup->left) {
        backup->left -= (u64)pages;
        return SQLITE_OK;
    }
    err = session_copy(backup->from->session, backup->from_name, backup->to->session,
                       backup->to_name);
    int code = capi__result(backup->to, err);
    if (code == SQLITE_OK) {
        backup->left = 0;
        backup->done = true;
        return SQLITE_DONE;
    }
    int kind = code & 0xff;
    if (kind != SQLITE_BUSY && kind != SQLITE_LOCKED) backup->code = code;
    return code;
}

int
sqlite3_backup_finish(sqlite3_backup *backup)
{
    if (backup == NULL) return SQLITE_OK;
    int code = backup->code;
    sqlite3 *to = backup->to, *from = backup->from;
    hold(to, -1);
    hold(from, -1);
    free_backup(backup);
    capi__close_zombie(from);
    capi__close_zombie(to);
    return code;
}

int
sqlite3_backup_remaining(sqlite3_backup *backup)
{
    return backup == NULL ? 0 : (int)backup->left;
}

int
sqlite3_backup_pagecount(sqlite3_backup *backup)
{
    return backup == NULL ? 0 : (int)backup->pages;
}
