/*
 * write_table.c -- what a write needs to know of its table: constraints, indexes, defaults,
 * generated columns, RETURNING, SET lists.  All of it reads "the row": the table's columns as
 * cells 0.., the rowid behind them.
 */
#include "sql/plan/build.h"

u8
plan__conflict(const Binder *b, u8 ast_conflict)
{
    if (b->outer_conflict != CONFLICT_DEFAULT) return b->outer_conflict;
    return (u8)catalog_conflict(ast_conflict);
}

const TableDef *
plan__target_table(Binder *b, const AstTarget *ast)
{
    const TableDef *table = bind__find_table(b, &ast->schema, &ast->name);
    if (table == NULL) return NULL;
    /* All but the schema itself are tables like others. */
    bool data = strcmp(table->name, "sqlite_master") != 0 &&
                strcmp(table->name, "sqlite_temp_master") != 0;
    if (table->is_system && !data && !b->ctx->writable_schema)
        return bind__fail(b, ERR_SQL, "table %s may not be modified", table->name);
    return plan__host_may_write(b, table) ? table : NULL;
}

const TableDef *
plan__view_table(Binder *b, const TableDef *view, Query **query_out)
{
    Query *query = bind__view(b, view);
    TableDef *table = query == NULL ? NULL : KEEP_NEW(b, TableDef);
    if (table == NULL) return NULL;
    *table = *view;
    table->rowid_column = COLUMN_ROWID;
    table->column_count = (u16)query->column_count;
    table->stored_count = table->column_count;
    table->column = KEEP_ARRAY(b, ColumnDef, query->column_count);
    if (table->column == NULL) return NULL;
    for (u32 i = 0; i < query->column_count; i++) {
        table->column[i] = (ColumnDef){
            .name = query->column[i].name,
            .type_text = query->column[i].decl_type,
            .affinity = query->column[i].affinity,
            .collation = bind__collation_or_binary(query->column[i].collation),
            .stored_index = (u16)i};
    }
    *query_out = query;
    return table;
}

/* Does a trigger stand in for the change of a view? */
static bool
view_has_trigger(const Binder *b, const TableDef *view, u8 kind)
{
    static const u8 events[] = {[WRITE_INSERT] = AST_TRIGGER_INSERT,
                                [WRITE_UPDATE] = AST_TRIGGER_UPDATE,
                                [WRITE_DELETE] = AST_TRIGGER_DELETE};
    const CatalogView *all = b->ctx->catalog;
    const TriggerDef *const *list = NULL;
    u32 count = catalog_triggers(all->db[view->database].catalog, view, &list);
    for (u32 i = 0; i < count; i++) {
        if (list[i]->event == events[kind]) return true;
    }
    if (view->database == 1 || all->count < 2 || all->db[1].catalog == NULL) return false;
    count = catalog_loose_triggers(all->db[1].catalog, &list);
    for (u32 i = 0; i < count; i++) {
        if (list[i]->event == events[kind] && catalog_loose_table(all, list[i]) == view)
            return true;
    }
    return false;
}

bool
plan__may_change(Binder *b, const TableDef *table, u8 kind)
{
    if (!table->is_view || b->ctx->notes != NULL || view_has_trigger(b, table, kind)) return true;
    bind__fail(b, ERR_SQL, "cannot modify %s because it is a view", table->name);
    return false;
}

bool
plan__target_init(Binder *b, Target *target, const TableDef *table, const AstTarget *ast, u8 kind)
{
    const char *name = table->name;
    if (ast_name_present(&ast->alias)) name = bind__keep_text(b, ast->alias.text);
    target->stored = table;
    target->table = table;
    if (table->is_view) {
        Query *query = NULL;
        target->table = plan__view_table(b, table, &query);
        if (target->table == NULL || name == NULL) return false;
        if (!plan__may_change(b, table, kind)) return false;
        target->source = bind__query_source(b, query, name);
    } else if (target->source == NULL) {
        target->source = name == NULL ? NULL : bind__table_source(b, table, name);
    }
    if (target->write == NULL) target->write = KEEP_NEW(b, PlanWrite);
    target->row = BIND_NEW(b, Layout);
    target->env = BIND_NEW(b, Env);
    if (target->source == NULL || target->write == NULL || target->row == NULL ||
        target->env == NULL)
        return false;
    target->source->not_indexed = ast->not_indexed;
    if (ast_name_present(&ast->indexed_by))
        target->source->indexed_by = bind__keep_text(b, ast->indexed_by.text);
    target->row->whole[0] = (WholeRow){target->source, 0};
    target->row->whole_count = 1;
    target->row->columns = target->table->column_count + 1u;
    target->env->layout = target->row;
    target->write->kind = kind;
    target->write->table = target->table;
    target->write->counts_changes = true;
    b->plan->write = target->write;
    b->plan->read_only = false;
    return table->is_view || bind__use_table(b, table, true);
}

