/*
 * spill.c -- moving undo between memory and a spill, and its end.
 *
 * Spilling a chunk: first its images go into the tree, then its entries as pieces, and only then is
 * the memory given up; so an error on the way only means that what was put is taken out again.
 */
#include "store/version/spill.h"

#include "rt/task.h"
#include "rt/time.h"

#define PIECE_BYTES   2000u /* A piece ends with the entry that passes this. */
#define KEY_WHOLE_MAX 1000u /* Bytes of a key in the key of its image. */
#define KEY_PIECE     0u
#define KEY_IMAGE     1u
#define KEY_HASH_SEED ((u64)0x5b1157a6d1)

/* As in row_undo.c: what undoing needs is asked for again, some times. */
#define READ_TRIES   8u
#define READ_PAUSE   ((u64)2000 * 1000) /* ns */
#define MEMORY_TRIES 2000u

/* After an error: wait a little; false: it was tried often enough. */
static bool
again(u32 *tries, Err err)
{
    if (++*tries >= (err == ERR_NOMEM || err == ERR_FULL ? MEMORY_TRIES : READ_TRIES)) return false;
    Err ignored = rt_sleep_ns(READ_PAUSE);
    (void)ignored;
    return true;
}

typedef struct SpillKey {
    u32 bytes;
    u8 p[STORE_KEY_BYTES_MAX];
} SpillKey;

static Slice
piece_key(SpillKey *to, u64 number)
{
    to->p[0] = KEY_PIECE;
    store_be64(to->p + 1, number);
    to->bytes = 9;
    return (Slice){to->p, to->bytes};
}

/* Of a key too long the first bytes and two hashes stand here. */
static Slice
image_key(SpillKey *to, TreeId tree, Slice key)
{
    u32 whole = (u32)MIN_OF(key.bytes, (size_t)KEY_WHOLE_MAX);
    to->p[0] = KEY_IMAGE;
    store_be32(to->p + 1, tree);
    if (whole > 0) memcpy(to->p + 5, key.p, whole);
    to->bytes = 5 + whole;
    if (key.bytes > KEY_WHOLE_MAX) {
        store_be64(to->p + to->bytes, hash_bytes(key.p, key.bytes, tree));
        store_be64(to->p + to->bytes + 8, hash_bytes(key.p, key.bytes, KEY_HASH_SEED));
        to->bytes += 16;
    }
    return (Slice){to->p, to->bytes};
}

/* ---- reading ---- */

/* The value of one key of the tree, long or not. */
static Err
value_read(Store *store, Btree *map, Slice key, Buf *value, bool *found_out)
{
    NodeSlot slot;
    Err err = btree_get(map, key, found_out, &slot, value);
    if (err != OK || !*found_out || (slot.flags & NODE_SLOT_LONG) == 0) return err;
    LongRef ref;
    if (value->bytes != sizeof(ref)) return ERR_CORRUPT;
    memcpy(&ref, value->p, sizeof(ref));
    buf_clear(value);
    err = buf_reserve(value, ref.bytes);
    bool gone = false;
    if (err == OK) err = long_read(store, &ref, 0, value->p, ref.bytes, &gone);
    value->bytes = ref.bytes;
    *found_out = !gone;
    return err;
}

Err
spill_piece_read(Store *store, Btree *map, u64 number, Buf *value, SpillReader *reader_out)
{
    SpillKey key;
    bool found;
    SpillReader *reader = reader_out;
    Err err = value_read(store, map, piece_key(&key, number), value, &found);
    if (err != OK) return err;
    if (!found || value->bytes < sizeof(reader->head)) return ERR_CORRUPT;
    memcpy(&reader->head, value->p, sizeof(reader->head));
    size_t head_bytes = sizeof(reader->head);
    reader->rest = (Slice){value->p + head_bytes, value->bytes - head_bytes};
    reader->left = reader->head.entries;
    reader->redo = reader->head.redo_base;
    reader->key_bytes = 0;
    return OK;
}

static bool
take_number(Slice *rest, u64 most, u64 *number_out)
{
    size_t bytes = varint_get(rest->p, rest->p + rest->bytes, number_out);
    *rest = (Slice){rest->p + bytes, rest->bytes - bytes};
    return bytes != 0 && *number_out <= most;
}

