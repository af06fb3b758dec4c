/*
 * pool_test.c -- pages come back as they were left, whoever evicts them meanwhile.
 *
 * Method: a "disk" of copies behind a pool far too small.  Every page holds the same number in all
 * its words.  One task makes, changes, drops and reads pages at random against a model, with loads
 * and writes that fail now and then; then several threads change and view pages while others evict:
 * a view that ends well must have seen equal words, and increments must not get lost.
 */
#include "pool_disk.h"

#define PAGES      200u
#define PAGE_BYTES 4096u
#define WORDS      (PAGE_BYTES / 8)

static void
fill(u8 *bytes, u64 number)
{
    for (u32 i = 0; i < WORDS; i++) {
        store_u64(bytes + 8 * i, number);
    }
}

static void
random_work(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    for (u64 seed = 1; seed <= 12; seed++) {
        Disk *disk = disk_new(PAGE_BYTES, seed);
        disk->words_equal = true;
        disk->fail_one_in = seed % 3 == 0 ? 9 : 0;
        Rng rng;
        rng_seed(&rng, seed * 77);
        Pool *pool;
        PoolFile *file;
        PoolClient client = client_of(disk);
        assert_int_equal(pool_create(PAGE_BYTES, 16 + (u32)(seed * 5), &pool), OK);
        assert_int_equal(pool_file_open(pool, &client, &file), OK);
        u64 model[PAGES + 1] = {0}; /* 0: no page. */
        for (u32 step = 0; step < 6000; step++) {
            u32 page_id = 1 + (u32)rng_below(&rng, PAGES);
            PageView view;
            u64 dice = rng_below(&rng, 10);
            Err err;
            if (model[page_id] == 0) {
                assert_int_equal(pool_view(file, page_id, false, &view), ERR_NOTFOUND);
                err = pool_make(file, page_id, &view);
                if (err != OK) {
                    assert_true(disk->fail_one_in != 0 && err == ERR_NOMEM);
                    continue;
                }
                model[page_id] = rng_next(&rng) | 1;
                fill(view.bytes, model[page_id]);
                pool_unlatch(&view, true, true);
                continue;
            }
            err = dice < 5 ? pool_view(file, page_id, dice == 0, &view)
                           : pool_latch(file, page_id, &view);
            if (err != OK) {
                assert_true(disk->fail_one_in != 0 && (err == ERR_IO_READ || err == ERR_NOMEM));
                continue;
            }
            assert_true(load_u64(view.bytes) == model[page_id]);
            assert_true(load_u64(view.bytes + PAGE_BYTES - 8) == model[page_id]);
            if (dice < 4) {
                assert_true(pool_view_end(&view));
                continue;
            }
            if (dice == 4) assert_true(pool_view_latch(&view));
            if (dice == 9 && rng_below(&rng, 3) == 0) {
                pool_drop(&view);
                model[page_id] = 0;
                continue;
            }
            bool changes = rng_below(&rng, 2) == 0;
            if (changes) {
                model[page_id] = rng_next(&rng) | 1;
                fill(view.bytes, model[page_id]);
            }
            pool_unlatch(&view, changes, changes);
        }
        PoolStats stats;
        pool_stats(pool, &stats);
        assert_true(stats.evictions > 1000 && stats.writes > 300 && stats.loads > 1000);
        pool_file_close(file);
        pool_free(pool);
        disk_end(disk);
    }
    assert_int_equal(mem_live_blocks(), blocks);
}

/* ---- threads ---- */

typedef struct Shared {
    PoolFile *file;
    Pool *pool;
    u32 pages;
    RtU32 writers_left;
    RtU64 increments, views, failed_views;
    RtU32 seats;
} Shared;

static void
incrementer(void *arg)
{
    Shared *shared = (Shared *)arg;
    Rng rng;
    rng_seed(&rng, 1000 + rt_fetch_add(&shared->seats, 1));
    for (u32 i = 0; i < 3000; i++) {
        u32 page_id = 1 + (u32)rng_below(&rng, shared->pages);
        PageView view;
        Err err;
        if (rng_below(&rng, 2) == 0) {
            err = pool_latch(shared->file, page_id, &view);
            ASSERT(err == OK);
        } else {
            do {
                err = pool_view(shared->file, page_id, false, &view);
                ASSERT(err == OK);
            } while (!pool_view_latch(&view));
        }
        u64 number = load_u64(view.bytes);
        for (u32 k = 0; k < WORDS; k++) {
            ASSERT(load_u64(view.bytes + 8 * k) == number);
        }
        fill(view.bytes, number + 1);
        pool_unlatch(&view, true, true);
        rt_fetch_add(&shared->increments, 1);
    }
    rt_fetch_sub(&shared->writers_left, 1);
}

