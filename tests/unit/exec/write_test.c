/*
 * write_test.c -- the row program on hand-made plans: rowids, conflict clauses, UPDATE, DELETE,
 * UPSERT, RETURNING, checks and their messages.
 *
 * Method: small scripts with the results that SQLite gives; then random statements with every
 * conflict clause against a model of the rules, where after each statement table and indexes must
 * agree entry by entry.
 */
#include <stdio.h>

#include "exec/table_codec.h"
#include "unit/exec/look.h"

/* t(a INTEGER PRIMARY KEY, b UNIQUE, c UNIQUE); SQLite lists the newer index first. */
static TableDef *
make_t(TestDb *db)
{
    static const MakeColumn columns[] = {
        {.name = "a", .affinity = AFFINITY_INTEGER}, {.name = "b"}, {.name = "c"}};
    static const MakeKey b = {.column = 1}, c = {.column = 2};
    TableDef *t = make_table(&db->arena, "t", columns, 3);
    t->rowid_column = 0;
    IndexDef *index[2] = {make_index(&db->arena, t, "ic", true, &c, 1),
                          make_index(&db->arena, t, "ib", true, &b, 1)};
    test_db_create(db, t, index, 2);
    return t;
}

/* ---- rowids ---- */

static void
rowids_follow_the_last_one(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    TableDef *t = make_t(&db);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(N, I(1), I(1))), OK);
    assert_int_equal(db.last_rowid, 1);
    assert_int_equal(db.changed, 1);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(T("7"), I(2), I(2))), OK);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(N, I(3), I(3))), OK);
    assert_int_equal(db.last_rowid, 8);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(cell_real(5.0), I(4), I(4))), OK);
    assert_rows(&db, t, "1,1,1 5,4,4 7,2,2 8,3,3 ");
    assert_fails(&db, insert(&db, t, CONFLICT_IGNORE, ROW(T("x"), N, N)), ERR_MISMATCH,
                 "datatype mismatch");
    assert_fails(&db, insert(&db, t, CONFLICT_DEFAULT, ROW(cell_real(1.5), N, N)), ERR_MISMATCH,
                 "datatype mismatch");
    check_indexes(&db, t);
    test_db_close(&db);
}

static void
negative_and_largest_rowids(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    TableDef *t = make_t(&db);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(-10), N, N)), OK);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(N, N, N)), OK);
    assert_int_equal(db.last_rowid, -9);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(I64_MAX), N, N)), OK);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(N, N, N)), OK);
    assert_true(db.last_rowid > 0 && db.last_rowid < I64_MAX);
    check_indexes(&db, t);
    test_db_close(&db);
}

static void
many_rows_in_one_statement(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    TableDef *t = make_t(&db);
    Plan *plan = plan_insert_params(t, CONFLICT_DEFAULT);
    PlanNode *values = node_values(plan, 50, 3);
    for (u32 i = 0; i < 50; i++) {
        values->u.values.row[i][0] = px_cell(&plan->arena, i == 20 ? I(100) : N);
        values->u.values.row[i][1] = px_int(&plan->arena, i);
        values->u.values.row[i][2] = px_cell(&plan->arena, N);
    }
    plan->write->source = values;
    assert_int_equal(test_db_run_plan(&db, plan, NULL, 0), OK);
    assert_int_equal(db.changed, 50);
    assert_int_equal(db.last_rowid, 129);
    check_indexes(&db, t);
    test_db_close(&db);
}

/* ---- conflicts ---- */