static bool
take_bytes(Slice *rest, u64 count, Slice *bytes_out)
{
    if (count > rest->bytes) return false;
    *bytes_out = (Slice){rest->p, count};
    *rest = (Slice){rest->p + count, rest->bytes - count};
    return true;
}

bool
spill_piece_next(SpillReader *reader, SpillEntry *entry_out)
{
    SpillEntry *entry = entry_out;
    Slice *rest = &reader->rest, bytes;
    u64 number;
    *entry = (SpillEntry){0};
    if (reader->left == 0 || !take_bytes(rest, 1, &bytes)) return false;
    entry->kind = bytes.p[0] & 0x0f;
    entry->flags = bytes.p[0] & 0xf0;
    if (entry->kind > UNDO_TREE_DROP || !take_number(rest, U32_MAX, &number)) return false;
    entry->tree = (TreeId)number;
    if (!take_number(rest, U64_MAX, &number)) return false;
    entry->redo = reader->redo = reader->redo + number;
    if (entry->kind >= UNDO_TREE_CREATE) {
        if (!take_bytes(rest, 1, &bytes)) return false;
        entry->tree_kind = bytes.p[0];
        reader->left--;
        return true;
    }
    if (!take_number(rest, reader->key_bytes, &number)) return false;
    u32 shared = (u32)number;
    if (!take_number(rest, STORE_KEY_BYTES_MAX - shared, &number)) return false;
    if (!take_bytes(rest, number, &bytes)) return false;
    if (bytes.bytes > 0) memcpy(reader->key + shared, bytes.p, bytes.bytes);
    reader->key_bytes = shared + (u32)bytes.bytes;
    entry->key = (Slice){reader->key, reader->key_bytes};
    if (entry->kind == UNDO_BEFORE) {
        if (!take_bytes(rest, 1, &bytes)) return false;
        entry->slot_flags = bytes.p[0];
        if (!take_number(rest, rest->bytes, &number)) return false;
        if (!take_bytes(rest, number, &entry->image)) return false;
    }
    reader->left--;
    return true;
}

Err
spill_image_read(Store *store, Btree *map, TreeId tree, Slice key, Buf *value, bool *found_out,
                 SpillImage *image_out, Slice *bytes_out)
{
    SpillKey place;
    Err err = value_read(store, map, image_key(&place, tree, key), value, found_out);
    if (err != OK || !*found_out) return err;
    if (value->bytes < sizeof(*image_out)) return ERR_CORRUPT;
    memcpy(image_out, value->p, sizeof(*image_out));
    size_t at = sizeof(*image_out) + image_out->key_bytes;
    if (at > value->bytes) return ERR_CORRUPT;
    *bytes_out = (Slice){value->p + at, value->bytes - at};
    if (image_out->key_bytes == 0) return OK;
    *found_out = slice_equal((Slice){value->p + sizeof(*image_out), image_out->key_bytes}, key);
    return OK;
}

/* ---- the object ---- */

static Spill *
spill_of(const TxnState *state)
{
    return (Spill *)rt_load_acquire(&state->spill);
}

static void
spill_free(Spill *spill)
{
    if (spill == NULL) return;
    btree_close(&spill->tree.map);
    buf_free(&spill->piece);
    buf_free(&spill->value);
    buf_free(&spill->scratch);
    mem_free(spill);
}

/* Numbers of spills' trees lie beyond those of all others. */
#define SPILL_TREE_FIRST 0x80000000u

static Err
spill_make(Store *store, TxnState *state, Spill **spill_out)
{
    *spill_out = spill_of(state);
    if (*spill_out != NULL) return OK;
    Spill *spill = MEM_NEW(Spill);
    if (spill == NULL) return ERR_NOMEM;
    spill->state = state;
    spill->serial = ++store->spill_serial;
    spill->tree.id = SPILL_TREE_FIRST | spill->serial;
    Err err = btree_create(&spill->tree.map, store->pages_file, &store->btree_pages, spill->tree.id,
                           false);
    if (err != OK) {
        mem_free(spill);
        return err;
    }
    rt_latch_acquire(&store->spill_latch);
    Spill **link = &store->spills;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = spill;
    rt_store_release(&state->spill, (void *)spill);
    rt_fetch_add(&store->spill_count, 1);
    rt_latch_release(&store->spill_latch);
    *spill_out = spill;
    return OK;
}

