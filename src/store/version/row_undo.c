/*
 * row_undo.c -- taking writes back, dooming, purging.
 *
 * Undoing needs no memory: a slot keeps the room of what was in it (node_write()), the Before holds
 * the old value, and where the leaf's table of writers is full the Before goes on as the marker
 * that names the old writer.
 */
#include "rt/task.h"
#include "rt/time.h"
#include "store/txn/redo.h"
#include "store/version/spill.h"

/* A page that could not be read is asked for again, some times: a disk may have hiccups.  Memory
   comes back sooner or later, when pages could be written or other tasks are done. */
#define READ_TRIES   8u
#define READ_PAUSE   ((u64)2000 * 1000) /* ns */
#define MEMORY_TRIES 2000u

Err
row__leaf_for_undo(Tree *tree, Slice key, bool *gone_out, PageView *view_out)
{
    for (u32 tries = 1;; tries++) {
        *gone_out = rt_load_acquire(&tree->gone) != 0;
        if (*gone_out) return OK;
        page_op_throttle(tree->map.pages.ops);
        Err err = btree_leaf_latch(&tree->map, key, 0, view_out);
        if (err == OK || tries >= (err == ERR_NOMEM || err == ERR_FULL ? MEMORY_TRIES : READ_TRIES))
            return err;
        Err ignored = rt_sleep_ns(READ_PAUSE); /* Cut short: then it is tried sooner. */
        (void)ignored;
    }
}

/* ---- one entry ---- */

typedef struct Undoing {
    Store *store;
    Tree *tree;
    Slice key;
    u64 hash;
    PageView view;
    Node node;
    u32 slot;
    bool exact;
    u8 *scratch;
    LongRef dropped; /* The value that was taken back. */
} Undoing;

static void
undoing_look(Undoing *u)
{
    u->node = btree_node(&u->tree->map, &u->view);
    u->slot = node_find(u->node, u->key, &u->exact);
}

/* *gone_out: the tree is gone, and nothing is latched. */
static Err
undoing_latch(Undoing *u, bool *gone_out)
{
    Err err = row__leaf_for_undo(u->tree, u->key, gone_out, &u->view);
    if (err == OK && !*gone_out) undoing_look(u);
    return err;
}

/* The value in the slot will be nobody's. */
static void
slot_forget(Undoing *u)
{
    const NodeSlot *slot = &node_slots(u->node)[u->slot];
    if ((slot->flags & (NODE_SLOT_LONG | NODE_SLOT_TOMBSTONE)) != NODE_SLOT_LONG) return;
    Slice value = node_read_value(u->node, u->slot);
    if (value.bytes == sizeof(LongRef)) memcpy(&u->dropped, value.p, sizeof(LongRef));
}

/* Name the old writer of an image that goes back into its slot; leaf and stripe latched.  *ask_out:
   the Before must go on standing in the chain for it. */
static u8
writer_restore(Undoing *u, const Before *before, bool *ask_out)
{
    Store *store = u->store;
    *ask_out = false;
    if (before->writer == 0) return NODE_WRITER_SETTLED;
    TxnSeen seen = txn_table_look(&store->states, before->writer);
    /* Settled meanwhile; with the bug planted: an unsettled version is taken for settled. */
    if (seen.state == NULL || PLANT(130)) return NODE_WRITER_SETTLED;
    rt_store_release(&seen.state->named, 1);
    u8 writer = node_writer_find(u->node, before->writer);
    if (writer == 0) writer = node_writer_add(u->node, before->writer, u->scratch);
    if (writer != NODE_WRITER_ASK_MAP) return writer;
    node_head(u->node)->flags |= NODE_FLAG_ASKS;
    const Before *top = version_head(&store->versions, u->hash, u->tree->id, u->key);
    *ask_out = top == NULL || top->creator_id != before->writer;
    return writer;
}

/*
 * Undo the write that a Before stands for; leaf latched and touched.  The Before stays in its
 * creator's list, marked, and perhaps in its chain, as a marker.
 */
