/*
 * copy.c -- a whole database replaced by another: VACUUM INTO, backup.
 *
 * The copy is made from one snapshot in one transaction of the target: whoever looks sees the old
 * content or the new one.  Trees keep their contents and get new numbers.
 */
#include "session/copy__impl.h"

/* ---- the work ---- */

static void
collect_trees(CopyWork *work)
{
    for (u32 i = 0; i < catalog_table_count(work->catalog); i++) {
        const TableDef *table = catalog_table_at(work->catalog, i);
        if (table->is_view || table->is_virtual) continue;
        StoreTreeKind kind = table->without_rowid ? STORE_TREE_BYTES : STORE_TREE_INT;
        work->tree[work->trees++] = (CopyTree){.from = table->tree, .kind = kind};
        for (u32 k = 0; k < table->index_count; k++) {
            work->tree[work->trees++] = (CopyTree){.from = table->index[k]->tree};
        }
    }
}

Err
copy__work_begin(CopyWork *work, Store *store, StoreTxn *from, const Catalog *catalog, StoreTxn *to)
{
    u32 trees = 0;
    *work = (CopyWork){.from = from, .catalog = catalog, .to = to, .pages_left = 1};
    for (u32 i = 0; i < catalog_table_count(catalog); i++)
        trees += 1 + catalog_table_at(catalog, i)->index_count;
    work->tree = MEM_NEW_ARRAY(CopyTree, (size_t)trees + 1);
    if (work->tree == NULL) return ERR_NOMEM;
    collect_trees(work);
    ASSERT(work->trees <= trees);
    for (u32 i = 0; i < work->trees; i++) {
        CopyTree *tree = &work->tree[i];
        tree->pages = store_estimate_rows(store, tree->from) / COPY_PAGE_ROWS + 1;
        work->pages_left += tree->pages;
        work->new_trees = MAX_OF(work->new_trees, tree->from + 1);
    }
    work->new_tree = MEM_NEW_ARRAY(TreeId, (size_t)work->new_trees + 1);
    return work->new_tree == NULL ? ERR_NOMEM : OK;
}

void
copy__work_free(CopyWork *work)
{
    store_cursor_close(work->cursor);
    mem_free(work->tree);
    mem_free(work->new_tree);
    *work = (CopyWork){0};
}

static Err
tree_begin(CopyWork *work)
{
    const CopyTree *tree = &work->tree[work->at];
    bool found;
    Err err = store_tree_create(work->to, tree->kind, &work->new_tree[tree->from]);
    if (err == OK) err = store_cursor_open(work->from, tree->from, &work->cursor);
    if (err == OK) err = store_cursor_seek(work->cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    return err;
}

/* A page's rows; of the last page of a tree all the rest, since its rows were only estimated. */
static Err
page_rows(CopyWork *work, bool *end_out)
{
    const CopyTree *tree = &work->tree[work->at];
    u64 left = tree->pages > 1 ? COPY_PAGE_ROWS : U64_MAX;
    StoreRun run = {0};
    Err err = OK;
    while (err == OK && left > 0 && !run.end) {
        u32 most = (u32)MIN_OF(left, (u64)1024);
        err = store_cursor_fetch(work->cursor, most, (size_t)1 << 20, false, &run);
        for (u32 i = 0; err == OK && i < run.rows; i++) {
            StoreVerdict verdict;
            err = store_put(work->to, work->new_tree[tree->from], run.key[i], run.value[i],
                            STORE_PUT_ANY, &verdict);
        }
        if (err == OK) {
            left -= run.rows;
            err = rt_check();
        }
    }
    *end_out = run.end;
    return err;
}

static Err
copy_page(CopyWork *work)
{
    CopyTree *tree = &work->tree[work->at];
    bool end;
    Err err = work->cursor == NULL ? tree_begin(work) : OK;
    if (err == OK) err = page_rows(work, &end);
    if (err != OK) return err;
    u64 did = end ? tree->pages : 1;
    tree->pages -= did;
    work->pages_left -= did;
    ASSERT(work->pages_left > 0 && end == (tree->pages == 0));
    if (end) {
        store_cursor_close(work->cursor);
        work->cursor = NULL;
        work->at++;
    }
    return OK;
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

/* The first page: what stands in the schema and in the header. */
static Err
copy_schema(CopyWork *work)
{
    i64 from_tree, to_tree;
    Err err = catalog_get_number(work->from, "schema_tree", &from_tree);
    if (err == OK) err = catalog_get_number(work->to, "schema_tree", &to_tree);
    if (err == OK) {
        err = catalog_copy_rows(work->from, (TreeId)from_tree, work->to, (TreeId)to_tree,
                                work->new_tree, work->new_trees);
    }
    if (err == OK) err = copy_numbers(work->from, work->to);
    if (err == OK) work->pages_left = 0;
    return err;
}

Err
copy__work_run(CopyWork *work, u64 pages)
{
    Err err = OK;
    u64 stop = work->pages_left - MIN_OF(pages, work->pages_left);
    while (err == OK && work->pages_left > stop && work->at < work->trees)
        err = copy_page(work);
    if (err == OK && work->pages_left > stop) err = copy_schema(work);
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

Err
copy__target_open(const Session *session, const char *path, Session **to_out, ErrMsg *msg)
{
    SessionOptions options = session->options;
    options.read_only = options.in_memory = false;
    options.create = true;
    *to_out = NULL;
    Err err = session_open(session->process, path, &options, to_out, msg);
    if (err != OK) return err;
    Session *to = *to_out;
    err = session__ensure_txn(to);
    if (err == OK) err = session__refresh_catalogs(to);
    if (err != OK) return err_set(msg, err, "%s", err_message(session_error(to)));
    if (catalog_table_count(to->db[0].catalog) > 0)
        return err_set(msg, ERR_EXISTS, "output file already exists: %s", path);
    err = session__autocommit_end(to, true);
    return err == OK ? OK : err_set(msg, err, "%s", err_message(session_error(to)));
}

Err
copy__database(Session *session, u32 database, Session *to, u32 to_database, ErrMsg *msg)
{
    SessionDb *source = &session->db[database];
    Err err = copy__target_begin(to, to_database, msg);
    if (err == OK && source->database != NULL) {
        CopyWork work;
        err = copy__work_begin(&work, source->database->store, source->txn, source->catalog,
                               to->db[to_database].txn);
        if (err == OK) err = copy__work_run(&work, U64_MAX);
        copy__work_free(&work);
    }
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

static Err
source_begin(Session *session)
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
        err = source_begin(from);
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
