/*
 * bench.c -- the same workloads on two engines, in turn, and the ratio of their times.
 *
 * Every round runs each workload on one engine and then on the other, so that a machine that slows
 * down slows both; the figure is the median of the rounds' ratios.  A workload returns a number
 * made from its answers: if the engines disagree, its time does not count and the run fails.
 *
 * usage: bench --weft LIBRARY --peer LIBRARY [--name PEER] [--group GROUP] [--rounds N] [--rows N]
 *              [--json FILE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine.h"

typedef struct Run {
    const Engine *engine;
    sqlite3 *db;
    int64_t rows;
    uint64_t state; /* Seeded random numbers. */
} Run;

typedef struct Workload {
    const char *name; /* group.name */
    const char *sql;  /* The statement measured; NULL: `work` does it all. */
    int64_t times;    /* Operations in one measurement. */
    int64_t (*work)(Run *run, sqlite3_stmt *stmt, int64_t times);
    bool in_transaction;
    double goal; /* Peer's time divided by ours. */
} Workload;

static uint64_t
next_random(Run *run)
{
    run->state ^= run->state << 13;
    run->state ^= run->state >> 7;
    run->state ^= run->state << 17;
    return run->state;
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void
must(Run *run, int code, const char *what)
{
    if (code == 0 || code == CODE_ROW || code == CODE_DONE) return;
    fprintf(stderr, "%s: %s: %s\n", run->engine->name, what, run->engine->errmsg(run->db));
    exit(1);
}

static void
exec(Run *run, const char *sql)
{
    must(run, run->engine->exec(run->db, sql, NULL, NULL, NULL), sql);
}

static sqlite3_stmt *
prepare(Run *run, const char *sql)
{
    sqlite3_stmt *stmt;
    must(run, run->engine->prepare_v2(run->db, sql, -1, &stmt, NULL), sql);
    return stmt;
}

/* Table t: k integer key, a random, b one of 100, c text of 10, d real, e one of 10,000; s a small
   one of 10,000 rows. */
static void
fill(Run *run)
{
    const Engine *e = run->engine;
    exec(run, "CREATE TABLE t(k INTEGER PRIMARY KEY, a INT, b INT, c TEXT, d REAL, e INT);"
              "CREATE TABLE s(k INTEGER PRIMARY KEY, v INT, name TEXT);"
              "CREATE TABLE w(k INTEGER PRIMARY KEY, n INT, pad TEXT);"
              "CREATE TABLE x(k INTEGER PRIMARY KEY, a INT, b TEXT, c REAL);");
    exec(run, "BEGIN");
    sqlite3_stmt *stmt = prepare(run, "INSERT INTO t VALUES(?,?,?,?,?,?)");
    for (int64_t i = 1; i <= run->rows; i++) {
        char text[32];
        uint64_t r = next_random(run);
        int bytes = snprintf(text, sizeof(text), "text%06d", (int)(r % 1000000));
        e->bind_int64(stmt, 1, i);
        e->bind_int64(stmt, 2, (int64_t)(r >> 20) % 1000000);
        e->bind_int64(stmt, 3, (int64_t)(r >> 3) % 100);
        e->bind_text(stmt, 4, text, bytes, NULL);
        e->bind_double(stmt, 5, (double)(r % 100000) / 7);
        e->bind_int64(stmt, 6, (int64_t)(r >> 11) % 10000);
        must(run, e->step(stmt), "insert");
        e->reset(stmt);
    }
    e->finalize(stmt);
    stmt = prepare(run, "INSERT INTO s VALUES(?,?,'name'||?1)");
    sqlite3_stmt *wide = prepare(run, "INSERT INTO w VALUES(?,0,?)");
    char pad[301];
    memset(pad, 'p', 300);
    for (int64_t i = 1; i <= 10000; i++) {
        e->bind_int64(stmt, 1, i);
        e->bind_int64(stmt, 2, (int64_t)(next_random(run) % 1000));
        must(run, e->step(stmt), "insert");
        e->reset(stmt);
        e->bind_int64(wide, 1, i);
        e->bind_text(wide, 2, pad, 300, NULL);
        must(run, e->step(wide), "insert");
        e->reset(wide);
    }
    e->finalize(stmt);
    e->finalize(wide);
    exec(run, "COMMIT; CREATE INDEX t_a ON t(a)");
}

/* ---- what is done with a statement ---- */

static int64_t
by_random_key(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    const Engine *e = run->engine;
    int64_t sum = 0;
    for (int64_t i = 0; i < times; i++) {
        e->bind_int64(stmt, 1, (int64_t)(next_random(run) % 10000) + 1);
        int code = e->step(stmt);
        while (code == CODE_ROW) {
            sum += e->column_int64(stmt, 0);
            code = e->step(stmt);
        }
        must(run, code, "step");
        e->reset(stmt);
    }
    return sum;
}

static int64_t
all_rows(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    const Engine *e = run->engine;
    int64_t sum = 0;
    for (int64_t i = 0; i < times; i++) {
        int code = e->step(stmt);
        while (code == CODE_ROW) {
            sum = sum * 31 + e->column_int64(stmt, 0);
            code = e->step(stmt);
        }
        must(run, code, "step");
        e->reset(stmt);
    }
    return sum;
}

static int64_t
insert_rows(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    const Engine *e = run->engine;
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

static int64_t
prepare_only(Run *run, sqlite3_stmt *stmt, int64_t times, const char *sql)
{
    (void)stmt;
    for (int64_t i = 0; i < times; i++)
        run->engine->finalize(prepare(run, sql));
    return times;
}

static int64_t
prepare_point(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    return prepare_only(run, stmt, times, "SELECT b, c FROM t WHERE k=?");
}

static int64_t
prepare_five(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    return prepare_only(run, stmt, times,
                        "SELECT s.name, count(*), sum(t.d) FROM t JOIN s ON s.k=t.e WHERE t.a>? "
                        "GROUP BY s.name HAVING count(*)>2 ORDER BY 3 DESC LIMIT 10");
}

static int64_t
memory_life(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    (void)stmt;
    for (int64_t i = 0; i < times; i++) {
        Run life = {.engine = run->engine};
        must(&life, life.engine->open_v2(":memory:", &life.db, OPEN_FLAGS, NULL), "open");
        exec(&life, "CREATE TABLE t(a); INSERT INTO t VALUES(1)");
        life.engine->close_v2(life.db);
    }
    return times;
}

static const Workload workloads[] = {
    {"shape.point_in_txn", "SELECT b FROM t WHERE k=?", 200000, by_random_key, true, 1.2},
    {"shape.point_autocommit", "SELECT b FROM t WHERE k=?", 200000, by_random_key, false, 2.0},
    {"shape.secondary", "SELECT b FROM t WHERE a=? ORDER BY k", 100000, by_random_key, true, 1.2},
    {"shape.range_sum", "SELECT sum(b) FROM t WHERE k BETWEEN ?1 AND ?1+100", 20000, by_random_key,
     true, 1.0},
    {"shape.join", "SELECT t.b+s.v FROM t JOIN s ON s.k=t.e WHERE t.k=?", 100000, by_random_key,
     true, 1.0},
    {"shape.desc_limit", "SELECT b FROM t WHERE k<? ORDER BY k DESC LIMIT 1", 100000, by_random_key,
     true, 1.0},
    {"shape.insert", "INSERT INTO x(a,b,c) VALUES(?,?,?)", 200000, insert_rows, true, 1.1},
    {"shape.update", "UPDATE w SET n=n+1 WHERE k=?", 100000, by_random_key, true, 1.1},
    {"shape.insert_autocommit", "INSERT INTO x(a,b,c) VALUES(?,?,?)", 20000, insert_rows, false,
     1.0},
    {"shape.select_1", "SELECT 1", 200000, all_rows, false, 1.0},
    {"shape.prepare_point", NULL, 50000, prepare_point, false, 0.83},
    {"shape.prepare_five", NULL, 10000, prepare_five, false, 0.83},
    {"habit.memory_life", NULL, 2000, memory_life, false, 1.0},
    {"analytic.count", "SELECT count(*) FROM t", 5, all_rows, false, 1.0},
    {"analytic.filtered_count", "SELECT count(*) FROM t WHERE b<50", 3, all_rows, false, 5.0},
    {"analytic.two_predicates", "SELECT count(*) FROM t WHERE b<50 AND e>5000", 3, all_rows, false,
     5.0},
    {"analytic.filtered_sum", "SELECT sum(e) FROM t WHERE b=7", 3, all_rows, false, 5.0},
    {"analytic.like", "SELECT count(*) FROM t WHERE c LIKE '%99%'", 2, all_rows, false, 5.0},
    {"analytic.group", "SELECT b, count(*), sum(e) FROM t GROUP BY b", 2, all_rows, false, 10.0},
    {"analytic.group_10000", "SELECT e, count(*), avg(d) FROM t GROUP BY e", 2, all_rows, false,
     5.0},
    {"analytic.top_20", "SELECT k FROM t ORDER BY d, k LIMIT 20", 2, all_rows, false, 5.0},
    {"analytic.full_sort", "SELECT k FROM t ORDER BY e, k", 1, all_rows, false, 10.0},
    {"analytic.distinct", "SELECT count(DISTINCT e) FROM t", 2, all_rows, false, 5.0},
    {"analytic.join", "SELECT sum(s.v) FROM t JOIN s ON s.k=t.e", 2, all_rows, false, 5.0},
    {"analytic.join_text", "SELECT count(*) FROM t JOIN s ON 'text'||s.v=t.c", 1, all_rows, false,
     1.0},
    {"analytic.read_ints", "SELECT a FROM t", 2, all_rows, false, 2.0},
};

static double
measure(Run *run, const Workload *work, int64_t *answer_out)
{
    sqlite3_stmt *stmt = work->sql == NULL ? NULL : prepare(run, work->sql);
    if (work->in_transaction) exec(run, "BEGIN");
    double start = now();
    *answer_out = work->work(run, stmt, work->times);
    double seconds = now() - start;
    if (work->in_transaction) exec(run, "COMMIT");
    if (stmt != NULL) run->engine->finalize(stmt);
    return seconds;
}

static int
compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define ROUNDS_MAX 15

/* Returns false if the engines disagree. */
static bool
run_workload(Run run[2], const Workload *work, int rounds, FILE *json)
{
    double seconds[2][ROUNDS_MAX], ratio[ROUNDS_MAX];
    for (int round = 0; round < rounds; round++) {
        int64_t answer[2];
        uint64_t state = run[0].state;
        for (int i = 0; i < 2; i++) {
            int at = (i + round) % 2;
            run[at].state = state;
            seconds[at][round] = measure(&run[at], work, &answer[at]);
        }
        run[1].state = run[0].state;
        if (answer[0] != answer[1]) {
            printf("%-26s DIFFERENT ANSWERS: %lld and %lld\n", work->name, (long long)answer[0],
                   (long long)answer[1]);
            return false;
        }
        ratio[round] = seconds[1][round] / seconds[0][round];
    }
    for (int i = 0; i < 2; i++)
        qsort(seconds[i], (size_t)rounds, sizeof(double), compare_doubles);
    qsort(ratio, (size_t)rounds, sizeof(double), compare_doubles);
    double per_op = 1e6 / (double)work->times;
    double middle = ratio[rounds / 2];
    printf("%-26s %12.3f %12.3f %8.2f x  (%.2f..%.2f) goal %.2f %s\n", work->name,
           seconds[0][rounds / 2] * per_op, seconds[1][rounds / 2] * per_op, middle, ratio[0],
           ratio[rounds - 1], work->goal, middle >= work->goal ? "met" : "-");
    fflush(stdout);
    if (json != NULL) {
        fprintf(json,
                "{\"name\":\"%s\",\"weft\":%.4f,\"peer\":%.4f,\"peer_name\":\"%s\",\"unit\":\"us\","
                "\"ratio\":%.3f,\"spread\":[%.3f,%.3f],\"goal\":%.2f,\"met\":%s}\n",
                work->name, seconds[0][rounds / 2] * per_op, seconds[1][rounds / 2] * per_op,
                run[1].engine->name, middle, ratio[0], ratio[rounds - 1], work->goal,
                middle >= work->goal ? "true" : "false");
    }
    return true;
}

typedef struct Options {
    const char *weft, *peer, *name, *group, *json;
    int rounds;
    int64_t rows;
} Options;

static Options
read_options(int argc, char **argv)
{
    Options options = {.name = "sqlite", .rounds = 3, .rows = 1000000};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--weft") == 0) options.weft = value;
        if (strcmp(argv[i], "--peer") == 0) options.peer = value;
        if (strcmp(argv[i], "--name") == 0) options.name = value;
        if (strcmp(argv[i], "--group") == 0) options.group = value;
        if (strcmp(argv[i], "--json") == 0) options.json = value;
        if (strcmp(argv[i], "--rounds") == 0) options.rounds = atoi(value);
        if (strcmp(argv[i], "--rows") == 0) options.rows = atoll(value);
    }
    if (options.weft == NULL || options.peer == NULL || options.rounds < 1 ||
        options.rounds > ROUNDS_MAX || options.rows < 10000) {
        fprintf(stderr, "usage: bench --weft LIBRARY --peer LIBRARY [--name PEER] [--group GROUP] "
                        "[--rounds 1..15] [--rows N>=10000] [--json FILE]\n");
        exit(2);
    }
    return options;
}

int
main(int argc, char **argv)
{
    Options options = read_options(argc, argv);
    Engine engine[2] = {0};
    if (!engine_load(&engine[0], "weft", options.weft) ||
        !engine_load(&engine[1], options.name, options.peer)) {
        return 1;
    }
    FILE *json = options.json == NULL ? NULL : fopen(options.json, "a");
    Run run[2];
    for (int i = 0; i < 2; i++) {
        run[i] = (Run){.engine = &engine[i], .rows = options.rows, .state = 88172645463325252u};
        must(&run[i], engine[i].open_v2(":memory:", &run[i].db, OPEN_FLAGS, NULL), "open");
        double start = now();
        fill(&run[i]);
        printf("# %s: filled %lld rows in %.2f s\n", engine[i].name, (long long)options.rows,
               now() - start);
    }
    run[1].state = run[0].state;
    printf("%-26s %12s %12s %8s     (us per operation)\n", "", "weft", engine[1].name, "ratio");
    bool agreed = true;
    for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
        if (options.group != NULL && strstr(workloads[i].name, options.group) == NULL) continue;
        agreed = run_workload(run, &workloads[i], options.rounds, json) && agreed;
    }
    for (int i = 0; i < 2; i++)
        engine[i].close_v2(run[i].db);
    if (json != NULL) fclose(json);
    return agreed ? 0 : 1;
}
