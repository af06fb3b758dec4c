/*
 * command.c -- statements that are not planned: transactions, schema changes, pragmas.
 *
 * A schema change runs as a statement of its own inside the session's transaction: it takes the
 * schema lock of the table exclusively (so that writers of the table are waited for, and meet a new
 * schema afterwards), changes rows and trees through catalog's ddl_ functions, and leaves the
 * catalog after the change with the session until the transaction ends.
 */
#include "exec/index_build.h"
#include "session/ddl__impl.h"
#include "session/virtual__impl.h"

#define DDL_RESTARTS_MAX 200u

Err
rows__add(Stmt *stmt, const Cell *cells)
{
    RowList *rows = &stmt->rows;
    if (rows->rows == rows->capacity) {
        u32 capacity = rows->capacity * 2 + 16;
        Cell *list = ARENA_NEW_ARRAY(&stmt->run, Cell, (size_t)capacity * rows->columns);
        if (list == NULL) return session__fail(stmt->session, ERR_NOMEM, NULL);
        size_t used = (size_t)rows->rows * rows->columns;
        if (used > 0) memcpy(list, rows->cell, sizeof(Cell) * used);
        rows->cell = list;
        rows->capacity = capacity;
    }
    Cell *to = rows->cell + (size_t)rows->rows * rows->columns;
    for (u32 i = 0; i < rows->columns; i++) {
        Err err = cell_copy(&cells[i], &stmt->run, &to[i]);
        if (err != OK) return session__fail(stmt->session, err, NULL);
    }
    rows->rows++;
    return OK;
}

/* ---- schema changes: common steps ---- */

static Err
ddl_database(Session *session, const AstName *schema, bool temp, u32 *database_out)
{
    *database_out = 0;
    if (temp) {
        if (ast_name_present(schema) && !slice_equal_nocase(schema->text, SLICE_LITERAL("temp"))) {
            return session_set_error(session, ERR_SQL, "temporary table name must be unqualified");
        }
        *database_out = 1;
    } else if (ast_name_present(schema)) {
        CatalogView view;
        session__catalog_view(session, &view);
        i32 at = catalog_view_database(&view, schema->text);
        if (at < 0) {
            return session__unknown_database(session, schema);
        }
        *database_out = (u32)at;
    }
    if (*database_out != 1) return OK;
    Err err = session__open_temp(session);
    if (err == OK) err = session__ensure_txn(session);
    return err == OK ? session__refresh_catalogs(session) : err;
}

/* Set up the change of one database; in single mode this takes its token, which may mean a fresh
   snapshot and so another catalog: look names up afterwards. */
Err
ddl__context(Ddl *ddl, u32 database)
{
    SessionDb *db = &ddl->session->db[database];
    Err err = session__ensure_token(ddl->session, (i32)database);
    if (err == OK) err = session__refresh_catalogs(ddl->session);
    if (err != OK) return err;
    ddl->database = database;
    db->env.find_collation = ddl->session->find_collation;
    db->env.arg = ddl->session->collation_arg;
    ddl->context = (DdlContext){
        .txn = db->txn,
        .env = &db->env,
        .old = db->catalog,
        .sql = SLICE(ddl->stmt->sql, ddl->stmt->sql_bytes),
        .reserved_names = ddl->session->reserved_names,
        .foreign_keys = ddl->session->foreign_keys,
        .msg = &ddl->msg,
    };
    return OK;
}

Err
ddl__fail(Ddl *ddl, Err err)
{
    return session__fail(ddl->session, err, &ddl->msg);
}

/* Keep writers of the table out, and make those that come later notice. */
Err
ddl__lock(Ddl *ddl, const TableDef *table)
{
    Session *session = ddl->session;
    StoreTxn *txn = session->db[ddl->database].txn;
    if (session__single(session) || ddl->database == 1) return OK;
    Err err = store_txn_lock_schema(txn, table->schema_lock_no, true);
    if (err != OK) return session__store_error(session, ddl->database, err);
    u8 key[16], version[8];
    StoreVerdict verdict;
    memcpy(key, "table:", 6);
    store_be32(key + 6, table->tree);
    store_u64(version, catalog_get_version(ddl->context.old) + 1);
    err = store_put(txn, TREE_ROOT, SLICE(key, 10), SLICE(version, 8), STORE_PUT_ANY, &verdict);
    return err == OK ? OK : session__store_error(session, ddl->database, err);
}

/* The change is made: `catalog` is what the session sees from now on. */
void
ddl__done(Ddl *ddl, Catalog *catalog)
{
    session__set_own_catalog(ddl->session, ddl->database, catalog);
    ddl->context.old = catalog;
}

/* ---- CREATE TABLE ---- */

static Err
check_expr(Ddl *ddl, const PlanContext *context, const TableDef *table, const char *sql,
           PlanExprUse use)
{
    if (sql == NULL) return OK;
    Arena arena;
    PlanExpr *expr;
    arena_init(&arena, NULL);
    Err err = plan_bind_table_expr(context, &arena, table, SLICE(sql, strlen(sql)), use, &expr,
                                   &ddl->msg);
    arena_free(&arena);
    return err;
}

/* Are strings in double quotes refused in definitions?  Not under PRAGMA writable_schema. */
static bool
strings_off(const Session *session)
{
    return session->strings_off_ddl && !session->reserved_names;
}

