/*
 * cursor_fetch.c -- many entries at once.
 *
 * A leaf of which much is wanted, and which the transaction sees as it stands, is copied as a whole
 * and checked once; the run then points into the copy.  Of other leaves the entries are copied one
 * by one while the leaf is viewed, through the version map where need be.  Either way a run may
 * span leaves, and its bytes belong to the cursor.
 */
#include "rt/task.h"
#include "store/cursor.h"
#include "store/longval/parts.h"
#include "store/txn/ssi.h"

#define ROWS_MAX  4096u
#define WHOLE_MIN 16u /* Entries wanted of a leaf that make copying all of it worth while. */
#define SLAB_LEAD 64u /* Before a copied page: decoders load words that end in a value. */

typedef struct Fetch {
    StoreCursor *cursor;
    CursorPlace place;
    u32 rows, rows_max;
    size_t bytes, bytes_max;
    bool backwards;
    u64 counted;
    bool counts; /* Entries are counted, not handed out. */
    bool end;    /* Nothing follows. */
    bool asks;   /* Stopped at a key about which spills must be asked: ask_key. */
    u32 ask_bytes;
    u8 ask_key[STORE_KEY_BYTES_MAX];
} Fetch;

/* ---- memory of a run ---- */

void
cursor__run_free(StoreCursor *cursor)
{
    for (u32 i = 0; i < cursor->slab_count; i++) {
        mem_free(cursor->slabs[i]);
    }
    for (u32 i = 0; i < cursor->long_count; i++) {
        mem_free(cursor->longs[i]);
    }
    mem_free(cursor->slabs);
    mem_free(cursor->longs);
    mem_free(cursor->run_keys);
    mem_free(cursor->run_values);
    mem_free(cursor->run_long);
}

static void
run_reset(StoreCursor *cursor)
{
    for (u32 i = 0; i < cursor->long_count; i++) {
        mem_free(cursor->longs[i]);
    }
    cursor->long_count = 0;
    cursor->slabs_used = 0;
    cursor->free_from = cursor->free_to = NULL;
}

static Err
run_reserve(StoreCursor *cursor, u32 rows)
{
    if (rows <= cursor->run_capacity) return OK;
    u32 capacity = MAX_OF(rows, MIN_OF(cursor->run_capacity * 2, ROWS_MAX));
    Slice *keys = (Slice *)mem_realloc(cursor->run_keys, capacity * sizeof(Slice));
    if (keys != NULL) cursor->run_keys = keys;
    Slice *values = (Slice *)mem_realloc(cursor->run_values, capacity * sizeof(Slice));
    if (values != NULL) cursor->run_values = values;
    u8 *longs = (u8 *)mem_realloc(cursor->run_long, capacity);
    if (longs != NULL) cursor->run_long = longs;
    if (keys == NULL || values == NULL || longs == NULL) return ERR_NOMEM;
    cursor->run_capacity = capacity;
    return OK;
}

/* A slab of a page, not used by this run yet; NULL: out of memory. */
static u8 *
slab_take(StoreCursor *cursor)
{
    if (cursor->slabs_used < cursor->slab_count) return cursor->slabs[cursor->slabs_used++];
    if (cursor->slab_count == cursor->slab_room) {
        u32 room = cursor->slab_room * 2 + 4;
        u8 **slabs = (u8 **)mem_realloc(cursor->slabs, room * sizeof(u8 *));
        if (slabs == NULL) return NULL;
        cursor->slabs = slabs;
        cursor->slab_room = room;
    }
    u8 *slab = (u8 *)mem_alloc_aligned(64, SLAB_LEAD + cursor->txn->store->page_bytes);
    if (slab == NULL) return NULL;
    cursor->slabs[cursor->slab_count++] = slab;
    cursor->slabs_used = cursor->slab_count;
    return slab;
}

