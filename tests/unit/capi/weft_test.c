/*
 * weft_test.c -- weft.h: results as columns, arrays in, isolation levels, error objects.
 *
 * Method: each batch is read as a consumer of the Arrow C data interface would, buffer by buffer,
 * and compared with the rows that the statement gives one by one.
 */
#include "weft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "unit/cmocka_all.h"

static weft_db *
open_memory(void)
{
    weft_db *db;
    assert_int_equal(weft_open(NULL, NULL, &db), WEFT_OK);
    return db;
}

static void
run(weft_db *db, const char *sql)
{
    if (weft_exec(db, sql) != WEFT_OK) fail_msg("%s: %s", sql, weft_errmsg(db));
}

static weft_stmt *
prepare(weft_db *db, const char *sql)
{
    weft_stmt *stmt;
    if (weft_prepare(db, sql, -1, &stmt, NULL) != WEFT_OK) fail_msg("%s: %s", sql, weft_errmsg(db));
    return stmt;
}

static int64_t
number(weft_db *db, const char *sql)
{
    weft_stmt *stmt = prepare(db, sql);
    assert_int_equal(weft_step(stmt), WEFT_ROW);
    int64_t value = weft_column_int64(stmt, 0);
    weft_finalize(stmt);
    return value;
}

static bool
is_null(const struct ArrowArray *array, int64_t i)
{
    const uint8_t *bits = array->buffers[0];
    return bits != NULL && (bits[i / 8] >> (i % 8) & 1) == 0;
}

static int64_t
integer_at(const struct ArrowArray *batch, int column, int64_t row)
{
    return ((const int64_t *)batch->children[column]->buffers[1])[row];
}

static double
real_at(const struct ArrowArray *batch, int column, int64_t row)
{
    return ((const double *)batch->children[column]->buffers[1])[row];
}

static Slice
bytes_at(const struct ArrowArray *batch, int column, int64_t row)
{
    const int64_t *offset = batch->children[column]->buffers[1];
    const uint8_t *values = batch->children[column]->buffers[2];
    return SLICE(values + offset[row], (size_t)(offset[row + 1] - offset[row]));
}

static void
expect_formats(weft_stmt *stmt, const char *formats)
{
    struct ArrowSchema schema;
    assert_int_equal(weft_fetch_schema(stmt, &schema), WEFT_OK);
    assert_string_equal(schema.format, "+s");
    assert_int_equal(schema.n_children, strlen(formats));
    for (int64_t i = 0; i < schema.n_children; i++) {
        assert_int_equal(schema.children[i]->format[0], formats[i]);
        assert_string_equal(schema.children[i]->name, weft_column_name(stmt, (int)i));
    }
    schema.release(&schema);
    assert_null(schema.release);
}

static void
all_types_in_batches_of_every_size(void **state)
{
    (void)state;
    weft_db *db = open_memory();
    run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, r REAL, s TEXT, b BLOB, n INT);"
            "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM c WHERE i < 3000)"
            "INSERT INTO t SELECT i, i / 4.0, 'text ' || i, CAST(i AS BLOB),"
            " iif(i % 3, i, NULL) FROM c");
    weft_stmt *rows = prepare(db, "SELECT * FROM t"), *stmt = prepare(db, "SELECT * FROM t");
    const int64_t sizes[] = {1, 7, 8, 9, 1000, 3000, 5000};
    for (size_t size = 0; size < COUNT_OF(sizes); size++) {
        struct ArrowArray batch;
        int64_t seen = 0;
        while (weft_fetch(stmt, sizes[size], &batch) == WEFT_ROW) {
            assert_true(batch.length >= 1 && batch.length <= sizes[size]);
            assert_int_equal(batch.n_children, 5);
            for (int64_t i = 0; i < batch.length; i++, seen++) {
                assert_int_equal(weft_step(rows), WEFT_ROW);
                assert_int_equal(integer_at(&batch, 0, i), weft_column_int64(rows, 0));
                assert_true(real_at(&batch, 1, i) == weft_column_double(rows, 1));
                Slice text = bytes_at(&batch, 2, i), blob = bytes_at(&batch, 3, i);
                assert_int_equal(text.bytes, weft_column_bytes(rows, 2));
                assert_memory_equal(text.p, weft_column_text(rows, 2), text.bytes);
                assert_int_equal(blob.bytes, weft_column_bytes(rows, 3));
                assert_memory_equal(blob.p, weft_column_blob(rows, 3), blob.bytes);
                assert_int_equal(is_null(batch.children[4], i),
                                 weft_column_type(rows, 4) == WEFT_NULL);
                assert_int_equal(integer_at(&batch, 4, i), weft_column_int64(rows, 4));
            }
            expect_formats(stmt, "lgUZl");
            batch.release(&batch);
            assert_null(batch.release);
        }
        assert_null(batch.release);
        assert_int_equal(seen, 3000);
        assert_int_equal(weft_step(rows), WEFT_DONE);
    }
    weft_finalize(rows);
    weft_finalize(stmt);
    weft_close(db);
}

