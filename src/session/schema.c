/*
 * schema.c -- which catalogs a session plans against.
 *
 * Truth is the schema version that the open snapshot sees.  Reading it costs one key look-up a
 * statement, so it is skipped while the store's DDL counters have not moved since the last check:
 * all DDL of a store happens in this process, and raises ddl_started before its commit can become
 * visible and ddl_finished after.
 */
#include "func/func_builtin.h"
#include "session/virtual__impl.h"

static Err
load_catalog(Session *session, SessionDb *db, u64 version)
{
    /* Shared catalogs say "main" and 0; an attached database has a name and number of its own. */
    bool is_shared = db == &session->db[0];
    Catalog *catalog = is_shared ? database__catalog(db->database, version) : NULL;
    if (catalog == NULL) {
        ErrMsg msg = {.sql_offset = -1};
        Err err = catalog_load(db->txn, &db->env, &catalog, &msg);
        if (err != OK) return session__fail(session, err, &msg);
        if (is_shared && !db->own_ddl) database__publish(db->database, catalog);
    }
    catalog_release(db->catalog);
    db->catalog = catalog;
    return OK;
}

bool
session__catalogs_stand(const Session *session)
{
    if (session->open_txns > 0) return false; /* Their snapshots say what holds. */
    for (u32 i = 0; i < session->db_count; i++) {
        const SessionDb *db = &session->db[i];
        if (db->database == NULL) continue;
        u64 started = rt_load_acquire(&db->database->ddl_started);
        if (db->catalog == NULL || db->own_ddl || db->verified_at != started) return false;
        if (started != rt_load_acquire(&db->database->ddl_finished)) return false;
    }
    return true;
}

bool
session__verify_at_once(SessionDb *db)
{
    bool quiet = db->ddl_at_begin == rt_load_acquire(&db->database->ddl_finished);
    if (db->catalog == NULL || !quiet || db->verified_at != db->ddl_at_begin) return false;
    db->verified = true;
    return true;
}

static Err
refresh_catalog(Session *session, u32 at)
{
    SessionDb *db = &session->db[at];
    if (db->verified && db->catalog != NULL) return OK;
    ASSERT(db->txn != NULL);
    if (session__verify_at_once(db)) return OK;
    bool quiet = db->ddl_at_begin == rt_load_acquire(&db->database->ddl_finished);
    u64 version;
    Err err = catalog_version(db->txn, &version);
    if (err != OK) return session__store_error(session, at, err);
    if (db->catalog == NULL || catalog_get_version(db->catalog) != version) {
        err = load_catalog(session, db, version);
        if (err != OK) return err;
    }
    db->verified = true;
    db->verified_at = quiet && !db->own_ddl ? db->ddl_at_begin : U64_MAX;
    return OK;
}

Err
session__refresh_catalogs(Session *session)
{
    for (u32 i = 0; i < session->db_count; i++) {
        if (session->db[i].database == NULL) continue;
        Err err = refresh_catalog(session, i);
        if (err != OK) return err;
    }
    return OK;
}

void
session__catalog_view(const Session *session, CatalogView *view_out)
{
    *view_out = (CatalogView){.count = session->db_count};
    for (u32 i = 0; i < session->db_count; i++) {
        view_out->db[i].name = session->db[i].name;
        view_out->db[i].catalog = session->db[i].catalog;
    }
}

void
session__set_own_catalog(Session *session, u32 database, Catalog *catalog)
{
    SessionDb *db = &session->db[database];
    catalog_release(db->catalog);
    db->catalog = catalog;
    db->own_ddl = true;
    db->verified = true;
    db->verified_at = U64_MAX;
}

void
session__forget_own_catalogs(Session *session)
{
    for (u32 i = 0; i < session->db_count; i++) {
        SessionDb *db = &session->db[i];
        if (!db->own_ddl) continue;
        /* Whatever the undo left is read again; `own_ddl` stays until the transaction ends. */
        catalog_release(db->catalog);
        db->catalog = NULL;
        db->verified = false;
        db->verified_at = U64_MAX;
    }
}

Err
session__open_temp(Session *session)
{
    SessionDb *db = &session->db[1];
    if (db->database != NULL) return OK;
    StoreOptions options = {.in_memory = true, .create = true};
    ErrMsg msg = {.sql_offset = -1};
    Err err = database__open(session->process, NULL, &options, &db->database, &msg);
    if (err != OK) return session__fail(session, err, &msg);
    db->env = (CatalogEnv){.schema = "temp", .database = 1, .store = db->database->store};
    return OK;
}

/* ---- what the planner may ask ---- */

static f64
plan_table_rows(void *arg, const TableDef *table)
{
    (void)arg;
    if (table->store == NULL || table->tree == TREE_NONE) return -1;
    return (f64)store_estimate_rows(table->store, table->tree);
}

static const TableFunc *
plan_table_func(void *arg, Slice name)
{
    const SessionHooks *host = session_hooks(arg);
    const TableFunc *func = func_builtin_table_func(name);
    if (func == NULL && host->find_table_func != NULL)
        func = host->find_table_func(host->find_table_func_arg, name);
    return func != NULL ? func : database__pragma_function(name);
}

void
session__plan_context(Session *session, const CatalogView *view, PlanContext *context_out)
{
    *context_out = (PlanContext){
        .catalog = view,
        .functions = session->functions,
        .find_collation = session->find_collation,
        .collation_arg = session->collation_arg,
        .find_table_func = plan_table_func,
        .table_func_arg = session,
        .find_virtual = virtual__resolve,
        .virtual_arg = session,
        .table_rows = plan_table_rows,
        .rows_arg = session,
        .authorize = session->host.authorize,
        .authorize_arg = session->host.authorize_arg,
        .account = &session->account,
        .pool = &session->chunks,
        .columns_max = (u32)session->limit[2],
        .expr_depth_max = (u32)session->limit[3],
        .compound_max = (u32)session->limit[4],
        .function_args_max = (u32)session->limit[6],
        .param_max = (u32)session->limit[9],
        .foreign_keys = session->foreign_keys,
        .recursive_triggers = session->recursive_triggers,
        .ignore_check_constraints = session->ignore_check,
        .reverse_unordered = session->reverse_unordered,
        .count_changes = session->count_changes,
        .full_column_names = session->full_column_names,
        .long_column_names_off = session->long_column_names,
        .no_loop_index = session->plans == SESSION_PLANS_HASH,
        .no_hash_join = session->plans == SESSION_PLANS_LOOP,
        .no_decorrelation = session->plans == SESSION_PLANS_AS_WRITTEN,
        .plain = session->plans == SESSION_PLANS_PLAIN,
        .case_sensitive_like = session->case_sensitive_like,
        .triggers_off = session->triggers_off,
        .views_off = session->views_off,
        .strings_double_off = session->strings_off_dml,
    };
}
