/*
 * single.c -- measuring one connection's workloads on two engines in turn.
 */
#include "single.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void
single_open(Bench *bench, Run run[2], const char *file, void (*fill)(Run *run))
{
    for (int i = 0; i < bench->engines; i++) {
        run[i] = (Run){
            .rows = bench->options.rows, .state = 88172645463325252u, .options = &bench->options};
        if (file == NULL)
            snprintf(run[i].path, sizeof(run[i].path), ":memory:");
        else
            snprintf(run[i].path, sizeof(run[i].path), "%s/%s-%s.db", bench->options.directory,
                     file, bench->engine[i].name);
        if (file != NULL) db_remove(run[i].path);
        run[i].db = db_open(&bench->engine[i], run[i].path, (DbMode){0});
        double start = now_s();
        fill(&run[i]);
        printf("# %s: filled in %.2f s\n", bench->engine[i].name, now_s() - start);
    }
}

void
single_close(Bench *bench, Run run[2])
{
    for (int i = 0; i < bench->engines; i++) {
        db_close(&run[i].db);
        if (run[i].path[0] != ':') db_remove(run[i].path);
    }
}

static int64_t
times_of(const Run *run, const Workload *work)
{
    int64_t times = work->times / run->options->divisor;
    return times > 0 ? times : 1;
}

static double
measure(Run *run, const Workload *work, int64_t *answer_out)
{
    sqlite3_stmt *stmt = work->sql == NULL ? NULL : db_prepare(&run->db, work->sql);
    int64_t times = times_of(run, work);
    run->work = work;
    if (work->in_transaction) db_exec(&run->db, "BEGIN");
    double start = now_s();
    *answer_out = work->work(run, stmt, times);
    double seconds = now_s() - start;
    if (work->in_transaction) db_exec(&run->db, "COMMIT");
    if (stmt != NULL) run->db.engine->finalize(stmt);
    return seconds;
}

static void
run_workload(Bench *bench, Run run[2], const Workload *work)
{
    Row row = {.unit = "us", .goal = work->goal};
    snprintf(row.name, sizeof(row.name), "%s", work->name);
    if (bench->engines == 2) row.peer_name = bench->options.peer_name;
    double per_op = 1e6 / (double)times_of(&run[0], work);
    for (int round = 0; round < bench->options.rounds; round++) {
        double seconds[2] = {0};
        int64_t answer[2] = {0};
        uint64_t state = run[0].state;
        for (int i = 0; i < bench->engines; i++) {
            int at = bench->engines == 2 ? (i + round) % 2 : 0;
            run[at].state = state;
            seconds[at] = measure(&run[at], work, &answer[at]);
        }
        if (bench->engines == 2 && answer[0] != answer[1]) {
            bench_fail(bench, "%s: different answers: %lld and %lld", work->name,
                       (long long)answer[0], (long long)answer[1]);
            return;
        }
        row_add(&row, seconds[0] * per_op, seconds[1] * per_op);
    }
    row_show(bench, &row);
}

void
single_run(Bench *bench, Run run[2], const Workload *works, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bench_wants(bench, works[i].name)) run_workload(bench, run, &works[i]);
    }
}

static void
fill_small(Run *run)
{
    const Engine *e = run->db.engine;
    char pad[301];
    memset(pad, 'p', 300);
    sqlite3_stmt *stmt = db_prepare(&run->db, "INSERT INTO s VALUES(?,?,'name'||?1)");
    sqlite3_stmt *wide = db_prepare(&run->db, "INSERT INTO w VALUES(?,0,?)");
    sqlite3_stmt *three = db_prepare(&run->db, "INSERT INTO o VALUES(?1/100,?1/10%10,?1%10,?1*3)");
    for (int64_t i = 1; i <= 10000; i++) {
        e->bind_int64(stmt, 1, i);
        e->bind_int64(stmt, 2, (int64_t)(random_next(&run->state) % 1000));
        db_run(&run->db, stmt);
        e->bind_int64(wide, 1, i);
        e->bind_text(wide, 2, pad, 300, NULL);
        db_run(&run->db, wide);
        e->bind_int64(three, 1, i);
        db_run(&run->db, three);
    }
    e->finalize(stmt);
    e->finalize(wide);
    e->finalize(three);
}

