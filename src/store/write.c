/*
 * write.c -- put, delete, clear, and the creation and drop of trees.
 *
 * A write finds the key's slot under the exclusive tree lock.  If another running transaction owns
 * the newest version, it lets go of the tree, waits for that transaction and looks again.  Else it
 * judges the newest version and puts its own on top: that version is the row lock.
 */
#include "rt/task.h"
#include "store/store_private.h"
#include "store/txn/ssi.h"

typedef struct RowWrite {
    StoreTxn *txn;
    Tree *tree;
    Slice key;
    StorePut mode;
    bool is_delete;
    Version *version; /* To be linked; taken over when linked. */
    StoreVerdict verdict;
} RowWrite;

/* The newest version that is not just a lock. */
static Version *
newest_of(Version *version)
{
    while (version != NULL && version->kind == VERSION_LOCK) {
        version = version->older;
    }
    return version;
}

/* Was the version committed after the transaction's snapshot?  Raises dep. */
static bool
is_newer(StoreTxn *txn, const Version *version)
{
    if (version == NULL || version->writer == NULL || version->writer == txn->state) return false;
    txn__raise_dep(txn, version->writer);
    u64 ts = rt_load_acquire(&version->writer->status);
    if (ts <= txn->snapshot) return false;
    /* Between the status and `last` its committer may be interrupted: a fresh snapshot would be as
       old as this one, and the statement run again in vain. */
    u32 rounds = 0;
    while (rt_load_acquire(&txn->store->last) < ts) {
        rt_spin(&rounds);
    }
    return true;
}

static Err
stale(StoreTxn *txn)
{
    rt_fetch_add(&txn->store->counters.conflicts, 1);
    return txn__fail(txn, ERR_BUSY_SNAPSHOT, "could not serialize access due to concurrent update");
}

/*
 * The token owner meets a row of a transaction without the token: doom that one and undo its
 * writes of this key here.  They stay in its list, marked, to be freed by its rollback.
 */
static void
doom(Tree *tree, MtreePath *path, TxnState *loser)
{
    rt_store_release(&loser->doomed, 1);
    Version *head = path->leaf->slot[path->index];
    while (head != NULL && head->writer == loser) {
        Version *older = head->older;
        head->flags |= VERSION_DETACHED;
        head->older = NULL;
        tree->unsettled--;
        head = older;
    }
    if (head != NULL) {
        path->leaf->slot[path->index] = head;
        return;
    }
    mtree_remove(&tree->map, path);
    path->exact = false;
}

/* Put the version on top of the chain of its key; tree lock held exclusively. */
static Err
link_version(RowWrite *w, MtreePath *path)
{
    StoreTxn *txn = w->txn;
    Tree *tree = w->tree;
    Version *version = w->version;
    if (path->exact) {
        Version *head = path->leaf->slot[path->index];
        version->older = head;
        path->leaf->slot[path->index] = version;
        if (head->writer == txn->state && head->kind != VERSION_LOCK) {
            head->flags |= VERSION_SUPERSEDED;
        }
    } else {
        Err err = mtree_insert(&tree->map, path, version);
        if (err != OK) return txn__fail(txn, err, "out of memory");
        rt_store_relaxed(&tree->slots, tree->map.slots);
    }
    tree->unsettled++;
    u64 cost = version_cost(version);
    rt_fetch_add(&tree->bytes, cost);
    version->writer = txn->state;
    txn__list_append(txn->state, version);
    w->version = NULL;
    w->verdict = STORE_DONE;
    return OK;
}

/* Decide on the newest version; tree lock held.  *link_out: go on and write. */
static Err
judge(RowWrite *w, Version *head, bool *link_out)
{
    Version *newest = newest_of(head);
    bool present = newest != NULL && newest->kind == VERSION_VALUE;
    bool newer = is_newer(w->txn, newest);
    *link_out = false;
    if (w->mode == STORE_PUT_INSERT && present && !(newer && w->txn->ssi != NULL)) {
        w->verdict = newer ? STORE_EXISTS_NEWER : STORE_EXISTS;
        return OK;
    }
    if (newer) return stale(w->txn);
    if (w->mode == STORE_PUT_UPDATE && !present) {
        w->verdict = STORE_ABSENT;
        return OK;
    }
    *link_out = true;
    return OK;
}

/*
 * One try under the tree lock.  *holder_out set: somebody must end first, and the wait latch is
 * held (it was taken before the tree was let go, so the holder cannot vanish in between).
 */
