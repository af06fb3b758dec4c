/*
 * virtual.c -- modules and virtual tables of a session: connecting, transactions, their end.
 *
 * A SessionTable is one connected table: what its module made, and a TableDef with the columns it
 * declared.  Plans point at it, so a table that is dropped, renamed or whose module is replaced is
 * first set aside (`dead`), and goes when no statement runs; its memory goes with the last
 * statement.
 */
#include "session/virtual__impl.h"

struct SessionModule {
    struct SessionModule *next;
    char *name;
    HostModuleKind kind;
    const HostModuleOps *ops;
    void *module;
    u32 references; /* Being registered, and one for each table. */
};

struct SessionTable {
    struct SessionTable *next;
    SessionModule *module;
    HostTable *host; /* NULL: disconnected. */
    Arena arena;     /* Names, columns. */
    TableDef def;
    const char *stored_sql; /* Of the catalog's row; NULL: eponymous. */
    bool in_txn;
    bool dead;
};

/* A constructor at work. */
struct SessionConnecting {
    struct SessionConnecting *outer;
    const TableDef *stored;
    SessionTable *table;
    bool declared;
};

static Slice
text_slice(const char *text)
{
    return SLICE(text, strlen(text));
}

/* ---- modules ---- */

static void
module_release(SessionModule *module)
{
    if (--module->references > 0) return;
    if (module->ops->free != NULL) module->ops->free(module->module);
    mem_free(module->name);
    mem_free(module);
}

static SessionModule *
find_module(const Session *session, Slice name)
{
    SessionModule *module = session->modules;
    while (module != NULL && !slice_equal_nocase(text_slice(module->name), name))
        module = module->next;
    return module;
}

Err
virtual__module_names(const Session *session, Err (*each)(void *arg, const char *name), void *arg)
{
    Err err = OK;
    for (const SessionModule *m = session->modules; err == OK && m != NULL; m = m->next)
        err = each(arg, m->name);
    return err;
}

void
session_drop_module(Session *session, const char *name)
{
    SessionModule *module = find_module(session, text_slice(name));
    if (module == NULL) return;
    SessionModule **link = &session->modules;
    while (*link != module)
        link = &(*link)->next;
    *link = module->next;
    for (SessionTable *table = session->tables; table != NULL; table = table->next) {
        if (table->module == module && table->stored_sql == NULL) table->dead = true;
    }
    session->environment++; /* Plans are made anew. */
    virtual__reap(session);
    module_release(module);
}

Err
session_add_module(Session *session, const char *name, HostModuleKind kind,
                   const HostModuleOps *ops, void *module)
{
    SessionModule *added = MEM_NEW(SessionModule);
    char *copy = mem_strdup(name);
    if (added == NULL || copy == NULL) {
        mem_free(added);
        mem_free(copy);
        if (ops->free != NULL) ops->free(module);
        return session__fail(session, ERR_NOMEM, NULL);
    }
    session_drop_module(session, name);
    *added = (SessionModule){.next = session->modules,
                             .name = copy,
                             .kind = kind,
                             .ops = ops,
                             .module = module,
                             .references = 1};
    session->modules = added;
    session->environment++;
    return OK;
}

const char *
session_module_name(const Session *session, u32 at)
{
    const SessionModule *module = session->modules;
    for (; module != NULL && at > 0; at--)
        module = module->next;
    return module == NULL ? NULL : module->name;
}

/* ---- the end of tables ---- */

static void
disconnect(SessionTable *table)
{
    HostTable *host = table->host;
    table->host = NULL;
    if (host != NULL) table->module->ops->disconnect(host);
}

static void
free_table(SessionTable *table)
{
    disconnect(table);
    module_release(table->module);
    arena_free(&table->arena);
    mem_free(table);
}

void
virtual__reap(Session *session)
{
    if (session->running > 0 || session->connecting != NULL) return;
    SessionTable **link = &session->tables;
    while (*link != NULL) {
        SessionTable *table = *link;
        if (!table->dead || table->in_txn) {
            link = &table->next;
            continue;
        }
        disconnect(table);
        if (session->first_stmt != NULL) {
            link = &table->next;
            continue;
        }
        *link = table->next;
        free_table(table);
    }
}