/* Nobody finds the spill any more, and nobody is in it. */
static void
spill_unlink(Store *store, Spill *spill)
{
    rt_latch_acquire(&store->spill_latch);
    Spill **link = &store->spills;
    while (*link != spill) {
        link = &(*link)->next;
    }
    *link = spill->next;
    rt_store_release(&spill->state->spill, NULL);
    u32 rounds = 0;
    while (spill->readers > 0) {
        rt_latch_release(&store->spill_latch);
        rt_spin(&rounds);
        rt_latch_acquire(&store->spill_latch);
    }
    rt_fetch_sub(&store->spill_count, 1);
    rt_latch_release(&store->spill_latch);
    rt_fetch_add(&store->spill_moves, 1);
}

static void
spill_end(Store *store, Spill *spill)
{
    spill_unlink(store, spill);
    store__tree_empty(store, &spill->tree);
    spill_free(spill);
}

void
spill_drop(Store *store, TxnState *state)
{
    if (LIKELY(spill_of(state) == NULL)) return;
    rt_mutex_lock(&store->spill_mutex);
    ASSERT(spill_of(state)->pieces == 0);
    spill_end(store, spill_of(state));
    rt_mutex_unlock(&store->spill_mutex);
}

/* ---- out ---- */

/* An image that others may want: the version of another transaction. */
static bool
is_base(const Before *before)
{
    return !before_is(before, BEFORE_OWN | BEFORE_UNDONE);
}

static Err
image_put(Store *store, Spill *spill, const Before *before)
{
    SpillKey place;
    Slice key = before_key(before), image = before_image(before);
    SpillImage head = {.writer = before->writer,
                       .ts = before->ts,
                       .lsn = before->lsn,
                       .slot_flags = before->slot_flags};
    if (key.bytes > KEY_WHOLE_MAX) head.key_bytes = (u16)key.bytes;
    buf_clear(&spill->value);
    Err err = buf_append(&spill->value, &head, sizeof(head));
    if (err == OK) err = buf_append(&spill->value, key.p, head.key_bytes);
    if (err == OK) err = buf_append(&spill->value, image.p, image.bytes);
    if (err != OK) return err;
    Slice at = image_key(&place, before->tree, key);
    return row_put_settled(store, &spill->tree, at, buf_slice(&spill->value), &spill->scratch);
}

/* Take something out again; a page must perhaps come back from the disk first. */
static Err
take_out(Store *store, Spill *spill, Slice key)
{
    Err err;
    u32 tries = 0;
    do {
        err = row_remove_settled(store, &spill->tree, key);
    } while (err != OK && again(&tries, err));
    return err;
}

static const UndoEntry *
entry_after(const UndoChunk *chunk, const UndoEntry *entry)
{
    const u8 *next = (const u8 *)entry + entry->bytes;
    if (next >= chunk->bytes + chunk->used) return NULL;
    return (const UndoEntry *)(const void *)next;
}

static const UndoEntry *
entry_first(const UndoChunk *chunk)
{
    return chunk->used == 0 ? NULL : (const UndoEntry *)(const void *)chunk->bytes;
}

static bool
stands(const UndoEntry *entry)
{
    return rt_load_relaxed(&entry->undone) == 0;
}

/* What is put for a chunk so far: images before `end`, pieces from `pieces` on. */
typedef struct Moving {
    Store *store;
    Spill *spill;
    UndoChunk *chunk;
    const UndoEntry *end; /* First entry whose image is not in the tree. */
    u64 pieces;           /* The stack's height before. */
    u64 redo;
    u32 entries; /* In the piece that is being made. */
    u64 total;
    u32 last_key_bytes;
    u8 last_key[STORE_KEY_BYTES_MAX];
} Moving;

