/*
 * spare.c -- a pool that was closed is kept for the next store of its kind.
 *
 * Making a pool costs a mapping of 2 MiB, a page fault for each 4 KiB that is used of it, and 300
 * KiB of zeros for directories: most of the life of a small database.  What is kept is bounded by
 * SPARE_BYTES and the directories, and charged to nobody.
 */
#include "store/pool/pool_impl.h"

#define SPARE_BYTES ((u64)512 << 10) /* Of frames that have memory. */

PoolFile *
pool_retire(PoolFile *file)
{
    Pool *pool = file->pool;
    bool small = pool->frames_made <= POOL_CHUNK_BYTES >> pool->page_shift &&
                 (u64)pool->charged << pool->page_shift <= SPARE_BYTES &&
                 rt_load_relaxed(&file->top) < POOL_ENTRIES;
    if (!small) {
        pool_spare_free(file);
        return NULL;
    }
    pool__file_leave(file);
    pool__file_empty(file);
    pool__frames_cold(pool);
    return file;
}

bool
pool_renew(PoolFile *spare, u32 page_bytes, u32 frames_max, const PoolClient *client)
{
    Pool *pool = spare->pool;
    if (pool->page_bytes != page_bytes || pool->frames_max != frames_max) return false;
    ASSERT(pool->charged == 0 && spare->sweepers == 0);
    RtU64 *const counters[] = {&pool->loads,    &pool->evictions, &pool->writes,
                               &pool->discards, &pool->sweeps,    &pool->waits};
    for (u32 i = 0; i < COUNT_OF(counters); i++)
        rt_store_relaxed(counters[i], 0);
    rt_store_relaxed(&pool->disk_full, 0);
    pool->gives_way = false;
    spare->client = *client;
    spare->closing = false;
    return true;
}

Pool *
pool_of_file(const PoolFile *file)
{
    return file->pool;
}

void
pool_spare_free(PoolFile *spare)
{
    if (spare == NULL) return;
    Pool *pool = spare->pool;
    pool_file_close(spare);
    pool_free(pool);
}
