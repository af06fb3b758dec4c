/*
 * write.c -- INSERT, with its sources, column lists, conflict clauses and UPSERT.
 */
#include "sql/plan/build.h"

static u32
visible_columns(const TableDef *table)
{
    u32 count = 0;
    for (u32 i = 0; i < table->column_count; i++) {
        if (table->column[i].generated == 0 && !table->column[i].hidden) count++;
    }
    return count;
}

/* The columns that the statement names, before anything else of it is looked at.  ALTER TABLE only
   asks what the names mean, so there a wrong one is passed over. */
static bool
name_columns(Binder *b, Target *target, const AstInsert *ast)
{
    const TableDef *table = target->table;
    PlanWrite *write = target->write;
    bool notes_only = b->ctx->notes != NULL;
    write->value_cell = KEEP_ARRAY(b, i32, table->column_count + 1u);
    if (write->value_cell == NULL) return false;
    for (u32 i = 0; i <= table->column_count; i++)
        write->value_cell[i] = -1;
    for (u32 i = 0; i < ast->columns.count; i++) {
        const AstName *name = &ast->columns.items[i];
        i32 column = bind__find_column(b, target->source, name->text, true);
        if (b->err != OK) return false;
        if (column < 0 && notes_only) continue;
        if (column < 0) {
            bind__fail_at(b, name->span, "table %s has no column named %.*s", table->name,
                          (int)name->text.bytes, name->text.p);
            return false;
        }
        bind__note(b, target->source, name, column);
        u32 place = column == COLUMN_ROWID ? table->column_count : (u32)column;
        if (column != COLUMN_ROWID && table->column[column].generated != 0) {
            if (notes_only) continue;
            bind__fail_at(b, name->span, "cannot INSERT into generated column \"%s\"",
                          table->column[column].name);
            return false;
        }
        if (column == COLUMN_ROWID && table->rowid_column != COLUMN_ROWID)
            place = table->rowid_column;
        /* A column named twice takes its first value. */
        if (write->value_cell[place] < 0) write->value_cell[place] = (i32)i;
    }
    return true;
}

static bool
same_text(const char *a, const char *c)
{
    return (a == NULL) == (c == NULL) && (a == NULL || strcmp(a, c) == 0);
}

static bool
same_column(const ColumnDef *a, const ColumnDef *c)
{
    return a->generated == c->generated && same_text(a->generated_sql, c->generated_sql) &&
           a->affinity == c->affinity && a->collation == c->collation &&
           same_text(a->host_collation, c->host_collation) && (c->not_null || !a->not_null);
}

/* INSERT INTO t SELECT * FROM s of tables that are declared alike copies rows whole, in SQLite, and
   so takes generated columns for what they are; else they would be values too many. */
static bool
copies_rows(Binder *b, const TableDef *table, const AstInsert *ast)
{
    const AstSelect *select = ast->select;
    const AstArm *arm = &select->arms[0];
    if (select->count != 1 || select->with != NULL || ast->upserts.count > 0) return false;
    if (select->order_by.count > 0 || select->limit != NULL || arm->is_values || arm->distinct)
        return false;
    if (arm->where != NULL || arm->group_by.count > 0 || arm->having != NULL || arm->from == NULL)
        return false;
    if (arm->results.count != 1 || arm->results.items[0].kind != AST_RESULT_STAR) return false;
    const AstFromItem *item = &arm->from->items[0];
    if (arm->from->count != 1 || item->kind != AST_FROM_TABLE) return false;
    const TableDef *from = catalog_view_table(b->ctx->catalog, item->schema.text, item->name.text,
                                              NULL);
    if (from == NULL || from == table || from->is_view || from->is_virtual) return false;
    if (from->column_count != table->column_count || from->rowid_column != table->rowid_column ||
        from->without_rowid != table->without_rowid || from->strict != table->strict)
        return false;
    if (table->index_count > 0 || table->check_count > 0) return false;
    for (u32 i = 0; i < table->column_count; i++) {
        if (!same_column(&table->column[i], &from->column[i])) return false;
    }
    return true;
}

