/*
 * recover.c -- image, then redo.
 *
 * The image holds exactly what was committed up to its cut; commit records that begin at or after
 * the cut's position are applied in order.  Nobody else sees the store yet, so everything is put
 * in as settled.  A transaction's pieces are gathered by its id; a piece at offset 0 starts anew
 * (a commit may have been tried twice), and a new generation forgets all unfinished ones, because
 * ids start again.
 */
#include "store/recover.h"

#include "store/txn/redo.h"

/* ---- image ---- */

typedef struct Loader {
    Store *store;
    Tree *tree;
} Loader;

static Version *
version_settled(Store *store, Tree *tree, Slice key, Slice value)
{
    Version *version = version_new(VERSION_VALUE, key, value);
    if (version == NULL) return NULL;
    version->tree = tree->id;
    u64 cost = version_cost(version);
    rt_fetch_add(&tree->bytes, cost);
    rt_fetch_add(&store->counters.versions_live, 1);
    rt_fetch_add(&store->counters.version_bytes, cost);
    return version;
}

static Err
load_tree(void *arg, TreeId id, StoreTreeKind kind)
{
    Loader *loader = (Loader *)arg;
    if (store__tree(loader->store, id) != NULL) return ERR_CORRUPT;
    Err err = store__tree_make(loader->store, id, kind, &loader->tree);
    if (err == OK) rt_store_relaxed(&loader->tree->created_ts, 1);
    return err == ERR_LIMIT ? ERR_CORRUPT : err;
}

static Err
load_row(void *arg, Slice key, Slice value)
{
    Loader *loader = (Loader *)arg;
    Tree *tree = loader->tree;
    if (tree->kind == STORE_TREE_INT && key.bytes != 8) return ERR_CORRUPT;
    MtreePath path;
    mtree_find(&tree->map, key, &path);
    bool rises = path.leaf == NULL ||
                 (path.leaf == tree->map.last && path.index == path.leaf->count);
    if (!rises) return ERR_CORRUPT;
    Version *version = version_settled(loader->store, tree, key, value);
    if (version == NULL) return ERR_NOMEM;
    Err err = mtree_insert(&tree->map, &path, version);
    if (err != OK) {
        settle__free_version(loader->store, tree, version);
        return err;
    }
    rt_store_relaxed(&tree->slots, tree->map.slots);
    return OK;
}

Err
recover__image(Store *store, RtFile *file, const ImageHead *head, ErrMsg *msg)
{
    Loader loader = {.store = store};
    ImageSink sink = {.arg = &loader, .tree = load_tree, .row = load_row};
    Err err = image_read(file, head, &sink, msg);
    if (err == ERR_NOMEM) return err_set(msg, err, "out of memory");
    if (err != OK) return err;
    if (store__tree(store, TREE_ROOT) == NULL) {
        return err_set(msg, ERR_CORRUPT, "%s is damaged: the root tree is missing",
                       rt_file_name(file));
    }
    rt_store_relaxed(&store->tree_next, head->tree_next);
    rt_store_relaxed(&store->last, head->cut_ts);
    return OK;
}

/* ---- log ---- */

/* The redo stream of one transaction as far as it has come. */
typedef struct Pending {
    struct Pending *next;
    u64 txn_id;
    Buf stream;
} Pending;

typedef struct Replay {
    Store *store;
    u64 cut_lsn;
    u64 generation;
    Pending *pending;
    ErrMsg *msg;
} Replay;

static void
pending_free(Replay *replay, Pending *pending)
{
    Pending **link = &replay->pending;
    while (*link != pending) {
        link = &(*link)->next;
    }
    *link = pending->next;
    buf_free(&pending->stream);
    mem_free(pending);
}

static Pending *
pending_find(const Replay *replay, u64 txn_id)
{
    Pending *pending = replay->pending;
    while (pending != NULL && pending->txn_id != txn_id) {
        pending = pending->next;
    }
    return pending;
}

static Err
redo_damaged(const Replay *replay, u64 position, const char *what)
{
    return err_set(replay->msg, ERR_CORRUPT, "the log is damaged: %s, position %llu", what,
                   (unsigned long long)position);
}

static Err
redo_row(Store *store, Tree *tree, const RedoOp *op)
{
    MtreePath path;
    mtree_find(&tree->map, op->key, &path);
    if (op->kind == REDO_DELETE) {
        if (!path.exact) return OK; /* Inserted and deleted in one transaction. */
        Version *old = path.leaf->slot[path.index];
        mtree_remove(&tree->map, &path);
        settle__free_version(store, tree, old);
    } else {
        Version *version = version_settled(store, tree, op->key, op->value);
        if (version == NULL) return ERR_NOMEM;
        if (path.exact) {
            settle__free_version(store, tree, path.leaf->slot[path.index]);
            path.leaf->slot[path.index] = version;
        } else {
            Err err = mtree_insert(&tree->map, &path, version);
            if (err != OK) {
                settle__free_version(store, tree, version);
                return err;
            }
        }
    }
    rt_store_relaxed(&tree->slots, tree->map.slots);
    return OK;
}

