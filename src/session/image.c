/*
 * image.c -- a database as bytes (sqlite3_serialize) and back.
 *
 * The image:
 *     "WeftImage 1\0"                        12 bytes
 *     user_version, application_id           8 bytes each, little-endian
 *     schema rows: count, then each          varint; rowid (8), type (1), tree, name, table, sql
 *     trees: count, then each                number, kind (1), entries (key, value), ended by 2
 *     checksum64 of all that stands before   8 bytes
 * A number is a varint; a text or key is its length as a varint and its bytes; an absent sql has
 * the length 2^32-1; each entry has a byte 1 in front.
 *
 * Bytes from outside are input: whatever they hold, reading gives an error or a database.
 */
#include "session/copy__impl.h"

#define IMAGE_MAGIC       "WeftImage 1"
#define IMAGE_MAGIC_BYTES 12u
#define IMAGE_NO_TEXT     ((u64)U32_MAX)
#define ENTRY_FOLLOWS     1u
#define ENTRIES_END       2u

/* ---- writing ---- */

static Err
put_number(Buf *out, u64 number)
{
    u8 bytes[10];
    return buf_append(out, bytes, varint_put(bytes, number));
}

static Err
put_bytes(Buf *out, Slice bytes)
{
    Err err = put_number(out, bytes.bytes);
    return err == OK ? buf_append(out, bytes.p, bytes.bytes) : err;
}

static Err
put_text(Buf *out, const char *text)
{
    if (text == NULL) return put_number(out, IMAGE_NO_TEXT);
    return put_bytes(out, SLICE(text, strlen(text)));
}

static Err
put_fixed(Buf *out, i64 number)
{
    u8 bytes[8];
    store_u64(bytes, (u64)number);
    return buf_append(out, bytes, 8);
}

static Err
put_tree(Buf *out, StoreTxn *txn, TreeId tree, StoreTreeKind kind)
{
    StoreCursor *cursor;
    StoreRun run = {0};
    bool found;
    Err err = put_number(out, tree);
    if (err == OK) err = buf_append_byte(out, (u8)kind);
    if (err != OK) return err;
    err = store_cursor_open(txn, tree, &cursor);
    if (err != OK) return err;
    err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    while (err == OK && found && !run.end) {
        err = store_cursor_fetch(cursor, 1024, (size_t)1 << 20, false, &run);
        for (u32 i = 0; err == OK && i < run.rows; i++) {
            err = buf_append_byte(out, ENTRY_FOLLOWS);
            if (err == OK) err = put_bytes(out, run.key[i]);
            if (err == OK) err = put_bytes(out, run.value[i]);
        }
        if (err == OK) err = rt_check();
    }
    store_cursor_close(cursor);
    return err == OK ? buf_append_byte(out, ENTRIES_END) : err;
}

static Err
put_schema(Buf *out, StoreTxn *txn)
{
    Arena arena;
    CatalogRow *row;
    u32 count;
    i64 tree;
    arena_init(&arena, NULL);
    Err err = catalog_get_number(txn, "schema_tree", &tree);
    if (err == OK) err = catalog_rows(txn, (TreeId)tree, &arena, &row, &count);
    if (err == OK) err = put_number(out, count);
    for (u32 i = 0; err == OK && i < count; i++) {
        err = put_fixed(out, row[i].rowid);
        if (err == OK) err = buf_append_byte(out, row[i].type);
        if (err == OK) err = put_number(out, row[i].tree);
        if (err == OK) err = put_text(out, row[i].name);
        if (err == OK) err = put_text(out, row[i].table);
        if (err == OK) err = put_text(out, row[i].sql);
    }
    arena_free(&arena);
    return err;
}

static Err
put_trees(Buf *out, StoreTxn *txn, const Catalog *catalog)
{
    u64 trees = 0;
    for (u32 i = 0; i < catalog_table_count(catalog); i++) {
        const TableDef *table = catalog_table_at(catalog, i);
        if (!table->is_view && !table->is_virtual) trees += table->index_count + 1u;
    }
    Err err = put_number(out, trees);
    for (u32 i = 0; err == OK && i < catalog_table_count(catalog); i++) {
        const TableDef *table = catalog_table_at(catalog, i);
        if (table->is_view || table->is_virtual) continue;
        err = put_tree(out, txn, table->tree, copy__tree_kind(table));
        for (u32 k = 0; err == OK && k < table->index_count; k++)
            err = put_tree(out, txn, table->index[k]->tree, STORE_TREE_BYTES);
    }
    return err;
}

