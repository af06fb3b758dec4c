/*
 * maintain.c -- whole databases: ATTACH, DETACH, VACUUM, integrity_check, copying.
 */
#include "exec/index_build.h"
#include "session/uri.h"
#include "session/virtual__impl.h"

/* ---- values of expressions in commands ---- */

/* Text of an expression that stands where a name or file is expected: a bare word is a string. */
static Err
name_value(Stmt *stmt, const AstExpr *expr, Arena *arena, Cell *value_out)
{
    Session *session = stmt->session;
    *value_out = cell_null();
    switch (expr->kind) {
    case AST_EXPR_COLUMN:
        if (expr->u.column.qualifier == NULL) {
            *value_out = cell_text(expr->u.column.name.text.p, expr->u.column.name.text.bytes);
            return OK;
        }
        break;
    case AST_EXPR_STRING:
        *value_out = cell_text(expr->u.literal.p, expr->u.literal.bytes);
        return OK;
    case AST_EXPR_PARAM:
        if (expr->u.param.number <= stmt->param_count) {
            *value_out = stmt->param[expr->u.param.number - 1];
        }
        return OK;
    default: break;
    }
    CatalogView view;
    PlanContext context;
    Plan *plan = NULL;
    Exec *exec = NULL;
    AstStatement *ast;
    size_t consumed;
    bool row = false;
    ErrMsg msg = {.sql_offset = -1};
    session__catalog_view(session, &view);
    session__plan_context(session, &view, &context);
    Span span = expr->span;
    char *sql = arena_printf(arena, "SELECT %.*s", (int)span.bytes, stmt->sql + span.offset);
    Slice text = SLICE(sql, sql == NULL ? 0 : strlen(sql));
    Err err = sql == NULL ? ERR_NOMEM : sql_parse(arena, text, NULL, &ast, &consumed, &msg);
    if (err == OK) err = plan_prepare(&context, ast, text, &plan, &msg);
    if (err == OK) err = exec_open(plan, &session->exec_env, &exec, &msg);
    if (err == OK) err = exec_start(exec, session->txn, stmt->param, stmt->param_count);
    if (err == OK) err = exec_step(exec, &row);
    if (err == OK && row) err = cell_copy(&exec_row(exec)[0], arena, value_out);
    if (err != OK && exec != NULL && msg.err == OK) {
        err_set(&msg, err, "%s", err_message(exec_error(exec)));
    }
    exec_close(exec);
    plan_release(plan);
    return err == OK ? OK : session__fail(session, err, &msg);
}

static Err
text_value(Stmt *stmt, const AstExpr *expr, char **text_out)
{
    Arena arena;
    Cell value;
    Slice text;
    arena_init(&arena, NULL);
    *text_out = NULL;
    Err err = name_value(stmt, expr, &arena, &value);
    if (err == OK) {
        err = cell_text_bytes(&value, &arena, &text);
        if (err == OK) *text_out = mem_strndup(text.p, text.bytes);
        if (err != OK || *text_out == NULL) err = session__fail(stmt->session, ERR_NOMEM, NULL);
    }
    arena_free(&arena);
    return err;
}

/* ---- ATTACH, DETACH ---- */

static Err
free_slot(Session *session, u32 *slot_out)
{
    u32 attached = 0;
    *slot_out = session->db_count;
    for (u32 i = session->db_count; i-- > 2;) {
        attached += session->db[i].database != NULL;
        if (session->db[i].database == NULL) *slot_out = i;
    }
    if (attached >= (u32)session->limit[7] || *slot_out >= CATALOG_DATABASES_MAX) {
        return session_set_error(session, ERR_SQL, "too many attached databases - max %d",
                                 session->limit[7]);
    }
    return OK;
}

/* The host program may say which file a name means. */
static Err
map_file(Session *session, bool is_written, char **file)
{
    const SessionHooks *host = &session->host;
    if (host->map_file == NULL) return OK;
    ErrMsg msg = {.sql_offset = -1};
    char *path = NULL;
    Err err = host->map_file(host->map_file_arg, *file, is_written, &path, &msg);
    if (err != OK) return session__fail(session, err, &msg);
    mem_free(*file);
    *file = path;
    return OK;
}

