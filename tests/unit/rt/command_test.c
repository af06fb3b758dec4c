/*
 * command_test.c -- commands of the system's shell.
 *
 * Method: commands with known status and output, a command between two files, one that does not
 * exist, one that is killed; the working directory there and back.
 */
#include <stdlib.h>
#include <unistd.h>

#include "rt/command.h"
#include "unit/cmocka_all.h"

static void
status_is_handed_on(void **state)
{
    (void)state;
    int status = -1;
    ErrMsg msg = {0};
    assert_int_equal(rt_command_run("exit 0", NULL, NULL, &status, &msg), OK);
    assert_int_equal(status, 0);
    assert_int_equal(rt_command_run("exit 7", NULL, NULL, &status, &msg), OK);
    assert_int_equal(status, 7);
    assert_int_equal(rt_command_run("kill -9 $$", NULL, NULL, &status, &msg), OK);
    assert_int_equal(status, 128 + 9);
    assert_int_equal(rt_command_run("/no/such/command 2>/dev/null", NULL, NULL, &status, &msg), OK);
    assert_int_equal(status, 127);
    err_clear(&msg);
}

static void
files_stand_at_both_ends(void **state)
{
    (void)state;
    RtFile *input, *output;
    int status = -1;
    size_t got;
    char text[32] = "";
    ErrMsg msg = {0};
    assert_int_equal(rt_file_open_temp(NULL, &input, &msg), OK);
    assert_int_equal(rt_file_open_temp(NULL, &output, &msg), OK);
    assert_int_equal(rt_file_write(input, 0, "one\ntwo\n", 8, &msg), OK);
    assert_int_equal(rt_command_run("tr a-z A-Z", input, output, &status, &msg), OK);
    assert_int_equal(status, 0);
    assert_int_equal(rt_file_rewind(output), OK);
    assert_int_equal(rt_file_read_next(output, text, sizeof(text), &got, &msg), OK);
    assert_int_equal(got, 8);
    assert_memory_equal(text, "ONE\nTWO\n", 8);
    rt_file_close(input);
    rt_file_close(output);
    err_clear(&msg);
}

static void
directory_and_times(void **state)
{
    (void)state;
    char before[4096], after[4096];
    u64 user_us = 0, system_us = 0, user_later_us = 0, system_later_us = 0;
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(rt_change_dir("/"), OK);
    assert_non_null(getcwd(after, sizeof(after)));
    assert_string_equal(after, "/");
    assert_int_equal(rt_change_dir("/no/such/folder"), ERR_NOTFOUND);
    assert_int_equal(rt_change_dir(before), OK);
    rt_cpu_times(&user_us, &system_us);
    rt_cpu_times(&user_later_us, &system_later_us);
    assert_true(user_later_us >= user_us && system_later_us >= system_us);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_is_handed_on),
        cmocka_unit_test(files_stand_at_both_ends),
        cmocka_unit_test(directory_and_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
