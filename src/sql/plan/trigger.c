/*
 * trigger.c -- the triggers that a write sets off, and plans inside of plans.
 *
 * A body is a plan of its own in the arena of the statement's plan.  OLD and NEW are registers; the
 * registers of a statement and of all bodies below it come from one counter, so that no two uses
 * meet, whoever fires whom.  Each trigger is planned once for each conflict clause from outside;
 * one that leads back to itself finds its own, unfinished plan, and the plans form a cycle.
 */
#include "sql/plan/build.h"

#include "sql/parse/parse.h"

void *
plan__memo_find(Binder *b, const void *def, u8 variant)
{
    for (const PlanMemo *memo = *b->memo; memo != NULL; memo = memo->next) {
        if (memo->def == def && memo->variant == variant) return memo->made;
    }
    return NULL;
}

bool
plan__memo_add(Binder *b, const void *def, u8 variant, void *made)
{
    PlanMemo *memo = BIND_NEW(b, PlanMemo);
    if (memo == NULL) return false;
    *memo = (PlanMemo){def, variant, made, *b->memo};
    *b->memo = memo;
    return true;
}

/* ---- plans inside of plans ---- */

Plan *
plan__inner_new(Binder *b)
{
    Plan *plan = KEEP_NEW(b, Plan);
    if (plan == NULL) return NULL;
    plan->references = 1;
    if (!plan__memo_add(b, plan, PLAN_MEMO_INNER, plan)) return NULL;
    plan->sql = b->plan->sql;
    plan->catalog = b->plan->catalog;
    plan->read_only = true;
    return plan;
}

void
plan__inner_begin(Binder *b, Binder *inner, Plan *plan, Slice sql)
{
    *inner = *b;
    inner->outer = b;
    inner->plan = plan;
    inner->sql = sql;
    inner->sql_is_main = false;
    inner->with = NULL;
    inner->track = NULL;
    inner->clause = NULL;
    inner->use_capacity = 0;
    inner->material_capacity = 0;
    inner->trigger_depth++;
}

bool
plan__inner_end(Binder *b, Binder *inner)
{
    if (inner->err == OK) (void)plan__finish(inner, inner->plan);
    if (b->err == OK) b->err = inner->err;
    b->source_count = inner->source_count;
    for (u32 i = 0; b->err == OK && i < inner->plan->table_count; i++) {
        const PlanTableUse *use = &inner->plan->table[i];
        if (!bind__use_table(b, use->table, use->writes)) return false;
    }
    if (!inner->plan->read_only) b->plan->read_only = false;
    return b->err == OK;
}

/* The rows OLD and NEW of `table` as registers from old_reg on; NEW stands behind OLD. */
Scope *
plan__row_scope(Binder *b, const TableDef *table, u32 old_reg, bool has_old, bool has_new)
{
    Scope *scope = BIND_NEW(b, Scope);
    if (scope == NULL) return NULL;
    const char *const names[2] = {"old", "new"};
    const bool wanted[2] = {has_old, has_new};
    for (u32 i = 0; i < 2; i++) {
        if (!wanted[i]) continue;
        Source *source = bind__table_source(b, table, names[i]);
        if (source == NULL) return NULL;
        source->kind = SOURCE_ROW;
        source->bare = SOURCE_BARE_AFFINITY;
        source->no_rowid = table->without_rowid || table->is_view;
        source->base_reg = (i32)(old_reg + i * (table->column_count + 1u));
        scope->row[scope->row_count++] = source;
    }
    return scope;
}

/* ---- one trigger ---- */

static bool
parse_trigger(Binder *b, const TriggerDef *def, const AstCreateTrigger **ast_out)
{
    AstStatement *ast = NULL;
    size_t consumed = 0;
    Err err = sql_parse(b->scratch, bind__text(def->sql), &(ParseOptions){.stored = true}, &ast,
                        &consumed, b->msg);
    if (err != OK) {
        if (b->err == OK) b->err = err;
        return false;
    }
    if (ast == NULL || ast->kind != AST_STMT_CREATE_TRIGGER) {
        bind__fail(b, ERR_CORRUPT, "malformed database schema (%s)", def->name);
        return false;
    }
    *ast_out = ast->u.create_trigger;
    return true;
}

static u8
event_kind(u8 ast_event)
{
    switch (ast_event) {
    case AST_TRIGGER_INSERT: return WRITE_INSERT;
    case AST_TRIGGER_UPDATE: return WRITE_UPDATE;
    default: return WRITE_DELETE;
    }
}