/* Which cell of the source goes to which column, where none was named; and their number. */
static bool
map_columns(Binder *b, Target *target, const AstInsert *ast, u32 values)
{
    const TableDef *table = target->table;
    if (ast->select == NULL || b->ctx->notes != NULL) return true;
    u32 wanted = ast->columns.count == 0 ? visible_columns(table) : ast->columns.count;
    if (values != wanted && values == table->column_count && ast->columns.count == 0 &&
        copies_rows(b, table, ast)) {
        for (u32 i = 0; i < table->column_count; i++) {
            if (table->column[i].generated == 0) target->write->value_cell[i] = (i32)i;
        }
        return true;
    }
    if (values != wanted && ast->columns.count > 0) {
        bind__fail(b, ERR_SQL, "%u values for %u columns", values, wanted);
        return false;
    }
    if (values != wanted) {
        bind__fail(b, ERR_SQL, "table %s has %u columns but %u values were supplied", table->name,
                   wanted, values);
        return false;
    }
    i32 cell = 0;
    for (u32 i = 0; ast->columns.count == 0 && i < table->column_count; i++) {
        if (table->column[i].generated == 0 && !table->column[i].hidden)
            target->write->value_cell[i] = cell++;
    }
    return true;
}

/* ---- UPSERT ---- */

static bool
target_matches(Binder *b, Target *target, const ExprList *terms, const IndexDef *index)
{
    if (index->key_columns != terms->count || !index->unique) return false;
    for (u32 i = 0; i < index->key_columns; i++) {
        const IndexColumn *column = &index->column[i];
        PlanExpr *expr = NULL;
        if (column->column == COLUMN_EXPR) {
            expr = bind__schema_expr(b, target->source, bind__text(column->expr_sql),
                                     "index expressions", true);
            if (expr == NULL) return false;
        }
        bool found = false;
        for (u32 k = 0; k < terms->count && !found; k++) {
            const PlanExpr *term = terms->items[k];
            bool explicit = (term->flags & PX_FLAG_COLLATE) != 0;
            if (explicit && bind__collation_or_binary(term->collation) !=
                                bind__collation_or_binary(column->collation))
                continue;
            if (expr != NULL) {
                found = bind__equal_but_collate(term, expr);
            } else {
                found = term->op == PX_BOUND_COLUMN && term->u.bound.column == column->column;
            }
        }
        if (!found) return false;
    }
    return true;
}

static bool
where_matches(Binder *b, Target *target, const IndexDef *index, const ExprList *where)
{
    if (index->where_sql == NULL) return true;
    ExprList wanted = {0};
    if (!bind__schema_conjuncts(b, target->source, bind__text(index->where_sql),
                                "partial index WHERE clauses", &wanted))
        return false;
    for (u32 i = 0; i < wanted.count; i++) {
        bool found = false;
        for (u32 k = 0; k < where->count && !found; k++)
            found = bind__equal(where->items[k], wanted.items[i]);
        if (!found) return false;
    }
    return true;
}

static bool
upsert_target(Binder *b, Target *target, const AstUpsert *ast, PlanUpsert *out)
{
    const TableDef *table = target->table;
    if (ast->target.count == 0) {
        out->any = true;
        return true;
    }
    ExprList terms = {0}, where = {0};
    for (u32 i = 0; i < ast->target.count; i++) {
        if (!bind__push(b, &terms, bind__expr(b, ast->target.items[i].expr))) return false;
    }
    if (!bind__conjuncts(b, ast->target_where, &where, 0)) return false;
    if (terms.count == 1 && terms.items[0]->op == PX_BOUND_COLUMN && !table->without_rowid &&
        terms.items[0]->u.bound.column == table->rowid_column) {
        out->rowid = true;
        return true;
    }
    if (table->primary_key != NULL && target_matches(b, target, &terms, table->primary_key)) {
        out->index = table->primary_key;
        return true;
    }
    for (u32 i = 0; i < table->index_count && b->err == OK; i++) {
        if (!target_matches(b, target, &terms, table->index[i])) continue;
        if (!where_matches(b, target, table->index[i], &where)) continue;
        out->index = table->index[i];
        return true;
    }
    if (b->ctx->notes != NULL) return b->err == OK;
    bind__fail(b, ERR_SQL,
               "ON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint");
    return false;
}