static Err
row_try(RowWrite *w, TxnState **holder_out)
{
    StoreTxn *txn = w->txn;
    Store *store = txn->store;
    Tree *tree = w->tree;
    MtreePath path;
    *holder_out = NULL;
    rt_rwlock_lock(&tree->lock);
    Err err = txn__usable(txn);
    if (err == OK && UNLIKELY(rt_load_relaxed(&tree->dropped_ts) != 0)) {
        err = txn__fail(txn, ERR_SCHEMA, "the table was dropped");
    }
    if (err != OK) goto done;
    for (;;) {
        mtree_find(&tree->map, w->key, &path);
        Version *head = path.exact ? path.leaf->slot[path.index] : NULL;
        TxnState *writer = head == NULL ? NULL : head->writer;
        if (writer == NULL || writer == txn->state ||
            rt_load_acquire(&writer->status) != TXN_RUNNING) {
            break;
        }
        if (txn->state->owns_token && !writer->owns_token) {
            doom(tree, &path, writer);
            continue;
        }
        rt_latch_acquire(&store->wait_latch);
        if (writer->txn != NULL) {
            *holder_out = writer;
            goto done;
        }
        /* It has just ended: its status tells on the next look. */
        rt_latch_release(&store->wait_latch);
    }
    if (w->is_delete && UNLIKELY(rt_load_relaxed(&tree->key_locks) > 0)) {
        rt_latch_acquire(&store->wait_latch);
        *holder_out = wait__key_holder(txn, tree, w->key);
        if (*holder_out != NULL) goto done;
        rt_latch_release(&store->wait_latch);
    }
    bool link;
    err = judge(w, path.exact ? path.leaf->slot[path.index] : NULL, &link);
    if (err == OK && link) err = link_version(w, &path);

done:
    rt_rwlock_unlock(&tree->lock);
    return err;
}

static Err
row_write(RowWrite *w)
{
    StoreTxn *txn = w->txn;
    u64 deadline_ns = 0;
    u64 resource = WAIT_RESOURCE_ALL;
    Err err;
    for (;;) {
        TxnState *holder;
        err = row_try(w, &holder);
        if (err != OK || holder == NULL) break;
        if (resource == WAIT_RESOURCE_ALL) resource = wait__row_resource(w->tree->id, w->key);
        deadline_ns = txn->wait_ns == 0 ? 0 : rt_deadline_after(txn->wait_ns);
        err = wait__for(txn, holder, resource, deadline_ns, "a row");
        if (err != OK) break;
    }
    /* Perhaps woken for the row, but it was not taken: somebody else may want it. */
    if (resource != WAIT_RESOURCE_ALL && w->version != NULL) wait__pass_on(txn, resource);
    return err;
}