/* The message stays in ddl->msg. */
Err
ddl__check_unnamed_table(void *arg, const TableDef *table)
{
    Ddl *ddl = arg;
    CatalogView view;
    PlanContext context;
    session__catalog_view(ddl->session, &view);
    session__plan_context(ddl->session, &view, &context);
    context.strings_double_off = strings_off(ddl->session);
    Err err = OK;
    for (u32 i = 0; err == OK && i < table->column_count; i++) {
        const ColumnDef *column = &table->column[i];
        err = check_expr(ddl, &context, table, column->default_expr, PLAN_USE_DEFAULT);
        if (err == OK) {
            err = check_expr(ddl, &context, table, column->generated_sql, PLAN_USE_GENERATED);
        }
    }
    for (u32 i = 0; err == OK && i < table->check_count; i++)
        err = check_expr(ddl, &context, table, table->check[i].sql, PLAN_USE_CHECK);
    return err;
}

/* Expressions of the new table must mean something. */
Err
ddl__check_table(Ddl *ddl, const TableDef *table)
{
    Err err = ddl__check_unnamed_table(ddl, table);
    return err == OK ? OK : ddl__fail(ddl, err);
}

/* For DdlContext.check_index. */
Err
ddl__check_index(void *arg, const TableDef *table, const IndexDef *index)
{
    Ddl *ddl = arg;
    CatalogView view;
    PlanContext context;
    session__catalog_view(ddl->session, &view);
    session__plan_context(ddl->session, &view, &context);
    Err err = check_expr(ddl, &context, table, index->where_sql, PLAN_USE_PARTIAL);
    for (u32 i = 0; err == OK && i < index->key_columns; i++) {
        err = check_expr(ddl, &context, table, index->column[i].expr_sql, PLAN_USE_INDEX);
    }
    return err;
}

/* Run a statement inside the change; *row_out: it gave a row. */
Err
ddl__run_counted(Ddl *ddl, const char *sql, bool *row_out)
{
    Session *session = ddl->session;
    AstStatement *ast;
    size_t consumed;
    Plan *plan = NULL;
    Exec *exec = NULL;
    CatalogView view;
    PlanContext context;
    Arena arena;
    arena_init(&arena, NULL);
    session__catalog_view(session, &view);
    session__plan_context(session, &view, &context);
    context.triggers_off = true; /* What DDL does by itself fires none, as in SQLite. */
    context.foreign_lenient = true;
    session->exec_env.deferred_open = session->deferred_violations;
    Slice text = SLICE(sql, strlen(sql));
    Err err = sql_parse(&arena, text, NULL, &ast, &consumed, &ddl->msg);
    if (err == OK) err = plan_prepare(&context, ast, text, &plan, &ddl->msg);
    if (err == OK) err = exec_open(plan, &session->exec_env, &exec, &ddl->msg);
    if (err == OK) err = exec_start(exec, session->txn, ddl->stmt->param, ddl->stmt->param_count);
    bool row = err == OK;
    *row_out = false;
    while (err == OK && row) {
        err = exec_step(exec, &row);
        *row_out = *row_out || row;
    }
    if (err == OK) session->deferred_violations += exec_deferred_violations(exec);
    if (err != OK && exec != NULL && ddl->msg.err == OK) {
        err_set(&ddl->msg, err, "%s", err_message(exec_error(exec)));
    }
    exec_close(exec);
    plan_release(plan);
    arena_free(&arena);
    return err == OK ? OK : ddl__fail(ddl, err);
}

Err
ddl__run(Ddl *ddl, const char *sql)
{
    bool row;
    return ddl__run_counted(ddl, sql, &row);
}

/* Plan the SELECT of CREATE TABLE AS for the names and types of its columns. */
static Err
plan_select(Ddl *ddl, const AstCreateTable *ast, Plan **plan_out)
{
    CatalogView view;
    PlanContext context;
    session__catalog_view(ddl->session, &view);
    session__plan_context(ddl->session, &view, &context);
    AstStatement select = {
        .kind = AST_STMT_SELECT,
        .text = ddl->context.sql,
        .span = ast->as_select->span,
        .param_count = ddl->stmt->ast->param_count,
        .param_names = ddl->stmt->ast->param_names,
        .u.select = ast->as_select,
    };
    Err err = plan_prepare(&context, &select, ddl->context.sql, plan_out, &ddl->msg);
    return err == OK ? OK : ddl__fail(ddl, err);
}

static const char *
affinity_type(Affinity affinity)
{
    switch (affinity) {
    case AFFINITY_TEXT: return "TEXT";
    case AFFINITY_NUMERIC: return "NUM";
    case AFFINITY_INTEGER: return "INT";
    case AFFINITY_REAL: return "REAL";
    case AFFINITY_NONE:
    case AFFINITY_BLOB: return NULL;
    }
    UNREACHABLE();
}

/* Column names must differ: a repeated one gets ":1", ":2"... */
static Err
distinct_names(Arena *arena, const Plan *plan, const char **name)
{
    for (u32 i = 0; i < plan->column_count; i++) {
        name[i] = plan->column[i].name;
        for (u32 k = 0, n = 0; k < i; k++) {
            if (text_compare_nocase(name[k], name[i]) != 0) continue;
            name[i] = arena_printf(arena, "%s:%u", plan->column[i].name, ++n);
            if (name[i] == NULL) return ERR_NOMEM;
            k = U32_MAX; /* From the start: the new name may be taken too. */
        }
    }
    return OK;
}

