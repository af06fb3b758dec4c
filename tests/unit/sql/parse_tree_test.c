/*
 * parse_tree_test.c -- the tree says what was written, and every span points at it.
 *
 * Method: parse one statement, look at the nodes by hand, compare the text under each span.
 */
#include "sql/parse/parse.h"
#include "unit/cmocka_all.h"

static Arena arena;

static int
arena_up(void **state)
{
    (void)state;
    arena_init(&arena, NULL);
    return 0;
}

static int
arena_down(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

static AstStatement *
parse(const char *sql)
{
    ErrMsg msg = {0};
    AstStatement *statement;
    size_t consumed;
    Err err = sql_parse(&arena, SLICE(sql, strlen(sql)), NULL, &statement, &consumed, &msg);
    if (err != OK) fail_msg("%s: %s", sql, err_message(&msg));
    assert_non_null(statement);
    return statement;
}

static AstArm *
arm_of(AstStatement *statement)
{
    assert_int_equal(statement->kind, AST_STMT_SELECT);
    return &statement->u.select->arms[0];
}

static void
assert_slice(Slice slice, const char *text)
{
    if (slice.bytes != strlen(text) || memcmp(slice.p, text, slice.bytes) != 0) {
        fail_msg("\"%.*s\" is not \"%s\"", (int)slice.bytes, (const char *)slice.p, text);
    }
}

static void
assert_span(const AstStatement *statement, Span span, const char *text)
{
    assert_slice(span_slice(statement->text, span), text);
}

static void
assert_name(const AstStatement *statement, AstName name, const char *text, const char *typed,
            AstQuote quote)
{
    assert_slice(name.text, text);
    assert_span(statement, name.span, typed);
    assert_int_equal(name.quote, quote);
    assert_int_equal(name.hash, ast_name_hash(SLICE(text, strlen(text))));
}

static void
result_columns_keep_their_text(void **state)
{
    (void)state;
    AstStatement *s = parse("SELECT 1 + 1  /*c*/  , ( 3 ), 4 AS \"x y\", t . *, * FROM t");
    AstResults results = arm_of(s)->results;
    assert_int_equal(results.count, 5);
    assert_span(s, results.items[0].text, "1 + 1  /*c*/");
    assert_span(s, results.items[0].expr->span, "1 + 1");
    assert_span(s, results.items[1].text, "( 3 )");
    assert_span(s, results.items[1].expr->span, "3");
    assert_name(s, results.items[2].alias, "x y", "\"x y\"", AST_QUOTE_DOUBLE);
    assert_int_equal(results.items[3].kind, AST_RESULT_TABLE_STAR);
    assert_name(s, results.items[3].table, "t", "t", AST_QUOTE_NONE);
    assert_span(s, results.items[3].text, "t . *");
    assert_int_equal(results.items[4].kind, AST_RESULT_STAR);
    assert_span(s, s->span, "SELECT 1 + 1  /*c*/  , ( 3 ), 4 AS \"x y\", t . *, * FROM t");
}

static void
the_span_is_the_statement(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "SELECT 1",
        " SELECT 1 ",
        ";; /*x*/ SELECT 1 ; SELECT 2",
        ";SELECT 1",
        "EXPLAIN  SELECT 1;",
        ";explain query plan /*x*/ SELECT 1 -- y\n;",
        "--x\nSELECT 1;;",
        "EXPLAIN ANALYZE SELECT 1",
    };
    for (u32 i = 0; i < COUNT_OF(texts); i++) {
        AstStatement *s = parse(texts[i]);
        assert_span(s, s->span, "SELECT 1");
    }
}

