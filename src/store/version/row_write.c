/*
 * row_write.c -- writing one row.
 *
 * The steps are those of "write" in the README.  A try latches the leaf and either changes it or
 * says what must happen first: more room, the end of another transaction, a look at the lock table.
 * All memory is asked for before the leaf is touched, so a try that fails has changed nothing.
 */
#include "rt/task.h"
#include "store/txn/redo.h"
#include "store/version/spill.h"

typedef enum TryNext {
    TRY_DONE,
    TRY_AGAIN, /* With room for RowTry.need. */
    TRY_WAIT,  /* For the end of RowTry.holder. */
    TRY_DOOM,  /* RowTry.holder, because we own the token. */
    TRY_HOLDS  /* Look whether somebody holds the key. */
} TryNext;

typedef struct RowTry {
    RowWrite *w;
    PageView view;
    Node node;
    u32 slot;
    bool exact;
    u32 need;
    u64 writer;   /* Of the newest version: id, or 0. */
    TxnSeen seen; /* What became of it. */
    TxnState *holder;
    u64 holder_id;
    u64 holds_seen; /* Store.holds_version when the lock table had nothing against it. */
    bool holds_asked;
} RowTry;

/* The slots of a latched leaf that ask the map, and would hear that they are settled, need not ask
   any more. */
static void
stop_asking(Store *store, Node node)
{
    u8 bytes[STORE_KEY_BYTES_MAX];
    NodeHead *head = node_head(node);
    TreeId tree = head->tree_id;
    bool asks = false;
    for (u32 i = 0; i < head->count; i++) {
        NodeSlot *slot = &node_slots(node)[i];
        if (slot->writer != NODE_WRITER_ASK_MAP) continue;
        Slice key = {bytes, node_read_key(node, i, bytes)};
        u64 hash = version_hash(tree, key);
        version_lock(&store->versions, hash);
        row__drop_orphans(store, hash, tree, key);
        bool settled = version_head(&store->versions, hash, tree, key) == NULL;
        version_unlock(&store->versions, hash);
        if (settled) slot->writer = NODE_WRITER_SETTLED;
        asks = asks || !settled;
    }
    if (!asks) head->flags &= (u8)~NODE_FLAG_ASKS;
}

u8
row__writer_index(Store *store, Node node, u64 id, u8 *scratch)
{
    u8 index = node_writer_find(node, id);
    if (LIKELY(index != 0)) return index;
    index = node_writer_add(node, id, scratch);
    if (LIKELY(index != NODE_WRITER_ASK_MAP)) return index;
    u32 settled = 0;
    for (u32 i = 1; i <= node_head(node)->writers_room; i++) {
        u64 other = node_writer_id(node, (u8)i);
        if (txn_table_look(&store->states, other).state == NULL) settled |= 1u << i;
    }
    /* While nothing in the table is settled, hardly anything is that came later. */
    if (settled == 0) return NODE_WRITER_ASK_MAP;
    if ((node_head(node)->flags & NODE_FLAG_ASKS) != 0) stop_asking(store, node);
    node_writers_settle(node, settled);
    return node_writer_add(node, id, scratch);
}

void
row__drop_orphans(Store *store, u64 hash, TreeId tree, Slice key)
{
    Before *head;
    while ((head = version_head(&store->versions, hash, tree, key)) != NULL &&
           before_is(head, BEFORE_ORPHAN)) {
        if (txn_table_look(&store->states, head->creator_id).state != NULL) return;
        version_unlink(&store->versions, head);
        before_free(head);
    }
}

/* The index of our own id, mostly the one that it had in the leaf before. */
static u8
writer_index(const RowTry *t)
{
    StoreTxn *txn = t->w->txn;
    u64 id = rt_load_relaxed(&txn->state->id);
    u8 index = txn->writer_guess;
    if (index != 0 && index != NODE_WRITER_ASK_MAP && node_writer_id_fast(t->node, index) == id) {
        return index;
    }
    index = row__writer_index(txn->store, t->node, id, txn->scratch.p);
    txn->writer_guess = index;
    return index;
}

/* ---- judging ---- */

static Err
stale(StoreTxn *txn)
{
    rt_fetch_add(&txn->store->counters.conflicts, 1);
    return txn__fail(txn, ERR_BUSY_SNAPSHOT, "could not serialize access due to concurrent update");
}

