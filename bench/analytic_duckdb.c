/*
 * analytic_duckdb.c -- the analytic questions beside DuckDB, by its own C API, on one thread and on
 * all.
 *
 * DuckDB's time is that of its query call, which makes the whole result; Weft's is stepping through
 * all rows.  Number of rows and the sum of the first column, where it holds integers, must agree.
 */
#include <stdlib.h>
#include <string.h>

#include "analytic.h"
#include "duckdb.h"

static void
must(int failed, const char *what)
{
    if (failed == 0) return;
    fprintf(stderr, "duckdb: %s failed\n", what);
    exit(1);
}

static void
copy_table(Duck *duck, Run *run, const char *table)
{
    const Engine *e = run->db.engine;
    char sql[64];
    void *appender;
    snprintf(sql, sizeof(sql), "SELECT * FROM %s", table);
    sqlite3_stmt *stmt = db_prepare(&run->db, sql);
    must(duck->appender_create(duck->connection, NULL, table, &appender), "appender_create");
    int code = e->step(stmt);
    for (; code == CODE_ROW; code = e->step(stmt)) {
        int failed = 0;
        for (int i = 0; i < e->column_count(stmt); i++) {
            switch (e->column_type(stmt, i)) {
            case 1: failed += duck->append_int64(appender, e->column_int64(stmt, i)); break;
            case 2: failed += duck->append_double(appender, e->column_double(stmt, i)); break;
            case 5: failed += duck->append_null(appender); break;
            default:
                failed += duck->append_varchar_length(appender,
                                                      (const char *)e->column_text(stmt, i),
                                                      (uint64_t)e->column_bytes(stmt, i));
                break;
            }
        }
        must(failed + duck->appender_end_row(appender), "append");
    }
    db_must(&run->db, code, sql);
    e->finalize(stmt);
    must(duck->appender_destroy(&appender), "appender_destroy");
}

typedef struct Answer {
    int64_t rows, sum;
    bool is_integer;
    double seconds;
} Answer;

static Answer
ask_weft(Run *run, const char *sql)
{
    const Engine *e = run->db.engine;
    Answer answer = {.is_integer = true};
    double start = now_s();
    sqlite3_stmt *stmt = db_prepare(&run->db, sql);
    int code = e->step(stmt);
    for (; code == CODE_ROW; code = e->step(stmt)) {
        if (answer.rows == 0) answer.is_integer = e->column_type(stmt, 0) == 1;
        answer.sum = (int64_t)((uint64_t)answer.sum + (uint64_t)e->column_int64(stmt, 0));
        answer.rows++;
    }
    db_must(&run->db, code, sql);
    e->finalize(stmt);
    answer.seconds = now_s() - start;
    return answer;
}

static Answer
ask_duckdb(Duck *duck, const char *sql)
{
    Answer answer = {.is_integer = true};
    DuckResult result;
    double start = now_s();
    if (duck->query(duck->connection, sql, &result) != 0) {
        fprintf(stderr, "duckdb: %s: %s\n", sql, duck->result_error(&result));
        exit(1);
    }
    answer.seconds = now_s() - start;
    answer.rows = (int64_t)duck->row_count(&result);
    for (int64_t i = 0; i < answer.rows; i++) {
        int64_t value = duck->value_int64(&result, 0, (uint64_t)i);
        answer.sum = (int64_t)((uint64_t)answer.sum + (uint64_t)value);
    }
    duck->destroy_result(&result);
    return answer;
}

static void
run_row(Bench *bench, Run *run, Duck *duck, const Workload *work, bool all)
{
    /* The goal: within four times of DuckDB on one thread. */
    Row row = {.unit = "us",
               .peer_name = all ? "duckdb_all_threads" : "duckdb_1_thread",
               .goal = all ? 0 : 0.25};
    snprintf(row.name, sizeof(row.name), "%s_duckdb_%s", work->name, all ? "all" : "1");
    if (!bench_wants(bench, row.name)) return;
    for (int round = 0; round < bench->options.rounds; round++) {
        Answer theirs = ask_duckdb(duck, work->sql), ours = ask_weft(run, work->sql);
        if (ours.rows != theirs.rows || (ours.is_integer && ours.sum != theirs.sum)) {
            bench_fail(bench, "%s: %lld rows, sum %lld; DuckDB: %lld, %lld", work->name,
                       (long long)ours.rows, (long long)ours.sum, (long long)theirs.rows,
                       (long long)theirs.sum);
            return;
        }
        row_add(&row, ours.seconds * 1e6, theirs.seconds * 1e6);
    }
    row_show(bench, &row);
}

void
analytic_duckdb(Bench *bench, Run *run)
{
    Duck duck;
    memset(&duck, 0, sizeof(duck));
    if (!duck_open(&duck, bench->options.duckdb)) {
        bench_fail(bench, "DuckDB is there but cannot be used");
        return;
    }
    printf("# DuckDB %s\n", duck.library_version());
    duck_exec(&duck, "CREATE TABLE t(k BIGINT PRIMARY KEY, a BIGINT, b BIGINT, c VARCHAR, d DOUBLE,"
                     " e BIGINT, n BIGINT)");
    duck_exec(&duck, "CREATE TABLE s(k BIGINT PRIMARY KEY, v BIGINT, name VARCHAR)");
    copy_table(&duck, run, "t");
    copy_table(&duck, run, "s");
    duck_exec(&duck, "SET threads=1");
    for (size_t i = 0; i < analytic_works_count; i++)
        run_row(bench, run, &duck, &analytic_works[i], false);
    duck_exec(&duck, "RESET threads");
    for (size_t i = 0; i < analytic_works_count; i++)
        run_row(bench, run, &duck, &analytic_works[i], true);
    duck_close(&duck);
}
