/*
 * bulk.c -- see bulk.h.  Rows go into the store in transactions of LOAD_PORTION_BYTES, so that what
 * a transaction keeps for its undo stays bounded.
 */
#include "session/bulk.h"

#include "exec/index_build.h"
#include "exec/table_codec.h"
#include "session/session__impl.h"
#include "value/key.h"

#define LOAD_PORTION_BYTES ((u64)32 << 20)
#define DUMP_ROWS          1024
#define DUMP_BYTES         ((size_t)1 << 20)

struct BulkLoad {
    Session *session;
    const TableDef *table;
    Arena arena; /* Of the table's codec. */
    TableCodec codec;
    Buf key, record;
    u64 bytes; /* In the open transaction. */
};

struct BulkDump {
    Session *session;
    bool began;
};

static Err
fail(Session *session, Err err, ErrMsg *msg)
{
    return session__fail(session, err, msg);
}

/* ---- loading ---- */

/* A transaction that may write is open, and the catalog is the one it sees. */
static Err
load_txn(BulkLoad *load)
{
    Session *session = load->session;
    Err err = session__ensure_txn(session);
    if (err == OK) err = session__ensure_token(session, 0);
    return err == OK ? session__refresh_catalogs(session) : err;
}

static Err
load_commit(BulkLoad *load)
{
    load->bytes = 0;
    return session__autocommit_end(load->session, true);
}

static Err
schema_write(BulkLoad *load, const BulkSchemaRow *row, u32 count)
{
    Session *session = load->session;
    StoreTxn *txn = session->db[0].txn;
    i64 schema_tree = 0, version = 0;
    Err err = catalog_get_number(txn, "schema_tree", &schema_tree);
    if (err == OK) err = catalog_get_number(txn, "schema_version", &version);
    for (u32 i = 0; err == OK && i < count; i++) {
        TreeId tree = TREE_NONE;
        if (row[i].tree != BULK_NO_TREE) {
            err = store_tree_create(
                txn, row[i].tree == BULK_ROWID_TREE ? STORE_TREE_INT : STORE_TREE_BYTES, &tree);
        }
        if (err == OK) {
            err = catalog_load_row(txn, (TreeId)schema_tree, row[i].rowid, row[i].type, row[i].name,
                                   row[i].table, tree, row[i].sql);
        }
        if (err == ERR_CORRUPT) {
            return session_set_error(session, err, "%s %s: no such kind of schema row", row[i].type,
                                     row[i].name);
        }
    }
    if (err == OK) err = catalog_set_number(txn, "schema_version", version + 1);
    if (err != OK) return session__store_error(session, 0, err);
    /* Read back what was written: it must make sense. */
    Catalog *catalog;
    ErrMsg msg = {.sql_offset = -1};
    err = catalog_load(txn, &session->db[0].env, &catalog, &msg);
    if (err != OK) return fail(session, err, &msg);
    session__set_own_catalog(session, 0, catalog);
    return OK;
}

/* Every table must have the kind of tree that its text asks for. */
static Err
schema_check(BulkLoad *load, const BulkSchemaRow *row, u32 count)
{
    Session *session = load->session;
    for (u32 i = 0; i < count; i++) {
        if (row[i].tree == BULK_NO_TREE || strcmp(row[i].type, "table") != 0) continue;
        const TableDef *table = bulk_load_find(load, row[i].name);
        if (table != NULL && table->without_rowid == (row[i].tree == BULK_KEY_TREE)) continue;
        return session_set_error(session, ERR_CORRUPT,
                                 "malformed database schema (%s) - its tree is of the wrong kind",
                                 row[i].name);
    }
    const Catalog *catalog = session->db[0].catalog;
    for (u32 i = 0; i < catalog_table_count(catalog); i++) {
        const TableDef *table = catalog_table_at(catalog, i);
        bool whole = table->is_view || table->is_virtual || table->tree != TREE_NONE;
        for (u32 k = 0; whole && k < table->index_count; k++)
            whole = table->index[k]->tree != TREE_NONE;
        if (whole) continue;
        return session_set_error(session, ERR_CORRUPT,
                                 "malformed database schema (%s) - a tree is missing", table->name);
    }
    return OK;
}