static void
names_keep_quotes_and_positions(void **state)
{
    (void)state;
    AstStatement *s = parse("SELECT \"a\"\"b\", [c d], `e``f`, 'g'.h, Main.[T].abort");
    AstResults r = arm_of(s)->results;
    assert_name(s, r.items[0].expr->u.column.name, "a\"b", "\"a\"\"b\"", AST_QUOTE_DOUBLE);
    assert_name(s, r.items[1].expr->u.column.name, "c d", "[c d]", AST_QUOTE_BRACKET);
    assert_name(s, r.items[2].expr->u.column.name, "e`f", "`e``f`", AST_QUOTE_BACKTICK);
    assert_name(s, r.items[3].expr->u.column.qualifier->table, "g", "'g'", AST_QUOTE_STRING);
    AstColumnRef *full = &r.items[4].expr->u.column;
    assert_name(s, full->qualifier->schema, "Main", "Main", AST_QUOTE_NONE);
    assert_name(s, full->qualifier->table, "T", "[T]", AST_QUOTE_BRACKET);
    assert_name(s, full->name, "abort", "abort", AST_QUOTE_NONE);
    assert_int_equal(full->name.keyword, 1);
    assert_int_equal(full->qualifier->schema.keyword, 0);
    assert_int_equal(ast_name_hash(SLICE_LITERAL("MAIN")), full->qualifier->schema.hash);
}

static void
literals_are_decoded(void **state)
{
    (void)state;
    AstStatement *s = parse("SELECT 12, 0x1F, 1.5e3, 1_000, 0xA_B, 1_0.5, 'it''s', x'0aFf', NULL,"
                            " current_date, CURRENT_TIMESTAMP, true, ''");
    AstResults r = arm_of(s)->results;
    static const struct {
        AstExprKind kind;
        const char *text;
    } expected[] = {{AST_EXPR_INTEGER, "12"},   {AST_EXPR_HEX, "1F"},     {AST_EXPR_REAL, "1.5e3"},
                    {AST_EXPR_INTEGER, "1000"}, {AST_EXPR_HEX, "AB"},     {AST_EXPR_REAL, "10.5"},
                    {AST_EXPR_STRING, "it's"},  {AST_EXPR_BLOB, "\n\xff"}};
    for (u32 i = 0; i < COUNT_OF(expected); i++) {
        assert_int_equal(r.items[i].expr->kind, expected[i].kind);
        assert_slice(r.items[i].expr->u.literal, expected[i].text);
    }
    assert_int_equal(r.items[8].expr->kind, AST_EXPR_NULL);
    assert_int_equal(r.items[9].expr->op, AST_CURRENT_DATE);
    assert_int_equal(r.items[10].expr->op, AST_CURRENT_TIMESTAMP);
    assert_int_equal(r.items[11].expr->kind, AST_EXPR_COLUMN);
    assert_int_equal(r.items[12].expr->kind, AST_EXPR_STRING);
    assert_int_equal(r.items[12].expr->u.literal.bytes, 0);
}

static void
parameters_are_numbered_as_sqlite_does(void **state)
{
    (void)state;
    AstStatement *s = parse("SELECT ?,?3,:a,@b,$c,?,:a,?2");
    static const u32 numbers[] = {1, 3, 4, 5, 6, 7, 4, 2};
    AstResults r = arm_of(s)->results;
    assert_int_equal(s->param_count, 7);
    for (u32 i = 0; i < COUNT_OF(numbers); i++)
        assert_int_equal(r.items[i].expr->u.param.number, numbers[i]);
    static const char *const names[] = {NULL, "?2", "?3", ":a", "@b", "$c", NULL};
    for (u32 i = 0; i < COUNT_OF(names); i++) {
        if (names[i] == NULL) {
            assert_null(s->param_names[i].p);
        } else {
            assert_slice(s->param_names[i], names[i]);
        }
    }
    assert_int_equal(parse("SELECT 1")->param_count, 0);
}

