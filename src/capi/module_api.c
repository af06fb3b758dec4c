/*
 * module_api.c -- virtual tables of the host program: sqlite3_module over session's modules.
 *
 * A CapiTable is what the program's xCreate or xConnect made; the functions below turn the calls of
 * the engine into those of sqlite3_module, values into sqlite3_value, and codes into Err.
 */
#include "capi/host_func.h"
#include "capi/index_info.h"

typedef struct CapiModule {
    sqlite3 *db;
    const sqlite3_module *module;
    void *app;
    void (*destroy)(void *);
} CapiModule;

struct CapiTable {
    HostTable host;
    sqlite3 *db;
    const sqlite3_module *module;
    sqlite3_vtab *vtab;
    HostFunc *func; /* What xFindFunction gave. */
};

struct HostCursor {
    CapiTable *table;
    sqlite3_vtab_cursor *cursor;
};

/* ---- errors ---- */

/* A code of the program with a text that it gave (NULL: none). */
static Err
host_error(ErrMsg *msg, int code, const char *text)
{
    if (code == SQLITE_OK) return OK;
    if (text == NULL) text = sqlite3_errstr(code);
    switch (code) {
    case SQLITE_ERROR: return err_set(msg, ERR_SQL, "%s", text);
    case SQLITE_NOMEM: return err_set(msg, ERR_NOMEM, "%s", text);
    default:
        err_set(msg, ERR_HOST, "%s", text);
        msg->host_code = code;
        return ERR_HOST;
    }
}

/* The same; the text stands in the table, and goes. */
static Err
table_error(CapiTable *table, ErrMsg *msg, int code)
{
    char *text = table->vtab->zErrMsg;
    Err err = host_error(msg, code, text);
    if (text != NULL) {
        table->vtab->zErrMsg = NULL;
        sqlite3_free(text);
    }
    return err;
}

static CapiTable *
table_of(HostTable *host)
{
    return (CapiTable *)host;
}

/* ---- planning ---- */

