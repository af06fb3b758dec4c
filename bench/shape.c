/*
 * shape.c -- T=shape: one prepared statement an operation, random keys.
 *
 * One thread in memory here; 2 and 16 threads on files in shape_threads.c.
 */
#include "shape.h"

#include <stdlib.h>
#include <string.h>

#include "groups.h"
#include "single.h"

const ShapeSql shape_sql[] = {
    {"point_in_txn", "SELECT b FROM t WHERE k=?", 200000, 1.0, false, false},
    {"point_key3_in_txn", "SELECT v FROM o WHERE x=? AND y=? AND z=?", 100000, 1.0, true, false},
    {"secondary", "SELECT b FROM t WHERE a=? ORDER BY k", 100000, 1.0, false, false},
    {"count_index", "SELECT count(*) FROM t WHERE a BETWEEN ?1*50 AND ?1*50+200", 20000, 1.0, false,
     false},
    {"min_prefix", "SELECT min(z) FROM o WHERE x=?1/100 AND y=?1/10%10", 50000, 1.0, false, false},
    {"equal_max", "SELECT b FROM t WHERE k=(SELECT max(k) FROM t WHERE k<=?)", 50000, 1.0, false,
     false},
    {"range_sum", "SELECT sum(b) FROM t WHERE k BETWEEN ?1 AND ?1+100", 20000, 1.0, false, false},
    {"join", "SELECT t.b+s.v FROM t JOIN s ON s.k=t.e WHERE t.k=?", 100000, 1.0, false, false},
    {"distinct_range", "SELECT DISTINCT b FROM t WHERE k BETWEEN ?1 AND ?1+50", 20000, 1.0, false,
     false},
    {"desc_limit", "SELECT b FROM t WHERE k<? ORDER BY k DESC LIMIT 1", 100000, 1.0, false, false},
    {"group_10", "SELECT b, count(*) FROM t WHERE k BETWEEN ?1 AND ?1+9 GROUP BY b", 20000, 1.0,
     false, false},
    {"update", "UPDATE w SET n=n+1 WHERE k=?", 100000, 1.0, false, true},
};
const size_t shape_sql_count = sizeof(shape_sql) / sizeof(shape_sql[0]);

static int64_t
insert_rows(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    const Engine *e = run->db.engine;
    char text[80];
    memset(text, 'x', sizeof(text));
    for (int64_t i = 0; i < times; i++) {
        e->bind_int64(stmt, 1, (int64_t)(random_next(&run->state) % 1000));
        e->bind_text(stmt, 2, text, sizeof(text), NULL);
        e->bind_double(stmt, 3, (double)i * 0.5);
        db_run(&run->db, stmt);
    }
    return db_int(&run->db, "SELECT max(k) FROM x");
}

static int64_t
prepare_only(Run *run, int64_t times, const char *sql)
{
    for (int64_t i = 0; i < times; i++)
        run->db.engine->finalize(db_prepare(&run->db, sql));
    return times;
}

static int64_t
prepare_point(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    (void)stmt;
    return prepare_only(run, times, "SELECT b, c FROM t WHERE k=?");
}

static int64_t
prepare_five(Run *run, sqlite3_stmt *stmt, int64_t times)
{
    (void)stmt;
    return prepare_only(run, times,
                        "SELECT s.name, count(*), sum(t.d) FROM t JOIN s ON s.k=t.e WHERE t.a>? "
                        "GROUP BY s.name HAVING count(*)>2 ORDER BY 3 DESC LIMIT 10");
}

#define INSERT "INSERT INTO x(a,b,c) VALUES(?,?,?)"

static const Workload works[] = {
    {"shape.point_autocommit", "SELECT b FROM t WHERE k=?", 200000, by_random_key, false, 2.0},
    {"shape.point_key3_autocommit", "SELECT v FROM o WHERE x=? AND y=? AND z=?", 100000,
     by_three_columns, false, 2.0},
    {"shape.insert", INSERT, 200000, insert_rows, true, 1.0},
    {"shape.insert_autocommit", INSERT, 20000, insert_rows, false, 1.0},
    {"shape.select_1", "SELECT 1", 200000, all_rows, false, 1.0},
    {"shape.prepare_point", NULL, 50000, prepare_point, false, 0.83},
    {"shape.prepare_five", NULL, 10000, prepare_five, false, 0.83},
};

void
shape_group(Bench *bench)
{
    Run run[2];
    single_open(bench, run, NULL, single_fill_tables);
    for (size_t i = 0; i < shape_sql_count; i++) {
        const ShapeSql *shape = &shape_sql[i];
        char name[64];
        snprintf(name, sizeof(name), "shape.%s", shape->name);
        const Workload work = {name,         shape->sql,
                               shape->times, shape->three ? by_three_columns : by_random_key,
                               true,         shape->goal};
        single_run(bench, run, &work, 1);
    }
    single_run(bench, run, works, sizeof(works) / sizeof(works[0]));
    single_close(bench, run);
    shape_threads(bench);
}