static void
chains_are_flat_and_precedence_holds(void **state)
{
    (void)state;
    AstStatement *s = parse("SELECT a OR b AND NOT c = d + e * -f COLLATE x OR (g OR h) OR i");
    AstExpr *or_ = arm_of(s)->results.items[0].expr;
    assert_int_equal(or_->kind, AST_EXPR_OR);
    assert_int_equal(or_->u.list.count, 4);
    assert_int_equal(or_->u.list.items[2]->kind, AST_EXPR_OR);
    assert_true((or_->u.list.items[2]->flags & AST_FLAG_PARENS) != 0);
    AstExpr *and_ = or_->u.list.items[1];
    assert_int_equal(and_->kind, AST_EXPR_AND);
    AstExpr *not_ = and_->u.list.items[1];
    assert_int_equal(not_->op, AST_UNARY_NOT);
    AstExpr *equal = not_->u.unary.operand;
    assert_int_equal(equal->op, AST_BINARY_EQ);
    AstExpr *add = equal->u.binary.right;
    assert_int_equal(add->op, AST_BINARY_ADD);
    assert_span(s, add->u.binary.op, "+");
    AstExpr *multiply = add->u.binary.right;
    assert_int_equal(multiply->op, AST_BINARY_MUL);
    AstExpr *negate = multiply->u.binary.right;
    /* A sign binds tighter than COLLATE. */
    assert_int_equal(negate->kind, AST_EXPR_COLLATE);
    assert_int_equal(negate->u.collate.operand->op, AST_UNARY_NEGATE);
    assert_span(s, or_->span, "a OR b AND NOT c = d + e * -f COLLATE x OR (g OR h) OR i");
}

static void
a_select_has_all_its_parts(void **state)
{
    (void)state;
    AstStatement *s = parse(
        "WITH RECURSIVE c(x, y) AS NOT MATERIALIZED (SELECT 1) VALUES (1), (2) UNION ALL SELECT "
        "DISTINCT sum(a) FILTER (WHERE b) OVER (PARTITION BY p ORDER BY o ROWS 2 PRECEDING EXCLUDE "
        "TIES) FROM t AS u, (v JOIN w USING (k)) LEFT JOIN f(1, 2) ON z WHERE d GROUP BY e HAVING "
        "g "
        "WINDOW n AS (m) ORDER BY 1 DESC NULLS LAST LIMIT 5, 6");
    AstSelect *select = s->u.select;
    assert_true(select->with->recursive);
    AstCte *cte = &select->with->items[0];
    assert_int_equal(cte->columns.count, 2);
    assert_int_equal(cte->materialize, AST_MATERIALIZE_NO);
    assert_span(s, cte->span, "c(x, y) AS NOT MATERIALIZED (SELECT 1)");
    assert_int_equal(select->count, 2);
    assert_span(s, select->limit->span, "6");
    assert_span(s, select->offset->span, "5");
    assert_int_equal(select->order_by.items[0].sort, AST_SORT_DESC);
    assert_int_equal(select->order_by.items[0].nulls, AST_NULLS_LAST);
    AstArm *arm = &select->arms[1];
    assert_true(arm->distinct);
    AstFunction *sum = arm->results.items[0].expr->u.function;
    assert_span(s, sum->filter->span, "b");
    assert_int_equal(sum->over->unit, AST_FRAME_ROWS);
    assert_int_equal(sum->over->start.kind, AST_BOUND_PRECEDING);
    assert_int_equal(sum->over->end.kind, AST_BOUND_CURRENT_ROW);
    assert_int_equal(sum->over->exclude, AST_EXCLUDE_TIES);
    assert_int_equal(sum->over->partition_by.count, 1);
    AstFrom *from = arm->from;
    assert_int_equal(from->count, 3);
    assert_name(s, from->items[0].alias, "u", "u", AST_QUOTE_NONE);
    assert_int_equal(from->items[1].join, AST_JOIN_COMMA);
    assert_int_equal(from->items[1].kind, AST_FROM_JOIN);
    assert_true(from->items[1].nested->items[1].has_using);
    assert_int_equal(from->items[2].join, AST_JOIN_LEFT | AST_JOIN_OUTER);
    assert_int_equal(from->items[2].kind, AST_FROM_FUNCTION);
    assert_int_equal(from->items[2].args.count, 2);
    assert_span(s, from->items[2].on->span, "z");
    assert_span(s, from->items[2].span, "f(1, 2) ON z");
    assert_int_equal(arm->window_count, 1);
    assert_name(s, arm->windows[0].base, "m", "m", AST_QUOTE_NONE);
    assert_int_equal(arm->op, AST_SET_UNION_ALL);
    assert_span(s, arm->op_span, "UNION ALL");
    assert_true(select->arms[0].is_values);
    assert_int_equal(select->arms[0].values.count, 2);
    assert_span(s, select->arms[0].span, "VALUES (1), (2)");
}

