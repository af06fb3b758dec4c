/*
 * database.c -- what the connections of this process to one store share.
 *
 * The store itself is shared by path inside store/; here one Database goes with each Store, found
 * through a registry that hangs on the process.
 */
#include "func/func_builtin.h"
#include "rt/process.h"
#include "session/session__impl.h"

typedef struct Registry {
    RtMutex mutex;
    Database *first;
    FuncTable builtins; /* One index over the built-in functions for all connections. */
    Arena arena;
    TableFunc *pragma_func;
    u32 pragma_funcs;
} Registry;

static Err
registry_create(RtProcess *process, void **root_out)
{
    (void)process;
    *root_out = NULL;
    Registry *registry = MEM_NEW(Registry);
    if (registry == NULL) return ERR_NOMEM;
    Err err = func_builtin_init(&registry->builtins);
    if (err == OK) {
        err = pragma__functions(&registry->arena, &registry->pragma_func, &registry->pragma_funcs);
    }
    if (err != OK) {
        func_builtin_free(&registry->builtins);
        arena_free(&registry->arena);
        mem_free(registry);
        return err;
    }
    *root_out = registry;
    return OK;
}

static void
registry_destroy(void *root)
{
    func_builtin_free(&((Registry *)root)->builtins);
    arena_free(&((Registry *)root)->arena);
    mem_free(root);
}

static Err
registry_get(Registry **registry_out)
{
    void *root;
    Err err = rt_process_root(RT_SLOT_SESSION, registry_create, registry_destroy, &root);
    *registry_out = err == OK ? root : NULL;
    return err;
}

const TableFunc *
database__pragma_function(Slice name)
{
    Registry *registry;
    if (registry_get(&registry) != OK) return NULL;
    for (u32 i = 0; i < registry->pragma_funcs; i++) {
        const char *at = registry->pragma_func[i].name;
        if (slice_equal_nocase(name, SLICE(at, strlen(at)))) return &registry->pragma_func[i];
    }
    return NULL;
}

const FuncTable *
session_builtin_functions(void)
{
    Registry *registry;
    return registry_get(&registry) == OK ? &registry->builtins : NULL;
}

/* A new store gets its schema tree, so that reading an empty schema needs no special case. */
static Err
prepare_store(Store *store, ErrMsg *msg)
{
    StoreTxnOptions options = {
        .level = STORE_SNAPSHOT, .sync = STORE_SYNC_FULL, .wait_ns = (u64)5 * 1000 * 1000 * 1000};
    StoreTxn *txn;
    i64 tree = 0;
    Err err = store_txn_begin(store, &options, &txn);
    if (err != OK) return err_set(msg, err, "%s", err_text(err));
    err = catalog_get_number(txn, "schema_tree", &tree);
    if (err != OK || tree != 0 || store_is_read_only(store)) goto done;
    TreeId made;
    err = store_tree_create(txn, STORE_TREE_INT, &made);
    if (err == OK) err = catalog_set_number(txn, "schema_tree", made);
    if (err == OK) return store_txn_commit(txn, msg);

done:
    if (err != OK) err_set(msg, err, "%s", err_message(store_txn_error(txn)));
    store_txn_rollback(txn);
    return err;
}

Err
database__open(RtProcess *process, const char *path, const StoreOptions *options,
               Database **database_out, ErrMsg *msg)
{
    *database_out = NULL;
    Registry *registry;
    Store *store;
    Err err = registry_get(&registry);
    if (err != OK) return err_set(msg, err, "%s", err_text(err));
    err = store_open(process, path, options, &store, msg);
    if (err != OK) return err;

    rt_mutex_lock(&registry->mutex);
    Database *database = registry->first;
    while (database != NULL && database->store != store)
        database = database->next;
    if (database != NULL) {
        database->references++;
        rt_mutex_unlock(&registry->mutex);
        store_close(store); /* The Database has a reference of its own. */
        *database_out = database;
        return OK;
    }
    err = prepare_store(store, msg);
    if (err == OK) database = MEM_NEW(Database);
    if (err == OK && database == NULL) err = err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    if (err == OK) {
        database->store = store;
        database->references = 1;
        database->account = store_account(store);
        database->evictor = (RtEvictor){
            .account = database->account, .give = plan_share__give_back, .arg = database};
        rt_process_evictor_add(process, &database->evictor);
        database->next = registry->first;
        registry->first = database;
    }
    rt_mutex_unlock(&registry->mutex);
    if (err != OK) store_close(store);
    *database_out = database;
    return err;
}

void
database__share(Database *database)
{
    Registry *registry = rt_process_root_peek(RT_SLOT_SESSION);
    ASSERT(registry != NULL);
    rt_mutex_lock(&registry->mutex);
    database->references++;
    rt_mutex_unlock(&registry->mutex);
}

void
database__close(Database *database)
{
    if (database == NULL) return;
    Registry *registry = rt_process_root_peek(RT_SLOT_SESSION);
    ASSERT(registry != NULL);
    rt_mutex_lock(&registry->mutex);
    bool last = --database->references == 0;
    if (last) {
        Database **at = &registry->first;
        while (*at != database)
            at = &(*at)->next;
        *at = database->next;
    }
    rt_mutex_unlock(&registry->mutex);
    if (!last) return;
    rt_process_evictor_remove(rt_process(), &database->evictor);
    plan_share__clear(database, NULL);
    for (u32 i = 0; i < DATABASE_CATALOGS; i++)
        catalog_release(database->catalog[i]);
    store_close(database->store);
    mem_free(database);
}

Catalog *
database__catalog(Database *database, u64 version)
{
    Catalog *found = NULL;
    rt_mutex_lock(&database->mutex);
    for (u32 i = 0; i < DATABASE_CATALOGS && found == NULL; i++) {
        Catalog *catalog = database->catalog[i];
        if (catalog != NULL && catalog_get_version(catalog) == version) {
            found = catalog_retain(catalog);
        }
    }
    rt_mutex_unlock(&database->mutex);
    return found;
}

void
database__publish(Database *database, Catalog *catalog)
{
    rt_mutex_lock(&database->mutex);
    bool known = false;
    for (u32 i = 0; i < DATABASE_CATALOGS; i++) {
        known = known ||
                (database->catalog[i] != NULL &&
                 catalog_get_version(database->catalog[i]) == catalog_get_version(catalog));
    }
    Catalog *dropped = NULL;
    if (!known) {
        dropped = database->catalog[DATABASE_CATALOGS - 1];
        for (u32 i = DATABASE_CATALOGS - 1; i > 0; i--)
            database->catalog[i] = database->catalog[i - 1];
        database->catalog[0] = catalog_retain(catalog);
    }
    rt_mutex_unlock(&database->mutex);
    catalog_release(dropped);
    if (!known) plan_share__clear(database, catalog);
}
