/*
 * session_api.c -- SQLite's session extension (recording changesets), which is not here yet.
 *
 * Its names exist because SQLite's own shell is linked against them and would not start without; no
 * session can be made, so the functions that take one are only ever called with NULL.
 */
#include "capi/capi.h"

typedef struct sqlite3_session sqlite3_session;

EXPORT int sqlite3session_create(sqlite3 *db, const char *name, sqlite3_session **session_out);
EXPORT void sqlite3session_delete(sqlite3_session *session);
EXPORT int sqlite3session_enable(sqlite3_session *session, int enable);
EXPORT int sqlite3session_indirect(sqlite3_session *session, int indirect);
EXPORT int sqlite3session_attach(sqlite3_session *session, const char *table);
EXPORT void sqlite3session_table_filter(sqlite3_session *session,
                                        int (*filter)(void *arg, const char *table), void *arg);
EXPORT int sqlite3session_changeset(sqlite3_session *session, int *bytes_out, void **changes_out);
EXPORT int sqlite3session_patchset(sqlite3_session *session, int *bytes_out, void **changes_out);
EXPORT int sqlite3session_isempty(sqlite3_session *session);

int
sqlite3session_create(sqlite3 *db, const char *name, sqlite3_session **session_out)
{
    (void)name;
    if (session_out != NULL) *session_out = NULL;
    return capi__absent(db, "sqlite3session_create");
}

void
sqlite3session_delete(sqlite3_session *session)
{
    (void)session;
}

int
sqlite3session_enable(sqlite3_session *session, int enable)
{
    (void)session;
    (void)enable;
    return 0;
}

int
sqlite3session_indirect(sqlite3_session *session, int indirect)
{
    (void)session;
    (void)indirect;
    return 0;
}

int
sqlite3session_attach(sqlite3_session *session, const char *table)
{
    (void)session;
    (void)table;
    return SQLITE_MISUSE;
}

void
sqlite3session_table_filter(sqlite3_session *session, int (*filter)(void *arg, const char *table),
                            void *arg)
{
    (void)session;
    (void)filter;
    (void)arg;
}

int
sqlite3session_changeset(sqlite3_session *session, int *bytes_out, void **changes_out)
{
    (void)session;
    if (bytes_out != NULL) *bytes_out = 0;
    if (changes_out != NULL) *changes_out = NULL;
    return SQLITE_MISUSE;
}

int
sqlite3session_patchset(sqlite3_session *session, int *bytes_out, void **changes_out)
{
    return sqlite3session_changeset(session, bytes_out, changes_out);
}

int
sqlite3session_isempty(sqlite3_session *session)
{
    (void)session;
    return 1;
}
