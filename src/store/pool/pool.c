/*
 * pool.c -- entries, views and latches.
 *
 * Invariants: the frame number of an entry is valid while the state is RESIDENT, and changes only
 * while it is LOADING or the page is latched.  The version moves with each exclusive unlock that
 * changed something and with each eviction, so that equal PAGE_SEEN bits of two looks mean that
 * the bytes between them were the same.  48 bits of version do not come round.
 */
#include "store/pool/pool_impl.h"

#include "rt/park.h"

#define SPINS_MAX 200u /* About as long as parking and waking would take. */

/* ---- the directory ---- */

PageEntry *
pool__entry(const PoolFile *file, u32 page_id)
{
    return pool__entry_fast(file, page_id);
}

/* What a slot of the directory leads to, made if need be; grow mutex held.  It is little beside the
   pages, and who needs it may not be refused: so it is counted whatever the caps say. */
static void *
grown(PoolFile *file, RtPtr *slot, size_t bytes)
{
    void *made = rt_load_relaxed(slot);
    if (made != NULL) return made;
    made = mem_alloc_zeroed(bytes);
    if (made == NULL) return NULL;
    pool__around_add(file->pool, bytes);
    file->directory_bytes += bytes;
    rt_store_release(slot, made);
    return made;
}

Err
pool__entry_make(PoolFile *file, u32 page_id, PageEntry **entry_out)
{
    u32 top = rt_load_relaxed(&file->top);
    while (page_id > top && !rt_cas_weak(&file->top, &top, page_id)) {
    }
    *entry_out = pool__entry(file, page_id);
    if (*entry_out != NULL) return OK;
    u32 chunk_no = page_id >> POOL_ENTRIES_SHIFT;
    rt_mutex_lock(&file->grow_mutex);
    PoolShelf *shelf = (PoolShelf *)grown(file, &file->shelves[chunk_no >> POOL_SHELF_SHIFT],
                                          sizeof(PoolShelf));
    if (shelf != NULL) {
        grown(file, &shelf->chunks[chunk_no & (POOL_SHELF - 1)], sizeof(PageEntry) * POOL_ENTRIES);
    }
    rt_mutex_unlock(&file->grow_mutex);
    *entry_out = pool__entry(file, page_id);
    return *entry_out == NULL ? ERR_NOMEM : OK;
}

Err
pool_file_open(Pool *pool, const PoolClient *client, PoolFile **file_out)
{
    *file_out = NULL;
    PoolFile *file = MEM_NEW(PoolFile);
    if (file == NULL) return ERR_NOMEM;
    file->pool = pool;
    file->client = *client;
    *file_out = file;
    return OK;
}

u32
pool_file_page_bytes(const PoolFile *file)
{
    return file->pool->page_bytes;
}

/* The first `count` pages of a chunk go. */
static void
chunk_empty(PoolFile *file, PageEntry *chunk, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        u64 word = rt_load_acquire(&chunk[i].word);
        ASSERT((word & (PAGE_LATCHED | PAGE_SHARED)) == 0);
        if ((word & PAGE_STATE) == PAGE_RESIDENT) {
            pool__frame_give(file->pool, rt_load_relaxed(&chunk[i].frame));
        }
    }
    memset((void *)chunk, 0, count * sizeof(*chunk));
}

void
pool__file_empty(PoolFile *file)
{
    u64 end = (u64)rt_load_relaxed(&file->top) + 1;
    for (u64 at = 0; at < end; at += POOL_ENTRIES) {
        u32 count = (u32)MIN_OF(end - at, (u64)POOL_ENTRIES);
        PageEntry *chunk = pool__entry(file, (u32)at);
        if (chunk != NULL) chunk_empty(file, chunk, count);
    }
    rt_store_relaxed(&file->top, 0);
}

