/*
 * select.c -- binding a SELECT: scopes, result lists, arms of compounds, CTEs.
 *
 * The order of resolution is SQLite's, because errors and authorizer calls follow it: FROM
 * subqueries, results, HAVING, WHERE (with ON behind), ORDER BY, GROUP BY.
 */
#include "sql/bind/bind.h"

#include "rt/task.h"

Query *
bind__query_new(Binder *b, u32 arms)
{
    Query *query = BIND_NEW(b, Query);
    if (query == NULL) return NULL;
    query->arm = BIND_ARRAY(b, Core *, arms);
    query->op = BIND_ARRAY(b, u8, arms);
    if (query->arm == NULL || query->op == NULL) return NULL;
    query->outer_level = U32_MAX;
    return query;
}

Core *
bind__core_new(Binder *b, Query *query)
{
    Core *core = BIND_NEW(b, Core);
    if (core == NULL) return NULL;
    core->query = query;
    query->arm[query->arm_count++] = core;
    return core;
}

void
bind__scope_push(Binder *b, Scope *scope, Core *core)
{
    scope->outer = b->scope;
    scope->level = b->scope == NULL ? 0 : b->scope->level + 1;
    scope->core = core;
    if (core != NULL) {
        core->scope = scope;
        core->level = scope->level;
    }
    b->scope = scope;
}

void
bind__scope_pop(Binder *b)
{
    b->scope = b->scope->outer;
}

/* ---- results ---- */

static void
column_describe(const PlanExpr *e, QueryColumn *column)
{
    column->affinity = e->affinity;
    column->collation = bind__carried_collation(e);
    column->explicit_collation = (e->flags & PX_FLAG_COLLATE) != 0;
    if (e->op != PX_BOUND_COLUMN || column->explicit_collation) return;
    const Source *source = e->u.bound.of;
    u32 at = e->u.bound.column;
    if (source->table != NULL && source->column == NULL) {
        const TableDef *table = source->table;
        column->origin_database = table->schema;
        column->origin_table = table->name;
        column->origin_column = at == COLUMN_ROWID ? "rowid" : table->column[at].name;
        column->decl_type = at == COLUMN_ROWID ? "INTEGER" : table->column[at].type_text;
    } else if (at != COLUMN_ROWID && source->column != NULL) {
        column->origin_database = source->column[at].origin_database;
        column->origin_table = source->column[at].origin_table;
        column->origin_column = source->column[at].origin_column;
        column->decl_type = source->column[at].decl_type;
    }
}

static Slice
trimmed(Slice text)
{
    while (text.bytes > 0 && text.p[text.bytes - 1] <= ' ')
        text.bytes--;
    while (text.bytes > 0 && text.p[0] <= ' ') {
        text.p++;
        text.bytes--;
    }
    return text;
}

/* What the pragmas full_column_names and short_column_names make of a statement's columns. */
static bool
long_name(Binder *b, const PlanExpr *e, const AstResult *result, QueryColumn *column)
{
    const Source *source = e->u.bound.of;
    bool full = b->ctx->full_column_names, star = result->kind != AST_RESULT_EXPR;
    if (!full && !b->ctx->long_column_names_off) return true;
    if (!full || (star && !b->ctx->long_column_names_off)) {
        if (!star) column->shown = bind__keep_text(b, trimmed(span_slice(b->sql, result->text)));
        return star || column->shown != NULL;
    }
    const char *table = source->table != NULL && !star ? source->table->name : source->name;
    column->shown = arena_printf(b->arena, "%s.%s", table, column->name);
    return column->shown != NULL || bind__fail(b, ERR_NOMEM, "out of memory") != NULL;
}