bool
plan__reads_column(const PlanExpr *e, const Source *source, u32 column)
{
    if (e->op == PX_BOUND_COLUMN) return e->u.bound.of == source && e->u.bound.column == column;
    for (u32 i = 0; i < e->arg_count; i++) {
        if (plan__reads_column(e->arg[i], source, column)) return true;
    }
    return false;
}

/* ---- defaults and generated columns ---- */

static bool
bind_defaults(Binder *b, Target *target)
{
    const TableDef *table = target->table;
    PlanWrite *write = target->write;
    write->default_expr = KEEP_ARRAY(b, PlanExpr *, table->column_count);
    if (write->default_expr == NULL) return false;
    for (u32 i = 0; i < table->column_count; i++) {
        /* Whoever does not name the rowid gets a new one, whatever its default says. */
        const char *sql = i == table->rowid_column ? NULL : table->column[i].default_expr;
        if (sql == NULL) continue;
        PlanExpr *e = bind__schema_expr(b, NULL, bind__text(sql), "DEFAULT", true);
        write->default_expr[i] = e == NULL ? NULL : plan__lower(b, e, NULL);
        if (write->default_expr[i] == NULL) return false;
    }
    return true;
}

typedef struct Generated {
    Target *target;
    PlanExpr **bound;
    u8 *state; /* 0 new, 1 being placed, 2 placed */
    u16 *order;
    u16 count;
} Generated;

/* Depth: the length of a chain of generated columns. */
static bool
place_generated(Binder *b, Generated *g, u32 column)
{
    if (g->state[column] == 2) return true;
    if (g->state[column] == 1) {
        bind__fail(b, ERR_SQL, "generated column loop on \"%s\"",
                   g->target->table->column[column].name);
        return false;
    }
    g->state[column] = 1;
    for (u32 i = 0; i < g->target->table->column_count; i++) {
        if (g->bound[i] == NULL || i == column) continue;
        if (!plan__reads_column(g->bound[column], g->target->source, i)) continue;
        if (!place_generated(b, g, i)) return false;
    }
    g->state[column] = 2;
    g->order[g->count++] = (u16)column;
    return true;
}

static bool
bind_generated(Binder *b, Target *target)
{
    const TableDef *table = target->table;
    PlanWrite *write = target->write;
    u32 count = 0;
    for (u32 i = 0; i < table->column_count; i++)
        count += table->column[i].generated != 0;
    if (count == 0) return true;
    Generated g = {.target = target};
    g.bound = BIND_ARRAY(b, PlanExpr *, table->column_count);
    g.state = BIND_ARRAY(b, u8, table->column_count);
    g.order = KEEP_ARRAY(b, u16, count);
    write->generated = KEEP_ARRAY(b, PlanExpr *, table->column_count);
    if (g.bound == NULL || g.state == NULL || g.order == NULL || write->generated == NULL)
        return false;
    for (u32 i = 0; i < table->column_count; i++) {
        if (table->column[i].generated == 0) continue;
        g.bound[i] = bind__schema_expr(b, target->source,
                                       bind__text(table->column[i].generated_sql),
                                       "generated columns", true);
        if (g.bound[i] == NULL) return false;
        write->generated[i] = plan__lower(b, g.bound[i], target->env);
        if (write->generated[i] == NULL) return false;
    }
    for (u32 i = 0; i < table->column_count; i++) {
        if (g.bound[i] != NULL && !place_generated(b, &g, i)) return false;
    }
    write->generated_order = g.order;
    write->generated_count = g.count;
    return true;
}

/* ---- CHECK and indexes ---- */