static void
before_undo(Undoing *u, Before *before, u64 epoch)
{
    Store *store = u->store;
    ASSERT(u->exact && !before_is(before, BEFORE_UNDONE));
    version_lock(&store->versions, u->hash);
    version_unlink(&store->versions, before);
    slot_forget(u);
    bool ask = false;
    u8 writer = node_slots(u->node)[u->slot].writer;
    if (!before_is(before, BEFORE_OWN)) writer = writer_restore(u, before, &ask);
    bool fits = node_write(u->node, u->slot, before_image(before), writer, before->slot_flags,
                           u->scratch);
    ASSERT(fits);
    before->undone = epoch;
    before_mark(before, BEFORE_UNDONE | BEFORE_MARKER);
    if (ask) {
        before->creator_id = before->writer;
        (void)version_link(&store->versions, before);
    }
    version_unlock(&store->versions, u->hash);
}

void
row__before_release(Store *store, Before *before)
{
    before_remove(before->creator, before);
    u64 hash = before->hash;
    version_lock(&store->versions, hash);
    bool linked = before_is(before, BEFORE_LINKED);
    if (linked) before_mark(before, BEFORE_ORPHAN);
    version_unlock(&store->versions, hash);
    if (!linked) before_free(before);
}

/* Take out the marker that named `id` as the writer of an inserted row; stripe not latched. */
static Before *
marker_unlink(Undoing *u, u64 id, u64 epoch)
{
    VersionMap *map = &u->store->versions;
    version_lock(map, u->hash);
    Before *head = version_head(map, u->hash, u->tree->id, u->key);
    if (head == NULL || head->creator_id != id || before_is(head, BEFORE_UNDONE)) {
        head = NULL;
    } else {
        ASSERT(before_is(head, BEFORE_MARKER));
        version_unlink(map, head);
        head->undone = epoch;
        before_mark(head, BEFORE_UNDONE);
    }
    version_unlock(map, u->hash);
    return head;
}

static void
slot_remove(Undoing *u)
{
    slot_forget(u);
    node_remove(u->node, u->slot);
    rt_fetch_sub(&u->tree->slots, 1);
}

/* Undo an insert, unless a token owner has done so; leaf latched and touched. */
static Before *
insert_undo(Undoing *u, u64 id, u64 epoch)
{
    if (!u->exact) return NULL;
    bool ours = row_writer(u->store, u->tree, u->node, u->slot, u->key, u->hash) == id;
    if (!ours && !PLANT(134)) return NULL; /* Else it removes what came after. */
    Before *marker = marker_unlink(u, id, epoch);
    slot_remove(u);
    return marker;
}

/* The rows of a tree that was never there are gone already. */
static void
create_undo(StoreTxn *txn, TreeId tree_id)
{
    Tree *tree = store__tree(txn->store, tree_id);
    rt_store_release(&tree->dropped_ts, 1);
    rt_store_release(&txn->store->has_doomed_trees, 1);
}

static Err
row_undo_entry(StoreTxn *txn, const UndoEntry *entry, Undoing *u, bool *keep_out, u64 *epoch_out)
{
    TxnState *state = txn->state;
    Before *before = entry->kind == UNDO_BEFORE ? undo_before(entry) : NULL;
    Before *gone = before;
    *keep_out = rt_load_acquire(&state->pins) > 0;
    *epoch_out = 0;
    bool tree_gone;
    Err err = undoing_latch(u, &tree_gone);
    if (err != OK) return err;
    if (!tree_gone) {
        PageOp op;
        page_op_begin(u->tree->map.pages.ops, &op);
        page_op_touch(&op, &u->view);
        *keep_out = rt_load_acquire(&state->pins) > 0;
        *epoch_out = op.epoch;
        u16 live = node_head(u->node)->live;
        if (before == NULL) {
            gone = insert_undo(u, rt_load_relaxed(&state->id), op.epoch);
        } else if (!before_is(before, BEFORE_UNDONE)) {
            before_undo(u, before, op.epoch);
        }
        i64 rows = (i64)node_head(u->node)->live - live;
        if (rows != 0) count_note(txn, u->tree, rows);
        undo_pop(&state->undo, *keep_out, op.epoch);
        pool_unlatch(&u->view, true, true);
        page_op_end(&op);
    } else {
        /* The tree is gone, and its slots with it. */
        version_lock(&u->store->versions, u->hash);
        if (before != NULL && before_is(before, BEFORE_LINKED)) {
            version_unlink(&u->store->versions, before);
        }
        version_unlock(&u->store->versions, u->hash);
        undo_pop(&state->undo, *keep_out, 0);
    }
    if (gone != NULL && !*keep_out) row__before_release(u->store, gone);
    return OK;
}