/* Room for `bytes` of keys and values, after a lead; NULL: out of memory.  At most a page. */
static u8 *
room_take(StoreCursor *cursor, size_t bytes)
{
    size_t want = ALIGN_UP(bytes, 8) + 8;
    if ((size_t)(cursor->free_to - cursor->free_from) < want) {
        u8 *slab = slab_take(cursor);
        if (slab == NULL) return NULL;
        cursor->free_from = slab + 8;
        cursor->free_to = slab + SLAB_LEAD + cursor->txn->store->page_bytes;
        if ((size_t)(cursor->free_to - cursor->free_from) < want) return NULL;
    }
    u8 *room = cursor->free_from;
    cursor->free_from += want;
    return room;
}

/* ---- long values ---- */

static Err
long_take(StoreCursor *cursor, Slice key, Slice *value_io)
{
    LongRef ref;
    bool gone;
    ASSERT(value_io->bytes == sizeof(ref));
    memcpy(&ref, value_io->p, sizeof(ref));
    if (cursor->long_count == cursor->long_room) {
        u32 room = cursor->long_room * 2 + 4;
        u8 **longs = (u8 **)mem_realloc(cursor->longs, room * sizeof(u8 *));
        if (longs == NULL) return ERR_NOMEM;
        cursor->longs = longs;
        cursor->long_room = room;
    }
    u8 *to = (u8 *)mem_alloc(ROW_LEAD_BYTES + (size_t)ref.bytes);
    if (to == NULL) return ERR_NOMEM;
    cursor->longs[cursor->long_count++] = to;
    *value_io = (Slice){to + ROW_LEAD_BYTES, ref.bytes};
    Err err = long_read(cursor->txn->store, &ref, 0, to + ROW_LEAD_BYTES, ref.bytes, &gone);
    if (err == OK && gone) err = ERR_CORRUPT;
    if (err != OK) return err;
    return parts_overlay(cursor->txn, cursor->tree_id, key, 0, to + ROW_LEAD_BYTES, ref.bytes);
}

/* ---- a leaf as a whole ---- */

/* Loads may race; the simulator wants to cut the copy in two. */
static inline void
copy_racy(void *to, const void *from, size_t bytes)
{
#ifdef WEFT_CHECK
    rt_copy_racy(to, from, bytes);
#else
    memcpy(to, from, bytes);
#endif
}

/* Copy what is used of a page. */
static void
page_copy(u8 *to, const u8 *from, u32 page_bytes)
{
    NodeHead head;
    copy_racy(&head, from, sizeof(head));
    u64 slots_end = NODE_HEAD_BYTES + head.count * sizeof(NodeSlot);
    u32 heap = head.heap_start & ~7u;
    if (slots_end > heap || heap > page_bytes) {
        copy_racy(to, from, page_bytes); /* Torn, and will be found out. */
        return;
    }
    copy_racy(to, from, slots_end);
    copy_racy(to + heap, from + heap, page_bytes - heap);
}

/* The key of a slot in our own copy of an integer leaf: turned round in place. */
static ALWAYS_INLINE Slice
int_key(NodeSlot *slot)
{
    store_be64(&slot->head, slot->head);
    return (Slice){(const u8 *)&slot->head, 8};
}

/* Hand out slots of our own copy of an integer leaf, none of them special.  */
static void
emit_int(Fetch *f, Node copy, i32 from, i32 to, i32 step)
{
    StoreCursor *cursor = f->cursor;
    NodeSlot *slots = node_slots(copy);
    Slice *key = cursor->run_keys + f->rows, *value = cursor->run_values + f->rows;
    for (i32 i = from; i != to; i += step) {
        NodeSlot *slot = &slots[i];
        *key++ = int_key(slot);
        *value++ = (Slice){copy.p + slot->at, slot->value_bytes};
    }
    f->rows = (u32)(key - cursor->run_keys);
}

