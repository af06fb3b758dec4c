/*
 * write_trigger_test.c -- triggers and foreign keys on hand-made plans.
 *
 * Method: each script builds one table with its triggers (their bodies are plans too) and a log
 * table that bodies write to; the log tells what ran, in which order and with which values.  All
 * results were taken from SQLite.
 */
#include <stdio.h>

#include "unit/exec/look.h"

/* One database with t(a INTEGER PRIMARY KEY, b UNIQUE) and log(x, y). */
typedef struct Scene {
    TestDb db;
    TableDef *t, *log;
    Plan *made[64]; /* Bodies, freed at the end. */
    u32 made_count;
} Scene;

#define OLD_REG 0u
#define NEW_REG 10u

static void
scene_open(Scene *scene)
{
    *scene = (Scene){0};
    test_db_open(&scene->db);
    static const MakeColumn t_columns[] = {{.name = "a", .affinity = AFFINITY_INTEGER},
                                           {.name = "b"}};
    static const MakeColumn log_columns[] = {{.name = "x"}, {.name = "y"}};
    static const MakeKey b = {.column = 1};
    Arena *arena = &scene->db.arena;
    scene->t = make_table(arena, "t", t_columns, 2);
    scene->t->rowid_column = 0;
    IndexDef *index[1] = {make_index(arena, scene->t, "ib", true, &b, 1)};
    test_db_create(&scene->db, scene->t, index, 1);
    scene->log = make_table(arena, "log", log_columns, 2);
    test_db_create(&scene->db, scene->log, NULL, 0);
}

static void
scene_close(Scene *scene)
{
    check_indexes(&scene->db, scene->t);
    for (u32 i = 0; i < scene->made_count; i++) {
        plan_free(scene->made[i]);
    }
    test_db_close(&scene->db);
}

static Plan *
keep(Scene *scene, Plan *plan)
{
    assert_true(scene->made_count < COUNT_OF(scene->made));
    scene->made[scene->made_count++] = plan;
    plan->reg_count = 40;
    return plan;
}

/* INSERT INTO table VALUES (x, y) as a body. */
static Plan *
body_insert(Scene *scene, const TableDef *table, PlanExpr *(*x)(Arena *), PlanExpr *(*y)(Arena *))
{
    Plan *plan = keep(scene, plan_write(WRITE_INSERT, table, CONFLICT_DEFAULT));
    plan->write->source = node_values(plan, 1, 2);
    plan->write->source->u.values.row[0][0] = x(&plan->arena);
    plan->write->source->u.values.row[0][1] = y(&plan->arena);
    plan->write->value_cell[0] = 0;
    plan->write->value_cell[1] = 1;
    return plan;
}

/* SELECT RAISE(...) */
static Plan *
body_raise(Scene *scene, Conflict action, const char *text)
{
    Plan *plan = keep(scene, plan_new());
    PlanExpr **expr = ARENA_NEW(&plan->arena, PlanExpr *);
    expr[0] = px_raise(&plan->arena, action, text);
    plan->root = node_project(plan, node_new(plan, PLAN_ONE_ROW, 0), expr, 1);
    plan->column_count = 1;
    plan->klass = PLAN_VOLATILE;
    plan->root->klass = PLAN_VOLATILE;
    return plan;
}