static Err
redo_one(Replay *replay, u64 position, u64 ts, const RedoOp *op)
{
    Store *store = replay->store;
    Tree *tree = store__tree(store, op->tree);
    if (op->kind == REDO_CREATE) {
        bool fits = tree == NULL && op->value.bytes == 1 && op->value.p[0] <= STORE_TREE_INT;
        if (!fits) return redo_damaged(replay, position, "a tree is created twice");
        Err err = store__tree_make(store, op->tree, (StoreTreeKind)op->value.p[0], &tree);
        if (err == OK) rt_store_relaxed(&tree->created_ts, ts);
        return err;
    }
    if (tree == NULL || rt_load_relaxed(&tree->dropped_ts) != 0) {
        /* Dropped before: a writer that went on beside the drop. */
        if (op->tree < rt_load_relaxed(&store->tree_next)) return OK;
        return redo_damaged(replay, position, "a tree that never was");
    }
    if (op->kind == REDO_DROP) {
        store__tree_empty(store, tree);
        rt_store_relaxed(&tree->dropped_ts, ts);
        return OK;
    }
    if (op->key.bytes > STORE_KEY_BYTES_MAX || op->value.bytes > STORE_VALUE_BYTES_MAX ||
        (tree->kind == STORE_TREE_INT && op->key.bytes != 8)) {
        return redo_damaged(replay, position, "a key of wrong length");
    }
    return redo_row(store, tree, op);
}

static Err
redo_commit(Replay *replay, u64 position, u64 ts, Slice stream)
{
    RedoOp op;
    while (redo_next(&stream, &op)) {
        Err err = redo_one(replay, position, ts, &op);
        if (err == ERR_NOMEM) return err_set(replay->msg, err, "out of memory");
        if (err != OK) return err;
    }
    if (stream.bytes != 0) return redo_damaged(replay, position, "an operation is not readable");
    if (ts > rt_load_relaxed(&replay->store->last)) rt_store_relaxed(&replay->store->last, ts);
    return OK;
}

/* Add a piece to its transaction; *pending_out NULL: it belongs to nothing that is wanted. */
static Err
piece_add(Replay *replay, const WalRecordHead *head, Slice piece, Pending **pending_out)
{
    *pending_out = NULL;
    Pending *pending = pending_find(replay, head->txn_id);
    if (head->stream_offset == 0 && pending != NULL) {
        pending_free(replay, pending);
        pending = NULL;
    }
    if (head->stream_offset == 0) {
        pending = MEM_NEW(Pending);
        if (pending == NULL) return err_set(replay->msg, ERR_NOMEM, "out of memory");
        pending->txn_id = head->txn_id;
        pending->next = replay->pending;
        replay->pending = pending;
    }
    *pending_out = pending;
    if (pending == NULL) return OK; /* Its beginning lies below what is wanted. */
    if (pending->stream.bytes != head->stream_offset) {
        *pending_out = NULL;
        pending_free(replay, pending);
        return OK;
    }
    Err err = buf_append(&pending->stream, piece.p, piece.bytes);
    return err == OK ? OK : err_set(replay->msg, err, "out of memory");
}

static Err
replay_record(void *arg, u64 generation, u64 start, u64 end, const WalRecordHead *head, Slice piece)
{
    Replay *replay = (Replay *)arg;
    (void)end;
    if (generation != replay->generation) {
        while (replay->pending != NULL) {
            pending_free(replay, replay->pending);
        }
        replay->generation = generation;
    }
    bool wanted = start >= replay->cut_lsn;
    if (head->type == WAL_RECORD_COMMIT && head->stream_offset == 0) {
        if (!wanted) return OK;
        if (piece.bytes != head->stream_bytes) return redo_damaged(replay, start, "a piece");
        return redo_commit(replay, start, head->ts, piece);
    }
    Pending *pending;
    Err err = piece_add(replay, head, piece, &pending);
    if (err != OK) return err;
    if (head->type == WAL_RECORD_CHUNK) return OK;
    if (head->type != WAL_RECORD_COMMIT) return redo_damaged(replay, start, "an unknown record");
    if (!wanted) {
        if (pending != NULL) pending_free(replay, pending);
        return OK;
    }
    if (pending == NULL || pending->stream.bytes != head->stream_bytes) {
        return redo_damaged(replay, start, "a commit without its beginning");
    }
    err = redo_commit(replay, start, head->ts, buf_slice(&pending->stream));
    pending_free(replay, pending);
    return err;
}

Err
recover__log(Store *store, RtDir *dir, const char *name, const ImageHead *head, bool repair,
             WalScanEnd *end_out, ErrMsg *msg)
{
    Replay replay = {.store = store, .cut_lsn = head->cut_lsn, .msg = msg};
    WalScanStart start = {.store_id = head->store_id,
                          .generation = head->log_generation,
                          .oldest = head->oldest_lsn,
                          .durable = head->cut_lsn};
    Err err = wal_scan(dir, name, &start, repair, replay_record, &replay, end_out, msg);
    while (replay.pending != NULL) {
        pending_free(&replay, replay.pending);
    }
    return err;
}
