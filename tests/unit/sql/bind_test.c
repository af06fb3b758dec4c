/*
 * bind_test.c -- names, messages, column names, stamps and classes as SQLite has them.
 *
 * Method: tables of statements with the message, the column names, or the stamp that SQLite 3.54
 * gives; then each failing allocation of one large statement in turn: no crash, no leak, an error.
 */
#include <stdio.h>

#include "unit/sql/plan_kit.h"

static const char *const schema[] = {
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL, d, n TEXT COLLATE NOCASE)",
    "CREATE TABLE u(x INT, y, z GENERATED ALWAYS AS (x+1))",
    "CREATE TABLE q(k UNIQUE, v)",
    "CREATE VIEW vw AS SELECT a AS va, b FROM t",
    "CREATE TABLE l(a, b AS (c), c AS (b))",
};

static const struct {
    const char *sql, *message;
} errors[] = {
    {"SELECT zz FROM t", "no such column: zz"},
    {"SELECT t.zz FROM t", "no such column: t.zz"},
    {"SELECT main.t.zz FROM t", "no such column: main.t.zz"},
    {"SELECT * FROM nosuch", "no such table: nosuch"},
    {"SELECT * FROM nodb.t", "no such table: nodb.t"},
    {"SELECT a FROM t x, t y", "ambiguous column name: a"},
    {"SELECT x.* FROM t", "no such table: x"},
    {"SELECT *", "no tables specified"},
    {"SELECT foo(1)", "no such function: foo"},
    {"SELECT abs(1,2)", "wrong number of arguments to function abs()"},
    {"SELECT abs(*) FROM t", "wrong number of arguments to function abs()"},
    {"SELECT a FROM t WHERE count(*)>1", "misuse of aggregate function count()"},
    {"SELECT sum(count(*)) FROM t", "misuse of aggregate function count()"},
    {"SELECT count(*) AS n2 FROM t WHERE n2>1", "misuse of aliased aggregate n2"},
    {"SELECT a FROM t GROUP BY count(*)", "misuse of aggregate function count()"},
    {"SELECT count(DISTINCT a, b) FROM t", "wrong number of arguments to function count()"},
    {"SELECT abs(a) FILTER (WHERE 1) FROM t", "FILTER may not be used with non-aggregate abs()"},
    {"SELECT 1 HAVING 1", "HAVING clause on a non-aggregate query"},
    {"SELECT a FROM t ORDER BY 5", "1st ORDER BY term out of range - should be between 1 and 1"},
    {"SELECT a FROM t ORDER BY 1, 2", "2nd ORDER BY term out of range - should be between 1 and 1"},
    {"SELECT a FROM t GROUP BY 3", "1st GROUP BY term out of range - should be between 1 and 1"},
    {"SELECT 1,2 UNION SELECT 1",
     "SELECTs to the left and right of UNION do not have the same number of result columns"},
    {"VALUES(1,2),(3)", "all VALUES must have the same number of terms"},
    {"SELECT a FROM t UNION SELECT b FROM t ORDER BY zz",
     "1st ORDER BY term does not match any column in the result set"},
    {"SELECT (1,2)", "row value misused"},
    {"SELECT row_number() FROM t", "misuse of window function row_number()"},
    {"SELECT a FROM t WHERE rank() OVER ()", "misuse of window function rank()"},
    {"SELECT a FROM t WHERE sum(a) OVER ()", "misuse of window function sum()"},
    {"SELECT 1 FROM t GROUP BY sum(a) OVER ()", "misuse of window function sum()"},
    {"SELECT sum(a) OVER () FROM t GROUP BY 1", "misuse of window function sum()"},
    {"SELECT 1 FROM t GROUP BY 1 HAVING sum(a) OVER ()", "misuse of window function sum()"},
    {"SELECT sum(sum(a) OVER ()) OVER () FROM t", "misuse of window function sum()"},
    {"SELECT sum(sum(a) OVER ()) FROM t", "misuse of window function sum()"},
    {"SELECT sum(a) OVER (PARTITION BY sum(a) OVER ()) FROM t", "misuse of window function sum()"},
    {"SELECT count(*) FILTER (WHERE rank() OVER ()) FROM t", "misuse of window function rank()"},
    {"SELECT 1 LIMIT sum(1) OVER ()", "misuse of window function sum()"},
    {"SELECT sum(a) OVER () z FROM t WHERE z", "misuse of aliased window function z"},
    {"SELECT sum(a) OVER () z FROM t ORDER BY (SELECT z)", "misuse of aliased window function z"},
    {"SELECT a FROM t ORDER BY count(*)", "misuse of aggregate: count()"},
    {"SELECT a FROM t ORDER BY sum(count(*)) OVER ()", "misuse of aggregate: count()"},
    {"SELECT abs(a) OVER () FROM t", "abs() may not be used as a window function"},
    {"SELECT foo(a) OVER () FROM t", "no such function: foo"},
    {"SELECT row_number(1) OVER () FROM t", "wrong number of arguments to function row_number()"},
    {"SELECT sum(DISTINCT a) OVER () FROM t", "DISTINCT is not supported for window functions"},
    {"SELECT sum(a ORDER BY b) OVER () FROM t",
     "ORDER BY may not be used with non-aggregate sum()"},
    {"SELECT sum(a) OVER w FROM t", "no such window: w"},
    {"WITH c(x) AS (SELECT 1 UNION ALL SELECT sum(x) OVER () FROM c) SELECT * FROM c",
     "cannot use window functions in recursive queries"},
    {"SELECT sum(a) OVER (w) FROM t WINDOW v AS ()", "no such window: w"},
    {"SELECT 1 FROM t WINDOW v AS (w), w AS (x)", "no such window: x"},
    {"SELECT sum(a) OVER (w PARTITION BY a) FROM t WINDOW w AS ()",
     "cannot override PARTITION clause of window: w"},
    {"SELECT sum(a) OVER (w ORDER BY a) FROM t WINDOW w AS (ORDER BY b)",
     "cannot override ORDER BY clause of window: w"},
    {"SELECT sum(a) OVER (w) FROM t WINDOW w AS (ROWS 1 PRECEDING)",
     "cannot override frame specification of window: w"},
    {"SELECT sum(a) OVER (w RANGE 1 PRECEDING) FROM t WINDOW w AS (ROWS 1 PRECEDING)",
     "RANGE with offset PRECEDING/FOLLOWING requires one ORDER BY expression"},
    {"SELECT sum(a) OVER (RANGE 1 PRECEDING) FROM t",
     "RANGE with offset PRECEDING/FOLLOWING requires one ORDER BY expression"},
    {"SELECT rank() FILTER (WHERE 1) OVER () FROM t",
     "FILTER clause may only be used with aggregate window functions"},
    {"SELECT (1,2)=(1,2,3)", "row value misused"},
    {"SELECT (SELECT 1,2)", "sub-select returns 2 columns - expected 1"},
    {"SELECT 1 IN (SELECT 1,2)", "sub-select returns 2 columns - expected 1"},
    {"SELECT a FROM t ORDER BY b COLLATE zz", "no such collation sequence: zz"},
    {"SELECT * FROM t JOIN u USING(zz)",
     "cannot join using column zz - column not present in both tables"},
    {"SELECT * FROM t INDEXED BY zz", "no such index: zz"},
    {"SELECT * FROM t(1)", "'t' is not a function"},
    {"SELECT 0x12345678901234567", "hex literal too big: 0x12345678901234567"},
    {"SELECT RAISE(ABORT,'x')", "RAISE() may only be used within a trigger-program"},
    {"WITH c AS (SELECT 1), c AS (SELECT 2) SELECT 1", "duplicate WITH table name: c"},
    {"WITH c AS (SELECT * FROM c) SELECT * FROM c", "circular reference: c"},
    {"WITH c(p,q) AS (SELECT 1) SELECT * FROM c", "table c has 1 values for 2 columns"},
    {"WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT p.i FROM c p, c r) SELECT * FROM c",
     "multiple references to recursive table: c"},
    {"INSERT INTO t VALUES(1,2)", "table t has 5 columns but 2 values were supplied"},
    {"INSERT INTO t(a,zz) VALUES(1,2)", "table t has no column named zz"},
    {"INSERT INTO t(a,b) VALUES(1)", "1 values for 2 columns"},
    {"INSERT INTO u(z) VALUES(1)", "cannot INSERT into generated column \"z\""},
    {"INSERT INTO vw VALUES(1,2)", "cannot modify vw because it is a view"},
    {"INSERT INTO sqlite_master VALUES(1,2,3,4,5)", "table sqlite_master may not be modified"},
    {"INSERT INTO q VALUES(1,2) ON CONFLICT(v) DO NOTHING",
     "ON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint"},
    {"UPDATE t SET zz=1", "no such column: zz"},
    {"UPDATE u SET z=1", "cannot UPDATE generated column \"z\""},
    {"UPDATE t SET (b,c)=(1,2,3)", "2 columns assigned 3 values"},
    {"UPDATE vw SET va=1", "cannot modify vw because it is a view"},
    {"DELETE FROM nosuch", "no such table: nosuch"},
    {"SELECT b FROM l", "generated column loop on \"b\""},
};