static PlanExpr *
old_a(Arena *arena)
{
    return px_reg(arena, OLD_REG);
}
static PlanExpr *
new_a(Arena *arena)
{
    return px_reg(arena, NEW_REG);
}
static PlanExpr *
new_b(Arena *arena)
{
    return px_reg(arena, NEW_REG + 1);
}
static PlanExpr *
new_rowid(Arena *arena)
{
    return px_reg(arena, NEW_REG + 2);
}
static PlanExpr *
say_bi(Arena *arena)
{
    return px_text(arena, "bi");
}
static PlanExpr *
say_ai(Arena *arena)
{
    return px_text(arena, "ai");
}
static PlanExpr *
say_bu(Arena *arena)
{
    return px_text(arena, "bu");
}
static PlanExpr *
say_au(Arena *arena)
{
    return px_text(arena, "au");
}
static PlanExpr *
say_bd(Arena *arena)
{
    return px_text(arena, "bd");
}
static PlanExpr *
say_ad(Arena *arena)
{
    return px_text(arena, "ad");
}
static PlanExpr *
null_expr(Arena *arena)
{
    return px_cell(arena, N);
}
static PlanExpr *
new_a_plus_1(Arena *arena)
{
    return px_two(arena, PX_ADD, px_reg(arena, NEW_REG), px_int(arena, 1));
}

static PlanTrigger *
add_trigger(Plan *plan, PlanWriteKind event, bool before, Plan *body)
{
    PlanWrite *write = plan->write;
    if (write->trigger == NULL) write->trigger = ARENA_NEW_ARRAY(&plan->arena, PlanTrigger, 8);
    PlanTrigger *trigger = &write->trigger[write->trigger_count++];
    *trigger = (PlanTrigger){
        .name = arena_printf(&plan->arena, "tr%u%d%d", write->trigger_count, event, before),
        .event = (u8)event,
        .before = before,
        .body_count = body != NULL ? 1 : 0,
        .body = ARENA_NEW_ARRAY(&plan->arena, Plan *, 2),
        .old_reg = OLD_REG,
        .new_reg = NEW_REG,
    };
    trigger->body[0] = body;
    plan->reg_count = 40;
    return trigger;
}

static Err
run(Scene *scene, Plan *plan, const Cell *param, u32 params)
{
    return test_db_run_plan(&scene->db, plan, param, params);
}

static void
insert_triggers_see_rowids(void **state)
{
    (void)state;
    Scene scene;
    scene_open(&scene);
    for (u32 round = 0; round < 2; round++) {
        Plan *plan = plan_insert_params(scene.t, CONFLICT_DEFAULT);
        add_trigger(plan, WRITE_INSERT, false, body_insert(&scene, scene.log, new_rowid, new_b));
        add_trigger(plan, WRITE_INSERT, true, body_insert(&scene, scene.log, new_a, say_bi));
        Cell values[2] = {round == 0 ? N : I(50), T(round == 0 ? "x" : "y")};
        scene.db.last_rowid = 0;
        assert_int_equal(run(&scene, plan, values, 2), OK);
        assert_int_equal(scene.db.last_rowid, round == 0 ? 1 : 50); /* Not the log's. */
        assert_int_equal(scene.db.changed, 1);
    }
    assert_rows(&scene.db, scene.log, "-1,bi 1,x 50,bi 50,y ");
    scene_close(&scene);
}

static void
raise_stops_as_it_says(void **state)
{
    (void)state;
    Scene scene;
    scene_open(&scene);
    static const struct {
        Conflict action;
        ExecUndo undo;
        const char *rows;
    } cases[] = {
        {CONFLICT_ABORT, EXEC_UNDO_STATEMENT, ""},
        {CONFLICT_ROLLBACK, EXEC_UNDO_TRANSACTION, ""},
        {CONFLICT_IGNORE, EXEC_UNDO_STATEMENT, "1,1 3,3 "},
        {CONFLICT_FAIL, EXEC_UNDO_NOTHING, "1,1 3,3 11,1001 "},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Plan *plan = plan_insert_params(scene.t, CONFLICT_DEFAULT);
        PlanNode *values = node_values(plan, 3, 2);
        i64 base = cases[i].action == CONFLICT_FAIL ? 10 : 0;
        for (u32 n = 0; n < 3; n++) {
            values->u.values.row[n][0] = px_int(&plan->arena, base + 1 + n);
            values->u.values.row[n][1] = px_int(&plan->arena, base * 100 + 1 + n);
        }
        plan->write->source = values;
        PlanTrigger *trigger = add_trigger(
            plan, WRITE_INSERT, true,
            body_raise(&scene, cases[i].action,
                       cases[i].action == CONFLICT_IGNORE ? NULL : "stop here"));
        trigger->when = px_two(&plan->arena, PX_EQ, px_reg(&plan->arena, NEW_REG),
                               px_int(&plan->arena, base + 2));
        Err err = run(&scene, plan, NULL, 0);
        if (cases[i].action == CONFLICT_IGNORE) {
            assert_int_equal(err, OK);
            assert_int_equal(scene.db.changed, 2);
        } else {
            assert_int_equal(err, ERR_CONSTRAINT_TRIGGER);
            assert_string_equal(err_message(&scene.db.msg), "stop here");
            assert_int_equal(scene.db.undo, cases[i].undo);
        }
        assert_rows(&scene.db, scene.t, cases[i].rows);
        check_indexes(&scene.db, scene.t);
    }
    scene_close(&scene);
}

