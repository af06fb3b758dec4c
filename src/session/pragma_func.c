/*
 * pragma_func.c -- pragma_NAME(arg, schema): pragmas that return rows, as table-valued functions.
 *
 * The function runs the pragma as a statement of the same session and hands its rows on.  The
 * definitions are made once a process from the pragma table.
 */
#include "session/session__impl.h"

typedef struct PragmaRows {
    Stmt *stmt;
    i64 rowid;
    char *arg, *schema; /* The hidden columns; NULL if not given. */
} PragmaRows;

static Err
copy_argument(const Cell *cell, Arena *arena, char **text_out)
{
    Slice text;
    *text_out = NULL;
    if (cell == NULL || cell->type == CELL_NULL) return OK;
    Err err = cell_text_bytes(cell, arena, &text);
    if (err != OK) return err;
    *text_out = mem_strndup(text.p, text.bytes);
    return *text_out == NULL ? ERR_NOMEM : OK;
}

static void
rows_end(TableCall *call)
{
    PragmaRows *rows = call->state;
    stmt_finalize(rows->stmt);
    mem_free(rows->arg);
    mem_free(rows->schema);
    *rows = (PragmaRows){0};
}

static Err
pragma_text(const TableCall *call, const PragmaRows *rows, Buf *sql)
{
    Err err = buf_append_text(sql, "PRAGMA ");
    if (err == OK && rows->schema != NULL) {
        err = sql_name_append(sql, SLICE(rows->schema, strlen(rows->schema)), true);
        if (err == OK) err = buf_append_byte(sql, '.');
    }
    if (err == OK) err = buf_append_text(sql, call->func->name + strlen("pragma_"));
    if (err == OK && rows->arg != NULL) {
        err = buf_append_byte(sql, '(');
        if (err == OK) err = sql_string_append(sql, SLICE(rows->arg, strlen(rows->arg)));
        if (err == OK) err = buf_append_byte(sql, ')');
    }
    return err;
}

static Err
rows_start(TableCall *call, const Cell *const *arg)
{
    Session *session = call->env->arg;
    PragmaRows *rows = call->state;
    const TableFunc *func = call->func;
    rows_end(call);
    Err err = OK;
    for (u32 i = func->hidden_from; err == OK && i < func->column_count; i++) {
        bool is_arg = strcmp(func->column[i], "arg") == 0;
        err = copy_argument(arg[i - func->hidden_from], call->arena,
                            is_arg ? &rows->arg : &rows->schema);
    }
    Buf sql = {0};
    if (err == OK) err = pragma_text(call, rows, &sql);
    if (err == OK) {
        err = stmt_prepare(session, buf_slice(&sql), &rows->stmt, NULL);
        if (err != OK) err_set(call->msg, err, "%s", err_message(session_error(session)));
    }
    buf_free(&sql);
    return err;
}

static Err
rows_next(TableCall *call, bool *row_out)
{
    PragmaRows *rows = call->state;
    rows->rowid++;
    Err err = stmt_step(rows->stmt, row_out);
    if (err != OK) {
        err_set(call->msg, err, "%s", err_message(session_error(stmt_session(rows->stmt))));
    }
    return err;
}

static Err
rows_value(TableCall *call, u32 column, Cell *out)
{
    const PragmaRows *rows = call->state;
    const TableFunc *func = call->func;
    if (column < func->hidden_from) {
        if (column >= stmt_column_count(rows->stmt)) return OK;
        return cell_copy(&stmt_row(rows->stmt)[column], call->arena, out);
    }
    bool is_schema = strcmp(func->column[column], "schema") == 0;
    const char *text = is_schema ? rows->schema : rows->arg;
    return text == NULL ? OK : cell_text_copy(text, strlen(text), call->arena, out);
}

static i64
rows_rowid(const TableCall *call)
{
    return ((const PragmaRows *)call->state)->rowid;
}

Err
pragma__functions(Arena *arena, TableFunc **funcs_out, u32 *count_out)
{
    u32 most = pragma__count(), count = 0;
    TableFunc *funcs = ARENA_NEW_ARRAY(arena, TableFunc, most + 1);
    if (funcs == NULL) return ERR_NOMEM;
    for (u32 i = 0; i < most; i++) {
        u32 columns;
        bool takes_arg, takes_schema;
        const char *const *column;
        const char *name = pragma__describe_at(i, &columns, &column, &takes_arg, &takes_schema);
        if (columns == 0) continue; /* No rows, or it does something. */
        const char **all = ARENA_NEW_ARRAY(arena, const char *, columns + 2);
        char *full = arena_printf(arena, "pragma_%s", name);
        if (all == NULL || full == NULL) return ERR_NOMEM;
        for (u32 k = 0; k < columns; k++)
            all[k] = column[k];
        u32 hidden = columns;
        if (takes_arg) all[hidden++] = "arg";
        if (takes_schema) all[hidden++] = "schema";
        funcs[count++] = (TableFunc){
            .name = full,
            .column = all,
            .column_count = (u16)hidden,
            .hidden_from = (u16)columns,
            .flags = FUNC_FALLIBLE,
            .state_bytes = sizeof(PragmaRows),
            .start = rows_start,
            .next = rows_next,
            .value = rows_value,
            .rowid = rows_rowid,
            .end = rows_end,
        };
    }
    *funcs_out = funcs;
    *count_out = count;
    return OK;
}
