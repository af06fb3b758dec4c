/*
 * from.c -- the FROM clause: tables, views, CTEs, subqueries, joins with ON, USING and NATURAL.
 *
 * Sources come first (bind__from), conditions second (bind__from_on), because the result list and
 * WHERE are resolved in between.  Parenthesised joins of inner joins melt into the list around
 * them; others stay nested.
 */
#include "sql/bind/bind.h"

#include "sql/parse/parse.h"
#include "value/host_table.h"

typedef struct ViewFrame {
    const struct ViewFrame *outer;
    const TableDef *view;
} ViewFrame;

Source *
bind__source_new(Binder *b, SourceKind kind, const char *name)
{
    Source *source = BIND_NEW(b, Source);
    if (source == NULL) return NULL;
    source->kind = (u8)kind;
    source->name = name == NULL ? "" : name;
    source->number = b->source_count++;
    source->no_rowid = true;
    source->base_reg = -1;
    return source;
}

static bool
source_columns(Binder *b, Source *source, u32 count)
{
    source->column_count = count;
    source->used = BIND_ARRAY(b, u8, count + 1);
    return source->used != NULL;
}

Source *
bind__table_source(Binder *b, const TableDef *table, const char *name)
{
    Source *source = bind__source_new(b, SOURCE_TABLE, name);
    if (source == NULL || !source_columns(b, source, table->column_count)) return NULL;
    source->table = table;
    source->schema = table->schema;
    source->no_rowid = table->without_rowid || table->is_view;
    source->database = table->database;
    return source;
}

/* A column of affinity REAL gives REALs, also where an arm of the compound has integers. */
static bool
make_reals(Binder *b, Query *query)
{
    for (u32 i = 0; query->arm_count > 1 && i < query->column_count; i++) {
        if (query->column[i].affinity != AFFINITY_REAL) continue;
        for (u32 a = 0; a < query->arm_count; a++) {
            PlanExpr **at = &query->arm[a]->results.items[i];
            if ((*at)->affinity == AFFINITY_REAL) continue;
            PlanExpr *e = bind__new(b, PX_AFFINITY, 1, (Span){0, 0});
            if (e == NULL) return false;
            e->arg[0] = *at;
            e->affinity = AFFINITY_REAL;
            bind__finish(e);
            *at = e;
        }
    }
    return true;
}

Source *
bind__query_source(Binder *b, Query *query, const char *name)
{
    Source *source = bind__source_new(b, SOURCE_QUERY, name);
    if (source == NULL || !source_columns(b, source, query->column_count)) return NULL;
    if (!make_reals(b, query)) return NULL;
    source->query = query;
    source->column = query->column;
    return source;
}

bool
bind__core_add_source(Binder *b, Core *core, Source *source)
{
    if (core->source_count == SOURCES_MAX) {
        bind__fail(b, ERR_SQL, "at most %u tables in a join", SOURCES_MAX);
        return false;
    }
    if (core->source_count == core->source_capacity) {
        u32 capacity = core->source_capacity == 0 ? 4 : core->source_capacity * 2;
        Source **list = BIND_ARRAY(b, Source *, capacity);
        if (list == NULL) return false;
        if (core->source_count > 0) memcpy(list, core->source, core->source_count * sizeof(*list));
        core->source = list;
        core->source_capacity = capacity;
    }
    source->core = core;
    source->index = core->source_count;
    core->source[core->source_count++] = source;
    return true;
}

/* ---- views and CTEs ---- */

static Query *
view_select(Binder *b, const TableDef *view, const AstCreateView *ast)
{
    Query *query = bind__select(b, ast->select);
    if (query == NULL) return NULL;
    if (ast->columns.count == 0) return query;
    if (ast->columns.count != query->column_count) {
        return bind__fail(b, ERR_SQL, "expected %u columns for '%s' but got %u", ast->columns.count,
                          view->name, query->column_count);
    }
    QueryColumn *columns = BIND_ARRAY(b, QueryColumn, query->column_count);
    if (columns == NULL) return NULL;
    memcpy(columns, query->column, query->column_count * sizeof(*columns));
    for (u32 i = 0; i < query->column_count; i++) {
        columns[i].name = bind__keep_text(b, ast->columns.items[i].text);
        if (columns[i].name == NULL) return NULL;
    }
    query->column = columns;
    return query;
}