static void
fill(Scene *scene, i64 count)
{
    for (i64 i = 1; i <= count; i++) {
        assert_int_equal(
            run(scene, plan_insert_params(scene->t, CONFLICT_DEFAULT), ROW(I(i), I(i * 10)), 2),
            OK);
    }
}

/* A BEFORE trigger that deletes a later target, or the row itself: the statement skips it. */
static void
targets_may_vanish(void **state)
{
    (void)state;
    for (u32 round = 0; round < 2; round++) {
        Scene scene;
        scene_open(&scene);
        fill(&scene, 4);
        Plan *body = keep(&scene, plan_change_where(WRITE_DELETE, scene.t, CONFLICT_DEFAULT, 0));
        Arena *arena = &body->arena;
        PlanExpr *victim = round == 0 ? new_a_plus_1(arena) : new_a(arena);
        body->write->source->input->u.scan.filter->arg[1] = victim;
        Plan *plan = plan_change_where(WRITE_UPDATE, scene.t, CONFLICT_DEFAULT, COLUMN_EXPR);
        plan_set(plan, 1,
                 px_two(&plan->arena, PX_ADD, px_column(&plan->arena, 1), px_int(&plan->arena, 1)));
        add_trigger(plan, WRITE_UPDATE, true, body);
        assert_int_equal(run(&scene, plan, NULL, 0), OK);
        assert_int_equal(scene.db.changed, round == 0 ? 2 : 0);
        assert_rows(&scene.db, scene.t, round == 0 ? "1,11 3,31 " : "");
        scene_close(&scene);
    }
}

/* AFTER INSERT ON t WHEN NEW.a < limit: INSERT INTO t VALUES (NEW.a + 1, NULL), firing itself. */
static Plan *
make_chain(Scene *scene, i64 limit)
{
    Plan *body = body_insert(scene, scene->t, new_a_plus_1, null_expr);
    Plan *plan = plan_insert_params(scene->t, CONFLICT_DEFAULT);
    PlanTrigger *trigger = add_trigger(plan, WRITE_INSERT, false, body);
    trigger->when = px_two(&plan->arena, PX_LT, px_reg(&plan->arena, NEW_REG),
                           px_int(&plan->arena, limit));
    body->write->trigger = plan->write->trigger;
    body->write->trigger_count = 1;
    return plan;
}

static void
triggers_fire_themselves_if_allowed(void **state)
{
    (void)state;
    Scene scene;
    scene_open(&scene);
    assert_int_equal(run(&scene, make_chain(&scene, 100), ROW(I(1), N), 2), OK);
    assert_rows(&scene.db, scene.t, "1,- 2,- ");
    assert_int_equal(scene.db.changed, 1);

    scene.db.env.recursive_triggers = true;
    u64 rows;
    assert_int_equal(run(&scene, make_chain(&scene, 1100), ROW(I(100), N), 2), OK);
    assert_int_equal(store_count(scene.db.txn, scene.t->tree, &rows), OK);
    assert_int_equal(rows, 2 + 1001);
    assert_fails(&scene.db, run(&scene, make_chain(&scene, 3102), ROW(I(2101), N), 2), ERR_SQL,
                 "triggers nested too deep");
    assert_int_equal(store_count(scene.db.txn, scene.t->tree, &rows), OK);
    assert_int_equal(rows, 2 + 1001);
    scene_close(&scene);
}

