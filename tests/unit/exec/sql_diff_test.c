/*
 * sql_diff_test.c -- statements give what SQLite gives.
 *
 * Method: the same text runs on the engine (parser, planner, exec, without a session) and on the
 * real SQLite; rows, types, order and errors must agree.  Fixed statements first, then random
 * expressions and queries over small tables of mixed types.  With a library older than 3.54 only
 * statements on which the versions agree are run.
 */
#include "unit/exec/make_expr.h"
#include "unit/exec/sql_kit.h"

/* Older ones print reals with fewer digits and keep other rows of equal ones. */
#define SQLITE_LIKE_OURS 3054000

static u32 statements_wanted = 3000;

static const char *const setup[] = {
    "CREATE TABLE t(a INTEGER PRIMARY KEY, b INT, c TEXT, d REAL, e)",
    "CREATE TABLE u(x INT, y TEXT COLLATE NOCASE, z)",
    "CREATE INDEX t_b ON t(b)",
    "CREATE INDEX t_cd ON t(c, d DESC)",
    "CREATE INDEX u_y ON u(y)",
    "CREATE TABLE w(k TEXT, n INT, v, PRIMARY KEY(k, n)) WITHOUT ROWID",
    "INSERT INTO t VALUES(1,10,'one',1.5,NULL),(2,20,'two',2.5,x'00ff'),(3,10,'three',NULL,3),"
    "(4,NULL,'four',-4.0,'4'),(5,30,'Five',5.0,5.5),(6,20,NULL,6e100,'x'),(7,10,'seven',0.0,7)",
    "INSERT INTO u VALUES(10,'One','a'),(20,'TWO','b'),(20,'two',3),(NULL,'four',4.5),(40,NULL,10),"
    "(10,'x',NULL)",
    "INSERT INTO w VALUES('a',1,'p'),('a',2,'q'),('b',1,NULL),('B',1,'r'),('c',3,4)",
};