void
single_fill_tables(Run *run)
{
    const Engine *e = run->db.engine;
    db_exec(&run->db,
            "CREATE TABLE t(k INTEGER PRIMARY KEY, a INT, b INT, c TEXT, d REAL, e INT, n INT);"
            "CREATE TABLE s(k INTEGER PRIMARY KEY, v INT, name TEXT);"
            "CREATE TABLE w(k INTEGER PRIMARY KEY, n INT, pad TEXT);"
            "CREATE TABLE x(k INTEGER PRIMARY KEY, a INT, b TEXT, c REAL);"
            "CREATE TABLE o(x INT, y INT, z INT, v INT, PRIMARY KEY(x, y, z)); BEGIN");
    sqlite3_stmt *stmt = db_prepare(&run->db, "INSERT INTO t VALUES(?,?,?,?,?,?,?)");
    for (int64_t i = 1; i <= run->rows; i++) {
        char text[32];
        uint64_t r = random_next(&run->state);
        int bytes = snprintf(text, sizeof(text), "text%06d", (int)(r % 1000000));
        e->bind_int64(stmt, 1, i);
        e->bind_int64(stmt, 2, (int64_t)(r >> 20) % 1000000);
        e->bind_int64(stmt, 3, (int64_t)(r >> 3) % 100);
        e->bind_text(stmt, 4, text, bytes, NULL);
        e->bind_double(stmt, 5, (double)(r % 100000) / 7);
        e->bind_int64(stmt, 6, (int64_t)(r >> 11) % 10000);
        if (r % 10 == 0)
            e->bind_null(stmt, 7);
        else
            e->bind_int64(stmt, 7, (int64_t)(r % 1000));
        db_run(&run->db, stmt);
    }
    e->finalize(stmt);
    fill_small(run);
    db_exec(&run->db, "COMMIT; CREATE INDEX t_a ON t(a)");
}

int64_t
by_random_key(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    const Engine *e = run->db.engine;
    int64_t sum = 0;
    for (int64_t i = 0; i < times; i++) {
        e->bind_int64(stmt, 1, (int64_t)(random_next(&run->state) % 10000) + 1);
        int code = e->step(stmt);
        while (code == CODE_ROW) {
            sum += e->column_int64(stmt, 0);
            code = e->step(stmt);
        }
        db_must(&run->db, code, "step");
        e->reset(stmt);
    }
    return sum;
}

int64_t
by_three_columns(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    const Engine *e = run->db.engine;
    int64_t sum = 0;
    for (int64_t i = 0; i < times; i++) {
        uint64_t key = random_next(&run->state) % 10000 + 1;
        e->bind_int64(stmt, 1, (int64_t)(key / 100));
        e->bind_int64(stmt, 2, (int64_t)(key / 10 % 10));
        e->bind_int64(stmt, 3, (int64_t)(key % 10));
        int code = e->step(stmt);
        if (code == CODE_ROW) {
            sum += e->column_int64(stmt, 0);
            code = e->step(stmt);
        }
        db_must(&run->db, code, "step");
        e->reset(stmt);
    }
    return sum;
}

int64_t
all_rows(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    const Engine *e = run->db.engine;
    int64_t sum = 0;
    for (int64_t i = 0; i < times; i++) {
        int code = e->step(stmt);
        while (code == CODE_ROW) {
            sum = (int64_t)((uint64_t)sum * 31 + (uint64_t)e->column_int64(stmt, 0));
            code = e->step(stmt);
        }
        db_must(&run->db, code, "step");
        e->reset(stmt);
    }
    return sum;
}

static uint64_t
column_digest(const Engine *e, sqlite3_stmt *stmt, int column)
{
    uint64_t digest = 5;
    switch (e->column_type(stmt, column)) {
    case 1: return (uint64_t)e->column_int64(stmt, column) * 3;
    /* Sums of reals may differ in their last digits. */
    case 2: return (uint64_t)(int64_t)llround(e->column_double(stmt, column) * 100) * 3;
    case 5: return 1;
    default:
        for (const unsigned char *p = e->column_text(stmt, column); p != NULL && *p != 0; p++)
            digest = digest * 131 + *p;
        return digest;
    }
}

int64_t
all_columns(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    const Engine *e = run->db.engine;
    uint64_t sum = 0;
    int columns = e->column_count(stmt);
    for (int64_t i = 0; i < times; i++) {
        int code = e->step(stmt);
        while (code == CODE_ROW) {
            for (int column = 0; column < columns; column++)
                sum = sum * 31 + column_digest(e, stmt, column);
            code = e->step(stmt);
        }
        db_must(&run->db, code, "step");
        e->reset(stmt);
    }
    return (int64_t)sum;
}
