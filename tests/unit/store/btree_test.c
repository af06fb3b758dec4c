/*
 * btree_test.c -- a B-link tree over a pool too small for it, against a plain array; then threads.
 *
 * Method: keys are numbers, present or not, each with a value that tells its version.  One task
 * puts, deletes, gets and walks in both directions by leaf copies, joins emptied leaves, with loads
 * and writes that fail; btree_verify() after every stretch.  Then threads, each with keys of its
 * own, beside walkers that must meet rising keys and every key that is always there.
 */
#include "store/tree/btree.h"

#include "pool_disk.h"

#define KEYS 3000u

/* The guess where the next key may be, of each task. */
static _Thread_local BtreeNear near_last;

typedef struct Ids {
    RtU32 next;
    u32 returned[4096];
    u32 returned_count;
    RtMutex mutex;
} Ids;

static Err
ids_take(void *arg, u32 *page_id_out)
{
    Ids *ids = (Ids *)arg;
    rt_mutex_lock(&ids->mutex);
    if (ids->returned_count > 0) {
        *page_id_out = ids->returned[--ids->returned_count];
    } else {
        *page_id_out = rt_fetch_add(&ids->next, 1) + 1;
        ASSERT(*page_id_out <= DISK_PAGES);
    }
    rt_mutex_unlock(&ids->mutex);
    return OK;
}

static void
ids_give(void *arg, u32 page_id)
{
    Ids *ids = (Ids *)arg;
    rt_mutex_lock(&ids->mutex);
    ids->returned[ids->returned_count++] = page_id;
    rt_mutex_unlock(&ids->mutex);
}

typedef struct World {
    Disk *disk;
    Ids *ids;
    Pool *pool;
    PoolFile *file;
    Btree tree;
    bool is_int;
    u8 *scratch;
} World;

static void
world_start(World *world, u64 seed, bool is_int, u32 page_bytes, u32 frames)
{
    *world = (World){.is_int = is_int};
    world->disk = disk_new(page_bytes, seed);
    world->ids = (Ids *)calloc(1, sizeof(Ids));
    PoolClient client = client_of(world->disk);
    BtreePages pages = {.arg = world->ids, .take = ids_take, .give = ids_give};
    assert_int_equal(pool_create(page_bytes, frames, &world->pool), OK);
    assert_int_equal(pool_file_open(world->pool, &client, &world->file), OK);
    assert_int_equal(btree_create(&world->tree, world->file, &pages, 5, is_int), OK);
    world->scratch = (u8 *)mem_alloc_aligned(64, page_bytes);
}

static void
world_end(World *world)
{
    btree_close(&world->tree);
    pool_file_close(world->file);
    pool_free(world->pool);
    mem_free(world->scratch);
    free(world->ids);
    disk_end(world->disk);
}

static Slice
key_of(bool is_int, u32 number, u8 key[STORE_KEY_BYTES_MAX])
{
    if (is_int) {
        store_be64(key, number ^ ((u64)1 << 63));
        return (Slice){key, 8};
    }
    /* Lengths from 12 to 130, alike at the start. */
    int bytes = snprintf((char *)key, 200, "some/longer/prefix/%06u/%.*s", number,
                         (int)(number * 7 % 100),
                         "..............................................................."
                         ".....................................");
    return (Slice){key, (size_t)bytes};
}

static u32
number_of(bool is_int, Slice key)
{
    if (is_int) return (u32)(load_be64(key.p) ^ ((u64)1 << 63));
    return (u32)strtoul((const char *)key.p + 19, NULL, 10);
}

static u32
value_bytes_of(u32 number, u32 version)
{
    return 8 + (number * 13 + version * 5) % 90;
}

