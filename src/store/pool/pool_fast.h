/*
 * pool_fast.h -- the short way of pool_view() and its end, to be inlined where trees are descended.
 *
 * A page that is in memory and not latched needs no call.  Everything else, and the thread
 * sanitizer's build, takes the long way.
 */
#pragma once

#include "store/pool/pool_impl.h"

static ALWAYS_INLINE Err
pool_view_fast(PoolFile *file, u32 page_id, bool scan, PageView *view_out)
{
#ifndef WEFT_TSAN
    PageEntry *entry = pool__entry_fast(file, page_id);
    if (LIKELY(entry != NULL)) {
        u64 word = rt_load_acquire(&entry->word);
        bool warm = scan || (word & PAGE_HOT) != 0;
        if (LIKELY((word & (PAGE_STATE | PAGE_LATCHED)) == PAGE_RESIDENT && warm)) {
            view_out->file = file;
            view_out->entry = entry;
            view_out->word = word;
            view_out->page_id = page_id;
            view_out->loaded = false;
            view_out->bytes = pool__frame_bytes(file->pool, rt_load_relaxed(&entry->frame));
            return OK;
        }
    }
#endif
    return pool_view(file, page_id, scan, view_out);
}

static ALWAYS_INLINE bool
pool_view_check_fast(const PageView *view)
{
#ifndef WEFT_TSAN /* It does not know fences, and its build shares the page. */
    atomic_thread_fence(memory_order_acquire);
#endif
    return (rt_load_relaxed(&view->entry->word) & PAGE_SEEN) == (view->word & PAGE_SEEN);
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