/* The same for keys of any length. */
static Err
emit_bytes(Fetch *f, Node copy, i32 from, i32 to, i32 step)
{
    StoreCursor *cursor = f->cursor;
    const NodeSlot *slots = node_slots(copy);
    u32 prefix = node_head(copy)->prefix_bytes;
    for (i32 i = from; i != to; i += step) {
        u8 *key = room_take(cursor, prefix + (size_t)MAX_OF(slots[i].key_bytes, 8));
        if (key == NULL) return ERR_NOMEM;
        cursor->run_keys[f->rows] = (Slice){key, node_read_key(copy, (u32)i, key)};
        cursor->run_values[f->rows] = node_read_value(copy, (u32)i);
        f->rows++;
    }
    return OK;
}

/* Slots of an integer leaf of which some are tombstones, padded or long. */
static Err
emit_int_mixed(Fetch *f, Node copy, i32 from, i32 to, i32 step)
{
    StoreCursor *cursor = f->cursor;
    NodeSlot *slots = node_slots(copy);
    for (i32 i = from; i != to; i += step) {
        u8 flags = slots[i].flags;
        if ((flags & NODE_SLOT_TOMBSTONE) != 0) continue;
        Slice *value = &cursor->run_values[f->rows];
        *value = node_read_value(copy, (u32)i);
        cursor->run_keys[f->rows] = int_key(&slots[i]);
        f->rows++;
        if ((flags & NODE_SLOT_LONG) == 0) continue;
        Err err = long_take(cursor, cursor->run_keys[f->rows - 1], value);
        if (err != OK) return err;
        f->bytes += value->bytes;
    }
    return OK;
}

/* The same for keys of any length. */
static Err
emit_mixed(Fetch *f, Node copy, i32 from, i32 to, i32 step)
{
    StoreCursor *cursor = f->cursor;
    const NodeSlot *slots = node_slots(copy);
    for (i32 i = from; i != to; i += step) {
        if ((slots[i].flags & NODE_SLOT_TOMBSTONE) != 0) continue;
        Err err = emit_bytes(f, copy, i, i + step, step);
        if (err != OK) return err;
        if ((slots[i].flags & NODE_SLOT_LONG) == 0) continue;
        Slice *value = &cursor->run_values[f->rows - 1];
        err = long_take(cursor, cursor->run_keys[f->rows - 1], value);
        if (err != OK) return err;
        f->bytes += value->bytes;
    }
    return OK;
}

static bool
all_plain(Node copy, i32 low, i32 high)
{
    const NodeSlot *slots = node_slots(copy);
    u64 halves = 0; /* The second halves of slots, whose highest byte is the flags. */
    STATIC_ASSERT(offsetof(NodeSlot, flags) == sizeof(NodeSlot) - 1);
    for (i32 i = low; i < high; i++) {
        halves |= load_u64((const u8 *)&slots[i] + sizeof(u64));
    }
    return halves >> 56 == 0;
}

/* Shorten a range where rows_max or bytes_max is passed; at least one slot stays.  Our own copy. */
static i32
range_cut(Fetch *f, Node copy, i32 from, i32 to)
{
    i32 step = f->backwards ? -1 : 1;
    i32 most = (i32)(f->rows_max - f->rows);
    if ((to - from) * step > most) to = from + most * step;
    const NodeHead *head = node_head(copy);
    const NodeSlot *slots = node_slots(copy);
    size_t bytes = f->bytes, prefix = head->prefix_bytes;
    /* Mostly all of the leaf fits. */
    size_t all = (copy.bytes - head->heap_start) + head->count * (prefix + NODE_KEY_HEAD_BYTES);
    if (LIKELY(bytes + all < f->bytes_max)) {
        f->bytes += all * (size_t)((to - from) * step) / MAX_OF(head->count, 1);
        return to;
    }
    for (i32 i = from; i != to && bytes < f->bytes_max; i += step) {
        bytes += prefix + slots[i].key_bytes + slots[i].value_bytes;
        if (bytes >= f->bytes_max) to = i + step;
    }
    f->bytes = bytes;
    return to;
}

