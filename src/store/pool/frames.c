/*
 * frames.c -- memory of the frames, the free list, and the clock.
 *
 * A page is loaded COOL; its next visit makes it HOT.  The hand cools what is HOT and evicts what
 * is COOL, so a page needs two visits between two rounds to stay, and a long scan, whose visits do
 * not count, only displaces what was cool anyway.  The hand never waits for a latch.
 *
 * A dirty page is copied under its latch and written without it; if nobody changed it meanwhile,
 * it goes, else the copy is discarded.
 */
#include "store/pool/pool_impl.h"

#define ROUNDS_MAX  3u /* Of the hand, before it gives up. */
#define REFUSED_MAX 8u /* Writes that a full disk may refuse in one go. */
#define BATCH       8u /* Frames that one who evicts gets for the list. */

Err
pool_create(u32 page_bytes, u32 frames_max, Pool **pool_out)
{
    *pool_out = NULL;
    ASSERT(page_bytes >= 4096 && page_bytes <= 65536 && (page_bytes & (page_bytes - 1)) == 0);
    ASSERT(frames_max >= 16);
    Pool *pool = MEM_NEW(Pool);
    if (pool == NULL) return ERR_NOMEM;
    pool->page_bytes = page_bytes;
    pool->page_shift = (u32)__builtin_ctz(page_bytes);
    pool->frames_max = frames_max;
    pool->free_first = POOL_FRAME_NONE;
    rt_latch_init(&pool->sweep_latch, POOL_RANK_SWEEP);
    u64 bytes = (u64)frames_max << pool->page_shift;
    pool->chunk_count = (u32)((bytes + POOL_CHUNK_BYTES - 1) / POOL_CHUNK_BYTES);
    pool->chunks = MEM_NEW_ARRAY(RtPtr, pool->chunk_count);
    pool->frames = MEM_NEW_ARRAY(RtPtr, pool->chunk_count);
    if (pool->frames == NULL || pool->chunks == NULL) {
        pool_free(pool);
        return ERR_NOMEM;
    }
    *pool_out = pool;
    return OK;
}

void
pool_free(Pool *pool)
{
    if (pool == NULL) return;
    /* Chunks are made in order; most of the room is never used. */
    u32 per_chunk = (u32)(POOL_CHUNK_BYTES >> pool->page_shift);
    u32 made = (pool->frames_made + per_chunk - 1) / per_chunk;
    for (u32 i = 0; i < made; i++) {
        mem_free(rt_load_relaxed(&pool->chunks[i]));
        mem_free(rt_load_relaxed(&pool->frames[i]));
    }
    mem_free(pool->chunks);
    mem_free(pool->frames);
    mem_free(pool);
}

u32
pool_page_bytes(const Pool *pool)
{
    return pool->page_bytes;
}

/* ---- the free list ---- */

static u32
free_pop(Pool *pool)
{
    u32 frame = pool->free_first;
    if (frame == POOL_FRAME_NONE) return frame;
    pool->free_first = pool__frame(pool, frame)->next_free;
    pool->free_count--;
    return frame;
}

static void
free_push(Pool *pool, u32 frame)
{
    pool__frame(pool, frame)->file = NULL;
    pool__frame(pool, frame)->next_free = pool->free_first;
    pool->free_first = frame;
    pool->free_count++;
}

void
pool__frame_give(Pool *pool, u32 frame)
{
    rt_latch_acquire(&pool->sweep_latch);
    free_push(pool, frame);
    rt_latch_release(&pool->sweep_latch);
}

void
pool__frame_own(Pool *pool, u32 frame, PoolFile *file, u32 page_id)
{
    /* Called with a page latched, whose rank is above the sweep's: a plain publication.  The sweep
       reads page_id after file, and checks the entry's frame number before it believes either. */
    __atomic_store_n(&pool__frame(pool, frame)->page_id, page_id, __ATOMIC_RELAXED);
    __atomic_store_n(&pool__frame(pool, frame)->file, file, __ATOMIC_RELEASE);
}

