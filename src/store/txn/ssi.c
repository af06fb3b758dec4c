/*
 * ssi.c -- the pivot rules.
 *
 * For T at its commit: out(T) are the committed X with a timestamp above T's snapshot that wrote a
 * key T read; in(T) are the committed X concurrent with T that read a key T writes; `first` is the
 * earliest timestamp in out(T).
 *
 *  1. T ever wrote: fail if some X in in(T) wrote and X.ts >= first, or only read and
 *     X.snapshot >= first: T would be the pivot.
 *  2. T ever wrote: fail if some X in out(T) had an out edge when it committed: X would be.
 *  3. T writes and first exists: fail if a live transaction that has written nothing holds a
 *     snapshot >= first.  That one could become the reader that sees the anomaly, and readers do
 *     not fail.
 *  4. Who never wrote passes; its reads are kept like a writer's.
 */
#include "store/txn/ssi.h"

/* More ranges than this are traded for whole trees: never wrong, only stricter. */
#define RANGES_MAX 16384u
#define NEVER      U64_MAX

static void
ssi_free(SsiTxn *ssi)
{
    if (ssi == NULL) return;
    buf_free(&ssi->keys);
    mem_free(ssi->ranges);
    mem_free(ssi->written);
    mem_free(ssi);
}

static void
list_add(SsiTxn **newest, SsiTxn *ssi)
{
    ssi->older = *newest;
    ssi->newer = NULL;
    if (ssi->older != NULL) ssi->older->newer = ssi;
    *newest = ssi;
}

static void
list_remove(SsiTxn **newest, SsiTxn *ssi)
{
    if (ssi->newer != NULL) {
        ssi->newer->older = ssi->older;
    } else {
        *newest = ssi->older;
    }
    if (ssi->older != NULL) ssi->older->newer = ssi->newer;
}

/* Forget the committed ones that no live transaction is concurrent with.  Mutex held. */
static void
forget_old(Store *store)
{
    u64 oldest = NEVER;
    for (const SsiTxn *live = store->ssi_live; live != NULL; live = live->older) {
        oldest = MIN_OF(oldest, live->begin_no);
    }
    for (SsiTxn *ssi = store->ssi_committed; ssi != NULL;) {
        SsiTxn *older = ssi->older;
        if (ssi->end_no < oldest) {
            list_remove(&store->ssi_committed, ssi);
            ssi_free(ssi);
        }
        ssi = older;
    }
}

Err
ssi__begin(StoreTxn *txn)
{
    Store *store = txn->store;
    SsiTxn *ssi = MEM_NEW(SsiTxn);
    if (ssi == NULL) return ERR_NOMEM;
    txn->ssi = ssi;
    rt_mutex_lock(&store->ssi_mutex);
    list_add(&store->ssi_live, ssi);
    txn__take_fresh_snapshot(txn);
    ssi->snapshot = txn->snapshot;
    ssi->begin_no = ++store->ssi_counter;
    rt_mutex_unlock(&store->ssi_mutex);
    return OK;
}

void
ssi__refresh(StoreTxn *txn)
{
    Store *store = txn->store;
    SsiTxn *ssi = txn->ssi;
    rt_mutex_lock(&store->ssi_mutex);
    txn__take_fresh_snapshot(txn);
    ssi->snapshot = txn->snapshot;
    ssi->begin_no = ++store->ssi_counter;
    rt_mutex_unlock(&store->ssi_mutex);
    ssi->range_count = 0;
    buf_clear(&ssi->keys);
}

void
ssi__abandon(StoreTxn *txn)
{
    Store *store = txn->store;
    rt_mutex_lock(&store->ssi_mutex);
    list_remove(&store->ssi_live, txn->ssi);
    forget_old(store);
    rt_mutex_unlock(&store->ssi_mutex);
    ssi_free(txn->ssi);
    txn->ssi = NULL;
}

/* ---- reads ---- */

static Slice
key_at(const SsiTxn *ssi, u32 at, u32 bytes)
{
    return (Slice){ssi->keys.p + at, bytes};
}

/* Trade the ranges for whole trees. */
static void
coarsen(SsiTxn *ssi)
{
    u32 kept = 0;
    for (u32 i = 0; i < ssi->range_count; i++) {
        bool known = false;
        for (u32 k = 0; k < kept && !known; k++) {
            known = ssi->ranges[k].tree == ssi->ranges[i].tree;
        }
        if (!known) ssi->ranges[kept++] = (SsiRange){.tree = ssi->ranges[i].tree};
    }
    ssi->range_count = kept;
    buf_clear(&ssi->keys);
}