static Err
create_table_as(Ddl *ddl, const AstCreateTable *ast)
{
    Plan *plan = NULL;
    Catalog *catalog = NULL;
    Arena arena;
    arena_init(&arena, NULL);
    Err err = plan_select(ddl, ast, &plan);
    if (err != OK) goto done;
    const char **name = ARENA_NEW_ARRAY(&arena, const char *, plan->column_count + 1);
    const char **type = ARENA_NEW_ARRAY(&arena, const char *, plan->column_count + 1);
    if (name == NULL || type == NULL) {
        err = ddl__fail(ddl, ERR_NOMEM);
        goto done;
    }
    err = distinct_names(&arena, plan, name);
    if (err != OK) goto done;
    for (u32 i = 0; i < plan->column_count; i++) {
        const char *declared = plan->column[i].decl_type;
        Affinity affinity = AFFINITY_BLOB;
        if (declared != NULL) affinity = affinity_of_type(SLICE(declared, strlen(declared)));
        type[i] = affinity_type(affinity);
    }
    err = ddl_create_table_as(&ddl->context, ast, plan->column_count, name, type, &catalog);
    if (err != OK) {
        err = ddl__fail(ddl, err);
        goto done;
    }
    ddl__done(ddl, catalog);
    Buf sql = {0};
    err = buf_printf(&sql, "INSERT INTO %s.", ddl->session->db[ddl->database].name);
    if (err == OK) err = sql_name_append(&sql, ast->name.text, true);
    if (err == OK) err = buf_append_byte(&sql, ' ');
    Slice select = span_slice(ddl->context.sql, ast->as_select->span);
    if (err == OK) err = buf_append(&sql, select.p, select.bytes);
    if (err == OK) err = buf_append_byte(&sql, 0);
    err = err == OK ? ddl__run(ddl, (const char *)sql.p) : ddl__fail(ddl, err);
    buf_free(&sql);

done:
    plan_release(plan);
    arena_free(&arena);
    return err;
}

static bool
exists_already(Ddl *ddl, const AstName *name)
{
    return catalog_find_table(ddl->context.old, name->text) != NULL;
}

static Err
create_table(Ddl *ddl, const AstCreateTable *ast)
{
    u32 database;
    Err err = ddl_database(ddl->session, &ast->schema, ast->temp, &database);
    if (err == OK) err = ddl__context(ddl, database);
    if (err != OK) return err;
    if (ast->if_not_exists && exists_already(ddl, &ast->name)) return OK;
    if (ast->as_select != NULL) return create_table_as(ddl, ast);
    Catalog *catalog;
    err = ddl_check_collations(&ddl->context, ddl->stmt->ast);
    if (err != OK) return ddl__fail(ddl, err);
    err = ddl_create_table(&ddl->context, ast, &catalog);
    if (err != OK) return ddl__fail(ddl, err);
    ddl__done(ddl, catalog);
    return ddl__check_table(ddl, catalog_find_table(catalog, ast->name.text));
}

static Err
create_virtual(Ddl *ddl, const AstCreateVirtual *ast)
{
    u32 database;
    Err err = ddl_database(ddl->session, &ast->schema, false, &database);
    if (err == OK) err = ddl__context(ddl, database);
    if (err != OK) return err;
    if (ast->if_not_exists && exists_already(ddl, &ast->name)) return OK;
    Catalog *catalog;
    err = ddl_create_virtual(&ddl->context, ast, &catalog);
    if (err != OK) return ddl__fail(ddl, err);
    ddl__done(ddl, catalog);
    /* The constructor may make tables of its own: the catalog at hand may go. */
    err = virtual__create(ddl->session, catalog_find_table(catalog, ast->name.text), &ddl->msg);
    ddl->context.old = ddl->session->db[database].catalog;
    return err == OK ? OK : ddl__fail(ddl, err);
}

/* ---- CREATE INDEX, VIEW, TRIGGER ---- */

/* The index lives where its table does. */
static Err
index_database(Ddl *ddl, const AstCreateIndex *ast, u32 *database_out)
{
    if (ast_name_present(&ast->schema)) {
        return ddl_database(ddl->session, &ast->schema, false, database_out);
    }
    CatalogView view;
    session__catalog_view(ddl->session, &view);
    const TableDef *table = catalog_view_table(&view, SLICE_NONE, ast->table.text, NULL);
    *database_out = table == NULL ? 0 : table->database;
    return OK;
}

static Err
fill_index(Ddl *ddl, const IndexDef *index, bool is_new)
{
    Session *session = ddl->session;
    CatalogView view;
    PlanContext context;
    Plan *plan;
    session__catalog_view(session, &view);
    session__plan_context(session, &view, &context);
    /* What is declared already may have strings in double quotes. */
    if (is_new) context.strings_double_off = strings_off(session);
    Err err = plan_index_build(&context, index->table, index, &plan, &ddl->msg);
    if (err != OK) return ddl__fail(ddl, err);
    err = exec_index_build(plan, index, &session->exec_env, session->txn, &ddl->msg);
    plan_release(plan);
    return err == OK ? OK : ddl__fail(ddl, err);
}

static Err
create_index(Ddl *ddl, const AstCreateIndex *ast)
{
    u32 database;
    Err err = index_database(ddl, ast, &database);
    if (err == OK) err = ddl__context(ddl, database);
    if (err != OK) return err;
    if (ast->if_not_exists && catalog_find_index(ddl->context.old, ast->name.text) != NULL) {
        return OK;
    }
    const TableDef *table = catalog_find_table(ddl->context.old, ast->table.text);
    if (table != NULL && !table->is_view && !table->is_system) {
        err = ddl__lock(ddl, table);
        if (err != OK) return err;
    }
    Catalog *catalog;
    const IndexDef *index;
    err = ddl_check_collations(&ddl->context, ddl->stmt->ast);
    if (err != OK) return ddl__fail(ddl, err);
    err = ddl_create_index(&ddl->context, ast, &catalog, &index);
    if (err != OK) return ddl__fail(ddl, err);
    ddl__done(ddl, catalog);
    return fill_index(ddl, index, true);
}

