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
#include "rt/host.h"
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
    pool->free_first = pool->cold_first = POOL_FRAME_NONE;
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
    if (pool->account != NULL)
        mem_account_release(pool->account, ((u64)pool->charged << pool->page_shift) +
                                               rt_load_relaxed(&pool->around_bytes));
    mem_free(pool->chunks);
    mem_free(pool->frames);
    mem_free(pool);
}

void
pool__around_add(Pool *pool, u64 bytes)
{
    rt_fetch_add(&pool->around_bytes, bytes);
    if (pool->account != NULL) mem_account_add(pool->account, bytes);
}

void
pool__around_release(Pool *pool, u64 bytes)
{
    rt_fetch_sub(&pool->around_bytes, bytes);
    if (pool->account != NULL) mem_account_release(pool->account, bytes);
}

void
pool_set_account(Pool *pool, MemAccount *account, bool gives_way)
{
    ASSERT(pool->charged == 0);
    pool->account = account;
    mem_account_add(account, rt_load_relaxed(&pool->around_bytes)); /* Of one that serves again. */
    pool->gives_way = gives_way;
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

/* Sweep latch held. */
static void
cold_push(Pool *pool, u32 frame)
{
    pool__frame(pool, frame)->file = NULL;
    pool__frame(pool, frame)->next_free = pool->cold_first;
    pool->cold_first = frame;
    pool->cold_count++;
}

void
pool__frames_cold(Pool *pool)
{
    rt_latch_acquire(&pool->sweep_latch);
    for (u32 frame = free_pop(pool); frame != POOL_FRAME_NONE; frame = free_pop(pool))
        cold_push(pool, frame);
    ASSERT(pool->cold_count == pool->frames_made);
    u64 bytes = ((u64)pool->charged << pool->page_shift) + rt_load_relaxed(&pool->around_bytes);
    pool->charged = pool->hand = 0;
    rt_latch_release(&pool->sweep_latch);
    if (pool->account != NULL) mem_account_release(pool->account, bytes);
    pool->account = NULL;
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
            cold_push(pool, first + i - 1);
        }
        pool->frames_made += count;
    }
    rt_latch_release(&pool->sweep_latch);
    if (ours) pool__around_add(pool, count * sizeof(Frame));
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

/* A page that the hand has come to. */
typedef struct HandPlace {
    u32 frame, page_id;
    PoolFile *file;
    u64 word;
} HandPlace;

/* One step: false unless the frame has a page that may go, with none of the bits of `busy`; a hot
   one is cooled.  Sweep latch held. */
static bool
hand_step(Pool *pool, u64 busy, HandPlace *place_out)
{
    u32 frame = pool->hand;
    pool->hand = pool->hand + 1 >= pool->frames_made ? 0 : pool->hand + 1;
    PoolFile *file = __atomic_load_n(&pool__frame(pool, frame)->file, __ATOMIC_ACQUIRE);
    if (file == NULL || file->closing) return false;
    u32 page_id = __atomic_load_n(&pool__frame(pool, frame)->page_id, __ATOMIC_RELAXED);
    PageEntry *entry = pool__entry(file, page_id);
    u64 word = rt_load_acquire(&entry->word);
    if ((word & PAGE_STATE) != PAGE_RESIDENT || rt_load_relaxed(&entry->frame) != frame)
        return false;
    if ((word & busy) != 0) return false;
    if ((word & PAGE_HOT) != 0) {
        rt_fetch_and(&entry->word, ~PAGE_HOT);
        return false;
    }
    *place_out = (HandPlace){.frame = frame, .page_id = page_id, .file = file, .word = word};
    return true;
}

/* Let the hand go on to the next frame that may be evicted.  False: it has gone `*steps_io`. */
static bool
hand_next(Pool *pool, u32 *steps_io, HandPlace *place_out)
{
    bool found = false;
    rt_latch_acquire(&pool->sweep_latch);
    while (!found && *steps_io > 0) {
        *steps_io -= 1;
        found = hand_step(pool, PAGE_LATCHED | PAGE_SHARED | PAGE_WRITING, place_out);
    }
    if (found) place_out->file->sweepers++;
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
        HandPlace place;
        if (!hand_next(pool, &steps, &place)) return;
        PoolFile *file = place.file;
        bool dirty = (place.word & PAGE_DIRTY) != 0;
        bool freed = !(dirty && refused >= REFUSED_MAX) &&
                     evict(file, pool__entry(file, place.page_id), place.page_id, place.word);
        refused += dirty && !freed && rt_load_relaxed(&pool->disk_full) != 0;
        rt_latch_acquire(&pool->sweep_latch);
        file->sweepers--;
        if (freed) free_push(pool, place.frame);
        rt_latch_release(&pool->sweep_latch);
    }
}