static bool
result_push(Binder *b, Core *core, PlanExpr *e, const AstResult *result, u32 *capacity)
{
    if (e == NULL) return false;
    u32 at = core->results.count;
    u32 columns_max = b->ctx->columns_max != 0 ? b->ctx->columns_max : 2000;
    if (at >= columns_max) {
        bind__fail(b, ERR_SQL, "too many columns in result set");
        return false;
    }
    if (at == *capacity) {
        u32 grown = at == 0 ? 8 : at * 2;
        QueryColumn *columns = BIND_ARRAY(b, QueryColumn, grown);
        if (columns == NULL) return false;
        if (at > 0) memcpy(columns, core->column, at * sizeof(*columns));
        core->column = columns;
        *capacity = grown;
    }
    QueryColumn *column = &core->column[at];
    column_describe(e, column);
    bool plain = result->kind != AST_RESULT_EXPR || result->expr->kind == AST_EXPR_COLUMN;
    if (ast_name_present(&result->alias)) {
        column->name = bind__keep_text(b, result->alias.text);
    } else if (plain && e->op == PX_BOUND_COLUMN) {
        u32 number = e->u.bound.column;
        column->name = number == COLUMN_ROWID ? "rowid" : bind__column_name(e->u.bound.of, number);
        if (!long_name(b, e, result, column)) return false;
    } else if (result->kind == AST_RESULT_EXPR) {
        column->name = bind__keep_text(b, trimmed(span_slice(b->sql, result->text)));
    } else {
        column->name = "";
    }
    return column->name != NULL && bind__push(b, &core->results, e);
}

/* Is the column merged into one further left (USING), so that * leaves it out? */
static bool
merged_away(const Source *source, const char *name)
{
    for (u32 i = 0; i < source->using_names.count; i++) {
        if (slice_equal_nocase(source->using_names.items[i].text, bind__text(name))) return true;
    }
    return false;
}

static bool
merged_later(const Core *core, u32 from, const char *name)
{
    for (u32 i = from + 1; i < core->source_count; i++) {
        if (merged_away(core->source[i], name)) return true;
    }
    return false;
}

static bool
expand_star(Binder *b, Core *core, const AstResult *result, u32 *capacity)
{
    bool named = result->kind == AST_RESULT_TABLE_STAR;
    bool found = false;
    for (u32 i = 0; i < core->source_count; i++) {
        Source *source = core->source[i];
        if (named && !slice_equal_nocase(bind__text(source->name), result->table.text)) continue;
        found = true;
        for (u32 c = 0; c < source->column_count; c++) {
            if (bind__column_hidden(source, c)) continue;
            const char *name = bind__column_name(source, c);
            if (!named && source->using_names.count > 0 && merged_away(source, name)) continue;
            AstExpr ast = {.kind = AST_EXPR_COLUMN, .span = result->text};
            AstQualifier qualifier = {.table = {.text = bind__text(source->name)}};
            ast.u.column.name.text = bind__text(name);
            bool merge = !named && core->has_right_join && merged_later(core, i, name);
            PlanExpr *e;
            if (merge) {
                e = bind__name(b, &ast);
            } else {
                (void)qualifier;
                bool ignore = false;
                if (source->table != NULL &&
                    !bind__authorize(b, PLAN_AUTH_READ, source->table->name, name,
                                     source->table->schema, &ignore))
                    return false;
                e = ignore ? bind__const(b, cell_null(), result->text)
                           : bind__column(b, source, c, result->text);
            }
            if (!result_push(b, core, e, result, capacity)) return false;
            if (core->column[core->results.count - 1].name[0] == 0 || merge)
                core->column[core->results.count - 1].name = name;
        }
        if (named) break;
    }
    if (found) return true;
    if (named) {
        bind__fail(b, ERR_SQL, "no such table: %.*s", (int)result->table.text.bytes,
                   result->table.text.p);
    } else {
        bind__fail(b, ERR_SQL, "no tables specified");
    }
    return false;
}

bool
bind__results(Binder *b, Core *core, const AstResults *results)
{
    u32 capacity = 0;
    for (u32 i = 0; i < results->count; i++) {
        const AstResult *result = &results->items[i];
        if (result->kind != AST_RESULT_EXPR) {
            if (!expand_star(b, core, result, &capacity)) return false;
            continue;
        }
        if (!result_push(b, core, bind__expr(b, result->expr), result, &capacity)) return false;
    }
    return true;
}

/* ---- arms ---- */