/* Emit from our own copy of a leaf that stands. */
static Err
emit_leaf(Fetch *f, Node copy, i32 from, i32 to)
{
    if (from == to) return OK;
    i32 step = f->backwards ? -1 : 1;
    i32 low = f->backwards ? to + 1 : from, high = f->backwards ? from + 1 : to;
    bool of_int = (node_head(copy)->flags & NODE_FLAG_INT) != 0, plain = all_plain(copy, low, high);
    if (LIKELY(of_int && plain)) {
        emit_int(f, copy, from, to, step);
        return OK;
    }
    if (of_int) return emit_int_mixed(f, copy, from, to, step);
    return plain ? emit_bytes(f, copy, from, to, step) : emit_mixed(f, copy, from, to, step);
}

/* ---- a leaf entry by entry ---- */

/* Copy one entry that the transaction sees into the run; nothing is certain yet. */
static Err
copy_entry(Fetch *f, Node node, i32 slot, u64 *lsn_io)
{
    StoreCursor *cursor = f->cursor;
    StoreTxn *txn = cursor->txn;
    u8 *space = cursor->value.p + ROW_LEAD_BYTES;
    u8 key_bytes[STORE_KEY_BYTES_MAX];
    Slice key = {key_bytes, node_read_key(node, (u32)slot, key_bytes)};
    RowSeen seen;
    row_see(txn, cursor->tree, node, (u32)slot, key, space, &seen);
    if (UNLIKELY(seen.ask_spill) && !cursor__asked(cursor, key, space, &seen)) {
        f->asks = true;
        f->ask_bytes = (u32)key.bytes;
        if (key.bytes > 0) memcpy(f->ask_key, key.p, key.bytes);
        return OK;
    }
    *lsn_io = MAX_OF(*lsn_io, seen.lsn);
    if (!seen.found) return OK;
    size_t bytes = key.bytes + seen.value.bytes;
    u8 *to = room_take(cursor, bytes);
    if (to == NULL) return ERR_NOMEM;
    if (key.bytes > 0) memcpy(to, key.p, key.bytes);
    if (seen.value.bytes > 0) memcpy(to + key.bytes, seen.value.p, seen.value.bytes);
    cursor->run_keys[f->rows] = (Slice){to, key.bytes};
    cursor->run_values[f->rows] = (Slice){to + key.bytes, seen.value.bytes};
    /* Long ones are read when it is certain that they are. */
    cursor->run_long[f->rows] = seen.is_long;
    f->rows++;
    f->bytes += bytes;
    return OK;
}

/* The key of a slot of a viewed leaf. */
static ALWAYS_INLINE u32
slot_key(Node node, i32 slot_no, u8 key[STORE_KEY_BYTES_MAX])
{
    if ((NODE_LOAD(node_head(node)->flags) & NODE_FLAG_INT) == 0) {
        return node_read_key(node, (u32)slot_no, key);
    }
    store_be64(key, NODE_LOAD(node_slots(node)[slot_no].head));
    return 8;
}

/* The same of a leaf that stands: nobody needs to be asked. */
static Err
copy_standing(Fetch *f, Node node, i32 slot_no)
{
    StoreCursor *cursor = f->cursor;
    const NodeSlot *slot = &node_slots(node)[slot_no];
    u8 flags = NODE_LOAD(slot->flags);
    if ((flags & NODE_SLOT_TOMBSTONE) != 0) return OK;
    rt_yield_point();
    u8 key_bytes[STORE_KEY_BYTES_MAX];
    size_t bytes = slot_key(node, slot_no, key_bytes);
    Slice value = node_read_value(node, (u32)slot_no);
    u8 *to = room_take(cursor, bytes + value.bytes);
    if (to == NULL) return ERR_NOMEM;
    memcpy(to, key_bytes, bytes);
    memcpy(to + bytes, value.p, value.bytes);
    cursor->run_keys[f->rows] = (Slice){to, bytes};
    cursor->run_values[f->rows] = (Slice){to + bytes, value.bytes};
    cursor->run_long[f->rows] = (flags & NODE_SLOT_LONG) != 0;
    f->rows++;
    f->bytes += bytes + value.bytes;
    return OK;
}

