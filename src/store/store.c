/*
 * store.c -- opening, sharing and closing stores; the table of trees; counters.
 *
 * Within a process there is one Store per file, found by its real path, counted by references.
 * The registry hangs on the process (slot RT_SLOT_STORE); its mutex is held through an open and
 * through the last close, so that nobody joins a store that is half there.
 */
#include "rt/host.h"
#include "store/file.h"
#include "store/store_private.h"
#include "store/store_root.h"
#include "store/version/spill.h"
#include "store/wal/wal.h"

/* ---- trees ---- */

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

/* `root` NODE_PAGE_NONE: the tree is new. */
static Err
tree_make(Store *store, TreeId id, StoreTreeKind kind, u32 root, u64 noted_epoch, Tree **tree_out)
{
    *tree_out = NULL;
    if (id == TREE_NONE || id >= STORE_TREE_ID_END) return ERR_LIMIT;
    TreeShelf *middle = shelf_of(&store->trees[id >> 16]);
    if (middle == NULL) return ERR_NOMEM;
    TreeShelf *low = shelf_of(&middle->at[(id >> 8) & 255]);
    if (low == NULL) return ERR_NOMEM;
    Tree *tree = MEM_NEW(Tree);
    if (tree == NULL) return ERR_NOMEM;
    tree->id = id;
    tree->kind = (u8)kind;
    rt_word_init(&tree->noted_epoch, noted_epoch);
    bool is_int = kind == STORE_TREE_INT;
    Err err = root == NODE_PAGE_NONE
                  ? btree_create(&tree->map, store->pages_file, &store->btree_pages, id, is_int)
                  : btree_open(&tree->map, store->pages_file, &store->btree_pages, id, is_int,
                               root);
    if (err != OK) {
        mem_free(tree);
        return err;
    }
    rt_store_release(&low->at[id & 255], (void *)tree);
    if (id >= rt_load_relaxed(&store->tree_next)) rt_store_release(&store->tree_next, id + 1);
    *tree_out = tree;
    return OK;
}

Err
store__tree_make(Store *store, TreeId id, StoreTreeKind kind, Tree **tree_out)
{
    return tree_make(store, id, kind, NODE_PAGE_NONE, 0, tree_out);
}

Err
store__tree_make_running(Store *store, TreeId id, StoreTreeKind kind, Tree **tree_out)
{
    return tree_make(store, id, kind, NODE_PAGE_NONE, U64_MAX, tree_out);
}

Err
store__tree_adopt(Store *store, TreeId id, StoreTreeKind kind, u32 root, Tree **tree_out)
{
    return tree_make(store, id, kind, root, 0, tree_out);
}

/* A leaf of a tree that goes: its long values go too. */
static void
leaf_gone(void *arg, Node node)
{
    Buf *refs = (Buf *)arg;
    for (u32 i = 0; i < node_head(node)->count; i++) {
        u8 flags = node_slots(node)[i].flags;
        if ((flags & (NODE_SLOT_LONG | NODE_SLOT_TOMBSTONE)) != NODE_SLOT_LONG) continue;
        Slice ref = node_read_value(node, i);
        Err ignored = buf_append(refs, ref.p, ref.bytes);
        (void)ignored; /* Short of memory: its pages are lost to the file until it is checked. */
    }
}

typedef struct TreeGoing {
    Buf refs; /* First: leaf_gone() takes it. */
    Store *store;
} TreeGoing;

static void
page_gone(void *arg, PageView *view)
{
    TreeGoing *going = (TreeGoing *)arg;
    store__page_drop(going->store, view);
    for (size_t at = 0; at < going->refs.bytes; at += sizeof(LongRef)) {
        LongRef ref;
        memcpy(&ref, going->refs.p + at, sizeof(ref));
        long_free(going->store, &ref);
    }
    buf_clear(&going->refs);
}