static void
core_classify(Core *core)
{
    u8 klass = 0;
    ExprList *lists[] = {&core->where, &core->results, &core->group_by};
    for (u32 l = 0; l < COUNT_OF(lists); l++) {
        for (u32 i = 0; i < lists[l]->count; i++) {
            if (lists[l]->items[i]->klass > klass) klass = lists[l]->items[i]->klass;
        }
    }
    for (u32 r = 0; r < core->value_rows; r++) {
        for (u32 i = 0; i < core->results.count; i++) {
            if (core->values[r][i]->klass > klass) klass = core->values[r][i]->klass;
        }
    }
    if (core->having != NULL && core->having->klass > klass) klass = core->having->klass;
    for (u32 i = 0; i < core->from.count; i++) {
        for (u32 k = 0; k < core->from.item[i].on.count; k++) {
            if (core->from.item[i].on.items[k]->klass > klass)
                klass = core->from.item[i].on.items[k]->klass;
        }
    }
    for (u32 i = 0; i < core->source_count; i++) {
        const Query *query = core->source[i]->query;
        if (query != NULL && query->klass > klass) klass = query->klass;
        /* A table-valued function may fail. */
        if (core->source[i]->func != NULL && klass < PLAN_FALLIBLE) klass = PLAN_FALLIBLE;
    }
    core->klass = klass;
}

/* "column1", ...: by hand, because an INSERT of many values asks for many. */
static const char *
value_column_name(Binder *b, u32 number)
{
    static const char *const names[] = {"column1", "column2", "column3", "column4",
                                        "column5", "column6", "column7", "column8"};
    char text[32] = "column", digits[12];
    if (number <= COUNT_OF(names)) return names[number - 1];
    u32 bytes = 6, count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        text[bytes++] = digits[--count];
    return bind__keep_text(b, SLICE(text, bytes));
}

static bool
bind_values_arm(Binder *b, Core *core, const AstArm *ast)
{
    u32 width = ast->values.items[0].count;
    core->is_values = true;
    core->value_rows = ast->values.count;
    core->values = BIND_ARRAY(b, PlanExpr **, ast->values.count);
    core->column = BIND_ARRAY(b, QueryColumn, width);
    if (core->values == NULL || core->column == NULL) return false;
    for (u32 r = 0; r < ast->values.count; r++) {
        const AstExprs *row = &ast->values.items[r];
        if (row->count != width) {
            bind__fail(b, ERR_SQL, "all VALUES must have the same number of terms");
            return false;
        }
        core->values[r] = BIND_ARRAY(b, PlanExpr *, width);
        if (core->values[r] == NULL) return false;
        for (u32 i = 0; i < width; i++) {
            core->values[r][i] = bind__expr(b, row->items[i]);
            if (core->values[r][i] == NULL) return false;
        }
    }
    for (u32 i = 0; i < width; i++) {
        if (!bind__push(b, &core->results, core->values[0][i])) return false;
        column_describe(core->values[0][i], &core->column[i]);
        core->column[i].name = value_column_name(b, i + 1);
        if (core->column[i].name == NULL) return false;
    }
    return true;
}

static bool
bind_group_and_having(Binder *b, Core *core, const AstArm *ast, Scope *scope)
{
    if (ast->having != NULL) {
        scope->flags = SCOPE_AGG | SCOPE_ALIAS;
        core->having = bind__expr(b, ast->having);
        if (core->having == NULL) return false;
        if (!core->is_aggregate && ast->group_by.count == 0) {
            bind__fail(b, ERR_SQL, "HAVING clause on a non-aggregate query");
            return false;
        }
    }
    return true;
}

/* Everything of one arm but ORDER BY, which belongs to the whole. */
static bool
bind_arm(Binder *b, Query *query, const AstArm *ast, Core **core_out)
{
    Core *core = bind__core_new(b, query);
    Scope *scope = BIND_NEW(b, Scope);
    if (core == NULL || scope == NULL) return false;
    *core_out = core;
    bind__scope_push(b, scope, core);
    bool good = false;
    bool ignore;
    if (!bind__authorize(b, PLAN_AUTH_SELECT, NULL, NULL, NULL, &ignore)) goto done;
    b->select_count++;
    core->distinct = ast->distinct;
    if (ast->is_values) {
        good = bind_values_arm(b, core, ast);
        goto done;
    }
    if (!bind__window_clause(b, scope, ast)) goto done;
    if (!bind__from(b, core, scope, ast->from)) goto done;
    if (!bind__from_using(b, core, ast->from)) goto done;
    scope->flags = SCOPE_AGG | SCOPE_WIN;
    core->has_group_by = ast->group_by.count > 0;
    if (!bind__results(b, core, &ast->results)) goto done;
    if (core->has_group_by) core->is_aggregate = true;
    scope->aliases = &ast->results;
    if (!bind_group_and_having(b, core, ast, scope)) goto done;
    scope->flags = (u32)(SCOPE_ALIAS | (core->is_aggregate ? SCOPE_AGG | SCOPE_WHERE : 0));
    if (!bind__conjuncts(b, ast->where, &core->where, 0)) goto done;
    if (!bind__from_on(b, core, ast->from)) goto done;
    if (!bind__window_names(b, ast)) goto done;
    good = true;

done:
    bind__scope_pop(b);
    return good && b->err == OK;
}

