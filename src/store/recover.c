/*
 * recover.c -- the checkpoint, then its undo, then redo.
 *
 * The pages hold what operations up to the cut have done, whether committed or not; what was open
 * at the cut is undone first.  Then the commit records that begin at or after the cut's position
 * are applied in order.  Nobody else sees the store yet, so everything is put in as settled; the
 * writers that pages of the earlier life name are wiped when those are loaded.
 *
 * Where a transaction's pieces lie is gathered by its id, and they are read again when its commit
 * comes, so a long one needs no memory.  A piece that begins before the end of the others replaces
 * what they said from there on (a savepoint was rolled back to, or a commit tried twice), and a new
 * generation forgets all unfinished ones, because ids start again.
 */
#include "store/recover.h"

#include "store/checkpoint.h"
#include "store/file.h"
#include "store/txn/redo.h"
#include "store/version/spill.h"

static LongRef
long_ref_of(Slice value)
{
    LongRef ref = {0};
    ASSERT(value.bytes == sizeof(ref));
    memcpy(&ref, value.p, sizeof(ref));
    return ref;
}

/* ---- trees ---- */

/* Free every page of the tree that can be reached; some may be gone already. */
static Err
tree_free(Store *store, Tree *tree)
{
    TreeId tree_id = tree->map.tree_id;
    Buf ids = {0};
    Err err = buf_append(&ids, &tree->map.root, sizeof(u32));
    while (err == OK && ids.bytes > 0) {
        PageView view;
        ids.bytes -= sizeof(u32);
        err = pool_latch(store->pages_file, load_u32(ids.p + ids.bytes), &view);
        if (err == ERR_NOTFOUND) {
            err = OK;
            continue;
        }
        if (err != OK) break;
        Node node = btree_node(&tree->map, &view);
        const NodeHead *head = node_head(node);
        if (head->tree_id != tree_id) {
            pool_unlatch(&view, false, false); /* The id is another tree's by now. */
            continue;
        }
        if (head->right != NODE_PAGE_NONE) err = buf_append(&ids, &head->right, sizeof(u32));
        for (u32 i = 0; i < head->count && err == OK && head->level > 0; i++) {
            err = buf_append(&ids, &node_slots(node)[i].child, sizeof(u32));
        }
        if (err == OK && head->level > 0) err = buf_append(&ids, &head->child_low, sizeof(u32));
        Buf refs = {0};
        for (u32 i = 0; i < head->count && err == OK && head->level == 0; i++) {
            if ((node_slots(node)[i].flags & NODE_SLOT_LONG) == 0) continue;
            Slice ref = node_read_value(node, i);
            err = buf_append(&refs, ref.p, ref.bytes);
        }
        if (err == OK) {
            store__page_drop(store, &view);
        } else {
            pool_unlatch(&view, false, false);
        }
        for (size_t at = 0; err == OK && at < refs.bytes; at += sizeof(LongRef)) {
            LongRef ref = long_ref_of((Slice){refs.p + at, sizeof(LongRef)});
            long_free(store, &ref);
        }
        buf_free(&refs);
    }
    buf_free(&ids);
    rt_store_relaxed(&tree->gone, 1);
    rt_store_relaxed(&tree->slots, 0);
    return err;
}

/* ---- the description ---- */

typedef struct Described {
    Store *store;
    CkptReader *reader;
    Buf dropped; /* Tree ids. */
    Buf spared;  /* DescribedSpared with their keys: not to be undone by the next spill. */
    Buf spills;  /* DescribedSpill: to be freed. */
    Buf scratch;
    ErrMsg *msg;
} Described;

static Err
damaged(const Described *d, const char *what)
{
    return err_set(d->msg, ERR_CORRUPT, "%s is damaged: the description of its checkpoint %s",
                   d->store->path, what);
}

static Err
read_tree(Described *d)
{
    DescribedTree described;
    Store *store = d->store;
    Err err = ckpt_reader_get(d->reader, &described, sizeof(described), d->msg);
    if (err != OK) return err;
    if (described.kind > STORE_TREE_INT || store__tree(store, described.id) != NULL) {
        return damaged(d, "names a tree wrongly");
    }
    Tree *tree;
    err = store__tree_adopt(store, described.id, (StoreTreeKind)described.kind, described.root,
                            &tree);
    if (err != OK) return err == ERR_LIMIT ? damaged(d, "names a tree wrongly") : err;
    rt_store_relaxed(&tree->created_ts, 1);
    rt_store_relaxed(&tree->slots, described.slots);
    rt_store_relaxed(&tree->number, described.number);
    return described.is_dropped ? buf_append(&d->dropped, &described.id, sizeof(u32)) : OK;
}

