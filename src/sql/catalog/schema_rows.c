/*
 * schema_rows.c -- the rows of sqlite_schema and the header numbers in the store.
 *
 * sqlite_schema is an ordinary table (key: rowid, value: record), so SELECT reads it as any other.
 * Header numbers are 8-byte little-endian values in TREE_ROOT under their names.
 */
#include "sql/catalog/catalog_unit.h"
#include "value/record.h"

Err
catalog_get_number(StoreTxn *txn, const char *name, i64 *number_out)
{
    bool found;
    Slice value;
    *number_out = 0;
    Err err = store_get(txn, TREE_ROOT, SLICE(name, strlen(name)), &found, &value);
    if (err != OK || !found) return err;
    if (value.bytes != 8) return ERR_CORRUPT;
    *number_out = (i64)load_u64(value.p);
    return OK;
}

Err
catalog_set_number(StoreTxn *txn, const char *name, i64 number)
{
    u8 bytes[8];
    StoreVerdict verdict;
    store_u64(bytes, (u64)number);
    return store_put(txn, TREE_ROOT, SLICE(name, strlen(name)), SLICE(bytes, 8), STORE_PUT_ANY,
                     &verdict);
}

Err
catalog_version(StoreTxn *txn, u64 *version_out)
{
    i64 version;
    Err err = catalog_get_number(txn, SCHEMA_VERSION_NUMBER, &version);
    *version_out = (u64)version;
    return err;
}

static const char *const type_names[] = {"table", "index", "view", "trigger"};

static void
rowid_key(i64 rowid, u8 *key)
{
    store_be64(key, (u64)rowid ^ ((u64)1 << 63));
}

static Err
cell_string(const Cell *cell, Arena *arena, const char **text_out)
{
    *text_out = NULL;
    if (cell->type == CELL_NULL) return OK;
    if (cell->type != CELL_TEXT) return ERR_CORRUPT;
    *text_out = arena_strndup(arena, cell->u.p, cell->bytes);
    return *text_out == NULL ? ERR_NOMEM : OK;
}

static Err
decode_row(Slice key, Slice value, Arena *arena, SchemaRow *row)
{
    Cell cell[5] = {0};
    Record record;
    const char *type = NULL;
    if (key.bytes != 8) return ERR_CORRUPT;
    row->rowid = (i64)(load_be64(key.p) ^ ((u64)1 << 63));
    Err err = record_open(value, &record);
    if (err == OK) err = record_columns(&record, 5, cell, NULL);
    if (err == OK) err = cell_string(&cell[0], arena, &type);
    if (err == OK) err = cell_string(&cell[1], arena, &row->name);
    if (err == OK) err = cell_string(&cell[2], arena, &row->table);
    if (err == OK) err = cell_string(&cell[4], arena, &row->sql);
    if (err != OK) return err;
    if (type == NULL || row->name == NULL || row->table == NULL) return ERR_CORRUPT;
    row->tree = cell[3].type == CELL_INT ? (TreeId)cell[3].u.i : TREE_NONE;
    for (u32 i = 0; i < COUNT_OF(type_names); i++) {
        if (strcmp(type, type_names[i]) != 0) continue;
        row->type = (RowType)i;
        return OK;
    }
    return ERR_CORRUPT;
}

Err
catalog__rows_read(StoreTxn *txn, TreeId tree, Arena *arena, SchemaRow **row_out, u32 *count_out,
                   ErrMsg *msg)
{
    StoreCursor *cursor = NULL;
    SchemaRow *row = NULL;
    u32 count = 0, capacity = 0;
    bool found;
    *row_out = NULL;
    *count_out = 0;
    Err err = store_cursor_open(txn, tree, &cursor);
    if (err != OK) return err;
    err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    while (err == OK && found) {
        if (count == capacity) {
            u32 larger = capacity * 2 + 64;
            SchemaRow *list = ARENA_NEW_ARRAY(arena, SchemaRow, larger);
            err = list == NULL ? ERR_NOMEM : OK;
            if (err != OK) break;
            if (count > 0) memcpy(list, row, sizeof(*row) * count);
            row = list;
            capacity = larger;
        }
        err = decode_row(store_cursor_key(cursor), store_cursor_value(cursor), arena, &row[count]);
        if (err == ERR_CORRUPT) err = err_set(msg, err, "malformed database schema (?)");
        if (err != OK) break;
        count++;
        err = store_cursor_next(cursor, &found);
    }
    store_cursor_close(cursor);
    *row_out = row;
    *count_out = count;
    return err;
}

Err
catalog__row_insert(StoreTxn *txn, TreeId tree, const SchemaRow *row)
{
    const char *type = type_names[row->type];
    const Cell cell[5] = {
        cell_text(type, strlen(type)),
        cell_text(row->name, strlen(row->name)),
        cell_text(row->table, strlen(row->table)),
        cell_int(row->tree),
        row->sql == NULL ? cell_null() : cell_text(row->sql, strlen(row->sql)),
    };
    Buf record = {0};
    u8 key[8];
    StoreVerdict verdict;
    rowid_key(row->rowid, key);
    Err err = record_encode(cell, 5, &record);
    if (err == OK) {
        err = store_put(txn, tree, SLICE(key, 8), buf_slice(&record), STORE_PUT_ANY, &verdict);
    }
    buf_free(&record);
    return err;
}

Err
catalog__row_delete(StoreTxn *txn, TreeId tree, i64 rowid)
{
    u8 key[8];
    StoreVerdict verdict;
    rowid_key(rowid, key);
    return store_delete(txn, tree, SLICE(key, 8), &verdict);
}

Err
catalog_copy_rows(StoreTxn *from, TreeId from_tree, StoreTxn *to, TreeId to_tree,
                  const TreeId *new_tree, u32 trees)
{
    Arena arena;
    SchemaRow *row;
    u32 count;
    arena_init(&arena, NULL);
    Err err = catalog__rows_read(from, from_tree, &arena, &row, &count, NULL);
    for (u32 i = 0; err == OK && i < count; i++) {
        if (row[i].tree >= trees) err = ERR_CORRUPT;
        if (err != OK) break;
        row[i].tree = row[i].tree == TREE_NONE ? TREE_NONE : new_tree[row[i].tree];
        err = catalog__row_insert(to, to_tree, &row[i]);
    }
    arena_free(&arena);
    return err;
}

Err
catalog_load_row(StoreTxn *txn, TreeId schema_tree, i64 rowid, const char *type, const char *name,
                 const char *table, TreeId tree, const char *sql)
{
    for (u32 i = 0; i < COUNT_OF(type_names); i++) {
        if (strcmp(type, type_names[i]) != 0) continue;
        SchemaRow row = {rowid, (RowType)i, name, table, tree, sql};
        return catalog__row_insert(txn, schema_tree, &row);
    }
    return ERR_CORRUPT;
}

Err
catalog_rows(StoreTxn *txn, TreeId schema_tree, Arena *arena, CatalogRow **row_out, u32 *count_out)
{
    SchemaRow *row;
    Err err = catalog__rows_read(txn, schema_tree, arena, &row, count_out, NULL);
    if (err != OK) return err;
    CatalogRow *list = ARENA_NEW_ARRAY(arena, CatalogRow, *count_out + 1u);
    if (list == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < *count_out; i++) {
        list[i] = (CatalogRow){.rowid = row[i].rowid,
                               .type = (u8)row[i].type,
                               .name = row[i].name,
                               .table = row[i].table,
                               .sql = row[i].sql,
                               .tree = row[i].tree};
    }
    *row_out = list;
    return OK;
}
