/*
 * write_change.c -- UPDATE and DELETE: the plan of their targets, and what is set.
 */
#include "sql/plan/build.h"

/* A core whose first source is the target, FROM items behind it. */
typedef struct Change {
    Query *query;
    Core *core;
    Scope scope;
    ExprList keys; /* What tells a target: its rowid, its key, a view's columns. */
} Change;

static bool
change_begin(Binder *b, Change *change, Target *target, const AstFrom *from)
{
    change->query = bind__query_new(b, 1);
    change->core = change->query == NULL ? NULL : bind__core_new(b, change->query);
    if (change->core == NULL) return false;
    Core *core = change->core;
    bind__scope_push(b, &change->scope, core);
    if (!bind__core_add_source(b, core, target->source)) return false;
    if (!bind__from(b, core, &change->scope, from)) return false;
    if (!bind__from_using(b, core, from)) return false;
    FromList list = {.count = core->from.count + 1, .capacity = core->from.count + 1};
    list.item = BIND_ARRAY(b, FromItem, list.count);
    if (list.item == NULL) return false;
    list.item[0] = (FromItem){.source = target->source, .mask = 1};
    for (u32 i = 0; i < core->from.count; i++) {
        list.item[i + 1] = core->from.item[i];
        if (i == 0) list.item[1].join = AST_JOIN_COMMA;
    }
    core->from = list;
    change->scope.source = core->source;
    change->scope.source_count = core->source_count;
    return true;
}

/* A RIGHT or FULL JOIN of the FROM items must not make NULLs of the target: they are joined by
   themselves first. */
static bool
change_nest(Binder *b, Core *core, FromItem target)
{
    FromList *nested = BIND_NEW(b, FromList);
    FromList list = {.count = 2, .capacity = 2};
    list.item = BIND_ARRAY(b, FromItem, 2);
    if (nested == NULL || list.item == NULL) return false;
    *nested = core->from;
    list.item[0] = target;
    list.item[1] = (FromItem){.nested = nested, .join = AST_JOIN_COMMA};
    for (u32 i = 0; i < nested->count; i++) {
        list.item[1].mask |= nested->item[i].mask;
    }
    core->from = list;
    return true;
}

/* ON conditions of the FROM items; the list begins one behind the target. */
static bool
change_on(Binder *b, Change *change, const AstFrom *from)
{
    if (from == NULL) return true;
    Core *core = change->core;
    FromList whole = core->from;
    core->from = (FromList){
        .item = whole.item + 1, .count = whole.count - 1, .capacity = whole.count - 1};
    bool good = bind__from_on(b, core, from);
    if (good && core->has_right_join) return change_nest(b, core, whole.item[0]);
    FromList list = {.count = core->from.count + 1, .capacity = core->from.count + 1};
    list.item = BIND_ARRAY(b, FromItem, list.count);
    if (!good || list.item == NULL) return false;
    list.item[0] = whole.item[0];
    memcpy(list.item + 1, core->from.item, core->from.count * sizeof(FromItem));
    if (list.count > 1) list.item[1].join = AST_JOIN_COMMA;
    core->from = list;
    return true;
}

static bool
push_key(Binder *b, Target *target, ExprList *out)
{
    const TableDef *table = target->table;
    for (u32 i = 0; table->is_view && i < table->column_count; i++) {
        if (!bind__push(b, out, bind__column(b, target->source, i, (Span){0, 0}))) return false;
    }
    if (table->is_view) return true;
    if (!table->without_rowid)
        return bind__push(b, out, bind__column(b, target->source, COLUMN_ROWID, (Span){0, 0}));
    for (u32 i = 0; i < table->primary_key->key_columns; i++) {
        u16 column = table->primary_key->column[i].column;
        if (!bind__push(b, out, bind__column(b, target->source, column, (Span){0, 0})))
            return false;
    }
    return true;
}

static bool
change_order(Binder *b, Change *change, Target *target, const AstSelect *order)
{
    return push_key(b, target, &change->keys) &&
           plan__order_bind(b, change->query, target, &change->keys, order);
}