static Err
undo_one(Described *d, const DescribedUndo *undo, Slice key, Slice image)
{
    Store *store = d->store;
    Tree *tree = store__tree(store, undo->tree);
    if (tree == NULL) return damaged(d, "undoes a row of no tree");
    if (undo->kind == UNDO_TREE_CREATE) return buf_append(&d->dropped, &undo->tree, sizeof(u32));
    if (undo->kind == UNDO_TREE_DROP) return OK;
    bool restores = undo->kind == UNDO_BEFORE && (undo->slot_flags & NODE_SLOT_TOMBSTONE) == 0;
    u8 flags = undo->slot_flags & NODE_SLOT_LONG;
    if (flags != 0 && image.bytes != sizeof(LongRef)) {
        return damaged(d, "has a long value of wrong form");
    }
    return restores ? row_restore_settled(store, tree, key, image, flags, &d->scratch)
                    : row_remove_settled(store, tree, key);
}

static Err
read_undo(Described *d)
{
    DescribedUndo undo;
    u8 *bytes = NULL;
    Err err = ckpt_reader_get(d->reader, &undo, sizeof(undo), d->msg);
    if (err != OK) return err;
    if (undo.key_bytes > STORE_KEY_BYTES_MAX || undo.image_bytes > d->store->page_bytes) {
        return damaged(d, "undoes a row too long");
    }
    size_t count = (size_t)undo.key_bytes + undo.image_bytes;
    bytes = (u8 *)mem_alloc(count + 1);
    if (bytes == NULL) return ERR_NOMEM;
    err = ckpt_reader_get(d->reader, bytes, count, d->msg);
    if (err == OK) {
        err = undo_one(d, &undo, (Slice){bytes, undo.key_bytes},
                       (Slice){bytes + undo.key_bytes, undo.image_bytes});
    }
    mem_free(bytes);
    return err;
}

static Err
read_spared(Described *d)
{
    DescribedSpared spared;
    Err err = ckpt_reader_get(d->reader, &spared, sizeof(spared), d->msg);
    if (err != OK) return err;
    if (spared.key_bytes > STORE_KEY_BYTES_MAX) return damaged(d, "spares a row too long");
    err = buf_append(&d->spared, &spared, sizeof(spared));
    if (err == OK) err = buf_reserve(&d->spared, d->spared.bytes + spared.key_bytes);
    if (err != OK) return err;
    err = ckpt_reader_get(d->reader, d->spared.p + d->spared.bytes, spared.key_bytes, d->msg);
    d->spared.bytes += spared.key_bytes;
    return err;
}

static bool
is_spared(const Described *d, const SpillEntry *entry)
{
    for (size_t at = 0; at < d->spared.bytes;) {
        DescribedSpared spared;
        memcpy(&spared, d->spared.p + at, sizeof(spared));
        at += sizeof(spared);
        Slice key = {d->spared.p + at, spared.key_bytes};
        if (spared.tree == entry->tree && slice_equal(key, entry->key)) return true;
        at += spared.key_bytes;
    }
    return false;
}

/* Of each key one entry says what was there before the transaction: its other versions count for
   nothing, so the order is free. */
static Err
undo_spilled(Described *d, Btree *map, const SpillEntry *entry, Buf *value)
{
    DescribedUndo undo = {.tree = entry->tree, .kind = entry->kind};
    u8 passed = SPILL_ENTRY_OWN | SPILL_ENTRY_DONE;
    if ((entry->flags & passed) != 0 || is_spared(d, entry)) return OK;
    Slice bytes = SLICE_NONE;
    if (entry->kind == UNDO_BEFORE) {
        SpillImage image;
        bool found;
        Err err = spill_image_read(d->store, map, entry->tree, entry->key, value, &found, &image,
                                   &bytes);
        if (err != OK) return err;
        if (!found) return damaged(d, "lacks an image");
        undo.slot_flags = image.slot_flags;
    }
    return undo_one(d, &undo, entry->key, bytes);
}

