/*
 * shape_threads.c -- the statement shapes by 1, 2 and 16 threads at once, on files, NORMAL.
 *
 * An operation is a transaction of 100 statements.  Every thread writes keys of its own, so that
 * what is measured is whether writers get into each other's way inside the engine, not in the data.
 */
#include <stdlib.h>
#include <string.h>

#include "load.h"
#include "shape.h"
#include "single.h"

#define STATEMENTS 100
#define ROWS       100000

typedef struct Job {
    const ShapeSql *shape;
    bool inserts;
} Job;

typedef struct Turn {
    sqlite3_stmt *stmt;
    int64_t key[STATEMENTS], base, keys;
} Turn;

static void
start(Worker *worker)
{
    const Job *job = worker->load->arg;
    Turn *turn = calloc(1, sizeof(Turn));
    if (turn == NULL) abort();
    turn->stmt = db_prepare(&worker->db, job->inserts ? "INSERT INTO x(a,b,c) VALUES(?1, 'eighty "
                                                        "bytes of text, more or less, as usual in "
                                                        "this bench, and not compared', 0.5)"
                                                      : job->shape->sql);
    turn->keys = job->shape != NULL && job->shape->writes ? 10000 / worker->load->connections
                                                          : 10000;
    turn->base = job->shape != NULL && job->shape->writes ? worker->number * turn->keys : 0;
    worker->own = turn;
}

static void
end(Worker *worker)
{
    Turn *turn = worker->own;
    worker->db.engine->finalize(turn->stmt);
    free(turn);
}

static int
body(Worker *worker, void *arg)
{
    const Job *job = worker->load->arg;
    const Turn *turn = arg;
    const Engine *e = worker->db.engine;
    int code = CODE_OK;
    for (int i = 0; i < STATEMENTS && code == CODE_OK; i++) {
        int64_t key = turn->key[i];
        if (job->shape != NULL && job->shape->three) {
            e->bind_int64(turn->stmt, 1, key / 100);
            e->bind_int64(turn->stmt, 2, key / 10 % 10);
            e->bind_int64(turn->stmt, 3, key % 10);
        } else {
            e->bind_int64(turn->stmt, 1, key);
        }
        code = load_step(worker, turn->stmt);
    }
    return code;
}

static void
operate(Worker *worker)
{
    const Job *job = worker->load->arg;
    Turn *turn = worker->own;
    bool writes = job->inserts || job->shape->writes;
    for (int i = 0; i < STATEMENTS; i++)
        turn->key[i] = turn->base + random_between(&worker->state, 1, turn->keys);
    load_transact(worker, writes, body, turn);
    if (writes) worker->acknowledged += STATEMENTS;
}

/* What was acknowledged must be there: inserted rows, or increments. */
static void
check(Bench *bench, const Run *run, const Job *job, int64_t before, int64_t acknowledged)
{
    Db db = db_open(run->db.engine, run->path, (DbMode){0});
    int64_t after = db_int(&db, job->inserts ? "SELECT count(*) FROM x" : "SELECT sum(n) FROM w");
    if (after - before != acknowledged) {
        bench_fail(bench, "%s: %lld acknowledged, %lld there", db.engine->name,
                   (long long)acknowledged, (long long)(after - before));
    }
    db_close(&db);
}

static double
run_once(Bench *bench, Run *run, Job *job, Load *load)
{
    int64_t acknowledged = 0;
    load->engine = run->db.engine;
    load->path = run->path;
    load->arg = job;
    load->acknowledged_total = &acknowledged;
    bool writes = job->inserts || job->shape->writes;
    int64_t before = !writes ? 0
                             : db_int(&run->db, job->inserts ? "SELECT count(*) FROM x"
                                                             : "SELECT sum(n) FROM w");
    if (load->style == LOAD_STYLES) load->style = load_best_style(load);
    double rate = load_run(load).per_second * STATEMENTS;
    if (writes) check(bench, run, job, before, acknowledged);
    return rate;
}

static void
run_row(Bench *bench, Run run[2], Job *job, int threads)
{
    Row row = {.unit = "per_s", .is_rate = true};
    bool writes = job->inserts || job->shape->writes;
    Load load = {.mode = {.multi = true},
                 .connections = threads,
                 .seconds = bench->options.seconds / 2,
                 .start = start,
                 .operate = operate,
                 .end = end};
    LoadStyle style = LOAD_STYLES;
    snprintf(row.name, sizeof(row.name), "shape.%s_threads_%d",
             job->inserts ? "insert" : job->shape->name, threads);
    if (!bench_wants(bench, row.name)) return;
    if (bench->engines == 2) row.peer_name = bench->options.peer_name;
    if (writes && threads == 2) row.goal = 2;
    for (int round = 0; round < bench->options.rounds; round++) {
        double rate[2] = {0};
        load.seed = (uint64_t)round;
        for (int i = 0; i < bench->engines; i++) {
            int at = bench->engines == 2 ? (i + round) % 2 : 0;
            load.style = at == 0 || !writes ? LOAD_TIMEOUT : style;
            rate[at] = run_once(bench, &run[at], job, &load);
            if (at == 1) style = load.style;
        }
        row_add(&row, rate[0], rate[1]);
    }
    row_show(bench, &row);
}

/* Weft with two writers beside Weft with one. */
static void
run_scaling(Bench *bench, Run run[2], Job *job)
{
    Row row = {.unit = "per_s", .is_rate = true, .goal = 1.6, .peer_name = "weft_1_thread"};
    Load load = {.mode = {.multi = true},
                 .seconds = bench->options.seconds / 2,
                 .start = start,
                 .operate = operate,
                 .end = end};
    snprintf(row.name, sizeof(row.name), "shape.%s_scaling_2",
             job->inserts ? "insert" : job->shape->name);
    if (!bench_wants(bench, row.name)) return;
    for (int round = 0; round < bench->options.rounds; round++) {
        load.connections = 2;
        double two = run_once(bench, &run[0], job, &load);
        load.connections = 1;
        row_add(&row, two, run_once(bench, &run[0], job, &load));
    }
    row_show(bench, &row);
}

void
shape_threads(Bench *bench)
{
    static const int threads[] = {1, 2, 16};
    Run run[2];
    int64_t rows = bench->options.rows;
    bench->options.rows = rows < ROWS ? rows : ROWS;
    single_open(bench, run, "shape", single_fill_tables);
    for (size_t i = 0; i <= shape_sql_count; i++) {
        Job job = {.inserts = i == shape_sql_count};
        if (!job.inserts) job.shape = &shape_sql[i];
        for (size_t at = 0; at < 3; at++) {
            if (threads[at] <= bench->options.connections) run_row(bench, run, &job, threads[at]);
        }
        if (job.inserts || job.shape->writes) run_scaling(bench, run, &job);
    }
    single_close(bench, run);
    bench->options.rows = rows;
}