static Err
copy_entries(Fetch *f, Node node, i32 from, i32 to, bool stands, i32 *stop_out, u64 *lsn_io)
{
    i32 step = f->backwards ? -1 : 1;
    i32 slot = from;
    for (; slot != to && f->rows < f->rows_max && f->bytes < f->bytes_max; slot += step) {
        Err err = stands ? copy_standing(f, node, slot) : copy_entry(f, node, slot, lsn_io);
        if (err != OK) return err;
        if (UNLIKELY(f->asks)) break;
    }
    *stop_out = slot;
    return OK;
}

/* ---- one leaf ---- */

/* What came of a leaf that turned out to be as it was seen. */
typedef struct LeafDone {
    i32 stop;     /* First slot that was not looked at. */
    bool through; /* To the end of the leaf, or to the bound. */
    bool last;    /* Nothing behind that is wanted. */
    u64 lsn;
    u32 page_id;
    u64 word;
    u32 stop_key_bytes; /* Key of the last slot looked at, if not through. */
    u8 stop_key[STORE_KEY_BYTES_MAX];
} LeafDone;

static void
stop_note(const Fetch *f, Node node, i32 to, CursorPlace *next, LeafDone *done)
{
    done->through = done->stop == to;
    if (done->through) {
        if (!done->last) {
            next->backwards = f->backwards;
            done->last = !cursor__next_leaf(node, next);
        }
        return;
    }
    i32 at = f->backwards ? done->stop + 1 : done->stop - 1;
    done->stop_key_bytes = slot_key(node, at, done->stop_key);
}

/* A leaf that stands: copy it, check, hand out the copy. */
static Err
fetch_whole(Fetch *f, PageView *view, Node node, i32 from, i32 to, CursorPlace *next,
            LeafDone *done, bool *good_out)
{
    StoreCursor *cursor = f->cursor;
    u8 *slab = slab_take(cursor);
    if (slab == NULL) {
        (void)pool_view_end(view);
        return ERR_NOMEM;
    }
    Node copy = {slab + SLAB_LEAD, node.bytes};
    page_copy(copy.p, node.p, copy.bytes);
    *good_out = pool_view_end(view);
    if (!*good_out) {
        cursor->slabs_used--;
        return OK;
    }
    done->stop = range_cut(f, copy, from, to);
    stop_note(f, copy, to, next, done); /* Before keys are turned round. */
    return emit_leaf(f, copy, from, done->stop);
}

/* Another leaf: entry by entry, checked at the end. */
static Err
fetch_entries(Fetch *f, PageView *view, Node node, i32 from, i32 to, bool stands, CursorPlace *next,
              LeafDone *done, bool *good_out)
{
    StoreCursor *cursor = f->cursor;
    u32 rows = f->rows;
    size_t bytes = f->bytes;
    f->asks = false;
    Err err = copy_entries(f, node, from, to, stands, &done->stop, &done->lsn);
    if (UNLIKELY(f->asks) && done->stop == from) {
        /* Not a step without the answer. */
        *good_out = false;
        (void)pool_view_end(view);
        return cursor__ask(cursor, (Slice){f->ask_key, f->ask_bytes});
    }
    if (err == OK) stop_note(f, node, to, next, done);
    *good_out = pool_view_end(view);
    if (!*good_out) {
        f->rows = rows;
        f->bytes = bytes;
        return OK;
    }
    for (u32 i = rows; err == OK && i < f->rows; i++) {
        if (LIKELY(cursor->run_long[i] == 0)) continue;
        err = long_take(cursor, cursor->run_keys[i], &cursor->run_values[i]);
        f->bytes += cursor->run_values[i].bytes;
    }
    return err;
}