static Err
read_spill(Described *d)
{
    DescribedSpill described;
    Btree map = {0};
    Buf pieces = {0}, value = {0};
    Store *store = d->store;
    Err err = ckpt_reader_get(d->reader, &described, sizeof(described), d->msg);
    if (err == OK) err = buf_append(&d->spills, &described, sizeof(described));
    if (err == OK && described.pieces > 0) {
        err = btree_open(&map, store->pages_file, &store->btree_pages, described.id, false,
                         described.root);
    }
    for (u64 i = 0; err == OK && i < described.pieces; i++) {
        SpillReader reader;
        SpillEntry entry;
        err = spill_piece_read(store, &map, i, &pieces, &reader);
        while (err == OK && spill_piece_next(&reader, &entry)) {
            err = undo_spilled(d, &map, &entry, &value);
        }
        if (err == OK && reader.left != 0) err = damaged(d, "has undo that is not readable");
    }
    btree_close(&map);
    buf_free(&pieces);
    buf_free(&value);
    buf_clear(&d->spared);
    return err;
}

/* All that was in spills has been undone, or need not be. */
static Err
spills_free(const Described *d)
{
    Store *store = d->store;
    Err err = OK;
    for (size_t at = 0; err == OK && at < d->spills.bytes; at += sizeof(DescribedSpill)) {
        DescribedSpill described;
        memcpy(&described, d->spills.p + at, sizeof(described));
        Tree tree = {.id = described.id};
        err = btree_open(&tree.map, store->pages_file, &store->btree_pages, described.id, false,
                         described.root);
        if (err == OK) err = tree_free(store, &tree);
        btree_close(&tree.map);
    }
    return err;
}

static Err
read_long(Described *d)
{
    LongRef ref;
    Err err = ckpt_reader_get(d->reader, &ref, sizeof(ref), d->msg);
    if (err == OK) long_free(d->store, &ref);
    return err;
}

static Err
read_things(Described *d)
{
    DescribedStart start;
    u8 kind = DESCRIBED_END;
    Err err = ckpt_reader_get(d->reader, &start, sizeof(start), d->msg);
    if (err == OK && start.version > DESCRIBED_VERSION) err = damaged(d, "is of a newer version");
    rt_store_relaxed(&d->store->long_serial, start.long_serial);
    do {
        if (err == OK) err = ckpt_reader_get(d->reader, &kind, 1, d->msg);
        if (err != OK || kind == DESCRIBED_END) break;
        switch (kind) {
        case DESCRIBED_TREE: err = read_tree(d); break;
        case DESCRIBED_UNDO: err = read_undo(d); break;
        case DESCRIBED_LONG: err = read_long(d); break;
        case DESCRIBED_SPARED: err = read_spared(d); break;
        case DESCRIBED_SPILL: err = read_spill(d); break;
        default: err = damaged(d, "holds something unknown"); break;
        }
    } while (err == OK);
    if (err == OK) err = spills_free(d);
    for (size_t at = 0; err == OK && at < d->dropped.bytes; at += sizeof(u32)) {
        err = tree_free(d->store, store__tree(d->store, load_u32(d->dropped.p + at)));
    }
    return err;
}

/* An error of the store's own, in words. */
static Err
explained(Store *store, Err err, ErrMsg *msg)
{
    if (err == OK || (msg != NULL && msg->err != OK)) return err;
    if (err == ERR_NOMEM) return err_set(msg, err, "out of memory");
    return err_set(msg, err, "%s cannot be recovered", store->path);
}

Err
recover__checkpoint(Store *store, ErrMsg *msg)
{
    Described d = {.store = store, .msg = msg};
    const Super *super = ckpt_super(store->file->ckpt);
    rt_store_relaxed(&store->tree_next, MAX_OF(super->tree_next, TREE_ROOT + 1));
    rt_store_relaxed(&store->last, MAX_OF(super->cut_ts, (u64)1));
    Err err = OK;
    if (super->description != 0) {
        err = ckpt_reader_open(store->file->ckpt, &d.reader, msg);
        if (err == OK) err = read_things(&d);
        ckpt_reader_close(d.reader);
        buf_free(&d.dropped);
        buf_free(&d.spared);
        buf_free(&d.spills);
        buf_free(&d.scratch);
        if (err == OK && store__tree(store, TREE_ROOT) == NULL) {
            err = damaged(&d, "lacks the root tree");
        }
        return explained(store, err, msg);
    }
    Tree *tree;
    err = store__tree_make(store, TREE_ROOT, STORE_TREE_BYTES, &tree);
    if (err == OK) rt_store_relaxed(&tree->created_ts, 1);
    return explained(store, err, msg);
}

