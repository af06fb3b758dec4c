/*
 * write.c -- put, delete, clear, and the creation and drop of trees.
 *
 * Rows are written by version/row_write.c; here are the face and what is not a row.
 */
#include "store/longval/parts.h"
#include "store/txn/open_set.h"
#include "store/txn/redo.h"
#include "store/txn/ssi.h"
#include "store/version/row.h"

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
        return txn__fail(txn, ERR_IO, "%s", store__failure_text(store));
    }
    if (txn__state(txn) == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    open_set_enter(store, txn->state);
    txn->touched = true;
    if (UNLIKELY(txn->ssi != NULL)) {
        rt_store_release(&txn->ssi->ever_wrote, 1);
        return ssi__note_key(txn, tree_id, key); /* Its existence is judged. */
    }
    return OK;
}

/* The value goes to pages of its own; the entry has a reference. */
static Err
long_put(RowWrite *w, LongRef *ref)
{
    StoreTxn *txn = w->txn;
    Err err = long_write(txn->store, w->tree->id, w->content, ref);
    if (err != OK) return txn__fail(txn, err, "%s", err_text(err));
    w->value = (Slice){(const u8 *)ref, sizeof(*ref)};
    w->slot_flags = NODE_SLOT_LONG;
    return OK;
}

Err
store_put(StoreTxn *txn, TreeId tree_id, Slice key, Slice value, StorePut mode,
          StoreVerdict *verdict_out)
{
    Tree *tree;
    *verdict_out = STORE_DONE;
    Err err = write_start(txn, tree_id, key, value, &tree);
    if (err != OK) return err;
    RowWrite w = {.txn = txn,
                  .tree = tree,
                  .key = key,
                  .value = value,
                  .content = value,
                  .mode = mode,
                  .hash = version_hash(tree_id, key)};
    LongRef ref = {0};
    if (UNLIKELY(key.bytes + value.bytes > txn->store->entry_bytes_max)) {
        err = long_put(&w, &ref);
        if (err != OK) return err;
    }
    err = row_write(&w);
    if (UNLIKELY(ref.bytes > 0) && !w.written) long_free(txn->store, &ref);
    *verdict_out = w.verdict;
    if (UNLIKELY(w.was_long) && w.written && err == OK) return parts_forget(txn, tree_id, key);
    return err;
}

Err
store_delete(StoreTxn *txn, TreeId tree_id, Slice key, StoreVerdict *verdict_out)
{
    Tree *tree;
    *verdict_out = STORE_ABSENT;
    Err err = write_start(txn, tree_id, key, SLICE_NONE, &tree);
    if (err != OK) return err;
    RowWrite w = {.txn = txn,
                  .tree = tree,
                  .key = key,
                  .mode = STORE_PUT_UPDATE,
                  .is_delete = true,
                  .slot_flags = NODE_SLOT_TOMBSTONE,
                  .hash = version_hash(tree_id, key)};
    err = row_write(&w);
    *verdict_out = w.verdict;
    if (UNLIKELY(w.was_long) && w.written && err == OK) return parts_forget(txn, tree_id, key);
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

/* Put the creation or drop of a tree on the undo list and into the redo stream; both have room. */
static void
note_tree(StoreTxn *txn, TreeNote *note, UndoKind kind, TreeId tree, u8 tree_kind)
{
    Store *store = txn->store;
    PageOp op;
    u64 redo_at = redo_position(txn);
    page_op_begin(store__page_ops(store), &op);
    UndoEntry *entry = undo_append(&txn->state->undo, kind, tree, SLICE_NONE, op.epoch, redo_at);
    entry->tree_kind = tree_kind;
    if (kind == UNDO_TREE_CREATE) {
        rt_store_release(&store__tree(store, tree)->noted_epoch, op.epoch);
    }
    page_op_end(&op);
    note->tree = tree;
    note->kind = (u8)kind;
    note->older = txn->state->tree_notes;
    txn->state->tree_notes = note;
    if (kind == UNDO_TREE_CREATE) {
        redo_append(txn, REDO_CREATE, tree, SLICE_NONE, (Slice){&tree_kind, 1});
    } else {
        redo_append(txn, REDO_DROP, tree, SLICE_NONE, SLICE_NONE);
    }
}

static Err
note_reserve(StoreTxn *txn, TreeNote **note_out)
{
    *note_out = MEM_NEW(TreeNote);
    Err err = *note_out == NULL ? ERR_NOMEM : OK;
    if (err == OK) err = undo_reserve(&txn->state->undo, 0);
    if (err == OK) err = redo_reserve(txn, 1);
    if (err == OK) return OK;
    mem_free(*note_out);
    return txn__fail(txn, err, "out of memory");
}

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
    open_set_enter(store, txn->state);
    txn->touched = true;
    TreeNote *note;
    err = note_reserve(txn, &note);
    if (err != OK) return err;
    rt_mutex_lock(&store->trees_mutex);
    TreeId id = rt_load_relaxed(&store->tree_next);
    Tree *tree = NULL;
    err = store__tree_make_running(store, id, kind, &tree);
    rt_mutex_unlock(&store->trees_mutex);
    if (err != OK) {
        mem_free(note);
        return txn__fail(txn, err, err == ERR_LIMIT ? "too many trees" : "out of memory");
    }
    rt_latch_acquire(&store->commit_latch);
    tree->row_count.is_known = true; /* No rows. */
    rt_latch_release(&store->commit_latch);
    note_tree(txn, note, UNDO_TREE_CREATE, id, (u8)kind);
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
    TreeNote *note;
    err = parts_forget_tree(txn, tree_id);
    if (err == OK) err = note_reserve(txn, &note);
    if (err != OK) return err;
    note_tree(txn, note, UNDO_TREE_DROP, tree_id, 0);
    return OK;
}

