/*
 * table_codec_test.c -- rows, index entries and ranges survive the way through bytes.
 *
 * Method: random rows under many shapes of tables and indexes.  What is decoded must be identical
 * to what was encoded; full keys must order as the cells compare; a range must hold exactly the
 * entries for which the comparisons it stands for are true.
 */
#include "exec/table_codec.h"
#include "unit/exec/make_schema.h"

static void
rowid_keys_order_as_integers(void **state)
{
    (void)state;
    static const i64 rowids[] = {I64_MIN, I64_MIN + 1, -300, -1, 0, 1, 255, 256, I64_MAX};
    u8 before[8], after[8];
    for (size_t i = 0; i < COUNT_OF(rowids); i++) {
        table_key_put(rowids[i], after);
        assert_int_equal(table_key_rowid(SLICE(after, 8)), rowids[i]);
        if (i > 0) assert_true(memcmp(before, after, 8) < 0);
        memcpy(before, after, 8);
    }
}

/* ---- rows ---- */

static void
apply_column(const TableDef *table, u16 c, Cell *cell, Arena *arena)
{
    assert_int_equal(cell_apply_affinity(cell, (Affinity)table->column[c].affinity, arena), OK);
}

static void
check_rows(TableDef *table, u64 seed, bool longs)
{
    Rng rng;
    rng_seed(&rng, seed);
    Arena arena, scratch;
    arena_init(&arena, NULL);
    arena_init(&scratch, NULL);
    TableCodec codec;
    assert_int_equal(table_codec_init(&codec, table, &arena), OK);
    Buf key = {0}, record = {0};
    Cell row[16], back[16], some[4];
    for (u32 n = 0; n < 500; n++) {
        arena_reset(&scratch);
        i64 rowid = (i64)rng_next(&rng);
        for (u16 c = 0; c < table->column_count; c++) {
            row[c] = random_cell(&rng, &scratch, longs);
            apply_column(table, c, &row[c], &scratch);
            if (table->column[c].generated == 1) row[c] = cell_null();
            if (table->column[c].not_null && row[c].type == CELL_NULL) row[c] = cell_int(7);
            if (c == table->rowid_column) row[c] = cell_int(rowid);
        }
        assert_int_equal(table_row_key(&codec, row, rowid, &key), OK);
        assert_int_equal(table_encode(&codec, row, buf_slice(&key), &record), OK);
        assert_int_equal(
            table_decode_all(&codec, buf_slice(&key), buf_slice(&record), &scratch, back), OK);
        for (u16 c = 0; c < table->column_count; c++) {
            assert_true(cell_identical(&row[c], &back[c]));
        }
        u16 last = (u16)(table->column_count - 1);
        u16 wanted[] = {last, 0, table->without_rowid ? (u16)0 : COLUMN_ROWID};
        assert_int_equal(
            table_decode(&codec, buf_slice(&key), buf_slice(&record), wanted, 3, &scratch, some),
            OK);
        assert_true(cell_identical(&some[0], &row[last]));
        assert_true(cell_identical(&some[1], &row[0]));
        if (!table->without_rowid) assert_int_equal(some[2].u.i, rowid);
        /* No damage gets further than an error. */
        for (size_t cut = 0; cut < MIN_OF(record.bytes, (size_t)40); cut++) {
            (void)!table_decode_all(&codec, buf_slice(&key), SLICE(record.p, cut), &scratch, back);
        }
    }
    buf_free(&key);
    buf_free(&record);
    arena_free(&arena);
    arena_free(&scratch);
}

static void
rows_come_back_identical(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena, NULL);
    static const MakeColumn columns[] = {
        {.name = "a", .affinity = AFFINITY_BLOB},
        {.name = "b", .affinity = AFFINITY_REAL},
        {.name = "g", .affinity = AFFINITY_TEXT, .generated = 1},
        {.name = "c", .affinity = AFFINITY_TEXT, .collation = &collation_nocase},
        {.name = "h", .affinity = AFFINITY_INTEGER, .generated = 2},
        {.name = "d", .affinity = AFFINITY_INTEGER},
    };
    TableDef *plain = make_table(&arena, "plain", columns, 2);
    check_rows(plain, 1, true);
    TableDef *table = make_table(&arena, "t", columns, 6);
    check_rows(table, 2, true);
    table->rowid_column = 5;
    check_rows(table, 3, true);
    static const MakeKey keys[] = {{.column = 3, .collation = &collation_nocase},
                                   {.column = 0, .desc = true},
                                   {.column = 1, .collation = &collation_rtrim}};
    for (u16 count = 1; count <= 3; count++) {
        TableDef *without = make_table(&arena, "w", columns, 6);
        make_primary(&arena, without, keys, count);
        check_rows(without, 10u + count, false);
        check_rows(without, 20u + count, true);
    }
    arena_free(&arena);
}