/* Was the newest version committed after the transaction's snapshot?  Raises dep. */
static bool
is_newer(StoreTxn *txn, const TxnSeen *seen)
{
    if (seen->state == NULL || seen->state == txn->state) return false;
    txn__raise_dep(txn, seen->lsn);
    if (seen->status <= txn->snapshot) return false;
    /* Between the status and `last` its committer may be interrupted: a fresh snapshot would be as
       old as this one, and the statement run again in vain. */
    u32 rounds = 0;
    while (rt_load_acquire(&txn->store->last) < seen->status) {
        rt_spin(&rounds);
    }
    return true;
}

static bool
is_present(const RowTry *t)
{
    return t->exact && (node_slots(t->node)[t->slot].flags & NODE_SLOT_TOMBSTONE) == 0;
}

/* Decide on the newest version.  *write_out: go on and write. */
static Err
judge(RowTry *t, bool *write_out)
{
    RowWrite *w = t->w;
    bool present = is_present(t);
    bool newer = t->exact && is_newer(w->txn, &t->seen);
    *write_out = false;
    if (w->mode == STORE_PUT_INSERT && present && !(newer && w->txn->ssi != NULL)) {
        w->verdict = newer ? STORE_EXISTS_NEWER : STORE_EXISTS;
        return OK;
    }
    if (newer) return stale(w->txn);
    if (w->mode == STORE_PUT_UPDATE && !present) {
        w->verdict = STORE_ABSENT;
        return OK;
    }
    *write_out = true;
    return OK;
}

/* ---- changing ---- */

void
row__writer_keep(Store *store, const Before *before)
{
    if (before->writer == 0 || before_is(before, BEFORE_OWN)) return;
    TxnState *state = txn_table_at(&store->states, (u32)(before->writer & TXN_ID_INDEX_MASK));
    rt_fetch_add(&state->refs, 1);
}

/* An image of what the slot holds now, to be put under a new value. */
static Before *
image_make(const RowTry *t)
{
    const RowWrite *w = t->w;
    const NodeSlot *slot = &node_slots(t->node)[t->slot];
    bool dead = (slot->flags & NODE_SLOT_TOMBSTONE) != 0;
    Slice image = dead ? SLICE_NONE : node_read_value(t->node, t->slot);
    BeforeArena *arena = &w->txn->images;
    Before *before = before_new_in(arena, w->tree->id, w->hash, w->key, image);
    if (before == NULL) return NULL;
    before->slot_flags = slot->flags & (NODE_SLOT_TOMBSTONE | NODE_SLOT_LONG);
    before->writer = t->seen.state == NULL ? 0 : t->writer;
    if (t->seen.state == w->txn->state) {
        before->ts = U64_MAX;
        before_mark_new(before, BEFORE_OWN);
    } else if (t->seen.state != NULL) {
        before->ts = t->seen.status;
        before->lsn = t->seen.lsn;
    }
    return before;
}

static void
before_adopt(const RowWrite *w, Before *before)
{
    TxnState *state = w->txn->state;
    before->creator = state;
    before->creator_id = rt_load_relaxed(&state->id);
    before->seq = state->undo.count;
    if (w->is_delete) before_mark_new(before, BEFORE_DELETES);
    before_append(state, before);
}

/* The own Before that covers this write too, because no mark lies between; NULL: none. */
static Before *
covering(const RowWrite *w)
{
    const StoreTxn *txn = w->txn;
    VersionMap *map = &txn->store->versions;
    version_lock(map, w->hash);
    Before *head = version_head(map, w->hash, w->tree->id, w->key);
    version_unlock(map, w->hash);
    bool covers = head != NULL && head->creator_id == rt_load_relaxed(&txn->state->id) &&
                  head->seq >= txn->mark_last;
    return covers ? head : NULL;
}

/*
 * Is the row's first write of this transaction undone whenever this one is, without a look for what
 * stands for it?  Without a mark all is undone or nothing.  A delete must leave word that its
 * tombstone is to be purged, and what comes over it that it is not.
 */
static ALWAYS_INLINE bool
is_covered(const RowTry *t)
{
    const RowWrite *w = t->w;
    return w->txn->mark_last == 0 && !w->is_delete &&
           (node_slots(t->node)[t->slot].flags & NODE_SLOT_TOMBSTONE) == 0;
}

