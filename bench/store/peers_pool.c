/*
 * peers_pool.c -- data eight times the pool, zipfian reads: how often the page is there, beside
 * what LRU and CLOCK would have had of the same reads; and what a full scan beside them costs.
 *
 * The peers of the hit ratio are computed: the same keys, by leaves of as many rows, with as many
 * frames as the pool has for leaves.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "peers.h"
#include "store/store.h"

#define VALUE_BYTES  300
#define TIMES_OVER   8
#define THETA        0.99
#define HIT_GOAL     0.9
#define SCAN_GOAL    0.9 /* Of the throughput without one. */
#define PAGE_BYTES   16384
#define FRAMES_LEAST ((8u << 20) / PAGE_BYTES) /* A pool is not smaller. */

/* ---- zipfian numbers (Gray et al., SIGMOD 1994) ---- */

typedef struct Zipf {
    u64 count, state;
    double zeta, eta, alpha;
} Zipf;

static Zipf
zipf_new(u64 count, u64 seed)
{
    Zipf zipf = {.count = count, .state = seed * 2654435761u + 1, .alpha = 1 / (1 - THETA)};
    for (u64 i = 1; i <= count; i++)
        zipf.zeta += pow((double)i, -THETA);
    double two = 1 + pow(2, -THETA);
    zipf.eta = (1 - pow(2.0 / (double)count, 1 - THETA)) / (1 - two / zipf.zeta);
    return zipf;
}

/* The popular ones lie all over the keys. */
static u64
zipf_next(Zipf *zipf)
{
    double u = (double)(random_next(&zipf->state) >> 11) * 0x1p-53, uz = u * zipf->zeta;
    u64 rank = 0;
    if (uz >= 1 + pow(0.5, THETA))
        rank = (u64)((double)zipf->count * pow(zipf->eta * u - zipf->eta + 1, zipf->alpha));
    else if (uz >= 1)
        rank = 1;
    return MIN_OF(rank, zipf->count - 1) * 0x9e3779b97f4a7c15u % zipf->count;
}

/* ---- LRU and CLOCK ---- */

typedef struct Cache {
    u32 frames, pages, used, hand, newest, oldest;
    u32 *page_of, *frame_of; /* frame_of[page]: frame + 1, 0: not there. */
    u32 *newer, *older;      /* By frame, for LRU. */
    bool *referenced;        /* By frame, for CLOCK. */
    u64 hits, asked;
} Cache;

static void *
zeros(size_t count, size_t bytes)
{
    void *p = calloc(count, bytes);
    if (p == NULL) kv_die("out of memory");
    return p;
}

static Cache
cache_new(u32 frames, u32 pages)
{
    return (Cache){.frames = frames,
                   .pages = pages,
                   .page_of = (u32 *)zeros(frames, sizeof(u32)),
                   .frame_of = (u32 *)zeros(pages, sizeof(u32)),
                   .newer = (u32 *)zeros(frames, sizeof(u32)),
                   .older = (u32 *)zeros(frames, sizeof(u32)),
                   .referenced = (bool *)zeros(frames, sizeof(bool))};
}

static void
cache_free(Cache *cache)
{
    free(cache->page_of);
    free(cache->frame_of);
    free(cache->newer);
    free(cache->older);
    free(cache->referenced);
}

static void
lru_unlink(Cache *cache, u32 frame)
{
    if (frame == cache->newest)
        cache->newest = cache->older[frame];
    else
        cache->older[cache->newer[frame]] = cache->older[frame];
    if (frame == cache->oldest)
        cache->oldest = cache->newer[frame];
    else
        cache->newer[cache->older[frame]] = cache->newer[frame];
}

static void
lru_push(Cache *cache, u32 frame, bool is_first)
{
    cache->older[frame] = cache->newest;
    if (is_first)
        cache->oldest = frame;
    else
        cache->newer[cache->newest] = frame;
    cache->newest = frame;
}

static u32
frame_to_fill(Cache *cache, bool is_lru)
{
    if (cache->used < cache->frames) return cache->used++;
    u32 frame = cache->oldest;
    if (is_lru) {
        lru_unlink(cache, frame);
    } else {
        while (cache->referenced[cache->hand]) {
            cache->referenced[cache->hand] = false;
            cache->hand = (cache->hand + 1) % cache->frames;
        }
        frame = cache->hand;
        cache->hand = (cache->hand + 1) % cache->frames;
    }
    cache->frame_of[cache->page_of[frame]] = 0;
    return frame;
}

static void
cache_ask(Cache *cache, u32 page, bool is_lru)
{
    cache->asked++;
    u32 frame = cache->frame_of[page];
    if (frame != 0) {
        cache->hits++;
        cache->referenced[frame - 1] = true;
        if (!is_lru || frame - 1 == cache->newest) return;
        lru_unlink(cache, frame - 1);
        lru_push(cache, frame - 1, false);
        return;
    }
    bool is_first = cache->used == 0;
    frame = frame_to_fill(cache, is_lru);
    cache->page_of[frame] = page;
    cache->frame_of[page] = frame + 1;
    cache->referenced[frame] = false;
    if (is_lru) lru_push(cache, frame, is_first);
}