static void
conflicts_have_sqlites_words(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    TableDef *t = make_t(&db);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(1), I(10), I(20))), OK);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(2), I(11), I(21))), OK);
    assert_fails(&db, insert(&db, t, CONFLICT_DEFAULT, ROW(I(1), I(10), I(20))),
                 ERR_CONSTRAINT_PRIMARYKEY, "UNIQUE constraint failed: t.a");
    assert_fails(&db, insert(&db, t, CONFLICT_DEFAULT, ROW(N, I(10), I(20))), ERR_CONSTRAINT_UNIQUE,
                 "UNIQUE constraint failed: t.c");
    assert_fails(&db, insert(&db, t, CONFLICT_ROLLBACK, ROW(N, I(10), I(99))),
                 ERR_CONSTRAINT_UNIQUE, "UNIQUE constraint failed: t.b");
    assert_int_equal(db.undo, EXEC_UNDO_TRANSACTION);
    assert_int_equal(insert(&db, t, CONFLICT_IGNORE, ROW(N, I(10), I(99))), OK);
    assert_int_equal(db.changed, 0);
    assert_rows(&db, t, "1,10,20 2,11,21 ");
    /* One row in the way of each constraint: all go. */
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(3), I(12), I(22))), OK);
    assert_int_equal(insert(&db, t, CONFLICT_REPLACE, ROW(I(3), I(10), I(21))), OK);
    assert_int_equal(db.changed, 1);
    assert_rows(&db, t, "3,10,21 ");
    check_indexes(&db, t);
    test_db_close(&db);
}

static void
fail_keeps_earlier_rows(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    TableDef *t = make_t(&db);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(1), I(5), N)), OK);
    for (u32 round = 0; round < 2; round++) {
        Plan *plan = plan_insert_params(t, round == 0 ? CONFLICT_ABORT : CONFLICT_FAIL);
        PlanNode *values = node_values(plan, 3, 3);
        for (u32 i = 0; i < 3; i++) {
            values->u.values.row[i][0] = px_int(&plan->arena, 10 + i);
            values->u.values.row[i][1] = px_int(&plan->arena, i == 2 ? 5 : 50 + i);
            values->u.values.row[i][2] = px_int(&plan->arena, i);
        }
        plan->write->source = values;
        assert_fails(&db, test_db_run_plan(&db, plan, NULL, 0), ERR_CONSTRAINT_UNIQUE,
                     "UNIQUE constraint failed: t.b");
        check_indexes(&db, t);
        if (round == 0) assert_rows(&db, t, "1,5,- ");
    }
    assert_int_equal(db.undo, EXEC_UNDO_NOTHING);
    assert_int_equal(db.changed, 2);
    assert_rows(&db, t, "1,5,- 10,50,0 11,51,1 ");
    test_db_close(&db);
}

/* The constraint's own clause, and REPLACE ones last. */
static void
constraints_have_clauses_of_their_own(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    TableDef *t = make_t(&db);
    t->index[1]->conflict = CONFLICT_IGNORE; /* b */
    t->rowid_conflict = CONFLICT_REPLACE;
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(1), I(10), I(20))), OK);
    /* b says IGNORE before the rowid replaces. */
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(1), I(10), I(21))), OK);
    assert_rows(&db, t, "1,10,20 ");
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(1), I(11), I(20))),
                     ERR_CONSTRAINT_UNIQUE);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(1), I(11), I(21))), OK);
    assert_rows(&db, t, "1,11,21 ");
    check_indexes(&db, t);
    test_db_close(&db);
}

/* ---- NOT NULL, CHECK, STRICT, generated ---- */