static void
viewer(void *arg)
{
    Shared *shared = (Shared *)arg;
    Rng rng;
    rng_seed(&rng, 5000 + rt_fetch_add(&shared->seats, 1));
    u8 *copy = (u8 *)malloc(PAGE_BYTES);
    while (rt_load_acquire(&shared->writers_left) > 0) {
        PageView view;
        Err err = pool_view(shared->file, 1 + (u32)rng_below(&rng, shared->pages), true, &view);
        ASSERT(err == OK);
        rt_copy_racy(copy, view.bytes, PAGE_BYTES);
        if (!pool_view_end(&view)) {
            rt_fetch_add(&shared->failed_views, 1);
            continue;
        }
        for (u32 k = 1; k < WORDS; k++) {
            ASSERT(load_u64(copy + 8 * k) == load_u64(copy));
        }
        rt_fetch_add(&shared->views, 1);
    }
    free(copy);
}

static void
refiller(void *arg)
{
    Shared *shared = (Shared *)arg;
    while (rt_load_acquire(&shared->writers_left) > 0) {
        pool_refill(shared->pool, 4);
        rt_yield();
    }
}

static void
many_threads(void **state)
{
    (void)state;
    Disk *disk = disk_new(PAGE_BYTES, 1);
    disk->words_equal = true;
    PoolClient client = client_of(disk);
    Shared shared = {.pages = 40};
    assert_int_equal(pool_create(PAGE_BYTES, 20, &shared.pool), OK);
    assert_int_equal(pool_file_open(shared.pool, &client, &shared.file), OK);
    for (u32 i = 1; i <= shared.pages; i++) {
        PageView view;
        assert_int_equal(pool_make(shared.file, i, &view), OK);
        pool_unlatch(&view, true, true);
    }
    RtThread *threads[6];
    rt_word_init(&shared.writers_left, 3);
    for (u32 i = 0; i < 6; i++) {
        RtTaskFn main_fn = i < 3 ? incrementer : i < 5 ? viewer : refiller;
        assert_int_equal(
            rt_thread_start(rt_process_default(), main_fn, &shared, "pool", &threads[i]), OK);
    }
    for (u32 i = 0; i < 6; i++) {
        rt_thread_join(threads[i]);
    }
    u64 sum = 0;
    for (u32 i = 1; i <= shared.pages; i++) {
        PageView view;
        assert_int_equal(pool_view(shared.file, i, false, &view), OK);
        sum += load_u64(view.bytes);
        assert_true(pool_view_end(&view));
    }
    assert_int_equal(sum, 3 * 3000);
    pool_file_close(shared.file);
    pool_free(shared.pool);
    disk_end(disk);
}

/* A scan beside a small hot set: the hot pages stay. */
static void
a_scan_does_not_flush_what_is_hot(void **state)
{
    (void)state;
    Disk *disk = disk_new(PAGE_BYTES, 1);
    disk->words_equal = true;
    PoolClient client = client_of(disk);
    Pool *pool;
    PoolFile *file;
    assert_int_equal(pool_create(PAGE_BYTES, 112, &pool), OK);
    assert_int_equal(pool_file_open(pool, &client, &file), OK);
    PageView view;
    for (u32 i = 1; i <= PAGES; i++) {
        assert_int_equal(pool_make(file, i, &view), OK);
        pool_unlatch(&view, true, true);
    }
    u32 hot_loads = 0;
    for (u32 round = 0; round < 2000; round++) {
        u32 scanned = 33 + round % (PAGES - 32);
        assert_int_equal(pool_view(file, scanned, true, &view), OK);
        assert_true(pool_view_end(&view));
        u32 hot = 1 + round * 7 % 32;
        assert_int_equal(pool_view(file, hot, false, &view), OK);
        if (round > 200) hot_loads += view.loaded;
        assert_true(pool_view_end(&view));
    }
    assert_true(hot_loads < 60); /* Of 1,800 visits. */
    pool_file_close(file);
    pool_free(pool);
    disk_end(disk);
}