static Err
images_put(Moving *m)
{
    for (m->end = entry_first(m->chunk); m->end != NULL; m->end = entry_after(m->chunk, m->end)) {
        if (!stands(m->end) || m->end->kind != UNDO_BEFORE) continue;
        const Before *before = undo_before(m->end);
        if (!is_base(before)) continue;
        Err err = image_put(m->store, m->spill, before);
        if (err != OK) return err;
        rt_give_turn();
    }
    return OK;
}

/* An error here ends the store's writing: what stays in the tree harms readers of memory no more
   than a second copy would, but a checkpoint must not be made of it. */
static void
moving_undo(Moving *m)
{
    SpillKey place;
    Err err = OK;
    while (m->spill->pieces > m->pieces) {
        Err out = take_out(m->store, m->spill, piece_key(&place, --m->spill->pieces));
        if (err == OK) err = out;
    }
    for (const UndoEntry *entry = entry_first(m->chunk); entry != m->end;
         entry = entry_after(m->chunk, entry)) {
        if (!stands(entry) || entry->kind != UNDO_BEFORE) continue;
        const Before *before = undo_before(entry);
        if (!is_base(before)) continue;
        Slice key = image_key(&place, before->tree, before_key(before));
        Err out = take_out(m->store, m->spill, key);
        if (err == OK) err = out;
    }
    if (err != OK) store__end_writing(m->store, err);
}

static Err
piece_end(Moving *m)
{
    Spill *spill = m->spill;
    if (m->entries == 0) return OK;
    SpillPieceHead head;
    memcpy(&head, spill->piece.p, sizeof(head));
    head.entries = m->entries;
    memcpy(spill->piece.p, &head, sizeof(head));
    SpillKey place;
    Err err = row_put_settled(m->store, &spill->tree, piece_key(&place, spill->pieces),
                              buf_slice(&spill->piece), &spill->scratch);
    if (err != OK) return err;
    spill->pieces++;
    m->total += m->entries;
    m->entries = 0;
    return OK;
}

static Err
piece_begin(Moving *m, u64 redo)
{
    SpillPieceHead head = {.epoch = m->chunk->epoch, .redo_base = redo};
    m->redo = redo;
    m->last_key_bytes = 0;
    buf_clear(&m->spill->piece);
    return buf_append(&m->spill->piece, &head, sizeof(head));
}

static u8 *
put_key(Moving *m, u8 *to, Slice key)
{
    u32 shared = 0, most = (u32)MIN_OF(key.bytes, (size_t)m->last_key_bytes);
    while (shared < most && key.p[shared] == m->last_key[shared]) {
        shared++;
    }
    to += varint_put(to, shared);
    to += varint_put(to, key.bytes - shared);
    if (key.bytes > shared) memcpy(to, key.p + shared, key.bytes - shared);
    if (key.bytes > 0) memcpy(m->last_key, key.p, key.bytes);
    m->last_key_bytes = (u32)key.bytes;
    return to + key.bytes - shared;
}

/* Flags of a Before in its piece, and the part of its image that goes there. */
static u8
before_flags(const Before *before, Slice *image_out)
{
    *image_out = SLICE_NONE;
    if (before_is(before, BEFORE_UNDONE)) return SPILL_ENTRY_DONE;
    bool own = before_is(before, BEFORE_OWN);
    if (own || (before->slot_flags & NODE_SLOT_LONG) != 0) *image_out = before_image(before);
    u8 flags = own ? SPILL_ENTRY_OWN : 0;
    if (before_is(before, BEFORE_DELETES)) flags |= SPILL_ENTRY_DELETES;
    if (before_is(before, BEFORE_ASKED)) flags |= SPILL_ENTRY_HELD;
    return flags;
}