Query *
bind__view(Binder *b, const TableDef *view)
{
    u32 depth = 0;
    if (b->ctx->views_off && view->database != 1 && b->ctx->notes == NULL)
        return bind__fail(b, ERR_SQL, "access to view \"%s\" prohibited", view->name);
    for (const ViewFrame *frame = b->views; frame != NULL; frame = frame->outer, depth++) {
        if (frame->view == view)
            return bind__fail(b, ERR_SQL, "view %s is circularly defined", view->name);
    }
    if (depth > VIEW_DEPTH_MAX)
        return bind__fail(b, ERR_LIMIT, "views nested too deep: %s", view->name);
    AstStatement *ast = NULL;
    size_t consumed = 0;
    Slice sql = bind__text(view->sql);
    Err err = sql_parse(b->scratch, sql, &(ParseOptions){.stored = true}, &ast, &consumed, b->msg);
    if (err != OK) {
        if (b->err == OK) b->err = err;
        return NULL;
    }
    if (ast == NULL || ast->kind != AST_STMT_CREATE_VIEW)
        return bind__fail(b, ERR_CORRUPT, "malformed database schema (%s)", view->name);
    ViewFrame frame = {.outer = b->views, .view = view};
    Binder saved = *b;
    b->views = &frame;
    b->sql = sql;
    b->sql_is_main = false;
    b->scope = NULL;
    b->with = NULL;
    b->track = NULL;
    b->fixed_schema = view->schema;
    b->fixed_is_temp = view->database == 1;
    b->inner_name = view->name;
    Query *query = view_select(b, view, ast->u.create_view);
    b->views = saved.views;
    b->sql = saved.sql;
    b->sql_is_main = saved.sql_is_main;
    b->scope = saved.scope;
    b->with = saved.with;
    b->track = saved.track;
    b->fixed_schema = saved.fixed_schema;
    b->fixed_is_temp = saved.fixed_is_temp;
    b->inner_name = saved.inner_name;
    return query;
}

bool
bind__with_push(Binder *b, AstWith *with)
{
    if (with == NULL) return true;
    WithScope *scope = BIND_NEW(b, WithScope);
    if (scope == NULL) return false;
    scope->cte = BIND_ARRAY(b, Cte, with->count);
    if (scope->cte == NULL) return false;
    scope->outer = b->with;
    scope->count = with->count;
    for (u32 i = 0; i < with->count; i++) {
        for (u32 k = 0; k < i; k++) {
            if (slice_equal_nocase(with->items[i].name.text, with->items[k].name.text)) {
                bind__fail(b, ERR_SQL, "duplicate WITH table name: %.*s",
                           (int)with->items[i].name.text.bytes, with->items[i].name.text.p);
                return false;
            }
        }
        scope->cte[i] = (Cte){.ast = &with->items[i],
                              .with = scope,
                              .sql = b->sql,
                              .scope = b->scope,
                              .material_no = U32_MAX};
    }
    b->with = scope;
    return true;
}

Cte *
bind__find_cte(Binder *b, const AstName *name)
{
    for (WithScope *with = b->with; with != NULL; with = with->outer) {
        for (u32 i = 0; i < with->count; i++) {
            if (slice_equal_nocase(with->cte[i].ast->name.text, name->text)) return &with->cte[i];
        }
    }
    return NULL;
}

static Source *
recursion_source(Binder *b, Cte *cte, const char *name)
{
    const AstName *own = &cte->ast->name;
    if (!cte->recursive_step) {
        return bind__fail(b, ERR_SQL, "circular reference: %.*s", (int)own->text.bytes,
                          own->text.p);
    }
    cte->self_refs++;
    if (cte->self_refs > 1) {
        return bind__fail(b, ERR_SQL, "multiple references to recursive table: %.*s",
                          (int)own->text.bytes, own->text.p);
    }
    Source *source = bind__source_new(b, SOURCE_RECURSION, name);
    if (source == NULL || !source_columns(b, source, cte->column_count)) return NULL;
    source->cte = cte;
    source->column = cte->column;
    return source;
}