/* Where the cells of the other sources stand in the row of the write; their number. */
static bool
place_sources(Binder *b, const Core *core, const Target *target, const Layout *layout,
              u32 *extra_out)
{
    Layout *row = target->row;
    u32 first = target->table->column_count + 1u;
    *extra_out = 0;
    row->core = core;
    row->base = BIND_ARRAY(b, i32, core->source_count);
    if (row->base == NULL) return false;
    for (u32 i = 0; i < core->source_count; i++) {
        row->base[i] = -1;
        if (core->source[i] == target->source || layout->base[i] < 0) continue;
        row->base[i] = (i32)(first + *extra_out);
        *extra_out += core->source[i]->cell_count;
    }
    return true;
}

/* Plan the scan: keys of the targets, then the cells of the other sources, then the new values if
   the scan computes them (`sets`). */
static PlanNode *
change_source(Binder *b, Change *change, Target *target, Join *join, const SetList *sets)
{
    Core *core = change->core;
    const ExprList keys = change->keys;
    bool from = core->source_count > 1 && !target->table->is_view;
    join->for_write = true;
    plan__order_wanted(b, change->query, join);
    Layout *layout = NULL;
    PlanNode *input = plan__join(b, core, join, NULL, &layout);
    if (input == NULL) return NULL;
    Env env = {.layout = layout};
    if (!from) input = plan__order_rows(b, change->query, input, join, &env);
    if (input == NULL) return NULL;
    u32 cells = 0, set_count = sets == NULL ? 0 : sets->count;
    Layout *row = target->row;
    if (!place_sources(b, core, target, layout, &cells)) return NULL;
    target->write->extra = cells + set_count;
    row->columns = target->table->column_count + 1u + target->write->extra;
    u32 count = keys.count + target->write->extra;
    PlanNode *node = plan__node(b, PLAN_PROJECT, count);
    PlanExpr **exprs = KEEP_ARRAY(b, PlanExpr *, count);
    if (node == NULL || exprs == NULL) return NULL;
    node->input = input;
    node->klass = input->klass;
    node->rows = input->rows;
    node->u.project.expr = exprs;
    for (u32 i = 0; i < keys.count; i++) {
        exprs[i] = plan__lower(b, keys.items[i], &env);
        if (exprs[i] == NULL) return NULL;
    }
    u32 at = keys.count;
    for (u32 i = 0; i < core->source_count; i++) {
        if (row->base[i] < 0) continue;
        for (u32 c = 0; c < core->source[i]->cell_count; c++) {
            exprs[at] = plan__column(b, (u32)layout->base[i] + c, NULL);
            if (exprs[at++] == NULL) return NULL;
        }
    }
    for (u32 i = 0; i < set_count; i++) {
        exprs[at] = plan__lower(b, sets->value.items[i], &env);
        if (exprs[at] == NULL) return NULL;
        plan__class(node, exprs[at++]);
    }
    bool cut = change->query->order_count > 0 || change->query->limit != NULL;
    return from && cut ? plan__order_targets(b, change->query, &keys, node, &env) : node;
}

/* With FROM all new values are computed before the first change; they stand behind the row. */
static bool
set_exprs(Binder *b, const Target *target, const SetList *sets, bool computed)
{
    PlanWrite *write = target->write;
    if (!computed) {
        write->set_expr = plan__lower_list(b, &sets->value, target->env);
        return write->set_expr != NULL;
    }
    write->set_expr = KEEP_ARRAY(b, PlanExpr *, sets->count);
    if (write->set_expr == NULL) return false;
    u32 first = target->row->columns - sets->count;
    for (u32 i = 0; i < sets->count; i++) {
        write->set_expr[i] = plan__column(b, first + i, NULL);
        if (write->set_expr[i] == NULL) return false;
    }
    return true;
}

static const PlanScan *
only_scan(const PlanNode *node)
{
    while (node != NULL && (node->kind == PLAN_PROJECT || node->kind == PLAN_FILTER))
        node = node->input;
    return node != NULL && node->kind == PLAN_SCAN ? &node->u.scan : NULL;
}

static bool
is_one_row(const PlanScan *scan)
{
    const IndexDef *index = scan->index;
    for (u32 i = 0; i < scan->eq_count; i++) {
        if (scan->eq[i].value == NULL || scan->eq[i].null_safe) return false;
    }
    if (index == NULL && !scan->table->without_rowid) return scan->eq_count == 1;
    if (index == NULL) index = scan->table->primary_key;
    return index->unique && scan->eq_count == index->key_columns;
}

static bool
set_has(const PlanWrite *write, u32 column)
{
    for (u32 i = 0; i < write->set_count; i++) {
        if (write->set_column[i] == column) return true;
    }
    return false;
}

