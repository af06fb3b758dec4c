/*
 * cursor.c -- ordered reading in both directions, one entry at a time.
 *
 * A position is a key and a side of it (before, on, after), so it survives every change of the
 * tree.  Beside it the cursor remembers the leaf, its state word and a slot: as long as the word
 * has not moved the slot need not be searched again, and as long as the leaf's fences hold the key
 * the tree need not be descended.  Entries that the transaction does not see are stepped over.
 *
 * Many entries at once: cursor_fetch.c.
 */
#include "store/cursor.h"

#include "store/longval/parts.h"
#include "store/txn/ssi.h"

Err
store_cursor_open(StoreTxn *txn, TreeId tree_id, StoreCursor **cursor_out)
{
    *cursor_out = NULL;
    StoreCursor *cursor = (StoreCursor *)mem_alloc(sizeof(StoreCursor));
    if (cursor == NULL) return txn__fail(txn, ERR_NOMEM, "out of memory");
    memset(cursor, 0, offsetof(StoreCursor, key));
    store_cursor_rebind(cursor, txn, tree_id);
    *cursor_out = cursor;
    return OK;
}

void
store_cursor_rebind(StoreCursor *cursor, StoreTxn *txn, TreeId tree_id)
{
    cursor->txn = txn;
    cursor->tree_id = tree_id;
    cursor->tree = txn != NULL ? store__tree(txn->store, tree_id) : NULL;
    cursor->side = CURSOR_NOWHERE;
    cursor->leaf = NODE_PAGE_NONE;
    buf_clear(&cursor->bound);
}

void
store_cursor_close(StoreCursor *cursor)
{
    if (cursor == NULL) return;
    buf_free(&cursor->bound);
    buf_free(&cursor->value);
    buf_free(&cursor->graves);
    if (cursor->asked != NULL) buf_free(&cursor->asked->value);
    mem_free(cursor->asked);
    mem_free(cursor->look);
    cursor__run_free(cursor);
    mem_free(cursor);
}

/* ---- images in spills ---- */

Err
cursor__ask(StoreCursor *cursor, Slice key)
{
    if (cursor->asked == NULL) cursor->asked = MEM_NEW(CursorAsked);
    CursorAsked *asked = cursor->asked;
    if (asked == NULL) return ERR_NOMEM;
    asked->valid = false;
    asked->key_bytes = (u32)key.bytes;
    if (key.bytes > 0) memcpy(asked->key, key.p, key.bytes);
    Slice own = {asked->key, key.bytes};
    Err err = row_resolve(cursor->txn, cursor->tree, own, &asked->value, &asked->seen);
    asked->valid = err == OK;
    return err;
}

bool
cursor__asked(const StoreCursor *cursor, Slice key, u8 *to, RowSeen *seen_out)
{
    const CursorAsked *asked = cursor->asked;
    if (asked == NULL || !asked->valid) return false;
    if (!slice_equal((Slice){asked->key, asked->key_bytes}, key)) return false;
    *seen_out = asked->seen;
    if (!asked->seen.found) return true;
    if (asked->seen.value.bytes > 0) memcpy(to, asked->seen.value.p, asked->seen.value.bytes);
    seen_out->value.p = to;
    return true;
}

/* ---- finding the leaf ---- */

/* Is the remembered slot the one where a move from this place begins? */
static bool
guess_is(const StoreCursor *cursor, const CursorPlace *place)
{
    return cursor->guess == (place->backwards ? GUESS_BACKWARDS : GUESS_FORWARD);
}

/* May the leaf that is being viewed be used for this place? */
static bool
leaf_fits(const StoreCursor *cursor, Node node, const CursorPlace *place)
{
    const NodeHead *head = node_head(node);
    if (head->tree_id != cursor->tree_id || head->level != 0) return false;
    if ((head->flags & NODE_FLAG_DEAD) != 0) return false;
    if (place->where == BTREE_AT) return node_against_fences(node, place->key) == 0;
    NodeFences fences = node_fences(node);
    if (slice_compare(fences.low, place->key) >= 0) return false;
    return !fences.has_high || slice_compare(fences.high, place->key) >= 0;
}

Err
cursor__leaf_view(StoreCursor *cursor, const CursorPlace *place, bool scan, PageView *view_out)
{
    Btree *map = &cursor->tree->map;
    if (cursor->leaf != NODE_PAGE_NONE && place->where != BTREE_LAST) {
        Err err = pool_view(map->file, cursor->leaf, scan, view_out);
        if (err == OK) {
            u64 word = view_out->word & PAGE_SEEN;
            if (LIKELY(cursor->word == word && guess_is(cursor, place))) return OK;
            if (leaf_fits(cursor, btree_node(map, view_out), place)) {
                if (pool_view_check(view_out)) return OK;
            }
            (void)pool_view_end(view_out);
        }
        cursor->leaf = NODE_PAGE_NONE;
        cursor->guess = GUESS_NONE;
    }
    return btree_leaf_view(map, place->where, place->key, scan, view_out);
}