static Source *
cte_source(Binder *b, Cte *cte, const char *name)
{
    if (cte->binding) return recursion_source(b, cte, name);
    Query *query = bind__cte(b, cte);
    if (query == NULL) return NULL;
    cte->uses++;
    Source *source = bind__source_new(b, SOURCE_CTE, name);
    if (source == NULL || !source_columns(b, source, query->column_count)) return NULL;
    if (!make_reals(b, query)) return NULL;
    source->cte = cte;
    source->query = query;
    source->column = cte->column;
    /* A CTE that reads something outside is read by this query too. */
    for (u32 i = 0; i < query->outer_refs.count; i++) {
        for (Scope *s = b->scope; s != cte->scope && s != NULL; s = s->outer) {
            if (s->core == NULL || s->core->query == NULL) continue;
            Query *q = s->core->query;
            if (query->outer_level < q->outer_level) q->outer_level = query->outer_level;
            if (!bind__push(b, &q->outer_refs, query->outer_refs.items[i])) return NULL;
        }
    }
    return source;
}

/* ---- items ---- */

static const char *
item_name(Binder *b, const AstFromItem *item)
{
    if (ast_name_present(&item->alias)) return bind__keep_text(b, item->alias.text);
    if (ast_name_present(&item->name)) return bind__keep_text(b, item->name.text);
    return "";
}

static Source *function_source(Binder *b, const AstFromItem *item, const TableFunc *func);
static Source *
host_source(Binder *b, const AstFromItem *item, const TableDef *table, const char *name);
static const TableFunc *find_table_func(const Binder *b, const AstFromItem *item);

static Source *
table_item(Binder *b, const AstFromItem *item)
{
    const char *name = item_name(b, item);
    if (name == NULL) return NULL;
    if (!ast_name_present(&item->schema)) {
        Cte *cte = bind__find_cte(b, &item->name);
        if (cte != NULL) return cte_source(b, cte, name);
    }
    bool known = catalog_view_table(b->ctx->catalog, item->schema.text, item->name.text, NULL) !=
                 NULL;
    const TableFunc *func = known ? NULL : find_table_func(b, item);
    if (func == NULL) known = true;
    const TableDef *table = known ? NULL : bind__virtual_table(b, NULL, item->name.text);
    if (b->err != OK) return NULL;
    if (!known && table == NULL) return function_source(b, item, func);
    if (table == NULL) table = bind__find_table(b, &item->schema, &item->name);
    if (table == NULL) return NULL;
    if (table->host != NULL) return host_source(b, item, table, name);
    if (table->is_view) {
        Query *query = bind__view(b, table);
        Source *source = query == NULL ? NULL : bind__query_source(b, query, name);
        if (source == NULL) return NULL;
        source->view_body = true;
        source->schema = table->schema;
        return source;
    }
    if (!bind__use_table(b, table, false)) return NULL;
    Source *source = bind__table_source(b, table, name);
    if (source == NULL) return NULL;
    source->not_indexed = item->not_indexed;
    if (ast_name_present(&item->indexed_by)) {
        source->indexed_by = bind__keep_text(b, item->indexed_by.text);
        bool found = false;
        for (u32 i = 0; i < table->index_count; i++) {
            if (slice_equal_nocase(bind__text(table->index[i]->name), item->indexed_by.text))
                found = true;
        }
        if (!found) return bind__fail(b, ERR_SQL, "no such index: %s", source->indexed_by);
    }
    return source;
}

/* A virtual table; arguments are values of its hidden columns. */
static Source *
host_source(Binder *b, const AstFromItem *item, const TableDef *table, const char *name)
{
    if (!bind__use_table(b, table, false)) return NULL;
    Source *source = bind__table_source(b, table, name);
    if (source == NULL) return NULL;
    u32 hidden = 0;
    for (u32 i = 0; i < table->column_count; i++)
        hidden += table->column[i].hidden;
    if (item->args.count > hidden) {
        return bind__fail(b, ERR_SQL, "too many arguments on %s() - max %u", table->name, hidden);
    }
    source->arg_ast = &item->args;
    source->not_indexed = item->not_indexed;
    if (ast_name_present(&item->indexed_by)) {
        return bind__fail(b, ERR_SQL, "no such index: %.*s", (int)item->indexed_by.text.bytes,
                          item->indexed_by.text.p);
    }
    return source;
}

