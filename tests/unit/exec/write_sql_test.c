/*
 * write_sql_test.c -- INSERT, UPDATE and DELETE as SQL, against SQLite.
 *
 * Method: scripts for the rules that have a history (order of checks, conflict clauses, UPSERT,
 * WITHOUT ROWID, generated columns, STRICT), then random schemas with random statements.  Every
 * statement runs in both engines; rows, codes, messages, changes() and last_insert_rowid() must
 * agree, and afterwards the whole table, and each index with its table.
 */
#include <stdlib.h>

#include "unit/exec/write_kit.h"

static void
script(const char *const *sql, size_t count)
{
    SqlKit kit;
    kit_open(&kit);
    for (size_t i = 0; i < count; i++) {
        /* Older libraries decide subqueries in RETURNING once. */
        bool needs_new = strstr(sql[i], "RETURNING a,(SELECT") != NULL;
        if (needs_new && sqlite3_libversion_number() < 3054000) continue;
        if (strcmp(sql[i], ".rec") == 0) {
            kit.env.recursive_triggers = true;
            kit_theirs(&kit, "PRAGMA recursive_triggers=1");
            continue;
        }
        if (strcmp(sql[i], ".fk") == 0) {
            kit.env.foreign_keys = true;
            kit_theirs(&kit, "PRAGMA foreign_keys=1");
            continue;
        }
        kit_both(&kit, sql[i]);
        kit_check(&kit);
    }
    kit_close(&kit);
}

#define SCRIPT(...)                                      \
    do {                                                 \
        static const char *const sql_[] = {__VA_ARGS__}; \
        script(sql_, COUNT_OF(sql_));                    \
    } while (0)

static void
rowids(void **state)
{
    (void)state;
    SCRIPT("CREATE TABLE t(a INTEGER PRIMARY KEY, b)", "INSERT INTO t VALUES(NULL,1)",
           "INSERT INTO t VALUES(-10,2),(NULL,3)", "INSERT INTO t(b) VALUES(4)",
           "INSERT INTO t VALUES('12',5)", "INSERT INTO t VALUES(13.0,6)",
           "INSERT INTO t VALUES(13.5,6)", "INSERT OR IGNORE INTO t VALUES('x',6)",
           "INSERT INTO t(rowid,b) VALUES(50,7)", "INSERT INTO t(_rowid_) VALUES(51)",
           "INSERT INTO t DEFAULT VALUES", "SELECT rowid,* FROM t", "UPDATE t SET a='x' WHERE a=51",
           "UPDATE t SET rowid=rowid+100 WHERE b>4", "UPDATE t SET a=NULL WHERE b=5",
           "SELECT rowid,* FROM t", "CREATE TABLE d(a INTEGER PRIMARY KEY DESC, b)",
           "INSERT INTO d VALUES('abc',1)", "INSERT INTO d VALUES(NULL,2)",
           "INSERT INTO d VALUES('abc',3)", "SELECT rowid,* FROM d");
}

static void
row_by_row(void **state)
{
    (void)state;
    SCRIPT("CREATE TABLE t(a INTEGER PRIMARY KEY, b)", "INSERT INTO t VALUES(1,1),(2,2),(3,3)",
           "UPDATE t SET a=a+1", "SELECT * FROM t", "UPDATE t SET a=a-1", "SELECT * FROM t",
           "UPDATE t SET b=(SELECT sum(b) FROM t t2 WHERE t2.a<=t.a+1)", "SELECT * FROM t",
           "UPDATE t SET b=(SELECT count(*) FROM t)", "SELECT * FROM t",
           "DELETE FROM t WHERE a<2 RETURNING a,(SELECT count(*) FROM t)",
           "UPDATE OR REPLACE t SET a=a-1", "SELECT * FROM t", "INSERT INTO t SELECT a+10,b FROM t",
           "INSERT INTO t SELECT a+100,a FROM t", "SELECT * FROM t", "DELETE FROM t",
           "SELECT * FROM t NOT INDEXED");
}