void
virtual__close(Session *session)
{
    while (session->tables != NULL) {
        SessionTable *table = session->tables;
        session->tables = table->next;
        free_table(table);
    }
    while (session->modules != NULL) {
        SessionModule *module = session->modules;
        session->modules = module->next;
        module_release(module);
    }
}

/* ---- connecting ---- */

Err
session_declare_table(Session *session, const char *sql)
{
    SessionConnecting *connecting = session->connecting;
    if (connecting == NULL || connecting->declared || sql == NULL) {
        return session__fail(session, ERR_MISUSE, NULL);
    }
    SessionTable *table = connecting->table;
    const TableDef *stored = connecting->stored;
    ErrMsg msg = {.sql_offset = -1};
    Err err = catalog_declared_table(stored, text_slice(sql), &session->db[stored->database].env,
                                     &table->arena, &table->def, &msg);
    if (err != OK) return session__fail(session, err, &msg);
    connecting->declared = true;
    return OK;
}

/* Run the module's constructor.  The session's own error is kept out of it. */
static Err
construct(Session *session, SessionTable *table, const TableDef *stored, bool create, ErrMsg *msg)
{
    const char **argv = ARENA_NEW_ARRAY(&table->arena, const char *, stored->module_arg_count + 3u);
    if (argv == NULL) return ERR_NOMEM;
    argv[0] = stored->module;
    argv[1] = stored->schema;
    argv[2] = stored->name;
    for (u32 i = 0; i < stored->module_arg_count; i++)
        argv[i + 3] = stored->module_args[i];
    SessionConnecting connecting = {.outer = session->connecting, .stored = stored, .table = table};
    session->connecting = &connecting;
    Err err = table->module->ops->connect(table->module->module, create,
                                          stored->module_arg_count + 3, argv, &table->host, msg);
    session->connecting = connecting.outer;
    if (err != OK) {
        table->host = NULL;
        if (msg->err == OK) err_set(msg, err, "vtable constructor failed: %s", stored->name);
        return err;
    }
    if (!connecting.declared)
        return err_set(msg, ERR_SQL, "vtable constructor did not declare schema: %s", stored->name);
    bool no_key = table->def.without_rowid && !table->host->read_only &&
                  table->def.primary_key->key_columns != 1;
    if (no_key) return err_set(msg, ERR_SQL, "vtable constructor failed: %s", stored->name);
    table->def.host = table->host;
    return OK;
}

static SessionTable *
connect_table(Session *session, SessionModule *module, const TableDef *stored, bool create,
              ErrMsg *msg)
{
    for (SessionConnecting *at = session->connecting; at != NULL; at = at->outer) {
        if (at->stored->database != stored->database ||
            text_compare_nocase(at->stored->name, stored->name) != 0)
            continue;
        err_set(msg, ERR_SQL, "vtable constructor called recursively: %s", stored->name);
        return NULL;
    }
    SessionTable *table = MEM_NEW(SessionTable);
    if (table == NULL) {
        err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
        return NULL;
    }
    arena_init(&table->arena, NULL);
    table->module = module;
    module->references++;
    /* The definition outlives the catalog's. */
    TableDef *own = ARENA_NEW(&table->arena, TableDef);
    const char **args = ARENA_NEW_ARRAY(&table->arena, const char *, stored->module_arg_count + 1u);
    bool good = own != NULL && args != NULL;
    if (good) {
        *own = *stored;
        own->name = arena_strndup(&table->arena, stored->name, strlen(stored->name));
        own->schema = arena_strndup(&table->arena, stored->schema, strlen(stored->schema));
        own->module = arena_strndup(&table->arena, stored->module, strlen(stored->module));
        own->module_args = args;
        good = own->name != NULL && own->schema != NULL && own->module != NULL;
        for (u32 i = 0; good && i < stored->module_arg_count; i++) {
            const char *arg = stored->module_args[i];
            args[i] = arena_strndup(&table->arena, arg, strlen(arg));
            good = args[i] != NULL;
        }
        if (good && stored->sql != NULL) {
            own->sql = arena_strndup(&table->arena, stored->sql, strlen(stored->sql));
            table->stored_sql = own->sql;
            good = own->sql != NULL;
        }
    }
    Err err = good ? construct(session, table, own, create, msg) : ERR_NOMEM;
    if (err != OK) {
        if (msg->err == OK) err_set(msg, err, "%s", err_text(err));
        free_table(table);
        return NULL;
    }
    table->next = session->tables;
    session->tables = table;
    return table;
}

