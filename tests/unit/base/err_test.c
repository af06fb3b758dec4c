/*
 * err_test.c -- every code has a name, a text and an SQLITE_* code; messages move and fall back.
 */
#include <string.h>

#include "base/base.h"
#include "unit/cmocka_all.h"

static void
the_table_is_whole(void **state)
{
    (void)state;
    for (int e = 0; e < ERR_COUNT_; e++) {
        assert_non_null(err_name((Err)e));
        assert_non_null(err_text((Err)e));
        assert_true((e == OK) == (err_sqlite((Err)e) == 0));
        assert_int_equal(strncmp(err_sqlite_name(err_sqlite((Err)e)), "SQLITE_", 7), 0);
    }
    assert_int_equal(err_sqlite(ERR_CONSTRAINT_UNIQUE), 2067);
    assert_int_equal(err_sqlite(ERR_BUSY_SNAPSHOT), 517);
    assert_string_equal(err_sqlite_name(2067), "SQLITE_CONSTRAINT_UNIQUE");
    assert_string_equal(err_sqlite_name(5 | (99 << 8)), "SQLITE_BUSY");
}

static void
messages_are_owned_and_survive_short_memory(void **state)
{
    (void)state;
    ErrMsg msg = {0};
    assert_int_equal(err_set(&msg, ERR_SQL, "no such table: %s", "t"), ERR_SQL);
    assert_string_equal(err_message(&msg), "no such table: t");
    assert_int_equal(err_set_at(&msg, ERR_SQL, 7, "in %s", err_message(&msg)), ERR_SQL);
    assert_string_equal(err_message(&msg), "in no such table: t");
    assert_int_equal(msg.sql_offset, 7);
    mem_fail_arm(1, false);
    assert_int_equal(err_set(&msg, ERR_TOOBIG, "x"), ERR_TOOBIG);
    assert_string_equal(err_message(&msg), "string or blob too big");
    mem_fail_arm(0, false);
    ErrMsg other = {0};
    err_move(&other, &msg);
    assert_int_equal(other.err, ERR_TOOBIG);
    assert_int_equal(msg.err, OK);
    err_clear(&other);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_whole),
        cmocka_unit_test(messages_are_owned_and_survive_short_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