static void
upserts(void **state)
{
    (void)state;
    SCRIPT("CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE, c UNIQUE, d DEFAULT 5)",
           "INSERT INTO t(a,b,c) VALUES(1,10,20),(2,11,21)",
           "INSERT INTO t(b,c) VALUES(10,99) ON CONFLICT(b) DO UPDATE SET c=c+excluded.c",
           "INSERT INTO t(b,c) VALUES(10,1) ON CONFLICT(b) DO UPDATE SET c=0 WHERE c<100",
           "INSERT INTO t(b,c) VALUES(10,1) ON CONFLICT DO NOTHING",
           "INSERT INTO t(b,c) VALUES(10,1) ON CONFLICT(c) DO NOTHING",
           "INSERT INTO t(a,b,c) VALUES(2,10,21) ON CONFLICT(c) DO UPDATE SET d='c' "
           "ON CONFLICT(b) DO UPDATE SET d='b' ON CONFLICT(a) DO UPDATE SET d='a' RETURNING *",
           "INSERT INTO t(a,b,c) VALUES(2,10,22) ON CONFLICT(c) DO UPDATE SET d='c' "
           "ON CONFLICT(a) DO UPDATE SET d='a' ON CONFLICT(b) DO UPDATE SET d='b' RETURNING *",
           "INSERT INTO t(a,b,c) VALUES(7,10,22) ON CONFLICT(c) DO UPDATE SET d='c' "
           "ON CONFLICT DO UPDATE SET d='any',a=excluded.a+excluded.rowid RETURNING *",
           "INSERT INTO t(b,c) SELECT b,c FROM t WHERE true ON CONFLICT DO NOTHING",
           "INSERT OR REPLACE INTO t(a,b,c) VALUES(1,11,50) ON CONFLICT(a) DO NOTHING",
           "INSERT OR REPLACE INTO t(a,b,c) VALUES(2,10,50) ON CONFLICT(c) DO NOTHING",
           "INSERT INTO t(a,b,c) VALUES(2,60,60),(2,61,61) ON CONFLICT(a) DO UPDATE SET "
           "(b,c)=(excluded.b,excluded.c)",
           "SELECT * FROM t NOT INDEXED");
}

static void
constraints(void **state)
{
    (void)state;
    SCRIPT("CREATE TABLE t(a NOT NULL ON CONFLICT REPLACE DEFAULT 7, b NOT NULL ON CONFLICT "
           "IGNORE, c CHECK(c>0), d TEXT UNIQUE ON CONFLICT REPLACE, e UNIQUE, "
           "CONSTRAINT sum CHECK(coalesce(c+e,1)<100))",
           "INSERT INTO t VALUES(NULL,1,1,'x',1)", "INSERT INTO t VALUES(1,NULL,1,'x',1)",
           "INSERT INTO t VALUES(1,1,0,'x',1)", "INSERT OR REPLACE INTO t VALUES(1,1,0,'x',1)",
           "INSERT OR IGNORE INTO t VALUES(1,1,0,'x',1)", "INSERT INTO t VALUES(1,1,1,'x',1)",
           "INSERT INTO t VALUES(1,1,90,'x',10)", "INSERT INTO t VALUES(2,2,2,'x',2)",
           "INSERT INTO t VALUES(3,3,3,'y',3),(4,4,4,'z',3)", "SELECT rowid,* FROM t",
           "INSERT OR FAIL INTO t VALUES(5,5,5,'p',5),(6,6,6,'q',5),(7,7,7,'r',7)",
           "UPDATE t SET d='x'", "SELECT rowid,* FROM t", "UPDATE t SET c=-c",
           "UPDATE OR IGNORE t SET e=2", "UPDATE OR REPLACE t SET a=NULL,e=e",
           "UPDATE t SET b=NULL", "SELECT rowid,* FROM t");
}

static void
without_rowid(void **state)
{
    (void)state;
    SCRIPT("CREATE TABLE w(a TEXT COLLATE NOCASE, b, c UNIQUE, PRIMARY KEY(b DESC,a)) WITHOUT "
           "ROWID",
           "CREATE INDEX wc ON w(c,b)", "INSERT INTO w VALUES('A',1,1),('b',2,NULL),('c',2,NULL)",
           "INSERT INTO w VALUES('a',1,9)", "INSERT INTO w VALUES('z',1,1)",
           "INSERT INTO w VALUES(NULL,1,5)", "REPLACE INTO w VALUES('a',1,7)", "SELECT * FROM w",
           "UPDATE w SET a=upper(a),c=c+1", "SELECT * FROM w", "UPDATE w SET b=3",
           "UPDATE w SET a='x'", "UPDATE OR REPLACE w SET a='x'", "SELECT * FROM w",
           "INSERT INTO w VALUES('X',2,5) ON CONFLICT(a,b) DO UPDATE SET c=excluded.c,a='y'",
           "SELECT * FROM w", "DELETE FROM w WHERE c=5 RETURNING *", "SELECT * FROM w");
}

static void
generated_and_strict(void **state)
{
    (void)state;
    SCRIPT("CREATE TABLE g(a INT, b INT AS (a*2) STORED, c TEXT AS (b||'x') VIRTUAL UNIQUE, "
           "d AS (c||'!') NOT NULL, CHECK(b<>8))",
           "INSERT INTO g VALUES(1)", "INSERT INTO g(a) VALUES(2),(3)", "INSERT INTO g VALUES(1)",
           "INSERT INTO g VALUES(NULL)", "INSERT INTO g VALUES(4)", "SELECT * FROM g",
           "UPDATE g SET a=a+10", "UPDATE g SET a=12 WHERE a=11", "SELECT * FROM g",
           "CREATE INDEX gd ON g(d,b)", "UPDATE g SET a=a-5 WHERE d='24x!'", "SELECT * FROM g",
           "DELETE FROM g WHERE c='26x'", "SELECT * FROM g",
           "CREATE TABLE s(i INT, r REAL, t TEXT UNIQUE, b BLOB, x ANY) STRICT",
           "INSERT INTO s VALUES('5',5,5,x'05','5')", "INSERT INTO s VALUES('x',1,'a',x'',1)",
           "INSERT INTO s VALUES(1,'x','a',x'',1)", "INSERT INTO s VALUES(1,1,x'61',x'',1)",
           "INSERT INTO s VALUES(1,1,'a','b',1)", "INSERT OR IGNORE INTO s VALUES(1.5,1,'a',x'',1)",
           "INSERT INTO s VALUES(NULL,NULL,NULL,NULL,NULL)",
           "INSERT INTO s VALUES(1.0,1,'q',NULL,1.0)", "INSERT INTO s VALUES('x',1,'q',NULL,1.0)",
           "UPDATE s SET i='y'", "UPDATE s SET x=i||'z'", "SELECT * FROM s");
}