static bool
bind_checks(Binder *b, Target *target)
{
    const TableDef *table = target->table;
    PlanWrite *write = target->write;
    if (write->kind == WRITE_DELETE) return true;
    write->check_count = table->check_count;
    write->check = KEEP_ARRAY(b, PlanExpr *, table->check_count);
    write->check_text = KEEP_ARRAY(b, const char *, table->check_count);
    if (write->check == NULL || write->check_text == NULL) return false;
    for (u32 i = 0; i < table->check_count; i++) {
        const CheckDef *check = &table->check[i];
        PlanExpr *e = bind__schema_expr(b, target->source, bind__text(check->sql),
                                        "CHECK constraints", true);
        write->check[i] = e == NULL ? NULL : plan__lower(b, e, target->env);
        if (write->check[i] == NULL) return false;
        write->check_text[i] = check->name != NULL ? check->name : check->sql;
    }
    return true;
}

static bool
bind_index(Binder *b, Target *target, const IndexDef *index, PlanIndexWrite *out)
{
    out->index = index;
    out->expr = KEEP_ARRAY(b, PlanExpr *, index->key_columns);
    if (out->expr == NULL) return false;
    for (u32 i = 0; i < index->key_columns; i++) {
        if (index->column[i].column != COLUMN_EXPR) continue;
        PlanExpr *e = bind__schema_expr(b, target->source, bind__text(index->column[i].expr_sql),
                                        "index expressions", true);
        out->expr[i] = e == NULL ? NULL : plan__lower(b, e, target->env);
        if (out->expr[i] == NULL) return false;
    }
    if (index->where_sql == NULL) return true;
    PlanExpr *e = bind__schema_expr(b, target->source, bind__text(index->where_sql),
                                    "partial index WHERE clauses", true);
    out->where = e == NULL ? NULL : plan__lower(b, e, target->env);
    return out->where != NULL;
}

static bool
set_has(const PlanWrite *write, u32 column)
{
    for (u32 i = 0; i < write->set_count; i++) {
        if (write->set_column[i] == column) return true;
    }
    return false;
}

static bool
generated_touched(const Target *target)
{
    return target->write->generated_count > 0;
}

bool
plan__index_collations(Binder *b, const IndexDef *index)
{
    for (u32 i = 0; i < index->key_columns; i++) {
        const char *name = index->column[i].host_collation;
        if (name == NULL) continue;
        const Collation *found = bind__host_collation(b, name);
        if (found == NULL || bind__need_collation(b, found) == NULL || b->err != OK) return false;
    }
    return true;
}

bool
plan__need_indexes(Binder *b, const Target *target)
{
    const PlanWrite *write = target->write;
    if (write->truncate) return true;
    for (u32 i = 0; i < write->index_count; i++) {
        if (write->index[i].touched && !plan__index_collations(b, write->index[i].index))
            return false;
    }
    return true;
}

/* UPDATE: may an entry of the index change? */
static bool
index_touched(const Target *target, const PlanIndexWrite *write)
{
    const TableDef *table = target->table;
    const IndexDef *index = write->index;
    if (target->write->kind != WRITE_UPDATE) return true;
    if (write->where != NULL || generated_touched(target)) return true;
    if (set_has(target->write, COLUMN_ROWID)) return true;
    if (table->rowid_column != COLUMN_ROWID && set_has(target->write, table->rowid_column))
        return true;
    for (u32 i = 0; i < index->key_columns; i++) {
        if (index->column[i].column == COLUMN_EXPR) return true;
        if (set_has(target->write, index->column[i].column)) return true;
    }
    if (!table->without_rowid) return false;
    for (u32 i = 0; i < table->primary_key->key_columns; i++) {
        if (set_has(target->write, table->primary_key->column[i].column)) return true;
    }
    return false;
}

static bool
bind_indexes(Binder *b, Target *target)
{
    const TableDef *table = target->table;
    PlanWrite *write = target->write;
    write->index = KEEP_ARRAY(b, PlanIndexWrite, table->index_count);
    if (write->index == NULL) return false;
    for (u32 i = 0; i < table->index_count; i++) {
        const IndexDef *index = table->index[i];
        if (index == table->primary_key) continue;
        PlanIndexWrite *out = &write->index[write->index_count++];
        if (!bind_index(b, target, index, out)) return false;
        out->touched = index_touched(target, out);
    }
    return true;
}

