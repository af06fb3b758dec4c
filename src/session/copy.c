/*
 * copy.c -- a whole database replaced by another: VACUUM INTO, backup.
 *
 * The copy is made from one snapshot in one transaction of the target: whoever looks sees the old
 * content or the new one.  Trees keep their contents and get new numbers.
 */
#include "session/copy__impl.h"

/* ---- trees ---- */

static Err
copy_tree(StoreTxn *from, TreeId from_tree, StoreTxn *to, TreeId to_tree)
{
    StoreCursor *cursor;
    bool found;
    StoreRun run = {0};
    Err err = store_cursor_open(from, from_tree, &cursor);
    if (err != OK) return err;
    err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    while (err == OK && found && !run.end) {
        err = store_cursor_fetch(cursor, 1024, (size_t)1 << 20, false, &run);
        for (u32 i = 0; err == OK && i < run.rows; i++) {
            StoreVerdict verdict;
            err = store_put(to, to_tree, run.key[i], run.value[i], STORE_PUT_ANY, &verdict);
        }
        if (err == OK) err = rt_check();
    }
    store_cursor_close(cursor);
    return err;
}

/* Old tree number -> new one. */
typedef struct TreeMap {
    TreeId *new_tree;
    u32 count;
} TreeMap;

static Err
map_init(TreeMap *map, const Catalog *catalog)
{
    TreeId most = TREE_NONE;
    for (u32 i = 0; i < catalog_table_count(catalog); i++) {
        const TableDef *table = catalog_table_at(catalog, i);
        most = MAX_OF(most, table->tree);
        for (u32 k = 0; k < table->index_count; k++)
            most = MAX_OF(most, table->index[k]->tree);
    }
    *map = (TreeMap){.new_tree = MEM_NEW_ARRAY(TreeId, (size_t)most + 1), .count = most + 1};
    return map->new_tree == NULL ? ERR_NOMEM : OK;
}

static Err
copy_one(StoreTxn *from, TreeId tree, StoreTxn *to, StoreTreeKind kind, TreeMap *map)
{
    Err err = store_tree_create(to, kind, &map->new_tree[tree]);
    return err == OK ? copy_tree(from, tree, to, map->new_tree[tree]) : err;
}

static Err
copy_trees(StoreTxn *from, const Catalog *catalog, StoreTxn *to, TreeMap *map)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < catalog_table_count(catalog); i++) {
        const TableDef *table = catalog_table_at(catalog, i);
        if (table->is_view || table->is_virtual) continue;
        err = copy_one(from, table->tree, to, copy__tree_kind(table), map);
        for (u32 k = 0; err == OK && k < table->index_count; k++)
            err = copy_one(from, table->index[k]->tree, to, STORE_TREE_BYTES, map);
    }
    return err;
}

/* ---- the target ---- */

static Err
drop_trees(StoreTxn *txn, const Catalog *catalog)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < catalog_table_count(catalog); i++) {
        const TableDef *table = catalog_table_at(catalog, i);
        if (table->is_view || table->is_virtual) continue;
        for (u32 k = 0; err == OK && k < table->index_count; k++)
            err = store_tree_drop(txn, table->index[k]->tree);
        if (err == OK) err = store_tree_drop(txn, table->tree);
    }
    return err;
}

Err
copy__target_begin(Session *to, u32 database, ErrMsg *msg)
{
    if (to->in_transaction || to->running > 0)
        return err_set(msg, ERR_SQL, "destination database is in use");
    Err err = database == 1 ? session__open_temp(to) : OK;
    if (err == OK) err = session__ensure_txn(to);
    if (err == OK) err = session__ensure_token(to, (i32)database);
    if (err == OK) err = session__refresh_catalogs(to);
    if (err != OK) return err_set(msg, err, "%s", err_message(session_error(to)));
    SessionDb *db = &to->db[database];
    i64 tree;
    u64 rows;
    err = drop_trees(db->txn, db->catalog);
    if (err == OK) err = catalog_get_number(db->txn, "schema_tree", &tree);
    if (err == OK) err = store_tree_clear(db->txn, (TreeId)tree, &rows);
    if (err == OK) {
        /* Versions of the schema are never used twice: catalogs are shared by them. */
        i64 version = (i64)catalog_get_version(db->catalog) + 1;
        err = catalog_set_number(db->txn, "schema_version", version);
    }
    if (err == OK) {
        db->own_ddl = true;
        session__forget_own_catalogs(to);
        return OK;
    }
    return err_set(msg, err, "%s", err_message(store_txn_error(db->txn)));
}

Err
copy__target_end(Session *to, u32 database, Err err, ErrMsg *msg)
{
    StoreTxn *txn = to->db[database].txn;
    if (err != OK && msg->err == OK && txn != NULL) {
        const ErrMsg *cause = store_txn_error(txn);
        err_set(msg, err, "%s", cause->err == err ? err_message(cause) : err_text(err));
    }
    /* As a statement that writes: what fails leaves nothing behind. */
    Err end = session__autocommit_end(to, err == OK);
    if (err == OK && end != OK) err_set(msg, end, "%s", err_message(session_error(to)));
    return err != OK ? err : end;
}

