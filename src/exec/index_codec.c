/*
 * index_codec.c -- index entries as keys and values.
 *
 * The bytes of an entry are value/key.h's, with one form of our own: an entry of a unique index of
 * a WITHOUT ROWID table whose declared columns hold no NULL has only those in its key and a record
 * of all cells as its value.  A cut key has such a record in any case.  So the key alone tells the
 * form: cut, or no NULL among its declared columns.
 */
#include "exec/table_codec.h"

#include "value/collate.h"
#include "value/record.h"

static bool
same_collation(const Collation *a, const Collation *b)
{
    CollationKind kind_a = a == NULL ? COLLATION_BINARY : a->kind;
    CollationKind kind_b = b == NULL ? COLLATION_BINARY : b->kind;
    return kind_a == kind_b && (kind_a != COLLATION_HOST || a == b);
}

static void
entry_column(const TableDef *table, const IndexColumn *from, EntryColumn *column_out,
             KeyColumn *key_out)
{
    bool of_table = from->column < table->column_count;
    *column_out = (EntryColumn){
        .column = from->column,
        .desc = from->desc,
        .affinity = of_table                       ? table->column[from->column].affinity
                    : from->column == COLUMN_ROWID ? AFFINITY_INTEGER
                                                   : AFFINITY_NONE,
        .collation = from->collation,
    };
    *key_out = (KeyColumn){
        .collation = from->collation,
        .desc = from->desc,
        .is_real = column_out->affinity == AFFINITY_REAL,
    };
}

/* The cell that holds primary-key column `part` exactly as the table's key does, or NONE. */
static u16
position_of_primary(const IndexCodec *codec, const IndexColumn *part)
{
    for (u16 i = 0; i < codec->columns; i++) {
        if (codec->column[i].column == part->column &&
            same_collation(codec->column[i].collation, part->collation)) {
            return i;
        }
    }
    return INDEX_POSITION_NONE;
}

static Err
append_primary(IndexCodec *codec, Arena *arena)
{
    const IndexDef *primary = codec->table->primary_key;
    codec->primary_position = ARENA_NEW_ARRAY(arena, u16, primary->key_columns);
    codec->primary_key_column = ARENA_NEW_ARRAY(arena, KeyColumn, primary->key_columns);
    if (codec->primary_position == NULL || codec->primary_key_column == NULL) return ERR_NOMEM;
    codec->primary_count = primary->key_columns;
    for (u16 i = 0; i < primary->key_columns; i++) {
        EntryColumn column;
        entry_column(codec->table, &primary->column[i], &column, &codec->primary_key_column[i]);
        u16 position = position_of_primary(codec, &primary->column[i]);
        if (position == INDEX_POSITION_NONE) {
            position = codec->columns++;
            codec->column[position] = column;
            codec->key_column[position] = codec->primary_key_column[i];
        }
        codec->primary_position[i] = position;
    }
    return OK;
}

Err
index_codec_init(IndexCodec *codec, const IndexDef *index, Arena *arena)
{
    const TableDef *table = index->table;
    *codec = (IndexCodec){
        .index = index,
        .table = table,
        .is_primary = table->without_rowid && index == table->primary_key,
        .key_columns = index->key_columns,
        .columns = index->key_columns,
    };
    u32 most = index->key_columns;
    if (table->without_rowid) most += table->primary_key->key_columns;
    codec->column = ARENA_NEW_ARRAY(arena, EntryColumn, most);
    codec->key_column = ARENA_NEW_ARRAY(arena, KeyColumn, most);
    codec->scratch = ARENA_NEW_ARRAY(arena, Cell, most);
    if (codec->column == NULL || codec->key_column == NULL || codec->scratch == NULL) {
        return ERR_NOMEM;
    }
    for (u16 i = 0; i < index->key_columns; i++) {
        entry_column(table, &index->column[i], &codec->column[i], &codec->key_column[i]);
    }
    if (table->without_rowid) {
        Err err = append_primary(codec, arena);
        if (err != OK) return err;
    }
    for (u16 i = 0; i < codec->columns; i++) {
        const Collation *collation = codec->column[i].collation;
        if (collation != NULL && collation->kind == COLLATION_HOST) return ERR_UNSUPPORTED;
    }
    codec->layout = (KeyLayout){
        .column = codec->key_column,
        .columns = codec->columns,
        .rowid = table->without_rowid ? KEY_NO_ROWID
                 : index->unique      ? KEY_ROWID_IN_VALUE
                                      : KEY_ROWID_IN_KEY,
    };
    return OK;
}

