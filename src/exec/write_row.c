/*
 * write_row.c -- the values of a new row: from the source, by SET, generated; then NOT NULL, CHECK
 * and the types of STRICT tables.
 *
 * A column's affinity is applied as soon as its value is known, so that everything after it
 * (triggers, generated columns, checks, keys) sees what will be stored.
 */
#include "exec/write__run.h"

u8
write__conflict(const ExecWrite *w, u8 own)
{
    u8 statement = w->op == WRITE_UPDATE ? w->sets->conflict : w->plan->conflict;
    if (statement != CONFLICT_DEFAULT) return statement;
    return own == CONFLICT_DEFAULT ? CONFLICT_ABORT : own;
}

void
write__set_undo(ExecWrite *w, u8 action)
{
    w->exec->undo = action == CONFLICT_FAIL       ? EXEC_UNDO_NOTHING
                    : action == CONFLICT_ROLLBACK ? EXEC_UNDO_TRANSACTION
                                                  : EXEC_UNDO_STATEMENT;
}

/* The value as the column stores it.  REAL columns turn integers into reals. */
Err
write__store_affinity(ExecWrite *w, u16 column, Cell *cell)
{
    if ((cell->flags & CELL_POINTER) != 0) *cell = cell_null();
    cell->subtype = 0;
    u8 affinity = w->table->column[column].affinity;
    if (cell->type == CELL_NULL || affinity <= AFFINITY_BLOB) return OK;
    /* The usual ones: an integer in a numeric column, text in a TEXT column. */
    if (cell->type == CELL_INT && (affinity == AFFINITY_INTEGER || affinity == AFFINITY_NUMERIC)) {
        return OK;
    }
    if (cell->type == CELL_TEXT && affinity == AFFINITY_TEXT) return OK;
    Err err = cell_apply_affinity(cell, (Affinity)affinity, &w->exec->row_arena);
    return err == OK ? OK : exec__fail(w->exec, err, NULL);
}

static ALWAYS_INLINE Err
load_values(ExecWrite *w, const Cell *source)
{
    const PlanWrite *plan = w->plan;
    const TableDef *table = w->table;
    const Cell *param = w->exec->param;
    Cell *row = w->fresh.cell;
    for (u16 c = 0; c < table->column_count; c++) {
        i32 at = plan->value_cell[c];
        Err err = OK;
        if (at >= 0 && source != NULL) {
            row[c] = source[at];
        } else if (at >= 0) {
            const WriteValue *value = &w->value[at];
            row[c] = value->kind == WRITE_VALUE_PARAM ? param[value->param] : value->constant;
        } else if (table->column[c].generated != 0 || w->default_expr == NULL ||
                   w->default_expr[c] == NULL) {
            row[c] = cell_null();
            continue;
        } else {
            err = exec__eval(w->exec, w->default_expr[c], NULL, &row[c]);
        }
        if (LIKELY(err == OK && write__stores_as_is(table->column[c].affinity, &row[c]))) continue;
        /* What goes into a view is for its triggers, as it is; but NEW has a real where the column
           is one. */
        if (err == OK && c != table->rowid_column && !table->is_view) {
            err = write__store_affinity(w, c, &row[c]);
        } else if (table->column[c].affinity == AFFINITY_REAL && row[c].type == CELL_INT) {
            row[c] = cell_real((f64)row[c].u.i);
        }
        if (err != OK) return err;
    }
    i32 at = plan->value_cell[table->column_count];
    Cell rowid = cell_null();
    if (at >= 0 && source != NULL) {
        rowid = source[at];
    } else if (at >= 0) {
        const WriteValue *value = &w->value[at];
        rowid = value->kind == WRITE_VALUE_PARAM ? param[value->param] : value->constant;
    } else if (table->rowid_column != COLUMN_ROWID) {
        rowid = row[table->rowid_column];
    }
    row[table->column_count] = rowid;
    w->rowid_given = rowid.type != CELL_NULL;
    return OK;
}