/* Expressions have no declared type: what the first batch holds decides. */
static void
types_by_values(void **state)
{
    (void)state;
    static const struct {
        const char *values, *format; /* One column of VALUES; NULL: refused. */
    } cases[] = {
        {"(NULL),(1),(2)", "l"},
        {"(NULL),(1),(2.5)", "g"},
        {"(1.5),(2)", "g"},
        {"(1),(2.0)", "l"},
        {"('a'),(1),(NULL)", "U"},
        {"(x'00'),('a'),(1)", "Z"},
        {"(NULL),(NULL)", "U"},
        {"(1),('a')", NULL},
        {"('a'),(x'00')", NULL},
        {"(9007199254740993),(0.5)", NULL},
        {"(0.5),(9007199254740993)", NULL},
    };
    weft_db *db = open_memory();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char sql[200];
        snprintf(sql, sizeof(sql), "SELECT column1 FROM (VALUES %s)", cases[i].values);
        weft_stmt *stmt = prepare(db, sql);
        struct ArrowArray batch;
        int code = weft_fetch(stmt, 100, &batch);
        if (cases[i].format == NULL) {
            assert_int_equal(code, WEFT_MISMATCH);
            assert_null(batch.release);
            assert_non_null(strstr(weft_errmsg(db), "row 2 of the batch, column column1: "));
        } else {
            assert_int_equal(code, WEFT_ROW);
            expect_formats(stmt, cases[i].format);
            batch.release(&batch);
            assert_int_equal(weft_fetch(stmt, 100, &batch), WEFT_DONE);
        }
        weft_finalize(stmt);
    }
    weft_close(db);
}

static void
chosen_types_and_later_batches(void **state)
{
    (void)state;
    weft_db *db = open_memory();
    run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER);"
            "INSERT INTO t VALUES(1, 10), (2, 20), (3, 'many')");
    weft_stmt *stmt = prepare(db, "SELECT n FROM t");
    struct ArrowArray batch;
    assert_int_equal(weft_fetch(stmt, 2, &batch), WEFT_ROW);
    batch.release(&batch);
    assert_int_equal(weft_fetch(stmt, 2, &batch), WEFT_MISMATCH);
    assert_string_equal(weft_errmsg(db), "row 1 of the batch, column n: a text among integers");
    assert_int_equal(weft_fetch_type(stmt, 1, WEFT_TEXT), WEFT_RANGE);
    assert_int_equal(weft_fetch_type(stmt, 0, WEFT_TEXT), WEFT_OK);
    assert_int_equal(weft_fetch(stmt, 10, &batch), WEFT_ROW);
    assert_int_equal(batch.length, 3);
    assert_memory_equal(bytes_at(&batch, 0, 0).p, "1020many", 8);
    assert_int_equal(batch.children[0]->null_count, 0);
    /* A consumer may keep a column and let the batch go. */
    struct ArrowArray kept = *batch.children[0];
    batch.children[0]->release = NULL;
    batch.release(&batch);
    weft_finalize(stmt);
    assert_memory_equal(kept.buffers[2], "1020many", 8);
    kept.release(&kept);
    weft_close(db);
}

