/*
 * analyze.c -- ANALYZE: sqlite_stat1 holds, for each index, the number of its rows and how many of
 * them share a key's first column, its first two columns, and so on, on average.
 *
 * The numbers come from ordinary queries inside the statement's transaction.
 */
#include "session/ddl__impl.h"

static Slice
text_slice(const char *text)
{
    return SLICE(text, strlen(text));
}

/* Run what `sql` holds.  `err` is that of its building. */
static Err
run_buffer(Ddl *ddl, Buf *sql, Err err)
{
    if (err == OK) err = buf_append_byte(sql, 0);
    err = err == OK ? ddl__run(ddl, (const char *)sql->p) : ddl__fail(ddl, err);
    buf_free(sql);
    return err;
}

/* Make sqlite_stat1 if it is missing. */
static Err
ensure_table(Ddl *ddl)
{
    Catalog *catalog;
    if (catalog_find_table(ddl->context.old, SLICE_LITERAL("sqlite_stat1")) != NULL) return OK;
    Err err = ddl_create_stat_table(&ddl->context, &catalog);
    if (err != OK) return ddl__fail(ddl, err);
    ddl__done(ddl, catalog);
    return OK;
}

/* Forget the rows whose column `column` (NULL: all rows) is `value`. */
static Err
forget(Ddl *ddl, const char *schema, const char *column, const char *value)
{
    Buf sql = {0};
    Err err = buf_append_text(&sql, "DELETE FROM ");
    if (err == OK) err = sql_name_append(&sql, text_slice(schema), true);
    if (err == OK) err = buf_append_text(&sql, ".sqlite_stat1");
    if (column != NULL) {
        if (err == OK) err = buf_printf(&sql, " WHERE %s=", column);
        if (err == OK) err = sql_string_append(&sql, text_slice(value));
    }
    return run_buffer(ddl, &sql, err);
}

Err
ddl__forget_statistics(Ddl *ddl, const char *column, const char *value)
{
    if (catalog_find_table(ddl->context.old, SLICE_LITERAL("sqlite_stat1")) == NULL) return OK;
    return forget(ddl, ddl->session->db[ddl->database].name, column, value);
}

static Err
append_from(Buf *sql, const TableDef *table, const IndexDef *index)
{
    Err err = buf_append_text(sql, " FROM ");
    if (err == OK) err = sql_name_append(sql, text_slice(table->schema), true);
    if (err == OK) err = buf_append_byte(sql, '.');
    if (err == OK) err = sql_name_append(sql, text_slice(table->name), true);
    if (err == OK && index != NULL && index->where_sql != NULL) {
        err = buf_printf(sql, " WHERE (%s)", index->where_sql);
    }
    return err;
}

static Err
append_key(Buf *sql, const TableDef *table, const IndexColumn *column)
{
    Err err;
    if (column->column == COLUMN_EXPR) {
        err = buf_printf(sql, "(%s)", column->expr_sql);
    } else if (column->column == COLUMN_ROWID) {
        err = buf_append_text(sql, "rowid");
    } else {
        err = sql_name_append(sql, text_slice(table->column[column->column].name), true);
    }
    if (err != OK || column->collation == NULL) return err;
    err = buf_append_text(sql, " COLLATE ");
    return err == OK ? sql_name_append(sql, text_slice(column->collation->name), true) : err;
}

/* "(SELECT max(1, count(*)) FROM (SELECT DISTINCT <first `keys` columns> ...)) AS d<keys>" */
static Err
append_distinct(Buf *sql, const TableDef *table, const IndexDef *index, u32 keys)
{
    Err err = buf_append_text(sql, ", (SELECT max(1, count(*)) FROM (SELECT DISTINCT ");
    for (u32 i = 0; err == OK && i < keys; i++) {
        if (i > 0) err = buf_append_text(sql, ", ");
        if (err == OK) err = append_key(sql, table, &index->column[i]);
    }
    if (err == OK) err = append_from(sql, table, index);
    return err == OK ? buf_printf(sql, ")) AS d%u", keys) : err;
}

/*
 * The average is rounded up, but for one that is barely above 1.  A whole index without
 * rows gets no row here, a partial one gets zeros.
 */
static Err
analyze_index(Ddl *ddl, const TableDef *table, const IndexDef *index, const char *name)
{
    Buf sql = {0};
    Err err = buf_append_text(&sql, "INSERT INTO ");
    if (err == OK) err = sql_name_append(&sql, text_slice(table->schema), true);
    if (err == OK) err = buf_append_text(&sql, ".sqlite_stat1 SELECT ");
    if (err == OK) err = sql_string_append(&sql, text_slice(table->name));
    if (err == OK) err = buf_append_text(&sql, ", ");
    if (err == OK) err = sql_string_append(&sql, text_slice(name));
    if (err == OK) err = buf_append_text(&sql, ", n");
    for (u32 i = 1; err == OK && i <= index->key_columns; i++) {
        err = buf_printf(&sql, " || ' ' || ((n+d%u-1)/d%u - ((n+d%u-1)/d%u=2 AND n*10<=d%u*11))", i,
                         i, i, i, i);
    }
    if (err == OK) err = buf_append_text(&sql, " FROM (SELECT (SELECT count(*)");
    if (err == OK) err = append_from(&sql, table, index);
    if (err == OK) err = buf_append_text(&sql, ") AS n");
    for (u32 i = 1; err == OK && i <= index->key_columns; i++)
        err = append_distinct(&sql, table, index, i);
    if (err == OK) err = buf_append_byte(&sql, ')');
    if (err == OK && index->where_sql == NULL) err = buf_append_text(&sql, " WHERE n>0");
    return run_buffer(ddl, &sql, err);
}