Err
pool_charge_reserving(MemAccount *account, u64 bytes)
{
    u64 cap = 0;
    for (const MemAccount *a = account; a != NULL; a = a->parent) {
        u64 its = a->cap_bytes;
        if (its != 0 && (cap == 0 || its < cap)) cap = its;
    }
    Err err = mem_account_charge(account, bytes + cap / 8);
    if (err == OK) mem_account_release(account, cap / 8);
    return err;
}

/* Count the memory of one more frame. */
static Err
frame_charge(Pool *pool, bool must)
{
    if (pool->account == NULL) return OK;
    if (must) {
        mem_account_add(pool->account, pool->page_bytes);
        return OK;
    }
    return pool->gives_way ? mem_account_charge_spare(pool->account, pool->page_bytes)
                           : pool_charge_reserving(pool->account, pool->page_bytes);
}

/* A free frame that has memory, else one that gets it; OK with POOL_FRAME_NONE: there is none, but
   the caps would allow one.  ERR_NOMEM: they do not. */
static Err
frame_pop(Pool *pool, u32 *frame_out)
{
    rt_latch_acquire(&pool->sweep_latch);
    *frame_out = free_pop(pool);
    bool must = pool->charged < POOL_FRAMES_MIN;
    rt_latch_release(&pool->sweep_latch);
    if (*frame_out != POOL_FRAME_NONE) return OK;
    Err err = frame_charge(pool, must);
    if (err != OK) return err;
    rt_latch_acquire(&pool->sweep_latch);
    u32 frame = pool->cold_first;
    if (frame != POOL_FRAME_NONE) {
        pool->cold_first = pool__frame(pool, frame)->next_free;
        pool->cold_count--;
        pool->charged++;
    }
    rt_latch_release(&pool->sweep_latch);
    if (frame == POOL_FRAME_NONE && pool->account != NULL)
        mem_account_release(pool->account, pool->page_bytes);
    *frame_out = frame;
    return OK;
}

Err
pool__frame_take(Pool *pool, u32 *frame_out)
{
    for (u32 tries = 0; tries < 16; tries++) {
        Err err = frame_pop(pool, frame_out);
        if (err == OK && *frame_out != POOL_FRAME_NONE) return OK;
        if (err == OK && grow(pool)) continue;
        pool_refill(pool, MIN_OF(BATCH, pool->frames_max / 4));
    }
    return rt_load_relaxed(&pool->disk_full) != 0 ? ERR_FULL : ERR_NOMEM;
}

/* ---- giving back ---- */

#define GIVEN_TOGETHER 64u

/* Frames that are free, or whose page is clean and wanted by nobody; ours then.  Sweep latch
   held, so no file goes away meanwhile. */
static u32
frames_collect(Pool *pool, u32 *steps_io, u32 wanted, u32 *frame_out)
{
    u32 count = 0;
    while (count < wanted && pool->free_first != POOL_FRAME_NONE)
        frame_out[count++] = free_pop(pool);
    u64 busy = PAGE_LATCHED | PAGE_SHARED | PAGE_WRITING | PAGE_DIRTY;
    for (; count<wanted && * steps_io> 0; *steps_io -= 1) {
        HandPlace place;
        if (!hand_step(pool, busy, &place)) continue;
        if (!evict(place.file, pool__entry(place.file, place.page_id), place.page_id, place.word))
            continue;
        __atomic_store_n(&pool__frame(pool, place.frame)->file, NULL, __ATOMIC_RELAXED);
        frame_out[count++] = place.frame;
    }
    return count;
}

u64
pool_give_back(void *arg, u64 bytes)
{
    Pool *pool = (Pool *)arg;
    u32 frames[GIVEN_TOGETHER];
    u64 given = 0;
    bool first = true;
    u32 steps = 0;
    while (given < bytes) {
        if (!rt_latch_try_acquire(&pool->sweep_latch)) break;
        if (first && pool->gives_way) steps = 2 * pool->frames_made;
        first = false;
        u64 left = (bytes - given + pool->page_bytes - 1) >> pool->page_shift;
        u32 wanted = (u32)MIN_OF(left, (u64)GIVEN_TOGETHER);
        u32 count = frames_collect(pool, &steps, wanted, frames);
        pool->charged -= count;
        rt_latch_release(&pool->sweep_latch);
        if (count == 0) break;
        for (u32 i = 0; i < count; i++)
            rt_memory_give_back(pool__frame_bytes(pool, frames[i]), pool->page_bytes);
        if (pool->account != NULL)
            mem_account_release(pool->account, (u64)count << pool->page_shift);
        given += (u64)count << pool->page_shift;
        /* Ours until now; the latch may be waited for here, since its holders are short. */
        u32 rounds = 0;
        while (!rt_latch_try_acquire(&pool->sweep_latch))
            rt_spin(&rounds);
        for (u32 i = 0; i < count; i++)
            cold_push(pool, frames[i]);
        rt_latch_release(&pool->sweep_latch);
    }
    return given;
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
                             .frames_free = pool->free_count + pool->cold_count,
                             .frames_charged = pool->charged};
    rt_latch_release(&pool->sweep_latch);
}
