/*
 * parse_walk_test.c -- the walk misses no identifier and no expression.
 *
 * Method: in each statement every identifier, and nothing else, begins with "q" ("Q" inside
 * quotes), and every parameter stands for an expression of its own.  The walk must meet exactly the
 * words beginning so, each at its place, and as many parameters as the text has.
 */
#include "sql/parse/parse.h"
#include "sql/parse/walk.h"
#include "unit/cmocka_all.h"

#define NAMES_MAX 64

typedef struct Seen {
    const AstName *names[NAMES_MAX];
    AstRole roles[NAMES_MAX];
    u32 count, params, selects;
} Seen;

static void
see_name(void *arg, AstRole role, const AstName *name)
{
    Seen *seen = arg;
    assert_true(seen->count < NAMES_MAX);
    seen->names[seen->count] = name;
    seen->roles[seen->count++] = role;
}

static bool
see_expr(void *arg, const AstExpr *expr)
{
    Seen *seen = arg;
    if (expr->kind == AST_EXPR_PARAM) seen->params++;
    return true;
}

static bool
see_select(void *arg, const AstSelect *select)
{
    Seen *seen = arg;
    assert_true(select->count > 0);
    seen->selects++;
    return true;
}

static const char *const statements[] = {
    "WITH qa(qb, qc) AS (SELECT ? qd FROM qe.qf AS qg INDEXED BY qj, qh(?) qi JOIN (qk JOIN ql "
    "USING "
    "(qm, qn)) qo ON ? WHERE ? GROUP BY ?, qp HAVING ? WINDOW qq AS (qr PARTITION BY ? ORDER BY ? "
    "ROWS BETWEEN ? PRECEDING AND ? FOLLOWING) ORDER BY ? COLLATE qs LIMIT ? OFFSET ?) VALUES (?, "
    "qt.qu, qv.qw.qx), (?, ?, ?) UNION SELECT qy.*, *, ?",
    "SELECT qa(DISTINCT ?, qb ORDER BY ? DESC) FILTER (WHERE ?) OVER (qc ORDER BY ?), qd(*) OVER "
    "qe, "
    "- ? + ?, ? AND ? AND ?, ? OR ?, ? BETWEEN ? AND ?, ? LIKE ? ESCAPE ?, ? IN (?, ?), ? IN "
    "(SELECT "
    "?), ? IN qf.qg, ? IN qh(?), EXISTS (SELECT ?), (SELECT ?), (?, ?), CASE ? WHEN ? THEN ? ELSE "
    "? "
    "END, CAST(? AS INT), ? ISNULL, ? COLLATE qi, ? IS ?, ? -> ?, NOT ?",
    "INSERT INTO qa.qb AS qc (qd, qe) SELECT ? ON CONFLICT (qf, ?) WHERE ? DO UPDATE SET qg = ?, "
    "(qh,"
    " qi) = (?, ?) WHERE ? ON CONFLICT DO UPDATE SET qj = ? RETURNING ? AS qk, qa.*",
    "UPDATE qa.qb AS qc INDEXED BY qd SET qe = ? FROM qf WHERE ? RETURNING ?",
    "WITH qa AS (SELECT ?) DELETE FROM qb.qc AS qd INDEXED BY qe WHERE ? RETURNING ? qf",
    "CREATE TABLE qa.qb (qc INT CONSTRAINT qd NOT NULL CHECK (?) COLLATE qe REFERENCES qf (qg) "
    "MATCH "
    "qh DEFAULT (?), qi AS (?) VIRTUAL, CONSTRAINT qj PRIMARY KEY (qk, qh), UNIQUE (ql COLLATE qm) "
    "CONSTRAINT qn CHECK (?), FOREIGN KEY (qo, qp) REFERENCES qq (qr, qs), CONSTRAINT qt)",
    "CREATE TABLE qa AS SELECT ?",
    "CREATE UNIQUE INDEX qa.qb ON qc (qd COLLATE qe, ? + ?) WHERE ?",
    "CREATE VIEW qa.qb (qc, qd) AS SELECT qe",
    "CREATE TRIGGER qa.qb AFTER UPDATE OF qc, qd ON qe.qf WHEN ? BEGIN UPDATE qg SET qh = ?; "
    "INSERT "
    "INTO qi (qj) SELECT ?; DELETE FROM qk WHERE ?; SELECT RAISE(ABORT, ?), ql; END",
    "CREATE VIRTUAL TABLE qa.qb USING qc (x y z)",
    "DROP TABLE qa.qb",
    "DROP INDEX qa.qb",
    "DROP TRIGGER qa.qb",
    "DROP VIEW qa",
    "ALTER TABLE qa.qb RENAME TO qc",
    "ALTER TABLE qa RENAME qb TO qc",
    "ALTER TABLE qa ADD qb INT CONSTRAINT qc DEFAULT (?) REFERENCES qd",
    "ALTER TABLE qa ADD CONSTRAINT qb CHECK (? > qc)",
    "ALTER TABLE qa DROP CONSTRAINT qb",
    "ALTER TABLE qa ALTER qb SET NOT NULL",
    "SAVEPOINT qa",
    "ROLLBACK TO qa",
    "PRAGMA qa.qb = 5",
    "ATTACH ? AS qa KEY ?",
    "DETACH qa",
    "ANALYZE qa.qb",
    "REINDEX qa.qb",
    "VACUUM qa INTO ?",
    "EXPLAIN SELECT \"Qa\", [Qb].`Qc`, 'Qd'.qe",
};

