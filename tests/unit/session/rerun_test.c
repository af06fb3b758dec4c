/*
 * rerun_test.c -- a prepared statement that runs again allocates nothing, and what it remembers
 * from run to run (the last rowid) is never wrong.
 *
 * Method: each statement runs a few times, so that its buffers have grown; then a source of memory
 * that counts stands before malloc while it runs again, in autocommit and inside a transaction.
 * Writes may take one block a row written: the store's new version of it.  Rowids: prepared inserts
 * run between deletes, undone savepoints, transactions, and another connection's writes; each new
 * rowid is compared with the largest there is.
 */
#include <stdlib.h>

#include "session_kit.h"

static u64 blocks_taken;

static void *
counting_get(size_t bytes)
{
    blocks_taken++;
    return aligned_alloc(16, ALIGN_UP(bytes, (size_t)16));
}

static const MemSource counting = {.get = counting_get, .put = free};

static Session *
filled(void)
{
    Session *s = kit_open("", true);
    kit_exec(s, "CREATE TABLE t(k INTEGER PRIMARY KEY, a INT, b TEXT, c REAL);"
                "CREATE INDEX t_a ON t(a);"
                "CREATE TABLE w(x TEXT, y INT, z INT, PRIMARY KEY(x, y)) WITHOUT ROWID;"
                "CREATE TABLE u(k INTEGER PRIMARY KEY, n INT);"
                "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM n WHERE i<3000)"
                "INSERT INTO t SELECT i, i%100, 'text'||i, i*0.5 FROM n;"
                "INSERT INTO w SELECT b, a, k FROM t; INSERT INTO u SELECT k, 0 FROM t");
    return s;
}

/* One whole run with `number` as every parameter. */
static void
run_once(Stmt *stmt, i64 number)
{
    Cell value = cell_int(number);
    bool row = true;
    for (u32 i = 0; i < stmt_param_count(stmt); i++) {
        assert_int_equal(stmt_bind(stmt, i, &value), OK);
    }
    while (row) {
        assert_int_equal(stmt_step(stmt, &row), OK);
    }
    assert_int_equal(stmt_reset(stmt), OK);
}

/* Blocks taken by `runs` runs after `before` ones. */
static u64
blocks_of(Session *s, const char *sql, u32 before, u32 runs)
{
    Stmt *stmt;
    i64 number = 0;
    assert_int_equal(stmt_prepare(s, SLICE(sql, strlen(sql)), &stmt, NULL), OK);
    for (u32 i = 0; i < before; i++) {
        run_once(stmt, ++number);
    }
    blocks_taken = 0;
    mem_set_source(&counting);
    for (u32 i = 0; i < runs; i++) {
        run_once(stmt, ++number);
    }
    mem_set_source(NULL);
    assert_int_equal(stmt_finalize(stmt), OK);
    return blocks_taken;
}

static const char *const queries[] = {
    "SELECT 1",
    "SELECT ?+1, upper('abc'), abs(?)",
    "SELECT b FROM t WHERE k=?",
    "SELECT a, b, c FROM t WHERE k=? AND a>0",
    "SELECT z FROM w WHERE x='text17' AND y=17",
    "SELECT k, b FROM t WHERE a=? ORDER BY k",
    "SELECT b FROM t WHERE k<? ORDER BY k DESC LIMIT 1",
    "SELECT sum(a), count(*) FROM t WHERE k BETWEEN ? AND ?+100",
    "SELECT count(*) FROM t",
    "SELECT b FROM t",
    "SELECT a, count(*), max(c) FROM t GROUP BY a",
    "SELECT k FROM t ORDER BY c DESC LIMIT 20",
    "SELECT t.b, u.n FROM t JOIN u ON u.k=t.k WHERE t.a=?",
    "SELECT (SELECT max(k) FROM t), (SELECT n FROM u WHERE k=?)",
    "SELECT b FROM t WHERE k IN (?, 7, 8, 900)",
    "SELECT b FROM t WHERE b LIKE '%99%'",
};

static void
queries_allocate_nothing(void **state)
{
    (void)state;
    Session *s = filled();
    /* The counter counts: a first run takes memory. */
    assert_true(blocks_of(s, "SELECT a, count(*) FROM t GROUP BY a", 0, 1) > 0);
    for (u32 pass = 0; pass < 2; pass++) {
        if (pass == 1) kit_exec(s, "BEGIN");
        for (u32 i = 0; i < COUNT_OF(queries); i++) {
            u64 blocks = blocks_of(s, queries[i], 4, 20);
            if (blocks > 0)
                print_error("%s: %llu blocks\n", queries[i], (unsigned long long)blocks);
            assert_int_equal(blocks, 0);
        }
        if (pass == 1) kit_exec(s, "COMMIT");
    }
    session_destroy(s);
}