static void
replace_fires_delete_triggers_if_recursive(void **state)
{
    (void)state;
    for (u32 round = 0; round < 2; round++) {
        Scene scene;
        scene_open(&scene);
        fill(&scene, 2);
        scene.db.env.recursive_triggers = round == 1;
        Plan *plan = plan_insert_params(scene.t, CONFLICT_REPLACE);
        add_trigger(plan, WRITE_INSERT, false, body_insert(&scene, scene.log, new_a, say_ai));
        add_trigger(plan, WRITE_DELETE, true, body_insert(&scene, scene.log, old_a, say_bd));
        add_trigger(plan, WRITE_DELETE, false, body_insert(&scene, scene.log, old_a, say_ad));
        assert_int_equal(run(&scene, plan, ROW(I(1), I(20)), 2), OK);
        assert_int_equal(scene.db.changed, 1);
        assert_rows(&scene.db, scene.t, "1,20 ");
        assert_rows(&scene.db, scene.log, round == 0 ? "1,ai " : "1,bd 1,ad 2,bd 2,ad 1,ai ");
        scene_close(&scene);
    }
}

static void
upsert_fires_update_triggers(void **state)
{
    (void)state;
    Scene scene;
    scene_open(&scene);
    fill(&scene, 1);
    Plan *plan = plan_insert_params(scene.t, CONFLICT_DEFAULT);
    Arena *arena = &plan->arena;
    plan->write->upsert_count = 1;
    plan->write->upsert = ARENA_NEW(arena, PlanUpsert);
    plan->write->upsert->index = scene.t->index[0];
    plan->write->upsert->set_count = 1;
    plan->write->upsert->set_column = ARENA_NEW(arena, u16);
    plan->write->upsert->set_expr = ARENA_NEW(arena, PlanExpr *);
    plan->write->upsert->set_column[0] = 0;
    plan->write->upsert->set_expr[0] = px_two(arena, PX_ADD, px_column(arena, 0),
                                              px_int(arena, 100));
    add_trigger(plan, WRITE_INSERT, true, body_insert(&scene, scene.log, new_a, say_bi));
    add_trigger(plan, WRITE_INSERT, false, body_insert(&scene, scene.log, new_a, say_ai));
    add_trigger(plan, WRITE_UPDATE, true, body_insert(&scene, scene.log, new_a, say_bu));
    add_trigger(plan, WRITE_UPDATE, false, body_insert(&scene, scene.log, old_a, say_au));
    PlanTrigger *other = add_trigger(plan, WRITE_UPDATE, false,
                                     body_insert(&scene, scene.log, old_a, say_ad));
    static u16 of_b = 1;
    other->of_count = 1;
    other->of_column = &of_b;
    assert_int_equal(run(&scene, plan, ROW(I(7), I(10)), 2), OK);
    assert_rows(&scene.db, scene.t, "101,10 ");
    assert_rows(&scene.db, scene.log, "7,bi 101,bu 1,au ");
    scene_close(&scene);
}

static void
see_pair(void *arg, const Cell *row)
{
    put_cell(arg, &row[0]);
    assert_int_equal(buf_append_text(arg, ","), OK);
    put_cell(arg, &row[1]);
    assert_int_equal(buf_append_text(arg, " "), OK);
}

/* DELETE ... RETURNING a, (SELECT count(*) FROM t): each row sees the changes so far, and AFTER
   triggers not yet. */