static void
checks_have_sqlites_words(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    static const MakeColumn columns[] = {{.name = "a", .not_null = true},
                                         {.name = "b", .affinity = AFFINITY_INTEGER},
                                         {.name = "g", .generated = 1},
                                         {.name = "s", .generated = 2}};
    TableDef *t = make_table(&db.arena, "t", columns, 4);
    test_db_create(&db, t, NULL, 0);
    static const struct {
        Conflict conflict;
        i64 a; /* 0: NULL */
        i64 b;
        Err err;
        const char *text;
        bool keeps_default;
    } cases[] = {
        {CONFLICT_DEFAULT, 1, 5, OK, NULL, false},
        {CONFLICT_DEFAULT, 0, 5, ERR_CONSTRAINT_NOTNULL, "NOT NULL constraint failed: t.a", false},
        {CONFLICT_IGNORE, 0, 5, OK, NULL, false},
        {CONFLICT_REPLACE, 0, 5, ERR_CONSTRAINT_NOTNULL, "NOT NULL constraint failed: t.a", false},
        {CONFLICT_REPLACE, 0, 6, OK, NULL, true},
        {CONFLICT_DEFAULT, 2, -5, ERR_CONSTRAINT_CHECK, "CHECK constraint failed: b>0", false},
        {CONFLICT_REPLACE, 2, -5, ERR_CONSTRAINT_CHECK, "CHECK constraint failed: b>0", false},
        {CONFLICT_IGNORE, 2, -5, OK, NULL, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Plan *plan = plan_insert_params(t, cases[i].conflict);
        PlanWrite *write = plan->write;
        Arena *arena = &plan->arena;
        write->value_cell[2] = write->value_cell[3] = -1;
        write->generated[2] = px_two(arena, PX_ADD, px_column(arena, 1), px_int(arena, 1));
        write->generated[3] = px_two(arena, PX_ADD, px_column(arena, 2), px_int(arena, 1));
        write->generated_order[0] = 2;
        write->generated_order[1] = 3;
        write->generated_count = 2;
        write->check_count = 1;
        write->check = ARENA_NEW(arena, PlanExpr *);
        write->check[0] = px_two(arena, PX_GT, px_column(arena, 1), px_int(arena, 0));
        static const char *text[] = {"b>0"};
        write->check_text = text;
        if (cases[i].keeps_default) write->default_expr[0] = px_int(arena, 77);
        Cell values[] = {cases[i].a == 0 ? N : I(cases[i].a), I(cases[i].b), N, N};
        assert_int_equal(test_db_run_plan(&db, plan, values, 4), cases[i].err);
        if (cases[i].text != NULL) assert_string_equal(err_message(&db.msg), cases[i].text);
    }
    /* Virtual columns are not stored. */
    assert_rows(&db, t, "1,5,-,7 77,6,-,8 ");
    test_db_close(&db);
}

static void
strict_types_are_checked(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    static const MakeColumn columns[] = {
        {.name = "i", .affinity = AFFINITY_INTEGER, .strict_type = STRICT_INT},
        {.name = "r", .affinity = AFFINITY_REAL, .strict_type = STRICT_REAL},
        {.name = "x", .affinity = AFFINITY_BLOB, .strict_type = STRICT_ANY}};
    TableDef *t = make_table(&db.arena, "t", columns, 3);
    test_db_create(&db, t, NULL, 0);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(T("12"), I(3), T("12"))), OK);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(N, N, N)), OK);
    assert_rows(&db, t, "12,r30,12 -,-,- ");
    assert_fails(&db, insert(&db, t, CONFLICT_IGNORE, ROW(T("a"), N, N)), ERR_CONSTRAINT_DATATYPE,
                 "cannot store TEXT value in INT column t.i");
    assert_fails(&db, insert(&db, t, CONFLICT_DEFAULT, ROW(N, cell_blob("a", 1), N)),
                 ERR_CONSTRAINT_DATATYPE, "cannot store BLOB value in REAL column t.r");
    test_db_close(&db);
}

/* ---- UPDATE and DELETE ---- */