/* Must all targets be known before the first change?  Not if the scan cannot meet its own work. */
static bool
must_collect(const Target *target, const Change *change, const SetList *sets)
{
    const PlanWrite *write = target->write;
    if (change->core->source_count != 1 || write->returning_count > 0) return true;
    if (write->foreign_key_count > 0 || write->foreign_child_count > 0 ||
        write->trigger_count > 0 || target->table->is_view)
        return true;
    const PlanScan *scan = only_scan(write->source);
    if (scan == NULL || write->source->klass != PLAN_TOTAL) return true;
    for (u32 i = 0; i < change->core->where.count; i++) {
        if (plan__has_sub(change->core->where.items[i])) return true;
    }
    for (u32 i = 0; sets != NULL && i < sets->count; i++) {
        const PlanExpr *value = sets->value.items[i];
        if (plan__has_sub(value) || value->klass != PLAN_TOTAL) return true;
    }
    if (is_one_row(scan)) return false;
    if (write->kind == WRITE_DELETE) return true;
    if (write->generated_count > 0) return true;
    const IndexDef *index = scan->index;
    if (index == NULL && target->table->without_rowid) index = target->table->primary_key;
    if (set_has(write, COLUMN_ROWID) || set_has(write, target->table->rowid_column)) return true;
    if (index == NULL) return false;
    if (index->where_sql != NULL) return true;
    for (u32 i = 0; i < index->key_columns; i++) {
        u16 column = index->column[i].column;
        if (column == COLUMN_EXPR || set_has(write, column)) return true;
    }
    return false;
}

/* Do the targets come in the order of their keys? */
static bool
in_key_order(const PlanNode *source)
{
    const PlanScan *scan = only_scan(source);
    if (scan == NULL) return false;
    return is_one_row(scan) || (scan->index == NULL && !scan->backwards);
}

/* Collected targets are changed in the order of their keys, as SQLite changes what it has
   collected: triggers, RETURNING and OR FAIL show it. */
static bool
sort_targets(Binder *b, const Target *target)
{
    PlanWrite *write = target->write;
    const TableDef *table = target->table;
    if (!write->collect || table->is_view || in_key_order(write->source)) return true;
    const IndexDef *primary = table->without_rowid ? table->primary_key : NULL;
    u32 count = primary == NULL ? 1 : primary->key_columns;
    PlanNode *sort = plan__node(b, PLAN_SORT, write->source->columns);
    PlanSortKey *key = KEEP_ARRAY(b, PlanSortKey, count);
    if (sort == NULL || key == NULL) return false;
    for (u32 i = 0; i < count; i++) {
        key[i].expr = plan__column(b, i, NULL);
        if (key[i].expr == NULL) return false;
        if (primary == NULL) continue;
        key[i].collation = primary->column[i].collation;
        key[i].desc = key[i].nulls_last = primary->column[i].desc;
    }
    sort->input = write->source;
    sort->klass = write->source->klass;
    sort->rows = write->source->rows;
    sort->u.sort.key = key;
    sort->u.sort.key_count = count;
    sort->u.sort.of_targets = true;
    write->source = sort;
    return true;
}

/* The columns of the source that the expression reads, through virtual columns to their inputs. */
static void
mark_used(const PlanExpr *e, Source *source)
{
    if (e->op == PX_BOUND_COLUMN && e->u.bound.of == source) {
        u32 column = e->u.bound.column;
        u32 place = column == COLUMN_ROWID ? source->column_count : column;
        if (source->used[place] != 0) return;
        source->used[place] = 1;
        if (source->generated != NULL && column != COLUMN_ROWID &&
            source->generated[column] != NULL)
            mark_used(source->generated[column], source);
        return;
    }
    for (u32 i = 0; i < e->arg_count; i++)
        mark_used(e->arg[i], source);
}

/* The columns that keys, WHERE and ORDER BY read; false: a subquery may read any. */
static bool
mark_scanned(const Change *change, Source *source)
{
    const ExprList *where = &change->core->where;
    for (u32 i = 0; i < change->keys.count; i++)
        mark_used(change->keys.items[i], source);
    for (u32 i = 0; i < where->count; i++) {
        if (plan__has_sub(where->items[i])) return false;
        mark_used(where->items[i], source);
    }
    for (u32 i = 0; i < change->query->order_count; i++) {
        const PlanExpr *e = change->query->order[i].expr;
        if (plan__has_sub(e)) return false;
        mark_used(e, source);
    }
    return true;
}