static void
a_stream_of_batches(void **state)
{
    (void)state;
    weft_db *db = open_memory();
    run(db, "CREATE TABLE t(a)");
    weft_stmt *stmt = prepare(db, "SELECT a, a + 1 AS b FROM t ORDER BY a");
    for (int rows = 0; rows < 12; rows++) {
        struct ArrowArrayStream stream;
        struct ArrowSchema schema;
        struct ArrowArray batch;
        int64_t seen = 0;
        assert_int_equal(weft_fetch_stream(stmt, 4, &stream), WEFT_OK);
        assert_int_equal(stream.get_schema(&stream, &schema), 0);
        assert_string_equal(schema.children[1]->name, "b");
        assert_string_equal(schema.children[1]->format, rows == 0 ? "U" : "l");
        schema.release(&schema);
        for (;;) {
            assert_int_equal(stream.get_next(&stream, &batch), 0);
            if (batch.release == NULL) break;
            for (int64_t i = 0; i < batch.length; i++)
                assert_int_equal(integer_at(&batch, 1, i), seen++ + 1);
            batch.release(&batch);
        }
        assert_int_equal(stream.get_next(&stream, &batch), 0);
        assert_null(batch.release);
        assert_int_equal(seen, rows);
        stream.release(&stream);
        char sql[64];
        snprintf(sql, sizeof(sql), "INSERT INTO t VALUES(%d)", rows);
        run(db, sql);
    }
    weft_finalize(stmt);
    weft_close(db);
}

/* A batch of one statement is the parameters of another. */
static void
columns_in(void **state)
{
    (void)state;
    weft_db *db = open_memory();
    run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, r, s, b, n);"
            "CREATE TABLE u(id INTEGER PRIMARY KEY, r, s, b, n CHECK (n IS NOT 13));"
            "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM c WHERE i < 100)"
            "INSERT INTO t SELECT i, i / 4.0, 'text ' || i, CAST(i AS BLOB),"
            " iif(i % 3, i, NULL) FROM c");
    weft_stmt *from = prepare(db, "SELECT id, r, s, b, n FROM t"),
              *to = prepare(db, "INSERT INTO u VALUES(?, ?, ?, ?, ?)");
    struct ArrowArray batch;
    struct ArrowSchema schema;
    int64_t rows;
    assert_int_equal(weft_fetch(from, 1000, &batch), WEFT_ROW);
    assert_int_equal(weft_fetch_schema(from, &schema), WEFT_OK);
    assert_int_equal(weft_run_columns(to, &schema, &batch, &rows), WEFT_CONSTRAINT | 1 << 8);
    assert_int_equal(rows, 12);
    assert_non_null(strstr(weft_errmsg(db), "CHECK constraint failed"));
    assert_true(weft_autocommit(db));
    assert_int_equal(number(db, "SELECT count(*) FROM u"), 0);
    /* Inside of a transaction only these rows are undone. */
    run(db, "UPDATE t SET n = 0 WHERE n = 13; BEGIN; INSERT INTO u(id) VALUES(50)");
    assert_int_equal(weft_run_columns(to, &schema, &batch, &rows), WEFT_CONSTRAINT | 1 << 8);
    assert_int_equal(number(db, "SELECT count(*) FROM u"), 1);
    run(db, "DELETE FROM u; COMMIT");
    batch.release(&batch);
    weft_reset(from);
    assert_int_equal(weft_fetch(from, 1000, &batch), WEFT_ROW);
    assert_int_equal(weft_run_columns(to, &schema, &batch, &rows), WEFT_OK);
    assert_int_equal(rows, 100);
    assert_int_equal(number(db, "SELECT count(*) FROM (SELECT * FROM t EXCEPT SELECT * FROM u)"),
                     0);
    batch.release(&batch);
    schema.release(&schema);
    weft_finalize(from);
    weft_finalize(to);
    weft_close(db);
}