static void
mistakes_get_sqlites_words(void **state)
{
    PlanKit kit;
    (void)state;
    kit_open(&kit, schema, COUNT_OF(schema));
    for (u32 i = 0; i < COUNT_OF(errors); i++) {
        ErrMsg msg = {0};
        Plan *plan = NULL;
        Err err = kit_plan(&kit, errors[i].sql, &plan, &msg);
        if (err == OK) fail_msg("%s: planned", errors[i].sql);
        if (strcmp(err_message(&msg), errors[i].message) != 0)
            fail_msg("%s: %s", errors[i].sql, err_message(&msg));
        assert_null(plan);
        err_clear(&msg);
    }
    kit_close(&kit);
}

static const struct {
    const char *sql, *names;
} columns[] = {
    {"SELECT a, B, t.c FROM t", "a b c"},
    {"SELECT a AS q, a+1, 1 + 1, (b) FROM t", "q a+1 1 + 1 b"},
    {"SELECT rowid, oid FROM u", "rowid rowid"},
    {"SELECT rowid FROM t", "a"},
    {"SELECT * FROM u", "x y z"},
    {"SELECT count( * ), 'x' FROM t", "count( * ) 'x'"},
    {"VALUES(1,2)", "column1 column2"},
    {"SELECT a AS one FROM t UNION SELECT x AS two FROM u", "one"},
    {"SELECT * FROM (SELECT a+1, b AS c FROM t)", "a+1 c"},
    {"WITH c(p,q) AS (SELECT a, b FROM t) SELECT * FROM c", "p q"},
    {"SELECT * FROM t x JOIN t y USING(a,b,c,d)", "a b c d n n"},
    {"INSERT INTO t(b) VALUES(1) RETURNING a, b||'x' AS y", "a y"},
};