static Err
entry_put(Moving *m, const UndoEntry *entry)
{
    Spill *spill = m->spill;
    const Before *before = entry->kind == UNDO_BEFORE ? undo_before(entry) : NULL;
    Slice image = SLICE_NONE, key = before != NULL ? before_key(before) : undo_key(entry);
    u64 redo = m->chunk->redo_base + entry->redo;
    Err err = m->entries == 0 ? piece_begin(m, redo) : OK;
    u8 flags = before != NULL ? before_flags(before, &image) : 0;
    if (err == OK) err = buf_reserve(&spill->piece, 64 + key.bytes + image.bytes);
    if (err != OK) return err;
    u8 *to = spill->piece.p + spill->piece.bytes;
    *to++ = entry->kind | flags;
    to += varint_put(to, entry->tree);
    to += varint_put(to, redo - m->redo);
    m->redo = redo;
    if (entry->kind >= UNDO_TREE_CREATE) {
        *to++ = entry->tree_kind;
    } else {
        to = put_key(m, to, key);
    }
    if (before != NULL) {
        *to++ = before->slot_flags;
        to += varint_put(to, image.bytes);
        if (image.bytes > 0) memcpy(to, image.p, image.bytes);
        to += image.bytes;
        bool is_long = image.bytes > 0 && (before->slot_flags & NODE_SLOT_LONG) != 0;
        if (is_long || (flags & SPILL_ENTRY_DELETES) != 0) spill->has_work = true;
    }
    spill->piece.bytes = (size_t)(to - spill->piece.p);
    m->entries++;
    return spill->piece.bytes >= PIECE_BYTES ? piece_end(m) : OK;
}

static Err
pieces_put(Moving *m)
{
    Err err = OK;
    const UndoEntry *entry = entry_first(m->chunk);
    for (; entry != NULL && err == OK; entry = entry_after(m->chunk, entry)) {
        if (stands(entry)) err = entry_put(m, entry);
    }
    return err == OK ? piece_end(m) : err;
}

/* The image is in the tree: give up the Before, or leave it as a marker where a slot asks. */
static void
before_leave(Store *store, Before *before)
{
    VersionMap *map = &store->versions;
    if (before_is(before, BEFORE_UNDONE)) return; /* Its creator's list still has it. */
    version_lock(map, before->hash);
    bool held = before_is(before, BEFORE_ASKED);
    if (held) {
        before_mark(before, BEFORE_MARKER);
    } else {
        version_unlink(map, before);
    }
    version_unlock(map, before->hash);
    if (held) return;
    before_remove(before->creator, before);
    before_free(before);
}

static Err
chunk_out(Store *store, Spill *spill, TxnState *state)
{
    Moving m = {.store = store, .spill = spill, .chunk = state->undo.oldest};
    m.pieces = spill->pieces;
    Err err = images_put(&m);
    if (err == OK) err = pieces_put(&m);
    if (err != OK) {
        moving_undo(&m);
        return err;
    }
    spill->entries += m.total;
    const UndoEntry *entry = entry_first(m.chunk);
    for (; entry != NULL; entry = entry_after(m.chunk, entry)) {
        if (stands(entry) && entry->kind == UNDO_BEFORE) before_leave(store, undo_before(entry));
    }
    undo_chunk_free(&state->undo, undo_take_oldest(&state->undo));
    return OK;
}

Err
spill_out(StoreTxn *txn)
{
    Store *store = txn->store;
    TxnState *state = txn->state;
    /* Serializability is judged by what is in memory; without a file there is nowhere to go. */
    if (store->file == NULL || txn->ssi != NULL) return OK;
    if (state->undo.oldest == NULL || state->undo.oldest->newer == NULL) return OK;
    u64 enough = PLANT(141) ? 0 : store->spill_bytes - store->spill_bytes / 4;
    rt_mutex_lock(&store->spill_mutex);
    Spill *spill;
    Err err = rt_load_acquire(&state->doomed) != 0 ? ERR_BUSY_SNAPSHOT : OK;
    if (err == OK) err = spill_make(store, state, &spill);
    while (err == OK && state->undo.oldest->newer != NULL &&
           state->undo.bytes + state->before_bytes > enough) {
        err = chunk_out(store, spill, state);
    }
    rt_mutex_unlock(&store->spill_mutex);
    if (err == ERR_BUSY_SNAPSHOT) return txn__usable(txn);
    return err == OK ? OK : txn__fail(txn, err, "%s", err_text(err));
}

/* ---- in ---- */