/* Arrays of another maker: small types, 32-bit offsets, offsets into the array, foreign types. */
static void
columns_of_other_makers(void **state)
{
    (void)state;
    weft_db *db = open_memory();
    run(db, "CREATE TABLE t(a, b, c, d)");
    int16_t shorts[] = {9, -1, 2, 3};
    int32_t offsets[] = {0, 0, 2, 2, 5};
    const uint8_t bits[] = {0x0b}; /* The third is NULL. */
    float floats[] = {0, 0.5f, 1, 2};
    const void *a[] = {NULL, shorts}, *b[] = {bits, offsets, "abcde"}, *c[] = {NULL, floats},
               *d[] = {NULL, bits};
    struct ArrowArray child[] = {
        {.length = 4, .n_buffers = 2, .buffers = a},
        {.length = 4, .n_buffers = 3, .buffers = b, .null_count = 1},
        {.length = 4, .n_buffers = 2, .buffers = c},
        {.length = 4, .n_buffers = 2, .buffers = d},
    };
    struct ArrowArray *children[] = {&child[0], &child[1], &child[2], &child[3]};
    struct ArrowArray array = {.length = 3, .offset = 1, .n_children = 4, .children = children};
    struct ArrowSchema type[] = {
        {.format = "s"}, {.format = "u"}, {.format = "f"}, {.format = "b"}};
    struct ArrowSchema *types[] = {&type[0], &type[1], &type[2], &type[3]};
    struct ArrowSchema schema = {.format = "+s", .n_children = 4, .children = types};
    weft_stmt *stmt = prepare(db, "INSERT INTO t VALUES(?, ?, ?, ?)");
    int64_t rows;
    assert_int_equal(weft_run_columns(stmt, &schema, &array, &rows), WEFT_OK);
    assert_int_equal(rows, 3);
    weft_stmt *check = prepare(db, "SELECT group_concat(a || ifnull(b, 'null') || c || d) FROM t");
    assert_int_equal(weft_step(check), WEFT_ROW);
    assert_string_equal(weft_column_text(check, 0), "-1ab0.51,2null1.00,3cde2.01");
    weft_finalize(check);
    static const char *const refused[] = {"tdD", "+l", "e", "w:", "w:-1", "ll", ""};
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        type[2].format = refused[i];
        assert_int_equal(weft_run_columns(stmt, &schema, &array, &rows), WEFT_MISMATCH);
        assert_int_equal(rows, 0);
        assert_non_null(strstr(weft_errmsg(db), "column 3 of the array: type not taken: "));
    }
    type[2].format = "f";
    child[2].length = 3; /* Offset and length lead beyond it. */
    assert_int_equal(weft_run_columns(stmt, &schema, &array, &rows), WEFT_MISUSE);
    schema.n_children = array.n_children = 3;
    assert_int_equal(weft_run_columns(stmt, &schema, &array, &rows), WEFT_MISUSE);
    assert_int_equal(number(db, "SELECT count(*) FROM t"), 3);
    weft_finalize(stmt);
    weft_close(db);
}

static void
an_array_in_one_parameter(void **state)
{
    (void)state;
    weft_db *db = open_memory();
    weft_stmt *stmt = prepare(db, "SELECT group_concat(quote(value)) FROM carray(?1)");
    static const int64_t integers[] = {3, -1, INT64_MAX};
    static const double reals[] = {0.5, -2};
    static const char *const texts[] = {"a", NULL, "it's"};
    assert_int_equal(weft_bind_array(stmt, 1, WEFT_INTEGER, integers, 3), WEFT_OK);
    assert_int_equal(weft_step(stmt), WEFT_ROW);
    assert_string_equal(weft_column_text(stmt, 0), "3,-1,9223372036854775807");
    assert_int_equal(weft_bind_array(stmt, 1, WEFT_INTEGER, integers, 3), WEFT_MISUSE);
    weft_reset(stmt);
    assert_int_equal(weft_bind_array(stmt, 1, WEFT_FLOAT, reals, 2), WEFT_OK);
    assert_int_equal(weft_step(stmt), WEFT_ROW);
    assert_string_equal(weft_column_text(stmt, 0), "0.5,-2.0");
    weft_reset(stmt);
    assert_int_equal(weft_bind_array(stmt, 1, WEFT_TEXT, texts, 3), WEFT_OK);
    assert_int_equal(weft_step(stmt), WEFT_ROW);
    assert_string_equal(weft_column_text(stmt, 0), "'a',NULL,'it''s'");
    weft_reset(stmt);
    assert_int_equal(weft_bind_array(stmt, 2, WEFT_TEXT, texts, 3), WEFT_RANGE);
    assert_int_equal(weft_bind_array(stmt, 1, WEFT_BLOB, texts, 3), WEFT_MISUSE);
    assert_int_equal(weft_clear_bindings(stmt), WEFT_OK);
    assert_int_equal(weft_step(stmt), WEFT_ROW);
    assert_int_equal(weft_column_type(stmt, 0), WEFT_NULL);
    weft_finalize(stmt);
    weft_close(db);
}