static void
short_records_read_defaults(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena, NULL);
    static const MakeColumn columns[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    TableDef *before = make_table(&arena, "t", columns, 1);
    TableDef *after = make_table(&arena, "t", columns, 3);
    after->column[1].default_value = cell_text("new", 3);
    TableCodec old_codec, codec;
    assert_int_equal(table_codec_init(&old_codec, before, &arena), OK);
    assert_int_equal(table_codec_init(&codec, after, &arena), OK);
    Buf key = {0}, record = {0};
    Cell row[3] = {cell_int(42)}, back[3];
    assert_int_equal(table_row_key(&old_codec, row, 9, &key), OK);
    assert_int_equal(table_encode(&old_codec, row, buf_slice(&key), &record), OK);
    assert_int_equal(table_decode_all(&codec, buf_slice(&key), buf_slice(&record), &arena, back),
                     OK);
    assert_int_equal(back[0].u.i, 42);
    assert_true(cell_identical(&back[1], &after->column[1].default_value));
    assert_int_equal(back[2].type, CELL_NULL);
    buf_free(&key);
    buf_free(&record);
    arena_free(&arena);
}

/* ---- index entries and ranges ---- */

#define ENTRIES 120

typedef struct Entry {
    Cell row[4];
    Cell cell[8];
    i64 rowid;
    Buf key, value, table_key;
} Entry;

static int
compare_column(const IndexCodec *codec, u16 i, const Cell *a, const Cell *b)
{
    int order = cell_compare(a, b, codec->column[i].collation);
    return codec->column[i].desc ? -order : order;
}

static void
make_entries(const IndexCodec *codec, const TableCodec *rows, Rng *rng, Arena *arena, bool longs,
             Entry *entry)
{
    const TableDef *table = codec->table;
    for (u32 n = 0; n < ENTRIES; n++) {
        Entry *e = &entry[n];
        e->rowid = (i64)rng_below(rng, 1000) - 500;
        for (u16 c = 0; c < table->column_count; c++) {
            e->row[c] = random_cell(rng, arena, longs);
            apply_column(table, c, &e->row[c], arena);
            if (table->column[c].not_null && e->row[c].type == CELL_NULL) e->row[c] = cell_int(7);
        }
        for (u16 i = 0; i < codec->columns; i++) {
            e->cell[i] = e->row[codec->column[i].column];
        }
        bool claims, has_null = false;
        assert_int_equal(index_encode(codec, e->cell, e->rowid, &e->key, &e->value, &claims), OK);
        for (u16 i = 0; i < codec->key_columns; i++) {
            if (e->cell[i].type == CELL_NULL) has_null = true;
        }
        assert_int_equal(claims, codec->index->unique && !has_null);
        assert_true(e->key.bytes <= STORE_KEY_BYTES_MAX);
        assert_int_equal(table_row_key(rows, e->row, e->rowid, &e->table_key), OK);
    }
}

static void
check_entry(const IndexCodec *codec, const Entry *e, Arena *arena)
{
    u16 position[10];
    Cell back[10];
    u16 count = codec->columns;
    for (u16 i = 0; i < count; i++) {
        position[i] = (u16)(count - 1 - i);
    }
    if (!codec->table->without_rowid) position[count++] = INDEX_POSITION_ROWID;
    Slice key = buf_slice(&e->key), value = buf_slice(&e->value);
    assert_int_equal(index_decode(codec, key, value, position, count, arena, back), OK);
    for (u16 i = 0; i < codec->columns; i++) {
        assert_true(cell_identical(&back[i], &e->cell[codec->columns - 1 - i]));
    }
    if (!codec->table->without_rowid) {
        i64 rowid;
        assert_int_equal(back[codec->columns].u.i, e->rowid);
        assert_int_equal(index_decode_rowid(codec, key, value, &rowid), OK);
        assert_int_equal(rowid, e->rowid);
    }
    Buf table_key = {0};
    assert_int_equal(index_table_key(codec, key, value, arena, &table_key), OK);
    assert_true(slice_equal(buf_slice(&table_key), buf_slice(&e->table_key)));
    buf_free(&table_key);
}

static void
check_order(const IndexCodec *codec, const Entry *entry, Arena *arena)
{
    Buf a = {0}, b = {0};
    for (u32 n = 1; n < ENTRIES; n++) {
        const Entry *x = &entry[n - 1], *y = &entry[n];
        int expected = 0;
        for (u16 i = 0; i < codec->key_columns && expected == 0; i++) {
            expected = compare_column(codec, i, &x->cell[i], &y->cell[i]);
        }
        if (expected == 0) continue; /* Decided by the suffix. */
        assert_int_equal(index_full_key(codec, buf_slice(&x->key), buf_slice(&x->value), arena, &a),
                         OK);
        assert_int_equal(index_full_key(codec, buf_slice(&y->key), buf_slice(&y->value), arena, &b),
                         OK);
        assert_int_equal(slice_compare(buf_slice(&a), buf_slice(&b)) < 0, expected < 0);
    }
    buf_free(&a);
    buf_free(&b);
}