typedef struct RowPlan {
    Before *before;   /* To be linked: an image, or a marker for ASK_MAP. */
    Before *covering; /* Or this one stands for the write. */
    bool is_covered;  /* Or an earlier write of the transaction, whatever stands for that. */
    bool is_insert;   /* The key counts as absent. */
} RowPlan;

/* Put the value into the leaf; false: no room, and nothing but the table of writers changed. */
static bool
slot_put(const RowTry *t, u8 writer)
{
    const RowWrite *w = t->w;
    u8 *scratch = w->txn->scratch.p;
    if (!t->exact) {
        return node_insert(t->node, t->slot, w->key, w->value, writer, w->slot_flags, scratch);
    }
    if (PLANT(133) && w->is_delete && t->seen.state == w->txn->state) {
        node_remove(t->node, t->slot); /* The row's lock goes with it. */
        return true;
    }
    const NodeSlot *slot = &node_slots(t->node)[t->slot];
    bool kept = (slot->flags & (NODE_SLOT_PADDED | NODE_SLOT_TOMBSTONE)) != 0;
    if (kept && t->seen.state == NULL) node_trim(t->node, t->slot);
    return node_write(t->node, t->slot, w->value, writer, w->slot_flags, scratch);
}

/* Whether the last of the writes that it covers is a delete. */
static void
cover_note(const RowWrite *w, Before *covering)
{
    VersionMap *map = &w->txn->store->versions;
    if (before_is(covering, BEFORE_DELETES) == w->is_delete) return;
    version_lock(map, w->hash);
    if (w->is_delete) {
        before_mark(covering, BEFORE_DELETES);
    } else {
        before_unmark(covering, BEFORE_DELETES);
    }
    version_unlock(map, w->hash);
}

/* Under the leaf's latch: the chain, the undo list, the redo. */
static void
note_write(const RowTry *t, RowPlan *plan, u64 epoch)
{
    RowWrite *w = t->w;
    StoreTxn *txn = w->txn;
    TxnState *state = txn->state;
    VersionMap *map = &txn->store->versions;
    u64 redo_at = redo_position(txn);
    Before *before = plan->before;
    bool orphans = t->exact && t->seen.state == NULL &&
                   (node_head(t->node)->flags & NODE_FLAG_ASKS) != 0;
    if (before != NULL) {
        before_adopt(w, before);
        row__writer_keep(txn->store, before);
        version_lock(map, w->hash);
        if (UNLIKELY(orphans)) row__drop_orphans(txn->store, w->hash, w->tree->id, w->key);
        w->grow = version_link(map, before);
        version_unlock(map, w->hash);
    } else if (UNLIKELY(orphans)) {
        version_lock(map, w->hash);
        row__drop_orphans(txn->store, w->hash, w->tree->id, w->key);
        version_unlock(map, w->hash);
    }
    if (plan->is_covered) {
        /* All is noted. */
    } else if (plan->covering != NULL) {
        cover_note(w, plan->covering);
    } else if (plan->is_insert) {
        undo_append(&state->undo, UNDO_INSERT, w->tree->id, w->key, epoch, redo_at);
        rt_store_release(&state->named, 1);
    } else {
        Slice pointer = {(const u8 *)&before, sizeof(before)};
        undo_append(&state->undo, UNDO_BEFORE, w->tree->id, pointer, epoch, redo_at);
    }
    redo_append(txn, w->is_delete ? REDO_DELETE : REDO_PUT, w->tree->id, w->key, w->content);
}

static bool
plan_make(RowTry *t, RowPlan *plan)
{
    const RowWrite *w = t->w;
    *plan = (RowPlan){0};
    bool own = t->exact && t->seen.state == w->txn->state;
    /* A settled tombstone is as good as no slot. */
    plan->is_insert = !t->exact || (!is_present(t) && t->seen.state == NULL);
    plan->is_covered = own && is_covered(t);
    if (own && !plan->is_covered) plan->covering = covering(w);
    if (plan->is_insert || plan->is_covered || plan->covering != NULL) return true;
    plan->before = image_make(t);
    return plan->before != NULL;
}