Err
bulk_load_begin(Session *session, const BulkSchemaRow *row, u32 count, BulkLoad **load_out)
{
    *load_out = NULL;
    if (session->in_transaction || session->running > 0)
        return session_set_error(session, ERR_MISUSE, "loading needs a session at rest");
    BulkLoad *load = MEM_NEW(BulkLoad);
    if (load == NULL) return fail(session, ERR_NOMEM, NULL);
    load->session = session;
    arena_init(&load->arena, NULL);
    Err err = load_txn(load);
    if (err == OK && catalog_table_count(session->db[0].catalog) > 0)
        err = session_set_error(session, ERR_MISUSE, "the database is not empty");
    if (err == OK) err = schema_write(load, row, count);
    if (err == OK) err = schema_check(load, row, count);
    ErrMsg kept = {.sql_offset = -1};
    if (err != OK) err_move(&kept, &session->error);
    Err end = session__autocommit_end(session, err == OK);
    if (err != OK) fail(session, err, &kept);
    if (err == OK) err = end;
    if (err == OK) err = load_txn(load);
    if (err == OK)
        *load_out = load;
    else
        bulk_load_close(load);
    return err;
}

void
bulk_load_close(BulkLoad *load)
{
    if (load == NULL) return;
    Session *session = load->session;
    ErrMsg kept = {.sql_offset = -1};
    err_move(&kept, &session->error);
    if (session->db[0].txn != NULL && !session->in_transaction) {
        Err err = session__autocommit_end(session, false);
        (void)err; /* Rolling back cannot fail. */
    }
    err_move(&session->error, &kept);
    arena_free(&load->arena);
    buf_free(&load->key);
    buf_free(&load->record);
    mem_free(load);
}

const TableDef *
bulk_load_find(const BulkLoad *load, const char *name)
{
    return catalog_find_table(load->session->db[0].catalog, SLICE(name, strlen(name)));
}

Err
bulk_load_table(BulkLoad *load, const TableDef *table)
{
    ASSERT(!table->is_view && table->tree != TREE_NONE);
    load->table = table;
    arena_reset(&load->arena);
    Err err = table_codec_init(&load->codec, table, &load->arena);
    if (err == ERR_UNSUPPORTED) {
        return session_set_error(load->session, err,
                                 "table %s: its primary key uses a collation that is not built in",
                                 table->name);
    }
    return err == OK ? load_txn(load) : fail(load->session, err, NULL);
}

Err
bulk_load_row(BulkLoad *load, const Cell *row, i64 rowid, bool *exists_out)
{
    Session *session = load->session;
    StoreVerdict verdict;
    *exists_out = false;
    Err err = table_row_key(&load->codec, row, rowid, &load->key);
    if (err == OK) err = table_encode(&load->codec, row, buf_slice(&load->key), &load->record);
    if (err == ERR_TOOBIG) return session_set_error(session, err, "a row is too big");
    if (err != OK) return fail(session, err, NULL);
    err = store_put(session->db[0].txn, load->table->tree, buf_slice(&load->key),
                    buf_slice(&load->record), STORE_PUT_INSERT, &verdict);
    if (err != OK) return session__store_error(session, 0, err);
    *exists_out = verdict != STORE_DONE;
    load->bytes += load->key.bytes + load->record.bytes + 64;
    if (load->bytes < LOAD_PORTION_BYTES) return OK;
    err = load_commit(load);
    return err == OK ? load_txn(load) : err;
}

/* Rows that lost their place in a unique index. */
typedef struct Duplicates {
    BulkLoad *load;
    const TableDef *table;
    u64 deleted;
} Duplicates;

static Err
duplicate_delete(void *arg, const Cell *row_key)
{
    Duplicates *duplicates = arg;
    BulkLoad *load = duplicates->load;
    StoreVerdict verdict;
    u8 key[TABLE_KEY_BYTES];
    Slice bytes = SLICE(key, sizeof(key));
    if (duplicates->table->without_rowid) {
        Err err = table_primary_key(&load->codec, row_key, &load->key);
        if (err != OK) return err;
        bytes = buf_slice(&load->key);
    } else {
        table_key_put(row_key[0].u.i, key);
    }
    duplicates->deleted++;
    return store_delete(load->session->db[0].txn, duplicates->table->tree, bytes, &verdict);
}

