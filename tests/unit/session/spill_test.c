/*
 * spill_test.c -- statements that spill: right rows, clear errors, nothing left behind.
 *
 * Method: a list of statements, each of which holds more rows than a tiny memory budget allows in
 * one of the ways there are.  Each gives the same text as without a budget, and all rare paths of
 * spilling must have been reached in the end.  Then every call into the file system fails in turn
 * (full disk, I/O error), and allocations fail in turn: the statement reports it or is right, the
 * next run is right, and neither memory nor descriptors remain.  Blocks in the temporary file are
 * damaged while a statement reads them: that is an error, never a row.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/asserts.h"
#include "rt/fault.h"
#include "session_kit.h"

static const char *const statements[] = {
    "SELECT a, b, c FROM t ORDER BY c DESC, a",
    "SELECT a, d FROM t ORDER BY d",
    "SELECT a FROM t ORDER BY b DESC LIMIT 70 OFFSET 3",
    "WITH m AS MATERIALIZED (SELECT a, c FROM t) SELECT p.a, q.c FROM m p, m q WHERE q.a = p.a + 1",
    "WITH RECURSIVE r(x) AS (VALUES(1) UNION ALL SELECT x + x FROM r WHERE x < 300"
    " UNION ALL SELECT x * 3 FROM r WHERE x < 300) SELECT x FROM r",
    "WITH RECURSIVE r(x) AS (VALUES(1) UNION SELECT (x * 2 + k) % 211 FROM r,"
    " (SELECT 0 k UNION ALL SELECT 7)) SELECT x FROM r",
    "WITH RECURSIVE r(x, d) AS (VALUES(1, 0) UNION ALL SELECT x * 2, d + 1 FROM r WHERE x < 300"
    " UNION ALL SELECT x * 3 + 1, d + 1 FROM r WHERE x < 300 ORDER BY 1 DESC) SELECT x, d FROM r",
    "SELECT c, count(*), sum(a), min(d) FROM t GROUP BY c",
    "SELECT b, group_concat(c ORDER BY a DESC) FROM t GROUP BY b",
    "SELECT b % 3, count(DISTINCT c), count(DISTINCT a) FROM t GROUP BY b % 3",
    "SELECT count(DISTINCT a), count(DISTINCT c) FROM t",
    "SELECT DISTINCT c, d FROM t",
    "SELECT c FROM t UNION SELECT v FROM u",
    "SELECT b FROM t EXCEPT SELECT b FROM u WHERE b % 2",
    "SELECT b FROM u INTERSECT SELECT b FROM t",
    "SELECT count(*) FROM t WHERE (b, c) IN (SELECT b, c FROM t WHERE a % 3)",
    "SELECT t.a, t.c, u.v FROM t JOIN u ON u.b = t.b",
    "SELECT t.a, u.v FROM t LEFT JOIN u ON u.b = t.b AND t.a % 2",
    "SELECT t.a, u.v FROM t FULL JOIN u ON u.b = t.b AND t.a % 5 = 0",
    "SELECT t.a, u.v FROM u RIGHT JOIN t ON u.b = t.b",
    "SELECT a, sum(a) OVER (PARTITION BY b % 4), lag(c, 30) OVER (ORDER BY c) FROM t",
    "SELECT a, last_value(c) OVER (ORDER BY b RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED"
    " FOLLOWING), percent_rank() OVER (ORDER BY d) FROM t",
    "INSERT INTO w SELECT NULL, b, c FROM t ORDER BY c RETURNING a, y",
    "INSERT INTO w(x, y) SELECT x + 1, y FROM w RETURNING x",
    "UPDATE w SET x = u.v FROM u WHERE u.b = w.x RETURNING a, x",
    "DELETE FROM w WHERE a IN (SELECT a FROM t WHERE b % 3 = 0) RETURNING a",
    "UPDATE w SET a = a + 1000 WHERE y > 'text 5'",
    "DELETE FROM w",
};

static Session *
filled(void)
{
    Session *s = kit_open("", true);
    kit_exec(s, "CREATE TABLE t(a INTEGER PRIMARY KEY, b INT, c TEXT, d);"
                "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i < 150)"
                "INSERT INTO t SELECT i, i * 79 % 41, 'text ' || (i * 31 % 97),"
                " CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN i * 0.5 WHEN 2 THEN x'00' || i ELSE i END"
                " FROM n;"
                "CREATE TABLE u(b INT, v TEXT);"
                "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i < 60)"
                "INSERT INTO u SELECT i * 13 % 61, 'v' || i FROM n;"
                "CREATE TABLE w(a INTEGER PRIMARY KEY, x, y);"
                "INSERT INTO w SELECT a, b, c FROM t");
    return s;
}

/* The whole text of a statement, or "!ERR_NAME" at its end; *err_out what it ended with. */
static char *
text_of(Session *s, const char *sql, Err *err_out)
{
    Stmt *stmt;
    Buf out = {0};
    bool row = true;
    *err_out = stmt_prepare(s, SLICE(sql, strlen(sql)), &stmt, NULL);
    while (*err_out == OK && row) {
        *err_out = stmt_step(stmt, &row);
        for (u32 i = 0; *err_out == OK && row && i < stmt_column_count(stmt); i++) {
            size_t bytes;
            const char *text = stmt_row_text(stmt, i, &bytes);
            /* A text could not be made of a value. */
            if (text == NULL && stmt_row(stmt)[i].type != CELL_NULL) *err_out = ERR_NOMEM;
            Err err = buf_append_text(&out, text == NULL ? "NULL" : text);
            if (err == OK) err = buf_append_byte(&out, '|');
            if (err != OK) *err_out = err;
        }
    }
    stmt_finalize(stmt);
    char *copy = malloc(out.bytes + 1);
    assert_non_null(copy);
    if (out.bytes > 0) memcpy(copy, out.p, out.bytes);
    copy[out.bytes] = 0;
    buf_free(&out);
    return copy;
}