static bool
plan_upsert(Binder *b, Target *target, const AstUpsert *ast, PlanUpsert *out)
{
    const TableDef *table = target->table;
    Source *excluded = bind__table_source(b, table, "excluded");
    if (excluded == NULL) return false;
    excluded->kind = SOURCE_ROW;
    excluded->bare = SOURCE_BARE_ALL;
    excluded->no_rowid = table->without_rowid;
    Source *list[1] = {target->source};
    Scope scope = {.source = list, .source_count = 1};
    bind__scope_push(b, &scope, NULL);
    bool good = upsert_target(b, target, ast, out);
    scope.row[0] = excluded;
    scope.row_count = 1;
    SetList sets = {0};
    PlanExpr *where = NULL;
    out->do_nothing = !ast->do_update;
    if (good && ast->do_update) {
        good = plan__bind_sets(b, target, &ast->sets, &sets);
        if (good && ast->where != NULL) {
            where = bind__expr(b, ast->where);
            good = where != NULL;
        }
    }
    bind__scope_pop(b);
    if (!good || b->err != OK) return false;
    Layout row = *target->row;
    row.whole[1] = (WholeRow){excluded, table->column_count + 1u};
    row.whole_count = 2;
    Env env = {.layout = &row};
    out->set_count = sets.count;
    out->set_column = sets.column;
    out->set_expr = plan__lower_list(b, &sets.value, &env);
    if (where != NULL) out->where = plan__lower(b, where, &env);
    return out->set_expr != NULL && b->err == OK;
}

static bool
plan_upserts(Binder *b, Target *target, const AstInsert *ast)
{
    PlanWrite *write = target->write;
    write->upsert_count = ast->upserts.count;
    write->upsert = KEEP_ARRAY(b, PlanUpsert, ast->upserts.count);
    if (write->upsert == NULL) return false;
    for (u32 i = 0; i < ast->upserts.count; i++) {
        if (!plan_upsert(b, target, &ast->upserts.items[i], &write->upsert[i])) return false;
    }
    return true;
}

/* ---- the statement ---- */

static bool
insert_source(Binder *b, Target *target, const AstInsert *ast)
{
    PlanWrite *write = target->write;
    if (!name_columns(b, target, ast)) return false;
    if (ast->select == NULL) {
        write->source = plan__node(b, PLAN_ONE_ROW, 0);
        return write->source != NULL;
    }
    Query *query = bind__select(b, ast->select);
    if (query == NULL) return false;
    if (!map_columns(b, target, ast, query->column_count)) return false;
    for (u32 i = 0; i < b->plan->table_count; i++)
        write->collect |= b->plan->table[i].table == target->table;
    b->plan->klass = query->klass;
    write->source = plan__query(b, query, NULL);
    return write->source != NULL;
}

bool
plan__insert(Binder *b, const AstInsert *ast)
{
    if (!bind__with_push(b, ast->with)) return false;
    const TableDef *table = plan__target_table(b, &ast->target);
    bool ignore;
    if (table == NULL ||
        !bind__authorize(b, PLAN_AUTH_INSERT, table->name, NULL, table->schema, &ignore))
        return false;
    Target target = {0};
    /* The source is bound before the target counts as used, so that reading it shows. */
    Target early = {.table = table};
    Query *view = NULL;
    if (table->is_view) early.table = plan__view_table(b, table, &view);
    if (early.table == NULL || !plan__may_change(b, table, WRITE_INSERT)) return false;
    early.source = bind__table_source(b, early.table, table->name);
    early.write = KEEP_NEW(b, PlanWrite);
    if (early.source == NULL || early.write == NULL) return false;
    if (!insert_source(b, &early, ast)) return false;
    target.write = early.write;
    if (!table->is_view && !ast_name_present(&ast->target.alias)) target.source = early.source;
    if (!plan__target_init(b, &target, table, &ast->target, WRITE_INSERT)) return false;
    target.write->conflict = plan__conflict(b, (u8)ast->conflict);
    target.one_row = ast->select == NULL ||
                     (ast->select->count == 1 && ast->select->arms[0].is_values &&
                      ast->select->arms[0].values.count == 1);
    if (table->is_view && ast->upserts.count > 0) {
        bind__fail(b, ERR_SQL, "cannot UPSERT a view");
        return false;
    }
    if (table->host != NULL) return plan__host_insert(b, &target, ast);
    if (table->autoincrement) {
        target.write->sequence = catalog_view_table(b->ctx->catalog, bind__text(table->schema),
                                                    SLICE_LITERAL("sqlite_sequence"), NULL);
    }
    if (!plan__target_table_parts(b, &target) || !plan_upserts(b, &target, ast) ||
        !plan__returning(b, &target, &ast->returning) || !plan__foreign_keys(b, &target) ||
        !plan__triggers(b, &target, table))
        return false;
    /* What a trigger or a cascade writes, the source may read: it must not meet its own work. */
    const PlanWrite *write = target.write;
    if (ast->select != NULL && (write->trigger_count > 0 || write->foreign_child_count > 0))
        target.write->collect = true;
    return plan__need_indexes(b, &target);
}