static bool
covers_tree(const SsiTxn *ssi, TreeId tree)
{
    for (u32 i = 0; i < MIN_OF(ssi->range_count, 16u); i++) {
        const SsiRange *range = &ssi->ranges[i];
        if (range->tree == tree && !range->has_low && !range->has_high) return true;
    }
    return false;
}

static Err
range_new(SsiTxn *ssi, SsiRange **range_out)
{
    if (ssi->range_count == RANGES_MAX) coarsen(ssi);
    if (ssi->range_count == ssi->range_capacity) {
        u32 capacity = ssi->range_capacity * 2 + 16;
        SsiRange *ranges = (SsiRange *)mem_realloc(ssi->ranges, capacity * sizeof(SsiRange));
        if (ranges == NULL) return ERR_NOMEM;
        ssi->ranges = ranges;
        ssi->range_capacity = capacity;
    }
    *range_out = &ssi->ranges[ssi->range_count];
    **range_out = (SsiRange){0};
    return OK;
}

Err
ssi__note_range(StoreTxn *txn, TreeId tree, const Slice *low, const Slice *high)
{
    SsiTxn *ssi = txn->ssi;
    if (covers_tree(ssi, tree)) return OK;
    SsiRange *range = ssi->range_count == 0 ? NULL : &ssi->ranges[ssi->range_count - 1];
    /* A walk goes on from where the last range ends: let that one grow. */
    bool grows = range != NULL && low != NULL && range->tree == tree && range->has_high &&
                 slice_equal(key_at(ssi, range->high_at, range->high_bytes), *low);
    if (grows && high != NULL && high->bytes <= range->high_room) {
        memcpy(ssi->keys.p + range->high_at, high->p, high->bytes);
        range->high_bytes = (u32)high->bytes;
        return OK;
    }
    if (grows && high == NULL) {
        range->has_high = false;
        return OK;
    }
    Err err = range_new(ssi, &range);
    if (err != OK) return txn__fail(txn, err, "out of memory");
    size_t room = high == NULL ? 0 : ALIGN_UP(high->bytes, 32);
    err = buf_reserve(&ssi->keys, (low == NULL ? 0 : low->bytes) + room);
    if (err != OK) return txn__fail(txn, err, "out of memory");
    range->tree = tree;
    u8 *base = ssi->keys.p;
    if (low != NULL) {
        range->has_low = true;
        range->low_at = (u32)ssi->keys.bytes;
        range->low_bytes = (u32)low->bytes;
        memcpy(base + ssi->keys.bytes, low->p, low->bytes);
        ssi->keys.bytes += low->bytes;
    }
    if (high != NULL) {
        range->has_high = true;
        range->high_at = (u32)ssi->keys.bytes;
        range->high_bytes = (u32)high->bytes;
        range->high_room = (u32)room;
        memcpy(base + ssi->keys.bytes, high->p, high->bytes);
        ssi->keys.bytes += room;
    }
    ssi->range_count++;
    return OK;
}

Err
ssi__note_key(StoreTxn *txn, TreeId tree, Slice key)
{
    return ssi__note_range(txn, tree, &key, &key);
}

/* ---- overlap ---- */

static int
compare_written(const void *a, const void *b)
{
    const SsiKey *left = (const SsiKey *)a, *right = (const SsiKey *)b;
    if (left->tree != right->tree) return left->tree < right->tree ? -1 : 1;
    return slice_compare(left->key, right->key);
}