/* How many entries of a viewed leaf the transaction sees.  *asks_out: spills must be asked. */
static u32
count_slots(Fetch *f, Node node, i32 from, i32 to, bool stands, u64 *lsn_io, bool *asks_out)
{
    StoreCursor *cursor = f->cursor;
    const NodeHead *head = node_head(node);
    if (stands && NODE_LOAD(head->live) == NODE_LOAD(head->count)) return (u32)(to - from);
    u32 rows = 0;
    for (i32 slot = from; slot < to; slot++) {
        if (stands) {
            rows += (NODE_LOAD(node_slots(node)[slot].flags) & NODE_SLOT_TOMBSTONE) == 0;
            continue;
        }
        u8 key_bytes[STORE_KEY_BYTES_MAX];
        Slice key = {key_bytes, slot_key(node, slot, key_bytes)};
        RowSeen seen;
        row_see(cursor->txn, cursor->tree, node, (u32)slot, key, cursor->value.p + ROW_LEAD_BYTES,
                &seen);
        *lsn_io = MAX_OF(*lsn_io, seen.lsn);
        rows += seen.found;
        *asks_out = *asks_out || seen.ask_spill;
    }
    return rows;
}

/* The same key by key, from a copy of the leaf: what the transaction sees of a key stays. */
static Err
count_resolved(Fetch *f, Node copy, i32 from, i32 to, u32 *rows_out, u64 *lsn_io)
{
    StoreCursor *cursor = f->cursor;
    Err err = OK;
    *rows_out = 0;
    for (i32 slot = from; slot < to && err == OK; slot++) {
        u8 key_bytes[STORE_KEY_BYTES_MAX];
        Slice key = {key_bytes, node_read_key(copy, (u32)slot, key_bytes)};
        RowSeen seen;
        err = row_resolve(cursor->txn, cursor->tree, key, &cursor->value, &seen);
        if (err != OK) break;
        *rows_out += seen.found;
        *lsn_io = MAX_OF(*lsn_io, seen.lsn);
    }
    return err;
}

static Err
count_leaf(Fetch *f, PageView *view, Node node, i32 from, i32 to, bool stands, CursorPlace *next,
           LeafDone *done, bool *good_out)
{
    bool asks = false;
    u32 rows = count_slots(f, node, from, to, stands, &done->lsn, &asks);
    u8 *copy = NULL;
    if (UNLIKELY(asks)) {
        copy = slab_take(f->cursor);
        if (copy == NULL) {
            (void)pool_view_end(view);
            return ERR_NOMEM;
        }
        rt_copy_racy(copy + SLAB_LEAD, node.p, node.bytes);
    }
    done->stop = to;
    stop_note(f, node, to, next, done);
    *good_out = pool_view_end(view);
    Err err = OK;
    if (UNLIKELY(copy != NULL)) {
        f->cursor->slabs_used--;
        Node leaf = {copy + SLAB_LEAD, node.bytes};
        if (*good_out) err = count_resolved(f, leaf, from, to, &rows, &done->lsn);
    }
    if (*good_out) f->counted += rows;
    return err;
}

/* Fetch from one leaf; *good_out false: it changed under us, and nothing was fetched. */
static Err
fetch_leaf(Fetch *f, CursorPlace *next, LeafDone *done, bool *good_out)
{
    StoreCursor *cursor = f->cursor;
    Btree *map = &cursor->tree->map;
    PageView view;
    *good_out = false;
    Err err = cursor__leaf_view(cursor, &f->place, true, &view);
    if (err != OK) return err;
    Node node = btree_node(map, &view);
    done->page_id = view.page_id;
    done->word = view.word;
    i32 from, to;
    cursor__range_of(cursor, &f->place, f->backwards, &view, &from, &to, &done->last);
    u32 wanted = MIN_OF((u32)(to > from ? to - from : from - to), f->rows_max - f->rows);
    bool stands = row_leaf_stands(cursor->txn, node, &done->lsn);
    if (!stands) done->lsn = 0;
    cursor__graves_note(cursor, node);
    if (f->counts) return count_leaf(f, &view, node, from, to, stands, next, done, good_out);
    if (stands && wanted >= WHOLE_MIN) {
        return fetch_whole(f, &view, node, from, to, next, done, good_out);
    }
    return fetch_entries(f, &view, node, from, to, stands, next, done, good_out);
}