static void
returning_sees_each_change(void **state)
{
    (void)state;
    Scene scene;
    scene_open(&scene);
    fill(&scene, 2);
    Plan *plan = plan_change_where(WRITE_DELETE, scene.t, CONFLICT_DEFAULT, COLUMN_EXPR);
    Arena *arena = &plan->arena;
    PlanSub *sub = ARENA_NEW(arena, PlanSub);
    sub->columns = 1;
    sub->number = plan->sub_count++;
    sub->root = node_new(plan, PLAN_COUNT, 1);
    sub->root->u.count.table = scene.t;
    sub->root->u.count.tree = scene.t->tree;
    PlanExpr *scalar = px_new(arena, PX_SCALAR, 0);
    scalar->flags = PX_FLAG_HAS_SUB;
    scalar->u.sub = sub;
    plan->column_count = plan->write->returning_count = 2;
    plan->write->returning = ARENA_NEW_ARRAY(arena, PlanExpr *, 2);
    plan->write->returning[0] = px_column(arena, 0);
    plan->write->returning[1] = scalar;
    add_trigger(plan, WRITE_DELETE, false, body_insert(&scene, scene.t, new_a_plus_1, null_expr))
        ->when = px_int(arena, 0);
    Exec *exec;
    assert_int_equal(exec_open(plan, &scene.db.env, &exec, &scene.db.msg), OK);
    Buf text = {0};
    assert_int_equal(test_db_run(&scene.db, exec, NULL, 0, see_pair, &text), OK);
    assert_int_equal(buf_append_byte(&text, 0), OK);
    assert_string_equal((char *)text.p, "1,1 2,0 ");
    buf_free(&text);
    exec_close(exec);
    plan_free(plan);
    scene_close(&scene);
}

/* ---- foreign keys: child(p REFERENCES t(a) or t(b)) ---- */

static TableDef *
make_child(Scene *scene, ForeignAction on_delete, ForeignAction on_update, bool deferred)
{
    static const MakeColumn columns[] = {{.name = "id", .affinity = AFFINITY_INTEGER},
                                         {.name = "p"}};
    Arena *arena = &scene->db.arena;
    TableDef *child = make_table(arena, "child", columns, 2);
    child->rowid_column = 0;
    test_db_create(&scene->db, child, NULL, 0);
    child->foreign_key_count = 1;
    child->foreign_key = ARENA_NEW(arena, ForeignKeyDef);
    static u16 column = 1;
    child->foreign_key[0] = (ForeignKeyDef){
        .parent_table = "t",
        .column_count = 1,
        .column = &column,
        .on_delete = (u8)on_delete,
        .on_update = (u8)on_update,
        .deferred = deferred,
    };
    return child;
}

/* Give a write on the child its foreign key. */
static Plan *
with_key(const Scene *scene, Plan *plan, TableDef *child, bool to_index)
{
    PlanForeignKey *key = ARENA_NEW(&plan->arena, PlanForeignKey);
    static u16 column = 1;
    *key = (PlanForeignKey){
        .def = child->foreign_key,
        .parent = scene->t,
        .index = to_index ? scene->t->index[0] : NULL,
        .child_column = &column,
        .touched = true,
    };
    plan->write->foreign_key = key;
    plan->write->foreign_key_count = 1;
    return plan;
}