void
pool_file_close(PoolFile *file)
{
    if (file == NULL) return;
    pool__file_leave(file);
    u32 shelves = (rt_load_relaxed(&file->top) >> POOL_ENTRIES_SHIFT >> POOL_SHELF_SHIFT) + 1;
    pool__file_empty(file);
    for (u32 i = 0; i < shelves; i++) {
        PoolShelf *shelf = (PoolShelf *)rt_load_relaxed(&file->shelves[i]);
        for (u32 k = 0; shelf != NULL && k < POOL_SHELF; k++) {
            mem_free(rt_load_relaxed(&shelf->chunks[k]));
        }
        mem_free(shelf);
    }
    pool__around_release(file->pool, file->directory_bytes);
    mem_free(file);
}

Err
pool_file_adopt(PoolFile *file, u32 page_id)
{
    PageEntry *entry;
    Err err = pool__entry_make(file, page_id, &entry);
    if (err != OK) return err;
    u64 word = rt_load_relaxed(&entry->word);
    if ((word & PAGE_STATE) == PAGE_NONE) pool__word_release(entry, PAGE_STATE, PAGE_EVICTED, 0);
    return OK;
}

/* ---- words ---- */

void
pool__word_release(PageEntry *entry, u64 clear, u64 set, u64 add)
{
    u64 word = rt_load_relaxed(&entry->word);
    while (!rt_cas(&entry->word, &word, ((word & ~(clear | PAGE_PARKED)) | set) + add)) {
    }
    if ((word & PAGE_PARKED) != 0) rt_unpark_all(&entry->word);
}

/* Sleep until the word differs from `word` in latch or state. */
static void
word_wait(Pool *pool, PageEntry *entry, u64 word)
{
    u32 rounds = 0;
    while (rounds < SPINS_MAX) {
        rt_spin(&rounds);
        rounds++;
        if ((rt_load_acquire(&entry->word) & PAGE_SEEN) != (word & PAGE_SEEN)) return;
    }
    rt_fetch_add(&pool->waits, 1);
    u64 now = rt_load_relaxed(&entry->word);
    while ((now & PAGE_SEEN) == (word & PAGE_SEEN) && (now & PAGE_PARKED) == 0) {
        if (rt_cas(&entry->word, &now, now | PAGE_PARKED)) now |= PAGE_PARKED;
    }
    if ((now & PAGE_SEEN) != (word & PAGE_SEEN)) return;
    u64 mask = PAGE_SEEN | PAGE_PARKED;
    rt_park(&entry->word, &entry->word, mask, (word & PAGE_SEEN) | PAGE_PARKED, RT_FOREVER,
            RT_PARK_NOCANCEL, 0);
}

/* Wait until the readers that share the page have gone.  There are some only in the build for the
   thread sanitizer; one may be a fiber of this loop that waits for the page below: let it run. */
static void
shared_wait(PageEntry *entry)
{
    while ((rt_load_acquire(&entry->word) & PAGE_SHARED) != 0) {
        rt_yield();
    }
}

/* ---- loading ---- */

/* The entry is EVICTED with this word: bring its page in.  OK also if another did. */
static Err
load(PoolFile *file, PageEntry *entry, u32 page_id, u64 word)
{
    Pool *pool = file->pool;
    u32 frame;
    /* The frame first: taking one may park, and nobody should wait for us meanwhile. */
    Err err = pool__frame_take(pool, &frame);
    if (err != OK) return err;
    u64 loading = (word & ~PAGE_STATE) | PAGE_LOADING;
    if (!rt_cas(&entry->word, &word, loading)) {
        pool__frame_give(pool, frame);
        return OK;
    }
    rt_fetch_add(&pool->loads, 1);
    err = file->client.load(file->client.arg, page_id, pool__frame_bytes(pool, frame));
    if (err != OK) {
        pool__word_release(entry, PAGE_STATE, PAGE_EVICTED, 0);
        pool__frame_give(pool, frame);
        return err;
    }
    rt_store_relaxed(&entry->frame, frame);
    pool__word_release(entry, PAGE_STATE | PAGE_HOT | PAGE_DIRTY, PAGE_RESIDENT, PAGE_VERSION_ONE);
    pool__frame_own(pool, frame, file, page_id);
    return OK;
}