bool
row_undo(StoreTxn *txn, bool keep_lock)
{
    Store *store = txn->store;
    TxnState *state = txn->state;
    u64 redo_at;
    const UndoEntry *entry = undo_newest(&state->undo, &redo_at);
    if (UNLIKELY(entry == NULL)) {
        Err back = spill_in(txn);
        if (back != OK) {
            store__end_writing(store, back);
            return false;
        }
        entry = undo_newest(&state->undo, &redo_at);
    }
    ASSERT(entry != NULL);
    u8 key_copy[STORE_KEY_BYTES_MAX];
    if (entry->kind == UNDO_TREE_CREATE || entry->kind == UNDO_TREE_DROP) {
        if (entry->kind == UNDO_TREE_CREATE) create_undo(txn, entry->tree);
        TreeNote *note = state->tree_notes;
        ASSERT(note != NULL && note->tree == entry->tree);
        state->tree_notes = note->older;
        mem_free(note);
        undo_pop(&state->undo, rt_load_acquire(&state->pins) > 0, 0);
        redo_cut(txn, redo_at);
        return true;
    }
    Slice key = entry->kind == UNDO_BEFORE ? before_key(undo_before(entry)) : undo_key(entry);
    if (key.bytes > 0) memcpy(key_copy, key.p, key.bytes);
    Undoing u = {.store = store,
                 .tree = store__tree(store, entry->tree),
                 .key = {key_copy, key.bytes},
                 .scratch = txn->scratch.p};
    u.hash = version_hash(u.tree->id, u.key);
    if (keep_lock) wait__hold_row(txn, u.tree->id, u.key);
    bool keep;
    u64 epoch;
    Err err = row_undo_entry(txn, entry, &u, &keep, &epoch);
    if (UNLIKELY(err != OK)) {
        store__end_writing(store, err);
        return false;
    }
    redo_cut(txn, redo_at);
    long_free(store, &u.dropped);
    return true;
}

/* ---- dooming ---- */

/* Undo the newest write of the loser to the latched slot: by its image in memory, or the one that
   it has spilled.  True: the image; else the row is gone, or it was in a spill, and `note` must
   say so. */
static bool
doom_row(Undoing *u, u64 loser_id, Before *spilled, u64 epoch)
{
    VersionMap *map = &u->store->versions;
    version_lock(map, u->hash);
    Before *head = version_head(map, u->hash, u->tree->id, u->key);
    version_unlock(map, u->hash);
    /* Only writers change the top of a chain, and we have the leaf. */
    bool has_image = head != NULL && head->creator_id == loser_id &&
                     !before_is(head, BEFORE_MARKER);
    if (has_image) {
        before_undo(u, head, epoch);
        return true;
    }
    while (marker_unlink(u, loser_id, epoch) != NULL) {
    } /* Freed by its own rollback. */
    if (spilled == NULL) {
        slot_remove(u);
        return false;
    }
    version_lock(map, u->hash);
    (void)version_link(map, spilled);
    version_unlock(map, u->hash);
    before_undo(u, spilled, epoch);
    return false;
}