static const char *const writes[] = {
    "UPDATE u SET n=n+1 WHERE k=?",
    "INSERT INTO u(n) VALUES(?)",
    "DELETE FROM u WHERE k=?",
};

static void
writes_take_one_block_a_row(void **state)
{
    (void)state;
    Session *s = filled();
    kit_exec(s, "BEGIN");
    for (u32 i = 0; i < COUNT_OF(writes); i++) {
        u64 blocks = blocks_of(s, writes[i], 4, 20);
        /* And a leaf now and then. */
        if (blocks > 22) print_error("%s: %llu blocks\n", writes[i], (unsigned long long)blocks);
        assert_true(blocks <= 22);
    }
    kit_exec(s, "COMMIT");
    session_destroy(s);
}

static i64
ask(Session *s, const char *sql)
{
    Stmt *stmt;
    bool row;
    assert_int_equal(stmt_prepare(s, SLICE(sql, strlen(sql)), &stmt, NULL), OK);
    assert_int_equal(stmt_step(stmt, &row), OK);
    i64 number = row && stmt_row(stmt)[0].type == CELL_INT ? stmt_row(stmt)[0].u.i : 0;
    assert_int_equal(stmt_finalize(stmt), OK);
    return number;
}

static Stmt *
prepared(Session *s, const char *sql)
{
    Stmt *stmt;
    assert_int_equal(stmt_prepare(s, SLICE(sql, strlen(sql)), &stmt, NULL), OK);
    return stmt;
}

static const char *const between[] = {
    "DELETE FROM r WHERE k=(SELECT max(k) FROM r)",
    "DELETE FROM r WHERE k>(SELECT max(k)/2 FROM r)",
    "INSERT INTO r(n) VALUES(-1)",
    "INSERT INTO r SELECT max(k)+7, 0 FROM r",
    "UPDATE r SET k=k+3 WHERE k=(SELECT max(k) FROM r)",
    "SAVEPOINT p; DELETE FROM r WHERE n>5; ROLLBACK TO p; RELEASE p",
    "SAVEPOINT p; INSERT INTO r(n) VALUES(1),(2),(3); ROLLBACK TO p; RELEASE p",
    "INSERT INTO log VALUES(1)",
    "REPLACE INTO r VALUES(3, 3)",
    "DELETE FROM r",
    "SELECT count(*) FROM r",
};

static void
a_remembered_rowid_is_the_last(void **state)
{
    (void)state;
    Session *s = kit_open("rowids", true), *other = kit_open("rowids", true);
    kit_exec(s, "CREATE TABLE r(k INTEGER PRIMARY KEY, n INT); CREATE TABLE log(n);");
    Stmt *insert[3] = {prepared(s, "INSERT INTO r(n) VALUES(?)"),
                       prepared(s, "INSERT INTO r(n) VALUES(?+0)"),
                       prepared(s, "INSERT INTO r(k, n) VALUES((?*7919)%500+1, 1)")};
    u64 random = 12345;
    for (i64 i = 0; i < 6000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        u32 dice = (u32)(random >> 33);
        bool open = !session_autocommit(s);
        switch (dice % 8) {
        case 0: kit_exec(s, between[dice / 8 % COUNT_OF(between)]); break;
        case 1:
            if (dice % 64 < 16)
                kit_exec(s, !open ? "BEGIN" : dice % 5 == 0 ? "ROLLBACK" : "COMMIT");
            break;
        case 2:
            if (!open) kit_exec(other, between[dice / 8 % COUNT_OF(between)]);
            break;
        case 3: {
            /* A given rowid, perhaps taken. */
            Cell value = cell_int(dice % 1000);
            bool row;
            assert_int_equal(stmt_bind(insert[2], 0, &value), OK);
            Err err = stmt_step(insert[2], &row);
            assert_true(err == OK || err == ERR_CONSTRAINT_PRIMARYKEY ||
                        err == ERR_CONSTRAINT_ROWID);
            (void)stmt_reset(insert[2]);
            break;
        }
        default: {
            i64 last = dice % 16 < 8 ? ask(s, "SELECT max(k) FROM r") : -1;
            bool undone = open && dice / 64 % 4 == 0;
            if (undone) kit_exec(s, "SAVEPOINT q");
            if (undone) run_once(insert[dice % 2], i);
            if (undone) kit_exec(s, "ROLLBACK TO q; RELEASE q");
            run_once(insert[dice % 2], i);
            if (last >= 0) assert_int_equal(session_last_rowid(s), last + 1);
            assert_int_equal(ask(s, "SELECT max(k) FROM r"), session_last_rowid(s));
        }
        }
    }
    for (u32 i = 0; i < 3; i++) {
        assert_int_equal(stmt_finalize(insert[i]), OK);
    }
    session_destroy(other);
    session_destroy(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_allocate_nothing),
        cmocka_unit_test(writes_take_one_block_a_row),
        cmocka_unit_test(a_remembered_rowid_is_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