/*
 * Come to a word of a resident, unlatched page: loads, waits.  The view's file, entry and page_id
 * are set; its word is.
 */
static Err
word_of_resident(PageView *view)
{
    for (;;) {
        u64 word = rt_load_acquire(&view->entry->word);
        view->word = word;
        switch (word & PAGE_STATE) {
        case PAGE_RESIDENT:
            if (LIKELY((word & PAGE_LATCHED) == 0)) return OK;
            FALLTHROUGH;
        case PAGE_LOADING: word_wait(view->file->pool, view->entry, word); break;
        case PAGE_EVICTED: {
            Err err = load(view->file, view->entry, view->page_id, word);
            if (err != OK) return err;
            view->loaded = true;
            break;
        }
        default: return ERR_NOTFOUND;
        }
    }
}

static Err
view_start(PoolFile *file, u32 page_id, PageView *view)
{
    *view = (PageView){.file = file, .entry = pool__entry(file, page_id), .page_id = page_id};
    return view->entry == NULL ? ERR_NOTFOUND : OK;
}

/* ---- views ---- */

#ifdef WEFT_TSAN
/* Optimistic reads are races by design, so here they share the page. */
static bool
view_share(PageView *view)
{
    u64 word = view->word;
    if ((word & PAGE_SHARED) == PAGE_SHARED) return false;
    if (!rt_cas(&view->entry->word, &word, word + PAGE_SHARED_ONE)) return false;
    view->word = word + PAGE_SHARED_ONE;
    return true;
}
#endif

/* Hot with the visit after the one that loaded it; written only when it is not hot yet. */
static inline void
view_heat(const PageView *view)
{
    if (LIKELY((view->word & PAGE_HOT) != 0) || view->loaded) return;
    rt_fetch_or(&view->entry->word, PAGE_HOT);
}

Err
pool_view(PoolFile *file, u32 page_id, bool scan, PageView *view_out)
{
    PageView *view = view_out;
    Err err = view_start(file, page_id, view);
    if (err != OK) return err;
    for (;;) {
        err = word_of_resident(view);
        if (err != OK) return err;
#ifdef WEFT_TSAN
        if (!view_share(view)) continue;
#endif
        break;
    }
    view->bytes = pool__frame_bytes(file->pool, rt_load_relaxed(&view->entry->frame));
    if (!scan) view_heat(view);
    return OK;
}

bool
pool_view_check(const PageView *view)
{
    /* What was read before must not be read after this. */
#ifndef WEFT_TSAN /* It does not know fences, and its build shares the page. */
    atomic_thread_fence(memory_order_acquire);
#endif
    return (rt_load_relaxed(&view->entry->word) & PAGE_SEEN) == (view->word & PAGE_SEEN);
}

bool
pool_view_end(PageView *view)
{
#ifdef WEFT_TSAN
    bool good = (rt_load_acquire(&view->entry->word) & PAGE_VERSION) == (view->word & PAGE_VERSION);
    rt_fetch_sub(&view->entry->word, PAGE_SHARED_ONE);
#else
    bool good = pool_view_check(view);
#endif
    view->bytes = NULL;
    return good;
}

/* ---- latches ---- */

/* Latch a page whose word is still as seen; `shares`: shared counts of our own in it. */
static bool
latch_seen(PageView *view, u64 shares)
{
    u64 word = rt_load_relaxed(&view->entry->word);
    for (;;) {
        if ((word & PAGE_SEEN) != (view->word & PAGE_SEEN)) return false;
        if (rt_cas(&view->entry->word, &word, (word | PAGE_LATCHED) - shares)) break;
    }
    rt_latch_enter(POOL_RANK_PAGE);
    shared_wait(view->entry);
    view->word = rt_load_relaxed(&view->entry->word);
    view->bytes = pool__frame_bytes(view->file->pool, rt_load_relaxed(&view->entry->frame));
    return true;
}