/* Stand where the fetch has come to. */
static void
position_set(Fetch *f, const CursorPlace *next, const LeafDone *done)
{
    StoreCursor *cursor = f->cursor;
    CursorSide behind = f->backwards ? CURSOR_BEFORE : CURSOR_AFTER;
    if (!done->through) {
        cursor__stand(cursor, behind, (Slice){done->stop_key, done->stop_key_bytes});
        CursorGuess guess = f->backwards ? GUESS_BACKWARDS : GUESS_FORWARD;
        cursor__remember(cursor, done->page_id, done->word, guess, done->stop);
        return;
    }
    if (done->last) {
        f->end = true;
        return;
    }
    cursor__stand(cursor, CURSOR_BEFORE, next->key);
    cursor__remember(cursor, next->next_leaf, 0, GUESS_NONE, 0);
}

static Err
fetch_run(Fetch *f)
{
    StoreCursor *cursor = f->cursor;
    CursorPlace next;
    LeafDone done;
    while (!f->end && f->rows < f->rows_max && f->bytes < f->bytes_max) {
        bool good;
        Err err = fetch_leaf(f, &next, &done, &good);
        if (err == OK && f->counts) err = rt_check(); /* It goes on to the end of the range. */
        if (err != OK) return err;
        if (!good) {
            cursor->guess = GUESS_NONE;
            rt_fetch_add(&cursor->tree->map.restarts, 1);
            continue;
        }
        if (UNLIKELY(cursor->has_graves)) cursor__graves_purge(cursor);
        if (done.lsn != 0) txn__raise_dep(cursor->txn, done.lsn);
        position_set(f, &next, &done);
        if (!done.through && f->rows == 0 && f->asks) {
            cursor__place_of(cursor, f->backwards, true, &f->place);
            continue;
        }
        if (!done.through) break;
        if (!f->end) cursor__place_copy(&f->place, &next);
    }
    return OK;
}

/* ---- the face ---- */

Err
store_cursor_set_bound(StoreCursor *cursor, Slice key, bool inclusive)
{
    buf_clear(&cursor->bound);
    cursor->bound_inclusive = inclusive;
    if (key.bytes == 0) return OK;
    Err err = buf_append(&cursor->bound, key.p, key.bytes);
    return err == OK ? OK : txn__fail(cursor->txn, err, "out of memory");
}

/* A fetch that met its bound has covered up to the bound, else to where it is. */
static Err
note_fetch(StoreCursor *cursor, const Slice *from, bool backwards, bool end)
{
    if (!end || cursor->bound.bytes == 0) return cursor__note_move(cursor, from, backwards, !end);
    Slice bound = buf_slice(&cursor->bound);
    return backwards ? ssi__note_range(cursor->txn, cursor->tree_id, &bound, from)
                     : ssi__note_range(cursor->txn, cursor->tree_id, from, &bound);
}

/* Stand at the far end of what was fetched last, when nothing follows. */
static void
stand_at_end(StoreCursor *cursor, const Fetch *f)
{
    if (f->rows == 0) {
        if (cursor->side == CURSOR_ON) cursor->side = f->backwards ? CURSOR_BEFORE : CURSOR_AFTER;
        cursor->guess = GUESS_NONE;
        return;
    }
    cursor__stand(cursor, f->backwards ? CURSOR_BEFORE : CURSOR_AFTER,
                  cursor->run_keys[f->rows - 1]);
    cursor->guess = GUESS_NONE;
}

/* An empty run; nothing of the one before is used any more. */
static Err
fetch_prepare(Fetch *f, StoreCursor *cursor, u32 rows_max, size_t bytes_max)
{
    f->cursor = cursor;
    f->rows = 0;
    f->rows_max = MIN_OF(rows_max, ROWS_MAX);
    f->bytes = 0;
    f->bytes_max = MAX_OF(bytes_max, 1);
    f->end = f->counts = f->asks = false;
    cursor__ask_reset(cursor);
    run_reset(cursor);
    Err err = run_reserve(cursor, f->rows_max);
    if (err == OK) err = row_room(cursor->txn->store, &cursor->value);
    return err == OK ? OK : txn__fail(cursor->txn, err, "out of memory");
}