static void
partial_and_expression_indexes(void **state)
{
    (void)state;
    SCRIPT(
        "CREATE TABLE t(a,b,c)", "CREATE UNIQUE INDEX p ON t(a) WHERE b>0",
        "CREATE UNIQUE INDEX e ON t(a+b, c COLLATE NOCASE)",
        "INSERT INTO t VALUES(1,1,'x'),(1,0,'x'),(1,-1,'x')", "INSERT INTO t VALUES(1,2,'q')",
        "INSERT INTO t VALUES(2,0,'X')", "INSERT OR IGNORE INTO t VALUES(2,0,'X')",
        "INSERT OR REPLACE INTO t VALUES(2,0,'X')", "SELECT rowid,* FROM t", "UPDATE t SET b=b+2",
        "UPDATE OR IGNORE t SET b=b+2", "SELECT rowid,* FROM t", "UPDATE t SET b=-b",
        "UPDATE OR REPLACE t SET a=1,b=5", "SELECT rowid,* FROM t",
        "INSERT INTO t VALUES(1,9,'n') ON CONFLICT(a) WHERE b>0 DO UPDATE SET c='up' RETURNING *",
        "SELECT rowid,* FROM t", "DELETE FROM t WHERE b>0", "SELECT rowid,* FROM t",
        "CREATE TABLE u(a,b)", "INSERT INTO u VALUES(1,2),(1,3),(2,2)",
        "CREATE UNIQUE INDEX ua ON u(a)", "CREATE UNIQUE INDEX ue ON u(a*0)",
        "CREATE UNIQUE INDEX uab ON u(b,a)", "SELECT * FROM u WHERE b=2");
}

static void
triggers(void **state)
{
    (void)state;
    SCRIPT(
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b)", "CREATE TABLE log(x,y,z)",
        "CREATE TRIGGER t1 AFTER INSERT ON t BEGIN INSERT INTO log VALUES('ai',new.a,new.b); END",
        "CREATE TRIGGER t2 BEFORE INSERT ON t WHEN new.b>5 BEGIN INSERT INTO log SELECT "
        "'bi',new.a,new.rowid; UPDATE log SET z=z+1 WHERE x='bi'; END",
        "INSERT INTO t(b) VALUES(1),(10)", "SELECT * FROM log", "SELECT last_insert_rowid()",
        "CREATE TRIGGER t3 AFTER UPDATE OF b ON t BEGIN INSERT INTO log VALUES('au',old.b,new.b); "
        "END",
        "UPDATE t SET a=a+5", "UPDATE t SET b=b+5", "SELECT * FROM log",
        "CREATE TRIGGER t4 BEFORE DELETE ON t BEGIN SELECT raise(ignore) WHERE old.b=6; SELECT "
        "raise(abort,'no way') WHERE old.b=15; END",
        "DELETE FROM t WHERE b=6", "DELETE FROM t", "SELECT * FROM t");
}

/* INSTEAD OF. */
static void
views(void **state)
{
    (void)state;
    SCRIPT(
        "CREATE TABLE t(a INTEGER PRIMARY KEY, b)", "INSERT INTO t VALUES(6,6),(7,15)",
        "CREATE VIEW v AS SELECT a, b*2 AS c FROM t", "INSERT INTO v VALUES(1,2)",
        "CREATE TRIGGER vi INSTEAD OF INSERT ON v BEGIN INSERT INTO t VALUES(new.a,new.c/2); END",
        "CREATE TRIGGER vu INSTEAD OF UPDATE ON v BEGIN UPDATE t SET a=new.a,b=new.c/2 WHERE "
        "a=old.a; END",
        "CREATE TRIGGER vd INSTEAD OF DELETE ON v BEGIN DELETE FROM t WHERE a=old.a; END",
        "INSERT INTO v VALUES(100,222)", "INSERT INTO v(c,a) VALUES(444,200)", "SELECT * FROM t",
        "UPDATE v SET c=c+2 WHERE a>=100", "UPDATE v SET c=c+2 WHERE a>=100 RETURNING *",
        "DELETE FROM v WHERE c>300", "SELECT * FROM t");
}

