/*
 * column_api.c -- the current row and the names of its columns.
 *
 * A column's sqlite3_value is made from the row's cell when first asked for; texts made by
 * conversion stay with it until the row goes.
 */
#include "capi/capi.h"

/* The cell of a column of the current row, or NULL. */
static ALWAYS_INLINE const Cell *
column_cell(const sqlite3_stmt *stmt, int column)
{
    if (UNLIKELY(stmt == NULL || stmt->magic != STMT_MAGIC)) return NULL;
    const StmtRow *row = stmt->row;
    /* A negative column is a large one here. */
    return LIKELY(row->cell != NULL && (u32)column < row->columns) ? &row->cell[column] : NULL;
}

/* No such column: an error only while there is a row. */
static void
no_column(sqlite3_stmt *stmt, int column)
{
    if (!capi__stmt_ok(stmt) || column < 0 || stmt->row->cell == NULL) return;
    capi__fail(stmt->db, ERR_RANGE, "%s", err_text(ERR_RANGE));
}

static sqlite3_value *
column_value(sqlite3_stmt *stmt, int column)
{
    const Cell *cell = column_cell(stmt, column);
    if (UNLIKELY(cell == NULL)) {
        no_column(stmt, column);
        return NULL;
    }
    u32 columns = stmt->row->columns;
    if (UNLIKELY(stmt->columns < columns)) {
        sqlite3_value *list = MEM_NEW_ARRAY(sqlite3_value, columns);
        if (list == NULL) return NULL;
        capi__drop_values(stmt);
        stmt->column = list;
        stmt->columns = columns;
    }
    sqlite3_value *value = &stmt->column[column];
    if (!value->has_text && value->text16 == NULL) value->cell = *cell;
    stmt->has_values = true;
    return value;
}

int
sqlite3_column_count(sqlite3_stmt *stmt)
{
    return capi__stmt_ok(stmt) ? (int)stmt_column_count(stmt->stmt) : 0;
}

int
sqlite3_data_count(sqlite3_stmt *stmt)
{
    return capi__stmt_ok(stmt) && stmt->row->cell != NULL ? (int)stmt->row->columns : 0;
}

int
sqlite3_column_type(sqlite3_stmt *stmt, int column)
{
    const Cell *cell = column_cell(stmt, column);
    if (LIKELY(cell != NULL && (cell->flags & CELL_POINTER) == 0 && !stmt->has_values)) {
        return cell->type == CELL_NULL ? SQLITE_NULL : cell->type;
    }
    return sqlite3_value_type(column_value(stmt, column));
}

sqlite3_int64
sqlite3_column_int64(sqlite3_stmt *stmt, int column)
{
    const Cell *cell = column_cell(stmt, column);
    if (LIKELY(cell != NULL && cell->type == CELL_INT)) return cell->u.i;
    return sqlite3_value_int64(column_value(stmt, column));
}

int
sqlite3_column_int(sqlite3_stmt *stmt, int column)
{
    return (int)sqlite3_column_int64(stmt, column);
}

double
sqlite3_column_double(sqlite3_stmt *stmt, int column)
{
    const Cell *cell = column_cell(stmt, column);
    if (LIKELY(cell != NULL && cell->type == CELL_REAL)) return cell->u.r;
    return sqlite3_value_double(column_value(stmt, column));
}

const unsigned char *
sqlite3_column_text(sqlite3_stmt *stmt, int column)
{
    const Cell *cell = column_cell(stmt, column);
    if (LIKELY(cell != NULL && cell->type == CELL_TEXT && (cell->flags & CELL_TERMINATED) != 0)) {
        return cell->u.p;
    }
    return sqlite3_value_text(column_value(stmt, column));
}

const void *
sqlite3_column_text16(sqlite3_stmt *stmt, int column)
{
    return sqlite3_value_text16(column_value(stmt, column));
}

const void *
sqlite3_column_blob(sqlite3_stmt *stmt, int column)
{
    return sqlite3_value_blob(column_value(stmt, column));
}

int
sqlite3_column_bytes(sqlite3_stmt *stmt, int column)
{
    const Cell *cell = column_cell(stmt, column);
    if (LIKELY(cell != NULL && cell->type == CELL_TEXT)) return (int)cell->bytes;
    return sqlite3_value_bytes(column_value(stmt, column));
}

int
sqlite3_column_bytes16(sqlite3_stmt *stmt, int column)
{
    return sqlite3_value_bytes16(column_value(stmt, column));
}

sqlite3_value *
sqlite3_column_value(sqlite3_stmt *stmt, int column)
{
    return column_value(stmt, column);
}

/* ---- names ---- */

static const PlanColumn *
column_def(sqlite3_stmt *stmt, int column)
{
    return capi__stmt_ok(stmt) && column >= 0 ? stmt_column(stmt->stmt, (u32)column) : NULL;
}

const char *
sqlite3_column_name(sqlite3_stmt *stmt, int column)
{
    const PlanColumn *def = column_def(stmt, column);
    return def == NULL ? NULL : def->name;
}

const char *
sqlite3_column_decltype(sqlite3_stmt *stmt, int column)
{
    const PlanColumn *def = column_def(stmt, column);
    return def == NULL ? NULL : def->decl_type;
}

const char *
sqlite3_column_database_name(sqlite3_stmt *stmt, int column)
{
    const PlanColumn *def = column_def(stmt, column);
    return def == NULL ? NULL : def->origin_database;
}

const char *
sqlite3_column_table_name(sqlite3_stmt *stmt, int column)
{
    const PlanColumn *def = column_def(stmt, column);
    return def == NULL ? NULL : def->origin_table;
}

const char *
sqlite3_column_origin_name(sqlite3_stmt *stmt, int column)
{
    const PlanColumn *def = column_def(stmt, column);
    return def == NULL ? NULL : def->origin_column;
}

/* UTF-16 names are kept one a column and kind: name, decltype, database, table, origin. */
#define NAME_KINDS 5u

static const void *
name16(sqlite3_stmt *stmt, int column, u32 kind, const char *text)
{
    if (text == NULL) return NULL;
    u32 columns = stmt_column_count(stmt->stmt);
    if (stmt->name16 == NULL) {
        stmt->name16 = MEM_NEW_ARRAY(void *, columns *NAME_KINDS);
        if (stmt->name16 == NULL) return NULL;
    }
    void **slot = &stmt->name16[(u32)column * NAME_KINDS + kind];
    int bytes;
    if (*slot == NULL) *slot = capi__to_utf16(text, strlen(text), &bytes);
    return *slot;
}

const void *
sqlite3_column_name16(sqlite3_stmt *stmt, int column)
{
    return name16(stmt, column, 0, sqlite3_column_name(stmt, column));
}

const void *
sqlite3_column_decltype16(sqlite3_stmt *stmt, int column)
{
    return name16(stmt, column, 1, sqlite3_column_decltype(stmt, column));
}

const void *
sqlite3_column_database_name16(sqlite3_stmt *stmt, int column)
{
    return name16(stmt, column, 2, sqlite3_column_database_name(stmt, column));
}

const void *
sqlite3_column_table_name16(sqlite3_stmt *stmt, int column)
{
    return name16(stmt, column, 3, sqlite3_column_table_name(stmt, column));
}

const void *
sqlite3_column_origin_name16(sqlite3_stmt *stmt, int column)
{
    return name16(stmt, column, 4, sqlite3_column_origin_name(stmt, column));
}
