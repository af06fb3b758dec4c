/*
 * parse_limits_test.c -- depth and size: SQLite's limits with SQLite's words (the parser's own
 * stack may reach a little further than SQLite's), long lists without depth, every allocation
 * failed once.
 *
 * Method: statements built by repetition, just below and just above each limit; then one rich
 * statement parsed again and again with the nth allocation failing.
 */
#include "sql/parse/parse.h"
#include "sql/parse/print.h"
#include "unit/cmocka_all.h"

static Err
parse_text(Arena *arena, Slice text, const ParseOptions *options, AstStatement **out, ErrMsg *msg)
{
    size_t consumed;
    Err err = sql_parse(arena, text, options, out, &consumed, msg);
    if (err == OK) assert_int_equal(consumed, text.bytes);
    return err;
}

/* head, then n times `open`, middle, n times `close`. */
static Buf
nested(const char *head, const char *open, const char *middle, const char *close, u32 n)
{
    Buf buf = {0};
    assert_int_equal(buf_append_text(&buf, head), OK);
    for (u32 i = 0; i < n; i++)
        assert_int_equal(buf_append_text(&buf, open), OK);
    assert_int_equal(buf_append_text(&buf, middle), OK);
    for (u32 i = 0; i < n; i++)
        assert_int_equal(buf_append_text(&buf, close), OK);
    return buf;
}

typedef struct Nest {
    const char *head, *open, *middle, *close;
    u32 deepest; /* Accepted with so many, refused with one more. */
    const char *message;
} Nest;

#define TOO_LARGE "Expression tree is too large (maximum depth 1000)"
#define RECURSION "Recursion limit"

static const Nest nests[] = {
    {"SELECT ", "", "a", " AND a", 999, TOO_LARGE},
    {"SELECT ", "", "a", " OR a", 999, TOO_LARGE},
    {"SELECT ", "", "a=1", " AND b=2", 998, TOO_LARGE},
    {"SELECT ", "", "a", " || a", 999, TOO_LARGE},
    {"SELECT ", "NOT ", "a", "", 999, TOO_LARGE},
    {"SELECT ", "- ", "a", "", 999, TOO_LARGE},
    {"SELECT ", "f(", "a", ")", 999, TOO_LARGE},
    {"SELECT ", "(", "1", ")", 2494, RECURSION},
    {"SELECT * FROM ", "(SELECT * FROM ", "t", ")", 498, RECURSION},
    {"", "VALUES((", "VALUES(1)", "))", 831, RECURSION},
};

static void
nesting_ends_in_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(nests); i++) {
        const Nest *n = &nests[i];
        for (u32 over = 0; over < 2; over++) {
            Arena arena;
            ErrMsg msg = {0};
            AstStatement *statement;
            Buf sql = nested(n->head, n->open, n->middle, n->close, n->deepest + over);
            arena_init(&arena, NULL);
            Err err = parse_text(&arena, buf_slice(&sql), NULL, &statement, &msg);
            if (over == 0 && err != OK) {
                fail_msg("%s%s... %u: %s", n->head, n->open, n->deepest, err_message(&msg));
            }
            if (over == 1) {
                if (err == OK) fail_msg("%s%s... %u: accepted", n->head, n->open, n->deepest + 1);
                assert_string_equal(err_message(&msg), n->message);
            }
            err_clear(&msg);
            buf_free(&sql);
            arena_free(&arena);
        }
    }
}