static void
doom_note(Store *store, TxnState *loser, DoomedInsert *note, const Undoing *u, u64 epoch)
{
    *note = (DoomedInsert){.undone = epoch, .tree = u->tree->id, .key_bytes = (u32)u->key.bytes};
    if (u->key.bytes > 0) memcpy(note->key, u->key.p, u->key.bytes);
    rt_latch_acquire(&store->doom_latch);
    note->next = loser->doomed_inserts;
    loser->doomed_inserts = note;
    rt_latch_release(&store->doom_latch);
}

/* A Before that stood for a spilled image: free, unless its chain needs it as a marker. */
static void
spilled_release(Store *store, Before *before)
{
    version_lock(&store->versions, before->hash);
    bool linked = before_is(before, BEFORE_LINKED);
    if (linked) before_mark(before, BEFORE_ORPHAN);
    version_unlock(&store->versions, before->hash);
    if (!linked) before_free(before);
}

/* No undo of anybody moves to or from a spill meanwhile. */
static Err
doom_fixed(Undoing *u, TxnState *loser, u64 loser_id, DoomedInsert **note_io)
{
    Store *store = u->store;
    Before *spilled;
    bool has_spill;
    Err err = spill_image_of(store, loser, loser_id, u->tree, u->key, u->hash, &has_spill,
                             &spilled);
    if (err == OK) err = btree_leaf_latch(&u->tree->map, u->key, 0, &u->view);
    if (err != OK) {
        if (spilled != NULL) before_free(spilled);
        return err;
    }
    u->node = btree_node(&u->tree->map, &u->view);
    u->slot = node_find(u->node, u->key, &u->exact);
    /* While we have the token it cannot commit. */
    TxnSeen seen = txn_table_look(&store->states, loser_id);
    bool ours = u->exact && seen.state == loser && seen.status == TXN_RUNNING &&
                row_writer(store, u->tree, u->node, u->slot, u->key, u->hash) == loser_id;
    if (ours) {
        rt_store_release(&loser->doomed, 1);
        PageOp op;
        page_op_begin(u->tree->map.pages.ops, &op);
        page_op_touch(&op, &u->view);
        if (!doom_row(u, loser_id, spilled, op.epoch)) {
            doom_note(store, loser, *note_io, u, op.epoch);
            *note_io = NULL;
        }
        pool_unlatch(&u->view, true, true);
        page_op_end(&op);
    } else {
        pool_unlatch(&u->view, false, false);
    }
    if (spilled != NULL) spilled_release(store, spilled);
    return OK;
}

Err
row__doom(RowWrite *w, TxnState *loser, u64 loser_id)
{
    Store *store = w->txn->store;
    DoomedInsert *note = (DoomedInsert *)mem_alloc_zeroed(sizeof(DoomedInsert) + w->key.bytes);
    if (note == NULL) return txn__fail(w->txn, ERR_NOMEM, "out of memory");
    Undoing u = {.store = store,
                 .tree = w->tree,
                 .key = w->key,
                 .hash = w->hash,
                 .scratch = w->txn->scratch.p};
    rt_mutex_lock(&store->spill_mutex);
    Err err = doom_fixed(&u, loser, loser_id, &note);
    rt_mutex_unlock(&store->spill_mutex);
    mem_free(note);
    long_free(store, &u.dropped);
    return err == OK ? OK : txn__fail(w->txn, err, "%s", err_text(err));
}

/* ---- purging ---- */

/* Nothing stands under the slot's tombstone any more; stripe latched. */
static bool
chain_is_empty(Undoing *u)
{
    row__drop_orphans(u->store, u->hash, u->tree->id, u->key);
    return version_head(&u->store->versions, u->hash, u->tree->id, u->key) == NULL;
}