bool
plan__target_table_parts(Binder *b, Target *target)
{
    if (target->table->is_view) return true;
    if (target->write->kind != WRITE_DELETE && !bind_defaults(b, target)) return false;
    return bind_generated(b, target) && bind_checks(b, target) && bind_indexes(b, target);
}

/* ---- SET ---- */

/* The column that SET names; SET_NOTHING: none, and ALTER TABLE does not mind. */
#define SET_NOTHING (-2)

static i32
set_column(Binder *b, Target *target, const AstName *name)
{
    bool notes_only = b->ctx->notes != NULL;
    i32 column = bind__find_column(b, target->source, name->text, true);
    if (b->err != OK) return -1;
    if (column < 0 && notes_only) return SET_NOTHING;
    if (column < 0) {
        bind__fail_at(b, name->span, "no such column: %.*s", (int)name->text.bytes, name->text.p);
        return -1;
    }
    bind__note(b, target->source, name, column);
    const TableDef *table = target->table;
    if (column == COLUMN_ROWID)
        return table->rowid_column != COLUMN_ROWID ? table->rowid_column : COLUMN_ROWID;
    if (table->column[column].generated != 0) {
        if (notes_only) return SET_NOTHING;
        bind__fail_at(b, name->span, "cannot UPDATE generated column \"%s\"",
                      table->column[column].name);
        return -1;
    }
    bool ignore;
    if (!bind__authorize(b, PLAN_AUTH_UPDATE, table->name, table->column[column].name,
                         table->schema, &ignore))
        return -1;
    return column;
}

static bool
set_push(Binder *b, SetList *out, u16 column, PlanExpr *value)
{
    for (u32 i = 0; i < out->count; i++) {
        if (out->column[i] != column) continue;
        out->value.items[i] = value; /* The last assignment wins. */
        return true;
    }
    out->column[out->count++] = column;
    return bind__push(b, &out->value, value);
}

bool
plan__bind_sets(Binder *b, Target *target, const AstSets *sets, SetList *out)
{
    u32 total = 0;
    for (u32 i = 0; i < sets->count; i++)
        total += sets->items[i].columns.count;
    out->column = KEEP_ARRAY(b, u16, total);
    if (out->column == NULL) return false;
    for (u32 i = 0; i < sets->count; i++) {
        const AstSet *set = &sets->items[i];
        ExprList values = {0};
        bool row = set->is_row || set->columns.count > 1;
        if (row && set->columns.count > 1) {
            if (!bind__vector(b, set->value, &values)) return false;
        } else if (!bind__push(b, &values, bind__expr(b, set->value))) {
            return false;
        }
        if (values.count != set->columns.count) {
            bind__fail(b, ERR_SQL, "%u columns assigned %u values", set->columns.count,
                       values.count);
            return false;
        }
        for (u32 k = 0; k < values.count; k++) {
            i32 column = set_column(b, target, &set->columns.items[k]);
            if (column == SET_NOTHING) continue;
            if (column < 0 || !set_push(b, out, (u16)column, values.items[k])) return false;
        }
    }
    return true;
}

/* ---- RETURNING ---- */

bool
plan__returning(Binder *b, Target *target, const AstResults *results)
{
    if (results->count == 0) return true;
    Query *query = bind__query_new(b, 1);
    Core *core = query == NULL ? NULL : bind__core_new(b, query);
    if (core == NULL) return false;
    /* Names see the target alone, which is called as it is stored; the source is shared with the
     * row's layout. */
    const char *alias = target->source->name;
    target->source->name = target->stored->name;
    for (u32 i = 0; i < results->count; i++) {
        if (results->items[i].kind == AST_RESULT_TABLE_STAR)
            return bind__fail(b, ERR_SQL, "RETURNING may not use \"TABLE.*\" wildcards") != NULL;
    }
    Core *kept = target->source->core;
    u32 index = target->source->index;
    if (!bind__core_add_source(b, core, target->source)) return false;
    Scope scope = {.source = core->source, .source_count = 1};
    bind__scope_push(b, &scope, core);
    bool good = bind__results(b, core, results);
    bind__scope_pop(b);
    target->source->name = alias;
    target->source->core = kept;
    target->source->index = index;
    if (!good) return false;
    PlanWrite *write = target->write;
    write->returning_count = core->results.count;
    write->returning = plan__lower_list(b, &core->results, target->env);
    return write->returning != NULL && plan__columns(b, core->column, core->results.count);
}