static void
parentheses_in_from(void **state)
{
    (void)state;
    AstFrom *from = arm_of(parse("SELECT * FROM (a AS x)"))->from;
    assert_slice(from->items[0].alias.text, "x");
    from = arm_of(parse("SELECT * FROM b, (a AS x) AS y"))->from;
    assert_int_equal(from->items[1].kind, AST_FROM_TABLE);
    assert_slice(from->items[1].alias.text, "y");
    from = arm_of(parse("SELECT * FROM (a JOIN b) JOIN c"))->from;
    assert_int_equal(from->count, 3);
    from = arm_of(parse("SELECT * FROM (a JOIN b) AS j JOIN c"))->from;
    assert_int_equal(from->count, 2);
    assert_int_equal(from->items[0].kind, AST_FROM_JOIN);
}

static void
stored_text_is_what_sqlite_keeps(void **state)
{
    (void)state;
    AstStatement *s = parse("create temp table if not exists main.[t 5] (a /*x*/ int) -- c\n;");
    assert_span(s, s->u.create_table->stored, "[t 5] (a /*x*/ int)");
    s = parse("create table t2(a primary key) without rowid /*c*/ ;");
    assert_span(s, s->u.create_table->stored, "t2(a primary key) without rowid /*c*/ ");
    s = parse("create unique index if not exists main.i3 on t1(a) where a>1 ; ");
    assert_span(s, s->u.create_index->stored, "i3 on t1(a) where a>1 ");
    s = parse("create view v1(a) as select 1 /*c*/  ;");
    assert_span(s, s->u.create_view->stored, "v1(a) as select 1 /*c*/");
    s = parse("create trigger main.tr after insert on t1 begin select 1 /*q*/; end /*c*/");
    assert_span(s, s->u.create_trigger->stored, "tr after insert on t1 begin select 1 /*q*/; end");
    assert_span(s, s->u.create_trigger->steps[0]->span, "select 1 /*q*/");
    s = parse("create virtual table main.d using m(a b , (c, d)) /*c*/");
    assert_span(s, s->u.create_virtual->stored, "d using m(a b , (c, d))");
    assert_int_equal(s->u.create_virtual->count, 2);
    assert_span(s, s->u.create_virtual->args[0], "a b");
    assert_span(s, s->u.create_virtual->args[1], "(c, d)");
}

static void
table_constraints(void **state)
{
    (void)state;
    AstStatement *s = parse(
        "CREATE TABLE t (a VARCHAR ( 10 , 2 ) CONSTRAINT n NOT NULL CHECK ( a > 0 /*c*/ ), b "
        "DEFAULT "
        "- 5 DEFAULT (1 + 2) DEFAULT abc, c AS (a || b) STORED, CONSTRAINT k PRIMARY KEY (a, b "
        "DESC)"
        " ON CONFLICT IGNORE, FOREIGN KEY (a, b) REFERENCES u ON DELETE SET NULL DEFERRABLE "
        "INITIALLY DEFERRED CHECK (b)) STRICT, WITHOUT ROWID");
    AstCreateTable *t = s->u.create_table;
    assert_true(t->strict && t->without_rowid);
    assert_int_equal(t->columns.count, 3);
    AstColumnDef *a = &t->columns.items[0];
    assert_span(s, a->type, "VARCHAR ( 10 , 2 )");
    assert_int_equal(a->constraints.count, 2);
    assert_slice(a->constraints.items[0].name.text, "n");
    assert_span(s, a->constraints.items[0].name_clause, "CONSTRAINT n");
    assert_slice(a->constraints.items[1].name.text, "n"); /* Still in force. */
    assert_int_equal(a->constraints.items[1].name_clause.bytes, 0);
    assert_span(s, a->constraints.items[1].expr_text, "a > 0 /*c*/");
    assert_span(s, a->span, "a VARCHAR ( 10 , 2 ) CONSTRAINT n NOT NULL CHECK ( a > 0 /*c*/ )");
    AstColumnDef *b = &t->columns.items[1];
    assert_span(s, b->constraints.items[0].expr_text, "- 5");
    assert_span(s, b->constraints.items[1].expr_text, "1 + 2");
    assert_int_equal(b->constraints.items[2].default_kind, AST_DEFAULT_WORD);
    AstConstraint *generated = &t->columns.items[2].constraints.items[0];
    assert_true(generated->stored);
    assert_span(s, generated->span, "AS (a || b) STORED");
    assert_int_equal(t->constraints.count, 3);
    AstConstraint *key = &t->constraints.items[0];
    assert_int_equal(key->kind, AST_CONSTRAINT_PRIMARY_KEY);
    assert_int_equal(key->conflict, AST_CONFLICT_IGNORE);
    assert_int_equal(key->terms.items[1].sort, AST_SORT_DESC);
    AstForeignKey *foreign = t->constraints.items[1].foreign_key;
    assert_int_equal(foreign->columns.count, 2);
    assert_int_equal(foreign->on_delete, AST_FK_SET_NULL);
    assert_true(foreign->deferrable && foreign->initially_deferred);
    assert_span(s, t->constraints.items[1].span,
                "FOREIGN KEY (a, b) REFERENCES u ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED");
    assert_false(ast_name_present(&t->constraints.items[1].name));
}