/* Memory for one more chunk of frames, if the pool may still grow. */
static bool
grow(Pool *pool)
{
    rt_latch_acquire(&pool->sweep_latch);
    u32 first = pool->frames_made;
    rt_latch_release(&pool->sweep_latch);
    if (first == pool->frames_max) return false;
    u32 per_chunk = (u32)(POOL_CHUNK_BYTES >> pool->page_shift);
    u32 chunk_no = first / per_chunk;
    u32 count = MIN_OF(per_chunk, pool->frames_max - first);
    u8 *chunk = (u8 *)mem_alloc_aligned(4096, (size_t)count << pool->page_shift);
    Frame *frames = MEM_NEW_ARRAY(Frame, count);
    if (chunk == NULL || frames == NULL) {
        mem_free(chunk);
        mem_free(frames);
        return false;
    }
    rt_latch_acquire(&pool->sweep_latch);
    bool ours = pool->frames_made == first;
    if (ours) {
        rt_store_release(&pool->chunks[chunk_no], (void *)chunk);
        rt_store_release(&pool->frames[chunk_no], (void *)frames);
        for (u32 i = count; i > 0; i--) {
            free_push(pool, first + i - 1);
        }
        pool->frames_made += count;
    }
    rt_latch_release(&pool->sweep_latch);
    if (!ours) {
        mem_free(chunk);
        mem_free(frames);
    }
    return true;
}

/* ---- eviction ---- */

/* Write a copy of a dirty page; true when it is clean on disk and its word is still *word_io. */
static bool
write_back(PoolFile *file, PageEntry *entry, u32 page_id, u64 *word_io)
{
    Pool *pool = file->pool;
    u8 *copy = (u8 *)mem_alloc_aligned(4096, pool->page_bytes);
    if (copy == NULL) return false;
    PageView view = {.file = file, .entry = entry, .page_id = page_id, .word = *word_io};
    u64 word = *word_io;
    if (!rt_cas(&entry->word, &word, word | PAGE_LATCHED | PAGE_WRITING)) {
        mem_free(copy);
        return false;
    }
    memcpy(copy, pool__frame_bytes(pool, rt_load_relaxed(&entry->frame)), pool->page_bytes);
    pool__word_release(entry, PAGE_LATCHED, 0, 0);
    u64 place;
    Err err = file->client.write(file->client.arg, page_id, copy, &place);
    mem_free(copy);
    bool full = err == ERR_FULL;
    if (UNLIKELY(full != (rt_load_relaxed(&pool->disk_full) != 0))) {
        rt_store_relaxed(&pool->disk_full, full);
    }
    bool good = false;
    word = rt_load_relaxed(&entry->word);
    /* Nobody may have changed it: the version says so. */
    while (err == OK && (word & PAGE_SEEN) == (view.word & PAGE_SEEN) &&
           (word & PAGE_SHARED) == 0) {
        if (!rt_cas(&entry->word, &word, word | PAGE_LATCHED)) continue;
        file->client.placed(file->client.arg, page_id, place);
        rt_fetch_add(&pool->writes, 1);
        good = true;
        break;
    }
    if (err == OK && !good) {
        file->client.discarded(file->client.arg, page_id, place);
        rt_fetch_add(&pool->discards, 1);
    }
    if (good) {
        pool__word_release(entry, PAGE_LATCHED | PAGE_DIRTY | PAGE_WRITING, 0, 0);
        *word_io = rt_load_relaxed(&entry->word);
    } else {
        pool__word_release(entry, PAGE_WRITING, 0, 0);
    }
    return good;
}

/* Evict the page of a frame that the hand has chosen by this word; true: the frame is ours. */
static bool
evict(PoolFile *file, PageEntry *entry, u32 page_id, u64 word)
{
    u64 chosen = word;
    if ((word & PAGE_DIRTY) != 0 && !write_back(file, entry, page_id, &word)) return false;
    /* While it was clean and free another may have evicted it, and a third have loaded it again,
       into another frame than the one that was chosen. */
    if ((word & PAGE_VERSION) != (chosen & PAGE_VERSION)) return false;
    u64 busy = PAGE_LATCHED | PAGE_SHARED | PAGE_WRITING | PAGE_DIRTY | PAGE_HOT;
    if ((word & busy) != 0 || (word & PAGE_STATE) != PAGE_RESIDENT) return false;
    u64 gone = ((word & ~(PAGE_STATE | PAGE_PARKED)) | PAGE_EVICTED) + PAGE_VERSION_ONE;
    if (!rt_cas(&entry->word, &word, gone)) return false;
    rt_fetch_add(&file->pool->evictions, 1);
    return true;
}

