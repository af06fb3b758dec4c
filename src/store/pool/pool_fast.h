/*
 * pool_fast.h -- the short way of pool_view() and its end, to be inlined where trees are descended.
 *
 * A page that is in memory and not latched needs no call.  Everything else, and the thread
 * sanitizer's build, takes the long way.
 */
#pragma once

#include "store/pool/pool_impl.h"

/* The view, if the page is at hand and its heat need not be noted.  Never under the thread
   sanitizer. */
static ALWAYS_INLINE bool
pool_view_try(PoolFile *file, u32 page_id, bool scan, PageView *view_out)
{
#ifdef WEFT_TSAN
    (void)file, (void)page_id, (void)scan, (void)view_out;
    return false;
#else
    PageEntry *entry = pool__entry_fast(file, page_id);
    if (UNLIKELY(entry == NULL)) return false;
    u64 word = rt_load_acquire(&entry->word);
    u64 wanted = scan ? PAGE_RESIDENT : PAGE_RESIDENT | PAGE_HOT;
    u64 asked = scan ? PAGE_STATE | PAGE_LATCHED : PAGE_STATE | PAGE_LATCHED | PAGE_HOT;
    if (UNLIKELY((word & asked) != wanted)) return false;
    view_out->file = file;
    view_out->entry = entry;
    view_out->word = word;
    view_out->page_id = page_id;
    view_out->loaded = false;
    view_out->bytes = pool__frame_bytes(file->pool, rt_load_relaxed(&entry->frame));
    return true;
#endif
}

static ALWAYS_INLINE Err
pool_view_fast(PoolFile *file, u32 page_id, bool scan, PageView *view_out)
{
    if (LIKELY(pool_view_try(file, page_id, scan, view_out))) return OK;
    return pool_view(file, page_id, scan, view_out);
}

/* Is a page still what it was when its word was `word`? */
static ALWAYS_INLINE bool
pool_word_stands(const PageEntry *entry, u64 word)
{
#ifndef WEFT_TSAN /* It does not know fences, and its build shares the page. */
    atomic_thread_fence(memory_order_acquire);
#endif
    return ((rt_load_relaxed(&entry->word) ^ word) & PAGE_SEEN) == 0;
}

static ALWAYS_INLINE bool
pool_view_check_fast(const PageView *view)
{
    return pool_word_stands(view->entry, view->word);
}

/* pool_view_latch(), short where nothing at all has happened to the word. */
static ALWAYS_INLINE bool
pool_view_latch_fast(PageView *view)
{
#ifndef WEFT_TSAN
    u64 word = view->word;
    if (LIKELY(rt_cas(&view->entry->word, &word, word | PAGE_LATCHED))) {
        rt_latch_enter(POOL_RANK_PAGE);
        view->word = word | PAGE_LATCHED;
        return true;
    }
#endif
    return pool_view_latch(view);
}

static ALWAYS_INLINE bool
pool_view_end_fast(PageView *view)
{
#ifdef WEFT_TSAN
    return pool_view_end(view);
#else
    return pool_view_check_fast(view);
#endif
}