i32
cursor__first_slot(const StoreCursor *cursor, const PageView *view, Node node,
                   const CursorPlace *place)
{
    if (cursor->leaf == view->page_id && cursor->word == (view->word & PAGE_SEEN) &&
        guess_is(cursor, place)) {
        return cursor->index;
    }
    if (place->where == BTREE_LAST) return (i32)node_head(node)->count - 1;
    bool exact;
    i32 slot = (i32)node_find(node, place->key, &exact);
    if (!place->backwards) return exact && !place->inclusive ? slot + 1 : slot;
    return exact && place->inclusive ? slot : slot - 1;
}

void
cursor__place_of(const StoreCursor *cursor, bool backwards, bool onto, CursorPlace *place_out)
{
    CursorPlace *place = place_out; /* Field by field: it is long. */
    place->backwards = backwards;
    place->next_leaf = NODE_PAGE_NONE;
    place->key = (Slice){place->bytes, cursor->key_bytes};
    memcpy(place->bytes, cursor->key, cursor->key_bytes);
    bool on = cursor->side == CURSOR_ON && onto;
    place->inclusive = on || cursor->side == (backwards ? CURSOR_AFTER : CURSOR_BEFORE);
    place->where = backwards && !place->inclusive ? BTREE_BEFORE : BTREE_AT;
}

bool
cursor__next_leaf(Node node, CursorPlace *place)
{
    NodeFences fences = node_fences(node);
    Slice edge = place->backwards ? fences.low : fences.high;
    if (place->backwards ? edge.bytes == 0 : !fences.has_high) return false;
    size_t bytes = MIN_OF(edge.bytes, sizeof(place->bytes));
    memcpy(place->bytes, edge.p, bytes);
    place->key = (Slice){place->bytes, bytes};
    place->inclusive = !place->backwards;
    place->where = place->backwards ? BTREE_BEFORE : BTREE_AT;
    place->next_leaf = place->backwards ? NODE_PAGE_NONE : node_head(node)->right;
    return true;
}

void
cursor__place_copy(CursorPlace *to, const CursorPlace *from)
{
    memcpy(to, from, offsetof(CursorPlace, bytes));
    memcpy(to->bytes, from->key.p, from->key.bytes);
    to->key.p = to->bytes;
}

void
cursor__remember(StoreCursor *cursor, u32 leaf, u64 word, CursorGuess guess, i32 index)
{
    cursor->leaf = leaf;
    cursor->word = word & PAGE_SEEN;
    cursor->guess = (u8)guess;
    cursor->index = index;
}

void
cursor__stand(StoreCursor *cursor, CursorSide side, Slice key)
{
    cursor->side = (u8)side;
    cursor->key_bytes = (u32)key.bytes;
    if (key.bytes > 0) memmove(cursor->key, key.p, key.bytes);
}

/* ---- tombstones in the way ---- */

void
cursor__graves_keep(StoreCursor *cursor, Node node)
{
    cursor->has_graves = row_leaf_has_graves(cursor->txn->store, node);
    if (LIKELY(!cursor->has_graves)) return;
    NodeFences fences = node_fences(node);
    buf_clear(&cursor->graves);
    Slice low = {fences.low.p, MIN_OF(fences.low.bytes, (size_t)STORE_KEY_BYTES_MAX)};
    /* Short of memory: they stay for the next who comes. */
    cursor->has_graves = buf_append(&cursor->graves, low.p, low.bytes) == OK;
}

void
cursor__graves_purge(StoreCursor *cursor)
{
    cursor->has_graves = false;
    row_purge_leaf(cursor->txn->store, cursor->tree, buf_slice(&cursor->graves));
}

/* ---- moves ---- */

/* What one look at one leaf has given. */
typedef struct Look {
    RowSeen seen;
    i32 slot;
    u32 key_bytes;
    u64 lsn;
    bool more; /* Nothing in this leaf, but it is not the last. */
    bool asks; /* Spills must be asked about the key. */
} Look;