static void
columns_have_their_names(void **state)
{
    PlanKit kit;
    (void)state;
    kit_open(&kit, schema, COUNT_OF(schema));
    for (u32 i = 0; i < COUNT_OF(columns); i++) {
        ErrMsg msg = {0};
        Plan *plan = NULL;
        char names[512] = "";
        if (kit_plan(&kit, columns[i].sql, &plan, &msg) != OK)
            fail_msg("%s: %s", columns[i].sql, err_message(&msg));
        for (u32 c = 0; c < plan->column_count; c++) {
            size_t used = strlen(names);
            snprintf(names + used, sizeof(names) - used, "%s%s", c == 0 ? "" : " ",
                     plan->column[c].name);
        }
        if (strcmp(names, columns[i].names) != 0) fail_msg("%s: %s", columns[i].sql, names);
        plan_release(plan);
    }
    kit_close(&kit);
}

/* The one expression of "SELECT expr FROM t, u". */
static const struct {
    const char *expr;
    u8 op, affinity, klass;
    CollationKind collation;
} stamps[] = {
    {"b = x", PX_EQ, AFFINITY_NUMERIC, PLAN_TOTAL, COLLATION_BINARY},
    {"b = 1", PX_EQ, AFFINITY_TEXT, PLAN_TOTAL, COLLATION_BINARY},
    {"+b = 1", PX_EQ, AFFINITY_NONE, PLAN_TOTAL, COLLATION_BINARY},
    {"(b) = 1", PX_EQ, AFFINITY_TEXT, PLAN_TOTAL, COLLATION_BINARY},
    {"x = '1'", PX_EQ, AFFINITY_INTEGER, PLAN_TOTAL, COLLATION_BINARY},
    {"d = '1'", PX_EQ, AFFINITY_BLOB, PLAN_TOTAL, COLLATION_BINARY},
    {"b = d", PX_EQ, AFFINITY_BLOB, PLAN_TOTAL, COLLATION_BINARY},
    {"1 IN (b,b)", PX_IN_LIST, AFFINITY_NONE, PLAN_TOTAL, COLLATION_BINARY},
    {"b IN (1,2)", PX_IN_LIST, AFFINITY_TEXT, PLAN_TOTAL, COLLATION_BINARY},
    {"n = b", PX_EQ, AFFINITY_BLOB, PLAN_TOTAL, COLLATION_NOCASE},
    {"b = n", PX_EQ, AFFINITY_BLOB, PLAN_TOTAL, COLLATION_BINARY},
    {"b = n COLLATE RTRIM", PX_EQ, AFFINITY_BLOB, PLAN_TOTAL, COLLATION_RTRIM},
    {"b COLLATE NOCASE = n COLLATE RTRIM", PX_EQ, AFFINITY_BLOB, PLAN_TOTAL, COLLATION_NOCASE},
    {"b || n = 'x'", PX_EQ, AFFINITY_NONE, PLAN_TOTAL, COLLATION_BINARY},
    {"abs(a) = 1", PX_EQ, AFFINITY_NONE, PLAN_FALLIBLE, COLLATION_BINARY},
    {"length(b) < random()", PX_LT, AFFINITY_NONE, PLAN_VOLATILE, COLLATION_BINARY},
    {"CAST(d AS INT) = b", PX_EQ, AFFINITY_NUMERIC, PLAN_TOTAL, COLLATION_BINARY},
    {"(SELECT b FROM t) = 1", PX_EQ, AFFINITY_TEXT, PLAN_TOTAL, COLLATION_BINARY},
};