/* First written key at or above (tree, low). */
static u64
lower_bound(const SsiKey *written, u64 count, TreeId tree, Slice low)
{
    SsiKey wanted = {tree, low};
    u64 from = 0;
    while (count > 0) {
        u64 half = count / 2;
        if (compare_written(&written[from + half], &wanted) < 0) {
            from += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return from;
}

/* Did `reader` read any of these keys? */
static bool
read_any(const SsiTxn *reader, const SsiKey *written, u64 count)
{
    for (u32 i = 0; i < reader->range_count; i++) {
        const SsiRange *range = &reader->ranges[i];
        Slice low = range->has_low ? key_at(reader, range->low_at, range->low_bytes) : SLICE_NONE;
        u64 at = lower_bound(written, count, range->tree, low);
        if (at == count || written[at].tree != range->tree) continue;
        if (!range->has_high) return true;
        if (slice_compare(written[at].key, key_at(reader, range->high_at, range->high_bytes)) <=
            0) {
            return true;
        }
    }
    return false;
}

/* ---- commit ---- */

/* The row of an undo entry that stands, if it is one. */
static bool
written_row(const UndoEntry *entry, Slice *key_out)
{
    if (rt_load_relaxed(&entry->undone) != 0) return false;
    switch ((UndoKind)entry->kind) {
    case UNDO_INSERT: *key_out = undo_key(entry); return true;
    case UNDO_BEFORE: *key_out = before_key(undo_before(entry)); return true;
    case UNDO_TREE_CREATE:
    case UNDO_TREE_DROP: return false;
    }
    return false;
}

/* The keys that the transaction writes, sorted, with copies of their bytes. */
static Err
gather_written(StoreTxn *txn)
{
    SsiTxn *ssi = txn->ssi;
    const TxnState *state = txn->state;
    if (state == NULL || state->undo.count == 0) return OK;
    size_t bytes = 0;
    Slice key;
    const UndoEntry *entry;
    UndoWalk walk = undo_walk(&state->undo);
    while ((entry = undo_walk_next(&walk, NULL)) != NULL) {
        if (written_row(entry, &key)) bytes += key.bytes;
    }
    ssi->written = MEM_NEW_ARRAY(SsiKey, state->undo.count);
    if (ssi->written == NULL || buf_reserve(&ssi->keys, bytes) != OK) return ERR_NOMEM;
    u64 count = 0;
    walk = undo_walk(&state->undo);
    while ((entry = undo_walk_next(&walk, NULL)) != NULL) {
        if (!written_row(entry, &key)) continue;
        u8 *to = ssi->keys.p + ssi->keys.bytes;
        memcpy(to, key.p, key.bytes);
        ssi->written[count++] = (SsiKey){entry->tree, {to, key.bytes}};
        ssi->keys.bytes += key.bytes;
    }
    ssi->written_count = count;
    sort_items(ssi->written, count, sizeof(SsiKey), compare_written);
    return OK;
}

static Err
judge(StoreTxn *txn)
{
    Store *store = txn->store;
    SsiTxn *self = txn->ssi;
    u64 first = NEVER;
    bool out_had_out = false;
    for (const SsiTxn *x = store->ssi_committed; x != NULL; x = x->older) {
        if (x->ts <= self->snapshot || !read_any(self, x->written, x->written_count)) continue;
        first = MIN_OF(first, x->ts);
        out_had_out = out_had_out || x->has_out;
    }
    self->has_out = first != NEVER;
    if (rt_load_relaxed(&self->ever_wrote) == 0 || first == NEVER) return OK;
    if (out_had_out && !PLANT(121)) return ERR_SERIALIZE;
    for (const SsiTxn *x = store->ssi_committed; x != NULL; x = x->older) {
        bool dangerous = x->ts != 0 ? x->ts > self->snapshot && x->ts >= first
                                    : x->end_no > self->begin_no && x->snapshot >= first;
        if (dangerous && !PLANT(122) && read_any(x, self->written, self->written_count))
            return ERR_SERIALIZE;
    }
    if (self->written_count == 0) return OK;
    for (const SsiTxn *live = store->ssi_live; live != NULL; live = live->older) {
        bool reads_only = live != self && rt_load_acquire(&live->ever_wrote) == 0;
        if (reads_only && live->snapshot >= first && !PLANT(123)) return ERR_SERIALIZE;
    }
    return OK;
}

Err
ssi__commit_start(StoreTxn *txn)
{
    Err err = gather_written(txn);
    if (err != OK) {
        mem_free(txn->ssi->written);
        txn->ssi->written = NULL;
        return txn__fail(txn, err, "out of memory");
    }
    rt_mutex_lock(&txn->store->ssi_mutex);
    err = judge(txn);
    if (err == OK) return OK;
    rt_mutex_unlock(&txn->store->ssi_mutex);
    rt_fetch_add(&txn->store->counters.conflicts, 1);
    return txn__fail(
        txn, err, "could not serialize access due to read/write dependencies among transactions");
}

void
ssi__commit_end(StoreTxn *txn, bool committed, u64 ts)
{
    Store *store = txn->store;
    SsiTxn *ssi = txn->ssi;
    if (committed) {
        list_remove(&store->ssi_live, ssi);
        ssi->ts = ts;
        ssi->end_no = ++store->ssi_counter;
        list_add(&store->ssi_committed, ssi);
        forget_old(store);
        txn->ssi = NULL;
    } else {
        mem_free(ssi->written);
        ssi->written = NULL;
        ssi->written_count = 0;
    }
    rt_mutex_unlock(&store->ssi_mutex);
}
