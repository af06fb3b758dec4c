/*
 * cursor.c -- ordered reading in both directions.
 *
 * A position is a key and a side of it (before, on, after), so it survives every change of the
 * tree.  Beside it the cursor remembers the leaf and slot; they are used as long as the tree's
 * structure number has not moved.  Entries that the transaction does not see are stepped over.
 */
#include "store/store_private.h"
#include "store/txn/ssi.h"

typedef enum CursorSide {
    CURSOR_NOWHERE, /* No position: every move finds nothing until a seek. */
    CURSOR_BEFORE,
    CURSOR_ON,
    CURSOR_AFTER
} CursorSide;

/* Slots looked at under one hold of the tree lock. */
#define CURSOR_STRETCH  16384u
#define CURSOR_ROWS_MAX 4096u
#define CURSOR_AHEAD    8u /* Slots whose versions are fetched into the cache ahead. */

struct StoreCursor {
    StoreTxn *txn;
    Tree *tree;
    TreeId tree_id;
    u8 side; /* CursorSide */
    bool bound_inclusive;
    const MtreeLeaf *leaf; /* The slot of the position's key while structure stands still. */
    u32 index;
    u64 structure;
    Version *current; /* What the cursor is on; valid with CURSOR_ON. */
    u32 key_bytes;
    Buf bound; /* Empty: none. */
    u32 run_capacity;
    Slice *run_keys, *run_values;
    Buf run_bytes; /* Copies, where versions may go before the next call. */
    u8 key[STORE_KEY_BYTES_MAX];
};

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
    cursor->leaf = NULL;
    cursor->current = NULL;
    buf_clear(&cursor->bound);
}

void
store_cursor_close(StoreCursor *cursor)
{
    if (cursor == NULL) return;
    buf_free(&cursor->bound);
    buf_free(&cursor->run_bytes);
    mem_free(cursor->run_keys);
    mem_free(cursor->run_values);
    mem_free(cursor);
}

static Slice
position_key(const StoreCursor *cursor)
{
    return (Slice){cursor->key, cursor->key_bytes};
}

/* ---- places: a leaf and a slot, which may be one off either end ---- */

typedef struct Place {
    const MtreeLeaf *leaf; /* NULL: beyond the end. */
    i32 index;
} Place;

static ALWAYS_INLINE void
place_next(Place *place)
{
    place->index++;
    if (place->index >= (i32)place->leaf->count) {
        place->leaf = place->leaf->next;
        place->index = 0;
    }
}

static ALWAYS_INLINE void
place_prev(Place *place)
{
    place->index--;
    if (place->index < 0) {
        place->leaf = place->leaf->prev;
        place->index = place->leaf == NULL ? 0 : (i32)place->leaf->count - 1;
    }
}

/* First slot with a key at or above (`above`: above) `key`. */
static Place
place_at_or_above(const Mtree *map, Slice key, bool above)
{
    u32 index;
    bool exact;
    Place place = {.leaf = mtree_look(map, key, &index, &exact)};
    if (place.leaf == NULL) return place;
    place.index = (i32)index - 1;
    place_next(&place);
    if (exact && above) place_next(&place);
    return place;
}

/* Last slot with a key at or below (`below`: below) `key`. */
static Place
place_at_or_below(const Mtree *map, Slice key, bool below)
{
    u32 index;
    bool exact;
    Place place = {.leaf = mtree_look(map, key, &index, &exact)};
    if (place.leaf == NULL) return place;
    place.index = (i32)index;
    if (!exact || below) place_prev(&place);
    return place;
}

/* The first place for a move from the cursor's position.  `onto`: the entry itself counts. */
static Place
place_from(const StoreCursor *cursor, bool backwards, bool onto)
{
    const Mtree *map = &cursor->tree->map;
    bool stands = cursor->leaf != NULL && cursor->structure == map->structure;
    if (!backwards) {
        bool beyond = cursor->side == CURSOR_AFTER || (cursor->side == CURSOR_ON && !onto);
        if (!stands) return place_at_or_above(map, position_key(cursor), beyond);
        Place place = {cursor->leaf, (i32)cursor->index};
        if (beyond) place_next(&place);
        return place;
    }
    bool beyond = cursor->side == CURSOR_BEFORE || (cursor->side == CURSOR_ON && !onto);
    if (!stands) return place_at_or_below(map, position_key(cursor), beyond);
    Place place = {cursor->leaf, (i32)cursor->index};
    if (beyond) place_prev(&place);
    return place;
}

