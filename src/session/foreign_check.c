/*
 * foreign_check.c -- PRAGMA foreign_key_check: rows whose parents are missing.
 *
 * For each table with foreign keys a query is made as text and run in the transaction of the
 * pragma. It walks the table in its order and tells for each key whether all its columns are set
 * and no parent is equal.  The parent's side has its affinity and collation, the child's has none,
 * as in the check of a write.
 */
#include "session/pragma__impl.h"

static Err
put_name(Buf *sql, const char *name)
{
    return sql_name_append(sql, SLICE(name, strlen(name)), true);
}

static Err
put_column(Buf *sql, const char *before, const char *name)
{
    Err err = buf_append_text(sql, before);
    return err == OK ? put_name(sql, name) : err;
}

static Err
put_table(Buf *sql, const TableDef *table, const char *after)
{
    Err err = put_name(sql, table->schema);
    if (err == OK) err = buf_append_byte(sql, '.');
    if (err == OK) err = put_name(sql, table->name);
    return err == OK ? buf_append_text(sql, after) : err;
}

/* A name for the rowid that no column has; NULL: there is none. */
static const char *
rowid_name(const TableDef *table)
{
    static const char *const names[] = {"rowid", "_rowid_", "oid"};
    for (u32 i = 0; i < COUNT_OF(names) && !table->without_rowid; i++) {
        bool taken = false;
        for (u32 k = 0; k < table->column_count; k++)
            taken = taken || text_compare_nocase(table->column[k].name, names[i]) == 0;
        if (!taken) return names[i];
    }
    return NULL;
}

/* One column of the query: is the parent missing? */
static Err
put_key(Buf *sql, const TableDef *child, const ForeignKeyDef *key, const TableDef *parent,
        const u16 *parent_column)
{
    Err err = buf_append_text(sql, ", 1");
    for (u32 i = 0; err == OK && i < key->column_count; i++) {
        err = put_column(sql, " AND c.", child->column[key->column[i]].name);
        if (err == OK) err = buf_append_text(sql, " NOT NULL");
    }
    if (parent == NULL || err != OK) return err;
    err = buf_append_text(sql, " AND NOT EXISTS(SELECT 1 FROM ");
    if (err == OK) err = put_table(sql, parent, " AS p WHERE 1");
    for (u32 i = 0; err == OK && i < key->column_count; i++) {
        err = put_column(sql, " AND p.", parent->column[parent_column[i]].name);
        if (err == OK) err = put_column(sql, " = +c.", child->column[key->column[i]].name);
    }
    return err == OK ? buf_append_byte(sql, ')') : err;
}

/* Keys are numbered from the one declared last, as foreign_key_list does. */
static const ForeignKeyDef *
key_number(const TableDef *child, u32 number)
{
    return &child->foreign_key[child->foreign_key_count - 1 - number];
}

static Err
put_query(PragmaCall *call, const CatalogView *view, const TableDef *child, Buf *sql)
{
    const char *rowid = rowid_name(child);
    Arena arena;
    arena_init(&arena, NULL);
    Err err = buf_printf(sql, "SELECT %s%s", rowid == NULL ? "" : "c.",
                         rowid == NULL ? "NULL" : rowid);
    for (u32 i = 0; err == OK && i < child->foreign_key_count; i++) {
        const ForeignKeyDef *key = key_number(child, i);
        const TableDef *parent = catalog_view_table(
            view, SLICE(child->schema, strlen(child->schema)),
            SLICE(key->parent_table, strlen(key->parent_table)), NULL);
        u16 *columns = ARENA_NEW_ARRAY(&arena, u16, (u32)key->column_count * 2);
        if (columns == NULL) {
            err = ERR_NOMEM;
        } else if (parent != NULL &&
                   !plan_foreign_parent(parent, key, columns, columns + key->column_count)) {
            err = session_set_error(call->session, ERR_SQL,
                                    "foreign key mismatch - \"%s\" referencing \"%s\"", child->name,
                                    key->parent_table);
        } else {
            err = put_key(sql, child, key, parent, columns + key->column_count);
        }
    }
    if (err == OK) err = buf_append_text(sql, " FROM ");
    if (err == OK) err = put_table(sql, child, " AS c NOT INDEXED");
    arena_free(&arena);
    return err;
}

static Err
report_row(PragmaCall *call, const TableDef *child, const Cell *row)
{
    Err err = OK;
    for (u32 i = 0; err == OK && i < child->foreign_key_count; i++) {
        if (cell_to_int(&row[i + 1]) == 0) continue;
        const Cell cells[4] = {text_cell(child->name), row[0],
                               text_cell(key_number(child, i)->parent_table), cell_int(i)};
        err = rows__add(call->stmt, cells);
    }
    return err;
}

static Err
run_query(PragmaCall *call, const Buf *sql, const TableDef *child)
{
    Session *session = call->session;
    Stmt *query = NULL;
    bool row = false;
    /* The program asked for the pragma, not for this query. */
    const SessionHooks host = session->host;
    session->host.authorize = NULL;
    Err err = stmt_prepare(session, buf_slice(sql), &query, NULL);
    if (err == OK) err = stmt_step(query, &row);
    while (err == OK && row) {
        err = report_row(call, child, stmt_row(query));
        if (err == OK) err = stmt_step(query, &row);
    }
    session->host = host;
    ErrMsg kept = {.sql_offset = -1};
    if (err != OK) err_move(&kept, &session->error);
    stmt_finalize(query);
    return err == OK ? OK : session__fail(session, err, &kept);
}

static Err
check_table(PragmaCall *call, const CatalogView *view, const TableDef *child)
{
    Buf sql = {0};
    if (child->foreign_key_count == 0) return OK;
    Err err = put_query(call, view, child, &sql);
    if (err == OK) {
        err = run_query(call, &sql, child);
    } else if (call->session->error.err == OK) {
        err = session__fail(call->session, err, NULL);
    }
    buf_free(&sql);
    return err;
}

Err
pragma__foreign_key_check(PragmaCall *call)
{
    Session *session = call->session;
    CatalogView view;
    Err err = OK;
    session__catalog_view(session, &view);
    Slice schema = call->ast->schema.text;
    if (call->has_value) {
        const TableDef *child = catalog_view_table(&view, schema, call->value, NULL);
        if (child != NULL) return check_table(call, &view, child);
        return session_set_error(session, ERR_SQL, "no such table: %.*s%s%.*s", (int)schema.bytes,
                                 (const char *)schema.p, schema.bytes > 0 ? "." : "",
                                 (int)call->value.bytes, (const char *)call->value.p);
    }
    for (u32 d = 0; d < view.count && err == OK; d++) {
        const Catalog *catalog = view.db[d].catalog;
        if (catalog == NULL || (schema.bytes > 0 && d != pragma__database(call))) continue;
        for (u32 i = 0; err == OK && i < catalog_table_count(catalog); i++)
            err = check_table(call, &view, catalog_table_at(catalog, i));
    }
    return err;
}
