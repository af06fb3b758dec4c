/*
 * preupdate_api.c -- the hook before each change of a row, and what it may ask.
 *
 * A value asked for lives until the hook returns.
 */
#include "capi/capi.h"

#include "value/host_table.h"

typedef struct Preupdate {
    const SessionPreupdate *change;
    sqlite3_value *old_value, *new_value; /* [column_count], made on demand. */
    struct Preupdate *outer;
} Preupdate;

static void
free_values(sqlite3_value *value, u32 count)
{
    for (u32 i = 0; value != NULL && i < count; i++)
        value__clear(&value[i]);
    mem_free(value);
}

static void
preupdate(void *arg, const SessionPreupdate *change)
{
    sqlite3 *db = arg;
    Preupdate now = {.change = change, .outer = db->change};
    db->change = &now;
    db->preupdate(db->preupdate_arg, db, change->action, change->database, change->table,
                  change->rowid_old, change->rowid_new);
    db->change = now.outer;
    free_values(now.old_value, change->column_count);
    free_values(now.new_value, change->column_count);
}

void *
sqlite3_preupdate_hook(sqlite3 *db,
                       void (*function)(void *, sqlite3 *, int, const char *, const char *,
                                        sqlite3_int64, sqlite3_int64),
                       void *arg)
{
    if (!capi__db_ok(db) || db->session == NULL) return NULL;
    session_lock(db->session);
    SessionHooks hooks = *session_hooks(db->session);
    void *former = db->preupdate_arg;
    db->preupdate = function;
    db->preupdate_arg = arg;
    hooks.preupdate = function == NULL ? NULL : preupdate;
    hooks.preupdate_arg = db;
    session_set_hooks(db->session, &hooks);
    session_unlock(db->session);
    return former;
}

static int
row_value(sqlite3 *db, int at, bool of_new, sqlite3_value **value_out)
{
    if (value_out == NULL) return SQLITE_MISUSE;
    *value_out = NULL;
    if (!capi__db_ok(db) || db->change == NULL) return SQLITE_MISUSE;
    const SessionPreupdate *change = db->change->change;
    const Cell *row = of_new ? change->row_new : change->row_old;
    if (row == NULL) return SQLITE_MISUSE;
    if (at < 0 || (u32)at >= change->column_count) return SQLITE_RANGE;
    sqlite3_value **values = of_new ? &db->change->new_value : &db->change->old_value;
    if (*values == NULL) *values = MEM_NEW_ARRAY(sqlite3_value, change->column_count);
    if (*values == NULL) return SQLITE_NOMEM;
    (*values)[at].cell = row[at];
    *value_out = &(*values)[at];
    return SQLITE_OK;
}

int
sqlite3_preupdate_old(sqlite3 *db, int at, sqlite3_value **value_out)
{
    return row_value(db, at, false, value_out);
}

int
sqlite3_preupdate_new(sqlite3 *db, int at, sqlite3_value **value_out)
{
    return row_value(db, at, true, value_out);
}

int
sqlite3_preupdate_count(sqlite3 *db)
{
    return capi__db_ok(db) && db->change != NULL ? (int)db->change->change->column_count : 0;
}

int
sqlite3_preupdate_depth(sqlite3 *db)
{
    return capi__db_ok(db) && db->change != NULL ? (int)db->change->change->depth : 0;
}

/* A blob is written by an UPDATE of its row, so that no change is one of sqlite3_blob_write. */
int
sqlite3_preupdate_blobwrite(sqlite3 *db)
{
    (void)db;
    return -1;
}