static const char *const statements[] = {
    "SELECT * FROM t",
    "SELECT a FROM t WHERE b IN (SELECT '10' UNION ALL SELECT '30')",
    "SELECT y FROM u WHERE y IN (SELECT k FROM w) ORDER BY 1",
    "SELECT min(b), c FROM t WHERE a=4",
    "SELECT * FROM (SELECT y FROM u INTERSECT SELECT lower(y) FROM u) WHERE y||''='One'",
    "SELECT * FROM (SELECT y FROM u UNION SELECT lower(y) FROM u) WHERE y||''='TWO'",
    "SELECT max(b), c FROM t WHERE a=4",
    "SELECT min(x), z FROM u WHERE x IS NULL",
    "SELECT likely(b)='10', likely(CAST(b AS INT))='10', unlikely(b)=10 FROM t",
    "SELECT * FROM u",
    "SELECT * FROM w",
    "SELECT a, b+1, c||'!', d*2, typeof(e) FROM t WHERE b=10",
    "SELECT count(*), sum(b), avg(d), min(c), max(e), total(b) FROM t",
    "SELECT b, count(*), group_concat(a) FROM t GROUP BY b",
    "SELECT b, max(a), c FROM t GROUP BY b",
    "SELECT b, count(*) FROM t GROUP BY b HAVING count(*)>1 ORDER BY 2 DESC, 1",
    "SELECT DISTINCT b FROM t",
    "SELECT DISTINCT b, d IS NULL FROM t ORDER BY b DESC",
    "SELECT a FROM t ORDER BY b, c LIMIT 3 OFFSET 1",
    "SELECT a FROM t ORDER BY d DESC NULLS FIRST",
    "SELECT t.a, u.z FROM t JOIN u ON t.b=u.x ORDER BY 1, 2",
    "SELECT t.a, u.z FROM t LEFT JOIN u ON t.b=u.x AND u.z IS NOT NULL ORDER BY t.a, u.z",
    "SELECT t.a, u.z FROM t RIGHT JOIN u ON t.b=u.x AND t.a<3",
    "SELECT t.a, u.z FROM t FULL JOIN u ON t.b=u.x AND t.a<3",
    "SELECT c FROM t WHERE c IN (SELECT y FROM u)",
    "SELECT y FROM u WHERE y IN (SELECT c FROM t)",
    "SELECT a FROM t WHERE EXISTS(SELECT 1 FROM u WHERE u.x=t.b AND u.z>t.a)",
    "SELECT a FROM t WHERE NOT EXISTS(SELECT 1 FROM u WHERE u.x=t.b)",
    "SELECT a FROM t WHERE b NOT IN (SELECT x FROM u)",
    "SELECT a FROM t WHERE b NOT IN (SELECT x FROM u WHERE x IS NOT NULL)",
    "SELECT a,(SELECT z FROM u WHERE u.x=t.b ORDER BY z DESC LIMIT 1) FROM t",
    "SELECT b FROM t UNION SELECT x FROM u",
    "SELECT b FROM t UNION ALL SELECT x FROM u",
    "SELECT b FROM t EXCEPT SELECT x FROM u",
    "SELECT b FROM t INTERSECT SELECT x FROM u",
    "SELECT 1 UNION SELECT 1.0",
    "SELECT * FROM (VALUES(1),(1.0)) EXCEPT SELECT 2",
    "SELECT * FROM (VALUES(1),(1.0)) INTERSECT SELECT 1",
    "SELECT 3 UNION SELECT 1 UNION ALL SELECT 2",
    "VALUES(1,2),(3,4)",
    "WITH RECURSIVE c(n) AS (VALUES(1) UNION ALL SELECT n+1 FROM c WHERE n<10) SELECT sum(n) FROM "
    "c",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION SELECT (n*2)%7 FROM c) SELECT n FROM c",
    "WITH RECURSIVE p(n,l) AS (VALUES(1,0) UNION ALL SELECT n*2,l+1 FROM p WHERE l<3 UNION ALL "
    "SELECT n*2+1,l+1 FROM p WHERE l<3 ORDER BY 2 DESC) SELECT n,l FROM p",
    "WITH x AS (SELECT b FROM t) SELECT * FROM x AS p JOIN x AS q ON p.b=q.b",
    "SELECT k, v FROM w WHERE k='a'",
    "SELECT v FROM w WHERE k='a' AND n=2",
    "SELECT a FROM t WHERE a BETWEEN 2 AND 4",
    "SELECT a FROM t WHERE a>2.5 AND a<'6'",
    "SELECT a FROM t WHERE b IN (30,10) AND a IN (1,5,7) ORDER BY a",
    "SELECT a FROM t WHERE b=20 OR a=1 OR c='four' ORDER BY a",
    "SELECT a FROM t WHERE (b,c)>(10,'one') ORDER BY a",
    "SELECT a FROM t WHERE (a,b)=(2,20)",
    "SELECT CASE b WHEN 10 THEN 'ten' WHEN 20 THEN 'twenty' ELSE 'other' END FROM t",
    "SELECT CASE WHEN b>10 THEN a END FROM t",
    "SELECT coalesce(d,b,a), ifnull(e,'-'), nullif(b,10) FROM t",
    "SELECT b IS 10, b IS NOT 10, b IS NULL, d IS TRUE, d IS NOT FALSE FROM t",
    "SELECT c LIKE '%e', c GLOB '*e*' FROM t",
    "SELECT count(DISTINCT b), sum(DISTINCT b), count(b) FILTER (WHERE a>3) FROM t",
    "SELECT group_concat(c,',' ORDER BY d) FROM t",
    "SELECT max(a), min(a) FROM t WHERE b=99",
    "SELECT count(*) FROM t WHERE 0",
    "SELECT a FROM t WHERE a=3 AND abs(-9223372036854775808)",
    "SELECT abs(-9223372036854775808) FROM t WHERE 0",
    "SELECT 9223372036854775807+1, -9223372036854775808-1, 5/0, 5%0, 1<<64, -1>>70, 7/2, -7/2, "
    "-7%3",
    "SELECT sum(x) FROM (SELECT 9223372036854775807 x UNION ALL SELECT 1)",
    "SELECT CAST('12abc' AS INT), CAST(1e300 AS INT), CAST('1e2' AS REAL), CAST(5 AS TEXT)",
    "SELECT '1'=1, 1='1', '1'+0=1, b=c FROM t LIMIT 1",
    "SELECT a FROM t ORDER BY a LIMIT '2'",
    "SELECT a FROM t LIMIT 1.5",
    "SELECT a FROM t LIMIT NULL",
    "SELECT x'61'||x'62', 1||2.0, NULL||1",
    "SELECT y FROM u ORDER BY y",
    "SELECT y, count(*) FROM u GROUP BY y",
    "SELECT DISTINCT y FROM u",
    "SELECT a, (SELECT count(*) FROM t s WHERE s.b=t.b AND s.a<t.a) FROM t",
    "SELECT * FROM t NATURAL JOIN (SELECT a, 'q' q FROM t WHERE a%2)",
    "SELECT a FROM t, u WHERE t.b=u.x AND u.y='two' ORDER BY 1",
    "SELECT min(b), c FROM t",
    "SELECT v, max(k) FROM w",
    "SELECT total(d), sum(d) FROM t WHERE d<10",
    "SELECT 1 WHERE NULL IN (SELECT 1 WHERE 0)",
    "SELECT NULL IN (1,2), 1 IN (NULL,2), 1 IN (1,NULL), 3 NOT IN (1,2), 1 IN ()",
    "SELECT a FROM t WHERE a IN (1,2,3,4,5,6,7,8,9,10,'11',12.0) ORDER BY a DESC",
    "SELECT b FROM t WHERE b IN (10,11,12,13,14,15,16,17,18,20.0,'30')",
};