static bool
trigger_columns(Binder *b, const TriggerDef *def, Target *target, PlanTrigger *out)
{
    out->of_column = KEEP_ARRAY(b, u16, def->of_count);
    if (out->of_column == NULL) return false;
    for (u32 i = 0; i < def->of_count; i++) {
        i32 column = bind__find_column(b, target->source, bind__text(def->of_column[i]), false);
        if (column < 0) continue; /* SQLite lets a trigger name columns that do not exist. */
        out->of_column[out->of_count++] = (u16)column;
    }
    if (def->of_count > 0) out->column_mask_any = 1;
    /* None of the named columns exists: it never fires. */
    if (def->of_count > 0 && out->of_count == 0) {
        out->of_column[0] = COLUMN_EXPR;
        out->of_count = 1;
    }
    return true;
}

static bool
plan_step(Binder *b, const AstStatement *step, Slice sql, Scope *scope, const char *schema,
          bool is_temp, Plan *plan)
{
    Binder inner;
    plan__inner_begin(b, &inner, plan, sql);
    inner.scope = scope;
    inner.fixed_schema = schema;
    inner.fixed_is_temp = is_temp;
    (void)plan__any(&inner, step);
    return plan__inner_end(b, &inner);
}

static bool
trigger_bodies(Binder *b, const TriggerDef *def, const AstCreateTrigger *ast, Scope *scope,
               const TableDef *table, bool is_temp, PlanTrigger *out)
{
    for (u32 i = 0; i < ast->count; i++) {
        out->body[i] = plan__inner_new(b);
        if (out->body[i] == NULL) return false;
    }
    const char *inner_name = b->inner_name;
    b->inner_name = def->name;
    bool good = true;
    for (u32 i = 0; i < ast->count && good; i++) {
        good = plan_step(b, ast->steps[i], bind__text(def->sql), scope,
                         is_temp ? "temp" : table->schema, is_temp, out->body[i]);
    }
    b->inner_name = inner_name;
    return good;
}

#define TRIGGER_PLANS_MAX 400u /* Triggers that set each other off, while planning. */

static PlanTrigger *
plan_trigger(Binder *b, Target *target, const TriggerDef *def, bool is_temp)
{
    PlanTrigger *made = plan__memo_find(b, def, b->outer_conflict);
    if (made != NULL) return made;
    if (b->trigger_depth >= TRIGGER_PLANS_MAX)
        return bind__fail(b, ERR_SQL, "triggers nested too deep");
    const AstCreateTrigger *ast;
    made = KEEP_NEW(b, PlanTrigger);
    if (made == NULL || !parse_trigger(b, def, &ast)) return NULL;
    if (!plan__memo_add(b, def, b->outer_conflict, made)) return NULL;
    const TableDef *table = target->table;
    made->name = def->name;
    made->event = event_kind(def->event);
    made->before = def->time != AST_TRIGGER_AFTER;
    made->old_reg = *b->reg_next;
    made->new_reg = made->old_reg + table->column_count + 1u;
    *b->reg_next += 2 * (table->column_count + 1u);
    made->body_count = ast->count;
    made->body = KEEP_ARRAY(b, Plan *, ast->count);
    if (made->body == NULL || !trigger_columns(b, def, target, made)) return NULL;
    Scope *scope = plan__row_scope(b, table, made->old_reg, made->event != WRITE_INSERT,
                                   made->event != WRITE_DELETE);
    if (scope == NULL) return NULL;
    if (!trigger_bodies(b, def, ast, scope, table, is_temp, made)) return NULL;
    return made;
}

/* WHEN runs in the statement that fires the trigger, so it is planned for each anew. */
static PlanExpr *
plan_when(Binder *b, const TriggerDef *def, const TableDef *table, bool is_temp,
          const PlanTrigger *made)
{
    const AstCreateTrigger *ast;
    if (!parse_trigger(b, def, &ast) || ast->when == NULL) return NULL;
    Scope *scope = plan__row_scope(b, table, made->old_reg, made->event != WRITE_INSERT,
                                   made->event != WRITE_DELETE);
    if (scope == NULL) return NULL;
    Binder saved = *b;
    b->scope = scope;
    b->with = NULL;
    b->track = NULL;
    b->sql = bind__text(def->sql);
    b->sql_is_main = false;
    b->fixed_schema = is_temp ? "temp" : table->schema;
    b->fixed_is_temp = is_temp;
    b->inner_name = def->name;
    PlanExpr *e = bind__expr(b, ast->when);
    if (e != NULL) e = plan__lower(b, e, NULL);
    b->scope = saved.scope;
    b->with = saved.with;
    b->track = saved.track;
    b->sql = saved.sql;
    b->sql_is_main = saved.sql_is_main;
    b->fixed_schema = saved.fixed_schema;
    b->fixed_is_temp = saved.fixed_is_temp;
    b->inner_name = saved.inner_name;
    return e;
}