/* GROUP BY comes after ORDER BY in SQLite's walk. */
static bool
finish_arm(Binder *b, Core *core, const AstArm *ast)
{
    Scope *outer = b->scope;
    b->scope = core->scope;
    core->scope->flags = SCOPE_ALIAS;
    bool good = ast->group_by.count == 0 || bind__group_by(b, core, &ast->group_by, &ast->results);
    b->scope = outer;
    core->scope->aliases = NULL;
    core->scope->flags = 0;
    core_classify(core);
    return good && b->err == OK;
}

static const char *
op_name(u8 op)
{
    static const char *const names[] = {[AST_SET_UNION] = "UNION",
                                        [AST_SET_UNION_ALL] = "UNION ALL",
                                        [AST_SET_EXCEPT] = "EXCEPT",
                                        [AST_SET_INTERSECT] = "INTERSECT"};
    return names[op];
}

static bool
arms_agree(Binder *b, const AstArm *ast, const Core *first, const Core *core)
{
    if (core->results.count == first->results.count) return true;
    if (ast->is_values && first->is_values) {
        bind__fail(b, ERR_SQL, "all VALUES must have the same number of terms");
    } else {
        bind__fail(b, ERR_SQL,
                   "SELECTs to the left and right of %s do not have the same number of result "
                   "columns",
                   op_name((u8)ast->op));
    }
    return false;
}

/* Which storage classes a column of an arm may have: 1 numbers, 2 text, 4 blobs. */
static u32
type_mask(const PlanExpr *e)
{
    switch (e->op) {
    case PX_CONST:
        if (e->u.constant.type == CELL_NULL) return 0;
        if (e->u.constant.type == CELL_TEXT) return 2;
        return e->u.constant.type == CELL_BLOB ? 4 : 1;
    case PX_CONCAT: return 6;
    case PX_PARAM:
    case PX_FUNC:
    case PX_BOUND_AGG:
    case PX_BOUND_WIN: return 7;
    case PX_BOUND_COLUMN:
    case PX_SCALAR:
    case PX_SUB_COLUMN:
    case PX_CAST:
        if (e->affinity >= AFFINITY_NUMERIC) return 5;
        return e->affinity == AFFINITY_TEXT ? 6 : 7;
    case PX_CASE:
    case PX_COALESCE: return 7;
    case PX_PLUS: return type_mask(e->arg[0]);
    default: return 1;
    }
}

/* The columns of the whole: names of the first arm, affinity of the first arm that has one where
   all arms agree with it, the leftmost collation. */
static bool
query_columns(Binder *b, Query *query)
{
    Core *first = query->arm[0];
    query->column_count = first->results.count;
    query->column = first->column;
    if (query->arm_count == 1) return true;
    query->column = BIND_ARRAY(b, QueryColumn, query->column_count);
    if (query->column == NULL) return false;
    for (u32 i = 0; i < query->column_count; i++) {
        QueryColumn *column = &query->column[i];
        *column = first->column[i];
        u32 mask = 0;
        for (u32 a = 0; a < query->arm_count; a++) {
            Core *core = query->arm[a];
            const PlanExpr *e = core->results.items[i];
            /* What the arm that speaks holds itself does not count. */
            bool speaks = e->affinity != AFFINITY_NONE &&
                          (a == 0 || column->affinity == AFFINITY_NONE);
            if (speaks) column->affinity = e->affinity;
            if (!speaks) mask |= type_mask(e);
            if (column->collation == NULL) column->collation = core->column[i].collation;
        }
        if (column->affinity == AFFINITY_TEXT && (mask & 1) != 0) column->affinity = AFFINITY_BLOB;
        if (column->affinity >= AFFINITY_NUMERIC && (mask & 2) != 0)
            column->affinity = AFFINITY_BLOB;
        column->explicit_collation = false;
    }
    return true;
}

