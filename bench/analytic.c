/*
 * analytic.c -- T=analytic: questions over a whole table of --rows rows, in memory.
 */
#include "analytic.h"
#include "groups.h"
#include "tpch.h"

#define COUNT_T "SELECT count(*) FROM t WHERE "

const Workload analytic_works[] = {
    {"analytic.count", "SELECT count(*) FROM t", 5, all_rows, false, 1.0},
    {"analytic.filtered_count", COUNT_T "b<50", 3, all_rows, false, 5.0},
    {"analytic.two_predicates", COUNT_T "b<50 AND e>5000", 3, all_rows, false, 5.0},
    {"analytic.or", COUNT_T "b<10 OR e>9000", 3, all_rows, false, 5.0},
    {"analytic.between", COUNT_T "e BETWEEN 2000 AND 7000", 3, all_rows, false, 5.0},
    {"analytic.in_list", COUNT_T "b IN (3,7,11,19,42,77,91)", 3, all_rows, false, 5.0},
    {"analytic.is_null", COUNT_T "n IS NULL", 3, all_rows, false, 5.0},
    {"analytic.like", COUNT_T "c LIKE '%99%'", 2, all_rows, false, 5.0},
    {"analytic.min_max", "SELECT min(e), max(d) FROM t", 3, all_columns, false, 5.0},
    {"analytic.filtered_sum", "SELECT sum(e) FROM t WHERE b=7", 3, all_rows, false, 5.0},
    {"analytic.group", "SELECT b, count(*), sum(e) FROM t GROUP BY b", 2, all_columns, false, 5.0},
    {"analytic.group_min_max", "SELECT b, min(e), max(d) FROM t GROUP BY b", 2, all_columns, false,
     5.0},
    {"analytic.group_10000", "SELECT e, count(*), avg(d) FROM t GROUP BY e", 2, all_columns, false,
     5.0},
    {"analytic.having",
     "SELECT e, count(*) AS many FROM t GROUP BY e HAVING count(*)>110 ORDER BY e", 2, all_columns,
     false, 5.0},
    {"analytic.top_20", "SELECT k FROM t ORDER BY d, k LIMIT 20", 2, all_rows, false, 5.0},
    {"analytic.top_20_offset", "SELECT k FROM t ORDER BY d, k LIMIT 20 OFFSET 1000", 2, all_rows,
     false, 5.0},
    {"analytic.top_20_text", "SELECT c FROM t ORDER BY c, k LIMIT 20", 2, all_columns, false, 5.0},
    {"analytic.full_sort", "SELECT k FROM t ORDER BY e, k", 1, all_rows, false, 5.0},
    {"analytic.distinct", "SELECT count(DISTINCT e) FROM t", 2, all_rows, false, 5.0},
    {"analytic.scalar_subquery", COUNT_T "d>(SELECT avg(d) FROM t)", 2, all_rows, false, 5.0},
    {"analytic.in_subquery", COUNT_T "e IN (SELECT k FROM s WHERE v<100)", 2, all_rows, false, 5.0},
    {"analytic.exists", COUNT_T "EXISTS(SELECT 1 FROM s WHERE s.k=t.e AND s.v<100)", 2, all_rows,
     false, 5.0},
    {"analytic.union_all",
     "SELECT count(*), sum(x) FROM (SELECT e AS x FROM t WHERE b<50 UNION ALL SELECT b FROM t"
     " WHERE b>=50)",
     2, all_columns, false, 5.0},
    {"analytic.join", "SELECT sum(s.v) FROM t JOIN s ON s.k=t.e", 2, all_rows, false, 5.0},
    {"analytic.join_text", "SELECT count(*) FROM t JOIN s ON 'text'||s.v=t.c", 1, all_rows, false,
     5.0},
    {"analytic.read_ints", "SELECT a FROM t", 2, all_rows, false, 2.0},
};
const size_t analytic_works_count = sizeof(analytic_works) / sizeof(analytic_works[0]);

void
analytic_group(Bench *bench)
{
    Run run[2];
    single_open(bench, run, NULL, single_fill_tables);
    single_run(bench, run, analytic_works, analytic_works_count);
    if (bench->options.duckdb != NULL) analytic_duckdb(bench, &run[0]);
    single_close(bench, run);
    tpch_run(bench);
}