static Err
write_start(StoreTxn *txn, TreeId tree_id, Slice key, Slice value, Tree **tree_out)
{
    Store *store = txn->store;
    Tree *tree = store__tree(store, tree_id);
    *tree_out = tree;
    if (UNLIKELY(tree == NULL)) return txn__fail(txn, ERR_MISUSE, "no such tree: %u", tree_id);
    if (UNLIKELY(store->read_only)) {
        return txn__fail(txn, ERR_READONLY, "attempt to write a readonly database");
    }
    if (UNLIKELY(key.bytes > STORE_KEY_BYTES_MAX)) {
        return txn__fail(txn, ERR_TOOBIG, "a key of %zu bytes is too long", key.bytes);
    }
    if (UNLIKELY(value.bytes > STORE_VALUE_BYTES_MAX)) {
        return txn__fail(txn, ERR_TOOBIG, "string or blob too big");
    }
    if (UNLIKELY(tree->kind == STORE_TREE_INT && key.bytes != 8)) {
        return txn__fail(txn, ERR_MISUSE, "keys of tree %u have 8 bytes", tree_id);
    }
    if (UNLIKELY(store__failed(store))) {
        return txn__fail(txn, ERR_IO, "the log has failed; the store must be opened again");
    }
    if (txn__state(txn) == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    txn->touched = true;
    if (UNLIKELY(txn->ssi != NULL)) {
        rt_store_release(&txn->ssi->ever_wrote, 1);
        return ssi__note_key(txn, tree_id, key); /* Its existence is judged. */
    }
    return OK;
}

static Version *
version_make(Store *store, Tree *tree, VersionKind kind, Slice key, Slice value)
{
    Version *version = version_new(kind, key, value);
    if (version == NULL) return NULL;
    version->tree = tree->id;
    rt_fetch_add(&store->counters.versions_live, 1);
    rt_fetch_add(&store->counters.version_bytes, version_cost(version));
    return version;
}

/* Free a version that was never linked. */
static void
version_unmake(Store *store, Version *version)
{
    if (version == NULL) return;
    rt_fetch_sub(&store->counters.versions_live, 1);
    rt_fetch_sub(&store->counters.version_bytes, version_cost(version));
    mem_free(version);
}

Err
store_put(StoreTxn *txn, TreeId tree_id, Slice key, Slice value, StorePut mode,
          StoreVerdict *verdict_out)
{
    Tree *tree;
    *verdict_out = STORE_DONE;
    Err err = write_start(txn, tree_id, key, value, &tree);
    if (err != OK) return err;
    RowWrite w = {.txn = txn, .tree = tree, .key = key, .mode = mode};
    w.version = version_make(txn->store, tree, VERSION_VALUE, key, value);
    if (w.version == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    w.key = version_key(w.version); /* The caller's may lie in a version that goes meanwhile. */
    err = row_write(&w);
    version_unmake(txn->store, w.version);
    *verdict_out = w.verdict;
    return err;
}

Err
store_delete(StoreTxn *txn, TreeId tree_id, Slice key, StoreVerdict *verdict_out)
{
    Tree *tree;
    *verdict_out = STORE_ABSENT;
    Err err = write_start(txn, tree_id, key, SLICE_NONE, &tree);
    if (err != OK) return err;
    RowWrite w = {.txn = txn, .tree = tree, .mode = STORE_PUT_UPDATE, .is_delete = true};
    w.version = version_make(txn->store, tree, VERSION_TOMBSTONE, key, SLICE_NONE);
    if (w.version == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    w.key = version_key(w.version);
    err = row_write(&w);
    version_unmake(txn->store, w.version);
    *verdict_out = w.verdict;
    return err;
}

Err
store_tree_clear(StoreTxn *txn, TreeId tree_id, u64 *rows_out)
{
    *rows_out = 0;
    StoreCursor *cursor = NULL;
    StoreMark mark = store_txn_mark(txn);
    Err err = store_cursor_open(txn, tree_id, &cursor);
    if (err != OK) return err;
    bool found;
    err = store_cursor_seek(cursor, STORE_SEEK_FIRST, SLICE_NONE, &found);
    while (err == OK && found) {
        StoreRun run;
        err = store_cursor_fetch(cursor, 1024, (size_t)1 << 20, false, &run);
        for (u32 i = 0; err == OK && i < run.rows; i++) {
            StoreVerdict verdict;
            err = store_delete(txn, tree_id, run.key[i], &verdict);
            if (err == OK && verdict == STORE_DONE) *rows_out += 1;
        }
        found = err == OK && !run.end;
    }
    store_cursor_close(cursor);
    if (err != OK) {
        store_txn_undo_to(txn, mark);
        *rows_out = 0;
    }
    return err;
}

/* ---- trees ---- */

Err
store_tree_create(StoreTxn *txn, StoreTreeKind kind, TreeId *tree_out)
{
    Store *store = txn->store;
    *tree_out = TREE_NONE;
    Err err = txn__usable(txn);
    if (err != OK) return err;
    if (store->read_only) {
        return txn__fail(txn, ERR_READONLY, "attempt to write a readonly database");
    }
    if (txn__state(txn) == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    txn->touched = true;
    u8 kind_byte = (u8)kind;
    Version *version = version_new(VERSION_TREE_CREATE, SLICE_NONE, SLICE(&kind_byte, 1));
    if (version == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    rt_mutex_lock(&store->trees_mutex);
    TreeId id = rt_load_relaxed(&store->tree_next);
    Tree *tree = NULL;
    err = store__tree_make(store, id, kind, &tree);
    rt_mutex_unlock(&store->trees_mutex);
    if (err != OK) {
        mem_free(version);
        return txn__fail(txn, err, err == ERR_LIMIT ? "too many trees" : "out of memory");
    }
    version->tree = id;
    rt_fetch_add(&store->counters.versions_live, 1);
    rt_fetch_add(&store->counters.version_bytes, version_cost(version));
    rt_fetch_add(&tree->bytes, version_cost(version));
    version->writer = txn->state;
    txn->state->makes_trees = true;
    txn__list_append(txn->state, version);
    *tree_out = id;
    return OK;
}

Err
store_tree_drop(StoreTxn *txn, TreeId tree_id)
{
    Tree *tree;
    Err err = write_start(txn, tree_id, SLICE("\0\0\0\0\0\0\0\0", 8), SLICE_NONE, &tree);
    if (err != OK) return err;
    if (tree_id == TREE_ROOT) return txn__fail(txn, ERR_MISUSE, "the root tree stays");
    Version *version = version_make(txn->store, tree, VERSION_TREE_DROP, SLICE_NONE, SLICE_NONE);
    if (version == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    rt_fetch_add(&tree->bytes, version_cost(version));
    version->writer = txn->state;
    txn->state->makes_trees = true;
    txn__list_append(txn->state, version);
    return OK;
}

/* The stored counter is the number with its sign bit flipped, so that it compares unsigned. */
#define NUMBER_BIAS ((u64)1 << 63)

Err
store_tree_next_number(StoreTxn *txn, TreeId tree_id, i64 at_least, i64 *number_out)
{
    *number_out = 0;
    Tree *tree = store__tree(txn->store, tree_id);
    if (tree == NULL) return txn__fail(txn, ERR_MISUSE, "no such tree: %u", tree_id);
    u64 wanted = (u64)at_least ^ NUMBER_BIAS;
    u64 last = rt_load_relaxed(&tree->number);
    for (;;) {
        if (last == U64_MAX) return txn__fail(txn, ERR_FULL, "database or disk is full");
        u64 next = MAX_OF(last + 1, wanted);
        if (rt_cas(&tree->number, &last, next)) {
            *number_out = (i64)(next ^ NUMBER_BIAS);
            return OK;
        }
    }
}
