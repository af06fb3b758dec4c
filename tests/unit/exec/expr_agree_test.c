/*
 * expr_agree_test.c -- the row interpreter and the batch kernels give the same.
 *
 * Method: random expressions over a table whose columns hold integers, reals, texts, blobs, NULLs
 * and mixtures, as result columns and as conditions.  Each statement runs twice: over one batch,
 * which the kernels compute, and on the short path, which reads so few rows one by one and knows
 * the interpreter only.  Rows, types and errors must be the same.
 *
 * expr_agree_test EXPRESSIONS [SEED] runs so many instead of a few.
 */
#include <stdlib.h>

#include "exec/vec.h"
#include "unit/exec/make_expr.h"
#include "unit/exec/sql_kit.h"

#define PER_STATEMENT  9u
#define FAILURES_SHOWN 10u

static u64 expressions_wanted = 9000;
static u64 seed = 20261130;

static const char *const columns[] = {"id", "i", "r", "s", "x"};

/* So few rows that the short path keeps the run. */
static const char *const setup[] = {
    "CREATE TABLE m(id INTEGER PRIMARY KEY, i INT, r REAL, s TEXT, x)",
    "INSERT INTO m VALUES"
    "(1, 3, 1.5, 'abc', 1), (2, NULL, -2.0, 'AbC', 2.0), (3, -5, NULL, '1', '3'),"
    "(4, 9223372036854775807, 0.25, '2.0', x'6162'), (5, 0, 0.0, NULL, NULL),"
    "(6, 7, 1e300, ' 3 ', '6x'), (7, -9223372036854775808, -0.0, '', 7.5),"
    "(8, 2147483648, 9007199254740993.0, 'xyz ', -1), (9, 1, 1.0, 'XYZ', 'abc'),"
    "(10, NULL, NULL, NULL, x''), (11, 11, 11.0, '11', 11), (12, -1, -1e-5, 'a%', '')",
};

static void
make_statement(Make *make)
{
    make->column = columns;
    make->columns = COUNT_OF(columns);
    put(make, "SELECT id");
    for (u32 i = 1; i < PER_STATEMENT; i++) {
        put(make, ",");
        make_expr(make, 1 + pick(make, 3));
    }
    put(make, " FROM m WHERE id BETWEEN 1 AND 12 AND (id % 4 = 0 OR ");
    make_expr(make, 2);
    put(make, ")");
    assert_int_equal(buf_append_byte(&make->out, 0), OK);
}

static void
run(SqlKit *kit, u32 batch_rows, const char *sql, Buf *out)
{
    kit->env.batch_rows = batch_rows;
    sql_kit_ours(kit, sql);
    buf_clear(out);
    assert_int_equal(buf_append(out, kit->ours.p, kit->ours.bytes), OK);
}

static void
kernels_agree_with_the_interpreter(void **state)
{
    (void)state;
    SqlKit kit;
    Make make = {0};
    Buf batch = {0}, rows = {0};
    u32 failures = 0;
    u64 with_rows = 0, statements = 0;
    rng_seed(&make.rng, seed);
    sql_kit_open(&kit);
    for (u32 i = 0; i < COUNT_OF(setup); i++)
        sql_kit_ours(&kit, setup[i]);
    for (u64 done = 0; done < expressions_wanted; done += PER_STATEMENT) {
        buf_clear(&make.out);
        make_statement(&make);
        run(&kit, BATCH_ROWS_MAX, (const char *)make.out.p, &batch);
        run(&kit, 0, (const char *)make.out.p, &rows);
        statements++;
        with_rows += rows.bytes > 0 && rows.p[0] == 'i';
        if (rows.bytes == batch.bytes && memcmp(rows.p, batch.p, rows.bytes) == 0) continue;
        print_message("%s\n--- kernels:\n%.*s\n--- interpreter:\n%.*s\n", (const char *)make.out.p,
                      (int)batch.bytes, (const char *)batch.p, (int)rows.bytes,
                      (const char *)rows.p);
        if (++failures == FAILURES_SHOWN) break;
    }
    assert_int_equal(failures, 0);
    /* Most of them run to a row, rather than to the same error. */
    assert_true(with_rows * 2 > statements);
    buf_free(&batch);
    buf_free(&rows);
    buf_free(&make.out);
    sql_kit_close(&kit);
}

int
main(int argc, char **argv)
{
    if (argc > 1) expressions_wanted = strtoull(argv[1], NULL, 10);
    if (argc > 2) seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_agree_with_the_interpreter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