/* The next entry of the leaf that the transaction sees; nothing is certain until the view ends. */
static void
look_along(StoreCursor *cursor, const PageView *view, const CursorPlace *place, u8 *key, Look *look)
{
    StoreTxn *txn = cursor->txn;
    Node node = btree_node(&cursor->tree->map, view);
    i32 most = (i32)((node.bytes - NODE_HEAD_BYTES) / sizeof(NodeSlot));
    i32 count = MIN_OF((i32)NODE_LOAD(node_head(node)->count), most);
    i32 slot = cursor__first_slot(cursor, view, node, place);
    i32 step = place->backwards ? -1 : 1;
    look->seen.found = look->asks = false;
    look->lsn = 0;
    for (; slot >= 0 && slot < count; slot += step) {
        look->key_bytes = node_read_key(node, (u32)slot, key);
        row_see(txn, cursor->tree, node, (u32)slot, (Slice){key, look->key_bytes},
                cursor->value.p + ROW_LEAD_BYTES, &look->seen);
        if (UNLIKELY(look->seen.ask_spill)) {
            Slice asked = {key, look->key_bytes};
            look->asks = !cursor__asked(cursor, asked, cursor->value.p + ROW_LEAD_BYTES,
                                        &look->seen);
        }
        look->lsn = MAX_OF(look->lsn, look->seen.lsn);
        if (look->seen.found || UNLIKELY(look->asks)) break;
    }
    look->slot = slot;
}

static Err
long_load(StoreCursor *cursor, Slice key, RowSeen *seen)
{
    LongRef ref;
    bool gone;
    ASSERT(seen->value.bytes == sizeof(ref));
    memcpy(&ref, seen->value.p, sizeof(ref));
    buf_clear(&cursor->value);
    Err err = buf_reserve(&cursor->value, ROW_LEAD_BYTES + (size_t)ref.bytes);
    if (err != OK) return txn__fail(cursor->txn, err, "out of memory");
    u8 *to = cursor->value.p + ROW_LEAD_BYTES;
    err = long_read(cursor->txn->store, &ref, 0, to, ref.bytes, &gone);
    if (err == OK && gone) err = ERR_CORRUPT;
    if (err != OK) return txn__fail(cursor->txn, err, "%s", err_text(err));
    err = parts_overlay(cursor->txn, cursor->tree_id, key, 0, to, ref.bytes);
    if (err != OK) return err;
    seen->value = (Slice){to, ref.bytes};
    return OK;
}

/* Go to the next visible entry from a place on. */
static Err
move_from(StoreCursor *cursor, CursorPlace *place, bool *found_out)
{
    StoreTxn *txn = cursor->txn;
    Btree *map = &cursor->tree->map;
    u8 key[STORE_KEY_BYTES_MAX];
    Look look;
    *found_out = false;
    cursor__ask_reset(cursor);
    Err err = row_room(txn->store, &cursor->value);
    if (err != OK) return txn__fail(txn, err, "out of memory");
    for (;;) {
        PageView view;
        err = cursor__leaf_view(cursor, place, false, &view);
        if (err != OK) {
            if (rt_load_acquire(&cursor->tree->gone) != 0) return OK;
            return txn__fail(txn, err, "%s", err_text(err));
        }
        u64 word = view.word;
        look_along(cursor, &view, place, key, &look);
        CursorPlace next;
        bool more = false;
        if (!look.seen.found) {
            next.backwards = place->backwards;
            more = cursor__next_leaf(btree_node(map, &view), &next);
        }
        cursor__graves_note(cursor, btree_node(map, &view));
        if (UNLIKELY(!pool_view_end(&view))) {
            cursor__remember(cursor, view.page_id, 0, GUESS_NONE, 0);
            rt_fetch_add(&map->restarts, 1);
            continue;
        }
        if (UNLIKELY(look.asks)) {
            err = cursor__ask(cursor, (Slice){key, look.key_bytes});
            if (err != OK) return txn__fail(txn, err, "%s", err_text(err));
            /* Go on from there: what lies before it has been seen to. */
            memcpy(place->bytes, key, look.key_bytes);
            place->key = (Slice){place->bytes, look.key_bytes};
            place->inclusive = true;
            place->where = BTREE_AT;
            cursor__remember(cursor, view.page_id, 0, GUESS_NONE, 0);
            continue;
        }
        if (UNLIKELY(cursor->has_graves)) cursor__graves_purge(cursor);
        if (look.lsn != 0) txn__raise_dep(txn, look.lsn);
        if (look.seen.found) {
            cursor__remember(cursor, view.page_id, word, GUESS_ENTRY, look.slot);
            break;
        }
        if (!more) return OK;
        cursor__remember(cursor, next.next_leaf, 0, GUESS_NONE, 0);
        cursor__place_copy(place, &next);
    }
    cursor__stand(cursor, CURSOR_ON, (Slice){key, look.key_bytes});
    if (UNLIKELY(look.seen.is_long)) {
        err = long_load(cursor, (Slice){key, look.key_bytes}, &look.seen);
        if (err != OK) return err;
    }
    cursor->current = look.seen.value;
    *found_out = true;
    return OK;
}