static void
generated_always_is_no_type(void **state)
{
    (void)state;
    AstStatement *s = parse("CREATE TABLE t (a, b INT GENERATED  ALWAYS AS (a) STORED, c GENERATED "
                            "ALWAYS AS (a), d BIG TEXT AS (a) CHECK (d))");
    static const char *const types[] = {"", "INT", "", "BIG TEXT"};
    static const char *const spans[] = {NULL, "GENERATED  ALWAYS AS (a) STORED",
                                        "GENERATED ALWAYS AS (a)", "AS (a)"};
    for (u32 i = 0; i < 4; i++) {
        AstColumnDef *column = &s->u.create_table->columns.items[i];
        assert_span(s, column->type, types[i]);
        if (spans[i] != NULL) assert_span(s, column->constraints.items[0].span, spans[i]);
    }
}

static void
a_lone_subquery_in_a_list_is_the_list(void **state)
{
    (void)state;
    AstResults r =
        arm_of(parse("SELECT a IN ((SELECT 1)), a IN ((SELECT 1), 2), a IN ()"))->results;
    assert_int_equal(r.items[0].expr->u.in->kind, AST_IN_SELECT);
    assert_int_equal(r.items[1].expr->u.in->kind, AST_IN_LIST);
    assert_int_equal(r.items[1].expr->u.in->list.count, 2);
    assert_int_equal(r.items[2].expr->u.in->list.count, 0);
}

static void
changes_of_data(void **state)
{
    (void)state;
    AstStatement *s = parse(
        "INSERT OR IGNORE INTO main.t AS x (a, b) VALUES (1, 2) ON CONFLICT (a) WHERE b DO UPDATE "
        "SET a = 1, (b, c) = (2, 3) WHERE d ON CONFLICT DO NOTHING RETURNING a + 1, *");
    AstInsert *insert = s->u.insert;
    assert_int_equal(insert->conflict, AST_CONFLICT_IGNORE);
    assert_span(s, insert->target.span, "main.t AS x");
    assert_int_equal(insert->columns.count, 2);
    assert_int_equal(insert->upserts.count, 2);
    assert_int_equal(insert->upserts.items[0].sets.count, 2);
    assert_true(insert->upserts.items[0].sets.items[1].is_row);
    assert_false(insert->upserts.items[1].do_update);
    assert_int_equal(insert->returning.count, 2);
    assert_span(s, insert->returning.items[0].text, "a + 1");

    s = parse("UPDATE OR FAIL t INDEXED BY i SET a = 1 FROM u WHERE b RETURNING c");
    assert_int_equal(s->u.update->conflict, AST_CONFLICT_FAIL);
    assert_slice(s->u.update->target.indexed_by.text, "i");
    assert_int_equal(s->u.update->from->count, 1);
    s = parse("DELETE FROM t NOT INDEXED");
    assert_true(s->u.delete_->target.not_indexed);
    assert_true(parse("REPLACE INTO t DEFAULT VALUES")->u.insert->default_values);
    assert_int_equal(parse("REPLACE INTO t DEFAULT VALUES")->u.insert->conflict,
                     AST_CONFLICT_REPLACE);
}