static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
seen_at(const Seen *seen, size_t offset)
{
    for (u32 i = 0; i < seen->count; i++) {
        Span span = seen->names[i]->span;
        if (span.offset <= offset && offset < span_end(span)) return true;
    }
    return false;
}

/* Two keywords count as names: LIKE names a function, and the word behind a generated column. */
static u32
keywords_met(const char *sql)
{
    return (strstr(sql, "VIRTUAL,") != NULL ? 1u : 0u) + (strstr(sql, " LIKE ") != NULL ? 1u : 0u);
}

static void
every_name_and_expression_is_met(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(statements); i++) {
        const char *sql = statements[i];
        Arena arena;
        ErrMsg msg = {0};
        AstStatement *statement;
        size_t consumed;
        arena_init(&arena, NULL);
        Err err = sql_parse(&arena, SLICE(sql, strlen(sql)), NULL, &statement, &consumed, &msg);
        if (err != OK) fail_msg("%s: %s", sql, err_message(&msg));
        Seen seen = {0};
        AstVisitor visitor = {&seen, see_name, see_expr, see_select};
        u32 words = 0, params = 0;
        ast_walk_statement(&visitor, statement);
        for (size_t at = 0; sql[at] != 0; at++) {
            if (sql[at] == '?') params++;
            if ((sql[at] | 0x20) != 'q' || (at > 0 && is_word(sql[at - 1]))) continue;
            words++;
            if (!seen_at(&seen, at)) fail_msg("%s: missed %s", sql, sql + at);
        }
        if (seen.count != words + keywords_met(sql))
            fail_msg("%s: %u names of %u", sql, seen.count, words);
        if (seen.params != params) fail_msg("%s: %u params of %u", sql, seen.params, params);
        err_clear(&msg);
        arena_free(&arena);
    }
}

static void
roles_are_told(void **state)
{
    (void)state;
    Arena arena;
    AstStatement *statement;
    size_t consumed;
    Slice sql = SLICE_LITERAL("SELECT a.b AS c, f(d) FROM main.t AS u INDEXED BY i");
    static const AstRole roles[] = {AST_ROLE_QUALIFIER, AST_ROLE_COLUMN, AST_ROLE_ALIAS,
                                    AST_ROLE_FUNCTION,  AST_ROLE_COLUMN, AST_ROLE_SCHEMA,
                                    AST_ROLE_TABLE,     AST_ROLE_ALIAS,  AST_ROLE_INDEX};
    Seen seen = {0};
    AstVisitor visitor = {&seen, see_name, NULL, see_select};
    arena_init(&arena, NULL);
    assert_int_equal(sql_parse(&arena, sql, NULL, &statement, &consumed, NULL), OK);
    ast_walk_statement(&visitor, statement);
    assert_int_equal(seen.count, COUNT_OF(roles));
    assert_int_equal(seen.selects, 1);
    for (u32 i = 0; i < COUNT_OF(roles); i++) {
        assert_int_equal(seen.roles[i], roles[i]);
        if (i > 0) assert_true(seen.names[i]->span.offset > seen.names[i - 1]->span.offset);
    }
    arena_free(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_and_expression_is_met),
        cmocka_unit_test(roles_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