static void
comparisons_carry_their_stamps(void **state)
{
    PlanKit kit;
    (void)state;
    kit_open(&kit, schema, COUNT_OF(schema));
    for (u32 i = 0; i < COUNT_OF(stamps); i++) {
        char sql[256];
        ErrMsg msg = {0};
        Plan *plan = NULL;
        snprintf(sql, sizeof(sql), "SELECT %s FROM t, u", stamps[i].expr);
        if (kit_plan(&kit, sql, &plan, &msg) != OK) fail_msg("%s: %s", sql, err_message(&msg));
        assert_int_equal(plan->root->kind, PLAN_PROJECT);
        const PlanExpr *e = plan->root->u.project.expr[0];
        if (e->op != stamps[i].op || e->cmp_affinity != stamps[i].affinity ||
            e->klass != stamps[i].klass || e->collation->kind != stamps[i].collation)
            fail_msg("%s: op %u affinity %u class %u collation %u", sql, e->op, e->cmp_affinity,
                     e->klass, e->collation->kind);
        plan_release(plan);
    }
    kit_close(&kit);
}

/* Stored expressions are bound over a row of all columns. */
static void
schema_expressions_are_bound(void **state)
{
    PlanKit kit;
    Arena arena;
    ErrMsg msg = {0};
    (void)state;
    kit_open(&kit, schema, COUNT_OF(schema));
    arena_init(&arena, NULL);
    const TableDef *table = catalog_find_table(kit.catalog, SLICE_LITERAL("t"));
    PlanExpr *e = NULL;
    assert_int_equal(plan_bind_table_expr(&kit.ctx, &arena, table, SLICE_LITERAL("d > rowid"),
                                          PLAN_USE_CHECK, &e, &msg),
                     OK);
    assert_int_equal(e->op, PX_GT);
    assert_int_equal(e->arg[0]->op, PX_COLUMN);
    assert_int_equal(e->arg[0]->u.number, 3);
    assert_int_equal(e->arg[1]->u.number, 0); /* The INTEGER PRIMARY KEY is the rowid. */
    static const struct {
        const char *sql, *message;
        PlanExprUse use;
    } bad[] = {
        {"(SELECT 1)", "subqueries prohibited in CHECK constraints", PLAN_USE_CHECK},
        {"?1", "parameters prohibited in index expressions", PLAN_USE_INDEX},
        {"random()", "non-deterministic functions prohibited in index expressions", PLAN_USE_INDEX},
        {"zz", "no such column: zz", PLAN_USE_CHECK},
        {"sum(a)", "misuse of aggregate function sum()", PLAN_USE_CHECK},
    };
    for (u32 i = 0; i < COUNT_OF(bad); i++) {
        Slice text = SLICE(bad[i].sql, strlen(bad[i].sql));
        err_clear(&msg);
        assert_int_not_equal(
            plan_bind_table_expr(&kit.ctx, &arena, table, text, bad[i].use, &e, &msg), OK);
        assert_string_equal(err_message(&msg), bad[i].message);
    }
    err_clear(&msg);
    arena_free(&arena);
    kit_close(&kit);
}

static void
every_failing_allocation_is_survived(void **state)
{
    PlanKit kit;
    (void)state;
    kit_open(&kit, schema, COUNT_OF(schema));
    const char *sql =
        "WITH c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<9) "
        "SELECT v.va, count(*), (SELECT max(y) FROM u WHERE x=v.va) FROM vw v JOIN c ON i=va "
        "LEFT JOIN q ON k=i WHERE b LIKE 'x%' OR va IN (1,2,3) GROUP BY 1 HAVING count(*)>1 "
        "ORDER BY 2 DESC, 1 LIMIT 5";
    bool fired = true;
    u32 failures = 0;
    for (u64 nth = 1; fired; nth++) {
        ErrMsg msg = {0};
        Plan *plan = NULL;
        u64 blocks = mem_live_blocks();
        mem_fail_arm(nth, false);
        Err err = kit_plan(&kit, sql, &plan, &msg);
        fired = mem_fail_fired();
        mem_fail_arm(0, false);
        if (fired && err != OK) failures++;
        if (!fired) assert_int_equal(err, OK);
        assert_true((err == OK) == (plan != NULL));
        plan_release(plan);
        err_clear(&msg);
        assert_int_equal(mem_live_blocks(), blocks);
    }
    assert_true(failures > 3);
    kit_close(&kit);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_get_sqlites_words),
        cmocka_unit_test(columns_have_their_names),
        cmocka_unit_test(comparisons_carry_their_stamps),
        cmocka_unit_test(schema_expressions_are_bound),
        cmocka_unit_test(every_failing_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