static void
updates_are_checked_row_by_row(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    TableDef *t = make_t(&db);
    for (i64 i = 1; i <= 3; i++) {
        assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(i), I(i * 10), N)), OK);
    }
    for (u32 round = 0; round < 2; round++) {
        Plan *plan = plan_change_where(WRITE_UPDATE, t, CONFLICT_DEFAULT, COLUMN_EXPR);
        plan_set(plan, 0,
                 px_two(&plan->arena, round == 0 ? PX_ADD : PX_SUB, px_column(&plan->arena, 0),
                        px_int(&plan->arena, 1)));
        Err err = test_db_run_plan(&db, plan, NULL, 0);
        assert_int_equal(err, round == 0 ? ERR_CONSTRAINT_PRIMARYKEY : OK);
        assert_rows(&db, t, round == 0 ? "1,10,- 2,20,- 3,30,- " : "0,10,- 1,20,- 2,30,- ");
        check_indexes(&db, t);
    }
    /* A unique column, and the row itself is no conflict. */
    Plan *plan = plan_change_where(WRITE_UPDATE, t, CONFLICT_DEFAULT, 0);
    plan_set(plan, 1, px_int(&plan->arena, 20));
    plan_set(plan, 2, px_text(&plan->arena, "x"));
    assert_int_equal(test_db_run_plan(&db, plan, ROW(I(1)), 1), OK);
    assert_int_equal(db.changed, 1);
    plan = plan_change_where(WRITE_UPDATE, t, CONFLICT_REPLACE, 0);
    plan_set(plan, 1, px_int(&plan->arena, 20));
    assert_int_equal(test_db_run_plan(&db, plan, ROW(I(2)), 1), OK);
    assert_rows(&db, t, "0,10,- 2,20,- ");
    plan = plan_change_where(WRITE_UPDATE, t, CONFLICT_DEFAULT, 0);
    plan_set(plan, 0, px_cell(&plan->arena, N));
    assert_int_equal(test_db_run_plan(&db, plan, ROW(I(2)), 1), ERR_MISMATCH);
    check_indexes(&db, t);
    plan = plan_change_where(WRITE_DELETE, t, CONFLICT_DEFAULT, 1);
    assert_int_equal(test_db_run_plan(&db, plan, ROW(I(20)), 1), OK);
    assert_int_equal(db.changed, 1);
    assert_rows(&db, t, "0,10,- ");
    check_indexes(&db, t);
    plan = plan_change_where(WRITE_DELETE, t, CONFLICT_DEFAULT, COLUMN_EXPR);
    plan->write->truncate = true;
    assert_int_equal(test_db_run_plan(&db, plan, NULL, 0), OK);
    assert_int_equal(db.changed, 1);
    assert_rows(&db, t, "");
    check_indexes(&db, t);
    test_db_close(&db);
}

/* ---- UPSERT and RETURNING ---- */

static PlanUpsert *
add_upsert(Plan *plan, bool do_nothing)
{
    PlanWrite *write = plan->write;
    Arena *arena = &plan->arena;
    if (write->upsert == NULL) write->upsert = ARENA_NEW_ARRAY(arena, PlanUpsert, 4);
    PlanUpsert *upsert = &write->upsert[write->upsert_count++];
    upsert->do_nothing = do_nothing;
    upsert->set_column = ARENA_NEW_ARRAY(arena, u16, 4);
    upsert->set_expr = ARENA_NEW_ARRAY(arena, PlanExpr *, 4);
    return upsert;
}

static void
returned(void *arg, const Cell *row)
{
    Buf *text = arg;
    put_cell(text, &row[0]);
    assert_int_equal(buf_append_text(text, ","), OK);
    put_cell(text, &row[1]);
    assert_int_equal(buf_append_text(text, " "), OK);
}