/* The live table for a row of the catalog, or the eponymous one (stored NULL). */
static SessionTable *
find_table(const Session *session, const TableDef *stored, const SessionModule *module)
{
    for (SessionTable *table = session->tables; table != NULL; table = table->next) {
        if (table->dead || table->host == NULL) continue;
        if (stored == NULL) {
            if (table->stored_sql == NULL && table->module == module) return table;
            continue;
        }
        if (table->stored_sql == NULL || table->def.database != stored->database) continue;
        if (strcmp(table->def.name, stored->name) != 0) continue;
        if (strcmp(table->stored_sql, stored->sql) == 0) return table;
    }
    return NULL;
}

/* The schema table of temp is there even before temp is. */
static const TableDef *
temp_schema(Session *session, Slice name, ErrMsg *msg)
{
    if (!slice_equal_nocase(name, SLICE_LITERAL("sqlite_temp_master")) &&
        !slice_equal_nocase(name, SLICE_LITERAL("sqlite_temp_schema")))
        return NULL;
    Err err = session__open_temp(session);
    if (err == OK) err = session__ensure_txn(session);
    if (err == OK) err = session__refresh_catalogs(session);
    if (err == OK) return catalog_find_table(session->db[1].catalog, name);
    err_set(msg, err, "%s", err_message(&session->error));
    return NULL;
}

const TableDef *
virtual__resolve(void *arg, const TableDef *stored, Slice name, ErrMsg *msg)
{
    Session *session = arg;
    if (stored == NULL) {
        const TableDef *schema = temp_schema(session, name, msg);
        if (schema != NULL || msg->err != OK) return schema;
    }
    SessionModule *module = find_module(session,
                                        stored == NULL ? name : text_slice(stored->module));
    SessionTable *table = stored == NULL && module == NULL ? NULL
                                                           : find_table(session, stored, module);
    if (table != NULL) return &table->def;
    if (stored == NULL) {
        if (module == NULL || module->kind == HOST_MODULE_CREATED) return NULL;
        const TableDef eponymous = {.name = module->name,
                                    .schema = "main",
                                    .store = session->db[0].database->store,
                                    .rowid_column = COLUMN_ROWID,
                                    .is_virtual = true,
                                    .module = module->name};
        table = connect_table(session, module, &eponymous, false, msg);
        if (table != NULL) table->host->is_eponymous = true;
    } else if (module == NULL) {
        err_set(msg, ERR_SQL, "no such module: %s", stored->module);
    } else {
        table = connect_table(session, module, stored, false, msg);
    }
    return table == NULL ? NULL : &table->def;
}

/* ---- DDL ---- */

Err
virtual__create(Session *session, const TableDef *stored, ErrMsg *msg)
{
    SessionModule *module = find_module(session, text_slice(stored->module));
    if (module == NULL || module->kind == HOST_MODULE_ONLY)
        return err_set(msg, ERR_SQL, "no such module: %s", stored->module);
    for (SessionTable *old = session->tables; old != NULL; old = old->next) {
        bool same = old->stored_sql != NULL && old->def.database == stored->database &&
                    text_compare_nocase(old->def.name, stored->name) == 0;
        if (same) old->dead = true; /* Of a CREATE that was rolled back. */
    }
    SessionTable *table = connect_table(session, module, stored, true, msg);
    if (table == NULL) return msg->err;
    table->in_txn = module->ops->has_steps(table->host);
    return OK;
}

Err
virtual__drop(Session *session, const TableDef *stored, ErrMsg *msg)
{
    if (virtual__resolve(session, stored, SLICE_NONE, msg) == NULL) return msg->err;
    SessionTable *table = find_table(session, stored, NULL);
    ASSERT(table != NULL);
    HostTable *host = table->host;
    Err err = table->module->ops->destroy(host, msg);
    if (err != OK) {
        if (msg->err == OK) err_set(msg, err, "%s", err_text(err));
        return err;
    }
    table->host = NULL;
    table->in_txn = false;
    table->dead = true;
    return OK;
}