static void
query_classify(Query *query)
{
    for (u32 i = 0; i < query->arm_count; i++) {
        if (query->arm[i]->klass > query->klass) query->klass = query->arm[i]->klass;
    }
    for (u32 i = 0; i < query->order_count; i++) {
        if (query->order[i].expr != NULL && query->order[i].expr->klass > query->klass)
            query->klass = query->order[i].expr->klass;
    }
    if (query->limit != NULL && query->limit->klass > query->klass)
        query->klass = query->limit->klass;
}

bool
bind__limit(Binder *b, Query *query, const AstExpr *limit, const AstExpr *offset)
{
    Scope *scope = b->scope;
    b->scope = NULL;
    if (limit != NULL) query->limit = bind__expr(b, limit);
    if (offset != NULL) query->offset = bind__expr(b, offset);
    b->scope = scope;
    return b->err == OK;
}

static bool
bind_arms(Binder *b, Query *query, const AstSelect *ast, u32 from, u32 to)
{
    for (u32 i = from; i < to; i++) {
        Core *core;
        query->op[i] = (u8)ast->arms[i].op;
        if (!bind_arm(b, query, &ast->arms[i], &core)) return false;
        if (i > 0 && !arms_agree(b, &ast->arms[i], query->arm[0], core)) return false;
    }
    return true;
}

static bool
finish_query(Binder *b, Query *query, const AstSelect *ast)
{
    if (ast->order_by.count > 0 && !bind__order(b, query, ast)) return false;
    for (u32 i = 0; i < query->arm_count; i++) {
        if (!finish_arm(b, query->arm[i], &ast->arms[i])) return false;
    }
    if (!bind__limit(b, query, ast->limit, ast->offset)) return false;
    query_classify(query);
    return b->err == OK;
}

Query *
bind__select(Binder *b, AstSelect *ast)
{
    if (b->err != OK) return NULL;
    u32 compound_max = b->ctx->compound_max != 0 ? b->ctx->compound_max : 500;
    bool all_values = true;
    for (u32 i = 0; i < ast->count; i++)
        all_values &= ast->arms[i].is_values;
    if (ast->count > compound_max && !all_values)
        return bind__fail(b, ERR_SQL, "too many terms in compound SELECT");
    if (b->depth >= SELECT_DEPTH_MAX || rt_stack_left() < RT_STACK_RESERVE)
        return bind__fail(b, ERR_SQL, "SELECTs nested too deep (maximum %u)", SELECT_DEPTH_MAX);
    b->depth++;
    WithScope *with = b->with;
    Query *query = NULL;
    if (bind__with_push(b, ast->with)) query = bind__query_new(b, ast->count);
    if (query != NULL) {
        bool good = bind_arms(b, query, ast, 0, ast->count) && query_columns(b, query) &&
                    finish_query(b, query, ast);
        if (!good) query = NULL;
    }
    b->with = with;
    b->depth--;
    return b->err == OK ? query : NULL;
}

BoundSub *
bind__subquery(Binder *b, AstSelect *ast)
{
    if (b->clause != NULL)
        return bind__fail_at(b, ast->span, "subqueries prohibited in %s", b->clause);
    u32 flags = b->scope != NULL ? b->scope->flags : 0;
    Query *query = bind__select(b, ast);
    if (b->scope != NULL) b->scope->flags = flags;
    BoundSub *sub = query == NULL ? NULL : BIND_NEW(b, BoundSub);
    if (sub == NULL) return NULL;
    sub->query = query;
    sub->sub.columns = query->column_count;
    return sub;
}

/* ---- CTEs ---- */

static bool
from_mentions(const AstFrom *from, Slice name)
{
    for (u32 i = 0; from != NULL && i < from->count; i++) {
        const AstFromItem *item = &from->items[i];
        if (item->kind == AST_FROM_JOIN && from_mentions(item->nested, name)) return true;
        if (item->kind == AST_FROM_TABLE && !ast_name_present(&item->schema) &&
            slice_equal_nocase(item->name.text, name))
            return true;
    }
    return false;
}

