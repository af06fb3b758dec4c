/*
 * copy_step.c -- a database copied in steps (sqlite3_backup).
 *
 * Between its steps a copy holds a reader beside the source's session, with a snapshot, and a
 * writer beside the target's, with an open transaction: so neither session is kept from anything
 * but, if it is the target's, from writing.  What a crash leaves is the target as it was.
 */
#include "session/copy__impl.h"

struct SessionCopy {
    RtMutex mutex;      /* One step at a time. */
    Session *from, *to; /* The program's. */
    char *from_name, *to_name;
    Session *reader; /* NULL: there is no work under way, or nothing to read. */
    Session *writer; /* NULL: there is no work under way. */
    CopyWork work;
    u64 pages, left;
    u64 changes, commits; /* Of the source, and of `from` in it: when the count began. */
    bool begun;
    bool stale; /* `from` has changed the source: the last step copies all. */
    bool done;
};

static Err
out_of_memory(ErrMsg *msg)
{
    return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
}

Err
session_copy_open(Session *from, const char *from_name, Session *to, const char *to_name,
                  SessionCopy **copy_out)
{
    ASSERT(from != to);
    SessionCopy *copy = MEM_NEW(SessionCopy);
    *copy_out = NULL;
    if (copy == NULL) return ERR_NOMEM;
    copy->from = from;
    copy->to = to;
    copy->from_name = mem_strdup(from_name);
    copy->to_name = mem_strdup(to_name);
    if (copy->from_name == NULL || copy->to_name == NULL) {
        session_copy_close(copy);
        return ERR_NOMEM;
    }
    *copy_out = copy;
    return OK;
}

/* Take back what was copied. */
static void
drop_work(SessionCopy *copy)
{
    copy__work_free(&copy->work);
    session_destroy(copy->writer);
    session_destroy(copy->reader);
    copy->writer = copy->reader = NULL;
}

/* The source may have moved since the count began: then start over, or leave all to the last step.
   What has no name is started over in any case, as in SQLite. */
static void
notice_changes(SessionCopy *copy, const SessionDb *db)
{
    if (db->database == NULL) return;
    const Store *store = db->database->store;
    u64 changes = store_change_number(store);
    u64 own = db->commits - copy->commits, all = changes - copy->changes;
    if (copy->begun && all != 0) {
        drop_work(copy);
        copy->begun = copy->stale = own == all && store_path(store)[0] != 0;
    }
    copy->changes = changes;
    copy->commits = db->commits;
}

/* Look at the source, with its session locked.  A reader is opened if no work is under way and
   there is something to read (temp may have no store). */
static Err
look_locked(SessionCopy *copy, Session **reader_out, ErrMsg *msg)
{
    i32 at = copy__find_database(copy->from, copy->from_name);
    if (at < 0) return err_set(msg, ERR_SQL, "unknown database %s", copy->from_name);
    const SessionDb *db = &copy->from->db[at];
    if (db->txn != NULL && store_txn_has_written(db->txn))
        return err_set(msg, ERR_LOCKED, "the source has written in an open transaction");
    notice_changes(copy, db);
    if (copy->writer != NULL || db->database == NULL) return OK;
    Err err = session__open_beside(copy->from, (u32)at, reader_out);
    return err == OK ? OK : out_of_memory(msg);
}

static Err
look(SessionCopy *copy, Session **reader_out, ErrMsg *msg)
{
    *reader_out = NULL;
    session_lock(copy->from);
    Err err = look_locked(copy, reader_out, msg);
    session_unlock(copy->from);
    return err;
}

static Err
open_writer(SessionCopy *copy, ErrMsg *msg)
{
    RtTask *previous;
    Session *to = copy->to;
    session_lock(to);
    session__enter(to, &previous);
    i32 at = copy__find_database(to, copy->to_name);
    Err err = at < 0 ? err_set(msg, ERR_SQL, "unknown database %s", copy->to_name) : OK;
    if (err == OK && at == 1) {
        err = session__open_temp(to);
        if (err != OK) err_set(msg, err, "%s", err_message(session_error(to)));
    }
    if (err == OK && session__open_beside(to, (u32)at, &copy->writer) != OK)
        err = out_of_memory(msg);
    session__leave(to, previous);
    session_unlock(to);
    return err;
}

static Err
take_snapshot(Session *reader, ErrMsg *msg)
{
    RtTask *previous;
    session__enter(reader, &previous);
    Err err = session__ensure_txn(reader);
    if (err == OK) err = session__refresh_catalogs(reader);
    if (err != OK) err_set(msg, err, "%s", err_message(session_error(reader)));
    session__leave(reader, previous);
    return err;
}

/* Say what the store says of an error in the writer's transaction. */
static Err
explain_failure(SessionCopy *copy, Err err, ErrMsg *msg)
{
    const ErrMsg *cause = store_txn_error(copy->writer->db[0].txn);
    return err_set(msg, err, "%s", cause->err == err ? err_message(cause) : err_text(err));
}

