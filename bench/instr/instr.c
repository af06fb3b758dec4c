/*
 * instr.c -- the instructions of short statements: one prepared statement at a time, run many
 * times, counted by callgrind.
 *
 * Runs on one library under callgrind, which counts what happens in measured() only: run.py starts
 * it, reads what was counted and prints.  A workload runs WARM times first, so that memory has its
 * size and caches are full.  Each prints "NAME TIMES ANSWER", the answer a number made from the
 * rows, which must not depend on the library.
 *
 * usage: instr LIBRARY DIRECTORY [PART-OF-NAME]
 *        instr --compiler
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine.h"

#define ROWS  20000
#define WARM  300
#define TIMES 1000

typedef struct Run {
    Engine engine;
    sqlite3 *db;
    uint64_t state; /* Seeded random numbers. */
} Run;

typedef struct Workload {
    const char *name;
    const char *sql;
    int64_t (*work)(Run *run, sqlite3_stmt *stmt, const char *sql, int64_t times);
    bool in_transaction;
    int64_t times; /* 0: TIMES. */
    bool on_file;  /* Else in memory. */
} Workload;

static uint64_t
next_random(Run *run)
{
    run->state ^= run->state << 13;
    run->state ^= run->state >> 7;
    run->state ^= run->state << 17;
    return run->state;
}

static void
must(Run *run, int code, const char *what)
{
    if (code == 0 || code == CODE_ROW || code == CODE_DONE) return;
    fprintf(stderr, "%s: %s\n", what, run->engine.errmsg(run->db));
    exit(1);
}

static void
exec(Run *run, const char *sql)
{
    must(run, run->engine.exec(run->db, sql, NULL, NULL, NULL), sql);
}

static sqlite3_stmt *
prepare(Run *run, const char *sql)
{
    sqlite3_stmt *stmt;
    must(run, run->engine.prepare_v2(run->db, sql, -1, &stmt, NULL), sql);
    return stmt;
}

static void
run_once(Run *run, sqlite3_stmt *stmt)
{
    must(run, run->engine.step(stmt), "fill");
    run->engine.reset(stmt);
}

/* t: k integer key, a unique and scattered, b one of 10, c text, d real, e one of 2,000; o: a key
   of three columns, ten lines for each pair of the first two; s small; w wide; x to insert into. */
static void
fill(Run *run)
{
    const Engine *e = &run->engine;
    exec(run, "CREATE TABLE t(k INTEGER PRIMARY KEY, a INT, b INT, c TEXT, d REAL, e INT);"
              "CREATE TABLE o(x INT, y INT, z INT, v INT, PRIMARY KEY(x, y, z));"
              "CREATE TABLE s(k INTEGER PRIMARY KEY, v INT, name TEXT);"
              "CREATE TABLE w(k INTEGER PRIMARY KEY, n INT, pad TEXT);"
              "CREATE TABLE g(k INTEGER PRIMARY KEY, n INT, pad TEXT);"
              "CREATE TABLE x(k INTEGER PRIMARY KEY, a INT, b TEXT, c REAL);"
              "CREATE INDEX t_a ON t(a); CREATE INDEX t_e ON t(e);");
    exec(run, "BEGIN");
    sqlite3_stmt *t = prepare(run, "INSERT INTO t VALUES(?1,?1*7919%20011,?1/7%10,'text'||?1,"
                                   "?1/7.0,?1*31%2000)");
    sqlite3_stmt *o = prepare(run, "INSERT INTO o VALUES(?1/100,?1/10%10,?1%10,?1*3%1000)");
    sqlite3_stmt *s = prepare(run, "INSERT INTO s VALUES(?1,?1*17%1000,'name'||?1)");
    sqlite3_stmt *w = prepare(run, "INSERT INTO w VALUES(?1,0,printf('%.300c','p'))");
    sqlite3_stmt *g = prepare(run, "INSERT INTO g VALUES(?1,0,printf('%.60c','p'))");
    for (int64_t i = 1; i <= ROWS; i++) {
        e->bind_int64(t, 1, i);
        run_once(run, t);
        e->bind_int64(o, 1, i);
        run_once(run, o);
        e->bind_int64(g, 1, i);
        run_once(run, g);
        if (i > 2000) continue;
        e->bind_int64(s, 1, i);
        run_once(run, s);
        e->bind_int64(w, 1, i);
        run_once(run, w);
    }
    e->finalize(t);
    e->finalize(o);
    e->finalize(s);
    e->finalize(w);
    e->finalize(g);
    exec(run, "COMMIT");
}

/* ---- what is done with a statement ---- */

static int64_t
take_rows(Run *run, sqlite3_stmt *stmt)
{
    const Engine *e = &run->engine;
    int64_t sum = 0;
    int code = e->step(stmt);
    while (code == CODE_ROW) {
        sum = sum * 31 + e->column_int64(stmt, 0);
        code = e->step(stmt);
    }
    must(run, code, "step");
    e->reset(stmt);
    return sum;
}