static Err
put_image(Buf *out, StoreTxn *txn, const Catalog *catalog)
{
    static const char *const names[] = {"user_version", "application_id"};
    Err err = buf_append(out, IMAGE_MAGIC, IMAGE_MAGIC_BYTES);
    for (u32 i = 0; err == OK && i < COUNT_OF(names); i++) {
        i64 number;
        err = catalog_get_number(txn, names[i], &number);
        if (err == OK) err = put_fixed(out, number);
    }
    if (err == OK) err = put_schema(out, txn);
    if (err == OK) err = put_trees(out, txn, catalog);
    if (err != OK) return err;
    u8 sum[8];
    store_u64(sum, checksum64(out->p, out->bytes, 0));
    return buf_append(out, sum, sizeof(sum));
}

Err
session_serialize(Session *session, const char *name, Buf *out)
{
    RtTask *previous;
    session_lock(session);
    session__enter(session, &previous);
    i32 at = copy__find_database(session, name);
    Err err = at < 0 ? session_set_error(session, ERR_SQL, "unknown database %s", name) : OK;
    if (err == OK) err = copy__source_begin(session);
    if (err == OK && session->db[at].database != NULL) {
        err = put_image(out, session->db[at].txn, session->db[at].catalog);
        if (err != OK) err = session__store_error(session, (u32)at, err);
    }
    Err end = err == OK ? session__autocommit_end(session, true) : OK;
    session__leave(session, previous);
    session_unlock(session);
    return err != OK ? err : end;
}

/* ---- reading ---- */

typedef struct Reader {
    const u8 *p, *end;
    bool damaged;
} Reader;

static u64
get_number(Reader *reader)
{
    u64 number = 0;
    size_t bytes = varint_get(reader->p, reader->end, &number);
    if (bytes == 0) {
        reader->damaged = true;
        return 0;
    }
    reader->p += bytes;
    return number;
}

static Slice
get_bytes(Reader *reader, u64 bytes)
{
    if (reader->damaged || bytes > (u64)(reader->end - reader->p)) {
        reader->damaged = true;
        return SLICE_NONE;
    }
    Slice slice = SLICE(reader->p, (size_t)bytes);
    reader->p += bytes;
    return slice;
}

static u8
get_byte(Reader *reader)
{
    Slice one = get_bytes(reader, 1);
    return one.p == NULL ? 0 : one.p[0];
}

static i64
get_fixed(Reader *reader)
{
    Slice eight = get_bytes(reader, 8);
    return eight.p == NULL ? 0 : (i64)load_u64(eight.p);
}

static char *
get_text(Reader *reader, Arena *arena)
{
    u64 bytes = get_number(reader);
    if (bytes == IMAGE_NO_TEXT) return NULL;
    Slice text = get_bytes(reader, bytes);
    return text.p == NULL ? NULL : arena_strndup(arena, text.p, text.bytes);
}

typedef struct NewTree {
    TreeId old, made;
} NewTree;

static Err
get_tree(Reader *reader, StoreTxn *txn, NewTree *tree)
{
    tree->old = (TreeId)get_number(reader);
    u8 kind = get_byte(reader);
    if (reader->damaged || kind > STORE_TREE_INT) return ERR_CORRUPT;
    Err err = store_tree_create(txn, (StoreTreeKind)kind, &tree->made);
    while (err == OK) {
        u8 mark = get_byte(reader);
        if (mark == ENTRIES_END) return OK;
        Slice key = get_bytes(reader, get_number(reader));
        Slice value = get_bytes(reader, get_number(reader));
        bool fits = !reader->damaged && mark == ENTRY_FOLLOWS && key.bytes <= STORE_KEY_BYTES_MAX &&
                    (kind != STORE_TREE_INT || key.bytes == 8);
        StoreVerdict verdict;
        err = fits ? store_put(txn, tree->made, key, value, STORE_PUT_ANY, &verdict) : ERR_CORRUPT;
    }
    return err;
}

static Err
get_trees(Reader *reader, StoreTxn *txn, Arena *arena, NewTree **tree_out, u32 *count_out)
{
    u64 count = get_number(reader);
    /* A tree takes three bytes at least. */
    if (reader->damaged || count > (u64)(reader->end - reader->p)) return ERR_CORRUPT;
    NewTree *tree = ARENA_NEW_ARRAY(arena, NewTree, count + 1);
    if (tree == NULL) return ERR_NOMEM;
    Err err = OK;
    for (u64 i = 0; err == OK && i < count; i++)
        err = get_tree(reader, txn, &tree[i]);
    *tree_out = tree;
    *count_out = (u32)count;
    return err;
}