static Source *
function_source(Binder *b, const AstFromItem *item, const TableFunc *func)
{
    const char *name = item_name(b, item);
    Source *source = name == NULL ? NULL : bind__source_new(b, SOURCE_FUNCTION, name);
    if (source == NULL || !source_columns(b, source, func->column_count)) return NULL;
    QueryColumn *columns = BIND_ARRAY(b, QueryColumn, func->column_count);
    if (columns == NULL) return NULL;
    for (u32 i = 0; i < func->column_count; i++) {
        columns[i] = (QueryColumn){.name = func->column[i],
                                   .affinity = AFFINITY_BLOB,
                                   .collation = &collation_binary,
                                   .hidden_in_star = i >= func->hidden_from};
    }
    source->column = columns;
    source->func = func;
    source->arg_ast = &item->args;
    u32 args_max = (u32)(func->column_count - func->hidden_from);
    if (item->args.count > args_max) {
        return bind__fail(b, ERR_SQL, "too many arguments on %s() - max %u", func->name, args_max);
    }
    return source;
}

static const TableFunc *
find_table_func(const Binder *b, const AstFromItem *item)
{
    if (b->ctx->find_table_func == NULL) return NULL;
    return b->ctx->find_table_func(b->ctx->table_func_arg, item->name.text);
}

static Source *
function_item(Binder *b, const AstFromItem *item)
{
    const TableFunc *func = find_table_func(b, item);
    bool schema_found;
    const TableDef *table = catalog_view_table(b->ctx->catalog, item->schema.text, item->name.text,
                                               &schema_found);
    if (table == NULL || table->is_virtual) {
        const TableDef *host = bind__virtual_table(b, table, item->name.text);
        const char *name = host == NULL ? NULL : item_name(b, item);
        if (name != NULL) return host_source(b, item, host, name);
        if (b->err != OK) return NULL;
    }
    if (func != NULL) return function_source(b, item, func);
    if (table != NULL) {
        return bind__fail(b, ERR_SQL, "'%.*s' is not a function", (int)item->name.text.bytes,
                          item->name.text.p);
    }
    return bind__fail(b, ERR_SQL, "no such table: %.*s", (int)item->name.text.bytes,
                      item->name.text.p);
}

static FromItem *
item_of(FromList *list, const Source *source)
{
    for (u32 i = 0; i < list->count; i++) {
        FromItem *item = &list->item[i];
        if (item->source == source) return item;
        FromItem *inside = item->nested == NULL ? NULL : item_of(item->nested, source);
        if (inside != NULL) return inside;
    }
    return NULL;
}

/* f(x) of a virtual table: hidden column = x, as a condition of its join. */
static bool
bind_host_arguments(Binder *b, Core *core, Source *source)
{
    FromItem *item = item_of(&core->from, source);
    u32 column = 0;
    ASSERT(item != NULL);
    bool outer = (item->join & (AST_JOIN_LEFT | AST_JOIN_RIGHT)) != 0;
    for (u32 k = 0; k < source->arg_ast->count; k++) {
        while (!source->table->column[column].hidden)
            column++;
        PlanExpr *value = bind__expr(b, source->arg_ast->items[k]);
        PlanExpr *plain = value == NULL ? NULL : bind__new(b, PX_PLUS, 1, (Span){0, 0});
        if (plain == NULL) return false;
        plain->arg[0] = value;
        bind__finish(plain);
        PlanExpr *key = bind__column(b, source, column++, (Span){0, 0});
        PlanExpr *e = key == NULL ? NULL : bind__compare(b, PX_EQ, key, plain, (Span){0, 0});
        if (e == NULL) return false;
        if (outer) e->flags |= PX_FLAG_ON;
        if (!bind__push(b, &item->on, e)) return false;
    }
    return true;
}

/* Arguments may name the tables beside the function. */
static bool
bind_arguments(Binder *b, Core *core)
{
    for (u32 i = 0; i < core->source_count; i++) {
        Source *source = core->source[i];
        if (source->arg_ast != NULL && source->kind == SOURCE_TABLE) {
            if (!bind_host_arguments(b, core, source)) return false;
            continue;
        }
        for (u32 k = 0; source->arg_ast != NULL && k < source->arg_ast->count; k++) {
            if (!bind__push(b, &source->args, bind__expr(b, source->arg_ast->items[k])))
                return false;
        }
    }
    return true;
}

/* (a JOIN b) AS x: a subquery of all its columns. */
static AstSelect *
nested_select(Binder *b, const AstFromItem *item)
{
    AstSelect *select = BIND_NEW(b, AstSelect);
    AstArm *arm = BIND_NEW(b, AstArm);
    AstResult *result = BIND_NEW(b, AstResult);
    if (select == NULL || arm == NULL || result == NULL) return NULL;
    result->kind = AST_RESULT_STAR;
    arm->results = (AstResults){.items = result, .count = 1, .capacity = 1};
    arm->from = item->nested;
    select->arms = arm;
    select->count = 1;
    return select;
}