static int64_t
by_key(Run *run, sqlite3_stmt *stmt, const char *sql, int64_t times)
{
    (void)sql;
    int64_t sum = 0;
    for (int64_t i = 0; i < times; i++) {
        run->engine.bind_int64(stmt, 1, (int64_t)(next_random(run) % 2000) + 1);
        sum = sum * 7 + take_rows(run, stmt);
    }
    return sum;
}

static int64_t
by_three(Run *run, sqlite3_stmt *stmt, const char *sql, int64_t times)
{
    (void)sql;
    const Engine *e = &run->engine;
    int64_t sum = 0;
    for (int64_t i = 0; i < times; i++) {
        uint64_t r = next_random(run) % (ROWS - 200) + 100;
        e->bind_int64(stmt, 1, (int64_t)(r / 100));
        e->bind_int64(stmt, 2, (int64_t)(r / 10 % 10));
        e->bind_int64(stmt, 3, (int64_t)(r % 10));
        sum = sum * 7 + take_rows(run, stmt);
    }
    return sum;
}

static int64_t
by_two(Run *run, sqlite3_stmt *stmt, const char *sql, int64_t times)
{
    (void)sql;
    const Engine *e = &run->engine;
    int64_t sum = 0;
    for (int64_t i = 0; i < times; i++) {
        uint64_t r = next_random(run) % (ROWS - 200) + 100;
        e->bind_int64(stmt, 1, (int64_t)(r / 100));
        e->bind_int64(stmt, 2, (int64_t)(r / 10 % 10));
        sum = sum * 7 + take_rows(run, stmt);
    }
    return sum;
}

static int64_t
no_key(Run *run, sqlite3_stmt *stmt, const char *sql, int64_t times)
{
    (void)sql;
    int64_t sum = 0;
    for (int64_t i = 0; i < times; i++)
        sum = sum * 7 + take_rows(run, stmt);
    return sum;
}

static int64_t
insert_rows(Run *run, sqlite3_stmt *stmt, const char *sql, int64_t times)
{
    (void)sql;
    const Engine *e = &run->engine;
    static char text[101];
    memset(text, 'x', 100);
    for (int64_t i = 0; i < times; i++) {
        e->bind_int64(stmt, 1, (int64_t)(next_random(run) % 1000));
        e->bind_text(stmt, 2, text, 80, NULL);
        e->bind_double(stmt, 3, (double)i * 0.5);
        must(run, e->step(stmt), "insert");
        e->reset(stmt);
    }
    return times;
}

/* Every row once, in an order of no pattern. */
static int64_t
delete_rows(Run *run, sqlite3_stmt *stmt, const char *sql, int64_t times)
{
    (void)sql;
    for (int64_t i = 0; i < times; i++) {
        run->state++;
        run->engine.bind_int64(stmt, 1, (int64_t)(run->state * 7919 % ROWS) + 1);
        must(run, run->engine.step(stmt), "delete");
        run->engine.reset(stmt);
    }
    return times;
}

/* A text that was not seen before: the spaces are spaces, tabs or line ends. */
static int64_t
prepare_new(Run *run, sqlite3_stmt *stmt, const char *sql, int64_t times)
{
    (void)stmt;
    char text[512];
    for (int64_t i = 0; i < times; i++) {
        uint64_t digits = ++run->state;
        size_t at = 0;
        for (; sql[at] != 0; at++) {
            text[at] = sql[at];
            if (sql[at] != ' ') continue;
            text[at] = " \t\n"[digits % 3];
            digits /= 3;
        }
        text[at] = 0;
        run->engine.finalize(prepare(run, text));
    }
    return times;
}

static int64_t
prepare_again(Run *run, sqlite3_stmt *stmt, const char *sql, int64_t times)
{
    (void)stmt;
    for (int64_t i = 0; i < times; i++)
        run->engine.finalize(prepare(run, sql));
    return times;
}

#define FIVE_CLAUSES                                                                          \
    "SELECT s.name, count(*), sum(t.d) FROM t JOIN s ON s.k=t.e WHERE t.a>? GROUP BY s.name " \
    "HAVING count(*)>2 ORDER BY 3 DESC LIMIT 10"