static Err
put(World *world, u8 *scratch, u32 number, u32 version)
{
    u8 key_bytes[STORE_KEY_BYTES_MAX], value_bytes[128];
    Slice key = key_of(world->is_int, number, key_bytes);
    Slice value = {value_bytes, value_bytes_of(number, version)};
    memset(value_bytes, (int)version, sizeof(value_bytes));
    store_u32(value_bytes, number);
    store_u32(value_bytes + 4, version);
    PageView view;
    u32 need = version % 3 == 0 ? 0 : btree_need_bytes(key, value);
    Err err = btree_leaf_latch_near(&world->tree, &near_last, key, need, &view);
    if (err != OK) return err;
    Node node = btree_node(&world->tree, &view);
    ASSERT(node_against_fences(node, key) == 0);
    bool exact;
    u32 slot = node_find(node, key, &exact);
    bool done = exact ? node_replace(node, slot, value, 0, 0, scratch)
                      : node_insert(node, slot, key, value, 0, 0, scratch);
    ASSERT(done || need == 0);
    pool_unlatch(&view, true, true);
    if (done) return OK;
    /* No room yet: once more, asking for it. */
    err = btree_leaf_latch(&world->tree, key, btree_need_bytes(key, value), &view);
    if (err != OK) return err;
    node = btree_node(&world->tree, &view);
    slot = node_find(node, key, &exact);
    done = exact ? node_replace(node, slot, value, 0, 0, scratch)
                 : node_insert(node, slot, key, value, 0, 0, scratch);
    ASSERT(done);
    pool_unlatch(&view, true, true);
    return OK;
}

static Err
erase(World *world, u32 number)
{
    u8 key_bytes[STORE_KEY_BYTES_MAX];
    Slice key = key_of(world->is_int, number, key_bytes);
    PageView view;
    Err err = btree_leaf_latch_near(&world->tree, &near_last, key, 0, &view);
    if (err != OK) return err;
    Node node = btree_node(&world->tree, &view);
    bool exact;
    u32 slot = node_find(node, key, &exact);
    if (exact) node_remove(node, slot);
    bool empty = node_head(node)->count == 0;
    pool_unlatch(&view, exact, exact);
    return exact && empty ? btree_merge_empty(&world->tree, key) : OK;
}

/* 0: absent. */
static Err
get(World *world, Buf *buf, u32 number, u32 *version_out)
{
    u8 key_bytes[STORE_KEY_BYTES_MAX];
    bool found;
    NodeSlot slot;
    *version_out = 0;
    Err err = btree_get(&world->tree, key_of(world->is_int, number, key_bytes), &found, &slot, buf);
    if (err != OK || !found) return err;
    ASSERT(load_u32(buf->p) == number);
    *version_out = load_u32(buf->p + 4);
    ASSERT(buf->bytes == value_bytes_of(number, *version_out));
    return OK;
}

typedef void (*WalkFn)(void *arg, u32 number);

/* All keys in one direction; they must come in order. */
static Err
walk(World *world, bool backwards, WalkFn each, void *arg)
{
    u32 page_bytes = world->disk->page_bytes;
    u8 *page = (u8 *)mem_alloc_aligned(64, page_bytes);
    u8 key[STORE_KEY_BYTES_MAX], last[STORE_KEY_BYTES_MAX] = {0}, edge[STORE_KEY_BYTES_MAX];
    Slice last_key = SLICE_NONE, from = {edge, 0};
    BtreeWhere where = backwards ? BTREE_LAST : BTREE_AT;
    Err err;
    for (;;) {
        err = btree_leaf_copy(&world->tree, where, from, true, page);
        if (err != OK) break;
        Node node = {page, page_bytes};
        u32 count = node_head(node)->count;
        for (u32 i = 0; i < count; i++) {
            u32 slot = backwards ? count - 1 - i : i;
            Slice here = {key, node_read_key(node, slot, key)};
            int order = slice_compare(last_key, here);
            ASSERT(last_key.p == NULL || (backwards ? order > 0 : order < 0));
            memcpy(last, key, here.bytes);
            last_key = (Slice){last, here.bytes};
            key[here.bytes] = 0;
            each(arg, number_of(world->is_int, here));
        }
        NodeFences fences = node_fences(node);
        if (backwards ? fences.low.bytes == 0 : !fences.has_high) break;
        from = backwards ? fences.low : fences.high;
        memcpy(edge, from.p, from.bytes);
        from.p = edge;
        where = backwards ? BTREE_BEFORE : BTREE_AT;
    }
    mem_free(page);
    return err;
}

