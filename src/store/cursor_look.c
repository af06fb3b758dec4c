/*
 * cursor_look.c -- entries that are read where they lie.
 *
 * A look walks over leaves that the transaction sees just as they stand, and notes of each only its
 * page, the word of its state and which slots are wanted.  Whoever then reads a piece asks before
 * and after whether the word is still that one: as long as it is, so are the bytes, and what was
 * decided from them.
 */
#include "rt/task.h"
#include "store/cursor.h"
#include "store/pool/pool_fast.h"

STATIC_ASSERT(sizeof(StoreEntry) == sizeof(NodeSlot));
STATIC_ASSERT(offsetof(StoreEntry, key) == offsetof(NodeSlot, head));
STATIC_ASSERT(offsetof(StoreEntry, at) == offsetof(NodeSlot, at));
STATIC_ASSERT(offsetof(StoreEntry, value_bytes) == offsetof(NodeSlot, value_bytes));
STATIC_ASSERT(offsetof(StoreEntry, flags) == offsetof(NodeSlot, flags));

/* ---- the bound ---- */

/* Slots of a leaf within the bound, as the range [*low_io, *high_io).  True: the bound lies in it
   or before it, so nothing of the next leaf is wanted. */
static bool
bound_cut(const StoreCursor *cursor, Node node, bool backwards, i32 *low_io, i32 *high_io)
{
    if (LIKELY(cursor->bound.bytes == 0)) return false;
    Slice bound = buf_slice(&cursor->bound);
    int side = node_against_fences(node, bound);
    if (backwards ? side < 0 : side > 0) return false;
    if (side != 0) {
        *high_io = *low_io = 0;
        return true;
    }
    bool exact;
    i32 at = (i32)node_find(node, bound, &exact);
    bool with = exact && cursor->bound_inclusive;
    if (backwards) {
        *low_io = exact && !with ? at + 1 : at;
    } else {
        *high_io = with ? at + 1 : at;
    }
    return true;
}

/* Where a read from the place begins.  A leaf is mostly begun at its end: one look at the entry
   there is less than a search. */
static i32
first_slot(const StoreCursor *cursor, const PageView *view, Node node, const CursorPlace *place,
           i32 count)
{
    bool of_int = (NODE_LOAD(node_head(node)->flags) & NODE_FLAG_INT) != 0;
    if (of_int && count > 0 && place->key.bytes == 8 && cursor->guess == GUESS_NONE) {
        const NodeSlot *slots = node_slots(node);
        u64 key = load_be64(place->key.p);
        u64 low = NODE_LOAD(slots[0].head);
        if (place->where == BTREE_AT && !place->backwards) {
            if (low > key || (low == key && place->inclusive)) return 0;
        }
        if (place->where == BTREE_BEFORE && NODE_LOAD(slots[count - 1].head) < key)
            return count - 1;
    }
    return cursor__first_slot(cursor, view, node, place);
}

/* The slots that a read from the place wants. */
void
cursor__range_of(const StoreCursor *cursor, const CursorPlace *place, bool backwards,
                 const PageView *view, i32 *from_out, i32 *to_out, bool *last_out)
{
    Node node = btree_node(&cursor->tree->map, view);
    i32 most = (i32)((node.bytes - NODE_HEAD_BYTES) / sizeof(NodeSlot));
    i32 count = MIN_OF((i32)NODE_LOAD(node_head(node)->count), most);
    i32 low = 0, high = count;
    *last_out = bound_cut(cursor, node, backwards, &low, &high);
    high = MIN_OF(high, count);
    low = MIN_OF(low, high);
    i32 first = first_slot(cursor, view, node, place, count);
    if (backwards) {
        *from_out = MIN_OF(first, high - 1);
        *to_out = low - 1;
        if (*from_out < *to_out) *from_out = *to_out;
    } else {
        *from_out = MAX_OF(first, low);
        *to_out = high;
        if (*from_out > *to_out) *from_out = *to_out;
    }
}

/* ---- the walk ---- */

/* Can this leaf be read as it lies? */
static bool
leaf_is_plain(const StoreCursor *cursor, Node node, u64 *lsn_out)
{
    const NodeHead *head = node_head(node);
    if ((NODE_LOAD(head->flags) & NODE_FLAG_INT) == 0) return false;
    if (NODE_LOAD(head->live) != NODE_LOAD(head->count)) return false;
    return row_leaf_stands(cursor->txn, node, lsn_out);
}

/* The look goes on behind the leaf, whose slots up to `to` were wanted, or ends before `slot`. */
static void
stop_note(Node node, i32 to, i32 slot, bool last, CursorPlace *next, LookStop *stop)
{
    stop->through = slot == to;
    stop->more = stop->through && !last && cursor__next_leaf(node, next);
    stop->slot = slot;
    if (stop->more) {
        stop->side = CURSOR_BEFORE;
        stop->key_bytes = (u32)MIN_OF(next->key.bytes, sizeof(stop->key));
        memcpy(stop->key, next->key.p, stop->key_bytes);
        return;
    }
    stop->side = next->backwards ? CURSOR_BEFORE : CURSOR_AFTER;
    stop->key_bytes = 8;
    i32 at = next->backwards ? slot + 1 : slot - 1;
    store_be64(stop->key, NODE_LOAD(node_slots(node)[at].head));
}

/* ---- the face ---- */

