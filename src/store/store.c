/*
 * store.c -- opening, sharing and closing stores; the table of trees; counters.
 *
 * Within a process there is one Store per file, found by its real path, counted by references.
 * The registry hangs on the process (slot RT_SLOT_STORE); its mutex is held through an open and
 * through the last close, so that nobody joins a store that is half there.
 */
#include "store/file.h"
#include "store/store_private.h"
#include "store/store_root.h"
#include "store/wal/wal.h"

/* ---- trees ---- */

typedef struct TreeShelf {
    RtPtr at[STORE_TREE_FAN];
} TreeShelf;

#define TREE_ID_END ((u32)1 << 24)

Tree *
store__tree(const Store *store, TreeId id)
{
    if (UNLIKELY(id >= TREE_ID_END)) return NULL;
    const TreeShelf *middle = (const TreeShelf *)rt_load_acquire(&store->trees[id >> 16]);
    if (UNLIKELY(middle == NULL)) return NULL;
    const TreeShelf *low = (const TreeShelf *)rt_load_acquire(&middle->at[(id >> 8) & 255]);
    if (UNLIKELY(low == NULL)) return NULL;
    return (Tree *)rt_load_acquire(&low->at[id & 255]);
}

/* The shelf behind a pointer, made if it is not there; trees mutex held. */
static TreeShelf *
shelf_of(RtPtr *at)
{
    TreeShelf *shelf = (TreeShelf *)rt_load_relaxed(at);
    if (shelf != NULL) return shelf;
    shelf = MEM_NEW(TreeShelf);
    if (shelf != NULL) rt_store_release(at, (void *)shelf);
    return shelf;
}

Err
store__tree_make(Store *store, TreeId id, StoreTreeKind kind, Tree **tree_out)
{
    *tree_out = NULL;
    if (id == TREE_NONE || id >= TREE_ID_END) return ERR_LIMIT;
    TreeShelf *middle = shelf_of(&store->trees[id >> 16]);
    if (middle == NULL) return ERR_NOMEM;
    TreeShelf *low = shelf_of(&middle->at[(id >> 8) & 255]);
    if (low == NULL) return ERR_NOMEM;
    Tree *tree = MEM_NEW(Tree);
    if (tree == NULL) return ERR_NOMEM;
    tree->id = id;
    tree->kind = (u8)kind;
    rt_store_release(&low->at[id & 255], (void *)tree);
    if (id >= rt_load_relaxed(&store->tree_next)) rt_store_release(&store->tree_next, id + 1);
    *tree_out = tree;
    return OK;
}

void
store__tree_empty(Store *store, Tree *tree)
{
    for (MtreeLeaf *leaf = tree->map.first; leaf != NULL; leaf = leaf->next) {
        for (u32 i = 0; i < leaf->count; i++) {
            Version *version = leaf->slot[i];
            while (version != NULL) {
                Version *older = version->older;
                settle__free_version(store, tree, version);
                version = older;
            }
        }
    }
    u64 structure = tree->map.structure;
    mtree_free(&tree->map);
    tree->map.structure = structure + 1; /* Remembered places must not come true again. */
    rt_store_relaxed(&tree->slots, 0);
}

static void
trees_free(Store *store)
{
    u32 end = rt_load_acquire(&store->tree_next);
    for (TreeId id = 1; id < end; id++) {
        Tree *tree = store__tree(store, id);
        if (tree == NULL) continue;
        store__tree_empty(store, tree);
        mem_free(tree);
    }
    for (u32 i = 0; i < STORE_TREE_FAN; i++) {
        TreeShelf *middle = (TreeShelf *)rt_load_relaxed(&store->trees[i]);
        if (middle == NULL) continue;
        for (u32 k = 0; k < STORE_TREE_FAN; k++) {
            mem_free(rt_load_relaxed(&middle->at[k]));
        }
        mem_free(middle);
    }
}

/* ---- one store ---- */

u64
store__durable(const Store *store)
{
    return store->wal == NULL ? U64_MAX : wal_durable(store->wal);
}

bool
store__failed(const Store *store)
{
    return store->wal != NULL && wal_is_failed(store->wal);
}

void
store__after_commit(Store *store)
{
    if (UNLIKELY(file__is_due(store))) file__checkpoint_soon(store);
}