static void
upserts_update_the_row_in_the_way(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    TableDef *t = make_t(&db);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(1), I(10), I(20))), OK);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(2), I(11), I(21))), OK);

    /* ON CONFLICT(b) DO UPDATE SET c = c + excluded.c WHERE c < 100 RETURNING a, c */
    Plan *plan = plan_insert_params(t, CONFLICT_DEFAULT);
    Arena *arena = &plan->arena;
    PlanUpsert *upsert = add_upsert(plan, false);
    upsert->index = t->index[1];
    upsert->set_column[0] = 2;
    upsert->set_expr[0] = px_two(arena, PX_ADD, px_column(arena, 2), px_column(arena, 4 + 2));
    upsert->set_count = 1;
    upsert->where = px_two(arena, PX_LT, px_column(arena, 2), px_int(arena, 100));
    plan->write->returning_count = plan->column_count = 2;
    plan->write->returning = ARENA_NEW_ARRAY(arena, PlanExpr *, 2);
    plan->write->returning[0] = px_column(arena, 0);
    plan->write->returning[1] = px_column(arena, 2);
    Exec *exec;
    assert_int_equal(exec_open(plan, &db.env, &exec, &db.msg), OK);
    Buf text = {0};
    assert_int_equal(test_db_run(&db, exec, ROW(N, I(10), I(100)), 3, returned, &text), OK);
    assert_int_equal(test_db_run(&db, exec, ROW(N, I(10), I(1)), 3, returned, &text), OK);
    assert_int_equal(db.changed, 0); /* WHERE says no. */
    assert_int_equal(test_db_run(&db, exec, ROW(N, I(12), I(22)), 3, returned, &text), OK);
    /* Another constraint than the target: an error. */
    assert_fails(&db, test_db_run(&db, exec, ROW(I(1), I(50), I(50)), 3, returned, &text),
                 ERR_CONSTRAINT_PRIMARYKEY, "UNIQUE constraint failed: t.a");
    /* The update itself may fail. */
    assert_fails(&db, test_db_run(&db, exec, ROW(N, I(11), I(99)), 3, returned, &text),
                 ERR_CONSTRAINT_UNIQUE, "UNIQUE constraint failed: t.c");
    exec_close(exec);
    plan_free(plan);
    assert_int_equal(buf_append_byte(&text, 0), OK);
    assert_string_equal((char *)text.p, "1,120 3,22 ");
    buf_free(&text);
    assert_rows(&db, t, "1,10,120 2,11,21 3,12,22 ");
    check_indexes(&db, t);

    /* ON CONFLICT(c) DO NOTHING ON CONFLICT DO UPDATE SET b = 'any' */
    plan = plan_insert_params(t, CONFLICT_DEFAULT);
    upsert = add_upsert(plan, true);
    upsert->index = t->index[0];
    upsert = add_upsert(plan, false);
    upsert->any = true;
    upsert->set_column[0] = 1;
    upsert->set_expr[0] = px_text(&plan->arena, "any");
    upsert->set_count = 1;
    assert_int_equal(exec_open(plan, &db.env, &exec, &db.msg), OK);
    assert_int_equal(test_db_run(&db, exec, ROW(I(1), I(10), I(21)), 3, NULL, NULL), OK);
    assert_rows(&db, t, "1,10,120 2,11,21 3,12,22 ");
    assert_int_equal(test_db_run(&db, exec, ROW(I(1), I(12), I(300)), 3, NULL, NULL), OK);
    assert_rows(&db, t, "1,any,120 2,11,21 3,12,22 ");
    check_indexes(&db, t);
    exec_close(exec);
    plan_free(plan);
    test_db_close(&db);
}

/* ---- WITHOUT ROWID ---- */