static bool
is_doomed_key(Store *store, const TxnState *state, const SpillEntry *entry)
{
    bool doomed = false;
    rt_latch_acquire(&store->doom_latch);
    for (const DoomedInsert *note = state->doomed_inserts; note != NULL && !doomed;
         note = note->next) {
        doomed = note->tree == entry->tree &&
                 slice_equal((Slice){note->key, note->key_bytes}, entry->key);
    }
    rt_latch_release(&store->doom_latch);
    return doomed;
}

/* The marker that was left in the chain for this entry. */
static Before *
held_find(Store *store, TxnState *state, const SpillEntry *entry, u64 hash, u64 seq)
{
    VersionMap *map = &store->versions;
    version_lock(map, hash);
    Before *before = version_head(map, hash, entry->tree, entry->key);
    while (before != NULL && (before->creator != state || before->seq != seq)) {
        before = before->older;
    }
    if (before != NULL) before_unmark(before, BEFORE_MARKER);
    version_unlock(map, hash);
    return before;
}

/* The image of an entry, from where it stands. */
static Err
image_back(Store *store, Spill *spill, const SpillEntry *entry, SpillImage *image_io,
           Slice *bytes_out)
{
    Err err;
    bool found = true;
    u32 tries = 0;
    *bytes_out = entry->image;
    if ((entry->flags & SPILL_ENTRY_OWN) != 0) return OK;
    do {
        err = spill_image_read(store, &spill->tree.map, entry->tree, entry->key, &spill->piece,
                               &found, image_io, bytes_out);
    } while (err != OK && again(&tries, err));
    return err == OK && !found ? ERR_CORRUPT : err;
}

/* The Before of an entry that comes back, linked; memory is waited for. */
static Err
before_back(Store *store, TxnState *state, Spill *spill, const SpillEntry *entry, u64 seq,
            Before **before_out)
{
    VersionMap *map = &store->versions;
    u64 hash = version_hash(entry->tree, entry->key);
    bool done = (entry->flags & SPILL_ENTRY_DONE) != 0 ||
                (rt_load_acquire(&state->doomed) != 0 && is_doomed_key(store, state, entry));
    if (!done && (entry->flags & SPILL_ENTRY_HELD) != 0) {
        *before_out = held_find(store, state, entry, hash, seq);
        return *before_out == NULL ? ERR_CORRUPT : OK;
    }
    SpillImage image = {.writer = rt_load_relaxed(&state->id), .ts = U64_MAX};
    Slice bytes = SLICE_NONE;
    Err err = done ? OK : image_back(store, spill, entry, &image, &bytes);
    if (err != OK) return err;
    Before *before;
    u32 tries = 0;
    while ((before = before_new(entry->tree, hash, entry->key, bytes)) == NULL) {
        if (!again(&tries, ERR_NOMEM)) return ERR_NOMEM;
    }
    *before_out = before;
    before->slot_flags = entry->slot_flags;
    before->writer = image.writer;
    before->ts = image.ts;
    before->lsn = image.lsn;
    before->seq = seq;
    before->creator = state;
    before->creator_id = rt_load_relaxed(&state->id);
    if ((entry->flags & SPILL_ENTRY_OWN) != 0) before_mark_new(before, BEFORE_OWN);
    if ((entry->flags & SPILL_ENTRY_DELETES) != 0) before_mark_new(before, BEFORE_DELETES);
    before_append(state, before);
    if (done) {
        before_mark(before, BEFORE_UNDONE | BEFORE_MARKER);
        return OK;
    }
    version_lock(map, hash);
    (void)version_link(map, before);
    version_unlock(map, hash);
    return OK;
}

static Err
entry_back(Store *store, TxnState *state, Spill *spill, const SpillEntry *entry, u64 epoch, u64 seq)
{
    UndoLog *undo = &state->undo;
    u32 tries = 0;
    Err err;
    do {
        err = undo_reserve_back(undo, MAX_OF(entry->key.bytes, sizeof(Before *)));
    } while (err != OK && again(&tries, err));
    Slice key = entry->key;
    Before *before = NULL;
    if (err == OK && entry->kind == UNDO_BEFORE) {
        err = before_back(store, state, spill, entry, seq, &before);
        key = (Slice){(const u8 *)&before, sizeof(before)};
    }
    if (err != OK) return err;
    UndoEntry *back = undo_append(undo, (UndoKind)entry->kind, entry->tree, key, epoch,
                                  entry->redo);
    back->tree_kind = entry->tree_kind;
    undo->count--; /* It never was out of the count. */
    return OK;
}