/* The stored counter is the number with its sign bit flipped, so that it compares unsigned. */
#define NUMBER_BIAS ((u64)1 << 63)

/* The next number, at least `wanted`. */
static Err
number_take(StoreTxn *txn, Tree *tree, u64 wanted, i64 *number_out)
{
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

Err
store_tree_next_number(StoreTxn *txn, TreeId tree_id, i64 at_least, i64 *number_out)
{
    *number_out = 0;
    Tree *tree = store__tree(txn->store, tree_id);
    if (tree == NULL) return txn__fail(txn, ERR_MISUSE, "no such tree: %u", tree_id);
    return number_take(txn, tree, (u64)at_least ^ NUMBER_BIAS, number_out);
}

/* No key of the leaf, which is the last one, is above *most_out. */
static void
leaf_most(Node node, u64 *most_out)
{
    const NodeHead *head = node_head(node);
    NodeFences fences = node_fences(node);
    *most_out = NUMBER_BIAS; /* Nothing there: 1 follows. */
    if (head->count > 0) {
        *most_out = node_slots(node)[head->count - 1].head;
    } else if (fences.low.bytes == 8) {
        *most_out = load_be64(fences.low.p);
    }
}

/*
 * Make sure that the counter is at or above every key.  First those who put keys are told to move
 * it (store__number_note()), then the last leaf is read: a key that was put without a note is in
 * it, since who puts one looks at the order with the leaf latched.
 */
static Err
numbers_learn(StoreTxn *txn, Tree *tree)
{
    u32 unknown = TREE_NUMBERS_UNKNOWN;
    (void)rt_cas(&tree->numbering, &unknown, (u32)TREE_NUMBERS_WATCHED);
    Err err = row_room(txn->store, &txn->scratch);
    if (err == OK) {
        err = btree_leaf_copy(&tree->map, BTREE_LAST, SLICE_NONE, false, txn->scratch.p);
    }
    if (err != OK) return txn__fail(txn, err, "%s", err_text(err));
    u64 most;
    leaf_most((Node){txn->scratch.p, tree->map.page_bytes}, &most);
    store__number_raise(tree, most);
    rt_store_release(&tree->numbering, (u32)TREE_NUMBERS_KNOWN);
    return OK;
}

void
store__number_raise(Tree *tree, u64 most)
{
    u64 last = rt_load_relaxed(&tree->number);
    while (last < most && !rt_cas(&tree->number, &last, most)) {
    }
}

Err
store_tree_next_key(StoreTxn *txn, TreeId tree_id, i64 *number_out)
{
    *number_out = 0;
    Tree *tree = store__tree(txn->store, tree_id);
    if (tree == NULL || tree->kind != STORE_TREE_INT) {
        return txn__fail(txn, ERR_MISUSE, "no such tree of integers: %u", tree_id);
    }
    if (UNLIKELY(rt_load_acquire(&tree->numbering) != TREE_NUMBERS_KNOWN)) {
        Err err = numbers_learn(txn, tree);
        if (err != OK) return err;
    }
    return number_take(txn, tree, 0, number_out);
}
