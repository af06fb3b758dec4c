/*
 * setting.c -- settings of a connection that the host program turns, and questions about its schema
 * that need no statement.
 */
#include "session/virtual__impl.h"

/* ---- settings ---- */

/* The flag of a setting; *inverted_out: true means off. */
static bool *
flag_of(Session *session, SessionSetting setting, bool *inverted_out)
{
    *inverted_out = true;
    switch (setting) {
    case SESSION_FOREIGN_KEYS: *inverted_out = false; return &session->foreign_keys;
    case SESSION_REVERSE_SCANS: *inverted_out = false; return &session->reverse_unordered;
    case SESSION_WRITABLE_SCHEMA: *inverted_out = false; return &session->reserved_names;
    case SESSION_TRIGGERS: return &session->triggers_off;
    case SESSION_VIEWS: return &session->views_off;
    case SESSION_DOUBLE_QUOTED_DML: return &session->strings_off_dml;
    case SESSION_DOUBLE_QUOTED_DDL: return &session->strings_off_ddl;
    case SESSION_SETTINGS: break;
    }
    UNREACHABLE();
}

int
session_setting(Session *session, SessionSetting setting, int value)
{
    bool inverted;
    session_lock(session);
    bool *flag = flag_of(session, setting, &inverted);
    /* As PRAGMA foreign_keys: not within a transaction. */
    bool fixed = setting == SESSION_FOREIGN_KEYS && session->in_transaction;
    if (value >= 0 && !fixed && *flag != ((value != 0) != inverted)) {
        *flag = !*flag;
        session->exec_env.foreign_keys = session->foreign_keys;
        session->environment++; /* Plans are made anew. */
    }
    int now = *flag != inverted;
    session_unlock(session);
    return now;
}

bool
session_has_deferred_violations(const Session *session)
{
    return session->deferred_violations > 0;
}

void
session_set_without_virtual(Session *session, bool without)
{
    session->without_virtual = without;
}

bool
session_is_read_only(const Session *session)
{
    return session_database_is_read_only(session, "main");
}

static SessionDb *
find_database(const Session *session, const char *name)
{
    CatalogView view;
    session__catalog_view(session, &view);
    i32 at = catalog_view_database(&view, SLICE(name, strlen(name)));
    return at < 0 ? NULL : (SessionDb *)(uintptr_t)&session->db[at];
}

bool
session_has_store(const Session *session, const char *name)
{
    const SessionDb *db = find_database(session, name);
    return db != NULL && db->database != NULL;
}

bool
session_database_is_read_only(const Session *session, const char *name)
{
    const SessionDb *db = find_database(session, name);
    if (session->options.read_only) return true;
    return db != NULL && db->database != NULL &&
           (db->read_only || store_is_read_only(db->database->store));
}

bool
session_set_database_read_only(Session *session, const char *name, bool read_only)
{
    SessionDb *db = find_database(session, name);
    bool former = db != NULL && db->read_only;
    if (db != NULL) db->read_only = read_only;
    return former;
}

bool
session_may_write(const Session *session)
{
    for (u32 i = 0; i < session->db_count; i++) {
        if (session->db[i].has_token) return true;
    }
    return session_in_write_transaction(session);
}

const char *
session_database_name(const Session *session, u32 at)
{
    if (at == 0) return "main";
    return at < session->db_count ? session->db[at].name : NULL;
}

/* ---- columns ---- */

static bool
is_rowid_name(const char *name)
{
    return text_compare_nocase(name, "rowid") == 0 || text_compare_nocase(name, "oid") == 0 ||
           text_compare_nocase(name, "_rowid_") == 0;
}

static bool
in_key(const TableDef *table, u32 at)
{
    const IndexDef *key = table->primary_key;
    if (table->column[at].primary_key || table->rowid_column == at) return true;
    for (u32 i = 0; key == NULL && i < table->index_count; i++) {
        if (table->index[i]->origin == INDEX_PRIMARY_KEY) key = table->index[i];
    }
    for (u32 i = 0; key != NULL && i < key->key_columns; i++) {
        if (key->column[i].column == at) return true;
    }
    return false;
}

static bool
fill_column(const TableDef *table, const char *name, SessionColumn *out)
{
    u32 at = 0;
    while (at < table->column_count && text_compare_nocase(table->column[at].name, name) != 0)
        at++;
    if (at == table->column_count) {
        if (table->without_rowid || !is_rowid_name(name)) return false;
        if (table->rowid_column == COLUMN_ROWID) {
            *out = (SessionColumn){.type = "INTEGER", .collation = "BINARY", .primary_key = true};
            return true;
        }
        at = table->rowid_column;
    }
    const ColumnDef *column = &table->column[at];
    *out = (SessionColumn){
        .type = column->type_text,
        .collation = column->host_collation != NULL ? column->host_collation
                     : column->collation == NULL    ? "BINARY"
                                                    : column->collation->name,
        .not_null = column->not_null,
        .primary_key = in_key(table, at),
        .autoincrement = table->autoincrement && table->rowid_column == at,
    };
    return true;
}

static Err
find_column(Session *session, const char *database, const char *table, const char *column,
            SessionColumn *out)
{
    CatalogView view;
    Err err = session__ensure_txn(session);
    if (err == OK) err = session__refresh_catalogs(session);
    if (err != OK) return err;
    session__catalog_view(session, &view);
    Slice schema = database == NULL ? SLICE_NONE : SLICE(database, strlen(database));
    const TableDef *def = catalog_view_table(&view, schema, SLICE(table, strlen(table)), NULL);
    if (def != NULL && def->is_virtual) {
        ErrMsg msg = {.sql_offset = -1};
        def = virtual__resolve(session, def, SLICE_NONE, &msg);
        if (msg.err != OK) return session__fail(session, msg.err, &msg);
    }
    bool found = def != NULL && !def->is_view;
    *out = (SessionColumn){.type = NULL};
    if (found && column != NULL) found = fill_column(def, column, out);
    if (found) return OK;
    return session_set_error(session, ERR_SQL, "no such table column: %s.%s", table,
                             column == NULL ? "(null)" : column);
}

Err
session_find_column(Session *session, const char *database, const char *table, const char *column,
                    SessionColumn *column_out)
{
    RtTask *previous;
    session_lock(session);
    session__enter(session, &previous);
    err_clear(&session->error);
    Err err = find_column(session, database, table, column, column_out);
    ErrMsg kept = {.sql_offset = -1};
    if (err != OK) err_move(&kept, &session->error);
    Err end = session__autocommit_end(session, true);
    if (err != OK) session__fail(session, err, &kept);
    session__leave(session, previous);
    session_unlock(session);
    return err != OK ? err : end;
}
