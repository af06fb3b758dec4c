/*
 * table_codec.c -- rows of a table as keys and records.
 *
 * Invariant: what table_encode leaves out of the record ("taken from the key") table_decode gets
 * back from the key bit for bit.
 */
#include "exec/table_codec.h"

#include "value/record.h"

#define NOT_IN_KEY ((u16)0xFFFF)

static Err
primary_init(TableCodec *codec, Arena *arena)
{
    const TableDef *table = codec->table;
    Err err = index_codec_init(&codec->primary, table->primary_key, arena);
    if (err != OK) return err;
    codec->key_position = (u16 *)arena_alloc(arena, sizeof(u16) * (table->column_count + 1u));
    if (codec->key_position == NULL) return ERR_NOMEM;
    memset(codec->key_position, 0xFF, sizeof(u16) * (table->column_count + 1u));
    for (u16 i = 0; i < codec->primary.key_columns; i++) {
        u16 column = codec->primary.column[i].column;
        ASSERT(column < table->column_count);
        if (codec->key_position[column] == NOT_IN_KEY) codec->key_position[column] = i;
    }
    return OK;
}

Err
table_codec_init(TableCodec *codec, const TableDef *table, Arena *arena)
{
    *codec = (TableCodec){.table = table};
    codec->stored_column = ARENA_NEW_ARRAY(arena, u16, table->stored_count + 1u);
    codec->scratch = ARENA_NEW_ARRAY(arena, Cell, table->stored_count + 1u);
    if (codec->stored_column == NULL || codec->scratch == NULL) return ERR_NOMEM;

    for (u16 c = 0; c < table->column_count; c++) {
        const ColumnDef *column = &table->column[c];
        if (column->generated == 1) continue;
        ASSERT(column->stored_index < table->stored_count);
        codec->stored_column[column->stored_index] = c;
        if (column->stored_index != c) codec->gathers = true;
    }
    if (table->without_rowid) {
        codec->gathers = true;
        return primary_init(codec, arena);
    }
    if (table->rowid_column != COLUMN_ROWID) codec->gathers = true;
    return OK;
}

Err
table_primary_key(const TableCodec *codec, const Cell *primary, Buf *key_out)
{
    ASSERT(codec->table->without_rowid);
    buf_clear(key_out);
    Err err = key_append_cells(key_out, primary, codec->primary.key_column,
                               codec->primary.key_columns);
    if (err == OK) (void)key_shorten(key_out);
    return err;
}

Err
table_row_key(const TableCodec *codec, const Cell *row, i64 rowid, Buf *key_out)
{
    buf_clear(key_out);
    if (!codec->table->without_rowid) {
        u8 key[TABLE_KEY_BYTES];
        table_key_put(rowid, key);
        return buf_append(key_out, key, sizeof(key));
    }
    for (u16 i = 0; i < codec->primary.key_columns; i++) {
        Err err = key_append_cell(key_out, &row[codec->primary.column[i].column],
                                  &codec->primary.key_column[i]);
        if (err != OK) return err;
    }
    (void)key_shorten(key_out);
    return OK;
}

Err
table_encode(const TableCodec *codec, const Cell *row, Slice key, Buf *record_out)
{
    const TableDef *table = codec->table;
    buf_clear(record_out);
    if (!codec->gathers) return record_encode(row, table->stored_count, record_out);

    Cell *cell = codec->scratch;
    for (u16 i = 0; i < table->stored_count; i++) {
        cell[i] = row[codec->stored_column[i]];
    }
    if (!table->without_rowid) {
        if (table->rowid_column != COLUMN_ROWID) {
            cell[table->column[table->rowid_column].stored_index] = cell_from_key();
        }
        return record_encode(cell, table->stored_count, record_out);
    }
    if (!key_is_cut(key)) {
        for (u16 i = 0; i < codec->primary.key_columns; i++) {
            u16 column = codec->primary.column[i].column;
            if (codec->key_position[column] != i) continue;
            if (key_reproduces(&row[column], &codec->primary.key_column[i])) {
                cell[table->column[column].stored_index] = cell_from_key();
            }
        }
    }
    return record_encode(cell, table->stored_count, record_out);
}

/* State of one decoding: the key's cells are decoded at most once, at their first use. */
typedef struct RowReader {
    const TableCodec *codec;
    Slice key;
    Record record;
    Arena *arena;
    bool key_decoded;
} RowReader;

static Err
key_cell(RowReader *reader, u16 column, Cell *cell_out)
{
    const TableCodec *codec = reader->codec;
    const IndexCodec *primary = &codec->primary;
    if (!codec->table->without_rowid || codec->key_position[column] == NOT_IN_KEY) {
        return ERR_CORRUPT; /* The record says "in the key" of a column that is not there. */
    }
    if (!reader->key_decoded) {
        if (key_is_cut(reader->key)) return ERR_CORRUPT;
        const u8 *p = reader->key.p;
        const u8 *end = p + reader->key.bytes;
        for (u16 i = 0; i < primary->key_columns; i++) {
            Err err = key_decode_cell(&p, end, &primary->key_column[i], reader->arena,
                                      &primary->scratch[i]);
            if (err != OK) return err;
        }
        if (p != end) return ERR_CORRUPT;
        reader->key_decoded = true;
    }
    *cell_out = primary->scratch[codec->key_position[column]];
    return OK;
}

static Err
read_column(RowReader *reader, u16 c, Cell *cell_out)
{
    const TableDef *table = reader->codec->table;
    if (!table->without_rowid && (c == COLUMN_ROWID || c == table->rowid_column)) {
        *cell_out = cell_int(table_key_rowid(reader->key));
        return OK;
    }
    ASSERT(c < table->column_count);
    const ColumnDef *column = &table->column[c];
    if (column->generated == 1) {
        *cell_out = cell_null();
        return OK;
    }
    if (column->stored_index >= reader->record.columns) {
        *cell_out = column->default_value;
        return OK;
    }
    Err err = record_column(&reader->record, column->stored_index, cell_out);
    if (err != OK) return err;
    if ((cell_out->flags & CELL_FROM_KEY) != 0) return key_cell(reader, c, cell_out);
    return OK;
}

static Err
reader_open(RowReader *reader, const TableCodec *codec, Slice key, Slice record, Arena *arena)
{
    *reader = (RowReader){.codec = codec, .key = key, .arena = arena};
    if (!codec->table->without_rowid && key.bytes != TABLE_KEY_BYTES) return ERR_CORRUPT;
    return record_open(record, &reader->record);
}

Err
table_decode(const TableCodec *codec, Slice key, Slice record, const u16 *column, u32 count,
             Arena *arena, Cell *cell_out)
{
    RowReader reader;
    Err err = reader_open(&reader, codec, key, record, arena);
    for (u32 i = 0; i < count && err == OK; i++) {
        err = read_column(&reader, column[i], &cell_out[i]);
    }
    return err;
}

Err
table_decode_all(const TableCodec *codec, Slice key, Slice record, Arena *arena, Cell *row_out)
{
    RowReader reader;
    Err err = reader_open(&reader, codec, key, record, arena);
    for (u16 c = 0; c < codec->table->column_count && err == OK; c++) {
        err = read_column(&reader, c, &row_out[c]);
    }
    return err;
}