static void
isolation_levels(void **state)
{
    (void)state;
    weft_db *db = open_memory();
    run(db, "CREATE TABLE t(a)");
    assert_int_equal(weft_rollback(db), WEFT_OK);
    assert_int_equal(weft_commit(db), WEFT_ERROR);
    for (int level = WEFT_LEVEL_DEFAULT; level <= WEFT_LEVEL_SERIALIZABLE; level++) {
        assert_int_equal(weft_begin(db, level), WEFT_OK);
        assert_false(weft_autocommit(db));
        run(db, "INSERT INTO t VALUES(1)");
        assert_int_equal(level % 2 == 0 ? weft_commit(db) : weft_rollback(db), WEFT_OK);
        assert_true(weft_autocommit(db));
    }
    assert_int_equal(number(db, "SELECT count(*) FROM t"), 2);
    assert_int_equal(weft_begin(db, 4), WEFT_MISUSE);
    assert_int_equal(weft_begin(db, -1), WEFT_MISUSE);
    weft_close(db);
}

/* The level is the one asked for: what a second reading sees tells READ COMMITTED from SNAPSHOT,
   and write skew tells SERIALIZABLE. */
static void
levels_differ(void **state)
{
    (void)state;
    char path[] = "/tmp/weft_level_XXXXXX";
    assert_non_null(mkdtemp(path));
    char file[64];
    snprintf(file, sizeof(file), "%s/a.weft", path);
    weft_db *one, *two;
    assert_int_equal(weft_open(file, NULL, &one), WEFT_OK);
    assert_int_equal(weft_open(file, NULL, &two), WEFT_OK);
    run(one, "CREATE TABLE t(id INTEGER PRIMARY KEY, a); INSERT INTO t VALUES(1, 0), (2, 0)");
    static const int64_t seen[] = {0, 1, 0, 0};
    for (int level = WEFT_LEVEL_READ_COMMITTED; level <= WEFT_LEVEL_SERIALIZABLE; level++) {
        run(two, "UPDATE t SET a = 0");
        assert_int_equal(weft_begin(one, level), WEFT_OK);
        assert_int_equal(number(one, "SELECT a FROM t WHERE id = 1"), 0);
        assert_int_equal(weft_begin(two, level), WEFT_OK);
        assert_int_equal(number(two, "SELECT a FROM t WHERE id = 2"), 0);
        run(two, "UPDATE t SET a = 1 WHERE id = 1");
        assert_int_equal(weft_commit(two), WEFT_OK);
        assert_int_equal(number(one, "SELECT a FROM t WHERE id = 1"), seen[level]);
        int code = weft_exec(one, "UPDATE t SET a = 1 WHERE id = 2");
        if (code == WEFT_OK) code = weft_commit(one);
        if (level == WEFT_LEVEL_SERIALIZABLE) {
            weft_error *error = weft_error_take(one);
            assert_int_equal(code & 0xff, WEFT_BUSY);
            assert_true(error != NULL && error->retry);
            weft_error_free(error);
        } else {
            assert_int_equal(code, WEFT_OK);
        }
        assert_int_equal(weft_rollback(one), WEFT_OK);
    }
    weft_close(one);
    weft_close(two);
    char command[96];
    snprintf(command, sizeof(command), "rm -r %s", path);
    assert_int_equal(system(command), 0);
}

static void
errors_outlive_the_connection(void **state)
{
    (void)state;
    weft_db *db = open_memory();
    assert_null(weft_error_take(db));
    run(db, "CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES(1)");
    assert_int_equal(weft_exec(db, "SELECT nowhere FROM t"), WEFT_ERROR);
    weft_error *first = weft_error_take(db);
    assert_int_equal(weft_exec(db, "INSERT INTO t VALUES(1)"), 2067);
    weft_error *second = weft_error_take(db);
    run(db, "SELECT 1");
    assert_null(weft_error_take(db));
    weft_close(db);
    assert_int_equal(first->code, WEFT_ERROR);
    assert_int_equal(first->offset, 7);
    assert_string_equal(first->message, "no such column: nowhere");
    assert_int_equal(second->code, 2067);
    assert_string_equal(second->name, "SQLITE_CONSTRAINT_UNIQUE");
    assert_string_equal(second->message, "UNIQUE constraint failed: t.a");
    assert_int_equal(second->offset, -1);
    assert_false(second->retry);
    weft_error_free(first);
    weft_error_free(second);
    weft_error_free(NULL);
}