static void
recursive_triggers(void **state)
{
    (void)state;
    SCRIPT("CREATE TABLE r(n INTEGER PRIMARY KEY)",
           "CREATE TRIGGER rt AFTER INSERT ON r WHEN new.n<50 BEGIN INSERT INTO r VALUES(new.n+1); "
           "END",
           "INSERT INTO r VALUES(1)", "SELECT count(*) FROM r", ".rec", "INSERT INTO r VALUES(10)",
           "SELECT count(*),max(n) FROM r");
}

static void
autoincrement(void **state)
{
    (void)state;
    SCRIPT("CREATE TABLE ai(a INTEGER PRIMARY KEY AUTOINCREMENT, b)",
           "INSERT INTO ai(b) VALUES(1),(2)", "DELETE FROM ai", "INSERT INTO ai(b) VALUES(3)",
           "INSERT INTO ai VALUES(100,3)", "INSERT INTO ai(b) VALUES(3)", "SELECT * FROM ai",
           "SELECT * FROM sqlite_sequence");
}

/* Several matches of one target: the last one counts, and the order is the targets'. */
static void
updates_from(void **state)
{
    (void)state;
    SCRIPT("CREATE TABLE t(a INTEGER PRIMARY KEY, b, c)",
           "INSERT INTO t VALUES(1,1,1),(2,2,2),(3,3,3)", "CREATE TABLE u(x,y)",
           "INSERT INTO u VALUES(2,'two'),(1,'one'),(2,'ii'),(9,'nine')",
           "UPDATE t SET b=y FROM u WHERE a=x", "SELECT * FROM t", "UPDATE t SET c=c+1 FROM u",
           "SELECT * FROM t", "CREATE TABLE w(a,b,c, PRIMARY KEY(a DESC,b)) WITHOUT ROWID",
           "INSERT INTO w VALUES(1,1,1),(2,2,2),(2,1,3)",
           "UPDATE w SET c=y FROM u WHERE w.a=u.x RETURNING *", "SELECT * FROM w",
           "UPDATE t SET a=a+10 FROM u WHERE u.x=t.a RETURNING a,b", "SELECT * FROM t");
}

static void
counts_in_triggers(void **state)
{
    (void)state;
    SCRIPT("CREATE TABLE t(a INTEGER PRIMARY KEY AUTOINCREMENT, b)", "CREATE TABLE n(x, y)",
           "CREATE TRIGGER t1 AFTER INSERT ON t WHEN new.b<3 BEGIN "
           "INSERT INTO n VALUES('before', changes()); UPDATE t SET b=b+10; "
           "INSERT INTO n VALUES('update', changes()); INSERT INTO t(b) VALUES(5),(6); "
           "INSERT INTO n VALUES('insert', changes()); END",
           "INSERT INTO t(b) VALUES(7),(1),(2)", "SELECT * FROM t", "SELECT * FROM n",
           "SELECT changes(), * FROM sqlite_sequence", "INSERT INTO t(b) SELECT 1 WHERE 0",
           "DELETE FROM sqlite_sequence", "INSERT INTO t(b) SELECT 1 WHERE 0",
           "SELECT * FROM sqlite_sequence");
}

/* A row that UPDATE replaces: its triggers must not write to the table. */
static void
pinned_rows(void **state)
{
    (void)state;
    SCRIPT(".rec", "CREATE TABLE t1(a UNIQUE ON CONFLICT REPLACE, b)",
           "INSERT INTO t1(a,b) VALUES(4,12),(9,13)", "CREATE INDEX i0 ON t1(b)",
           "CREATE TRIGGER tr0 DELETE ON t1 BEGIN UPDATE t1 SET b = a; END", "UPDATE t1 SET a=0",
           "SELECT * FROM t1");
}