static void
tables_without_rowid(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    static const MakeColumn columns[] = {
        {.name = "a", .collation = &collation_nocase}, {.name = "b"}, {.name = "c"}};
    static const MakeKey key[] = {{.column = 1, .desc = true},
                                  {.column = 0, .collation = &collation_nocase}};
    static const MakeKey c = {.column = 2};
    TableDef *t = make_table(&db.arena, "w", columns, 3);
    make_primary(&db.arena, t, key, 2);
    IndexDef *index[2] = {make_index(&db.arena, t, "iu", true, &c, 1),
                          make_index(&db.arena, t, "in", false, &c, 1)};
    test_db_create(&db, t, index, 2);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(T("A"), I(1), T("x"))), OK);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(T("b"), I(2), N)), OK);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(T("c"), I(2), N)), OK);
    assert_rows(&db, t, "b,2,- c,2,- A,1,x ");
    assert_fails(&db, insert(&db, t, CONFLICT_DEFAULT, ROW(T("a"), I(1), N)),
                 ERR_CONSTRAINT_PRIMARYKEY, "UNIQUE constraint failed: w.b, w.a");
    assert_fails(&db, insert(&db, t, CONFLICT_DEFAULT, ROW(T("z"), I(1), T("x"))),
                 ERR_CONSTRAINT_UNIQUE, "UNIQUE constraint failed: w.c");
    assert_fails(&db, insert(&db, t, CONFLICT_DEFAULT, ROW(N, I(1), T("y"))),
                 ERR_CONSTRAINT_NOTNULL, "NOT NULL constraint failed: w.a");
    check_indexes(&db, t);
    /* The same key in other letters: the row is replaced in place. */
    assert_int_equal(insert(&db, t, CONFLICT_REPLACE, ROW(T("a"), I(1), T("y"))), OK);
    assert_rows(&db, t, "b,2,- c,2,- a,1,y ");
    check_indexes(&db, t);
    Plan *plan = plan_change_where(WRITE_UPDATE, t, CONFLICT_DEFAULT, 0);
    plan_set(plan, 0, px_text(&plan->arena, "B"));
    plan_set(plan, 2, px_text(&plan->arena, "new"));
    assert_int_equal(test_db_run_plan(&db, plan, ROW(T("b")), 1), OK);
    assert_rows(&db, t, "B,2,new c,2,- a,1,y ");
    check_indexes(&db, t);
    plan = plan_change_where(WRITE_UPDATE, t, CONFLICT_REPLACE, 0);
    plan_set(plan, 0, px_text(&plan->arena, "C"));
    assert_int_equal(test_db_run_plan(&db, plan, ROW(T("B")), 1), OK);
    assert_rows(&db, t, "C,2,new a,1,y ");
    check_indexes(&db, t);
    plan = plan_change_where(WRITE_DELETE, t, CONFLICT_DEFAULT, 2);
    assert_int_equal(test_db_run_plan(&db, plan, ROW(T("new")), 1), OK);
    assert_rows(&db, t, "a,1,y ");
    check_indexes(&db, t);
    test_db_close(&db);
}

/* ---- running again ---- */

static void
running_again_allocates_nothing(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    TableDef *t = make_t(&db);
    /* A row that a NOT NULL column says to ignore: everything happens but the write itself, for
       which the store allocates. */
    t->column[2].not_null = true;
    t->column[2].not_null_conflict = CONFLICT_IGNORE;
    Plan *plan = plan_insert_params(t, CONFLICT_DEFAULT);
    Exec *exec;
    assert_int_equal(exec_open(plan, &db.env, &exec, &db.msg), OK);
    Cell values[3] = {N, T("a text of some length, not inline"), N};
    for (u32 i = 0; i < 10; i++) {
        assert_int_equal(test_db_run(&db, exec, values, 3, NULL, NULL), OK);
    }
    mem_fail_arm(1, true);
    Err err = test_db_run(&db, exec, values, 3, NULL, NULL);
    bool fired = mem_fail_fired();
    mem_fail_arm(0, false);
    assert_int_equal(err, OK);
    assert_false(fired);
    exec_close(exec);
    plan_free(plan);
    test_db_close(&db);
}

static void
every_failing_allocation_is_survived(void **state)
{
    (void)state;
    TestDb db;
    test_db_open(&db);
    TableDef *t = make_t(&db);
    assert_int_equal(insert(&db, t, CONFLICT_DEFAULT, ROW(I(1), I(10), I(20))), OK);
    for (u64 nth = 1; nth < 400; nth++) {
        Plan *plan = plan_insert_params(t, CONFLICT_REPLACE);
        mem_fail_arm(nth, false);
        Err err = test_db_run_plan(&db, plan, ROW(I(2), I(10), I(21)), 3);
        bool fired = mem_fail_fired();
        mem_fail_arm(0, false);
        check_indexes(&db, t);
        if (err != OK) {
            assert_true(fired);
            assert_int_equal(err, ERR_NOMEM);
        }
        if (!fired) break;
        Plan *back = plan_change_where(WRITE_UPDATE, t, CONFLICT_DEFAULT, COLUMN_EXPR);
        plan_set(back, 0, px_int(&back->arena, 1));
        assert_int_equal(test_db_run_plan(&db, back, NULL, 0), OK);
    }
    test_db_close(&db);
}

/* ---- random statements against a model ---- */

typedef struct ModelRow {
    bool used;
    i64 a, b, c; /* b, c: 0 is NULL */
} ModelRow;

#define MODEL_ROWS 40