/* A long value that is overwritten in place is nobody's from here on. */
static void
long_note(RowTry *t)
{
    const NodeSlot *slot = &node_slots(t->node)[t->slot];
    if ((slot->flags & (NODE_SLOT_LONG | NODE_SLOT_TOMBSTONE)) != NODE_SLOT_LONG) return;
    Slice value = node_read_value(t->node, t->slot);
    ASSERT(value.bytes == sizeof(LongRef));
    memcpy(&t->w->dropped, value.p, sizeof(LongRef));
}

/* Change the latched leaf. */
static Err
change(RowTry *t, TryNext *next_out, bool *changed_out)
{
    RowWrite *w = t->w;
    StoreTxn *txn = w->txn;
    RowPlan plan;
    if (!plan_make(t, &plan)) return txn__fail(txn, ERR_NOMEM, "out of memory");
    PageOp op;
    page_op_begin(w->tree->map.pages.ops, &op);
    page_op_touch(&op, &t->view);
    *changed_out = true;
    Err err = OK;
    bool own = t->exact && t->seen.state == txn->state;
    if (plan.is_covered || plan.covering != NULL) long_note(t);
    w->was_long = is_present(t) && (node_slots(t->node)[t->slot].flags & NODE_SLOT_LONG) != 0;
    u8 writer = own ? node_slots(t->node)[t->slot].writer : writer_index(t);
    if (UNLIKELY(writer == NODE_WRITER_ASK_MAP)) {
        node_head(t->node)->flags |= NODE_FLAG_ASKS;
        if (!own && plan.before == NULL) {
            plan.before = before_new(w->tree->id, w->hash, w->key, SLICE_NONE);
            if (plan.before == NULL) {
                err = txn__fail(txn, ERR_NOMEM, "out of memory");
                goto done;
            }
            before_mark_new(plan.before, BEFORE_MARKER);
        }
        if (plan.before != NULL) before_mark_new(plan.before, BEFORE_ASKED);
    }
    u16 live = node_head(t->node)->live;
    if (!slot_put(t, writer)) {
        before_free(plan.before);
        t->need = btree_need_bytes(w->key, w->value);
        w->dropped = (LongRef){0};
        *next_out = TRY_AGAIN;
        goto done;
    }
    note_write(t, &plan, op.epoch);
    i64 rows = (i64)node_head(t->node)->live - live;
    if (rows != 0) count_note(txn, w->tree, rows);
    if (!t->exact) {
        rt_fetch_add(&w->tree->slots, 1);
        if (w->tree->map.is_int) store__number_note(w->tree, load_be64(w->key.p));
    }
    w->verdict = STORE_DONE;
    w->written = true;

done:
    pool_unlatch(&t->view, true, true);
    page_op_end(&op);
    return err;
}

/* ---- tries ---- */

/* Look at who wrote the slot last; false: somebody stands in the way, *next_out says who. */
static void
owner_check(RowTry *t, TryNext *next_out)
{
    RowWrite *w = t->w;
    Store *store = w->txn->store;
    t->node = btree_node(&w->tree->map, &t->view);
    t->slot = w->tree->map.is_int ? node_find_int(t->node, load_be64(w->key.p), &t->exact)
                                  : node_find(t->node, w->key, &t->exact);
    t->writer = 0;
    t->seen = (TxnSeen){0};
    if (t->exact) {
        u8 writer = node_slots(t->node)[t->slot].writer;
        if (UNLIKELY(writer == NODE_WRITER_ASK_MAP)) {
            t->writer = row_writer(store, w->tree, t->node, t->slot, w->key, w->hash);
        } else if (writer != NODE_WRITER_SETTLED) {
            t->writer = node_writer_id_fast(t->node, writer);
        }
    }
    if (t->writer != 0) t->seen = txn_table_look(&store->states, t->writer);
    if (t->seen.state != NULL && t->seen.state != w->txn->state && t->seen.status == TXN_RUNNING) {
        t->holder = t->seen.state;
        t->holder_id = t->writer;
        *next_out = w->txn->state->owns_token ? TRY_DOOM : TRY_WAIT;
        return;
    }
    if (UNLIKELY(rt_load(&w->tree->key_holds) > 0)) {
        bool known = t->holds_asked && t->holds_seen == rt_load(&store->holds_version);
        if (!known) *next_out = TRY_HOLDS;
    }
}

