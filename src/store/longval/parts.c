/*
 * parts.c -- reading and writing long values in parts.
 *
 * A call needs memory for one part, however long the value is.
 */
#include "store/longval/parts.h"

#include "store/longval/longval.h"
#include "store/txn/ssi.h"
#include "store/version/spill.h"

#define PART_HEAD      0u
#define PREFIX_BYTES   14u /* All parts of a row share it. */
#define TREE_BYTES     6u  /* And those of a tree this, */
#define KIND_BYTES     2u  /* and all of them this. */
#define PART_KEY_BYTES 18u
#define HEAD_TEXT      "parts"

typedef struct PartKey {
    u8 bytes[PART_KEY_BYTES];
} PartKey;

static PartKey
part_key(TreeId tree, Slice key, u32 number)
{
    PartKey part = {{0xff, 'P'}};
    ASSERT(key.bytes == PREFIX_BYTES - TREE_BYTES);
    store_be32(part.bytes + 2, tree);
    memcpy(part.bytes + TREE_BYTES, key.p, key.bytes);
    store_be32(part.bytes + PREFIX_BYTES, number);
    return part;
}

static Slice
slice_of(const PartKey *key)
{
    return (Slice){key->bytes, PART_KEY_BYTES};
}

/* One row of TREE_ROOT as the transaction sees it, into memory of the transaction's own. */
static Err
part_get(StoreTxn *txn, const PartKey *key, bool *found_out, Slice *value_out)
{
    Tree *root = store__tree(txn->store, TREE_ROOT);
    RowSeen seen;
    *found_out = false;
    Err err = txn->ssi == NULL ? OK : ssi__note_key(txn, TREE_ROOT, slice_of(key));
    if (err != OK) return err;
    err = row_resolve(txn, root, slice_of(key), &txn->part, &seen);
    if (err != OK) return txn__fail(txn, err, "%s", err_text(err));
    if (seen.lsn != 0) txn__raise_dep(txn, seen.lsn);
    *found_out = seen.found;
    *value_out = seen.value;
    return txn__usable(txn);
}

/* A cursor on the first part of TREE_ROOT at or behind `key`. */
static Err
parts_open(StoreTxn *txn, const PartKey *key, StoreCursor **cursor_out, bool *found_out)
{
    Err err = store_cursor_open(txn, TREE_ROOT, cursor_out);
    if (err != OK) return err;
    err = store_cursor_seek(*cursor_out, STORE_SEEK_GE, slice_of(key), found_out);
    if (err == OK) return OK;
    store_cursor_close(*cursor_out);
    return err;
}

/* Does the cursor stand on a part that begins as `key` does?  Its number. */
static bool
part_is(const StoreCursor *cursor, const PartKey *key, u32 same_bytes, u32 *number_out)
{
    Slice at = store_cursor_key(cursor);
    if (at.bytes != PART_KEY_BYTES || memcmp(at.p, key->bytes, same_bytes) != 0) return false;
    *number_out = load_be32(at.p + PREFIX_BYTES);
    return true;
}

/*
 * May there be parts of any row?  Mostly nobody ever writes one, and then the rows of long values
 * need no second look.  Who writes or deletes one has made it PARTS_SOME before: so where nothing
 * is found, nothing has been there since the store was opened, for any snapshot.  A SERIALIZABLE
 * transaction looks in any case, because the look is what tells of a conflict.
 */
static Err
parts_any(StoreTxn *txn, bool *any_out)
{
    RtU32 *parts = &txn->store->parts;
    u32 state = rt_load(parts);
    *any_out = state != PARTS_NONE || txn->ssi != NULL;
    if (LIKELY(state != PARTS_UNKNOWN)) return OK;
    PartKey first = part_key(TREE_NONE, SLICE("\0\0\0\0\0\0\0\0", 8), PART_HEAD);
    StoreCursor *cursor;
    bool found;
    u32 number;
    Err err = parts_open(txn, &first, &cursor, &found);
    if (err != OK) return err;
    *any_out = found && part_is(cursor, &first, KIND_BYTES, &number);
    store_cursor_close(cursor);
    (void)rt_cas(parts, &state, (u32)(*any_out ? PARTS_SOME : PARTS_NONE));
    /* Somebody may have begun to write one meanwhile. */
    *any_out = rt_load(parts) != PARTS_NONE || txn->ssi != NULL;
    return OK;
}