u16
index_position(const IndexCodec *codec, u16 table_column)
{
    const TableDef *table = codec->table;
    for (u16 i = 0; i < codec->columns; i++) {
        if (codec->column[i].column == table_column) return i;
    }
    if (!table->without_rowid &&
        (table_column == COLUMN_ROWID || table_column == table->rowid_column)) {
        return INDEX_POSITION_ROWID;
    }
    return INDEX_POSITION_NONE;
}

Err
index_encode(const IndexCodec *codec, const Cell *cell, i64 rowid, Buf *key_out, Buf *value_out,
             bool *claims_out)
{
    ASSERT(!codec->is_primary);
    buf_clear(key_out);
    buf_clear(value_out);
    *claims_out = codec->index->unique;
    if (codec->index->unique) {
        for (u16 i = 0; i < codec->key_columns; i++) {
            if (cell[i].type == CELL_NULL) {
                *claims_out = false;
                break;
            }
        }
    }
    if (!*claims_out || codec->layout.rowid != KEY_NO_ROWID) {
        return key_entry_encode(&codec->layout, cell, NULL, rowid, key_out, value_out);
    }
    Err err = key_append_cells(key_out, cell, codec->key_column, codec->key_columns);
    if (err != OK) return err;
    (void)key_shorten(key_out);
    return record_encode(cell, codec->columns, value_out);
}

/* Is this entry of a unique index of a WITHOUT ROWID table in our own form? */
static Err
is_own_form(const IndexCodec *codec, Slice key, bool *own_out)
{
    *own_out = false;
    if (codec->layout.rowid != KEY_NO_ROWID || !codec->index->unique || codec->is_primary) {
        return OK;
    }
    *own_out = true;
    if (key_is_cut(key)) return OK; /* Both forms have the record then. */
    const u8 *p = key.p;
    const u8 *end = p + key.bytes;
    for (u16 i = 0; i < codec->key_columns; i++) {
        bool desc = codec->key_column[i].desc;
        size_t bytes = key_column_bytes(p, end, desc);
        if (bytes == 0) return ERR_CORRUPT;
        if (*p == (desc ? 0xF7 : 0x08)) {
            *own_out = false;
            return OK;
        }
        p += bytes;
    }
    return OK;
}

/* All cells of an entry into codec->scratch. */
static Err
decode_cells(const IndexCodec *codec, Slice key, Slice value, Arena *arena)
{
    bool own = false;
    Err err = is_own_form(codec, key, &own);
    if (err != OK) return err;
    if (!own) return key_entry_decode(&codec->layout, key, value, arena, codec->scratch);
    Record record;
    err = record_open(value, &record);
    if (err != OK) return err;
    if (record.columns != codec->columns) return ERR_CORRUPT;
    return record_columns(&record, codec->columns, codec->scratch, NULL);
}

Err
index_decode_rowid(const IndexCodec *codec, Slice key, Slice value, i64 *rowid_out)
{
    ASSERT(codec->layout.rowid != KEY_NO_ROWID);
    return key_entry_rowid(&codec->layout, key, value, rowid_out);
}

/* Integers in rising columns, of an entry that its key says all about; false: the general way. */
static bool
decode_ints(const IndexCodec *codec, Slice key, Slice value, const u16 *position, u32 count,
            Cell *cell_out)
{
    if (value.bytes > 0 || codec->layout.rowid != KEY_ROWID_IN_KEY || key_is_cut(key)) return false;
    const u8 *p = key.p, *end = key.p + key.bytes;
    i64 number = 0;
    u32 at = 0; /* Columns passed; `number` is the one before. */
    for (u32 i = 0; i < count; i++) {
        if (position[i] == INDEX_POSITION_ROWID) {
            size_t prefix_bytes;
            if (key_rowid_suffix(key, &number, &prefix_bytes) != OK) return false;
            cell_out[i] = cell_int(number);
            p = key.p;
            at = 0;
            continue;
        }
        if (position[i] < at) {
            p = key.p;
            at = 0;
        }
        for (; at <= position[i]; at++) {
            const KeyColumn *column = &codec->key_column[at];
            if (column->desc || column->is_real || !key_take_int(&p, end, &number)) return false;
        }
        cell_out[i] = cell_int(number);
    }
    return true;
}

