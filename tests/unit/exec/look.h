/*
 * look.h -- looking at tables in tests: their rows as text, their indexes against their rows.
 */
#pragma once

#include "exec/table_codec.h"
#include "unit/exec/make_plan.h"

/* ---- looking at a table ---- */

static inline void
put_cell(Buf *text, const Cell *cell)
{
    Err err = OK;
    switch (cell->type) {
    case CELL_NULL: err = buf_append_text(text, "-"); break;
    case CELL_INT: err = buf_printf(text, "%lld", (long long)cell->u.i); break;
    case CELL_REAL: err = buf_printf(text, "r%lld", (long long)(cell->u.r * 10)); break;
    default: err = buf_append(text, cell->u.p, cell->bytes);
    }
    assert_int_equal(err, OK);
}

/* All rows as "a,b,c a,b,c ". */
static inline char *
dump(TestDb *db, const TableDef *table)
{
    TableCodec codec;
    StoreCursor *cursor;
    Buf text = {0};
    Cell row[16];
    bool found;
    assert_int_equal(table_codec_init(&codec, table, &db->arena), OK);
    assert_int_equal(store_cursor_open(db->txn, table->tree, &cursor), OK);
    assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found), OK);
    while (found) {
        assert_int_equal(table_decode_all(&codec, store_cursor_key(cursor),
                                          store_cursor_value(cursor), &db->arena, row),
                         OK);
        for (u16 c = 0; c < table->column_count; c++) {
            if (c > 0) assert_int_equal(buf_append_text(&text, ","), OK);
            put_cell(&text, &row[c]);
        }
        assert_int_equal(buf_append_text(&text, " "), OK);
        assert_int_equal(store_cursor_next(cursor, &found), OK);
    }
    store_cursor_close(cursor);
    char *result = arena_strndup(&db->arena, text.p != NULL ? (const void *)text.p : "",
                                 text.bytes);
    buf_free(&text);
    return result;
}

#define assert_rows(db, table, expected) assert_string_equal(dump(db, table), expected)

/* Every row has its entries, and no index has others. */
static inline void
check_indexes(TestDb *db, const TableDef *table)
{
    ArenaMark mark = arena_mark(&db->arena);
    TableCodec codec;
    assert_int_equal(table_codec_init(&codec, table, &db->arena), OK);
    Buf key = {0}, value = {0};
    for (u16 i = 0; i < table->index_count; i++) {
        IndexCodec index;
        assert_int_equal(index_codec_init(&index, table->index[i], &db->arena), OK);
        StoreCursor *cursor;
        bool found;
        u64 rows = 0, entries = 0;
        Cell row[16], cell[16];
        assert_int_equal(store_cursor_open(db->txn, table->tree, &cursor), OK);
        assert_int_equal(store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found), OK);
        for (; found; rows++) {
            Slice table_key = store_cursor_key(cursor);
            assert_int_equal(
                table_decode_all(&codec, table_key, store_cursor_value(cursor), &db->arena, row),
                OK);
            for (u16 k = 0; k < index.columns; k++) {
                cell[k] = row[index.column[k].column];
            }
            bool claims, has;
            i64 rowid = table->without_rowid ? 0 : table_key_rowid(table_key);
            assert_int_equal(index_encode(&index, cell, rowid, &key, &value, &claims), OK);
            Slice got;
            assert_int_equal(store_get(db->txn, table->index[i]->tree, buf_slice(&key), &has, &got),
                             OK);
            assert_true(has);
            assert_true(slice_equal(got, buf_slice(&value)));
            assert_int_equal(store_cursor_next(cursor, &found), OK);
        }
        store_cursor_close(cursor);
        assert_int_equal(store_count(db->txn, table->index[i]->tree, &entries), OK);
        assert_int_equal(entries, rows);
    }
    buf_free(&key);
    buf_free(&value);
    arena_rewind(&db->arena, mark);
}

static inline Err
insert(TestDb *db, const TableDef *table, Conflict conflict, const Cell *values)
{
    return test_db_run_plan(db, plan_insert_params(table, conflict), values, table->column_count);
}

#define assert_fails(db, call, code, text)                    \
    do {                                                      \
        assert_int_equal(call, code);                         \
        assert_string_equal(err_message(&(db)->msg), (text)); \
    } while (0)

static inline Cell
text_cell(const char *text)
{
    return cell_text(text, strlen(text));
}

#define ROW(...) ((Cell[]){__VA_ARGS__})
#define I(n)     cell_int(n)
#define N        cell_null()
#define T(text)  text_cell(text)
