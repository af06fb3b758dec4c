/*
 * checkpoint.c -- what a checkpoint asks of the store: the cut, and what recovery needs besides
 * the pages.
 *
 * The description says which trees there are and where, what would have to be undone of the
 * transactions that were open at the cut, and which long values only old versions name, so that
 * nothing is lost to the file after a crash.  While it is written the settler stands still: what
 * was there at the cut is still there.
 */
#include "store/checkpoint.h"

#include "store/file.h"
#include "store/version/spill.h"
#include "store/wal/wal.h"

/* ---- the cut ---- */

/* The commit latch with room to pin whoever is open. */
static Err
latch_with_room(Store *store)
{
    StoreFile *file = store->file;
    for (;;) {
        rt_latch_acquire(&store->commit_latch);
        u64 count = open_set_count(store);
        if (count <= file->pinned_room) return OK;
        rt_latch_release(&store->commit_latch);
        u64 room = count + count / 2 + 16;
        TxnState **states = (TxnState **)mem_realloc(file->pinned.states, room * sizeof(*states));
        if (states == NULL) return ERR_NOMEM;
        file->pinned.states = states;
        file->pinned_room = room;
    }
}

static Err
client_cut(void *arg, CkptCut *cut_out, ErrMsg *msg)
{
    Store *store = (Store *)arg;
    StoreFile *file = store->file;
    file->pinned.count = 0;
    rt_mutex_lock(&store->settle_mutex);
    file->holds_settler = true;
    rt_mutex_lock(&store->spill_mutex);
    Err err = latch_with_room(store);
    if (err != OK) return err_set(msg, err, "out of memory");
    cut_out->ts = file->cut_ts = rt_load_relaxed(&store->last);
    cut_out->lsn = wal_next(store->wal);
    cut_out->oldest_lsn = wal_oldest(store->wal, cut_out->lsn);
    cut_out->log_generation = wal_generation(store->wal);
    cut_out->tree_next = rt_load_relaxed(&store->tree_next);
    open_set_pin(store, &file->pinned, file->pinned_room);
    file->cut_epoch = ckpt_cut_here(file->ckpt);
    rt_latch_release(&store->commit_latch);
    return OK;
}

static void
let_go(Store *store)
{
    StoreFile *file = store->file;
    open_set_unpin(store, &file->pinned);
    if (file->holds_settler) {
        rt_mutex_unlock(&store->spill_mutex);
        rt_mutex_unlock(&store->settle_mutex);
    }
    file->holds_settler = false;
}

static void
client_ended(void *arg, bool is_complete)
{
    (void)is_complete;
    let_go((Store *)arg);
}

static Err
client_log_durable(void *arg, u64 lsn, ErrMsg *msg)
{
    Store *store = (Store *)arg;
    if (!file__log_is_ready(store) || PLANT(106)) return OK;
    Err err = wal_flush(store->wal, lsn, true);
    return err == OK ? OK : err_set(msg, err, "%s", wal_failure_text(store->wal, err));
}

/* ---- the description ---- */

typedef struct Describing {
    Store *store;
    CkptStream *stream;
    ErrMsg *msg;
} Describing;

static Err
put(const Describing *d, const void *bytes, size_t count)
{
    return ckpt_stream_put(d->stream, bytes, count, d->msg);
}

static Err
put_kind(const Describing *d, u8 kind)
{
    return put(d, &kind, 1);
}

/* The trees that have pages in the cut. */
static Err
describe_trees(const Describing *d)
{
    Store *store = d->store;
    u32 end = rt_load_acquire(&store->tree_next);
    Err err = OK;
    for (TreeId id = 1; id < end && err == OK; id++) {
        const Tree *tree = store__tree(store, id);
        if (tree == NULL || tree->map.root == 0 || rt_load_relaxed(&tree->gone) != 0) continue;
        if (tree->map.born_epoch > store->file->cut_epoch) continue;
        u64 dropped_ts = rt_load_relaxed(&tree->dropped_ts);
        /* Its page is in the cut, but no undo of its creator that would take it back. */
        bool is_early = rt_load_acquire(&tree->noted_epoch) > store->file->cut_epoch && !PLANT(148);
        DescribedTree described = {
            .id = id,
            .root = tree->map.root,
            .kind = tree->kind,
            .is_dropped = is_early || (dropped_ts != 0 && dropped_ts <= store->file->cut_ts),
            .slots = rt_load_relaxed(&tree->slots),
            .number = rt_load_relaxed(&tree->number),
        };
        err = put_kind(d, DESCRIBED_TREE);
        if (err == OK) err = put(d, &described, sizeof(described));
    }
    return err;
}

static Err
describe_undo(void *arg, const OpenUndo *undo)
{
    const Describing *d = (const Describing *)arg;
    DescribedUndo described = {.tree = undo->tree,
                               .kind = undo->kind,
                               .slot_flags = undo->slot_flags,
                               .key_bytes = (u16)undo->key.bytes,
                               .image_bytes = (u32)undo->image.bytes};
    Err err = put_kind(d, DESCRIBED_UNDO);
    if (err == OK) err = put(d, &described, sizeof(described));
    if (err == OK) err = put(d, undo->key.p, undo->key.bytes);
    return err == OK ? put(d, undo->image.p, undo->image.bytes) : err;
}

/* Long values that only before-images of committed transactions name: the next life has no use for
   them. */
