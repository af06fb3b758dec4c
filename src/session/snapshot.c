/*
 * snapshot.c -- a moment of a database, kept for others to read (sqlite3_snapshot).
 *
 * A snapshot is a reader beside the session that it was taken of: as long as it lives, the store
 * keeps what it sees, and a transaction may join it.
 */
#include "session/session__impl.h"

struct SessionSnapshot {
    Session *reader; /* With a transaction on its main database. */
};

static SessionDb *
find_db(Session *session, const char *name)
{
    CatalogView view;
    session__catalog_view(session, &view);
    i32 at = catalog_view_database(&view, SLICE(name, strlen(name)));
    return at < 0 ? NULL : &session->db[at];
}

/* The database, if a transaction of it can begin or go on reading at another moment. */
static Err
readable(Session *session, const char *name, SessionDb **db_out)
{
    SessionDb *db = find_db(session, name);
    *db_out = db;
    if (db == NULL) return session_set_error(session, ERR_SQL, "unknown database %s", name);
    /* SQLite has snapshots of files only. */
    if (db->database == NULL || store_path(db->database->store)[0] == 0)
        return session_set_error(session, ERR_SQL, "%s is not a database in a file", name);
    if (!session->in_transaction)
        return session_set_error(session, ERR_SQL, "a snapshot needs an open transaction");
    if (session->level == STORE_READ_COMMITTED && !session__single(session))
        return session_set_error(session, ERR_SQL, "READ COMMITTED keeps no snapshot");
    if (db->has_token || (db->txn != NULL && store_txn_has_written(db->txn)))
        return session_set_error(session, ERR_SQL, "the transaction writes to %s", name);
    return OK;
}

static Err
get(Session *session, const char *name, SessionSnapshot *snapshot)
{
    SessionDb *db;
    Err err = readable(session, name, &db);
    if (err == OK) err = session__ensure_txn(session);
    if (err != OK) return err;
    session->has_read = true; /* From now on it keeps its snapshot. */
    err = session__open_beside(session, (u32)(db - session->db), &snapshot->reader);
    if (err != OK) return session__fail(session, err, NULL);
    Session *reader = snapshot->reader;
    err = session__begin_on(reader, 0);
    if (err == OK) err = store_txn_join(reader->db[0].txn, db->txn);
    return err == OK ? OK : session__fail(session, err, NULL);
}

Err
session_snapshot_get(Session *session, const char *name, SessionSnapshot **snapshot_out)
{
    RtTask *previous;
    *snapshot_out = NULL;
    session_lock(session);
    session__enter(session, &previous);
    SessionSnapshot *snapshot = MEM_NEW(SessionSnapshot);
    Err err = snapshot == NULL ? session__fail(session, ERR_NOMEM, NULL)
                               : get(session, name, snapshot);
    session__leave(session, previous);
    session_unlock(session);
    if (err == OK) {
        *snapshot_out = snapshot;
    } else {
        session_snapshot_free(snapshot);
    }
    return err;
}

static Err
join(Session *session, const char *name, const SessionSnapshot *snapshot, bool *stranger_out)
{
    SessionDb *db;
    Err err = readable(session, name, &db);
    if (err != OK) return err;
    if (db->txn != NULL && session->running > 0)
        return session_set_error(session, ERR_SQL, "SQL statements in progress");
    *stranger_out = snapshot->reader->db[0].database != db->database;
    if (*stranger_out)
        return session_set_error(session, ERR_SQL, "the snapshot is of another database");
    err = session__ensure_txn(session);
    if (err == OK) err = store_txn_join(db->txn, snapshot->reader->db[0].txn);
    if (err != OK) return session__store_error(session, (u32)(db - session->db), err);
    session->has_read = true;
    session->write_no++;
    /* The schema may be an older one: it is read again. */
    db->verified = false;
    db->ddl_at_begin = U64_MAX;
    return OK;
}

Err
session_snapshot_open(Session *session, const char *name, const SessionSnapshot *snapshot,
                      bool *stranger_out)
{
    RtTask *previous;
    *stranger_out = false;
    session_lock(session);
    session__enter(session, &previous);
    Err err = join(session, name, snapshot, stranger_out);
    session__leave(session, previous);
    session_unlock(session);
    return err;
}

int
session_snapshot_compare(const SessionSnapshot *a, const SessionSnapshot *b)
{
    u64 moment_a = store_txn_moment(a->reader->db[0].txn);
    u64 moment_b = store_txn_moment(b->reader->db[0].txn);
    return (moment_a > moment_b) - (moment_a < moment_b);
}

Err
session_snapshot_recover(Session *session, const char *name)
{
    session_lock(session);
    SessionDb *db = find_db(session, name);
    Err err = OK;
    if (db == NULL) {
        err = session_set_error(session, ERR_SQL, "unknown database %s", name);
    } else if (db->database == NULL || store_path(db->database->store)[0] == 0) {
        err = session_set_error(session, ERR_SQL, "%s is not a database in a file", name);
    } else if (db->txn != NULL) {
        err = session_set_error(session, ERR_SQL, "%s is in a transaction", name);
    }
    session_unlock(session);
    return err;
}

void
session_snapshot_free(SessionSnapshot *snapshot)
{
    if (snapshot == NULL) return;
    session_destroy(snapshot->reader);
    mem_free(snapshot);
}