static Source *
subquery_item(Binder *b, const AstFromItem *item)
{
    /* A FROM subquery does not see its neighbours, only what is outside of this SELECT. */
    Scope *here = b->scope;
    b->scope = here->outer;
    AggTrack *track = b->track;
    AstSelect *select = item->kind == AST_FROM_JOIN ? nested_select(b, item) : item->select;
    Query *query = select == NULL ? NULL : bind__select(b, select);
    b->scope = here;
    b->track = track;
    if (query == NULL) return NULL;
    const char *name = item_name(b, item);
    if (name == NULL) return NULL;
    Source *source = bind__query_source(b, query, name);
    /* What the subquery reads of outer queries, this one reads. */
    Query *own = here->core->query;
    if (source != NULL && query->outer_level < own->outer_level)
        own->outer_level = query->outer_level;
    for (u32 i = 0; source != NULL && i < query->outer_refs.count; i++) {
        if (!bind__push(b, &own->outer_refs, query->outer_refs.items[i])) return NULL;
    }
    return source;
}

static FromItem *
list_push(Binder *b, FromList *list)
{
    if (list->count == list->capacity) {
        u32 capacity = list->capacity == 0 ? 4 : list->capacity * 2;
        FromItem *items = BIND_ARRAY(b, FromItem, capacity);
        if (items == NULL) return NULL;
        if (list->count > 0) memcpy(items, list->item, list->count * sizeof(*items));
        list->item = items;
        list->capacity = capacity;
    }
    FromItem *item = &list->item[list->count++];
    *item = (FromItem){0};
    return item;
}

static bool bind_list(Binder *b, Core *core, FromList *list, const AstFrom *ast);

static bool
bind_item(Binder *b, Core *core, FromList *list, const AstFromItem *ast, u32 position)
{
    u8 join = position == 0 ? 0 : ast->join;
    if (ast->kind == AST_FROM_JOIN && !ast_name_present(&ast->alias)) {
        FromList *nested = BIND_NEW(b, FromList);
        if (nested == NULL || !bind_list(b, core, nested, ast->nested)) return false;
        FromItem *item = list_push(b, list);
        if (item == NULL) return false;
        item->nested = nested;
        item->join = join;
        for (u32 i = 0; i < nested->count; i++)
            item->mask |= nested->item[i].mask;
        return true;
    }
    Source *source = NULL;
    switch (ast->kind) {
    case AST_FROM_TABLE: source = table_item(b, ast); break;
    case AST_FROM_FUNCTION: source = function_item(b, ast); break;
    default: source = subquery_item(b, ast); break;
    }
    if (source == NULL || !bind__core_add_source(b, core, source)) return false;
    if (ast_name_present(&ast->alias)) source->alias = ast->alias.text;
    FromItem *item = list_push(b, list);
    if (item == NULL) return false;
    source->join = join;
    item->source = source;
    item->join = join;
    item->mask = (u64)1 << source->index;
    return true;
}

static bool
bind_list(Binder *b, Core *core, FromList *list, const AstFrom *ast)
{
    for (u32 i = 0; i < ast->count; i++) {
        if (!bind_item(b, core, list, &ast->items[i], i)) return false;
        FromItem *item = &list->item[list->count - 1];
        bool right = (item->join & AST_JOIN_RIGHT) != 0, left = (item->join & AST_JOIN_LEFT) != 0;
        if (left || right) core->has_outer_join = true;
        if (right) core->has_right_join = true;
        for (u32 k = 0; k < core->source_count; k++) {
            u64 bit = (u64)1 << core->source[k]->index;
            bool inside = (item->mask & bit) != 0, before = false;
            for (u32 m = 0; m + 1 < list->count; m++)
                before |= (list->item[m].mask & bit) != 0;
            if ((inside && left) || (before && right)) core->source[k]->nullable = true;
        }
    }
    return true;
}

bool
bind__from(Binder *b, Core *core, Scope *scope, const AstFrom *ast)
{
    if (ast == NULL) return true;
    u32 flags = scope->flags;
    bool good = bind_list(b, core, &core->from, ast);
    scope->flags = flags;
    scope->source = core->source;
    scope->source_count = core->source_count;
    return good && bind_arguments(b, core);
}