void
store__tree_empty(Store *store, Tree *tree)
{
    rt_store_release(&tree->gone, 1);
    rt_store_relaxed(&tree->slots, 0);
    TreeGoing going = {.store = store};
    btree_drop_pages(&tree->map, leaf_gone, page_gone, &going);
    btree_reclaim(&tree->map);
    buf_free(&going.refs);
}

/* ---- what exists once per process ---- */

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
    pool_spare_free((PoolFile *)rt_load_relaxed(&((StoreRoot *)root)->spare));
    mem_free(root);
}

StoreRoot *
store__root(void)
{
    void *root;
    Err err = rt_process_root(RT_SLOT_STORE, root_create, root_destroy, &root);
    return err == OK ? (StoreRoot *)root : NULL;
}

/* ---- pages ---- */

#define PAGE_ID_END U32_MAX

/* Of stores in memory; a file has its own. */
static Err
memory_page_take(void *arg, u32 *page_id_out)
{
    Store *store = (Store *)arg;
    StorePages *pages = &store->pages;
    rt_latch_acquire(&pages->latch);
    Err err = OK;
    if (pages->free_count > 0) {
        *page_id_out = pages->free[--pages->free_count];
    } else if (pages->next == PAGE_ID_END) {
        err = ERR_LIMIT;
    } else {
        *page_id_out = pages->next++;
    }
    rt_latch_release(&pages->latch);
    return err;
}

static void
memory_page_give(void *arg, u32 page_id)
{
    Store *store = (Store *)arg;
    StorePages *pages = &store->pages;
    rt_latch_acquire(&pages->latch);
    if (pages->free_count == pages->free_room) {
        u32 room = pages->free_room * 2 + 16;
        u32 *ids = (u32 *)mem_realloc(pages->free, room * sizeof(u32));
        if (ids != NULL) {
            pages->free = ids;
            pages->free_room = room;
        }
    }
    /* Short of memory, the number is not used again in this life. */
    if (pages->free_count < pages->free_room) pages->free[pages->free_count++] = page_id;
    rt_latch_release(&pages->latch);
}

Err
store__page_take(Store *store, u32 *page_id_out)
{
    return store->btree_pages.take(store->btree_pages.arg, page_id_out);
}

void
store__page_give(Store *store, u32 page_id)
{
    store->btree_pages.give(store->btree_pages.arg, page_id);
}

void
store__page_drop(Store *store, PageView *view)
{
    u32 page_id = view->page_id;
    PageOp op;
    page_op_begin(store__page_ops(store), &op);
    page_op_touch(&op, view);
    page_op_forget(&op, view);
    pool_drop(view);
    page_op_end(&op);
    store__page_give(store, page_id);
}

PageOps *
store__page_ops(const Store *store)
{
    return store->btree_pages.ops;
}

/* Pages of stores in memory have nowhere to go. */
static Err
no_load(void *arg, u32 page_id, u8 *bytes)
{
    (void)arg;
    (void)page_id;
    (void)bytes;
    return ERR_IO_READ;
}

static Err
no_write(void *arg, u32 page_id, u8 *bytes, u64 *place_out)
{
    (void)arg;
    (void)page_id;
    (void)bytes;
    *place_out = 0;
    return ERR_NOMEM;
}

static void
no_place(void *arg, u32 page_id, u64 place)
{
    (void)arg;
    (void)page_id;
    (void)place;
}

#define PAGE_BYTES_DEFAULT 16384u
#define PAGE_BYTES_MIN     8192u /* Two of the longest keys fit into an inner node. */

u32
store__page_bytes_of(const StoreOptions *options)
{
    u32 wanted = options->page_bytes == 0 ? PAGE_BYTES_DEFAULT : options->page_bytes;
    u32 bytes = PAGE_BYTES_MIN;
    while (bytes < wanted && bytes < NODE_BYTES_MAX) {
        bytes *= 2;
    }
    return bytes;
}