static Err
attach_file(Session *session, const UriName *uri, char *name)
{
    CatalogView view;
    u32 slot;
    session__catalog_view(session, &view);
    if (catalog_view_database(&view, SLICE(name, strlen(name))) >= 0) {
        return session_set_error(session, ERR_SQL, "database %s is already in use", name);
    }
    Err err = free_slot(session, &slot);
    if (err != OK) return err;
    bool unnamed = uri->path[0] == 0 || strcmp(uri->path, ":memory:") == 0;
    bool nameless = unnamed || (uri->memory && !uri->shared);
    bool in_memory = nameless || uri->memory;
    if (session->options.read_only && !uri->read_only && uri->names_mode && !in_memory) {
        return session_set_error(session, ERR_SQL, "access mode not allowed: %s",
                                 uri->no_create ? "rw" : "rwc");
    }
    StoreOptions options = {
        .in_memory = in_memory,
        .read_only = (session->options.read_only || uri->read_only) && !in_memory,
        .create = session->options.create && !uri->no_create,
        .beneath = session->options.beneath,
        .page_bytes = session->options.page_bytes,
        .pool_bytes = session->options.pool_bytes,
    };
    Database *database;
    ErrMsg msg = {.sql_offset = -1};
    err = database__open(session->process, nameless ? NULL : uri->path, &options, &database, &msg);
    if (err != OK) {
        if (err != ERR_CANTOPEN && err != ERR_NOTFOUND) return session__fail(session, err, &msg);
        err_clear(&msg);
        return session_set_error(session, err, "unable to open database: %s", uri->path);
    }
    session->db[slot] = (SessionDb){
        .name = name,
        .own_name = name,
        .database = database,
        .env = {.schema = name, .database = (u8)slot, .store = database->store},
        .verified_at = U64_MAX,
    };
    session->txn[slot] = NULL;
    if (slot == session->db_count) session->db_count++;
    return OK;
}

Err
maintain__attach(Stmt *stmt, const AstAttach *ast)
{
    Session *session = stmt->session;
    char *file = NULL, *name = NULL;
    bool opened = session->db[0].txn == NULL;
    Err err = session__ensure_txn(session);
    if (err == OK) err = session__refresh_catalogs(session);
    if (err == OK) err = text_value(stmt, ast->file, &file);
    if (err == OK) err = text_value(stmt, ast->name, &name);
    if (err == OK) err = map_file(session, false, &file);
    UriName uri = {0};
    ErrMsg msg = {.sql_offset = -1};
    if (err == OK) {
        err = uri_parse(file, session->options.uris, &uri, &msg);
        if (err != OK) (void)session__fail(session, err, &msg);
    }
    if (err == OK) err = attach_file(session, &uri, name);
    mem_free(uri.path);
    if (err != OK) mem_free(name); /* Else the slot owns it. */
    mem_free(file);
    ErrMsg kept = {.sql_offset = -1};
    if (err != OK) err_move(&kept, &session->error);
    Err end = opened ? session__autocommit_end(session, true) : OK;
    return err != OK ? session__fail(session, err, &kept) : end;
}

static Err
detach_slot(Session *session, u32 at)
{
    SessionDb *db = &session->db[at];
    if (session->running > 0 || (db->txn != NULL && store_txn_has_written(db->txn))) {
        return session_set_error(session, ERR_SQL, "database %s is locked", db->name);
    }
    stmt_cache__clear(session);
    if (db->txn != NULL) {
        store_txn_rollback(db->txn);
        session__forget_txn(session, at);
    }
    catalog_release(db->catalog);
    database__close(db->database);
    mem_free(db->own_name);
    *db = (SessionDb){.verified_at = U64_MAX};
    while (session->db_count > 2 && session->db[session->db_count - 1].database == NULL)
        session->db_count--;
    session->environment++;
    return OK;
}

Err
maintain__detach(Stmt *stmt, const AstAttach *ast)
{
    Session *session = stmt->session;
    CatalogView view;
    char *name;
    Err err = text_value(stmt, ast->name, &name);
    if (err != OK) return err;
    session__catalog_view(session, &view);
    i32 at = catalog_view_database(&view, SLICE(name, strlen(name)));
    bool fixed = at >= 0 && at < 2;
    if (!fixed && (at < 0 || session->db[at].database == NULL)) {
        err = session_set_error(session, ERR_SQL, "no such database: %s", name);
    } else if (fixed) {
        err = session_set_error(session, ERR_SQL, "cannot detach database %s", name);
    } else {
        err = detach_slot(session, (u32)at);
    }
    mem_free(name);
    return err;
}

/* ---- VACUUM ---- */

static Err
vacuum_into(Stmt *stmt, u32 database, const AstExpr *into)
{
    Session *session = stmt->session;
    Arena arena;
    Cell value;
    char *path = NULL;
    UriName uri = {0};
    Session *to = NULL;
    ErrMsg msg = {.sql_offset = -1};
    arena_init(&arena, NULL);
    Err err = name_value(stmt, into, &arena, &value);
    if (err == OK && value.type != CELL_TEXT) {
        err = session_set_error(session, ERR_SQL, "non-text filename");
    }
    if (err != OK) goto done;
    path = mem_strndup(value.u.p, value.bytes);
    if (path == NULL) {
        err = session__fail(session, ERR_NOMEM, NULL);
        goto done;
    }
    err = map_file(session, true, &path);
    if (err != OK) goto done;
    err = uri_parse(path, session->options.uris, &uri, &msg);
    if (err == OK) err = copy__target_open(session, uri.path, &to, &msg);
    if (err == ERR_EXISTS) err = err_set(&msg, ERR_SQL, "output file already exists");
    if (err == OK) err = copy__database(session, database, to, 0, &msg);
    if (err != OK) session__fail(session, err, &msg);

done:
    session_destroy(to);
    mem_free(uri.path);
    mem_free(path);
    arena_free(&arena);
    return err;
}