/* ---- one task ---- */

typedef struct Expect {
    const u32 *versions;
    bool backwards;
    u32 at;
} Expect;

static void
expect_next(void *arg, u32 number)
{
    Expect *expect = (Expect *)arg;
    u32 at = expect->at;
    while (at < KEYS && expect->versions[expect->backwards ? KEYS - 1 - at : at] == 0) {
        at++;
    }
    ASSERT(at < KEYS && (expect->backwards ? KEYS - 1 - at : at) == number);
    expect->at = at + 1;
}

static void
check_all(World *world, const u32 *versions)
{
    u32 fail_one_in = world->disk->fail_one_in;
    world->disk->fail_one_in = 0;
    const char *what;
    u64 entries, present = 0;
    assert_int_equal(btree_verify(&world->tree, &what, &entries), OK);
    if (what != NULL) print_error("%s\n", what);
    assert_null(what);
    for (u32 i = 0; i < KEYS; i++) {
        present += versions[i] != 0;
    }
    assert_int_equal(entries, present);
    for (u32 backwards = 0; backwards < 2; backwards++) {
        Expect expect = {.versions = versions, .backwards = backwards != 0};
        assert_int_equal(walk(world, backwards != 0, expect_next, &expect), OK);
        while (expect.at < KEYS) {
            assert_int_equal(versions[backwards ? KEYS - 1 - expect.at : expect.at], 0);
            expect.at++;
        }
    }
    world->disk->fail_one_in = fail_one_in;
}

static void
run_seed(u64 seed)
{
    World world;
    Rng rng;
    rng_seed(&rng, seed);
    world_start(&world, seed, seed % 2 == 0, 4096, 24 + (u32)(seed % 5) * 8);
    u32 *versions = (u32 *)calloc(KEYS, sizeof(u32));
    Buf buf = {0};
    for (u32 step = 0; step < 24000; step++) {
        /* Phases: grow, mix, shrink from the left, shrink all over. */
        u32 phase = step / 6000;
        u32 number = (u32)rng_below(&rng, KEYS);
        if (phase == 0 && seed % 3 == 0) number = step % KEYS;
        if (phase == 2) number = (step - 12000) % KEYS;
        world.disk->fail_one_in = step % 4000 > 3000 && seed % 4 == 3 ? 40 : 0;
        u64 dice = rng_below(&rng, 10);
        Err err;
        if (dice < 2) {
            u32 version;
            err = get(&world, &buf, number, &version);
            if (err == OK) assert_int_equal(version, versions[number]);
        } else if (dice < (phase == 0 ? 10u : phase == 1 ? 6u : phase == 2 ? 2u : 3u)) {
            err = put(&world, world.scratch, number, step + 1);
            if (err == OK) versions[number] = step + 1;
        } else {
            err = erase(&world, number);
            u32 version;
            if (err != OK) { /* The removal stands; the merge may have failed. */
                world.disk->fail_one_in = 0;
                assert_int_equal(get(&world, &buf, number, &version), OK);
                versions[number] = version;
            } else {
                versions[number] = 0;
            }
        }
        bool may_fail = world.disk->fail_one_in != 0 || step % 4000 > 3000;
        assert_true(err == OK || (may_fail && seed % 4 == 3));
        if (step % 1000 == 0) btree_reclaim(&world.tree);
        if (step % 2000 == 0) check_all(&world, versions);
    }
    world.disk->fail_one_in = 0;
    check_all(&world, versions);
    assert_true(rt_load_relaxed(&world.tree.splits) > 20);
    assert_true(rt_load_relaxed(&world.tree.merges) > 5);
    buf_free(&buf);
    free(versions);
    world_end(&world);
}