Err
cursor__start(StoreCursor *cursor)
{
    if (UNLIKELY(cursor->tree == NULL)) {
        return txn__fail(cursor->txn, ERR_MISUSE, "no such tree: %u", cursor->tree_id);
    }
    cursor->txn->touched = true;
    return OK;
}

Err
cursor__note_move(StoreCursor *cursor, const Slice *from, bool backwards, bool found)
{
    Slice here = {cursor->key, cursor->key_bytes};
    const Slice *to = found ? &here : NULL;
    return backwards ? ssi__note_range(cursor->txn, cursor->tree_id, to, from)
                     : ssi__note_range(cursor->txn, cursor->tree_id, from, to);
}

bool
cursor__place_at(StoreSeek how, Slice key, CursorPlace *place_out)
{
    CursorPlace *place = place_out; /* Field by field: it is long. */
    bool at_end = how == STORE_SEEK_FIRST || how == STORE_SEEK_LAST;
    place->backwards = how == STORE_SEEK_LAST || how == STORE_SEEK_LE || how == STORE_SEEK_LT;
    place->inclusive = how != STORE_SEEK_GT && how != STORE_SEEK_LT;
    place->where = how == STORE_SEEK_LAST ? BTREE_LAST
                   : how == STORE_SEEK_LT ? BTREE_BEFORE
                                          : BTREE_AT;
    place->key = at_end ? SLICE_NONE : key;
    place->next_leaf = NODE_PAGE_NONE;
    return place->where != BTREE_BEFORE || key.bytes > 0; /* Nothing is below the empty key. */
}

Err
store_cursor_seek(StoreCursor *cursor, StoreSeek how, Slice key, bool *found_out)
{
    *found_out = false;
    Err err = cursor__start(cursor);
    if (err != OK) return err;
    CursorPlace place;
    cursor->guess = GUESS_NONE;
    if (!cursor__place_at(how, key, &place)) {
        cursor->side = CURSOR_NOWHERE;
        return txn__usable(cursor->txn);
    }
    err = move_from(cursor, &place, found_out);
    if (err == OK) err = txn__usable(cursor->txn);
    if (UNLIKELY(cursor->txn->ssi != NULL) && err == OK) {
        bool at_end = how == STORE_SEEK_FIRST || how == STORE_SEEK_LAST;
        err = cursor__note_move(cursor, at_end ? NULL : &key, place.backwards, *found_out);
    }
    if (!*found_out) cursor->side = CURSOR_NOWHERE;
    return err;
}

static Err
cursor_step(StoreCursor *cursor, bool backwards, bool *found_out)
{
    *found_out = false;
    Err err = cursor__start(cursor);
    if (err != OK || cursor->side == CURSOR_NOWHERE) return err;
    CursorPlace place;
    cursor__place_of(cursor, backwards, false, &place);
    u8 from_bytes[STORE_KEY_BYTES_MAX];
    Slice from = {from_bytes, cursor->key_bytes};
    if (UNLIKELY(cursor->txn->ssi != NULL)) memcpy(from_bytes, cursor->key, cursor->key_bytes);
    bool below_all = place.where == BTREE_BEFORE && place.key.bytes == 0;
    if (cursor->side == CURSOR_ON && cursor->guess == GUESS_ENTRY) {
        /* The next is beside it. */
        cursor->index += backwards ? -1 : 1;
        cursor->guess = backwards ? GUESS_BACKWARDS : GUESS_FORWARD;
    }
    if (!below_all) err = move_from(cursor, &place, found_out);
    if (err == OK) err = txn__usable(cursor->txn);
    if (UNLIKELY(cursor->txn->ssi != NULL) && err == OK) {
        err = cursor__note_move(cursor, &from, backwards, *found_out);
    }
    if (!*found_out) cursor->side = backwards ? CURSOR_BEFORE : CURSOR_AFTER;
    return err;
}

Err
store_cursor_next(StoreCursor *cursor, bool *found_out)
{
    return cursor_step(cursor, false, found_out);
}

Err
store_cursor_prev(StoreCursor *cursor, bool *found_out)
{
    return cursor_step(cursor, true, found_out);
}

Slice
store_cursor_key(const StoreCursor *cursor)
{
    ASSERT(cursor->side == CURSOR_ON);
    return (Slice){cursor->key, cursor->key_bytes};
}

Slice
store_cursor_value(const StoreCursor *cursor)
{
    ASSERT(cursor->side == CURSOR_ON);
    return cursor->current;
}
