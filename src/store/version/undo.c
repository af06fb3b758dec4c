/*
 * undo.c -- chunks of undo entries.
 *
 * Invariants: all entries of a chunk have been written in one epoch; an undone entry is kept only
 * while the transaction is pinned, so entries that stand are above undone ones only then.
 */
#include "store/version/undo.h"

#include "store/pool/pool.h"

#define CHUNK_SMALL ((u32)448)
#define CHUNK_LARGE ((u32)16320)

static u32
entry_bytes(size_t key_bytes)
{
    return (u32)ALIGN_UP(sizeof(UndoEntry) + key_bytes, 8);
}

static UndoChunk *
newest_chunk(const UndoLog *log)
{
    return (UndoChunk *)rt_load_acquire(&log->newest);
}

static UndoEntry *
entry_at(UndoChunk *chunk, u32 at)
{
    return (UndoEntry *)(void *)(chunk->bytes + at);
}

static bool
chunk_takes(const UndoChunk *chunk, u32 bytes, u64 redo_at)
{
    return chunk != NULL && chunk->room - chunk->used >= bytes &&
           redo_at - chunk->redo_base <= U32_MAX;
}

static u64
chunk_bytes(u32 room)
{
    return offsetof(UndoChunk, bytes) + room;
}

void
undo_chunk_free(const UndoLog *log, UndoChunk *chunk)
{
    if (chunk == NULL) return;
    if (log->account != NULL) mem_account_release(log->account, chunk_bytes(chunk->room));
    mem_free(chunk);
}

/* `must`: counted whatever the caps say. */
static NOINLINE Err
spare_make(UndoLog *log, u32 bytes, bool must)
{
    u32 room = newest_chunk(log) == NULL && bytes <= CHUNK_SMALL ? CHUNK_SMALL : CHUNK_LARGE;
    if (PLANT(141)) room = bytes; /* No bug: every entry can be spilled by itself. */
    u64 charged = log->account != NULL ? chunk_bytes(room) : 0;
    Err err = OK;
    if (log->account != NULL && must)
        mem_account_add(log->account, charged);
    else if (log->account != NULL)
        err = pool_charge_reserving(log->account, charged);
    if (err != OK) return err;
    UndoChunk *chunk = (UndoChunk *)mem_alloc(chunk_bytes(room));
    if (chunk == NULL) {
        if (log->account != NULL) mem_account_release(log->account, charged);
        return ERR_NOMEM;
    }
    *chunk = (UndoChunk){.room = room};
    undo_chunk_free(log, log->spare);
    log->spare = chunk;
    return OK;
}

static bool
spare_takes(const UndoLog *log, u32 bytes)
{
    return log->spare != NULL && log->spare->room >= bytes;
}

Err
undo_reserve(UndoLog *log, size_t key_bytes)
{
    u32 bytes = entry_bytes(key_bytes);
    return LIKELY(spare_takes(log, bytes)) ? OK : spare_make(log, bytes, false);
}

Err
undo_reserve_back(UndoLog *log, size_t key_bytes)
{
    u32 bytes = entry_bytes(key_bytes);
    return spare_takes(log, bytes) ? OK : spare_make(log, bytes, true);
}

/* Put the spare chunk to use. */
static UndoChunk *
chunk_begin(UndoLog *log, u64 epoch, u64 redo_at)
{
    UndoChunk *chunk = log->spare;
    ASSERT(chunk != NULL);
    log->spare = NULL;
    *chunk = (UndoChunk){
        .older = newest_chunk(log), .epoch = epoch, .redo_base = redo_at, .room = chunk->room};
    if (chunk->older != NULL) {
        chunk->older->newer = chunk;
    } else {
        log->oldest = chunk;
    }
    log->bytes += chunk->room;
    rt_store_release(&log->newest, (void *)chunk);
    return chunk;
}

/* Take the newest chunk off the list. */
static void
chunk_leave(UndoLog *log, UndoChunk *chunk)
{
    rt_store_release(&log->newest, (void *)chunk->older);
    if (chunk->older != NULL) {
        chunk->older->newer = NULL;
    } else {
        log->oldest = NULL;
    }
    log->bytes -= chunk->room;
}

UndoChunk *
undo_take_oldest(UndoLog *log)
{
    UndoChunk *chunk = log->oldest;
    ASSERT(chunk != NULL && chunk->newer != NULL);
    log->oldest = chunk->newer;
    log->oldest->older = NULL;
    log->bytes -= chunk->room;
    return chunk;
}

UndoEntry *
undo_append(UndoLog *log, UndoKind kind, TreeId tree, Slice key, u64 epoch, u64 redo_at)
{
    u32 bytes = entry_bytes(key.bytes);
    UndoChunk *chunk = newest_chunk(log);
    if (!chunk_takes(chunk, bytes, redo_at) || chunk->epoch != epoch ||
        redo_at < chunk->redo_base) {
        chunk = chunk_begin(log, epoch, redo_at);
    }
    UndoEntry *entry = entry_at(chunk, chunk->used);
    *entry = (UndoEntry){
        .bytes = (u16)bytes, .key_bytes = (u16)key.bytes, .kind = (u8)kind, .tree = tree};
    if (chunk->used > 0) entry->prev_bytes = (u16)(chunk->used - chunk->last);
    entry->redo = (u32)(redo_at - chunk->redo_base);
    if (key.bytes > 0) memcpy(entry->key, key.p, key.bytes);
    chunk->last = chunk->used;
    chunk->used += bytes;
    log->count++;
    log->standing = (UndoWalk){0};
    return entry;
}