/* A cap of the account stops the pool at three quarters of it, or at its least; what others want
   it gives back, clean pages only, and everything reads as it was written. */
static void
gives_way_to_others(void **state)
{
    (void)state;
    Disk *disk = disk_new(PAGE_BYTES, 3);
    PoolClient client = client_of(disk);
    MemAccount account = {.name = "database"};
    PoolStats stats;
    Pool *pool;
    PoolFile *file;
    PageView view;
    assert_int_equal(pool_create(PAGE_BYTES, 180, &pool), OK);
    pool_set_account(pool, &account, true);
    assert_int_equal(pool_file_open(pool, &client, &file), OK);
    for (u32 i = 1; i <= 2; i++) {
        assert_int_equal(pool_make(file, i, &view), OK);
        fill(view.bytes, i);
        pool_unlatch(&view, true, true);
    }
    /* The cap of a hundred pages, beside directories. */
    u64 around = account.used_bytes - 2 * PAGE_BYTES;
    mem_account_cap(&account, 100 * PAGE_BYTES + (around + 2) / 3 * 4);
    for (u32 i = 3; i <= PAGES; i++) {
        assert_int_equal(pool_make(file, i, &view), OK);
        fill(view.bytes, i);
        pool_unlatch(&view, true, true);
    }
    pool_stats(pool, &stats);
    assert_int_equal(stats.frames_charged, 75);
    assert_int_equal(account.used_bytes, around + 75 * PAGE_BYTES);
    /* Dirty pages stay where they are. */
    (void)pool_give_back(pool, U64_MAX);
    u64 dirty_bytes = account.used_bytes;
    for (u32 i = 1; i <= PAGES; i++) {
        assert_int_equal(pool_view(file, i, false, &view), OK);
        assert_int_equal(load_u64(view.bytes + PAGE_BYTES - 8), i);
        assert_true(pool_view_end(&view));
    }
    /* As many as asked for. */
    u64 before = account.used_bytes;
    assert_true(before > dirty_bytes || before == around + 75 * PAGE_BYTES);
    assert_int_equal(pool_give_back(pool, 10 * PAGE_BYTES), 10 * PAGE_BYTES);
    assert_int_equal(account.used_bytes, before - 10 * PAGE_BYTES);
    pool_file_close(file);
    pool_free(pool);
    assert_int_equal(account.used_bytes, 0);
    disk_end(disk);
}

/* Directories grow with the ids of pages, whether or not a page of them has memory. */
static void
directories_are_charged(void **state)
{
    (void)state;
    Disk *disk = disk_new(PAGE_BYTES, 1);
    MemAccount account = {.name = "test"};
    Pool *pool;
    PoolFile *file;
    PoolClient client = client_of(disk);
    assert_int_equal(pool_create(PAGE_BYTES, 64, &pool), OK);
    pool_set_account(pool, &account, true);
    assert_int_equal(pool_file_open(pool, &client, &file), OK);
    assert_int_equal(account.used_bytes, 0);
    assert_int_equal(pool_file_adopt(file, 1), OK);
    u64 one = account.used_bytes;
    assert_true(one >= 4096 * sizeof(u64)); /* A word a page, and more. */
    assert_int_equal(pool_file_adopt(file, 2), OK);
    assert_int_equal(account.used_bytes, one);
    for (u32 i = 1; i <= 20; i++)
        assert_int_equal(pool_file_adopt(file, i * 4096), OK);
    assert_true(account.used_bytes >= one + 20 * 4096 * sizeof(u64));
    /* Caps do not stop them, but whoever comes later. */
    mem_account_cap(&account, account.used_bytes);
    assert_int_equal(pool_file_adopt(file, 100 * 4096), OK);
    assert_int_equal(mem_account_charge(&account, 1), ERR_NOMEM);
    pool_file_close(file);
    assert_int_equal(account.used_bytes, 0);
    pool_free(pool);
    assert_int_equal(account.used_bytes, 0);
    disk_end(disk);
}

