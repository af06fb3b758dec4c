/*
 * index_build_test.c -- indexes built from tables, and compared with them.
 *
 * Method: fill tables with random rows (texts longer than a key among them), build indexes of
 * several shapes in small portions, and look that row by row the entries are those that the row
 * program would have made; then damage entries one by one, and each must be found.
 */
#include "exec/index_build.h"

#include "unit/exec/look.h"

/* SELECT key columns, then the row's key. */
static Plan *
plan_build(const TableDef *table, const IndexDef *index)
{
    u16 column[16];
    u32 count = 0;
    for (u16 i = 0; i < index->key_columns; i++) {
        column[count++] = index->column[i].column;
    }
    count += key_columns_of(table, &column[count]);
    return plan_select(table, column, count);
}

static TableDef *
make_filled(TestDb *db, bool without_rowid, u64 seed, u32 rows)
{
    static const MakeColumn columns[] = {
        {.name = "a"}, {.name = "b", .affinity = AFFINITY_REAL}, {.name = "c"}};
    static const MakeKey key[] = {{.column = 2, .collation = &collation_nocase}, {.column = 0}};
    TableDef *table = make_table(&db->arena, "t", columns, 3);
    if (without_rowid) make_primary(&db->arena, table, key, 2);
    test_db_create(db, table, NULL, 0);
    Rng rng;
    rng_seed(&rng, seed);
    for (u32 i = 0; i < rows; i++) {
        Cell row[3];
        for (u32 c = 0; c < 3; c++) {
            row[c] = random_cell(&rng, &db->arena, true);
        }
        assert_int_equal(insert(db, table, CONFLICT_REPLACE, row),
                         without_rowid && (row[0].type == CELL_NULL || row[2].type == CELL_NULL)
                             ? ERR_CONSTRAINT_NOTNULL
                             : OK);
    }
    return table;
}

/* Make it an index of the table, with a tree. */
static void
attach(TestDb *db, TableDef *table, IndexDef *index)
{
    assert_int_equal(store_tree_create(db->txn, STORE_TREE_BYTES, &index->tree), OK);
    table->index = ARENA_NEW(&db->arena, IndexDef *);
    table->index[0] = index;
    table->index_count = 1;
}

static void
see(void *arg, const char *text)
{
    assert_int_equal(buf_printf(arg, "%s\n", text), OK);
}

static char *
check_all(TestDb *db, TableDef *table)
{
    Buf text = {0};
    u32 left = 100;
    Plan *plan = plan_build(table, table->index[0]);
    assert_int_equal(exec_index_check(plan, table->index[0], &db->env, db->by_database, &left, see,
                                      &text, &db->msg),
                     OK);
    plan_free(plan);
    assert_int_equal(exec_table_check(table, db->txn, &left, see, &text, &db->msg), OK);
    char *result = arena_strndup(&db->arena, text.p != NULL ? (void *)text.p : "", text.bytes);
    buf_free(&text);
    return result;
}

static void
built_entries_are_the_row_programs(void **state)
{
    (void)state;
    static const MakeKey shape[][2] = {
        {{.column = 0}, {.column = 1}},
        {{.column = 2, .collation = &collation_nocase}, {.column = 0, .desc = true}},
        {{.column = 1, .desc = true}, {.column = 2, .collation = &collation_rtrim}}};
    for (u32 without = 0; without < 2; without++) {
        for (u32 s = 0; s < COUNT_OF(shape); s++) {
            TestDb db;
            test_db_open(&db);
            db.env.memory_budget_bytes = 20000;
            TableDef *table = make_filled(&db, without != 0, 5 + s, 150);
            IndexDef *index = make_index(&db.arena, table, "i", false, shape[s], 2);
            attach(&db, table, index);
            Plan *plan = plan_build(table, index);
            assert_int_equal(exec_index_build(plan, index, &db.env, db.by_database, &db.msg), OK);
            plan_free(plan);
            check_indexes(&db, table);
            assert_string_equal(check_all(&db, table), "");
            test_db_close(&db);
        }
    }
}