Err
virtual__rename(Session *session, const TableDef *stored, const char *new_name, ErrMsg *msg)
{
    if (virtual__resolve(session, stored, SLICE_NONE, msg) == NULL) return msg->err;
    SessionTable *table = find_table(session, stored, NULL);
    ASSERT(table != NULL);
    Err err = table->module->ops->rename(table->host, new_name, msg);
    if (err != OK && msg->err == OK) err_set(msg, err, "%s", err_text(err));
    if (err == OK) table->dead = true; /* Connected anew under its new name. */
    return err;
}

Err
virtual__check(Session *session, const TableDef *stored, char **report_out, ErrMsg *msg)
{
    *report_out = NULL;
    if (virtual__resolve(session, stored, SLICE_NONE, msg) == NULL) {
        /* Without its module nothing can be said of it. */
        err_clear(msg);
        return OK;
    }
    SessionTable *table = find_table(session, stored, NULL);
    ASSERT(table != NULL);
    return table->module->ops->check(table->host, stored->schema, stored->name, false, report_out);
}

bool
virtual__is_shadow(const Session *session, const Catalog *catalog, const char *name)
{
    const char *bar = strrchr(name, '_');
    if (bar == NULL || bar == name) return false;
    const TableDef *owner = catalog_find_table(catalog, SLICE(name, (size_t)(bar - name)));
    if (owner == NULL || !owner->is_virtual) return false;
    const SessionModule *module = find_module(session, text_slice(owner->module));
    return module != NULL && module->ops->is_shadow != NULL &&
           module->ops->is_shadow(module->module, bar + 1);
}

/* ---- transactions ---- */

static Err
step(Session *session, SessionTable *table, HostStep what, i32 savepoint)
{
    ErrMsg msg = {.sql_offset = -1};
    Err err = table->module->ops->step(table->host, what, savepoint, &msg);
    if (err != OK) return session__fail(session, err, &msg);
    err_clear(&msg);
    return OK;
}

bool
virtual__in_transaction(const Session *session)
{
    for (const SessionTable *table = session->tables; table != NULL; table = table->next) {
        if (table->in_txn) return true;
    }
    return false;
}

Err
virtual__begin(void *arg, HostTable *host, ErrMsg *msg)
{
    Session *session = arg;
    SessionTable *table = session->tables;
    while (table != NULL && table->host != host)
        table = table->next;
    ASSERT(table != NULL);
    if (table->in_txn || !table->module->ops->has_steps(host)) return OK;
    Err err = table->module->ops->step(host, HOST_BEGIN, 0, msg);
    if (err != OK) return err;
    table->in_txn = true;
    u32 depth = session->savepoint_count + session->host_statements;
    if (depth == 0) return OK;
    return table->module->ops->step(host, HOST_SAVEPOINT, (i32)depth - 1, msg);
}

Err
virtual__savepoint(Session *session, HostStep what, u32 number)
{
    Err err = OK;
    for (SessionTable *table = session->tables; table != NULL; table = table->next) {
        if (!table->in_txn || table->host == NULL) continue;
        Err one = step(session, table, what, (i32)number);
        if (err == OK) err = one;
    }
    return err;
}

Err
virtual__sync(Session *session)
{
    for (SessionTable *table = session->tables; table != NULL; table = table->next) {
        if (!table->in_txn || table->host == NULL) continue;
        Err err = step(session, table, HOST_SYNC, 0);
        if (err != OK) return err;
    }
    return OK;
}

void
virtual__end(Session *session, bool commit)
{
    for (SessionTable *table = session->tables; table != NULL; table = table->next) {
        if (!table->in_txn) continue;
        table->in_txn = false;
        ErrMsg msg = {.sql_offset = -1};
        HostStep what = commit ? HOST_COMMIT : HOST_ROLLBACK;
        if (table->host != NULL) (void)table->module->ops->step(table->host, what, 0, &msg);
        err_clear(&msg);
    }
}