/* A batch ends with the row that makes 1 MiB of bytes, and the next goes on behind it. */
static void
large_texts_end_a_batch(void **state)
{
    (void)state;
    weft_db *db = open_memory();
    run(db, "CREATE TABLE t(id INTEGER PRIMARY KEY, s TEXT, b BLOB);"
            "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM c WHERE i < 900)"
            "INSERT INTO t SELECT i, printf('%.*c', 2000 + i, 'x'), zeroblob(i % 7 * 500) FROM c");
    weft_stmt *stmt = prepare(db, "SELECT * FROM t");
    for (int round = 0; round < 2; round++) {
        struct ArrowArray batch;
        int64_t seen = 0;
        u32 batches = 0;
        while (weft_fetch(stmt, 100000, &batch) == WEFT_ROW) {
            size_t bytes = 0;
            for (int64_t i = 0; i < batch.length; i++) {
                assert_true(bytes < (size_t)1 << 20); /* Else the row before was the last. */
                seen++;
                assert_int_equal(integer_at(&batch, 0, i), seen);
                assert_int_equal(bytes_at(&batch, 1, i).bytes, 2000 + seen);
                assert_int_equal(bytes_at(&batch, 2, i).bytes, seen % 7 * 500);
                bytes += bytes_at(&batch, 1, i).bytes + bytes_at(&batch, 2, i).bytes;
            }
            assert_true(bytes >= (size_t)1 << 20 || seen == 900);
            batch.release(&batch);
            batches++;
        }
        assert_int_equal(seen, 900);
        assert_true(batches >= 3);
    }
    weft_finalize(stmt);
    weft_close(db);
}

static void
misuse(void **state)
{
    (void)state;
    weft_db *db = open_memory();
    weft_stmt *stmt = prepare(db, "SELECT 1");
    struct ArrowArray batch;
    struct ArrowSchema schema;
    struct ArrowArrayStream stream;
    assert_int_equal(weft_fetch(NULL, 1, &batch), WEFT_MISUSE);
    assert_int_equal(weft_fetch(stmt, 1, NULL), WEFT_MISUSE);
    assert_int_equal(weft_fetch(stmt, 0, &batch), WEFT_MISUSE);
    assert_null(batch.release);
    assert_int_equal(weft_fetch_schema(NULL, &schema), WEFT_MISUSE);
    assert_int_equal(weft_fetch_schema(stmt, NULL), WEFT_MISUSE);
    assert_int_equal(weft_fetch_stream(NULL, 1, &stream), WEFT_MISUSE);
    assert_int_equal(weft_fetch_stream(stmt, -1, &stream), WEFT_MISUSE);
    assert_int_equal(weft_fetch_type(NULL, 0, WEFT_TEXT), WEFT_MISUSE);
    assert_int_equal(weft_fetch_type(stmt, 0, 9), WEFT_MISUSE);
    assert_int_equal(weft_fetch_type(stmt, -1, WEFT_TEXT), WEFT_RANGE);
    assert_int_equal(weft_run_columns(NULL, NULL, NULL, NULL), WEFT_MISUSE);
    assert_int_equal(weft_run_columns(stmt, NULL, NULL, NULL), WEFT_MISUSE);
    assert_int_equal(weft_bind_array(NULL, 1, WEFT_TEXT, NULL, 0), WEFT_MISUSE);
    assert_int_equal(weft_begin(NULL, 0), WEFT_MISUSE);
    assert_int_equal(weft_commit(NULL), WEFT_MISUSE);
    assert_int_equal(weft_rollback(NULL), WEFT_MISUSE);
    assert_null(weft_error_take(NULL));
    /* A fetch that was begun ends with reset; a row by step ends nothing. */
    assert_int_equal(weft_fetch(stmt, 5, &batch), WEFT_ROW);
    batch.release(&batch);
    assert_int_equal(weft_reset(stmt), WEFT_OK);
    assert_int_equal(weft_fetch(stmt, 5, &batch), WEFT_ROW);
    batch.release(&batch);
    assert_int_equal(weft_step(stmt), WEFT_ROW);
    assert_int_equal(weft_fetch(stmt, 5, &batch), WEFT_DONE);
    weft_finalize(stmt);
    weft_close(db);
}