static Err
create_view(Ddl *ddl, const AstCreateView *ast)
{
    u32 database;
    Err err = ddl_database(ddl->session, &ast->schema, ast->temp, &database);
    if (err == OK) err = ddl__context(ddl, database);
    if (err != OK) return err;
    if (ast->if_not_exists && exists_already(ddl, &ast->name)) return OK;
    Catalog *catalog;
    err = ddl_create_view(&ddl->context, ast, &catalog);
    if (err != OK) return ddl__fail(ddl, err);
    ddl__done(ddl, catalog);
    return OK;
}

/* Where the trigger is kept, and the table it stands on: what is not temporary speaks of its own
   database alone. */
static Err
trigger_place(Ddl *ddl, const AstCreateTrigger *ast, u32 *database_out, const TableDef **table_out)
{
    Session *session = ddl->session;
    CatalogView view;
    Slice schema = ast->table_schema.text, name = ast->table.text;
    *database_out = 0;
    *table_out = NULL;
    if (ast->temp && ast_name_present(&ast->schema)) {
        return session_set_error(session, ERR_SQL, "temporary trigger may not have qualified name");
    }
    session__catalog_view(session, &view);
    /* Without a name of its own it is main's, or temp's if the table is. */
    bool told = ast->temp || ast_name_present(&ast->schema);
    *table_out = told ? NULL : catalog_view_table(&view, schema, name, NULL);
    if (*table_out != NULL && (*table_out)->database == 1) *database_out = 1;
    Err err = told ? ddl_database(session, &ast->schema, ast->temp, database_out) : OK;
    if (err != OK) return err;
    session__catalog_view(session, &view);
    const char *own = view.db[*database_out].name;
    if (*database_out != 1 && schema.p == NULL) schema = SLICE(own, strlen(own));
    *table_out = catalog_view_table(&view, schema, name, NULL);
    if (*database_out == 1 || slice_equal_nocase(schema, SLICE(own, strlen(own)))) {
        return OK;
    }
    Slice trigger = span_slice(ddl->context.sql, ast->name.span);
    return session_set_error(
        session, ERR_SQL, "trigger %.*s cannot reference objects in database %.*s",
        (int)trigger.bytes, (const char *)trigger.p, (int)schema.bytes, (const char *)schema.p);
}

static Err
create_trigger(Ddl *ddl, const AstCreateTrigger *ast)
{
    u32 database;
    const TableDef *table;
    ddl->context.sql = SLICE(ddl->stmt->sql, ddl->stmt->sql_bytes);
    Err err = trigger_place(ddl, ast, &database, &table);
    if (err == OK) err = ddl__context(ddl, database);
    /* Taking the token may have moved the snapshot. */
    if (err == OK) err = trigger_place(ddl, ast, &database, &table);
    if (err != OK) return err;
    if (ast->if_not_exists && catalog_find_trigger(ddl->context.old, ast->name.text) != NULL) {
        return OK;
    }
    if (table != NULL && !table->is_view && table->database == database)
        err = ddl__lock(ddl, table);
    Catalog *catalog;
    if (err != OK) return err;
    if (ddl->stmt->param_count > 0)
        return session_set_error(ddl->session, ERR_SQL, "trigger cannot use variables");
    err = ddl_create_trigger(&ddl->context, ast, table, &catalog);
    if (err != OK) return ddl__fail(ddl, err);
    ddl__done(ddl, catalog);
    return OK;
}

/* ---- DROP ---- */

static Err
no_such(Session *session, const char *what, const AstDrop *ast)
{
    Slice schema = ast->schema.text, name = ast->name.text;
    if (schema.p != NULL) {
        return session_set_error(session, ERR_SQL, "no such %s: %.*s.%.*s", what, (int)schema.bytes,
                                 (const char *)schema.p, (int)name.bytes, (const char *)name.p);
    }
    return session_set_error(session, ERR_SQL, "no such %s: %.*s", what, (int)name.bytes,
                             (const char *)name.p);
}