/* Let the hand go on to the next frame that may be evicted.  False: it has gone `*steps_io`. */
static bool
hand_next(Pool *pool, u32 *steps_io, u32 *frame_out, PoolFile **file_out, u32 *page_id_out,
          u64 *word_out)
{
    bool found = false;
    rt_latch_acquire(&pool->sweep_latch);
    while (!found && *steps_io > 0) {
        *steps_io -= 1;
        u32 frame = pool->hand;
        pool->hand = pool->hand + 1 >= pool->frames_made ? 0 : pool->hand + 1;
        PoolFile *file = __atomic_load_n(&pool__frame(pool, frame)->file, __ATOMIC_ACQUIRE);
        if (file == NULL || file->closing) continue;
        u32 page_id = __atomic_load_n(&pool__frame(pool, frame)->page_id, __ATOMIC_RELAXED);
        PageEntry *entry = pool__entry(file, page_id);
        u64 word = rt_load_acquire(&entry->word);
        if ((word & PAGE_STATE) != PAGE_RESIDENT || rt_load_relaxed(&entry->frame) != frame) {
            continue;
        }
        if ((word & (PAGE_LATCHED | PAGE_SHARED | PAGE_WRITING)) != 0) continue;
        if ((word & PAGE_HOT) != 0) {
            rt_fetch_and(&entry->word, ~PAGE_HOT);
            continue;
        }
        *frame_out = frame;
        *file_out = file;
        *page_id_out = page_id;
        *word_out = word;
        file->sweepers++;
        found = true;
    }
    rt_latch_release(&pool->sweep_latch);
    return found;
}

void
pool__file_leave(PoolFile *file)
{
    Pool *pool = file->pool;
    for (;;) {
        rt_latch_acquire(&pool->sweep_latch);
        file->closing = true;
        bool alone = file->sweepers == 0;
        rt_latch_release(&pool->sweep_latch);
        if (alone) return;
        rt_yield();
    }
}

void
pool_refill(Pool *pool, u32 frames)
{
    rt_fetch_add(&pool->sweeps, 1);
    rt_latch_acquire(&pool->sweep_latch);
    u32 steps = ROUNDS_MAX * pool->frames_made;
    rt_latch_release(&pool->sweep_latch);
    u32 refused = 0; /* Pages that found no room on the disk: then clean ones only. */
    for (;;) {
        rt_latch_acquire(&pool->sweep_latch);
        bool enough = pool->free_count >= frames;
        rt_latch_release(&pool->sweep_latch);
        if (enough) return;
        u32 frame, page_id;
        PoolFile *file;
        u64 word;
        if (!hand_next(pool, &steps, &frame, &file, &page_id, &word)) return;
        bool dirty = (word & PAGE_DIRTY) != 0;
        bool freed = !(dirty && refused >= REFUSED_MAX) &&
                     evict(file, pool__entry(file, page_id), page_id, word);
        refused += dirty && !freed && rt_load_relaxed(&pool->disk_full) != 0;
        rt_latch_acquire(&pool->sweep_latch);
        file->sweepers--;
        if (freed) free_push(pool, frame);
        rt_latch_release(&pool->sweep_latch);
    }
}

Err
pool__frame_take(Pool *pool, u32 *frame_out)
{
    for (u32 tries = 0; tries < 16; tries++) {
        rt_latch_acquire(&pool->sweep_latch);
        u32 frame = free_pop(pool);
        rt_latch_release(&pool->sweep_latch);
        if (frame != POOL_FRAME_NONE) {
            *frame_out = frame;
            return OK;
        }
        if (!grow(pool)) pool_refill(pool, MIN_OF(BATCH, pool->frames_max / 4));
    }
    return rt_load_relaxed(&pool->disk_full) != 0 ? ERR_FULL : ERR_NOMEM;
}

void
pool_stats(Pool *pool, PoolStats *stats_out)
{
    rt_latch_acquire(&pool->sweep_latch);
    *stats_out = (PoolStats){.loads = rt_load_relaxed(&pool->loads),
                             .evictions = rt_load_relaxed(&pool->evictions),
                             .writes = rt_load_relaxed(&pool->writes),
                             .discards = rt_load_relaxed(&pool->discards),
                             .sweeps = rt_load_relaxed(&pool->sweeps),
                             .waits = rt_load_relaxed(&pool->waits),
                             .frames = pool->frames_made,
                             .frames_free = pool->free_count};
    rt_latch_release(&pool->sweep_latch);
}