Err
maintain__vacuum(Stmt *stmt, const AstVacuum *ast)
{
    Session *session = stmt->session;
    u32 database = 0;
    if (ast_name_present(&ast->schema)) {
        CatalogView view;
        session__catalog_view(session, &view);
        i32 at = catalog_view_database(&view, ast->schema.text);
        if (at < 0) {
            return session__unknown_database(session, &ast->schema);
        }
        database = (u32)at;
    }
    if (session->in_transaction) {
        return session_set_error(session, ERR_SQL, "cannot VACUUM from within a transaction");
    }
    if (session->running > 0) {
        return session_set_error(session, ERR_SQL, "cannot VACUUM - SQL statements in progress");
    }
    ErrMsg msg = {.sql_offset = -1};
    if (ast->into == NULL) {
        if (session->options.read_only) return session__fail(session, ERR_READONLY, NULL);
        if (session->db[database].database == NULL) return OK;
        /* A checkpoint writes what lives and nothing else, which is what VACUUM is for. */
        Err err = store_checkpoint(session->db[database].database->store, &msg);
        return err == OK ? OK : session__fail(session, err, &msg);
    }
    Err err = session__ensure_txn(session);
    if (err == OK) err = session__refresh_catalogs(session);
    if (err == OK) err = vacuum_into(stmt, database, ast->into);
    ErrMsg kept = {.sql_offset = -1};
    if (err != OK) err_move(&kept, &session->error);
    Err end = session__autocommit_end(session, true);
    return err != OK ? session__fail(session, err, &kept) : end;
}

/* ---- integrity_check ---- */

typedef struct Check {
    Stmt *stmt;
    Err err;
    u32 left;
} Check;

static void
finding(void *arg, const char *text)
{
    Check *check = arg;
    if (check->err != OK) return;
    Cell cell = cell_text(text, strlen(text));
    check->err = rows__add(check->stmt, &cell);
}

static void
store_finding(void *arg, const char *text)
{
    Check *check = arg;
    if (check->left == 0) return;
    check->left--;
    finding(arg, text);
}

static Err
check_index(Check *check, const IndexDef *index, ErrMsg *msg)
{
    Session *session = check->stmt->session;
    CatalogView view;
    PlanContext context;
    Plan *plan;
    session__catalog_view(session, &view);
    session__plan_context(session, &view, &context);
    Err err = plan_index_build(&context, index->table, index, &plan, msg);
    if (err != OK) return err;
    err = exec_index_check(plan, index, &session->exec_env, session->txn, &check->left, finding,
                           check, msg);
    plan_release(plan);
    return err;
}

static Err
check_virtual(Check *check, const TableDef *table, ErrMsg *msg)
{
    char *report;
    Err err = virtual__check(check->stmt->session, table, &report, msg);
    if (err == OK && report != NULL && check->left > 0) {
        check->left--;
        Cell text = cell_text(report, strlen(report));
        err = rows__add(check->stmt, &text);
    }
    mem_free(report);
    return err;
}

Err
maintain__integrity_check(Stmt *stmt, u32 database, i64 findings_max)
{
    Session *session = stmt->session;
    SessionDb *db = &session->db[database];
    Check check = {.stmt = stmt, .left = (u32)MIN_OF(findings_max, 1000000)};
    ErrMsg msg = {.sql_offset = -1};
    u64 findings = 0;
    if (db->database == NULL) return OK;
    Err err = store_check(db->database->store, store_finding, &check, &findings);
    for (u32 i = 0; err == OK && i < catalog_table_count(db->catalog); i++) {
        const TableDef *table = catalog_table_at(db->catalog, i);
        if (table->is_view) continue;
        if (table->is_virtual) {
            err = check_virtual(&check, table, &msg);
            continue;
        }
        err = exec_table_check(table, db->txn, &check.left, finding, &check, &msg);
        for (u32 k = 0; err == OK && k < table->index_count; k++)
            err = check_index(&check, table->index[k], &msg);
    }
    if (err != OK) return session__fail(session, err, &msg);
    if (check.err != OK) return check.err;
    if (stmt->rows.rows > 0) return OK;
    Cell ok = cell_text("ok", 2);
    return rows__add(stmt, &ok);
}