static void
duplicates_are_refused(void **state)
{
    (void)state;
    for (u32 small = 0; small < 2; small++) {
        TestDb db;
        test_db_open(&db);
        db.env.memory_budget_bytes = small ? 1 : 0;
        TableDef *table = make_filled(&db, false, 1, 0);
        assert_int_equal(insert(&db, table, CONFLICT_DEFAULT, ROW(I(1), I(2), N)), OK);
        assert_int_equal(insert(&db, table, CONFLICT_DEFAULT, ROW(I(2), N, T("x"))), OK);
        assert_int_equal(insert(&db, table, CONFLICT_DEFAULT, ROW(I(1), I(2), I(9))), OK);
        assert_int_equal(insert(&db, table, CONFLICT_DEFAULT, ROW(I(2), N, T("y"))), OK);
        static const MakeKey ba[] = {{.column = 1}, {.column = 0}}, c = {.column = 2};
        IndexDef *index = make_index(&db.arena, table, "i", true, ba, 2);
        attach(&db, table, index);
        StoreMark mark = store_txn_mark(db.txn);
        Plan *plan = plan_build(table, index);
        assert_fails(&db, exec_index_build(plan, index, &db.env, db.by_database, &db.msg),
                     ERR_CONSTRAINT_UNIQUE, "UNIQUE constraint failed: t.b, t.a");
        plan_free(plan);
        store_txn_undo_to(db.txn, mark);
        index = make_index(&db.arena, table, "i", true, &c, 1);
        attach(&db, table, index);
        plan = plan_build(table, index);
        assert_int_equal(exec_index_build(plan, index, &db.env, db.by_database, &db.msg), OK);
        plan_free(plan);
        check_indexes(&db, table);
        test_db_close(&db);
    }
}

static void
damage_is_found(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    TableDef *table = make_filled(&db, false, 1, 0);
    static const MakeKey a = {.column = 0};
    IndexDef *index = make_index(&db.arena, table, "i", true, &a, 1);
    attach(&db, table, index);
    for (i64 i = 1; i <= 3; i++) {
        assert_int_equal(insert(&db, table, CONFLICT_DEFAULT, ROW(I(i), N, N)), OK);
    }
    StoreMark mark = store_txn_mark(db.txn);
    StoreVerdict verdict;
    static const u8 key_of_2[] = {0x22, 4}, key_of_7[] = {0x22, 14};
    Slice second = SLICE(key_of_2, 2);
    assert_int_equal(store_delete(db.txn, index->tree, second, &verdict), OK);
    assert_string_equal(check_all(&db, table),
                        "row 2 missing from index i\nwrong # of entries in index i\n");
    store_txn_undo_to(db.txn, mark);
    bool found;
    Slice value;
    assert_int_equal(store_get(db.txn, index->tree, second, &found, &value), OK);
    u8 other[16];
    size_t bytes = value.bytes;
    memcpy(other, value.p, bytes);
    other[bytes - 1] ^= 1;
    assert_int_equal(
        store_put(db.txn, index->tree, second, SLICE(other, bytes), STORE_PUT_ANY, &verdict), OK);
    assert_string_equal(check_all(&db, table), "non-unique entry in index i\n");
    store_txn_undo_to(db.txn, mark);
    assert_int_equal(store_put(db.txn, index->tree, SLICE(key_of_7, 2), SLICE(other, bytes),
                               STORE_PUT_ANY, &verdict),
                     OK);
    assert_string_equal(check_all(&db, table), "wrong # of entries in index i\n");
    store_txn_undo_to(db.txn, mark);
    table->column[1].not_null = true;
    u32 left = 2;
    Buf text = {0};
    assert_int_equal(exec_table_check(table, db.txn, &left, see, &text, &db.msg), OK);
    assert_int_equal(buf_append_byte(&text, 0), OK);
    assert_string_equal((char *)text.p, "NULL value in t.b\nNULL value in t.b\n");
    assert_int_equal(left, 0);
    buf_free(&text);
    test_db_close(&db);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(built_entries_are_the_row_programs),
        cmocka_unit_test(duplicates_are_refused),
        cmocka_unit_test(damage_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