/* Does a foreign key of some table refer to this one? */
static bool
is_parent(const Catalog *catalog, const TableDef *table)
{
    for (u32 i = 0; i < catalog_table_count(catalog); i++) {
        const TableDef *child = catalog_table_at(catalog, i);
        for (u32 k = 0; k < child->foreign_key_count; k++) {
            if (text_compare_nocase(child->foreign_key[k].parent_table, table->name) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* May rows of this table stand for open violations of its own keys? */
static bool
is_deferred_child(const Session *session, const TableDef *table)
{
    if (table->foreign_key_count > 0 && session->defer_foreign_keys) return true;
    for (u32 k = 0; k < table->foreign_key_count; k++) {
        if (table->foreign_key[k].deferred) return true;
    }
    return false;
}

/* The rows of a parent go as by DELETE, with what that does to their children; those of a child
   take the violations with them that are still open. */
static Err
delete_as_row(Ddl *ddl, const TableDef *table)
{
    if (!ddl->session->foreign_keys || table->is_view) return OK;
    if (!is_parent(ddl->context.old, table) && !is_deferred_child(ddl->session, table)) return OK;
    Buf sql = {0};
    Err err = buf_printf(&sql, "DELETE FROM %s.", table->schema);
    if (err == OK) err = sql_name_append(&sql, SLICE(table->name, strlen(table->name)), true);
    if (err == OK) err = buf_append_byte(&sql, 0);
    err = err == OK ? ddl__run(ddl, (const char *)sql.p) : ddl__fail(ddl, err);
    buf_free(&sql);
    return err;
}

/* The module drops what it has made; then the row goes. */
static Err
drop_virtual(Ddl *ddl, const TableDef *table)
{
    Session *session = ddl->session;
    Catalog *held = catalog_retain(ddl->context.old);
    Err err = virtual__drop(session, table, &ddl->msg);
    if (err == OK) {
        ddl->context.old = session->db[ddl->database].catalog;
        if (ddl->context.old == NULL) err = session__refresh_catalogs(session);
        ddl->context.old = session->db[ddl->database].catalog;
    }
    Catalog *catalog = NULL;
    if (err == OK) {
        const TableDef *now = catalog_find_table(ddl->context.old,
                                                 SLICE(table->name, strlen(table->name)));
        err = now == NULL ? OK : ddl_drop_table(&ddl->context, now, &catalog);
    }
    catalog_release(held);
    if (err != OK) return ddl__fail(ddl, err);
    if (catalog != NULL) ddl__done(ddl, catalog);
    return OK;
}

static Err
drop_table(Ddl *ddl, const AstDrop *ast, bool wants_view)
{
    Session *session = ddl->session;
    CatalogView view;
    session__catalog_view(session, &view);
    const TableDef *table = catalog_view_table(&view, ast->schema.text, ast->name.text, NULL);
    if (table == NULL) {
        return ast->if_exists ? OK : no_such(session, wants_view ? "view" : "table", ast);
    }
    if (table->is_view != wants_view) {
        return session_set_error(session, ERR_SQL,
                                 wants_view ? "use DROP TABLE to delete table %s"
                                            : "use DROP VIEW to delete view %s",
                                 table->name);
    }
    Err err = ddl__context(ddl, table->database);
    if (err != OK) return err;
    table = catalog_find_table(ddl->context.old, ast->name.text);
    if (table == NULL) return session_set_error(session, ERR_SCHEMA, "%s", err_text(ERR_SCHEMA));
    if (table->is_virtual) return drop_virtual(ddl, table);
    err = table->is_view ? OK : ddl__lock(ddl, table);
    if (err != OK) return err;
    if (table->autoincrement) {
        Buf sql = {0};
        err = buf_printf(&sql, "DELETE FROM %s.sqlite_sequence WHERE name=", table->schema);
        if (err == OK) err = sql_string_append(&sql, SLICE(table->name, strlen(table->name)));
        if (err == OK) err = buf_append_byte(&sql, 0);
        err = err == OK ? ddl__run(ddl, (const char *)sql.p) : ddl__fail(ddl, err);
        buf_free(&sql);
        if (err != OK) return err;
    }
    if (strncmp(table->name, "sqlite_stat", 11) != 0) {
        err = ddl__forget_statistics(ddl, "tbl", table->name);
        if (err != OK) return err;
    }
    err = delete_as_row(ddl, table);
    if (err == OK) err = ddl__drop_loose_triggers(ddl, table);
    if (err != OK) return err;
    Catalog *catalog;
    err = ddl_drop_table(&ddl->context, table, &catalog);
    if (err != OK) return ddl__fail(ddl, err);
    ddl__done(ddl, catalog);
    return OK;
}

static Err
drop_index(Ddl *ddl, const AstDrop *ast)
{
    CatalogView view;
    session__catalog_view(ddl->session, &view);
    const IndexDef *index = catalog_view_index(&view, ast->schema.text, ast->name.text, NULL);
    if (index == NULL) return ast->if_exists ? OK : no_such(ddl->session, "index", ast);
    Err err = ddl__context(ddl, index->table->database);
    if (err != OK) return err;
    index = catalog_find_index(ddl->context.old, ast->name.text);
    if (index == NULL) {
        return session_set_error(ddl->session, ERR_SCHEMA, "%s", err_text(ERR_SCHEMA));
    }
    err = ddl__lock(ddl, index->table);
    if (err != OK) return err;
    err = ddl__forget_statistics(ddl, "idx", index->name);
    if (err != OK) return err;
    Catalog *catalog;
    err = ddl_drop_index(&ddl->context, index, &catalog);
    if (err != OK) return ddl__fail(ddl, err);
    ddl__done(ddl, catalog);
    return OK;
}

static Err
drop_trigger(Ddl *ddl, const AstDrop *ast)
{
    CatalogView view;
    u32 database = 0;
    session__catalog_view(ddl->session, &view);
    const TriggerDef *trigger = NULL;
    if (!ast_name_present(&ast->schema) || catalog_view_database(&view, ast->schema.text) >= 0) {
        trigger = catalog_view_trigger(&view, ast->schema.text, ast->name.text, &database);
    }
    if (trigger == NULL) return ast->if_exists ? OK : no_such(ddl->session, "trigger", ast);
    Err err = ddl__context(ddl, database);
    if (err != OK) return err;
    trigger = catalog_find_trigger(ddl->context.old, ast->name.text);
    if (trigger == NULL) {
        return session_set_error(ddl->session, ERR_SCHEMA, "%s", err_text(ERR_SCHEMA));
    }
    const TableDef *table = catalog_find_table(ddl->context.old,
                                               SLICE(trigger->table, strlen(trigger->table)));
    bool is_loose = table == NULL || table->is_view ||
                    (database == 1 && trigger->table_schema != NULL &&
                     text_compare_nocase(trigger->table_schema, table->schema) != 0);
    err = is_loose ? OK : ddl__lock(ddl, table);
    if (err != OK) return err;
    Catalog *catalog;
    err = ddl_drop_trigger(&ddl->context, trigger, &catalog);
    if (err != OK) return ddl__fail(ddl, err);
    ddl__done(ddl, catalog);
    return OK;
}

/* ---- temporary triggers on tables of other databases ---- */

Err
ddl__temp(const Ddl *ddl, Ddl *temp_out, bool *any_out)
{
    Session *session = ddl->session;
    *temp_out = (Ddl){.session = session, .stmt = ddl->stmt, .msg = {.sql_offset = -1}};
    *any_out = ddl->database != 1 && session->db_count > 1 && session->db[1].database != NULL &&
               session->db[1].catalog != NULL && catalog_has_objects(session->db[1].catalog);
    return *any_out ? ddl__context(temp_out, 1) : OK;
}

static const TriggerDef *
loose_trigger_of(const Session *session, const TableDef *table)
{
    CatalogView view;
    const TriggerDef *const *list = NULL;
    session__catalog_view(session, &view);
    u32 count = catalog_loose_triggers(view.db[1].catalog, &list);
    for (u32 i = 0; i < count; i++) {
        if (catalog_loose_table(&view, list[i]) == table) return list[i];
    }
    return NULL;
}

Err
ddl__drop_loose_triggers(Ddl *ddl, const TableDef *table)
{
    Ddl temp;
    bool any;
    Err err = ddl__temp(ddl, &temp, &any);
    const TriggerDef *trigger;
    while (err == OK && any && (trigger = loose_trigger_of(ddl->session, table)) != NULL) {
        Catalog *catalog;
        err = ddl_drop_trigger(&temp.context, trigger, &catalog);
        if (err != OK) return ddl__fail(&temp, err);
        ddl__done(&temp, catalog);
    }
    return err;
}

/* ---- REINDEX ---- */

static Err
reindex_one(Ddl *ddl, const IndexDef *index)
{
    Session *session = ddl->session;
    u64 rows;
    Err err = store_tree_clear(session->db[ddl->database].txn, index->tree, &rows);
    if (err != OK) return session__store_error(session, ddl->database, err);
    return fill_index(ddl, index, false);
}

static bool
is_collation(const Session *session, Slice name)
{
    const Collation *const built_in[] = {&collation_binary, &collation_nocase, &collation_rtrim};
    for (u32 i = 0; i < COUNT_OF(built_in); i++) {
        const char *at = built_in[i]->name;
        if (slice_equal_nocase(name, SLICE(at, strlen(at)))) return true;
    }
    return session->find_collation != NULL &&
           session->find_collation(session->collation_arg, name) != NULL;
}

static bool
index_uses(const IndexDef *index, Slice collation)
{
    for (u32 i = 0; i < index->key_columns; i++) {
        const IndexColumn *column = &index->column[i];
        const char *name = column->host_collation;
        if (name == NULL && column->collation != NULL) name = column->collation->name;
        if (name != NULL && slice_equal_nocase(collation, SLICE(name, strlen(name)))) {
            return true;
        }
    }
    return false;
}

/* Indexes of one table; `collation` (p may be NULL) limits them to those that use it. */
static Err
reindex_table(Ddl *ddl, const TableDef *table, Slice collation)
{
    Err err = table->is_view ? OK : ddl__lock(ddl, table);
    for (u32 i = 0; err == OK && i < table->index_count; i++) {
        if (collation.p != NULL && !index_uses(table->index[i], collation)) continue;
        err = reindex_one(ddl, table->index[i]);
    }
    return err;
}

static Err
reindex_database(Ddl *ddl, u32 database, Slice collation)
{
    Err err = ddl__context(ddl, database);
    Catalog *catalog = ddl->session->db[database].catalog;
    for (u32 i = 0; err == OK && i < catalog_table_count(catalog); i++)
        err = reindex_table(ddl, catalog_table_at(catalog, i), collation);
    return err;
}

static Err
reindex(Ddl *ddl, const AstObject *ast)
{
    Session *session = ddl->session;
    CatalogView view;
    session__catalog_view(session, &view);
    Slice name = ast->name.text, schema = ast->schema.text;
    bool is_plain = !ast_name_present(&ast->schema);
    bool is_all = !ast_name_present(&ast->name);
    if (is_all || (is_plain && is_collation(session, name))) {
        Err err = OK;
        for (u32 i = 0; err == OK && i < session->db_count; i++) {
            if (session->db[i].catalog != NULL) {
                err = reindex_database(ddl, i, is_all ? SLICE_NONE : name);
            }
        }
        return err;
    }
    const TableDef *table = catalog_view_table(&view, schema, name, NULL);
    const IndexDef *index = catalog_view_index(&view, schema, name, NULL);
    if (table == NULL && index == NULL) {
        return session_set_error(session, ERR_SQL, "unable to identify the object to be reindexed");
    }
    Err err = ddl__context(ddl, table != NULL ? table->database : index->table->database);
    if (err != OK) return err;
    if (table != NULL) {
        table = catalog_find_table(ddl->context.old, name);
        return table == NULL ? OK : reindex_table(ddl, table, SLICE_NONE);
    }
    index = catalog_find_index(ddl->context.old, name);
    if (index == NULL) return OK;
    err = ddl__lock(ddl, index->table);
    return err == OK ? reindex_one(ddl, index) : err;
}

/* ---- running ---- */

static Err
ddl_dispatch(Ddl *ddl, const AstStatement *ast)
{
    switch (ast->kind) {
    case AST_STMT_CREATE_TABLE: return create_table(ddl, ast->u.create_table);
    case AST_STMT_CREATE_VIRTUAL: return create_virtual(ddl, ast->u.create_virtual);
    case AST_STMT_CREATE_INDEX: return create_index(ddl, ast->u.create_index);
    case AST_STMT_CREATE_VIEW: return create_view(ddl, ast->u.create_view);
    case AST_STMT_CREATE_TRIGGER: return create_trigger(ddl, ast->u.create_trigger);
    case AST_STMT_DROP_TABLE: return drop_table(ddl, ast->u.drop, false);
    case AST_STMT_DROP_VIEW: return drop_table(ddl, ast->u.drop, true);
    case AST_STMT_DROP_INDEX: return drop_index(ddl, ast->u.drop);
    case AST_STMT_DROP_TRIGGER: return drop_trigger(ddl, ast->u.drop);
    case AST_STMT_REINDEX: return reindex(ddl, ast->u.object);
    case AST_STMT_ANALYZE: return ddl__analyze(ddl, ast->u.object);
    case AST_STMT_ALTER: return ddl__alter_table(ddl, ast->u.alter);
    default: UNREACHABLE();
    }
}

static bool
is_drop(const AstStatement *ast)
{
    return ast->kind == AST_STMT_DROP_TABLE || ast->kind == AST_STMT_DROP_INDEX ||
           ast->kind == AST_STMT_DROP_VIEW || ast->kind == AST_STMT_DROP_TRIGGER;
}

static Err
ddl_once(Stmt *stmt, StoreMark *mark)
{
    Session *session = stmt->session;
    Ddl ddl = {.session = session, .stmt = stmt, .msg = {.sql_offset = -1}};
    Err err = session__ensure_txn(session);
    if (err == OK) err = session__refresh_catalogs(session);
    if (err != OK) return err;
    session__marks(session, mark);
    err = ddl_dispatch(&ddl, stmt->ast);
    err_clear(&ddl.msg);
    return err;
}

static Err
run_ddl(Stmt *stmt)
{
    Session *session = stmt->session;
    StoreMark mark[CATALOG_DATABASES_MAX] = {0};
    /* A virtual table that is being dropped drops its own tables. */
    if (is_drop(stmt->ast) && session->running > session->ddl_depth) {
        return session_set_error(session, ERR_LOCKED, "database table is locked");
    }
    i64 deferred = session->deferred_violations;
    session->running++;
    session->ddl_depth++;
    session->running_writes++;
    Err err = ddl_once(stmt, mark);
    for (u32 tries = 0; err == ERR_BUSY_SNAPSHOT && tries < DDL_RESTARTS_MAX; tries++) {
        if (!session__may_restart(session)) break;
        session__undo_to(session, mark);
        err = session__restart(session);
        if (err == OK) err = ddl_once(stmt, mark);
    }
    session->running--;
    session->ddl_depth--;
    session->running_writes--;
    ErrMsg kept = {.sql_offset = -1};
    if (err != OK) {
        err_move(&kept, &session->error);
        /* "table t already exists" may rest on a commit that is not durable yet. */
        Err shown = session__wait_shown(session);
        if (shown != OK) {
            err = shown;
            err_move(&kept, &session->error);
        }
        session__undo_to(session, mark);
        session->deferred_violations = deferred;
    }
    session->has_read = true;
    session->has_written = session->has_written || session->in_transaction;
    Err end = session__autocommit_end(session, err == OK);
    if (err != OK) return session__fail(session, err, &kept);
    return end;
}

static Err
run_rollback(Session *session)
{
    if (!session->in_transaction) {
        return session_set_error(session, ERR_SQL, "cannot rollback - no transaction is active");
    }
    session__rollback(session);
    return OK;
}

static Err
unsupported(Stmt *stmt)
{
    return session_set_error(stmt->session, ERR_UNSUPPORTED, "%s is not supported yet",
                             ast_statement_name(stmt->ast->kind));
}

Err
command__run(Stmt *stmt)
{
    Session *session = stmt->session;
    const AstStatement *ast = stmt->ast;
    if (ast->explain != AST_EXPLAIN_NONE) return explain__list_command(stmt);
    const AstTransaction *transaction = ast->u.transaction;
    bool ends = ast->kind == AST_STMT_ROLLBACK || ast->kind == AST_STMT_COMMIT ||
                ast->kind == AST_STMT_ROLLBACK_TO || ast->kind == AST_STMT_RELEASE;
    if (session->doomed && !ends && ast->kind != AST_STMT_PRAGMA) {
        return session_set_error(session, ERR_BUSY_SNAPSHOT,
                                 "transaction has failed: only ROLLBACK is possible");
    }
    switch (ast->kind) {
    case AST_STMT_BEGIN: return session__begin(session, transaction);
    case AST_STMT_COMMIT: return session__commit(session);
    case AST_STMT_ROLLBACK: return run_rollback(session);
    case AST_STMT_SAVEPOINT: return session__savepoint(session, transaction->name.text);
    case AST_STMT_RELEASE: return session__release(session, transaction->name.text);
    case AST_STMT_ROLLBACK_TO: return session__rollback_to(session, transaction->name.text);
    case AST_STMT_SET_TRANSACTION:
        return session__set_isolation(session, transaction->isolation, false);
    case AST_STMT_SET_SESSION: return session__set_isolation(session, transaction->isolation, true);
    case AST_STMT_PRAGMA: return pragma__run(stmt);
    case AST_STMT_CREATE_TABLE:
    case AST_STMT_CREATE_VIRTUAL:
    case AST_STMT_CREATE_INDEX:
    case AST_STMT_CREATE_VIEW:
    case AST_STMT_CREATE_TRIGGER:
    case AST_STMT_DROP_TABLE:
    case AST_STMT_DROP_INDEX:
    case AST_STMT_DROP_VIEW:
    case AST_STMT_DROP_TRIGGER:
    case AST_STMT_ALTER:
    case AST_STMT_ANALYZE:
    case AST_STMT_REINDEX: return run_ddl(stmt);
    case AST_STMT_ATTACH: return maintain__attach(stmt, ast->u.attach);
    case AST_STMT_DETACH: return maintain__detach(stmt, ast->u.attach);
    case AST_STMT_VACUUM: return maintain__vacuum(stmt, ast->u.vacuum);
    default: return unsupported(stmt);
    }
}

bool
command__is_read_only(const AstStatement *ast)
{
    switch (ast->kind) {
    case AST_STMT_BEGIN:
        return ast->u.transaction->mode != AST_BEGIN_IMMEDIATE &&
               ast->u.transaction->mode != AST_BEGIN_EXCLUSIVE;
    case AST_STMT_COMMIT:
    case AST_STMT_ROLLBACK:
    case AST_STMT_SAVEPOINT:
    case AST_STMT_RELEASE:
    case AST_STMT_ROLLBACK_TO:
    case AST_STMT_SET_TRANSACTION:
    case AST_STMT_SET_SESSION:
    case AST_STMT_PRAGMA:
    case AST_STMT_DETACH:
    case AST_STMT_ATTACH: return true;
    default: return false;
    }
}

/* The question that a command puts to the authorizer: action, name, and second name. */
typedef struct Question {
    int action;
    const AstName *schema, *first, *second;
} Question;

static Question
question_of(const AstStatement *ast)
{
    switch (ast->kind) {
    case AST_STMT_CREATE_TABLE:
        return (Question){ast->u.create_table->temp ? 4 : 2, &ast->u.create_table->schema,
                          &ast->u.create_table->name, NULL};
    case AST_STMT_CREATE_VIRTUAL:
        return (Question){29, &ast->u.create_virtual->schema, &ast->u.create_virtual->name,
                          &ast->u.create_virtual->module};
    case AST_STMT_CREATE_INDEX:
        return (Question){1, &ast->u.create_index->schema, &ast->u.create_index->name,
                          &ast->u.create_index->table};
    case AST_STMT_CREATE_VIEW:
        return (Question){ast->u.create_view->temp ? 6 : 8, &ast->u.create_view->schema,
                          &ast->u.create_view->name, NULL};
    case AST_STMT_CREATE_TRIGGER:
        return (Question){ast->u.create_trigger->temp ? 5 : 7, &ast->u.create_trigger->schema,
                          &ast->u.create_trigger->name, &ast->u.create_trigger->table};
    case AST_STMT_DROP_INDEX: return (Question){10, &ast->u.drop->schema, &ast->u.drop->name, NULL};
    case AST_STMT_DROP_TABLE: return (Question){11, &ast->u.drop->schema, &ast->u.drop->name, NULL};
    case AST_STMT_DROP_TRIGGER:
        return (Question){16, &ast->u.drop->schema, &ast->u.drop->name, NULL};
    case AST_STMT_DROP_VIEW: return (Question){17, &ast->u.drop->schema, &ast->u.drop->name, NULL};
    case AST_STMT_ALTER: return (Question){26, &ast->u.alter->schema, &ast->u.alter->table, NULL};
    case AST_STMT_PRAGMA: return (Question){19, &ast->u.pragma->schema, &ast->u.pragma->name, NULL};
    case AST_STMT_SAVEPOINT:
    case AST_STMT_RELEASE:
    case AST_STMT_ROLLBACK_TO: return (Question){32, NULL, NULL, &ast->u.transaction->name};
    case AST_STMT_BEGIN:
    case AST_STMT_COMMIT:
    case AST_STMT_ROLLBACK: return (Question){22, NULL, NULL, NULL};
    case AST_STMT_ATTACH: return (Question){24, NULL, NULL, NULL};
    case AST_STMT_DETACH: return (Question){25, NULL, NULL, NULL};
    case AST_STMT_REINDEX: return (Question){27, NULL, &ast->u.object->name, NULL};
    case AST_STMT_ANALYZE: return (Question){28, NULL, &ast->u.object->name, NULL};
    default: return (Question){0, NULL, NULL, NULL};
    }
}

static char *
question_text(Arena *arena, const AstName *name)
{
    if (name == NULL || !ast_name_present(name)) return NULL;
    return arena_strndup(arena, name->text.p, name->text.bytes);
}

static Err
ask_authorizer(Stmt *stmt)
{
    Session *session = stmt->session;
    const AstStatement *ast = stmt->ast;
    Question question = question_of(ast);
    if (session->host.authorize == NULL || question.action == 0) return OK;
    const char *first = question_text(&stmt->arena, question.first);
    const char *second = question_text(&stmt->arena, question.second);
    const char *schema = question_text(&stmt->arena, question.schema);
    if (ast->kind == AST_STMT_BEGIN) first = "BEGIN";
    if (ast->kind == AST_STMT_COMMIT) first = "COMMIT";
    if (ast->kind == AST_STMT_ROLLBACK) first = "ROLLBACK";
    if (ast->kind == AST_STMT_SAVEPOINT) first = "BEGIN";
    if (ast->kind == AST_STMT_RELEASE) first = "RELEASE";
    if (ast->kind == AST_STMT_ROLLBACK_TO) first = "ROLLBACK";
    bool has_schema = question.schema != NULL;
    int answer = session->host.authorize(session->host.authorize_arg, question.action, first,
                                         second, has_schema && schema == NULL ? "main" : schema,
                                         NULL);
    if (answer == PLAN_AUTH_OK || answer == PLAN_AUTH_IGNORE) return OK;
    if (answer == PLAN_AUTH_DENY) {
        return session_set_error(session, ERR_AUTH, "not authorized");
    }
    return session_set_error(session, ERR_SQL, "authorizer malfunction");
}

/* What will not run is refused when it is prepared, by name. */
Err
command__describe(Stmt *stmt)
{
    const AstStatement *ast = stmt->ast;
    Err err = ask_authorizer(stmt);
    if (err != OK) return err;
    if (ast->explain != AST_EXPLAIN_NONE) {
        if (ast->explain == AST_EXPLAIN_ANALYZE) {
            return session_set_error(stmt->session, ERR_UNSUPPORTED,
                                     "EXPLAIN ANALYZE of %s is not supported",
                                     ast_statement_name(ast->kind));
        }
        return explain__command(stmt);
    }
    switch (ast->kind) {
    case AST_STMT_PRAGMA: return pragma__describe(stmt);
    default: return OK;
    }
}
