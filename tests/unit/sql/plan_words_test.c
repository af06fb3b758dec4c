/*
 * plan_words_test.c -- the chosen access path, seen through EXPLAIN QUERY PLAN.
 *
 * Method: a table of statements and the lines that SQLite 3.54 prints for them on empty tables
 * without statistics, so that both the choice and the words are compared; and estimates of joins
 * of tables whose row counts are given.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit/sql/plan_kit.h"

static const char *const schema[] = {
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b, c TEXT, d)",
    "CREATE INDEX tb ON t(b)",
    "CREATE INDEX tcd ON t(c,d)",
    "CREATE TABLE w(x TEXT, y, z, PRIMARY KEY(x,y)) WITHOUT ROWID",
    "CREATE TABLE p(k, v, s)",
    "CREATE INDEX pk ON p(k) WHERE s='open'",
    "CREATE INDEX pn ON p(v) WHERE v IS NOT NULL",
    "CREATE INDEX pe ON p(k+1)",
    "CREATE VIEW vt AS SELECT a, b, c FROM t",
};

static const struct {
    const char *sql, *lines;
} cases[] = {
    {"SELECT * FROM t", "SCAN t"},
    {"SELECT * FROM t AS x", "SCAN x"},
    {"SELECT * FROM t WHERE a=1", "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
    {"SELECT * FROM t WHERE rowid=1", "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
    {"SELECT * FROM t WHERE a>1 AND a<5",
     "SEARCH t USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
    {"SELECT * FROM t WHERE a IN (1,2)", "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
    {"SELECT * FROM t WHERE b=1", "SEARCH t USING INDEX tb (b=?)"},
    {"SELECT * FROM t WHERE 1=b", "SEARCH t USING INDEX tb (b=?)"},
    {"SELECT * FROM t WHERE +b=1", "SCAN t"},
    {"SELECT b FROM t WHERE b=1", "SEARCH t USING COVERING INDEX tb (b=?)"},
    {"SELECT b FROM t", "SCAN t USING COVERING INDEX tb"},
    {"SELECT * FROM t WHERE b>1", "SEARCH t USING INDEX tb (b>?)"},
    {"SELECT * FROM t WHERE 1<b", "SEARCH t USING INDEX tb (b>?)"},
    {"SELECT * FROM t WHERE b BETWEEN 1 AND 2", "SEARCH t USING INDEX tb (b>? AND b<?)"},
    {"SELECT * FROM t WHERE b IS NULL", "SEARCH t USING INDEX tb (b=?)"},
    {"SELECT * FROM t WHERE c='x' AND d>5", "SEARCH t USING INDEX tcd (c=? AND d>?)"},
    {"SELECT * FROM t WHERE c='x' COLLATE NOCASE", "SCAN t"},
    {"SELECT * FROM t WHERE c=5", "SEARCH t USING INDEX tcd (c=?)"},
    {"SELECT * FROM t WHERE d=5", "SCAN t"},
    {"SELECT * FROM t INDEXED BY tb WHERE b=1 AND c='x'", "SEARCH t USING INDEX tb (b=?)"},
    {"SELECT * FROM t NOT INDEXED WHERE b=1", "SCAN t"},
    {"SELECT * FROM t WHERE b=1 OR b=2", "SEARCH t USING INDEX tb (b=?)"},
    {"SELECT * FROM t WHERE a=1 OR b=2",
     "MULTI-INDEX OR | INDEX 1 | SEARCH t USING INTEGER PRIMARY KEY (rowid=?) | INDEX 2 | SEARCH t "
     "USING INDEX tb (b=?)"},
    {"SELECT * FROM t WHERE a=1 OR d=2", "SCAN t"},
    {"SELECT * FROM t WHERE c GLOB 'abc*'", "SEARCH t USING INDEX tcd (c>? AND c<?)"},
    {"SELECT * FROM t WHERE c LIKE 'abc%'", "SCAN t"},
    {"SELECT * FROM t ORDER BY a DESC", "SCAN t"},
    {"SELECT * FROM t ORDER BY b", "SCAN t USING INDEX tb"},
    {"SELECT * FROM t ORDER BY d", "SCAN t | USE TEMP B-TREE FOR ORDER BY"},
    {"SELECT * FROM t WHERE c='x' ORDER BY d", "SEARCH t USING INDEX tcd (c=?)"},
    {"SELECT * FROM t WHERE c='x' ORDER BY b",
     "SEARCH t USING INDEX tcd (c=?) | USE TEMP B-TREE FOR ORDER BY"},
    {"SELECT c,d FROM t ORDER BY c DESC,d DESC", "SCAN t USING COVERING INDEX tcd"},
    {"SELECT b,count(*) FROM t GROUP BY b", "SCAN t USING COVERING INDEX tb"},
    {"SELECT d,count(*) FROM t GROUP BY d",
     "SCAN t USING COVERING INDEX tcd | USE TEMP B-TREE FOR GROUP BY"},
    {"SELECT DISTINCT b FROM t", "SCAN t USING COVERING INDEX tb"},
    {"SELECT min(b) FROM t", "SEARCH t USING COVERING INDEX tb"},
    {"SELECT max(a) FROM t", "SEARCH t"},
    {"SELECT count(*) FROM t", "SCAN t USING COVERING INDEX tb"},
    {"SELECT * FROM t x, t y WHERE x.b=y.a",
     "SCAN x | SEARCH y USING INTEGER PRIMARY KEY (rowid=?)"},
    {"SELECT * FROM t x LEFT JOIN t y ON x.b=y.a",
     "SCAN x | SEARCH y USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN"},
    {"SELECT * FROM w WHERE x='a'", "SEARCH w USING PRIMARY KEY (x=?)"},
    {"SELECT * FROM w WHERE x='a' AND y=5", "SEARCH w USING PRIMARY KEY (x=? AND y=?)"},
    {"SELECT * FROM w ORDER BY x", "SCAN w"},
    {"SELECT * FROM p WHERE k=1", "SCAN p"},
    {"SELECT * FROM p WHERE k=1 AND s='open'", "SEARCH p USING INDEX pk (k=?)"},
    {"SELECT * FROM p WHERE k=1 AND s=?", "SCAN p"},
    {"SELECT * FROM p WHERE v=?", "SEARCH p USING INDEX pn (v=?)"},
    {"SELECT * FROM p WHERE k+1=5", "SEARCH p USING INDEX pe (<expr>=?)"},
    {"SELECT * FROM vt WHERE b=1", "SEARCH t USING INDEX tb (b=?)"},
    {"SELECT * FROM t WHERE a IN (SELECT b FROM t)",
     "SEARCH t USING INTEGER PRIMARY KEY (rowid=?) | LIST SUBQUERY 1 | SCAN t USING COVERING INDEX "
     "tb"},
    {"SELECT (SELECT b FROM t y WHERE y.a=x.b) FROM t x",
     "SCAN x USING COVERING INDEX tb | CORRELATED SCALAR SUBQUERY 1 | SEARCH y USING INTEGER "
     "PRIMARY KEY (rowid=?)"},
    {"SELECT 5", "SCAN CONSTANT ROW"},
    {"INSERT INTO t(a) VALUES(1)", ""},
    {"INSERT INTO t DEFAULT VALUES", ""},
    {"INSERT INTO t(a) SELECT 1", "SCAN CONSTANT ROW"},
    {"INSERT INTO t(a) VALUES(1),(2)", "SCAN 2-ROW VALUES CLAUSE"},
    {"INSERT INTO t(a) VALUES((SELECT b FROM t WHERE a=1))",
     "SCALAR SUBQUERY 1 | SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
    {"VALUES(1),(2)", "SCAN 2-ROW VALUES CLAUSE"},
    {"SELECT a FROM t UNION ALL SELECT b FROM t",
     "COMPOUND QUERY | LEFT-MOST SUBQUERY | SCAN t USING COVERING INDEX tb | UNION ALL | SCAN t "
     "USING COVERING INDEX tb"},
    {"UPDATE t SET d=1 WHERE b=5", "SEARCH t USING INDEX tb (b=?)"},
    {"DELETE FROM t WHERE a=5", "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)"},
    {"SELECT sum(a) OVER (ORDER BY b) FROM t", "CO-ROUTINE (subquery-2) | "
                                               "SCAN t USING COVERING INDEX tb | "
                                               "SCAN (subquery-2)"},
    {"SELECT sum(a) OVER (ORDER BY d) FROM t", "CO-ROUTINE (subquery-2) | "
                                               "SCAN t USING COVERING INDEX tcd | "
                                               "USE TEMP B-TREE FOR ORDER BY | "
                                               "SCAN (subquery-2)"},
    {"SELECT sum(a) OVER (ORDER BY d), row_number() OVER (ORDER BY d), min(a) OVER () FROM t ORDER "
     "BY b",
     "CO-ROUTINE (subquery-2) | "
     "CO-ROUTINE (subquery-3) | "
     "CO-ROUTINE (subquery-4) | "
     "SCAN t | "
     "SCAN (subquery-4) | "
     "USE TEMP B-TREE FOR ORDER BY | "
     "SCAN (subquery-3) | "
     "SCAN (subquery-2) | "
     "USE TEMP B-TREE FOR ORDER BY"},
    {"SELECT sum(a) OVER (), sum(b) OVER () FROM t WHERE b=1",
     "CO-ROUTINE (subquery-2) | "
     "SEARCH t USING COVERING INDEX tb (b=?) | "
     "SCAN (subquery-2)"},
    {"SELECT sum(count(*)) OVER (ORDER BY d) FROM t GROUP BY d",
     "CO-ROUTINE (subquery-2) | "
     "SCAN t USING COVERING INDEX tcd | "
     "USE TEMP B-TREE FOR GROUP BY | "
     "SCAN (subquery-2)"},
    {"SELECT rank() OVER (ORDER BY d) FROM t ORDER BY d", "CO-ROUTINE (subquery-2) | "
                                                          "SCAN t USING COVERING INDEX tcd | "
                                                          "USE TEMP B-TREE FOR ORDER BY | "
                                                          "SCAN (subquery-2)"},
};

static void
statements_take_the_expected_path(void **state)
{
    PlanKit kit;
    char lines[2048];
    (void)state;
    kit_open(&kit, schema, COUNT_OF(schema));
    for (u32 i = 0; i < COUNT_OF(cases); i++) {
        kit_explain(&kit, cases[i].sql, lines, sizeof(lines));
        if (strcmp(lines, cases[i].lines) != 0)
            fail_msg("%s\n  got:  %s\n  want: %s", cases[i].sql, lines, cases[i].lines);
    }
    kit_close(&kit);
}

/* A chain of 64 tables is planned from its constant end along the equalities. */
static void
a_long_chain_follows_its_equalities(void **state)
{
    PlanKit kit;
    static char sql[8192], lines[8192];
    const char *const ddl[] = {"CREATE TABLE n(a INTEGER PRIMARY KEY, b)"};
    (void)state;
    kit_open(&kit, ddl, 1);
    size_t used = (size_t)snprintf(sql, sizeof(sql), "SELECT count(*) FROM n t0");
    for (int i = 1; i < 64; i++)
        used += (size_t)snprintf(sql + used, sizeof(sql) - used, ", n t%d", i);
    used += (size_t)snprintf(sql + used, sizeof(sql) - used, " WHERE t63.a=9");
    for (int i = 1; i < 64; i++) {
        used += (size_t)snprintf(sql + used, sizeof(sql) - used, " AND t%d.a=t%d.b", i - 1, i);
    }
    ErrMsg msg = {0};
    Plan *plan = NULL;
    assert_int_equal(kit_plan(&kit, sql, &plan, &msg), OK);
    const PlanNode *node = plan->root;
    u32 joins = 0;
    while (node->kind != PLAN_SCAN) {
        if (node->kind == PLAN_LOOP_JOIN) {
            joins++;
            assert_int_equal(node->right->kind, PLAN_SCAN);
            assert_int_equal(node->right->u.scan.eq_count, 1);
        }
        node = node->input;
    }
    assert_int_equal(joins, 63);
    assert_int_equal(node->u.scan.eq_count, 1);
    plan_release(plan);
    (void)lines;
    kit_close(&kit);
}