/* Does the row satisfy the comparisons that the range stands for? */
static bool
satisfies(const IndexCodec *codec, const Entry *e, const Cell *eq, u32 eq_count, bool null_safe,
          const Cell *low, bool low_inclusive, const Cell *high, bool high_inclusive)
{
    for (u32 i = 0; i < eq_count; i++) {
        if (!null_safe && (eq[i].type == CELL_NULL || e->cell[i].type == CELL_NULL)) return false;
        if (cell_compare(&eq[i], &e->cell[i], codec->column[i].collation) != 0) return false;
    }
    if (low == NULL && high == NULL) return true;
    const Cell *cell = &e->cell[eq_count];
    const Collation *collation = codec->column[eq_count].collation;
    if (cell->type == CELL_NULL) return false;
    if (low != NULL) {
        int order = cell_compare(cell, low, collation);
        if (low->type == CELL_NULL || order < 0 || (order == 0 && !low_inclusive)) return false;
    }
    if (high != NULL) {
        int order = cell_compare(cell, high, collation);
        if (high->type == CELL_NULL || order > 0 || (order == 0 && !high_inclusive)) return false;
    }
    return true;
}

static void
check_ranges(const IndexCodec *codec, const Entry *entry, Rng *rng, Arena *arena, bool longs)
{
    KeyRange range = {0};
    for (u32 n = 0; n < 300; n++) {
        u32 eq_count = (u32)rng_below(rng, codec->key_columns + 1u);
        bool ranged = eq_count < codec->key_columns && rng_below(rng, 2) != 0;
        bool null_safe = rng_below(rng, 4) == 0;
        bool safe[8] = {null_safe, null_safe, null_safe, null_safe};
        Cell eq[8], low_cell, high_cell;
        const Entry *near = &entry[rng_below(rng, ENTRIES)];
        for (u32 i = 0; i < eq_count; i++) {
            eq[i] = rng_below(rng, 3) != 0 ? near->cell[i] : random_cell(rng, arena, longs);
        }
        const Cell *low = NULL, *high = NULL;
        if (ranged) {
            low_cell = random_cell(rng, arena, longs);
            high_cell = rng_below(rng, 2) != 0 ? near->cell[eq_count]
                                               : random_cell(rng, arena, longs);
            if (rng_below(rng, 3) != 0) low = &low_cell;
            if (rng_below(rng, 3) != 0) high = &high_cell;
        }
        bool low_inclusive = rng_below(rng, 2) != 0, high_inclusive = rng_below(rng, 2) != 0;
        assert_int_equal(index_range_build(codec, eq, eq_count, safe, low, low_inclusive, high,
                                           high_inclusive, &range),
                         OK);
        u32 found = 0;
        for (u32 k = 0; k < ENTRIES; k++) {
            const Entry *e = &entry[k];
            bool in = !range.empty &&
                      slice_compare(buf_slice(&e->key), buf_slice(&range.low)) >= 0 &&
                      (range.high.bytes == 0 ||
                       slice_compare(buf_slice(&e->key), buf_slice(&range.high)) < 0);
            if (in) {
                assert_int_equal(index_range_holds(codec, &range, buf_slice(&e->key),
                                                   buf_slice(&e->value), arena, &in),
                                 OK);
            }
            assert_int_equal(in, satisfies(codec, e, eq, eq_count, null_safe, low, low_inclusive,
                                           high, high_inclusive));
            if (in && range.point) {
                assert_true(slice_equal(buf_slice(&e->key), buf_slice(&range.low)));
                found++;
            }
        }
        (void)found;
    }
    range_free(&range);
}

static void
check_index(TableDef *table, IndexDef *index, u64 seed, bool longs)
{
    Rng rng;
    rng_seed(&rng, seed);
    Arena arena;
    arena_init(&arena, NULL);
    IndexCodec codec;
    TableCodec rows;
    assert_int_equal(index_codec_init(&codec, index, &arena), OK);
    assert_int_equal(table_codec_init(&rows, table, &arena), OK);
    Entry *entry = MEM_NEW_ARRAY(Entry, ENTRIES);
    make_entries(&codec, &rows, &rng, &arena, longs, entry);
    for (u32 n = 0; n < ENTRIES; n++) {
        check_entry(&codec, &entry[n], &arena);
    }
    check_order(&codec, entry, &arena);
    check_ranges(&codec, entry, &rng, &arena, longs);
    for (u32 n = 0; n < ENTRIES; n++) {
        buf_free(&entry[n].key);
        buf_free(&entry[n].value);
        buf_free(&entry[n].table_key);
    }
    mem_free(entry);
    arena_free(&arena);
}