static void
fixed_statements_agree(void **state)
{
    (void)state;
    SqlKit kit;
    u32 failures = 0;
    if (sqlite3_libversion_number() < SQLITE_LIKE_OURS) skip();
    sql_kit_open(&kit);
    for (size_t i = 0; i < COUNT_OF(setup); i++) {
        sql_kit_same(&kit, setup[i]);
    }
    for (size_t i = 0; i < COUNT_OF(statements); i++) {
        sql_kit_ours(&kit, statements[i]);
        sql_kit_theirs(&kit, statements[i]);
        if (strcmp((char *)kit.ours.p, (char *)kit.theirs.p) != 0) {
            print_message("%s\n--- ours:\n%s\n--- SQLite:\n%s\n", statements[i],
                          (const char *)kit.ours.p, (const char *)kit.theirs.p);
            failures++;
        }
    }
    assert_int_equal(failures, 0);
    sql_kit_close(&kit);
}

/* The same statements, where an old library agrees too. */
static void
old_statements_agree(void **state)
{
    (void)state;
    SqlKit kit;
    sql_kit_open(&kit);
    for (size_t i = 0; i < COUNT_OF(setup); i++) {
        sql_kit_same(&kit, setup[i]);
    }
    for (size_t i = 0; i < COUNT_OF(statements); i++) {
        bool differs = strstr(statements[i], "VALUES(1),(1.0)") != NULL ||
                       strstr(statements[i], "',' ORDER BY") != NULL;
        if (!differs) sql_kit_same(&kit, statements[i]);
    }
    sql_kit_close(&kit);
}

/* ---- random statements ---- */

/* An expression that cannot be taken for the number of a result column. */
static void
make_key(Make *make)
{
    put(make, make->column[pick(make, make->columns)]);
    if (pick(make, 2) == 0) {
        put(make, " COLLATE ");
        put(make, collations[pick(make, COUNT_OF(collations))]);
    } else if (pick(make, 2) == 0) {
        put(make, " ");
        put(make, binary[pick(make, COUNT_OF(binary) - 2)]); /* Not AND, OR: SQLite folds them. */
        put(make, " ");
        make_expr(make, 1);
    }
}

static const char *const t_columns[] = {"a", "b", "c", "d", "e"};
static const char *const u_columns[] = {"x", "y", "z"};
static const char *const both_columns[] = {"t.a", "b", "c", "d", "e", "x", "y", "z"};