/* What it gives and does must not stay: each statement begins with the same data. */
static char *
undone(Session *s, const char *sql, Err *err_out)
{
    kit_exec(s, "BEGIN");
    char *text = text_of(s, sql, err_out);
    (void)kit_try(s, "ROLLBACK");
    return text;
}

static u32
descriptors(void)
{
    u32 count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count;
}

static const char *const plans[] = {"PRAGMA weft_plans = free", "PRAGMA weft_plans = hash"};

static void
spilled_or_not_is_the_same(void **state)
{
    static const char *const budgets[] = {"PRAGMA weft_memory_budget = 1",
                                          "PRAGMA weft_memory_budget = 700",
                                          "PRAGMA weft_memory_budget = 6000"};
    (void)state;
    Session *s = filled();
    u32 open_before = descriptors();
    for (u32 i = 0; i < COUNT_OF(statements) * COUNT_OF(plans); i++) {
        Err err;
        const char *sql = statements[i / COUNT_OF(plans)];
        kit_exec(s, plans[i % COUNT_OF(plans)]);
        kit_exec(s, "PRAGMA weft_memory_budget = 0");
        char *plain = undone(s, sql, &err);
        assert_int_equal(err, OK);
        for (u32 b = 0; b < COUNT_OF(budgets); b++) {
            kit_exec(s, budgets[b]);
            char *text = undone(s, sql, &err);
            if (err != OK || strcmp(text, plain) != 0) {
                print_error("%s\n%s\n%s\n%s\n%s\n", budgets[b], sql, err_name(err), plain, text);
                fail();
            }
            free(text);
        }
        free(plain);
        assert_int_equal(descriptors(), open_before);
    }
    assert_int_equal(session_close(s), OK);
}

static void
need_mark(void *arg, const char *name, bool is_reached)
{
    static const char *const wanted[] = {
        "exec: spilled to a temporary file",
        "exec: runs were merged in several passes",
        "exec: runs of a queue were merged",
        "exec: groups were left for later",
        "exec: a set operation went on with a sort",
        "exec: the build side of a hash join went to a file",
        "exec: files of a set were merged",
        "exec: rows of a window went to a file",
    };
    u32 *found = arg;
    for (u32 i = 0; i < COUNT_OF(wanted); i++) {
        if (strcmp(name, wanted[i]) == 0 && is_reached) *found |= 1u << i;
    }
}

/* Runs after the test above. */
static void
all_ways_of_spilling_were_taken(void **state)
{
    (void)state;
    u32 found = 0;
    reached_report(need_mark, &found);
#ifdef WEFT_CHECK
    assert_int_equal(found, 0xff);
#endif
}