/* An object without trees, log or file. */
static Err
store_new(RtProcess *process, const char *path, const StoreOptions *options, Store **store_out)
{
    *store_out = NULL;
    Store *store = MEM_NEW(Store);
    if (store == NULL) return ERR_NOMEM;
    store->path = mem_strdup(path == NULL ? "" : path);
    if (store->path == NULL) {
        mem_free(store);
        return ERR_NOMEM;
    }
    store->process = process;
    store->in_memory = options->in_memory;
    store->read_only = options->read_only;
    store->references = 1;
    rt_latch_init(&store->txns_latch, STORE_RANK_TXNS);
    rt_latch_init(&store->wait_latch, STORE_RANK_WAIT);
    rt_latch_init(&store->commit_latch, STORE_RANK_COMMIT);
    rt_word_init(&store->last, 1);
    rt_word_init(&store->next_txn_id, 1);
    rt_word_init(&store->tree_next, 1);
    *store_out = store;
    return OK;
}

static void
store_free(Store *store)
{
    if (store == NULL) return;
    file__close(store); /* Ends the helper, which may hold a snapshot. */
    ASSERT(store->live_count == 0 && store->ssi_live == NULL && store->ssi_committed == NULL);
    while (settle__run(store, U64_MAX)) {
    }
    /* What a failed log kept from settling goes with the trees. */
    for (TxnState *state = store->queue_oldest; state != NULL;) {
        TxnState *newer = state->newer;
        for (Version *version = state->first; version != NULL;) {
            Version *next = version->next;
            bool in_list_only = version->kind == VERSION_TREE_CREATE ||
                                version->kind == VERSION_TREE_DROP;
            if (in_list_only) {
                settle__free_version(store, store__tree(store, version->tree), version);
            }
            version = next;
        }
        mem_free(state);
        state = newer;
    }
    trees_free(store);
    while (store->spare_txns != NULL) {
        StoreTxn *txn = store->spare_txns;
        store->spare_txns = txn->newer;
        mem_free(txn);
    }
    wal_close(store->wal);
    mem_free(store->path);
    mem_free(store);
}

static Err
open_file(RtProcess *process, const char *path, const StoreOptions *options, Store **store_out,
          ErrMsg *msg)
{
    Store *store;
    Err err = store_new(process, path, options, &store);
    if (err != OK) return err_set(msg, err, "out of memory");
    err = file__open(store, options, msg);
    if (err != OK) {
        store_free(store);
        return err;
    }
    *store_out = store;
    return OK;
}

static Err
open_memory(RtProcess *process, const char *path, const StoreOptions *options, Store **store_out)
{
    Store *store;
    Err err = store_new(process, path, options, &store);
    if (err != OK) return err;
    Tree *tree;
    err = store__tree_make(store, TREE_ROOT, STORE_TREE_BYTES, &tree);
    if (err != OK) {
        store_free(store);
        return err;
    }
    *store_out = store;
    return OK;
}

/* ---- the registry ---- */

static Err
root_create(RtProcess *process, void **root_out)
{
    (void)process;
    *root_out = MEM_NEW(StoreRoot);
    return *root_out == NULL ? ERR_NOMEM : OK;
}

static void
root_destroy(void *root)
{
    mem_free(root);
}

static Store *
registry_find(StoreRoot *root, const char *path, bool in_memory)
{
    Store *store = root->stores;
    while (store != NULL && (store->in_memory != in_memory || strcmp(store->path, path) != 0)) {
        store = store->next;
    }
    return store;
}

static Err
join(Store *store, const StoreOptions *options, Store **store_out, ErrMsg *msg)
{
    if (store->read_only && !options->read_only) {
        return err_set(msg, ERR_READONLY, "%s is open read-only in this process", store->path);
    }
    store->references++;
    *store_out = store;
    return OK;
}

static Err
open_named(RtProcess *process, StoreRoot *root, const char *path, const StoreOptions *options,
           Store **store_out, ErrMsg *msg)
{
    Store *store = registry_find(root, path, options->in_memory);
    if (store != NULL) return join(store, options, store_out, msg);
    Err err;
    if (options->in_memory) {
        err = open_memory(process, path, options, &store);
        if (err != OK) return err_set(msg, err, "out of memory");
    } else {
        err = open_file(process, path, options, &store, msg);
        if (err != OK) return err;
    }
    store->root = root;
    store->next = root->stores;
    root->stores = store;
    *store_out = store;
    return OK;
}