static void
foreign_keys(void **state)
{
    (void)state;
    SCRIPT(".fk", "CREATE TABLE p(id INTEGER PRIMARY KEY, k UNIQUE, a, b, UNIQUE(a,b))",
           "CREATE TABLE c1(x REFERENCES p)",
           "CREATE TABLE c2(x REFERENCES p(k) ON DELETE CASCADE ON UPDATE CASCADE)",
           "CREATE TABLE c3(x, y, FOREIGN KEY(y,x) REFERENCES p(a,b) ON DELETE SET NULL ON UPDATE "
           "SET DEFAULT)",
           "CREATE TABLE c4(x DEFAULT 7 REFERENCES p(k) ON DELETE SET DEFAULT)",
           "CREATE TABLE c5(x REFERENCES p(id) ON DELETE RESTRICT)",
           "INSERT INTO p VALUES(1,'k1',1,1),(2,'k2',2,2),(3,7,3,3),(4,'k4',4,4),(5,'k5',5,5)",
           "INSERT INTO c1 VALUES(1),('2'),(NULL)", "INSERT INTO c1 VALUES(9)",
           "INSERT INTO c1 VALUES('x')", "INSERT OR IGNORE INTO c1 VALUES(9)",
           "INSERT INTO c2 VALUES('k1'),('k2'),('K1')", "INSERT INTO c2 VALUES('k1'),('k2'),('k5')",
           "INSERT INTO c3(x,y) VALUES(1,1),(2,2),(1,NULL)", "INSERT INTO c3(x,y) VALUES(1,2)",
           "INSERT INTO c4 VALUES('k4')", "INSERT INTO c5 VALUES(3)", "DELETE FROM p WHERE id=1",
           "DELETE FROM p WHERE id=3", "DELETE FROM p WHERE id=4", "DELETE FROM p WHERE id=5",
           "SELECT * FROM c2", "SELECT * FROM c4", "UPDATE p SET k='new' WHERE k='k2'",
           "SELECT * FROM c2", "UPDATE p SET a=a+10", "SELECT * FROM c3",
           "UPDATE p SET id=id+10 WHERE id=3", "UPDATE p SET id=id WHERE id=3",
           "UPDATE p SET id=1 WHERE id=1", "DELETE FROM c1", "DELETE FROM p WHERE id=1",
           "SELECT * FROM c2", "REPLACE INTO p VALUES(2,'rep',20,20)", "SELECT * FROM c2",
           "SELECT * FROM p", "INSERT OR REPLACE INTO p VALUES(50,'rep',20,20)", "SELECT * FROM p",
           "CREATE TABLE s(id INTEGER PRIMARY KEY, up REFERENCES s ON DELETE CASCADE)",
           "INSERT INTO s VALUES(1,1)", "INSERT INTO s VALUES(2,3),(3,2)",
           "INSERT INTO s VALUES(4,5)", "UPDATE s SET id=10,up=10 WHERE id=1",
           "UPDATE s SET id=11 WHERE id=10", "UPDATE s SET up=99 WHERE id=10",
           "DELETE FROM s WHERE id=2", "SELECT * FROM s",
           "INSERT INTO s WITH RECURSIVE n(i) AS (VALUES(20) UNION ALL SELECT i+1 FROM n WHERE "
           "i<60) SELECT i,max(i-1,20) FROM n",
           "SELECT count(*) FROM s", "DELETE FROM s WHERE id=20", "SELECT count(*) FROM s",
           "CREATE TABLE w(a TEXT COLLATE NOCASE, b, PRIMARY KEY(a,b)) WITHOUT ROWID",
           "CREATE TABLE wc(x,y, FOREIGN KEY(x,y) REFERENCES w ON UPDATE CASCADE)",
           "INSERT INTO w VALUES('A',1)", "INSERT INTO wc VALUES('a',1)",
           "INSERT INTO wc VALUES('a',2)", "UPDATE w SET a='B'", "SELECT * FROM wc",
           "UPDATE w SET a='b'", "SELECT * FROM wc", "DELETE FROM w",
           "CREATE TRIGGER tw AFTER DELETE ON wc BEGIN DELETE FROM w; END", "DELETE FROM wc",
           "SELECT * FROM w");
}

/* ---- random schemas and statements ---- */

typedef struct Gen {
    Rng rng;
    char text[4000];
    size_t at;
    u32 columns;
    bool without_rowid, strict, alias, has_generated;
    bool generated[6];
    u32 key; /* WITHOUT ROWID: the key column. */
} Gen;

static u64
below(Gen *g, u64 n)
{
    return rng_below(&g->rng, n);
}

static void add(Gen *g, const char *format, ...) PRINTF_LIKE(2, 3);
static void
add(Gen *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(g->text + g->at, sizeof(g->text) - g->at, format, args);
    va_end(args);
    assert_true(n >= 0 && g->at + (size_t)n < sizeof(g->text));
    g->at += (size_t)n;
}

static const char *
conflict_clause(Gen *g, u32 one_in)
{
    static const char *const clauses[] = {" ON CONFLICT ABORT", " ON CONFLICT FAIL",
                                          " ON CONFLICT IGNORE", " ON CONFLICT REPLACE"};
    return below(g, one_in) == 0 ? clauses[below(g, COUNT_OF(clauses))] : "";
}

static void
add_column(Gen *g, u32 c)
{
    static const char *const types[] = {"", "INT", "TEXT", "REAL", "NUMERIC", "BLOB"};
    static const char *const strict_types[] = {"ANY", "INT", "TEXT", "REAL", "ANY", "INTEGER"};
    u64 type = below(g, 6);
    add(g, "%sc%u %s", c > 0 ? "," : "", c, (g->strict ? strict_types : types)[type]);
    /* Older libraries do not look at the types of virtual columns. */
    bool may_generate = !g->strict || sqlite3_libversion_number() >= 3054000;
    if (c > 0 && c != g->key && may_generate && below(g, 7) == 0) {
        g->generated[c] = g->has_generated = true;
        add(g, " AS (c%u%s) %s", c - 1, below(g, 2) ? "" : "||'g'", below(g, 2) ? "STORED" : "");
        return;
    }
    if (below(g, 6) == 0) add(g, " COLLATE %s", below(g, 2) ? "NOCASE" : "RTRIM");
    if (below(g, 4) == 0) add(g, " DEFAULT %s", below(g, 2) ? "3" : "'d'");
    if (below(g, 5) == 0) add(g, " NOT NULL%s", conflict_clause(g, 2));
    if (below(g, 4) == 0) add(g, " UNIQUE%s", conflict_clause(g, 3));
    if (below(g, 8) == 0) add(g, " CHECK(c%u<>4)", c);
}