/* Every call into the file system fails in turn. */
static void
failing_files_are_reported(void **state)
{
    (void)state;
    static const int errors[] = {EIO, ENOSPC};
    Session *s = filled();
    kit_exec(s, "PRAGMA weft_memory_budget = 2500; PRAGMA weft_plans = hash");
    u32 open_before = descriptors();
    u64 failed = 0;
    for (u32 i = 0; i < COUNT_OF(statements); i++) {
        Err err;
        char *plain = undone(s, statements[i], &err);
        assert_int_equal(err, OK);
        bool fired = true;
        for (u64 nth = 1; fired; nth += 1 + nth / 4) {
            kit_exec(s, "BEGIN");
            rt_fault_arm(nth, errors[nth % 2]);
            char *text = text_of(s, statements[i], &err);
            fired = rt_fault_fired();
            rt_fault_arm(0, 0);
            if (fired) {
                failed++;
                bool told = err == ERR_FULL || err == ERR_IO || err == ERR_IO_READ ||
                            err == ERR_IO_WRITE || err == ERR_CANTOPEN;
                if (!told) fail_msg("%s: %s", statements[i], err_name(err));
                /* What was given before the error was right. */
                assert_int_equal(strncmp(plain, text, strlen(text)), 0);
            } else {
                assert_int_equal(err, OK);
                assert_string_equal(text, plain);
            }
            free(text);
            (void)kit_try(s, "ROLLBACK");
            assert_int_equal(descriptors(), open_before);
        }
        char *again = undone(s, statements[i], &err);
        assert_string_equal(again, plain);
        free(again);
        free(plain);
    }
    assert_true(failed > COUNT_OF(statements));
    assert_int_equal(session_close(s), OK);
}

/* The message names what went wrong. */
static void
a_full_disk_has_its_message(void **state)
{
    (void)state;
    Err err;
    Session *s = filled();
    kit_exec(s, "PRAGMA weft_memory_budget = 500");
    rt_fault_arm_onwards(1, ENOSPC);
    rt_fault_only(RT_FAULT_WRITE);
    char *text = text_of(s, "SELECT c FROM t ORDER BY c", &err);
    rt_fault_arm(0, 0);
    assert_int_equal(err, ERR_FULL);
    assert_non_null(strstr(err_message(session_error(s)), "No space left"));
    free(text);
    kit_query(s, "SELECT count(*) FROM (SELECT DISTINCT c FROM t)", "97;");
    assert_int_equal(session_close(s), OK);
}

/* Allocations fail in turn; nothing stays behind. */
static void
failing_memory_is_survived(void **state)
{
    (void)state;
    Session *s = filled();
    kit_exec(s, "PRAGMA weft_memory_budget = 2500; PRAGMA weft_plans = hash");
    for (u32 i = 0; i < COUNT_OF(statements); i++) {
        Err err;
        char *plain = undone(s, statements[i], &err);
        bool fired = true;
        for (u64 nth = 1; fired; nth += 1 + nth / 5) {
            kit_exec(s, "BEGIN");
            mem_fail_arm(nth, false);
            char *text = text_of(s, statements[i], &err);
            fired = mem_fail_fired();
            mem_fail_arm(0, false);
            if (err == OK) assert_string_equal(text, plain);
            if (!fired) assert_int_equal(err, OK);
            free(text);
            (void)kit_try(s, "ROLLBACK");
        }
        free(plain);
    }
    assert_int_equal(session_close(s), OK);
}

/* Flip a byte at `offset` in every nameless file that this process has open.  True: there was one.
 */
static bool
damage_files(off_t offset)
{
    bool any = false;
    for (int fd = 3; fd < 64; fd++) {
        char name[64], target[256];
        u8 byte;
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        ssize_t bytes = readlink(name, target, sizeof(target) - 1);
        if (bytes <= 0) continue;
        target[bytes] = 0;
        if (strstr(target, "(deleted)") == NULL || pread(fd, &byte, 1, offset) != 1) continue;
        byte ^= 0x20;
        assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
        any = true;
    }
    return any;
}

static void
damaged_blocks_are_refused(void **state)
{
    (void)state;
    u32 refused = 0;
    for (off_t offset = 0; offset < 4000; offset += 61) {
        bool row;
        Err err = OK;
        Session *s = filled();
        kit_exec(s, "PRAGMA weft_memory_budget = 3000");
        Stmt *stmt = kit_prepare(s, "SELECT a, c FROM t ORDER BY c");
        assert_int_equal(stmt_step(stmt, &row), OK);
        bool any = damage_files(offset);
        while (err == OK && row) {
            err = stmt_step(stmt, &row);
        }
        assert_true(any || err == OK);
        if (err != OK) {
            assert_int_equal(err, ERR_IO_READ);
            assert_non_null(strstr(err_message(session_error(s)), "temporary file is damaged"));
            refused++;
        }
        stmt_finalize(stmt);
        assert_int_equal(session_close(s), OK);
    }
    assert_true(refused > 10); /* The others hit blocks that had been read. */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spilled_or_not_is_the_same),
        cmocka_unit_test(all_ways_of_spilling_were_taken),
        cmocka_unit_test(failing_files_are_reported),
        cmocka_unit_test(a_full_disk_has_its_message),
        cmocka_unit_test(failing_memory_is_survived),
        cmocka_unit_test(damaged_blocks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