static Err
copy_numbers(StoreTxn *from, StoreTxn *to)
{
    /* The last three: what an imported file was like. */
    static const char *const names[] = {"user_version", "application_id", "sqlite_page_bytes",
                                        "sqlite_encoding", "sqlite_vacuum"};
    Err err = OK;
    for (u32 i = 0; err == OK && i < COUNT_OF(names); i++) {
        i64 number;
        err = catalog_get_number(from, names[i], &number);
        if (err == OK) err = catalog_set_number(to, names[i], number);
    }
    return err;
}

static Err
copy_content(StoreTxn *from, const Catalog *catalog, StoreTxn *to)
{
    i64 from_tree, to_tree;
    TreeMap map = {0};
    Err err = catalog_get_number(from, "schema_tree", &from_tree);
    if (err == OK) err = catalog_get_number(to, "schema_tree", &to_tree);
    if (err == OK) err = map_init(&map, catalog);
    if (err == OK) err = copy_trees(from, catalog, to, &map);
    if (err == OK) {
        err = catalog_copy_rows(from, (TreeId)from_tree, to, (TreeId)to_tree, map.new_tree,
                                map.count);
    }
    mem_free(map.new_tree);
    return err == OK ? copy_numbers(from, to) : err;
}

Err
copy__database(Session *session, u32 database, Session *to, u32 to_database, ErrMsg *msg)
{
    SessionDb *source = &session->db[database];
    Err err = copy__target_begin(to, to_database, msg);
    if (err == OK && source->database != NULL)
        err = copy_content(source->txn, source->catalog, to->db[to_database].txn);
    return copy__target_end(to, to_database, err, msg);
}

/* ---- the face ---- */

i32
copy__find_database(const Session *session, const char *name)
{
    CatalogView view;
    session__catalog_view(session, &view);
    return catalog_view_database(&view, SLICE(name, strlen(name)));
}

Err
copy__source_begin(Session *session)
{
    Err err = session__ensure_txn(session);
    return err == OK ? session__refresh_catalogs(session) : err;
}

Err
session_copy(Session *from, const char *from_name, Session *to, const char *to_name)
{
    RtTask *to_previous, *from_previous;
    ErrMsg msg = {.sql_offset = -1};
    ASSERT(from != to);
    session_lock(to);
    session__enter(to, &to_previous);
    session_lock(from);
    session__enter(from, &from_previous);
    i32 source = copy__find_database(from, from_name);
    i32 target = copy__find_database(to, to_name);
    Err err = OK;
    if (source < 0 || target < 0) {
        err = err_set(&msg, ERR_SQL, "unknown database %s", source < 0 ? from_name : to_name);
    }
    if (err == OK) {
        err = copy__source_begin(from);
        if (err != OK) err_set(&msg, err, "%s", err_message(session_error(from)));
    }
    if (err == OK) err = copy__database(from, (u32)source, to, (u32)target, &msg);
    Err end = session__autocommit_end(from, true);
    if (err == OK && end != OK) err = err_set(&msg, end, "%s", err_message(session_error(from)));
    session__leave(from, from_previous);
    session_unlock(from);
    if (err != OK) {
        session__fail(to, err, &msg);
    } else {
        err_clear(&to->error);
    }
    session__leave(to, to_previous);
    session_unlock(to);
    return err;
}

#define ROWS_IN_PAGE 64u

static u64
tree_pages(Store *store, TreeId tree)
{
    return store_estimate_rows(store, tree) / ROWS_IN_PAGE + 1;
}

Err
session_copy_size(Session *session, const char *name, u64 *pages_out, u64 *change_number_out)
{
    RtTask *previous;
    *pages_out = 0;
    *change_number_out = 0;
    session_lock(session);
    session__enter(session, &previous);
    i32 at = copy__find_database(session, name);
    Err err = at < 0 ? session_set_error(session, ERR_SQL, "unknown database %s", name) : OK;
    if (err == OK) err = copy__source_begin(session);
    const SessionDb *db = at < 0 ? NULL : &session->db[at];
    if (err == OK && db->database != NULL) {
        Store *store = db->database->store;
        *pages_out = 1;
        *change_number_out = store_change_number(store);
        for (u32 i = 0; i < catalog_table_count(db->catalog); i++) {
            const TableDef *table = catalog_table_at(db->catalog, i);
            if (table->is_view || table->is_virtual) continue;
            *pages_out += tree_pages(store, table->tree);
            for (u32 k = 0; k < table->index_count; k++)
                *pages_out += tree_pages(store, table->index[k]->tree);
        }
    }
    Err end = err == OK ? session__autocommit_end(session, true) : OK;
    session__leave(session, previous);
    session_unlock(session);
    return err != OK ? err : end;
}