bool
store_look_start(StoreCursor *cursor, bool backwards)
{
    if (cursor->tree == NULL || cursor->side == CURSOR_NOWHERE) return false;
    if (cursor->side == CURSOR_ON || cursor->txn->ssi != NULL) return false;
    if (cursor->look == NULL) cursor->look = MEM_NEW(CursorLook);
    CursorLook *look = cursor->look;
    if (look == NULL) return false;
    look->count = look->rows = 0;
    look->backwards = backwards;
    look->lsn = 0;
    cursor__place_of(cursor, backwards, true, &look->next);
    look->stop = (LookStop){.through = true, .more = true};
    return look->next.where != BTREE_BEFORE || look->next.key.bytes > 0;
}

/* Show the piece whose leaf is in view. */
static void
piece_show(const StoreCursor *cursor, const LookPiece *piece, u32 page_id_ahead,
           StorePiece *piece_out)
{
    const CursorLook *look = cursor->look;
    const Btree *map = &cursor->tree->map;
    const u8 *page = look->view.bytes;
    const StoreEntry *entries = (const StoreEntry *)(const void *)(page + NODE_HEAD_BYTES);
    PageView soon;
    *piece_out = (StorePiece){.page = page,
                              .page_bytes = map->page_bytes,
                              .rows = piece->rows,
                              .first = piece->first_row,
                              .step = look->backwards ? -1 : 1,
                              .entry = entries + piece->first,
                              .ahead = page};
    if (page_id_ahead != NODE_PAGE_NONE && pool_view_try(map->file, page_id_ahead, true, &soon)) {
        piece_out->ahead = soon.bytes;
    }
    rt_yield_point();
}

bool
store_look_next(StoreCursor *cursor, u32 rows_max, StorePiece *piece_out)
{
    CursorLook *look = cursor->look;
    Btree *map = &cursor->tree->map;
    if (!look->stop.more || rows_max == 0 || look->count == STORE_LOOK_PIECES_MAX) return false;
    if (look->count > 0) cursor__remember(cursor, look->next.next_leaf, 0, GUESS_NONE, 0);
    if (cursor__leaf_view(cursor, &look->next, true, &look->view) != OK) return false;
    Node node = btree_node(map, &look->view);
    i32 from, to, step = look->backwards ? -1 : 1;
    cursor__range_of(cursor, &look->next, look->backwards, &look->view, &from, &to, &look->last);
    i32 rows = MIN_OF((to - from) * step, (i32)rows_max);
    /* A leaf that has nothing to give is left to the fetch. */
    if (rows <= 0 || !leaf_is_plain(cursor, node, &look->lsn_open)) {
        (void)pool_view_end(&look->view);
        return false;
    }
    look->adds = true;
    look->to = to;
    look->open = (LookPiece){.word = look->view.word & PAGE_SEEN,
                             .page_id = look->view.page_id,
                             .rows = (u32)rows,
                             .first_row = look->rows,
                             .first = from};
    u32 ahead = look->backwards ? NODE_PAGE_NONE : NODE_LOAD(node_head(node)->right);
    piece_show(cursor, &look->open, ahead, piece_out);
    return true;
}

bool
store_look_again(StoreCursor *cursor, u32 piece_no, StorePiece *piece_out)
{
    CursorLook *look = cursor->look;
    ASSERT(piece_no < look->count);
    const LookPiece *piece = &look->piece[piece_no];
    PoolFile *file = cursor->tree->map.file;
    if (pool_view_fast(file, piece->page_id, true, &look->view) != OK) return false;
    if ((look->view.word & PAGE_SEEN) != piece->word) {
        (void)pool_view_end(&look->view);
        return false;
    }
    look->adds = false;
    piece_show(cursor, piece, NODE_PAGE_NONE, piece_out);
    return true;
}

bool
store_look_end(StoreCursor *cursor, bool keeps)
{
    CursorLook *look = cursor->look;
    rt_yield_point();
    if (!look->adds || !keeps) return pool_view_end(&look->view);
    const LookPiece *open = &look->open;
    Node node = btree_node(&cursor->tree->map, &look->view);
    i32 step = look->backwards ? -1 : 1;
    LookStop stop;
    CursorPlace next;
    next.backwards = look->backwards;
    stop_note(node, look->to, open->first + (i32)open->rows * step, look->last, &next, &stop);
    if (!pool_view_end(&look->view)) return false;
    look->stop = stop;
    if (stop.more) cursor__place_copy(&look->next, &next);
    look->piece[look->count++] = *open;
    look->rows += open->rows;
    look->lsn = MAX_OF(look->lsn, look->lsn_open);
    return true;
}

Err
store_look_done(StoreCursor *cursor, bool *end_out)
{
    const CursorLook *look = cursor->look;
    const LookStop *stop = &look->stop;
    ASSERT(look->count > 0);
    *end_out = stop->through && !stop->more;
    Err err = cursor__start(cursor);
    if (err == OK) err = txn__usable(cursor->txn);
    if (err != OK) return err;
    if (look->lsn != 0) txn__raise_dep(cursor->txn, look->lsn);
    cursor__stand(cursor, (CursorSide)stop->side, (Slice){stop->key, stop->key_bytes});
    if (stop->more) {
        cursor__remember(cursor, look->next.next_leaf, 0, GUESS_NONE, 0);
    } else if (stop->through) {
        cursor->guess = GUESS_NONE;
    } else {
        const LookPiece *piece = &look->piece[look->count - 1];
        CursorGuess guess = look->backwards ? GUESS_BACKWARDS : GUESS_FORWARD;
        cursor__remember(cursor, piece->page_id, piece->word, guess, stop->slot);
    }
    return OK;
}