Err
parts_overlay(StoreTxn *txn, TreeId tree, Slice key, u64 offset, u8 *to, u64 count)
{
    if (key.bytes != PREFIX_BYTES - TREE_BYTES || count == 0) return OK;
    bool any;
    Err err = parts_any(txn, &any);
    if (err != OK || LIKELY(!any)) return err;
    PartKey head = part_key(tree, key, PART_HEAD);
    StoreCursor *cursor;
    bool found;
    Slice value;
    err = part_get(txn, &head, &found, &value);
    if (err != OK || !found) return err;
    u64 each = parts_bytes(txn->store), end = offset + count;
    PartKey first = part_key(tree, key, (u32)(offset / each) + 1);
    err = parts_open(txn, &first, &cursor, &found);
    if (err != OK) return err;
    while (err == OK && found) {
        u32 number;
        if (!part_is(cursor, &head, PREFIX_BYTES, &number)) break;
        value = store_cursor_value(cursor);
        u64 from = (number - 1) * each, low = MAX_OF(from, offset);
        u64 high = MIN_OF(from + value.bytes, end);
        if (from >= end) break;
        if (low < high) memcpy(to + (low - offset), value.p + (low - from), high - low);
        err = store_cursor_next(cursor, &found);
    }
    store_cursor_close(cursor);
    return err;
}

/* Delete the parts from `key` on that begin as it does. */
static Err
forget_from(StoreTxn *txn, const PartKey *key, u32 same_bytes)
{
    StoreCursor *cursor;
    bool found;
    Err err = parts_open(txn, key, &cursor, &found);
    if (err != OK) return err;
    while (err == OK && found) {
        PartKey part;
        u32 number;
        StoreVerdict verdict;
        if (!part_is(cursor, key, same_bytes, &number)) break;
        memcpy(part.bytes, store_cursor_key(cursor).p, PART_KEY_BYTES);
        err = store_delete(txn, TREE_ROOT, slice_of(&part), &verdict);
        if (err == OK) err = store_cursor_next(cursor, &found);
    }
    store_cursor_close(cursor);
    return err;
}

Err
parts_forget(StoreTxn *txn, TreeId tree, Slice key)
{
    if (key.bytes != PREFIX_BYTES - TREE_BYTES) return OK;
    bool any;
    Err err = parts_any(txn, &any);
    if (err != OK || LIKELY(!any)) return err;
    PartKey head = part_key(tree, key, PART_HEAD);
    StoreVerdict verdict;
    if (PLANT(143)) return OK; /* The next value of the row shows them. */
    err = store_delete(txn, TREE_ROOT, slice_of(&head), &verdict);
    if (err != OK || LIKELY(verdict == STORE_ABSENT)) return err;
    PartKey first = part_key(tree, key, PART_HEAD + 1);
    return forget_from(txn, &first, PREFIX_BYTES);
}

Err
parts_forget_tree(StoreTxn *txn, TreeId tree)
{
    bool any;
    Err err = parts_any(txn, &any);
    if (err != OK || LIKELY(!any)) return err;
    PartKey first = part_key(tree, SLICE("\0\0\0\0\0\0\0\0", 8), PART_HEAD);
    return forget_from(txn, &first, TREE_BYTES);
}

Err
parts_newer(StoreTxn *txn, TreeId tree, Slice key, bool *newer_out)
{
    *newer_out = false;
    if (key.bytes != PREFIX_BYTES - TREE_BYTES) return OK;
    bool any;
    Err err = parts_any(txn, &any);
    if (err != OK || LIKELY(!any)) return err;
    PartKey head = part_key(tree, key, PART_HEAD);
    Newest newest;
    err = read__newest(txn, store__tree(txn->store, TREE_ROOT), slice_of(&head), true, &newest);
    *newer_out = err == OK && newest.newer;
    return err;
}