/* ---- ON, USING, NATURAL ---- */

/* Sources of items before `item` in its list, in FROM order: the first that has the column. */
static bool
find_left(Binder *b, Core *core, u64 left, const AstName *name, bool natural, ExprList *found)
{
    for (u32 i = 0; i < core->source_count; i++) {
        Source *source = core->source[i];
        if ((left >> i & 1) == 0) continue;
        i32 column = bind__find_column(b, source, name->text, false);
        if (column < 0 || bind__column_hidden(source, (u32)column)) continue;
        bool merged = false;
        u8 join = 0;
        for (u32 k = 0; k < source->using_names.count; k++) {
            if (!slice_equal_nocase(source->using_names.items[k].text, name->text)) continue;
            merged = true;
            join = source->using_names.items[k].keyword;
        }
        if (found->count > 0) {
            if (!merged && !natural) {
                bind__fail(b, ERR_SQL, "ambiguous reference to %.*s in USING()",
                           (int)name->text.bytes, name->text.p);
                return false;
            }
            if (!merged || (join & AST_JOIN_RIGHT) == 0) continue;
            if ((join & AST_JOIN_LEFT) == 0) found->count = 0;
        }
        if (!bind__push(b, found, bind__column(b, source, (u32)column, (Span){0, 0}))) return false;
    }
    return b->err == OK;
}

static PlanExpr *
left_value(Binder *b, const ExprList *found)
{
    if (found->count == 1) return found->items[0];
    PlanExpr *e = bind__new(b, PX_COALESCE, found->count, (Span){0, 0});
    if (e == NULL) return NULL;
    memcpy(e->arg, found->items, found->count * sizeof(PlanExpr *));
    bind__finish(e);
    e->affinity = e->arg[0]->affinity;
    e->collation = e->arg[0]->collation;
    return e;
}

static bool
using_push(Binder *b, AstNames *names, const AstName *name, u8 join)
{
    for (u32 i = 0; i < names->count; i++) {
        if (!slice_equal_nocase(names->items[i].text, name->text)) continue;
        /* Merged inside of a nested join already: there it may not have been the one that counts.
         */
        u8 inside = names->items[i].keyword;
        if ((join & AST_JOIN_RIGHT) != 0) {
            if ((inside & AST_JOIN_RIGHT) == 0 || (join & AST_JOIN_LEFT) == 0) return true;
        }
        names->items[i].keyword = join;
        return true;
    }
    if (names->count == names->capacity) {
        u32 capacity = names->capacity == 0 ? 4 : names->capacity * 2;
        AstName *items = BIND_ARRAY(b, AstName, capacity);
        if (items == NULL) return false;
        if (names->count > 0) memcpy(items, names->items, names->count * sizeof(*items));
        names->items = items;
        names->capacity = capacity;
    }
    names->items[names->count] = *name;
    names->items[names->count++].keyword = join;
    return true;
}

static bool
bind_using(Binder *b, Core *core, FromItem *item, u64 left, const AstName *name, bool natural)
{
    ExprList found = {0}, right = {0};
    if (!find_left(b, core, item->mask, name, true, &right)) return false;
    if (!find_left(b, core, left, name, natural, &found)) return false;
    if (right.count == 0 || found.count == 0) {
        if (natural) return true;
        bind__fail(b, ERR_SQL, "cannot join using column %.*s - column not present in both tables",
                   (int)name->text.bytes, name->text.p);
        return false;
    }
    PlanExpr *l = left_value(b, &found);
    PlanExpr *r = l == NULL ? NULL : left_value(b, &right);
    PlanExpr *e = bind__compare(b, PX_EQ, l, r, (Span){0, 0});
    if (e == NULL || !bind__push(b, &item->on, e)) return false;
    /* All columns of that name on the right are now the one on the left. */
    for (u32 i = 0; i < core->source_count; i++) {
        Source *source = core->source[i];
        if ((item->mask >> i & 1) == 0) continue;
        if (bind__find_column(b, source, name->text, false) < 0) continue;
        if (!using_push(b, &source->using_names, name, item->join)) return false;
    }
    return b->err == OK;
}