Err
write__load_values(ExecWrite *w, const Cell *source)
{
    return load_values(w, source);
}

Err
write__load_direct(ExecWrite *w)
{
    return load_values(w, NULL);
}

Err
write__set_values(ExecWrite *w, const Cell *row)
{
    const WriteSet *set = w->sets;
    const TableDef *table = w->table;
    Cell *fresh = w->fresh.cell;
    memcpy(fresh, w->old.cell, sizeof(Cell) * (table->column_count + 1u));
    w->fresh.rowid = w->old.rowid;
    for (u32 i = 0; i < set->count; i++) {
        u16 column = set->column[i];
        Cell value;
        Err err = exec__eval(w->exec, set->expr[i], row, &value);
        if (err != OK) return err;
        if (column == COLUMN_ROWID || (column == table->rowid_column && !table->is_view)) {
            err = write__must_be_int(w, &value);
            if (err != OK) return err;
            w->fresh.rowid = value.u.i;
            fresh[table->column_count] = value;
            if (table->rowid_column != COLUMN_ROWID) fresh[table->rowid_column] = value;
            continue;
        }
        err = write__store_affinity(w, column, &value);
        if (err != OK) return err;
        fresh[column] = value;
    }
    w->type_checked = false;
    return OK;
}

void
write__reload_unset(ExecWrite *w)
{
    for (u16 c = 0; c < w->table->column_count; c++) {
        if (!w->sets->changed[c]) w->fresh.cell[c] = w->old.cell[c];
    }
}

/* ---- STRICT ---- */

static bool
strict_allows(u8 strict_type, u8 cell_type)
{
    switch (strict_type) {
    case STRICT_INT:
    case STRICT_INTEGER: return cell_type == CELL_INT;
    case STRICT_REAL: return cell_type == CELL_REAL;
    case STRICT_TEXT: return cell_type == CELL_TEXT;
    case STRICT_BLOB: return cell_type == CELL_BLOB;
    default: return true;
    }
}

static Err
fail_type(ExecWrite *w, u16 c, const Cell *cell)
{
    static const char *const type_name[] = {"ANY", "ANY", "INT", "INTEGER", "REAL", "TEXT", "BLOB"};
    static const char *const value_name[] = {"NULL", "INT", "REAL", "TEXT", "BLOB"};
    const ColumnDef *column = &w->table->column[c];
    return exec__fail(w->exec, ERR_CONSTRAINT_DATATYPE, "cannot store %s value in %s column %s.%s",
                      value_name[cell->type], type_name[column->strict_type], w->table->name,
                      column->name);
}

/* The first column whose value its STRICT type refuses; column_count: none. */
static u16
misfit(const ExecWrite *w)
{
    const TableDef *table = w->table;
    if (!table->strict) return table->column_count;
    for (u16 c = 0; c < table->column_count; c++) {
        const ColumnDef *column = &table->column[c];
        const Cell *cell = &w->fresh.cell[c];
        if (column->generated == 1 || c == table->rowid_column || cell->type == CELL_NULL) continue;
        if (!strict_allows(column->strict_type, cell->type)) return c;
    }
    return table->column_count;
}

bool
write__types_fit(const ExecWrite *w)
{
    return misfit(w) == w->table->column_count;
}

Err
write__check_types(ExecWrite *w)
{
    if (w->type_checked) return OK;
    w->type_checked = true;
    u16 c = misfit(w);
    return c == w->table->column_count ? OK : fail_type(w, c, &w->fresh.cell[c]);
}

/* ---- generated columns ---- */

Err
write__generate(ExecWrite *w, Cell *row, bool virtual_only)
{
    for (u16 i = 0; i < w->plan->generated_count; i++) {
        u16 column = w->plan->generated_order[i];
        if (virtual_only && w->table->column[column].generated != 1) continue;
        Err err = exec__eval(w->exec, w->generated[i], row, &row[column]);
        if (err == OK) err = write__store_affinity(w, column, &row[column]);
        if (err != OK) return err;
        /* Virtual ones are checked here; the others with the rest of the row. */
        const ColumnDef *def = &w->table->column[column];
        if (def->generated == 1 && w->table->strict && row[column].type != CELL_NULL &&
            !strict_allows(def->strict_type, row[column].type)) {
            return fail_type(w, column, &row[column]);
        }
    }
    return OK;
}