static Err
best_index(HostTable *host, HostIndex *index, ErrMsg *msg)
{
    CapiTable *table = table_of(host);
    BestIndex best;
    if (!index_info__fill(&best, index, table->db)) {
        index_info__free(&best);
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    int code = table->module->xBestIndex(table->vtab, &best.info);
    Err err = OK;
    if (code == SQLITE_CONSTRAINT) {
        sqlite3_free(table->vtab->zErrMsg);
        table->vtab->zErrMsg = NULL;
        err = ERR_CONSTRAINT;
    } else if (code != SQLITE_OK) {
        err = table_error(table, msg, code);
    } else if (!index_info__answers(&best)) {
        err = err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    index_info__free(&best);
    return err;
}

static const FuncDef *
find_function(HostTable *host, const char *name, u32 argc, u8 *op_out)
{
    CapiTable *table = table_of(host);
    void (*function)(sqlite3_context *, int, sqlite3_value **) = NULL;
    void *app = NULL;
    *op_out = 0;
    if (table->module->xFindFunction == NULL) return NULL;
    int found = table->module->xFindFunction(table->vtab, (int)argc, name, &function, &app);
    if (found == 0 || function == NULL) return NULL;
    *op_out = found >= SQLITE_INDEX_CONSTRAINT_FUNCTION && found < 256 ? (u8)found : 0;
    for (HostFunc *func = table->func; func != NULL; func = func->next) {
        if (func->function == function && func->app == app && strcmp(func->name, name) == 0 &&
            func->def.argc_max == (i16)argc)
            return &func->def;
    }
    HostFunc *func = host__scalar_new(table->db, name, (int)argc, function, app);
    if (func == NULL) return NULL;
    func->next = table->func;
    table->func = func;
    return &func->def;
}

/* ---- scans ---- */

static Err
open_cursor(HostTable *host, HostCursor **cursor_out, ErrMsg *msg)
{
    CapiTable *table = table_of(host);
    *cursor_out = NULL;
    HostCursor *cursor = MEM_NEW(HostCursor);
    if (cursor == NULL) return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    cursor->table = table;
    int code = table->module->xOpen(table->vtab, &cursor->cursor);
    if (code != SQLITE_OK) {
        mem_free(cursor);
        return table_error(table, msg, code);
    }
    cursor->cursor->pVtab = table->vtab;
    table->vtab->nRef++;
    *cursor_out = cursor;
    return OK;
}

static void
close_cursor(HostCursor *cursor)
{
    CapiTable *table = cursor->table;
    table->vtab->nRef--;
    table->module->xClose(cursor->cursor);
    mem_free(cursor);
}

static bool
values_new(u32 argc, const Cell *argv, sqlite3_value **values_out, sqlite3_value ***list_out)
{
    sqlite3_value *values = MEM_NEW_ARRAY(sqlite3_value, argc + 1);
    sqlite3_value **list = MEM_NEW_ARRAY(sqlite3_value *, argc + 1);
    for (u32 i = 0; values != NULL && list != NULL && i < argc; i++) {
        values[i].cell = argv[i];
        list[i] = &values[i];
    }
    *values_out = values;
    *list_out = list;
    return values != NULL && list != NULL;
}

static void
values_free(u32 argc, sqlite3_value *values, sqlite3_value **list)
{
    for (u32 i = 0; values != NULL && i < argc; i++) {
        index_info__list_end(&values[i]);
        value__clear(&values[i]);
    }
    mem_free(values);
    mem_free(list);
}

static bool
has_row(const HostCursor *cursor)
{
    return cursor->table->module->xEof(cursor->cursor) == 0;
}

static Err
filter(HostCursor *cursor, i32 number, const char *text, u32 argc, const Cell *argv, bool *row_out,
       ErrMsg *msg)
{
    CapiTable *table = cursor->table;
    sqlite3_value *values, **list;
    *row_out = false;
    if (!values_new(argc, argv, &values, &list)) {
        values_free(argc, values, list);
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    int code = table->module->xFilter(cursor->cursor, number, text, (int)argc, list);
    values_free(argc, values, list);
    if (code != SQLITE_OK) return table_error(table, msg, code);
    *row_out = has_row(cursor);
    return OK;
}

static Err
next(HostCursor *cursor, bool *row_out, ErrMsg *msg)
{
    *row_out = false;
    int code = cursor->table->module->xNext(cursor->cursor);
    if (code != SQLITE_OK) return table_error(cursor->table, msg, code);
    *row_out = has_row(cursor);
    return OK;
}

static Err
column(HostCursor *cursor, u32 number, bool unchanged, Arena *arena, Cell *out, ErrMsg *msg)
{
    CapiTable *table = cursor->table;
    const FuncEnv env = {.length_max = (u64)session_limit(table->db->session, 0, -1)};
    FuncCall call = {.arena = arena, .msg = msg, .env = &env};
    struct sqlite3_context context = {
        .call = &call, .result = out, .db = table->db, .unchanged = unchanged};
    int code = table->module->xColumn(cursor->cursor, &context, (int)number);
    if (context.err != OK) return context.err;
    if (code != SQLITE_OK) return table_error(table, msg, code);
    if (unchanged && !context.has_result) *out = cell_unchanged();
    return OK;
}

static Err
rowid(HostCursor *cursor, i64 *rowid_out, ErrMsg *msg)
{
    sqlite3_int64 value = 0;
    int code = cursor->table->module->xRowid(cursor->cursor, &value);
    *rowid_out = value;
    return code == SQLITE_OK ? OK : table_error(cursor->table, msg, code);
}

/* ---- changes ---- */

static Err
update(HostTable *host, u32 argc, const Cell *argv, u8 conflict, i64 *rowid_out, ErrMsg *msg)
{
    static const int codes[] = {
        [CONFLICT_DEFAULT] = SQLITE_ABORT,     [CONFLICT_ABORT] = SQLITE_ABORT,
        [CONFLICT_ROLLBACK] = SQLITE_ROLLBACK, [CONFLICT_FAIL] = SQLITE_FAIL,
        [CONFLICT_IGNORE] = SQLITE_IGNORE,     [CONFLICT_REPLACE] = SQLITE_REPLACE};
    CapiTable *table = table_of(host);
    sqlite3_value *values, **list;
    if (!values_new(argc, argv, &values, &list)) {
        values_free(argc, values, list);
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    int outer = table->db->vtab_conflict;
    sqlite3_int64 made = argc > 1 && argv[1].type == CELL_INT ? argv[1].u.i : 0;
    table->db->vtab_conflict = codes[conflict];
    int code = table->module->xUpdate(table->vtab, (int)argc, list, &made);
    table->db->vtab_conflict = outer;
    values_free(argc, values, list);
    *rowid_out = made;
    return code == SQLITE_OK ? OK : table_error(table, msg, code);
}

static const HostTableOps table_ops = {
    .best_index = best_index,
    .open = open_cursor,
    .close = close_cursor,
    .filter = filter,
    .next = next,
    .column = column,
    .rowid = rowid,
    .update = update,
    .find_function = find_function,
};

/* ---- the module ---- */

static Err
connect(void *arg, bool create, u32 argc, const char *const *argv, HostTable **table_out,
        ErrMsg *msg)
{
    CapiModule *from = arg;
    *table_out = NULL;
    CapiTable *table = MEM_NEW(CapiTable);
    if (table == NULL) return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    sqlite3 *db = from->db;
    *table = (CapiTable){.db = db, .module = from->module};
    table->host = (HostTable){
        .ops = &table_ops, .module = argv[0], .read_only = from->module->xUpdate == NULL};
    CapiTable *outer = db->connecting;
    db->connecting = table;
    char *text = NULL;
    int code = (create ? from->module->xCreate : from->module->xConnect)(db, from->app, (int)argc,
                                                                         argv, &table->vtab, &text);
    db->connecting = outer;
    if (code != SQLITE_OK) {
        mem_free(table);
        if (text == NULL && code != SQLITE_NOMEM) {
            text = sqlite3_mprintf("vtable constructor failed: %s", argv[2]);
        }
        Err err = host_error(msg, code, text);
        sqlite3_free(text);
        return err;
    }
    sqlite3_free(text);
    memset(table->vtab, 0, sizeof(*table->vtab));
    table->vtab->pModule = from->module;
    table->vtab->nRef = 1;
    *table_out = &table->host;
    return OK;
}

static void
free_table(CapiTable *table)
{
    while (table->func != NULL) {
        HostFunc *next_func = table->func->next;
        mem_free(table->func);
        table->func = next_func;
    }
    mem_free(table);
}

static void
disconnect(HostTable *host)
{
    CapiTable *table = table_of(host);
    sqlite3_free(table->vtab->zErrMsg);
    table->vtab->zErrMsg = NULL;
    (void)table->module->xDisconnect(table->vtab);
    free_table(table);
}

static Err
destroy(HostTable *host, ErrMsg *msg)
{
    CapiTable *table = table_of(host);
    int (*method)(sqlite3_vtab *) = table->module->xDestroy;
    if (method == NULL) method = table->module->xDisconnect;
    int code = method(table->vtab);
    if (code != SQLITE_OK) return host_error(msg, code, NULL);
    free_table(table);
    return OK;
}

static bool
has_steps(const HostTable *host)
{
    return ((const CapiTable *)host)->module->xBegin != NULL;
}

static Err
step(HostTable *host, HostStep what, i32 savepoint, ErrMsg *msg)
{
    CapiTable *table = table_of(host);
    const sqlite3_module *module = table->module;
    sqlite3_vtab *vtab = table->vtab;
    int (*method)(sqlite3_vtab *) = NULL;
    int (*numbered)(sqlite3_vtab *, int) = NULL;
    switch (what) {
    case HOST_BEGIN: method = module->xBegin; break;
    case HOST_SYNC: method = module->xSync; break;
    case HOST_COMMIT: method = module->xCommit; break;
    case HOST_ROLLBACK: method = module->xRollback; break;
    case HOST_SAVEPOINT: numbered = module->iVersion >= 2 ? module->xSavepoint : NULL; break;
    case HOST_RELEASE: numbered = module->iVersion >= 2 ? module->xRelease : NULL; break;
    case HOST_ROLLBACK_TO: numbered = module->iVersion >= 2 ? module->xRollbackTo : NULL; break;
    }
    int code = SQLITE_OK;
    if (method != NULL) code = method(vtab);
    if (numbered != NULL) code = numbered(vtab, savepoint);
    return code == SQLITE_OK ? OK : table_error(table, msg, code);
}

static Err
rename_table(HostTable *host, const char *new_name, ErrMsg *msg)
{
    CapiTable *table = table_of(host);
    if (table->module->xRename == NULL) return OK;
    int code = table->module->xRename(table->vtab, new_name);
    return code == SQLITE_OK ? OK : table_error(table, msg, code);
}

static Err
check(HostTable *host, const char *schema, const char *name, bool quick, char **report_out)
{
    CapiTable *table = table_of(host);
    const sqlite3_module *module = table->module;
    *report_out = NULL;
    if (module->iVersion < 4 || module->xIntegrity == NULL) return OK;
    char *report = NULL;
    int code = module->xIntegrity(table->vtab, schema, name, quick, &report);
    if (code != SQLITE_OK && report == NULL) {
        report = sqlite3_mprintf("unable to validate the inverted index of %s: %s", name,
                                 sqlite3_errstr(code));
    }
    *report_out = report; /* sqlite3_free() and mem_free() are the same. */
    return OK;
}

static bool
is_shadow(void *arg, const char *suffix)
{
    const CapiModule *from = arg;
    return from->module->iVersion >= 3 && from->module->xShadowName != NULL &&
           from->module->xShadowName(suffix) != 0;
}

static void
free_module(void *arg)
{
    CapiModule *from = arg;
    if (from->destroy != NULL) from->destroy(from->app);
    mem_free(from);
}

static const HostModuleOps module_ops = {
    .connect = connect,
    .disconnect = disconnect,
    .destroy = destroy,
    .step = step,
    .has_steps = has_steps,
    .rename = rename_table,
    .check = check,
    .is_shadow = is_shadow,
    .free = free_module,
};

int
sqlite3_create_module_v2(sqlite3 *db, const char *name, const sqlite3_module *module, void *app,
                         void (*destroy_app)(void *))
{
    if (!capi__db_ok(db) || db->session == NULL || name == NULL) {
        if (destroy_app != NULL) destroy_app(app);
        return SQLITE_MISUSE;
    }
    session_lock(db->session);
    int code = SQLITE_OK;
    if (module == NULL) {
        session_drop_module(db->session, name);
        if (destroy_app != NULL) destroy_app(app);
    } else {
        CapiModule *made = MEM_NEW(CapiModule);
        HostModuleKind kind = module->xCreate == NULL               ? HOST_MODULE_ONLY
                              : module->xCreate == module->xConnect ? HOST_MODULE_EPONYMOUS
                                                                    : HOST_MODULE_CREATED;
        if (made == NULL) {
            if (destroy_app != NULL) destroy_app(app);
            code = capi__fail(db, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
        } else {
            *made = (CapiModule){.db = db, .module = module, .app = app, .destroy = destroy_app};
            code = capi__result(db, session_add_module(db->session, name, kind, &module_ops, made));
        }
    }
    session_unlock(db->session);
    return code;
}

int
sqlite3_create_module(sqlite3 *db, const char *name, const sqlite3_module *module, void *app)
{
    return sqlite3_create_module_v2(db, name, module, app, NULL);
}

static bool
is_kept(const char *name, const char **keep)
{
    for (; keep != NULL && *keep != NULL; keep++) {
        if (strcmp(*keep, name) == 0) return true;
    }
    return false;
}

int
sqlite3_drop_modules(sqlite3 *db, const char **keep)
{
    if (!capi__db_ok(db) || db->session == NULL) return SQLITE_MISUSE;
    session_lock(db->session);
    u32 at = 0;
    for (;;) {
        const char *name = session_module_name(db->session, at);
        if (name == NULL) break;
        if (is_kept(name, keep)) {
            at++;
        } else {
            session_drop_module(db->session, name);
        }
    }
    session_unlock(db->session);
    return SQLITE_OK;
}

/* ---- functions that only virtual tables know ---- */

static void
out_of_context(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    (void)argv;
    char *text = sqlite3_mprintf("unable to use function %s in the requested context",
                                 (const char *)sqlite3_user_data(context));
    sqlite3_result_error(context, text == NULL ? "" : text, -1);
    sqlite3_free(text);
}

int
sqlite3_overload_function(sqlite3 *db, const char *name, int argc)
{
    if (!capi__db_ok(db) || db->session == NULL || name == NULL || argc < -2) return SQLITE_MISUSE;
    session_lock(db->session);
    const FuncTable *table = db->host == NULL ? session_builtin_functions() : &db->host->table;
    bool known = func_find(table, SLICE(name, strlen(name)), argc < 0 ? 0 : (u32)argc, NULL) !=
                 NULL;
    session_unlock(db->session);
    if (known) return SQLITE_OK;
    char *copy = sqlite3_mprintf("%s", name);
    if (copy == NULL) return capi__fail(db, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    return sqlite3_create_function_v2(db, name, argc, SQLITE_UTF8, copy, out_of_context, NULL, NULL,
                                      sqlite3_free);
}

/* ---- inside a constructor ---- */

int
sqlite3_declare_vtab(sqlite3 *db, const char *sql)
{
    if (!capi__db_ok(db) || db->session == NULL || sql == NULL) return SQLITE_MISUSE;
    session_lock(db->session);
    int code = capi__result(db, session_declare_table(db->session, sql));
    session_unlock(db->session);
    return code;
}

int
sqlite3_vtab_config(sqlite3 *db, int what, ...)
{
    if (!capi__db_ok(db) || db->connecting == NULL) return SQLITE_MISUSE;
    HostTable *host = &db->connecting->host;
    va_list args;
    va_start(args, what);
    int code = SQLITE_OK;
    switch (what) {
    case SQLITE_VTAB_CONSTRAINT_SUPPORT: host->judges_conflicts = va_arg(args, int) != 0; break;
    case SQLITE_VTAB_INNOCUOUS: host->innocuous = true; break;
    case SQLITE_VTAB_DIRECTONLY: host->direct_only = true; break;
    case SQLITE_VTAB_USES_ALL_SCHEMAS: break; /* Every schema is at hand anyway. */
    default: code = SQLITE_MISUSE; break;
    }
    va_end(args);
    return code;
}

int
sqlite3_vtab_on_conflict(sqlite3 *db)
{
    return capi__db_ok(db) && db->vtab_conflict != 0 ? db->vtab_conflict : SQLITE_ABORT;
}

int
sqlite3_vtab_nochange(sqlite3_context *context)
{
    return context != NULL && context->unchanged;
}

int
sqlite3_value_nochange(sqlite3_value *value)
{
    return value != NULL && cell_is_unchanged(&value->cell);
}