/* Fill an index; `duplicates` NULL: none may be.  In a transaction of its own. */
static Err
index_fill(BulkLoad *load, const IndexDef *index, Duplicates *duplicates)
{
    Session *session = load->session;
    CatalogView view;
    PlanContext context;
    Plan *plan = NULL;
    ErrMsg msg = {.sql_offset = -1};
    Err err = load_commit(load);
    if (err == OK) err = load_txn(load);
    if (err != OK) return err;
    session__catalog_view(session, &view);
    session__plan_context(session, &view, &context);
    context.entries_only = true;
    err = plan_index_build(&context, index->table, index, &plan, &msg);
    if (err == OK && duplicates == NULL)
        err = exec_index_build(plan, index, &session->exec_env, session->txn, &msg);
    else if (err == OK)
        err = exec_index_build_loose(plan, index, &session->exec_env, session->txn,
                                     duplicate_delete, duplicates, &msg);
    plan_release(plan);
    if (err != OK) return fail(session, err, &msg);
    err = load_commit(load);
    return err == OK ? load_txn(load) : err;
}

Err
bulk_load_index(BulkLoad *load, const IndexDef *index)
{
    return index_fill(load, index, NULL);
}

static Err
indexes_clear(BulkLoad *load, const TableDef *table)
{
    StoreTxn *txn = load->session->db[0].txn;
    for (u32 i = 0; i < table->index_count; i++) {
        u64 rows;
        Err err = store_tree_clear(txn, table->index[i]->tree, &rows);
        if (err != OK) return session__store_error(load->session, 0, err);
    }
    return OK;
}

Err
bulk_load_indexes_loose(BulkLoad *load, const TableDef *table, u64 *deleted_out)
{
    Duplicates duplicates = {.load = load, .table = table};
    *deleted_out = 0;
    /* What one index loses the others must not have, so after a loss all start anew; an index that
       has lost its duplicates loses nothing again. */
    for (bool again = true; again;) {
        u64 before = duplicates.deleted;
        Err err = indexes_clear(load, table);
        for (u32 i = table->index_count; err == OK && i-- > 0;) {
            err = index_fill(load, table->index[i], table->index[i]->unique ? &duplicates : NULL);
            if (duplicates.deleted != before) break;
        }
        if (err != OK) return err;
        again = duplicates.deleted != before;
    }
    *deleted_out = duplicates.deleted;
    return OK;
}

Err
bulk_load_number(BulkLoad *load, const char *name, i64 number)
{
    Err err = catalog_set_number(load->session->db[0].txn, name, number);
    return err == OK ? OK : session__store_error(load->session, 0, err);
}

Err
bulk_load_finish(BulkLoad *load)
{
    return load_commit(load);
}

/* ---- dumping ---- */

Err
bulk_dump_begin(Session *session, BulkDump **dump_out)
{
    *dump_out = NULL;
    BulkDump *dump = MEM_NEW(BulkDump);
    if (dump == NULL) return fail(session, ERR_NOMEM, NULL);
    dump->session = session;
    Err err = OK;
    if (session_autocommit(session)) {
        err = session_exec(session, SLICE_LITERAL("BEGIN"));
        dump->began = err == OK;
    }
    if (err == OK) err = session__ensure_txn(session);
    if (err == OK) err = session__refresh_catalogs(session);
    if (err == OK)
        *dump_out = dump;
    else
        bulk_dump_end(dump);
    return err;
}

void
bulk_dump_end(BulkDump *dump)
{
    if (dump == NULL) return;
    ErrMsg kept = {.sql_offset = -1};
    err_move(&kept, &dump->session->error);
    if (dump->began) {
        Err err = session_exec(dump->session, SLICE_LITERAL("ROLLBACK"));
        (void)err;
    }
    err_move(&dump->session->error, &kept);
    mem_free(dump);
}