/* Give a write on t the child that refers to it. */
static Plan *
with_child(Scene *scene, Plan *plan, TableDef *child, bool to_index)
{
    static u16 columns[2] = {0, 1};
    PlanForeignChild *side = ARENA_NEW(&plan->arena, PlanForeignChild);
    u16 parent = to_index ? 1 : 0;
    Plan *find = keep(scene, plan_new());
    static const u16 p = 1;
    find->root = node_scan(find, child, &p, 1,
                           px_two(&find->arena, PX_EQ, px_column(&find->arena, 0),
                                  px_reg(&find->arena, OLD_REG + parent)));
    find->column_count = 1;
    Plan *action[2] = {NULL, NULL};
    for (u32 i = 0; i < 2; i++) {
        u8 what = i == 0 ? child->foreign_key->on_delete : child->foreign_key->on_update;
        if (what == FOREIGN_NO_ACTION || what == FOREIGN_RESTRICT) continue;
        bool deletes = i == 0 && what == FOREIGN_CASCADE;
        action[i] = keep(scene, plan_change_where(deletes ? WRITE_DELETE : WRITE_UPDATE, child,
                                                  CONFLICT_DEFAULT, 1));
        Arena *arena = &action[i]->arena;
        action[i]->write->source->input->u.scan.filter->arg[1] = px_reg(arena, OLD_REG + parent);
        (void)with_key(scene, action[i], child, to_index);
        if (deletes) continue;
        plan_set(action[i], 1,
                 what == FOREIGN_CASCADE ? px_reg(arena, NEW_REG + parent) : px_cell(arena, N));
    }
    *side = (PlanForeignChild){
        .def = child->foreign_key,
        .child = child,
        .parent_column = &columns[parent],
        .touched = true,
        .find = find,
        .on_delete = action[0],
        .on_update = action[1],
        .old_reg = OLD_REG,
        .new_reg = NEW_REG,
    };
    plan->write->foreign_child = side;
    plan->write->foreign_child_count = 1;
    return plan;
}

static Err
child_insert(Scene *scene, TableDef *child, bool to_index, Cell id, Cell p)
{
    return run(scene, with_key(scene, plan_insert_params(child, CONFLICT_DEFAULT), child, to_index),
               ROW(id, p), 2);
}

static void
children_need_parents(void **state)
{
    (void)state;
    for (u32 to_index = 0; to_index < 2; to_index++) {
        Scene scene;
        scene_open(&scene);
        fill(&scene, 2);
        TableDef *child = make_child(&scene, FOREIGN_NO_ACTION, FOREIGN_NO_ACTION, false);
        i64 good = to_index ? 20 : 2;
        assert_int_equal(child_insert(&scene, child, to_index, I(1), I(good)), OK);
        assert_int_equal(child_insert(&scene, child, to_index, I(2), N), OK);
        assert_fails(&scene.db, child_insert(&scene, child, to_index, I(3), I(99)),
                     ERR_CONSTRAINT_FOREIGNKEY, "FOREIGN KEY constraint failed");
        assert_rows(&scene.db, child, to_index ? "1,20 2,- " : "1,2 2,- ");
        /* The parent cannot go, nor change its key; another one can. */
        for (u32 a = 1; a <= 2; a++) {
            Plan *plan = plan_change_where(WRITE_DELETE, scene.t, CONFLICT_DEFAULT, 0);
            assert_int_equal(run(&scene, with_child(&scene, plan, child, to_index), ROW(I(a)), 1),
                             a == 1 ? OK : ERR_CONSTRAINT_FOREIGNKEY);
        }
        Plan *plan = plan_change_where(WRITE_UPDATE, scene.t, CONFLICT_DEFAULT, 0);
        plan_set(plan, to_index ? 1 : 0, px_int(&plan->arena, 77));
        assert_int_equal(run(&scene, with_child(&scene, plan, child, to_index), ROW(I(2)), 1),
                         ERR_CONSTRAINT_FOREIGNKEY);
        /* The same value again is no change. */
        plan = plan_change_where(WRITE_UPDATE, scene.t, CONFLICT_DEFAULT, 0);
        plan_set(plan, to_index ? 1 : 0, px_int(&plan->arena, good));
        assert_int_equal(run(&scene, with_child(&scene, plan, child, to_index), ROW(I(2)), 1), OK);
        scene_close(&scene);
    }
}