/* ---- NOT NULL and CHECK ---- */

/*
 * One column that is NULL and must not be.  In the first pass REPLACE puts the default in; what is
 * NULL then fails in the second pass, behind the errors of all other columns.
 */
static Err
null_found(ExecWrite *w, u16 c, u8 action, bool first_pass, bool *replaced_out, bool *ignore_out)
{
    const ColumnDef *column = &w->table->column[c];
    if (action == CONFLICT_IGNORE) {
        *ignore_out = true;
        return OK;
    }
    if (action == CONFLICT_REPLACE && first_pass && w->default_expr != NULL &&
        w->default_expr[c] != NULL) {
        Cell *cell = &w->fresh.cell[c];
        *replaced_out = true;
        Err err = exec__eval(w->exec, w->default_expr[c], NULL, cell);
        return err == OK ? write__store_affinity(w, c, cell) : err;
    }
    if (action == CONFLICT_REPLACE) action = CONFLICT_ABORT;
    write__set_undo(w, action);
    return exec__fail(w->exec, ERR_CONSTRAINT_NOTNULL, "NOT NULL constraint failed: %s.%s",
                      w->table->name, column->name);
}

/* The second pass looks at what the first could not know: generated columns, replaced values. */
static Err
check_not_null(ExecWrite *w, bool first_pass, bool *replaced_out, bool *ignore_out)
{
    for (u16 i = 0; i < w->not_null_count; i++) {
        u16 c = w->not_null[i];
        if (w->fresh.cell[c].type != CELL_NULL) continue;
        bool generated = w->table->column[c].generated != 0;
        if (w->op == WRITE_UPDATE && !generated && !w->sets->changed[c]) continue;
        u8 action = write__conflict(w, w->table->column[c].not_null_conflict);
        if (first_pass ? generated : !generated && action != CONFLICT_REPLACE) continue;
        Err err = null_found(w, c, action, first_pass, replaced_out, ignore_out);
        if (err != OK || *ignore_out) return err;
    }
    return OK;
}

static Err
check_expressions(ExecWrite *w, bool *ignore_out)
{
    if (w->plan->check_count == 0 || w->exec->env->ignore_check) return OK;
    for (u32 i = 0; i < w->plan->check_count; i++) {
        if (w->op == WRITE_UPDATE && !w->sets->check[i]) continue;
        Err err = write__check_types(w);
        if (err != OK) return err;
        ExecTruth truth;
        err = exec__eval_truth(w->exec, w->check[i], w->fresh.cell, &truth);
        if (err != OK) return err;
        if (truth != EXEC_FALSE) continue;
        u8 action = write__conflict(w, CONFLICT_DEFAULT);
        if (action == CONFLICT_IGNORE) {
            *ignore_out = true;
            return OK;
        }
        if (action == CONFLICT_REPLACE) action = CONFLICT_ABORT;
        write__set_undo(w, action);
        return exec__fail(w->exec, ERR_CONSTRAINT_CHECK, "CHECK constraint failed: %s",
                          w->plan->check_text[i]);
    }
    return OK;
}

Err
write__check_row(ExecWrite *w, bool *ignore_out)
{
    *ignore_out = false;
    bool replaced = false;
    Err err = check_not_null(w, true, &replaced, ignore_out);
    if (err == OK && !*ignore_out && replaced) err = write__generate(w, w->fresh.cell, false);
    if (err == OK && !*ignore_out && (replaced || w->plan->generated_count > 0)) {
        err = check_not_null(w, false, &replaced, ignore_out);
    }
    if (err == OK && !*ignore_out) err = check_expressions(w, ignore_out);
    return err;
}