static void
a_lower_depth_limit_is_obeyed(void **state)
{
    (void)state;
    Arena arena;
    ErrMsg msg = {0};
    AstStatement *statement;
    ParseOptions options = {.expr_depth_max = 3};
    arena_init(&arena, NULL);
    assert_int_equal(parse_text(&arena, SLICE_LITERAL("SELECT 1+1+1"), &options, &statement, &msg),
                     OK);
    assert_int_equal(
        parse_text(&arena, SLICE_LITERAL("SELECT 1+1+1+1"), &options, &statement, &msg), ERR_SQL);
    assert_string_equal(err_message(&msg), "Expression tree is too large (maximum depth 3)");
    options = (ParseOptions){.text_bytes_max = 10};
    assert_int_equal(parse_text(&arena, SLICE_LITERAL("SELECT 123"), &options, &statement, &msg),
                     OK);
    assert_int_equal(parse_text(&arena, SLICE_LITERAL("SELECT 1234"), &options, &statement, &msg),
                     ERR_TOOBIG);
    options = (ParseOptions){.param_number_max = 9};
    assert_int_equal(parse_text(&arena, SLICE_LITERAL("SELECT ?9"), &options, &statement, &msg),
                     OK);
    assert_int_equal(parse_text(&arena, SLICE_LITERAL("SELECT ?10"), &options, &statement, &msg),
                     ERR_SQL);
    assert_string_equal(err_message(&msg), "variable number must be between ?1 and ?9");
    err_clear(&msg);
    arena_free(&arena);
}

static void
long_lists_are_no_depth(void **state)
{
    (void)state;
    static const Nest lists[] = {
        {"INSERT INTO t VALUES (0)", "", "", ",(1,2)", 0, NULL},
        {"VALUES (0)", "", "", ",(1)", 20000, NULL},
        {"SELECT a IN (0", ",1", ")", "", 50000, NULL},
        {"SELECT 0", "", "", ",a", 20000, NULL},
        {"SELECT CASE", " WHEN 1 THEN 2", " END", "", 20000, NULL},
        {"SELECT f(0", ",1", ")", "", 999, NULL},
        {"SELECT 1", "", "", " UNION ALL SELECT 1", 499, NULL},
        {"SELECT * FROM t", "", "", ",t", 199, NULL},
        {"SELECT * FROM t ORDER BY 1", "", "", ",1", 20000, NULL},
        {"SELECT ?", "", "", ",?", 32765, NULL},
        {"UPDATE t SET a=1", "", "", ",a=1", 1999, NULL},
        {"CREATE TABLE t(a", ",b", ")", "", 1999, NULL},
        {"SELECT 1", "", "", " UNION ALL SELECT 1", 500, "too many terms in compound SELECT"},
        {"SELECT * FROM t", "", "", ",t", 200, "too many FROM clause terms, max: 200"},
        {"SELECT f(0", ",1", ")", "", 1000, "too many arguments on function f"},
        {"SELECT ?", "", "", ",?", 32766, "too many SQL variables"},
        {"CREATE TABLE t(a", ",b", ")", "", 2000, "too many columns on t"},
    };
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        const Nest *n = &lists[i];
        Arena arena;
        ErrMsg msg = {0};
        AstStatement *statement;
        Buf sql = nested(n->head, n->open, n->middle, n->close, n->deepest);
        arena_init(&arena, NULL);
        Err err = parse_text(&arena, buf_slice(&sql), NULL, &statement, &msg);
        if (n->message == NULL) {
            if (err != OK) fail_msg("%s: %s", n->head, err_message(&msg));
        } else {
            assert_int_not_equal(err, OK);
            assert_string_equal(err_message(&msg), n->message);
        }
        err_clear(&msg);
        buf_free(&sql);
        arena_free(&arena);
    }
}

static void
memory_of_a_list_grows_as_the_list(void **state)
{
    (void)state;
    size_t bytes[2];
    for (u32 i = 0; i < 2; i++) {
        Arena arena;
        AstStatement *statement;
        Buf sql = nested("SELECT a IN (0", ",1", ")", "", i == 0 ? 10000 : 80000);
        arena_init(&arena, NULL);
        assert_int_equal(parse_text(&arena, buf_slice(&sql), NULL, &statement, NULL), OK);
        bytes[i] = arena.total_bytes;
        buf_free(&sql);
        arena_free(&arena);
    }
    assert_true(bytes[1] < bytes[0] * 12);
}