static Err
stripe_longs(VersionStripe *stripe, u64 cut_ts, Buf *refs)
{
    Err err = OK;
    rt_latch_acquire(&stripe->latch);
    for (u32 i = 0; i < stripe->buckets; i++) {
        for (const Before *head = stripe->bucket[i]; head != NULL; head = head->next_bucket) {
            for (const Before *before = head; before != NULL; before = before->older) {
                if (before_is(before, BEFORE_MARKER | BEFORE_UNDONE)) continue;
                if ((before->slot_flags & NODE_SLOT_LONG) == 0) continue;
                u64 ts = rt_load_acquire(&before->creator->status);
                if (ts == TXN_RUNNING || ts > cut_ts) continue;
                Slice image = before_image(before);
                if (err == OK) err = buf_append(refs, image.p, image.bytes);
            }
        }
    }
    rt_latch_release(&stripe->latch);
    return err;
}

static Err
describe_longs(const Describing *d)
{
    Buf refs = {0};
    Err err = OK;
    for (u32 i = 0; i < VERSION_STRIPES && err == OK; i++) {
        err = stripe_longs(&d->store->versions.stripes[i], d->store->file->cut_ts, &refs);
    }
    if (err != OK) err = err_set(d->msg, err, "out of memory");
    for (size_t at = 0; at < refs.bytes && err == OK; at += sizeof(LongRef)) {
        err = put_kind(d, DESCRIBED_LONG);
        if (err == OK) err = put(d, refs.p + at, sizeof(LongRef));
    }
    buf_free(&refs);
    return err;
}

/* ---- spills ---- */

static bool
is_pinned(const StoreFile *file, const TxnState *state)
{
    bool found = false;
    for (u64 i = 0; i < file->pinned.count && !found; i++) {
        found = file->pinned.states[i] == state;
    }
    return found;
}

/* Rows that a token owner had undone at the cut. */
static Err
describe_spared(const Describing *d, const TxnState *state)
{
    Err err = OK;
    Store *store = d->store;
    Buf notes = {0};
    rt_latch_acquire(&store->doom_latch);
    for (const DoomedInsert *note = state->doomed_inserts; note != NULL && err == OK;
         note = note->next) {
        if (note->undone > store->file->cut_epoch) continue;
        DescribedSpared spared = {.tree = note->tree, .key_bytes = note->key_bytes};
        err = buf_append(&notes, &(u8){DESCRIBED_SPARED}, 1);
        if (err == OK) err = buf_append(&notes, &spared, sizeof(spared));
        if (err == OK) err = buf_append(&notes, note->key, note->key_bytes);
    }
    rt_latch_release(&store->doom_latch);
    if (err != OK) err = err_set(d->msg, err, "out of memory");
    if (err == OK) err = put(d, notes.p, notes.bytes);
    buf_free(&notes);
    return err;
}

/* Long values that the spill of a committed transaction names, and nothing that the next life
   knows. */
static Err
describe_spill_longs(const Describing *d, Spill *spill)
{
    SpillReader reader;
    SpillEntry entry;
    Err err = OK;
    Buf value = {0};
    for (u64 i = spill->settled; spill->has_work && i < spill->pieces && err == OK; i++) {
        err = spill_piece_read(d->store, &spill->tree.map, i, &value, &reader);
        if (err != OK) err_set(d->msg, err, "undo of a transaction cannot be read");
        while (err == OK && spill_piece_next(&reader, &entry)) {
            bool is_long = entry.kind == UNDO_BEFORE && entry.image.bytes == sizeof(LongRef) &&
                           (entry.slot_flags & NODE_SLOT_LONG) != 0;
            if (!is_long || (entry.flags & SPILL_ENTRY_DONE) != 0) continue;
            err = put_kind(d, DESCRIBED_LONG);
            if (err == OK) err = put(d, entry.image.p, sizeof(LongRef));
        }
    }
    buf_free(&value);
    return err;
}

/* No spill has changed since the cut: the mutexes of the settler and of spills are held. */
static Err
describe_spills(const Describing *d)
{
    Err err = OK;
    for (Spill *spill = d->store->spills; spill != NULL && err == OK; spill = spill->next) {
        DescribedSpill described = {.id = spill->tree.id, .root = spill->tree.map.root};
        if (is_pinned(d->store->file, spill->state)) {
            described.pieces = spill->pieces;
            err = describe_spared(d, spill->state);
        } else {
            err = describe_spill_longs(d, spill);
        }
        if (err == OK) err = put_kind(d, DESCRIBED_SPILL);
        if (err == OK) err = put(d, &described, sizeof(described));
    }
    return err;
}

static Err
client_describe(void *arg, CkptStream *stream, ErrMsg *msg)
{
    Store *store = (Store *)arg;
    StoreFile *file = store->file;
    Describing d = {store, stream, msg};
    DescribedStart start = {.version = DESCRIBED_VERSION,
                            .long_serial = (u32)rt_load_relaxed(&store->long_serial)};
    Err err = put(&d, &start, sizeof(start));
    if (err == OK) err = describe_trees(&d);
    for (u64 i = 0; i < file->pinned.count && err == OK; i++) {
        err = open_set_undo(store, file->pinned.states[i], file->cut_epoch, describe_undo, &d);
    }
    if (err == OK) err = describe_spills(&d);
    if (err == OK) err = describe_longs(&d);
    if (err == OK) err = put_kind(&d, DESCRIBED_END);
    let_go(store);
    return err;
}

CkptClient
checkpoint__client(Store *store)
{
    return (CkptClient){.arg = store,
                        .cut = client_cut,
                        .describe = client_describe,
                        .log_durable = client_log_durable,
                        .ended = client_ended};
}