/* Read a piece, patiently. */
static Err
piece_get(Store *store, Spill *spill, u64 number, SpillReader *reader)
{
    u32 tries = 0;
    Err err;
    do {
        err = spill_piece_read(store, &spill->tree.map, number, &spill->value, reader);
    } while (err != OK && again(&tries, err));
    return err;
}

/* The piece is in memory again. */
static Err
piece_take_out(Store *store, Spill *spill, u64 number)
{
    SpillKey place;
    SpillReader reader;
    SpillEntry entry;
    Err err = piece_get(store, spill, number, &reader);
    while (err == OK && spill_piece_next(&reader, &entry)) {
        if (entry.kind != UNDO_BEFORE) continue;
        if ((entry.flags & (SPILL_ENTRY_OWN | SPILL_ENTRY_DONE)) != 0) continue;
        err = take_out(store, spill, image_key(&place, entry.tree, entry.key));
        rt_give_turn();
    }
    return err == OK ? take_out(store, spill, piece_key(&place, number)) : err;
}

Err
spill_in(StoreTxn *txn)
{
    Store *store = txn->store;
    TxnState *state = txn->state;
    Spill *spill = spill_of(state);
    ASSERT(spill != NULL && spill->pieces > 0);
    SpillReader reader;
    SpillEntry entry;
    rt_mutex_lock(&store->spill_mutex);
    undo_clear(&state->undo);
    u64 number = spill->pieces - 1;
    Err err = piece_get(store, spill, number, &reader);
    if (err == OK) spill->entries -= reader.head.entries;
    u64 seq = spill->entries;
    while (err == OK && spill_piece_next(&reader, &entry)) {
        err = entry_back(store, state, spill, &entry, reader.head.epoch, seq++);
        rt_give_turn();
    }
    if (err == OK && reader.left != 0) err = ERR_CORRUPT;
    rt_fetch_add(&store->spill_moves, 1);
    if (err == OK) err = piece_take_out(store, spill, number);
    if (err == OK) spill->pieces--;
    rt_mutex_unlock(&store->spill_mutex);
    return err;
}

/* ---- settling ---- */

static void
entry_settle(Store *store, const TxnState *state, const SpillEntry *entry)
{
    if (entry->kind != UNDO_BEFORE || (entry->flags & SPILL_ENTRY_DONE) != 0) return;
    if ((entry->slot_flags & NODE_SLOT_LONG) != 0 && entry->image.bytes == sizeof(LongRef)) {
        LongRef ref;
        memcpy(&ref, entry->image.p, sizeof(ref));
        long_free(store, &ref);
    }
    if ((entry->flags & SPILL_ENTRY_DELETES) == 0) return;
    u64 hash = version_hash(entry->tree, entry->key);
    row_purge(store, store__tree(store, entry->tree), entry->key, hash,
              rt_load_relaxed(&state->id));
}

bool
spill_settle(Store *store, TxnState *state, u64 budget)
{
    Spill *spill = spill_of(state);
    if (LIKELY(spill == NULL)) return true;
    SpillReader reader;
    SpillEntry entry;
    u64 done = 0;
    for (; spill->has_work && spill->settled < spill->pieces; spill->settled++) {
        if (done >= budget) return false;
        Err err = spill_piece_read(store, &spill->tree.map, spill->settled, &spill->value, &reader);
        if (err != OK) {
            log_line(LOG_WARN, "%s: undo of a transaction cannot be read, its tombstones stay",
                     store->path);
            break;
        }
        done += reader.left;
        while (spill_piece_next(&reader, &entry)) {
            entry_settle(store, state, &entry);
            rt_give_turn();
        }
    }
    spill_end(store, spill);
    return true;
}

void
spill_free_all(Store *store)
{
    while (store->spills != NULL) {
        Spill *spill = store->spills;
        store->spills = spill->next;
        rt_store_release(&spill->state->spill, NULL);
        spill_free(spill);
    }
}