/* ---- the face: reading ---- */

Err
store_get_part(StoreTxn *txn, TreeId tree_id, Slice key, u64 offset, void *to, u32 count,
               bool *found_out, u64 *bytes_out)
{
    Tree *tree = store__tree(txn->store, tree_id);
    RowSeen seen;
    *found_out = false;
    *bytes_out = 0;
    if (tree == NULL) return txn__fail(txn, ERR_MISUSE, "no such tree: %u", tree_id);
    txn->touched = true;
    Err err = txn->ssi == NULL ? OK : ssi__note_key(txn, tree_id, key);
    if (err != OK) return err;
    err = row_resolve(txn, tree, key, &txn->part, &seen);
    if (err != OK && rt_load_acquire(&tree->gone) != 0) return txn__usable(txn);
    if (err != OK) return txn__fail(txn, err, "%s", err_text(err));
    if (seen.lsn != 0) txn__raise_dep(txn, seen.lsn);
    err = txn__usable(txn);
    if (err != OK || !seen.found) return err;
    LongRef ref = {.bytes = (u32)seen.value.bytes};
    if (seen.is_long) memcpy(&ref, seen.value.p, sizeof(ref));
    u32 part = offset >= ref.bytes ? 0 : (u32)MIN_OF((u64)count, ref.bytes - offset);
    *found_out = true;
    *bytes_out = ref.bytes;
    if (part == 0) return OK;
    if (!seen.is_long) {
        memcpy(to, seen.value.p + offset, part);
        return OK;
    }
    bool gone;
    err = long_read(txn->store, &ref, (u32)offset, (u8 *)to, part, &gone);
    if (err == OK && gone) err = ERR_CORRUPT; /* Our snapshot should have kept it. */
    if (err != OK) return txn__fail(txn, err, "%s", err_text(err));
    return parts_overlay(txn, tree_id, key, offset, (u8 *)to, part);
}

/* ---- the face: writing ---- */

typedef struct PartWrite {
    StoreTxn *txn;
    TreeId tree;
    Slice key;
    LongRef ref;
    u8 *room; /* For one part. */
} PartWrite;

/* The row's newest version, which must be the one that the snapshot sees; nobody may be writing it.
 */
static Err
row_look(PartWrite *w, Tree *tree, bool waits, Newest *newest_out)
{
    Err err = read__newest(w->txn, tree, w->key, waits, newest_out);
    if (err != OK || (!newest_out->newer && !newest_out->busy)) return err;
    if (PLANT(144)) return OK; /* Writes over a row that it does not know. */
    rt_fetch_add(&w->txn->store->counters.conflicts, 1);
    return txn__fail(w->txn, ERR_BUSY_SNAPSHOT,
                     "could not serialize access due to concurrent update");
}

/* A short value: it is written as a whole. */
static Err
short_write(PartWrite *w, Slice value, u64 offset, Slice bytes)
{
    StoreVerdict verdict;
    u8 *whole = (u8 *)mem_alloc(value.bytes + 1);
    if (whole == NULL) return txn__fail(w->txn, ERR_NOMEM, "out of memory");
    memcpy(whole, value.p, value.bytes);
    if (bytes.bytes > 0) memcpy(whole + offset, bytes.p, bytes.bytes);
    Err err = store_put(w->txn, w->tree, w->key, (Slice){whole, value.bytes}, STORE_PUT_UPDATE,
                        &verdict);
    mem_free(whole);
    return err;
}