/* ---- all of a write ---- */

static bool
fires(const Binder *b, const Target *target, const TriggerDef *def, bool is_loose)
{
    const PlanWrite *write = target->write;
    const TableDef *stored = target->stored;
    u8 event = event_kind(def->event);
    if (is_loose && catalog_loose_table(b->ctx->catalog, def) != stored) return false;
    if (!is_loose && stored->database == 1 && def->table_schema != NULL &&
        !slice_equal_nocase(bind__text(def->table_schema), bind__text(stored->schema)))
        return false;
    if (event == write->kind) return true;
    if (event == WRITE_UPDATE && write->kind == WRITE_INSERT) {
        for (u32 i = 0; i < write->upsert_count; i++) {
            if (!write->upsert[i].do_nothing) return true;
        }
    }
    return event == WRITE_DELETE && b->ctx->recursive_triggers && !target->table->is_view;
}

/* The clause that a body's statements inherit: the statement's own (a DELETE has none), ABORT where
   ON CONFLICT updates, REPLACE where REPLACE deletes. */
static u8
conflict_within(const PlanWrite *write, u8 event)
{
    if (event == write->kind) return write->conflict;
    return event == WRITE_UPDATE ? CONFLICT_ABORT : CONFLICT_REPLACE;
}

static bool
add_triggers(Binder *b, Target *target, const TriggerDef *const *list, u32 count, bool is_temp)
{
    PlanWrite *write = target->write;
    bool is_loose = is_temp && target->stored->database != 1;
    for (u32 i = 0; i < count; i++) {
        if (!fires(b, target, list[i], is_loose)) continue;
        b->outer_conflict = conflict_within(write, event_kind(list[i]->event));
        const PlanTrigger *made = plan_trigger(b, target, list[i], is_temp);
        if (made == NULL) return false;
        PlanTrigger *trigger = &write->trigger[write->trigger_count];
        *trigger = *made;
        trigger->when = plan_when(b, list[i], target->table, is_temp, made);
        if (b->err != OK) return false;
        write->trigger_count++;
    }
    return true;
}

bool
plan__triggers(Binder *b, Target *target, const TableDef *stored)
{
    const CatalogView *view = b->ctx->catalog;
    if (b->ctx->triggers_off) return true;
    const TriggerDef *const *list = NULL, *const *temp = NULL;
    u32 count = 0, temp_count = 0;
    if (stored->database < view->count && view->db[stored->database].catalog != NULL)
        count = catalog_triggers(view->db[stored->database].catalog, stored, &list);
    if (stored->database != 1 && view->count > 1 && view->db[1].catalog != NULL)
        temp_count = catalog_loose_triggers(view->db[1].catalog, &temp);
    if (count + temp_count == 0) return true;
    target->write->trigger = KEEP_ARRAY(b, PlanTrigger, count + temp_count);
    if (target->write->trigger == NULL) return false;
    u8 conflict = b->outer_conflict;
    bool good = add_triggers(b, target, temp, temp_count, true) &&
                add_triggers(b, target, list, count, stored->database == 1);
    b->outer_conflict = conflict;
    return good;
}

/* ---- for ALTER TABLE ---- */

Err
plan_check_trigger(const PlanContext *ctx, const TableDef *table, const TriggerDef *trigger,
                   bool is_temp, ErrMsg *msg)
{
    Plan *plan = NULL;
    Err err = plan__new(ctx, SLICE_LITERAL(""), &plan, msg);
    if (err != OK) return err;
    Arena scratch;
    arena_init(&scratch, ctx->account);
    PlanMemo *memo = NULL;
    Binder b = {.ctx = ctx, .plan = plan, .scratch = &scratch, .arena = &plan->arena, .msg = msg};
    b.reg_next = &plan->reg_count;
    b.memo = &memo;
    b.inner_name = trigger->name;
    Target target = {0};
    AstTarget unnamed = {0};
    if (plan__target_init(&b, &target, table, &unnamed, event_kind(trigger->event))) {
        const PlanTrigger probe = {.event = event_kind(trigger->event)};
        (void)plan_when(&b, trigger, target.table, is_temp, &probe);
        if (b.err == OK) (void)plan_trigger(&b, &target, trigger, is_temp);
    }
    err = b.err;
    arena_free(&scratch);
    plan_release(plan);
    return err;
}
