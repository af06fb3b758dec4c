/*
 * hold_test.c -- answers held in memory: a budget of their own, and the cap of the process.
 *
 * Method: hold and release by hand and look at both counts.
 */
#include "server/server__conn.h"
#include "unit/cmocka_all.h"

static void
held_answers_count_twice(void **state)
{
    (void)state;
    MemAccount *account = rt_process_account(rt_process());
    u64 before = account->used_bytes;
    Server *server = MEM_NEW(Server);
    assert_non_null(server);
    server->options.held_bytes_max = 1000;
    assert_true(server__hold(server, 600));
    assert_int_equal(account->used_bytes - before, 600);
    assert_false(server__hold(server, 401)); /* Over the budget. */
    assert_int_equal(account->used_bytes - before, 600);
    mem_account_cap(account, before + 700);
    assert_false(server__hold(server, 101)); /* Over the cap. */
    assert_true(server__hold(server, 100));
    assert_int_equal(rt_load(&server->held_bytes), 700);
    mem_account_cap(account, 0);
    server__release(server, 600);
    server__release(server, 100);
    assert_int_equal(account->used_bytes, before);
    assert_int_equal(rt_load(&server->held_bytes), 0);
    mem_free(server);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(held_answers_count_twice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