Err
store__pages_open(Store *store, u32 page_bytes, u32 frames, const PoolClient *client,
                  const BtreePages *pages)
{
    store->page_bytes = page_bytes;
    store->entry_bytes_max = node_entry_bytes_max(page_bytes);
    store->btree_pages = *pages;
    StoreRoot *root = store__root();
    PoolFile *spare = root == NULL ? NULL : (PoolFile *)rt_exchange(&root->spare, NULL);
    if (spare != NULL && !pool_renew(spare, page_bytes, frames, client)) {
        pool_spare_free(spare);
        spare = NULL;
    }
    Err err = OK;
    if (spare != NULL) {
        store->pages_file = spare;
        store->pool = pool_of_file(spare);
    } else {
        err = pool_create(page_bytes, frames, &store->pool);
    }
    if (err == OK) {
        pool_set_account(store->pool, &store->account, !store->in_memory);
        store->evictor = (RtEvictor){
            .account = &store->account, .give = pool_give_back, .arg = store->pool};
        rt_process_evictor_add(store->process, &store->evictor);
    }
    if (err != OK || spare != NULL) return err;
    return pool_file_open(store->pool, client, &store->pages_file);
}

static Err
memory_pages_open(Store *store, const StoreOptions *options)
{
    u32 page_bytes = store__page_bytes_of(options);
    PoolClient client = {
        .load = no_load, .write = no_write, .placed = no_place, .discarded = no_place};
    BtreePages pages = {.arg = store, .take = memory_page_take, .give = memory_page_give};
    u64 frames = MIN_OF(rt_memory_bytes() / page_bytes, (u64)U32_MAX / 2); /* What there is. */
    return store__pages_open(store, page_bytes, (u32)MAX_OF(frames, (u64)64), &client, &pages);
}

static void
pages_close(Store *store)
{
    rt_process_evictor_remove(store->process, &store->evictor);
    mem_free(store->pages.free);
    if (store->pages_file == NULL) {
        pool_free(store->pool);
        return;
    }
    PoolFile *spare = pool_retire(store->pages_file);
    StoreRoot *root = store__root();
    if (spare != NULL && root != NULL) spare = (PoolFile *)rt_exchange(&root->spare, (void *)spare);
    pool_spare_free(spare); /* The one before. */
}