const TableDef *
bulk_dump_find(const BulkDump *dump, const char *name)
{
    return catalog_find_table(dump->session->db[0].catalog, SLICE(name, strlen(name)));
}

const IndexDef *
bulk_dump_find_index(const BulkDump *dump, const char *name)
{
    return catalog_find_index(dump->session->db[0].catalog, SLICE(name, strlen(name)));
}

Err
bulk_dump_number(BulkDump *dump, const char *name, i64 *number_out)
{
    Err err = catalog_get_number(dump->session->db[0].txn, name, number_out);
    return err == OK ? OK : session__store_error(dump->session, 0, err);
}

/* An entry whose key was cut, kept until the end of its run: those that were cut alike. */
typedef struct HeldEntry {
    Slice full, key, value;
} HeldEntry;

/* One walk over a tree. */
typedef struct DumpWalk {
    Session *session;
    const TableDef *table;
    TableCodec table_codec; /* Of a table... */
    IndexCodec index_codec; /* ... or an index. */
    bool is_table;
    u32 cells;
    u16 *position; /* Of an index: all cells, and the rowid. */
    Cell *cell;
    BulkEach each;
    void *arg;
    Arena arena, row, run; /* Of the walk; of one row; of a run of cut keys. */
    HeldEntry *held;
    u32 holds, held_capacity;
} DumpWalk;

static Err
entry_show(DumpWalk *walk, Slice key, Slice value)
{
    Err err;
    i64 rowid = 0;
    arena_reset(&walk->row);
    if (walk->is_table) {
        err = table_decode_all(&walk->table_codec, key, value, &walk->row, walk->cell);
        if (err == OK && !walk->table->without_rowid) rowid = table_key_rowid(key);
    } else {
        bool has_rowid = !walk->table->without_rowid;
        err = index_decode(&walk->index_codec, key, value, walk->position,
                           walk->cells + (has_rowid ? 1 : 0), &walk->row, walk->cell);
        if (err == OK && has_rowid) rowid = walk->cell[walk->cells].u.i;
    }
    if (err != OK) {
        return session_set_error(walk->session, err, "table %s: an entry is damaged",
                                 walk->table->name);
    }
    return walk->each(walk->arg, walk->cell, rowid);
}

static int
compare_held(const void *a, const void *b)
{
    return slice_compare(((const HeldEntry *)a)->full, ((const HeldEntry *)b)->full);
}

static Err
holds_flush(DumpWalk *walk)
{
    Err err = OK;
    if (walk->holds > 1) sort_items(walk->held, walk->holds, sizeof(*walk->held), compare_held);
    for (u32 i = 0; err == OK && i < walk->holds; i++)
        err = entry_show(walk, walk->held[i].key, walk->held[i].value);
    walk->holds = 0;
    arena_reset(&walk->run);
    return err;
}

static Slice
slice_keep(Arena *arena, Slice slice)
{
    u8 *copy = arena_bytes(arena, slice.bytes + 1);
    if (copy == NULL) return SLICE_NONE;
    if (slice.bytes > 0) memcpy(copy, slice.p, slice.bytes);
    return SLICE(copy, slice.bytes);
}

static Err
held_make(DumpWalk *walk, Slice key, Slice value, Buf *full, HeldEntry *entry_out)
{
    const IndexCodec *codec = walk->is_table ? &walk->table_codec.primary : &walk->index_codec;
    if (walk->holds > 0 && memcmp(walk->held[0].key.p, key.p, KEY_BYTES_WHOLE) != 0) {
        Err err = holds_flush(walk);
        if (err != OK) return err;
    }
    arena_reset(&walk->row);
    Err err = index_full_key(codec, key, value, &walk->row, full);
    if (err != OK) return fail(walk->session, err, NULL);
    entry_out->full = slice_keep(&walk->run, buf_slice(full));
    entry_out->key = slice_keep(&walk->run, key);
    entry_out->value = slice_keep(&walk->run, value);
    bool kept = entry_out->full.p != NULL && entry_out->key.p != NULL && entry_out->value.p != NULL;
    return kept ? OK : fail(walk->session, ERR_NOMEM, NULL);
}