static const char rich[] =
    "WITH RECURSIVE c(x) AS (SELECT 'it''s', x'00ff', 1_000 UNION VALUES (1, 2, :a)) INSERT OR "
    "REPLACE INTO \"m\"\"x\".t AS u (a, b, c, d, e) SELECT a, sum(b) FILTER (WHERE c IN (1, 2)) "
    "OVER (PARTITION BY d ORDER BY e), CASE WHEN f THEN g END, CAST(h AS VARCHAR(10)), i.* FROM c "
    "LEFT JOIN f(1) AS i USING (j) WHERE k AND l AND m AND n AND o AND p LIKE ?7 ESCAPE 'q' ON "
    "CONFLICT (a) DO UPDATE SET (a, b) = (SELECT 1, 2), c = d COLLATE nocase RETURNING *";

static void
every_failing_allocation_is_survived(void **state)
{
    (void)state;
    static const char *const texts[] = {
        rich,
        "CREATE TABLE t (a INT CONSTRAINT x NOT NULL DEFAULT (1) CHECK (a > 'q''r'), b AS (a), "
        "FOREIGN KEY (a, b) REFERENCES u (c, d)) STRICT",
        "CREATE TRIGGER r AFTER UPDATE OF a, b ON t WHEN new.a BEGIN DELETE FROM u; SELECT "
        "RAISE(ABORT, 'x'); END",
        "CREATE VIRTUAL TABLE v USING m(a, b, c, d, e, f)",
        "PRAGMA x = -5",
        "SELECT (((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((("
        "((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))"
        "))))))))))))))))))))))))))))))))))))))))))",
        "SELECT a b c",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        bool fired = true;
        for (u32 nth = 1; fired; nth++) {
            u64 live = mem_live_blocks();
            Arena arena;
            ErrMsg msg = {0};
            AstStatement *statement;
            size_t consumed;
            arena_init(&arena, NULL);
            mem_fail_arm(nth, false);
            Err err = sql_parse(&arena, SLICE(texts[i], strlen(texts[i])), NULL, &statement,
                                &consumed, &msg);
            fired = mem_fail_fired();
            mem_fail_arm(0, false);
            if (fired) {
                assert_int_equal(err, ERR_NOMEM);
                assert_null(statement);
            } else {
                assert_int_equal(err, i + 1 == COUNT_OF(texts) ? ERR_SQL : OK);
            }
            err_clear(&msg);
            arena_free(&arena);
            assert_int_equal(mem_live_blocks(), live);
        }
    }
}

static void
printed_text_parses_to_the_same(void **state)
{
    (void)state;
    Arena arena;
    arena_init(&arena, NULL);
    AstStatement *statement;
    Buf first = {0}, second = {0};
    assert_int_equal(parse_text(&arena, SLICE_LITERAL(rich), NULL, &statement, NULL), OK);
    assert_int_equal(ast_print_statement(&first, statement), OK);
    assert_int_equal(parse_text(&arena, buf_slice(&first), NULL, &statement, NULL), OK);
    assert_int_equal(ast_print_statement(&second, statement), OK);
    assert_true(slice_equal(buf_slice(&first), buf_slice(&second)));
    buf_free(&first);
    buf_free(&second);

    AstExpr *expr;
    Slice text = SLICE_LITERAL("not a = b + -c * d collate x or e in (1,2) and f between g and h");
    assert_int_equal(sql_parse_expr(&arena, text, NULL, &expr, NULL), OK);
    assert_int_equal(ast_print_expr(&first, expr), OK);
    assert_int_equal(buf_append_byte(&first, 0), OK);
    assert_string_equal(
        (const char *)first.p,
        "((NOT (a = (b + ((-c) * (d COLLATE x))))) OR ((e IN (1, 2)) AND (f BETWEEN "
        "g AND h)))");
    buf_free(&first);
    arena_free(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nesting_ends_in_time),
        cmocka_unit_test(a_lower_depth_limit_is_obeyed),
        cmocka_unit_test(long_lists_are_no_depth),
        cmocka_unit_test(memory_of_a_list_grows_as_the_list),
        cmocka_unit_test(every_failing_allocation_is_survived),
        cmocka_unit_test(printed_text_parses_to_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