/* What a part holds now. */
static Err
part_load(PartWrite *w, const PartKey *key, u32 from, u32 count)
{
    bool found, gone;
    Slice value;
    Err err = part_get(w->txn, key, &found, &value);
    if (err != OK) return err;
    if (found && value.bytes == count) {
        memcpy(w->room, value.p, count);
        return OK;
    }
    if (found) return txn__fail(w->txn, ERR_CORRUPT, "a part of a long value has a wrong length");
    err = long_read(w->txn->store, &w->ref, from, w->room, count, &gone);
    if (err == OK && gone) err = ERR_CORRUPT;
    return err == OK ? OK : txn__fail(w->txn, err, "%s", err_text(err));
}

static Err
parts_write(PartWrite *w, u32 offset, Slice bytes)
{
    u32 each = parts_bytes(w->txn->store);
    Err err = OK;
    for (size_t done = 0; err == OK && done < bytes.bytes;) {
        u32 number = (u32)((offset + done) / each), from = number * each;
        u32 count = MIN_OF(each, w->ref.bytes - from);
        u32 at = offset + (u32)done - from;
        u32 some = (u32)MIN_OF((size_t)(count - at), bytes.bytes - done);
        PartKey key = part_key(w->tree, w->key, number + 1);
        StoreVerdict verdict;
        Slice value = {bytes.p + done, count};
        if (some < count) {
            err = part_load(w, &key, from, count);
            memcpy(w->room + at, bytes.p + done, some);
            value.p = w->room;
        }
        if (err == OK)
            err = store_put(w->txn, TREE_ROOT, slice_of(&key), value, STORE_PUT_ANY, &verdict);
        done += some;
    }
    return err;
}

static Err
long_write_part(PartWrite *w, Tree *tree, u64 offset, Slice bytes)
{
    PartKey head = part_key(w->tree, w->key, PART_HEAD);
    StoreVerdict verdict;
    Newest newest;
    rt_store(&w->txn->store->parts, (u32)PARTS_SOME);
    Err err = store_put(w->txn, TREE_ROOT, slice_of(&head), SLICE_LITERAL(HEAD_TEXT), STORE_PUT_ANY,
                        &verdict);
    /* Who writes the whole row looks for the head after that: one of us sees the other. */
    if (err == OK) err = row_look(w, tree, false, &newest);
    if (err != OK) return err;
    w->room = (u8 *)mem_alloc(parts_bytes(w->txn->store));
    if (w->room == NULL) return txn__fail(w->txn, ERR_NOMEM, "out of memory");
    err = parts_write(w, (u32)offset, bytes);
    mem_free(w->room);
    return err;
}

Err
store_put_part(StoreTxn *txn, TreeId tree_id, Slice key, u64 offset, Slice bytes,
               StoreVerdict *verdict_out)
{
    Tree *tree = store__tree(txn->store, tree_id);
    PartWrite w = {.txn = txn, .tree = tree_id, .key = key};
    Newest newest;
    *verdict_out = STORE_DONE;
    if (tree == NULL) return txn__fail(txn, ERR_MISUSE, "no such tree: %u", tree_id);
    if (tree->kind != STORE_TREE_INT || key.bytes != 8) {
        return txn__fail(txn, ERR_UNSUPPORTED, "parts of values in trees without integer keys");
    }
    if (txn->store->read_only) {
        return txn__fail(txn, ERR_READONLY, "attempt to write a readonly database");
    }
    Err err = txn__usable(txn);
    if (err == OK) err = row_look(&w, tree, true, &newest);
    if (err != OK) return err;
    if (!newest.found) {
        *verdict_out = STORE_ABSENT;
        return OK;
    }
    u64 size = newest.value.bytes;
    if (newest.is_long) {
        memcpy(&w.ref, newest.value.p, sizeof(w.ref));
        size = w.ref.bytes;
    }
    if (offset > size || bytes.bytes > size - offset) {
        return txn__fail(txn, ERR_MISUSE, "a part of a value lies behind its end");
    }
    if (!newest.is_long) return short_write(&w, newest.value, offset, bytes);
    return bytes.bytes == 0 ? OK : long_write_part(&w, tree, offset, bytes);
}
