/*
 * parse_accept_test.c -- what is accepted and what is refused, with which words and where.
 *
 * Method: a table of statements with SQLite 3.54's verdict on each, recorded from it: for a refused
 * one the message and error offset, for an accepted one where the next statement begins. (Thousands
 * more were compared while the grammar was written; these stand for every rule of it.)
 */
#include "sql/parse/parse.h"
#include "unit/cmocka_all.h"

typedef struct Case {
    const char *sql;
    const char *message; /* NULL: accepted */
    i32 offset;
    size_t consumed;
} Case;

static const Case cases[] = {
    /* clang-format off */
    {"SELECT 1",
     NULL, -1, 8},
    {"VALUES (1, 2), (3, 4)",
     NULL, -1, 21},
    {"SELECT DISTINCT a, t.*, * FROM t",
     NULL, -1, 32},
    {"SELECT ALL a AS x, b y, c \"z w\", d 'q' FROM main.t AS u",
     NULL, -1, 55},
    {"SELECT * FROM a, b CROSS JOIN c NATURAL LEFT OUTER JOIN d FULL JOIN e "
     "USING (x, y) RIGHT JOIN f ON f.x = e.y",
     NULL, -1, 108},
    {"SELECT * FROM (a JOIN b ON 1) AS j LEFT JOIN (SELECT 1) k ON true",
     NULL, -1, 65},
    {"SELECT * FROM t INDEXED BY i, u NOT INDEXED WHERE a = 1",
     NULL, -1, 55},
    {"SELECT * FROM json_each('[1]') AS j, main.generate_series(1, 2)",
     NULL, -1, 63},
    {"SELECT a FROM t WHERE b GROUP BY c, d HAVING e WINDOW w AS (PARTITION BY "
     "f ORDER BY g), v AS (w ROWS 1 PRECEDING) ORDER BY h DESC NULLS LAST, i "
     "COLLATE nocase ASC NULLS FIRST LIMIT 1 OFFSET 2",
     NULL, -1, 191},
    {"SELECT 1 UNION SELECT 2 UNION ALL VALUES (3) EXCEPT SELECT 4 INTERSECT "
     "SELECT 5 ORDER BY 1 LIMIT 2, 3",
     NULL, -1, 101},
    {"WITH RECURSIVE c(x) AS MATERIALIZED (SELECT 1 UNION ALL SELECT x + 1 FROM "
     "c), d AS NOT MATERIALIZED (SELECT 2) SELECT * FROM c, d",
     NULL, -1, 129},
    {"SELECT count(*), sum(DISTINCT a), max(a, b), f(), group_concat(a, ',' "
     "ORDER BY b DESC) FILTER (WHERE c) OVER w FROM t WINDOW w AS ()",
     NULL, -1, 132},
    {"SELECT sum(a) OVER (ORDER BY b RANGE BETWEEN UNBOUNDED PRECEDING AND "
     "CURRENT ROW EXCLUDE TIES) FROM t",
     NULL, -1, 101},
    {"SELECT sum(a) OVER (w GROUPS BETWEEN 1 PRECEDING AND 2 FOLLOWING EXCLUDE "
     "NO OTHERS) FROM t WINDOW w AS (ORDER BY b)",
     NULL, -1, 115},
    {"SELECT CASE WHEN a THEN b ELSE c END, CASE a WHEN 1 THEN 2 WHEN 3 THEN 4 "
     "END",
     NULL, -1, 76},
    {"SELECT a BETWEEN 1 AND 2 AND c, a NOT BETWEEN b AND c OR d",
     NULL, -1, 58},
    {"SELECT a LIKE b, a NOT LIKE b ESCAPE c, a GLOB b, a NOT REGEXP b, a MATCH "
     "b, a NOT MATCH b",
     NULL, -1, 90},
    {"SELECT a IN (), a IN (1), a NOT IN (1, 2, 3), a IN (SELECT 1), a IN t, a "
     "NOT IN main.t, a IN f(1, 2), (a, b) IN (VALUES (1, 2))",
     NULL, -1, 127},
    {"SELECT a IS NULL, a IS NOT NULL, a ISNULL, a NOTNULL, a NOT NULL, a IS b, "
     "a IS NOT b, a IS DISTINCT FROM b, a IS NOT DISTINCT FROM b",
     NULL, -1, 132},
    {"SELECT EXISTS (SELECT 1), NOT EXISTS (SELECT 1), (SELECT 1), (1, 2) < "
     "(SELECT 3, 4)",
     NULL, -1, 83},
    {"SELECT CAST(a AS VARCHAR(10)), CAST(a AS DECIMAL(1, -2)), CAST(a AS), a "
     "COLLATE nocase",
     NULL, -1, 86},
    {"SELECT 1 + 2 - 3 * 4 / 5 % 6 || 7 -> '$' ->> 'a' & 8 | 9 << 10 >> 11, ~1, "
     "-2, +3, NOT 4",
     NULL, -1, 87},
    {"SELECT a = b, a == b, a <> b, a != b, a < b, a <= b, a > b, a >= b",
     NULL, -1, 66},
    {"SELECT 1, 0x1F, 1.5, .5, 5., 1e5, 1E-5, 1_000, 0x1_f, 1_0.0_1e1_0, "
     "'it''s', x'0aFF', X'', NULL, TRUE, CURRENT_TIME, CURRENT_DATE, "
     "CURRENT_TIMESTAMP",
     NULL, -1, 147},
    {"SELECT ?, ?2, :a, @b, $c, $d::e(f), #g",
     NULL, -1, 38},
    {"SELECT \"a\"\"b\", [c d], `e``f`, 'g'.h, i.j.k",
     NULL, -1, 42},
    {"SELECT abort, action, after, asc, before, by, conflict, desc, do, each, "
     "end, fail, first, following, for, if, key, last, like, match, no, of, "
     "plan, query, range, row, rows, temp, ties, view, with FROM replace",
     NULL, -1, 208},
    {"SELECT left, cross, inner, natural FROM right",
     NULL, -1, 45},
    {"SELECT over, filter, window FROM window",
     NULL, -1, 39},
    {"SELECT count(*) over, count(*) filter FROM t",
     NULL, -1, 44},
    {"SELECT 1 -- comment",
     NULL, -1, 19},
    {"SELECT /* comment */ 1 /* open",
     NULL, -1, 30},
    {"INSERT INTO t VALUES (1, 2)",
     NULL, -1, 27},
    {"INSERT OR ROLLBACK INTO main.t AS x (a, b) SELECT 1, 2",
     NULL, -1, 54},
    {"INSERT OR IGNORE INTO t DEFAULT VALUES RETURNING *",
     NULL, -1, 50},
    {"REPLACE INTO t (a) VALUES (1) RETURNING a AS b, rowid",
     NULL, -1, 53},
    {"WITH c AS (SELECT 1) INSERT OR REPLACE INTO t SELECT * FROM c",
     NULL, -1, 61},
    {"INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
     NULL, -1, 47},
    {"INSERT INTO t VALUES (1) ON CONFLICT (a COLLATE nocase, b DESC) WHERE c > "
     "0 DO UPDATE SET a = excluded.a, (b, c) = (1, 2) WHERE d ON CONFLICT (e) "
     "DO NOTHING ON CONFLICT DO UPDATE SET a = 1 RETURNING a",
     NULL, -1, 200},
    {"INSERT INTO t SELECT * FROM u WHERE true ON CONFLICT DO NOTHING",
     NULL, -1, 63},
    {"UPDATE OR FAIL main.t AS x INDEXED BY i SET a = 1, (b, c) = (SELECT 1, 2) "
     "FROM u JOIN v WHERE d RETURNING e",
     NULL, -1, 107},
    {"UPDATE t NOT INDEXED SET a = a + 1",
     NULL, -1, 34},
    {"WITH c AS (SELECT 1) UPDATE t SET a = 1 WHERE b IN c",
     NULL, -1, 52},
    {"DELETE FROM t",
     NULL, -1, 13},
    {"DELETE FROM main.t AS x INDEXED BY i WHERE a RETURNING *",
     NULL, -1, 56},
    {"CREATE TABLE t (a)",
     NULL, -1, 18},
    {"CREATE TEMPORARY TABLE IF NOT EXISTS t (a INTEGER PRIMARY KEY DESC ON "
     "CONFLICT REPLACE AUTOINCREMENT, b VARCHAR(10, 2) CONSTRAINT n NOT NULL ON "
     "CONFLICT FAIL UNIQUE, c DEFAULT 1, d DEFAULT -1, e DEFAULT +1.5, f "
     "DEFAULT 'x', g DEFAULT (1 + 2), h DEFAULT abc, i DEFAULT CURRENT_TIME)",
     NULL, -1, 281},
    {"CREATE TABLE t (a CHECK (a > 0), b COLLATE nocase, c REFERENCES u (x) ON "
     "DELETE SET NULL ON UPDATE CASCADE MATCH full DEFERRABLE INITIALLY "
     "DEFERRED, d REFERENCES v NOT DEFERRABLE INITIALLY IMMEDIATE, e NULL)",
     NULL, -1, 207},
    {"CREATE TABLE t (a, b AS (a + 1), c INT GENERATED ALWAYS AS (b) STORED, d "
     "AS (1) VIRTUAL)",
     NULL, -1, 88},
    {"CREATE TABLE t (a, b, CONSTRAINT k PRIMARY KEY (a, b DESC) ON CONFLICT "
     "ABORT, UNIQUE (b) CHECK (a) CONSTRAINT f FOREIGN KEY (a) REFERENCES u (x) "
     "ON DELETE RESTRICT ON UPDATE NO ACTION ON DELETE SET DEFAULT ON INSERT "
     "CASCADE DEFERRABLE)",
     NULL, -1, 235},
    {"CREATE TABLE t (a INT PRIMARY KEY) WITHOUT ROWID",
     NULL, -1, 48},
    {"CREATE TABLE t (a INT PRIMARY KEY) STRICT, WITHOUT ROWID",
     NULL, -1, 56},
    {"CREATE TABLE main.t AS SELECT 1 AS a",
     NULL, -1, 36},
    {"CREATE TABLE t (a CONSTRAINT x, b CONSTRAINT y CONSTRAINT z UNIQUE, "
     "CONSTRAINT w)",
     NULL, -1, 81},
    {"CREATE UNIQUE INDEX IF NOT EXISTS main.i ON t (a COLLATE nocase DESC, b + "
     "1, lower(c)) WHERE d NOT NULL",
     NULL, -1, 103},
    {"CREATE TEMP VIEW IF NOT EXISTS v (a, b) AS SELECT 1, 2",
     NULL, -1, 54},
    {"CREATE TRIGGER r BEFORE INSERT ON t BEGIN SELECT RAISE (IGNORE); END",
     NULL, -1, 68},
    {"CREATE TEMP TRIGGER IF NOT EXISTS r AFTER UPDATE OF a, b ON main.t FOR "
     "EACH ROW WHEN new.a > 1 BEGIN UPDATE OR IGNORE u SET x = 1 WHERE y; "
     "INSERT INTO u VALUES (1) ON CONFLICT DO NOTHING; DELETE FROM u WHERE x; "
     "WITH c AS (SELECT 1) SELECT * FROM c; SELECT RAISE(ABORT, 'no' || 1), "
     "RAISE(FAIL, 'x'), RAISE(ROLLBACK, 'y'); END",
     NULL, -1, 324},
    {"CREATE TRIGGER r INSTEAD OF DELETE ON v BEGIN REPLACE INTO u SELECT 1; END",
     NULL, -1, 74},
    {"CREATE VIRTUAL TABLE IF NOT EXISTS main.v USING fts5 (a, b, prefix='2 3', "
     "(x (y), z) select from where, )",
     NULL, -1, 105},
    {"CREATE VIRTUAL TABLE v USING m",
     NULL, -1, 30},
    {"CREATE VIRTUAL TABLE v USING m ()",
     NULL, -1, 33},
    {"DROP TABLE IF EXISTS main.t",
     NULL, -1, 27},
    {"DROP VIEW v",
     NULL, -1, 11},
    {"DROP INDEX IF EXISTS i",
     NULL, -1, 22},
    {"DROP TRIGGER main.r",
     NULL, -1, 19},
    {"ALTER TABLE main.t RENAME TO u",
     NULL, -1, 30},
    {"ALTER TABLE t RENAME COLUMN a TO b",
     NULL, -1, 34},
    {"ALTER TABLE t RENAME a TO b",
     NULL, -1, 27},
    {"ALTER TABLE t ADD COLUMN a INT NOT NULL DEFAULT 1 CHECK (a)",
     NULL, -1, 59},
    {"ALTER TABLE t ADD a",
     NULL, -1, 19},
    {"ALTER TABLE t DROP COLUMN a",
     NULL, -1, 27},
    {"ALTER TABLE t DROP a",
     NULL, -1, 20},
    {"ALTER TABLE t DROP CONSTRAINT c",
     NULL, -1, 31},
    {"ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) ON CONFLICT FAIL",
     NULL, -1, 61},
    {"ALTER TABLE t ADD CHECK (a > 0)",
     NULL, -1, 31},
    {"ALTER TABLE t ALTER COLUMN a SET NOT NULL ON CONFLICT IGNORE",
     NULL, -1, 60},
    {"ALTER TABLE t ALTER a DROP NOT NULL",
     NULL, -1, 35},
    {"BEGIN",
     NULL, -1, 5},
    {"BEGIN DEFERRED TRANSACTION",
     NULL, -1, 26},
    {"BEGIN IMMEDIATE",
     NULL, -1, 15},
    {"BEGIN EXCLUSIVE TRANSACTION name",
     NULL, -1, 32},
    {"BEGIN TRANSACTION isolation",
     NULL, -1, 27},
    {"COMMIT",
     NULL, -1, 6},
    {"END TRANSACTION",
     NULL, -1, 15},
    {"ROLLBACK",
     NULL, -1, 8},
    {"ROLLBACK TRANSACTION TO SAVEPOINT s",
     NULL, -1, 35},
    {"ROLLBACK TO s",
     NULL, -1, 13},
    {"SAVEPOINT 's p'",
     NULL, -1, 15},
    {"RELEASE SAVEPOINT s",
     NULL, -1, 19},
    {"RELEASE s",
     NULL, -1, 9},
    {"PRAGMA a",
     NULL, -1, 8},
    {"PRAGMA main.a = 5",
     NULL, -1, 17},
    {"PRAGMA a = -5.5",
     NULL, -1, 15},
    {"PRAGMA a = +1",
     NULL, -1, 13},
    {"PRAGMA a (on)",
     NULL, -1, 13},
    {"PRAGMA a = delete",
     NULL, -1, 17},
    {"PRAGMA a = default",
     NULL, -1, 18},
    {"PRAGMA a ('x')",
     NULL, -1, 14},
    {"ATTACH DATABASE 'f' || 1 AS x KEY 'k'",
     NULL, -1, 37},
    {"ATTACH f AS g",
     NULL, -1, 13},
    {"DETACH DATABASE x",
     NULL, -1, 17},
    {"DETACH x",
     NULL, -1, 8},
    {"ANALYZE",
     NULL, -1, 7},
    {"ANALYZE main.t",
     NULL, -1, 14},
    {"REINDEX",
     NULL, -1, 7},
    {"REINDEX nocase",
     NULL, -1, 14},
    {"REINDEX main.t",
     NULL, -1, 14},
    {"VACUUM",
     NULL, -1, 6},
    {"VACUUM main",
     NULL, -1, 11},
    {"VACUUM INTO 'f'",
     NULL, -1, 15},
    {"VACUUM main INTO 'f' || ?1",
     NULL, -1, 26},
    {"EXPLAIN SELECT 1",
     NULL, -1, 16},
    {"EXPLAIN QUERY PLAN DELETE FROM t",
     NULL, -1, 32},
    {"EXPLAIN ANALYZE",
     NULL, -1, 15},
    {"EXPLAIN ANALYZE t",
     NULL, -1, 17},
    {"SELECT * FROM 'json_each'('[1]'), 'u' ('x')",
     NULL, -1, 43},
    {"CREATE TABLE 'n1'('a' 'int'(3), b DEFAULT 'x' CHECK ('y'), FOREIGN KEY "
     "('a') REFERENCES 'u'('x'))",
     NULL, -1, 97},
    {"INSERT INTO 'u'('x') VALUES ('b'), ('c')",
     NULL, -1, 40},
    {"CREATE INDEX 'i1' ON 'u'('x')",
     NULL, -1, 29},
    {"CREATE VIEW 'v1'('x') AS SELECT 1",
     NULL, -1, 33},
    {"WITH 'c'('x') AS (VALUES ('a')) SELECT 1 IN 'c', 2 IN 'json_each'('[2]'), "
     "CAST(3 AS 'int'(4)) FROM 'c' AS 'd'",
     NULL, -1, 109},
    {"PRAGMA 'main'.'user_version'('1')",
     NULL, -1, 33},
    {"CREATE VIRTUAL TABLE 'n2' USING 'm'('a'('b'('c')))",
     NULL, -1, 50},
    {"SELECT",
     "incomplete input", -1, 0},
    {"SELEC 1",
     "near \"SELEC\": syntax error", 0, 0},
    {"SELECT 1 +",
     "incomplete input", -1, 0},
    {"SELECT 1 2",
     "near \"2\": syntax error", 9, 0},
    {"SELECT a b c",
     "near \"c\": syntax error", 11, 0},
    {"SELECT FROM t",
     "near \"FROM\": syntax error", 7, 0},
    {"SELECT * FROM",
     "incomplete input", -1, 0},
    {"SELECT * FROM t WHERE",
     "incomplete input", -1, 0},
    {"SELECT 'abc",
     "unrecognized token: \"'abc\"", 7, 0},
    {"SELECT \"abc",
     "unrecognized token: \"\"abc\"", 7, 0},
    {"SELECT [abc",
     "unrecognized token: \"[abc\"", 7, 0},
    {"SELECT x'1'",
     "unrecognized token: \"x'1'\"", 7, 0},
    {"SELECT x'1g'",
     "unrecognized token: \"x'1g'\"", 7, 0},
    {"SELECT 1a",
     "unrecognized token: \"1a\"", 7, 0},
    {"SELECT 1_",
     "unrecognized token: \"1_\"", -1, 0},
    {"SELECT 1__0",
     "unrecognized token: \"1__0\"", -1, 0},
    {"SELECT 0x1_",
     "unrecognized token: \"0x1_\"", -1, 0},
    {"SELECT 1e",
     "unrecognized token: \"1e\"", 7, 0},
    {"SELECT !1",
     "unrecognized token: \"!\"", 7, 0},
    {"SELECT ^",
     "unrecognized token: \"^\"", 7, 0},
    {"SELECT $",
     "unrecognized token: \"$\"", 7, 0},
    {"SELECT ?0",
     "variable number must be between ?1 and ?32766", 7, 0},
    {"SELECT ?32767",
     "variable number must be between ?1 and ?32766", 7, 0},
    {"SELECT ?32766, ?",
     "too many SQL variables", 15, 0},
    {"SELECT #1",
     "near \"#1\": syntax error", 7, 0},
    {"SELECT $a(b c)",
     "unrecognized token: \"$a(b\"", 7, 0},
    {"SELECT a..b",
     "near \".\": syntax error", 9, 0},
    {"SELECT (1",
     "incomplete input", -1, 0},
    {"SELECT 1)",
     "near \")\": syntax error", 8, 0},
    {"SELECT CASE a END",
     "near \"END\": syntax error", 14, 0},
    {"SELECT a NOT b",
     "near \"b\": syntax error", 13, 0},
    {"SELECT 1 WHERE 1 WHERE 2",
     "near \"WHERE\": syntax error", 17, 0},
    {"SELECT 1 ORDER BY 1 UNION SELECT 2",
     "ORDER BY clause should come after UNION not before", -1, 0},
    {"SELECT 1 LIMIT 1 UNION ALL SELECT 2",
     "LIMIT clause should come after UNION ALL not before", -1, 0},
    {"SELECT 1 EXCEPT SELECT 2 ORDER BY 1 INTERSECT SELECT 3",
     "ORDER BY clause should come after INTERSECT not before", -1, 0},
    {"SELECT * FROM a LEFT INNER JOIN b",
     "unknown join type: LEFT INNER", 16, 0},
    {"SELECT * FROM a OUTER JOIN b",
     "unknown join type: OUTER", 16, 0},
    {"SELECT * FROM a NATURAL foo JOIN b",
     "unknown join type: NATURAL foo", 16, 0},
    {"SELECT * FROM a ON 1",
     "a JOIN clause is required before ON", -1, 0},
    {"SELECT * FROM a USING (x)",
     "a JOIN clause is required before USING", -1, 0},
    {"SELECT * FROM a JOIN b ON 1 USING (x)",
     "near \"USING\": syntax error", 28, 0},
    {"VALUES (1), (2, 3)",
     NULL, -1, 18},
    {"WITH c(a DESC) AS (SELECT 1) SELECT 1",
     "syntax error after column name \"a\"", -1, 0},
    {"WITH c AS (SELECT 1), C AS (SELECT 2) SELECT 1",
     "duplicate WITH table name: C", -1, 0},
    {"SELECT sum(a) OVER (ROWS BETWEEN CURRENT ROW AND 1 PRECEDING) FROM t",
     "unsupported frame specification", -1, 0},
    {"SELECT sum(a) OVER (ROWS UNBOUNDED FOLLOWING) FROM t",
     "near \"FOLLOWING\": syntax error", 35, 0},
    {"INSERT t VALUES (1)",
     "near \"t\": syntax error", 7, 0},
    {"INSERT INTO t (a) DEFAULT VALUES ON CONFLICT DO NOTHING",
     "near \"ON\": syntax error", 33, 0},
    {"INSERT INTO t SELECT * FROM u ON CONFLICT DO NOTHING",
     "near \"DO\": syntax error", 42, 0},
    {"UPDATE t SET",
     "incomplete input", -1, 0},
    {"UPDATE t SET (a, b) = 1",
     "2 columns assigned 1 values", -1, 0},
    {"UPDATE t SET (a, b) = (1, 2, 3)",
     "2 columns assigned 3 values", -1, 0},
    {"UPDATE t SET a = 1 LIMIT 2 ORDER BY b",
     "near \"ORDER\": syntax error", 27, 0},
    {"DELETE FROM t OFFSET 1",
     "near \"OFFSET\": syntax error", 14, 0},
    {"DELETE t",
     "near \"t\": syntax error", 7, 0},
    {"CREATE TABLE t",
     "incomplete input", -1, 0},
    {"CREATE TABLE n ()",
     "near \")\": syntax error", 16, 0},
    {"CREATE TABLE n (a) foo",
     "unknown table option: foo", -1, 0},
    {"CREATE TABLE n (a) WITHOUT foo",
     "unknown table option: foo", -1, 0},
    {"CREATE TABLE n (a b(c))",
     "near \"c\": syntax error", 20, 0},
    {"CREATE TABLE n (a AS (1) foo)",
     "error in generated column \"a\"", -1, 0},
    {"CREATE TABLE n (a, FOREIGN KEY (a COLLATE b) REFERENCES u)",
     "syntax error after column name \"a\"", -1, 0},
    {"CREATE VIEW v AS SELECT ?",
     "parameters are not allowed in views", -1, 0},
    {"CREATE VIEW v (a ASC) AS SELECT 1",
     "syntax error after column name \"a\"", -1, 0},
    {"CREATE INDEX i ON t ()",
     "near \")\": syntax error", 21, 0},
    {"CREATE TRIGGER r INSERT ON t BEGIN END",
     "near \"END\": syntax error", 35, 0},
    {"CREATE VIRTUAL TABLE n USING m (a",
     "incomplete input", -1, 0},
    {"CREATE TRIGGER r INSTEAD OF DELETE ON v BEGIN REPLACE INTO u DEFAULT "
     "VALUES; END",
     "near \"DEFAULT\": syntax error", 61, 0},
    {"DROP TABLE",
     "incomplete input", -1, 0},
    {"DROP COLUMN a",
     "near \"COLUMN\": syntax error", 5, 0},
    {"ALTER TABLE t",
     "incomplete input", -1, 0},
    {"ALTER TABLE t ADD CONSTRAINT c UNIQUE (a)",
     "near \"UNIQUE\": syntax error", 31, 0},
    {"ALTER TABLE t RENAME",
     "incomplete input", -1, 0},
    {"BEGIN foo",
     "near \"foo\": syntax error", 6, 0},
    {"BEGIN TRANSACTION a b",
     "near \"b\": syntax error", 20, 0},
    {"COMMIT foo",
     "near \"foo\": syntax error", 7, 0},
    {"SAVEPOINT",
     "incomplete input", -1, 0},
    {"PRAGMA a = b c",
     "near \"c\": syntax error", 13, 0},
    {"PRAGMA a = *",
     "near \"*\": syntax error", 11, 0},
    {"PRAGMA a (1",
     "incomplete input", -1, 0},
    {"ATTACH 'f'",
     "incomplete input", -1, 0},
    {"VACUUM INTO",
     "incomplete input", -1, 0},
    {"EXPLAIN",
     "incomplete input", -1, 0},
    {"EXPLAIN EXPLAIN SELECT 1",
     "near \"EXPLAIN\": syntax error", 8, 0},
    {"EXPLAIN QUERY SELECT 1",
     "near \"SELECT\": syntax error", 14, 0},
    {"SET a = 1",
     "near \"SET\": syntax error", 0, 0},
    {"foo",
     "near \"foo\": syntax error", 0, 0},
    {"(SELECT 1)",
     "near \"(\": syntax error", 0, 0},
    {"SELECT 'f'(1)",
     "near \"(\": syntax error", 10, 0},
    {"SELECT 'f' (1, )",
     "near \"(\": syntax error", 11, 0},
    {"VALUES ('a' ('b'))",
     "near \"(\": syntax error", 12, 0},
    {"SELECT * FROM t AS 'x' (1)",
     "near \"(\": syntax error", 23, 0},
    {"",
     NULL, -1, 0},
    {" ",
     NULL, -1, 1},
    {";",
     NULL, -1, 1},
    {";;",
     NULL, -1, 2},
    {"-- x",
     NULL, -1, 4},
    {"/* x",
     NULL, -1, 4},
    {"/* x */ ;",
     NULL, -1, 9},
    {"SELECT 1;",
     NULL, -1, 9},
    {"SELECT 1; SELECT 2",
     NULL, -1, 9},
    {" ; SELECT 1 ; ;",
     NULL, -1, 13},
    {"SELECT 1;;",
     NULL, -1, 9},
    {"SELECT 1;x",
     NULL, -1, 9},
    {"SELECT ';' ; y",
     NULL, -1, 12},
    {"\357\273\277SELECT 1",
     NULL, -1, 11},
    {"SELECT \303\251\303\250",
     NULL, -1, 11},
    {"SELECT\t1\n;\r\n",
     NULL, -1, 10},
    {"\vSELECT 1",
     "unrecognized token: \"\v\"", 0, 0},
    {" \vSELECT 1",
     NULL, -1, 10},
    {"CREATE TRIGGER r INSERT ON t BEGIN SELECT 1; SELECT 2; END; SELECT 3",
     NULL, -1, 59},
    {"SELECT 1 /",
     "incomplete input", -1, 0},
    {"SELECT 1 /*",
     "near \"*\": syntax error", 10, 0},
    {"SELECT 1/**/;",
     NULL, -1, 13},
    /* clang-format on */
};