void
row_purge(Store *store, Tree *tree, Slice key, u64 hash, u64 id)
{
    Undoing u = {.store = store, .tree = tree, .key = key, .hash = hash};
    if (rt_load_acquire(&tree->gone) != 0) return;
    page_op_throttle(tree->map.pages.ops);
    /* If its page does not come, the tombstone stays: that costs a slot, no more. */
    if (btree_leaf_latch(&tree->map, key, 0, &u.view) != OK) return;
    undoing_look(&u);
    bool removed = false, empty = false;
    PageOp op;
    page_op_begin(tree->map.pages.ops, &op);
    if (u.exact && (node_slots(u.node)[u.slot].flags & NODE_SLOT_TOMBSTONE) != 0) {
        u64 writer = row_writer(store, tree, u.node, u.slot, key, hash);
        bool settled = writer == id || writer == 0 ||
                       txn_table_look(&store->states, writer).state == NULL;
        version_lock(&store->versions, hash);
        removed = settled && chain_is_empty(&u);
        version_unlock(&store->versions, hash);
        if (removed) {
            page_op_touch(&op, &u.view);
            slot_remove(&u);
        }
        empty = node_head(u.node)->count == 0;
    }
    pool_unlatch(&u.view, removed, removed);
    page_op_end(&op);
    if (removed && empty) {
        /* A leaf that stays empty because memory is short costs a step in scans, no more. */
        Err ignored = btree_merge_empty(&tree->map, key);
        (void)ignored;
        btree_reclaim(&tree->map);
    }
}

bool
row_leaf_has_graves(const Store *store, Node node)
{
    const NodeHead *head = node_head(node);
    u32 slots = NODE_LOAD(head->count), live = NODE_LOAD(head->live);
    if (LIKELY(slots < live + ROW_GRAVES_FEW)) return false;
    if (slots < live + ROW_GRAVES && slots < live * 2) return false;
    if (store->read_only || store__failed(store)) return false;
    if ((NODE_LOAD(head->flags) & NODE_FLAG_ASKS) != 0) return false;
    u32 count;
    const u64 *writers = node_writers(node, &count);
    for (u32 i = 0; i < count; i++) {
        u64 id = NODE_LOAD(writers[i]);
        if (id != 0 && txn_table_look(&store->states, id).state != NULL) return false;
    }
    return true;
}

/* Remove the slot if it is a tombstone that nobody needs; leaf latched and touched. */
static bool
grave_remove(Undoing *u)
{
    Store *store = u->store;
    if ((node_slots(u->node)[u->slot].flags & NODE_SLOT_TOMBSTONE) == 0) return false;
    u64 writer = row_writer(store, u->tree, u->node, u->slot, u->key, u->hash);
    if (writer != 0 && txn_table_look(&store->states, writer).state != NULL) return false;
    version_lock(&store->versions, u->hash);
    bool idle = chain_is_empty(u);
    version_unlock(&store->versions, u->hash);
    if (idle) slot_remove(u);
    return idle;
}

void
row_purge_leaf(Store *store, Tree *tree, Slice key)
{
    u8 bytes[STORE_KEY_BYTES_MAX];
    Undoing u = {.store = store, .tree = tree};
    if (rt_load_acquire(&tree->gone) != 0) return;
    page_op_throttle(tree->map.pages.ops);
    if (btree_leaf_latch(&tree->map, key, 0, &u.view) != OK) return; /* Another time. */
    u.node = btree_node(&tree->map, &u.view);
    PageOp op;
    page_op_begin(tree->map.pages.ops, &op);
    page_op_touch(&op, &u.view);
    bool removed = false;
    for (u.slot = node_head(u.node)->count; u.slot-- > 0;) {
        u.key = (Slice){bytes, node_read_key(u.node, u.slot, bytes)};
        u.hash = version_hash(tree->id, u.key);
        removed = grave_remove(&u) || removed;
    }
    bool empty = node_head(u.node)->count == 0;
    pool_unlatch(&u.view, true, removed);
    page_op_end(&op);
    if (!removed || !empty) return;
    Err ignored = btree_merge_empty(&tree->map, key); /* As in row_purge(). */
    (void)ignored;
    btree_reclaim(&tree->map);
}