typedef struct Model {
    ModelRow row[MODEL_ROWS];
} Model;

static ModelRow *
model_find(Model *model, int column, i64 value, const ModelRow *but)
{
    for (u32 i = 0; i < MODEL_ROWS; i++) {
        ModelRow *row = &model->row[i];
        if (!row->used || row == but) continue;
        i64 got = column == 0 ? row->a : column == 1 ? row->b : row->c;
        if (got == value && (column == 0 || value != 0)) return row;
    }
    return NULL;
}

/* One row with values a, b, c comes (old NULL) or changes.  False: an error stops the statement. */
static bool
model_put(Model *model, ModelRow *old, ModelRow fresh, Conflict conflict)
{
    static const int order[] = {0, 2, 1};
    i64 value[] = {fresh.a, fresh.b, fresh.c};
    for (u32 i = 0; i < 3; i++) {
        ModelRow *way = model_find(model, order[i], value[order[i]], old);
        if (way == NULL) continue;
        if (conflict == CONFLICT_IGNORE) return true;
        if (conflict != CONFLICT_REPLACE) return false;
        way->used = false;
    }
    if (old == NULL) {
        for (u32 i = 0; i < MODEL_ROWS && old == NULL; i++) {
            if (!model->row[i].used) old = &model->row[i];
        }
    }
    assert_non_null(old);
    *old = fresh;
    old->used = true;
    return true;
}

static char *
model_dump(TestDb *db, Model *model)
{
    char *text = arena_strndup(&db->arena, "", 0);
    for (i64 a = 0; a < 30; a++) {
        const ModelRow *row = model_find(model, 0, a, NULL);
        if (row == NULL) continue;
        char b[24] = "-", c[24] = "-";
        if (row->b != 0) (void)snprintf(b, sizeof(b), "%lld", (long long)row->b);
        if (row->c != 0) (void)snprintf(c, sizeof(c), "%lld", (long long)row->c);
        text = arena_printf(&db->arena, "%s%lld,%s,%s ", text, (long long)a, b, c);
    }
    return text;
}

static Cell
small_cell(i64 value)
{
    return value == 0 ? cell_null() : cell_int(value);
}

static void
random_insert(TestDb *db, TableDef *t, Model *model, Rng *rng, Conflict conflict)
{
    ModelRow rows[3];
    u32 count = 1 + (u32)rng_below(rng, 3);
    Plan *plan = plan_insert_params(t, conflict);
    PlanNode *values = node_values(plan, count, 3);
    for (u32 i = 0; i < count; i++) {
        rows[i] = (ModelRow){true, (i64)rng_below(rng, 12), (i64)rng_below(rng, 9),
                             (i64)rng_below(rng, 9)};
        values->u.values.row[i][0] = px_int(&plan->arena, rows[i].a);
        values->u.values.row[i][1] = px_cell(&plan->arena, small_cell(rows[i].b));
        values->u.values.row[i][2] = px_cell(&plan->arena, small_cell(rows[i].c));
    }
    plan->write->source = values;
    Err err = test_db_run_plan(db, plan, NULL, 0);
    Model before = *model;
    bool good = true;
    for (u32 i = 0; i < count && good; i++) {
        good = model_put(model, NULL, rows[i], conflict);
    }
    if (!good && conflict != CONFLICT_FAIL) *model = before;
    assert_int_equal(err == OK, good);
}

