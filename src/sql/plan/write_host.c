/*
 * write_host.c -- INSERT, UPDATE and DELETE of virtual tables: the arguments of their update
 * function, as expressions over the rows of the source.
 *
 * One argument deletes the row with that key.  Else the first is the old key (NULL: insert), the
 * second the new one, and then come all columns, converted in no way: what they mean is the table's
 * business.
 */
#include "sql/plan/build.h"

bool
plan__host_may_write(Binder *b, const TableDef *table)
{
    if (table->host == NULL || !table->host->read_only) return true;
    bind__fail(b, ERR_SQL, "table %s may not be modified", table->name);
    return false;
}

static bool
make_args(Binder *b, PlanWrite *write, u32 count)
{
    write->host_arg_count = count;
    write->host_arg = KEEP_ARRAY(b, PlanExpr *, count);
    return write->host_arg != NULL;
}

bool
plan__host_insert(Binder *b, Target *target, const AstInsert *ast)
{
    PlanWrite *write = target->write;
    const TableDef *table = target->table;
    if (ast->upserts.count > 0) {
        bind__fail(b, ERR_SQL, "UPSERT not implemented for virtual table \"%s\"", table->name);
        return false;
    }
    if (!make_args(b, write, table->column_count + 2u)) return false;
    for (u32 i = 0; i <= table->column_count; i++) {
        i32 cell = write->value_cell[i];
        PlanExpr *e = NULL;
        if (cell >= 0) {
            e = plan__column(b, (u32)cell, NULL);
            if (e == NULL) return false;
        } else if (i < table->column_count && table->column[i].default_expr != NULL) {
            const char *sql = table->column[i].default_expr;
            PlanExpr *bound = bind__schema_expr(b, NULL, bind__text(sql), "DEFAULT", true);
            e = bound == NULL ? NULL : plan__lower(b, bound, NULL);
            if (e == NULL) return false;
        }
        write->host_arg[i == table->column_count ? 1 : i + 2] = e;
    }
    return plan__returning(b, target, &ast->returning);
}

static PlanExpr *
set_value(const SetList *sets, u32 column)
{
    for (u32 i = 0; sets != NULL && i < sets->count; i++) {
        if (sets->column[i] == column) return sets->value.items[i];
    }
    return NULL;
}

/* Columns that are read only to be written back. */
static bool *
find_unchanged(Binder *b, const Source *source, const SetList *sets)
{
    bool *unchanged = KEEP_ARRAY(b, bool, source->column_count);
    for (u32 i = 0; unchanged != NULL && i < source->column_count; i++)
        unchanged[i] = source->used[i] == 0 && set_value(sets, i) == NULL;
    return unchanged;
}

static PlanExpr *
column_arg(Binder *b, Target *target, const SetList *sets, u32 column, Env *env)
{
    const PlanExpr *e = set_value(sets, column);
    if (e == NULL) e = bind__column(b, target->source, column, (Span){0, 0});
    return e == NULL ? NULL : plan__lower(b, e, env);
}

bool
plan__host_change(Binder *b, Core *core, Target *target, const SetList *sets,
                  const AstResults *returning)
{
    PlanWrite *write = target->write;
    const TableDef *table = target->table;
    Source *source = target->source;
    bool update = sets != NULL;
    if (returning->count > 0) {
        bind__fail(b, ERR_SQL, "%s RETURNING is not available on virtual tables",
                   update ? "UPDATE" : "DELETE");
        return false;
    }
    u32 key = table->without_rowid ? table->primary_key->column[0].column : COLUMN_ROWID;
    Join join = {.for_write = true};
    if (update) {
        bool *unchanged = find_unchanged(b, source, sets);
        if (unchanged == NULL) return false;
        if (key != COLUMN_ROWID) unchanged[key] = false;
        join.host_unchanged = unchanged;
        for (u32 i = 0; i < source->column_count; i++) {
            if (set_value(sets, i) == NULL) source->used[i] = 1;
        }
    }
    if (bind__column(b, source, key, (Span){0, 0}) == NULL) return false;
    Layout *layout = NULL;
    plan__order_wanted(b, core->query, &join);
    PlanNode *rows = plan__join(b, core, &join, NULL, &layout);
    if (rows == NULL) return false;
    Env env = {.layout = layout};
    write->source = plan__order_rows(b, core->query, rows, &join, &env);
    if (write->source == NULL) return false;
    write->collect = true;
    if (!make_args(b, write, update ? table->column_count + 2u : 1)) return false;
    write->host_arg[0] = column_arg(b, target, NULL, key, &env);
    if (update) write->host_arg[1] = column_arg(b, target, sets, key, &env);
    for (u32 i = 0; update && i < table->column_count; i++)
        write->host_arg[i + 2] = column_arg(b, target, sets, i, &env);
    return b->err == OK;
}