/* The rows that a table has by the last part of its name. */
static f64
rows_by_name(void *arg, const TableDef *table)
{
    (void)arg;
    const char *digits = strrchr(table->name, '_');
    return digits == NULL ? -1 : strtod(digits + 1, NULL);
}

/* Equalities between dimensions say little of how many rows they leave, but that both draw from
   the key of a third tells it: customers and suppliers of one nation are not paired ahead of the
   lines that choose among them, however cheap the first step looks. */
static void
dimensions_are_not_paired_before_the_facts(void **state)
{
    static const char *const star[] = {
        "CREATE TABLE nation_25(n INTEGER PRIMARY KEY, name)",
        "CREATE TABLE supplier_1000(s INTEGER PRIMARY KEY, n)",
        "CREATE TABLE customer_15000(c INTEGER PRIMARY KEY, n)",
        "CREATE TABLE orders_150000(o INTEGER PRIMARY KEY, c)",
        "CREATE INDEX orders_c ON orders_150000(c)",
        "CREATE TABLE lines_600000(o, l, s, PRIMARY KEY(o, l))",
    };
    const char *sql =
        "SELECT name, count(*) FROM customer_15000 c, orders_150000 o, lines_600000 l,"
        " supplier_1000 s, nation_25 n WHERE c.c=o.c AND l.o=o.o AND l.s=s.s AND"
        " c.n=s.n AND s.n=n.n GROUP BY name";
    PlanKit kit;
    Plan *plan = NULL;
    ErrMsg msg = {0};
    (void)state;
    kit_open(&kit, star, COUNT_OF(star));
    kit.ctx.table_rows = rows_by_name;
    assert_int_equal(kit_plan(&kit, sql, &plan, &msg), OK);
    u32 joins = 0;
    for (const PlanNode *node = plan->root; node != NULL; node = node->input) {
        if (node->kind != PLAN_LOOP_JOIN && node->kind != PLAN_HASH_JOIN) continue;
        joins++;
        assert_true(node->rows <= 600000);
        assert_true(node->rows >= 1);
        if (joins == 1) assert_true(node->rows < 60000); /* A nation in 25. */
    }
    assert_int_equal(joins, 4);
    plan_release(plan);
    kit_close(&kit);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_take_the_expected_path),
        cmocka_unit_test(dimensions_are_not_paired_before_the_facts),
        cmocka_unit_test(a_long_chain_follows_its_equalities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