static void
make_select(Make *make)
{
    make->column = t_columns;
    make->columns = COUNT_OF(t_columns);
    switch (pick(make, 6)) {
    case 0:
        put(make, "SELECT ");
        make_list(make, 3, 2);
        put(make, " FROM t ORDER BY a");
        break;
    case 1:
        put(make, "SELECT a FROM t WHERE ");
        make_expr(make, 3);
        put(make, " ORDER BY a");
        break;
    case 2:
        make->column = u_columns;
        make->columns = COUNT_OF(u_columns);
        put(make, "SELECT count(*), ");
        make_expr(make, 2);
        put(make, " FROM u GROUP BY ");
        make_key(make);
        break;
    case 3:
        make->column = both_columns;
        make->columns = COUNT_OF(both_columns);
        put(make, "SELECT t.a, u.rowid FROM t ");
        put(make, pick(make, 2) ? "LEFT JOIN u ON " : "JOIN u ON ");
        make_expr(make, 2);
        put(make, " ORDER BY 1, 2");
        break;
    case 4:
        put(make, "SELECT a FROM t ORDER BY ");
        make_key(make);
        put(make, pick(make, 2) ? " DESC, " : ", ");
        make_key(make);
        put(make, ", a LIMIT 5");
        break;
    default:
        put(make, "SELECT DISTINCT ");
        make_expr(make, 2);
        put(make, " FROM t ORDER BY 1");
        break;
    }
}

/* Rows of many kinds, enough for whole batches, for pruned top-N sorts and for hash tables that
   grow. */
static const char *const setup_many[] = {
    "CREATE TABLE m(id INTEGER PRIMARY KEY, i INT, r REAL, s TEXT, x)",
    "CREATE TABLE n(k INT, v TEXT COLLATE NOCASE)",
    "CREATE INDEX m_i ON m(i)",
    "INSERT INTO m WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<1500) "
    "SELECT n, CASE WHEN n%17=0 THEN NULL WHEN n%19=0 THEN 9223372036854775807-n ELSE n*7919%101 "
    "END, CASE WHEN n%23=0 THEN NULL ELSE (n*31%400-200)*0.25 END, "
    "CASE WHEN n%29=0 THEN NULL ELSE substr('abcAbCxyz',n%7+1,n%4)||(n%13) END, "
    "CASE n%5 WHEN 0 THEN n%40 WHEN 1 THEN (n%40)*1.0 WHEN 2 THEN ''||(n%40) WHEN 3 THEN "
    "x'6162' ELSE NULL END FROM c",
    "INSERT INTO n SELECT i, s FROM m WHERE id<200 AND i<60",
};

static const char *const m_columns[] = {"id", "i", "r", "s", "x"};
static const char *const m_n_columns[] = {"id", "i", "r", "s", "x", "k", "v"};

static const char *const like_patterns[] = {"%ab%",   "%c1%",  "A%",    "%x", "%",    "",    "%b_%",
                                            "abc%12", "%xyz%", "%b%1%", "z_", "%''%", "%3%", "4%"};