/* Fetch from f->place on.  `from`: where that is; NULL: the end of the tree. */
static Err
fetch_finish(Fetch *f, const Slice *from, StoreRun *run_out)
{
    StoreCursor *cursor = f->cursor;
    StoreTxn *txn = cursor->txn;
    Err err = fetch_run(f);
    if (err != OK && rt_load_acquire(&cursor->tree->gone) != 0) {
        err = OK;
        f->end = true;
    }
    if (err != OK) return txn__fail(txn, err, "%s", err_text(err));
    err = txn__usable(txn);
    if (err != OK) return err;
    if (f->end) stand_at_end(cursor, f);
    if (UNLIKELY(txn->ssi != NULL)) {
        err = note_fetch(cursor, from, f->backwards, f->end);
        if (err != OK) return err;
    }
    *run_out = (StoreRun){
        .rows = f->rows, .key = cursor->run_keys, .value = cursor->run_values, .end = f->end};
    return OK;
}

Err
store_cursor_fetch(StoreCursor *cursor, u32 rows_max, size_t bytes_max, bool backwards,
                   StoreRun *run_out)
{
    *run_out = (StoreRun){.end = true};
    Err err = cursor__start(cursor);
    if (err != OK || cursor->side == CURSOR_NOWHERE || rows_max == 0) return err;
    Fetch f;
    err = fetch_prepare(&f, cursor, rows_max, bytes_max);
    if (err != OK) return err;
    u8 from_bytes[STORE_KEY_BYTES_MAX];
    Slice from = {from_bytes, cursor->key_bytes};
    if (UNLIKELY(cursor->txn->ssi != NULL)) memcpy(from_bytes, cursor->key, cursor->key_bytes);
    if (cursor->guess == GUESS_ENTRY) {
        /* A fetch begins with the entry that the cursor is on. */
        CursorGuess guess = backwards ? GUESS_BACKWARDS : GUESS_FORWARD;
        cursor->guess = (u8)(cursor->side == CURSOR_ON ? guess : GUESS_NONE);
    }
    f.backwards = backwards;
    cursor__place_of(cursor, backwards, true, &f.place);
    f.end = f.place.where == BTREE_BEFORE && f.place.key.bytes == 0;
    return fetch_finish(&f, &from, run_out);
}

Err
store_cursor_fetch_at(StoreCursor *cursor, StoreSeek how, Slice key, u32 rows_max, size_t bytes_max,
                      StoreRun *run_out)
{
    *run_out = (StoreRun){.end = true};
    Err err = cursor__start(cursor);
    if (err != OK) return err;
    ASSERT(rows_max > 0);
    Fetch f;
    err = fetch_prepare(&f, cursor, rows_max, bytes_max);
    if (err != OK) return err;
    cursor->side = CURSOR_NOWHERE; /* Until something is found. */
    cursor->guess = GUESS_NONE;
    f.end = !cursor__place_at(how, key, &f.place);
    f.backwards = f.place.backwards;
    bool at_end = how == STORE_SEEK_FIRST || how == STORE_SEEK_LAST;
    return fetch_finish(&f, at_end ? NULL : &key, run_out);
}

Err
store_cursor_count(StoreCursor *cursor, Slice key, u64 *rows_out)
{
    *rows_out = 0;
    Err err = cursor__start(cursor);
    if (err != OK) return err;
    Fetch f;
    err = fetch_prepare(&f, cursor, 1, 1);
    if (err != OK) return err;
    cursor->side = CURSOR_NOWHERE;
    cursor->guess = GUESS_NONE;
    f.counts = true;
    f.counted = 0;
    f.backwards = false;
    (void)cursor__place_at(key.bytes > 0 ? STORE_SEEK_GE : STORE_SEEK_FIRST, key, &f.place);
    StoreRun run;
    err = fetch_finish(&f, key.bytes > 0 ? &key : NULL, &run);
    cursor->side = CURSOR_NOWHERE; /* It stands nowhere: there is nothing to go on with. */
    *rows_out = f.counted;
    return err;
}