static const UndoEntry *
entry_before(const UndoChunk **chunk_io, const UndoEntry *entry)
{
    if (entry->prev_bytes > 0) {
        return (const UndoEntry *)(const void *)((const u8 *)entry - entry->prev_bytes);
    }
    const UndoChunk *chunk = (*chunk_io)->older;
    *chunk_io = chunk;
    return chunk == NULL ? NULL : undo_chunk_last(chunk);
}

UndoWalk
undo_walk(const UndoLog *log)
{
    const UndoChunk *chunk = newest_chunk(log);
    UndoWalk walk = {.chunk = chunk};
    if (chunk != NULL) walk.entry = undo_chunk_last(chunk);
    return walk;
}

UndoWalk
undo_walk_up_to(const UndoLog *log, u64 epoch)
{
    const UndoChunk *chunk = newest_chunk(log);
    while (chunk != NULL && chunk->epoch > epoch) {
        chunk = chunk->older;
    }
    return (UndoWalk){.chunk = chunk, .entry = chunk == NULL ? NULL : undo_chunk_last(chunk)};
}

const UndoEntry *
undo_walk_next(UndoWalk *walk, const UndoChunk **chunk_out)
{
    const UndoEntry *entry = walk->entry;
    if (entry == NULL) return NULL;
    if (chunk_out != NULL) *chunk_out = walk->chunk;
    walk->entry = entry_before(&walk->chunk, entry);
    return entry;
}

UndoEntry *
undo_newest(UndoLog *log, u64 *redo_out)
{
    UndoWalk walk = log->standing.entry != NULL ? log->standing : undo_walk(log);
    for (;;) {
        UndoWalk here = walk;
        const UndoChunk *chunk;
        const UndoEntry *entry = undo_walk_next(&walk, &chunk);
        if (entry == NULL) return NULL;
        if (rt_load_relaxed(&entry->undone) != 0) continue;
        log->standing = here;
        *redo_out = chunk->redo_base + entry->redo;
        return (UndoEntry *)(uintptr_t)entry;
    }
}

/* Take the newest entry away, and its chunk if that was the only one. */
static void
entry_drop(UndoLog *log)
{
    UndoChunk *chunk = newest_chunk(log);
    const UndoEntry *entry = entry_at(chunk, chunk->last);
    chunk->used = chunk->last;
    chunk->last -= entry->prev_bytes;
    if (chunk->used > 0) return;
    chunk_leave(log, chunk);
    if (log->spare != NULL && log->spare->room >= chunk->room) {
        undo_chunk_free(log, chunk);
    } else {
        undo_chunk_free(log, log->spare);
        log->spare = chunk;
    }
}

void
undo_pop(UndoLog *log, bool keep, u64 epoch)
{
    u64 redo;
    UndoEntry *entry = undo_newest(log, &redo);
    ASSERT(entry != NULL && log->count > 0);
    log->count--;
    if (keep) {
        u32 undone = (u32)MIN_OF(epoch - log->standing.chunk->epoch + 1, U32_MAX);
        rt_store_relaxed(&entry->undone, undone);
        return;
    }
    log->standing = (UndoWalk){0};
    /* Undone ones above it were kept for a checkpoint that has ended. */
    rt_store_relaxed(&entry->undone, 1);
    for (UndoChunk *chunk; (chunk = newest_chunk(log)) != NULL;) {
        if (rt_load_relaxed(&entry_at(chunk, chunk->last)->undone) == 0) break;
        entry_drop(log);
    }
}

void
undo_clear(UndoLog *log)
{
    for (UndoChunk *chunk; (chunk = newest_chunk(log)) != NULL;) {
        ASSERT(rt_load_relaxed(&entry_at(chunk, chunk->last)->undone) != 0);
        entry_drop(log);
    }
    log->standing = (UndoWalk){0};
}

void
undo_reset(UndoLog *log)
{
    UndoChunk *chunk;
    while ((chunk = newest_chunk(log)) != NULL) {
        chunk_leave(log, chunk);
        if (chunk->room == CHUNK_SMALL && log->spare == NULL) {
            log->spare = chunk;
        } else {
            undo_chunk_free(log, chunk);
        }
    }
    if (log->spare != NULL && log->spare->room != CHUNK_SMALL) {
        undo_chunk_free(log, log->spare);
        log->spare = NULL;
    }
    log->count = 0;
    log->standing = (UndoWalk){0};
}

void
undo_free(UndoLog *log)
{
    undo_reset(log);
    undo_chunk_free(log, log->spare);
    log->spare = NULL;
}