static void
make_select_many(Make *make)
{
    make->column = m_columns;
    make->columns = COUNT_OF(m_columns);
    switch (pick(make, 10)) {
    case 8:
        put(make, "SELECT count(DISTINCT ");
        make_key(make);
        put(make, "), sum(DISTINCT i), count(DISTINCT x), max(DISTINCT r) FROM m WHERE ");
        make_expr(make, 2);
        if (pick(make, 2)) put(make, " GROUP BY id%7 ORDER BY 1, 2, 3, 4");
        break;
    case 9:
        put(make, "SELECT count(*), min(id), max(id) FROM m WHERE ");
        put(make, pick(make, 3) ? "s" : "i"); /* Blobs: builds of SQLite differ. */
        put(make, pick(make, 2) ? " LIKE '" : " NOT LIKE '");
        put(make, like_patterns[pick(make, COUNT_OF(like_patterns))]);
        put(make, pick(make, 2) ? "'" : "' AND i>50");
        break;
    case 0:
        put(make, "SELECT id, ");
        make_expr(make, 3);
        put(make, " FROM m ORDER BY id");
        break;
    case 1:
        put(make,
            "SELECT count(*), sum(i), min(r), max(s), total(x), count(x), avg(r) FROM m WHERE ");
        make_expr(make, 3);
        break;
    case 2:
        put(make, "SELECT count(*), count(x), total(i), max(x), min(id), sum(r) FROM m GROUP BY ");
        make_key(make);
        put(make, " ORDER BY 1, 2, 3, 4, 5, 6");
        break;
    case 3:
        put(make, "SELECT count(*), count(DISTINCT s), sum(id) FILTER (WHERE ");
        make_expr(make, 2);
        put(make, ") FROM m GROUP BY ");
        make_key(make);
        put(make, ",");
        make_key(make);
        put(make, " ORDER BY 1, 2, 3"); /* SQLite may group in the order of an index. */
        break;
    case 4:
        put(make, "SELECT id FROM m ORDER BY ");
        make_key(make);
        put(make, pick(make, 2) ? " DESC" : "");
        if (pick(make, 2)) put(make, ", s");
        if (pick(make, 2)) put(make, " DESC");
        put(make, ", id");
        if (pick(make, 2)) put(make, " LIMIT 20");
        break;
    case 5:
        put(make, "SELECT DISTINCT ");
        make_key(make);
        put(make, pick(make, 2) ? ", i FROM m ORDER BY 1, 2" : " FROM m ORDER BY 1");
        break;
    case 6:
        make->column = m_n_columns;
        make->columns = COUNT_OF(m_n_columns);
        put(make, "SELECT count(*), sum(id), total(k), max(v) FROM m ");
        put(make, pick(make, 2) ? "LEFT JOIN n ON " : "JOIN n ON ");
        put(make, pick(make, 2) ? "x=k" : pick(make, 2) ? "i=k" : "s=v");
        put(make, " WHERE ");
        make_expr(make, 2);
        break;
    default:
        put(make, "SELECT ");
        make_key(make);
        put(make, pick(make, 3) == 0   ? " FROM m UNION SELECT k FROM n"
                  : pick(make, 2) == 0 ? " FROM m EXCEPT SELECT v FROM n"
                                       : " FROM m INTERSECT SELECT k FROM n");
        break;
    }
}

typedef void (*MakeStatement)(Make *make);

static void
check_random(const char *const *sql_setup, size_t setup_count, MakeStatement statement, u32 wanted)
{
    SqlKit kit;
    Make make = {0};
    if (sqlite3_libversion_number() < SQLITE_LIKE_OURS) skip();
    rng_seed(&make.rng, 20261130);
    sql_kit_open(&kit);
    for (size_t i = 0; i < setup_count; i++) {
        sql_kit_same(&kit, sql_setup[i]);
    }
    u32 failures = 0;
    for (u32 i = 0; i < wanted && failures < 10; i++) {
        buf_clear(&make.out);
        statement(&make);
        assert_int_equal(buf_append_byte(&make.out, 0), OK);
        kit.env.batch_rows = (u32[]){0, 1, 2, 3, 300, 2048}[i % 6];
        const char *sql = (const char *)make.out.p;
        sql_kit_ours(&kit, sql);
        sql_kit_theirs(&kit, sql);
        if (strcmp((char *)kit.ours.p, (char *)kit.theirs.p) == 0) continue;
        print_message("%s\n--- ours:\n%s\n--- SQLite:\n%s\n", sql, (const char *)kit.ours.p,
                      (const char *)kit.theirs.p);
        failures++;
    }
    assert_int_equal(failures, 0);
    buf_free(&make.out);
    sql_kit_close(&kit);
}

static void
random_statements_agree(void **state)
{
    (void)state;
    check_random(setup, COUNT_OF(setup), make_select, statements_wanted);
}

static void
random_statements_on_many_rows_agree(void **state)
{
    (void)state;
    check_random(setup_many, COUNT_OF(setup_many), make_select_many, statements_wanted / 6);
}

int
main(int argc, char **argv)
{
    /* More statements by hand: sql_diff_test COUNT. */
    if (argc > 1) {
        statements_wanted = 0;
        for (const char *p = argv[1]; *p >= '0' && *p <= '9'; p++) {
            statements_wanted = statements_wanted * 10 + (u32)(*p - '0');
        }
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_statements_agree),
        cmocka_unit_test(old_statements_agree),
        cmocka_unit_test(random_statements_agree),
        cmocka_unit_test(random_statements_on_many_rows_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