bool
pool_view_latch(PageView *view)
{
#ifdef WEFT_TSAN
    if (latch_seen(view, PAGE_SHARED_ONE)) return true;
    rt_fetch_sub(&view->entry->word, PAGE_SHARED_ONE);
    return false;
#else
    return latch_seen(view, 0);
#endif
}

Err
pool_latch(PoolFile *file, u32 page_id, PageView *view_out)
{
    PageView *view = view_out;
    Err err = view_start(file, page_id, view);
    while (err == OK) {
        err = word_of_resident(view);
        if (err != OK || !latch_seen(view, 0)) continue;
        view_heat(view);
        return OK;
    }
    return err;
}

bool
pool_try_latch(PoolFile *file, u32 page_id, PageView *view_out)
{
    PageView *view = view_out;
    if (view_start(file, page_id, view) != OK) return false;
    view->word = rt_load_acquire(&view->entry->word);
    bool free_now = (view->word & (PAGE_STATE | PAGE_LATCHED | PAGE_SHARED)) == PAGE_RESIDENT;
    return free_now && latch_seen(view, 0);
}

void
pool_unlatch(PageView *view, bool changed, bool content)
{
    PageEntry *entry = view->entry;
    /* Only who has the latch writes it. */
    if (content) rt_store_release(&entry->content, rt_load_relaxed(&entry->content) + 1);
    rt_latch_leave(POOL_RANK_PAGE);
    if (changed) {
        pool__word_release(entry, PAGE_LATCHED, PAGE_DIRTY, PAGE_VERSION_ONE);
    } else {
        pool__word_release(entry, PAGE_LATCHED, 0, 0);
    }
    view->bytes = NULL;
}

Err
pool_make(PoolFile *file, u32 page_id, PageView *view_out)
{
    PageView *view = view_out;
    u32 frame;
    *view = (PageView){.file = file, .page_id = page_id};
    Err err = pool__entry_make(file, page_id, &view->entry);
    if (err == OK) err = pool__frame_take(file->pool, &frame);
    if (err != OK) return err;
    u64 word = rt_load_relaxed(&view->entry->word);
    do {
        if ((word & PAGE_STATE) != PAGE_NONE) {
            pool__frame_give(file->pool, frame);
            return ERR_EXISTS;
        }
        view->word = (word & PAGE_VERSION) | PAGE_RESIDENT | PAGE_LATCHED | PAGE_DIRTY;
    } while (!rt_cas(&view->entry->word, &word, view->word));
    rt_latch_enter(POOL_RANK_PAGE);
    rt_store_relaxed(&view->entry->frame, frame);
    view->bytes = pool__frame_bytes(file->pool, frame);
    static const u8 zeros[64];
    for (u32 at = 0; at < file->pool->page_bytes; at += (u32)sizeof(zeros)) {
        memcpy(view->bytes + at, zeros, sizeof(zeros)); /* By blocks: cheaper than it seems. */
    }
    pool__frame_own(file->pool, frame, file, page_id);
    return OK;
}

void
pool_drop(PageView *view)
{
    PageEntry *entry = view->entry;
    u32 frame = rt_load_relaxed(&entry->frame);
    rt_latch_leave(POOL_RANK_PAGE);
    pool__word_release(entry, PAGE_LATCHED | PAGE_STATE | PAGE_DIRTY | PAGE_HOT | PAGE_WRITING,
                       PAGE_NONE, PAGE_VERSION_ONE);
    pool__frame_give(view->file->pool, frame);
    view->bytes = NULL;
}

bool
pool_clean(PoolFile *file, u32 page_id, u64 seen)
{
    PageEntry *entry = pool__entry(file, page_id);
    u64 word = rt_load_relaxed(&entry->word);
    do {
        if ((word & PAGE_SEEN) != (seen & PAGE_SEEN)) return false;
    } while (!rt_cas(&entry->word, &word, word & ~PAGE_DIRTY));
    return true;
}

u64
pool_word(PoolFile *file, u32 page_id)
{
    const PageEntry *entry = pool__entry(file, page_id);
    return entry == NULL ? PAGE_NONE : rt_load_acquire(&entry->word);
}