static Err
entry_hold(DumpWalk *walk, Slice key, Slice value)
{
    Buf full = {0};
    HeldEntry entry = {0};
    Err err = held_make(walk, key, value, &full, &entry);
    buf_free(&full);
    if (err != OK) return err;
    if (walk->holds == walk->held_capacity) {
        u32 capacity = walk->held_capacity * 2 + 16;
        HeldEntry *bigger = mem_realloc(walk->held, capacity * sizeof(*bigger));
        if (bigger == NULL) return fail(walk->session, ERR_NOMEM, NULL);
        walk->held = bigger;
        walk->held_capacity = capacity;
    }
    walk->held[walk->holds++] = entry;
    return OK;
}

static Err
entry_take(DumpWalk *walk, Slice key, Slice value)
{
    bool keyed = !walk->is_table || walk->table->without_rowid;
    if (keyed && key_is_cut(key)) return entry_hold(walk, key, value);
    if (walk->holds > 0) {
        Err err = holds_flush(walk);
        if (err != OK) return err;
    }
    return entry_show(walk, key, value);
}

static Err
walk_tree(DumpWalk *walk, TreeId tree)
{
    Session *session = walk->session;
    StoreCursor *cursor = NULL;
    StoreRun run = {0};
    bool found = false;
    Err err = store_cursor_open(session->db[0].txn, tree, &cursor);
    if (err == OK) err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    if (err != OK) err = session__store_error(session, 0, err);
    while (err == OK && found && !run.end) {
        err = store_cursor_fetch(cursor, DUMP_ROWS, DUMP_BYTES, false, &run);
        if (err != OK) err = session__store_error(session, 0, err);
        for (u32 i = 0; err == OK && i < run.rows; i++)
            err = entry_take(walk, run.key[i], run.value[i]);
        if (err == OK) err = rt_check();
    }
    if (err == OK) err = holds_flush(walk);
    store_cursor_close(cursor);
    return err;
}

static Err
walk_run(DumpWalk *walk, const IndexDef *index, BulkShape *shape_out)
{
    arena_init(&walk->arena, NULL);
    arena_init(&walk->row, NULL);
    arena_init(&walk->run, NULL);
    walk->is_table = index == NULL;
    Err err = walk->is_table ? table_codec_init(&walk->table_codec, walk->table, &walk->arena)
                             : index_codec_init(&walk->index_codec, index, &walk->arena);
    walk->cells = walk->is_table ? walk->table->column_count : walk->index_codec.columns;
    if (err == OK) {
        walk->cell = ARENA_NEW_ARRAY(&walk->arena, Cell, walk->cells + 1);
        walk->position = ARENA_NEW_ARRAY(&walk->arena, u16, walk->cells + 1);
        if (walk->cell == NULL || walk->position == NULL) err = ERR_NOMEM;
    }
    if (err != OK) {
        err = fail(walk->session, err, NULL);
    } else {
        for (u32 i = 0; i < walk->cells; i++)
            walk->position[i] = (u16)i;
        walk->position[walk->cells] = INDEX_POSITION_ROWID;
        if (shape_out != NULL) *shape_out = (BulkShape){walk->cells, walk->index_codec.key_column};
        err = walk_tree(walk, walk->is_table ? walk->table->tree : index->tree);
    }
    mem_free(walk->held);
    arena_free(&walk->arena);
    arena_free(&walk->row);
    arena_free(&walk->run);
    return err;
}

Err
bulk_dump_table(BulkDump *dump, const TableDef *table, BulkEach each, void *arg)
{
    DumpWalk walk = {.session = dump->session, .table = table, .each = each, .arg = arg};
    return walk_run(&walk, NULL, NULL);
}

Err
bulk_dump_index(BulkDump *dump, const IndexDef *index, BulkShape *shape_out, BulkEach each,
                void *arg)
{
    DumpWalk walk = {.session = dump->session, .table = index->table, .each = each, .arg = arg};
    return walk_run(&walk, index, shape_out);
}