/* ---- moves ---- */

static void
position_set(StoreCursor *cursor, CursorSide side, Place place)
{
    Slice key = version_key(place.leaf->slot[place.index]);
    cursor->side = (u8)side;
    cursor->leaf = place.leaf;
    cursor->index = (u32)place.index;
    cursor->structure = cursor->tree->map.structure;
    cursor->key_bytes = (u32)key.bytes;
    memcpy(cursor->key, key.p, key.bytes);
}

/* Move on until something visible; on the way the lock may be let go.  Shared lock held. */
static bool
settle_on(StoreCursor *cursor, Place place, bool backwards)
{
    u32 stretch = 0;
    while (place.leaf != NULL) {
        Version *version = txn__visible(cursor->txn, place.leaf->slot[place.index]);
        if (version != NULL && version->kind == VERSION_VALUE) {
            position_set(cursor, CURSOR_ON, place);
            cursor->current = version;
            return true;
        }
        if (UNLIKELY(++stretch == CURSOR_STRETCH)) {
            position_set(cursor, backwards ? CURSOR_BEFORE : CURSOR_AFTER, place);
            rt_rwlock_unlock_shared(&cursor->tree->lock);
            rt_rwlock_lock_shared(&cursor->tree->lock);
            place = place_from(cursor, backwards, false);
            stretch = 0;
            continue;
        }
        if (backwards) {
            place_prev(&place);
        } else {
            place_next(&place);
        }
    }
    return false;
}

static Err
move_start(StoreCursor *cursor)
{
    if (UNLIKELY(cursor->tree == NULL)) {
        return txn__fail(cursor->txn, ERR_MISUSE, "no such tree: %u", cursor->tree_id);
    }
    cursor->txn->touched = true;
    return OK;
}

/* SERIALIZABLE: note what a move has covered: from `from` (NULL: the end it started at) to where
   the cursor is now, or to the end of the tree in the direction of the move. */
static Err
note_move(StoreCursor *cursor, const Slice *from, bool backwards, bool found)
{
    Slice here = position_key(cursor);
    const Slice *to = found ? &here : NULL;
    return backwards ? ssi__note_range(cursor->txn, cursor->tree_id, to, from)
                     : ssi__note_range(cursor->txn, cursor->tree_id, from, to);
}

Err
store_cursor_seek(StoreCursor *cursor, StoreSeek how, Slice key, bool *found_out)
{
    *found_out = false;
    Err err = move_start(cursor);
    if (err != OK) return err;
    const Mtree *map = &cursor->tree->map;
    bool backwards = how == STORE_SEEK_LAST || how == STORE_SEEK_LE || how == STORE_SEEK_LT;
    Place place = {0};
    rt_rwlock_lock_shared(&cursor->tree->lock);
    switch (how) {
    case STORE_SEEK_FIRST: place = (Place){map->first, 0}; break;
    case STORE_SEEK_LAST:
        place = (Place){map->last, map->last == NULL ? 0 : (i32)map->last->count - 1};
        break;
    case STORE_SEEK_GE: place = place_at_or_above(map, key, false); break;
    case STORE_SEEK_GT: place = place_at_or_above(map, key, true); break;
    case STORE_SEEK_LE: place = place_at_or_below(map, key, false); break;
    case STORE_SEEK_LT: place = place_at_or_below(map, key, true); break;
    }
    *found_out = settle_on(cursor, place, backwards);
    err = txn__usable(cursor->txn);
    rt_rwlock_unlock_shared(&cursor->tree->lock);
    if (UNLIKELY(cursor->txn->ssi != NULL) && err == OK) {
        bool at_end = how == STORE_SEEK_FIRST || how == STORE_SEEK_LAST;
        err = note_move(cursor, at_end ? NULL : &key, backwards, *found_out);
    }
    if (!*found_out) cursor->side = CURSOR_NOWHERE;
    return err;
}