static Err
get_schema(Reader *reader, Arena *arena, CatalogRow **row_out, u32 *count_out)
{
    u64 count = get_number(reader);
    if (reader->damaged || count > (u64)(reader->end - reader->p)) return ERR_CORRUPT;
    CatalogRow *row = ARENA_NEW_ARRAY(arena, CatalogRow, count + 1);
    if (row == NULL) return ERR_NOMEM;
    for (u64 i = 0; i < count; i++) {
        row[i].rowid = get_fixed(reader);
        row[i].type = get_byte(reader);
        row[i].tree = (TreeId)get_number(reader);
        row[i].name = get_text(reader, arena);
        row[i].table = get_text(reader, arena);
        row[i].sql = get_text(reader, arena);
        if (reader->damaged || row[i].name == NULL || row[i].table == NULL) return ERR_CORRUPT;
    }
    *row_out = row;
    *count_out = (u32)count;
    return OK;
}

static Err
put_rows(StoreTxn *txn, CatalogRow *row, u32 rows, const NewTree *tree, u32 trees)
{
    static const char *const types[] = {"table", "index", "view", "trigger"};
    i64 schema_tree;
    Err err = catalog_get_number(txn, "schema_tree", &schema_tree);
    for (u32 i = 0; err == OK && i < rows; i++) {
        u32 at = 0;
        while (at < trees && tree[at].old != row[i].tree)
            at++;
        if (row[i].tree != TREE_NONE && at == trees) return ERR_CORRUPT;
        if (row[i].tree != TREE_NONE) row[i].tree = tree[at].made;
        err = row[i].type < COUNT_OF(types)
                  ? catalog_load_row(txn, (TreeId)schema_tree, row[i].rowid, types[row[i].type],
                                     row[i].name, row[i].table, row[i].tree, row[i].sql)
                  : ERR_CORRUPT;
    }
    return err;
}

static Err
get_image(Reader *reader, StoreTxn *txn)
{
    Arena arena;
    CatalogRow *row = NULL;
    NewTree *tree = NULL;
    u32 rows = 0, trees = 0;
    arena_init(&arena, NULL);
    Err err = catalog_set_number(txn, "user_version", get_fixed(reader));
    if (err == OK) err = catalog_set_number(txn, "application_id", get_fixed(reader));
    if (err == OK) err = get_schema(reader, &arena, &row, &rows);
    if (err == OK) err = get_trees(reader, txn, &arena, &tree, &trees);
    if (err == OK) err = put_rows(txn, row, rows, tree, trees);
    if (err == OK && reader->p != reader->end) err = ERR_CORRUPT;
    arena_free(&arena);
    return err;
}

/* Is it an image of ours, and whole?  An empty one is an empty database. */
static Err
open_image(Slice image, Reader *reader, ErrMsg *msg)
{
    size_t head = IMAGE_MAGIC_BYTES, tail = 8;
    *reader = (Reader){0};
    if (image.bytes < head || memcmp(image.p, IMAGE_MAGIC, head) != 0)
        return err_set(msg, ERR_NOTADB, "file is not a database");
    bool whole = image.bytes >= head + tail && load_u64(image.p + image.bytes - tail) ==
                                                   checksum64(image.p, image.bytes - tail, 0);
    if (!whole) return err_set(msg, ERR_CORRUPT, "%s", err_text(ERR_CORRUPT));
    *reader = (Reader){.p = image.p + head, .end = image.p + image.bytes - tail};
    return OK;
}

Err
session_deserialize(Session *session, const char *name, Slice image)
{
    RtTask *previous;
    Reader reader = {0};
    ErrMsg msg = {.sql_offset = -1};
    session_lock(session);
    session__enter(session, &previous);
    i32 at = copy__find_database(session, name);
    Err err = at < 0 ? err_set(&msg, ERR_SQL, "unknown database %s", name) : OK;
    if (err == OK && image.bytes > 0) err = open_image(image, &reader, &msg);
    if (err == OK) {
        err = copy__target_begin(session, (u32)at, &msg);
        if (err == OK && image.bytes > 0) err = get_image(&reader, session->db[at].txn);
        err = copy__target_end(session, (u32)at, err, &msg);
    }
    if (err != OK) {
        session__fail(session, err, &msg);
    } else {
        err_clear(&session->error);
    }
    session__leave(session, previous);
    session_unlock(session);
    return err;
}