static void
make_schema_text(SqlKit *kit, Gen *g)
{
    g->columns = 2 + (u32)below(g, 4);
    g->without_rowid = below(g, 3) == 0;
    g->strict = below(g, 5) == 0;
    g->alias = !g->without_rowid && below(g, 2) == 0;
    g->key = g->without_rowid ? (u32)below(g, g->columns) : 99;
    g->at = 0;
    add(g, "CREATE TABLE t(");
    for (u32 c = 0; c < g->columns; c++) {
        if (c == 0 && g->alias) {
            add(g, "c0 INTEGER PRIMARY KEY%s", conflict_clause(g, 4));
        } else {
            add_column(g, c);
        }
    }
    if (g->without_rowid) {
        add(g, ", PRIMARY KEY(c%u%s)%s", g->key, below(g, 3) == 0 ? " DESC" : "",
            conflict_clause(g, 4));
    }
    if (below(g, 4) == 0 && !g->has_generated) {
        add(g, ", UNIQUE(c0,c%u)%s", g->columns - 1, conflict_clause(g, 3));
    }
    add(g, ")%s%s%s", g->without_rowid ? "WITHOUT ROWID" : "",
        g->without_rowid && g->strict ? "," : "", g->strict ? "STRICT" : "");
    kit_both(kit, g->text);
    for (u64 n = below(g, 3); n > 0; n--) {
        g->at = 0;
        add(g, "CREATE %sINDEX i%u ON t(", below(g, 3) == 0 ? "UNIQUE " : "", (u32)n);
        u32 first = (u32)below(g, g->columns);
        if (below(g, 5) == 0) {
            add(g, "c%u||'e'", first);
        } else {
            add(g, "c%u%s", first, below(g, 3) == 0 ? " DESC" : "");
        }
        if (below(g, 2)) add(g, ",c%u", (first + 1) % g->columns);
        add(g, ")");
        if (below(g, 4) == 0) add(g, " WHERE c%u IS NOT NULL", (u32)below(g, g->columns));
        kit_both(kit, g->text);
    }
}

static void
add_value(Gen *g)
{
    static const char *const values[] = {"NULL", "0",     "1",   "2",   "3",   "4",    "5",
                                         "6",    "1.0",   "2.5", "'a'", "'A'", "'a '", "'1'",
                                         "'4'",  "x'61'", "-1",  "7",   "8",   "9"};
    add(g, "%s", values[below(g, COUNT_OF(values))]);
}

static const char *
or_clause(Gen *g)
{
    static const char *const clauses[] = {"",           "",         "",           "OR ABORT ",
                                          "OR IGNORE ", "OR FAIL ", "OR REPLACE "};
    return clauses[below(g, COUNT_OF(clauses))];
}

/* NOT INDEXED: the order of the rows is the table's in both engines. */
static void
add_where(Gen *g)
{
    if (g->without_rowid) {
        /* SQLite scans indexes of such tables in spite of NOT INDEXED: one row at most. */
        add(g, " WHERE c%u=", g->key);
        add_value(g);
        return;
    }
    u32 c = (u32)below(g, g->columns);
    while (g->generated[c]) {
        c--; /* The first column never is. */
    }
    switch (below(g, 5)) {
    case 0: return;
    case 1: add(g, " WHERE c%u IS NOT NULL", c); return;
    case 2: add(g, " WHERE c%u>", c); break;
    default: add(g, " WHERE c%u=", c);
    }
    add_value(g);
}

static void
add_returning(Gen *g)
{
    /* Older libraries show integers of REAL columns unconverted. */
    if (below(g, 3) == 0 && sqlite3_libversion_number() >= 3054000) add(g, " RETURNING *");
}

static void
add_sets(Gen *g)
{
    bool any = false;
    for (u32 c = 0; c < g->columns; c++) {
        if (g->generated[c] || below(g, 3) != 0) continue;
        add(g, "%sc%u=", any ? "," : "", c);
        any = true;
        if (below(g, 2)) {
            add(g, "c%u+1", (u32)below(g, g->columns));
        } else {
            add_value(g);
        }
    }
    if (!any) add(g, "c%u=c%u", g->key == 99 ? 0 : g->key, g->key == 99 ? 0 : g->key);
}