/* How many arms at the end are recursive: all of them by the same operator. */
static u32
recursive_arms(const AstCte *cte)
{
    const AstSelect *select = cte->select;
    u32 count = 0;
    for (u32 i = select->count; i-- > 1; count++) {
        if (!from_mentions(select->arms[i].from, cte->name.text)) break;
        if (select->arms[i].op != select->arms[select->count - 1].op) break;
        if (select->arms[i].op != AST_SET_UNION && select->arms[i].op != AST_SET_UNION_ALL) break;
    }
    return count;
}

static bool
cte_columns(Binder *b, Cte *cte, const Query *query)
{
    const AstNames *names = &cte->ast->columns;
    if (names->count > 0 && names->count != query->column_count) {
        bind__fail(b, ERR_SQL, "table %.*s has %u values for %u columns",
                   (int)cte->ast->name.text.bytes, cte->ast->name.text.p, query->column_count,
                   names->count);
        return false;
    }
    cte->column_count = query->column_count;
    cte->column = BIND_ARRAY(b, QueryColumn, query->column_count);
    if (cte->column == NULL) return false;
    memcpy(cte->column, query->column, query->column_count * sizeof(QueryColumn));
    for (u32 i = 0; i < names->count; i++) {
        cte->column[i].name = bind__keep_text(b, names->items[i].text);
        if (cte->column[i].name == NULL) return false;
    }
    return true;
}

static bool
recursive_steps(Binder *b, Cte *cte, Query *query, const AstSelect *ast)
{
    bool good = true;
    query->arm_count = query->initial_count; /* It may be the second time. */
    for (u32 i = query->initial_count; good && i < ast->count; i++) {
        cte->recursive_step = true;
        cte->self_refs = 0;
        good = bind_arms(b, query, ast, i, i + 1);
        if (good && query->arm[i]->is_aggregate) {
            bind__fail(b, ERR_SQL, "recursive aggregate queries not supported");
            good = false;
        }
        if (good && query->arm[i]->win_count > 0) {
            bind__fail(b, ERR_SQL, "cannot use window functions in recursive queries");
            good = false;
        }
        cte->recursive_step = false;
    }
    return good;
}

/* Give the columns the affinity that all arms together say, inside of the recursion too. */
static bool
recursive_affinity(Binder *b, Cte *cte, Query *query, const AstSelect *ast)
{
    bool changed = false;
    if (!query_columns(b, query)) return false;
    for (u32 i = 0; i < query->column_count; i++) {
        changed = changed || cte->column[i].affinity != query->column[i].affinity;
        cte->column[i].affinity = query->column[i].affinity;
    }
    return !changed || recursive_steps(b, cte, query, ast);
}

static Query *
recursive_select(Binder *b, Cte *cte, u32 steps)
{
    AstSelect *ast = cte->ast->select;
    WithScope *with = b->with;
    if (!bind__with_push(b, ast->with)) return NULL;
    Query *query = bind__query_new(b, ast->count);
    if (query == NULL) return NULL;
    query->is_recursive = true;
    query->cte = cte;
    query->initial_count = ast->count - steps;
    bool good = bind_arms(b, query, ast, 0, query->initial_count) && query_columns(b, query) &&
                cte_columns(b, cte, query) && recursive_steps(b, cte, query, ast) &&
                recursive_affinity(b, cte, query, ast);
    good = good && finish_query(b, query, ast);
    b->with = with;
    return good ? query : NULL;
}

Query *
bind__cte(Binder *b, Cte *cte)
{
    if (cte->query != NULL) return cte->query;
    Slice sql = b->sql;
    Scope *scope = b->scope;
    WithScope *with = b->with;
    AggTrack *track = b->track;
    b->sql = cte->sql;
    b->scope = cte->scope;
    b->with = cte->with;
    b->track = NULL;
    b->depth++;
    cte->binding = true;
    u32 steps = recursive_arms(cte->ast);
    Query *query = NULL;
    if (b->depth >= SELECT_DEPTH_MAX) {
        bind__fail(b, ERR_LIMIT, "SELECTs nested too deep (maximum %u)", SELECT_DEPTH_MAX);
    } else if (steps > 0) {
        query = recursive_select(b, cte, steps);
    } else {
        query = bind__select(b, cte->ast->select);
        if (query != NULL && !cte_columns(b, cte, query)) query = NULL;
    }
    cte->binding = false;
    b->depth--;
    b->sql = sql;
    b->scope = scope;
    b->with = with;
    b->track = track;
    cte->query = b->err == OK ? query : NULL;
    return cte->query;
}