static void
expect_count(weft_db *db, const char *sql, int64_t wanted)
{
    weft_stmt *stmt = prepare(db, sql);
    assert_int_equal(weft_step(stmt), WEFT_ROW);
    assert_int_equal(weft_column_int64(stmt, 0), wanted);
    weft_finalize(stmt);
}

static void
expect_file(const char *path, const char *sql, int64_t wanted)
{
    weft_db *db;
    assert_int_equal(weft_open(path, NULL, &db), WEFT_OK);
    expect_count(db, sql, wanted);
    weft_close(db);
}

/* Of files by pages, of memory by rows; what is open in a transaction is not in it. */
static void
backups(void **state)
{
    (void)state;
    char dir[] = "/tmp/weft-backup-XXXXXX", path[3][64], command[64];
    weft_db *file, *other, *memory = open_memory();
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < 3; i++)
        snprintf(path[i], sizeof(path[i]), "%s/%d.db", dir, i);
    assert_int_equal(weft_open(path[0], NULL, &file), WEFT_OK);
    assert_int_equal(weft_open(path[0], NULL, &other), WEFT_OK);
    assert_int_equal(weft_exec(file, "CREATE TABLE t(a, b); WITH RECURSIVE c(x) AS (VALUES(1) "
                                     "UNION ALL SELECT x + 1 FROM c WHERE x < 5000) "
                                     "INSERT INTO t SELECT x, printf('%0100d', x) FROM c"),
                     WEFT_OK);
    assert_int_equal(weft_exec(other, "BEGIN; DELETE FROM t WHERE a > 10"), WEFT_OK);
    assert_int_equal(weft_backup(file, "main", path[1]), WEFT_OK);
    assert_int_equal(weft_exec(other, "COMMIT"), WEFT_OK);
    expect_file(path[1], "SELECT count(*) FROM t WHERE b = printf('%0100d', a)", 5000);
    expect_count(file, "SELECT count(*) FROM t", 10);
    assert_int_equal(weft_backup(file, "main", path[1]), WEFT_CANTOPEN);
    assert_int_equal(weft_backup(file, "main", path[0]), WEFT_CANTOPEN);
    assert_int_equal(weft_backup(file, "nosuch", path[2]), WEFT_ERROR);
    assert_string_equal(weft_errmsg(file), "unknown database nosuch");
    assert_int_equal(weft_backup(file, "main", "/nonexistent/x.db"), WEFT_CANTOPEN);

    assert_int_equal(weft_exec(memory, "CREATE TABLE m(x); INSERT INTO m VALUES(1), (2)"), WEFT_OK);
    assert_int_equal(weft_backup(memory, "main", path[1]), WEFT_CANTOPEN);
    assert_int_equal(weft_backup(memory, "main", path[2]), WEFT_OK);
    expect_file(path[2], "SELECT sum(x) FROM m", 3);
    expect_file(path[1], "SELECT count(*) FROM t", 5000);
    assert_int_equal(weft_backup(NULL, "main", path[2]), WEFT_MISUSE);
    assert_int_equal(weft_backup(file, "main", NULL), WEFT_MISUSE);

    assert_int_equal(weft_limit(file, WEFT_LIMIT_COLUMN, -1), 2000);
    assert_int_equal(weft_limit(file, WEFT_LIMIT_COLUMN, 2), 2000);
    assert_int_equal(weft_exec(file, "SELECT 1, 2, 3"), WEFT_ERROR);
    assert_int_equal(weft_limit(file, 99, -1), -1);
    weft_close(file);
    weft_close(other);
    weft_close(memory);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_types_in_batches_of_every_size),
        cmocka_unit_test(types_by_values),
        cmocka_unit_test(chosen_types_and_later_batches),
        cmocka_unit_test(a_stream_of_batches),
        cmocka_unit_test(columns_in),
        cmocka_unit_test(columns_of_other_makers),
        cmocka_unit_test(an_array_in_one_parameter),
        cmocka_unit_test(isolation_levels),
        cmocka_unit_test(levels_differ),
        cmocka_unit_test(errors_outlive_the_connection),
        cmocka_unit_test(large_texts_end_a_batch),
        cmocka_unit_test(backups),
        cmocka_unit_test(misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
