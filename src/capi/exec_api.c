/*
 * exec_api.c -- sqlite3_exec and sqlite3_get_table: statements in a text, rows to a callback.
 */
#include "capi/capi.h"

/* Name and text pointers of one row for the callback. */
typedef struct RowTexts {
    char **cell; /* `columns` values, then `columns` names */
    int columns;
} RowTexts;

static int
fill_row(sqlite3_stmt *stmt, RowTexts *row)
{
    if (row->cell == NULL) {
        row->columns = sqlite3_column_count(stmt);
        row->cell = MEM_NEW_ARRAY(char *, (size_t)row->columns * 2 + 2);
        if (row->cell == NULL) return SQLITE_NOMEM;
        for (int i = 0; i < row->columns; i++)
            row->cell[row->columns + 1 + i] = (char *)(uintptr_t)sqlite3_column_name(stmt, i);
    }
    for (int i = 0; i < row->columns; i++) {
        row->cell[i] = (char *)(uintptr_t)sqlite3_column_text(stmt, i);
        if (row->cell[i] == NULL && sqlite3_column_type(stmt, i) != SQLITE_NULL) {
            return SQLITE_NOMEM;
        }
    }
    return SQLITE_OK;
}

static int
run_statement(sqlite3 *db, sqlite3_stmt *stmt, sqlite3_callback callback, void *arg)
{
    RowTexts row = {0};
    int code = sqlite3_step(stmt);
    while (code == SQLITE_ROW) {
        if (callback != NULL) {
            code = fill_row(stmt, &row);
            if (code != SQLITE_OK) break;
            if (callback(arg, row.columns, row.cell, row.cell + row.columns + 1) != 0) {
                code = SQLITE_ABORT;
                break;
            }
        }
        code = sqlite3_step(stmt);
    }
    mem_free(row.cell);
    if (code == SQLITE_ABORT && callback != NULL) {
        sqlite3_finalize(stmt);
        return capi__fail(db, ERR_ABORT, "query aborted");
    }
    int final = sqlite3_finalize(stmt);
    return code == SQLITE_DONE ? final : final != SQLITE_OK ? final : code;
}

int
sqlite3_exec(sqlite3 *db, const char *sql, sqlite3_callback callback, void *arg, char **error_out)
{
    if (error_out != NULL) *error_out = NULL;
    if (!capi__db_ok(db) || db->session == NULL) return SQLITE_MISUSE;
    int code = SQLITE_OK;
    session_lock(db->session);
    if (sql == NULL) sql = "";
    while (code == SQLITE_OK && *sql != 0) {
        sqlite3_stmt *stmt;
        const char *tail;
        code = sqlite3_prepare_v2(db, sql, -1, &stmt, &tail);
        if (code == SQLITE_OK && stmt != NULL) code = run_statement(db, stmt, callback, arg);
        if (tail == sql) break;
        sql = tail;
    }
    if (code != SQLITE_OK && error_out != NULL) {
        const char *text = sqlite3_errmsg(db);
        *error_out = mem_strdup(text);
        if (*error_out == NULL) code = SQLITE_NOMEM;
    }
    session_unlock(db->session);
    return code;
}

/* ---- get_table ---- */

typedef struct Table {
    char **cell;
    size_t used, capacity;
    int rows, columns;
    bool mismatch, no_memory;
} Table;

static bool
table_add(Table *table, const char *text)
{
    if (table->used == table->capacity) {
        size_t capacity = table->capacity * 2 + 20;
        char **cell = mem_realloc(table->cell, capacity * sizeof(*cell));
        if (cell == NULL) return false;
        table->cell = cell;
        table->capacity = capacity;
    }
    char *copy = text == NULL ? NULL : mem_strdup(text);
    if (text != NULL && copy == NULL) return false;
    table->cell[table->used++] = copy;
    return true;
}

static int
table_row(void *arg, int columns, char **value, char **name)
{
    Table *table = arg;
    if (table->columns == 0) {
        table->columns = columns;
        for (int i = 0; i < columns; i++)
            table->no_memory = table->no_memory || !table_add(table, name[i]);
    } else if (columns != table->columns) {
        table->mismatch = true;
        return 1;
    }
    for (int i = 0; i < columns; i++)
        table->no_memory = table->no_memory || !table_add(table, value[i]);
    table->rows++;
    return table->no_memory;
}

int
sqlite3_get_table(sqlite3 *db, const char *sql, char ***result_out, int *rows_out, int *columns_out,
                  char **error_out)
{
    if (error_out != NULL) *error_out = NULL;
    if (rows_out != NULL) *rows_out = 0;
    if (columns_out != NULL) *columns_out = 0;
    if (!capi__db_ok(db) || result_out == NULL) return SQLITE_MISUSE;
    *result_out = NULL;
    Table table = {0};
    /* The slot before the first cell remembers how many there are, for free_table. */
    if (!table_add(&table, NULL)) return SQLITE_NOMEM;
    int code = sqlite3_exec(db, sql, table_row, &table, error_out);
    if (table.mismatch || table.no_memory) {
        if (error_out != NULL) {
            mem_free(*error_out);
            *error_out = table.mismatch ? mem_strdup("sqlite3_get_table() called with two or more "
                                                     "incompatible queries")
                                        : NULL;
        }
        code = table.no_memory ? SQLITE_NOMEM : SQLITE_ERROR;
    }
    table.cell[0] = (char *)(uintptr_t)table.used;
    if (code != SQLITE_OK) {
        sqlite3_free_table(table.cell + 1);
        return code;
    }
    *result_out = table.cell + 1;
    if (rows_out != NULL) *rows_out = table.rows;
    if (columns_out != NULL) *columns_out = table.columns;
    return SQLITE_OK;
}

void
sqlite3_free_table(char **result)
{
    if (result == NULL) return;
    char **cell = result - 1;
    size_t used = (size_t)(uintptr_t)cell[0];
    for (size_t i = 1; i < used; i++)
        mem_free(cell[i]);
    mem_free(cell);
}