static bool
bind_natural(Binder *b, Core *core, FromItem *item, u64 left)
{
    for (u32 i = 0; i < core->source_count; i++) {
        Source *source = core->source[i];
        if ((item->mask >> i & 1) == 0) continue;
        for (u32 c = 0; c < source->column_count; c++) {
            if (bind__column_hidden(source, c)) continue;
            AstName name = {.text = bind__text(bind__column_name(source, c))};
            if (!bind_using(b, core, item, left, &name, true)) return false;
        }
    }
    return true;
}

static bool
list_using(Binder *b, Core *core, FromList *list, const AstFrom *ast)
{
    u64 left = 0;
    for (u32 i = 0; i < list->count; i++) {
        FromItem *item = &list->item[i];
        const AstFromItem *from = &ast->items[i];
        if (item->nested != NULL && !list_using(b, core, item->nested, from->nested)) return false;
        if (i > 0 && (from->join & AST_JOIN_NATURAL) != 0) {
            if (from->on != NULL || from->has_using) {
                bind__fail(b, ERR_SQL, "a NATURAL join may not have an ON or USING clause");
                return false;
            }
            if (!bind_natural(b, core, item, left)) return false;
        }
        for (u32 k = 0; i > 0 && k < from->using_columns.count; k++) {
            if (!bind_using(b, core, item, left, &from->using_columns.items[k], false))
                return false;
        }
        if (i == 0 && (from->on != NULL || from->has_using)) {
            bind__fail(b, ERR_SQL, "a JOIN clause is required before %s",
                       from->on != NULL ? "ON" : "USING");
            return false;
        }
        left |= item->mask;
    }
    return true;
}

static bool
list_on(Binder *b, Core *core, FromList *list, const AstFrom *ast, bool top)
{
    for (u32 i = 0; i < list->count; i++) {
        FromItem *item = &list->item[i];
        const AstFromItem *from = &ast->items[i];
        if (item->nested != NULL && !list_on(b, core, item->nested, from->nested, false))
            return false;
        bool outer = (item->join & (AST_JOIN_LEFT | AST_JOIN_RIGHT)) != 0;
        if (i > 0 && !bind__conjuncts(b, from->on, &item->on, outer ? PX_FLAG_ON : 0)) return false;
        /* Conditions of inner joins are part of WHERE unless an outer join may come between. */
        if (outer || !top || core->has_right_join) continue;
        for (u32 k = 0; k < item->on.count; k++) {
            if (!bind__push(b, &core->where, item->on.items[k])) return false;
        }
        item->on.count = 0;
    }
    return true;
}

static bool
all_inner(const FromList *list)
{
    for (u32 i = 0; i < list->count; i++) {
        if ((list->item[i].join & (AST_JOIN_LEFT | AST_JOIN_RIGHT | AST_JOIN_CROSS)) != 0)
            return false;
        if (list->item[i].nested != NULL && !all_inner(list->item[i].nested)) return false;
    }
    return true;
}

/* Melt nested inner joins into the list around them. */
static bool
list_melt(Binder *b, Core *core, const FromList *list, FromList *out, bool top)
{
    for (u32 i = 0; i < list->count; i++) {
        const FromItem *item = &list->item[i];
        bool outer = (item->join & (AST_JOIN_LEFT | AST_JOIN_RIGHT)) != 0;
        if (item->nested != NULL && !outer && all_inner(item->nested) && top &&
            !core->has_right_join) {
            if (!list_melt(b, core, item->nested, out, true)) return false;
            for (u32 k = 0; k < item->on.count; k++) {
                if (!bind__push(b, &core->where, item->on.items[k])) return false;
            }
            continue;
        }
        FromItem *copy = list_push(b, out);
        if (copy == NULL) return false;
        *copy = *item;
        for (u32 k = 0; top && !core->has_right_join && !outer && k < item->on.count; k++) {
            if (!bind__push(b, &core->where, item->on.items[k])) return false;
        }
        if (top && !core->has_right_join && !outer) copy->on.count = 0;
    }
    return true;
}

bool
bind__from_using(Binder *b, Core *core, const AstFrom *ast)
{
    return ast == NULL || list_using(b, core, &core->from, ast);
}

bool
bind__from_on(Binder *b, Core *core, const AstFrom *ast)
{
    if (ast == NULL) return true;
    if (!list_on(b, core, &core->from, ast, true)) return false;
    FromList flat = {0};
    if (!list_melt(b, core, &core->from, &flat, true)) return false;
    core->from = flat;
    if (core->from.count > 0) core->from.item[0].join = 0;
    return true;
}