static void
deferred_keys_are_counted(void **state)
{
    (void)state;
    Scene scene;
    scene_open(&scene);
    TableDef *child = make_child(&scene, FOREIGN_NO_ACTION, FOREIGN_NO_ACTION, true);
    Plan *plan = with_key(&scene, plan_insert_params(child, CONFLICT_DEFAULT), child, false);
    Exec *exec;
    assert_int_equal(exec_open(plan, &scene.db.env, &exec, &scene.db.msg), OK);
    assert_int_equal(exec_start(exec, scene.db.by_database, ROW(I(1), I(5)), 2), OK);
    bool row;
    assert_int_equal(exec_step(exec, &row), OK);
    assert_int_equal(exec_deferred_violations(exec), 1);
    exec_reset(exec);
    exec_close(exec);
    plan_free(plan);
    /* Inserting the parent mends it. */
    scene.db.env.deferred_open = 1;
    plan = with_child(&scene, plan_insert_params(scene.t, CONFLICT_DEFAULT), child, false);
    assert_int_equal(exec_open(plan, &scene.db.env, &exec, &scene.db.msg), OK);
    assert_int_equal(exec_start(exec, scene.db.by_database, ROW(I(5), N), 2), OK);
    assert_int_equal(exec_step(exec, &row), OK);
    assert_int_equal(exec_deferred_violations(exec), -1);
    exec_reset(exec);
    exec_close(exec);
    plan_free(plan);
    scene_close(&scene);
}

static void
actions_follow_the_parent(void **state)
{
    (void)state;
    static const struct {
        ForeignAction action;
        const char *after_update, *after_delete;
        Err err;
        const char *text;
    } cases[] = {
        {FOREIGN_CASCADE, "1,9 2,1 3,9 ", "2,1 ", OK, NULL},
        {FOREIGN_SET_NULL, "1,- 2,1 3,- ", "1,- 2,1 3,- ", OK, NULL},
        {FOREIGN_RESTRICT, "1,2 2,1 3,2 ", "1,2 2,1 3,2 ", ERR_CONSTRAINT_TRIGGER,
         "FOREIGN KEY constraint failed"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Scene scene;
        scene_open(&scene);
        fill(&scene, 2);
        TableDef *child = make_child(&scene, cases[i].action, cases[i].action, false);
        assert_int_equal(child_insert(&scene, child, false, I(1), I(2)), OK);
        assert_int_equal(child_insert(&scene, child, false, I(2), I(1)), OK);
        assert_int_equal(child_insert(&scene, child, false, I(3), I(2)), OK);
        Plan *plan = plan_change_where(WRITE_UPDATE, scene.t, CONFLICT_DEFAULT, 0);
        plan_set(plan, 0, px_int(&plan->arena, 9));
        assert_int_equal(run(&scene, with_child(&scene, plan, child, false), ROW(I(2)), 1),
                         cases[i].err);
        if (cases[i].text != NULL) {
            assert_string_equal(err_message(&scene.db.msg), cases[i].text);
        }
        assert_rows(&scene.db, child, cases[i].after_update);
        plan = plan_change_where(WRITE_DELETE, scene.t, CONFLICT_DEFAULT, 0);
        i64 key = cases[i].err == OK ? 9 : 2;
        assert_int_equal(run(&scene, with_child(&scene, plan, child, false), ROW(I(key)), 1),
                         cases[i].err);
        assert_rows(&scene.db, child, cases[i].after_delete);
        scene_close(&scene);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(insert_triggers_see_rowids),
        cmocka_unit_test(raise_stops_as_it_says),
        cmocka_unit_test(targets_may_vanish),
        cmocka_unit_test(triggers_fire_themselves_if_allowed),
        cmocka_unit_test(replace_fires_delete_triggers_if_recursive),
        cmocka_unit_test(upsert_fires_update_triggers),
        cmocka_unit_test(returning_sees_each_change),
        cmocka_unit_test(children_need_parents),
        cmocka_unit_test(deferred_keys_are_counted),
        cmocka_unit_test(actions_follow_the_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