static double
ratio_of(u64 rows, double rows_each, u32 frames, u64 times, bool is_lru)
{
    Zipf zipf = zipf_new(rows, 5);
    Cache cache = cache_new(frames, (u32)((double)rows / rows_each) + 1);
    for (u64 i = 0; i < 2 * times; i++) {
        if (i == times) cache.hits = cache.asked = 0;
        cache_ask(&cache, (u32)((double)zipf_next(&zipf) / rows_each), is_lru);
    }
    double ratio = (double)cache.hits / (double)cache.asked;
    cache_free(&cache);
    return ratio;
}

/* ---- the store ---- */

static u64
loads_of(Kv *kv)
{
    StoreStats stats;
    store_stats(kv_weft_store(kv), &stats);
    return stats.page_reads;
}

static void
hit_rows(Peers *peers, Kv *kv, u64 rows, double rows_each, u32 frames)
{
    if (!peers_wants(peers, "hit_ratio")) return;
    Row row = peers_row(peers, "hit_ratio", 0, "of reads", true, 0);
    Zipf zipf = zipf_new(rows, 5);
    KvSession *session = kv_weft.session(kv, KV_WAIT_TIMEOUT);
    u64 loads = 0;
    for (u64 i = 0; i < 2 * rows; i++) {
        if (i == rows) loads = loads_of(kv);
        if (i % 10000 == 0) kv_weft.begin(session, false);
        kv_weft.get(session, zipf_next(&zipf));
        if (i % 10000 == 9999) kv_weft.commit(session);
    }
    kv_weft.session_end(session);
    double ours = 1 - (double)(loads_of(kv) - loads) / (double)rows;
    double lru = ratio_of(rows, rows_each, frames, rows, true);
    double clock = ratio_of(rows, rows_each, frames, rows, false);
    row_add(&row, ours, MAX_OF(lru, clock));
    row.peer_name = lru > clock ? "LRU" : "CLOCK";
    row.goal = HIT_GOAL;
    snprintf(row.note, sizeof(row.note), "LRU %.4f, CLOCK %.4f, %u leaves of %.1f rows fit", lru,
             clock, frames, rows_each);
    row_show(&peers->bench, &row);
}

typedef struct Scanner {
    Kv *kv;
    u64 rows;
    atomic_bool is_over;
} Scanner;

static void *
scan_once(void *arg)
{
    Scanner *scanner = (Scanner *)arg;
    u64 sum = 0;
    KvSession *session = kv_weft.session(scanner->kv, KV_WAIT_TIMEOUT);
    kv_weft.begin(session, false);
    if (kv_weft.scan(session, &sum) != scanner->rows) kv_die("a scan misses rows");
    kv_weft.commit(session);
    kv_weft.session_end(session);
    atomic_store(&scanner->is_over, true);
    return NULL;
}

/* Reads a second of processor time: for that many, or while the scan runs and half as long after
   it, when what it has pushed out is missed. */
static double
rate_of(Kv *kv, Zipf *zipf, u64 times, Scanner *scanner, u64 *done_out)
{
    KvSession *session = kv_weft.session(kv, KV_WAIT_TIMEOUT);
    u64 done = 0, until = scanner == NULL ? times : 0;
    double began = thread_s();
    while (until == 0 || done < until) {
        kv_weft.begin(session, false);
        for (u32 i = 0; i < 1000; i++)
            kv_weft.get(session, zipf_next(zipf));
        kv_weft.commit(session);
        done += 1000;
        if (until == 0 && atomic_load(&scanner->is_over)) until = done + done / 2;
    }
    kv_weft.session_end(session);
    *done_out = done;
    return (double)done / (thread_s() - began);
}

static void
scan_beside(Peers *peers, Kv *kv, u64 rows)
{
    if (!peers_wants(peers, "beside_scan")) return;
    Row row = peers_row(peers, "beside_scan", 0, "reads a second", true, 0);
    Zipf zipf = zipf_new(rows, 9);
    u64 done = rows;
    rate_of(kv, &zipf, rows, NULL, &done);
    for (int round = 0; round < peers->bench.options.rounds; round++) {
        Scanner scanner = {.kv = kv, .rows = rows};
        pthread_t thread;
        if (pthread_create(&thread, NULL, scan_once, &scanner) != 0) kv_die("no thread");
        double beside = rate_of(kv, &zipf, 0, &scanner, &done);
        pthread_join(thread, NULL);
        double again;
        rate_of(kv, &zipf, rows / 4, NULL, &(u64){0});
        again = rate_of(kv, &zipf, done, NULL, &(u64){0});
        row_add(&row, beside, again);
    }
    row.peer_name = "no scan";
    row.goal = SCAN_GOAL;
    row_show(&peers->bench, &row);
}

void
peers_pool_group(Peers *peers)
{
    if (!peers_wants(peers, "hit_ratio") && !peers_wants(peers, "beside_scan")) return;
    u64 rows = peers->rows;
    double full, rows_each;
    PeerPlace place = peers_place(peers);
    Kv *kv = peers_open(peers, 0, &place, peers->pool_mib << 20, false);
    peers_fill(&kv_weft, kv, rows, VALUE_BYTES);
    kv_weft.close(kv);
    peers_leaves(&place, &full, &rows_each);
    u32 leaves = (u32)((double)rows / rows_each) + 1;
    u32 frames = MAX_OF(leaves / TIMES_OVER, FRAMES_LEAST), inner = leaves / 500 + 2;
    kv = peers_open(peers, 0, &place, (u64)frames * PAGE_BYTES, false);
    hit_rows(peers, kv, rows, rows_each, frames - inner);
    scan_beside(peers, kv, rows);
    kv_weft.close(kv);
    peers_place_end(&place);
}