/* ---- log ---- */

/* A part of a redo stream, in the log. */
typedef struct PieceAt {
    RtFile *file;
    u64 at;     /* In the file. */
    u64 offset; /* In the stream. */
    u64 bytes;
} PieceAt;

/* The redo stream of one transaction as far as it has come. */
typedef struct Pending {
    struct Pending *next;
    u64 txn_id;
    u64 end;    /* Of the stream. */
    Buf pieces; /* PieceAt */
} Pending;

typedef struct Replay {
    Store *store;
    u64 cut_lsn;
    u64 generation;
    Pending *pending;
    Buf scratch;
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
    buf_free(&pending->pieces);
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

/* Create the tree, perhaps again: its creation was undone above. */
static Err
redo_create(Store *store, TreeId id, StoreTreeKind kind, u64 ts)
{
    Tree *tree, *undone = store__tree(store, id);
    Err err = store__tree_make(store, id, kind, &tree);
    if (err != OK) return err;
    rt_store_relaxed(&tree->created_ts, ts);
    if (undone != NULL) btree_close(&undone->map);
    mem_free(undone);
    return OK;
}

static Err
redo_one(Replay *replay, u64 position, u64 ts, const RedoOp *op)
{
    Store *store = replay->store;
    Tree *tree = store__tree(store, op->tree);
    bool is_there = tree != NULL && rt_load_relaxed(&tree->gone) == 0;
    if (op->kind == REDO_CREATE) {
        bool fits = !is_there && op->value.bytes == 1 && op->value.p[0] <= STORE_TREE_INT;
        if (!fits) return redo_damaged(replay, position, "a tree is created twice");
        return redo_create(store, op->tree, (StoreTreeKind)op->value.p[0], ts);
    }
    if (!is_there) {
        /* Dropped before: a writer that went on beside the drop. */
        if (op->tree < rt_load_relaxed(&store->tree_next)) return OK;
        return redo_damaged(replay, position, "a tree that never was");
    }
    if (op->kind == REDO_DROP) {
        rt_store_relaxed(&tree->dropped_ts, ts);
        return tree_free(store, tree);
    }
    if (op->key.bytes > STORE_KEY_BYTES_MAX || op->value.bytes > STORE_VALUE_BYTES_MAX ||
        (tree->kind == STORE_TREE_INT && op->key.bytes != 8)) {
        return redo_damaged(replay, position, "a key of wrong length");
    }
    if (op->kind == REDO_DELETE) return row_remove_settled(store, tree, op->key);
    return row_put_settled(store, tree, op->key, op->value, &replay->scratch);
}

/* Apply the operations that are whole; *stream_io: the rest. */
static Err
redo_ops(Replay *replay, u64 position, u64 ts, Slice *stream_io)
{
    RedoOp op;
    while (redo_next(stream_io, &op)) {
        Err err = redo_one(replay, position, ts, &op);
        if (err != OK) return explained(replay->store, err, replay->msg);
    }
    return OK;
}

/* All operations of a commit have been taken off its stream; `rest` is what was left. */
static Err
redo_end(Replay *replay, u64 position, u64 ts, u64 rest)
{
    if (rest != 0) return redo_damaged(replay, position, "an operation is not readable");
    if (ts > rt_load_relaxed(&replay->store->last)) rt_store_relaxed(&replay->store->last, ts);
    return OK;
}

/* Read the pieces one after the other; an operation may lie in several. */
static Err
redo_pieces(Replay *replay, u64 position, u64 ts, const Pending *pending)
{
    Buf window = {0};
    Err err = OK;
    for (size_t i = 0; err == OK && i < pending->pieces.bytes; i += sizeof(PieceAt)) {
        PieceAt piece;
        memcpy(&piece, pending->pieces.p + i, sizeof(piece));
        err = buf_reserve(&window, piece.bytes);
        if (err != OK) {
            err_set(replay->msg, err, "out of memory");
            break;
        }
        err = rt_file_read_exact(piece.file, piece.at, window.p + window.bytes, piece.bytes,
                                 replay->msg);
        if (err != OK) break;
        window.bytes += piece.bytes;
        Slice rest = buf_slice(&window);
        err = redo_ops(replay, position, ts, &rest);
        if (rest.bytes < window.bytes && rest.bytes > 0) memmove(window.p, rest.p, rest.bytes);
        window.bytes = rest.bytes;
    }
    if (err == OK) err = redo_end(replay, position, ts, window.bytes);
    buf_free(&window);
    return err;
}

/* Forget what the stream says from `offset` on. */
static void
pieces_cut(Pending *pending, u64 offset)
{
    while (pending->pieces.bytes > 0) {
        u8 *last = pending->pieces.p + pending->pieces.bytes - sizeof(PieceAt);
        PieceAt piece;
        memcpy(&piece, last, sizeof(piece));
        if (piece.offset < offset) {
            piece.bytes = MIN_OF(piece.bytes, offset - piece.offset);
            memcpy(last, &piece, sizeof(piece));
            break;
        }
        pending->pieces.bytes -= sizeof(PieceAt);
    }
    pending->end = offset;
}

/* Add a piece to its transaction; *pending_out NULL: it belongs to nothing that is wanted. */
static Err
piece_add(Replay *replay, const WalRecord *record, Pending **pending_out)
{
    const WalRecordHead *head = record->head;
    Pending *pending = pending_find(replay, head->txn_id);
    *pending_out = NULL;
    if (head->stream_offset == 0 && pending == NULL) {
        pending = MEM_NEW(Pending);
        if (pending == NULL) return err_set(replay->msg, ERR_NOMEM, "out of memory");
        pending->txn_id = head->txn_id;
        pending->next = replay->pending;
        replay->pending = pending;
    }
    if (pending == NULL) return OK; /* Its beginning lies below what is wanted. */
    if (head->stream_offset > pending->end) {
        pending_free(replay, pending);
        return OK;
    }
    if (!PLANT(112)) pieces_cut(pending, head->stream_offset);
    PieceAt piece = {record->file, record->offset, head->stream_offset, record->piece.bytes};
    Err err = buf_append(&pending->pieces, &piece, sizeof(piece));
    if (err != OK) return err_set(replay->msg, err, "out of memory");
    pending->end = head->stream_offset + piece.bytes;
    *pending_out = pending;
    return OK;
}

static Err
replay_record(void *arg, const WalRecord *record)
{
    Replay *replay = (Replay *)arg;
    const WalRecordHead *head = record->head;
    u64 start = record->start;
    if (record->generation != replay->generation) {
        while (replay->pending != NULL) {
            pending_free(replay, replay->pending);
        }
        replay->generation = record->generation;
    }
    bool wanted = start >= replay->cut_lsn;
    if (head->type == WAL_RECORD_COMMIT && head->stream_offset == 0) {
        Pending *void_pieces = pending_find(replay, head->txn_id);
        if (void_pieces != NULL) pending_free(replay, void_pieces);
        if (!wanted) return OK;
        Slice stream = record->piece;
        if (stream.bytes != head->stream_bytes) return redo_damaged(replay, start, "a piece");
        Err err = redo_ops(replay, start, head->ts, &stream);
        return err == OK ? redo_end(replay, start, head->ts, stream.bytes) : err;
    }
    Pending *pending;
    Err err = piece_add(replay, record, &pending);
    if (err != OK) return err;
    if (head->type == WAL_RECORD_CHUNK) return OK;
    if (head->type != WAL_RECORD_COMMIT) return redo_damaged(replay, start, "an unknown record");
    if (!wanted) {
        if (pending != NULL) pending_free(replay, pending);
        return OK;
    }
    if (pending == NULL || pending->end != head->stream_bytes) {
        return redo_damaged(replay, start, "a commit without its beginning");
    }
    err = redo_pieces(replay, start, head->ts, pending);
    pending_free(replay, pending);
    return err;
}

Err
recover__log(Store *store, bool repair, WalScanEnd *end_out, ErrMsg *msg)
{
    StoreFile *file = store->file;
    const Super *super = ckpt_super(file->ckpt);
    Replay replay = {.store = store, .cut_lsn = super->cut_lsn, .msg = msg};
    WalScanStart start = {.store_id = super->store_id,
                          .generation = super->log_generation,
                          .oldest = super->oldest_lsn,
                          .durable = super->cut_lsn};
    Err err = wal_scan(file->dir, file->name, &start, repair, replay_record, &replay, end_out, msg);
    while (replay.pending != NULL) {
        pending_free(&replay, replay.pending);
    }
    buf_free(&replay.scratch);
    return err;
}