/* UPDATE t SET a = a + da, b = vb WHERE c = wc (or of all rows), in rowid order. */
static void
random_update(TestDb *db, TableDef *t, Model *model, Rng *rng, Conflict conflict)
{
    i64 step = (i64)rng_below(rng, 3);
    i64 wanted = (i64)rng_below(rng, 9);
    bool sets_a = rng_below(rng, 2) != 0, sets_b = !sets_a || rng_below(rng, 2) != 0;
    i64 b = (i64)rng_below(rng, 9);
    bool all = rng_below(rng, 3) == 0;
    Plan *plan = plan_change_where(WRITE_UPDATE, t, conflict, all ? COLUMN_EXPR : 2);
    Arena *arena = &plan->arena;
    if (sets_a) {
        plan_set(plan, 0, px_two(arena, PX_ADD, px_column(arena, 0), px_int(arena, step)));
    }
    if (sets_b) plan_set(plan, 1, px_cell(arena, small_cell(b)));
    plan->write->index[0].touched = sets_a;
    plan->write->index[1].touched = true;
    Err err = test_db_run_plan(db, plan, ROW(small_cell(wanted)), 1);

    Model before = *model;
    i64 targets[MODEL_ROWS];
    u32 count = 0;
    for (i64 a = 0; a < 60; a++) {
        const ModelRow *row = model_find(model, 0, a, NULL);
        if (row != NULL && (all || (wanted != 0 && row->c == wanted))) targets[count++] = a;
    }
    bool good = true;
    for (u32 i = 0; i < count && good; i++) {
        ModelRow *row = model_find(model, 0, targets[i], NULL);
        if (row == NULL) continue;
        ModelRow fresh = *row;
        if (sets_a) fresh.a += step;
        if (sets_b) fresh.b = b;
        good = model_put(model, row, fresh, conflict);
    }
    if (!good && conflict != CONFLICT_FAIL) *model = before;
    assert_int_equal(err == OK, good);
}

static void
random_delete(TestDb *db, TableDef *t, Model *model, Rng *rng, bool big)
{
    i64 wanted = 1 + (i64)rng_below(rng, 8);
    u16 column = big ? COLUMN_EXPR : (u16)(1 + rng_below(rng, 2));
    Plan *plan = plan_change_where(WRITE_DELETE, t, CONFLICT_DEFAULT, column);
    assert_int_equal(test_db_run_plan(db, plan, ROW(I(wanted)), 1), OK);
    for (u32 i = 0; i < MODEL_ROWS; i++) {
        ModelRow *row = &model->row[i];
        if (big || (column == 1 ? row->b : row->c) == wanted) row->used = false;
    }
}

static void
random_statements_agree_with_the_model(void **state)
{
    (void)state;
    for (u64 seed = 1; seed <= 6; seed++) {
        TestDb db;
        test_db_open(&db);
        TableDef *t = make_t(&db);
        Model model = {0};
        Rng rng;
        rng_seed(&rng, seed);
        for (u32 n = 0; n < 250; n++) {
            ArenaMark mark = arena_mark(&db.arena);
            Conflict conflict = (Conflict)rng_below(&rng, 6);
            bool big = model_find(&model, 0, 25, NULL) != NULL || rng_below(&rng, 60) == 0;
            for (i64 a = 18; a < 30; a++) {
                if (model_find(&model, 0, a, NULL) != NULL) big = true;
            }
            switch (big ? 2 : rng_below(&rng, 4)) {
            case 0:
            case 3: random_insert(&db, t, &model, &rng, conflict); break;
            case 1: random_update(&db, t, &model, &rng, conflict); break;
            default: random_delete(&db, t, &model, &rng, big);
            }
            assert_string_equal(dump(&db, t), model_dump(&db, &model));
            check_indexes(&db, t);
            arena_rewind(&db.arena, mark);
        }
        test_db_close(&db);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rowids_follow_the_last_one),
        cmocka_unit_test(negative_and_largest_rowids),
        cmocka_unit_test(many_rows_in_one_statement),
        cmocka_unit_test(conflicts_have_sqlites_words),
        cmocka_unit_test(fail_keeps_earlier_rows),
        cmocka_unit_test(constraints_have_clauses_of_their_own),
        cmocka_unit_test(checks_have_sqlites_words),
        cmocka_unit_test(strict_types_are_checked),
        cmocka_unit_test(updates_are_checked_row_by_row),
        cmocka_unit_test(upserts_update_the_row_in_the_way),
        cmocka_unit_test(tables_without_rowid),
        cmocka_unit_test(running_again_allocates_nothing),
        cmocka_unit_test(every_failing_allocation_is_survived),
        cmocka_unit_test(random_statements_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