static void
make_statement(Gen *g)
{
    g->at = 0;
    u64 kind = below(g, 10);
    if (kind < 6) {
        add(g, "INSERT %sINTO t VALUES", or_clause(g));
        for (u64 rows = 1 + below(g, 3); rows > 0; rows--) {
            add(g, "(");
            bool first = true;
            for (u32 c = 0; c < g->columns; c++) {
                if (g->generated[c]) continue;
                if (!first) add(g, ",");
                first = false;
                add_value(g);
            }
            add(g, ")%s", rows > 1 ? "," : "");
        }
        if (below(g, 5) == 0) {
            if (below(g, 2)) {
                add(g, " ON CONFLICT DO NOTHING");
            } else {
                add(g, " ON CONFLICT DO UPDATE SET ");
                add_sets(g);
            }
        }
        add_returning(g);
    } else if (kind < 9) {
        add(g, "UPDATE %st NOT INDEXED SET ", or_clause(g));
        add_sets(g);
        add_where(g);
        add_returning(g);
    } else {
        add(g, "DELETE FROM t NOT INDEXED");
        add_where(g);
        add_returning(g);
    }
}

static void
random_statements(void **state)
{
    (void)state;
    u64 first = 1, last = 60;
    const char *seed_text = getenv("WEFT_SEED");
    if (seed_text != NULL) first = last = strtoull(seed_text, NULL, 10);
    const char *count = getenv("WEFT_SEEDS");
    if (count != NULL) last = first + strtoull(count, NULL, 10);
    for (u64 seed = first; seed <= last; seed++) {
        SqlKit kit;
        Gen g = {0};
        rng_seed(&g.rng, seed);
        kit_open(&kit);
        if (getenv("WEFT_TRACE")) print_message("seed %llu\n", (unsigned long long)seed);
        make_schema_text(&kit, &g);
        char schema[sizeof(g.text)];
        memcpy(schema, g.text, sizeof(schema));
        for (u32 n = 0; n < 60; n++) {
            make_statement(&g);
            kit_both(&kit, g.text);
            g.at = 0;
            add(&g, "SELECT * FROM t NOT INDEXED");
            if (g.without_rowid) add(&g, " ORDER BY c%u", g.key);
            kit_both(&kit, g.text);
            kit_check(&kit);
        }
        kit_close(&kit);
    }
}

/* ---- random foreign keys and triggers ---- */

static const char *
action(Gen *g)
{
    static const char *const actions[] = {"NO ACTION", "RESTRICT", "SET NULL", "SET DEFAULT",
                                          "CASCADE"};
    return actions[below(g, COUNT_OF(actions))];
}

static void
make_family(SqlKit *kit, Gen *g)
{
    bool without = below(g, 4) == 0 && sqlite3_libversion_number() >= 3054000;
    g->at = 0;
    add(g, "CREATE TABLE p(a INTEGER PRIMARY KEY, b UNIQUE, c, d, UNIQUE(c,d))%s",
        without ? "WITHOUT ROWID" : "");
    kit_both(kit, g->text);
    g->at = 0;
    add(g, "CREATE TABLE c(x DEFAULT 1 REFERENCES p ON DELETE %s ON UPDATE %s", action(g),
        action(g));
    add(g, ", y DEFAULT 2 REFERENCES p(b) ON UPDATE %s ON DELETE %s", action(g), action(g));
    add(g, ", z INTEGER PRIMARY KEY, FOREIGN KEY(y,x) REFERENCES p(d,c) ON DELETE %s ON UPDATE %s)",
        action(g), action(g));
    kit_both(kit, g->text);
    g->at = 0;
    /* A table that refers to itself with SET NULL: SQLite then misses violations by REPLACE. */
    static const char *const own[] = {"NO ACTION", "RESTRICT", "CASCADE", "SET DEFAULT"};
    add(g, "CREATE TABLE s(i INTEGER PRIMARY KEY, up REFERENCES s ON DELETE %s ON UPDATE %s)",
        own[below(g, 4)], own[below(g, 4)]);
    kit_both(kit, g->text);
    kit_both(kit, "CREATE TABLE log(n,t)");
}

static void
make_trigger(SqlKit *kit, Gen *g, u32 number)
{
    static const char *const tables[] = {"p", "c", "s"};
    static const char *const keys[] = {"a", "z", "i"};
    static const char *const events[] = {"INSERT", "UPDATE", "DELETE"};
    static const char *const ors[] = {"", " OR IGNORE", " OR REPLACE"};
    u64 table = below(g, 3), event = below(g, 3);
    const char *row = event == 2 ? "old" : event == 0 || below(g, 2) ? "new" : "old";
    g->at = 0;
    add(g, "CREATE TRIGGER tr%u %s %s ON %s ", number, below(g, 2) ? "BEFORE" : "AFTER",
        events[event], tables[table]);
    if (below(g, 3) == 0) add(g, "WHEN %s.%s>%u ", row, keys[table], (u32)below(g, 5));
    add(g, "BEGIN INSERT INTO log VALUES('tr%u',%s.%s); ", number, row, keys[table]);
    switch (below(g, 6)) {
    case 0: add(g, "DELETE FROM c WHERE z=%s.%s; ", row, keys[table]); break;
    case 1: add(g, "UPDATE p SET b=b+1 WHERE a=%s.%s; ", row, keys[table]); break;
    case 2:
        add(g, "INSERT%s INTO s VALUES(%s.%s,NULL); ", ors[below(g, 3)], row, keys[table]);
        break;
    case 3:
        add(g, "SELECT raise(%s) WHERE %s.%s=%u; ",
            below(g, 2)   ? "IGNORE"
            : below(g, 2) ? "ABORT,'stop'"
                          : "FAIL,'fail'",
            row, keys[table], (u32)below(g, 6));
        break;
    default: break;
    }
    add(g, "END");
    kit_both(kit, g->text);
}