static void
verdicts_are_sqlites(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const Case *c = &cases[i];
        Arena arena;
        ErrMsg msg = {0};
        AstStatement *statement;
        size_t consumed;
        arena_init(&arena, NULL);
        Err err = sql_parse(&arena, SLICE(c->sql, strlen(c->sql)), NULL, &statement, &consumed,
                            &msg);
        if (c->message == NULL) {
            if (err != OK) fail_msg("%s: %s", c->sql, err_message(&msg));
            if (consumed != c->consumed) fail_msg("%s: consumed %zu", c->sql, consumed);
        } else {
            if (err == OK) fail_msg("%s: accepted", c->sql);
            assert_string_equal(err_message(&msg), c->message);
            if (msg.sql_offset != c->offset) fail_msg("%s: offset %d", c->sql, msg.sql_offset);
            assert_null(statement);
        }
        err_clear(&msg);
        arena_free(&arena);
    }
}

typedef struct OwnCase {
    const char *sql;
    const char *message; /* NULL: accepted */
    AstStatementKind kind;
    AstExplain explain;
    AstBeginMode mode;
    AstIsolation isolation;
} OwnCase;

static const OwnCase own_cases[] = {
    {"BEGIN CONCURRENT", NULL, AST_STMT_BEGIN, AST_EXPLAIN_NONE, AST_BEGIN_CONCURRENT,
     AST_ISOLATION_NONE},
    {"begin concurrent transaction", NULL, AST_STMT_BEGIN, AST_EXPLAIN_NONE, AST_BEGIN_CONCURRENT,
     AST_ISOLATION_NONE},
    {"BEGIN ISOLATION LEVEL SERIALIZABLE", NULL, AST_STMT_BEGIN, AST_EXPLAIN_NONE,
     AST_BEGIN_DEFERRED, AST_ISOLATION_SERIALIZABLE},
    {"BEGIN TRANSACTION ISOLATION LEVEL read committed", NULL, AST_STMT_BEGIN, AST_EXPLAIN_NONE,
     AST_BEGIN_DEFERRED, AST_ISOLATION_READ_COMMITTED},
    {"BEGIN IMMEDIATE TRANSACTION ISOLATION LEVEL SNAPSHOT", NULL, AST_STMT_BEGIN, AST_EXPLAIN_NONE,
     AST_BEGIN_IMMEDIATE, AST_ISOLATION_SNAPSHOT},
    {"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", NULL, AST_STMT_SET_TRANSACTION,
     AST_EXPLAIN_NONE, AST_BEGIN_DEFERRED, AST_ISOLATION_REPEATABLE_READ},
    {"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", NULL,
     AST_STMT_SET_SESSION, AST_EXPLAIN_NONE, AST_BEGIN_DEFERRED, AST_ISOLATION_READ_UNCOMMITTED},
    {"BEGIN ISOLATION LEVEL foo", "near \"foo\": syntax error", 0, 0, 0, 0},
    {"BEGIN ISOLATION LEVEL READ foo", "near \"foo\": syntax error", 0, 0, 0, 0},
    {"BEGIN ISOLATION LEVEL READ", "incomplete input", 0, 0, 0, 0},
    {"BEGIN ISOLATION LEVEL SNAPSHOT READ", "near \"READ\": syntax error", 0, 0, 0, 0},
    {"SET SESSION foo AS TRANSACTION ISOLATION LEVEL SNAPSHOT", "near \"foo\": syntax error", 0, 0,
     0, 0},
    {"EXPLAIN ANALYZE SELECT 1", NULL, AST_STMT_SELECT, AST_EXPLAIN_ANALYZE, 0, 0},
    {"EXPLAIN ANALYZE WITH c AS (SELECT 1) DELETE FROM t", NULL, AST_STMT_DELETE,
     AST_EXPLAIN_ANALYZE, 0, 0},
    {"EXPLAIN ANALYZE t", NULL, AST_STMT_ANALYZE, AST_EXPLAIN_PROGRAM, 0, 0},
    {"SELECT concurrent, isolation, level FROM level", NULL, AST_STMT_SELECT, AST_EXPLAIN_NONE, 0,
     0},
};

static void
our_own_statements(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(own_cases); i++) {
        const OwnCase *c = &own_cases[i];
        Arena arena;
        ErrMsg msg = {0};
        AstStatement *statement;
        size_t consumed;
        arena_init(&arena, NULL);
        Err err = sql_parse(&arena, SLICE(c->sql, strlen(c->sql)), NULL, &statement, &consumed,
                            &msg);
        if (c->message != NULL) {
            assert_int_equal(err, ERR_SQL);
            assert_string_equal(err_message(&msg), c->message);
        } else {
            if (err != OK) fail_msg("%s: %s", c->sql, err_message(&msg));
            assert_int_equal(statement->kind, c->kind);
            assert_int_equal(statement->explain, c->explain);
            if (c->kind == AST_STMT_BEGIN || c->kind == AST_STMT_SET_TRANSACTION ||
                c->kind == AST_STMT_SET_SESSION) {
                assert_int_equal(statement->u.transaction->mode, c->mode);
                assert_int_equal(statement->u.transaction->isolation, c->isolation);
            }
        }
        err_clear(&msg);
        arena_free(&arena);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_sqlites),
        cmocka_unit_test(our_own_statements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