static const Workload workloads[] = {
    {"point_in_txn", "SELECT b FROM t WHERE k=?", by_key, true},
    {"point_autocommit", "SELECT b FROM t WHERE k=?", by_key, false},
    {"point_key3_in_txn", "SELECT v FROM o WHERE x=? AND y=? AND z=?", by_three, true},
    {"point_key3_autocommit", "SELECT v FROM o WHERE x=? AND y=? AND z=?", by_three, false},
    {"point_index_in_txn", "SELECT b FROM t WHERE a=?", by_key, true},
    {"point_index_autocommit", "SELECT b FROM t WHERE a=?", by_key, false},
    {"secondary", "SELECT b FROM t WHERE e=? ORDER BY k", by_key, true},
    {"join", "SELECT t.b+s.v FROM t JOIN s ON s.k=t.e WHERE t.k=?", by_key, true},
    {"desc_limit", "SELECT b FROM t WHERE k<? ORDER BY k DESC LIMIT 1", by_key, true},
    {"desc_limit_key3", "SELECT v FROM o WHERE x=? AND y=? ORDER BY z DESC LIMIT 1", by_two, true},
    {"min_prefix", "SELECT min(z) FROM o WHERE x=? AND y=?", by_two, true},
    {"count_index", "SELECT count(*) FROM t WHERE e=?", by_key, true},
    {"equal_max", "SELECT b FROM t WHERE k=(SELECT max(k) FROM t WHERE k<=?)", by_key, true},
    {"sum_range", "SELECT sum(b) FROM t WHERE k BETWEEN ?1 AND ?1+100", by_key, true},
    {"sum_range_10", "SELECT sum(b) FROM t WHERE k BETWEEN ?1 AND ?1+9", by_key, true},
    {"distinct_range", "SELECT DISTINCT b FROM t WHERE k BETWEEN ?1 AND ?1+19", by_key, true},
    {"group_10", "SELECT b, count(*) FROM t WHERE k BETWEEN ?1 AND ?1+9 GROUP BY b", by_key, true},
    {"range_10", "SELECT b FROM t WHERE k BETWEEN ?1 AND ?1+9", by_key, true},
    {"scan_1000", "SELECT b, a, c FROM t LIMIT 1000", no_key, true, 10},
    {"group_1000", "SELECT b, count(*), sum(e) FROM t WHERE k<=1000 GROUP BY b", no_key, true, 10},
    {"select_1", "SELECT 1", no_key, false},
    {"insert", "INSERT INTO x(a,b,c) VALUES(?,?,?)", insert_rows, true},
    {"insert_autocommit", "INSERT INTO x(a,b,c) VALUES(?,?,?)", insert_rows, false},
    {"insert_commit", "INSERT INTO x(a,b,c) VALUES(?,?,?)", insert_rows, false, 300, true},
    {"update", "UPDATE w SET n=n+1 WHERE k=?", by_key, true},
    {"update_autocommit", "UPDATE w SET n=n+1 WHERE k=?", by_key, false},
    {"delete", "DELETE FROM g WHERE k=?", delete_rows, true},
    {"prepare_point", "SELECT b, c FROM t WHERE k = ? AND 1", prepare_new, false},
    {"prepare_insert", "INSERT INTO x ( k , a , b , c ) VALUES(?,?,?,?)", prepare_new, false},
    {"prepare_five", FIVE_CLAUSES, prepare_new, false},
    {"prepare_again", "SELECT b, c FROM t WHERE k=?", prepare_again, false},
};

#if defined(__clang__)
#define KEEP_WHOLE __attribute__((noinline))
static const char compiler[] = "clang " __clang_version__;
#else
#define KEEP_WHOLE __attribute__((noinline, noclone))
static const char compiler[] = "gcc " __VERSION__;
#endif

/* callgrind collects while this runs, and dumps when it ends: run.py knows it by its name. */
KEEP_WHOLE static int64_t
measured(Run *run, const Workload *work, sqlite3_stmt *stmt, int64_t times)
{
    return work->work(run, stmt, work->sql, times);
}

static void
measure(Run *run, const Workload *work)
{
    bool prepares = work->work == prepare_new || work->work == prepare_again;
    sqlite3_stmt *stmt = prepares ? NULL : prepare(run, work->sql);
    int64_t times = work->times != 0 ? work->times : TIMES;
    if (work->in_transaction) exec(run, "BEGIN");
    run->state = 88172645463325252u;
    int64_t warm = work->work(run, stmt, work->sql, times < WARM ? times : WARM);
    int64_t answer = measured(run, work, stmt, times);
    if (work->in_transaction) exec(run, "COMMIT");
    run->engine.finalize(stmt);
    printf("%s %d %lld\n", work->name, (int)times, (long long)(warm * 13 + answer));
}

int
main(int argc, char **argv)
{
    char path[4096];
    Run run[2] = {{.db = NULL}};
    if (argc == 2 && strcmp(argv[1], "--compiler") == 0) return puts(compiler) < 0;
    if (argc < 3) {
        fprintf(stderr, "usage: instr LIBRARY DIRECTORY [PART-OF-NAME]\n");
        return 2;
    }
    snprintf(path, sizeof(path), "%s/instr.db", argv[2]);
    if (!engine_load(&run[0].engine, "library", argv[1])) return 1;
    run[1].engine = run[0].engine;
    must(&run[0], run[0].engine.open_v2(":memory:", &run[0].db, OPEN_FLAGS, NULL), "open");
    must(&run[1], run[1].engine.open_v2(path, &run[1].db, OPEN_FLAGS, NULL), path);
    exec(&run[1], "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL");
    fill(&run[0]);
    exec(&run[1], "CREATE TABLE x(k INTEGER PRIMARY KEY, a INT, b TEXT, c REAL)");
    for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
        if (argc > 3 && strstr(workloads[i].name, argv[3]) == NULL) continue;
        measure(&run[workloads[i].on_file], &workloads[i]);
    }
    for (int i = 0; i < 2; i++)
        run[i].engine.close_v2(run[i].db);
    return 0;
}