/* The row that speaks of the table itself: only if no whole index does. */
static Err
count_table(Ddl *ddl, const TableDef *table)
{
    Buf sql = {0};
    Err err = buf_append_text(&sql, "INSERT INTO ");
    if (err == OK) err = sql_name_append(&sql, text_slice(table->schema), true);
    if (err == OK) err = buf_append_text(&sql, ".sqlite_stat1 SELECT ");
    if (err == OK) err = sql_string_append(&sql, text_slice(table->name));
    if (err == OK) err = buf_append_text(&sql, ", NULL, n || '' FROM (SELECT count(*) AS n");
    if (err == OK) err = append_from(&sql, table, NULL);
    if (err == OK) err = buf_append_text(&sql, ") WHERE n>0");
    return run_buffer(ddl, &sql, err);
}

/* Indexes of the table, or `only` that one. */
static Err
analyze_table(Ddl *ddl, const TableDef *table, const IndexDef *only)
{
    if (table->is_view || table->is_virtual || table->is_system) return OK;
    bool whole = false;
    Err err = OK;
    for (u32 i = 0; err == OK && i < table->index_count; i++) {
        const IndexDef *index = table->index[i];
        if (index == table->primary_key || (only != NULL && index != only)) continue;
        whole = whole || index->where_sql == NULL;
        err = analyze_index(ddl, table, index, index->name);
    }
    const IndexDef *key = table->without_rowid ? table->primary_key : NULL;
    if (err == OK && key != NULL && (only == NULL || only == key)) {
        whole = true;
        err = analyze_index(ddl, table, key, table->name);
    }
    if (err == OK && only == NULL && !whole) err = count_table(ddl, table);
    return err;
}

/* From here on plans weigh by what was found out. */
static Err
use_statistics(Ddl *ddl)
{
    Catalog *catalog;
    Err err = ddl_read_statistics(&ddl->context, &catalog);
    if (err != OK) return ddl__fail(ddl, err);
    ddl__done(ddl, catalog);
    return OK;
}

static Err
analyze_database(Ddl *ddl, u32 database)
{
    Err err = ddl__context(ddl, database);
    if (err == OK) err = ensure_table(ddl);
    if (err == OK) err = forget(ddl, ddl->session->db[database].name, NULL, NULL);
    const Catalog *catalog = ddl->context.old;
    for (u32 i = 0; err == OK && i < catalog_table_count(catalog); i++)
        err = analyze_table(ddl, catalog_table_at(catalog, i), NULL);
    return err == OK ? use_statistics(ddl) : err;
}

static Err
analyze_object(Ddl *ddl, const AstObject *ast, const CatalogView *view)
{
    Slice schema = ast->schema.text, name = ast->name.text;
    if (ast_name_present(&ast->schema) && catalog_view_database(view, schema) < 0) {
        return session_set_error(ddl->session, ERR_SQL, "unknown database %.*s", (int)schema.bytes,
                                 (const char *)schema.p);
    }
    const IndexDef *index = catalog_view_index(view, schema, name, NULL);
    const TableDef *table = catalog_view_table(view, schema, name, NULL);
    if (index == NULL && table == NULL) {
        const char *dot = ast_name_present(&ast->schema) ? "." : "";
        return session_set_error(ddl->session, ERR_SQL, "no such table: %.*s%s%.*s",
                                 (int)schema.bytes, (const char *)schema.p, dot, (int)name.bytes,
                                 (const char *)name.p);
    }
    bool is_index = index != NULL;
    Err err = ddl__context(ddl, is_index ? index->table->database : table->database);
    if (err == OK) err = ensure_table(ddl);
    if (err != OK) return err;
    index = is_index ? catalog_find_index(ddl->context.old, name) : NULL;
    table = is_index ? NULL : catalog_find_table(ddl->context.old, name);
    if (index != NULL) table = index->table;
    if (table == NULL) return ddl__fail(ddl, ERR_SCHEMA);
    if (index != NULL) {
        err = forget(ddl, table->schema, "idx", index->name);
    } else {
        err = forget(ddl, table->schema, "tbl", table->name);
    }
    if (err == OK) err = analyze_table(ddl, table, index);
    return err == OK ? use_statistics(ddl) : err;
}

Err
ddl__analyze(Ddl *ddl, const AstObject *ast)
{
    CatalogView view;
    Session *session = ddl->session;
    session__catalog_view(session, &view);
    if (ast_name_present(&ast->name)) {
        i32 named = ast_name_present(&ast->schema) ? -1
                                                   : catalog_view_database(&view, ast->name.text);
        if (named >= 0 && session->db[named].catalog != NULL) {
            return analyze_database(ddl, (u32)named);
        }
        return analyze_object(ddl, ast, &view);
    }
    Err err = OK;
    for (u32 i = 0; err == OK && i < session->db_count; i++) {
        /* Tables of temp are not analyzed. */
        if (i != 1 && session->db[i].catalog != NULL) err = analyze_database(ddl, i);
    }
    return err;
}