Err
index_decode(const IndexCodec *codec, Slice key, Slice value, const u16 *position, u32 count,
             Arena *arena, Cell *cell_out)
{
    ASSERT(!codec->is_primary);
    if (decode_ints(codec, key, value, position, count, cell_out)) return OK;
    Err err = decode_cells(codec, key, value, arena);
    if (err != OK) return err;
    i64 rowid = 0;
    if (codec->layout.rowid != KEY_NO_ROWID) {
        err = key_entry_rowid(&codec->layout, key, value, &rowid);
        if (err != OK) return err;
    }
    for (u32 i = 0; i < count; i++) {
        if (position[i] == INDEX_POSITION_ROWID) {
            cell_out[i] = cell_int(rowid);
        } else {
            ASSERT(position[i] < codec->columns);
            cell_out[i] = codec->scratch[position[i]];
        }
    }
    return OK;
}

Err
index_table_key(const IndexCodec *codec, Slice key, Slice value, Arena *arena, Buf *table_key_out)
{
    buf_clear(table_key_out);
    if (codec->is_primary) return buf_append(table_key_out, key.p, key.bytes);
    if (codec->layout.rowid != KEY_NO_ROWID) {
        i64 rowid;
        u8 bytes[TABLE_KEY_BYTES];
        Err err = key_entry_rowid(&codec->layout, key, value, &rowid);
        if (err != OK) return err;
        table_key_put(rowid, bytes);
        return buf_append(table_key_out, bytes, sizeof(bytes));
    }
    Err err = decode_cells(codec, key, value, arena);
    for (u16 i = 0; i < codec->primary_count && err == OK; i++) {
        err = key_append_cell(table_key_out, &codec->scratch[codec->primary_position[i]],
                              &codec->primary_key_column[i]);
    }
    if (err == OK) (void)key_shorten(table_key_out);
    return err;
}

/* The declared cells of a row of a WITHOUT ROWID table whose key was cut: its record has all. */
static Err
primary_cells(const IndexCodec *codec, Slice value)
{
    Record record;
    Err err = record_open(value, &record);
    for (u16 i = 0; i < codec->key_columns && err == OK; i++) {
        u16 stored = codec->table->column[codec->column[i].column].stored_index;
        if (stored >= record.columns) return ERR_CORRUPT;
        err = record_column(&record, stored, &codec->scratch[i]);
        if (err == OK && (codec->scratch[i].flags & CELL_FROM_KEY) != 0) return ERR_CORRUPT;
    }
    return err;
}

Err
index_full_key(const IndexCodec *codec, Slice key, Slice value, Arena *arena, Buf *full_out)
{
    buf_clear(full_out);
    if (!key_is_cut(key)) return buf_append(full_out, key.p, key.bytes);
    if (codec->is_primary) {
        Err err = primary_cells(codec, value);
        if (err != OK) return err;
        return key_append_cells(full_out, codec->scratch, codec->key_column, codec->key_columns);
    }
    Err err = decode_cells(codec, key, value, arena);
    if (err != OK) return err;
    bool suffix = !codec->index->unique;
    for (u16 i = 0; i < codec->key_columns; i++) {
        if (codec->scratch[i].type == CELL_NULL) suffix = true;
    }
    if (codec->layout.rowid == KEY_NO_ROWID) {
        return key_append_cells(full_out, codec->scratch, codec->key_column,
                                suffix ? codec->columns : codec->key_columns);
    }
    err = key_append_cells(full_out, codec->scratch, codec->key_column, codec->key_columns);
    if (err != OK || !suffix) return err;
    i64 rowid;
    err = key_entry_rowid(&codec->layout, key, value, &rowid);
    if (err == OK) err = key_append_rowid(full_out, rowid);
    return err;
}