static void
add_small(Gen *g)
{
    if (below(g, 6) == 0) {
        add(g, "NULL");
    } else {
        add(g, "%u", (u32)below(g, 6));
    }
}

static void
make_family_statement(Gen *g)
{
    static const char *const tables[] = {"p", "c", "s"};
    static const char *const columns[][4] = {
        {"a", "b", "c", "d"}, {"x", "y", "z", "x"}, {"i", "up", "i", "up"}};
    static const u32 counts[] = {4, 3, 2};
    u64 table = below(g, 3);
    g->at = 0;
    switch (below(g, 4)) {
    case 0:
    case 1:
        add(g, "INSERT %sINTO %s VALUES", or_clause(g), tables[table]);
        for (u64 rows = 1 + below(g, 2); rows > 0; rows--) {
            for (u32 c = 0; c < counts[table]; c++) {
                add(g, c == 0 ? "(" : ",");
                add_small(g);
            }
            add(g, rows > 1 ? ")," : ")");
        }
        break;
    case 2:
        /* Older libraries check again wrongly after REPLACE with foreign keys. */
        add(g, "UPDATE %s%s NOT INDEXED SET %s=",
            sqlite3_libversion_number() < 3054000 ? "" : or_clause(g), tables[table],
            columns[table][below(g, 4)]);
        if (below(g, 2)) {
            add_small(g);
        } else {
            add(g, "%s+1", columns[table][0]);
        }
        break;
    default: add(g, "DELETE FROM %s NOT INDEXED", tables[table]);
    }
    if (g->text[0] != 'I' && below(g, 3) != 0) {
        add(g, " WHERE %s=", columns[table][below(g, 4)]);
        add_small(g);
    }
}

static void
run_family(u64 seed)
{
    SqlKit kit;
    Gen g = {0};
    rng_seed(&g.rng, seed);
    kit_open(&kit);
    if (getenv("WEFT_TRACE")) print_message("seed %llu\n", (unsigned long long)seed);
    kit.env.foreign_keys = below(&g, 4) != 0;
    kit.env.recursive_triggers = below(&g, 2) != 0;
    if (kit.env.foreign_keys) kit_theirs(&kit, "PRAGMA foreign_keys=1");
    if (kit.env.recursive_triggers) kit_theirs(&kit, "PRAGMA recursive_triggers=1");
    make_family(&kit, &g);
    for (u64 n = below(&g, 4); n > 0; n--) {
        make_trigger(&kit, &g, (u32)n);
    }
    for (u32 n = 0; n < 60; n++) {
        make_family_statement(&g);
        kit_both(&kit, g.text);
        kit_both(&kit, "SELECT * FROM p NOT INDEXED ORDER BY a");
        kit_both(&kit, "SELECT * FROM c NOT INDEXED");
        kit_both(&kit, "SELECT * FROM s NOT INDEXED");
        kit_both(&kit, "SELECT * FROM log");
        kit_check(&kit);
    }
    kit_close(&kit);
}

static void
random_families(void **state)
{
    (void)state;
    u64 first = 1, last = 40;
    const char *seed_text = getenv("WEFT_SEED");
    if (seed_text != NULL) first = last = strtoull(seed_text, NULL, 10);
    const char *count = getenv("WEFT_SEEDS");
    if (count != NULL) last = first + strtoull(count, NULL, 10);
    for (u64 seed = first; seed <= last; seed++) {
        run_family(seed);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rowids),
        cmocka_unit_test(row_by_row),
        cmocka_unit_test(upserts),
        cmocka_unit_test(constraints),
        cmocka_unit_test(without_rowid),
        cmocka_unit_test(generated_and_strict),
        cmocka_unit_test(partial_and_expression_indexes),
        cmocka_unit_test(triggers),
        cmocka_unit_test(views),
        cmocka_unit_test(recursive_triggers),
        cmocka_unit_test(autoincrement),
        cmocka_unit_test(updates_from),
        cmocka_unit_test(counts_in_triggers),
        cmocka_unit_test(pinned_rows),
        cmocka_unit_test(foreign_keys),
        cmocka_unit_test(random_statements),
        cmocka_unit_test(random_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