static void
equals_the_model(void **state)
{
    (void)state;
    u64 blocks = mem_live_blocks();
    const char *wanted = getenv("STORE_SEEDS");
    u64 seeds = wanted == NULL ? 8 : strtoull(wanted, NULL, 10);
    for (u64 seed = 1; seed <= seeds; seed++) {
        run_seed(seed);
    }
    assert_int_equal(mem_live_blocks(), blocks);
}

static void
rising_keys_fill_the_leaves(void **state)
{
    (void)state;
    World world;
    world_start(&world, 1, true, 16384, 512);
    for (u32 i = 0; i < 20000; i++) {
        assert_int_equal(put(&world, world.scratch, i, 1), OK);
    }
    u64 bytes = 0;
    for (u32 i = 0; i < 20000; i++) {
        bytes += sizeof(NodeSlot) + value_bytes_of(i, 1);
    }
    u32 pages = rt_load_relaxed(&world.ids->next);
    assert_true(bytes * 100 > (u64)pages * 16384 * 92);
    world_end(&world);
}

/* ---- threads ---- */

#define THREADS 3u

typedef struct Worker {
    World *world;
    u32 number;
    RtU32 *left;
} Worker;

static void
worker_main(void *arg)
{
    Worker *worker = (Worker *)arg;
    World *world = worker->world;
    Rng rng;
    rng_seed(&rng, 50 + worker->number);
    u8 *scratch = (u8 *)mem_alloc_aligned(64, world->disk->page_bytes);
    u32 *versions = (u32 *)calloc(KEYS, sizeof(u32));
    Buf buf = {0};
    for (u32 step = 0; step < 6000; step++) {
        /* Keys 0, 10, 20... are always there and nobody's. */
        u32 number = (u32)rng_below(&rng, KEYS / 10) * 10 + 1 + worker->number;
        u64 dice = rng_below(&rng, 10);
        Err err;
        if (dice < 3) {
            u32 version;
            err = get(world, &buf, number, &version);
            ASSERT(err != OK || version == versions[number]);
        } else if (dice < (step < 3000 ? 8u : 5u)) {
            err = put(world, scratch, number, step + 1);
            versions[number] = step + 1;
        } else {
            err = erase(world, number);
            versions[number] = 0;
        }
        ASSERT(err == OK);
    }
    buf_free(&buf);
    free(versions);
    mem_free(scratch);
    rt_fetch_sub(worker->left, 1);
}

static void
count_permanent(void *arg, u32 number)
{
    u32 *count = (u32 *)arg;
    if (number % 10 == 0) (*count)++;
}

static void
walker_main(void *arg)
{
    Worker *worker = (Worker *)arg;
    bool backwards = false;
    while (rt_load_acquire(worker->left) > 0) {
        u32 count = 0;
        Err err = walk(worker->world, backwards, count_permanent, &count);
        ASSERT(err == OK && count == KEYS / 10);
        backwards = !backwards;
    }
}

static void
many_threads(void **state)
{
    (void)state;
    for (u32 round = 0; round < 2; round++) {
        World world;
        world_start(&world, 9, round == 0, 4096, 40);
        for (u32 i = 0; i < KEYS; i += 10) {
            assert_int_equal(put(&world, world.scratch, i, 1), OK);
        }
        RtU32 left;
        rt_word_init(&left, THREADS);
        Worker workers[THREADS + 1];
        RtThread *threads[THREADS + 1];
        for (u32 i = 0; i <= THREADS; i++) {
            workers[i] = (Worker){.world = &world, .number = i, .left = &left};
            assert_int_equal(rt_thread_start(rt_process_default(),
                                             i < THREADS ? worker_main : walker_main, &workers[i],
                                             "tree", &threads[i]),
                             OK);
        }
        for (u32 i = 0; i <= THREADS; i++) {
            rt_thread_join(threads[i]);
        }
        const char *what;
        u64 entries;
        assert_int_equal(btree_verify(&world.tree, &what, &entries), OK);
        assert_null(what);
        btree_reclaim(&world.tree);
        world_end(&world);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_model),
        cmocka_unit_test(rising_keys_fill_the_leaves),
        cmocka_unit_test(many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