/* One try; the leaf is let go in any case. */
static Err
row_try(RowTry *t, TryNext *next_out)
{
    RowWrite *w = t->w;
    *next_out = TRY_DONE;
    page_op_throttle(w->tree->map.pages.ops);
    Err err = btree_leaf_latch_near(&w->tree->map, &w->txn->near, w->key, t->need, &t->view);
    if (err != OK) {
        if (rt_load_acquire(&w->tree->gone) != 0) err = ERR_SCHEMA;
        return txn__fail(w->txn, err, "%s",
                         err == ERR_SCHEMA ? "the table was dropped" : err_text(err));
    }
    bool changed = false, write = false;
    err = txn__writable(w->txn);
    if (err == OK && UNLIKELY(rt_load_relaxed(&w->tree->dropped_ts) != 0)) {
        err = txn__fail(w->txn, ERR_SCHEMA, "the table was dropped");
    }
    if (err == OK) owner_check(t, next_out);
    if (*next_out == TRY_DOOM) {
        *next_out = TRY_AGAIN;
        pool_unlatch(&t->view, false, false);
        return row__doom(w, t->holder, t->holder_id);
    }
    if (err == OK && *next_out == TRY_DONE) err = judge(t, &write);
    if (err == OK && write) err = change(t, next_out, &changed);
    if (!changed) pool_unlatch(&t->view, false, false);
    return err;
}

/* Memory that the change must not have to ask for. */
static Err
prepare(RowWrite *w)
{
    StoreTxn *txn = w->txn;
    size_t key_bytes = MAX_OF(w->key.bytes, sizeof(Before *));
    if (spill_is_due(txn)) {
        Err spilled = spill_out(txn);
        if (spilled != OK) return spilled;
    }
    Err err = undo_reserve(&txn->state->undo, key_bytes);
    if (err == OK) err = version_prepare(&txn->store->versions);
    if (err == OK) err = redo_reserve(txn, w->key.bytes + w->content.bytes);
    if (err == OK) err = row_room(txn->store, &txn->scratch);
    if (err == OK && UNLIKELY(txn->counts.count == txn->counts.room)) err = count_reserve(txn);
    return err == OK ? OK : txn__fail(txn, err, "out of memory");
}

/* Somebody may hold the key by name: wait for that, or note that nobody does. */
static Err
holds_look(RowTry *t, u64 resource, u64 deadline_ns)
{
    RowWrite *w = t->w;
    Store *store = w->txn->store;
    rt_latch_acquire(&store->wait_latch);
    t->holds_seen = rt_load(&store->holds_version);
    t->holds_asked = true;
    TxnState *holder = wait__key_holder(w->txn, w->tree, w->key, w->is_delete);
    if (holder != NULL) {
        t->holds_asked = false;
        return wait__for(w->txn, holder, resource, deadline_ns, "a row");
    }
    rt_latch_release(&store->wait_latch);
    return OK;
}

Err
row_write(RowWrite *w)
{
    StoreTxn *txn = w->txn;
    Store *store = txn->store;
    RowTry t; /* The rest is set by each try. */
    t.w = w;
    t.need = 0;
    t.holds_asked = false;
    u64 resource = WAIT_RESOURCE_ALL;
    Err err = prepare(w);
    while (err == OK) {
        TryNext next;
        err = row_try(&t, &next);
        if (err != OK || next == TRY_DONE) break;
        if (next == TRY_AGAIN) continue;
        if (resource == WAIT_RESOURCE_ALL) resource = wait__row_resource(w->tree->id, w->key);
        u64 deadline_ns = txn->wait_ns == 0 ? 0 : rt_deadline_after(txn->wait_ns);
        if (next == TRY_HOLDS) {
            err = holds_look(&t, resource, deadline_ns);
            continue;
        }
        rt_latch_acquire(&store->wait_latch);
        if (!wait__runs(t.holder, t.holder_id)) {
            rt_latch_release(&store->wait_latch);
            continue;
        }
        err = wait__for(txn, t.holder, resource, deadline_ns, "a row");
    }
    /* Perhaps woken for the row, but it was not taken: somebody else may want it. */
    if (resource != WAIT_RESOURCE_ALL && !w->written) wait__pass_on(txn, resource);
    if (UNLIKELY(w->grow)) version_grow(&store->versions, w->hash);
    if (UNLIKELY(w->dropped.bytes != 0)) long_free(store, &w->dropped);
    redo_spill(txn);
    return err;
}