Err
store_open(RtProcess *process, const char *path, const StoreOptions *options, Store **store_out,
           ErrMsg *msg)
{
    *store_out = NULL;
    if (rt_process_is_foreign(process)) {
        return err_set(msg, ERR_FOREIGN, "the engine was started before fork()");
    }
    if (options->in_memory && (path == NULL || path[0] == 0)) {
        Err err = open_memory(process, NULL, options, store_out);
        return err == OK ? OK : err_set(msg, err, "out of memory");
    }
    if (path == NULL || path[0] == 0) return err_set(msg, ERR_CANTOPEN, "no file name");
    void *root;
    Err err = rt_process_root(RT_SLOT_STORE, root_create, root_destroy, &root);
    if (err != OK) return err_set(msg, err, "out of memory");
    StoreRoot *stores = (StoreRoot *)root;
    char *real = NULL;
    if (!options->in_memory) {
        err = rt_path_real(path, &real, msg);
        if (err == ERR_NOTFOUND) {
            return err_set(msg, ERR_CANTOPEN, "unable to open database file: %s", path);
        }
        if (err != OK) return err;
    }
    rt_mutex_lock(&stores->mutex);
    err = open_named(process, stores, real == NULL ? path : real, options, store_out, msg);
    rt_mutex_unlock(&stores->mutex);
    mem_free(real);
    return err;
}

void
store_close(Store *store)
{
    if (store == NULL) return;
    if (rt_process_is_foreign(store->process)) return; /* The parent's; touch nothing. */
    StoreRoot *root = store->root;
    if (root == NULL) {
        store_free(store);
        return;
    }
    rt_mutex_lock(&root->mutex);
    if (--store->references == 0) {
        Store **link = &root->stores;
        while (*link != store) {
            link = &(*link)->next;
        }
        *link = store->next;
        store_free(store);
    }
    rt_mutex_unlock(&root->mutex);
}

const char *
store_path(const Store *store)
{
    return store->path;
}

bool
store_is_read_only(const Store *store)
{
    return store->read_only;
}

u64
store_change_number(const Store *store)
{
    return rt_load_acquire(&store->change_number);
}

/* ---- background work ---- */

Err
store_step(Store *store, u64 budget, bool *more_out)
{
    *more_out = settle__run(store, budget);
    if (!file__is_due(store)) return OK;
    return file__checkpoint(store, false, NULL);
}

Err
store_checkpoint(Store *store, ErrMsg *msg)
{
    while (settle__run(store, 65536)) {
    }
    return store->file == NULL ? OK : file__checkpoint(store, false, msg);
}

/* ---- watching ---- */

void
store_stats(Store *store, StoreStats *stats_out)
{
    StoreCounters *counters = &store->counters;
    *stats_out = (StoreStats){
        .commits = rt_load_relaxed(&counters->commits),
        .rollbacks = rt_load_relaxed(&counters->rollbacks),
        .row_waits = rt_load_relaxed(&counters->row_waits),
        .deadlocks = rt_load_relaxed(&counters->deadlocks),
        .conflicts = rt_load_relaxed(&counters->conflicts),
        .checkpoints = rt_load_relaxed(&counters->checkpoints),
        .checkpoint_ns_last = rt_load_relaxed(&counters->checkpoint_ns_last),
        .versions_live = rt_load_relaxed(&counters->versions_live),
        .version_bytes = rt_load_relaxed(&counters->version_bytes),
    };
    rt_latch_acquire(&store->txns_latch);
    stats_out->transactions_open = stats_out->snapshots_open = store->live_count;
    rt_latch_release(&store->txns_latch);
    u64 nodes = 0;
    u32 end = rt_load_acquire(&store->tree_next);
    for (TreeId id = 1; id < end; id++) {
        Tree *tree = store__tree(store, id);
        if (tree == NULL) continue;
        rt_rwlock_lock_shared(&tree->lock);
        nodes += tree->map.nodes;
        stats_out->splits += tree->map.splits;
        rt_rwlock_unlock_shared(&tree->lock);
    }
    stats_out->memory_bytes = stats_out->version_bytes + nodes * sizeof(MtreeLeaf) + sizeof(Store);
    if (store->file != NULL) stats_out->file_bytes = rt_load_relaxed(&store->file->file_bytes);
    if (store->wal != NULL) {
        WalStats wal;
        wal_stats(store->wal, &wal);
        stats_out->log_syncs = wal.syncs;
        stats_out->log_bytes = wal.bytes;
        stats_out->group_commits = wal.groups;
    }
}