/* FROM may have the target again, by another name. */
static bool
target_once(Binder *b, const Core *core)
{
    const Source *target = core->source[0];
    for (u32 i = 1; i < core->source_count; i++) {
        const Source *other = core->source[i];
        if (other->table == NULL || other->table != target->table) continue;
        if (!slice_equal_nocase(bind__text(other->name), bind__text(target->name))) continue;
        return bind__fail(b, ERR_SQL, "target object/alias may not appear in FROM clause: %s",
                          target->name) != NULL;
    }
    return true;
}

bool
plan__update(Binder *b, const AstUpdate *ast)
{
    if (!bind__with_push(b, ast->with)) return false;
    const TableDef *table = plan__target_table(b, &ast->target);
    if (table == NULL) return false;
    Target target = {0};
    Change change = {0};
    if (!plan__target_init(b, &target, table, &ast->target, WRITE_UPDATE)) return false;
    if (!change_begin(b, &change, &target, ast->from)) return false;
    if (!target_once(b, change.core)) return false;
    SetList sets = {0};
    PlanWrite *write = target.write;
    write->conflict = plan__conflict(b, (u8)ast->conflict);
    bool good = plan__bind_sets(b, &target, &ast->sets, &sets) &&
                bind__conjuncts(b, ast->where, &change.core->where, 0) &&
                change_on(b, &change, ast->from) && change_order(b, &change, &target, ast->order);
    bind__scope_pop(b);
    if (!good) return false;
    write->set_count = sets.count;
    write->set_column = sets.column;
    if (table->host != NULL)
        return plan__host_change(b, change.core, &target, &sets, &ast->returning);
    /* The scan needs what WHERE needs; SET reads the row as the row program loads it. */
    Join join = {0};
    u8 *used = target.source->used;
    target.source->used = BIND_ARRAY(b, u8, target.table->column_count + 1u);
    if (target.source->used == NULL) return false;
    bool computed = change.core->source_count > 1;
    if (computed || !mark_scanned(&change, target.source))
        memcpy(target.source->used, used, target.table->column_count + 1u);
    write->source = change_source(b, &change, &target, &join, computed ? &sets : NULL);
    if (write->source == NULL || !set_exprs(b, &target, &sets, computed)) return false;
    if (!plan__target_table_parts(b, &target)) return false;
    if (!plan__returning(b, &target, &ast->returning)) return false;
    if (!plan__foreign_keys(b, &target) || !plan__triggers(b, &target, table)) return false;
    write->collect = must_collect(&target, &change, &sets);
    return plan__need_indexes(b, &target) && sort_targets(b, &target);
}

bool
plan__delete(Binder *b, const AstDelete *ast)
{
    if (!bind__with_push(b, ast->with)) return false;
    const TableDef *table = plan__target_table(b, &ast->target);
    if (table == NULL) return false;
    bool ignore;
    if (!bind__authorize(b, PLAN_AUTH_DELETE, table->name, NULL, table->schema, &ignore))
        return false;
    Target target = {0};
    Change change = {0};
    if (!plan__target_init(b, &target, table, &ast->target, WRITE_DELETE)) return false;
    if (!change_begin(b, &change, &target, NULL)) return false;
    bool good = bind__conjuncts(b, ast->where, &change.core->where, 0) &&
                change_order(b, &change, &target, ast->order);
    bind__scope_pop(b);
    if (!good) return false;
    PlanWrite *write = target.write;
    if (table->host != NULL)
        return plan__host_change(b, change.core, &target, NULL, &ast->returning);
    Join join = {0};
    write->source = change_source(b, &change, &target, &join, NULL);
    if (write->source == NULL) return false;
    if (!plan__target_table_parts(b, &target)) return false;
    if (!plan__returning(b, &target, &ast->returning)) return false;
    if (!plan__foreign_keys(b, &target) || !plan__triggers(b, &target, table)) return false;
    write->collect = must_collect(&target, &change, NULL);
    write->truncate = ast->where == NULL && ast->order == NULL && ast->returning.count == 0 &&
                      write->trigger_count == 0 && write->foreign_child_count == 0 && !ignore &&
                      !table->is_view && write->foreign_key_count == 0;
    return plan__need_indexes(b, &target) && sort_targets(b, &target);
}
