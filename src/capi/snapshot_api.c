/*
 * snapshot_api.c -- sqlite3_snapshot: a moment of a database, for other connections to read.
 *
 * SQLite's snapshot is a place in the log, which the next checkpoint may take away; ours keeps what
 * it sees until it is freed.
 */
#include "capi/capi.h"

int
sqlite3_snapshot_get(sqlite3 *db, const char *name, sqlite3_snapshot **snapshot_out)
{
    if (!capi__db_ok(db) || db->session == NULL || snapshot_out == NULL) return SQLITE_MISUSE;
    SessionSnapshot *snapshot;
    Err err = session_snapshot_get(db->session, name == NULL ? "main" : name, &snapshot);
    *snapshot_out = (sqlite3_snapshot *)(void *)snapshot;
    return capi__result(db, err);
}

int
sqlite3_snapshot_open(sqlite3 *db, const char *name, sqlite3_snapshot *snapshot)
{
    if (!capi__db_ok(db) || db->session == NULL || snapshot == NULL) return SQLITE_MISUSE;
    bool stranger;
    const SessionSnapshot *inner = (const SessionSnapshot *)(void *)snapshot;
    Err err = session_snapshot_open(db->session, name == NULL ? "main" : name, inner, &stranger);
    int code = capi__result(db, err);
    return stranger ? capi__code(db, SQLITE_ERROR_SNAPSHOT) : code;
}

void
sqlite3_snapshot_free(sqlite3_snapshot *snapshot)
{
    session_snapshot_free((SessionSnapshot *)(void *)snapshot);
}

int
sqlite3_snapshot_cmp(sqlite3_snapshot *a, sqlite3_snapshot *b)
{
    if (a == NULL || b == NULL) return 0;
    return session_snapshot_compare((const SessionSnapshot *)(void *)a,
                                    (const SessionSnapshot *)(void *)b);
}

int
sqlite3_snapshot_recover(sqlite3 *db, const char *name)
{
    if (!capi__db_ok(db) || db->session == NULL) return SQLITE_MISUSE;
    /* Every snapshot that there is can be opened already. */
    return capi__result(db, session_snapshot_recover(db->session, name == NULL ? "main" : name));
}