/* With a reader (or none: an empty source): become the writer and empty the target. */
static Err
begin_work(SessionCopy *copy, ErrMsg *msg)
{
    RtTask *previous;
    Err err = copy->reader == NULL ? OK : take_snapshot(copy->reader, msg);
    if (err == OK) err = open_writer(copy, msg);
    if (err != OK) return err;
    session__enter(copy->writer, &previous);
    err = copy__target_begin(copy->writer, 0, msg);
    if (err == OK && copy->reader != NULL) {
        const SessionDb *source = &copy->reader->db[0];
        err = copy__work_begin(&copy->work, source->database->store, source->txn, source->catalog,
                               copy->writer->db[0].txn);
        if (err != OK) (void)explain_failure(copy, err, msg);
    }
    session__leave(copy->writer, previous);
    if (err != OK) return err;
    u64 pages = copy->reader == NULL ? 1 : copy->work.pages_left;
    if (!copy->stale) copy->left = pages;
    copy->pages = pages;
    copy->begun = true;
    return OK;
}

static Err
do_work(SessionCopy *copy, u64 pages, ErrMsg *msg)
{
    RtTask *previous;
    session__enter(copy->writer, &previous);
    Err err = copy->reader == NULL ? OK : copy__work_run(&copy->work, pages);
    if (err != OK) (void)explain_failure(copy, err, msg);
    u64 left = copy->reader == NULL ? copy->left - MIN_OF(copy->left, pages)
                                    : copy->work.pages_left;
    if (err == OK && left == 0) {
        copy__work_free(&copy->work);
        err = copy__target_end(copy->writer, 0, OK, msg);
    }
    session__leave(copy->writer, previous);
    if (err != OK) return err;
    copy->left = left;
    copy->done = left == 0;
    return OK;
}

static Err
step(SessionCopy *copy, u64 pages, ErrMsg *msg)
{
    Session *reader;
    if (copy->done) return OK;
    Err err = look(copy, &reader, msg);
    if (err == OK && copy->writer == NULL) {
        if (copy->stale && pages < copy->left) {
            session_destroy(reader);
            copy->left -= pages;
            return OK;
        }
        copy->reader = reader;
        err = begin_work(copy, msg);
        if (err == OK && copy->stale) pages = U64_MAX;
    }
    if (err == OK) err = do_work(copy, pages, msg);
    /* What waits for another's transaction to end keeps what it has. */
    if (copy->done || (err != OK && err != ERR_LOCKED)) drop_work(copy);
    return err;
}

Err
session_copy_step(SessionCopy *copy, u64 pages, bool *done_out, ErrMsg *msg)
{
    rt_mutex_lock(&copy->mutex);
    Err err = step(copy, pages, msg);
    *done_out = copy->done;
    rt_mutex_unlock(&copy->mutex);
    return err;
}

void
session_copy_progress(const SessionCopy *copy, u64 *left_out, u64 *pages_out)
{
    *left_out = copy->left;
    *pages_out = copy->pages;
}

void
session_copy_close(SessionCopy *copy)
{
    if (copy == NULL) return;
    drop_work(copy);
    mem_free(copy->from_name);
    mem_free(copy->to_name);
    mem_free(copy);
}

/* ---- a whole file at once ---- */

#define BACKUP_PAGES 256u /* A look at interrupts after so many. */

static Err
backup_by_pages(Store *store, const char *path, ErrMsg *msg)
{
    StoreBackup *backup;
    bool more = true;
    Err err = store_backup_open(store, path, &backup, msg);
    while (err == OK && more) {
        err = store_backup_step(backup, BACKUP_PAGES, &more, msg);
        if (err == OK && more && (err = rt_check()) != OK) err_set(msg, err, NULL);
    }
    store_backup_close(backup);
    return err;
}

/* Row by row, in one transaction of a new store. */
static Err
backup_by_rows(Session *session, const char *name, const char *path, ErrMsg *msg)
{
    Session *to;
    bool done = false;
    Err err = copy__target_open(session, path, &to, msg);
    SessionCopy *copy = NULL;
    if (err == OK) err = session_copy_open(session, name, to, "main", &copy);
    if (err == OK) err = session_copy_step(copy, U64_MAX, &done, msg);
    if (err != OK && msg->err == OK) err_set(msg, err, NULL);
    session_copy_close(copy);
    session_destroy(to);
    return err;
}

Err
session_backup(Session *session, const char *name, const char *path)
{
    RtTask *previous;
    ErrMsg msg = {.sql_offset = -1};
    session_lock(session);
    session__enter(session, &previous);
    i32 at = copy__find_database(session, name);
    Err err = at < 0 ? err_set(&msg, ERR_SQL, "unknown database %s", name) : OK;
    bool has_pages = at >= 0 && session->db[at].database != NULL;
    if (err == OK && has_pages) {
        err = backup_by_pages(session->db[at].database->store, path, &msg);
        has_pages = err != ERR_UNSUPPORTED; /* In memory, or a log that only memory has. */
        if (!has_pages) err_clear(&msg);
    }
    if (at >= 0 && !has_pages) err = backup_by_rows(session, name, path, &msg);
    if (err != OK) {
        session__fail(session, err, &msg);
    } else {
        err_clear(&session->error);
    }
    session__leave(session, previous);
    session_unlock(session);
    return err;
}