/* Others have taken all there is: the pool works with its least. */
static void
works_when_others_have_all(void **state)
{
    (void)state;
    Disk *disk = disk_new(PAGE_BYTES, 3);
    PoolClient client = client_of(disk);
    MemAccount account = {.name = "database", .cap_bytes = 100 * PAGE_BYTES};
    PoolStats stats;
    Pool *pool;
    PoolFile *file;
    PageView view;
    assert_int_equal(mem_account_charge(&account, account.cap_bytes), OK);
    assert_int_equal(pool_create(PAGE_BYTES, 180, &pool), OK);
    pool_set_account(pool, &account, true);
    assert_int_equal(pool_file_open(pool, &client, &file), OK);
    for (u32 i = 1; i <= PAGES; i++) {
        assert_int_equal(pool_make(file, i, &view), OK);
        fill(view.bytes, i);
        pool_unlatch(&view, true, true);
    }
    pool_stats(pool, &stats);
    assert_int_equal(stats.frames_charged, POOL_FRAMES_MIN);
    for (u32 i = 1; i <= PAGES; i++) {
        assert_int_equal(pool_view(file, i, false, &view), OK);
        assert_int_equal(load_u64(view.bytes), i);
        assert_true(pool_view_end(&view));
    }
    pool_file_close(file);
    pool_free(pool);
    assert_int_equal(account.used_bytes, 100 * PAGE_BYTES);
    disk_end(disk);
}

/* Pages 1 to `pages` are made, full of a number; every third is dropped again. */
static void
use_pages(PoolFile *file, u32 pages)
{
    for (u32 i = 1; i <= pages; i++) {
        PageView view;
        assert_int_equal(pool_make(file, i, &view), OK);
        for (u32 k = 0; k < WORDS; k++)
            assert_true(load_u64(view.bytes + 8 * k) == 0);
        fill(view.bytes, i | 1);
        if (i % 3 == 0) {
            pool_drop(&view);
        } else {
            pool_unlatch(&view, true, true);
        }
    }
}

/* A small pool is used again: charged to nobody in between, and then as a new one. */
static void
a_retired_pool_is_as_good_as_new(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    Disk *disk = disk_new(PAGE_BYTES, 5);
    PoolClient client = client_of(disk);
    MemAccount first = {.name = "database"}, second = {.name = "database"};
    PoolStats stats;
    Pool *pool;
    PoolFile *file;
    PageView view;
    assert_int_equal(pool_create(PAGE_BYTES, 180, &pool), OK);
    pool_set_account(pool, &first, true);
    assert_int_equal(pool_file_open(pool, &client, &file), OK);
    use_pages(file, 100);
    assert_true(first.used_bytes > 0);
    assert_ptr_equal(pool_retire(file), file);
    assert_int_equal(first.used_bytes, 0);

    assert_false(pool_renew(file, 2 * PAGE_BYTES, 180, &client));
    assert_false(pool_renew(file, PAGE_BYTES, 181, &client));
    assert_true(pool_renew(file, PAGE_BYTES, 180, &client));
    assert_ptr_equal(pool_of_file(file), pool);
    pool_set_account(pool, &second, false);
    pool_stats(pool, &stats);
    assert_int_equal(stats.frames_charged, 0);
    assert_int_equal(stats.frames_free, stats.frames);
    assert_int_equal(stats.loads + stats.evictions + stats.writes + stats.sweeps, 0);
    for (u32 i = 1; i <= 100; i++)
        assert_int_equal(pool_view(file, i, false, &view), ERR_NOTFOUND);
    use_pages(file, PAGES); /* More than there are frames: the hand finds its way. */
    for (u32 i = 1; i <= PAGES; i++) {
        if (i % 3 == 0) continue;
        assert_int_equal(pool_view(file, i, false, &view), OK);
        assert_int_equal(load_u64(view.bytes), i | 1);
        assert_true(pool_view_end(&view));
    }
    assert_null(pool_retire(file)); /* It has become too large to be kept. */
    assert_int_equal(first.used_bytes + second.used_bytes, 0);
    disk_end(disk);
    assert_int_equal(mem_live_blocks(), blocks);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_work),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(a_scan_does_not_flush_what_is_hot),
        cmocka_unit_test(gives_way_to_others),
        cmocka_unit_test(directories_are_charged),
        cmocka_unit_test(works_when_others_have_all),
        cmocka_unit_test(a_retired_pool_is_as_good_as_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