static Err
cursor_step(StoreCursor *cursor, bool backwards, bool *found_out)
{
    *found_out = false;
    Err err = move_start(cursor);
    if (err != OK || cursor->side == CURSOR_NOWHERE) return err;
    u8 from_bytes[STORE_KEY_BYTES_MAX];
    Slice from = {from_bytes, cursor->key_bytes};
    if (UNLIKELY(cursor->txn->ssi != NULL)) memcpy(from_bytes, cursor->key, cursor->key_bytes);
    rt_rwlock_lock_shared(&cursor->tree->lock);
    *found_out = settle_on(cursor, place_from(cursor, backwards, false), backwards);
    err = txn__usable(cursor->txn);
    rt_rwlock_unlock_shared(&cursor->tree->lock);
    if (UNLIKELY(cursor->txn->ssi != NULL) && err == OK) {
        err = note_move(cursor, &from, backwards, *found_out);
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
    return position_key(cursor);
}

Slice
store_cursor_value(const StoreCursor *cursor)
{
    ASSERT(cursor->side == CURSOR_ON);
    return version_value(cursor->current);
}

/* ---- fetch ---- */

Err
store_cursor_set_bound(StoreCursor *cursor, Slice key, bool inclusive)
{
    buf_clear(&cursor->bound);
    cursor->bound_inclusive = inclusive;
    if (key.bytes == 0) return OK;
    Err err = buf_append(&cursor->bound, key.p, key.bytes);
    return err == OK ? OK : txn__fail(cursor->txn, err, "out of memory");
}

static bool
beyond_bound(const StoreCursor *cursor, Slice key, bool backwards)
{
    int order = slice_compare(key, buf_slice(&cursor->bound));
    if (backwards) order = -order;
    return cursor->bound_inclusive ? order > 0 : order >= 0;
}

static Err
run_reserve(StoreCursor *cursor, u32 rows)
{
    if (rows <= cursor->run_capacity) return OK;
    u32 capacity = MAX_OF(rows, MIN_OF(cursor->run_capacity * 2, CURSOR_ROWS_MAX));
    Slice *keys = (Slice *)mem_realloc(cursor->run_keys, capacity * sizeof(Slice));
    if (keys != NULL) cursor->run_keys = keys;
    Slice *values = (Slice *)mem_realloc(cursor->run_values, capacity * sizeof(Slice));
    if (values != NULL) cursor->run_values = values;
    if (keys == NULL || values == NULL) return ERR_NOMEM;
    cursor->run_capacity = capacity;
    return OK;
}

/* READ COMMITTED takes fresh snapshots while runs of older statements are in use. */
static Err
run_copy(StoreCursor *cursor, u32 rows)
{
    size_t bytes = 0;
    for (u32 i = 0; i < rows; i++) {
        bytes += cursor->run_keys[i].bytes + cursor->run_values[i].bytes;
    }
    buf_clear(&cursor->run_bytes);
    Err err = buf_reserve(&cursor->run_bytes, bytes);
    if (err != OK) return err;
    u8 *to = cursor->run_bytes.p;
    for (u32 i = 0; i < rows; i++) {
        Slice *parts[2] = {&cursor->run_keys[i], &cursor->run_values[i]};
        for (u32 k = 0; k < 2; k++) {
            if (parts[k]->bytes > 0) memcpy(to, parts[k]->p, parts[k]->bytes);
            parts[k]->p = to;
            to += parts[k]->bytes;
        }
    }
    return OK;
}

static ALWAYS_INLINE void
prefetch_ahead(const Place *place, bool backwards)
{
    i32 ahead = place->index + (backwards ? -(i32)CURSOR_AHEAD : (i32)CURSOR_AHEAD);
    if (ahead < 0 || ahead >= (i32)place->leaf->count) return;
    const Version *version = place->leaf->slot[ahead];
    __builtin_prefetch(version);
    __builtin_prefetch((const u8 *)version + 64);
}

/* Is every key of the leaf within the bound, so that none need be compared? */
static bool
leaf_within(const StoreCursor *cursor, const MtreeLeaf *leaf, bool backwards)
{
    if (cursor->bound.bytes == 0) return true;
    const Version *edge = leaf->slot[backwards ? 0 : leaf->count - 1];
    return !beyond_bound(cursor, version_key(edge), backwards);
}

/* Gather under one hold of the lock.  *end_out: nothing follows. */
static u32
gather(StoreCursor *cursor, Place place, u32 rows_max, size_t bytes_max, bool backwards,
       bool *end_out)
{
    u32 rows = 0, stretch = 0;
    size_t bytes = 0;
    const MtreeLeaf *leaf = NULL;
    bool within = true;
    Place last = {0};
    *end_out = false;
    while (place.leaf != NULL) {
        if (place.leaf != leaf) {
            leaf = place.leaf;
            within = leaf_within(cursor, leaf, backwards);
        }
        Version *head = leaf->slot[place.index];
        if (UNLIKELY(!within) && beyond_bound(cursor, version_key(head), backwards)) {
            place.leaf = NULL;
            break;
        }
        prefetch_ahead(&place, backwards);
        Version *version = txn__visible(cursor->txn, head);
        last = place;
        stretch++;
        if (LIKELY(version != NULL && version->kind == VERSION_VALUE)) {
            cursor->run_keys[rows] = version_key(version);
            cursor->run_values[rows] = version_value(version);
            bytes += version->key_bytes + (size_t)version->value_bytes;
            rows++;
        }
        if (rows == rows_max || bytes >= bytes_max || stretch >= CURSOR_STRETCH) break;
        if (backwards) {
            place_prev(&place);
        } else {
            place_next(&place);
        }
    }
    *end_out = place.leaf == NULL;
    if (last.leaf != NULL) {
        position_set(cursor, backwards ? CURSOR_BEFORE : CURSOR_AFTER, last);
    }
    return rows;
}

/* A fetch that met its bound has covered up to the bound, else to where it is. */
static Err
note_fetch(StoreCursor *cursor, const Slice *from, bool backwards, bool end)
{
    if (!end || cursor->bound.bytes == 0) return note_move(cursor, from, backwards, !end);
    Slice bound = buf_slice(&cursor->bound);
    return backwards ? ssi__note_range(cursor->txn, cursor->tree_id, &bound, from)
                     : ssi__note_range(cursor->txn, cursor->tree_id, from, &bound);
}

Err
store_cursor_fetch(StoreCursor *cursor, u32 rows_max, size_t bytes_max, bool backwards,
                   StoreRun *run_out)
{
    *run_out = (StoreRun){.end = true};
    Err err = move_start(cursor);
    if (err != OK || cursor->side == CURSOR_NOWHERE || rows_max == 0) return err;
    rows_max = MIN_OF(rows_max, CURSOR_ROWS_MAX);
    err = run_reserve(cursor, rows_max);
    if (err != OK) return txn__fail(cursor->txn, err, "out of memory");
    u32 rows = 0;
    bool end = false;
    u8 from_bytes[STORE_KEY_BYTES_MAX];
    Slice from = {from_bytes, cursor->key_bytes};
    if (UNLIKELY(cursor->txn->ssi != NULL)) memcpy(from_bytes, cursor->key, cursor->key_bytes);
    rt_rwlock_lock_shared(&cursor->tree->lock);
    while (rows == 0 && !end) {
        rows = gather(cursor, place_from(cursor, backwards, true), rows_max, bytes_max, backwards,
                      &end);
        if (rows > 0 || end) break;
        rt_rwlock_unlock_shared(&cursor->tree->lock);
        rt_rwlock_lock_shared(&cursor->tree->lock);
    }
    if (cursor->txn->level == STORE_READ_COMMITTED) err = run_copy(cursor, rows);
    Err usable = txn__usable(cursor->txn);
    rt_rwlock_unlock_shared(&cursor->tree->lock);
    if (err != OK) return txn__fail(cursor->txn, err, "out of memory");
    if (usable != OK) return usable;
    if (UNLIKELY(cursor->txn->ssi != NULL)) {
        err = note_fetch(cursor, &from, backwards, end);
        if (err != OK) return err;
    }
    *run_out = (StoreRun){
        .rows = rows, .key = cursor->run_keys, .value = cursor->run_values, .end = end};
    return OK;
}