static void
trees_free(Store *store)
{
    u32 end = rt_load_acquire(&store->tree_next);
    for (TreeId id = 1; id < end; id++) {
        Tree *tree = store__tree(store, id);
        if (tree == NULL) continue;
        btree_close(&tree->map);
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

void
store__end_writing(Store *store, Err err)
{
    rt_store_release(&store->undo_failed, (u32)err);
    rt_store_release(&store->failed, 1);
    log_line(LOG_ERROR, "%s: %s: %s", store->path, store__failure_text(store), err_text(err));
}

const char *
store__failure_text(const Store *store)
{
    return rt_load_acquire(&store->undo_failed) != 0
               ? "a change could not be undone, since its page cannot be read; the store must be "
                 "opened again"
               : "the log has failed; the store must be opened again";
}

void
store__after_commit(Store *store)
{
    if (UNLIKELY(file__is_due(store))) file__checkpoint_soon(store);
}

static void
store_free(Store *store)
{
    if (store == NULL) return;
    ASSERT(store->live_count == 0 && store->ssi_live == NULL && store->ssi_committed == NULL);
    file__finish(store);
    while (settle__run(store, U64_MAX)) {
    }
    /* What a failed log kept from settling goes with the pages. */
    spill_free_all(store);
    version_map_free(&store->versions);
    txn_table_free(&store->states);
    trees_free(store);
    while (store->spare_txns != NULL) {
        StoreTxn *txn = store->spare_txns;
        store->spare_txns = txn->newer;
        count_free(txn);
        buf_free(&txn->redo);
        buf_free(&txn->scratch);
        buf_free(&txn->got);
        buf_free(&txn->got_newest);
        buf_free(&txn->part);
        mem_free(txn);
    }
    pages_close(store);
    file__close(store);
    wal_close(store->wal);
    mem_free(store->path);
    mem_free(store);
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
    store->account = (MemAccount){
        .parent = rt_process_account(process), .name = "database", .reclaim = rt_process_reclaim};
    store->in_memory = options->in_memory;
    store->read_only = options->read_only;
    store->references = 1;
    rt_latch_init(&store->txns_latch, STORE_RANK_TXNS);
    rt_latch_init(&store->wait_latch, STORE_RANK_WAIT);
    rt_latch_init(&store->commit_latch, STORE_RANK_COMMIT);
    rt_word_init(&store->last, 1);
    rt_latch_init(&store->doom_latch, STORE_RANK_DOOM);
    rt_latch_init(&store->spill_latch, STORE_RANK_SPILLS);
    store->spill_bytes = SPILL_BYTES_DEFAULT;
    txn_table_init(&store->states, &store->account);
    version_map_init(&store->versions, &store->account);
    rt_word_init(&store->tree_next, 1);
    rt_latch_init(&store->pages.latch, STORE_RANK_PAGES);
    store->pages.next = 1;
    *store_out = store;
    return OK;
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
    err = memory_pages_open(store, options);
    if (err == OK) err = store__tree_make(store, TREE_ROOT, STORE_TREE_BYTES, &tree);
    if (err != OK) {
        store_free(store);
        return err;
    }
    *store_out = store;
    return OK;
}

/* ---- the registry ---- */

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

MemAccount *
store_account(Store *store)
{
    return &store->account;
}

/* Does `real` lie directly in the directory, links followed? */
static Err
is_beneath(const char *real, const char *directory, ErrMsg *msg)
{
    char *top;
    Err err = rt_path_real(directory, &top, msg);
    if (err != OK) return err;
    size_t bytes = strcmp(top, "/") == 0 ? 0 : strlen(top);
    if (strncmp(real, top, bytes) != 0 || real[bytes] != '/' ||
        strchr(real + bytes + 1, '/') != NULL)
        err = err_set(msg, ERR_CANTOPEN,
                      "unable to open database file: a link that leads out of %s", directory);
    mem_free(top);
    return err;
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
    StoreRoot *stores = store__root();
    if (stores == NULL) return err_set(msg, ERR_NOMEM, "out of memory");
    Err err = OK;
    char *real = NULL;
    if (!options->in_memory) {
        err = rt_path_real(path, &real, msg);
        if (err == ERR_NOTFOUND) {
            return err_set(msg, ERR_CANTOPEN, "unable to open database file: %s", path);
        }
        if (err == OK && options->beneath != NULL) err = is_beneath(real, options->beneath, msg);
        if (err != OK) {
            mem_free(real);
            return err;
        }
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
    };
    version_map_count(&store->versions, &stats_out->versions_live, &stats_out->version_bytes);
    rt_latch_acquire(&store->txns_latch);
    stats_out->transactions_open = stats_out->snapshots_open = store->live_count;
    rt_latch_release(&store->txns_latch);
    u32 end = rt_load_acquire(&store->tree_next);
    for (TreeId id = 1; id < end; id++) {
        Tree *tree = store__tree(store, id);
        if (tree == NULL) continue;
        stats_out->splits += rt_load_relaxed(&tree->map.splits);
        stats_out->restarts += rt_load_relaxed(&tree->map.restarts);
    }
    PoolStats pool;
    pool_stats(store->pool, &pool);
    stats_out->page_reads = pool.loads;
    stats_out->page_writes = pool.writes;
    if (store->file != NULL) {
        CkptStats ckpt;
        ckpt_stats(store->file->ckpt, &ckpt);
        stats_out->page_writes += ckpt.pages_written + ckpt.chunks_written;
    }
    u64 used = pool.frames - pool.frames_free;
    stats_out->memory_bytes = used * store->page_bytes + stats_out->version_bytes + sizeof(Store);
    if (store->file != NULL) stats_out->file_bytes = rt_load_relaxed(&store->file->file_bytes);
    if (store->wal != NULL) {
        WalStats wal;
        wal_stats(store->wal, &wal);
        stats_out->log_syncs = wal.syncs;
        stats_out->log_bytes = wal.bytes;
        stats_out->group_commits = wal.groups;
    }
}