static void
alterations(void **state)
{
    (void)state;
    AstStatement *s = parse("ALTER TABLE m.t ADD COLUMN c INT NOT NULL DEFAULT 3 /*x*/ ;");
    assert_int_equal(s->u.alter->kind, AST_ALTER_ADD_COLUMN);
    assert_span(s, s->u.alter->clause, "c INT NOT NULL DEFAULT 3");
    assert_int_equal(s->u.alter->definition->constraints.count, 2);
    s = parse("ALTER TABLE t ADD CONSTRAINT k CHECK (a > 1) ON CONFLICT FAIL");
    assert_int_equal(s->u.alter->kind, AST_ALTER_ADD_CHECK);
    assert_span(s, s->u.alter->clause, "CONSTRAINT k CHECK (a > 1) ON CONFLICT FAIL");
    assert_span(s, s->u.alter->constraint->expr_text, "a > 1");
    s = parse("ALTER TABLE t RENAME a TO b");
    assert_int_equal(s->u.alter->kind, AST_ALTER_RENAME_COLUMN);
    s = parse("ALTER TABLE t ALTER a SET NOT NULL");
    assert_int_equal(s->u.alter->kind, AST_ALTER_SET_NOT_NULL);
    assert_span(s, s->u.alter->clause, "NOT NULL");
}

static void
pragma_values(void **state)
{
    (void)state;
    AstPragma *p = parse("PRAGMA main.x = - 5.5")->u.pragma;
    assert_slice(p->value, "-5.5");
    assert_true(p->is_number && p->negative);
    p = parse("PRAGMA x('it''s')")->u.pragma;
    assert_slice(p->value, "it's");
    assert_int_equal(p->form, AST_PRAGMA_CALL);
    p = parse("PRAGMA x = ON")->u.pragma;
    assert_slice(p->value, "ON");
    assert_int_equal(p->form, AST_PRAGMA_EQUALS);
}

static void
lone_expressions(void **state)
{
    (void)state;
    AstExpr *expr;
    ErrMsg msg = {0};
    assert_int_equal(sql_parse_expr(&arena, SLICE_LITERAL(" a + 1 /*c*/ "), NULL, &expr, &msg), OK);
    assert_int_equal(expr->kind, AST_EXPR_BINARY);
    assert_int_equal(expr->span.offset, 1);
    assert_int_equal(expr->span.bytes, 5);
    static const char *const wrong[] = {"", "a b", "a;", "a; b", "a)", "SELECT 1", "1, 2"};
    for (u32 i = 0; i < COUNT_OF(wrong); i++) {
        Slice text = SLICE(wrong[i], strlen(wrong[i]));
        assert_int_equal(sql_parse_expr(&arena, text, NULL, &expr, &msg), ERR_SQL);
        assert_null(expr);
    }
    err_clear(&msg);
}

static void
old_schemas_are_read_leniently(void **state)
{
    (void)state;
    Slice text = SLICE_LITERAL("CREATE VIEW v (a COLLATE nocase DESC) AS SELECT 1");
    AstStatement *statement;
    size_t consumed;
    assert_int_equal(sql_parse(&arena, text, NULL, &statement, &consumed, NULL), ERR_SQL);
    ParseOptions stored = {.stored = true};
    assert_int_equal(sql_parse(&arena, text, &stored, &statement, &consumed, NULL), OK);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(result_columns_keep_their_text, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(the_span_is_the_statement, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(names_keep_quotes_and_positions, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(literals_are_decoded, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(parameters_are_numbered_as_sqlite_does, arena_up,
                                        arena_down),
        cmocka_unit_test_setup_teardown(chains_are_flat_and_precedence_holds, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(a_select_has_all_its_parts, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(parentheses_in_from, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(stored_text_is_what_sqlite_keeps, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(table_constraints, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(generated_always_is_no_type, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(a_lone_subquery_in_a_list_is_the_list, arena_up,
                                        arena_down),
        cmocka_unit_test_setup_teardown(changes_of_data, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(alterations, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(pragma_values, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(lone_expressions, arena_up, arena_down),
        cmocka_unit_test_setup_teardown(old_schemas_are_read_leniently, arena_up, arena_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