static void
entries_and_ranges_hold(void **state)
{
    (void)state;
    static const MakeColumn columns[] = {
        {.name = "a", .affinity = AFFINITY_BLOB},
        {.name = "b", .affinity = AFFINITY_REAL},
        {.name = "c", .affinity = AFFINITY_TEXT, .collation = &collation_nocase},
        {.name = "d", .affinity = AFFINITY_NUMERIC},
    };
    static const MakeKey shape[][3] = {
        {{.column = 0}, {.column = 1}, {.column = 2}},
        {{.column = 2, .collation = &collation_nocase}, {.column = 0, .desc = true}, {.column = 3}},
        {{.column = 1, .desc = true},
         {.column = 0, .collation = &collation_rtrim},
         {.column = 2, .collation = &collation_nocase, .desc = true}},
    };
    Arena arena;
    arena_init(&arena, NULL);
    u64 seed = 100;
    for (u32 kind = 0; kind < 4; kind++) {
        for (u32 s = 0; s < COUNT_OF(shape); s++) {
            for (u16 count = 1; count <= 3; count++) {
                TableDef *table = make_table(&arena, "t", columns, 4);
                static const MakeKey primary[] = {{.column = 3, .desc = true}, {.column = 2}};
                if (kind >= 2) make_primary(&arena, table, primary, 2);
                IndexDef *index = make_index(&arena, table, "i", kind % 2 != 0, shape[s], count);
                check_index(table, index, seed++, false);
                check_index(table, index, seed++, true);
            }
        }
    }
    arena_free(&arena);
}

/* ---- ranges of rowids ---- */

static bool
rowid_satisfies(i64 rowid, const Cell *eq, const Cell *low, bool low_inclusive, const Cell *high,
                bool high_inclusive)
{
    Cell cell = cell_int(rowid);
    if (eq != NULL && (eq->type == CELL_NULL || cell_compare(&cell, eq, NULL) != 0)) return false;
    if (low != NULL) {
        int order = cell_compare(&cell, low, NULL);
        if (low->type == CELL_NULL || order < 0 || (order == 0 && !low_inclusive)) return false;
    }
    if (high != NULL) {
        int order = cell_compare(&cell, high, NULL);
        if (high->type == CELL_NULL || order > 0 || (order == 0 && !high_inclusive)) return false;
    }
    return true;
}

static void
rowid_ranges_hold(void **state)
{
    (void)state;
    static const i64 rowids[] = {I64_MIN,
                                 I64_MIN + 1,
                                 -301,
                                 -300,
                                 -299,
                                 -1,
                                 0,
                                 1,
                                 2,
                                 3,
                                 127,
                                 128,
                                 129,
                                 1000,
                                 9007199254740991,
                                 9007199254740992,
                                 9007199254740993,
                                 I64_MAX - 1,
                                 I64_MAX};
    Arena arena;
    arena_init(&arena, NULL);
    Rng rng;
    rng_seed(&rng, 77);
    KeyRange range = {0};
    for (u32 n = 0; n < 20000; n++) {
        arena_reset(&arena);
        Cell a = random_cell(&rng, &arena, false), b = random_cell(&rng, &arena, false);
        u64 shape = rng_below(&rng, 5);
        const Cell *eq = shape == 0 ? &a : NULL;
        const Cell *low = shape == 1 || shape == 3 ? &a : NULL;
        const Cell *high = shape == 2 || shape == 3 ? &b : NULL;
        bool low_inclusive = rng_below(&rng, 2) != 0, high_inclusive = rng_below(&rng, 2) != 0;
        assert_int_equal(rowid_range_build(eq, low, low_inclusive, high, high_inclusive, &range),
                         OK);
        for (size_t i = 0; i < COUNT_OF(rowids); i++) {
            u8 key[8];
            table_key_put(rowids[i], key);
            bool in = !range.empty && slice_compare(SLICE(key, 8), buf_slice(&range.low)) >= 0 &&
                      (range.high.bytes == 0 ||
                       slice_compare(SLICE(key, 8), buf_slice(&range.high)) < 0);
            assert_int_equal(
                in, rowid_satisfies(rowids[i], eq, low, low_inclusive, high, high_inclusive));
            if (in && eq != NULL) assert_true(range.point);
        }
    }
    range_free(&range);
    arena_free(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rowid_keys_order_as_integers),
        cmocka_unit_test(rows_come_back_identical),
        cmocka_unit_test(short_records_read_defaults),
        cmocka_unit_test(entries_and_ranges_hold),
        cmocka_unit_test(rowid_ranges_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
